//! The release of one viewer, and its lists, among n parties.
//!
//! **Functionality.** Every party enters its shares of the totals; the viewer learns the outputs meant for it.
//!
//! **Security model, who learns what.** That of the engine. Shares are refreshed before they leave for the viewer; nobody
//! else hears anything.
//!
//! **Cost.** The ANDs of the release section, and one message from every party to the viewer. A release that only takes
//! shares apart, as a best row's, has no AND: it needs no oblivious transfer, only a seed between every pair.
//!
//! Noise is drawn between two parties: a plan with noise words is not run here.

use crate::rows::list_words;
use crate::{Layers, Party, Quote};
use ::engine::{Ceremony, Share, Shares};
use base::{Cost, Error, PartyId};
use net::Session;
use ot::OtKind;
use program::Program;
use program::circuit::{Input, Lit};
use program::lower::{ReleasePlan, WordKind};
use program::wired::Viewers;

fn layers(plan: &ReleasePlan) -> Layers {
    let roots: Vec<Lit> = plan.outputs.iter().flat_map(|(_, bits)| bits.iter().copied()).collect();
    Layers::new(&plan.circuit, &roots)
}

pub(crate) fn price(plan: &ReleasePlan, kind: OtKind) -> Cost {
    let layers = layers(plan);
    let outputs: usize = plan.outputs.iter().map(|(_, bits)| bits.len()).sum();
    if outputs == 0 {
        return Cost::zero(plan.parties);
    }
    let mut quote = match layers.and_gates() {
        0 => Quote::without_triples(plan.parties),
        ands => Quote::new(plan.parties, kind, ands),
    };
    quote.eval(&layers, 1);
    let to = Viewers::Parties(vec![plan.viewer]);
    quote.reveal(1, &vec![&to; outputs]);
    quote.total()
}

pub(crate) fn run(
    plan: &ReleasePlan,
    kind: OtKind,
    totals: &Shares,
    ceremony: &mut dyn Ceremony,
    session: &mut Session,
) -> Result<Vec<u128>, Error> {
    let me = session.me();
    if plan.words.iter().any(|w| matches!(w.kind, WordKind::Noise(..))) {
        return Err(Error::misuse("gmw releases what needs no noise"));
    }
    let word = |w: &program::lower::ReleaseWord| match w.owner == me {
        true => totals.word(w.kind, me).map(Some),
        false => Ok(None),
    };
    let words: Vec<Option<u128>> = plan.words.iter().map(word).collect::<Result<_, _>>()?;
    let layers = layers(plan);
    let outputs: usize = plan.outputs.iter().map(|(_, bits)| bits.len()).sum();
    if outputs == 0 {
        ceremony.choose(session)?;
        return Ok(Vec::new());
    }
    let mut party = match layers.and_gates() {
        0 => Party::without_triples(session)?,
        ands => Party::new(session, kind, ands)?,
    };
    let mut known = |input: &Input, place: &mut [u64]| {
        let word = words[input.word as usize].ok_or_else(|| Error::misuse("another party's word"))?;
        place[0] = (word >> input.bit) as u64 & 1;
        Ok(())
    };
    let shares = party.eval(&layers, 1, &mut known, session)?;
    ceremony.choose(session)?;
    let to = Viewers::Parties(vec![plan.viewer]);
    let bits = party.reveal(shares, 1, &vec![&to; outputs], session)?;
    let mut bits = bits.into_iter().flatten().map(|bit| u128::from(bit[0]));
    if me != plan.viewer {
        return Ok(Vec::new());
    }
    let value = |width: usize| bits.by_ref().take(width).enumerate().fold(0, |v, (i, bit)| v | bit << i);
    Ok(plan.outputs.iter().map(|(_, bits)| bits.len()).map(value).collect())
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
