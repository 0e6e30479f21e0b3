//! Reports with fixed numbers, for the tests and for `examples/report_page.rs`.

use crate::{
    CellView, CountView, DerivedView, Disclosure, FORMAT, LiftView, MatchCount, PartyInfo, Privacy,
    ProgramOutput, PublicTerms, ResultView, RunReport, ServerInfo, ServersInfo, SpentBy, StageReport,
    StudyInfo,
};
use base::Cost;
use data::InputReport;
use privacy::PrivacyTotal;
use release::modes::{ArmRate, LiftEstimate};

fn estimate(means: [f64; 2], half: f64, noise: f64) -> LiftEstimate {
    let lift = means[0] - means[1];
    let rate = |mean: f64| ArmRate { mean, half_width: 0.7 * half, noise_half_width: 0.7 * noise };
    LiftEstimate {
        lift,
        interval: [lift - half, lift + half],
        noise_interval: [lift - noise, lift + noise],
        standard_error: half / 1.96,
        p_value: if lift.abs() > half { 2e-11 } else { 0.21 },
        relative: Some(lift / means[1]),
        rates: Some(means.map(rate)),
    }
}

fn counts(values: [[&str; 2]; 3], exact_rows: bool) -> Vec<CountView> {
    let mut counts = Vec::new();
    for (quantity, values, sigma) in
        [("rows", values[0], 3.16), ("value", values[1], 2.427), ("squares", values[2], 5.774)]
    {
        for (arm, value) in ["test", "control"].into_iter().zip(values) {
            let sigma = (quantity != "rows" || !exact_rows).then_some(sigma);
            counts.push(CountView {
                quantity: quantity.into(),
                derived: false,
                arm: Some(arm.into()),
                value: value.into(),
                sigma,
            });
        }
    }
    counts
}

fn cell(family: &str, label: &str, estimate: Option<LiftEstimate>, counts: Vec<CountView>) -> CellView {
    let refused = estimate
        .is_none()
        .then(|| "the test group has about 412 rows, fewer than the minimum of 1,000: not shown".to_owned());
    let held_back = if refused.is_some() { 6 } else { 0 };
    CellView {
        family: family.into(),
        label: label.into(),
        column: None,
        estimate,
        holm: None,
        refused,
        held_back,
        counts,
    }
}

fn stage(name: &str, seconds: f64, rows: u64, bytes_sent: [u64; 2]) -> StageReport {
    let price = Cost { and_gates: rows * 40, ots: rows * 30, rounds: 12, sent: bytes_sent.to_vec() };
    let (bytes_sent, before) = (bytes_sent.to_vec(), None);
    StageReport { name: name.into(), seconds, rows, bytes_sent, price, price_held: true, before }
}

/// The polio trial as the registry sees it.
pub fn registry() -> RunReport {
    let overall = counts([["200745", "201229"], ["32", "114"], ["30", "120"]], true);
    adjusted(RunReport {
        format: FORMAT.into(),
        study: StudyInfo {
            name: "polio-1954".into(),
            title: "1954 poliomyelitis field trial, placebo-control areas".into(),
            kind: "lift".into(),
            hash: "7c41 09aa 5be2".into(),
            full_hash: format!("7c4109aa5be2{}", "0".repeat(52)),
            part_of: None,
            program: "9d".repeat(32),
        },
        party: "registry".into(),
        role: "publisher".into(),
        parties: vec![
            PartyInfo {
                name: "registry".into(),
                key: "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11".into(),
                rows: 401_974,
            },
            PartyInfo {
                name: "hospitals".into(),
                key: "tacit1:b07e66d2915c4fa3a2d8017b34ce9f50".into(),
                rows: 1_013,
            },
        ],
        engine: "yao".into(),
        settings: String::new(),
        servers: None,
        mode: "sums".into(),
        shards: 2,
        workers: None,
        public: None,
        public_terms: None,
        shown_to: vec!["hospitals".into(), "registry".into()],
        view: ResultView::Lift(LiftView {
            test: "vaccine".into(),
            control: "placebo".into(),
            clamp: 1,
            unit: None,
            scale: 1,
            confidence: 0.95,
            lower_is_better: true,
            cells: vec![cell(
                "overall",
                "overall",
                Some(estimate([0.000_159, 0.000_567], 0.000_124, 0.000_034)),
                overall,
            )],
        }),
        privacy: Privacy {
            unit: None,
            rho: "1/10".into(),
            rho_value: 0.1,
            epsilon: Some(2.1419),
            delta: Some(1e-6),
            total: Some(PrivacyTotal {
                size_charges: 1,
                since: None,
                rho: "11/100".into(),
                rho_value: 0.11,
                sizes: "1/100".into(),
                epsilon: 2.2562,
                delta: 1e-6,
            }),
            lineage: Some("registry".into()),
            spent: 0.1,
            budget: 1.0,
            viewers: vec![SpentBy { viewer: "hospitals".into(), rho: 0.1, delta: "0".into() }],
            candidates: Some(64),
            off: 0.0,
            attempt: None,
        },
        inputs: InputReport {
            rows_read: 402_118,
            rows_kept: 401_974,
            without_opportunity: 144,
            memory: 14_470_000,
            ..InputReport::default()
        },
        disclosed: Disclosure {
            rows: vec![401_974, 1_013],
            union: 402_263,
            matched_upper_bound: 724,
            protocol: "pid".into(),
            ..Disclosure::default()
        },
        guarantee: vec![
            "The view is (2.26, 10⁻⁶)-differentially private for the outcome of any one person at the \
             hospitals."
                .into(),
            "Not covered: the set sizes and the size of the match, which both sides learned exactly.".into(),
        ],
        stages: vec![
            stage("match", 31.2, 402_263, [41_200_000, 26_800_000]),
            stage("compute", 7.9, 402_263, [24_100_000, 2_900_000]),
            stage("release", 0.4, 12, [900_000, 140_000]),
        ],
        seconds: 39.5,
        bytes: 96_040_000,
        peak_memory_bytes: 212_000_000,
        cpu_seconds: 37.25,
        stored: false,
        warnings: vec![],
        own_warnings: vec![],
        broke_off: vec![],
    })
}

/// The report with p-values adjusted.
fn adjusted(mut report: RunReport) -> RunReport {
    for view in [Some(&mut report.view), report.public.as_mut()].into_iter().flatten() {
        if let ResultView::Lift(view) = view {
            view.adjust();
        }
    }
    report
}

/// The same as the hospitals see it: every number noised.
pub fn hospitals() -> RunReport {
    let mut report = registry();
    report.party = "hospitals".into();
    report.role = "advertiser".into();
    report.inputs = InputReport {
        rows_read: 1_020,
        rows_kept: 1_013,
        duplicates_merged: 7,
        filtered: 388,
        over_clamp: 19,
        clamped_part: 0.05,
        events_seen: 632,
        without_events: 381,
        memory: 40_000,
        ..InputReport::default()
    };
    let ResultView::Lift(view) = &mut report.view else { unreachable!("a lift report") };
    let overall = counts([["200741", "201233"], ["37", "116"], ["41", "109"]], false);
    view.cells = vec![cell(
        "overall",
        "overall",
        Some(estimate([0.000_184, 0.000_576], 0.000_134, 0.000_049)),
        overall,
    )];
    adjusted(report)
}

/// A shop's study with a unit, a breakdown and cohorts, one of them refused.
pub fn shop() -> RunReport {
    let mut report = registry();
    report.study.name = "spring-lift".into();
    report.study.title = "Spring campaign: purchases within 30 days".into();
    let sums = |n: &str, s: &str| counts([[n, n], [s, s], ["912345678", "893456789"]], false);
    report.view = ResultView::Lift(LiftView {
        test: "campaign".into(),
        control: "held out".into(),
        clamp: 20_000,
        unit: Some("cent".into()),
        scale: 1,
        confidence: 0.9,
        lower_is_better: false,
        cells: vec![
            cell(
                "overall",
                "overall",
                Some(estimate([412.0, 371.0], 22.0, 6.0)),
                sums("1048576", "432013312"),
            ),
            cell(
                "breakdown",
                "north",
                Some(estimate([430.0, 369.0], 38.0, 12.0)),
                sums("500123", "215052890"),
            ),
            cell(
                "breakdown",
                "south",
                Some(estimate([395.0, 373.0], 37.0, 11.0)),
                sums("498901", "197065895"),
            ),
            cell(
                "cohort",
                "first-time buyers",
                Some(estimate([210.0, 221.0], 44.0, 20.0)),
                sums("120442", "25292820"),
            ),
            cell("cohort", "members", None, vec![]),
        ],
    });
    report.warnings = vec!["1 of 5 groups was refused because it is too small.".into()];
    report.stages[1].price_held = false;
    adjusted(report)
}

/// A program's report with values of any size.
pub fn program() -> RunReport {
    let mut report = registry();
    report.study.kind = "program".into();
    report.study.title = "How many of our customers overlap, and what they owe".into();
    report.mode = "program".into();
    let output = |label: &str, value: &str, sigma: Option<&str>| ProgramOutput {
        label: label.into(),
        value: value.into(),
        sigma: sigma.map(str::to_owned),
        noised: sigma.is_some() || label == "owed by each",
        mixed: false,
        made_up: label == "customers of both",
        key: None,
        unit: if label.contains("owed") { "EUR".into() } else { String::new() },
        scale: if label == "sum owed" { 100 } else { 1 },
    };
    report.view = ResultView::Program {
        outputs: vec![
            output("customers of both", "10422", Some("14.1")),
            output("sum owed", "-170141183460469231731687303715884105728", Some("4000.000000")),
            output("owed by each", "-41", None),
            output("largest limit", "90000", None),
        ],
        lists: Vec::new(),
        derived: Vec::new(),
    };
    report
}

/// What a question's program derives, of every kind, with the sums behind it and an exact output beside it.
pub fn derived() -> RunReport {
    let mut report = program();
    report.study.title = "Spending and illness by dose".into();
    let number = |label: &str, [statistic, unit]: [&str; 2], value: Option<f64>, noise: Option<f64>, ends| {
        let (label, statistic, unit) = (label.into(), statistic.into(), unit.into());
        let (p_value, holm) = (None, None);
        let range = None;
        DerivedView {
            label,
            statistic,
            unit,
            value,
            intervals: ends,
            level: 0.95,
            noise,
            range,
            p_value,
            holm,
        }
    };
    let closed = |low: f64, high: f64| vec![[Some(low), Some(high)]];
    let (count, mean, treat) = (["total", ""], ["mean", "EUR"], ["needed-to-treat", ""]);
    let derived = vec![
        number("rows, spent 0 to 10", count, Some(10_422.0), Some(41.2), closed(10_380.8, 10_463.2)),
        number("rows, spent 10 to 50", count, Some(5_031.0), Some(41.2), closed(4_989.8, 5_072.2)),
        number("rows, spent 50 to 600", count, Some(-12.0), Some(41.2), closed(-53.2, 29.2)),
        number("mean of spent, dose = none", mean, Some(41.237), Some(0.412), closed(40.118, 42.356)),
        number("mean of spent, dose = low", mean, Some(45.871), Some(0.431), closed(44.627, 47.115)),
        number("mean of spent, dose = high", mean, None, None, closed(0.0, 500.0)),
        number(
            "ratio of spent, dose = low against dose = none",
            ["ratio", ""],
            Some(1.1124),
            Some(0.0152),
            closed(1.0671, 1.1593),
        ),
        number(
            "ratio of spent, dose = high against dose = none",
            ["ratio", ""],
            Some(1.31),
            None,
            vec![[Some(0.021), None]],
        ),
        number("needed-to-treat of ill, dose = low", treat, Some(-61.0), Some(9.0), {
            vec![[None, Some(-25.31)], [Some(142.0), None]]
        }),
        number("needed-to-treat of ill, dose = high", treat, Some(-18.4), Some(1.1), closed(-29.7, -13.2)),
        number("covariance of spent with ill", ["covariance", "EUR"], None, None, vec![[None, None]]),
        number("spent by ill", ["coefficient", "EUR"], Some(-0.000_213), Some(0.000_051), {
            closed(-0.000_401, -0.000_025)
        }),
        number("sum of spent", ["total", "EUR"], Some(712_345.67), Some(4_123.0), {
            closed(708_222.67, 716_468.67)
        }),
    ];
    let ResultView::Program { derived: of_view, .. } = &mut report.view else { unreachable!("a program's") };
    *of_view = derived;
    let tests = [
        (6, 0.000_04, 0.000_2),
        (7, 0.09, 0.27),
        (8, 0.17, 0.34),
        (9, 1e-6, 6e-6),
        (10, 1.0, 1.0),
        (11, 0.026, 0.104),
    ];
    for (at, p_value, holm) in tests {
        (of_view[at].p_value, of_view[at].holm) = (Some(p_value), Some(holm));
    }
    report
}

fn terms() -> PublicTerms {
    PublicTerms {
        rho: "1/10".into(),
        rho_value: 0.1,
        epsilon: Some(2.1419),
        delta: Some(1e-6),
        off: 1e-12,
        unit: Some("child".into()),
        attempt: Some(2),
        guarantee: vec!["The noise is calibrated for adding or removing a row.".into()],
    }
}

/// What everybody sees of a study, where the registry has a view of its own as well.
pub fn both() -> RunReport {
    let mut report = registry();
    let ResultView::Lift(view) = hospitals().view else { unreachable!("a lift report") };
    report.public = Some(ResultView::Lift(view));
    report.public_terms = Some(terms());
    report.own_warnings =
        vec!["the control arm (placebo) of breakdown north has 973 rows, and no result is shown".into()];
    report.shown_to = vec!["everybody".into(), "registry".into()];
    report.privacy.candidates = None;
    report
}

/// The same of a study with groups: other numbers in every cell.
pub fn both_by_groups() -> RunReport {
    let mut report = shop();
    report.public = Some(report.view.clone());
    report.privacy.candidates = None;
    let ResultView::Lift(view) = &mut report.view else { unreachable!("a lift report") };
    for (cell, step) in view.cells.iter_mut().zip(1..) {
        let moved = f64::from(step);
        cell.estimate = cell
            .estimate
            .map(|old| estimate([old.lift + 360.0 + moved, 360.0 - moved], 17.0 + moved, 3.0 + moved));
        for (count, place) in cell.counts.iter_mut().zip(1..) {
            count.value = (70_000 + 100 * step + place).to_string();
        }
    }
    adjusted(report)
}

/// A program with outputs for all and for one party.
pub fn both_of_a_program() -> RunReport {
    let mut report = program();
    let ResultView::Program { outputs, .. } = &mut report.view else { unreachable!("a program's") };
    let public = outputs.split_off(2);
    report.public = Some(ResultView::Program { outputs: public, lists: Vec::new(), derived: Vec::new() });
    report
}

/// A program that derives for everybody and for one party: the same numbers of other sums.
pub fn both_derived() -> RunReport {
    let mut report = derived();
    (report.public, report.public_terms) = (Some(report.view.clone()), Some(terms()));
    report.privacy.candidates = None;
    let ResultView::Program { derived, .. } = &mut report.view else { unreachable!("a program's") };
    derived.truncate(6);
    derived.iter_mut().for_each(|number| number.value = number.value.map(|value| value + 1.0));
    report
}

/// Hospitals to which a study shows nothing.
pub fn nothing() -> RunReport {
    let mut report = hospitals();
    let ResultView::Lift(view) = &mut report.view else { unreachable!("a lift report") };
    view.cells.clear();
    report.shown_to = vec!["registry".into()];
    report
}

/// Sixteen parties and four servers, with what the first party counted in the match.
pub fn many() -> RunReport {
    let mut report = program();
    let key = report.parties[0].key.clone();
    let name = |i: u64| format!("internet-provider-of-district-{i}");
    report.parties = (1..=16).map(|i| PartyInfo { name: name(i), key: key.clone(), rows: i }).collect();
    let server = |i: u64| ServerInfo {
        name: format!("server-{i}"),
        key: key.clone(),
        saw: "keyed hashes of the identifiers, and so which rows of different parties are equal, not whose \
              they are; the sizes"
            .into(),
    };
    report.servers = Some(ServersInfo {
        members: (1..=4).map(server).collect(),
        security: "malicious".into(),
        transport: "tls".into(),
        device: None,
    });
    report.party = name(1);
    report.role.clone_from(&report.party);
    report.settings = "softspoken:4, shallow circuit: measured 369 Mb/s, 0.0 ms".into();
    let ResultView::Program { outputs, .. } = &mut report.view else { unreachable!("a program's") };
    outputs[0].label = format!("identifiers that exactly {}, {} have", name(1), name(2));
    outputs[1].label = format!("identifiers that exactly {}, {} have", name(1), name(3));
    outputs[3].key = Some("peer-00377".into());
    let sets = (2..=16).map(|last| (1..=last).map(name).collect::<Vec<_>>().join(", "));
    report.disclosed.counts = sets
        .zip(1..)
        .map(|(set, count)| MatchCount { what: format!("identifiers that exactly {set} have"), count })
        .collect();
    for (stage, step) in report.stages.iter_mut().zip(1..) {
        stage.bytes_sent = (1..=20).map(|sender| 1_000_000 * sender + step).collect();
        stage.name = format!("shop-{step}/{}", stage.name);
    }
    report
}

/// Labels and names chosen to break a page or a terminal.
pub fn hostile() -> RunReport {
    let mut report = shop();
    let script = "<script>alert('x')</script>";
    report.study.title = format!("{script} & \"quotes\" \u{202e}gnp.exe");
    report.party = "<b onmouseover=\"x\">".into();
    report.parties[0].name = script.into();
    report.engine = "]]><img src=x>".into();
    report.settings = "<svg onload=x>".into();
    report.guarantee.push("<iframe src='//x'/>\u{0}\u{1b}[31m".into());
    report.warnings.push("&amp; <a href=\"javascript:x\">".into());
    let ResultView::Lift(view) = &mut report.view else { unreachable!("a lift report") };
    view.test = format!("\u{1b}[31m{script}");
    view.control = "\"'><svg onload=x>".into();
    view.unit = Some("</style>".into());
    view.cells[1].label = "very long ".repeat(200);
    view.cells[2].label = "\u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{645}\u{631}\u{62d}\u{628}\u{627}".into();
    view.cells[3].label = "two\nlines\t\u{2028}".into();
    view.cells[4].refused = Some("<!-- refused".into());
    view.cells[0].counts[0].quantity = "<td>".into();
    view.cells[0].counts[0].value = "1<2".into();
    report
}

/// Numbers that are none: what a broken or extreme run might hold.
pub fn broken_numbers() -> RunReport {
    let mut report = shop();
    let ResultView::Lift(view) = &mut report.view else { unreachable!("a lift report") };
    let nan = f64::NAN;
    for (cell, value) in view.cells.iter_mut().zip([nan, f64::INFINITY, -1e300, 1e-300]) {
        let rate = ArmRate { mean: value, half_width: value, noise_half_width: value };
        cell.estimate = Some(LiftEstimate {
            lift: value,
            interval: [-value, value],
            noise_interval: [value; 2],
            standard_error: value,
            p_value: value,
            relative: Some(value),
            rates: Some([rate; 2]),
        });
        cell.counts.iter_mut().for_each(|count| count.sigma = Some(value));
    }
    let privacy = &mut report.privacy;
    (privacy.epsilon, privacy.delta, privacy.spent, privacy.budget) =
        (Some(f64::INFINITY), Some(nan), nan, 0.0);
    if let Some(total) = &mut privacy.total {
        (total.rho_value, total.epsilon, total.delta) = (nan, f64::INFINITY, nan);
    }
    report.stages[0].seconds = nan;
    report.stages[1].bytes_sent = vec![u64::MAX; 2];
    (report.seconds, report.cpu_seconds, report.bytes) = (f64::INFINITY, nan, u64::MAX);
    adjusted(report)
}

/// The stored answer of an earlier run: nothing was computed.
pub fn stored() -> RunReport {
    let mut report = registry();
    (report.stored, report.stages, report.seconds, report.bytes) = (true, vec![], 0.01, 0);
    report
}
