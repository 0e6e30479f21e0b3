//! How a command speaks and is spoken to: results on standard output, errors, exit codes and progress on
//! standard error, processes of its own that it follows, and values of flags. The commands `tacit` and
//! `osprey` share it.

pub mod follow;
pub mod machine;
pub mod output;
pub mod progress;
pub mod values;
pub mod width;
