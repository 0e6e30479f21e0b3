//! What a party will pay, found by going through the motions: a [`GateQuote`] has the methods of a
//! [`crate::GateParty`] and the same schedule, and counts instead of talking. Tests hold the ledger against
//! it.

use crate::Layers;
use crate::bits::bytes;
use crate::supply::{Next, Supply};
use crate::triples::{next, posts};
use ::engine::StagePrice;
use base::{Cost, PartyId, limits};
use circuits::Viewers;
use ot::{ExtensionCost, OtKind, PriceMeter};
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

/// Exact cost of what parties do one after the other, by step: application bytes of every party, ANDs, OTs,
/// rounds.
///
/// Rounds are the turns of the busiest party with its busiest peer, on channels with
/// [`limits::WINDOW_BYTES`].
#[derive(Clone)]
pub struct GateQuote {
    parties: usize,
    /// One per pair; none where no triples are made.
    streams: Vec<Stream>,
    supply: Supply,
    lines: Vec<Line>,
    /// Messages that cross the path one after the other.
    trips: u64,
    step: &'static str,
    steps: BTreeMap<&'static str, Cost>,
}

impl GateQuote {
    /// The cost of [`crate::GateParty::new`].
    ///
    /// # Panics
    /// When there are fewer than two parties.
    #[must_use]
    pub fn new(parties: usize, kind: OtKind, expected_ands: u64) -> Self {
        let mut quote = Self::start(parties);
        quote.set_up_ots(kind, expected_ands);
        let mut meter = PriceMeter::new(kind, expected_ands);
        meter.setup();
        let stream = Stream { posted: meter.clone(), taken: meter };
        quote.streams = vec![stream; parties * (parties - 1) / 2];
        quote.agree_seeds();
        quote.end();
        quote
    }

    /// The cost of [`crate::GateParty::for_ands`].
    ///
    /// # Panics
    /// As [`GateQuote::new`].
    #[must_use]
    pub fn for_ands(parties: usize, kind: OtKind, ands: u64) -> Self {
        if ands == 0 { Self::without_triples(parties) } else { Self::new(parties, kind, ands) }
    }

    /// The cost of [`crate::GateParty::without_triples`].
    ///
    /// # Panics
    /// As [`GateQuote::new`].
    #[must_use]
    pub fn without_triples(parties: usize) -> Self {
        let mut quote = Self::start(parties);
        quote.agree_seeds();
        quote.end();
        quote
    }

    fn start(parties: usize) -> Self {
        assert!(parties >= 2, "gmw needs two parties or more");
        let lines = vec![Line::default(); parties * parties];
        let (streams, supply, steps) = (Vec::new(), Supply::default(), BTreeMap::new());
        Self { parties, streams, supply, lines, trips: 0, step: "setup", steps }
    }

    /// As [`crate::GateParty::reserve`].
    pub fn reserve(&mut self, ands: u64) {
        self.supply.announce(ands);
    }

    /// As [`crate::GateParty::eval`].
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

    /// As [`crate::GateParty::reveal`].
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

    /// The cost of all steps so far. Its rounds are those of the busiest line, which need not be the busiest
    /// one of every step.
    #[must_use]
    pub fn total(&self) -> Cost {
        let sum = self.steps.values().fold(Cost::zero(self.parties), |sum, cost| sum + cost.clone());
        Cost { rounds: self.lines.iter().map(|line| line.all).max().unwrap_or(0), ..sum }
    }

    /// How many messages must cross the path one after the other, each half a round trip: those of all
    /// parties at once count once, and so do those that are sent ahead together.
    #[must_use]
    pub fn trips(&self) -> u64 {
        self.trips
    }

    /// All of it.
    #[must_use]
    pub fn price(&self) -> StagePrice {
        let cost = self.total();
        StagePrice { and_gates: cost.and_gates, trips: self.trips, cost }
    }

    fn begin(&mut self, step: &'static str) {
        self.step = step;
    }

    fn cost(&mut self) -> &mut Cost {
        let parties = self.parties;
        self.steps.entry(self.step).or_insert_with(|| Cost::zero(parties))
    }

    /// Adds the turns of a piece of work to the step. They are the busiest line's: every line of a step has
    /// the turns of that step alone.
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
        let heard: Vec<_> = self.pairs().filter(|&(p, q)| bytes(q, p) > 0).collect();
        self.trips += u64::from(!heard.is_empty());
        for (p, q) in heard {
            self.hear(p, q);
        }
    }

    fn set_up_ots(&mut self, kind: OtKind, expected: u64) {
        let pair = ExtensionCost::pair(kind, expected);
        // Choices, replies, trees; a turn of Ferret's are messages that cross.
        self.trips += pair.turns + 2;
        for (leader, other) in self.pairs().filter(|&(p, q)| ot::leads(p, q)) {
            let trees = match kind {
                OtKind::SoftSpoken { k } => ExtensionCost::setup(k).receiver,
                OtKind::Ferret => 0,
            };
            self.send(leader, other, pair.sender - trees);
            self.hear(other, leader);
            self.send(other, leader, pair.receiver);
            self.hear(leader, other);
            self.send(leader, other, trees);
            if trees > 0 {
                self.hear(other, leader);
            }
            if kind == OtKind::Ferret {
                // Both sides talk on and end with a receive; the price has the turns.
                for line in [(leader, other), (other, leader)] {
                    let line = self.line(line.0, line.1);
                    line.spoke = false;
                    line.all += pair.turns - line.turns;
                    line.turns = pair.turns;
                }
            }
        }
        let pairs = (self.parties * (self.parties - 1) / 2) as u64;
        self.cost().ots += pairs * pair.ots;
    }

    fn agree_seeds(&mut self) {
        self.trips += 1;
        for (low, high) in self.pairs().filter(|&(p, q)| p < q) {
            self.send(low, high, 16);
            self.hear(high, low);
        }
    }

    fn triples(&mut self, n: usize) {
        self.begin("triples");
        let (post, ahead) = posts(limits::WINDOW_BYTES, self.parties - 1);
        let sizes: Vec<usize> = (0..n).step_by(post).map(|at| post.min(n - at)).collect();
        self.trips += sizes.len().div_ceil(ahead.max(1)) as u64;
        let mut streams = std::mem::take(&mut self.streams);
        for (stream, (p, q)) in streams.iter_mut().zip(self.pairs().filter(|&(p, q)| p < q)) {
            for &size in sizes.iter().take(ahead) {
                self.post(stream, p, q, size);
            }
            for (i, &size) in sizes.iter().enumerate() {
                self.take(stream, p, q, size);
                if let Some(&size) = sizes.get(i + ahead) {
                    self.post(stream, p, q, size);
                }
            }
        }
        self.streams = streams;
        let parties = self.parties;
        self.exchange(|from, to| if next(from, parties) == to { 0 } else { 2 * bytes(n) });
        self.cost().ots += (parties * (parties - 1) * n) as u64;
        self.end();
    }

    /// Both directions of a pair post `n` OTs.
    fn post(&mut self, stream: &mut Stream, p: PartyId, q: PartyId, n: usize) {
        let said = said(&mut stream.posted, n);
        for (from, to) in [(p, q), (q, p)] {
            // As sender of one direction and as receiver of the other.
            self.send(from, to, said.sender);
            self.send(from, to, said.receiver);
        }
    }

    /// Both directions of a pair take `n` OTs: what was said for them is heard.
    fn take(&mut self, stream: &mut Stream, p: PartyId, q: PartyId, n: usize) {
        let said = said(&mut stream.taken, n);
        for (at, from) in [(p, q), (q, p)] {
            if said.sender + said.receiver > 0 {
                self.hear(at, from);
            }
        }
    }
}

/// The OTs of a pair. Both directions are alike, so one stands for two.
#[derive(Clone)]
struct Stream {
    posted: PriceMeter,
    taken: PriceMeter,
}

/// What `n` more OTs make a direction's sender and receiver say.
fn said(meter: &mut PriceMeter, n: usize) -> ExtensionCost {
    let before = meter.price();
    meter.correlated_random(n);
    let after = meter.price();
    ExtensionCost {
        sender: after.sender - before.sender,
        receiver: after.receiver - before.receiver,
        ..after
    }
}
