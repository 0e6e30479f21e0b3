//! What the service is at, in numbers, for programs that watch machines: the text format of Prometheus, on a
//! Unix socket alone. No name of a person, a study or an organisation is in it, and nothing of data.

use super::{House, listen, now};
use crate::link::LinkStanding;
use axum::Router;
use axum::extract::State;
use axum::http::{Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use base::Error;
use std::fmt::{Display, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::UnixListener;

/// Connections at once: who watches needs one.
const CONNECTIONS: usize = 16;
/// Who may connect: the service's user and group.
const MODE: u32 = 0o660;
/// The format, as its readers know it.
const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How many requests were answered, by the first digit of the status.
#[derive(Default)]
pub struct AnswerCounts([AtomicU64; 5]);

impl AnswerCounts {
    /// Counts one.
    pub fn take(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100);
        if let Some(count) = class.checked_sub(1).and_then(|at| self.0.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many there were.
    pub fn all(&self) -> u64 {
        self.0.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

/// Listens where `web.metrics` says.
///
/// # Errors
/// When the socket cannot be made.
pub fn begin(house: &Arc<House>, path: &Path) -> Result<(), Error> {
    let socket = listen::socket(path, MODE)?;
    tokio::spawn(hear(socket, house.clone()));
    Ok(())
}

async fn hear(socket: UnixListener, house: Arc<House>) {
    let router = Router::new()
        .route("/metrics", get(show))
        .route("/health", get(|| async { StatusCode::OK }))
        .with_state(house);
    listen::hear_all(socket, CONNECTIONS, router).await;
}

async fn show(State(house): State<Arc<House>>) -> Response<axum::body::Body> {
    match tokio::task::spawn_blocking(move || text(&house)).await {
        Ok(Ok(text)) => ([(header::CONTENT_TYPE, KIND)], text).into_response(),
        _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Bytes of memory that this process has; none where the system does not say so.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Metrics as text.
struct MetricText(String);

impl MetricText {
    /// A metric of several values, each with its label.
    fn family(
        &mut self,
        (name, kind, help): (&str, &str, &str),
        values: impl IntoIterator<Item = (String, String)>,
    ) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for (label, value) in values {
            let _ = writeln!(self.0, "{name}{label} {value}");
        }
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family((name, kind, help), [(String::new(), value.to_string())]);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.one(name, "gauge", help, value);
    }

    /// A gauge by one label, of names that are our own.
    fn gauges(&mut self, name: &str, help: &str, label: &str, values: &[(String, u64)]) {
        let values = values.iter().map(|(of, value)| (format!("{{{label}=\"{of}\"}}"), value.to_string()));
        self.family((name, "gauge", help), values);
    }
}

fn text(house: &House) -> Result<String, Error> {
    let mut all = MetricText(String::new());
    of_store(&mut all, house)?;
    of_links(&mut all, house);
    let classes = house.answers.0.iter().zip(1..);
    let classes = classes.map(|(count, class)| {
        (format!("{{class=\"{class}xx\"}}"), count.load(Ordering::Relaxed).to_string())
    });
    let requests = ("tacit_requests_total", "counter", "Requests of pages and programs, by class of status.");
    all.family(requests, classes);
    let streams = house.streams.taken() + house.listeners.taken();
    all.gauge("tacit_streams", "Streams of events that are open.", streams);
    of_process(&mut all, house);
    Ok(all.0)
}

fn of_store(all: &mut MetricText, house: &House) -> Result<(), Error> {
    let counts = house.store.counts(now())?;
    all.gauges("tacit_studies", "Proposals by state.", "state", &counts.studies);
    all.gauge("tacit_studies_held", "Proposals that wait for a person of this organisation.", counts.held);
    all.gauges("tacit_runs", "Runs by how they ended, or that they did not.", "outcome", &counts.runs);
    let waiting = "Statements that another service has not acknowledged yet.";
    all.gauge("tacit_statements_unsent", waiting, counts.unsent);
    all.gauge("tacit_sessions", "Sessions of people that hold.", counts.sessions);
    all.gauge("tacit_log_entries", "Number of the newest entry of the audit log.", counts.log);
    let alarms = house.watch.seen().alarms().len();
    all.gauge("tacit_log_alarms", "What stands against the audit log, here or at a peer.", alarms);
    Ok(())
}

fn of_links(all: &mut MetricText, house: &House) {
    let rules = house.rules();
    let peers = &rules.settings.peers;
    let links = || peers.values().map(|peer| house.links().of(&peer.key));
    all.gauge("tacit_peers", "Other organisations that service.toml names.", peers.len());
    let up = links().filter(|link| link.since_ms.is_some()).count();
    all.gauge("tacit_links_up", "Of their services those with a connection.", up);
    let skewed = links().filter(LinkStanding::is_skewed).count();
    all.gauge("tacit_links_skewed", "Of those the ones whose clock is more than five minutes off.", skewed);
    let accepted = u8::from(rules.standing == crate::RulesStanding::Accepted);
    all.gauge("tacit_rules_accepted", "1 where service.toml is the text that was accepted.", accepted);
}

fn of_process(all: &mut MetricText, house: &House) {
    if let Some(bytes) = resident_bytes() {
        all.gauge("process_resident_memory_bytes", "Resident memory of the service without its runs.", bytes);
    }
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = format!("{}.{:09}", used.tv_sec, used.tv_nsec);
    all.one("process_cpu_seconds_total", "counter", "User and system time of the service.", seconds);
    let begun = "When the service began, in seconds since 1970.";
    all.gauge("process_start_time_seconds", begun, house.begun);
}
