//! The fields of the form for a study, in the order of the questions that people have.

use super::FilledForm;
use crate::lift_form::{
    ALIKE, AMOUNT, CONFIDENCE, COUNTS, DUPLICATES, EVENT, IDENTIFIERS, LAYOUTS, MODES, PARTS, RHO,
};
use crate::program_form::{ASKED, CELLS, COLUMNS, GROUPED, GROUPS, QUESTIONS};
use crate::roles::{Action, Subject};
use crate::web::visit::Visit;
use page::form::{FormField, choice, folded, hidden, lines_field, tick};
use page::markup::{Markup, element, text, words};

fn group(title: &str, parts: impl IntoIterator<Item = Markup>) -> Markup {
    element("fieldset", &[], [words("legend", "", title)].into_iter().chain(parts))
}

/// A field of one line with what is in it.
fn line(filled: &FilledForm, name: &str, label: &str, help: &str) -> Markup {
    field(filled, name, label, help).among(true, &filled.wrong)
}

/// The same, where it may stay empty.
fn perhaps(filled: &FilledForm, name: &str, label: &str, help: &str) -> Markup {
    field(filled, name, label, help).among(false, &filled.wrong)
}

fn field<'a>(filled: &'a FilledForm, name: &'a str, label: &'a str, help: &'a str) -> FormField<'a> {
    FormField { name, label, kind: "text", fill: "off", value: filled.get(name), help }
}

fn day(filled: &FilledForm, name: &str, label: &str, help: &str, needed: bool) -> Markup {
    FormField { kind: "date", ..field(filled, name, label, help) }.among(needed, &filled.wrong)
}

fn among(filled: &FilledForm, name: &str, label: &str, all: &[(&str, &str)]) -> Markup {
    let all: Vec<_> = all.iter().map(|(value, shown)| ((*value).to_owned(), (*shown).to_owned())).collect();
    choice(name, label, &all, filled.get(name))
}

/// A study file as it is.
pub fn of_file(filled: &FilledForm) -> Vec<Markup> {
    let help =
        "As docs/studies says: a lift, a program or a match. Keys are those that `tacit keygen` printed.";
    let area = lines_field("text", "Study file", (filled.get("text"), 24), help);
    // Needs the script: without it a browser would send the name of a file and not what is in it.
    let label = element("label", &[("for", "file")], [text("Or take it from a file")]);
    let input = [("id", "file"), ("type", "file"), ("accept", ".toml,text/plain"), ("data-into", "text")];
    let upload = [("class", "field"), ("hidden", ""), ("data-script", "")];
    let upload = element("div", &upload, [label, element("input", &input, [])]);
    vec![hidden("as", "file"), group("The study", [area, upload])]
}

/// What every form begins with.
fn named(visit: &Visit<'_>, filled: &FilledForm) -> [Markup; 3] {
    let peers = visit.settings().peers.keys();
    let peers: Vec<_> = peers.map(|name| (name.clone(), name.clone())).collect();
    let help = "What people read first: on lists, on the consent page, on the report.";
    [
        line(filled, "title", "Title", help),
        line(filled, "name", "Name", "Of a-z, 0-9 and hyphens: polio-1954."),
        choice("peer", "With", &peers, filled.get("peer")),
    ]
}

/// Columns of this organisation, for who sees them.
fn ours(visit: &Visit<'_>) -> Option<Markup> {
    let ours = columns(visit);
    (!ours.is_empty()).then(|| {
        let said = format!("Columns of this organisation that studies may read: {}.", ours.join(", "));
        element("p", &[("class", "note")], [element("bdi", &[], [text(said)])])
    })
}

/// A program of questions about columns.
pub fn of_program(visit: &Visit<'_>, filled: &FilledForm) -> Vec<Markup> {
    let said = "What the study asks is answered of people whom both have. Programs of another shape are \
                study files: docs/questions.md and docs/program.md say what they can ask.";
    let first = [words("p", "note", said)].into_iter().chain(ours(visit));
    let mut parts = vec![hidden("as", "program"), group("Who", named(visit, filled))];
    parts.push(group("Which rows belong together", first.chain([matched(filled)])));
    // The first ones are always there; the others where somebody needs them.
    parts.extend((1..=COLUMNS).map(|place| {
        let open = place <= 2 || !filled.get(&format!("col-{place}")).is_empty();
        numbered(&format!("Column {place}"), open, column(filled, place))
    }));
    let by = "A column from above: of labels, of yes and no, or of numbers with edges; empty: everybody.";
    let edges = "Of a column of numbers, the least first: 18 40 65 90.";
    let mut groups = Vec::new();
    for (at, (name, edges_name, label)) in GROUPS.into_iter().enumerate() {
        let both = [perhaps(filled, name, label, if at == 0 { by } else { "" })];
        let both = both.into_iter().chain([perhaps(filled, edges_name, &format!("{label}, edges"), edges)]);
        if at == 0 { groups.extend(both) } else { groups.push(folded("Groups by two columns", both)) }
    }
    parts.push(group("In which groups", groups));
    parts.extend((1..=QUESTIONS).map(|place| {
        let asked = filled.get(&format!("ask-{place}"));
        let open = place == 1 || !["", "none"].contains(&asked);
        numbered(&format!("Question {place}"), open, question(filled, place))
    }));
    let rho = "What the result may tell about people: more of it, less noise. It is taken from both budgets.";
    let within = "As exact as this, with 95 of 100: that takes its own part of rho. Empty: a share alike.";
    parts.push(group(
        "What is shown",
        [
            tick("count", "Also how many people there are, in each group", filled.get("count") == "yes"),
            perhaps(filled, "count-within", "People, give or take", within),
            perhaps(filled, "rho", RHO, rho),
        ],
    ));
    parts
}

/// One of several alike: there, or beneath a line that opens it.
fn numbered(title: &str, open: bool, parts: Vec<Markup>) -> Markup {
    let parts = [element("div", &[("class", "grid")], parts)];
    if open { group(title, parts) } else { folded(&format!("{title}, if needed"), parts) }
}

/// The fields of a column.
fn column(filled: &FilledForm, place: usize) -> Vec<Markup> {
    let field =
        |what: &str, label: &str, help: &str| perhaps(filled, &format!("{what}-{place}"), label, help);
    let chosen =
        |what: &str, label: &str, all: &[(&str, &str)]| among(filled, &format!("{what}-{place}"), label, all);
    vec![
        field("col", "Name in the file", ""),
        chosen("whose", "In the file of", &[("us", "this organisation"), ("them", "the other one")]),
        chosen("is", "Its cells are", &CELLS),
        field("values", "Labels", "Of a column of labels, with commas between; the first is compared with."),
        field("low", "Numbers from", "What lies beyond counts as the end next to it."),
        field("high", "Numbers to", "A tighter range takes less noise."),
        field("unit", "Unit", "EUR, days; may stay empty."),
    ]
}

/// The fields of a question.
fn question(filled: &FilledForm, place: usize) -> Vec<Markup> {
    let name = |what: &str| format!("{what}-{place}");
    let field = |what: &str, label: &str, help: &str| perhaps(filled, &name(what), label, help);
    let asked: Vec<_> = ASKED.iter().map(|asked| (asked.name, asked.shown)).collect();
    let edges = "Of a histogram or quantiles: 0 50 100 200. Empty: parts alike between the column's ends.";
    let within = "Of a sum or a histogram: as exact as this, with 95 of 100. Empty: a share of rho alike.";
    let rare = [
        among(filled, &name("groups"), "Asked of", &GROUPED),
        field("edges", "Edges", edges),
        field("within", "Give or take", within),
    ];
    vec![
        among(filled, &name("ask"), "Asked is", &asked),
        field("of", "Of the column", "Its name in the file, as above."),
        field("with", "Other columns", "Of a covariance, a correlation or least squares: with commas."),
        folded("More about this question", rare),
    ]
}

/// A lift study.
pub fn of_lift(visit: &Visit<'_>, filled: &FilledForm) -> Vec<Markup> {
    let roles =
        [("publisher", "who was treated, and when"), ("advertiser", "what happened to people afterwards")];
    let role = among(filled, "role", "This organisation knows", &roles);
    let who = named(visit, filled).into_iter().chain([role]);
    let matched = [matched(filled)];
    vec![
        hidden("as", "lift"),
        group("Who", who),
        group("Which rows belong together", ours(visit).into_iter().chain(matched)),
        treated(filled),
        happened(filled),
        released(filled),
    ]
}

/// The columns by which rows belong together.
fn matched(filled: &FilledForm) -> Markup {
    let ways = ALIKE.map(|(name, shown, _)| (name, shown));
    let same = "A column that both have under this name; neither sees which rows the other one has.";
    let more = "Where the first one finds nobody; noise grows with each.";
    let mut rare = Vec::new();
    let mut first = Vec::new();
    for (place, (name, label, alike, alike_label)) in IDENTIFIERS.into_iter().enumerate() {
        if place == 0 {
            first.extend([line(filled, name, label, same), among(filled, alike, alike_label, &ways)]);
        } else {
            rare.extend([perhaps(filled, name, label, more), among(filled, alike, alike_label, &ways)]);
        }
    }
    rare.push(among(filled, "duplicates", "Two lines of one identifier", &DUPLICATES));
    Markup::all(first.into_iter().chain([folded("More about identifiers", rare)]))
}

/// Names of columns in which people are parted, with their values.
fn parted(filled: &FilledForm, name: &str, values: &str, label: &str) -> [Markup; 2] {
    let help = "Column; empty: everybody together. Each group has its own numbers, and a share of rho.";
    let among = "With commas between: north, south. They are public.";
    [perhaps(filled, name, label, help), perhaps(filled, values, &format!("{label}: values"), among)]
}

fn treated(filled: &FilledForm) -> Markup {
    let clocks = [("day", "days"), ("hour", "hours"), ("minute", "minutes"), ("second", "seconds")];
    let range = "All times of both files lie within these days. Narrower is faster.";
    let main = [
        line(filled, "arm", "Column of the arm", ""),
        line(filled, "test", "Treated are", "What the column says of who was treated: vaccine."),
        line(filled, "control", "Compared with", "What it says of the others: placebo."),
        line(
            filled,
            "opportunity",
            "Column of the day of treatment",
            "In both arms: when it was given, or would have been.",
        ),
        day(filled, "from", "First day", range, true),
        day(filled, "until", "Last day", "", true),
        among(filled, "clock", "Times are told apart by", &clocks),
    ];
    let mut rare = vec![
        perhaps(filled, "leave-out", "Other arms, left out", "What the column says of them, with commas."),
        perhaps(filled, "impressions", "Column of how often", "Of people who were reached: 0, 1, 2."),
    ];
    rare.extend(parted(filled, "breakdown", "breakdown-values", "Groups of the treated"));
    group("Treatment", main.into_iter().chain([folded("More about treatment", rare)]))
}

fn happened(filled: &FilledForm) -> Markup {
    let better = [("higher", "more is better"), ("lower", "less is better: illness, returns")];
    let clamp = "Whoever has more counts as this much. Less of it: less noise.";
    let main = [
        line(filled, "event", EVENT, "An outcome counts when it comes after the treatment."),
        line(filled, "clamp", "One person counts at most", clamp),
        among(filled, "better", "In the report", &better),
    ];
    let several = "Several columns are named with commas between, and as many columns of amounts.";
    let rare = [
        among(filled, "layout", "Outcomes stand", &LAYOUTS),
        words("p", "note", several),
        perhaps(filled, "where", "Only lines whose column", "Empty: all lines are outcomes."),
        perhaps(filled, "equals", "says", ""),
        perhaps(filled, "amount", AMOUNT, "Empty: outcomes are counted."),
        among(filled, "parts", "Amounts are", &PARTS),
        perhaps(filled, "currency", "Unit of the amount", "EUR, days."),
        line(filled, "events", "Outcomes of one person, at most", "The earliest are kept."),
        perhaps(
            filled,
            "within",
            "Within",
            "So many days (or what times are told apart by) after the treatment; empty: at any time.",
        ),
    ];
    let rare =
        rare.into_iter().chain(parted(filled, "cohort", "cohort-values", "Groups of those with outcomes"));
    let rare = folded("More about outcomes", rare);
    group("Outcome", main.into_iter().chain([rare]))
}

fn released(filled: &FilledForm) -> Markup {
    let rho = "What the result may tell about people: more of it, less noise. It is taken from both budgets.";
    let own = "Beside the public result, or instead of it; not to be passed on.";
    let least = "Of smaller groups nothing is shown.";
    let counts = COUNTS.map(|(name, shown)| {
        let name = format!("also-{name}");
        tick(&name, &format!("Also count {shown}"), filled.get(&name) == "yes")
    });
    let rare = [
        among(filled, "mode", "Shown is", &MODES),
        among(filled, "confidence", "Of intervals", &CONFIDENCE),
        perhaps(filled, "rho-them", "Rho of what they alone see", own),
        perhaps(filled, "rho-us", "Rho of what you alone see", own),
        line(filled, "least", "Smallest group that is shown", least),
        perhaps(
            filled,
            "rows-us",
            "Your rows, about",
            "For the smallest effect and the time in the preview; not part of the study.",
        ),
        perhaps(filled, "rows-them", "Their rows, about", ""),
        perhaps(
            filled,
            "mean",
            "Outcome of one person, about",
            "Of those not treated, on average, such as 0.02: with the rows, the preview compares other rho, \
             clamps and modes.",
        ),
    ];
    let rare = folded("More about privacy", rare.into_iter().chain(counts));
    group("Privacy", [perhaps(filled, "rho", RHO, rho), rare])
}

/// What is asked for besides the study.
pub fn besides(filled: &FilledForm) -> Markup {
    let note = lines_field(
        "note",
        "Note to the others",
        (filled.get("note"), 4),
        "Why you ask: at most 2,000 characters.",
    );
    let days = line(filled, "days", "Days to decide", "After them the proposal is over: 1 to 90.");
    let rare = [
        day(filled, "run-from", "Runs from", "Empty: at any time.", false),
        day(filled, "run-until", "Runs until", "", false),
    ];
    let rare = folded("When it should run", rare);
    group("The proposal", [note, days, rare])
}

/// Columns that studies may read, of data sets whose columns this person sees.
fn columns(visit: &Visit<'_>) -> Vec<String> {
    let sets = visit.settings().data.iter();
    let seen = sets.filter(|(name, _)| visit.may(Action::SeeColumns, Subject::Data(name)));
    let mut all: Vec<String> = seen.flat_map(|(_, set)| set.columns.iter().cloned()).collect();
    all.sort_unstable();
    all.dedup();
    all
}
