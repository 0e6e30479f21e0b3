//! Numbers in text as people write them: which sign stands before decimals.

use std::borrow::Cow;
use study::format::{DecimalSign, NumberForm};

/// The text of a number with a point before its decimals and nothing between its digits; text that is no
/// number stays as it is.
///
/// # Errors
/// What is wrong with a number that could be two, to stand behind it.
pub(crate) fn plain(text: &str, form: NumberForm) -> Result<Cow<'_, str>, String> {
    let decimal = form.decimal;
    let of = |byte: u8| text.bytes().filter(|other| *other == byte).count();
    let (commas, points) = (of(b','), of(b'.'));
    let point_only = decimal != Some(DecimalSign::Comma);
    let numeric = |byte: u8| byte.is_ascii_digit() || matches!(byte, b',' | b'.' | b'-' | b'+');
    if decimal.is_none() && commas == 0 && is_one_group(text, '.') {
        return Err(
            "could be a number with three decimals or one of thousands: add decimal = \".\" under [format] \
             of the party file (or --decimal .) where the point stands before decimals, or thousands = \
             \".\" (or --thousands .) where it is between thousands"
                .to_owned(),
        );
    }
    if commas == 0 && (point_only || points == 0) || !text.bytes().all(numeric) {
        return Ok(Cow::Borrowed(text));
    }
    let Some(decimal) = decimal else { return Err(unsaid(text)) };
    let (sign, other) = (decimal.character(), decimal.other().character());
    let (whole, part) = match text.split_once(sign) {
        Some((whole, part)) => (whole, Some(part)),
        None => (text, None),
    };
    let whole = match whole.contains(other) {
        false => Cow::Borrowed(whole),
        true => Cow::Owned(grouped(whole, other, part.is_some() || form.grouped).ok_or_else(|| {
            let cure = match is_one_group(text, other) {
                true => format!(
                    "it could be a decimal sign: where it separates thousands in all numbers, add thousands \
                     = \"{other}\" (or --thousands {other})"
                ),
                false => format!(
                    "between groups of three digits \"{other}\" would separate thousands, and here it does \
                     not; write the number without it"
                ),
            };
            format!("has \"{other}\" where \"{sign}\" stands before decimals: {cure}")
        })?),
    };
    Ok(match part {
        Some(part) => Cow::Owned(format!("{whole}.{part}")),
        None => whole,
    })
}

/// Whether a number has two or more groups of three digits behind this sign, as only thousands are written.
pub(crate) fn is_grouped(text: &str, sign: char) -> bool {
    let mut groups = text.trim_start_matches('-').split(sign);
    let digits = |group: &str, most: usize| {
        (1..=most).contains(&group.len()) && group.bytes().all(|byte| byte.is_ascii_digit())
    };
    let first = groups.next().is_some_and(|first| digits(first, 3));
    let rest: Vec<&str> = groups.collect();
    first && rest.len() > 1 && rest.iter().all(|group| group.len() == 3 && digits(group, 3))
}

/// Whether a sign stands before three digits, and before it one to three that could be thousands.
pub(crate) fn is_one_group(text: &str, sign: char) -> bool {
    let unsigned = text.trim_start_matches(['-', '+']);
    let Some((whole, part)) = unsigned.split_once(sign) else { return false };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (1..=3).contains(&whole.len())
        && part.len() == 3
        && !whole.starts_with('0')
        && digits(whole)
        && digits(part)
}

/// The digits of groups of three. One group alone could be decimals, unless it is sure that it is none.
fn grouped(whole: &str, other: char, sure: bool) -> Option<String> {
    let unsigned = whole.trim_start_matches(['-', '+']);
    let mut groups = unsigned.split(other);
    let first = groups.next().is_some_and(|first| (1..=3).contains(&first.len()) && !first.starts_with('0'));
    let rest: Vec<&str> = groups.collect();
    let good = first && rest.iter().all(|group| group.len() == 3) && (sure || rest.len() > 1);
    good.then(|| whole.replace(other, ""))
}

fn unsaid(text: &str) -> String {
    let (comma, point) = (text.rfind(','), text.rfind('.'));
    match point > comma {
        true => {
            "has a comma: if it separates thousands, add decimal = \".\" under [format] of the party file \
                 (or --decimal .)"
                .to_owned()
        }
        false => {
            let or = match is_one_group(text, ',') {
                true => "; if it separates thousands, add thousands = \",\" (or --thousands ,)",
                false => "",
            };
            format!(
                "has a comma: if decimals stand behind it, add decimal = \",\" under [format] of the party \
                 file (or --decimal ,){or}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_could_be_two_is_refused() {
        let (comma, point) = (Some(DecimalSign::Comma), Some(DecimalSign::Point));
        for (text, decimal, number) in [
            ("12.5", None, "12.5"),
            ("0.125", None, "0.125"),
            ("1234.125", None, "1234.125"),
            ("12.3456", None, "12.3456"),
            ("1,50", comma, "1.50"),
            ("-1,50", comma, "-1.50"),
            ("1.234,50", comma, "1234.50"),
            ("-1.234.567", comma, "-1234567"),
            ("12", comma, "12"),
            ("1,234.50", point, "1234.50"),
            ("1,234,567", point, "1234567"),
            ("1.234", point, "1.234"),
            ("a, b", None, "a, b"),
            ("yes", comma, "yes"),
            (",5", comma, ".5"),
        ] {
            let form = NumberForm { decimal, grouped: false };
            assert_eq!(plain(text, form).as_deref(), Ok(number), "{text}");
        }
        for (text, decimal, why) in [
            ("1,50", None, "add decimal = \",\""),
            ("1.200", None, "three decimals or one of thousands"),
            ("-950.000", None, "three decimals or one of thousands"),
            ("1.234,50", None, "add decimal = \",\""),
            ("1,234.50", None, "add decimal = \".\""),
            ("1,234", None, "add thousands = \",\""),
            ("1.234", comma, "add thousands = \".\""),
            ("1,234", point, "add thousands = \",\""),
            ("1.23,5", comma, "without it"),
            ("1234.567,5", comma, "without it"),
        ] {
            let form = NumberForm { decimal, grouped: false };
            assert!(plain(text, form).unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn one_group_is_thousands_where_that_is_said() {
        let read = |text: &str, decimal| {
            plain(text, NumberForm { decimal: Some(decimal), grouped: true }).map(Cow::into_owned)
        };
        for (text, number) in [("1.234", "1234"), ("-12.345", "-12345"), ("7", "7"), ("1.234,5", "1234.5")] {
            assert_eq!(read(text, DecimalSign::Comma).as_deref(), Ok(number), "{text}");
        }
        assert_eq!(read("1,234", DecimalSign::Point).as_deref(), Ok("1234"));
        for text in ["1.23", "1234.567", "0.125", "12.3456"] {
            assert!(read(text, DecimalSign::Comma).unwrap_err().contains("without it"), "{text}");
        }
    }
}
