//! Questions: what texts of ten lines become, what they are charged, and what is said of mistakes in them.

use program::{Audit, DerivedStatistic, MechanismKind, Program, VerifierPolicy, Viewer, verify};
use release::rational::{Rational, ratio};

const HEAD: &str = "tacit-program/2\nname \"Spending by dose\"\nparty trial\nparty shop\n\
                    column dose u2 trial labels \"none\" \"low\" \"high\"\ncolumn ill bit trial\n\
                    column spent u16 shop scale 100 unit \"EUR\"\ncolumn change i12 shop missing\n";

fn parse(lines: &str) -> Program {
    Program::parse(&format!("{HEAD}{lines}\n")).unwrap_or_else(|error| panic!("{error}: {lines}"))
}

fn audit(program: &Program) -> Audit {
    let policy = VerifierPolicy { max_outputs: 1000, ..VerifierPolicy::default() };
    verify(program, &policy, 1_000_000).unwrap_or_else(|error| panic!("{error}\n{}", program.to_text()))
}

fn refusal(lines: &str) -> String {
    Program::parse(&format!("{HEAD}{lines}\n")).unwrap_err().to_string()
}

fn labels(program: &Program) -> Vec<&str> {
    program.derived.iter().map(|derived| derived.label.as_str()).collect()
}

/// Every question becomes a program whose canonical text is read as the same one, and that is charged what
/// the text says, whatever its groups.
#[test]
fn questions_are_charged_what_they_say() {
    for (lines, mechanisms, derived) in [
        ("count", 1, 1),
        ("by dose\ncount", 1, 3),
        ("by dose and ill\ncount", 1, 6),
        ("histogram spent edges 0 10 20 50 100 600", 1, 5),
        ("by ill\nhistogram spent edges 0 10 20 50 100 600", 1, 10),
        ("histogram of change edges -100 -10 0 10 100", 1, 4),
        ("median of spent edges 10 20", 1, 1),
        ("sum of change between -50 50", 1, 1),
        ("by spent edges 0 10 600\nsum of change between -50 50", 1, 2),
        ("by dose\nmean variance standard-deviation of spent between 0 500", 1, 9),
        ("by dose\nmean of change between -50 50", 1, 3),
        ("by dose\nshare risk-difference risk-ratio odds-ratio needed-to-treat of ill", 1, 11),
        ("by dose and ill\ndifference ratio of spent between 10 200", 1, 8),
        ("correlation of spent between 0 500 with change between -50 50", 6, 1),
        ("by ill\ncovariance of spent between 0 500 with ill", 5, 2),
        ("regression of spent between 0 500 on ill change between -50 50", 9, 3),
        ("median of spent edges 0 1 2 5 10 100 600", 1, 1),
        ("by dose\nquantile 1/4 3/4 of spent edges 0 1 2 5 10 100 600", 1, 6),
    ] {
        for viewer in ["trial", "shop", "public"] {
            let program = parse(&format!("ask {viewer} rho 1/5\n{lines}"));
            let canonical = program.to_text();
            assert_eq!(Program::parse(&canonical).unwrap(), program, "{canonical}");
            assert_eq!((program.mechanisms.len(), program.derived.len()), (mechanisms, derived), "{lines}");
            let spent: Rational = audit(&program).charges.iter().map(|charge| &charge.rho).sum();
            assert_eq!(spent, ratio(1, 5), "{lines}");
        }
    }
}

#[test]
fn labels_and_units_say_what_a_number_is() {
    let program = parse(
        "ask trial rho 1/10\nby dose\nmean variance of spent between 0 500\ndifference of spent between 0 \
         500\n\
         by all\nregression of spent between 0 500 on ill change between -50 50",
    );
    let said: Vec<(&str, &str)> =
        program.derived.iter().map(|d| (d.label.as_str(), d.unit.as_str())).collect();
    assert_eq!(
        said,
        [
            ("mean of spent, dose = none", "EUR"),
            ("mean of spent, dose = low", "EUR"),
            ("mean of spent, dose = high", "EUR"),
            ("variance of spent, dose = none", "EUR^2"),
            ("variance of spent, dose = low", "EUR^2"),
            ("variance of spent, dose = high", "EUR^2"),
            ("difference of spent, dose = low against dose = none", "EUR"),
            ("difference of spent, dose = high against dose = none", "EUR"),
            ("constant of spent", "EUR"),
            ("spent by ill", "EUR"),
            ("spent by change", "EUR"),
        ]
    );
    let two = parse("ask trial rho 1/10\nby ill and dose\nratio of spent between 1 500");
    assert_eq!(labels(&two)[1], "ratio of spent, ill against not ill, dose = low");
    assert_eq!(two.derived[1].sums.iter().map(|at| at.place).collect::<Vec<_>>(), [4, 1]);
    assert_eq!(two.derived[1].variables[0].low, 100);
}

/// Two viewers have a budget each; a name that two lines give is told apart.
#[test]
fn each_viewer_has_a_budget() {
    let program = parse("ask trial rho 1/10\ncount\ncount\nask public rho 1/20\nby ill\ncount");
    let audit = audit(&program);
    assert_eq!((audit.rho.as_slice(), audit.public), (&[ratio(1, 10), ratio(0, 1)][..], ratio(1, 20)));
    assert_eq!(labels(&program), ["rows", "rows (2)", "rows, not ill", "rows, ill"]);
    assert_eq!(program.derived[2].to, Viewer::Public);
}

/// Shares are by `(weight k)^(2/3)`: the least sum of weights times widths. An accuracy takes what it needs.
#[test]
fn budgets_are_split_for_the_least_width() {
    let rho = |lines: &str| -> Vec<f64> {
        let program = parse(&format!("ask trial rho 1/4\n{lines}"));
        program.mechanisms.iter().map(|m| release::rational::to_f64(&m.rho)).collect()
    };
    let width = |shares: &[f64], weights: &[f64]| -> f64 {
        shares.iter().zip(weights).map(|(share, weight)| weight / share.sqrt()).sum()
    };
    let split = rho("count weight 8\nsum of change between -50 50\nmean of spent between 0 500");
    assert!((split[0] / split[1] - 4.0).abs() < 1e-5 && split[1] == split[2], "{split:?}");
    let (best, weights) = (width(&split, &[8.0, 1.0, 1.0]), [8.0, 1.0, 1.0]);
    for change in [0.01, -0.01] {
        let other = [split[0] + change, split[1] - change, split[2]];
        assert!(width(&other, &weights) > best);
    }
    // A half-width of 40 rows: sigma of 20.4, at 2 rho sigma^2 = 1.
    let split = rho("count within 40\nsum of spent between 0 500");
    assert!((split[0] - 1.96f64.powi(2) * 1.01 / 2.0 / 1600.0).abs() < 1e-6, "{split:?}");
    assert!((split[0] + split[1] - 0.25).abs() < 1e-12);
    // Twice that where a row can move between cells, and in parts of a unit where there are some.
    let split =
        rho("by change edges -100 0 100\ncount within 40\nby all\nsum of spent between 0 500 within 5000.50");
    assert!((split[0] - 1.96f64.powi(2) * 1.01 / 1600.0).abs() < 1e-6, "{split:?}");
    assert!(
        (split[1] - (500.0 / 5000.5f64).powi(2) * 1.96f64.powi(2) * 1.01 / 2.0).abs() < 1e-6,
        "{split:?}"
    );
    let text = refusal("ask trial rho 1/1000\ncount within 1");
    assert!(text.starts_with("line 9, column 1: the accuracies of these lines need a rho of 1.94"), "{text}");
}

/// A group of rows whose value is missing is no group; a mean is of rows that have the value.
#[test]
fn missing_values_are_in_no_group() {
    let program =
        parse("ask trial rho 1/10\nhistogram change edges -100 0 100\nmean of change between -50 50");
    let text = program.to_text();
    assert!(text.contains("= given change\n"), "{text}");
    for fold in &program.folds {
        let demands = program::eval::closure(&program.row, [fold.value()]);
        let reads = |name: &str| {
            let mut nodes = program.row.nodes.iter().zip(&demands).filter(|(_, used)| **used);
            nodes.any(
                |(n, _)| matches!(n.op, program::Op::Column(c) if program.columns[c as usize].name == name),
            )
        };
        assert!(reads("known change") && reads("present shop") && reads("present trial"));
    }
}

#[test]
fn mistakes_say_what_to_write() {
    for (lines, words) in [
        ("ask works rho 1/10", "line 9, column 5: expected a party's name, found \"works\""),
        ("ask trial rho 0", "line 9, column 1: a question takes some rho"),
        ("ask trial 1/10", "line 9, column 11: expected rho, found \"1/10\""),
        ("ask trial rho 1/10\nmode of spent", "line 10, column 1: expected by, count, histogram, sum, mean"),
        (
            "ask trial rho 1/10\nmean of spent",
            "line 10, column 9: spent has no bound, and noise has to hide its largest \
                                                row: write `spent between LOW HIGH`, for instance 0 100",
        ),
        (
            "ask trial rho 1/10\nmean of spent between 10 5",
            "column 9: the lower end of `between` comes first",
        ),
        ("ask trial rho 1/10\nmean of spent between 0 1.234", "column 25: 1.234 is no whole number of 1/100"),
        (
            "ask trial rho 1/10\nmean of spent between 0 1000",
            "column 25: 1000 does not fit u16, the type of the value",
        ),
        (
            "ask trial rho 1/10\nmean of cost between 0 1",
            "column 9: expected a value of the row section, or a column, \
                                                           found \"cost\"",
        ),
        (
            "ask trial rho 1/10\nby spent\ncount",
            "line 10, column 4: spent has no labels: write `spent edges 0 10 20` for \
                                                 ranges of it, or `spent values 1 2 3`",
        ),
        (
            "ask trial rho 1/10\nby spent edges 3 2\ncount",
            "column 16: edges are two numbers or more, and ascend",
        ),
        (
            "ask trial rho 1/10\nratio of spent between 0 5",
            "column 1: ratio compares groups: write `by` with two or more on \
                                                              a line before",
        ),
        (
            "ask trial rho 1/10\nby ill\nrisk-ratio of spent between 0 5",
            "column 1: risk-ratio is said of a bit, and spent is \
                                                                           none",
        ),
        (
            "ask trial rho 1/10\nmean of spent between 0 5 within 2",
            "column 27: `within` is said of counts and sums; give \
                                                                       this line a `weight`",
        ),
        (
            "ask trial rho 1/10\ncount within 0",
            "column 14: expected half of an interval, a number above 0, found \"0\"",
        ),
        ("ask trial rho 1/10\ncount weight 0", "column 14: expected a weight, 1 to 1000, found \"0\""),
        ("class exact\nask trial rho 1/10", "line 10, column 1: questions are answered with noise"),
        (
            "ask trial rho 1/10\nquantile 2 of spent edges 0 1",
            "column 10: expected a share between 0 and 1 such as 1/4",
        ),
        (
            "ask trial rho 1/10",
            "line 9, column 1: this ask has no questions: write them on the lines behind \
         it",
        ),
        (
            "ask trial rho 1/10\nby dose values 1 2\ncount",
            "column 9: dose has labels, which are no numbers: \
         write `dose` alone",
        ),
        (
            "ask trial rho 1/10\nmean of dose",
            "column 9: dose has labels, which are no numbers: group `by \
         dose`",
        ),
        ("ask trial rho 1/10\nmedian of spent", "expected edges of bins, as in `edges 0 10 20`"),
        ("ask trial rho 1/10\nrow", "line 10, column 1: \"row\" is out of order"),
    ] {
        let text = refusal(lines);
        assert!(text.contains(words), "{lines}\n{text}\n{words}");
    }
}

/// What is derived is made of what its viewer sees.
#[test]
fn derived_lines_are_checked() {
    let text = parse("ask trial rho 1/10\nmean of spent between 0 500\ncount").to_text();
    for (from, to, words) in [
        ("derive mean trial", "derive mean shop", "is of a mechanism for another viewer"),
        ("derive mean trial", "derive variance trial", ""),
        ("derive mean trial", "derive total trial", "is of a mechanism of another kind"),
        ("sums m0 0", "sums m0 1", "of a cell that is not there, or of another range"),
        ("sums m0 0", "sums m0 0 m0 0", "has 2 sums and 1 variables, which no mean has"),
        ("of 0 0 50000 100", "of 0 0 400 100", "of a cell that is not there, or of another range"),
        ("of 0 0 50000 100", "of 0 0 50000 0", "a variable from 0 to 50000 by 0"),
        ("reveal v1 trial", "reveal v1 public", ""),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let changed = Program::parse(&text.replacen(from, to, 1));
        match (changed, from) {
            (Ok(_), _) => assert!(words.is_empty(), "{from} {to}"),
            (Err(error), "reveal v1 trial") => {
                assert!(error.to_string().contains("is of sums that are not revealed"), "{error}");
            }
            (Err(error), _) => assert!(!words.is_empty() && error.to_string().contains(words), "{error}"),
        }
    }
    let program = parse("ask trial rho 1/10\nregression of spent between 0 5 on ill");
    assert_eq!(program.derived[1].statistic, DerivedStatistic::Coefficient(1));
    assert!(program.mechanisms.iter().all(|m| matches!(m.kind, MechanismKind::Gaussian(_))));
}

/// A chain of sums whose operands are both the one before is read in its length; an accuracy that nothing
/// reaches is a number.
#[test]
fn long_texts_are_read_in_their_length() {
    let chain: String = (1..60).map(|i| format!("a{i} = add a{} a{}\n", i - 1, i - 1)).collect();
    let text =
        format!("class dp\nrow\na0 = column spent\n{chain}ask trial rho 1/10\nsum of a59 between 0 10");
    assert_eq!(parse(&text).derived[0].unit, "EUR");
    let text = format!("ask trial rho 1/10\ncount within {}\nmean of spent between 0 5", u64::MAX);
    let refused = verify(&parse(&text), &VerifierPolicy::default(), 1000).unwrap_err().to_string();
    assert!(refused.contains("use a simpler rho"), "{refused}");
    let lines = "count\n".repeat(20_000);
    assert!(refusal(&format!("ask trial rho 1/10\n{lines}")).contains("more than 16384 answers"));
}

/// Groups by a bit that is computed, and a bit by itself.
#[test]
fn computed_bits_are_groups() {
    let row = "class dp\nrows aligned\nrow\ndose = column dose\nlow = const \"low\" dose\nlow-dose = eq \
     dose low\n\
               spent = column spent\nmuch = const 100 spent\ncheap = lt spent much\nboth = or low-dose \
               cheap\n";
    for lines in [
        "by low-dose\nmean of spent between 0 500",
        "by both\ncount",
        "by both and cheap\nshare of ill",
        "by ill\nshare of ill",
        "by cheap\nshare risk-ratio of cheap",
    ] {
        audit(&parse(&format!("{row}ask trial rho 1/10\n{lines}")));
    }
}

/// The square of a number around zero is between 0 and the square of its end.
#[test]
fn squares_have_the_noise_of_squares() {
    let program = parse("ask trial rho 1/10\ncovariance of spent between 0 500 with change between -50 50");
    let charges = audit(&program).charges;
    let stays: Vec<u128> = charges.iter().map(|charge| charge.changes[0].stays).collect();
    assert_eq!(stays, [1, 50_000, 100, 25_000 * 25_000, 2_500, 2 * 25_000 * 50]);
}

/// Numbers of two lists of labels, of two units or of two scales say different things.
#[test]
fn what_is_counted_differently_is_not_compared() {
    let columns = [
        "got u2 shop labels \"low\" \"none\" \"high\"",
        "same u2 shop labels \"none\" \"low\" \"high\"",
        "fee u16 shop scale 100",
        "tax u16 shop scale 100 unit \"USD\"",
        "tenths u16 shop scale 10 unit \"EUR\"",
        "net u16 shop scale 100 unit \"EUR\"",
        "age u16 trial unit \"year\"",
        "kilos u16 trial unit \"kg\"",
        "plain u16 shop",
    ]
    .map(|column| format!("column {column}\n"))
    .concat();
    let text = |operation: &str| {
        let names = ["dose", "got", "same", "spent", "fee", "tax", "tenths", "net", "age", "kilos", "plain"];
        let read: String = names.iter().map(|name| format!("{name} = column {name}\n")).collect();
        let row = format!("class dp\nrow\nsome = column ill\n{read}x = {operation}");
        format!("{columns}{row}\nask trial rho 1/10\ncount")
    };
    let labels = "the labels of dose and got are not one list: number 1 is \"none\" in the one, \"low\" in \
                  the other; give both columns the same labels in the same order, or compare each with its \
                  own, as in `const \"none\" dose`";
    for (operation, words) in [
        ("eq dose got", labels),
        ("lt dose got", labels),
        ("min dose got", labels),
        ("max dose got", labels),
        ("select some dose got", labels),
        ("default dose got", labels),
        (
            "add spent fee",
            "counted in \"EUR\", the other one in no unit: give both columns one unit, or write",
        ),
        ("sub fee spent", "counted in no unit, the other one in \"EUR\""),
        ("eq spent tax", "counted in \"EUR\", the other one in \"USD\""),
        ("max spent tenths", "counted in 1/100, the other one in 1/10: give both columns one scale"),
        ("lt age kilos", "counted in \"year\", the other one in \"kg\""),
    ] {
        let refused = refusal(&text(operation));
        assert!(refused.contains(words), "{operation}: {refused}");
        assert!(refused.starts_with("line ") && refused.contains(", column 5: "), "{refused}");
    }
    for operation in ["eq dose same", "add spent net", "add age plain", "sub spent plain", "shl spent 0"] {
        let program = parse(&text(operation));
        assert_eq!(Program::parse(&program.to_text()).unwrap(), program, "{operation}");
    }
    let chosen = text("select some dose same").replace("ask trial", "y = eq x got\nask trial");
    assert!(refusal(&chosen).contains("the labels of dose and got"));
    let bare = "y = shl fee 0\nz = add x y\nask trial";
    parse(&text("shl spent 0").replace("ask trial", bare));
}
