//! The circuit format of the GMW paper, section 2.4:
//!
//! | line | says |
//! |---|---|
//! | `n X` | X parties, numbered 1 to X |
//! | `d total w xors` | wires, the first wire that is no input, XOR gates |
//! | `i p first last` | the input wires of party p |
//! | `o p first last` | the output wires of party p; last is 0 where it learns nothing |
//! | `v p bits` | bits of each item in the input file of party p, most significant first |
//! | `id type left right degree gates...` | a gate and the wire it drives; the gates that read it |
//!
//! Types are 0 (input: left and right are -1), 1 (AND), 2 (XOR). Wires 0 and 1 are the constants. Where the
//! paper says nothing, we read and write as `docs/circuits.md` states: inputs start at wire 2, a party
//! without inputs has `i p 0 0`, an output range is one number with its most significant bit first, and the
//! lines of wires 0 and 1 may be missing.

use super::lines::{Lines, TextLine};
use super::{GATES, WIRES, Wires, write_failed};
use crate::{InputBit, Lit, WireDriver};
use crate::{InputWord, OutputWord, Viewers, WORD_BITS, Wired};
use base::{Error, PartyId, limits};
use std::collections::HashMap;
use std::io::{BufRead, Write};

/// First input wire: 0 and 1 are the constants.
const FIRST: u64 = 2;
const CONSTANT: u64 = 0;
const AND: u64 = 1;
const XOR: u64 = 2;

/// Reads a file; `file` is its name for messages.
///
/// # Errors
/// When the file cannot be read, or is malformed: file, line and reason.
pub fn read(reader: impl BufRead, file: &str) -> Result<Wired, Error> {
    read_lines(Lines::new(reader, file))
}

/// What one party enters and learns.
#[derive(Clone, Copy, Default)]
struct Party {
    /// First and last wire.
    inputs: Option<(u64, u64)>,
    outputs: Option<(u64, u64)>,
    width: u64,
    /// Which of the `i`, `o`, `v` lines were there.
    said: [bool; 3],
    /// Number of its first item among all input words.
    items: u64,
}

struct Header {
    total: u64,
    first_gate: u64,
    xors: u64,
    parties: Vec<Party>,
}

impl Header {
    /// Reads the lines before the first gate, which is left waiting.
    fn read<R: BufRead>(lines: &mut Lines<'_, R>) -> Result<Self, Error> {
        let [count] = tagged(lines, "n", ["the number of parties"], limits::PARTIES as u64)?;
        if count == 0 {
            return Err(lines.fail("a circuit has at least one party"));
        }
        let what = ["the number of wires", "the first wire that is no input", "the number of XOR gates"];
        let [total, first_gate, xors] = tagged(lines, "d", what, WIRES)?;
        if !(FIRST..=total).contains(&first_gate) {
            let text =
                format!("the first wire that is no input is {first_gate}; it is between 2 and {total}");
            return Err(lines.fail(text));
        }
        let mut header = Self { total, first_gate, xors, parties: vec![Party::default(); count as usize] };
        let mut last = 2;
        while let Some(next) = lines.peek()?
            && next.starts_with(|c: char| c.is_ascii_alphabetic())
        {
            let line = lines.next_line()?.expect("there is a next line");
            last = line.number;
            header.party_line(&line)?;
        }
        header.settle().map_err(|text| lines.fail_at(last, text))?;
        Ok(header)
    }

    fn party_line(&mut self, line: &TextLine<'_>) -> Result<(), Error> {
        let mut fields = line.fields();
        let tag = fields.next().expect("a line is not blank");
        let Some(kind) = ["i", "o", "v"].iter().position(|t| *t == tag) else {
            let start: String = tag.chars().take(24).collect();
            return Err(line.fail(format!("{start:?} begins no line of this format; n, d, i, o and v do")));
        };
        let id = line.next_number(&mut fields, "a party", u64::MAX)?;
        let count = self.parties.len();
        if id == 0 || id > count as u64 {
            return Err(
                line.fail(format!("party {id} is not one of the {count} parties, which are numbered from 1"))
            );
        }
        let party = &mut self.parties[id as usize - 1];
        if std::mem::replace(&mut party.said[kind], true) {
            return Err(line.fail(format!("a second line {tag} of party {id}")));
        }
        if kind == 2 {
            party.width = line.next_number(&mut fields, "the bits of an item", WORD_BITS.into())?;
            return line.end(&mut fields);
        }
        let first = line.next_number(&mut fields, "the first wire", WIRES)?;
        let last = line.next_number(&mut fields, "the last wire", WIRES)?;
        line.end(&mut fields)?;
        let end = if kind == 0 { self.first_gate } else { self.total };
        let range = (last != 0).then_some((first, last));
        if let Some((first, last)) = range
            && (first > last || last >= end || (kind == 0 && first < FIRST))
        {
            let what = ["input", "output"][kind];
            let from = if kind == 0 { FIRST } else { 0 };
            return Err(
                line.fail(format!("{what} wires {first} to {last} are not within {from} to {}", end - 1))
            );
        }
        if kind == 1 && range.is_some_and(|(first, last)| last - first >= WORD_BITS.into()) {
            return Err(line.fail(format!("party {id} learns more than {WORD_BITS} bits")));
        }
        *(if kind == 0 { &mut party.inputs } else { &mut party.outputs }) = range;
        Ok(())
    }

    /// Checks what the lines say together: every input wire has one owner, and every item its bits.
    fn settle(&mut self) -> Result<(), String> {
        for (p, party) in self.parties.iter().enumerate() {
            if let Some(kind) = party.said.iter().position(|said| !said) {
                return Err(format!("the line {} of party {} is missing", ["i", "o", "v"][kind], p + 1));
            }
        }
        let mut order: Vec<(u64, u64)> = self.parties.iter().filter_map(|p| p.inputs).collect();
        order.sort_unstable();
        let mut next = FIRST;
        for (first, last) in order {
            if first > next {
                return Err(format!("input wire {next} belongs to no party"));
            }
            if first < next {
                return Err(format!("input wire {first} belongs to two parties"));
            }
            next = last + 1;
        }
        if next != self.first_gate {
            return Err(format!("input wire {next} belongs to no party"));
        }
        let mut items = 0;
        for (p, party) in self.parties.iter_mut().enumerate() {
            party.items = items;
            let Some((first, last)) = party.inputs else { continue };
            let wires = last - first + 1;
            if party.width == 0 || wires % party.width != 0 {
                return Err(format!(
                    "party {} has {wires} input wires, which items of {} bits do not fill",
                    p + 1,
                    party.width
                ));
            }
            items += wires / party.width;
        }
        Ok(())
    }

    /// The bit on an input wire: items in order, most significant bit first.
    fn input(&self, wire: u32) -> Option<InputBit> {
        let wire = u64::from(wire);
        self.parties.iter().enumerate().find_map(|(p, party)| {
            let (first, last) = party.inputs?;
            (first..=last).contains(&wire).then(|| {
                let (item, place) = ((wire - first) / party.width, (wire - first) % party.width);
                let bit = (party.width - 1 - place) as u16;
                InputBit { owner: Some(PartyId(p as u8)), word: (party.items + item) as u32, bit }
            })
        })
    }

    fn inputs(&self) -> Vec<InputWord> {
        let mut words = Vec::new();
        for (p, party) in self.parties.iter().enumerate() {
            if let Some((first, last)) = party.inputs {
                let word = InputWord { owner: PartyId(p as u8), width: party.width as u32 };
                words.resize(words.len() + ((last - first + 1) / party.width) as usize, word);
            }
        }
        words
    }
}

/// Reads a line of a letter and numbers.
fn tagged<R: BufRead, const N: usize>(
    lines: &mut Lines<'_, R>,
    tag: &str,
    what: [&str; N],
    cap: u64,
) -> Result<[u64; N], Error> {
    let line = lines.next_line()?;
    let Some(line) = line else {
        return Err(lines.fail(format!("the file ends before its line {tag}")));
    };
    let mut fields = line.fields();
    if fields.next() != Some(tag) {
        return Err(line.fail(format!("a line {tag} is expected here")));
    }
    let mut numbers = [0; N];
    for (number, what) in numbers.iter_mut().zip(what) {
        *number = line.next_number(&mut fields, what, cap)?;
    }
    line.end(&mut fields)?;
    Ok(numbers)
}

/// A use of a wire by a gate, and the line that says so.
type Use = (u32, u32, u64);

/// Gates while they are read.
struct Body {
    wires: Wires,
    lines: u64,
    xors: u64,
    /// Uses as the readers say, and as the wires' own lists say.
    uses: Vec<Use>,
    listed: Vec<Use>,
}

pub(super) fn read_lines<R: BufRead>(mut lines: Lines<'_, R>) -> Result<Wired, Error> {
    let header = Header::read(&mut lines)?;
    let mut body =
        Body { wires: Wires::new(header.total), lines: 0, xors: 0, uses: Vec::new(), listed: Vec::new() };
    while let Some(line) = lines.next_line()? {
        body.gate(&header, &line)?;
    }
    let constants = [0, 1].map(|wire| body.wires.driven.contains_key(&wire));
    let missing = constants.iter().filter(|there| !**there).count() as u64;
    if body.lines + missing < header.total {
        let wire = (FIRST..header.total).find(|w| !body.wires.driven.contains_key(&(*w as u32)));
        return Err(lines.fail(format!(
            "the file ends before the line of wire {}; line d announces {} wires",
            wire.unwrap_or(header.total),
            header.total
        )));
    }
    if body.xors != header.xors {
        let text = format!("the file has {} XOR gates; line d announces {}", body.xors, header.xors);
        return Err(lines.fail(text));
    }
    body.compare_uses(constants, &lines)?;
    let outputs = outputs(&header, &mut body.wires);
    let inputs = header.inputs();
    Ok(Wired { circuit: body.wires.gates.finish(), inputs, outputs, parties: header.parties.len() })
}

impl Body {
    fn gate(&mut self, header: &Header, line: &TextLine<'_>) -> Result<(), Error> {
        let mut fields = line.fields();
        let id = self.wires.number(line, fields.next().expect("a line is not blank"))?;
        let kind = line.next_number(&mut fields, "a gate type", u64::MAX)?;
        let (left, right) = (fields.next(), fields.next());
        let (Some(left), Some(right)) = (left, right) else {
            return Err(line.fail("the left and the right wire are missing"));
        };
        let is_input = u64::from(id) < header.first_gate;
        let lit = match kind {
            CONSTANT if !is_input => {
                return Err(line.fail(format!("gate {id} is of type 0, and input wires end before it")));
            }
            CONSTANT if [left, right] != ["-1"; 2] => {
                return Err(line.fail("an input gate has the left and right wires -1 -1"));
            }
            CONSTANT if u64::from(id) < FIRST => Lit::constant(id == 1),
            CONSTANT => self.wires.gates.input(header.input(id).expect("every input wire has an owner")),
            AND | XOR if is_input => {
                return Err(line.fail(format!("wire {id} is an input wire; its gate is of type 0")));
            }
            AND | XOR => {
                let mut operand = |field| {
                    let wire = self.wires.number(line, field)?;
                    self.uses.push((wire, id, line.number));
                    if u64::from(wire) < FIRST {
                        return Ok(Lit::constant(wire == 1));
                    }
                    self.wires.read(line, wire, |wire| header.input(wire))
                };
                let (a, b) = (operand(left)?, operand(right)?);
                self.xors += u64::from(kind == XOR);
                if kind == AND { self.wires.gates.and_gate(a, b) } else { self.wires.gates.xor(a, b) }
            }
            _ => return Err(line.fail(format!("gate type {kind}; 0 (input), 1 (AND) and 2 (XOR) are known"))),
        };
        let degree = line.next_number(&mut fields, "the out-degree", 2 * GATES)?;
        let mut readers = 0;
        for field in fields {
            let reader = self.wires.number(line, field)?;
            self.listed.push((id, reader, line.number));
            readers += 1;
        }
        if readers != degree {
            return Err(line.fail(format!("the out-degree is {degree}, and {readers} gates are listed")));
        }
        self.wires.drive(line, id, lit)?;
        self.lines += 1;
        Ok(())
    }

    /// Compares the lists of readers with the gates that read. A gate that reads a wire twice may stand there
    /// once or twice. Constants without a line have no list.
    fn compare_uses<R: BufRead>(&mut self, constants: [bool; 2], lines: &Lines<'_, R>) -> Result<(), Error> {
        for uses in [&mut self.uses, &mut self.listed] {
            uses.retain(|(wire, ..)| constants.get(*wire as usize) != Some(&false));
            uses.sort_unstable();
            uses.dedup_by_key(|(wire, reader, _)| (*wire, *reader));
        }
        let (mut uses, mut listed) = (self.uses.iter().peekable(), self.listed.iter().peekable());
        let key = |u: &&Use| (u.0, u.1);
        loop {
            match (uses.peek(), listed.peek()) {
                (None, None) => return Ok(()),
                (Some(a), Some(b)) if key(a) == key(b) => {
                    uses.next();
                    listed.next();
                }
                (a, Some(b)) if a.is_none_or(|a| key(b) < key(a)) => {
                    let text =
                        format!("gate {} is listed as a reader of wire {} and does not read it", b.1, b.0);
                    return Err(lines.fail_at(b.2, text));
                }
                (Some(a), _) => {
                    let text = format!("gate {} reads wire {}, whose line does not list it", a.1, a.0);
                    return Err(lines.fail_at(a.2, text));
                }
                (None, Some(_)) => unreachable!("the list that is longer is told above"),
            }
        }
    }
}

/// Ranges as words; one range of several parties is one word for them.
fn outputs(header: &Header, wires: &mut Wires) -> Vec<OutputWord> {
    let mut ranges: Vec<((u64, u64), Vec<PartyId>)> = Vec::new();
    for (p, party) in header.parties.iter().enumerate() {
        let Some(range) = party.outputs else { continue };
        let viewer = PartyId(p as u8);
        match ranges.iter_mut().find(|(r, _)| *r == range) {
            Some((_, viewers)) => viewers.push(viewer),
            None => ranges.push((range, vec![viewer])),
        }
    }
    let constant = |wire: u64| (wire < FIRST).then(|| Lit::constant(wire == 1));
    let mut lit = |wire: u64| {
        constant(wire).unwrap_or_else(|| match header.input(wire as u32) {
            Some(input) => wires.gates.input(input),
            None => wires.driven[&(wire as u32)],
        })
    };
    let word = |((first, last), viewers): ((u64, u64), Vec<PartyId>)| {
        let everyone = viewers.len() == header.parties.len();
        let to = if everyone { Viewers::Everyone } else { Viewers::Parties(viewers) };
        OutputWord { to, bits: (first..=last).rev().map(&mut lit).collect() }
    };
    ranges.into_iter().map(word).collect()
}

/// Writes a circuit. A party's words become items of one width, the largest that divides all of theirs; a
/// party's outputs become one range.
///
/// # Errors
/// When the circuit is not well formed, or `out` cannot be written.
pub fn write(wired: &Wired, out: &mut impl Write) -> Result<(), Error> {
    wired.check()?;
    Writer::new(wired).print(out).map_err(write_failed)
}

/// A gate line without its readers.
#[derive(Clone, Copy)]
struct Entry {
    kind: u64,
    left: u32,
    right: u32,
}

/// Numbers wires in order; entry i drives wire i.
struct Writer {
    entries: Vec<Entry>,
    numbers: HashMap<Lit, u32>,
    inputs: Vec<Range>,
    widths: Vec<u32>,
    outputs: Vec<Range>,
}

/// First and last wire.
type Range = Option<(usize, usize)>;

impl Writer {
    fn new(wired: &Wired) -> Self {
        let numbers = HashMap::from([(Lit::FALSE, 0), (Lit::TRUE, 1)]);
        let mut writer = Self {
            entries: vec![Entry { kind: CONSTANT, left: 0, right: 0 }; FIRST as usize],
            numbers,
            inputs: Vec::new(),
            widths: Vec::new(),
            outputs: Vec::new(),
        };
        let starts = writer.enter(wired);
        for (i, wire) in wired.circuit.wires.iter().enumerate() {
            let lit = Lit::of(i);
            match *wire {
                WireDriver::False => {}
                WireDriver::Input(input) => {
                    let top = wired.inputs[input.word as usize].width - 1;
                    let number = starts[input.word as usize] + top - u32::from(input.bit);
                    writer.numbers.insert(lit, number);
                }
                WireDriver::Xor(a, b) => writer.emit(lit, XOR, [a, b].map(|w| Lit::of(w as usize))),
                WireDriver::And(a, b) => writer.emit(lit, AND, [a, b]),
            }
        }
        writer.reveal(wired);
        writer
    }

    /// Input wires, party by party; returns the first wire of each word.
    fn enter(&mut self, wired: &Wired) -> Vec<u32> {
        let mut starts = vec![0; wired.inputs.len()];
        for p in 0..wired.parties {
            let first = self.entries.len();
            let mut width = 0;
            for (i, word) in wired.inputs.iter().enumerate().filter(|(_, w)| w.owner.index() == p) {
                starts[i] = self.entries.len() as u32;
                width = common_divisor(width, word.width);
                let entry = Entry { kind: CONSTANT, left: 0, right: 0 };
                self.entries.resize(self.entries.len() + word.width as usize, entry);
            }
            self.inputs.push((self.entries.len() > first).then(|| (first, self.entries.len() - 1)));
            self.widths.push(width.max(1));
        }
        starts
    }

    fn emit(&mut self, lit: Lit, kind: u64, operands: [Lit; 2]) {
        let [left, right] = operands.map(|operand| self.read(operand));
        self.numbers.insert(lit, self.entries.len() as u32);
        self.entries.push(Entry { kind, left, right });
    }

    /// The wire of a literal; a complement is an XOR with the constant 1, made on first use.
    fn read(&mut self, lit: Lit) -> u32 {
        if !self.numbers.contains_key(&lit) {
            self.emit(lit, XOR, [!lit, Lit::TRUE]);
        }
        self.numbers[&lit]
    }

    /// Output wires come last, as XORs with a constant, so that each viewer's are consecutive. Parties that
    /// learn the same share a range.
    fn reveal(&mut self, wired: &Wired) {
        let mut ranges: HashMap<Vec<usize>, Range> = HashMap::new();
        for p in 0..wired.parties {
            let sees = |k: &usize| wired.outputs[*k].to.has(PartyId(p as u8));
            let seen: Vec<usize> = (0..wired.outputs.len()).filter(sees).collect();
            let range = ranges.get(&seen).copied().unwrap_or_else(|| {
                let first = self.entries.len();
                for lit in seen.iter().flat_map(|k| wired.outputs[*k].bits.iter().rev()) {
                    let left = self.numbers[&lit.flip(lit.inverted())];
                    self.entries.push(Entry { kind: XOR, left, right: u32::from(lit.inverted()) });
                }
                (self.entries.len() > first).then(|| (first, self.entries.len() - 1))
            });
            ranges.insert(seen, range);
            self.outputs.push(range);
        }
    }

    fn print(&self, out: &mut impl Write) -> std::io::Result<()> {
        let xors = self.entries.iter().filter(|e| e.kind == XOR).count();
        let first_gate = self.entries.iter().position(|e| e.kind != CONSTANT).unwrap_or(self.entries.len());
        writeln!(out, "n {}\nd {} {first_gate} {xors}", self.inputs.len(), self.entries.len())?;
        for (tag, ranges) in [("i", &self.inputs), ("o", &self.outputs)] {
            for (p, range) in ranges.iter().enumerate() {
                let (first, last) = range.unwrap_or((0, 0));
                writeln!(out, "{tag} {} {first} {last}", p + 1)?;
            }
        }
        for (p, width) in self.widths.iter().enumerate() {
            writeln!(out, "v {} {width}", p + 1)?;
        }
        let (starts, readers) = self.readers();
        for (id, entry) in self.entries.iter().enumerate() {
            let of = &readers[starts[id]..starts[id + 1]];
            match entry.kind {
                CONSTANT => write!(out, "{id} 0 -1 -1 {}", of.len())?,
                kind => write!(out, "{id} {kind} {} {} {}", entry.left, entry.right, of.len())?,
            }
            of.iter().try_for_each(|reader| write!(out, " {reader}"))?;
            writeln!(out)?;
        }
        out.flush()
    }

    /// The gates that read each wire: those of wire i are at `starts[i]..starts[i + 1]`.
    fn readers(&self) -> (Vec<usize>, Vec<u32>) {
        let gates = || self.entries.iter().enumerate().filter(|(_, e)| e.kind != CONSTANT);
        let mut starts = vec![0; self.entries.len() + 1];
        for (_, entry) in gates() {
            starts[entry.left as usize + 1] += 1;
            starts[entry.right as usize + 1] += 1;
        }
        (1..starts.len()).for_each(|i| starts[i] += starts[i - 1]);
        let (mut next, mut readers) = (starts.clone(), vec![0; *starts.last().expect("never empty")]);
        for (id, entry) in gates() {
            for wire in [entry.left, entry.right] {
                readers[next[wire as usize]] = id as u32;
                next[wire as usize] += 1;
            }
        }
        (starts, readers)
    }
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
