//! Rows moved into shares by Paillier encryption, between two parties.

mod common;
#[path = "common/tap.rs"]
mod tap;

use base::{Error, PartyId, Seed};
use matching::paillier::{self, PayloadGiver};
use matching::permute::TransferBill;
use matching::{PayloadLayout, PayloadTable, TableField};
use net::cluster::Cluster;
use net::{Session, Traffic};
use ot::OtKind;
use tap::{Fault, run_both, tapped};

fn layout(fields: &[TableField]) -> PayloadLayout {
    PayloadLayout::new(fields.iter().copied()).unwrap()
}

fn random_table(layout: &PayloadLayout, rows: u64, seed: u8) -> PayloadTable {
    let mut table = PayloadTable::zeros(layout.clone(), rows).unwrap();
    let mut rng = Seed::from_bytes([seed; 32]).into_rng();
    table.bytes_mut().iter_mut().for_each(|byte| *byte = rng.below(256) as u8);
    table
}

/// What this party does: party 0 gives.
fn work(session: &mut Session, table: &PayloadTable, map: &[u32]) -> Result<PayloadTable, Error> {
    session.step("paillier", |session| {
        if session.me() == PartyId(0) {
            let seed = session.fork_seed("giver");
            let giver = PayloadGiver::prepare(&seed, table.rows(), table.layout(), 1);
            giver.give(session, table, map.len() as u64)
        } else {
            paillier::take(session, table.layout(), table.rows(), map, 1)
        }
    })
}

fn run(cluster: &Cluster, table: &PayloadTable, map: &[u32]) -> [(PayloadTable, Traffic); 2] {
    let done = cluster.run(|session| {
        let shares = work(session, table, map)?;
        Ok((shares, session.traffic().clone()))
    });
    <[Result<_, Error>; 2]>::try_from(done).ok().unwrap().map(|party| party.unwrap())
}

fn joined(table: &PayloadTable, shares: [&PayloadTable; 2], map: &[u32]) {
    for (t, &row) in map.iter().enumerate() {
        for (i, field) in table.layout().fields().iter().enumerate() {
            let [mine, theirs] = shares.map(|share| share.get(t as u64, i));
            assert_eq!(field.join(mine, theirs), table.get(u64::from(row), i), "row {row} field {i}");
        }
    }
}

#[test]
fn shares_join_to_the_mapped_rows_and_cost_their_price() {
    let cases: [(PayloadLayout, u64, &[u32]); 5] = [
        (layout(&[TableField::number(8)]), 5, &[3, 0, 3]),
        (
            layout(&[
                TableField::bits(9),
                TableField::number(5),
                TableField::number(16),
                TableField::bits(3),
            ]),
            4,
            &[2, 1, 1],
        ),
        (layout(&[TableField::number(8); 16]), 2, &[1, 0]),
        (layout(&[TableField::number(4)]), 40, &(0..40).rev().collect::<Vec<u32>>()),
        (layout(&[]), 3, &[1]),
    ];
    for (seed, (layout, rows, map)) in (1..).zip(cases) {
        let table = random_table(&layout, rows, seed);
        let [(a, ledger_a), (b, ledger_b)] = run(&Cluster::new(2, seed.into()), &table, map);
        joined(&table, [&a, &b], map);
        let mut bill = TransferBill::new(OtKind::default());
        paillier::bill(&mut bill, PartyId(0), rows, map.len() as u64, &layout);
        let price = bill.cost();
        assert_eq!([ledger_a.sent(""), ledger_b.sent("")], [price.sent[0], price.sent[1]]);
        assert_eq!(ledger_a.turns("").max(ledger_b.turns("")), price.rounds);
    }
}

#[test]
fn equal_rows_get_unrelated_shares() {
    let layout = layout(&[TableField::number(8)]);
    let table = random_table(&layout, 1, 9);
    let [(a, _), (b, _)] = run(&Cluster::new(2, 9), &table, &[0; 16]);
    joined(&table, [&a, &b], &[0; 16]);
    for share in [a, b] {
        let mut values: Vec<u128> = (0..16).map(|row| share.get(row, 0)).collect();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), 16, "a mask repeats");
    }
}

#[test]
fn nothing_is_said_about_no_rows() {
    let table = random_table(&layout(&[TableField::number(8)]), 3, 1);
    for (shares, ledger) in run(&Cluster::new(2, 1), &table, &[]) {
        assert_eq!((shares.rows(), ledger.sent("")), (0, 0));
    }
}

#[test]
fn a_map_beyond_the_rows_is_refused() {
    let table = random_table(&layout(&[TableField::number(8)]), 3, 1);
    let done = Cluster::new(2, 1).run(|s| work(s, &table, &[3]).map(drop));
    let [_, taker] = <[Result<(), Error>; 2]>::try_from(done).ok().unwrap();
    assert!(taker.unwrap_err().to_string().contains("points beyond the giver's rows"));
}

/// What the victim of `culprit` says.
fn says(culprit: usize, fault: Fault) -> String {
    let table = random_table(&layout(&[TableField::number(8)]), 3, 1);
    let mut faults = [Fault::None, Fault::None];
    faults[culprit] = fault;
    let (sessions, _) = tapped(1, 2_000, faults);
    let mut errors = run_both(sessions, |s| work(s, &table, &[2, 0]).err().map(|e| e.to_string()));
    let error = errors[1 - culprit].take().expect("the victim fails");
    let names = ["registry", "hospitals"];
    let rest = error.strip_prefix(&format!("{} at paillier/", names[1 - culprit]));
    rest.unwrap_or_else(|| panic!("{error}")).replace(&format!(" with {}: ", names[culprit]), " | ")
}

fn zero(bytes: &mut [u8]) {
    bytes[..512].fill(0);
}

fn ones(bytes: &mut [u8]) {
    bytes[..512].fill(0xff);
}

fn even(bytes: &mut [u8]) {
    bytes[0] &= 0xfe;
}

fn short(bytes: &mut [u8]) {
    bytes[255] &= 0x7f;
}

#[test]
fn what_is_no_key_and_no_ciphertext_is_named() {
    let malformed = "malformed message from the peer: a Paillier";
    let modulus = format!("key | {malformed} modulus is not an odd number of 2048 bits");
    assert_eq!(says(0, Fault::Change("paillier/key", 0, even)), modulus);
    assert_eq!(says(0, Fault::Change("paillier/key", 0, short)), modulus);
    for (culprit, step) in [(0, "rows"), (1, "answers")] {
        let path = if culprit == 0 { "paillier/rows" } else { "paillier/answers" };
        let says = |change| says(culprit, Fault::Change(path, 0, change));
        assert_eq!(says(zero), format!("{step} | {malformed} ciphertext is zero"));
        let large = format!("{step} | {malformed} ciphertext is not below the square of the modulus");
        assert_eq!(says(ones), large);
    }
}

#[test]
fn a_peer_that_dies_at_any_step() {
    for (culprit, step) in [(0, "paillier/key"), (0, "paillier/rows"), (1, "paillier/answers")] {
        let error = says(culprit, Fault::Cut(step, 0));
        assert!(error.ends_with("see the peer's own output"), "{error}");
        assert!(error.starts_with(step.strip_prefix("paillier/").unwrap()), "{error}, died at {step}");
    }
}
