//! The payloads of both parties moved into shares, by one back end or the other.
//!
//! A back end sees nothing of the match but this: each party has a vector, its payloads in the order in which
//! it sent their rows, and a map, an entry of the peer's vector for every share. Both know the lengths. It
//! returns shares of those entries of either vector; how, and what a party may choose of its shares, is its
//! affair.

use crate::disk::DiskSchedule;
use crate::matcher::{MatchOptions, ShareBackend};
use crate::paillier::{self, PayloadGiver};
use crate::permute::{
    ExtendedMap, MAP_BYTES, MovedRows, PlaneRows, SwitchSettings, Switchboard, extended, network,
};
use crate::share_table::ShareTable;
use crate::spill::{SpillQueue, SpillRoom};
use crate::terms::PayloadVector;
use base::{Error, PartyId};
use net::Session;
use zeroize::Zeroizing;

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
    pub map: EntryMap<'a>,
    /// Where rows and shares go that do not fit into memory.
    pub room: &'a SpillRoom,
}

/// A row for every entry.
#[derive(Clone, Copy)]
pub(crate) enum EntryMap<'a> {
    /// In memory.
    Held(&'a [u32]),
    /// Little-endian numbers in blocks of whole ones.
    Queued(&'a SpillQueue),
}

impl EntryMap<'_> {
    /// Hands out the row of each entry, in order.
    fn each(self, take: &mut dyn FnMut(u32) -> Result<(), Error>) -> Result<(), Error> {
        match self {
            Self::Held(rows) => rows.iter().try_for_each(|row| take(*row)),
            Self::Queued(queue) => queue.each_block(|block| {
                block.as_chunks().0.iter().try_for_each(|row| take(u32::from_le_bytes(*row)))
            }),
        }
    }

    fn whole(self) -> Result<Zeroizing<Vec<u32>>, Error> {
        let mut rows = Zeroizing::new(Vec::new());
        self.each(&mut |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }
}

/// What moving such payloads takes on disk, this party's own and the peer's: shares of both stay. `entries`
/// are at most so many.
pub(crate) fn disk(
    me: PartyId,
    (rows, entries): ([u64; 2], [u64; 2]),
    extends: bool,
    options: &MatchOptions,
    disk: &mut DiskSchedule,
) {
    for (part, layout) in options.layouts.iter().enumerate() {
        let (gives, memory) = (part == me.index(), options.memory);
        let moved = MovedRows { layout, rows: rows[part], entries: entries[part], gives, memory };
        let extends = extends && part == 1;
        if extends && !gives {
            disk.read(MAP_BYTES * entries[part]);
        }
        match (options.backend, extends) {
            // All but shares is in memory.
            (ShareBackend::Paillier, _) => moved.share(disk),
            (ShareBackend::PermuteShare, false) => moved.permuted(disk),
            (ShareBackend::PermuteShare, true) => {
                if !gives {
                    moved.map_sorted(disk);
                }
                moved.extended(disk);
            }
        }
    }
}

impl PayloadMoves<'_> {
    /// This party's shares of the payload of party 0 and of party 1.
    pub fn run(
        &self,
        session: &mut Session,
        own: &PayloadVector<'_>,
        options: &MatchOptions,
    ) -> Result<[ShareTable; 2], Error> {
        if self.rows.contains(&0) || self.entries == [0; 2] {
            // Nothing can match: shares of nothing.
            let zeros =
                |part: usize| ShareTable::zeros(options.layouts[part].clone(), self.entries[part], self.room);
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
    ) -> Result<[ShareTable; 2], Error> {
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
            let (own, entries) = (own.rows(self.room)?, self.entries[mine] as usize);
            match extends(mine) {
                true => board.serve_extension(s, own, entries)?,
                false => board.serve_permutation(s, own)?,
            }
            .into_shares(entries, self.room)
        };
        let take = |s: &mut Session, board: &mut Switchboard| {
            let rows = self.rows[theirs] as usize;
            let settings = match extends(theirs) {
                true => {
                    let (slots, map) = (self.entries[theirs] as usize, self.map);
                    TakerMap::Extended(ExtendedMap::within(self.room, [rows, slots], |take| map.each(take))?)
                }
                false => TakerMap::Permutation(network::route(completed(self.map, rows)?)?),
            };
            let zeros = PlaneRows::zeros_within(self.room, &options.layouts[theirs], rows)?;
            match settings {
                TakerMap::Extended(map) => board.extend(s, zeros, map)?,
                TakerMap::Permutation(settings) => board.permute(s, zeros, settings)?,
            }
            .into_shares(self.entries[theirs] as usize, self.room)
        };
        self.both(session, &mut board, give, take)
    }

    fn by_paillier(
        &self,
        session: &mut Session,
        own: &PayloadVector<'_>,
        options: &MatchOptions,
    ) -> Result<[ShareTable; 2], Error> {
        let [mine, theirs] = [session.me(), session.me().other()].map(PartyId::index);
        let (own, seed) = (own.table()?, session.fork_seed("giver"));
        let giver = PayloadGiver::prepare(&seed, own.rows(), own.layout(), options.threads);
        let give = |s: &mut Session, (): &mut ()| {
            ShareTable::of(&giver.give(s, &own, self.entries[mine])?, self.room)
        };
        let take = |s: &mut Session, (): &mut ()| {
            let (layout, rows, map) = (&options.layouts[theirs], self.rows[theirs], self.map.whole()?);
            ShareTable::of(&paillier::take(s, layout, rows, &map, options.threads)?, self.room)
        };
        self.both(session, &mut (), give, take)
    }

    /// Each party gives at its step, and takes at the other's.
    fn both<T>(
        &self,
        session: &mut Session,
        backend: &mut T,
        give: impl FnOnce(&mut Session, &mut T) -> Result<ShareTable, Error>,
        take: impl FnOnce(&mut Session, &mut T) -> Result<ShareTable, Error>,
    ) -> Result<[ShareTable; 2], Error> {
        let [first, second] = self.steps;
        if session.me() == PartyId(0) {
            let own = session.step(first, |s| give(s, backend))?;
            return Ok([own, session.step(second, |s| take(s, backend))?]);
        }
        let peer = session.step(first, |s| take(s, backend))?;
        Ok([peer, session.step(second, |s| give(s, backend))?])
    }
}

/// What a taker sets its gates by.
enum TakerMap {
    Extended(ExtendedMap),
    Permutation(SwitchSettings),
}

/// A permutation that begins with the picks; what follows them is dropped later.
fn completed(picks: EntryMap<'_>, rows: usize) -> Result<Vec<u32>, Error> {
    let (mut free, mut all) = (vec![true; rows], Vec::with_capacity(rows));
    picks.each(&mut |pick| {
        free[pick as usize] = false;
        all.push(pick);
        Ok(())
    })?;
    all.extend((0..rows as u32).filter(|&row| free[row as usize]));
    Ok(all)
}
