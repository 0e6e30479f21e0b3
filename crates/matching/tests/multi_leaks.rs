//! What a party of multi-identifier Private-ID sees: shapes that sizes give, rows in orders that say nothing,
//! and nothing of gaps and repeats.

#[path = "common/people.rs"]
mod people;
#[path = "common/tap.rs"]
mod tap;

use base::Seed;
use matching::{
    ContaminatedRule, IdentifierSource, MatchOptions, Matcher, MultiId, RepeatRule,
    group::{Exponent, GroupElement, hash, mul_batch},
    multi_pid,
};
use net::Session;
use people::Rows;
use std::collections::BTreeSet;
use tap::{Fault, run_both, tapped};

type Said = Vec<(String, Vec<u8>)>;

fn options() -> MatchOptions {
    MatchOptions { threads: 1, repeats: RepeatRule::Replace, ..MatchOptions::default() }
}

/// The messages of both parties in an honest run.
fn transcript(sides: [&Rows; 2], options: [&MatchOptions; 2]) -> [Said; 2] {
    let (sessions, records) = tapped(3, 30_000, [Fault::None, Fault::None]);
    run_both(sessions, |s| MultiId.run(s, sides[s.me().index()], None, options[s.me().index()]).map(drop))
        .into_iter()
        .for_each(|done| done.unwrap());
    records.map(|r| std::mem::take(&mut *r.lock().unwrap()))
}

fn shape(messages: &Said) -> Vec<(String, usize)> {
    messages.iter().map(|(step, bytes)| (step.clone(), bytes.len())).collect()
}

fn elements(messages: &Said, step: &str) -> Vec<GroupElement> {
    let of_step = messages.iter().filter(|(s, bytes)| s == step && bytes.len() % 32 == 0);
    of_step.flat_map(|(_, bytes)| bytes.as_chunks().0.to_vec()).collect()
}

fn rows(range: std::ops::Range<u32>) -> Rows {
    Rows { keys: 2, rows: range.map(|i| vec![format!("mail {i}"), format!("phone {i}")]).collect() }
}

/// Messages of party 0 and 1 as someone makes them up who knows the sizes only; all in one chunk.
fn simulate(n: [usize; 2], union: usize) -> [Vec<(String, usize)>; 2] {
    let line = |step: &str, bytes: usize| (format!("multi/{step}"), bytes);
    let c = [line("count", 56), line("u", 64 * n[0]), line("labels", 40), line("labels", 32 * n[0])];
    let p = [line("count", 56), line("u", 64 * n[1]), line("e", 64 * n[0]), line("uids", 32 * n[0])];
    [[&c[..], &[line("spine", 32)]].concat(), [&p[..], &[line("spine", 12 * union)]].concat()]
}

#[test]
fn views_have_the_shape_that_sizes_give() {
    let full = rows(0..40);
    // Twenty pairs each time: by both identifiers, by one, with gaps, with repeats that are replaced.
    let by_phone =
        Rows { keys: 2, rows: (0..30).map(|i| vec![String::new(), format!("phone {}", i + 20)]).collect() };
    let mut crossed = rows(20..50);
    crossed.rows.iter_mut().for_each(|row| row.swap(0, 1));
    let mut repeating = rows(20..50);
    repeating.rows[29] = repeating.rows[0].clone();
    repeating.rows[28][1] = repeating.rows[27][0].clone();
    for p in [&rows(20..50), &by_phone, &crossed, &repeating] {
        let seen = transcript([&full, p], [&options(); 2]).map(|said| shape(&said));
        assert_eq!(seen, simulate([40, 30], 50));
    }
}

#[test]
fn gaps_and_repeats_do_not_show() {
    let mut sparse = rows(20..60);
    sparse.rows.iter_mut().step_by(2).for_each(|row| row[1].clear());
    sparse.rows[1] = vec![String::new(); 2];
    sparse.rows[3] = sparse.rows[5].clone();
    let [c, p] = transcript([&rows(0..40), &sparse], [&options(); 2]);
    // All that is sent are distinct elements, as many as there are places. Tags of the spine are none of
    // them.
    let sent = [(&c, "u", 80), (&p, "u", 80), (&p, "e", 80), (&c, "labels", 40), (&p, "uids", 40)];
    let all = sent.map(|(said, step, n)| {
        let column = elements(said, &format!("multi/{step}"));
        assert_eq!(column.len(), n, "{step}");
        column
    });
    let all = all.concat();
    let distinct: BTreeSet<&GroupElement> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
    let (_, tags) = p.iter().find(|(step, _)| step == "multi/spine").unwrap();
    let tags: BTreeSet<&[u8; 12]> = tags.as_chunks().0.iter().collect();
    assert!(all.iter().all(|e| !tags.contains(e.first_chunk::<12>().unwrap())));
}

#[test]
fn rows_of_e_are_sorted_for_each_list() {
    let of_c = MatchOptions { contaminated: ContaminatedRule::Count, lists: Some(150), ..options() };
    let of_p = MatchOptions { contaminated: ContaminatedRule::Count, ..options() };
    let [c, p] = transcript([&rows(0..400), &rows(100..300)], [&of_c, &of_p]);
    let heads = |said: &Said, step: &str| -> Vec<u128> {
        let column = elements(said, step);
        column.iter().step_by(2).map(|e| u128::from_le_bytes(*e.first_chunk().unwrap()) << 32).collect()
    };
    let e = heads(&p, "multi/e");
    let (first, second) = e.split_at(150);
    assert!(first.is_sorted() && second.is_sorted() && !e.is_sorted());
    assert!(!heads(&c, "multi/u").is_sorted() && !heads(&p, "multi/u").is_sorted());
}

/// A party C that does not shuffle: the rows that it wants to test come first. It plays honestly up to the
/// arrival of `e_c`, and returns `e_c` and `e_p`.
fn curious(session: &mut Session, x: &[String], rows_p: usize) -> (Vec<GroupElement>, Vec<GroupElement>) {
    let mut rng = Seed::from_bytes([8; 32]).into_rng();
    let c1 = Exponent::random(&mut rng);
    let mut u_c: Vec<GroupElement> = x.iter().map(|id| hash(&[id.as_bytes(), &[0]].concat())).collect();
    mul_batch(&mut u_c, &c1, 1).unwrap();
    let peer = session.me().other();
    let mut link = session.link(peer);
    let numbers = [x.len() as u64, 1, 0].map(u64::to_le_bytes);
    let settings = blake3::derive_key("tacit multi-pid settings 1", b"[] Ignore");
    link.send(&[numbers.as_flattened(), &settings[..16], &[0; 16]].concat()).unwrap();
    link.recv(&mut [0; 56]).unwrap();
    let mut e_p = vec![[0; 32]; rows_p];
    let chunks = u_c.chunks(multi_pid::CHUNK as usize).zip(e_p.chunks_mut(multi_pid::CHUNK as usize));
    chunks.for_each(|(u, e)| link.exchange(u.as_flattened(), e.as_flattened_mut()).unwrap());
    mul_batch(&mut e_p, &c1, 1).unwrap();
    let mut e_c = vec![[0; 32]; x.len()];
    link.recv(e_c.as_flattened_mut()).unwrap();
    (e_c, e_p)
}

#[test]
fn match_counts_of_known_subsets_do_not_come_out() {
    let chunk = multi_pid::CHUNK as usize;
    let name = |i: usize| format!("person {i}");
    // The first chunk of C is what P has, the second one is not.
    let x: Vec<String> = (0..2 * chunk).map(name).collect();
    let y = Rows { keys: 1, rows: (0..chunk).chain(2 * chunk..3 * chunk).map(|i| vec![name(i)]).collect() };
    let (sessions, _) = tapped(4, 30_000, [Fault::None, Fault::None]);
    let mut seen = run_both(sessions, |session| {
        if session.me().0 == 0 {
            return Some(curious(session, &x, y.rows() as usize));
        }
        let gone = MultiId.run(session, &y, None, &options()).unwrap_err().to_string();
        assert!(gone.starts_with("hospitals at multi/labels with registry: "), "{gone}");
        None
    });
    let (e_c, e_p) = seen[0].take().unwrap();
    let e_p: BTreeSet<_> = e_p.into_iter().collect();
    let found = |part: &[GroupElement]| part.iter().filter(|e| e_p.contains(*e)).count();
    assert_eq!(found(&e_c), chunk, "the size of the intersection is known");
    // Half a chunk is the mean, 32 the standard deviation of what a whole permutation leaves.
    let first = found(&e_c[..chunk]);
    assert!(first.abs_diff(chunk / 2) < 320, "{first} matches in the first chunk: its order survived");
}
