//! Identifiers: normalising them, keeping many of them compactly, and finding those that occur twice.

use crate::study::{Identifier, Normaliser};
use base::limits;
use unicode_normalization::UnicodeNormalization;

/// Many byte strings in one buffer: 8 bytes of overhead each. It does not print.
#[derive(Default)]
pub struct Identifiers {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl Identifiers {
    /// Appends one.
    pub fn push(&mut self, identifier: &[u8]) {
        self.bytes.extend_from_slice(identifier);
        self.ends.push(self.bytes.len() as u64);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The identifier of row `i`.
    ///
    /// # Panics
    /// When there is no row `i`.
    #[must_use]
    pub fn get(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start as usize..self.ends[i] as usize]
    }

    /// All of them in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|i| self.get(i))
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn memory(&self) -> u64 {
        (self.bytes.capacity() + 8 * self.ends.capacity()) as u64
    }

    /// Row numbers in an order that depends on the identifiers only, not on the order of the rows; equal identifiers
    /// stand together, in the order of their rows. Rows are at most 2^32.
    pub(crate) fn canonical_order(&self) -> Vec<u32> {
        let prefix = |i: usize| {
            let hash = blake3::hash(self.get(i));
            u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("eight bytes"))
        };
        let mut keyed: Vec<(u64, u32)> = (0..self.len()).map(|i| (prefix(i), i as u32)).collect();
        keyed.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0)
                .then_with(|| self.get(a.1 as usize).cmp(self.get(b.1 as usize)))
                .then_with(|| a.1.cmp(&b.1))
        });
        keyed.into_iter().map(|(_, row)| row).collect()
    }

    /// Row numbers in the order of the identifiers' bytes.
    pub(crate) fn sorted(&self) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..self.len() as u32).collect();
        rows.sort_unstable_by(|a, b| self.get(*a as usize).cmp(self.get(*b as usize)));
        rows
    }

    /// Keeps the rows for which `keep` holds.
    pub(crate) fn retain(&mut self, keep: &[bool]) {
        let (mut start, mut to, mut kept) = (0usize, 0usize, 0usize);
        for (i, &keep) in keep.iter().enumerate() {
            let end = self.ends[i] as usize;
            if keep {
                self.bytes.copy_within(start..end, to);
                to += end - start;
                self.ends[kept] = to as u64;
                kept += 1;
            }
            start = end;
        }
        self.bytes.truncate(to);
        self.ends.truncate(kept);
    }
}

/// Why a cell is no identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadIdentifier {
    Empty,
    TooLong(usize),
    NotAnEmail,
}

impl std::fmt::Display for BadIdentifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => {
                write!(f, "empty identifier (after normalising): fill the cell or remove the line")
            }
            Self::TooLong(bytes) => {
                write!(f, "identifier of {bytes} bytes; the limit is {}", limits::IDENTIFIER_BYTES)
            }
            Self::NotAnEmail => {
                write!(f, "not an e-mail address: it needs exactly one @ with text on both sides")
            }
        }
    }
}

/// Normalises a cell as the study says, beginning and ending in Unicode NFC.
pub(crate) fn normalise(rule: &Identifier, cell: &str) -> Result<String, BadIdentifier> {
    if cell.len() > limits::IDENTIFIER_BYTES {
        return Err(BadIdentifier::TooLong(cell.len()));
    }
    let mut text = nfc(cell.into());
    for step in &rule.normalise {
        text = match step {
            Normaliser::Trim => text.trim().into(),
            Normaliser::Lowercase => text.to_lowercase(),
            Normaliser::Digits => text.chars().filter(char::is_ascii_digit).collect(),
            Normaliser::Email => email(&text)?,
        };
    }
    let text = nfc(text);
    match text.len() {
        0 => Err(BadIdentifier::Empty),
        bytes if bytes > limits::IDENTIFIER_BYTES => Err(BadIdentifier::TooLong(bytes)),
        _ => Ok(text),
    }
}

fn nfc(text: String) -> String {
    if text.is_ascii() { text } else { text.nfc().collect() }
}

fn email(text: &str) -> Result<String, BadIdentifier> {
    let text = text.trim().to_lowercase();
    match text.split_once('@') {
        None if text.is_empty() => Err(BadIdentifier::Empty),
        Some((name, host)) if !name.is_empty() && !host.is_empty() && !host.contains('@') => Ok(text),
        _ => Err(BadIdentifier::NotAnEmail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(steps: &[Normaliser], cell: &str) -> Result<String, BadIdentifier> {
        normalise(&Identifier { name: "id".into(), normalise: steps.to_vec() }, cell)
    }

    #[test]
    fn identifiers_are_normalised() {
        use Normaliser::{Digits, Email, Lowercase, Trim};
        assert_eq!(with(&[Trim, Lowercase], "  Zz-01 \t").as_deref(), Ok("zz-01"));
        assert_eq!(with(&[], " A ").as_deref(), Ok(" A "));
        assert_eq!(with(&[Lowercase], "e\u{301}A").as_deref(), Ok("\u{e9}a"), "NFC without being asked");
        assert_eq!(with(&[Digits], "+44 (20) 7946-0000").as_deref(), Ok("442079460000"));
        assert_eq!(with(&[Email], " Ann@Example.ORG ").as_deref(), Ok("ann@example.org"));
        for bad in ["ann", "@x", "ann@", "a@b@c"] {
            assert_eq!(with(&[Email], bad), Err(BadIdentifier::NotAnEmail), "{bad}");
        }
        for (steps, cell) in [(&[Trim][..], "  "), (&[Digits], "none"), (&[], ""), (&[Email], " ")] {
            assert_eq!(with(steps, cell), Err(BadIdentifier::Empty));
        }
        assert!(with(&[], &"x".repeat(limits::IDENTIFIER_BYTES)).is_ok());
        let long = "x".repeat(limits::IDENTIFIER_BYTES + 1);
        assert_eq!(with(&[], &long), Err(BadIdentifier::TooLong(long.len())));
    }

    #[test]
    fn the_canonical_order_ignores_the_order_of_rows() {
        let words = ["b", "a", "ccc", "", "a", "zebra"];
        let order = |words: &[&str]| -> Vec<String> {
            let mut all = Identifiers::default();
            words.iter().for_each(|word| all.push(word.as_bytes()));
            all.canonical_order().iter().map(|&i| words[i as usize].to_owned()).collect()
        };
        let mut turned = words;
        turned.reverse();
        assert_eq!(order(&words), order(&turned));
    }

    #[test]
    fn retained_rows_keep_their_bytes() {
        let mut all = Identifiers::default();
        ["one", "", "three", "four"].iter().for_each(|word| all.push(word.as_bytes()));
        all.retain(&[false, true, false, true]);
        assert_eq!(all.iter().collect::<Vec<_>>(), [&b""[..], b"four"]);
    }
}
