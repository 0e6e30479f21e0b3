//! What is said over the wire does not change unnoticed.

use engine::conformance::{self, circuit_suite};
use net::cluster::{Cluster, pinned};
use yao::Yao;

#[test]
fn the_wire_is_pinned() {
    let noised = conformance::case(2, "joint among 2");
    let of = |steps: fn(&str) -> bool| {
        let half = |s: &mut _| conformance::half(&|_| Ok(Box::new(Yao::default())), &noised, s);
        Cluster::new(2, 9).wire_where(steps, half)
    };
    let adder = circuit_suite::case(2, "a + b");
    let circuit = |s: &mut _| circuit_suite::half(&|_| Ok(Box::new(Yao::default())), &adder, s);
    pinned(&[
        ("yao, rows", of(|step| step.starts_with("rows")), "856a6ebc6efee365"),
        ("yao, release", of(|step| !step.starts_with("rows")), "470652485e4d12f4"),
        ("yao, circuits", Cluster::new(2, 9).wire(circuit), "84267cf33928850b"),
    ]);
}
