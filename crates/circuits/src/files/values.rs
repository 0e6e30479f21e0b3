//! Numbers of people for words of circuits, and the input files of the GMW paper: one party's items in the
//! order of its wires, between white space.

use super::lines::Lines;
use base::Error;
use std::io::BufRead;

/// Parses a number into `width` bits, least significant first: decimal (at most 128 bits), `0x` hexadecimal
/// or `0b` binary of any width. Underscores are skipped.
///
/// # Errors
/// Why it is not a number of this width.
pub fn parse(text: &str, width: u32) -> Result<Vec<bool>, String> {
    let start: String = text.chars().take(24).collect();
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    let (prefix, shift) = match digits.get(..2) {
        Some("0x" | "0X") => (2, 4),
        Some("0b" | "0B") => (2, 1),
        _ => (0, 0),
    };
    let digits = &digits[prefix..];
    let no_number = || format!("{start:?} is not a number: decimal, 0x... or 0b... is expected");
    if digits.is_empty() {
        return Err(no_number());
    }
    let mut bits: Vec<bool> = Vec::new();
    if shift == 0 {
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(no_number());
        }
        let value: u128 = digits.parse().map_err(|_| {
            format!("{start:?} is over 128 bits: write wide numbers in hexadecimal, as 0x...")
        })?;
        bits.extend((0..128).map(|bit| value >> bit & 1 == 1));
    } else {
        for c in digits.chars().rev() {
            let digit = c.to_digit(1 << shift).ok_or_else(no_number)?;
            bits.extend((0..shift).map(|bit| digit >> bit & 1 == 1));
        }
    }
    let needed = bits.iter().rposition(|bit| *bit).map_or(0, |top| top + 1);
    if needed > width as usize {
        return Err(format!("{start:?} needs {needed} bits; this word has {width}"));
    }
    bits.resize(width as usize, false);
    Ok(bits)
}

/// Bits, least significant first, as `0x` hexadecimal with all digits of the width.
#[must_use]
pub fn format(bits: &[bool]) -> String {
    let digit = |nibble: &[bool]| nibble.iter().rev().fold(0, |d, bit| d << 1 | u32::from(*bit));
    let digits = bits.chunks(4).rev().map(|n| char::from_digit(digit(n), 16).expect("below 16"));
    "0x".chars().chain(digits).collect()
}

/// Reads an input file: exactly the values of words of these widths, in order. `file` is its name for
/// messages.
///
/// # Errors
/// When the file cannot be read, an item is not a number of its width, or there are too few or too many.
pub fn read(reader: impl BufRead, file: &str, widths: &[u32]) -> Result<Vec<Vec<bool>>, Error> {
    let mut lines = Lines::new(reader, file);
    let mut items = Vec::new();
    while let Some(line) = lines.next_line()? {
        for field in line.fields() {
            let Some(width) = widths.get(items.len()) else {
                return Err(line.fail(format!("this party enters {} items; here is one more", widths.len())));
            };
            let at = items.len();
            let item = parse(field, *width).map_err(|text| line.fail(format!("item {at}: {text}")))?;
            items.push(item);
        }
    }
    if items.len() < widths.len() {
        let text = format!("the file ends after {} items; this party enters {}", items.len(), widths.len());
        return Err(lines.fail(text));
    }
    Ok(items)
}
