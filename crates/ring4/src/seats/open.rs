//! Openings: everybody, or one seat, gets the summand that it lacks from the seat after it; the next one
//! vouches.

use crate::seats::check::VouchedChannel;
use crate::{PIECE_BYTES, Seat, SeatParty, SharedVector, VectorRing};
use base::Error;
use kernels::{Block, ring_add};
use net::Session;
use net::talk::{PeerExchange, exchange};

impl SeatParty {
    /// Opens values to all four. One round.
    ///
    /// # Errors
    /// Those of the channels, and a tag that does not fit.
    pub fn open(&mut self, session: &mut Session, x: &SharedVector) -> Result<Vec<Block>, Error> {
        let opened = self.open_to(session, x, &Seat::ALL)?;
        Ok(opened.expect("this seat is among all"))
    }

    /// Opens values to some seats. Returns them there, nothing elsewhere. One round.
    ///
    /// # Errors
    /// As [`SeatParty::open`].
    pub fn open_to(
        &mut self,
        session: &mut Session,
        x: &SharedVector,
        viewers: &[Seat],
    ) -> Result<Option<Vec<Block>>, Error> {
        if let Some(stub) = &mut self.stub {
            stub.quote.open_to(x.ring(), x.len(), viewers);
            stub.scratch(2, x.blocks());
            return Ok(viewers.contains(&self.seat).then(|| vec![Block::ZERO; x.blocks()]));
        }
        let x = x.without_padding();
        let [_, p1, p2] = x.parts();
        let missing = self.open_parts(session, x.blocks(), viewers, [p1, p2])?;
        Ok(missing.map(|mut sum| {
            x.parts().into_iter().for_each(|part| ring_add(x.ring(), &mut sum, part));
            sum
        }))
    }

    /// Which of this seat's parts 1 and 2 an opening needs.
    pub(crate) fn opens(&self, viewers: &[Seat]) -> [bool; 2] {
        let [s2, s3] = [2, 3].map(|k| self.seat.after(k));
        [self.settings.checked() && viewers.contains(&s2), viewers.contains(&s3)]
    }

    /// Gives viewers the summand that they lack, of so many blocks, from parts 1 and 2 of this seat's, which
    /// are not looked at where [`SeatParty::opens`] says so.
    pub(crate) fn open_parts(
        &mut self,
        session: &mut Session,
        blocks: usize,
        viewers: &[Seat],
        [p1, p2]: [&[Block]; 2],
    ) -> Result<Option<Vec<Block>>, Error> {
        self.hidden(session)?;
        let (me, round) = (self.seat, self.next_round());
        let [s1, s2, s3] = [1, 2, 3].map(|k| me.after(k));
        let [vouches, sends] = self.opens(viewers);
        let mut talks = [s1, s3].map(|peer| PeerExchange::new(self.at(peer)));
        if sends {
            talks[1].send.extend(Block::bytes_of(p2));
        }
        if viewers.contains(&me) {
            talks[0].hear.resize(Block::BYTES * blocks, 0);
        }
        exchange(session, PIECE_BYTES, &mut talks)?;
        let mut hashes = [Vec::new(), Vec::new()];
        let [vouched, received] = &mut hashes;
        if vouches {
            let channel = VouchedChannel::new(s3, me, s2);
            let mut running = self.begin(channel, round, blocks);
            self.hash(channel, &mut running, p1);
            vouched.push((channel, running));
        }
        let mut value = None;
        if viewers.contains(&me) {
            let mut missing = vec![Block::ZERO; blocks];
            Block::read_slice(&talks[0].hear, &mut missing);
            if self.settings.checked() {
                let channel = VouchedChannel::new(s1, s2, me);
                let mut running = self.begin(channel, round, blocks);
                self.hash(channel, &mut running, &missing);
                received.push((channel, running));
            }
            value = Some(missing);
        }
        if self.settings.checked() {
            let [vouched, received] = hashes;
            self.settle(session, round, vouched, received)?;
        }
        Ok(value)
    }
}

/// The elements of opened blocks, as numbers.
#[must_use]
pub fn elements(ring: VectorRing, len: usize, blocks: &[Block]) -> Vec<u128> {
    let mask = u128::MAX >> (128 - ring.bits());
    let element = |i: usize| {
        let lane = (i % ring.lanes()) as u32;
        blocks[i / ring.lanes()].0 >> (lane * ring.bits()) & mask
    };
    (0..len).map(element).collect()
}

/// The blocks of elements; bits beyond an element's are dropped.
#[must_use]
pub fn pack(ring: VectorRing, elements: &[u128]) -> Vec<Block> {
    let mask = u128::MAX >> (128 - ring.bits());
    let block = |lanes: &[u128]| {
        let place = |(i, &x): (usize, &u128)| (x & mask) << (i as u32 * ring.bits());
        Block(lanes.iter().enumerate().map(place).fold(0, |block, lane| block | lane))
    };
    elements.chunks(ring.lanes()).map(block).collect()
}
