//! Every protocol gives a lift study the same totals, exactly, whatever hides the sizes; and what each one
//! tells.

use super::matched::MatchedRows;
use super::spine::KeptSpine;
use super::*;
use crate::stages::compute::ComputeStage;
use crate::stages::matching::MatchStage;
use crate::stages::publish::hear_groups;
use data::generate::{FileFormat, LiftOptions, lift_study};
use engine::{Share, Shares};
use matching::{AlignedRows, MatchOptions, MatchRoles, Matcher};
use net::Session;
use parties::{PartyFile, make_key};
use privacy::dummies::MatchLeakage;
use privacy::scales::Scales;
use release::rational::decimal;
use report::Disclosure;
use std::path::Path;
use tempfile::TempDir;

#[path = "../../tests/parties/mod.rs"]
mod parties;
pub(super) mod secrets;

const NAMES: [&str; 2] = ["publisher", "advertiser"];
/// People of the publisher, and of the advertiser.
const PEOPLE: [std::ops::Range<u64>; 2] = [0..300, 200..460];

/// One person's arm, opportunity, and events; what follows from the number is fixed.
fn person(i: u64) -> (bool, u64, Vec<(u64, u64)>) {
    let draw = |of: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(of as u32) % 1000;
    let events = (0..draw(7) % 3).map(|j| (draw(11 + j), 1 + draw(23 + j) % 70)).collect();
    (draw(3) < 500, draw(5), events)
}

/// Everybody has an id; two of three have an alternative, and a few of the publisher's rows know another one
/// than the advertiser.
fn alternative(side: usize, i: u64) -> String {
    match (i % 3, i % 17, side) {
        (0, ..) => String::new(),
        (_, 5, 0) => format!("old{i}"),
        _ => format!("alt{i}"),
    }
}

fn write(folder: &Path) {
    let mut publisher = "id,alt,arm,seen,impressions\n".to_owned();
    for i in PEOPLE[0].clone() {
        let (test, seen, _) = person(i);
        let arm = if test { "test" } else { "control" };
        publisher += &format!("P{i:05},{},{arm},{seen},1\n", alternative(0, i));
    }
    let mut advertiser = "id,alt,bought,amount,kind\n".to_owned();
    for i in PEOPLE[1].clone() {
        let (.., events) = person(i);
        let line = |at: u64, amount: u64, kind: &str| {
            format!("p{i:05},{},{at},{amount},{kind}\n", alternative(1, i))
        };
        advertiser += &line(0, 1, "none");
        events.into_iter().for_each(|(at, amount)| advertiser += &line(at, amount, "sale"));
    }
    std::fs::write(folder.join("publisher.csv"), publisher).unwrap();
    std::fs::write(folder.join("advertiser.csv"), advertiser).unwrap();
}

struct World {
    folder: TempDir,
    study: String,
}

impl World {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        write(folder.path());
        let keys = NAMES.map(|name| make_key(folder.path(), name));
        let options = LiftOptions {
            rows: 1,
            overlap: 0.0,
            max_events: 3,
            clamp: 100,
            seed: 1,
            format: FileFormat::Csv,
            files: 1,
        };
        let study = lift_study(&options, &keys[0], &keys[1], false)
            .replace("max_events = 3", "max_events = 3\nwhere = { column = \"kind\", equals = [\"sale\"] }")
            + "\n[compute]\nengine = \"gmw\"\not = \"softspoken:4\"\nshards = 2\n";
        Self { folder, study }
    }

    /// The parties of the study with other lines in [match].
    fn parties(&self, study: &str, edit: &dyn Fn(&mut PartySetup)) -> [PartySetup; 2] {
        std::fs::write(self.folder.path().join("study.toml"), study).unwrap();
        PartyFile::pair(self.folder.path(), NAMES).map(|file| {
            let mut party = file.with("report = \"out\"").policy("budget = 50").setup();
            edit(&mut party);
            party
        })
    }

    fn matching(&self, protocol: &str, identifiers: &str, more: &str) -> String {
        let lines =
            "protocol = \"pid\"\nidentifiers = [ { name = \"id\", normalise = [\"trim\", \"lowercase\"] } ]";
        assert!(self.study.contains(lines));
        let new = format!("protocol = \"{protocol}\"\nidentifiers = {identifiers}\n{more}");
        self.study.replace(lines, &new)
    }
}

const ID: &str = "[ { name = \"id\", normalise = [\"trim\", \"lowercase\"] } ]";
const BOTH: &str = "[ { name = \"id\", normalise = [\"lowercase\"] }, { name = \"alt\" } ]";

/// What both parties hold after the computation, put together, and what the match told each.
fn totals(parties: &[PartySetup; 2]) -> Result<(Vec<u128>, [Disclosure; 2]), Error> {
    let one = |party: &PartySetup| -> Result<(Checked, Shares, Disclosure), Error> {
        let checked = check(party)?.pop().expect("one run");
        let ledger = Arc::new(Mutex::new(Ledger::open(&party.ledger)?));
        let watch = Watch::none();
        let meeting = meet(party, &checked, places(party, &checked.study, checked.me, false)?, &watch)?;
        let (mut run, mut lanes) = OwnerRun::new(party, &checked, ledger, &watch, (None, meeting))?;
        let spine = run.kept_spine.as_ref().map(KeptSpine::name);
        let agreement = run.agree(spine)?;
        run.ready(&agreement)?;
        let Checked { study, built, engines, rows, .. } = &checked;
        let stage = MatchStage::new(study, built, engines, [rows.len(); 2])?;
        let MatchedRows { rows, disclosed } = run.place_rows(&stage, (&agreement, None))?;
        let stage = ComputeStage::new(study, engines.clone(), rows.count());
        let shares =
            run.work((&stage, agreement.name), &rows, lanes.as_mut().expect("two owners compute"))?;
        run.part()?;
        run.session.finish()?;
        assert!(run.log.all().iter().all(|stage| stage.price_held), "{:?}", run.log.all());
        Ok((checked, shares, disclosed))
    };
    let done = std::thread::scope(|scope| {
        let threads = parties.each_ref().map(|party| scope.spawn(|| one(party)));
        threads.map(|thread| thread.join().unwrap())
    });
    let [first, second] = done;
    let ((checked, a, told_a), (_, b, told_b)) = (first?, second?);
    let word = |share: &Share| match share {
        Share::Known(x) | Share::Additive(x) => *x,
        Share::Absent => 0,
        _ => panic!("sums are additive or known"),
    };
    let folds = checked.built.program.folds.iter().zip(a.folds().iter().zip(b.folds()));
    let sums = folds.map(|(fold, (a, b))| word(a).wrapping_add(word(b)) & fold.ty().mask()).collect();
    Ok((sums, [told_a, told_b]))
}

/// What an independent reference gives: by the definition, from the people themselves.
fn truth(checked: &Checked) -> Vec<(u32, u128)> {
    use studies::lift::{JoinedRow, PersonEvent, PersonOutcome, TrialArm, TrueTotals, User};
    let (lift, layout) = checked.built.lift.as_ref().expect("a lift study");
    let rows: Vec<JoinedRow> = (0..PEOPLE[1].end)
        .map(|i| {
            let (test, time, events) = person(i);
            let arm = if test { TrialArm::Test } else { TrialArm::Control };
            let user = User { arm, time, reached: true, breakdown: None };
            let event = |(time, value)| PersonEvent { time, value };
            let mut events = events;
            events.sort_unstable();
            let outcome = PersonOutcome { events: events.into_iter().map(event).collect(), cohort: None };
            JoinedRow {
                user: PEOPLE[0].contains(&i).then_some(user),
                outcome: PEOPLE[1].contains(&i).then_some(outcome),
            }
        })
        .collect();
    let mut totals = TrueTotals::default();
    rows.iter().for_each(|row| totals.add(lift, row));
    layout.totals.iter().map(|t| (t.fold, totals.get(t.cell, t.arm, t.quantity))).collect()
}

#[test]
fn every_protocol_gives_the_same_exact_totals() {
    let world = World::new();
    let off = "dummies = \"off\"";
    let cases = [
        ("pid", ID, off),
        ("pid", ID, ""),
        ("pid", BOTH, off),
        ("pid", BOTH, ""),
        ("pid", BOTH, "dummies = \"off\"\ncontaminated = \"count\""),
        ("ps3i", ID, off),
        ("ps3i", ID, ""),
        ("collecting", ID, "slots = 1\ndummies = \"off\""),
        ("collecting", BOTH, "slots = 2"),
        ("collecting", ID, "slots = 3\ndummies = \"off\"\ncontaminated = \"drop\""),
        ("circuit-psi", ID, off),
        ("circuit-psi", ID, ""),
    ];
    for (protocol, identifiers, more) in cases {
        let parties = world.parties(&world.matching(protocol, identifiers, more), &|_| ());
        let (sums, told) = totals(&parties).unwrap_or_else(|e| panic!("{protocol}, {more}: {e}"));
        let checked = check(&parties[0]).unwrap().pop().unwrap();
        for (fold, expected) in truth(&checked) {
            assert_eq!(sums[fold as usize], expected, "{protocol}, {more}, fold {fold}");
        }
        let hidden = checked.study.matching.dummies.is_some();
        for told in &told {
            assert_eq!((told.protocol.as_str(), told.dummies.is_some()), (protocol, hidden));
            let exact = told.rows == [300, 260];
            assert_eq!(exact, !hidden, "{protocol}, {more}: {:?}", told.rows);
            assert_eq!(told.size_hidden, matches!(protocol, "circuit-psi" | "collecting"));
            if exact && !told.size_hidden {
                assert_eq!((told.union, told.matched_upper_bound), (460, 100));
            }
        }
    }
}

/// Rows in the party's state, columns and shares beside them, and the totals that the rows say.
#[test]
fn rows_outside_memory_give_the_same_exact_totals() {
    let world = World::new();
    let few = 8 << 10;
    let cases = [
        ("pid", "", few),
        ("ps3i", "dummies = \"off\"", few),
        ("ps3i", "", few),
        ("collecting", "slots = 1", few),
        ("collecting", "slots = 3\ndummies = \"off\"\ncontaminated = \"drop\"", few),
        // Its back ends take memory whatever rows there are.
        ("circuit-psi", "dummies = \"off\"", 1 << 30),
        ("circuit-psi", "", 1 << 30),
    ];
    for (protocol, more, memory) in cases {
        let parties = world.parties(&world.matching(protocol, ID, more), &|party| {
            (party.memory, party.spool) = (memory, true);
            let state = format!("{}-{protocol}-{}-state", party.as_party, more.len());
            party.state = Some(world.folder.path().join(state).display().to_string());
        });
        let (sums, _) = totals(&parties).unwrap_or_else(|e| panic!("{protocol}, {more}: {e}"));
        let checked = check(&parties[0]).unwrap().pop().unwrap();
        assert!(checked.rows.spool().is_some() && checked.warnings.is_empty(), "{:?}", checked.warnings);
        for (fold, expected) in truth(&checked) {
            assert_eq!(sums[fold as usize], expected, "{protocol}, {more}, fold {fold}");
        }
    }
}

/// By several identifiers all rows are held, whatever `state` is: what does not fit is refused.
#[test]
fn rows_of_several_identifiers_are_held_in_memory() {
    let world = World::new();
    let [party, _] = world.parties(&world.matching("collecting", BOTH, "slots = 2"), &|party| {
        party.memory = 8 << 10;
        party.state = Some(world.folder.path().join("state").display().to_string());
    });
    let error = check(&party).err().expect("300 rows need more").to_string();
    assert!(error.contains("raise it: this match, one by several identifiers, "), "{error}");
}

#[test]
fn a_rerun_of_a_match_shows_the_same_sizes_and_is_charged_once() {
    let world = World::new();
    let run = |study: &str| totals(&world.parties(study, &|_| ())).unwrap().1;
    let study = world.matching("pid", ID, "");
    let first = run(&study);
    // With a folder to go on from, which a match that ends leaves empty.
    let work = |party: &PartySetup| world.folder.path().join(format!("{}.work", party.as_party));
    let parties = world.parties(&study, &|party| party.work = Some(work(party)));
    let again = totals(&parties).unwrap().1;
    for party in &parties {
        let files = |folder: &Path| {
            std::fs::read_dir(folder)
                .map_or(0, |all| all.filter(|e| !e.as_ref().unwrap().path().is_dir()).count())
        };
        let folder = work(party);
        assert_eq!(files(&folder) + files(&folder.join(check(party).unwrap()[0].hash.full())), 0);
    }
    assert_eq!(first[0].rows, again[0].rows);
    // Another study has other made-up rows, which say nothing more of these.
    let other = run(&study.replace("clamp = 100", "clamp = 101"));
    assert_ne!(first[0].rows, other[0].rows);
    for name in NAMES {
        let ledger = Ledger::open(&world.folder.path().join(format!("{name}.ledger"))).unwrap();
        let entries = ledger.entries().unwrap();
        let charged: Vec<_> = entries.iter().map(|e| (&*e.rho, e.protects)).collect();
        assert_eq!(charged, [("0.01", true); 2], "{entries:?}");
        assert!(entries.iter().all(|e| e.delta != "0"), "{entries:?}");
    }
}

/// Half of a match of other rows cannot go on: that is said before anything is charged for it.
#[test]
fn a_cut_match_of_other_rows_is_refused_before_it_is_charged() {
    let world = World::new();
    let work = |party: &PartySetup| world.folder.path().join(format!("{}.work", party.as_party));
    let parties = world.parties(&world.matching("pid", ID, ""), &|party| party.work = Some(work(party)));
    for party in &parties {
        // As a process that was killed leaves it; no match of these data ever began in this ledger.
        let folder = work(party).join(check(party).unwrap()[0].hash.full());
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("match"), [&b"tacit pid log 1\n"[..], &[7; 224]].concat()).unwrap();
    }
    let text = totals(&parties).unwrap_err().to_string();
    assert!(text.contains("the match that was cut was of other rows"), "{text}");
    for party in &parties {
        assert_eq!(Ledger::open(&party.ledger).unwrap().entries().unwrap(), []);
    }
}

/// A peer that begins again and again learns nothing new of the first two sizes; every further match has
/// others, and costs.
#[test]
fn the_third_match_that_begins_is_drawn_and_charged_again() {
    let world = World::new();
    let study = world.matching("pid", ID, "");
    let run = |edit: &dyn Fn(&mut PartySetup)| {
        totals(&world.parties(&study, edit)).map(|(_, told)| told[0].rows.clone())
    };
    let sizes: Vec<Vec<u64>> = (0..4).map(|_| run(&|_| ()).unwrap()).collect();
    assert_eq!(sizes[0], sizes[1]);
    // Two draws may be alike by chance.
    assert!(sizes[2..].iter().any(|drawn| *drawn != sizes[1]), "{sizes:?}");
    let charged = |name: &str| {
        let ledger = Ledger::open(&world.folder.path().join(format!("{name}.ledger"))).unwrap();
        ledger.entries().unwrap().len()
    };
    assert_eq!(NAMES.map(charged), [3; 2]);
    // What the budget does not pay does not begin.
    let text = run(&|party| party.policy.budget = decimal("0.035").unwrap()).unwrap_err().to_string();
    assert!(
        text.contains("budget: 0.03 of 0.035 spent") || text.contains("the peer's privacy ledger"),
        "{text}"
    );
    // By policy each match is a charge, the second one too; one party's policy is its own.
    let other = study.replace("name = \"generated\"", "name = \"other\"");
    let fresh = |party: &mut PartySetup| party.policy.fresh_dummies = party.as_party == "publisher";
    let told: Vec<_> = (0..3).map(|_| totals(&world.parties(&other, &fresh)).unwrap().1).collect();
    let own = |told: &[Disclosure; 2]| (told[0].rows[0], told[0].union);
    assert!(told[1..].iter().any(|later| own(later) != own(&told[0])), "two draws may be alike by chance");
    assert_eq!(told[0][0].rows[1], told[1][0].rows[1]);
    assert_eq!(NAMES.map(charged), [6, 5]);
}

/// A first line with K identifiers takes them from K others, which go, and these from others: sums move by
/// more than one settled row, and their noise is scaled for it.
#[test]
fn a_line_that_takes_identifiers_is_covered_in_sums_of_own_rows_too() {
    let (folder, world) = (TempDir::new().unwrap(), World::new());
    let ids = "[ \"i0\", \"i1\", \"i2\", \"i3\" ]";
    let study = |rule: &str| {
        let text = world
            .matching("pid", ids, "dummies = \"off\"")
            .replace("duplicates = \"error\"", &format!("duplicates = \"{rule}\""));
        assert!(text.contains(rule));
        text
    };
    let head = "i0,i1,i2,i3,arm,seen,impressions\n";
    let taken: String = (0..4)
        .map(|j| {
            let cells: Vec<String> =
                (0..4).map(|k| if k == j { format!("a{k}") } else { String::new() }).collect();
            format!("{},test,5,1\n", cells.join(","))
        })
        .collect();
    let rest: String = (0..40).map(|i| format!("r{i},,,,{},5,1\n", ["test", "control"][i % 2])).collect();
    let data = folder.path().join("publisher.csv");
    let check = |rule: &str, text: String| {
        std::fs::write(&data, text).unwrap();
        let mut parties = world.parties(&study(rule), &|_| ());
        parties[0].data = data.clone();
        check(&parties[0]).unwrap().pop().unwrap()
    };
    let without = check("first", format!("{head}{taken}{rest}"));
    let with = check("first", format!("{head}a0,a1,a2,a3,test,5,1\n{taken}{rest}"));
    assert_eq!((without.rows.len(), with.rows.len()), (44, 41), "one line more is three rows less");
    let n_of_public = |checked: &Checked| {
        let (_, layout) = checked.built.lift.as_ref().unwrap();
        let scales = Scales::new(&checked.study, &checked.built.program, &checked.built.audit, None).unwrap();
        let n = layout.outputs.iter().find(|output| {
            output.viewer == program::Viewer::Public && output.quantity == studies::lift::Quantity::Rows
        });
        let (m, o) = n.unwrap().noised.unwrap();
        scales.sigma2(m, o).clone()
    };
    let (first, error) = (n_of_public(&with), n_of_public(&check("error", format!("{head}{rest}"))));
    assert_eq!(first, error * release::rational::ratio(81, 25), "2 K + 1 = 9 joined rows against K + 1 = 5");
    assert!(with.built.program.to_text().contains("alone publisher 5"));
}

/// Rows that one line changes may be in as many cells, and each moves by whole steps of the noise's lattice:
/// the steps of all are what is charged, also where one step would be all that they move together.
#[test]
fn rows_in_several_cells_are_charged_by_the_step() {
    let world = World::new();
    let text = world.matching("pid", "[ \"i0\", \"i1\", \"i2\" ]", "dummies = \"off\"");
    let text = text.replace("mode = \"sums\"", "mode = \"sums\"\nalso = [\"converters\"]");
    let study = Study::parse("study.toml", &text.replace("rho = 0.1", "rho = 0.02")).unwrap();
    let built = prepare::build(&study, &program::VerifierPolicy::default()).unwrap();
    let scales = Scales::new(&study, &built.program, &built.audit, None).unwrap();
    let mut seen = 0;
    for (m, charge) in (0u32..).zip(&built.audit.charges) {
        for (o, change) in (0u32..).zip(&charge.changes) {
            let sampler = scales.sampler(m, o).unwrap();
            let step = num_bigint::BigInt::from(1) << sampler.low_bits;
            let (one, cells) = change.calibrated();
            let steps = (num_bigint::BigInt::from(one) + &step - 1) / step * charge.degree;
            let cost = release::Rational::from_integer(&steps * &steps * cells)
                / (sampler.variance_y.clone() * num_bigint::BigInt::from(2));
            assert!(charge.degree == 4 && cost <= charge.rho.clone(), "{m} {o}: {cost}");
            seen += 1;
        }
    }
    assert!(seen > 0, "there is a count of its own");
}

#[test]
fn a_delta_or_rho_beyond_the_policy_ends_the_run_before_the_match() {
    let world = World::new();
    let study = world.matching("pid", ID, "");
    let refused =
        |edit: &dyn Fn(&mut PartySetup)| totals(&world.parties(&study, edit)).unwrap_err().to_string();
    let text = refused(&|party| party.policy.delta_places = 12);
    assert!(text.contains("delta: 0 of 10⁻¹² spent on lineage"), "{text}");
    // What the publisher is to see itself is the other's to limit.
    let text = refused(&|party| party.policy.max_rho = decimal("0.1").unwrap());
    assert!(text.contains("up to rho 0.110000 to advertiser, the sizes of the match included"), "{text}");
    // The budget has room for the release, and not for the match beside it.
    let text = refused(&|party| party.policy.budget = decimal("0.105").unwrap());
    assert!(text.contains("budget: 0 of 0.105 spent"), "{text}");
}

#[test]
fn a_kept_spine_serves_another_study_without_a_match() {
    let world = World::new();
    let spine = |party: &PartySetup| world.folder.path().join(format!("{}.spine", party.as_party));
    let first = world.matching("pid", BOTH, "");
    let parties = world.parties(&first, &|party| party.keep_spine = Some(spine(party)));
    let (sums, told) = totals(&parties).unwrap();
    // Another clamp is another study; the totals that it does not touch stay.
    let second =
        first.replace("clamp = 100", "clamp = 30").replace("name = \"generated\"", "name = \"again\"");
    let with = |edit: &dyn Fn(&mut PartySetup)| {
        let parties = world.parties(&second, &|party| {
            party.spine = Some(spine(party));
            edit(party);
        });
        totals(&parties)
    };
    let (other, retold) = with(&|_| ()).unwrap();
    let checked = check(&world.parties(&second, &|_| ())[0]).unwrap().pop().unwrap();
    for (fold, expected) in truth(&checked) {
        assert_eq!(other[fold as usize], expected);
    }
    assert_ne!(sums, other);
    assert!(retold[0].kept_spine && !told[0].kept_spine);
    assert_eq!(retold[0].rows, told[0].rows);
    // The match was charged once, when it was made.
    let ledger = Ledger::open(&world.folder.path().join("publisher.ledger")).unwrap();
    assert_eq!(ledger.entries().unwrap().len(), 1);
    // A spine that holds what was found of arms would hold it when they have changed.
    let counted = world.matching("pid", BOTH, "dummies = \"off\"\ncontaminated = \"count\"");
    let parties = world.parties(&counted, &|party| party.keep_spine = Some(spine(party)));
    let text = totals(&parties).unwrap_err().to_string();
    assert!(text.contains("a kept spine would hold what it found"), "{text}");
    // Both reports say who saw the match graph, on a kept spine too.
    let graph = [MatchLeakage::MatchGraph { to: "publisher".into() }];
    assert!(told.iter().chain(&retold).all(|told| told.uncovered == graph), "{retold:?}");
    let text = with(&|party| {
        if party.as_party == "publisher" {
            party.spine = None;
        }
    });
    assert!(text.unwrap_err().to_string().contains("kept spine"));
    let text = with(&|party| {
        if party.as_party == "publisher" {
            let more = std::fs::read_to_string(&party.data).unwrap() + "newcomer,,test,5,1\n";
            let data = world.folder.path().join("more.csv");
            std::fs::write(&data, more).unwrap();
            party.data = data;
        }
    });
    assert!(
        text.unwrap_err().to_string().starts_with("1 rows of this party's data are not on the kept spine")
    );
}

/// What a party that hears several others makes of `say`: the suspects that it names.
fn suspects(parties: usize, say: &(dyn Fn(&mut Session) -> Result<(), Error> + Sync)) -> Vec<String> {
    let done = net::cluster::Cluster::new(parties, 21).run(|session| say(session));
    let last = done.into_iter().next_back().unwrap().unwrap_err();
    let me = last.at().party.clone();
    last.accusation().expect("an accusation").suspects(&me).iter().map(|name| (*name).to_owned()).collect()
}

/// Whoever says to one what it does not say to others is among those that are suspected, whoever is heard
/// first.
#[test]
fn whoever_says_another_thing_is_a_suspect() {
    let tell = |session: &mut Session, to: u8, bytes: &[u8]| {
        session.link(PartyId(to)).send(bytes)?;
        session.link(PartyId(to)).flush()
    };
    let roles = MatchRoles { owners: [0, 1, 2].map(PartyId).into(), ..MatchRoles::default() };
    let owners = MatchOptions { roles, ..MatchOptions::default() };
    // Three owners tell a server how many rows there are; the first lies.
    let rows = suspects(4, &|session| match session.me().0 {
        3 => AlignedRows.serve(session, &owners).map(drop),
        0 => tell(session, 3, &7u64.to_le_bytes()),
        _ => tell(session, 3, &8u64.to_le_bytes()),
    });
    assert_eq!(rows, ["p0", "p1"]);
    // The publisher tells the last party other group sizes than the second one, and goes on as if they were.
    let disclosed = Disclosure { rows: vec![5000, 5000, 5000], ..Disclosure::default() };
    let groups = suspects(3, &|session| {
        let said = |test: u64| [test, 5000 - test].map(u64::to_le_bytes).concat();
        match session.me().0 {
            0 => {
                for (to, test) in [(1, 2400), (2, 2500), (1, 2400), (2, 2500)] {
                    tell(session, to, &said(test))?;
                }
                [1, 2].into_iter().try_for_each(|peer| session.link(PartyId(peer)).recv(&mut [0; 16]))
            }
            _ => hear_groups(session, &disclosed, 1000).map(|_| ()),
        }
    });
    assert_eq!(groups, ["p0", "p1"]);
}
