//! Makes circuits smaller: never more ANDs, never a longer chain of ANDs, the same function.
//!
//! Every wire is a sum (XOR) of inputs and of ANDs. A random 128-bit mark per input and AND, added up along
//! XORs, says which sum: two wires with one mark are equal, but for a chance below 2^-76 in a circuit of
//! `files::WIRES` wires. So sharing sees through the order and the grouping of XORs. On top of that:
//!
//! | rule | saves |
//! |---|---|
//! | constants fold; complements are polarities; what no output needs goes | |
//! | one AND per pair of operands, whatever their polarities: (1 + x)(1 + y) = 1 + x + y + xy | an AND |
//! | x (x y) = x y, x (1 + x y) = x (1 + y), x (1 + (1 + x) y) = x | depth, an AND |
//! | x y and (1 + x) z exclude each other: their OR is their XOR, their AND is 0 | an AND |
//! | x y + x z = x (y + z), x y + (1 + x) z = z + x (y + z), within a sum of any length | an AND |

use crate::Wired;
use crate::{Circuit, Lit, WireDriver};
use base::{Rng, Seed};
use std::collections::{BTreeMap, HashMap};

/// Most rounds; each has to save something for another one.
const ROUNDS: usize = 16;

/// The same function with at most as many ANDs and at most the same depth.
///
/// # Panics
/// When `wired` is not well formed ([`Wired::check`]).
#[must_use]
pub fn optimise(wired: &Wired) -> Wired {
    let size = |w: &Wired| (w.and_gates(), w.depth(), w.xor_gates());
    let mut best = prune(wired);
    for _ in 0..ROUNDS {
        let shared = prune(&rebuild(&best, false));
        let next = prune(&rebuild(&shared, true));
        let next = if size(&next) < size(&shared) { next } else { shared };
        let (old, new) = (size(&best), size(&next));
        // No rule adds an AND or depth; what was counted is what holds.
        if new >= old || new.1 > old.1 {
            break;
        }
        best = next;
    }
    best
}

/// How often each wire is read, by gates and by outputs; zero for what no output needs.
fn uses(wired: &Wired) -> Vec<u32> {
    let mut uses = vec![0; wired.circuit.wires.len()];
    wired.roots().for_each(|root| uses[root.wire()] += 1);
    for (i, wire) in wired.circuit.wires.iter().enumerate().rev() {
        if uses[i] > 0 {
            match *wire {
                WireDriver::Xor(a, b) => [a, b].into_iter().for_each(|w| uses[w as usize] += 1),
                WireDriver::And(a, b) => [a, b].into_iter().for_each(|l| uses[l.wire()] += 1),
                WireDriver::False | WireDriver::Input(_) => {}
            }
        }
    }
    uses
}

/// Drops what no output needs.
fn prune(wired: &Wired) -> Wired {
    let uses = uses(wired);
    let mut wires = vec![WireDriver::False];
    let mut map = vec![Lit::FALSE; uses.len()];
    for (i, wire) in wired.circuit.wires.iter().enumerate().skip(1).filter(|(i, _)| uses[*i] > 0) {
        let lit = |l: Lit| map[l.wire()].flip(l.inverted());
        let wire = match *wire {
            WireDriver::Xor(a, b) => {
                WireDriver::Xor(map[a as usize].wire() as u32, map[b as usize].wire() as u32)
            }
            WireDriver::And(a, b) => WireDriver::And(lit(a), lit(b)),
            other => other,
        };
        map[i] = Lit::of(wires.len());
        wires.push(wire);
    }
    finish(wired, wires, &map)
}

fn finish(wired: &Wired, wires: Vec<WireDriver>, map: &[Lit]) -> Wired {
    let mut next = Wired { circuit: Circuit { wires }, ..wired.clone() };
    for bit in next.outputs.iter_mut().flat_map(|o| &mut o.bits) {
        *bit = map[bit.wire()].flip(bit.inverted());
    }
    next
}

/// Builds the circuit again by the rules; with `factor` also those about sums of ANDs.
fn rebuild(wired: &Wired, factor: bool) -> Wired {
    let uses = uses(wired);
    let mut builder = Builder::new();
    let mut map = vec![Lit::FALSE; uses.len()];
    let inner = if factor { inner(wired, &uses) } else { vec![false; uses.len()] };
    for (i, wire) in wired.circuit.wires.iter().enumerate().skip(1) {
        let lit = |l: Lit| map[l.wire()].flip(l.inverted());
        map[i] = match *wire {
            WireDriver::Xor(..) if inner[i] => Lit::FALSE,
            WireDriver::Xor(..) if factor => {
                let (terms, products) = leaves(&wired.circuit.wires, &uses, &inner, i);
                let products = products.iter().map(|(a, b)| (lit(*a), lit(*b))).collect();
                builder.sum(terms.iter().map(|w| map[*w]).collect(), products)
            }
            WireDriver::Xor(a, b) => builder.xor(map[a as usize], map[b as usize]),
            WireDriver::And(a, b) => builder.and(lit(a), lit(b)),
            input => builder.leaf(input, 0),
        };
    }
    finish(wired, builder.wires, &map)
}

/// XORs that only another XOR reads, once: they are inside a longer sum.
fn inner(wired: &Wired, uses: &[u32]) -> Vec<bool> {
    let mut inner = vec![false; uses.len()];
    for wire in &wired.circuit.wires {
        if let WireDriver::Xor(a, b) = *wire {
            for w in [a as usize, b as usize] {
                inner[w] = uses[w] == 1 && matches!(wired.circuit.wires[w], WireDriver::Xor(..));
            }
        }
    }
    inner
}

/// The terms of the sum that ends at `root`, and its ANDs that nothing else reads, as operands.
fn leaves(wires: &[WireDriver], uses: &[u32], inner: &[bool], root: usize) -> (Vec<usize>, Vec<(Lit, Lit)>) {
    let (mut terms, mut products) = (Vec::new(), Vec::new());
    let mut open = vec![root];
    while let Some(wire) = open.pop() {
        match wires[wire] {
            WireDriver::Xor(a, b) if wire == root || inner[wire] => open.extend([b as usize, a as usize]),
            WireDriver::And(a, b) if uses[wire] == 1 => products.push((a, b)),
            _ => terms.push(wire),
        }
    }
    (terms, products)
}

/// A circuit in the making, with what is known of its wires.
struct Builder {
    wires: Vec<WireDriver>,
    depths: Vec<u32>,
    marks: Vec<u128>,
    rng: Rng,
    /// A wire with a mark.
    sums: HashMap<u128, u32>,
    /// An AND of wires with these marks, the smaller one first.
    ands: HashMap<(u128, u128), u32>,
}

impl Builder {
    fn new() -> Self {
        // Marks are only compared; any randomness gives the same circuit.
        let rng = Seed::from_system().into_rng();
        let (sums, ands) = (HashMap::from([(0, 0)]), HashMap::new());
        Self { wires: vec![WireDriver::False], depths: vec![0], marks: vec![0], rng, sums, ands }
    }

    fn depth(&self, lit: Lit) -> u32 {
        self.depths[lit.wire()]
    }

    fn mark(&self, lit: Lit) -> u128 {
        self.marks[lit.wire()]
    }

    fn push(&mut self, wire: WireDriver, depth: u32, mark: u128) -> Lit {
        let index = self.wires.len();
        self.wires.push(wire);
        self.depths.push(depth);
        self.marks.push(mark);
        self.sums.insert(mark, index as u32);
        Lit::of(index)
    }

    /// A wire that is no sum.
    fn leaf(&mut self, wire: WireDriver, depth: u32) -> Lit {
        let mark = u128::from_le_bytes(self.rng.bytes());
        self.push(wire, depth, mark)
    }

    fn xor(&mut self, a: Lit, b: Lit) -> Lit {
        let flip = a.inverted() ^ b.inverted();
        let (mark, depth) = (self.mark(a) ^ self.mark(b), self.depth(a).max(self.depth(b)));
        if let Some(&known) = self.sums.get(&mark)
            && self.depths[known as usize] <= depth
        {
            return Lit::of(known as usize).flip(flip);
        }
        let (a, b) = (a.wire().min(b.wire()), a.wire().max(b.wire()));
        self.push(WireDriver::Xor(a as u32, b as u32), depth, mark).flip(flip)
    }

    /// Whether two literals are equal (`Some(true)`) or complements.
    fn compare(&self, a: Lit, b: Lit) -> Option<bool> {
        (self.mark(a) == self.mark(b)).then(|| a.inverted() == b.inverted())
    }

    /// The operands of the AND that a literal is, or is the complement of.
    fn product(&self, lit: Lit) -> Option<[Lit; 2]> {
        if let WireDriver::And(a, b) = self.wires[lit.wire()] { Some([a, b]) } else { None }
    }

    fn and(&mut self, a: Lit, b: Lit) -> Lit {
        match (a.as_constant(), b.as_constant(), self.compare(a, b)) {
            (Some(false), ..) | (_, Some(false), _) | (_, _, Some(false)) => return Lit::FALSE,
            (Some(true), ..) => return b,
            (_, Some(true), _) | (_, _, Some(true)) => return a,
            _ => {}
        }
        if let Some(lit) = self.absorbed(a, b).or_else(|| self.absorbed(b, a)) {
            return lit;
        }
        if let Some(lit) = self.exclusive(a, b) {
            return lit;
        }
        let key = (self.mark(a).min(self.mark(b)), self.mark(a).max(self.mark(b)));
        let depth = 1 + self.depth(a).max(self.depth(b));
        if let Some(&known) = self.ands.get(&key)
            && self.depths[known as usize] <= depth
        {
            return self.other_polarity(known as usize, a, b);
        }
        let lit = self.leaf(WireDriver::And(a.min(b), a.max(b)), depth);
        self.ands.insert(key, lit.wire() as u32);
        lit
    }

    /// `a & b` where `b` is an AND that has `a` for an operand, or a complement of that.
    fn absorbed(&mut self, a: Lit, b: Lit) -> Option<Lit> {
        let [p, q] = self.product(b)?;
        let (same, other) = match (self.compare(a, p), self.compare(a, q)) {
            (Some(same), _) => (same, q),
            (_, Some(same)) => (same, p),
            _ => return None,
        };
        Some(match (b.inverted(), same) {
            (false, true) => b,
            (false, false) => Lit::FALSE,
            (true, true) => self.and(a, !other),
            (true, false) => a,
        })
    }

    /// `a & b` where both are ANDs, or complements of ANDs, of which at most one can be 1.
    fn exclusive(&mut self, a: Lit, b: Lit) -> Option<Lit> {
        let (left, right) = (self.product(a)?, self.product(b)?);
        let mut pairs = left.iter().flat_map(|p| right.iter().map(move |q| (*p, *q)));
        pairs.find(|(p, q)| self.compare(*p, *q) == Some(false))?;
        Some(match (a.inverted(), b.inverted()) {
            (false, false) => Lit::FALSE,
            (false, true) => a,
            (true, false) => b,
            (true, true) => self.xor(a, !b),
        })
    }

    /// `a & b` from an AND of the same wires in other polarities: complementing an operand adds the other
    /// one.
    fn other_polarity(&mut self, known: usize, a: Lit, b: Lit) -> Lit {
        let [p, q] = self.product(Lit::of(known)).expect("the table has ANDs");
        let (a, b) = if self.mark(a) == self.mark(p) { (a, b) } else { (b, a) };
        let mut lit = Lit::of(known);
        if a.inverted() != p.inverted() {
            lit = self.xor(lit, q);
        }
        if b.inverted() != q.inverted() {
            lit = self.xor(lit, a);
        }
        lit
    }

    /// The sum of terms and products; products that share an operand become one.
    fn sum(&mut self, terms: Vec<Lit>, mut products: Vec<(Lit, Lit)>) -> Lit {
        let mut sum = Lit::FALSE;
        let mut with: HashMap<usize, (Lit, Lit)> = HashMap::new();
        while let Some((a, b)) = products.pop() {
            let partner = [(a, b), (b, a)].into_iter().find(|(p, _)| with.contains_key(&p.wire()));
            let Some((p, q)) = partner else {
                with.insert(a.wire(), (a, b));
                with.insert(b.wire(), (a, b));
                continue;
            };
            let (x, y) = with[&p.wire()];
            with.remove(&x.wire());
            with.remove(&y.wire());
            let (common, other) = if x.wire() == p.wire() { (x, y) } else { (y, x) };
            let both = self.xor(q, other);
            if common != p {
                // p q + (1 + p) other = other + p (q + other).
                sum = self.xor(sum, other);
            }
            products.push((p, both));
        }
        // In the order of operands, so that the circuit is the same every time.
        let mut left: Vec<(Lit, Lit)> = with.into_values().collect();
        left.sort_unstable();
        left.dedup();
        for (a, b) in left {
            let product = self.and(a, b);
            sum = self.xor(sum, product);
        }
        // A term that stands there twice is none.
        let mut odd: BTreeMap<usize, Lit> = BTreeMap::new();
        for term in terms {
            if let Some(twin) = odd.remove(&term.wire()) {
                sum = sum.flip(term != twin);
            } else {
                odd.insert(term.wire(), term);
            }
        }
        odd.into_values().fold(sum, |sum, term| self.xor(sum, term))
    }
}
