//! The payloads of both parties moved into shares.

use super::talk::{CollectedPairs, CollectorRole};
use crate::matcher::{MatchOptions, ShareBackend};
use crate::paillier::{self, PayloadGiver};
use crate::payload::PayloadTable;
use crate::permute::{ExtendedMap, PlaneRows, Switchboard, extended, network, route};
use crate::terms::PayloadVector;
use base::{Error, PartyId};
use net::Session;

/// Steps `anchors` and `slots`: shares of party 0's payloads, one per anchor, and of party 1's, one per
/// anchor and slot.
pub(super) fn parts(
    session: &mut Session,
    payload: Option<&PayloadTable>,
    matched: &CollectedPairs,
    options: &MatchOptions,
) -> Result<[PayloadTable; 2], Error> {
    let ([anchors, rows], layouts) = (matched.sizes.rows, &options.layouts);
    if anchors == 0 || rows == 0 {
        // Nothing can match: shares of nothing.
        let entries = [anchors, matched.sizes.entries()];
        let [first, second] = [0, 1].map(|i| PayloadTable::zeros(layouts[i].clone(), entries[i]));
        return Ok([first?, second?]);
    }
    let own = PayloadVector::new(payload, &matched.order, options)?;
    match options.backend {
        ShareBackend::PermuteShare => by_networks(session, &own, matched, options),
        ShareBackend::Paillier => by_paillier(session, &own, matched, options),
    }
}

fn by_networks(
    session: &mut Session,
    own: &PayloadVector<'_>,
    matched: &CollectedPairs,
    options: &MatchOptions,
) -> Result<[PayloadTable; 2], Error> {
    let ([anchors, rows], entries) = (matched.sizes.rows, matched.sizes.entries());
    let layouts = &options.layouts;
    let own = own.rows()?;
    let expected = network::switches(anchors).max(extended::gates(rows, entries));
    let mut board = session.step("ot", |s| Switchboard::new(s, options.ot.unwrap_or_default(), expected))?;
    match &matched.role {
        CollectorRole::Joiner { map, .. } => {
            let map = ExtendedMap::new(rows as usize, map)?;
            let first = session.step("anchors", |s| board.serve_permutation(s, own))?;
            let zeros = PlaneRows::zeros(&layouts[1], rows as usize)?;
            let second = session.step("slots", |s| board.extend(s, zeros, map))?;
            Ok([first.table(anchors as usize)?, second.table(entries as usize)?])
        }
        CollectorRole::Other { rho } => {
            let settings = route(rho)?;
            let zeros = PlaneRows::zeros(&layouts[0], anchors as usize)?;
            let first = session.step("anchors", |s| board.permute(s, zeros, settings))?;
            let second = session.step("slots", |s| board.serve_extension(s, own, entries as usize))?;
            Ok([first.table(anchors as usize)?, second.table(entries as usize)?])
        }
    }
}

fn by_paillier(
    session: &mut Session,
    own: &PayloadVector<'_>,
    matched: &CollectedPairs,
    options: &MatchOptions,
) -> Result<[PayloadTable; 2], Error> {
    let ([anchors, rows], entries) = (matched.sizes.rows, matched.sizes.entries());
    let layouts = &options.layouts;
    let own = own.table()?;
    let seed = session.fork_seed("giver");
    let giver = PayloadGiver::prepare(&seed, own.rows(), own.layout(), options.threads);
    let threads = options.threads;
    match &matched.role {
        CollectorRole::Joiner { map, .. } => {
            debug_assert_eq!(session.me(), PartyId(0));
            let first = session.step("anchors", |s| giver.give(s, &own, anchors))?;
            let second = session.step("slots", |s| paillier::take(s, &layouts[1], rows, map, threads))?;
            Ok([first, second])
        }
        CollectorRole::Other { rho } => {
            let first = session.step("anchors", |s| paillier::take(s, &layouts[0], anchors, rho, threads))?;
            let second = session.step("slots", |s| giver.give(s, &own, entries))?;
            Ok([first, second])
        }
    }
}
