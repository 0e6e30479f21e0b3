//! Shares of permuted tables between two parties: against the definition, the price against the ledger, and
//! what either party sees.

mod common;
#[path = "common/tap.rs"]
mod tap;

use base::{Error, PartyId, Rng, Seed};
use matching::permute::{self, ExtendedMap, PlaneRows, Switchboard, TransferBill, network::switches, route};
use matching::{PayloadLayout, PayloadTable, TableField};
use net::cluster::Cluster;
use net::{Session, Traffic};
use ot::OtKind;

const KINDS: [OtKind; 3] = [OtKind::SoftSpoken { k: 2 }, OtKind::SoftSpoken { k: 1 }, OtKind::Ferret];

fn rng(seed: u8) -> Rng {
    Seed::from_bytes([seed; 32]).into_rng()
}

fn mixed() -> PayloadLayout {
    let fields = [
        TableField::bits(9),
        TableField::number(4),
        TableField::number(16),
        TableField::bits(128),
        TableField::number(5),
    ];
    PayloadLayout::new(fields.into_iter().chain([TableField::number(8), TableField::number(8)])).unwrap()
}

fn random(layout: &PayloadLayout, rows: usize, rng: &mut Rng) -> PayloadTable {
    let mut table = PayloadTable::zeros(layout.clone(), rows as u64).unwrap();
    table.bytes_mut().iter_mut().for_each(|byte| [*byte] = rng.bytes());
    table
}

fn shuffled(n: usize, rng: &mut Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    rng.shuffle(&mut order);
    order
}

/// One run: `tables` are both parties' shares, zeros where none, the chooser has `map`.
struct Run<'a> {
    server: PartyId,
    tables: [Option<&'a PayloadTable>; 2],
    layout: &'a PayloadLayout,
    rows: usize,
    map: &'a [u32],
    extended: bool,
}

impl Run<'_> {
    fn expected_gates(&self) -> u64 {
        match self.extended {
            true => permute::extended::gates(self.rows as u64, self.map.len() as u64),
            false => switches(self.rows as u64),
        }
    }

    fn half(&self, session: &mut Session, board: &mut Switchboard) -> Result<PlaneRows, Error> {
        let me = session.me();
        let rows = match self.tables[me.index()] {
            Some(table) => PlaneRows::of(table)?,
            None => PlaneRows::zeros(self.layout, self.rows)?,
        };
        match (me == self.server, self.extended) {
            (true, false) => board.serve_permutation(session, rows),
            (true, true) => board.serve_extension(session, rows, self.map.len()),
            (false, false) => board.permute(session, rows, route(self.map.to_vec())?),
            (false, true) => board.extend(session, rows, ExtendedMap::new(self.rows, self.map)?),
        }
    }

    fn both(&self, cluster: &Cluster, kind: OtKind) -> [(PayloadTable, Traffic); 2] {
        let done = cluster.run(|session| {
            let mut board = Switchboard::new(session, kind, self.expected_gates())?;
            let rows = self.half(session, &mut board)?;
            Ok((rows.table(rows.len())?, session.traffic().clone()))
        });
        let mut done = done.into_iter().map(Result::unwrap);
        [done.next().unwrap(), done.next().unwrap()]
    }

    fn price(&self, kind: OtKind) -> base::Cost {
        let mut bill = TransferBill::new(kind);
        bill.set_up(self.expected_gates());
        match self.extended {
            true => {
                bill.extension(self.server, self.rows as u64, self.map.len() as u64, self.layout.row_bytes())
            }
            false => bill.permutation(self.server, self.rows as u64, self.layout.row_bytes()),
        }
        bill.cost()
    }

    /// Runs it, against the definition and the price.
    fn check(&self, cluster: &Cluster, kind: OtKind) {
        let [(a, ledger_a), (b, ledger_b)] = self.both(cluster, kind);
        let joined = |tables: [Option<&PayloadTable>; 2], row: u64, field: usize| {
            let [x, y] = tables.map(|table| table.map_or(0, |table| table.get(row, field)));
            self.layout.fields()[field].join(x, y)
        };
        assert_eq!(a.rows() as usize, self.map.len());
        for (row, &from) in self.map.iter().enumerate() {
            for field in 0..self.layout.fields().len() {
                let (is, should) = (
                    joined([Some(&a), Some(&b)], row as u64, field),
                    joined(self.tables, u64::from(from), field),
                );
                assert_eq!(is, should, "row {row} field {field} of {}, {kind}", self.rows);
            }
        }
        let price = self.price(kind);
        assert_eq!(price.sent, [ledger_a.sent(""), ledger_b.sent("")], "{kind} {} rows", self.rows);
        assert_eq!(price.ots, ledger_a.ots(""));
        assert_eq!(price.rounds, ledger_a.turns("").max(ledger_b.turns("")), "{kind} {} rows", self.rows);
    }
}

#[test]
fn shares_of_the_permuted_table_come_out_in_both_directions() {
    let (mut rng, layout) = (rng(1), mixed());
    for (i, n) in [0, 1, 2, 3, 4, 5, 17, 64, 100, 1000].into_iter().enumerate() {
        let (map, table, other) =
            (shuffled(n, &mut rng), random(&layout, n, &mut rng), random(&layout, n, &mut rng));
        for server in [PartyId(0), PartyId(1)] {
            let mut tables = [None, None];
            tables[server.index()] = Some(&table);
            if n % 2 == 1 {
                tables[1 - server.index()] = Some(&other);
            }
            let run = Run { server, tables, layout: &layout, rows: n, map: &map, extended: false };
            run.check(&Cluster::new(2, n as u64), KINDS[i % 3]);
        }
    }
}

#[test]
fn a_map_with_repeats_and_gaps_is_an_extension() {
    let (mut rng, layout) = (rng(2), mixed());
    for (i, (n, slots)) in
        [(1, 0), (1, 1), (1, 9), (3, 2), (37, 120), (120, 37), (64, 64)].into_iter().enumerate()
    {
        let map: Vec<u32> = (0..slots).map(|_| rng.below(n) as u32).collect();
        let (table, other) = (random(&layout, n as usize, &mut rng), random(&layout, n as usize, &mut rng));
        let tables = if i % 2 == 0 { [Some(&table), Some(&other)] } else { [Some(&table), None] };
        let run =
            Run { server: PartyId(0), tables, layout: &layout, rows: n as usize, map: &map, extended: true };
        run.check(&Cluster::new(2, n), KINDS[i % 3]);
    }
}

#[test]
fn more_gates_than_a_chunk_of_ots_and_rows_of_all_widths() {
    let mut rng = rng(3);
    let layouts =
        [vec![TableField::bits(1)], vec![TableField::number(8)], vec![TableField::number(8); 200], vec![]];
    for (fields, kind) in layouts.into_iter().zip([KINDS[0], OtKind::Ferret, KINDS[1], KINDS[0]]) {
        let layout = PayloadLayout::new(fields).unwrap();
        let n = 10_000;
        let (map, table) = (shuffled(n, &mut rng), random(&layout, n, &mut rng));
        let tables = [None, Some(&table)];
        let run = Run { server: PartyId(1), tables, layout: &layout, rows: n, map: &map, extended: false };
        run.check(&Cluster::new(2, 4), kind);
    }
}

#[test]
fn it_streams_through_a_tiny_window() {
    let (mut rng, layout) = (rng(5), mixed());
    let n = 3000;
    let (map, table) = (shuffled(n, &mut rng), random(&layout, n, &mut rng));
    for kind in KINDS {
        let tables = [Some(&table), None];
        let run = Run { server: PartyId(0), tables, layout: &layout, rows: n, map: &map, extended: false };
        let [(a, _), (b, _)] = run.both(&Cluster::new(2, 6).tiny_window(), kind);
        for (row, &from) in map.iter().enumerate() {
            for (f, field) in layout.fields().iter().enumerate() {
                let is = field.join(a.get(row as u64, f), b.get(row as u64, f));
                assert_eq!(is, table.get(u64::from(from), f));
            }
        }
    }
}

/// What both parties said while one permuted rows of this table, and under which step.
fn transcript(seed: u8, table: &PayloadTable, map: &[u32], extended: bool) -> [Vec<(String, Vec<u8>)>; 2] {
    let (sessions, records) = tap::tapped(seed, 30_000, [tap::Fault::None, tap::Fault::None]);
    let tables = [Some(table), None];
    let rows = table.rows() as usize;
    let run = Run { server: PartyId(0), tables, layout: table.layout(), rows, map, extended };
    tap::run_both(sessions, |session| {
        let mut board = Switchboard::new(session, KINDS[0], run.expected_gates()).unwrap();
        run.half(session, &mut board).map(drop).unwrap();
    });
    records.map(|record| std::mem::take(&mut *record.lock().unwrap()))
}

/// The settings that R sends behind the OTs of a chunk: the only message of this length.
fn settings(said: &[(String, Vec<u8>)], gates: u64) -> Vec<u8> {
    let mut found =
        said.iter().filter(|(step, bytes)| step == "permute" && bytes.len() as u64 == gates.div_ceil(8));
    let bytes = found.next().unwrap().1.clone();
    assert!(found.next().is_none());
    bytes
}

#[test]
fn what_is_said_depends_on_sizes_alone_and_looks_random() {
    let (n, layout) = (1000, PayloadLayout::new([TableField::number(8), TableField::bits(64)]).unwrap());
    let table = PayloadTable::zeros(layout, n).unwrap();
    let straight: Vec<u32> = (0..n as u32).collect();
    let reversed: Vec<u32> = straight.iter().rev().copied().collect();
    let same = vec![0; n as usize];
    let shape = |said: &[Vec<(String, Vec<u8>)>; 2]| {
        said.each_ref().map(|said| said.iter().map(|(s, b)| (s.clone(), b.len())).collect::<Vec<_>>())
    };
    for (extended, maps) in [(false, [&straight, &reversed]), (true, [&straight, &same])] {
        let seen = maps.map(|map| shape(&transcript(1, &table, map, extended)));
        assert_eq!(seen[0], seen[1]);
    }
    for map in [&straight, &reversed] {
        let [by_server, by_chooser] = transcript(2, &table, map, false);
        // 8,977 switches: mean 4,489 ones, deviation 47.
        let ones: u32 = settings(&by_chooser, switches(n)).iter().map(|byte| byte.count_ones()).sum();
        assert!((4_250..4_730).contains(&ones), "{ones}");
        let z: Vec<u8> =
            by_server.iter().filter(|(s, _)| s == "permute").flat_map(|(_, b)| b.clone()).collect();
        assert_eq!(z.len() as u64, 16 * switches(n));
        let mut counts = [0u32; 256];
        z.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        // PlaneRows are zeros, z is not: 255 degrees of freedom, mean 255, deviation 23.
        let expected = z.len() as f64 / 256.0;
        let spread: f64 = counts.iter().map(|c| (f64::from(*c) - expected).powi(2) / expected).sum();
        assert!(spread < 400.0, "{spread}");
        let blocks = z.chunks(16).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(blocks.len() as u64, switches(n), "a pad repeats");
    }
}

#[test]
fn one_board_serves_many_networks_in_both_directions() {
    let (mut rng, layout) = (rng(7), mixed());
    let n = 300;
    let (first, second, map) = (shuffled(n, &mut rng), shuffled(n, &mut rng), vec![5, 5, 299, 0, 5]);
    let table = random(&layout, n, &mut rng);
    // Party 1 permutes, party 0 permutes the result, party 1 fills slots from that.
    let done = Cluster::new(2, 8).run(|session| {
        let mut board = Switchboard::new(session, KINDS[0], switches(n as u64))?;
        let rows = if session.me().0 == 0 {
            let rows = board.serve_permutation(session, PlaneRows::of(&table)?)?;
            let rows = board.permute(session, rows, route(second.clone())?)?;
            board.serve_extension(session, rows, map.len())?
        } else {
            let rows = board.permute(session, PlaneRows::zeros(&layout, n)?, route(first.clone())?)?;
            let rows = board.serve_permutation(session, rows)?;
            board.extend(session, rows, ExtendedMap::new(n, &map)?)?
        };
        rows.table(map.len())
    });
    let [a, b]: [PayloadTable; 2] =
        done.into_iter().map(Result::unwrap).collect::<Vec<_>>().try_into().ok().unwrap();
    for (slot, &row) in map.iter().enumerate() {
        let from = first[second[row as usize] as usize];
        for (f, field) in layout.fields().iter().enumerate() {
            let is = field.join(a.get(slot as u64, f), b.get(slot as u64, f));
            assert_eq!(is, table.get(u64::from(from), f));
        }
    }
}

#[test]
fn sizes_that_do_not_fit_are_misuse() {
    let layout = mixed();
    let done = Cluster::new(2, 1).run(|session| {
        let mut board = Switchboard::new(session, KINDS[0], 10)?;
        let settings = route(vec![1, 0, 2])?;
        let wrong =
            board.permute(session, PlaneRows::zeros(&layout, 4)?, settings).err().unwrap().to_string();
        let map = ExtendedMap::new(3, &[2, 2])?;
        let other = board.extend(session, PlaneRows::zeros(&layout, 4)?, map).err().unwrap().to_string();
        Ok([wrong, other])
    });
    for errors in done {
        let [permutation, map] = errors.unwrap();
        assert!(permutation.contains("a permutation of another number of rows"), "{permutation}");
        assert!(map.contains("a map from another number of rows"), "{map}");
    }
    assert!(ExtendedMap::new(3, &[3]).err().unwrap().to_string().contains("a row that is not there"));
}
