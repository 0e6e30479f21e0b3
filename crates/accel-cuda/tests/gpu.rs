//! On a GPU, where there is one.

use accel::conformance;
use accel_cuda::{Cuda, devices};

#[test]
fn every_gpu_conforms() {
    let gpus = match devices() {
        Ok(gpus) => gpus,
        Err(e) => return println!("skipped: {e}"),
    };
    for gpu in gpus {
        println!("{gpu:?}");
        conformance::check(&|| Ok(Box::new(Cuda::new(gpu.index)?)))
            .unwrap_or_else(|e| panic!("{gpu:?}: {e}"));
    }
}
