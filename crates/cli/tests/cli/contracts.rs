//! The JSON that other programs rely on: fields are added, never renamed.

use crate::support::{Done, NAMES, Pair, command, read, tacit};
use serde_json::Value;
use std::path::Path;

fn numbers(object: &Value, fields: &[&str]) {
    for field in fields {
        assert!(object[*field].is_number(), "{field} in {object}");
    }
}

fn interval(value: &Value) -> [f64; 2] {
    let ends: Vec<f64> = value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    let ends: [f64; 2] = ends.try_into().unwrap();
    assert!(ends[0] < ends[1]);
    ends
}

/// A small demo, its JSON, its files, and a rerun that costs nothing.
#[test]
fn the_demo_sees_the_truth_and_keeps_its_contract() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("demo");
    let demo = tacit(["demo", "--scale", "20", "--json", "--out", out.to_str().unwrap()]).fine().json();
    numbers(&demo, &["lift", "truth", "rows", "matched_upper_bound", "seconds", "bytes"]);
    assert_eq!((demo["engine"].as_str(), demo["mode"].as_str()), (Some("gmw"), Some("sums")));
    // One child in 20, all the cases: 33 of 10,037 and 115 of 10,061.
    let truth = 33.0 / 10_037.0 - 115.0 / 10_061.0;
    assert!((demo["truth"].as_f64().unwrap() - truth).abs() < 1e-12);
    for view in [&demo, &demo["views"]["registry"], &demo["views"]["hospitals"]] {
        let (lift, [low, high]) = (view["lift"].as_f64().unwrap(), interval(&view["interval"]));
        let [noise_low, noise_high] = interval(&view["noise_interval"]);
        assert!(low < truth && truth < high, "{view}");
        assert!(low <= noise_low && noise_low < lift && lift < noise_high && noise_high <= high, "{view}");
    }
    assert_eq!(demo["views"]["registry"]["lift"], demo["lift"]);
    assert_eq!(demo["views"]["hospitals"]["rho"], 0.1);
    // Made-up rows hide the exact sizes: some hundreds beyond 21,298 and 288.
    let over = |key: &str, exact: u64| demo[key].as_u64().and_then(|shown| shown.checked_sub(exact));
    assert!(over("rows", 20_098 + 1_200).is_some_and(|rows| (1..3000).contains(&rows)), "{}", demo["rows"]);
    let matched = over("matched_upper_bound", 288);
    assert!(matched.is_some_and(|rows| (1..3000).contains(&rows)), "{}", demo["matched_upper_bound"]);
    shows_again(&out, &demo);
    runs_again(&out, &demo);
}

/// A report reads back, as text, JSON and page.
fn shows_again(out: &Path, demo: &Value) {
    let report = out.join("registry/report.json");
    let again = tacit(["report", report.to_str().unwrap(), "--json"]).fine().json();
    assert_eq!(again["format"], "tacit-report/1");
    assert_eq!(again["view"]["cells"][0]["estimate"]["lift"], demo["lift"]);
    let held = again["stages"].as_array().unwrap().iter().all(|stage| stage["price_held"] == true);
    assert!(held, "price and ledger differ: {}", again["stages"]);
    let page = out.join("again.html");
    let text = tacit(["report", report.to_str().unwrap(), "--html", page.to_str().unwrap()]).fine().stdout;
    assert!(text.contains("vaccine") && text.contains("placebo"), "{text}");
    assert_eq!(read(&page), read(&out.join("registry/report.html")));
    exports_its_numbers(&report, &again);
    exports_its_figures(&report);
    let ledger = out.join("registry.ledger");
    let entries = tacit(["ledger", "show", ledger.to_str().unwrap(), "--json"]).fine().json();
    // The public release, and the sizes of the match.
    let entries = entries["entries"].as_array().unwrap();
    assert_eq!(entries.iter().map(|entry| entry["delta"] != "0").collect::<Vec<_>>(), [true, false]);
}

/// A line for each number, in CSV; neither table takes the place of the report.
fn exports_its_numbers(report: &Path, again: &Value) {
    let csv = report.with_file_name("numbers.csv");
    tacit(["report", report.to_str().unwrap(), "--csv", csv.to_str().unwrap()]).fine();
    let numbers = read(&csv);
    let counts = again["public"]["cells"][0]["counts"].as_array().unwrap();
    assert!(counts.len() >= 6, "{counts:?}");
    for count in counts {
        let arm = if count["arm"] == "test" { "vaccine" } else { "placebo" };
        let quantity = count["quantity"].as_str().unwrap().replace('_', " ");
        let value = count["value"].as_str().unwrap();
        let line = format!("everybody,overall,,overall,{quantity},{arm},{value},");
        assert!(numbers.lines().any(|own| own.starts_with(&line)), "{line}: {numbers}");
    }
    // As many are released, and computed from these, as the text says.
    let of_kind = |kind: &str| numbers.matches(&format!(",{kind},")).count();
    let computed = counts.iter().filter(|count| count["derived"] == true).count();
    let told =
        format!("{} released numbers are in report.html, and {computed} computed", of_kind("released"));
    assert_eq!((of_kind("computed"), of_kind("released")), (computed, counts.len() - computed));
    let text = tacit(["report", report.to_str().unwrap()]).fine().stdout;
    assert!(text.contains(&told), "{told}: {text}");
    for (form, what) in [("--csv", "CSV"), ("--excel", "Excel")] {
        let taken = format!("the {what} file would take the place of the report");
        tacit(["report", report.to_str().unwrap(), form, report.to_str().unwrap()]).failed(2, &[&taken]);
    }
}

/// Each figure as drawing and as picture; of the public result alone those that show it.
fn exports_its_figures(report: &Path) {
    for (more, names) in
        [(&[][..], &["bytes", "forest", "means", "time"][..]), (&["--public"], &["forest", "means"])]
    {
        let folder = report.with_file_name(format!("figures{}", names.len()));
        let words = ["report", report.to_str().unwrap(), "--figures", folder.to_str().unwrap()];
        let said = tacit(words.iter().chain(more)).fine().stderr;
        assert!(names.iter().all(|name| said.contains(name)), "{said}");
        for name in names {
            let drawing = read(&folder.join(format!("{name}.svg")));
            assert!(drawing.starts_with("<svg xmlns") && drawing.ends_with("</svg>\n"), "{name}");
            let picture = std::fs::read(folder.join(format!("{name}.png"))).unwrap();
            assert!(picture.starts_with(b"\x89PNG"), "{name}");
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2 * names.len());
    }
}

/// The same study on the same data again: the stored answer, no new noise and no charge.
fn runs_again(out: &Path, demo: &Value) {
    use crate::support::{Running, command};
    let start = |party: &str| {
        let file = out.join(format!("{party}.toml"));
        Running::start(command(["run".as_ref(), file.as_os_str(), "--json".as_ref()]))
    };
    let (registry, hospitals) = (start("registry"), start("hospitals"));
    let (registry, hospitals) = (registry.end(), hospitals.end());
    let registry = registry.fine().json();
    assert!(hospitals.fine().stderr.contains("ledger has the answer of this study"));
    assert_eq!(registry["stored"], true);
    assert_eq!(registry["view"]["cells"][0]["estimate"]["lift"], demo["lift"]);
    let ledger = out.join("registry.ledger");
    let entries = tacit(["ledger", "show", ledger.to_str().unwrap(), "--json"]).fine().json();
    assert_eq!(entries["entries"].as_array().unwrap().len(), 2, "a rerun is not charged");
}

#[test]
fn the_demo_leaves_other_folders_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
    let done = tacit(["demo", "--scale", "20", "--json", "--out", folder.path().to_str().unwrap()]);
    done.failed(2, &["holds files that no demo made"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn every_measurement_is_correct_and_keeps_its_contract() {
    let cases: [(&str, &[&str], &[&str]); 8] = [
        ("yao", &["--rows", "3k"], &["publisher", "advertiser"]),
        ("yao", &["--rows", "1000", "--engine", "clear"], &["clear"]),
        ("lift", &["--rows", "2k", "--transport", "tls"], &["publisher", "advertiser"]),
        ("lift", &["--rows", "2001", "--shards", "3", "--k", "4"], &["publisher", "advertiser"]),
        (
            "lift",
            &["--rows", "2k", "--engine", "gmw", "--shards", "2", "--k", "4"],
            &["publisher", "advertiser"],
        ),
        ("lift", &["--rows", "999", "--engine", "gmw", "--ot", "ferret"], &["publisher", "advertiser"]),
        ("match", &["--rows", "200", "--protocol", "pid"], &["publisher", "advertiser"]),
        ("match", &["--rows", "100", "--overlap", "1", "--transport", "tls"], &["publisher", "advertiser"]),
    ];
    for (what, flags, parties) in cases {
        let words = ["bench", what, "--json"].into_iter().chain(flags.iter().copied());
        let bench = tacit(words).fine().json();
        numbers(&bench, &["rows", "rows_per_s", "and_per_s", "bytes_per_row", "seconds"]);
        assert_eq!(bench["correct"], true, "{bench}");
        for field in ["peak_memory_bytes", "cpu_seconds"] {
            let by_party = bench[field].as_object().unwrap();
            assert!(
                by_party.len() == parties.len() && parties.iter().all(|p| by_party[*p].is_number()),
                "{bench}"
            );
        }
        if flags.contains(&"gmw") {
            assert_eq!(bench["cots_per_row"], 94.0);
            assert_eq!(bench["ot"], if flags.contains(&"ferret") { "ferret" } else { "softspoken:4" });
        }
        if what == "match" {
            let (rows, overlap) =
                (bench["rows"].as_u64().unwrap(), if flags.contains(&"1") { 1.0 } else { 0.5 });
            assert_eq!(bench["union"], 2 * rows - (rows as f64 * overlap) as u64);
        }
    }
    let done = tacit(["bench", "match", "--rows", "10", "--engine", "clear", "--json"]);
    done.failed(2, &["unexpected argument '--engine'"]);
    let done = tacit(["bench", "yao", "--rows", "10", "--engine", "gmw", "--json"]);
    done.failed(2, &["possible values: yao, clear"]);
    let done = tacit(["bench", "lift", "--rows", "10", "--parties", "3", "--json"]);
    done.failed(2, &["unexpected argument '--parties'"]);
    let done = tacit(["bench", "gmw", "--ands", "1000", "--transport", "memory"]).fine();
    assert!(
        done.stdout.starts_with("1,024 AND gates (1,000 rounded up to a multiple of 64)"),
        "{}",
        done.stdout
    );
}

/// What a run has told of its sizes gives its bytes, by the plan's own reckoning.
#[test]
fn a_plan_of_the_sizes_of_a_run_states_its_bytes() {
    let pair = Pair::csv(300);
    // What made-up rows take is stated for the most that there can be.
    pair.edit("study.toml", "protocol = \"pid\"", "protocol = \"pid\"\ndummies = \"off\"");
    let [publisher, advertiser] = pair.both([&[], &[]]);
    let report = publisher.fine().json();
    advertiser.fine();
    let told = &report["disclosed"];
    let [first, second, union] =
        [&told["rows"][0], &told["rows"][1], &told["union"]].map(|n| n.as_u64().unwrap());
    let both = first + second - union;
    assert!(both > 0 && both < first, "{told}");
    let (rows, both) = (format!("{first},{second}"), both.to_string());
    let study = pair.path("study.toml").display().to_string();
    let plan = |more: &[&str]| tacit(["plan", &study, "--rows", &rows, "--json"].iter().chain(more));
    let of_match = |stages: &Value| {
        stages.as_array().unwrap().iter().find(|stage| stage["name"] == "match").unwrap()["bytes_sent"]
            .clone()
    };
    let planned = plan(&["--both", &both]).fine().json();
    let [sent, dearest] = [&planned, &plan(&[]).fine().json()]
        .map(|plan| NAMES.map(|name| of_match(&plan["stages"])[name].as_u64().unwrap()));
    assert_eq!(serde_json::json!(sent), of_match(&report["stages"]));
    assert_eq!(planned["assumptions"]["union"], format!("{union}: {both} in both"));
    assert!(dearest[0] > sent[0], "nobody in both is dearer");
    plan(&["--both", "1M"])
        .failed(2, &["1000000 rows in both", "no more are in both than the smaller one has"]);
}

#[test]
fn a_plan_keeps_its_contract() {
    let pair = Pair::csv(50);
    let study = pair.path("study.toml");
    let study = study.to_str().unwrap();
    let plan = |rows: &str, link: &str| {
        tacit(["plan", study, "--rows", rows, "--link", link, "--mean", "10", "--json"]).fine().json()
    };
    let (small, large) = (plan("10k", "10gbps,1ms"), plan("1M", "10gbps,1ms"));
    for stage in small["stages"].as_array().unwrap() {
        numbers(stage, &["and_gates", "ots", "rounds", "seconds"]);
        assert!(stage["name"].is_string() && stage["bytes_sent"]["publisher"].is_number(), "{stage}");
    }
    assert_eq!(small["rho"]["publisher"], 0.1);
    for plan in [&small, &large] {
        let engines = plan["engines"].as_array().unwrap();
        let open: Vec<&Value> = engines.iter().filter(|e| e["needs"].is_null()).collect();
        let names: Vec<_> = open.iter().map(|e| e["engine"].as_str().unwrap()).collect();
        assert_eq!(names, ["yao", "gmw"]);
        engines.iter().for_each(|engine| numbers(engine, &["seconds", "bytes"]));
        let best = open
            .iter()
            .min_by(|a, b| a["seconds"].as_f64().unwrap().total_cmp(&b["seconds"].as_f64().unwrap()));
        let marked: Vec<_> = engines.iter().filter(|e| e["recommended"] == true).collect();
        assert_eq!(marked, [*best.unwrap()]);
    }
    let served = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lift-ring4.toml");
    let served = tacit(["plan", served, "--rows", "10k", "--json"]).fine().json();
    let stages = served["stages"].as_array().unwrap();
    let names: Vec<_> = stages.iter().map(|stage| stage["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["match", "noise", "compute", "release"]);
    assert!(stages[2]["and_gates"].as_u64().unwrap() > 10_000, "{served}");
    assert!(stages[3]["rounds"].as_u64().unwrap() <= 8, "{served}");
    let marked: Vec<_> =
        served["engines"].as_array().unwrap().iter().filter(|e| e["recommended"] == true).collect();
    assert_eq!((marked.len(), &marked[0]["engine"]), (1, &"ring4".into()));
    assert!(small["assumptions"].is_object());
    // What is priced and what is recommended are told apart.
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/program.toml");
    let text = read(Path::new(program)).replace("engine = \"yao\"", "engine = \"gmw\"");
    std::fs::write(pair.path("program.toml"), text).unwrap();
    let words = ["plan", pair.path("program.toml").to_str().unwrap(), "--rows", "1M"].map(str::to_owned);
    let shown = tacit(&words).fine().stdout;
    assert!(
        shown.contains(
            "the fastest here; a run takes it if both agree on compute.engine = \"yao\" in the study"
        )
    );
    assert!(shown.contains("a run takes it (priced above)\n"), "{shown}");
    let left_open = read(Path::new(program)).replace("engine = \"yao\"", "engine = \"auto\"");
    std::fs::write(pair.path("program.toml"), left_open).unwrap();
    let narrow = |columns: &str| {
        let mut command = command(&words);
        Done::from(command.env("COLUMNS", columns).output().unwrap()).fine().stdout
    };
    let told = narrow("2000");
    assert!(
        told.contains("a run takes it (priced above): engine = \"auto\" is gmw wherever that runs"),
        "{told}"
    );
    let told = narrow("80");
    assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
    assert!(
        shown.contains("charges nothing, and what it learns of sizes is charged all the same"),
        "{shown}"
    );
    // Bytes of a release on four servers are those of its page.
    let page = include_str!("../../../../docs/protocols/ring4.md");
    let example = include_str!("../../../../examples/lift-ring4.toml");
    let own = example.replacen("[release.public]", "[release.to.registry]", 1);
    let variance = own.replacen("mode       = \"sums\"", "mode = \"variance\"", 1);
    for text in [example, &own, &variance] {
        std::fs::write(pair.path("served.toml"), text).unwrap();
        let file = pair.path("served.toml");
        let served = tacit(["plan", file.to_str().unwrap(), "--rows", "401974,1488", "--json"]).fine().json();
        let release = served["stages"].as_array().unwrap().last().unwrap();
        let sent: u64 = release["bytes_sent"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        assert!(page.contains(&page::numbers::count(sent)), "{sent}: {release}");
    }
    let effect = |plan: &Value| plan["public_effect"].as_f64().unwrap();
    assert!(effect(&large) < effect(&small), "more people see smaller effects");
    let seconds = |plan: &Value| {
        plan["stages"].as_array().unwrap().iter().map(|s| s["seconds"].as_f64().unwrap()).sum::<f64>()
    };
    assert!(seconds(&plan("1M", "10mbps,100ms")) > seconds(&large), "a slow link takes longer");
    tacit(["plan", study, "--rows", "many", "--json"]).failed(2, &["write a whole number"]);
    tacit(["plan", study, "--rows", "1k,2k,3k", "--json"]).failed(2, &["two numbers serve", "1000,3000"]);
    tacit(["plan", study, "--rows", "1M", "--link", "fast", "--json"]).failed(2, &["10gbps,1ms"]);
    let aligned = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/aligned.toml");
    for command in ["plan", "check"] {
        tacit([command, aligned, "--rows", "10,20", "--json"]).failed(2, &["give --rows one number"]);
    }
    tacit(["plan", study, "--rows", "4G,1G", "--json"]).failed(2, &["limits::ROWS"]);
    let only = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/match.toml");
    let words = tacit(["plan", only, "--rows", "10k"]).fine().stdout;
    assert!(words.contains("privacy    no noised value is for clinic"), "{words}");
    assert!(words.contains("what it learns of sizes is charged all the same: rho 0.01"), "{words}");
    let few = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lift.toml");
    let words = tacit(["plan", few, "--rows", "1k"]).fine().stdout;
    assert!(words.contains("effect     none is stated for arms of 500 and 500 rows: a group has"), "{words}");
    let only = tacit(["plan", only, "--rows", "10k", "--json"]).fine().json();
    let stages: Vec<_> = only["stages"].as_array().unwrap().iter().map(|s| s["name"].clone()).collect();
    assert_eq!(stages, ["match"]);
}

#[test]
fn a_match_is_measured_by_every_protocol() {
    for protocol in ["pid", "multi", "ps3i", "collecting", "circuit-psi"] {
        for more in [&[][..], &["--dummies"][..]] {
            let words = ["bench", "match", "--protocol", protocol, "--rows", "600", "--json"];
            let found = tacit(words.iter().chain(more).copied()).fine().json();
            numbers(&found, &["rows_per_s", "seconds", "bytes_per_row", "union", "multiplications_per_row"]);
            assert_eq!(found["union"], 900, "{protocol}");
            assert!(found["correct"] == true && found["peak_memory_bytes"]["publisher"].is_number());
        }
    }
}

/// One page a command, of the same bytes wherever they are made; what is hidden has none.
#[test]
fn the_manual_has_a_page_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name));
    tacit(["manual", "--out", folder.path().to_str().unwrap()]).fine();
    for name in ["tacit.1", "tacit-run.1", "tacit-gate.1", "tacit-ledger.1", "tacit-ledger-show.1"] {
        assert!(page(name).unwrap().contains(".SH SYNOPSIS"), "{name}");
    }
    assert!(page("tacit-gate.1").unwrap().contains("\\-\\-inside"));
    assert!(page("tacit-worker.1").is_err());
    // `--version` tells what this processor can do.
    assert!(!page("tacit.1").unwrap().contains("processor"));
}

#[test]
fn completions_and_help_know_every_command() {
    let commands =
        ["keygen", "check", "plan", "run", "demo", "generate", "report", "ledger", "bench", "completions"];
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = tacit(["completions", shell]).fine().stdout;
        assert!(commands.iter().all(|command| script.contains(command)), "{shell}");
    }
    let help = tacit(["--help"]).fine().stdout;
    assert!(commands.iter().all(|command| help.contains(command)) && help.contains("Exit codes"), "{help}");
    for command in &commands {
        let help = tacit([command, "--help"]).fine().stdout;
        assert!(help.contains("Example") && help.contains(&format!("tacit {command}")), "{help}");
    }
    let help = tacit(["serve", "--help"]).fine().stdout;
    assert!(["--listen", "--allow-study", "--once"].iter().all(|flag| help.contains(flag)), "{help}");
    assert!(!["--data", "--salt", "--ledger", "--budget"].iter().any(|flag| help.contains(flag)), "{help}");
    let served = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lift-ring4.toml");
    let checked = tacit(["check", served]).fine().stdout;
    let joined = checked.lines().find(|line| line.contains("which rows of different owners are equal"));
    assert!(joined.is_some_and(|line| line.matches("server").count() >= 2), "{checked}");
    assert!(tacit(["--version"]).fine().stdout.starts_with("tacit "));
    assert_eq!(tacit(["frobnicate"]).code, 2);
}

#[test]
fn a_plan_with_prices_says_hours_machines_and_dollars() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let (study, list) = (format!("{root}/examples/lift.toml"), format!("{root}/docs/prices-2026.toml"));
    let words = ["plan", &study, "--rows", "500M", "--cores", "40", "--prices", &list];
    let plan = |more: &[&str]| tacit(words.iter().chain(more).copied());
    let said = plan(&["--json"]).fine().json();
    let bill = &said["bill"];
    assert_eq!((&bill["between"], &bill["machines"]), (&"zones".into(), &2.into()));
    assert_eq!(bill["prices"]["date"], "2026-11-26");
    numbers(&bill["total"], &["hours", "core_hours", "paid_core_hours", "bytes"]);
    let dollars = bill["total"]["usd"].as_array().unwrap();
    let places: Vec<_> = dollars.iter().map(|usd| usd["between"].as_str().unwrap()).collect();
    assert_eq!(places, ["zone", "zones", "internet"]);
    dollars.iter().for_each(|usd| numbers(usd, &["on_demand", "spot", "least"]));
    let sent: u64 = said["stages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|stage| stage["bytes_sent"].as_object().unwrap().values().filter_map(Value::as_u64))
        .sum();
    assert_eq!(bill["total"]["bytes"], sent);
    let kinds = bill["ots"].as_array().unwrap();
    assert_eq!((kinds.len(), &kinds[0]["cheapest"]), (4, &true.into()));
    kinds.iter().for_each(|kind| numbers(kind, &["hours", "bytes"]));
    // Over the internet the fewest bytes are the cheapest.
    let text = plan(&["--between", "internet"]).fine().stdout;
    for part in [
        "what it costs, by prices of 2026-11-26:",
        "machines   2 machines of 32 cores of each party",
        "share_used in the file of prices",
        "dollars    between zones: ",
        "on demand if no core were held idle",
        "cheapest   over the internet: ferret; a study has it that says ot = \"ferret\" under [compute]",
        "assumed    ot: ferret, the cheapest over the internet; a run chooses by the link alone",
        "assumed    reading: ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The answer comes first, and no other time stands beside it.
    let first = text.lines().next().unwrap();
    assert!(first.contains(" on 2 machines of 32 cores of each party; $"), "{text}");
    let total: Vec<&str> = text.lines().filter(|line| line.starts_with("total ")).collect();
    assert!(total.len() == 2 && total[1].split_whitespace().count() > 4, "{text}");
    let time = first.trim_start_matches("answer").trim_start().split(" on ").next().unwrap();
    assert!(total[1].ends_with(time) && !total[0].contains(" s"), "{text}");
    // Without prices nothing changes, and nobody is told a place for nothing.
    let plain = tacit(["plan", &study, "--rows", "10k", "--json"]).fine().json();
    assert!(plain["bill"].is_null() && plain["stages"][0]["core_seconds"].is_number());
    tacit(["plan", &study, "--rows", "10k", "--between", "zone"]).failed(2, &["--prices"]);
    plan(&["--between", "moon"]).failed(2, &["use zone, zones or internet"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prices.toml");
    std::fs::write(&file, read(Path::new(&list)).replace("= 0.0513", "= \"cheap\"")).unwrap();
    let bad = ["plan", &study, "--rows", "10k", "--prices", file.to_str().unwrap(), "--json"];
    tacit(bad).failed(2, &["prices.toml, line", "core_hour_usd is \"cheap\"", "a decimal number"]);
    std::fs::remove_file(&file).unwrap();
    tacit(bad).failed(2, &["cannot open", "prices.toml"]);
}
