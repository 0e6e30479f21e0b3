//! Values of flags.

use clap::ValueEnum;

/// A choice among named values.
pub trait NamedValue {
    /// As the command line names it.
    fn word(&self) -> String;
}

impl<T: ValueEnum> NamedValue for T {
    fn word(&self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Reads `10000`, `10k`, `2.5M`, `1G`: decimal multiples.
///
/// # Errors
/// What to write instead.
pub fn count(text: &str) -> Result<u64, String> {
    let rule = || "write a whole number above 0, or one with k, M or G: 10000, 400k, 10M".to_owned();
    let (digits, zeros) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 3),
        Some(b'M') => (&text[..text.len() - 1], 6),
        Some(b'G') => (&text[..text.len() - 1], 9),
        _ => (text, 0),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !plain(whole) || !plain(part) || part.len() > zeros || digits.ends_with('.') {
        return Err(rule());
    }
    let number = format!("{whole}{part}{}", "0".repeat(zeros - part.len()));
    let rows = number.parse::<u64>().map_err(|_| rule())?;
    match rows {
        0 => Err(rule()),
        _ if rows >= base::limits::ROWS => {
            Err(format!("at most {} rows are possible", base::limits::ROWS - 1))
        }
        _ => Ok(rows),
    }
}

/// Reads a share of one.
///
/// # Errors
/// What to write instead.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|s| (0.0..=1.0).contains(s));
    share.ok_or_else(|| "write a share from 0 to 1: 0.5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read() {
        for (text, rows) in [("1", 1), ("10k", 10_000), ("2.5M", 2_500_000), ("1G", 1_000_000_000)] {
            assert_eq!(count(text), Ok(rows), "{text}");
        }
        for text in ["", "0", "k", "1.5", "1.", "-1", "1e6", "10 k", "5G", "1.0001k", "99999999999999999999"]
        {
            assert!(count(text).is_err(), "{text}");
        }
    }
}
