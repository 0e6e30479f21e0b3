//! What people read: names of parties and columns, labels of outputs, and what a text calls its values. A
//! label must not be able to deceive a reader or to break out of its line, and the text form must print it
//! and read it back unchanged.

use crate::{ColumnSource, NodeId, Program};
use base::is_deceptive;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Where a line of a text begins, both from 1; or where else somebody wrote what it says.
#[derive(Clone, Debug)]
pub(crate) struct TextPlace {
    pub line: usize,
    pub column: usize,
    /// A file and its line, of a text that was made from it.
    pub written: Option<(Arc<str>, usize)>,
}

impl fmt::Display for TextPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.written {
            Some((file, line)) => write!(f, "{file}, line {line}"),
            None => write!(f, "line {}, column {}", self.line, self.column),
        }
    }
}

/// What a text calls one of its definitions, and where.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub name: String,
    pub place: TextPlace,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.place)
    }
}

/// What the text of a program calls its values, for messages. A program that was built has none and is named
/// by number. The names are no part of the program: any two are equal.
#[derive(Clone, Debug, Default)]
pub struct ValueNames {
    /// By row node: nothing for those that the text does not spell out.
    pub(crate) row: Vec<Option<Spot>>,
    pub(crate) folds: Vec<Spot>,
    pub(crate) mechanisms: Vec<Spot>,
    pub(crate) release: Vec<Spot>,
}

impl PartialEq for ValueNames {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ValueNames {}

impl ValueNames {
    /// The name of a fold alone: `cases`, or `f0`.
    #[must_use]
    pub fn fold_name(&self, fold: u32) -> String {
        self.folds.get(fold as usize).map_or_else(|| format!("f{fold}"), |spot| spot.name.clone())
    }

    /// A fold with its place: `cases (line 20, column 1)`, or `f0`.
    pub(crate) fn fold(&self, fold: u32) -> String {
        self.folds.get(fold as usize).map_or_else(|| format!("f{fold}"), Spot::to_string)
    }

    /// A mechanism with its place, or `m0`.
    #[must_use]
    pub fn mechanism(&self, mechanism: u32) -> String {
        self.mechanisms.get(mechanism as usize).map_or_else(|| format!("m{mechanism}"), Spot::to_string)
    }

    /// A release node with its place, or `release v0`.
    pub(crate) fn release(&self, node: usize) -> String {
        self.release.get(node).map_or_else(|| format!("release v{node}"), Spot::to_string)
    }

    /// The name of a row node alone, or `v0`.
    pub(crate) fn row(&self, node: NodeId) -> String {
        let spot = self.row.get(node.index()).and_then(Option::as_ref);
        spot.map_or_else(|| format!("v{}", node.0), |spot| spot.name.clone())
    }
}

/// Most bytes of a label or of a program's name.
pub const LABEL_BYTES: usize = 200;

/// Whether a text is a name: a letter or `_`, then letters, digits, `_` and `-`; at most 64 bytes, ASCII.
pub(crate) fn is_name(text: &str) -> bool {
    let body = text.strip_prefix(|c: char| c.is_ascii_alphabetic() || c == '_');
    text.len() <= 64
        && body.is_some_and(|b| b.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-'))
}

/// A label in double quotes, as the text form writes it.
pub(crate) fn quote(label: &str) -> String {
    format!("\"{}\"", label.replace('\\', "\\\\").replace('"', "\\\""))
}

/// An empty one would be a value that nobody can tell from another.
fn check_output(what: &str, label: &str) -> Result<(), String> {
    if label.trim().is_empty() {
        return Err(format!("{what} is empty: say in it what the viewer is shown"));
    }
    check_label(what, label)
}

pub(crate) fn check_label(what: &str, label: &str) -> Result<(), String> {
    if label.len() > LABEL_BYTES {
        return Err(format!("{what} has {} bytes; at most {LABEL_BYTES} are shown", label.len()));
    }
    match label.chars().find(|c| is_deceptive(*c)) {
        None => Ok(()),
        Some(c) => Err(format!("{what} holds the control or invisible character U+{:04X}", u32::from(c))),
    }
}

/// Checks every name and label of a program.
pub(crate) fn check(program: &Program) -> Result<(), String> {
    check_label("the program's name", &program.name)?;
    let mut seen = HashSet::new();
    for party in &program.parties {
        if !is_name(party) || matches!(party.as_str(), "public" | "shared") || !seen.insert(party) {
            return Err(format!("the party {party:?} is not a name, is reserved or is named twice"));
        }
    }
    let mut seen = HashSet::new();
    for column in &program.columns {
        let named = match (column.holder.only(), column.source) {
            (_, ColumnSource::Known(of)) => {
                let of = program.columns.get(of as usize).filter(|of| of.holder == column.holder);
                of.is_some_and(|of| of.cells.missing && column.name == format!("known {}", of.name))
            }
            (Some(party), _) if column.is_presence() => {
                let party = program.parties.get(party.index());
                party.is_some_and(|party| column.name == format!("present {party}"))
            }
            _ => is_name(&column.name),
        };
        if !named || !seen.insert(&column.name) {
            return Err(format!("the column {:?} is not a name or is named twice", column.name));
        }
        if column.holder.only().is_some_and(|o| o.index() >= program.parties.len()) {
            return Err(format!("the column {} is held by an unknown party", column.name));
        }
    }
    let mut seen = HashSet::new();
    for (i, output) in program.outputs.iter().enumerate() {
        check_output(&format!("the label of output {i}"), &output.label)?;
        if !seen.insert((output.to, &output.label)) {
            return Err(format!("two outputs for one party are labelled {:?}", output.label));
        }
    }
    for (i, derived) in program.derived.iter().enumerate() {
        check_output(&format!("the label of derived output {i}"), &derived.label)?;
        check_label(&format!("the unit of derived output {i}"), &derived.unit)?;
        if !seen.insert((derived.to, &derived.label)) {
            return Err(format!("two outputs for one party are labelled {:?}", derived.label));
        }
    }
    for (i, list) in program.lists.iter().enumerate() {
        check_output(&format!("the label of list {i}"), &list.label)?;
        if !seen.insert((list.to.into(), &list.label)) {
            return Err(format!("two outputs for one party are labelled {:?}", list.label));
        }
    }
    Ok(())
}
