//! The payloads of both parties moved into shares, by one back end or the other.
//!
//! A back end sees nothing of the match but this: each party has a vector, its payloads in the order in which
//! it sent their rows, and picks, an entry of the peer's vector for every joined row. Both know the lengths.
//! It returns shares of the picked entries of either vector; how, and what a party may choose of its shares,
//! is its affair.

use crate::matcher::{MatchOptions, ShareBackend};
use crate::paillier::{self, PayloadGiver};
use crate::payload::PayloadTable;
use crate::permute::{PlaneRows, Switchboard, network::switches, route};
use crate::terms::PayloadVector;
use base::{Error, PartyId};
use net::Session;

/// This party's shares of the payload of party 0 and of party 1, one row per pick.
pub(super) fn parts(
    session: &mut Session,
    vector: &PayloadVector<'_>,
    rows: [u64; 2],
    picks: &[u32],
    options: &MatchOptions,
) -> Result<[PayloadTable; 2], Error> {
    let (me, layouts) = (session.me(), &options.layouts);
    let of_peer = (&layouts[me.other().index()], rows[me.other().index()]);
    if picks.is_empty() {
        let [first, second] = layouts.each_ref().map(|layout| PayloadTable::zeros(layout.clone(), 0));
        return Ok([first?, second?]);
    }
    match options.backend {
        ShareBackend::PermuteShare => {
            let settings = route(&completed(picks, of_peer.1))?;
            let expected = switches(rows[0]).max(switches(rows[1]));
            let mut board =
                session.step("ot", |s| Switchboard::new(s, options.ot.unwrap_or_default(), expected))?;
            let mut settings = Some(settings);
            both(session, |session, owner| {
                let shares = if owner == me {
                    board.serve_permutation(session, vector.rows()?)?
                } else {
                    let zeros = PlaneRows::zeros(of_peer.0, of_peer.1 as usize)?;
                    let settings = settings.take().ok_or_else(|| Error::misuse("settings are used once"))?;
                    board.permute(session, zeros, settings)?
                };
                shares.table(picks.len())
            })
        }
        ShareBackend::Paillier => {
            let own = vector.table()?;
            let seed = session.fork_seed("giver");
            let mut giver = Some(PayloadGiver::prepare(&seed, own.rows(), own.layout(), options.threads));
            both(session, |session, owner| {
                if owner == me {
                    let giver = giver.take().ok_or_else(|| Error::misuse("a giver gives once"))?;
                    return giver.give(session, &own, picks.len() as u64);
                }
                paillier::take(session, of_peer.0, of_peer.1, picks, options.threads)
            })
        }
    }
}

/// The payloads of party 0, then of party 1, each at its step.
fn both(
    session: &mut Session,
    mut part: impl FnMut(&mut Session, PartyId) -> Result<PayloadTable, Error>,
) -> Result<[PayloadTable; 2], Error> {
    let first = session.step("payload-0", |s| part(s, PartyId(0)))?;
    let second = session.step("payload-1", |s| part(s, PartyId(1)))?;
    Ok([first, second])
}

/// A permutation that begins with the picks; what follows them is dropped later.
fn completed(picks: &[u32], rows: u64) -> Vec<u32> {
    let mut free = vec![true; rows as usize];
    picks.iter().for_each(|&pick| free[pick as usize] = false);
    let rest = (0..rows as u32).filter(|&row| free[row as usize]);
    picks.iter().copied().chain(rest).collect()
}
