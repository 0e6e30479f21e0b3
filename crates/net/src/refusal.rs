//! What a refused connection means to the operator: who was refused, why, and what to look at.

use crate::hello::{FORMAT_VERSION, HelloVerdict};
use crate::identity::KeyFingerprint;
use crate::tls::TlsRefusal;
use base::{ChannelError, Fault};
use std::fmt::Display;

/// What the parties agreed on and which of their own lines to check, in the operator's words. Those of a
/// study unless told. `{party}` stands for the name of a party.
#[derive(Clone, Copy, Debug)]
pub struct OperatorTerms {
    /// What all parties hold: "study".
    pub document: &'static str,
    /// How to find in what two of them differ, as a sentence without its full stop.
    pub differ: &'static str,
    /// Where the key of a party stands.
    pub key: &'static str,
    /// Where the keys of all parties stand.
    pub keys: &'static str,
    /// Where this party names its own identity file.
    pub identity: &'static str,
    /// Where this party writes the address of a peer.
    pub address: &'static str,
    /// Where this party writes the networks that it takes connections from.
    pub allow: &'static str,
}

impl Default for OperatorTerms {
    fn default() -> Self {
        Self {
            document: "study",
            differ: "`tacit check --peer-study` names the first line in which the two files differ",
            key: "the line `key` under [party.{party}] of the study",
            keys: "the lines `key` of the study",
            identity: "`identity` in this party's own file",
            address: "`peer`",
            allow: "`allow`",
        }
    }
}

impl OperatorTerms {
    pub(crate) fn key_of(&self, party: &str) -> String {
        self.key.replace("{party}", party)
    }
}

/// The names and keys that the wording needs.
pub(crate) struct Wording {
    pub terms: OperatorTerms,
    pub me: String,
    /// Who may be behind the connection: one peer, or all that are awaited.
    pub peers: Vec<String>,
    /// Names and keys of all parties of the study; empty without TLS.
    pub keys: Vec<(String, KeyFingerprint)>,
}

impl Wording {
    fn peer(&self) -> String {
        self.peers.join(" or ")
    }

    fn key_of(&self, party: &str) -> String {
        let found = self.keys.iter().find(|(name, _)| name == party);
        found.map_or_else(|| "no key".to_owned(), |(_, key)| key.to_string())
    }

    /// What to tell the operator about a refused connection with `address`.
    pub(crate) fn text(&self, refusal: &TlsRefusal, address: &dyn Display) -> String {
        let (me, peer, terms) = (&self.me, &self.peer(), &self.terms);
        match refusal {
            TlsRefusal::NotTls { http } => {
                let spoke = if *http { " but HTTP" } else { "" };
                format!(
                    "{address} did not speak TLS{spoke}; check that this is the address of {peer} and that \
                     {peer} does not use the plain transport"
                )
            }
            TlsRefusal::OtherKey(presented) => {
                let whose = match self.keys.iter().find(|(_, key)| key == presented) {
                    Some((name, _)) => format!("the key of {name}"),
                    None => format!("no party of this {}", terms.document),
                };
                if self.peers.len() > 1 {
                    return format!(
                        "{address} presented {presented} ({whose}), but awaited here are {}; check {}, \
                         and which identity the caller uses",
                        self.peers.join(", "),
                        terms.keys
                    );
                }
                format!(
                    "{address} presented {presented} ({whose}), but {peer} has {}; check {}, and which \
                     identity {peer} uses",
                    self.key_of(peer),
                    terms.key_of(peer)
                )
            }
            TlsRefusal::OurKey => format!(
                "{address} refused our key {}; check {} that {peer} holds",
                self.key_of(me),
                terms.key_of(me)
            ),
            TlsRefusal::Silent(limit) => {
                format!("{address} said nothing for {:.1} s", limit.as_secs_f64())
            }
            TlsRefusal::Left => format!("{address} closed the connection before it said who it is"),
            TlsRefusal::Outside => format!(
                "{address} is in none of the networks that {me} takes connections from; if it is {peer}, add \
                 its network to {}",
                terms.allow
            ),
            TlsRefusal::Tls(text) => format!("the TLS handshake with {address} failed: {text}"),
            TlsRefusal::Io(text) => format!("the connection with {address} failed: {text}"),
            TlsRefusal::Hello(text) => format!("{address}: {text}"),
        }
    }

    /// Whether the operator must change something (a key, a study) or may simply try again.
    pub(crate) fn kind(refusal: &TlsRefusal, text: String) -> Fault {
        match refusal {
            TlsRefusal::OtherKey(_) | TlsRefusal::OurKey | TlsRefusal::Hello(_) => Fault::Input(text),
            _ => Fault::Channel(ChannelError::Io(text)),
        }
    }

    /// What a verdict on a hello means, in the same words on both sides.
    pub(crate) fn verdict(&self, verdict: HelloVerdict, lanes: (u32, u32)) -> String {
        let (peer, OperatorTerms { document, differ, .. }) = (&self.peer(), &self.terms);
        match verdict {
            HelloVerdict::Question | HelloVerdict::Taken => "the answer to our hello is none".into(),
            HelloVerdict::Wait => format!("{peer} waits to be told to begin"),
            HelloVerdict::Declined => format!(
                "{peer} takes no part: it has refused this {document} by itself, and nothing was sent; see \
                 {peer}'s own output"
            ),
            HelloVerdict::Version => version_text(peer, None),
            HelloVerdict::Roster => {
                format!("{peer} counts the parties in another order; both sides need the same {document}")
            }
            HelloVerdict::Agreement => format!("{peer} holds another {document}; {differ}"),
            HelloVerdict::Busy => {
                format!("{peer} is in a session already; wait for its end or use another port")
            }
            HelloVerdict::Session => {
                format!("a worker connection named another session than the one with {peer}")
            }
            HelloVerdict::Lane => {
                format!("a worker connection with {peer} asked for lane {}, which is not free", lanes.0)
            }
            HelloVerdict::Lanes => format!(
                "the two sides ask for different numbers of worker lanes ({} here); both need the same \
                 `shards`",
                lanes.1
            ),
        }
    }
}

/// The two sides come from different releases.
pub(crate) fn version_text(peer: &str, theirs: Option<u16>) -> String {
    let theirs = theirs.map_or_else(|| "another version".to_owned(), |v| format!("version {v}"));
    format!(
        "{peer} speaks {theirs} of the wire format, this side version {FORMAT_VERSION}; install the same \
         release of tacit on both sides"
    )
}

/// The first digits of a hash, for the eye.
pub(crate) fn short(hash: &[u8; 32]) -> String {
    [0..2, 2..4, 4..6].map(|bytes| base::hex(&hash[bytes])).join(" ")
}
