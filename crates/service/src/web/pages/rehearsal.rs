//! A study tried on made-up rows, before anybody decides on it: what its report would have in it.

use super::propose;
use super::studies::seen;
use crate::reckoned::SaidSizes;
use crate::rehearsal::REHEARSED_ROWS;
use crate::roles::{Action, Subject};
use crate::told::{StudyTold, sentence};
use crate::web::answer::Answer;
use crate::web::rehearsing::{Rehearsal, RehearsedSizes, start};
use crate::web::shell::{page, section, table};
use crate::web::visit::{Stop, Visit};
use job::simulate::{SimulatedNumber, SimulatedPart, SimulatedRun, SimulatedView, Simulation};
use page::form::{FormField, FormMistake, button, form, mistakes_of};
use page::markup::{Markup, element, number, prose, text, words};
use page::numbers::{MISSING, count, percent};
use page::svg::{Axis, axis_bar, figure, vertical};
use report::wording::MeanScale;
use study::Question;

/// Rows of a side, where nobody says how many.
pub const ROWS: u64 = 10_000;
/// Numbers that are drawn.
const DRAWN: usize = 24;
/// The field of the mean outcome.
const MEAN: &str = "mean";
const MEAN_LABEL: &str = "Outcome of one person, about";
/// What means and differences of a lift study are among its numbers.
const ESTIMATE: &str = "estimate";
/// Height of a drawing's bars, in pixels.
const HEIGHT: u32 = 90;
/// Of it, what the line of the exact number goes beyond the highest bar.
const ABOVE: u32 = 10;

/// What is rehearsed: a draft or a proposal.
pub struct Rehearsed {
    /// Where its page is.
    pub path: String,
    /// Where it comes from.
    from: (String, &'static str),
    /// Its hash.
    pub study: String,
    title: String,
    /// Its one form.
    pub text: String,
    /// Its parties, by name.
    parties: Vec<String>,
    /// What was said of rows and outcomes with it.
    pub said: SaidSizes,
    /// Of a lift study: whether an outcome is yes or no.
    outcome: Option<OutcomeKind>,
}

/// What an outcome of a lift study is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutcomeKind {
    YesOrNo,
    Amount,
}

impl Rehearsed {
    /// Where the rows that stand in the form come from.
    fn whose(&self, usual: &RehearsedSizes) -> String {
        match self.said.rows {
            None => "As many as you expect.".to_owned(),
            Some(rows) if rows == usual.rows => "As was said with the study.".to_owned(),
            Some([first, others]) => {
                let (first, others) = (count(first), count(others));
                format!("In the proportion of the {first} and {others} that were said with the study.")
            }
        }
    }

    /// For what it is rehearsed, where nobody asks for something else: what was said with it, in the same
    /// proportion where that is more than is made up.
    pub fn sizes(&self) -> RehearsedSizes {
        let said = self.said.rows.unwrap_or([ROWS; 2]);
        let most = said[0].max(said[1]);
        let fitted = |rows: u64| {
            let rows = u128::from(rows) * u128::from(REHEARSED_ROWS) / u128::from(most.max(1));
            u64::try_from(rows).unwrap_or(REHEARSED_ROWS).max(1)
        };
        let rows = if most > REHEARSED_ROWS { said.map(fitted) } else { said };
        RehearsedSizes { rows, mean: self.said.mean.filter(|_| self.outcome.is_some()) }
    }

    /// That of a draft.
    pub fn of_draft(told: &StudyTold, said: SaidSizes, id: u64) -> Self {
        let from = (format!("/studies/new?draft={id}"), "The draft");
        Self::of(told, said, format!("/drafts/{id}/rehearsal"), from)
    }

    fn of(told: &StudyTold, said: SaidSizes, path: String, from: (String, &'static str)) -> Self {
        let outcome = match &told.file.first().kind {
            Question::Lift(lift) if lift.rule.clamp == 1 && lift.scale() == 1 => Some(OutcomeKind::YesOrNo),
            Question::Lift(_) => Some(OutcomeKind::Amount),
            _ => None,
        };
        Self {
            said,
            outcome,
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
    let mean = match visit.field(MEAN).trim() {
        "" => None,
        said => said.parse().ok().filter(|mean| is_mean(*mean)).or_else(|| {
            wrong.push(FormMistake::of(MEAN, MEAN_LABEL, "write a number above 0, such as 0.02."));
            None
        }),
    };
    if !wrong.is_empty() {
        return Ok(page(visit, &title(one), parts(visit, one, deed, &wrong)));
    }
    rehearse(visit, &one.study, &one.text, RehearsedSizes { rows, mean })?;
    Ok(Answer::go(&one.path))
}

/// Whether outcomes can be made up with such a mean.
pub fn is_mean(mean: f64) -> bool {
    mean.is_finite() && mean > 0.0
}

/// Whether so many rows are made up.
pub fn is_possible(rows: u64) -> bool {
    (1..=REHEARSED_ROWS).contains(&rows)
}

/// Begins one, unless it is under way, and writes down who asked.
pub fn rehearse(visit: &Visit<'_>, study: &str, text: &str, sizes: RehearsedSizes) -> Result<(), Stop> {
    let under_way = |one: &Rehearsal| one.came.is_none();
    if !start(visit.house, study, text, sizes)?
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
    let (path, said) = (study.path(), visit.house.store.sizes_said(&study.row.id)?);
    Ok(Rehearsed::of(&told, said, format!("{path}/rehearsal"), (path, "What was proposed")))
}

/// The draft of the path, where it is a study.
pub fn drafted(visit: &Visit<'_>) -> Result<Option<Rehearsed>, Stop> {
    let account = &visit.must(Action::Propose, Subject::House)?.session.account;
    let id = visit.part("id").parse().map_err(|_| Stop::Missing)?;
    let draft = visit.house.store.draft(account, id)?.ok_or(Stop::Missing)?;
    let Some(own) = visit.house.identity() else { return Ok(None) };
    let filled = propose::FilledForm::of(draft.fields);
    let told = propose::read(visit, &filled, own).ok();
    Ok(told.map(|told| Rehearsed::of_draft(&told, propose::sizes(&filled), id)))
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
        Some(Rehearsal { came: Some(Ok(found)), mean, .. }) => {
            (rows_words(one, found, *mean), shown(one, found))
        }
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
fn rows_words(one: &Rehearsed, found: &Simulation, mean: Option<f64>) -> Markup {
    let rows = |party: &job::simulate::SimulatedParty| format!("{} of {}", count(party.rows), party.name);
    let rows: Vec<String> = found.parties.iter().map(rows).collect();
    let shared: u64 = found.runs.iter().map(|run| run.shared).sum();
    let mean = mean.map_or_else(String::new, |mean| {
        let mean = page::numbers::plain(mean, 4);
        format!(" So many people have outcomes that these are {mean} of a control person, on average.")
    });
    let (rows, shared) = (rows.join(", "), count(shared));
    let first = found.parties.first().map_or(0, |party| party.rows);
    let fewer = one.said.rows.filter(|[said, _]| *said > first).map_or_else(String::new, |[said, _]| {
        let name = one.parties.first().map_or("", String::as_str);
        format!(
            " The study is said to have {} of {name}: with so many its result is more exact than here, as \
             the preview of the study says.",
            count(said)
        )
    });
    let said = format!("Made-up rows: {rows}; {shared} are of people whom all have.{mean}{fewer}");
    words("p", "", said)
}

fn again(
    visit: &Visit<'_>,
    one: &Rehearsed,
    deed: &'static str,
    before: Option<&Rehearsal>,
    wrong: &[FormMistake],
) -> Markup {
    let usual = one.sizes();
    let help = format!("1 to {}. {}", count(REHEARSED_ROWS), one.whose(&usual));
    let fields = [0, 1].map(|at| {
        let name = format!("rows-{at}");
        let sent = visit.field(&name);
        let stands = before.map_or(usual.rows, |one| one.rows)[at].to_string();
        let value = if sent.is_empty() { &stands } else { sent };
        let label = label(one, at);
        let field = FormField { name: &name, label: &label, kind: "text", fill: "off", value, help: &help };
        field.among(true, wrong)
    });
    let action = format!("{}/rehearse", one.path.trim_end_matches("/rehearsal"));
    let word = visit.word(deed, &crate::web::door::subject(&visit.parts, ""));
    let label = if before.is_some() { "Rehearse again" } else { "Rehearse" };
    let mean = before.map_or(usual.mean, |one| one.mean).map(|mean| mean.to_string()).unwrap_or_default();
    let value = if visit.field(MEAN).is_empty() { &mean } else { visit.field(MEAN) };
    let help = "Of those not treated, such as 0.02; empty: as it comes.";
    let mean = FormField { name: MEAN, label: MEAN_LABEL, kind: "text", fill: "off", value, help };
    let mean = one.outcome.map(|_| mean.among(false, wrong));
    let fields = fields.into_iter().chain(mean).chain([button(label, "")]);
    section("With how many rows", [form(&action, word.as_deref(), fields)])
}

/// What came of it, viewer by viewer.
fn shown(one: &Rehearsed, found: &Simulation) -> Vec<Markup> {
    let mut parts = Vec::new();
    for run in &found.runs {
        if found.runs.len() > 1 {
            parts.push(words("p", "", format!("The run of {}:", run.parties.join(" with "))));
        }
        parts.extend(run.notes.iter().map(|note| prose("p", "note", sentence(note))));
        parts.extend(run.views.iter().map(|view| of_view(one, run, view)));
    }
    parts
}

/// In what means of a lift study are shown: per so many people, as its report has them.
fn scale(one: &Rehearsed, view: &SimulatedView) -> Option<MeanScale> {
    let outcome = one.outcome?;
    let is_cell =
        |part: &&SimulatedPart| part.name.starts_with("breakdown ") || part.name.starts_with("cohort ");
    let estimates = |part: &SimulatedPart| part.numbers.iter().any(|number| number.what == ESTIMATE);
    let overall = view.parts.iter().find(|part| !is_cell(part) && estimates(part));
    let leading = overall.map_or_else(|| view.parts.iter().collect(), |part| vec![part]);
    let numbers = leading.iter().flat_map(|part| &part.numbers);
    let (mut size, mut width, mut has_unit) = (0.0f64, 0.0f64, false);
    for number in numbers.filter(|number| number.what == ESTIMATE) {
        has_unit |= !number.unit.is_empty();
        size = size.max(number.released.or(number.exact).unwrap_or_default().abs());
        if number.label.starts_with("difference, ") {
            let half = |[low, high]: &[Option<f64>; 2]| low.zip(*high).map(|(low, high)| 0.5 * (high - low));
            width = number.intervals.iter().filter_map(half).fold(width, f64::max);
        }
    }
    Some(MeanScale::of_sizes(size, width, outcome == OutcomeKind::YesOrNo && !has_unit))
}

/// A number in the unit of the report.
struct ShownNumber<'a> {
    number: &'a SimulatedNumber,
    /// Of means of a lift study.
    scale: Option<MeanScale>,
}

impl<'a> ShownNumber<'a> {
    fn new(number: &'a SimulatedNumber, scale: Option<MeanScale>) -> Self {
        Self { number, scale: scale.filter(|_| number.what == ESTIMATE) }
    }

    /// What it is, and its unit.
    fn title(&self) -> String {
        let unit = self.number.unit.as_str();
        let per = self.scale.map_or("", |scale| scale.per());
        let unit = [unit, per].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        if unit.is_empty() { self.number.label.clone() } else { format!("{}, {unit}", self.number.label) }
    }

    /// The result, its interval, the exact number, and where 95 of 100 results lie.
    fn cells(&self) -> [String; 4] {
        let one = self.number;
        let Some(scale) = self.scale else {
            let result = if one.spread.is_some() { one.released_words() } else { one.exact_words() };
            return [result, one.interval_words(), one.exact_words(), one.spread_words()];
        };
        let show = |value: Option<f64>| value.map_or_else(|| MISSING.to_owned(), |value| scale.show(value));
        let between = |low, high| format!("{} to {}", show(low), show(high));
        let result = if one.spread.is_some() { one.released } else { one.exact };
        let intervals = one.intervals.iter().map(|[low, high]| between(*low, *high));
        let spread = one.spread.as_ref().map_or_else(String::new, |of| between(of.low, of.high));
        [show(result), intervals.collect::<Vec<_>>().join(" or "), show(one.exact), spread]
    }

    /// A value as a figure has it.
    fn drawn(&self, value: f64) -> f64 {
        self.scale.map_or(value, |scale| scale.value(value))
    }
}

fn of_view(one: &Rehearsed, run: &SimulatedRun, view: &SimulatedView) -> Markup {
    let scale = scale(one, view);
    let who = if view.viewer == privacy::ledger::PUBLIC { "everybody" } else { &view.viewer };
    let told = view.parts.iter().filter(|part| !part.numbers.is_empty());
    let mut parts: Vec<Markup> = told.map(|part| of_part(part, scale)).collect();
    parts.extend(view.lists.iter().map(|list| {
        let rows = count(list.keys.len() as u64 + list.others);
        words("p", "", format!("{}: a list of {rows} rows.", list.label))
    }));
    let numbers = view.parts.iter().flat_map(|part| part.numbers.iter().map(move |number| (part, number)));
    let place = format!("{}-{who}", run.parties.join("-"));
    let drawn = numbers.enumerate().filter_map(|(at, (part, number))| {
        drawing(&format!("{place}-{at}"), part, &ShownNumber::new(number, scale))
    });
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
fn of_part(part: &SimulatedPart, scale: Option<MeanScale>) -> Markup {
    let rows = part.numbers.iter().map(|one| {
        let one = ShownNumber::new(one, scale);
        let name = element("bdi", &[], [text(one.title())]);
        [name].into_iter().chain(one.cells().iter().map(|cell| number(cell))).collect()
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
fn drawing(id: &str, part: &SimulatedPart, one: &ShownNumber<'_>) -> Option<Markup> {
    let bins = one.number.spread.as_ref()?.bins.as_ref()?;
    let most = bins.counts.iter().copied().max().filter(|most| *most > 0)?;
    let (ends, exact) =
        ([bins.from, bins.to].map(|end| one.drawn(end)), one.number.exact.map(|exact| one.drawn(exact)));
    let axis = Axis::over(ends.into_iter().chain(exact), None);
    let width = (ends[1] - ends[0]) / bins.counts.len() as f64;
    let mut parts = Vec::new();
    for (at, held) in bins.counts.iter().enumerate().filter(|(_, held)| **held > 0) {
        let height = (*held * u64::from(HEIGHT - ABOVE) / most).max(1) as u32;
        let from = ends[0] + at as f64 * width;
        parts.push(axis_bar(&axis, (from, from + width), (HEIGHT - height, height), "test"));
    }
    parts.extend(exact.map(|exact| vertical(&axis.x(exact), 0, HEIGHT, "noise-end")));
    let title = one.title();
    parts.extend(axis.draw(&[], HEIGHT, &title));
    let [_, _, exact, spread] = one.cells();
    let said = format!("Made up ({}): exact {exact}; 95 of 100 results from {spread}.", part.title);
    let drawn = figure(id, &title, &said, HEIGHT + Axis::height(&title), parts);
    Some(element("figure", &[], [drawn, words("figcaption", "", said)]))
}
