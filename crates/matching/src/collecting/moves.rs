//! The payloads of both parties moved into shares.

use super::talk::{Matched, Role};
use super::{Backend, Options};
use crate::paillier::{self, Giver};
use crate::payload::{Layout, Table};
use crate::permute::{Extension, Rows, Switchboard, extended, network, route};
use crate::terms::Vector;
use base::{Error, PartyId};
use net::Session;

/// Steps `anchors` and `slots`: shares of party 0's payloads, one per anchor, and of party 1's, one per
/// anchor and slot.
pub(super) fn parts(
    session: &mut Session,
    payload: &Table,
    layouts: &[Layout; 2],
    matched: &Matched,
    options: &Options,
) -> Result<[Table; 2], Error> {
    let [anchors, rows] = matched.sizes.rows;
    if anchors == 0 || rows == 0 {
        // Nothing can match: shares of nothing.
        let entries = [anchors, matched.sizes.entries()];
        let [first, second] = [0, 1].map(|i| Table::zeros(layouts[i].clone(), entries[i]));
        return Ok([first?, second?]);
    }
    let zeros = vec![0; payload.layout().row_bytes()];
    let blank = options.blank.as_deref().unwrap_or(&zeros);
    let own = Vector { payload, order: &matched.order, blank };
    match options.backend {
        Backend::PermuteShare => by_networks(session, &own, layouts, matched, options),
        Backend::Paillier => by_paillier(session, &own, layouts, matched, options),
    }
}

fn by_networks(
    session: &mut Session,
    own: &Vector<'_>,
    layouts: &[Layout; 2],
    matched: &Matched,
    options: &Options,
) -> Result<[Table; 2], Error> {
    let ([anchors, rows], entries) = (matched.sizes.rows, matched.sizes.entries());
    let own = own.rows()?;
    let expected = network::switches(anchors).max(extended::gates(rows, entries));
    let mut board = session.step("ot", |s| Switchboard::new(s, options.ot, expected))?;
    match &matched.role {
        Role::Joiner { map, .. } => {
            let map = Extension::new(rows as usize, map)?;
            let first = session.step("anchors", |s| board.serve_permutation(s, own))?;
            let zeros = Rows::zeros(&layouts[1], rows as usize)?;
            let second = session.step("slots", |s| board.extend(s, zeros, map))?;
            Ok([first.table(anchors as usize)?, second.table(entries as usize)?])
        }
        Role::Other { rho } => {
            let settings = route(rho)?;
            let zeros = Rows::zeros(&layouts[0], anchors as usize)?;
            let first = session.step("anchors", |s| board.permute(s, zeros, settings))?;
            let second = session.step("slots", |s| board.serve_extension(s, own, entries as usize))?;
            Ok([first.table(anchors as usize)?, second.table(entries as usize)?])
        }
    }
}

fn by_paillier(
    session: &mut Session,
    own: &Vector<'_>,
    layouts: &[Layout; 2],
    matched: &Matched,
    options: &Options,
) -> Result<[Table; 2], Error> {
    let ([anchors, rows], entries) = (matched.sizes.rows, matched.sizes.entries());
    let own = own.table()?;
    let seed = session.fork_seed("giver");
    let giver = Giver::prepare(&seed, own.rows(), own.layout(), options.threads);
    let threads = options.threads;
    match &matched.role {
        Role::Joiner { map, .. } => {
            debug_assert_eq!(session.me(), PartyId(0));
            let first = session.step("anchors", |s| giver.give(s, &own, anchors))?;
            let second = session.step("slots", |s| paillier::take(s, &layouts[1], rows, map, threads))?;
            Ok([first, second])
        }
        Role::Other { rho } => {
            let first = session.step("anchors", |s| paillier::take(s, &layouts[0], anchors, rho, threads))?;
            let second = session.step("slots", |s| giver.give(s, &own, entries))?;
            Ok([first, second])
        }
    }
}
