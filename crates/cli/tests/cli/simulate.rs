//! `tacit simulate` and the files that it can be tried with.

use crate::support::{Done, tacit};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A file of the examples.
fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn simulate(study: &Path, words: &[&str]) -> Done {
    let first = ["simulate".as_ref(), study.as_os_str()];
    tacit(first.into_iter().chain(words.iter().map(AsRef::as_ref)))
}

/// `--data PARTY=FOLDER/PARTY.csv`.
fn data(folder: &Path, parties: &[&str]) -> Vec<String> {
    let file = |party: &&str| {
        ["--data".to_owned(), format!("{party}={}", folder.join(format!("{party}.csv")).display())]
    };
    parties.iter().flat_map(file).collect()
}

/// The number of this label, of a part of the first view.
fn number<'a>(simulation: &'a Value, part: &str, label: &str) -> &'a Value {
    let parts = simulation["runs"][0]["views"][0]["parts"].as_array().unwrap();
    let part = parts.iter().find(|one| one["name"] == part).unwrap_or_else(|| panic!("no part {part}"));
    let found = part["numbers"].as_array().unwrap().iter().find(|one| one["label"] == label);
    found.unwrap_or_else(|| panic!("no number {label} in {part}"))
}

/// The exact answer of the field trial is its truth, and what is released lies around it as the report says.
#[test]
fn the_field_trial_is_tried_before_it_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("trial");
    let words = ["generate".as_ref(), "polio".as_ref(), "--json".as_ref(), "--out".as_ref(), out.as_os_str()];
    let truth = tacit(words).fine().json()["truth"].clone();
    let files = data(&out, &["registry", "hospitals"]);
    let words: Vec<&str> = files.iter().map(String::as_str).chain(["--draws", "2000", "--json"]).collect();
    let done = simulate(&example("lift.toml"), &words).fine().json();
    assert!(done["warning"].as_str().unwrap().contains("not for passing on"));
    let view = &done["runs"][0]["views"][0];
    let overall = &view["parts"][0];
    assert_eq!((&overall["name"], &overall["refused"]), (&"overall".into(), &Value::Null));
    let lift = &overall["numbers"][0];
    let (exact, true_lift) = (lift["exact"].as_f64().unwrap(), truth["lift"].as_f64().unwrap());
    assert!((exact - true_lift).abs() < 1e-12, "{lift} {truth}");
    for (arm, name) in [("test", "vaccine"), ("control", "placebo")] {
        let of = |quantity: &str| number(&done, "overall", &format!("{quantity}, {name}"))["exact"].as_f64();
        assert_eq!(of("rows"), truth["overall"][arm]["rows"].as_f64(), "{done}");
        assert_eq!(of("value"), truth["overall"][arm]["value"].as_f64(), "{done}");
    }
    // 2,000 draws: a share of 95 % is off by less than 3 points, by six standard deviations.
    let spread = &lift["spread"];
    assert!((spread["noise_held"].as_f64().unwrap() - 0.95).abs() < 0.03, "{spread}");
    assert!(spread["interval_held"].as_f64() >= spread["noise_held"].as_f64(), "{spread}");
    assert_eq!((&spread["shown"], &overall["refused_share"]), (&2000.into(), &0.0.into()));
    let [low, high] = ["low", "high"].map(|end| spread[end].as_f64().unwrap());
    assert!(low < exact && exact < high, "{spread}");
}

/// What only the difference is made of is left to programs, and amounts have their unit.
#[test]
fn a_lift_is_told_by_what_people_ask() {
    let study = example("lift.toml");
    let words = ["--made-up", "9k,6k", "--draws", "100"];
    let text = simulate(&study, &words).fine().stdout;
    assert!(text.contains("value, vaccine, cases") && text.contains("rows, vaccine, people"), "{text}");
    for absent in ["centred", "tail", "squares"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    assert!(text.contains("sums from which these are computed: --json has them"), "{text}");
    let done = simulate(&study, &[&words[..], &["--json"]].concat()).fine().json();
    let numbers = done["runs"][0]["views"][0]["parts"][0]["numbers"].as_array().unwrap();
    let behind = numbers.iter().filter(|number| number["behind"] == true).count();
    assert!(behind > 0 && numbers[0]["behind"].is_null(), "{done}");
    let check = tacit(["check".as_ref(), study.as_os_str()]).fine().stdout;
    assert!(check.contains("numbers    "), "{check}");
}

/// For people: what it is comes first, and no number is a power of ten.
#[test]
fn a_simulation_says_first_that_it_shows_exact_values() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("spread.html");
    let words = ["--made-up", "3k", "--draws", "500", "--figure", page.to_str().unwrap()];
    let text = simulate(&example("questions.toml"), &words).fine().stdout;
    assert!(text.starts_with("This shows exact values of the data of all parties"), "{text}");
    assert!(text.contains("What trial would see, at rho 0.1 if it were run"), "{text}");
    assert!(text.contains("sums from which these are computed: --json has them"), "{text}");
    assert!(!text.contains(", noised "), "{text}");
    assert!(text.contains("95 % of releases") && text.contains("files      registry: made up, 3,000 rows"));
    let is_power = |word: &str| {
        word.split_once('e').is_some_and(|(digits, exponent)| {
            digits.ends_with(|c: char| c.is_ascii_digit()) && exponent.parse::<i32>().is_ok()
        })
    };
    assert!(!text.split_whitespace().any(is_power), "{text}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(
        html.contains("<svg") && html.contains("not for passing on") && html.contains("exact "),
        "{html}"
    );
    // Without noise there is nothing to draw, and less to read.
    let off = simulate(&example("questions.toml"), &["--made-up", "3k", "--noise", "off"]).fine().stdout;
    assert!(off.contains("off: exact values alone") && !off.contains("one release"), "{off}");
    let figure = ["--made-up", "3k", "--noise", "off", "--figure", page.to_str().unwrap()];
    simulate(&example("questions.toml"), &figure).failed(2, &["remove --figure, or --noise off"]);
}

/// Lines have the width of the terminal; what has no room beside names stands below.
#[test]
fn a_simulation_fits_the_terminal() {
    let study = example("questions.toml");
    let at = |columns: &str| {
        let mut command = crate::support::command([
            "simulate".as_ref(),
            study.as_os_str(),
            "--made-up".as_ref(),
            "3k".as_ref(),
            "--draws".as_ref(),
            "300".as_ref(),
        ]);
        Done::from(command.env("COLUMNS", columns).output().unwrap()).fine().stdout
    };
    let numbers = |text: &str| {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        words.retain(|word| word.bytes().any(|byte| byte.is_ascii_digit()));
        words.sort_unstable();
        words
    };
    let wide = at("400");
    for columns in [80, 120] {
        let text = at(&columns.to_string());
        let long = text.lines().find(|line| line.chars().count() > columns);
        assert_eq!(long, None, "{text}");
        let heads = text.lines().filter(|line| line.ends_with("held")).count();
        assert_eq!(heads, 1, "{text}");
        // Every value of the wide table is in the narrow ones; names are there once more for each block.
        let narrow = numbers(&text);
        assert!(numbers(&wide).iter().all(|word| narrow.binary_search(word).is_ok()), "{text}");
    }
}

/// The same seed gives the same draws; nothing is left behind, and no key or ledger is wanted.
#[test]
fn a_simulation_can_be_repeated_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let run = |seed: &str| {
        let study = example("program.toml");
        let words = ["--made-up", "4k", "--draws", "300", "--seed", seed, "--json"];
        let first = ["simulate".as_ref(), study.as_os_str()];
        let mut command = crate::support::command(first.into_iter().chain(words.iter().map(AsRef::as_ref)));
        let done = Done::from(command.current_dir(folder.path()).output().unwrap());
        done.fine().stdout
    };
    let (first, again, other) = (run("3"), run("3"), run("4"));
    assert!(first == again && first != other);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no ledger and no report");
}

/// Every program of the examples can be tried with files made for it, and such files are read by a check.
#[test]
fn files_are_made_for_every_program_of_the_examples() {
    for (name, parties) in [
        ("aligned.toml", &["east", "north", "west"][..]),
        ("market-car.toml", &["buyer", "dealer-1", "dealer-2"]),
        ("market-cloud.toml", &["customer", "provider-1", "provider-2", "provider-3"]),
        ("market-mobile.toml", &["asker", "user-1", "user-2", "user-3", "user-4"]),
        ("market-p2p.toml", &["customer", "isp-1", "isp-2", "isp-3", "isp-4", "isp-5"]),
        ("program.toml", &["clinic", "works"]),
        ("questions.toml", &["registry", "trial"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (study, out) = (example(name), folder.path().join("files"));
        let words =
            ["generate".as_ref(), "program".as_ref(), study.as_os_str(), "--out".as_ref(), out.as_os_str()];
        let made = tacit(words.into_iter().chain(["--rows".as_ref(), "400".as_ref()])).fine().stdout;
        assert!(made.contains("tacit simulate") && made.contains("400 rows"), "{made}");
        let files = data(&out, parties);
        let words: Vec<&str> = files.iter().map(String::as_str).chain(["--draws", "100", "--json"]).collect();
        let done = simulate(&study, &words).fine().json();
        let run = &done["runs"][0];
        assert!(!run["views"].as_array().unwrap().is_empty(), "{name}: {done}");
        let aligned = !["program.toml", "questions.toml"].contains(&name);
        let (joined, shared) = if aligned { (400, 400) } else { (600, 200) };
        assert_eq!((&run["joined"], &run["shared"]), (&joined.into(), &shared.into()), "{name}");
    }
}

/// Lift studies of all kinds are tried with files made up for their own columns.
#[test]
fn lift_studies_are_tried_with_made_up_files() {
    for name in
        ["lift.toml", "lift-identifiers.toml", "lift-ps3i.toml", "lift-ring4.toml", "lift-several.toml"]
    {
        let words = ["--made-up", "9k,6k", "--draws", "200", "--json"];
        let done = simulate(&example(name), &words).fine().json();
        let run = &done["runs"][0];
        let part = &run["views"][0]["parts"][0];
        let (lift, rows) = (&part["numbers"][0], &run["shared"]);
        assert!(
            lift["exact"].is_f64() && lift["label"].as_str().unwrap().starts_with("difference"),
            "{done}"
        );
        assert!(rows.as_u64().unwrap() >= 1000, "{name}: {run}");
        assert!(done["parties"].as_array().unwrap().iter().all(|party| party["data"].is_null()));
    }
}

#[test]
fn what_cannot_be_simulated_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let study = example("questions.toml");
    tacit(["generate", "program", study.to_str().unwrap(), "--rows", "60,50", "--out", out]).fine();
    let files = data(folder.path(), &["registry", "trial"]);
    let words: Vec<&str> = files.iter().map(String::as_str).collect();
    simulate(&study, &words[..2]).failed(2, &["no file of trial: add --data trial=FILE, or --made-up ROWS"]);
    simulate(&study, &["--data", "clerk=x.csv"]).failed(2, &["names no such party, but registry, trial"]);
    simulate(&study, &[words[0], words[1], words[0], words[1]]).failed(2, &["registry stands there twice"]);
    simulate(&study, &["--data", "registry"]).failed(2, &["registry=registry.csv"]);
    // Nobody of a file is among people who were made up.
    let own = folder.path().join("own.csv");
    let text = std::fs::read_to_string(folder.path().join("registry.csv")).unwrap();
    std::fs::write(&own, text.replace("person-", "somebody-")).unwrap();
    let own = format!("registry={}", own.display());
    let alone = simulate(&study, &["--data", &own, "--made-up", "60,50", "--draws", "10"]).fine().stdout;
    let note = "note       no row is in the files of all parties: identifiers of made-up files are made up";
    assert!(alone.contains(note), "{alone}");
    simulate(&example("match.toml"), &["--made-up", "50"]).failed(2, &["is of kind match"]);
    simulate(&example("party-north.toml"), &[]).failed(2, &["is a party file"]);
    simulate(&example("aligned.toml"), &["--made-up", "50,60"]).failed(2, &["the same rows"]);
    // The file of one party is not taken for another's.
    let party = folder.path().join("clerk.toml");
    let lines = "study = \"x.toml\"\nas = \"trial\"\nidentity = \"x.key\"\ndata = \"trial.csv\"\n";
    std::fs::write(&party, format!("{lines}listen = \"127.0.0.1:7000\"\n")).unwrap();
    let other = format!("registry={}", party.display());
    simulate(&study, &["--data", &other]).failed(2, &["is of trial (`as`), not of registry"]);
    // What other commands say by a flag.
    let marked = folder.path().join("marked.csv");
    std::fs::write(&marked, "a;b,c\n1;2,3\n").unwrap();
    let marked = format!("registry={}", marked.display());
    simulate(&study, &["--data", &marked, words[2], words[3]])
        .failed(2, &["or --separator", "no flags for the form of files", "--data PARTY=PARTY_FILE.toml"]);
    // A cell that the program does not know, with its place.
    let file = folder.path().join("trial.csv");
    let text = std::fs::read_to_string(&file).unwrap();
    let line = text.lines().position(|line| line.ends_with(",low")).unwrap() + 1;
    std::fs::write(&file, text.replacen(",low", ",medium", 1)).unwrap();
    let place = format!("trial.csv, line {line}");
    simulate(&study, &words)
        .failed(2, &[&place, "\"medium\" is none of the labels \"none\" \"low\" \"high\""]);
    // Files that are to hold the same identifiers.
    let aligned = example("aligned.toml");
    tacit(["generate", "program", aligned.to_str().unwrap(), "--rows", "60", "--out", out]).fine();
    let west = std::fs::read_to_string(folder.path().join("west.csv")).unwrap();
    let (short, _) = west.trim_end().rsplit_once('\n').unwrap();
    std::fs::write(folder.path().join("west.csv"), short).unwrap();
    let files = data(folder.path(), &["east", "north", "west"]);
    let words: Vec<&str> = files.iter().map(String::as_str).collect();
    simulate(&aligned, &words).failed(2, &["west has 59 rows and lacks 1 that others have"]);
}

#[test]
fn generate_says_what_goes_with_a_program() {
    tacit(["generate", "program"]).failed(2, &["the study file is missing"]);
    tacit(["generate", "polio", "--rows", "5"]).failed(2, &["--rows goes with lift and program"]);
    tacit(["generate", "lift", "--rows", "5,6"]).failed(2, &["give --rows one number"]);
    let lift = example("lift.toml");
    tacit(["generate", "program", lift.to_str().unwrap()]).failed(2, &["is a lift study", "--made-up"]);
    tacit(["generate", "lift", lift.to_str().unwrap()]).failed(2, &["a study goes with program"]);
    let study = example("program.toml");
    let words = ["generate", "program", study.to_str().unwrap(), "--files", "2"];
    tacit(words).failed(2, &["--files goes with lift"]);
}
