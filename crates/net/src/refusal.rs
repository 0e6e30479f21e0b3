//! What a refused connection means to the operator: who was refused, why, and what to look at.

use crate::hello::{FORMAT_VERSION, Verdict};
use crate::identity::Fingerprint;
use crate::tls::Refusal;
use base::{ChannelError, Kind};
use std::fmt::Display;

/// The names and keys that the wording needs.
pub(crate) struct Wording {
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
        let (me, peer) = (&self.me, &self.peer());
        match refusal {
            Refusal::NotTls { http } => {
                let spoke = if *http { " but HTTP" } else { "" };
                format!(
                    "{address} did not speak TLS{spoke}; check that this is the address of {peer} and that {peer} \
                     does not use the plain transport"
                )
            }
            Refusal::OtherKey(presented) => {
                let whose = match self.keys.iter().find(|(_, key)| key == presented) {
                    Some((name, _)) => format!("the key of {name}"),
                    None => "no party of this study".to_owned(),
                };
                if self.peers.len() > 1 {
                    return format!(
                        "{address} presented {presented} ({whose}), but awaited here are {}; check the lines `key` of \
                         the study, and which identity the caller uses",
                        self.peers.join(", ")
                    );
                }
                format!(
                    "{address} presented {presented} ({whose}), but {peer} has {}; check the line `key` under \
                     [party.{peer}] of the study, and which identity {peer} uses",
                    self.key_of(peer)
                )
            }
            Refusal::OurKey => format!(
                "{address} refused our key {}; check the line `key` under [party.{me}] of the study that {peer} holds",
                self.key_of(me)
            ),
            Refusal::Silent(limit) => {
                format!("{address} said nothing for {:.1} s", limit.as_secs_f64())
            }
            Refusal::Left => format!("{address} closed the connection before it said who it is"),
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
        let peer = &self.peer();
        match verdict {
            Verdict::Question | Verdict::Taken => "the answer to our hello is none".into(),
            Verdict::Version => version_text(peer, None),
            Verdict::Roster => {
                format!("{peer} counts the parties in another order; both sides need the same study")
            }
            Verdict::Agreement => {
                format!("{peer} holds another study; `tacit check --peer` names the first line")
            }
            Verdict::Busy => format!("{peer} is in a session already; wait for its end or use another port"),
            Verdict::Session => format!("a worker connection named another session than the one with {peer}"),
            Verdict::Lane => {
                format!("a worker connection with {peer} asked for lane {}, which is not free", lanes.0)
            }
            Verdict::Lanes => format!(
                "the two sides ask for different numbers of worker lanes ({} here); both need the same `shards`",
                lanes.1
            ),
        }
    }
}

/// The two sides come from different releases.
pub(crate) fn version_text(peer: &str, theirs: Option<u16>) -> String {
    let theirs = theirs.map_or_else(|| "another version".to_owned(), |v| format!("version {v}"));
    format!(
        "{peer} speaks {theirs} of the wire format, this side version {FORMAT_VERSION}; install the same release of \
         tacit on both sides"
    )
}

/// The first digits of a hash, for the eye.
pub(crate) fn short(hash: &[u8; 32]) -> String {
    let [a, b, c, d, e, f, ..] = hash;
    format!("{a:02x}{b:02x} {c:02x}{d:02x} {e:02x}{f:02x}")
}
