//! Products of what lies in arrays; and a party without peers: shapes and price of a run of every primitive.

mod support;

use accel::{Seat, VectorRing};
use base::Error;
use kernels::Block;
use net::Session;
use osprey::{Heap, Memory, Oblivious};
use ring4::{Joint, RoundQuote, SeatParty, ShareArray, ShareView, SharedVector, elements, pack};
use support::{SEATS, alone, enter, random, run, settings};

/// An array that a seat enters, in pieces.
fn entered<M: Memory>(
    memory: &M,
    (p, s): (&mut SeatParty, &mut Session),
    owner: usize,
    (ring, len): (VectorRing, usize),
    value: &[Block],
) -> Result<ShareArray<M>, Error> {
    let mut array = ShareArray::untouched(memory, ring, len);
    let step = 1000 * ring.lanes();
    for from in (0..len).step_by(step) {
        let to = len.min(from + step);
        let piece = enter(p, s, owner, (ring, to - from), &value[from / ring.lanes()..ring.blocks(to)])?;
        array.store(&piece, from)?;
    }
    Ok(array)
}

/// Sums of products of one half of an array with the other half of another one, in four ways that give the
/// same.
fn products<M: Memory>(memory: &M, ring: VectorRing) {
    let (run_len, terms) = (6 * ring.lanes(), 700);
    let len = 2 * run_len * terms;
    let (x, y) = (random(1, ring.blocks(len)), random(2, ring.blocks(len)));
    for settings in settings() {
        let opened = run(settings, |p, s| {
            let a = entered(memory, (&mut *p, &mut *s), 1, (ring, len), &x)?;
            let b = entered(memory, (&mut *p, &mut *s), 2, (ring, len), &y)?;
            let (low, high) = (0..len / 2, len / 2..len);
            let before = s.traffic().sent("");
            let viewed = p.dot_runs(s, run_len, a.view(low.clone())?, b.view(high.clone())?)?;
            let mut quote = RoundQuote::new(settings, SEATS, 4);
            quote.multiply(ring, run_len);
            assert_eq!(s.traffic().sent("") - before, quote.total().sent[p.seat().index()]);
            let (loaded_a, loaded_b) = (a.load(low.clone())?, b.load(high.clone())?);
            let loaded = p.dot_runs(s, run_len, &loaded_a, &loaded_b)?;
            let cut = |x: &SharedVector| -> Vec<SharedVector> {
                let blocks = ring.blocks(run_len);
                let term = |t: usize| x.parts().map(|part| part[t * blocks..][..blocks].to_vec());
                (0..terms).map(|t| SharedVector::from_parts(ring, run_len, term(t))).collect()
            };
            let (terms_a, terms_b) = (cut(&loaded_a), cut(&loaded_b));
            let several =
                p.dot(s, &terms_a.iter().collect::<Vec<_>>(), &terms_b.iter().collect::<Vec<_>>())?;
            let all = p.multiply(s, a.view(low)?, b.view(high)?)?;
            let mut added = SharedVector::zero(ring, run_len);
            cut(&all).iter().try_for_each(|term| added.add(term))?;
            [viewed, loaded, several, added].iter().map(|z| p.open(s, z)).collect::<Result<Vec<_>, _>>()
        });
        let blocks = ring.blocks(run_len);
        let mut wanted = vec![Block::ZERO; blocks];
        for i in 0..blocks * terms {
            let product = ring.mul(x[i], y[blocks * terms + i]);
            wanted[i % blocks] = ring.add(wanted[i % blocks], product);
        }
        for opened in opened {
            assert!(opened.unwrap().iter().all(|z| *z == wanted), "{ring:?}, {settings:?}");
        }
    }
}

#[test]
fn products_of_arrays_are_those_of_their_pieces() {
    for ring in VectorRing::ALL {
        products(&Heap, ring);
        products(&Oblivious, ring);
    }
}

#[test]
fn terms_that_are_none_are_refused() {
    let (mut p, mut s) = (SeatParty::speculator(Seat::new(0), settings()[0]), alone());
    let mut refused = |x: &SharedVector, len: usize, y: &SharedVector| p.dot_runs(&mut s, len, x, y).is_err();
    let shares = |ring: VectorRing, len: usize| SharedVector::zero(ring, len);
    let (six, bits) = (shares(VectorRing::Z64, 6), shares(VectorRing::Z2, 256));
    assert!(refused(&six, 0, &six) && refused(&six, 3, &six) && refused(&six, 4, &six));
    assert!(refused(&shares(VectorRing::Z64, 0), 2, &shares(VectorRing::Z64, 0)));
    assert!(refused(&bits, 64, &bits) && refused(&six, 2, &shares(VectorRing::Z64, 8)));
    assert!(refused(&shares(VectorRing::Z128, 6), 2, &six));
    assert!(!refused(&six, 2, &six) && !refused(&six, 6, &six) && !refused(&bits, 128, &bits));
}

/// What a pass of every primitive gives: shapes, and what was opened.
type Pass = (Vec<(VectorRing, usize)>, Vec<Option<usize>>);

fn every_primitive(
    p: &mut SeatParty,
    s: &mut Session,
    (ring, len): (VectorRing, usize),
) -> Result<Pass, Error> {
    let value = pack(ring, &vec![3; len]);
    let mut results = vec![enter(p, s, 0, (ring, len), &value)?, enter(p, s, 3, (ring, len), &value)?];
    results.push(p.random(ring, len));
    results.push(p.multiply(s, &results[0], &results[1])?);
    results.push(p.dot(s, &[&results[0], &results[2]], &[&results[1], &results[3]])?);
    results.push(p.inner(s, &results[0], &results[1])?);
    let runs = results[0].blocks() * ring.lanes();
    let terms = SharedVector::zero(ring, 3 * runs);
    results.push(p.dot_runs(s, runs, &terms, ShareView::from(&terms))?);
    let mut joints = Vec::new();
    for [a, b, c] in [[0, 1, 2], [2, 3, 0], [0, 1, 2], [3, 1, 0]] {
        let [sender, voucher, receiver] = [a, b, c].map(Seat::new);
        joints.push(Joint { sender, voucher, receiver, ring, len, value: &value });
    }
    results.extend(p.joint(s, &joints)?);
    let mut opened = vec![Some(p.open(s, &results[3])?.len())];
    for viewers in [&[][..], &[Seat::new(1)], &[Seat::new(2), Seat::new(0)]] {
        opened.push(p.open_to(s, &results[4], viewers)?.map(|value| elements(ring, len, &value).len()));
    }
    p.confirm(s)?;
    Ok((results.iter().map(|x| (x.ring(), x.len())).collect(), opened))
}

#[test]
fn a_speculator_has_shapes_and_price_of_a_run() {
    for settings in settings() {
        for ring in VectorRing::ALL {
            for len in [1, 127, 20_000] {
                let done = run(settings, |p, s| {
                    let pass = every_primitive(p, s, (ring, len))?;
                    assert!(p.booked().is_none() && p.enters(p.seat()) && !p.enters(p.seat().after(1)));
                    Ok((pass, s.traffic().sent("")))
                });
                for (seat, done) in Seat::ALL.into_iter().zip(done) {
                    let (pass, sent) = done.unwrap();
                    let mut p = SeatParty::speculator(seat, settings);
                    let stubbed = every_primitive(&mut p, &mut alone(), (ring, len)).expect("nobody fails");
                    assert_eq!(stubbed, pass, "{settings:?}, {ring:?}, {len}");
                    assert!(p.speculates() && !p.enters(seat));
                    let booked = p.booked().expect("it has no peers").total();
                    assert_eq!(booked.sent[seat.index()], sent, "{settings:?}, {ring:?}, {len}");
                }
            }
        }
    }
}

#[test]
fn a_speculator_opens_zeros() {
    let (mut p, mut s) = (SeatParty::speculator(Seat::new(3), settings()[1]), alone());
    let x = p.input(&mut s, Seat::new(3), (VectorRing::Z64, 50), &[]).expect("no values are needed");
    let y = p.random(VectorRing::Z64, 50);
    let z = p.multiply(&mut s, &x, &y).expect("a product");
    assert_eq!(p.open(&mut s, &z).expect("an opening"), [Block::ZERO; 25]);
    assert!(y.parts().iter().all(|part| part.iter().all(|&block| block == Block::ZERO)));
}
