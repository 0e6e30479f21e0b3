//! Connections between the services of two organisations: the same TLS 1.3 with pinned keys as those of runs,
//! and a hello of their own, so that neither is taken for the other. Who reads and writes is asynchronous,
//! and none of this crate's business.

use crate::hello::{FORMAT_VERSION, Hello, HelloVerdict, NoHello, Topic};
use crate::identity::{Identity, KeyFingerprint};
use crate::tls::Tls;
use base::{Error, PartyId};
use rustls::client::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::server::ServerConfig;
use std::sync::Arc;

/// Bytes of a hello.
pub const HELLO_BYTES: usize = crate::hello::HELLO_BYTES;

/// How to dial other services and how to listen for them.
#[derive(Clone)]
pub struct ServiceTls {
    /// Of who dials. The name that it asks for is not looked at.
    pub dialer: Arc<ClientConfig>,
    /// Of who listens.
    pub listener: Arc<ServerConfig>,
}

impl ServiceTls {
    /// Speaks as `identity`, and only to who proves one of these keys.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(identity: &Identity, peers: Vec<KeyFingerprint>) -> Result<Self, Error> {
        let Tls { client: dialer, server: listener } = Tls::new(identity, peers)?;
        Ok(Self { dialer, listener })
    }
}

/// The key that the other side has proven, of the certificates of a connection.
#[must_use]
pub fn proven_key(certificates: Option<&[CertificateDer<'_>]>) -> Option<KeyFingerprint> {
    KeyFingerprint::of_certificate(certificates?.first()?)
}

/// What a hello of a service says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceHello {
    /// The dialling side wants to speak.
    Question,
    /// The listening side speaks.
    Taken,
    /// The listening side has too many connections with this peer.
    Busy,
}

impl ServiceHello {
    /// Its bytes.
    #[must_use]
    pub fn bytes(self) -> [u8; HELLO_BYTES] {
        let verdict = match self {
            Self::Question => HelloVerdict::Question,
            Self::Taken => HelloVerdict::Taken,
            Self::Busy => HelloVerdict::Busy,
        };
        let (from, to) = (PartyId(0), PartyId(0));
        Hello { version: FORMAT_VERSION, from, to, verdict, topic: Topic::Services }.encode()
    }

    /// What bytes say.
    ///
    /// # Errors
    /// In words, what they are instead.
    pub fn read(bytes: &[u8; HELLO_BYTES]) -> Result<Self, String> {
        match Hello::decode(bytes) {
            Ok(Hello { topic: Topic::Services, from: PartyId(0), to: PartyId(0), verdict, .. }) => {
                match verdict {
                    HelloVerdict::Question => Ok(Self::Question),
                    HelloVerdict::Taken => Ok(Self::Taken),
                    HelloVerdict::Busy => Ok(Self::Busy),
                    _ => Err("the other side answers what no service does".to_owned()),
                }
            }
            Ok(_) => Err("the other side is a run of `tacit run`, and no service".to_owned()),
            Err(NoHello::Version(theirs)) => Err(format!(
                "the other side speaks format {theirs} and this one {FORMAT_VERSION}: both need the same \
                 version of tacit"
            )),
            Err(NoHello::Magic | NoHello::Malformed) => {
                Err("the other side is no service of tacit".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_of_a_service_is_no_other() {
        for hello in [ServiceHello::Question, ServiceHello::Taken, ServiceHello::Busy] {
            assert_eq!(ServiceHello::read(&hello.bytes()), Ok(hello));
        }
        let (from, to, verdict) = (PartyId(0), PartyId(0), HelloVerdict::Question);
        let run = Hello { version: FORMAT_VERSION, from, to, verdict, topic: Topic::Routes };
        assert!(ServiceHello::read(&run.encode()).unwrap_err().contains("no service"));
        assert!(ServiceHello::read(&[0; HELLO_BYTES]).is_err());
    }
}
