//! Every protocol, with a peer that says anything at any place: see [`Talk`].

use crate::Target;
use crate::talk::Talk;
use base::{Error, PartyId};
use engine::conformance::{Noise, ProgramCase, half, suite, suite_among};
use engine::{CircuitEngine, Engine};
use kernels::Block;
use matching::{
    CircuitJoin, CollectingJoin, ContaminatedRule, FlatIdentifiers, IdentifierSource, InnerJoin, ManyId,
    MatchOptions, Matcher, MultiId, PayloadLayout, PayloadTable, PrivateId, RepeatRule, ShareBackend,
    TableField,
};
use net::Session;
use ot::{OtKind, VoleReceiver, VoleSender, vole};
use ring4::{Ring4, Security, Settings, TagHash};
use std::ops::Range;
use std::sync::LazyLock;
use yao::wires;

macro_rules! talks {
    ($($name:literal, $least:literal, $talk:ident = $made:expr;)+) => {
        $(static $talk: LazyLock<Talk> = LazyLock::new(|| $made);)+
        pub(crate) const TARGETS: &[Target] = &[$(
            Target::new($name, |data| $talk.play(data), || $talk.seeds())
                .least($least)
                .check(|| $talk.check().map_err(|e| e.to_string())),
        )+];
    };
}

talks! {
    "pid", 100_000, PID = Talk::new(2, |s| {
        {
        PrivateId.run(s, &mine(s).flat(), None, &options()).map(|_| ())
    }
    });
    "multi-pid", 50_000, MULTI = Talk::new(2, multi_pid);
    "many-pid", 50_000, MANY = Talk::new(3, |s| {
        {
        ManyId.run(s, &mine(s).flat(), None, &options()).map(|_| ())
    }
    });
    "ps3i", 10_000, PS3I = Talk::new(2, |s| joined(s, ShareBackend::PermuteShare));
    "ps3i-paillier", 500, PAILLIER = Talk::new(2, |s| joined(s, ShareBackend::Paillier));
    "collecting", 10_000, COLLECTING = Talk::new(2, collect);
    "circuit-psi", 5_000, PSI = Talk::new(2, |s| {
        let layout = PayloadLayout::new([TableField::number(8), TableField::bits(9)])?;
        let rows = mine(s);
        let payload = payload(&layout, rows.flat().rows())?;
        let payload = (s.me() == PartyId(1)).then_some(&payload as _);
        CircuitJoin.run(s, &rows.flat(), payload, &join_options(layout)).map(|_| ())
    });
    "ot", 10_000, OT_FLAVOURS = Talk::new(2, |s| flavours(s, OT));
    "ot-ferret", 200, FERRET = Talk::new(2, |s| flavours(s, OtKind::Ferret));
    "ot-hubs", 10_000, HUBS = Talk::new(3, |s| {
        let peers = s.peers();
        let mut hubs = ot::Hubs::new(s, &peers)?;
        let bases = hubs.fork(s, 1)?.pop().ok_or_else(|| Error::misuse("one worker was asked for"))?;
        let mut pairs = ot::setup_over(s, bases, OT, 100)?;
        let mut out: Vec<ot::Correlated> = peers.iter().map(|_| ot::Correlated::default()).collect();
        ot::correlated_all(s, &mut pairs, 100, &mut out)
    });
    "ot-probe", 100_000, PROBE = Talk::new(2, |s| {
        let peer = s.me().other();
        // How long the link takes is measured; what is told of it is the peer's to say.
        ot::probe(s, peer).map(|measured| _ = measured.worse(measured))
    });
    "vole", 2_000, VOLE = Talk::new(2, |s| {
        let (me, peer) = (s.me(), s.me().other());
        let [mut a, mut c] = [Vec::new(), Vec::new()];
        if me == PartyId(0) {
            let ot = OT.receiver(s, peer, vole::expected_ots(300))?;
            VoleReceiver::new(ot, 300)?.take(s, 300, [&mut a, &mut c])
        } else {
            let delta = ot::fresh_delta(&mut s.fork_seed("delta").into_rng());
            let ot = OT.sender(s, peer, delta, vole::expected_ots(300))?;
            VoleSender::new(s, ot, 300)?.take(s, 300, &mut a)
        }
    });
    "yao", 10_000, YAO = engines(suite(1), 2, || Box::new(yao::Yao::default()));
    "yao-circuits", 10_000, YAO_CIRCUITS = Talk::new(2, |s| circuits(&yao::Yao::default(), s));
    "yao-wires", 10_000, WIRES = Talk::new(2, imperative);
    "gmw", 10_000, GMW = engines(suite(1), 2, || Box::new(gmw::Gmw::new(OT)));
    "gmw-among", 5_000, AMONG = engines(suite_among(3, 1), 3, || Box::new(gmw::Gmw::new(OT)));
    "gmw-circuits", 10_000, GMW_CIRCUITS = Talk::new(2, |s| circuits(&gmw::Gmw::new(OT), s));
    "ring4", 100_000, RING4 = engines(suite(1), 6, || Box::new(outsourced([2, 3, 4, 5])));
    "ring4-among", 50_000, RING4_AMONG = engines(suite_among(4, 1), 4, || Box::new(outsourced([3, 1, 0, 2])));
}

const OT: OtKind = OtKind::SoftSpoken { k: 4 };

/// Identifiers in memory.
pub struct Column {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl Column {
    /// As protocols take them.
    pub fn flat(&self) -> FlatIdentifiers<'_> {
        FlatIdentifiers::new(&self.bytes, &self.ends).expect("identifiers of a few bytes")
    }
}

/// Identifiers `person N`.
pub fn column(people: Range<u32>) -> Column {
    let mut made = Column { bytes: Vec::new(), ends: Vec::new() };
    for i in people {
        made.bytes.extend_from_slice(format!("person {i}").as_bytes());
        made.ends.push(made.bytes.len() as u64);
    }
    made
}

fn mine(session: &Session) -> Column {
    let from = 3 * session.me().index() as u32;
    column(from..from + 6)
}

/// Rows of several identifiers; an empty text is none.
struct Rows(Vec<[&'static str; 2]>);

impl IdentifierSource for Rows {
    fn rows(&self) -> u64 {
        self.0.len() as u64
    }
    fn keys(&self) -> usize {
        2
    }
    fn read(&self, row: u32, key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        into.clear();
        into.extend_from_slice(self.0[row as usize][key].as_bytes());
        Ok(())
    }
}

fn several(session: &Session) -> Rows {
    Rows(match session.me().0 {
        0 => vec![["a", "1"], ["b", ""], ["c", "3"], ["", "4"]],
        _ => vec![["c", "9"], ["x", "1"], ["b", "4"]],
    })
}

fn options() -> MatchOptions {
    MatchOptions { threads: 1, peer_rows_max: 100, ..Default::default() }
}

fn join_options(layout: PayloadLayout) -> MatchOptions {
    let layouts = [layout.clone(), layout];
    MatchOptions { ot: Some(OT), memory: Some(1 << 28), layouts, ..options() }
}

fn multi_pid(session: &mut Session) -> Result<(), Error> {
    let options = MatchOptions {
        contaminated: ContaminatedRule::Drop,
        lists: (session.me() == PartyId(0)).then_some(2),
        repeats: RepeatRule::Replace,
        ..options()
    };
    MultiId.run(session, &several(session), None, &options).map(|_| ())
}

fn payload(layout: &PayloadLayout, rows: u64) -> Result<PayloadTable, Error> {
    let mut table = PayloadTable::zeros(layout.clone(), rows)?;
    (0..rows).for_each(|row| table.set(row, 0, u128::from(row + 1)));
    Ok(table)
}

fn joined(session: &mut Session, backend: ShareBackend) -> Result<(), Error> {
    let layout = PayloadLayout::new([TableField::number(8), TableField::bits(9)])?;
    let rows = mine(session);
    let payload = payload(&layout, rows.flat().rows())?;
    let options = MatchOptions { backend, ..join_options(layout) };
    InnerJoin.run(session, &rows.flat(), Some(&payload), &options).map(|_| ())
}

fn collect(session: &mut Session) -> Result<(), Error> {
    let layout = PayloadLayout::new([TableField::number(4), TableField::bits(3)])?;
    let rows = several(session);
    let payload = payload(&layout, rows.rows())?;
    let options = MatchOptions { slots: 2, degree: 2, ..join_options(layout) };
    CollectingJoin.run(session, &rows, Some(&payload), &options).map(|_| ())
}

/// Correlated, random and chosen OTs.
fn flavours(session: &mut Session, kind: OtKind) -> Result<(), Error> {
    let peer = session.me().other();
    let (mut blocks, n) = (Vec::new(), 70);
    if session.me() == PartyId(0) {
        let delta = ot::fresh_delta(&mut session.fork_seed("delta").into_rng());
        let mut sender = kind.sender(session, peer, delta, 300)?;
        sender.correlated(session, n, &mut blocks)?;
        sender.correlated_random(session, n, &mut blocks)?;
        sender.random(session, n, 1).map(|_| ())
    } else {
        let mut receiver = kind.receiver(session, peer, 300)?;
        let (bits, mut drawn) = (vec![0x5555; 2], Vec::new());
        receiver.correlated(session, &bits, n, &mut blocks)?;
        receiver.correlated_random(session, n, &mut drawn, &mut blocks)?;
        receiver.random(session, &bits, n, 1).map(|_| ())
    }
}

/// Engines over small cases of the conformance suite: with noise, and with lists and best rows
/// where there are any.
fn engines(cases: Vec<ProgramCase>, parties: usize, make: fn() -> Box<dyn Engine>) -> Talk {
    let small = |case: &&ProgramCase| (0..=2).contains(&case.rows) && case.split.is_none();
    let noisy = cases.iter().filter(small).find(|case| matches!(case.noise, Noise::Coins(_)));
    let lists = cases.iter().filter(small).find(|case| !case.program.lists.is_empty());
    let chosen: Vec<ProgramCase> =
        noisy.or(lists).or(cases.iter().find(small)).into_iter().chain(lists).cloned().collect();
    Talk::new(parties, move |s| chosen.iter().try_for_each(|case| half(&|_| Ok(make()), case, s)))
}

fn outsourced(seats: [u8; 4]) -> Ring4 {
    let settings = Settings { security: Security::Malicious, hash: TagHash::Keyed, masked: true };
    Ring4::new(settings, seats.map(PartyId), || Ok(accel::DeviceQueue::default())).with_chunk(128)
}

/// A 64-bit addition in 64 lanes.
fn circuits(engine: &dyn CircuitEngine, session: &mut Session) -> Result<(), Error> {
    let wired = circuits::standard::add64();
    let mine = |p: u8| if session.me() == PartyId(p) { vec![vec![5; 1]; 64] } else { Vec::new() };
    let inputs = [mine(0), mine(1)];
    engine.circuit(&wired)?.run(64, &inputs, session).map(|_| ())
}

/// Inputs of both, ANDs, a barrier and reveals, on wires in memory.
fn imperative(session: &mut Session) -> Result<(), Error> {
    let mut party = match session.me() {
        PartyId(0) => wires::WireParty::garbler(session)?,
        _ => wires::WireParty::evaluator(session)?,
    };
    let [mut x, mut y, mut z] = [vec![Block::ZERO; 70], vec![Block::ZERO; 70], vec![Block::ZERO; 70]];
    let bits =
        |party: &wires::WireParty<'_>, owner| if party.enters(owner) { vec![0x77; 2] } else { Vec::new() };
    let of_garbler = bits(&party, wires::Role::Garbler);
    party.input(wires::Role::Garbler, &of_garbler, &mut x)?;
    let of_evaluator = bits(&party, wires::Role::Evaluator);
    party.input(wires::Role::Evaluator, &of_evaluator, &mut y)?;
    party.and(&x, &y, &mut z)?;
    party.agree()?;
    party.reveal(wires::To::Both, &z)?;
    party.reveal(wires::To::One(wires::Role::Garbler), &z).map(|_| ())
}
