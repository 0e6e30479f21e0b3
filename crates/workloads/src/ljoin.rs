//! `ljoin`: a loop join on `key1 < key2`. Every pair of records is an output: whether it is one of the join,
//! and both records where it is. The inputs are hot; the outputs are written once.

use crate::records::{KEY, RECORD, key, pack, record, records};
use crate::task::{Task, Wires, bits, enter};
use base::Error;
use osprey::Memory;
use yao::wires::{GROUP, Items, Role, WireArray, WireParty};

/// Wires of an output: the valid bit and two records.
const OUTPUT: usize = 1 + 2 * RECORD;
/// Pairs at once: their outputs fit a second-level cache.
const PAIRS: usize = 128;

pub struct Ljoin<M: Memory> {
    left: Wires<M>,
    right: Wires<M>,
    output: Wires<M>,
    size: usize,
}

impl<M: Memory> Ljoin<M> {
    pub fn new(memory: &M, size: usize) -> Self {
        let [left, right] = [(); 2].map(|()| WireArray::new(memory, size, RECORD));
        Self { left, right, output: WireArray::new(memory, size * size, OUTPUT), size }
    }

    /// One left record with some neighbouring right ones.
    fn join(&mut self, p: &mut WireParty<'_>, left: usize, from: usize, count: usize) -> Result<(), Error> {
        let (lefts, rights) = (Items::same(left, count), Items::range(from..from + count));
        let first = left * self.size + from;
        let outputs = Items::range(first..first + count);
        let keys = (p.load(&self.left, KEY, lefts), p.load(&self.right, KEY, rights));
        let valid = p.less_than(&keys.0, &keys.1)?;
        p.store(&valid, &mut self.output, 0, outputs);
        for (array, items, place) in [(&self.left, lefts, 1), (&self.right, rights, 1 + RECORD)] {
            for bit in (0..RECORD).step_by(GROUP) {
                let record = p.load(array, bit..bit + GROUP, items);
                let selected = p.mask(&valid, &record)?;
                p.store(&selected, &mut self.output, place + bit, outputs);
            }
        }
        Ok(())
    }
}

impl<M: Memory> Task<M> for Ljoin<M> {
    fn bytes(&self) -> usize {
        self.left.bytes() + self.right.bytes() + self.output.bytes()
    }

    fn input(&mut self, p: &mut WireParty<'_>) -> Result<(), Error> {
        for (owner, array) in [(Role::Garbler, &mut self.left), (Role::Evaluator, &mut self.right)] {
            enter(p, owner, || pack(&records(owner, self.size)), array.wires_mut())?;
        }
        Ok(())
    }

    fn compute(&mut self, p: &mut WireParty<'_>) -> Result<(), Error> {
        for left in 0..self.size {
            for from in (0..self.size).step_by(PAIRS) {
                self.join(p, left, from, PAIRS.min(self.size - from))?;
            }
        }
        Ok(())
    }

    fn results(&self) -> &Wires<M> {
        &self.output
    }

    fn check(&self, results: &[u64]) -> bool {
        let expected = |left: usize, right: usize| {
            let (left, right) = (record(Role::Garbler, left), record(Role::Evaluator, right));
            (key(left) < key(right)).then_some([left, right])
        };
        (0..self.size * self.size).all(|pair| {
            let word = |at: usize| bits(results, pair * OUTPUT + at, 64);
            let record = |at: usize| u128::from(word(at)) | u128::from(word(at + 64)) << 64;
            let (valid, found) = (bits(results, pair * OUTPUT, 1), [record(1), record(1 + RECORD)]);
            match expected(pair / self.size, pair % self.size) {
                Some(both) => valid == 1 && found == both,
                None => valid == 0 && found == [0, 0],
            }
        })
    }
}
