//! Sizes as people write them.

use osprey::settings::{CHUNK_MAX, CHUNK_MIN, REGION_MAX};

/// Memory for a program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MemorySize {
    /// So many bytes.
    Bytes(u64),
    /// Percent of what the trace says that the program needs.
    Percent(f64),
}

/// Least memory that can be asked for.
pub const MEMORY_MIN: u64 = 4 << 20;

/// Least region that can be asked for: the largest chunk.
const REGION_MIN: u64 = CHUNK_MAX as u64;

/// `64K`, `256M`, `2G`, `1T`, with `iB` or `B` behind or not; bare numbers are bytes.
fn bytes(text: &str) -> Result<u64, String> {
    let bare = text.trim_end_matches(['B', 'b']).trim_end_matches('i');
    let (digits, shift) = match bare.as_bytes().last().map(u8::to_ascii_uppercase) {
        Some(b'K') => (&bare[..bare.len() - 1], 10),
        Some(b'M') => (&bare[..bare.len() - 1], 20),
        Some(b'G') => (&bare[..bare.len() - 1], 30),
        Some(b'T') => (&bare[..bare.len() - 1], 40),
        _ => (bare, 0),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a size such as 64K, 256M or 2G".to_owned())?;
    number.checked_shl(shift).filter(|n| n >> shift == number).ok_or_else(|| "that is too large".into())
}

/// The value of `--memory`.
///
/// # Errors
/// What is allowed.
pub fn memory(text: &str) -> Result<MemorySize, String> {
    if let Some(percent) = text.strip_suffix('%') {
        return match percent.parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(MemorySize::Percent(percent)),
            _ => {
                Err("expected a percentage above 0% and up to 100%; --engine unbounded is without a limit"
                    .into())
            }
        };
    }
    // A part, as osprey bench takes it.
    if let (true, Ok(part)) = (text.contains('.'), text.parse::<f64>()) {
        return match part {
            part if part > 0.0 && part <= 1.0 => Ok(MemorySize::Percent(100.0 * part)),
            _ => Err("expected a part above 0.0 and up to 1.0".into()),
        };
    }
    match bytes(text)? {
        n if n < MEMORY_MIN => Err("expected at least 4M".into()),
        n => Ok(MemorySize::Bytes(n)),
    }
}

/// The value of `--chunk`.
///
/// # Errors
/// What is allowed.
pub fn chunk(text: &str) -> Result<usize, String> {
    let n = usize::try_from(bytes(text)?).map_err(|e| e.to_string())?;
    if n.is_power_of_two() && (CHUNK_MIN..=CHUNK_MAX).contains(&n) {
        Ok(n)
    } else {
        Err("expected a power of two from 4K to 4M".into())
    }
}

/// The value of `--region`: rounded up to whole pieces of the largest chunk.
///
/// # Errors
/// What is allowed.
pub fn region(text: &str) -> Result<u64, String> {
    let asked = bytes(text)?;
    if !(REGION_MIN..=REGION_MAX).contains(&asked) {
        return Err("expected 4M to 16T".into());
    }
    Ok(asked.next_multiple_of(CHUNK_MAX as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_written() {
        for (text, n) in [("1", 1), ("64K", 65536), ("64k", 65536), ("256MiB", 256 << 20), ("2GB", 2 << 30)] {
            assert_eq!(bytes(text), Ok(n), "{text}");
        }
        for text in ["", "K", "1.5G", "-1", "99999999T", "64 K"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert_eq!(memory("25%"), Ok(MemorySize::Percent(25.0)));
        assert_eq!(memory("0.25"), Ok(MemorySize::Percent(25.0)));
        assert!(memory("1.5").is_err() && memory("0.0").is_err());
        assert_eq!(memory("256M"), Ok(MemorySize::Bytes(256 << 20)));
        assert!(memory("0%").is_err() && memory("1K").is_err() && memory("NaN%").is_err());
        assert!(chunk("64K").is_ok() && chunk("5000").is_err() && chunk("8M").is_err());
        assert_eq!((region("4M"), region("5M")), (Ok(4 << 20), Ok(8 << 20)));
        assert!(memory("150%").is_err() && memory("100%").is_ok());
        assert!(region("0").is_err() && region("1K").is_err() && region("17T").is_err());
    }
}
