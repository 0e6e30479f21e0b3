//! The state key: what seals all state of a party, in a file that only the party may read.

use base::{Error, Secret, Seed, unhex};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use zeroize::{Zeroize, Zeroizing};

/// What the name of a state key adds to that of the ledger beside it.
const SUFFIX: &str = ".state-key";
/// The first word of the file.
const FORMAT: &str = "tacit-state-key/1";
/// Bytes of the largest key file that is read.
const FILE_BYTES: u64 = 4 << 10;

/// 32 random bytes of one party. They never leave its machines, do not print, and are wiped on drop.
#[derive(Debug)]
pub struct StateKey(Secret<[u8; 32]>);

impl StateKey {
    /// A key for as long as it lives: what is sealed under it cannot be read afterwards.
    ///
    /// # Panics
    /// When the operating system has no randomness to give.
    #[must_use]
    pub fn fresh() -> Self {
        Self(Secret::new(*Seed::from_system().expose()))
    }

    /// A key that another process of this party has drawn for some objects alone, and told.
    #[must_use]
    pub fn told(bytes: [u8; 32]) -> Self {
        Self(Secret::new(bytes))
    }

    /// The key in the file beside a ledger, `LEDGER.state-key`; made, with mode 0600, where there is none.
    ///
    /// # Errors
    /// When the file cannot be made or read, others than its owner may read it, or it holds no key.
    pub fn beside(ledger: &Path) -> Result<Self, Error> {
        let mut path = ledger.as_os_str().to_owned();
        path.push(SUFFIX);
        Self::at(Path::new(&path))
    }

    /// The key in a file; made, with mode 0600, where there is none.
    ///
    /// # Errors
    /// As [`Self::beside`].
    pub fn at(path: &Path) -> Result<Self, Error> {
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(file) => Self::make(path, file),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Self::load(path),
            Err(e) => Err(Error::io(format_args!("cannot create the state key {}", path.display()), &e)),
        }
    }

    fn make(path: &Path, mut file: File) -> Result<Self, Error> {
        let key = Self::fresh();
        let mut text = Zeroizing::new(String::with_capacity(FORMAT.len() + 2 * 32 + 2));
        text.push_str(FORMAT);
        text.push(' ');
        for byte in key.expose() {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
            }
        }
        text.push('\n');
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        // The name has to last as long as what is sealed under the key.
        written.and_then(|()| File::open(folder)?.sync_all()).map_err(|e| {
            // Half a key is worse than none: it would be taken for a damaged one.
            let _ = std::fs::remove_file(path);
            Error::io(format_args!("cannot write the state key {}", path.display()), &e)
        })?;
        Ok(key)
    }

    fn load(path: &Path) -> Result<Self, Error> {
        let shown = path.display();
        let failed = |e| Error::io(format_args!("cannot read the state key {shown}"), &e);
        let file = File::open(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(Error::input(format!(
                "others may read the state key {shown} (mode {mode:04o}); run `chmod 600 {shown}`, and if \
                 somebody may have read it, remove it and the state that is sealed under it"
            )));
        }
        let mut text = Zeroizing::new(String::new());
        file.take(FILE_BYTES).read_to_string(&mut text).map_err(failed)?;
        let digits = text.strip_prefix(FORMAT).and_then(|rest| rest.strip_prefix(' '));
        let mut bytes = digits.and_then(|digits| unhex::<32>(digits.trim_end())).ok_or_else(|| {
            Error::input(format!(
                "{shown} holds no state key: one line, {FORMAT} and 64 hex digits; restore it, or remove it \
                 and begin runs that have state anew"
            ))
        })?;
        let key = Self(Secret::new(bytes));
        bytes.zeroize();
        Ok(key)
    }

    /// A key that everybody knows, for fuzzers and tests of formats.
    pub(crate) fn known() -> Self {
        Self(Secret::new([7; 32]))
    }

    pub(crate) fn expose(&self) -> &[u8; 32] {
        self.0.expose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, metadata, set_permissions, write};

    #[test]
    fn a_key_is_made_once_and_only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let (ledger, path) = (folder.path().join("a.ledger"), folder.path().join("a.ledger.state-key"));
        let made = StateKey::beside(&ledger).unwrap();
        assert_eq!(metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(StateKey::beside(&ledger).unwrap().expose(), made.expose());
        assert!(!format!("{made:?}").contains(&format!("{:?}", made.expose())));
        for mode in [0o640, 0o604, 0o660, 0o610, 0o601, 0o644] {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = StateKey::beside(&ledger).unwrap_err().to_string();
            assert!(error.starts_with("others may read the state key"), "{error}");
        }
        for mode in [0o400, 0o600] {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(StateKey::beside(&ledger).unwrap().expose(), made.expose());
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (ledger, path) = (folder.path().join("a.ledger"), folder.path().join("a.ledger.state-key"));
        StateKey::beside(&ledger).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for wrong in ["", "x", FORMAT, &text[..text.len() - 2], &text.replace(' ', ""), &text.repeat(2)] {
            write(&path, wrong).unwrap();
            let error = StateKey::beside(&ledger).unwrap_err().to_string();
            assert!(error.contains("holds no state key"), "{wrong}: {error}");
        }
        let error = StateKey::beside(Path::new("/nowhere/at/all")).unwrap_err().to_string();
        assert!(error.starts_with("cannot create the state key /nowhere/at/all.state-key"), "{error}");
    }

    #[test]
    fn keys_differ() {
        assert_ne!(StateKey::fresh().expose(), StateKey::fresh().expose());
    }
}
