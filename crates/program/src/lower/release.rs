//! The release section for one viewer: shares come in, coins or candidates of noise come in, the viewer's
//! outputs go out.

use super::bits::SectionGates;
use super::linear::LinearSum;
use crate::graph::{DifferenceStatistic, MechanismKind, RowFold, Sharing};
use crate::{NodeId, Op, Owners, Program, Viewer};
use base::{Error, PartyId};
use circuits::gadgets::{self, LitWord};
use circuits::{Circuit, CircuitBuilder, InputBit, Lit, WireDriver};
use release::alias::Sampler;
use release::joint::{Combination, TAIL};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The release program of one viewer as a circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasePlan {
    /// Who learns the outputs.
    pub viewer: Viewer,
    /// Number of parties of the program.
    pub parties: usize,
    /// How the parties hold the totals.
    pub totals: TotalsForm,
    /// Gates; the inputs' words are indices into `words`.
    pub circuit: Circuit,
    /// Words that enter, in order.
    pub words: Vec<ReleaseWord>,
    /// Position in `Program::outputs` and bits of each output; with candidates of noise, those of each
    /// candidate in turn.
    pub outputs: Vec<(usize, Vec<Lit>)>,
    /// The bits of each candidate of noise, word by word; none where noise is of coins.
    pub candidates: Vec<Vec<Lit>>,
    /// Where servers hold what enters and every output is a sum of multiples of it: those sums, and no gate.
    pub sums: Option<Vec<LinearSum>>,
}

impl ReleasePlan {
    /// The bits that leave the computation: all outputs, then all candidates.
    pub fn roots(&self) -> impl Iterator<Item = Lit> + '_ {
        let outputs = self.outputs.iter().flat_map(|(_, bits)| bits);
        outputs.chain(self.candidates.iter().flatten()).copied()
    }

    /// How many they are.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.roots().count()
    }

    /// Among them those of one candidate's outputs; of candidate 0 where there are none, which is all.
    #[must_use]
    pub fn outputs_of(&self, candidate: usize) -> Range<usize> {
        let all: usize = self.outputs.iter().map(|(_, bits)| bits.len()).sum();
        let each = all / self.candidates.len().max(1);
        candidate * each..(candidate + 1) * each
    }

    /// Among them those of one candidate's noise.
    #[must_use]
    pub fn noise_of(&self, candidate: usize) -> Range<usize> {
        let outputs: usize = self.outputs.iter().map(|(_, bits)| bits.len()).sum();
        let before: usize = self.candidates[..candidate].iter().map(Vec::len).sum();
        outputs + before..outputs + before + self.candidates[candidate].len()
    }

    /// Cuts the bits of [`ReleasePlan::outputs_of`] into values of the outputs' types, in order.
    #[must_use]
    pub fn values(&self, bits: &[bool]) -> Vec<u128> {
        let (mut rest, each) = (bits, self.outputs.len() / self.candidates.len().max(1));
        let cut = |(_, lits): &(usize, Vec<Lit>)| {
            let (own, after) = rest.split_at(lits.len());
            rest = after;
            own.iter().enumerate().fold(0, |value, (i, bit)| value | u128::from(*bit) << i)
        };
        self.outputs[..each].iter().map(cut).collect()
    }

    /// The one party that knows all that enters, if it is the viewer: then nothing is computed together.
    #[must_use]
    pub fn alone(&self) -> Option<PartyId> {
        let viewer = self.viewer.only()?;
        let own = |w: &ReleaseWord| matches!(w.kind, WordKind::Alone(_)) && w.owner == viewer;
        self.words.iter().all(own).then_some(viewer)
    }

    /// A hash of words, gates and outputs: of the same program and noise, lowered alike.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("tacit release plan 1");
        for word in &self.words {
            hasher.update(format!("{word:?}").as_bytes());
        }
        let lit = |lit: Lit| (lit.wire() as u64) << 1 | u64::from(lit.inverted());
        for wire in &self.circuit.wires {
            let [kind, a, b] = match *wire {
                WireDriver::False => [0, 0, 0],
                WireDriver::Input(input) => [1, input.word.into(), input.bit.into()],
                WireDriver::Xor(a, b) => [2, a.into(), b.into()],
                WireDriver::And(a, b) => [3, lit(a), lit(b)],
            };
            hasher.update([kind, a, b].map(u64::to_le_bytes).as_flattened());
        }
        self.roots().for_each(|root| _ = hasher.update(&lit(root).to_le_bytes()));
        if let Some(sums) = &self.sums {
            hasher.update(format!("{sums:?}").as_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    /// Whether noise enters: coins, candidates, or what was drawn before.
    #[must_use]
    pub fn is_noised(&self) -> bool {
        self.words.iter().any(|word| word.kind.is_noise())
    }

    /// Whether noise was drawn before ([`super::Draws`]).
    #[must_use]
    pub fn is_drawn(&self) -> bool {
        self.words.iter().any(|word| matches!(word.kind, WordKind::NoiseSummand(..)))
    }

    /// The outputs of mechanisms whose noise enters, in order, each once.
    #[must_use]
    pub fn noises(&self) -> Vec<NoisedAt> {
        let mut seen = HashSet::new();
        let of = |word: &ReleaseWord| match word.kind {
            WordKind::Coins(at, _) | WordKind::NoiseSummand(at, _) => Some(at),
            _ => None,
        };
        self.words.iter().filter_map(of).filter(|at| seen.insert(*at)).collect()
    }
}

/// A word that enters a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReleaseWord {
    /// What it is.
    pub kind: WordKind,
    /// Who enters it.
    pub owner: PartyId,
    /// Bits.
    pub width: u8,
}

/// Kinds of words that enter a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WordKind {
    /// The owner's share of a fold's word: additive or exclusive-or, as [`Program::sharing`] says.
    Share(u32),
    /// A summand of a fold's word ([`TotalsForm::Replicated`]), which nobody enters: all servers but one hold
    /// it. The owner is the first viewer.
    Summand(u32, u8),
    /// A fold's total that the owner knows alone.
    Alone(u32),
    /// The owner's part of the coins of an output of a mechanism, in pieces; the coins are the exclusive or
    /// of all parties'.
    Coins(NoisedAt, u8),
    /// A summand of such a piece, as [`WordKind::Summand`]; its number is last. They enter before the rows.
    CoinSummand(NoisedAt, u8, u8),
    /// A summand of what was drawn of them: of the bits of a noise, or of its number where the release is
    /// sums.
    NoiseSummand(NoisedAt, u8),
    /// Candidate `1` for the noise of an output of a mechanism, two's complement: the owner has drawn it.
    Candidate(NoisedAt, u32),
}

impl WordKind {
    /// Whether it is noise, or coins of it.
    #[must_use]
    pub fn is_noise(self) -> bool {
        !matches!(self, Self::Share(_) | Self::Summand(..) | Self::Alone(_))
    }
}

/// An output of a mechanism, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NoisedAt {
    /// The mechanism.
    pub mechanism: u32,
    /// Its output.
    pub output: u32,
}

/// How the parties of a run hold the totals that nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TotalsForm {
    /// Every party of the program holds a share, additive or exclusive-or as [`Program::sharing`] says.
    #[default]
    Split,
    /// Four servers hold [`SUMMANDS`] summands, each of them all but one: of a sum the sum of them, of a best
    /// row's word the exclusive or.
    Replicated,
}

/// Which adders and comparisons a release has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// Of the fewest gates: where depth costs nothing.
    #[default]
    Ripple,
    /// Of logarithmic depth: where every level is a round trip.
    Shallow,
}

impl Depth {
    /// `a + b + carry`.
    pub(super) fn add(self, g: &mut CircuitBuilder, a: &[Lit], b: &[Lit], carry: Lit) -> LitWord {
        match self {
            Self::Ripple => gadgets::add_with(g, a, b, carry),
            Self::Shallow => gadgets::add_shallow(g, a, b, carry),
        }
    }
}

/// Summands of a total that is [`TotalsForm::Replicated`].
pub const SUMMANDS: u8 = 4;

/// Largest group of a `DifferenceSizes`: n^2 (n - 1) then fits 128 bits with room.
const GROUP: u128 = 1 << 40;
/// Most binary places of a `DifferenceSizes`, either way.
const PLACES: u32 = 128;
/// Most bits of a word: what does not fit enters in pieces.
const WORD: usize = 128;

/// Public parameters of one `Difference` mechanism, known once its group sizes are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DifferenceSizes {
    /// Group sizes, test and control; each 2 to 2^40.
    pub n: [u128; 2],
    /// Binary places of the difference; negative shifts right.
    pub lift_places: i32,
    /// Binary places of the variance or standard error.
    pub spread_places: i32,
}

/// Where the noise of a release comes from.
#[derive(Clone, Copy)]
pub enum NoiseSource<'a> {
    /// There is none: an `exact` program.
    None,
    /// Coins of all parties, by the sampler of an output.
    Coins(&'a dyn Fn(NoisedAt) -> &'a Sampler),
    /// One party draws so many candidates, of an output's width in bits; all enter, and each gives outputs of
    /// its own.
    Candidates(usize, &'a dyn Fn(NoisedAt) -> u8),
}

/// What a release is lowered for.
#[derive(Clone, Copy)]
pub struct Lowering<'a> {
    /// How totals are held.
    pub totals: TotalsForm,
    /// Adders and comparisons.
    pub depth: Depth,
    /// Who knows each fold's total.
    pub owners: &'a [Owners],
    /// Noise.
    pub noise: NoiseSource<'a>,
    /// Parameters of `Difference` mechanisms.
    pub difference: &'a dyn Fn(u32) -> Option<DifferenceSizes>,
}

impl<'a> Lowering<'a> {
    /// Of a program without mechanisms, whose totals are split.
    #[must_use]
    pub fn exact(owners: &'a [Owners]) -> Self {
        let (totals, depth) = (TotalsForm::default(), Depth::default());
        Self { totals, depth, owners, noise: NoiseSource::None, difference: &|_| None }
    }
}

/// Lowers the release section for `viewer`.
///
/// # Errors
/// When a `Difference` mechanism has no parameters yet or parameters out of range; when there is noise
/// and nothing says where it comes from; when candidates are asked for among other than two parties, or for
/// the public.
pub fn lower_release(program: &Program, viewer: Viewer, how: &Lowering<'_>) -> Result<ReleasePlan, Error> {
    let wrong = |d: &DifferenceSizes| {
        let places = [d.lift_places, d.spread_places].iter().any(|p| p.unsigned_abs() > PLACES);
        places || d.n.iter().any(|n| !(2..=GROUP).contains(n))
    };
    if (0..program.mechanisms.len() as u32).filter_map(how.difference).any(|d| wrong(&d)) {
        return Err(Error::misuse(format!(
            "a difference takes groups of 2 to {GROUP} and up to {PLACES} places"
        )));
    }
    let drawer = match (program.parties.len(), viewer) {
        (2, Viewer::Party(viewer)) => Some(viewer.other()),
        _ => None,
    };
    let count = match how.noise {
        NoiseSource::Candidates(count, _) if drawer.is_some() => count,
        NoiseSource::Candidates(..) => {
            return Err(Error::misuse("noise is drawn by one of two parties for the other"));
        }
        _ => 1,
    };
    let first = viewer.only().unwrap_or(PartyId(0));
    let (places, missing) = (HashMap::new(), None);
    let mut words = ReleaseWords { program, how, viewer: first, drawer, words: Vec::new(), places, missing };
    if let Some((sums, outputs)) = super::linear::sums(&mut words, viewer) {
        let (circuit, parties) = (CircuitBuilder::default().finish(), program.parties.len());
        let (words, candidates, totals) = (words.words, Vec::new(), how.totals);
        return Ok(ReleasePlan {
            viewer,
            parties,
            totals,
            circuit,
            words,
            outputs,
            candidates,
            sums: Some(sums),
        });
    }
    let mut gates = CircuitBuilder::default();
    let mut outputs = Vec::new();
    for candidate in 0..count as u32 {
        let mut bits = SectionGates::new(&program.release);
        bits.gates = gates;
        for index in program.outputs_to(viewer) {
            let mut leaf = |g: &mut CircuitBuilder, id: NodeId| words.leaf(g, id, candidate);
            outputs.push((index, bits.word(program.outputs[index].value, &mut leaf)));
        }
        gates = bits.gates;
    }
    if let Some(missing) = words.missing {
        return Err(Error::misuse(missing));
    }
    let candidates = words.candidates(&mut gates, count);
    let (circuit, words, parties) = (gates.finish(), words.words, program.parties.len());
    Ok(ReleasePlan { viewer, parties, totals: how.totals, circuit, words, outputs, candidates, sums: None })
}

/// What of a fold's word a release node reads.
#[derive(Clone, Copy)]
pub(super) enum FoldPart {
    Total,
    Index,
    Found,
}

impl FoldPart {
    /// The bits of the fold's word.
    pub(super) fn of(self, fold: &RowFold) -> std::ops::Range<usize> {
        let key = usize::from(fold.ty().width);
        let index = key + usize::from(RowFold::INDEX.width);
        match self {
            FoldPart::Total => 0..key,
            FoldPart::Index => key..index,
            FoldPart::Found => index..index + 1,
        }
    }
}

pub(super) struct ReleaseWords<'a, 'b> {
    pub program: &'a Program,
    pub how: &'a Lowering<'b>,
    /// The first of those who see it.
    viewer: PartyId,
    /// Who draws candidates.
    drawer: Option<PartyId>,
    pub words: Vec<ReleaseWord>,
    places: HashMap<ReleaseWord, u32>,
    /// What was needed and is not there.
    missing: Option<&'static str>,
}

impl ReleaseWords<'_, '_> {
    /// The word of a node whose value comes from outside the section.
    fn leaf(&mut self, g: &mut CircuitBuilder, id: NodeId, candidate: u32) -> Option<LitWord> {
        let program = self.program;
        match program.release.node(id).op {
            Op::Total(fold) => Some(self.total(g, fold)),
            Op::Index(fold) => Some(self.part(g, fold, FoldPart::Index)),
            Op::Found(fold) => Some(self.part(g, fold, FoldPart::Found)),
            Op::Noised(mechanism, output) => {
                let width = usize::from(program.release.ty(id).width);
                let at = NoisedAt { mechanism, output };
                Some(self.noised(g, at, width, candidate).unwrap_or_else(|missing| {
                    self.missing = Some(missing);
                    vec![Lit::FALSE; width]
                }))
            }
            _ => None,
        }
    }

    /// A value and its noise.
    fn noised(
        &mut self,
        g: &mut CircuitBuilder,
        at: NoisedAt,
        width: usize,
        candidate: u32,
    ) -> Result<LitWord, &'static str> {
        let NoisedAt { mechanism: m, output: o } = at;
        let value = match &self.program.mechanisms[m as usize].kind {
            MechanismKind::Gaussian(folds) => self.gaussian(g, folds[o as usize], width),
            kind @ MechanismKind::Joint { clamp, .. } => {
                let (combination, cell) =
                    kind.combination(o).ok_or("a joint mechanism has no such output")?;
                self.combination(g, combination, cell, *clamp, width)
            }
            MechanismKind::Difference { statistic, test, control } => {
                let Some(d) = (self.how.difference)(m) else {
                    return Err("a difference mechanism is lowered before its group sizes are published");
                };
                let value = self.difference(g, (*statistic, test, control), &d, o);
                gadgets::resize(&value, width, true)
            }
        };
        let noise = match self.how.noise {
            NoiseSource::None => return Err("a program with mechanisms is lowered without noise"),
            NoiseSource::Coins(sampler) => self.drawn(g, at, sampler(at)),
            NoiseSource::Candidates(_, bits) => {
                let owner = self.drawer.ok_or("candidates have a drawer")?;
                let word = self.enter(g, WordKind::Candidate(at, candidate), owner, bits(at));
                super::noise::NoiseGates { word, carry: Lit::FALSE }
            }
        };
        let word = gadgets::resize(&noise.word, width, true);
        Ok(self.how.depth.add(g, &value, &word, noise.carry))
    }

    /// Noise of coins that enter in words of up to [`WORD`] bits, or of what servers have drawn of theirs.
    fn drawn(&mut self, g: &mut CircuitBuilder, at: NoisedAt, sampler: &Sampler) -> super::noise::NoiseGates {
        if self.how.totals == TotalsForm::Replicated {
            let width = super::noise::width(sampler) as u8;
            let word = self.xored_summands(g, |j| WordKind::NoiseSummand(at, j), width);
            return super::noise::NoiseGates { word, carry: Lit::FALSE };
        }
        let mut coins = Vec::with_capacity(sampler.coins());
        for (piece, width) in pieces(sampler) {
            let parties = (0..self.program.parties.len() as u8).map(PartyId);
            let parts: Vec<LitWord> =
                parties.map(|p| self.enter(g, WordKind::Coins(at, piece), p, width)).collect();
            coins.extend(parts.into_iter().reduce(|a, b| xor(g, &a, &b)).expect("somebody has coins"));
        }
        super::noise::draw(g, sampler, &coins, self.how.depth)
    }

    fn xored_summands(
        &mut self,
        g: &mut CircuitBuilder,
        kind: impl Fn(u8) -> WordKind,
        width: u8,
    ) -> LitWord {
        let all: Vec<LitWord> = (0..SUMMANDS).map(|j| self.enter(g, kind(j), self.viewer, width)).collect();
        all.into_iter().reduce(|a, b| xor(g, &a, &b)).expect("a word has summands")
    }

    /// The bits of each candidate, in the order in which its words are entered; none where noise is of coins.
    fn candidates(&mut self, g: &mut CircuitBuilder, count: usize) -> Vec<Vec<Lit>> {
        if !matches!(self.how.noise, NoiseSource::Candidates(..)) {
            return Vec::new();
        }
        let mut all = vec![Vec::new(); count];
        for word in self.words.clone() {
            if let WordKind::Candidate(_, candidate) = word.kind {
                all[candidate as usize].extend(self.enter(g, word.kind, word.owner, word.width));
            }
        }
        all
    }

    fn enter(&mut self, g: &mut CircuitBuilder, kind: WordKind, owner: PartyId, width: u8) -> LitWord {
        let word = self.place(kind, owner, width);
        let input = |bit| InputBit { owner: Some(owner), word, bit };
        (0..width.into()).map(|bit| g.input(input(bit))).collect()
    }

    /// The place of a word among those that enter.
    fn place(&mut self, kind: WordKind, owner: PartyId, width: u8) -> u32 {
        let word = ReleaseWord { kind, owner, width };
        *self.places.entry(word).or_insert_with(|| {
            self.words.push(word);
            self.words.len() as u32 - 1
        })
    }

    /// Forgets all words.
    pub fn clear(&mut self) {
        self.words.clear();
        self.places.clear();
    }

    /// Who enters a fold's word, if one does.
    pub fn knows(&self, fold: u32) -> Option<PartyId> {
        let owners = self.how.owners[fold as usize];
        owners.only().or(owners.is_public().then_some(self.viewer))
    }

    /// The words that a fold's total, or a noise, is the sum of where servers hold it.
    pub fn addends(&mut self, of: Addend) -> Vec<u32> {
        let (kind, width): (&dyn Fn(u8) -> WordKind, u8) = match of {
            Addend::Total(fold) => {
                let width = self.program.folds[fold as usize].word_bits();
                if let Some(owner) = self.knows(fold) {
                    return vec![self.place(WordKind::Alone(fold), owner, width)];
                }
                (&move |j| WordKind::Summand(fold, j), width)
            }
            Addend::Noise(at, width) => (&move |j| WordKind::NoiseSummand(at, j), width),
        };
        (0..SUMMANDS).map(|j| self.place(kind(j), self.viewer, width)).collect()
    }

    /// A fold's total.
    fn total(&mut self, g: &mut CircuitBuilder, fold: u32) -> LitWord {
        self.part(g, fold, FoldPart::Total)
    }

    /// A part of a fold's word.
    fn part(&mut self, g: &mut CircuitBuilder, fold: u32, part: FoldPart) -> LitWord {
        let mut word = self.word(g, fold);
        word.drain(part.of(&self.program.folds[fold as usize])).collect()
    }

    /// A fold's word: entered by the one who knows it, or put together from everybody's shares.
    fn word(&mut self, g: &mut CircuitBuilder, fold: u32) -> LitWord {
        let width = self.program.folds[fold as usize].word_bits();
        if let Some(owner) = self.knows(fold) {
            return self.enter(g, WordKind::Alone(fold), owner, width);
        }
        if self.how.totals == TotalsForm::Replicated {
            return self.summands(g, fold, width);
        }
        let parties = (0..self.program.parties.len() as u8).map(PartyId);
        let shares: Vec<LitWord> = parties.map(|p| self.enter(g, WordKind::Share(fold), p, width)).collect();
        let join = |a: LitWord, b: LitWord| match self.program.sharing() {
            Sharing::Additive => self.how.depth.add(g, &a, &b, Lit::FALSE),
            Sharing::Boolean => xor(g, &a, &b),
        };
        shares.into_iter().reduce(join).expect("a program has parties")
    }

    /// A fold's word of its summands.
    fn summands(&mut self, g: &mut CircuitBuilder, fold: u32, width: u8) -> LitWord {
        let kind = |j| WordKind::Summand(fold, j);
        if !matches!(self.program.folds[fold as usize], RowFold::Sum { .. }) {
            return self.xored_summands(g, kind, width);
        }
        let summands: Vec<LitWord> =
            (0..SUMMANDS).map(|j| self.enter(g, kind(j), self.viewer, width)).collect();
        match self.how.depth {
            Depth::Ripple => gadgets::sum(g, &summands),
            Depth::Shallow => gadgets::sum_shallow(g, summands),
        }
    }

    fn gaussian(&mut self, g: &mut CircuitBuilder, fold: u32, width: usize) -> LitWord {
        let signed = self.program.folds[fold as usize].ty().signed;
        gadgets::resize(&self.total(g, fold), width, signed)
    }

    /// A combination of a cell's n, S and Q: R is public, so multiples are sums of shifts.
    fn combination(
        &mut self,
        g: &mut CircuitBuilder,
        combination: Combination,
        [n, s, q]: [u32; 3],
        clamp: u128,
        width: usize,
    ) -> LitWord {
        let depth = self.how.depth;
        let minus = |g: &mut CircuitBuilder, a: &[Lit], b: &[Lit]| {
            let b: LitWord = b.iter().map(|bit| !*bit).collect();
            depth.add(g, a, &b, Lit::TRUE)
        };
        match combination {
            Combination::Rows => self.gaussian(g, n, width),
            Combination::Value => self.gaussian(g, s, width),
            Combination::Tail => {
                let (s, q) = (self.gaussian(g, s, width), self.gaussian(g, q, width));
                let all = times(g, depth, clamp, &s);
                minus(g, &all, &q)
            }
            Combination::Centred => {
                let (n, s) = (self.gaussian(g, n, width), self.gaussian(g, s, width));
                let most = times(g, depth, clamp, &n);
                minus(g, &up(&s, 1), &most)
            }
            // 32 (R S - Q) - R^2 n = R (32 S - R n) - 32 Q.
            Combination::CentredTail => {
                let [n, s, q] = [n, s, q].map(|fold| self.gaussian(g, fold, width));
                let places = TAIL.trailing_zeros();
                let most = times(g, depth, clamp, &n);
                let inner = minus(g, &up(&s, places), &most);
                let outer = times(g, depth, clamp, &inner);
                minus(g, &outer, &up(&q, places))
            }
        }
    }

    fn difference(
        &mut self,
        g: &mut CircuitBuilder,
        (statistic, test, control): (DifferenceStatistic, &[u32; 3], &[u32; 3]),
        parameters: &DifferenceSizes,
        output: u32,
    ) -> LitWord {
        let arms = [(test, parameters.n[0]), (control, parameters.n[1])];
        if output == 0 {
            let mut means = arms.map(|([_, s, _], n)| {
                let sum = self.total(g, *s);
                let scaled = shift(&sum, parameters.lift_places);
                let mean = divide(g, &scaled, n);
                gadgets::resize(&mean, scaled.len() + 1, false)
            });
            let width = means[0].len().max(means[1].len());
            means = means.map(|m| gadgets::resize(&m, width, false));
            return gadgets::sub(g, &means[0], &means[1]);
        }
        let root = statistic != DifferenceStatistic::Variance;
        let places = if root { 2 * parameters.spread_places } else { parameters.spread_places };
        let parts = arms.map(|([_, s, q], n)| self.spread(g, *s, *q, n, places));
        let width = parts[0].len().max(parts[1].len()) + 1;
        let parts = parts.map(|p| gadgets::resize(&p, width, false));
        let sum = gadgets::add(g, &parts[0], &parts[1]);
        let value = if root { gadgets::isqrt(g, &sum) } else { sum };
        gadgets::resize(&value, width + 1, false)
    }

    /// `floor(max(0, n Q - S^2) 2^places / (n^2 (n - 1)))`. By Cauchy-Schwarz the difference is never
    /// negative for the true n; n is what the publisher says, so a false one must not wrap into a value that
    /// no noise is calibrated to.
    fn spread(&mut self, g: &mut CircuitBuilder, s: u32, q: u32, n: u128, places: i32) -> LitWord {
        let (sum, squares) = (self.total(g, s), self.total(g, q));
        let width = (2 * sum.len()).max(squares.len() + bit_length(n));
        let sum = gadgets::resize(&sum, width, false);
        let squares = gadgets::resize(&squares, width, false);
        let n_word = gadgets::constant(n, width);
        let scaled = gadgets::mul(g, &squares, &n_word);
        let square = gadgets::mul(g, &sum, &sum);
        let below = gadgets::less(g, &scaled, &square, false);
        let difference = gadgets::sub(g, &scaled, &square);
        let numerator = gadgets::mask(g, !below, &difference);
        divide(g, &shift(&numerator, places), n * n * (n - 1))
    }
}

/// What is added up where servers hold it.
pub(super) enum Addend {
    /// A fold's total.
    Total(u32),
    /// A noise of so many bits.
    Noise(NoisedAt, u8),
}

/// The words that a draw's coins enter in: their numbers and bits.
pub(super) fn pieces(sampler: &Sampler) -> impl Iterator<Item = (u8, u8)> + use<> {
    let coins = sampler.coins();
    (0..).zip((0..coins).step_by(WORD)).map(move |(piece, from)| (piece, WORD.min(coins - from) as u8))
}

fn xor(g: &mut CircuitBuilder, a: &[Lit], b: &[Lit]) -> LitWord {
    a.iter().zip(b).map(|(x, y)| g.xor(*x, *y)).collect()
}

/// Shifts left within the width.
fn up(word: &[Lit], places: u32) -> LitWord {
    let mut out = vec![Lit::FALSE; places as usize];
    out.extend_from_slice(word);
    out.truncate(word.len());
    out
}

/// A public multiple, within the width: one sum or difference for each digit of the factor but the first,
/// where digits are -1, 0, 1 and no two neighbours are both not 0 (Reitwiesner 1960).
fn times(g: &mut CircuitBuilder, depth: Depth, factor: u128, word: &[Lit]) -> LitWord {
    let (mut rest, mut places, mut sum) = (factor.cast_signed(), 0, None::<LitWord>);
    while rest != 0 {
        if rest & 1 == 1 {
            let minus = rest & 3 == 3;
            let mut term = up(word, places);
            if minus {
                term.iter_mut().for_each(|bit| *bit = !*bit);
            }
            let carry = if minus { Lit::TRUE } else { Lit::FALSE };
            let before = sum.take().unwrap_or_else(|| vec![Lit::FALSE; word.len()]);
            sum = Some(depth.add(g, &before, &term, carry));
            rest += if minus { 1 } else { -1 };
        }
        rest >>= 1;
        places += 1;
    }
    sum.unwrap_or_else(|| vec![Lit::FALSE; word.len()])
}

fn bit_length(x: u128) -> usize {
    (128 - x.leading_zeros()) as usize
}

/// Shifts left by `places`, or right when negative.
fn shift(word: &[Lit], places: i32) -> LitWord {
    if places >= 0 {
        let mut out = vec![Lit::FALSE; places as usize];
        out.extend_from_slice(word);
        return out;
    }
    let kept = word.get(places.unsigned_abs() as usize..).unwrap_or_default().to_vec();
    if kept.is_empty() { vec![Lit::FALSE] } else { kept }
}

/// Quotient by a public number: restoring division whose remainder is no wider than the divisor.
fn divide(g: &mut CircuitBuilder, a: &[Lit], divisor: u128) -> LitWord {
    let size = bit_length(divisor) + 1;
    let divisor = gadgets::constant(divisor, size);
    let mut quotient = gadgets::constant(0, a.len());
    let mut rest = gadgets::constant(0, size);
    for i in (0..a.len()).rev() {
        rest.pop();
        rest.insert(0, a[i]);
        let below = gadgets::less(g, &rest, &divisor, false);
        let taken = gadgets::mask(g, !below, &divisor);
        rest = gadgets::sub(g, &rest, &taken);
        quotient[i] = !below;
    }
    quotient
}
