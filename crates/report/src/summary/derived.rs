//! What a program derives, on a terminal, and the noised sums behind it.

use super::{SummaryText, line, paragraph, widest};
use crate::wording::{self, DerivedGroup};
use crate::{DerivedView, ProgramOutput, ResultView, RunReport};
use page::lines::wrapped;

/// Columns of the name and of the value of a number that a program derives, at least.
const NAME_LEAST: usize = 24;
const VALUE_LEAST: usize = 5;
/// Columns of an interval for which there is room behind the numbers; longer ones go under them.
const INTERVAL_MOST: usize = 30;
/// Columns of what stands beside the names of noised sums.
const SUMS_WIDTH: usize = 36;
/// Columns that the numbers have at least; narrower terminals break their lines where they like.
const TABLE_WIDTH: usize = 76;

/// What a program derives, group by group, and what the intervals cover.
pub(super) fn table(out: &mut SummaryText, derived: &[DerivedView]) {
    let groups = wording::derived_groups(derived);
    if groups.is_empty() {
        return;
    }
    let widths = DerivedWidths::of(&groups, out.columns);
    line(out, &format!("{}   {}", widths.row("  Result", "value", "noise +/-"), wording::level(derived)));
    for group in &groups {
        let title = wording::capital(&group.title());
        // A number that is its group has no name of its own: it stands beside the title.
        let is_group = group.numbers[0].name.is_empty();
        if !is_group {
            paragraph(out, "  ", &title);
        }
        for number in &group.numbers {
            let (name, indent) = if is_group { (&title, "  ") } else { (&number.name, "    ") };
            let names = wrapped(name, widths.name, indent, &format!("{indent}  "));
            let mut text = widths.row(&names[0], &number.value, &number.noise);
            let mut under: Vec<String> = Vec::new();
            let tested = number.tests.as_ref().map(|[own, holm]| format!("p {own}, Holm {holm}"));
            // What does not fit behind the numbers goes under them.
            for part in std::iter::once(number.interval.clone()).chain(tested) {
                let last = under.last_mut().unwrap_or(&mut text);
                let whole = format!("{last}   {part}");
                if whole.chars().count() <= out.columns {
                    *last = whole;
                } else {
                    under.push(format!("      {part}"));
                }
            }
            line(out, &text);
            names[1..].iter().chain(&under).for_each(|text| line(out, text));
        }
    }
    wording::covered(derived).iter().for_each(|note| paragraph(out, "  ", note));
}

/// Columns of the names of derived numbers, of their values and of their noise.
struct DerivedWidths {
    name: usize,
    value: usize,
    noise: usize,
}

impl DerivedWidths {
    /// So that values, noise and intervals of usual length have room behind names, and longer names go on in
    /// further lines.
    fn of(groups: &[DerivedGroup<'_>], columns: usize) -> Self {
        let numbers = || groups.iter().flat_map(|group| &group.numbers);
        let value = widest(numbers().map(|number| &number.value), VALUE_LEAST);
        let noise = widest(numbers().map(|number| &number.noise), "noise +/-".len());
        let intervals = numbers().map(|number| number.interval.chars().count());
        let interval = intervals.filter(|wide| *wide <= INTERVAL_MOST).max().unwrap_or(INTERVAL_MOST);
        let named = |group: &DerivedGroup<'_>| match group.numbers[0].name.is_empty() {
            true => group.title().chars().count() + 2,
            false => widest(group.numbers.iter().map(|number| &number.name), 0) + 4,
        };
        let room = columns.saturating_sub(value + noise + interval + 5);
        let name = groups.iter().map(named).max().unwrap_or(0).min(room).max(NAME_LEAST);
        Self { name, value, noise }
    }

    fn row(&self, name: &str, value: &str, noise: &str) -> String {
        let Self { name: names, value: values, noise: noises } = self;
        format!("{name:<names$} {value:>values$} {noise:>noises$}")
    }
}

/// The noised sums from which a program's results are computed, those alike in a line.
pub(super) fn sums_behind(out: &mut SummaryText, report: &RunReport) {
    let of = |view: &ResultView| match view {
        ResultView::Program { outputs, derived, .. } => wording::behind(outputs, derived).0,
        ResultView::Lift(_) => Vec::new(),
    };
    let own = (!report.is_public()).then_some(&report.view);
    let sums: Vec<ProgramOutput> = report.public.iter().chain(own).flat_map(of).collect();
    if sums.is_empty() {
        return;
    }
    line(out, &format!("  {}, by name; each is in report.json:", wording::BEHIND));
    let told = wording::sums_told(&sums);
    let width = widest(told.iter().map(|[name, ..]| name), 0).min(out.columns.max(TABLE_WIDTH) - SUMS_WIDTH);
    let row = |name: &str, numbers: &str, sigma: &str| format!("    {name:<width$} {numbers:>8}   {sigma}");
    line(out, &row("", "numbers", "noise sigma"));
    for [name, numbers, sigma] in &told {
        let names = wrapped(name, width, "", "  ");
        line(out, &row(&names[0], numbers, sigma));
        names[1..].iter().for_each(|name| line(out, &format!("    {name}")));
    }
}
