//! Budgets, counted in studies.

use crate::budget::{DataBudget, HeldRho, ViewerBudget, budgets};
use crate::roles::{Action, Subject};
use crate::web::answer::Answer;
use crate::web::shell::{page, section, table, time};
use crate::web::visit::{Stop, Visit};
use page::markup::{Markup, element, text, words};
use page::numbers::counted;
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
    let all = budgets(settings, ledger.as_ref(), &held(visit, ledger.as_ref())?, sets)?;
    let intro = "What studies may still learn of our data, in numbers of studies. Rho measures it; it is \
                 never refilled. The privacy ledger has the last word and is charged before anything is \
                 revealed.";
    let sections = all.iter().map(|one| section(&one.data, of_data(one)));
    Ok(page(visit, "Budget", [words("p", "", intro)].into_iter().chain(sections)))
}

/// What studies that were consented to here may still take.
pub fn held(visit: &Visit<'_>, ledger: Option<&Ledger>) -> Result<Vec<Vec<HeldRho>>, Stop> {
    let of = |us| visit.house.bounds.held((&visit.house.store, visit.settings(), us), ledger);
    Ok(visit.us().map_or_else(|| Ok(Vec::new()), of)?)
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
    let held = viewer.held.as_ref().map(|(rho, studies)| {
        let studies = match studies {
            1 => "a study that was consented to and is".to_owned(),
            more => format!("{} that were consented to and are", counted(*more as u64, "study")),
        };
        format!(" Of that, up to {rho} is held for {studies} not over.")
    });
    let told = format!("Spent {spent} of {budget}; {left} are left.{}", held.unwrap_or_default());
    let track = bar(0.0, 100.0, 0, HEIGHT, "track");
    let mut parts = vec![track];
    let [from, until] = viewer.parts.map(|part| 100.0 * part);
    parts.extend((from > 0.0).then(|| bar(0.0, from, 0, HEIGHT, "spent")));
    parts.extend((until > from).then(|| bar(from, until, 0, HEIGHT, "this")));
    let drawn = figure(id, "Budget spent", &told, HEIGHT, parts);
    let caption = words("figcaption", "", &told);
    let drawn = element("figure", &[], [drawn, caption]);
    let [now, all] = viewer.guesses;
    let guess = format!(
        "Of one person: who knew the rows of everybody else, and had to guess which of two things our data \
         say of this one person, would be right at most {now} times of 100 after what is spent, and {all} \
         times when all of it is. A coin is right 50 times."
    );
    let public = viewer.public.as_ref().map(|public| {
        format!(
            "The {spent} has the {public} of public results in it, which everybody gets: shares of several \
             viewers are not to be added up."
        )
    });
    let words_of = [guess].into_iter().chain(public).map(|said| words("p", "note", said));
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
    let none = "How many studies that is hangs on what one costs: none was charged yet, and no rule says the \
                most (policy.max_rho).";
    let none = viewer.studies.is_empty().then(|| words("p", "note", none));
    [title].into_iter().chain(studies).chain(none).chain([drawn]).chain(words_of).chain([debits]).collect()
}
