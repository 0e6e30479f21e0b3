//! Releases, and a party's lists, among n parties.
//!
//! **Functionality.** Every party enters its shares of the totals and its coins; every party gets an
//! exclusive-or share of the outputs' bits.
//!
//! **Security model, who learns what.** That of the engine. Shares are refreshed; nobody hears anything. A
//! party's coins are its share of the coins: they cost no message.
//!
//! **Cost.** The ANDs of the release section. A release that only takes shares apart, as a best row's, has no
//! AND: it needs no oblivious transfer, only a seed between every pair.

use crate::rows::list_words;
use crate::{Layers, Party, Quote};
use ::engine::{Entered, OutputShares, Share, Shares, outputs};
use base::{Cost, Error, PartyId};
use circuits::Viewers;
use circuits::{InputBit, Lit};
use net::Session;
use ot::OtKind;
use program::Program;
use program::lower::ReleasePlan;

fn layers(plan: &ReleasePlan) -> Layers {
    let roots: Vec<Lit> = plan.roots().collect();
    Layers::new(&plan.circuit, &roots)
}

pub(crate) fn price(plan: &ReleasePlan, kind: OtKind) -> Cost {
    if plan.alone().is_some() || plan.bits() == 0 {
        return Cost::zero(plan.parties);
    }
    let layers = layers(plan);
    let mut quote = match layers.and_gates() {
        0 => Quote::without_triples(plan.parties),
        ands => Quote::new(plan.parties, kind, ands),
    };
    quote.eval(&layers, 1);
    quote.total()
}

pub(crate) fn run(
    plan: &ReleasePlan,
    kind: OtKind,
    entered: &Entered,
    session: &mut Session,
) -> Result<OutputShares, Error> {
    if let Some(alone) = outputs::alone(plan, entered, session.me())? {
        return Ok(alone);
    }
    if plan.bits() == 0 {
        return Ok(OutputShares::none());
    }
    let layers = layers(plan);
    let mut party = match layers.and_gates() {
        0 => Party::without_triples(session)?,
        ands => Party::new(session, kind, ands)?,
    };
    let mut known = |input: &InputBit, place: &mut [u64]| {
        place[0] = (entered.need(input.word as usize)? >> input.bit) as u64 & 1;
        Ok(())
    };
    let mut shares = party.eval(&layers, 1, &mut known, session)?;
    party.refresh(&mut shares);
    let bits: Vec<bool> = shares.iter().map(|share| share[0] & 1 == 1).collect();
    Ok(OutputShares::of_bits(&bits))
}

pub(crate) fn price_lists(program: &Program, rows: u64, viewer: PartyId) -> Cost {
    let count = program.lists.iter().filter(|l| l.to == viewer).count();
    if count == 0 || rows == 0 {
        return Cost::zero(program.parties.len());
    }
    let mut quote = Quote::without_triples(program.parties.len());
    let to = Viewers::Parties(vec![viewer]);
    quote.reveal(rows as usize, &vec![&to; count]);
    quote.total()
}

pub(crate) fn run_lists(
    program: &Program,
    rows: u64,
    viewer: PartyId,
    totals: &Shares,
    session: &mut Session,
) -> Result<Vec<Vec<u64>>, Error> {
    let share = |fold: u32| match totals.folds().get(fold as usize) {
        Some(Share::Rows(bits)) if bits.len() == list_words(rows) => Ok(bits.clone()),
        _ => Err(Error::misuse(format!("{} holds no list of fold {fold} of {rows} rows", session.me()))),
    };
    let mine = program.lists.iter().filter(|l| l.to == viewer);
    let shares: Vec<Vec<u64>> = mine.map(|l| share(l.fold)).collect::<Result<_, _>>()?;
    if shares.is_empty() || rows == 0 {
        return Ok(if session.me() == viewer { shares } else { Vec::new() });
    }
    let mut party = Party::without_triples(session)?;
    let to = Viewers::Parties(vec![viewer]);
    let count = shares.len();
    let lists = party.reveal(shares, rows as usize, &vec![&to; count], session)?;
    Ok(lists.into_iter().flatten().collect())
}
