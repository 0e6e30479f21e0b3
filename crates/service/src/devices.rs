//! Browsers in which somebody signed in before. Whoever knows a name can make it wait by wrong passwords, for
//! as long as they like; a browser with the mark of an earlier sign-in does not wait for that, since its own
//! wrong passwords are counted apart (decision 129).
//!
//! A mark is a random number and what authenticates it: a keyed hash, whose key is made of what the store
//! keeps of the account's password. So the store has no list of browsers, and a new password ends all marks.
//! A mark says nothing about a password, for that hash has a random salt, and lets nobody in.

use base::{Error, hex, unhex};
use subtle::ConstantTimeEq;

/// What the key of a mark is for.
const MARK: &str = "tacit 2026-12 service device mark v1";
/// Hex digits of the number, before those of its mark.
const NUMBER_DIGITS: usize = 32;

/// A browser in which somebody has signed in to an account.
pub struct KnownDevice {
    number: [u8; 16],
    mark: [u8; 32],
}

impl KnownDevice {
    /// A browser that was not known before; `kept` is the hash of the account's password.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn new(account: &str, kept: &str) -> Result<Self, Error> {
        let mut number = [0; 16];
        getrandom::fill(&mut number).map_err(|e| Error::misuse(format!("no random numbers: {e}")))?;
        Ok(Self { number, mark: mark(&number, account, kept) })
    }

    /// What a browser sent, if it is the mark of an earlier sign-in to this account with this password.
    #[must_use]
    pub fn of(sent: &str, account: &str, kept: &str) -> Option<Self> {
        let (number, rest) = sent.split_at_checked(NUMBER_DIGITS)?;
        let (number, mark): ([u8; 16], [u8; 32]) = (unhex(number)?, unhex(rest)?);
        let right = self::mark(&number, account, kept);
        bool::from(right.ct_eq(&mark)).then_some(Self { number, mark })
    }

    /// What the browser keeps.
    #[must_use]
    pub fn text(&self) -> String {
        hex(&self.number) + &hex(&self.mark)
    }

    /// What wrong passwords from it are counted under.
    #[must_use]
    pub fn tried(&self, account: &str) -> String {
        format!("{account} on the device {}", hex(&self.number))
    }
}

fn mark(number: &[u8; 16], account: &str, kept: &str) -> [u8; 32] {
    let key = blake3::derive_key(MARK, kept.as_bytes());
    *blake3::keyed_hash(&key, &[number, account.as_bytes()].concat()).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_one_account_and_one_password() {
        let device = KnownDevice::new("stella", "$argon2id$one").expect("random numbers");
        let sent = device.text();
        let tried = |sent: &str, account: &str, kept: &str| {
            KnownDevice::of(sent, account, kept).map(|known| known.tried(account))
        };
        assert_eq!(tried(&sent, "stella", "$argon2id$one"), Some(device.tried("stella")));
        assert_eq!(tried(&sent, "sam", "$argon2id$one"), None);
        assert_eq!(tried(&sent, "stella", "$argon2id$two"), None);
        let other = KnownDevice::new("stella", "$argon2id$one").expect("random numbers");
        let mixed = format!("{}{}", &other.text()[..NUMBER_DIGITS], &sent[NUMBER_DIGITS..]);
        for bent in [&mixed, &sent[1..], &format!("{sent}0"), "", "zwölf"] {
            assert_eq!(tried(bent, "stella", "$argon2id$one"), None, "{bent}");
        }
        assert_ne!(device.tried("stella"), other.tried("stella"));
    }
}
