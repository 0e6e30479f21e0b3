//! Lookaside accelerators behind one command queue.
//!
//! After COPA (Patel et al., "COPA: a distributed programmable accelerator for multi-party computation"): an
//! accelerator works in two stages on vectors in the memory of its host. *Stage 1* computes what must be
//! sent; *stage 2* folds what arrived. Between them lie the network and the check of what arrived, which are
//! not the accelerator's. Addition is stage 1 alone.
//!
//! Four computing parties, the *seats* 0 to 3, share every value as x = x_0 + x_1 + x_2 + x_3; the party at
//! seat p holds x_j for all j != p. Everything here is relative to the seat: *part* k of a share is
//! x_{p+1+k}, k = 0, 1, 2, indices modulo 4. Products then look the same at every seat:
//!
//! | what | known to | sent by | to | vouched for by | the fourth |
//! |---|---|---|---|---|---|
//! | A_s = x1 y2 + x2 y1 + x1 y1 of the parts at s | s, s+1 | s | s+3 | s+1 | s+2 |
//! | C_s = x0 y2 + x2 y0 of the parts at s | s, s+2 | s | s+3 | s+2 | s+1 |
//!
//! C_s and C_{s+2} are the same number, so one of both is sent: for the first half of a vector's blocks those
//! of seats 0 and 1, for the second half those of seats 2 and 3. So every party sends 1.5 elements per
//! product, all of it to the seat before its own, and what it computes is the same everywhere. Every one of
//! the six is a *joint input* of a value v that s and b know: m = v - rho with rho of the stream of the
//! receiver's index r, which r does not know; z_r += rho, z_o += m.
//!
//! A device is exact: every device gives the same bits for the same command.

mod command;
pub mod conformance;
mod cpu;
mod host_steps;
mod host_vectors;
mod queue;
mod seat;
mod split;
mod steps;
mod streams;
#[cfg(test)]
mod timing_tests;
mod vectors;

pub use command::{DeviceCommand, FoldStage, LinearStage, MultiplyStage, Vouch, check};
pub use cpu::Cpu;
pub use host_steps::{elements_of, planes_of, shifted};
pub use kernels::VectorRing;
pub use queue::{DeviceQueue, DeviceWork};
pub use seat::{BlockHalf, ChunkHalves, Seat};
pub use steps::{STEP_TERMS, VectorRun, VectorStep, splat};
pub use streams::{SeatKeys, StreamName, Use};
pub use vectors::{
    Copying, DIGESTED_PIECES, DeviceVector, Inbox, MessagePiece, Outbox, PIECE_BLOCKS, StageVouch,
    VectorMemory, VectorProduct, VectorTable, VouchBy, check_pieces,
};

use base::Error;
use std::sync::Arc;

/// An accelerator, configured for one seat and one session.
pub trait Device: Send {
    /// Short name, as on the command line.
    fn name(&self) -> &'static str;

    /// Gives the device the keys of a session. Commands before it are a misuse.
    ///
    /// # Errors
    /// When the device cannot be configured.
    fn configure(&mut self, keys: Arc<SeatKeys>) -> Result<(), Error>;

    /// Runs a command to its completion.
    ///
    /// # Errors
    /// A misuse, or the device failed: nothing of its output may be used.
    fn run(&mut self, command: &mut DeviceCommand<'_>) -> Result<(), Error>;

    /// Blocks, times terms, from which on a command is worth this device: see [`DeviceQueue::with_cpu`].
    fn least(&self) -> usize {
        0
    }

    /// Whether what failed last found no memory, so that nothing was done. Asked once, it is forgotten.
    fn full(&mut self) -> bool {
        false
    }

    /// Its own memory, if vectors can stay in it.
    fn memory(&mut self) -> Option<&mut dyn VectorMemory> {
        None
    }
}

// Fails to compile if a device could no longer be chosen at run time.
const _: Option<&dyn Device> = None;
