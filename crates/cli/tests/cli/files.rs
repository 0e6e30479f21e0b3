//! Files: identities, studies, data, reports.

use crate::support::{Pair, Running, command, read, tacit};
use data::generate::FileFormat;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

#[test]
fn an_identity_is_private_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.key");
    let file = file.to_str().unwrap();
    let line = tacit(["keygen", "--out", file]).fine().stdout;
    let key = line.trim().strip_prefix("key  = \"tacit1:").and_then(|rest| rest.strip_suffix('"')).unwrap();
    assert!(key.len() == 32 && key.bytes().all(|b| b.is_ascii_hexdigit()), "{line}");
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    let before = read(file.as_ref());
    tacit(["keygen", "--out", file, "--json"]).failed(2, &["exists and is not overwritten"]);
    assert_eq!(read(file.as_ref()), before);
}

#[test]
fn check_accepts_what_is_sound_and_says_what_it_means() {
    let pair = Pair::csv(300);
    let party = pair.path("publisher.toml");
    let checked = tacit(["check", party.to_str().unwrap(), "--spend-anyway", "--json"]).fine().json();
    assert_eq!(checked["inputs"]["rows_kept"], 300);
    assert_eq!((checked["class"].as_str(), checked["rho"]["advertiser"].as_f64()), (Some("dp"), Some(0.1)));
    assert!(checked["revealed"]["everybody"].as_array().unwrap().len() >= 6);
    let study = pair.path("study.toml");
    let alone = tacit(["check", study.to_str().unwrap(), "--json"]).fine().json();
    assert_eq!(alone["study"]["hash"], checked["study"]["hash"]);
    assert!(alone["inputs"].is_null());
    let text = tacit(["check", "--party", party.to_str().unwrap(), "--spend-anyway"]).fine().stdout;
    assert!(text.contains("revealed   to everybody") && text.contains("nothing would be released"), "{text}");
}

#[test]
fn check_names_file_line_and_column() {
    let pair = Pair::csv(20);
    let party = |name: &str| pair.path(&format!("{name}.toml")).to_str().unwrap().to_owned();
    let data = read(&pair.path("advertiser.csv"));
    let third: Vec<&str> = data.lines().nth(2).unwrap().split(',').collect();
    let amount = data.lines().next().unwrap().split(',').position(|name| name == "amount").unwrap();
    let negative: Vec<&str> =
        third.iter().enumerate().map(|(i, cell)| if i == amount { "-5" } else { cell }).collect();
    pair.edit("advertiser.csv", &third.join(","), &negative.join(","));
    let done = tacit(["check", &party("advertiser"), "--json"]);
    done.failed(2, &["advertiser.csv, line 3, column \"amount\"", "negative"]);
    pair.edit("publisher.csv", "arm", "army");
    tacit(["check", &party("publisher")])
        .failed(2, &["publisher.csv: no column \"arm\"", "did you mean \"army\""]);
    pair.edit("study.toml", "max_events = 4", "max_events = 17");
    tacit(["check", pair.path("study.toml").to_str().unwrap()])
        .failed(2, &["study.toml, line ", "max_events is 17"]);
}

/// A file as a spreadsheet exports it: semicolons, decimal commas, Windows text and line ends, refunds.
fn exported(csv: &str) -> Vec<u8> {
    let mut lines = csv.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let at = |name: &str| header.iter().position(|column| column == name).unwrap();
    let (id, time, amount) = (at("id"), at("bought"), at("amount"));
    let mut text = format!("{};Stra\u{df}e\r\n", header.join(";"));
    for mut cells in lines {
        let cents: u32 = cells[amount].parse().unwrap();
        cells[amount] = format!("{},{:02}", (cents + 5) / 100, (cents + 5) % 100);
        text += &format!("{};H\u{f6}he\r\n", cells.join(";"));
        // Five cents go back at once.
        let mut refund = vec![String::new(); cells.len()];
        (refund[id], refund[time], refund[amount]) = (cells[id].clone(), cells[time].clone(), "-0,05".into());
        text += &format!("{};\r\n", refund.join(";"));
    }
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect()
}

/// A study in cents from a plain file, and the same in euros from one as people have it.
#[test]
fn an_exported_file_gives_the_same_result_in_its_own_unit() {
    let (plain, other) = (Pair::csv(6_000), Pair::csv(6_000));
    let data = other.path("advertiser.csv");
    std::fs::write(&data, exported(&read(&data))).unwrap();
    other.edit("study.toml", "unit = \"cent\" }", "unit = \"EUR\", scale = 100, negative = \"net\" }");
    other.edit("study.toml", "clamp = 100", "clamp = 1");
    let party = other.path("advertiser.toml");
    let check = |more: &[&str]| tacit(["check", party.to_str().unwrap(), "--json"].iter().chain(more));
    check(&[]).failed(2, &["advertiser.csv, line 1: not UTF-8", "--encoding windows-1252"]);
    let encoding = ["--encoding", "windows-1252"];
    check(&encoding).failed(2, &["line 2, column \"amount\"", "has a comma", "(or --decimal ,)"]);
    let inputs = check(&["--encoding", "latin-1", "--decimal", ",", "--spend-anyway"]).fine().json();
    let forms = ["encoding \"windows-1252\"", "separator \";\""];
    assert_eq!(inputs["inputs"]["forms"], serde_json::json!(forms));
    assert_eq!(inputs["inputs"]["refunds_taken_off"], inputs["inputs"]["events_seen"]);
    other.edit("advertiser.toml", "data =", "format = { encoding = \"latin-1\", decimal = \",\" }\ndata =");
    let rates = |pair: &Pair| {
        let [done, _] = pair.both([&[], &[]]);
        let done = done.fine();
        let report = done.json();
        let rate = &report["public"]["cells"][0]["estimate"]["rates"][1];
        let [mean, half] = ["mean", "half_width"].map(|field| rate[field].as_f64().unwrap());
        (report["public"]["scale"].clone(), mean, half, done.stdout)
    };
    let (_, cents, _, _) = rates(&plain);
    let (scale, euros, half, report) = rates(&other);
    assert_eq!(scale, 100);
    assert!((cents / 100.0 - euros).abs() < 6.0 * half, "{cents} {euros} {half}");
    assert!(cents > 1.0 && euros < 1.0, "{cents} {euros}");
    assert!(report.contains("clamped at 1 EUR per person"), "{report}");
}

#[test]
fn a_truncated_parquet_file_is_named() {
    let pair = Pair::new(500, FileFormat::Parquet);
    let party = pair.path("publisher.toml");
    tacit(["check".as_ref(), party.as_os_str(), "--spend-anyway".as_ref()]).fine();
    let file = pair.path("publisher.parquet");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let done = tacit(["check".as_ref(), party.as_os_str()]);
    done.failed(2, &["publisher.parquet: not a complete Parquet file"]);
}

#[test]
fn check_names_the_first_line_that_differs() {
    let pair = Pair::csv(20);
    let study = read(&pair.path("study.toml"));
    let line = 1 + study.lines().position(|line| line.starts_with("max_events")).unwrap();
    let theirs = pair.path("theirs.toml");
    let check = |text: &str| {
        std::fs::write(&theirs, text).unwrap();
        let mine = pair.path("study.toml");
        tacit(["check", mine.to_str().unwrap(), "--peer-study", theirs.to_str().unwrap(), "--json"])
    };
    assert_eq!(check(&format!("# a comment\n{study}")).fine().json()["peer_agrees"], true);
    let done = check(&study.replace("max_events = 4", "max_events = 5"));
    done.failed(2, &[&format!("line {line}, advertiser.max_events"), "max_events = 4", "max_events = 5"]);
}

#[test]
fn check_says_which_rows_a_program_counts() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |text: &str| {
        let path = folder.path().join("study.toml");
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        let json = tacit(["check", path, "--json"]).fine().json();
        let said = json["rows"].as_str().map(str::to_owned);
        let text = tacit(["check", path]).fine().stdout;
        assert!(said.iter().all(|said| text.contains(&format!("\nrows       {said}\n"))), "{text}");
        said
    };
    let program = include_str!("../../../../examples/program.toml");
    assert_eq!(rows(program).unwrap(), "those that all parties have");
    assert_eq!(
        rows(&program.replace("rows matched", "rows any")).unwrap(),
        "of any party; healthy-exposed, ill-exposed count rows that all parties have; healthy-all, ill-all \
         count rows that clinic has, the others or not"
    );
    let constant = program.replace("rows matched", "rows any").replace("sum is-ill", "sum one");
    let constant = constant.replace("ill = const 2 u2", "ill = const 2 u2\none = const 1 bit");
    assert!(
        rows(
            &constant.replace("healthy-all ill-all", "healthy-all").replace("noised all 1", "total ill-all")
        )
        .unwrap()
        .ends_with("; ill-all counts rows of anybody, made-up ones included")
    );
    let aligned = include_str!("../../../../examples/aligned.toml");
    assert_eq!(rows(aligned).unwrap(), "those of the list that all parties have");
    assert_eq!(rows(include_str!("../../../../examples/lift.toml")), None, "docs/studies/lift.md says it");
}

#[test]
fn an_identity_that_the_study_does_not_name_is_found_before_anything_is_sent() {
    let pair = Pair::csv(20);
    let (party, other) = (pair.path("publisher.toml"), pair.path("advertiser.key"));
    pair.edit("publisher.toml", "publisher.key", other.to_str().unwrap());
    tacit(["check".as_ref(), party.as_os_str()]).failed(2, &["check `identity`"]);
    Running::start(pair.run("publisher", &[])).end().failed(2, &["check `identity`"]);
}

#[test]
fn policy_refuses_with_a_code_of_its_own() {
    let pair = Pair::csv(20);
    let refused = |more: &[&str]| Running::start(pair.run("publisher", more)).end();
    refused(&["--max-rho", "0.05"]).failed(5, &["policy.max_rho is 0.05 (--max-rho)"]);
    let file = pair.path("publisher.toml");
    let text = read(&file);
    std::fs::write(&file, format!("{text}[policy]\nmax_rho = 0.06\n")).unwrap();
    let place = format!("publisher.toml, line {}, column 11)", text.lines().count() + 2);
    refused(&[]).failed(5, &["what everybody sees ([release.public])", "policy.max_rho is 0.06 (", &place]);
    std::fs::write(&file, text).unwrap();
    refused(&["--allow-study", &"0".repeat(64)]).failed(5, &["not on this party's list"]);
    refused(&["--allow-kind", "program"]).failed(5, &["does not allow studies of kind"]);
}

#[test]
fn a_spent_budget_ends_both_sides_before_anything_is_charged() {
    let pair = Pair::csv(20);
    let [publisher, advertiser] = pair.both([&["--budget", "0.05"], &[]]);
    publisher.failed(5, &["0 of 0.05 spent on lineage publisher", "this run needs 0.11"]);
    assert_ne!(advertiser.code, 0);
    for name in ["publisher", "advertiser"] {
        let ledger = pair.path(&format!("{name}.ledger"));
        let shown = tacit(["ledger", "show", ledger.to_str().unwrap(), "--json"]).fine().json();
        assert_eq!(shown["entries"].as_array().unwrap().len(), 0);
    }
}

#[test]
fn a_ledger_is_verified_copied_and_asked_for_when_lost() {
    let pair = Pair::csv(300);
    let [publisher, advertiser] = pair.both([&[], &[]]).map(|done| done.fine().json());
    assert!(publisher["broke_off"].as_array().unwrap().is_empty());
    let (ledger, copy) = (pair.path("publisher.ledger"), pair.path("copy.ledger"));
    let [ledger, copy] = [&ledger, &copy].map(|path| path.to_str().unwrap());
    let chains = tacit(["ledger", "verify", ledger, "--json"]).fine().json();
    let peer = advertiser["parties"][1]["key"].as_str().unwrap();
    assert_eq!(chains["chains"][0]["peer"], peer);
    assert!(chains["chains"][0]["count"].as_u64().unwrap() > 5, "{chains}");
    tacit(["ledger", "backup", ledger, copy]).fine();
    assert_eq!(std::fs::metadata(copy).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(tacit(["ledger", "verify", copy, "--json"]).fine().json()["chains"], chains["chains"]);
    tacit(["ledger", "backup", ledger, copy, "--json"]).failed(2, &["never replaces a file"]);
    let short = &peer[..15];
    tacit(["ledger", "allow", ledger, short, "--reason", "x", "--json"]).failed(2, &["nothing bars", peer]);
    tacit(["ledger", "allow", ledger, "tacit1:zz", "--reason", "x"]).failed(2, &["it knows", peer]);
    tacit(["ledger", "recover", ledger, "--json"]).failed(2, &["there is nothing to recover"]);
    let help = tacit(["ledger", "allow", "--help"]).fine().stdout;
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Find out what happened, then decide") && words.contains("Example:"), "{help}");
    std::fs::remove_file(ledger).unwrap();
    let lost = Running::start(pair.run("publisher", &[])).end();
    lost.failed(5, &["there is no ledger at", "out-publisher/report.json", "--new-ledger", "ledger recover"]);
    let made = tacit(["ledger", "recover", ledger, "--lineage", "rows"]).fine().stdout;
    assert!(made.contains("an empty one was made") && made.contains("--lineage rows"), "{made}");
    tacit(["ledger", "recover", ledger, "--json"]).failed(2, &["there is nothing to recover"]);
    // What the peer gives back is no charge yet, and no reason to say that nothing was spent.
    let [refused, _] = pair.both([&[], &[]]);
    refused.failed(5, &["holds a statement that this party signed"]);
    let shown = tacit(["ledger", "show", ledger]).fine().stdout;
    assert!(shown.contains("rho 0.11 charged towards it") && shown.contains("ledger recover"), "{shown}");
    assert!(!shown.contains("Nothing was spent"), "{shown}");
    let json = tacit(["ledger", "show", ledger, "--json"]).fine().json();
    assert_eq!(
        (&json["given_back"][0]["peer"], &json["given_back"][0]["rho"]),
        (&peer.into(), &"0.11".into())
    );
}

#[test]
fn a_study_file_and_a_party_file_are_told_apart() {
    let pair = Pair::csv(20);
    let paths = ["study.toml", "publisher.toml"].map(|name| pair.path(name).to_str().unwrap().to_owned());
    let [study, party] = [&paths[0], &paths[1]];
    tacit(["run", study, "--json"]).failed(2, &["study.toml is a study file"]);
    tacit(["check", "--party", study]).failed(2, &["study.toml is a study file"]);
    tacit(["plan", party, "--rows", "10"]).failed(2, &["publisher.toml is a party file"]);
    tacit(["check", study, "--peer-study", party]).failed(2, &["publisher.toml is a party file"]);
}

#[test]
fn a_check_is_priced_at_the_rows_that_were_read() {
    let pair = Pair::csv(300);
    let party = pair.path("publisher.toml").to_str().unwrap().to_owned();
    let rows = |more: &[&str]| {
        let words = ["check", &party, "--spend-anyway", "--json"].into_iter().chain(more.iter().copied());
        tacit(words).fine().json()["plan"]["assumptions"]["rows"].as_str().unwrap().to_owned()
    };
    assert!(rows(&[]).starts_with("300 of this party's data"));
    let told = rows(&["--rows", "10k,20k"]);
    assert!(told.starts_with("10,000 rows of publisher, half in each arm, and 20,000 of "), "{told}");
    let shown = tacit(["check", &party, "--spend-anyway"]).fine().stdout;
    assert!(shown.contains("nothing would be released") && !shown.contains("side is ready"), "{shown}");
    let shown = tacit(["check", &party, "--spend-anyway", "--rows", "10k,20k"]).fine().stdout;
    assert!(shown.starts_with(&format!("This side is ready: tacit run {party}")), "{shown}");
}

#[test]
fn the_examples_are_sound_and_a_program_has_no_arms() {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/");
    for name in ["lift", "generated", "lift-identifiers", "lift-ps3i", "program"] {
        let shown = tacit(["check", &format!("{examples}{name}.toml")]).fine().stdout;
        let lift = name != "program";
        assert_eq!(shown.contains("mean outcome"), lift, "{shown}");
        assert!(shown.contains("link: 10 Gbit/s, 1 ms round trip"), "{shown}");
        assert!(shown.contains("keys of an example") && shown.contains("sound, but for its keys"), "{shown}");
        assert_eq!(shown.contains("nothing is revealed to works"), !lift, "{shown}");
    }
}

#[test]
fn the_example_for_generated_data_is_the_generators_own_study() {
    use data::generate::{LiftOptions, lift_study};
    use study::Study;
    let text = include_str!("../../../../examples/generated.toml");
    let example = Study::parse("generated.toml", text).unwrap();
    let options = LiftOptions {
        rows: 10,
        overlap: 0.5,
        max_events: 4,
        clamp: 100,
        seed: 1,
        format: FileFormat::Csv,
        files: 1,
    };
    let keys = ["publisher", "advertiser"].map(|name| example.member(name).unwrap().key.clone());
    let own = Study::parse("own.toml", &lift_study(&options, &keys[0], &keys[1], false)).unwrap();
    assert_eq!(example.hash(), own.hash());
}

#[test]
fn missing_settings_are_named() {
    tacit(["run", "--json"]).failed(2, &["PARTY_FILE is missing"]);
    tacit(["run", "--as", "a", "--json"]).failed(2, &["neither listen nor peer is set"]);
    tacit(["run", "--peer", "a:1", "--json"]).failed(2, &["--as"]);
    tacit(["run", "--peer", "nonsense", "--json"]).failed(2, &["host:port"]);
    tacit(["ledger", "show", "none.ledger", "--json"]).failed(2, &["there is no ledger none.ledger"]);
}

#[test]
fn a_report_folder_that_cannot_be_is_found_before_anything_is_sent() {
    let pair = Pair::csv(20);
    let file = pair.path("publisher.csv");
    let done = Running::start(pair.run("publisher", &["--report", file.to_str().unwrap()])).end();
    done.failed(1, &["reports cannot be written", "change `report`"]);
    let party = pair.path("publisher.toml");
    let mut check = command(["check".as_ref(), party.as_os_str(), "--report".as_ref(), file.as_os_str()]);
    let done = check.output().unwrap();
    let told = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(1) && told.contains("reports cannot be written"), "{told}");
}

#[test]
fn a_full_disk_is_an_error_and_not_a_panic() {
    let pair = Pair::csv(20);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut check = command(["check".as_ref(), pair.path("study.toml").as_os_str()]);
    let done = check.stdout(Stdio::from(full)).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).contains("No space left"));
    // A file system of one page, in a name space of its own, where the system lets us have one.
    let script = "mount -t tmpfs -o size=4k tmpfs \"$1\" && head -c 4096 /dev/zero > \"$1/full\" && shift && \
                  exec \"$@\"";
    let disk = tempfile::tempdir().unwrap();
    let mut inside = std::process::Command::new("unshare");
    inside.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(disk.path());
    inside.arg(env!("CARGO_BIN_EXE_tacit")).arg("run").arg(pair.path("publisher.toml"));
    inside.args(["--json", "--report"]).arg(disk.path());
    match inside.output() {
        Ok(output) if String::from_utf8_lossy(&output.stderr).contains("reports cannot be written") => {
            assert_eq!(output.status.code(), Some(1));
            assert!(String::from_utf8_lossy(&output.stderr).contains("No space left"));
        }
        _ => eprintln!("skipped: no file system could be mounted here"),
    }
}
