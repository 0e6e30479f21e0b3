//! Talk: channels to a *named* peer at a *named* step, a ledger of what was said, TCP and TLS 1.3 between
//! hosts, and an in-process cluster with fault injection for tests.
//!
//! Protocols hold a [`Session`] and speak through [`Session::link`]. There is no "receive from any". A
//! receive first hands over what is queued towards its own peer, so two parties that talk in turn need no
//! flush. A party that has spoken to several peers flushes each before it waits for one, and a party that
//! computes on flushes what a peer waits for ([`StepLink::flush`]).

mod accept;
mod channel;
pub mod cluster;
pub mod connect;
mod crowd;
mod farewell;
pub mod faults;
#[doc(hidden)]
pub mod fuzzing;
pub mod gate;
mod halt;
mod hello;
pub mod identity;
mod in_place;
pub mod lanes;
mod network;
mod progress;
mod refusal;
pub mod relay;
pub mod services;
mod session;
mod socket;
mod stop;
pub mod succession;
pub mod talk;
mod tls;
mod traffic;
mod window;

pub use channel::{Channel, pair};
pub use connect::{ChannelSecurity, Channels, Meet, Meeting, Rendezvous, Status};
pub use crowd::Crowd;
pub use farewell::Farewell;
pub use faults::InjectedFault;
pub use halt::RangeHalt;
pub use hello::FORMAT_VERSION;
pub use identity::{Identity, KeyFingerprint};
pub use in_place::{InPlace, Inlet, Outlet, OwedDigests, PLACED_BYTES, Peeked};
pub use network::IpNetwork;
pub use progress::RowProgress;
pub use refusal::OperatorTerms;
pub use session::{Session, StepLink};
pub use stop::StopSwitch;
pub use succession::Succession;
pub use traffic::{Traffic, TrafficEntry};
