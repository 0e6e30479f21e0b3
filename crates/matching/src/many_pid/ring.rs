//! The ring: lists go on from party to party until each is back at its owner.

use super::price::{held, width};
use super::{KEPT, Party, UNIQUE};
use crate::chunks::{CHUNK, chunk, len, refused};
use crate::group::{self, GroupElement};
use crate::identifiers::IdentifierSource;
use crate::placed::PlacedItems;
use crate::spill::{SpillColumn, SpillQueue, distinct};
use crate::tags::{PLACED_BYTES, tagged};
use crate::terms;
use base::{Error, PartyId, Rng};
use net::{Session, StepLink};
use std::ops::Range;
use zeroize::Zeroize;

/// What a party has when the ring is closed.
pub(super) struct ClosedRing {
    /// Tags of own rows.
    pub own: SpillColumn<PLACED_BYTES>,
    /// The last e of the list after ours, sorted.
    pub e: SpillQueue,
}

/// Own rows in the secret order of u.
pub(super) struct OwnRows {
    names: PlacedItems,
    /// The row at each place.
    rows: SpillQueue,
}

/// What leaves in a round.
enum Leaving {
    /// The own list, which is hashed as it leaves.
    Own(PlacedItems),
    /// That of another party: e, sorted, and v, in its owner's order. In the last round v alone.
    Other(SpillQueue, SpillQueue),
}

impl Party<'_> {
    /// Draws the order of u. The order and its inverse, eight bytes per row, are in memory until names are
    /// dealt.
    pub(super) fn order_own(
        &self,
        identifiers: &dyn IdentifierSource,
        mut order: Vec<u32>,
    ) -> Result<OwnRows, Error> {
        let mut rows = SpillQueue::new(self.room, CHUNK as usize * size_of::<u32>());
        order.iter().try_for_each(|row| rows.push(&row.to_le_bytes()))?;
        let mut places = terms::places(&order);
        order.zeroize();
        drop(order);
        let names = PlacedItems::names(identifiers, &places, self.room);
        places.zeroize();
        Ok(OwnRows { names: names?, rows })
    }

    /// All rounds.
    pub(super) fn ring(&self, session: &mut Session, own: OwnRows) -> Result<ClosedRing, Error> {
        let n = self.parties();
        let OwnRows { names, rows } = own;
        let mut leaving = Leaving::Own(names);
        for round in 1..n {
            leaving = self.round(session, round, leaving)?;
        }
        let Leaving::Other(e, v) = leaving else {
            return Err(Error::misuse("a ring has two parties at least"));
        };
        let leaving = Leaving::Other(SpillQueue::new(self.room, KEPT), v);
        Ok(ClosedRing { own: self.last_round(session, leaving, rows)?, e })
    }

    /// The parties after and before this one in the ring.
    fn neighbours(&self) -> [usize; 2] {
        let n = self.parties();
        [(self.me + 1) % n, (self.me + n - 1) % n]
    }

    /// A round but the last: the held list goes on, the one of the party before comes and is multiplied.
    fn round(&self, session: &mut Session, round: usize, leaving: Leaving) -> Result<Leaving, Error> {
        let (n, [_, prev]) = (self.parties(), self.neighbours());
        let coming = self.rows[held(prev, round, n)];
        let (mut e, mut v) = (SpillColumn::<32>::new(self.room, coming), SpillQueue::new(self.room, KEPT));
        let wide = width(round, n) as usize;
        self.exchange(session, round, leaving, |link, came| {
            let rows = came.len() / wide;
            self.multiply(link, came, 0)?;
            came[..rows].iter().try_for_each(|element| e.push(element))?;
            let second = &mut came[(wide - 1) * rows..];
            self.multiply(link, second, 1)?;
            v.push(second.as_flattened())
        })?;
        // A party that repeats an element could tell it apart later: nothing goes on before this check.
        let e = distinct(e, (self.room, 32, CHUNK))?;
        let e = e.ok_or_else(|| session.link(PartyId(prev as u8)).blame(UNIQUE))?;
        Ok(Leaving::Other(e, v))
    }

    /// The last round: own v come back in the order of u, whose rows are `order`.
    fn last_round(
        &self,
        session: &mut Session,
        leaving: Leaving,
        mut order: SpillQueue,
    ) -> Result<SpillColumn<PLACED_BYTES>, Error> {
        let mut own = SpillColumn::new(self.room, self.rows[self.me]);
        let mut rows = Vec::new();
        self.exchange(session, self.parties(), leaving, |link, came| {
            if came.is_empty() {
                return Ok(());
            }
            self.multiply(link, came, 1)?;
            order.pop(&mut rows)?;
            let rows = rows.as_chunks().0.iter().map(|row| u32::from_le_bytes(*row));
            came.iter().zip(rows).try_for_each(|(v, row)| own.push(&tagged(v, row).to_be_bytes()))
        })?;
        if !own.is_spread() {
            let [_, prev] = self.neighbours();
            return Err(session.link(PartyId(prev as u8)).blame(UNIQUE));
        }
        Ok(own)
    }

    /// The messages of a round, both ways, chunk by chunk.
    fn exchange(
        &self,
        session: &mut Session,
        round: usize,
        mut leaving: Leaving,
        mut take: impl FnMut(&StepLink<'_>, &mut [GroupElement]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (n, [next, prev]) = (self.parties(), self.neighbours());
        let [out, into] = [self.me, prev].map(|party| self.rows[held(party, round, n)]);
        let [next, prev] = [next, prev].map(|party| PartyId(party as u8));
        let [mut send, mut recv] = [(); 2].map(|()| vec![[0; 32]; 2 * CHUNK as usize]);
        let (wide, most) = (width(round, n) as usize, out.max(into));
        for i in 0..most.div_ceil(CHUNK) {
            let [go, come] = [chunk(out, i), chunk(into, i)];
            let (sent, came) = (&mut send[..wide * len(&go)], &mut recv[..wide * len(&come)]);
            self.fill(&mut leaving, go, sent)?;
            pass(session, [next, prev], sent.as_flattened(), came.as_flattened_mut())?;
            take(&session.link(prev), came)?;
            session.report((round as u64 - 1) * most + (i + 1) * CHUNK, n as u64 * most);
        }
        Ok(())
    }

    /// What leaves of the held list in one message: own rows hashed, or e then v, or v.
    fn fill(&self, leaving: &mut Leaving, rows: Range<u64>, into: &mut [GroupElement]) -> Result<(), Error> {
        if into.is_empty() {
            return Ok(());
        }
        let [e, v] = match leaving {
            Leaving::Own(names) => return names.hash(&rows, (&self.keys[0], self.threads), into),
            Leaving::Other(e, v) => [e, v],
        };
        let (first, second) = into.split_at_mut(into.len() - len(&rows));
        let mut bytes = Vec::new();
        for (queue, into) in [(e, first), (v, second)] {
            queue.pop(&mut bytes)?;
            into.as_flattened_mut().copy_from_slice(&bytes);
        }
        Ok(())
    }

    fn multiply(&self, link: &StepLink<'_>, points: &mut [GroupElement], key: usize) -> Result<(), Error> {
        group::mul_batch(points, &self.keys[key], self.threads).map_err(|refusal| refused(link, refusal))
    }
}

/// A secret order of so many rows.
pub(super) fn shuffled(rows: u64, rng: &mut Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..rows as u32).collect();
    rng.shuffle(&mut order);
    order
}

/// Sends to the next party while the one before sends to us. Pieces of a quarter of the window alternate,
/// with one piece in advance, so that no circle of parties waits for each other's windows.
fn pass(
    session: &mut Session,
    [next, prev]: [PartyId; 2],
    mine: &[u8],
    theirs: &mut [u8],
) -> Result<(), Error> {
    if next == prev {
        session.link(next).exchange(mine, theirs)?;
        return session.link(next).flush();
    }
    let piece =
        [next, prev].map(|peer| session.link(peer).window() / 4).into_iter().min().unwrap_or(1).max(1);
    let (mut out, mut into) = (mine.chunks(piece), theirs.chunks_mut(piece));
    let mut send = |session: &mut Session| match out.next() {
        None => Ok(false),
        Some(bytes) => {
            let mut link = session.link(next);
            link.send(bytes)?;
            link.flush().map(|()| true)
        }
    };
    send(session)?;
    loop {
        let sent = send(session)?;
        match into.next() {
            Some(bytes) => session.link(prev).recv(bytes)?,
            None if !sent => return Ok(()),
            None => {}
        }
    }
}
