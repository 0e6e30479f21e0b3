//! What `tacit init` chooses or does not guess, and what `tacit check` says of it.

use crate::init::{in_folder, table};
use crate::support::parties::mixed;
use crate::support::{Done, Running, command, read};
use std::path::Path;

/// Files of a mailing and of a shop where three of ten buy, most of them for little and some for much.
fn shop(folder: &Path, people: u64) {
    let mail = |i: u64| format!("p{i}@e.org,{},2026-02-03", ["mail", "none"][(mixed(i, 1) % 2) as usize]);
    table(folder, "mails.csv", "email,arm,sent", mail, people);
    let sale = |i: u64| {
        let euros = match mixed(i, 2) % 1000 {
            0..=9 => 450 + mixed(i, 3) % 50,
            10..=299 => 10 + mixed(i, 3) % 20,
            _ => return format!("p{i}@e.org,,"),
        };
        format!("p{i}@e.org,2026-02-20,{euros}")
    };
    table(folder, "sales.csv", "email,day,amount_eur", sale, people);
    in_folder(folder, "init lift --publisher mails.csv --out lift").fine();
}

/// No other round clamp sees more of the mean for what it leaves of all outcomes.
#[test]
fn the_clamp_that_sees_most_is_proposed() {
    let folder = tempfile::tempdir().unwrap();
    shop(folder.path(), 8000);
    let done = in_folder(folder.path(), "init lift --advertiser sales.csv --study lift/study.toml").fine();
    let study = read(&folder.path().join("lift/study.toml"));
    let own = study.lines().find_map(|line| line.strip_prefix("clamp        = ")).unwrap().to_owned();
    assert!(study.replace("\n# ", " ").contains("over the part of all outcomes that is left"), "{study}");
    assert!(
        done.stderr.contains(&format!("clamp = {own}: ")) && done.stderr.contains("of all outcomes is left")
    );
    let check = "check lift/advertiser.toml --json --clamp 5,10,20,50,100,200,500";
    let checked = in_folder(folder.path(), check).fine().json();
    assert_eq!(
        checked["study"]["hash"],
        in_folder(folder.path(), "check lift/publisher.toml --json").fine().json()["study"]["hash"]
    );
    let part = |clamp: f64| {
        let all = checked["plan"]["clamp_effects"].as_array().unwrap();
        let of = all.iter().find(|of| of["clamp"] == clamp).unwrap_or_else(|| panic!("{clamp} in {all:?}"));
        let of = |name: &str| of[name].as_f64().unwrap();
        of("effect") / of("mean") / of("kept")
    };
    let own: f64 = own.parse().unwrap();
    let best = part(own);
    assert!((10.0..500.0).contains(&own), "{own}");
    for other in [5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0] {
        assert!(part(other) >= best, "{other} sees {}, {own} {best}", part(other));
    }
    let text =
        in_folder(folder.path(), "check lift/advertiser.toml --clamp 137 --rows 8k,7999").fine().stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("a clamp (137 EUR) would detect"), "{text}");
    assert!(text.contains("it supposes: 8,000 rows of publisher, half in each arm, and 7,999 of"), "{text}");
    in_folder(folder.path(), "check lift/advertiser.toml --clamp 0.5").failed(2, &["in steps of 1"]);
    let plan = "plan lift/study.toml --rows 8k,7999 --mean 20 --clamp";
    let text = in_folder(folder.path(), &format!("{plan} 137")).fine().stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("a clamp (137 EUR) would detect"), "{text}");
    in_folder(folder.path(), &format!("{plan} 0.5")).failed(2, &["in steps of 1"]);
}

/// What is ready is said by what would be released, and rows that somebody says change it.
#[test]
fn a_study_that_would_show_nothing_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    shop(folder.path(), 2400);
    // A shop that has fewer of them in its file.
    let few: String =
        read(&folder.path().join("sales.csv")).lines().take(1500).map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.path().join("sales.csv"), few).unwrap();
    in_folder(folder.path(), "init lift --advertiser sales.csv --study lift/study.toml").fine();
    let words = |line: &str| {
        let text = in_folder(folder.path(), line).fine().stdout;
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = words("check lift/advertiser.toml");
    assert!(text.contains("nothing would be released") && !text.contains("side is ready"), "{text}");
    assert!(
        text.contains("tacit check lift/advertiser.toml --rows N,M") && !text.contains("n/a of"),
        "{text}"
    );
    let text = words("check lift/advertiser.toml --rows 2400,1499");
    assert!(text.starts_with("This side is ready: tacit run lift/advertiser.toml"), "{text}");
    let text = words("check lift/study.toml");
    assert!(
        text.contains("1,000,000 of each party, as nobody says how many; --rows N,M says them"),
        "{text}"
    );
}

/// Which clock times are of is no guess, even under --yes.
#[test]
fn no_zone_is_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let row =
        |i: u64| format!("p{i}@e.org,{},2026-02-03 10:{:02}:00", ["mail", "none"][(i % 2) as usize], i % 60);
    table(folder.path(), "mails.csv", "email,arm,sent", row, 3000);
    let line = "init lift --publisher mails.csv --yes --out lift";
    in_folder(folder.path(), line).failed(
        2,
        &[
            "have no offset. Of which clock are they",
            "Nothing is proposed that --yes could take: say it by --zone",
        ],
    );
    in_folder(folder.path(), &format!("{line} --zone Europe/Berlin")).fine();
    assert!(read(&folder.path().join("lift/publisher.toml")).contains("zone = \"Europe/Berlin\""));
}

/// Lines are as wide as `COLUMNS` says, errors as well; a log has them whole.
#[test]
fn lines_fit_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    shop(folder.path(), 2400);
    let run = |line: &str, columns: Option<&str>| {
        let mut run = command(line.split_whitespace());
        run.current_dir(folder.path()).env_remove("COLUMNS");
        columns.into_iter().for_each(|columns| {
            run.env("COLUMNS", columns);
        });
        Done::from(run.output().unwrap())
    };
    let line = "init lift --advertiser sales.csv --study lift/study.toml --yes --out shop";
    let done = run(line, Some("60")).fine();
    let long = |text: &str| {
        text.lines().filter(|line| line.chars().count() > 60).map(str::to_owned).collect::<Vec<_>>()
    };
    let tables = long(&done.stderr);
    assert!(tables.iter().all(|line| line.split_whitespace().count() < 3), "{tables:?}");
    let wrong = "init lift --advertiser sales.csv --study lift/study.toml --yes --out other";
    let [narrow, whole] = [Some("60"), None].map(|columns| run(wrong, columns));
    narrow.failed(2, &["the study is finished"]);
    whole.failed(2, &["the study is finished, there is nothing to complete"]);
    assert!(narrow.stderr.lines().count() > 1 && long(&narrow.stderr).is_empty(), "{}", narrow.stderr);
    assert_eq!(whole.stderr.lines().filter(|line| line.starts_with("error: ")).count(), 1);
    assert!(whole.stderr.lines().last().unwrap().ends_with("says what it means"), "{}", whole.stderr);
}

/// Customer numbers with zeros in front are no telephone numbers unless somebody says so.
#[test]
fn padded_customer_numbers_are_compared_as_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let mail = |i: u64| format!("{i:08},{},2026-02-03", ["mail", "none"][(i % 2) as usize]);
    table(folder.path(), "mails.csv", "Kunden-Nr,arm,sent", mail, 3000);
    let normalised = |more: &str, steps: &str| {
        let _ = std::fs::remove_dir_all(folder.path().join("lift"));
        in_folder(folder.path(), &format!("init lift --publisher mails.csv --out lift {more}")).fine();
        let study = read(&folder.path().join("lift/study.toml"));
        assert!(study.contains(&format!("{{ name = \"Kunden-Nr\", normalise = [{steps}] }}")), "{study}");
    };
    for more in ["--yes", "--id Kunden-Nr", "--country none"] {
        normalised(more, "\"trim\", \"lowercase\"");
    }
    in_folder(folder.path(), "init lift --publisher mails.csv --out other").failed(
        2,
        &[
            "begin with a zero. Are they telephone",
            "--country CODE|none, or --yes for what is proposed (none)",
        ],
    );
}

/// 000100 of one party and 100 of the other match nobody: who completes the study hears of it.
#[test]
fn zeros_in_front_at_one_side_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let arm = |i: u64| ["mail", "none"][(i % 2) as usize];
    table(folder.path(), "mails.csv", "id,arm,sent", |i| format!("{i:06},{},2026-02-03", arm(i)), 3000);
    table(folder.path(), "plain.csv", "id,day,paid_eur", |i| format!("{i},2026-02-20,{}", i % 9), 3000);
    table(folder.path(), "alike.csv", "id,day,paid_eur", |i| format!("{i:06},2026-02-20,{}", i % 9), 3000);
    let first = in_folder(folder.path(), "init lift --publisher mails.csv --out lift").fine();
    assert!(first.stderr.contains("with zeros in front"), "{}", first.stderr);
    let begun = read(&folder.path().join("lift/study.toml"));
    assert!(begun.contains("# Numbers of \"id\" have zeros in front, and the other party"), "{begun}");
    let said = |file: &str| {
        let line = format!("init lift --advertiser {file} --study lift/study.toml");
        let done = in_folder(folder.path(), &line).fine();
        std::fs::write(folder.path().join("lift/study.toml"), &begun).unwrap();
        std::fs::remove_file(folder.path().join("lift/advertiser.toml")).unwrap();
        done.stderr.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let told = said("plain.csv");
    let what =
        "note: column \"id\" has none, and the other party's numbers have zeros in front. 000100 and 100";
    assert!(told.contains(what), "{told}");
    let told = said("alike.csv");
    assert!(!told.contains("000100 and 100"), "{told}");
}

/// A mailing's file has times as a shop's has: given as the advertiser's it would count mails.
#[test]
fn a_file_with_arms_is_not_taken_for_outcomes() {
    let folder = tempfile::tempdir().unwrap();
    shop(folder.path(), 3000);
    let line = "init lift --advertiser mails.csv --yes --study lift/study.toml";
    in_folder(folder.path(), line).failed(
        2,
        &["The file has arms (column \"arm\": \"mail\", \"none\") and no amounts", "say it by --value 1"],
    );
    assert!(!folder.path().join("lift/advertiser.toml").exists());
    in_folder(folder.path(), &format!("{line} --value 1")).fine();
}

/// A second study of the same data has the budget of the first where it names its ledger, and else hears that
/// it has not.
#[test]
fn a_later_study_goes_on_with_a_ledger_and_its_key() {
    let folder = tempfile::tempdir().unwrap();
    shop(folder.path(), 3000);
    let line = "init lift --publisher mails.csv --out second";
    let told = |done: Done| done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    let own = folder.path().join("second/publisher.toml");
    let said = told(in_folder(folder.path(), line).fine());
    assert!(
        said.contains("A new privacy ledger: second/publisher.ledger. It knows nothing of what"),
        "{said}"
    );
    let text = read(&own).replace("\n# ", " ");
    assert!(text.contains("ledger   = \"publisher.ledger\""), "{text}");
    assert!(text.contains("tacit init --ledger"), "{text}");
    assert!(text.contains("as far as they keep the same ledger"), "{text}");
    std::fs::remove_dir_all(folder.path().join("second")).unwrap();
    in_folder(folder.path(), &format!("{line} --ledger lift/publishr.ledger"))
        .failed(2, &["--ledger lift/publishr.ledger: there is no such ledger, and no key beside it"]);
    let said = told(in_folder(folder.path(), &format!("{line} --ledger lift/publisher.ledger")).fine());
    assert!(said.contains("goes on in lift/publisher.ledger, under the lineage mails"), "{said}");
    let text = read(&own);
    assert!(text.contains("ledger   = \"../lift/publisher.ledger\""), "{text}");
    assert!(text.contains("identity = \"../lift/publisher.key\""), "{text}");
    assert!(!folder.path().join("second/publisher.key").exists());
}

/// Telephone numbers of a spreadsheet are digits alone, as seconds since 1970 are.
#[test]
fn telephone_numbers_in_digits_are_no_dates() {
    let folder = tempfile::tempdir().unwrap();
    table(folder.path(), "p1.csv", "Telefon,x", |i| format!("01511{i:06},{}", i % 3), 200);
    table(folder.path(), "p2.csv", "Rufnummer,y", |i| format!("+49 1511 {i:06},{}", i % 3), 200);
    let run = |line: &str| in_folder(folder.path(), line);
    let study = |folder_of: &str| read(&folder.path().join(folder_of).join("study.toml"));
    run("init match --data p1.csv --out pm")
        .failed(2, &["\"Telefon\" have no country", "--country CODE|none"]);
    let begun = run("init match --data p1.csv --out pm --country 49").fine();
    assert!(
        begun.stderr.contains("telephone numbers") && !begun.stderr.contains("dates"),
        "{}",
        begun.stderr
    );
    assert!(study("pm").contains("{ name = \"Telefon\", normalise = [\"phone:49\"] }"), "{}", study("pm"));
    run("init match --data p2.csv --study pm/study.toml").fine();
    let own = read(&folder.path().join("pm/p2.toml"));
    assert!(own.contains("columns = { \"Telefon\" = \"Rufnummer\" }"), "{own}");
    // Without a country the other spellings match nobody: whoever completes the study is asked.
    run("init match --data p1.csv --out plain --country none").fine();
    let line = "init match --data p2.csv --study plain/study.toml --id Rufnummer";
    run(&line.replace(" --id Rufnummer", "")).failed(2, &["say it by --id COLUMN"]);
    let begun = study("plain");
    for line in [line.to_owned(), line.replace("--id Rufnummer", "--yes")] {
        let told = run(&line).fine().stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let note = "note: \"Rufnummer\" has telephone numbers, and the study compares \"Telefon\" as it is";
        assert!(told.contains(note), "{told}");
        std::fs::write(folder.path().join("plain/study.toml"), &begun).unwrap();
        std::fs::remove_file(folder.path().join("plain/p2.toml")).unwrap();
    }
    // Digits of customers are numbers; and a country that changes nothing is told.
    table(folder.path(), "c.csv", "Kundennummer,x", |i| format!("{},{}", 1_710_000_000 + i, i % 3), 200);
    let done = run("init match --data c.csv --out c").fine();
    assert!(done.stderr.contains("numbers, 1710000000 to 1710000199"), "{}", done.stderr);
    table(folder.path(), "m.csv", "email,x", |i| format!("p{i}@e.org,{}", i % 3), 200);
    let done = run("init match --data m.csv --out m --country 49").fine();
    assert!(
        done.stderr.contains("note: --country 49 is used by nothing: email is compared"),
        "{}",
        done.stderr
    );
}

/// Amounts that are all whole are amounts by every decimal sign, and events are not counted in silence.
#[test]
fn whole_amounts_are_values_of_events() {
    let folder = tempfile::tempdir().unwrap();
    shop(folder.path(), 2400);
    let begun = read(&folder.path().join("lift/study.toml"));
    let made = |file: &str, more: &str| {
        std::fs::write(folder.path().join("lift/study.toml"), &begun).unwrap();
        let _ = std::fs::remove_file(folder.path().join("lift/advertiser.toml"));
        in_folder(folder.path(), &format!("init lift --advertiser {file} --study lift/study.toml {more}"))
    };
    let value = || {
        let study = read(&folder.path().join("lift/study.toml"));
        study.lines().find(|line| line.starts_with("value ")).unwrap_or_default().to_owned()
    };
    for more in ["", "--decimal ,", "--decimal ."] {
        made("sales.csv", more).fine();
        assert_eq!(
            value(),
            "value      = { column = \"amount_eur\", type = \"u32\", unit = \"EUR\" }",
            "{more}"
        );
    }
    // 1.234 euros, as they are written in Germany.
    let sales = read(&folder.path().join("sales.csv")).replace(",2026-02-20,1", ",2026-02-20,1.21");
    std::fs::write(folder.path().join("grouped.csv"), sales).unwrap();
    made("grouped.csv", "").failed(2, &["--decimal . or --thousands ."]);
    made("grouped.csv", "--thousands .").fine();
    assert_eq!(value(), "value      = { column = \"amount_eur\", type = \"u32\", unit = \"EUR\" }");
    assert!(read(&folder.path().join("lift/advertiser.toml")).contains("thousands = \".\"\n"));
    in_folder(folder.path(), "check lift/advertiser.toml").fine();
    // Nothing says what a column of numbers is: it is asked, and no events are counted in silence.
    let unnamed = read(&folder.path().join("sales.csv")).replace("amount_eur", "x");
    std::fs::write(folder.path().join("unnamed.csv"), unnamed).unwrap();
    let question = "Which column is the value of an event (1: events are counted)? One of: x; 1.";
    for more in ["", "--yes", "--unit EUR"] {
        made("unnamed.csv", more).failed(2, &[question, "say it by --value COLUMN or --value 1"]);
    }
    made("unnamed.csv", "--value 1").fine();
    assert_eq!(value(), "value      = { constant = 1 }");
    made("unnamed.csv", "--unit EUR --value x").fine();
    // Whoever says a unit does not mean to count events, and a number of an invoice is no amount.
    let numbered = |i: u64| format!("p{i}@e.org,2026-02-20,{}", 4_711_001 + i);
    table(folder.path(), "numbered.csv", "email,day,invoice_nr", numbered, 2400);
    made("numbered.csv", "--unit EUR").failed(2, &["--unit EUR is of amounts", "--value 1"]);
    made("numbered.csv", "").fine();
    assert_eq!(value(), "value      = { constant = 1 }");
    let wide = |i: u64| format!("p{i}@e.org,2026-02-20,2026-02-21,{},{}", i % 9, i % 7);
    table(folder.path(), "wide.csv", "email,bought_1,bought_2,x_1,x_2", wide, 2400);
    made("wide.csv", "").failed(2, &["Are values of the events in x_1, x_2?", "say it by --value 1"]);
    made("wide.csv", "--value x_1 --value x_2").fine();
    table(folder.path(), "serial.csv", "email,day,amount_eur", numbered, 2400);
    made("serial.csv", "").failed(2, &[&question.replace("x; 1", "amount_eur; 1")]);
    let told = made("serial.csv", "--value amount_eur").fine().stderr;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("cuts 100 % of the people with events"), "{told}");
}

/// A match of nobody ends a run before its result is charged, and is told by a match alone.
#[test]
fn a_match_of_nobody_is_told_before_anything_is_released() {
    let folder = tempfile::tempdir().unwrap();
    shop(folder.path(), 2400);
    let sales = read(&folder.path().join("sales.csv")).replace("@e.org", "@other.org");
    std::fs::write(folder.path().join("sales.csv"), sales).unwrap();
    let address = base::free_address().unwrap();
    in_folder(
        folder.path(),
        &format!("init lift --advertiser sales.csv --study lift/study.toml --peer {address}"),
    )
    .fine();
    let run = |more: [&str; 2]| {
        let lines = [
            format!("publisher.toml --listen {address} {}", more[0]),
            format!("advertiser.toml {}", more[1]),
        ];
        let halves = lines.map(|line| {
            let line = format!("run lift/{line}");
            let mut half = command(line.split_whitespace());
            half.current_dir(folder.path());
            Running::start(half)
        });
        halves.map(Running::end)
    };
    // Each ends by itself, or hears that the other one does.
    let ended = run(["", ""]);
    let text = ended.iter().map(|done| done.stderr.as_str()).collect::<String>();
    assert!(ended.iter().all(|done| done.code == 5), "{text}");
    for part in ["before its result is computed", "hardly anybody", "Spent: rho", "--spend-anyway at both"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    // Who alone wants the result hears why the other one left.
    let [wants, leaves] = run(["--spend-anyway", ""]);
    assert_eq!(leaves.code, 5, "{}", leaves.stderr);
    let told = wants.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(wants.code != 0 && told.contains("unless it says --spend-anyway as well"), "{told}");
    for done in run(["--spend-anyway"; 2]) {
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(done.stdout.contains("hardly anybody"), "{}", done.stdout);
    }
}

/// Rows without an identifier are said as what they are.
#[test]
fn empty_identifiers_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mail = |i: u64| match i % 1000 {
        7 => format!(",{},2026-02-03", i % 2),
        _ => format!("p{i}@e.org,{},2026-02-03", i % 2),
    };
    table(folder.path(), "mails.csv", "E-Mail,arm,sent", mail, 3000);
    in_folder(folder.path(), "init lift --publisher mails.csv --control 0 --out lift")
        .failed(2, &["column \"E-Mail\" looks like who a row is of, and 3 of its 3000 cells are empty"]);
}

/// A title above the names of columns is told with the flag that skips it, which the party file then has.
#[test]
fn titles_above_the_header_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let mail = |i: u64| format!("p{i}@e.org,{},2026-02-03", ["mail", "none"][(i % 2) as usize]);
    table(folder.path(), "plain.csv", "email,arm,sent", mail, 3000);
    let titled = format!("Export of 2026-02-03\n\n{}", read(&folder.path().join("plain.csv")));
    std::fs::write(folder.path().join("mails.csv"), titled).unwrap();
    let line = "init lift --publisher mails.csv --out lift";
    in_folder(folder.path(), line).failed(2, &["line 3 has 3 cells", "(or --header-line 3)"]);
    in_folder(folder.path(), &format!("{line} --header-line 3")).fine();
    assert!(read(&folder.path().join("lift/publisher.toml")).contains("header_line = 3\n"));
}
