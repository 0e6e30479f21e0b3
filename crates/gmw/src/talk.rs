//! All peers at once: one message to and from each of them.

use base::{Error, PartyId};
use net::Session;

/// What one party says to one peer and hears from it at the same time. Both lengths are known beforehand.
pub(crate) struct Talk {
    pub peer: PartyId,
    pub send: Vec<u8>,
    pub hear: Vec<u8>,
}

impl Talk {
    pub fn new(peer: PartyId) -> Self {
        Self { peer, send: Vec::new(), hear: Vec::new() }
    }
}

/// Sends to all peers, then receives from all, in pieces of a quarter of the smallest window: a peer is at most one
/// piece ahead, so nobody waits for a window. Messages of up to `window / 4` are one piece.
///
/// # Errors
/// Those of the channels.
pub(crate) fn exchange(session: &mut Session, window: usize, talks: &mut [Talk]) -> Result<(), Error> {
    let piece = (window / 4).max(1);
    let longest = talks.iter().map(|t| t.send.len().max(t.hear.len())).max().unwrap_or(0);
    for from in (0..longest).step_by(piece) {
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
