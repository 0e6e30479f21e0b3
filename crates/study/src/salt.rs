//! The salt of a match by keyed hashes: 32 random bytes that the owners share, and no server ever holds.
//!
//! Whoever has it and sees the keyed hashes can test guesses of identifiers, so its file is as secret as a
//! private key. Owners hand it to each other by hand, once; a run compares a hash of it before anything else
//! is said.

use base::{Error, Seed};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use zeroize::Zeroizing;

/// The first word of the file.
const FORMAT: &str = "tacit-salt/1";
/// Bytes of the largest salt file that is read.
const FILE_BYTES: u64 = 4 << 10;

/// Makes a new salt and keeps it in a file that only its owner may read.
///
/// # Errors
/// When the file exists or cannot be written.
pub fn create(path: &Path) -> Result<(), Error> {
    let shown = path.display();
    let open = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = open.map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => Error::input(format!(
            "{shown} exists and is not overwritten: other owners may hold the salt in it; choose another \
             file name"
        )),
        _ => Error::io(format!("cannot create {shown}"), &e),
    })?;
    let seed = Seed::from_system();
    let mut text = Zeroizing::new(String::with_capacity(2 * 32 + FORMAT.len() + 2));
    text.push_str(FORMAT);
    text.push(' ');
    for byte in seed.expose() {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    text.push('\n');
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|e| {
        // Half a salt is worse than none: the next attempt would be refused because of it.
        let _ = std::fs::remove_file(path);
        Error::io(format!("cannot write {shown}"), &e)
    })
}

/// Reads a salt that [`create`] made.
///
/// # Errors
/// When the file cannot be read, others than its owner may read it, or it holds no salt.
pub fn load(path: &Path) -> Result<Seed, Error> {
    let shown = path.display();
    let file = std::fs::File::open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::input(format!(
            "there is no salt at {shown}: get the file from the owner who made it, or make one for all of \
             you with `tacit keygen --salt {shown}`"
        )),
        _ => Error::io(format!("cannot open the salt {shown}"), &e),
    })?;
    let about = file.metadata().map_err(|e| Error::io(format!("cannot examine {shown}"), &e))?;
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(Error::input(format!(
            "others may read the salt in {shown} (mode {mode:04o}); run `chmod 600 {shown}`, and make a new \
             one with all owners if somebody may have read this"
        )));
    }
    let mut text = Zeroizing::new(String::new());
    let read = file.take(FILE_BYTES).read_to_string(&mut text);
    read.map_err(|e| Error::io(format!("cannot read the salt {shown}"), &e))?;
    parse(&text).ok_or_else(|| {
        Error::input(format!(
            "{shown} holds no salt: one line, {FORMAT} and 64 hex digits; get it from another owner, or make \
             one for all of you with `tacit keygen --salt FILE`, FILE a new one"
        ))
    })
}

fn parse(text: &str) -> Option<Seed> {
    let digits = text.trim_end().strip_prefix(FORMAT)?.strip_prefix(' ')?;
    let bytes = Zeroizing::new(base::unhex(digits)?);
    Some(Seed::from_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_salt_is_made_once_and_read_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trial.salt");
        let none = load(&path).unwrap_err().to_string();
        assert!(none.contains(&format!("`tacit keygen --salt {}`", path.display())), "{none}");
        create(&path).unwrap();
        let (salt, again) = (load(&path).unwrap(), load(&path).unwrap());
        assert_eq!(salt.expose(), again.expose());
        assert!(create(&path).unwrap_err().to_string().contains("is not overwritten"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(load(&path).unwrap_err().to_string().contains("mode 0640"));
    }

    #[test]
    fn two_salts_differ_and_anything_else_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        create(&a).unwrap();
        create(&b).unwrap();
        assert_ne!(load(&a).unwrap().expose(), load(&b).unwrap().expose());
        for text in ["", "tacit-salt/1", &format!("tacit-salt/2 {}", "0".repeat(64)), "tacit-salt/1 00"] {
            assert!(parse(text).is_none(), "{text}");
        }
        assert!(parse(&format!("tacit-salt/1 {}g", "0".repeat(63))).is_none());
    }
}
