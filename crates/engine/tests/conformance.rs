//! The suite's own tests. The clear engine passes it, and so does an engine that runs the lowered plans in
//! the open, for either sender: that is the test of the lowering against ordinary Rust. Engines that are
//! wrong in one place fail.

use base::{Cost, Error, PartyId, Rng, Seed};
use engine::conformance::{check, check_alone, check_among_alone, check_law_alone};
use engine::{
    Clear, DrawnNoise, Engine, Entered, OutputShares, PreparedRelease, PreparedRows, RowInput, RowSource,
    Share, Shares, StagePrice, outputs,
};
use net::Session;
use program::ShardRows;
use program::eval::NodeValues;
use program::lower::{FoldPlan, ReleasePlan, RowPlan, WordKind, lower_row};
use program::{Op, Program};
use std::sync::Arc;

/// What a deliberately wrong engine gets wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Total,
    PlainShare,
    KnownShare,
    Output,
    ExtraByte,
    ExtraTurn,
    ReleaseByte,
    ForeignColumn,
    OwnCoins,
    LongShare,
}

/// Two parties that show each other everything and run the plans by their definition.
#[derive(Clone, Copy)]
struct Open {
    sender: PartyId,
    fault: Fault,
}

impl Open {
    fn own(program: &Program, party: PartyId) -> Vec<u32> {
        let own = |c: &u32| program.columns[*c as usize].holder.only() == Some(party);
        (0..program.columns.len() as u32).filter(own).collect()
    }

    /// Both parties' and the public columns.
    fn columns(
        &self,
        program: &Program,
        rows: &mut dyn ShardRows,
        session: &mut Session,
    ) -> Result<Vec<Vec<u128>>, Error> {
        let (me, peer) = (session.me(), session.me().other());
        let lanes = rows.len() as usize;
        let mut columns = vec![vec![0; lanes]; program.columns.len()];
        for (c, column) in program.columns.iter().enumerate() {
            let foreign = self.fault == Fault::ForeignColumn;
            if column.holder.only().is_none_or(|o| o == me || foreign) {
                rows.read(c as u32, 0, &mut columns[c])?;
            }
        }
        let mut mine = Vec::new();
        for c in Self::own(program, me) {
            mine.extend(columns[c as usize].iter().flat_map(|v| v.to_le_bytes()));
        }
        let mut theirs = vec![0; Self::own(program, peer).len() * lanes * 16];
        session.link(peer).exchange(&mine, &mut theirs)?;
        if self.fault == Fault::ExtraByte {
            session.link(peer).exchange(&[0], &mut [0])?;
        }
        if self.fault == Fault::ExtraTurn {
            // The same bytes, one more turn: the price's bytes are right, its rounds are not.
            session.link(peer).send(&[])?;
            session.link(peer).recv(&mut [])?;
        }
        let mut values = theirs.chunks_exact(16).map(|b| u128::from_le_bytes(b.try_into().unwrap()));
        for c in Self::own(program, peer) {
            columns[c as usize].iter_mut().for_each(|v| *v = values.next().unwrap());
        }
        Ok(columns)
    }

    /// Sums of the temporaries' shares, by party.
    fn sums(&self, program: &Program, plan: &RowPlan, values: &NodeValues, lanes: usize) -> Vec<[u128; 2]> {
        let mut rng = Seed::from_bytes([9; 32]).fork(&format!("{lanes} rows")).into_rng();
        let mut random = || u128::from_le_bytes(Rng::bytes(&mut rng));
        let (mut sums, facts) = (vec![[0u128; 2]; plan.temps.len()], program.row_facts());
        for row in 0..lanes {
            let shares = plan.reference(program, &facts, &|id| values.get(id)[row], &mut random).unwrap();
            for (sum, share) in sums.iter_mut().zip(shares) {
                *sum = [sum[0].wrapping_add(share[0]), sum[1].wrapping_add(share[1])];
            }
        }
        sums
    }

    fn share(&self, me: PartyId, shares: [u128; 2], mask: u128) -> Share {
        let total = shares[0].wrapping_add(shares[1]);
        let mine = match self.fault {
            Fault::PlainShare => [total, 0][me.index()],
            _ => shares[me.index()],
        };
        match self.fault {
            Fault::KnownShare => Share::Known(total & mask),
            Fault::Total if me.0 == 0 => Share::Additive(mine.wrapping_add(1) & mask),
            _ => Share::Additive(mine & mask),
        }
    }
}

impl Engine for Open {
    fn name(&self) -> &'static str {
        "open"
    }

    fn rows(&self, program: &Program, _: RowSource) -> Result<Box<dyn PreparedRows>, Error> {
        Ok(Box::new(OpenRows { open: *self, program: program.clone() }))
    }

    fn release(&self, plan: &Arc<ReleasePlan>) -> Result<Box<dyn PreparedRelease>, Error> {
        Ok(Box::new(OpenRelease { fault: self.fault, plan: plan.clone() }))
    }
}

struct OpenRows {
    open: Open,
    program: Program,
}

impl PreparedRows for OpenRows {
    fn price(&self, rows: u64) -> StagePrice {
        let sent: Vec<u64> =
            (0..2).map(|p| Open::own(&self.program, PartyId(p)).len() as u64 * rows * 16).collect();
        let rounds = u64::from(sent.iter().all(|s| *s > 0));
        StagePrice::of(Cost { and_gates: 0, ots: 0, rounds, sent })
    }

    fn run(&self, rows: RowInput<'_>, session: &mut Session) -> Result<Shares, Error> {
        let (program, rows) = (&self.program, rows.owned()?);
        let lanes = rows.len() as usize;
        let columns = self.open.columns(program, rows, session)?;
        let mut values = NodeValues::default();
        let all = vec![true; program.row.nodes.len()];
        values.evaluate(&program.row, &all, lanes, &mut |op, out| {
            let Op::Column(c) = op else { unreachable!() };
            out.copy_from_slice(&columns[*c as usize]);
            Ok(())
        })?;
        let plan = lower_row(program, self.open.sender);
        let sums = self.open.sums(program, &plan, &values, lanes);
        let me = session.me();
        let folds = plan.folds.iter().zip(&program.folds).map(|(plan, fold)| {
            let (ty, mask) = (program.row.ty(fold.value()), fold.ty().mask());
            let total = || {
                values.get(fold.value()).iter().fold(0u128, |t, v| t.wrapping_add(ty.to_signed(*v) as u128))
            };
            match plan {
                FoldPlan::Alone(p) if p.is_none_or(|p| p == me) => Share::Known(total() & mask),
                FoldPlan::Alone(_) => Share::Absent,
                FoldPlan::Shared(temp) => self.open.share(me, sums[*temp as usize], mask),
            }
        });
        Ok(Shares::new(folds.collect()))
    }
}

struct OpenRelease {
    fault: Fault,
    plan: Arc<ReleasePlan>,
}

impl PreparedRelease for OpenRelease {
    fn plan(&self) -> &ReleasePlan {
        &self.plan
    }

    fn holders(&self) -> &[PartyId] {
        &[PartyId(0), PartyId(1)]
    }

    fn price(&self) -> StagePrice {
        if self.plan.alone().is_some() {
            return StagePrice::free(2);
        }
        let of = |p: u8| 16 * self.plan.words.iter().filter(|w| w.owner == PartyId(p)).count() as u64;
        let sent = vec![of(0), of(1)];
        let rounds = u64::from(sent.iter().all(|s| *s > 0));
        StagePrice::of(Cost { and_gates: 0, ots: 0, rounds, sent })
    }

    fn run(
        &self,
        entered: &Entered,
        _: &mut DrawnNoise,
        session: &mut Session,
    ) -> Result<OutputShares, Error> {
        let plan = &*self.plan;
        let (me, peer) = (session.me(), session.me().other());
        if let Some(alone) = outputs::alone(plan, entered, me)? {
            return Ok(alone);
        }
        let of = |party| (0..plan.words.len()).filter(move |w| plan.words[*w].owner == party);
        let mut words: Vec<u128> = (0..plan.words.len()).map(|w| entered.get(w).unwrap_or(0)).collect();
        let mine: Vec<u8> = of(me).flat_map(|w| words[w].to_le_bytes()).collect();
        let mut theirs = vec![0; 16 * of(peer).count()];
        session.link(peer).exchange(&mine, &mut theirs)?;
        if self.fault == Fault::ReleaseByte {
            session.link(peer).exchange(&[0], &mut [0])?;
        }
        for (w, value) in of(peer).zip(theirs.chunks_exact(16)) {
            let coins = matches!(plan.words[w].kind, WordKind::Coins(..));
            if self.fault != Fault::OwnCoins || !coins || me.0 != 0 {
                words[w] = u128::from_le_bytes(value.try_into().unwrap());
            }
        }
        let wires = plan.circuit.evaluate(|i| words[i.word as usize] >> i.bit & 1 == 1);
        let mut bits: Vec<bool> = plan.roots().map(|l| wires[l.wire()] ^ l.inverted()).collect();
        if me.0 == 1 {
            bits.fill(false);
        }
        if self.fault == Fault::Output && bits.len() > 2 {
            bits[2] ^= me.0 == 1;
        }
        if self.fault == Fault::LongShare {
            bits.extend([false; 8]);
        }
        Ok(OutputShares::of_bits(&bits))
    }
}

fn open(sender: u8, fault: Fault) -> Result<(), String> {
    check(&|_| Ok(Box::new(Open { sender: PartyId(sender), fault })))
}

#[test]
fn the_clear_engine_conforms() {
    check_alone(&|_| Ok(Box::new(Clear))).unwrap();
}

#[test]
fn the_clear_engine_conforms_among_any_number_of_parties() {
    for parties in [2, 3, 5, 13, 16] {
        check_among_alone(parties, &|_| Ok(Box::new(Clear))).unwrap();
    }
}

#[test]
fn the_lowered_plans_conform_with_either_sender() {
    open(0, Fault::None).unwrap();
    open(1, Fault::None).unwrap();
}

#[test]
fn wrong_engines_are_caught() {
    use Fault::*;
    for (fault, words) in [
        (Total, "expected"),
        (PlainShare, "a share is not random"),
        (KnownShare, "the wrong kinds of shares"),
        (Output, "expected"),
        (OwnCoins, "expected"),
        (LongShare, "another length"),
        (ExtraByte, "rows: priced at"),
        (ExtraTurn, "rounds, took"),
        (ReleaseByte, "release-0: priced at"),
        (ForeignColumn, "is not held here"),
    ] {
        let error = open(1, fault).expect_err(&format!("{fault:?} must be caught"));
        assert!(error.contains(words), "{fault:?}: {error}");
    }
}

/// The clear engine with one total or one output off by one bit.
struct Flipped {
    total: bool,
}

impl Engine for Flipped {
    fn name(&self) -> &'static str {
        "flipped"
    }
    fn rows(&self, program: &Program, source: RowSource) -> Result<Box<dyn PreparedRows>, Error> {
        Ok(Box::new(FlippedStage { stage: Clear.rows(program, source)?, flips: self.total }))
    }
    fn release(&self, plan: &Arc<ReleasePlan>) -> Result<Box<dyn PreparedRelease>, Error> {
        Ok(Box::new(FlippedStage { stage: Clear.release(plan)?, flips: !self.total }))
    }
}

struct FlippedStage<T: ?Sized> {
    stage: Box<T>,
    flips: bool,
}

impl PreparedRows for FlippedStage<dyn PreparedRows> {
    fn price(&self, rows: u64) -> StagePrice {
        self.stage.price(rows)
    }
    fn run(&self, rows: RowInput<'_>, session: &mut Session) -> Result<Shares, Error> {
        let mut folds = self.stage.run(rows, session)?.folds().to_vec();
        if let (true, Some(Share::Known(last))) = (self.flips, folds.last_mut()) {
            *last ^= 1;
        }
        Ok(Shares::new(folds))
    }
}

impl PreparedRelease for FlippedStage<dyn PreparedRelease> {
    fn plan(&self) -> &ReleasePlan {
        self.stage.plan()
    }
    fn holders(&self) -> &[PartyId] {
        self.stage.holders()
    }
    fn price(&self) -> StagePrice {
        self.stage.price()
    }
    fn run(
        &self,
        entered: &Entered,
        noise: &mut DrawnNoise,
        session: &mut Session,
    ) -> Result<OutputShares, Error> {
        let mut bits = self.stage.run(entered, noise, session)?.bits(0..self.plan().bits());
        if let (true, Some(last)) = (self.flips, bits.last_mut()) {
            *last ^= true;
        }
        Ok(OutputShares::of_bits(&bits))
    }
}

#[test]
fn one_flipped_bit_is_caught() {
    for total in [true, false] {
        let error = check_alone(&|_| Ok(Box::new(Flipped { total }))).unwrap_err();
        assert!(error.contains("expected"), "{error}");
        let error = check_among_alone(3, &|_| Ok(Box::new(Flipped { total }))).unwrap_err();
        assert!(error.contains("expected"), "{error}");
    }
}

#[test]
fn one_honest_party_makes_the_noise() {
    check_law_alone(&|_| Ok(Box::new(Clear))).unwrap();
}
