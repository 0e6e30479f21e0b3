//! Processes by the files of `/proc`: who descends from whom, who is alive, how much memory one used.

use rustix::process::{Pid, Signal, WaitOptions};
use std::collections::HashMap;

/// The fields of `/proc/PID/stat` after the name, which may hold blanks and brackets itself.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split(' ').map(str::to_owned).collect())
}

/// When a process began, in ticks since the machine did: with the id it names a process for good.
pub fn began(pid: u32) -> Option<u64> {
    stat(pid)?.get(19)?.parse().ok()
}

/// Processor time that a process has used, in the system's ticks.
pub fn ticks(pid: u32) -> Option<u64> {
    let fields = stat(pid)?;
    let at = |field: usize| fields.get(field)?.parse::<u64>().ok();
    Some(at(11)? + at(12)?)
}

/// Most bytes that a process had in memory so far.
pub fn peak(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? << 10)
}

/// All processes that descend from `root`, children before their children; those that ended but were not
/// waited for are not among them.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<(u32, bool)>> = HashMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    for pid in entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok()) {
        let Some(fields) = stat(pid) else { continue };
        let Some(Ok(parent)) = fields.get(1).map(|p| p.parse()) else { continue };
        let ended = fields.first().is_some_and(|state| state == "Z" || state == "X");
        children.entry(parent).or_default().push((pid, ended));
    }
    let (mut found, mut next) = (Vec::new(), vec![root]);
    while let Some(parent) = next.pop() {
        for (pid, ended) in children.remove(&parent).unwrap_or_default() {
            next.push(pid);
            if !ended {
                found.push(pid);
            }
        }
    }
    found
}

/// Kills all that descends from this process and waits for it; gives how many there were. This process must
/// be the reaper of its descendants: an orphan is then a child of ours and found again.
pub fn end_descendants() -> u64 {
    let mut ended = 0;
    loop {
        for pid in descendants(std::process::id()) {
            ended += u64::from(kill(pid, Signal::KILL));
        }
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => return ended,
        }
    }
}

/// Sends a signal; whether there was somebody to get it.
pub fn kill(pid: u32, signal: Signal) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::kill_process(pid, signal).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known() {
        let pid = std::process::id();
        assert!(
            began(pid).is_some() && ticks(pid).is_some() && peak(pid).is_some_and(|bytes| bytes > 1 << 16)
        );
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        assert!(descendants(pid).contains(&child.id()));
        assert!(kill(child.id(), Signal::KILL));
        child.wait().expect("waited");
        assert!(!descendants(pid).contains(&child.id()) && began(child.id()).is_none());
    }
}
