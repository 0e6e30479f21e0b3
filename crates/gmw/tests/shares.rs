//! What travels and what is kept: triples through the public interface, fresh outputs, shared inputs, views.

mod common;

use base::PartyId;
use circuits::Viewers;
use circuits::{CircuitBuilder, InputBit, Lit};
use common::{Source, party};
use gmw::{GateParty, Layers};
use net::cluster::Cluster;
use ot::OtKind;

fn two_inputs(build: impl Fn(&mut CircuitBuilder, Lit, Lit) -> Lit) -> Layers {
    let mut g = CircuitBuilder::default();
    let [a, b] =
        [0, 1].map(|word| g.input(InputBit { owner: Some(PartyId(word)), word: u32::from(word), bit: 0 }));
    let root = build(&mut g, a, b);
    Layers::new(&g.finish(), &[root])
}

/// The bytes that reach the viewer are refreshed: an output that is a XOR of inputs does not show the inputs,
/// and two runs on the same inputs send different shares.
#[test]
fn shares_of_a_linear_output_are_fresh_when_they_leave() {
    let layers = two_inputs(|g, a, b| g.xor(a, b));
    let inputs = [0x0123_4567_89ab_cdef_u64, 0xfeed_face_cafe_beef];
    let viewer = Viewers::Parties(vec![PartyId(2)]);
    let run = |seed: u64| {
        Cluster::new(3, seed).digests().run(|s| {
            let mut party = party(s);
            let me = party.me().index();
            let mut known = |input: &InputBit, into: &mut [u64]| {
                assert_eq!(input.word as usize, me);
                into[0] = inputs[me];
                Ok(())
            };
            let shares = party.eval(&layers, 64, &mut known, s)?;
            // Before refreshing, a share is the input itself.
            assert_eq!(shares[0][0], inputs.get(me).copied().unwrap_or(0));
            let mut fresh = shares.clone();
            party.refresh(&mut fresh);
            let seen = party.reveal(shares, 64, &[&viewer], s)?;
            Ok((fresh[0][0], seen[0].clone()))
        })
    };
    let (first, second) = (run(1), run(2));
    for (party, (one, two)) in first.into_iter().zip(second).enumerate() {
        let ((one, seen), (two, _)) = (one.unwrap(), two.unwrap());
        assert_ne!(one, two, "fresh every time");
        assert_ne!(one, inputs.get(party).copied().unwrap_or(0), "not the input");
        assert_eq!(seen, (party == 2).then(|| vec![inputs[0] ^ inputs[1]]));
    }
}

#[test]
fn refreshed_shares_are_shares_of_the_same_values() {
    let done = Cluster::new(4, 1).run(|s| {
        let mut party = party(s);
        let mut shares = vec![vec![0u64; 3], vec![0; 1]];
        party.refresh(&mut shares);
        let first = shares.clone();
        party.refresh(&mut shares);
        assert_ne!(first, shares, "a stream is used once");
        Ok(shares.concat())
    });
    let shares: Vec<Vec<u64>> = done.into_iter().map(Result::unwrap).collect();
    for i in 0..4 {
        assert_eq!(shares.iter().fold(0, |sum, share| sum ^ share[i]), 0);
        // Three of four do not cancel.
        assert_ne!(shares[1..].iter().fold(0, |sum, share| sum ^ share[i]), 0);
    }
}

/// Shared inputs: the AND of two words shared among all parties, level by level.
#[test]
fn shares_of_one_evaluation_are_inputs_of_the_next() {
    let mut g = CircuitBuilder::default();
    let [a, b] = [0, 1].map(|word| g.input(InputBit { owner: None, word, bit: 0 }));
    let and = g.and(a, !b);
    let layers = Layers::with_shared(&g.finish(), &[and], &|_| true);
    assert_eq!(layers.and_gates(), 1);
    let word = |party: usize, word: u32| Source(100 * u64::from(word) + party as u64).word();
    let done = Cluster::new(3, 1).run(|s| {
        let mut party = party(s);
        party.reserve(128);
        let me = party.me().index();
        let mut known = |input: &InputBit, into: &mut [u64]| {
            into[0] = word(me, input.word);
            Ok(())
        };
        let first = party.eval(&layers, 64, &mut known, s)?;
        let mut known = |input: &InputBit, into: &mut [u64]| {
            into[0] = if input.word == 0 { first[0][0] } else { word(me, 2) };
            Ok(())
        };
        let second = party.eval(&layers, 64, &mut known, s)?;
        party.reveal(second, 64, &[&Viewers::Everyone], s)
    });
    let [a, b, c] = [0, 1, 2].map(|w| (0..3).fold(0, |sum, party| sum ^ word(party, w)));
    for seen in done {
        assert_eq!(seen.unwrap(), [Some(vec![a & !b & !c])]);
    }
}

/// What a party receives has the same lengths and rounds whatever the inputs, and one-time padded openings:
/// the bytes of an opening differ from the operands and between sessions.
#[test]
fn a_view_does_not_depend_on_inputs() {
    let layers = two_inputs(|g, a, b| g.and(a, b));
    let run = |value: u64, seed: u64| {
        let done = Cluster::new(2, seed).digests().run(|s| {
            let mut party = GateParty::new(s, OtKind::default(), 64)?;
            let shares = party.eval(
                &layers,
                64,
                &mut |_, into| {
                    into[0] = value;
                    Ok(())
                },
                s,
            )?;
            party.reveal(shares, 64, &[&Viewers::Everyone], s)?;
            Ok((s.traffic().clone(), s.digests()))
        });
        done.into_iter().map(Result::unwrap).collect::<Vec<_>>()
    };
    let digest = |of: &[(PartyId, String, [u8; 32])], step: &str| {
        of.iter().find(|(_, s, _)| s == step).map(|(.., hash)| *hash).unwrap()
    };
    let (zeros, ones, other) = (run(0, 1), run(u64::MAX, 1), run(0, 2));
    for party in 0..2 {
        assert_eq!(zeros[party].0, ones[party].0, "lengths and turns");
        // Set-up and triples do not see the inputs at all.
        for step in ["setup/base-ot", "triples"] {
            assert_eq!(digest(&zeros[party].1, step), digest(&ones[party].1, step), "{step}");
        }
        assert_ne!(
            digest(&zeros[party].1, "online"),
            digest(&other[party].1, "online"),
            "openings are padded"
        );
    }
}

/// Random shared operands with every value in every combination: a triple with a wrong c would show.
#[test]
fn triples_multiply_for_any_number_of_parties_and_back_end() {
    let mut g = CircuitBuilder::default();
    let [a, b] = [0, 1].map(|word| g.input(InputBit { owner: None, word, bit: 0 }));
    let and = g.and(a, b);
    let layers = Layers::with_shared(&g.finish(), &[and], &|_| true);
    let lanes = 5000;
    let word = |party: usize, word: u32, i: usize| {
        Source((i as u64) << 8 | u64::from(word) << 4 | party as u64).word()
    };
    for (parties, kind) in [(2, OtKind::default()), (4, OtKind::SoftSpoken { k: 4 }), (3, OtKind::Ferret)] {
        let done = Cluster::new(parties, 1).run(|s| {
            let mut party = GateParty::new(s, kind, lanes as u64)?;
            let me = party.me().index();
            let mut known = |input: &InputBit, into: &mut [u64]| {
                into.iter_mut().enumerate().for_each(|(i, out)| *out = word(me, input.word, i));
                Ok(())
            };
            party.eval(&layers, lanes, &mut known, s)
        });
        let shares: Vec<Vec<Vec<u64>>> = done.into_iter().map(Result::unwrap).collect();
        for i in 0..lanes / 64 {
            let [x, y] = [0, 1].map(|w| (0..parties).fold(0, |sum, p| sum ^ word(p, w, i)));
            assert_eq!(shares.iter().fold(0, |sum, share| sum ^ share[0][i]), x & y, "{parties}, {kind}");
        }
    }
}
