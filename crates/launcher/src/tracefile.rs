//! Trace files that are kept from run to run.

use crate::speculation::{WholeTrace, verify};
use osprey::ProcessSettings;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a trace that is whole and of these settings.
///
/// # Errors
/// In words.
pub fn open(path: &Path, settings: &ProcessSettings) -> Result<WholeTrace, String> {
    let file = File::open(path).map_err(|e| format!("cannot read the trace {}: {e}", path.display()))?;
    // Its name at the runtime is that of a descriptor; people know it by its path.
    let descriptor = crate::pass::descriptor_path(file.as_fd()).display().to_string();
    verify(file, settings).map_err(|why| why.replace(&descriptor, &path.display().to_string()))
}

/// Bytes per chunk of a trace; `None` where there is none that is whole.
pub fn chunk(path: &Path) -> Option<usize> {
    let (header, _) = osprey::trace::TraceSource::inspect(path).ok()?;
    usize::try_from(header.chunk).ok()
}

/// Copies a trace to a path: all of it or nothing, and nothing beside it, whenever we are killed. It is
/// its owner's alone: the arguments of a program and what it touches are nobody else's business.
///
/// # Errors
/// The system's.
pub fn keep(trace: &File, path: &Path) -> io::Result<()> {
    let mut from = File::open(crate::pass::descriptor_path(trace.as_fd()))?;
    if path.starts_with("/proc") {
        // A descriptor by its path, as `osprey trace verify` gives: memory of its owner, without a name to
        // replace.
        let mut file = File::options().write(true).truncate(true).open(path)?;
        return io::copy(&mut from, &mut file).map(|_| ());
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::from_raw_mode(0o600)) {
        Ok(nameless) => {
            let mut file = File::from(nameless);
            io::copy(&mut from, &mut file)?;
            file.sync_all()?;
            removed(path)?;
            let named = crate::pass::descriptor_path(file.as_fd());
            Ok(rustix::fs::linkat(CWD, &named, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
        }
        // A file system without nameless files: a torn trace is noticed when it is read, and made anew.
        Err(_) => {
            from.rewind()?;
            // A file that is there keeps its mode: it goes first.
            removed(path)?;
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
            io::copy(&mut from, &mut file).map(|_| ())
        }
    }
}

/// Removes a file that may be there.
fn removed(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path).or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) })
}
