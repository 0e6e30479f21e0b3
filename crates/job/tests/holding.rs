//! Results that all may publish: held, paid for, opened. Two parties in two threads, TLS on loopback, real files, and a
//! party that stops before any of its durable writes.

mod pair;

use pair::{NAMES, World, values, whole};
use privacy::ledger::PUBLIC;
use release::rational::ratio;

/// One number, the same at both; one row in each ledger, which the budgets of the peer and of the public count and the total
/// counts once.
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
        let text = report::summary::terminal(report);
        assert!(text.contains("everybody may publish it") && !text.contains("Do not show"), "{text}");
        assert!(report.stages.iter().all(|stage| stage.price_held), "{:?}", report.stages);
    }
    // Again: the stored answer.
    assert!(whole(world.run()).iter().all(|report| report.stored));
    assert_eq!(world.charged(0), 1);
}

/// A party stops before each of its durable writes, at either side: the next run ends with one number, and each ledger has
/// paid for one.
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

/// A party that lost what it held, after the other one had sent its share: another number, which the other one pays again.
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

/// A peer that stops before any share goes out, with other data each time: nothing that was charged for it stays.
#[test]
fn who_leaves_before_the_opening_costs_nothing() {
    let world = World { budget: "0.5", total: "0.5", ..World::new() };
    for more in 0..6 {
        world.data_of_works(more);
        assert!(world.cut(1, "debits", "WHEN NEW.tau IS NOT NULL").iter().all(Result::is_err));
        assert!(world.charged(0) <= 1, "run {more}");
    }
    world.data_of_works(7);
    whole(world.run());
    assert_eq!([world.charged(0), world.charged(1)], [1, 1]);
    world.ledger(0).verify().unwrap();
}

/// A peer that keeps its share after the other one has sent its own: twice, then the victim's own operator is asked.
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
