//! A text file line by line, with its place for messages.

use base::{Error, limits};
use std::io::{BufRead, Read};

/// Lines of a file; blank ones are skipped.
pub struct Lines<'f, R> {
    reader: R,
    file: &'f str,
    number: u64,
    buffer: Vec<u8>,
    /// Whether `buffer` holds a line that was looked at but not taken.
    waiting: bool,
}

/// One line.
pub struct TextLine<'a> {
    file: &'a str,
    /// Its number, from 1.
    pub number: u64,
    text: &'a str,
}

impl<'f, R: BufRead> Lines<'f, R> {
    /// The lines of `reader`; `file` is its name for messages.
    pub fn new(reader: R, file: &'f str) -> Self {
        Self { reader, file, number: 0, buffer: Vec::new(), waiting: false }
    }

    /// The next line that is not blank.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is no text or longer than [`limits::LINE_BYTES`].
    pub fn next_line(&mut self) -> Result<Option<TextLine<'_>>, Error> {
        if !std::mem::take(&mut self.waiting) && !self.fill()? {
            return Ok(None);
        }
        let (file, number) = (self.file, self.number);
        let text = std::str::from_utf8(&self.buffer).map_err(|_| self.fail("this line is not text"))?;
        Ok(Some(TextLine { file, number, text: text.trim_ascii() }))
    }

    /// The next line that is not blank, which [`Lines::next_line`] gives again.
    ///
    /// # Errors
    /// As [`Lines::next_line`].
    pub fn peek(&mut self) -> Result<Option<&str>, Error> {
        self.waiting = self.waiting || self.fill()?;
        let text = std::str::from_utf8(&self.buffer).map_err(|_| self.fail("this line is not text"))?;
        Ok(self.waiting.then(|| text.trim_ascii()))
    }

    fn fill(&mut self) -> Result<bool, Error> {
        loop {
            self.buffer.clear();
            let most = limits::LINE_BYTES as u64 + 1;
            let failed = |e: std::io::Error| Error::io(format!("reading {}", self.file), &e);
            let mut limited = self.reader.by_ref().take(most);
            let read = limited.read_until(b'\n', &mut self.buffer).map_err(failed)?;
            self.number += 1;
            if read == 0 {
                return Ok(false);
            }
            if read as u64 == most {
                return Err(self.fail(format!("this line is longer than {} bytes", limits::LINE_BYTES)));
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// An error at the line that was read last, or at the end of the file.
    pub fn fail(&self, text: impl AsRef<str>) -> Error {
        self.fail_at(self.number, text)
    }

    /// An error at an earlier line.
    pub fn fail_at(&self, number: u64, text: impl AsRef<str>) -> Error {
        TextLine { file: self.file, number, text: "" }.fail(text)
    }
}

impl<'a> TextLine<'a> {
    /// An error at this line.
    pub fn fail(&self, text: impl AsRef<str>) -> Error {
        Error::input(format!("{}, line {}: {}", self.file, self.number, text.as_ref()))
    }

    /// The line without the white space around it.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The fields between white space.
    pub fn fields(&self) -> std::str::SplitAsciiWhitespace<'a> {
        self.text.split_ascii_whitespace()
    }

    /// Parses a number of at most `cap`; `what` says what it counts.
    ///
    /// # Errors
    /// At this line: no number, or over the cap.
    pub fn number(&self, field: &str, what: &str, cap: u64) -> Result<u64, Error> {
        let digits = field.bytes().all(|b| b.is_ascii_digit());
        let Some(value) = digits.then(|| field.parse::<u64>().ok()).flatten() else {
            let start: String = field.chars().take(24).collect();
            return Err(self.fail(format!("{start:?} is not {what}: a whole number is expected here")));
        };
        if value > cap {
            return Err(self.fail(format!("{what}: {value} is over the limit of {cap}")));
        }
        Ok(value)
    }

    /// Parses the next field.
    ///
    /// # Errors
    /// As [`TextLine::number`], and when there is none.
    pub fn next_number(
        &self,
        fields: &mut std::str::SplitAsciiWhitespace<'_>,
        what: &str,
        cap: u64,
    ) -> Result<u64, Error> {
        let field = fields.next().ok_or_else(|| self.fail(format!("{what} is missing")))?;
        self.number(field, what, cap)
    }

    /// Nothing may follow.
    ///
    /// # Errors
    /// At this line: something does.
    pub fn end(&self, fields: &mut std::str::SplitAsciiWhitespace<'_>) -> Result<(), Error> {
        match fields.next() {
            None => Ok(()),
            Some(field) => {
                let start: String = field.chars().take(24).collect();
                Err(self.fail(format!("{start:?} is one field too many")))
            }
        }
    }
}
