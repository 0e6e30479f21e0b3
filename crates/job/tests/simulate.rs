//! A study that one process tries: its exact values against plain arithmetic and against a run, and its draws
//! against the noise that the study states.

mod common;

use common::{CLINICS, all, clinics, outputs, quiet, whole};
use data::generate::for_study;
use job::simulate::{SimulatedNumber, SimulatedView, Simulation, SimulationQuestion, simulate};
use std::collections::BTreeMap;
use std::path::Path;
use study::StudyFile;
use tempfile::TempDir;

const QUESTIONS: &str = include_str!("../../../examples/questions.toml");
const PROGRAM: &str = include_str!("../../../examples/program.toml");
const LIFT: &str = include_str!("../../../examples/lift.toml");

/// Every party's file is `PARTY.csv` of a folder.
fn tried(file: &StudyFile, folder: &Path, draws: u64) -> Simulation {
    let path = |name: &String| (name.clone(), folder.join(format!("{name}.csv")).into());
    let asked = SimulationQuestion {
        data: file.parties.iter().map(|member| path(&member.name)).collect(),
        file: file.clone(),
        made_up: Vec::new(),
        draws,
        seed: 1,
        threads: 2,
    };
    simulate(&asked, &|_, _, _| ()).unwrap_or_else(|error| panic!("{error}"))
}

fn made(text: &str, rows: [u64; 2]) -> (StudyFile, TempDir) {
    let (file, folder) = (StudyFile::parse("study.toml", text).unwrap(), TempDir::new().unwrap());
    let parties: Vec<String> = file.parties.iter().map(|member| member.name.clone()).collect();
    for_study(folder.path(), &file, &parties, rows, 5).unwrap();
    (file, folder)
}

fn view<'a>(simulation: &'a Simulation, viewer: &str) -> &'a SimulatedView {
    let views = &simulation.runs[0].views;
    views.iter().find(|view| view.viewer == viewer).unwrap_or_else(|| panic!("{viewer} sees nothing"))
}

fn numbers(view: &SimulatedView) -> BTreeMap<&str, &SimulatedNumber> {
    let all = view.parts.iter().flat_map(|part| &part.numbers);
    all.map(|number| (&*number.label, number)).collect()
}

/// A file's lines by the first column, each by the names of the others.
fn table(file: &Path) -> BTreeMap<String, BTreeMap<String, String>> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let head = lines.next().unwrap();
    lines.map(|cells| (cells[0].clone(), head.iter().cloned().zip(cells).skip(1).collect())).collect()
}

/// The same exact answers, row keys and lists as four servers give of the same files.
#[test]
fn an_exact_program_gives_what_a_run_gives() {
    let world = clinics(false, &|study| study);
    let (reports, _) = whole(all(&world.owners(""), &world.nodes(), quiet));
    let simulation = tried(&world.study().into(), world.folder.path(), 100);
    for (report, name) in reports.iter().zip(CLINICS) {
        let view = view(&simulation, name);
        let numbers = view.parts.iter().flat_map(|part| &part.numbers);
        let values: Vec<String> = numbers.clone().filter_map(|number| number.exact_digits.clone()).collect();
        let keys: Vec<String> = view.lists.iter().flat_map(|list| list.keys.clone()).collect();
        let key = numbers.clone().find_map(|number| number.key.clone());
        assert_eq!((values, keys, key), outputs(report), "{name}");
        // Nothing is noised, so nothing is drawn.
        assert!(numbers.into_iter().all(|number| number.spread.is_none() && number.released.is_none()));
        assert!(view.rho == 0.0);
    }
}

/// Counts of a program against a plain count over the rows that both files have.
#[test]
fn a_program_counts_what_a_plain_count_counts() {
    let (file, folder) = made(PROGRAM, [3000, 2400]);
    let simulation = tried(&file, folder.path(), 10_000);
    let [clinic, works] = ["clinic", "works"].map(|name| table(&folder.path().join(format!("{name}.csv"))));
    assert_eq!((simulation.runs[0].joined, simulation.runs[0].shared), (4200, 1200));
    let both = || clinic.iter().filter_map(|(key, own)| Some((&own["diagnosis"], works.get(key)?)));
    let long = |works: &BTreeMap<String, String>| works["exposed_days"].parse::<u32>().unwrap() > 29;
    let count = |state: &str, exposed: bool| {
        both().filter(|(own, works)| *own == state && (!exposed || long(works))).count() as f64
    };
    let numbers = numbers(view(&simulation, "clinic"));
    for (label, exact) in [
        ("healthy", count("healthy", false)),
        ("ill", count("ill", false)),
        ("healthy, exposed for more than 29 days", count("healthy", true)),
        ("ill, exposed for more than 29 days", count("ill", true)),
    ] {
        let number = numbers[label];
        assert!(exact > 100.0, "{label}: the files give nothing to count");
        assert_eq!((number.exact, number.exact_digits.clone()), (Some(exact), Some(format!("{exact}"))));
        // rho 1/20 for two counts of which one row changes one: the noise has variance 10.
        let spread = number.spread.as_ref().unwrap();
        assert_eq!(spread.shown, 10_000);
        let (error, deviation) = (spread.mean_error.unwrap(), spread.deviation.unwrap());
        let sigma = 10f64.sqrt();
        // Six standard deviations of a mean, and of a standard deviation, of 10,000 draws.
        assert!(error.abs() < 6.0 * sigma / 100.0, "{label}: {error}");
        assert!((deviation / sigma - 1.0).abs() < 6.0 / 20_000f64.sqrt(), "{label}: {deviation}");
        assert!(spread.low.unwrap() < exact && exact < spread.high.unwrap());
        assert!((spread.high.unwrap() - spread.low.unwrap() - 2.0 * 1.96 * sigma).abs() < 2.5);
        let bins = spread.bins.as_ref().unwrap();
        assert!(bins.counts.iter().sum::<u64>() > 9900 && bins.from < exact && exact < bins.to);
        assert!(number.released.is_some_and(|released| (released - exact).abs() < 8.0 * sigma));
    }
}

/// What a program derives, without noise, is what plain arithmetic makes of the rows.
#[test]
fn a_question_without_noise_is_plain_arithmetic() {
    let (file, folder) = made(QUESTIONS, [5000, 5000]);
    let simulation = tried(&file, folder.path(), 400);
    let [registry, trial] =
        ["registry", "trial"].map(|name| table(&folder.path().join(format!("{name}.csv"))));
    let rows: Vec<(&str, Option<f64>, bool)> = registry
        .iter()
        .filter_map(|(key, own)| {
            let dose = &*trial.get(key)?["arm"];
            let cost = own["eur"].parse::<f64>().ok().map(|cost| cost.clamp(-50.0, 450.0));
            Some((dose, cost, own["icd_group"] == "1"))
        })
        .collect();
    assert!(rows.len() == 2500 && rows.iter().any(|(_, cost, _)| cost.is_none()));
    let mean = |dose: &str| {
        let costs: Vec<f64> = rows.iter().filter(|row| row.0 == dose).filter_map(|row| row.1).collect();
        costs.iter().sum::<f64>() / costs.len() as f64
    };
    let share = |dose: &str| {
        let ill: Vec<bool> = rows.iter().filter(|row| row.0 == dose).map(|row| row.2).collect();
        ill.iter().filter(|ill| **ill).count() as f64 / ill.len() as f64
    };
    let derived = view(&simulation, "trial").parts.iter().find(|part| part.name == "derived").unwrap();
    let found = |words: [&str; 3]| {
        let is = |number: &&SimulatedNumber| words.iter().all(|word| number.label.contains(word));
        let found = derived.numbers.iter().find(is);
        let names: Vec<&str> = derived.numbers.iter().map(|number| &*number.label).collect();
        found.unwrap_or_else(|| panic!("{words:?} is not in {names:?}"))
    };
    for dose in ["none", "low", "high"] {
        let number = found(["mean", "cost", dose]);
        assert!((number.exact.unwrap() - mean(dose)).abs() < 1e-9, "{number:?}");
    }
    for dose in ["low", "high"] {
        let (difference, ratio) = (found(["difference", "cost", dose]), found(["ratio", "ill", dose]));
        assert!((difference.exact.unwrap() - (mean(dose) - mean("none"))).abs() < 1e-9, "{difference:?}");
        assert!((ratio.exact.unwrap() - share(dose) / share("none")).abs() < 1e-9, "{ratio:?}");
        for number in [difference, ratio] {
            let spread = number.spread.as_ref().unwrap();
            // Their intervals cover chance besides, so they hold the exact value nearly always.
            assert!(spread.interval_held.unwrap() > 0.95, "{number:?}");
            assert!(spread.deviation.unwrap() > 0.0 && !number.intervals.is_empty());
        }
    }
}

/// Whatever protocol a run would join rows by, the exact answer of unique identifiers is one.
#[test]
fn every_match_gives_the_same_exact_answer() {
    let (_, folder) = made(LIFT, [6000, 5000]);
    let edited = |rule: &str| {
        let line = LIFT.lines().find(|line| line.starts_with("protocol")).unwrap();
        let text = LIFT.replace(line, rule);
        StudyFile::parse("study.toml", &text).unwrap_or_else(|error| panic!("{rule}: {error}"))
    };
    let exact = |rule: &str| {
        let simulation = tried(&edited(rule), folder.path(), 0);
        let part = &simulation.runs[0].views[0].parts[0];
        assert!(part.refused_share.is_none() && part.numbers.len() > 4);
        let whole = ["rows", "value", "squares", "difference", "mean"];
        let kept = part.numbers.iter().filter(|n| whole.iter().any(|word| n.label.starts_with(word)));
        kept.map(|number| (number.label.clone(), number.exact)).collect::<Vec<_>>()
    };
    let pid = exact("protocol = \"pid\"");
    assert!(pid.iter().all(|(_, value)| value.is_some()), "{pid:?}");
    for rule in ["\"ps3i\"", "\"circuit-psi\"", "\"collecting\"\nslots = 2\ndegree = 2"] {
        let other = exact(&format!("protocol = {rule}"));
        assert_eq!(other, pid, "{rule}");
    }
}

/// What a program computes of noised values has their noise, in one release and in every draw.
#[test]
fn numbers_that_are_computed_of_noised_ones_have_their_noise() {
    let page = include_str!("../../../docs/program.md");
    let program = page.split("```tacit\n").nth(1).unwrap().split_once("```").unwrap().0;
    // A study has its parties in the order of their names.
    let program = program.replacen("party trial\nparty shop\n", "party shop\nparty trial\n", 1);
    let (head, _) = PROGRAM.split_once("[columns]").unwrap();
    let text = head.replace("clinic", "trial").replace("works", "shop")
        + "[columns]\narm = { party = \"trial\", column = \"arm\" }\nspent = { party = \"shop\", column = \
           \"spent\" }\n[program]\ntext = \"\"\"\n"
        + &program
        + "\"\"\"\n[release.to.trial]\nrho = 0.125\n";
    let (file, folder) = made(&text, [4000, 3000]);
    let simulation = tried(&file, folder.path(), 10_000);
    let numbers = numbers(view(&simulation, "trial"));
    let of = |arm: &str| numbers[&*format!("spending, {arm} arm")];
    let (test, control, gap) = (of("test"), of("control"), numbers["difference of spending"]);
    assert!(test.exact.unwrap() > 1000.0 && control.exact.unwrap() > 1000.0, "{test:?} {control:?}");
    assert_eq!(gap.exact.unwrap(), test.exact.unwrap() - control.exact.unwrap());
    assert_eq!(gap.released.unwrap(), test.released.unwrap() - control.released.unwrap());
    assert_ne!(gap.released, gap.exact);
    let deviation = |number: &SimulatedNumber| number.spread.as_ref().unwrap().deviation.unwrap();
    let both = deviation(test).hypot(deviation(control));
    assert!((deviation(gap) / both - 1.0).abs() < 6.0 / 10_000f64.sqrt(), "{gap:?}");
    // What the trial knows by itself has no noise.
    let people = numbers["people in the test arm"];
    let mine = table(&folder.path().join("trial.csv"));
    let plain = mine.values().filter(|row| row["arm"] == "1").count();
    assert_eq!((people.exact, people.released), (Some(plain as f64), Some(plain as f64)));
    assert_eq!(deviation(people), 0.0);
}

/// Of advertisers apart each has a run of its own with the publisher.
#[test]
fn advertisers_apart_are_tried_apart() {
    let text = include_str!("../../../examples/lift-several.toml").replace("\"together\"", "\"apart\"");
    let (file, folder) = made(&text, [6000, 5000]);
    let simulation = tried(&file, folder.path(), 50);
    assert!(file.runs.len() > 1 && simulation.runs.len() == file.runs.len(), "{text}");
    for run in &simulation.runs {
        let part = &run.views[0].parts[0];
        assert!(run.parties.len() == 2 && part.numbers[0].exact.is_some(), "{part:?}");
        assert_eq!((run.joined, run.shared), (8500, 2500));
    }
}

/// Modes that publish group sizes, on the scale of the sizes that the files have.
#[test]
fn modes_with_public_groups_are_tried() {
    for mode in ["variance", "algorithm1"] {
        let text = LIFT.replacen("\"sums\"", &format!("\"{mode}\""), 1);
        let (file, folder) = made(&text, [6000, 5000]);
        let simulation = tried(&file, folder.path(), 2000);
        let lift = &simulation.runs[0].views[0].parts[0].numbers[0];
        let spread = lift.spread.as_ref().unwrap();
        let sums = tried(&StudyFile::parse("study.toml", LIFT).unwrap(), folder.path(), 0);
        let exact = sums.runs[0].views[0].parts[0].numbers[0].exact.unwrap();
        // What is released is in fixed point.
        assert!((lift.exact.unwrap() - exact).abs() < 1e-3 * spread.deviation.unwrap(), "{lift:?} {exact}");
        assert!((spread.noise_held.unwrap() - 0.95).abs() < 0.03, "{spread:?}");
        // As in a run there is nothing to be shown of small groups.
        let (file, folder) = made(&text, [900, 900]);
        let data = file
            .parties
            .iter()
            .map(|m| (m.name.clone(), folder.path().join(format!("{}.csv", m.name)).into()));
        let (data, made_up) = (data.collect(), Vec::new());
        let asked = SimulationQuestion { file, data, made_up, draws: 10, seed: 1, threads: 1 };
        let error = simulate(&asked, &|_, _, _| ()).unwrap_err().to_string();
        assert!(error.contains("fewer than the minimum of 1,000 rows"), "{error}");
    }
}

/// Where one party draws candidates of noise, these are drawn, and spread as the study says.
#[test]
fn candidates_of_noise_spread_as_stated() {
    let (file, folder) =
        made(&PROGRAM.replacen("[release]", "[release]\nnoise = \"cut-and-choose\"", 1), [900, 800]);
    let simulation = tried(&file, folder.path(), 5000);
    for number in numbers(view(&simulation, "clinic")).values() {
        let deviation = number.spread.as_ref().unwrap().deviation.unwrap();
        assert!((deviation / 10f64.sqrt() - 1.0).abs() < 6.0 / 10_000f64.sqrt(), "{number:?}");
        assert!(number.released.is_some());
    }
}

/// A group that is too small is refused as in a run, and its exact answer stands beside.
#[test]
fn groups_that_are_too_small_are_refused_and_counted() {
    let (file, folder) = made(LIFT, [2000, 1500]);
    let simulation = tried(&file, folder.path(), 300);
    let part = &simulation.runs[0].views[0].parts[0];
    assert!(part.refused.as_ref().unwrap().contains("fewer than the minimum of 1,000"), "{part:?}");
    assert!(part.refused_share.unwrap() > 0.2, "{part:?}");
    let lift = &part.numbers[0];
    assert!(lift.exact.is_some() && lift.released.is_none() && lift.spread.as_ref().unwrap().shown < 240);
}
