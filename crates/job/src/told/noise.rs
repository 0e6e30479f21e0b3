//! How wide the noise of a program's numbers is, for people.

use crate::plan::{DerivedNoise, MechanismNoise, Plan};
use page::lines::{Fact, wrapped};
use page::numbers::{plain, short};
use privacy::ledger::PUBLIC;
use std::collections::BTreeSet;

/// Columns between numbers.
const GAP: usize = 3;
/// Least columns of a name.
const NAME: usize = 16;

/// What noise leaves of a program's numbers: of those that it derives a table, of others what each mechanism
/// adds; nothing of other studies.
pub fn noise_lines(plan: &Plan, columns: usize) -> Vec<String> {
    let of_derived = |number: usize| {
        plan.derived_noise.iter().any(|derived| derived.mechanisms.contains(&(number as u32)))
    };
    let others = plan.noise.iter().enumerate().filter(|(number, _)| !of_derived(*number));
    let mut lines: Vec<String> = others
        .flat_map(|(_, mechanism)| Fact::new("noise", of_mechanism(mechanism)).lines(columns))
        .collect();
    if !plan.derived_noise.is_empty() {
        lines.extend(table(plan, columns));
    }
    lines
}

/// What one mechanism of a program is charged, and what its noise leaves.
fn of_mechanism(of: &MechanismNoise) -> String {
    let MechanismNoise { name, to, outputs, rho, half_width } = of;
    let numbers = page::numbers::counted(*outputs as u64, "number");
    let (rho, half) = (short(*rho, 3), plain(*half_width, 3));
    format!(
        "{to}: {numbers} of {name}: rho {rho}, noise alone within {half} of what it counts, 95 % of times"
    )
}

/// Of each number its share of rho, and half of the interval that noise alone leaves.
fn table(plan: &Plan, columns: usize) -> Vec<String> {
    let head = ["", "groups", "rho", "+/-, even", "+/-, low", "+/-, rare"].map(str::to_owned);
    let mut paid = BTreeSet::new();
    let is_shared = |of: &DerivedNoise| {
        let new = of.mechanisms.iter().filter(|mechanism| paid.insert(**mechanism)).count();
        new == 0 && !of.mechanisms.is_empty()
    };
    let shared: Vec<bool> = plan.derived_noise.iter().map(is_shared).collect();
    let numbers = plan.derived_noise.iter().zip(&shared).map(|(of, shared)| cells(of, *shared));
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(numbers).collect();
    let wide = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let numbers: usize = (1..6).map(|at| GAP + wide(at)).sum();
    let name = wide(0).min(columns.saturating_sub(numbers + 2)).max(NAME);
    let values = plan.assumptions.get("values").map_or("", String::as_str);
    let free = match shared.contains(&true) {
        true => " Where rho is \"shared\", sums of earlier lines are used, at no further rho.",
        false => "",
    };
    let says = format!(
        "half of the 95 % interval that noise alone leaves of each number; chance comes on top, and `tacit \
         simulate` shows both on files.{free} If {values}:"
    );
    let mut lines = Fact::new("noise", says).lines(columns);
    for row in &rows {
        let mut names = wrapped(&row[0], name, "", "  ").into_iter();
        let mut line = format!("  {:name$}", names.next().unwrap_or_default());
        for (at, cell) in row.iter().enumerate().skip(1) {
            line += &format!("{:GAP$}{cell:>1$}", "", wide(at));
        }
        lines.push(line);
        lines.extend(names.map(|name| format!("  {name}")));
    }
    lines
}

fn cells(of: &DerivedNoise, shared: bool) -> [String; 6] {
    let unit = if of.unit.is_empty() { String::new() } else { format!(", {}", of.unit) };
    let half = |half: Option<f64>| half.map_or_else(|| "open".to_owned(), |half| plain(half, 2));
    let to = if of.to == PUBLIC { String::new() } else { format!(" ({})", of.to) };
    [
        format!("{}{unit}{to}", of.name),
        of.groups.to_string(),
        if shared { "shared".to_owned() } else { short(of.rho, 3) },
        half(of.noise),
        half(of.noise_low),
        half(of.noise_rare),
    ]
}
