//! Everything that is wrong with an input, not just the first thing.

use crate::table::RowPlace;
use base::{Error, ErrorPlace};
use std::collections::{BTreeMap, HashMap};

/// Complaints shown per file; the others are counted.
pub const SHOWN_PER_FILE: usize = 20;
/// Of these such of one cause.
const SHOWN_PER_CAUSE: u64 = 3;
/// Causes of a file that are told from one another.
const CAUSES: usize = 64;

/// Collects what is wrong with the rows of an input. Texts may hold the cell they complain about, never an
/// identifier.
#[derive(Default)]
pub(crate) struct Complaints {
    /// Those of files that were read to their ends.
    shown: Vec<String>,
    places: Vec<ErrorPlace>,
    file: String,
    /// Whether that file has rows, and no lines.
    rows: bool,
    /// Those of this file about its cells and lines.
    read: Vec<ReadComplaint>,
    causes: HashMap<String, AlikeComplaints>,
    in_file: usize,
    /// Those about rows that do not go together, by place and then as they came: the first that will be
    /// shown.
    placed: BTreeMap<(RowPlace, usize), (ErrorPlace, String)>,
}

/// A complaint with its cause.
struct ReadComplaint {
    place: ErrorPlace,
    text: String,
    cause: String,
}

/// How often there was a cause, and the last line of it that is shown.
#[derive(Clone, Copy, Default)]
struct AlikeComplaints {
    count: u64,
    line: u64,
}

impl Complaints {
    /// Complaints from here on belong to this file, or to more of it.
    pub fn begin(&mut self, file: &str) {
        if self.file != file {
            self.end();
            (self.file, self.rows) = (file.into(), false);
        }
    }

    /// The file that has begun has rows, and no lines.
    pub fn of_rows(&mut self) {
        self.rows = true;
    }

    /// One more; `text` names its place, too.
    pub fn add(&mut self, place: impl FnOnce() -> ErrorPlace, text: impl FnOnce() -> String) {
        let text = text();
        let cause = cause(&text);
        self.add_read(ReadComplaint { place: place(), text, cause }, 1);
    }

    /// One more, which stands for so many of its cause.
    fn add_read(&mut self, complaint: ReadComplaint, count: u64) {
        self.in_file += count as usize;
        let known = self.causes.len();
        let alike = match self.causes.get_mut(&complaint.cause) {
            Some(alike) => alike,
            None if known < CAUSES => self.causes.entry(complaint.cause.clone()).or_default(),
            None => return,
        };
        if alike.count < SHOWN_PER_CAUSE {
            alike.line = complaint.place.line;
            self.read.push(complaint);
        }
        alike.count += count;
    }

    /// One more, of all of which are shown those that stand first: rows that do not go together are found in
    /// an order of their own.
    pub fn add_placed(
        &mut self,
        place: RowPlace,
        shown: impl FnOnce() -> ErrorPlace,
        text: impl FnOnce() -> String,
    ) {
        self.in_file += 1;
        let room = SHOWN_PER_FILE.saturating_sub(self.read.len());
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
        self.rows |= part.rows;
        let told: u64 = part.causes.values().map(|alike| alike.count).sum();
        let mut met: HashMap<String, u64> = HashMap::new();
        for complaint in part.read {
            let all = part.causes.get(&complaint.cause).map_or(1, |alike| alike.count);
            let met = met.entry(complaint.cause.clone()).or_default();
            *met += 1;
            // Each stands for itself, and the last one that the part has of a cause for all behind it.
            let count = if *met == all.min(SHOWN_PER_CAUSE) { all + 1 - *met } else { 1 };
            self.add_read(complaint, count);
        }
        self.in_file += part.in_file - told as usize;
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
        let (mut told, mut alike) = (0, Vec::new());
        let mut causes = std::mem::take(&mut self.causes);
        for complaint in std::mem::take(&mut self.read).into_iter().take(SHOWN_PER_FILE) {
            told += 1;
            let is_last =
                |of: &AlikeComplaints| of.line == complaint.place.line && of.count > SHOWN_PER_CAUSE;
            if let Some(of) = causes.get(&complaint.cause).copied().filter(is_last) {
                alike.push((of.count - SHOWN_PER_CAUSE, of.line));
                causes.remove(&complaint.cause);
            }
            self.shown.push(complaint.text);
            self.places.push(complaint.place);
        }
        for (count, line) in alike {
            told += count as usize;
            let place = if self.rows { "row" } else { "line" };
            self.shown.push(format!("{}: and {count} more like that of {place} {line}", self.file));
        }
        let (places, texts): (Vec<_>, Vec<_>) = std::mem::take(&mut self.placed).into_values().unzip();
        told += texts.len();
        self.shown.extend(texts);
        self.places.extend(places);
        if self.in_file > told {
            let more = self.in_file - told;
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

/// What a complaint is about, whatever the cell and the line: its text without them.
fn cause(text: &str) -> String {
    let at = text.find("column \"").unwrap_or(0);
    let end = text[at..].find("\": ").filter(|_| at > 0).map_or(at, |end| at + end + 3);
    let mut quoted = false;
    let mut said = |c: char| {
        quoted ^= c == '"';
        !quoted && !c.is_ascii_digit() && !".,+-\"".contains(c)
    };
    let (head, rest) = (text[..at].chars(), text[end..].chars());
    let head: String = head.filter(|c| !c.is_ascii_digit()).collect();
    let rest: String = rest.filter(|c| said(*c)).collect();
    format!("{head}{}{rest}", &text[at..end])
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
            (0..read)
                .for_each(|i| complaints.add(|| place(i), || format!("read {}", "x".repeat(i as usize))));
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
        assert_eq!((lines.len(), &*lines[2], &*lines[3]), (21, "read xx", "line 1"));
        assert_eq!((&*lines[19], &*lines[20]), ("line 17", "a.csv: and 13 more"));
        assert!(told(&down, 25).ends_with("xxx\na.csv: and 35 more"));
        assert_eq!(told(&[7, 7, 2], 0), "line 2\nline 7\nline 7");
    }

    /// One cause is said three times, and then counted; the same by parts of a file.
    #[test]
    fn complaints_of_one_cause_are_counted() {
        let read = |complaints: &mut Complaints, lines: std::ops::Range<u64>| {
            complaints.begin("a.csv");
            for line in lines {
                let place = ErrorPlace { file: "a.csv".into(), line, column: None };
                let column = if line % 10 == 7 { "c2" } else { "c1" };
                let text =
                    format!("a.csv, line {line}, column \"{column}\": \"{line}.5\" is wrong: 3 is right");
                complaints.add(|| place, || text);
            }
        };
        let mut whole = Complaints::default();
        read(&mut whole, 2..102);
        let whole = whole.finish().unwrap_err();
        let text = whole.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), whole.places().len()), (8, 6), "{text}");
        assert_eq!(lines[2], "a.csv, line 4, column \"c1\": \"4.5\" is wrong: 3 is right");
        assert_eq!(
            lines[6..],
            ["a.csv: and 87 more like that of line 4", "a.csv: and 7 more like that of line 27"]
        );
        for cut in [3, 5, 50, 101] {
            let [mut first, mut second] = [Complaints::default(), Complaints::default()];
            read(&mut first, 2..cut);
            read(&mut second, cut..102);
            first.append(second);
            assert_eq!(first.finish().unwrap_err().to_string(), text, "{cut}");
        }
    }
}
