//! What libfabric's shm provider leaves in /dev/shm for a process that is killed, and how the next one
//! removes it.
//!
//! The provider makes a file for every endpoint, under the name that we give it: `tacit-NAMESPACE-PID`, then
//! its own numbers. A file goes when its process is dead: when it is ours, bears the number of the process
//! namespace that we are in, and no process of its number is there. Files of other containers that share
//! /dev/shm bear another number and stay.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const FOLDER: &str = "/dev/shm";

/// The name of this process's endpoints; nothing where the system does not tell the namespace.
pub(super) fn name() -> Option<String> {
    Some(format!("{}{}", prefix()?, std::process::id()))
}

/// Removes what dead processes left. What cannot be removed stays.
pub(super) fn sweep() {
    if let Some(prefix) = prefix() {
        sweep_in(Path::new(FOLDER), &prefix);
    }
}

/// Before the number of a process of this namespace: `pid:[4026531836]` is how the system writes it.
fn prefix() -> Option<String> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    let number: String = link.to_str()?.chars().filter(char::is_ascii_digit).collect();
    (!number.is_empty()).then(|| format!("tacit-{number}-"))
}

fn sweep_in(folder: &Path, prefix: &str) {
    let Ok(own) = fs::metadata("/proc/self").map(|process| process.uid()) else { return };
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = file.file_name();
        let process = name.to_str().and_then(|name| process_of(name, prefix));
        let dead = process.is_some_and(|id| !Path::new("/proc").join(id.to_string()).exists());
        if dead && file.metadata().is_ok_and(|file| file.is_file() && file.uid() == own) {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// The process that a file is of.
fn process_of(name: &str, prefix: &str) -> Option<u32> {
    let rest = name.strip_prefix(prefix)?;
    rest.split(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn files_of_dead_processes_go_and_others_stay() {
        let (folder, prefix) = (tempfile::tempdir().unwrap(), prefix().unwrap());
        let mut child = Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        let own = std::process::id();
        let gone = [format!("{prefix}{dead}:0:1"), format!("{prefix}{dead}")];
        let stay = [
            format!("{prefix}{own}:0:1"),
            format!("tacit-1-{dead}:0:1"),
            format!("{dead}:0:1"),
            format!("{prefix}x:0:1"),
        ];
        gone.iter().chain(&stay).for_each(|name| fs::write(folder.path().join(name), "").unwrap());
        sweep_in(folder.path(), &prefix);
        let there = |name: &String| folder.path().join(name).exists();
        assert!(!gone.iter().any(there) && stay.iter().all(there));
        assert!(name().unwrap().starts_with(&prefix));
    }
}
