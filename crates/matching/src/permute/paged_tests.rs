use super::*;
use crate::payload::{PayloadLayout, PayloadTable, TableField};
use crate::permute::network::switches;
use crate::permute::{ExtendedMap, PlaneRows, Switchboard, extended, route};
use base::{PartyId, Seed};
use net::cluster::Cluster;
use ot::OtKind;

/// Three planes.
fn layout() -> PayloadLayout {
    PayloadLayout::new([TableField::bits(72), TableField::number(8), TableField::number(16)]).unwrap()
}

const BLANK: [u8; 33] = [7; 33];

/// Both parties' shares of `n` rows, all but ten of a table, at some places and then permuted; bytes of both
/// that were read back, and those of all planes.
fn permuted(n: usize, memory: Option<u64>) -> ([Vec<u8>; 2], [u64; 2], u64) {
    let mut rng = Seed::from_bytes([5; 32]).into_rng();
    let mut table = PayloadTable::zeros(layout(), n as u64 - 10).unwrap();
    table.bytes_mut().iter_mut().for_each(|byte| [*byte] = rng.bytes());
    let [places, order] = [0, 1].map(|_| {
        let mut order: Vec<u32> = (0..n as u32).collect();
        rng.shuffle(&mut order);
        order
    });
    let done = Cluster::new(2, 7).run(|session| {
        let (room, roomy) = (SpillRoom::new(memory, None), SpillRoom::new(None, None));
        let mut board = Switchboard::new(session, OtKind::default(), switches(n as u64))?;
        let rows = if session.me() == PartyId(0) {
            board.serve_permutation(session, PlaneRows::placed(&room, &table, &places, &BLANK)?)?
        } else {
            let zeros = PlaneRows::zeros_within(&room, &layout(), n)?;
            board.permute(session, zeros, route(order.clone())?)?
        };
        assert_eq!(rows.paged.is_some(), memory.is_some());
        Ok((rows.into_shares(n, &roomy)?.whole()?.bytes().to_vec(), room.spilled().read))
    });
    let [a, b]: [(Vec<u8>, u64); 2] =
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
    ([a.0, b.0], [a.1, b.1], 3 * 16 * n as u64)
}

/// The shares of rows that do not fit are those of rows that do, and what is read is four times the rows
/// where half of them fit, and six times where a quarter does; with the blocks at the ends of parts.
#[test]
fn rows_outside_memory_are_read_four_times() {
    for (n, least, most, parts) in [(20_001, 2, 4, 2), (40_000, 4, 6, 4)] {
        let (whole, none, _) = permuted(n, None);
        assert_eq!(none, [0; 2]);
        let (paged, read, bytes) = permuted(n, Some(1));
        assert!(paged == whole, "{n} rows");
        // One side's payload came back too, on its way to its places.
        let block = BLOCK_BYTES as u64;
        let most = most * (bytes.next_multiple_of(block) + parts * block) + 37 * n as u64;
        let times = read.map(|read| (least * bytes..=most).contains(&read));
        assert_eq!(times, [true; 2], "{n} rows of {bytes} bytes: {read:?} were read");
    }
}

/// Both parties' shares of slots that are filled from `n` rows of a table at some places by `map`; bytes of
/// both that were read back.
fn extended(n: usize, map: &[u32], memory: Option<u64>) -> ([Vec<u8>; 2], [u64; 2]) {
    let (mut rng, slots) = (Seed::from_bytes([6; 32]).into_rng(), map.len());
    let mut table = PayloadTable::zeros(layout(), n as u64).unwrap();
    table.bytes_mut().iter_mut().for_each(|byte| [*byte] = rng.bytes());
    let mut places: Vec<u32> = (0..n as u32).collect();
    rng.shuffle(&mut places);
    let done = Cluster::new(2, 8).run(|session| {
        let (room, roomy) = (SpillRoom::new(memory, None), SpillRoom::new(None, None));
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
        assert_eq!(rows.paged.is_some(), memory.is_some());
        Ok((rows.into_shares(slots, &roomy)?.whole()?.bytes().to_vec(), room.spilled().read))
    });
    let [a, b]: [(Vec<u8>, u64); 2] =
        done.into_iter().map(Result::unwrap).collect::<Vec<_>>().try_into().ok().unwrap();
    let mut row_at = vec![0; n];
    (0..).zip(&places).for_each(|(row, place)| row_at[*place as usize] = row);
    for at in (0..slots).step_by(slots / 40) {
        let word = |bytes: &[u8]| u64::from_le_bytes(*bytes[at * 33 + 9..].first_chunk().unwrap());
        let row = table.row(row_at[map[at] as usize]);
        assert_eq!(word(&a.0).wrapping_add(word(&b.0)).to_le_bytes(), row[9..17], "slot {at}");
    }
    ([a.0, b.0], [a.1, b.1])
}

/// Slots that do not fit are those that do, whether there are more of them than rows or fewer, and of either
/// network no more is read than four times its rows.
#[test]
fn copies_outside_memory_are_part_of_the_four_times() {
    let mut rng = Seed::from_bytes([7; 32]).into_rng();
    for (n, slots) in [(9_000, 20_001), (20_001, 18_000), (20_002, 9_000)] {
        // Most slots hold row 0.
        let map: Vec<u32> =
            (0..slots).map(|_| if rng.below(3) > 0 { 0 } else { rng.below(n as u64) as u32 }).collect();
        let (whole, none) = extended(n, &map, None);
        assert_eq!(none, [0; 2]);
        let (paged, read) = extended(n, &map, Some(1));
        assert!(paged == whole, "{n} rows, {slots} slots");
        let block = BLOCK_BYTES as u64;
        let network = |wires: usize| (48 * wires as u64).next_multiple_of(block) + 2 * block;
        // Besides the table on its way to its places, and the map while it is sorted.
        let most = 4 * (network(n.max(slots)) + network(slots)) + 37 * n as u64 + 12 * slots as u64;
        assert!(read.iter().all(|read| *read <= most), "{read:?} of {most}");
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
