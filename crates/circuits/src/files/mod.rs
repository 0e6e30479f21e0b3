//! Circuit files: Bristol Fashion ([`bristol`]) and the format of Choi, Hwang, Katz, Malkin, Rubenstein,
//! "Secure multi-party computation of boolean circuits with applications to privacy in on-line marketplaces",
//! section 2.4 ([`gmw`]), with its input files ([`values`]). `docs/circuits.md` states both formats.
//!
//! Readers stream line by line. Numbers that a file states are limits to check against, never sizes to
//! allocate; memory grows with the lines that come. What is wrong is reported with file, line and reason.

pub mod bristol;
pub mod gmw;
pub mod lines;
pub mod values;

use crate::Wired;
use crate::{CircuitBuilder, InputBit, Lit};
use base::Error;
use lines::{Lines, TextLine};
use std::collections::HashMap;
use std::io::{BufRead, Write};

/// Most wires of a circuit file.
pub const WIRES: u64 = 1 << 26;
/// Most gates of a circuit file.
pub const GATES: u64 = 1 << 26;

/// A format of circuit files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetlistFormat {
    /// Bristol Fashion.
    Bristol,
    /// The format of the GMW paper, section 2.4.
    Gmw,
}

/// Reads a circuit file of either format, told apart by the first line. `file` is its name for messages.
///
/// # Errors
/// When the file cannot be read, or is malformed: file, line and reason.
pub fn read(reader: impl BufRead, file: &str) -> Result<(Wired, NetlistFormat), Error> {
    let mut lines = Lines::new(reader, file);
    let Some(first) = lines.peek()? else {
        return Err(lines.fail("this circuit file is empty"));
    };
    if first.starts_with(|c: char| c.is_ascii_alphabetic()) {
        if first.split_ascii_whitespace().next() != Some("n") {
            return Err(lines.fail(
                "this is neither Bristol Fashion, which begins with two numbers, nor the gmw format, which \
                 begins with a line n (docs/circuits.md)",
            ));
        }
        Ok((gmw::read_lines(lines)?, NetlistFormat::Gmw))
    } else {
        Ok((bristol::read_lines(lines)?, NetlistFormat::Bristol))
    }
}

/// Writes a circuit in a format.
///
/// # Errors
/// When the format cannot say what the circuit does, or `out` cannot be written.
pub fn write(wired: &Wired, format: NetlistFormat, out: &mut impl Write) -> Result<(), Error> {
    match format {
        NetlistFormat::Bristol => bristol::write(wired, out),
        NetlistFormat::Gmw => gmw::write(wired, out),
    }
}

fn write_failed(error: std::io::Error) -> Error {
    Error::io("writing a circuit file", &error)
}

/// The wires of a file while it is read. Input wires come to life when they are used.
struct Wires {
    gates: CircuitBuilder,
    driven: HashMap<u32, Lit>,
    /// Wires that the file states.
    total: u64,
}

impl Wires {
    fn new(total: u64) -> Self {
        Self { gates: CircuitBuilder::default(), driven: HashMap::new(), total }
    }

    /// Parses a wire number.
    fn number(&self, line: &TextLine<'_>, field: &str) -> Result<u32, Error> {
        let wire = line.number(field, "a wire", u64::MAX)?;
        if wire >= self.total {
            return Err(line.fail(format!("wire {wire} is not below {}, the number of wires", self.total)));
        }
        Ok(wire as u32)
    }

    /// The literal on a wire; `input` says which bit an input wire is.
    fn read(
        &mut self,
        line: &TextLine<'_>,
        wire: u32,
        input: impl FnOnce(u32) -> Option<InputBit>,
    ) -> Result<Lit, Error> {
        if let Some(input) = input(wire) {
            return Ok(self.gates.input(input));
        }
        self.driven.get(&wire).copied().ok_or_else(|| {
            line.fail(format!("wire {wire} is read before a gate drives it: gates stand in order of use"))
        })
    }

    fn drive(&mut self, line: &TextLine<'_>, wire: u32, lit: Lit) -> Result<(), Error> {
        if self.driven.insert(wire, lit).is_some() {
            return Err(line.fail(format!("wire {wire} is driven twice")));
        }
        Ok(())
    }
}
