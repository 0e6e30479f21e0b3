//! A statement with its author's signature. One that exists was signed: there is no other way to make one, or
//! to read one the first time.

use crate::body::StatementBody;
use crate::said::Said;
use crate::steward::ConsentRequest;
use crate::{CHAIN_STATEMENTS, SIGNED_BYTES};
use base::{At, Error, Fault};
use net::identity::{Identity, KeyFingerprint, SIGNATURE_BYTES, has_signed};

/// What a signature is for. TLS 1.3 signs what begins with 64 spaces; neither can be taken for the other.
const SIGNED: &[u8; 32] = b"tacit statement v1\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// A statement that its author signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedStatement {
    body: StatementBody,
    digest: [u8; 32],
    signature: [u8; SIGNATURE_BYTES],
}

impl SignedStatement {
    /// Signs a statement of this identity.
    ///
    /// # Errors
    /// When the identity is not the author, cannot sign, or the statement is beyond a limit.
    pub fn sign(body: StatementBody, identity: &Identity) -> Result<Self, Error> {
        if body.author != identity.public_key()? {
            return Err(Error::misuse("a statement is signed by its author"));
        }
        let digest = body.digest();
        let signature = identity.sign(&[&SIGNED[..], &digest].concat())?;
        let bytes = Self { body, digest, signature }.bytes();
        // What the other side refuses must not leave this one.
        Self::read(&bytes)
    }

    /// Reads a statement and checks who signed it, the steward's seal of a consent included.
    ///
    /// # Errors
    /// When the bytes are none, or a signature does not hold.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let statement = Self::read_again(bytes)?;
        let malformed = |what| Error::new(At::default(), Fault::Malformed(what));
        let Self { body, digest, signature } = &statement;
        if !has_signed(&body.author, &[&SIGNED[..], digest].concat(), signature) {
            return Err(malformed("statement whose signature is not its author's"));
        }
        if let Said::Consent(terms) = &body.said
            && let Some(seal) = &terms.seal
            && !seal.is_of(&ConsentRequest::of(body, terms))
        {
            return Err(malformed("consent whose steward's signature does not hold"));
        }
        Ok(statement)
    }

    /// The same of bytes that [`Self::read`] has read before: no signature is checked a second time.
    ///
    /// # Errors
    /// When the bytes are no statement.
    pub fn read_again(bytes: &[u8]) -> Result<Self, Error> {
        let malformed = |what| Error::new(At::default(), Fault::Malformed(what));
        if bytes.len() > SIGNED_BYTES {
            let (met, cap) = (bytes.len() as u64, SIGNED_BYTES as u64);
            return Err(Error::limit("bytes of a statement", met, cap));
        }
        let (body_bytes, signature) = bytes.split_last_chunk().ok_or_else(|| malformed("statement"))?;
        let body = StatementBody::decode(body_bytes).ok_or_else(|| malformed("statement"))?;
        if body.number >= CHAIN_STATEMENTS {
            let (met, cap) = (body.number.into(), CHAIN_STATEMENTS.into());
            return Err(Error::limit("number of a statement", met, cap));
        }
        let digest = body.digest();
        if body.encode() != body_bytes {
            return Err(malformed("statement in another form"));
        }
        Ok(Self { body, digest, signature: *signature })
    }

    /// As it is sent and kept.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        [&self.body.encode()[..], &self.signature].concat()
    }

    /// What it says, and about what.
    #[must_use]
    pub fn body(&self) -> &StatementBody {
        &self.body
    }

    /// What the next statement of its author names it by.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Who signed it.
    #[must_use]
    pub fn author(&self) -> KeyFingerprint {
        KeyFingerprint::of_ed25519(&self.body.author)
    }

    /// All parties of the proposal, in ascending order.
    #[must_use]
    pub fn parties(&self) -> Vec<KeyFingerprint> {
        let mut all = self.body.recipients.clone();
        all.push(self.author());
        all.sort_unstable();
        all
    }
}
