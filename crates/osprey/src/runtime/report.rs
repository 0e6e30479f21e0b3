//! The report of a process, as JSON in a file.

use crate::stats::Stats;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// All of the report or none of it. A descriptor of the launcher's (`/proc/self/fd/N`) is a file without a
/// name: it is written as it is.
///
/// # Errors
/// The system's.
pub(super) fn write(path: &Path, stats: &Stats) -> io::Result<()> {
    let text = serde_json::to_vec(stats).map_err(io::Error::other)?;
    if path.starts_with("/proc/self/fd") {
        return fs::write(path, text);
    }
    let (mut file, beside) = new_beside(path)?;
    let written = file.write_all(&text).and_then(|()| fs::rename(&beside, path));
    written.inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// A new file beside a path. One that is there, or a link that somebody put there, is not written through.
fn new_beside(path: &Path) -> io::Result<(File, OsString)> {
    const TRIES: u32 = 64;
    let mut last = io::ErrorKind::AlreadyExists.into();
    for attempt in 0..TRIES {
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}.{attempt}", std::process::id()));
        match File::create_new(&beside) {
            Ok(file) => return Ok((file, beside)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_not_written_through_a_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, target) = (folder.path().join("report"), folder.path().join("target"));
        fs::write(&target, "as it was").expect("written");
        let planted = folder.path().join(format!("report.{}.0", std::process::id()));
        std::os::unix::fs::symlink(&target, &planted).expect("a link");
        let stats = Stats { peak_chunks: 7, ..Stats::default() };
        write(&path, &stats).expect("written");
        assert_eq!(fs::read_to_string(&target).expect("read"), "as it was");
        let report: Stats = serde_json::from_slice(&fs::read(&path).expect("read")).expect("a report");
        assert_eq!(report.peak_chunks, 7);
        assert!(path.symlink_metadata().expect("a report").is_file());
    }
}
