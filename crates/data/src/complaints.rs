//! Everything that is wrong with an input, not just the first thing.

use crate::table::RowPlace;
use base::Error;
use std::collections::BTreeMap;

/// Complaints shown per file; the others are counted.
pub const SHOWN_PER_FILE: usize = 20;

/// Collects what is wrong with the rows of an input. Texts may hold the cell they complain about, never an
/// identifier.
#[derive(Default)]
pub(crate) struct Complaints {
    shown: Vec<String>,
    in_file: usize,
    file: String,
    /// Those about rows that do not go together, by place and then as they came: the first that will be
    /// shown.
    placed: BTreeMap<(RowPlace, usize), String>,
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

    /// One more; `text` names its place and is made only when it will be shown.
    pub fn add(&mut self, text: impl FnOnce() -> String) {
        self.in_file += 1;
        if self.in_file <= SHOWN_PER_FILE {
            self.shown.push(text());
        }
    }

    /// One more, of all of which are shown those that stand first: rows that do not go together are found in
    /// an order of their own.
    pub fn add_placed(&mut self, place: RowPlace, text: impl FnOnce() -> String) {
        if self.placed.is_empty() {
            self.before = self.in_file;
        }
        self.in_file += 1;
        let room = SHOWN_PER_FILE.saturating_sub(self.before);
        let last = self.placed.last_key_value().map(|((last, _), _)| *last);
        if self.placed.len() < room || last.is_some_and(|last| place < last) {
            self.placed.insert((place, self.in_file), text());
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
        self.in_file += part.in_file;
    }

    /// Adds those about rows of another part of the same input that do not go together.
    pub fn absorb_placed(&mut self, other: Self) {
        let counted = other.in_file - other.placed.len();
        other.placed.into_iter().for_each(|((place, _), text)| self.add_placed(place, || text));
        self.in_file += counted;
    }

    fn end(&mut self) {
        self.shown.extend(std::mem::take(&mut self.placed).into_values());
        if self.in_file > SHOWN_PER_FILE {
            let more = self.in_file - SHOWN_PER_FILE;
            self.shown.push(format!("{}: and {more} more", self.file));
        }
        self.in_file = 0;
    }

    /// Nothing was wrong, or an error with all that is shown, a line each.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.end();
        if self.shown.is_empty() { Ok(()) } else { Err(Error::input(self.shown.join("\n"))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands first is shown, in whatever order it was found.
    #[test]
    fn rows_that_do_not_go_together_are_shown_by_place() {
        let told = |order: &[u64], read: u64| {
            let mut complaints = Complaints::default();
            complaints.begin("a.csv");
            (0..read).for_each(|i| complaints.add(|| format!("read {i}")));
            for i in order {
                complaints.add_placed(RowPlace::from_number(*i), || format!("line {i}"));
            }
            complaints.finish().unwrap_err().to_string()
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
