//! What every protocol must do: the right rows, for its price, telling what it says, and an error that names
//! the peer wherever that one is gone.

mod common;
#[path = "common/people.rs"]
mod people;

use base::{Error, PartyId, Seed};
use common::ids;
use matching::dummies::Dummies;
use matching::{
    JoinedPart, JoinedShares, MATCHERS, MatchOptions, MatchOutcome, MatchOutput, MatchRoles, MatchSizes,
    MatchSpine, Matcher, PayloadLayout, PayloadTable, PlannedRows, ShareBackend, ShareBlock, ShareTable,
    TableField, ValidEntries, matcher,
};
use net::cluster::Cluster;
use net::{InjectedFault, Session, Traffic};
use ot::OtKind;
use people::Rows;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A protocol, who has which rows, and who serves.
struct Case {
    matcher: &'static dyn Matcher,
    lists: Vec<Vec<String>>,
    options: MatchOptions,
}

/// What a party has at the end: its own outcome as an owner, sizes alone as a server.
struct Told {
    outcome: Option<MatchOutcome>,
    sizes: MatchSizes,
    traffic: Traffic,
}

fn layouts() -> [PayloadLayout; 2] {
    let of_0 = [TableField::number(8), TableField::bits(9)];
    let of_1 = [TableField::number(4), TableField::number(16), TableField::bits(64)];
    [PayloadLayout::new(of_0).unwrap(), PayloadLayout::new(of_1).unwrap()]
}

/// What the row of a person carries: its number, from 1, and what follows from that.
fn value(person: &str, field: usize) -> u128 {
    let number: u128 = person.strip_prefix("person ").unwrap().parse().unwrap();
    (number + 1).pow(field as u32 + 1)
}

impl Case {
    /// A protocol on these lists. Where all must have the same rows they are those of the first party.
    fn new(matcher: &'static dyn Matcher, mut lists: Vec<Vec<String>>) -> Self {
        let features = matcher.features();
        lists.truncate(*features.parties.end());
        if features.public_identifiers {
            let first = lists[0].clone();
            lists.iter_mut().for_each(|list| list.clone_from(&first));
        }
        let owners = lists.len() as u8;
        let servers = |range: std::ops::Range<u8>| range.map(|at| PartyId(owners + at)).collect::<Vec<_>>();
        let (joiners, others) = match (features.salted, features.public_identifiers) {
            (true, _) => (servers(0..2), servers(2..4)),
            (false, true) => (Vec::new(), servers(0..1)),
            (false, false) => (Vec::new(), Vec::new()),
        };
        let options = MatchOptions {
            threads: 1,
            ot: Some(OtKind::SoftSpoken { k: 4 }),
            salt: features.salted.then(|| Seed::from_bytes([5; 32]).into()),
            layouts: layouts(),
            roles: MatchRoles { owners: (0..owners).map(PartyId).collect(), joiners, others },
            ..MatchOptions::default()
        };
        Self { matcher, lists, options }
    }

    fn name(&self) -> String {
        format!("{:?} of {:?}", self.matcher, self.lists.iter().map(Vec::len).collect::<Vec<_>>())
    }

    fn cluster(&self, seed: u64) -> Cluster {
        Cluster::new(self.options.roles.everybody(), seed)
    }

    /// What everybody makes of it; `own` sets what is a party's own affair.
    fn play_with(
        &self,
        cluster: &Cluster,
        own: impl Fn(usize, MatchOptions) -> MatchOptions + Sync,
    ) -> Vec<Result<Told, Error>> {
        let shared = self.matcher.features().form.shared();
        cluster.run(|session| {
            let me = session.me().index();
            let options = own(me, self.options.clone());
            let Some(list) = self.lists.get(me) else {
                let sizes = session.step("match", |s| self.matcher.serve(s, &options))?;
                return Ok(Told { outcome: None, sizes, traffic: session.traffic().clone() });
            };
            let rows = Rows { keys: 1, rows: list.iter().map(|id| vec![id.clone()]).collect() };
            let payload = shared.filter(|shared| shared[me]).map(|_| table(me, list));
            let run = |s: &mut Session| {
                self.matcher.run(s, &rows, payload.as_ref().map(|table| table as _), &options)
            };
            let outcome = session.step("match", run)?;
            let sizes = outcome.disclosed.sizes.clone();
            Ok(Told { outcome: Some(outcome), sizes, traffic: session.traffic().clone() })
        })
    }

    fn play(&self, cluster: &Cluster) -> Vec<Told> {
        let done = self.play_with(cluster, |_, options| options);
        done.into_iter().map(|told| told.unwrap_or_else(|e| panic!("{}: {e}", self.name()))).collect()
    }

    /// All that there is to check after an honest run; what it gave.
    fn check(&self, cluster: &Cluster) {
        let told = self.play(cluster);
        self.check_sizes(&told);
        self.check_counts(&told);
        self.check_price(&told);
        self.check_output(told, true);
    }

    fn union(&self) -> u64 {
        self.lists.iter().flatten().collect::<BTreeSet<_>>().len() as u64
    }

    /// Everybody learns the sizes that there are, and of the union what the protocol says.
    fn check_sizes(&self, told: &[Told]) {
        let rows: Vec<u64> = self.lists.iter().map(|list| list.len() as u64).collect();
        let outcomes = || told.iter().filter_map(|told| told.outcome.as_ref());
        let hidden = outcomes().all(|outcome| outcome.disclosed.size_hidden);
        assert_eq!(hidden, outcomes().any(|outcome| outcome.disclosed.size_hidden), "{}", self.name());
        let union = if hidden { rows.iter().sum() } else { self.union() };
        let sizes = MatchSizes { keys: vec![1; rows.len()], rows: rows.clone(), union };
        assert!(told.iter().all(|told| told.sizes == sizes), "{}", self.name());
        let text = self.matcher.tells("exactly", "p0", &self.options);
        let said = ["the size of the match", "of the match, exactly", "and of their union"];
        assert_eq!(!said.iter().any(|said| text.contains(said)), {
            hidden || self.matcher.features().public_identifiers
        });
        // Among more than two parties no number is the size of the match.
        assert!(rows.len() == 2 || !text.contains("of the match"), "{text}");
    }

    /// Party 0 counts what the protocol says that it sees, and nobody else anything.
    fn check_counts(&self, told: &[Told]) {
        let (features, text) = (self.matcher.features(), self.matcher.tells("exactly", "p0", &self.options));
        let counts: Vec<_> =
            told.iter().filter_map(|told| told.outcome.as_ref()).map(|o| &o.disclosed.counts).collect();
        assert!(counts[1..].iter().all(|counts| counts.is_empty()), "{}", self.name());
        assert_eq!(!counts[0].is_empty(), features.shows_graph || features.shows_overlaps, "{}", self.name());
        assert_eq!(features.shows_graph, text.contains("share identifiers with which"), "{text}");
        if !features.shows_overlaps {
            return;
        }
        let mut who: BTreeMap<&String, usize> = BTreeMap::new();
        for (party, list) in self.lists.iter().enumerate() {
            list.iter().for_each(|id| *who.entry(id).or_default() |= 1 << party);
        }
        let sets = (1..1usize << self.lists.len()).filter(|set| set.count_ones() > 1);
        let exact: Vec<u64> =
            sets.map(|set| who.values().filter(|held| **held == set).count() as u64).collect();
        assert_eq!(counts[0].iter().map(|met| met.count).collect::<Vec<_>>(), exact, "{}", self.name());
    }

    /// The price of what everybody learnt is what was sent, byte for byte.
    fn check_price(&self, told: &[Told]) {
        let price = self.matcher.price(&told[0].sizes, &self.options);
        let sent: Vec<u64> = told.iter().map(|told| told.traffic.sent("")).collect();
        assert_eq!(price.sent, sent, "{}", self.name());
        let first = &told[0].traffic;
        assert_eq!([price.ots, price.and_gates], [first.ots(""), first.and_gates("")], "{}", self.name());
        if self.options.roles.everybody() == self.lists.len() {
            let turns = told.iter().map(|told| told.traffic.turns("")).max();
            assert_eq!(Some(price.rounds), turns, "{}", self.name());
        }
    }

    /// What came out, against the lists in the clear. With dummies there are rows of nobody besides.
    fn check_output(&self, told: Vec<Told>, exact: bool) {
        let outputs: Vec<MatchOutput> =
            told.into_iter().filter_map(|told| Some(told.outcome?.output)).collect();
        let spines: Vec<&MatchSpine> = outputs.iter().filter_map(spine).collect();
        let joined: Vec<&JoinedShares> = outputs.iter().filter_map(shares).collect();
        match self.matcher.features().form.shared() {
            None => self.check_spines(&spines, exact),
            Some(_) => self.check_shares(joined[..].try_into().expect("two parties"), exact),
        }
    }

    /// Equal rows share a position, others do not, and all positions are taken.
    fn check_spines(&self, spines: &[&MatchSpine], exact: bool) {
        let mut at: BTreeMap<u32, &String> = BTreeMap::new();
        for (list, spine) in self.lists.iter().zip(spines) {
            assert_eq!(spine.mine.len(), list.len() as u64, "{}", self.name());
            for (id, position) in list.iter().zip(spine.mine.positions().unwrap()) {
                assert!(u64::from(position) < spine.rows);
                assert_eq!(*at.entry(position).or_insert(id), id, "{}", self.name());
            }
        }
        assert_eq!(at.len() as u64, self.union(), "{}: an identifier at two positions", self.name());
        assert!(!exact || spines.iter().all(|spine| spine.rows == self.union()), "{}", self.name());
    }

    /// Joined rows are those that both have, with what both attached to them.
    fn check_shares(&self, both: [&JoinedShares; 2], exact: bool) {
        let slots = u64::from(both[0].slots);
        assert_eq!((both[0].rows, slots), (both[1].rows, u64::from(both[1].slots)), "{}", self.name());
        let entries = (0..both[0].rows * slots).filter(|entry| is_valid(both, *entry));
        let mut met: Vec<[Vec<u128>; 2]> =
            entries.map(|entry| [self.row(both, 0, entry / slots), self.row(both, 1, entry)]).collect();
        let of_dummies = |pair: &[Vec<u128>; 2]| pair.iter().flatten().all(|value| *value == 0);
        let before = met.len();
        met.retain(|pair| !of_dummies(pair));
        assert!(!exact || met.len() == before, "{}: rows of nobody", self.name());
        met.sort_unstable();
        let values = |party: usize, id: &str| {
            (0..layouts()[party].fields().len()).map(|f| masked(party, f, value(id, f))).collect()
        };
        let theirs: BTreeSet<&String> = self.lists[1].iter().collect();
        let common = self.lists[0].iter().filter(|id| theirs.contains(id));
        let mut expected: Vec<[Vec<u128>; 2]> = common.map(|id| [values(0, id), values(1, id)]).collect();
        expected.sort_unstable();
        assert!(met == expected, "{}: wrong rows", self.name());
    }

    /// One party's values at a joined row or entry, put together from both parties' parts.
    fn row(&self, both: [&JoinedShares; 2], party: usize, at: u64) -> Vec<u128> {
        let fields = 0..layouts()[party].fields().len();
        match both.map(|joined| &joined.parts[party]) {
            [JoinedPart::Shared(a), JoinedPart::Shared(b)] => {
                fields.map(|f| layouts()[party].fields()[f].join(share(a, at, f), share(b, at, f))).collect()
            }
            [JoinedPart::Mine(rows), JoinedPart::Theirs] | [JoinedPart::Theirs, JoinedPart::Mine(rows)] => {
                // A row that is no caller's is a dummy's.
                let id = self.lists[party].get(rows[at as usize] as usize);
                fields.map(|f| id.map_or(0, |id| masked(party, f, value(id, f)))).collect()
            }
            _ => panic!("{}: parts do not fit each other", self.name()),
        }
    }
}

fn share(table: &ShareTable, row: u64, field: usize) -> u128 {
    table.get(row, field, &mut ShareBlock::default()).unwrap()
}

fn spine(output: &MatchOutput) -> Option<&MatchSpine> {
    match output {
        MatchOutput::Spine(spine) => Some(spine),
        MatchOutput::Shares(_) => None,
    }
}

fn shares(output: &MatchOutput) -> Option<&JoinedShares> {
    match output {
        MatchOutput::Shares(joined) => Some(joined),
        MatchOutput::Spine(_) => None,
    }
}

fn masked(party: usize, field: usize, value: u128) -> u128 {
    value & layouts()[party].fields()[field].mask()
}

fn table(party: usize, people: &[String]) -> PayloadTable {
    let mut table = PayloadTable::zeros(layouts()[party].clone(), people.len() as u64).unwrap();
    for (row, person) in (0..).zip(people) {
        (0..layouts()[party].fields().len()).for_each(|f| table.set(row, f, value(person, f)));
    }
    table
}

fn is_valid(both: [&JoinedShares; 2], entry: u64) -> bool {
    let bit = |words: &[u64]| words[entry as usize / 64] >> (entry % 64) & 1 == 1;
    match both.map(|joined| &joined.valid) {
        [ValidEntries::All, ValidEntries::All] => true,
        [ValidEntries::Shared(a), ValidEntries::Shared(b)] => bit(a) != bit(b),
        [ValidEntries::Mine(known), ValidEntries::Theirs]
        | [ValidEntries::Theirs, ValidEntries::Mine(known)] => bit(known),
        _ => panic!("what the parties know of matches does not fit"),
    }
}

fn cases(lists: &[Vec<String>]) -> impl Iterator<Item = Case> + '_ {
    MATCHERS.into_iter().map(|matcher| Case::new(matcher, lists.to_vec()))
}

/// The protocols that hide sizes by dummies, which are those that match in private between owners.
fn private(lists: &[Vec<String>]) -> impl Iterator<Item = Case> + '_ {
    cases(lists).filter(|case| case.matcher.features().dummies)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]
    #[test]
    fn rows_are_matched_for_their_price(
        held in proptest::collection::vec(proptest::collection::btree_set(0u32..60, 0..40), 3),
        seed: u64,
    ) {
        let lists: Vec<Vec<String>> =
            held.iter().map(|list| list.iter().map(|i| format!("person {i}")).collect()).collect();
        cases(&lists).for_each(|case| case.check(&case.cluster(seed)));
    }
}

#[test]
fn sizes_at_the_edges() {
    for (x, y) in [(0..0, 0..0), (0..1, 0..0), (0..0, 0..3), (0..1, 0..1), (0..1, 1..2), (0..9, 0..9)] {
        cases(&[ids(x), ids(y), ids(0..2)]).for_each(|case| case.check(&case.cluster(3)));
    }
}

#[test]
fn more_rows_than_a_chunk_in_any_window() {
    let lists = [ids(0..4200), ids(4000..8300), ids(4100..4150)];
    for case in cases(&lists) {
        case.check(&case.cluster(5));
        // Private-ID of two parties says that it needs more, and how much.
        if !case.matcher.features().resumes {
            // Its turns follow the window; what is said does not.
            case.check_output(case.play(&case.cluster(5).tiny_window()), true);
        }
    }
    // One side has much more to do than the other; and five lists.
    for lists in [[ids(0..17_000), ids(16_990..17_000)], [Vec::new(), ids(0..17_000)]] {
        let case = Case::new(MATCHERS[0], lists.to_vec());
        case.check(&case.cluster(8));
    }
    let case = Case::new(MATCHERS[2], vec![ids(0..90), ids(10..50), ids(0..0), ids(40..95), ids(3..8)]);
    case.check(&case.cluster(8));
}

#[test]
fn every_back_end_gives_the_same() {
    let lists = [ids(0..9), ids(4..12)];
    for mut case in cases(&lists).filter(|case| case.matcher.features().form.shared().is_some()) {
        case.options.ot = Some(OtKind::Ferret);
        case.check(&case.cluster(6));
        case.options.ot = None;
        case.options.backend = ShareBackend::Paillier;
        case.check(&case.cluster(6));
    }
}

#[test]
fn threads_change_nothing_and_keys_are_fresh() {
    for case in cases(&[ids(0..300), ids(200..600), ids(100..250)]) {
        let spines = |threads, seed| -> Vec<Vec<u32>> {
            let done = case.play_with(&case.cluster(seed), |_, o| MatchOptions { threads, ..o });
            let outcomes = done.into_iter().filter_map(|told| told.unwrap().outcome);
            outcomes
                .map(|outcome| outcome.spine().map_or(Vec::new(), |spine| spine.mine.positions().unwrap()))
                .collect()
        };
        assert_eq!(spines(1, 1), spines(3, 1), "{}", case.name());
        if case.matcher.features().form.shared().is_none() && !case.matcher.features().public_identifiers {
            assert_ne!(spines(1, 1), spines(1, 2), "{}: keys are not fresh", case.name());
        }
    }
}

fn dummies(seed: u8) -> Option<Dummies> {
    Some(Dummies::usual(&Seed::from_bytes([seed; 32])))
}

#[test]
fn dummies_hide_sizes_and_change_no_match() {
    for mut case in private(&[ids(0..50), ids(30..70), ids(10..40)]) {
        case.options.dummies = dummies(0);
        let own = |me: usize, o: MatchOptions| MatchOptions { dummies: dummies(me as u8 + 1), ..o };
        let told: Vec<Told> =
            case.play_with(&case.cluster(9), own).into_iter().map(|told| told.unwrap()).collect();
        let (shown, parties) = (case.matcher.features().shown, case.lists.len());
        let [least, most] = case.options.dummies.as_ref().unwrap().rows_range(shown, parties);
        for (list, rows) in case.lists.iter().zip(&told[0].sizes.rows) {
            let made_up = rows - list.len() as u64;
            assert!(made_up > 0 && (least..=most).contains(&made_up), "{}: {made_up}", case.name());
        }
        assert!(told.iter().all(|party| party.sizes == told[0].sizes), "{}", case.name());
        case.check_price(&told);
        case.check_output(told, false);
        // The same on one side only.
        let own = |me: usize, o: MatchOptions| MatchOptions { dummies: dummies(1).filter(|_| me == 0), ..o };
        for error in case.play_with(&case.cluster(9), own).into_iter().filter_map(Result::err) {
            let error = error.to_string();
            assert!(error.contains("same dummies as we do") || error.contains("see the peer's"), "{error}");
        }
    }
}

/// Every party in turn is gone at its first message of every step that it has.
#[test]
fn whoever_is_gone_at_any_step_is_named() {
    let lists = [ids(0..30), ids(10..50), ids(20..45)];
    for case in cases(&lists) {
        let steps: Vec<BTreeSet<String>> = case.play(&case.cluster(1)).iter().map(steps).collect();
        let owners = &steps[..case.lists.len()];
        assert!(owners.iter().all(|steps| !steps.is_empty()), "{}: an owner says nothing", case.name());
        let cuts = steps.iter().enumerate().flat_map(|(party, steps)| steps.iter().map(move |s| (party, s)));
        for (culprit, step) in cuts {
            let cluster = case.cluster(1).deadline(Duration::from_secs(5)).fault(
                PartyId(culprit as u8),
                step.clone(),
                InjectedFault::Cut,
            );
            let done = case.play_with(&cluster, |_, options| options);
            let errors: Vec<String> = done.into_iter().filter_map(|d| Some(d.err()?.to_string())).collect();
            assert!(errors.len() > 1, "{}: p{culprit} cut at {step} went unseen", case.name());
            let named = |error: &String| error.contains(" with p") && !error.contains("no progress");
            assert!(errors.iter().all(named), "p{culprit} at {step}: {errors:?}");
        }
    }
}

/// The steps at which a party said something.
fn steps(told: &Told) -> BTreeSet<String> {
    told.traffic.entries().iter().filter(|entry| entry.sent > 0).map(|entry| entry.step.clone()).collect()
}

#[test]
fn limits_are_told_with_who_is_over_them() {
    for case in private(&[ids(0..10), ids(0..11)]) {
        let own = |_: usize, o: MatchOptions| MatchOptions { peer_rows_max: 10, ..o };
        let error = case.play_with(&case.cluster(1), own).remove(0).err().unwrap().to_string();
        let told = "/count with p1: rows of the peer: 11 is over the limit of 10";
        assert!(error.starts_with("p0 at ") && error.ends_with(told), "{error}");
        if !case.matcher.features().resumes {
            let own = |_: usize, o: MatchOptions| MatchOptions { memory: Some(100), ..o };
            let error = case.play_with(&case.cluster(1), own).remove(0).err().unwrap().to_string();
            assert!(error.contains("this match needs ") && error.contains("fewer rows"), "{error}");
        }
    }
}

#[test]
fn own_repeats_end_before_anything_is_sent() {
    let mut twice = ids(0..10);
    twice[7] = twice[2].clone();
    let lists = [twice, ids(0..5)];
    for case in private(&lists).filter(|case| !case.matcher.features().keeps_repeats) {
        let error = case.play_with(&case.cluster(1), |_, options| options).remove(0).err().unwrap();
        let error = error.to_string();
        assert!(error.contains(": rows 3 and 8 carry the same identifier"), "{error}");
    }
}

#[test]
fn what_does_not_fit_a_protocol_is_refused() {
    for case in cases(&[ids(0..3), ids(1..4)]) {
        let alone = case.options.roles.everybody() == 2;
        let short = alone.then(|| {
            let cluster = Cluster::new(2, 1);
            let payload = PayloadTable::zeros(layouts()[0].clone(), 99).unwrap();
            let rows = Rows::new(1, &[&["a"]]);
            let run = |s: &mut Session| case.matcher.run(s, &rows, Some(&payload), &case.options).map(drop);
            cluster.run(run).remove(0).unwrap_err().to_string()
        });
        assert!(short.is_none_or(|error| error.contains("payload of the agreed layout")), "{}", case.name());
        let wide = Rows::new(65, &[]);
        let run = |s: &mut Session| case.matcher.run(s, &wide, None, &case.options).map(drop);
        let error = case.cluster(1).run(run).remove(0).unwrap_err().to_string();
        assert!(error.contains("identifiers of a row: 65 is over the limit of"), "{error}");
    }
}

/// What a plan says before a run is at least what any run takes of as many rows.
#[test]
fn an_estimate_is_the_dearest_match() {
    for case in cases(&[ids(0..3000), ids(0..2000), ids(500..2500)]) {
        let rows: Vec<u64> = case.lists.iter().map(|list| list.len() as u64).collect();
        let estimate =
            case.matcher.estimate(&PlannedRows { rows: &rows, keys: 1, both: None }, &case.options);
        assert_eq!(estimate.sizes.rows, rows, "{}", case.name());
        let most = case.matcher.price(&estimate.sizes, &case.options).bytes();
        let (all, largest) = (rows.iter().sum(), *rows.iter().max().unwrap());
        for union in [largest, largest + 500, all] {
            let sizes = MatchSizes { union, ..estimate.sizes.clone() };
            assert!(case.matcher.price(&sizes, &case.options).bytes() <= most, "{}", case.name());
        }
    }
}

#[test]
fn protocols_are_found_by_name_parties_and_identifiers() {
    let found = |name, parties, keys| matcher(name, parties, keys).map(|met| met.features());
    let of = |at: usize| Some(MATCHERS[at].features());
    assert_eq!((found("pid", 2, 1), found("pid", 2, 3), found("pid", 3, 1)), (of(0), of(1), of(2)));
    assert_eq!((found("pid", 3, 2), found("ps3i", 3, 1), found("nothing", 2, 1)), (None, None, None));
    for matcher in &MATCHERS[3..] {
        assert_eq!(found(matcher.name(), 2, 1), Some(matcher.features()));
    }
}
