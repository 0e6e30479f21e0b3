//! The policy: one malicious study per rule, with the words of its refusal; and what honest studies are
//! charged.

mod trial;

use program::{
    Class, MechanismKind, NodeId, Program, ProgramBuilder, RowOrder, ValueType, VerifierPolicy, verify,
};
use release::joint::Change;
use release::rational::ratio;
use trial::{A, ADVERTISER, P, PUBLISHER, ROWS, Spoil, Study, audit, difference, refusal, rho};

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

/// Q is the square of S only where no cast cuts and no product wraps: what is left of a number that was cut
/// is of another size than its square.
#[test]
fn r4_squares_of_numbers_that_were_cut_are_none() {
    let bit = ValueType::BIT;
    let wide = ValueType::u(16);
    type Cut = fn(&mut Study, [NodeId; 2]) -> [NodeId; 2];
    let cut: [Cut; 3] = [
        // Q cut, S cut, and both whole.
        |s, [z, zz]| {
            let cut = s.b.cast(zz, ValueType::BIT);
            [z, s.b.cast(cut, ValueType::u(16))]
        },
        |s, [z, zz]| {
            let cut = s.b.cast(z, ValueType::BIT);
            [s.b.cast(cut, ValueType::u(16)), zz]
        },
        |_, whole| whole,
    ];
    for (number, part) in cut.into_iter().enumerate() {
        let mut s = Study::new();
        let inside = s.is(s.arm, 1);
        let which = s.b.cast(s.cohort, bit);
        let small = s.b.clamp(s.cohort, 9);
        let (x, y) = (s.b.clamp(s.value, 100), s.b.cast(small, wide));
        let (xx, yy) = (s.b.mul(x, x), s.b.mul(y, y));
        let [z, zz] = part(&mut s, [y, yy]);
        let (of_s, of_q) = (s.b.select(which, x, z), s.b.select(which, xx, zz));
        let rows = [inside, s.b.mask(inside, of_s), s.b.mask(inside, of_q)];
        let folds = rows.map(|node| s.b.sum(node, ValueType::u(60)));
        let kind = MechanismKind::Joint { change: Change::Person, clamp: 100, cells: vec![folds] };
        let m = s.b.mechanism(PUBLISHER, &rho(1, 10), kind);
        let program = s.show(m, PUBLISHER);
        match number {
            2 => assert!(audit(&program).charges[0].joint.is_some()),
            _ => {
                let text = refusal(&program);
                assert!(text.contains("does not sum the squares"), "{number}: {text}");
            }
        }
    }
}
