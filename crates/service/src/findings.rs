//! A check of a data set: what columns its files have, and whether they are those that `service.toml` names.
//! No value of a cell is in what is found.

use crate::settings::{DataSet, HouseSettings};
use base::Error;
use data::survey::{ColumnSurvey, TableSurvey, survey};
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFindings {
    /// Rows.
    pub rows: u64,
    /// Whether that is all of them; else the first ones.
    pub whole: bool,
    /// The columns of the files.
    pub columns: Vec<FoundColumn>,
    /// What the files are, in words.
    pub forms: Vec<String>,
    /// What stands against a study, in words, names of columns after a colon alone; empty: nothing.
    pub problems: Vec<String>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundColumn {
    /// Its name.
    pub name: String,
    /// What its cells look like.
    pub looks: String,
    /// Cells that are empty, among those that were looked at.
    pub empty: u64,
    /// Whether a study may read it.
    pub allowed: bool,
}

/// Where the files of a data set are: below the data root, and no link leads there.
///
/// # Errors
/// As [`check`].
pub fn place(settings: &HouseSettings, name: &str) -> Result<PathBuf, Error> {
    let Some(set) = settings.data.get(name) else {
        let known: Vec<&str> = settings.data.keys().map(String::as_str).collect();
        return Err(Error::input(format!("there is no [data.{name}]; there are: {}", known.join(", "))));
    };
    let root = settings.data_root.as_ref().expect("a file with data has a data_root");
    beneath(root, Path::new(&set.path))
}

/// Stands for the files of a data set as they lie there now.
///
/// # Errors
/// As [`check`].
pub fn version(settings: &HouseSettings, name: &str) -> Result<[u8; 32], Error> {
    data::input_version(place(settings, name)?.as_path().into())
}

/// A problem for who does not see names of columns.
#[must_use]
pub fn without_columns(problem: &str) -> &str {
    problem.split_once(": ").map_or(problem, |(said, _)| said)
}

/// Checks a data set of this organisation.
///
/// # Errors
/// When there is no such data set, it lies outside the data root, or its files cannot be read.
pub fn check(settings: &HouseSettings, name: &str) -> Result<DataFindings, Error> {
    let path = place(settings, name)?;
    Ok(findings(&settings.data[name], &survey(path.as_path().into())?))
}

fn findings(set: &DataSet, seen: &TableSurvey) -> DataFindings {
    let columns: Vec<FoundColumn> = seen.columns.iter().map(|column| found(set, column)).collect();
    let is_there = |name: &&String| columns.iter().any(|column| column.name == **name);
    let mut problems: Vec<String> = Vec::new();
    let missing: Vec<&str> = set.columns.iter().filter(|name| !is_there(name)).map(String::as_str).collect();
    if !missing.is_empty() {
        problems
            .push(format!("service.toml names columns that the files do not have: {}", missing.join(", ")));
    }
    if set.columns.is_empty() {
        problems.push("service.toml names no column, so no study can read any".to_owned());
    }
    if seen.read < set.least_rows {
        problems.push(format!(
            "there are {} rows, and no study may use fewer than {} (least_rows)",
            seen.read, set.least_rows
        ));
    }
    DataFindings { rows: seen.read, whole: seen.whole, columns, forms: seen.forms.clone(), problems }
}

fn found(set: &DataSet, column: &ColumnSurvey) -> FoundColumn {
    let most = |count: u64| count > 0 && count * 10 >= column.filled * 9;
    let looks = if column.filled == 0 {
        "nothing in it".to_owned()
    } else if !column.times.is_empty() {
        "days or times".to_owned()
    } else if most(column.emails) {
        "e-mail addresses".to_owned()
    } else if most(column.phones) {
        "telephone numbers".to_owned()
    } else if column.is_distinct() {
        "a value of its own in every row".to_owned()
    } else if !column.values.is_empty() {
        format!("one of {} values", column.values.len())
    } else if column.numbers.is_some() {
        "numbers".to_owned()
    } else {
        "text".to_owned()
    };
    let allowed = set.columns.contains(&column.name);
    FoundColumn { name: column.name.clone(), looks, empty: column.empty, allowed }
}

/// A path below the root, no part of which is a link or leads out of it.
fn beneath(root: &Path, path: &Path) -> Result<PathBuf, Error> {
    let whole = root.join(path);
    let is_pattern = |part: &str| part.contains(['*', '?', '[']);
    let fixed: PathBuf = path.iter().take_while(|part| !is_pattern(&part.to_string_lossy())).collect();
    let refused = |path: &Path, e: rustix::io::Errno| {
        let text = format!("cannot open {}: below data_root there may be no links", path.display());
        match e {
            rustix::io::Errno::LOOP | rustix::io::Errno::XDEV => Error::input(text),
            e => Error::reading(format!("cannot open {}", path.display()), &e.into()),
        }
    };
    let folder = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let folder = folder.map_err(|e| refused(root, e))?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let name = if fixed.as_os_str().is_empty() { Path::new(".") } else { &fixed };
    openat2(&folder, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
        .map_err(|e| refused(&whole, e))?;
    let rest: PathBuf = path.iter().skip(fixed.iter().count()).collect();
    let deep = match rest.to_string_lossy().contains("**") {
        true => usize::MAX,
        false => rest.iter().count(),
    };
    no_links_in(&root.join(&fixed), deep)?;
    Ok(whole)
}

/// Refuses a folder with links in it, and in those below that so many parts of a pattern lead to; a file is
/// none.
fn no_links_in(folder: &Path, deep: usize) -> Result<(), Error> {
    if !folder.is_dir() {
        return Ok(());
    }
    let failed = |e: std::io::Error| Error::reading(format!("cannot read {}", folder.display()), &e);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_symlink() {
            return Err(Error::input(format!(
                "{} is a link; below data_root there may be none",
                path.display()
            )));
        }
        if deep > 1 {
            no_links_in(&path, deep - 1)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_not_paths() {
        let place = tempfile::tempdir().expect("a folder");
        let (root, out) = (place.path().join("root"), place.path().join("secret.csv"));
        std::fs::create_dir_all(root.join("deep")).expect("made");
        std::fs::write(&out, "a\n1\n").expect("written");
        std::fs::write(root.join("deep/rows.csv"), "a\n1\n").expect("written");
        assert!(beneath(&root, Path::new("deep/rows.csv")).is_ok());
        assert!(beneath(&root, Path::new("deep")).is_ok() && beneath(&root, Path::new("deep/*.csv")).is_ok());
        std::os::unix::fs::symlink(&out, root.join("link.csv")).expect("linked");
        std::os::unix::fs::symlink(place.path(), root.join("away")).expect("linked");
        std::os::unix::fs::symlink(&out, root.join("deep/inside.csv")).expect("linked");
        for path in ["link.csv", "away/secret.csv", "../secret.csv", "deep", "deep/*.csv", "none.csv"] {
            assert!(beneath(&root, Path::new(path)).is_err(), "{path} is opened");
        }
        std::fs::create_dir_all(root.join("wide/sub/sub")).expect("made");
        std::os::unix::fs::symlink(&out, root.join("wide/sub/sub/rows.csv")).expect("linked");
        assert!(beneath(&root, Path::new("wide/*")).is_ok());
        for path in ["wide/*/sub/*.csv", "wide/**/rows.csv", "wide/s*/sub/rows.csv"] {
            assert!(beneath(&root, Path::new(path)).is_err(), "{path} is opened");
        }
        assert!(beneath(&root, &out).is_err(), "an absolute path is opened");
    }
}
