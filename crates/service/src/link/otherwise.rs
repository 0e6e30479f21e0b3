//! Whether all parties of a study of three and more have the same of each other. Who says one thing to one
//! and another thing to another has signed both, and neither sees more than one; but each side tells the
//! other how far it has all chains, and with which digests.

use crate::link::peer_of;
use crate::store::{RecordedAct, SERVICE};
use crate::web::House;
use base::Error;
use net::KeyFingerprint;
use statements::{ProposalId, ProposalRecord, Said, StatementHead};
use std::time::Instant;

/// Why no run begins where a party has said one thing here and another thing to another party.
pub const TOLD: &str = "told";

/// What a peer says of the chains that are not its own: keeps it, and holds each study of which it has
/// something else of a third party than this side.
///
/// # Errors
/// When the store cannot be read or written.
pub(super) fn notice(
    house: &House,
    peer: KeyFingerprint,
    theirs: Vec<(ProposalId, Vec<StatementHead>)>,
) -> Result<(), Error> {
    let own = house.identity().map(net::Identity::fingerprint);
    let mut several = Vec::new();
    for (id, mut heads) in theirs {
        // A peer speaks of the parties of its own studies, and of us nobody says what we signed.
        let parties = house.store().parties(&id)?;
        if parties.len() < 3 || !parties.contains(&peer) {
            continue;
        }
        heads.retain(|head| parties.contains(&head.author));
        let thirds: Vec<_> = heads.iter().filter(|head| Some(head.author) != own).copied().collect();
        if let Some(author) = house.store().has_otherwise(&id, peer, &thirds)? {
            hold(house, &id, (author, peer))?;
        }
        several.push((id, heads));
    }
    house.links().keep_heads(peer, several);
    Ok(())
}

/// Holds a study, and writes down who has said what to whom; nothing where it is held so already, or over.
///
/// # Errors
/// When the store cannot be read or written.
pub fn hold(
    house: &House,
    id: &ProposalId,
    (author, peer): (KeyFingerprint, KeyFingerprint),
) -> Result<(), Error> {
    let row = house.store().proposal(id)?;
    let Some(row) = row.filter(|row| row.held.as_deref() != Some(TOLD) && !row.state.is_final()) else {
        return Ok(());
    };
    let settings = house.rules().settings;
    let own = house.identity().map(net::Identity::fingerprint);
    let name = |key: &KeyFingerprint| match peer_of(&settings, key) {
        Some((name, _)) => name.to_owned(),
        None if own == Some(*key) => settings.name.clone(),
        None => key.short(),
    };
    let what = format!("run held: {} said something else here than to {}", name(&author), name(&peer));
    let to = row.study.full();
    let act = RecordedAct { by: SERVICE, what: &what, to: &to, at: super::now_ms() / 1_000 };
    house.store().hold(&act, id, Some(TOLD), 0)?;
    house.notify("failed", id);
    Ok(())
}

/// Who has said something else here than to whom, as far as others have told since this service began.
#[must_use]
pub fn found(house: &House, record: &ProposalRecord) -> Vec<(KeyFingerprint, KeyFingerprint)> {
    let own = house.identity().map(net::Identity::fingerprint);
    let mut all = Vec::new();
    for (peer, heads) in of_others(house, record) {
        let differs = |head: &&StatementHead| Some(head.author) != own && is_otherwise(record, head);
        all.extend(heads.iter().filter(differs).map(|head| (head.author, peer)));
    }
    all
}

/// Whether all others have the same as this side of everybody, up to the word that each is ready for a run;
/// they are told how far this side is. Where somebody has something else, the study is held.
///
/// # Errors
/// When the store cannot be read or written.
pub fn is_agreed(house: &House, record: &ProposalRecord, run: u32) -> Result<bool, Error> {
    if record.parties().len() < 3 {
        return Ok(true);
    }
    if let Some(both) = found(house, record).first() {
        return hold(house, &record.id(), *both).map(|()| false);
    }
    // The others wait for this side's word as this side does for theirs.
    let (now, mut tells) = (Instant::now(), false);
    for (peer, _) in of_others(house, record) {
        tells |= house.links().compares_before(peer, record.id(), run, now);
    }
    if tells {
        house.store().ring();
    }
    Ok(awaited(house, record, run).is_empty())
}

/// The others that have not said yet that they have the same as this side, up to the word that each is ready
/// for a run; nobody where two parties alone begin it.
#[must_use]
pub fn awaited(house: &House, record: &ProposalRecord, run: u32) -> Vec<KeyFingerprint> {
    let several = record.parties().len() >= 3;
    let others = of_others(house, record).filter(|_| several);
    others.filter(|(peer, heads)| !has_the_same(record, run, *peer, heads)).map(|(peer, _)| peer).collect()
}

/// The other parties, each with what it last said of all chains.
fn of_others<'h>(
    house: &'h House,
    record: &'h ProposalRecord,
) -> impl Iterator<Item = (KeyFingerprint, Vec<StatementHead>)> + 'h {
    let own = house.identity().map(net::Identity::fingerprint);
    let others = record.parties().iter().filter(move |party| Some(**party) != own);
    others.map(move |peer| (*peer, house.links().heads_of(peer, &record.id())))
}

/// Whether a head is on another chain than the one here, as far as both have it.
fn is_otherwise(record: &ProposalRecord, head: &StatementHead) -> bool {
    let chain = record.place(&head.author).map_or(&[][..], |place| record.chain(place));
    let last = (head.count as usize).checked_sub(1).and_then(|last| chain.get(last));
    last.is_some_and(|last| last.digest() != head.digest)
}

/// Whether a peer has of all others what is here, and at least that they are ready for a run.
fn has_the_same(record: &ProposalRecord, run: u32, peer: KeyFingerprint, heads: &[StatementHead]) -> bool {
    let mut others = record.parties().iter().enumerate().filter(|(_, party)| **party != peer);
    others.all(|(place, party)| {
        let chain = record.chain(place);
        let is_ready = |said: &Said| matches!(said, Said::Ready(offer) if offer.run == run);
        let ready = chain.iter().position(|one| is_ready(&one.body().said));
        let head = heads.iter().find(|head| head.author == *party);
        ready.zip(head).is_some_and(|(ready, head)| {
            let count = head.count as usize;
            (ready + 1..=chain.len()).contains(&count) && !is_otherwise(record, head)
        })
    })
}
