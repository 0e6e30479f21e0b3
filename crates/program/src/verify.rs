//! The policy: what a program may reveal to whom, and what it costs in privacy. Runs before anything is sent.
//!
//! The hash says *which* program all parties hold; only this says whether it is *harmless*. Rules (a test
//! each): R1 a value revealed in a `dp` program depends on its viewer's data alone or on noised values for
//! that viewer; R2 raw totals enter nothing but mechanisms; R3 what a mechanism noises is a sum of rows whose
//! last operation is a clamp or a bit; R4 sensitivities are derived, degrees of matching included, cells of
//! one mechanism are provably disjoint; R5 the local policy caps rho per viewer and the number of outputs; R6
//! `exact` programs need the owner's permission; R7 a sum cannot wrap at the number of rows at hand; R8 best
//! rows and lists are exact, so a `dp` program has none; R9 a fold adds nothing in a row that a party of its
//! data does not have, unless it asks whether the party has it.

use crate::graph::{MechanismKind, NoiseMechanism, Op};
use crate::guards::condition;
use crate::{Class, Guarded, NodeFacts, NodeId, Owners, Program, RowFold, ValueRange, ValueType, Viewer};
use base::{Error, PartyId};
use release::SumChange;
use release::joint::Change;
use release::rational::{Rational, ratio};
use std::collections::HashSet;

/// What the local policy file allows.
#[derive(Clone, Debug)]
pub struct VerifierPolicy {
    /// Most zCDP that one viewer may be charged in one release.
    pub max_rho: Rational,
    /// Most outputs of one study.
    pub max_outputs: usize,
    /// Whether exact outputs may be revealed to others.
    pub allow_exact: bool,
}

impl Default for VerifierPolicy {
    fn default() -> Self {
        Self { max_rho: ratio(1, 1), max_outputs: 256, allow_exact: false }
    }
}

/// What one mechanism is charged, derived from the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MechanismCharge {
    /// Index of the mechanism.
    pub mechanism: u32,
    /// The viewer.
    pub to: Viewer,
    /// zCDP spent.
    pub rho: Rational,
    /// What one joined row changes in each noised total, by output; of a sum of one party's own rows, what
    /// one of these changes. Empty for `Joint`, which has `joint`, and for `Difference`, whose scale needs
    /// group sizes.
    pub changes: Vec<SumChange>,
    /// How many joined rows one row of a protected party changes, or one line of it of its own rows where all
    /// cells are of one party's rows alone. Each of them may be in a cell of its own.
    pub degree: u32,
    /// Of a joint mechanism: with which rho [`release::joint`] gives its noise. Its own, by the square of how
    /// many joined rows one row of a protected party changes: their changes add up, at most in length.
    pub joint: Option<Rational>,
}

impl MechanismCharge {
    /// The most that one row of a protected party changes an output of a Gaussian mechanism.
    #[must_use]
    pub fn sensitivity(&self, output: usize) -> Option<u128> {
        self.changes.get(output)?.stays.checked_mul(self.degree.into())
    }

    /// The rho of what one joined row changes: so many of them change outputs by vectors that add up, at
    /// most in length.
    #[must_use]
    pub fn rho_per_row(&self) -> Rational {
        let degree = u64::from(self.degree);
        &self.rho * ratio(1, degree * degree)
    }

    /// sigma^2 of an output of a Gaussian mechanism. `None` when it is no ratio of 128-bit numbers.
    #[must_use]
    pub fn sigma2(&self, output: usize) -> Option<Rational> {
        short(self.changes.get(output)?.variance(&self.rho_per_row()))
    }
}

/// What `verify` derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// One entry per mechanism.
    pub charges: Vec<MechanismCharge>,
    /// zCDP by party, of what it alone sees.
    pub rho: Vec<Rational>,
    /// zCDP of what everybody sees; each party is charged it as well.
    pub public: Rational,
    /// For `exact` programs: labels revealed, by viewer, for the consent screen.
    pub exact: Vec<(Viewer, String)>,
}

/// Checks a program against a policy for a number of rows of the joined table.
///
/// # Errors
/// [`base::Fault::Refused`] naming the rule and the place in the program.
pub fn verify(program: &Program, policy: &VerifierPolicy, rows: u64) -> Result<Audit, Error> {
    program.check()?;
    let facts = program.row_facts();
    let refuse = |rule: &str, text: String| Error::refused(format!("refused by rule {rule}: {text}"));
    let met = program.outputs.len() + program.lists.len();
    if met > policy.max_outputs {
        let cap = policy.max_outputs;
        return Err(refuse("R5 (outputs)", format!("{met} outputs, the local policy allows {cap}")));
    }
    check_sums(program, &facts, rows).map_err(|t| refuse("R7 (overflow)", t))?;
    program.check_absent(&facts).map_err(|t| refuse("R9 (absent rows)", t))?;
    let fold_owners = program.fold_owners();
    let charges = match program.class {
        Class::Exact if !policy.allow_exact => {
            return Err(refuse(
                "R6 (exact)",
                "the program reveals exact values; set allow_exact = true in the policy to consent".into(),
            ));
        }
        Class::Exact if !program.mechanisms.is_empty() => {
            return Err(refuse("R6 (exact)", "an exact program has no mechanisms; use class dp".into()));
        }
        Class::Exact => Vec::new(),
        Class::Dp if program.folds.iter().any(|f| !matches!(f, RowFold::Sum { .. })) => {
            return Err(refuse("R8 (exact folds)", "a dp program has sums only; use class exact".into()));
        }
        Class::Dp => {
            check_release(program, &fold_owners).map_err(|(rule, text)| refuse(rule, text))?;
            derive(program, &facts)?
        }
    };
    let no_sum = || refuse("R5 (rho)", "the shares of rho have no exact sum".into());
    let spent = |viewer: Viewer| {
        let of_viewer = charges.iter().filter(|charge| charge.to == viewer);
        let spent = of_viewer.map(|charge| &charge.rho).try_fold(ratio(0, 1), |sum, rho| short(sum + rho));
        spent.ok_or_else(no_sum)
    };
    let public = spent(Viewer::Public)?;
    let mut rho = Vec::with_capacity(program.parties.len());
    for (i, party) in program.parties.iter().enumerate() {
        let own = spent(PartyId(i as u8).into())?;
        let all = short(&own + &public).ok_or_else(no_sum)?;
        if all > policy.max_rho {
            let cap = &policy.max_rho;
            return Err(refuse(
                "R5 (rho)",
                format!("{party} would be charged {all}, the policy allows {cap}"),
            ));
        }
        rho.push(own);
    }
    let exact = match program.class {
        Class::Exact => {
            let lists = program.lists.iter().map(|l| (l.to.into(), l.label.clone()));
            program.outputs.iter().map(|o| (o.to, o.label.clone())).chain(lists).collect()
        }
        Class::Dp => Vec::new(),
    };
    Ok(Audit { charges, rho, public, exact })
}

fn check_sums(program: &Program, facts: &[NodeFacts], rows: u64) -> Result<(), String> {
    for (i, fold) in (0..).zip(&program.folds) {
        if !matches!(fold, RowFold::Sum { .. }) {
            continue;
        }
        let ty = program.row.ty(fold.value());
        // Without bounds the value is unsigned.
        let high = facts[fold.value().index()].bounds.map_or(ty.max(), ValueRange::magnitude);
        let total = high.checked_mul(u128::from(rows));
        if total.is_none_or(|t| t > fold.ty().max()) {
            return Err(format!(
                "{}: {rows} rows of up to {high} do not fit {}; use a wider sum",
                program.names.fold(i),
                fold.ty()
            ));
        }
    }
    Ok(())
}

/// What a release node carries: raw owners, and the viewers for whom it is noised.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Taint {
    raw: Owners,
    noised: Owners,
}

/// R2 and R1; an error is the rule and the text.
fn check_release(program: &Program, fold_owners: &[Owners]) -> Result<(), (&'static str, String)> {
    let mut taints: Vec<Taint> = Vec::with_capacity(program.release.nodes.len());
    for (i, node) in program.release.nodes.iter().enumerate() {
        let mut taint = Taint { raw: Owners::PUBLIC, noised: Owners::PUBLIC };
        node.op.operands(|a| {
            taint.raw = taint.raw.union(taints[a.index()].raw);
            taint.noised = taint.noised.union(taints[a.index()].noised);
        });
        match node.op {
            Op::Total(f) => taint.raw = fold_owners[f as usize],
            // What is noised for the public is so for everybody.
            Op::Noised(m, _) => {
                let to = program.mechanisms[m as usize].to.only();
                taint.noised = to.map_or(Owners::PUBLIC, Owners::one);
            }
            _ => {}
        }
        let mut operands = 0;
        node.op.operands(|_| operands += 1);
        if operands > 0 && !taint.raw.is_public() && taint.raw.only().is_none() {
            let name = program.names.release(i);
            return Err((
                "R2 (raw totals)",
                format!("{name} computes on a raw total; only mechanisms may use it"),
            ));
        }
        taints.push(taint);
    }
    for output in &program.outputs {
        let taint = taints[output.value.index()];
        if !output.to.knows(taint.raw) || !output.to.knows(taint.noised) {
            let (viewer, name) =
                (output.to.name(&program.parties), program.names.release(output.value.index()));
            return Err((
                "R1 (reveal)",
                format!(
                    "{:?} for {viewer} depends on others' data without noise for that viewer: {name}. Noise \
                     it by a mechanism for {viewer}; a sum of {viewer}'s own columns is its own under `rows \
                     any` only, since over matched rows it tells which of them the others have",
                    output.label
                ),
            ));
        }
    }
    Ok(())
}

fn derive(program: &Program, facts: &[NodeFacts]) -> Result<Vec<MechanismCharge>, Error> {
    (0..program.mechanisms.len() as u32).map(|mechanism| charge(program, facts, mechanism)).collect()
}

/// What one mechanism is charged.
pub(crate) fn charge(
    program: &Program,
    facts: &[NodeFacts],
    mechanism: u32,
) -> Result<MechanismCharge, Error> {
    let own = program.names.mechanism(mechanism);
    let derivation = Derivation { program, facts, mechanism: &program.mechanisms[mechanism as usize], own };
    derivation
        .charge(mechanism)
        .map_err(|(rule, text)| Error::refused(format!("refused by rule {rule}: {text}")))
}

/// What one mechanism is charged, while it is derived.
struct Derivation<'a> {
    program: &'a Program,
    facts: &'a [NodeFacts],
    mechanism: &'a NoiseMechanism,
    /// What the program calls it.
    own: String,
}

/// A ratio of 128-bit numbers: what a text can say.
fn short(value: Rational) -> Option<Rational> {
    (value.numer().bits().max(value.denom().bits()) <= 128).then_some(value)
}

/// A rule, and how it is broken.
type Broken = (&'static str, String);

impl Derivation<'_> {
    fn charge(&self, index: u32) -> Result<MechanismCharge, Broken> {
        let (own, to, rho) = (&self.own, self.mechanism.to, self.mechanism.rho.clone());
        if rho <= ratio(0, 1) {
            return Err(("R5 (rho)", format!("{own} spends no rho, so its noise would be infinite")));
        }
        let degree = degree(self.program, self.facts, self.mechanism);
        if degree > 1 && matches!(self.mechanism.kind, MechanismKind::Difference { .. }) {
            let text = format!(
                "{own} noises a difference of means, whose scale holds for rows that change one joined row, \
                 not {degree}; release sums instead"
            );
            return Err(("R4 (degree)", text));
        }
        let ranges = self.ranges()?;
        let cells = self.cells()?;
        let moves = self.moves(&cells)?;
        self.check_known_rows(&cells, moves)?;
        let joint = self.joint(degree)?;
        let change = |range: ValueRange| SumChange {
            stays: range.width(),
            moves: if moves { range.magnitude() } else { 0 },
        };
        let gaussian = matches!(self.mechanism.kind, MechanismKind::Gaussian(_));
        let changes = ranges.into_iter().filter(|_| gaussian).map(change).collect();
        let charge = MechanismCharge { mechanism: index, to, rho, changes, degree, joint };
        for output in 0..charge.changes.len() {
            if charge.sensitivity(output).is_none() {
                let text = format!("{own}: the sensitivity of an output exceeds 128 bits; clamp lower");
                return Err(("R4 (degree)", text));
            }
            if charge.sigma2(output).is_none() {
                let text = format!(
                    "{own}: the variance of its noise is no ratio of 128-bit numbers; use a simpler rho"
                );
                return Err(("R5 (rho)", text));
            }
        }
        Ok(charge)
    }

    /// The range of what one row adds to each fold.
    fn ranges(&self) -> Result<Vec<ValueRange>, Broken> {
        let range = |fold: u32| {
            self.value(fold).clamped_range().ok_or_else(|| {
                let (own, name) = (&self.own, self.name(fold));
                let text = format!(
                    "{own} noises {name}, whose rows have no bound of the program's own; sum `clamp x 100`, \
                     or \
                     `clamp x -50 50` of a signed value"
                );
                ("R3 (clamp)", text)
            })
        };
        self.mechanism.kind.folds().into_iter().map(range).collect()
    }

    /// Folds that must be disjoint, since one charge covers all of them.
    fn cells(&self) -> Result<Vec<u32>, Broken> {
        let (program, facts, own) = (self.program, self.facts, &self.own);
        match &self.mechanism.kind {
            MechanismKind::Gaussian(folds) => Ok(folds.clone()),
            MechanismKind::Joint { clamp, cells, .. } => {
                check_cells(program, facts, *clamp, cells)
                    .map_err(|t| ("R4 (cells)", format!("{own}: {t}")))?;
                // Where n is 0, S and Q are.
                Ok(cells.iter().map(|[n, ..]| *n).collect())
            }
            MechanismKind::Difference { test, control, .. } => {
                check_arms(program, facts, test, control)
                    .map_err(|t| ("R4 (arms)", format!("{own}: {t}")))?;
                Ok(Vec::new())
            }
        }
    }

    /// Whether a row can move between cells when data of others than the viewer change.
    fn moves(&self, cells: &[u32]) -> Result<bool, Broken> {
        let fixed = |guarded: &Guarded| self.mechanism.to.knows(self.owners(*guarded));
        let mut moves = false;
        for (k, a) in cells.iter().enumerate() {
            for b in &cells[k + 1..] {
                let separating = self.value(*a).guards.separating(&self.value(*b).guards);
                if separating.is_empty() {
                    let (own, a, b) = (&self.own, self.name(*a), self.name(*b));
                    let text = format!("{own}: {a} and {b} are not provably disjoint; charge them apart");
                    return Err(("R4 (disjoint)", text));
                }
                // A cell is fixed for a row when the viewer knows something that separates.
                moves |= !separating.iter().any(fixed);
            }
        }
        Ok(moves)
    }

    /// Noise of outcomes alone holds if the viewer knows which rows are in which cell.
    fn check_known_rows(&self, cells: &[u32], moves: bool) -> Result<(), Broken> {
        let to = self.mechanism.to;
        let MechanismKind::Joint { change: Change::Outcome, .. } = self.mechanism.kind else { return Ok(()) };
        let Some(n) = cells.iter().find(|n| moves || !to.knows(self.value(**n).owners)) else {
            return Ok(());
        };
        let text = format!(
            "{} takes {} as known to {}, whose own columns do not decide it; write `rows hidden`",
            self.own,
            self.name(*n),
            to.name(&self.program.parties)
        );
        Err(("R4 (known rows)", text))
    }

    /// The rho with which [`release::joint`] gives the noise.
    fn joint(&self, degree: u32) -> Result<Option<Rational>, Broken> {
        if !matches!(self.mechanism.kind, MechanismKind::Joint { .. }) {
            return Ok(None);
        }
        let square = u64::from(degree) * u64::from(degree);
        let least = short(&self.mechanism.rho * ratio(1, square));
        least.map(Some).ok_or_else(|| ("R5 (rho)", format!("{}: rho has too many digits", self.own)))
    }

    /// Whose data a guard is about.
    fn owners(&self, guarded: Guarded) -> Owners {
        match guarded {
            Guarded::Column(column) => {
                self.program.columns[column as usize].owners(self.program.parties.len())
            }
            Guarded::Node(id) => self.facts[id.index()].owners,
        }
    }

    fn value(&self, fold: u32) -> &NodeFacts {
        &self.facts[self.program.folds[fold as usize].value().index()]
    }

    fn name(&self, fold: u32) -> String {
        self.program.names.fold(fold)
    }
}

/// How many joined rows, or of their own rows, one row of those who are protected changes.
fn degree(program: &Program, facts: &[NodeFacts], mechanism: &NoiseMechanism) -> u32 {
    let alone = largest(&program.alone, mechanism.to);
    let stands = |f: &u32| stands_alone(program, &facts[program.folds[*f as usize].value().index()]);
    match &mechanism.kind {
        MechanismKind::Gaussian(folds) if !folds.is_empty() && folds.iter().all(stands) => alone,
        _ => largest(&program.degrees, mechanism.to).max(alone),
    }
}

/// The most joined rows that one row of those who are protected from a viewer changes, or of their own rows
/// one line.
///
/// Each of them changes its cell, or with `moves` its two cells, by at most what a row adds, D. So all cells
/// together move by a vector that is the sum of `degree` vectors of length D, or D times the root of 2: at
/// most `degree` times as long.
fn largest(degrees: &[u32], viewer: Viewer) -> u32 {
    let is_viewer = |party: usize| viewer.only().is_some_and(|viewer| viewer.index() == party);
    let others = degrees.iter().enumerate().filter(|(party, _)| !is_viewer(*party));
    others.map(|(_, degree)| *degree).max().unwrap_or(1)
}

/// Whether a sum is of one party's columns alone, and a row that the party has not adds nothing to it: then
/// one row of that party changes one term, one line of it as many as `alone` says, and rows of others none,
/// whatever the match joins them to. So a term is 0 there if it needs a column to equal another number than
/// the one that the column holds in rows which are not there.
///
/// All cells of a mechanism must be such: a row that changes a cell of both kinds would change one by D and
/// another by `degree` D' in units of the noise that is 1 each, the root of 2 together.
fn stands_alone(program: &Program, facts: &NodeFacts) -> bool {
    let Some(owner) = facts.owners.only() else { return false };
    facts.guards.iter().any(|(guarded, range)| {
        let Guarded::Column(column) = guarded else { return false };
        let column = &program.columns[column as usize];
        let absent = column.without(owner).and_then(|pattern| column.ty.number(pattern));
        absent.is_some_and(|absent| !range.contains(ValueRange::exactly(absent)))
    })
}

/// The shape that a joint mechanism's charge rests on.
fn check_cells(
    program: &Program,
    facts: &[NodeFacts],
    clamp: u128,
    cells: &[[u32; 3]],
) -> Result<(), String> {
    let high = |f: u32| most(&facts[program.folds[f as usize].value().index()]);
    for cell @ [n, s, _] in cells {
        if high(*n) != 1 {
            return Err(format!("{} is not a count of rows", program.names.fold(*n)));
        }
        // The clamp's multiples of n have the room that the sums were checked for.
        if high(*s) != clamp {
            let name = program.names.fold(*s);
            return Err(format!("{name} adds up to {} for a row; the clamp is that, not {clamp}", high(*s)));
        }
        check_squares(program, facts, cell)?;
    }
    Ok(())
}

/// The shape that a `Difference` mechanism's sensitivity rests on: disjoint arms, n a count, Q the square of
/// S's bound.
fn check_arms(
    program: &Program,
    facts: &[NodeFacts],
    test: &[u32; 3],
    control: &[u32; 3],
) -> Result<(), String> {
    let value = |f: u32| &facts[program.folds[f as usize].value().index()];
    for arm @ [n, ..] in [test, control] {
        if value(*n).owners.only().is_none() || most(value(*n)) != 1 {
            return Err(format!(
                "{} is not a count of one party's rows; under `rows any` a party counts its own",
                program.names.fold(*n)
            ));
        }
        check_squares(program, facts, arm)?;
    }
    if value(test[1]).guards.separating(&value(control[1]).guards).is_empty() {
        return Err("the arms are not provably disjoint".into());
    }
    Ok(())
}

/// Whether Q sums the squares of what S sums, in rows that n counts.
fn check_squares(program: &Program, facts: &[NodeFacts], [n, s, q]: &[u32; 3]) -> Result<(), String> {
    let name = |f: &u32| program.names.fold(*f);
    let node = |f: &u32| program.folds[*f as usize].value();
    let high = |f: &u32| most(&facts[node(f).index()]);
    if [s, q].iter().any(|f| facts[node(f).index()].bounds.is_none_or(|b| b.low < 0)) {
        return Err(format!("{} or {} may be below 0", name(s), name(q)));
    }
    if high(s).checked_mul(high(s)) != Some(high(q)) {
        return Err(format!("{} is not bounded by the square of what bounds {}", name(q), name(s)));
    }
    if !is_square((program, facts), node(s), node(q), DEPTH, &mut HashSet::new()) {
        return Err(format!("{} does not sum the squares of what {} sums", name(q), name(s)));
    }
    // Else n Q - S^2 could be negative or unbounded, and no sensitivity would hold.
    if !counts(program, facts, node(n), node(s)) {
        return Err(format!("{} sums rows that {} does not provably count", name(s), name(n)));
    }
    Ok(())
}

/// How deep the structural comparisons below look. Beyond it a study is refused, not followed.
const DEPTH: u32 = 64;

/// Whether `q` is built exactly like `s` with every leaf value squared: same selections, squared values.
///
/// `known` holds pairs found to match, so that shared branches are compared once.
fn is_square(
    of: (&Program, &[NodeFacts]),
    s: NodeId,
    q: NodeId,
    depth: u32,
    known: &mut HashSet<(NodeId, NodeId)>,
) -> bool {
    if depth == 0 {
        return false;
    }
    if known.contains(&(s, q)) {
        return true;
    }
    let (program, facts) = of;
    let row = &program.row;
    // A cast that cuts, or a product that wraps, is of another number.
    let range = |id: NodeId| facts[id.index()].bounds;
    let keeps = |from: NodeId, to: NodeId| range(from).is_some() && range(from) == range(to);
    let squares = |x: NodeId| {
        let most = range(x).and_then(|range| range.magnitude().checked_mul(range.magnitude()));
        most.is_some() && range(q).map(ValueRange::magnitude) == most
    };
    let mut same = |x: &NodeId, y: &NodeId| is_square(of, *x, *y, depth - 1, known);
    let square = match (&row.node(s).op, &row.node(q).op) {
        (Op::Const(x), Op::Const(y)) => x.checked_mul(*x) == Some(*y),
        (Op::Select(c, x, z), Op::Select(d, y, w)) => c == d && same(x, y) && same(z, w),
        (Op::Lookup(x), Op::Lookup(y)) => {
            (x.after, x.until, &x.keys) == (y.after, y.until, &y.keys)
                && x.values.iter().zip(&y.values).all(|(v, w)| same(v, w))
        }
        (_, Op::Mul(x, y)) => {
            let of_s = *x == s || matches!(row.node(*x).op, Op::Cast(z) if z == s && keeps(z, *x));
            x == y && of_s && squares(*x)
        }
        // One way down only: two would make the walk exponential.
        (Op::Cast(x), Op::Cast(y)) => keeps(*x, s) && keeps(*y, q) && same(x, y),
        (_, Op::Cast(y)) => keeps(*y, q) && same(&s, y),
        _ => false,
    };
    if square {
        known.insert((s, q));
    }
    square
}

/// Whether a row in which `s` is not zero is one in which `n`, a bit, is set: `n` is made of bits that are,
/// or that the guards of `s` demand.
fn counts(program: &Program, facts: &[NodeFacts], n: NodeId, s: NodeId) -> bool {
    let row = &program.row;
    let (mut nodes, mut set) = (vec![s], HashSet::new());
    // Each of these is not zero wherever `s` is not zero.
    while let Some(id) = nodes.pop() {
        if !set.insert(id) {
            continue;
        }
        match &row.node(id).op {
            Op::Select(c, a, b) if row.node(*b).op == Op::Const(0) => nodes.extend([*c, *a]),
            Op::And(a, b) | Op::Mul(a, b) => nodes.extend([*a, *b]),
            Op::Clamp(a, _) | Op::Cast(a) => nodes.push(*a),
            _ => {}
        }
    }
    let guards = &facts[s.index()].guards;
    let (mut nodes, mut seen) = (vec![n], HashSet::new());
    while let Some(id) = nodes.pop() {
        if !seen.insert(id) || (set.contains(&id) && is_bit(facts, id)) {
            continue;
        }
        match &row.node(id).op {
            _ if condition(row, id).is_some_and(|guard| guards.imply(guard)) => {}
            Op::And(a, b) if row.ty(id) == ValueType::BIT => nodes.extend([*a, *b]),
            Op::Select(c, a, b) if row.node(*b).op == Op::Const(0) && is_bit(facts, *a) => {
                nodes.extend([*c, *a])
            }
            Op::Cast(a) if is_bit(facts, *a) => nodes.push(*a),
            _ => return false,
        }
    }
    true
}

/// Whether a value is 0 or 1.
fn is_bit(facts: &[NodeFacts], id: NodeId) -> bool {
    facts[id.index()].bounds.is_some_and(|b| b.low >= 0 && b.high <= 1)
}

/// The most that an unsigned value is.
fn most(facts: &NodeFacts) -> u128 {
    facts.bounds.map_or(u128::MAX, |b| b.high.unsigned_abs())
}
