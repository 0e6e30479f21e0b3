//! The release of one viewer, and its lists.
//!
//! **Functionality.** The seats hold the totals, owners know some alone, the viewer's peer draws noise; the viewer learns the
//! outputs meant for it.
//!
//! **Protocol.** 1. The drawer draws its candidates. 2. Owners enter their totals, the drawer all candidates: from here on
//! they are fixed. 3. The ceremony settles the candidate (and debits the ledger); every owner tells every seat which, and a
//! seat that hears two numbers stops. 4. The seats open the other candidates to the viewer, whose ceremony checks them
//! against what the drawer committed to. 5. They evaluate, and reveal the outputs. Before 4 and 5 the seats tell each other
//! that everything was checked.
//!
//! **Security, who learns what.** That of the engine. One corrupted seat, or one corrupted owner, or both in one, cannot
//! make the others use another candidate, or reveal anything after an error.
//!
//! **Cost.** The gates of the release on one lane: rounds, not bytes.

use crate::bits::Bits;
use crate::evaluate::{Compiled, Evaluator};
use crate::member::Member;
use crate::rows::unlist;
use crate::{Quote, Ring};
use base::{Error, PartyId, limits};
use engine::{Ceremony, Share, Shares, drawer};
use kernels::Block;
use net::Session;
use program::Program;
use program::circuit::{Input, Lit};
use program::entries::Knows;
use program::lower::{Inputs, ReleasePlan, ReleaseWord, WordKind};

/// Bytes in which an owner tells a seat the candidate.
const CHOICE_BYTES: u64 = 4;

/// A release made ready.
struct Prepared<'a> {
    plan: &'a ReleasePlan,
    circuit: Compiled,
    /// Noise words, and their bits.
    noises: Vec<&'a ReleaseWord>,
    noise_bits: usize,
    outputs: usize,
}

impl<'a> Prepared<'a> {
    fn new(plan: &'a ReleasePlan, inputs: Inputs) -> Self {
        let roots: Vec<Lit> = plan.outputs.iter().flat_map(|(_, bits)| bits.iter().copied()).collect();
        let knows = |input: &Input| match plan.words[input.word as usize] {
            ReleaseWord { kind: WordKind::Alone(_), owner, .. } => Knows::Party(owner),
            _ => Knows::Nobody,
        };
        let circuit = Compiled::new(&plan.circuit, &roots, plan.parties, &knows, inputs);
        let noises: Vec<&ReleaseWord> =
            plan.words.iter().filter(|w| matches!(w.kind, WordKind::Noise(..))).collect();
        let noise_bits = noises.iter().map(|w| usize::from(w.width)).sum();
        Self { plan, circuit, noises, noise_bits, outputs: roots.len() }
    }

    /// Whether the viewer knows everything itself.
    fn is_local(&self) -> bool {
        let own = |w: &ReleaseWord| matches!(w.kind, WordKind::Alone(_)) && w.owner == self.plan.viewer;
        self.plan.words.iter().all(own)
    }

    /// Where a noise word begins among the bits of a candidate.
    fn noise_at(&self, word: u32) -> usize {
        let before = self.plan.words[..word as usize].iter();
        let noises = before.filter(|w| matches!(w.kind, WordKind::Noise(..)));
        noises.map(|w| usize::from(w.width)).sum()
    }

    fn owners(&self) -> impl Iterator<Item = PartyId> + use<> {
        (0..self.plan.parties as u8).map(PartyId)
    }
}

/// ANDs of shares.
pub(crate) fn and_gates(plan: &ReleasePlan, inputs: Inputs) -> u64 {
    let release = Prepared::new(plan, inputs);
    if release.is_local() { 0 } else { release.circuit.and_gates() }
}

/// Goes through the motions of [`run`].
pub(crate) fn quote(plan: &ReleasePlan, candidates: usize, mut quote: Quote) -> Quote {
    let release = Prepared::new(plan, quote.settings().inputs());
    if release.is_local() {
        return quote;
    }
    let (viewer, checked) = (plan.viewer, quote.settings().checked());
    let confirm = |quote: &mut Quote| {
        if checked {
            quote.confirm()
        }
    };
    quote.member_setup();
    if release.noise_bits > 0 {
        quote.enter(drawer(plan), Ring::Z2, candidates * release.noise_bits);
    }
    release.circuit.quote_enter(&mut quote, 1);
    if release.noise_bits > 0 {
        let seats = quote.seats();
        quote.trip(1);
        let pairs =
            || release.owners().flat_map(|o| seats.into_iter().filter(move |s| *s != o).map(move |s| (o, s)));
        pairs().for_each(|(owner, seat)| quote.say(owner, seat, CHOICE_BYTES));
        pairs().for_each(|(owner, seat)| quote.listen(seat, owner));
        if candidates > 1 {
            confirm(&mut quote);
            quote.reveal(Ring::Z2, (candidates - 1) * release.noise_bits, viewer);
        }
    }
    release.circuit.quote_join(&mut quote, 1);
    confirm(&mut quote);
    quote.reveal(Ring::Z2, release.outputs, viewer);
    quote
}

/// Runs a release at one participant.
pub(crate) fn run(
    (plan, inputs): (&ReleasePlan, Inputs),
    member: impl FnOnce(&mut Session) -> Result<Member, Error>,
    totals: &Shares,
    ceremony: &mut dyn Ceremony,
    session: &mut Session,
) -> Result<Vec<u128>, Error> {
    let release = Prepared::new(plan, inputs);
    let me = session.me();
    let owner = me.index() < plan.parties;
    if release.is_local() {
        if owner {
            session.step("noise", |s| ceremony.choose(s))?;
        }
        return if me == plan.viewer { local(plan, totals, me) } else { Ok(Vec::new()) };
    }
    let candidates = ceremony.candidates();
    if candidates == 0 || candidates > limits::CANDIDATES {
        return Err(Error::limit("limits::CANDIDATES", candidates as u64, limits::CANDIDATES as u64));
    }
    let mut member = member(session)?;
    let mut evaluator = Evaluator::new(&mut member, session);
    let noise = enter_noise(&release, candidates, &mut member, ceremony, session)?;
    let mut known = |input: &Input, [place]: [&mut [Block]; 1]| {
        let word = totals.word(plan.words[input.word as usize].kind, me)?;
        place[0].0 = word >> input.bit & 1;
        Ok(())
    };
    let entered =
        session.step("enter", |s| evaluator.enter(&mut member, s, &release.circuit, 1, &mut known))?;
    let own = if owner { Some(session.step("noise", |s| ceremony.choose(s))?) } else { None };
    let mut chosen = 0;
    if !release.noises.is_empty() {
        chosen = session.step("choose", |s| settle(&release, own, candidates, &mut member, s))?;
        if candidates > 1 {
            let opened = session
                .step("open", |s| open_others(&release, &noise, (candidates, chosen), &mut member, s))?;
            if let Some(opened) = opened {
                session.step("noise", |s| ceremony.check(&opened, s))?;
            }
        }
    }
    let numbers = member.server().map(|server| [0, 1, 2].map(|k| server.seat().summand(k).index()));
    let mut held = |input: &Input, into: [&mut [Block]; 3]| {
        let word = &plan.words[input.word as usize];
        if let WordKind::Summand(_, j) = word.kind {
            let part = numbers.and_then(|numbers| numbers.iter().position(|n| *n == usize::from(j)));
            if let Some(part) = part {
                into[part][0].0 = totals.word(word.kind, me)? >> input.bit & 1;
            }
            return Ok(());
        }
        let at = chosen * release.noise_bits + release.noise_at(input.word) + usize::from(input.bit);
        noise.read(at, 1, into);
        Ok(())
    };
    let roots = session
        .step("circuit", |s| evaluator.join(&mut member, s, &release.circuit, 1, &entered, &mut held))?;
    let bits = session.step("reveal", |s| reveal(&roots, release.outputs, plan.viewer, &mut member, s))?;
    Ok(bits.map_or_else(Vec::new, |bits| values(plan, (0..release.outputs).map(|i| bits.bit(0, i)))))
}

fn local(plan: &ReleasePlan, totals: &Shares, me: PartyId) -> Result<Vec<u128>, Error> {
    let words = plan.words.iter().map(|w| totals.word(w.kind, me)).collect::<Result<Vec<u128>, Error>>()?;
    let bits = plan.circuit.evaluate(|input| words[input.word as usize] >> input.bit & 1 == 1);
    Ok(values(plan, plan.outputs.iter().flat_map(|(_, l)| l).map(|l| bits[l.wire()] ^ l.inverted())))
}

/// Cuts output bits into values.
fn values(plan: &ReleasePlan, mut bits: impl Iterator<Item = bool>) -> Vec<u128> {
    let value = |lits: &Vec<Lit>| {
        let bits = bits.by_ref().take(lits.len()).enumerate();
        bits.fold(0, |v, (i, bit)| v | u128::from(bit) << i)
    };
    plan.outputs.iter().map(|(_, lits)| lits).map(value).collect()
}

/// Shares of all candidates' bits, one candidate after the other; at an owner without a seat nothing.
fn enter_noise(
    release: &Prepared<'_>,
    candidates: usize,
    member: &mut Member,
    ceremony: &mut dyn Ceremony,
    session: &mut Session,
) -> Result<Bits<3>, Error> {
    let (plan, me) = (release.plan, session.me());
    if release.noises.is_empty() {
        return Ok(Bits::default());
    }
    let drawer = drawer(plan);
    let mut value = Bits::<1>::default();
    if me == drawer || me == plan.viewer {
        let drawn = session.step("noise", |s| ceremony.draw(s))?;
        if me == drawer {
            value = candidate_bits(release, &drawn, candidates)?;
        }
    }
    let bits = candidates * release.noise_bits;
    let shares = session.step("enter", |s| member.enter(s, drawer, (Ring::Z2, bits), value.part(0)))?;
    Ok(shares.map(Bits::of).unwrap_or_default())
}

fn candidate_bits(release: &Prepared<'_>, drawn: &[Vec<i128>], candidates: usize) -> Result<Bits<1>, Error> {
    if drawn.len() != candidates {
        return Err(Error::misuse("the ceremony drew another number of candidates than it announced"));
    }
    let mut bits = Bits::default();
    for candidate in drawn {
        if candidate.len() != release.noises.len() {
            return Err(Error::misuse("the ceremony drew another number of noises than the release has"));
        }
        for (noise, word) in candidate.iter().zip(&release.noises) {
            let width = word.width;
            if width < 128 && !(-(1i128 << (width - 1))..1i128 << (width - 1)).contains(noise) {
                return Err(Error::misuse("a noise is outside its declared width"));
            }
            (0..width).for_each(|bit| bits.push_bit([noise >> bit & 1 == 1]));
        }
    }
    Ok(bits)
}

/// The candidate that is used: every owner tells every seat, and a seat wants to hear one number.
fn settle(
    release: &Prepared<'_>,
    own: Option<usize>,
    candidates: usize,
    member: &mut Member,
    session: &mut Session,
) -> Result<usize, Error> {
    let (me, seats) = (session.me(), member.seats());
    let mut chosen = own;
    if let Some(own) = own {
        for seat in seats.into_iter().filter(|seat| *seat != me) {
            session.link(seat).send(&(own as u32).to_le_bytes())?;
            session.link(seat).flush()?;
        }
    }
    if seats.contains(&me) {
        for owner in release.owners().filter(|owner| *owner != me) {
            let theirs = u32::from_le_bytes(session.link(owner).recv_array()?) as usize;
            if *chosen.get_or_insert(theirs) != theirs {
                let owners: Vec<PartyId> = release.owners().collect();
                return Err(session.accuse_one_of(&owners, "the owners name different candidates of noise"));
            }
        }
    }
    let chosen = chosen.ok_or_else(|| Error::misuse("a participant is an owner or has a seat"))?;
    if chosen >= candidates {
        return Err(Error::limit("noise candidate", chosen as u64, candidates as u64 - 1));
    }
    Ok(chosen)
}

/// Opens all candidates but the chosen one to the viewer.
fn open_others(
    release: &Prepared<'_>,
    noise: &Bits<3>,
    (candidates, chosen): (usize, usize),
    member: &mut Member,
    session: &mut Session,
) -> Result<Option<Vec<Vec<i128>>>, Error> {
    let size = release.noise_bits;
    let others: Vec<Bits<3>> = match member.server() {
        Some(_) => (0..candidates).filter(|j| *j != chosen).map(|j| noise.cut(j * size, size)).collect(),
        None => Vec::new(),
    };
    let opened = reveal(&others, (candidates - 1) * size, release.plan.viewer, member, session)?;
    let Some(bits) = opened else { return Ok(None) };
    let mut at = 0;
    let mut noise = |word: &&ReleaseWord| {
        let width = usize::from(word.width);
        let value = (0..width).fold(0u128, |v, i| v | u128::from(bits.bit(0, at + i)) << i);
        at += width;
        let shift = 128 - width;
        ((value << shift) as i128) >> shift
    };
    Ok(Some((1..candidates).map(|_| release.noises.iter().map(&mut noise).collect()).collect()))
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
