//! What is charged: matches, numbers that are paid for and opened, and bounds over several viewers.

use super::*;
use study::party::AgreedCharge;

/// Two viewers have a budget each, and the data have one over both.
#[test]
fn a_total_bounds_all_viewers_together() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let to = |viewer: &str, release| Debit {
        viewer_key: viewer.into(),
        total: Some(ratio(3, 4)),
        ..debit(release, ratio(1, 2), ratio(1, 2))
    };
    ledger.debit(&to("a", 1)).unwrap();
    assert_eq!(
        text(ledger.debit(&to("b", 2))),
        "policy.total: 0.5 of 0.75 spent on lineage hospitals by all viewers together; this release to \
         viewer b needs 0.5: agree on less rho, or raise policy.total, which bounds what viewers learn \
         together"
    );
    // What is paid is paid, and without the bound each viewer has its own.
    ledger.debit(&Debit { total: Some(ratio(1, 4)), ..to("a", 1) }).unwrap();
    ledger.debit(&Debit { total: None, ..to("b", 2) }).unwrap();
    assert_eq!(ledger.spent_by_all("hospitals").unwrap(), ratio(1, 1));
    assert_eq!(ledger.viewers_of("hospitals").unwrap(), ["a", "b"]);
    // Own views cost these data nothing.
    ledger.debit(&Debit { protects: false, ..to("me", 3) }).unwrap();
    assert_eq!(ledger.viewers_of("hospitals").unwrap().len(), 2);
}

/// What anybody may read, every viewer of the data can have read, whoever the number was computed with.
#[test]
fn a_published_number_counts_towards_every_viewer() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let to = |viewers: &str, release| Debit {
        viewer_key: viewers.into(),
        ..debit(release, ratio(1, 4), ratio(3, 4))
    };
    let (first, second) = (format!("a {PUBLIC}"), format!("b {PUBLIC}"));
    ledger.debit(&to("a", 1)).unwrap();
    ledger.debit(&to(&second, 2)).unwrap();
    let spent = |ledger: &Ledger| ["a", "b", PUBLIC, "c"].map(|key| ledger.spent("hospitals", key).unwrap());
    // Also towards one that comes later: it can look it up.
    assert_eq!(spent(&ledger), [ratio(1, 2), ratio(1, 4), ratio(1, 4), ratio(1, 4)]);
    assert_eq!(ledger.spent_by_all("hospitals").unwrap(), ratio(1, 2));
    assert_eq!(ledger.spent("other", "a").unwrap(), ratio(0, 1));
    ledger.debit(&to(&first, 3)).unwrap();
    assert_eq!(spent(&ledger), [ratio(3, 4), ratio(1, 2), ratio(1, 2), ratio(1, 2)]);
    // So one with another party is refused where somebody who can read it has had all.
    let more = [to(&second, 4)];
    for refused in
        [ledger.check_debit(&more[0]), ledger.check_together(&more), ledger.debit(&more[0]).map(|_| ())]
    {
        assert!(text(refused).contains("budget: 0.75 of 0.75 spent on lineage hospitals by viewer a"));
    }
    ledger.debit(&to("b", 4)).unwrap();
}

/// What is said of a kept answer: exact only where nothing was released with noise, free only where nothing
/// was charged.
#[test]
fn a_kept_answer_is_exact_or_free_where_it_was() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let mut keep = |study: u8, rho: &str, debit: Option<Debit>| {
        let key = AnswerKey {
            study: [study; 32],
            program: [0; 32],
            my_tag: [2; 32],
            peer_tag: [3; 32],
            party: base::PartyId(0),
        };
        let report = format!("{{\"study\": {{\"name\": \"s\"}}, \"privacy\": {{\"rho\": \"{rho}\"}}}}");
        ledger.store_answer(&key, &["key-of-registry"], &report).unwrap();
        let debit = debit.map(|debit| Debit { study: [study; 32], ..debit });
        debit.iter().for_each(|debit| _ = ledger.debit(debit).unwrap());
        let kept = ledger.answers().unwrap().pop().unwrap();
        (kept.exact, kept.noised_view, kept.charged)
    };
    let charge = |release| debit(release, ratio(1, 10), ratio(9, 1));
    let sizes = Debit { delta: ratio(1, 1000), most_delta: ratio(1, 10), ..charge(2) };
    assert_eq!(keep(1, "0", None), (true, false, false));
    assert_eq!(keep(2, "0", Some(sizes)), (true, false, true));
    // Its data were released to the other one, and it saw nothing.
    assert_eq!(keep(3, "0", Some(charge(3))), (false, false, true));
    assert_eq!(keep(4, "1/10", Some(charge(4))), (false, true, true));
    // A view of its own alone.
    assert_eq!(keep(5, "1/10", Some(Debit { protects: false, ..charge(5) })), (false, true, false));
}

#[test]
fn data_are_known_again_under_another_name() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    ledger.keep_sketch("hospitals", &sketch(1, 0..800), None).unwrap();
    // Of what cost nothing yet there is no budget to save.
    assert!(ledger.most_alike("may", &[sketch(1, 0..800)]).unwrap().is_none());
    ledger.debit(&debit(1, ratio(1, 2), ratio(1, 1))).unwrap();
    let (name, alike) = ledger.most_alike("may", &[sketch(1, 200..1000)]).unwrap().unwrap();
    assert!(name == "hospitals" && (0.4..0.8).contains(&alike), "{name}: {alike}");
    assert!(ledger.most_alike("hospitals", &[sketch(1, 0..800)]).unwrap().is_none());
    // Every version of the data counts, and each is kept once.
    ledger.keep_sketch("hospitals", &sketch(1, 5000..6000), None).unwrap();
    ledger.keep_sketch("hospitals", &sketch(1, 5000..6000), None).unwrap();
    for people in [0..800, 5000..6000] {
        assert!(ledger.most_alike("may", &[sketch(1, people)]).unwrap().unwrap().1 > 0.99);
    }
    let rows = ledger.connection.query_row("SELECT count(*) FROM sketches", [], |row| row.get::<_, u32>(0));
    assert_eq!(rows.unwrap(), 2);
    assert!(ledger.knows("hospitals").unwrap() && !ledger.knows("may").unwrap());
    ledger.keep_sketch("may", &sketch(1, 0..800), Some("hospitals")).unwrap();
    assert!(ledger.knows("may").unwrap());
}

/// A peer said that it had a number which this party never sent, and what was kept of that is of no later
/// one.
#[test]
fn outputs_that_were_never_sent_pay_for_nothing() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    ledger.store_outputs(&[9; 32], 0, "key-of-registry", &[]).unwrap();
    ledger.hold(&[9; 32], &share(1), "key-of-registry", "hospitals").unwrap();
    assert_eq!(ledger.held_share(&[9; 32]).unwrap().unwrap().1, ShareProgress::Held);
    ledger.send(&share(1).number, &[]).unwrap();
    assert_eq!(ledger.held_share(&[9; 32]).unwrap().unwrap().1, ShareProgress::Out);
}

/// Whoever else took part: what was charged for a run with a peer is given back when another one with it
/// begins.
#[test]
fn another_roster_with_the_same_peer_gives_back() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    ledger.hold(&[9; 32], &share(1), "key-of-cinema key-of-registry", "hospitals").unwrap();
    assert_eq!(ledger.give_back("key-of-bakery", "hospitals", &[]).unwrap(), 0);
    assert!(ledger.held_share(&[9; 32]).unwrap().is_some());
    ledger.give_back("key-of-registry key-of-bakery", "hospitals", &[]).unwrap();
    assert!(ledger.held_share(&[9; 32]).unwrap().is_none(), "dropped");
}

#[test]
fn a_match_is_counted_and_charged_in_one_step() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let pay = |number: u64| Ok(vec![debit(number as u8, ratio(1, 4), ratio(1, 2))]);
    let first = ledger.begin_match(&[9; 32], &pay).unwrap();
    let second = ledger.begin_match(&[9; 32], &pay).unwrap();
    assert_eq!((first.number, second.number), (1, 2));
    assert_eq!(ledger.last_begun(&[9; 32]).unwrap(), Some(second));
    // What the ledger does not pay does not begin.
    assert!(text(ledger.begin_match(&[9; 32], &pay)).starts_with("budget: 0.5 of 0.5"));
    assert_eq!(ledger.last_begun(&[9; 32]).unwrap(), Some(second));
    assert_eq!(ledger.begin_match(&[8; 32], &|_| Ok(Vec::new())).unwrap().number, 1);
    let tags = [[2; 32], [3; 32]];
    let seed = |begun: Option<&MatchStart>| *ledger.dummies_seed(&[1; 32], &tags, begun).unwrap().expose();
    let seeds = [seed(None), seed(Some(&first)), seed(Some(&second))];
    assert!(seeds[0] != seeds[1] && seeds[1] != seeds[2] && seeds[0] != seeds[2]);
}

/// A debit pays for the next number until a share was sent; then another one is charged.
#[test]
fn an_unspent_debit_pays_for_the_next_number() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let (release, key) = ([1; 32], "key-of-registry");
    let debit = debit(1, ratio(1, 2), ratio(1, 1));
    let spent = |ledger: &Ledger| ledger.spent("hospitals", key).unwrap();
    ledger.hold(&release, &share(1), key, "hospitals").unwrap();
    pay(&mut ledger, &debit, 1, 0).unwrap();
    // It broke off before anything was sent: the next number is paid for, and the first one can never be
    // sent.
    ledger.hold(&release, &share(2), key, "hospitals").unwrap();
    pay(&mut ledger, &debit, 2, 0).unwrap();
    assert!(text(ledger.send(&[1; 32], &[])).contains("has dropped what this release held"));
    assert_eq!((spent(&ledger), ledger.numbers_sent(&release).unwrap()), (ratio(1, 2), 0));
    ledger.send(&[2; 32], &[]).unwrap();
    ledger.send(&[2; 32], &[]).unwrap();
    assert_eq!(ledger.held_share(&release).unwrap().unwrap().1, ShareProgress::Sent);
    // What was sent is never given back, and the next number is charged.
    assert_eq!(ledger.give_back(key, "hospitals", &[]).unwrap(), 0);
    assert_eq!(ledger.numbers_sent(&release).unwrap(), 1);
    ledger.hold(&release, &HeldShare { attempt: 1, ..share(3) }, key, "hospitals").unwrap();
    pay(&mut ledger, &debit, 3, 1).unwrap();
    assert_eq!(spent(&ledger), ratio(1, 1));
    let other = Debit { release_id: [8; 32], ..debit.clone() };
    assert!(text(ledger.check_pay(&other)).contains("wait for these runs to end"));
    ledger.send(&[3; 32], &[]).unwrap();
    ledger.store_outputs(&release, 1, key, &[5]).unwrap();
    assert!(text(ledger.check_pay(&other)).contains("budget"));
    assert_eq!(ledger.held_share(&release).unwrap().unwrap().1, ShareProgress::Out);
    ledger.verify().unwrap();
}

/// A peer that leaves once this side has paid, and then another release with it: the first one can still be
/// run, as a number of its own attempt.
#[test]
fn a_release_that_was_given_back_runs_again() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let (release, key) = ([1; 32], "key-of-registry");
    let debit = debit(1, ratio(1, 2), ratio(1, 1));
    let spent = |ledger: &Ledger| ledger.spent("hospitals", key).unwrap();
    for round in 0..3 {
        assert_eq!(ledger.next_number(&release, Some(&debit)).unwrap(), round);
        pay(&mut ledger, &debit, 10 + round as u8, round).unwrap();
        assert_eq!(ledger.next_number(&release, Some(&debit)).unwrap(), round, "it pays for this attempt");
        assert_eq!(ledger.give_back(key, "hospitals", &[]).unwrap(), 1);
        assert_eq!(spent(&ledger), ratio(0, 1));
        // What was given back is not paid for and not sent.
        let again = super::pay_held(&mut ledger, &debit, 10 + round as u8, round);
        assert!(text(again).contains("has dropped what this release held"));
    }
    pay(&mut ledger, &debit, 20, 3).unwrap();
    ledger.send(&[20; 32], &[]).unwrap();
    assert_eq!((spent(&ledger), ledger.next_number(&release, Some(&debit)).unwrap()), (ratio(1, 2), 4));
    ledger.verify().unwrap();
}

/// Sizes that a peer says anew may make the same release cost more: what was paid before is given back for
/// it.
#[test]
fn an_unspent_debit_pays_for_nothing_that_costs_more() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let (release, key) = ([1; 32], "key-of-registry");
    let little = debit(1, ratio(1, 4), ratio(1, 1));
    let more = Debit { rho: ratio(3, 4), ..little.clone() };
    pay(&mut ledger, &little, 1, 0).unwrap();
    assert_eq!(ledger.next_number(&release, Some(&more)).unwrap(), 1);
    ledger.check_pay(&more).unwrap();
    assert!(text(ledger.check_pay(&Debit { rho: ratio(5, 4), ..more.clone() })).contains("budget"));
    pay(&mut ledger, &more, 2, 1).unwrap();
    assert_eq!(ledger.spent("hospitals", key).unwrap(), ratio(3, 4));
    ledger.send(&[2; 32], &[]).unwrap();
    // Another one of three is ahead: the debit is of the attempt of the number that it pays for.
    let third = debit(3, ratio(1, 8), ratio(1, 1));
    pay(&mut ledger, &third, 3, 0).unwrap();
    pay(&mut ledger, &third, 4, 5).unwrap();
    assert_eq!(ledger.spent("hospitals", key).unwrap(), ratio(7, 8));
    let attempts: Vec<u32> =
        ledger.entries().unwrap().iter().filter(|e| !e.given_back).map(|e| e.attempt).collect();
    assert_eq!(attempts, [1, 5]);
    ledger.verify().unwrap();
}

/// What a ledger says beforehand is what it does: with two open numbers it does not pay, not even of the
/// release that has them.
#[test]
fn whether_it_pays_counts_the_open_numbers() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let debit = debit(1, ratio(1, 100), ratio(1, 1));
    for number in 0..2 {
        ledger.check_pay(&debit).unwrap();
        pay(&mut ledger, &debit, number, number.into()).unwrap();
        ledger.send(&[number; 32], &[]).unwrap();
    }
    assert!(text(ledger.check_pay(&debit)).contains("2 results were paid for with it"));
    assert!(text(pay(&mut ledger, &debit, 2, 2)).contains("2 results were paid for with it"));
}

/// Two runs that begin together see one open number each; only one of them may pay for another, for it would
/// be the second that is open, and the one after it the third.
#[test]
fn releases_that_race_keep_to_the_numbers_that_may_be_open() {
    let folder = folder();
    let path = folder.path().join("l");
    let key = "key-of-registry";
    let release = |number: u8| debit(number, ratio(1, 100), ratio(1, 1));
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.hold(&[1; 32], &share(1), key, "hospitals").unwrap();
    pay(&mut ledger, &release(1), 1, 0).unwrap();
    ledger.send(&[1; 32], &[]).unwrap();
    let barrier = Arc::new(Barrier::new(2));
    let race = |number: u8| {
        let (path, barrier) = (path.clone(), barrier.clone());
        std::thread::spawn(move || {
            let mut ledger = Ledger::open(&path).unwrap();
            let may = ledger.open_numbers(key, "hospitals", &[]).unwrap();
            barrier.wait();
            assert_eq!(may, None, "both may begin");
            ledger.hold(&[number; 32], &share(number), key, "hospitals").unwrap();
            barrier.wait();
            pay(&mut ledger, &release(number), number, 0)?;
            ledger.send(&[number; 32], &[])
        })
    };
    let done = [2, 3].map(race).map(|thread| thread.join().unwrap());
    let refused: Vec<String> = done.into_iter().filter_map(Result::err).map(|e| e.to_string()).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].contains("2 results were paid for with it"), "{}", refused[0]);
    assert!(refused[0].contains("tacit ledger allow"), "{}", refused[0]);
    assert_eq!(ledger.spent("hospitals", key).unwrap(), ratio(2, 100), "the other one was not charged");
    // It is the operator's to go on.
    ledger.allow(key, None, "we spoke").unwrap();
    let late =
        if ledger.is_paid(&[2; 32]).unwrap() || ledger.numbers_sent(&[2; 32]).unwrap() > 0 { 3 } else { 2 };
    pay(&mut ledger, &release(late), late, 0).unwrap();
}

/// What several see is one row, which the budget of each counts, and the total once; several debits are
/// looked at together.
#[test]
fn what_all_see_counts_once_in_the_total() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let all = Debit {
        viewer_key: format!("a b {PUBLIC}"),
        peer_key: "a b".into(),
        total: Some(ratio(3, 4)),
        ..debit(1, ratio(1, 2), ratio(3, 4))
    };
    let own =
        Debit { viewer_key: "a".into(), ..Debit { release_id: [2; 32], rho: ratio(1, 4), ..all.clone() } };
    ledger.check_together(&[all.clone(), own.clone()]).unwrap();
    let more = Debit { rho: ratio(1, 3), ..own.clone() };
    assert!(text(ledger.check_together(&[all.clone(), more.clone()])).contains("budget: 0 of 0.75"));
    // What is said to be missing is all of it, and not what the first that does not fit takes.
    let last = Debit { release_id: [3; 32], rho: ratio(1, 12), ..own.clone() };
    assert!(text(ledger.check_together(&[all.clone(), more, last])).contains("this run needs 11/12"));
    // So it is with how far noises are from their laws.
    let wide = |debit: &Debit| Debit {
        rho: ratio(5, 2),
        budget: ratio(9, 1),
        total: None,
        tau: ratio(1, 1u64 << 56),
        ..debit.clone()
    };
    ledger.check_together(&[wide(&all)]).unwrap();
    let refused = text(ledger.check_together(&[wide(&all), wide(&own)]));
    assert!(
        refused.contains("could be told from exact noise by more than 10⁻⁹ of delta at rho 5"),
        "{refused}"
    );
    pay(&mut ledger, &all, 1, 0).unwrap();
    for viewer in ["a", "b", PUBLIC] {
        assert_eq!(ledger.spent("hospitals", viewer).unwrap(), ratio(1, 2));
    }
    assert_eq!(ledger.spent_by_all("hospitals").unwrap(), ratio(1, 2));
    pay(&mut ledger, &own, 2, 0).unwrap();
    for (release, number) in [(all.release_id, 1), (own.release_id, 2)] {
        ledger.send(&[number; 32], &[]).unwrap();
        ledger.store_outputs(&release, 0, "a b", &[]).unwrap();
    }
    let third = Debit { viewer_key: "b".into(), release_id: [3; 32], rho: ratio(1, 8), ..own };
    assert!(text(ledger.check_pay(&third)).contains("policy.total: 0.75 of 0.75"));
    // Both peers have the rows, what was signed of them, and that they ended, in their chains.
    assert_eq!(["a", "b"].map(|peer| ledger.chain(peer).unwrap().count), [6, 6]);
}

fn agreed(runs: u64, after: u64, charges: &[(&str, [u64; 2])]) -> AgreedBounds {
    let charge = |&(viewer, [rho, delta]): &(&str, [u64; 2])| AgreedCharge {
        viewer: viewer.to_owned(),
        rho: ratio(rho, 100),
        delta: ratio(delta, 1000),
    };
    let charges = charges.iter().map(charge).collect();
    AgreedBounds { charges, after, at: u64::MAX >> 1, matches: runs, data: None, lineage: None, rows: 0 }
}

/// What was consented to for a study bounds what it is charged, whatever budget is left.
#[test]
fn a_study_is_charged_no_more_than_was_consented_to() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let budget = || ratio(10, 1);
    let sizes = |release, agreed: &AgreedBounds| Debit {
        viewer_key: "a".into(),
        delta: ratio(1, 1000),
        most_delta: ratio(1, 1),
        agreed: Some(agreed.clone()),
        ..debit(release, ratio(1, 100), budget())
    };
    let number = |release, agreed: &AgreedBounds| Debit {
        viewer_key: format!("a {PUBLIC}"),
        agreed: Some(agreed.clone()),
        ..debit(release, ratio(10, 100), budget())
    };
    // Before the consent; another study's counts never.
    ledger.debit(&sizes(1, &agreed(9, 0, &[("a", [1, 1])]))).unwrap();
    ledger.debit(&Debit { study: [9; 32], agreed: None, ..number(2, &agreed(1, 0, &[])) }).unwrap();
    let after = ledger.last_debit().unwrap();
    let bounds = agreed(1, after, &[("a", [11, 1]), (PUBLIC, [10, 0])]);
    ledger.debit(&sizes(3, &bounds)).unwrap();
    // A match once more, and a number once more, after all is charged.
    assert_eq!(
        text(ledger.debit(&sizes(4, &bounds))),
        "consent: of delta 10⁻³ that was consented to for this study towards viewer a, 10⁻³ is charged; \
         this release needs 10⁻³: the consent allows no more: whoever wants it proposes the study again"
    );
    ledger.debit(&number(5, &bounds)).unwrap();
    ledger.debit(&number(5, &bounds)).unwrap();
    let again = number(6, &bounds);
    for refused in [
        ledger.check_debit(&again),
        ledger.check_together(std::slice::from_ref(&again)),
        ledger.debit(&again).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.shortfall().map(|short| short.bound), Some("study.charges"), "{error}");
        assert!(error.to_string().contains("of rho 0.11 that was consented to"), "{error}");
    }
    assert_eq!(ledger.charged_since(&[1; 32], &bounds, "a").unwrap(), [ratio(11, 100), ratio(1, 1000)]);
    assert_eq!(ledger.charged_since(&[1; 32], &bounds, PUBLIC).unwrap(), [ratio(10, 100), ratio(0, 1)]);
    // Nobody is charged whom the consent does not name, and a new consent begins anew.
    let other = Debit { viewer_key: "b".into(), ..sizes(7, &bounds) };
    assert!(text(ledger.debit(&other)).starts_with("consent: no charge towards viewer b"));
    // Nor is another account.
    let elsewhere = Debit { lineage: "elsewhere".into(), ..number(6, &bounds) };
    let held = AgreedBounds { lineage: Some(again.lineage.clone()), ..agreed(1, 0, &[("a", [99, 9])]) };
    let elsewhere = Debit { agreed: Some(held.clone()), ..elsewhere };
    assert!(text(ledger.debit(&elsewhere)).contains("charged to the lineage elsewhere"));
    assert!(text(ledger.check_debit(&elsewhere)).contains("what was consented to is charged to"));
    ledger.check_debit(&Debit { lineage: again.lineage.clone(), ..sizes(9, &held) }).unwrap();
    let next = agreed(1, ledger.last_debit().unwrap(), &[("a", [11, 1]), (PUBLIC, [10, 0])]);
    ledger.debit(&again.clone()).unwrap_err();
    ledger.debit(&number(6, &next)).unwrap();
    // A ledger that was put back has smaller numbers; the time counts as well.
    let timed = AgreedBounds { after: u64::MAX >> 1, at: 0, ..next };
    ledger.debit(&sizes(8, &timed)).unwrap_err();
}

/// A match begins as often as was consented to: a peer that loses its half each time gets no more.
#[test]
fn matches_begin_as_often_as_was_consented_to() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let bounds = AgreedBounds { at: 0, ..agreed(2, 0, &[("a", [900, 900])]) };
    let sizes = |number: u64| {
        let release = u8::try_from(number).unwrap();
        Ok(vec![Debit {
            viewer_key: "a".into(),
            delta: ratio(1, 1000),
            most_delta: ratio(1, 1),
            agreed: Some(bounds.clone()),
            ..debit(release, ratio(1, 100), ratio(10, 1))
        }])
    };
    (1..=2).for_each(|number| assert_eq!(ledger.begin_match(&[5; 32], &sizes).unwrap().number, number));
    let error = ledger.begin_match(&[5; 32], &sizes).unwrap_err();
    assert_eq!(error.shortfall().map(|short| short.bound), Some("study.runs"));
    assert_eq!(ledger.last_begun(&[5; 32]).unwrap().map(|last| last.number), Some(2), "and is not counted");
    assert_eq!(ledger.last_debit().unwrap(), 2);
}

/// A match that is taken up before it spoke is charged for the made-up rows that it has by then, and its
/// number stays: the rules may have changed since it began.
#[test]
fn a_silent_match_is_charged_for_the_rows_it_takes_up() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let mut begin = |release: u8| {
        let begun =
            ledger.begin_silent_match(&[9; 32], &|_| Ok(vec![debit(release, ratio(1, 4), ratio(1, 2))]));
        (begun, ledger.last_debit().unwrap())
    };
    let (first, charged) = begin(1);
    let first = first.unwrap();
    assert_eq!((first.number, charged), (1, 1));
    for (release, charged) in [(1, 1), (2, 2), (2, 2)] {
        let (again, debits) = begin(release);
        assert_eq!((again.unwrap(), debits), (first, charged), "release {release}");
    }
    // What the ledger does not pay does not go on, and stays silent.
    assert!(text(begin(3).0).starts_with("budget: 0.5 of 0.5"));
    assert_eq!(begin(2).0.unwrap(), first);
}

/// What a run takes up without another match.
#[test]
fn a_ledger_says_what_a_run_goes_on_from() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    ledger.debit(&debit(1, ratio(1, 100), ratio(1, 1))).unwrap();
    assert!(!ledger.takes_up(&[1; 32]).unwrap(), "that it was charged is nothing to go on from");
    ledger.store_outputs(&[1; 32], 0, "key-of-registry", &[1, 2]).unwrap();
    assert!(ledger.takes_up(&[1; 32]).unwrap() && !ledger.takes_up(&[2; 32]).unwrap());
}

/// A match in which nothing was said yet is taken up, whichever party is the first of the study; once it
/// speaks, what is kept of it says whether it goes on.
#[test]
fn a_silent_match_is_something_to_go_on_from() {
    for first in [true, false] {
        let folder = folder();
        let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
        let sizes = debit(1, ratio(1, 100), ratio(1, 1));
        let tags = if first { [sizes.my_tag, sizes.peer_tag] } else { [sizes.peer_tag, sizes.my_tag] };
        let (study, id) = (sizes.study, begun_id(&sizes.study, &tags));
        let begun = ledger.begin_silent_match(&id, &|_| Ok(vec![sizes.clone()])).unwrap();
        assert!(ledger.takes_up(&study).unwrap() && !ledger.takes_up(&[2; 32]).unwrap());
        assert!(Ledger::look(&folder.path().join("l")).unwrap().takes_up(&study).unwrap());
        assert!(ledger.match_speaks(&id, &begun.nonce).unwrap());
        assert!(!ledger.takes_up(&study).unwrap());
    }
}
