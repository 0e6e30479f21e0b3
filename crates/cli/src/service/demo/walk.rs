//! What the demo says: the links, what to click, and what comes next once something has happened.

use super::sides::DemoSide;
use crate::demo::PARTIES;
use base::Error;
use page::lines::wrapped;
use page::numbers::count;
use service::{ProposalFilter, ProposalRow};
use statements::ProposalState;
use std::path::Path;
use terminal::width::columns;

/// What everybody has to do, in order: side, role, what to click.
const STEPS: [(usize, &str, &str); 3] = [
    (
        0,
        "analyst",
        "Click \"Sign in\", \"Propose a study\", and the study under \"Your drafts\", which is filled in. \
         Then \"Preview\", read what the others would read, and \"Propose\" at the end of the form.",
    ),
    (
        0,
        "steward",
        "Click \"Sign in\" and the study under \"For you\"; read what hospitals would learn and what it \
         costs; then \"Consent and sign\" at the end of the page.",
    ),
    (
        1,
        "steward",
        "The same for the other side. Then the run begins by itself, and the page says when it is over.",
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
    lines.push(
        "\n  4  Click \"The report\" on the page of the study: both sides have the same number.".to_owned(),
    );
    lines.push("\nBesides, those who run the machines, who see neither data nor results:\n".to_owned());
    lines.extend(sides.iter().map(|side| format!("     {}:  {}", side.name, side.link("operator"))));
    let said = format!(
        "The password of all of them, where a page asks: {password}. A link that was used signs nobody in: \
         after that they sign in by name (analyst, steward, operator) and this password."
    );
    lines.push(format!("\n{}", wrapped(&said, columns(), "", "").join("\n")));
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
        let is_first = sides[0].store.count(&ProposalFilter::default())? < 2;
        let said = next(&rows, [&sides[0].url, &sides[1].url], is_first);
        if said.is_none() || said == self.said {
            return Ok(None);
        }
        self.said.clone_from(&said);
        Ok(said)
    }
}

/// What to say where both sides stand so; the links are there for the first study alone.
fn next(rows: &[Option<ProposalRow>; 2], urls: [&str; 2], is_first: bool) -> Option<String> {
    let [ours, theirs] = rows;
    let ours = ours.as_ref()?;
    // What lies there of an earlier study says nothing of this one.
    let theirs = theirs.as_ref().filter(|row| row.id == ours.id);
    let steward = |side: usize| match is_first {
        true => format!("link {}, the steward of {}.", side + 2, PARTIES[side]),
        false => format!("{} as steward, by the password (sign out there before).", urls[side]),
    };
    let page = |url: &str, more: &str| format!("{url}/studies/{}{more}", ours.study.full());
    let on_both = |said: &str, more: &str| {
        Some(format!("{said}\n  {}\n  {}", page(urls[0], more), page(urls[1], more)))
    };
    let is = |state| ours.state == state || theirs.is_some_and(|row| row.state == state);
    if is(ProposalState::Closed) {
        return Some(format!(
            "The study was refused or withdrawn; its page says by whom and why. To go on, sign in at {} as \
             analyst, by the password (sign out there before), and click \"Propose one like it\":\n  {}",
            urls[0],
            page(urls[0], "")
        ));
    }
    let theirs = theirs?;
    if ours.state == ProposalState::Answered && theirs.state == ProposalState::Answered {
        return on_both("4: both sides have the report.", "/report");
    }
    if [ours, theirs].iter().any(|row| row.held.is_some()) {
        return on_both("No run begins by itself now; the page of the run says why, and what to do.", "/run");
    }
    match (ours.decided, theirs.decided) {
        (true, true) => on_both("Both have consented. The run begins by itself; see how it goes:", "/run"),
        (true, false) => Some(format!("registry has consented. Next: {}", steward(1))),
        (false, true) => Some(format!("hospitals has consented. Next: {}", steward(0))),
        (false, false) => Some(format!("Proposed, and hospitals has it. Next: {}", steward(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::KeyFingerprint;
    use statements::ProposalId;
    use study::StudyHash;

    const URLS: [&str; 2] = ["http://registry.localhost:1", "http://hospitals.localhost:2"];

    fn row(id: u8, state: ProposalState, decided: bool) -> Option<ProposalRow> {
        Some(ProposalRow {
            row: id.into(),
            id: ProposalId([id; 16]),
            study: StudyHash::from_bytes([7; 32]),
            title: "A question".to_owned(),
            kind: "lift".to_owned(),
            proposer: KeyFingerprint::from_bytes([1; 16]),
            by: String::new(),
            made_ms: 0,
            changed_ms: 0,
            over_ms: None,
            state,
            ours: false,
            decided,
            data: None,
            held: None,
            next_ms: 0,
        })
    }

    #[test]
    fn links_are_named_once_and_after_a_refusal_who_goes_on_where() {
        let proposed = |id| row(id, ProposalState::Proposed, false);
        let said = |rows: [Option<ProposalRow>; 2], is_first| next(&rows, URLS, is_first).unwrap_or_default();
        assert!(said([proposed(1), proposed(1)], true).ends_with("Next: link 2, the steward of registry."));
        let consented = || row(1, ProposalState::Consented, true);
        let told = said([consented(), row(1, ProposalState::Consented, false)], true);
        assert!(told.ends_with("Next: link 3, the steward of hospitals."), "{told}");
        let told = said([row(1, ProposalState::Closed, true), proposed(1)], true);
        assert!(
            told.contains("\"Propose one like it\":\n  http://registry.localhost:1/studies/0707"),
            "{told}"
        );
        assert!(told.contains("as analyst, by the password") && !told.contains("link 1"), "{told}");
        // The next one is on its way while the other side still has the first.
        assert_eq!(said([proposed(2), row(1, ProposalState::Closed, true)], false), "");
        let told = said([proposed(2), proposed(2)], false);
        assert!(told.contains(URLS[0]) && told.contains("as steward") && !told.contains("link"), "{told}");
    }
}
