//! What carries the computation among the four servers of a study: what a party sets, and what it protects
//! against. Owners without a seat, and everything but the computation, keep TLS.

use crate::Study;
use base::Error;
use fabric::PlainTransport;
use std::fmt;

/// What a party sets (`transport`); the four servers of a study set the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerTransport {
    /// TLS, as everything else.
    #[default]
    Tls,
    /// Shared memory where all four are on one host, else TLS.
    Auto,
    /// This one or none.
    Plain(PlainTransport),
}

/// libfabric's provider where none is named.
const PROVIDER: &str = "tcp";
const FABRIC: &str = "fabric-";
/// Bytes in which a transport is told: its name, then zeros.
pub const NAME_BYTES: usize = 32;

impl ServerTransport {
    /// `tls`, `auto`, `shm`, `fabric`, `fabric-PROVIDER`.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let provider = |text: &str| {
            let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_;".contains(c);
            (1..=NAME_BYTES - FABRIC.len()).contains(&text.len()) && text.chars().all(known)
        };
        match text {
            "tls" => Ok(Self::Tls),
            "auto" => Ok(Self::Auto),
            "shm" => Ok(Self::Plain(PlainTransport::Shm)),
            "fabric" => Ok(Self::Plain(PlainTransport::Fabric { provider: PROVIDER.into() })),
            _ => match text.strip_prefix(FABRIC) {
                Some(name) if provider(name) => {
                    Ok(Self::Plain(PlainTransport::Fabric { provider: name.into() }))
                }
                _ => Err(
                    "write \"tls\", \"auto\" (shared memory on one host, else TLS), \"shm\", \"fabric\" or \
                          \"fabric-PROVIDER\" with a provider of libfabric: fabric-tcp, fabric-shm",
                ),
            },
        }
    }

    /// What a party file says, with nothing missing. Who trusts the network and names no transport takes
    /// shared memory where it can.
    ///
    /// # Errors
    /// A plain transport without `trusted_network`.
    pub fn of(said: Option<Self>, trusted_network: Option<bool>) -> Result<Self, Error> {
        let trusted = trusted_network == Some(true);
        match said {
            None if trusted => Ok(Self::Auto),
            None | Some(Self::Tls) => Ok(Self::Tls),
            Some(said) if trusted => Ok(said),
            Some(said) => Err(Error::refused(format!(
                "transport = \"{said}\" and no trusted_network = true: over it messages travel in plain \
                 text, which is for a host or a network that only the operators of the four servers can \
                 touch. If that is so, add trusted_network = true to the party file, or --trusted-network to \
                 the command; if not, use transport = \"tls\""
            ))),
        }
    }

    /// Whether a server that is set to this may compute a study: the owners may have agreed on a transport.
    ///
    /// # Errors
    /// Says what the study wants and what the server is set to.
    pub fn admit(&self, study: &Study) -> Result<(), Error> {
        match study.servers.as_ref().and_then(|servers| servers.transport.as_ref()) {
            Some(agreed) if agreed != self => Err(Error::input(format!(
                "the study says [ring4] transport = \"{agreed}\", and this server is set to \"{self}\": set \
                 transport = \"{agreed}\" in its party file, or agree on another study"
            ))),
            _ => Ok(()),
        }
    }

    /// The plain transport to try.
    #[must_use]
    pub fn plain(&self) -> Option<PlainTransport> {
        match self {
            Self::Tls => None,
            Self::Auto => Some(PlainTransport::Shm),
            Self::Plain(kind) => Some(kind.clone()),
        }
    }

    /// Settings of the engine, with the transport where it is not the usual one.
    pub fn in_settings(&self, settings: String) -> String {
        match self {
            Self::Tls => settings,
            _ => format!("{settings}, over {self}"),
        }
    }

    /// The name as it is told to the others.
    #[must_use]
    pub fn told(&self) -> [u8; NAME_BYTES] {
        let mut bytes = [0; NAME_BYTES];
        let name = self.to_string();
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        bytes
    }

    /// The transport that [`ServerTransport::told`] tells.
    #[must_use]
    pub fn heard(bytes: &[u8; NAME_BYTES]) -> Option<Self> {
        let text = bytes.split(|byte| *byte == 0).next()?;
        let read = Self::parse(std::str::from_utf8(text).ok()?).ok()?;
        (read.told() == *bytes).then_some(read)
    }
}

impl fmt::Display for ServerTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tls => f.write_str("tls"),
            Self::Auto => f.write_str("auto"),
            Self::Plain(kind) => kind.fmt(f),
        }
    }
}

/// What a transport protects against, in sentences.
#[must_use]
pub fn protects(name: &str) -> String {
    let rest = "What is altered on the way is noticed. Keys, matching, the owners' shares and the outputs go \
                over TLS.";
    match ServerTransport::parse(name) {
        Ok(ServerTransport::Plain(PlainTransport::Shm)) => format!(
            "The servers run on one host and compute over memory that their processes share, in plain text \
             under masks: no server reads there what is meant for others. {rest} Whoever administers that \
             host can look into all four and learn everything."
        ),
        Ok(ServerTransport::Plain(PlainTransport::Fabric { provider })) => format!(
            "The servers compute over libfabric ({provider}), in plain text under masks: no server reads \
             there what is meant for others, and whoever else reads that network sees what all four see, and \
             how much goes when. {rest}"
        ),
        _ => "Everything between the servers goes over TLS between pinned keys: nobody else reads it or \
              alters it unnoticed."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_shown() {
        for name in ["tls", "auto", "shm", "fabric-tcp", "fabric-verbs;ofi_rxm"] {
            let read = ServerTransport::parse(name).unwrap();
            assert_eq!(read.to_string(), name);
            assert_eq!(ServerTransport::heard(&read.told()), Some(read));
        }
        assert_eq!(ServerTransport::parse("fabric").unwrap().to_string(), "fabric-tcp");
        let long = format!("fabric-{}", "a".repeat(NAME_BYTES));
        for wrong in ["", "TLS", "tcp", "fabric-", "fabric-a b", &long] {
            assert!(ServerTransport::parse(wrong).unwrap_err().starts_with("write \"tls\""), "{wrong}");
        }
        for wrong in [[0; NAME_BYTES], [255; NAME_BYTES]] {
            assert_eq!(ServerTransport::heard(&wrong), None);
        }
        let mut two = ServerTransport::Tls.told();
        two[10] = 1;
        assert_eq!(ServerTransport::heard(&two), None);
    }

    #[test]
    fn plain_text_wants_a_trusted_network() {
        let shm = || Some(ServerTransport::Plain(PlainTransport::Shm));
        assert_eq!(ServerTransport::of(None, None).unwrap(), ServerTransport::Tls);
        assert_eq!(ServerTransport::of(None, Some(true)).unwrap(), ServerTransport::Auto);
        assert_eq!(
            ServerTransport::of(Some(ServerTransport::Tls), Some(true)).unwrap(),
            ServerTransport::Tls
        );
        assert_eq!(
            ServerTransport::of(shm(), Some(true)).unwrap(),
            ServerTransport::Plain(PlainTransport::Shm)
        );
        for (said, trusted) in [(shm(), None), (shm(), Some(false)), (Some(ServerTransport::Auto), None)] {
            let error = ServerTransport::of(said, trusted).unwrap_err().to_string();
            assert!(
                error.contains("messages travel in plain text") && error.contains("trusted_network = true")
            );
        }
    }
}
