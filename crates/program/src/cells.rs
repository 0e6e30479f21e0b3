//! What a cell of a column says, as the column's type holds it.

use crate::{CellKind, RowColumn, ValueType};

impl RowColumn {
    /// The bit pattern of a cell; `None` of one that is missing, in a column in which cells may be.
    ///
    /// # Errors
    /// What is wrong with the cell, and what to write.
    pub fn pattern(&self, cell: &str) -> Result<Option<u128>, String> {
        if cell.is_empty() {
            return match self.cells.missing {
                true => Ok(None),
                false => {
                    Err("the cell is empty; write a value, or `missing` behind the program's column".into())
                }
            };
        }
        let value = match &self.cells.kind {
            CellKind::Number(1) if self.ty == ValueType::BIT => bit(cell),
            CellKind::Number(scale) => {
                decimal(cell, (*scale).into()).map_err(|error| error.of_column(cell, *scale))
            }
            CellKind::Label(labels) => label(cell, labels),
            CellKind::Date => date(cell),
        }?;
        self.ty.pattern(value).map(Some).ok_or_else(|| format!("{cell} does not fit {}; widen it", self.ty))
    }
}

impl ValueType {
    /// The bit pattern of a number, if the type holds it.
    #[must_use]
    pub fn pattern(self, number: i128) -> Option<u128> {
        let pattern = number as u128 & self.mask();
        (self.number(pattern) == Some(number)).then_some(pattern)
    }
}

/// 1, true, yes; 0, false, no; in small or large letters.
fn bit(cell: &str) -> Result<i128, String> {
    let is = |words: [&str; 3]| words.iter().any(|word| cell.eq_ignore_ascii_case(word));
    match (is(["0", "false", "no"]), is(["1", "true", "yes"])) {
        (true, _) => Ok(0),
        (_, true) => Ok(1),
        // As a file has it that was written by way of floating point.
        _ if let Ok(number @ 0..=1) = decimal(cell, 1) => Ok(number),
        _ => Err(format!("{cell:?} is no bit: write 0 or 1, false or true, no or yes")),
    }
}

/// Why a text is no whole number of a scale's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalError {
    /// It is no number.
    NoNumber,
    /// It has more digits than there is room for.
    Long,
    /// It has more decimals than the scale.
    Inexact,
}

impl DecimalError {
    /// In the words of a program's column.
    pub(crate) fn of_column(self, text: &str, scale: u32) -> String {
        match self {
            Self::NoNumber => format!("{text:?} is no number such as 12, -3 or 149.28"),
            Self::Long => format!("{text} has too many digits"),
            Self::Inexact if scale == 1 => {
                format!("{text} is no whole number; write `scale 100` behind the program's column, say")
            }
            Self::Inexact => format!(
                "{text} is no whole number of 1/{scale}; round it, or give the program's column a finer \
                 `scale`"
            ),
        }
    }
}

/// A number in decimal digits with a point, times a scale; exact or not at all.
///
/// # Errors
/// Why not.
pub fn decimal(text: &str, scale: i128) -> Result<i128, DecimalError> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !plain(whole) || !plain(part) || digits.ends_with('.') {
        return Err(DecimalError::NoNumber);
    }
    let part = part.trim_end_matches('0');
    let tens = u32::try_from(part.len())
        .ok()
        .and_then(|places| 10i128.checked_pow(places))
        .ok_or(DecimalError::Long)?;
    let mut digits = whole.bytes().chain(part.bytes()).map(|digit| i128::from(digit - b'0'));
    let number = digits.try_fold(0i128, |number, digit| number.checked_mul(10)?.checked_add(digit));
    let scaled = number.and_then(|number| number.checked_mul(scale)).ok_or(DecimalError::Long)?;
    if scaled % tens != 0 {
        return Err(DecimalError::Inexact);
    }
    Ok(if negative { -scaled / tens } else { scaled / tens })
}

fn label(cell: &str, labels: &[String]) -> Result<i128, String> {
    let place = labels.iter().position(|label| label == cell);
    place.map(|at| at as i128 + 1).ok_or_else(|| {
        let some: Vec<String> = labels.iter().take(8).map(|label| format!("{label:?}")).collect();
        let more = if labels.len() > some.len() { " .." } else { "" };
        format!("{cell:?} is none of the labels {}{more}", some.join(" "))
    })
}

/// Days after 1970-01-01.
pub(crate) fn date(text: &str) -> Result<i128, String> {
    base::days_of_date(text).map(Into::into).ok_or_else(|| format!("{text:?} is no day such as 2026-03-01"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_or_refused() {
        for (text, scale, value) in [
            ("149.28", 100, 14_928),
            ("-0.5", 10, -5),
            ("7", 100, 700),
            ("1.50", 10, 15),
            ("0", 1, 0),
            ("1.000", 1, 1),
            ("0.25", 4, 1),
        ] {
            assert_eq!(decimal(text, scale), Ok(value), "{text}");
        }
        for text in ["", "-", ".5", "1.", "1e3", "+1", "1,5", "0x1", "--1", "1.2.3", "١"] {
            assert!(decimal(text, 100).is_err(), "{text}");
        }
        assert_eq!(decimal("149.285", 100), Err(DecimalError::Inexact));
        assert!(DecimalError::Inexact.of_column("149.285", 100).contains("no whole number of 1/100"));
        assert!(DecimalError::Inexact.of_column("0.5", 1).contains("scale 100"));
        let long = "9".repeat(60);
        assert_eq!(decimal(&long, 1), Err(DecimalError::Long));
        assert_eq!(decimal(&format!("0.{}1", "0".repeat(60)), 1), Err(DecimalError::Long));
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for (text, value) in [
            ("1970-01-01", 0),
            ("1970-03-01", 59),
            ("2000-02-29", 11_016),
            ("2026-11-27", 20_784),
            ("1969-12-31", -1),
            ("0000-03-01", -719_468),
        ] {
            assert_eq!(date(text), Ok(value), "{text}");
        }
        for text in
            ["2026-02-29", "1900-02-29", "2026-13-01", "2026-04-31", "26-01-01", "2026-1-1", "2026/01/01"]
        {
            assert!(date(text).is_err(), "{text}");
        }
    }
}
