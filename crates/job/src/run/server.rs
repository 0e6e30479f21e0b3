//! What a server does in a study: it holds no data, sees shares, and makes the same calls as the owners.

use super::agree::tell_all;
use super::outsourced::{self, StartSignal, same_program};
use super::{Watch, appointment, met, session_seed, stage_lines, stopped};
use crate::course::{Actor, Completed, Course, Matched};
use crate::devices;
use crate::engines::StudyEngine;
use crate::prepare::{self, Built, Opened};
use crate::stages::compute::{ComputeStage, UnitRows};
use crate::stages::link::{LinkFacts, LinkStage};
use crate::stages::matching::MatchStage;
use crate::stages::noise::NoiseStage;
use crate::stages::publish::PublishStage;
use crate::stages::release::{ReleaseHolder, ReleaseStage};
use crate::stages::{Stage as _, StageLog, upgrade};
use crate::usage;
use base::{Error, Fault, PartyId};
use engine::{DrawnNoise, Shares};
use matching::MatchDisclosure;
use net::connect::Standby;
use net::{Farewell, Identity, Session};
use privacy::ledger::{Bytes32, Ledger};
use release::rational::ratio;
use report::{Disclosure, ServersInfo, StageReport};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use study::party::ServerSetup;
use study::transport::{ServerTransport, protects};
use study::{Servers, Study, StudyFile};

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
    /// What computed here: `cpu`, `cuda:0 (NAME)`.
    #[serde(default)]
    pub device: String,
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
        let device = if matches!(&*self.device, "" | "cpu") { "" } else { &*self.device };
        let on = if device.is_empty() { String::new() } else { format!(", on {device}") };
        let mut lines = vec![format!("{study} ({hash}) at {server}: ring4, {settings}{on}")];
        if self.stored {
            lines.push("the owners hold the result already: nothing was computed".to_owned());
        }
        lines.push(format!("saw  {}", self.saw));
        if !self.stored {
            lines.push(protects(&self.transport));
        }
        lines.extend(stage_lines(&self.stages, "to and from this server"));
        lines.join("\n")
    }
}

/// A study that this server has read, admitted and built.
pub(super) struct Ready {
    pub study: Study,
    pub servers: Servers,
    identity: Arc<Identity>,
    built: Built,
    engines: StudyEngine,
    /// What computes, in words.
    device: String,
    pub me: PartyId,
}

impl Ready {
    /// Reads a study and checks that this server takes part in it.
    pub fn read(node: &ServerSetup, path: &Path) -> Result<Self, Error> {
        Self::new(node, Opened::new(StudyFile::read(path)?, &node.name, &node.identity)?)
    }

    fn new(node: &ServerSetup, Opened { file, identity, .. }: Opened) -> Result<Self, Error> {
        let study = file.only()?;
        let (servers, own) = node.admit(&study)?;
        let (servers, me) = (servers.clone(), own.place);
        node.transport.admit(&study)?;
        // What may be revealed is for the owners to say.
        let policy =
            program::VerifierPolicy { max_rho: ratio(1000, 1), max_outputs: usize::MAX, allow_exact: true };
        let built = prepare::build(&study, &policy)?;
        let engines = StudyEngine::of(&study, &built.program)?;
        let device = devices::find(node.device, &engines)?;
        let engines = engines.on(&device);
        Ok(Self { study, servers, identity, built, engines, device: device.words, me })
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
    let Ready { study, servers, me, .. } = &ready;
    let places = outsourced::places(&node.address, study, servers, *me)?;
    let meet = appointment(study, *me, &ready.identity, places, node.deadline_ms, watch)?;
    let mut meet = meet.allow(node.allow.clone());
    if node.trigger {
        meet = meet.tell(outsourced::nodes(study, *me, &node.address)?);
    }
    let more = outsourced::more_lanes(study);
    let meeting = match called {
        Some(Called { standby, host }) => meet.meet_at(standby, host, more)?,
        None => meet.meet(more)?,
    };
    let mut meeting = met(meeting, study, watch)?;
    let farewell = meeting.farewell()?;
    let session = Session::new(*me, study.roster(), meeting.control, session_seed());
    let session = session.with_id(meeting.session_id).with_progress(watch.progress.clone());
    let log = StageLog::new(*me, study.roster().len(), watch.events.clone());
    let lanes = outsourced::lane_sessions(&session, meeting.workers);
    let start = Instant::now();
    let mut run = ServerRun { node, ready: &ready, session, lanes, farewell: &farewell, log, start };
    // The others are told where it began, while the channels are still there.
    run.phases().map_err(|error| stopped(Some(&farewell), error))
}

/// What lives as long as a server's run: its study, and the conversation.
struct ServerRun<'a> {
    node: &'a ServerSetup,
    ready: &'a Ready,
    session: Session,
    /// For ranges of rows, beside those that the session computes.
    lanes: Vec<Session>,
    farewell: &'a Farewell,
    log: StageLog,
    start: Instant,
}

/// A server in a study that the owners have begun.
struct Serving<'r, 'a> {
    run: &'r mut ServerRun<'a>,
    /// What all know as study and data.
    common: Bytes32,
    ledger: Mutex<Ledger>,
}

impl ServerRun<'_> {
    fn phases(&mut self) -> Result<ServerReport, Error> {
        let Ready { study, servers, built, engines, .. } = self.ready;
        same_program(&mut self.session, built.program.hash())?;
        let (signal, common) = self.hear_signal()?;
        if signal == StartSignal::Stored {
            self.session.finish()?;
            let text = "that the owners asked again for a result that they hold";
            return Ok(ServerReport { saw: text.to_owned(), stored: true, ..self.report(None) });
        }
        let mine = &self.node.transport;
        let sessions = (&mut self.session, &mut *self.lanes);
        let transport = upgrade::settle(sessions, &mut self.log, (study, servers), mine)?;
        let engines = engines.masked(transport != ServerTransport::Tls);
        let ledger = Mutex::new(Ledger::open(&self.node.held())?);
        let mut serving = Serving { run: self, common, ledger };
        let stage = MatchStage::new(study, built, &engines, [0; 2])?;
        let Completed { matched, .. } = Course { study, built }.run(engines, &stage, (), &mut serving)?;
        self.session.step("done", |s| tell_all(s, [1]))?;
        self.session.finish()?;
        Ok(self.report(Some((matched, transport))))
    }

    fn owners(&self) -> impl Iterator<Item = PartyId> + use<> {
        (0..self.ready.study.parties.len() as u8).map(PartyId)
    }

    /// What the owners agreed on.
    fn hear_signal(&mut self) -> Result<(StartSignal, Bytes32), Error> {
        let owners: Vec<PartyId> = self.owners().collect();
        self.session.step("agree", |session| {
            let mut all = None;
            for (at, &owner) in owners.iter().enumerate() {
                let [byte] = session.link(owner).recv_array()?;
                let signal = StartSignal::of(byte)
                    .ok_or_else(|| session.link(owner).malformed("whether the study begins"))?;
                if signal == StartSignal::Refused {
                    let text = "the owners do not run this study: the policy or ledger of one of them does \
                                not allow it; see their own output";
                    return Err(Error::new(session.at(Some(owner)), Fault::Refused(text.into())));
                }
                let common = session.link(owner).recv_array()?;
                if *all.get_or_insert((signal, common)) != (signal, common) {
                    let check = "the owners say different things about whether the study begins, or on what";
                    return Err(session.accuse_one_of(&owners[..=at], check));
                }
            }
            all.ok_or_else(|| Error::misuse("a study has owners"))
        })
    }

    /// What this server says of the run; of one in which nothing was computed, its stages are empty.
    fn report(&self, ran: Option<(Matched<Disclosure>, ServerTransport)>) -> ServerReport {
        let Ready { study, engines, device, me, .. } = self.ready;
        let (disclosed, engines, transport) = match ran {
            Some((matched, transport)) => (matched.rows, matched.engines, transport),
            None => (Disclosure::default(), engines.clone(), ServerTransport::Tls),
        };
        let name = study.roster().name(*me);
        let servers = ServersInfo::of(study, &disclosed, &transport.to_string());
        let saw = servers.as_ref().and_then(|servers| servers.members.iter().find(|m| m.name == name));
        ServerReport {
            format: SERVER_FORMAT.to_owned(),
            study: study.name.clone(),
            hash: study.hash().to_string(),
            owners: study.parties.iter().map(|member| member.name.clone()).collect(),
            settings: transport.in_settings(engines.settings()),
            transport: transport.to_string(),
            device: device.clone(),
            saw: saw.map_or_else(String::new, |server| server.saw.clone()),
            server: name,
            disclosed,
            stages: self.log.all().to_vec(),
            seconds: self.start.elapsed().as_secs_f64(),
            peak_memory_bytes: usage::peak_memory_bytes(),
            cpu_seconds: usage::cpu_seconds(),
            stored: false,
        }
    }
}

/// A server holds no column, sees shares, and pays nothing.
impl Actor for Serving<'_, '_> {
    type Rows = Disclosure;
    type Workers = ();
    type Totals = Shares;
    type Views = ();

    fn link(&mut self, stage: &LinkStage) -> Result<LinkFacts, Error> {
        self.run.log.run(stage, &mut self.run.session, |s| stage.run(s))
    }

    /// Joins rows where that is this server's part, and hears how many there are.
    fn join_rows(&mut self, stage: &MatchStage<'_>) -> Result<(Disclosure, u64), Error> {
        let ServerRun { node, session, log, .. } = &mut *self.run;
        log.begin(stage.name(), stage.items());
        let sizes = stage.serve(node.memory, session)?;
        let union = sizes.union;
        log.end(session.traffic(), stage.name(), union, stage.price(&sizes)?);
        Ok((stage.disclosure(MatchDisclosure::of(sizes)), union))
    }

    fn settled(&mut self, _matched: &Matched<Disclosure>) {}

    fn draw(&mut self, stage: &NoiseStage) -> Result<DrawnNoise, Error> {
        self.run.log.run(stage, &mut self.run.session, |s| stage.run(s))
    }

    fn compute(
        &mut self,
        stage: &ComputeStage,
        _matched: &Matched<Disclosure>,
        (): (),
    ) -> Result<Shares, Error> {
        let ServerRun { ready, session, lanes, farewell, log, .. } = &mut *self.run;
        let stop = |error| farewell.stop(error);
        let (program, ranges) = (&ready.built.program, stage.ranges());
        let rows = |unit| Ok(UnitRows::blank(ranges.range(unit)));
        log.run(stage, session, |s| stage.run_whole(program, rows, (s, lanes), stop))
    }

    fn publish(
        &mut self,
        stage: &PublishStage,
        disclosed: &Disclosure,
        totals: &Shares,
    ) -> Result<[u64; 2], Error> {
        self.run.log.run(stage, &mut self.run.session, |s| stage.run(totals, disclosed, s))
    }

    fn release(
        &mut self,
        stage: &ReleaseStage<'_>,
        _matched: &Matched<Disclosure>,
        totals: &Shares,
        noise: &mut DrawnNoise,
    ) -> Result<(), Error> {
        let holder = ReleaseHolder { ledger: &self.ledger, common: &self.common, payment: None };
        let ServerRun { session, log, .. } = &mut *self.run;
        log.begin(stage.name(), stage.items());
        let run = |unit| stage.run(unit, noise, totals, &holder, session).map(|released| released.ran);
        let ran = stage.units().iter().map(run).collect::<Result<Vec<_>, _>>()?;
        log.end(session.traffic(), stage.name(), stage.items(), stage.price(&ran)?);
        Ok(())
    }
}
