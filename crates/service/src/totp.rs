//! Codes of a second step: RFC 6238 with HMAC-SHA-1, six digits and steps of 30 seconds, as every program for
//! them has by default. The HMAC is the TLS library's.

use aws_lc_rs::hmac;
use subtle::ConstantTimeEq;

/// Bytes of a secret, as RFC 4226 recommends.
pub const SECRET_BYTES: usize = 20;
/// Seconds of a step.
pub const STEP_SECONDS: u64 = 30;
/// Steps before and after the own clock's that are taken.
const APART: u64 = 1;

/// The six digits of a step.
#[must_use]
pub fn code(secret: &[u8], step: u64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let tag = tag.as_ref();
    let from = usize::from(tag[tag.len() - 1] & 15);
    let word = [tag[from] & 0x7f, tag[from + 1], tag[from + 2], tag[from + 3]];
    format!("{:06}", u32::from_be_bytes(word) % 1_000_000)
}

/// The step whose code somebody gave, if it is one of about now and later than the last one that was taken:
/// who looks over a shoulder has nothing of a code that was used.
#[must_use]
pub fn step_of(secret: &[u8], given: &str, now: u64, last: u64) -> Option<u64> {
    let given: String = given.chars().filter(|c| !c.is_whitespace()).collect();
    let step = now / STEP_SECONDS;
    let near = step.saturating_sub(APART)..=step + APART;
    let mut found = None;
    for step in near {
        let same: bool = code(secret, step).as_bytes().ct_eq(given.as_bytes()).into();
        found = found.or((same && step > last).then_some(step));
    }
    found
}

/// A secret as people type it.
#[must_use]
pub fn base32(secret: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits = 8 * secret.len();
    let bit = |at: usize| secret.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let letter = |from: usize| (from..from + 5).fold(0, |all, at| 2 * all + usize::from(bit(at)));
    (0..bits).step_by(5).map(|from| char::from(LETTERS[letter(from)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6238, appendix B, SHA-1: of eight digits the last six.
    const VECTORS: [(u64, &str); 6] = [
        (59, "94287082"),
        (1_111_111_109, "07081804"),
        (1_111_111_111, "14050471"),
        (1_234_567_890, "89005924"),
        (2_000_000_000, "69279037"),
        (20_000_000_000, "65353130"),
    ];
    const SECRET: &[u8] = b"12345678901234567890";

    #[test]
    fn codes_are_those_of_the_rfc() {
        for (at, eight) in VECTORS {
            assert_eq!(code(SECRET, at / STEP_SECONDS), eight[2..], "{at}");
        }
        assert_eq!(base32(SECRET), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        assert_eq!(base32(b"foob"), "MZXW6YQ", "RFC 4648, without padding");
    }

    #[test]
    fn a_code_counts_once_and_near_its_time() {
        let at = 1_111_111_111;
        let step = at / STEP_SECONDS;
        assert_eq!(step_of(SECRET, "050 471", at, 0), Some(step));
        assert_eq!(step_of(SECRET, "050471", at + 30, 0), Some(step));
        assert_eq!(step_of(SECRET, "050471", at + 60, 0), None);
        assert_eq!(step_of(SECRET, "050471", at, step), None, "it was used");
        for wrong in ["", "050472", "05047", "0504711"] {
            assert_eq!(step_of(SECRET, wrong, at, 0), None, "{wrong}");
        }
    }
}
