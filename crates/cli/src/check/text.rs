//! What `tacit check` prints for people: whether this side is ready, what the study could see and what would
//! be left of the budget; then what is shown to whom, and what it costs. What the numbers rest on comes last.

use crate::plan;
use job::budget::{Outlook, Towards};
use job::check::{CheckReport, placeholders};
use job::prepare::Built;
use program::Viewer;
use studies::lift::{LiftCell, LiftLayout, LiftParameters, OutputMeaning};
use study::transport::protects;
use study::{NoiseFrom, Question, Study, StudyFile};

/// What the ledger says of this study, by viewer.
fn budget_lines(budget: &Outlook) -> Vec<String> {
    let Some(lineage) = &budget.lineage else {
        return vec!["budget     nothing is charged to this party's data".to_owned()];
    };
    let of = |towards: &Towards| {
        let Towards { viewer, spent, budget, takes, left, sizes, published, runs, charged, .. } = towards;
        let mut text =
            format!("budget     {spent} of {budget} spent towards {viewer}; this study takes up to {takes}");
        if *runs > 1 {
            text += &format!(" in {runs} runs");
        }
        if published != "0" {
            text += &format!(", {published} of it for public results of runs with others");
        }
        if charged != "0" {
            text += &format!(
                "; {charged} of it was charged before and is not taken again while the data of both sides \
                 are the same"
            );
            if sizes != "0" {
                text += &format!(" (but for {sizes} for sizes of a match, from the third match on)");
            }
        }
        text + &left.as_ref().map_or_else(String::new, |left| format!("; {left} is left afterwards"))
    };
    let mut lines: Vec<String> = budget.towards.iter().map(of).collect();
    lines.extend(budget.towards.iter().filter_map(|towards| {
        let period = towards.period.as_ref()?;
        Some(format!(
            "budget     {period} spent towards {}; nothing of the budget comes back after it",
            towards.viewer
        ))
    }));
    lines.push(match &budget.total {
        Some(total) => {
            format!("budget     {} of {total} spent by all viewers of lineage {lineage}", budget.spent_by_all)
        }
        None => format!(
            "budget     {} spent by all viewers of lineage {lineage}; no bound beside each viewer's \
             (policy.total)",
            budget.spent_by_all
        ),
    });
    if budget.ledger_is_new {
        lines.push("budget     the ledger is not there yet: the first run makes it".to_owned());
    }
    lines.extend(budget.notes.iter().map(|note| format!("warning    {note}")));
    lines
}

/// What a check found. `guessed` says that the other side's rows are a guess, `serves` that this side is a
/// server.
pub(super) fn text_of(
    checked: &CheckReport,
    (agreed, built): (&StudyFile, &[Built]),
    file: &str,
    (serves, guessed): (bool, bool),
) -> String {
    let study = agreed.first();
    let mut lines = vec![
        next(checked, agreed, file, serves),
        String::new(),
        format!("study      {}: {}", study.name, study.title),
        format!("hash       {}   in full {}", agreed.hash(), checked.study.hash),
    ];
    if checked.peer_agrees == Some(true) {
        lines.push("peer       the peer's study says the same".to_owned());
    }
    lines.extend(left_out(study));
    lines.extend(checked.warnings.iter().map(|warning| format!("warning    {warning}")));
    lines.extend(plan::effects(&checked.plan, study));
    lines.extend(checked.budget.iter().flat_map(budget_lines));
    if let Some(inputs) = &checked.inputs {
        lines.push("data       read and valid:".to_owned());
        lines.push(inputs.to_string());
    }
    lines.push(String::new());
    lines.extend(revealed(checked, built));
    lines.extend(checked.rows.iter().map(|rows| format!("rows       {rows}")));
    lines.extend(checked.besides.iter().map(|besides| format!("besides    {besides}")));
    lines.extend(servers(study));
    lines.extend(runs(checked, agreed));
    lines.extend(plan::charges(&checked.plan));
    lines.extend(noise(checked, study));
    lines.push(String::new());
    lines.extend(plan::cost(&checked.plan));
    lines.extend(plan::tells(&checked.plan));
    lines.push(format!("program    {}", checked.study.program));
    lines.extend(plan::assumed(&checked.plan));
    if let (true, Some(inputs)) = (guessed, &checked.inputs) {
        let (what, mean) = match study.kind {
            Question::Lift(_) => ("effect, bytes", ", and the control arm's mean: --mean X"),
            _ => ("bytes", ""),
        };
        lines.push(format!(
            "assumed    the other side has as many rows as this one, {}: {what} and time are for that. State \
             both: --rows N,M with the first party's first{mean}",
            page::numbers::count(inputs.rows_kept)
        ));
    }
    lines.join("\n")
}

/// Arms that are not compared.
fn left_out(study: &Study) -> Option<String> {
    let Question::Lift(lift) = &study.kind else { return None };
    let labels: Vec<String> = lift.publisher.leave_out.iter().map(|label| format!("{label:?}")).collect();
    (!labels.is_empty()).then(|| {
        format!(
            "left out   rows of the arms {}: as if they were in no file, neither matched nor counted",
            labels.join(", ")
        )
    })
}

/// Runs of the publisher with several advertisers.
fn runs(checked: &CheckReport, agreed: &StudyFile) -> Vec<String> {
    let runs = agreed.runs.len();
    if runs < 2 {
        return Vec::new();
    }
    let mut lines = vec![format!(
        "runs       {runs}: the publisher with each advertiser, a release and a charge for each; one result \
         of \
         all of them is [lift] advertisers = \"together\""
    )];
    let hashes = checked.study.runs.iter();
    lines.extend(hashes.map(|(name, hash)| format!("run        with {name}: hash {hash}")));
    lines
}

/// Where noise comes from.
fn noise(checked: &CheckReport, study: &Study) -> Option<String> {
    checked.plan.total.values().next()?;
    Some(match study.noise() {
        NoiseFrom::Inside => {
            "noise      drawn inside the computation, from coins of all parties: nobody knows it".to_owned()
        }
        NoiseFrom::CutAndChoose(candidates) => format!(
            "noise      {candidates} candidates: a party that bends its noise is caught {} times of \
             {candidates}; fewer are faster and catch less (policy.candidates is a party's floor). It knows \
             the \
             noise: with noise = \"inside\" nobody does",
            candidates - 1
        ),
    })
}

/// What each viewer is shown, and how exactly: once for all who are shown the same.
fn revealed(checked: &CheckReport, built: &[Built]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut groups: Vec<(Vec<&str>, String)> = Vec::new();
    for (viewer, labels) in &checked.revealed {
        if let Some(derived) = checked.derived.get(viewer) {
            lines.push(format!("results    for {viewer}, of what is revealed to it: {}", derived.join("; ")));
        }
        if labels.is_empty() {
            lines.push(format!("revealed   nothing is revealed to {viewer} alone"));
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
        let what = built.iter().find_map(|built| families(built, viewer));
        let text = format!("{how}: {}", what.unwrap_or_else(|| labels.join("; ")));
        match groups.iter_mut().find(|(_, known)| *known == text) {
            Some((viewers, _)) => viewers.push(viewer),
            None => groups.push((vec![viewer], text)),
        }
    }
    lines.extend(groups.into_iter().map(|(viewers, text)| {
        let (whom, each) = (viewers.join(" and to "), if viewers.len() > 1 { ", each" } else { "" });
        format!("revealed   to {whom}{each}, {text}")
    }));
    lines
}

/// The numbers of a lift study that a viewer is shown, family by family; nothing of other studies.
fn families(built: &Built, viewer: &str) -> Option<String> {
    let (lift, layout) = built.lift.as_ref()?;
    let parties = &built.program.parties;
    let sees = |to: Viewer| to.only().map_or("everybody", |_| to.name(parties)) == viewer;
    let whole = family(layout, lift, |o| sees(o.viewer) && o.cell == LiftCell::Overall)?;
    let cells = [
        ("breakdown", LiftCell::Breakdown(0), &lift.breakdown),
        ("cohort", LiftCell::Cohort(0), &lift.cohorts),
    ];
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
fn next(checked: &CheckReport, agreed: &StudyFile, file: &str, serves: bool) -> String {
    if checked.refused {
        "This side's policy refuses the study, and its data were not read: see the error".to_owned()
    } else if checked.budget.as_ref().is_some_and(|budget| !budget.refusals.is_empty()) {
        "This side is not ready: see the error".to_owned()
    } else if serves {
        format!("This server is ready: tacit serve {file}, or tacit run {file}")
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
fn servers(study: &Study) -> Vec<String> {
    let Some(servers) = &study.servers else { return Vec::new() };
    let names = |joins: bool| {
        let of = servers.members.iter().filter(|server| servers.joins(server) == joins);
        of.map(|server| server.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let mut lines = Vec::new();
    if servers.joiners.is_some() {
        lines.push(format!(
            "servers    {}: the numbers of rows, and which rows of different owners are equal, by keyed \
             hashes",
            names(true)
        ));
    }
    let others = match study.matching.matcher.features().public_identifiers {
        true => "the number of rows, and nothing of the identifiers: which rows are equal shows nowhere",
        false => "the numbers of rows, and nothing of which are equal",
    };
    lines.push(format!("servers    {}: {others}", names(false)));
    if let Some(transport) = &servers.transport {
        lines.push(format!(
            "servers    compute over \"{transport}\", as agreed: {}",
            protects(&transport.to_string())
        ));
    }
    lines
}
