//! On a GPU, where there is one.

use accel::{DeviceQueue, conformance};
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
        // The first one long enough for all that is handed to a GPU and taken back.
        let queue = || Ok(DeviceQueue::new(vec![Box::new(Cuda::new(gpu.index)?)]));
        ring4::conformance::check(&queue, &[300_001, 1, 1024]).unwrap_or_else(|e| panic!("{gpu:?}: {e}"));
    }
}
