//! Everything that is wrong with an input, not just the first thing.

use base::Error;

/// Complaints shown per file; the others are counted.
pub const SHOWN_PER_FILE: usize = 20;

/// Collects what is wrong with the rows of an input. Texts may hold the cell they complain about, never an
/// identifier.
#[derive(Default)]
pub(crate) struct Complaints {
    shown: Vec<String>,
    in_file: usize,
    file: String,
}

impl Complaints {
    /// Complaints from here on belong to this file.
    pub fn begin(&mut self, file: &str) {
        self.end();
        self.file = file.into();
    }

    /// One more; `text` names its place and is made only when it will be shown.
    pub fn add(&mut self, text: impl FnOnce() -> String) {
        self.in_file += 1;
        if self.in_file <= SHOWN_PER_FILE {
            self.shown.push(text());
        }
    }

    fn end(&mut self) {
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
