//! Bristol Fashion: a line `gates wires`; a line with the number of input values and their widths; the same
//! for output values; then the gates in order of use, `inputs outputs wires... NAME`. Input values take the
//! first wires, output values the last ones; bit 0 of a value is its first wire.
//!
//! | gate | line | drives |
//! |---|---|---|
//! | `XOR`, `AND` | `2 1 a b c` | c |
//! | `INV` | `1 1 a c` | c, the complement of a |
//! | `EQW` | `1 1 a c` | c, a copy of a |
//! | `EQ` | `1 1 v c` | c, the constant v (0 or 1) |
//! | `MAND` | `2n n a.. b.. c..` | c_i = a_i AND b_i |
//!
//! The format has no parties: input value i is given to party i modulo the number of values (at most
//! [`limits::PARTIES`] parties), and every output is for everyone; [`Wired::deal`] changes that.

use super::lines::{Lines, TextLine};
use super::{GATES, WIRES, Wires, write_failed};
use crate::{InputBit, Lit, WireDriver};
use crate::{InputWord, OutputWord, Viewers, WORD_BITS, Wired};
use base::{Error, PartyId, limits};
use std::collections::HashMap;
use std::io::{BufRead, Write};

/// Reads a file; `file` is its name for messages.
///
/// # Errors
/// When the file cannot be read, or is malformed: file, line and reason.
pub fn read(reader: impl BufRead, file: &str) -> Result<Wired, Error> {
    read_lines(Lines::new(reader, file))
}

struct Header {
    gates: u64,
    wires: u64,
    inputs: Vec<u32>,
    outputs: Vec<u32>,
    /// First wire of each input value, and where they end.
    starts: Vec<u64>,
}

impl Header {
    fn read<R: BufRead>(lines: &mut Lines<'_, R>) -> Result<Self, Error> {
        let line = lines.next_line()?;
        let Some(line) = line else { return Err(lines.fail("this circuit file is empty")) };
        let mut fields = line.fields();
        let gates = line.next_number(&mut fields, "the number of gates", GATES)?;
        let wires = line.next_number(&mut fields, "the number of wires", WIRES)?;
        line.end(&mut fields)?;
        let (inputs, input_bits) = widths(lines, "input", wires)?;
        let (outputs, output_bits) = widths(lines, "output", wires)?;
        if input_bits + output_bits > wires {
            let text = format!(
                "{input_bits} input and {output_bits} output wires are more than the {wires} wires of line 1"
            );
            return Err(lines.fail(text));
        }
        let mut starts = vec![0];
        starts.extend(inputs.iter().scan(0, |sum, width| {
            *sum += u64::from(*width);
            Some(*sum)
        }));
        Ok(Self { gates, wires, inputs, outputs, starts })
    }

    fn parties(&self) -> usize {
        self.inputs.len().clamp(1, limits::PARTIES)
    }

    fn owner(&self, word: usize) -> PartyId {
        PartyId((word % self.parties()) as u8)
    }

    /// The bit on an input wire.
    fn input(&self, wire: u32) -> Option<InputBit> {
        let wire = u64::from(wire);
        (wire < *self.starts.last().expect("it starts with 0")).then(|| {
            let word = self.starts.partition_point(|start| *start <= wire) - 1;
            let bit = (wire - self.starts[word]) as u16;
            InputBit { owner: Some(self.owner(word)), word: word as u32, bit }
        })
    }
}

/// A line of widths, and their sum.
fn widths<R: BufRead>(lines: &mut Lines<'_, R>, what: &str, wires: u64) -> Result<(Vec<u32>, u64), Error> {
    let line = lines.next_line()?;
    let Some(line) = line else {
        return Err(lines.fail(format!("the file ends before the line of {what} values")));
    };
    let mut fields = line.fields();
    let values = line.next_number(&mut fields, &format!("the number of {what} values"), wires)?;
    let (mut all, mut bits) = (Vec::new(), 0);
    for field in fields {
        let width = line.number(field, &format!("the width of an {what} value"), WORD_BITS.into())?;
        if width == 0 {
            return Err(line.fail(format!("{what} value {} has no wires", all.len())));
        }
        all.push(width as u32);
        bits += width;
    }
    if all.len() as u64 != values {
        let text = format!("{values} {what} values are announced, and {} widths follow", all.len());
        return Err(line.fail(text));
    }
    Ok((all, bits))
}

pub(super) fn read_lines<R: BufRead>(mut lines: Lines<'_, R>) -> Result<Wired, Error> {
    let header = Header::read(&mut lines)?;
    let mut wires = Wires::new(header.wires);
    let mut gates = 0;
    while let Some(line) = lines.next_line()? {
        if gates == header.gates {
            return Err(line.fail(format!("line 1 announces {gates} gates; nothing may follow the last one")));
        }
        gate(&header, &mut wires, &line)?;
        gates += 1;
    }
    if gates < header.gates {
        let text = format!("the file ends after {gates} gates; line 1 announces {}", header.gates);
        return Err(lines.fail(text));
    }
    let mut wire = header.wires - header.outputs.iter().map(|w| u64::from(*w)).sum::<u64>();
    let mut outputs = Vec::new();
    for (k, width) in header.outputs.iter().enumerate() {
        let mut bits = Vec::new();
        for _ in 0..*width {
            let lit = wires.driven.get(&(wire as u32)).copied();
            bits.push(lit.ok_or_else(|| {
                lines.fail(format!("wire {wire} of output value {k} is driven by no gate"))
            })?);
            wire += 1;
        }
        outputs.push(OutputWord { to: Viewers::Everyone, bits });
    }
    let inputs = header.inputs.iter().enumerate();
    let inputs = inputs.map(|(i, width)| InputWord { owner: header.owner(i), width: *width }).collect();
    Ok(Wired { circuit: wires.gates.finish(), inputs, outputs, parties: header.parties() })
}

fn gate(header: &Header, wires: &mut Wires, line: &TextLine<'_>) -> Result<(), Error> {
    let mut fields = line.fields();
    let name = fields.next_back().expect("a line is not blank");
    let ins = line.next_number(&mut fields, "the number of input wires", WIRES)?;
    let outs = line.next_number(&mut fields, "the number of output wires", WIRES)?;
    let rest: Vec<&str> = fields.collect();
    let shape = match name {
        "XOR" | "AND" => (2, 1),
        "INV" | "EQW" | "EQ" => (1, 1),
        "MAND" => (2 * outs, outs.max(1)),
        _ => {
            let start: String = name.chars().take(24).collect();
            return Err(line.fail(format!("{start:?} is not a gate; XOR, AND, INV, EQW, EQ and MAND are")));
        }
    };
    if (ins, outs) != shape {
        let text =
            format!("{name} with {ins} input and {outs} output wires; expected {} and {}", shape.0, shape.1);
        return Err(line.fail(text));
    }
    if rest.len() as u64 != ins + outs {
        return Err(line.fail(format!("{} wires are announced, and {} follow", ins + outs, rest.len())));
    }
    let mut read = |field: &str| {
        let wire = wires.number(line, field)?;
        wires.read(line, wire, |wire| header.input(wire))
    };
    let lits = if name == "EQ" {
        vec![Lit::constant(line.number(rest[0], "a constant", 1)? == 1)]
    } else {
        rest[..ins as usize].iter().map(|field| read(field)).collect::<Result<Vec<Lit>, Error>>()?
    };
    for (i, field) in rest[ins as usize..].iter().enumerate() {
        let wire = wires.number(line, field)?;
        if header.input(wire).is_some() {
            return Err(line.fail(format!("wire {wire} is an input; a gate cannot drive it")));
        }
        let lit = match name {
            "XOR" => wires.gates.xor(lits[0], lits[1]),
            "AND" | "MAND" => wires.gates.and_gate(lits[i], lits[i + outs as usize]),
            "INV" => !lits[0],
            _ => lits[0],
        };
        wires.drive(line, wire, lit)?;
    }
    Ok(())
}

/// Writes a circuit. Parties and viewers are not written: the format has none.
///
/// # Errors
/// When the circuit is not well formed, or `out` cannot be written.
pub fn write(wired: &Wired, out: &mut impl Write) -> Result<(), Error> {
    wired.check()?;
    Writer::new(wired).print(wired, out).map_err(write_failed)
}

/// Numbers of output wires from here on, until the number of other wires is known.
const OUTPUT: u64 = 1 << 32;

/// A gate line: the wires it reads, the one it drives, and its name.
struct Entry {
    ins: [u64; 2],
    out: u64,
    name: &'static str,
}

/// Numbers wires in order of use. A literal that is an output gets an output's number at once; a second
/// output with the same literal, and an output that is an input, is a copy.
struct Writer {
    entries: Vec<Entry>,
    numbers: HashMap<Lit, u64>,
    claims: HashMap<Lit, u64>,
    /// Wires that are not outputs.
    inner: u64,
}

impl Writer {
    fn new(wired: &Wired) -> Self {
        let mut starts = Vec::with_capacity(wired.inputs.len());
        let mut inner = 0;
        for word in &wired.inputs {
            starts.push(inner);
            inner += u64::from(word.width);
        }
        let mut claims = HashMap::new();
        for (root, number) in wired.roots().zip(OUTPUT..) {
            claims.entry(root).or_insert(number);
        }
        let mut writer = Self { entries: Vec::new(), numbers: HashMap::new(), claims, inner };
        for (i, wire) in wired.circuit.wires.iter().enumerate() {
            let lit = Lit::of(i);
            match *wire {
                WireDriver::False => {}
                WireDriver::Input(input) => {
                    let number = starts[input.word as usize] + u64::from(input.bit);
                    writer.numbers.insert(lit, number);
                }
                WireDriver::Xor(a, b) => writer.emit(lit, [a, b].map(|w| Lit::of(w as usize)), "XOR"),
                WireDriver::And(a, b) => writer.emit(lit, [a, b], "AND"),
            }
        }
        for (root, number) in wired.roots().zip(OUTPUT..) {
            let from = writer.read(root);
            if from != number {
                writer.entries.push(Entry { ins: [from, 0], out: number, name: "EQW" });
            }
        }
        writer
    }

    /// A new wire for a literal.
    fn drive(&mut self, lit: Lit, ins: [u64; 2], name: &'static str) {
        let out = self.claims.get(&lit).copied().unwrap_or_else(|| {
            self.inner += 1;
            self.inner - 1
        });
        self.numbers.insert(lit, out);
        self.entries.push(Entry { ins, out, name });
    }

    fn emit(&mut self, lit: Lit, operands: [Lit; 2], name: &'static str) {
        let ins = operands.map(|operand| self.read(operand));
        self.drive(lit, ins, name);
    }

    /// The wire of a literal; a complement or a constant is made on first use.
    fn read(&mut self, lit: Lit) -> u64 {
        if !self.numbers.contains_key(&lit) {
            match lit.as_constant() {
                Some(value) => self.drive(lit, [u64::from(value), 0], "EQ"),
                None => {
                    let positive = self.numbers[&!lit];
                    self.drive(lit, [positive, 0], "INV");
                }
            }
        }
        self.numbers[&lit]
    }

    fn print(&self, wired: &Wired, out: &mut impl Write) -> std::io::Result<()> {
        let outputs = wired.roots().count() as u64;
        writeln!(out, "{} {}", self.entries.len(), self.inner + outputs)?;
        let line = |out: &mut dyn Write, widths: Vec<u64>| {
            write!(out, "{}", widths.len())?;
            widths.iter().try_for_each(|w| write!(out, " {w}"))?;
            writeln!(out)
        };
        line(out, wired.inputs.iter().map(|w| w.width.into()).collect())?;
        line(out, wired.outputs.iter().map(|w| w.bits.len() as u64).collect())?;
        writeln!(out)?;
        let place = |n: u64| if n < OUTPUT { n } else { self.inner + n - OUTPUT };
        for Entry { ins: [a, b], out: c, name } in &self.entries {
            let (a, c) = (if *name == "EQ" { *a } else { place(*a) }, place(*c));
            match *name {
                "XOR" | "AND" => writeln!(out, "2 1 {a} {} {c} {name}", place(*b))?,
                _ => writeln!(out, "1 1 {a} {c} {name}")?,
            }
        }
        out.flush()
    }
}
