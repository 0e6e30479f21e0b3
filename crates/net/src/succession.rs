//! A new key that takes the place of an old one: what the old key signs, so that peers go on counting where
//! they were.
//!
//! 136 bytes: the old Ed25519 key, the new one, the time, and the old key's signature over all that and what
//! it is for. The new key is proven by whoever shows the statement, on the connection. The identity file of
//! the new key carries the statements of its whole line, oldest first, each in a line of its own after the
//! PEM sections, which other programs pass over.

use crate::identity::{Identity, KeyFingerprint, PUBLIC_KEY_BYTES, SIGNATURE_BYTES, has_signed};
use base::Error;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of a statement.
pub const SUCCESSION_BYTES: usize = 2 * PUBLIC_KEY_BYTES + 8 + SIGNATURE_BYTES;
/// Most keys that may have gone before one.
pub const SUCCESSIONS: usize = 32;
const SIGNED: &[u8] = b"tacit succession 1";
/// What a line of an identity file begins with that holds a statement.
const LINE: &str = "tacit-succession: ";

/// A statement that one key takes the place of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Succession {
    old: [u8; PUBLIC_KEY_BYTES],
    new: [u8; PUBLIC_KEY_BYTES],
    /// When it was signed, by the signer's clock: seconds since 1970.
    pub at: u64,
    signature: [u8; SIGNATURE_BYTES],
}

impl Succession {
    /// Signs with the old key that `new` takes its place, from now on.
    ///
    /// # Errors
    /// When either holds no Ed25519 key, or both are the same.
    pub fn sign(old: &Identity, new: &Identity) -> Result<Self, Error> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let (from, to) = (old.public_key()?, new.public_key()?);
        if from == to {
            return Err(Error::input("a key cannot take its own place"));
        }
        let mut made = Self { old: from, new: to, at: since, signature: [0; SIGNATURE_BYTES] };
        made.signature = old.sign(&made.signed())?;
        Ok(made)
    }

    /// The key whose place is taken.
    #[must_use]
    pub fn old(&self) -> KeyFingerprint {
        KeyFingerprint::of_ed25519(&self.old)
    }

    /// The key that takes it.
    #[must_use]
    pub fn new_key(&self) -> KeyFingerprint {
        KeyFingerprint::of_ed25519(&self.new)
    }

    /// Whether the old key signed it.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.old != self.new && has_signed(&self.old, &self.signed(), &self.signature)
    }

    fn signed(&self) -> Vec<u8> {
        [SIGNED, &self.old, &self.new, &self.at.to_le_bytes()].concat()
    }

    /// As it is sent and kept.
    #[must_use]
    pub fn bytes(&self) -> [u8; SUCCESSION_BYTES] {
        let all = [&self.old[..], &self.new, &self.at.to_le_bytes(), &self.signature].concat();
        all.try_into().expect("the parts add up")
    }

    /// Reads a statement; whether the old key signed it is for [`Succession::holds`].
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; SUCCESSION_BYTES] = bytes.try_into().ok()?;
        let (old, rest) = bytes.split_first_chunk()?;
        let (new, rest) = rest.split_first_chunk()?;
        let (at, signature) = rest.split_first_chunk()?;
        let at = u64::from_le_bytes(*at);
        i64::try_from(at).ok()?;
        Some(Self { old: *old, new: *new, at, signature: signature.try_into().ok()? })
    }

    /// Whether statements, oldest first, are signed and lead in one line to a key.
    #[must_use]
    pub fn lead_to(all: &[Self], key: KeyFingerprint) -> bool {
        let joined = all.windows(2).all(|two| two[0].new == two[1].old);
        // A key that comes twice would succeed itself.
        let once = all.iter().enumerate().all(|(i, one)| all[..i].iter().all(|before| before.old != one.new));
        all.len() <= SUCCESSIONS
            && joined
            && once
            && all.iter().all(Self::holds)
            && all.last().is_none_or(|last| last.new_key() == key)
    }

    /// The line of an identity file that holds it.
    pub(crate) fn line(&self) -> String {
        format!("{LINE}{}\n", base::hex(&self.bytes()))
    }

    /// The statements in the text of an identity file; none where a line of it cannot be read.
    pub(crate) fn lines_of(text: &str) -> Option<Vec<Self>> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(LINE));
        let read = |digits: &str| Self::read(&base::unhex::<SUCCESSION_BYTES>(digits.trim_end())?);
        lines.map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_of_the_old_key_for_one_new_one() {
        let [old, new, other] = [0; 3].map(|_| Identity::generate().unwrap());
        let made = Succession::sign(&old, &new).unwrap();
        assert!(made.holds());
        assert_eq!((made.old(), made.new_key()), (old.fingerprint(), new.fingerprint()));
        for byte in 0..SUCCESSION_BYTES {
            let mut bent = made.bytes();
            bent[byte] ^= 1;
            assert!(Succession::read(&bent).is_none_or(|bent| !bent.holds()), "byte {byte}");
        }
        assert!(Succession::sign(&old, &old).is_err());
        let line = [made.clone(), Succession::sign(&new, &other).unwrap()];
        assert!(Succession::lead_to(&line, other.fingerprint()));
        assert!(!Succession::lead_to(&line, new.fingerprint()));
        assert!(!Succession::lead_to(&[line[1].clone(), line[0].clone()], new.fingerprint()));
        // Round and round: a key that would succeed itself.
        let back = [line[0].clone(), Succession::sign(&new, &old).unwrap()];
        assert!(!Succession::lead_to(&back, old.fingerprint()));
        assert!(Succession::lead_to(&[], old.fingerprint()));
    }

    #[test]
    fn an_identity_carries_its_line_and_names_one_successor() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let first = Identity::generate().unwrap();
        first.save(&path("a")).unwrap();
        let second = Identity::load(&path("a")).unwrap().succeed(&path("a"), &path("b")).unwrap();
        let third = Identity::load(&path("b")).unwrap().succeed(&path("b"), &path("c")).unwrap();
        assert_ne!(second.fingerprint(), third.fingerprint());
        let loaded = Identity::load(&path("c")).unwrap();
        assert_eq!(loaded.fingerprint(), third.fingerprint());
        let line = loaded.line();
        assert_eq!(
            line.iter().map(Succession::old).collect::<Vec<_>>(),
            [first.fingerprint(), second.fingerprint()]
        );
        assert!(Succession::lead_to(line, third.fingerprint()));
        // The old file says who came after it, and names nobody else.
        assert_eq!(Identity::load(&path("a")).unwrap().successor(), Some(second.fingerprint()));
        let error =
            Identity::load(&path("a")).unwrap().succeed(&path("a"), &path("d")).unwrap_err().to_string();
        assert!(error.contains(&second.fingerprint().to_string()) && !path("d").exists(), "{error}");
        assert_eq!(loaded.successor(), None);
        // A line that was bent is not passed over in silence.
        let text = std::fs::read_to_string(path("c")).unwrap();
        let at = text.rfind(|c: char| c.is_ascii_hexdigit()).unwrap();
        std::fs::write(path("c"), &text[..at]).unwrap();
        assert!(Identity::load(&path("c")).unwrap_err().to_string().contains("earlier keys"));
    }
}
