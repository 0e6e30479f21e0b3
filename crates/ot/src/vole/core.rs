//! Both halves of an extension without a network.

use super::{BASE, DEPTH, LEAVES, LOG_K, TREE_BYTES, VoleExtension};
use crate::ferret::code::Code;
use crate::ferret::tree;
use base::{At, Error, Fault, Rng};
use kernels::{Block, TweakedHash, xor_into};
use zeroize::{Zeroize, Zeroizing};

/// Tweak field of this module.
const WORKER: u16 = 0xfffc;
const K: usize = 1 << LOG_K;

/// What both sides count alike.
struct State {
    hash: TweakedHash,
    /// Extensions and trees so far.
    extensions: u64,
    trees: u64,
    /// Rows of one tree from the code alone.
    rows: Zeroizing<Vec<Block>>,
    leaves: Zeroizing<Vec<Block>>,
}

impl State {
    /// `start` is the public start value of the session's OTs; the hash of this module gets one of its own,
    /// since the trees of silent OT under the same Delta count from zero too.
    fn new(start: Block) -> Self {
        let mut hash = blake3::Hasher::new_derive_key("tacit 2026 VOLE hash");
        hash.update(&start.to_bytes());
        let mut own = [0; 16];
        hash.finalize_xof().fill(&mut own);
        let zeros = || Zeroizing::new(vec![Block::ZERO; LEAVES]);
        let hash = TweakedHash::new(Block::from_bytes(own));
        Self { hash, extensions: 0, trees: 0, rows: zeros(), leaves: zeros() }
    }

    fn code(&mut self) -> Code {
        self.extensions += 1;
        Code::new(self.hash.start(), self.extensions - 1)
    }

    /// Appends the rows that the code makes of `secret` for tree `index`, added to `noise`.
    fn append(&mut self, code: &Code, index: usize, secret: &[Block], noise: &[Block], out: &mut Vec<Block>) {
        self.rows.fill(Block::ZERO);
        code.add(index * LEAVES, secret, &mut self.rows);
        xor_into(&mut self.rows, noise);
        out.extend_from_slice(&self.rows);
    }
}

fn leaf_tweak(tree: u64) -> Block {
    Block::tweak(WORKER, tree, 0, 0)
}

fn sum(blocks: &[Block]) -> Block {
    blocks.iter().fold(Block::ZERO, |sum, &b| sum ^ b)
}

fn check(got: usize, wanted: usize) -> Result<(), Error> {
    if got == wanted { Ok(()) } else { Err(Error::misuse(format!("VOLE from {got} inputs, not {wanted}"))) }
}

/// The side that holds Delta.
pub struct VoleSenderCore {
    state: State,
    delta: Block,
    roots: Rng,
}

impl Drop for VoleSenderCore {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

impl VoleSenderCore {
    /// Over OTs with this Delta and public start value; `roots` is this side's own randomness.
    #[must_use]
    pub fn new(start: Block, delta: Block, roots: Rng) -> Self {
        Self { state: State::new(start), delta, roots }
    }

    /// One extension of the b of [`BASE`] elements by q of [`VoleExtension::ots`] correlated OTs with random
    /// choices. All its rows are appended to `out`, the receiver's message to `message`.
    ///
    /// # Errors
    /// When there are more or fewer inputs.
    pub fn extend(
        &mut self,
        extension: &VoleExtension,
        base: &[Block],
        q: &[Block],
        message: &mut Vec<u8>,
        out: &mut Vec<Block>,
    ) -> Result<(), Error> {
        check(base.len(), BASE)?;
        check(q.len(), extension.ots())?;
        let (secret, values) = base.split_at(K);
        let code = self.state.code();
        let mut noise = Zeroizing::new(vec![Block::ZERO; LEAVES]);
        let mut path = [Block::ZERO; DEPTH];
        for (index, q) in q.chunks_exact(DEPTH).enumerate() {
            path.iter_mut().zip(q).for_each(|(place, q)| *place = Block(q.0 & !1));
            let tree = self.state.trees;
            self.state.trees += 1;
            let root = Block::from_bytes(self.roots.bytes());
            let State { hash, leaves, .. } = &mut self.state;
            tree::grow(hash, tree, self.delta, root, &path, leaves, message);
            hash.hash(leaf_tweak(tree), leaves, &mut noise);
            message.extend((sum(&noise) ^ values[index]).to_bytes());
            self.state.append(&code, index, secret, &noise, out);
        }
        Ok(())
    }
}

/// The side that gets a and c.
pub struct VoleReceiverCore {
    state: State,
}

impl VoleReceiverCore {
    /// Over OTs with this public start value.
    #[must_use]
    pub fn new(start: Block) -> Self {
        Self { state: State::new(start) }
    }

    /// One extension of the a and the c of [`BASE`] elements by t of [`VoleExtension::ots`] correlated OTs,
    /// whose choices are in `choices`, and the sender's message. All its rows are appended to `out`, a and c.
    ///
    /// # Errors
    /// When there are more or fewer inputs, or the message has a wrong length.
    pub fn extend(
        &mut self,
        extension: &VoleExtension,
        base: [&[Block]; 2],
        (choices, t): (&[u64], &[Block]),
        message: &[u8],
        out: [&mut Vec<Block>; 2],
    ) -> Result<(), Error> {
        base.iter().try_for_each(|base| check(base.len(), BASE))?;
        check(t.len(), extension.ots())?;
        if message.len() != extension.bytes() {
            return Err(Error::new(At::default(), Fault::Malformed("VOLE message of a wrong length")));
        }
        let [(secret_a, values_a), (secret_c, values_c)] = base.map(|base| base.split_at(K));
        let [out_a, out_c] = out;
        let code = self.state.code();
        let mut noise = Zeroizing::new(vec![Block::ZERO; LEAVES]);
        let mut path = [Block::ZERO; DEPTH];
        for (index, message) in message.chunks_exact(TREE_BYTES).enumerate() {
            let tree = self.state.trees;
            self.state.trees += 1;
            for (level, place) in path.iter_mut().enumerate() {
                let i = index * DEPTH + level;
                // A tree takes its choices from bit 0.
                *place = Block(t[i].0 & !1 | u128::from(kernels::bit(choices, i)));
            }
            let (levels, last) = message.split_at(DEPTH * Block::BYTES);
            let State { hash, leaves, .. } = &mut self.state;
            let (point, _) = tree::graft(hash, tree, &path, levels, leaves);
            // The leaf at the point is zero; what its hash adds to the sum goes when the right value comes
            // in.
            hash.hash(leaf_tweak(tree), leaves, &mut noise);
            let said = Block::from_bytes(last.try_into().expect("one block is left"));
            let right = sum(&noise) ^ said ^ values_c[index];
            tree::add_at(&mut noise, point, right);
            self.state.append(&code, index, secret_c, &noise, out_c);
            noise.fill(Block::ZERO);
            tree::add_at(&mut noise, point, values_a[index]);
            self.state.append(&code, index, secret_a, &noise, out_a);
        }
        Ok(())
    }
}
