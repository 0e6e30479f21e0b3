//! Names of objects.

/// Bytes of the longest name, its store's prefix included: every provider takes 1,024.
pub(crate) const NAME_BYTES: usize = 512;

pub(crate) const RULE: &str = "names are words of letters, digits, `.`, `-` and `_` between single slashes, \
                               of at most 512 bytes, none of them `.` or `..`";

/// Whether every store and every file system takes this name, and takes it as it is.
pub(crate) fn is_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    let word = |word: &str| !word.is_empty() && word.bytes().all(plain) && word != "." && word != "..";
    name.len() <= NAME_BYTES && name.split('/').all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_between_slashes() {
        for name in ["a", "log/000000000001", "run/0f/compute/17/3.2", &"a".repeat(512)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "/a", "a/", "a//b", "a/../b", ".", "a#1", "a b", "\u{e9}", "a%", &"a".repeat(513)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
