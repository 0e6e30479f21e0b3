//! What is said over the wire does not change unnoticed, and not with the number of threads.

mod common;
#[path = "common/lists.rs"]
mod lists;
#[path = "common/people.rs"]
mod people;

use base::{Error, PartyId, Seed};
use common::{Column, ids, with_layouts};
use matching::permute::{ExtendedMap, PlaneRows, Switchboard, extended};
use matching::{
    AlignedRows, CircuitJoin, InnerJoin, ManyId, MatchOptions, MatchRoles, Matcher, MultiId, PayloadLayout,
    PayloadTable, PrivateId, SaltedKey, ShareBackend, TableField, dummies::Dummies,
};
use net::Session;
use net::cluster::{Cluster, pinned};
use ot::OtKind;
use people::Rows;

/// What is said, if it is the same by one thread and by three.
fn wire(parties: usize, work: impl Fn(&mut Session, usize) -> Result<(), Error> + Sync) -> String {
    let [one, three] = [1, 3].map(|threads| Cluster::new(parties, 9).wire(|session| work(session, threads)));
    if one == three { one } else { format!("{one} by one thread, {three} by three") }
}

fn column(session: &Session) -> Column {
    let from = 40 * u32::from(session.me().0);
    Column::new(&ids(from..from + 100))
}

fn layout() -> PayloadLayout {
    PayloadLayout::new([TableField::number(8), TableField::bits(9)]).unwrap()
}

fn table(rows: u64) -> PayloadTable {
    let mut table = PayloadTable::zeros(layout(), rows).unwrap();
    (0..rows).for_each(|row| table.set(row, 0, u128::from(row * row + 1)));
    table
}

fn dummies() -> Option<Dummies> {
    Some(Dummies::usual(&Seed::from_bytes([1; 32])))
}

fn private_id(dummies: &(dyn Fn() -> Option<Dummies> + Sync)) -> String {
    wire(2, |session, threads| {
        let options = MatchOptions { threads, dummies: dummies(), ..MatchOptions::default() };
        PrivateId.run(session, &column(session).flat(), None, &options).map(drop)
    })
}

fn multi_pid() -> String {
    let rows = [
        Rows::new(2, &[&["a", "b"], &["c"], &["", "d"], &["e", "f"]]),
        Rows::new(3, &[&["b", "", "c"], &["d"], &["f", "g", "h"]]),
    ];
    wire(2, |session, threads| {
        let options = MatchOptions { threads, ..MatchOptions::default() };
        MultiId.run(session, &rows[session.me().index()], None, &options).map(drop)
    })
}

fn many_pid() -> String {
    wire(3, |session, threads| {
        let options = MatchOptions { threads, ..MatchOptions::default() };
        ManyId.run(session, &column(session).flat(), None, &options).map(drop)
    })
}

fn to_shares(session: &mut Session, threads: usize, backend: ShareBackend) -> Result<(), Error> {
    let options = MatchOptions { threads, backend, ..MatchOptions::default() };
    InnerJoin
        .run(
            session,
            &column(session).flat(),
            Some(&table(100)),
            &with_layouts(&options, [layout(), layout()]),
        )
        .map(drop)
}

fn collected() -> String {
    let data = lists::data(&[&["a", "b"], &["c", ""]], &[&["a", ""], &["b", "c"], &["f", ""]]);
    wire(2, |session, threads| {
        let options = MatchOptions { threads, ..lists::options() };
        lists::work(session, &data, &options).map(drop)
    })
}

fn hidden_size(ot: OtKind) -> String {
    wire(2, |session, _| {
        let options = MatchOptions { ot: Some(ot), ..MatchOptions::default() };
        let payload = (session.me() == PartyId(1)).then(|| table(100));
        CircuitJoin
            .run(
                session,
                &column(session).flat(),
                payload.as_ref().map(|table| table as _),
                &with_layouts(&options, [PayloadLayout::default(), layout()]),
            )
            .map(drop)
    })
}

/// Bins and rows of the sender in several pieces.
fn hidden_size_by_pieces() -> String {
    Cluster::new(2, 9).wire(|session| {
        let from = 9000 * u32::from(session.me().0);
        let rows = Column::new(&ids(from..from + 26_000));
        let payload = (session.me() == PartyId(1)).then(|| table(26_000));
        let options = with_layouts(&MatchOptions::default(), [PayloadLayout::default(), layout()]);
        CircuitJoin.run(session, &rows.flat(), payload.as_ref().map(|table| table as _), &options).map(drop)
    })
}

/// Owners with the same rows, and a server that hears how many.
fn aligned() -> String {
    let roles =
        MatchRoles { owners: vec![PartyId(0), PartyId(1)], joiners: vec![], others: vec![PartyId(2)] };
    let options = MatchOptions { roles, ..MatchOptions::default() };
    let rows = Column::new(&ids(0..100));
    wire(3, |session, _| match session.me() {
        PartyId(2) => AlignedRows.serve(session, &options).map(drop),
        _ => AlignedRows.run(session, &rows.flat(), None, &options).map(drop),
    })
}

/// Two owners, two servers that join, and one that hears sizes.
fn salted() -> String {
    let ids = |range: std::ops::Range<u8>| range.map(PartyId).collect::<Vec<_>>();
    let roles = MatchRoles { owners: ids(0..2), joiners: ids(2..4), others: ids(4..5) };
    let salt = Some(Seed::from_bytes([5; 32]).into());
    let options = MatchOptions { roles, salt, ..MatchOptions::default() };
    wire(5, |session, _| match session.me() {
        PartyId(0 | 1) => SaltedKey.run(session, &column(session).flat(), None, &options).map(drop),
        _ => SaltedKey.serve(session, &options).map(drop),
    })
}

/// Party 0 permutes what party 1 has.
fn moved() -> String {
    let map: Vec<u32> = (0..50).map(|slot| slot * slot % 30).collect();
    wire(2, |session, _| {
        let gates = extended::gates(30, map.len() as u64);
        let mut board = Switchboard::new(session, OtKind::default(), gates)?;
        if session.me() == PartyId(1) {
            return board.serve_extension(session, PlaneRows::of(&table(30))?, map.len()).map(drop);
        }
        board.extend(session, PlaneRows::zeros(&layout(), 30)?, ExtendedMap::new(30, &map)?).map(drop)
    })
}

#[test]
fn the_wire_is_pinned() {
    // Threads deal the randomisers of Paillier among themselves, so what is said is theirs to change.
    let paillier = Cluster::new(2, 9).wire(|session| to_shares(session, 1, ShareBackend::Paillier));
    pinned(&[
        ("pid", private_id(&|| None), "5a6c572265ba8cc3"),
        ("dummies, pid", private_id(&dummies), "f3b0aeff2e25677d"),
        ("multi-pid", multi_pid(), "05fb7691a87af6d2"),
        ("many-pid", many_pid(), "ad6e60986f746f88"),
        (
            "ps3i",
            wire(2, |session, threads| to_shares(session, threads, ShareBackend::PermuteShare)),
            "8f3b98bea6e26bb0",
        ),
        ("paillier, ps3i", paillier, "a4ff6022adc0b33c"),
        ("permute-share", moved(), "a8ec6ad877980be9"),
        ("collecting", collected(), "715853565e7a0b4a"),
        ("aligned", aligned(), "1e2ad591d380a9df"),
        ("salted-key", salted(), "ddb5aa2663dd9c7c"),
        ("circuit-psi", hidden_size(OtKind::default()), "d988e5c5518fa713"),
        ("circuit-psi over Ferret", hidden_size(OtKind::Ferret), "fe785668cbc2f590"),
        ("circuit-psi by pieces", hidden_size_by_pieces(), "50f8b347057a18c5"),
    ]);
}
