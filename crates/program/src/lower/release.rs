//! The release section for one viewer: shares come in, noise comes in, the viewer's outputs go out.

use super::bits::Bits;
use crate::circuit::{Circuit, Gates, Input, Lit};
use crate::gadgets::{self as gadget, Word};
use crate::graph::{Fold, MechanismKind, Sharing, Statistic};
use crate::{NodeId, Op, Owners, Program};
use base::{Error, PartyId};

/// The release program of one viewer as a circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasePlan {
    /// Who learns the outputs.
    pub viewer: PartyId,
    /// Number of parties of the program.
    pub parties: usize,
    /// Gates; the inputs' words are indices into `words`.
    pub circuit: Circuit,
    /// Words that enter, in order.
    pub words: Vec<ReleaseWord>,
    /// Position in `Program::outputs` and bits of each output.
    pub outputs: Vec<(usize, Vec<Lit>)>,
}

/// A word that enters a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseWord {
    /// What it is.
    pub kind: WordKind,
    /// Who enters it.
    pub owner: PartyId,
    /// Bits.
    pub width: u8,
}

/// Kinds of words that enter a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// The owner's share of a fold's word: additive or exclusive-or, as [`Program::sharing`] says.
    Share(u32),
    /// A summand of a fold's word ([`Totals::Replicated`]), which nobody enters: all servers but one hold it. The owner is
    /// the viewer.
    Summand(u32, u8),
    /// A fold's total that the owner knows alone.
    Alone(u32),
    /// The chosen noise of an output of a mechanism, two's complement.
    Noise(u32, u32),
}

/// How the parties of a run hold the totals that nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Totals {
    /// Every party of the program holds a share, additive or exclusive-or as [`Program::sharing`] says.
    #[default]
    Split,
    /// Four servers hold [`SUMMANDS`] summands, each of them all but one: of a sum the sum of them, of a best row's word the
    /// exclusive or.
    Replicated,
}

/// Summands of a total that is [`Totals::Replicated`].
pub const SUMMANDS: u8 = 4;

/// Largest group of a `Difference`: n^2 (n - 1) then fits 128 bits with room.
const GROUP: u128 = 1 << 40;
/// Most binary places of a `Difference`, either way.
const PLACES: u32 = 128;

/// Public parameters of one `Difference` mechanism, known once its group sizes are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Group sizes, test and control; each 2 to 2^40.
    pub n: [u128; 2],
    /// Binary places of the difference; negative shifts right.
    pub lift_places: i32,
    /// Binary places of the variance or standard error.
    pub spread_places: i32,
}

/// Lowers the release section for `viewer`.
///
/// `noise_width` gives the bits of each mechanism output's noise; `difference` the public parameters of a `Difference`
/// mechanism.
///
/// # Errors
/// When a `Difference` mechanism has no parameters yet or parameters out of range, and when noise is asked for among
/// other than two parties.
pub fn lower_release(
    program: &Program,
    viewer: PartyId,
    fold_owners: &[Owners],
    noise_width: &dyn Fn(u32, u32) -> u8,
    difference: &dyn Fn(u32) -> Option<Difference>,
) -> Result<ReleasePlan, Error> {
    lower_release_of(Totals::Split, program, viewer, fold_owners, noise_width, difference)
}

/// As [`lower_release`], for totals that are held in another way.
///
/// # Errors
/// As [`lower_release`].
pub fn lower_release_of(
    totals: Totals,
    program: &Program,
    viewer: PartyId,
    fold_owners: &[Owners],
    noise_width: &dyn Fn(u32, u32) -> u8,
    difference: &dyn Fn(u32) -> Option<Difference>,
) -> Result<ReleasePlan, Error> {
    if program.parties.len() != 2 && !program.mechanisms.is_empty() {
        return Err(Error::misuse("noise is drawn between two parties"));
    }
    let wrong = |d: &Difference| {
        let places = [d.lift_places, d.spread_places].iter().any(|p| p.unsigned_abs() > PLACES);
        places || d.n.iter().any(|n| !(2..=GROUP).contains(n))
    };
    if (0..program.mechanisms.len() as u32).filter_map(difference).any(|d| wrong(&d)) {
        return Err(Error::misuse(format!(
            "a difference takes groups of 2 to {GROUP} and up to {PLACES} places"
        )));
    }
    let mut words = Words { program, fold_owners, viewer, totals, words: Vec::new() };
    let mut bits = Bits::new(&program.release);
    let mut missing = false;
    let mut outputs = Vec::new();
    for index in program.outputs_to(viewer) {
        let mut leaf = |g: &mut Gates, id: NodeId| match program.release.node(id).op {
            Op::Total(fold) => Some(words.total(g, fold)),
            Op::Index(fold) => Some(words.part(g, fold, Part::Index)),
            Op::Found(fold) => Some(words.part(g, fold, Part::Found)),
            Op::Noised(m, o) => {
                let width = usize::from(program.release.ty(id).width);
                let value = match &program.mechanisms[m as usize].kind {
                    MechanismKind::Gaussian(folds) => Some(words.gaussian(g, folds[o as usize], width)),
                    MechanismKind::Difference { statistic, test, control } => difference(m)
                        .map(|d| words.difference(g, (*statistic, test, control), &d, o))
                        .map(|w| gadget::resize(&w, width, true)),
                };
                let Some(value) = value else {
                    missing = true;
                    return Some(vec![Lit::FALSE; width]);
                };
                let noise = words.noise(g, m, o, noise_width(m, o));
                Some(gadget::add(g, &value, &gadget::resize(&noise, width, true)))
            }
            _ => None,
        };
        outputs.push((index, bits.word(program.outputs[index].value, &mut leaf)));
    }
    if missing {
        return Err(Error::misuse("a difference mechanism is lowered before its group sizes are published"));
    }
    let (circuit, words, parties) = (bits.gates.finish(), words.words, program.parties.len());
    Ok(ReleasePlan { viewer, parties, circuit, words, outputs })
}

/// What of a fold's word a release node reads.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Total,
    Index,
    Found,
}

impl Part {
    /// The bits of the fold's word.
    pub(super) fn of(self, fold: &Fold) -> std::ops::Range<usize> {
        let key = usize::from(fold.ty().width);
        let index = key + usize::from(Fold::INDEX.width);
        match self {
            Part::Total => 0..key,
            Part::Index => key..index,
            Part::Found => index..index + 1,
        }
    }
}

struct Words<'a> {
    program: &'a Program,
    fold_owners: &'a [Owners],
    viewer: PartyId,
    totals: Totals,
    words: Vec<ReleaseWord>,
}

impl Words<'_> {
    fn enter(&mut self, g: &mut Gates, kind: WordKind, owner: PartyId, width: u8) -> Word {
        let word = ReleaseWord { kind, owner, width };
        let index = self.words.iter().position(|w| *w == word).unwrap_or_else(|| {
            self.words.push(word);
            self.words.len() - 1
        });
        let input = |bit| Input { owner: Some(owner), word: index as u32, bit };
        (0..width.into()).map(|bit| g.input(input(bit))).collect()
    }

    /// A fold's total.
    fn total(&mut self, g: &mut Gates, fold: u32) -> Word {
        self.part(g, fold, Part::Total)
    }

    /// A part of a fold's word.
    fn part(&mut self, g: &mut Gates, fold: u32, part: Part) -> Word {
        let mut word = self.word(g, fold);
        word.drain(part.of(&self.program.folds[fold as usize])).collect()
    }

    /// A fold's word: entered by the one who knows it, or put together from everybody's shares.
    fn word(&mut self, g: &mut Gates, fold: u32) -> Word {
        let width = self.program.folds[fold as usize].word_bits();
        let owners = self.fold_owners[fold as usize];
        if owners.is_public() || owners.only().is_some() {
            let owner = owners.only().unwrap_or(self.viewer);
            return self.enter(g, WordKind::Alone(fold), owner, width);
        }
        if self.totals == Totals::Replicated {
            return self.summands(g, fold, width);
        }
        let parties = (0..self.program.parties.len() as u8).map(PartyId);
        let shares: Vec<Word> = parties.map(|p| self.enter(g, WordKind::Share(fold), p, width)).collect();
        let join = |a: Word, b: Word| match self.program.sharing() {
            Sharing::Additive => gadget::add(g, &a, &b),
            Sharing::Boolean => a.iter().zip(&b).map(|(x, y)| g.xor(*x, *y)).collect(),
        };
        shares.into_iter().reduce(join).expect("a program has parties")
    }

    /// A fold's word of its summands.
    fn summands(&mut self, g: &mut Gates, fold: u32, width: u8) -> Word {
        let enter = |j| self.enter(g, WordKind::Summand(fold, j), self.viewer, width);
        let summands: Vec<Word> = (0..SUMMANDS).map(enter).collect();
        if let Fold::Sum { .. } = self.program.folds[fold as usize] {
            return gadget::sum(g, &summands);
        }
        let xor = |a: Word, b: Word| a.iter().zip(&b).map(|(x, y)| g.xor(*x, *y)).collect();
        summands.into_iter().reduce(xor).expect("a word has summands")
    }

    fn gaussian(&mut self, g: &mut Gates, fold: u32, width: usize) -> Word {
        let signed = self.program.folds[fold as usize].ty().signed;
        gadget::resize(&self.total(g, fold), width, signed)
    }

    /// The chosen noise: drawn by the other party for this viewer.
    fn noise(&mut self, g: &mut Gates, mechanism: u32, output: u32, width: u8) -> Word {
        self.enter(g, WordKind::Noise(mechanism, output), self.viewer.other(), width)
    }

    fn difference(
        &mut self,
        g: &mut Gates,
        (statistic, test, control): (Statistic, &[u32; 3], &[u32; 3]),
        parameters: &Difference,
        output: u32,
    ) -> Word {
        let arms = [(test, parameters.n[0]), (control, parameters.n[1])];
        if output == 0 {
            let mut means = arms.map(|([_, s, _], n)| {
                let sum = self.total(g, *s);
                let scaled = shift(&sum, parameters.lift_places);
                let mean = divide(g, &scaled, n);
                gadget::resize(&mean, scaled.len() + 1, false)
            });
            let width = means[0].len().max(means[1].len());
            means = means.map(|m| gadget::resize(&m, width, false));
            return gadget::sub(g, &means[0], &means[1]);
        }
        let root = statistic != Statistic::Variance;
        let places = if root { 2 * parameters.spread_places } else { parameters.spread_places };
        let parts = arms.map(|([_, s, q], n)| self.spread(g, *s, *q, n, places));
        let width = parts[0].len().max(parts[1].len()) + 1;
        let parts = parts.map(|p| gadget::resize(&p, width, false));
        let sum = gadget::add(g, &parts[0], &parts[1]);
        let value = if root { gadget::isqrt(g, &sum) } else { sum };
        gadget::resize(&value, width + 1, false)
    }

    /// `floor(max(0, n Q - S^2) 2^places / (n^2 (n - 1)))`. By Cauchy-Schwarz the difference is never negative for the true
    /// n; n is what the publisher says, so a false one must not wrap into a value that no noise is calibrated to.
    fn spread(&mut self, g: &mut Gates, s: u32, q: u32, n: u128, places: i32) -> Word {
        let (sum, squares) = (self.total(g, s), self.total(g, q));
        let width = (2 * sum.len()).max(squares.len() + bit_length(n));
        let sum = gadget::resize(&sum, width, false);
        let squares = gadget::resize(&squares, width, false);
        let n_word = gadget::constant(n, width);
        let scaled = gadget::mul(g, &squares, &n_word);
        let square = gadget::mul(g, &sum, &sum);
        let below = gadget::less(g, &scaled, &square, false);
        let difference = gadget::sub(g, &scaled, &square);
        let numerator = gadget::mask(g, !below, &difference);
        divide(g, &shift(&numerator, places), n * n * (n - 1))
    }
}

fn bit_length(x: u128) -> usize {
    (128 - x.leading_zeros()) as usize
}

/// Shifts left by `places`, or right when negative.
fn shift(word: &[Lit], places: i32) -> Word {
    if places >= 0 {
        let mut out = vec![Lit::FALSE; places as usize];
        out.extend_from_slice(word);
        return out;
    }
    let kept = word.get(places.unsigned_abs() as usize..).unwrap_or_default().to_vec();
    if kept.is_empty() { vec![Lit::FALSE] } else { kept }
}

/// Quotient by a public number: restoring division whose remainder is no wider than the divisor.
fn divide(g: &mut Gates, a: &[Lit], divisor: u128) -> Word {
    let size = bit_length(divisor) + 1;
    let divisor = gadget::constant(divisor, size);
    let mut quotient = gadget::constant(0, a.len());
    let mut rest = gadget::constant(0, size);
    for i in (0..a.len()).rev() {
        rest.pop();
        rest.insert(0, a[i]);
        let below = gadget::less(g, &rest, &divisor, false);
        let taken = gadget::mask(g, !below, &divisor);
        rest = gadget::sub(g, &rest, &taken);
        quotient[i] = !below;
    }
    quotient
}
