//! Values: random circuits against their definition, shared inputs, viewers.

mod common;

use circuits::Viewers;
use common::{circuit, eval, party, truth};
use gmw::Layers;
use net::cluster::Cluster;

#[test]
fn random_circuits_have_the_values_of_their_definition() {
    for (parties, gates) in [(2, 300), (3, 200), (5, 80), (13, 20)] {
        let (c, roots) = circuit(parties, gates, parties as u64);
        let layers = Layers::new(&c, &roots);
        assert!(layers.and_gates() > 5 && layers.depth() > 1);
        let lanes: &[usize] = if parties == 13 { &[3] } else { &[1, 3, 64, 1000] };
        let done = Cluster::new(parties, 7).run(|s| {
            let mut party = party(s);
            let viewers = vec![&Viewers::Everyone; roots.len()];
            let mut seen = Vec::new();
            for &lanes in lanes {
                let shares = eval(&mut party, &layers, lanes, s)?;
                seen.push(party.reveal(shares, lanes, &viewers, s)?);
            }
            Ok(seen)
        });
        for seen in done {
            for (&lanes, seen) in lanes.iter().zip(seen.unwrap()) {
                let seen: Vec<Vec<u64>> = seen.into_iter().map(Option::unwrap).collect();
                assert!(seen == truth(&c, &roots, lanes), "{parties} parties, {lanes} lanes");
            }
        }
    }
}
