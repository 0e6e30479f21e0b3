//! The report of a study: who reads it is written down.

use super::course::password;
use super::decide::with_proof;
use super::studies::{StudySeen, acted_on, seen};
use crate::roles::{Action, HouseRole, StudySubject, Subject};
use crate::store::{Account, AccountState};
use crate::web::answer::Answer;
use crate::web::drawing::DrawingFull;
use crate::web::shell::{page, section, table};
use crate::web::visit::{Stop, Visit};
use page::form::{button, choice, hidden};
use page::markup::{Markup, element, text, words};
use report::html::PageStands;
use report::{NumberTable, PublicReport, ReportFigure, RunReport};

const EXCEL: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

/// A report as somebody may read it.
struct ReadReport {
    study: StudySeen,
    /// The short name of the study.
    name: String,
    /// All of it and its text; none: who reads it was given a public result, and the rest, as rows that were
    /// read and what is spent of budgets, is for who answers for the study.
    whole: Option<(RunReport, String)>,
    /// What of it is public.
    public: Option<PublicReport>,
    /// The day on which it came.
    day: String,
}

impl ReadReport {
    fn of(visit: &Visit<'_>) -> Result<Self, Stop> {
        let study = seen(visit)?;
        visit.must(Action::ReadReport, study.subject())?;
        let file = visit.house.store.report_file(&study.row.id, "report.json")?.ok_or(Stop::Missing)?;
        let text = String::from_utf8_lossy(&file.content).into_owned();
        let report = report::from_json(&text)?;
        let public = PublicReport::of(&report).ok();
        // Where one side sees more than everybody does, that is what was given.
        let unasked = Subject::Study(StudySubject { given: false, ..study.as_subject() });
        let is_whole = visit.may(Action::ReadReport, unasked) || !report.is_public();
        let day = study::time::date((file.at_ms / 1_000).cast_signed());
        let name = report.study.name.clone();
        let whole = (is_whole || public.is_none()).then_some((report, text));
        Ok(Self { study, name, whole, public, day })
    }

    /// What stands on its page, and the figures of it.
    fn drawn(&self) -> Result<(Vec<Markup>, Vec<ReportFigure>), Stop> {
        Ok(match (&self.whole, &self.public) {
            (Some((report, _)), _) => {
                let sections = report::html::sections(report, PageStands::Served);
                let figures = ReportFigure::on_page(report, Some(&self.day), &sections)?;
                (sections, figures)
            }
            (None, Some(public)) => (report::html::public_sections(public), ReportFigure::of_public(public)?),
            (None, None) => (Vec::new(), Vec::new()),
        })
    }
}

/// The page.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let read = ReadReport::of(visit)?;
    visit.house.store.record(&visit.act("report read", visit.part("hash"))?)?;
    let study = &read.study;
    let path = study.path();
    let back = element("a", &[("href", &path)], [text("What was agreed")]);
    let back = element("p", &[("class", "note")], [text(format!("With {}. ", study.others())), back]);
    let mut parts = vec![whose(visit, &read), back];
    let (sections, figures) = read.drawn()?;
    parts.extend(sections);
    parts.push(section("Take it along", files(&read, figures)));
    parts.extend(given(visit, study)?);
    Ok(page(visit, study.record.title(), parts))
}

/// Whether there is a number that both sides have alike, and what of the report this is.
fn whose(visit: &Visit<'_>, read: &ReadReport) -> Markup {
    let said = match (&read.public, &read.whole) {
        (Some(_), Some((report, _))) if !report.is_public() => {
            "What is called public here all parties have alike, and may pass on; the rest is what your side \
             sees."
        }
        (Some(_), Some(_)) => {
            "The result of this study is public: all its parties have the same number, and may pass it on."
        }
        (Some(_), None) => {
            "This is the public result of the study: all its parties have the same number, and may pass it \
             on. What is this organisation's own, as rows that were read and what is spent of budgets, is \
             read by those who answer for the study."
        }
        (None, _) => "This is what your side sees. It is not to be passed on: see what each box says.",
    };
    let who = format!(
        "Shown to {} at {}.",
        visit.signed.as_ref().map_or("", |s| &s.session.account),
        visit.settings().name
    );
    element("p", &[("class", "note")], [text(format!("{said} {who}"))])
}

/// Of a report, what the whole can be taken along as.
const WHOLE: [(&str, &str); 4] = [
    ("report.html", "The page by itself"),
    ("report.json", "Everything, for programs"),
    ("numbers.csv", "The numbers, comma-separated"),
    ("numbers.xlsx", "The numbers, for Excel"),
];
/// And what is public.
const PUBLIC: [(&str, &str); 3] = [
    ("public.html", "The public result by itself, to pass on"),
    ("public.json", "The same, for programs"),
    ("public.csv", "Its numbers, comma-separated"),
];

/// What it can be taken along as.
fn files(read: &ReadReport, figures: Vec<ReportFigure>) -> Vec<Markup> {
    let study = &read.study;
    let whole = read.whole.iter().flat_map(|_| WHOLE);
    let all = whole.chain(read.public.iter().flat_map(|_| PUBLIC));
    let link = |name: &str| {
        let path = format!("{}/report/{name}", study.path());
        element("a", &[("href", &path), ("download", "")], [text(name)])
    };
    let files = all.map(|(name, what)| element("li", &[], [link(name), text(format!(": {what}"))]));
    let files = element("ul", &[], files);
    if figures.is_empty() {
        return vec![files];
    }
    // What is seen on a picture is said beside it, for those who do not see it.
    let rows = figures.into_iter().map(|figure| {
        let png = figure.fits_picture().then(|| link(&format!("{}.png", figure.name)));
        let both = png.into_iter().chain([text(" "), link(&format!("{}.svg", figure.name))]);
        vec![text(figure.title), Markup::all(both), text(figure.about)]
    });
    let about = "The figures, as pictures (PNG) and as drawings that can be enlarged (SVG)";
    let figures = table(about, &["Figure", "Files", "What is seen on it"], rows.collect::<Vec<_>>());
    vec![files, figures]
}

/// A file of it.
pub fn file(visit: &Visit<'_>) -> Result<Answer, Stop> {
    take_along(visit, visit.part("file"))
}

/// A file of it by its name, which is written down.
pub fn take_along(visit: &Visit<'_>, name: &str) -> Result<Answer, Stop> {
    let read = ReadReport::of(visit)?;
    let html = "text/html; charset=utf-8";
    let csv = "text/csv; charset=utf-8";
    let (kind, content) = match (name, &read.whole, &read.public) {
        ("report.json", Some((_, json)), _) => ("application/json", json.clone().into_bytes()),
        ("report.html", Some((report, _)), _) => (html, report::html::render(report).into_bytes()),
        ("numbers.csv", Some((report, _)), _) => (csv, NumberTable::of(report).csv().into_bytes()),
        ("numbers.xlsx", Some((report, _)), _) => (EXCEL, NumberTable::of(report).excel()?),
        ("public.html", _, Some(public)) => (html, report::html::render_public(public).into_bytes()),
        ("public.json", _, Some(public)) => {
            ("application/json", report::public_to_json(public)?.into_bytes())
        }
        ("public.csv", _, Some(public)) => (csv, NumberTable::of_public(public).csv().into_bytes()),
        (figure, ..) => {
            let (name, form) = figure.rsplit_once('.').ok_or(Stop::Missing)?;
            let (_, figures) = read.drawn()?;
            let figure = figures.into_iter().find(|figure| figure.name == name);
            let figure = figure.ok_or(Stop::Missing)?;
            match form {
                "svg" => ("image/svg+xml", figure.svg.into_bytes()),
                "png" if figure.fits_picture() => {
                    let account = &visit.signed()?.session.account;
                    let _place = visit.house.drawing.take(account).map_err(|DrawingFull| Stop::Drawing)?;
                    ("image/png", figure.png()?)
                }
                _ => return Err(Stop::Missing),
            }
        }
    };
    let taken = format!("report taken along as {name}");
    visit.house.store.record(&visit.act(&taken, visit.part("hash"))?)?;
    let hash = read.study.row.study.full();
    Ok(Answer::file(kind, &format!("{}-{}-{name}", read.name, &hash[..12]), content))
}

/// Who else reads it, and giving it to somebody.
fn given(visit: &Visit<'_>, study: &StudySeen) -> Result<Option<Markup>, Stop> {
    if !visit.may(Action::GiveReport, study.subject()) {
        return Ok(None);
    }
    let store = &visit.house.store;
    let readers = store.given_to(&study.row.id)?;
    let rows = readers.iter().map(|name| {
        let parts = [hidden("reader", name), button("Take it back", &format!("from {name}"))];
        vec![text(name), study.form(visit, "report/take", "take report back", parts)]
    });
    let list = match readers.is_empty() {
        true => words("p", "", "Nobody but those who answer for the study."),
        false => table("Viewers who read it", &["Viewer", "Take it back"], rows.collect::<Vec<_>>()),
    };
    let reads = |account: &Account| account.grants.iter().any(|grant| grant.role == HouseRole::Viewer);
    let others =
        store.accounts(visit.now)?.into_iter().filter(|account| account.state != AccountState::Ended);
    let others = others.filter(|account| reads(account) && !readers.contains(&account.name));
    let others: Vec<_> = others.map(|account| (account.name.clone(), account.name)).collect();
    let parts = [choice("reader", "Viewer", &others, "")].into_iter().chain(password(visit, "password"));
    let tells = "Of a result that is public they read that alone; else the whole report, with rows that were \
                 read and what is spent of budgets.";
    let parts = parts.chain([words("p", "note", tells), button("Let them read it", "")]);
    let give = study.form(visit, "report/give", "give report", parts);
    let give = (!others.is_empty()).then_some(give);
    Ok(Some(section("Given to", [list].into_iter().chain(give))))
}

/// Lets an account read the report.
pub fn give(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let study = acted_on(visit)?;
    visit.must(Action::GiveReport, study.subject())?;
    let reader = visit.field("reader");
    if visit.house.store.account(reader, visit.now)?.is_none() {
        return Err(Stop::Missing);
    }
    with_proof(visit, "password", || {
        let what = format!("report given: {}", study.row.study.full());
        visit.house.store.give_report(&visit.act(&what, reader)?, &study.row.id)?;
        Ok(Answer::go(&format!("{}/report", study.path())))
    })
}

/// Takes it back: what was read or taken along stays read.
pub fn take(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let study = acted_on(visit)?;
    visit.must(Action::GiveReport, study.subject())?;
    let what = format!("report taken back: {}", study.row.study.full());
    visit.house.store.take_report(&visit.act(&what, visit.field("reader"))?, &study.row.id)?;
    Ok(Answer::go(&format!("{}/report", study.path())))
}
