//! Who has the lock of a local folder, and how long it is waited for.
//!
//! A process that was killed holds its locks until the system has taken its memory back: who starts the next
//! one at once would find the folder taken.

use base::{At, Error, Fault};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a lock is waited for whose process lives, as far as can be seen: it may end in this moment.
const LIVES: Duration = Duration::from_secs(2);
/// And one whose process is ending.
const ENDS: Duration = Duration::from_secs(30);
const LOOKS: Duration = Duration::from_millis(50);
/// `PF_EXITING` among the flags of a process in `/proc`.
const EXITING: u64 = 4;
/// The bit of SIGKILL in a mask of signals.
const KILL: u64 = 1 << 8;

/// Locks an opened folder.
///
/// # Errors
/// When another process has it still after a moment, or the file system has no locks.
pub(crate) fn lock(file: &File, folder: &Path) -> Result<(), Error> {
    let (shown, since) = (folder.display(), Instant::now());
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) => {}
            Err(e) => {
                let what = format_args!("cannot lock {shown}: take a folder of a file system that has locks");
                return Err(Error::io(what, &e.into()));
            }
        }
        let holder = holder(file);
        let patience = if holder.is_some_and(ends) { ENDS } else { LIVES };
        if since.elapsed() > patience {
            let process = holder.map_or_else(String::new, |pid| format!(" (process {pid})"));
            return Err(Error::new(
                At::default(),
                Fault::Io(format!(
                    "another process of this machine{process} leads a run whose state is in {shown}; wait \
                     for it or end it, or name another folder"
                )),
            ));
        }
        std::thread::sleep(LOOKS);
    }
}

/// The process that has a folder's lock, where the kernel tells.
fn holder(file: &File) -> Option<u32> {
    let folder = file.metadata().ok()?;
    let device = (rustix::fs::major(folder.dev()), rustix::fs::minor(folder.dev()));
    holder_in(&std::fs::read_to_string("/proc/locks").ok()?, device, folder.ino())
}

/// The same by the kernel's table: `1: FLOCK  ADVISORY  WRITE 8541 fe:00:10028138 0 EOF`.
fn holder_in(table: &str, (major, minor): (u32, u32), inode: u64) -> Option<u32> {
    let wanted = format!("{major:02x}:{minor:02x}:{inode}");
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, pid, place, ..] = fields[..] else { return None };
        // 0 is one of another namespace.
        if place == wanted { pid.parse().ok().filter(|pid| *pid > 0) } else { None }
    })
}

/// Whether a process is no more, is about to be, or was told to be by a signal that no process refuses.
fn ends(pid: u32) -> bool {
    let stat = match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        // What this user may not look at tells nothing: it lives, as far as can be seen.
        Err(e) => return e.kind() != ErrorKind::PermissionDenied,
    };
    // Behind the name, which may hold anything but ends at the last parenthesis.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let flags: u64 = fields.get(6).and_then(|flags| flags.parse().ok()).unwrap_or_default();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let pending = |name: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
        u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & KILL != 0)
    };
    matches!(fields.first(), Some(&("Z" | "X")))
        || flags & EXITING != 0
        || pending("SigPnd:")
        || pending("ShdPnd:")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_kernels_table_says_who_has_a_lock() {
        let table = [
            "1: POSIX  ADVISORY  READ 12 fe:00:77 0 EOF",
            "2: -> FLOCK  ADVISORY  WRITE 13 fe:00:77 0 EOF",
            "3: FLOCK  ADVISORY  WRITE 14 08:01:77 0 EOF",
            "4: FLOCK  ADVISORY  WRITE 15 fe:00:77 0 EOF",
        ];
        let table = &table.join("\n");
        assert_eq!(holder_in(table, (0xfe, 0), 77), Some(15));
        assert_eq!(holder_in(table, (8, 1), 77), Some(14));
        assert_eq!(holder_in(table, (8, 1), 78), None);
    }

    #[test]
    fn a_process_that_was_killed_ends() {
        assert!(!ends(std::process::id()));
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(!ends(child.id()));
        child.kill().unwrap();
        // It is dead, or about to be: nobody has waited for it yet.
        while !ends(child.id()) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    fn a_lock_that_is_given_up_in_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let open = || File::open(folder.path()).unwrap();
        let (first, second) = (open(), open());
        lock(&first, folder.path()).unwrap();
        let error = lock(&second, folder.path()).unwrap_err();
        assert!(matches!(error.kind(), Fault::Io(_)), "{error}");
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            drop(first);
        });
        lock(&second, folder.path()).unwrap();
        thread.join().unwrap();
    }
}
