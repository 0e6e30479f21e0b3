//! Folders that a run writes to: tried before rows are read, anybody is met or anything is charged.

use base::Error;
use std::io::Write;
use std::path::Path;
use study::party::PartySetup;

/// Whether reports can be written into a folder, which is made if need be.
///
/// # Errors
/// When they cannot.
pub fn make_report_folder(folder: &Path) -> Result<(), Error> {
    let made = std::fs::create_dir_all(folder).and_then(|()| try_file(folder));
    made.map_err(|e| unwritable("reports", "report", folder, &e))
}

/// The same, and nothing is made: a folder that is not there can be if what is there of its path takes files.
///
/// # Errors
/// When reports cannot be written into it.
pub fn expect_report_folder(folder: &Path) -> Result<(), Error> {
    takes_files(folder).map_err(|e| unwritable("reports", "report", folder, &e))
}

/// Whether a party's other folders take files: its work, and a ledger that is not there yet.
///
/// # Errors
/// Names the setting of the one that does not.
pub(crate) fn expect_folders(party: &PartySetup) -> Result<(), Error> {
    if let Some(work) = &party.work {
        takes_files(work).map_err(|e| unwritable("work files", "work", work, &e))?;
    }
    // Nobody makes the folder of a ledger, and who opens it says so where it is missing.
    let folder = party.ledger.parent().map_or(Path::new("."), here);
    if party.ledger.exists() || !folder.is_dir() {
        return Ok(());
    }
    try_file(folder).map_err(|e| unwritable("the ledger", "ledger", folder, &e))
}

fn takes_files(folder: &Path) -> std::io::Result<()> {
    let there = folder.ancestors().map(here).find(|path| path.exists());
    try_file(there.unwrap_or(folder))
}

/// The folder that an empty path means.
fn here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Writes a file that leaves nothing behind.
fn try_file(folder: &Path) -> std::io::Result<()> {
    let mut file = tempfile::tempfile_in(folder)?;
    file.write_all(&[0; 4096]).and_then(|()| file.sync_all())
}

fn unwritable(what: &str, setting: &str, folder: &Path, error: &std::io::Error) -> Error {
    let folder = folder.display();
    Error::io(format!("{what} cannot be written to {folder}; change `{setting}` or make room"), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_tried_and_not_made() {
        let place = tempfile::tempdir().expect("a folder");
        let deep = place.path().join("a/b");
        assert!(expect_report_folder(&deep).is_ok() && !place.path().join("a").exists());
        let file = place.path().join("file");
        std::fs::write(&file, "").expect("written");
        for wrong in [file.clone(), file.join("deep"), "/proc/nodir".into()] {
            for error in [expect_report_folder(&wrong), make_report_folder(&wrong)] {
                let error = error.expect_err("no folder").to_string();
                let told = format!(
                    "reports cannot be written to {}; change `report` or make room: ",
                    wrong.display()
                );
                assert!(error.starts_with(&told), "{error}");
            }
        }
        make_report_folder(&deep).expect("made");
        let left = std::fs::read_dir(&deep).expect("there").count();
        assert_eq!(left, 0, "nothing is left behind");
    }
}
