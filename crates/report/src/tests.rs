//! What `docs/cli.md` says of the JSON.

use super::*;
use crate::html::samples;
use data::{ArmLeftOut, ColumnReport, IdentifierReport, StepReport};
use serde_json::Value;
use std::collections::BTreeSet;

/// A report in which nothing is absent.
fn whole() -> RunReport {
    let server = ServerInfo { name: "s1".into(), key: "k".into(), saw: "sizes".into() };
    let ResultView::Program { outputs, derived, .. } = samples::derived().view else { panic!("a program's") };
    let lists = vec![ProgramList { label: "l".into(), keys: Vec::new(), others: 0 }];
    let mut report = samples::registry();
    report.servers = Some(ServersInfo {
        members: vec![server],
        security: "malicious".into(),
        transport: "tls".into(),
        device: None,
    });
    report.public = Some(ResultView::Program { outputs, lists, derived });
    report.public_terms = samples::both().public_terms;
    report.broke_off =
        vec![PeerHistory { peer: "hospitals".into(), releases: 1, after_index: 0, after_payment: 1 }];
    let steps = vec![StepReport { step: "trim".into(), changed: 1, first: "line 2".into() }];
    let mut identifier = IdentifierReport::default();
    identifier.steps = steps;
    report.inputs.identifiers = vec![identifier];
    report.inputs.arms_left_out = vec![ArmLeftOut { label: "observed".into(), rows: 7 }];
    report.disclosed.dummies = Some(DummiesInfo {
        epsilon: "1".into(),
        rho: "1/100".into(),
        delta: "0".into(),
        ..DummiesInfo::default()
    });
    report.disclosed.uncovered = vec![MatchLeakage::MatchGraph { to: "registry".into() }];
    report.disclosed.counts = vec![MatchCount { what: "rows".into(), count: 1 }];
    report
}

fn names(value: &Value, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => object.iter().for_each(|(name, value)| {
            all.insert(name.clone());
            names(value, all);
        }),
        Value::Array(list) => list.iter().for_each(|value| names(value, all)),
        _ => {}
    }
}

#[test]
fn every_field_of_a_report_is_in_the_table_of_the_documentation() {
    const PAGE: &str = include_str!("../../../docs/cli.md");
    let table = PAGE.split_once("The JSON is the report").expect("it is there").1;
    let table = table.split_once("\n## ").expect("a section follows").0;
    let mut all = BTreeSet::new();
    names(&serde_json::to_value(whole()).unwrap(), &mut all);
    assert!(all.len() > 80 && all.contains("after_payment"), "{all:?}");
    let missing: Vec<&String> = all.iter().filter(|name| !table.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/cli.md does not name {missing:?}");
}

/// What is passed on holds the public view and nothing of one party; and the same whoever's report it is of.
#[test]
fn a_public_result_is_the_same_at_all_parties() {
    let mut own = samples::both();
    own.warnings.push("the ledger of hospitals went back".into());
    let other = RunReport {
        party: "hospitals".into(),
        role: "advertiser".into(),
        view: own.public.clone().expect("it has one"),
        privacy: Privacy { spent: 0.7, attempt: None, ..own.privacy.clone() },
        own_warnings: vec!["620 events of 413 identifiers were cut: more than max_events".into()],
        seconds: 1.0,
        bytes: 7,
        guarantee: Vec::new(),
        settings: "ferret".into(),
        ..own.clone()
    };
    let made = [&own, &other].map(|report| {
        let public = PublicReport::of(report).expect("a public result");
        [
            public_to_json(&public).expect("JSON"),
            summary::public(&public, summary::USUAL_COLUMNS),
            html::render_public(&public),
        ]
    });
    assert_eq!(made[0], made[1]);
    for text in &made[0] {
        for named in
            ["973", "401,974", "401974", "402,263", "402263", "1,013", "724", "went back", "bytes", "of 1 on"]
        {
            assert!(!text.contains(named), "{named}: {text}");
        }
        assert!(text.contains(&own.study.full_hash) && text.contains("adding or removing a row"), "{text}");
        assert!(text.contains("hospitals") && text.contains(&own.study.program), "{text}");
    }
    assert!(made[0][1].contains("it costs rho 0.1 (1/10) = (2.15, 10⁻⁶)-DP; attempt 2."), "{}", made[0][1]);
    let none = PublicReport::of(&samples::registry()).expect_err("no public result");
    assert!(none.to_string().contains("no public result") && matches!(none.kind(), base::Fault::Input(_)));
    let old = RunReport { public_terms: None, ..own };
    assert!(PublicReport::of(&old).expect_err("no terms").to_string().contains("earlier version"));
}

/// A public index names nobody's row, but where identifiers are public; an exact result is not called noised.
#[test]
fn a_public_result_names_no_row_and_promises_no_noise_that_is_not_there() {
    let mut report = samples::both();
    let output = ProgramOutput {
        label: "the worst".into(),
        value: "3".into(),
        sigma: None,
        noised: false,
        mixed: false,
        made_up: false,
        key: Some("c136".into()),
        unit: String::new(),
        scale: 1,
    };
    report.public =
        Some(ResultView::Program { outputs: vec![output], lists: Vec::new(), derived: Vec::new() });
    if let Some(terms) = &mut report.public_terms {
        (terms.epsilon, terms.delta) = (None, None);
    }
    let texts = |report: &RunReport| {
        let public = PublicReport::of(report).expect("a public result");
        [
            public_to_json(&public).expect("JSON"),
            summary::public(&public, summary::USUAL_COLUMNS),
            html::render_public(&public),
        ]
    };
    for text in texts(&report) {
        assert!(!text.contains("c136") && !text.contains("nobody knows the noise"), "{text}");
    }
    assert!(texts(&report)[1].contains("it is exact"));
    report.disclosed.public_keys = true;
    assert!(texts(&report)[0].contains("c136"));
}

/// Exact numbers of own rows stand under their own heading at the end, with nothing public near them.
#[test]
fn own_numbers_stand_apart_from_the_public_result() {
    let report = samples::both();
    let text = summary::terminal(&report, summary::USUAL_COLUMNS);
    let (before, own) = text.split_once("Reading of your own files. For you only\n").expect("a heading");
    assert!(own.contains("973") && !before.contains("973"), "{text}");
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    let own_report = "This report itself is for registry alone";
    assert!(place("What everybody sees") < place(own_report));
    assert!(place(own_report) < place("What registry alone sees"));
    let page = html::render(&report);
    let (before, own) = page.split_once(">Reading of your own files<").expect("a section");
    let own = own.split_once("</section>").expect("it ends").0;
    assert!(own.contains("973") && !before.contains("973") && own.contains("For you only"), "{page}");
    let pasted = "tacit report --public report.json --html public.html";
    assert!(before.contains(pasted) && before.contains("(2.15, 10⁻⁶)-DP"), "{page}");
}

/// What went out is told from what was paid for: a payment is nothing that others have seen.
#[test]
fn what_broke_off_is_said_by_what_went_out() {
    let history = PeerHistory { peer: "works".into(), releases: 2, after_index: 0, after_payment: 0 };
    assert_eq!(
        history.text(),
        "2 releases with works broke off, before this side's share of the result went out"
    );
    let sent = PeerHistory { after_payment: 1, ..history };
    assert_eq!(sent.text(), "2 releases with works broke off, 1 after this side's share went out");
}

/// Among more than two parties the first one counts overlaps, noised by made-up rows or not.
#[test]
fn overlaps_are_told_by_every_report() {
    let mut report = whole();
    assert_eq!(crate::wording::overlaps(&report.disclosed, "registry"), None);
    report.disclosed.rows = vec![5, 6, 7];
    report.disclosed.protocol = "pid".into();
    report.disclosed.size_hidden = false;
    for (noised, how) in [(true, "with made-up rows among them, which is covered"), (false, "have, exactly")]
    {
        if !noised {
            report.disclosed.dummies = None;
        }
        let told = summary::besides(&report);
        let counted = "registry alone also counted, for every set of parties, the identifiers that these";
        assert!(told.contains(counted) && told.contains(how), "{told}");
        assert!(told.contains("and of their union (") && !told.contains("of the match"), "{told}");
    }
    assert!(!crate::wording::sizes(&report.disclosed).contains("matched"));
    let page = crate::html::render(&report);
    assert!(page.contains("size of the union") && !page.contains(">size of the match<"), "{page}");
    assert!(page.contains("identifiers of every set of parties, counted by"));
}

/// Units that were computed before had the name of the run's state in the first reports.
#[test]
fn what_went_before_is_read_from_older_reports_and_told() {
    let failed = r#"{"unit":3,"attempt":1,"cause":"a worker is gone","peer":false}"#;
    let rest = r#""processes":true,"peak_memory_bytes":[]"#;
    let read = |text: String| serde_json::from_str::<WorkersInfo>(&text).unwrap();
    let older = read(format!(r#"{{"units":4,"resumed":2,{rest},"failed":[]}}"#));
    assert_eq!((older.computed_before, older.failed_before), (2, 0));
    assert_eq!(wording::failed_units(&older), None);
    let now = read(format!(r#"{{"units":4,{rest},"failed":[{failed},{failed}],"failed_before":1}}"#));
    let told = wording::failed_units(&now).unwrap();
    assert!(told.starts_with("2 attempts of units failed (2: a worker is gone); 1 of them before"), "{told}");
    assert!(serde_json::to_string(&older).unwrap().contains("\"computed_before\":2"));
    assert!(now.failed.iter().all(|failed| failed.stage == "compute"), "the one stage of before");
    let mut report = samples::derived();
    report.workers = Some(WorkersInfo { match_units: 12, match_done_before: 5, ..now });
    let told = wording::resumed(&report).unwrap();
    assert!(told.contains("in its match, of which 5 of 12 units were done before"), "{told}");
}

/// A stored report of before programs derived anything is read, and its page has its outputs unfolded.
#[test]
fn reports_without_derived_numbers_are_read() {
    let report = samples::derived();
    assert_eq!(from_json(&to_json(&report).unwrap()).unwrap(), report);
    let mut stored = serde_json::to_value(&report).unwrap();
    stored["view"].as_object_mut().unwrap().remove("derived").expect("it is there");
    let read = from_json(&stored.to_string()).unwrap();
    assert_eq!(read.view, samples::program().view);
    assert!(!html::render(&read).contains("<details"));
}

/// Reports of before the numbers of a view were adjusted are read, and adjusted then.
#[test]
fn reports_without_adjusted_numbers_are_read() {
    let report = samples::shop();
    let mut stored = serde_json::to_value(&report).unwrap();
    for cell in stored["view"]["cells"].as_array_mut().unwrap() {
        let cell = cell.as_object_mut().unwrap();
        assert!(cell.remove("holm").is_some() && cell.remove("held_back").is_some());
    }
    assert!(stored["inputs"].get("clamped_part").is_none(), "{}", stored["inputs"]);
    let mut read = from_json(&stored.to_string()).unwrap();
    let ResultView::Lift(view) = &mut read.view else { panic!("a lift report") };
    assert_eq!(view.cells[4].held_back, 0);
    view.cells[4].held_back = 6;
    assert_eq!(read, report);
}

/// A size with made-up rows in it is called that, with what is left in the mean; what an owner knows of it is
/// for the owner.
#[test]
fn sizes_with_made_up_rows_are_said_as_such() {
    let mut report = samples::hospitals();
    (report.disclosed.matched_upper_bound, report.inputs.rows_kept) = (764, 389);
    let exact = summary::terminal(&report, summary::USUAL_COLUMNS);
    assert!(exact.contains("and of the match (764)") && !exact.contains("made-up"), "{exact}");
    let charged = DummiesInfo {
        epsilon: "1/5".into(),
        rho: "1/100".into(),
        delta: "2e-9".into(),
        ..DummiesInfo::default()
    };
    report.disclosed.dummies = Some(charged.clone());
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let older = flat(&summary::terminal(&report, summary::USUAL_COLUMNS));
    assert!(older.contains("of the match (764, made-up ones among them)"), "{older}");
    report.disclosed.dummies = Some(DummiesInfo { in_match: Some(370), in_match_sigma: Some(20), ..charged });
    let (text, page) = (summary::terminal(&report, summary::USUAL_COLUMNS), html::render(&report));
    let about = "764, made-up ones among them: about 394 without them, give or take 40";
    let own = "The size of the match that was disclosed, 764, has made-up rows in it: of this \
               party&#39;s 389 rows no more than these can have matched.";
    let text = flat(&text);
    assert!(text.contains(about) && text.contains(&own.replace("&#39;", "'")), "{text}");
    let (before, behind) = page.split_once(">Reading of your own files<").unwrap();
    assert!(before.contains(about) && !before.contains("389") && behind.contains(own), "{page}");
    for named in ["rows of registry, made-up ones among them", "size of the union, made-up ones among them"] {
        assert!(before.contains(named), "{named}");
    }
}

/// What noise does to numbers is said where it is seen.
#[test]
fn what_noise_does_is_said() {
    let mut report = samples::shop();
    let quiet = html::render(&report);
    for note in ["sum of squares negative", "that of noise alone"] {
        assert!(!quiet.contains(note), "{note}");
    }
    let ResultView::Lift(view) = &mut report.view else { panic!("a lift report") };
    view.cells[0].counts[4].value = "-35567940646".into();
    let rates = view.cells[0].estimate.as_mut().and_then(|estimate| estimate.rates.as_mut()).unwrap();
    rates[0].noise_half_width = rates[0].half_width;
    let page = html::render(&report);
    assert!(page.contains("Noise can make a count, a sum or a sum of squares negative."), "{page}");
    let one = "1 interval of a mean is that of noise alone";
    let except = "so it is taken as nothing. No interval of a difference is.";
    assert!(page.contains(one) && page.contains(except), "{page}");
    let text = summary::terminal(&report, summary::USUAL_COLUMNS);
    assert!(text.contains(one), "{text}");
    // A difference may be negative without that.
    let ResultView::Lift(view) = &mut report.view else { panic!("a lift report") };
    view.cells[0].counts[4].quantity = "centred_tail".into();
    assert!(!html::render(&report).contains("sum of squares negative"));
}

/// Rows that were left out, or counted as something else, are told by reason with their share.
#[test]
fn what_reading_left_out_is_told_by_reason() {
    let mut report = samples::hospitals();
    report.inputs.columns = vec![
        ColumnReport { name: "pressure".into(), missing: 12, ..ColumnReport::default() },
        ColumnReport { name: "cost".into(), range: Some([-50.0, 449.5]), below: 3, above: 40, missing: 0 },
    ];
    let told = [
        "7 rows put together with an earlier row of the same identifier",
        "388 rows that where does not pass (identifier kept, no event)",
        "19 identifiers whose events add up to more than the clamp (3.0 % of those with events; 5.0 % of all \
         value is beyond it)",
        "12 cells of pressure are missing: no line that asks of it counts the row",
        "3 cells of cost are below -50 and count as that",
        "40 cells of cost are above 449.5 and count as that",
    ];
    let text = summary::terminal(&report, 200);
    let (before, own) = text.split_once("Reading of your own files. For you only\n").unwrap();
    for line in told {
        assert!(own.contains(line) && !before.contains(line), "{line}: {text}");
    }
    assert!(html::render(&report).contains("cells of cost are below -50 and count as that"));
}
