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
use crate::{GateParty, GateQuote, Layers};
use ::engine::{
    DrawnNoise, Entered, OutputShares, PreparedLists, PreparedRelease, Share, Shares, StagePrice,
    check_parties, outputs,
};
use base::{Error, PartyId};
use circuits::Viewers;
use circuits::{InputBit, Lit};
use net::Session;
use ot::OtKind;
use program::Program;
use program::lower::ReleasePlan;
use std::sync::Arc;

/// A release as gates, made ready.
pub(crate) struct GateRelease {
    plan: Arc<ReleasePlan>,
    layers: Layers,
    kind: OtKind,
    holders: Vec<PartyId>,
}

impl GateRelease {
    pub fn new(plan: Arc<ReleasePlan>, kind: OtKind) -> Self {
        let roots: Vec<Lit> = plan.roots().collect();
        let layers = Layers::new(&plan.circuit, &roots);
        let holders = (0..plan.parties as u8).map(PartyId).collect();
        Self { plan, layers, kind, holders }
    }

    fn compute(&self, entered: &Entered, session: &mut Session) -> Result<OutputShares, Error> {
        if let Some(alone) = outputs::alone(&self.plan, entered, session.me())? {
            return Ok(alone);
        }
        if self.plan.bits() == 0 {
            return Ok(OutputShares::none());
        }
        let mut party = GateParty::for_ands(session, self.kind, self.layers.and_gates())?;
        let mut known = |input: &InputBit, place: &mut [u64]| {
            place[0] = (entered.need(input.word as usize)? >> input.bit) as u64 & 1;
            Ok(())
        };
        let mut shares = party.eval(&self.layers, 1, &mut known, session)?;
        party.refresh(&mut shares);
        let bits: Vec<bool> = shares.iter().map(|share| share[0] & 1 == 1).collect();
        Ok(OutputShares::of_bits(&bits))
    }
}

impl PreparedRelease for GateRelease {
    fn plan(&self) -> &ReleasePlan {
        &self.plan
    }

    fn holders(&self) -> &[PartyId] {
        &self.holders
    }

    fn price(&self) -> StagePrice {
        let parties = self.plan.parties;
        if self.plan.alone().is_some() || self.plan.bits() == 0 {
            return StagePrice::free(parties);
        }
        let mut quote = GateQuote::for_ands(parties, self.kind, self.layers.and_gates());
        quote.eval(&self.layers, 1);
        quote.price()
    }

    fn run(
        &self,
        entered: &Entered,
        _: &mut DrawnNoise,
        session: &mut Session,
    ) -> Result<OutputShares, Error> {
        check_parties(self.plan.parties, session)?;
        session.step("release", |session| self.compute(entered, session))
    }
}

/// A viewer's lists, made ready.
pub(crate) struct GateLists {
    parties: usize,
    viewer: PartyId,
    folds: Vec<u32>,
}

impl GateLists {
    pub fn new(program: &Program, viewer: PartyId) -> Self {
        let mine = program.lists.iter().filter(|list| list.to == viewer);
        Self { parties: program.parties.len(), viewer, folds: mine.map(|list| list.fold).collect() }
    }

    fn reveal(&self, rows: u64, totals: &Shares, session: &mut Session) -> Result<Vec<Vec<u64>>, Error> {
        let share = |fold: &u32| match totals.folds().get(*fold as usize) {
            Some(Share::Rows(bits)) if bits.len() == list_words(rows) => Ok(bits.clone()),
            _ => Err(Error::misuse(format!("{} holds no list of fold {fold} of {rows} rows", session.me()))),
        };
        let shares: Vec<Vec<u64>> = self.folds.iter().map(share).collect::<Result<_, _>>()?;
        if shares.is_empty() || rows == 0 {
            return Ok(if session.me() == self.viewer { shares } else { Vec::new() });
        }
        let mut party = GateParty::without_triples(session)?;
        let to = Viewers::Parties(vec![self.viewer]);
        let count = shares.len();
        let lists = party.reveal(shares, rows as usize, &vec![&to; count], session)?;
        Ok(lists.into_iter().flatten().collect())
    }
}

impl PreparedLists for GateLists {
    fn price(&self, rows: u64) -> StagePrice {
        if self.folds.is_empty() || rows == 0 {
            return StagePrice::free(self.parties);
        }
        let mut quote = GateQuote::without_triples(self.parties);
        let to = Viewers::Parties(vec![self.viewer]);
        quote.reveal(rows as usize, &vec![&to; self.folds.len()]);
        quote.price()
    }

    fn run(&self, rows: u64, totals: &Shares, session: &mut Session) -> Result<Vec<Vec<u64>>, Error> {
        check_parties(self.parties, session)?;
        session.step("lists", |session| self.reveal(rows, totals, session))
    }
}
