//! What a command says of itself: operation, source, destination, length and peer, and never a value.

use crate::{Command, Fold, Half, Linear, Multiply, Ring, Seat, Vouch};
use std::time::Duration;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A sum of shares.
    Add,
    /// A difference of shares.
    Sub,
    /// Stage 1 of products.
    Multiply,
    /// Stage 2 of products.
    Fold,
}

/// A vector that a command reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its name among the fields of the command, with the part where there are several: `x0`, `a`.
    pub name: &'static str,
    /// How long it is.
    pub blocks: usize,
}

/// A command without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// What is done.
    pub operation: Operation,
    /// To which elements.
    pub ring: Ring,
    /// What is read. A vector that is added to is among the destinations alone.
    pub source: Vec<Operand>,
    /// What is written.
    pub destination: Vec<Operand>,
    /// Length of the result in blocks.
    pub blocks: usize,
    /// Terms of every dot product; 1 where there are none.
    pub terms: usize,
    /// Who gets the messages of stage 1, or sent those of stage 2.
    pub peer: Option<Seat>,
    /// Round, index of the first block, and half, of commands that take part in a round.
    pub place: Option<(u64, u64, Half)>,
    /// Whether messages are hidden from the fourth party.
    pub masked: bool,
}

/// A command, or one device's part of it, that has been completed.
#[derive(Clone, Debug)]
pub struct Event {
    /// What was done.
    pub descriptor: Descriptor,
    /// Index of the device in its queue.
    pub device: usize,
    /// Name of the device.
    pub name: &'static str,
    /// When it began, from the moment that the queue was told to keep events.
    pub start: Duration,
    /// How long it took.
    pub duration: Duration,
}

impl Command<'_> {
    /// What this command does at a seat.
    #[must_use]
    pub fn descriptor(&self, seat: Seat) -> Descriptor {
        match self {
            Command::Add(l) => linear(Operation::Add, l),
            Command::Sub(l) => linear(Operation::Sub, l),
            Command::Multiply(m) => multiply(m, seat),
            Command::Fold(f) => fold(f, seat),
        }
    }
}

/// Vectors with their names; those that are empty are left out.
fn operands<const N: usize>(vectors: [(&'static str, usize); N]) -> Vec<Operand> {
    let there = vectors.into_iter().filter(|&(_, blocks)| blocks > 0);
    there.map(|(name, blocks)| Operand { name, blocks }).collect()
}

fn linear(operation: Operation, l: &Linear<'_>) -> Descriptor {
    let blocks = l.z[0].len();
    Descriptor {
        operation,
        ring: l.ring,
        source: operands(["x0", "x1", "x2", "y0", "y1", "y2"].map(|name| (name, blocks))),
        destination: operands(["z0", "z1", "z2"].map(|name| (name, blocks))),
        blocks,
        terms: 1,
        peer: None,
        place: None,
        masked: false,
    }
}

fn multiply(m: &Multiply<'_>, seat: Seat) -> Descriptor {
    let blocks = m.z[0].len();
    let exposed = match &m.vouch {
        Vouch::Expose { a, c } => [a.len(), c.len()],
        Vouch::Nothing | Vouch::Digest(_) => [0, 0],
    };
    Descriptor {
        operation: Operation::Multiply,
        ring: m.ring,
        source: operands(["x0", "x1", "x2", "y0", "y1", "y2"].map(|name| (name, m.x[0].len()))),
        destination: operands([
            ("z0", blocks),
            ("z1", blocks),
            ("z2", blocks),
            ("a", m.a.len()),
            ("c", m.c.len()),
            ("vouch.a", exposed[0]),
            ("vouch.c", exposed[1]),
        ]),
        blocks,
        terms: m.terms,
        peer: Some(seat.after(3)),
        place: Some((m.round, m.first, m.half)),
        masked: m.masked,
    }
}

fn fold(f: &Fold<'_>, seat: Seat) -> Descriptor {
    Descriptor {
        operation: Operation::Fold,
        ring: f.ring,
        source: operands([("a", f.a.len()), ("c", f.c.len())]),
        destination: operands([("z1", f.c.len()), ("z2", f.a.len())]),
        blocks: f.a.len(),
        terms: 1,
        peer: Some(seat.after(1)),
        place: Some((f.round, f.first, f.half)),
        masked: f.masked,
    }
}
