use super::*;
use crate::disk::DiskSchedule;
use crate::matcher::MatchDisk;
use crate::payload::{PayloadLayout, PayloadTable, TableField};
use crate::permute::network::switches;
use crate::permute::{ExtendedMap, MovedRows, PlaneRows, Switchboard, extended, route};
use crate::spill::{MEMORY_MIN, SpilledBytes};
use base::{PartyId, Seed};
use net::cluster::Cluster;
use ot::OtKind;

/// Three planes.
fn layout() -> PayloadLayout {
    PayloadLayout::new([TableField::bits(72), TableField::number(8), TableField::number(16)]).unwrap()
}

const BLANK: [u8; 33] = [7; 33];

/// A room with what fits in memory, or none.
type Room = fn() -> SpillRoom;

const ROOMY: Room = || SpillRoom::new(None, None);

/// Both parties' shares of `n` rows, all but ten of a table, at some places and then permuted; and what
/// planes and what was dealt took of either's disk.
fn permuted(n: usize, room: Room) -> [(Vec<u8>, SpilledBytes); 2] {
    let mut rng = Seed::from_bytes([5; 32]).into_rng();
    let mut table = PayloadTable::zeros(layout(), n as u64 - 10).unwrap();
    table.bytes_mut().iter_mut().for_each(|byte| [*byte] = rng.bytes());
    let [places, order] = [0, 1].map(|_| {
        let mut order: Vec<u32> = (0..n as u32).collect();
        rng.shuffle(&mut order);
        order
    });
    let done = Cluster::new(2, 7).run(|session| {
        let room = room();
        let mut board = Switchboard::new(session, OtKind::default(), switches(n as u64))?;
        let rows = if session.me() == PartyId(0) {
            board.serve_permutation(session, PlaneRows::placed(&room, &table, &places, &BLANK)?)?
        } else {
            let zeros = PlaneRows::zeros_within(&room, &layout(), n)?;
            board.permute(session, zeros, route(order.clone())?)?
        };
        let paged = rows.paged.is_some();
        let shares = rows.into_shares(n, &ROOMY())?.whole()?.bytes().to_vec();
        assert_eq!(paged, room.spilled().written > 0);
        Ok((shares, room.spilled()))
    });
    let [a, b]: [(Vec<u8>, SpilledBytes); 2] =
        done.into_iter().map(Result::unwrap).collect::<Vec<_>>().try_into().ok().unwrap();
    let row = |place: u32| {
        let row = places.iter().position(|at| *at == place).unwrap() as u64;
        if row < table.rows() { table.row(row) } else { &BLANK[..] }
    };
    for at in (0..n).step_by(n / 40) {
        let of = |bytes: &[u8], range: Range<usize>| bytes[at * 33..][..33][range].to_vec();
        let bits = of(&a.0, 0..9).iter().zip(of(&b.0, 0..9)).map(|(a, b)| a ^ b).collect::<Vec<_>>();
        assert_eq!(bits, row(order[at])[..9]);
        let number = |bytes: &[u8]| u64::from_le_bytes(of(bytes, 9..17).try_into().unwrap());
        let sum = number(&a.0).wrapping_add(number(&b.0));
        assert_eq!(sum.to_le_bytes(), row(order[at])[9..17]);
    }
    [a, b]
}

/// Holds what was counted against what is said of it, but for shares, which were not counted.
fn check(done: [(Vec<u8>, SpilledBytes); 2], say: impl Fn(bool, &mut DiskSchedule) -> u64) {
    for ((_, counted), gives) in done.into_iter().zip([true, false]) {
        let mut disk = DiskSchedule::default();
        let shares = say(gives, &mut disk);
        let MatchDisk { written, read, at_most, .. } = disk.disk(0);
        for (counted, stated) in
            [(counted.written, written - shares), (counted.read, read), (counted.at_most, at_most)]
        {
            // Some blocks are in memory, which matters where there are few.
            assert!((stated / 2..=stated).contains(&counted), "{counted}, but {stated} are stated: {disk:?}");
        }
    }
}

fn moved<'a>(layout: &'a PayloadLayout, [rows, entries]: [usize; 2], gives: bool) -> MovedRows<'a> {
    MovedRows { layout, rows: rows as u64, entries: entries as u64, gives, memory: Some(MEMORY_MIN) }
}

/// The shares of rows that do not fit are those of rows that do, and what is read is four times the rows
/// where half of them fit, and twice more for each halving; with the blocks at the ends of parts.
#[test]
fn rows_outside_memory_are_read_four_times() {
    for (n, least) in [(20_001, 2), (40_000, 4), (80_000, 6), (90_000, 8)] {
        let [whole, paged] = [ROOMY, SpillRoom::on_disk].map(|room| permuted(n, room));
        let bytes = (3 * 16 * n) as u64;
        for (whole, paged) in whole.iter().zip(&paged) {
            assert!(whole.0 == paged.0, "{n} rows");
            assert_eq!(whole.1, SpilledBytes::default());
            assert!(paged.1.read > least * bytes, "{:?}", paged.1);
        }
        check(paged, |gives, disk| {
            moved(&layout(), [n; 2], gives).permuted(disk);
            (33 * n) as u64
        });
    }
}

/// Both parties' shares of slots that are filled from `n` rows of a table at some places by `map`; and what
/// planes, what was dealt and the map while it was sorted took of either's disk.
fn extended(n: usize, map: &[u32], room: Room) -> [(Vec<u8>, SpilledBytes); 2] {
    let (mut rng, slots) = (Seed::from_bytes([6; 32]).into_rng(), map.len());
    let mut table = PayloadTable::zeros(layout(), n as u64).unwrap();
    table.bytes_mut().iter_mut().for_each(|byte| [*byte] = rng.bytes());
    let mut places: Vec<u32> = (0..n as u32).collect();
    rng.shuffle(&mut places);
    let done = Cluster::new(2, 8).run(|session| {
        let room = room();
        let gates = extended::gates(n as u64, slots as u64);
        let mut board = Switchboard::new(session, OtKind::default(), gates)?;
        let rows = if session.me() == PartyId(0) {
            board.serve_extension(session, PlaneRows::placed(&room, &table, &places, &BLANK)?, slots)?
        } else {
            let each =
                |take: &mut dyn FnMut(u32) -> Result<(), Error>| map.iter().try_for_each(|row| take(*row));
            let settings = ExtendedMap::within(&room, [n, slots], each)?;
            board.extend(session, PlaneRows::zeros_within(&room, &layout(), n)?, settings)?
        };
        let paged = rows.paged.is_some();
        let shares = rows.into_shares(slots, &ROOMY())?.whole()?.bytes().to_vec();
        assert_eq!(paged, room.spilled().written > 0);
        Ok((shares, room.spilled()))
    });
    let [a, b]: [(Vec<u8>, SpilledBytes); 2] =
        done.into_iter().map(Result::unwrap).collect::<Vec<_>>().try_into().ok().unwrap();
    let mut row_at = vec![0; n];
    (0..).zip(&places).for_each(|(row, place)| row_at[*place as usize] = row);
    for at in (0..slots).step_by(slots / 40) {
        let word = |bytes: &[u8]| u64::from_le_bytes(*bytes[at * 33 + 9..].first_chunk().unwrap());
        let row = table.row(row_at[map[at] as usize]);
        assert_eq!(word(&a.0).wrapping_add(word(&b.0)).to_le_bytes(), row[9..17], "slot {at}");
    }
    [a, b]
}

/// Slots that do not fit are those that do, whether there are more of them than rows or fewer, and either
/// network is gone through as often as is said.
#[test]
fn copies_outside_memory_are_part_of_the_four_times() {
    let mut rng = Seed::from_bytes([7; 32]).into_rng();
    for (n, slots) in [(9_000, 20_001), (20_001, 18_000), (20_002, 9_000), (9_000, 50_000), (50_000, 20_000)]
    {
        // Most slots hold row 0.
        let map: Vec<u32> =
            (0..slots).map(|_| if rng.below(3) > 0 { 0 } else { rng.below(n as u64) as u32 }).collect();
        let [whole, paged] = [ROOMY, SpillRoom::on_disk].map(|room| extended(n, &map, room));
        for (whole, paged) in whole.iter().zip(&paged) {
            assert!(whole.0 == paged.0, "{n} rows, {slots} slots");
            assert_eq!(whole.1, SpilledBytes::default());
        }
        check(paged, |gives, disk| {
            let layout = layout();
            let moved = moved(&layout, [n, slots], gives);
            if !gives {
                moved.map_sorted(disk);
            }
            moved.extended(disk);
            33 * slots as u64
        });
    }
}

/// What is cut off does not come back.
#[test]
fn rows_behind_the_last_one_are_zeros() {
    let mut rng = Seed::from_bytes([8; 32]).into_rng();
    let mut table = PayloadTable::zeros(layout(), 30_000).unwrap();
    table.bytes_mut().iter_mut().for_each(|byte| [*byte] = rng.bytes());
    let places: Vec<u32> = (0..30_000).collect();
    let room = SpillRoom::new(Some(1), None);
    let rows = PlaneRows::placed(&room, &table, &places, &BLANK).unwrap();
    let rows = rows.resized(17_001).unwrap().resized(25_000).unwrap();
    let shares = rows.into_shares(25_000, &SpillRoom::new(None, None)).unwrap().whole().unwrap();
    let kept = 17_001 * 33;
    assert!(
        shares.bytes()[..kept] == table.bytes()[..kept] && shares.bytes()[kept..].iter().all(|b| *b == 0)
    );
}

#[test]
fn parts_are_those_of_the_network() {
    assert_eq!(parts(1001, 130), [0, 125, 250, 375, 500, 625, 750, 875, 1001]);
    let all: Vec<_> = pieces(16, 10..50, 3).collect();
    assert_eq!(all, [(0, 10..16, 3), (1, 0..16, 9), (2, 0..16, 25), (3, 0..2, 41)]);
}
