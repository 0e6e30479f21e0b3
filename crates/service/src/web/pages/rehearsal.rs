//! A study tried on made-up rows, before anybody decides on it: what its report would have in it.

use super::propose;
use super::studies::seen;
use crate::rehearsal::REHEARSED_ROWS;
use crate::roles::{Action, Subject};
use crate::told::{StudyTold, sentence};
use crate::web::answer::Answer;
use crate::web::rehearsing::{Rehearsal, start};
use crate::web::shell::{page, section, table};
use crate::web::visit::{Stop, Visit};
use job::simulate::{SimulatedNumber, SimulatedPart, SimulatedRun, SimulatedView, Simulation};
use page::form::{FormField, FormMistake, button, form, mistakes_of};
use page::markup::{Markup, element, number, prose, text, words};
use page::numbers::{count, percent};
use page::svg::{Axis, axis_bar, figure, vertical};

/// Rows of a side, where nobody says how many.
pub const ROWS: u64 = 10_000;
/// Numbers that are drawn.
const DRAWN: usize = 24;
/// Height of a drawing's bars, in pixels.
const HEIGHT: u32 = 90;
/// Of it, what the line of the exact number goes beyond the highest bar.
const ABOVE: u32 = 10;

/// What is rehearsed: a draft or a proposal.
pub struct Rehearsed {
    /// Where its page is, and where it comes from.
    path: String,
    from: (String, &'static str),
    /// Its hash.
    pub study: String,
    title: String,
    /// Its one form.
    pub text: String,
    /// Its parties, by name.
    parties: Vec<String>,
}

impl Rehearsed {
    fn of(told: &StudyTold, path: String, from: (String, &'static str)) -> Self {
        Self {
            path,
            from,
            study: told.file.hash().full(),
            title: told.file.first().title.clone(),
            text: told.text.clone(),
            parties: told.file.parties.iter().map(|party| party.name.clone()).collect(),
        }
    }
}

/// The page of a proposal's rehearsal.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let one = proposed(visit)?;
    Ok(page(visit, &title(&one), parts(visit, &one, "rehearse", &[])))
}

/// The same of a draft.
pub fn show_draft(visit: &Visit<'_>) -> Result<Answer, Stop> {
    match drafted(visit)? {
        Some(one) => Ok(page(visit, &title(&one), parts(visit, &one, "rehearse draft", &[]))),
        // What is wrong with a draft stands beside its fields.
        None => Ok(Answer::go(&format!("/studies/new?draft={}", visit.part("id")))),
    }
}

/// Begins one of a proposal.
pub fn begin(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let one = proposed(visit)?;
    begun(visit, &one, "rehearse")
}

/// The same of a draft.
pub fn begin_draft(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let one = drafted(visit)?.ok_or(Stop::Missing)?;
    begun(visit, &one, "rehearse draft")
}

fn begun(visit: &Visit<'_>, one: &Rehearsed, deed: &'static str) -> Result<Answer, Stop> {
    let mut wrong = Vec::new();
    let rows = [0, 1].map(|at| {
        let name = format!("rows-{at}");
        let said: String = visit.field(&name).chars().filter(|c| !matches!(c, ',' | ' ')).collect();
        said.parse().ok().filter(|rows| is_possible(*rows)).unwrap_or_else(|| {
            let said = format!("write a number from 1 to {}.", count(REHEARSED_ROWS));
            wrong.push(FormMistake::of(&name, &label(one, at), said));
            1
        })
    });
    if !wrong.is_empty() {
        return Ok(page(visit, &title(one), parts(visit, one, deed, &wrong)));
    }
    rehearse(visit, &one.study, &one.text, rows)?;
    Ok(Answer::go(&one.path))
}

/// Whether so many rows are made up.
pub fn is_possible(rows: u64) -> bool {
    (1..=REHEARSED_ROWS).contains(&rows)
}

/// Begins one, unless it is under way, and writes down who asked.
pub fn rehearse(visit: &Visit<'_>, study: &str, text: &str, rows: [u64; 2]) -> Result<(), Stop> {
    let under_way = |one: &Rehearsal| one.came.is_none();
    if !start(visit.house, study, text, rows)?
        && !visit.house.rehearsing.of(study).as_ref().is_some_and(under_way)
    {
        return Err(Stop::Busy);
    }
    Ok(visit.house.store.record(&visit.act("study rehearsed on made-up rows", study)?)?)
}

/// The proposal of the path: whoever reads its file may rehearse it.
pub fn proposed(visit: &Visit<'_>) -> Result<Rehearsed, Stop> {
    let study = seen(visit)?;
    visit.must(Action::ReadStudy, study.subject())?;
    let told = super::study::told(visit, &study)?;
    let path = study.path();
    Ok(Rehearsed::of(&told, format!("{path}/rehearsal"), (path, "What was proposed")))
}

/// The draft of the path, where it is a study.
pub fn drafted(visit: &Visit<'_>) -> Result<Option<Rehearsed>, Stop> {
    let account = &visit.must(Action::Propose, Subject::House)?.session.account;
    let id = visit.part("id").parse().map_err(|_| Stop::Missing)?;
    let draft = visit.house.store.draft(account, id)?.ok_or(Stop::Missing)?;
    let Some(own) = visit.house.identity() else { return Ok(None) };
    let told = propose::read(visit, &propose::FilledForm::of(draft.fields), own).ok();
    let from = (format!("/studies/new?draft={id}"), "The draft");
    Ok(told.map(|told| Rehearsed::of(&told, format!("/drafts/{id}/rehearsal"), from)))
}

fn title(one: &Rehearsed) -> String {
    format!("Made up: rehearsal of {}", one.title)
}

/// What the field of a side's rows is called.
fn label(one: &Rehearsed, at: usize) -> String {
    match (at, &one.parties[..]) {
        (0, [first, ..]) => format!("Made-up rows of {first}"),
        (_, [_, second]) => format!("Made-up rows of {second}"),
        _ => "Made-up rows of each other party".to_owned(),
    }
}

fn parts(visit: &Visit<'_>, one: &Rehearsed, deed: &'static str, wrong: &[FormMistake]) -> Vec<Markup> {
    let rehearsal = visit.house.rehearsing.of(&one.study);
    let from = element("a", &[("href", &one.from.0)], [text(one.from.1)]);
    let mut parts = vec![mistakes_of(wrong), warning(), element("p", &[("class", "note")], [from])];
    let (live, done) = match &rehearsal {
        None => (words("p", "", "Nothing was made up for this study yet."), Vec::new()),
        Some(Rehearsal { came: None, .. }) => {
            let link = element("a", &[("href", &one.path)], [text("Look again")]);
            let said = text("Rows are being made up, and the study is computed on them. ");
            (element("p", &[("role", "status")], [said, link]), Vec::new())
        }
        Some(Rehearsal { came: Some(Err(why)), .. }) => {
            let why = [words("p", "", "There is no rehearsal."), words("p", "", why)];
            (element("div", &[("class", "box stop")], why), Vec::new())
        }
        Some(Rehearsal { came: Some(Ok(found)), .. }) => (rows_words(found), shown(found)),
    };
    let under_way = rehearsal.as_ref().is_some_and(|one| one.came.is_none());
    let live = [live].into_iter().chain(done);
    parts.push(element("div", &[("id", "rehearsal"), ("data-live", "")], live));
    if !under_way {
        parts.push(again(visit, one, deed, rehearsal.as_ref(), wrong));
    }
    parts
}

/// What stands above everything.
fn warning() -> Markup {
    let said = "Everything on this page is made up: the rows were invented for it, and none is of a person. \
                It shows what kind of result the study gives and how exact it is, not what the answer will \
                be. Nothing was sent to anybody, and nothing was taken from a budget.";
    element("div", &[("class", "box")], [words("p", "", said)])
}

/// How many rows there are.
fn rows_words(found: &Simulation) -> Markup {
    let rows = |party: &job::simulate::SimulatedParty| format!("{} of {}", count(party.rows), party.name);
    let rows: Vec<String> = found.parties.iter().map(rows).collect();
    let shared: u64 = found.runs.iter().map(|run| run.shared).sum();
    let said = format!("Made-up rows: {}; {} are of people whom all have.", rows.join(", "), count(shared));
    words("p", "", said)
}

fn again(
    visit: &Visit<'_>,
    one: &Rehearsed,
    deed: &'static str,
    before: Option<&Rehearsal>,
    wrong: &[FormMistake],
) -> Markup {
    let help = format!("1 to {}. As many as you expect.", count(REHEARSED_ROWS));
    let fields = [0, 1].map(|at| {
        let name = format!("rows-{at}");
        let sent = visit.field(&name);
        let stands = before.map_or(ROWS, |one| one.rows[at]).to_string();
        let value = if sent.is_empty() { &stands } else { sent };
        let label = label(one, at);
        let field = FormField { name: &name, label: &label, kind: "text", fill: "off", value, help: &help };
        field.among(true, wrong)
    });
    let action = format!("{}/rehearse", one.path.trim_end_matches("/rehearsal"));
    let word = visit.word(deed, &crate::web::door::subject(&visit.parts, ""));
    let label = if before.is_some() { "Rehearse again" } else { "Rehearse" };
    let fields = fields.into_iter().chain([button(label, "")]);
    section("With how many rows", [form(&action, word.as_deref(), fields)])
}

/// What came of it, viewer by viewer.
fn shown(found: &Simulation) -> Vec<Markup> {
    let mut parts = Vec::new();
    for run in &found.runs {
        if found.runs.len() > 1 {
            parts.push(words("p", "", format!("The run of {}:", run.parties.join(" with "))));
        }
        parts.extend(run.notes.iter().map(|note| prose("p", "note", sentence(note))));
        parts.extend(run.views.iter().map(|view| of_view(run, view)));
    }
    parts
}

fn of_view(run: &SimulatedRun, view: &SimulatedView) -> Markup {
    let who = if view.viewer == privacy::ledger::PUBLIC { "everybody" } else { &view.viewer };
    let mut parts: Vec<Markup> =
        view.parts.iter().filter(|part| !part.numbers.is_empty()).map(of_part).collect();
    parts.extend(view.lists.iter().map(|list| {
        let rows = count(list.keys.len() as u64 + list.others);
        words("p", "", format!("{}: a list of {rows} rows.", list.label))
    }));
    let numbers = view.parts.iter().flat_map(|part| part.numbers.iter().map(move |number| (part, number)));
    let place = format!("{}-{who}", run.parties.join("-"));
    let drawn = numbers
        .enumerate()
        .filter_map(|(at, (part, number))| drawing(&format!("{place}-{at}"), part, number));
    let drawn: Vec<Markup> = drawn.take(DRAWN).collect();
    if !drawn.is_empty() {
        let said = "Each figure has 1,000 results that the study might give of the same made-up rows: they \
                    differ by the noise alone. The line is the exact number.";
        let drawn = [words("summary", "", "How far results lie apart"), words("p", "", said)]
            .into_iter()
            .chain(drawn);
        parts.push(element("details", &[("open", "")], drawn));
    }
    section(&format!("What {who} would see"), parts)
}

/// The numbers of a part.
fn of_part(part: &SimulatedPart) -> Markup {
    let rows = part.numbers.iter().map(|one| {
        let unit = if one.unit.is_empty() { String::new() } else { format!(", {}", one.unit) };
        let name = element("bdi", &[], [text(format!("{}{unit}", one.label))]);
        let result = if one.spread.is_some() { one.released_words() } else { one.exact_words() };
        let cells = [result, one.interval_words(), one.exact_words(), one.spread_words()];
        [name].into_iter().chain(cells.iter().map(|cell| number(cell))).collect()
    });
    let columns = ["Number", "One would read", "Its interval", "Exact, without noise", "95 of 100 results"];
    let table = table(&format!("Made up: {}", part.title), &columns, rows);
    let refused = part.refused.as_ref().map(|why| {
        let share = part.refused_share.filter(|share| *share > 0.0).map(percent);
        let share = share.map_or_else(String::new, |share| format!(" So it is in {share} of such results."));
        words("p", "", format!("Of these rows nothing would be shown: {why}.{share}"))
    });
    Markup::all(refused.into_iter().chain([table]))
}

/// Where results of a number lie.
fn drawing(id: &str, part: &SimulatedPart, one: &SimulatedNumber) -> Option<Markup> {
    let bins = one.spread.as_ref()?.bins.as_ref()?;
    let most = bins.counts.iter().copied().max().filter(|most| *most > 0)?;
    let axis = Axis::over([bins.from, bins.to].into_iter().chain(one.exact), None);
    let width = (bins.to - bins.from) / bins.counts.len() as f64;
    let mut parts = Vec::new();
    for (at, held) in bins.counts.iter().enumerate().filter(|(_, held)| **held > 0) {
        let height = (*held * u64::from(HEIGHT - ABOVE) / most).max(1) as u32;
        let from = bins.from + at as f64 * width;
        parts.push(axis_bar(&axis, (from, from + width), (HEIGHT - height, height), "test"));
    }
    parts.extend(one.exact.map(|exact| vertical(&axis.x(exact), 0, HEIGHT, "noise-end")));
    let unit = if one.unit.is_empty() { String::new() } else { format!(", {}", one.unit) };
    let title = format!("{}{unit}", one.label);
    parts.extend(axis.draw(&[], HEIGHT, &title));
    let said = format!(
        "Made up ({}): exact {}; 95 of 100 results from {}.",
        part.title,
        one.exact_words(),
        one.spread_words()
    );
    let drawn = figure(id, &title, &said, HEIGHT + Axis::height(&title), parts);
    Some(element("figure", &[], [drawn, words("figcaption", "", said)]))
}
