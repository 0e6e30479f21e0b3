//! Every flavour of OT over every k: the functionality, the price, tampering.

use base::{Error, PartyId};
use kernels::{Block, bit};
use net::Session;
use net::cluster::Cluster;
use ot::softspoken::{self, K_MAX};
use ot::*;

const SENDER: PartyId = PartyId(0);
const RECEIVER: PartyId = PartyId(1);
const SIZES: [usize; 9] = [0, 1, 5, 127, 128, 129, 2048, 2049, 5000];

/// Runs both sides, each with its result.
fn pair<S: Send, R: Send>(
    seed: u64,
    sender: impl Fn(&mut Session) -> Result<S, Error> + Sync,
    receiver: impl Fn(&mut Session) -> Result<R, Error> + Sync,
) -> (S, R) {
    let mut done = Cluster::new(2, seed).run(|session| {
        Ok(if session.me() == SENDER {
            (Some(sender(session)?), None)
        } else {
            (None, Some(receiver(session)?))
        })
    });
    let (r, s) = (done.pop().unwrap().unwrap(), done.pop().unwrap().unwrap());
    (s.0.unwrap(), r.1.unwrap())
}

fn bits(seed: u64, n: usize) -> Vec<u64> {
    let mut rng = base::Seed::from_bytes([seed as u8; 32]).into_rng();
    (0..n.div_ceil(64)).map(|_| u64::from_le_bytes(rng.bytes())).collect()
}

fn new_sender(session: &mut Session, k: u32) -> Result<CotSender, Error> {
    let delta = fresh_delta(&mut session.fork_seed("delta").into_rng());
    CotSender::new(session, RECEIVER, k, delta)
}

/// The suite any sender and receiver must pass, whatever back end makes the correlated OTs.
fn suite(
    what: &str,
    sender: impl Fn(&mut Session) -> Result<Box<dyn OtSender>, Error> + Sync,
    receiver: impl Fn(&mut Session) -> Result<Box<dyn OtReceiver>, Error> + Sync,
) {
    correlated(what, &sender, &receiver);
    correlated_random(what, &sender, &receiver);
    random_and_chosen(what, &sender, &receiver);
}

fn correlated(
    what: &str,
    sender: &(impl Fn(&mut Session) -> Result<Box<dyn OtSender>, Error> + Sync),
    receiver: &(impl Fn(&mut Session) -> Result<Box<dyn OtReceiver>, Error> + Sync),
) {
    let ((delta, q), (choices, t)) = pair(
        7,
        |session| {
            let mut ot = sender(session)?;
            let mut q = Vec::new();
            for n in SIZES {
                ot.correlated(session, n, &mut q)?;
            }
            Ok((ot.delta(), q))
        },
        |session| {
            let mut ot = receiver(session)?;
            let (mut t, mut choices) = (Vec::new(), Vec::new());
            for n in SIZES {
                let b = bits(n as u64, n);
                ot.correlated(session, &b, n, &mut t)?;
                choices.extend((0..n).map(|i| bit(&b, i)));
            }
            Ok((choices, t))
        },
    );
    assert!(delta.lsb());
    assert_eq!((q.len(), t.len()), (choices.len(), choices.len()));
    for (i, &b) in choices.iter().enumerate() {
        assert!(q[i] ^ t[i] == delta.when(b), "{what}: OT {i}");
    }
    let mut distinct: Vec<u128> = q.iter().map(|q| q.0).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), q.len(), "{what}: a correlation came twice");
}

fn correlated_random(
    what: &str,
    sender: &(impl Fn(&mut Session) -> Result<Box<dyn OtSender>, Error> + Sync),
    receiver: &(impl Fn(&mut Session) -> Result<Box<dyn OtReceiver>, Error> + Sync),
) {
    const N: usize = 40_000;
    let ((delta, q), (choices, t)) = pair(
        11,
        |session| {
            let mut ot = sender(session)?;
            let mut q = Vec::new();
            for n in SIZES.into_iter().chain([N]) {
                ot.correlated_random(session, n, &mut q)?;
            }
            Ok((ot.delta(), q))
        },
        |session| {
            let mut ot = receiver(session)?;
            let (mut t, mut choices) = (Vec::new(), vec![vec![7]]);
            for n in SIZES.into_iter().chain([N]) {
                let mut drawn = choices.last().unwrap().clone();
                ot.correlated_random(session, n, &mut drawn, &mut t)?;
                assert_eq!(drawn.len(), n.div_ceil(64));
                assert!((n..drawn.len() * 64).all(|i| bit(&drawn, i) == 0), "{n}");
                choices.push(drawn);
            }
            Ok((choices, t))
        },
    );
    let mut all = Vec::new();
    for (n, drawn) in SIZES.into_iter().chain([N]).zip(&choices[1..]) {
        all.extend((0..n).map(|i| bit(drawn, i)));
    }
    assert_eq!((q.len(), t.len()), (all.len(), all.len()));
    assert!((0..q.len()).all(|i| q[i] ^ t[i] == delta.when(all[i])), "{what}");
    looks_random(what, choices.last().unwrap(), N);
    let mut distinct: Vec<u128> = q.iter().map(|q| q.0).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), q.len(), "{what}: a correlation came twice");
}

/// Ones, and changes from one bit to the next, within six standard deviations of a half.
fn looks_random(what: &str, bits: &[u64], n: usize) {
    let ones: u64 = (0..n).map(|i| bit(bits, i)).sum();
    let changes: u64 = (1..n).map(|i| bit(bits, i) ^ bit(bits, i - 1)).sum();
    for count in [ones, changes] {
        let off = (count as f64 - n as f64 / 2.0) / (n as f64).sqrt() * 2.0;
        assert!(off.abs() < 6.0, "{what}: {ones} ones and {changes} changes of {n}");
    }
}

fn random_and_chosen(
    what: &str,
    sender: &(impl Fn(&mut Session) -> Result<Box<dyn OtSender>, Error> + Sync),
    receiver: &(impl Fn(&mut Session) -> Result<Box<dyn OtReceiver>, Error> + Sync),
) {
    const N: usize = 1500;
    let message = |i: usize, side: u128| Block((i as u128) << 1 | side);
    let (pairs, chosen) = pair(
        8,
        |session| {
            let mut ot = sender(session)?;
            let mut pairs = Vec::new();
            for words in 1..=4 {
                pairs.push(ot.random(session, N, words)?);
                let all = |side| (0..N * words).map(|i| message(i, side)).collect::<Vec<_>>();
                ot.chosen(session, words, &all(0), &all(1))?;
            }
            Ok(pairs)
        },
        |session| {
            let mut ot = receiver(session)?;
            let mut got = Vec::new();
            for words in 1..=4 {
                let b = bits(words as u64, N);
                let random = ot.random(session, &b, N, words)?;
                got.push((random, ot.chosen(session, &b, N, words)?));
            }
            Ok(got)
        },
    );
    for (words, (pairs, (random, chosen))) in (1..).zip(pairs.iter().zip(&chosen)) {
        let b = bits(words as u64, N);
        for i in 0..N * words {
            let choice = bit(&b, i / words) as usize;
            assert!(random[i] == pairs[choice][i], "{what}: random OT, block {i} of {words}");
            assert!(random[i] != pairs[1 - choice][i]);
            assert!(chosen[i] == message(i, choice as u128), "{what}: chosen OT, block {i} of {words}");
        }
    }
}

#[test]
fn softspoken_passes_the_suite_for_every_k() {
    for k in 1..=K_MAX {
        suite(
            &format!("k = {k}"),
            |session| Ok(Box::new(new_sender(session, k)?)),
            |session| Ok(Box::new(CotReceiver::new(session, SENDER, k)?)),
        );
    }
}

#[test]
fn a_worker_of_a_hub_passes_the_suite() {
    suite(
        "hub",
        |session| {
            let base = SenderHub::new(session, RECEIVER)?.fork(session, 2)?.pop().unwrap();
            Ok(Box::new(CotSender::from_base(session, RECEIVER, 2, base)?))
        },
        |session| {
            let base = ReceiverHub::new(session, SENDER)?.fork(session, 2)?.pop().unwrap();
            Ok(Box::new(CotReceiver::from_base(session, SENDER, 2, base)?))
        },
    );
}

/// Expected OTs that call for the large set of Ferret.
const MANY: u64 = 1 << 40;

#[test]
fn ferret_passes_the_suite_with_both_sets() {
    for expected in [0, MANY] {
        suite(
            &format!("ferret for {expected}"),
            |session| {
                let delta = fresh_delta(&mut session.fork_seed("delta").into_rng());
                OtKind::Ferret.sender(session, RECEIVER, delta, expected)
            },
            |session| OtKind::Ferret.receiver(session, SENDER, expected),
        );
    }
}

#[test]
fn ferret_runs_over_a_hub() {
    suite(
        "ferret over a hub",
        |session| {
            let base = SenderHub::new(session, RECEIVER)?.fork(session, 1)?.pop().unwrap();
            OtKind::Ferret.sender_over(session, RECEIVER, base, 0)
        },
        |session| {
            let base = ReceiverHub::new(session, SENDER)?.fork(session, 1)?.pop().unwrap();
            OtKind::Ferret.receiver_over(session, SENDER, base, 0)
        },
    );
}

/// Over the end of two extensions: the correlation holds, and no q comes twice.
#[test]
fn ferret_goes_on_from_extension_to_extension() {
    let n = 2 * ferret::SMALL.yields() + 100_000;
    let calls = [n / 3, n / 3, n - 2 * (n / 3)];
    let ((delta, q), (choices, t)) = pair(
        12,
        |session| {
            let delta = fresh_delta(&mut session.fork_seed("delta").into_rng());
            let mut ot = OtKind::Ferret.sender(session, RECEIVER, delta, 0)?;
            let mut q = Vec::new();
            calls.into_iter().try_for_each(|n| ot.correlated_random(session, n, &mut q))?;
            Ok((delta, q))
        },
        |session| {
            let mut ot = OtKind::Ferret.receiver(session, SENDER, 0)?;
            let (mut t, mut all, mut drawn) = (Vec::new(), Vec::new(), Vec::new());
            for n in calls {
                ot.correlated_random(session, n, &mut drawn, &mut t)?;
                all.extend((0..n).map(|i| bit(&drawn, i)));
            }
            Ok((all, t))
        },
    );
    assert_eq!((q.len(), t.len(), choices.len()), (n, n, n));
    assert!((0..n).all(|i| q[i] ^ t[i] == delta.when(choices[i])));
    let mut distinct: Vec<u128> = q.iter().map(|q| q.0).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), n, "a correlation came twice");
    let ones = choices.iter().sum::<u64>() as f64;
    assert!((ones - n as f64 / 2.0).abs() < 3.0 * (n as f64).sqrt(), "{ones} ones of {n}");
}

#[test]
fn every_worker_has_its_own_delta_and_correlations() {
    const WORKERS: usize = 3;
    let (sent, got) = pair(
        9,
        |session| {
            let mut hub = SenderHub::new(session, RECEIVER)?;
            let mut bases = hub.fork(session, WORKERS)?;
            bases.extend(hub.fork(session, 1)?);
            let mut all = Vec::new();
            for base in bases {
                let mut ot = CotSender::from_base(session, RECEIVER, 4, base)?;
                let mut q = Vec::new();
                ot.correlated(session, 100, &mut q)?;
                all.push((ot.delta(), ot.pads().start(), q));
            }
            Ok(all)
        },
        |session| {
            let mut hub = ReceiverHub::new(session, SENDER)?;
            let mut bases = hub.fork(session, WORKERS)?;
            bases.extend(hub.fork(session, 1)?);
            let mut all = Vec::new();
            for base in bases {
                let mut ot = CotReceiver::from_base(session, SENDER, 4, base)?;
                let mut t = Vec::new();
                ot.correlated(session, &bits(3, 100), 100, &mut t)?;
                all.push(t);
            }
            Ok(all)
        },
    );
    let choices = bits(3, 100);
    for (w, ((delta, start, q), t)) in sent.iter().zip(&got).enumerate() {
        assert!((0..100).all(|i| q[i] ^ t[i] == delta.when(bit(&choices, i))), "worker {w}");
        for (other_delta, other_start, other_q) in &sent[..w] {
            assert!(delta != other_delta && start != other_start && q[0] != other_q[0]);
        }
    }
}

/// Bytes sent and turns at the step with this prefix.
fn booked(session: &Session, prefix: &str) -> (u64, u64) {
    (session.traffic().sent(prefix), session.traffic().turns(prefix))
}

#[test]
fn the_price_is_what_the_ledger_books() {
    let n = 777;
    for k in [1, 3, 4, 8] {
        let chosen = vec![Block::ONE; 3 * n];
        let (s, r) = pair(
            10,
            |session| {
                let mut ot = session.step("setup", |s| new_sender(s, k))?;
                session.step("cot", |s| ot.correlated(s, n, &mut Vec::new()))?;
                session.step("posted", |s| ot.correlated_random(s, n, &mut Vec::new()))?;
                session.step("rot", |s| ot.random(s, n, 2))?;
                session.step("chosen", |s| ot.chosen(s, 3, &chosen, &chosen))?;
                session.step("hub", |s| SenderHub::new(s, RECEIVER)?.fork(s, 5))?;
                Ok(["setup", "cot", "posted", "rot", "chosen", "hub"].map(|step| booked(session, step)))
            },
            |session| {
                let b = bits(1, n);
                let mut ot = session.step("setup", |s| CotReceiver::new(s, SENDER, k))?;
                session.step("cot", |s| ot.correlated(s, &b, n, &mut Vec::new()))?;
                session.step("posted", |s| ot.correlated_random(s, n, &mut Vec::new(), &mut Vec::new()))?;
                session.step("rot", |s| ot.random(s, &b, n, 2))?;
                session.step("chosen", |s| ot.chosen(s, &b, n, 3))?;
                session.step("hub", |s| ReceiverHub::new(s, SENDER)?.fork(s, 5))?;
                Ok(["setup", "cot", "posted", "rot", "chosen", "hub"].map(|step| booked(session, step)))
            },
        );
        let n = n as u64;
        let prices = [
            ExtensionCost::base() + ExtensionCost::setup(k),
            ExtensionCost::correlated(k, n),
            ExtensionCost::posted(k, n),
            ExtensionCost::random(k, n),
            ExtensionCost::chosen(k, n, 3),
            ExtensionCost::hub() + ExtensionCost::fork(5),
        ];
        for (i, price) in prices.into_iter().enumerate() {
            assert_eq!((s[i].0, r[i].0), (price.sender, price.receiver), "bytes of stage {i}, k = {k}");
            assert_eq!(s[i].1.max(r[i].1), price.turns, "turns of stage {i}, k = {k}");
        }
    }
    let cost = ExtensionCost::chosen(4, 128, 1).cost(PartyId(2), PartyId(0), 3);
    assert_eq!((cost.ots, cost.rounds, cost.sent), (128, 1, vec![512, 0, 4096]));
}

/// A conversation of every flavour, priced as a whole and step by step.
#[test]
fn the_meter_says_what_the_ledger_books() {
    let steps = ["setup", "r1", "c1", "chosen", "r2"];
    let cases = [(OtKind::SoftSpoken { k: 4 }, 0), (OtKind::Ferret, 0), (OtKind::Ferret, MANY)];
    for (kind, expected) in cases {
        let message = vec![Block::ONE; 200];
        let booked = |session: &Session| steps.map(|step| session.traffic().sent(step));
        let ends =
            |session: &Session| (booked(session), session.traffic().turns(""), session.traffic().ots(""));
        let (s, r) = pair(
            13,
            |session| {
                let mut ot = session.step("setup", |s| {
                    let delta = fresh_delta(&mut s.fork_seed("delta").into_rng());
                    kind.sender(s, RECEIVER, delta, expected)
                })?;
                session.step("r1", |s| ot.correlated_random(s, 100_001, &mut Vec::new()))?;
                session.step("c1", |s| ot.correlated(s, 70_003, &mut Vec::new()))?;
                session.step("chosen", |s| ot.chosen(s, 2, &message, &message))?;
                session.step("r2", |s| ot.correlated_random(s, 900_000, &mut Vec::new()))?;
                Ok(ends(session))
            },
            |session| {
                let (mut bits_out, mut t) = (Vec::new(), Vec::new());
                let mut ot = session.step("setup", |s| kind.receiver(s, SENDER, expected))?;
                session.step("r1", |s| ot.correlated_random(s, 100_001, &mut bits_out, &mut t))?;
                session.step("c1", |s| ot.correlated(s, &bits(1, 70_003), 70_003, &mut t))?;
                session.step("chosen", |s| ot.chosen(s, &bits(1, 100), 100, 2))?;
                session.step("r2", |s| ot.correlated_random(s, 900_000, &mut bits_out, &mut t))?;
                Ok(ends(session))
            },
        );
        let mut meter = PriceMeter::new(kind, expected);
        let mut before = meter.price();
        for (i, step) in steps.into_iter().enumerate() {
            match i {
                0 => {
                    meter.base();
                    meter.setup();
                }
                1 => meter.correlated_random(100_001),
                2 => meter.correlated(70_003),
                3 => meter.chosen(100, 2),
                _ => meter.correlated_random(900_000),
            }
            let price = meter.price();
            let said = (price.sender - before.sender, price.receiver - before.receiver);
            assert_eq!((s.0[i], r.0[i]), said, "{kind} for {expected} at {step}");
            before = price;
        }
        assert_eq!(before.turns, s.1.max(r.1), "{kind} for {expected}");
        assert_eq!((s.2, r.2), (before.ots, before.ots), "{kind} for {expected}");
    }
}

/// Both halves of an extension without a network, with the set-up message passed by `tamper`.
fn steps(
    k: u32,
    tamper: impl Fn(&mut Vec<u8>),
) -> (softspoken::SoftSpokenSender, softspoken::SoftSpokenReceiver) {
    let roster = base::Roster::new(["a", "b"]);
    let context = || base_ot::PairContext::new(&roster, RECEIVER, SENDER);
    let rng = |label: &str| base::Seed::from_bytes([3; 32]).fork(label).into_rng();
    let (chooser, message) = base_ot::BaseReceiver::choose(context(), Block(0xdead_beef), &mut rng("c"));
    let (pairs, reply) = base_ot::send(&context(), &message, &mut rng("s")).unwrap();
    let chosen = chooser.finish(&reply).unwrap();
    let (receiver, mut setup) = softspoken::SoftSpokenReceiver::new(pairs, k).unwrap();
    tamper(&mut setup);
    (softspoken::SoftSpokenSender::new(&chosen, k, &setup).unwrap(), receiver)
}

#[test]
fn a_flipped_bit_breaks_the_correlation_and_nothing_else() {
    let n = 300;
    let choices = bits(4, n);
    let wrong = |mut s: softspoken::SoftSpokenSender,
                 mut r: softspoken::SoftSpokenReceiver,
                 tamper: &dyn Fn(&mut Vec<u8>)| {
        let (mut q, mut t, mut message) = (Vec::new(), Vec::new(), Vec::new());
        r.prepare(&choices, n, &mut t, &mut message).unwrap();
        tamper(&mut message);
        s.absorb(n, &message, &mut q).unwrap();
        (0..n).filter(|&i| q[i] ^ t[i] != s.delta().when(bit(&choices, i))).count()
    };
    let (s, r) = steps(4, |_| ());
    assert_eq!(wrong(s, r, &|_| ()), 0);
    // Bit 0 of the first block of Delta is set, so a flip of the first correction bit changes OT 0 only.
    let (s, r) = steps(4, |_| ());
    assert_eq!(wrong(s, r, &|m| m[0] ^= 1), 1);
    // A wrong tree spoils every column.
    let (s, r) = steps(4, |setup| setup[0] ^= 1);
    let (s2, r2) = steps(4, |setup| setup[16] ^= 1);
    assert!(wrong(s, r, &|_| ()) + wrong(s2, r2, &|_| ()) > n / 2);
}

#[test]
fn wrong_lengths_and_limits_have_names() {
    let (mut s, mut r) = steps(3, |_| ());
    let text = |done: Result<(), Error>| done.unwrap_err().to_string();
    assert_eq!(
        text(s.absorb(128, &[0; 3], &mut Vec::new())),
        "malformed message from the peer: OT extension message of a wrong length"
    );
    assert_eq!(text(r.prepare(&[0], 65, &mut Vec::new(), &mut Vec::new())), "65 OTs with 64 choice bits");
    let over = OTS_PER_CALL + 1;
    assert!(
        text(r.prepare(&vec![0; over / 64 + 1], over, &mut Vec::new(), &mut Vec::new()))
            .starts_with("OTs per call")
    );
    let sessions = &mut Cluster::new(2, 1).sessions()[0];
    assert!(CotSender::new(sessions, RECEIVER, 9, Block::ONE).is_err());
    assert!(CotReceiver::new(sessions, RECEIVER, 0).is_err());
}

#[test]
fn a_garbage_peer_gets_a_named_error() {
    let done = Cluster::new(2, 3).run(|session| {
        if session.me() == SENDER {
            return session.step("ot", |s| s.step("base-ot", |s| s.link(RECEIVER).send(&[0xff; 8192])));
        }
        session.step("ot", |s| CotReceiver::new(s, SENDER, 2).map(|_| ()))
    });
    let text = done[1].as_ref().unwrap_err().to_string();
    assert_eq!(
        text,
        "p1 at ot/base-ot with p0: malformed message from the peer: base OT element that is no point of \
         ristretto255"
    );
}
