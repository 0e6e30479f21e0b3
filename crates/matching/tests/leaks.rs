//! What a party sees: its shape depends on the sizes alone, and its order says nothing of the peer's rows.

mod common;
#[path = "common/curious.rs"]
mod curious;
#[path = "common/tap.rs"]
mod tap;

use base::Seed;
use common::{Column, ids};
use curious::{Claim, curious, u_c};
use matching::{
    MatchOptions, Matcher, PairSizes, PrivateId,
    group::{Exponent, GroupElement, mul_batch},
    pid,
};
use std::collections::BTreeSet;
use tap::{Fault, run_both, tapped};

fn options() -> MatchOptions {
    MatchOptions { threads: 1, ..MatchOptions::default() }
}

/// The messages of both parties in an honest run.
fn transcript(seed: u8, x: &[String], y: &[String]) -> [Vec<(String, Vec<u8>)>; 2] {
    dealt_transcript(seed, x, y, 1)
}

/// The same with so many partitions.
fn dealt_transcript(seed: u8, x: &[String], y: &[String], partitions: u32) -> [Vec<(String, Vec<u8>)>; 2] {
    let options = || MatchOptions { partitions, ..options() };
    let columns = [Column::new(x), Column::new(y)];
    let (sessions, records) = tapped(seed, 30_000, [Fault::None, Fault::None]);
    run_both(sessions, |s| PrivateId.run(s, &columns[s.me().index()].flat(), None, &options()).map(drop))
        .into_iter()
        .for_each(|done| done.unwrap());
    records.map(|r| std::mem::take(&mut *r.lock().unwrap()))
}

fn shape(messages: &[(String, Vec<u8>)]) -> Vec<(String, usize)> {
    messages.iter().map(|(step, bytes)| (step.clone(), bytes.len())).collect()
}

fn elements(messages: &[(String, Vec<u8>)], step: &str) -> Vec<GroupElement> {
    let of_step = messages.iter().filter(|(s, bytes)| s == step && bytes.len() % 32 == 0);
    of_step.flat_map(|(_, bytes)| bytes.as_chunks().0.to_vec()).collect()
}

/// Messages of party 0 and 1 as someone would make them up who knows the sizes only. Slices of the e step
/// hold as many elements as those of uniform ones, so they are summed up.
fn simulate(sizes: PairSizes) -> [Vec<(String, usize)>; 2] {
    let [n_c, n_p] = sizes.rows.map(|n| n as usize);
    let [only_c, only_p] = [n_c, n_p].map(|n| n - sizes.shared() as usize);
    assert!(n_c.max(n_p) <= pid::CHUNK as usize, "one chunk per column, one slice");
    let line = |step: &str, bytes: usize| (format!("pid/{step}"), bytes);
    let start = |own: usize, peer: usize| {
        vec![line("count", 72), line("u", own.min(1)), line("u", 32 * own), line("v", 32 * peer)]
    };
    let (mut c, mut p) = (start(n_c, n_p), start(n_p, n_c));
    c.push(line("seal", 32));
    p.push(line("seal", 32));
    c.extend([line("e", 8), line("e", 32 * only_p)]);
    p.extend([line("e", 8), line("e", 32 * n_c)]);
    // A pulse after each of the columns that the other one waits for, if there are rows.
    c.extend([only_c.min(1), 32 * only_c].map(|bytes| line("difference", bytes)));
    p.extend([32 * only_p, only_c.min(1)].map(|bytes| line("difference", bytes)));
    [c, p].map(|mut lines| {
        lines.push(line("spine", 32));
        lines.retain(|(_, bytes)| *bytes > 0);
        lines
    })
}

#[test]
fn the_view_has_the_shape_that_sizes_give() {
    // Three overlaps of the same size in different places, and edges.
    let cases = [
        (ids(0..50), ids(30..100)),
        (ids(0..50), ids(0..20)),
        (ids(0..50), ids(60..65)),
        (ids(0..3), ids(0..3)),
    ];
    for (x, y) in cases {
        let union = common::expected_union(&x, &y);
        let sizes = PairSizes::new([x.len() as u64, y.len() as u64], union);
        let seen = transcript(1, &x, &y).map(|messages| shape(&messages));
        assert_eq!(seen, simulate(sizes));
    }
    let ends = [ids(0..20), ids(30..50)].map(|y| transcript(1, &ids(0..50), &y).map(|m| shape(&m)));
    assert_eq!(ends[0], ends[1], "where the shared rows lie shows");
}

#[test]
fn everything_but_answers_is_sorted_and_no_element_appears_twice() {
    let [c, p] = transcript(2, &ids(0..300), &ids(100..500));
    let (u_c, u_p) = (elements(&c, "pid/u"), elements(&p, "pid/u"));
    let (e_c, s_p, s_c) = (elements(&p, "pid/e"), elements(&c, "pid/e"), elements(&c, "pid/difference"));
    for (column, len) in [(&u_c, 300), (&u_p, 400), (&e_c, 300), (&s_p, 200), (&s_c, 100)] {
        assert_eq!(column.len(), len);
        assert!(column.is_sorted());
    }
    // Products under different keys never meet, apart from s_p and e_c which C must not have in common.
    let answers = [elements(&c, "pid/v"), elements(&p, "pid/v"), elements(&p, "pid/difference")];
    let all: Vec<GroupElement> = [u_c, u_p, e_c, s_p, s_c].into_iter().chain(answers).flatten().collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
}

/// How many of the rows sent first match, as read off as many elements of `e_c`.
fn matches_among_first(rows: usize, e_c: &[GroupElement], e_p: &[GroupElement]) -> usize {
    let e_p: BTreeSet<_> = e_p.iter().collect();
    e_c[..rows].iter().filter(|e| e_p.contains(e)).count()
}

#[test]
fn match_counts_of_known_subsets_do_not_come_out() {
    // P has a list that C knows. Of it, C takes the rows that it will send first, and ends with as many that
    // P lacks.
    let pool = 2 * pid::CHUNK as u32;
    let half = |range, high: bool| {
        let names = ids(range);
        let places = u_c(&names);
        names.into_iter().zip(places).filter(|(_, u)| (u[0] >= 0x80) == high).map(|(name, _)| name).collect()
    };
    let (mut x, rest): (Vec<String>, Vec<String>) = (half(0..pool, false), half(pool..3 * pool, true));
    let targets = x.len();
    x.extend(rest.into_iter().take(targets));
    assert_eq!(x.len(), 2 * targets);
    let y = ids(0..pool);
    let column = Column::new(&y);
    let (sessions, records) = tapped(4, 30_000, [Fault::None, Fault::None]);
    let mut seen = run_both(sessions, |session| {
        if session.me().0 == 0 {
            return Some(curious(session, &x, y.len() as u64, 0, Claim::All).unwrap());
        }
        let gone = PrivateId.run(session, &column.flat(), None, &options()).unwrap_err().to_string();
        assert!(gone.starts_with("hospitals at pid/"), "{gone}");
        None
    });
    let (e_c, e_p) = seen[0].take().unwrap();
    let total = e_c.iter().collect::<BTreeSet<_>>().intersection(&e_p.iter().collect()).count();
    assert_eq!(total, targets, "the size of the intersection is known");
    // Half of the targets is the mean, 32 the standard deviation of what a whole permutation leaves.
    let found = matches_among_first(targets, &e_c, &e_p);
    assert!(found.abs_diff(targets / 2) < 320, "{found} matches among the first rows: their order survived");

    // The attack works against a shuffle per chunk: P's own `t` would be v_c before p2, in u_c order; in its
    // stead we put e_c back into u_c order, which only this test can, by whether an element is in e_p.
    let shared: BTreeSet<_> = e_p.iter().collect();
    let mut in_order: Vec<GroupElement> = e_c.clone();
    in_order.sort_by_key(|e| !shared.contains(e));
    let mut rng = Seed::from_bytes([5; 32]).into_rng();
    in_order.chunks_mut(targets).for_each(|piece| rng.shuffle(piece));
    assert_eq!(matches_among_first(targets, &in_order, &e_p), targets, "the attack would have worked");
    assert_eq!(elements(&records[1].lock().unwrap(), "pid/e"), e_c);
}

/// Partitions hold as many elements as those of uniform ones: summed up by step, the view is as before but
/// for the sizes of all partitions but one, and where the shared rows lie does not show in it.
#[test]
fn the_view_of_partitions_is_that_of_one_dealt_by_its_own_bits() {
    let (x, y) = (ids(0..300), ids(100..500));
    let whole = transcript(2, &x, &y);
    for (partitions, bits) in [(4, 2), (16, 4)] {
        let seen = dealt_transcript(2, &x, &y, partitions);
        for party in 0..2 {
            for step in ["pid/u", "pid/v", "pid/seal", "pid/spine"] {
                let sum = |of: &[(String, Vec<u8>)]| -> usize {
                    of.iter().filter(|(at, _)| at == step).map(|(_, bytes)| bytes.len()).sum()
                };
                assert_eq!(sum(&seen[party]), sum(&whole[party]), "{step}");
            }
            let told: Vec<_> = seen[party].iter().filter(|(step, _)| step == "pid/count").collect();
            assert_eq!(
                told.iter().map(|(_, m)| m.len()).collect::<Vec<_>>(),
                [72, 8 * (partitions - 1) as usize]
            );
            // u, e_c, s_p and s'_c are sorted as a whole, whatever they are dealt into; what is told of sizes
            // is how many of u begin with these bits.
            let u = elements(&seen[party], "pid/u");
            assert!(u.is_sorted() && u == elements(&whole[party], "pid/u"));
            let sizes = told[1].1.as_chunks::<8>().0.iter().map(|size| u64::from_le_bytes(*size));
            for (part, size) in sizes.enumerate() {
                let held = u.iter().filter(|e| usize::from(e[0]) >> (8 - bits) == part).count();
                assert_eq!(held as u64, size);
            }
            assert!(elements(&seen[party], "pid/e").is_sorted());
        }
        assert!(elements(&seen[0], "pid/difference").is_sorted());
    }
}

/// The first key of party 1 in a run of this seed.
fn first_key_of_p(seed: u8) -> Exponent {
    let mut rng = Seed::from_bytes([seed; 32]).fork("1").fork("1 pid keys 1").into_rng();
    let _salt: [u8; 32] = rng.bytes();
    Exponent::from_bytes(rng.bytes()).unwrap()
}

/// C puts identifiers that P may have into one half of `u_c`, and others into the other half. A unit `e` that
/// did not wait for all units `v` would have told how many of the former match; the barrier is what stops it.
#[test]
fn a_slice_that_waits_for_every_partition_says_nothing_of_one() {
    let y = ids(0..2000);
    // The first byte of an element is uniform, so its first bit names the half.
    let by_bit = |range, bit: u8, most: usize| -> Vec<String> {
        let names = ids(range);
        let places = u_c(&names);
        let chosen = names.into_iter().zip(places).filter(|(_, u)| u[0] >> 7 == bit);
        chosen.map(|(name, _)| name).take(most).collect()
    };
    let mut x = by_bit(0..2000, 0, 900);
    let targets = x.len();
    x.extend(by_bit(2000..5000, 1, targets));
    assert_eq!(x.len(), 2 * targets);
    let column = Column::new(&y);
    let run = |claim: Claim| {
        let (sessions, records) = tapped(4, 10_000, [Fault::None, Fault::None]);
        let done = run_both(sessions, |session| {
            if session.me().0 == 0 {
                return (session.step("pid", |s| curious(s, &x, 2000, 1, claim)).ok(), String::new());
            }
            let options = MatchOptions { partitions: 2, ..options() };
            let gone = PrivateId.run(session, &column.flat(), None, &options).unwrap_err().to_string();
            (None, gone)
        });
        let said: Vec<GroupElement> = elements(&records[1].lock().unwrap(), "pid/e");
        (done, said)
    };
    let ([(seen, _), _], _) = run(Claim::All);
    let (e_c, e_p) = seen.expect("C is served as long as it follows the protocol");
    let matched = |slice: &[GroupElement]| {
        let e_p: BTreeSet<_> = e_p.iter().collect();
        slice.iter().filter(|e| e_p.contains(e)).count()
    };
    assert_eq!(matched(&e_c), targets, "the size of the intersection is known");
    // A fair share of each half of e_c: its standard deviation is 21.
    let first: Vec<GroupElement> = e_c.iter().copied().filter(|e| e[0] < 0x80).collect();
    assert!(matched(&first).abs_diff(targets / 2) < 210, "{} of {targets}", matched(&first));

    // Without the barrier, unit e of what unit v of the first half made: all of it matches, and none of the
    // rest, so C reads off how many of the rows it chose match.
    let mut t: Vec<GroupElement> = u_c(&x).into_iter().filter(|u| u[0] < 0x80).collect();
    mul_batch(&mut t, &first_key_of_p(4), 1).unwrap();
    t.sort_unstable();
    assert!(t.iter().all(|e| e_c.contains(e)), "it is a part of e_c");
    assert_eq!((t.len(), matched(&t)), (targets, targets), "the attack would have worked");

    // With it, nothing leaves for a claim that is not of all streams, or only repeats what it heard.
    for claim in [Claim::First, Claim::Echo] {
        let ([(seen, _), (_, refusal)], said) = run(claim);
        assert!(seen.is_none() && said.is_empty(), "{claim:?}: e left");
        let text = "hospitals at pid/seal with registry: the peer deviated from the protocol: all of u and v \
                    is said before any of e, and both have the same of it";
        assert_eq!(refusal, text);
    }
}
