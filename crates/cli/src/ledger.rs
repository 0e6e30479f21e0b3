//! `tacit ledger`: what was spent, and releases that broke off.

use crate::args::{Ledger as Args, LedgerAction};
use crate::output;
use base::Error;
use job::ledger::{AnswerRow, EntryRow, Ledger};
use job::time::date_of_days;
use serde_json::json;
use std::path::Path;

/// Shows a ledger, or reopens a release in it.
///
/// # Errors
/// When there is no ledger, or nothing to reopen.
pub fn run(args: &Args) -> Result<(), Error> {
    match &args.action {
        LedgerAction::Show { ledger } => show(ledger, args.json),
        LedgerAction::Reopen { ledger, release, reason } => {
            open(ledger)?.reopen(release, reason)?;
            let hex: String = release.iter().map(|b| format!("{b:02x}")).collect();
            if args.json {
                return output::print_json(&json!({ "reopened": hex }));
            }
            output::print(&format!(
                "Release {hex} is open again; its next run is charged anew. The peer has to do the same."
            ))
        }
    }
}

/// A ledger that exists: showing one must not make one.
fn open(path: &Path) -> Result<Ledger, Error> {
    if !path.exists() {
        return Err(Error::input(format!("there is no ledger {}; `tacit run` makes it", path.display())));
    }
    Ledger::open(path)
}

fn show(path: &Path, as_json: bool) -> Result<(), Error> {
    let ledger = open(path)?;
    let (entries, answers) = (ledger.entries()?, ledger.answers()?);
    if as_json {
        let path = path.display().to_string();
        return output::print_json(&json!({ "ledger": path, "entries": entries, "answers": answers }));
    }
    let mut lines = Vec::new();
    if entries.is_empty() {
        lines.push("Nothing was spent yet.".to_owned());
    } else {
        lines.push(format!("{:20}  {:12}  {:>6} of {:6}  viewer", "data", "study", "rho", "budget"));
        lines.extend(entries.iter().map(line));
    }
    if !answers.is_empty() {
        lines.push("Answers kept:".to_owned());
        lines.extend(answers.iter().map(answered));
    }
    output::print(&lines.join("\n"))
}

/// A stored answer: when, which study, and whether it was exact.
fn answered(answer: &AnswerRow) -> String {
    const DAY: u64 = 86_400;
    /// 9999-12-31, the last date there is.
    const LAST: u64 = 2_932_896;
    let date = date_of_days((answer.at / DAY).min(LAST) as i64);
    let study = answer.study.get(..12).unwrap_or(&answer.study);
    let how = if answer.exact { "exact, nothing charged" } else { "with noise" };
    format!("{date}  {study:12}  {}: {how}", answer.name)
}

fn line(entry: &EntryRow) -> String {
    let note = match (&entry.barred, entry.reopened, entry.protects) {
        (Some(why), ..) => format!("   barred: {why}; release {}", entry.release),
        (None, true, _) => "   reopened".to_owned(),
        (None, false, false) => "   (own view: counted in the peer's ledger)".to_owned(),
        _ if entry.delta != "0" => format!("   (sizes of a match; delta {})", entry.delta),
        _ => String::new(),
    };
    let study = entry.study.get(..12).unwrap_or(&entry.study);
    let EntryRow { lineage, rho, budget, viewer_key, .. } = entry;
    format!("{lineage:20}  {study:12}  {rho:>6} of {budget:6}  {viewer_key}{note}")
}
