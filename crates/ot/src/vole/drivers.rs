//! The conversation around extensions with one peer. Only the sender speaks, apart from what its OTs need.

use super::{BASE, ELEMENTS, VoleReceiverCore, VoleSenderCore, base_elements, extensions};
use crate::{OtReceiver, OtSender};
use base::{Error, PartyId};
use kernels::{Block, FIELD_BITS, gf_pack};
use net::Session;
use zeroize::Zeroizing;

/// Base elements that are packed at once.
const BATCH: usize = 1 << 9;

/// `n` base elements cut into batches.
pub(super) fn base_batches(n: usize) -> impl Iterator<Item = usize> {
    (0..n).step_by(BATCH).map(move |at| BATCH.min(n - at))
}

/// What a conversation of `total` elements still has to give out.
struct Left {
    total: u64,
    made: u64,
    taken: u64,
    number: usize,
}

impl Left {
    fn new(total: u64) -> Result<Self, Error> {
        if total > ELEMENTS {
            return Err(Error::limit("elements of one VOLE", total, ELEMENTS));
        }
        Ok(Self { total, made: 0, taken: 0, number: 0 })
    }

    /// Before `n` elements are taken.
    fn take(&mut self, n: usize) -> Result<(), Error> {
        self.taken += n as u64;
        if self.taken > self.total {
            return Err(Error::misuse(format!("{} elements taken of a VOLE of {}", self.taken, self.total)));
        }
        Ok(())
    }

    /// Whether another extension is due before everything that was asked for is there.
    fn is_short(&self) -> bool {
        self.made < self.taken
    }
}

/// Elements in order, the first `at` of which were given out.
#[derive(Default)]
struct Pool {
    blocks: Zeroizing<Vec<Block>>,
    at: usize,
}

impl Pool {
    /// Where the rows of the next extension go, `room` of them.
    fn end(&mut self, room: usize) -> &mut Vec<Block> {
        self.blocks.drain(..self.at);
        self.at = 0;
        self.blocks.reserve_exact(room);
        &mut self.blocks
    }

    /// Cuts off the rows behind the first `out` of the last `rows`; they are the next extension's base, if it
    /// has one.
    fn keep(&mut self, rows: usize, out: usize) -> Zeroizing<Vec<Block>> {
        let end = self.blocks.len() - rows + out;
        Zeroizing::new(self.blocks.split_off(end))
    }

    fn take(&mut self, n: usize, out: &mut Vec<Block>) {
        out.extend_from_slice(&self.blocks[self.at..self.at + n]);
        self.at += n;
    }
}

/// The side that holds Delta, with one peer.
pub struct VoleSender {
    ot: Box<dyn OtSender>,
    core: VoleSenderCore,
    base: Zeroizing<Vec<Block>>,
    pool: Pool,
    left: Left,
}

impl VoleSender {
    /// Over OTs that were set up for [`super::expected_ots`] of `total`. The peer calls [`VoleReceiver::new`]
    /// with the same `total`, the number of elements of this conversation.
    ///
    /// # Errors
    /// More than [`ELEMENTS`].
    pub fn new(session: &mut Session, mut ot: Box<dyn OtSender>, total: u64) -> Result<Self, Error> {
        let left = Left::new(total)?;
        let roots = session.fork_seed("VOLE roots").into_rng();
        let core = VoleSenderCore::new(ot.pads().start(), ot.delta(), roots);
        Ok(Self { ot, core, base: Zeroizing::default(), pool: Pool::default(), left })
    }

    /// Delta, of all elements.
    #[must_use]
    pub fn delta(&self) -> Block {
        self.ot.delta()
    }

    /// The peer.
    #[must_use]
    pub fn peer(&self) -> PartyId {
        self.ot.peer()
    }

    /// Appends the next `n` b to `out`.
    ///
    /// # Errors
    /// Those of the channel, and more elements than were announced.
    pub fn take(&mut self, session: &mut Session, n: usize, out: &mut Vec<Block>) -> Result<(), Error> {
        self.left.take(n)?;
        while self.left.is_short() {
            self.more(session)?;
        }
        self.pool.take(n, out);
        Ok(())
    }

    fn more(&mut self, session: &mut Session) -> Result<(), Error> {
        let direct = self.left.total <= BASE as u64;
        if direct || self.left.number == 0 {
            let base = self.pack(session)?;
            if direct {
                self.left.made = base.len() as u64;
                self.pool.blocks = base;
                return Ok(());
            }
            self.base = base;
        }
        let extension =
            extensions(self.left.total).nth(self.left.number).expect("announced elements have one");
        let (mut q, mut message) = (Zeroizing::default(), Vec::with_capacity(extension.bytes()));
        self.ot.correlated_random(session, extension.ots(), &mut q)?;
        let rows = extension.trees * super::LEAVES;
        let out = self.pool.end(rows);
        self.core.extend(&extension, &self.base, &q, &mut message, out)?;
        self.base = self.pool.keep(rows, extension.out);
        (self.left.made, self.left.number) = (self.left.made + extension.out as u64, self.left.number + 1);
        let mut link = session.link(self.ot.peer());
        link.send(&message)?;
        link.flush()
    }

    fn pack(&mut self, session: &mut Session) -> Result<Zeroizing<Vec<Block>>, Error> {
        let n = base_elements(self.left.total);
        let mut packed = Zeroizing::new(Vec::with_capacity(n));
        let mut q = Zeroizing::new(Vec::with_capacity(BATCH * FIELD_BITS));
        for batch in base_batches(n) {
            q.clear();
            self.ot.correlated_random(session, batch * FIELD_BITS, &mut q)?;
            gf_pack(&q, &mut packed);
        }
        Ok(packed)
    }
}

/// The side that gets a and c, with one peer.
pub struct VoleReceiver {
    ot: Box<dyn OtReceiver>,
    core: VoleReceiverCore,
    base: [Zeroizing<Vec<Block>>; 2],
    pools: [Pool; 2],
    left: Left,
    message: Vec<u8>,
}

impl VoleReceiver {
    /// Over OTs that were set up for [`super::expected_ots`] of `total`.
    ///
    /// # Errors
    /// More than [`ELEMENTS`].
    pub fn new(mut ot: Box<dyn OtReceiver>, total: u64) -> Result<Self, Error> {
        let left = Left::new(total)?;
        let core = VoleReceiverCore::new(ot.pads().start());
        Ok(Self { ot, core, base: Default::default(), pools: Default::default(), left, message: Vec::new() })
    }

    /// The peer.
    #[must_use]
    pub fn peer(&self) -> PartyId {
        self.ot.peer()
    }

    /// Appends the next `n` a and c to `out`.
    ///
    /// # Errors
    /// Those of the channel, and more elements than were announced.
    pub fn take(&mut self, session: &mut Session, n: usize, out: [&mut Vec<Block>; 2]) -> Result<(), Error> {
        self.left.take(n)?;
        while self.left.is_short() {
            self.more(session)?;
        }
        self.pools.iter_mut().zip(out).for_each(|(pool, out)| pool.take(n, out));
        Ok(())
    }

    fn more(&mut self, session: &mut Session) -> Result<(), Error> {
        let direct = self.left.total <= BASE as u64;
        if direct || self.left.number == 0 {
            let base = self.pack(session)?;
            if direct {
                self.left.made = base[0].len() as u64;
                self.pools.iter_mut().zip(base).for_each(|(pool, base)| pool.blocks = base);
                return Ok(());
            }
            self.base = base;
        }
        let extension =
            extensions(self.left.total).nth(self.left.number).expect("announced elements have one");
        let (mut choices, mut t) = (Zeroizing::default(), Zeroizing::default());
        self.ot.correlated_random(session, extension.ots(), &mut choices, &mut t)?;
        self.message.resize(extension.bytes(), 0);
        session.link(self.ot.peer()).recv(&mut self.message)?;
        let rows = extension.trees * super::LEAVES;
        let base = self.base.each_ref().map(|base| &base[..]);
        let out = self.pools.each_mut().map(|pool| pool.end(rows));
        self.core.extend(&extension, base, (&choices, &t), &self.message, out)?;
        self.base = self.pools.each_mut().map(|pool| pool.keep(rows, extension.out));
        (self.left.made, self.left.number) = (self.left.made + extension.out as u64, self.left.number + 1);
        Ok(())
    }

    fn pack(&mut self, session: &mut Session) -> Result<[Zeroizing<Vec<Block>>; 2], Error> {
        let n = base_elements(self.left.total);
        let [mut a, mut c] = [(); 2].map(|()| Zeroizing::new(Vec::with_capacity(n)));
        let mut t = Zeroizing::new(Vec::with_capacity(BATCH * FIELD_BITS));
        let mut choices = Zeroizing::new(Vec::new());
        for batch in base_batches(n) {
            t.clear();
            choices.clear();
            self.ot.correlated_random(session, batch * FIELD_BITS, &mut choices, &mut t)?;
            gf_pack(&t, &mut c);
            let words = choices.as_chunks::<2>().0;
            a.extend(words[..batch].iter().map(|w| Block(u128::from(w[1]) << 64 | u128::from(w[0]))));
        }
        Ok([a, c])
    }
}
