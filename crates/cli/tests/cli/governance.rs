//! Keys that take the place of others, rates of runs, and ledgers for an auditor, as their users meet them.

use crate::support::{Pair, command, read, tacit};

/// The advertiser's key in the study.
fn key(pair: &Pair) -> String {
    let checked = tacit(["check", pair.path("study.toml").to_str().unwrap(), "--json"]).fine().json();
    checked["parties"]["advertiser"].as_str().unwrap().to_owned()
}

/// Makes a key that takes the place of another one.
fn succeed(pair: &Pair, old: &str, new: &str) -> String {
    let (old, new) = (pair.path(old), pair.path(new));
    let mut keygen = command(["keygen", "--json"]);
    let made = keygen.arg("--out").arg(&new).arg("--succeeds").arg(&old).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let told: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    told["key"].as_str().unwrap().to_owned()
}

#[test]
fn a_key_that_takes_the_place_of_another_has_spent_what_it_spent() {
    let pair = Pair::csv(400);
    let budget: [&[&str]; 2] = [&["--budget", "0.2"], &[]];
    for done in pair.both(budget) {
        done.fine();
    }
    let (old, study) = (key(&pair), read(&pair.path("study.toml")));
    std::fs::copy(pair.path("advertiser.key"), pair.path("stolen.key")).unwrap();
    let new = succeed(&pair, "advertiser.key", "advertiser-2.key");
    let mut again = command(["keygen", "--out"]);
    let again = again.arg(pair.path("third.key")).arg("--succeeds").arg(pair.path("advertiser.key")).output();
    let again = again.unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains(&format!("has named {new} as its successor")));
    // The old file says so itself, before a study names the new key and before anybody is met.
    let named = format!("has named {new} as its successor: use the file of that key");
    let old_file = pair.path("advertiser.toml");
    for word in ["check", "run"] {
        tacit([word.as_ref(), old_file.as_os_str(), "--spend-anyway".as_ref()]).failed(5, &[&named]);
    }
    // Another study, under the new key: what the old one has spent is spent.
    let with = |key: &str, name: &str| {
        let text = study.replace(&old, key).replace("name = \"generated\"", &format!("name = \"{name}\""));
        std::fs::write(pair.path("study.toml"), text).unwrap();
    };
    with(&new, "again");
    pair.edit("advertiser.toml", "advertiser.key", "advertiser-2.key");
    let [refused, _] = pair.both(budget);
    let took = format!("the key {new} of advertiser has taken the place of {old}");
    assert!(refused.stderr.contains(&took), "{}", refused.stderr);
    assert!(!refused.stderr.contains("for the first time"), "{}", refused.stderr);
    refused.failed(
        5,
        &[&format!("budget: 0.11 of 0.2 spent on lineage publisher by viewer {new} (advertiser)")],
    );
    // It runs where the budget pays for both.
    let [first, second] = pair.both([&["--budget", "0.3"], &[]]);
    assert_eq!(first.fine().json()["privacy"]["spent"], 0.22);
    second.fine();
    let ledger = pair.path("publisher.ledger");
    let shown = tacit(["ledger".as_ref(), "show".as_ref(), ledger.as_os_str()]).fine().stdout;
    assert!(shown.contains(&format!("{old}, whose place {new} has taken (heard on 20")), "{shown}");
    // The old one has had its time, at either side.
    with(&old, "third");
    pair.edit("advertiser.toml", "advertiser-2.key", "advertiser.key");
    for done in pair.both([&["--budget", "9"], &[]]) {
        done.failed(5, &[&format!("has named {new} as its successor"), &format!("key = \"{new}\"")]);
    }
    // Who stole the old key names another successor, and begins with a ledger of its own.
    let thief = succeed(&pair, "stolen.key", "thief.key");
    with(&thief, "fourth");
    pair.edit("advertiser.toml", "advertiser.key", "thief.key");
    let (ledger, report) = (pair.path("thief.ledger"), pair.path("thief-out"));
    let theirs = ["--ledger", ledger.to_str().unwrap(), "--report", report.to_str().unwrap()];
    let [refused, _] = pair.both([&["--budget", "9"], &theirs]);
    refused.failed(5, &[&format!("{old} named {new} as its successor"), &thief, "a key has one successor"]);
}

#[test]
fn runs_are_limited_and_ledgers_are_audited() {
    let pair = Pair::csv(400);
    let limits: &[&str] = &["--runs", "1/week", "--period", "90d", "--period-budget", "0.3"];
    for done in pair.both([limits, &[]]) {
        done.fine();
    }
    let file = pair.path("publisher.toml");
    let file = file.to_str().unwrap();
    let ledger = pair.path("publisher.ledger");
    let ledger = ledger.to_str().unwrap();
    let mut run = command(["run", file, "--spend-anyway", "--json"]);
    let late = run.args(limits).output().unwrap();
    assert_eq!(late.status.code(), Some(5));
    let text = String::from_utf8_lossy(&late.stderr);
    assert!(text.contains("policy.runs: 1 runs with advertiser have begun, and 1/week may"), "{text}");
    assert!(text.contains("The next one may begin at 20"), "{text}");
    // What the file says is said by `check`, with what is left of the period.
    let party = read(&pair.path("publisher.toml"));
    let policy = "[policy]\nruns = \"20/day\"\nperiod = \"2w\"\nperiod_budget = 0.15\n";
    std::fs::write(pair.path("publisher.toml"), format!("{party}{policy}")).unwrap();
    pair.edit("study.toml", "name = \"generated\"", "name = \"another\"");
    let poor = tacit(["check", file, "--spend-anyway"]);
    assert!(
        poor.stdout.contains("budget     0.11 of 0.15 in 14 days spent towards advertiser"),
        "{}",
        poor.stdout
    );
    poor.failed(5, &["policy.period_budget: 0.11 of 0.15 in 14 days spent on lineage publisher"]);
    // The ledger, and what an auditor gets of it.
    let verified = tacit(["ledger", "verify", ledger, "--json"]).fine().json();
    assert_eq!(
        (&verified["signed"]["by_all"], &verified["signed"]["not_by_all"]),
        (&1.into(), &1.into()),
        "{verified}"
    );
    let words = tacit(["ledger", "verify", ledger]).fine().stdout;
    assert!(words.contains("Debits that all parties have signed: 1."), "{words}");
    assert!(words.contains("1 for the sizes of a match, which each party charges by itself: nothing to do"));
    let json = tacit(["ledger", "export", ledger]).fine().stdout;
    std::fs::write(pair.path("export.json"), &json).unwrap();
    let export = pair.path("export.json");
    let export = export.to_str().unwrap();
    let told = tacit(["ledger", "verify", export, "--json"]).fine().json();
    assert_eq!(
        (&told["checked"]["signed"]["signatures"], &told["checked"]["debits"]),
        (&2.into(), &2.into())
    );
    assert!(
        tacit(["ledger", "verify", export]).fine().stdout.contains("Every signature in the export holds")
    );
    let halved = json.replace("\"exact_rho\": \"1/10\"", "\"exact_rho\": \"1/20\"");
    std::fs::write(export, halved.replace("\"rho\": \"0.1\"", "\"rho\": \"0.05\"")).unwrap();
    tacit(["ledger", "verify", export]).failed(2, &["the exported ledger was changed", "signed rho 1/10"]);
    // What people read is what was signed.
    std::fs::write(export, json.replace("\"rho\": \"0.1\"", "\"rho\": \"0.01\"")).unwrap();
    tacit(["ledger", "verify", export])
        .failed(2, &["the exported ledger was changed", "says rho 0.01, and exactly it is 0.1"]);
    let csv = tacit(["ledger", "export", ledger, "--csv"]).fine().stdout;
    assert!(csv.starts_with("row,at,lineage,viewers,") && csv.lines().count() == 3, "{csv}");
    assert!(csv.contains("0.3 in 90 days"), "{csv}");
}

#[test]
fn the_unit_of_privacy_is_printed() {
    let pair = Pair::csv(400);
    let study = pair.path("study.toml");
    let study = study.to_str().unwrap();
    let hash = |text: &str| text.lines().find(|line| line.starts_with("hash")).unwrap().to_owned();
    let before = tacit(["check", study]).fine().stdout;
    assert!(before.contains("unit: one row; the study does not say"), "{before}");
    let text = read(&pair.path("study.toml"));
    std::fs::write(study, format!("{text}\n[privacy]\nunit = \"household\"\n")).unwrap();
    let after = tacit(["check", study]).fine().stdout;
    assert!(after.contains("unit: one household: the study says"), "{after}");
    assert_ne!(hash(&before), hash(&after));
    let plan = tacit(["plan", study, "--rows", "1k"]).fine().stdout;
    assert!(plan.contains("unit: one household"), "{plan}");
    let [report, other] = pair.both([&[], &[]]);
    other.fine();
    let report = report.fine().json();
    assert_eq!(report["privacy"]["unit"], "household");
    assert!(report["guarantee"][0].as_str().unwrap().starts_with("The unit of privacy is one household"));
    std::fs::write(study, format!("{text}\n[privacy]\nunit = \"a\\nb\"\n")).unwrap();
    tacit(["check", study]).failed(2, &["privacy.unit"]);
    std::fs::write(study, format!("{text}\n[privacy]\nunit = \"person: any\"\n")).unwrap();
    tacit(["check", study]).failed(2, &["privacy.unit is \"person: any\"; write what one row stands for"]);
}
