//! Budgets that do not start anew, and what a party is told before it spends.

use crate::support::parties::make_key;
use crate::support::{Done, NAMES, Pair, Running, command, read, tacit};
use std::path::Path;

/// `tacit run` of one party, without what the helper says for it.
fn alone(pair: &Pair, name: &str, more: &[&str]) -> Done {
    let file = pair.path(&format!("{name}.toml"));
    let mut run = command(["run".as_ref(), file.as_os_str(), "--json".as_ref()]);
    run.args(more);
    Running::start(run).end()
}

fn check(pair: &Pair, more: &[&str]) -> Done {
    let file = pair.path("publisher.toml");
    tacit(["check", file.to_str().unwrap(), "--spend-anyway"].into_iter().chain(more.iter().copied()))
}

fn entries(pair: &Pair) -> Vec<serde_json::Value> {
    let ledger = pair.path("publisher.ledger");
    let shown = tacit(["ledger", "show", ledger.to_str().unwrap(), "--json"]).fine().json();
    shown["entries"].as_array().unwrap().clone()
}

/// The table of the review: one party's data stay the same, and each step once had a budget of its own.
#[test]
fn a_budget_does_not_start_anew_in_silence() {
    let pair = Pair::csv(400);
    let [first, second] = pair.both([&["--budget", "0.2"], &[]]);
    let report = first.fine().json();
    second.fine();
    let total = &report["privacy"]["total"];
    assert_eq!((total["rho"].as_str(), total["sizes"].as_str()), (Some("11/100"), Some("1/100")));
    assert!((total["epsilon"].as_f64().unwrap() - 2.2562).abs() < 1e-3, "{total}");
    assert_eq!(report["privacy"]["lineage"], "publisher");
    // Another study on the same data: the budget is spent.
    pair.edit("study.toml", "name = \"generated\"", "name = \"again\"");
    let [refused, _] = pair.both([&["--budget", "0.2"], &[]]);
    refused.failed(5, &["budget: 0.11 of 0.2 spent on lineage publisher", "needs 0.11"]);
    let short = &refused.json()["error"]["shortfall"];
    let rho = serde_json::json!({ "bound": "policy.budget", "spent": "11/100", "budget": "1/5", "asked": "11/100" });
    assert_eq!(*short, rho);
    // The same file under a dated name, and no lineage.
    std::fs::copy(pair.path("publisher.csv"), pair.path("publisher-2024-05.csv")).unwrap();
    let dated = pair.path("publisher-2024-05.csv");
    let dated = dated.to_str().unwrap();
    pair.edit("publisher.toml", "lineage = \"publisher\"\n", "");
    alone(&pair, "publisher", &["--data", dated, "--spend-anyway"])
        .failed(2, &["no lineage", "lineage = \"publisher-2024-05\""]);
    // With a lineage of that name, before anybody is met.
    let named = ["--data", dated, "--lineage", "publisher-2024-05", "--spend-anyway"];
    alone(&pair, "publisher", &named)
        .failed(5, &["to about 100 %", "lineage = \"publisher\"", "--new-lineage"]);
    // A tenth of the rows new, and the others in another order.
    let text = read(&pair.path("publisher.csv"));
    let mut lines: Vec<&str> = text.lines().skip(1).collect();
    lines.truncate(lines.len() * 9 / 10);
    lines.reverse();
    let head = text.lines().next().unwrap();
    std::fs::write(dated, format!("{head}\n{}\n", lines.join("\n"))).unwrap();
    alone(&pair, "publisher", &named).failed(5, &["the rows of lineage publisher under another name"]);
    assert_eq!(entries(&pair).iter().filter(|entry| entry["protects"] == true).count(), 2);
    // Said, it is another lineage, and the ledger keeps that it was said.
    let party = read(&pair.path("publisher.toml"));
    let party =
        party.replace("data = \"publisher.csv\"", "data = \"publisher-2024-05.csv\"\nlineage = \"may\"");
    std::fs::write(pair.path("publisher.toml"), party).unwrap();
    check(&pair, &[]).failed(5, &["the rows of lineage publisher under another name"]);
    let [done, other] = pair.both([&["--new-lineage", "--budget", "0.2"], &[]]);
    done.fine();
    other.fine();
    let told = check(&pair, &["--json"]).fine().json();
    assert_eq!(told["budget"]["towards"][0]["spent"], "0.11");
    assert_eq!(
        (&told["budget"]["towards"][1]["viewer"], &told["rho"]["public"]),
        (&"public".into(), &0.1.into())
    );
}

#[test]
fn a_viewer_with_a_new_key_is_noticed_and_a_total_bounds_it() {
    let pair = Pair::csv(400);
    let [first, second] = pair.both([&["--total", "0.2"], &[]]);
    assert!(!first.stderr.contains("for the first time"), "{}", first.stderr);
    first.fine();
    second.fine();
    let study = read(&pair.path("study.toml"));
    let old = tacit(["check", pair.path("study.toml").to_str().unwrap(), "--json"]).fine().json()["parties"]
        ["advertiser"]
        .as_str()
        .unwrap()
        .to_owned();
    let new = make_key(pair.folder.path(), "advertiser-new");
    std::fs::write(pair.path("study.toml"), study.replace(&old, &new)).unwrap();
    pair.edit("advertiser.toml", "advertiser.key", "advertiser-new.key");
    let told = check(&pair, &["--json"]).fine().json();
    let notes = told["budget"]["notes"].as_array().unwrap();
    // The public is no key.
    let note = notes[0].as_str().unwrap();
    assert!(note.contains("for the first time") && note.contains("other keys that saw it: 1."), "{told}");
    let [refused, _] = pair.both([&["--total", "0.2"], &[]]);
    refused.failed(5, &["policy.total: 0.11 of 0.2 spent on lineage publisher by all viewers together"]);
    let [done, other] = pair.both([&[], &[]]);
    assert!(done.stderr.contains("sees lineage publisher for the first time"), "{}", done.stderr);
    let warnings = done.fine().json()["own_warnings"].clone();
    assert!(warnings.to_string().contains("for the first time"), "{warnings}");
    other.fine();
}

#[test]
fn check_says_what_the_ledger_will() {
    let pair = Pair::csv(400);
    let ledger = pair.path("publisher.ledger");
    let shown = check(&pair, &[]).fine().stdout;
    assert!(
        shown.contains(
            "budget     0 of 1 spent towards advertiser; this study takes up to 0.11; 0.89 is left afterwards"
        ),
        "{shown}"
    );
    assert!(
        shown.contains(
            "budget     0 of 1 spent towards public; this study takes up to 0.1; 0.9 is left afterwards\n"
        ),
        "{shown}"
    );
    assert!(shown.contains("privacy    public, that is anybody: rho 0.1 "), "{shown}");
    assert!(
        shown.contains(
            "advertiser: rho 0.11 for all that it gets (0.1 release, 0.01 sizes) = (2.26, 10⁻⁶)-DP"
        )
    );
    assert!(
        shown.contains("nobody knows it") && shown.contains("nothing would be released") && !ledger.exists()
    );
    let [first, second] = pair.both([&[], &[]]);
    let first = first.fine().json();
    second.fine();
    let viewers = first["privacy"]["viewers"].as_array().unwrap();
    let viewers: Vec<_> = viewers.iter().map(|viewer| (viewer["viewer"].as_str(), &viewer["rho"])).collect();
    assert_eq!(viewers, [(Some("advertiser"), &0.11.into()), (Some("public"), &0.1.into())]);
    for page in ["report.html", "report.json"] {
        assert!(read(&pair.path("out-publisher").join(page)).contains("public"));
    }
    let before = std::fs::read(&ledger).unwrap();
    let told = check(&pair, &["--json"]).fine().json();
    assert_eq!(told["budget"]["towards"][0]["spent"], "0.11");
    assert_eq!(told["plan"]["total"]["advertiser"]["rho"], "11/100");
    assert_eq!(std::fs::read(&ledger).unwrap(), before, "check changes nothing");
    let totals = tacit(["ledger", "show", ledger.to_str().unwrap()]).fine().stdout;
    assert!(
        totals.contains("spent      publisher by advertiser: rho 0.11, with its delta (2.26, 10⁻⁶)-DP"),
        "{totals}"
    );
    assert!(totals.contains("spent      publisher by public: rho 0.1, with"), "{totals}");
    assert!(totals.contains("by all together: rho 0.11; add --party PARTY_FILE to see"), "{totals}");
    assert!(totals.contains("key        advertiser: tacit1:"), "{totals}");
    let file = pair.path("publisher.toml");
    let text = read(&file);
    std::fs::write(&file, format!("{text}[policy]\ntotal = 0.5\n")).unwrap();
    let named = ["ledger", "show", ledger.to_str().unwrap(), "--party", file.to_str().unwrap()];
    let totals = tacit(named).fine().stdout;
    assert!(
        totals.contains("publisher by advertiser: rho 0.11 of 1 (0.89 left), with its delta"),
        "{totals}"
    );
    assert!(totals.contains("by all together: rho 0.11 of 0.5 (policy.total), 0.39 left"), "{totals}");
    let json = tacit(named.into_iter().chain(["--json"])).fine().json();
    assert_eq!(json["lineages"][0]["left"], "0.39", "{json}");
    std::fs::write(&file, text).unwrap();
    // The same study on the same data is paid for; another one is not.
    std::fs::write(
        pair.path("publisher.toml"),
        read(&pair.path("publisher.toml")) + "[policy]\nbudget = 0.2\n",
    )
    .unwrap();
    let again = check(&pair, &[]).fine().stdout;
    assert!(again.contains("charged before") && again.contains("nothing would be released"), "{again}");
    // A third match shows new sizes; the number stays the same.
    let sizes = "(but for 0.01 for sizes of a match, from the third match on)";
    let lines: Vec<&str> = again.lines().filter(|line| line.contains("charged before")).collect();
    assert_eq!(lines.iter().map(|line| line.contains(sizes)).collect::<Vec<_>>(), [true, false], "{again}");
    pair.edit("study.toml", "name = \"generated\"", "name = \"another\"");
    let poor = check(&pair, &[]);
    assert!(poor.stdout.contains("This side is not ready"), "{}", poor.stdout);
    poor.failed(
        5,
        &["budget: 0.11 of 0.2 spent on lineage publisher by advertiser; this study takes up to 0.11"],
    );
    check(&pair, &["--json"]).failed(5, &["this study takes up to 0.11"]);
    // No ledger, half a ledger, and no place for one.
    let wrong = |path: &Path, text: Option<&str>, says: &str| {
        if let Some(text) = text {
            std::fs::write(path, text).unwrap();
        }
        let line = format!("ledger = \"{}\"", path.display());
        let party = read(&pair.path("publisher.toml")).replace("ledger = \"publisher.ledger\"", &line);
        let file = pair.path("wrong.toml");
        std::fs::write(&file, party).unwrap();
        tacit(["check".as_ref(), file.as_os_str(), "--spend-anyway".as_ref()]).failed(2, &[says]);
        assert_eq!(text.is_some(), path.exists());
    };
    let notes = "these are notes ".repeat(100);
    wrong(&pair.path("notes.txt"), Some(&notes), "is not a privacy ledger of tacit");
    wrong(&pair.path("empty.ledger"), Some(""), "is empty, as if cut off");
    wrong(&pair.path("none/such.ledger"), None, "is not there; make it, or change `ledger`");
}

#[test]
fn rho_is_not_spent_on_what_cannot_be_shown() {
    let pair = Pair::csv(400);
    let refused = alone(&pair, "publisher", &[]);
    refused.failed(
        5,
        &[
            "rho would be spent on what cannot be shown",
            "the test arm",
            "minimum_group of 1,000",
            "--spend-anyway",
        ],
    );
    assert!(!refused.stderr.contains("waiting"), "{}", refused.stderr);
    assert!(!pair.path("publisher.ledger").exists(), "a refusal makes no ledger");
    let told = tacit(["check", pair.path("publisher.toml").to_str().unwrap(), "--json"]);
    told.failed(5, &["--spend-anyway"]);
    let budget = told.json()["budget"].clone();
    assert_eq!(budget["refusals"][0].as_str().map(|text| told.stderr.contains(text)), Some(true), "{budget}");
    assert_eq!(budget["towards"][0]["takes"], "0.11");
    // Said, it runs, and what is not shown is called that.
    let [done, other] = pair.both([&[], &[]]);
    let [report, others] = [done, other].map(|done| done.fine().json());
    assert!(report["view"]["cells"][0]["refused"].as_str().unwrap().ends_with("not shown"), "{report}");
    assert_eq!(report["warnings"], serde_json::json!([]));
    assert!(report["own_warnings"].to_string().contains("the test arm"), "{report}");
    own_numbers_stand_apart(&pair, &report);
    passed_on(&pair, &[report, others]);
}

/// What is said of a party's own rows comes after everything else, under a heading of its own.
fn own_numbers_stand_apart(pair: &Pair, report: &serde_json::Value) {
    let json = pair.path("out-publisher").join("report.json");
    let text = tacit(["report", json.to_str().unwrap()]).fine().stdout;
    let (before, own) = text.split_once("Reading of your own files. For you only\n").unwrap();
    let arm = report["own_warnings"][0].as_str().unwrap();
    let arm = &arm[..arm.find(", and no").unwrap()];
    assert!(own.contains(arm) && !before.contains(arm), "{text}");
    // Why nothing is shown is in the text, and what reading did is for the owner.
    assert!(before.contains("    refused: the test group has about "), "{text}");
    assert!(own.contains(" rows read\n") && !before.contains("rows read"), "{text}");
    // The last line can be pasted.
    let command = text.lines().last().unwrap().trim().strip_prefix("tacit ").unwrap();
    tacit(command.split(' ')).fine();
    assert!(read(&json.with_file_name("public.html")).contains("<!DOCTYPE html>"), "{command}");
    assert!(before.contains("To whoever reads this result alone it costs rho 0.1 (1/10) ="), "{text}");
    let page = read(&pair.path("out-publisher").join("report.html"));
    let (before, own) = page.split_once(">Reading of your own files<").unwrap();
    assert!(own.contains(arm) && !before.contains(arm), "{page}");
    assert!(!page.contains("publisher with advertiser sees"), "{page}");
}

/// What may be passed on is byte for byte the same at both parties, and holds nothing of either's own.
fn passed_on(pair: &Pair, reports: &[serde_json::Value; 2]) {
    let made = NAMES.map(|name| {
        let folder = pair.path(&format!("out-{name}"));
        let (json, page) = (folder.join("report.json"), folder.join("public.html"));
        let words = ["report", "--public", json.to_str().unwrap()];
        let text = tacit(words.into_iter().chain(["--html", page.to_str().unwrap()])).fine().stdout;
        let [csv, excel] = ["numbers.csv", "numbers.xlsx"].map(|file| folder.join(file));
        let files = ["--csv", csv.to_str().unwrap(), "--excel", excel.to_str().unwrap()];
        let json = tacit(words.into_iter().chain(["--json"]).chain(files)).fine().stdout;
        let book = std::fs::read(&excel).unwrap();
        assert!(book.starts_with(b"PK"));
        ([text, read(&page), json, read(&csv)], book)
    });
    assert_eq!(made[0], made[1]);
    let made = made.map(|(texts, _)| texts);
    assert!(made[0][3].contains("everybody,overall,,overall,difference of means,both,,"), "{}", made[0][3]);
    assert!(made[0][3].contains("rows, fewer than the minimum of"), "{}", made[0][3]);
    let public: serde_json::Value = serde_json::from_str(&made[0][2]).unwrap();
    let fields: Vec<&String> = public.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["format", "mode", "parties", "public", "public_terms", "servers", "study"]);
    assert_eq!((&public["format"], &public["public"]), (&"tacit-public/1".into(), &reports[0]["public"]));
    assert_eq!(public["parties"], serde_json::json!(NAMES));
    let terms = &public["public_terms"];
    assert_eq!((&terms["rho"], &terms["attempt"]), (&"1/10".into(), &serde_json::Value::Null));
    let study = pair.path("study.toml");
    let checked = tacit(["check", study.to_str().unwrap(), "--json"]).fine().json();
    assert_eq!(public["study"]["full_hash"], checked["study"]["hash"]);
    for report in reports {
        let own =
            report["own_warnings"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned());
        let numbers = ["bytes", "peak_memory_bytes"].map(|field| report[field].to_string());
        let total = report["privacy"]["total"]["rho"].as_str().unwrap().to_owned();
        for own in own.chain(numbers).chain([total, "of 1 on".into(), "in the union".into()]) {
            for text in &made[0] {
                assert!(!text.contains(&own), "{own:?} is in {text}");
            }
        }
    }
}

#[test]
fn a_policy_has_a_floor_of_candidates() {
    let pair = Pair::csv(400);
    pair.edit("study.toml", "[release]\n", "[release]\nnoise = \"cut-and-choose\"\ncandidates = 2\n");
    pair.edit("study.toml", "[release.public]", "[release.to.advertiser]");
    let text = "the study has 2 noise candidates";
    check(&pair, &[]).failed(5, &[text, "policy.candidates is 64"]);
    // What is refused before the data are read is described all the same.
    let refused = check(&pair, &["--json"]);
    let told = refused.json();
    assert!(told["study"]["hash"].is_string() && told["plan"]["stages"].is_array(), "{told}");
    assert!(told["error"]["message"].as_str().unwrap().contains(text) && told["inputs"].is_null(), "{told}");
    for name in NAMES {
        let file = pair.path(&format!("{name}.toml"));
        std::fs::write(&file, read(&file) + "[policy]\ncandidates = 2\n").unwrap();
    }
    check(&pair, &[]).fine();
    // What is for the advertiser alone is not passed on.
    let [_, _] = pair.both([&[], &[]]).map(Done::fine);
    let report = pair.path("out-advertiser").join("report.json");
    tacit(["report", "--public", report.to_str().unwrap(), "--json"])
        .failed(2, &["no public result", "[release.public]"]);
}
