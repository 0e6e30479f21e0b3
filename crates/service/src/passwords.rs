//! Passwords: argon2id, at most two at a time, and none that is guessed soon.

use crate::store::Store;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};
use base::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;
use zxcvbn::{Score, zxcvbn};

/// Bytes of a password, after NFC.
const BYTES: std::ops::RangeInclusive<usize> = 12..=256;
/// Memory of one hash in KiB, passes, lanes: the least that OWASP names for argon2id.
const COST: (u32, u32, u32) = (19 * 1024, 2, 1);
/// Hashes at a time; each takes 19 MiB and a core.
const AT_ONCE: usize = 2;

/// Hashes passwords, at most [`AT_ONCE`] at a time.
pub struct PasswordDesk {
    busy: AtomicUsize,
    /// The hash that an unknown name's password is compared with, so that it costs the same.
    nobody: String,
}

/// What a password turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasswordVerdict {
    /// Another one.
    Wrong,
    /// The right one.
    Right(HeldPassword),
}

/// A password that was right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldPassword {
    /// The hash that it was compared with.
    pub hash: String,
    /// The text to keep in place of one under older costs.
    anew: Option<String>,
}

impl HeldPassword {
    /// The hash that is kept of it from now on.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn kept(self, store: &Store, account: &str) -> Result<String, Error> {
        let Some(anew) = self.anew else { return Ok(self.hash) };
        store.rehash(account, &self.hash, &anew)?;
        Ok(anew)
    }
}

/// All hands are full; ask again in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeskBusy;

impl PasswordDesk {
    /// A desk.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn open() -> Result<Self, Error> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|e| Error::misuse(format!("no random numbers: {e}")))?;
        Ok(Self { busy: AtomicUsize::new(0), nobody: hash(&random)? })
    }

    fn take(&self) -> Result<PasswordHand<'_>, DeskBusy> {
        let one_more = |busy: usize| (busy < AT_ONCE).then_some(busy + 1);
        let taken = self.busy.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
        taken.map(|_| PasswordHand(&self.busy)).map_err(|_| DeskBusy)
    }

    /// Compares a password with a hash; with none, for nobody, it costs the same and is wrong.
    ///
    /// # Errors
    /// When all hands are full.
    pub fn compare(&self, password: &str, kept: Option<&str>) -> Result<PasswordVerdict, DeskBusy> {
        let _hand = self.take()?;
        let password = composed(password);
        let hash = kept.unwrap_or(&self.nobody);
        let right = PasswordHash::new(hash)
            .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok());
        match kept {
            Some(hash) if right => {
                let (memory, passes, lanes) = COST;
                let as_now = hash.contains(&format!("m={memory},t={passes},p={lanes}"));
                let anew = if as_now { None } else { self::hash(password.as_bytes()).ok() };
                Ok(PasswordVerdict::Right(HeldPassword { hash: hash.to_owned(), anew }))
            }
            _ => Ok(PasswordVerdict::Wrong),
        }
    }

    /// The text to keep of a new password.
    ///
    /// # Errors
    /// When all hands are full.
    pub fn hash(&self, password: &str) -> Result<Result<String, Error>, DeskBusy> {
        let _hand = self.take()?;
        Ok(hash(composed(password).as_bytes()))
    }
}

/// One of the hands, until it is dropped.
struct PasswordHand<'a>(&'a AtomicUsize);

impl Drop for PasswordHand<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn composed(password: &str) -> Zeroizing<String> {
    Zeroizing::new(password.nfc().collect())
}

fn hash(password: &[u8]) -> Result<String, Error> {
    let (memory, passes, lanes) = COST;
    let params = Params::new(memory, passes, lanes, None).expect("the costs are in range");
    let hashed = Argon2::new(Algorithm::Argon2id, Version::V0x13, params).hash_password(password);
    hashed.map(|text| text.to_string()).map_err(|e| Error::misuse(format!("no password can be hashed: {e}")))
}

/// Why a password is not taken, in words; `near` are words that whoever guesses tries first.
#[must_use]
pub fn refused(password: &str, near: &[&str]) -> Option<String> {
    let password = composed(password);
    if !BYTES.contains(&password.len()) {
        return Some(format!(
            "The password has {} bytes. Take one of {} to {}: four or five words that do not belong together \
             are easy to keep.",
            password.len(),
            BYTES.start(),
            BYTES.end()
        ));
    }
    if near.iter().any(|word| password.eq_ignore_ascii_case(word)) {
        return Some("The password is a name that anybody knows here. Take another one.".to_owned());
    }
    let guessed = zxcvbn(&password, near);
    (guessed.score() < Score::Three).then(|| {
        "This password is among those that are guessed first, as a common one or a pattern. Take four or \
         five words that do not belong together."
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_passwords_patterns_and_names_are_refused() {
        for bad in [
            "short",
            "passwordpassword",
            "123456789012",
            "qwertyuiop[]",
            "aaaaaaaaaaaaaaaa",
            "steward-one1",
            "hospitals2026",
            &"x".repeat(257),
        ] {
            assert!(refused(bad, &["steward-one1", "hospitals"]).is_some(), "{bad} is taken");
        }
        for good in ["correct lantern orbit mustard", "Zwölf Boxkämpfer jagen Viktor", "tQ7#vv0pLk2!xM"] {
            assert_eq!(refused(good, &["steward-1", "hospitals"]), None);
        }
    }

    #[test]
    fn a_password_is_right_in_either_form_of_unicode() {
        let desk = PasswordDesk::open().expect("a desk");
        let kept = desk.hash("zwo\u{308}lf Boxkämpfer").expect("free").expect("hashes");
        assert!(kept.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{kept}");
        let right = desk.compare("zw\u{f6}lf Boxkämpfer", Some(&kept));
        assert!(matches!(right, Ok(PasswordVerdict::Right(HeldPassword { anew: None, .. }))));
        assert_eq!(desk.compare("zwolf Boxkämpfer", Some(&kept)), Ok(PasswordVerdict::Wrong));
        assert_eq!(desk.compare("anything", None), Ok(PasswordVerdict::Wrong));
    }

    #[test]
    fn a_hash_under_older_costs_is_made_anew() {
        let desk = PasswordDesk::open().expect("a desk");
        let older =
            Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(8192, 1, 1, None).expect("ok"));
        let kept = older.hash_password(b"old but right").expect("hashes").to_string();
        let verdict = desk.compare("old but right", Some(&kept));
        let Ok(PasswordVerdict::Right(HeldPassword { anew: Some(anew), .. })) = verdict else {
            panic!("{verdict:?}")
        };
        let again = desk.compare("old but right", Some(&anew));
        assert!(matches!(again, Ok(PasswordVerdict::Right(HeldPassword { anew: None, .. }))));
    }

    /// Else time would tell which names there are.
    #[test]
    fn unknown_names_cost_the_same() {
        let desk = PasswordDesk::open().expect("opens");
        let kept = desk.hash("wandering copper teapot").expect("free").expect("hashed");
        let costs = |hash: &str| {
            let parts: Vec<_> = hash.split('$').collect();
            // Kind, version and costs; then salt and hash, of the same lengths.
            (parts[1..4].join("$"), parts[4].len(), parts[5].len())
        };
        assert_eq!(costs(&desk.nobody), costs(&kept));
        assert_eq!(desk.compare("wandering copper teapot", None), Ok(PasswordVerdict::Wrong));
        // It is computed: where all hands are full it is put off like that of a name that there is.
        let _held = (desk.take().expect("a hand"), desk.take().expect("another"));
        assert_eq!(desk.compare("wandering copper teapot", None), Err(DeskBusy));
        assert_eq!(desk.compare("wandering copper teapot", Some(&kept)), Err(DeskBusy));
    }

    #[test]
    fn a_third_one_is_sent_away() {
        let desk = PasswordDesk::open().expect("a desk");
        let hands = (desk.take(), desk.take());
        assert!(hands.0.is_ok() && hands.1.is_ok());
        assert_eq!(desk.compare("x", None), Err(DeskBusy));
        drop(hands);
        assert_eq!(desk.compare("x", None), Ok(PasswordVerdict::Wrong));
    }
}
