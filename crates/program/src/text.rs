//! The text form: one definition per line, readable, canonical when printed. Grammar: `docs/program.md`.

mod mechanisms;

use crate::graph::{Holder, List, Lookup, NodeSection, OpNode, RowFold, RowOrder};
use crate::names::{Spot, is_name, quote};
use crate::{
    Class, ColumnSource, DEGREE, NodeId, Op, OutputValue, Program, RowColumn, RowSet, ValueType, Viewer,
};
use base::{Error, PartyId, is_deceptive, limits};
use std::collections::HashMap;
use std::fmt::Write;

const HEADER: &str = "tacit-program/2";
/// The form before, in which a row that a party does not have read as its first label and counted.
const OLD_HEADER: &str = "tacit-program/1";
/// Most columns of a program from text.
const COLUMNS: usize = 4096;

impl Program {
    /// The canonical text. Parsing it gives an equal program.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut t = format!("{HEADER}\nname {}\n", quote(&self.name));
        let class = if self.class == Class::Dp { "dp" } else { "exact" };
        let rows = if self.rows == RowSet::Any { "any" } else { "aligned" };
        let _ = writeln!(t, "class {class}\nrows {rows}");
        for party in &self.parties {
            let _ = writeln!(t, "party {party}");
        }
        for (party, degree) in self.parties.iter().zip(&self.degrees).filter(|(_, d)| **d != 1) {
            let _ = writeln!(t, "degree {party} {degree}");
        }
        for (party, rows) in self.parties.iter().zip(&self.alone).filter(|(_, d)| **d != 1) {
            let _ = writeln!(t, "alone {party} {rows}");
        }
        for c in self.columns.iter().filter(|c| !c.is_built_in()) {
            let holder = match c.holder {
                Holder::Public => "public",
                Holder::Shared => "shared",
                Holder::Party(p) => &self.parties[p.index()],
            };
            let source = match c.source {
                ColumnSource::Data { absent: 0 } => String::new(),
                ColumnSource::Data { absent } => format!(" absent {absent}"),
                ColumnSource::Present => " present".to_owned(),
            };
            let _ = writeln!(t, "column {} {} {holder}{source}", c.name, c.ty);
        }
        t.push_str("row\n");
        self.print_section(&mut t, &self.row);
        t.push_str("combine\n");
        for (i, fold) in self.folds.iter().enumerate() {
            let _ = match fold {
                RowFold::Sum { value, ty } => writeln!(t, "f{i} = sum v{} {ty}", value.0),
                RowFold::Best { order, key, valid, .. } => {
                    let word = if *order == RowOrder::Least { "least" } else { "greatest" };
                    writeln!(t, "f{i} = {word} v{} where v{}", key.0, valid.0)
                }
                RowFold::Collect { value } => writeln!(t, "f{i} = collect v{}", value.0),
            };
        }
        t.push_str("release\n");
        for (i, mechanism) in self.mechanisms.iter().enumerate() {
            let _ = writeln!(t, "m{i} = {}", mechanism.to_text(&self.parties));
        }
        self.print_section(&mut t, &self.release);
        for o in &self.outputs {
            let _ = writeln!(t, "reveal v{} {} {}", o.value.0, o.to.name(&self.parties), quote(&o.label));
        }
        for l in &self.lists {
            let _ = writeln!(t, "reveal-rows f{} {} {}", l.fold, self.parties[l.to.index()], quote(&l.label));
        }
        t
    }

    fn print_section(&self, t: &mut String, section: &NodeSection) {
        for (i, node) in section.nodes.iter().enumerate() {
            let ids = |ids: &[NodeId]| list("v", ids.iter().map(|a| a.0));
            let plain = |name: &str, op: &Op| {
                let mut text = name.to_owned();
                op.operands(|a| text.push_str(&format!(" v{}", a.0)));
                text
            };
            let body = match &node.op {
                Op::Column(c) if self.columns[*c as usize].is_built_in() => {
                    self.columns[*c as usize].name.clone()
                }
                Op::Column(c) => format!("column {}", self.columns[*c as usize].name),
                Op::Total(f) => format!("total f{f}"),
                Op::Index(f) => format!("index f{f}"),
                Op::Found(f) => format!("found f{f}"),
                Op::Noised(m, o) => format!("noised m{m} {o}"),
                Op::Const(value) => format!("const {value} {}", node.ty),
                Op::Popcount(a) => format!("popcount v{} {}", a.0, node.ty),
                Op::Cast(a) => format!("cast v{} {}", a.0, node.ty),
                Op::Shl(a, k) => format!("shl v{} {k}", a.0),
                Op::Shr(a, k) => format!("shr v{} {k}", a.0),
                Op::Clamp(a, cap) => format!("clamp v{} {cap}", a.0),
                Op::Lookup(l) => {
                    let until = l.until.map_or(String::new(), |u| format!(" until v{}", u.0));
                    format!(
                        "lookup after v{}{until} keys{} values{}",
                        l.after.0,
                        ids(&l.keys),
                        ids(&l.values)
                    )
                }
                Op::Not(_) => plain("not", &node.op),
                Op::Isqrt(_) => plain("isqrt", &node.op),
                op => plain(BINARY.iter().find(|(_, make)| same_kind(op, make)).expect("listed").0, op),
            };
            let _ = writeln!(t, "v{i} = {body}");
        }
    }

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
            let tokens = tokens(line);
            parser.at.line = number + 1;
            let done = tokens.and_then(|tokens| {
                if tokens.is_empty() {
                    Ok(())
                } else {
                    parser.at.column = line[..tokens[0].column].chars().count() + 1;
                    parser.line(&mut Tokens { tokens, next: 0, end: line.len() })
                }
            });
            done.map_err(|(byte, text)| {
                // Columns count characters, as editors do.
                let column = line[..byte].chars().count() + 1;
                Error::input(format!("line {}, column {column}: {text}", number + 1))
            })?;
        }
        if parser.stage < Stage::Release {
            return Err(Error::input("the program ends before its release section"));
        }
        parser.program.check()?;
        Ok(parser.program)
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

type Fault = (usize, String);

struct Token {
    text: String,
    column: usize,
    quoted: bool,
}

/// Splits a line into words and quoted strings; `#` starts a comment.
fn tokens(line: &str) -> Result<Vec<Token>, Fault> {
    let mut out = Vec::new();
    let mut rest = line.char_indices().peekable();
    while let Some((column, c)) = rest.next() {
        match c {
            '#' => break,
            c if c.is_whitespace() => {}
            '"' => {
                let mut text = String::new();
                loop {
                    match rest.next() {
                        Some((_, '"')) => break,
                        Some((at, '\\')) => match rest.next() {
                            Some((_, c @ ('"' | '\\'))) => text.push(c),
                            _ => return Err((at, "only \\\" and \\\\ are escapes".into())),
                        },
                        Some((at, c)) if is_deceptive(c) => {
                            return Err((at, "a label has no control or invisible characters".into()));
                        }
                        Some((_, c)) => text.push(c),
                        None => return Err((column, "the string is not closed".into())),
                    }
                }
                out.push(Token { text, column, quoted: true });
            }
            c => {
                let mut text = String::from(c);
                while let Some((_, c)) = rest.next_if(|(_, c)| !c.is_whitespace() && *c != '#' && *c != '"') {
                    text.push(c);
                }
                out.push(Token { text, column, quoted: false });
            }
        }
    }
    Ok(out)
}

struct Tokens {
    tokens: Vec<Token>,
    next: usize,
    end: usize,
}

impl Tokens {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.next).map(|t| t.text.as_str())
    }

    fn take(&mut self, what: &str) -> Result<(String, usize), Fault> {
        match self.tokens.get(self.next) {
            Some(token) if !token.quoted => {
                self.next += 1;
                Ok((token.text.clone(), token.column))
            }
            Some(token) => Err((token.column, format!("expected {what}, found a string"))),
            None => Err((self.end, format!("expected {what}"))),
        }
    }

    fn parsed<T>(&mut self, what: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, Fault> {
        let (text, column) = self.take(what)?;
        parse(&text).ok_or_else(|| (column, format!("expected {what}, found {text:?}")))
    }

    fn string(&mut self, what: &str) -> Result<String, Fault> {
        match self.tokens.get(self.next) {
            Some(token) if token.quoted => {
                self.next += 1;
                Ok(token.text.clone())
            }
            other => {
                let column = other.map_or(self.end, |t| t.column);
                Err((column, format!("expected {what} in double quotes")))
            }
        }
    }

    fn end(&self) -> Result<(), Fault> {
        match self.tokens.get(self.next) {
            None => Ok(()),
            Some(token) => {
                Err((token.column, format!("unexpected {:?} after the end of the line", token.text)))
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Header,
    Head,
    Row,
    Combine,
    Release,
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
    present: HashMap<u32, NodeId>,
    matched: Option<NodeId>,
    /// Where the current line begins.
    at: Place,
}

/// The rows of a program, as its head says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// Those that all parties have: every fold is written out as one over [`RowSet::Any`] that asks for them.
    Matched,
    Any,
    Aligned,
}

#[derive(Clone, Copy)]
struct Place {
    line: usize,
    column: usize,
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
            present: HashMap::new(),
            matched: None,
            at: Place { line: 1, column: 1 },
        }
    }
}

impl Parser {
    fn line(&mut self, t: &mut Tokens) -> Result<(), Fault> {
        let (word, column) = t.take("a definition")?;
        let next = |from: Stage, to: Stage| (self.stage == from).then_some(to);
        let moved = match word.as_str() {
            HEADER => next(Stage::Header, Stage::Head),
            OLD_HEADER if self.stage == Stage::Header => return Err((column, old_form())),
            _ if self.stage == Stage::Header => {
                return Err((column, format!("the first line must be {HEADER:?}, found {word:?}")));
            }
            "row" if self.stage == Stage::Head && !(self.named && self.classed) => {
                return Err((column, "name and class come before the row section".into()));
            }
            "row" => next(Stage::Head, Stage::Row),
            "combine" => next(Stage::Row, Stage::Combine),
            "release" => next(Stage::Combine, Stage::Release),
            _ => {
                return match self.stage {
                    Stage::Header => unreachable!("handled above"),
                    Stage::Head => self.head(&word, column, t),
                    Stage::Row | Stage::Combine | Stage::Release => self.definition(word, column, t),
                };
            }
        };
        self.stage = moved.ok_or_else(|| (column, format!("{word:?} is out of order")))?;
        if self.stage == Stage::Release {
            self.nodes.clear();
        }
        t.end()
    }

    fn head(&mut self, word: &str, column: usize, t: &mut Tokens) -> Result<(), Fault> {
        let again = match word {
            "name" => std::mem::replace(&mut self.named, true),
            "class" => std::mem::replace(&mut self.classed, true),
            "rows" => self.rows.is_some(),
            _ => false,
        };
        if again {
            let is = if word == "rows" { "are" } else { "is" };
            return Err((column, format!("the {word} {is} given twice")));
        }
        match word {
            "name" => self.program.name = t.string("the program's name")?,
            "class" => {
                let class = |c: &str| match c {
                    "dp" => Some(Class::Dp),
                    "exact" => Some(Class::Exact),
                    _ => None,
                };
                self.program.class = t.parsed("dp or exact", class)?;
            }
            "rows" => {
                let rows = |r: &str| match r {
                    "matched" => Some(Rows::Matched),
                    "any" => Some(Rows::Any),
                    "aligned" => Some(Rows::Aligned),
                    _ => None,
                };
                let rows = t.parsed("matched, any or aligned", rows)?;
                self.rows = Some(rows);
                self.program.rows = if rows == Rows::Aligned { RowSet::Aligned } else { RowSet::Any };
            }
            "party" => self.head_party(column, t)?,
            "degree" | "alone" => self.reach(word, column, t)?,
            "column" => self.column(column, t)?,
            _ => {
                return Err((
                    column,
                    format!("expected name, class, rows, party, degree, column or row, found {word:?}"),
                ));
            }
        }
        t.end()
    }

    fn head_party(&mut self, at: usize, t: &mut Tokens) -> Result<(), Fault> {
        let name = t.parsed("a party's name", |n| is_name(n).then(|| n.to_owned()))?;
        if self.program.parties.contains(&name) || name == "public" || name == "shared" {
            return Err((at, format!("the party {name:?} is named twice or reserved")));
        }
        self.program.parties.push(name);
        self.program.degrees.push(1);
        self.program.alone.push(1);
        Ok(())
    }

    /// How many rows one of a party's reaches, joined or alone.
    fn reach(&mut self, word: &str, at: usize, t: &mut Tokens) -> Result<(), Fault> {
        let party = self.party(t)?;
        let plain = |n: &str| !n.starts_with('0') && n.bytes().all(|b| b.is_ascii_digit());
        let read = |n: &str| n.parse().ok().filter(|d| plain(n) && (2..=DEGREE).contains(d));
        let number = t.parsed("a number of rows, 2 to 65536", read)?;
        let (all, what) = match word {
            "degree" => (&mut self.program.degrees, "degree"),
            _ => (&mut self.program.alone, "number of rows alone"),
        };
        if std::mem::replace(&mut all[party.index()], number) != 1 {
            return Err((at, format!("this party's {what} is given twice")));
        }
        Ok(())
    }

    fn column(&mut self, at: usize, t: &mut Tokens) -> Result<(), Fault> {
        let name = t.parsed("a column's name", |n| is_name(n).then(|| n.to_owned()))?;
        let ty = t.parsed("a type such as bit, u32 or i64", ValueType::parse)?;
        let holder = self.holder(t)?;
        let source = Self::source(holder, ty, t)?;
        if self.program.columns.len() == COLUMNS {
            return Err((at, format!("a program has at most {COLUMNS} columns")));
        }
        if self.program.columns.iter().any(|c| c.name == name) {
            return Err((at, format!("the column {name:?} is named twice")));
        }
        self.program.columns.push(RowColumn { name, ty, holder, source });
        Ok(())
    }

    fn holder(&self, t: &mut Tokens) -> Result<Holder, Fault> {
        let holder = match t.peek() {
            Some("public") => Holder::Public,
            Some("shared") => Holder::Shared,
            _ => return self.party(t).map(Holder::Party),
        };
        t.take("a holder")?;
        Ok(holder)
    }

    /// What a column line ends in: `absent N`, or of a shared bit `present`, or nothing.
    fn source(holder: Holder, ty: ValueType, t: &mut Tokens) -> Result<ColumnSource, Fault> {
        match (t.peek(), holder) {
            (Some("absent"), Holder::Party(_)) => {
                t.take("absent")?;
                let fits = |n: &str| number(n).filter(|n| n & !ty.mask() == 0);
                Ok(ColumnSource::Data { absent: t.parsed(&format!("a number that fits {ty}"), fits)? })
            }
            (Some("present"), Holder::Shared) if ty == ValueType::BIT => {
                t.take("present")?;
                Ok(ColumnSource::Present)
            }
            _ => Ok(ColumnSource::DATA),
        }
    }

    /// The node of whether a party has the row.
    fn present(&mut self, party: PartyId) -> NodeId {
        let column = RowColumn::present(party, &self.program.parties[party.index()]);
        let columns = &mut self.program.columns;
        let index = columns.iter().position(|c| c.name == column.name).unwrap_or_else(|| {
            columns.push(column);
            columns.len() - 1
        }) as u32;
        if let Some(known) = self.present.get(&index) {
            return *known;
        }
        let node = self.push_row(Op::Column(index), ValueType::BIT);
        self.present.insert(index, node);
        node
    }

    /// The node of whether all parties have the row.
    fn matched(&mut self, at: usize) -> Result<NodeId, Fault> {
        if let Some(known) = self.matched {
            return Ok(known);
        }
        let bits: Vec<NodeId> =
            (0..self.program.parties.len() as u8).map(|party| self.present(PartyId(party))).collect();
        let all = bits.into_iter().reduce(|a, b| self.push_row(Op::And(a, b), ValueType::BIT));
        self.matched = all;
        all.ok_or_else(|| (at, "a program has a party".into()))
    }

    fn push_row(&mut self, op: Op, ty: ValueType) -> NodeId {
        self.program.row.nodes.push(OpNode { op, ty });
        self.program.names.row.push(None);
        NodeId(self.program.row.nodes.len() as u32 - 1)
    }

    /// What decides whether a row counts, in a program over the rows that all parties have: 0 in all others.
    fn masked(&mut self, value: NodeId, at: usize) -> Result<NodeId, Fault> {
        if self.rows.unwrap_or(Rows::Matched) != Rows::Matched {
            return Ok(value);
        }
        let (matched, ty) = (self.matched(at)?, self.program.row.ty(value));
        if ty == ValueType::BIT {
            return Ok(self.push_row(Op::And(matched, value), ty));
        }
        let zero = self.push_row(Op::Const(0), ty);
        Ok(self.push_row(Op::Select(matched, value, zero), ty))
    }

    fn party(&self, t: &mut Tokens) -> Result<PartyId, Fault> {
        let find = |n: &str| self.program.parties.iter().position(|p| p == n).map(|i| PartyId(i as u8));
        t.parsed("a party's name", find)
    }

    fn viewer(&self, t: &mut Tokens) -> Result<Viewer, Fault> {
        if t.peek().is_some_and(|word| word == Viewer::PUBLIC) {
            return t.parsed("a viewer", |_| Some(Viewer::Public));
        }
        self.party(t).map(Viewer::Party)
    }

    fn definition(&mut self, name: String, column: usize, t: &mut Tokens) -> Result<(), Fault> {
        if self.stage == Stage::Release && name == "reveal" {
            let value = self.node(t)?;
            let to = self.viewer(t)?;
            let label = t.string("a label")?;
            self.program.outputs.push(OutputValue { label, to, value });
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
        let spot = Spot { name: name.clone(), line: self.at.line, column: self.at.column };
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
            (Stage::Row, "present" | "matched") => {
                let node = match op.as_str() {
                    "present" => self.party(t).map(|party| self.present(party)),
                    _ => self.matched(at),
                }?;
                self.program.names.row[node.index()] = Some(spot);
                self.nodes.insert(name.clone(), node.0)
            }
            _ => {
                let node = self.operation(&op, at, t)?;
                let (section, row) = (self.section(), self.stage == Stage::Row);
                let typed = self.program.check_node(&node, section, section.nodes.len(), row);
                typed.map_err(|text| (at, text))?;
                let id = match self.stage {
                    Stage::Row => {
                        let id = self.push_row(node.op, node.ty);
                        self.program.names.row[id.index()] = Some(spot);
                        id
                    }
                    _ => {
                        self.program.release.nodes.push(node);
                        self.program.names.release.push(spot);
                        NodeId(self.program.release.nodes.len() as u32 - 1)
                    }
                };
                self.nodes.insert(name.clone(), id.0)
            }
        };
        if taken.is_some() {
            return Err((column, format!("{name:?} is defined twice")));
        }
        t.end()
    }

    fn combine(&mut self, op: &str, at: usize, t: &mut Tokens) -> Result<RowFold, Fault> {
        let order = match op {
            "sum" => {
                let value = self.node(t)?;
                let ty = t.parsed("a type such as u64", ValueType::parse)?;
                return Ok(RowFold::Sum { value: self.masked(value, at)?, ty });
            }
            "collect" => {
                let value = self.node(t)?;
                return Ok(RowFold::Collect { value: self.masked(value, at)? });
            }
            "least" => RowOrder::Least,
            "greatest" => RowOrder::Greatest,
            _ => return Err((at, format!("expected sum, least, greatest or collect, found {op:?}"))),
        };
        let key = self.node(t)?;
        t.parsed("where", |n| (n == "where").then_some(()))?;
        let valid = self.node(t)?;
        Ok(RowFold::Best { order, key, valid: self.masked(valid, at)?, ty: self.program.row.ty(key) })
    }

    fn fold(&self, t: &mut Tokens) -> Result<u32, Fault> {
        t.parsed("a fold", |n| self.folds.get(n).copied())
    }

    fn section(&self) -> &NodeSection {
        if self.stage == Stage::Row { &self.program.row } else { &self.program.release }
    }

    fn node(&self, t: &mut Tokens) -> Result<NodeId, Fault> {
        t.parsed("a value defined above", |n| self.nodes.get(n).map(|i| NodeId(*i)))
    }

    fn nodes_until(&self, stop: &str, t: &mut Tokens) -> Result<Vec<NodeId>, Fault> {
        let mut out = Vec::new();
        while t.peek().is_some_and(|n| n != stop) {
            out.push(self.node(t)?);
        }
        Ok(out)
    }

    fn operation(&self, op: &str, at: usize, t: &mut Tokens) -> Result<OpNode, Fault> {
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
            "column" => {
                let index = |n: &str| self.program.columns.iter().position(|c| c.name == n);
                let index = t.parsed("a column named above", index)?;
                OpNode { op: Op::Column(index as u32), ty: self.program.columns[index].ty }
            }
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
            "const" => {
                let value = t.parsed("a number", number)?;
                OpNode { op: Op::Const(value), ty: ty(t)? }
            }
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

    fn lookup(&self, at: usize, t: &mut Tokens) -> Result<OpNode, Fault> {
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
