//! What a party of circuit-PSI sees: messages whose shape sizes give, and bytes that look alike whatever rows
//! are shared.

mod common;
#[path = "common/tap.rs"]
mod tap;

use common::{Column, ids, with_layouts};
use matching::{
    CircuitJoin, JoinedPart, JoinedShares, MatchOptions, Matcher, PayloadLayout, PayloadTable, TableField,
    ValidEntries,
};
use ot::OtKind;
use tap::{Fault, run_both, tapped};

fn layout() -> PayloadLayout {
    PayloadLayout::new([TableField::number(8), TableField::bits(16)]).unwrap()
}

type Messages = Vec<(String, Vec<u8>)>;

/// What both send in an honest run, and what they get. Every row of the sender has the payload `value`.
fn transcript(seed: u8, x: &[String], y: &[String], value: u128) -> ([Messages; 2], [JoinedShares; 2]) {
    let columns = [Column::new(x), Column::new(y)];
    let mut payload = PayloadTable::zeros(layout(), y.len() as u64).unwrap();
    (0..y.len() as u64).for_each(|row| (0..2).for_each(|field| payload.set(row, field, value)));
    let (sessions, records) = tapped(seed, 30_000, [Fault::None, Fault::None]);
    let options = MatchOptions { ot: Some(OtKind::default()), ..MatchOptions::default() };
    let joined = run_both(sessions, |s| {
        let me = s.me().index();
        CircuitJoin
            .run(
                s,
                &columns[me].flat(),
                (me == 1).then_some(&payload as _),
                &with_layouts(&options, [PayloadLayout::default(), layout()]),
            )
            .unwrap()
            .shares()
            .unwrap()
    });
    (records.map(|r| std::mem::take(&mut *r.lock().unwrap())), joined)
}

fn shape(messages: &Messages) -> Vec<(String, usize)> {
    messages.iter().map(|(step, bytes)| (step.clone(), bytes.len())).collect()
}

fn bytes(messages: &Messages, step: &str) -> Vec<u8> {
    messages.iter().filter(|(s, _)| s == step).flat_map(|(_, bytes)| bytes.clone()).collect()
}

/// Standard deviations by which ones are off a half.
fn bias(bytes: impl IntoIterator<Item = u8>) -> f64 {
    let (ones, bits) =
        bytes.into_iter().fold((0f64, 0f64), |(o, n), b| (o + f64::from(b.count_ones()), n + 8.0));
    (ones - bits / 2.0) / (bits / 4.0).sqrt()
}

const PIECES: &str = "circuit-psi/pieces";

/// No overlap, some, all, and other names of the same number: one shape, to the number and length of
/// messages.
#[test]
fn shapes_depend_on_sizes_alone() {
    let x = ids(0..400);
    let [none, some, all] = [ids(1000..1400), ids(300..700), ids(0..400)].map(|y| {
        let (messages, _) = transcript(1, &x, &y, 7);
        messages.map(|m| shape(&m))
    });
    assert_eq!(none, some);
    assert_eq!(some, all);
    let (other, _) = transcript(2, &ids(5000..5400), &ids(0..400), 8);
    assert_eq!(other.map(|m| shape(&m)), all);
}

/// The receiver's store is masked, the sender's table uniform, and tags are opened under one-time pads: ones
/// are balanced in what each sends, byte position by byte position, whether rows match and whatever the
/// payload is.
#[test]
fn what_is_sent_looks_uniform_whatever_is_shared() {
    for (seed, y, value) in [(3, ids(0..3000), 0), (4, ids(9000..12_000), 0), (5, ids(0..3000), u128::MAX)] {
        let (messages, _) = transcript(seed, &ids(0..3000), &y, value);
        for (party, width) in [(0, 16), (1, 7 + 10)] {
            let sent = bytes(&messages[party], PIECES);
            assert!(sent.len() > 50_000 && sent.len().is_multiple_of(width));
            for at in 0..width {
                let off = bias(sent.iter().skip(at).step_by(width).copied());
                assert!(off.abs() < 6.0, "byte {at} of party {party} is off by {off}");
            }
            // Entry by entry: no entry is another one's copy or left blank.
            let entries: std::collections::HashSet<&[u8]> = sent.chunks_exact(width).collect();
            assert_eq!(entries.len(), sent.len() / width, "entries repeat");
            let online = bias(bytes(&messages[party], "circuit-psi/equal/online"));
            assert!(online.abs() < 6.0, "openings are off by {online}");
        }
    }
}

/// A party's shares alone say nothing: they are balanced at matched and at unmatched bins, with payload of
/// all zeros or all ones.
#[test]
fn shares_of_one_party_are_balanced() {
    for value in [0, u128::MAX] {
        let (_, joined) = transcript(6, &ids(0..3000), &ids(1500..4500), value);
        let [r, s] = &joined;
        let bits = |j: &JoinedShares| match &j.valid {
            ValidEntries::Shared(bits) => bits.clone(),
            _ => panic!("validity is shared"),
        };
        let (mine, theirs) = (bits(r), bits(s));
        for party in &joined {
            let JoinedPart::Shared(table) = &party.parts[1] else { panic!("payload is shared") };
            let table = table.whole().unwrap();
            for wanted in [0, 1] {
                let bins = (0..party.rows).filter(|&bin| {
                    (kernels::bit(&mine, bin as usize) ^ kernels::bit(&theirs, bin as usize)) == wanted
                });
                let off = bias(bins.flat_map(|bin| table.row(bin).to_vec()));
                assert!(off.abs() < 6.0, "shares of bins with bit {wanted} are off by {off}");
            }
            let whole = party.rows as usize / 64;
            let off = bias(bits(party)[..whole].iter().flat_map(|word| word.to_le_bytes()));
            assert!(off.abs() < 6.0, "shares of the bit are off by {off}");
        }
    }
}

/// Salts make bins of a run its own: where the receiver's rows lie in two runs is unrelated.
#[test]
fn bins_are_fresh_in_every_run() {
    let place = |seed: u8| {
        let (_, [r, _]) = transcript(seed, &ids(0..300), &ids(0..300), 1);
        let JoinedPart::Mine(rows) = &r.parts[0] else { panic!("own rows") };
        rows.clone()
    };
    let (a, b) = (place(7), place(8));
    let same = a.iter().zip(&b).filter(|(a, b)| a == b && **a != matching::payload::ABSENT).count();
    assert!(same < 10, "{same} rows in the same bins");
}
