//! Rows of several identifiers, the matches that they should have, and runs of Collecting PS3I over them.
#![allow(dead_code, reason = "each test file uses its part")]

use base::{Error, Rng};
use matching::{
    CollectingJoin, IdentifierSource, JoinedPart, MatchDisclosure, MatchOptions, MatchOutcome, Matcher,
    PayloadLayout, PayloadTable, ShareBlock, ShareTable, TableField, ValidEntries,
};
use net::cluster::Cluster;
use net::{Session, Traffic};
use std::collections::{BTreeMap, BTreeSet};

/// Identifiers per row at both parties; empty where there is none.
pub struct Data {
    rows: [Vec<Vec<String>>; 2],
    keys: usize,
}

impl Data {
    /// Rows of both parties, `keys` identifiers each where a party has no row to show it.
    pub fn new(rows: [Vec<Vec<String>>; 2], keys: usize) -> Self {
        Self { rows, keys }
    }

    pub fn rows(&self, party: usize) -> usize {
        self.rows[party].len()
    }

    pub fn keys(&self, party: usize) -> usize {
        self.rows[party].first().map_or(self.keys, Vec::len)
    }

    /// Identifiers that a party's rows lose when no more than `cap` of them may carry one.
    pub fn beyond(&self, party: usize, cap: usize) -> u64 {
        let mut carriers: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for (i, row) in self.rows[party].iter().enumerate() {
            row.iter().filter(|id| !id.is_empty()).for_each(|id| {
                carriers.entry(id).or_default().insert(i);
            });
        }
        carriers.values().map(|rows| rows.len().saturating_sub(cap) as u64).sum()
    }
}

pub fn data<const A: usize, const B: usize>(a: &[&[&str; A]], b: &[&[&str; B]]) -> Data {
    let owned = |row: &[&str]| -> Vec<String> { row.iter().map(|id| (*id).to_owned()).collect() };
    Data::new([a.iter().map(|row| owned(*row)).collect(), b.iter().map(|row| owned(*row)).collect()], A)
}

/// Random rows of identifiers out of `pool`, a third of the places empty.
pub fn random(rng: &mut Rng, rows: [usize; 2], keys: [usize; 2], pool: u64) -> Data {
    let mut side = |party: usize| -> Vec<Vec<String>> {
        let mut id = || if rng.below(3) == 0 { String::new() } else { format!("id {}", rng.below(pool)) };
        (0..rows[party]).map(|_| (0..keys[party]).map(|_| id()).collect()).collect()
    };
    Data { rows: [side(0), side(1)], keys: keys[0] }
}

/// The rows of one party.
pub struct Side<'a>(pub &'a Data, pub usize);

impl IdentifierSource for Side<'_> {
    fn rows(&self) -> u64 {
        self.0.rows(self.1) as u64
    }

    fn keys(&self) -> usize {
        self.0.keys(self.1)
    }

    fn read(&self, row: u32, key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        into.clear();
        into.extend_from_slice(self.0.rows[self.1][row as usize][key].as_bytes());
        Ok(())
    }
}

/// Pairs of rows, counted from 1, that share an identifier: the definition.
pub fn reference(data: &Data) -> BTreeSet<(u64, u64)> {
    let mut pairs = BTreeSet::new();
    for (i, a) in (1..).zip(&data.rows[0]) {
        for (j, b) in (1..).zip(&data.rows[1]) {
            if a.iter().any(|id| !id.is_empty() && b.contains(id)) {
                pairs.insert((i, j));
            }
        }
    }
    pairs
}

/// What is collected without caps: for each row of party 0 those of party 1.
pub fn expected(data: &Data) -> BTreeMap<u64, Vec<u64>> {
    let mut collected: BTreeMap<u64, Vec<u64>> = (1..=data.rows(0) as u64).map(|i| (i, Vec::new())).collect();
    reference(data).into_iter().for_each(|(i, j)| collected.get_mut(&i).unwrap().push(j));
    collected
}

/// Payloads tell the number of their row, from 1, and something more.
pub fn layouts() -> [PayloadLayout; 2] {
    let layout = |fields: &[TableField]| PayloadLayout::new(fields.iter().copied()).unwrap();
    [
        layout(&[TableField::number(4), TableField::bits(3)]),
        layout(&[TableField::number(8), TableField::bits(9)]),
    ]
}

fn payload(party: usize, rows: usize) -> PayloadTable {
    let mut table = PayloadTable::zeros(layouts()[party].clone(), rows as u64).unwrap();
    for row in 0..rows as u64 {
        table.set(row, 0, u128::from(row + 1));
        table.set(row, 1, u128::from((row + 1) % 5));
    }
    table
}

pub fn options() -> MatchOptions {
    MatchOptions { threads: 1, ..MatchOptions::default() }
}

/// One party's run.
pub fn work(session: &mut Session, data: &Data, options: &MatchOptions) -> Result<MatchOutcome, Error> {
    let me = session.me().index();
    let table = payload(me, data.rows(me));
    CollectingJoin.run(
        session,
        &Side(data, me),
        Some(&table),
        &MatchOptions { layouts: layouts(), ..options.clone() },
    )
}

/// What both parties have together.
pub struct Outcome {
    /// The row of party 0, from 1, at each joined row; 0 for a dummy.
    pub anchors: Vec<u64>,
    slots: Vec<Vec<u64>>,
    pub disclosed: [MatchDisclosure; 2],
    pub ledgers: [Traffic; 2],
}

impl Outcome {
    /// What a party counted under these words; 0 for what it did not.
    pub fn count(&self, party: usize, what: &str) -> u64 {
        self.disclosed[party].count(what).unwrap_or(0)
    }

    /// For each row of party 0 the rows of party 1 in its slots, sorted.
    pub fn collected(&self) -> BTreeMap<u64, Vec<u64>> {
        let mut collected: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (&anchor, slots) in self.anchors.iter().zip(&self.slots) {
            let rows = collected.entry(anchor).or_default();
            rows.extend(slots);
            rows.sort_unstable();
        }
        collected
    }
}

pub fn both(cluster: &Cluster, data: &Data, options: [&MatchOptions; 2]) -> Outcome {
    let done = cluster.run(|session| {
        let collected = work(session, data, options[session.me().index()])?;
        Ok((collected, session.traffic().clone()))
    });
    let [a, b]: [Result<_, Error>; 2] = done.try_into().ok().unwrap();
    let ([(a, ledger_a), (b, ledger_b)], layouts) = ([a.unwrap(), b.unwrap()], layouts());
    let disclosed = [a.disclosed.clone(), b.disclosed.clone()];
    let [a, b] = [a, b].map(|outcome| outcome.shares().unwrap());
    let ValidEntries::Mine(valid) = &a.valid else { panic!("party 0 knows the slots") };
    assert!(matches!(b.valid, ValidEntries::Theirs));
    assert_eq!((a.rows, a.slots), (b.rows, b.slots));
    let value = |part: usize, row: u64| {
        let [JoinedPart::Shared(x), JoinedPart::Shared(y)] = [&a.parts[part], &b.parts[part]] else {
            panic!("both payloads are shared")
        };
        let share = |table: &ShareTable, field| table.get(row, field, &mut ShareBlock::default()).unwrap();
        let [number, rest] = [0, 1].map(|i| layouts[part].fields()[i].join(share(x, i), share(y, i)) as u64);
        assert_eq!(rest, number % 5, "fields of one row stay together");
        number
    };
    let per_anchor = u64::from(a.slots);
    let taken = |entry: &u64| valid[*entry as usize / 64] >> (entry % 64) & 1 == 1;
    let slots = |p: u64| (p * per_anchor..(p + 1) * per_anchor).filter(taken).map(|e| value(1, e)).collect();
    Outcome {
        anchors: (0..a.rows).map(|p| value(0, p)).collect(),
        slots: (0..a.rows).map(slots).collect(),
        disclosed,
        ledgers: [ledger_a, ledger_b],
    }
}
