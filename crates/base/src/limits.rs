//! Every bound of the system that more than one crate needs, by name. Each has a test at the cap and beyond
//! it.

/// Parties in one session.
pub const PARTIES: usize = 16;
/// Rows of one side of a study.
pub const ROWS: u64 = 1 << 32;
/// Shards of one job.
pub const SHARDS: u32 = 256;
/// Ranges of rows that four servers compute at once.
pub const SERVER_LANES: u32 = 32;
/// Workers of one party that compute at once.
pub const WORKERS: u16 = 256;
/// Bits of the widest value of a program.
pub const WIDTH: u32 = 128;
/// Nodes of one section of a program.
pub const NODES: usize = 1 << 20;
/// Bytes of a program's text form or a study file.
pub const STUDY_BYTES: usize = 1 << 20;
/// Bytes of one identifier.
pub const IDENTIFIER_BYTES: usize = 1 << 20;
/// Bytes of one line of an input file.
pub const LINE_BYTES: usize = 4 << 20;
/// Bytes a peer may announce in one variable-length message (control messages only).
pub const MESSAGE_BYTES: u64 = 16 << 20;
/// Bytes that may wait to be sent on one channel before the sender waits.
pub const WINDOW_BYTES: usize = 8 << 20;
/// Milliseconds without progress before a session gives up, unless the party's file says otherwise.
pub const DEADLINE_MS: u64 = 600_000;
/// Networks that a party may name to take connections from.
pub const NETWORKS: usize = 64;
/// Milliseconds for a handshake, where the party's deadline is not shorter.
pub const HANDSHAKE_MS: u64 = 20_000;
/// Bytes of what TLS begins with, where it is read for the name that it asks for.
pub const CLIENT_HELLO_BYTES: usize = 16 << 10;
/// Connections that a gate carries at one time, besides those that have just come.
pub const GATE_CONNECTIONS: usize = 1024;
/// Names that coordinators of one key have at a gate.
pub const GATE_ROUTES: usize = 4096;
/// Coordinators of one key that have routes at a gate at one time.
pub const GATE_COORDINATORS: usize = 64;
/// Noise candidates of one cut-and-choose.
pub const CANDIDATES: usize = 1024;
