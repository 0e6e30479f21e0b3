//! Swap files, switched on and off: for those who may.

use super::check;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Begins to use a swap file, before those of lower priority.
///
/// # Errors
/// The system's: `PermissionDenied` without the right, `InvalidInput` for what is no swap file.
pub(crate) fn switch_on(path: &Path) -> io::Result<()> {
    const PREFER: i32 = 0x8000;
    const HIGHEST: i32 = 0x7fff;
    let path = c_path(path)?;
    // SAFETY: a string that ends with a zero.
    check(unsafe { libc::swapon(path.as_ptr(), PREFER | HIGHEST) }.into()).map(|_| ())
}

/// Brings back what is in a swap file and uses it no more.
///
/// # Errors
/// The system's: `ENOMEM` where memory has no room for it, `EINVAL` for a file that is not in use.
pub(crate) fn switch_off(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: a string that ends with a zero.
    check(unsafe { libc::swapoff(path.as_ptr()) }.into()).map(|_| ())
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))
}
