//! Cuts a process off: it sees this machine's files and may write, but what it writes goes to memory and is
//! gone with it; it has no network and no shared memory with others.
//!
//! **What must hold.** Nothing a program does in its speculative pass reaches a file system, a peer, or
//! another process by a socket. It is made against accidents of programs that do not know that they are
//! speculated, not against attack: the program is the user's own, and runs with the user's rights a moment
//! later anyway.
//!
//! **How.** A new root in a memory file system of bounded size. Each folder below the old root that holds no
//! mount is an overlay over itself; folders that hold mounts are made anew and filled one by one, because the
//! kernel refuses overlays that would uncover what a mount hides (`clone_private_mount`). `/proc` and `/dev`
//! are kept, `/sys` and other kernel interfaces are read-only. Mounts belong to a namespace, so they vanish
//! with its last process.

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::thread::UnshareFlags;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Most bytes that a speculative pass may write to files.
pub const SCRATCH: u64 = 256 << 20;
/// Most overlays and binds. Each costs some 50 microseconds and a little kernel memory.
const MOUNTS_MAX: usize = 1024;
/// Where the new root is built. What is there is hidden meanwhile, in our namespace alone.
const WORKSHOP: &str = "/sys";

/// Puts this process, which must have one thread, into namespaces of its own.
///
/// # Errors
/// In words: what is forbidden, and what to allow.
pub fn isolate() -> Result<(), String> {
    let cwd = std::env::current_dir().map_err(|e| format!("cannot tell the current folder: {e}"))?;
    let user = unshare()?;
    let failed = |what: &str| {
        let what = what.to_owned();
        move |e: io::Error| format!("{what}: {e}")
    };
    rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM)
        .map_err(io::Error::from)
        .map_err(failed("cannot keep mounts private"))?;
    let mounts = mounts().map_err(failed("cannot read the list of mounts"))?;
    let mut build = Build::begin(mounts, user).map_err(failed("cannot mount a memory file system"))?;
    build.fill(Path::new("/"))?;
    build.enter(&cwd).map_err(failed("cannot enter the overlay"))
}

/// New namespaces; whether there is a user namespace among them.
fn unshare() -> Result<bool, String> {
    let flags = UnshareFlags::NEWNS | UnshareFlags::NEWNET | UnshareFlags::NEWIPC;
    if try_unshare(flags).is_ok() {
        return Ok(false);
    }
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    try_unshare(flags | UnshareFlags::NEWUSER).map_err(|e| {
        format!(
            "namespaces are forbidden here ({e}); to allow them: sysctl user.max_user_namespaces=10000, on \
             Debian and Ubuntu also kernel.unprivileged_userns_clone=1 and \
             kernel.apparmor_restrict_unprivileged_userns=0, in a container the capability SYS_ADMIN"
        )
    })?;
    let write = |file: &str, text: String| {
        fs::write(file, text).map_err(|e| format!("cannot map the user into a namespace ({file}): {e}"))
    };
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    Ok(true)
}

fn try_unshare(flags: UnshareFlags) -> io::Result<()> {
    #[expect(deprecated, reason = "it is for the flag FILES, which is not used here")]
    rustix::thread::unshare(flags).map_err(Into::into)
}

/// A mount that can be seen: its place is not hidden by a later one.
#[derive(Debug)]
struct Mount {
    place: PathBuf,
    kind: Kind,
    flags: MountFlags,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Files: covered by an overlay.
    Files,
    /// `/proc`, `/dev`: kept as they are.
    Kept,
    /// Kernel interfaces and read-only mounts.
    ReadOnly,
}

fn mounts() -> io::Result<Vec<Mount>> {
    let text = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(text
        .lines()
        .filter_map(mount)
        .filter(|(id, mount)| visible(*id, &mount.place))
        .map(|(_, m)| m)
        .collect())
}

fn visible(id: u64, place: &Path) -> bool {
    let flags = AtFlags::NO_AUTOMOUNT | AtFlags::SYMLINK_NOFOLLOW;
    let seen = rustix::fs::statx(rustix::fs::CWD, place, flags, StatxFlags::MNT_ID);
    seen.is_ok_and(|seen| seen.stx_mnt_id == id)
}

/// A line of mountinfo.
fn mount(line: &str) -> Option<(u64, Mount)> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let (id, place, options) = (left.first()?.parse().ok()?, unescape(left.get(4)?), left.get(5)?);
    let system = right.split(' ').next()?;
    let mut flags = MountFlags::empty();
    for option in options.split(',') {
        flags |= match option {
            "ro" => MountFlags::RDONLY,
            "nosuid" => MountFlags::NOSUID,
            "nodev" => MountFlags::NODEV,
            "noexec" => MountFlags::NOEXEC,
            "noatime" => MountFlags::NOATIME,
            "nodiratime" => MountFlags::NODIRATIME,
            "relatime" => MountFlags::RELATIME,
            _ => MountFlags::empty(),
        };
    }
    let kind = match system {
        "proc" | "devtmpfs" | "devpts" | "mqueue" | "hugetlbfs" => Kind::Kept,
        "tmpfs" if place == Path::new("/dev") => Kind::Kept,
        "sysfs" | "cgroup" | "cgroup2" | "debugfs" | "tracefs" | "securityfs" | "configfs" | "efivarfs"
        | "bpf" | "pstore" | "selinuxfs" | "fusectl" | "binfmt_misc" | "autofs" | "nsfs" | "rpc_pipefs"
        | "nfsd" => Kind::ReadOnly,
        // What lies in there are groups and other interfaces, whatever holds the folders.
        _ if place.starts_with(WORKSHOP) => Kind::ReadOnly,
        _ if flags.contains(MountFlags::RDONLY) => Kind::ReadOnly,
        // The root of a system that stands on a memory disk cannot be told from others by its options.
        _ => Kind::Files,
    };
    Some((id, Mount { place, kind, flags }))
}

/// `\040` is a blank.
fn unescape(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        match (bytes[at], code.and_then(|digits| u8::from_str_radix(digits, 8).ok())) {
            (b'\\', Some(byte)) => {
                out.push(byte);
                at += 4;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    OsString::from_vec(out).into()
}

/// A new root that grows in the workshop.
struct Build {
    mounts: Vec<Mount>,
    user: bool,
    used: usize,
    kernel: rustix::fd::OwnedFd,
}

impl Build {
    fn begin(mounts: Vec<Mount>, user: bool) -> io::Result<Self> {
        use rustix::mount::{OpenTreeFlags, open_tree};
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let kernel = open_tree(rustix::fs::CWD, WORKSHOP, flags)?;
        let options = format!("mode=0755,size={SCRATCH}\0");
        let options = std::ffi::CStr::from_bytes_with_nul(options.as_bytes()).map_err(io::Error::other)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount("osprey", WORKSHOP, "tmpfs", flags, options)?;
        fs::create_dir(workshop("layers"))?;
        fs::create_dir(workshop("root"))?;
        rustix::mount::mount_bind(workshop("root"), workshop("root"))?;
        Ok(Self { mounts, user, used: 0, kernel })
    }

    fn at(&self, place: &Path) -> Option<&Mount> {
        // Of several at one place, only the last is visible, and only visible ones are listed.
        self.mounts.iter().rev().find(|mount| mount.place == place)
    }

    fn holds_mounts(&self, folder: &Path) -> bool {
        self.mounts.iter().any(|mount| mount.place.starts_with(folder) && mount.place != folder)
    }

    /// Makes the entries of a folder that was made already.
    fn fill(&mut self, folder: &Path) -> Result<(), String> {
        let entries = fs::read_dir(folder).map_err(|e| format!("cannot list {}: {e}", folder.display()))?;
        for entry in entries.flatten() {
            let place = entry.path();
            self.make(&place).map_err(|e| format!("cannot cover {}: {e}", place.display()))?;
        }
        Ok(())
    }

    fn make(&mut self, place: &Path) -> Result<(), String> {
        let text = |e: io::Error| e.to_string();
        let metadata = match fs::symlink_metadata(place) {
            Ok(metadata) => metadata,
            // Gone meanwhile, or not ours to see.
            Err(_) => return Ok(()),
        };
        let target = in_root(place);
        let kind = self.at(place).map_or(Kind::Files, |mount| mount.kind);
        if metadata.is_symlink() {
            let to = fs::read_link(place).map_err(text)?;
            return std::os::unix::fs::symlink(to, target).map_err(text);
        }
        if metadata.is_dir() {
            fs::create_dir(&target).map_err(text)?;
            return match kind {
                Kind::Files if self.holds_mounts(place) => {
                    like(&target, &metadata).map_err(text)?;
                    self.fill(place)
                }
                Kind::Files => self.overlay(place, &target, &metadata).map_err(text),
                Kind::Kept | Kind::ReadOnly => self.bring(place, &target, kind).map_err(text),
            };
        }
        if metadata.is_file() {
            // A single file cannot be covered: the program may read it, not write it.
            fs::write(&target, "").map_err(text)?;
            return self.bring(place, &target, Kind::ReadOnly).map_err(text);
        }
        // Sockets and pipes lead to others.
        Ok(())
    }

    fn count(&mut self) -> io::Result<usize> {
        self.used += 1;
        if self.used > MOUNTS_MAX {
            return Err(io::Error::other(format!("more than {MOUNTS_MAX} mounts would be needed")));
        }
        Ok(self.used)
    }

    fn overlay(&mut self, place: &Path, target: &Path, metadata: &fs::Metadata) -> io::Result<()> {
        let layer = workshop("layers").join(self.count()?.to_string());
        let (upper, work) = (layer.join("upper"), layer.join("work"));
        fs::create_dir(&layer)?;
        fs::create_dir(&upper)?;
        fs::create_dir(&work)?;
        like(&upper, metadata)?;
        // By descriptor: a path may hold colons and commas, which the options may not.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lower = rustix::fs::open(place, flags, Mode::empty())?;
        let options = format!(
            "lowerdir=/proc/self/fd/{},upperdir={},workdir={}{}\0",
            lower.as_raw_fd(),
            upper.display(),
            work.display(),
            if self.user { ",userxattr" } else { "" }
        );
        let options = std::ffi::CStr::from_bytes_with_nul(options.as_bytes()).map_err(io::Error::other)?;
        let covered = rustix::mount::mount("osprey", target, "overlay", MountFlags::empty(), options);
        match covered {
            Ok(()) => Ok(()),
            // A file system that cannot lie below an overlay is shown read-only.
            Err(_) => self.bring(place, target, Kind::ReadOnly),
        }
    }

    /// Shows a mount or file as it is, with all mounts in it; files within are covered.
    fn bring(&mut self, place: &Path, target: &Path, kind: Kind) -> io::Result<()> {
        self.count()?;
        if place == Path::new(WORKSHOP) {
            use rustix::mount::{MoveMountFlags, move_mount};
            let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
            move_mount(&self.kernel, "", rustix::fs::CWD, target, flags)?;
        } else {
            rustix::mount::mount_bind_recursive(place, target)?;
        }
        let flags = self.at(place).map_or(MountFlags::empty(), |mount| mount.flags);
        if kind == Kind::ReadOnly {
            read_only(target, flags)?;
        }
        let below = |mount: &&Mount| mount.place.starts_with(place) && mount.place != place;
        let inner: Vec<_> =
            self.mounts.iter().filter(below).map(|m| (m.place.clone(), m.kind, m.flags)).collect();
        for (place, kind, flags) in inner {
            let target = in_root(&place);
            match kind {
                Kind::Kept => {}
                Kind::ReadOnly => read_only(&target, flags)?,
                Kind::Files => {
                    let metadata = fs::metadata(&place)?;
                    if metadata.is_dir() && !self.holds_mounts(&place) {
                        self.overlay(&place, &target, &metadata)?;
                    } else {
                        read_only(&target, flags)?;
                    }
                }
            }
        }
        // Settings of the machine, which root could change.
        let settings = target.join("sys");
        if place == Path::new("/proc") && !self.user && settings.is_dir() {
            rustix::mount::mount_bind(&settings, &settings)?;
            read_only(&settings, flags)?;
        }
        Ok(())
    }

    fn enter(self, cwd: &Path) -> io::Result<()> {
        drop(self.kernel);
        rustix::process::chdir(workshop("root"))?;
        rustix::process::pivot_root(".", ".")?;
        rustix::mount::unmount(".", UnmountFlags::DETACH)?;
        rustix::process::chdir(cwd)?;
        Ok(())
    }
}

fn workshop(name: &str) -> PathBuf {
    Path::new(WORKSHOP).join(name)
}

/// Where a place of the old root is in the new one, while that is built.
fn in_root(place: &Path) -> PathBuf {
    workshop("root").join(place.strip_prefix("/").unwrap_or(place))
}

/// Gives a new folder the owner and mode of an old one. The owner may be one that a user namespace does not
/// know.
fn like(folder: &Path, metadata: &fs::Metadata) -> io::Result<()> {
    match std::os::unix::fs::chown(folder, Some(metadata.uid()), Some(metadata.gid())) {
        Err(e) if !matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput) => {
            return Err(e);
        }
        _ => {}
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(metadata.mode() & 0o7777))
}

fn read_only(target: &Path, flags: MountFlags) -> io::Result<()> {
    let flags = flags | MountFlags::BIND | MountFlags::RDONLY;
    rustix::mount::mount_remount(target, flags, c"")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_told_apart() {
        let line = |place: &str, options: &str, system: &str| {
            let text = format!("36 35 98:0 / {place} {options} master:1 - {system} source rw");
            mount(&text).expect("a mount").1
        };
        assert_eq!(line("/", "rw,noatime", "ext4").kind, Kind::Files);
        assert_eq!(line("/mnt", "ro", "ext4").kind, Kind::ReadOnly);
        assert_eq!(line("/sys", "rw", "sysfs").kind, Kind::ReadOnly);
        assert_eq!(line("/dev", "rw,nosuid", "tmpfs").kind, Kind::Kept);
        let odd = line("/a\\040b\\134", "rw,nosuid,nodev", "tmpfs");
        assert_eq!((odd.place.to_str(), odd.kind), (Some("/a b\\"), Kind::Files));
        assert_eq!(odd.flags, MountFlags::NOSUID | MountFlags::NODEV);
    }
}
