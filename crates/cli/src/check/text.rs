//! What `tacit check` prints for people: whether this side is ready, what the study could see and what would
//! be left of the budget; then what is shown to whom, and what it costs. What the numbers rest on comes last.

use crate::plan;
use job::budget::{Outlook, Towards};
use job::check::{CheckReport, placeholders};
use job::prepare::Built;
use page::lines::{Fact, wrapped};
use program::Viewer;
use report::wording;
use studies::lift::{LiftCell, LiftLayout, LiftParameters, OutputMeaning};
use study::transport::protects;
use study::{NoiseFrom, Question, Study, StudyFile};

/// What the ledger says of this study, by viewer.
fn budget_facts(budget: &Outlook) -> Vec<Fact> {
    let fact = |text: String| Fact::new("budget", text);
    let Some(lineage) = &budget.lineage else {
        return vec![Fact::new("budget", "nothing is charged to this party's data")];
    };
    let mut facts: Vec<Fact> = budget.towards.iter().map(|towards| fact(spent(towards))).collect();
    facts.extend(budget.towards.iter().filter_map(|towards| {
        let period = towards.period.as_ref()?;
        let viewer = &towards.viewer;
        Some(fact(format!("{period} spent towards {viewer}; nothing of the budget comes back after it")))
    }));
    let spent = &budget.spent_by_all;
    facts.push(fact(match &budget.total {
        Some(total) => format!("{spent} of {total} spent by all viewers of lineage {lineage}"),
        None => format!(
            "{spent} spent by all viewers of lineage {lineage}; no bound beside each viewer's (policy.total)"
        ),
    }));
    if budget.ledger_is_new {
        facts.push(fact("the ledger is not there yet: the first run makes it".to_owned()));
    }
    facts.extend(budget.notes.iter().map(|note| Fact::new("warning", note)));
    facts
}

/// What one viewer has spent, and what this study takes.
fn spent(towards: &Towards) -> String {
    let Towards { viewer, spent, budget, takes, left, sizes, published, runs, charged, .. } = towards;
    let mut text = format!("{spent} of {budget} spent towards {viewer}; this study takes up to {takes}");
    if *runs > 1 {
        text += &format!(" in {runs} runs");
    }
    if published != "0" {
        text += &format!(", {published} of it for public results of runs with others");
    }
    if charged != "0" {
        text += &format!(
            "; {charged} of it was charged before and is not taken again while the data of both sides are \
             the same"
        );
        if sizes != "0" {
            text += &format!(" (but for {sizes} for sizes of a match, from the third match on)");
        }
    }
    text + &left.as_ref().map_or_else(String::new, |left| format!("; {left} is left afterwards"))
}

/// What a check found, in lines of so many columns. `guessed` says that the other side's rows are a guess,
/// `serves` that this side is a server.
pub(super) fn text_of(
    checked: &CheckReport,
    (agreed, built): (&StudyFile, &[Built]),
    file: &str,
    (serves, guessed): (bool, bool),
    columns: usize,
) -> String {
    let study = agreed.first();
    let wrap = |facts: Vec<Fact>| facts.iter().flat_map(|fact| fact.lines(columns)).collect::<Vec<_>>();
    let mut lines = wrapped(&next(checked, agreed, file, (serves, guessed)), columns, "", "  ");
    lines.push(String::new());
    lines.extend(wrap(before(checked, agreed)));
    if let Some(inputs) = &checked.inputs {
        lines.push("data       read and valid:".to_owned());
        lines.extend(wording::input_lines(inputs, columns));
    }
    lines.push(String::new());
    let mut facts = revealed(checked, built, study);
    facts.extend(meanings(built));
    facts.extend(checked.rows.iter().map(|rows| Fact::new("rows", rows)));
    facts.extend(checked.besides.iter().map(|besides| Fact::new("besides", besides)));
    facts.extend(servers(study));
    facts.extend(runs(checked, agreed));
    facts.extend(plan::charges(&checked.plan));
    facts.extend(noise(checked, study));
    lines.extend(wrap(facts));
    lines.extend(plan::noise_lines(&checked.plan, columns));
    lines.push(String::new());
    lines.extend(plan::cost(&checked.plan, study, columns));
    let mut facts = plan::tells(&checked.plan);
    facts.push(Fact::new("program", &checked.study.program));
    facts.extend(plan::assumed(&checked.plan));
    if guessed && study.parties.len() == 2 && checked.inputs.is_some() {
        facts.push(Fact::new("assumed", say_both(study)));
    }
    lines.extend(wrap(facts));
    lines.join("\n")
}

/// What is said before the data: which study it is, what it would detect, and what is left of the budget.
fn before(checked: &CheckReport, agreed: &StudyFile) -> Vec<Fact> {
    let study = agreed.first();
    let mut facts = vec![
        Fact::new("study", format!("{}: {}", study.name, study.title)),
        Fact::new("hash", format!("{}   in full {}", agreed.hash(), checked.study.hash)),
    ];
    if checked.peer_agrees == Some(true) {
        facts.push(Fact::new("peer", "the peer's study says the same"));
    }
    facts.extend(left_out(study));
    facts.extend(checked.warnings.iter().map(|warning| Fact::new("warning", warning)));
    facts.extend(plan::effects(&checked.plan, study));
    facts.extend(checked.budget.iter().flat_map(budget_facts));
    facts
}

/// What to say where the other side's rows are a guess.
fn say_both(study: &Study) -> String {
    let (what, mean) = match study.kind {
        Question::Lift(_) => ("effect, bytes", ", and the control arm's mean: --mean X"),
        _ => ("bytes", ""),
    };
    format!(
        "the other side's rows are a guess (rows, above): {what} and time are for that. State both: --rows \
         N,M with the first party's first{mean}"
    )
}

/// Arms that are not compared.
fn left_out(study: &Study) -> Option<Fact> {
    let Question::Lift(lift) = &study.kind else { return None };
    let labels: Vec<String> = lift.publisher.leave_out.iter().map(|label| format!("{label:?}")).collect();
    (!labels.is_empty()).then(|| {
        let of = labels.join(", ");
        Fact::new(
            "left out",
            format!("rows of the arms {of}: as if they were in no file, neither matched nor counted"),
        )
    })
}

/// Runs of the publisher with several advertisers.
fn runs(checked: &CheckReport, agreed: &StudyFile) -> Vec<Fact> {
    let runs = agreed.runs.len();
    if runs < 2 {
        return Vec::new();
    }
    let mut facts = vec![Fact::new(
        "runs",
        format!(
            "{runs}: the publisher with each advertiser, a release and a charge for each; one result of all \
             of them is [lift] advertisers = \"together\""
        ),
    )];
    let hashes = checked.study.runs.iter();
    facts.extend(hashes.map(|(name, hash)| Fact::new("run", format!("with {name}: hash {hash}"))));
    facts
}

/// Where noise comes from.
fn noise(checked: &CheckReport, study: &Study) -> Option<Fact> {
    checked.plan.total.values().next()?;
    let from = match study.noise() {
        NoiseFrom::Inside => {
            "drawn inside the computation, from coins of all parties: nobody knows it".to_owned()
        }
        NoiseFrom::CutAndChoose(candidates) => format!(
            "{candidates} candidates: a party that bends its noise is caught {} times of {candidates}; fewer \
             are faster and catch less (policy.candidates is a party's floor). It knows the noise: with \
             noise = \"inside\" nobody does",
            candidates - 1
        ),
    };
    Some(Fact::new("noise", from))
}

/// What each viewer is shown, and how exactly: once for all who are shown the same.
fn revealed(checked: &CheckReport, built: &[Built], study: &Study) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut groups: Vec<(Vec<&str>, String)> = Vec::new();
    for (viewer, labels) in &checked.revealed {
        let derived = checked.derived.get(viewer);
        if let Some(derived) = derived {
            facts.push(Fact::new("results", format!("for {viewer}: {}", wording::alike_in_words(derived))));
        }
        if labels.is_empty() {
            facts.push(Fact::new("revealed", format!("nothing is revealed to {viewer} alone")));
            continue;
        }
        let how = match checked.class {
            "dp" if viewer == "everybody" && built.len() > 1 => {
                "a result per advertiser which its two parties see alike and may publish, with noise that \
                 protects the data of both"
            }
            "dp" if viewer == "everybody" => "with noise that protects the data of all",
            "dp" => "with noise, but for what it knows itself",
            _ => "EXACTLY",
        };
        let what = built.iter().find_map(|built| families(built, study, viewer));
        let what = what.unwrap_or_else(|| match derived {
            Some(_) => format!("what these are computed from, {}", wording::sums_in_words(labels)),
            None => labels.join("; "),
        });
        let text = format!("{how}: {what}");
        match groups.iter_mut().find(|(_, known)| *known == text) {
            Some((viewers, _)) => viewers.push(viewer),
            None => groups.push((vec![viewer], text)),
        }
    }
    facts.extend(groups.into_iter().map(|(viewers, text)| {
        let (whom, each) = (viewers.join(" and to "), if viewers.len() > 1 { ", each" } else { "" });
        Fact::new("revealed", format!("to {whom}{each}, {text}"))
    }));
    facts
}

/// What the numbers of a lift study are, those that its estimates alone are made of.
fn meanings(built: &[Built]) -> Option<Fact> {
    let (_, layout) = built.iter().find_map(|built| built.lift.as_ref())?;
    let mut said: Vec<String> = Vec::new();
    for output in &layout.outputs {
        let name = output.quantity.name();
        let key = name.replace(' ', "_");
        let text = wording::meaning(&key).filter(|_| wording::is_behind(&key));
        said.extend(text.map(|text| format!("{name}: {text}")).filter(|text| !said.contains(text)));
    }
    (!said.is_empty()).then(|| Fact::new("numbers", said.join("; ")))
}

/// The numbers of a lift study that a viewer is shown, family by family; nothing of other studies.
fn families(built: &Built, study: &Study, viewer: &str) -> Option<String> {
    let (lift, layout) = built.lift.as_ref()?;
    let parties = &built.program.parties;
    let sees = |to: Viewer| to.only().map_or("everybody", |_| to.name(parties)) == viewer;
    let whole = family(layout, lift, |o| sees(o.viewer) && o.cell == LiftCell::Overall)?;
    let [breakdown, cohort] = plan::cell_names(study);
    let cells =
        [(breakdown, LiftCell::Breakdown(0), &lift.breakdown), (cohort, LiftCell::Cohort(0), &lift.cohorts)];
    let of_cells = cells.into_iter().filter_map(|(name, cell, values)| {
        let one = family(layout, lift, |o| sees(o.viewer) && o.cell == cell)?;
        let what = if one == whole { "the same".to_owned() } else { one };
        Some(format!("; for each {name} ({}): {what}", values.join(", ")))
    });
    Some(whole.clone() + &of_cells.collect::<String>())
}

/// What one cell shows: what compares the arms, and what each arm has.
fn family(
    layout: &LiftLayout,
    lift: &LiftParameters,
    here: impl Fn(&OutputMeaning) -> bool,
) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut of_arms: Vec<&str> = Vec::new();
    for output in layout.outputs.iter().filter(|output| here(output)) {
        let name = output.quantity.name();
        if output.arm.is_none() {
            parts.push(format!("{name} of {} and {}", lift.arms[0], lift.arms[1]));
        } else if !of_arms.contains(&name) {
            of_arms.push(name);
        }
    }
    if !of_arms.is_empty() {
        parts.push(format!("{} of {} and of {}", of_arms.join(", "), lift.arms[0], lift.arms[1]));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What to do now.
fn next(checked: &CheckReport, agreed: &StudyFile, file: &str, (serves, guessed): (bool, bool)) -> String {
    if checked.refused {
        "This side's policy refuses the study, and its data were not read: see the error".to_owned()
    } else if checked.budget.as_ref().is_some_and(|budget| !budget.refusals.is_empty()) {
        "This side is not ready: see the error".to_owned()
    } else if serves {
        format!("This server is ready: tacit serve {file}, or tacit run {file}")
    } else if checked.inputs.is_some() && checked.shows_nothing {
        match guessed {
            true => format!(
                "Not ready as far as is known: if nobody but the people of this side's file is in the trial, \
                 nothing would be released, and rho is spent all the same. If you know how many are, tacit \
                 check {file} --rows N,M says it for them (data and policy are in order)"
            ),
            false => "Not ready: nothing would be released of so few people, and rho is spent all the same \
                      (data and policy are in order)"
                .to_owned(),
        }
    } else if checked.inputs.is_some() {
        match agreed.first().only_matches() {
            true => format!("This side is ready: tacit match {file} --out FILE"),
            false => format!("This side is ready: tacit run {file}"),
        }
    } else {
        let but = if placeholders(agreed).is_some() { ", but for its keys" } else { "" };
        format!("The study is sound{but}. Check your data, too: tacit check PARTY_FILE")
    }
}

/// What each server sees, by name; nothing where the owners compute.
fn servers(study: &Study) -> Vec<Fact> {
    let Some(servers) = &study.servers else { return Vec::new() };
    let names = |joins: bool| {
        let of = servers.members.iter().filter(|server| servers.joins(server) == joins);
        of.map(|server| server.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let mut facts = Vec::new();
    let mut say = |text: String| facts.push(Fact::new("servers", text));
    if servers.joiners.is_some() {
        say(format!(
            "{}: the numbers of rows, and which rows of different owners are equal, by keyed hashes",
            names(true)
        ));
    }
    let others = match study.matching.matcher.features().public_identifiers {
        true => "the number of rows, and nothing of the identifiers: which rows are equal shows nowhere",
        false => "the numbers of rows, and nothing of which are equal",
    };
    say(format!("{}: {others}", names(false)));
    if let Some(transport) = &servers.transport {
        let protected = protects(&transport.to_string());
        say(format!("compute over \"{transport}\", as agreed: {protected}"));
    }
    facts
}
