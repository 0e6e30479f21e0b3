//! `tacit init`: from two files to two reports, and every refusal.

use crate::support::parties::mixed;
use crate::support::{Done, Running, command, read, tacit};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;

/// A folder with the two files of a mailing and a shop, as programs for tables leave them.
struct Trial {
    folder: TempDir,
    /// What each person of the mailing spent afterwards, in cents, and whether it was written to.
    spent: BTreeMap<u64, (bool, i64)>,
}

/// Days behind 2026-02-01 as a spreadsheet numbers them.
const FEBRUARY: u64 = 46_054;

impl Trial {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut spent = BTreeMap::new();
        // Semicolons, ends of lines of Windows, German dates, an empty time, capitals.
        let mut mails = "E-Mail;Gruppe;Versand\r\n".to_owned();
        for i in 0..6000 {
            let treated = mixed(i, 1) % 2 == 1;
            let day = 3 + mixed(i, 2) % 10;
            let group = if treated { "Newsletter" } else { "Kontrolle" };
            write!(mails, "Kunde.{i}@Example.org;{group};{day:02}.02.2026\r\n").unwrap();
            spent.insert(i, (treated, 0));
        }
        // Decimal commas, refunds, numbers of days, people without a purchase, a mark of UTF-8.
        let mut sales = "\u{feff}Kundennummer;email;Datum;Betrag EUR\r\n".to_owned();
        for i in 3000..9000u64 {
            write!(sales, "{};kunde.{i}@example.org;;\r\n", 100_000 + i).unwrap();
            let buys =
                mixed(i, 3) % 10 < if spent.get(&i).is_some_and(|(treated, _)| *treated) { 6 } else { 3 };
            if !buys {
                continue;
            }
            let cents = 500 + (mixed(i, 4) % 4_000) as i64;
            let refund = if mixed(i, 5).is_multiple_of(20) { cents / 2 } else { 0 };
            let line = |cents: i64| {
                let sign = if cents < 0 { "-" } else { "" };
                format!("{sign}{},{:02}", cents.abs() / 100, cents.abs() % 100)
            };
            // On the 20th, after all mails.
            let day = FEBRUARY + 19;
            write!(sales, "{};kunde.{i}@example.org;{day};{}\r\n", 100_000 + i, line(cents)).unwrap();
            if refund > 0 {
                write!(sales, "{};kunde.{i}@example.org;{};{}\r\n", 100_000 + i, day + 3, line(-refund))
                    .unwrap();
            }
            if let Some(person) = spent.get_mut(&i) {
                person.1 = cents - refund;
            }
        }
        std::fs::write(folder.path().join("mails.csv"), mails).unwrap();
        std::fs::write(folder.path().join("sales.csv"), sales).unwrap();
        Self { folder, spent }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command in this folder.
    fn tacit(&self, line: &str) -> Done {
        in_folder(self.folder.path(), line)
    }

    /// Difference of means per person, clamped, in euros.
    fn truth(&self, clamp: f64) -> f64 {
        let mean = |of: bool| {
            let people = self.spent.values().filter(|(treated, _)| *treated == of);
            let spent: Vec<f64> = people.map(|(_, cents)| (*cents as f64 / 100.0).min(clamp)).collect();
            spent.iter().sum::<f64>() / spent.len() as f64
        };
        mean(true) - mean(false)
    }
}

pub fn in_folder(folder: &Path, line: &str) -> Done {
    command(line.split_whitespace()).current_dir(folder).stdin(Stdio::null()).output().unwrap().into()
}

/// Both parties' runs to their end.
pub fn both(folder: &Path, parties: [&str; 2]) -> [Done; 2] {
    let start = |party: &str| {
        let mut run = command(["run", party, "--json"]);
        run.current_dir(folder);
        Running::start(run)
    };
    let [first, second] = parties.map(start);
    [first.end(), second.end()]
}

pub fn numbers(value: &Value) -> [f64; 2] {
    [value[0].as_f64().unwrap(), value[1].as_f64().unwrap()]
}

#[test]
fn two_files_become_two_reports_in_five_commands() {
    let trial = Trial::new();
    let address = base::free_address().unwrap();
    let line = format!("init lift --publisher mails.csv --out lift --listen {address} --json");
    let begun = trial.tacit(&line).fine().json();
    assert_eq!((begun["finished"].as_bool(), begun["rows"].as_u64()), (Some(false), Some(6000)));
    trial.tacit("check lift/study.toml").failed(
        2,
        &[
            "the study is not finished: it has no advertiser yet",
            "tacit init lift --advertiser FILE --study lift/study.toml",
        ],
    );
    let line =
        format!("init lift --advertiser sales.csv --study lift/study.toml --peer {address} --yes --json");
    let done = trial.tacit(&line).fine().json();
    assert_eq!(done["finished"], true);
    let study = read(&trial.path("lift/study.toml"));
    for part in [
        "identifiers = [ { name = \"E-Mail\", normalise = [\"email\"] } ]",
        "test = \"Newsletter\", control = \"Kontrolle\"",
        "origin = 2026-02-01\n",
        "unit   = \"day\"\n",
        "span   = 30\n",
        "value      = { column = \"Betrag EUR\", type = \"u32\", unit = \"EUR\", scale = 100, negative = \
         \"net\" }",
        "max_events = 1\n",
        "clamp        = 50\n",
    ] {
        assert!(study.contains(part), "{part} is not in {study}");
    }
    // What only the owner may know is not in what both hold.
    assert!(!study.contains("unfinished") && !study.contains("02-03") && !study.contains("6000"), "{study}");
    let own = read(&trial.path("lift/advertiser.toml"));
    for part in [
        "decimal = \",\"",
        "dates = { \"Datum\" = [\"spreadsheet\"] }",
        "columns = { \"E-Mail\" = \"email\" }",
        "data     = \"../sales.csv\"",
    ] {
        assert!(own.contains(part), "{part} is not in {own}");
    }
    let publisher = read(&trial.path("lift/publisher.toml"));
    assert!(publisher.contains("dates = { \"Versand\" = [\"%d.%m.%Y\"] }"), "{publisher}");
    // Each allows what the study costs, its sizes included: not what a study costs that comes back dearer.
    assert!(publisher.contains("max_rho  = 0.11\n") && own.contains("max_rho  = 0.11\n"), "{own}");
    let path = trial.path("lift/study.toml");
    std::fs::write(&path, study.replace("rho = 0.1\n", "rho = 0.12\n")).unwrap();
    trial
        .tacit("check lift/publisher.toml")
        .failed(5, &["the study spends rho 0.12 on what everybody sees", "policy.max_rho is 0.11"]);
    std::fs::write(&path, &study).unwrap();
    let hashes = ["publisher", "advertiser"].map(|party| {
        trial.tacit(&format!("check lift/{party}.toml --json")).fine().json()["study"]["hash"].clone()
    });
    assert_eq!(hashes[0], hashes[1]);
    let truth = trial.truth(50.0);
    assert!(truth > 3.0, "the mailing works: {truth}");
    for report in both(trial.folder.path(), ["lift/publisher.toml", "lift/advertiser.toml"]) {
        let report = report.fine().json();
        let estimate = &report["public"]["cells"][0]["estimate"];
        // Of these people the difference is exact but for noise: five deviations of it are never met.
        let [low, high] = numbers(&estimate["noise_interval"]);
        let (lift, half) = (estimate["lift"].as_f64().unwrap(), (high - low) / 2.0);
        assert!((lift - truth).abs() < half * 5.0 / 1.96, "{truth} in {estimate}");
    }
}

#[test]
fn either_party_may_begin() {
    let trial = Trial::new();
    trial.tacit("init lift --advertiser sales.csv --out shop --id email --yes").fine();
    trial
        .tacit("check shop/study.toml")
        .failed(2, &["it has no publisher yet", "tacit init lift --publisher FILE"]);
    let wrong = trial.tacit("init lift --advertiser sales.csv --study shop/study.toml --out other --yes");
    wrong.failed(2, &["the study has its advertiser and lacks its publisher"]);
    trial.tacit("init lift --publisher mails.csv --study shop/study.toml --out sender").fine();
    let checked = trial.tacit("check sender/publisher.toml --json").fine().json();
    assert_eq!(checked["inputs"]["rows_kept"], 6000);
    let checked = trial.tacit("check shop/advertiser.toml --json").fine().json();
    assert_eq!(checked["inputs"]["rows_kept"], 6000);
    let again = trial.tacit("init lift --publisher mails.csv --study shop/study.toml --out third");
    again.failed(2, &["the study is finished, there is nothing to complete"]);
}

/// Feeds lines to a command.
pub fn asked(folder: &Path, line: &str, answers: &str) -> Done {
    let mut child = command(line.split_whitespace());
    child.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    child.stdin.take().unwrap().write_all(answers.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

#[test]
fn what_a_file_does_not_say_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = "user,arm,seen\n".to_owned();
    for i in 0..2400 {
        writeln!(rows, "u{i},{},0{}/0{}/2026", ["a", "b"][i % 2], 1 + i % 5, 2 + i % 3).unwrap();
    }
    std::fs::write(folder.path().join("a.csv"), rows).unwrap();
    let line = "init lift --publisher a.csv --out lift";
    in_folder(folder.path(), line).failed(2, &["Which label of \"arm\"", "say it by --control LABEL"]);
    in_folder(folder.path(), &format!("{line} --control b --yes")).failed(
        2,
        &["How are dates of \"seen\" written?", "%d/%m/%Y: 2026-02-01 to", "say it by --dates seen=FORM"],
    );
    assert!(!folder.path().join("lift").exists());
    let done = asked(folder.path(), &format!("{line} --stdin"), "x\n2\n1\nA or b?\nyes\n").fine();
    assert!(done.stderr.contains("A number from 1 to 2, please"), "{}", done.stderr);
    assert!(done.stderr.contains("The study file will tell the other party"), "{}", done.stderr);
    let study = read(&folder.path().join("lift/study.toml"));
    assert!(
        study.contains("test = \"a\", control = \"b\"") && study.contains("origin = 2026-02-01"),
        "{study}"
    );
    assert!(study.contains("title  = \"A or b?\"\n") && !study.contains("names of columns"), "{study}");
    let own = read(&folder.path().join("lift/publisher.toml"));
    assert!(own.contains("dates = { \"seen\" = [\"%d/%m/%Y\"] }"), "{own}");
    let refused = asked(folder.path(), &format!("{line}-2 --control b --dates %m/%d/%Y --stdin"), "\nno\n");
    refused.failed(2, &["nothing was written"]);
    assert!(!folder.path().join("lift-2").exists());
    asked(folder.path(), &format!("{line}-2 --stdin"), "")
        .failed(2, &["standard input ended", "--control LABEL"]);
}

/// A file with a header and rows.
pub fn table(folder: &Path, name: &str, header: &str, row: impl Fn(u64) -> String, rows: u64) {
    let rows: String = (0..rows).map(|i| row(i) + "\n").collect();
    std::fs::write(folder.join(name), format!("{header}\n{rows}")).unwrap();
}

/// The study goes to the other party, and a name in it would.
#[test]
fn labels_of_few_rows_are_not_told() {
    let folder = tempfile::tempdir().unwrap();
    let person = |i: u64| format!("P{i},Person {i},{},{}.5", ["low", "high"][(i % 2) as usize], 60 + i);
    table(folder.path(), "few.csv", "patient_id,name,dose,\"weight, kg\"", person, 15);
    let run = |line: &str, more: &[&str]| with(folder.path(), line, more);
    let done = run("init program --data few.csv --yes", &[]).fine();
    let why = "note: not proposed: \"name\" has 15 labels, 15 of which fewer than 10 rows have";
    assert!(done.stderr.contains(why), "{}", done.stderr);
    let study = read(&folder.path().join("program/study.toml"));
    assert!(study.contains("column weight--kg u16 few scale 100\n"), "{study}");
    assert!(!study.contains("Person") && !study.contains("high"), "{study}");
    let line = "init program --data few.csv --out other --columns";
    run(line, &["weight, kg,name", "--unit", "weight, kg=kg"])
        .failed(2, &["column \"name\" has 15 labels", "Leave it out"]);
    // What nobody can be asked about is said, column by column.
    let person = |i: u64| format!("P{i},Person {i},{}", 1000 + 7 * i);
    table(folder.path(), "none.csv", "patient_id,name,account", person, 40);
    run("init program --data none.csv --out none --yes", &[]).failed(
        2,
        &[
            "none.csv: no column is proposed",
            "\"name\" has neither at most 20",
            "\"account\" has another whole",
        ],
    );
    // Arms as well.
    let person = |i: u64| format!("p{i}@e.org,{},2026-02-03", if i < 4 { "holdout" } else { "mail" });
    table(folder.path(), "arms.csv", "email,group,sent", person, 2400);
    run("init lift --publisher arms.csv", &[]).failed(
        2,
        &[
            "4 rows of \"group\" with \"holdout\": a label that fewer than 10 rows have",
            "--control \"holdout\"",
        ],
    );
    let arms = ["mail", "holdout"];
    let person = |i: u64| {
        let arm = if i < 4 { "Person X" } else { arms[(i % 2) as usize] };
        format!("p{i}@e.org,{arm},2026-02-03")
    };
    table(folder.path(), "arms.csv", "email,group,sent", person, 2400);
    run("init lift --publisher arms.csv --test mail", &[])
        .failed(2, &["4 rows with \"Person X\", which would be told to the other party, though few rows"]);
}

#[test]
fn dates_that_stand_for_never_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for never in ["9999-12-31", "0001-01-01"] {
        let sent = |i: u64| if i == 7 { never } else { "2026-02-03" };
        let person = |i: u64| format!("p{i}@e.org,{},{}", ["mail", "control"][(i % 2) as usize], sent(i));
        table(folder.path(), "a.csv", "email,group,sent", person, 2400);
        in_folder(folder.path(), "init lift --publisher a.csv")
            .failed(2, &["a.csv, column \"sent\": times go from", never, "empty the cells of others"]);
    }
    assert!(!folder.path().join("lift").exists());
}

/// Days that a program wrote with a time are days, whatever the zone.
#[test]
fn midnights_are_days() {
    let folder = tempfile::tempdir().unwrap();
    let person = |i: u64| {
        format!("p{i}@e.org,{},2026-02-{:02} 00:00:00", ["mail", "control"][(i % 2) as usize], 1 + i % 9)
    };
    table(folder.path(), "a.csv", "email,group,sent", person, 2400);
    let line = "init lift --publisher a.csv --zone Europe/Berlin --out";
    in_folder(folder.path(), &format!("{line} lift"))
        .failed(2, &["All times of \"sent\" are midnight. Are they days?", "say it by --dates sent=FORM"]);
    in_folder(folder.path(), &format!("{line} lift --yes")).fine();
    let study = read(&folder.path().join("lift/study.toml"));
    assert!(study.contains("origin = 2026-02-01\n"), "{study}");
    assert!(read(&folder.path().join("lift/publisher.toml")).contains("\"%Y-%m-%d %0:%0:%0\""));
    // Who says that they are times has the day before, and is told.
    let clock = format!("{line} clock --time-unit day");
    with(folder.path(), &clock, &["--dates", "sent=%Y-%m-%d %H:%M:%S"]).fine();
    let study = read(&folder.path().join("clock/study.toml"));
    assert!(study.contains("origin = 2026-01-01\n"), "{study}");
    let sale = |i: u64| format!("p{i}@e.org,2026-03-05");
    table(folder.path(), "b.csv", "email,bought", sale, 2000);
    in_folder(folder.path(), "init lift --advertiser b.csv --study clock/study.toml").fine();
    let checked = in_folder(folder.path(), "check clock/publisher.toml").fine().stdout;
    let told = "column \"sent\": all 2400 times are midnight of `zone`";
    assert!(checked.contains(told), "{checked}");
    // Numbers that fit the study's clock, and are days of a spreadsheet.
    let numbers = |first: &'static [&str]| {
        let person = move |i: u64| {
            let arm = ["mail", "control"][(i % 2) as usize];
            format!("p{i}@e.org,{arm},{}", first[(i % first.len() as u64) as usize])
        };
        table(folder.path(), "a.csv", "email,group,sent", person, 2400);
        let study = read(&folder.path().join("lift/study.toml"));
        let study = study.replace("unit   = \"day\"", "unit   = \"second\"");
        let spanned = |line: &str| match line.starts_with("span ") {
            true => "span   = 33554430\n".to_owned(),
            false => format!("{line}\n"),
        };
        std::fs::write(folder.path().join("lift/study.toml"), study.lines().map(spanned).collect::<String>())
            .unwrap();
        let own = folder.path().join("lift/publisher.toml");
        let text = read(&own);
        let plain = text.lines().filter(|line| !line.starts_with("dates = "));
        std::fs::write(&own, plain.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        in_folder(folder.path(), "check lift/publisher.toml").fine().stdout
    };
    in_folder(folder.path(), "init lift --advertiser b.csv --study lift/study.toml").fine();
    let said = "all 2400 whole numbers count units since the study's origin, and all could be";
    let checked = numbers(&["46082", "46083"]);
    assert!(
        checked.contains(&format!("{said} numbers that a spreadsheet gives to days (46082")),
        "{checked}"
    );
    let checked = numbers(&["20260315", "20260401"]);
    assert!(checked.contains(&format!("{said} dates in digits (20260315)")), "{checked}");
    assert!(!numbers(&["20260315", "7"]).contains(said));
}

#[test]
fn amounts_that_are_no_numbers_are_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    let sale =
        |i: u64| format!("p{i}@e.org,2026-03-05,{}", if i == 3 { "n/a".into() } else { i.to_string() });
    table(folder.path(), "b.csv", "email,day,amount", sale, 100);
    let line = "init lift --advertiser b.csv --yes";
    in_folder(folder.path(), line).failed(
        2,
        &["line 5, column \"amount\": \"n/a\" is no amount. Write amounts", "say it by --value 1"],
    );
    // Nor are amounts with a word behind, whatever the column is called.
    let weighed = |i: u64| format!("p{i}@e.org,2026-03-05,{} kg", i % 40);
    table(folder.path(), "weighed.csv", "email,day,menge", weighed, 100);
    in_folder(folder.path(), "init lift --advertiser weighed.csv --yes").failed(
        2,
        &[
            "line 2, column \"menge\": \"0 kg\" is no amount. Write amounts as numbers alone, without kg; \
             --unit kg says it",
            "say it by --value 1",
        ],
    );
    let title = ["--value", "1", "--title", "He said \"x\" \\"];
    with(folder.path(), line, &title).fine();
    assert!(read(&folder.path().join("lift/study.toml")).contains("title  = \"He said \\\"x\\\" \\\\\"\n"));
    let cost = |i: u64| format!("p{i},{}.50", i % 30);
    table(folder.path(), "c.csv", "patient_id,cost_eur", cost, 100);
    with(folder.path(), "init program --data c.csv --yes", &title[2..]).fine();
    let study = read(&folder.path().join("program/study.toml"));
    assert!(study.contains("name \"He said 'x' '\"\n"), "{study}");
}

/// 950 and 1,234 are two amounts of one size, or one is a thousandth of the other.
#[test]
fn commas_that_could_separate_thousands_are_not_read_as_decimals() {
    let folder = tempfile::tempdir().unwrap();
    let sales = "email,day,amount\na@b.de,2026-03-01,950\nc@d.de,2026-03-02,\"1,234\"\ne@f.de,,\n";
    std::fs::write(folder.path().join("sales.csv"), sales).unwrap();
    let line = "init lift --advertiser sales.csv --yes";
    in_folder(folder.path(), line)
        .failed(2, &["column \"amount\"", "separate thousands", "say it by --decimal , or --thousands ,"]);
    for (said, scale) in [("--decimal ,", true), ("--thousands ,", false)] {
        in_folder(folder.path(), &format!("{line} {said}")).fine();
        assert_eq!(read(&folder.path().join("lift/study.toml")).contains("scale = 1000"), scale);
        std::fs::remove_dir_all(folder.path().join("lift")).unwrap();
    }
}

/// A mailing of three arms, and what its people spent.
pub fn three_arms(folder: &Path, people: u64, odd: &str) {
    let (mut mails, mut sales) =
        ("email,new,segment,sent\n".to_owned(), "email,region,kind,day,amount\n".to_owned());
    for i in 0..people {
        let label = ["Mens E-Mail", "Womens E-Mail", "No E-Mail"][(i % 3) as usize];
        writeln!(mails, "p{i}@example.org,{},{label},2026-02-{:02}", i % 2, 3 + i % 10).unwrap();
        let (region, cents) = (["north", "south"][(i / 3 % 2) as usize], 100 + mixed(i, 1) % 5_000);
        let bought = mixed(i, 2) % 10 < [6, 9, 3][(i % 3) as usize];
        let (day, amount) = match bought {
            true => ("2026-02-20", format!("{}.{:02}", cents / 100, cents % 100)),
            false => ("", String::new()),
        };
        writeln!(sales, "p{i}@example.org,{region},{},{day},{amount}", i % 2).unwrap();
        if i.is_multiple_of(50) {
            writeln!(sales, "p{i}@example.org,{region},{},,", (i + 1) % 2).unwrap();
        }
    }
    std::fs::write(folder.join("mails.csv"), mails + odd).unwrap();
    std::fs::write(folder.join("sales.csv"), sales).unwrap();
}

/// With arguments that have spaces in them.
pub fn with(folder: &Path, line: &str, more: &[&str]) -> Done {
    let words = line.split_whitespace().chain(more.iter().copied());
    command(words).current_dir(folder).stdin(Stdio::null()).output().unwrap().into()
}

#[test]
fn two_of_three_arms_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    three_arms(folder.path(), 9000, "");
    let run = |line: &str, more: &[&str]| with(folder.path(), line, more);
    let line = "init lift --publisher mails.csv --out lift";
    // Two columns could be it, and then the labels say which.
    run(line, &[])
        .failed(2, &["in which arm of the trial a person is? One of: new; segment.", "--arm COLUMN"]);
    run(line, &["--arm", "segment"]).failed(2, &["were treated? One of: Mens E-Mail; Womens E-Mail."]);
    let slip = run(line, &["--test", "Mens E-Mail", "--control", "No E-Mial"]);
    slip.failed(2, &["has \"Mens E-Mail\" and \"No E-Mial\"", "did you mean \"No E-Mail\"?"]);
    let address = base::free_address().unwrap();
    let arms = ["--test", "Mens E-Mail", "--control", "No E-Mail", "--listen", &address];
    let done = run(line, &arms).fine();
    assert!(
        done.stderr.contains("\"Womens E-Mail\" 3,000 rows: as if they were in no file"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("--breakdown \"new\": 2 values"), "{}", done.stderr);
    let study = read(&folder.path().join("lift/study.toml"));
    assert!(
        study.contains("control = \"No E-Mail\", leave_out = [\"Womens E-Mail\"] }")
            && !study.contains("3,000"),
        "{study}"
    );
    let line = format!("init lift --advertiser sales.csv --study lift/study.toml --peer {address}");
    run(&line, &["--cohort", "kind"])
        .failed(2, &["In which unit are the amounts of \"amount\"", "--unit UNIT"]);
    let done = run(&line, &["--unit", "EUR", "--max-events", "1"]).fine();
    assert!(done.stderr.contains("--cohort \"region\": 2 values"), "{}", done.stderr);
    assert!(done.stderr.contains("not \"kind\": sales.csv, line 3: another cohort"), "{}", done.stderr);
    let checked = run("check lift/publisher.toml", &[]).fine().stdout;
    assert!(
        checked.contains("3,000 rows left out: arm \"Womens E-Mail\", which the study does not compare"),
        "{checked}"
    );
    let other = run("check lift/advertiser.toml", &[]).fine().stdout;
    // Nobody here knows how many people the arm has that is left out: both ends are said.
    let supposed = "if each is an arm as large as the two that are compared, 6,000 people are in these";
    let few = "effect     if few people have the labels left out, 9,000 are in the two: from ";
    assert!(other.contains(supposed) && other.contains(few), "{other}");
    let plan = run("check lift/advertiser.toml --json", &[]).fine().json()["plan"].clone();
    assert_eq!(plan["few_left_out"]["rows"], 9000);
    assert!(plan["few_left_out"]["effect"].as_f64() < plan["public_effect"].as_f64(), "{plan}");
    let said = run("check lift/advertiser.toml --rows 8k,9k --json", &[]).fine().json();
    assert_eq!(said["plan"]["few_left_out"], serde_json::Value::Null);
    let study = read(&folder.path().join("lift/study.toml"));
    assert!(study.contains("title  = \"amount: Mens E-Mail against No E-Mail\"\n"), "{study}");
    assert!(study.contains("lower_is_better = false\n"), "{study}");
    assert!(
        other.contains("left out   rows of the arms \"Womens E-Mail\": as if they were in no file"),
        "{other}"
    );
    let inputs = run("check lift/publisher.toml --json", &[]).fine().json()["inputs"].clone();
    let left = serde_json::json!([{ "label": "Womens E-Mail", "rows": 3000 }]);
    assert_eq!((&inputs["rows_kept"], &inputs["arms_left_out"]), (&6000.into(), &left));
    // Both reports: nobody of the third arm is in a number of it, though they bought most.
    let [publisher, advertiser] = both(folder.path(), ["lift/publisher.toml", "lift/advertiser.toml"]);
    let (publisher, advertiser) = (publisher.fine().json(), advertiser.fine().json());
    assert_eq!((&publisher["inputs"]["arms_left_out"], &publisher["public"]), (&left, &advertiser["public"]));
    let rows = |arm: &str| {
        let counts = publisher["public"]["cells"][0]["counts"].as_array().unwrap();
        let is = |one: &&Value| one["quantity"] == "rows" && one["arm"] == arm;
        let count = counts.iter().find(is).unwrap_or_else(|| panic!("{arm} in {counts:?}"));
        count["value"].as_str().unwrap().parse::<f64>().unwrap()
    };
    // Its deviation is about five.
    assert!(["test", "control"].iter().all(|arm| (rows(arm) - 3000.0).abs() < 60.0), "{publisher}");
}

#[test]
fn what_a_run_would_refuse_is_not_proposed() {
    let folder = tempfile::tempdir().unwrap();
    three_arms(folder.path(), 6000, "");
    let arms = ["--test", "Mens E-Mail", "--control", "No E-Mail"];
    let line = "init lift --publisher mails.csv --out lift --breakdown new";
    // 2,000 people of each arm, 1,000 of each value: just enough. Of 5,700 they are not.
    with(folder.path(), &format!("{line}-2"), &arms).failed(2, &["no column \"new-2\""]);
    three_arms(folder.path(), 5700, "");
    with(folder.path(), line, &arms).failed(
        2,
        &[
            "the test arm (Mens E-Mail) of breakdown 0 has 950 rows",
            "`tacit check` would refuse the study. Leave --breakdown out",
        ],
    );
    let line = "init lift --publisher mails.csv --out lift";
    let done = with(folder.path(), line, &arms).fine();
    assert!(
        done.stderr.contains("not \"new\": the test arm (Mens E-Mail) of breakdown 0 has 950"),
        "{}",
        done.stderr
    );
    let sales = read(&folder.path().join("sales.csv"));
    std::fs::write(folder.path().join("sales.csv"), sales.replacen("north", "tiny", 12)).unwrap();
    let line = "init lift --advertiser sales.csv --study lift/study.toml --unit EUR --cohort";
    with(folder.path(), line, &["region"]).failed(
        2,
        &["cohort tiny, of both arms together, has", "rows, so the smaller arm of it", "Leave --cohort"],
    );
    std::fs::write(folder.path().join("sales.csv"), sales.replacen("north", "tiny", 9)).unwrap();
    with(folder.path(), line, &["region"]).failed(
        2,
        &["column \"region\": 9 rows with \"tiny\", and a value that fewer than 10 rows have is not told"],
    );
    with(folder.path(), line, &["kind"]).failed(2, &["another cohort than the same identifier has"]);
}

#[test]
fn one_row_far_from_all_others_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let far = "far@example.org,0,No E-Mail,1926-02-03\n";
    three_arms(folder.path(), 6000, far);
    let arms = ["--test", "Mens E-Mail", "--control", "No E-Mail"];
    let done = with(folder.path(), "init lift --publisher mails.csv --out lift", &arms).fine();
    let said = "1 of 4,001 times is before 2026-02, the first in 1926-02";
    assert!(done.stderr.contains(&format!("note: {said}")), "{}", done.stderr);
    assert!(read(&folder.path().join("lift/publisher.toml")).contains(said));
    let study = read(&folder.path().join("lift/study.toml"));
    assert!(study.contains("origin = 1926-02-01\n") && !study.contains("4,001"), "{study}");
    let rounded = |months: &str| {
        let line = format!("init lift --publisher mails.csv --out round --months {months}");
        with(folder.path(), &line, &arms)
    };
    rounded("2026-01..2026-12")
        .failed(2, &["--months leaves out times of the file, which go from 1926-02-01"]);
    rounded("2026").failed(2, &["write the first month and the last: 2026-01..2026-12"]);
    rounded("1900-01..2026-12").fine();
    assert!(read(&folder.path().join("round/study.toml")).contains("origin = 1900-01-01\n"));
    // A few buyers, one of whom bought for a thousand times as much, often.
    let mut sales = "email,day,amount_usd\n".to_owned();
    (0..60).for_each(|i| writeln!(sales, "p{i}@example.org,2026-02-20,{}.50", 1 + i % 9).unwrap());
    (0..12).for_each(|_| sales += "p60@example.org,2026-02-21,9000.00\n");
    (61..3000).for_each(|i| writeln!(sales, "p{i}@example.org,,").unwrap());
    std::fs::write(folder.path().join("sales.csv"), sales).unwrap();
    let line = "init lift --advertiser sales.csv --study lift/study.toml";
    with(folder.path(), line, &[]).fine();
    let study = read(&folder.path().join("lift/study.toml"));
    for part in ["clamp        = 10\n", "max_events = 1\n", "unit = \"USD\", scale = 100"] {
        assert!(study.contains(part), "{part} is not in {study}");
    }
}

#[test]
fn rows_that_would_spoil_the_comparison_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, rows: &str| {
        let header = "email,group,sent\n";
        std::fs::write(folder.path().join(name), format!("{header}{rows}")).unwrap();
    };
    let person = |i: usize, sent: [&str; 2]| {
        format!("p{i}@example.org,{},{}\n", ["mail", "control"][i % 2], sent[i % 2])
    };
    // Nobody wrote to the control arm, so the date is empty there.
    let mailed: String = (0..2400).map(|i| person(i, ["2026-02-03", ""])).collect();
    file("mailed.csv", &mailed);
    let line = "init lift --publisher mailed.csv --out lift";
    in_folder(folder.path(), line).failed(
        2,
        &["nobody with \"control\" in column \"group\" has a time in column \"sent\"", "in both arms"],
    );
    // One of the rows stands twice.
    let all: String = (0..2400).map(|i| person(i, ["2026-02-03"; 2])).collect();
    file("twice.csv", &format!("{all}{}", person(7, ["2026-02-04"; 2])));
    let line = "init lift --publisher twice.csv --out lift";
    in_folder(folder.path(), line)
        .failed(2, &["1 rows have the identifier of an earlier row", "--duplicates RULE"]);
    let done = in_folder(folder.path(), &format!("{line} --yes")).fine();
    assert!(done.stderr.contains("that identifiers may repeat"), "{}", done.stderr);
    assert!(read(&folder.path().join("lift/study.toml")).contains("duplicates  = \"first\"\n"));
}

#[test]
fn what_is_there_is_not_overwritten() {
    let trial = Trial::new();
    trial.tacit("init lift --publisher mails.csv --out lift").fine();
    let before = read(&trial.path("lift/study.toml"));
    trial
        .tacit("init lift --publisher mails.csv --out lift --json")
        .failed(2, &["lift/study.toml exists and is not overwritten"]);
    let party =
        trial.tacit("init lift --advertiser sales.csv --study lift/study.toml --party publisher --yes");
    party.failed(2, &["--party publisher: the other party is called publisher"]);
    std::fs::write(trial.path("lift/advertiser.toml"), "").unwrap();
    let there = trial.tacit("init lift --advertiser sales.csv --study lift/study.toml --yes");
    there.failed(2, &["lift/advertiser.toml exists and is not overwritten"]);
    assert_eq!(read(&trial.path("lift/study.toml")), before);
    let column = trial.tacit("init lift --publisher mails.csv --out other --arm grupe");
    column.failed(2, &["mails.csv: no column \"grupe\"", "did you mean \"Gruppe\"?"]);
    trial.tacit("init lift --publisher mails.csv --advertiser sales.csv").failed(2, &["cannot be used with"]);
    trial.tacit("init lift --advertiser sales.csv --arm Gruppe").failed(2, &["cannot be used with"]);
    let kind = trial.tacit("init match --data sales.csv --study lift/study.toml --yes");
    kind.failed(2, &["of kind \"lift\""]);
    trial.tacit("init lift --publisher nowhere.csv --out other").failed(2, &["cannot open nowhere.csv"]);
    // A key that is there is used.
    let key = read(&trial.path("lift/publisher.key"));
    std::fs::remove_file(trial.path("lift/study.toml")).unwrap();
    std::fs::remove_file(trial.path("lift/publisher.toml")).unwrap();
    trial.tacit("init lift --publisher mails.csv --out lift").fine();
    assert_eq!(read(&trial.path("lift/publisher.key")), key);
}

#[test]
fn a_match_is_made_of_two_files() {
    let folder = tempfile::tempdir().unwrap();
    for (name, range) in [("clinic", 0..40), ("registry", 20..60)] {
        let rows: String = range.map(|i| format!("P{i},{}\n", i % 3)).collect();
        std::fs::write(folder.path().join(format!("{name}.csv")), format!("patient_id,x\n{rows}")).unwrap();
    }
    let run = |line: &str| in_folder(folder.path(), line);
    let address = base::free_address().unwrap();
    run(&format!("init match --data clinic.csv --out match --listen {address}")).fine();
    run(&format!("init match --data registry.csv --study match/study.toml --peer {address}")).fine();
    let start = |party: &str| {
        let mut half = command([
            "match",
            &format!("match/{party}.toml"),
            "--out",
            &format!("{party}.parquet"),
            "--json",
        ]);
        half.current_dir(folder.path());
        Running::start(half)
    };
    let (clinic, registry) = (start("clinic"), start("registry"));
    // Those that either has, and made-up ones.
    let [clinic, registry] =
        [clinic, registry].map(|half| half.end().fine().json()["rows"].as_u64().unwrap());
    assert!(clinic == registry && clinic >= 60, "{clinic} and {registry}");
    assert!(folder.path().join("clinic.parquet").exists());
}

/// Names of parties are asked where somebody can answer, and proposed by the files' names.
#[test]
fn parties_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..40).map(|i| format!("P{i},{}.50\n", i % 30)).collect();
    for name in ["clinic", "data"] {
        std::fs::write(folder.path().join(format!("{name}.csv")), format!("patient_id,cost\n{rows}"))
            .unwrap();
    }
    let line = "init match --data clinic.csv --out";
    let done = in_folder(folder.path(), &format!("{line} match")).fine();
    let told =
        "this party's name: clinic (by the name of its file unless answered otherwise; --party says another)";
    assert!(done.stderr.contains(told), "{}", done.stderr);
    let done = asked(folder.path(), &format!("{line} named --stdin"), "North\nnorth\n\nyes\n").fine();
    assert!(done.stderr.contains("The other party sees the name."), "{}", done.stderr);
    assert!(done.stderr.contains("a name has small letters"), "{}", done.stderr);
    assert!(folder.path().join("named/north.toml").exists());
    // A second file of the same name, and one whose name says nothing.
    std::fs::create_dir(folder.path().join("other")).unwrap();
    std::fs::rename(folder.path().join("clinic.csv"), folder.path().join("other/clinic.csv")).unwrap();
    in_folder(folder.path(), "init match --data other/clinic.csv --study match/study.toml").fine();
    assert!(folder.path().join("match/clinic-2.toml").exists());
    in_folder(folder.path(), "init match --data data.csv --study named/study.toml").fine();
    assert!(folder.path().join("named/second.toml").exists());
    let line = "init program --data data.csv --columns cost --out costs";
    in_folder(folder.path(), line)
        .failed(2, &["the amounts of \"cost\"", "say it by --unit cost=UNIT, or --yes"]);
    in_folder(folder.path(), &format!("{line} --unit cost=kWh")).fine();
    let study = read(&folder.path().join("costs/study.toml"));
    assert!(study.contains("scale 100 unit \"kWh\"") && study.contains("party first"), "{study}");
}

#[test]
fn the_help_of_init_teaches_by_example() {
    let help = tacit(["init", "--help"]).fine().stdout;
    assert!(help.contains("tacit init lift --advertiser sales.csv --study lift/study.toml"), "{help}");
}
