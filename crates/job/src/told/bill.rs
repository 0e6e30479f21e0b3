//! What a run costs in dollars, for people.

use crate::plan::{Bill, BillTotal};
use page::numbers::{bytes, duration, percent};
use study::prices::BytePath;

/// Seconds of an hour.
const HOUR_S: f64 = 3600.0;

/// Hours, machines and dollars in one sentence.
pub(super) fn answer(bill: &Bill) -> String {
    let total = &bill.total;
    let dollars = total.usd.iter().map(|usd| format!("${:.2} {}", usd.on_demand, usd.between.words()));
    format!(
        "{} on {} of each party; {}, cores on demand, by prices of {}",
        duration(total.hours * HOUR_S),
        machines(bill),
        dollars.collect::<Vec<_>>().join(", "),
        bill.prices.date
    )
}

fn machines(bill: &Bill) -> String {
    let cores = bill.prices.machine_cores;
    if bill.machines == 1 {
        format!("1 machine of {cores} cores")
    } else {
        format!("{} machines of {cores} cores", bill.machines)
    }
}

/// The lines of a bill, an empty one first.
pub(super) fn text(bill: &Bill) -> Vec<String> {
    let total = &bill.total;
    let wide = bill.stages.iter().map(|stage| stage.name.chars().count()).fold(10, usize::max);
    let row = |name: &str, core_hours: f64, sent: u64, hours: f64| {
        format!("{name:wide$} {core_hours:>12.2} {:>10} {:>14}", bytes(sent), duration(hours * HOUR_S))
    };
    let mut lines = vec![
        String::new(),
        format!("what it costs, by prices of {}:", bill.prices.date),
        format!("{:wide$} {:>12} {:>10} {:>14}", "stage", "core-hours", "bytes", "time"),
    ];
    let stages = bill.stages.iter().map(|stage| row(&stage.name, stage.core_hours, stage.bytes, stage.hours));
    lines.extend(stages);
    lines.push(row("total", total.core_hours, total.bytes, total.hours));
    lines.push(format!(
        "time       of {} of the cores' time, the part that computes: share_used in the file of prices",
        percent(bill.prices.share_used)
    ));
    lines.push(format!(
        "machines   {} of each party; {:.2} core-hours paid, {:.2} of them computing",
        machines(bill),
        total.paid_core_hours,
        total.core_hours
    ));
    for usd in &total.usd {
        lines.push(format!(
            "dollars    {}: {:.2} on demand, {:.2} spot; {:.2} on demand if no core were held idle",
            usd.between.words(),
            usd.on_demand,
            usd.spot,
            usd.least
        ));
    }
    lines.extend(ots(bill));
    lines
}

/// What each kind of OT would cost, and how to have the cheapest.
fn ots(bill: &Bill) -> Vec<String> {
    let Some(cheapest) = bill.ots.iter().find(|ot| ot.cheapest) else { return Vec::new() };
    let head = BytePath::ALL.map(|path| format!("{:>18}", path.words())).concat();
    let row = |name: &str, total: &BillTotal| {
        let usd = BytePath::ALL.map(|path| format!("{:>18.2}", total.on_demand(path))).concat();
        format!("{name:12} {:>10} {:>14}{usd}", bytes(total.bytes), duration(total.hours * HOUR_S))
    };
    let mut lines = vec![
        String::new(),
        "dollars by what makes the OTs, cores on demand:".to_owned(),
        format!("{:12} {:>10} {:>14}{head}", "OT", "bytes", "time"),
    ];
    lines.extend(bill.ots.iter().map(|ot| row(&ot.ot, &ot.total)));
    lines.push(format!(
        "cheapest   {}: {}; a study has it that says ot = \"{}\" under [compute]",
        bill.between.words(),
        cheapest.ot,
        cheapest.ot
    ));
    lines
}
