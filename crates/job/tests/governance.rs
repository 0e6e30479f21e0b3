//! What governs the spending of a budget: periods, rates, keys that take the place of others, signatures of
//! both sides. Two parties in two threads, TLS on loopback, real files.

mod pair;

use base::Error;
use job::run::{Watch, run};
use net::Identity;
use pair::{NAMES, World, whole};
use privacy::ledger::{Ledger, check_signatures};
use release::rational::ratio;
use report::RunReport;

fn texts(done: [Result<RunReport, Error>; 2]) -> [String; 2] {
    done.map(|done| done.map(|_| ()).expect_err("it must not run").to_string())
}

/// Both keep what both signed, and it says the same.
#[test]
fn both_sign_every_debit() {
    let world = World::new();
    whole(world.run());
    let [clinic, works] = [0, 1].map(|party| world.ledger(party));
    let both = [&clinic, &works].map(|ledger| {
        let (entries, signatures) = (ledger.entries().unwrap(), ledger.signatures().unwrap());
        let checked = check_signatures(&entries, &signatures).unwrap();
        // The release is signed by both, the sizes of the match by nobody.
        assert_eq!((checked.by_all, checked.not_by_all, checked.signatures), (1, 1, 2));
        ledger.verify().unwrap();
        let mut texts: Vec<_> =
            signatures.into_iter().map(|one| (one.signer, one.text, one.signature)).collect();
        texts.sort();
        texts
    });
    assert_eq!(both[0], both[1]);
    let text = &both[0][0].1;
    for words in ["rho 1/10\n", &format!("viewers {} {} public\n", world.keys[0], world.keys[1])] {
        assert!(text.contains(words), "{text}");
    }
    // Neither's name of its data is in it, and the export of one is checked without the other.
    assert!(!both[0].iter().any(|(_, text, _)| text.contains("data-")));
    assert_eq!(clinic.export().unwrap().verify().unwrap().signed.by_all, 1);
}

/// A run that is cut between a payment and the opening, and goes on: the same signatures, once.
#[test]
fn a_number_that_is_opened_later_keeps_its_signatures() {
    let world = World::new();
    assert!(world.cut(0, "sent", "").iter().all(Result::is_err));
    let signed = |party: usize| {
        let all = world.ledger(party).signatures().unwrap();
        all.into_iter().map(|one| (one.signer, one.signature)).collect::<Vec<_>>()
    };
    let before = signed(0);
    assert_eq!(before.len(), 1);
    whole(world.run());
    assert_eq!([signed(0).len(), signed(1).len()], [2, 2]);
    assert!(signed(0).contains(&before[0]) && signed(1).contains(&before[0]));
    assert_eq!([world.charged(0), world.charged(1)], [1, 1]);
}

/// Wherever a release breaks off, who meets it reads what was spent, what is held and what to do; and so it
/// is.
#[test]
fn a_release_that_breaks_off_says_how_things_stand() {
    let cases = [
        // Where the works stop, and what the clinic reads then.
        ("held", "", "Held: this side's share", 0),
        ("debits", "WHEN NEW.tau IS NOT NULL", "Charged and not spent: rho 0.1 of lineage data-clinic", 1),
        (
            "sent",
            "",
            "Spent: rho 0.1 of lineage data-clinic, for this side's share of the result went out",
            1,
        ),
    ];
    for (table, when, expected, charged) in cases {
        let world = World::new();
        let [clinic, _] = world.cut(1, table, when).map(|done| done.unwrap_err().to_string());
        // Who refuses to pay says so itself; that is no accident.
        let refused = clinic.contains("does not pay for this release");
        assert!(refused || clinic.contains(expected), "{table}: {clinic}");
        assert!(
            refused || clinic.contains("Run again, with the same study and the same data:"),
            "{table}: {clinic}"
        );
        // What the release has cost is not all: the sizes of its match are spent, too.
        assert!(refused || clinic.contains("Spent besides: rho 0.01 and delta "), "{table}: {clinic}");
        assert_eq!(world.charged(0), charged, "{table}");
        whole(world.run());
        assert_eq!([world.charged(0), world.charged(1)], [1, 1], "{table}");
    }
    // The works read it of their own side as well, and the next report counts it.
    let world = World::new();
    let [_, works] = world.cut(1, "outputs", "").map(|done| done.map(|_| ()).map_err(|e| e.to_string()));
    assert!(works.unwrap_err().contains("Spent: rho 0.1 of lineage data-works"));
    let broke = world.ledger(1).broken_off(&world.keys[0]).unwrap();
    assert_eq!((broke.releases, broke.after_index, broke.after_payment), (1, 0, 1));
}

/// Before the release, the sizes of the match are what a run has cost; from the third match on they are
/// charged again.
#[test]
fn a_match_that_breaks_off_says_what_it_cost() {
    let world = World::new();
    for next in ["with the same made-up rows, and nothing more", "with other made-up rows, and the sizes"] {
        let [clinic, works] = world.cut(1, "matches", "").map(|done| done.unwrap_err().to_string());
        assert!(clinic.contains("Spent: rho 0.01 and delta "), "{clinic}");
        assert!(clinic.contains("on the release: nothing. Run again") && clinic.contains(next), "{clinic}");
        assert!(!works.contains("Spent"), "{works}");
    }
    let spent = world.ledger(0).spent("data-clinic", &world.keys[1]).unwrap();
    assert_eq!(
        [spent, ratio(0, 1)],
        [ratio(1, 100), world.ledger(1).spent("data-works", &world.keys[0]).unwrap()]
    );
}

/// What a report calls all that its party got is what the other party's ledger charged in this study, matches
/// of runs that broke off included; what all share does not depend on it.
#[test]
fn a_report_counts_the_matches_of_runs_that_broke_off() {
    let world = World::new();
    (0..3).for_each(|_| _ = world.cut(1, "held", ""));
    let reports = whole(world.run());
    for (me, (report, lineage)) in reports.iter().zip(["data-works", "data-clinic"]).enumerate() {
        let total = report.privacy.total.as_ref().unwrap();
        let spent = world.ledger(1 - me).spent(lineage, &world.keys[me]).unwrap();
        assert_eq!((total.rho.clone(), total.size_charges), (spent.to_string(), 3), "{total:?}");
        let warning = report.own_warnings.iter().find(|warning| warning.contains("this was match 4 of"));
        assert!(warning.is_some_and(|text| text.contains("charged 3 times")), "{:?}", report.own_warnings);
        let text = report::wording::charged_to(report, total);
        assert!(text.contains("0.03 sizes of 3 matches that were charged"), "{text}");
    }
    let [clinic, works] = reports.map(|report| report::PublicReport::of(&report).ok());
    assert_eq!(clinic, works);
}

/// A peer with a new key that its old one has signed for goes on where it was: budgets, the chain of its
/// ledger, statements. The same peer with a key that nothing is known of would have a budget of its own.
#[test]
fn a_new_key_goes_on_where_the_old_one_stood() {
    let mut world = World { budget: "0.2", total: "9", ..World::new() };
    whole(world.run());
    let old = world.path("works.key");
    std::fs::copy(&old, world.path("copy.key")).unwrap();
    let new = Identity::load(&old).unwrap().succeed(&old, &world.path("works-2.key")).unwrap();
    let stranger = Identity::generate().unwrap();
    stranger.save(&world.path("stranger.key")).unwrap();
    let (first, was) = (world.study.clone(), world.keys[1].clone());
    let known = world.ledger(0).chain(&was).unwrap();
    // Under a strange key there is a budget, in ledgers that forget it again.
    let folder = world.folder.path().to_owned();
    let kept = NAMES.map(|name| std::fs::read(folder.join(format!("{name}.ledger"))).unwrap());
    let as_key = |world: &mut World, identity: &'static str, key: String, title: &str| {
        (world.study, world.identities[1]) = (first.replace(&was, &key), identity);
        world.keys[1] = key;
        world.retitle(title);
    };
    as_key(&mut world, "stranger", stranger.fingerprint().to_string(), "second");
    world.budget = "0.3";
    whole(world.run());
    // In which the public number of the first study is, that it can have read.
    assert_eq!(world.ledger(0).spent("data-clinic", &world.keys[1]).unwrap(), ratio(21, 100));
    for (name, bytes) in NAMES.iter().zip(&kept) {
        std::fs::write(folder.join(format!("{name}.ledger")), bytes).unwrap();
    }
    // Under the key that the old one signed for there is what is left.
    world.budget = "0.2";
    as_key(&mut world, "works-2", new.fingerprint().to_string(), "third");
    let [clinic, _] = texts(world.run());
    let refusal = format!("budget: 0.11 of 0.2 spent on lineage data-clinic by viewer {}", world.keys[1]);
    assert!(clinic.contains(&refusal), "{clinic}");
    world.budget = "0.3";
    whole(world.run());
    let ledger = world.ledger(0);
    assert_eq!(ledger.spent("data-clinic", &was).unwrap(), ratio(22, 100));
    assert_eq!(ledger.hash_at(&world.keys[1], known.count).unwrap(), known.hash);
    for party in [0, 1] {
        world.ledger(party).verify().unwrap();
    }
    // It runs again, with statements of both under the new key, and names a ledger that was put back.
    world.budget = "9";
    as_key(&mut world, "works-2", new.fingerprint().to_string(), "fourth");
    whole(world.run());
    std::fs::write(folder.join("works.ledger"), &kept[1]).unwrap();
    as_key(&mut world, "works-2", new.fingerprint().to_string(), "fifth");
    let [clinic, works] = texts(world.run());
    assert!(clinic.contains("the ledger of works went back from"), "{clinic}");
    assert!(works.contains("clinic holds a statement that this party signed"), "{works}");
}

/// A statement that was signed with the same old key for another new one, as a thief would make it, is
/// refused and named.
#[test]
fn a_second_successor_is_refused_by_whoever_knows_the_first() {
    let mut world = World::new();
    let old = world.path("works.key");
    std::fs::copy(&old, world.path("copy.key")).unwrap();
    let new = Identity::load(&old).unwrap().succeed(&old, &world.path("works-2.key")).unwrap();
    let copy = world.path("copy.key");
    let thief = Identity::load(&copy).unwrap().succeed(&copy, &world.path("thief.key")).unwrap();
    let (first, was) = (world.study.clone(), world.keys[1].clone());
    world.study = first.replace(&was, &new.fingerprint().to_string());
    world.identities[1] = "works-2";
    whole(world.run());
    std::fs::remove_file(world.path("works.ledger")).unwrap();
    world.study = first.replace(&was, &thief.fingerprint().to_string());
    world.identities[1] = "thief";
    let parties = world.parties();
    let [clinic, _] = std::thread::scope(|scope| {
        let threads = parties.each_ref().map(|party| scope.spawn(move || run(party, &Watch::none())));
        threads.map(|thread| thread.join().unwrap().map(|_| ()).unwrap_err().to_string())
    });
    for named in [was, new.fingerprint().to_string(), thief.fingerprint().to_string()] {
        assert!(clinic.contains(&named), "{clinic}");
    }
    assert!(clinic.contains("a key has one successor"), "{clinic}");
    assert_eq!(world.ledger(0).entries().unwrap().len(), 2);
}

/// A bound within the budget ends a run before anything is matched, at both sides; so does a rate, before
/// anybody is met.
#[test]
fn periods_and_rates_end_a_run_before_anything_is_charged() {
    let mut world =
        World { policy: ["period = \"30d\"\nperiod_budget = 0.12", "runs = \"3/day\""], ..World::new() };
    whole(world.run());
    assert!(whole(world.run()).iter().all(|report| report.stored));
    world.retitle("another");
    let [clinic, works] = texts(world.run());
    assert!(
        clinic.contains("policy.period_budget: 0.11 of 0.12 in 30 days spent on lineage data-clinic"),
        "{clinic}"
    );
    assert!(works.contains("the peer's privacy ledger does not allow this study"), "{works}");
    let entries = world.ledger(0).entries().unwrap();
    assert_eq!((entries.len(), entries[0].period.as_deref()), (2, Some("0.12 in 30 days")));
    // The fourth that begins.
    let [_, party] = world.parties();
    let error = run(&party, &Watch::none()).unwrap_err().to_string();
    assert!(error.starts_with("policy.runs: 3 runs with clinic have begun, and 3/day may"), "{error}");
    assert_eq!(Ledger::open(&world.path("works.ledger")).unwrap().export().unwrap().runs.len(), 3);
}

/// What a ledger has paid for and what a study adds are looked at together, before a row is sent: by `check`,
/// and when a run begins.
#[test]
fn noise_that_a_ledger_cannot_bear_is_refused_before_the_match() {
    let policy = ["max_rho = 9"; 2];
    let mut world = World { budget: "9", total: "9", policy, ..World::new() };
    world.study = world.study.replace("1/20", "5/4").replace("rho = 0.1", "rho = 2.5");
    let outlook = |world: &World| {
        let [clinic, _] = world.parties();
        job::budget::outlook(&clinic, &job::run::check(&clinic).unwrap()).unwrap().refusals
    };
    assert_eq!(outlook(&world), [""; 0]);
    whole(world.run());
    // The same study on the same data is not charged again.
    assert_eq!(outlook(&world), [""; 0]);
    world.retitle("second");
    let said = outlook(&world).join("; ");
    assert!(said.contains("could be told from exact noise by more than 10⁻⁹ of delta at rho 5.02"), "{said}");
    let entries = world.ledger(0).entries().unwrap().len();
    for (error, name) in texts(world.run()).iter().zip(NAMES) {
        assert!(error.starts_with(&format!("{name} at agree")) && error.contains("exact noise"), "{error}");
    }
    assert_eq!(world.ledger(0).entries().unwrap().len(), entries);
}
