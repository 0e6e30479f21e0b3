//! The policy: one malicious study per rule, with the words of its refusal; and what honest studies are
//! charged.

use base::PartyId;
use program::{
    Audit, Class, DifferenceStatistic, MechanismKind, NodeId, Program, ProgramBuilder, RowOrder, RowSet,
    ValueType, VerifierPolicy, verify,
};
use release::SumChange;
use release::joint::Change;
use release::rational::{Rational, ratio};

const P: Option<PartyId> = Some(PartyId(0));
const A: Option<PartyId> = Some(PartyId(1));
const PUBLISHER: PartyId = PartyId(0);
const ADVERTISER: PartyId = PartyId(1);
const ROWS: u64 = 1_000_000;

type Build = fn(&mut Study) -> NodeId;
type Spoil = fn(&mut Study, [NodeId; 3]) -> [NodeId; 3];

fn rho(num: u128, den: u128) -> Rational {
    ratio(num, den)
}

fn refusal(program: &Program) -> String {
    verify(program, &VerifierPolicy::default(), ROWS).expect_err("a malicious study is refused").to_string()
}

fn audit(program: &Program) -> Audit {
    verify(program, &VerifierPolicy::default(), ROWS).unwrap()
}

/// A study with an arm of the publisher, a cohort and a value of the advertiser.
struct Study {
    b: ProgramBuilder,
    arm: NodeId,
    cohort: NodeId,
    value: NodeId,
}

impl Study {
    fn new() -> Self {
        Self::of(Class::Dp)
    }

    fn of(class: Class) -> Self {
        let mut b = ProgramBuilder::new("study", class, ["publisher", "advertiser"]);
        // Absent rows are the subject of `absent.rs`.
        b.rows(RowSet::Aligned);
        let arm = b.column("arm", ValueType::u(2), P);
        let cohort = b.column("cohort", ValueType::u(4), A);
        let value = b.column("value", ValueType::u(16), A);
        Self { b, arm, cohort, value }
    }

    fn is(&mut self, column: NodeId, which: u128) -> NodeId {
        let constant = self.b.constant(which, self.b.ty(column));
        self.b.eq(column, constant)
    }

    /// The value, in a range.
    fn between(&mut self, low: i128, high: i128) -> NodeId {
        let ty = ValueType::i(20);
        let [low, high] = [low, high].map(|end| self.b.constant(end as u128 & ty.mask(), ty));
        let signed = self.b.cast(self.value, ValueType::i(16));
        let wide = self.b.cast(signed, ty);
        let above = self.b.max(wide, low);
        self.b.min(above, high)
    }

    /// Total of the clamped value over one arm.
    fn arm_sum(&mut self, which: u128, cap: u128) -> u32 {
        let clamped = self.b.clamp(self.value, cap);
        let inside = self.is(self.arm, which);
        let masked = self.b.mask(inside, clamped);
        self.b.sum(masked, ValueType::u(60))
    }

    fn gaussian(&mut self, to: PartyId, rho: Rational, folds: &[u32]) -> u32 {
        self.b.mechanism(to, &rho, MechanismKind::Gaussian(folds.to_vec()))
    }

    /// Reveals output 0 of a mechanism to a party.
    fn show(mut self, mechanism: u32, to: PartyId) -> Program {
        self.b.release();
        let noised = self.b.noised(mechanism, 0);
        self.b.reveal("answer", to, noised);
        self.b.finish()
    }

    /// Noises one row node for the publisher and shows it.
    fn noise(mut self, node: NodeId) -> Program {
        let fold = self.b.sum(node, ValueType { width: 60, ..self.b.ty(node) });
        let m = self.gaussian(PUBLISHER, rho(1, 10), &[fold]);
        self.show(m, PUBLISHER)
    }
}

#[test]
fn r1_a_raw_total_is_not_revealed() {
    let mut s = Study::new();
    let fold = s.arm_sum(1, 10);
    s.b.release();
    let total = s.b.total(fold);
    s.b.reveal("answer", PUBLISHER, total);
    let words = "refused by rule R1 (reveal): \"answer\" for publisher depends on others' data without noise \
                 for that viewer";
    let text = refusal(&s.b.finish());
    assert!(
        text.starts_with(words) && text.contains(": release v0. Noise it by a mechanism for publisher"),
        "{text}"
    );
}

#[test]
fn r1_another_partys_own_total_is_not_revealed() {
    let mut s = Study::new();
    let fold = s.b.sum(s.value, ValueType::u(60));
    s.b.release();
    let total = s.b.total(fold);
    let seven = s.b.constant(7, ValueType::u(60));
    let hidden = s.b.add(total, seven);
    s.b.reveal("answer", PUBLISHER, hidden);
    assert!(refusal(&s.b.finish()).starts_with("refused by rule R1 (reveal): \"answer\" for publisher"));
}

#[test]
fn r1_noise_for_one_viewer_is_not_noise_for_the_other() {
    let mut s = Study::new();
    let fold = s.arm_sum(1, 10);
    let m = s.gaussian(ADVERTISER, rho(1, 10), &[fold]);
    assert!(
        refusal(&s.show(m, PUBLISHER)).starts_with("refused by rule R1 (reveal): \"answer\" for publisher")
    );
}

#[test]
fn r1_own_data_beside_noise_for_the_viewer_is_fine_but_not_for_the_other() {
    for (owner, fine) in [(P, true), (A, false)] {
        let mut s = Study::new();
        let own = s.b.column("own", ValueType::u(8), owner);
        let (own, fold) = (s.b.sum(own, ValueType::u(60)), s.arm_sum(1, 10));
        let m = s.gaussian(PUBLISHER, rho(1, 10), &[fold]);
        s.b.release();
        let (noised, total) = (s.b.noised(m, 0), s.b.total(own));
        let total = s.b.cast(total, s.b.ty(noised));
        let both = s.b.add(noised, total);
        s.b.reveal("answer", PUBLISHER, both);
        assert_eq!(verify(&s.b.finish(), &VerifierPolicy::default(), ROWS).is_ok(), fine);
    }
}

#[test]
fn r2_a_raw_total_is_not_laundered() {
    type Launder = fn(&mut ProgramBuilder, NodeId, NodeId) -> NodeId;
    let ways: [Launder; 7] = [
        |b, raw, noised| b.add(raw, noised),
        |b, raw, noised| b.sub(noised, raw),
        |b, raw, _| b.mul(raw, raw),
        |b, raw, _| {
            let zero = b.constant(0, b.ty(raw));
            b.lt(zero, raw)
        },
        |b, raw, noised| {
            let c = b.lt(noised, raw);
            b.select(c, noised, raw)
        },
        |b, raw, _| b.cast(raw, ValueType::BIT),
        |b, raw, _| b.shr(raw, 1),
    ];
    for launder in ways {
        let mut s = Study::new();
        let fold = s.arm_sum(1, 10);
        let m = s.gaussian(PUBLISHER, rho(1, 10), &[fold]);
        s.b.release();
        let noised = s.b.noised(m, 0);
        let raw = s.b.total(fold);
        let raw = s.b.cast(raw, s.b.ty(noised));
        let out = launder(&mut s.b, raw, noised);
        s.b.reveal("answer", PUBLISHER, out);
        let words = refusal(&s.b.finish());
        assert!(
            words
                == "refused by rule R2 (raw totals): release v2 computes on a raw total; only mechanisms may \
                    use it",
            "{words}"
        );
    }
}

#[test]
fn r2_two_parties_own_totals_are_not_mixed() {
    let mut s = Study::new();
    let (x, y) = (s.b.sum(s.arm, ValueType::u(60)), s.b.sum(s.value, ValueType::u(60)));
    s.b.release();
    let (x, y) = (s.b.total(x), s.b.total(y));
    let sum = s.b.add(x, y);
    s.b.reveal("answer", PUBLISHER, sum);
    assert!(refusal(&s.b.finish()).contains("rule R2 (raw totals): release v2"));
}

#[test]
fn r3_what_is_noised_has_a_bound() {
    let words = "refused by rule R3 (clamp): m0 noises f0, whose rows have no bound of the program's own; sum \
                 `clamp x 100`, or `clamp x -50 50` of a signed value";
    let unbounded: [fn(&mut Study) -> NodeId; 11] = [
        |s| s.value,
        |s| {
            // The sum wraps.
            let c = s.b.clamp(s.value, 40_000);
            s.b.add(c, c)
        },
        |s| {
            // Signed, and bounded at one end alone.
            let wide = s.b.cast(s.value, ValueType::i(20));
            let low = s.b.constant(5, ValueType::i(20));
            s.b.max(wide, low)
        },
        |s| {
            let c = s.b.clamp(s.value, 9);
            // Below 0 it wraps.
            let none = s.b.constant(0, ValueType::u(16));
            s.b.sub(none, c)
        },
        |s| {
            let c = s.b.clamp(s.value, 9);
            s.b.sub(c, s.value)
        },
        |s| {
            // 300 * 300 does not fit 16 bits: the product wraps.
            let c = s.b.clamp(s.value, 300);
            s.b.mul(c, c)
        },
        |s| {
            let c = s.b.clamp(s.value, 9000);
            s.b.shl(c, 3)
        },
        |s| {
            // Cut to four bits: 256 becomes 0, 255 becomes 15.
            let c = s.b.clamp(s.value, 256);
            s.b.cast(c, ValueType::u(4))
        },
        |s| {
            let inside = s.is(s.arm, 1);
            s.b.mask(inside, s.value)
        },
        |s| s.b.popcount(s.value, ValueType::u(8)),
        |s| {
            let c = s.b.clamp(s.value, 9);
            s.b.not(c)
        },
    ];
    for build in unbounded {
        let mut s = Study::new();
        let node = build(&mut s);
        assert_eq!(refusal(&s.noise(node)), words);
    }
}

#[test]
fn r3_sensitivity_is_the_largest_clamp_never_a_smaller_one() {
    let cases: [(Build, u128); 13] = [
        (|s| s.b.clamp(s.value, 9), 9),
        (|s| s.b.clamp(s.value, u128::MAX), 65535),
        (
            |s| {
                let inside = s.is(s.arm, 1);
                let (low, high) = (s.b.clamp(s.value, 9), s.b.clamp(s.value, 90));
                s.b.select(inside, low, high)
            },
            90,
        ),
        (
            |s| {
                let (low, high) = (s.b.clamp(s.value, 9), s.b.clamp(s.value, 90));
                s.b.max(low, high)
            },
            90,
        ),
        (
            |s| {
                let c = s.b.clamp(s.value, 200);
                s.b.mul(c, c)
            },
            40000,
        ),
        (
            |s| {
                let low = s.b.clamp(s.value, 9);
                s.b.min(low, s.value)
            },
            9,
        ),
        (|s| s.b.lt(s.value, s.value), 1),
        (
            |s| {
                let c = s.b.clamp(s.value, 9);
                s.b.add(c, c)
            },
            18,
        ),
        (
            |s| {
                let c = s.b.clamp(s.value, 9);
                s.b.shl(c, 3)
            },
            72,
        ),
        // From -50 to 20: what a row takes away and adds is 70 apart. From 5 to 20 it may come or go.
        (|s| s.between(-50, 20), 70),
        (|s| s.between(5, 20), 20),
        (
            |s| {
                // Twice what is in -50 to 20, less 3 times what is in 0 to 1.
                let (a, b) = (s.between(-50, 20), s.between(0, 1));
                let (two, three) = (s.b.constant(2, ValueType::i(20)), s.b.constant(3, ValueType::i(20)));
                let (a, b) = (s.b.mul(a, two), s.b.mul(b, three));
                s.b.sub(a, b)
            },
            143,
        ),
        (
            |s| {
                let inside = s.is(s.arm, 1);
                s.b.cast(inside, ValueType::u(40))
            },
            1,
        ),
    ];
    for (build, sensitivity) in cases {
        let mut s = Study::new();
        let node = build(&mut s);
        assert_eq!(audit(&s.noise(node)).charges[0].sensitivity(0), Some(sensitivity));
    }
}

#[test]
fn r4_cells_of_one_mechanism_are_disjoint() {
    let words = "refused by rule R4 (disjoint): m0: f0 and f1 are not provably disjoint; charge them apart";
    let overlapping: [fn(&mut Study) -> [NodeId; 2]; 4] = [
        // The same arm with two clamps; different columns; ranges that overlap; two ways to the same number.
        |s| {
            let inside = s.is(s.arm, 1);
            [9, 10].map(|cap| {
                let c = s.b.clamp(s.value, cap);
                s.b.mask(inside, c)
            })
        },
        |s| [s.is(s.arm, 1), s.is(s.cohort, 2)],
        |s| {
            let [two, one] = [2, 1].map(|edge| s.b.constant(edge, ValueType::u(2)));
            let (low, high) = (s.b.lt(s.arm, two), s.b.lt(s.arm, one));
            [low, s.b.not(high)]
        },
        |s| {
            let sums = [s.b.add(s.arm, s.arm), s.b.shl(s.arm, 1)];
            [s.is(sums[0], 0), s.is(sums[1], 2)]
        },
    ];
    for build in overlapping {
        let mut s = Study::new();
        let folds = build(&mut s).map(|node| s.b.sum(node, ValueType::u(60)));
        let m = s.gaussian(PUBLISHER, rho(1, 10), &folds);
        assert_eq!(refusal(&s.show(m, PUBLISHER)), words);
    }
    // A comparison and what it is not; neighbouring ranges; one computed value; sums that are not 0 only where
    // what they are made of is not.
    let apart: [(fn(&mut Study) -> [NodeId; 2], bool); 4] = [
        (
            |s| {
                let two = s.b.constant(2, ValueType::u(2));
                let below = s.b.lt(s.arm, two);
                [below, s.b.not(below)]
            },
            false,
        ),
        (
            |s| {
                let [low, high] = [100, 200].map(|edge| s.b.constant(edge, ValueType::u(16)));
                let (below, most) = (s.b.lt(s.value, low), s.b.lt(s.value, high));
                let above = s.b.not(below);
                [below, s.b.and(above, most)]
            },
            true,
        ),
        (
            |s| {
                let sum = s.b.add(s.arm, s.arm);
                [s.is(sum, 0), s.is(sum, 2)]
            },
            false,
        ),
        (
            |s| {
                let (one, two) = (s.is(s.cohort, 1), s.is(s.cohort, 2));
                let wide = s.b.cast(one, ValueType::u(4));
                let more = s.b.add(wide, wide);
                let some = s.b.mask(two, s.cohort);
                [more, s.b.clamp(some, 3)]
            },
            true,
        ),
    ];
    for (build, moves) in apart {
        let mut s = Study::new();
        let folds = build(&mut s).map(|node| s.b.sum(node, ValueType::u(60)));
        let m = s.gaussian(PUBLISHER, rho(1, 10), &folds);
        let changes = audit(&s.show(m, PUBLISHER)).charges.remove(0).changes;
        assert!(changes.iter().all(|change| (change.moves > 0) == moves), "{changes:?}");
    }
    let mut s = Study::new();
    let fold = s.arm_sum(1, 9);
    let m = s.gaussian(PUBLISHER, rho(1, 10), &[fold, fold]);
    assert!(refusal(&s.show(m, PUBLISHER)).contains("R4 (disjoint): m0: f0 and f0"));
}

/// `release.md`: D^2 / (2 rho) where the viewer fixes the cell, twice that where a row can move; one cell
/// never moves.
#[test]
fn r4_noise_doubles_where_a_row_can_move_between_cells() {
    let arms = |s: &mut Study| vec![s.arm_sum(1, 10), s.arm_sum(2, 10)];
    let cohorts = |s: &mut Study| {
        let cell = |s: &mut Study, which| {
            let (inside, c) = (s.is(s.cohort, which), s.b.clamp(s.value, 10));
            let arm = s.is(s.arm, 1);
            let both = s.b.and(inside, arm);
            let masked = s.b.mask(both, c);
            s.b.sum(masked, ValueType::u(60))
        };
        vec![cell(s, 1), cell(s, 2), cell(s, 3)]
    };
    type Cells = fn(&mut Study) -> Vec<u32>;
    let single: Cells = |s| vec![s.arm_sum(1, 10)];
    let cases: [(&str, Cells, PartyId, bool); 5] = [
        ("arms to the publisher", arms, PUBLISHER, false),
        ("arms to the advertiser", arms, ADVERTISER, true),
        ("cohorts to the publisher", cohorts, PUBLISHER, true),
        ("cohorts to the advertiser", cohorts, ADVERTISER, false),
        ("one arm to the advertiser", single, ADVERTISER, false),
    ];
    for (name, cells, to, moves) in cases {
        let mut s = Study::new();
        let folds = cells(&mut s);
        let m = s.gaussian(to, rho(1, 8), &folds);
        let charge = audit(&s.show(m, to)).charges.remove(0);
        let change = SumChange { stays: 10, moves: if moves { 10 } else { 0 } };
        assert_eq!(charge.changes, vec![change; folds.len()], "{name}");
        // 10^2 / (2/8) = 400, or 800.
        let sigma2 = Some(ratio(if moves { 800 } else { 400 }, 1));
        assert!((0..folds.len()).all(|o| charge.sigma2(o) == sigma2), "{name}");
    }
}

/// A row that changes d joined rows moves a total by d times as much, whoever's row it is but the viewer's.
#[test]
fn r4_a_degree_multiplies_the_sensitivity() {
    for (degrees, to, times) in
        [([1, 4], PUBLISHER, 4), ([1, 4], ADVERTISER, 1), ([3, 1], ADVERTISER, 3), ([3, 1], PUBLISHER, 1)]
    {
        let mut s = Study::new();
        let folds = [s.arm_sum(1, 10), s.arm_sum(2, 10)];
        let m = s.gaussian(to, rho(1, 8), &folds);
        let mut program = s.show(m, to);
        let hash = program.hash();
        program.degrees = degrees.to_vec();
        assert_ne!(program.hash(), hash, "the degree is in the hash");
        assert_eq!(Program::parse(&program.to_text()).unwrap(), program);
        let charge = audit(&program).charges.remove(0);
        assert_eq!([0, 1].map(|o| charge.sensitivity(o)), [Some(10 * times); 2], "{degrees:?}");
        let one = if charge.changes[0].moves > 0 { 800 } else { 400 };
        assert_eq!(charge.sigma2(0), Some(ratio(one * times * times, 1)));
    }
    let mut program = difference(|_, parts| parts);
    program.degrees = vec![4, 1];
    assert!(audit(&program).charges[0].changes.is_empty(), "the viewer's own rows are not protected from it");
    program.degrees = vec![1, 2];
    assert!(refusal(&program).starts_with("refused by rule R4 (degree): m0 noises a difference of means"));
    for degrees in [vec![1], vec![0, 1], vec![1, 1 << 17]] {
        program.degrees = degrees;
        assert!(refusal(&program).contains("every party has a degree, 1 to 65536"));
    }
}

/// What one party's rows alone add up to, and rows that are not there do not, moves by one row whatever the
/// match joins.
#[test]
fn r4_a_sum_of_one_partys_rows_alone_has_no_degree() {
    let sensitivity = |build: fn(&mut Study) -> Vec<NodeId>| {
        let mut s = Study::new();
        let folds: Vec<u32> =
            build(&mut s).into_iter().map(|value| s.b.sum(value, ValueType::u(60))).collect();
        let m = s.gaussian(ADVERTISER, rho(1, 8), &folds);
        let mut program = s.show(m, ADVERTISER);
        program.degrees = vec![4, 4];
        let charge = audit(&program).charges.remove(0);
        (0..charge.changes.len()).map(|output| charge.sensitivity(output).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(sensitivity(|s| vec![s.is(s.arm, 1), s.is(s.arm, 2)]), [1, 1]);
    // A row that the publisher has not is of arm 0: more or fewer of these with any match that one row
    // changes.
    assert_eq!(sensitivity(|s| vec![s.is(s.arm, 0)]), [4]);
    // Of both parties' columns.
    fn joined(s: &mut Study, arm: u128) -> NodeId {
        let (arm, value) = (s.is(s.arm, arm), s.is(s.value, 3));
        s.b.and(arm, value)
    }
    assert_eq!(sensitivity(|s| vec![joined(s, 1)]), [4]);
    // One row can move a cell of each kind by as much as the noise of each is for.
    assert_eq!(sensitivity(|s| vec![s.is(s.arm, 2), joined(s, 1)]), [4, 4]);
}

#[test]
fn r5_charges_add_up_by_viewer() {
    let mut s = Study::new();
    let fold = s.arm_sum(1, 9);
    for _ in 0..2 {
        s.gaussian(PUBLISHER, rho(3, 5), &[fold]);
    }
    let m = s.gaussian(ADVERTISER, rho(1, 1), &[fold]);
    let program = s.show(m, ADVERTISER);
    assert_eq!(
        refusal(&program),
        "refused by rule R5 (rho): publisher would be charged 6/5, the policy allows 1"
    );
    let policy = VerifierPolicy { max_rho: rho(6, 5), ..VerifierPolicy::default() };
    assert_eq!(verify(&program, &policy, ROWS).unwrap().rho, [rho(6, 5), rho(1, 1)]);
}

#[test]
fn r5_outputs_are_counted() {
    let mut s = Study::new();
    let fold = s.b.sum(s.arm, ValueType::u(60));
    s.b.release();
    let total = s.b.total(fold);
    for i in 0..3 {
        s.b.reveal(&format!("{i}"), PUBLISHER, total);
    }
    let policy = VerifierPolicy { max_outputs: 2, ..VerifierPolicy::default() };
    let error = verify(&s.b.finish(), &policy, ROWS).unwrap_err().to_string();
    assert_eq!(error, "refused by rule R5 (outputs): 3 outputs, the local policy allows 2");
}

#[test]
fn r5_odd_shares_of_rho_are_refused_without_a_panic() {
    for (shares, words) in [
        (vec![ratio(0, 1)], "refused by rule R5 (rho): m0 spends no rho, so its noise would be infinite"),
        (
            vec![rho(1, u128::MAX)],
            "refused by rule R5 (rho): m0: the variance of its noise is no ratio of 128-bit numbers; use a \
             simpler rho",
        ),
        (
            vec![rho(1, (1 << 100) - 1), rho(1, (1 << 100) - 3)],
            "refused by rule R5 (rho): the shares of rho have no exact sum",
        ),
        (vec![rho(u128::MAX, 1)], "refused by rule R5 (rho): publisher would be charged"),
    ] {
        let mut s = Study::new();
        let fold = s.arm_sum(1, 9);
        let m = shares.into_iter().map(|rho| s.gaussian(PUBLISHER, rho, &[fold])).last().unwrap();
        let text = refusal(&s.show(m, PUBLISHER));
        assert!(text.starts_with(words), "{text}");
    }
}

#[test]
fn r6_exact_values_need_permission_and_are_all_listed() {
    let program = || {
        let mut s = Study::of(Class::Exact);
        let fold = s.arm_sum(1, 9);
        s.b.release();
        let total = s.b.total(fold);
        let few = s.b.isqrt(total);
        s.b.reveal("total", PUBLISHER, total);
        s.b.reveal("root", ADVERTISER, few);
        s
    };
    assert_eq!(
        refusal(&program().b.finish()),
        "refused by rule R6 (exact): the program reveals exact values; set allow_exact = true in the policy \
         to consent"
    );
    let policy = VerifierPolicy { allow_exact: true, ..VerifierPolicy::default() };
    let exact = verify(&program().b.finish(), &policy, ROWS).unwrap().exact;
    assert_eq!(exact, [(PUBLISHER.into(), "total".to_owned()), (ADVERTISER.into(), "root".to_owned())]);
    let mut s = program();
    s.gaussian(PUBLISHER, rho(1, 10), &[0]);
    let error = verify(&s.b.finish(), &policy, ROWS).unwrap_err().to_string();
    assert_eq!(error, "refused by rule R6 (exact): an exact program has no mechanisms; use class dp");
}

#[test]
fn r7_a_sum_cannot_wrap() {
    let program = |ty| {
        let mut s = Study::new();
        let c = s.b.clamp(s.value, 1000);
        s.b.sum(c, ty);
        s.b.finish()
    };
    assert_eq!(
        refusal(&program(ValueType::u(29))),
        "refused by rule R7 (overflow): f0: 1000000 rows of up to 1000 do not fit u29; use a wider sum"
    );
    audit(&program(ValueType::u(30)));
    for (ty, rows, fine) in
        [(ValueType::i(16), 1, false), (ValueType::i(17), 1, true), (ValueType::i(17), 2, false)]
    {
        let mut b = ProgramBuilder::new("signed", Class::Dp, ["a", "b"]);
        let x = b.column("x", ValueType::i(16), P);
        b.sum(x, ty);
        assert_eq!(verify(&b.finish(), &VerifierPolicy::default(), rows).is_ok(), fine, "{ty} {rows}");
    }
    let mut b = ProgramBuilder::new("wide", Class::Dp, ["a", "b"]);
    let x = b.column("x", ValueType::i(9), P);
    let x = b.cast(x, ValueType::u(128));
    b.sum(x, ValueType::u(128));
    assert!(refusal(&b.finish()).contains("R7 (overflow)"));
}

/// A difference of arms; `tweak` may spoil a part: n, S and Q of the test arm.
fn difference(spoil: impl Fn(&mut Study, [NodeId; 3]) -> [NodeId; 3]) -> Program {
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

/// n, S and Q of two arms for the publisher, whose column is `arm`; `spoil` may spoil those of the first one.
fn joint(change: Change, clamp: u128, spoil: Spoil) -> Program {
    let mut s = Study::new();
    let clamped = s.b.clamp(s.value, 50);
    let square = s.b.mul(clamped, clamped);
    let cells = [1, 2].map(|which| {
        let inside = s.is(s.arm, which);
        let parts = [inside, s.b.mask(inside, clamped), s.b.mask(inside, square)];
        let parts = if which == 1 { spoil(&mut s, parts) } else { parts };
        parts.map(|node| s.b.sum(node, ValueType::u(60)))
    });
    let kind = MechanismKind::Joint { change, clamp, cells: cells.to_vec() };
    let m = s.b.mechanism(PUBLISHER, &rho(1, 10), kind);
    s.show(m, PUBLISHER)
}

/// What the charge of [`release::joint`] rests on.
#[test]
fn r4_joint_sums_are_of_counted_disjoint_cells_and_their_squares() {
    let fine: Spoil = |_, parts| parts;
    for change in [Change::Outcome, Change::Person] {
        let charge = audit(&joint(change, 50, fine)).charges.remove(0);
        assert_eq!((charge.joint, charge.changes.len()), (Some(rho(1, 10)), 0));
    }
    let of_both: Spoil = |s, [n, x, q]| {
        let one = s.is(s.cohort, 1);
        [n, x, q].map(|node| s.b.mask(one, node))
    };
    audit(&joint(Change::Person, 50, of_both));
    let cases: [(Change, u128, Spoil, &str); 9] = [
        (
            Change::Outcome,
            50,
            of_both,
            "R4 (known rows): m0 takes f0 as known to publisher, whose own columns do not decide it; write \
             `rows hidden`",
        ),
        (Change::Person, 51, fine, "R4 (cells): m0: f1 adds up to 50 for a row; the clamp is that, not 51"),
        (Change::Person, 49, fine, "R4 (cells): m0: f1 adds up to 50 for a row; the clamp is that, not 49"),
        (
            Change::Person,
            50,
            |s, [n, x, _]| [n, x, s.b.clamp(s.value, 2500)],
            "R4 (cells): m0: f2 does not sum the squares of what f1 sums",
        ),
        (
            Change::Person,
            50,
            |s, [n, _, q]| [n, s.b.clamp(s.value, 40), q],
            "R4 (cells): m0: f1 adds up to 40 for a row; the clamp is that, not 50",
        ),
        (
            Change::Person,
            50,
            |s, [_, x, q]| [s.is(s.arm, 3), x, q],
            "R4 (cells): m0: f1 sums rows that f0 does not provably count",
        ),
        (
            Change::Person,
            50,
            |s, [_, x, q]| [s.b.clamp(s.value, 2), x, q],
            "R4 (cells): m0: f0 is not a count of rows",
        ),
        (
            Change::Person,
            50,
            |s, [n, x, q]| {
                let one = s.is(s.cohort, 1);
                [s.b.and(n, one), x, q]
            },
            "R4 (cells): m0: f1 sums rows that f0 does not provably count",
        ),
        (
            Change::Outcome,
            50,
            |s, _| {
                let (n, c) = (s.is(s.arm, 2), s.b.clamp(s.value, 50));
                let q = s.b.mul(c, c);
                [n, s.b.mask(n, c), s.b.mask(n, q)]
            },
            "R4 (disjoint): m0: f0 and f0 are not provably disjoint; charge them apart",
        ),
    ];
    for (change, clamp, spoil, words) in cases {
        assert_eq!(refusal(&joint(change, clamp, spoil)), format!("refused by rule {words}"));
    }
    for wrong in [
        "joint publisher 1/10 rows hidden clamp 0 f0 f1 f2",
        "joint publisher 1/10 rows some clamp 5 f0 f1 f2",
        "joint publisher 1/10 rows hidden clamp 50 f0 f1",
        "joint publisher 1/10 f0 f1 f2",
    ] {
        let text = joint(Change::Person, 50, fine).to_text();
        let at = text.find("m0 = ").unwrap();
        let end = at + text[at..].find('\n').unwrap();
        let text = format!("{}m0 = {wrong}{}", &text[..at], &text[end..]);
        assert!(Program::parse(&text).is_err(), "{wrong}");
    }
}

#[test]
fn r4_a_difference_is_of_counted_disjoint_arms_and_their_squares() {
    let fine = audit(&difference(|_, parts| parts));
    assert!(fine.charges[0].changes.is_empty());
    let cases: [(Spoil, &str); 6] = [
        (|s, [n, x, _]| [n, x, s.b.clamp(s.value, 2500)], "f2 does not sum the squares of what f1 sums"),
        (|s, [n, _, q]| [n, s.b.clamp(s.value, 40), q], "f2 is not bounded by the square of what bounds f1"),
        (|s, [_, x, q]| [s.is(s.arm, 3), x, q], "f1 sums rows that f0 does not provably count"),
        (
            |s, [n, x, q]| {
                let one = s.is(s.cohort, 1);
                [s.b.and(n, one), x, q]
            },
            "f0 is not a count of one party's rows; under `rows any` a party counts its own",
        ),
        (|s, [_, x, q]| [s.b.lt(s.arm, s.arm), x, q], "f1 sums rows that f0 does not provably count"),
        (
            |s, [_, _, _]| {
                let (n, c) = (s.is(s.arm, 2), s.b.clamp(s.value, 50));
                let q = s.b.mul(c, c);
                [n, s.b.mask(n, c), s.b.mask(n, q)]
            },
            "the arms are not provably disjoint",
        ),
    ];
    for (spoil, words) in cases {
        assert_eq!(refusal(&difference(spoil)), format!("refused by rule R4 (arms): m0: {words}"));
    }
}

#[test]
fn labels_and_names_cannot_deceive() {
    let labelled = |label: &str| {
        let mut s = Study::new();
        let fold = s.b.sum(s.arm, ValueType::u(60));
        s.b.release();
        let total = s.b.total(fold);
        s.b.reveal("x", PUBLISHER, total);
        let mut program = s.b.finish();
        program.outputs[0].label = label.into();
        program
    };
    for label in ["a \"quoted\" back\\slash", "Zürich, e\u{301}té, 漢字", &"x".repeat(200)] {
        audit(&labelled(label));
        let program = labelled(label);
        assert_eq!(Program::parse(&program.to_text()).unwrap(), program, "{label}");
    }
    for (label, words) in [
        (
            "a\nreveal v0 publisher \"b\"",
            "the label of output 0 holds the control or invisible character U+000A",
        ),
        ("a\u{1b}[2J", "the label of output 0 holds the control or invisible character U+001B"),
        ("a\u{202e}b", "the label of output 0 holds the control or invisible character U+202E"),
        ("a\u{200b}", "the label of output 0 holds the control or invisible character U+200B"),
        ("", "the label of output 0 is empty: say in it what the viewer is shown"),
        (" \u{a0}", "the label of output 0 is empty: say in it what the viewer is shown"),
        (&"x".repeat(201), "the label of output 0 has 201 bytes; at most 200 are shown"),
    ] {
        assert_eq!(refusal(&labelled(label)), words);
    }
    let mut program = labelled("x");
    program.outputs.push(program.outputs[0].clone());
    assert_eq!(refusal(&program), "two outputs for one party are labelled \"x\"");
    let mut program = labelled("x");
    program.parties[1] = "publisher".into();
    assert!(refusal(&program).starts_with("the party \"publisher\""));
    let mut program = labelled("x");
    program.columns[0].name = "arm u2 public\n".into();
    assert!(refusal(&program).starts_with("the column \"arm u2 public\\n\""));
}

#[test]
fn a_study_cannot_exhaust_its_peer() {
    // Wide products without end.
    let mut b = ProgramBuilder::new("heavy", Class::Exact, ["a", "b"]);
    let mut x = b.column("x", ValueType::u(128), P);
    let y = b.column("y", ValueType::u(128), A);
    for _ in 0..600 {
        x = b.mul(x, y);
    }
    b.sum(x, ValueType::u(128));
    let error = std::panic::catch_unwind(move || b.finish()).expect_err("the builder refuses");
    let text = error.downcast_ref::<String>().unwrap();
    assert!(text.contains("AND gates of a section: 9830400 is over the limit of 8388608"), "{text}");
}

#[test]
fn best_rows_and_lists_are_exact_only() {
    for (class, allow) in [(Class::Dp, true), (Class::Exact, false), (Class::Exact, true)] {
        let mut s = Study::of(class);
        let wanted = s.is(s.arm, 1);
        let best = s.b.best(RowOrder::Greatest, s.value, wanted);
        let rows = s.b.collect(wanted);
        s.b.release();
        let found = s.b.found(best);
        s.b.reveal("found", PUBLISHER, found);
        s.b.reveal_rows("who", PUBLISHER, rows);
        let policy = VerifierPolicy { allow_exact: allow, ..VerifierPolicy::default() };
        let audit = verify(&s.b.finish(), &policy, ROWS);
        match (class, allow) {
            (Class::Dp, _) => assert!(audit.unwrap_err().to_string().contains("rule R8 (exact folds)")),
            (_, false) => assert!(audit.unwrap_err().to_string().contains("rule R6 (exact)")),
            // The consent screen names lists as well as values.
            _ => assert_eq!(
                audit.unwrap().exact.iter().map(|(_, l)| l.as_str()).collect::<Vec<_>>(),
                ["found", "who"]
            ),
        }
    }
}
