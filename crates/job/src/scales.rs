//! How much noise each released number of one viewer gets, and what that costs: derived, never stated.

use crate::ledger::rational;
use crate::study::{Kind, Study};
use base::{Error, PartyId};
use num_bigint::BigInt;
use num_traits::Zero;
use program::lower::{Difference, ReleasePlan, Totals, WordKind, lower_release_of};
use program::{Audit, MechanismKind, Owners, Program, Statistic};
use release::Rational;
use release::choose::Draw;
use release::gaussian::DiscreteGaussian;
use release::scale::{Bounds, FixedScale, Mode, Viewer, fixed_point};

/// The noise of all mechanisms of a program, once public group sizes are known where a mechanism needs them.
pub struct Scales {
    /// sigma^2 by mechanism and output.
    sigma2: Vec<Vec<Rational>>,
    /// Fixed-point scales of `Difference` mechanisms.
    fixed: Vec<Option<FixedScale>>,
    /// Group sizes, where published.
    groups: Option<[u64; 2]>,
    /// zCDP charged by viewer, in party order: what the ledger books.
    charge: Vec<Rational>,
}

impl Scales {
    /// Derives all scales.
    ///
    /// # Errors
    /// When a scale is out of range, or a mechanism needs group sizes that are not there.
    pub fn new(
        study: &Study,
        program: &Program,
        audit: &Audit,
        groups: Option<[u64; 2]>,
    ) -> Result<Self, Error> {
        let mut scales = Self {
            sigma2: Vec::with_capacity(program.mechanisms.len()),
            fixed: Vec::with_capacity(program.mechanisms.len()),
            groups,
            charge: vec![Rational::zero(); program.parties.len()],
        };
        for (mechanism, charge) in program.mechanisms.iter().zip(&audit.charges) {
            let spent = &mut scales.charge[mechanism.to.index()];
            match &mechanism.kind {
                MechanismKind::Gaussian(folds) => {
                    let sigma2 = |o| charge.sigma2(o).map(rational);
                    let all: Option<Vec<Rational>> = (0..folds.len()).map(sigma2).collect();
                    let all = all.ok_or_else(|| {
                        Error::input("a mechanism's noise is out of range; clamp lower or spend more rho")
                    })?;
                    *spent += rational(charge.rho);
                    scales.sigma2.push(all);
                    scales.fixed.push(None);
                }
                MechanismKind::Difference { statistic, .. } => {
                    let fixed =
                        difference(study, *statistic, mechanism.to, &rational(mechanism.rho), groups)?;
                    *spent += fixed.charge.clone();
                    scales.sigma2.push(vec![fixed.lift.sigma2.clone(), fixed.spread.sigma2.clone()]);
                    scales.fixed.push(Some(fixed));
                }
            }
        }
        Ok(scales)
    }

    /// sigma^2 of an output of a mechanism.
    #[must_use]
    pub fn sigma2(&self, mechanism: u32, output: u32) -> &Rational {
        &self.sigma2[mechanism as usize][output as usize]
    }

    /// The fixed-point scale of a `Difference` mechanism.
    #[must_use]
    pub fn fixed(&self, mechanism: u32) -> Option<&FixedScale> {
        self.fixed[mechanism as usize].as_ref()
    }

    /// zCDP that a viewer is charged.
    #[must_use]
    pub fn charge(&self, viewer: PartyId) -> &Rational {
        &self.charge[viewer.index()]
    }

    /// The release of a viewer as a circuit, of totals that are held so.
    ///
    /// # Errors
    /// When a noise does not fit the type it is added in.
    pub fn plan(
        &self,
        totals: Totals,
        program: &Program,
        owners: &[Owners],
        viewer: PartyId,
    ) -> Result<ReleasePlan, Error> {
        let mut widths: Vec<Vec<u8>> = Vec::with_capacity(self.sigma2.len());
        for (m, all) in self.sigma2.iter().enumerate() {
            let mut row = Vec::with_capacity(all.len());
            for (o, sigma2) in all.iter().enumerate() {
                let width = DiscreteGaussian::new(sigma2)?.width();
                let room = program.noised_type(m as u32, o as u32).map_or(0, |ty| u32::from(ty.width));
                if width >= room {
                    return Err(Error::input(format!(
                        "the noise of mechanism m{m} needs {width} bits and is added in {room}; spend more rho on it"
                    )));
                }
                row.push(width as u8);
            }
            widths.push(row);
        }
        let width = |m: u32, o: u32| widths[m as usize][o as usize];
        let parameters = |m: u32| {
            let (fixed, groups) = (self.fixed(m)?, self.groups?);
            let spread_places = match program.mechanisms[m as usize].kind {
                MechanismKind::Difference { statistic: Statistic::Variance, .. } => fixed.grid.v,
                _ => fixed.grid.se,
            };
            Some(Difference { n: groups.map(u128::from), lift_places: fixed.grid.lift, spread_places })
        };
        lower_release_of(totals, program, viewer, owners, &width, &parameters)
    }

    /// The draws of a release, in the order in which its noise words are entered.
    #[must_use]
    pub fn draws(&self, plan: &ReleasePlan) -> Vec<Draw> {
        let draw = |word: &program::lower::ReleaseWord| match word.kind {
            WordKind::Noise(m, o) => {
                Some(Draw { sigma2: self.sigma2(m, o).clone(), width: u32::from(word.width) })
            }
            _ => None,
        };
        plan.words.iter().filter_map(draw).collect()
    }
}

fn difference(
    study: &Study,
    statistic: Statistic,
    to: PartyId,
    rho: &Rational,
    groups: Option<[u64; 2]>,
) -> Result<FixedScale, Error> {
    let Kind::Lift(lift) = &study.kind else {
        return Err(Error::input("a program study noises sums only: use gaussian mechanisms"));
    };
    let [test, control] =
        groups.ok_or_else(|| Error::misuse("a difference is scaled after the group sizes are published"))?;
    let mode = match statistic {
        Statistic::Variance => Mode::Variance,
        Statistic::Algorithm1 => Mode::Algorithm1,
        Statistic::Algorithm1AsPublished => Mode::Algorithm1AsPublished,
    };
    let viewer = if to == studies::lift::PUBLISHER { Viewer::Publisher } else { Viewer::Advertiser };
    let bounds = Bounds { clamp: lift.rule.clamp.into(), max_events: u64::from(lift.advertiser.max_events) };
    fixed_point(mode, viewer, (test, control), bounds, rho, &[])
}

/// The release mode of a lift study's mode.
#[must_use]
pub fn release_mode(mode: studies::lift::Mode) -> Mode {
    match mode {
        studies::lift::Mode::Sums => Mode::Sums,
        studies::lift::Mode::Variance => Mode::Variance,
        studies::lift::Mode::Algorithm1 => Mode::Algorithm1,
        studies::lift::Mode::Algorithm1AsPublished => Mode::Algorithm1AsPublished,
    }
}

/// The most that a viewer can be charged, before group sizes are known: what is stated, but for
/// `algorithm1-as-published`. As printed, the standard error's sensitivity is too small: by sqrt(N / (N - 1)) for the
/// publisher's view and by another sqrt(2) for the advertiser's, on half of rho (`docs/protocols/release.md`).
#[must_use]
pub fn most_charged(study: &Study, audit: &Audit, viewer: PartyId) -> Rational {
    let stated = rational(audit.rho[viewer.index()]);
    let published = match &study.kind {
        Kind::Lift(lift) => lift.release.mode == studies::lift::Mode::Algorithm1AsPublished,
        Kind::Lifts(_) | Kind::Program(_) => false,
    };
    if !published {
        return stated;
    }
    // Groups have at least 1000 rows, and the grid adds less than a thousandth: one per cent covers both.
    let per_cent = if viewer == studies::lift::PUBLISHER { 101 } else { 151 };
    stated * Rational::new(BigInt::from(per_cent), BigInt::from(100))
}
