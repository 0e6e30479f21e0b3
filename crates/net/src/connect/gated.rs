//! The names by which parties come through gates, and the gate before this one.

use super::effort::Effort;
use super::{ChannelSecurity, Meet, RETRY, Status};
use crate::gate::link::{GateLink, NoGate};
use crate::gate::{GateAccess, meeting_label};
use base::{At, ChannelError, Error, Fault, PartyId};
use std::net::SocketAddr;
use std::time::Instant;

/// Who is waited for, where that is a gate.
const GATE: &str = "the gate";

impl Meet {
    /// The name by which this party asks for a peer.
    pub(super) fn label_of(&self, peer: PartyId) -> String {
        match &self.transport {
            ChannelSecurity::Tls { keys, .. } => {
                keys.get(peer.index()).map(|key| meeting_label(&self.agreement, key)).unwrap_or_default()
            }
            // Without TLS there is nothing that could ask.
            ChannelSecurity::Tcp => String::new(),
        }
    }

    /// Keeps the routes of this meeting at the gate until everybody is there, whatever becomes of the gate
    /// meanwhile.
    pub(super) fn keep_routes(
        &self,
        access: &GateAccess,
        listens: SocketAddr,
        until: Instant,
        effort: &Effort,
    ) -> Result<Option<GateLink>, Error> {
        let mut link: Option<GateLink> = None;
        while !effort.over() && Instant::now() < until {
            if link.as_mut().is_some_and(|link| !link.gone()) {
                effort.pause(RETRY.1);
                continue;
            }
            link = match self.register(access, listens)? {
                Ok(link) => Some(link),
                Err(why) if Instant::now() + RETRY.1 >= until => return Err(self.no_gate(access, &why)),
                Err(why) => {
                    let (peer, at) = (GATE.to_owned(), access.address.clone());
                    (self.watch)(&Status::Waiting { peer, at, why });
                    effort.pause(RETRY.1);
                    None
                }
            };
        }
        Ok(link)
    }

    /// The outer error stays, the inner one says why to try again.
    fn register(&self, access: &GateAccess, listens: SocketAddr) -> Result<Result<GateLink, String>, Error> {
        let ChannelSecurity::Tls { identity, .. } = &self.transport else {
            return Err(Error::misuse("a gate hands TLS on"));
        };
        let mut link = match GateLink::open(access, identity, &self.stop) {
            Ok(link) => link,
            Err(NoGate { why, stays: true }) => return Err(self.no_gate(access, &why)),
            Err(NoGate { why, stays: false }) => return Ok(Err(why)),
        };
        match link.meet(&self.agreement, &identity.fingerprint(), listens) {
            Ok(()) => Ok(Ok(link)),
            Err(error) => match error.kind() {
                Fault::Channel(ChannelError::Io(why)) => Ok(Err(why.clone())),
                _ => Err(error),
            },
        }
    }

    fn no_gate(&self, access: &GateAccess, why: &str) -> Error {
        let text = format!("no route at the gate at {}: {why}", access.address);
        Error::new(At { peer: None, ..self.at(&[]) }, Fault::Channel(ChannelError::Io(text)))
    }
}
