//! What a run leaves in files: no coin, no noise, no Delta or key that a session made. Sessions of a thread
//! are of seeds that this test knows, so every secret that was forked from one is known, too.

use super::*;
use crate::audit::epsilon;
use crate::prepare::Built;
use engine::{Clear, Entered};
use privacy::scales::Scales;
use program::Viewer;
use program::lower::{ReleasePlan, WordKind};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use study::party::ServerSetup;
use study::{Study, StudyFile};

thread_local! {
    /// Whose sessions this thread makes, and how many it has made.
    static SESSIONS: Cell<Option<(u8, u32)>> = const { Cell::new(None) };
}

/// The seed of this thread's next session, if it is to be known.
pub(in crate::run) fn next_seed() -> Option<Seed> {
    let (who, number) = SESSIONS.get()?;
    SESSIONS.set(Some((who, number + 1)));
    Some(seed_of(who, number))
}

fn seed_of(who: u8, session: u32) -> Seed {
    Seed::from_bytes([who + 1; 32]).fork(&format!("session {session}"))
}

/// What a session gives out for a label as its n-th: [`Session::fork_seed`].
fn forked(session: &Seed, who: u8, path: &str, label: &str, n: u32) -> Seed {
    session.fork(&format!("{who} {path} {label} {n}"))
}

/// What is forked for secrets. "name of a match" and "hash start" are sent; "held share" is kept until the
/// number is out.
const SECRET: [&str; 10] = [
    "coins",
    "Delta",
    "hub Delta",
    "worker Delta",
    "base OT sender",
    "base OT receiver",
    "zero sharing",
    "leaf masks",
    "ring4 keys",
    "ring4 owner seeds",
];
/// Sessions of a participant, and forks of one, that are looked at.
const SESSIONS_OF_ONE: u32 = 3;
const FORKS: u32 = 64;
/// How much of a stream: four keys of 32 bytes.
const STREAM: usize = 128;
/// R: so large that no noise of a sum is a number that might stand in a file for another reason.
const CLAMP: &str = "clamp = 1048573";

/// What must be in no file.
#[derive(Default)]
struct Secrets {
    words: HashSet<u64>,
    texts: BTreeSet<String>,
}

impl Secrets {
    /// Every whole word of eight bytes; one that is nearly zero may stand anywhere.
    fn bytes(&mut self, secret: &[u8]) {
        let words = secret.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        self.words.extend(words.filter(|word| word >> 32 != 0 && (!word) >> 32 != 0));
    }

    /// A noise in either order of bytes, and as text.
    fn noise(&mut self, noise: i128) {
        if noise.unsigned_abs() >> 33 == 0 {
            return;
        }
        self.bytes(&noise.to_le_bytes());
        self.bytes(&noise.to_be_bytes());
        self.texts.insert(noise.unsigned_abs().to_string());
    }

    /// What a participant forks for some labels at any of the steps.
    fn forks(&mut self, who: u8, paths: &BTreeSet<String>, labels: &[&str]) {
        for (number, path) in (0..SESSIONS_OF_ONE).flat_map(|s| paths.iter().map(move |path| (s, path))) {
            let session = seed_of(who, number);
            for (label, n) in labels.iter().flat_map(|label| (1..=FORKS).map(move |n| (label, n))) {
                let seed = || forked(&session, who, path, label, n);
                self.bytes(seed().expose());
                self.bytes(&seed().into_rng().bytes::<STREAM>());
                if label.ends_with("Delta") {
                    self.bytes(&ot::fresh_delta(&mut seed().into_rng()).to_bytes());
                }
            }
        }
    }

    /// The files of a folder that hold any of it, at any place.
    fn found(&self, folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(self.found(&path));
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let word = |w: &[u8]| self.words.contains(&u64::from_le_bytes(w.try_into().unwrap()));
            let text = |text: &String| memchr::memmem::find(&bytes, text.as_bytes()).is_some();
            if bytes.windows(8).any(word) || self.texts.iter().any(text) {
                found.push(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
        found
    }

    /// None of it is in a file; and what is written to one is found there.
    fn are_nowhere(&self, folder: &Path, one: &[u8]) {
        assert!(
            self.words.len() > 10_000 && self.texts.len() > 1,
            "{} {}",
            self.words.len(),
            self.texts.len()
        );
        assert_eq!(self.found(folder), [""; 0]);
        let text = self.texts.first().unwrap().as_bytes();
        for (name, written) in [("bytes", one), ("text", text)] {
            std::fs::write(folder.join(name), [b"xyz", written, b"."].concat()).unwrap();
            assert_eq!(self.found(folder), [name]);
            std::fs::remove_file(folder.join(name)).unwrap();
        }
    }
}

/// A step and those that it is in.
fn steps_of(session: &Session) -> BTreeSet<String> {
    let up = |step: &str| {
        let ends = step.match_indices('/').map(|(at, _)| at).chain([step.len()]);
        ends.map(|end| step[..end].to_owned()).collect::<Vec<_>>()
    };
    session.traffic().entries().iter().flat_map(|entry| up(&entry.step)).collect()
}

/// A party's whole run with sessions that are known, and its files as the command writes them; the steps.
fn run_known(who: u8, party: &PartySetup) -> BTreeSet<String> {
    let log = Arc::new(Mutex::new(String::new()));
    let heard = log.clone();
    let events = move |event: Event| heard.lock().unwrap().push_str(&format!("{event:?}\n"));
    let watch = Watch { events: Arc::new(events), ..Watch::none() };
    let mut all = check(party).unwrap();
    budget::check_consent(party, &mut all).unwrap();
    let ledger = ready::open_ledger(party, &all, &watch).unwrap();
    let checked = all.pop().unwrap();
    let places = places(party, &checked.study, checked.me, false).unwrap();
    let meeting = meet(party, &checked, places, &watch).unwrap();
    SESSIONS.set(Some((who, 0)));
    let (mut run, workers) = OwnerRun::new(party, &checked, ledger, &watch, (None, meeting)).unwrap();
    let report = run.run(workers).unwrap_or_else(|error| panic!("{error}"));
    assert!(SESSIONS.get().is_some_and(|(_, made)| (1..=SESSIONS_OF_ONE).contains(&made)));
    std::fs::create_dir_all(&party.report).unwrap();
    std::fs::write(party.report.join("report.json"), report::to_json(&report).unwrap()).unwrap();
    std::fs::write(party.report.join("report.html"), report::html::render(&report)).unwrap();
    std::fs::write(party.report.join("log"), log.lock().unwrap().as_bytes()).unwrap();
    steps_of(&run.session)
}

/// The public release as one process evaluates it, and the true totals.
fn by_definition(party: &PartySetup) -> (Checked, ReleasePlan, epsilon::Release, Shares) {
    let checked = check(party).unwrap().pop().unwrap();
    let Built { program, audit, .. } = &checked.built;
    let scales = Scales::new(&checked.study, program, audit, None).unwrap();
    let plan = || scales.plan(&Clear, program, &program.fold_owners(), Viewer::Public).unwrap();
    let release =
        epsilon::Release::new(program, plan(), &|at| scales.sampler(at.mechanism, at.output).cloned());
    let totals: BTreeMap<u32, u128> = truth(&checked).into_iter().collect();
    let fold = |fold: u32| Share::Known(totals.get(&fold).copied().unwrap_or(0));
    let totals = Shares::new((0..program.folds.len() as u32).map(fold).collect());
    let plan = plan();
    (checked, plan, release, totals)
}

/// What a party keeps as the outcome.
fn outputs_of(party: &PartySetup) -> Vec<u128> {
    let connection = rusqlite::Connection::open(&party.ledger).unwrap();
    let text: String = connection.query_row("SELECT outputs FROM outputs", [], |row| row.get(0)).unwrap();
    text.split(' ').map(|number| number.parse().unwrap()).collect()
}

/// The noise that is in them.
fn noises(
    (checked, plan, release, totals): &(Checked, ReleasePlan, epsilon::Release, Shares),
    outputs: &[u128],
) -> Vec<i128> {
    let program = &checked.built.program;
    let exact = epsilon::exact(program, release, totals).unwrap();
    let signed = |(index, _): &(usize, _), value: &u128| {
        program.release.ty(program.outputs[*index].value).to_signed(*value)
    };
    let values = plan.outputs.iter().zip(outputs).map(|(output, value)| signed(output, value));
    values.zip(exact).map(|(value, exact)| value - exact).collect()
}

/// The coins of both parties: those of which, with the true totals, the release comes as it was published.
fn coins(plan: &ReleasePlan, totals: &Shares, outputs: &[u128]) -> Vec<u128> {
    let of = |party: u8, n: u32| -> Vec<(usize, u128)> {
        let mut rng = forked(&seed_of(party, 0), party, "release/public", "coins", n).into_rng();
        let own = |word: &program::lower::ReleaseWord| {
            matches!(word.kind, WordKind::Coins(..)) && word.owner == PartyId(party)
        };
        let words = plan.words.iter().enumerate().filter(|(_, word)| own(word));
        let toss = |(at, word): (usize, &program::lower::ReleaseWord)| {
            (at, u128::from_le_bytes(rng.bytes()) & u128::MAX >> (128 - u32::from(word.width)))
        };
        words.map(toss).collect()
    };
    let tossed = [0, 1].map(|party| (1..=FORKS / 2).map(|n| of(party, n)).collect::<Vec<_>>());
    let mut rng = Seed::from_bytes([0; 32]).into_rng();
    for first in &tossed[0] {
        let mut entered = Vec::new();
        for second in &tossed[1] {
            let mut one = Entered::whole(plan, totals, &mut rng).unwrap();
            first.iter().chain(second).for_each(|(at, coins)| one.set(*at, *coins));
            entered.push(one);
        }
        let bits = Clear::releases(plan, &entered).unwrap();
        if let Some(second) = bits.iter().position(|bits| plan.values(bits) == outputs) {
            return first.iter().chain(&tossed[1][second]).map(|(_, coins)| *coins).collect();
        }
    }
    panic!("no coins of these sessions make what was published");
}

#[test]
fn two_parties_leave_no_coin_noise_or_delta_in_a_file() {
    let world = World::new();
    let study = world.matching("pid", ID, "dummies = \"off\"").replace("clamp = 100", CLAMP);
    let folder = world.folder.path();
    let parties = world.parties(&study, &|party| {
        party.work = Some(folder.join(format!("{}.work", party.as_party)));
        party.keep_spine = Some(folder.join(format!("{}.spine", party.as_party)));
        party.report = folder.join(format!("out-{}", party.as_party));
    });
    let steps = std::thread::scope(|scope| {
        let threads = [0, 1].map(|i: usize| {
            let party = &parties[i];
            scope.spawn(move || run_known(i as u8, party))
        });
        threads.map(|thread| thread.join().unwrap())
    });
    let known = by_definition(&parties[0]);
    let outputs = outputs_of(&parties[0]);
    assert_eq!(outputs, outputs_of(&parties[1]));
    let coins = coins(&known.1, &known.3, &outputs);
    let mut secrets = Secrets::default();
    coins.iter().for_each(|coins| secrets.bytes(&coins.to_le_bytes()));
    noises(&known, &outputs).into_iter().for_each(|noise| secrets.noise(noise));
    (0..).zip(&steps).for_each(|(who, steps)| secrets.forks(who, steps, &SECRET));
    let one = coins.iter().max().unwrap();
    secrets.are_nowhere(folder, &one.to_le_bytes());
}

/// The participants of the same study on four servers.
fn served(world: &World) -> ([PartySetup; 2], [ServerSetup; 4]) {
    const SERVERS: [&str; 4] = ["ash", "birch", "cedar", "elm"];
    let folder = world.folder.path();
    let (head, _) = world.study.split_once("[compute]").unwrap();
    let mut study = head.replacen("\"pid\"", "\"salted-key\"", 1).replace("clamp = 100", CLAMP);
    for name in SERVERS {
        study += &format!("[server.{name}]\nkey = \"{}\"\n", make_key(folder, name));
    }
    study += "[compute]\nengine = \"ring4\"\n";
    std::fs::write(folder.join("study.toml"), &study).unwrap();
    study::salt::create(&folder.join("owners.salt")).unwrap();
    let hash = Study::parse("study.toml", &study).unwrap().hash().full();
    let everybody: Vec<&str> = NAMES.into_iter().chain(SERVERS).collect();
    let addresses: Vec<String> = everybody.iter().map(|_| base::free_address().unwrap()).collect();
    let met = |me: usize, file: PartyFile| {
        let others = everybody.iter().zip(&addresses).filter(|(other, _)| **other != everybody[me]);
        file.with(&format!("listen = \"{}\"", addresses[me]))
            .peers(others.map(|(other, at)| (*other, &**at)))
            .policy(&format!("studies = [\"{hash}\"]"))
    };
    let owner = |me| met(me, PartyFile::owner(folder, everybody[me]).with("salt = \"owners.salt\"")).setup();
    let server = |me| met(me, PartyFile::new(folder, everybody[me])).server();
    ([0, 1].map(owner), [2, 3, 4, 5].map(server))
}

#[test]
fn four_servers_and_their_owners_leave_no_key_or_noise_in_a_file() {
    let world = World::new();
    let (owners, nodes) = served(&world);
    let steps = std::thread::scope(|scope| {
        let servers = [0, 1, 2, 3].map(|i: usize| {
            let node = &nodes[i];
            scope.spawn(move || {
                SESSIONS.set(Some((2 + i as u8, 0)));
                let study = StudyFile::read(&node.studies[0]).unwrap();
                let opened = Opened::new(study, &node.name, &node.identity).unwrap();
                server::compute_study(node, opened, &Watch::none()).unwrap()
            })
        });
        let owners = [0, 1].map(|i: usize| {
            let owner = &owners[i];
            scope.spawn(move || run_known(i as u8, owner))
        });
        servers.into_iter().for_each(|server| drop(server.join().unwrap()));
        owners.map(|owner| owner.join().unwrap())
    });
    // Servers go through the same steps, and through some of their own.
    let mut steps: BTreeSet<String> = steps.into_iter().flatten().collect();
    steps.extend(steps.clone().into_iter().map(|step| format!("{step}/setup")));
    let known = by_definition(&owners[0]);
    let outputs = outputs_of(&owners[0]);
    assert_eq!(outputs, outputs_of(&owners[1]));
    let mut secrets = Secrets::default();
    noises(&known, &outputs).into_iter().for_each(|noise| secrets.noise(noise));
    (0..6).for_each(|who| secrets.forks(who, &steps, &SECRET));
    let folder = world.folder.path();
    let one = secrets.words.iter().next().unwrap().to_le_bytes();
    secrets.are_nowhere(folder, &one);
    // These are the servers' sessions, and files are searched: each one's salt of what it holds is in its
    // file.
    for (who, node) in (2..).zip(&nodes) {
        let mut salts = Secrets::default();
        salts.forks(who, &steps, &["held share"]);
        let file = node.held().file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(salts.found(folder), [file]);
    }
}
