//! How two ends exchange what libfabric needs, over the private channel, and greet each other.

use super::flow::Flow;
use super::shim::{EndpointName, NAME_BYTES, Shim, ShimEndpoint};
use super::{EndpointThread, leftovers};
use base::{Error, PartyId, limits};
use net::Session;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Whether ready, length of the address, address, start and key of landing, its size.
pub(crate) const CARD_BYTES: usize = 1 + 2 + NAME_BYTES + 8 + 8 + 8;
/// The greeting came.
pub(crate) const ANSWER_BYTES: usize = 1;

/// An endpoint connected to that of `peer`. The inner error says why there is none.
pub(crate) fn connect(
    session: &mut Session,
    peer: PartyId,
    provider: &str,
    ring: usize,
) -> Result<Result<EndpointThread, String>, Error> {
    let opened = open(session, peer, provider, ring);
    let card = opened.as_ref().map_or_else(|_| vec![0; CARD_BYTES], |(_, name)| encode(name, ring));
    session.link(peer).send(&card)?;
    let theirs: [u8; CARD_BYTES] = session.link(peer).recv_array()?;
    let side = match (opened, decode(&theirs)) {
        (Err(why), _) => Err(why),
        (_, None) => Err(format!("{} has no endpoint; see its own output", session.roster().name(peer))),
        (_, Some((_, size))) if size != ring as u64 => Err("the windows of the two parties differ".into()),
        (Ok((endpoint, _)), Some((name, _))) => greet(endpoint, &name, ring),
    };
    session.link(peer).send(&[u8::from(side.is_ok())])?;
    let [fine] = session.link(peer).recv_array()?;
    Ok(match side {
        Ok(_) if fine != 1 => Err(format!("{} was not reached by libfabric", session.roster().name(peer))),
        side => side,
    })
}

/// Whether an endpoint of the provider can be had here.
pub(crate) fn available(provider: &str) -> Result<(), String> {
    let ring = *crate::upgrade::WINDOWS.start();
    endpoint(provider, IpAddr::V4(Ipv4Addr::LOCALHOST), ring).map(drop)
}

fn open(
    session: &mut Session,
    peer: PartyId,
    provider: &str,
    ring: usize,
) -> Result<(ShimEndpoint, EndpointName), String> {
    // The interface that TLS came over; within a process there is none, and loopback will do.
    let ip = session.link(peer).local_ip().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let mut endpoint = endpoint(provider, ip, ring)?;
    let name = endpoint.name()?;
    Ok((endpoint, name))
}

fn endpoint(provider: &str, ip: IpAddr, ring: usize) -> Result<ShimEndpoint, String> {
    let shim = Shim::load()?;
    let node = match provider {
        "shm" => {
            leftovers::sweep();
            leftovers::name()
        }
        _ => Some(ip.to_string()),
    };
    ShimEndpoint::open(shim, provider, node.as_deref(), ring)
        .map_err(|e| format!("libfabric's provider {provider} cannot be opened: {e}; `fi_info` lists them"))
}

/// The first write each way, so that a path that does not work is found now.
fn greet(mut endpoint: ShimEndpoint, peer: &EndpointName, ring: usize) -> Result<EndpointThread, String> {
    endpoint.connect(peer)?;
    let side = EndpointThread::new(Flow::new(endpoint, ring), ring)?;
    let patience = Duration::from_millis(limits::HANDSHAKE_MS);
    let greeted = side.wait(patience, |flow| flow.greeted && flow.settled(), || Ok(()));
    greeted.map_err(|e| format!("the peer is not reached by libfabric: {e}"))?;
    Ok(side)
}

fn encode(name: &EndpointName, ring: usize) -> Vec<u8> {
    let mut card = vec![1];
    card.extend((name.address.len() as u16).to_le_bytes());
    card.extend(&name.address);
    card.resize(3 + NAME_BYTES, 0);
    for number in [name.start, name.key, ring as u64] {
        card.extend(number.to_le_bytes());
    }
    card
}

/// Decodes a card and forgets it, for the crate `fuzzing`.
pub(crate) fn try_card(card: &[u8; CARD_BYTES]) {
    let _ = decode(card);
}

fn decode(card: &[u8; CARD_BYTES]) -> Option<(EndpointName, u64)> {
    let length = usize::from(u16::from_le_bytes([card[1], card[2]]));
    if card[0] != 1 || length == 0 || length > NAME_BYTES {
        return None;
    }
    let numbers = &card[3 + NAME_BYTES..];
    let number = |i: usize| u64::from_le_bytes(numbers[8 * i..8 * i + 8].try_into().expect("8 bytes"));
    let address = card[3..3 + length].to_vec();
    Some((EndpointName { address, start: number(0), key: number(1) }, number(2)))
}
