//! Runs cases and compares.

use super::{Noise, ProgramCase, Table, replicated, suite, suite_among};
use crate::{
    DrawnNoise, Engine, Entered, PreparedRelease, PreparedRows, RowInput, RowSource, Share, Shares, outputs,
};
use base::{Cost, Error, Fault, PartyId, Roster, Seed};
use net::Session;
use net::cluster::Cluster;
use program::lower::{self, Depth, Lowering, ReleasePlan, TotalsForm, lower_draws, lower_release};
use program::{RowFold, Sharing, Viewer};
use std::sync::Arc;

/// Makes one party's engine; it may talk to the peer's over the session.
pub type MakeEngine<'a> = dyn Fn(&mut Session) -> Result<Box<dyn Engine>, Error> + Sync + 'a;

const SEED: u64 = 0x7ac1;
const BARRIER: &str = "conformance-barrier";

/// Runs the whole suite between two parties.
///
/// # Errors
/// The first case that fails, and how.
pub fn check(make: &MakeEngine<'_>) -> Result<(), String> {
    check_served(0, make)
}

/// As [`check`] with so many servers, which hold no column.
///
/// # Errors
/// The first case that fails, and how.
pub fn check_served(servers: usize, make: &MakeEngine<'_>) -> Result<(), String> {
    let mut coins = Coins::default();
    for case in suite(SEED) {
        let shares = run_served(servers, make, &case)?;
        coins.count(&case, &shares);
    }
    coins.judge()
}

/// Runs the whole suite with an engine that holds all columns in one process.
///
/// # Errors
/// The first case that fails, and how.
pub fn check_alone(make: &MakeEngine<'_>) -> Result<(), String> {
    suite(SEED).iter().try_for_each(|case| run_alone(make, case))
}

/// Runs the suite of `parties` parties whose totals are shared by exclusive or.
///
/// # Errors
/// The first case that fails, and how.
pub fn check_among(parties: usize, make: &MakeEngine<'_>) -> Result<(), String> {
    check_among_served(parties, 0, make)
}

/// As [`check_among`] with so many servers, which hold no column.
///
/// # Errors
/// The first case that fails, and how.
pub fn check_among_served(parties: usize, servers: usize, make: &MakeEngine<'_>) -> Result<(), String> {
    suite_among(parties, SEED).iter().try_for_each(|case| run_served(servers, make, case).map(|_| ()))
}

/// As [`check_among`] with an engine that holds all columns in one process.
///
/// # Errors
/// The first case that fails, and how.
pub fn check_among_alone(parties: usize, make: &MakeEngine<'_>) -> Result<(), String> {
    suite_among(parties, SEED).iter().try_for_each(|case| run_alone(make, case))
}

/// What one party saw of a run.
struct View {
    shares: Shares,
    /// The bits that left each release, where this party saw them.
    outputs: Vec<Option<Vec<bool>>>,
    /// Lists of every party.
    lists: Vec<Vec<Vec<u64>>>,
    /// What the ledger booked and what the engine had said, by stage.
    stages: Vec<Measured>,
}

struct Measured {
    stage: String,
    price: Cost,
    sent: u64,
    /// Of this party with its busiest peer.
    turns: u64,
    /// AND gates and oblivious transfers that the ledger booked.
    work: [u64; 2],
}

impl Measured {
    fn new(stage: &str, price: Cost, session: &Session) -> Self {
        let (sent, turns) = (session.traffic().sent(stage), turns(session, stage));
        Self { stage: stage.to_owned(), price, sent, turns, work: work(session, stage) }
    }
}

/// Runs one case between its parties; returns every party's shares of all totals.
///
/// # Errors
/// What differs from what the case expects.
pub fn run(make: &MakeEngine<'_>, case: &ProgramCase) -> Result<Vec<Shares>, String> {
    run_served(0, make, case)
}

/// Runs one case between its parties and so many servers after them in the roster; returns everybody's
/// shares.
///
/// # Errors
/// What differs from what the case expects.
pub fn run_served(servers: usize, make: &MakeEngine<'_>, case: &ProgramCase) -> Result<Vec<Shares>, String> {
    let plans = plans(case, (TotalsForm::Split, Depth::Ripple)).map_err(|e| format!("{}: {e}", case.name))?;
    let parties = case.program.parties.len() + servers;
    let done = Cluster::new(parties, SEED).run(|session| play(make, case, session));
    let views = together(done).map_err(|e| format!("{}: {e}", case.name))?;
    compare(case, &plans, &views).map_err(|text| format!("{}: {text}", case.name))?;
    Ok(views.into_iter().map(|view| view.shares).collect())
}

/// All parties' views, or the error that came first: a broken connection is what another party's error looks
/// like.
pub(super) fn together<T>(done: Vec<Result<T, Error>>) -> Result<Vec<T>, Error> {
    let mut views = Vec::new();
    let mut errors = Vec::new();
    for view in done {
        view.map_or_else(|e| errors.push(e), |v| views.push(v));
    }
    let cause = errors.iter().position(|e| !matches!(e.kind(), Fault::Channel(_))).unwrap_or(0);
    if errors.is_empty() { Ok(views) } else { Err(errors.swap_remove(cause)) }
}

/// Runs one case with an engine that holds all columns.
///
/// # Errors
/// What differs from what the case expects.
pub fn run_alone(make: &MakeEngine<'_>, case: &ProgramCase) -> Result<(), String> {
    let word = |e: Error| format!("{}: {e}", case.name);
    let plans = plans(case, (TotalsForm::Split, Depth::Ripple)).map_err(word)?;
    let mut session = Session::alone(Roster::new(["all"]), Seed::from_bytes([3; 32]));
    let engine = make(&mut session).map_err(word)?;
    let stage = engine.rows(&case.program, RowSource::Owned).map_err(word)?;
    let shares = fold_rows(&*stage, case, None, &mut session).map_err(word)?;
    let whole = |share: &Share| match share {
        Share::Known(total) => Some(*total),
        Share::Rows(_) => Some(0),
        _ => None,
    };
    let totals: Option<Vec<u128>> = shares.folds().iter().map(whole).collect();
    if totals.as_deref() != Some(&case.totals) {
        return Err(format!("{}: totals {totals:?}, expected {:?}", case.name, case.totals));
    }
    let mut coins = Seed::from_bytes([4; 32]).into_rng();
    for plan in &plans {
        // One process enters for all.
        let mut entered = Entered::whole(plan, &shares, &mut coins).map_err(word)?;
        for party in (0..plan.parties as u8).map(PartyId) {
            entered = case.noise.script(plan, entered, party).map_err(word)?;
        }
        let release = engine.release(plan).map_err(word)?;
        let outputs = release.run(&entered, &mut DrawnNoise::none(), &mut session).map_err(word)?;
        compare_outputs(case, plan, &outputs.bits(0..plan.bits()))
            .map_err(|text| format!("{}: {text}", case.name))?;
    }
    for viewer in (0..case.program.parties.len() as u8).map(PartyId) {
        let lists = engine.lists(&case.program, viewer).map_err(word)?;
        let lists = lists.run(case.rows, &shares, &mut session).map_err(word)?;
        compare_lists(case, viewer, &lists).map_err(|text| format!("{}: {text}", case.name))?;
    }
    Ok(())
}

/// The release of each party, and of the public where it sees anything.
fn plans(case: &ProgramCase, (totals, depth): (TotalsForm, Depth)) -> Result<Vec<Arc<ReleasePlan>>, Error> {
    let owners = case.program.fold_owners();
    let sampler = |at| case.noise.sampler(at);
    let mut width = 1;
    let noise = match &case.noise {
        Noise::None => None,
        Noise::Coins(_) => Some(None),
        Noise::Candidates(bits, all) => {
            width = *bits;
            Some(Some(all.len()))
        }
    };
    let width = |_| width;
    let noise = match noise {
        None => lower::NoiseSource::None,
        Some(None) => lower::NoiseSource::Coins(&sampler),
        Some(Some(count)) => lower::NoiseSource::Candidates(count, &width),
    };
    let difference = |m: u32| case.differences[m as usize];
    let how = Lowering { totals, depth, owners: &owners, noise, difference: &difference };
    let sees =
        |viewer: &Viewer| *viewer != Viewer::Public || case.program.outputs_to(*viewer).next().is_some();
    let plan = |viewer| lower_release(&case.program, viewer, &how).map(Arc::new);
    case.program.viewers().filter(sees).map(plan).collect()
}

/// Rows of the units of a case.
fn units(case: &ProgramCase) -> Vec<u64> {
    case.split.map_or_else(|| vec![case.rows], |split| vec![split, case.rows - split])
}

/// Row and combine, in one unit or in two whose shares are added.
fn fold_rows(
    stage: &dyn PreparedRows,
    case: &ProgramCase,
    party: Option<PartyId>,
    session: &mut Session,
) -> Result<Shares, Error> {
    let units = units(case);
    let (mut all, mut from) = (None::<Shares>, 0);
    for rows in units {
        let part = |c: &Vec<u128>| c[from as usize..(from + rows) as usize].to_vec();
        let columns: Vec<Vec<u128>> = case.columns.iter().map(part).collect();
        let mut table = Table::new(&case.program, &columns, rows, party);
        let shares = stage.run(RowInput::Owned(&mut table), session)?;
        match &mut all {
            None => all = Some(shares),
            Some(all) => all.add(&case.program, &shares)?,
        }
        from += rows;
    }
    all.ok_or_else(|| Error::misuse("a case has a unit"))
}

/// All parties say a byte to each other: the next receive of each is not an answer to anything.
fn barrier(session: &mut Session) -> Result<(), Error> {
    let me = session.me();
    let peers: Vec<PartyId> = session.roster().parties().filter(|p| *p != me).collect();
    session.step(BARRIER, |s| {
        for peer in &peers {
            s.link(*peer).send(&[0])?;
            s.link(*peer).flush()?;
        }
        peers.iter().try_for_each(|peer| s.link(*peer).recv(&mut [0]))
    })
}

/// Turns with the busiest peer under a stage.
fn turns(session: &Session, stage: &str) -> u64 {
    let below = format!("{stage}/");
    let inside = |step: &str| step == stage || step.starts_with(&below);
    let of = |peer: PartyId| {
        let entries = session.traffic().entries().iter().filter(|e| e.peer == peer && inside(&e.step));
        entries.map(|e| e.turns).sum()
    };
    session.roster().parties().map(of).max().unwrap_or(0)
}

fn work(session: &Session, stage: &str) -> [u64; 2] {
    [session.traffic().and_gates(stage), session.traffic().ots(stage)]
}

/// One party's half of a case, whatever comes of it: for peers that do not follow the protocol.
///
/// # Errors
/// Those of the engine and of the conversation.
pub fn half(make: &MakeEngine<'_>, case: &ProgramCase, session: &mut Session) -> Result<(), Error> {
    play(make, case, session).map(|_| ())
}

fn play(make: &MakeEngine<'_>, case: &ProgramCase, session: &mut Session) -> Result<View, Error> {
    let me = session.me();
    let engine = session.step("setup", make)?;
    let plans = plans(case, (engine.totals(), engine.release_depth(case.program.parties.len())))?;
    let mut stages = Vec::new();
    barrier(session)?;
    let depth = engine.release_depth(plans[0].parties);
    let draws = Arc::new(lower_draws(&plans, &|at| case.noise.sampler(at), depth));
    let mut coins = Entered::nothing(draws.words.len());
    case.noise.deal(&draws.words, &mut coins, me);
    let draw = engine.draw(&draws)?;
    let mut noise = session.step("draw", |s| draw.run(&coins, s))?;
    stages.push(Measured::new("draw", draw.price().cost, session));
    barrier(session)?;
    let stage = engine.rows(&case.program, RowSource::Owned)?;
    let price = units(case).into_iter().map(|rows| stage.price(rows).cost);
    let price = price.fold(Cost::zero(case.program.parties.len()), |all, unit| all + unit);
    let shares = session.step("rows", |s| fold_rows(&*stage, case, Some(me), s))?;
    stages.push(Measured::new("rows", price, session));
    let (mut outputs, mut lists) = (Vec::new(), Vec::new());
    for plan in &plans {
        let (seen, measured) = release((&*engine.release(plan)?, &mut noise), case, &shares, session)?;
        stages.extend(measured);
        outputs.push(seen);
    }
    for viewer in (0..case.program.parties.len() as u8).map(PartyId) {
        let (bits, measured) = reveal(&*engine, case, viewer, &shares, session)?;
        stages.push(measured);
        lists.push(bits);
    }
    Ok(View { shares, outputs, lists, stages })
}

/// The release of one viewer, and its opening.
fn release(
    (release, noise): (&dyn PreparedRelease, &mut DrawnNoise),
    case: &ProgramCase,
    shares: &Shares,
    session: &mut Session,
) -> Result<(Option<Vec<bool>>, [Measured; 2]), Error> {
    let (me, participants) = (session.me(), session.roster().len());
    let (plan, holders) = (release.plan(), release.holders());
    let mut coins = session.fork_seed("coins").into_rng();
    let entered = case.noise.script(plan, Entered::new(plan, shares, me, &mut coins)?, me)?;
    let stage = format!("release-{}", plan.viewer.number());
    barrier(session)?;
    let left = session.step(&stage, |s| release.run(&entered, noise, s))?;
    let computed = Measured::new(&stage, release.price().cost, session);
    let stage = format!("open-{}", plan.viewer.number());
    barrier(session)?;
    let bytes = if holders.contains(&me) { outputs::share_bytes(plan) } else { 0 };
    if plan.alone().is_none() && left.bytes().len() != bytes {
        return Err(Error::misuse("a share of the outputs has another length"));
    }
    let price = outputs::price(plan, holders, participants);
    let seen = session.step(&stage, |s| outputs::open(plan, holders, &left, s))?;
    Ok((seen, [computed, Measured::new(&stage, price, session)]))
}

/// The lists of one viewer.
fn reveal(
    engine: &dyn Engine,
    case: &ProgramCase,
    viewer: PartyId,
    shares: &Shares,
    session: &mut Session,
) -> Result<(Vec<Vec<u64>>, Measured), Error> {
    let step = format!("lists-{}", viewer.0);
    barrier(session)?;
    let stage = engine.lists(&case.program, viewer)?;
    let lists = session.step(&step, |s| stage.run(case.rows, shares, s))?;
    if session.me() != viewer && !lists.is_empty() {
        return Err(Error::misuse("lists were returned to a party that is not the viewer"));
    }
    Ok((lists, Measured::new(&step, stage.price(case.rows).cost, session)))
}

fn compare(case: &ProgramCase, plans: &[Arc<ReleasePlan>], views: &[View]) -> Result<(), String> {
    for (at, total) in case.totals.iter().enumerate() {
        let shares: Vec<&Share> = views.iter().map(|view| &view.shares.folds()[at]).collect();
        let (parties, servers) = shares.split_at(case.program.parties.len());
        compare_fold(case, at, *total, parties, servers)?;
    }
    for (p, view) in views.iter().enumerate().take(case.program.parties.len()) {
        let party = PartyId(p as u8);
        compare_lists(case, party, &view.lists[p])?;
        for (plan, bits) in plans.iter().zip(&view.outputs) {
            match bits {
                Some(bits) => compare_outputs(case, plan, bits)?,
                None if plan.viewer.has(party) => return Err(format!("{party} sees nothing")),
                None => {}
            }
        }
    }
    let stranger = |(p, view): (usize, &View)| {
        let seen = view.outputs.iter().zip(plans).filter(|(bits, _)| bits.is_some());
        seen.map(|(_, plan)| plan.viewer)
            .any(|viewer| p >= case.program.parties.len() || !viewer.has(PartyId(p as u8)))
    };
    if views.iter().enumerate().any(stranger) {
        return Err("outputs went to somebody who is no viewer".into());
    }
    for stage in 0..views[0].stages.len() {
        let measured: Vec<&Measured> = views.iter().map(|view| &view.stages[stage]).collect();
        compare_price(&measured)?;
    }
    Ok(())
}

fn compare_fold(
    case: &ProgramCase,
    at: usize,
    total: u128,
    shares: &[&Share],
    servers: &[&Share],
) -> Result<(), String> {
    let fold = &case.program.folds[at];
    let owners = case.program.fold_owners()[at];
    let fails = |text: String| Err(format!("fold {at}: {text}"));
    let all: Vec<&Share> = shares.iter().chain(servers).copied().collect();
    if all.iter().any(|s| matches!(s, Share::Replicated(_) | Share::ReplicatedRows(_))) {
        return replicated::compare(case, at, total, &all).or_else(fails);
    }
    if let Some(server) = servers.iter().position(|s| **s != Share::Absent) {
        return fails(format!("server {server} has something of a total that no server holds"));
    }
    if let RowFold::Collect { .. } = fold {
        let words = case.rows.div_ceil(64) as usize;
        let fits = |share: &&Share| matches!(share, Share::Rows(bits) if bits.len() == words);
        return if shares.iter().all(fits) { Ok(()) } else { fails("not a list of all rows".into()) };
    }
    let known: Option<Vec<u128>> =
        shares.iter().map(|s| if let Share::Known(x) = s { Some(*x) } else { None }).collect();
    let total_of = match (known, owners.only()) {
        (Some(known), None) if owners.is_public() => {
            known.windows(2).all(|pair| pair[0] == pair[1]).then(|| known[0])
        }
        (_, Some(owner)) => {
            let absent = |(p, s): (usize, &&Share)| p == owner.index() || **s == Share::Absent;
            match shares[owner.index()] {
                Share::Known(x) if shares.iter().enumerate().all(absent) => Some(*x),
                _ => None,
            }
        }
        (_, None) if owners.is_public() => None,
        _ if case.program.sharing() == Sharing::Additive => compare_additive(case, at, total, shares)?,
        _ => compare_boolean(fold, shares)?,
    };
    match total_of {
        Some(known) if known == total => Ok(()),
        Some(known) => fails(format!("total {known}, expected {total}")),
        None => fails(format!("data of {owners:?} give the wrong kinds of shares")),
    }
}

/// The total of additive shares; `None` when they are something else.
fn compare_additive(
    case: &ProgramCase,
    at: usize,
    total: u128,
    shares: &[&Share],
) -> Result<Option<u128>, String> {
    let ty = case.program.folds[at].ty();
    let [Share::Additive(x), Share::Additive(y)] = shares else { return Ok(None) };
    if (x | y) & !ty.mask() != 0 {
        return Err(format!("fold {at}: a share is wider than {ty}"));
    }
    let random = case.random_shares && case.rows > 0 && ty.width >= 40;
    // A total that is zero whatever the inputs are, such as a bit shifted out, needs no masking.
    let void = total == 0 && *x == 0 && *y == 0;
    if random && !void && [x, y].iter().any(|s| **s == 0 || **s == total) {
        return Err(format!("fold {at}: a share is not random"));
    }
    Ok(Some(x.wrapping_add(*y) & ty.mask()))
}

/// The total of exclusive-or shares; `None` when they are something else.
fn compare_boolean(fold: &RowFold, shares: &[&Share]) -> Result<Option<u128>, String> {
    let mut total = 0;
    for share in shares {
        let Share::Boolean(bits) = share else { return Ok(None) };
        if bits & !fold.word_mask() != 0 {
            return Err(format!("a share is wider than {} bits", fold.word_bits()));
        }
        total ^= bits;
    }
    Ok(Some(total))
}

fn compare_lists(case: &ProgramCase, viewer: PartyId, lists: &[Vec<u64>]) -> Result<(), String> {
    let mine = case.program.lists.iter().zip(&case.lists).filter(|(l, _)| l.to == viewer);
    let pack = |bits: &Vec<bool>| -> Vec<u64> {
        let word = |bits: &[bool]| bits.iter().enumerate().fold(0, |w, (i, b)| w | u64::from(*b) << i);
        bits.chunks(64).map(word).collect()
    };
    let expected: Vec<Vec<u64>> = mine.map(|(_, bits)| pack(bits)).collect();
    if lists == expected {
        return Ok(());
    }
    Err(format!("lists for {viewer}: {lists:x?}, expected {expected:x?}"))
}

fn compare_outputs(case: &ProgramCase, plan: &ReleasePlan, bits: &[bool]) -> Result<(), String> {
    if let Noise::Candidates(width, _) = case.noise {
        let value = |word: &[bool]| word.iter().enumerate().fold(0, |v, (i, bit)| v | i128::from(*bit) << i);
        let signed = |word: &[bool]| {
            let value = value(word);
            value - (i128::from(word[word.len() - 1]) << word.len())
        };
        let words = |j| bits[plan.noise_of(j)].chunks(width.into()).map(signed).collect::<Vec<i128>>();
        let drawn: Vec<i128> = (0..plan.candidates.len()).flat_map(words).collect();
        let Noise::Candidates(_, all) = &case.noise else { return Ok(()) };
        let of = |m: usize| (0..all.len()).flat_map(move |j| all[j][m].clone());
        let number = plan.viewer.only().map_or(0, PartyId::index);
        if drawn != of(number).collect::<Vec<i128>>() {
            return Err(format!("candidates for viewer {number}: {drawn:?}"));
        }
    }
    for (j, outputs) in std::iter::once(&case.outputs).chain(&case.others).enumerate() {
        let values = plan.values(&bits[plan.outputs_of(j)]);
        let expected: Vec<u128> = case.program.outputs_to(plan.viewer).map(|i| outputs[i]).collect();
        let Some(wrong) = (0..expected.len()).find(|i| values.get(*i) != expected.get(*i)) else { continue };
        let label = &case.program.outputs[plan.outputs[wrong].0].label;
        let (value, wanted) = (values.get(wrong), expected.get(wrong));
        return Err(format!("{label} for {:?}: {value:?}, expected {wanted:?}", plan.viewer));
    }
    Ok(())
}

fn compare_price(all: &[&Measured]) -> Result<(), String> {
    let (stage, price) = (&all[0].stage, &all[0].price);
    if let Some(other) = all.iter().find(|m| m.price != *price) {
        return Err(format!("{stage}: the parties state two prices, {price:?} and {:?}", other.price));
    }
    let sent: Vec<u64> = all.iter().map(|m| m.sent).collect();
    if price.sent != sent {
        return Err(format!("{stage}: priced at {:?} bytes, sent {sent:?}", price.sent));
    }
    // An AND is booked with every peer; either side of a transfer books it.
    let peers = all.len() as u64 - 1;
    let ands = all.iter().all(|m| m.work[0] == price.and_gates * peers);
    let ots = all.iter().map(|m| m.work[1]).sum::<u64>() == 2 * price.ots;
    if !ands || !ots {
        let stated = [price.and_gates, price.ots];
        let worked: Vec<[u64; 2]> = all.iter().map(|m| m.work).collect();
        return Err(format!("{stage}: priced at {stated:?} ANDs and OTs, worked off {worked:?}"));
    }
    let taken = all.iter().map(|m| m.turns).max().unwrap_or(0);
    if price.rounds != taken {
        return Err(format!("{stage}: priced at {} rounds, took {taken}", price.rounds));
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
    fn count(&mut self, case: &ProgramCase, shares: &[Shares]) {
        if !case.random_shares || case.rows == 0 {
            return;
        }
        let [a, b] = shares else { return };
        for ((a, b), fold) in a.folds().iter().zip(b.folds()).zip(&case.program.folds) {
            if let (Share::Additive(a), Share::Additive(b)) = (a, b)
                && (*a, *b) != (0, 0)
            {
                self.bits += 2 * u64::from(fold.ty().width);
                self.set += u64::from(a.count_ones() + b.count_ones());
            }
        }
    }

    /// Six standard deviations of independent bits. The two shares of one fold are dependent, which at most
    /// doubles the variance: still more than four standard deviations.
    fn judge(&self) -> Result<(), String> {
        let (bits, set) = (self.bits as f64, self.set as f64);
        let off = (set - bits / 2.0).abs();
        if off <= 6.0 * (bits / 4.0).sqrt() {
            return Ok(());
        }
        Err(format!("additive shares are not random: {} of {} bits are set", self.set, self.bits))
    }
}
