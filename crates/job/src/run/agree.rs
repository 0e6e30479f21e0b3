//! The first words of a session: data-set tags, and whether all sides already hold the answer.

use super::spine::Name;
use crate::ledger::{AnswerKey, Ledger, release_id};
use crate::prepare::Checked;
use base::{Error, PartyId};
use net::Session;
use std::sync::{Arc, Mutex};

/// What all sides now know.
pub(super) struct Agreement {
    /// Tags of the data sets, in party order: equal for equal data of one party, and nothing else can be read off them.
    pub tags: Vec<[u8; 32]>,
    /// Where this party's answer is stored.
    pub answer: AnswerKey,
    /// This party's stored answer.
    pub stored: Option<String>,
    /// Whether all have theirs: then there is nothing to run.
    pub all_stored: bool,
    /// Names a match of this run, should it be kept: made of random numbers of all parties.
    pub name: Name,
    study: [u8; 32],
}

impl Agreement {
    /// Names one viewer's release: the same study and data give the same name on every run, so that a rerun
    /// continues the same release and is not charged twice.
    pub fn release_id(&self, viewer: PartyId) -> [u8; 32] {
        release_id(&self.study, &self.tags, viewer)
    }
}

/// Exchanges program hashes, data-set tags, random numbers and the names of kept spines, then whether the answer is stored.
pub(super) fn agree(
    session: &mut Session,
    checked: &Checked,
    ledger: &Arc<Mutex<Ledger>>,
    tag: [u8; 32],
    spine: Option<Name>,
) -> Result<Agreement, Error> {
    session.step("agree", |session| {
        let me = session.me();
        let program = checked.built.program.hash();
        let mut tags = vec![tag; checked.roster.len()];
        let owners = others_of(checked);
        let nonce: [u8; 32] = session.fork_seed("name of a match").into_rng().bytes();
        let mut nonces = vec![nonce; tags.len()];
        // No spine is kept under the name of zeros.
        let spine = spine.unwrap_or_default();
        let mine: [u8; 128] = [program, tag, nonce, spine].concat().try_into().expect("four hashes");
        for (peer, theirs) in tell(session, &owners, mine)? {
            let (their_program, rest) = theirs.split_at(32);
            let (their_tag, rest) = rest.split_at(32);
            let (their_nonce, their_spine) = rest.split_at(32);
            nonces[peer.index()].copy_from_slice(their_nonce);
            same_spine(session, peer, spine, their_spine)?;
            if their_program != program {
                return Err(Error::input(
                    "the parties built different programs from the same study: they run different versions of tacit",
                ));
            }
            tags[peer.index()].copy_from_slice(their_tag);
        }
        let answer = AnswerKey {
            study: *checked.hash.as_bytes(),
            program,
            my_tag: tag,
            peer_tag: others(&tags, me),
            party: me,
        };
        let stored = {
            let ledger = ledger.lock().map_err(|_| Error::misuse("the ledger's lock is broken"))?;
            ledger.answer(&answer)?
        };
        let theirs = tell(session, &owners, [u8::from(stored.is_some())])?;
        let all_stored = stored.is_some() && theirs.iter().all(|(_, theirs)| *theirs == [1]);
        let study = *checked.hash.as_bytes();
        let name = blake3::derive_key("tacit spine 1", &[&study[..], nonces.as_flattened()].concat());
        Ok(Agreement { tags, answer, stored, all_stored, name, study })
    })
}

/// Whether a peer uses the same kept spine as this party, or none either.
fn same_spine(session: &Session, peer: PartyId, mine: Name, theirs: &[u8]) -> Result<(), Error> {
    let name = session.roster().name(peer);
    let none = Name::default();
    if mine == theirs {
        return Ok(());
    }
    Err(Error::input(if mine == none {
        format!(
            "{name} uses a kept spine and this party does not: all use that of one match, or none (`spine`)"
        )
    } else if theirs == none {
        format!(
            "this party uses a kept spine and {name} does not: all use that of one match, or none (`spine`)"
        )
    } else {
        format!(
            "the kept spine of {name} is of another match than this party's: use those of one, or match again"
        )
    }))
}

/// One tag for the data of all other parties: of two parties, the peer's.
fn others(tags: &[[u8; 32]], me: PartyId) -> [u8; 32] {
    let others: Vec<[u8; 32]> =
        tags.iter().enumerate().filter(|(i, _)| *i != me.index()).map(|(_, tag)| *tag).collect();
    if let [other] = others[..] {
        return other;
    }
    let mut hasher = blake3::Hasher::new_derive_key("tacit data of the other parties 1");
    others.iter().for_each(|tag| _ = hasher.update(tag));
    *hasher.finalize().as_bytes()
}

/// Says the same to all peers and hears as much from each, in party order.
pub(super) fn tell_all<const N: usize>(
    session: &mut Session,
    mine: [u8; N],
) -> Result<Vec<(PartyId, [u8; N])>, Error> {
    let peers: Vec<PartyId> = session.roster().parties().filter(|p| *p != session.me()).collect();
    tell(session, &peers, mine)
}

/// Says the same to some peers and hears as much from each, in their order.
pub(super) fn tell<const N: usize>(
    session: &mut Session,
    peers: &[PartyId],
    mine: [u8; N],
) -> Result<Vec<(PartyId, [u8; N])>, Error> {
    for peer in peers {
        session.link(*peer).send(&mine)?;
        session.link(*peer).flush()?;
    }
    peers.iter().map(|peer| Ok((*peer, session.link(*peer).recv_array()?))).collect()
}

/// The other parties of a study: servers that own nothing are none.
pub(super) fn others_of(checked: &Checked) -> Vec<PartyId> {
    checked.roster.parties().filter(|party| *party != checked.me).collect()
}
