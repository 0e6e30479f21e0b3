//! The CPU gives the bits of a device that was written from the table of the model alone.

#[path = "../benches/naive.rs"]
mod naive;

#[test]
fn the_model_as_stated_and_the_cpu_give_the_same_bits() {
    accel::conformance::check(&|| Ok(Box::new(naive::Naive::default()))).unwrap();
}
