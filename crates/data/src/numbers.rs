//! Numbers in text as people write them: which sign stands before decimals.

use std::borrow::Cow;
use study::format::DecimalSign;

/// The text of a number with a point before its decimals and nothing between its digits; text that is no
/// number stays as it is.
///
/// # Errors
/// What is wrong with a number that could be two, to stand behind it.
pub(crate) fn plain(text: &str, decimal: Option<DecimalSign>) -> Result<Cow<'_, str>, String> {
    let of = |byte: u8| text.bytes().filter(|other| *other == byte).count();
    let (commas, points) = (of(b','), of(b'.'));
    let point_only = decimal != Some(DecimalSign::Comma);
    let numeric = |byte: u8| byte.is_ascii_digit() || matches!(byte, b',' | b'.' | b'-' | b'+');
    if decimal.is_none() && commas == 0 && is_one_group(text, '.') {
        return Err(
            "could be a number with three decimals or one of thousands: add decimal = \".\" under [format] \
             of the party file (or --decimal .) where the point stands before decimals, decimal = \",\" \
             where it is between thousands, and then write such numbers without it"
                .to_owned(),
        );
    }
    if commas == 0 && (point_only || points == 0) || !text.bytes().all(numeric) {
        return Ok(Cow::Borrowed(text));
    }
    let Some(decimal) = decimal else { return Err(unsaid(text)) };
    let (sign, other) = match decimal {
        DecimalSign::Point => ('.', ','),
        DecimalSign::Comma => (',', '.'),
    };
    let (whole, part) = match text.split_once(sign) {
        Some((whole, part)) => (whole, Some(part)),
        None => (text, None),
    };
    let whole = match whole.contains(other) {
        false => Cow::Borrowed(whole),
        true => Cow::Owned(grouped(whole, other, part.is_some()).ok_or_else(|| {
            format!(
                "has \"{other}\" where `decimal` says \"{sign}\": between groups of three digits it would \
                 separate thousands, and here it does not, or it could be a decimal sign; write the number \
                 without it"
            )
        })?),
    };
    Ok(match part {
        Some(part) => Cow::Owned(format!("{whole}.{part}")),
        None => whole,
    })
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

/// The digits of groups of three. One group alone, with no decimals behind it, could be decimals.
fn grouped(whole: &str, other: char, decimals: bool) -> Option<String> {
    let unsigned = whole.trim_start_matches(['-', '+']);
    let mut groups = unsigned.split(other);
    let first = groups.next().is_some_and(|first| (1..=3).contains(&first.len()));
    let rest: Vec<&str> = groups.collect();
    let good = first && rest.iter().all(|group| group.len() == 3) && (decimals || rest.len() > 1);
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
        false => "has a comma: if decimals stand behind it, add decimal = \",\" under [format] of the party \
                  file (or --decimal ,); if it separates thousands, write the number without it"
            .to_owned(),
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
            assert_eq!(plain(text, decimal).as_deref(), Ok(number), "{text}");
        }
        for (text, decimal, why) in [
            ("1,50", None, "add decimal = \",\""),
            ("1.200", None, "three decimals or one of thousands"),
            ("-950.000", None, "three decimals or one of thousands"),
            ("1.234,50", None, "add decimal = \",\""),
            ("1,234.50", None, "add decimal = \".\""),
            ("1.234", comma, "without it"),
            ("1,234", point, "without it"),
            ("1.23,5", comma, "without it"),
            ("1234.567,5", comma, "without it"),
        ] {
            assert!(plain(text, decimal).unwrap_err().contains(why), "{text}");
        }
    }
}
