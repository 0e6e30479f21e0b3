//! What matches say that they take on disk, held against what their files took.

use crate::dummies::PaddedIdentifiers;
use crate::identifiers::FlatIdentifiers;
use crate::matcher::{MatchDisk, MatchInput, MatchOptions, MatchOutput, Matcher, ShareBackend};
use crate::payload::{JoinedPart, PayloadLayout, PayloadTable, TableField};
use crate::share_table::ShareTable;
use crate::spill::{MEMORY_MIN, SpillRoom, SpilledBytes};
use crate::{CircuitJoin, CollectingJoin, InnerJoin, ManyId, PrivateId};
use base::{Error, PartyId};
use net::cluster::Cluster;

/// Identifiers of 24 bytes.
struct Names {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl Names {
    fn of(people: impl Iterator<Item = u64>) -> Self {
        let bytes: Vec<u8> = people.flat_map(|person| format!("person {person:>17}").into_bytes()).collect();
        let ends = (24..=bytes.len() as u64).step_by(24).collect();
        Self { bytes, ends }
    }
}

/// What each party counted with nothing in memory that need not be, its result still there.
fn counted(matcher: &dyn Matcher, names: &[Names], options: &MatchOptions) -> Vec<SpilledBytes> {
    let on_disk = || (options.clone(), SpillRoom::on_disk());
    let done = conversed(matcher, names, names.iter().map(|_| on_disk()).collect());
    done.into_iter().map(Result::unwrap).collect()
}

/// The same of parties that have so much room each.
fn conversed(
    matcher: &dyn Matcher,
    names: &[Names],
    rooms: Vec<(MatchOptions, SpillRoom)>,
) -> Vec<Result<SpilledBytes, Error>> {
    let rows = |party: usize| names[party].ends.len() as u64;
    Cluster::new(names.len(), 7).run(|session| {
        let me = session.me().index();
        let own = FlatIdentifiers::new(&names[me].bytes, &names[me].ends)?;
        let (options, room) = &rooms[me];
        let layout = options.layouts.get(me).cloned().unwrap_or_default();
        let table = PayloadTable::zeros(layout, rows(me))?;
        let shared = matcher.features().form.shared();
        let payload = shared.is_some_and(|shared| shared[me]).then_some(&table as _);
        let rows = PaddedIdentifiers::new(&own, None);
        let input = MatchInput { rows, payload, options, room: room.clone() };
        let outcome = matcher.converse(session, &input)?;
        let along = |part| match part {
            JoinedPart::Mine(places) => {
                let blank = vec![0; table.layout().row_bytes()];
                ShareTable::along(places, &table, &blank, room).map(Some)
            }
            JoinedPart::Shared(table) => Ok(Some(table)),
            JoinedPart::Theirs => Ok(None),
        };
        let (spine, [first, second]) = match outcome.output {
            MatchOutput::Spine(spine) => (Some(spine), [None, None]),
            MatchOutput::Shares(joined) => (None, joined.parts.map(Some)),
        };
        let tables = (first.map(along).transpose()?, second.map(along).transpose()?);
        let counted = room.spilled();
        drop((spine, tables));
        Ok(counted)
    })
}

/// Holds both against each other; where the match is as dear as it can be, no number is more than twice what
/// was counted.
fn check(text: &str, matcher: &dyn Matcher, names: &[Names], options: &MatchOptions, dearest: bool) {
    let rows: Vec<u64> = names.iter().map(|names| names.ends.len() as u64).collect();
    for (me, counted) in counted(matcher, names, options).into_iter().enumerate() {
        let stated = MatchOptions { memory: Some(MEMORY_MIN), ..options.clone() };
        let MatchDisk { written, read, at_most, stays, .. } =
            matcher.disk(&rows, PartyId(me as u8), &stated).unwrap();
        let SpilledBytes { written: wrote, read: came, on_disk, at_most: most } = counted;
        for (what, counted, stated) in [
            ("written", wrote, written),
            ("read", came, read),
            ("at most", most, at_most),
            ("stays", on_disk, stays),
        ] {
            assert!(counted <= stated, "{text} {rows:?}: {me} {what}: {counted} of {stated}");
            assert!(
                !dearest || stated <= 2 * counted,
                "{text} {rows:?}: {me} {what}: {counted}, but {stated} are stated"
            );
        }
    }
}

/// One plane, three, and rows of more than a block's bytes.
fn layouts() -> [[PayloadLayout; 2]; 3] {
    let of = |fields: Vec<TableField>| PayloadLayout::new(fields).unwrap();
    let narrow = of(vec![TableField::number(8), TableField::bits(3)]);
    let three = of(vec![TableField::bits(72), TableField::number(8), TableField::number(16)]);
    let wide = of((0..20).map(|_| TableField::number(16)).collect());
    [[narrow.clone(), three.clone()], [three, narrow.clone()], [wide, narrow]]
}

#[test]
fn joins_by_networks_take_what_they_say() {
    for (layouts, rows) in layouts().into_iter().zip([[9_000, 20_000], [20_000, 9_000], [12_000, 11_000]]) {
        let options = MatchOptions { layouts, threads: 1, ..MatchOptions::default() };
        let all = [Names::of(0..rows[0]), Names::of(0..rows[1])];
        check("all", &InnerJoin, &all, &options, true);
        let half = [Names::of(0..rows[0]), Names::of(rows[0] / 2..rows[0] / 2 + rows[1])];
        check("half", &InnerJoin, &half, &options, false);
    }
}

#[test]
fn a_join_by_encryption_takes_no_more_than_it_says() {
    let [layouts, ..] = layouts();
    let backend = ShareBackend::Paillier;
    let options = MatchOptions { layouts, backend, threads: 1, ..MatchOptions::default() };
    check("paillier", &InnerJoin, &[Names::of(0..150), Names::of(0..120)], &options, false);
}

/// Where every name is one of both: an identifier is of as many rows of party 1 as an anchor has slots.
#[test]
fn collecting_takes_what_it_says() {
    for (layouts, anchors, slots) in
        layouts().into_iter().zip([4000, 9000, 20_000]).zip([4, 2, 1]).map(|((a, b), c)| (a, b, c))
    {
        let options = MatchOptions { layouts, slots, threads: 1, ..MatchOptions::default() };
        let rows = anchors * u64::from(slots);
        let all = [Names::of(0..anchors), Names::of((0..rows).map(|row| row / u64::from(slots)))];
        check("all", &CollectingJoin, &all, &options, true);
        let apart = [Names::of(0..anchors), Names::of(anchors / 2..anchors / 2 + rows / 8)];
        check("fewer", &CollectingJoin, &apart, &options, false);
    }
}

#[test]
fn circuit_psi_takes_what_it_says() {
    for (layouts, rows) in layouts().into_iter().zip([[60_000, 40_000], [30_000, 90_000], [40_000, 40_000]]) {
        let options = MatchOptions { layouts, threads: 1, ..MatchOptions::default() };
        let half = [Names::of(0..rows[0]), Names::of(rows[0] / 2..rows[0] / 2 + rows[1])];
        check("half", &CircuitJoin, &half, &options, true);
    }
}

#[test]
fn spines_take_no_more_than_they_say() {
    let options = MatchOptions { threads: 1, ..MatchOptions::default() };
    for rows in [[12_000u64, 9_000], [9_000, 12_000]] {
        let apart = [Names::of(0..rows[0]), Names::of(rows[0]..rows[0] + rows[1])];
        check("apart", &PrivateId, &apart, &options, true);
        let half = [Names::of(0..rows[0]), Names::of(rows[0] / 2..rows[0] / 2 + rows[1])];
        check("half", &PrivateId, &half, &options, false);
    }
    let three = [0, 4000, 7000].map(|first| Names::of(first..first + 6000));
    check("three", &ManyId, &three, &options, false);
}

/// A peer that tells five times the rows of a party whose disk does not hold what they take is refused when
/// it has told them; one byte more of disk, or memory for all, is enough.
#[test]
fn rows_that_the_disk_does_not_hold_are_refused_when_they_are_told() {
    let [layouts, ..] = layouts();
    let least = MatchOptions { layouts, threads: 1, memory: Some(MEMORY_MIN), ..MatchOptions::default() };
    let pair = [Names::of(0..4000), Names::of(0..20_000)];
    let many = [4000, 20_000, 4000].map(|rows| Names::of(0..rows));
    let spines: [&dyn Matcher; 2] = [&PrivateId, &ManyId];
    let joins: [&dyn Matcher; 3] = [&InnerJoin, &CollectingJoin, &CircuitJoin];
    for matcher in spines.into_iter().chain(joins) {
        // Circuit-PSI has a tenth of a gigabyte beside its columns.
        let memory = if matcher == joins[2] { Some(1 << 30) } else { least.memory };
        let options = MatchOptions { memory, ..least.clone() };
        let names = if matcher == spines[1] { &many[..] } else { &pair };
        let rows: Vec<u64> = names.iter().map(|names| names.ends.len() as u64).collect();
        let need = matcher.disk(&rows, PartyId(0), &options).unwrap().at_most;
        let with = |left, room| {
            let scratch_left = Some(left);
            let first = (MatchOptions { scratch_left, ..options.clone() }, room);
            let others = rows[1..].iter().map(|_| (options.clone(), SpillRoom::on_disk()));
            let done = conversed(matcher, names, std::iter::once(first).chain(others).collect());
            done.into_iter().next().unwrap()
        };
        let refused = with(need - 1, SpillRoom::on_disk()).unwrap_err().to_string();
        for part in ["a match of 4000", " and 20000", "on the disk of", "free 1 MB", "`work`"] {
            assert!(refused.contains(part), "{} {part}: {refused}", matcher.name());
        }
        let taken = with(need, SpillRoom::on_disk()).unwrap().at_most;
        assert!(taken <= need, "{}: {taken} {need}", matcher.name());
        assert_eq!(with(0, SpillRoom::new(None, None)).unwrap().at_most, 0, "{}", matcher.name());
    }
}
