//! A steward's own signature under a consent.
//!
//! The organisation's key lies on the machine of its service, so who is root there can consent for it. Where
//! an organisation wants more, a steward signs the terms with a key of their own, in a file that is on no
//! machine of the service: the request is carried to the key, and the signature back.

use crate::body::{ProposalId, StatementBody};
use crate::said::{ConsentTerms, Source};
use base::{Error, hex, unhex};
use net::identity::{Identity, KeyFingerprint, PUBLIC_KEY_BYTES, SIGNATURE_BYTES, has_signed};
use serde_json::json;
use sha2::{Digest, Sha512};
use study::{StudyFile, StudyHash};

/// What a steward's signature is for.
const SIGNED: &[u8; 32] = b"tacit steward consent v1\0\0\0\0\0\0\0\0";
const REQUEST: &str = "tacit 2026-12 steward's consent v1";
const WORDS: &str = "tacit 2026-12 words of a consent v1";
const DATA: &str = "tacit 2026-12 data of a consent v1";
const DATA_AND_LINEAGE: &str = "tacit 2026-12 data and lineage of a consent v1";
/// Bytes of a seal.
const SEAL_BYTES: usize = PUBLIC_KEY_BYTES + SIGNATURE_BYTES;
/// What the text of a seal begins with.
const PREFIX: &str = "tacit-seal1:";
/// The format of a file that is carried to a steward's key.
const FILE_FORMAT: &str = "tacit-consent/1";

/// What `ssh-keygen` is told that a signature is for.
const SSH_NAMESPACE: &str = "tacit-consent";
const SSH_KIND: &str = "ssh-ed25519";
const SSH_BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const SSH_END: &str = "-----END SSH SIGNATURE-----";

/// Stands for the text that a steward read. Kept with it, it shows an auditor what was shown.
#[must_use]
pub fn digest_of_words(words: &str) -> [u8; 32] {
    blake3::derive_key(WORDS, words.as_bytes())
}

/// Binds a consent to a version of the data, and to the lineage that is charged for them, without saying
/// which: `tag` is the ledger's, `salt` is random and stays here. Consents of before have no lineage.
#[must_use]
pub fn commit_to_data(salt: &[u8; 32], tag: &[u8; 32], lineage: Option<&str>) -> [u8; 32] {
    let data = [&salt[..], tag].concat();
    match lineage {
        None => blake3::derive_key(DATA, &data),
        Some(lineage) => blake3::derive_key(DATA_AND_LINEAGE, &[&data, lineage.as_bytes()].concat()),
    }
}

/// What a steward is asked to sign: all that a consent binds, and nothing that is known only when it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentRequest {
    /// The study.
    pub study: StudyHash,
    /// Which proposal of it.
    pub proposal: ProposalId,
    /// The organisation that consents.
    pub organisation: KeyFingerprint,
    /// The others.
    pub recipients: Vec<KeyFingerprint>,
    /// On which terms; their seal is not looked at.
    pub terms: ConsentTerms,
}

impl ConsentRequest {
    /// What the steward of a consent was asked.
    pub(crate) fn of(body: &StatementBody, terms: &ConsentTerms) -> Self {
        Self {
            study: body.study,
            proposal: body.proposal,
            organisation: KeyFingerprint::of_ed25519(&body.author),
            recipients: body.recipients.clone(),
            terms: terms.clone(),
        }
    }

    /// To be carried to where the key is.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = [&self.study.as_bytes()[..], &self.proposal.0, &self.organisation.bytes()].concat();
        out.push(u8::try_from(self.recipients.len()).unwrap_or(u8::MAX));
        self.recipients.iter().for_each(|to| out.extend(to.bytes()));
        self.terms.encode(&mut out, false);
        out
    }

    /// Reads what [`Self::bytes`] gave.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut from = Source(bytes);
        let (study, proposal) = (StudyHash::from_bytes(from.bytes()?), ProposalId(from.bytes()?));
        let organisation = KeyFingerprint::from_bytes(from.bytes()?);
        let [others] = from.bytes()?;
        let recipient = |_| from.bytes().map(KeyFingerprint::from_bytes);
        let recipients = (0..others).map(recipient).collect::<Option<Vec<_>>>()?;
        let terms = ConsentTerms::decode(&mut from)?;
        let request = Self { study, proposal, organisation, recipients, terms };
        (from.0.is_empty() && request.bytes() == bytes).then_some(request)
    }

    fn signed(&self) -> Vec<u8> {
        [&SIGNED[..], &blake3::derive_key(REQUEST, &self.bytes())].concat()
    }

    /// The words that a key of SSH signs: by `ssh-keygen -Y sign -n tacit-consent`, in a file or by an agent,
    /// which may hold it in hardware.
    #[must_use]
    pub fn ssh_words(&self) -> String {
        format!("tacit steward consent v1 {}", hex(&blake3::derive_key(REQUEST, &self.bytes())))
    }

    /// What such a signature is over (PROTOCOL.sshsig of OpenSSH).
    fn ssh_signed(&self) -> Vec<u8> {
        let digest = Sha512::digest(self.ssh_words());
        let mut out = b"SSHSIG".to_vec();
        let parts: [&[u8]; 4] = [SSH_NAMESPACE.as_bytes(), b"", b"sha512", &digest];
        for part in parts {
            out.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
            out.extend(part);
        }
        out
    }

    /// The steward's signature, with a key that `tacit keygen` made.
    ///
    /// # Errors
    /// When the key is the organisation's, which is on the machine, or cannot sign.
    pub fn seal(&self, steward: &Identity) -> Result<StewardSeal, Error> {
        if steward.fingerprint() == self.organisation {
            return Err(Error::input(
                "this is the key of the organisation, which lies on the machine of its service: a steward \
                 signs with a key of their own, which `tacit keygen` makes",
            ));
        }
        Ok(StewardSeal { key: steward.public_key()?, signature: steward.sign(&self.signed())? })
    }
}

/// A request with what its steward reads: the words that were shown, and the study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentFile {
    /// What is to be signed.
    pub request: ConsentRequest,
    /// The text whose digest is in its terms.
    pub words: String,
    /// The study, read of its canonical text.
    pub study: StudyFile,
}

impl ConsentFile {
    /// The text of the file that is carried to the steward's key.
    #[must_use]
    pub fn text(request: &ConsentRequest, words: &str, study: &str) -> String {
        let digits = hex(&request.bytes());
        json!({ "format": FILE_FORMAT, "request": digits, "words": words, "study": study }).to_string()
    }

    /// Reads the text of a file; `name` is the file's.
    ///
    /// # Errors
    /// When it is none, or words or study are not those that would be signed.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let wrong = |what: &str| Error::input(format!("{name} {what}; ask who sent it for another one"));
        let file: serde_json::Value = serde_json::from_str(text).map_err(|_| wrong("is no JSON"))?;
        let of = |key: &str| file.get(key).and_then(|value| value.as_str());
        let (Some(FILE_FORMAT), Some(digits), Some(words), Some(study)) =
            (of("format"), of("request"), of("words"), of("study"))
        else {
            return Err(wrong("is no request for a consent (tacit-consent/1)"));
        };
        let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
        let byte = |pair: &[u8; 2]| unhex::<1>(std::str::from_utf8(pair).ok()?).map(|[byte]| byte);
        let bytes = pairs.iter().map(byte).collect::<Option<Vec<u8>>>().filter(|_| rest.is_empty());
        let request = bytes.and_then(|bytes| ConsentRequest::read(&bytes));
        let request = request.ok_or_else(|| wrong("has a request that cannot be read"))?;
        if digest_of_words(words) != request.terms.words {
            return Err(wrong("shows other words than would be signed"));
        }
        let study = StudyFile::parse(name, study)?;
        if study.hash() != request.study {
            return Err(wrong("shows another study than would be signed"));
        }
        Ok(Self { request, words: words.to_owned(), study })
    }
}

/// A steward's signature under a consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StewardSeal {
    key: [u8; PUBLIC_KEY_BYTES],
    signature: [u8; SIGNATURE_BYTES],
}

impl StewardSeal {
    /// Whose it says that it is.
    #[must_use]
    pub fn steward(&self) -> KeyFingerprint {
        KeyFingerprint::of_ed25519(&self.key)
    }

    /// Whether it is under this request.
    #[must_use]
    pub fn is_of(&self, request: &ConsentRequest) -> bool {
        let by = |message: &[u8]| has_signed(&self.key, message, &self.signature);
        self.steward() != request.organisation && (by(&request.signed()) || by(&request.ssh_signed()))
    }

    /// As people carry it.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{PREFIX}{}", hex(&self.bytes()))
    }

    /// Reads what [`Self::text`] gave, or what `ssh-keygen -Y sign` wrote.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.starts_with(SSH_BEGIN) {
            return of_ssh(text).ok_or_else(|| {
                Error::input(format!(
                    "this is no signature of an Ed25519 key for a consent: sign by `ssh-keygen -Y sign -n \
                     {SSH_NAMESPACE} -f KEY`, with a key of kind {SSH_KIND}, and copy all lines from BEGIN \
                     to END"
                ))
            });
        }
        text.strip_prefix(PREFIX).and_then(unhex).map(Self::of).ok_or_else(|| {
            Error::input(format!(
                "this is no steward's signature: it must be {PREFIX} and {} digits of 0-9 and a-f; copy the \
                 whole line that `tacit consent sign` printed",
                2 * SEAL_BYTES
            ))
        })
    }

    pub(crate) fn bytes(&self) -> [u8; SEAL_BYTES] {
        [&self.key[..], &self.signature].concat().try_into().expect("the parts add up")
    }

    pub(crate) fn of(bytes: [u8; SEAL_BYTES]) -> Self {
        let (key, signature) = bytes.split_first_chunk().expect("96 bytes have 32");
        Self { key: *key, signature: signature.try_into().expect("and 64") }
    }
}

/// Key and signature of what `ssh-keygen -Y sign` wrote; none where it is of another kind, or for something
/// else.
fn of_ssh(text: &str) -> Option<StewardSeal> {
    let body = text.strip_prefix(SSH_BEGIN)?.strip_suffix(SSH_END)?;
    let bytes = base64(body)?;
    let mut from = SshReader(bytes.strip_prefix(b"SSHSIG\0\0\0\x01")?);
    let key = ed25519(from.part()?)?;
    let meant = from.part()? == SSH_NAMESPACE.as_bytes();
    let plain = from.part()?.is_empty() && from.part()? == b"sha512";
    let signature = ed25519(from.part()?)?;
    (meant && plain && from.0.is_empty()).then_some(StewardSeal { key, signature })
}

/// The key of a line `ssh-ed25519 AAAA.. who@where`, as OpenSSH keeps it; none where it is no such line.
#[must_use]
pub fn ssh_key(line: &str) -> Option<KeyFingerprint> {
    let mut words = line.split_whitespace();
    let named = words.next()? == SSH_KIND;
    let key = ed25519(&base64(words.next()?)?)?;
    named.then(|| KeyFingerprint::of_ed25519(&key))
}

/// What stands behind the name of the one kind.
fn ed25519<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    let mut from = SshReader(bytes);
    let named = from.part()? == SSH_KIND.as_bytes();
    let found = <[u8; N]>::try_from(from.part()?).ok()?;
    (named && from.0.is_empty()).then_some(found)
}

/// Parts of bytes that OpenSSH wrote, each behind its length.
struct SshReader<'a>(&'a [u8]);

impl<'a> SshReader<'a> {
    fn part(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (part, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        self.0 = rest;
        Some(part)
    }
}

/// Bytes of lines of base64, which is not checked for what stands beyond the last byte.
fn base64(text: &str) -> Option<Vec<u8>> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = Vec::new();
    let (mut held, mut bits) = (0u32, 0);
    for byte in text.trim().trim_end_matches('=').bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        held = held << 6 | u32::try_from(DIGITS.iter().position(|digit| *digit == byte)?).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from(held >> bits & 0xff).ok()?);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_base64_are_read() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v\nYmFy\n", "foobar")] {
            assert_eq!(base64(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(base64("Zm9v!"), None);
    }

    #[test]
    fn what_openssh_signed_for_a_consent_is_read_and_nothing_else_is() {
        // Made by `ssh-keygen -Y sign`; the last two are for a file, and of a key of another kind.
        let seal = StewardSeal::parse(include_str!("fixtures/consent.sig")).expect("a seal");
        let line =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC10KU62+/GJIVJqshrKjKJN+IMb8urOWvne6wqmjsk/ stella@home";
        assert_eq!(Some(seal.steward()), ssh_key(line));
        assert_eq!(StewardSeal::parse(&seal.text()).expect("a line"), seal);
        let cut = include_str!("fixtures/consent.sig").replace("mIUJ", "mI");
        for other in [include_str!("fixtures/file.sig"), include_str!("fixtures/ecdsa.sig"), &cut] {
            let error = StewardSeal::parse(other).expect_err("none").to_string();
            assert!(error.contains("no signature of an Ed25519 key for a consent"), "{error}");
        }
    }

    #[test]
    fn keys_of_openssh_are_those_of_tacit() {
        // Of RFC 8032, section 7.1, test 1.
        let key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        let line =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea stella@x";
        let found = ssh_key(line).expect("a key");
        assert_eq!(found, KeyFingerprint::of_ed25519(&unhex(key).expect("32 bytes")));
        assert_eq!(ssh_key(&line.replace("ssh-ed25519 ", "ssh-rsa ")), None);
        assert_eq!(ssh_key("ssh-ed25519 AAAA"), None);
    }
}
