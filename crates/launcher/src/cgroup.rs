//! Memory groups of the system: made for one run, named after the launcher, removed with it.
//!
//! A group cannot go while a process is in it and a dead launcher removes nothing, so two others do: the
//! guard, which outlives its launcher, and the next start on the machine ([`sweep`]), for the case that both
//! were killed.

use crate::delay::{self, DelayKeeper};
use crate::link::MemoryLimit;
use crate::processes;
use crate::relief::Relief;
use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// First part of the names of our groups.
const NAME: &str = "osprey-";

/// A group with a limit. Removed when dropped, when nothing is in it.
#[derive(Debug)]
pub struct MemoryGroup {
    folder: PathBuf,
    version: Version,
    swappable: Option<String>,
}

/// What looks after a program that comes to its limit.
#[derive(Debug)]
pub enum Help {
    /// Threads wait, in groups of version 1.
    Wait(Relief),
    /// Threads are delayed, in groups of version 2.
    Delay(DelayKeeper),
}

impl Help {
    /// Comes when help may be needed.
    pub fn wait(&self) -> PollFd<'_> {
        match self {
            Self::Wait(relief) => PollFd::from_borrowed_fd(relief.fd(), PollFlags::IN),
            Self::Delay(delay) => delay.wait(),
        }
    }

    /// What tells the pager that memory is needed.
    pub fn pager(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Wait(relief) => relief.pager(),
            Self::Delay(delay) => Some(delay.pager()),
        }
    }

    /// Helps where that is needed. When to come again, rung for or not.
    pub fn relieve(&mut self) -> Option<Duration> {
        match self {
            Self::Wait(relief) => relief.relieve(),
            Self::Delay(delay) => delay.relieve(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    One,
    Two,
}

impl MemoryGroup {
    /// Makes a group with a limit, below the group of this process or beside it.
    ///
    /// # Errors
    /// In words: why the system does not let us.
    pub fn create(limit: MemoryLimit, launcher: u32) -> Result<Self, String> {
        let places = places()?;
        let name = name(launcher).ok_or("/proc does not show this launcher")?;
        let mut why = String::from("no memory controller is mounted");
        for (version, parent, own) in places {
            match Self::create_in(version, &parent, &own, &name, limit) {
                Ok(group) => return Ok(group),
                Err(error) => why = format!("{}: {error}", parent.display()),
            }
        }
        Err(format!("no memory group can be made ({why})"))
    }

    fn create_in(
        version: Version,
        parent: &Path,
        own: &Path,
        name: &str,
        limit: MemoryLimit,
    ) -> Result<Self, io::Error> {
        if version == Version::Two {
            let on = fs::read_to_string(parent.join("cgroup.subtree_control"))?;
            if !on.split_whitespace().any(|c| c == "memory") {
                fs::write(parent.join("cgroup.subtree_control"), "+memory")?;
            }
        }
        let folder = parent.join(name);
        fs::create_dir(&folder)?;
        let mut group = Self { folder, version, swappable: None };
        group.limit(limit)?;
        // Whether a process may join is only known by trying: permission is needed at a common parent, too.
        let me = std::process::id().to_string();
        fs::write(group.folder.join("cgroup.procs"), &me)?;
        fs::write(own.join("cgroup.procs"), &me)?;
        group.reset_peak();
        Ok(group)
    }

    fn limit(&mut self, limit: MemoryLimit) -> io::Result<()> {
        let write = |file: &str, value: u64| fs::write(self.folder.join(file), value.to_string());
        let mut forbidden: Result<(), String> = Ok(());
        match self.version {
            Version::One => {
                write("memory.limit_in_bytes", limit.bytes)?;
                if !limit.swap {
                    // This keeps the group's own limit from swapping. What the kernel does for want of memory
                    // elsewhere no group of this version can forbid; a limit of memory and swap together only
                    // bounds it.
                    write("memory.swappiness", 0)?;
                    let _ = write("memory.memsw.limit_in_bytes", limit.bytes);
                    forbidden =
                        Err("groups of version 1 cannot forbid it when the whole machine is short of memory"
                            .into());
                }
            }
            Version::Two => {
                write("memory.max", limit.bytes)?;
                if !limit.swap {
                    forbidden = write("memory.swap.max", 0).map_err(|error| error.to_string());
                }
                if limit.paged {
                    write("memory.high", delay::high(limit.bytes))?;
                }
            }
        }
        self.swappable =
            forbidden.err().map(|error| format!("{} does not keep swap away: {error}", self.describe()));
        Ok(())
    }

    /// Forgets what the try in `create_in` used, where the kernel lets us.
    fn reset_peak(&self) {
        let (file, value) = match self.version {
            Version::One => ("memory.max_usage_in_bytes", "0"),
            Version::Two => ("memory.peak", "reset"),
        };
        let _ = fs::write(self.folder.join(file), value);
    }

    /// Has a program that comes to its limit wait for memory instead of being killed: for what the system
    /// swaps or the runtime's pager frees. As far as the system has that.
    pub fn help(&self, limit: MemoryLimit) -> Option<Help> {
        let swaps = limit.swap && crate::engine::has_swap();
        // Without it the system kills as it always does, and the run says so.
        match self.version {
            Version::One if limit.paged || swaps => Relief::start(&self.folder, limit).ok().map(Help::Wait),
            Version::Two if limit.paged => DelayKeeper::start(&self.folder, limit).ok().map(Help::Delay),
            _ => None,
        }
    }

    /// Why the system may swap what is in the group although its limit forbids it, in words.
    pub fn swappable(&self) -> Option<String> {
        self.swappable.clone()
    }

    /// Where the group is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Most bytes that were in use.
    pub fn peak(&self) -> Option<u64> {
        let file = match self.version {
            Version::One => "memory.max_usage_in_bytes",
            Version::Two => "memory.peak",
        };
        fs::read_to_string(self.folder.join(file)).ok()?.trim().parse().ok()
    }

    /// Whether the system killed a process of the group because the limit was reached.
    pub fn out_of_memory(&self) -> bool {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let text = fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        text.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|n| n.trim() != "0"))
    }

    /// In words.
    pub fn describe(&self) -> String {
        let version = if self.version == Version::One { "v1" } else { "v2" };
        format!("memory cgroup {version} {}", self.folder.display())
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// A process that was just waited for may still be leaving its group: the kernel says "busy" for a moment.
fn remove(folder: &Path) {
    for _ in 0..200 {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(Duration::from_millis(5));
            }
            _ => return,
        }
    }
}

/// Removes groups that launchers left which were killed together with their guards; with `own` also those of
/// this launcher, whose guard was killed.
pub fn sweep(own: bool) {
    let ours = name(std::process::id()).filter(|_| own);
    for (_, parent, _) in places().unwrap_or_default() {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        for entry in entries
            .filter(|e| e.file_name().to_str().is_some_and(|n| is_stale(n) || ours.as_deref() == Some(n)))
        {
            let members = fs::read_to_string(entry.path().join("cgroup.procs")).unwrap_or_default();
            for pid in members.lines().filter_map(|line| line.parse().ok()) {
                processes::kill(pid, Signal::KILL);
            }
            remove(&entry.path());
        }
    }
}

/// `osprey-SPACE-PID-BEGAN`: the space of process ids, a launcher and when it began.
fn name(launcher: u32) -> Option<String> {
    Some(format!("{NAME}{}-{launcher}-{}", space()?, processes::began(launcher)?))
}

fn space() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// Whether a group's name is ours and of a launcher that is dead. Those of other spaces of ids cannot be
/// told.
fn is_stale(name: &str) -> bool {
    let parse = || {
        let mut parts = name.strip_prefix(NAME)?.split('-').map(|part| part.parse::<u64>().ok());
        Some([parts.next()??, parts.next()??, parts.next()??])
    };
    match parse() {
        Some([of, pid, began]) => {
            Some(of) == space() && u32::try_from(pid).is_ok_and(|pid| processes::began(pid) != Some(began))
        }
        None => false,
    }
}

/// Where a group may be made: (version, its parent, the group this process is in).
fn places() -> Result<Vec<(Version, PathBuf, PathBuf)>, String> {
    let read = |file: &str| fs::read_to_string(file).map_err(|e| format!("cannot read {file}: {e}"));
    Ok(find(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?))
}

fn find(groups: &str, mounts: &str) -> Vec<(Version, PathBuf, PathBuf)> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(id), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let version = match (id, controllers) {
            ("0", "") => Version::Two,
            (_, names) if names.split(',').any(|name| name == "memory") => Version::One,
            _ => continue,
        };
        let Some((root, mount)) = mounts.lines().find_map(|line| group_mount(line, version)) else {
            continue;
        };
        let below = path.strip_prefix(root.trim_end_matches('/')).unwrap_or(path).trim_start_matches('/');
        let top = Path::new(mount);
        let own = if top.join(below).is_dir() { top.join(below) } else { top.to_path_buf() };
        found.push((version, own.clone(), own.clone()));
        if version == Version::Two && own != top {
            // A group with processes of its own cannot hand controllers on: ours goes beside it.
            found.extend(own.parent().map(|parent| (version, parent.to_path_buf(), own.clone())));
        }
    }
    // Where both versions are there, the memory controller is in one of them: try that of version 1 first.
    found.sort_by_key(|(version, ..)| *version == Version::Two);
    found
}

/// Root and place of a mount of the memory controller.
fn group_mount(line: &str, version: Version) -> Option<(&str, &str)> {
    let (left, right) = line.split_once(" - ")?;
    let mut right = right.split(' ');
    let (kind, options) = (right.next()?, right.nth(1)?);
    let fits = match version {
        Version::One => kind == "cgroup" && options.split(',').any(|o| o == "memory"),
        Version::Two => kind == "cgroup2",
    };
    let mut left = left.split(' ').skip(3);
    let found = (left.next()?, left.next()?);
    fits.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_in_both_versions() {
        let mounts = "30 1 0:26 / /none/memory rw - cgroup cgroup rw,memory\n31 1 0:27 / /none/unified rw - \
                      cgroup2 cgroup2 rw\n";
        let found = find("4:memory:/a/b\n0::/\n", mounts);
        assert_eq!(found[0], (Version::One, "/none/memory".into(), "/none/memory".into()));
        assert_eq!(found[1], (Version::Two, "/none/unified".into(), "/none/unified".into()));
        assert!(find("3:cpu:/a\n", mounts).is_empty());
    }

    #[test]
    fn a_group_of_a_dead_launcher_is_stale() {
        let me = std::process::id();
        let own = name(me).expect("a name");
        assert!(!is_stale(&own));
        assert!(is_stale(&format!("{own}1")), "another process of the same id");
        for other in ["osprey-", "osprey-1-2-3", "systemd", "osprey-x-y-z"] {
            assert!(!is_stale(other), "{other}");
        }
    }

    /// Version 2, in a folder that is no group.
    #[test]
    fn growth_is_delayed_where_nothing_can_wait() {
        for (paged, high) in [(true, Some("63298086")), (false, None)] {
            let folder = tempfile::tempdir().expect("a folder");
            let mut group =
                MemoryGroup { folder: folder.path().to_path_buf(), version: Version::Two, swappable: None };
            group.limit(MemoryLimit { bytes: 64 << 20, swap: false, paged }).expect("files");
            let read = |file: &str| fs::read_to_string(folder.path().join(file)).ok();
            assert_eq!(read("memory.max").as_deref(), Some("67108864"));
            assert_eq!(read("memory.swap.max").as_deref(), Some("0"));
            assert_eq!(read("memory.high").as_deref(), high);
        }
    }

    #[test]
    fn a_group_goes_when_it_is_dropped() {
        let limit = MemoryLimit { bytes: 64 << 20, swap: false, paged: false };
        match MemoryGroup::create(limit, std::process::id()) {
            Err(why) => eprintln!("skipped: {why}"),
            Ok(group) => {
                let folder = group.folder().to_path_buf();
                assert!(folder.is_dir() && !group.out_of_memory());
                sweep(false);
                assert!(folder.is_dir(), "a live launcher's group stays");
                drop(group);
                assert!(!folder.exists());
            }
        }
    }
}
