//! Swap files that live as long as a value, for measurements against the system's own paging.
//!
//! **What must hold.** A swap file is switched off and removed when its value is dropped. When the process
//! was killed, the next one finds the file by its name, which holds the number and the start time of the
//! process that made it, and removes it then. Swap files of others are never touched.

use crate::sys::PAGE;
use crate::sys::own::set_aside;
use crate::sys::swap::{switch_off, switch_on};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PREFIX: &str = "osprey-swap-";
/// Most bytes of a swap file.
pub const SWAP_MAX: u64 = 1 << 40;
/// Fewest: the system refuses less than ten pages.
pub const SWAP_MIN: u64 = 1 << 20;
/// Bytes written at a time when a file system has no way to reserve space.
const FILL: usize = 1 << 20;
/// How long a swap file that cannot be switched off is tried again, and how often.
const PATIENCE: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(100);

/// A swap file that is in use. Dropping it switches it off, which brings back what is in it, and removes it.
#[derive(Debug)]
pub struct SwapFile {
    path: PathBuf,
}

impl SwapFile {
    /// Makes a swap file of `bytes` ([`SWAP_MIN`] to [`SWAP_MAX`]) in `dir`, of the highest priority, after
    /// those that dead processes left in `dir` or in use were removed.
    ///
    /// # Errors
    /// `PermissionDenied` without the right to change swap, `StorageFull`, `InvalidInput` outside the range
    /// or on a file system that cannot hold swap.
    pub fn create(dir: &Path, bytes: u64) -> io::Result<Self> {
        if !(SWAP_MIN..=SWAP_MAX).contains(&bytes) {
            let text = format!("a swap file has {SWAP_MIN} to {SWAP_MAX} bytes; {bytes} were asked for");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Self::remove_stale(dir)?;
        let path = std::path::absolute(dir)?.join(name(std::process::id())?);
        let made = fill(&path, bytes).and_then(|()| switch_on(&path));
        match made {
            Ok(()) => Ok(Self { path }),
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Switches off and removes the swap files of dead processes, in `dir` and among those in use. How many
    /// there were.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_stale(dir: &Path) -> io::Result<usize> {
        let mut found: Vec<PathBuf> =
            std::fs::read_dir(dir)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        found.extend(in_use()?);
        found.sort();
        found.dedup();
        let mut removed = 0;
        for path in found.into_iter().filter(|path| is_stale(path)) {
            match switch_off(&path) {
                // Not in use, or gone, is as good as switched off.
                Err(error) if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => {
                    return Err(error);
                }
                _ => {}
            }
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => removed += 1,
            }
        }
        Ok(removed)
    }
}

impl Drop for SwapFile {
    /// What is in it goes back to memory first. A process at its own limit may have pages there: the system
    /// then has no room for them (`ENOMEM`) until that process ends or makes some.
    fn drop(&mut self) {
        let until = Instant::now() + PATIENCE;
        while let Err(error) = switch_off(&self.path) {
            let may_pass = matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EINTR | libc::EAGAIN));
            if !may_pass || Instant::now() > until {
                let path = self.path.display();
                eprintln!(
                    "warning: the swap file {path} stays in use: {error}; switch it off with swapoff {path}"
                );
                return;
            }
            std::thread::sleep(AGAIN);
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Bytes that this system has read from and written to swap since it started.
///
/// # Errors
/// The system's.
pub fn swapped_bytes() -> io::Result<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/vmstat")?;
    let pages = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|n| n.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    Ok((pages("pswpin") * PAGE as u64, pages("pswpout") * PAGE as u64))
}

/// `osprey-swap-PID-START`; the start time tells a process from a later one with its number.
fn name(pid: u32) -> io::Result<String> {
    let start = started(pid).ok_or_else(|| io::Error::other("/proc does not show this process"))?;
    Ok(format!("{PREFIX}{pid}-{start}"))
}

/// When a process started, in clock ticks since boot; `None` when it is gone, waited for or not.
fn started(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; after it come the state and, as the 20th field, the start.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let gone = matches!(fields.next()?, "Z" | "X");
    if gone { None } else { fields.nth(18)?.parse().ok() }
}

/// Whether a path is named as ours and its process is gone.
fn is_stale(path: &Path) -> bool {
    let parts = || {
        let (pid, start) = path.file_name()?.to_str()?.strip_prefix(PREFIX)?.split_once('-')?;
        Some((pid.parse::<u32>().ok()?, start.parse::<u64>().ok()?))
    };
    parts().is_some_and(|(pid, start)| started(pid) != Some(start))
}

/// Files in use for swap, as the system lists them.
fn in_use() -> io::Result<Vec<PathBuf>> {
    let text = std::fs::read_to_string("/proc/swaps")?;
    Ok(text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(PathBuf::from).collect())
}

/// A file without holes, with the header that `mkswap` writes.
fn fill(path: &Path, bytes: u64) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    let pages = bytes / PAGE as u64;
    reserve(&file, pages * PAGE as u64)?;
    file.write_all_at(&header(pages), 0)?;
    file.sync_all()
}

fn reserve(mut file: &File, bytes: u64) -> io::Result<()> {
    match set_aside(file, 0, bytes) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            let zeros = vec![0; FILL];
            let mut left = bytes;
            while left > 0 {
                let part = left.min(FILL as u64);
                file.write_all(&zeros[..part as usize])?;
                left -= part;
            }
            Ok(())
        }
        other => other,
    }
}

/// The first page: version 1 and the number of the last page after 1024 bytes for a boot sector; the mark at
/// the end.
fn header(pages: u64) -> Vec<u8> {
    const MARK: &[u8] = b"SWAPSPACE2";
    let mut page = vec![0; PAGE];
    page[1024..1028].copy_from_slice(&1u32.to_ne_bytes());
    page[1028..1032].copy_from_slice(&((pages - 1) as u32).to_ne_bytes());
    page[PAGE - MARK.len()..].copy_from_slice(MARK);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    /// tmpfs cannot hold swap: the folder of the tests may be one.
    fn folder() -> tempfile::TempDir {
        tempfile::tempdir_in("/var/tmp").expect("a folder")
    }

    #[test]
    fn a_swap_file_is_used_and_removed() {
        let dir = folder();
        let swap = match SwapFile::create(dir.path(), 2 << 20) {
            Ok(swap) => swap,
            Err(error) => return eprintln!("skipped: no swap file here: {error}"),
        };
        let path = swap.path().to_path_buf();
        assert!(path.exists() && in_use().expect("/proc/swaps").contains(&path));
        assert!(!is_stale(&path), "its process lives");
        drop(swap);
        assert!(!path.exists() && !in_use().expect("/proc/swaps").contains(&path));
    }

    /// The child that made them is gone: one file in use, one not.
    #[test]
    fn what_a_dead_process_left_is_removed() {
        let dir = folder();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let stale = dir.path().join(name(child.id()).expect("a name"));
        fill(&stale, 2 << 20).expect("a file");
        let on = switch_on(&stale);
        assert!(!is_stale(&stale), "the child lives");
        assert_eq!(SwapFile::remove_stale(dir.path()).expect("removal"), 0);
        child.kill().expect("a child");
        child.wait().expect("a child");
        let others = dir.path().join("osprey-swap-of-mine");
        std::fs::write(&others, "kept").expect("a file");
        assert_eq!(SwapFile::remove_stale(dir.path()).expect("removal"), 1);
        assert!(!stale.exists() && others.exists());
        if on.is_ok() {
            assert!(!in_use().expect("/proc/swaps").contains(&stale));
        }
    }

    #[test]
    fn a_header_is_as_mkswap_writes_it() {
        let page = header(512);
        assert_eq!(page.len(), PAGE);
        assert_eq!((page[1024], &page[1028..1032]), (1, &511u32.to_ne_bytes()[..]));
        assert!(page.ends_with(b"SWAPSPACE2"));
        let error = SwapFile::create(Path::new("/var/tmp"), 4096).expect_err("too small");
        assert!(error.to_string().contains("1048576"), "{error}");
    }
}
