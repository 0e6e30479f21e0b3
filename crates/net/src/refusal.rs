//! What a refused connection means to the operator: who was refused, why, and what to look at.

use crate::hello::{FORMAT_VERSION, Verdict};
use crate::identity::Fingerprint;
use crate::tls::Refusal;
use base::{ChannelError, Kind};
use std::fmt::Display;

/// What the parties agreed on and which of their own lines to check, in the operator's words. Those of a
/// study unless told. `{party}` stands for the name of a party.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
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

impl Default for Terms {
    fn default() -> Self {
        Self {
            document: "study",
            differ: "`tacit check --peer` names the first line in which the two files differ",
            key: "the line `key` under [party.{party}] of the study",
            keys: "the lines `key` of the study",
            identity: "`identity` in this party's own file",
            address: "`peer`",
            allow: "`allow`",
        }
    }
}

impl Terms {
    pub(crate) fn key_of(&self, party: &str) -> String {
        self.key.replace("{party}", party)
    }
}

/// The names and keys that the wording needs.
pub(crate) struct Wording {
    pub terms: Terms,
    pub me: String,
    /// Who may be behind the connection: one peer, or all that are awaited.
    pub peers: Vec<String>,
    /// Names and keys of all parties of the study; empty without TLS.
    pub keys: Vec<(String, Fingerprint)>,
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
    pub(crate) fn text(&self, refusal: &Refusal, address: &dyn Display) -> String {
        let (me, peer, terms) = (&self.me, &self.peer(), &self.terms);
        match refusal {
            Refusal::NotTls { http } => {
                let spoke = if *http { " but HTTP" } else { "" };
                format!(
                    "{address} did not speak TLS{spoke}; check that this is the address of {peer} and that \
                     {peer} does not use the plain transport"
                )
            }
            Refusal::OtherKey(presented) => {
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
            Refusal::OurKey => format!(
                "{address} refused our key {}; check {} that {peer} holds",
                self.key_of(me),
                terms.key_of(me)
            ),
            Refusal::Silent(limit) => {
                format!("{address} said nothing for {:.1} s", limit.as_secs_f64())
            }
            Refusal::Left => format!("{address} closed the connection before it said who it is"),
            Refusal::Outside => format!(
                "{address} is in none of the networks that {me} takes connections from; if it is {peer}, add \
                 its network to {}",
                terms.allow
            ),
            Refusal::Tls(text) => format!("the TLS handshake with {address} failed: {text}"),
            Refusal::Io(text) => format!("the connection with {address} failed: {text}"),
            Refusal::Hello(text) => format!("{address}: {text}"),
        }
    }

    /// Whether the operator must change something (a key, a study) or may simply try again.
    pub(crate) fn kind(refusal: &Refusal, text: String) -> Kind {
        match refusal {
            Refusal::OtherKey(_) | Refusal::OurKey | Refusal::Hello(_) => Kind::Input(text),
            _ => Kind::Channel(ChannelError::Io(text)),
        }
    }

    /// What a verdict on a hello means, in the same words on both sides.
    pub(crate) fn verdict(&self, verdict: Verdict, lanes: (u32, u32)) -> String {
        let (peer, Terms { document, differ, .. }) = (&self.peer(), &self.terms);
        match verdict {
            Verdict::Question | Verdict::Taken => "the answer to our hello is none".into(),
            Verdict::Wait => format!("{peer} waits to be told to begin"),
            Verdict::Declined => format!(
                "{peer} takes no part: it has refused this {document} by itself, and nothing was sent; see \
                 {peer}'s own output"
            ),
            Verdict::Version => version_text(peer, None),
            Verdict::Roster => {
                format!("{peer} counts the parties in another order; both sides need the same {document}")
            }
            Verdict::Agreement => format!("{peer} holds another {document}; {differ}"),
            Verdict::Busy => format!("{peer} is in a session already; wait for its end or use another port"),
            Verdict::Session => format!("a worker connection named another session than the one with {peer}"),
            Verdict::Lane => {
                format!("a worker connection with {peer} asked for lane {}, which is not free", lanes.0)
            }
            Verdict::Lanes => format!(
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
