//! `tacit service propose, studies, status, consent, refuse, withdraw, start`: for whoever has the machine.
//! They write to the store that the daemon has open, too; it notices within a second and sends what is new.

use base::{Error, hex};
use clap::Args;
use job::check::CheckedSide;
use net::Identity;
use serde_json::{Value, json};
use service::{
    AgreeOrder, COMMAND_LINE, ConsentStep, HELD, HouseSettings, OTHERWISE, OutboxRow, ProposalFilter,
    ProposalRow, RUN_STOPPED, RecordedAct, RulesFile, RunRow, STOPPED, Speaker, Store, UNHEARD, WeighedStudy,
};
use statements::{
    ClosingCode, ClosingReason, ConsentFile, Naming, ProposalRecord, ProposedStudy, Said, StewardSeal, moment,
};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use study::{StudyFile, StudyHash};
use terminal::output;

const DAY_MS: u64 = 86_400_000;

/// A study that is here.
#[derive(Debug, Args)]
pub struct NamedStudy {
    /// The organisation's service.toml
    pub file: PathBuf,
    /// The study's hash, 64 hex digits
    #[arg(value_parser = study_hash)]
    pub hash: StudyHash,
}

/// What is proposed.
#[derive(Debug, Args)]
pub struct ProposeArgs {
    /// The organisation's service.toml
    pub file: PathBuf,
    /// The study file
    pub study: PathBuf,
    /// A remark for the others
    #[arg(long, default_value = "")]
    pub note: String,
    /// How many days it may be consented to
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=statements::DAYS))]
    pub days: u64,
}

/// What is consented to.
#[derive(Debug, Args)]
pub struct AgreeArgs {
    /// Which study
    #[command(flatten)]
    pub study: NamedStudy,
    /// The data set: NAME of [data.NAME]; none for a server that owns no data of the study
    #[arg(long, default_value = "", hide_default_value = true)]
    pub data: String,
    /// Runs that may begin anew; of a server, runs in which it computes
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    pub runs: u8,
    /// How many days it holds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=statements::DAYS))]
    pub days: u64,
    /// Sign; without it, what would be signed is shown
    #[arg(long)]
    pub yes: bool,
    /// Where the data take a steward's own key: write what it has to sign into this file
    #[arg(long, value_name = "FILE", conflicts_with = "yes")]
    pub request: Option<PathBuf>,
    /// The signature of a steward's own key under it, as `tacit consent sign` prints it
    #[arg(long, value_name = "LINE", conflicts_with_all = ["yes", "request"])]
    pub seal: Option<String>,
}

/// Why.
#[derive(Debug, Args)]
pub struct ClosingArgs {
    /// Which study
    #[command(flatten)]
    pub study: NamedStudy,
    /// Why: the others read it
    #[arg(long)]
    pub text: String,
}

fn study_hash(text: &str) -> Result<StudyHash, &'static str> {
    StudyHash::parse(text)
        .ok_or("write all 64 hex digits of the hash, as `tacit service studies` prints them")
}

/// The organisation's rules, store and key.
struct OwnHouse {
    settings: HouseSettings,
    /// The hash of these rules, where somebody has accepted them.
    rules: Option<[u8; 32]>,
    store: Store,
    identity: Identity,
}

impl OwnHouse {
    fn of(file: &Path) -> Result<Self, Error> {
        let settings = RulesFile::read(file)?.settings;
        let store = Store::open(&settings.store)?;
        // The file may say what nobody has accepted.
        let (settings, rules) = match store.accepted()? {
            Some(accepted) => (RulesFile::parse(file, &accepted.text)?, Some(accepted.hash)),
            None => (settings, None),
        };
        let identity = Identity::load(&settings.identity)?;
        Ok(Self { settings, rules, store, identity })
    }

    fn speaker(&self) -> Speaker<'_> {
        Speaker { by: COMMAND_LINE, identity: &self.identity, at_ms: now_ms() }
    }

    fn row(&self, hash: &StudyHash) -> Result<ProposalRow, Error> {
        let none = || Error::input(format!("nobody has proposed the study {hash} here"));
        self.store.proposal_of(hash)?.ok_or_else(none)
    }

    fn record(&self, row: &ProposalRow) -> Result<ProposalRecord, Error> {
        self.store.standing(&row.id)?.ok_or_else(|| Error::misuse("a proposal has its statements"))
    }

    /// Our names of the parties, in the order of their places.
    fn names(&self, record: &ProposalRecord) -> Vec<String> {
        let own = self.identity.fingerprint();
        let name = |key: &net::KeyFingerprint| {
            let peer = self.settings.peers.iter().find(|(_, peer)| peer.key == *key);
            match peer {
                Some((name, _)) => name.clone(),
                None if *key == own => self.settings.name.clone(),
                None => key.to_string(),
            }
        };
        record.parties().iter().map(name).collect()
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Proposes a study.
///
/// # Errors
/// What is wrong with it, or with the store.
pub fn propose(args: &ProposeArgs, as_json: bool) -> Result<(), Error> {
    let opened = OwnHouse::of(&args.file)?;
    let (file, text) = StudyFile::read(&args.study)?;
    if let Some(why) = service::strangers(&opened.settings, &file, opened.identity.fingerprint()) {
        return Err(Error::input(why));
    }
    let text = study::canonical(&args.study.display().to_string(), &text)?;
    let side = CheckedSide::of_study(file, text.clone())?;
    let [built] = &side.built[..] else {
        return Err(Error::input("propose one study with each advertiser: this file asks for several runs"));
    };
    service::may_propose(&opened.settings, opened.identity.fingerprint(), &side.agreed)?;
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|e| Error::misuse(format!("no randomness: {e}")))?;
    let proposed = ProposedStudy {
        text,
        program: built.program.hash(),
        note: args.note.clone(),
        expires_ms: now_ms() + args.days * DAY_MS,
        windows: Vec::new(),
        nonce,
    };
    let record = opened.store.propose(opened.speaker(), proposed)?;
    done(&record, "proposed", as_json)
}

/// Consents, or shows what would be consented to.
///
/// # Errors
/// What stands against it.
pub fn consent(args: &AgreeArgs, as_json: bool) -> Result<(), Error> {
    let opened = OwnHouse::of(&args.study.file)?;
    let row = opened.row(&args.study.hash)?;
    let record = opened.record(&row)?;
    if let Some(line) = &args.seal {
        let seal = StewardSeal::parse(line)?;
        let record = service::seal(&opened.store, &opened.settings, COMMAND_LINE, &row.id, seal)?;
        return done(&record, "consented", as_json);
    }
    let mut weighed = service::weigh(&opened.settings, &args.data, &record.proposed().text)?;
    weighed.refusals = service::stands_against(&opened.settings, args.runs, &weighed)?;
    let words = words(&opened, &record, &args.data, &weighed);
    if !args.yes && args.request.is_none() {
        let rows = match args.data.as_str() {
            "" => String::new(),
            _ => format!("Not signed: {} would take part\n", page::numbers::counted(weighed.rows, "row")),
        };
        let text = format!("{words}\n{rows}To sign it: the same command with --yes");
        return match as_json {
            true => {
                let WeighedStudy { rows, refusals, .. } = &weighed;
                output::print_json(&json!({ "words": words, "rows": rows, "refusals": refusals }))
            }
            false => output::print(&text),
        };
    }
    let keyed = opened.settings.data.get(&args.data).is_some_and(|set| !set.steward_keys.is_empty());
    let file = match &args.request {
        None if keyed => {
            return Err(Error::refused(format!(
                "{} takes the signature of a steward's own key (steward_keys): write what it signs by \
                 --request FILE, and give the signature by --seal LINE",
                args.data
            )));
        }
        Some(_) if !keyed => {
            return Err(Error::input(format!("no steward's key signs for {} (steward_keys)", args.data)));
        }
        file => file,
    };
    let order = AgreeOrder {
        by: COMMAND_LINE.to_owned(),
        id: row.id,
        data: args.data.clone(),
        runs: args.runs,
        days: args.days,
        words,
        rules: opened.rules,
    };
    let step = service::agree(&opened.store, &opened.settings, &order, &weighed)?;
    match (step, file) {
        (ConsentStep::Signed(record), _) => done(&record, "consented", as_json),
        (ConsentStep::Asked, file) => {
            let asked = opened.store.request(&row.id, service::now())?;
            let (Some(asked), Some(file)) = (asked, file) else {
                return Err(Error::misuse("a request that was kept is there"));
            };
            let text = ConsentFile::text(&asked.request, &order.words, &record.proposed().text);
            output::write_file(file, text.as_bytes())?;
            done(&record, "waits for the steward's signature", as_json)
        }
    }
}

/// What who consents by the command line reads and signs for. No number of rows is in it: whoever has the
/// hash could try numbers until it fits.
fn words(opened: &OwnHouse, record: &ProposalRecord, data: &str, weighed: &WeighedStudy) -> String {
    let names = opened.names(record);
    let mut lines = vec![
        format!("{}: proposed by {}", base::clean(record.title()), names[record.proposer()]),
        match data {
            "" => "As a server, without data".to_owned(),
            data => format!("With {data}"),
        },
    ];
    if let Some(set) = opened.settings.data.get(data) {
        lines.push(format!("Charged to the lineage {}", set.lineage));
    }
    lines.extend(weighed.charges.iter().map(|charge| {
        let place = record.parties().iter().position(|key| Some(key.to_string()) == charge.viewer);
        let viewer = place.map_or("everybody", |place| &names[place]);
        let [rho, delta] = &charge.sizes;
        format!(
            "Charged to {viewer}: rho {} for results; rho {rho} and delta {delta} for sizes",
            charge.release
        )
    }));
    lines.extend(weighed.refusals.iter().map(|refusal| format!("Against it: {refusal}")));
    lines.push(format!("The study:\n{}", record.proposed().text));
    lines.join("\n")
}

/// Refuses or withdraws.
///
/// # Errors
/// When it may not be said any more.
pub fn close(args: &ClosingArgs, withdraws: bool, as_json: bool) -> Result<(), Error> {
    let opened = OwnHouse::of(&args.study.file)?;
    let row = opened.row(&args.study.hash)?;
    let reason = ClosingReason { code: ClosingCode::Other, text: args.text.clone() };
    if opened.store.is_unheard(&row.id)? {
        // Nobody who withdraws wants a run meanwhile.
        let (to, at) = (row.study.full(), service::now());
        let act = RecordedAct { by: COMMAND_LINE, what: RUN_STOPPED, to: &to, at };
        opened.store.hold(&act, &row.id, Some(STOPPED), 0)?;
        return Err(Error::refused(format!("{UNHEARD}. {HELD}")));
    }
    let (said, word) = match withdraws {
        true => (Said::Withdraw(reason), "withdrawn"),
        false => (Said::Refuse(reason), "refused"),
    };
    let record = opened.store.say(opened.speaker(), &row.id, said)?;
    done(&record, word, as_json)
}

/// Lets runs of a study begin again that wait for a person, with the data as they are now.
///
/// # Errors
/// When nobody has proposed it here.
pub fn start(study: &NamedStudy, as_json: bool) -> Result<(), Error> {
    let opened = OwnHouse::of(&study.file)?;
    let row = opened.row(&study.hash)?;
    if row.held.as_deref() == Some("told") {
        return Err(Error::refused(format!("no run of this study begins: {OTHERWISE}")));
    }
    let hash = row.study.full();
    let act = |what| RecordedAct { by: COMMAND_LINE, what, to: &hash, at: service::now() };
    if let Some(data) = row.data.as_deref().filter(|_| row.held.as_deref() == Some("data")) {
        let version = service::data_version(&opened.settings, data)?;
        let text = opened.record(&row)?.proposed().text.clone();
        let weighed = service::weigh(&opened.settings, data, &text)?;
        let (store, settings) = (&opened.store, &opened.settings);
        let tag = service::taken_tag(store, settings, (&row.id, data, &version), &weighed)?;
        store.take_data(&act("data taken as they are"), &row.id, (&version, &tag))?;
    }
    opened.store.hold(&act("run allowed"), &row.id, None, 0)?;
    done(&opened.record(&row)?, "allowed", as_json)
}

fn done(record: &ProposalRecord, word: &str, as_json: bool) -> Result<(), Error> {
    let (study, proposal) = (record.study().full(), hex(&record.id().0));
    match as_json {
        true => output::print_json(&json!({ "study": study, "proposal": proposal, "done": word })),
        false => output::print(&format!("{word}: {} ({study})", base::clean(record.title()))),
    }
}

/// Lists studies, the newest first.
///
/// # Errors
/// When the store cannot be read.
pub fn list(file: &Path, all: bool, as_json: bool) -> Result<(), Error> {
    let opened = OwnHouse::of(file)?;
    let filter = ProposalFilter { open: !all, ..ProposalFilter::default() };
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let some = opened.store.list(&filter, after)?;
        let Some(last) = some.last() else { break };
        after = Some(last.row);
        rows.extend(some);
    }
    if as_json {
        return output::print_json(&json!({ "studies": rows.iter().map(shown).collect::<Vec<_>>() }));
    }
    if rows.is_empty() {
        return output::print("There is no study: tacit service propose");
    }
    let line = |row: &ProposalRow| {
        let turn = if row.ours { "your turn" } else { "" };
        format!("{}  {:10}  {:9}  {}", row.study.full(), row.state.name(), turn, base::clean(&row.title))
    };
    output::print(&rows.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn shown(row: &ProposalRow) -> Value {
    json!({
        "study": row.study.full(), "proposal": hex(&row.id.0), "title": row.title, "kind": row.kind,
        "state": row.state.name(), "ours": row.ours, "data": row.data, "held": row.held,
    })
}

/// Says how a study stands.
///
/// # Errors
/// When nobody has proposed it here.
pub fn status(study: &NamedStudy, as_json: bool) -> Result<(), Error> {
    let opened = OwnHouse::of(&study.file)?;
    let row = opened.row(&study.hash)?;
    let record = opened.record(&row)?;
    let (names, sent) = (opened.names(&record), opened.store.sent(&row.id)?);
    let said = statements_of(&record, &names, &sent);
    let words = record.state_words(Naming(&names));
    let runs: Vec<Value> = opened.store.runs(&row.id)?.iter().map(run).collect();
    let report = opened.store.report_file(&row.id, "report.json")?;
    let report = report.map(|file| String::from_utf8_lossy(&file.content).into_owned());
    let report = report.map(|text| serde_json::from_str::<Value>(&text)).transpose();
    let report = report.map_err(|e| Error::misuse(format!("the stored report is no JSON: {e}")))?;
    if as_json {
        let mut object = shown(&row);
        object["words"] = words.into();
        object["statements"] = said.into();
        object["runs"] = runs.into();
        object["report"] = report.into();
        return output::print_json(&object);
    }
    let mut lines = vec![base::clean(&row.title).to_string(), format!("Study {}", row.study.full()), words];
    lines.extend(
        row.held.as_ref().map(|why| format!("Waits until somebody says `tacit service start`: {why}")),
    );
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    lines.extend(said.iter().map(|one| {
        let at = moment(one["at_ms"].as_u64().unwrap_or_default());
        let had = if one["received"] == false { " (not received yet)" } else { "" };
        format!("{at}  {}{had}", text(&one["words"]))
    }));
    lines.extend(runs.iter().map(|run| {
        let message = base::clean(&text(&run["message"]));
        format!("Run {}: {} {message}", run["run"], run["outcome"].as_str().unwrap_or("under way"))
    }));
    output::print(&lines.join("\n"))
}

/// What was said, by time; of own words, whether all others have received them.
fn statements_of(record: &ProposalRecord, names: &[String], sent: &[OutboxRow]) -> Vec<Value> {
    let mut all: Vec<(u64, Value)> = Vec::new();
    for (place, name) in names.iter().enumerate() {
        for one in record.chain(place) {
            let (body, digest) = (one.body(), one.digest());
            let mut out = sent.iter().filter(|row| row.digest == digest).peekable();
            let received = out.peek().is_some().then(|| out.all(|row| row.had_ms.is_some()));
            let value = json!({
                "by": name, "number": body.number, "said": service::kind_of(&body.said), "at_ms": body.at_ms,
                "words": record.statement_words(place, body.number as usize, Naming(names)),
                "received": received,
            });
            all.push((body.at_ms, value));
        }
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, value)| value).collect()
}

fn run(row: &RunRow) -> Value {
    json!({
        "run": row.run, "outcome": row.outcome, "kind": row.kind, "code": row.code, "message": row.message,
        "begun_ms": row.begun_ms, "ended_ms": row.ended_ms,
    })
}
