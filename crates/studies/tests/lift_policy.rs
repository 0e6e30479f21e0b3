//! What a lift program reveals, what it costs in privacy and in gates.

mod common;

use base::PartyId;
use common::full;
use program::lower::{FoldPlan, MaskSource, RowStep, lower_row};
use program::{MechanismKind, Owners, Program, VerifierPolicy, Viewer, verify};
use release::SumChange;
use release::rational::ratio;
use studies::lift::*;

const MODES: [ReleaseMode; 4] =
    [ReleaseMode::Sums, ReleaseMode::Variance, ReleaseMode::Algorithm1, ReleaseMode::Algorithm1AsPublished];

/// All combinations of what a study may switch on.
fn studies() -> impl Iterator<Item = LiftParameters> {
    (0..MODES.len() << 6).map(|i| {
        let bit = |b: usize| i >> b & 1 == 1;
        let mut lift = full(MODES[i >> 6]);
        if bit(0) {
            lift.breakdown.clear();
        }
        if bit(1) {
            lift.cohorts.clear();
        }
        lift.within = lift.within.filter(|_| bit(2));
        lift.impressions = bit(3);
        let reached = |a: &Also| matches!(a, Also::ReachedConversions | Also::ReachedValue);
        lift.also.retain(|a| bit(3) || !reached(a));
        if bit(4) {
            lift.also.clear();
        }
        if bit(5) {
            lift.also.truncate(1);
            lift.max_events = 1;
            lift.clamp = 1;
        }
        lift
    })
}

fn policy() -> VerifierPolicy {
    VerifierPolicy { max_outputs: 4096, ..VerifierPolicy::default() }
}

#[test]
fn every_study_passes_the_policy_at_exactly_its_rho() {
    for lift in studies() {
        let (program, layout) = build(&lift).unwrap();
        let audit =
            verify(&program, &policy(), base::limits::ROWS).unwrap_or_else(|e| panic!("{e}: {lift:?}"));
        assert_eq!(audit.rho, lift.rho, "{lift:?}");
        assert!(audit.exact.is_empty());
        assert_eq!(program.outputs.len(), layout.outputs.len());
        let text = program.to_text();
        assert_eq!(Program::parse(&text).unwrap(), program, "the text form round-trips");
    }
}

/// People without an outcome count, so a study's rows are those of either party; what columns hold where
/// there is no row keeps them out of everything else. With a code that is a cohort's, or one that is an
/// arm's, they would be in.
#[test]
fn absent_rows_are_in_no_cohort_and_no_arm() {
    let lift =
        LiftParameters { cohorts: vec!["x".into(), "y".into()], clamp: 100, ..LiftParameters::bench(2) };
    let (program, layout) = build(&lift).unwrap();
    verify(&program, &policy(), base::limits::ROWS).unwrap();
    for (content, party) in [(Content::Cohort, "advertiser"), (Content::Arm, "publisher")] {
        let mut program = program.clone();
        let column = &mut program.columns[layout.column(content).unwrap() as usize];
        column.source = program::ColumnSource::Data { absent: 1 };
        let error = verify(&program, &policy(), base::limits::ROWS).unwrap_err().to_string();
        assert!(error.starts_with("refused by rule R9 (absent rows): f"), "{error}");
        assert!(error.contains(&format!("need not be 0 in a row that {party} does not have")), "{error}");
    }
}

/// The widths of the totals are derived: they hold the most rows at the largest clamp, and no byte more.
#[test]
fn totals_hold_the_largest_study() {
    let widths = |clamp: u128| {
        let lift = LiftParameters { clamp, ..LiftParameters::bench(4) };
        let (program, layout) = build(&lift).unwrap();
        verify(&program, &policy(), base::limits::ROWS).unwrap();
        Quantity::CORE.map(|q| {
            let fold = layout.fold(LiftCell::Overall, TrialArm::Test, q).unwrap();
            program.folds[fold as usize].ty().width
        })
    };
    assert_eq!(widths(1), [40, 40, 40]);
    assert_eq!(widths((1 << 20) - 1), [40, 56, 72]);
    assert_eq!(widths(1 << 20), [40, 56, 80], "2^32 squares of 2^20 are 2^72, which 72 bits do not hold");
    assert_eq!(widths(u32::MAX.into()), [40, 64, 96]);
}

#[test]
fn exact_outputs_are_the_publishers_own_counts() {
    for lift in studies() {
        let (program, layout) = build(&lift).unwrap();
        let owners = program.fold_owners();
        for (output, meaning) in program.outputs.iter().zip(&layout.outputs) {
            assert_eq!(output.to, meaning.viewer);
            match (&program.release.node(output.value).op, meaning.noised) {
                (program::Op::Total(fold), None) => {
                    assert_eq!((meaning.viewer, meaning.quantity), (PUBLISHER.into(), Quantity::Rows));
                    assert_eq!(owners[*fold as usize], Owners::one(PUBLISHER));
                    assert_ne!(meaning.cell.family(), CellFamily::Cohort);
                }
                (program::Op::Noised(m, o), Some(noised)) => {
                    assert_eq!((*m, *o), noised);
                    assert_eq!(program.mechanisms[*m as usize].to, meaning.viewer);
                    let fold = |q| layout.fold(meaning.cell, meaning.arm.unwrap(), q).unwrap();
                    match &program.mechanisms[*m as usize].kind {
                        MechanismKind::Gaussian(folds) => {
                            assert_eq!(folds[*o as usize], fold(meaning.quantity));
                        }
                        kind @ MechanismKind::Joint { .. } => {
                            let (combination, cell) = kind.combination(*o).unwrap();
                            assert_eq!(meaning.quantity, combination.into());
                            assert_eq!(cell, Quantity::CORE.map(fold));
                        }
                        MechanismKind::Difference { .. } => {}
                    }
                }
                other => panic!("{}: {other:?}", output.label),
            }
        }
    }
}

/// The core is one mechanism, whose rows are known where the viewer's own columns decide them; counts have
/// noise of D / sqrt(2 rho) where the viewer fixes the cell, D / sqrt(rho) where a row can change cells.
#[test]
fn sensitivities_are_those_of_the_table() {
    for lift in studies().filter(|l| l.mode == ReleaseMode::Sums) {
        let (program, layout) = build(&lift).unwrap();
        let audit = verify(&program, &policy(), base::limits::ROWS).unwrap();
        for output in &layout.outputs {
            let Some((m, o)) = output.noised else { continue };
            let charge = &audit.charges[m as usize];
            let moves = output.viewer != PUBLISHER.into() || output.cell.family() == CellFamily::Cohort;
            if let MechanismKind::Joint { change, clamp, .. } = program.mechanisms[m as usize].kind {
                assert_eq!(change.knows_rows(), !moves, "{output:?}");
                assert_eq!((clamp, &charge.joint), (lift.bound(), &Some(charge.rho.clone())), "{output:?}");
                continue;
            }
            let d = match output.quantity {
                Quantity::ReachedValue => lift.bound(),
                Quantity::Conversions | Quantity::ReachedConversions => lift.max_events.into(),
                _ => 1,
            };
            let change = SumChange { stays: d, moves: if moves { d } else { 0 } };
            assert_eq!(charge.changes[o as usize], change, "{output:?}");
        }
    }
}

#[test]
fn rho_is_split_as_documented() {
    let lift = LiftParameters {
        also: vec![Also::Matches, Also::Converters],
        rho: vec![ratio(3, 10); 2],
        ..full(ReleaseMode::Sums)
    };
    let (program, layout) = build(&lift).unwrap();
    let rho = |viewer: PartyId, family: CellFamily, quantity: Quantity| {
        let of = |o: &&OutputMeaning| {
            (o.viewer, o.cell.family(), o.quantity) == (Viewer::from(viewer), family, quantity)
        };
        let output = layout.outputs.iter().find(of).unwrap();
        output.noised.map(|(m, _)| program.mechanisms[m as usize].rho.clone())
    };
    // Three families of 1/10 each: 8/100 for the core, 1/100 for each of two counts.
    for family in lift.families() {
        assert_eq!(rho(ADVERTISER, family, Quantity::Rows), Some(ratio(8, 100)));
        assert_eq!(rho(ADVERTISER, family, Quantity::Centred), Some(ratio(8, 100)));
        assert_eq!(rho(ADVERTISER, family, Quantity::Matches), Some(ratio(1, 100)));
    }
    assert_eq!(rho(PUBLISHER, CellFamily::Overall, Quantity::Rows), None);
    assert_eq!(rho(PUBLISHER, CellFamily::Breakdown, Quantity::Value), Some(ratio(8, 100)));
    assert_eq!(rho(PUBLISHER, CellFamily::Breakdown, Quantity::Tail), Some(ratio(8, 100)));
    assert_eq!(rho(PUBLISHER, CellFamily::Cohort, Quantity::Rows), Some(ratio(8, 100)));
    assert_eq!(rho(PUBLISHER, CellFamily::Cohort, Quantity::Converters), Some(ratio(1, 100)));
}

#[test]
fn labels_name_quantity_cell_and_arm() {
    let (program, _) = build(&full(ReleaseMode::Sums)).unwrap();
    let labels: Vec<&str> =
        program.outputs_to(PUBLISHER.into()).map(|i| program.outputs[i].label.as_str()).collect();
    for label in ["value, vaccine", "rows, breakdown é, vaccine", "matches, cohort 6, placebo \"B\""] {
        assert!(labels.contains(&label), "{label} is not among {labels:?}");
    }
    let mut once = labels.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), labels.len(), "a label means one number");
    let renamed = LiftParameters { arms: ["x".into(), "y".into()], ..full(ReleaseMode::Sums) };
    assert_ne!(build(&renamed).unwrap().0.hash(), program.hash(), "labels are part of the consent");
}

/// Bytes of masked values per row: what crosses in mask messages, one field at a time.
fn mask_bytes(plan: &program::lower::RowPlan) -> usize {
    let masks = plan.steps.iter().filter_map(|s| if let RowStep::Mask(m) = s { Some(m) } else { None });
    masks.flat_map(|m| &m.fields).map(|f| usize::from(plan.temps[f.temp as usize])).sum()
}

#[test]
fn the_row_needs_comparisons_only() {
    for k in [1u8, 4, 16] {
        let (program, _) = build(&LiftParameters::bench(k)).unwrap();
        let plan = lower_row(&program, ADVERTISER);
        assert_eq!(plan.circuit.and_gates(), usize::from(k) * 32);
        // Value (8 bytes) and square (12 bytes): one per event, then one per arm.
        assert_eq!(mask_bytes(&plan), (usize::from(k) + 2) * 20);
        let owners = program.fold_owners();
        for (fold, owners) in plan.folds.iter().zip(owners) {
            match fold {
                FoldPlan::Alone(party) => assert_eq!(*party, owners.only()),
                FoldPlan::Shared(_) => assert_eq!(owners.only(), None),
            }
        }
    }
}

/// Cells, cohorts and counts are masks too: the circuit stays the comparison.
#[test]
fn everything_else_is_masks() {
    for lift in studies() {
        let (program, _) = build(&lift).unwrap();
        let plan = lower_row(&program, ADVERTISER);
        let (k, width) = (usize::from(lift.max_events), usize::from(lift.time_bits));
        let gates = if lift.within.is_some() { 2 * k * width + k * (k + 1) / 2 } else { k * width };
        assert!(plan.circuit.and_gates() <= gates, "{} > {gates}: {lift:?}", plan.circuit.and_gates());
        if lift.within.is_none() {
            assert_eq!(plan.circuit.and_gates(), gates);
        }
        for step in &plan.steps {
            let RowStep::Mask(mask) = step else { continue };
            let from_bits =
                |s: &MaskSource| matches!(s, MaskSource::Constant(c) if *c > u128::from(lift.max_events));
            assert!(!mask.fields.iter().any(|f| from_bits(&f.source)), "no value is converted bit by bit");
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let good = full(ReleaseMode::Sums);
    let broken: [(&str, LiftParameters); 17] = [
        ("the width of times is 0", LiftParameters { time_bits: 0, ..good.clone() }),
        ("the width of times is 33", LiftParameters { time_bits: 33, ..good.clone() }),
        ("the width of values is 33", LiftParameters { value_bits: 33, ..good.clone() }),
        ("max_events is 0", LiftParameters { max_events: 0, ..good.clone() }),
        ("max_events is 17", LiftParameters { max_events: 17, ..good.clone() }),
        ("clamp is 0", LiftParameters { clamp: 0, ..good.clone() }),
        ("clamp is 4294967296", LiftParameters { clamp: 1 << 32, ..good.clone() }),
        ("clamp is 1048577", LiftParameters { clamp: (1 << 20) + 1, ..full(ReleaseMode::Variance) }),
        ("overall difference only", LiftParameters { mode: ReleaseMode::Algorithm1, ..good.clone() }),
        ("listed twice", LiftParameters { also: vec![Also::Matches; 2], ..good.clone() }),
        ("needs the publisher's impressions", LiftParameters { impressions: false, ..good.clone() }),
        ("every rho is 0", LiftParameters { rho: vec![ratio(0, 1); 2], ..good.clone() }),
        ("cannot be a party's name", LiftParameters { publisher: "two words".into(), ..good.clone() }),
        ("invisible character", LiftParameters { arms: ["a\u{202e}".into(), "b".into()], ..good.clone() }),
        ("write shorter ones", LiftParameters { arms: ["a".repeat(71), "b".into()], ..good.clone() }),
        ("arms names \"a\" twice", LiftParameters { arms: ["a".into(), "a".into()], ..good.clone() }),
        ("65 values", LiftParameters { cohorts: (0..65).map(|i| i.to_string()).collect(), ..good.clone() }),
    ];
    for (text, lift) in broken {
        let error = build(&lift).unwrap_err().to_string();
        assert!(error.contains(text), "{error} does not say {text}");
    }
    assert!(build(&good).is_ok());
}

/// The table of costs in the documentation is what the program needs.
#[test]
fn the_documented_cost_is_the_cost() {
    let page = include_str!("../../../docs/studies/lift.md");
    let windowed = LiftParameters { within: Some(30), ..LiftParameters::bench(4) };
    let two = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
    let table = [
        ("K = 1", LiftParameters::bench(1)),
        ("K = 4 (bench)", LiftParameters::bench(4)),
        ("K = 16", LiftParameters::bench(16)),
        ("K = 4, window", windowed),
        ("K = 4, breakdown of 4", LiftParameters { breakdown: two(4), ..LiftParameters::bench(4) }),
        ("K = 4, cohort of 4", LiftParameters { cohorts: two(4), ..LiftParameters::bench(4) }),
        (
            "K = 4, all counts",
            LiftParameters { also: Also::ALL.to_vec(), impressions: true, ..LiftParameters::bench(4) },
        ),
    ];
    for (name, lift) in table {
        let (program, _) = build(&lift).unwrap();
        let plan = lower_row(&program, ADVERTISER);
        let inputs = |p: PartyId| {
            let of =
                |w: &&circuits::WireDriver| matches!(w, circuits::WireDriver::Input(i) if i.owner == Some(p));
            plan.circuit.wires.iter().filter(of).count()
        };
        let masks: Vec<_> = plan.steps.iter().filter(|s| matches!(s, RowStep::Mask(_))).collect();
        let line = format!(
            "| {name} | {} | {} | {} | {} | {} |",
            plan.circuit.and_gates(),
            inputs(PUBLISHER),
            inputs(ADVERTISER),
            masks.len(),
            mask_bytes(&plan)
        );
        assert!(page.contains(&line), "docs/studies/lift.md should say: {line}");
    }
}

/// Joined studies pass the policy; a row of the advertiser counts as often as it can be joined, and no total
/// of the publisher's own is masked.
#[test]
fn joined_studies_charge_their_degrees() {
    for (slots, degree) in [(1, [1, 1]), (1, [1, 3]), (3, [2, 4])] {
        let mut lift = LiftParameters {
            matching: JoinShape { masked: true, slots, degree, ..JoinShape::default() },
            ..full(ReleaseMode::Sums)
        };
        if slots > 1 {
            lift.cohorts.clear();
        }
        let (program, layout) = build(&lift).unwrap();
        let audit = verify(&program, &policy(), base::limits::ROWS).unwrap();
        assert_eq!(audit.rho, lift.rho);
        assert_eq!(Program::parse(&program.to_text()).unwrap(), program);
        let owners = program.fold_owners();
        for total in &layout.totals {
            let alone = total.quantity == Quantity::Rows && total.cell.family() != CellFamily::Cohort;
            assert_eq!(owners[total.fold as usize].only(), alone.then_some(PUBLISHER), "{total:?}");
        }
        for charge in &audit.charges {
            let times = u128::from(degree[charge.to.only().unwrap().other().index()]);
            let MechanismKind::Gaussian(folds) = &program.mechanisms[charge.mechanism as usize].kind else {
                let less = Some(&charge.rho * ratio(1, times * times));
                assert_eq!(charge.joint, less, "the changes of several joined rows add up");
                continue;
            };
            for (output, fold) in folds.iter().enumerate() {
                let total = layout.totals.iter().find(|t| t.fold == *fold).unwrap();
                let bound = match total.quantity {
                    Quantity::ReachedValue => 100,
                    Quantity::Conversions | Quantity::ReachedConversions => 4 * u128::from(slots),
                    _ => 1,
                };
                assert_eq!(charge.sensitivity(output), Some(times * bound), "{total:?}");
            }
        }
    }
}

#[test]
fn matchings_that_a_study_cannot_have_are_refused() {
    let error = |lift: LiftParameters| build(&lift).unwrap_err().to_string();
    let of = |masked, slots, degree| JoinShape { masked, slots, degree, ..JoinShape::default() };
    let sums = full(ReleaseMode::Sums);
    let refused = [
        (LiftParameters { matching: of(false, 2, [1; 2]), ..sums.clone() }, "some slots hold no match"),
        (LiftParameters { matching: of(true, 2, [1; 2]), ..sums.clone() }, "may be in several cohorts"),
        (LiftParameters { matching: of(true, 17, [1; 2]), ..sums.clone() }, "write 1 to 16 slots"),
        (LiftParameters { matching: of(true, 0, [1; 2]), ..sums.clone() }, "write 1 to 16 slots"),
        (LiftParameters { matching: of(true, 1, [1, 0]), ..sums.clone() }, "degrees of 1 to 65536"),
        (
            LiftParameters { matching: of(true, 1, [1, 2]), ..full(ReleaseMode::Variance) },
            "use mode \"sums\"",
        ),
    ];
    for (lift, words) in refused {
        let text = error(lift);
        assert!(text.contains(words), "{text}");
    }
}
