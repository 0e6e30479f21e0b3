//! Transports for parties that trust the network between them: shared memory on one host, and libfabric.
//!
//! They carry plain text. So they start only where the operator says `trusted_network = true`, after the
//! parties have met over TLS, and every flush carries a tag under keys agreed there: see [`sealed`].
//! [`upgrade`] exchanges the channels of a session; protocols notice nothing but `Link::is_private`, which is
//! now false: what a third party must not see they mask themselves.
//!
//! | | copies | needs | an end is noticed by |
//! |---|---|---|---|
//! | TLS (`net`) | 2, and encryption | nothing | TLS |
//! | [`PlainTransport::Shm`] | one in, one out | Linux, one host | the TLS channel kept as life line |
//! | [`PlainTransport::Fabric`] | one in, one out, and the provider's | libfabric and `make fabric` | the same |
//!
//! `unsafe` is in `libfabric/shim.rs` (calls into C) only; the mapping is `kernels::SharedMemory`. The page
//! for the wire is `docs/protocols/wire.md`.

#[doc(hidden)]
pub mod fuzzing;
mod libfabric;
pub mod sealed;
mod shm;
mod upgrade;

pub use sealed::{PairKeys, SealedChannel};
pub use upgrade::{PlainTransport, UpgradeOutcome, available, upgrade, upgrade_bytes, upgrade_with};

use base::ChannelError;
use std::time::Duration;

/// The error of a deadline that passed.
fn passed(deadline: Duration) -> ChannelError {
    ChannelError::Deadline { limit_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX) }
}
