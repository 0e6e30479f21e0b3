//! What is said over the wire does not change unnoticed. Rows of two parties: the crate `sums`.

use engine::conformance::{self, circuit_suite};
use gmw::Gmw;
use net::cluster::{Cluster, pinned};
use ot::OtKind;

#[test]
fn the_wire_is_pinned() {
    let [noised, market] =
        ["joint among 3", "3 parties, 37 rows: best rows"].map(|name| conformance::case(3, name));
    let of = |case, steps: fn(&str) -> bool| {
        let half = |s: &mut _| conformance::half(&|_| Ok(Box::new(Gmw::default())), case, s);
        Cluster::new(3, 9).wire_where(steps, half)
    };
    let adder = circuit_suite::case(3, "a + b");
    let circuit = |kind| {
        let half = |s: &mut _| circuit_suite::half(&|_| Ok(Box::new(Gmw::new(kind))), &adder, s);
        Cluster::new(3, 9).wire(half)
    };
    pinned(&[
        ("folds, sums", of(&noised, |step| step.starts_with("rows")), "4ea99893af254437"),
        ("folds, best rows and lists", of(&market, |_| true), "529c10a26220ed44"),
        ("gmw, release", of(&noised, |step| !step.starts_with("rows")), "a23b1bb1bd28f66f"),
        ("gmw, circuits", circuit(OtKind::default()), "578007394138bb9f"),
        ("gmw, circuits over Ferret", circuit(OtKind::Ferret), "6494eead54dffeb0"),
    ]);
}
