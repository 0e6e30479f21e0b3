//! What a question becomes: sums over cells, their noise, and what is derived from them.

use super::ask::{AskedCell, Grouping};
use super::{Parser, TextFault, Tokens};
use crate::derived::COVARIATES;
use crate::graph::{MechanismKind, NoiseMechanism, OpNode, RowFold};
use crate::names::Spot;
use crate::{
    DerivedOutput, DerivedStatistic, NodeId, Op, OutputValue, SumPlace, ValueType, Variable, Viewer,
};
use base::limits;
use release::joint::{CLAMP, Change};
use release::rational::{Rational, ratio};

/// A value that is asked about.
#[derive(Clone)]
pub(super) struct AskedVariable {
    name: String,
    unit: String,
    value: NodeId,
    /// In what the value counts.
    range: [i128; 2],
    scale: u32,
    bit: bool,
    /// Whether the value is in the range by itself.
    bounded: bool,
}

/// A number of each row, in a signed type or a bit.
#[derive(Clone, Copy)]
struct Term {
    node: NodeId,
    bit: bool,
}

/// The bits of a number from 0 up.
fn bits(number: u128) -> u8 {
    (128 - number.leading_zeros()).max(1) as u8
}

/// The narrowest signed type that holds two numbers.
fn signed(low: i128, high: i128) -> ValueType {
    let most = high.max(0).unsigned_abs().max((low.min(0) + 1).min(0).unsigned_abs());
    ValueType::i((bits(most) + 1).max(2))
}

impl AskedVariable {
    /// A value in a range that it has by itself, or none and is cut to.
    pub fn new(
        parser: &mut Parser,
        (name, value): (String, NodeId),
        range: [i128; 2],
        bounded: bool,
    ) -> Result<Self, String> {
        let (scale, unit) = (parser.scale(value), parser.unit(value));
        if range.iter().any(|end| i64::try_from(*end).is_err()) || range[0].abs_diff(range[1]) > CLAMP {
            let text = format!("{name} is between {} and {}, further apart than {CLAMP}", range[0], range[1]);
            return Err(format!("{text}: bound it by `between`, or give its column a coarser scale"));
        }
        let bit = parser.program.row.ty(value) == ValueType::BIT;
        Ok(Self { name, unit, value, range, scale, bit, bounded })
    }

    fn variable(&self, origin: i128) -> Variable {
        let [low, high] = self.range.map(|end| end as i64);
        Variable { origin: origin as i64, low, high, scale: self.scale.into() }
    }

    /// What its sum is called.
    fn sum(&self) -> String {
        format!("sum of {}{}", self.name, if self.bit { "" } else { ", centred" })
    }

    /// What the sum of its product with another is called.
    fn sum_with(&self, other: &Self) -> String {
        let centred = if self.bit && other.bit { "" } else { ", centred" };
        format!("sum of {} times {}{centred}", self.name, other.name)
    }

    /// The middle of the range, from which squares and products are taken; of a bit 0.
    fn middle(&self) -> i128 {
        if self.bit { 0 } else { self.range[0] + (self.range[1] - self.range[0]) / 2 }
    }
}

impl Parser {
    /// By cell: the bit that a row counts, of values that must be known.
    fn counted(
        &mut self,
        cells: &[AskedCell],
        of: &[AskedVariable],
        at: usize,
    ) -> Result<Vec<NodeId>, TextFault> {
        let values: Vec<NodeId> = of.iter().map(|variable| variable.value).collect();
        let counts = self.counts(&values, at)?;
        let each = cells.iter().map(|cell| {
            let all = counts.iter().chain(&cell.inside).copied();
            let bit = all.reduce(|a, b| self.push_row(Op::And(a, b), ValueType::BIT));
            bit.unwrap_or_else(|| self.push_row(Op::Const(1), ValueType::BIT))
        });
        Ok(each.collect())
    }

    /// A value in its range, as a signed number from an origin.
    fn offset(&mut self, variable: &AskedVariable, origin: i128) -> Term {
        let node = variable.value;
        if variable.bit {
            return Term { node, bit: true };
        }
        let [low, high] = variable.range;
        let inside = if variable.bounded { node } else { self.between(node, low, high) };
        let wide = signed(low.min(low - origin).min(origin), high.max(high - origin).max(origin));
        let wide_value = self.push_row(Op::Cast(inside), wide);
        let moved = match origin {
            0 => wide_value,
            _ => {
                let origin = self.constant(origin, wide);
                self.push_row(Op::Sub(wide_value, origin), wide)
            }
        };
        let ty = signed(low - origin, high - origin);
        Term { node: self.push_row(Op::Cast(moved), ty), bit: false }
    }

    /// The product of two numbers of a row.
    fn product(&mut self, a: Term, b: Term) -> Term {
        match (a.bit, b.bit) {
            (true, true) if a.node == b.node => a,
            (true, true) => Term { node: self.push_row(Op::And(a.node, b.node), ValueType::BIT), bit: true },
            (true, false) => Term { node: self.select(a.node, b.node), bit: false },
            (false, true) => self.product(b, a),
            (false, false) => {
                let [x, y] = [a, b].map(|term| self.program.row.ty(term.node).width);
                let ty = ValueType::i((x + y).min(128));
                let [x, y] = [a, b].map(|term| self.push_row(Op::Cast(term.node), ty));
                Term { node: self.push_row(Op::Mul(x, y), ty), bit: false }
            }
        }
    }

    /// The sum of a value over rows in a cell, or their number; wide enough for as many as there may be.
    fn cell_sum(&mut self, cell: NodeId, value: Option<NodeId>, label: &str) -> u32 {
        let term = value.map_or(cell, |value| self.select(cell, value));
        let ty = self.program.row.ty(term);
        let width = u32::from(ty.width) + bits(limits::ROWS.into()) as u32;
        let ty = ValueType { width: width.min(limits::WIDTH) as u8, ..ty };
        self.program.folds.push(RowFold::Sum { value: term, ty });
        let spot = self.spot(label);
        self.program.names.folds.push(spot);
        self.program.folds.len() as u32 - 1
    }

    fn spot(&self, label: &str) -> Spot {
        Spot { name: format!("{label:?}"), place: self.at.clone() }
    }

    /// A mechanism whose outputs its viewer sees, under these labels.
    fn noise(&mut self, kind: MechanismKind, labels: &[String]) -> u32 {
        let (to, mechanism) = (self.current().to, self.program.mechanisms.len() as u32);
        self.program.mechanisms.push(NoiseMechanism { to, rho: ratio(1, 1), kind });
        let spot = self.spot(labels.first().map_or("", String::as_str));
        self.program.names.mechanisms.push(spot);
        for (output, label) in (0..).zip(labels) {
            let ty = self.program.noised_type(mechanism, output).unwrap_or(ValueType::BIT);
            self.program.release.nodes.push(OpNode { op: Op::Noised(mechanism, output), ty });
            let spot = self.spot(label);
            self.program.names.release.push(spot);
            let value = NodeId(self.program.release.nodes.len() as u32 - 1);
            let label = self.unique(to, label);
            self.program.outputs.push(OutputValue { label, to, value });
        }
        mechanism
    }

    /// A label that no other output of the viewer has.
    fn unique(&mut self, to: Viewer, label: &str) -> String {
        let before = self.labels.entry((to, label.to_owned())).or_insert(0);
        *before += 1;
        let number = *before;
        if number == 1 {
            return label.to_owned();
        }
        let numbered = format!("{label} ({number})");
        // A line may be called so by itself.
        self.unique(to, &numbered)
    }

    fn derive(
        &mut self,
        statistic: DerivedStatistic,
        sums: Vec<SumPlace>,
        of: &[Variable],
        (label, unit): (&str, &str),
    ) {
        let to = self.current().to;
        let (label, unit, variables) = (self.unique(to, label), unit.to_owned(), of.to_vec());
        self.program.derived.push(DerivedOutput { label, to, unit, statistic, sums, variables });
    }

    /// Gaussian noise on one sum of each cell; the mechanism.
    fn noised_sums(
        &mut self,
        cells: &[AskedCell],
        counted: &[NodeId],
        value: Option<NodeId>,
        what: &str,
    ) -> u32 {
        let labels: Vec<String> = cells.iter().map(|cell| format!("{}, noised", cell.label(what))).collect();
        let sums = counted.iter().zip(&labels);
        let folds = sums.map(|(cell, label)| self.cell_sum(*cell, value, label)).collect();
        self.noise(MechanismKind::Gaussian(folds), &labels)
    }

    /// `count`, `histogram X edges ..`: rows of each cell.
    pub(super) fn count(
        &mut self,
        more: Option<Grouping>,
        at: usize,
        t: &mut Tokens,
    ) -> Result<(), TextFault> {
        let wanted = self.wanted(true, t)?;
        let first = self.program.mechanisms.len();
        let cells = self.asked_cells(more, at)?;
        let counted = self.counted(&cells, &[], at)?;
        let mechanism = self.noised_sums(&cells, &counted, None, "rows");
        for (place, cell) in (0..).zip(&cells) {
            let sums = vec![SumPlace { mechanism, place }];
            self.derive(DerivedStatistic::Total, sums, &[Variable::COUNT], (&cell.label("rows"), ""));
        }
        self.asked(first, &wanted, 1)
    }

    /// `sum of X`.
    pub(super) fn total(&mut self, at: usize, t: &mut Tokens) -> Result<(), TextFault> {
        t.parsed("of", |word| (word == "of").then_some(()))?;
        let variable = self.variable(t)?;
        let wanted = self.wanted(true, t)?;
        let first = self.program.mechanisms.len();
        let cells = self.asked_cells(None, at)?;
        let counted = self.counted(&cells, std::slice::from_ref(&variable), at)?;
        let term = match self.program.row.ty(variable.value).signed {
            true => self.offset(&variable, 0).node,
            false if variable.bounded => variable.value,
            false => self.between(variable.value, variable.range[0], variable.range[1]),
        };
        let what = format!("sum of {}", variable.name);
        let mechanism = self.noised_sums(&cells, &counted, Some(term), &what);
        for (place, cell) in (0..).zip(&cells) {
            let sums = vec![SumPlace { mechanism, place }];
            self.derive(
                DerivedStatistic::Total,
                sums,
                &[variable.variable(0)],
                (&cell.label(&what), &variable.unit),
            );
        }
        self.asked(first, &wanted, variable.scale)
    }

    /// `median of X edges ..`, `quantile 1/4 3/4 of X edges ..`.
    pub(super) fn quantiles(
        &mut self,
        shares: Vec<Rational>,
        at: usize,
        t: &mut Tokens,
    ) -> Result<(), TextFault> {
        t.parsed("of", |word| (word == "of").then_some(()))?;
        let (name, value) = self.value(t)?;
        let edges = self.edges(value, t)?;
        let wanted = self.wanted(false, t)?;
        let first = self.program.mechanisms.len();
        let groups = self.asked_cells(None, at)?;
        let range = [edges[0].1, edges[edges.len() - 1].1];
        let variable =
            AskedVariable::new(self, (name.clone(), value), range, false).map_err(|text| (at, text))?;
        let bins = Grouping { cells: self.buckets(&name, value, (&edges, true)) };
        let each = bins.cells.len() as u32;
        let cells = self.asked_cells(Some(bins), at)?;
        let counted = self.counted(&cells, std::slice::from_ref(&variable), at)?;
        let mechanism = self.noised_sums(&cells, &counted, None, "rows");
        let edges: Vec<i64> = edges.iter().map(|(_, edge)| *edge as i64).collect();
        for share in shares {
            let what = match share == ratio(1, 2) {
                true => format!("median of {name}"),
                false => format!("quantile {share} of {name}"),
            };
            for (group, cell) in (0..).zip(&groups) {
                let sums = (group * each..(group + 1) * each).map(|place| SumPlace { mechanism, place });
                let statistic = DerivedStatistic::Quantile(share.clone(), edges.clone());
                let variables = [variable.variable(0)];
                self.derive(statistic, sums.collect(), &variables, (&cell.label(&what), &variable.unit));
            }
        }
        self.asked(first, &wanted, 1)
    }

    /// Sums of numbers of each row, a mechanism each; the same number, as the square of a bit is the bit, is
    /// noised once.
    fn noised_products(
        &mut self,
        (cells, counted): (&[AskedCell], &[NodeId]),
        products: &[(String, Option<Term>)],
    ) -> Vec<u32> {
        let mut noised: Vec<(Option<NodeId>, u32)> = Vec::with_capacity(products.len());
        for (what, term) in products {
            let node = term.map(|term| term.node);
            let before = noised.iter().find(|(of, _)| *of == node);
            let mechanism = match before {
                Some((_, mechanism)) => *mechanism,
                None => self.noised_sums(cells, counted, node, what),
            };
            noised.push((node, mechanism));
        }
        noised.into_iter().map(|(_, mechanism)| mechanism).collect()
    }

    /// `covariance of X with Y`, `correlation of X with Y`.
    pub(super) fn association(&mut self, word: &str, at: usize, t: &mut Tokens) -> Result<(), TextFault> {
        t.parsed("of", |word| (word == "of").then_some(()))?;
        let x = self.variable(t)?;
        t.parsed("with", |word| (word == "with").then_some(()))?;
        let both = [x, self.variable(t)?];
        let wanted = self.wanted(false, t)?;
        let first = self.program.mechanisms.len();
        let cells = self.asked_cells(None, at)?;
        let counted = self.counted(&cells, &both, at)?;
        let [x, y] = both.each_ref().map(|variable| self.offset(variable, variable.middle()));
        let [a, b] = &both;
        let products = [
            (format!("rows of {} and {}", a.name, b.name), None),
            (a.sum(), Some(x)),
            (b.sum(), Some(y)),
            (a.sum_with(a), Some(self.product(x, x))),
            (b.sum_with(b), Some(self.product(y, y))),
            (a.sum_with(b), Some(self.product(x, y))),
        ];
        let mechanisms = self.noised_products((&cells, &counted), &products);
        let variables = both.each_ref().map(|variable| variable.variable(variable.middle()));
        let (statistic, unit) = match word {
            "covariance" => (DerivedStatistic::Covariance, times(&both[0].unit, &both[1].unit)),
            _ => (DerivedStatistic::Correlation, String::new()),
        };
        let what = format!("{word} of {} with {}", a.name, b.name);
        for (place, cell) in (0..).zip(&cells) {
            let sums = mechanisms.iter().map(|m| SumPlace { mechanism: *m, place }).collect();
            self.derive(statistic.clone(), sums, &variables, (&cell.label(&what), &unit));
        }
        self.asked(first, &wanted, 1)
    }

    /// `regression of Y on X1 X2 ..`.
    pub(super) fn regression(&mut self, at: usize, t: &mut Tokens) -> Result<(), TextFault> {
        t.parsed("of", |word| (word == "of").then_some(()))?;
        let y = self.variable(t)?;
        t.parsed("on", |word| (word == "on").then_some(()))?;
        let mut variables = vec![self.variable(t)?];
        while t.peek().is_some_and(|word| !matches!(word, "weight" | "within")) {
            variables.push(self.variable(t)?);
        }
        if variables.len() > COVARIATES {
            return Err((at, format!("a regression is on {COVARIATES} values at most")));
        }
        variables.push(y);
        let wanted = self.wanted(false, t)?;
        let first = self.program.mechanisms.len();
        let cells = self.asked_cells(None, at)?;
        let counted = self.counted(&cells, &variables, at)?;
        let terms: Vec<Term> = variables.iter().map(|v| self.offset(v, v.middle())).collect();
        let products = self.regression_products(&variables, &terms);
        let mechanisms = self.noised_products((&cells, &counted), &products);
        let (y, explaining) = variables.split_last().expect("there is a value that is explained");
        let of: Vec<Variable> = variables.iter().map(|v| v.variable(v.middle())).collect();
        for (place, cell) in (0..).zip(&cells) {
            let sums: Vec<SumPlace> = mechanisms.iter().map(|m| SumPlace { mechanism: *m, place }).collect();
            let constant = cell.label(&format!("constant of {}", y.name));
            self.derive(DerivedStatistic::Coefficient(0), sums.clone(), &of, (&constant, &y.unit));
            for (number, x) in (1..).zip(explaining) {
                let what = cell.label(&format!("{} by {}", y.name, x.name));
                let unit = per(&y.unit, &x.unit);
                self.derive(DerivedStatistic::Coefficient(number), sums.clone(), &of, (&what, &unit));
            }
        }
        self.asked(first, &wanted, 1)
    }

    /// In the order of [`DerivedStatistic::Coefficient`]; y comes last among the terms.
    fn regression_products(
        &mut self,
        variables: &[AskedVariable],
        terms: &[Term],
    ) -> Vec<(String, Option<Term>)> {
        let y = terms.len() - 1;
        let all: Vec<&str> = variables.iter().map(|variable| variable.name.as_str()).collect();
        let mut products = vec![(format!("rows of {}", all.join(" and ")), None)];
        products.extend(variables.iter().zip(terms).map(|(variable, term)| (variable.sum(), Some(*term))));
        let pairs = (0..y).flat_map(|i| (i..y).map(move |j| (i, j)));
        for (i, j) in pairs.chain((0..y).map(|i| (i, y))).chain([(y, y)]) {
            let what = variables[i].sum_with(&variables[j]);
            products.push((what, Some(self.product(terms[i], terms[j]))));
        }
        products
    }

    /// `mean variance of X`, `difference of X`, `risk-ratio of ill`: of n, S and Q of each cell.
    pub(super) fn cell_statistics(&mut self, word: &str, at: usize, t: &mut Tokens) -> Result<(), TextFault> {
        let mut words = vec![(CellStatistic::read(word, at)?, at)];
        while let Some(next) = t.peek()
            && next != "of"
        {
            let at = t.place();
            let next = CellStatistic::read(next, at)?;
            t.take("a statistic, or `of`")?;
            words.push((next, at));
        }
        t.parsed("of", |word| (word == "of").then_some(()))?;
        let variable = self.variable(t)?;
        let wanted = self.wanted(false, t)?;
        let compares = self.current().groups.first().map_or(0, |grouping| grouping.cells.len());
        for (statistic, at) in &words {
            if statistic.of_bits && !variable.bit {
                return Err((
                    *at,
                    format!("{} is said of a bit, and {} is none", statistic.word, variable.name),
                ));
            }
            if statistic.compares && compares < 2 {
                let text = format!(
                    "{} compares groups: write `by` with two or more on a line before",
                    statistic.word
                );
                return Err((*at, text));
            }
        }
        let first = self.program.mechanisms.len();
        let cells = self.asked_cells(None, at)?;
        let mechanism = self.joint_of(&cells, &variable, at)?;
        for (statistic, _) in words {
            self.derive_cells(&statistic, mechanism, &cells, (&variable, compares));
        }
        self.asked(first, &wanted, 1)
    }

    /// n, S and Q of a value over cells.
    fn joint_of(
        &mut self,
        cells: &[AskedCell],
        variable: &AskedVariable,
        at: usize,
    ) -> Result<u32, TextFault> {
        let counted = self.counted(cells, std::slice::from_ref(variable), at)?;
        let [low, high] = variable.range;
        let most = low.abs_diff(high);
        let value = match variable.bit {
            true => variable.value,
            false => {
                let from_low = self.offset(variable, low).node;
                self.push_row(Op::Cast(from_low), ValueType::u(bits(most)))
            }
        };
        let square = ValueType::u(bits(most.saturating_mul(most)));
        let wide = if variable.bit { value } else { self.push_row(Op::Cast(value), square) };
        let square = self.push_row(Op::Mul(wide, wide), square);
        let change = Change::Person;
        let names = joint_labels(change, most, &variable.name);
        let (mut folds, mut labels) = (Vec::new(), Vec::new());
        for (cell, bit) in cells.iter().zip(counted) {
            let of_cell: Vec<String> = names.iter().map(|what| cell.label(what)).collect();
            let n = self.cell_sum(bit, None, &of_cell[0]);
            let [s, q] = [value, square].map(|value| self.cell_sum(bit, Some(value), &of_cell[0]));
            folds.push([n, s, q]);
            labels.extend(of_cell);
        }
        Ok(self.noise(MechanismKind::Joint { change, clamp: most, cells: folds }, &labels))
    }

    fn derive_cells(
        &mut self,
        statistic: &CellStatistic,
        mechanism: u32,
        cells: &[AskedCell],
        (variable, groups): (&AskedVariable, usize),
    ) {
        let of = [variable.variable(variable.range[0])];
        let what = format!("{} of {}", statistic.word, variable.name);
        let unit = match &statistic.statistic {
            DerivedStatistic::Variance => times(&variable.unit, &variable.unit),
            DerivedStatistic::Ratio | DerivedStatistic::OddsRatio | DerivedStatistic::NeededToTreat => {
                String::new()
            }
            _ if variable.bit => String::new(),
            _ => variable.unit.clone(),
        };
        let place = |cell: usize| SumPlace { mechanism, place: cell as u32 };
        // Cells that differ in the first grouping alone are so far apart.
        let stride = if statistic.compares { cells.len() / groups } else { 0 };
        for (at, cell) in cells.iter().enumerate() {
            if !statistic.compares {
                self.derive(statistic.statistic.clone(), vec![place(at)], &of, (&cell.label(&what), &unit));
                continue;
            }
            if at < stride {
                continue;
            }
            let reference = at % stride;
            let mut against = cell.clone();
            against.labels[0] = format!("{} against {}", cell.labels[0], cells[reference].labels[0]);
            let sums = vec![place(at), place(reference)];
            self.derive(statistic.statistic.clone(), sums, &of, (&against.label(&what), &unit));
        }
    }
}

/// What the outputs of a joint mechanism are, of each cell.
fn joint_labels(change: Change, most: u128, name: &str) -> Vec<String> {
    use release::joint::Combination;
    let of = |combination: &Combination| match combination {
        Combination::Rows => format!("rows of {name}, noised"),
        Combination::Value => format!("sum of {name}, noised"),
        Combination::Centred => format!("twice the sum of {name} less its range for each row, noised"),
        Combination::Tail | Combination::CentredTail => format!("tail sum of {name}, noised"),
    };
    change.combinations(most).iter().map(of).collect()
}

/// A statistic of one cell, or of two.
#[derive(Clone)]
struct CellStatistic {
    word: &'static str,
    statistic: DerivedStatistic,
    compares: bool,
    of_bits: bool,
}

impl CellStatistic {
    fn read(word: &str, at: usize) -> Result<Self, TextFault> {
        let all = [
            ("mean", DerivedStatistic::Mean, false, false),
            ("share", DerivedStatistic::Mean, false, true),
            ("variance", DerivedStatistic::Variance, false, false),
            ("standard-deviation", DerivedStatistic::StandardDeviation, false, false),
            ("difference", DerivedStatistic::Difference, true, false),
            ("risk-difference", DerivedStatistic::Difference, true, true),
            ("ratio", DerivedStatistic::Ratio, true, false),
            ("risk-ratio", DerivedStatistic::Ratio, true, true),
            ("odds-ratio", DerivedStatistic::OddsRatio, true, true),
            ("needed-to-treat", DerivedStatistic::NeededToTreat, true, true),
        ];
        let found = all.into_iter().find(|(name, ..)| *name == word);
        let (word, statistic, compares, of_bits) = found.ok_or_else(|| {
            let text = "expected by, count, histogram, sum, mean, share, variance, standard-deviation, \
             difference, \
                        risk-difference, ratio, risk-ratio, odds-ratio, needed-to-treat, median, quantile, \
                        covariance, correlation, regression or ask";
            (at, format!("{text}, found {word:?}"))
        })?;
        Ok(Self { word, statistic, compares, of_bits })
    }
}

fn times(a: &str, b: &str) -> String {
    match (a, b) {
        ("", b) => b.to_owned(),
        (a, "") => a.to_owned(),
        (a, b) if a == b => format!("{a}^2"),
        (a, b) => format!("{a} {b}"),
    }
}

fn per(a: &str, b: &str) -> String {
    match (a, b) {
        (a, "") => a.to_owned(),
        ("", b) => format!("1/{b}"),
        (a, b) => format!("{a}/{b}"),
    }
}
