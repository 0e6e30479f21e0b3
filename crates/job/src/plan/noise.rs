//! How a program's budget is split: what each mechanism is charged, and how wide its noise is.

use privacy::scales::Scales;
use program::{MechanismKind, Program};
use release::normal;
use release::rational::to_f64;
use serde::Serialize;
use study::{Question, Study};

/// The noise of one mechanism of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MechanismNoise {
    /// What the program calls it, and where.
    pub name: String,
    /// Who sees it.
    pub to: String,
    /// How many numbers it noises.
    pub outputs: usize,
    /// zCDP charged for it.
    pub rho: f64,
    /// Half of the 95 % interval of the noise, of the output that has most, in what the output counts; of a
    /// joint mechanism, that of the number of rows.
    pub half_width: f64,
}

/// The mechanisms of a study of a program of its own.
pub(super) fn noise(study: &Study, program: &Program, scales: &Scales) -> Vec<MechanismNoise> {
    if !matches!(study.kind, Question::Program(_)) {
        return Vec::new();
    }
    let of = |(number, mechanism): (u32, &program::NoiseMechanism)| {
        let outputs = mechanism.kind.outputs();
        let deviation = |output: u32| to_f64(scales.sigma2(number, output)).sqrt();
        let widest = match mechanism.kind {
            MechanismKind::Joint { .. } => deviation(0),
            _ => (0..outputs as u32).map(deviation).fold(0.0, f64::max),
        };
        MechanismNoise {
            name: program.names.mechanism(number),
            to: mechanism.to.name(&program.parties).to_owned(),
            outputs,
            rho: to_f64(&mechanism.rho),
            half_width: normal::critical(0.95) * widest,
        }
    };
    (0..).zip(&program.mechanisms).map(of).collect()
}
