//! Releases that are sums of multiples of what servers hold as numbers: no gate, and no message for the sums
//! themselves.
//!
//! Totals are sums of summands already ([`super::TotalsForm::Replicated`]), as wide as the widest output that
//! takes them ([`Program::summand_bits`]), so that a multiple of one is the sum of the summands' multiples.
//! Noise was drawn before, and is held alike. What a viewer gets are the summands of its outputs.

use super::release::{Addend, NoiseSource, NoisedAt, ReleaseWords, TotalsForm};
use crate::eval::closure;
use crate::{MechanismKind, NodeId, Op, Program, RowFold, Viewer};
use circuits::Lit;
use std::collections::BTreeMap;

/// A constant and a sum of multiples of words, modulo 2^width; factors of two's complement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinearSum {
    /// Words of the release, and how many times each counts.
    pub terms: Vec<(u32, u128)>,
    /// The constant.
    pub constant: u128,
    /// Bits, up to 128.
    pub width: u8,
}

impl LinearSum {
    /// A number of so many bits.
    #[must_use]
    pub fn cut(&self, number: u128) -> u128 {
        number & u128::MAX >> (128 - u32::from(self.width))
    }
}

/// Most terms in all: beyond it a release is gates.
const TERMS: usize = 1 << 20;

#[derive(Clone, Default)]
struct Form {
    terms: BTreeMap<u32, u128>,
    constant: u128,
}

impl Form {
    fn add(&mut self, words: &[u32], factor: u128) {
        for word in words {
            let all = self.terms.entry(*word).or_default();
            *all = all.wrapping_add(factor);
        }
    }

    /// With so many times another one.
    fn plus(mut self, other: &Self, factor: u128) -> Self {
        self.constant = self.constant.wrapping_add(other.constant.wrapping_mul(factor));
        other.terms.iter().for_each(|(word, of)| self.add(&[*word], of.wrapping_mul(factor)));
        self
    }
}

type Outputs = Vec<(usize, Vec<Lit>)>;

/// A viewer's outputs as sums, where they are: their places, and as many bits as they have. Else there are no
/// words.
pub(super) fn sums(words: &mut ReleaseWords<'_, '_>, viewer: Viewer) -> Option<(Vec<LinearSum>, Outputs)> {
    let done = found(words, viewer);
    if done.is_none() {
        words.clear();
    }
    done
}

fn found(words: &mut ReleaseWords<'_, '_>, viewer: Viewer) -> Option<(Vec<LinearSum>, Outputs)> {
    if words.how.totals != TotalsForm::Replicated || matches!(words.how.noise, NoiseSource::Candidates(..)) {
        return None;
    }
    let program = words.program;
    let mine = || program.outputs_to(viewer).map(|index| (index, program.outputs[index].value));
    let wanted = closure(&program.release, mine().map(|(_, value)| value));
    let mut forms: Vec<Form> = vec![Form::default(); wanted.len()];
    let mut terms = 0;
    for id in program.release.ids().filter(|id| wanted[id.index()]) {
        let of = |id: NodeId| &forms[id.index()];
        let form = match program.release.node(id).op {
            Op::Total(fold) if matches!(program.folds[fold as usize], RowFold::Sum { .. }) => {
                Form::default().plus(&total(words, fold), 1)
            }
            Op::Noised(mechanism, output) => noised(words, NoisedAt { mechanism, output })?,
            Op::Const(constant) => Form { constant, ..Form::default() },
            Op::Add(a, b) => of(a).clone().plus(of(b), 1),
            Op::Sub(a, b) => of(a).clone().plus(of(b), u128::MAX),
            _ => return None,
        };
        terms += form.terms.len();
        if terms > TERMS {
            return None;
        }
        forms[id.index()] = form;
    }
    let sum = |(_, value): (usize, NodeId)| {
        let Form { terms, constant } = forms[value.index()].clone();
        LinearSum { terms: terms.into_iter().collect(), constant, width: program.release.ty(value).width }
    };
    let bits =
        |(index, value): (usize, NodeId)| (index, vec![Lit::FALSE; program.release.ty(value).width.into()]);
    Some((mine().map(sum).collect(), mine().map(bits).collect()))
}

fn total(words: &mut ReleaseWords<'_, '_>, fold: u32) -> Form {
    let mut form = Form::default();
    form.add(&words.addends(Addend::Total(fold)), 1);
    form
}

/// A noised value: not a quotient, and not what one party enters in two's complement, which would have to be
/// widened.
fn noised(words: &mut ReleaseWords<'_, '_>, at: NoisedAt) -> Option<Form> {
    let program = words.program;
    let NoiseSource::Coins(sampler) = words.how.noise else { return None };
    let bits = super::noise::width(sampler(at)) as u8;
    let mut form = Form::default();
    for (fold, weight) in multiples(program, at)? {
        if program.folds[fold as usize].ty().signed && words.knows(fold).is_some() {
            return None;
        }
        form = form.plus(&total(words, fold), weight.cast_unsigned());
    }
    form.add(&words.addends(Addend::Noise(at, bits)), 1);
    Some(form)
}

/// The folds whose multiples a noised value is, before its noise.
fn multiples(program: &Program, at: NoisedAt) -> Option<Vec<(u32, i128)>> {
    let kind = &program.mechanisms.get(at.mechanism as usize)?.kind;
    match kind {
        MechanismKind::Gaussian(folds) => Some(vec![(*folds.get(at.output as usize)?, 1)]),
        MechanismKind::Joint { clamp, .. } => {
            let (combination, folds) = kind.combination(at.output)?;
            let all = folds.into_iter().zip(combination.weights(*clamp));
            Some(all.filter(|(_, weight)| *weight != 0).collect())
        }
        MechanismKind::Difference { .. } => None,
    }
}

impl Program {
    /// By fold, the bits of the summands in which servers hold it ([`TotalsForm::Replicated`]): those of its
    /// word, or as many as the widest noised sum of multiples of it. A noised total does not wrap, so wider
    /// summands have the same sum.
    #[must_use]
    pub fn summand_bits(&self) -> Vec<u8> {
        let mut bits: Vec<u8> = self.folds.iter().map(RowFold::word_bits).collect();
        for (mechanism, of) in (0..).zip(&self.mechanisms) {
            for output in 0..of.kind.outputs() as u32 {
                let at = NoisedAt { mechanism, output };
                let width = self.noised_type(mechanism, output).map_or(0, |ty| ty.width);
                for (fold, _) in multiples(self, at).into_iter().flatten() {
                    bits[fold as usize] = bits[fold as usize].max(width);
                }
            }
        }
        bits
    }
}
