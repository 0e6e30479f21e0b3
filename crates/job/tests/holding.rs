//! Results that all may publish: held, paid for, opened. Two parties in two threads, TLS on loopback, real
//! files, and a party that stops before any of its durable writes.

mod pair;

use pair::{NAMES, World, values, whole};
use privacy::ledger::PUBLIC;
use release::rational::ratio;
use report::RunReport;

/// One number, the same at both; one row in each ledger, which the budgets of the peer and of the public
/// count and the total counts once.
#[test]
fn all_see_the_same_number_and_pay_once() {
    let world = World { total: "0.11", ..World::new() };
    let [clinic, works] = whole(world.run());
    assert_eq!(clinic.public, works.public);
    assert!(clinic.is_public() && works.is_public());
    for (party, report) in [(0, &clinic), (1, &works)] {
        let (ledger, lineage) = (world.ledger(party), format!("data-{}", NAMES[party]));
        assert_eq!(world.charged(party), 1);
        assert_eq!(ledger.spent(&lineage, PUBLIC).unwrap(), ratio(1, 10));
        assert!(ledger.spent(&lineage, &world.keys[1 - party]).unwrap() >= ratio(1, 10));
        assert!(ledger.spent_by_all(&lineage).unwrap() <= ratio(11, 100));
        let text = report::summary::terminal(report, report::summary::USUAL_COLUMNS);
        assert!(text.contains("everybody may publish it") && !text.contains("Do not show"), "{text}");
        assert!(report.stages.iter().all(|stage| stage.price_held), "{:?}", report.stages);
    }
    // Again: the stored answer.
    assert!(whole(world.run()).iter().all(|report| report.stored));
    assert_eq!(world.charged(0), 1);
}

/// A party stops before each of its durable writes, at either side: the next run ends with one number, and
/// each ledger has paid for one.
#[test]
fn wherever_a_party_stops_one_debit_is_spent() {
    let release = "WHEN NEW.tau IS NOT NULL";
    for party in [0, 1] {
        for (table, when) in
            [("held", ""), ("debits", release), ("sent", ""), ("outputs", ""), ("answers", "")]
        {
            let world = World::new();
            let what = format!("{} stops before it writes to {table}", NAMES[party]);
            let first = world.cut(party, table, when);
            assert!(first[party].is_err(), "{what}");
            let [clinic, works] = whole(world.run());
            assert_eq!(values(&clinic), values(&works), "{what}");
            if let Ok(before) = &first[1 - party] {
                assert_eq!(values(before), values(&clinic), "{what}");
            }
            assert_eq!([world.charged(0), world.charged(1)], [1, 1], "{what}");
            assert_eq!(clinic.privacy.attempt, None, "{what}");
        }
    }
}

/// A party that lost what it held, after the other one had sent its share: another number, which the other
/// one pays again.
#[test]
fn a_lost_share_costs_one_more() {
    let world = World::new();
    assert!(world.cut(0, "outputs", "").iter().any(Result::is_err));
    world.raw(0).execute_batch("DELETE FROM held; DROP TRIGGER sent_DELETE; DELETE FROM sent").unwrap();
    let done = world.run();
    // The other party may have the result already: then nothing is drawn anew.
    if let Err(error) = &done[0] {
        assert!(error.to_string().contains("has lost its share of it"), "{error}");
        assert_eq!(world.charged(1), 1);
        return;
    }
    let [clinic, _] = whole(done);
    assert_eq!(clinic.privacy.attempt, Some(2));
    assert_eq!(world.charged(1), 2);
}

/// Counts of a day each in the study by day: noises of one number.
const DAYS: u64 = 60;
/// Numbers of which the law is judged.
const NUMBERS: u32 = 5;

/// How many of the ill were exposed for 0, 1, 2 .. days: many noises of one law.
fn by_day() -> World {
    let mut world = World { budget: "2", total: "2", ..World::new() };
    let each = |line: &dyn Fn(u64) -> String| (0..DAYS).map(line).collect::<String>();
    let program = format!(
        "tacit-program/2\nname \"by-day\"\nclass dp\nrows matched\nparty clinic\nparty works\ncolumn state \
         u2 clinic\n\
         column exposed u16 works\nrow\nstate = column state\ndays = column exposed\nill = const 2 u2\n\
         is-ill = eq state ill\n{}combine\n{}release\nall = gaussian public 1/10{}\n{}{}",
        each(&|d| format!("d{d} = const {d} u16\non{d} = eq days d{d}\nill{d} = and is-ill on{d}\n")),
        each(&|d| format!("count{d} = sum ill{d} u40\n")),
        each(&|d| format!(" count{d}")),
        each(&|d| format!("n{d} = noised all {d}\n")),
        each(&|d| format!("reveal n{d} public \"day {d}\"\n")),
    );
    let (head, rest) = world.study.split_once("tacit-program/2").expect("a program");
    let (_, tail) = rest.split_once("\"\"\"").expect("its end");
    world.study = format!("{head}{program}\"\"\"{tail}");
    world
}

/// A public result less what is so: people 20 to 59 are in both files, person i for i days, and the even ones
/// are ill.
fn noises(report: &RunReport) -> Vec<i128> {
    let truth = |day: usize| i128::from((20..60).contains(&day) && day.is_multiple_of(2));
    let values = values(report).into_iter().enumerate();
    values.map(|(day, value)| value.parse::<i128>().unwrap() - truth(day)).collect()
}

/// Whether mean and variance of noises are those of the law of sensitivity 1 in two cells at rho 1/10, whose
/// variance is 10: passed by it but once in some million times.
fn follows(noises: &[i128]) -> bool {
    let (law, sigmas) = (10.0, 5.3);
    let count = noises.len() as f64;
    let mean = noises.iter().sum::<i128>() as f64 / count;
    let variance = noises.iter().map(|noise| (*noise as f64 - mean).powi(2)).sum::<f64>() / count;
    mean.abs() < sigmas * (law / count).sqrt() && (variance / law - 1.0).abs() < sigmas * (2.0 / count).sqrt()
}

/// How many runs a peer leaves before the opening; `make soak` has more (`TACIT_LEAVERS`).
const LEAVERS: u32 = 16;

/// A peer leaves that many runs before any share goes out, with another line in its data each time, every
/// second time after this side has paid: nothing that was charged for them stands, and what comes after is of
/// the law. If who leaves could choose among numbers it would not be, and that is seen.
#[test]
fn who_leaves_before_the_opening_costs_nothing_and_chooses_nothing() {
    let world = by_day();
    let leavers = std::env::var("TACIT_LEAVERS").map_or(LEAVERS, |text| text.parse().expect("a number"));
    for more in 0..leavers {
        world.data_of_works(more);
        let paid = more % 2 == 1;
        let done =
            if paid { world.cut(1, "debits", "WHEN NEW.tau IS NOT NULL") } else { world.cut(1, "held", "") };
        assert!(done.iter().all(Result::is_err), "run {more}");
        assert_eq!([world.charged(0), world.charged(1)], [i64::from(paid), 0], "run {more}");
    }
    let mut drawn = Vec::new();
    for number in 1..=NUMBERS {
        world.data_of_works(leavers + number);
        drawn.extend(noises(&whole(world.run())[0]));
        assert_eq!([world.charged(0), world.charged(1)], [i64::from(number); 2]);
    }
    drop(world.ledger(0));
    let voids = world.raw(0).query_row("SELECT count(*) FROM voids", [], |row| row.get::<_, i64>(0));
    assert_eq!(voids.unwrap(), i64::from(leavers / 2));
    for party in [0, 1] {
        world.ledger(party).verify().unwrap();
    }
    assert!(drawn.len() as u64 == DAYS * u64::from(NUMBERS) && follows(&drawn), "{drawn:?}");
    let liked: Vec<i128> = drawn.into_iter().filter(|noise| *noise > 0).collect();
    assert!(!follows(&liked), "numbers that somebody chose pass for drawn");
}

/// A peer that keeps its share after the other one has sent its own: twice, then the victim's own operator is
/// asked.
#[test]
fn who_leaves_after_the_opening_is_asked_about() {
    let world = World::new();
    for more in 0..2 {
        world.data_of_works(more);
        // The clinic has said that its share goes out, and never has the outputs.
        let cut = "CREATE TRIGGER cut BEFORE INSERT ON outputs BEGIN SELECT RAISE(ABORT, 'gone'); END";
        for party in [0, 1] {
            drop(world.ledger(party));
            world.raw(party).execute_batch(cut).unwrap();
        }
        assert!(world.run().iter().all(Result::is_err));
        for party in [0, 1] {
            world.raw(party).execute_batch("DROP TRIGGER cut").unwrap();
        }
    }
    world.data_of_works(9);
    let texts = world.run().map(|done| done.map(|_| ()).unwrap_err().to_string());
    assert!(texts.iter().any(|text| text.contains("2 results were paid for with it")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("tacit ledger allow")), "{texts:?}");
    world.allow(0);
    world.allow(1);
    whole(world.run());
}
