//! Rows by `gmw::pair` and the release by yao, as an engine.

use base::{Cost, Error, PartyId};
use engine::{Ceremony, Engine, Rows, Shares};
use gmw::pair::Prepared;
use net::Session;
use ot::OtKind;
use program::Program;
use program::lower::ReleasePlan;
use yao::Yao;

pub struct Pairs {
    kind: OtKind,
    lanes: usize,
}

impl Pairs {
    pub fn new(kind: OtKind, lanes: usize) -> Self {
        Self { kind, lanes }
    }
}

impl Engine for Pairs {
    fn name(&self) -> &'static str {
        "pairs"
    }

    fn price_rows(&self, program: &Program, rows: u64) -> Cost {
        Prepared::new(program, PartyId(0), self.kind, self.lanes).unwrap().price(rows)
    }

    fn rows(
        &mut self,
        program: &Program,
        rows: &mut dyn Rows,
        session: &mut Session,
    ) -> Result<Shares, Error> {
        let prepared = Prepared::new(program, session.me(), self.kind, self.lanes)?;
        session.step("rows", |session| prepared.run(rows, session))
    }

    fn price_release(&self, plan: &ReleasePlan, candidates: usize) -> Cost {
        Yao::default().price_release(plan, candidates)
    }

    fn release(
        &mut self,
        plan: &ReleasePlan,
        totals: &Shares,
        ceremony: &mut dyn Ceremony,
        session: &mut Session,
    ) -> Result<Vec<u128>, Error> {
        Yao::default().release(plan, totals, ceremony, session)
    }
}
