//! A text whose lines come one by one, from a caller that wants to know at once what became of each.

use super::{Parser, Stage};
use crate::{NodeId, Program, ValueType};
use base::{Error, limits};
use std::sync::Arc;

/// A program in the making. A line is read and checked when it comes, as [`Program::parse`] does.
#[derive(Default)]
pub struct TextDraft {
    parser: Parser,
    bytes: usize,
}

impl TextDraft {
    /// Reads the next line. Messages about what it defines name the file and line where somebody wrote it.
    ///
    /// # Errors
    /// What is wrong with it, and what was expected. The draft is of no use then.
    pub fn line(&mut self, text: &str, (file, line): (&str, usize)) -> Result<(), String> {
        self.bytes += text.len() + 1;
        if self.bytes > limits::STUDY_BYTES {
            return Err(format!("the program has more than {} bytes of text", limits::STUDY_BYTES));
        }
        self.parser.at.written = Some((Arc::from(file), line));
        self.parser.next_line(text).map_err(|(_, fault)| fault)
    }

    /// The type of a value that a line of this section defined.
    #[must_use]
    pub fn ty(&self, value: &str) -> Option<ValueType> {
        let node = NodeId(*self.parser.nodes.get(value)?);
        let row = self.parser.stage < Stage::Release;
        Some(if row { self.parser.program.row.ty(node) } else { self.parser.program.release.ty(node) })
    }

    /// Parts of one that a value of the row section is counted in.
    pub fn scale(&mut self, value: &str) -> Option<u32> {
        let node = NodeId(*self.parser.nodes.get(value)?);
        Some(self.parser.scale(node))
    }

    /// What a value of the row section holds for a number in its unit, or for a day.
    ///
    /// # Errors
    /// Why it can hold no such thing.
    pub fn number(&mut self, value: &str, text: &str) -> Result<i128, String> {
        let node = *self.parser.nodes.get(value).ok_or_else(|| format!("there is no value {value}"))?;
        self.parser.counted_as(NodeId(node), text)
    }

    /// The program of all lines.
    ///
    /// # Errors
    /// What the whole lacks.
    pub fn finish(self) -> Result<Program, Error> {
        self.parser.whole()
    }
}
