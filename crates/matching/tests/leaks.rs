//! What a party sees: its shape depends on the sizes alone, and its order says nothing of the peer's rows.

mod common;
#[path = "common/tap.rs"]
mod tap;

use base::Seed;
use common::{Column, ids};
use matching::{
    MatchOptions, Matcher, PairSizes, PrivateId,
    group::{Exponent, GroupElement, hash, mul_batch},
    pid,
};
use net::Session;
use std::collections::BTreeSet;
use tap::{Fault, run_both, tapped};

fn options() -> MatchOptions {
    MatchOptions { threads: 1, ..MatchOptions::default() }
}

/// The messages of both parties in an honest run.
fn transcript(seed: u8, x: &[String], y: &[String]) -> [Vec<(String, Vec<u8>)>; 2] {
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
        vec![line("count", 80), line("u", own.min(1)), line("u", 32 * own), line("v", 32 * peer)]
    };
    let (mut c, mut p) = (start(n_c, n_p), start(n_p, n_c));
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

/// The first key of a curious C, known before the run.
fn first_key() -> Exponent {
    Exponent::random(&mut Seed::from_bytes([8; 32]).into_rng())
}

/// `u_c` of these identifiers.
fn u_c(x: &[String]) -> Vec<GroupElement> {
    let mut u: Vec<GroupElement> = x.iter().map(|id| hash(&[id.as_bytes(), &[0]].concat())).collect();
    mul_batch(&mut u, &first_key(), 1).unwrap();
    u
}

/// A party C that plays honestly, up to the arrival of `e_c`, and returns `e_c` and `e_p`. It has chosen its
/// identifiers by where they will lie among `u_c`.
fn curious(session: &mut Session, x: &[String], rows_p: usize) -> (Vec<GroupElement>, Vec<GroupElement>) {
    let (c1, c2) = (first_key(), Exponent::random(&mut Seed::from_bytes([9; 32]).into_rng()));
    let mut u_c = u_c(x);
    u_c.sort_unstable();
    let chunk = pid::CHUNK as usize;
    let peer = session.me().other();
    let chunks = x.len().max(rows_p).div_ceil(chunk);
    let (mut e_p, mut e_c) = (Vec::new(), vec![[0; 32]; x.len()]);
    let mut link = session.link(peer);
    let mut hello = [0; 80];
    hello[..8].copy_from_slice(&(x.len() as u64).to_le_bytes());
    link.send(&hello).unwrap();
    link.recv(&mut hello).unwrap();
    assert_eq!(hello[..8], (rows_p as u64).to_le_bytes());
    link.send(&[0]).unwrap();
    link.recv(&mut [0]).unwrap();
    for i in 0..chunks + 2 {
        if let Some(u) = u_c.chunks(chunk).nth(i) {
            link.send(u.as_flattened()).unwrap();
        }
        if (1..=rows_p.div_ceil(chunk)).contains(&i) {
            let mut e = vec![[0; 32]; chunk.min(rows_p - (i - 1) * chunk)];
            link.recv(e.as_flattened_mut()).unwrap();
            mul_batch(&mut e, &c1, 1).unwrap();
            let mut v = e.clone();
            e_p.extend(e);
            mul_batch(&mut v, &c2, 1).unwrap();
            link.send(v.as_flattened()).unwrap();
        }
        if (2..x.len().div_ceil(chunk) + 2).contains(&i) {
            let mut v = vec![[0; 32]; chunk.min(x.len() - (i - 2) * chunk)];
            link.recv(v.as_flattened_mut()).unwrap();
        }
    }
    let mut rest = e_c.as_mut_slice();
    while !rest.is_empty() {
        let count = link.recv_count("elements of a slice", rest.len() as u64).unwrap() as usize;
        let (slice, later) = rest.split_at_mut(count);
        link.recv(slice.as_flattened_mut()).unwrap();
        link.send(&0u64.to_le_bytes()).unwrap();
        rest = later;
    }
    (e_c, e_p)
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
            return Some(curious(session, &x, y.len()));
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
