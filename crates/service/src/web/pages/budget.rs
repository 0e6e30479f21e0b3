//! Budgets, counted in studies.

use crate::budget::{DataBudget, ViewerBudget, budgets};
use crate::roles::{Action, Subject};
use crate::web::answer::Answer;
use crate::web::shell::{page, section, table, time};
use crate::web::visit::{Stop, Visit};
use page::markup::{Markup, element, text, words};
use page::svg::{bar, figure};
use privacy::ledger::Ledger;

/// Height of a bar, in pixels.
const HEIGHT: u32 = 22;
/// Debits of one viewer that are shown.
const DEBITS: usize = 50;

/// The page.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let settings = visit.settings();
    let mut sets = settings.data.iter().filter(|(name, _)| visit.may(Action::SeeBudget, Subject::Data(name)));
    let mut sets = sets.by_ref().peekable();
    if sets.peek().is_none() {
        return Err(Stop::Denied);
    }
    // Looking at a ledger must not make one.
    let ledger = settings.ledger.exists().then(|| Ledger::look(&settings.ledger)).transpose()?;
    let all = budgets(settings, ledger.as_ref(), sets)?;
    let intro = "What studies may still learn of our data. Rho measures it; it is never refilled. The \
                 privacy ledger has the last word and is charged before anything is revealed.";
    let sections = all.iter().map(|one| section(&one.data, of_data(one)));
    Ok(page(visit, "Budget", [words("p", "", intro)].into_iter().chain(sections)))
}

fn of_data(one: &DataBudget) -> Vec<Markup> {
    let mut parts = Vec::new();
    if one.viewers.is_empty() {
        parts.push(words("p", "", "Nobody has seen anything of it, and no organisation may."));
    }
    for (at, viewer) in one.viewers.iter().enumerate() {
        parts.extend(towards(&format!("{}-{at}", one.data), viewer));
    }
    parts.push(words(
        "p",
        "note",
        format!(
            "All viewers together have had {} of lineage {}; what several of them saw is counted once.",
            one.together, one.lineage
        ),
    ));
    parts
}

fn towards(id: &str, viewer: &ViewerBudget) -> Vec<Markup> {
    let [budget, spent, left] = &viewer.rho;
    let title = element("h3", &[], [text("Towards "), element("bdi", &[], [text(&viewer.viewer)])]);
    let studies = viewer.studies.iter().map(|one| {
        element(
            "p",
            &[("class", "lead")],
            [words("b", "", &one.count), text(format!(" more studies {}.", one.of))],
        )
    });
    let told = format!("Spent {spent} of {budget}; {left} are left.");
    let track = bar(0.0, 100.0, 0, HEIGHT, "track");
    let mut parts = vec![track];
    if viewer.part > 0.0 {
        parts.push(bar(0.0, 100.0 * viewer.part, 0, HEIGHT, "spent"));
    }
    let drawn = figure(id, "Budget spent", &told, HEIGHT, parts);
    let caption = words("figcaption", "", &told);
    let drawn = element("figure", &[], [drawn, caption]);
    let rows = viewer.debits.iter().take(DEBITS).map(|entry| {
        let study =
            if entry.is_recovered() { "(recovered)" } else { entry.study.get(..12).unwrap_or(&entry.study) };
        vec![time(entry.at), text(study), text(&entry.rho), text(&entry.delta)]
    });
    let columns = ["When", "Study", "Rho", "Delta"];
    let debits = match viewer.debits.is_empty() {
        true => words("p", "note", "Nothing was charged yet."),
        false => table(&format!("What was charged towards {}", viewer.viewer), &columns, rows),
    };
    [title].into_iter().chain(studies).chain([drawn, debits]).collect()
}
