//! Who a party is on the network: a private key in a file, and the fingerprint of its public key in the
//! study.
//!
//! There is no authority and no name to trust: a study names each party's key by its fingerprint, and a peer
//! with another key is refused. The certificate around the key exists because TLS wants one; its dates, names
//! and self-signature mean nothing here.

use crate::succession::Succession;
use base::{Error, Secret, Seed};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{SignatureAlgorithm, SignatureScheme};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::{fmt, fs};
use zeroize::Zeroizing;

/// What a fingerprint is a hash for: BLAKE3 in key derivation mode under this context, over the DER bytes of
/// the SubjectPublicKeyInfo, cut to 16 bytes.
const FINGERPRINT_CONTEXT: &str = "tacit 2026-01 identity fingerprint v1";

/// What every fingerprint starts with in its text form. Another hash would get another number.
const PREFIX: &str = "tacit1:";

/// Bytes of the largest identity file that is read.
const FILE_BYTES: u64 = 64 << 10;

/// A SubjectPublicKeyInfo of an Ed25519 key in DER: these bytes, then the 32 of the key.
const SPKI_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Bytes of a public key as [`Identity::public_key`] gives it.
pub const PUBLIC_KEY_BYTES: usize = 32;

/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;

/// 128 bits that stand for a public key: `tacit1:` and 32 lower-case hexadecimal digits.
///
/// An impostor must find a second key with a given fingerprint (2^128 work). Two keys of one owner with the
/// same fingerprint (2^64 work) would be of no use: both are that owner's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyFingerprint([u8; 16]);

impl KeyFingerprint {
    /// The fingerprint of a key given as SubjectPublicKeyInfo in DER.
    #[must_use]
    pub fn of_key(spki: &[u8]) -> Self {
        let hash = blake3::derive_key(FINGERPRINT_CONTEXT, spki);
        Self(hash[..16].try_into().expect("16 of 32 bytes"))
    }

    /// The fingerprint of an Ed25519 key.
    #[must_use]
    pub fn of_ed25519(key: &[u8; PUBLIC_KEY_BYTES]) -> Self {
        Self::of_key(&[&SPKI_HEAD[..], key].concat())
    }

    /// The fingerprint of the key in a certificate; `None` when it is no certificate.
    pub(crate) fn of_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let parsed = ParsedCertificate::try_from(certificate).ok()?;
        Some(Self::of_key(&parsed.subject_public_key_info()))
    }

    /// Of bytes that [`Self::bytes`] gave.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; 16] {
        self.0
    }

    /// A form for the eye, `tacit1:3f9a..4e11`. Never compare by it.
    #[must_use]
    pub fn short(&self) -> String {
        let digits = base::hex(&self.0);
        format!("{PREFIX}{}..{}", &digits[..4], &digits[28..])
    }
}

impl fmt::Display for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", base::hex(&self.0))
    }
}

impl fmt::Debug for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for KeyFingerprint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |what: String| Error::input(format!("`{text}` is no key: {what}"));
        let Some(digits) = text.strip_prefix(PREFIX) else {
            return Err(wrong(format!("it must start with `{PREFIX}`; copy what `tacit keygen` printed")));
        };
        if let Some(bad) = digits.chars().find(|c| !matches!(c, '0'..='9' | 'a'..='f')) {
            return Err(wrong(format!("`{bad}` is not one of 0-9 and a-f")));
        }
        let found = digits.len();
        let bytes = base::unhex(digits)
            .ok_or_else(|| wrong(format!("32 digits must follow `{PREFIX}`, here are {found}")))?;
        Ok(Self(bytes))
    }
}

/// A party's private key with its certificate.
pub struct Identity {
    pub(crate) certified: Arc<CertifiedKey>,
    pem: Secret<String>,
    fingerprint: KeyFingerprint,
    /// What earlier keys signed, oldest first: they lead here.
    line: Vec<Succession>,
    /// What this key signed for the one that takes its place.
    successor: Option<Succession>,
}

impl Identity {
    /// A fresh Ed25519 key from the operating system's randomness.
    ///
    /// # Errors
    /// When the cryptographic library cannot make a key.
    pub fn generate() -> Result<Self, Error> {
        let failed = |e: rcgen::Error| Error::misuse(format!("no key could be made: {e}"));
        let made = KeyPair::generate_for(&PKCS_ED25519).map_err(failed)?;
        let der = Zeroizing::new(made.serialize_der());
        let der =
            version_1(&der).ok_or_else(|| Error::misuse("an Ed25519 key has another form than it had"))?;
        let der = PrivatePkcs8KeyDer::from(&der[..]);
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ED25519).map_err(failed)?;
        let params = CertificateParams::new(vec!["tacit.invalid".to_owned()]).map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;
        let mut private = key.serialize_pem();
        let pem = format!("{private}{}", certificate.pem());
        zeroize::Zeroize::zeroize(&mut private);
        Self::from_pem(pem).map_err(|what| Error::misuse(format!("no key could be made: {what}")))
    }

    /// What the study names this identity by.
    #[must_use]
    pub fn fingerprint(&self) -> KeyFingerprint {
        self.fingerprint
    }

    /// A secret that only the owner of this key has, for one purpose, told by `context`: the same for the
    /// same key, however its file is written.
    ///
    /// # Errors
    /// When the private key is not Ed25519.
    pub fn secret_for(&self, context: &str) -> Result<Seed, Error> {
        let key = PrivateKeyDer::from_pem_slice(self.pem.expose().as_bytes());
        let key = key.map_err(|_| Error::misuse("an identity has a private key"))?;
        // PKCS #8 of Ed25519, version 1 or 2: a head of 12 bytes, then the 32 bytes in two octet strings.
        match key.secret_der().get(12..48) {
            Some([4, 34, 4, 32, secret @ ..]) => Ok(Seed::from_bytes(blake3::derive_key(context, secret))),
            _ => Err(Error::input("the identity's private key is not Ed25519: make one with `tacit keygen`")),
        }
    }

    /// Writes the identity to a new file that only its owner may read (mode 0600).
    ///
    /// # Errors
    /// When the file exists (a lost key cannot be made again) or cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let shown = path.display();
        let open = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let mut file = open.map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => Error::input(format!(
                "{shown} exists and is not overwritten: the key in it would be lost; choose another file name"
            )),
            _ => Error::io(format!("cannot create {shown}"), &e),
        })?;
        let written = file.write_all(self.pem.expose().as_bytes()).and_then(|()| file.sync_all());
        written.map_err(|e| {
            // Half a key is worse than none: the next attempt would be refused because of it.
            let _ = fs::remove_file(path);
            Error::io(format!("cannot write {shown}"), &e)
        })
    }

    /// What its earlier keys signed, oldest first: each that the next one takes its place, and the last that
    /// this one does.
    #[must_use]
    pub fn line(&self) -> &[Succession] {
        &self.line
    }

    /// The key that has taken the place of this one.
    #[must_use]
    pub fn successor(&self) -> Option<KeyFingerprint> {
        self.successor.as_ref().map(Succession::new_key)
    }

    /// Makes a key that takes the place of this one, which was read from `own`, and writes it to a new file.
    /// What this key signs for it is kept in both files, so that no second one is made.
    ///
    /// # Errors
    /// When this key has a successor already, or a file cannot be written; then there is no new file.
    pub fn succeed(&self, own: &Path, new: &Path) -> Result<Self, Error> {
        if let Some(successor) = self.successor() {
            return Err(Error::input(format!(
                "the key in {} has named {successor} as its successor, and a key has one only: peers that \
                 were shown another \
                 one refuse both. Use the file of {successor}, or make a successor of that one",
                own.display()
            )));
        }
        let fresh = Self::generate()?;
        let statement = Succession::sign(self, &fresh)?;
        let line = self.line.iter().chain([&statement]).map(Succession::line).collect::<String>();
        let made = Self::from_pem(format!("{}{line}", fresh.pem.expose()))
            .map_err(|what| Error::misuse(format!("no key could be made: {what}")))?;
        made.save(new)?;
        let kept = fs::OpenOptions::new().append(true).open(own).and_then(|mut file| {
            file.write_all(statement.line().as_bytes())?;
            file.sync_all()
        });
        kept.map_err(|e| {
            // Without the line a second successor could be made of the same key.
            let _ = fs::remove_file(new);
            Error::io(format!("cannot add to {} that {} takes its place", own.display(), new.display()), &e)
        })?;
        Ok(made)
    }

    /// Reads an identity that [`Identity::save`] wrote, in this version or an earlier one.
    ///
    /// # Errors
    /// When the file cannot be read, others than its owner may read it, or it holds no identity.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let shown = path.display();
        let open = fs::File::open(path);
        let file = open.map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::input(format!(
                "there is no identity at {shown}: make one with `tacit keygen --out {shown}`, and put the \
                 line `key` that it prints into the study"
            )),
            _ => Error::io(format!("cannot open the identity {shown}"), &e),
        })?;
        let about = file.metadata().map_err(|e| Error::io(format!("cannot examine {shown}"), &e))?;
        let mode = about.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(Error::input(format!(
                "others may read the private key in {shown} (mode {mode:04o}); run `chmod 600 {shown}`, and \
                 make a new key if somebody may have read this one"
            )));
        }
        if about.len() > FILE_BYTES {
            return Err(Error::limit("bytes of an identity file", about.len(), FILE_BYTES));
        }
        let mut text = Zeroizing::new(String::new());
        let read = file.take(FILE_BYTES).read_to_string(&mut text);
        read.map_err(|e| Error::io(format!("cannot read the identity {shown}"), &e))?;
        Self::from_pem(std::mem::take(&mut *text)).map_err(|what| {
            Error::input(format!(
                "{shown} holds no identity: {what}; restore it from a backup or make one with `tacit keygen`"
            ))
        })
    }

    /// The Ed25519 key that others check signatures with.
    ///
    /// # Errors
    /// When this identity holds a key of another kind.
    pub fn public_key(&self) -> Result<[u8; PUBLIC_KEY_BYTES], Error> {
        let spki = self.certified.key.public_key().ok_or_else(not_ed25519)?;
        let key = spki.strip_prefix(&SPKI_HEAD).ok_or_else(not_ed25519)?;
        key.try_into().map_err(|_| not_ed25519())
    }

    /// Signs a message. Who signs for several purposes begins each message with what it is for.
    ///
    /// # Errors
    /// As [`Identity::public_key`].
    pub fn sign(&self, message: &[u8]) -> Result<[u8; SIGNATURE_BYTES], Error> {
        if self.certified.key.algorithm() != SignatureAlgorithm::ED25519 {
            return Err(not_ed25519());
        }
        let signer = self.certified.key.choose_scheme(&[SignatureScheme::ED25519]).ok_or_else(not_ed25519)?;
        let failed = |e: rustls::Error| Error::misuse(format!("the identity does not sign: {e}"));
        let signature = signer.sign(message).map_err(failed)?;
        signature.try_into().map_err(|_| Error::misuse("an Ed25519 signature has 64 bytes"))
    }

    fn from_pem(pem: String) -> Result<Self, &'static str> {
        let pem = Secret::new(pem);
        let bytes = pem.expose().as_bytes();
        let key = PrivateKeyDer::from_pem_slice(bytes).map_err(|_| "no PEM section with a private key")?;
        let certificate =
            CertificateDer::from_pem_slice(bytes).map_err(|_| "no PEM section with a certificate")?;
        let fingerprint =
            KeyFingerprint::of_certificate(&certificate).ok_or("its certificate cannot be decoded")?;
        let mut line = Succession::lines_of(pem.expose()).ok_or(WRONG_LINE)?;
        let successor = line.pop_if(|last| last.old() == fingerprint && last.holds());
        if !Succession::lead_to(&line, fingerprint) {
            return Err(WRONG_LINE);
        }
        let provider = aws_lc_rs::default_provider();
        let certified = CertifiedKey::from_der(vec![certificate], key, &provider)
            .map_err(|_| "its private key is not the one of its certificate")?;
        Ok(Self { certified: Arc::new(certified), pem, fingerprint, line, successor })
    }
}

const WRONG_LINE: &str = "what its earlier keys signed, in the lines at its end, does not lead to its key";

/// What an Ed25519 key is in PKCS #8 version 1, before its 32 bytes.
const VERSION_1: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// The same key in PKCS #8 version 1, which ordinary tools read: OpenSSL 3.0 and Python's `ssl` do not know
/// version 2 (RFC 5958), which differs by its number, its length and the public key behind. Nothing when this
/// is no Ed25519 key.
fn version_1(key: &[u8]) -> Option<Zeroizing<[u8; 48]>> {
    let (head, secret) = (key.get(..16)?, key.get(16..48)?);
    let algorithm = 5..16;
    if head[algorithm.clone()] != VERSION_1[algorithm] {
        return None;
    }
    let mut out = Zeroizing::new([0; 48]);
    out[..16].copy_from_slice(&VERSION_1);
    out[16..].copy_from_slice(secret);
    Some(out)
}

/// Whether the owner of an Ed25519 key signed a message with [`Identity::sign`].
#[must_use]
pub fn has_signed(key: &[u8; PUBLIC_KEY_BYTES], message: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
    let known = aws_lc_rs::default_provider().signature_verification_algorithms;
    let ed25519 = known.mapping.iter().filter(|(scheme, _)| *scheme == SignatureScheme::ED25519);
    let mut algorithms = ed25519.flat_map(|(_, algorithms)| algorithms.iter());
    algorithms.any(|algorithm| algorithm.verify_signature(key, message, signature).is_ok())
}

fn not_ed25519() -> Error {
    Error::input(
        "this identity holds no Ed25519 key, so it cannot sign; make one with `tacit keygen` and put its \
         line `key` into the study",
    )
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_identity_survives_its_file_and_the_file_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry.key");
        let made = Identity::generate().unwrap();
        made.save(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Identity::load(&path).unwrap().fingerprint(), made.fingerprint());
        assert_ne!(Identity::generate().unwrap().fingerprint(), made.fingerprint());
    }

    /// A file of an earlier version: the key in PKCS #8 version 2.
    const EARLIER: &str = include_str!("../tests/fixtures/identity-v2.key");

    #[test]
    fn a_file_of_an_earlier_version_is_the_same_identity() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.key");
        fs::write(&path, EARLIER).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let identity = Identity::load(&path).unwrap();
        assert_eq!(identity.fingerprint().to_string(), "tacit1:165d1b8aa22606ad6dcb0e1441bb07e2");
    }

    /// OpenSSL reads what is written now, key and certificate, and says that they belong together.
    #[test]
    fn ordinary_tools_read_a_key() {
        use std::process::Command;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.key");
        Identity::generate().unwrap().save(&path).unwrap();
        let run = |words: [&str; 3]| {
            let out =
                Command::new("openssl").args([words[0], "-in"]).arg(&path).args(&words[1..]).output().ok()?;
            assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
            Some(out.stdout)
        };
        let Some(public) = run(["pkey", "-pubout", "-outform=PEM"]) else {
            return println!("skipped: there is no openssl here");
        };
        assert_eq!(run(["x509", "-noout", "-pubkey"]), Some(public));
    }

    #[test]
    fn a_secret_hangs_on_the_key_and_the_purpose() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registry.key");
        let made = Identity::generate().unwrap();
        made.save(&path).unwrap();
        let secret = |identity: &Identity, what| *identity.secret_for(what).unwrap().expose();
        assert_eq!(secret(&made, "a"), secret(&Identity::load(&path).unwrap(), "a"));
        assert_ne!(secret(&made, "a"), secret(&made, "b"));
        assert_ne!(secret(&made, "a"), secret(&Identity::generate().unwrap(), "a"));
    }

    #[test]
    fn a_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.key");
        let first = Identity::generate().unwrap();
        first.save(&path).unwrap();
        let error = Identity::generate().unwrap().save(&path).unwrap_err().to_string();
        let shown = path.display();
        assert_eq!(
            error,
            format!(
                "{shown} exists and is not overwritten: the key in it would be lost; choose another file name"
            )
        );
        assert_eq!(Identity::load(&path).unwrap().fingerprint(), first.fingerprint());
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.key");
        Identity::generate().unwrap().save(&path).unwrap();
        for mode in [0o640, 0o604, 0o660, 0o601] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = Identity::load(&path).unwrap_err().to_string();
            let shown = path.display();
            assert!(error.starts_with(&format!("others may read the private key in {shown}")), "{error}");
            assert!(error.contains(&format!("run `chmod 600 {shown}`")), "{error}");
        }
    }

    #[test]
    fn a_file_without_an_identity_says_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let (good, other) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        let parts = |identity: &Identity| {
            let pem = identity.pem.expose().clone();
            let cut = pem.find("-----BEGIN CERT").unwrap();
            (pem[..cut].to_owned(), pem[cut..].to_owned())
        };
        let ((key, certificate), (_, foreign)) = (parts(&good), parts(&other));
        for (text, what) in [
            (String::from("hello"), "no PEM section with a private key"),
            (certificate, "no PEM section with a private key"),
            (key.clone(), "no PEM section with a certificate"),
            (key + &foreign, "its private key is not the one of its certificate"),
        ] {
            let path = folder.path().join("x.key");
            let _ = fs::remove_file(&path);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            let error = Identity::load(&path).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn a_signature_is_of_one_key_and_one_message() {
        let (own, other) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        let key = own.public_key().unwrap();
        assert_eq!(KeyFingerprint::of_ed25519(&key), own.fingerprint());
        let signature = own.sign(b"a message").unwrap();
        assert!(has_signed(&key, b"a message", &signature));
        assert!(!has_signed(&key, b"a massage", &signature));
        assert!(!has_signed(&other.public_key().unwrap(), b"a message", &signature));
        let mut bent = signature;
        bent[7] ^= 1;
        assert!(!has_signed(&key, b"a message", &bent));
        assert!(!has_signed(&[0; PUBLIC_KEY_BYTES], b"a message", &[0; SIGNATURE_BYTES]));
    }

    #[test]
    fn an_identity_does_not_print() {
        let identity = Identity::generate().unwrap();
        assert_eq!(format!("{identity:?}"), format!("Identity({})", identity.fingerprint()));
    }

    #[test]
    fn the_fingerprint_of_a_key_is_fixed() {
        // A change here disowns every key of every study.
        let spki = b"any bytes stand for a public key";
        assert_eq!(KeyFingerprint::of_key(spki).to_string(), "tacit1:94892752b957607dc789930fd4cbcad3");
    }

    #[test]
    fn a_wrong_fingerprint_says_why() {
        for (text, why) in [
            ("3f9a", "it must start with `tacit1:`"),
            ("tacit2:00", "it must start with `tacit1:`"),
            ("tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e1", "32 digits must follow `tacit1:`, here are 31"),
            ("tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e111", "32 digits must follow `tacit1:`, here are 33"),
            ("tacit1:3F9a1c0b7d5e42886b10a97f5d2c4e11", "`F` is not one of 0-9 and a-f"),
            ("tacit1:3\u{e4}9a", "`\u{e4}` is not one of 0-9 and a-f"),
        ] {
            let error = text.parse::<KeyFingerprint>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` is no key: {why}")), "{error}");
        }
        let good: KeyFingerprint = "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11".parse().unwrap();
        assert_eq!(good.short(), "tacit1:3f9a..4e11");
    }

    proptest! {
        #[test]
        fn a_fingerprint_survives_its_text(bytes: [u8; 16]) {
            let fingerprint = KeyFingerprint(bytes);
            prop_assert_eq!(fingerprint.to_string().parse::<KeyFingerprint>().unwrap(), fingerprint);
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<KeyFingerprint>();
            let _ = format!("tacit1:{text}").parse::<KeyFingerprint>();
        }
    }
}
