//! The text form: every mistake with its place, and no panic on any bytes.

use program::eval::NodeValues;
use program::{
    Class, Holder, Op, Program, ProgramBuilder, RowOrder, RowSet, TextDraft, ValueType, VerifierPolicy,
    verify,
};
use proptest::prelude::*;

const HEAD: &str = "tacit-program/2\nname \"x\"\nclass dp\nparty a\nparty b\ncolumn c u8 a\n";

fn error(text: &str) -> String {
    Program::parse(text).expect_err("a mistake is reported").to_string()
}

#[test]
fn mistakes_in_the_head_have_a_place() {
    for (text, words) in [
        ("", "the program ends before its release section"),
        ("hello", "line 1, column 1: the first line must be \"tacit-program/2\", found \"hello\""),
        ("\"tacit-program/2\"", "line 1, column 1: expected a definition, found a string"),
        ("tacit-program/2 x", "line 1, column 17: unexpected \"x\" after the end of the line"),
        ("tacit-program/2\ntacit-program/2", "line 2, column 1: \"tacit-program/2\" is out of order"),
        (
            "tacit-program/2\n  colour",
            "line 2, column 3: expected name, class, rows, party, degree, alone, column, row or ask, found \"colour\"",
        ),
        ("tacit-program/2\nname x", "line 2, column 6: expected the program's name in double quotes"),
        ("tacit-program/2\nname", "line 2, column 5: expected the program's name in double quotes"),
        ("tacit-program/2\nname \"x", "line 2, column 6: the string is not closed"),
        ("tacit-program/2\nname \"ü\\n\"", "line 2, column 8: only \\\" and \\\\ are escapes"),
        (
            "tacit-program/2\nname \"\u{7}\"",
            "line 2, column 7: a label has no control or invisible characters",
        ),
        ("tacit-program/2\nname \"é\" é", "line 2, column 10: unexpected \"é\" after the end of the line"),
        ("tacit-program/2\nname \"x\"\nname \"y\"", "line 3, column 1: the name is given twice"),
        ("tacit-program/2\nclass dp\nclass dp", "line 3, column 1: the class is given twice"),
        ("tacit-program/2\nclass DP", "line 2, column 7: expected dp or exact, found \"DP\""),
        ("tacit-program/2\nclass dp\nrow", "line 3, column 1: the name comes before the row section"),
        (
            "tacit-program/2\nname \"x\"\nrow\ncombine",
            "line 4, column 1: this program has no class: write `class dp` or `class exact` above its row section",
        ),
        ("tacit-program/2\nparty 1", "line 2, column 7: expected a party's name, found \"1\""),
        (
            "tacit-program/2\nparty public",
            "line 2, column 1: the party \"public\" is named twice or reserved",
        ),
        ("tacit-program/2\nparty a\nparty a", "line 3, column 1: the party \"a\" is named twice or reserved"),
        (
            "tacit-program/2\nparty a\ncolumn c u129 a",
            "line 3, column 10: expected a type such as bit, u32 or i64, found \"u129\"",
        ),
        (
            "tacit-program/2\nparty a\ncolumn c u12 b",
            "line 3, column 14: expected a party's name, found \"b\"",
        ),
        (
            "tacit-program/2\nparty a\ncolumn c bit a\ncolumn c bit a",
            "line 4, column 1: the column \"c\" is named twice",
        ),
        ("tacit-program/2\nrows all", "line 2, column 6: expected matched, any or aligned, found \"all\""),
        ("tacit-program/2\nrows any\nrows any", "line 3, column 1: the rows are given twice"),
        (
            "tacit-program/2\nparty a\ncolumn c u4 a absent 16",
            "line 3, column 22: expected a number that fits u4, found \"16\"",
        ),
        (
            "tacit-program/2\nparty a\ncolumn c u4 public absent 1",
            "line 3, column 20: \"absent\" is said of one party's column",
        ),
        (
            "tacit-program/2\nparty a\ncolumn c bit a present",
            "line 3, column 16: expected absent N, scale N, unit \"..\", labels \"..\" .., date, missing \
             or, of a \
             shared bit, present; found \"present\"",
        ),
        (
            "tacit-program/2\nparty a\ndegree a 1",
            "line 3, column 10: expected a number of rows, 2 to 65536, found \"1\"",
        ),
        (
            "tacit-program/2\nparty a\ndegree a 2\ndegree a 3",
            "line 4, column 1: this party's degree is given twice",
        ),
        ("tacit-program/2\nrelease", "line 2, column 1: \"release\" is out of order"),
    ] {
        assert_eq!(error(text), words, "{text:?}");
    }
}

#[test]
fn mistakes_in_the_row_section_have_a_place() {
    for (line, words) in [
        ("v0 column c", "line 8, column 4: expected =, found \"column\""),
        ("v0 =", "line 8, column 5: expected an operation"),
        ("7 = const 1 u8", "line 8, column 1: expected a definition, found \"7\""),
        ("v0 = colum c", "line 8, column 6: unknown operation \"colum\""),
        ("v0 = column d", "line 8, column 13: expected a column named above, found \"d\""),
        ("v0 = const 256 u8", "line 8, column 6: 256 does not fit u8"),
        ("v0 = const -1 u8", "line 8, column 12: expected a number that u8 holds, found \"-1\""),
        ("v0 = const +1 u8", "line 8, column 12: expected a number that u8 holds, found \"+1\""),
        (
            "v0 = const 340282366920938463463374607431768211456 u128",
            "line 8, column 12: expected a number that u128 holds, found \
             \"340282366920938463463374607431768211456\"",
        ),
        ("v0 = const 1", "line 8, column 13: expected a type such as u32, or a column"),
        ("v0 = not v0", "line 8, column 10: expected a value defined above, found \"v0\""),
        ("v0 = total f0", "line 8, column 12: expected a fold, found \"f0\""),
        ("v0 = column c c", "line 8, column 15: unexpected \"c\" after the end of the line"),
        ("reveal v0 a \"x\"", "line 8, column 8: expected =, found \"v0\""),
        ("release", "line 8, column 1: \"release\" is out of order"),
    ] {
        assert_eq!(error(&format!("{HEAD}row\n{line}")), words, "{line}");
    }
    for (line, words) in [
        ("v0 = column c", "column 1: \"v0\" is defined twice"),
        ("v1 = add v0 w", "column 6: an operand is u16, the result u8"),
        ("v1 = lt v0 w", "column 6: u8 is compared with u16"),
        ("v1 = select v0 v0 v0", "column 6: the condition is u8, not a bit"),
        ("v1 = isqrt s", "column 6: not defined on i8: use an unsigned type"),
        ("v1 = div s s", "column 6: not defined on i8: use an unsigned type"),
        ("v1 = clamp s 1", "column 15: expected the upper end, a number that i8 holds"),
        ("v1 = shl v0 128", "column 13: expected a number below 128, found \"128\""),
        ("v1 = popcount w u4", "column 6: u4 cannot hold the count"),
        ("v1 = lookup v0", "column 13: expected after, found \"v0\""),
        ("v1 = lookup after v0 keys values v0", "column 6: a lookup has 1 to 64 thresholds"),
        ("v1 = lookup after v0 keys v0 values", "column 6: a lookup has values"),
        ("v1 = lookup after v0 keys v0 v0 values v0", "column 6: 2 thresholds need 2 values, not 1"),
        ("v1 = lookup after v0 until v0 keys v0 v0 values v0", "column 6: 2 thresholds need 3 values, not 1"),
        (
            "v1 = lookup after v0 keys w values v0",
            "column 6: thresholds and bounds of a lookup share one unsigned type (u8)",
        ),
    ] {
        let text = format!("{HEAD}row\nv0 = column c\nw = cast v0 u16\ns = cast v0 i8\n{line}");
        assert_eq!(error(&text), format!("line 11, {words}"), "{line}");
    }
}

#[test]
fn mistakes_after_the_row_section_have_a_place() {
    let start = format!("{HEAD}row\nv0 = column c\ncombine\n");
    for (line, words) in [
        (
            "f0 = product v0 u16",
            "line 10, column 6: expected sum, least, greatest or collect, found \"product\"",
        ),
        ("f0 = sum v1 u16", "line 10, column 10: expected a value defined above, found \"v1\""),
        ("f0 = sum v0 16", "line 10, column 13: expected a type such as u64, found \"16\""),
        ("f0 = sum v0 u16\nf0 = sum v0 u16", "line 11, column 1: \"f0\" is defined twice"),
        ("f0 = sum v0 u4\nrelease", "f0: a sum of u8 needs a u4 at least as wide and alike signed"),
        ("release\nm = gaussian c 1 f0", "line 11, column 14: expected a party's name, found \"c\""),
        (
            "release\nm = gaussian a 1/0",
            "line 11, column 16: expected a share of rho such as 1/40 or 0.025, found \"1/0\"",
        ),
        ("release\nm = gaussian a 1 f0", "line 11, column 18: expected a fold, found \"f0\""),
        ("release\nm = gaussian a 1", "m0 noises an unknown fold"),
        (
            "f = sum v0 u9\nrelease\nm = variance a 1 f f",
            "line 12, column 5: variance takes n, S, Q of the test arm and of the control arm: six folds",
        ),
        (
            "f = sum v0 u9\nrelease\nm = gaussian a 1 f\nv = noised m 1",
            "line 13, column 5: the mechanism has no output 1",
        ),
        (
            "f = sum v0 u121\nrelease\nm = gaussian a 1 f",
            "m0 noises f0, which is wider than 120 bits: no room for noise",
        ),
        ("release\nv = column c", "line 11, column 5: unknown operation \"column\""),
        ("release\nreveal v0 a \"x\"", "line 11, column 8: expected a value defined above, found \"v0\""),
        ("release\nv = const 1 u8\nreveal v a x", "line 12, column 12: expected a label in double quotes"),
    ] {
        assert_eq!(error(&format!("{start}{line}")), words, "{line}");
    }
}

#[test]
fn comments_and_names_of_ones_own_are_fine() {
    let text = format!(
        "{HEAD}# a comment\nrow # here too\n\n  x1 = column c\ny = not x1\ncombine\nall = sum y \
         u20\nrelease\nt = total all\nreveal t a \"a # is no comment here\"\n"
    );
    let program = Program::parse(&text).unwrap();
    assert_eq!(Program::parse(&program.to_text()).unwrap(), program);
    assert!(program.to_text().contains("reveal v0 a \"a # is no comment here\""));
}

/// The hash that consent is given to: a change of the canonical text is a change of the format and needs a
/// new header.
#[test]
fn the_hash_is_pinned() {
    let program =
        Program::parse(&format!("{HEAD}row\nv0 = column c\ncombine\nf0 = sum v0 u40\nrelease\n")).unwrap();
    assert_eq!(base::hex(&program.hash()), PINNED);
}

const PINNED: &str = "505e7d8b31780f1cde7a452722a68c3bcdcfbe433f0f92104cfb949736b22175";

#[test]
fn long_chains_are_no_deep_recursion() {
    let chain = |op: &str, count: usize| {
        let mut text = format!(
            "{HEAD}column d u8 b\nrow\nv0 = column c\nv1 = column d\nv2 = xor v0 v1\nv3 = lt v0 v1\nv4 = \
             const 0 u8\n"
        );
        for i in 5..count + 5 {
            let before = if i == 5 { 2 } else { i - 1 };
            text.push_str(&format!("v{i} = {op}\n").replace('@', &format!("v{before}")));
        }
        text + &format!("combine\nf0 = sum v{} u40\nrelease\n", count + 4)
    };
    for op in ["not @", "shr @ 0", "cast @ u8", "select v3 @ v4", "xor @ v0", "clamp @ 200", "and @ v1"] {
        let program = Program::parse(&chain(op, 30_000)).unwrap_or_else(|e| panic!("{op}: {e}"));
        for sender in [0, 1] {
            let plan = program::lower::lower_row(&program, base::PartyId(sender));
            assert_eq!(plan.folds.len(), 1);
        }
        let _ = program::verify(&program, &program::VerifierPolicy::default(), 10);
    }
    // Each node is the sum of the one before with itself: a walk that forgets would take 2^100 steps.
    let mut b = ProgramBuilder::new("doubling", Class::Exact, ["a", "b"]);
    let (x, y) = (
        b.column("x", ValueType::BIT, Some(base::PartyId(0))),
        b.column("y", ValueType::BIT, Some(base::PartyId(1))),
    );
    let wide = b.cast(x, ValueType::u(120));
    let mut sum = b.mask(y, wide);
    for _ in 0..100 {
        sum = b.add(sum, sum);
    }
    let masked = b.mask(y, sum);
    b.sum(masked, ValueType::u(128));
    let program = b.finish();
    assert_eq!(program::lower::lower_row(&program, base::PartyId(0)).folds.len(), 1);
}

fn valid() -> String {
    format!(
        "{HEAD}column d u8 b\nrow\nv0 = column c\nv1 = column d\nv2 = lt v0 v1\nv3 = select v2 v0 v1\nv4 = \
         clamp v3 9\n\
         v5 = const 3 u8\nv6 = lookup after v0 until v5 keys v1 v3 values v0 v1 v5\nv7 = popcount v6 u5\n\
         v8 = eq v0 v5\nv9 = shl v4 3\ncombine\nf0 = sum v8 u40\nf1 = sum v4 u44\nrelease\n\
         m0 = gaussian a 1/8 f0\nv0 = noised m0 0\nv1 = shr v0 2\nreveal v1 a \"label\"\n"
    )
}

#[test]
fn the_seed_of_the_mutations_is_valid() {
    Program::parse(&valid()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_text_panics(text in "\\PC*|[a-z0-9 =\"\\\\#\n]{0,200}") {
        let _ = Program::parse(&text);
        let _ = Program::parse(&format!("{HEAD}row\n{text}"));
    }

    #[test]
    fn no_mutation_panics(
        at in 0usize..700, cut in 0usize..12,
        put in "[ -~é\u{0}\u{202e}\n]{0,6}|v[0-9]{1,3}|[0-9]{1,45}|[ui][0-9]{1,3}",
    ) {
        let text = valid();
        let at = at % text.len();
        let end = (at + cut).min(text.len());
        let mutated = format!("{}{put}{}", &text[..at], &text[end..]);
        if let Ok(program) = Program::parse(&mutated) {
            prop_assert_eq!(&Program::parse(&program.to_text()).unwrap(), &program);
            let _ = program::verify(&program, &program::VerifierPolicy::default(), u64::MAX);
            let _ = program::lower::lower_row(&program, base::PartyId(0));
        }
    }
}

/// A market: a shared price, the customer's wish, the cheapest row and all rows.
const MARKET: &str = "tacit-program/2\nname \"m\"\nclass exact\nrows aligned\nparty a\nparty b\nparty \
                      c\ncolumn price u16 shared\n\
    column wish bit a\nrow\nv0 = column price\nv1 = column wish\ncombine\nf0 = least v0 where v1\nf1 = \
    collect v1\n\
    release\nv0 = total f0\nv1 = index f0\nv2 = found f0\nreveal v0 a \"price\"\nreveal v1 a \"row\"\n\
    reveal v2 a \"found\"\nreveal-rows f1 a \"rows\"\n";

#[test]
fn best_rows_lists_and_shared_columns_round_trip() {
    let a = base::PartyId(0);
    let mut b = ProgramBuilder::new("m", Class::Exact, ["a", "b", "c"]);
    b.rows(RowSet::Aligned);
    let price = b.column("price", ValueType::u(16), Holder::Shared);
    let wish = b.column("wish", ValueType::BIT, a);
    let (best, all) = (b.best(RowOrder::Least, price, wish), b.collect(wish));
    b.release();
    let parts = [b.total(best), b.index(best), b.found(best)];
    for (label, node) in ["price", "row", "found"].into_iter().zip(parts) {
        b.reveal(label, a, node);
    }
    b.reveal_rows("rows", a, all);
    let program = b.finish();
    assert_eq!(program.to_text(), MARKET);
    assert_eq!(Program::parse(MARKET).unwrap(), program);
    assert_eq!(program.sharing(), program::Sharing::Boolean);
    assert_eq!(program.folds[0].word_bits(), 16 + 32 + 1);
    assert_eq!(program.release.nodes[1].op, Op::Index(0));
}

#[test]
fn mistakes_in_folds_have_a_place() {
    for (from, to, words) in [
        (
            "least v0",
            "least v1",
            "f0: best takes an unsigned key of at most 95 bits and a bit, not bit and u16",
        ),
        ("where v1", "when v1", "line 14, column 15: expected where, found \"when\""),
        ("f1 = collect v1", "f1 = collect v0", "f1: collect takes a bit, not u16"),
        (
            "collect v1",
            "most v1",
            "line 15, column 6: expected sum, least, greatest or collect, found \"most\"",
        ),
        ("index f0", "index f1", "line 18, column 6: only least and greatest have an index and a found bit"),
        ("total f0", "total f1", "line 17, column 6: a collect fold has no total; reveal its rows"),
        ("reveal-rows f1", "reveal-rows f0", "the list \"rows\" names an unknown party or no collect fold"),
        ("party c", "party shared", "line 7, column 1: the party \"shared\" is named twice or reserved"),
        (
            "price u16 shared",
            "price u96 shared",
            "f0: best takes an unsigned key of at most 95 bits and a bit, not u96 and bit",
        ),
        ("a \"rows\"", "a \"row\"", "two outputs for one party are labelled \"row\""),
    ] {
        let text = if to == "least v1" {
            MARKET.replace("least v0 where v1", "least v1 where v0")
        } else {
            MARKET.replacen(from, to, 1)
        };
        assert_ne!(text, MARKET, "{from} is in the program");
        assert_eq!(error(&text), words, "{to}");
    }
}

/// What a column line says of its cells is printed, read again, and part of the hash.
#[test]
fn cells_round_trip() {
    let head = |line: &str| {
        format!(
            "tacit-program/2\nname \"n\"\nclass exact\nrows aligned\nparty a\n{line}\nrow\ncombine\nrelease\n"
        )
    };
    let plain = Program::parse(&head("column c u8 a")).unwrap();
    for line in [
        "column c i32 a scale 100",
        "column c u2 a labels \"none\" \"low\" \"very \\\"high\\\"\"",
        "column c u16 a date",
        "column c u8 a absent 3 unit \"EUR\"",
        "column c bit a missing",
        "column c i9 a absent -1 scale 1000 unit \"kg\" missing",
    ] {
        let program = Program::parse(&head(line)).unwrap();
        let text = program.to_text();
        assert!(text.contains(&format!("\n{line}\n")), "{text}");
        assert_eq!(Program::parse(&text).unwrap(), program);
        assert_ne!(program.hash(), plain.hash());
    }
    for (line, words) in [
        ("column c u2 a scale 1", "column 21: expected parts of one: 10 for a decimal place, 100 for two"),
        ("column c u2 a labels", "column 21: expected a label in double quotes"),
        ("column c u8 public missing", "column 20: \"missing\" is said of one party's column"),
        ("column c u2 a labels \"a\" \"b\" \"c\" \"d\"", "the column c has 4 labels, which u2 does not hold"),
        ("column c u2 a labels \"a\" \"a\"", "the column c has the label \"a\" twice"),
        ("column c i4 a labels \"a\"", "labels count from 1 in an unsigned type"),
    ] {
        let text = Program::parse(&head(line)).unwrap_err().to_string();
        assert!(text.contains(words), "{text}");
    }
}

/// Missing cells are written out as bits beside the values; a text of the written-out form is read as it is.
#[test]
fn what_is_missing_is_written_out() {
    let text = "tacit-program/2\nname \"n\"\nclass exact\nrows aligned\nparty a\nparty b\ncolumn x u8 a \
     missing\n\
                column y i8 b missing\ncolumn z u8 a\nrow\nx = column x\nz = column z\ny = column y\nmore = \
                add x z\n\
                small = lt x z\nwide = cast more i8\nboth = mul wide y\nknown-both = known both\nalways = \
                known z\n\
                filled = default x z\nchosen = select small x z\nlow = clamp y -5 5\ncombine\na = sum both \
                i30\n\
                b = sum filled u30\nc = sum chosen u30\nd = sum known-both u30\ne = least x where small\nf \
                = sum low i30\n\
                release\n";
    let program = Program::parse(text).unwrap();
    let canonical = program.to_text();
    assert_eq!(Program::parse(&canonical).unwrap(), program, "{canonical}");
    assert!(canonical.contains("= cell x\n") && canonical.contains("= given x\n"), "{canonical}");
    // By x, y (None: missing) and z: what each fold adds.
    let rows: [(Option<u8>, Option<i8>, u8); 4] =
        [(Some(3), Some(-7), 5), (None, Some(2), 9), (Some(9), None, 4), (None, None, 1)];
    let mut values = NodeValues::default();
    let all = vec![true; program.row.nodes.len()];
    let mut leaf = |op: &Op, out: &mut [u128]| {
        let Op::Column(c) = op else { unreachable!("columns alone") };
        for ((x, y, z), out) in rows.iter().zip(out) {
            *out = match program.columns[*c as usize].name.as_str() {
                "x" => x.unwrap_or(0).into(),
                "y" => u128::from(y.unwrap_or(0).cast_unsigned()),
                "z" => (*z).into(),
                "known x" => x.is_some().into(),
                "known y" => y.is_some().into(),
                name => unreachable!("{name}"),
            };
        }
        Ok(())
    };
    values.evaluate(&program.row, &all, rows.len(), &mut leaf).unwrap();
    let added = |fold: usize| {
        let id = program.folds[fold].decider();
        values.get(id).iter().map(|v| program.row.ty(id).number(*v).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(added(0), [-56, 0, 0, 0], "a product of what is known");
    assert_eq!(added(1), [3, 9, 9, 1], "what stands for it");
    // The condition is missing where x is.
    assert_eq!(added(2), [3, 0, 4, 0], "the chosen branch");
    assert_eq!(added(3), [1, 0, 0, 0]);
    assert_eq!(added(4), [1, 0, 0, 0], "rows that may be the least");
    assert_eq!(added(5), [-5, 2, 0, 0]);
}

/// Constants of signed types, and such as a column holds for a cell.
#[test]
fn constants_are_cells_of_columns() {
    let text = |lines: &str| {
        format!(
            "tacit-program/2\nname \"n\"\nclass exact\nrows aligned\nparty a\ncolumn dose u2 a labels \
             \"none\" \"low\"\n\
             column spent i32 a scale 100\ncolumn seen u16 a date\nrow\n{lines}\ncombine\nrelease\n"
        )
    };
    for (line, op, ty) in [
        ("c = const \"low\" dose", 2, ValueType::u(2)),
        ("c = const 149.28 spent", 14_928, ValueType::i(32)),
        ("c = const 1970-03-01 seen", 59, ValueType::u(16)),
        ("c = const -5 i8", 251, ValueType::i(8)),
        ("c = const 251 i8", 251, ValueType::i(8)),
        (&format!("c = const {} i128", i128::MIN), 1 << 127, ValueType::i(128)),
        ("c = const -128 i8", 128, ValueType::i(8)),
    ] {
        let program = Program::parse(&text(line)).unwrap();
        assert_eq!(program.row.nodes[0].op, Op::Const(op), "{line}");
        assert_eq!(program.row.nodes[0].ty, ty);
        let canonical = program.to_text();
        assert_eq!(Program::parse(&canonical).unwrap(), program);
        let number = ty.number(op).unwrap();
        assert!(canonical.contains(&format!("v0 = const {number} {ty}\n")), "{canonical}");
    }
    for (line, words) in [
        ("c = const high dose", "line 10, column 11: \"high\" is none of the labels \"none\" \"low\""),
        ("c = const 1.234 spent", "line 10, column 11: 1.234 is no whole number of 1/100"),
        (&format!("c = const -{} i128", (1u128 << 127) + 1), "line 10, column 11: expected a number"),
        ("c = const -129 i8", "line 10, column 11: expected a number that i8 holds, found \"-129\""),
        ("c = const 1 cost", "line 10, column 13: expected a type such as u32, or a column, found \"cost\""),
        ("s = column spent\nc = clamp s 5 -5", "line 11, column 5: 5 is above -5: the lower end comes first"),
        (
            "s = column spent\nc = clamp s 5",
            "line 11, column 14: expected the upper end, a number that i32 holds",
        ),
    ] {
        let refused = Program::parse(&text(line)).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
}

/// A type is meant wherever one can stand, whatever columns are called: else canonical text would mean
/// another program.
#[test]
fn a_column_that_is_called_like_a_type_is_not_one() {
    let text = "tacit-program/2\nname \"n\"\nclass exact\nrows aligned\nparty a\ncolumn i16 i16 a scale 10\n\
     row\n\
                x = column i16\nc = const -5 i16\ny = clamp x -10 10\ncombine\ns = sum y i40\nt = sum c \
                i40\nrelease\n";
    let program = Program::parse(text).unwrap();
    assert_eq!(program.row.nodes[1].op, Op::Const(65_531));
    assert_eq!(Program::parse(&program.to_text()).unwrap(), program);
}

#[test]
fn a_draft_is_the_text_of_its_lines() {
    let text = format!(
        "{HEAD}column d i20 b scale 100\nrow\nc = column c\nd = column d\nlow = clamp d -5000 5000\n\
         combine\nf = sum low i60\nrelease\nm = gaussian a 1/8 f\ny = noised m 0\nreveal y a \"y\"\n"
    );
    let mut draft = TextDraft::default();
    for (line, number) in text.lines().zip(1..) {
        draft.line(line, ("analysis.py", number)).unwrap();
        if line.starts_with("low") {
            assert_eq!((draft.ty("low"), draft.ty("c")), (Some(ValueType::i(20)), Some(ValueType::u(8))));
            assert_eq!((draft.scale("low"), draft.scale("none")), (Some(100), None));
            assert_eq!(draft.number("low", "-1.5"), Ok(-150));
            assert!(draft.number("low", "0.001").unwrap_err().contains("no whole number of 1/100"));
        }
    }
    assert_eq!(draft.finish().unwrap(), Program::parse(&text).unwrap());
}

#[test]
fn a_draft_names_the_lines_of_who_writes_it() {
    let mut draft = TextDraft::default();
    let lines =
        format!("{HEAD}row\nc = column c\ncombine\nmine = sum c u40\nrelease\nm = gaussian b 1/8 mine\n");
    for (line, number) in lines.lines().zip(100..) {
        draft.line(line, ("analysis.py", number)).unwrap();
    }
    assert_eq!(
        draft.line("x = total yours", ("analysis.py", 1)).unwrap_err(),
        "expected a fold, found \"yours\""
    );
    let refused = verify(&draft.finish().unwrap(), &VerifierPolicy::default(), 1000).unwrap_err().to_string();
    assert!(
        refused.contains("refused by rule R3") && refused.contains("mine (analysis.py, line 109)"),
        "{refused}"
    );
}
