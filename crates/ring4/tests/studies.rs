//! The studies on four servers: the totals and answers of independent references, shards, and what happens
//! when a server or an owner sends something else.

use accel::DeviceQueue;
use base::{ChannelError, Error, Fault, PartyId, Seed};
use engine::conformance::{ProgramCase, Table};
use engine::{Engine, Entered, RowInput, RowSource, Share, Shares, outputs, run_rows};
use net::Session;
use net::cluster::Cluster;
use net::faults::InjectedFault;
use program::lower::combine::SelectionCircuit;
use program::lower::{self, Depth, Lowering, TotalsForm, lower_draws, lower_release};
use program::{Class, Holder, Program, ProgramBuilder, ValueType};
use ring4::{Ring4, Security, Settings, TagHash};
use std::sync::Arc;
use std::time::Duration;
use studies::lift::{BenchRows, LiftLayout, LiftParameters, bench_truth, build};
use studies::market::{CUSTOMER, MarketAnswer, MarketSample, Problem};

const MALICIOUS: Settings = Settings { security: Security::Malicious, hash: TagHash::Keyed, masked: true };
const SEMI_HONEST: Settings =
    Settings { security: Security::SemiHonest, hash: TagHash::Keyed, masked: false };
/// Two owners come first.
const SERVERS: [PartyId; 4] = [PartyId(2), PartyId(3), PartyId(4), PartyId(5)];
const PARTICIPANTS: usize = 6;

fn ring4(settings: Settings) -> Ring4 {
    Ring4::new(settings, SERVERS, || Ok(DeviceQueue::default())).with_chunk(1024)
}

/// The total of every fold, from everybody's shares.
fn totals(program: &Program, shares: &[Shares]) -> Vec<u128> {
    let of = |(at, fold): (usize, &program::RowFold)| {
        let mut summands = [None; 4];
        for share in shares.iter().map(|shares| &shares.folds()[at]) {
            match share {
                Share::Known(total) => return *total,
                Share::Replicated(held) => {
                    summands.iter_mut().zip(held).for_each(|(s, h)| *s = s.or(*h));
                }
                Share::Absent => {}
                _ => panic!("totals are replicated or known"),
            }
        }
        summands.into_iter().map(Option::unwrap).fold(0, u128::wrapping_add) & fold.ty().mask()
    };
    program.folds.iter().enumerate().map(of).collect()
}

/// Row and combine of a lift study in so many shards, whose shares add up.
fn lift_rows(
    lift: &LiftParameters,
    (program, layout): &(Program, LiftLayout),
    (rows, shards): (u64, u32),
    settings: Settings,
    session: &mut Session,
) -> Result<Shares, Error> {
    let stage = ring4(settings).rows(program, RowSource::Owned)?;
    let mut all: Option<Shares> = None;
    for shard in 0..shards {
        let mut part = BenchRows::new(lift, layout, Some(session.me()), rows, 7).shard(shard, shards);
        let shares = stage.run(RowInput::Owned(&mut part), session)?;
        match &mut all {
            None => all = Some(shares),
            Some(sum) => sum.add(program, &shares)?,
        }
    }
    all.ok_or_else(|| Error::misuse("no shard"))
}

#[test]
fn a_lift_study_has_the_totals_of_its_definitions() {
    for (settings, k, rows, shards) in
        [(SEMI_HONEST, 4, 3000, 1), (MALICIOUS, 1, 1500, 2), (MALICIOUS, 4, 700, 1)]
    {
        let lift = LiftParameters::bench(k);
        let built = build(&lift).unwrap();
        let done =
            Cluster::new(PARTICIPANTS, 3).run(|s| lift_rows(&lift, &built, (rows, shards), settings, s));
        let shares: Vec<Shares> = done.into_iter().map(Result::unwrap).collect();
        let (got, want) = (totals(&built.0, &shares), bench_truth(&lift, rows, 7));
        for total in &built.1.totals {
            let want = want.get(total.cell, total.arm, total.quantity);
            assert_eq!(got[total.fold as usize], want, "{total:?}");
        }
    }
}

/// Sums of wide products, of their factors and of the bits that select them, which are had of numbers, beside
/// sums that are not: a product that wraps, a bit that selects no product.
fn products() -> Program {
    let mut b = ProgramBuilder::new("products", Class::Exact, ["a", "b"]);
    let x = b.column("x", ValueType::u(24), PartyId(0));
    let y = b.column("y", ValueType::u(31), PartyId(1));
    let bits = [0, 1].map(|p| b.column(&format!("bit{p}"), ValueType::BIT, PartyId(p)));
    let both = b.and(bits[0], bits[1]);
    let [wide_x, wide_y] = [x, y].map(|id| b.cast(id, ValueType::u(60)));
    let product = b.mul(wide_x, wide_y);
    let short = b.cast(y, ValueType::u(24));
    let wrapped = b.mul(x, short);
    let of_both = b.mask(both, product);
    let of_one = b.mask(bits[0], product);
    let y_of_both = b.mask(both, y);
    let y_of_one = b.mask(bits[0], y);
    let x_of_other = b.mask(bits[1], x);
    for (value, width) in [(of_both, 80), (of_one, 60), (product, 128), (wrapped, 40)] {
        b.sum(value, ValueType::u(width));
    }
    for (value, width) in [(y_of_both, 50), (y_of_one, 31), (x_of_other, 50), (both, 20)] {
        b.sum(value, ValueType::u(width));
    }
    b.release();
    b.finish()
}

/// The columns of [`products`], and its totals by their meaning.
fn factors(rows: usize) -> (Vec<Vec<u128>>, Vec<u128>) {
    let mut rng = Seed::from_bytes([3; 32]).into_rng();
    let columns: Vec<Vec<u128>> = [24, 31, 1, 1]
        .into_iter()
        .map(|width: u32| (0..rows).map(|_| u128::from_le_bytes(rng.bytes()) & ((1 << width) - 1)).collect())
        .collect();
    let mut totals = [0u128; 8];
    let values = |row: usize| [0, 1, 2, 3].map(|column| columns[column][row]);
    for [x, y, a, b] in (0..rows).map(values) {
        let (both, product) = (a & b, x * y);
        let terms = [both * product, a * product, product, product & 0xff_ffff, both * y, a * y, b * x, both];
        totals.iter_mut().zip(terms).for_each(|(total, term)| *total += term);
    }
    let widths = [80, 60, 128, 40, 50, 31, 50, 20];
    (columns, totals.iter().zip(widths).map(|(total, width)| total & u128::MAX >> (128 - width)).collect())
}

/// Rows of [`products`] at one participant: its shares, and what it sent.
fn product_rows(columns: &[Vec<u128>], session: &mut Session) -> Result<(Shares, u64), Error> {
    let program = products();
    let mut table = Table::new(&program, columns, columns[0].len() as u64, Some(session.me()));
    let shares = run_rows(&ring4(MALICIOUS), &program, &mut table, session)?;
    Ok((shares, session.traffic().sent("")))
}

#[test]
fn sums_of_products_are_those_of_numbers() {
    let stage = ring4(MALICIOUS).rows(&products(), RowSource::Owned).unwrap();
    for rows in [1, 200, 2500] {
        let (columns, want) = factors(rows);
        let done = Cluster::new(PARTICIPANTS, 6).run(|s| product_rows(&columns, s));
        let (shares, sent): (Vec<Shares>, Vec<u64>) = done.into_iter().map(Result::unwrap).unzip();
        assert_eq!(totals(&products(), &shares), want, "{rows} rows");
        assert_eq!(stage.price(rows as u64).cost.sent, sent, "{rows} rows");
    }
}

/// A byte that a server sends another one changes while numbers are made, multiplied and summed: who gets it
/// stops.
#[test]
fn numbers_are_vouched_for() {
    let (columns, _) = factors(300);
    let sent = |s: &Session, peer: PartyId| -> u64 {
        let of = |e: &&net::TrafficEntry| e.peer == peer && e.step.starts_with("rows/numbers");
        s.traffic().entries().iter().filter(of).map(|e| e.sent).sum()
    };
    let honest = Cluster::new(PARTICIPANTS, 6).run(|s| {
        product_rows(&columns, s)?;
        Ok(SERVERS.map(|peer| sent(s, peer)))
    });
    let honest: Vec<[u64; 4]> = honest.into_iter().map(Result::unwrap).collect();
    for (i, from) in SERVERS.into_iter().enumerate() {
        for (to, all) in SERVERS.into_iter().zip(honest[2 + i]).filter(|(_, all)| *all > 0) {
            for byte in [0, all / 2, all - 1] {
                let what = format!("byte {byte} of {all} from {from} to {to}");
                let fault = InjectedFault::Corrupt { byte, mask: 1 };
                let cluster = Cluster::new(PARTICIPANTS, 6).deadline(Duration::from_secs(30));
                let done = cluster.fault_towards(from, to, "rows/numbers", fault);
                let done = done.run(|s| product_rows(&columns, s));
                let victim = done[to.index()].as_ref().err().expect(&what);
                let accused = victim.at().peer.clone().unwrap_or_default();
                assert!(matches!(victim.kind(), Fault::Deviated(_)), "{what}: {victim}");
                assert!(accused.contains(&format!("p{}", from.0)), "{what}: {victim}");
                assert!(victim.at().step.starts_with("rows/numbers"), "{what}: {victim}");
            }
        }
    }
}

fn market(
    sample: &MarketSample,
    settings: Settings,
    session: &mut Session,
) -> Result<Option<MarketAnswer>, Error> {
    let (engine, program) = (ring4(settings), sample.program());
    let me = session.me();
    let mut rows = sample.part(Some(me));
    let shares = run_rows(&engine, program, &mut rows, session)?;
    if !program.lists.is_empty() {
        let lists = engine.lists(program, CUSTOMER)?.run(sample.rows(), &shares, session)?;
        let bits = |list: &Vec<u64>| {
            (0..sample.rows()).map(|r| list[r as usize / 64] >> (r % 64) & 1 == 1).collect()
        };
        return Ok(lists.first().map(|list| MarketAnswer::All(bits(list))));
    }
    let (owners, totals) = (program.fold_owners(), TotalsForm::Replicated);
    let how = Lowering { totals, depth: Depth::Shallow, ..Lowering::exact(&owners) };
    let plan = Arc::new(lower_release(program, CUSTOMER.into(), &how)?);
    let values = outputs::exact(&*engine.release(&plan)?, &shares, session)?.unwrap_or_default();
    Ok(match values[..] {
        [row, score] => Some(MarketAnswer::Best((score != 0).then_some((row as u64, score)))),
        [row, score, found] => Some(MarketAnswer::Best((found == 1).then_some((row as u64, score)))),
        _ => None,
    })
}

fn sample(problem: Problem, rows: u64) -> MarketSample {
    let program = studies::market::program(problem, ["customer", "provider"], SelectionCircuit::Small);
    MarketSample::new(problem, program, rows, 7)
}

#[test]
fn customers_learn_the_true_answer_and_nobody_else_anything() {
    for problem in Problem::ALL {
        for (settings, rows) in [(SEMI_HONEST, 1), (MALICIOUS, 33), (SEMI_HONEST, 2500)] {
            let sample = sample(problem, rows);
            let done = Cluster::new(PARTICIPANTS, 1).run(|s| market(&sample, settings, s));
            let mut answers = done.into_iter().map(Result::unwrap);
            assert_eq!(answers.next().flatten(), Some(sample.truth().unwrap()), "{problem}, {rows} rows");
            assert!(answers.all(|answer| answer.is_none()), "{problem}");
        }
    }
}

#[test]
fn narrow_windows_do_not_stop_it() {
    let sample = sample(Problem::P2p, 3000);
    let done = Cluster::new(PARTICIPANTS, 1).tiny_window().run(|s| market(&sample, MALICIOUS, s));
    assert_eq!(done.into_iter().next().unwrap().unwrap(), Some(sample.truth().unwrap()));
}

/// Sums with noise: what the viewer learns with whom it caught, and what this participant sent at each of
/// [`STEPS`] to each peer. `bend` may change what a seat gives the viewer.
fn noisy(
    case: &ProgramCase,
    bend: impl Fn(PartyId, &mut Vec<u8>) -> bool,
    session: &mut Session,
) -> Result<Noised, Error> {
    let (engine, me, program) = (ring4(MALICIOUS), session.me(), &case.program);
    let (owners, sampler) = (program.fold_owners(), |at| case.noise.sampler(at));
    let how = Lowering {
        totals: TotalsForm::Replicated,
        depth: Depth::Shallow,
        noise: lower::NoiseSource::Coins(&sampler),
        difference: &|m| case.differences[m as usize],
        ..Lowering::exact(&owners)
    };
    let plan = Arc::new(lower_release(program, VIEWER.into(), &how)?);
    let draws = Arc::new(lower_draws(std::slice::from_ref(&plan), &sampler, Depth::Shallow));
    let mut coins = Entered::nothing(draws.words.len());
    case.noise.deal(&draws.words, &mut coins, me);
    let mut noise = engine.draw(&draws)?.run(&coins, session)?;
    let mut rows = Table::new(program, &case.columns, case.rows, Some(me));
    let shares = run_rows(&engine, program, &mut rows, session)?;
    let entered = Entered::new(&plan, &shares, me, &mut Seed::from_bytes([8; 32]).into_rng())?;
    let entered = case.noise.script(&plan, entered, me)?;
    let left = engine.release(&plan)?.run(&entered, &mut noise, session)?;
    let (mut values, mut benders) = (Vec::new(), Vec::new());
    if SERVERS.contains(&me) {
        let mut share = left.bytes().to_vec();
        let says = bend(me, &mut share);
        session.link(VIEWER).send(&[u8::from(says)])?;
        if says {
            session.link(VIEWER).send(&share)?;
        }
        session.link(VIEWER).flush()?;
    } else if me == VIEWER {
        let mut heard = Vec::new();
        for server in SERVERS {
            let [says] = session.link(server).recv_array()?;
            let mut share = vec![0; outputs::share_bytes(&plan)];
            if says == 1 {
                session.link(server).recv(&mut share)?;
            }
            heard.push((says == 1).then_some(share));
        }
        let heard: Vec<Option<&[u8]>> = heard.iter().map(Option::as_deref).collect();
        let opened = outputs::combine(&plan, &SERVERS, &heard, session)?;
        (values, benders) = (plan.values(&opened.bits), opened.benders);
    }
    let to = |step: &str, peer: usize| {
        let below = |e: &&net::TrafficEntry| e.peer.index() == peer && e.step.starts_with(step);
        session.traffic().entries().iter().filter(below).map(|e| e.sent).sum()
    };
    Ok((values, benders, STEPS.map(|step| std::array::from_fn(|peer| to(step, peer)))))
}

/// Values, who bent them, and what was sent.
type Noised = (Vec<u128>, Vec<PartyId>, Sent);

/// Who sees the outputs; the other owner enters numbers for sums.
const VIEWER: PartyId = PartyId(1);

/// Of a release of sums all but the last two.
const STEPS: [&str; 8] = [
    "draw/setup",
    "draw/owners",
    "draw/circuit",
    "draw/numbers",
    "rows",
    "release/enter",
    "release/circuit",
    "release/check",
];

type Sent = [[u64; PARTICIPANTS]; STEPS.len()];

fn honest(_: PartyId, _: &mut Vec<u8>) -> bool {
    true
}

fn case(name: &str) -> ProgramCase {
    let named = |case: &ProgramCase| case.name.starts_with(name);
    engine::conformance::suite(5).into_iter().find(named).expect("the suite has it")
}

/// Sums of multiples of totals, some of which an owner knows.
fn noised() -> ProgramCase {
    case("joint among 2")
}

/// Whatever one server gives the viewer, or if it gives nothing, the viewer has its outputs, and knows who
/// bent them.
#[test]
fn one_server_neither_stops_nor_bends_an_output() {
    let case = noised();
    let expected: Vec<u128> = case.program.outputs_to(VIEWER.into()).map(|i| case.outputs[i]).collect();
    for culprit in SERVERS {
        for byte in [Some(0), Some(7), None] {
            let bend = |me: PartyId, share: &mut Vec<u8>| {
                if let (true, Some(byte)) = (me == culprit, byte) {
                    share[byte] ^= 0x10;
                }
                me != culprit || byte.is_some()
            };
            let done = Cluster::new(PARTICIPANTS, 6).run(|s| noisy(&case, bend, s));
            let (values, benders, _) = done.into_iter().nth(VIEWER.index()).unwrap().unwrap();
            assert_eq!(values, expected, "{culprit} bends byte {byte:?}");
            assert_eq!(benders, byte.map(|_| culprit).into_iter().collect::<Vec<_>>());
        }
    }
}

/// Two servers that bend the same summand otherwise are noticed, and no output is given.
#[test]
fn two_servers_that_bend_are_noticed() {
    let case = noised();
    let bend = |me: PartyId, share: &mut Vec<u8>| {
        share[0] ^= if SERVERS[2..].contains(&me) { me.0 } else { 0 };
        true
    };
    let done = Cluster::new(PARTICIPANTS, 6).run(|s| noisy(&case, bend, s));
    let error = done.into_iter().nth(VIEWER.index()).unwrap().unwrap_err();
    assert!(error.to_string().contains("no two of three servers agree"), "{error}");
}

/// One byte that a participant sends changes, at every stage and towards every peer: nobody gets an answer,
/// and who notices names the channel.
#[test]
fn a_byte_changed_at_any_stage_stops_everybody() {
    let gates = ProgramCase { rows: 0, columns: Vec::new(), ..case("difference: Variance") };
    let gates = ProgramCase { columns: vec![Vec::new(); gates.program.columns.len()], ..gates };
    for (case, stages) in [(noised(), 0..6), (gates, 6..STEPS.len())] {
        let said = Cluster::new(PARTICIPANTS, 2).run(|s| noisy(&case, honest, s));
        let said: Vec<Sent> = said.into_iter().map(|done| done.unwrap().2).collect();
        for stage in stages {
            a_byte_changed_at(&case, stage, &said);
        }
    }
}

fn a_byte_changed_at(case: &ProgramCase, stage: usize, said: &[Sent]) {
    let step = STEPS[stage];
    let pairs = (0..PARTICIPANTS).flat_map(|from| (0..PARTICIPANTS).map(move |to| (from, to)));
    let pairs: Vec<_> = pairs.filter(|(from, to)| said[*from][stage][*to] > 0).collect();
    assert!(!pairs.is_empty(), "nobody says anything at {step}");
    for (from, to) in pairs {
        let all = said[from][stage][to];
        for byte in [all / 3, all - 1] {
            let what = format!("byte {byte} of {all} from p{from} to p{to} at {step}");
            let cluster = Cluster::new(PARTICIPANTS, 2).deadline(Duration::from_secs(30));
            let fault = InjectedFault::Corrupt { byte, mask: 4 };
            let cluster = cluster.fault_towards(PartyId(from as u8), PartyId(to as u8), step, fault);
            let done = cluster.run(|s| noisy(case, honest, s));
            assert!(done[VIEWER.index()].is_err(), "{what}: an answer was given");
            judge(&done, &what, &format!("p{from}"));
        }
    }
}

/// Somebody notices and names the party; nobody waits for the deadline.
fn judge(done: &[Result<Noised, Error>], what: &str, party: &str) {
    let errors: Vec<&Error> = done.iter().filter_map(|d| d.as_ref().err()).collect();
    let names = |e: &Error| {
        let peer = e.at().peer.clone().unwrap_or_default();
        !matches!(e.kind(), Fault::Channel(_)) && peer.contains(party)
    };
    assert!(errors.iter().any(|e| names(e)), "{what}: nobody names the channel: {errors:#?}");
    let waited = |e: &Error| matches!(e.kind(), Fault::Channel(ChannelError::Deadline { .. }));
    assert!(!errors.iter().any(|e| waited(e)), "{what}: somebody waited");
}

/// Owners who enter different values of a public column: the servers see that they differ, and go no further.
#[test]
fn public_columns_that_differ_are_noticed() {
    let mut b = ProgramBuilder::new("public", Class::Exact, ["a", "b"]);
    let factor = b.column("factor", ValueType::u(4), Holder::Public);
    let bits = [0, 1].map(|p| b.column(&format!("wanted{p}"), ValueType::BIT, PartyId(p)));
    let wanted = b.and(bits[0], bits[1]);
    let value = b.mask(wanted, factor);
    b.sum(value, ValueType::u(20));
    b.release();
    let program = b.finish();
    for differ in [false, true] {
        let done = Cluster::new(PARTICIPANTS, 5).deadline(Duration::from_secs(30)).run(|session| {
            let me = session.me();
            let mut columns = vec![vec![3; 200], vec![1; 200], vec![1; 200]];
            if differ && me == PartyId(1) {
                columns[0][150] = 7;
            }
            let mut table = Table::new(&program, &columns, 200, Some(me));
            run_rows(&ring4(MALICIOUS), &program, &mut table, session).map(|shares| vec![shares])
        });
        if !differ {
            let shares: Vec<Shares> = done.into_iter().flat_map(Result::unwrap).collect();
            assert_eq!(totals(&program, &shares), [600]);
            continue;
        }
        for end in &done[2..] {
            let error = end.as_ref().err().expect("no server goes on");
            assert!(
                matches!(error.kind(), Fault::Deviated(what) if what.contains("public column")),
                "{error}"
            );
            assert_eq!(error.at().peer.as_deref(), Some("p0 or p1"));
        }
    }
}
