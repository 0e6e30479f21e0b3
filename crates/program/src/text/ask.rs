//! Questions: what an analyst wants to know, a line each, written out as folds, mechanisms and derived
//! outputs when the text is read.
//!
//! `ask VIEWER rho R` begins what one viewer is told for so much of its budget. `by` names groups for the
//! lines behind it. All groups of a line are disjoint cells of the same mechanisms: one charge. Lines share
//! the rho by their weights, so that the sum of widths, each relative to what one row changes, is least.

use super::moments::AskedVariable;
use super::{Parser, Stage, TextFault, Tokens};
use crate::cells::{date, decimal};
use crate::names::TextPlace;
use crate::{CellKind, Class, NodeId, Op, ValueType, Viewer};
use base::limits;
use num_bigint::BigInt;
use release::rational::{self, Rational, ratio};

/// Most cells of the groups of a line.
const CELLS: usize = 1024;
/// Most numbers that all questions of a program are answered by, but for those of the last line.
const ANSWERS: usize = 1 << 14;
/// Words that end a list of numbers.
const AFTER_NUMBERS: [&str; 5] = ["and", "within", "weight", "of", "on"];

/// What one viewer is told.
pub(super) struct Ask {
    pub to: Viewer,
    rho: Rational,
    /// Where it begins.
    place: TextPlace,
    /// The groups of the lines that follow.
    pub groups: Vec<Grouping>,
    pub lines: Vec<AskedLine>,
}

/// One question, as far as it needs a share of the budget.
pub(super) struct AskedLine {
    /// Its mechanisms, which share alike.
    pub mechanisms: std::ops::Range<u32>,
    pub weight: u64,
    /// Half of the 95 % interval that its noise may have, in what its sums count; none where it shares.
    pub within: Option<i128>,
}

impl AskedLine {
    /// `(weight k)^(2/3)`, in millionths.
    fn share(&self) -> BigInt {
        let parts = BigInt::from(self.weight) * BigInt::from(self.mechanisms.len());
        (&parts * &parts * BigInt::from(10u64.pow(18))).cbrt()
    }
}

/// The groups that one value makes.
#[derive(Clone)]
pub(super) struct Grouping {
    /// What the value is called, and of each group what is said of it and the bit that a row is in it.
    pub cells: Vec<(String, NodeId)>,
}

/// A cell of all groupings of a line.
#[derive(Clone)]
pub(super) struct AskedCell {
    /// What is said of it, by grouping.
    pub labels: Vec<String>,
    /// The bits that a row is in it.
    pub inside: Vec<NodeId>,
}

impl AskedCell {
    /// Behind what a number is: `mean of spent, dose = low`.
    pub fn label(&self, what: &str) -> String {
        self.labels.iter().fold(what.to_owned(), |text, label| format!("{text}, {label}"))
    }
}

/// How a line ends.
#[derive(Clone)]
pub(super) struct Wanted {
    pub weight: u64,
    /// A number as it stands, and where.
    within: Option<(String, usize)>,
}

impl Parser {
    /// `ask VIEWER rho R`.
    pub(super) fn ask(&mut self, at: usize, t: &mut Tokens) -> Result<(), TextFault> {
        if self.program.class == Class::Exact {
            return Err((
                at,
                "questions are answered with noise: a program of class exact has sums to reveal".into(),
            ));
        }
        let to = self.viewer(t)?;
        t.parsed("rho", |word| (word == "rho").then_some(()))?;
        let rho = t.parsed("a share of rho such as 1/10 or 0.1", rational::parse)?;
        if rho <= ratio(0, 1) {
            return Err((at, "a question takes some rho".into()));
        }
        self.asks.push(Ask { to, rho, place: self.at.clone(), groups: Vec::new(), lines: Vec::new() });
        self.stage = Stage::Ask;
        t.end()
    }

    /// A line behind `ask`.
    pub(super) fn question(&mut self, word: &str, at: usize, t: &mut Tokens) -> Result<(), TextFault> {
        let program = &self.program;
        let answers = program.outputs.len() + program.derived.len();
        if program.row.nodes.len() > limits::NODES || answers > ANSWERS {
            let nodes = limits::NODES;
            let text = format!("the questions above have more than {ANSWERS} answers or {nodes} row values");
            return Err((at, text));
        }
        match word {
            "ask" => self.ask(at, t),
            "by" => {
                let groups = self.groups(t)?;
                self.current().groups = groups;
                t.end()
            }
            "count" => self.count(None, at, t),
            "histogram" => {
                // As the other lines have it.
                if t.peek() == Some("of") {
                    t.take("of")?;
                }
                let value = self.grouping(t)?;
                self.count(Some(value), at, t)
            }
            "sum" => self.total(at, t),
            "median" => self.quantiles(vec![ratio(1, 2)], at, t),
            "quantile" => {
                let share = |n: &str| rational::parse(n).filter(|p| *p > ratio(0, 1) && *p < ratio(1, 1));
                let mut shares = vec![t.parsed("a share between 0 and 1 such as 1/4", share)?];
                while t.peek().is_some_and(|word| word != "of") {
                    shares.push(t.parsed("a share between 0 and 1, or `of`", share)?);
                }
                self.quantiles(shares, at, t)
            }
            "covariance" | "correlation" => self.association(word, at, t),
            "regression" => self.regression(at, t),
            _ => self.cell_statistics(word, at, t),
        }
    }

    pub(super) fn current(&mut self) -> &mut Ask {
        self.asks.last_mut().expect("a question stands behind an ask")
    }

    /// A row value by its name, or a column.
    pub(super) fn value(&mut self, t: &mut Tokens) -> Result<(String, NodeId), TextFault> {
        let at = t.place();
        let (name, _) = t.take("a value of the row section, or a column")?;
        if let Some(node) = self.nodes.get(&name) {
            return Ok((name, NodeId(*node)));
        }
        let Some(column) = self.program.columns.iter().position(|c| c.name == name && !c.is_built_in())
        else {
            let columns = self.program.columns.iter().filter(|column| !column.is_built_in());
            let columns: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
            let there = format!("found {name:?}; columns are: {}", columns.join(", "));
            return Err((at, format!("expected a value of the row section, or a column, {there}")));
        };
        let node = self.read_column(column as u32);
        self.nodes.insert(name.clone(), node.0);
        Ok((name, node))
    }

    /// `arm`, `age edges 0 18 65`, `rooms values 1 2 3`, several by `and`.
    fn groups(&mut self, t: &mut Tokens) -> Result<Vec<Grouping>, TextFault> {
        if t.peek() == Some("all") {
            t.take("all")?;
            return Ok(Vec::new());
        }
        let mut groups = vec![self.grouping(t)?];
        while t.peek() == Some("and") {
            t.take("and")?;
            groups.push(self.grouping(t)?);
        }
        Ok(groups)
    }

    fn grouping(&mut self, t: &mut Tokens) -> Result<Grouping, TextFault> {
        let at = t.place();
        let (name, value) = self.value(t)?;
        if matches!(t.peek(), Some("edges" | "values")) && self.has_labels(value) {
            return Err((
                t.place(),
                format!("{name} has labels, which are no numbers: write `{name}` alone"),
            ));
        }
        let cells = match t.peek() {
            Some("edges") => {
                let edges = self.edges(value, t)?;
                self.buckets(&name, value, (&edges, false))
            }
            Some("values") => {
                t.take("values")?;
                let numbers = self.numbers(value, t)?;
                let equal = |p: &mut Self, (text, number): &(String, i128)| {
                    (format!("{name} = {text}"), p.equal(value, *number))
                };
                numbers.iter().map(|number| equal(self, number)).collect()
            }
            _ => self.natural_cells(&name, value, at)?,
        };
        let Some(known) = self.known.get(&value).copied() else { return Ok(Grouping { cells }) };
        let known_cell = |(label, bit)| (label, self.push_row(Op::And(known, bit), ValueType::BIT));
        Ok(Grouping { cells: cells.into_iter().map(known_cell).collect() })
    }

    /// The groups of a labelled column or a bit.
    fn natural_cells(
        &mut self,
        name: &str,
        value: NodeId,
        at: usize,
    ) -> Result<Vec<(String, NodeId)>, TextFault> {
        let labels = match self.program.row.node(value).op {
            Op::Column(column) => self.program.columns[column as usize].cells.labels().to_vec(),
            _ => Vec::new(),
        };
        if !labels.is_empty() {
            let cell = |(i, label): (i128, &String)| (format!("{name} = {label}"), self.equal(value, i));
            return Ok((1..).zip(&labels).map(cell).collect());
        }
        if self.program.row.ty(value) == ValueType::BIT {
            let no = self.push_row(Op::Not(value), ValueType::BIT);
            return Ok(vec![(format!("not {name}"), no), (name.to_owned(), value)]);
        }
        let text = format!(
            "{name} has no labels: write `{name} edges 0 10 20` for ranges of it, or `{name} values 1 2 3`"
        );
        Err((at, text))
    }

    fn has_labels(&self, value: NodeId) -> bool {
        match self.program.row.node(value).op {
            Op::Column(column) => !self.program.columns[column as usize].cells.labels().is_empty(),
            _ => false,
        }
    }

    fn equal(&mut self, value: NodeId, number: i128) -> NodeId {
        let constant = self.constant(number, self.program.row.ty(value));
        self.push_row(Op::Eq(value, constant), ValueType::BIT)
    }

    /// `edges 0 10 20`: ascending, with what the text says of each.
    pub(super) fn edges(&mut self, value: NodeId, t: &mut Tokens) -> Result<Vec<(String, i128)>, TextFault> {
        t.parsed("edges of bins, as in `edges 0 10 20`", |word| (word == "edges").then_some(()))?;
        let at = t.place();
        let edges = self.numbers(value, t)?;
        if edges.len() < 2 || !edges.is_sorted_by(|a, b| a.1 < b.1) {
            return Err((at, "edges are two numbers or more, and ascend".into()));
        }
        Ok(edges)
    }

    /// Ranges between edges: each from its lower edge on, below its upper one; the last one with it. Where
    /// they are `open`, what is beyond the edges is in the range at that end.
    pub(super) fn buckets(
        &mut self,
        name: &str,
        value: NodeId,
        (edges, open): (&[(String, i128)], bool),
    ) -> Vec<(String, NodeId)> {
        let ty = self.program.row.ty(value);
        let last = edges.len() - 2;
        let mut below = None;
        let mut cells = Vec::new();
        for (i, ends) in edges.windows(2).enumerate() {
            let [(low_text, low), (high_text, high)] = ends else { unreachable!("windows of two") };
            let from = (i > 0 || !open).then(|| {
                let under = below.take().unwrap_or_else(|| {
                    let low = self.constant(*low, ty);
                    self.push_row(Op::Lt(value, low), ValueType::BIT)
                });
                self.push_row(Op::Not(under), ValueType::BIT)
            });
            let high = self.constant(*high, ty);
            let until = if i < last {
                Some(*below.insert(self.push_row(Op::Lt(value, high), ValueType::BIT)))
            } else {
                (!open).then(|| {
                    let above = self.push_row(Op::Lt(high, value), ValueType::BIT);
                    self.push_row(Op::Not(above), ValueType::BIT)
                })
            };
            let inside = match (from, until) {
                (Some(from), Some(until)) => self.push_row(Op::And(from, until), ValueType::BIT),
                (Some(bit), None) | (None, Some(bit)) => bit,
                (None, None) => self.push_row(Op::Const(1), ValueType::BIT),
            };
            cells.push((format!("{name} {low_text} to {high_text}"), inside));
        }
        cells
    }

    /// Numbers up to the end of the line or a word that ends them, in what a value counts.
    fn numbers(&mut self, value: NodeId, t: &mut Tokens) -> Result<Vec<(String, i128)>, TextFault> {
        let mut numbers = Vec::new();
        while t.peek().is_some_and(|word| !AFTER_NUMBERS.contains(&word)) {
            numbers.push(self.number_of(value, t)?);
        }
        Ok(numbers)
    }

    /// A number as a value counts it: by its scale, or a day.
    pub(super) fn number_of(&mut self, value: NodeId, t: &mut Tokens) -> Result<(String, i128), TextFault> {
        let (text, at) = t.take("a number")?;
        let number = self.counted_as(value, &text).map_err(|text| (at, text))?;
        Ok((text, number))
    }

    /// What a value holds for a number or a day that a text writes.
    pub(super) fn counted_as(&mut self, value: NodeId, text: &str) -> Result<i128, String> {
        let number = match self.is_date(value) {
            true => date(text),
            false => {
                let scale = self.scale(value);
                decimal(text, scale.into()).map_err(|error| error.of_column(text, scale))
            }
        }?;
        let ty = self.program.row.ty(value);
        match ty.pattern(number) {
            Some(_) => Ok(number),
            None => Err(format!("{text} does not fit {ty}, the type of the value")),
        }
    }

    fn is_date(&self, value: NodeId) -> bool {
        match self.program.row.node(value).op {
            Op::Column(c) => self.program.columns[c as usize].cells.kind == CellKind::Date,
            _ => false,
        }
    }

    /// `X`, or `X between LOW HIGH`.
    pub(super) fn variable(&mut self, t: &mut Tokens) -> Result<AskedVariable, TextFault> {
        let at = t.place();
        let (name, value) = self.value(t)?;
        if self.has_labels(value) {
            let text = format!("{name} has labels, which are no numbers: group `by {name}`");
            return Err((at, format!("{text}, or make a bit of it in a `row` section")));
        }
        let bounded = t.peek() != Some("between");
        let range = if bounded {
            self.program.extend_facts(&mut self.facts);
            let range = self.facts[value.index()].clamped_range().ok_or_else(|| {
                let text = format!("{name} has no bound, and noise has to hide its largest row");
                (at, format!("{text}: write `{name} between LOW HIGH`, for instance 0 100"))
            })?;
            [range.low, range.high]
        } else {
            t.take("between")?;
            let ends = [self.number_of(value, t)?.1, self.number_of(value, t)?.1];
            if ends[0] >= ends[1] {
                return Err((
                    at,
                    "the lower end of `between` comes first, and is below the upper one".into(),
                ));
            }
            ends
        };
        AskedVariable::new(self, (name, value), range, bounded).map_err(|text| (at, text))
    }

    /// Cells of the groups of a line, with one more grouping.
    pub(super) fn asked_cells(
        &mut self,
        more: Option<Grouping>,
        at: usize,
    ) -> Result<Vec<AskedCell>, TextFault> {
        let mut cells = vec![AskedCell { labels: Vec::new(), inside: Vec::new() }];
        let groups: Vec<Grouping> = self.current().groups.iter().cloned().chain(more).collect();
        for grouping in groups {
            cells = cells
                .iter()
                .flat_map(|cell| {
                    grouping.cells.iter().map(|(label, bit)| AskedCell {
                        labels: [&cell.labels[..], std::slice::from_ref(label)].concat(),
                        inside: [&cell.inside[..], &[*bit]].concat(),
                    })
                })
                .collect();
            if cells.len() > CELLS {
                return Err((at, format!("these groups have more than {CELLS} cells")));
            }
        }
        Ok(cells)
    }

    /// `within A`, `weight W`, in any order, to the end of the line.
    pub(super) fn wanted(&self, accuracy: bool, t: &mut Tokens) -> Result<Wanted, TextFault> {
        let mut wanted = Wanted { weight: 1, within: None };
        while let Some(word) = t.peek() {
            match word {
                "within" if accuracy => {
                    t.take("within")?;
                    wanted.within = Some(t.take("half of an interval, a number")?);
                }
                "weight" => {
                    t.take("weight")?;
                    let weight = |n: &str| n.parse().ok().filter(|w| (1..=1000).contains(w));
                    wanted.weight = t.parsed("a weight, 1 to 1000", weight)?;
                }
                "within" => {
                    let text = "`within` is said of counts and sums; give this line a `weight`";
                    return Err((t.place(), text.into()));
                }
                _ => t.end()?,
            }
        }
        Ok(wanted)
    }

    /// A line's mechanisms are those from a number on.
    pub(super) fn asked(&mut self, first: usize, wanted: &Wanted, scale: u32) -> Result<(), TextFault> {
        let within = wanted.within.as_ref().map(|(text, at)| {
            decimal(text, scale.into()).ok().filter(|n| *n > 0).ok_or_else(|| {
                (*at, format!("expected half of an interval, a number above 0, found {text:?}"))
            })
        });
        let mechanisms = first as u32..self.program.mechanisms.len() as u32;
        let line = AskedLine { mechanisms, weight: wanted.weight, within: within.transpose()? };
        self.current().lines.push(line);
        Ok(())
    }

    /// Shares the rho of every `ask` among its lines.
    ///
    /// # Errors
    /// Where an `ask` has too little.
    pub(super) fn settle_asks(&mut self) -> Result<(), (TextPlace, String)> {
        std::mem::take(&mut self.asks).into_iter().try_for_each(|ask| self.settle(ask))
    }

    /// Shares rho among lines: those that name an accuracy take what that needs, the
    /// others share the rest by `(weight k)^(2/3)` for a line of k mechanisms, which gives the least sum of
    /// `weight k / sqrt(share)`.
    fn settle(&mut self, Ask { rho, lines, place, .. }: Ask) -> Result<(), (TextPlace, String)> {
        if lines.is_empty() {
            return Err((place, "this ask has no questions: write them on the lines behind it".into()));
        }
        let mut rest = rho.clone();
        for line in &lines {
            let Some(within) = line.within else { continue };
            for mechanism in line.mechanisms.clone() {
                let needed = self.rho_within(mechanism, within);
                rest -= &needed;
                self.program.mechanisms[mechanism as usize].rho = needed;
            }
        }
        let sharing = || lines.iter().filter(|line| line.within.is_none());
        if rest < ratio(0, 1) || (rest == ratio(0, 1) && sharing().next().is_some()) {
            let needed = rational::to_f64(&(&rho - &rest));
            let text = format!("the accuracies of these lines need a rho of {needed:.6}, and all have {rho}");
            return Err((place, text));
        }
        let all: BigInt = sharing().map(AskedLine::share).sum();
        for line in sharing() {
            let count = BigInt::from(line.mechanisms.len());
            let each = &rest * Rational::new(line.share(), &all * count);
            for mechanism in line.mechanisms.clone() {
                self.program.mechanisms[mechanism as usize].rho.clone_from(&each);
            }
        }
        Ok(())
    }

    /// The rho with which half of a 95 % interval of a mechanism's noise is no more than this.
    fn rho_within(&mut self, mechanism: u32, within: i128) -> Rational {
        /// 1.96^2, and a hundredth for the lattice that noise is drawn on.
        const SQUARE: (u64, u64) = (388_003, 100_000);
        self.program.mechanisms[mechanism as usize].rho = ratio(1, 1);
        self.program.extend_facts(&mut self.facts);
        let charge = crate::verify::charge(&self.program, &self.facts, mechanism);
        // What cannot be charged is refused, with words, when the program is verified.
        let variance = charge.ok().and_then(|charge| charge.sigma2(0)).unwrap_or_else(|| ratio(1, 1));
        let within = BigInt::from(within);
        let square = Rational::from_integer(&within * &within);
        variance * ratio(SQUARE.0, SQUARE.1) / square
    }
}
