//! Circuits by garbling: the conformance suite, refusals, and what a cut link looks like.

use base::PartyId;
use engine::CircuitEngine;
use engine::conformance::circuit_suite;
use net::cluster::Cluster;
use net::faults::InjectedFault;
use yao::Yao;

#[test]
fn yao_passes_the_suite() {
    circuit_suite::check(&|_| Ok(Box::new(Yao::default())), 2).unwrap();
}

#[test]
fn yao_passes_the_suite_at_other_parameters() {
    for (k, lanes) in [(1, 64), (8, 1024)] {
        circuit_suite::check(&|_| Ok(Box::new(Yao::new(k).with_lanes(lanes))), 2).unwrap();
    }
}

/// Both parties add numbers in `lanes` lanes.
fn add(cluster: &Cluster, lanes: usize) -> Vec<Result<usize, base::Error>> {
    let wired = circuits::standard::add64();
    cluster.run(|session| {
        let mine =
            |p: u8| if session.me() == PartyId(p) { vec![vec![5; lanes / 64]; 64] } else { Vec::new() };
        let inputs = [mine(0), mine(1)];
        let outputs = Yao::default().circuit(&wired)?.run(lanes, &inputs, session)?;
        Ok(outputs[0].as_ref().map_or(0, Vec::len))
    })
}

#[test]
fn long_runs_need_no_window() {
    let done = add(&Cluster::new(2, 4).tiny_window(), 1 << 14);
    assert!(done.into_iter().all(|bits| bits.unwrap() == 64));
}

#[test]
fn a_cut_at_any_step_is_an_error_that_names_it() {
    for step in ["circuit", "reveal"] {
        let cluster = Cluster::new(2, 4).fault(PartyId(0), step, InjectedFault::Cut);
        for (party, done) in add(&cluster, 64).into_iter().enumerate() {
            let error = done.unwrap_err();
            assert!(error.at().step.starts_with(step), "party {party} at {step}: {error}");
        }
    }
}

#[test]
fn three_parties_are_refused() {
    let wired = circuits::standard::add64().deal(3, &|i| PartyId(i as u8)).unwrap();
    let error = Yao::default().circuit(&wired).err().expect("three parties").to_string();
    assert!(error.contains("two parties"), "{error}");
    let pair = circuits::standard::add64();
    let inputs = [Vec::new(), Vec::new()];
    let done = Cluster::new(3, 1).run(|s| Yao::default().circuit(&pair)?.run(1, &inputs, s));
    assert!(done.into_iter().all(|d| d.unwrap_err().to_string().contains("two parties")));
}
