use super::*;
use crate::circuit_psi::Party;
use crate::dummies::PaddedIdentifiers;
use crate::payload::{PayloadTable, TableField};
use base::{PartyId, Seed};
use net::cluster::Cluster;
use ot::OtKind;

/// Rows that are named by their numbers.
struct Numbered(u64);

impl IdentifierSource for Numbered {
    fn rows(&self) -> u64 {
        self.0
    }

    fn read(&self, row: u32, _key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        into.clear();
        into.extend_from_slice(&row.to_le_bytes());
        Ok(())
    }
}

const SEED: [u8; 32] = [3; 32];

fn all_keys(rows: u64) -> Vec<Block> {
    let mut keys = Vec::new();
    oprf::NameKeys::new(&Numbered(rows), &SEED).read(0..rows, &mut keys).unwrap();
    keys
}

fn places(bins: &CuckooBins, keys: &[Block]) -> Vec<[u32; FUNCTIONS]> {
    let mut places = Vec::new();
    bins.places(&CuckooBins::hash(&SEED, 0), keys, &mut places);
    places
}

fn layout() -> PayloadLayout {
    PayloadLayout::new([TableField::number(16), TableField::number(4)]).unwrap()
}

/// A room, and what it is to have read.
fn rooms() -> [(SpillRoom, bool); 2] {
    [(SpillRoom::new(None, None), false), (SpillRoom::new(Some(1), None), true)]
}

/// Pieces hand out every key at its bin, whatever fits; all of them were read back twice at most (once while
/// they are dealt, once as pieces).
#[test]
fn keys_lie_in_their_bins_piece_by_piece() {
    for rows in [0, 10, 70_000] {
        let (bins, keys) = (CuckooBins::new([rows, 10]), all_keys(rows));
        for (room, spills) in rooms() {
            let column = KeyColumn::read(&Numbered(rows), &SEED, &room).unwrap();
            let mut laid = column.lay(&bins, CuckooBins::hash(&SEED, 0), &room).unwrap().unwrap();
            drop(column);
            let mut rng = Seed::from_bytes([1; 32]).into_rng();
            for piece in 0..bins.pieces() {
                let taken = laid.take(&bins, piece, &mut rng).unwrap();
                let at = (0..FUNCTIONS).flat_map(|f| bins.range(piece).map(move |place| (f, place as u32)));
                assert_eq!(taken.len(), at.clone().count());
                for (key, (function, place)) in taken.iter().zip(at) {
                    assert_eq!(oprf::function(*key), function);
                    match laid.held[bins.bin(function, place)] {
                        EMPTY => assert!(!keys.contains(&oprf::whole(*key)) || rows > 100),
                        row => assert_eq!(oprf::whole(*key), keys[row as usize]),
                    }
                }
            }
            let (read, bytes) = (room.spilled().read, 16 * rows);
            assert!(read <= 3 * bytes && (read > 0) == (spills && rows > 10), "{read} of {bytes}");
        }
    }
}

/// Every row of the sender is in the pieces of its three bins, in the order of rows, with its payload;
/// dummies have zeros. What was spilled is read once.
#[test]
fn rows_are_dealt_to_the_pieces_of_their_bins() {
    for (rows, dummies) in [(0, 3), (9, 0), (30_000, 700)] {
        let mut payload = PayloadTable::zeros(layout(), rows).unwrap();
        (0..rows).for_each(|row| payload.set(row, 0, u128::from(row + 1) << 70));
        let (all, zeros) = (rows + dummies, vec![0; 20]);
        let (bins, keys) = (CuckooBins::new([20_000, all]), all_keys(all));
        let (names, places) = (Numbered(all), places(&bins, &keys));
        let names = oprf::NameKeys::new(&names, &SEED);
        for (room, spills) in rooms() {
            let hash = CuckooBins::hash(&SEED, 0);
            let mut dealt = DealtRows::deal(&bins, hash, (&names, &payload), &room).unwrap();
            let mut count = 0;
            for piece in 0..bins.pieces() {
                let slots = PieceSlots::of(&bins, piece);
                let in_piece =
                    |function: usize, row: usize| bins.piece(places[row][function]) == piece as usize;
                let expected = (0..FUNCTIONS).flat_map(|function| {
                    (0..all as usize)
                        .filter(move |row| in_piece(function, *row))
                        .map(move |row| (function, row))
                });
                let rows_of = dealt.take(&bins, piece).unwrap();
                for (at, (function, row)) in expected.enumerate() {
                    assert_eq!(rows_of.keys[at], oprf::with_function(keys[row], function));
                    let place = u64::from(places[row][function]) - slots.first;
                    assert_eq!(rows_of.slots[at] as usize, function * slots.len + place as usize);
                    let own = (row as u64) < rows;
                    assert!(rows_of.payload(at) == if own { payload.row(row as u64) } else { &zeros[..] });
                    count += 1;
                }
            }
            assert_eq!(count, FUNCTIONS as u64 * all);
            let (read, bytes) = (room.spilled().read, 3 * 36 * all);
            assert!(read <= bytes && (read > 0) == (spills && rows > 9), "{read} of {bytes}");
        }
    }
}

#[test]
fn uneven_bins_are_refused() {
    /// All rows have one name.
    struct Same;
    impl IdentifierSource for Same {
        fn rows(&self) -> u64 {
            5000
        }

        fn read(&self, _row: u32, _key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
            into.clear();
            into.push(1);
            Ok(())
        }
    }
    let (bins, room) = (CuckooBins::new([100_000, 5000]), SpillRoom::new(None, None));
    assert!(bins.most() < 5000);
    let payload = PayloadTable::zeros(PayloadLayout::default(), 5000).unwrap();
    let names = oprf::NameKeys::new(&Same, &SEED);
    let dealt = DealtRows::deal(&bins, CuckooBins::hash(&SEED, 0), (&names, &payload), &room);
    let error = dealt.err().unwrap().to_string();
    assert!(error.contains("too unevenly"), "{error}");
}

/// Tags come back bin by bin over the thirds, however many are asked for at a time, and shares with them.
#[test]
fn tags_and_shares_come_back_in_the_order_of_bins() {
    let (bins, layout) = (CuckooBins::new([90_000, 10]), layout());
    let shapes = PieceShapes::new(&bins, &layout);
    let tag = |bin: usize| ((bin as u64 + 1) * 0x9e37).to_le_bytes();
    for (room, spills) in rooms() {
        let mut columns = BinColumns::new(&bins, &shapes, &layout, &room);
        for piece in 0..bins.pieces() {
            for function in 0..FUNCTIONS {
                for place in bins.range(piece) {
                    let bin = bins.bin(function, place as u32);
                    columns.extend(function, &tag(bin)[..shapes.tag], &[bin as u8; 20]).unwrap();
                }
            }
        }
        let (shares, mut tags) = columns.finish();
        let (mut next, mut taken) = (0, Vec::new());
        for count in [1, 50_000, 7, bins.all() as usize - 50_008] {
            tags.take(count, &mut taken).unwrap();
            assert_eq!(taken.len(), count);
            for word in &taken {
                assert_eq!(word.to_bytes()[..shapes.tag], tag(next)[..shapes.tag]);
                next += 1;
            }
        }
        assert!(tags.take(1, &mut taken).is_err());
        let (whole, bytes) = (shares.whole().unwrap(), (shapes.tag as u64 + 20) * bins.all());
        assert_eq!(whole.rows(), bins.all());
        assert!((0..bins.all()).all(|bin| whole.row(bin) == [bin as u8; 20]));
        assert!(room.spilled().read <= bytes && (room.spilled().read > 0) == spills);
    }
}

/// A whole run outside memory reads back what it wrote: keys three times, everything else once.
#[test]
fn a_run_reads_what_is_on_disk_three_times_at_most() {
    let (rows, layout) = ([60_000, 40_000], layout());
    let payload = PayloadTable::zeros(layout.clone(), rows[1]).unwrap();
    let (bins, block) = (CuckooBins::new(rows), Block::BYTES as u64);
    let shapes = PieceShapes::new(&bins, &layout);
    let done = Cluster::new(2, 3).run(|session| {
        let me = session.me();
        let room = SpillRoom::new(Some(1), None);
        let (peer, kind) = (me.other(), OtKind::default());
        let party = Party { bins, shapes, seed: SEED, layout: &layout, peer, kind, room: room.clone() };
        let (names, rng) = (Numbered(rows[me.index()]), session.fork_seed("test").into_rng());
        let names = PaddedIdentifiers::new(&names, None);
        let joined = match me {
            PartyId(0) => party.receive(session, &names, rng),
            _ => party.send(session, &names, &payload, rng),
        };
        joined.map(|_| room.spilled().read)
    });
    let vole = shapes.elements(&bins) * block;
    let tags = bins.all() * shapes.tag as u64;
    let most = [3 * rows[0] * block + 2 * vole + tags, 3 * rows[1] * (block + 20) + vole + tags];
    for (read, most) in done.into_iter().zip(most) {
        let read = read.unwrap();
        assert!((most / 2..=most).contains(&read), "{read} of {most} bytes");
    }
}
