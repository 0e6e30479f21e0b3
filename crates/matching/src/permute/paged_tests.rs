use super::*;
use crate::payload::{PayloadLayout, PayloadTable, TableField};
use crate::permute::network::switches;
use crate::permute::{PlaneRows, Switchboard, route};
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
            board.permute(session, zeros, route(&order)?)?
        };
        assert_eq!(rows.paged.is_some(), memory.is_some());
        Ok((rows.into_shares(n, &roomy)?.whole()?.bytes().to_vec(), room.bytes_read()))
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

#[test]
fn parts_are_those_of_the_network() {
    let mut parts = Vec::new();
    cut(0..1001, 130, &mut parts);
    assert_eq!(parts, [0, 125, 250, 375, 500, 625, 750, 875]);
    let all: Vec<_> = pieces(16, 10..50, 3).collect();
    assert_eq!(all, [(0, 10..16, 3), (1, 0..16, 9), (2, 0..16, 25), (3, 0..2, 41)]);
}
