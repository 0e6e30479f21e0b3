use super::*;
use crate::html::samples;

/// Compares line by line, so that a failure shows the line.
fn assert_lines(text: &str, expected: &[&str]) {
    for (i, (line, expected)) in text.lines().zip(expected).enumerate() {
        assert_eq!(line, *expected, "line {}", i + 1);
    }
    assert_eq!(text.lines().count(), expected.len(), "{text}");
}

#[test]
fn both_views_side_by_side() {
    let (registry, hospitals) = (samples::registry(), samples::hospitals());
    assert_lines(
        &lift_table(&[&registry, &hospitals], Some(-0.000_407), USUAL_COLUMNS),
        &[
            "  Cases per 100,000 people                       what registry sees        what hospitals sees",
            "    vaccine                                                    15.9                       18.4",
            "    placebo                                                    56.7                       57.6",
            "    difference                                                -40.8                      -39.2",
            "    95 % interval (chance and noise)                 [-53.2, -28.4]             [-52.6, -25.8]",
            "    of which noise alone                             [-44.2, -37.4]             [-44.1, -34.3]",
            "    relative                                             72 % fewer                 68 % fewer",
            "    p-value of no difference                               < 0.0001                   < 0.0001",
            "",
            "  True difference: -40.7.   Both intervals contain it.   OK",
        ],
    );
}

#[test]
fn one_party() {
    assert_lines(
        &terminal(&samples::registry(), USUAL_COLUMNS),
        &[
            "1954 poliomyelitis field trial, placebo-control areas",
            "polio-1954   seen by registry (publisher) with hospitals",
            "",
            "  Cases per 100,000 people                       what registry sees",
            "    vaccine                                                    15.9",
            "    placebo                                                    56.7",
            "    difference                                                -40.8",
            "    95 % interval (chance and noise)                 [-53.2, -28.4]",
            "    of which noise alone                             [-44.2, -37.4]",
            "    relative                                             72 % fewer",
            "    p-value of no difference                               < 0.0001",
            "",
            "  Fewer is better: in favour of vaccine. The intervals are for outcomes clamped at 1 per \
             person.",
            "  6 released numbers are in report.html.",
            "  Means are per person of registry (publisher): whom hospitals (advertiser) does not know \
             counts with 0.",
            "",
            "  privacy   rho 0.11 for this view (0.1 release, 0.01 sizes) = (2.26, 10⁻⁶)-DP; noise \
             candidates 64, 63 opened",
            "            and checked",
            "  ledger    after this result, spent by hospitals: 0.1 of 1 on this party's data",
            "  Learned besides: the sizes of the sets (401,974 and 1,013), of their union (402,263) and of \
             the match (724).",
            "    Semi-honest parties; not reviewed.",
            "  Do not show this report to hospitals: it drew the noise in it and can take it out.",
            "  Do not pass on: this view contains exact numbers.",
            "",
            "Reading of your own files. For you only",
            "       402,118 rows read",
            "       401,974 identifiers take part",
            "           144 rows left out: no opportunity",
            "            36 bytes of memory per identifier",
            "",
            "How it was computed",
            "  engine yao   mode sums   hash 7c41 09aa 5be2",
            "  match            402,263 rows       31.2 s   68.0 MB      12.9 k rows/s",
            "  compute          402,263 rows        7.9 s   27.0 MB      50.9 k rows/s",
            "  release               12 values     0.40 s   1.04 MB        30 values/s",
            "  The stage release handled 12 values: those for all viewers.",
            "  Total 39.5 s, 96.0 MB, peak 212 MB",
        ],
    );
}

#[test]
fn groups_and_refusals() {
    assert_lines(
        &lift_table(&[&samples::shop()], None, USUAL_COLUMNS),
        &[
            "  Cent per person                                       what registry sees",
            "    campaign                                                         412.0",
            "    held out                                                         371.0",
            "    difference                                                        41.0",
            "    90 % interval (chance and noise)                          [19.0, 63.0]",
            "    of which noise alone                                      [35.0, 47.0]",
            "    relative                                                   11 % higher",
            "    p-value of no difference                                      < 0.0001",
            "    the same by Holm, of all groups                               < 0.0001",
            "  Difference by breakdown                          90 % interval      Holm",
            "    north                                     61.0  [23.0, 99.0]  < 0.0001",
            "    south                                    22.0  [-15.0, 59.0]      0.42",
            "  Difference by cohort                             90 % interval      Holm",
            "    first-time buyers                       -11.0  [-55.0, 33.0]      0.42",
            "    members                                                        refused",
            "      refused: the test group has about 412 rows, fewer than the minimum of 1,000: not shown",
        ],
    );
    assert!(terminal(&samples::shop(), USUAL_COLUMNS).contains("50.9 k rows/s   cost not as stated\n"));
}

#[test]
fn a_program() {
    let text = terminal(&samples::program(), USUAL_COLUMNS);
    let outputs: Vec<&str> = text.lines().skip(3).take(5).collect();
    assert_lines(
        &outputs.join("\n"),
        &[
            "  Output                                                                                value   noise sigma",
            "    customers of both                                                                  10,422   \
             14.1, made-up rows counted",
            "    sum owed, 1/100 EUR                  -170,141,183,460,469,231,731,687,303,715,884,105,728   4,000",
            "    owed by each, EUR                                                                     -41   \
             computed from noised values",
            "    largest \
             limit                                                                      90,000   exact",
        ],
    );
    assert_eq!(lift_table(&[&samples::program()], Some(0.0), USUAL_COLUMNS), "");
    assert!(text.contains("  Do not pass on: this view contains exact numbers.\n"));
}

/// What was computed from noised values is not exact; what has no noise needs no word about who drew it.
#[test]
fn exact_and_noised_programs_are_told_apart() {
    let mut report = samples::program();
    let ResultView::Program { outputs, .. } = &mut report.view else { panic!() };
    let exact = outputs.pop().expect("the exact output comes last");
    let text = terminal(&report, USUAL_COLUMNS);
    assert!(!text.contains("exact") && text.contains("Do not show this report to hospitals"), "{text}");
    report.view = ResultView::Program { outputs: vec![exact], lists: Vec::new(), derived: Vec::new() };
    let text = terminal(&report, USUAL_COLUMNS);
    assert!(text.contains("contains exact numbers") && !text.contains("Do not show"), "{text}");
    assert!(!crate::html::render(&report).contains("drew the noise"));
    let privacy = &mut report.privacy;
    (privacy.epsilon, privacy.delta, privacy.total, privacy.candidates) = (None, None, None, None);
    let (text, page) = (terminal(&report, USUAL_COLUMNS), crate::html::render(&report));
    assert!(
        text.contains("  privacy   no noise: results are exact; every party's policy allowed it\n"),
        "{text}"
    );
    assert!(page.contains("No noise: results are exact") && text.contains("nothing was charged"));
    assert!(["-DP", "candidates", "epsilon"].iter().all(|word| !text.contains(word) && !page.contains(word)));
}

#[test]
fn counts_released_besides_are_shown() {
    let mut report = samples::registry();
    let ResultView::Lift(view) = &mut report.view else { panic!() };
    for (arm, value) in [("test", "1234"), ("control", "-5")] {
        view.cells[0].counts.push(CountView {
            quantity: "converters".into(),
            arm: Some(arm.into()),
            value: value.into(),
            sigma: Some(3.1623),
            derived: false,
        });
    }
    let text = terminal(&report, USUAL_COLUMNS);
    let lines: Vec<&str> = text.lines().skip(13).take(3).collect();
    assert_lines(
        &lines.join("\n"),
        &[
            "  Also released, test / control                               count   noise sigma",
            "    converters                                           1,234 / -5   3.16",
            "  8 released numbers are in report.html.",
        ],
    );
}

#[test]
fn the_truth_may_lie_outside() {
    let registry = samples::registry();
    let text = lift_table(&[&registry, &samples::hospitals()], Some(-0.000_53), USUAL_COLUMNS);
    assert!(text.ends_with(
        "True difference: -53.0.   Outside the interval of hospitals: chance does that in 5.0 % of runs.\n"
    ));
    let text = lift_table(&[&registry], Some(-0.000_407), USUAL_COLUMNS);
    assert!(text.ends_with("True difference: -40.7.   The interval contains it.   OK\n"));
}

#[test]
fn a_refused_overall_says_why() {
    let mut report = samples::registry();
    let ResultView::Lift(view) = &mut report.view else { panic!() };
    view.cells[0].estimate = None;
    view.cells[0].refused = Some("too few rows".into());
    let text = lift_table(&[&report], Some(0.0), USUAL_COLUMNS);
    assert!(text.contains("    refused: too few rows\n") && text.contains("No interval to compare it with."));
}

/// Nothing that a study or a peer wrote reaches the terminal as a control sequence; lines stay lines.
#[test]
fn hostile_labels_are_shown_as_text() {
    let report = samples::hostile();
    let plain = terminal(&report, USUAL_COLUMNS);
    assert!(!plain.contains(|c: char| c.is_control() && c != '\n'));
    // Besides the shop's: a warning, a count under a heading, and lines of names that wrap.
    assert_eq!(plain.lines().count(), terminal(&samples::shop(), USUAL_COLUMNS).lines().count() + 6);
    assert!(terminal(&samples::shop(), USUAL_COLUMNS).replace("10⁻⁶", "").is_ascii(), "our own words are");
    assert!(plain.lines().all(|line| line.chars().count() <= 200), "{plain}");
}

#[test]
fn no_number_that_is_none_is_printed() {
    let text = terminal(&samples::broken_numbers(), USUAL_COLUMNS);
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    assert!(
        terminal(&samples::stored(), USUAL_COLUMNS)
            .contains("Stored answer of an earlier run: no new noise, no charge.\n")
    );
}

/// What must be read first stands first: engine and hashes come after the result, in text and page.
#[test]
fn what_only_a_checker_needs_comes_last() {
    for report in [samples::shop(), samples::derived(), samples::both()] {
        let text = terminal(&report, USUAL_COLUMNS);
        let (before, behind) = text.split_once("\nHow it was computed\n").expect("a heading");
        for late in ["engine yao", "7c41 09aa 5be2", "rows/s"] {
            assert!(behind.contains(late) && !before.contains(late), "{late}: {text}");
        }
        let page = crate::html::render(&report);
        let (before, behind) = page.split_once(">How it was computed<").expect("a section");
        for late in ["yao", &report.study.full_hash, &report.study.program, "7c41 09aa 5be2", "Cost by stage"]
        {
            assert!(behind.contains(late) && !before.contains(late), "{late}");
        }
    }
}

/// The reason of a refusal is in the text, for each view that has one.
#[test]
fn a_refusal_is_explained_in_the_text() {
    let reason = "refused: the test group has about 412 rows, fewer than the minimum of 1,000: not shown\n";
    assert!(terminal(&samples::shop(), USUAL_COLUMNS).contains(reason));
    let (shop, mut other) = (samples::shop(), samples::shop());
    other.party = "hospitals".into();
    let text = lift_table(&[&shop, &other], None, USUAL_COLUMNS);
    for party in ["registry", "hospitals"] {
        assert!(text.contains(&format!("      refused to {party}: the test group has about 412")), "{text}");
    }
}

/// Columns stand under each other, whatever stages and outputs are called.
#[test]
fn columns_are_as_wide_as_their_names() {
    let text = terminal(&samples::many(), USUAL_COLUMNS);
    let ends = |part: &str| {
        let lines = text.lines().filter(|line| line.contains(part)).map(str::to_owned);
        lines.collect::<Vec<_>>()
    };
    let stages = ends("shop-");
    let rows = |line: &str| line.find(" rows ").or_else(|| line.find(" values ")).expect("a unit");
    assert_eq!(stages.len(), 3);
    assert!(stages.iter().all(|line| rows(line) == rows(&stages[0])), "{text}");
    let mut report = samples::program();
    let ResultView::Program { outputs, .. } = &mut report.view else { panic!() };
    outputs[0].label = "x".repeat(38);
    let text = terminal(&report, USUAL_COLUMNS);
    let end = |part: &str| {
        let line = text.lines().find(|line| line.contains(part)).expect("a line");
        line.find(part).expect("it is there") + part.len()
    };
    assert_eq!([end("10,422"), end("-41"), end("90,000")], [end("value"); 3]);
}

/// Groups of derived numbers, what their intervals cover, and then where the sums are.
#[test]
fn derived_numbers_come_first() {
    let text = terminal(&samples::derived(), USUAL_COLUMNS);
    let shown: Vec<&str> = text.lines().skip(3).take_while(|line| !line.starts_with("  Output")).collect();
    assert_lines(
        &shown[..shown.len() - 1].join("\n"),
        &[
            "  Result                                         value      noise +/-   95 % interval",
            "  Rows",
            "    spent 0 to 10                               10,422             41   [10,381, 10,463]",
            "    spent 10 to 50                               5,031             41   [4,990, 5,072]",
            "    spent 50 to 600                                -12             41   [-53, 29]",
            "  Mean of spent, EUR",
            "    dose = none                                  41.24           0.41   [40.12, 42.36]",
            "    dose = low                                   45.87           0.43   [44.63, 47.12]",
            "    dose = high                         not determined not determined   [0, 500]",
            "  Ratio of spent",
            "    dose = low against dose = none               1.112          0.015   [1.067, 1.159]",
            "      p < 0.0001, Holm 0.00020",
            "    dose = high against dose = none               1.31 not determined",
            "      from 0.0210, upper end not determined by these sums   p 0.090, Holm 0.27",
            "  Needed-to-treat of ill",
            "    dose = low                      61.0 for one fewer            9.0",
            "      from 25.3 for one fewer, through no difference, to 142 for one more   p 0.17, Holm 0.34",
            "    dose = high                     18.4 for one fewer            1.1   13.2 to 29.7 for one fewer",
            "      p < 0.0001, Holm < 0.0001",
            "  Covariance of spent with ill, EUR     not determined not determined   not determined by these sums",
            "      p 1.0, Holm 1.0",
            "  Spent by ill, EUR                          -0.000213       0.000051   [-0.000401, -0.000025]",
            "      p 0.026, Holm 0.104",
            "  Sum of spent, EUR                            712,300          4,100   [708,200, 716,500]",
            "  The 95 % interval covers sampling and noise together: it is for the population that the rows are a sample",
            "    of.",
            "  Of counts and sums it covers noise alone: it is for the rows that there are.",
            "  A number needed to treat is for one fewer or one more with the outcome: fewer is the benefit where the",
            "    outcome is bad, and the harm where it is good.",
            "  Where a number is not determined, the sums with their noise do not tell it.",
            "  A count below 0 is what noise made of a small one.",
            "  A p-value is of no difference or no association, two-sided, by the same interval. Those named Holm are",
            "    adjusted for all such hypotheses of this view, where several statistics of the same groups are one: who",
            "    calls those real that are at most 5 % is wrong about any of them with a chance of at most 5 %.",
            "  13 intervals of 95 % each: expect about 0.65 of them to miss the truth by chance.",
        ],
    );
    let (before, after) = text.split_once("  Output").expect("it has one");
    let sums = "\n  Noised sums from which these are computed (2) are in report.html.\n";
    assert!(after.contains(sums) && !before.contains("customers of both"), "{text}");
    // The sums stand behind everything, by name.
    let (_, computed) = text.split_once("How it was computed\n").expect("a heading");
    let sums = computed.lines().skip_while(|line| !line.contains(wording::BEHIND)).nth(1).expect("a table");
    assert!(sums.trim_start().starts_with("numbers   noise sigma"), "{computed}");
    // A narrow terminal has every number, and no line that is longer.
    let narrow = terminal(&samples::derived(), 80);
    let mut results = narrow.lines().take_while(|line| !line.starts_with("  Output"));
    let long = results.find(|line| line.chars().count() > 80);
    assert!(long.is_none(), "{long:?}: {narrow}");
    assert!(narrow.contains("      from 0.0210, upper end not determined by these sums"), "{narrow}");
}

/// No row is broken where it ends: of tables that are too wide each has its cells behind its name.
#[test]
fn tables_stack_in_narrow_lines() {
    for report in [samples::registry(), samples::hospitals(), samples::program()] {
        let text = terminal(&report, 60);
        let long = |line: &&str| line.chars().count() > 60 && line.split_whitespace().count() > 3;
        assert_eq!(text.lines().find(long), None, "{text}");
    }
    let text = terminal(&samples::shop(), USUAL_COLUMNS).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("of people whom both know: each of them may show more than all people do."),
        "{text}"
    );
    let text = terminal(&samples::registry(), 60);
    assert!(text.contains("\n    95 % interval (chance and noise): [-53.2, -28.4]\n"), "{text}");
}
