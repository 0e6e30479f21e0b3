//! Which engine runs a study, and how it is set up. What the study leaves open (`auto`) is settled by the
//! link: of the back ends and circuits that may serve, the one whose computation is estimated to end first.
//! `tacit plan` estimates by the same rule.
//!
//! A choice holds the rows of the study's program, prepared: they are lowered once per engine and circuit
//! that is considered, and every copy of the choice, at whatever worker, shares them.

use crate::devices::FoundDevice;
use crate::plan::{Link, Speeds};
use crate::ranges::RowRanges;
use accel::DeviceQueue;
use accel_cuda::memory;
use base::{Cost, Error, Fault, PartyId, limits};
use engine::{Engine, PreparedRows, RowSource, StagePrice};
use gmw::{Gmw, TransferRows};
use matching::OutputForm;
use ot::OtKind;
use program::lower::JoinedPlan;
use program::lower::combine::SelectionCircuit;
use program::{Program, Sharing};
use ring4::{Ring4, RingRows, Security, Settings};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use study::{Compute, ComputeEngine, Servers, Study};
use yao::Yao;

/// The engine of a study, with its rows prepared.
#[derive(Clone)]
pub struct StudyEngine {
    compute: Compute,
    rows: ChosenRows,
    /// Whether there are several circuits for the program: only best rows and the like are circuits.
    has_circuit: bool,
    /// How many compute at once.
    workers: u32,
    source: RowSource,
}

/// The rows of a study's program, as an engine has prepared them.
#[derive(Clone)]
enum ChosenRows {
    /// The study only matches.
    Nothing,
    Yao(Arc<dyn PreparedRows>),
    Gmw(TransferRows),
    Ring4(RingRows),
}

/// What row and combine of all units will cost.
pub struct Estimate {
    /// Exact.
    pub cost: Cost,
    /// AND gates, of `ring4` those of shares: servers book none.
    pub and_gates: u64,
    /// Round trips that nothing else fills; worker lanes wait at the same time.
    pub round_trips: u64,
    /// Seconds that one core would compute for all who take part.
    pub core_s: f64,
    /// Where the time goes.
    pub time: StageTime,
}

/// Where the time of a stage goes, estimated in seconds at the slowest party. Sending and computing overlap;
/// waiting does not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageTime {
    /// On the cores that the stage can use.
    pub computing_s: f64,
    /// What the bandwidth takes.
    pub sending_s: f64,
    /// For answers.
    pub waiting_s: f64,
}

impl StageTime {
    /// Seconds, where cores compute in such a share of their time, above 0 to 1.
    #[must_use]
    pub fn seconds(&self, share_used: f64) -> f64 {
        self.sending_s.max(self.computing_s / share_used) + self.waiting_s
    }
}

impl Estimate {
    /// Of a stage that computes next to nothing, each of whose rounds takes so much of a round trip.
    pub(crate) fn of_messages(cost: Cost, link: Link, part: f64) -> Self {
        let waiting_s = cost.rounds as f64 * link.round_trip_s * part;
        let time = StageTime { computing_s: 0.0, sending_s: link.seconds(&cost), waiting_s };
        Self { and_gates: cost.and_gates, round_trips: cost.rounds, core_s: 0.0, time, cost }
    }

    /// Estimated seconds, where cores do nothing else.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.time.seconds(1.0)
    }
}

impl StudyEngine {
    /// The engine that a study asks for. Where it leaves the choice, `gmw`, which keeps the release section
    /// between two parties in garbled circuits; or `yao` for a program that `gmw` does not run.
    ///
    /// # Errors
    /// When no engine, or not the one asked for, can run the program: in the engine's words and with what to
    /// change.
    pub fn of(study: &Study, program: &Program) -> Result<Self, Error> {
        let compute = study.compute;
        let has_circuit = program.sharing() == Sharing::Boolean;
        let source = row_source(study);
        if study.only_matches() {
            return Ok(Self { compute, rows: ChosenRows::Nothing, has_circuit, workers: 1, source });
        }
        let gmw = || prepare_gmw(compute, program, source);
        let yao = || prepare_yao(program, source);
        let rows = match (&study.servers, compute.engine) {
            (Some(servers), _) => prepare_ring4(servers.settings(), servers.seats(), program, source),
            // The clear engine meets no network: see `Study::refuse_clear`. A plan prices what would run
            // instead.
            (None, ComputeEngine::Auto | ComputeEngine::Clear) => gmw().or_else(|why| yao().map_err(|_| why)),
            (None, ComputeEngine::Yao) => yao(),
            (None, ComputeEngine::Gmw) => gmw(),
        };
        let rows = rows.map_err(|error| match error.kind() {
            Fault::Input(text) => Error::input(format!("study {}, compute.engine: {text}", study.name)),
            _ => error,
        })?;
        Ok(Self { compute, rows, has_circuit, workers: usual_workers(), source })
    }

    /// Every engine that can run the program, and what of the study would have to change besides `engine`:
    /// nothing where the same parties run it, protected against the same. This one's rows are not prepared
    /// again.
    #[must_use]
    pub fn alternatives(&self, study: &Study, program: &Program) -> Vec<(Self, Option<String>)> {
        let source = row_source(study);
        let is_program = matches!(study.kind, study::Question::Program(_));
        let form = study.matching.matcher.features().form;
        let aligned = study.matching.matcher.features().public_identifiers;
        let owners_alone = match study.servers {
            None => None,
            Some(_) if aligned && is_program => Some("no servers"),
            Some(_) => Some("no servers, match.protocol = \"pid\""),
        };
        let yao = match &self.rows {
            ChosenRows::Yao(_) => Ok(self.rows.clone()),
            _ => prepare_yao(program, source),
        };
        let gmw = match &self.rows {
            ChosenRows::Gmw(_) => Ok(self.rows.clone()),
            _ => prepare_gmw(study.compute, program, source),
        };
        let of = |rows, compute, needs| Some((Self { compute, rows, ..self.clone() }, needs));
        let needs = || owners_alone.map(str::to_owned);
        let mut choices: Vec<_> =
            [yao, gmw].into_iter().filter_map(|rows| of(rows.ok()?, study.compute, needs())).collect();
        let seats = study
            .servers
            .as_ref()
            .map_or_else(|| [0, 1, 2, 3].map(|i| PartyId(study.parties.len() as u8 + i)), Servers::seats);
        // Keyed hashes join by one identifier; what arrives as shares is shared between two.
        let outsourced = form == OutputForm::Spine && study.matching.identifiers.len() == 1;
        for security in [Security::SemiHonest, Security::Malicious].into_iter().filter(|_| outsourced) {
            let settings = study.servers.as_ref().map(Servers::settings).unwrap_or_default();
            let needs = match &study.servers {
                Some(servers) if servers.security == security => None,
                Some(_) => Some(format!("ring4.security = \"{}\"", study::security_name(security))),
                None if aligned => Some("four servers".to_owned()),
                None => Some("four servers, match.protocol = \"salted-key\"".to_owned()),
            };
            let shards = if study.servers.is_some() { study.compute.shards } else { 1 };
            let compute = Compute { shards, ..study.compute };
            let rows = match &self.rows {
                ChosenRows::Ring4(rows) if rows.ring4().settings().security == security => {
                    Ok(self.rows.clone())
                }
                _ => prepare_ring4(Settings { security, ..settings }, seats, program, RowSource::Owned),
            };
            choices.extend(rows.ok().and_then(|rows| of(rows, compute, needs)));
        }
        choices
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.rows {
            ChosenRows::Yao(_) => "yao",
            ChosenRows::Gmw(_) | ChosenRows::Nothing => "gmw",
            ChosenRows::Ring4(_) => "ring4",
        }
    }

    /// What prepares releases.
    #[must_use]
    pub fn engine(&self) -> Box<dyn Engine> {
        match &self.rows {
            ChosenRows::Yao(_) => Box::new(Yao::default()),
            ChosenRows::Gmw(_) | ChosenRows::Nothing => Box::new(gmw_of(self.compute)),
            ChosenRows::Ring4(rows) => Box::new(rows.ring4().clone()),
        }
    }

    /// Row and combine.
    ///
    /// # Errors
    /// When the study only matches.
    pub fn rows(&self) -> Result<&dyn PreparedRows, Error> {
        match &self.rows {
            ChosenRows::Nothing => Err(Error::misuse("nothing is computed on rows that are only matched")),
            ChosenRows::Yao(rows) => Ok(&**rows),
            ChosenRows::Gmw(rows) => Ok(rows),
            ChosenRows::Ring4(rows) => Ok(rows),
        }
    }

    /// How rows enter that a match has joined to shares; none where rows lie on a common spine.
    #[must_use]
    pub fn joined(&self) -> Option<&Arc<JoinedPlan>> {
        if let ChosenRows::Gmw(rows) = &self.rows { rows.joined() } else { None }
    }

    /// The same where others than its two ends can read the channels between servers, or not: messages are
    /// masked then.
    #[must_use]
    pub fn masked(&self, masked: bool) -> Self {
        match &self.rows {
            ChosenRows::Ring4(rows) => self.with_rows(ChosenRows::Ring4(rows.masked(masked))),
            _ => self.clone(),
        }
    }

    /// The same with another device at this party, where it is one of the servers.
    #[must_use]
    pub(crate) fn on(&self, device: &FoundDevice) -> Self {
        match &self.rows {
            ChosenRows::Ring4(rows) => {
                let device = device.clone();
                self.with_rows(ChosenRows::Ring4(rows.with_devices(move || device.open())))
            }
            _ => self.clone(),
        }
    }

    /// Ranges of rows that a server computes at once, and bytes of a card's memory that each of them takes
    /// there at most, where it computes on one.
    #[must_use]
    pub fn on_card(&self) -> (usize, usize) {
        let ChosenRows::Ring4(rows) = &self.rows else { return (1, memory::buffer_bytes()) };
        let ranges = if rows.adds_up() { self.compute.shards as usize } else { 1 };
        (ranges, memory::buffer_bytes() + memory::vector_bytes(rows.device_blocks(memory::least_handed())))
    }

    fn with_rows(&self, rows: ChosenRows) -> Self {
        Self { rows, ..self.clone() }
    }

    /// Whether the link settles something: `gmw`, with a setting left open that matters to the program.
    #[must_use]
    pub fn asks(&self) -> bool {
        let open = self.compute.ot.is_none() || self.compute.circuit.is_none() && self.has_circuit;
        let ChosenRows::Gmw(rows) = &self.rows else { return false };
        open && rows.price(2).cost.ots > 0
    }

    /// With all settings settled for so many rows over a link. What the study fixed stays; where two would
    /// end at the same time, the simpler one.
    #[must_use]
    pub fn settled(&self, program: &Program, rows: u64, link: Link, speeds: Speeds) -> Self {
        let ChosenRows::Gmw(own) = &self.rows else { return self.clone() };
        if !self.asks() {
            return self.clone();
        }
        let kinds = self.compute.ot.map_or(OtKind::CANDIDATES.to_vec(), |kind| vec![kind]);
        let mut shapes = vec![(self.compute.circuit.unwrap_or_default(), own.clone())];
        if self.compute.circuit.is_none() && self.has_circuit {
            let shallow = gmw_of(Compute { circuit: Some(SelectionCircuit::Shallow), ..self.compute });
            shapes.extend(
                shallow.prepare(program, RowSource::Owned).map(|rows| (SelectionCircuit::Shallow, rows)),
            );
        }
        let candidate = |kind, (shape, prepared): &(SelectionCircuit, TransferRows)| {
            let compute = Compute { ot: Some(kind), circuit: Some(*shape), ..self.compute };
            let choice = Self { compute, rows: ChosenRows::Gmw(prepared.with_kind(kind)), ..self.clone() };
            let seconds = choice.estimate(rows, link, speeds).map_or(f64::INFINITY, |all| all.seconds());
            (choice, seconds)
        };
        let shapes = &shapes;
        let all = kinds.iter().flat_map(|kind| shapes.iter().map(|shape| candidate(*kind, shape)));
        let best = all.min_by(|(_, a), (_, b)| a.total_cmp(b));
        best.map_or_else(|| self.clone(), |(choice, _)| choice)
    }

    /// How the engine is set up, for people.
    #[must_use]
    pub fn settings(&self) -> String {
        let ot = self.compute.ot.unwrap_or_default();
        match &self.rows {
            ChosenRows::Yao(_) => String::new(),
            ChosenRows::Gmw(_) | ChosenRows::Nothing if self.has_circuit => {
                format!("{ot}, {} circuit", self.compute.circuit.unwrap_or_default())
            }
            ChosenRows::Gmw(_) | ChosenRows::Nothing => ot.to_string(),
            ChosenRows::Ring4(rows) => study::ring4_settings(rows.ring4().settings()),
        }
    }

    /// How many workers compute at once, where there are units enough.
    #[must_use]
    pub fn workers(&self) -> u32 {
        self.workers
    }

    /// The same with so many workers.
    #[must_use]
    pub fn with_workers(&self, workers: u32) -> Self {
        Self { workers, ..self.clone() }
    }

    /// What another process prepares the same rows from.
    ///
    /// # Errors
    /// Of rows that no worker computes: those that are only matched, and those of servers.
    pub(crate) fn spec(&self) -> Result<EngineSpec, Error> {
        let engine = match &self.rows {
            ChosenRows::Yao(_) => "yao",
            ChosenRows::Gmw(_) => "gmw",
            ChosenRows::Nothing | ChosenRows::Ring4(_) => {
                return Err(Error::misuse("workers compute between two parties"));
            }
        };
        let joined = match self.source {
            RowSource::Owned => None,
            RowSource::Joined(shared) => Some(shared),
        };
        let Compute { ot, circuit, .. } = self.compute;
        Ok(EngineSpec {
            engine: engine.to_owned(),
            ot: ot.map(|kind| kind.to_string()),
            circuit: circuit.map(|circuit| circuit.to_string()),
            joined,
        })
    }

    /// How many units are computed at once. Servers have a lane for each.
    fn at_once(&self, ranges: &RowRanges) -> u64 {
        match &self.rows {
            ChosenRows::Ring4(_) => ranges.units(),
            _ => self.workers.into(),
        }
    }

    /// How so many rows are cut: by a rule that all know, from numbers that all know.
    pub(crate) fn ranges(&self, rows: u64) -> RowRanges {
        match &self.rows {
            ChosenRows::Ring4(ring4) if ring4.adds_up() => RowRanges::of_lanes(rows, self.compute.shards),
            ChosenRows::Ring4(_) => RowRanges::whole(rows),
            _ if self.has_circuit => RowRanges::whole(rows),
            _ => RowRanges::of_sums(rows, self.workers),
        }
    }

    /// What row and combine over ranges cost, whichever worker computes what. Workers wait at the same time.
    ///
    /// # Errors
    /// When the study only matches.
    pub(crate) fn price(&self, ranges: &RowRanges) -> Result<StagePrice, Error> {
        let stage = self.rows()?;
        let mut all = StagePrice::default();
        for (rows, units) in ranges.sizes().into_iter().filter(|(_, units)| *units > 0) {
            let price = stage.price(rows);
            all.cost += &(price.cost * units);
            all.and_gates += price.and_gates * units;
            all.trips = all.trips.max(price.trips * ranges.units().div_ceil(self.at_once(ranges)));
        }
        Ok(all)
    }

    /// Cost and time of row and combine over so many rows.
    ///
    /// # Errors
    /// When the study only matches.
    pub fn estimate(&self, rows: u64, link: Link, speeds: Speeds) -> Result<Estimate, Error> {
        let ranges = self.ranges(rows);
        let StagePrice { cost, and_gates, trips } = self.price(&ranges)?;
        let of = ranges.units().min(self.at_once(&ranges)) as u32;
        let parties = cost.sent.len() as f64;
        // Seconds of a core, of the party that has most to do, and of all. Gates of `gmw` cost their
        // transfers, which two parties make; next to gates of `yao`, transfers cost nothing.
        let (work, core_s) = match &self.rows {
            ChosenRows::Ring4(rows) => {
                let work = and_gates as f64 / speeds.ring4(rows.ring4().settings().security);
                // The rate is of four servers on two cores.
                (work, 2.0 * work)
            }
            ChosenRows::Yao(_) => {
                let work = and_gates as f64 / speeds.and_per_s;
                (work, parties * work)
            }
            ChosenRows::Gmw(_) | ChosenRows::Nothing => {
                let [own, usual] = [self.compute.ot.unwrap_or_default(), OtKind::default()];
                let more = own.seconds_per_ot() - usual.seconds_per_ot();
                let [most, other] = speeds.ots_per_s.map(|rate| cost.ots as f64 * (1.0 / rate + more));
                (most * 2.0 / parties, most + other)
            }
        };
        // The parties of sums by `gmw` take turns, so a worker sends one way at a time.
        let turns = match self.name() == "gmw" && !self.has_circuit {
            true => 8.0 * cost.bytes() as f64 / link.bits_per_s / f64::from(of),
            false => 0.0,
        };
        let time = StageTime {
            computing_s: work / speeds.cores.min(f64::from(of)),
            sending_s: link.seconds(&cost).max(turns),
            waiting_s: trips as f64 * link.round_trip_s / 2.0,
        };
        Ok(Estimate { cost, and_gates, round_trips: trips.div_ceil(2), core_s, time })
    }
}

/// Whether a match has joined a study's rows to shares, and whose rows arrive so.
pub(crate) fn row_source(study: &Study) -> RowSource {
    match study.matching.matcher.features().form {
        OutputForm::Spine => RowSource::Owned,
        OutputForm::Shares(shared) => RowSource::Joined(shared),
    }
}

fn gmw_of(compute: Compute) -> Gmw {
    Gmw::new(compute.ot.unwrap_or_default()).with_shape(compute.circuit.unwrap_or_default())
}

/// Workers of a party that says nothing else: as many as it has cores.
pub(crate) fn usual_workers() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    cores.min(limits::WORKERS.into()) as u32
}

/// An engine with all settings settled, as a worker process is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EngineSpec {
    engine: String,
    ot: Option<String>,
    circuit: Option<String>,
    /// Whose rows a match has joined to shares.
    joined: Option<[bool; 2]>,
}

impl EngineSpec {
    /// The same engine, with a program's rows prepared.
    ///
    /// # Errors
    /// When there is no such engine, or it does not run the program.
    pub fn prepare(&self, program: &Program) -> Result<StudyEngine, Error> {
        let ot = self.ot.as_deref().map(str::parse).transpose()?;
        let circuit = self.circuit.as_deref().map(str::parse).transpose()?;
        let compute = Compute { engine: ComputeEngine::Auto, ot, circuit, shards: 1 };
        let source = self.joined.map_or(RowSource::Owned, RowSource::Joined);
        let rows = match &*self.engine {
            "yao" => prepare_yao(program, source)?,
            "gmw" => prepare_gmw(compute, program, source)?,
            other => return Err(Error::misuse(format!("no worker runs the engine {other}"))),
        };
        let has_circuit = program.sharing() == Sharing::Boolean;
        Ok(StudyEngine { compute, rows, has_circuit, workers: 1, source })
    }
}

fn prepare_gmw(compute: Compute, program: &Program, source: RowSource) -> Result<ChosenRows, Error> {
    gmw_of(compute).prepare(program, source).map(ChosenRows::Gmw)
}

fn prepare_yao(program: &Program, source: RowSource) -> Result<ChosenRows, Error> {
    Yao::default().rows(program, source).map(|rows| ChosenRows::Yao(rows.into()))
}

fn prepare_ring4(
    settings: Settings,
    seats: [PartyId; 4],
    program: &Program,
    source: RowSource,
) -> Result<ChosenRows, Error> {
    source.must_be_owned("ring4")?;
    let ring4 = Ring4::new(settings, seats, || Ok(DeviceQueue::default()));
    Ok(ChosenRows::Ring4(ring4.prepare(program)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use release::rational::ratio;

    const LIFT: &str = include_str!("../../../examples/lift.toml");
    const ALIGNED: &str = include_str!("../../../examples/aligned.toml");

    fn engines(text: &str) -> (StudyEngine, Program) {
        let study = Study::parse("study.toml", text).unwrap();
        let policy =
            program::VerifierPolicy { max_rho: ratio(1000, 1), max_outputs: 8192, allow_exact: true };
        let program = crate::prepare::build(&study, &policy).unwrap().program;
        (StudyEngine::of(&study, &program).unwrap(), program)
    }

    fn settled(text: &str, rows: u64, mbit: f64, ms: f64) -> String {
        let (engines, program) = engines(text);
        let link = Link { bits_per_s: mbit * 1e6, round_trip_s: ms / 1e3 };
        engines.settled(&program, rows, link, Speeds::default()).settings()
    }

    #[test]
    fn the_link_settles_the_back_end() {
        // Many rows on a thin link are worth silent OT; a few, or a wide link, are not.
        assert_eq!(settled(LIFT, 1 << 20, 10.0, 40.0), "ferret");
        assert_ne!(settled(LIFT, 100, 100.0, 40.0), "ferret");
        assert_eq!(settled(LIFT, 1 << 20, 20_000.0, 0.1), "softspoken:2");
    }

    #[test]
    fn a_long_path_is_paid_once_per_group_and_by_all_shards_at_once() {
        let (engines, _) = engines(LIFT);
        let link = |ms| Link { bits_per_s: 1e12, round_trip_s: ms / 1e3 };
        let [near, far] =
            [0.0, 20.0].map(|ms| engines.estimate(1 << 20, link(ms), Speeds::default()).unwrap());
        assert!(8 * far.round_trips < far.cost.rounds, "{} of {}", far.round_trips, far.cost.rounds);
        let waits = (far.seconds() - near.seconds()) / 0.02;
        assert!((waits - far.round_trips as f64).abs() < 0.6, "{waits}");
    }

    #[test]
    fn the_link_settles_the_circuit() {
        assert!(settled(ALIGNED, 300, 1000.0, 80.0).ends_with(", shallow circuit"));
        assert!(settled(ALIGNED, 20_000, 100.0, 0.0).ends_with(", small circuit"));
    }

    #[test]
    fn what_is_fixed_stays_and_nothing_is_measured_for_it() {
        let fixed = ALIGNED.replace("ot      = \"auto\"", "ot = \"softspoken:4\"");
        let fixed = fixed.replace("circuit = \"auto\"", "circuit = \"small\"");
        let (engines, _) = engines(&fixed);
        assert!(!engines.asks());
        assert_eq!(settled(&fixed, 300, 1.0, 500.0), "softspoken:4, small circuit");
        let (engines, _) = self::engines(&LIFT.replace("engine  = \"auto\"", "engine  = \"yao\""));
        assert!(!engines.asks());
    }
}
