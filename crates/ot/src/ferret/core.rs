//! Both halves of Ferret without a network.

use super::code::Code;
use super::{TreeGroup, TreeSchedule, tree};
use base::{At, Error, Fault, Rng};
use kernels::{Block, TweakedHash};
use zeroize::Zeroizing;

/// OTs made and not yet given out, in order.
#[derive(Default)]
struct Pool {
    blocks: Zeroizing<Vec<Block>>,
    at: usize,
}

impl Pool {
    fn len(&self) -> usize {
        self.blocks.len() - self.at
    }

    fn take(&mut self, n: usize, out: &mut Vec<Block>) {
        out.extend_from_slice(&self.blocks[self.at..self.at + n]);
        self.at += n;
        if self.at == self.blocks.len() {
            self.blocks.clear();
            self.at = 0;
        }
    }

    /// Where the next rows go: behind what is left.
    fn end(&mut self) -> &mut Vec<Block> {
        self.blocks.drain(..self.at);
        self.at = 0;
        &mut self.blocks
    }
}

/// What both sides hold: where they are, the inputs of this extension, the growing ones of the next.
struct State {
    hash: TweakedHash,
    schedule: TreeSchedule,
    code: Code,
    /// The secret, then the path of every tree.
    inputs: Zeroizing<Vec<Block>>,
    reserve: Zeroizing<Vec<Block>>,
    pool: Pool,
    /// Trees so far: their tweak.
    trees: u64,
}

impl State {
    fn new(start: Block, expected: u64, inputs: Vec<Block>) -> Result<Self, Error> {
        let schedule = TreeSchedule::new(expected);
        let wanted = schedule.extension().inputs();
        if inputs.len() != wanted {
            return Err(Error::misuse(format!("silent OT from {} inputs, not {wanted}", inputs.len())));
        }
        let (hash, code) = (TweakedHash::new(start), Code::new(start, 0));
        let (inputs, reserve) = (Zeroizing::new(inputs), Zeroizing::default());
        Ok(Self { hash, schedule, code, inputs, reserve, pool: Pool::default(), trees: 0 })
    }

    /// Works off a step: `leaves` fills the leaves of a tree from its number and its path and says what is to
    /// be added to which row.
    fn work(
        &mut self,
        mut leaves: impl FnMut(&TweakedHash, u64, &[Block], &mut [Block]) -> Option<(u64, Block)>,
    ) {
        let TreeGroup { params, first, trees, reserve } = self.schedule.peek();
        if reserve && self.reserve.is_empty() {
            // What follows are the last trees of this extension: growing step by step would take twice the
            // memory.
            let left = self.schedule.extension().trees() - first;
            self.reserve.reserve_exact(left << params.depth);
            // The next extension reads them at random places.
            kernels::prefer_large_pages(&mut self.reserve);
        }
        let out = if reserve { &mut *self.reserve } else { self.pool.end() };
        let (secret, paths) = self.inputs.split_at(params.k());
        for index in first..first + trees {
            let at = out.len();
            out.resize(at + params.leaves(), Block::ZERO);
            let rows = &mut out[at..];
            let path = &paths[index * params.depth..][..params.depth];
            let noise = leaves(&self.hash, self.trees, path, rows);
            self.trees += 1;
            self.code.add(index << params.depth, secret, rows);
            if let Some((point, missing)) = noise {
                tree::add_at(rows, point, missing);
            }
        }
        if self.schedule.advance() {
            self.inputs = std::mem::take(&mut self.reserve);
            self.inputs.truncate(self.schedule.extension().inputs());
            self.code = Code::new(self.hash.start(), self.schedule.number());
        }
    }
}

/// What both sides say of where they are, and how OTs are taken.
macro_rules! progress {
    () => {
        /// Bytes of the next step's message.
        #[must_use]
        pub fn message_bytes(&self) -> usize {
            self.state.schedule.peek().bytes()
        }

        /// OTs that can be taken.
        #[must_use]
        pub fn ready(&self) -> usize {
            self.state.pool.len()
        }

        /// Whether the next step makes inputs of the first large extension.
        #[must_use]
        pub fn is_boot(&self) -> bool {
            self.state.schedule.is_boot()
        }

        /// Appends the next `n` blocks to `out`: q_i, of which bit 0 is clear, or t_i, of which bit 0 is the
        /// choice.
        ///
        /// # Panics
        /// When fewer are ready.
        pub fn take(&mut self, n: usize, out: &mut Vec<Block>) {
            self.state.pool.take(n, out);
        }
    };
}

/// The sending side.
pub struct FerretSenderCore {
    state: State,
    delta: Block,
    roots: Rng,
}

impl Drop for FerretSenderCore {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.delta);
    }
}

impl FerretSenderCore {
    /// From q of correlated OTs with this Delta and random choices: as many as the first extension's inputs
    /// ([`super::LpnExtension::inputs`]). `roots` is this side's own randomness.
    ///
    /// # Errors
    /// When there are more or fewer inputs, or bit 0 of Delta is not set.
    pub fn new(
        start: Block,
        expected: u64,
        delta: Block,
        mut inputs: Vec<Block>,
        roots: Rng,
    ) -> Result<Self, Error> {
        if !delta.lsb() {
            return Err(Error::misuse("silent OT needs a Delta whose bit 0 is set"));
        }
        inputs.iter_mut().for_each(|q| q.0 &= !1);
        Ok(Self { state: State::new(start, expected, inputs)?, delta, roots })
    }

    /// Makes the next group of OTs and appends the receiver's message to `message`.
    pub fn step(&mut self, message: &mut Vec<u8>) {
        let Self { state, delta, roots } = self;
        state.work(|hash, number, path, leaves| {
            let root = Block::from_bytes(roots.bytes());
            tree::grow(hash, number, *delta, root, path, leaves, message);
            None
        });
    }

    /// This side's Delta.
    #[must_use]
    pub fn delta(&self) -> Block {
        self.delta
    }

    progress!();
}

/// The receiving side.
pub struct FerretReceiverCore {
    state: State,
}

impl FerretReceiverCore {
    /// From t and the packed random choices of the correlated OTs whose q the sender has.
    ///
    /// # Errors
    /// When there are more or fewer inputs, or fewer choices.
    pub fn new(start: Block, expected: u64, mut inputs: Vec<Block>, choices: &[u64]) -> Result<Self, Error> {
        if choices.len() * 64 < inputs.len() {
            return Err(Error::misuse(format!("{} OTs with {} choices", inputs.len(), choices.len() * 64)));
        }
        for (i, t) in inputs.iter_mut().enumerate() {
            t.0 = t.0 & !1 | u128::from(kernels::bit(choices, i));
        }
        Ok(Self { state: State::new(start, expected, inputs)? })
    }

    /// Makes the next group of OTs from the sender's message.
    ///
    /// # Errors
    /// When the message has a wrong length.
    pub fn step(&mut self, message: &[u8]) -> Result<(), Error> {
        if message.len() != self.message_bytes() {
            return Err(Error::new(At::default(), Fault::Malformed("silent OT message of a wrong length")));
        }
        let mut rest = message;
        self.state.work(|hash, number, path, leaves| {
            let (own, after) = rest.split_at(path.len() * Block::BYTES);
            rest = after;
            let (point, missing) = tree::graft(hash, number, path, own, leaves);
            // The leaves lose bit 0; at the point it is the noise.
            Some((point, missing | Block::ONE))
        });
        Ok(())
    }

    progress!();
}
