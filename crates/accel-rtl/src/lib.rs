//! The accelerator in SystemVerilog as a device: the core of `rtl/`, simulated cycle by cycle by Verilator in
//! a process of its own, `tacit-rtl-sim` (`make rtl` builds it).
//!
//! Its results are the bits of [`accel::Cpu`]; what it adds is the number of clock cycles that the hardware
//! takes ([`Rtl::cycles`]). A simulation is some thousand times slower than the hardware would be. The
//! process gets keys and shares over its standard input, as a library would get them over a call.

mod command;
#[doc(hidden)]
pub mod fuzzing;
mod process;

pub use process::{PROGRAM, find};

use accel::{Device, DeviceCommand, SeatKeys, check};
use base::Error;
use process::Process;
use std::path::Path;
use std::sync::Arc;

/// A simulated accelerator.
pub struct Rtl {
    process: Process,
    keys: Option<Arc<SeatKeys>>,
    cycles: u64,
}

impl Rtl {
    /// Starts the simulator that [`find`] finds.
    ///
    /// # Errors
    /// When there is none, or it does not start.
    pub fn start() -> Result<Self, Error> {
        Self::at(&find()?)
    }

    /// Starts this simulator.
    ///
    /// # Errors
    /// When it does not start.
    pub fn at(program: &Path) -> Result<Self, Error> {
        Ok(Self { process: Process::start(program)?, keys: None, cycles: 0 })
    }

    /// Clock cycles of all commands so far, each from the first word of its descriptor to its completion,
    /// with a memory that answers at once.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.cycles
    }
}

impl Device for Rtl {
    fn name(&self) -> &'static str {
        "rtl"
    }

    fn configure(&mut self, keys: Arc<SeatKeys>) -> Result<(), Error> {
        self.process.call(command::configure(&keys))?;
        self.keys = Some(keys);
        Ok(())
    }

    fn run(&mut self, command: &mut DeviceCommand<'_>) -> Result<(), Error> {
        let keys = self.keys.as_deref().ok_or_else(|| Error::misuse("the device has no keys yet"))?;
        check(command, keys.seat())?;
        self.cycles += command::run(&mut self.process, keys.seat(), command)?;
        Ok(())
    }
}
