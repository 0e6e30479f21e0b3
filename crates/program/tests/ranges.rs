//! What may be noised, which cells are apart, and what one row changes: rules R3 and R4 of the policy.

mod trial;

use base::PartyId;
use program::{NodeId, Program, ValueType};
use release::SumChange;
use release::rational::ratio;
use trial::{ADVERTISER, Build, PUBLISHER, Study, audit, difference, refusal, rho};

#[test]
fn r3_what_is_noised_has_a_bound() {
    let words = "refused by rule R3 (clamp): m0 noises f0, whose rows have no bound of the program's own; \
     sum \
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
    // A comparison and what it is not; neighbouring ranges; one computed value; sums that are not 0 only
    // where what they are made of is not.
    type Cells = fn(&mut Study) -> [NodeId; 2];
    let apart: [(Cells, bool); 4] = [
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
