//! The text form: one definition per line, readable, canonical when printed. Grammar: `docs/program.md`.

mod ask;
mod counted;
mod derived;
mod draft;
mod head;
mod mechanisms;
mod moments;
mod print;
mod row;
mod tokens;

use crate::graph::{List, Lookup, NodeSection, OpNode, RowFold, RowOrder};
use crate::names::{Spot, TextPlace, is_name};
use crate::{Class, CountedIn, NodeFacts, NodeId, Op, OutputValue, Program, ValueType, Viewer};
use ask::Ask;
use base::{Error, PartyId, limits};
pub use draft::TextDraft;
use std::collections::HashMap;
use tokens::{TextFault, Tokens, tokens};

pub(crate) const HEADER: &str = "tacit-program/2";
/// The form before, in which a row that a party does not have read as its first label and counted.
const OLD_HEADER: &str = "tacit-program/1";
/// Most columns of a program from text.
const COLUMNS: usize = 4096;

impl Program {
    /// Parses the text form.
    ///
    /// # Errors
    /// The first mistake, as `line L, column C: what is wrong and what was expected`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > limits::STUDY_BYTES {
            return Err(Error::limit("bytes of a program", text.len() as u64, limits::STUDY_BYTES as u64));
        }
        let mut parser = Parser::default();
        for (number, line) in text.lines().enumerate() {
            parser.next_line(line).map_err(|(byte, text)| {
                // Columns count characters, as editors do.
                let column = line[..byte].chars().count() + 1;
                Error::input(format!("line {}, column {column}: {text}", number + 1))
            })?;
        }
        parser.whole()
    }
}

fn list(prefix: &str, ids: impl Iterator<Item = u32>) -> String {
    ids.fold(String::new(), |t, i| t + &format!(" {prefix}{i}"))
}

type Make = fn(NodeId, NodeId) -> Op;

/// Two-operand operations by name.
const BINARY: [(&str, Make); 12] = [
    ("and", Op::And),
    ("or", Op::Or),
    ("xor", Op::Xor),
    ("add", Op::Add),
    ("sub", Op::Sub),
    ("mul", Op::Mul),
    ("div", Op::Div),
    ("lt", Op::Lt),
    ("eq", Op::Eq),
    ("min", Op::Min),
    ("max", Op::Max),
    ("select", |a, b| Op::Select(a, b, b)),
];

/// A number in digits.
fn number(text: &str) -> Option<u128> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// The bit pattern of a number in digits; of a signed type also of a negative one, as it is printed.
fn pattern(text: &str, ty: ValueType) -> Option<u128> {
    let below = || {
        let digits = text.strip_prefix('-').filter(|_| ty.signed)?;
        ty.pattern(0i128.checked_sub_unsigned(number(digits)?)?)
    };
    number(text).or_else(below)
}

/// What to do with a text of the form before.
fn old_form() -> String {
    format!(
        "this text is of the form {OLD_HEADER}, in which a row that a party does not have counted with \
         zeros, as the first label; write {HEADER:?} and mind two changes: rows are those that all parties \
         have, unless the head says `rows any` (of any party; `present PARTY` tells) or `rows aligned`; and \
         labels count from 1, so every constant that a label is compared with is one more, and the column's \
         type must hold the number of labels"
    )
}

fn same_kind(op: &Op, make: &Make) -> bool {
    std::mem::discriminant(op) == std::mem::discriminant(&make(NodeId(0), NodeId(0)))
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Header,
    Head,
    Row,
    Combine,
    Release,
    Ask,
}

struct Parser {
    stage: Stage,
    program: Program,
    /// Names of nodes, folds and mechanisms of the current section.
    nodes: HashMap<String, u32>,
    folds: HashMap<String, u32>,
    mechanisms: HashMap<String, u32>,
    /// Whether `name` and `class` were given.
    named: bool,
    classed: bool,
    /// What `rows` said.
    rows: Option<Rows>,
    /// Nodes of built-in columns, and of `matched`.
    built_in: HashMap<u32, NodeId>,
    matched: Option<NodeId>,
    /// Of row nodes that may be missing: the bit that they are not.
    known: HashMap<NodeId, NodeId>,
    /// Row nodes that questions are written out as.
    written_out: HashMap<OpNode, NodeId>,
    /// How often a viewer is told something under a label of a question.
    labels: HashMap<(Viewer, String), u32>,
    /// What is known of the first row nodes, for questions.
    facts: Vec<NodeFacts>,
    /// What the first row nodes are counted in.
    counted_in: Vec<CountedIn>,
    /// What viewers are told in answer to questions.
    asks: Vec<Ask>,
    /// Where the current line begins.
    at: TextPlace,
}

/// The rows of a program, as its head says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// Those that all parties have: every fold is written out as one over [`RowSet::Any`] that asks for them.
    Matched,
    Any,
    Aligned,
}

impl Default for Parser {
    fn default() -> Self {
        Self {
            stage: Stage::Header,
            program: Program::empty("", Class::Dp, Vec::new()),
            nodes: HashMap::new(),
            folds: HashMap::new(),
            mechanisms: HashMap::new(),
            named: false,
            classed: false,
            rows: None,
            built_in: HashMap::new(),
            known: HashMap::new(),
            written_out: HashMap::new(),
            labels: HashMap::new(),
            facts: Vec::new(),
            counted_in: Vec::new(),
            asks: Vec::new(),
            matched: None,
            at: TextPlace { line: 0, column: 1, written: None },
        }
    }
}

impl Parser {
    /// Reads one more line of the text.
    fn next_line(&mut self, line: &str) -> Result<(), TextFault> {
        self.at.line += 1;
        let tokens = tokens(line)?;
        let Some(first) = tokens.first() else { return Ok(()) };
        self.at.column = line[..first.column].chars().count() + 1;
        self.line(&mut Tokens { tokens, next: 0, end: line.len() })
    }

    /// The program of all lines.
    fn whole(mut self) -> Result<Program, Error> {
        self.settle_asks().map_err(|(at, text)| Error::input(format!("{at}: {text}")))?;
        if self.stage < Stage::Release {
            return Err(Error::input("the program ends before its release section"));
        }
        self.program.check()?;
        Ok(self.program)
    }

    fn line(&mut self, t: &mut Tokens) -> Result<(), TextFault> {
        let (word, column) = t.take("a definition")?;
        let next = |from: Stage, to: Stage| (self.stage == from).then_some(to);
        let moved = match word.as_str() {
            HEADER => next(Stage::Header, Stage::Head),
            OLD_HEADER if self.stage == Stage::Header => return Err((column, old_form())),
            _ if self.stage == Stage::Header => {
                return Err((column, format!("the first line must be {HEADER:?}, found {word:?}")));
            }
            "ask" if matches!(self.stage, Stage::Head | Stage::Row) && self.named => {
                return self.ask(column, t);
            }
            "row" if self.stage == Stage::Head && !self.named => {
                return Err((column, "the name comes before the row section".into()));
            }
            "combine" if !self.classed => {
                let text = "this program has no class: write `class dp` or `class exact` above its row \
                 section";
                return Err((column, text.into()));
            }
            "row" => next(Stage::Head, Stage::Row),
            "combine" => next(Stage::Row, Stage::Combine),
            "release" => next(Stage::Combine, Stage::Release),
            _ => {
                return match self.stage {
                    Stage::Header => unreachable!("handled above"),
                    Stage::Head => self.head(&word, column, t),
                    Stage::Row | Stage::Combine | Stage::Release => self.definition(word, column, t),
                    Stage::Ask => self.question(&word, column, t),
                };
            }
        };
        self.stage = moved.ok_or_else(|| (column, format!("{word:?} is out of order")))?;
        if self.stage == Stage::Release {
            self.nodes.clear();
        }
        t.end()
    }

    fn party(&self, t: &mut Tokens) -> Result<PartyId, TextFault> {
        let find = |n: &str| self.program.parties.iter().position(|p| p == n).map(|i| PartyId(i as u8));
        t.parsed("a party's name", find)
    }

    fn viewer(&self, t: &mut Tokens) -> Result<Viewer, TextFault> {
        if t.peek().is_some_and(|word| word == Viewer::PUBLIC) {
            return t.parsed("a viewer", |_| Some(Viewer::Public));
        }
        self.party(t).map(Viewer::Party)
    }

    fn definition(&mut self, name: String, column: usize, t: &mut Tokens) -> Result<(), TextFault> {
        if self.stage == Stage::Release && name == "reveal" {
            let value = self.node(t)?;
            let to = self.viewer(t)?;
            let label = t.string("a label")?;
            self.program.outputs.push(OutputValue { label, to, value });
            return t.end();
        }
        if self.stage == Stage::Release && name == "derive" {
            let derived = self.derived(t)?;
            self.program.derived.push(derived);
            return t.end();
        }
        if self.stage == Stage::Release && name == "reveal-rows" {
            let fold = self.fold(t)?;
            let to = self.party(t)?;
            let label = t.string("a label")?;
            self.program.lists.push(List { label, to, fold });
            return t.end();
        }
        if !is_name(&name) {
            return Err((column, format!("expected a definition, found {name:?}")));
        }
        t.parsed("=", |e| (e == "=").then_some(()))?;
        let (op, at) = t.take("an operation")?;
        let spot = Spot { name: name.clone(), place: self.at.clone() };
        let taken = match (self.stage, op.as_str()) {
            (Stage::Combine, _) => {
                let fold = self.combine(&op, at, t)?;
                self.program.folds.push(fold);
                self.program.names.folds.push(spot);
                self.folds.insert(name.clone(), self.program.folds.len() as u32 - 1)
            }
            (
                Stage::Release,
                "gaussian" | "joint" | "variance" | "algorithm1" | "algorithm1-as-published",
            ) => {
                let mechanism = self.mechanism(&op, at, t)?;
                self.program.mechanisms.push(mechanism);
                self.program.names.mechanisms.push(spot);
                self.mechanisms.insert(name.clone(), self.program.mechanisms.len() as u32 - 1)
            }
            (Stage::Row, _) => {
                let node = self.row_value(&op, at, t)?;
                self.program.names.row[node.index()] = Some(spot);
                self.nodes.insert(name.clone(), node.0)
            }
            _ => {
                let node = self.operation(&op, at, t)?;
                let section = &self.program.release;
                let typed = self.program.check_node(&node, section, section.nodes.len(), false);
                typed.map_err(|text| (at, text))?;
                self.program.release.nodes.push(node);
                self.program.names.release.push(spot);
                self.nodes.insert(name.clone(), self.program.release.nodes.len() as u32 - 1)
            }
        };
        if taken.is_some() {
            return Err((column, format!("{name:?} is defined twice")));
        }
        t.end()
    }

    fn combine(&mut self, op: &str, at: usize, t: &mut Tokens) -> Result<RowFold, TextFault> {
        let order = match op {
            "sum" => {
                let value = self.node(t)?;
                let ty = t.parsed("a type such as u64", ValueType::parse)?;
                return self.sum(value, ty, at);
            }
            "collect" => {
                let value = self.node(t)?;
                return Ok(RowFold::Collect { value: self.masked(value, &[value], at)? });
            }
            "least" => RowOrder::Least,
            "greatest" => RowOrder::Greatest,
            _ => return Err((at, format!("expected sum, least, greatest or collect, found {op:?}"))),
        };
        let key = self.node(t)?;
        t.parsed("where", |n| (n == "where").then_some(()))?;
        let valid = self.node(t)?;
        Ok(RowFold::Best {
            order,
            key,
            valid: self.masked(valid, &[key, valid], at)?,
            ty: self.program.row.ty(key),
        })
    }

    fn fold(&self, t: &mut Tokens) -> Result<u32, TextFault> {
        t.parsed("a fold", |n| self.folds.get(n).copied())
    }

    fn section(&self) -> &NodeSection {
        if self.stage == Stage::Row { &self.program.row } else { &self.program.release }
    }

    fn node(&self, t: &mut Tokens) -> Result<NodeId, TextFault> {
        t.parsed("a value defined above", |n| self.nodes.get(n).map(|i| NodeId(*i)))
    }

    fn nodes_until(&self, stop: &str, t: &mut Tokens) -> Result<Vec<NodeId>, TextFault> {
        let mut out = Vec::new();
        while t.peek().is_some_and(|n| n != stop) {
            out.push(self.node(t)?);
        }
        Ok(out)
    }

    fn operation(&self, op: &str, at: usize, t: &mut Tokens) -> Result<OpNode, TextFault> {
        let ty = |t: &mut Tokens| t.parsed("a type such as u32", ValueType::parse);
        if let Some((name, make)) = BINARY.iter().find(|(name, _)| *name == op) {
            let (a, b) = (self.node(t)?, self.node(t)?);
            if *name == "select" {
                let c = self.node(t)?;
                return Ok(OpNode { op: Op::Select(a, b, c), ty: self.section().ty(b) });
            }
            let ty = if matches!(*name, "lt" | "eq") { ValueType::BIT } else { self.section().ty(a) };
            return Ok(OpNode { op: make(a, b), ty });
        }
        let of = |a: NodeId| self.section().ty(a);
        Ok(match op {
            "total" => {
                let fold = self.fold(t)?;
                OpNode { op: Op::Total(fold), ty: self.program.folds[fold as usize].ty() }
            }
            "index" => OpNode { op: Op::Index(self.fold(t)?), ty: RowFold::INDEX },
            "found" => OpNode { op: Op::Found(self.fold(t)?), ty: ValueType::BIT },
            "noised" => {
                let m = t.parsed("a mechanism", |n| self.mechanisms.get(n).copied())?;
                let o = t.parsed("an output's number", |n| number(n).and_then(|o| u32::try_from(o).ok()))?;
                let ty =
                    self.program.noised_type(m, o).ok_or((at, format!("the mechanism has no output {o}")))?;
                OpNode { op: Op::Noised(m, o), ty }
            }
            "const" => self.const_value(t)?,
            "not" | "isqrt" => {
                let a = self.node(t)?;
                OpNode { op: if op == "not" { Op::Not(a) } else { Op::Isqrt(a) }, ty: of(a) }
            }
            "popcount" => OpNode { op: Op::Popcount(self.node(t)?), ty: ty(t)? },
            "cast" => OpNode { op: Op::Cast(self.node(t)?), ty: ty(t)? },
            "clamp" => {
                let a = self.node(t)?;
                OpNode { op: Op::Clamp(a, t.parsed("a number", number)?), ty: of(a) }
            }
            "shl" | "shr" => {
                let a = self.node(t)?;
                let by =
                    t.parsed("a number below 128", |n| number(n).filter(|k| *k < 128).map(|k| k as u8))?;
                OpNode { op: if op == "shl" { Op::Shl(a, by) } else { Op::Shr(a, by) }, ty: of(a) }
            }
            "lookup" => self.lookup(at, t)?,
            _ => return Err((at, format!("unknown operation {op:?}"))),
        })
    }

    fn lookup(&self, at: usize, t: &mut Tokens) -> Result<OpNode, TextFault> {
        let word = |expected: &'static str| move |n: &str| (n == expected).then_some(());
        t.parsed("after", word("after"))?;
        let after = self.node(t)?;
        let until = match t.peek() {
            Some("until") => {
                t.take("until")?;
                Some(self.node(t)?)
            }
            _ => None,
        };
        t.parsed("keys", word("keys"))?;
        let keys = self.nodes_until("values", t)?;
        t.parsed("values", word("values"))?;
        let values = self.nodes_until("", t)?;
        let first = *values.first().ok_or((at, "a lookup has values".to_owned()))?;
        Ok(OpNode {
            op: Op::Lookup(Box::new(Lookup { after, until, keys, values })),
            ty: self.section().ty(first),
        })
    }
}
