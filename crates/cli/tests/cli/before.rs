//! What `tacit check` and `tacit plan` say before anything is spent.

use crate::support::{Pair, tacit};

/// What readers look for comes in this order, and what numbers rest on comes last.
#[test]
fn check_says_first_whether_this_side_is_ready_and_what_it_would_see() {
    let pair = Pair::csv(4000);
    let party = pair.path("advertiser.toml").display().to_string();
    let shown = tacit(["check", &party]).fine().stdout;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], format!("This side is ready: tacit run {party}"));
    let first = |start: &str| {
        lines.iter().position(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {shown}"))
    };
    let order = ["study ", "hash ", "effect ", "budget ", "data ", "revealed ", "besides ", "privacy "];
    let places = order.map(first);
    assert!(places.is_sorted(), "{places:?}: {shown}");
    assert!(lines.last().unwrap().starts_with("assumed ") && first("assumed ") > first("stage "), "{shown}");
    // The mean is that of this party's own file.
    assert!(shown.contains("cent per person on, in 80 of 100 such studies"), "{shown}");
    assert!(
        shown.contains("by this party's file, if everybody in it is one of 4,000 of the publisher"),
        "{shown}"
    );
    // The clamp is 100: what half and double would detect, each beside the mean that it leaves.
    for part in ["half the clamp (50 cent) would detect ", "double the clamp (200 cent) would detect "] {
        assert!(shown.contains(part), "{shown}");
    }
    let effects = lines.iter().filter(|line| line.starts_with("effect "));
    assert!(effects.clone().count() > 1 && effects.clone().all(|line| !line.contains("e-")), "{shown}");
    // Nobody knows it at the other side.
    let publisher = pair.path("publisher.toml").display().to_string();
    let shown = tacit(["check", &publisher]).fine().stdout;
    let why = "none is stated: it hangs on the mean outcome of the control arm, and only the data of \
               advertiser have outcomes: ask there, and say it with --mean (--mean 0.5 is 0.5 cent per \
               person)";
    assert!(shown.contains(why), "{shown}");
    let told = tacit(["check", &publisher, "--mean", "8.5", "--rows", "4k,4k"]).fine().stdout;
    assert!(told.contains("mean outcome of the control arm of 8.5, as told"), "{told}");
    let said = tacit(["check", &party, "--json"]).fine().json();
    assert_eq!(said["budget"]["towards"][0]["left"], "0.89", "{said}");
}

/// The file's estimate is the mean of what its events add up to, and the larger the fewer people there are.
#[test]
fn the_effect_is_that_of_ones_own_outcomes() {
    let pair = Pair::csv(4000);
    let party = pair.path("advertiser.toml").display().to_string();
    let csv = std::fs::read_to_string(pair.path("advertiser.csv")).unwrap();
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let place = |name: &str| head.iter().position(|cell| *cell == name).unwrap();
    let [when, amount] = ["bought", "amount"].map(place);
    let mut events = std::collections::BTreeMap::<String, Vec<[u64; 2]>>::new();
    for line in csv.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let event = [when, amount].map(|at| cells[at].parse::<u64>().unwrap_or(0));
        events.entry(cells[0].trim().to_lowercase()).or_default().push(event);
    }
    let total = |mut events: Vec<[u64; 2]>| {
        events.sort_by_key(|[when, _]| *when);
        events.iter().take(4).map(|[_, amount]| amount).sum::<u64>().min(100)
    };
    let sum: u64 = events.into_values().map(total).sum();
    let mean = page::numbers::short(sum as f64 / 8000.0, 4);
    let said = tacit(["check", &party, "--rows", "8k,4k", "--json"]).fine().json();
    let told = said["plan"]["assumptions"]["mean_outcome"].as_str().unwrap();
    assert!(told.starts_with(&format!("{mean}, by this party's file")), "{told} {mean}");
    let effect = |rows: &str| {
        let said = tacit(["check", &party, "--rows", rows, "--json"]).fine().json();
        said["plan"]["public_effect"].as_f64().unwrap()
    };
    assert!(effect("8k,4k") < effect("4k,4k"));
}

#[test]
fn check_takes_the_flags_of_run() {
    let pair = Pair::csv(300);
    let party = pair.path("publisher.toml").display().to_string();
    let other = pair.path("other.csv").display().to_string();
    let csv = std::fs::read_to_string(pair.path("publisher.csv")).unwrap();
    let fewer: Vec<&str> = csv.lines().take(201).collect();
    std::fs::write(&other, fewer.join("\n") + "\n").unwrap();
    let flags = ["check", &party, "--data", &other, "--budget", "3", "--spend-anyway", "--json"];
    let said = tacit(flags).fine().json();
    assert_eq!(
        (&said["inputs"]["rows_read"], &said["budget"]["towards"][0]["budget"]),
        (&200.into(), &"3".into())
    );
    let study = pair.path("study.toml").display().to_string();
    tacit(["check", &study, "--data", &other]).failed(2, &["is a study file", "--study"]);
    tacit(["check", &study, "--peer", "their.toml"]).failed(2, &["tacit check --peer-study FILE"]);
    let [identity, ledger] =
        ["publisher.key", "publisher.ledger"].map(|file| pair.path(file).display().to_string());
    let alone = [
        "check",
        "--study",
        &study,
        "--as",
        "publisher",
        "--identity",
        &identity,
        "--data",
        &other,
        "--ledger",
        &ledger,
        "--lineage",
        "x",
        "--allow-kind",
        "lift",
        "--max-rho",
        "0.5",
        "--budget",
        "1",
        "--listen",
        "127.0.0.1:0",
        "--delta",
        "1e-6",
        "--spend-anyway",
        "--json",
    ];
    assert_eq!(tacit(alone).fine().json()["inputs"]["rows_read"], 200);
    tacit(["check"]).failed(2, &["name a study file or a party file"]);
}

/// Both commands draw it; the advertiser's own file knows what each clamp cuts.
#[test]
fn a_figure_shows_what_each_choice_does() {
    let pair = Pair::csv(4000);
    let [party, study, page] = ["advertiser.toml", "study.toml", "page.html"].map(|name| pair.path(name));
    let page = page.display().to_string();
    tacit(["check", party.to_str().unwrap(), "--figure", &page]).fine();
    let own = std::fs::read_to_string(&page).unwrap();
    for part in [
        "by rho",
        "in % of the mean there, by clamp",
        "<th>in % of the mean</th>",
        "by rows",
        "this study",
        "algorithm1",
        "if everybody in it is one of",
        "not for passing on",
        "<polyline",
    ] {
        assert!(own.contains(part), "{part}");
    }
    let plan = ["plan", study.to_str().unwrap(), "--rows", "4k", "--figure", &page];
    tacit(plan).failed(2, &["say --mean X"]);
    tacit(plan.into_iter().chain(["--mean", "9"])).fine();
    let guessed = std::fs::read_to_string(&page).unwrap();
    // Each clamp's interval stands beside the mean that it leaves.
    let row = own.split("<tr>").find(|row| row.contains(">clamp</td>") && row.contains("(this study)"));
    let cells: Vec<&str> =
        row.unwrap().split("<td").skip(1).map(|cell| cell.split(['<', '>']).nth(1).unwrap()).collect();
    let [half, part] = [2, 4].map(|at| cells[at].trim_end_matches(" %").parse::<f64>().unwrap());
    let mean = own.split("mean outcome: ").nth(1).unwrap().split(' ').next().unwrap().parse::<f64>().unwrap();
    assert!((100.0 * half / mean - part).abs() < 1.0, "{cells:?} {mean}");
    assert!(guessed.contains("as told") && !guessed.contains("not for passing on"));
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/program.toml");
    tacit(["plan", program, "--rows", "4k", "--mean", "9", "--figure", &page]).failed(2, &["lift study"]);
}
