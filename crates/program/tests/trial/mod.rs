//! A study of two parties to build programs on, malicious ones and honest ones.

#![allow(dead_code, reason = "each test file uses a part")]

use base::PartyId;
use program::{
    Audit, Class, DifferenceStatistic, MechanismKind, NodeId, Program, ProgramBuilder, RowSet, ValueType,
    VerifierPolicy, verify,
};
use release::rational::{Rational, ratio};

pub const P: Option<PartyId> = Some(PartyId(0));
pub const A: Option<PartyId> = Some(PartyId(1));
pub const PUBLISHER: PartyId = PartyId(0);
pub const ADVERTISER: PartyId = PartyId(1);
pub const ROWS: u64 = 1_000_000;

pub type Build = fn(&mut Study) -> NodeId;
pub type Spoil = fn(&mut Study, [NodeId; 3]) -> [NodeId; 3];

pub fn rho(num: u128, den: u128) -> Rational {
    ratio(num, den)
}

pub fn refusal(program: &Program) -> String {
    verify(program, &VerifierPolicy::default(), ROWS).expect_err("a malicious study is refused").to_string()
}

pub fn audit(program: &Program) -> Audit {
    verify(program, &VerifierPolicy::default(), ROWS).unwrap()
}

/// A study with an arm of the publisher, a cohort and a value of the advertiser.
pub struct Study {
    pub b: ProgramBuilder,
    pub arm: NodeId,
    pub cohort: NodeId,
    pub value: NodeId,
}

impl Study {
    pub fn new() -> Self {
        Self::of(Class::Dp)
    }

    pub fn of(class: Class) -> Self {
        let mut b = ProgramBuilder::new("study", class, ["publisher", "advertiser"]);
        // Absent rows are the subject of `absent.rs`.
        b.rows(RowSet::Aligned);
        let arm = b.column("arm", ValueType::u(2), P);
        let cohort = b.column("cohort", ValueType::u(4), A);
        let value = b.column("value", ValueType::u(16), A);
        Self { b, arm, cohort, value }
    }

    pub fn is(&mut self, column: NodeId, which: u128) -> NodeId {
        let constant = self.b.constant(which, self.b.ty(column));
        self.b.eq(column, constant)
    }

    /// The value, in a range.
    pub fn between(&mut self, low: i128, high: i128) -> NodeId {
        let ty = ValueType::i(20);
        let [low, high] = [low, high].map(|end| self.b.constant(end as u128 & ty.mask(), ty));
        let signed = self.b.cast(self.value, ValueType::i(16));
        let wide = self.b.cast(signed, ty);
        let above = self.b.max(wide, low);
        self.b.min(above, high)
    }

    /// Total of the clamped value over one arm.
    pub fn arm_sum(&mut self, which: u128, cap: u128) -> u32 {
        let clamped = self.b.clamp(self.value, cap);
        let inside = self.is(self.arm, which);
        let masked = self.b.mask(inside, clamped);
        self.b.sum(masked, ValueType::u(60))
    }

    pub fn gaussian(&mut self, to: PartyId, rho: Rational, folds: &[u32]) -> u32 {
        self.b.mechanism(to, &rho, MechanismKind::Gaussian(folds.to_vec()))
    }

    /// Reveals output 0 of a mechanism to a party.
    pub fn show(mut self, mechanism: u32, to: PartyId) -> Program {
        self.b.release();
        let noised = self.b.noised(mechanism, 0);
        self.b.reveal("answer", to, noised);
        self.b.finish()
    }

    /// Noises one row node for the publisher and shows it.
    pub fn noise(mut self, node: NodeId) -> Program {
        let fold = self.b.sum(node, ValueType { width: 60, ..self.b.ty(node) });
        let m = self.gaussian(PUBLISHER, rho(1, 10), &[fold]);
        self.show(m, PUBLISHER)
    }
}

/// A difference of arms; `tweak` may spoil a part: n, S and Q of the test arm.
pub fn difference(spoil: impl Fn(&mut Study, [NodeId; 3]) -> [NodeId; 3]) -> Program {
    let mut s = Study::new();
    let clamped = s.b.clamp(s.value, 50);
    let square = s.b.mul(clamped, clamped);
    let arm =
        |s: &mut Study, which: u128, spoil: bool, f: &dyn Fn(&mut Study, [NodeId; 3]) -> [NodeId; 3]| {
            let inside = s.is(s.arm, which);
            let parts = [inside, s.b.mask(inside, clamped), s.b.mask(inside, square)];
            let parts = if spoil { f(s, parts) } else { parts };
            parts.map(|node| s.b.sum(node, ValueType::u(60)))
        };
    let test = arm(&mut s, 1, true, &spoil);
    let control = arm(&mut s, 2, false, &spoil);
    let kind = MechanismKind::Difference { statistic: DifferenceStatistic::Variance, test, control };
    let m = s.b.mechanism(PUBLISHER, &rho(1, 10), kind);
    s.show(m, PUBLISHER)
}
