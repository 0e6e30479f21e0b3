//! A whole study under a bound of memory: files, reading, match, computation, release and reports, by both
//! parties as users run them.

use super::matches::ProtocolName;
use super::names::only;
use super::{PARTIES, SEED, expect, tell, verdict};
use base::{Error, free_address};
use clap::Args;
use data::FILES;
use data::generate::{self, FileFormat, LiftOptions, Truth};
use net::Identity;
use page::numbers::{bytes, count, duration};
use report::{ResultView, RunReport};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use study::party::parse_memory;
use terminal::follow::Children;
use terminal::output;
use terminal::progress::{Board, ProgressLine};
use terminal::values::{self, NamedValue as _};

/// How often memory and disk are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The protocols that match rows which do not fit.
const PROTOCOLS: [ProtocolName; 3] = [ProtocolName::Pid, ProtocolName::Ps3i, ProtocolName::CircuitPsi];
/// Standard errors that the answer may be off the truth: by chance once in 15,000 runs.
const STANDARD_ERRORS: f64 = 4.0;

/// Runs a lift study of generated data from files to reports, both parties as processes of this program over
/// TLS, each within `--memory`, and says what every stage took.
///
/// Rows that do not fit lie in a folder of their own below `--state`, with the data unless `--data` names
/// some; both are removed at the end. The check: the public result is within four standard errors of the
/// truth, and every stage costs what it was priced at. Give it a disk with room: `tacit plan STUDY --rows N`
/// says how much.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit bench scale --rows 4M --memory 640M --state /scratch\n  tacit bench \
                  scale --rows 20M --memory 2G --state /scratch --json\n  tacit bench scale --rows 10M \
                  --memory 2G --protocol circuit-psi --state /scratch\n  tacit generate lift --rows 16M \
                  --format parquet --files 64 --out big && tacit bench scale --rows 16M --memory 640M \
                  --data big\n\n\
                  Peaks are those of a party's processes together; \"within\" says whether they are below \
                  --memory. resident is the most that was seen of them during a stage, looked at five times \
                  a second; disk the same of all state and files without a name, both parties."
)]
pub struct ScaleArgs {
    /// Rows of either side, half of which both have
    #[arg(long, value_name = "N", value_parser = values::count, default_value = "1M")]
    pub rows: u64,
    /// How rows are matched
    #[arg(long, value_name = "NAME", default_value = "pid", value_parser = only(&PROTOCOLS))]
    pub protocol: ProtocolName,
    /// `memory` of each party
    #[arg(long, value_name = "SIZE", value_parser = parse_memory, default_value = "640M")]
    pub memory: u64,
    /// Where state, ledgers and made data go, in a folder of their own; else the system's folder for
    /// temporary files
    #[arg(long, value_name = "FOLDER")]
    pub state: Option<PathBuf>,
    /// A folder that `tacit generate lift` made with these --rows, --format parquet, these --files, and else
    /// what it does by itself
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// Files of each side
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(1..=FILES as i64))]
    pub files: u32,
    /// Lay rows down in state even where they fit into --memory
    #[arg(long)]
    pub spool: bool,
}

/// The JSON of `tacit bench scale --json`.
#[derive(Debug, Serialize)]
struct ScaleSummary {
    rows: u64,
    protocol: ProtocolName,
    memory: u64,
    files: u32,
    /// From the start of both parties to both reports.
    seconds: f64,
    stages: Vec<ScaleStage>,
    /// Of all processes of a party together: workers beside their coordinator.
    peak_memory_bytes: BTreeMap<String, u64>,
    /// Of the coordinators.
    cpu_seconds: BTreeMap<String, f64>,
    /// Whether both peaks are below `memory`.
    within_memory: bool,
    /// Whether no party held its rows in memory.
    spooled: bool,
    /// Most that state and files without a name took at any time, both parties.
    disk_bytes: u64,
    /// Application bytes of the match, both parties, over the rows of one side.
    match_bytes_per_row: f64,
    /// Whether every stage cost what it was priced at, at both parties.
    price_held: bool,
    truth: f64,
    lift: f64,
    standard_error: f64,
    contains_truth: bool,
    /// The whole check.
    correct: bool,
}

/// One stage, `read` first.
#[derive(Debug, Default, Serialize)]
struct ScaleStage {
    name: String,
    /// At the slower party.
    seconds: f64,
    /// Application bytes, both parties.
    bytes: u64,
    disk_bytes: u64,
    resident_bytes: BTreeMap<String, u64>,
}

impl ScaleArgs {
    /// Makes the data, runs both parties, and prints what was measured.
    pub fn run(&self, json: bool) -> Result<(), Error> {
        let root = self.state.clone().unwrap_or_else(std::env::temp_dir);
        let failed = |e: std::io::Error| Error::io(format!("cannot use the folder {}", root.display()), &e);
        std::fs::create_dir_all(&root).map_err(failed)?;
        // Removed when this ends, whatever became of it.
        let folder =
            tempfile::Builder::new().prefix("tacit-bench-scale-").tempdir_in(&root).map_err(failed)?;
        let board = Board::stderr();
        let done = self.measure(folder.path(), &board);
        board.end();
        let summary = done?;
        tell(&summary, json, ScaleSummary::text)?;
        expect(summary.correct)
    }

    fn options(&self) -> Result<LiftOptions, Error> {
        let rows = u32::try_from(self.rows).map_err(|_| Error::limit("rows", self.rows, 1 << 31))?;
        let files = self.files.min(rows.max(1));
        // As `tacit generate lift` has them; its seed where its data are used.
        let seed = if self.data.is_some() { 1954 } else { SEED };
        let format = FileFormat::Parquet;
        Ok(LiftOptions { rows, overlap: 0.5, max_events: 4, clamp: 100, seed, format, files })
    }

    fn measure(&self, folder: &Path, board: &Board) -> Result<ScaleSummary, Error> {
        let options = self.options()?;
        let (data, truth) = self.data(folder, &options, board)?;
        agree(folder, &options, &data, self)?;
        let watch = ScaleWatch::new(folder);
        let began = Instant::now();
        let reports = self.run_parties(folder, &watch, board)?;
        let seconds = began.elapsed().as_secs_f64();
        self.summary(&reports, &watch, seconds, truth.lift())
    }

    /// The folder of the data, which are made where none are named, and their truth.
    fn data(&self, folder: &Path, options: &LiftOptions, board: &Board) -> Result<(PathBuf, Truth), Error> {
        let told = |done, total| board.progress("generate", done, total);
        let Some(data) = &self.data else {
            let (need, data) = (options.bytes()?, folder.join("data"));
            if store::free_bytes(folder).is_some_and(|free| free < need) {
                return Err(Error::input(format!(
                    "{}: its disk has no {} for the data; name another --state",
                    folder.display(),
                    bytes(need)
                )));
            }
            return generate::lift(&data, options, &told).map(|made| (data, made.truth));
        };
        let data =
            data.canonicalize().map_err(|e| Error::reading(format!("--data {}", data.display()), &e))?;
        generate::lift_truth(options, &told).map(|truth| (data, truth))
    }

    /// Both parties to their ends.
    fn run_parties(
        &self,
        folder: &Path,
        watch: &ScaleWatch<'_>,
        board: &Board,
    ) -> Result<Vec<RunReport>, Error> {
        let mut children = Children::default();
        for party in PARTIES {
            let mut words: Vec<OsString> = ["run", "--json", "--events"].map(OsString::from).into();
            words.extend(self.spool.then(|| "--spool".into()));
            words.push(folder.join(format!("{party}.toml")).into());
            children.start(party, &words.iter().map(OsString::as_os_str).collect::<Vec<&OsStr>>())?;
        }
        let processes = children.ids();
        let (end, ended) = channel::<()>();
        std::thread::scope(|scope| {
            let seen = &processes;
            let looking = scope.spawn(move || {
                while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                    watch.look(seen);
                }
            });
            let reports = children.finish(|index, line| {
                watch.hear(line);
                match line {
                    // That a ledger is new, and that the other one is awaited, is of no interest here.
                    ProgressLine::Waiting { .. }
                    | ProgressLine::Connected { .. }
                    | ProgressLine::Note { .. } => {}
                    _ if index == 0 => board.show(line),
                    _ => {}
                }
            });
            drop::<Sender<()>>(end);
            looking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            reports
        })
    }

    fn summary(
        &self,
        reports: &[RunReport],
        watch: &ScaleWatch<'_>,
        seconds: f64,
        truth: f64,
    ) -> Result<ScaleSummary, Error> {
        let [first, _] = reports else { return Err(Error::misuse("a study of two parties has two reports")) };
        let ResultView::Lift(view) = first.public.as_ref().unwrap_or(&first.view) else {
            return Err(Error::misuse("the study is a lift study"));
        };
        let cell = view.cells.first().ok_or_else(|| Error::misuse("a lift view has an overall cell"))?;
        let estimate = cell.estimate.as_ref().ok_or_else(|| {
            let why = cell.refused.as_deref().unwrap_or("no reason");
            Error::input(format!("there is no estimate of so few rows: {why}; use more --rows"))
        })?;
        let by_party = |of: fn(&RunReport) -> u64| -> BTreeMap<String, u64> {
            reports.iter().map(|report| (report.party.clone(), of(report))).collect()
        };
        let stages = watch.stages(first, reports);
        let mut peak_memory_bytes = by_party(|report| report.peak_memory_bytes);
        // Workers are there as well, at the same time as their coordinator.
        for (party, resident) in stages.iter().flat_map(|stage| &stage.resident_bytes) {
            let peak = peak_memory_bytes.entry(party.clone()).or_default();
            *peak = (*peak).max(*resident);
        }
        let in_match = stages.iter().find(|stage| stage.name == "match").map_or(0, |stage| stage.bytes);
        let price_held = reports.iter().flat_map(|report| &report.stages).all(|stage| stage.price_held);
        let contains_truth = (estimate.lift - truth).abs() <= STANDARD_ERRORS * estimate.standard_error;
        Ok(ScaleSummary {
            rows: self.rows,
            protocol: self.protocol,
            memory: self.memory,
            files: self.files,
            seconds,
            disk_bytes: stages.iter().map(|stage| stage.disk_bytes).max().unwrap_or(0),
            stages,
            within_memory: peak_memory_bytes.values().all(|peak| *peak <= self.memory),
            peak_memory_bytes,
            cpu_seconds: reports.iter().map(|report| (report.party.clone(), report.cpu_seconds)).collect(),
            spooled: reports.iter().all(|report| report.inputs.memory == 0),
            match_bytes_per_row: in_match as f64 / self.rows as f64,
            price_held,
            truth,
            lift: estimate.lift,
            standard_error: estimate.standard_error,
            contains_truth,
            correct: contains_truth && price_held,
        })
    }
}

/// Keys, the study, and a file of each party.
fn agree(folder: &Path, options: &LiftOptions, data: &Path, args: &ScaleArgs) -> Result<(), Error> {
    let key = |party: &str| {
        let identity = Identity::generate()?;
        identity.save(&folder.join(format!("{party}.key")))?;
        Ok::<_, Error>(identity.fingerprint().to_string())
    };
    let keys = [key(PARTIES[0])?, key(PARTIES[1])?];
    let study = generate::lift_study(options, &keys[0], &keys[1], false);
    let protocol = |name: &str| format!("protocol = \"{name}\"");
    let study = study.replace(&protocol("pid"), &protocol(&args.protocol.word()));
    output::write_file(&folder.join("study.toml"), study.as_bytes())?;
    let address = free_address()?;
    for (party, side) in PARTIES.into_iter().zip(["listen", "peer"]) {
        let own = match options.files {
            1 => data.join(format!("{party}.parquet")),
            _ => data.join(party),
        };
        // What a text of TOML has to have marked.
        let own = own.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
        let text = format!(
            "study = \"study.toml\"\nas = \"{party}\"\nidentity = \"{party}.key\"\ndata = \"{own}\"\n{side} \
             = \"{address}\"\nledger = \"{party}.ledger\"\nlineage = \"{party}\"\nreport = \
             \"out-{party}\"\nstate = \"state-{party}\"\nmemory = \"{}M\"\n",
            args.memory >> 20
        );
        output::write_file(&folder.join(format!("{party}.toml")), text.as_bytes())?;
    }
    Ok(())
}

/// What is seen of both parties from outside.
struct ScaleWatch<'f> {
    folder: &'f Path,
    began: Instant,
    seen: Mutex<ScaleSeen>,
}

#[derive(Default)]
struct ScaleSeen {
    stage: String,
    /// When the first stage began: until then data are read.
    read: Option<f64>,
    /// By stage: most bytes on disk, and of each party in memory.
    most: BTreeMap<String, (u64, [u64; 2])>,
}

impl<'f> ScaleWatch<'f> {
    fn new(folder: &'f Path) -> Self {
        let seen = ScaleSeen { stage: "read".to_owned(), ..ScaleSeen::default() };
        Self { folder, began: Instant::now(), seen: Mutex::new(seen) }
    }

    fn seen(&self) -> MutexGuard<'_, ScaleSeen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, line: &ProgressLine) {
        let mut seen = self.seen();
        if let ProgressLine::Connected { .. } = line {
            let at = self.began.elapsed().as_secs_f64();
            seen.read.get_or_insert(at);
        }
        if let ProgressLine::Stage { name, .. } = line {
            seen.stage.clone_from(name);
        }
    }

    fn look(&self, processes: &[u32]) {
        let states = PARTIES.iter().map(|party| on_disk(&self.folder.join(format!("state-{party}"))));
        let disk = states.sum::<u64>() + processes.iter().map(|id| unnamed(*id)).sum::<u64>();
        let mut seen = self.seen();
        let stage = seen.stage.clone();
        let (most, resident) = seen.most.entry(stage).or_default();
        *most = disk.max(*most);
        for (most, id) in resident.iter_mut().zip(processes) {
            let workers = children(*id).into_iter().map(resident_bytes).sum::<u64>();
            *most = (resident_bytes(*id) + workers).max(*most);
        }
    }

    /// Reading, and then the stages of the reports.
    fn stages(&self, first: &RunReport, reports: &[RunReport]) -> Vec<ScaleStage> {
        let seen = self.seen();
        let with_most = |name: &str, seconds: f64, bytes: u64| {
            let (disk_bytes, resident) = seen.most.get(name).copied().unwrap_or_default();
            let resident_bytes = PARTIES.map(str::to_owned).into_iter().zip(resident).collect();
            ScaleStage { name: name.to_owned(), seconds, bytes, disk_bytes, resident_bytes }
        };
        let mut all = vec![with_most("read", seen.read.unwrap_or(0.0), 0)];
        all.extend(first.stages.iter().map(|stage| {
            let of = |report: &RunReport| {
                report.stages.iter().find(|other| other.name == stage.name).map_or(0.0, |other| other.seconds)
            };
            let seconds = reports.iter().map(of).fold(0.0, f64::max);
            with_most(&stage.name, seconds, stage.bytes_sent.iter().sum())
        }));
        all
    }
}

/// Bytes that a folder and what is in it take on disk. What goes meanwhile takes none.
fn on_disk(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => on_disk(&entry.path()),
        Ok(data) => 512 * data.blocks(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}

/// The same of a process's files without a name.
fn unnamed(process: u32) -> u64 {
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let files = open.filter_map(|entry| std::fs::metadata(entry.path()).ok());
    files.filter(|file| file.is_file() && file.nlink() == 0).map(|file| 512 * file.blocks()).sum()
}

/// The worker processes of a party, and whatever else it started.
fn children(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let of =
        |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let words: Vec<String> = tasks.map(of).collect();
    words.iter().flat_map(|words| words.split_whitespace()).filter_map(|id| id.parse().ok()).collect()
}

/// Bytes of a process in memory.
fn resident_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    1024 * kib.unwrap_or(0)
}

impl ScaleSummary {
    /// For people.
    fn text(&self) -> String {
        let mut lines = vec![
            format!(
                "{} rows a side by {} in {}, {} of memory each{}",
                count(self.rows),
                self.protocol.word(),
                duration(self.seconds),
                bytes(self.memory),
                if self.spooled { "" } else { ", in which they fit" }
            ),
            format!(
                "  {:10} {:>10} {:>10} {:>10} {:>12} {:>12}",
                "stage", "time", "bytes", "disk", PARTIES[0], PARTIES[1]
            ),
        ];
        for stage in &self.stages {
            let resident = |party: &str| bytes(stage.resident_bytes.get(party).copied().unwrap_or(0));
            lines.push(format!(
                "  {:10} {:>10} {:>10} {:>10} {:>12} {:>12}",
                stage.name,
                duration(stage.seconds),
                bytes(stage.bytes),
                bytes(stage.disk_bytes),
                resident(PARTIES[0]),
                resident(PARTIES[1])
            ));
        }
        for (name, peak) in &self.peak_memory_bytes {
            let cpu = self.cpu_seconds.get(name).copied().unwrap_or_default();
            lines.push(format!("  {name:12} {cpu:>8.2} CPU s   peak memory {}", bytes(*peak)));
        }
        lines.push(format!(
            "  peaks {} --memory; {:.1} bytes per row in the match; stages {}",
            if self.within_memory { "within" } else { "ABOVE" },
            self.match_bytes_per_row,
            if self.price_held { "as priced" } else { "NOT as priced" }
        ));
        lines.push(format!(
            "  lift {:.6}, in truth {:.6}, standard error {:.6}",
            self.lift, self.truth, self.standard_error
        ));
        lines.push(verdict(self.correct));
        lines.join("\n")
    }
}
