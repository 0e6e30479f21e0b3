//! The clear engine runs circuits as the suite says, and refuses inputs of another shape.

use base::{Roster, Seed};
use engine::conformance::circuit_suite;
use engine::{CircuitEngine, Clear};
use net::Session;

#[test]
fn clear_passes_the_suite() {
    circuit_suite::check_alone(&|_| Ok(Box::new(Clear))).unwrap();
}

#[test]
fn inputs_have_the_shape_of_the_circuit() {
    let mut session = Session::alone(Roster::new(["all"]), Seed::from_bytes([1; 32]));
    let wired = circuits::standard::add64();
    let good = vec![vec![vec![0]; 64]; 2];
    let stage = Clear.circuit(&wired).unwrap();
    assert!(stage.run(3, &good, &mut session).is_ok());
    let mut short = good.clone();
    short[1].pop();
    for (lanes, inputs) in [(3, &short), (3, &good[..1].to_vec()), (65, &good), (3, &vec![Vec::new(); 2])] {
        let error = stage.run(lanes, inputs, &mut session).unwrap_err().to_string();
        assert!(error.contains("input"), "{error}");
    }
    let mut broken = wired.clone();
    broken.inputs[0].width = 63;
    let error = Clear.circuit(&broken).err().expect("it is refused").to_string();
    assert_eq!(error, "this circuit is not well formed: wire 64 reads what is not there");
}
