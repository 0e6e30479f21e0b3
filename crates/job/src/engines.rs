//! Which engine runs a study, and how it is set up. What the study leaves open (`auto`) is settled by the
//! link: of the back ends and circuits that may serve, the one whose computation is estimated to end first.
//! `tacit plan` estimates by the same rule.

use crate::plan::{Link, Speeds};
use accel::DeviceQueue;
use base::{Cost, Error, Fault, PartyId};
use engine::Engine;
use gmw::Gmw;
use ot::{Bases, ExtensionCost, OtKind};
use program::lower::combine::SelectionCircuit;
use program::lower::{Draws, ReleasePlan};
use program::{Program, Sharing};
use ring4::{Ring4, Security, Settings};
use study::{Compute, ComputeEngine as Choice, Protocol, Servers, Study};
use yao::Yao;

/// The engine of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engines {
    name: Name,
    compute: Compute,
    /// Whose rows arrive as shares, where the match joins rows to shares.
    joined: Option<[bool; 2]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Yao,
    Gmw,
    /// The four servers at these seats.
    Ring4(Settings, [PartyId; 4]),
}

/// What row and combine of all shards will cost.
pub struct Estimate {
    /// Exact.
    pub cost: Cost,
    /// AND gates, of `ring4` those of shares: servers book none.
    pub and_gates: u64,
    /// Round trips that nothing else fills; shards wait at the same time.
    pub round_trips: u64,
    /// Estimated time.
    pub seconds: f64,
}

impl Engines {
    /// The engine that a study asks for. Where it leaves the choice, `gmw`, which keeps the release section
    /// between two parties in garbled circuits; or `yao` for a program that `gmw` does not run.
    ///
    /// # Errors
    /// When no engine, or not the one asked for, can run the program: in the engine's words and with what to
    /// change.
    pub fn of(study: &Study, program: &Program) -> Result<Self, Error> {
        let Compute { engine, shards, .. } = study.compute;
        let joined = joined(study);
        if study.only_matches() {
            return Ok(Self { name: Name::Gmw, compute: study.compute, joined });
        }
        let with = |name| Self { name, compute: study.compute, joined }.checked(program);
        let engines = match engine {
            // The clear engine meets no network: see `Study::refuse_clear`. A plan prices what would run
            // instead.
            Choice::Auto | Choice::Clear => with(Name::Gmw).or_else(|why| with(Name::Yao).map_err(|_| why)),
            Choice::Yao => with(Name::Yao),
            Choice::Gmw => with(Name::Gmw),
            Choice::Ring4 => with(ring4_of(study)?),
        };
        let engines = engines.map_err(|error| match error.kind() {
            Fault::Input(text) => Error::input(format!("study {}, compute.engine: {text}", study.name)),
            _ => error,
        })?;
        if program.sharing() == Sharing::Boolean && shards > 1 {
            return Err(Error::input(format!(
                "study {}: compute.shards is {shards}, and only sums between two parties are dealt to \
                 several; use shards = 1",
                study.name
            )));
        }
        Ok(engines)
    }

    /// Itself, where it can run the program.
    fn checked(self, program: &Program) -> Result<Self, Error> {
        match self.joined {
            Some(shared) => self.make().check_joined(program, shared)?,
            None => self.make().check(program)?,
        }
        Ok(self)
    }

    /// Every engine that can run the program, and what of the study would have to change besides `engine`:
    /// nothing where the same parties run it, protected against the same.
    #[must_use]
    pub fn choices(study: &Study, program: &Program) -> Vec<(Self, Option<String>)> {
        let mut choices = Vec::new();
        let mut add = |name, joined, compute, needs: Option<&str>| {
            let engines = Self { name, compute, joined };
            choices.extend(engines.checked(program).ok().map(|engines| (engines, needs.map(str::to_owned))));
        };
        let is_program = matches!(study.kind, study::Question::Program(_));
        let owners_alone = match study.servers {
            None => None,
            Some(_) if study.matching.protocol == Protocol::Aligned && is_program => Some("no servers"),
            Some(_) => Some("no servers, match.protocol = \"pid\""),
        };
        for name in [Name::Yao, Name::Gmw] {
            add(name, joined(study), study.compute, owners_alone);
        }
        let seats = study
            .servers
            .as_ref()
            .map_or_else(|| [0, 1, 2, 3].map(|i| PartyId(study.parties.len() as u8 + i)), Servers::seats);
        // Keyed hashes join by one identifier; what arrives as shares is shared between two.
        let outsourced =
            matches!(study.matching.protocol, Protocol::Pid | Protocol::Aligned | Protocol::SaltedKey);
        for security in [Security::SemiHonest, Security::Malicious].into_iter().filter(|_| outsourced) {
            let settings = study.servers.as_ref().map(Servers::settings).unwrap_or_default();
            let needs = match &study.servers {
                Some(servers) if servers.security == security => None,
                Some(_) => Some(format!("ring4.security = \"{}\"", study::security_name(security))),
                None if study.matching.protocol == Protocol::Aligned => Some("four servers".to_owned()),
                None => Some("four servers, match.protocol = \"salted-key\"".to_owned()),
            };
            let compute = Compute { shards: 1, ..study.compute };
            add(Name::Ring4(Settings { security, ..settings }, seats), None, compute, needs.as_deref());
        }
        choices
    }

    /// What computing a release takes of an engine: its price, AND gates as [`Estimate`] has them, and round
    /// trips.
    #[must_use]
    pub fn price_release(&self, plan: &ReleasePlan) -> (Cost, u64, u64) {
        let cost = self.make().price_release(plan);
        match self.name {
            Name::Ring4(settings, seats) => {
                let engine = self.ring4(settings, seats);
                let [and_gates, trips] = engine.release_work(plan);
                (cost, and_gates, trips.div_ceil(2))
            }
            Name::Yao | Name::Gmw => {
                let (and_gates, rounds) = (cost.and_gates, cost.rounds);
                (cost, and_gates, rounds)
            }
        }
    }

    /// The same of the noise that is drawn before the rows.
    #[must_use]
    pub fn price_draw(&self, draws: &Draws) -> (Cost, u64, u64) {
        let cost = self.make().price_draw(draws);
        match self.name {
            Name::Ring4(settings, seats) => {
                let [and_gates, trips] = self.ring4(settings, seats).draw_work(draws);
                (cost, and_gates, trips.div_ceil(2))
            }
            Name::Yao | Name::Gmw => (cost, 0, 0),
        }
    }

    /// The same where others than its two ends can read the channels between servers, or not: messages are
    /// masked then.
    #[must_use]
    pub fn masked(self, masked: bool) -> Self {
        match self.name {
            Name::Ring4(settings, seats) => {
                Self { name: Name::Ring4(Settings { masked, ..settings }, seats), ..self }
            }
            Name::Yao | Name::Gmw => self,
        }
    }

    /// Whose rows arrive as shares; `None` where rows lie on a common spine.
    #[must_use]
    pub fn joined(&self) -> Option<[bool; 2]> {
        self.joined
    }

    /// What row and combine of one shard cost.
    #[must_use]
    pub fn price_rows(&self, engine: &dyn Engine, program: &Program, rows: u64) -> Cost {
        match self.joined {
            Some(shared) => engine.price_joined(program, shared, rows),
            None => engine.price_rows(program, rows),
        }
    }

    /// A fresh engine, as for releases and for a worker with base OTs of its own.
    #[must_use]
    pub fn make(&self) -> Box<dyn Engine> {
        match self.name {
            Name::Yao => Box::new(Yao::default()),
            Name::Gmw => Box::new(self.gmw()),
            Name::Ring4(settings, seats) => Box::new(self.ring4(settings, seats)),
        }
    }

    fn gmw(&self) -> Gmw {
        Gmw::new(self.compute.ot.unwrap_or_default()).with_shape(self.compute.circuit.unwrap_or_default())
    }

    fn ring4(&self, settings: Settings, seats: [PartyId; 4]) -> Ring4 {
        Ring4::new(settings, seats, || Ok(DeviceQueue::default()))
    }

    /// The engine of one worker of several: over its base OTs where there is a hub ([`Engines::has_hub`]).
    #[must_use]
    pub fn worker(&self, bases: Option<Bases>) -> Box<dyn Engine> {
        match self.has_hub() {
            true => Box::new(self.gmw().over(bases)),
            false => self.make(),
        }
    }

    /// Whether the workers' base OTs come out of one run of the coordinators: where there are several workers
    /// of `gmw`.
    #[must_use]
    pub fn has_hub(&self) -> bool {
        self.name == Name::Gmw && self.compute.shards > 1
    }

    /// What the hub costs and how many messages of it cross the path one after the other.
    #[must_use]
    pub fn hub(&self, parties: usize) -> (Cost, u64) {
        if !self.has_hub() {
            return (Cost::zero(parties), 0);
        }
        let leader = PartyId(u8::from(!ot::leads(PartyId(0), PartyId(1))));
        (ExtensionCost::hubs(self.compute.shards.into()).cost(leader, leader.other(), parties), 3)
    }

    /// Whether the link settles something: `gmw`, with a setting left open that matters to the program.
    #[must_use]
    pub fn asks(&self, program: &Program) -> bool {
        let open = self.compute.ot.is_none() || self.compute.circuit.is_none() && has_circuit(program);
        self.name == Name::Gmw && open && self.price_rows(&*self.make(), program, 2).ots > 0
    }

    /// With all settings settled for so many rows over a link. What the study fixed stays; where two would
    /// end at the same time, the simpler one.
    #[must_use]
    pub fn settled(&self, program: &Program, rows: u64, link: Link, speeds: Speeds) -> Self {
        if !self.asks(program) {
            return *self;
        }
        let kinds = self.compute.ot.map_or(OtKind::CANDIDATES.to_vec(), |kind| vec![kind]);
        let shapes = match self.compute.circuit {
            Some(shape) => vec![shape],
            None if has_circuit(program) => vec![SelectionCircuit::Small, SelectionCircuit::Shallow],
            None => vec![SelectionCircuit::default()],
        };
        let all = kinds.iter().flat_map(|kind| shapes.iter().map(|shape| (*kind, *shape)));
        let with = |(kind, shape)| {
            let compute = Compute { ot: Some(kind), circuit: Some(shape), ..self.compute };
            let engines = Self { compute, ..*self };
            (engines, engines.estimate(program, rows, link, speeds).seconds)
        };
        let best = all.map(with).min_by(|(_, a), (_, b)| a.total_cmp(b));
        best.map_or(*self, |(engines, _)| engines)
    }

    /// How the engine is set up, for people.
    #[must_use]
    pub fn settings(&self, program: &Program) -> String {
        let ot = self.compute.ot.unwrap_or_default();
        match self.name {
            Name::Yao => String::new(),
            Name::Gmw if has_circuit(program) => {
                format!("{ot}, {} circuit", self.compute.circuit.unwrap_or_default())
            }
            Name::Gmw => ot.to_string(),
            Name::Ring4(settings, _) => study::ring4_settings(settings),
        }
    }

    /// Cost and time of row and combine over so many rows.
    #[must_use]
    pub fn estimate(&self, program: &Program, rows: u64, link: Link, speeds: Speeds) -> Estimate {
        let (of, parties) = (u64::from(self.compute.shards), program.parties.len());
        let engine = self.worker(None);
        let (mut cost, hub) = self.hub(parties);
        (0..of).for_each(|i| cost += &self.price_rows(&*engine, program, (rows + of - 1 - i) / of));
        let shard = rows.div_ceil(of);
        let trips = match self.joined {
            Some(shared) => engine.trips_joined(program, shared, shard),
            None => engine.trips(program, shard),
        };
        let trips = hub + trips;
        // Gates of `gmw` cost their transfers, which two parties make; next to gates of `yao`, transfers cost
        // nothing.
        let and_gates = match self.name {
            Name::Ring4(settings, seats) => self.ring4(settings, seats).and_gates(program, rows),
            Name::Yao | Name::Gmw => cost.and_gates,
        };
        let work = match self.name {
            Name::Ring4(settings, _) => and_gates as f64 / speeds.ring4(settings.security),
            Name::Yao => cost.and_gates as f64 / speeds.and_per_s,
            Name::Gmw => {
                let [own, usual] = [self.compute.ot.unwrap_or_default(), OtKind::default()];
                let each = 1.0 / speeds.ots_per_s + own.seconds_per_ot() - usual.seconds_per_ot();
                cost.ots as f64 * each * 2.0 / parties as f64
            }
        };
        // The parties of sums by `gmw` take turns, so a shard sends one way at a time.
        let turns = match self.name == Name::Gmw && !has_circuit(program) {
            true => 8.0 * cost.bytes() as f64 / link.bits_per_s / of as f64,
            false => 0.0,
        };
        // Sending and computing overlap; waiting does not.
        let busy = link.seconds(&cost).max(turns).max(work / speeds.cores.min(of as f64));
        let seconds = busy + trips as f64 * link.round_trip_s / 2.0;
        Estimate { cost, and_gates, round_trips: trips.div_ceil(2), seconds }
    }
}

/// Whose rows arrive as shares, where the match joins rows to shares.
fn joined(study: &Study) -> Option<[bool; 2]> {
    match study.matching.protocol {
        Protocol::Ps3i { .. } | Protocol::Collecting { .. } => Some([true, true]),
        // The publisher knows which of its rows lies in which place.
        Protocol::CircuitPsi => Some([false, true]),
        Protocol::Pid | Protocol::MultiPid { .. } | Protocol::Aligned | Protocol::SaltedKey => None,
    }
}

/// The servers of a study, and how they compute.
fn ring4_of(study: &Study) -> Result<Name, Error> {
    match &study.servers {
        Some(servers) => Ok(Name::Ring4(servers.settings(), servers.seats())),
        None => Err(Error::misuse("a study by ring4 has four servers")),
    }
}

/// Whether there are several circuits for a program: only best rows and the like are circuits.
fn has_circuit(program: &Program) -> bool {
    program.sharing() == Sharing::Boolean
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFT: &str = include_str!("../../../examples/lift.toml");
    const ALIGNED: &str = include_str!("../../../examples/aligned.toml");

    fn engines(text: &str) -> (Engines, Program) {
        let study = Study::parse("study.toml", text).unwrap();
        let policy = program::VerifierPolicy {
            max_rho: program::Ratio::new(1000, 1).unwrap(),
            max_outputs: 8192,
            allow_exact: true,
        };
        let program = crate::prepare::build(&study, &policy).unwrap().program;
        (Engines::of(&study, &program).unwrap(), program)
    }

    fn settled(text: &str, rows: u64, mbit: f64, ms: f64) -> String {
        let (engines, program) = engines(text);
        let link = Link { bits_per_s: mbit * 1e6, round_trip_s: ms / 1e3 };
        engines.settled(&program, rows, link, Speeds::default()).settings(&program)
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
        let (engines, program) = engines(LIFT);
        let link = |ms| Link { bits_per_s: 1e12, round_trip_s: ms / 1e3 };
        let [near, far] =
            [0.0, 20.0].map(|ms| engines.estimate(&program, 1 << 20, link(ms), Speeds::default()));
        assert!(8 * far.round_trips < far.cost.rounds, "{} of {}", far.round_trips, far.cost.rounds);
        let waits = (far.seconds - near.seconds) / 0.02;
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
        let (engines, program) = engines(&fixed);
        assert!(!engines.asks(&program));
        assert_eq!(settled(&fixed, 300, 1.0, 500.0), "softspoken:4, small circuit");
        let (engines, program) = self::engines(&LIFT.replace("engine  = \"auto\"", "engine  = \"yao\""));
        assert!(!engines.asks(&program));
    }
}
