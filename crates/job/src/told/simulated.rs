//! A simulation for people.

use crate::simulate::{SimulatedNumber, SimulatedPart, SimulatedView, Simulation};
use page::lines::{Fact, wrapped};
use page::numbers::{count, counted, percent, short};
use std::ops::Range;

/// Cells of a number's line, its name first.
type NumberCells = [String; 8];

/// Everything, the warning first, in lines of so many columns.
#[must_use]
pub fn text(simulation: &Simulation, columns: usize) -> String {
    let mut lines = wrapped(&simulation.warning, columns, "", "");
    lines.push(String::new());
    lines.extend(wrapped(&format!("{}: {}", simulation.study, simulation.title), columns, "", ""));
    let fact = |name, fact: &str| Fact::new(name, fact).lines(columns);
    for party in &simulation.parties {
        let file =
            party.data.as_ref().map_or_else(|| "made up".to_owned(), |path| path.display().to_string());
        let rows = counted(party.rows, "row");
        lines.extend(fact("files", &format!("{}: {file}, {rows}", party.name)));
    }
    let drawn = simulation.runs.iter().flat_map(|run| &run.views).any(is_drawn);
    let noise = match (simulation.draws, drawn) {
        (0, _) => "off: exact values alone".to_owned(),
        (_, false) => "none in this study".to_owned(),
        (draws, true) => format!("{} drawn, seed {}", counted(draws, "release"), simulation.seed),
    };
    lines.extend(fact("noise", &noise));
    for run in &simulation.runs {
        if simulation.runs.len() > 1 {
            lines.push(String::new());
            lines.extend(wrapped(&format!("Run of {}", run.parties.join(" with ")), columns, "", ""));
        }
        let joined = counted(run.joined, "joined row");
        lines.extend(fact("match", &format!("{joined}, of which {} all have", count(run.shared))));
        lines.extend(run.notes.iter().flat_map(|note| fact("note", note)));
        run.views.iter().for_each(|view| lines.extend(of_view(view, columns)));
    }
    if drawn {
        lines.extend(legend(columns));
    }
    lines.join("\n")
}

/// Whether any of its numbers is noised, and releases were drawn.
fn is_drawn(view: &SimulatedView) -> bool {
    view.parts.iter().flat_map(|part| &part.numbers).any(|number| number.spread.is_some())
}

/// Identifiers of a list that are shown.
const LISTED: usize = 20;

fn of_view(view: &SimulatedView, columns: usize) -> Vec<String> {
    let who = if view.viewer == privacy::ledger::PUBLIC { "everybody" } else { &view.viewer };
    let charge = match view.rho > 0.0 {
        true => format!(", at rho {} if it were run", short(view.rho, 4)),
        false => ", without noise".to_owned(),
    };
    let mut lines = vec![String::new()];
    lines.extend(wrapped(&format!("What {who} would see{charge}"), columns, "", ""));
    let head =
        ["", "exact", "one release", "its interval", "95 % of releases", "mean error", "deviation", "held"];
    let shown = if is_drawn(view) { head.len() } else { 2 };
    let mut rows: Vec<(Option<String>, NumberCells)> = vec![(None, head.map(str::to_owned))];
    let is_behind = |number: &&SimulatedNumber| number.behind;
    let is_table = |part: &&SimulatedPart| {
        part.refused.is_some() || part.numbers.is_empty() || !part.numbers.iter().all(|n| n.behind)
    };
    for part in view.parts.iter().filter(is_table) {
        rows.push((Some(title(part)), Default::default()));
        rows.extend(
            part.numbers.iter().filter(|number| !is_behind(number)).map(|number| (None, cells(number))),
        );
    }
    let table = NumberTable::of(&rows, shown, columns);
    for (at, block) in table.blocks().into_iter().enumerate() {
        if at > 0 {
            lines.push(String::new());
        }
        // A line of a block below has something in it.
        let empty = |(title, cells): &&(Option<String>, NumberCells)| {
            at > 0 && title.is_none() && cells[block.clone()].iter().all(String::is_empty)
        };
        for row in rows.iter().filter(|row| !empty(row)) {
            lines.extend(table.lines(row, block.clone()));
        }
    }
    let behind = view.parts.iter().flat_map(|part| &part.numbers).filter(is_behind).count() as u64;
    if behind > 0 {
        let sums = counted(behind, "sum");
        let text = format!("{sums} from which these are computed: --json has them.");
        lines.extend(wrapped(&text, columns, "  ", "    "));
    }
    for list in &view.lists {
        let shown = list.keys[..list.keys.len().min(LISTED)].join(", ");
        let more = match list.keys.len().saturating_sub(LISTED) as u64 + list.others {
            0 => String::new(),
            more => format!(" and {} more", count(more)),
        };
        lines.extend(wrapped(&format!("{}: {shown}{more}", list.label), columns, "  ", "    "));
    }
    lines
}

/// Where the cells of a table of numbers stand. Columns that have no room beside the others follow in a block
/// below, and names that are too long go on in further lines.
struct NumberTable {
    /// Of each column, that of names first.
    widths: Vec<usize>,
    columns: usize,
}

/// Before names, and between columns.
const MARGIN: usize = 4;
const GAP: usize = 3;

impl NumberTable {
    fn of(rows: &[(Option<String>, NumberCells)], shown: usize, columns: usize) -> Self {
        let width = |at: usize| rows.iter().map(|(_, cells)| cells[at].chars().count()).max().unwrap_or(0);
        let mut widths: Vec<usize> = (0..shown).map(width).collect();
        // Where all fits no name is cut into lines; else the widest cell has room beside names.
        let all = MARGIN + widths.iter().sum::<usize>() + GAP * (shown - 1);
        if all > columns {
            let widest = widths[1..].iter().copied().max().unwrap_or(0);
            let room = columns.saturating_sub(MARGIN + GAP + widest);
            widths[0] = widths[0].min(room.min(columns / 2).max(columns / 4));
        }
        Self { widths, columns }
    }

    /// The columns of each block.
    fn blocks(&self) -> Vec<Range<usize>> {
        let (mut blocks, mut begin, mut used) = (Vec::new(), 1, MARGIN + self.widths[0]);
        for (at, width) in self.widths.iter().enumerate().skip(1) {
            if at > begin && used + GAP + width > self.columns {
                blocks.push(begin..at);
                (begin, used) = (at, MARGIN + self.widths[0]);
            }
            used += GAP + width;
        }
        blocks.push(begin..self.widths.len());
        blocks
    }

    /// A row in a block.
    fn lines(&self, (title, cells): &(Option<String>, NumberCells), block: Range<usize>) -> Vec<String> {
        if let Some(title) = title {
            return wrapped(title, self.columns, "  ", "      ");
        }
        let mut names = wrapped(&cells[0], self.widths[0], "", "  ").into_iter();
        let name = names.next().unwrap_or_default();
        let mut line = format!("{:MARGIN$}{name:1$}", "", self.widths[0]);
        for at in block {
            line += &format!("{:GAP$}{:>2$}", "", cells[at], self.widths[at]);
        }
        let further = names.map(|name| format!("{:MARGIN$}{name}", ""));
        [line.trim_end().to_owned()].into_iter().chain(further).collect()
    }
}

/// A part's name, and how often nothing of it would be shown.
fn title(part: &SimulatedPart) -> String {
    let refused = part.refused.as_ref().map(|why| format!(": this release shows nothing of it: {why}"));
    let share = part.refused_share.filter(|share| *share > 0.0);
    let share = share.map(|share| format!("; refused in {} of the releases", percent(share)));
    [Some(part.title.clone()), refused, share].into_iter().flatten().collect()
}

fn cells(number: &SimulatedNumber) -> NumberCells {
    let unit = if number.unit.is_empty() { String::new() } else { format!(", {}", number.unit) };
    let mut cells = NumberCells::default();
    (cells[0], cells[1]) = (number.label.clone() + &unit, number.exact_words());
    let Some(spread) = &number.spread else { return cells };
    cells[2] = number.released_words();
    cells[3] = number.interval_words();
    cells[4] = number.spread_words();
    cells[5] = number.apart(spread.mean_error);
    cells[6] = number.apart(spread.deviation);
    cells[7] = spread.interval_held.or(spread.noise_held).map_or_else(String::new, percent);
    cells
}

fn legend(columns: usize) -> Vec<String> {
    let lines = [
        ("exact", "without noise"),
        ("one release", "as a run would show it, and its interval"),
        ("95 % of releases", "where the middle 95 of 100 releases lie"),
        ("mean error", "the mean of all releases, less the exact value"),
        ("deviation", "the standard deviation of all releases"),
        (
            "held",
            "share of releases whose interval holds the exact value of these files: chance is in it besides \
             noise, so this may be above its level; of a number without an interval it is that of 95 % of \
             its noise",
        ),
    ];
    let line = |(name, what): (&str, &str)| wrapped(what, columns, &format!("{name:<19}"), &" ".repeat(19));
    std::iter::once(String::new()).chain(lines.into_iter().flat_map(line)).collect()
}
