//! A study before anybody else knows of it: the form, what it would do in the words that a steward will read,
//! drafts, and the click that proposes it.

mod fields;

use crate::lift_form::{FormParty, fields_again, study_text};
use crate::policy::{broken, may_propose};
use crate::program_form::{program_fields_again, program_text};
use crate::reckoned::{ReckonedFor, SaidSizes};
use crate::roles::{Action, Subject};
use crate::serving::strangers;
use crate::store::Speaker;
use crate::told::{CHOICES, StudyTold, choices, sentence, tell};
use crate::web::answer::Answer;
use crate::web::pages::rehearsal::{Rehearsed, rehearse};
use crate::web::pages::studies::seen_by_hash;
use crate::web::pages::study::RECKONED;
use crate::web::pages::told_parts;
use crate::web::shell::{page, section, table, time, with_status};
use crate::web::visit::{Stop, Visit};
use crate::weigh;
use axum::http::StatusCode;
use base::{Error, Fault};
use net::Identity;
use page::form::{FormMistake, button, button_to, button_to_keep, form, hidden, mistakes_of};
use page::markup::{Markup, element, text, text_lines, words};
use statements::{DAYS, ProposalRecord, ProposedStudy, RunWindow, TEXT_CHARS};
use study::time::CellTime;
use study::{Participant, StudyFile};

const DAY_MS: u64 = 86_400_000;
/// What the page is called.
const TITLE: &str = "Propose a study";

/// What a person filled in, or what stands there first, and what is wrong with it.
#[derive(Clone, Debug, Default)]
pub struct FilledForm {
    fields: Vec<(String, String)>,
    wrong: Vec<FormMistake>,
}

impl FilledForm {
    /// That of fields by their names.
    pub fn of(fields: Vec<(String, String)>) -> Self {
        Self { fields, wrong: Vec::new() }
    }

    fn get(&self, name: &str) -> &str {
        self.fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
    }

    fn is_file(&self) -> bool {
        self.get("as") == "file"
    }

    fn is_program(&self) -> bool {
        self.get("as") == "program"
    }

    /// What stands in a new form.
    fn new(visit: &Visit<'_>) -> Self {
        let policy = &visit.settings().policy;
        let peer = visit.settings().peers.keys().next().cloned().unwrap_or_default();
        let rho = policy.max_rho.as_ref().map(release::rational::to_f64).filter(|most| *most < 0.1);
        let rho = rho.map_or_else(|| "0.1".to_owned(), |most| most.to_string());
        let first = [("peer", peer), ("least", policy.minimum_group.to_string()), ("rho", rho)];
        let rest = [("alike", "plain"), ("clock", "day"), ("events", "1"), ("clamp", "1"), ("days", "30")];
        let rest = rest.into_iter().chain([("count", "yes")]).map(|(name, value)| (name, value.to_owned()));
        let of = |(name, value): (&str, String)| (name.to_owned(), value);
        let all = first.into_iter().chain(rest).chain([("as", visit.field("as").to_owned())]);
        Self::of(all.map(of).collect())
    }

    /// What a form would have had in it that made a study which was proposed here, or its text, pasted.
    fn like(visit: &Visit<'_>, hash: &str) -> Result<Self, Stop> {
        let study = seen_by_hash(visit, hash)?;
        visit.must(Action::ReadStudy, study.subject())?;
        let of = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let proposed = study.record.proposed();
        let pasted = || [("as", "file"), ("text", proposed.text.as_str())].map(of).to_vec();
        let mut fields = again(visit, &proposed.text).unwrap_or_else(pasted);
        let said = visit.house.store.sizes_said(&study.row.id)?;
        fields.extend(sizes_again(said, Self::of(fields.clone()).get("role")));
        // What another organisation wrote beside it are its words.
        let note = if study.row.by.is_empty() { "" } else { &proposed.note };
        fields.extend([("days", "30"), ("note", note)].map(of));
        Ok(Self::of(fields))
    }

    /// What a person sent, without what is not theirs.
    fn sent(visit: &Visit<'_>) -> Self {
        let theirs =
            |(name, _): &&(String, String)| !["csrf", "do", "read", "draft"].contains(&name.as_str());
        Self::of(visit.form.iter().filter(theirs).cloned().collect())
    }
}

/// The fields of the form that makes a study of this organisation and one other, where there is one.
fn again(visit: &Visit<'_>, text: &str) -> Option<Vec<(String, String)>> {
    let file = StudyFile::parse("the study", text).ok()?;
    let own = visit.us()?.to_string();
    let [us, them] = match &file.parties[..] {
        [one, other] if one.key == own => [one, other],
        [one, other] if other.key == own => [other, one],
        _ => return None,
    };
    let (peer, _) = visit.settings().peers.iter().find(|(_, peer)| peer.key.to_string() == them.key)?;
    // With the names that the study has: the form has those of service.toml again.
    let (us, them) = (party(us), party(them));
    let fields = fields_again(text, us, them).or_else(|| program_fields_again(text, us, them));
    let mut fields = fields?;
    fields.push(("peer".to_owned(), peer.clone()));
    Some(fields)
}

fn party(party: &Participant) -> FormParty<'_> {
    FormParty { name: &party.name, key: &party.key }
}

/// The form: empty, with a draft, or like a study.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::Propose, Subject::House)?;
    let account = &visit.signed()?.session.account;
    let filled = match (visit.field("draft").parse(), visit.field("like")) {
        (Ok(id), _) => FilledForm::of(visit.house.store.draft(account, id)?.ok_or(Stop::Missing)?.fields),
        (Err(_), "") => FilledForm::new(visit),
        (Err(_), hash) => FilledForm::like(visit, hash)?,
    };
    Ok(page(visit, TITLE, parts(visit, &filled, None)?))
}

/// What the form is sent for: to see what it would do, to keep it, or to propose it.
pub fn submit(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::Propose, Subject::House)?;
    let filled = FilledForm::sent(visit);
    if visit.field("do") == "save" {
        keep(visit, &filled)?;
        return Ok(Answer::go("/studies/new"));
    }
    let again = |wrong: Vec<FormMistake>, told| {
        let status = if wrong.is_empty() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
        let filled = FilledForm { wrong, ..filled.clone() };
        Ok(with_status(visit, status, TITLE, parts(visit, &filled, told)?))
    };
    let Some(own) = visit.house.identity() else {
        let said = "This organisation has no key, so it cannot sign: an operator makes it by `tacit keygen` \
                    where service.toml says (identity), and starts the service again.";
        return again(vec![FormMistake::of_all(said)], None);
    };
    let (told, asked) = match (read(visit, &filled, own), asked(visit, &filled)) {
        (Ok(told), Ok(asked)) => (told, asked),
        (told, asked) => {
            let wrong = [told.err(), asked.err()].into_iter().flatten().flatten();
            return again(wrong.collect(), None);
        }
    };
    if visit.field("do") == "rehearse" {
        // What is rehearsed is a draft, which its page belongs to.
        let id = keep(visit, &filled)?;
        let study = Rehearsed::of_draft(&told, sizes(&filled), id);
        rehearse(visit, &study.study, &study.text, study.sizes())?;
        return Ok(Answer::go(&study.path));
    }
    if visit.field("do") != "propose" || visit.field("read") != told.file.hash().full() {
        return again(Vec::new(), Some(&told));
    }
    let hash = told.file.hash();
    match propose(visit, own, &told, asked, visit.field("draft").parse().ok()) {
        Ok(_) => Ok(Answer::go(&format!("/studies/{}", hash.full()))),
        Err(Stop::Failed(error)) if matches!(error.kind(), Fault::Input(_) | Fault::Refused(_)) => {
            again(vec![FormMistake::of_all(error.to_string())], Some(&told))
        }
        Err(stop) => Err(stop),
    }
}

/// Keeps a form as a draft; its number.
fn keep(visit: &Visit<'_>, filled: &FilledForm) -> Result<u64, Stop> {
    let account = &visit.signed()?.session.account;
    let title = Some(filled.get("title")).filter(|title| !title.trim().is_empty()).unwrap_or("Untitled");
    let draft = visit.field("draft").parse().ok();
    let act = visit.act("draft kept", account)?;
    Ok(visit.house.store.keep_draft(&act, draft, title, &filled.fields)?)
}

/// Signs a study and sends it, unless the own rules do not allow it; the draft that it was goes.
pub fn propose(
    visit: &Visit<'_>,
    own: &Identity,
    told: &StudyTold,
    asked: AskedBesides,
    draft: Option<u64>,
) -> Result<ProposalRecord, Stop> {
    may_propose(visit.settings(), own.fingerprint(), &told.file)?;
    let program = base::unhex(&told.program).ok_or_else(|| Error::misuse("a hash has 64 digits"))?;
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|e| Error::misuse(format!("no randomness: {e}")))?;
    let expires_ms = visit.now * 1_000 + asked.days * DAY_MS;
    let (text, note, windows) = (told.text.clone(), asked.note, asked.windows);
    let proposed = ProposedStudy { text, program, note, expires_ms, windows, nonce };
    let account = &visit.signed()?.session.account;
    let speaker = Speaker { by: account, identity: own, at_ms: crate::link::now_ms() };
    let record = visit.house.store.propose(speaker, proposed)?;
    let hash = told.file.hash().full();
    let act = visit.act("rows and outcomes said with a proposal", &hash)?;
    visit.house.store.keep_sizes(&act, &record.id(), asked.sizes)?;
    if let Some(draft) = draft {
        visit.house.store.drop_draft(&visit.act("draft proposed", account)?, draft)?;
    }
    Ok(record)
}

/// Takes a draft away.
pub fn drop_draft(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let account = &visit.must(Action::Propose, Subject::House)?.session.account;
    let id = visit.part("id").parse().map_err(|_| Stop::Missing)?;
    visit.house.store.drop_draft(&visit.act("draft dropped", account)?, id)?;
    Ok(Answer::go("/studies/new"))
}

/// What is asked for besides the study.
pub struct AskedBesides {
    days: u64,
    note: String,
    windows: Vec<RunWindow>,
    sizes: SaidSizes,
}

/// The same of a form, or what is wrong with it.
pub fn asked(visit: &Visit<'_>, filled: &FilledForm) -> Result<AskedBesides, Vec<FormMistake>> {
    let mut wrong = Vec::new();
    let days = filled.get("days").trim().parse().unwrap_or(0);
    if !(1..=DAYS).contains(&days) {
        let said = format!("write a number from 1 to {DAYS}.");
        wrong.push(FormMistake::of("days", "Days to decide", said));
    }
    let note = filled.get("note").replace("\r\n", "\n").trim().to_owned();
    if note.chars().count() > TEXT_CHARS {
        let said = format!("it has more than {TEXT_CHARS} characters.");
        wrong.push(FormMistake::of("note", "Note to the others", said));
    }
    let mut day = |name: &str, label: &str| match filled.get(name).trim() {
        "" => None,
        text => match CellTime::read(text) {
            Some(CellTime::Day(day)) if day > 0 => Some(day.unsigned_abs() * DAY_MS),
            _ => {
                wrong.push(FormMistake::of(name, label, "write a day, such as 2026-01-31."));
                None
            }
        },
    };
    let span = [day("run-from", "Runs from"), day("run-until", "Runs until")];
    let windows = match span {
        [None, None] => Vec::new(),
        [from, until] => {
            let until_ms = until.map_or(visit.now * 1_000 + DAYS * DAY_MS, |until| until + DAY_MS);
            vec![RunWindow { from_ms: from.unwrap_or(visit.now * 1_000), until_ms }]
        }
    };
    if windows.iter().any(|window| window.from_ms >= window.until_ms) {
        wrong.push(FormMistake::of("run-until", "Runs until", "it has to come after the first day."));
    }
    if wrong.is_empty() { Ok(AskedBesides { days, note, windows, sizes: sizes(filled) }) } else { Err(wrong) }
}

/// The study that a form is.
pub fn read(visit: &Visit<'_>, filled: &FilledForm, own: &Identity) -> Result<StudyTold, Vec<FormMistake>> {
    let us = own.fingerprint();
    let text = match filled.is_file() {
        true => filled.get("text").to_owned(),
        false => {
            let Some((name, peer)) = visit.settings().peers.get_key_value(filled.get("peer")) else {
                let said = "choose an organisation that service.toml names.";
                return Err(vec![FormMistake::of("peer", "With", said)]);
            };
            let (own, their) = (us.to_string(), peer.key.to_string());
            let us = FormParty { name: &visit.settings().name, key: &own };
            let (field, them) = (|name: &str| filled.get(name), FormParty { name, key: &their });
            match filled.is_program() {
                true => program_text(&field, us, them)?,
                false => study_text(&field, us, them)?,
            }
        }
    };
    let of_all = |said: String| match filled.is_file() {
        true => vec![FormMistake::of("text", "Study file", said)],
        false => vec![FormMistake::of_all(said)],
    };
    let reckoned = ReckonedFor::said(sizes(filled));
    let told = tell(&text, &us.to_string(), &reckoned).map_err(|error| of_all(error.to_string()))?;
    strangers(visit.settings(), &told.file, us).map_or(Ok(told), |wrong| Err(of_all(wrong)))
}

/// The rows of both sides that somebody guesses, those of who was treated first, and the mean outcome.
pub fn sizes(filled: &FilledForm) -> SaidSizes {
    let number = |name: &str| filled.get(name).trim().parse::<u64>().ok().filter(|rows| *rows > 0);
    let both = number("rows-us").zip(number("rows-them"));
    let rows = both.map(|(us, them)| match filled.get("role") {
        "advertiser" => [them, us],
        _ => [us, them],
    });
    let mean = filled.get("mean").trim().parse::<f64>().ok();
    SaidSizes { rows, mean: mean.filter(|mean| mean.is_finite() && *mean > 0.0) }
}

/// The fields that [`sizes`] reads as this.
fn sizes_again(said: SaidSizes, role: &str) -> Vec<(String, String)> {
    let ours =
        |[first, others]: [u64; 2]| if role == "advertiser" { [others, first] } else { [first, others] };
    let rows =
        said.rows.map(ours).into_iter().flat_map(|rows| ["rows-us", "rows-them"].into_iter().zip(rows));
    let rows = rows.map(|(name, rows)| (name.to_owned(), rows.to_string()));
    rows.chain(said.mean.map(|mean| ("mean".to_owned(), mean.to_string()))).collect()
}

/// What other choices would see, where somebody guesses rows and outcomes.
fn compared(filled: &FilledForm, told: &StudyTold) -> Option<Markup> {
    let SaidSizes { rows, mean } = sizes(filled);
    let (rows, mean) = (rows?, mean?);
    let title = words("summary", "", "What other rho, clamps, rows and modes would see");
    let found = match choices(told, rows, mean) {
        Ok(found) if found.is_empty() => return None,
        Ok(found) => {
            let cells = |row: [String; 4]| row.map(text).into_iter().collect();
            table("One setting changed, the others as they are", &CHOICES, found.into_iter().map(cells))
        }
        Err(error) => words("p", "", error.to_string()),
    };
    Some(element("details", &[("open", "")], [title, found]))
}

/// The own rules that a study breaks, in words: with one it is not proposed.
fn refused(visit: &Visit<'_>, told: &StudyTold) -> Vec<String> {
    let broken = |us| broken(&visit.settings().policy, us, &told.file);
    visit.us().map(broken).unwrap_or_default().into_iter().map(|broken| broken.why).collect()
}

/// What the own rules say against a study: those that no data set can mend, else those of our data where none
/// fits, for who sees their columns.
fn rules(visit: &Visit<'_>, told: &StudyTold, refused: &[String]) -> Option<Markup> {
    let item = |line: &String| element("li", &[], [element("bdi", &[], [text(sentence(line))])]);
    if !refused.is_empty() {
        let title = "The rules of this organisation do not allow it, so nobody here could consent to it:";
        let after = "Change the study, or ask an operator and a steward to loosen the rule (Rules).";
        let list = element("ul", &[], refused.iter().map(item));
        let place = [("class", "box stop"), ("role", "alert")];
        return Some(element("div", &place, [words("p", "", title), list, words("p", "", after)]));
    }
    let settings = visit.settings();
    let us = visit.us()?.to_string();
    let me = told.file.parties.iter().find(|party| party.key == us)?;
    let seen = settings.data.iter().filter(|(name, _)| visit.may(Action::SeeColumns, Subject::Data(name)));
    let against = seen.map(|(name, set)| (name, weigh::rules(settings, set, &told.file, me)));
    // Of several data sets the one that lacks the fewest is what somebody would mend.
    let (name, against) = against.min_by_key(|(_, against)| against.len())?;
    if against.is_empty() {
        return None;
    }
    let title = format!("As the rules stand, nobody here could consent to it with {name}:");
    let list = element("ul", &[], against.iter().map(item));
    Some(element("div", &[("class", "box")], [words("p", "", title), list]))
}

fn parts(visit: &Visit<'_>, filled: &FilledForm, told: Option<&StudyTold>) -> Result<Vec<Markup>, Stop> {
    let mut parts = vec![mistakes_of(&filled.wrong)];
    let ways = [
        ("lift", "/studies/new", "A lift study: did a treatment change an outcome?"),
        (
            "program",
            "/studies/new?as=program",
            "Questions about columns of both sides: counts, means, shares, quantiles and more",
        ),
        ("file", "/studies/new?as=file", "A study file of any kind, pasted"),
    ];
    let chosen = if filled.is_file() || filled.is_program() { filled.get("as") } else { "lift" };
    let way = |(name, path, label): (&str, &str, &str)| {
        let here = [("href", path), ("aria-current", "page")];
        let link = element("a", &here[..if name == chosen { 2 } else { 1 }], [text(label)]);
        element("li", &[], [link])
    };
    parts.push(element("ul", &[("class", "links")], ways.map(way)));
    // Who comes to write sees what was kept; who is at it sees that below.
    let (fresh, drafts) = (told.is_none() && filled.wrong.is_empty(), drafts(visit)?);
    let (above, below) = if fresh { (drafts, None) } else { (None, drafts) };
    parts.extend(above);
    if visit.settings().peers.is_empty() {
        let said = "No other organisation is known yet: an operator writes it into service.toml.";
        parts.push(element("div", &[("class", "box")], [words("p", "", said)]));
    }
    let mut inside = match chosen {
        "file" => fields::of_file(filled),
        "program" => fields::of_program(visit, filled),
        _ => fields::of_lift(visit, filled),
    };
    inside.push(fields::besides(filled));
    inside.extend(told.map(|told| hidden("read", &told.file.hash().full())));
    inside.extend(Some(visit.field("draft")).filter(|id| !id.is_empty()).map(|id| hidden("draft", id)));
    let preview = button_to("Preview", "preview", if told.is_some() { "plain" } else { "" });
    let refused = told.map(|told| refused(visit, told)).unwrap_or_default();
    let propose = told.filter(|_| refused.is_empty()).map(|_| button_to("Propose", "propose", ""));
    let rehearse = button_to("Rehearse", "rehearse", "plain");
    let keep = button_to_keep("Save draft", "save");
    let buttons = [Some(preview), Some(rehearse), Some(keep), propose];
    let buttons = element("p", &[("class", "buttons")], buttons.into_iter().flatten());
    let word = visit.word("propose study", "");
    if let Some(told) = told {
        let said = match refused.is_empty() {
            true => "Read what the others will read. To propose it, press Propose beneath the form.",
            false => "It cannot be proposed: a rule of this organisation does not allow it.",
        };
        let study = &told.file.first();
        let title = element("p", &[("class", "lead")], [element("bdi", &[], [text(&study.title)])]);
        let file = element("pre", &[("tabindex", "0")], [text_lines(&told.text)]);
        let file = element("details", &[], [words("summary", "", "The study file"), file]);
        let hash = words("p", "note", format!("Hash {}.", told.file.hash().full()));
        let all = [words("p", "", said)].into_iter().chain(rules(visit, told, &refused)).chain([title]);
        let all = all.chain(told_parts("h3", &told.sections)).chain([words("p", "note", RECKONED)]);
        let all = all.chain(told_parts("h3", &told.reckoned)).chain(compared(filled, told));
        parts.push(section("What it would do", all.chain([file, hash])));
    }
    parts.push(form("/studies/new", word.as_deref(), inside.into_iter().chain([buttons])));
    parts.extend(below);
    Ok(parts)
}

/// What this person has kept.
fn drafts(visit: &Visit<'_>) -> Result<Option<Markup>, Stop> {
    let drafts = visit.house.store.drafts(&visit.signed()?.session.account)?;
    if drafts.is_empty() {
        return Ok(None);
    }
    let rows = drafts.iter().map(|draft| {
        let (id, path) = (draft.id.to_string(), format!("/studies/new?draft={}", draft.id));
        let link = element("a", &[("href", &path)], [element("bdi", &[], [text(&draft.title)])]);
        let word = visit.word("drop draft", &id);
        let drop = form(&format!("/drafts/{id}/drop"), word.as_deref(), [button("Drop", &draft.title)]);
        vec![link, time(draft.at), drop]
    });
    let columns = ["Draft", "Kept", "Drop it"];
    Ok(Some(section("Your drafts", [table("Nobody else sees them", &columns, rows)])))
}
