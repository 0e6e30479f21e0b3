//! Random words that stand for a person: in a cookie, in a link. The store has hashes of them, and no page,
//! log or error the words themselves.

use base::{Error, Secret};
use subtle::ConstantTimeEq;

/// Bytes of one.
const BYTES: usize = 32;

/// 256 random bits.
pub struct SecretToken(Secret<[u8; BYTES]>);

/// What a token is for: hashes of one kind are never those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenUse {
    /// A session's cookie.
    Session,
    /// A link to set a password with.
    Link,
    /// A code that a second person has for a link.
    Code,
    /// The secret of a second step.
    Second,
    /// A code for when a telephone is lost.
    Recovery,
}

impl TokenUse {
    fn hash(self, bytes: &[u8]) -> [u8; 32] {
        let context = match self {
            Self::Session => "tacit 2026-12 service session v1",
            Self::Link => "tacit 2026-12 service link v1",
            Self::Code => "tacit 2026-12 service link code v1",
            Self::Second => "tacit 2026-12 service second step v1",
            Self::Recovery => "tacit 2026-12 service recovery code v1",
        };
        blake3::derive_key(context, bytes)
    }
}

/// Letters of a [`SpokenCode`]: none that sounds or looks like another.
const LETTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// How many letters, of five bits each.
const CODE_LETTERS: usize = 12;

/// 60 random bits that one person tells another by telephone: enough where they are tried at the page alone.
pub struct SpokenCode(Secret<[u8; CODE_LETTERS]>);

impl SpokenCode {
    /// A fresh one from the system's randomness.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn generate() -> Result<Self, Error> {
        let random = SecretToken::generate()?;
        let mut letters = [0; CODE_LETTERS];
        for (letter, byte) in letters.iter_mut().zip(random.0.expose()) {
            *letter = LETTERS[usize::from(byte % 32)];
        }
        Ok(Self(Secret::new(letters)))
    }

    /// As a person writes it: in groups or not, in capitals or not.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let plain = text.bytes().filter(|byte| !matches!(byte, b'-' | b' '));
        let plain: Vec<u8> = plain.map(|byte| byte.to_ascii_uppercase()).collect();
        let letters = <[u8; CODE_LETTERS]>::try_from(plain).ok()?;
        letters.iter().all(|letter| LETTERS.contains(letter)).then(|| Self(Secret::new(letters)))
    }

    /// Three groups of four, for the person alone.
    #[must_use]
    pub fn text(&self) -> String {
        let groups = self.0.expose().chunks(4).map(|group| String::from_utf8_lossy(group).into_owned());
        groups.collect::<Vec<_>>().join("-")
    }

    /// What the store has of it.
    #[must_use]
    pub fn hash(&self, of: TokenUse) -> [u8; 32] {
        of.hash(self.0.expose())
    }
}

impl SecretToken {
    /// A fresh one from the system's randomness.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn generate() -> Result<Self, Error> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).map_err(|e| {
            Error::io("the system gives no random numbers", &std::io::Error::other(e.to_string()))
        })?;
        Ok(Self(Secret::new(bytes)))
    }

    /// Of the text that [`Self::text`] gave.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        base::unhex(text).map(|bytes| Self(Secret::new(bytes)))
    }

    /// 64 hex digits, for the person alone.
    #[must_use]
    pub fn text(&self) -> String {
        base::hex(self.0.expose())
    }

    /// What the store has of it.
    #[must_use]
    pub fn hash(&self, of: TokenUse) -> [u8; 32] {
        of.hash(self.0.expose())
    }

    /// What a form of this session carries: for this action on this subject and no other.
    #[must_use]
    pub fn form_word(&self, action: &str, subject: &str) -> String {
        let key = blake3::derive_key("tacit 2026-12 service form v1", self.0.expose());
        let mut hasher = blake3::Hasher::new_keyed(&key);
        hasher.update(&(action.len() as u64).to_le_bytes()).update(action.as_bytes());
        hasher.update(subject.as_bytes());
        hasher.finalize().to_hex().to_string()
    }

    /// Whether a form carries that word.
    #[must_use]
    pub fn is_form_word(&self, action: &str, subject: &str, word: &str) -> bool {
        self.form_word(action, subject).as_bytes().ct_eq(word.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_for_one_session_one_action_and_one_subject() {
        let (one, other) =
            (SecretToken::generate().expect("random"), SecretToken::generate().expect("random"));
        let word = one.form_word("refuse", "x");
        assert!(one.is_form_word("refuse", "x", &word));
        for (token, action, subject) in
            [(&other, "refuse", "x"), (&one, "consent", "x"), (&one, "refuse", "y"), (&one, "refus", "ex")]
        {
            assert!(!token.is_form_word(action, subject, &word));
        }
        assert!(!one.is_form_word("refuse", "x", "") && !one.is_form_word("refuse", "x", &word[..63]));
    }

    #[test]
    fn texts_are_read_back_and_kinds_do_not_mix() {
        let token = SecretToken::generate().expect("random");
        let again = SecretToken::parse(&token.text()).expect("parses");
        assert_eq!(again.hash(TokenUse::Link), token.hash(TokenUse::Link));
        assert_ne!(token.hash(TokenUse::Link), token.hash(TokenUse::Session));
        assert!(SecretToken::parse("00").is_none() && SecretToken::parse("").is_none());
        let code = SpokenCode::generate().expect("random");
        let said = code.text().to_lowercase().replace('-', " ");
        let again = SpokenCode::parse(&said).expect("parses");
        assert_eq!(again.hash(TokenUse::Code), code.hash(TokenUse::Code));
        assert!(SpokenCode::parse(&said[1..]).is_none() && SpokenCode::parse("ILOU-0000-0000").is_none());
    }
}
