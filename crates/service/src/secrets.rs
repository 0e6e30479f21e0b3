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
    /// What a program has of a person.
    Api,
}

impl TokenUse {
    fn hash(self, bytes: &[u8]) -> [u8; 32] {
        let context = match self {
            Self::Session => "tacit 2026-12 service session v1",
            Self::Link => "tacit 2026-12 service link v1",
            Self::Code => "tacit 2026-12 service link code v1",
            Self::Second => "tacit 2026-12 service second step v1",
            Self::Recovery => "tacit 2026-12 service recovery code v1",
            Self::Api => "tacit 2026-12 service api token v1",
        };
        blake3::derive_key(context, bytes)
    }
}

/// How a token of a program begins.
pub const API_MARK: &str = "tacit_";
/// Letters of its 256 bits, and of its checksum.
const API_LETTERS: usize = 43;
const API_SUM: usize = 6;
/// The letters of base64 that stand in addresses as they are.
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The first letters of bytes in base64.
fn letters(bytes: &[u8], count: usize) -> String {
    let bit = |at: usize| bytes.get(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1);
    let letter = |at: usize| (0..6).fold(0, |value, one| value << 1 | usize::from(bit(6 * at + one)));
    (0..count).map(|at| char::from(BASE64[letter(at)])).collect()
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

    /// As programs have it: `tacit_`, 43 letters, and 6 of a checksum, by which who looks for secrets in the
    /// wrong place knows one.
    #[must_use]
    pub fn for_programs(&self) -> String {
        let body = format!("{API_MARK}{}", letters(self.0.expose(), API_LETTERS));
        let sum = letters(blake3::hash(body.as_bytes()).as_bytes(), API_SUM);
        body + &sum
    }

    /// Of the text that [`Self::for_programs`] gave.
    #[must_use]
    pub fn of_program(text: &str) -> Option<Self> {
        let body = text.strip_prefix(API_MARK).filter(|rest| rest.len() == API_LETTERS + API_SUM)?;
        let mut bytes = [0; BYTES];
        let (mut held, mut bits, mut at) = (0_u32, 0, 0);
        for letter in body.bytes().take(API_LETTERS) {
            let value = BASE64.iter().position(|known| *known == letter)?;
            held = (held << 6 | u32::try_from(value).ok()?) & 0xffff;
            bits += 6;
            if bits >= 8 && at < BYTES {
                bits -= 8;
                bytes[at] = (held >> bits & 0xff) as u8;
                at += 1;
            }
        }
        let token = Self(Secret::new(bytes));
        // Also what the last letter has beyond the bytes, and the checksum, are as they were made.
        bool::from(token.for_programs().as_bytes().ct_eq(text.as_bytes())).then_some(token)
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
    fn what_programs_have_is_read_back_and_known_by_its_checksum() {
        let token = SecretToken::generate().expect("random");
        let text = token.for_programs();
        assert!(text.starts_with("tacit_") && text.len() == 6 + 43 + 6, "{text}");
        let again = SecretToken::of_program(&text).expect("parses");
        assert_eq!(again.hash(TokenUse::Api), token.hash(TokenUse::Api));
        assert_ne!(token.hash(TokenUse::Api), token.hash(TokenUse::Session));
        for at in 0..text.len() {
            let other = if text.as_bytes()[at] == b'A' { "B" } else { "A" };
            let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
            assert!(SecretToken::of_program(&changed).is_none(), "{at}");
        }
        assert!(SecretToken::of_program(&text[..54]).is_none() && SecretToken::of_program("").is_none());
        // RFC 4648, section 10.
        assert_eq!(letters(b"foobar", 8), "Zm9vYmFy");
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
