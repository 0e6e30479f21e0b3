//! How a run of a study goes: in words and whose turn it is, stage by stage, and what both sides said when.

use super::decide::{against, decides, not_done, with_proof};
use super::studies::{StudySeen, acted_on, seen};
use super::study::{said, state};
use crate::agree::{ChangeOrder, OTHER_DATA_SIGNED};
use crate::findings::version;
use crate::link::otherwise::TOLD;
use crate::roles::{Action, Subject};
use crate::schedule::why_waiting;
use crate::store::{ConsentRight, ProposalRow, RUN_STOPPED, RunLine, RunRow, STOPPED};
use crate::web::answer::Answer;
use crate::web::shell::{page, section, table, time};
use crate::web::visit::{Stop, Visit};
use crate::web::weighing::{self, WeighOrder, Weighed};
use page::form::{FormField, button, hidden};
use page::markup::{Markup, element, prose, spans, text, words};
use page::numbers::{bytes, count, duration};
use serde_json::{Value, json};
use terminal::progress::ProgressLine;

/// Why no run begins where the data are not those of the consent.
const DATA: &str = "data";
/// Lines of a run that are read, and shown.
pub const READ: u32 = 1_000;
const SHOWN: usize = 50;

/// The page.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let study = seen(visit)?;
    let runs = visit.house.store.runs(&study.row.id)?;
    let mut live = Vec::new();
    live.extend(waits(visit, &study.row)?.map(|why| prose("p", "", format!("It waits: {why}."))));
    match runs.last() {
        None => live.push(words("p", "", "No run has begun here yet.")),
        Some(run) => live.extend(of_run(visit, &study, run)?),
    }
    live.push(section("What was said", said::table_of(visit, &study)?));
    let again = element("a", &[("href", &visit.path)], [text("Look again")]);
    let mut parts = vec![state(visit, &study)?, element("p", &[("class", "note")], [again])];
    parts.extend(forms(visit, &study, runs.last())?);
    parts.push(element("div", &[("id", "live"), ("data-live", "")], live));
    let title = format!("Run of {}", study.record.title());
    Ok(page(visit, &title, parts))
}

/// Where one stage is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageProgress {
    /// What it is called.
    pub name: String,
    /// Rows that it will handle.
    pub rows: u64,
    /// Of its newest step: its name, how much is done, of how much.
    pub step: Option<(String, u64, u64)>,
    /// Seconds and bytes of one that is over.
    pub done: Option<(f64, u64)>,
}

/// The stages of a run by what its process said, in the order in which they began.
pub fn stages<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<StageProgress> {
    let mut all: Vec<StageProgress> = Vec::new();
    for line in lines {
        match serde_json::from_str(line) {
            Ok(ProgressLine::Stage { name, rows }) => {
                all.push(StageProgress { name, rows, ..StageProgress::default() });
            }
            Ok(ProgressLine::Progress { step, done, total }) => {
                if let Some(stage) = all.last_mut() {
                    stage.step = Some((step, done, total));
                }
            }
            Ok(ProgressLine::Units { done, of, .. }) => {
                if let Some(stage) = all.last_mut() {
                    stage.step = Some(("units".to_owned(), done, of));
                }
            }
            Ok(ProgressLine::StageDone { name, seconds, bytes, .. }) => {
                if let Some(stage) = all.iter_mut().rev().find(|stage| stage.name == name) {
                    stage.done = Some((seconds, bytes));
                }
            }
            _ => {}
        }
    }
    all
}

/// Why its next run does not begin now, as far as this person may know of rules and columns.
pub fn waits(visit: &Visit<'_>, row: &ProposalRow) -> Result<Option<String>, Stop> {
    Ok(why_waiting(visit.house, row, sees_rules(visit, row))?)
}

/// Whether this person sees which rule stands against a study: its words may name columns.
pub fn sees_rules(visit: &Visit<'_>, row: &ProposalRow) -> bool {
    visit.may(Action::SeeRules, Subject::House)
        && visit.may(Action::SeeColumns, Subject::Data(row.data.as_deref().unwrap_or_default()))
}

/// Whether this person sees what a run ended with: of a rule or of the data it may name columns, and cells.
pub fn sees_message(visit: &Visit<'_>, row: &ProposalRow, run: &RunRow) -> bool {
    !matches!(run.kind.as_deref(), Some("policy" | "input" | "data")) || sees_rules(visit, row)
}

/// Whether this person sees how many rows there are, and what the process says of files and ledger: who may
/// look at the data.
pub fn counts(visit: &Visit<'_>, study: &ProposalRow) -> bool {
    let data = study.data.as_deref();
    data.is_some_and(|data| visit.may(Action::CheckData, Subject::Data(data)))
}

/// A line of the process for who does not see that: stages and shares alone.
pub fn without_counts(line: &str) -> Option<Value> {
    let part = |step: &str, done, total| {
        let share = share(done, total);
        json!({ "event": "progress", "step": step, "done": share, "total": 100 })
    };
    match serde_json::from_str(line).ok()? {
        ProgressLine::Stage { name, .. } => Some(json!({ "event": "stage", "name": name })),
        ProgressLine::Progress { step, done, total } => Some(part(&step, done, total)),
        ProgressLine::Units { done, of, .. } => Some(part("units", done, of)),
        ProgressLine::StageDone { name, seconds, .. } => {
            Some(json!({ "event": "stage-done", "name": name, "seconds": seconds }))
        }
        _ => None,
    }
}

fn of_run(visit: &Visit<'_>, study: &StudySeen, run: &RunRow) -> Result<Vec<Markup>, Stop> {
    let lines = visit.house.store.lines(&study.row.id, run.run, 0, READ)?;
    let stages = stages(lines.iter().map(|line| line.line.as_str()));
    let counts = counts(visit, &study.row);
    let mut parts = vec![how(run)];
    // Error messages may hold names of files: they are for those who run the machine or answer for the data.
    if visit.may(Action::Run, study.subject()) {
        let why = run.message.as_ref().map(|why| match sees_message(visit, &study.row, run) {
            true => prose("p", "", without_folders(visit, why)),
            false => words("p", "", "Why is told to those who see the rules and the columns."),
        });
        // What a person did is no error.
        let class = if run.kind.is_some() { "box stop" } else { "box" };
        parts.extend(why.map(|why| element("div", &[("class", class)], [why])));
    }
    let rows = stages.iter().enumerate().map(|(at, stage)| {
        let over = stage.done.is_some() || run.ended_ms.is_some();
        let rows = counts.then(|| text(count(stage.rows)));
        let cells = [text(&stage.name), bar(at, stage, over, counts), text(took(stage, counts))];
        cells.into_iter().chain(rows).collect()
    });
    if !stages.is_empty() {
        let columns = &["Stage", "How far", "Took", "Rows"][..if counts { 4 } else { 3 }];
        parts.push(section(
            "Stages",
            [table("Of this organisation's process", columns, rows.collect::<Vec<Vec<_>>>())],
        ));
    }
    let newest = lines.iter().rev().filter(|_| counts).filter_map(|line| in_words(visit, line)).take(SHOWN);
    let newest: Vec<Markup> = newest.collect();
    if !newest.is_empty() {
        let list = element("ul", &[], newest);
        let title = words("summary", "", "What the process said, the newest first");
        parts.push(element("details", &[], [title, list]));
    }
    Ok(parts)
}

fn how(run: &RunRow) -> Markup {
    let mut parts = vec![text(format!("Run {}: ready ", run.run)), time(run.made_ms / 1_000)];
    if let Some(at) = run.begun_ms {
        parts.extend([text(", begun "), time(at / 1_000)]);
    }
    if let Some(at) = run.ended_ms {
        parts.extend([text(", over "), time(at / 1_000)]);
    }
    let ended = match (run.outcome.as_deref(), run.kind.as_deref(), run.code.as_deref()) {
        (None, ..) => String::new(),
        (Some(outcome), Some(kind), Some(code)) => {
            format!(": {outcome}, an error of kind {kind}, code {code}")
        }
        (Some(outcome), ..) => format!(": {outcome}"),
    };
    parts.push(text(ended + "."));
    element("p", &[], parts)
}

/// How far a stage is, for eyes and ears; in numbers of rows, or as a share.
fn bar(at: usize, stage: &StageProgress, over: bool, counts: bool) -> Markup {
    let (done, total) = match &stage.step {
        _ if stage.done.is_some() => (1, 1),
        Some((_, done, total)) => (*done, (*total).max(1)),
        None => (0, 1),
    };
    let (done, total) = if counts { (done, total) } else { (share(done, total), 100) };
    let (value, most) = (done.min(total).to_string(), total.to_string());
    let label = format!("Stage {}, {}", at + 1, stage.name);
    let place = [("max", most.as_str()), ("value", &value), ("aria-label", &label)];
    let said = match &stage.step {
        _ if stage.done.is_some() => "done".to_owned(),
        _ if over => "broken off".to_owned(),
        Some((step, ..)) if !counts => format!("{step}: {done} %"),
        Some((step, done, total)) => format!("{step}: {} of {}", count(*done), count(*total)),
        None => "begun".to_owned(),
    };
    let bar = element("progress", &place, [text(&said)]);
    element("span", &[("class", "far")], [bar, words("span", "note", format!(" {said}"))])
}

/// Whole hundredths.
pub fn share(done: u64, total: u64) -> u64 {
    u64::try_from(u128::from(done) * 100 / u128::from(total.max(1))).unwrap_or(100)
}

/// How long a stage took and what it sent: rows can be told by the bytes of a match.
fn took(stage: &StageProgress, counts: bool) -> String {
    let said = |(seconds, sent)| match counts {
        true => format!("{}, {}", duration(seconds), bytes(sent)),
        false => duration(seconds),
    };
    stage.done.map_or_else(String::new, said)
}

/// A line of the process for people; nothing of those that only count.
fn in_words(visit: &Visit<'_>, line: &RunLine) -> Option<Markup> {
    let said = match serde_json::from_str(&line.line).ok()? {
        ProgressLine::Waiting { text } | ProgressLine::Settled { text } => text,
        ProgressLine::Warning { text } | ProgressLine::Note { text } => text,
        ProgressLine::Connected { peer } => format!("{peer} is there"),
        ProgressLine::Stage { name, rows } => format!("stage {name} begins, {} rows", count(rows)),
        ProgressLine::StageDone { name, seconds, .. } => {
            format!("stage {name} is over after {}", duration(seconds))
        }
        ProgressLine::Stored => "the stored answer of an earlier run is returned".to_owned(),
        ProgressLine::Progress { .. } | ProgressLine::Units { .. } => return None,
    };
    let said = element("bdi", &[], spans(&without_folders(visit, &said)));
    Some(element("li", &[], [time(line.at_ms / 1_000), text(" "), said]))
}

/// What a process said without the folder of the data: a page says which file it is, not where on the
/// machine.
fn without_folders(visit: &Visit<'_>, said: &str) -> String {
    let Some(folder) = &visit.settings().data_root else { return said.to_owned() };
    said.replace(&format!("{}/", folder.display().to_string().trim_end_matches('/')), "")
}

/// What can be done about the run.
fn forms(visit: &Visit<'_>, study: &StudySeen, run: Option<&RunRow>) -> Result<Vec<Markup>, Stop> {
    let state = study.record.view().state();
    let agreed = (0..study.names.len()).all(|party| study.record.terms(party).is_some());
    // Others may have closed the study: the process here is no less one that can be stopped.
    let runs = visit.house.jobs().run_of(&study.row.id).is_some();
    if !visit.may(Action::Run, study.subject()) || (!runs && (state.is_final() || !agreed)) {
        return Ok(Vec::new());
    }
    let one = |what: &str, deed: &str, label: &str, said: &str| {
        let field = password(visit, if what == "stop" { "stop-password" } else { "password" });
        let parts = [words("p", "note", said)].into_iter().chain(field).chain([button(label, "")]);
        study.form(visit, what, deed, parts)
    };
    if runs || run.is_some_and(|run| run.ended_ms.is_none()) {
        let said = "What was charged stays charged; nothing is charged twice where the data stay the same.";
        return Ok(vec![one("stop", "stop run", "Stop this run", said)]);
    }
    if study.row.held.as_deref() == Some(DATA) {
        return taking(visit, study);
    }
    let held = study.row.held.as_deref().map(|why| {
        let said = format!("No run begins by itself: {why}.");
        element("div", &[("class", "box")], [words("p", "", said)])
    });
    let start = one("start", "start run", "Begin now", "It begins as soon as all others are ready, too.");
    let hold = study.row.held.is_none().then(|| {
        let said = "No run begins then before somebody here says Begin now, whatever the others say.";
        one("stop", "stop run", "Hold", said)
    });
    Ok(held.into_iter().chain([start]).chain(hold).collect())
}

/// What is done where the data are not those of the consent: who decides on them takes them, or nobody.
fn taking(visit: &Visit<'_>, study: &StudySeen) -> Result<Vec<Markup>, Stop> {
    let data = study.row.data.as_deref().unwrap_or_default();
    let said =
        format!("No run begins: {data} changed since consent. Who decides on these data has to take them.");
    let mut parts = vec![element("div", &[("class", "box")], [words("p", "", said)])];
    if visit.house.weighing.has(&study.row.id) {
        let said = "Our files are being read; if nothing stands against it, the run begins then.";
        parts.push(element("p", &[("role", "status")], [text(said)]));
        return Ok(parts);
    }
    parts.extend(against(visit, study, data)?);
    if visit.settings().data.get(data).is_some_and(|set| !set.steward_keys.is_empty()) {
        parts.push(words("p", "note", format!("They are not taken here: {OTHER_DATA_SIGNED}.")));
        return Ok(parts);
    }
    let Ok(version) = version(visit.settings(), data) else { return Ok(parts) };
    if may_take(visit, study) {
        let note = "The files are read as they lie there now, and held against the rules and the ledger, \
                    before the run begins.";
        let form = [words("p", "note", note), hidden("version", &base::hex(&version))].into_iter();
        let form = form.chain(password(visit, "password")).chain([button("Take these data", "")]);
        parts.push(study.form(visit, "take", "take data", form));
    }
    Ok(parts)
}

/// Whether somebody decides on the data of a study that was consented to, and no own key has to.
fn may_take(visit: &Visit<'_>, study: &StudySeen) -> bool {
    let data = study.row.data.as_ref().and_then(|data| visit.settings().data.get_key_value(data));
    data.is_some_and(|(name, set)| set.steward_keys.is_empty() && decides(visit, study, (name, set)))
}

/// Takes the data as they were on the page for those of the consent, where nothing stands against them, and
/// lets the run begin. Where two decide, the first one says so, and the second takes them.
pub fn take(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let study = acted_on(visit)?;
    let data = study.row.data.as_deref().filter(|_| may_take(visit, &study)).ok_or(Stop::Denied)?;
    let set = visit.settings().data.get(data).ok_or(Stop::Missing)?;
    let version = version(visit.settings(), data)?;
    with_proof(visit, "password", || {
        let (store, id) = (&visit.house.store, study.row.id);
        if study.row.held.as_deref() != Some(DATA) || visit.field("version") != base::hex(&version) {
            return Ok(not_done(
                visit,
                &study,
                "The data changed again since you read the page: look again.",
            ));
        }
        let by = visit.signed()?.session.account.clone();
        let change = ChangeOrder { by, id, data: data.to_owned(), version, rules: None };
        let terms = change.approval();
        let separate = visit.settings().policy.separate_duties;
        let approval = set.two_person.then_some(&terms);
        let right = ConsentRight { rules: None, stewards: &set.stewards, separate, approval, keys: &[] };
        let path = format!("{}/run", study.path());
        if !store.is_approved(&id, &change.by, &right, visit.now)? {
            store.approve(&visit.act("changed data agreed to", visit.part("hash"))?, &id, &terms)?;
            return Ok(Answer::go(&path));
        }
        let (hash, text) = (study.row.study.full(), study.record.proposed().text.clone());
        let order = WeighOrder { what: Weighed::Change(change), study: hash, text };
        match weighing::start(visit.house, order)? {
            false if !visit.house.weighing.has(&id) => Err(Stop::Busy),
            _ => Ok(Answer::go(&path)),
        }
    })
}

/// The field for the password, where it was not given in the last five minutes; `id` tells it from others on
/// the page.
pub fn password(visit: &Visit<'_>, id: &str) -> Option<Markup> {
    let proven = visit.signed.as_ref().is_some_and(|signed| signed.session.proven);
    let (kind, fill, help) = ("password", "current-password", "");
    let field = FormField { name: id, label: "Your password", kind, fill, value: "", help };
    (!proven).then(|| field.markup())
}

/// Lets the next run begin as soon as it can.
pub fn start(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let study = acted_on(visit)?;
    visit.must(Action::Run, study.subject())?;
    with_proof(visit, "password", || match allow(visit, &study)? {
        Some(why) => Ok(not_done(visit, &study, why)),
        None => Ok(Answer::go(&format!("{}/run", study.path()))),
    })
}

/// The same without a form; why it cannot be.
pub fn allow(visit: &Visit<'_>, study: &StudySeen) -> Result<Option<&'static str>, Stop> {
    if study.row.held.as_deref() == Some(DATA) {
        return Ok(Some("The data changed since consent: who decides on them has to take them."));
    }
    if study.row.held.as_deref() == Some(TOLD) {
        let said = "A party has said something else here than to another party: withdraw the study.";
        return Ok(Some(said));
    }
    let act = visit.act("run allowed", visit.part("hash"))?;
    visit.house.store.hold(&act, &study.row.id, None, 0)?;
    Ok(None)
}

/// Stops the run that is under way, or that this side has offered: what is held does not begin, and where its
/// process is about to begin, the schedule ends it.
pub fn stop(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let study = acted_on(visit)?;
    visit.must(Action::Run, study.subject())?;
    with_proof(visit, "stop-password", || {
        end(visit, &study)?;
        Ok(Answer::go(&format!("{}/run", study.path())))
    })
}

/// The same without a form.
pub fn end(visit: &Visit<'_>, study: &StudySeen) -> Result<(), Stop> {
    let hash = study.row.study.full();
    let act = visit.act(RUN_STOPPED, &hash)?;
    visit.house.store.hold(&act, &study.row.id, Some(STOPPED), 0)?;
    visit.house.jobs().stop(&study.row.id);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_counts_lines_say_stages_and_shares_alone() {
        let said = |line: &str| without_counts(line).map(|said| said.to_string());
        for (line, hidden) in [
            (r#"{"event":"stage","name":"match","rows":1234}"#, "1234"),
            (r#"{"event":"progress","step":"match/blind","done":617,"total":1234}"#, "1234"),
            (r#"{"event":"stage-done","name":"match","seconds":1.5,"rows":1234,"bytes":2000}"#, "2000"),
        ] {
            let said = said(line).expect("it is said");
            assert!(said.contains("match") && !said.contains(hidden) && !said.contains("1234"), "{said}");
        }
        assert_eq!(said(r#"{"event":"warning","text":"rows.csv, line 7"}"#), None);
    }

    #[test]
    fn stages_follow_from_what_the_process_said() {
        let lines = [
            r#"{"event":"waiting","text":"waits"}"#,
            r#"{"event":"stage","name":"match","rows":100}"#,
            r#"{"event":"progress","step":"match/blind","done":40,"total":100}"#,
            r#"{"event":"stage-done","name":"match","seconds":1.5,"rows":100,"bytes":2000}"#,
            r#"{"event":"stage","name":"compute","rows":100}"#,
            r#"{"event":"units","done":1,"of":4,"again":0}"#,
            "no JSON",
        ];
        let found = stages(lines);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].done, Some((1.5, 2_000)));
        assert_eq!(found[1].step, Some(("units".to_owned(), 1, 4)));
        let shown = bar(1, &found[1], false, true).into_string();
        assert!(shown.contains("max=\"4\"") && shown.contains("units: 1 of 4"), "{shown}");
        assert!(bar(1, &found[1], true, true).into_string().contains("broken off"));
        let shown = bar(1, &found[1], false, false).into_string();
        assert!(shown.contains("max=\"100\"") && shown.contains("units: 25 %"), "{shown}");
    }
}
