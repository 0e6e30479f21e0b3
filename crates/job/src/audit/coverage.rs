//! `tacit audit coverage`: how often intervals hold the truth.
//!
//! A cell is a mechanism, an outcome law and a number of rows. Its mechanism comes from a study as a run
//! makes it: parsed, built, verified, scaled. What a mechanism is decides everything but the law, so cells of
//! different studies with equal mechanisms are one cell: the advertiser's view, a public result, one of
//! several advertisers together and one of four servers have the same noise (a test compares), and so has
//! every value of a breakdown.

use super::sample::Sample;
use super::{Progress, parallel};
use crate::prepare::{Built, build};
use base::{Error, Seed};
use privacy::scales::Scales;
use program::Viewer;
use release::alias::Sampler;
use release::binomial;
use release::coverage::{CellMechanism, Law, TrialCoverage, laws, simulate};
use release::modes::MINIMUM_GROUP;
use release::rational::{Rational, nano, ratio, shown};
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use studies::lift::{ADVERTISER, LiftCell, LiftLayout, LiftParameters, PUBLISHER, TrialArm};
use study::{Question, ReleaseMode, Study};

/// Results that a task shows: cells are simulated in pieces of so many.
const PIECE: u64 = 2500;
/// Confidence of what is said of a cell.
pub const CONFIDENCE: f64 = 0.999;
/// How far coverage may be below its level.
pub const ALLOWED: f64 = 0.005;
/// Values of the breakdown in the grid.
const VALUES: usize = 10;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct CoverageQuestion {
    /// The user's study; none: the grid.
    pub study: Option<Study>,
    /// Rows of the test and the control arm.
    pub rows: Vec<[u64; 2]>,
    /// zCDP of a view, of the grid; a study says its own.
    pub rho: Vec<Rational>,
    /// Modes of the grid.
    pub modes: Vec<ReleaseMode>,
    /// Outcome laws; of a study those with its clamp.
    pub laws: Vec<Law>,
    /// Levels.
    pub levels: Vec<f64>,
    /// Results to show in each cell.
    pub trials: u64,
    /// What makes the same table again.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
}

impl CoverageQuestion {
    /// The grid of the documentation.
    #[must_use]
    pub fn grid(trials: u64, seed: u64, threads: usize) -> Self {
        Self {
            study: None,
            rows: [1000, 10_000, 100_000, 1_000_000].map(|n| [n; 2]).to_vec(),
            rho: [ratio(1, 100), ratio(1, 10), ratio(1, 1)].to_vec(),
            modes: ReleaseMode::NAMES.map(|(_, mode)| mode).to_vec(),
            laws: laws(),
            levels: vec![0.9, 0.95],
            trials,
            seed,
            threads,
        }
    }
}

/// What was simulated.
#[derive(Clone, Debug, Serialize)]
pub struct CoverageReport {
    /// What makes it again.
    pub seed: u64,
    /// Results shown in each cell that is read.
    pub trials: u64,
    /// Confidence of the intervals of coverage.
    pub confidence: f64,
    /// All cells.
    pub cells: Vec<Cell>,
}

/// One cell.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// What is noised, for whom.
    pub mechanism: String,
    /// The outcome law.
    pub law: String,
    /// Rows of the test and the control arm.
    pub rows: [u64; 2],
    /// zCDP of the view.
    pub rho: String,
    /// Whether it must cover: not where a mode is there to reproduce one that does not.
    pub required: bool,
    /// Share of the trials that were shown.
    pub shown: f64,
    /// By level; none where the cell is not read, since its groups are too small.
    pub levels: Vec<Level>,
    /// Mean width over that without any noise; none where it is not read.
    pub width: Option<f64>,
}

/// The coverage of one level.
#[derive(Clone, Debug, Serialize)]
pub struct Level {
    /// The level.
    pub nominal: f64,
    /// The share of intervals that held the truth.
    pub covered: f64,
    /// Where the true share lies, at [`CONFIDENCE`].
    pub interval: [f64; 2],
}

impl Level {
    /// Whether it lies below the level by more than [`ALLOWED`].
    #[must_use]
    pub fn too_low(&self) -> bool {
        self.interval[1] < self.nominal - ALLOWED
    }
}

impl Cell {
    /// Whether too few rows are shown to say anything.
    #[must_use]
    pub fn not_read(&self) -> bool {
        self.levels.is_empty()
    }

    /// Whether it must cover and does not.
    #[must_use]
    pub fn fails(&self) -> bool {
        self.required && self.levels.iter().any(Level::too_low)
    }
}

/// A cell to be simulated.
struct Wanted {
    name: String,
    law: usize,
    rows: [u64; 2],
    /// Rows of a value of the breakdown.
    own: [u64; 2],
    rho: String,
    required: bool,
    mechanism: CellMechanism,
}

/// Simulates what is asked for.
///
/// # Errors
/// When a study is no lift study, or something is out of range.
pub fn run(asked: &CoverageQuestion, progress: Progress<'_>) -> Result<CoverageReport, Error> {
    let wanted = match &asked.study {
        Some(study) => of_study(study, asked)?,
        None => grid(asked)?,
    };
    // Cells of one law and as many rows are simulated on the same totals.
    let mut groups: BTreeMap<(usize, [u64; 2]), Vec<usize>> = BTreeMap::new();
    for (at, cell) in wanted.iter().enumerate() {
        groups.entry((cell.law, cell.own)).or_default().push(at);
    }
    let pieces = asked.trials.div_ceil(PIECE).max(1);
    let tasks: Vec<_> =
        groups.iter().flat_map(|group| (0..pieces).map(move |piece| (group, piece))).collect();
    let done = parallel(tasks.len(), asked.threads, progress, |at| {
        let (((law, own), cells), piece) = tasks[at];
        let law = &asked.laws[*law];
        let mechanism = |at: &usize| {
            let cell = &wanted[*at];
            (format!("{}/{}", marked(&cell.name), cell.rho), cell.mechanism.clone())
        };
        let mechanisms: Vec<_> = cells.iter().map(mechanism).collect();
        let shown = PIECE.min(asked.trials - piece * PIECE);
        let seed =
            Seed::from_bytes([0; 32]).fork(&format!("coverage/{}/{}/{own:?}/{piece}", asked.seed, law.name));
        Ok((cells, simulate(law, *own, &mechanisms, &asked.levels, shown, &seed)?))
    })?;
    let mut found = vec![TrialCoverage::default(); wanted.len()];
    for (cells, coverage) in &done {
        cells.iter().zip(coverage).for_each(|(at, coverage)| found[*at].add(coverage));
    }
    let cells = wanted.iter().zip(&found).map(|(wanted, found)| cell(wanted, found, asked)).collect();
    Ok(CoverageReport { seed: asked.seed, trials: asked.trials, confidence: CONFIDENCE, cells })
}

fn cell(wanted: &Wanted, found: &TrialCoverage, asked: &CoverageQuestion) -> Cell {
    let read = found.shown >= asked.trials;
    let level = |(nominal, covered): (&f64, &u64)| Level {
        nominal: *nominal,
        covered: *covered as f64 / found.shown as f64,
        interval: binomial::interval(*covered, found.shown, CONFIDENCE),
    };
    let levels = asked.levels.iter().zip(&found.covered).map(level);
    Cell {
        mechanism: wanted.name.clone(),
        law: asked.laws[wanted.law].name.clone(),
        rows: wanted.rows,
        rho: wanted.rho.clone(),
        required: wanted.required,
        shown: found.shown as f64 / found.trials.max(1) as f64,
        levels: if read { levels.collect() } else { Vec::new() },
        width: read.then(|| found.width / found.shown as f64),
    }
}

/// A row of the grid: what it has for each law, rho and number of rows.
struct Row {
    mode: ReleaseMode,
    viewer: Viewer,
    values: usize,
}

impl Row {
    fn all(modes: &[ReleaseMode]) -> Vec<Self> {
        let views = [PUBLISHER.into(), ADVERTISER.into()];
        let of = |mode: &ReleaseMode| {
            let (mode, values): (ReleaseMode, &[usize]) =
                (*mode, if *mode == ReleaseMode::Sums { &[0, VALUES] } else { &[0] });
            // As printed there is one scale.
            let views = if mode == ReleaseMode::Algorithm1AsPublished { &views[1..] } else { &views[..] };
            let of = move |viewer: &Viewer| {
                let viewer = *viewer;
                values.iter().map(move |values| Self { mode, viewer, values: *values }).collect::<Vec<_>>()
            };
            views.iter().flat_map(of).collect::<Vec<_>>()
        };
        modes.iter().flat_map(of).collect()
    }

    fn name(&self) -> String {
        let who = match (self.mode, self.viewer == PUBLISHER.into()) {
            (ReleaseMode::Algorithm1AsPublished, _) => "any",
            (_, true) => "publisher",
            (_, false) => "others",
        };
        let values = match self.values {
            0 => String::new(),
            values => format!(", one of {values} values"),
        };
        format!("{}, {who}{values}", self.mode.name())
    }

    fn mechanism(&self, clamp: u64, rho: &Rational, rows: [u64; 2]) -> Result<CellMechanism, Error> {
        let place = if self.values == 0 { LiftCell::Overall } else { LiftCell::Breakdown(0) };
        Own::new(&self.study(clamp, rho)?)?.mechanism(rows, self.viewer, place)
    }

    fn study(&self, clamp: u64, rho: &Rational) -> Result<Study, Error> {
        let mut sample = Sample { breakdown: self.values, ..Sample::new(self.mode, clamp) };
        match self.viewer == PUBLISHER.into() {
            true => sample.publisher = Some(rho.clone()),
            false => sample.advertiser = Some(rho.clone()),
        }
        sample.study()
    }
}

/// A mechanism in a table of Markdown, its mode as code; draws of a cell are made from a seed of this text.
#[must_use]
pub fn marked(mechanism: &str) -> String {
    let (mode, rest) = mechanism.split_once(", ").unwrap_or((mechanism, ""));
    format!("`{mode}`, {rest}")
}

/// All that a mechanism of the grid depends on: the row, R, rho, and rows where they are public.
type Made = BTreeMap<(usize, u64, u64, Option<[u64; 2]>), CellMechanism>;

fn grid(asked: &CoverageQuestion) -> Result<Vec<Wanted>, Error> {
    let mut made = Made::new();
    let mut wanted = Vec::new();
    for (at, row) in Row::all(&asked.modes).iter().enumerate() {
        for (law, of) in asked.laws.iter().enumerate() {
            for rows in &asked.rows {
                for rho in &asked.rho {
                    let public = (row.mode != ReleaseMode::Sums).then_some(*rows);
                    let mechanism = match made.entry((at, of.clamp, nano(rho), public)) {
                        Entry::Occupied(made) => made.get().clone(),
                        Entry::Vacant(place) => place.insert(row.mechanism(of.clamp, rho, *rows)?).clone(),
                    };
                    wanted.push(Wanted {
                        name: row.name(),
                        law,
                        rows: *rows,
                        own: rows.map(|n| n / row.values.max(1) as u64),
                        rho: shown(rho),
                        required: row.mode != ReleaseMode::Algorithm1AsPublished,
                        mechanism,
                    });
                }
            }
        }
    }
    Ok(wanted)
}

/// A lift study, built.
pub(super) struct Own<'a> {
    pub study: &'a Study,
    pub built: Built,
}

impl<'a> Own<'a> {
    pub(super) fn new(study: &'a Study) -> Result<Self, Error> {
        let Question::Lift(_) = &study.kind else {
            return Err(Error::input(format!(
                "study {} is no lift study of one run, and `tacit audit` takes those alone: it knows their \
                 intervals and their worst inputs",
                study.name
            )));
        };
        let policy = program::VerifierPolicy {
            max_rho: ratio(u128::from(study::MAX_RHO), 1),
            ..program::VerifierPolicy::default()
        };
        Ok(Self { study, built: build(study, &policy)? })
    }

    /// Its parameters, and what its program's outputs mean.
    pub(super) fn lift(&self) -> Result<&(LiftParameters, LiftLayout), Error> {
        self.built.lift.as_ref().ok_or_else(|| Error::misuse("a lift study has a layout"))
    }

    /// The noise of a cell of a viewer's release, and how it is read.
    pub(super) fn mechanism(
        &self,
        rows: [u64; 2],
        viewer: Viewer,
        cell: LiftCell,
    ) -> Result<CellMechanism, Error> {
        let Built { program, audit, .. } = &self.built;
        let (lift, layout) = self.lift()?;
        let groups = layout.published.map(|_| rows);
        let scales = Scales::new(self.study, program, audit, groups)?;
        let core = layout.outputs.iter().filter(|output| {
            let first = output.arm.is_none_or(|arm| arm == TrialArm::Test);
            (output.viewer, output.cell) == (viewer, cell) && first
        });
        let noised: Vec<(u32, u32)> = core.filter_map(|output| output.noised).collect();
        let missing = || Error::misuse("a viewer has a mechanism for every cell");
        let (first, _) = *noised.first().ok_or_else(missing)?;
        let own = noised.iter().filter(|(m, _)| *m == first);
        let sampler = |(m, o): &(u32, u32)| scales.sampler(*m, *o).cloned().ok_or_else(missing);
        let noises: Vec<Sampler> = own.map(sampler).collect::<Result<_, _>>()?;
        if let Some(joint) = scales.joint(first) {
            return Ok(CellMechanism::Sums { joint: Box::new(joint.clone()), noises });
        }
        let scale = Box::new(scales.fixed(first).ok_or_else(missing)?.clone());
        let noises = <[Sampler; 2]>::try_from(noises).map_err(|_| missing())?;
        Ok(CellMechanism::Fixed { mode: lift.mode, scale, noises: Box::new(noises) })
    }
}

/// The cells of the user's study: each family of what each viewer sees, with equally many rows in each value.
fn of_study(study: &Study, asked: &CoverageQuestion) -> Result<Vec<Wanted>, Error> {
    let own = Own::new(study)?;
    let (lift, _) = own.lift()?;
    let minimum = match &study.kind {
        Question::Lift(own) => own.release.minimum_group.max(MINIMUM_GROUP),
        _ => MINIMUM_GROUP,
    };
    let mut wanted: Vec<Wanted> = Vec::new();
    for (viewer, rho) in lift.releases() {
        let who = viewer.name(&own.built.program.parties);
        for family in lift.families() {
            let cells = lift.cells(family);
            let Some(first) = cells.first() else { continue };
            let name = match cells.len() {
                1 => format!("{}, {who}", lift.mode.name()),
                n => format!("{}, {who}, one of {n} values of the {family:?}", lift.mode.name()),
            };
            for (law, _) in asked.laws.iter().enumerate() {
                for rows in &asked.rows {
                    let of_cell = rows.map(|n| n / cells.len() as u64);
                    if of_cell.iter().any(|n| *n < minimum) {
                        continue;
                    }
                    wanted.push(Wanted {
                        name: name.clone(),
                        law,
                        rows: *rows,
                        own: of_cell,
                        rho: release::rational::to_f64(rho).to_string(),
                        required: lift.mode != ReleaseMode::Algorithm1AsPublished,
                        mechanism: own.mechanism(*rows, viewer, *first)?,
                    });
                }
            }
        }
    }
    if wanted.is_empty() {
        return Err(Error::input(format!(
            "every cell of study {} would have fewer than its minimum group of {minimum} rows an arm: say \
             more --rows",
            study.name
        )));
    }
    Ok(wanted)
}

/// The clamp of a study's outcomes: R, or less where its values cannot reach it.
///
/// # Errors
/// When it is no lift study.
pub fn clamp(study: &Study) -> Result<u64, Error> {
    let own = Own::new(study)?;
    let (lift, _) = own.lift()?;
    u64::try_from(lift.bound()).map_err(|_| Error::misuse("a clamp has at most 32 bits"))
}
