//! `tacit ledger`: what was spent, and releases that broke off.

use crate::args::{Ledger as Args, LedgerAction};
use crate::output;
use base::Error;
use job::ledger::{EntryRow, Ledger};
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
    let entries = open(path)?.entries()?;
    if as_json {
        return output::print_json(&json!({ "ledger": path.display().to_string(), "entries": entries }));
    }
    if entries.is_empty() {
        return output::print("Nothing was spent yet.");
    }
    let mut lines = vec![format!("{:20}  {:12}  {:>6} of {:6}  viewer", "data", "study", "rho", "budget")];
    lines.extend(entries.iter().map(line));
    output::print(&lines.join("\n"))
}

fn line(entry: &EntryRow) -> String {
    let note = match (&entry.barred, entry.reopened, entry.protects) {
        (Some(why), ..) => format!("   barred: {why}; release {}", entry.release),
        (None, true, _) => "   reopened".to_owned(),
        (None, false, false) => "   (own view: counted in the peer's ledger)".to_owned(),
        _ => String::new(),
    };
    let study = entry.study.get(..12).unwrap_or(&entry.study);
    let EntryRow { lineage, rho, budget, viewer_key, .. } = entry;
    format!("{lineage:20}  {study:12}  {rho:>6} of {budget:6}  {viewer_key}{note}")
}
