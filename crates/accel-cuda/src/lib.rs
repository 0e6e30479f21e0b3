//! NVIDIA GPUs as devices of [`accel`]: [`Cuda`] gives the bits of [`accel::Cpu`] for every command.
//!
//! **Functionality.** Both stages of products and dot products, sums and differences, with masks, messages
//! and digests. A command is cut into chunks that go over several streams, each with pinned memory and a
//! thread of its own, so that copies by the host, copies to the GPU, kernels, and copies back overlap. The
//! driver and NVRTC, which compiles `kernels.cu`, are loaded when the first device is opened; building needs
//! nothing of CUDA, and [`devices`] says what is missing where it is.
//!
//! **Security.** The GPU is trusted as the CPU is: it has keys and shares. Kernels have no branch and no
//! address that depends on them, so who shares the GPU learns lengths and times. Device memory is wiped as
//! each chunk leaves it; what a device holds between commands are its expanded keys, and, in pinned memory of
//! this process, the last chunks. All of it is wiped on drop.
//!
//! **Paper and deviations.** COPA (see [`accel`]) has the accelerator on the network card; here it is behind
//! PCIe, and the network is the host's, of which the GPU reads and writes shared memory by itself.
//!
//! **Cost.** Per block of a product 96 bytes to the GPU and 64 to 80 back in stage 1, 48 to 64 and 32 in
//! stage 2. On the GPU two blocks of AES take 2,460 instructions; `docs/protocols/accelerators-cuda.md` has
//! the count, `examples/rate.rs` the measurement.

mod copies;
mod device;
mod digest;
mod driver;
mod jobs;
pub mod memory;
mod resident;
mod steps;
mod vectors;

pub use device::Cuda;
pub use resident::Resident;

use base::Error;
use driver::Runtime;

/// A GPU of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// What [`Cuda::new`] takes.
    pub index: usize,
    /// As the vendor calls it.
    pub name: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Compute capability, major and minor.
    pub capability: [u32; 2],
}

/// The GPUs of this machine, at least one.
///
/// # Errors
/// Why there are none, and what to install.
pub fn devices() -> Result<Vec<Gpu>, Error> {
    let gpus = Runtime::system()?.gpus()?;
    if gpus.is_empty() {
        return Err(Error::input("the CUDA driver finds no GPU; choose the device cpu"));
    }
    Ok(gpus)
}

#[cfg(test)]
mod emulated;
