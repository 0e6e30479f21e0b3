//! Rows that a party does not have: what a program makes of them, and which programs are refused.

use base::{PartyId, limits};
use program::eval::NodeValues;
use program::{Op, Owners, Program, RowFold, VerifierPolicy, verify};
use release::SumChange;

/// The program of a user who counts three groups of the one party, and sums a column of the other over them.
const GROUPS: &str = "tacit-program/2\nname \"groups\"\nclass dp\nrows any\nparty alpha\nparty beta\n\
    column g u2 alpha\ncolumn y u8 beta\nrow\ng = column g\ny = column y\ntop = clamp y 100\nnone = const 0 \
    u8\n\
    red = const 1 u2\nisr = eq g red\nysr = select isr top none\ncombine\nn = sum isr u40\nsy = sum ysr u48\n\
    release\nm = gaussian beta 1/8 n\nc = noised m 0\nreveal c beta \"red\"\n";

fn policy() -> VerifierPolicy {
    VerifierPolicy { allow_exact: true, ..VerifierPolicy::default() }
}

fn parse(text: &str) -> Program {
    Program::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn refusal(text: &str) -> String {
    verify(&parse(text), &policy(), limits::ROWS).expect_err("it is refused").to_string()
}

fn with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(GROUPS.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

/// The totals of sums over rows: by column the value, nothing where its holder has no row.
fn totals(program: &Program, rows: &[[Option<u128>; 2]]) -> Vec<u128> {
    let mut values = NodeValues::default();
    let wanted = vec![true; program.row.nodes.len()];
    let mut leaf = |op: &Op, out: &mut [u128]| {
        let Op::Column(c) = op else { unreachable!("a row section has columns only") };
        let column = &program.columns[*c as usize];
        let holder = column.holder.only().expect("of one party");
        for (value, row) in out.iter_mut().zip(rows) {
            let cell = row[holder.index()].map(|cell| if column.is_built_in() { 1 } else { cell });
            *value = cell.or(column.without(holder)).expect("the holder says what an absent row holds");
        }
        Ok(())
    };
    values.evaluate(&program.row, &wanted, rows.len(), &mut leaf).unwrap();
    program.folds.iter().map(|fold| values.get(fold.value()).iter().sum()).collect()
}

/// Red and green people of both, of alpha alone, of beta alone, and two rows of nobody.
const ROWS: [[Option<u128>; 2]; 9] = [
    [Some(1), Some(10)],
    [Some(1), Some(200)],
    [Some(2), Some(30)],
    [Some(1), None],
    [Some(2), None],
    [None, Some(50)],
    [None, Some(60)],
    [None, None],
    [None, None],
];

#[test]
fn rows_are_those_that_all_parties_have_unless_the_program_says_otherwise() {
    let matched = parse(&with(&[("rows any\n", "")]));
    assert_eq!(matched, parse(&with(&[("rows any", "rows matched")])), "it is what is meant without a word");
    assert_eq!(totals(&matched, &ROWS), [2, 110]);
    let all = Owners::all(2);
    assert!(matched.fold_demands().iter().all(|demands| *demands == all));
    // The canonical text spells it out, so the hash and every engine have it.
    let text = matched.to_text();
    let folds = "v7 = present alpha\nv8 = present beta\nv9 = and v7 v8\nv10 = and v9 v5\nv11 = const 0 u8\n\
        v12 = select v9 v6 v11\ncombine\nf0 = sum v10 u40\nf1 = sum v12 u48\n";
    assert!(text.contains("class dp\nrows any\n") && text.contains(folds), "{text}");
    assert_eq!(parse(&text), matched);
    // What a count is of both parties' data is no count of one: it has noise for either.
    let raw = with(&[("rows any\n", ""), ("c = noised m 0", "c = total n")]);
    assert!(refusal(&raw).contains("R1 (reveal): \"red\" for beta depends on others' data"));
    let own = raw.replace("reveal c beta", "reveal c alpha");
    assert!(refusal(&own).contains("R1 (reveal): \"red\" for alpha depends on others' data"));
}

/// The newcomer's program: labels that count from 0, so that rows of the other party and dummies are red.
#[test]
fn r9_a_fold_that_an_absent_row_reaches_is_refused_with_the_line_to_add() {
    let zero = with(&[("red = const 1 u2", "red = const 0 u2")]);
    assert_eq!(
        refusal(&zero),
        "refused by rule R9 (absent rows): n (line 18, column 1): `isr` need not be 0 in a row that alpha \
         does not have, so that rows of others and made-up rows count; remove `rows any` from the head (then \
         the rows are those that all parties have), or add to the row section `alpha-here = present alpha`, \
         `isr-here = and alpha-here isr`, and fold `isr-here`"
    );
    // The verifier is what keeps it from a wrong count: four rows that alpha does not have are red.
    let wrong = totals(&parse(&zero), &ROWS)[0];
    assert_eq!(wrong, 4, "and none of the three that it has");
    // With the line added, and with labels from 1, it counts what alpha has.
    let line = "ysr = select isr top none\n";
    let added = format!("{line}alpha-here = present alpha\nisr-here = and alpha-here isr\n");
    let guarded = zero.replace(line, &added).replace("n = sum isr", "n = sum isr-here");
    let refused = refusal(&guarded);
    assert!(refused.contains("sy (line 21, column 1): `ysr` need not be 0 in a row that alpha"), "{refused}");
    assert!(refused.contains("`none = const 0 u8`, `ysr-here = select alpha-here ysr none`"), "{refused}");
    let sum = "alpha-here = present alpha\nysr-here = select alpha-here ysr none\n";
    let guarded = guarded.replace("alpha-here = present alpha\n", sum).replace("sum ysr ", "sum ysr-here ");
    verify(&parse(&guarded), &policy(), limits::ROWS).unwrap();
    assert_eq!(totals(&parse(&guarded), &ROWS), [0, 0], "no label is 0");
    verify(&parse(GROUPS), &policy(), limits::ROWS).unwrap();
    assert_eq!(totals(&parse(GROUPS), &ROWS), [3, 110], "those of alpha alone are red, too, and have no y");
    // Nobody's file is without a row of an aligned list.
    verify(&parse(&zero.replace("rows any", "rows aligned")), &policy(), limits::ROWS).unwrap();
}

/// Each pair is a row section with a fold, and the party that has to be asked for.
#[test]
fn r9_is_decided_for_all_values_that_other_columns_may_have() {
    let head = "tacit-program/2\nname \"x\"\nclass exact\nrows any\nparty a\nparty b\ncolumn p u8 a\ncolumn \
                q u8 b absent 9\n\
        column s i8 a\nrow\np = column p\nq = column q\ns = column s\nzero = const 0 u8\none = const 1 \
        u8\nnine = const 9 u8\n";
    let cases: [(&str, &str, Option<&str>); 21] = [
        ("v = column p", "sum v u40", None),
        ("v = column q", "sum v u40", Some("b")),
        ("v = sub nine q", "sum v u40", None),
        ("v = add p q", "sum v u40", Some("a")),
        ("v = mul p q", "sum v u40", Some("b")),
        ("v = div p q", "sum v u40", Some("a")),
        ("w = max q one\nv = div p w", "sum v u40", Some("b")),
        ("v = eq q nine", "collect v", Some("b")),
        ("v = lt q nine", "collect v", None),
        ("w = lt nine q\nv = and w w", "collect v", None),
        ("v = not p", "sum v u40", Some("a")),
        ("v = not s", "sum v i60", Some("a")),
        ("v = shr s 3", "sum v i60", None),
        ("c = eq p nine\nv = select c q zero", "sum v u40", Some("b")),
        ("c = lt q nine\nv = select c p zero", "sum v u40", None),
        ("c = lt q nine\nv = select c zero p", "sum v u40", Some("b")),
        ("v = lookup after q keys p values p", "sum v u40", Some("b")),
        ("v = lookup after q until nine keys p values q", "sum v u40", Some("b")),
        ("v = eq p nine", "least q where v", Some("b")),
        ("w = eq p nine\nu = lt q nine\nv = and w u", "least q where v", None),
        ("c = present b\nv = not c", "collect v", None),
    ];
    for (row, fold, asked) in cases {
        let text = format!("{head}{row}\ncombine\nf = {fold}\nrelease\n");
        let met = verify(&parse(&text), &policy(), limits::ROWS).map_err(|e| e.to_string());
        match asked {
            None => assert!(met.is_ok(), "{row}; {fold}: {met:?}"),
            Some(party) => {
                let words = format!("need not be 0 in a row that {party} does not have");
                assert!(
                    met.as_ref().is_err_and(|e| e.contains("R9") && e.contains(&words)),
                    "{row}: {met:?}"
                );
                // The same over the rows that all have needs no word; and neither does what asks for the
                // party.
                for guarded in [text.replace("rows any\n", ""), asking(&text, party)] {
                    verify(&parse(&guarded), &policy(), limits::ROWS)
                        .unwrap_or_else(|e| panic!("{row}: {e}"));
                }
            }
        }
    }
}

/// The program with the bits of the party, and of the other where that is wanting then, asked for in the
/// fold.
fn asking(text: &str, party: &str) -> String {
    let program = parse(text);
    let RowFold::Sum { .. } = program.folds[0] else {
        return text
            .replace("\ncombine", &format!("\nhere = present {party}\nok = and here v\ncombine"))
            .replace("where v", "where ok")
            .replace("collect v", "collect ok");
    };
    let ty = program.row.ty(program.folds[0].value());
    let rows = format!("\nhere = matched\nno = const 0 {ty}\nok = select here v no\ncombine");
    text.replace("\ncombine", &rows).replace("sum v ", "sum ok ")
}

/// The bit that a cell is not missing is 0 in a row that its holder does not have; what stands for a missing
/// cell is not.
#[test]
fn r9_a_value_that_may_be_missing_asks_for_its_row() {
    let cheap = &[("isr = eq g red", "isr = eq y none")][..];
    assert!(refusal(&with(cheap)).contains("R9"), "a row that beta does not have holds 0");
    let missing = [cheap, &[("column y u8 beta", "column y u8 beta missing")]].concat();
    let program = parse(&with(&missing));
    verify(&program, &policy(), limits::ROWS).unwrap();
    assert!(program.fold_demands().iter().all(|demands| demands.has(PartyId(1))));
    let filled = [&missing[..], &[("isr = eq y none", "d = default y none\nisr = eq d none")]].concat();
    assert!(refusal(&with(&filled)).contains("R9"), "what stands for it is 0 in such a row, too");
}

#[test]
fn a_constant_counts_the_rows_of_the_program() {
    let count = |rows: &str| {
        let text = format!(
            "tacit-program/2\nname \"c\"\nclass dp\n{rows}party alpha\nparty beta\nrow\none = const 1 bit\n\
             combine\nn = sum one u40\nrelease\n"
        );
        let program = parse(&text);
        verify(&program, &policy(), limits::ROWS).unwrap();
        totals(&program, &ROWS)[0]
    };
    assert_eq!(count("rows any\n"), 9, "of the union, rows of nobody among them");
    assert_eq!(count(""), 3, "of the match");
}

#[test]
fn what_a_fold_demands_is_said_by_party() {
    let demands = |text: &str| -> Vec<[bool; 2]> {
        let program = parse(text);
        program.fold_demands().iter().map(|d| [d.has(PartyId(0)), d.has(PartyId(1))]).collect()
    };
    assert_eq!(demands(GROUPS), [[true, false], [true, true]]);
    assert_eq!(demands(&with(&[("rows any\n", "")])), [[true, true]; 2]);
    assert_eq!(demands(&with(&[("rows any", "rows aligned")])), [[true, true]; 2]);
    assert_eq!(
        demands(&with(&[("n = sum isr", "n = sum red"), ("u40", "u60")])),
        [[false, false], [true, true]]
    );
}

#[test]
fn folds_that_made_up_rows_reach_are_known() {
    let reached = |text: &str| parse(text).folds_over_made_up();
    assert_eq!(reached(GROUPS), [false; 2]);
    let nobody = [
        ("isr = eq g red", "a = present alpha\nnone-a = not a\nisr = eq g red"),
        ("n = sum isr", "n = sum none-a"),
    ];
    assert_eq!(reached(&with(&nobody)), [true, false]);
}

/// Folds over the rows that all have cost no more privacy than the same folds over any rows.
#[test]
fn the_mask_raises_no_charge() {
    let cells = with(&[
        ("isr = eq g red", "two = const 2 u2\nisg = eq g two\nisr = eq g red"),
        ("ysr = select isr top none", "ysr = select isr top none\nysg = select isg top none"),
        ("sy = sum ysr u48", "sy = sum ysr u48\nsg = sum ysg u48"),
        ("gaussian beta 1/8 n", "gaussian beta 1/8 sy sg"),
    ]);
    for viewer in ["alpha", "beta"] {
        let any =
            cells.replace("beta 1/8", &format!("{viewer} 1/8")).replace("c beta", &format!("c {viewer}"));
        let charge = |text: &str| verify(&parse(text), &policy(), limits::ROWS).unwrap().charges.remove(0);
        let (any, matched) = (charge(&any), charge(&any.replace("rows any\n", "")));
        assert_eq!(matched, any);
        let moves = if viewer == "beta" { 100 } else { 0 };
        assert_eq!(matched.changes, [SumChange { stays: 100, moves }; 2]);
    }
}

/// A sum of one party's rows has no degree if rows that it does not have add nothing: `present` says that as
/// well.
#[test]
fn r4_a_count_of_present_rows_has_no_degree() {
    let text = with(&[
        ("column g", "degree alpha 4\ndegree beta 4\ncolumn g"),
        ("ysr = ", "here = present alpha\nno = const 0 u2\nlow = eq g no\nmine = and here low\nysr = "),
        ("sum isr", "sum mine"),
    ]);
    let sensitivity = |text: &str| {
        let audit = verify(&parse(text), &policy(), limits::ROWS).unwrap();
        [audit.charges[0].sensitivity(0).unwrap()]
    };
    assert_eq!(sensitivity(&text), [1]);
    assert_eq!(sensitivity(&text.replace("sum mine", "sum isr")), [1]);
    // Over the rows that all have, the others' rows decide, too; and a guard that absent rows meet says
    // nothing.
    assert_eq!(sensitivity(&text.replace("rows any\n", "")), [4]);
    let aligned = text.replace("rows any", "rows aligned").replace("sum mine", "sum isr");
    assert_eq!(sensitivity(&aligned), [1]);
    assert_eq!(sensitivity(&aligned.replace("g u2 alpha", "g u2 alpha absent 1")), [4]);
}

#[test]
fn a_text_of_the_form_before_is_refused_with_what_has_changed() {
    let old = GROUPS.replacen("tacit-program/2", "tacit-program/1", 1);
    let text = Program::parse(&old).unwrap_err().to_string();
    assert_eq!(
        text,
        "line 1, column 1: this text is of the form tacit-program/1, in which a row that a party does not \
         have counted with zeros, as the first label; write \"tacit-program/2\" and mind two changes: rows \
         are those that all parties have, unless the head says `rows any` (of any party; `present PARTY` \
         tells) or `rows aligned`; and labels count from 1, so every constant that a label is compared with \
         is one more, and the column's type must hold the number of labels"
    );
}
