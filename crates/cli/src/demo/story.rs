//! What the demo says.

use super::PARTIES;
use super::files::{Folder, Made};
use base::Error;
use job::plan::{Assumed, Link, OutcomeGuess, Speeds, plan};
use page::lines::{fitted, wrapped};
use page::numbers::{bytes, count, counted, duration};
use release::rational::shown;
use report::RunReport;
use report::summary;
use std::path::Path;
use study::Question;
use terminal::width::columns;

/// Loopback, for the plan.
const LINK: Link = Link { bits_per_s: 2e10, round_trip_s: 1e-4 };

/// Who takes part, what they agreed on and what it will cost.
///
/// # Errors
/// When the study is refused.
pub fn opening(made: &Made, scale: u64) -> Result<String, Error> {
    let study = &made.study;
    let Question::Lift(lift) = &study.kind else { return Err(Error::misuse("the demo is a lift study")) };
    let counts = [made.generated.publisher_rows, made.generated.advertiser_rows];
    let what = ["children: arm, injection date", "records: onset date, severity"];
    let mut lines = vec![
        "Tacit demo: the 1954 poliomyelitis field trial (Francis 1955), rebuilt row by row from its \
         published counts."
            .to_owned(),
        "Two processes, mutually authenticated TLS 1.3. Neither shows the other a row.".to_owned(),
        String::new(),
    ];
    if scale > 1 {
        lines.insert(1, format!("A small variant: one child in {scale}, but all the cases."));
    }
    for ((member, rows), what) in study.parties.iter().zip(counts).zip(what) {
        let key: net::KeyFingerprint = member.key.parse()?;
        lines.push(format!("  {:10} {:>9} {what:32} key {}", member.name, count(rows), key.short()));
    }
    let public = lift.release.public.as_ref();
    let rho = public.map_or_else(String::new, |rho| format!("   rho {} for one public result", shown(rho)));
    lines.push(format!("  study      {}, hash {}{rho}", study.name, study.hash()));
    // In the unit that the table will have: that of the larger of the rates.
    let rate = |arm: &data::generate::ArmTruth| arm.sum as f64 / arm.rows as f64;
    let per = if made.generated.truth.overall.iter().map(rate).fold(0.0, f64::max) < 0.01 {
        100_000u32
    } else {
        1_000
    };
    let mean = made.generated.truth.overall.iter().map(|arm| arm.sum).sum::<u64>() as f64
        / made.generated.truth.overall.iter().map(|arm| arm.rows).sum::<u64>() as f64;
    let plan = plan(
        study,
        &Assumed { rows: counts, both: None, outcome: Some(OutcomeGuess::told(mean)) },
        LINK,
        Speeds::default(),
    )?;
    let seconds: f64 = plan.stages.iter().map(|s| s.seconds).sum();
    let sent: u64 = plan.stages.iter().flat_map(|s| s.bytes_sent.values()).sum();
    let effect = plan.public_effect.map_or_else(String::new, |effect| {
        let shown = page::numbers::short(effect * f64::from(per), 3);
        format!(", smallest effect it can see: {shown} per {}", count(u64::from(per)))
    });
    // What the plan cannot know: two processes share this machine, and how many are in both files.
    let text = format!(
        "{} of computing by a core of each party, {} at most (were nobody in both files){effect}",
        duration(seconds),
        bytes(sent)
    );
    lines.extend(wrapped(&text, columns(), "  plan       ", &" ".repeat(13)));
    Ok(lines.join("\n") + "\n")
}

/// What each sees, beside the truth.
pub fn closing(reports: [&RunReport; 2], truth: f64, contained: bool, folder: &Folder) -> String {
    let [first, second] = reports;
    let mut text = ledger(reports);
    text += "\n\n";
    text += &table(reports, truth);
    text += &format!(
        "\n  The truth is from the published counts of cases, 33 and 115.   {}\n",
        if contained { "OK" } else { "NOT OK" }
    );
    let besides = format!("What each side learned besides: {}", summary::besides(first));
    text += &(wrapped(&besides, columns(), "  ", "    ").join("\n") + "\n");
    let pages = PARTIES.map(|party| folder.report(party).join("report.html").display().to_string());
    text += &format!(
        "\n  Reports: {} (and .json).\n  Total {}, with {} and {} of computing, {}, peak memory {} and {}\n",
        pages.join(", "),
        duration(first.seconds.max(second.seconds)),
        duration(first.cpu_seconds),
        duration(second.cpu_seconds),
        bytes(first.bytes),
        bytes(first.peak_memory_bytes),
        bytes(second.peak_memory_bytes)
    );
    fitted(&text, Some(columns()), 2) + &next(onwards(Path::new("examples/lift.toml").exists()))
}

/// What comes behind the demo: the examples where they are at hand, as in a checkout.
fn onwards(examples: bool) -> &'static [&'static str] {
    match examples {
        true => &[
            "tacit check examples/lift.toml",
            "tacit plan examples/lift.toml --rows 10M --mean 0.0006 --link 1gbps,20ms",
            "docs/cli.md",
        ],
        false => &["tacit generate lift --rows 20k --out data", "tacit init lift --help"],
    }
}

/// What to type or read next: a line each, so that none is broken where it is copied.
pub fn next(all: &[impl AsRef<str>]) -> String {
    let lines = all.iter().map(|one| format!("\n    {}", one.as_ref()));
    format!("  Next:{}", lines.collect::<String>())
}

/// What the parties saw: one column where all see the same.
pub fn table(reports: [&RunReport; 2], truth: f64) -> String {
    let [first, second] = reports;
    if first.is_public() && first.public == second.public {
        return summary::lift_table(&[first], Some(truth), columns());
    }
    summary::lift_table(&reports, Some(truth), columns())
}

/// What each party's own ledger says of the other as a viewer.
pub fn ledger(reports: [&RunReport; 2]) -> String {
    let [first, second] = reports;
    let side = |own: &RunReport, viewer: &RunReport| {
        let privacy = &own.privacy;
        format!("{} has seen {} of {} of {}'s data", viewer.party, privacy.spent, privacy.budget, own.party)
    };
    let lanes = counted(first.shards.into(), "worker pair");
    let engine = format!("engine {}, mode {}, {lanes}", first.engine, first.mode);
    let checked = match first.privacy.candidates {
        Some(n @ 2..) => format!("; noise checked by the other side: {} of {n} opened", n - 1),
        _ => "; noise drawn inside, known to nobody".to_owned(),
    };
    let each = match [&first.privacy.total, &second.privacy.total] {
        [Some(a), Some(b)] if a == b => {
            let charged = report::wording::charged(a, "all that it got");
            Some(format!("each party: {charged} = {}", a.words()))
        }
        [Some(a), Some(b)] => {
            Some(format!("{}: {}; {}: {}", first.party, a.words(), second.party, b.words()))
        }
        _ => None,
    };
    let debited =
        format!("rho debited before the result was opened: {}; {}", side(first, second), side(second, first));
    let mut lines = wrapped(&format!("{engine}{checked}"), columns(), "  ", "    ");
    for (name, text) in each.into_iter().map(|text| ("privacy", text)).chain([("ledger", debited)]) {
        lines.extend(wrapped(&text, columns(), &format!("  {name:<9}"), &" ".repeat(11)));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_checkout_are_named_only_there() {
        let named = |examples: bool| onwards(examples).iter().any(|line| line.contains("examples/"));
        assert!(named(true) && !named(false));
    }
}
