//! Runs cases and compares.

use super::{Case, Script, Table, suite};
use crate::{Engine, Share, Shares, drawer};
use base::{Cost, Error, Kind, PartyId, Roster, Seed};
use net::Session;
use net::cluster::Cluster;
use program::lower::{ReleasePlan, lower_release};

/// Makes one party's engine; it may talk to the peer's over the session.
pub type Make<'a> = dyn Fn(&mut Session) -> Result<Box<dyn Engine>, Error> + Sync + 'a;

const SEED: u64 = 0x7ac1;
const PARTIES: [PartyId; 2] = [PartyId(0), PartyId(1)];
const BARRIER: &str = "conformance-barrier";

/// Runs the whole suite between two parties.
///
/// # Errors
/// The first case that fails, and how.
pub fn check(make: &Make<'_>) -> Result<(), String> {
    let mut coins = Coins::default();
    for case in suite(SEED) {
        let shares = run(make, &case)?;
        coins.count(&case, &shares);
    }
    coins.judge()
}

/// Runs the whole suite with an engine that holds all columns in one process.
///
/// # Errors
/// The first case that fails, and how.
pub fn check_alone(make: &Make<'_>) -> Result<(), String> {
    suite(SEED).iter().try_for_each(|case| run_alone(make, case))
}

/// What one party saw of a run.
struct View {
    shares: Shares,
    /// Outputs of the releases of viewer 0 and 1.
    outputs: [Vec<u128>; 2],
    /// What the ledger booked and what the engine had said, by stage.
    stages: Vec<Measured>,
}

struct Measured {
    stage: &'static str,
    price: Cost,
    sent: u64,
    turns: Option<u64>,
    /// AND gates and oblivious transfers that the ledger booked.
    work: [u64; 2],
}

/// Runs one case between two parties; returns both parties' shares of all totals.
///
/// # Errors
/// What differs from what the case expects.
pub fn run(make: &Make<'_>, case: &Case) -> Result<[Shares; 2], String> {
    let plans = plans(case).map_err(|e| format!("{}: {e}", case.name))?;
    let done = Cluster::new(2, SEED).run(|session| play(make, case, &plans, session));
    let [a, b] = both(done).map_err(|e| format!("{}: {e}", case.name))?;
    compare(case, &plans, &a, &b).map_err(|text| format!("{}: {text}", case.name))?;
    Ok([a.shares, b.shares])
}

/// Both parties' views, or the error that came first: a broken connection is what the other party's error looks like.
fn both(done: Vec<Result<View, Error>>) -> Result<[View; 2], Error> {
    let mut views = Vec::new();
    let mut errors = Vec::new();
    for view in done {
        view.map_or_else(|e| errors.push(e), |v| views.push(v));
    }
    let cause = errors.iter().position(|e| !matches!(e.kind(), Kind::Channel(_))).unwrap_or(0);
    if !errors.is_empty() {
        return Err(errors.swap_remove(cause));
    }
    views.try_into().map_err(|_| Error::misuse("a case is run by two parties"))
}

/// Runs one case with an engine that holds all columns.
///
/// # Errors
/// What differs from what the case expects.
pub fn run_alone(make: &Make<'_>, case: &Case) -> Result<(), String> {
    let word = |e: Error| format!("{}: {e}", case.name);
    let plans = plans(case).map_err(word)?;
    let mut session = Session::alone(Roster::new(["all"]), Seed::from_bytes([3; 32]));
    let mut engine = make(&mut session).map_err(word)?;
    let shares = fold_rows(&mut *engine, case, None, &mut session).map_err(word)?;
    let whole = |share: &Share| match share {
        Share::Known(total) => Some(*total),
        _ => None,
    };
    let totals: Option<Vec<u128>> = shares.folds().iter().map(whole).collect();
    if totals.as_deref() != Some(&case.totals) {
        return Err(format!("{}: totals {totals:?}, expected {:?}", case.name, case.totals));
    }
    for plan in &plans {
        let mut script = Script::new(&case.noise, plan);
        let outputs = engine.release(plan, &shares, &mut script, &mut session).map_err(word)?;
        script.finish(true, true).map_err(|text| format!("{}: {text}", case.name))?;
        compare_outputs(case, plan, &outputs).map_err(|text| format!("{}: {text}", case.name))?;
    }
    Ok(())
}

/// The release of each viewer.
fn plans(case: &Case) -> Result<Vec<ReleasePlan>, Error> {
    let owners = case.program.fold_owners();
    let width = |_, _| case.noise.width;
    let difference = |m: u32| case.differences[m as usize];
    PARTIES.iter().map(|viewer| lower_release(&case.program, *viewer, &owners, &width, &difference)).collect()
}

/// Row and combine, in one shard or in two whose shares are added.
fn fold_rows(
    engine: &mut dyn Engine,
    case: &Case,
    party: Option<PartyId>,
    session: &mut Session,
) -> Result<Shares, Error> {
    let mut shard = |from: u64, to: u64| {
        let part = |c: &Vec<u128>| c[from as usize..to as usize].to_vec();
        let columns: Vec<Vec<u128>> = case.columns.iter().map(part).collect();
        let mut table = Table::new(&case.program, &columns, to - from, party);
        engine.rows(&case.program, &mut table, session)
    };
    let Some(split) = case.split else { return shard(0, case.rows) };
    let mut shares = shard(0, split)?;
    shares.add(&case.program, &shard(split, case.rows)?)?;
    Ok(shares)
}

/// Both parties say a byte and hear one: the next receive of either is not an answer to anything.
fn barrier(session: &mut Session) -> Result<(), Error> {
    let peer = session.me().other();
    session.step(BARRIER, |s| s.link(peer).exchange(&[0], &mut [0]))
}

fn work(session: &Session, stage: &str) -> [u64; 2] {
    [session.ledger().and_gates(stage), session.ledger().ots(stage)]
}

fn play(make: &Make<'_>, case: &Case, plans: &[ReleasePlan], session: &mut Session) -> Result<View, Error> {
    let me = session.me();
    let mut engine = session.step("setup", make)?;
    let mut stages = Vec::new();
    barrier(session)?;
    let price = match case.split {
        None => engine.price_rows(&case.program, case.rows),
        Some(split) => {
            let rest = engine.price_rows(&case.program, case.rows - split);
            engine.price_rows(&case.program, split) + rest
        }
    };
    let shares = session.step("rows", |s| fold_rows(&mut *engine, case, Some(me), s))?;
    // Where one shard ends with a message, the next one's first answer is a turn more: not compared when split.
    let turns = case.split.is_none().then(|| session.ledger().turns("rows"));
    let sent = session.ledger().sent("rows");
    stages.push(Measured { stage: "rows", price, sent, turns, work: work(session, "rows") });
    let mut outputs = [Vec::new(), Vec::new()];
    for (stage, plan) in ["release-0", "release-1"].into_iter().zip(plans) {
        barrier(session)?;
        let mut script = Script::new(&case.noise, plan);
        let price = engine.price_release(plan, case.noise.candidates.len());
        let values = session.step(stage, |s| engine.release(plan, &shares, &mut script, s))?;
        script.finish(me == drawer(plan), me == plan.viewer).map_err(Error::misuse)?;
        let sent = session.ledger().sent(stage) - script.sent;
        let turns = (!case.noise.talks).then(|| session.ledger().turns(stage));
        stages.push(Measured { stage, price, sent, turns, work: work(session, stage) });
        outputs[plan.viewer.index()] = values;
        if me != plan.viewer && !outputs[plan.viewer.index()].is_empty() {
            return Err(Error::misuse("outputs were returned to a party that is not the viewer"));
        }
    }
    Ok(View { shares, outputs, stages })
}

fn compare(case: &Case, plans: &[ReleasePlan], a: &View, b: &View) -> Result<(), String> {
    for (at, total) in case.totals.iter().enumerate() {
        compare_fold(case, at, *total, &a.shares.folds()[at], &b.shares.folds()[at])?;
    }
    for (plan, view) in plans.iter().zip([a, b]) {
        compare_outputs(case, plan, &view.outputs[plan.viewer.index()])?;
    }
    for (x, y) in a.stages.iter().zip(&b.stages) {
        compare_price(x, y)?;
    }
    Ok(())
}

fn compare_fold(case: &Case, at: usize, total: u128, a: &Share, b: &Share) -> Result<(), String> {
    let fold = &case.program.folds[at];
    let owners = case.program.fold_owners()[at];
    let fails = |text: String| Err(format!("fold {at}: {text}"));
    let known = match (owners.is_public(), owners.only(), a, b) {
        (true, _, Share::Known(x), Share::Known(y)) if x == y => *x,
        (_, Some(PartyId(0)), Share::Known(x), Share::Absent) => *x,
        (_, Some(PartyId(1)), Share::Absent, Share::Known(y)) => *y,
        (false, None, Share::Additive(x), Share::Additive(y)) => {
            let mask = fold.ty().mask();
            if (x | y) & !mask != 0 {
                return fails(format!("a share is wider than {}", fold.ty()));
            }
            let random = case.random_shares && case.rows > 0 && fold.ty().width >= 40;
            // A total that is zero whatever the inputs are, such as a bit shifted out, needs no masking.
            let void = total == 0 && *x == 0 && *y == 0;
            if random && !void && [x, y].iter().any(|s| **s == 0 || **s == total) {
                return fails("a share is not random".into());
            }
            x.wrapping_add(*y) & mask
        }
        _ => return fails(format!("data of {owners:?} give the wrong kinds of shares")),
    };
    if known == total { Ok(()) } else { fails(format!("total {known}, expected {total}")) }
}

fn compare_outputs(case: &Case, plan: &ReleasePlan, values: &[u128]) -> Result<(), String> {
    let expected: Vec<u128> = case.program.outputs_to(plan.viewer).map(|i| case.outputs[i]).collect();
    if values == expected {
        return Ok(());
    }
    let wrong =
        (0..expected.len().max(values.len())).find(|i| values.get(*i) != expected.get(*i)).unwrap_or(0);
    let label =
        plan.outputs.get(wrong).map_or("one too many", |(i, _)| case.program.outputs[*i].label.as_str());
    let (value, wanted) = (values.get(wrong), expected.get(wrong));
    Err(format!("{label} for {}: {value:?}, expected {wanted:?}", plan.viewer))
}

fn compare_price(a: &Measured, b: &Measured) -> Result<(), String> {
    let stage = a.stage;
    if a.price != b.price {
        return Err(format!("{stage}: the parties state two prices, {:?} and {:?}", a.price, b.price));
    }
    let sent = [a.sent, b.sent];
    if a.price.sent != sent {
        return Err(format!("{stage}: priced at {:?} bytes, sent {sent:?}", a.price.sent));
    }
    let stated = [a.price.and_gates, a.price.ots];
    if [a.work, b.work] != [stated; 2] {
        let (x, y) = (a.work, b.work);
        return Err(format!("{stage}: priced at {stated:?} ANDs and OTs, worked off {x:?} and {y:?}"));
    }
    let Some((x, y)) = a.turns.zip(b.turns) else { return Ok(()) };
    if a.price.rounds != x.max(y) {
        return Err(format!("{stage}: priced at {} rounds, took {}", a.price.rounds, x.max(y)));
    }
    Ok(())
}

/// Counts the set bits of all random shares: half of them, up to chance.
#[derive(Default)]
struct Coins {
    bits: u64,
    set: u64,
}

impl Coins {
    fn count(&mut self, case: &Case, shares: &[Shares; 2]) {
        if !case.random_shares || case.rows == 0 {
            return;
        }
        let [a, b] = shares;
        for ((a, b), fold) in a.folds().iter().zip(b.folds()).zip(&case.program.folds) {
            if let (Share::Additive(a), Share::Additive(b)) = (a, b)
                && (*a, *b) != (0, 0)
            {
                self.bits += 2 * u64::from(fold.ty().width);
                self.set += u64::from(a.count_ones() + b.count_ones());
            }
        }
    }

    /// Six standard deviations of independent bits. The two shares of one fold are dependent, which at most doubles
    /// the variance: still more than four standard deviations.
    fn judge(&self) -> Result<(), String> {
        let (bits, set) = (self.bits as f64, self.set as f64);
        let off = (set - bits / 2.0).abs();
        if off <= 6.0 * (bits / 4.0).sqrt() {
            return Ok(());
        }
        Err(format!("additive shares are not random: {} of {} bits are set", self.set, self.bits))
    }
}
