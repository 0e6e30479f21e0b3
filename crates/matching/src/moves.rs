//! The payloads of both parties moved into shares, by one back end or the other.
//!
//! A back end sees nothing of the match but this: each party has a vector, its payloads in the order in which
//! it sent their rows, and a map, an entry of the peer's vector for every share. Both know the lengths. It
//! returns shares of those entries of either vector; how, and what a party may choose of its shares, is its
//! affair.

use crate::matcher::{MatchOptions, ShareBackend};
use crate::paillier::{self, PayloadGiver};
use crate::payload::PayloadTable;
use crate::permute::{ExtendedMap, PlaneRows, Switchboard, extended, network, route};
use crate::terms::PayloadVector;
use base::{Error, PartyId};
use net::Session;

/// What both vectors become.
pub(crate) struct PayloadMoves<'a> {
    /// The steps in which party 0's and party 1's are moved.
    pub steps: [&'static str; 2],
    /// Rows of either.
    pub rows: [u64; 2],
    /// Shares of either.
    pub entries: [u64; 2],
    /// Whether a row of party 1 may stand in several entries, or in none; else it stands in one, and those
    /// past the entries are dropped.
    pub extends: bool,
    /// The row of the peer's vector in each of its entries.
    pub map: &'a [u32],
}

impl PayloadMoves<'_> {
    /// This party's shares of the payload of party 0 and of party 1.
    pub fn run(
        &self,
        session: &mut Session,
        own: &PayloadVector<'_>,
        options: &MatchOptions,
    ) -> Result<[PayloadTable; 2], Error> {
        if self.rows.contains(&0) || self.entries == [0; 2] {
            // Nothing can match: shares of nothing.
            let zeros = |part: usize| PayloadTable::zeros(options.layouts[part].clone(), self.entries[part]);
            return Ok([zeros(0)?, zeros(1)?]);
        }
        match options.backend {
            ShareBackend::PermuteShare => self.by_networks(session, own, options),
            ShareBackend::Paillier => self.by_paillier(session, own, options),
        }
    }

    fn by_networks(
        &self,
        session: &mut Session,
        own: &PayloadVector<'_>,
        options: &MatchOptions,
    ) -> Result<[PayloadTable; 2], Error> {
        let [mine, theirs] = [session.me(), session.me().other()].map(PartyId::index);
        let extends = |part: usize| self.extends && part == 1;
        let gates = |part: usize| match extends(part) {
            true => extended::gates(self.rows[part], self.entries[part]),
            false => network::switches(self.rows[part]),
        };
        let expected = gates(0).max(gates(1));
        let mut board =
            session.step("ot", |s| Switchboard::new(s, options.ot.unwrap_or_default(), expected))?;
        let give = |s: &mut Session, board: &mut Switchboard| {
            let (own, entries) = (own.rows()?, self.entries[mine] as usize);
            match extends(mine) {
                true => board.serve_extension(s, own, entries)?,
                false => board.serve_permutation(s, own)?,
            }
            .table(entries)
        };
        let take = |s: &mut Session, board: &mut Switchboard| {
            let rows = self.rows[theirs] as usize;
            let zeros = PlaneRows::zeros(&options.layouts[theirs], rows)?;
            match extends(theirs) {
                true => board.extend(s, zeros, ExtendedMap::new(rows, self.map)?)?,
                false => board.permute(s, zeros, route(&completed(self.map, rows))?)?,
            }
            .table(self.entries[theirs] as usize)
        };
        self.both(session, &mut board, give, take)
    }

    fn by_paillier(
        &self,
        session: &mut Session,
        own: &PayloadVector<'_>,
        options: &MatchOptions,
    ) -> Result<[PayloadTable; 2], Error> {
        let [mine, theirs] = [session.me(), session.me().other()].map(PartyId::index);
        let (own, seed) = (own.table()?, session.fork_seed("giver"));
        let giver = PayloadGiver::prepare(&seed, own.rows(), own.layout(), options.threads);
        let give = |s: &mut Session, (): &mut ()| giver.give(s, &own, self.entries[mine]);
        let take = |s: &mut Session, (): &mut ()| {
            paillier::take(s, &options.layouts[theirs], self.rows[theirs], self.map, options.threads)
        };
        self.both(session, &mut (), give, take)
    }

    /// Each party gives at its step, and takes at the other's.
    fn both<T>(
        &self,
        session: &mut Session,
        backend: &mut T,
        give: impl FnOnce(&mut Session, &mut T) -> Result<PayloadTable, Error>,
        take: impl FnOnce(&mut Session, &mut T) -> Result<PayloadTable, Error>,
    ) -> Result<[PayloadTable; 2], Error> {
        let [first, second] = self.steps;
        if session.me() == PartyId(0) {
            let own = session.step(first, |s| give(s, backend))?;
            return Ok([own, session.step(second, |s| take(s, backend))?]);
        }
        let peer = session.step(first, |s| take(s, backend))?;
        Ok([peer, session.step(second, |s| give(s, backend))?])
    }
}

/// A permutation that begins with the picks; what follows them is dropped later.
fn completed(picks: &[u32], rows: usize) -> Vec<u32> {
    let mut free = vec![true; rows];
    picks.iter().for_each(|&pick| free[pick as usize] = false);
    let rest = (0..rows as u32).filter(|&row| free[row as usize]);
    picks.iter().copied().chain(rest).collect()
}
