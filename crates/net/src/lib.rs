//! Talk: channels to a *named* peer at a *named* step, a ledger of what was said, TCP and TLS 1.3 between
//! hosts, and an in-process cluster with fault injection for tests.
//!
//! Protocols hold a [`Session`] and speak through [`Session::link`]. There is no "receive from any" and no
//! flush: a receive first hands over everything queued, so a protocol cannot forget to.

mod accept;
mod channel;
pub mod cluster;
pub mod connect;
mod crowd;
mod farewell;
pub mod faults;
#[doc(hidden)]
pub mod fuzzing;
mod hello;
pub mod identity;
mod ledger;
mod network;
mod progress;
mod refusal;
pub mod relay;
mod session;
mod socket;
pub mod succession;
pub mod talk;
mod tls;
mod window;

pub use channel::{Channel, pair};
pub use connect::{Channels, Endpoint, Meet, Meeting, Status, Transport};
pub use farewell::Farewell;
pub use faults::Fault;
pub use hello::FORMAT_VERSION;
pub use identity::{Fingerprint, Identity};
pub use ledger::{Entry, Ledger};
pub use network::Network;
pub use progress::Progress;
pub use refusal::Terms;
pub use session::{Link, Session};
pub use succession::Succession;
