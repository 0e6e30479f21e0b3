//! What both sides compute at the gates of a network, on one plane of their rows.
//!
//! A gate has one correlated OT, in which the serving side S holds keys k0 and k1 and the choosing side R the
//! key of its setting c. With pads p = H(k), S's entries a, b and R's entries x, y:
//!
//! ```text
//! S   z = (b - a) + p0 - p1           a' = a - p0   b' = b + p0
//! R   p = H(k_c) + c (z + (y - x))    x' = x + p    y' = y - p
//! ```
//! `c = 0` gives `p = p0`: nothing changes but the shares. `c = 1` gives `p = (b - a) + (y - x) + p0`: the
//! two entries have changed places. A copy is a switch that leaves the first entry as it was.

use super::network::GateRun;
use super::planes::{LaneArithmetic, PlaneWord};
use kernels::Block;

/// Gates in order that are next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SwitchGates {
    /// Switches.
    Switches(GateRun),
    /// Copies: entry `first + k` stays or becomes entry `first + k - 1`, which has gone through its own gate.
    Copies { first: usize, len: usize },
}

impl SwitchGates {
    fn len(self) -> usize {
        match self {
            Self::Switches(run) => run.len,
            Self::Copies { len, .. } => len,
        }
    }

    /// The first `count` of them, and the others.
    fn cut(self, count: usize) -> [Self; 2] {
        match self {
            Self::Switches(GateRun { first, second, len }) => [
                Self::Switches(GateRun { first, second, len: count }),
                Self::Switches(GateRun { first: first + count, second: second + count, len: len - count }),
            ],
            Self::Copies { first, len } => {
                [Self::Copies { first, len: count }, Self::Copies { first: first + count, len: len - count }]
            }
        }
    }
}

/// Gates of a network batch by batch.
pub(super) struct GateFeed<I> {
    gates: I,
    rest: Option<SwitchGates>,
}

impl<I: Iterator<Item = SwitchGates>> GateFeed<I> {
    pub fn new(gates: I) -> Self {
        Self { gates, rest: None }
    }

    /// Replaces `batch` by the next `count` gates.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn fill(&mut self, mut count: usize, batch: &mut Vec<SwitchGates>) {
        batch.clear();
        while count > 0 {
            let next = self.rest.take().or_else(|| self.gates.next()).expect("as many gates as counted");
            if next.len() <= count {
                count -= next.len();
                batch.push(next);
            } else {
                let [head, tail] = next.cut(count);
                batch.push(head);
                (self.rest, count) = (Some(tail), 0);
            }
        }
    }
}

pub(super) fn word(block: Block) -> PlaneWord {
    [block.0 as u64, (block.0 >> 64) as u64]
}

fn when(word: PlaneWord, mask: u64) -> PlaneWord {
    word.map(|half| half & mask)
}

/// S's half of a batch: its entries change, `z` is what it sends. `pads` are those of k0 and of k1.
pub(super) fn serve<A: LaneArithmetic>(
    a: A,
    plane: &mut [PlaneWord],
    batch: &[SwitchGates],
    pads: [&[Block]; 2],
    z: &mut [PlaneWord],
) {
    let mut at = 0;
    for &gates in batch {
        let ours = at..at + gates.len();
        at = ours.end;
        let pads = pads[0][ours.clone()].iter().zip(&pads[1][ours.clone()]);
        let z = &mut z[ours];
        match gates {
            SwitchGates::Switches(GateRun { first, second, len }) => {
                let (upper, lower) = plane.split_at_mut(second);
                let wires = upper[first..][..len].iter_mut().zip(&mut lower[..len]);
                for (((upper, lower), (p0, p1)), z) in wires.zip(pads).zip(z) {
                    let (p0, p1) = (word(*p0), word(*p1));
                    *z = a.add(a.sub(*lower, *upper), a.sub(p0, p1));
                    *upper = a.sub(*upper, p0);
                    *lower = a.add(*lower, p0);
                }
            }
            SwitchGates::Copies { first, len } => {
                for ((k, (p0, p1)), z) in (first..first + len).zip(pads).zip(z) {
                    let (p0, p1) = (word(*p0), word(*p1));
                    *z = a.add(a.sub(plane[k], plane[k - 1]), a.sub(p0, p1));
                    plane[k] = a.add(plane[k], p0);
                }
            }
        }
    }
}

/// R's half of a batch: `masks` are its settings, all ones for 1, `pads` those of its keys.
pub(super) fn choose<A: LaneArithmetic>(
    a: A,
    plane: &mut [PlaneWord],
    batch: &[SwitchGates],
    masks: &[u64],
    pads: &[Block],
    z: &[PlaneWord],
) {
    let mut at = 0;
    for &gates in batch {
        let ours = at..at + gates.len();
        at = ours.end;
        let heard = masks[ours.clone()].iter().zip(&pads[ours.clone()]).zip(&z[ours]);
        match gates {
            SwitchGates::Switches(GateRun { first, second, len }) => {
                let (upper, lower) = plane.split_at_mut(second);
                let wires = upper[first..][..len].iter_mut().zip(&mut lower[..len]);
                for ((upper, lower), ((mask, pad), z)) in wires.zip(heard) {
                    let p = a.add(word(*pad), when(a.add(*z, a.sub(*lower, *upper)), *mask));
                    *upper = a.add(*upper, p);
                    *lower = a.sub(*lower, p);
                }
            }
            SwitchGates::Copies { first, len } => {
                for (k, ((mask, pad), z)) in (first..first + len).zip(heard) {
                    let p = a.add(word(*pad), when(a.add(*z, a.sub(plane[k], plane[k - 1])), *mask));
                    plane[k] = a.sub(plane[k], p);
                }
            }
        }
    }
}
