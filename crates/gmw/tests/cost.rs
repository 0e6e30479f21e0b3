//! The price is what is sent, at every party and step.

mod common;

use base::PartyId;
use circuits::Viewers;
use circuits::{CircuitBuilder, InputBit};
use common::{circuit, eval};
use gmw::{GateParty, GateQuote, Layers, OPEN_ANDS};
use net::Traffic;
use net::cluster::Cluster;
use ot::OtKind;

fn same(quote: &GateQuote, ledgers: &[Traffic], label: &str) {
    for step in ["setup", "triples", "online", "reveal"] {
        let cost = quote.step(step);
        let sent: Vec<u64> = ledgers.iter().map(|l| l.sent(step)).collect();
        assert_eq!(cost.sent, sent, "{label}: bytes at {step}");
        let turns = |ledger: &Traffic| {
            let peers = (0..ledgers.len()).map(|p| {
                let of_peer = ledger.entries().iter().filter(|e| e.peer.index() == p);
                of_peer.filter(|e| e.step.split('/').next() == Some(step)).map(|e| e.turns).sum::<u64>()
            });
            peers.max().unwrap_or(0)
        };
        assert_eq!(cost.rounds, ledgers.iter().map(turns).max().unwrap(), "{label}: rounds at {step}");
        let ots: u64 = ledgers.iter().map(|l| l.ots(step)).sum();
        // Either side of an OT books it.
        assert_eq!(2 * cost.ots, ots, "{label}: OTs at {step}");
        let peers = ledgers.len() as u64 - 1;
        assert!(
            ledgers.iter().all(|l| l.and_gates(step) == peers * cost.and_gates),
            "{label}: ANDs at {step}"
        );
    }
}

#[test]
fn the_price_is_the_ledger() {
    let soft = |k| OtKind::SoftSpoken { k };
    for (parties, kind) in [
        (2, soft(1)),
        (2, soft(2)),
        (3, soft(2)),
        (3, soft(8)),
        (5, soft(4)),
        (2, OtKind::Ferret),
        (3, OtKind::Ferret),
    ] {
        let (c, roots) = circuit(parties, 60, 5);
        let layers = Layers::new(&c, &roots);
        let viewers: Vec<Viewers> = (0..roots.len())
            .map(|i| match i % 3 {
                0 => Viewers::Everyone,
                1 => Viewers::Parties(vec![PartyId((i % parties) as u8)]),
                _ => Viewers::Parties(Vec::new()),
            })
            .collect();
        let viewers: Vec<&Viewers> = viewers.iter().collect();
        let mut quote = GateQuote::new(parties, kind, 100_000);
        quote.reserve(1234);
        for lanes in [1, 77, 4000] {
            quote.eval(&layers, lanes);
            quote.reveal(lanes, &viewers);
        }
        let done = Cluster::new(parties, 3).run(|s| {
            let mut party = GateParty::new(s, kind, 100_000)?;
            party.reserve(1234);
            for lanes in [1, 77, 4000] {
                let shares = eval(&mut party, &layers, lanes, s)?;
                party.reveal(shares, lanes, &viewers, s)?;
            }
            Ok(s.traffic().clone())
        });
        let ledgers: Vec<Traffic> = done.into_iter().map(Result::unwrap).collect();
        same(&quote, &ledgers, &format!("{parties} parties, {kind}"));
    }
}

/// A circuit of XORs, and what one party computes alone, needs seeds only; an AND of two parties' bits needs
/// more.
#[test]
fn outputs_without_triples_cost_seeds() {
    let mut g = CircuitBuilder::default();
    let [a, b, c] = [(0, 0), (1, 1), (1, 2)]
        .map(|(owner, word)| g.input(InputBit { owner: Some(PartyId(owner)), word, bit: 0 }));
    let own = g.and(b, c);
    let sum = g.xor(a, own);
    let both = g.and(a, b);
    let circuit = g.finish();
    let [linear, other] = [sum, both].map(|root| Layers::new(&circuit, &[root]));
    let viewers = [&Viewers::Parties(vec![PartyId(2)])];
    let mut quote = GateQuote::without_triples(3);
    quote.eval(&linear, 70);
    quote.reveal(70, &viewers);
    let done = Cluster::new(3, 3).run(|s| {
        let mut party = GateParty::without_triples(s)?;
        let shares = eval(&mut party, &linear, 70, s)?;
        party.reveal(shares, 70, &viewers, s)?;
        let ledger = s.traffic().clone();
        let refused = eval(&mut party, &other, 70, s).map(|_| ()).expect_err("it takes triples");
        assert!(refused.to_string().contains("without triples"), "{refused}");
        Ok(ledger)
    });
    let ledgers: Vec<Traffic> = done.into_iter().map(Result::unwrap).collect();
    same(&quote, &ledgers, "without triples");
    assert_eq!(quote.step("setup").sent, [32, 16, 0]);
}

/// More ANDs in one layer than one opening takes, and more posts than are under way at once.
#[test]
fn long_layers_are_priced_piece_by_piece() {
    let mut g = CircuitBuilder::default();
    let bit =
        |g: &mut CircuitBuilder, owner, word| g.input(InputBit { owner: Some(PartyId(owner)), word, bit: 0 });
    let (a, b, c) = (bit(&mut g, 0, 0), bit(&mut g, 1, 1), bit(&mut g, 0, 2));
    let ab = g.and(a, b);
    let bc = g.and(b, c);
    let root = g.and(ab, bc);
    let layers = Layers::new(&g.finish(), &[root]);
    let lanes = OPEN_ANDS as usize / 2 + 100;
    let mut quote = GateQuote::new(2, OtKind::default(), 0);
    quote.eval(&layers, lanes);
    let done = Cluster::new(2, 3).run(|s| {
        let mut party = GateParty::new(s, OtKind::default(), 0)?;
        eval(&mut party, &layers, lanes, s)?;
        Ok(s.traffic().clone())
    });
    let ledgers: Vec<Traffic> = done.into_iter().map(Result::unwrap).collect();
    same(&quote, &ledgers, "long layers");
    assert_eq!(quote.step("online").rounds, 3);
}

#[test]
fn an_and_costs_two_bits_online_per_peer() {
    let mut g = CircuitBuilder::default();
    let inputs: Vec<_> = (0..2000)
        .map(|word| g.input(InputBit { owner: Some(PartyId((word % 2) as u8)), word, bit: 0 }))
        .collect();
    let roots: Vec<_> = inputs.chunks(2).map(|pair| g.and(pair[0], pair[1])).collect();
    let layers = Layers::new(&g.finish(), &roots);
    let mut quote = GateQuote::new(3, OtKind::default(), 0);
    quote.eval(&layers, 1);
    assert_eq!(quote.step("online").sent, vec![2 * 2 * 1000 / 8; 3]);
}
