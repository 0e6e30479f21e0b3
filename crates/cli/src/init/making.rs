//! What all kinds of `tacit init` do: look, ask, say what the study will tell, write.

mod identifiers;
mod party_file;

use super::InitCommon;
use super::ask::Answering;
use super::draft::{StudyDraft, comment, list, quoted, said};
use super::guess::{self, IdentifierSort};
use super::period::{DAY, NEAR};
use base::{Error, PartyId};
use data::DataLocation;
use data::survey::{ColumnSurvey, TableSurvey, TimeKind, TimeSurvey, survey};
use net::Identity;
use page::lines::fitted;
use privacy::dummies;
use release::rational::{ratio, shown};
use serde_json::json;
use std::path::{Path, PathBuf, absolute};
use store::StoreOptions;
use study::format::{ColumnDates, ColumnName, DateForm, DecimalSign, InputFormat};
use study::party::PartyPolicy;
use study::reader::{nearest, printable};
use study::{Identifier, Question, Study};
use terminal::progress::Working;
use terminal::{output, width};

/// Where who begins a study waits, and who completes it goes, unless told: on one machine.
const ADDRESS: &str = "127.0.0.1:7000";
/// Bytes of data that are read as a whole.
const READ_WHOLE: u64 = 1 << 30;
const STORE: StoreOptions = StoreOptions { endpoint: None, region: None, account: None, allow_http: false };

/// A setting that was chosen, and why.
pub struct Reason {
    setting: String,
    value: String,
    why: String,
}

/// Files in the making.
pub struct Making<'a> {
    pub common: &'a InitCommon,
    pub how: Answering,
    pub survey: TableSurvey,
    pub format: InputFormat,
    /// Its own name.
    pub party: String,
    /// Whether the other party has begun the study.
    pub completes: bool,
    kind: &'static str,
    data: &'a Path,
    out: PathBuf,
    study: PathBuf,
    key: PathBuf,
    identity: Identity,
    new_identity: bool,
    reasons: Vec<Reason>,
    tells: Vec<String>,
    offers: Vec<String>,
    /// The most rho of one study, where one costs any.
    cap: Option<String>,
    /// What the other party wrote of the match.
    their_match: String,
}

/// The title of a study that has none yet.
const UNTITLED: &str = "untitled";
/// Said of a title that nobody chose.
const TITLE_COMMENT: &str =
    "A line that heads the reports, made of names of columns: change it with what is asked.";

/// Said of a name that nobody chose.
const NAMED_BY_FILE: &str = " (by the name of its file unless answered otherwise; --party says another)";

/// What has to be in an unfinished study, and how a new one begins.
pub struct Beginning<'k> {
    /// The kind of study.
    pub kind: &'static str,
    /// What the study must lack where it was begun; and what it lacks after this party where it was not.
    pub lacks: [&'k str; 2],
    /// The command of the other party, without the study.
    pub other: &'k str,
}

impl<'a> Making<'a> {
    /// Looks at the data, and at the study where there is one.
    ///
    /// # Errors
    /// When a file that would be made is there, the study is none that can be completed, or the data cannot
    /// be read.
    pub fn begin(
        common: &'a InitCommon,
        data: &'a Path,
        beginning: &Beginning<'_>,
    ) -> Result<(Self, StudyDraft), Error> {
        let Beginning { kind, .. } = *beginning;
        let out = match (&common.out, &common.study) {
            (Some(out), _) => out.clone(),
            (None, Some(study)) => study.parent().unwrap_or(Path::new("")).to_owned(),
            (None, None) => kind.into(),
        };
        let study = common.study.clone().unwrap_or_else(|| out.join("study.toml"));
        let begun = common.study.as_deref().map(|path| begun(path, beginning)).transpose()?;
        let how = Answering::of(common.yes, common.stdin);
        let party = party_name(common, how, (beginning, data), begun.as_ref())?;
        if begun.is_none() {
            vacant(&study, "to complete it for the other party, name it by --study")?;
        }
        vacant(&out.join(format!("{party}.toml")), "choose another --out or --party, or remove it")?;
        let format = common.format.clone().gathered().map_err(Error::input)?;
        let survey = {
            let _working = Working::on(format!("looking at {}", data.display()));
            survey(DataLocation { path: data, store: &STORE, format: &format, stream: None })?
        };
        let key = key_file(common, &out, &party)?;
        let new_identity = !key.exists();
        let identity = if new_identity { Identity::generate()? } else { Identity::load(&key)? };
        let (reasons, tells, offers, cap) = (Vec::new(), Vec::new(), Vec::new(), None);
        let their_match = begun.as_ref().and_then(|draft| draft.get("match")).unwrap_or_default().to_owned();
        let mut making = Self {
            common,
            how,
            survey,
            format,
            party,
            completes: begun.is_some(),
            kind,
            data,
            out,
            study,
            key,
            identity,
            new_identity,
            reasons,
            tells,
            offers,
            cap,
            their_match,
        };
        making.show();
        let by_file = if kind == "lift" || common.party.is_some() { "" } else { NAMED_BY_FILE };
        making.tell(format!("this party's name: {}{by_file}", making.party));
        let mut draft = begun.unwrap_or_else(|| making.root(beginning));
        if draft.parties().any(|name| making.key_of(&draft, name)) {
            return Err(Error::input(format!(
                "{}: the key of {} is in the study already; the other party has its own folder and key: \
                 choose another --out or --party",
                making.study.display(),
                making.party
            )));
        }
        if making.completes {
            draft.proposed().into_iter().for_each(|(setting, value)| {
                making.because(&setting, value, "proposed by the other party");
            });
        }
        making.join(&mut draft, beginning);
        Ok((making, draft))
    }

    /// Writes this party into the study.
    fn join(&self, draft: &mut StudyDraft, Beginning { kind, lacks, .. }: &Beginning<'_>) {
        let role = if *kind == "lift" { format!("role = \"{}\"\n", lacks[0]) } else { String::new() };
        let (party, key) = (&self.party, self.identity.fingerprint());
        draft.set(&format!("party.{party}"), format!("[party.{party}]\n{role}key  = \"{key}\"\n"));
    }

    fn key_of(&self, draft: &StudyDraft, name: &str) -> bool {
        let own = self.identity.fingerprint().to_string();
        draft.get(&format!("party.{name}")).is_some_and(|text| text.contains(&own))
    }

    /// What stands before all sections.
    fn root(&mut self, beginning: &Beginning<'_>) -> StudyDraft {
        let Beginning { kind, lacks, other, .. } = *beginning;
        let folder =
            absolute(&self.out).ok().and_then(|out| Some(out.file_name()?.to_string_lossy().into_owned()));
        let proposed = folder.map(|name| guess::plain_name(&name)).filter(|name| !name.is_empty());
        let name = self.common.name.clone().or(proposed).unwrap_or_else(|| kind.to_owned());
        let title = self.common.title.as_deref().unwrap_or(UNTITLED);
        self.tell(format!("the study's name: {name}"));
        StudyDraft::new(format!(
            "{}format = \"tacit-study/1\"\nname   = {}\nkind   = \"{kind}\"\ntitle  = {}\n\n{}unfinished = \
             \"{}\"\n",
            comment(
                "Begun by `tacit init`. Both parties hold this file, and agree on it by its hash (`tacit \
                 check`); comments and white space are no part of that. It holds no path and no secret, and \
                 of the data what its lines say."
            ),
            quoted(&name),
            quoted(title),
            comment(&format!(
                "UNFINISHED: the other party completes the study, and these lines go: tacit init {other} \
                 FILE --study THIS_FILE"
            )),
            lacks[1]
        ))
    }

    /// Gives the study its title: what was said, or what it is about by the names of columns, or an answer.
    /// One that somebody chose stays.
    ///
    /// # Errors
    /// When nobody answers.
    pub fn entitle(&mut self, draft: &mut StudyDraft, proposed: &str) -> Result<(), Error> {
        let root = draft.get("").unwrap_or_default().to_owned();
        let known = draft.root_value("title").unwrap_or_default();
        if self.completes && known != UNTITLED && !root.contains(TITLE_COMMENT) {
            return Ok(());
        }
        let read = |text: &str| match text.trim() {
            "" => Err("a title has a word at least".to_owned()),
            text => Ok(base::clean(text)),
        };
        let (title, chosen) = match (&self.common.title, self.how) {
            (Some(said), _) => (said.clone(), true),
            (None, Answering::Asked) => {
                let question = "What is the study called? A line that heads its reports.";
                let title = self.how.words("--title TEXT", question, Some(proposed), read)?;
                let chosen = title != proposed;
                (title, chosen)
            }
            (None, _) => (proposed.to_owned(), false),
        };
        let why = if chosen { String::new() } else { comment(TITLE_COMMENT) };
        let line = |line: &str| match line.split_once('=') {
            Some((name, _)) if name.trim() == "title" => format!("{why}title  = {}\n", quoted(&title)),
            None if line.strip_prefix("# ") == Some(TITLE_COMMENT) => String::new(),
            _ => format!("{line}\n"),
        };
        draft.set("", root.lines().map(line).collect());
        self.tell(format!("the study's title: \"{title}\""));
        Ok(())
    }

    /// Where the data lie, in the form that is known by now.
    pub fn location(&self) -> DataLocation<'_> {
        DataLocation { path: self.data, store: &STORE, format: &self.format, stream: None }
    }

    /// Whether the data are read as a whole to choose what depends on every row.
    ///
    /// # Errors
    /// When they cannot be examined.
    pub fn is_read_whole(&self) -> Result<bool, Error> {
        Ok(data::input_bytes(self.location())? <= READ_WHOLE)
    }

    /// The column of a name that was said.
    ///
    /// # Errors
    /// When there is none.
    pub fn column(&self, name: &str) -> Result<&ColumnSurvey, Error> {
        let found = self.survey.columns.iter().find(|column| column.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.survey.columns.iter().map(|column| column.name.as_str()).collect();
            let hint =
                nearest(name, &names).map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
            let all = names.join(", ");
            Error::input(format!("{}: no column \"{name}\"; there are: {all}{hint}", self.data.display()))
        })
    }

    /// Notes what was chosen and why, for this party alone.
    pub fn because(&mut self, setting: &str, value: impl Into<String>, why: impl Into<String>) {
        self.reasons.push(Reason { setting: setting.to_owned(), value: value.into(), why: why.into() });
    }

    /// Whether a column was chosen as one that says who a row is of.
    pub fn is_identifier(&self, column: &str) -> bool {
        self.reasons.iter().any(|of| of.setting.starts_with("identifier") && of.value == column)
    }

    /// Notes what the study tells the other party.
    pub fn tell(&mut self, what: String) {
        self.tells.push(what);
    }

    /// Notes what could be asked as well, or why it could not.
    pub fn offer(&mut self, what: String) {
        self.offers.push(what);
    }

    /// Whether no value of a column can have been missed: all rows were looked at.
    pub fn is_seen_whole(&self) -> bool {
        self.survey.whole && self.survey.sampled == self.survey.read
    }

    /// Takes the most rho of one study from this one, sizes of its match included. A proposal of the other
    /// party is no reason to allow more than is usual.
    ///
    /// # Errors
    /// When the study's made-up rows are out of range.
    pub fn limit(&mut self, study: &Study) -> Result<(), Error> {
        let released = match &study.kind {
            Question::Lift(lift) => &lift.release.public,
            Question::Program(program) => &program.public,
            Question::Match(_) => &None,
        };
        let Some(mut most) = released.clone() else { return Ok(()) };
        let sizes = (0..study.parties.len() as u8).map(|viewer| dummies::rho(study, PartyId(viewer)));
        most += sizes.collect::<Result<Vec<_>, _>>()?.into_iter().max().unwrap_or_else(|| ratio(0, 1));
        if self.completes {
            most = most.min(PartyPolicy::default().max_rho);
        }
        // A decimal that is no smaller.
        let parts = ratio(1_000_000, 1);
        self.cap = Some(shown(&((most * &parts).ceil() / parts)));
        Ok(())
    }

    /// A column that was named, or the one of the candidates, or the answer to a question.
    ///
    /// # Errors
    /// When there is no such column, no candidate, or no answer.
    pub fn pick(
        &self,
        said: Option<&str>,
        flag: &str,
        question: &str,
        candidates: &[&str],
        sure: Option<&str>,
    ) -> Result<String, Error> {
        if let Some(name) = said {
            return Ok(self.column(name)?.name.clone());
        }
        match (candidates, sure) {
            ([], _) => Err(Error::input(format!(
                "{}: no column looks like it. {question} Say it by {flag}",
                self.data.display()
            ))),
            ([only], _) => Ok((*only).to_owned()),
            (_, Some(sure)) => Ok(sure.to_owned()),
            _ => {
                let answers: Vec<String> = candidates.iter().map(|name| (*name).to_owned()).collect();
                self.how.choose(flag, question, &answers, None).map(|at| answers[at].clone())
            }
        }
    }

    /// How a column's times are read: says the form, and the offset of clocks, where that is needed.
    ///
    /// # Errors
    /// When they are no times, or nobody says what they mean.
    pub fn times(&mut self, name: &str) -> Result<TimeSurvey, Error> {
        let ways = self.column(name)?.times.clone();
        let mut why = "all dates of the sample are written so".to_owned();
        let mut way = match &ways[..] {
            [] => {
                return Err(Error::input(format!(
                    "{}, column \"{name}\": not all cells are dates of one form (of a sample); correct them, \
                     or say the form by --dates {name}=%d.%m.%Y",
                    self.data.display()
                )));
            }
            [only] => only.clone(),
            several => {
                why = format!("{} (--dates {name}=FORM); cells fit other forms, too", self.how.why());
                several[self.form(name, several)?].clone()
            }
        };
        if way.low < NEAR.start * DAY || way.high >= NEAR.end * DAY {
            let day = |seconds: i64| study::time::date_of_days(seconds.div_euclid(DAY));
            return Err(Error::input(format!(
                "{}, column \"{name}\": times go from {} to {} (of a sample), and times of a study are of \
                 the years 1700 to 2199: empty the cells of others, which often stand for \"never\" or \"not \
                 known\", or correct them",
                self.data.display(),
                day(way.low),
                day(way.high)
            )));
        }
        if let (Some(form), []) = (&way.form, self.format.dates_of(name)) {
            self.because(&format!("dates of {name}"), form.to_string(), why);
            self.format.dates.push(ColumnDates { column: Some(name.to_owned()), forms: vec![form.clone()] });
        }
        if way.kind == TimeKind::Wall && self.format.zone.is_none() {
            let question = format!(
                "Times of \"{name}\" have no offset. Of which clock are they: Z, +01:00, Europe/Berlin, ..?"
            );
            let read = |text: &str| study::format::WallZone::parse(text).map_err(str::to_owned);
            self.format.zone = Some(self.how.words("--zone ZONE", &question, None, read)?);
        }
        if let (TimeKind::Wall, Some(zone)) = (way.kind, &self.format.zone) {
            let at = |wall: i64, beside: i64| zone.instant(wall).unwrap_or(wall + beside);
            way.midnight &= at(way.low, DAY) == way.low && at(way.high, DAY) == way.high;
            (way.low, way.high) = (at(way.low, -DAY), at(way.high, DAY));
        }
        Ok(way)
    }

    /// Which of several ways to read a column's times is meant.
    fn form(&self, name: &str, ways: &[TimeSurvey]) -> Result<usize, Error> {
        let day = |seconds: i64| study::time::date_of_days(seconds.div_euclid(DAY));
        let form = |way: &TimeSurvey| way.form.as_ref().map_or("as they are".to_owned(), DateForm::to_string);
        let flag = format!("--dates {name}=FORM");
        // One date, and zeros behind it that may say nothing.
        if let [one, other] = ways
            && [one.kind, other.kind] == [TimeKind::Day, TimeKind::Wall]
            && one.low == other.low
        {
            let answers = [format!("{}: days", form(one)), format!("{}: times of a clock", form(other))];
            let question = format!("All times of \"{name}\" are midnight. Are they days?");
            return self.how.choose(&flag, &question, &answers, Some(0));
        }
        let answer = |way: &TimeSurvey| {
            let zeros = if way.kind == TimeKind::Wall { ", times of a clock" } else { "" };
            format!("{}: {} to {}{zeros}", form(way), day(way.low), day(way.high))
        };
        let answers: Vec<String> = ways.iter().map(answer).collect();
        let question = format!("How are dates of \"{name}\" written? All cells fit each of these forms.");
        self.how.choose(&flag, &question, &answers, None)
    }

    /// Says the decimal sign of a column of numbers where that is needed.
    ///
    /// # Errors
    /// When columns that are used have different ones.
    pub fn decimals(&mut self, name: &str) -> Result<(), Error> {
        self.thousands(name)?;
        let Some(numbers) = &self.column(name)?.numbers else { return Ok(()) };
        let (sign, points) = (numbers.decimal, numbers.decimals > 0 && numbers.decimal.is_none());
        match (sign, self.format.numbers().decimal) {
            (Some(sign), None) => {
                let text = format!("\"{}\"", sign.character());
                self.because("decimal", text, format!("numbers of {name} are written so"));
                self.format.decimal = Some(sign);
            }
            (Some(sign), Some(said)) if sign != said => return Err(self.two_signs(name)),
            (None, Some(DecimalSign::Comma)) if points => return Err(self.two_signs(name)),
            _ => {}
        }
        Ok(())
    }

    /// Asks what separates thousands in a column of numbers, where that is not certain.
    fn thousands(&mut self, name: &str) -> Result<(), Error> {
        let Some(numbers) = &self.column(name)?.numbers else { return Ok(()) };
        let known = self.format.numbers();
        let place = format!("{}, column \"{name}\"", self.data.display());
        let sign = match (numbers.unsure, numbers.thousands) {
            _ if known.grouped => return Ok(()),
            (Some(sign), _) if known.decimal.is_none() => {
                let of = sign.character();
                let question = format!(
                    "{place}: every \"{of}\" in its numbers stands before three digits. Does it stand before \
                     decimals, or does it separate thousands?"
                );
                let answers = ["before decimals", "between thousands"].map(str::to_owned);
                let flag = format!("--decimal {of} or --thousands {of}");
                if self.how.choose(&flag, &question, &answers, None)? == 0 {
                    self.because("decimal", format!("\"{of}\""), "as it was answered");
                    self.format.decimal = Some(sign);
                    return Ok(());
                }
                sign
            }
            (Some(sign), _) if known.decimal == Some(sign.other()) => return self.ask_thousands(name, sign),
            (_, Some(sign)) => return self.ask_thousands(name, sign),
            _ => return Ok(()),
        };
        self.separate(sign)
    }

    /// Asks whether a sign separates thousands, by which alone all cells of a column are numbers.
    fn ask_thousands(&mut self, name: &str, sign: DecimalSign) -> Result<(), Error> {
        let of = sign.character();
        let question = format!(
            "{}, column \"{name}\": some numbers have \"{of}\" before three digits (1{of}234). Does it \
             separate thousands in all of them?",
            self.data.display()
        );
        let flag = format!("--thousands {of}");
        self.how.choose(&flag, &question, &["yes".to_owned()], Some(0))?;
        self.separate(sign)
    }

    /// Looks at the data once more, with this sign between thousands.
    fn separate(&mut self, sign: DecimalSign) -> Result<(), Error> {
        self.because("thousands", format!("\"{}\"", sign.character()), self.how.why());
        self.format.thousands = Some(sign);
        self.format = self.format.clone().gathered().map_err(Error::input)?;
        self.survey = survey(self.location())?;
        Ok(())
    }

    fn two_signs(&self, name: &str) -> Error {
        Error::input(format!(
            "{}, column \"{name}\": numbers have another decimal sign than those of other columns; write all \
             alike",
            self.data.display()
        ))
    }

    /// Shows what was found.
    fn show(&self) {
        let TableSurvey { columns, read, sampled, whole, forms } = &self.survey;
        let of = match (sampled == read, whole) {
            (true, true) => String::new(),
            (false, true) => {
                format!("; a sample of {} of them was looked at", page::numbers::count(*sampled))
            }
            (_, false) => {
                let (read, sampled) = (page::numbers::count(*read), page::numbers::count(*sampled));
                format!(", the first {read}; a sample of {sampled} of them was looked at")
            }
        };
        let forms = forms.iter().map(|form| format!("; {form}")).collect::<String>();
        output::say(&format!("{}: {} rows{of}{forms}", self.data.display(), page::numbers::count(*read)));
        let width = columns.iter().map(|column| column.name.chars().count()).max().unwrap_or_default();
        for column in columns {
            let facts = base::clean(&guess::described(column));
            output::say_of(&format!("  {:width$}  ", printable(&column.name)), &facts);
        }
    }

    /// Says what the study tells, asks whether that is meant, and writes.
    ///
    /// # Errors
    /// When the answer is no, the study is not sound, or a file cannot be written.
    pub fn finish(self, draft: &StudyDraft, other: &str) -> Result<(), Error> {
        if self.completes {
            draft.parse(&self.study.display().to_string())?;
        }
        let party_file = self.out.join(format!("{}.toml", self.party));
        eprintln!("\nChosen:");
        for Reason { setting, value, why } in &self.reasons {
            output::say(&base::clean(&format!("  {setting} = {value}: {why}")));
        }
        if !self.offers.is_empty() {
            output::say("\nResults could also be shown by, each with a share of rho of its own:");
            self.offers.iter().for_each(|what| output::say(&format!("  {}", base::clean(what))));
        }
        output::say("\nThe study file will tell the other party, and nothing else of the data:");
        self.tells.iter().for_each(|what| output::say(&format!("  {}", base::clean(what))));
        self.tell_ledger();
        self.how.confirm(&format!("Write {} and {}?", self.study.display(), party_file.display()))?;
        std::fs::create_dir_all(&self.out)
            .map_err(|e| Error::io(format!("cannot create {}", self.out.display()), &e))?;
        if self.new_identity {
            self.identity.save(&self.key)?;
        }
        output::write_file(&party_file, self.party_file(draft).as_bytes())?;
        output::write_file(&self.study, draft.text().as_bytes())?;
        self.report(&party_file, other)
    }

    /// What was made, and what comes next.
    fn report(&self, party_file: &Path, other: &str) -> Result<(), Error> {
        let key = &self.key;
        let (study, own) = (self.study.display(), party_file.display());
        let run = match self.kind {
            "match" => format!("tacit match {own} --out {}.parquet", self.out.join(&self.party).display()),
            _ => format!("tacit run {own}"),
        };
        let check = format!("tacit check {own}");
        let theirs = match self.completes {
            false => format!("tacit init {other} FILE --study {study}"),
            true => format!("tacit check {study}"),
        };
        let next = [&theirs, &check, &run];
        if self.common.json {
            let columns = self.survey.columns.iter().map(|column| {
                json!({
                    "column": column.name, "filled": column.filled, "empty": column.empty,
                    "distinct": column.distinct, "looks": guess::described(column),
                })
            });
            let chosen = self
                .reasons
                .iter()
                .map(|reason| json!({ "setting": reason.setting, "value": reason.value, "why": reason.why }));
            return output::print_json(&json!({
                "study": study.to_string(), "party_file": own.to_string(), "party": self.party,
                "identity": key.display().to_string(), "key": self.identity.fingerprint().to_string(),
                "finished": self.completes, "rows": self.survey.read, "sampled": self.survey.sampled,
                "columns": columns.collect::<Vec<_>>(), "chosen": chosen.collect::<Vec<_>>(),
                "offers": self.offers, "tells": self.tells, "next": next,
            }));
        }
        let made = if self.completes { "The study is complete" } else { "The study is begun" };
        let words = match self.completes {
            false => [
                "the other party completes the study (on another machine: send it the study file, and take \
                 it back)",
                "then, what the study means and whether your data fit it",
                "your half; the other party runs its own at the same time",
            ],
            true => [
                "the hash, which the other party compares (on another machine: send the study file back)",
                "what the study means and whether your data fit it",
                "your half; the other party runs its own at the same time",
            ],
        };
        let columns = Some(width::columns());
        let words = words.map(|what| fitted(&format!("      {what}"), columns, 0));
        // A command is one line, however long: it is typed so.
        let lines = next.iter().zip(words).map(|(command, what)| format!("  {command}\n{what}"));
        let made = format!(
            "{made}: {study}\nYours alone: {own} and {} (keep the key: it cannot be made again)",
            key.display()
        );
        let next = lines.collect::<Vec<_>>().join("\n");
        output::print(&format!("{}\nNext:\n{next}", fitted(&made, columns, 4)))
    }
}

/// Where this party's key is, or will be: beside the ledger that goes on, for a ledger is of one key.
fn key_file(common: &InitCommon, out: &Path, party: &str) -> Result<PathBuf, Error> {
    let new = out.join(format!("{party}.key"));
    let Some(ledger) = &common.ledger else { return Ok(new) };
    let beside = ledger.with_extension("key");
    match (beside.is_file(), ledger.is_file()) {
        (true, _) => Ok(beside),
        (false, true) => Ok(new),
        (false, false) => Err(Error::input(format!(
            "--ledger {}: there is no such ledger, and no key beside it; name that of an earlier study of \
             these data, or leave --ledger away to begin one",
            ledger.display()
        ))),
    }
}

/// The study that the other party has begun.
fn begun(path: &Path, beginning: &Beginning<'_>) -> Result<StudyDraft, Error> {
    let (draft, shown) = (StudyDraft::read(path)?, path.display());
    let kind = draft.root_value("kind").unwrap_or_default();
    match draft.root_value("unfinished").as_deref() {
        None => Err(Error::input(format!(
            "{shown}: the study is finished, there is nothing to complete; `tacit check {shown}` says what \
             it means"
        ))),
        Some(_) if kind != beginning.kind => Err(Error::input(format!(
            "{shown}: the study is of kind \"{kind}\"; complete it by `tacit init {kind}`"
        ))),
        Some(lacks) if lacks != beginning.lacks[0] => Err(Error::input(format!(
            "{shown}: the study has its {} and lacks its {lacks}: `tacit init lift --{lacks} FILE --study \
             {shown}`",
            beginning.lacks[0]
        ))),
        Some(_) => Ok(draft),
    }
}

/// The name of a file as one of a study; empty where it has no letters.
fn stem(data: &Path) -> String {
    data.file_stem().map_or_else(String::new, |stem| guess::plain_name(&stem.to_string_lossy()))
}

/// Names of files that say nothing of whose they are.
const ANYBODY_S: [&str; 8] = ["data", "rows", "file", "table", "sheet", "export", "list", "input"];

fn party_name(
    common: &InitCommon,
    how: Answering,
    (beginning, data): (&Beginning<'_>, &Path),
    begun: Option<&StudyDraft>,
) -> Result<String, Error> {
    let taken = |name: &str| begun.is_some_and(|draft| draft.parties().any(|other| other == name));
    let check = |name: &str| match guess::plain_name(name) == name && !name.is_empty() {
        _ if taken(name) => Err(format!("the other party is called {name}; choose another name")),
        true => Ok(name.to_owned()),
        false => {
            Err("a name has small letters, digits and -, at most 40, and begins with a letter".to_owned())
        }
    };
    if let Some(name) = &common.party {
        return check(name).map_err(|rule| Error::input(format!("--party {name}: {rule}")));
    }
    let question = "What is this party called in the study? The other party sees the name.";
    let proposed = match (beginning.kind, stem(data)) {
        ("lift", _) => {
            return check(beginning.lacks[0]).or_else(|_| how.words("--party NAME", question, None, check));
        }
        (_, stem) if stem.is_empty() || ANYBODY_S.contains(&stem.as_str()) => {
            if begun.is_some() {
                "second".to_owned()
            } else {
                "first".to_owned()
            }
        }
        (_, stem) if taken(&stem) => format!("{}-2", stem.chars().take(38).collect::<String>()),
        (_, stem) => stem,
    };
    match how {
        Answering::Asked => how.words("--party NAME", question, Some(&proposed), check),
        _ => check(&proposed).or_else(|_| how.words("--party NAME", question, None, check)),
    }
}

/// Refuses what would be overwritten.
fn vacant(path: &Path, instead: &str) -> Result<(), Error> {
    match path.exists() {
        false => Ok(()),
        true => Err(Error::input(format!("{} exists and is not overwritten; {instead}", path.display()))),
    }
}
