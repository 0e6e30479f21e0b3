//! All peers at once: one message to and from each of them.

use crate::Session;
use base::{Error, PartyId};

/// What one party says to one peer and hears from it at the same time. Both lengths are known beforehand.
pub struct PeerExchange {
    /// With whom.
    pub peer: PartyId,
    /// What is said.
    pub send: Vec<u8>,
    /// What is heard, of the length that is expected.
    pub hear: Vec<u8>,
}

impl PeerExchange {
    /// Nothing to say or hear yet.
    #[must_use]
    pub fn new(peer: PartyId) -> Self {
        Self { peer, send: Vec::new(), hear: Vec::new() }
    }
}

/// Sends to all peers, then receives from all, in pieces of at most `piece` bytes: a peer is at most one
/// piece ahead, so nobody waits for a window that holds two. Messages of one piece are sent and received
/// whole.
///
/// # Errors
/// Those of the channels.
pub fn exchange(session: &mut Session, piece: usize, talks: &mut [PeerExchange]) -> Result<(), Error> {
    let longest = talks.iter().map(|t| t.send.len().max(t.hear.len())).max().unwrap_or(0);
    for from in (0..longest).step_by(piece.max(1)) {
        for talk in talks.iter().filter(|t| t.send.len() > from) {
            let mut link = session.link(talk.peer);
            link.send(&talk.send[from..talk.send.len().min(from + piece)])?;
            link.flush()?;
        }
        for talk in talks.iter_mut().filter(|t| t.hear.len() > from) {
            let end = talk.hear.len().min(from + piece);
            session.link(talk.peer).recv(&mut talk.hear[from..end])?;
        }
    }
    Ok(())
}
