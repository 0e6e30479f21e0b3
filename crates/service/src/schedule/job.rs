//! One run as a child process: its folder, its party file, and what it says.

use super::meeting::{JobPlace, RunOrder};
use super::settle::{JobEnd, over};
use super::{Look, RunningJobs};
use crate::link::now_ms;
use crate::serving::{NO_DATA, server_of};
use crate::settings::{DataSet, HouseSettings};
use crate::store::OwnConsent;
use crate::web::House;
use base::{Error, hex};
use job::plan::{Assumed, Link, Speeds, plan_file};
use release::rational::shown;
use serde_json::Value;
use statements::{ProposalId, ProposalRecord, RunOffer};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use study::StudyFile;
use study::party::{AgreedBounds, AgreedCharge};

/// How often the end of a process is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// What a process says once it computes.
const COMPUTES: [&str; 4] = ["stage", "stage-done", "units", "progress"];
/// Least time between two lines of progress that are kept.
const LINE_EVERY: Duration = Duration::from_millis(500);
/// Bytes of a line, and of what a process prints in the end.
const LINE_BYTES: u64 = 4 << 10;
const PRINTED_BYTES: u64 = 16 << 20;
/// The least that a party file can allow: it has no zero.
const LEAST_RHO: &str = "0.000000001";
const MOST_DELTA_PLACES: u8 = 15;
/// How often it is tried to store that a run is over, while the disk is full.
const AGAIN: Duration = Duration::from_secs(5);

/// A process that runs.
pub struct RunningJob {
    run: u32,
    stop: Arc<AtomicU8>,
    /// Since when another party is known to have left the run.
    left: Option<Instant>,
}

/// Why a process is ended.
const STOPPED: u8 = 1;
const PEER_LEFT: u8 = 2;
const TOO_LONG: u8 = 3;
/// The least that a run may take where no rule says it, and where nothing is known of its rows.
const SHORT: Duration = Duration::from_secs(3_600);
const UNKNOWN: Duration = Duration::from_secs(24 * 3_600);
/// How much longer than expected it may take then.
const TIMES: f64 = 10.0;
/// How long a process may go on after another party has left: it notices by itself, unless it still waits for
/// the other to come.
const GRACE: Duration = Duration::from_secs(5);

/// How often a run begins before its time because the peer is ready.
const EARLY_MS: u64 = 3_600_000;

/// The processes of this service.
#[derive(Default)]
pub struct Jobs {
    running: Mutex<RunningJobs>,
    /// When runs of proposals last began before their time.
    early: Mutex<HashMap<ProposalId, u64>>,
    /// When proposals were last held against the rules.
    decided: Mutex<HashMap<ProposalId, u64>>,
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, RunningJobs> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a proposal that waits is to be held against the rules now.
    pub(super) fn is_to_decide(&self, id: &ProposalId, now_ms: u64) -> bool {
        let decided = self.decided.lock().unwrap_or_else(PoisonError::into_inner);
        decided.get(id).is_none_or(|at| now_ms.saturating_sub(*at) >= super::decided::AGAIN_MS)
    }

    /// It was.
    pub(super) fn was_decided(&self, id: ProposalId, now_ms: u64) {
        let mut decided = self.decided.lock().unwrap_or_else(PoisonError::into_inner);
        decided.retain(|_, at| now_ms.saturating_sub(*at) < super::decided::AGAIN_MS);
        decided.insert(id, now_ms);
    }

    /// Whether the next run may begin before its time, because the peer is ready.
    pub(super) fn may_be_early(&self, id: &ProposalId, now_ms: u64) -> bool {
        let early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        early.get(id).is_none_or(|at| now_ms.saturating_sub(*at) >= EARLY_MS)
    }

    /// It does.
    pub(super) fn was_early(&self, id: ProposalId, now_ms: u64) {
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        early.retain(|_, at| now_ms.saturating_sub(*at) < EARLY_MS);
        early.insert(id, now_ms);
    }

    /// Which run of a proposal a process runs for.
    #[must_use]
    pub fn run_of(&self, id: &ProposalId) -> Option<u32> {
        self.lock().get(id).map(|job| job.run)
    }

    /// The proposals for which a process runs.
    pub(super) fn all(&self) -> Vec<ProposalId> {
        self.lock().keys().copied().collect()
    }

    /// Ends the process of a proposal; false where there is none. Its run is `stopped`, and none begins until
    /// a person says so ([`crate::store::Store::hold`]).
    pub fn stop(&self, id: &ProposalId) -> bool {
        self.lock().get(id).map(|job| job.stop.store(STOPPED, Ordering::Relaxed)).is_some()
    }

    /// As if a process ran.
    #[cfg(test)]
    pub(crate) fn pretend(&self, id: ProposalId, run: u32) {
        self.lock().insert(id, RunningJob { run, stop: Arc::default(), left: None });
    }

    /// Whether another party of it is known to have left.
    #[cfg(test)]
    pub(super) fn is_left(&self, id: &ProposalId) -> bool {
        self.lock().get(id).is_some_and(|job| job.left.is_some())
    }

    /// Another party has left the run: its process is ended soon.
    pub(super) fn peer_left(&self, id: &ProposalId) {
        if let Some(job) = self.lock().get_mut(id)
            && job.left.get_or_insert_with(Instant::now).elapsed() > GRACE
        {
            // A person's word stands.
            let _ = job.stop.compare_exchange(0, PEER_LEFT, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// What a job is made of.
pub struct JobOrder<'a> {
    /// What was agreed on.
    pub record: &'a ProposalRecord,
    /// The own place among the parties.
    pub me: usize,
    /// Which run.
    pub run: u32,
    /// What all parties said when they were ready, by place.
    pub offers: &'a [RunOffer],
    /// The own consent.
    pub consent: &'a OwnConsent,
}

/// The folder of a proposal's runs.
pub fn folder(jobs: &Path, record: &ProposalRecord) -> PathBuf {
    jobs.join(format!("{}-{}", &record.study().full()[..12], hex(&record.id().0)))
}

/// Writes study and party file of a run; the folder.
///
/// # Errors
/// When the rules do not let it run, or the disk does not take it.
pub fn write(settings: &HouseSettings, jobs: &Path, order: &JobOrder<'_>) -> Result<PathBuf, Error> {
    let folder = folder(jobs, order.record);
    let failed = |e: std::io::Error| Error::io(format!("cannot write into {}", folder.display()), &e);
    let mut maker = std::fs::DirBuilder::new();
    maker.recursive(true).mode(0o700).create(&folder).map_err(failed)?;
    let text = &order.record.proposed().text;
    let file = StudyFile::parse("the study", text)?;
    let own = &order.record.parties()[order.me];
    let place = RunOrder::of(file.first(), own)?.place(settings, order.record, order.offers)?;
    let report = format!("report-{}", order.run);
    // What an earlier process of this run left would be taken for its answer.
    match std::fs::remove_dir_all(folder.join(&report)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    if order.consent.data == NO_DATA {
        let party = server_file(settings, &file, &place)?;
        std::fs::write(folder.join("study.toml"), text).map_err(failed)?;
        std::fs::write(folder.join("party.toml"), party).map_err(failed)?;
        return Ok(folder);
    }
    let set = settings.data.get(&order.consent.data);
    let bounds = set.map(|set| super::consented::bounds(order.record, order.me, order.consent, set));
    let bounds = bounds.transpose()?.flatten();
    let bounds = bounds.ok_or_else(|| Error::input("the own consent is not in this store"))?;
    let mut party = party_file(settings, &file, &order.consent.data, &place, &report)?;
    agreed(&mut party, &bounds);
    std::fs::write(folder.join("study.toml"), text).map_err(failed)?;
    std::fs::write(folder.join("party.toml"), party).map_err(failed)?;
    Ok(folder)
}

/// The party file of a job: this study alone, these data, these bounds.
///
/// # Errors
/// When the rules do not have the data, or this organisation is no party of the study.
pub fn party_file(
    settings: &HouseSettings,
    study: &StudyFile,
    data: &str,
    place: &JobPlace,
    report: &str,
) -> Result<String, Error> {
    let set = settings.data.get(data);
    let set =
        set.ok_or_else(|| Error::input(format!("there is no [data.{data}] in service.toml any more")))?;
    let key = net::Identity::load(&settings.identity)?.fingerprint().to_string();
    let me = study.parties.iter().find(|party| party.key == key);
    let me = me.ok_or_else(|| Error::input("this organisation is no party of the study"))?;
    let path = |path: &Path| quoted(&absolute(path).to_string_lossy());
    let rows = crate::findings::place(settings, data)?;
    let mut text = format!(
        "study = \"study.toml\"\nas = {}\nidentity = {}\ndata = {}\nmemory = \"{}M\"\n\
         ledger = {}\nreport = {}\nlineage = {}\nwork = \"work\"\n",
        quoted(&me.name),
        path(&settings.identity),
        path(&rows),
        memory(settings),
        path(&settings.ledger),
        quoted(report),
        quoted(&set.lineage),
    );
    if let Some(salt) = set.salt.as_ref().filter(|_| study.first().matching.matcher.features().salted) {
        text.push_str(&format!("salt = {}\n", path(salt)));
    }
    if study.first().servers.is_none() {
        text.push_str("state = \"state\"\nspool = true\n");
    }
    meets(&mut text, place);
    bounds(&mut text, settings, study, set);
    Ok(text)
}

/// MiB of one process.
fn memory(settings: &HouseSettings) -> u64 {
    ((settings.policy.jobs_memory / settings.policy.max_jobs.max(1)) >> 20).max(64)
}

/// The party file of a server: this study alone, and no data.
fn server_file(settings: &HouseSettings, study: &StudyFile, place: &JobPlace) -> Result<String, Error> {
    let key = net::Identity::load(&settings.identity)?.fingerprint().to_string();
    let server = server_of(study.first(), &key);
    let server = server.ok_or_else(|| Error::input("this organisation is no server of the study"))?;
    let mut text = format!(
        "study = \"study.toml\"\nas = {}\nidentity = {}\nmemory = \"{}M\"\n",
        quoted(&server.name),
        quoted(&absolute(&settings.identity).to_string_lossy()),
        memory(settings),
    );
    meets(&mut text, place);
    text.push_str(&format!("\n[policy]\nstudies = [{}]\n", quoted(&study.hash().full())));
    Ok(text)
}

/// Where the process listens and goes to: the last lines before the sections, and the section `[peers]`.
fn meets(text: &mut String, place: &JobPlace) {
    for (key, at) in [("listen", &place.listen), ("peer", &place.peer)] {
        let line = at.as_ref().map(|at| format!("{key} = {}\n", quoted(at)));
        text.extend(line);
    }
    if !place.peers.is_empty() {
        text.push_str("\n[peers]\n");
        text.extend(place.peers.iter().map(|(name, at)| format!("{} = {}\n", quoted(name), quoted(at))));
    }
}

/// The section `[policy]`.
fn bounds(text: &mut String, settings: &HouseSettings, study: &StudyFile, set: &DataSet) {
    let policy = &settings.policy;
    let kind = crate::policy::kind_of(study.first());
    let mut line = |key: &str, value: String| {
        // Writing into a text does not fail.
        let _ = writeln!(text, "{key} = {value}");
    };
    line("\n[policy]\nstudies", format!("[{}]", quoted(&study.hash().full())));
    line("kinds", format!("[{}]", quoted(kind)));
    // Unsaid is nothing: the defaults of a party file are more, so the least that it can say stands there.
    line("max_rho", policy.max_rho.as_ref().map_or_else(|| LEAST_RHO.to_owned(), shown));
    line("budget", shown(&set.budget));
    if let Some((days, rho)) = &set.period {
        line("period", quoted(&format!("{days}d")));
        line("period_budget", shown(rho));
    }
    line("max_cells", policy.max_cells.to_string());
    line("allow_exact", policy.allow_exact.to_string());
    line("candidates", policy.candidates.clamp(2, 1024).to_string());
    line("delta", quoted(&format!("1e-{}", set.delta_places.unwrap_or(MOST_DELTA_PLACES))));
}

/// The section `[policy.agreed]`: what was consented to, which the run's own ledger holds it to.
fn agreed(text: &mut String, bounds: &AgreedBounds) {
    let AgreedBounds { charges, after, at, matches, data, lineage, rows } = bounds;
    let charge = |one: &AgreedCharge| quoted(&format!("{} {} {}", one.viewer, one.rho, one.delta));
    let charges = charges.iter().map(charge).collect::<Vec<_>>().join(", ");
    let line = |key: &str, said: Option<String>| {
        said.map_or_else(String::new, |said| format!("{key} = {}\n", quoted(&said)))
    };
    let (data, lineage) = (line("data", data.map(|data| hex(&data))), line("lineage", lineage.clone()));
    // Writing into a text does not fail.
    let _ = write!(
        text,
        "\n[policy.agreed]\ncharges = [{charges}]\nafter = {after}\nat = {at}\nmatches = {matches}\n\
         rows = {rows}\n{data}{lineage}"
    );
}

fn quoted(text: &str) -> String {
    // What escapes JSON has, TOML has, too.
    Value::from(text).to_string()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Starts the process of a run and waits for its end on a thread of its own: a child that ends with its
/// parent ends with the thread that started it.
pub fn start(house: &Arc<House>, id: ProposalId, run: u32, folder: PathBuf, longest: Duration) {
    let stop = Arc::new(AtomicU8::new(0));
    house.jobs().lock().insert(id, RunningJob { run, stop: stop.clone(), left: None });
    let house = house.clone();
    std::thread::spawn(move || {
        let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| "tacit".into()));
        command.args(["run", "--events", "--json", "party.toml"]).current_dir(&folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = match command.spawn() {
            Ok(child) => watch(&house, (&id, run), child, (&stop, longest)),
            Err(error) => {
                let error = ["file", "start", &format!("the run cannot be started: {error}")];
                JobEnd { stored: false, stopped: false, error: Some(error.map(str::to_owned)) }
            }
        };
        while let Err(error) = over(&house, &id, run, &folder, &ended) {
            house.complain(&id, &error);
            std::thread::sleep(AGAIN);
        }
        house.jobs().lock().remove(&id);
        house.store().ring();
    });
}

/// How long a run may take: what the rules say, else ten times what the study is expected to take with as
/// many rows at both sides as the data had at their last check, over a slow line, and an hour.
pub fn longest(look: &Look<'_>) -> Duration {
    if let Some(seconds) = look.settings.policy.longest_run {
        return Duration::from_secs(seconds);
    }
    let expected = || {
        let data = look.row.data.as_deref()?;
        let check = look.house.store().checks_of(data, 1).ok()?.pop()?;
        let rows = serde_json::from_str::<Value>(&check.found).ok()?["rows"].as_u64()?;
        let file = StudyFile::parse("the study", &look.record.proposed().text).ok()?;
        let assumed = Assumed { rows: [rows; 2], both: None, outcome: None };
        let link = Link { bits_per_s: 20e6, round_trip_s: 0.1 };
        let plan = plan_file(&file, &assumed, link, Speeds::default()).ok()?;
        let seconds: f64 = plan.stages.iter().map(|stage| stage.seconds).sum();
        Duration::try_from_secs_f64(TIMES * seconds).ok()
    };
    expected().map_or(UNKNOWN, |expected| SHORT + expected)
}

/// Keeps what a process says, until it is over.
pub(super) fn watch(
    house: &Arc<House>,
    (id, run): (&ProposalId, u32),
    mut child: Child,
    (stop, longest): (&AtomicU8, Duration),
) -> JobEnd {
    let begun = Instant::now();
    let printed = child.stdout.take().map(|out| {
        std::thread::spawn(move || {
            let mut text = String::new();
            // What is no text, or too long, is no error object.
            let _ = out.take(PRINTED_BYTES).read_to_string(&mut text);
            text
        })
    });
    let lines = child.stderr.take().map(|out| {
        let (house, id) = (house.clone(), *id);
        std::thread::spawn(move || keep_lines(&house, &id, run, out))
    });
    let mut why = 0;
    let status = loop {
        if begun.elapsed() > longest {
            // A person's word stands.
            let _ = stop.compare_exchange(0, TOO_LONG, Ordering::Relaxed, Ordering::Relaxed);
        }
        if why == 0 && stop.load(Ordering::Relaxed) != 0 {
            why = stop.load(Ordering::Relaxed);
            let _ = child.kill();
        }
        match child.try_wait() {
            Ok(None) => std::thread::sleep(LOOK),
            Ok(Some(status)) => break Some(status),
            Err(_) => break None,
        }
    };
    let printed = printed.and_then(|reader| reader.join().ok()).unwrap_or_default();
    let stored = lines.and_then(|reader| reader.join().ok()).unwrap_or_default();
    let failed = !status.is_some_and(|status| status.success());
    // A process that a person ended had no error.
    let error = (failed && why != STOPPED).then(|| match why {
        TOO_LONG => {
            ["peer", "too-long", "the run took longer than a run may (policy.longest_run)"].map(str::to_owned)
        }
        PEER_LEFT => ["peer", "left", "another party has left the run"].map(str::to_owned),
        _ => error_of(&printed),
    });
    JobEnd { stored, stopped: why == STOPPED, error }
}

/// Kind, code and message of what a process printed in the end.
fn error_of(printed: &str) -> [String; 3] {
    let object: Value = serde_json::from_str(printed).unwrap_or_default();
    let error = &object["error"];
    match (error["kind"].as_str(), error["message"].as_str()) {
        (Some(kind), Some(message)) => {
            let bound = error["shortfall"]["bound"].as_str().unwrap_or_default();
            let kind = match kind {
                _ if bound.starts_with("study.") => super::consented::BUDGET,
                _ if message.contains(job::run::OTHER_DATA) => super::DATA,
                kind => kind,
            };
            [kind.to_owned(), error["code"].to_string(), message.to_owned()]
        }
        // A process that is killed says nothing: that of a service that ends, or for want of memory.
        _ => ["peer", "killed", "the run's process ended without a word: too little memory?"]
            .map(str::to_owned),
    }
}

/// Whether one of the lines says that the answer was stored.
pub(super) fn keep_lines(house: &House, id: &ProposalId, run: u32, out: impl Read) -> bool {
    let (mut stored, mut kept) = (false, None::<Instant>);
    let (mut computes, mut counted) = (false, false);
    let mut out = BufReader::new(out);
    loop {
        let mut line = String::new();
        match out.by_ref().take(LINE_BYTES).read_line(&mut line) {
            Ok(0) | Err(_) => return stored,
            Ok(_) => {}
        }
        let line = line.trim_end();
        let Ok(said) = serde_json::from_str::<Value>(line) else { continue };
        stored |= said["event"] == "stored";
        computes |= said["event"].as_str().is_some_and(|event| COMPUTES.contains(&event));
        // A server's consent hangs on it: what could not be kept is kept with the next line.
        if computes && !counted {
            counted = house.store().computes(id, run).is_ok();
        }
        let often = said["event"] == "progress" && said["done"] != said["total"];
        if often && kept.is_some_and(|kept| kept.elapsed() < LINE_EVERY) {
            continue;
        }
        kept = Some(Instant::now());
        // Progress that cannot be kept is not shown; the run goes on.
        let _ = house.store().keep_line(id, run, now_ms(), line);
    }
}
