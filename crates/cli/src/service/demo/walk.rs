//! What the demo says: the links, what to click, and what comes next once something has happened.

use super::sides::DemoSide;
use base::Error;
use page::lines::wrapped;
use page::numbers::count;
use service::{ProposalFilter, ProposalRow};
use statements::ProposalState;
use std::path::Path;
use terminal::width::columns;

/// What everybody has to do, in order: side, role, what to click.
const STEPS: [(usize, &str, &str); 3] = [
    (0, "analyst", r#"Click "Propose a study", the draft beneath the form, "Preview", and then "Propose"."#),
    (
        0,
        "steward",
        r#"Click the study, read what hospitals would learn and what it costs, "Consent and sign"."#,
    ),
    (
        1,
        "steward",
        "The same for the other side. The run begins by itself, and the page says when it is over.",
    ),
];

/// Addresses, links and steps.
pub fn opening(sides: &[DemoSide; 2], password: &str, folder: &Path, scale: u64) -> String {
    let mut lines = vec![
        "Tacit service demo: two organisations on this machine, each with a service and people of its own."
            .to_owned(),
    ];
    if scale > 1 {
        lines.push(format!("A small variant of the trial: one child in {scale}, but all the cases."));
    }
    lines.push(String::new());
    let what = ["children: arm, injection date", "records: onset date, severity"];
    for (side, what) in sides.iter().zip(what) {
        lines.push(format!("  {:10} {:>9} {what:32} {}", side.name, count(side.rows), side.url));
    }
    lines.push(
        "\nOpen these links one after the other, in one browser. Each signs one person in, once.".into(),
    );
    for (at, (side, role, said)) in STEPS.into_iter().enumerate() {
        let side = &sides[side];
        lines.push(format!("\n  {}  {}, {role}:  {}", at + 1, side.name, side.link(role)));
        lines.extend(wrapped(said, columns(), "     ", "     "));
    }
    lines.push("\n  4  Click \"The report\" on both sides.".to_owned());
    lines.push("\nBesides, those who run the machines, who see neither data nor results:\n".to_owned());
    lines.extend(sides.iter().map(|side| format!("     {}:  {}", side.name, side.link("operator"))));
    lines.push(format!("\nThe password of all of them, where a page asks: {password}"));
    lines.push(format!("Folder: {}. Ctrl-C ends both services.\n", folder.display()));
    lines.join("\n")
}

/// What is left.
pub fn closing(remains: Option<&Path>) -> String {
    let Some(folder) = remains else {
        return "\nBoth services have ended, and their temporary folder is removed (--keep leaves it)."
            .into();
    };
    let folder = folder.display();
    let said = format!(
        "Both services have ended. What remains is in {folder}: for each side its rules (service.toml), its \
         data, key, store (service.db), privacy ledger (own.ledger), runs (jobs) and log. To look at it, to \
         serve its page again, by TLS, and to remove it:"
    );
    let said = wrapped(&said, columns(), "", "").join("\n");
    format!(
        "\n{said}\n\n    tacit service studies {folder}/registry/service.toml --all\n    tacit ledger verify \
         {folder}/registry/own.ledger --service {folder}/registry\n    tacit service run \
         {folder}/registry/service.toml\n    rm -r {folder}"
    )
}

/// Where the newcomer is.
#[derive(Default)]
pub struct Walk {
    said: Option<String>,
}

impl Walk {
    /// What is new since the last look, and what comes next.
    ///
    /// # Errors
    /// When a store cannot be read.
    pub fn look(&mut self, sides: &[DemoSide; 2]) -> Result<Option<String>, Error> {
        let newest = |side: &DemoSide| -> Result<Option<ProposalRow>, Error> {
            Ok(side.store.list(&ProposalFilter::default(), None)?.into_iter().next())
        };
        let rows = [newest(&sides[0])?, newest(&sides[1])?];
        let said = next(&rows, [&sides[0].url, &sides[1].url]);
        if said.is_none() || said == self.said {
            return Ok(None);
        }
        self.said.clone_from(&said);
        Ok(said)
    }
}

/// What to say where both sides stand so.
fn next(rows: &[Option<ProposalRow>; 2], urls: [&str; 2]) -> Option<String> {
    let [ours, theirs] = rows;
    let ours = ours.as_ref()?;
    let page = |url: &str, more: &str| format!("{url}/studies/{}{more}", ours.study.full());
    let on_both = |said: &str, more: &str| {
        Some(format!("{said}\n  {}\n  {}", page(urls[0], more), page(urls[1], more)))
    };
    let is = |state| ours.state == state || theirs.as_ref().is_some_and(|row| row.state == state);
    if is(ProposalState::Closed) {
        let said = "The study was refused or withdrawn; its page says why. To go on: link 1, a new proposal.";
        return Some(said.to_owned());
    }
    let theirs = theirs.as_ref()?;
    if ours.state == ProposalState::Answered && theirs.state == ProposalState::Answered {
        return on_both("4: both sides have the report.", "/report");
    }
    if [ours, theirs].iter().any(|row| row.held.is_some()) {
        return on_both("No run begins by itself now; the page of the run says why, and what to do.", "/run");
    }
    match (ours.decided, theirs.decided) {
        (true, true) => on_both("Both have consented. The run begins by itself; see how it goes:", "/run"),
        (true, false) => Some("registry has consented. Next: link 3, the steward of hospitals.".to_owned()),
        (false, true) => Some("hospitals has consented. Next: link 2, the steward of registry.".to_owned()),
        (false, false) => {
            Some("Proposed, and hospitals has it. Next: link 2, the steward of registry.".to_owned())
        }
    }
}
