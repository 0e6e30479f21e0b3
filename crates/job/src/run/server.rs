//! What a server does in a study: it holds no data, sees shares, and makes the same calls as the owners.

use super::agree::tell_all;
use super::outsourced::{self, Word, cast, compute, disclosed, draw, hear_rows, publishes, same_program};
use super::stages::Stages;
use super::{Watch, appointment, hear_groups, met, released, salted, session_seed, stopped, transport};
use crate::engines::Engines;
use crate::prepare::{self, Built, Opened};
use crate::usage;
use base::{Cost, Error, Fault, PartyId};
use engine::{Engine, Shares, outputs};
use net::connect::Standby;
use net::{Farewell, Identity, Session};
use privacy::hold::StepsRun;
use privacy::ledger::{Bytes32, Ledger};
use privacy::scales::Scales;
use program::ShardRows;
use release::rational::ratio;
use report::{Disclosure, ServersInfo, StageReport};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use study::party::ServerSetup;
use study::transport::{ServerTransport, protects};
use study::{Protocol, Question, Study};

/// The format of [`ServerReport`].
pub const SERVER_FORMAT: &str = "tacit-server-report/1";

/// What became of a study at one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// [`SERVER_FORMAT`].
    pub format: String,
    /// The study's name.
    pub study: String,
    /// Its hash, as shown.
    pub hash: String,
    /// This server.
    pub server: String,
    /// The owners of the data.
    pub owners: Vec<String>,
    /// How the engine was set up.
    pub settings: String,
    /// What the servers computed over: `tls`, `shm`, `fabric-tcp`.
    #[serde(default)]
    pub transport: String,
    /// What this server saw, in a sentence.
    pub saw: String,
    /// Rows of every owner and of the spine, as far as it saw them.
    pub disclosed: Disclosure,
    /// Time, bytes and price.
    pub stages: Vec<StageReport>,
    /// From the first word to the last.
    pub seconds: f64,
    /// Largest resident memory of this process, in bytes.
    pub peak_memory_bytes: u64,
    /// CPU seconds of this process, user and system.
    pub cpu_seconds: f64,
    /// Whether the owners held the result already, so that nothing was computed.
    pub stored: bool,
}

impl ServerReport {
    /// For people: what was computed, what this server saw, and what it cost.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { study, hash, server, settings, .. } = self;
        let mut lines = vec![format!("{study} ({hash}) at {server}: ring4, {settings}")];
        if self.stored {
            lines.push("the owners hold the result already: nothing was computed".to_owned());
        }
        lines.push(format!("saw  {}", self.saw));
        if !self.stored {
            lines.push(protects(&self.transport));
        }
        for stage in &self.stages {
            let held = if stage.price_held { "as priced" } else { "NOT as priced" };
            let own: u64 = stage.bytes_sent.iter().sum();
            lines.push(format!(
                "{}: {:.1} s, {own} bytes to and from this server, {held}",
                stage.name, stage.seconds
            ));
        }
        lines.join("\n")
    }
}

/// A study that this server has read, admitted and built.
pub(super) struct Ready {
    pub study: Study,
    identity: Arc<Identity>,
    built: Built,
    engines: Engines,
    pub me: PartyId,
}

impl Ready {
    /// Reads a study and checks that this server takes part in it.
    pub fn read(node: &ServerSetup, path: &Path) -> Result<Self, Error> {
        Self::new(node, Opened::new(Study::read(path)?, &node.name, &node.identity)?)
    }

    fn new(node: &ServerSetup, Opened { study, identity, .. }: Opened) -> Result<Self, Error> {
        node.admit(&study)?;
        node.transport.admit(&study)?;
        // What may be revealed is for the owners to say.
        let policy =
            program::VerifierPolicy { max_rho: ratio(1000, 1), max_outputs: usize::MAX, allow_exact: true };
        let built = prepare::build(&study, &policy)?;
        let engines = Engines::of(&study, &built.program)?;
        let me =
            study.roster().find(&node.name).ok_or_else(|| Error::misuse("an admitted study names it"))?;
        Ok(Self { study, identity, built, engines, me })
    }
}

/// Takes part in one study as a server, and says what it saw.
///
/// # Errors
/// Input, network, an owner that refuses, or a party that deviates.
pub fn compute_study(node: &ServerSetup, opened: Opened, watch: &Watch) -> Result<ServerReport, Error> {
    compute_ready(node, Ready::new(node, opened)?, None, watch)
}

/// Where a headless node stood by, and who told it to begin.
pub(super) struct Called {
    pub standby: Standby,
    pub host: PartyId,
}

/// As [`compute_study`]; of a headless node, as it was called.
pub(super) fn compute_ready(
    node: &ServerSetup,
    ready: Ready,
    called: Option<Called>,
    watch: &Watch,
) -> Result<ServerReport, Error> {
    let Ready { study, me, .. } = &ready;
    let places = outsourced::places(&node.address, study, *me)?;
    let meet = appointment(study, *me, &ready.identity, places, node.deadline_ms, watch)?;
    let mut meet = meet.allow(node.allow.clone());
    if node.trigger {
        meet = meet.tell(outsourced::nodes(study, *me, &node.address)?);
    }
    let meeting = match called {
        Some(Called { standby, host }) => meet.meet_at(standby, host, 0)?,
        None => meet.meet(0)?,
    };
    let mut meeting = met(meeting, study, watch)?;
    let farewell = meeting.farewell()?;
    let session = Session::new(*me, study.roster(), meeting.control, session_seed());
    let stages = Stages::new(*me, study.roster().len(), watch.events.clone());
    let session = session.with_id(meeting.session_id).with_progress(watch.progress.clone());
    let engines = ready.engines;
    let mut server =
        Server { node, ready: &ready, session, stages, engines, transport: ServerTransport::Tls };
    server.steps().map_err(|error| stop(&farewell, error))
}

/// Tells the others where it began, while the channels are still there.
fn stop(farewell: &Farewell, error: Error) -> Error {
    stopped(Some(farewell), error)
}

struct Server<'a> {
    node: &'a ServerSetup,
    ready: &'a Ready,
    session: Session,
    stages: Stages,
    /// Set up for the transport.
    engines: Engines,
    transport: ServerTransport,
}

impl Server<'_> {
    fn steps(&mut self) -> Result<ServerReport, Error> {
        let start = Instant::now();
        let Ready { study, built, .. } = self.ready;
        same_program(&mut self.session, built.program.hash())?;
        let (word, common) = self.hear_word()?;
        if word == Word::Stored {
            self.session.finish()?;
            return Ok(self.report(Disclosure::default(), start, true));
        }
        let mine = &self.node.transport;
        self.transport =
            transport::settle(&mut self.session, &mut self.stages, study, mine, &mut self.engines)?;
        let disclosed = self.rows()?;
        let mut rows = Blank(disclosed.union);
        let mut engine = self.engines.make();
        let engine = &mut *engine;
        let scales = |groups| Scales::new(study, &built.program, &built.audit, groups);
        let early = if publishes(built) { None } else { Some(scales(None)?) };
        if let Some(scales) = &early {
            draw(&mut self.session, &mut self.stages, (&mut *engine, built), scales)?;
        }
        let totals = compute(&mut self.session, &mut self.stages, (&mut *engine, built), &mut rows)?;
        let scales = match early {
            Some(scales) => scales,
            None => {
                let scales = scales(self.groups(&disclosed)?)?;
                draw(&mut self.session, &mut self.stages, (&mut *engine, built), &scales)?;
                scales
            }
        };
        self.release(engine, (&totals, disclosed.union), &scales, &common)?;
        self.session.step("done", |s| tell_all(s, [1]))?;
        self.session.finish()?;
        Ok(self.report(disclosed, start, false))
    }

    fn owners(&self) -> impl Iterator<Item = PartyId> + use<> {
        (0..self.ready.study.parties.len() as u8).map(PartyId)
    }

    /// What the owners agreed on.
    fn hear_word(&mut self) -> Result<(Word, Bytes32), Error> {
        let owners: Vec<PartyId> = self.owners().collect();
        self.session.step("agree", |session| {
            let mut all = None;
            for (at, &owner) in owners.iter().enumerate() {
                let [byte] = session.link(owner).recv_array()?;
                let word = Word::of(byte)
                    .ok_or_else(|| session.link(owner).malformed("whether the study begins"))?;
                if word == Word::Refused {
                    let text = "the owners do not run this study: the policy or ledger of one of them does \
                                not allow it; see their own output";
                    return Err(Error::new(session.at(Some(owner)), Fault::Refused(text.into())));
                }
                let common = session.link(owner).recv_array()?;
                if *all.get_or_insert((word, common)) != (word, common) {
                    let check = "the owners say different things about whether the study begins, or on what";
                    return Err(session.accuse_one_of(&owners[..=at], check));
                }
            }
            all.ok_or_else(|| Error::misuse("a study has owners"))
        })
    }

    /// How many rows there are, after joining them where that is this server's part.
    fn rows(&mut self) -> Result<Disclosure, Error> {
        let study = &self.ready.study;
        self.stages.begin("match", 0);
        let owners = study.parties.len();
        let (rows, union) = if study.matching.protocol == Protocol::SaltedKey {
            let cast = cast(study)?;
            let joins = cast.joiners.contains(&self.ready.me);
            let memory = self.node.memory;
            let sizes = self.session.step("match", |s| match joins {
                true => salted::join(s, &cast, memory),
                false => salted::hear(s, &cast),
            })?;
            (sizes.rows, sizes.union)
        } else {
            let rows = self.session.step("match", |s| hear_rows(s, owners))?;
            (vec![rows; owners], rows)
        };
        let price = outsourced::price_match(study, &rows)?;
        self.stages.end(self.session.ledger(), "match", union, price);
        Ok(disclosed(study, &rows, union))
    }

    /// Group sizes, where the release mode makes them public.
    fn groups(&mut self, disclosed: &Disclosure) -> Result<Option<[u64; 2]>, Error> {
        let Ready { study, built, .. } = self.ready;
        let (true, Question::Lift(lift)) = (publishes(built), &study.kind) else { return Ok(None) };
        let minimum = lift.release.minimum_group;
        self.session.step("publish", |s| hear_groups(s, disclosed, minimum)).map(Some)
    }

    /// One release per viewer, as the owners run them.
    fn release(
        &mut self,
        engine: &mut dyn Engine,
        (totals, rows): (&Shares, u64),
        scales: &Scales,
        common: &Bytes32,
    ) -> Result<(), Error> {
        let Ready { study, built, .. } = self.ready;
        let program = &built.program;
        let fold_owners = program.fold_owners();
        let revealed = (program.outputs.len() + program.lists.len()) as u64;
        let ledger = Mutex::new(Ledger::open(&self.node.held())?);
        let mut price = Cost::zero(self.session.roster().len());
        self.stages.begin("release", revealed);
        for viewer in released::viewers(built) {
            let plan = scales.plan(engine, program, &fold_owners, viewer)?;
            let name = released::step(viewer);
            if released::sees(built, viewer) {
                let mut ran = StepsRun::Whole;
                if plan.is_noised() {
                    let law = scales.law(viewer);
                    let holding = released::Holding { ledger: &ledger, common, law, owner: None };
                    ran = released::held(&mut self.session, engine, &plan, totals, holding)?.ran;
                } else {
                    self.session.step(&name, |s| outputs::exact(engine, &plan, totals, s))?;
                }
                price += &released::price(study, engine, scales, &plan, ran)?;
            }
            let Some(viewer) = viewer.only() else { continue };
            if program.lists.iter().any(|list| list.to == viewer) {
                price += &engine.price_lists(program, rows, viewer);
                self.session.step(&name, |s| engine.lists(program, rows, viewer, totals, s))?;
            }
        }
        self.stages.end(self.session.ledger(), "release", revealed, price);
        Ok(())
    }

    fn report(&self, disclosed: Disclosure, start: Instant, stored: bool) -> ServerReport {
        let Ready { study, me, .. } = self.ready;
        let name = study.roster().name(*me);
        let servers = ServersInfo::of(study, &disclosed, &self.transport.to_string());
        let saw = servers.as_ref().and_then(|servers| servers.members.iter().find(|m| m.name == name));
        ServerReport {
            format: SERVER_FORMAT.to_owned(),
            study: study.name.clone(),
            hash: study.hash().to_string(),
            owners: study.parties.iter().map(|member| member.name.clone()).collect(),
            settings: self.transport.in_settings(self.engines.settings(&self.ready.built.program)),
            transport: self.transport.to_string(),
            saw: match stored {
                true => "that the owners asked again for a result that they hold".to_owned(),
                false => saw.map_or_else(String::new, |server| server.saw.clone()),
            },
            server: name,
            disclosed,
            stages: self.stages.all().to_vec(),
            seconds: start.elapsed().as_secs_f64(),
            peak_memory_bytes: usage::peak_memory_bytes(),
            cpu_seconds: usage::cpu_seconds(),
            stored,
        }
    }
}

/// Rows of which this server holds no column.
struct Blank(u64);

impl ShardRows for Blank {
    fn len(&self) -> u64 {
        self.0
    }

    fn read(&mut self, column: u32, _: u64, _: &mut [u128]) -> Result<(), Error> {
        Err(Error::misuse(format!("a server holds no column, and not column {column}")))
    }
}
