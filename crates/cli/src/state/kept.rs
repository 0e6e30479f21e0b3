//! `tacit state show` and `tacit state drop`: runs that are kept.

use super::DropArgs;
use base::Error;
use job::kept::{KeptStage, KeptStudy, KeptSummary, drop_kept, summaries};
use page::numbers;
use serde::Serialize;
use std::path::Path;
use std::time::SystemTime;
use study::party::{PartySettings, PartySetup};
use terminal::output;

/// What `--json` of `drop` prints.
#[derive(Serialize)]
struct Dropped {
    dropped: Vec<String>,
}

/// What `--json` of `show` prints.
#[derive(Serialize)]
struct Shown {
    place: String,
    runs: Vec<KeptSummary>,
}

fn setup(party: &Path) -> Result<PartySetup, Error> {
    PartySettings::read(party)?.complete()
}

/// Shows the runs that are kept.
///
/// # Errors
/// When the party has no state, or it cannot be read.
pub fn show(party: &Path, json: bool) -> Result<(), Error> {
    let party = setup(party)?;
    let (runs, place) = (summaries(&party)?, party.state.clone().unwrap_or_default());
    if json {
        return output::print_json(&Shown { place, runs });
    }
    if runs.is_empty() {
        return output::print(&format!("{place}: no run is kept"));
    }
    output::print(&runs.iter().map(lines).collect::<Vec<_>>().join("\n"))
}

fn lines(run: &KeptSummary) -> String {
    let until = run.until.as_ref().map_or_else(String::new, |day| until(day, &today()));
    let size = numbers::bytes(run.bytes);
    let name = base::clean(&run.run);
    match (&run.study, &run.begun, &run.stage) {
        (Some(KeptStudy { name: study, hash }), Some(begun), Some(stage)) => format!(
            "{name}  {} of {begun} ({}..): {}; {size}{until}",
            base::clean(study),
            &hash[..hash.len().min(16)],
            come_to(stage)
        ),
        _ => format!(
            "{name}  another party's, or cannot be opened with this ledger's state key; {size}{until}"
        ),
    }
}

fn today() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    study::time::date(now.map_or(0, |since| since.as_secs() as i64))
}

fn until(day: &str, today: &str) -> String {
    // Days of ISO 8601 are in the order of their text.
    let past = if day < today { ", which is past: another run that begins removes it" } else { "" };
    format!(", kept until {day}{past}")
}

fn come_to(stage: &KeptStage) -> String {
    if let Some(held) = stage.match_units_held {
        return format!("rows are read; {held} units of their match are held");
    }
    if !stage.matched {
        return "rows are read".to_owned();
    }
    let attempts = if stage.failed == 1 { "1 attempt".into() } else { format!("{} attempts", stage.failed) };
    let units = format!("{} units are held, {attempts} failed", stage.units_held);
    match (stage.sealed, stage.releasing) {
        (_, true) => "all is computed, and its release began".to_owned(),
        (true, false) => "all is computed".to_owned(),
        (false, false) => format!("rows are matched; {units}"),
    }
}

/// Removes runs.
///
/// # Errors
/// When there is none of a name, or a process leads one.
pub fn remove(args: &DropArgs, json: bool) -> Result<(), Error> {
    if args.runs.is_empty() && !args.all {
        return Err(Error::input("name runs, as `tacit state show` prints them, or add --all"));
    }
    let dropped = drop_kept(&setup(&args.party)?, &args.runs)?;
    if json {
        return output::print_json(&Dropped { dropped });
    }
    let text = if dropped.is_empty() { "no run was kept".to_owned() } else { dropped.join("\n") };
    output::print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_that_is_past_is_said() {
        assert_eq!(until("2026-11-27", "2026-11-27"), ", kept until 2026-11-27");
        assert!(until("2026-11-25", "2026-11-27").contains("which is past"));
        assert_eq!(today().len(), 10);
    }
}
