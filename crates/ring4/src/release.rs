//! Releases, and a viewer's lists.
//!
//! **Functionality.** The seats hold the totals, owners know some alone; the seats get shares of the outputs' bits. Noise is
//! drawn of coins that nobody knows: summand j of a coin is of a stream of K_j, which its three holders tossed coins for.
//!
//! **Protocol.** 1. Owners enter their totals: from here on they are fixed. 2. The seats evaluate. 3. Where somebody without a
//! seat is to see the outputs they add shares of zero, for summands as they lie could tell how a value was computed. 4. They
//! tell each other that everything was checked. Who sees the outputs gets all that a seat holds from each
//! (`engine::outputs`), so that one of them can neither stop nor bend what follows.
//!
//! **Security, who learns what.** That of the engine; nothing is revealed here. A corrupted seat lacks one summand of every
//! coin, of a key that an honest one tossed for.
//!
//! **Cost.** The gates of the release on one lane: rounds, not bytes. Coins cost nothing.

use crate::bits::Bits;
use crate::evaluate::{Compiled, Evaluator};
use crate::member::Member;
use crate::rows::unlist;
use crate::{Quote, Ring};
use base::{Error, PartyId};
use engine::{Entered, OutputShares, Share, Shares, outputs};
use kernels::Block;
use net::Session;
use program::Program;
use program::circuit::{Input, Lit};
use program::entries::Knows;
use program::lower::{Inputs, ReleasePlan, ReleaseWord, WordKind};

/// A release made ready.
struct Prepared<'a> {
    plan: &'a ReleasePlan,
    circuit: Compiled,
    outputs: usize,
}

impl<'a> Prepared<'a> {
    fn new(plan: &'a ReleasePlan, inputs: Inputs) -> Self {
        let roots: Vec<Lit> = plan.roots().collect();
        let knows = |input: &Input| match plan.words[input.word as usize] {
            ReleaseWord { kind: WordKind::Alone(_) | WordKind::Candidate(..), owner, .. } => {
                Knows::Party(owner)
            }
            _ => Knows::Nobody,
        };
        let circuit = Compiled::new(&plan.circuit, &roots, plan.parties, &knows, inputs);
        Self { plan, circuit, outputs: roots.len() }
    }

    /// Whether nothing is computed together.
    fn is_local(&self) -> bool {
        self.outputs == 0 || self.plan.alone().is_some()
    }

    /// Bits of coins, by summand.
    fn coins(&self) -> usize {
        let bits = |word: &ReleaseWord| match word.kind {
            WordKind::CoinSummand(_, _, 0) => usize::from(word.width),
            _ => 0,
        };
        self.plan.words.iter().map(bits).sum()
    }

    /// Whether somebody without a seat sees the outputs.
    fn leaves(&self, seats: [PartyId; 4]) -> bool {
        outputs::viewers(self.plan).any(|viewer| !seats.contains(&viewer))
    }
}

/// ANDs of shares.
pub(crate) fn and_gates(plan: &ReleasePlan, inputs: Inputs) -> u64 {
    let release = Prepared::new(plan, inputs);
    if release.is_local() { 0 } else { release.circuit.and_gates() }
}

/// Goes through the motions of [`run`].
pub(crate) fn quote(plan: &ReleasePlan, mut quote: Quote) -> Quote {
    let release = Prepared::new(plan, quote.settings().inputs());
    if release.is_local() {
        return quote;
    }
    quote.member_setup();
    release.circuit.quote_enter(&mut quote, 1);
    release.circuit.quote_join(&mut quote, 1);
    if release.leaves(quote.seats()) {
        quote.refresh(Ring::Z2, release.outputs);
    }
    if quote.settings().checked() {
        quote.confirm();
    }
    quote
}

/// Runs a release at one participant.
pub(crate) fn run(
    (plan, inputs): (&ReleasePlan, Inputs),
    member: impl FnOnce(&mut Session) -> Result<Member, Error>,
    entered: &Entered,
    session: &mut Session,
) -> Result<OutputShares, Error> {
    if let Some(alone) = outputs::alone(plan, entered, session.me())? {
        return Ok(alone);
    }
    let release = Prepared::new(plan, inputs);
    if release.is_local() {
        return Ok(OutputShares::none());
    }
    let mut member = member(session)?;
    let coins = Coins::toss(&release, entered, &mut member);
    let mut evaluator = Evaluator::new(&mut member, session);
    let mut known = |input: &Input, [place]: [&mut [Block]; 1]| {
        place[0].0 = entered.need(input.word as usize)? >> input.bit & 1;
        Ok(())
    };
    let owned =
        session.step("enter", |s| evaluator.enter(&mut member, s, &release.circuit, 1, &mut known))?;
    let numbers = numbers(&mut member);
    let mut held = |input: &Input, into: [&mut [Block]; 3]| {
        let Some(numbers) = numbers else { return Ok(()) };
        match plan.words[input.word as usize].kind {
            WordKind::CoinSummand(_, _, j) => {
                if let Some(part) = numbers.iter().position(|n| *n == usize::from(j)) {
                    into[part][0].0 = coins.bit(input, part);
                }
            }
            WordKind::Summand(_, j) => {
                if let Some(part) = numbers.iter().position(|n| *n == usize::from(j)) {
                    into[part][0].0 = entered.need(input.word as usize)? >> input.bit & 1;
                }
            }
            _ => return Err(Error::misuse("a word that an owner enters")),
        }
        Ok(())
    };
    let roots = session
        .step("circuit", |s| evaluator.join(&mut member, s, &release.circuit, 1, &owned, &mut held))?;
    session.step("check", |s| leave(&release, &roots, &mut member, s))
}

/// The numbers of the summands that this participant holds, in order of its parts.
fn numbers(member: &mut Member) -> Option<[usize; 3]> {
    member.server().map(|server| [0, 1, 2].map(|k| server.seat().summand(k).index()))
}

/// What a seat holds of the coins.
struct Coins {
    /// Random bits of all words, one after the other.
    bits: Bits<3>,
    /// By word: where its bits begin, and another value of this seat's if one was given.
    words: Vec<(usize, Option<u128>)>,
}

impl Coins {
    fn toss(release: &Prepared<'_>, entered: &Entered, member: &mut Member) -> Self {
        let (mut words, mut at) = (Vec::with_capacity(release.plan.words.len()), 0);
        for (index, word) in release.plan.words.iter().enumerate() {
            // The four summands of a piece lie at the same place of their streams.
            let piece = |j: u8| at - if j > 0 { usize::from(word.width) } else { 0 };
            match word.kind {
                WordKind::CoinSummand(_, _, j) => {
                    words.push((piece(j), entered.get(index)));
                    at += if j == 0 { usize::from(word.width) } else { 0 };
                }
                _ => words.push((0, None)),
            }
        }
        let count = release.coins();
        let toss = |server: &mut crate::Party| Bits::of(server.random(Ring::Z2, count));
        let bits = member.server().filter(|_| count > 0).map(toss).unwrap_or_default();
        Self { bits, words }
    }

    fn bit(&self, input: &Input, part: usize) -> u128 {
        match self.words[input.word as usize] {
            (_, Some(given)) => given >> input.bit & 1,
            (at, None) => u128::from(self.bits.bit(part, at + usize::from(input.bit))),
        }
    }
}

/// The last words among the seats: fresh summands, and that everything was checked.
fn leave(
    release: &Prepared<'_>,
    roots: &[Bits<3>],
    member: &mut Member,
    session: &mut Session,
) -> Result<OutputShares, Error> {
    let (seats, checked) = (member.seats(), member.settings().checked());
    let Some(server) = member.server() else { return Ok(OutputShares::none()) };
    let mut all = Bits::with_capacity(release.outputs);
    roots.iter().for_each(|bits| all.append(bits));
    if release.leaves(seats) {
        all = Bits::of(server.refresh(session, &all.into_shares().without_padding())?);
    }
    if checked {
        server.confirm(session)?;
    }
    // In order of the summands' numbers, which the parts are not in.
    let mut parts = [0, 1, 2].map(|k| (server.seat().summand(k).index(), k));
    parts.sort_unstable();
    let bits = parts.map(|(_, k)| (0..release.outputs).map(|at| all.bit(k, at)).collect::<Vec<bool>>());
    Ok(OutputShares::of_summands(bits.each_ref().map(Vec::as_slice)))
}

/// Reveals bits to one viewer, all at once, after the seats have told each other that everything was checked.
pub(crate) fn reveal(
    shares: &[Bits<3>],
    count: usize,
    viewer: PartyId,
    member: &mut Member,
    session: &mut Session,
) -> Result<Option<Bits<1>>, Error> {
    if member.settings().checked() {
        member.confirm(session)?;
    }
    let mut all = Bits::with_capacity(count);
    shares.iter().for_each(|bits| all.append(bits));
    let all = member.server().map(|_| all.into_shares());
    let opened = member.reveal(session, all.as_ref(), (Ring::Z2, count), viewer)?;
    Ok(opened.map(|blocks| {
        let mut bits = Bits::default();
        bits.push([&blocks], 0, count, [Block::ZERO]);
        bits
    }))
}

/// Goes through the motions of [`run_lists`].
pub(crate) fn quote_lists(program: &Program, rows: u64, viewer: PartyId, mut quote: Quote) -> Quote {
    let count = program.lists.iter().filter(|l| l.to == viewer).count();
    if count == 0 || rows == 0 {
        return quote;
    }
    quote.member_setup();
    if quote.settings().checked() {
        quote.confirm();
    }
    quote.reveal(Ring::Z2, count * rows as usize, viewer);
    quote
}

/// Reveals a viewer's lists.
pub(crate) fn run_lists(
    program: &Program,
    member: impl FnOnce(&mut Session) -> Result<Member, Error>,
    rows: u64,
    viewer: PartyId,
    totals: &Shares,
    session: &mut Session,
) -> Result<Vec<Vec<u64>>, Error> {
    let mine: Vec<u32> = program.lists.iter().filter(|l| l.to == viewer).map(|l| l.fold).collect();
    let me = session.me();
    if mine.is_empty() || rows == 0 {
        return Ok(if me == viewer { vec![Vec::new(); mine.len()] } else { Vec::new() });
    }
    let mut member = member(session)?;
    let count = rows as usize;
    let mut shares = Vec::new();
    if let Some(server) = member.server() {
        let numbers = [0, 1, 2].map(|k| server.seat().summand(k).index());
        for &fold in &mine {
            shares.push(held_list(totals, fold, numbers, count, me)?);
        }
    }
    let bits = reveal(&shares, mine.len() * count, viewer, &mut member, session)?;
    let Some(bits) = bits else { return Ok(Vec::new()) };
    let list = |i: usize| {
        let list = bits.cut(i * count, count);
        let halves = list.part(0).iter().flat_map(|block| [block.0 as u64, (block.0 >> 64) as u64]);
        halves.take(count.div_ceil(64)).collect()
    };
    Ok((0..mine.len()).map(list).collect())
}

fn held_list(
    totals: &Shares,
    fold: u32,
    numbers: [usize; 3],
    rows: usize,
    me: PartyId,
) -> Result<Bits<3>, Error> {
    let fault = || Error::misuse(format!("{me} holds no list of fold {fold} of {rows} rows"));
    let Some(Share::ReplicatedRows(summands)) = totals.folds().get(fold as usize) else {
        return Err(fault());
    };
    let mut parts = [Vec::new(), Vec::new(), Vec::new()];
    for (part, number) in parts.iter_mut().zip(numbers) {
        let words = summands[number].as_ref().filter(|words| words.len() == rows.div_ceil(64));
        unlist(words.ok_or_else(fault)?, part);
    }
    let mut bits = Bits::default();
    bits.push(parts.each_ref().map(Vec::as_slice), 0, rows, [Block::ZERO; 3]);
    Ok(bits)
}
