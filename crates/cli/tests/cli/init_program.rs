//! `tacit init program`: columns of both parties, what is asked about them, and what is compared with what.

use crate::init::{both, in_folder, numbers, table, with};
use crate::support::parties::mixed;
use crate::support::{Done, command, read};
use serde_json::Value;
use std::fmt::Write as _;

/// Most people spend nothing, and a bound of them all would leave nothing of those who do.
#[test]
fn a_mean_is_bounded_by_those_who_spend() {
    let folder = tempfile::tempdir().unwrap();
    let person = |i: u64| format!("p{i},{}", ["none", "high"][(i % 2) as usize]);
    table(folder.path(), "trial.csv", "person,dose", person, 3000);
    let spent = |i: u64| if i.is_multiple_of(100) { 50 + i % 7 * 10 } else { 0 };
    table(folder.path(), "registry.csv", "person,spend", |i| format!("p{i},{}", spent(i)), 3000);
    let run = |line: &str| in_folder(folder.path(), line).fine();
    run("init program --data trial.csv --out spent --columns dose --by dose");
    let line = "init program --data registry.csv --study spent/study.toml --columns spend --mean spend";
    run(&format!("{line} --unit spend=EUR"));
    // 30 people spend 50 to 110.
    let study = read(&folder.path().join("spent/study.toml"));
    assert!(study.contains("mean of spend between 0 200\n"), "{study}");
}

#[test]
fn a_program_is_made_of_both_parties_columns() {
    let folder = tempfile::tempdir().unwrap();
    let (mut trial, mut registry) = ("person,dose,age\n".to_owned(), "person;cost eur;ill\n".to_owned());
    let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
    for i in 0..3000u64 {
        let dose = (mixed(i, 1) % 2) as usize;
        writeln!(trial, "p{i},{},{}", ["none", "high"][dose], 18 + mixed(i, 2) % 70).unwrap();
        let cents = 2_000 + 6_000 * dose as u64 + mixed(i, 3) % 9_000;
        let empty = mixed(i, 4).is_multiple_of(10);
        let cost = if empty { String::new() } else { format!("{},{:02}", cents / 100, cents % 100) };
        writeln!(registry, "P{i};{cost};{}", ["no", "yes"][(mixed(i, 5) % 2) as usize]).unwrap();
        if !empty {
            sums[dose] += cents as f64 / 100.0;
            counts[dose] += 1.0;
        }
    }
    std::fs::write(folder.path().join("trial.csv"), trial).unwrap();
    std::fs::write(folder.path().join("registry.csv"), registry).unwrap();
    let run = |line: &str| in_folder(folder.path(), line);
    let address = base::free_address().unwrap();
    let line = format!("init program --data trial.csv --out doses --listen {address} --rho 0.4");
    run(&line).failed(2, &["Which columns may be asked about", "--columns COLUMN,..", "(dose,age)"]);
    run(&format!("{line} --columns dose,age --unit cost=EUR")).failed(2, &["write COLUMN=UNIT, of one of"]);
    run(&format!("{line} --columns dose,age --by dose")).fine();
    run("check doses/study.toml").failed(2, &["has no second party yet", "tacit init program --data FILE"]);
    let line = format!(
        "init program --data registry.csv --study doses/study.toml --columns ill,cost --peer {address}"
    );
    run(&line.replace("cost", "cost,more")).failed(2, &["no column \"cost\""]);
    let mut own: Vec<&str> = line.split_whitespace().collect();
    let at = own.iter().position(|word| *word == "ill,cost").unwrap();
    own[at] = "ill,cost eur";
    // As the file spells it.
    own.extend(["--mean", "cost eur"]);
    let done = Done::from(command(own).current_dir(folder.path()).output().unwrap()).fine();
    let told = done.stderr.split_once("The study file will tell").unwrap().1;
    assert!(told.contains("the column cost eur: u16") && told.contains("the column ill: bit"), "{told}");
    assert!(done.stderr.contains("set aside = age, ill: nobody asks about these columns"), "{}", done.stderr);
    let study = read(&folder.path().join("doses/study.toml"));
    for part in [
        "column dose u2 trial labels \"none\" \"high\"\n",
        "# column age u8 trial\n",
        "# column ill bit registry\n",
        "# age = { party = \"trial\", column = \"age\" }\n",
        "unit = \"person\"\n",
        "column cost-eur u16 registry scale 100 unit \"EUR\" missing\n",
        "ask public rho 0.4\nby dose\ncount\n# mean of age between 0 100\nmean of cost-eur between 0 200\n",
        "cost-eur = { party = \"registry\", column = \"cost eur\" }",
    ] {
        assert!(study.contains(part), "{part} is not in {study}");
    }
    assert!(study.contains("title  = \"Mean of cost-eur by dose, and rows\"\n"), "{study}");
    for report in both(folder.path(), ["doses/trial.toml", "doses/registry.toml"]) {
        let report = report.fine().json();
        let derived = report["public"]["derived"].as_array().unwrap();
        for (at, label) in ["none", "high"].into_iter().enumerate() {
            let is = |line: &&Value| {
                let text = line["label"].as_str().unwrap();
                text.contains("mean") && text.contains(label)
            };
            let line = derived.iter().find(is).unwrap_or_else(|| panic!("{label} in {derived:?}"));
            let [low, high] = numbers(&line["intervals"][0]);
            let truth = sums[at] / counts[at];
            assert!(low < truth && truth < high, "{truth} in {line}");
        }
    }
    // Its numbers as a table: what was asked, of what, and the group, a column each.
    run("report doses/trial-report/report.json --csv doses.csv").fine();
    let csv = read(&folder.path().join("doses.csv"));
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("viewer,group,quantity,value,") && lines[0].ends_with(",asked,of,dose"));
    for end in [",rows,,high", ",rows,,none", ",mean,cost-eur,high", ",mean,cost-eur,none"] {
        assert_eq!(lines.iter().filter(|line| line.ends_with(end)).count(), 1, "{end} in {csv}");
    }
    // What nobody asked about is asked by an editor: two # fewer, and the line.
    let asked = study
        .replace("# column age", "column age")
        .replace("# age =", "age =")
        .replace("# mean of age", "mean of age");
    std::fs::write(folder.path().join("doses/study.toml"), asked).unwrap();
    for party in ["trial", "registry"] {
        let checked = run(&format!("check doses/{party}.toml --json")).fine().json();
        let derived = checked["derived"]["everybody"].as_array().unwrap();
        assert!(derived.iter().any(|label| label == "mean of age, dose = high"), "{derived:?}");
    }
}

/// Which label others are compared with is said, by whoever completes the study as well.
#[test]
fn a_baseline_is_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let arm = |i: u64| ["Womens E-Mail", "Mens E-Mail", "No E-Mail"][(i % 3) as usize];
    table(folder.path(), "mails.csv", "person,Segment", |i| format!("p{i},{}", arm(i)), 3000);
    table(folder.path(), "shop.csv", "person,spend", |i| format!("p{i},{}", i % 90), 3000);
    let run = |line: &str, more: &[&str]| with(folder.path(), line, more);
    let labels = |out: &str| {
        let study = read(&folder.path().join(out).join("study.toml"));
        study
            .lines()
            .find_map(|line| Some(line.strip_prefix("column segment u2 mails labels ")?.to_owned()))
            .unwrap()
    };
    let begin = "init program --data mails.csv --columns Segment --by Segment --out";
    let done = run(&format!("{begin} a"), &[]).fine();
    assert_eq!(labels("a"), r#""No E-Mail" "Mens E-Mail" "Womens E-Mail""#);
    assert!(done.stderr.contains("others are compared with the first, \"No E-Mail\""), "{}", done.stderr);
    run(&format!("{begin} b --baseline"), &["Womens E-Mail"]).fine();
    assert_eq!(labels("b"), r#""Womens E-Mail" "No E-Mail" "Mens E-Mail""#);
    run(&format!("{begin} c --baseline"), &["Childrens"])
        .failed(2, &["no column has the label Childrens; segment: No E-Mail, Mens E-Mail, Womens E-Mail"]);
    let line =
        "init program --data shop.csv --study a/study.toml --unit spend=EUR --mean spend --columns spend";
    let done = run(&format!("{line} --baseline"), &["Segment=Mens E-Mail"]).fine();
    assert!(done.stderr.contains("baseline of segment = Mens E-Mail: as it was said"), "{}", done.stderr);
    assert_eq!(labels("a"), r#""Mens E-Mail" "No E-Mail" "Womens E-Mail""#);
    // Too narrow a type says which one holds them.
    let study = folder.path().join("a/study.toml");
    std::fs::write(&study, read(&study).replace("segment u2", "segment u1")).unwrap();
    run("check a/study.toml", &[]).failed(2, &["has 3 labels, which bit does not hold", "write u2"]);
}
