//! What the crate `fuzzing` feeds with bytes: decoders that nobody else calls from outside.

use crate::farewell::{NOTICE_BYTES, example, try_notice};
use crate::gate::words::GateWord;
use crate::hello::{HELLO_BYTES, Hello};
use crate::identity::KeyFingerprint;
use rustls::pki_types::CertificateDer;

/// Length of what [`hello`] and [`farewell`] take.
pub const SIZES: [usize; 2] = [HELLO_BYTES, NOTICE_BYTES];

/// The first words of a connection. What decodes must encode to the same bytes.
pub fn hello(bytes: &[u8; HELLO_BYTES]) {
    if let Ok(hello) = Hello::decode(bytes) {
        assert_eq!(hello.encode(), *bytes, "a hello has one form");
    }
}

/// What a coordinator says to its gate: what decodes must encode to the same bytes.
pub fn gate_word(bytes: &[u8]) {
    let Some((head, body)) = bytes.split_first_chunk() else { return };
    let body = &body[..body.len().min(GateWord::body_bytes(head))];
    if let Some(word) = GateWord::decode(head, body) {
        assert_eq!(word.encode(), [&head[..], body].concat(), "a word has one form");
    }
}

/// Words to begin with.
#[must_use]
pub fn gate_words() -> Vec<Vec<u8>> {
    crate::gate::words::example().into()
}

/// The last words of a party that stops.
pub fn farewell(bytes: &[u8; NOTICE_BYTES]) {
    try_notice(bytes);
}

/// A certificate that a peer shows.
pub fn certificate(bytes: &[u8]) {
    let _ = KeyFingerprint::of_certificate(&CertificateDer::from(bytes));
}

/// A hello of each sort, and a farewell: what inputs begin with.
#[must_use]
pub fn examples() -> Vec<Vec<u8>> {
    use crate::hello::{FORMAT_VERSION, HelloVerdict, Topic};
    let topics = [
        Topic::Control { nonce: [1; 32], agreement: [2; 32] },
        Topic::Worker { session: [3; 32], lane: 1, first: 2, count: 3 },
        Topic::Begin { agreement: [4; 32] },
        Topic::Lane { nonce: [5; 32], run: [6; 32], lane: 7, generation: 8 },
        Topic::Routes,
        Topic::Services,
    ];
    let (from, to) = (base::PartyId(0), base::PartyId(1));
    let hello = |topic| Hello { version: FORMAT_VERSION, from, to, verdict: HelloVerdict::Question, topic };
    let hellos = topics.into_iter().map(|topic| hello(topic).encode().to_vec());
    hellos.chain([example().to_vec()]).collect()
}
