//! From revealed numbers to what a reader wants to know.

use crate::align::Aligned;
use crate::derive::derived_views;
use crate::prepare::Built;
use base::Error;
use page::numbers::trimmed;
use privacy::scales::Scales;
use program::{NodeSection, Op, Program, Viewer};
use release::joint::{self, FamilyMechanism};
use release::modes::{LiftEstimate, Reading, read_fixed, read_sums};
use report::{CellView, CountView, LiftView, ProgramList, ProgramOutput, ResultView};
use studies::lift::{LiftCell, LiftLayout, LiftParameters, OutputMeaning, Quantity, ReleaseMode, TrialArm};
use study::{self, Study};

/// A released number with mean and standard deviation of its noise.
struct Released<'a> {
    output: &'a OutputMeaning,
    value: i128,
    mean: f64,
    sigma: Option<f64>,
}

impl Released<'_> {
    /// The number without the mean of its noise.
    fn centred(&self) -> f64 {
        self.value as f64 - self.mean
    }
}

/// What a release showed to this party.
pub struct Seen<'a> {
    /// Who sees it.
    pub viewer: Viewer,
    /// Positions in the program's outputs, and bit patterns.
    pub values: &'a [(usize, u128)],
    /// One packed bit per row for each of this party's lists.
    pub lists: &'a [Vec<u64>],
    /// This party's rows by their places; none where it does not know them, as in no program that shows a
    /// row.
    pub aligned: Option<&'a Aligned>,
}

/// Reads one viewer's outputs.
///
/// # Errors
/// When a value cannot be read; a cell that may not be shown is refused in the view, not here.
pub fn view(study: &Study, built: &Built, scales: &Scales, seen: &Seen<'_>) -> Result<ResultView, Error> {
    let number = |(index, value): &(usize, u128)| {
        let node = built.program.outputs[*index].value;
        (*index, built.program.release.ty(node).to_signed(*value))
    };
    let numbers: Vec<(usize, i128)> = seen.values.iter().map(number).collect();
    match (&built.lift, &study.kind) {
        (Some((lift, layout)), study::Question::Lift(own)) => {
            lift_view(own, lift, layout, scales, seen.viewer, &numbers).map(ResultView::Lift)
        }
        _ => {
            let outputs = program_outputs(
                &built.program,
                scales,
                &numbers,
                (seen.aligned, study.matching.dummies.is_some()),
            )?;
            let lists = program_lists(&built.program, seen)?;
            let derived = derived_views(&built.program, scales, (seen.viewer, &numbers))?;
            Ok(ResultView::Program { outputs, lists, derived })
        }
    }
}

fn sigma(scales: &Scales, noised: Option<(u32, u32)>) -> Option<f64> {
    noised.map(|(m, o)| release::rational::to_f64(scales.sigma2(m, o)).sqrt())
}

/// What a value of the release section was computed from, beside constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Origin {
    /// Values with noise.
    noised: bool,
    /// Totals without noise. Noise elsewhere does not hide them: who knows the noised part takes it out.
    raw: bool,
}

/// The origin of every node: its own, and those of its operands, which come first.
fn origins(section: &NodeSection) -> Vec<Origin> {
    let mut origins = Vec::with_capacity(section.nodes.len());
    for node in &section.nodes {
        let mut origin = Origin {
            noised: matches!(node.op, Op::Noised(..)),
            raw: matches!(node.op, Op::Total(_) | Op::Index(_) | Op::Found(_) | Op::Column(_)),
        };
        node.op.operands(|operand| {
            let Origin { noised, raw } = origins[operand.index()];
            origin.noised |= noised;
            origin.raw |= raw;
        });
        origins.push(origin);
    }
    origins
}

/// Which values of the release section count rows that no party has.
fn of_made_up_rows(program: &Program) -> Vec<bool> {
    let folds = program.folds_over_made_up();
    let mut counts = Vec::with_capacity(program.release.nodes.len());
    for node in &program.release.nodes {
        let mut any = match node.op {
            Op::Total(f) | Op::Index(f) | Op::Found(f) => folds[f as usize],
            Op::Noised(m, _) => {
                program.mechanisms[m as usize].kind.folds().iter().any(|f| folds[*f as usize])
            }
            _ => false,
        };
        node.op.operands(|operand| any |= counts[operand.index()]);
        counts.push(any);
    }
    counts
}

fn program_outputs(
    program: &Program,
    scales: &Scales,
    numbers: &[(usize, i128)],
    (aligned, dummies): (Option<&Aligned>, bool),
) -> Result<Vec<ProgramOutput>, Error> {
    let origins = origins(&program.release);
    let made_up = if dummies { of_made_up_rows(program) } else { vec![false; origins.len()] };
    let counted = program.counted_in();
    let output = |(index, value): &(usize, i128)| {
        let output = &program.outputs[*index];
        let node = program.release.node(output.value);
        let origin = origins[output.value.index()];
        let noised = if let Op::Noised(m, o) = node.op { Some((m, o)) } else { None };
        let row = matches!(node.op, Op::Index(_)).then(|| u64::try_from(*value).ok()).flatten();
        // An unsigned 128-bit value has no signed form.
        let value = if node.ty.signed { value.to_string() } else { (*value as u128).to_string() };
        let key = match (row, aligned) {
            (Some(row), Some(aligned)) => aligned.key(row)?,
            _ => None,
        };
        Ok(ProgramOutput {
            label: output.label.clone(),
            value,
            sigma: sigma(scales, noised).map(|s| trimmed(&format!("{s:.6}"))),
            noised: origin.noised && !origin.raw,
            mixed: origin.noised && origin.raw,
            made_up: made_up[output.value.index()],
            key,
            unit: counted[output.value.index()].unit.to_string(),
            scale: counted[output.value.index()].scale,
        })
    };
    numbers.iter().map(output).collect()
}

fn program_lists(program: &Program, seen: &Seen<'_>) -> Result<Vec<ProgramList>, Error> {
    let own = program.lists.iter().filter(|list| seen.viewer.only() == Some(list.to));
    own.zip(seen.lists)
        .map(|(list, bits)| {
            let matched =
                |row: &u64| bits.get((row / 64) as usize).is_some_and(|word| word >> (row % 64) & 1 == 1);
            let places = seen.aligned.map_or(0, Aligned::union);
            let rows: Vec<u64> = (0..places).filter(matched).collect();
            let keys = seen.aligned.map_or(Ok(Vec::new()), |aligned| aligned.keys(&rows))?;
            let keys: Vec<String> = keys.into_iter().flatten().collect();
            let others = (rows.len() - keys.len()) as u64;
            Ok(ProgramList { label: list.label.clone(), keys, others })
        })
        .collect()
}

fn lift_view(
    own: &study::LiftStudy,
    lift: &LiftParameters,
    layout: &LiftLayout,
    scales: &Scales,
    viewer: Viewer,
    numbers: &[(usize, i128)],
) -> Result<LiftView, Error> {
    let released: Vec<Released<'_>> = numbers
        .iter()
        .map(|(index, value)| {
            let output = &layout.outputs[*index];
            let mean = output.noised.map_or(0.0, |(m, o)| scales.mean(m, o));
            Released { output, value: *value, mean, sigma: sigma(scales, output.noised) }
        })
        .collect();
    let reading = Reading {
        clamp: lift.bound() as u64,
        confidence: f64::from(own.release.confidence.percent()) / 100.0,
        minimum_group: own.release.minimum_group,
    };
    let cells = lift.families().into_iter().flat_map(|family| lift.cells(family));
    let cells = cells.filter(|_| !released.is_empty());
    let parts = f64::from(own.scale());
    let [breakdown, cohort] = own.cell_columns().map(|column| column.map(str::to_owned));
    let cells = cells.map(|cell| {
        let column = match cell {
            LiftCell::Overall => None,
            LiftCell::Breakdown(_) => breakdown.clone(),
            LiftCell::Cohort(_) => cohort.clone(),
        };
        let view = cell_view(lift, scales, &released, cell, &reading)?;
        Ok::<_, Error>(CellView { column, ..in_unit(view, parts) })
    });
    debug_assert!(released.iter().all(|r| r.output.viewer == viewer), "a viewer sees its own outputs");
    let mut view = LiftView {
        test: lift.arms[0].clone(),
        control: lift.arms[1].clone(),
        clamp: own.rule.clamp.into(),
        unit: own.advertisers.iter().find_map(|advertiser| advertiser.value.unit().map(str::to_owned)),
        scale: own.scale(),
        confidence: reading.confidence,
        lower_is_better: own.rule.lower_is_better,
        cells: cells.collect::<Result<_, _>>()?,
    };
    view.adjust();
    Ok(view)
}

/// Estimates in the unit of the values, of which so many parts are counted.
fn in_unit(mut view: CellView, parts: f64) -> CellView {
    if let Some(estimate) = &mut view.estimate {
        estimate.lift /= parts;
        estimate.standard_error /= parts;
        estimate.interval = estimate.interval.map(|end| end / parts);
        estimate.noise_interval = estimate.noise_interval.map(|end| end / parts);
        for rate in estimate.rates.iter_mut().flatten() {
            rate.mean /= parts;
            rate.half_width /= parts;
            rate.noise_half_width /= parts;
        }
    }
    view
}

fn cell_view(
    lift: &LiftParameters,
    scales: &Scales,
    released: &[Released<'_>],
    cell: LiftCell,
    reading: &Reading,
) -> Result<CellView, Error> {
    let here: Vec<&Released<'_>> = released.iter().filter(|r| r.output.cell == cell).collect();
    let (family, label) = match cell {
        LiftCell::Overall => ("overall", "overall".to_owned()),
        LiftCell::Breakdown(i) => ("breakdown", lift.breakdown[usize::from(i)].clone()),
        LiftCell::Cohort(i) => ("cohort", lift.cohorts[usize::from(i)].clone()),
    };
    let cell = CellNumbers { scales, here };
    let (estimate, refused) = match cell.estimate(lift, reading)? {
        Ok(estimate) => (Some(estimate), None),
        Err(why) => (None, Some(why)),
    };
    // A cell that is too small shows no number at all.
    let (counts, held_back) = match refused {
        Some(_) => (Vec::new(), cell.here.len() as u32),
        None => (cell.counts()?, 0),
    };
    Ok(CellView {
        family: family.into(),
        label,
        column: None,
        estimate,
        holm: None,
        refused,
        held_back,
        counts,
    })
}

/// The name of an arm in the JSON report.
fn arm_name(arm: TrialArm) -> String {
    if arm == TrialArm::Test { "test".into() } else { "control".into() }
}

/// The name of a quantity in the JSON report.
fn quantity(quantity: Quantity) -> String {
    quantity.name().replace(' ', "_")
}

/// What was released for one cell.
struct CellNumbers<'a> {
    scales: &'a Scales,
    here: Vec<&'a Released<'a>>,
}

impl CellNumbers<'_> {
    fn find(&self, arm: Option<TrialArm>, quantity: Quantity) -> Option<&Released<'_>> {
        let found = self.here.iter().find(|r| r.output.arm == arm && r.output.quantity == quantity);
        found.copied()
    }

    /// One that has to be there.
    fn of(&self, arm: Option<TrialArm>, quantity: Quantity) -> Result<&Released<'_>, Error> {
        let missing = || Error::misuse(format!("the release has no {}", quantity.name()));
        self.find(arm, quantity).ok_or_else(missing)
    }

    /// How n, S and Q are read, in mode `sums`.
    fn joint(&self) -> Option<&FamilyMechanism> {
        let mut noised = self.here.iter().filter_map(|r| r.output.noised);
        noised.find_map(|(m, _)| self.scales.joint(m))
    }

    /// n, S and Q of an arm.
    fn sums(&self, joint: &FamilyMechanism, arm: TrialArm) -> Result<[f64; 3], Error> {
        let value = |c: &joint::NoisedOutput| Ok::<_, Error>(self.of(Some(arm), c.combination.into())?.value);
        let noised: Vec<i128> = joint.outputs().iter().map(value).collect::<Result<_, _>>()?;
        let rows = if joint.change().knows_rows() { self.of(Some(arm), Quantity::Rows)?.value } else { 0 };
        Ok(joint.decode(&noised, rows))
    }

    /// The estimate, or why there is none.
    fn estimate(
        &self,
        lift: &LiftParameters,
        reading: &Reading,
    ) -> Result<Result<LiftEstimate, String>, Error> {
        if lift.mode == ReleaseMode::Sums {
            let joint = self.joint().ok_or_else(|| Error::misuse("sums are noised by a joint mechanism"))?;
            let [test, control] = [self.sums(joint, TrialArm::Test)?, self.sums(joint, TrialArm::Control)?];
            return Ok(read_sums(test, control, joint, reading).map_err(|e| e.to_string()));
        }
        let (lift_value, spread) = (self.of(None, Quantity::Difference)?, self.of(None, Quantity::Spread)?);
        let scale = lift_value.output.noised.and_then(|(m, _)| self.scales.fixed(m));
        let scale = scale.ok_or_else(|| Error::misuse("a difference has a fixed-point scale"))?;
        read_fixed(lift.mode, lift_value.centred(), spread.centred(), scale, reading.confidence).map(Ok)
    }

    /// Every number as released, and what n, S and Q are by them.
    fn counts(&self) -> Result<Vec<CountView>, Error> {
        let released = self.here.iter().map(|r| CountView {
            quantity: quantity(r.output.quantity),
            arm: r.output.arm.map(arm_name),
            value: r.value.to_string(),
            sigma: r.sigma,
            derived: false,
        });
        let mut counts: Vec<CountView> = released.collect();
        let Some(joint) = self.joint() else { return Ok(counts) };
        let covariance = joint.covariance();
        for (i, name) in Quantity::CORE.into_iter().enumerate() {
            for arm in TrialArm::BOTH {
                if self.find(Some(arm), name).is_none() {
                    counts.push(CountView {
                        quantity: quantity(name),
                        arm: Some(arm_name(arm)),
                        value: trimmed(&format!("{:.1}", self.sums(joint, arm)?[i])),
                        sigma: Some(covariance[i][i].sqrt()),
                        derived: true,
                    });
                }
            }
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use program::{NodeId, OpNode, ValueType};

    /// A difference of noised values is not exact; one with a bare total in it is neither.
    #[test]
    fn origins_follow_operands() {
        let ty = ValueType::parse("i64").expect("a type");
        let v = NodeId;
        let (constant, noised, raw) = ((false, false), (true, false), (false, true));
        let ops = [
            (Op::Noised(0, 0), noised),
            (Op::Noised(0, 1), noised),
            (Op::Sub(v(0), v(1)), noised),
            (Op::Total(0), raw),
            (Op::Const(7), constant),
            (Op::Mul(v(2), v(4)), noised),
            (Op::Add(v(5), v(3)), (true, true)),
            (Op::Shl(v(4), 1), constant),
            (Op::Select(v(7), v(5), v(6)), (true, true)),
        ];
        let nodes = ops.iter().map(|(op, _)| OpNode { op: op.clone(), ty }).collect();
        let expected: Vec<Origin> =
            ops.iter().map(|(_, (noised, raw))| Origin { noised: *noised, raw: *raw }).collect();
        assert_eq!(origins(&NodeSection { nodes }), expected);
    }
}
