//! Where a run will write, looked at before it starts: a mistake there is told at once and not after an hour.

use rustix::fs::{Access, access, statfs};
use std::path::Path;

/// File systems in memory, by the number that the system gives them: tmpfs, ramfs.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// Checks a folder for chunks; `in_memory` permits one whose files are memory.
///
/// # Errors
/// In words: it is missing, no folder, not writable, or in memory.
pub fn spill(folder: &Path, in_memory: bool) -> Result<(), String> {
    let shown = folder.display();
    writable(folder).map_err(|why| {
        format!("--spill {shown}: {why}; name a folder on a fast disk that you may write to (--spill DIR)")
    })?;
    let kind = statfs(folder).map_err(|e| format!("--spill {shown}: {}", std::io::Error::from(e)))?.f_type;
    // The type of the number is the machine's own.
    #[allow(clippy::unnecessary_cast)]
    if !in_memory && IN_MEMORY.contains(&(kind as i64)) {
        return Err(format!(
            "--spill {shown} is a file system in memory: what is written there counts as the program's \
             memory; name a folder on a disk, or say --spill-in-memory"
        ));
    }
    Ok(())
}

/// Checks a file that will be written; `flag` is what it was named by.
///
/// # Errors
/// In words.
pub fn file(flag: &str, path: &Path) -> Result<(), String> {
    let told = |why: String| format!("{flag} {}: {why}", path.display());
    if path.is_dir() {
        return Err(told("that is a folder; name a file".into()));
    }
    if path.exists() {
        return access(path, Access::WRITE_OK).map_err(|e| told(std::io::Error::from(e).to_string()));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    writable(folder).map_err(|why| told(format!("its folder: {why}")))
}

/// Checks a folder that will be made where it is missing.
///
/// # Errors
/// In words.
pub fn made(flag: &str, path: &Path) -> Result<(), String> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let there = absolute.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    writable(there).map_err(|why| format!("{flag} {}: {}: {why}", path.display(), there.display()))
}

fn writable(folder: &Path) -> Result<(), String> {
    let kind = std::fs::metadata(folder).map_err(|e| e.to_string())?;
    if !kind.is_dir() {
        return Err("that is no folder".into());
    }
    access(folder, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|e| format!("it cannot be written to: {}", std::io::Error::from(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_told_by_its_flag() {
        let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
        let inside = folder.path().join("file");
        std::fs::write(&inside, "").expect("written");
        assert_eq!(spill(folder.path(), true), Ok(()));
        let told = spill(&inside, true).expect_err("a file");
        assert!(told.contains("no folder") && told.contains("--spill DIR"), "{told}");
        assert!(spill(&folder.path().join("none"), true).is_err());
        assert_eq!(file("--report", &folder.path().join("new")), Ok(()));
        assert_eq!(file("--report", &inside), Ok(()));
        let told = file("--report", &folder.path().join("none/new")).expect_err("no folder");
        assert!(told.starts_with("--report ") && told.contains("its folder"), "{told}");
        assert!(file("--report", folder.path()).is_err());
        assert_eq!(made("--out", &folder.path().join("a/b")), Ok(()));
        assert!(made("--out", &inside.join("a")).is_err());
    }

    #[test]
    fn a_folder_in_memory_is_refused_unless_it_is_meant() {
        let memory = Path::new("/dev/shm");
        match spill(memory, true) {
            Err(why) => eprintln!("skipped: {why}"),
            Ok(()) => match spill(memory, false) {
                Err(told) => assert!(told.contains("in memory"), "{told}"),
                Ok(()) => eprintln!("skipped: /dev/shm is on a disk"),
            },
        }
    }
}
