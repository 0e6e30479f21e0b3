//! What a party will pay, found by going through the motions: a [`Quote`] has the methods of a [`crate::Party`] and
//! the same schedule, and counts instead of talking. Tests hold the ledger against it.

use crate::Layers;
use crate::bits::bytes;
use crate::supply::{Next, Supply};
use crate::triples::{next, posts};
use base::{Cost, PartyId, limits};
use ot::{OtKind, Price};
use program::wired::Viewers;
use std::collections::BTreeMap;

/// What one party says to one other: turns as the ledger counts them.
#[derive(Clone, Default)]
struct Line {
    /// Of the current step.
    turns: u64,
    /// Of all steps.
    all: u64,
    /// Whether something was said since the last receive.
    spoke: bool,
}

/// Exact cost of what parties do one after the other, by step: application bytes of every party, ANDs, OTs, rounds.
///
/// Rounds are the turns of the busiest party with its busiest peer, on channels with [`limits::WINDOW_BYTES`].
#[derive(Clone)]
pub struct Quote {
    parties: usize,
    kind: OtKind,
    supply: Supply,
    lines: Vec<Line>,
    step: &'static str,
    steps: BTreeMap<&'static str, Cost>,
}

impl Quote {
    /// The cost of [`crate::Party::new`].
    ///
    /// # Panics
    /// When there are fewer than two parties.
    #[must_use]
    pub fn new(parties: usize, kind: OtKind) -> Self {
        let mut quote = Self::start(parties, kind);
        quote.set_up_ots();
        quote.agree_seeds();
        quote.end();
        quote
    }

    /// The cost of [`crate::Party::without_triples`].
    ///
    /// # Panics
    /// As [`Quote::new`].
    #[must_use]
    pub fn without_triples(parties: usize) -> Self {
        let mut quote = Self::start(parties, OtKind::default());
        quote.agree_seeds();
        quote.end();
        quote
    }

    fn start(parties: usize, kind: OtKind) -> Self {
        assert!(parties >= 2, "gmw needs two parties or more");
        let lines = vec![Line::default(); parties * parties];
        let (supply, steps) = (Supply::default(), BTreeMap::new());
        Self { parties, kind, supply, lines, step: "setup", steps }
    }

    /// As [`crate::Party::reserve`].
    pub fn reserve(&mut self, ands: u64) {
        self.supply.announce(ands);
    }

    /// As [`crate::Party::eval`].
    pub fn eval(&mut self, layers: &Layers, lanes: usize) {
        self.supply.ensure(layers.and_gates() * lanes as u64);
        for width in layers.widths() {
            let mut left = width * lanes as u64;
            while left > 0 {
                match self.supply.next(left) {
                    Next::Make(n) => self.triples(n as usize),
                    Next::Open(n) => {
                        left -= n;
                        self.begin("online");
                        self.exchange(|_, _| 2 * bytes(n as usize));
                        self.cost().and_gates += n;
                        self.end();
                    }
                }
            }
        }
    }

    /// As [`crate::Party::reveal`].
    pub fn reveal(&mut self, lanes: usize, viewers: &[&Viewers]) {
        self.begin("reveal");
        self.exchange(|_, to| bytes(viewers.iter().filter(|v| v.has(to)).count() * lanes));
        self.end();
    }

    /// The cost of one step so far: `setup`, `triples`, `online` or `reveal`.
    #[must_use]
    pub fn step(&self, name: &str) -> Cost {
        self.steps.get(name).cloned().unwrap_or_else(|| Cost::zero(self.parties))
    }

    /// The cost of all steps so far. Its rounds are those of the busiest line, which need not be the busiest one of
    /// every step.
    #[must_use]
    pub fn total(&self) -> Cost {
        let sum = self.steps.values().fold(Cost::zero(self.parties), |sum, cost| sum + cost.clone());
        Cost { rounds: self.lines.iter().map(|line| line.all).max().unwrap_or(0), ..sum }
    }

    fn begin(&mut self, step: &'static str) {
        self.step = step;
    }

    fn cost(&mut self) -> &mut Cost {
        let parties = self.parties;
        self.steps.entry(self.step).or_insert_with(|| Cost::zero(parties))
    }

    /// Adds the turns of a piece of work to the step. They are the busiest line's: every line of a step has the turns
    /// of that step alone.
    fn end(&mut self) {
        let turns = self.lines.iter().map(|line| line.turns).max().unwrap_or(0);
        self.lines.iter_mut().for_each(|line| line.turns = 0);
        self.cost().rounds += turns;
    }

    fn pairs(&self) -> impl Iterator<Item = (PartyId, PartyId)> + use<> {
        let parties = self.parties as u8;
        (0..parties)
            .flat_map(move |p| (0..parties).filter(move |&q| q != p).map(move |q| (PartyId(p), PartyId(q))))
    }

    fn line(&mut self, of: PartyId, with: PartyId) -> &mut Line {
        &mut self.lines[of.index() * self.parties + with.index()]
    }

    fn send(&mut self, from: PartyId, to: PartyId, bytes: u64) {
        if bytes > 0 {
            self.cost().sent[from.index()] += bytes;
            self.line(from, to).spoke = true;
        }
    }

    fn hear(&mut self, at: PartyId, from: PartyId) {
        let line = self.line(at, from);
        let turn = u64::from(std::mem::take(&mut line.spoke));
        line.turns += turn;
        line.all += turn;
    }

    fn exchange(&mut self, bytes: impl Fn(PartyId, PartyId) -> usize) {
        for (p, q) in self.pairs() {
            self.send(p, q, bytes(p, q) as u64);
        }
        for (p, q) in self.pairs().filter(|&(p, q)| bytes(q, p) > 0) {
            self.hear(p, q);
        }
    }

    fn set_up_ots(&mut self) {
        let OtKind::SoftSpoken { k } = self.kind;
        let (pair, trees) = (Price::pair(k), Price::setup(k).receiver);
        for (leader, other) in self.pairs().filter(|&(p, q)| ot::leads(p, q)) {
            self.send(leader, other, pair.sender - trees);
            self.hear(other, leader);
            self.send(other, leader, pair.receiver);
            self.hear(leader, other);
            self.send(leader, other, trees);
            if trees > 0 {
                self.hear(other, leader);
            }
        }
    }

    fn agree_seeds(&mut self) {
        for (low, high) in self.pairs().filter(|&(p, q)| p < q) {
            self.send(low, high, 16);
            self.hear(high, low);
        }
    }

    fn triples(&mut self, n: usize) {
        let OtKind::SoftSpoken { k } = self.kind;
        self.begin("triples");
        let (post, ahead) = posts(limits::WINDOW_BYTES);
        let sizes: Vec<usize> = (0..n).step_by(post).map(|at| post.min(n - at)).collect();
        for (p, q) in self.pairs() {
            let cost = |size: usize| Price::posted(k, size as u64).receiver;
            sizes.iter().take(ahead).for_each(|&size| self.send(p, q, cost(size)));
            for i in 0..sizes.len() {
                self.hear(p, q);
                if let Some(&size) = sizes.get(i + ahead) {
                    self.send(p, q, cost(size));
                }
            }
        }
        let parties = self.parties;
        self.exchange(|from, to| if next(from, parties) == to { 0 } else { 2 * bytes(n) });
        self.cost().ots += (parties * (parties - 1) * n) as u64;
        self.end();
    }
}
