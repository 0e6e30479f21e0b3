//! All parties' rows brought together in the clear, as the study's match would.

use crate::align::{ABSENT, Aligned};
use crate::run::matched::{ArmOrder, OwnKeys};
use base::{Error, Seed};
use data::{RowKeys, RowStore};
use matching::multi_pid::pairs_in_clear;
use matching::{ContaminatedRule, MatchOptions};
use page::numbers::counted;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use study::{MatchRule, Study};

/// Rows of all parties, side by side.
pub(super) struct JoinedTable {
    /// By party, and by slot where a row may match several: its rows along the joined ones.
    pub along: Vec<Vec<Arc<Aligned>>>,
    /// Joined rows.
    pub rows: u64,
    /// Of these, the ones that all parties have.
    pub shared: u64,
    /// What its reader should know of the match.
    pub notes: Vec<String>,
}

/// For each joined row which row of a party lies there, or [`ABSENT`].
type Order = Vec<u32>;

impl JoinedTable {
    /// Joins by the normalised identifiers. Where a run leaves something to chance, `seed` decides it.
    ///
    /// # Errors
    /// When files that are to hold the same identifiers do not, or rows are not in memory.
    pub fn of(study: &Study, rows: &[Arc<RowStore>], seed: &Seed) -> Result<Self, Error> {
        let features = study.matching.matcher.features();
        let held = rows.iter().map(|rows| rows.in_memory("a simulation")).collect::<Result<Vec<_>, _>>()?;
        let keys: Vec<&RowKeys> = held.iter().map(|rows| rows.identifiers()).collect();
        let mut notes = Vec::new();
        let orders: Vec<Vec<Order>> = match (rows, &keys[..]) {
            ([anchors, _], [a, b]) if features.slots => {
                let arms = ArmOrder::of(anchors)?;
                let mut collected = Collected::of(&study.matching, [*a, *b], &arms, seed);
                notes.append(&mut collected.notes);
                vec![vec![(0..a.len() as u32).collect()], collected.slots]
            }
            ([first, second], _) if features.shows_graph => {
                pairs(&study.matching, [first, second])?.map(|order| vec![order]).into()
            }
            _ => union(&keys).into_iter().map(|order| vec![order]).collect(),
        };
        if features.public_identifiers {
            expect_aligned(study, &keys, &orders)?;
        }
        let count = orders.first().and_then(|slots| slots.first()).map_or(0, Vec::len);
        let has = |slots: &Vec<Order>, place: usize| slots.iter().any(|order| order[place] != ABSENT);
        let shared = (0..count).filter(|place| orders.iter().all(|slots| has(slots, *place))).count();
        let along = |(slots, rows): (Vec<Order>, &Arc<RowStore>)| {
            slots.into_iter().map(|order| Arc::new(Aligned::ordered(rows.clone(), order))).collect()
        };
        let along = orders.into_iter().zip(rows).map(along).collect();
        Ok(Self { along, rows: count as u64, shared: shared as u64, notes })
    }
}

/// One place for each identifier that anybody has, in the order of their bytes, as identifiers that all have
/// stand.
fn union(keys: &[&RowKeys]) -> Vec<Order> {
    let sorted: Vec<Vec<u32>> = keys.iter().map(|keys| keys.sorted()).collect();
    let mut next = vec![0; keys.len()];
    let mut orders = vec![Vec::new(); keys.len()];
    loop {
        let head = |party: usize| sorted[party].get(next[party]).map(|row| keys[party].get(*row as usize, 0));
        let Some(least) = (0..keys.len()).filter_map(head).min() else { return orders };
        let here: Vec<bool> = (0..keys.len()).map(|party| head(party) == Some(least)).collect();
        for (party, here) in here.into_iter().enumerate() {
            orders[party].push(if here { sorted[party][next[party]] } else { ABSENT });
            next[party] += usize::from(here);
        }
    }
}

fn expect_aligned(study: &Study, keys: &[&RowKeys], orders: &[Vec<Order>]) -> Result<(), Error> {
    let lacks: Vec<String> = study
        .parties
        .iter()
        .zip(orders)
        .zip(keys)
        .filter_map(|((member, slots), keys)| {
            let missing = slots.iter().flatten().filter(|row| **row == ABSENT).count() as u64;
            let rows = counted(keys.len() as u64, "row");
            (missing > 0).then(|| format!("{} has {rows} and lacks {missing} that others have", member.name))
        })
        .collect();
    match lacks.is_empty() {
        true => Ok(()),
        false => Err(Error::input(format!(
            "the rows are not aligned: {}; all files must hold the same identifiers",
            lacks.join(", ")
        ))),
    }
}

/// Pairs by several identifiers in one place, and every other row in one of its own.
fn pairs(rule: &MatchRule, rows: [&Arc<RowStore>; 2]) -> Result<[Order; 2], Error> {
    let looks = rule.contaminated != ContaminatedRule::Ignore;
    let arms = if looks { ArmOrder::of(rows[0])? } else { ArmOrder::default() };
    let keys = [OwnKeys::new(rows[0], &arms.rows)?, OwnKeys::new(rows[1], &[])?];
    let options = MatchOptions { lists: arms.test, ..rule.options() };
    let partners = pairs_in_clear([&keys[0], &keys[1]], &options)?;
    let mut alone = vec![true; rows[1].len() as usize];
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for (place, partner) in partners.into_iter().enumerate() {
        first.push(arms.rows.get(place).copied().unwrap_or(place as u32));
        second.push(partner.unwrap_or(ABSENT));
        if let Some(row) = partner {
            alone[row as usize] = false;
        }
    }
    for row in (0..alone.len() as u32).filter(|row| alone[*row as usize]) {
        first.push(ABSENT);
        second.push(row);
    }
    Ok([first, second])
}

/// Rows of party 1 in the slots of each row of party 0.
struct Collected {
    slots: Vec<Order>,
    notes: Vec<String>,
}

impl Collected {
    fn of(rule: &MatchRule, keys: [&RowKeys; 2], arms: &ArmOrder, seed: &Seed) -> Self {
        let mut carriers: HashMap<&[u8], Vec<u32>> = HashMap::new();
        for row in 0..keys[0].len() {
            for key in keys[0].row(row).filter(|key| !key.is_empty()) {
                carriers.entry(key).or_default().push(row as u32);
            }
        }
        let in_test = in_test(arms, keys[0].len());
        let drops = rule.contaminated == ContaminatedRule::Drop;
        let (mut by_anchor, mut dropped, mut over) = (vec![Vec::new(); keys[0].len()], 0u64, 0u64);
        for row in 0..keys[1].len() {
            let met = keys[1].row(row).filter_map(|key| carriers.get(key)).flatten();
            let anchors: BTreeSet<u32> = met.copied().collect();
            let arms: BTreeSet<bool> = anchors.iter().map(|anchor| in_test[*anchor as usize]).collect();
            if drops && arms.len() == 2 {
                dropped += 1;
                continue;
            }
            let mut edges: Vec<(u64, u32)> =
                anchors.into_iter().map(|anchor| (chance(seed, anchor, row as u32), anchor)).collect();
            edges.sort_unstable();
            over += edges.len().saturating_sub(rule.degree as usize) as u64;
            for (rank, anchor) in edges.into_iter().take(rule.degree as usize) {
                by_anchor[anchor as usize].push((rank, row as u32));
            }
        }
        let mut slots = vec![vec![ABSENT; keys[0].len()]; rule.slots as usize];
        for (anchor, mut edges) in by_anchor.into_iter().enumerate() {
            edges.sort_unstable();
            over += edges.len().saturating_sub(slots.len()) as u64;
            slots.iter_mut().zip(edges).for_each(|(slot, (_, row))| slot[anchor] = row);
        }
        let mut notes = Vec::new();
        if dropped > 0 {
            notes.push(format!(
                "{} of the second party match both arms and were dropped",
                counted(dropped, "row")
            ));
        }
        if over > 0 {
            notes.push(format!(
                "{} over the study's slots or degree were left out; which ones is by chance, here by --seed",
                counted(over, "pair")
            ));
        }
        Self { slots, notes }
    }
}

/// Whether each row is of the test arm.
fn in_test(arms: &ArmOrder, rows: usize) -> Vec<bool> {
    let mut of = vec![false; rows];
    let test = arms.test.unwrap_or(0) as usize;
    arms.rows.iter().take(test).for_each(|row| of[*row as usize] = true);
    of
}

/// What decides between pairs where not all can stay.
fn chance(seed: &Seed, anchor: u32, row: u32) -> u64 {
    let name = [anchor.to_le_bytes(), row.to_le_bytes()];
    let hash = blake3::keyed_hash(seed.expose(), name.as_flattened());
    u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("a hash has eight bytes"))
}
