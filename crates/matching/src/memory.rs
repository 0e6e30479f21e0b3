//! Room for columns whose length a peer may have told.

use base::{At, Error, Fault};

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
