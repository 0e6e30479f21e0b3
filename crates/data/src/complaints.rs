//! Everything that is wrong with an input, not just the first thing.

use crate::table::RowPlace;
use base::{Error, ErrorPlace};
use std::collections::BTreeMap;

/// Complaints shown per file; the others are counted.
pub const SHOWN_PER_FILE: usize = 20;

/// Collects what is wrong with the rows of an input. Texts may hold the cell they complain about, never an
/// identifier.
#[derive(Default)]
pub(crate) struct Complaints {
    shown: Vec<String>,
    places: Vec<ErrorPlace>,
    in_file: usize,
    file: String,
    /// Those about rows that do not go together, by place and then as they came: the first that will be
    /// shown.
    placed: BTreeMap<(RowPlace, usize), (ErrorPlace, String)>,
    /// How many of [`Complaints::shown`]'s file were there before the first of these.
    before: usize,
}

impl Complaints {
    /// Complaints from here on belong to this file, or to more of it.
    pub fn begin(&mut self, file: &str) {
        if self.file != file {
            self.end();
            self.file = file.into();
        }
    }

    /// One more; `text` names its place, too, and both are made only when it will be shown.
    pub fn add(&mut self, place: impl FnOnce() -> ErrorPlace, text: impl FnOnce() -> String) {
        self.in_file += 1;
        if self.in_file <= SHOWN_PER_FILE {
            self.shown.push(text());
            self.places.push(place());
        }
    }

    /// One more, of all of which are shown those that stand first: rows that do not go together are found in
    /// an order of their own.
    pub fn add_placed(
        &mut self,
        place: RowPlace,
        shown: impl FnOnce() -> ErrorPlace,
        text: impl FnOnce() -> String,
    ) {
        if self.placed.is_empty() {
            self.before = self.in_file;
        }
        self.in_file += 1;
        let room = SHOWN_PER_FILE.saturating_sub(self.before);
        let last = self.placed.last_key_value().map(|((last, _), _)| *last);
        if self.placed.len() < room || last.is_some_and(|last| place < last) {
            self.placed.insert((place, self.in_file), (shown(), text()));
        }
        if self.placed.len() > room {
            self.placed.pop_last();
        }
    }

    /// Adds those of a part of the files that comes behind, of one file.
    pub fn append(&mut self, part: Self) {
        self.begin(&part.file);
        let room = SHOWN_PER_FILE.saturating_sub(self.in_file);
        self.shown.extend(part.shown.into_iter().take(room));
        self.places.extend(part.places.into_iter().take(room));
        self.in_file += part.in_file;
    }

    /// Adds those about rows of another part of the same input that do not go together.
    pub fn absorb_placed(&mut self, other: Self) {
        let counted = other.in_file - other.placed.len();
        for ((place, _), (shown, text)) in other.placed {
            self.add_placed(place, || shown, || text);
        }
        self.in_file += counted;
    }

    fn end(&mut self) {
        let (places, texts): (Vec<_>, Vec<_>) = std::mem::take(&mut self.placed).into_values().unzip();
        self.shown.extend(texts);
        self.places.extend(places);
        if self.in_file > SHOWN_PER_FILE {
            let more = self.in_file - SHOWN_PER_FILE;
            self.shown.push(format!("{}: and {more} more", self.file));
        }
        self.in_file = 0;
    }

    /// Nothing was wrong, or an error with all that is shown, a line each.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.end();
        match self.shown.is_empty() {
            true => Ok(()),
            false => Err(Error::input(self.shown.join("\n")).standing_at(std::mem::take(&mut self.places))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands first is shown, in whatever order it was found.
    #[test]
    fn rows_that_do_not_go_together_are_shown_by_place() {
        let place = |line| ErrorPlace { file: "a.csv".into(), line, column: None };
        let told = |order: &[u64], read: u64| {
            let mut complaints = Complaints::default();
            complaints.begin("a.csv");
            (0..read).for_each(|i| complaints.add(|| place(i), || format!("read {i}")));
            for i in order {
                complaints.add_placed(RowPlace::from_number(*i), || place(*i), || format!("line {i}"));
            }
            let error = complaints.finish().unwrap_err();
            let lines = error.to_string().lines().filter(|line| !line.contains("more")).count();
            assert_eq!(error.places().len(), lines);
            error.to_string()
        };
        let (up, down): (Vec<u64>, Vec<u64>) = ((1..=30).collect(), (1..=30).rev().collect());
        assert_eq!(told(&up, 3), told(&down, 3));
        let lines: Vec<String> = told(&down, 3).lines().map(str::to_owned).collect();
        assert_eq!((lines.len(), &*lines[2], &*lines[3]), (21, "read 2", "line 1"));
        assert_eq!((&*lines[19], &*lines[20]), ("line 17", "a.csv: and 13 more"));
        assert!(told(&down, 25).ends_with("read 19\na.csv: and 35 more"));
        assert_eq!(told(&[7, 7, 2], 0), "line 2\nline 7\nline 7");
    }
}
