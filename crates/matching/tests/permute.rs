//! Shares of permuted tables between two parties: against the definition, the price against the ledger, and what
//! either party sees.

mod common;
#[path = "common/tap.rs"]
mod tap;

use base::{Error, PartyId, Rng, Seed};
use matching::permute::{self, Bill, Extension, Rows, Switchboard, network::switches, route};
use matching::{Field, Layout, Table};
use net::cluster::Cluster;
use net::{Ledger, Session};
use ot::OtKind;

const KINDS: [OtKind; 3] = [OtKind::SoftSpoken { k: 2 }, OtKind::SoftSpoken { k: 1 }, OtKind::Ferret];

fn rng(seed: u8) -> Rng {
    Seed::from_bytes([seed; 32]).into_rng()
}

fn mixed() -> Layout {
    let fields = [Field::bits(9), Field::number(4), Field::number(16), Field::bits(128), Field::number(5)];
    Layout::new(fields.into_iter().chain([Field::number(8), Field::number(8)])).unwrap()
}

fn random(layout: &Layout, rows: usize, rng: &mut Rng) -> Table {
    let mut table = Table::zeros(layout.clone(), rows as u64).unwrap();
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
    tables: [Option<&'a Table>; 2],
    layout: &'a Layout,
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

    fn half(&self, session: &mut Session, board: &mut Switchboard) -> Result<Rows, Error> {
        let me = session.me();
        let rows = match self.tables[me.index()] {
            Some(table) => Rows::of(table)?,
            None => Rows::zeros(self.layout, self.rows)?,
        };
        match (me == self.server, self.extended) {
            (true, false) => board.serve_permutation(session, rows),
            (true, true) => board.serve_extension(session, rows, self.map.len()),
            (false, false) => board.permute(session, rows, route(self.map)?),
            (false, true) => board.extend(session, rows, Extension::new(self.rows, self.map)?),
        }
    }

    fn both(&self, cluster: &Cluster, kind: OtKind) -> [(Table, Ledger); 2] {
        let done = cluster.run(|session| {
            let mut board = Switchboard::new(session, kind, self.expected_gates())?;
            let rows = self.half(session, &mut board)?;
            Ok((rows.table(rows.len())?, session.ledger().clone()))
        });
        let mut done = done.into_iter().map(Result::unwrap);
        [done.next().unwrap(), done.next().unwrap()]
    }

    fn price(&self, kind: OtKind) -> base::Cost {
        let mut bill = Bill::new(kind);
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
        let joined = |tables: [Option<&Table>; 2], row: u64, field: usize| {
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
    let layouts = [vec![Field::bits(1)], vec![Field::number(8)], vec![Field::number(8); 200], vec![]];
    for (fields, kind) in layouts.into_iter().zip([KINDS[0], OtKind::Ferret, KINDS[1], KINDS[0]]) {
        let layout = Layout::new(fields).unwrap();
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
