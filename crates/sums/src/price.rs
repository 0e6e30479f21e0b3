//! What a unit costs, exactly, and how it is cut: batches, groups of batches in flight, turns.

use crate::schedule::{Round, Schedule};
use base::{Cost, PartyId, limits};
use engine::StagePrice;
use ot::{ExtensionCost, OtKind, PriceMeter};
use program::lower::{FoldPlan, RowPlan};

/// Most batches in flight: while one waits for the peer, the others are worked on. Rounds are paid once per
/// flight, which decides the pace over a long path.
const FLIGHT: usize = 16;
/// Bytes of OTs drawn for one group, by one party.
const GROUP_BYTES: usize = 64 << 20;

/// How a program's rows are cut, and what crosses per lane.
#[derive(Clone, Debug)]
pub(super) struct BatchCut {
    pub kind: OtKind,
    /// Who speaks first.
    pub first: PartyId,
    /// Rows of a batch, a multiple of 64.
    pub lanes: usize,
    /// Most batches of a group.
    flight: usize,
    /// Bytes of the longest turn of a batch.
    turn_bytes: usize,
    /// Nothing crosses: every total is known to one party.
    pub local: bool,
    /// COTs per lane, by sender.
    cots: [usize; 2],
    /// Bits per lane by turn of the first and of the other party, and products of bits per lane.
    turns: Vec<[usize; 2]>,
    ands: u64,
}

impl BatchCut {
    pub fn new(schedule: &Schedule, plan: &RowPlan, kind: OtKind, lanes: usize) -> Self {
        let rounds = &schedule.rounds;
        let receives = |p: PartyId| rounds.first().map_or(0, |r| r.cots(p.other()));
        let first = PartyId(u8::from(receives(PartyId(1)) > receives(PartyId(0))));
        let turn = |t: usize| {
            let (before, now) = (t.checked_sub(1).map(|r| &rounds[r]), rounds.get(t));
            let answers = before.map_or(0, |r| r.answer_bits(first));
            let choices = now.map_or(0, |r| r.cots(first.other()));
            let follows = now.map_or(0, |r| r.cots(first) + r.answer_bits(first.other()));
            [answers + choices, follows]
        };
        let turns: Vec<[usize; 2]> = (0..=rounds.len()).map(turn).collect();
        let per_lane = 16 * (schedule.cots[0] + schedule.cots[1]).max(1);
        let lanes = lanes.min(kernels::LANES_MAX).min(GROUP_BYTES / per_lane / 64 * 64).max(64);
        let flight = (GROUP_BYTES / per_lane / lanes).clamp(1, FLIGHT);
        let turn_bytes = turns.iter().flatten().max().map_or(0, |bits| bits * lanes / 8);
        let local = plan.folds.iter().all(|f| matches!(f, FoldPlan::Alone(_)))
            || schedule.cots.iter().all(|c| *c == 0);
        let ands = rounds.iter().map(|r| r.ands() as u64).sum();
        Self { kind, first, lanes, flight, turn_bytes, local, cots: schedule.cots, turns, ands }
    }

    /// Bytes of the choices that answer to `sender`.
    pub fn choice_bytes(&self, round: &Round, sender: PartyId, lanes: usize) -> usize {
        round.cots(sender) * lanes / 8
    }

    /// Bytes of the answers of `sender`.
    pub fn answer_bytes(&self, round: &Round, sender: PartyId, lanes: usize) -> usize {
        round.answer_bits(sender) * lanes / 8
    }

    /// Batches of a group over a channel with this window: what is under way at once stays within half of it,
    /// so that neither party waits to send while the other one does.
    pub fn flight(&self, window: usize) -> usize {
        (window / 2 / self.turn_bytes.max(1)).clamp(1, self.flight)
    }

    /// First row and number of rows of every group of a unit.
    pub fn groups(&self, rows: u64, flight: usize) -> impl Iterator<Item = (u64, u64)> + use<> {
        let group = (self.lanes * flight) as u64;
        (0..rows.div_ceil(group)).map(move |g| (g * group, group.min(rows - g * group)))
    }

    /// About how many COTs each direction will make.
    pub fn expected(&self, rows: u64) -> u64 {
        rows.saturating_mul(self.cots[0].max(self.cots[1]) as u64)
    }

    /// What a unit of so many rows takes. Turns are those over a channel with a full window; what is said by
    /// one party on end crosses the path once.
    pub fn price(&self, rows: u64) -> StagePrice {
        let mut cost = Cost::zero(2);
        if self.local {
            return StagePrice::of(cost);
        }
        let mut waits = Waits::default();
        let expected = self.expected(rows);
        self.set_up(expected, &mut cost, &mut waits);
        // By sender. What set-up costs is in `cost` already.
        let mut meters = [0, 1].map(|_| {
            let mut meter = PriceMeter::new(self.kind, expected);
            meter.setup();
            meter
        });
        for (_, count) in self.groups(rows, self.flight(limits::WINDOW_BYTES)) {
            self.group(count, &mut meters, &mut cost, &mut waits);
        }
        cost.rounds = waits.turns[0].max(waits.turns[1]);
        StagePrice { and_gates: cost.and_gates, trips: waits.trips, cost }
    }

    fn set_up(&self, expected: u64, cost: &mut Cost, waits: &mut Waits) {
        let leader = leader();
        let price = ExtensionCost::pair(self.kind, expected);
        *cost += &price.cost(leader, leader.other(), 2);
        match self.kind {
            OtKind::SoftSpoken { k } => {
                waits.message(leader);
                waits.message(leader.other());
                if ExtensionCost::setup(k).receiver > 0 {
                    waits.message(leader);
                }
            }
            // Its last messages cross: nobody waits for an answer then.
            OtKind::Ferret => {
                waits.turns = [price.turns; 2];
                waits.trips += price.turns + 2;
            }
        }
    }

    fn group(&self, rows: u64, meters: &mut [PriceMeter; 2], cost: &mut Cost, waits: &mut Waits) {
        let all = self.lanes as u64;
        let batches = rows.div_ceil(all);
        let lanes = (batches - 1) * all + (rows - (batches - 1) * all).next_multiple_of(64);
        cost.and_gates += self.ands * lanes;
        for sender in [self.first.other(), self.first] {
            let meter = &mut meters[sender.index()];
            let before = meter.price();
            meter.correlated_random(lanes as usize * self.cots[sender.index()]);
            let after = meter.price();
            cost.ots += after.ots - before.ots;
            for (party, bytes) in
                [(sender, after.sender - before.sender), (sender.other(), after.receiver - before.receiver)]
            {
                cost.sent[party.index()] += bytes;
                if bytes > 0 {
                    waits.message(party);
                }
            }
        }
        for turn in &self.turns {
            for (speaker, bits) in [self.first, self.first.other()].into_iter().zip(turn) {
                cost.sent[speaker.index()] += *bits as u64 * lanes / 8;
            }
        }
        for turn in &self.turns {
            for (speaker, bits) in [self.first, self.first.other()].into_iter().zip(turn) {
                if *bits > 0 {
                    waits.trip(speaker);
                }
            }
        }
        self.waits(batches, waits);
    }

    /// Waits of either party in the rounds of a group: a party hears the other's last turn of the same batch.
    fn waits(&self, batches: u64, waits: &mut Waits) {
        for t in 0..self.turns.len() {
            let heard = [t.checked_sub(1).map_or(0, |t| self.turns[t][1]), self.turns[t][0]];
            for (role, party) in [self.first, self.first.other()].into_iter().enumerate() {
                for _ in 0..batches {
                    if heard[role] > 0 {
                        waits.hear(party);
                    }
                    if self.turns[t][role] > 0 {
                        waits.say(party);
                    }
                }
            }
        }
    }
}

/// The party that leads the base OTs.
fn leader() -> PartyId {
    PartyId(u8::from(!ot::leads(PartyId(0), PartyId(1))))
}

/// Counts turns as the ledger does, receives that follow a send; and trips, changes of who speaks.
#[derive(Clone, Copy, Default)]
struct Waits {
    spoke: [bool; 2],
    turns: [u64; 2],
    /// Whose words are on the path.
    speakers: [bool; 2],
    trips: u64,
}

impl Waits {
    fn say(&mut self, party: PartyId) {
        self.spoke[party.index()] = true;
    }

    fn hear(&mut self, party: PartyId) {
        self.turns[party.index()] += u64::from(std::mem::take(&mut self.spoke[party.index()]));
    }

    fn message(&mut self, from: PartyId) {
        self.say(from);
        self.hear(from.other());
        self.trip(from);
    }

    /// What a party says behind its own words travels with them.
    fn trip(&mut self, from: PartyId) {
        self.trips += u64::from(!self.speakers[from.index()]);
        self.speakers = [PartyId(0), PartyId(1)].map(|party| party == from);
    }
}
