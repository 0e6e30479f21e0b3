//! The in-process cluster: what sessions book, and what faults do.

use base::{Error, PartyId};
use net::cluster::Cluster;
use net::{InjectedFault, RowProgress, Session};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const P0: PartyId = PartyId(0);
const P1: PartyId = PartyId(1);

#[test]
fn two_parties_talk_and_the_ledger_counts() {
    let done = Cluster::new(2, 1).run(|s| {
        s.step("ping", |s| {
            let peer = s.me().other();
            let mut theirs = [0; 3];
            s.link(peer).exchange(&[peer.0; 3], &mut theirs)?;
            Ok(theirs)
        })?;
        Ok((s.traffic().sent("ping"), s.traffic().received(""), s.traffic().turns("ping")))
    });
    for party in done {
        assert_eq!(party.unwrap(), (3, 3, 1));
    }
}

#[test]
fn silence_ends_at_the_deadline_and_names_the_step() {
    let done = Cluster::new(2, 1).deadline(Duration::from_millis(50)).run(|s| {
        if s.me() == P1 {
            std::thread::sleep(Duration::from_millis(300));
            return Ok(());
        }
        s.step("ask", |s| s.link(P1).recv(&mut [0; 1]))
    });
    let error = done[0].as_ref().unwrap_err().to_string();
    assert!(error.starts_with("p0 at ask with p1: no progress for 0.1 s"), "{error}");
}

#[test]
fn a_peer_that_takes_nothing_ends_at_the_deadline() {
    let done = Cluster::new(2, 1).deadline(Duration::from_millis(50)).run(|s| {
        if s.me() == P1 {
            std::thread::sleep(Duration::from_millis(500));
            return Ok(());
        }
        s.step("tell", |s| s.link(P1).send(&vec![0; 100 << 20]))
    });
    let error = done[0].as_ref().unwrap_err().to_string();
    assert!(error.starts_with("p0 at tell with p1: no progress for 0.1 s"), "{error}");
}

#[test]
fn an_exchange_larger_than_any_window_is_one_message_and_one_turn() {
    for cluster in [Cluster::new(2, 1), Cluster::new(2, 1).tiny_window()] {
        let done = cluster.deadline(Duration::from_secs(60)).run(|s| {
            let peer = s.me().other();
            // Bytes that wait from before must not upset it.
            s.link(peer).send(&vec![7; 31 << 10])?;
            let mine = vec![s.me().0; 40 << 20];
            let mut theirs = vec![9; 40 << 20];
            s.link(peer).recv(&mut vec![0; 31 << 10])?;
            s.step("x", |s| s.link(peer).exchange(&mine, &mut theirs))?;
            assert!(theirs.iter().all(|&b| b == peer.0));
            let entry = s.traffic().entries().last().unwrap().clone();
            Ok((entry.sent, entry.received, entry.messages, entry.turns))
        });
        for party in done {
            assert_eq!(party.unwrap(), (40 << 20, 40 << 20, 1, 1));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn an_exchange_may_be_uneven(a in 0usize..300_000, b in 0usize..300_000, before in 0usize..32_000) {
        let done = Cluster::new(2, 1).tiny_window().deadline(Duration::from_secs(60)).run(|s| {
            let peer = s.me().other();
            let sizes = [a, b];
            let mut theirs = vec![9; sizes[peer.index()]];
            s.link(peer).send(&vec![3; before])?;
            s.link(peer).recv(&mut vec![0; before])?;
            let mine = vec![s.me().0; sizes[s.me().index()]];
            s.link(peer).exchange(&mine, &mut theirs)?;
            Ok(theirs.iter().all(|&byte| byte == peer.0))
        });
        prop_assert!(done.into_iter().all(|d| d.unwrap()));
    }
}

#[test]
fn a_tiny_window_finds_hidden_buffering() {
    // Both send before they receive: fine with 8 MiB of window, not with 64 KiB.
    let careless = |s: &mut Session| {
        let peer = s.me().other();
        s.step("send-send", |s| {
            s.link(peer).send(&vec![1; 1 << 20])?;
            s.link(peer).recv(&mut vec![0; 1 << 20])
        })
    };
    assert!(Cluster::new(2, 1).run(careless).into_iter().all(|d| d.is_ok()));
    let tiny = Cluster::new(2, 1).tiny_window().deadline(Duration::from_millis(200)).run(careless);
    assert!(tiny.into_iter().any(|d| d.unwrap_err().to_string().contains("no progress")));
}

#[test]
fn progress_says_the_step_and_how_far() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let watcher = RowProgress::new(move |step, done, total| {
        log.lock().unwrap().push((step.to_owned(), done, total));
    });
    let mut session = Cluster::new(2, 1).sessions().remove(0).with_progress(watcher);
    session.report(0, 9);
    let spread = session.step("match", |s| {
        s.step("pid", |s| {
            s.report(4, 9);
            Ok(s.progress())
        })
    });
    std::thread::spawn(move || spread.unwrap().report("elsewhere", 9, 9)).join().unwrap();
    let want = [("", 0), ("match/pid", 4), ("elsewhere", 9)];
    assert_eq!(*seen.lock().unwrap(), want.map(|(step, done)| (step.to_owned(), done, 9)));
    RowProgress::none().report("nobody", 1, 1);
}

/// Three rounds in which everybody talks with everybody; returns the bytes that came at the second.
fn three_rounds(s: &mut Session) -> Result<Vec<[u8; 16]>, Error> {
    let mut got = Vec::new();
    for round in ["one", "two", "three"] {
        s.step(round, |s| {
            let peers: Vec<_> = s.roster().parties().filter(|p| *p != s.me()).collect();
            for &peer in &peers {
                let half = [s.me().0 * 16 + round.len() as u8; 8];
                s.link(peer).send(&half)?;
                s.link(peer).send(&half)?;
            }
            for &peer in &peers {
                let came = s.link(peer).recv_array::<16>()?;
                if round == "two" {
                    got.push(came);
                }
            }
            Ok(())
        })?;
    }
    Ok(got)
}

#[test]
fn a_cut_ends_every_party_with_party_peer_and_step() {
    for parties in [2, 3, 5] {
        let done = Cluster::new(parties, 1).fault(P1, "two", InjectedFault::Cut).run(three_rounds);
        for (i, party) in done.into_iter().enumerate() {
            let error = party.unwrap_err();
            let at = error.at();
            assert_eq!(at.party, format!("p{i}"));
            // Who is hit second may have got further than the step of the cut.
            assert!(at.step == "two" || (at.step == "three" && i != 1), "{error}");
            assert!(at.peer.is_some(), "{error}");
            assert!(error.to_string().ends_with("see the peer's own output"), "{error}");
        }
    }
}

#[test]
fn a_cut_of_two_parties_hits_both_at_the_step() {
    let errors: Vec<_> = Cluster::new(2, 1)
        .fault(P1, "two", InjectedFault::Cut)
        .run(three_rounds)
        .into_iter()
        .map(|d| d.unwrap_err().to_string())
        .collect();
    let broke = "the connection broke off before the peer was done; see the peer's own output";
    assert_eq!(errors, [format!("p0 at two with p1: {broke}"), format!("p1 at two with p0: {broke}")]);
}

proptest! {
    #[test]
    fn corruption_changes_exactly_one_byte(byte in 0u64..16, mask in 1u8..) {
        let clean = Cluster::new(2, 1).run(three_rounds);
        let fault = InjectedFault::Corrupt { byte, mask };
        let dirty = Cluster::new(2, 1).fault(P0, "two", fault).run(three_rounds);
        let mut want = clean[1].clone().unwrap();
        want[0][byte as usize] ^= mask;
        prop_assert_eq!(dirty[1].clone().unwrap(), want);
        prop_assert_eq!(dirty[0].clone().unwrap(), clean[0].clone().unwrap());
    }
}

#[test]
fn a_truncated_message_is_never_a_wrong_one() {
    let done = Cluster::new(2, 1).fault(P0, "three", InjectedFault::Truncate).run(three_rounds);
    let error = done[1].as_ref().unwrap_err().to_string();
    // The sender is done and leaves in good order.
    assert!(error.starts_with("p1 at three with p0: "), "{error}");
    let moved = Cluster::new(2, 1).fault(P0, "two", InjectedFault::Truncate).run(|s| {
        s.step("two", |s| {
            let peer = s.me().other();
            s.link(peer).send(&[1, 2, 3])?;
            s.link(peer).send(&[4, 5, 6])?;
            s.link(peer).recv_array::<5>()
        })
    });
    assert_eq!(moved[1].clone().unwrap(), [1, 2, 4, 5, 6]);
}

#[test]
fn a_delay_delays_only_its_step() {
    let took = |fault| {
        let start = Instant::now();
        let cluster = Cluster::new(2, 1).fault(P0, "two", fault);
        assert!(cluster.run(three_rounds).into_iter().all(|d| d.is_ok()));
        start.elapsed()
    };
    let delayed = took(InjectedFault::Delay(Duration::from_millis(60)));
    assert!(delayed >= Duration::from_millis(120), "{delayed:?}");
}

#[test]
fn a_panic_in_one_party_is_a_cut_for_the_others() {
    let mut sessions = Cluster::new(2, 1).sessions();
    let (mut living, dying) = (sessions.remove(0), sessions.remove(0));
    let thread = std::thread::spawn(move || {
        let _dying = dying;
        panic!("on purpose");
    });
    let error = living.step("wait", |s| s.link(P1).recv(&mut [0; 1])).unwrap_err().to_string();
    assert!(error.starts_with("p0 at wait with p1: the connection broke off"), "{error}");
    assert!(thread.join().is_err());
}

#[test]
fn digests_pin_what_is_said_to_whom_and_where() {
    let run = |cluster: Cluster| -> Vec<_> {
        let talk = |s: &mut Session| {
            three_rounds(s)?;
            Ok(s.digests())
        };
        cluster.run(talk).into_iter().map(|d| d.unwrap()).collect()
    };
    let (first, again) = (run(Cluster::new(3, 1).digests()), run(Cluster::new(3, 1).digests().tiny_window()));
    assert_eq!(first, again);
    // Two messages of 8 bytes or one of 16: the wire is the same.
    let want = *blake3::hash(&[19; 16]).as_bytes();
    assert_eq!(first[1][0], (P0, "one".to_owned(), want));
    assert_eq!(first[1].len(), 6);
    assert!(run(Cluster::new(3, 1)).into_iter().all(|digests| digests.is_empty()));
}
