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
        &lift_table(&[&registry, &hospitals], Some(-0.000_407)),
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
        &terminal(&samples::registry()),
        &[
            "1954 poliomyelitis field trial, placebo-control areas",
            "polio-1954, hash 7c41 09aa 5be2   seen by registry (publisher) with hospitals   engine \
             yao   mode sums",
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
            "  All 6 numbers that are shown are in report.html.",
            "",
            "  match            402,263 rows       31.2 s   68.0 MB      12.9 k rows/s",
            "  compute          402,263 rows        7.9 s   27.0 MB      50.9 k rows/s",
            "  release                4 values     0.40 s   1.04 MB        10 values/s",
            "  privacy   rho 0.11 for this view (0.1 release, 0.01 sizes) = (2.26, 1e-6)-DP; noise \
             candidates 64, 63 opened and checked",
            "  ledger    after this result, spent by hospitals: 0.1 of 1 on this party's data",
            "  Learned besides: the sizes of the sets (401,974 and 1,013), of their union (402,263) and of \
             the match (724).",
            "    Semi-honest parties; not reviewed.",
            "  Do not show this report to hospitals: it drew the noise in it and can take it out.",
            "  Do not pass on: this view contains exact numbers.",
            "  Total 39.5 s, 96.0 MB, peak 212 MB",
        ],
    );
}

#[test]
fn groups_and_refusals() {
    assert_lines(
        &lift_table(&[&samples::shop()], None),
        &[
            "  Cent per person                                    what registry sees",
            "    campaign                                                      412.0",
            "    held out                                                      371.0",
            "    difference                                                     41.0",
            "    90 % interval (chance and noise)                       [19.0, 63.0]",
            "    of which noise alone                                   [35.0, 47.0]",
            "    relative                                                11 % higher",
            "    p-value of no difference                                   < 0.0001",
            "  Difference by breakdown",
            "    north                                            61.0  [23.0, 99.0]",
            "    south                                           22.0  [-15.0, 59.0]",
            "  Difference by cohort",
            "    first-time buyers                              -11.0  [-55.0, 33.0]",
            "    members                                                     refused",
        ],
    );
    assert!(terminal(&samples::shop()).contains("50.9 k rows/s   cost not as stated\n"));
}

#[test]
fn a_program() {
    let text = terminal(&samples::program());
    let outputs: Vec<&str> = text.lines().skip(3).take(5).collect();
    assert_lines(
        &outputs.join("\n"),
        &[
            "  Output                                                                                value   noise sigma",
            "    customers of both                                                                  10,422   \
             14.1, made-up rows counted",
            "    sum owed                             -170,141,183,460,469,231,731,687,303,715,884,105,728   4,000",
            "    owed by each                                                                          -41   \
             computed from noised values",
            "    largest \
             limit                                                                      90,000   exact",
        ],
    );
    assert_eq!(lift_table(&[&samples::program()], Some(0.0)), "");
    assert!(text.contains("  Do not pass on: this view contains exact numbers.\n"));
}

/// What was computed from noised values is not exact; what has no noise needs no word about who drew it.
#[test]
fn exact_and_noised_programs_are_told_apart() {
    let mut report = samples::program();
    let ResultView::Program { outputs, .. } = &mut report.view else { panic!() };
    let exact = outputs.pop().expect("the exact output comes last");
    let text = terminal(&report);
    assert!(!text.contains("exact") && text.contains("Do not show this report to hospitals"), "{text}");
    report.view = ResultView::Program { outputs: vec![exact], lists: Vec::new(), derived: Vec::new() };
    let text = terminal(&report);
    assert!(text.contains("contains exact numbers") && !text.contains("Do not show"), "{text}");
    assert!(!crate::html::render(&report).contains("drew the noise"));
    let privacy = &mut report.privacy;
    (privacy.epsilon, privacy.delta, privacy.total, privacy.candidates) = (None, None, None, None);
    let (text, page) = (terminal(&report), crate::html::render(&report));
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
    let text = terminal(&report);
    let lines: Vec<&str> = text.lines().skip(13).take(3).collect();
    assert_lines(
        &lines.join("\n"),
        &[
            "  Also released, test / control                               count   noise sigma",
            "    people with a conversion                             1,234 / -5   3.16",
            "  All 8 numbers that are shown are in report.html.",
        ],
    );
}

#[test]
fn the_truth_may_lie_outside() {
    let registry = samples::registry();
    let text = lift_table(&[&registry, &samples::hospitals()], Some(-0.000_53));
    assert!(text.ends_with(
        "True difference: -53.0.   Outside the interval of hospitals: chance does that in 5.0 % of runs.\n"
    ));
    let text = lift_table(&[&registry], Some(-0.000_407));
    assert!(text.ends_with("True difference: -40.7.   The interval contains it.   OK\n"));
}

#[test]
fn a_refused_overall_says_why() {
    let mut report = samples::registry();
    let ResultView::Lift(view) = &mut report.view else { panic!() };
    view.cells[0].estimate = None;
    view.cells[0].refused = Some("too few rows".into());
    let text = lift_table(&[&report], Some(0.0));
    assert!(
        text.contains("refused to registry: too few rows\n")
            && text.contains("No interval to compare it with.")
    );
}

/// Nothing that a study or a peer wrote reaches the terminal as a control sequence; lines stay lines.
#[test]
fn hostile_labels_are_shown_as_text() {
    let report = samples::hostile();
    let plain = terminal(&report);
    assert!(!plain.contains(|c: char| c.is_control() && c != '\n'));
    // Besides the shop's: a warning, a count under a heading, and lines of names that wrap.
    assert_eq!(plain.lines().count(), terminal(&samples::shop()).lines().count() + 6);
    assert!(terminal(&samples::shop()).is_ascii(), "our own words are");
    assert!(plain.lines().all(|line| line.chars().count() <= 200), "{plain}");
}

#[test]
fn no_number_that_is_none_is_printed() {
    let text = terminal(&samples::broken_numbers());
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    assert!(
        terminal(&samples::stored()).contains("Stored answer of an earlier run: no new noise, no charge.\n")
    );
}

/// Columns stand under each other, whatever stages and outputs are called.
#[test]
fn columns_are_as_wide_as_their_names() {
    let text = terminal(&samples::many());
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
    let text = terminal(&report);
    let end = |part: &str| {
        let line = text.lines().find(|line| line.contains(part)).expect("a line");
        line.find(part).expect("it is there") + part.len()
    };
    assert_eq!([end("10,422"), end("-41"), end("90,000")], [end("value"); 3]);
}

/// Groups of derived numbers, what their intervals cover, and then the sums.
#[test]
fn derived_numbers_come_first() {
    let text = terminal(&samples::derived());
    let shown: Vec<&str> = text.lines().skip(3).take_while(|line| !line.starts_with("  Output")).collect();
    assert_lines(
        &shown[..shown.len() - 2].join("\n"),
        &[
            "  Result                                              value      noise +/-   95 % interval",
            "  Rows",
            "    spent 0 to 10                                    10,422             41   [10,381, 10,463]",
            "    spent 10 to 50                                    5,031             41   [4,990, 5,072]",
            "    spent 50 to 600                                     -12             41   [-53, 29]",
            "  Mean of spent, EUR",
            "    dose = none                                       41.24           0.41   [40.12, 42.36]",
            "    dose = low                                        45.87           0.43   [44.63, 47.12]",
            "    dose = high                              not determined not determined   [0, 500]",
            "  Ratio of spent",
            "    dose = low against dose = none                    1.112          0.015   [1.067, 1.159]",
            "    dose = high against dose = none                    1.31 not determined",
            "      from 0.0210, upper end not determined by these sums",
            "  Needed-to-treat of ill",
            "    dose = low                           61.0 for one fewer            9.0",
            "      from 25.3 for one fewer, through no difference, to 142 for one more",
            "    dose = high                          18.4 for one fewer            1.1   13.2 to 29.7 for one fewer",
            "  Covariance of spent with ill, EUR          not determined not determined   not determined by these sums",
            "  Spent by ill, EUR                               -0.000213       0.000051   [-0.000401, -0.000025]",
            "  Sum of spent, EUR                                 712,300          4,100   [708,200, 716,500]",
            "  The 95 % interval covers sampling and noise together: it is for the population that the rows are a sample",
            "    of.",
            "  Of counts and sums it covers noise alone: it is for the rows that there are.",
            "  A number needed to treat is for one fewer or one more with the outcome: fewer is the benefit where the",
            "    outcome is bad, and the harm where it is good.",
            "  Where a number is not determined, the sums with their noise do not tell it.",
            "  13 intervals of 95 % each: expect about 0.65 of them to miss the truth by chance.",
            "",
            "  Noised sums from which these are computed                                                value   noise sigma",
        ],
    );
}
