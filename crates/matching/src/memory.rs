//! Room for columns whose length a peer may have told.

use crate::matcher::MatchOptions;
use base::{At, Error, Fault};
use std::env::temp_dir;

/// Room for `rows` items: too many is an error, not an abort. Pages are touched only as data arrives.
pub(crate) fn reserve<T>(name: &'static str, rows: u64) -> Result<Vec<T>, Error> {
    let mut column = Vec::new();
    match column.try_reserve_exact(rows as usize) {
        Ok(()) => Ok(column),
        Err(_) => Err(Error::new(
            At::default(),
            Fault::Io(format!(
                "no memory for {rows} elements ({name}); match fewer rows or use a larger machine"
            )),
        )),
    }
}

/// Refuses work that needs more than `limit` bytes, before it starts.
pub(crate) fn check(need: u64, limit: Option<u64>) -> Result<(), Error> {
    match limit {
        Some(limit) if need > limit => Err(Error::input(format!(
            "this match needs {} MB of memory and {} MB are left for it, the data's own memory taken off; \
             raise `memory` by {} MB, or match fewer rows",
            need.div_ceil(1_000_000),
            limit / 1_000_000,
            (need - limit).div_ceil(1_000_000)
        ))),
        _ => Ok(()),
    }
}

/// Refuses so many rows of each party, which take `need` bytes of disk, where the folder for them has less.
pub(crate) fn check_disk(rows: &[u64], need: u64, options: &MatchOptions) -> Result<(), Error> {
    let Some(left) = options.scratch_left.filter(|left| *left < need) else { return Ok(()) };
    let folder = options.scratch.clone().unwrap_or_else(temp_dir);
    let rows: Vec<String> = rows.iter().map(u64::to_string).collect();
    let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
    Err(Error::input(format!(
        "a match of {} rows, made-up ones among them, takes up to {} MB on the disk of {}, which has {} MB \
         left: free {} MB, name a folder on another disk (`work`), raise `memory`, or match fewer rows",
        rows.join(" and "),
        megabytes(need),
        folder.display(),
        left / 1_000_000,
        megabytes(need - left),
    )))
}
