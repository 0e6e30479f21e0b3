//! What follows from how far all are, and runs of a small release with ledgers that are cut off anywhere.

use super::*;

const A: PartyId = PartyId(0);
const B: PartyId = PartyId(1);

fn top(at: Option<(u8, Progress)>, attempt: u32) -> Top {
    Top { at: at.map(|(session, progress)| ([session; 32], progress)), attempt, pays: true }
}

#[test]
fn a_top_is_read_as_it_was_said() {
    for state in [None, Some((7, Progress::Held)), Some((8, Progress::Sent)), Some((9, Progress::Out))] {
        for pays in [true, false] {
            let top = Top { pays, ..top(state, 41) };
            assert_eq!(Top::read(&top.bytes()), Some(top));
        }
    }
    let mut bytes = top(None, 0).bytes();
    bytes[0] = 4;
    assert_eq!(Top::read(&bytes), None);
}

#[test]
fn what_all_hold_is_opened_and_anything_else_is_computed_anew() {
    use Progress::{Held, Out, Sent};
    let both = [A, B];
    let next = |a, b| decide(&[(A, a), (B, b)], &both, &[], 0);
    assert_eq!(next(top(None, 0), top(None, 0)), Ok(Next::Compute(0)));
    assert_eq!(next(top(Some((1, Held)), 0), top(Some((1, Held)), 0)), Ok(Next::Open([1; 32])));
    assert_eq!(next(top(Some((1, Sent)), 1), top(Some((1, Held)), 0)), Ok(Next::Open([1; 32])));
    assert_eq!(next(top(Some((1, Out)), 1), top(Some((1, Sent)), 1)), Ok(Next::Open([1; 32])));
    assert_eq!(next(top(Some((1, Out)), 1), top(Some((1, Out)), 1)), Ok(Next::Over));
    // One lost what it held: another number, which is another attempt where one had sent its share.
    assert_eq!(next(top(Some((1, Held)), 0), top(None, 0)), Ok(Next::Compute(0)));
    assert_eq!(next(top(Some((1, Sent)), 1), top(None, 0)), Ok(Next::Compute(1)));
    assert_eq!(next(top(Some((1, Held)), 0), top(Some((2, Held)), 0)), Ok(Next::Compute(0)));
    // One has the outputs and the other lost its share: nothing is drawn anew.
    assert_eq!(next(top(Some((1, Out)), 1), top(None, 0)), Err(Stuck::Lost { has: A, lost: B }));
    assert_eq!(next(top(None, 70), top(None, 0)), Err(Stuck::Ahead(A)));
    // Who cannot pay stops it, unless it has sent.
    let broke = |at| Top { pays: false, ..top(at, 0) };
    assert_eq!(next(broke(None), top(None, 0)), Err(Stuck::Refused(A)));
    assert_eq!(next(top(Some((1, Held)), 0), broke(Some((1, Held)))), Err(Stuck::Refused(B)));
    assert_eq!(next(broke(Some((1, Sent))), top(Some((1, Held)), 0)), Ok(Next::Open([1; 32])));
}

#[test]
fn of_four_servers_one_may_have_lost_its_share() {
    let servers = [2, 3, 4, 5].map(PartyId);
    let held = top(Some((1, Progress::Held)), 0);
    let all = |lost: &[u8]| -> Vec<(PartyId, Top)> {
        (0..6).map(|p| (PartyId(p), if lost.contains(&p) { top(None, 0) } else { held })).collect()
    };
    assert_eq!(decide(&all(&[]), &[A], &servers, 0), Ok(Next::Open([1; 32])));
    assert_eq!(decide(&all(&[4]), &[A], &servers, 0), Ok(Next::Open([1; 32])));
    assert_eq!(decide(&all(&[3, 4]), &[A], &servers, 0), Ok(Next::Compute(0)));
    assert_eq!(decide(&all(&[1]), &[A], &servers, 0), Ok(Next::Compute(0)));
}
