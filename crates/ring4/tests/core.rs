//! Inputs, products, joint inputs and openings at four seats, their price, and what happens when one
//! deviates.

mod support;

use accel::{Seat, VectorRing};
use base::Fault;
use kernels::Block;
use net::cluster::Cluster;
use ring4::{Joint, RoundQuote, SharedVector, elements, pack};
use support::{SEATS, enter, party, random, run, settings};

const LENGTHS: [usize; 6] = [1, 2, 127, 129, 1000, 70_000];

#[test]
fn products_are_products() {
    for settings in settings() {
        for ring in VectorRing::ALL {
            for len in LENGTHS {
                let n = ring.blocks(len);
                let (x, y) = (random(1, n), random(2, n));
                let trim = |blocks: &[Block]| pack(ring, &elements(ring, len, blocks));
                let opened = run(settings, |p, s| {
                    let mut quote = RoundQuote::new(settings, SEATS, 4);
                    quote.setup();
                    let a = enter(p, s, 1, (ring, len), &x)?;
                    let b = enter(p, s, 2, (ring, len), &y)?;
                    quote.input(Seat::new(1), ring, len);
                    quote.input(Seat::new(2), ring, len);
                    let mut c = p.multiply(s, &a, &b)?;
                    quote.multiply(ring, len);
                    c.add(&a)?;
                    c.add_public(p.seat(), &x);
                    let c = p.dot(s, &[&c, &a], &[&b, &b])?;
                    quote.multiply(ring, len);
                    let opened = p.open(s, &c)?;
                    quote.open(ring, len);
                    let sent = s.traffic().sent("");
                    assert_eq!(sent, quote.total().sent[p.seat().index()], "{settings:?} {ring:?} {len}");
                    Ok(opened)
                });
                for opened in opened {
                    let opened = opened.unwrap();
                    let (x, y, opened) = (trim(&x), trim(&y), trim(&opened));
                    for i in 0..n {
                        let product = ring.mul(x[i], y[i]);
                        let sum = ring.add(ring.add(product, x[i]), x[i]);
                        let wanted = ring.add(ring.mul(sum, y[i]), product);
                        assert!(opened[i] == wanted, "{settings:?} {ring:?} {len}: block {i}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_inner_product_is_one_product() {
    for settings in settings() {
        for ring in VectorRing::ALL {
            let len = 4999;
            let n = ring.blocks(len);
            let (x, y) = (random(3, n), random(4, n));
            let opened = run(settings, |p, s| {
                let a = enter(p, s, 0, (ring, len), &x)?;
                let b = enter(p, s, 3, (ring, len), &y)?;
                let c = p.inner(s, &a, &b)?;
                p.open(s, &c)
            });
            // What fills the last block up does not count: here it is random.
            let x = pack(ring, &elements(ring, len, &x));
            let wanted = x.iter().zip(&y).fold(Block::ZERO, |sum, (&x, &y)| ring.add(sum, ring.mul(x, y)));
            for opened in opened {
                assert!(opened.unwrap() == [wanted]);
            }
        }
    }
}

/// A long vector, with windows that hold little: nobody waits for a window.
#[test]
fn long_products_pass_through_their_windows() {
    let len = 300_000;
    let x = random(5, len);
    for settings in settings() {
        let done = Cluster::new(4, 9).run(|s| {
            let mut p = party(s, settings)?;
            let a = enter(&mut p, s, 0, (VectorRing::Z128, len), &x)?;
            let b = p.multiply(s, &a, &a)?;
            p.open_to(s, &b, &[Seat::new(2)])
        });
        let done: Vec<_> = done.into_iter().map(Result::unwrap).collect();
        assert!(done[0].is_none() && done[1].is_none() && done[3].is_none());
        let opened = done[2].as_ref().unwrap();
        assert!(opened.iter().zip(&x).all(|(z, x)| *z == VectorRing::Z128.mul(*x, *x)));
    }
}

/// Seats with vectors on their devices and seats without send each other the same messages, in chunks of any
/// size, and the results are the same; the price is that of a product.
#[test]
fn vectors_on_devices_meet_vectors_of_hosts() {
    for settings in settings() {
        for ring in VectorRing::ALL {
            for len in [1, 129, 40_000 * ring.lanes()] {
                let n = ring.blocks(len);
                let (x, y) = (random(6, n), random(7, n));
                let done = run(settings, |p, s| {
                    let mut quote = RoundQuote::new(settings, SEATS, 4);
                    let a = enter(p, s, 1, (ring, len), &x)?;
                    let b = enter(p, s, 2, (ring, len), &y)?;
                    let before = s.traffic().sent("");
                    let host = p.multiply(s, &a, &b)?;
                    let host = p.multiply(s, &host, &b)?;
                    quote.multiply(ring, len);
                    quote.multiply(ring, len);
                    let mut device = if p.seat().index() % 2 == 0 {
                        p.multiply(s, &a, &b)?
                    } else {
                        let [a, b] = [p.keep(&a)?, p.keep(&b)?];
                        let c = p.dot_on_device(s, &[&a], &[&b])?;
                        p.fetch(&c)?
                    };
                    let [c, b] = [p.keep(&device)?, p.keep(&b)?];
                    device = if p.seat().index() < 2 {
                        let d = p.dot_on_device(s, &[&c], &[&b])?;
                        let twice = p.add_on_device(false, &d, &d)?;
                        let once = p.add_on_device(true, &twice, &d)?;
                        p.fetch(&once)?
                    } else {
                        {
                            let b = p.fetch(&b)?;
                            p.multiply(s, &device, &b)?
                        }
                    };
                    quote.multiply(ring, len);
                    quote.multiply(ring, len);
                    let sent = s.traffic().sent("") - before;
                    assert_eq!(sent, quote.total().sent[p.seat().index()], "{settings:?} {ring:?} {len}");
                    Ok([p.open(s, &host)?, p.open(s, &device)?])
                });
                for opened in done {
                    let [host, device] = opened.unwrap();
                    let same = elements(ring, len, &host) == elements(ring, len, &device);
                    assert!(same, "{settings:?} {ring:?} {len}");
                }
            }
        }
    }
}

/// Dot products and selections of vectors on devices are those of vectors of the host, at their price.
#[test]
fn operations_on_devices_are_those_of_hosts() {
    for settings in settings() {
        for ring in VectorRing::ALL {
            let len = 9_000 * ring.lanes();
            let (x, y) = (random(8, 9_000), random(9, 9_000));
            // Ones and zeros in every lane.
            let bits: Vec<Block> = (0..9_000u128)
                .map(|i| match ring {
                    VectorRing::Z128 => Block(i % 3 % 2),
                    VectorRing::Z64 => Block((i % 3 % 2) | ((i % 2) << 64)),
                    VectorRing::Z2 => x[i as usize],
                })
                .collect();
            let done = run(settings, |p, s| {
                let a = enter(p, s, 1, (ring, len), &x)?;
                let b = enter(p, s, 2, (ring, len), &y)?;
                let bits = SharedVector::public(ring, len, p.seat(), &bits);
                let dot = p.dot(s, &[&a, &b, &a], &[&b, &b, &bits])?;
                let mut chosen = dot.clone();
                chosen.sub(&b)?;
                let mut chosen = p.multiply(s, &bits, &chosen)?;
                chosen.add(&b)?;
                let (mut quote, before) = (RoundQuote::new(settings, SEATS, 4), s.traffic().sent(""));
                let [a, b, bits] = [p.keep(&a)?, p.keep(&b)?, p.keep(&bits)?];
                let dot_there = p.dot_on_device(s, &[&a, &b, &a], &[&b, &b, &bits])?;
                let chosen_there = p.select(s, &bits, &dot_there, &b)?;
                quote.multiply(ring, len);
                quote.multiply(ring, len);
                let sent = s.traffic().sent("") - before;
                assert_eq!(sent, quote.total().sent[p.seat().index()], "{settings:?} {ring:?}");
                assert!(p.dot_on_device(s, &[&a], &[]).is_err());
                let [dot_there, chosen_there] = [p.fetch(&dot_there)?, p.fetch(&chosen_there)?];
                [&dot, &dot_there, &chosen, &chosen_there].map(|v| p.open(s, v)).into_iter().collect()
            });
            for opened in done {
                let opened: Vec<Vec<Block>> = opened.unwrap();
                assert!(opened[0] == opened[1] && opened[2] == opened[3], "{settings:?} {ring:?}");
            }
        }
    }
}

#[test]
fn joint_inputs_are_shared_between_all() {
    for settings in settings() {
        let done = run(settings, |p, s| {
            let mut joints = Vec::new();
            let mut wanted = Vec::new();
            let values: Vec<Vec<Block>> = (0..48).map(|i| random(100 + i, 3)).collect();
            for a in 0..4 {
                for b in (0..4).filter(|&b| b != a) {
                    for c in (0..4).filter(|&c| c != a && c != b) {
                        // Twice on the same channel: their streams go on.
                        for ring in [VectorRing::Z128, VectorRing::Z2] {
                            let value = &values[joints.len()];
                            let [sender, voucher, receiver] = [a, b, c].map(Seat::new);
                            let knows = p.seat() == sender || p.seat() == voucher;
                            let len = 3 * ring.lanes();
                            let value_here: &[Block] = if knows { value } else { &[] };
                            joints.push(Joint { sender, voucher, receiver, ring, len, value: value_here });
                            wanted.push(value.clone());
                        }
                    }
                }
            }
            let before = s.traffic().sent("");
            let shares = p.joint(s, &joints)?;
            let mut quote = RoundQuote::new(settings, SEATS, 4);
            let shape = |j: &Joint<'_>| ([j.sender, j.voucher, j.receiver], j.ring, j.len);
            quote.joint(&joints.iter().map(shape).collect::<Vec<_>>());
            assert_eq!(s.traffic().sent("") - before, quote.total().sent[p.seat().index()]);
            for (shares, wanted) in shares.iter().zip(&wanted) {
                assert!(p.open(s, shares)? == *wanted);
            }
            Ok(())
        });
        done.into_iter().for_each(|done| done.unwrap());
    }
}

/// More than a window both ways at once: joint inputs and openings.
#[test]
fn long_joint_inputs_and_openings_do_not_wait_for_windows() {
    let (ring, len) = (VectorRing::Z128, 700_000);
    let value = random(6, len);
    let settings = settings()[2];
    let opened = run(settings, |p, s| {
        let joint = |a: usize, b: usize, c: usize| {
            let [sender, voucher, receiver] = [a, b, c].map(Seat::new);
            let knows = p.seat() == sender || p.seat() == voucher;
            Joint { sender, voucher, receiver, ring, len, value: if knows { &value } else { &[] } }
        };
        let joints = [joint(0, 1, 2), joint(2, 3, 0), joint(1, 0, 2), joint(3, 2, 1)];
        let shares = p.joint(s, &joints)?;
        let mut quote = RoundQuote::new(settings, SEATS, 4);
        quote.setup();
        quote.joint(&joints.clone().map(|j| ([j.sender, j.voucher, j.receiver], ring, len)));
        let opened = p.open(s, &shares[1])?;
        quote.open(ring, len);
        assert_eq!(s.traffic().sent(""), quote.total().sent[p.seat().index()]);
        Ok(opened)
    });
    assert!(opened.into_iter().all(|opened| opened.unwrap() == value));
}

#[test]
fn random_shares_are_random_and_consistent() {
    let done = run(settings()[1], |p, s| {
        let (a, b) = (p.random(VectorRing::Z128, 4), p.random(VectorRing::Z128, 4));
        Ok((p.open(s, &a)?, p.open(s, &b)?))
    });
    let done: Vec<_> = done.into_iter().map(Result::unwrap).collect();
    assert!(done.iter().all(|d| *d == done[0]));
    assert!(done[0].0 != done[0].1 && done[0].0[0] != done[0].0[1]);
}

#[test]
fn public_values_and_lanes() {
    let values = [7, u128::MAX, 1 << 64, 3];
    for ring in VectorRing::ALL {
        let mask = u128::MAX >> (128 - ring.bits());
        let blocks = pack(ring, &values);
        assert_eq!(elements(ring, 4, &blocks), values.map(|v| v & mask));
        let done = run(settings()[0], |p, s| {
            let mut shares = SharedVector::public(ring, 4, p.seat(), &blocks);
            shares.add_public(p.seat(), &blocks);
            shares.scale(&blocks);
            Ok(elements(ring, 4, &p.open(s, &shares)?))
        });
        let twice = |v: u128| v.wrapping_mul(v).wrapping_mul(2) & mask;
        for opened in done {
            assert_eq!(opened.unwrap(), values.map(|v| if ring == VectorRing::Z2 { 0 } else { twice(v) }));
        }
    }
}

#[test]
fn settings_must_agree() {
    let all = settings();
    let done = Cluster::new(4, 1).run(|s| {
        let mine = if s.me() == SEATS[2] { all[1] } else { all[0] };
        party(s, mine).map(|_| ())
    });
    // Who hears of it first leaves; the others may see that before they see the settings.
    let errors: Vec<_> = done.iter().map(|end| end.as_ref().expect_err("nobody goes on")).collect();
    let named = |e: &&&base::Error| matches!(e.kind(), Fault::Input(text) if text.contains("other settings"));
    assert!(errors.iter().any(|e| named(&e)), "{errors:?}");
    assert!(errors.iter().all(|e| named(&e) || matches!(e.kind(), Fault::Channel(_))), "{errors:?}");
}
