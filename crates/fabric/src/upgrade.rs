//! From TLS to a plain transport: all peers of a session at once, or none.

use crate::{PairKeys, SealedChannel};
use base::{Error, PartyId, limits};
use net::{Channel, Session};
use std::fmt;

/// A plain transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlainTransport {
    /// Memory shared by processes of one host.
    Shm,
    /// libfabric.
    Fabric {
        /// Its name as `fi_info` lists it: `tcp`, `shm`. Others (`verbs`) are not tested.
        provider: String,
    },
}

impl fmt::Display for PlainTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shm => write!(f, "shm"),
            Self::Fabric { provider } => write!(f, "fabric-{provider}"),
        }
    }
}

/// What came of an upgrade: the same at all parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpgradeOutcome {
    /// Every peer is spoken to over this transport.
    Upgraded(PlainTransport),
    /// The parties are not on one host: they go on over TLS, all of them. The text says which pair it was, or
    /// that another party said so.
    Kept(String),
}

/// Smallest and largest window of a plain transport.
pub(crate) const WINDOWS: std::ops::RangeInclusive<usize> = (4 << 10)..=(64 << 20);

/// Exchanges the channels of `session` to all `peers` for plain ones of `kind`, each under [`SealedChannel`].
/// All parties call it at the same place of the protocol, with the same arguments and nothing under way,
/// after they met over TLS. It books its bytes ([`upgrade_bytes`]) at the step `upgrade`; ledger, steps and
/// deadlines go on.
///
/// The TLS channel is kept inside the new one: it is silent from now on, and its end is the end of the
/// conversation.
///
/// [`PlainTransport::Shm`] finds out whether the parties share a host; where two do not, all keep TLS
/// ([`UpgradeOutcome::Kept`]).
///
/// # Errors
/// Without `trusted_network`: bytes would travel in plain text. When the session is not private: keys are
/// agreed over TLS. When libfabric, its shim or the provider is missing at one party: all stop. When a peer
/// is gone.
pub fn upgrade(
    session: &mut Session,
    peers: &[PartyId],
    kind: &PlainTransport,
    trusted_network: bool,
) -> Result<UpgradeOutcome, Error> {
    upgrade_with(session, peers, kind, trusted_network, limits::WINDOW_BYTES)
}

/// As [`upgrade`], with windows of another size.
///
/// # Errors
/// As [`upgrade`], and when the window is below 4 KiB or above 64 MiB.
pub fn upgrade_with(
    session: &mut Session,
    peers: &[PartyId],
    kind: &PlainTransport,
    trusted_network: bool,
    window: usize,
) -> Result<UpgradeOutcome, Error> {
    if !trusted_network {
        return Err(Error::refused(format!(
            "the transport {kind} carries bytes in plain text: set trusted_network = true in the party file \
             where all parties trust the network between them, or use TLS"
        )));
    }
    if !WINDOWS.contains(&window) {
        return Err(Error::misuse(format!("a window of {window} bytes: 4 KiB to 64 MiB are possible")));
    }
    session.step("upgrade", |session| {
        let mut peers = peers.to_vec();
        peers.sort_unstable();
        peers.dedup();
        // Every party goes through its peers in order, so that no three wait for each other in a circle.
        let mut ready = Vec::new();
        for &peer in &peers {
            let keys = PairKeys::agree(session, peer)?;
            ready.push((peer, keys, prepare(session, peer, kind, window)?));
        }
        let own = ready.iter().find_map(|(_, _, plain)| plain.as_ref().err().cloned());
        match (agree(session, &peers, own.is_none())?, kind) {
            (None, _) => {}
            (Some(_), PlainTransport::Shm) => {
                let other = "another party is not on the host of the others".to_owned();
                return Ok(UpgradeOutcome::Kept(own.unwrap_or(other)));
            }
            (Some(who), PlainTransport::Fabric { .. }) => {
                let name = session.roster().name(who);
                let other = format!("{name} cannot use the transport {kind}; see {name}'s own output");
                return Err(Error::input(own.unwrap_or(other)));
            }
        }
        for (peer, keys, plain) in ready {
            let name = format!("the {kind} channel to {}", session.roster().name(peer));
            if let Ok(plain) = plain {
                session.replace_channel(peer, |old| plain.over(old, keys, name));
            }
        }
        Ok(UpgradeOutcome::Upgraded(kind.clone()))
    })
}

/// Whether this process could take its side of an upgrade to `kind`, as far as it can tell alone.
///
/// # Errors
/// What is missing, and how to get it.
pub fn available(kind: &PlainTransport) -> Result<(), String> {
    match kind {
        PlainTransport::Shm if cfg!(target_os = "linux") => Ok(()),
        PlainTransport::Shm => Err("shared memory between parties needs Linux".to_owned()),
        PlainTransport::Fabric { provider } => crate::libfabric::meet::available(provider),
    }
}

/// Bytes that [`upgrade`] sends to one peer.
#[must_use]
pub fn upgrade_bytes(me: PartyId, peer: PartyId, kind: &PlainTransport) -> u64 {
    let pair = match kind {
        PlainTransport::Shm if me < peer => crate::shm::meet::OFFER_BYTES,
        PlainTransport::Shm => crate::shm::meet::ANSWER_BYTES,
        PlainTransport::Fabric { .. } => {
            crate::libfabric::meet::CARD_BYTES + crate::libfabric::meet::ANSWER_BYTES
        }
    };
    (crate::sealed::KEY_BYTES + pair + VERDICT_BYTES) as u64
}

/// Whether all channels of a party are ready.
const VERDICT_BYTES: usize = 1;

/// A plain channel that is ready to take over.
enum Plain {
    Shm(crate::shm::Mapped),
    Fabric(crate::libfabric::EndpointThread),
}

fn prepare(
    session: &mut Session,
    peer: PartyId,
    kind: &PlainTransport,
    window: usize,
) -> Result<Result<Plain, String>, Error> {
    Ok(match kind {
        PlainTransport::Shm => crate::shm::meet::map(session, peer, window)?.map(Plain::Shm),
        PlainTransport::Fabric { provider } => {
            crate::libfabric::meet::connect(session, peer, provider, window)?.map(Plain::Fabric)
        }
    })
}

impl Plain {
    fn over(self, life: Box<dyn Channel>, keys: PairKeys, name: String) -> Box<dyn Channel> {
        match self {
            Self::Shm(mapped) => Box::new(SealedChannel::in_rings(mapped.channel(life), keys, name)),
            Self::Fabric(side) => Box::new(SealedChannel::new(side.channel(life), keys, name)),
        }
    }
}

/// Tells all whether this party is ready, and hears it of all: the first that is not.
fn agree(session: &mut Session, peers: &[PartyId], ready: bool) -> Result<Option<PartyId>, Error> {
    for &peer in peers {
        session.link(peer).send(&[u8::from(ready)])?;
        session.link(peer).flush()?;
    }
    let mut missing = (!ready).then_some(session.me());
    for &peer in peers {
        let [theirs] = session.link(peer).recv_array()?;
        if theirs != 1 {
            missing = missing.or(Some(peer));
        }
    }
    Ok(missing)
}
