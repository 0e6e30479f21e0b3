//! What a launcher of programs needs and cannot do without `unsafe`.

use crate::sys::inherit;
use std::io;

/// Closes every descriptor but the standard streams in all programs that this process starts from now on.
/// Descriptors that it makes later follow their own flags.
///
/// # Errors
/// The system's: `/proc` is not there.
pub fn keep_from_children() -> io::Result<()> {
    inherit::keep_from_children()
}
