//! What a party signs about its own ledger towards one peer: where their chain stands, and what was charged
//! in all.
//!
//! 172 bytes: the signer's Ed25519 key, count, time, head, the zCDP charged towards the peer over all
//! lineages in billionths, the delta in 10^-18 (both rounded up), the signature. The signature is also over
//! both fingerprints, so that a statement serves no other pair, and a study need not name whole keys.

use super::chain::ChainHead;
use super::{Bytes32, Rational};
use base::Error;
use net::identity::{Identity, KeyFingerprint, PUBLIC_KEY_BYTES, SIGNATURE_BYTES, has_signed};
use num_traits::ToPrimitive;

/// Bytes of a statement.
pub const STATEMENT_BYTES: usize = PUBLIC_KEY_BYTES + 8 + 8 + 32 + 8 + 8 + SIGNATURE_BYTES;
const SIGNED: &[u8] = b"tacit ledger statement 1";
/// Parts of one in which rho and delta are counted.
const NANO: u64 = 1_000_000_000;
const ATTO: u64 = 1_000_000_000_000_000_000;

/// A statement, as far as it can be read without knowing whose it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    key: [u8; PUBLIC_KEY_BYTES],
    /// Where the chain stood.
    pub head: ChainHead,
    /// When it was signed, by the signer's clock: seconds since 1970.
    pub at: u64,
    /// zCDP charged towards the peer over all lineages, in billionths, rounded up.
    pub nano_rho: u64,
    /// Delta likewise, in 10^-18.
    pub atto_delta: u64,
    signature: [u8; SIGNATURE_BYTES],
}

impl Statement {
    /// Signs where this party's chain with a peer stands.
    ///
    /// # Errors
    /// When the identity does not sign.
    pub fn sign(
        identity: &Identity,
        peer: KeyFingerprint,
        head: ChainHead,
        at: u64,
        (rho, delta): (&Rational, &Rational),
    ) -> Result<Self, Error> {
        let mut statement = Self {
            key: identity.public_key()?,
            head,
            at,
            nano_rho: parts(rho, NANO),
            atto_delta: parts(delta, ATTO),
            signature: [0; SIGNATURE_BYTES],
        };
        statement.signature = identity.sign(&statement.signed(identity.fingerprint(), peer))?;
        Ok(statement)
    }

    /// Whether `signer` made it towards `peer`.
    #[must_use]
    pub fn is_of(&self, signer: KeyFingerprint, peer: KeyFingerprint) -> bool {
        KeyFingerprint::of_ed25519(&self.key) == signer
            && has_signed(&self.key, &self.signed(signer, peer), &self.signature)
    }

    /// Whether one of the keys of a party's line made it towards one of a peer's.
    #[must_use]
    pub fn is_of_any(&self, signers: &[KeyFingerprint], peers: &[KeyFingerprint]) -> bool {
        let key = KeyFingerprint::of_ed25519(&self.key);
        signers.contains(&key) && peers.iter().any(|peer| self.is_of(key, *peer))
    }

    fn body(&self) -> Vec<u8> {
        let mut body = self.key.to_vec();
        body.extend(self.head.count.to_le_bytes());
        body.extend(self.at.to_le_bytes());
        body.extend(self.head.hash);
        body.extend(self.nano_rho.to_le_bytes());
        body.extend(self.atto_delta.to_le_bytes());
        body
    }

    fn signed(&self, signer: KeyFingerprint, peer: KeyFingerprint) -> Vec<u8> {
        [SIGNED, &signer.bytes(), &peer.bytes(), &self.body()].concat()
    }

    /// As it is sent and kept.
    #[must_use]
    pub fn bytes(&self) -> [u8; STATEMENT_BYTES] {
        let all = [&self.body()[..], &self.signature].concat();
        all.try_into().expect("the parts add up")
    }

    /// Reads a statement; who signed it is for [`Statement::is_of`].
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; STATEMENT_BYTES] = bytes.try_into().ok()?;
        let (key, rest) = bytes.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let (at, rest) = rest.split_first_chunk()?;
        let (hash, rest): (&Bytes32, _) = rest.split_first_chunk()?;
        let (nano_rho, rest) = rest.split_first_chunk()?;
        let (atto_delta, signature) = rest.split_first_chunk()?;
        Some(Self {
            key: *key,
            head: ChainHead { count: u64::from_le_bytes(*count), hash: *hash },
            at: u64::from_le_bytes(*at),
            nano_rho: u64::from_le_bytes(*nano_rho),
            atto_delta: u64::from_le_bytes(*atto_delta),
            signature: signature.try_into().ok()?,
        })
        .filter(|statement| i64::try_from(statement.head.count.max(statement.at)).is_ok())
    }

    /// The day on which it was signed.
    #[must_use]
    pub fn date(&self) -> String {
        super::date(self.at.cast_signed())
    }

    /// zCDP charged towards the peer, rounded up to a billionth.
    #[must_use]
    pub fn rho(&self) -> Rational {
        release::rational::ratio(self.nano_rho, NANO)
    }

    /// Delta charged towards the peer, rounded up to 10^-18.
    #[must_use]
    pub fn delta(&self) -> Rational {
        release::rational::ratio(self.atto_delta, ATTO)
    }
}

/// A number in parts of one, rounded up; the most that there is for what is larger.
fn parts(value: &Rational, of: u64) -> u64 {
    (value * release::rational::ratio(of, 1)).ceil().to_integer().to_u64().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::cluster::pinned;
    use release::rational::ratio;

    /// What is sent, and what is signed of it.
    #[test]
    fn the_wire_is_pinned() {
        let made = Statement {
            key: [1; PUBLIC_KEY_BYTES],
            head: ChainHead { count: 2, hash: [3; 32] },
            at: 4,
            nano_rho: 5,
            atto_delta: 6,
            signature: [7; SIGNATURE_BYTES],
        };
        let [signer, peer] = [made.key, [8; PUBLIC_KEY_BYTES]].map(|key| KeyFingerprint::of_ed25519(&key));
        let digest = |bytes: &[u8]| blake3::hash(bytes).to_hex()[..16].to_owned();
        pinned(&[
            ("ledger, statement", digest(&made.bytes()), "209449eec8f5fe7f"),
            ("ledger, what a statement signs", digest(&made.signed(signer, peer)), "bf4aeb1a895bc5a6"),
        ]);
    }

    #[test]
    fn a_statement_is_of_one_signer_towards_one_peer() {
        let [own, peer, other] = [0; 3].map(|_| Identity::generate().unwrap());
        let head = ChainHead { count: 41, hash: [7; 32] };
        let (rho, delta) = (ratio(1, 3), ratio(1, 7_000_000_000u64));
        let made = Statement::sign(&own, peer.fingerprint(), head, 1_700_000_000, (&rho, &delta)).unwrap();
        let read = Statement::read(&made.bytes()).unwrap();
        assert_eq!(read, made);
        assert!(read.is_of(own.fingerprint(), peer.fingerprint()));
        assert!(!read.is_of(own.fingerprint(), other.fingerprint()));
        assert!(!read.is_of(other.fingerprint(), peer.fingerprint()));
        assert_eq!(read.rho(), ratio(333_333_334, 1_000_000_000));
        assert!(read.delta() >= delta && read.delta() < ratio(2, 7_000_000_000u64));
        for byte in 0..STATEMENT_BYTES {
            let mut bent = made.bytes();
            bent[byte] ^= 1;
            let holds =
                Statement::read(&bent).is_some_and(|bent| bent.is_of(own.fingerprint(), peer.fingerprint()));
            assert!(!holds, "byte {byte}");
        }
        assert_eq!(Statement::read(&made.bytes()[1..]), None);
        assert_eq!(Statement::read(&[0xff; STATEMENT_BYTES]), None);
    }
}
