//! The numbers of a view, in one order for the exact one, a released one and every draw.

use crate::derive::untested_views;
use crate::interpret::{Seen, view};
use crate::prepare::Built;
use base::Error;
use privacy::scales::Scales;
use program::{CountedIn, DerivedOutput, DerivedStatistic, Op, OutputValue, Viewer};
use release::normal;
use release::rational::to_f64;
use report::{CellView, DerivedView, LiftView, ResultView, wording};
use study::Study;

/// A number as somebody reads it.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadNumber {
    pub value: Option<f64>,
    /// In full, where it is a whole number.
    pub digits: Option<String>,
    /// Where the value is, chance and noise together; an open end is none.
    pub intervals: Vec<[Option<f64>; 2]>,
    /// Half of the interval of noise alone.
    pub noise: Option<f64>,
}

/// A name and a unit.
#[derive(Clone, Debug)]
pub(super) struct NumberName {
    pub label: String,
    /// `output`, `derived` or `estimate`.
    pub what: &'static str,
    pub unit: String,
    /// Whether other numbers are made of it, and it tells people nothing by itself.
    pub behind: bool,
}

/// What a part of a view is called, for programs and for people, and its numbers.
pub(super) struct PartName {
    pub name: String,
    pub title: String,
    pub numbers: Vec<NumberName>,
}

/// A part of a view whose numbers are shown together or not at all.
#[derive(Clone, Debug)]
pub(super) struct ReadPart {
    /// Why nothing is shown.
    pub refused: Option<String>,
    pub numbers: Vec<ReadNumber>,
}

/// Reads what one viewer is shown.
pub(super) struct NumberReader<'a> {
    pub study: &'a Study,
    pub built: &'a Built,
    pub scales: &'a Scales,
    pub viewer: Viewer,
}

impl NumberReader<'_> {
    /// The numbers of these outputs, part by part.
    ///
    /// # Errors
    /// When a value cannot be read.
    pub fn read(&self, values: &[(usize, u128)]) -> Result<Vec<ReadPart>, Error> {
        if self.built.lift.is_some() {
            return Ok(self.lift(values)?.cells.iter().map(lift_part).collect());
        }
        let (program, numbers) = (&self.built.program, self.numbers(values));
        let derived = untested_views(program, self.scales, (self.viewer, &numbers))?;
        let outputs = numbers.iter().zip(values).map(|((output, number), (_, pattern))| {
            let node = program.release.node(program.outputs[*output].value);
            let noise = match node.op {
                Op::Noised(mechanism, place) => {
                    Some(normal::critical(0.95) * to_f64(self.scales.sigma2(mechanism, place)).sqrt())
                }
                _ => None,
            };
            // An unsigned 128-bit value has no signed form.
            let (value, digits) = match node.ty.signed {
                true => (*number as f64, number.to_string()),
                false => (*pattern as f64, pattern.to_string()),
            };
            ReadNumber { value: Some(value), digits: Some(digits), intervals: Vec::new(), noise }
        });
        let shown = |numbers| ReadPart { refused: None, numbers };
        let own = program.derived.iter().filter(|derived| derived.to == self.viewer);
        let derived = own.zip(&derived).map(|(of, view)| derived_number(of, view)).collect();
        Ok(vec![shown(derived), shown(outputs.collect())])
    }

    /// What the numbers are called, and each part of them.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn names(&self, values: &[(usize, u128)]) -> Result<Vec<PartName>, Error> {
        if self.built.lift.is_some() {
            let view = self.lift(values)?;
            return Ok(view.cells.iter().map(|cell| lift_names(&view, cell)).collect());
        }
        let name = |label: &String, what, unit: &str| NumberName {
            label: label.clone(),
            what,
            unit: unit.to_owned(),
            behind: false,
        };
        let program = &self.built.program;
        let own = program.derived.iter().filter(|derived| derived.to == self.viewer && !values.is_empty());
        let derived: Vec<NumberName> =
            own.map(|derived| name(&derived.label, "derived", &derived.unit)).collect();
        // As reports do: the sums of answers are left to programs, other outputs are answers themselves.
        let is_noised = |output: usize| {
            let node = program.release.node(program.outputs[output].value);
            matches!(node.op, Op::Noised(..))
        };
        let counted = program.counted_in();
        let outputs = values.iter().map(|(output, _)| {
            let OutputValue { label, value, .. } = &program.outputs[*output];
            let CountedIn { scale, unit, .. } = &counted[value.index()];
            let behind = !derived.is_empty() && is_noised(*output);
            NumberName { behind, ..name(label, "output", &wording::parts_of(*scale, unit)) }
        });
        let outputs = outputs.collect();
        let part = |name: &str, title: &str, numbers| PartName {
            name: name.to_owned(),
            title: title.to_owned(),
            numbers,
        };
        Ok(vec![
            part("derived", "computed from what is released", derived),
            part("outputs", "released", outputs),
        ])
    }

    fn numbers(&self, values: &[(usize, u128)]) -> Vec<(usize, i128)> {
        let program = &self.built.program;
        let number = |(output, value): &(usize, u128)| {
            (*output, program.release.ty(program.outputs[*output].value).to_signed(*value))
        };
        values.iter().map(number).collect()
    }

    fn lift(&self, values: &[(usize, u128)]) -> Result<LiftView, Error> {
        let seen = Seen { viewer: self.viewer, values, lists: &[], aligned: None };
        match view(self.study, self.built, self.scales, &seen)? {
            ResultView::Lift(view) => Ok(view),
            ResultView::Program { .. } => Err(Error::misuse("a lift study has a lift view")),
        }
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn derived_number(of: &DerivedOutput, view: &DerivedView) -> ReadNumber {
    // A count, or a sum of whole numbers.
    let is_whole = of.statistic == DerivedStatistic::Total && of.variables[0].scale == 1;
    let whole = view.value.filter(|value| is_whole && value.fract() == 0.0);
    let digits = whole.map(|value| format!("{value:.0}"));
    ReadNumber { value: view.value, digits, intervals: view.intervals.clone(), noise: view.noise }
}

/// The difference, the mean of each arm where it is released, and what was counted.
fn lift_part(cell: &CellView) -> ReadPart {
    let mut numbers = Vec::new();
    if let Some(estimate) = &cell.estimate {
        let [low, high] = estimate.noise_interval;
        numbers.push(ReadNumber {
            value: finite(estimate.lift),
            intervals: vec![estimate.interval.map(finite)],
            noise: finite((high - low) / 2.0),
            ..ReadNumber::default()
        });
        numbers.extend(estimate.rates.iter().flatten().map(|rate| ReadNumber {
            value: finite(rate.mean),
            intervals: vec![[rate.mean - rate.half_width, rate.mean + rate.half_width].map(finite)],
            noise: finite(rate.noise_half_width),
            ..ReadNumber::default()
        }));
    }
    numbers.extend(cell.counts.iter().map(|count| ReadNumber {
        value: count.value.parse().ok(),
        digits: Some(count.value.clone()),
        noise: count.sigma.map(|sigma| normal::critical(0.95) * sigma),
        ..ReadNumber::default()
    }));
    ReadPart { refused: cell.refused.clone(), numbers }
}

fn lift_names(view: &LiftView, cell: &CellView) -> PartName {
    let unit = view.unit.clone().unwrap_or_default();
    let named = |label: String, what| NumberName { label, what, unit: unit.clone(), behind: false };
    let mut names = Vec::new();
    if let Some(estimate) = &cell.estimate {
        names.push(named(format!("difference, {} - {}", view.test, view.control), "estimate"));
        if estimate.rates.is_some() {
            names.extend([&view.test, &view.control].map(|arm| named(format!("mean, {arm}"), "estimate")));
        }
    }
    names.extend(cell.counts.iter().map(|count| {
        let arm = match count.arm.as_deref() {
            Some("test") => format!(", {}", view.test),
            Some(_) => format!(", {}", view.control),
            None => String::new(),
        };
        let unit = wording::unit_of(view, &count.quantity);
        let behind = wording::is_behind(&count.quantity);
        NumberName { label: wording::quantity(&count.quantity) + &arm, what: "output", unit, behind }
    }));
    let name = match cell.family.as_str() {
        "overall" => cell.label.clone(),
        family => format!("{family} {}", cell.label),
    };
    PartName { name, title: wording::cell_name(cell), numbers: names }
}
