//! Releases, the noise that is drawn before them, and a viewer's lists.
//!
//! **Functionality.** The seats hold the totals, owners know some alone; the seats get shares of the outputs.
//! Noise is drawn before the rows, of coins that nobody knows: summand j of a coin is of a stream of K_j,
//! which its three holders tossed coins for.
//!
//! **Protocol.** 0. The seats agree on keys and evaluate all draws at once. What sums take becomes numbers,
//! to which they add shares of zero. 1. Owners enter their totals: from here on they are fixed. 2. Where
//! outputs are sums of multiples of totals ([`ReleasePlan::sums`]) every seat adds up its summands, noise
//! among them, and nothing is sent. Elsewhere they evaluate gates, and where somebody without a seat is to
//! see the outputs they add shares of zero, for summands as they lie could tell how a value was computed. 3.
//! Who sees the outputs gets all that a seat holds from each (`engine::outputs`), so that one of them can
//! neither stop nor bend what follows. Before that all say that everything was checked: with noise by
//! committing to what they hold (`privacy::hold`), without it here.
//!
//! **Security, who learns what.** That of the engine; nothing is revealed here. A corrupted seat lacks one
//! summand of every coin, of a key that an honest one tossed for. Summands of a sum are uniform but for it,
//! as those of its noise are.
//!
//! **Cost.** The gates of the draws on one lane, and for a noise that becomes a number what a word costs, and
//! 48 B. Sums: what owners enter, two rounds. Gates: rounds, not bytes. Coins cost nothing.

use crate::bits::BitSlices;
use crate::engine::evaluate::{LayerEvaluator, LayeredCircuit};
use crate::engine::rows::unlist;
use crate::seats::member::Member;
use crate::{Planes, Ring4, Seat, SeatParty, SharedVector, VectorRing};
use base::{Error, PartyId};
use circuits::{InputBit, Lit};
use engine::{
    DrawnNoise, Entered, OutputShares, PreparedDraw, PreparedLists, PreparedRelease, Share, StagePrice,
    outputs,
};
use kernels::Block;
use net::Session;
use program::Program;
use program::entries::Knows;
use program::lower::{Draws, LinearSum, NoiseDraw, NoisedAt, ReleasePlan, ReleaseWord, WordKind};
use std::collections::HashMap;
use std::sync::Arc;
use zeroize::Zeroizing;

/// What sums are of.
const RING: VectorRing = VectorRing::Z128;

/// What a seat holds of the noises: the bits of each, and where its number is among those that sums take.
#[derive(Default)]
pub(crate) struct Noises {
    places: HashMap<NoisedAt, (BitSlices<3>, usize)>,
    numbers: Option<SharedVector>,
}

impl Noises {
    fn of(&self, at: NoisedAt) -> Result<&(BitSlices<3>, usize), Error> {
        self.places
            .get(&at)
            .ok_or_else(|| Error::misuse("a release of ring4 takes noise that was drawn before it"))
    }

    /// Part `k` of a noise's number.
    fn number(&self, at: NoisedAt, k: usize) -> Result<u128, Error> {
        let (_, place) = self.of(at)?;
        let number = self.numbers.as_ref().and_then(|numbers| numbers.parts()[k].get(*place));
        number.map(|block| block.0).ok_or_else(|| Error::misuse("this noise was drawn for gates"))
    }
}

/// The draws of all releases, made ready.
pub(crate) struct RingDraw {
    draws: Arc<Draws>,
    circuit: LayeredCircuit,
    /// How many of them become numbers, and of how many bits at most.
    numbers: (usize, usize),
    ring4: Ring4,
}

/// What one participant holds of the noise, and the keys that it was drawn under: those of its releases.
struct RingNoise {
    member: Member,
    noises: Noises,
}

impl RingDraw {
    pub fn new(draws: Arc<Draws>, ring4: Ring4) -> Self {
        let roots: Vec<Lit> = draws.drawn.iter().flat_map(|noise| noise.bits.iter().copied()).collect();
        let summed = || draws.drawn.iter().filter(|noise| noise.in_sums);
        let widest = summed().map(|noise| noise.bits.len()).max().unwrap_or(0);
        let (circuit, numbers) =
            (LayeredCircuit::of_shares(&draws.circuit, &roots), (summed().count(), widest));
        Self { draws, circuit, numbers, ring4 }
    }

    fn draw(&self, given: &Entered, member: &mut Member, session: &mut Session) -> Result<Noises, Error> {
        if member.server().is_none() {
            return Ok(Noises::default());
        }
        let drawn = &self.draws.drawn;
        let mut evaluator = LayerEvaluator::new(member, session);
        let mut coins = toss(&self.draws, given, member);
        let roots =
            session.step("circuit", |s| evaluator.join(member, s, &self.circuit, 1, &[], &mut coins))?;
        let Some(server) = member.server() else { return Ok(Noises::default()) };
        let mut roots = roots.iter();
        let word = |noise: &NoiseDraw| {
            let mut bits = BitSlices::default();
            roots.by_ref().take(noise.bits.len()).for_each(|bit| bits.append(bit));
            bits
        };
        let words: Vec<BitSlices<3>> = drawn.iter().map(word).collect();
        let of_sums = drawn.iter().zip(&words).filter(|(noise, _)| noise.in_sums);
        let of_sums: Vec<&BitSlices<3>> = of_sums.map(|(_, bits)| bits).collect();
        let numbers = session.step("numbers", |s| numbers(server, s, &of_sums))?;
        let mut next = 0;
        let place = |(noise, bits): (&NoiseDraw, BitSlices<3>)| {
            let place = next;
            next += usize::from(noise.in_sums);
            (noise.at, (bits, if noise.in_sums { place } else { usize::MAX }))
        };
        Ok(Noises { places: drawn.iter().zip(words).map(place).collect(), numbers })
    }
}

impl PreparedDraw for RingDraw {
    fn price(&self) -> StagePrice {
        let (mut quote, (count, width)) = (self.ring4.quote(self.draws.parties), self.numbers);
        quote.member_setup();
        self.circuit.quote_join(&mut quote, 1);
        if count > 0 {
            quote.word_to_ring(RING, count, width as u32);
            quote.refresh(RING, count);
        }
        quote.price(self.circuit.and_gates())
    }

    fn run(&self, given: &Entered, session: &mut Session) -> Result<DrawnNoise, Error> {
        self.ring4.check_roster(self.draws.parties, session)?;
        session.step("draw", |session| {
            let mut member = self.ring4.member(session)?;
            let noises = self.draw(given, &mut member, session)?;
            Ok(DrawnNoise::of(RingNoise { member, noises }))
        })
    }
}

/// Loads coins: random bits, the four summands of a piece at one place of their streams, or another value
/// where one is given.
fn toss<'a>(
    draws: &'a Draws,
    given: &'a Entered,
    member: &mut Member,
) -> impl FnMut(&InputBit, [&mut [Block]; 3]) -> Result<(), Error> + use<'a> {
    let mut places = Vec::with_capacity(draws.words.len());
    let mut count = 0;
    for word in &draws.words {
        let WordKind::CoinSummand(.., j) = word.kind else { continue };
        places.push((Seat::new(j.into()), count));
        count += if j + 1 == program::lower::SUMMANDS { usize::from(word.width) } else { 0 };
    }
    let seat = member.server().map(|server| server.seat());
    let bits =
        member.server().map(|server| BitSlices::of(server.random(VectorRing::Z2, count))).unwrap_or_default();
    move |input, into| {
        let (summand, at) = places[input.word as usize];
        if let Some(part) = seat.and_then(|seat| seat.part_of(summand)) {
            into[part][0].0 = match given.get(input.word as usize) {
                Some(given) => given >> input.bit & 1,
                None => u128::from(bits.bit(part, at + usize::from(input.bit))),
            };
        }
        Ok(())
    }
}

/// Words as numbers, whose summands are fresh.
fn numbers(
    server: &mut SeatParty,
    session: &mut Session,
    words: &[&BitSlices<3>],
) -> Result<Option<SharedVector>, Error> {
    let Some(widest) = words.iter().map(|word| word.len()).max() else { return Ok(None) };
    let plane = |i: usize| {
        let mut plane = BitSlices::with_capacity(words.len());
        words.iter().for_each(|w| plane.push(w.slices(), i.min(w.len() - 1), 1, [Block::ZERO; 3]));
        plane.into_shares()
    };
    let planes = Planes::new((0..widest).map(plane).collect())?;
    let all = server.signed_word_to_ring(session, RING, &planes)?;
    server.refresh(session, &all).map(Some)
}

/// The words that an owner enters as numbers, where it does.
fn owned(plan: &ReleasePlan) -> impl Iterator<Item = (PartyId, Vec<usize>)> + '_ {
    let of = |owner: PartyId| {
        let mine = |word: &ReleaseWord| matches!(word.kind, WordKind::Alone(_)) && word.owner == owner;
        (owner, (0..plan.words.len()).filter(|i| mine(&plan.words[*i])).collect::<Vec<_>>())
    };
    (0..plan.parties as u8).map(PartyId).map(of).filter(|(_, words)| !words.is_empty())
}

/// To what shares of zero are added.
fn refreshed(plan: &ReleasePlan, seats: [PartyId; 4]) -> Option<(VectorRing, usize)> {
    if outputs::viewers(plan).all(|viewer| seats.contains(&viewer)) {
        return None;
    }
    let Some(sums) = &plan.sums else { return Some((VectorRing::Z2, plan.bits())) };
    // What only its viewer knows is shared by itself.
    let fresh = |sum: &LinearSum| {
        let words = || sum.terms.iter().map(|(word, _)| plan.words[*word as usize]);
        let own =
            |word: ReleaseWord| matches!(word.kind, WordKind::Alone(_)) && plan.viewer == word.owner.into();
        words().any(|word| word.kind.is_noise()) || words().all(own)
    };
    (!sums.iter().all(fresh)).then_some((RING, sums.len()))
}

/// A release, made ready.
pub(crate) struct RingRelease {
    plan: Arc<ReleasePlan>,
    /// Its gates; of sums there are none.
    circuit: LayeredCircuit,
    ring4: Ring4,
}

impl RingRelease {
    pub fn new(plan: Arc<ReleasePlan>, ring4: Ring4) -> Self {
        let roots: Vec<Lit> = if plan.sums.is_some() { Vec::new() } else { plan.roots().collect() };
        let knows = |input: &InputBit| match plan.words[input.word as usize] {
            ReleaseWord { kind: WordKind::Alone(_) | WordKind::Candidate(..), owner, .. } => {
                Knows::Party(owner)
            }
            _ => Knows::Nobody,
        };
        let inputs = ring4.settings.inputs();
        let circuit = LayeredCircuit::new(&plan.circuit, &roots, plan.parties, &knows, inputs);
        Self { plan, circuit, ring4 }
    }

    /// Whether every release sets up keys and confirms by itself: not where its noise was drawn before.
    fn confirms(&self) -> bool {
        self.ring4.settings.checked() && !self.plan.is_drawn()
    }

    /// Computes it under the keys of `member`.
    fn compute(
        &self,
        (member, noises): (&mut Member, &Noises),
        entered: &Entered,
        session: &mut Session,
    ) -> Result<OutputShares, Error> {
        let plan = &*self.plan;
        let shares = match &plan.sums {
            Some(sums) => add_up((plan, noises), sums, member, entered, session)?,
            None => evaluate((plan, noises), &self.circuit, member, entered, session)?,
        };
        let (Some(server), Some(mut shares)) = (member.server(), shares) else {
            return Ok(OutputShares::none());
        };
        session.step("check", |session| {
            if refreshed(plan, self.ring4.seats).is_some() {
                shares = server.refresh(session, &shares.without_padding())?;
            }
            if self.confirms() { server.confirm(session) } else { Ok(()) }
        })?;
        let part = |k: usize| match &plan.sums {
            Some(sums) => bits_of(sums, shares.parts()[k]),
            None => {
                let bit = |at: usize| shares.parts()[k][at / 128].0 >> (at % 128) & 1 == 1;
                (0..plan.bits()).map(bit).collect()
            }
        };
        // In order of the summands' numbers, which the parts are not in.
        let mut parts = [0, 1, 2].map(|k| (server.seat().summand(k).index(), k));
        parts.sort_unstable();
        let parts = parts.map(|(_, k)| Zeroizing::new(part(k)));
        Ok(OutputShares::of_summands(parts.each_ref().map(|part| part.as_slice())))
    }
}

impl PreparedRelease for RingRelease {
    fn plan(&self) -> &ReleasePlan {
        &self.plan
    }

    fn holders(&self) -> &[PartyId] {
        &self.ring4.seats
    }

    fn price(&self) -> StagePrice {
        let (plan, mut quote) = (&*self.plan, self.ring4.quote(self.plan.parties));
        if plan.bits() == 0 || plan.alone().is_some() {
            return quote.price(0);
        }
        if !plan.is_drawn() {
            quote.member_setup();
        }
        if plan.sums.is_some() {
            owned(plan).for_each(|(owner, words)| quote.enter(owner, RING, words.len()));
        } else {
            self.circuit.quote_enter(&mut quote, 1);
            self.circuit.quote_join(&mut quote, 1);
        }
        if let Some((ring, len)) = refreshed(plan, self.ring4.seats) {
            quote.refresh(ring, len);
        }
        if self.confirms() {
            quote.confirm();
        }
        quote.price(self.circuit.and_gates())
    }

    fn run(
        &self,
        entered: &Entered,
        noise: &mut DrawnNoise,
        session: &mut Session,
    ) -> Result<OutputShares, Error> {
        self.ring4.check_roster(self.plan.parties, session)?;
        if let Some(alone) = outputs::alone(&self.plan, entered, session.me())? {
            return Ok(alone);
        }
        if self.plan.bits() == 0 {
            return Ok(OutputShares::none());
        }
        session.step("release", |session| {
            if self.plan.is_drawn() {
                let RingNoise { member, noises } = noise.get()?;
                return self.compute((member, noises), entered, session);
            }
            let mut member = self.ring4.member(session)?;
            self.compute((&mut member, &Noises::default()), entered, session)
        })
    }
}

/// Summands of sums, each of its width.
fn bits_of(sums: &[LinearSum], summands: &[Block]) -> Vec<bool> {
    let bits = |(sum, summand): (&LinearSum, &Block)| {
        let summand = summand.0;
        (0..sum.width).map(move |i| summand >> i & 1 == 1)
    };
    sums.iter().zip(summands).flat_map(bits).collect()
}

/// Owners enter what they know, and every seat adds up what it holds.
fn add_up(
    (plan, noises): (&ReleasePlan, &Noises),
    sums: &[LinearSum],
    member: &mut Member,
    entered: &Entered,
    session: &mut Session,
) -> Result<Option<SharedVector>, Error> {
    let mut held = Zeroizing::new(vec![[0u128; 3]; plan.words.len()]);
    for (owner, words) in owned(plan) {
        let mine = if owner == session.me() { &words[..] } else { &[] };
        let value: Result<Vec<Block>, Error> =
            mine.iter().map(|word| entered.need(*word).map(Block)).collect();
        let value = Zeroizing::new(value?);
        let shares = session.step("enter", |s| member.enter(s, owner, (RING, words.len()), &value))?;
        for (at, word) in words.into_iter().enumerate().filter(|_| shares.is_some()) {
            held[word] = shares.as_ref().map_or([0; 3], |shares| shares.parts().map(|part| part[at].0));
        }
    }
    let Some(server) = member.server() else { return Ok(None) };
    let part = |j: u8| server.seat().part_of(Seat::new(j.into()));
    for (i, word) in plan.words.iter().enumerate() {
        match word.kind {
            WordKind::Summand(_, j) => {
                if let Some(k) = part(j) {
                    held[i][k] = entered.need(i)?;
                }
            }
            WordKind::NoiseSummand(at, j) => {
                if let Some(k) = part(j) {
                    held[i][k] = noises.number(at, k)?;
                }
            }
            _ => {}
        }
    }
    let mut all = SharedVector::zero(RING, sums.len());
    for (k, into) in all.parts_mut().into_iter().enumerate() {
        for (sum, into) in sums.iter().zip(into) {
            let start = if part(0) == Some(k) { sum.constant } else { 0 };
            let add = |all: u128, (word, factor): &(u32, u128)| {
                all.wrapping_add(held[*word as usize][k].wrapping_mul(*factor))
            };
            into.0 = sum.terms.iter().fold(start, add);
        }
    }
    Ok(Some(all))
}

/// Owners enter what they know, and the seats evaluate gates.
fn evaluate(
    (plan, noises): (&ReleasePlan, &Noises),
    circuit: &LayeredCircuit,
    member: &mut Member,
    entered: &Entered,
    session: &mut Session,
) -> Result<Option<SharedVector>, Error> {
    let mut evaluator = LayerEvaluator::new(member, session);
    let mut known = |input: &InputBit, [place]: [&mut [Block]; 1]| {
        place[0].0 = entered.need(input.word as usize)? >> input.bit & 1;
        Ok(())
    };
    let owned = session.step("enter", |s| evaluator.enter(member, s, circuit, 1, &mut known))?;
    let seat = member.server().map(|server| server.seat());
    let mut held = |input: &InputBit, into: [&mut [Block]; 3]| {
        let (WordKind::Summand(_, j) | WordKind::NoiseSummand(_, j)) = plan.words[input.word as usize].kind
        else {
            return Err(Error::misuse("a word that an owner enters"));
        };
        let Some(part) = seat.and_then(|seat| seat.part_of(Seat::new(j.into()))) else { return Ok(()) };
        into[part][0].0 = match plan.words[input.word as usize].kind {
            WordKind::NoiseSummand(at, _) => noises.of(at)?.0.bit(part, input.bit.into()).into(),
            _ => entered.need(input.word as usize)? >> input.bit & 1,
        };
        Ok(())
    };
    let roots = session.step("circuit", |s| evaluator.join(member, s, circuit, 1, &owned, &mut held))?;
    let mut all = BitSlices::with_capacity(plan.bits());
    roots.iter().for_each(|bits| all.append(bits));
    Ok(seat.map(|_| all.into_shares()))
}

/// Reveals bits to one viewer, all at once, after the seats have told each other that everything was checked.
pub(crate) fn reveal(
    shares: &[BitSlices<3>],
    count: usize,
    viewer: PartyId,
    member: &mut Member,
    session: &mut Session,
) -> Result<Option<BitSlices<1>>, Error> {
    if member.settings().checked() {
        member.confirm(session)?;
    }
    let mut all = BitSlices::with_capacity(count);
    shares.iter().for_each(|bits| all.append(bits));
    let all = member.server().map(|_| all.into_shares());
    let opened = member.reveal(session, all.as_ref(), (VectorRing::Z2, count), viewer)?;
    Ok(opened.map(|blocks| {
        let mut bits = BitSlices::default();
        bits.push([&blocks], 0, count, [Block::ZERO]);
        bits
    }))
}

/// A viewer's lists, made ready.
pub(crate) struct RingLists {
    parties: usize,
    viewer: PartyId,
    folds: Vec<u32>,
    ring4: Ring4,
}

impl RingLists {
    pub fn new(program: &Program, viewer: PartyId, ring4: Ring4) -> Self {
        let mine = program.lists.iter().filter(|list| list.to == viewer);
        let (parties, folds) = (program.parties.len(), mine.map(|list| list.fold).collect());
        Self { parties, viewer, folds, ring4 }
    }

    fn reveal(
        &self,
        rows: u64,
        totals: &engine::Shares,
        session: &mut Session,
    ) -> Result<Vec<Vec<u64>>, Error> {
        let (lists, me) = (self.folds.len(), session.me());
        if lists == 0 || rows == 0 {
            return Ok(if me == self.viewer { vec![Vec::new(); lists] } else { Vec::new() });
        }
        let mut member = self.ring4.member(session)?;
        let count = rows as usize;
        let mut shares = Vec::new();
        if let Some(server) = member.server() {
            let numbers = [0, 1, 2].map(|k| server.seat().summand(k).index());
            for &fold in &self.folds {
                shares.push(held_list(totals, fold, numbers, count, me)?);
            }
        }
        let bits = reveal(&shares, lists * count, self.viewer, &mut member, session)?;
        let Some(bits) = bits else { return Ok(Vec::new()) };
        let list = |i: usize| {
            let list = bits.cut(i * count, count);
            let halves = list.part(0).iter().flat_map(|block| [block.0 as u64, (block.0 >> 64) as u64]);
            halves.take(count.div_ceil(64)).collect()
        };
        Ok((0..lists).map(list).collect())
    }
}

impl PreparedLists for RingLists {
    fn price(&self, rows: u64) -> StagePrice {
        let mut quote = self.ring4.quote(self.parties);
        if !self.folds.is_empty() && rows > 0 {
            quote.member_setup();
            if self.ring4.settings.checked() {
                quote.confirm();
            }
            quote.reveal(VectorRing::Z2, self.folds.len() * rows as usize, self.viewer);
        }
        quote.price(0)
    }

    fn run(&self, rows: u64, totals: &engine::Shares, session: &mut Session) -> Result<Vec<Vec<u64>>, Error> {
        self.ring4.check_roster(self.parties, session)?;
        session.step("lists", |session| self.reveal(rows, totals, session))
    }
}

fn held_list(
    totals: &engine::Shares,
    fold: u32,
    numbers: [usize; 3],
    rows: usize,
    me: PartyId,
) -> Result<BitSlices<3>, Error> {
    let fault = || Error::misuse(format!("{me} holds no list of fold {fold} of {rows} rows"));
    let Some(Share::ReplicatedRows(summands)) = totals.folds().get(fold as usize) else {
        return Err(fault());
    };
    let mut parts = [Vec::new(), Vec::new(), Vec::new()];
    for (part, number) in parts.iter_mut().zip(numbers) {
        let words = summands[number].as_ref().filter(|words| words.len() == rows.div_ceil(64));
        unlist(words.ok_or_else(fault)?, part);
    }
    let mut bits = BitSlices::default();
    bits.push(parts.each_ref().map(Vec::as_slice), 0, rows, [Block::ZERO; 3]);
    Ok(bits)
}
