//! What is asked of the columns of a form, as lines of a program.

use super::{CellsFilled, FormColumn, QUESTIONS, signed, written};
use crate::lift_form::FormReader;
use program::asking::{BoundedName, QuestionLine};
use release::rational::{Rational, decimal, ratio, shown};

/// How a question becomes a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AskedShape {
    /// None.
    Nothing,
    /// Statistics of numbers, or of yes and no.
    Statistics(&'static str),
    /// The same of yes and no alone.
    OfBits(&'static str),
    Histogram,
    Quantiles(&'static str),
    /// With one other column.
    Association(&'static str),
    /// On others.
    Regression,
}

/// A question of the form.
pub struct FormQuestion {
    /// What is sent.
    pub name: &'static str,
    /// What people read.
    pub shown: &'static str,
    shape: AskedShape,
    /// Whether it compares groups.
    compares: bool,
}

impl FormQuestion {
    /// The words with which its line begins.
    pub(super) fn words(&self) -> &'static str {
        match self.shape {
            AskedShape::Nothing => "",
            AskedShape::Statistics(words)
            | AskedShape::OfBits(words)
            | AskedShape::Quantiles(words)
            | AskedShape::Association(words) => words,
            AskedShape::Histogram => "histogram",
            AskedShape::Regression => "regression",
        }
    }
}

const fn of(name: &'static str, shown: &'static str, shape: AskedShape) -> FormQuestion {
    FormQuestion { name, shown, shape, compares: false }
}

const fn comparing(name: &'static str, shown: &'static str, shape: AskedShape) -> FormQuestion {
    FormQuestion { name, shown, shape, compares: true }
}

/// What can be asked.
pub const ASKED: [FormQuestion; 16] = [
    of("none", "nothing", AskedShape::Nothing),
    of("mean", "the mean", AskedShape::Statistics("mean")),
    of("share", "the share of yes", AskedShape::OfBits("share")),
    of("sum", "the sum", AskedShape::Statistics("sum")),
    of("variance", "the variance", AskedShape::Statistics("variance")),
    of("deviation", "the standard deviation", AskedShape::Statistics("standard-deviation")),
    of("histogram", "how many lie where (histogram)", AskedShape::Histogram),
    of("median", "the median", AskedShape::Quantiles("median")),
    of("quartiles", "the median and the quartiles", AskedShape::Quantiles("quantile 1/4 1/2 3/4")),
    of("tenths", "the lowest and the highest tenth", AskedShape::Quantiles("quantile 1/10 9/10")),
    comparing(
        "difference",
        "the mean, and its difference between groups",
        AskedShape::Statistics("mean difference"),
    ),
    comparing("ratio", "the mean, and its ratio between groups", AskedShape::Statistics("mean ratio")),
    comparing("risk", RISK, AskedShape::OfBits("share risk-difference risk-ratio odds-ratio")),
    of("covariance", "its covariance with another column", AskedShape::Association("covariance")),
    of("correlation", "its correlation with another column", AskedShape::Association("correlation")),
    of("regression", "how it hangs on other columns (least squares)", AskedShape::Regression),
];
const RISK: &str = "the share of yes, its difference and ratios between groups";

/// Of whom a question is asked: what is sent, and what people read.
pub const GROUPED: [(&str, &str); 2] = [("each", "each group by itself"), ("all", "all people together")];

/// The fields of groups, of their edges, and what people read.
pub const GROUPS: [(&str, &str, &str); 2] =
    [("by", "by-edges", "Groups by"), ("by-2", "by-2-edges", "And by")];

/// Bins of a histogram and of quantiles where nobody says edges.
const BINS: [u32; 2] = [10, 20];
/// Most columns that one hangs on.
const ON: usize = 6;

/// All lines behind `ask`.
pub(super) fn lines(form: &mut FormReader<'_>, columns: &[FormColumn<'_>]) -> Vec<String> {
    let by = groups(form, columns);
    let mut lines: Vec<String> = Vec::new();
    lines.extend(by.as_ref().map(|by| format!("by {by}")));
    if form.plain("count") == "yes" {
        lines.push(with_within(form, "count-within", QuestionLine::Count.to_string()));
    }
    let mut apart = true;
    for place in 1..=QUESTIONS {
        let label = format!("Question {place}");
        let chosen = form.plain(&format!("ask-{place}"));
        let Some(asked) = ASKED.iter().find(|asked| asked.name == chosen) else { continue };
        if asked.shape == AskedShape::Nothing {
            continue;
        }
        let each = form.plain(&format!("groups-{place}")) != "all";
        if asked.compares && (by.is_none() || !each) {
            let name = if by.is_none() { "by".to_owned() } else { format!("groups-{place}") };
            form.say(&name, &label, "it compares groups: say by which column, and ask it of each group.");
        }
        let Some(line) = question(form, asked.shape, place, columns) else { continue };
        if let Some(by) = by.as_ref().filter(|_| apart != each) {
            lines.push(if each { format!("by {by}") } else { "by all".to_owned() });
            apart = each;
        }
        lines.push(line);
    }
    if lines.iter().all(|line| line.starts_with("by ")) && form.wrong.is_empty() {
        form.say("ask-1", "Question 1", "choose what is asked, or count people.");
    }
    lines
}

/// A line that is to be so exact, where somebody says how exact.
fn with_within(form: &mut FormReader<'_>, name: &str, line: String) -> String {
    let said = form.plain(name);
    if said.is_empty() {
        return line;
    }
    match decimal(said).filter(|within| *within > Rational::default()) {
        Some(within) => format!("{line} within {}", shown(&within)),
        None => {
            form.say(name, "Give or take", "write a number above 0, such as 50.");
            line
        }
    }
}

/// The column that a text names, as its file calls it, or by its place where both files call one so.
fn named<'c, 'a>(
    form: &mut FormReader<'_>,
    (name, label): (&str, &str),
    said: &str,
    columns: &'c [FormColumn<'a>],
) -> Option<&'c FormColumn<'a>> {
    let mut found = columns.iter().filter(|column| column.file == said || column.name == said);
    match (found.next(), found.next()) {
        (Some(one), None) => Some(one),
        (None, _) => {
            let there: Vec<&str> = columns.iter().map(|column| column.file).collect();
            form.say(name, label, format!("name one of the columns above: {}.", there.join(", ")));
            None
        }
        (Some(_), Some(_)) => {
            let both = columns.iter().filter(|column| column.file == said);
            let both: Vec<&str> = both.map(|column| column.name.as_str()).collect();
            form.say(name, label, format!("both files have it: write {}.", both.join(" or ")));
            None
        }
    }
}

/// What behind `by` stands, where somebody names a column.
fn groups(form: &mut FormReader<'_>, columns: &[FormColumn<'_>]) -> Option<String> {
    let mut all = Vec::new();
    for (name, edges_name, label) in GROUPS {
        let said = form.plain(name);
        if said.is_empty() {
            continue;
        }
        let Some(column) = named(form, (name, label), said, columns) else { continue };
        let edges = match &column.holds {
            CellsFilled::Bit | CellsFilled::Labels => Vec::new(),
            CellsFilled::Numbers { .. } if form.plain(edges_name).is_empty() => {
                let said = "it has numbers: write the edges of its groups, such as 18 40 65 90.";
                form.say(edges_name, &format!("{label}, edges"), said);
                continue;
            }
            CellsFilled::Numbers { .. } => edges(form, edges_name, &format!("{label}, edges")),
        };
        all.push(match edges.is_empty() {
            true => column.name.clone(),
            false => format!("{} edges {}", column.name, edges.join(" ")),
        });
    }
    (!all.is_empty()).then(|| all.join(" and "))
}

/// Numbers that ascend, with blanks or commas between them.
fn edges(form: &mut FormReader<'_>, name: &str, label: &str) -> Vec<String> {
    let said = form.plain(name);
    let parts = said.split([' ', ',', ';']).filter(|part| !part.is_empty());
    let all: Option<Vec<Rational>> = parts.map(signed).collect();
    match all.filter(|all| all.len() > 1 && all.is_sorted_by(|a, b| a < b)) {
        Some(all) => all.iter().map(written).collect(),
        None => {
            form.say(name, label, "write two numbers or more, the least first: 0 50 100 200.");
            Vec::new()
        }
    }
}

/// So many bins alike between the ends of a column, cut to what its cells can be.
fn alike([low, high]: &[Rational; 2], parts: u32, bins: u32) -> Vec<String> {
    let at = |bin: u32| {
        let exact = low + (high - low) * ratio(bin, bins);
        let cut = (exact * ratio(parts, 1)).floor() / ratio(parts, 1);
        // The lower end may have finer parts than its cells.
        if cut < *low { low.clone() } else { cut }
    };
    let mut all: Vec<Rational> = (0..bins).map(at).chain([high.clone()]).collect();
    all.dedup();
    all.iter().map(written).collect()
}

fn bounded<'c>(column: &'c FormColumn<'_>) -> BoundedName<'c> {
    let between = match &column.holds {
        CellsFilled::Numbers { written, .. } => Some(written),
        CellsFilled::Bit | CellsFilled::Labels => None,
    };
    BoundedName { name: &column.name, between }
}

/// The line of a question; nothing where something is wrong with it.
fn question(
    form: &mut FormReader<'_>,
    shape: AskedShape,
    place: usize,
    columns: &[FormColumn<'_>],
) -> Option<String> {
    let field = |what: &str| format!("{what}-{place}");
    let label = format!("Question {place}");
    let said = form.plain(&field("of"));
    if said.is_empty() {
        form.say(&field("of"), &label, "name the column that it is of.");
        return None;
    }
    let column = named(form, (&field("of"), &label), said, columns)?;
    let is_numbers = matches!(column.holds, CellsFilled::Numbers { .. });
    if matches!(column.holds, CellsFilled::Labels) && shape != AskedShape::Histogram {
        let why = "it has labels and no such number: ask how many have which, or fill in Groups by.";
        form.say(&field("of"), &label, why);
        return None;
    }
    let line = match shape {
        AskedShape::Nothing => return None,
        AskedShape::OfBits(_) if is_numbers => {
            form.say(&field("of"), &label, "a share is of a column of yes and no: ask for its mean.");
            return None;
        }
        AskedShape::Quantiles(_) if !is_numbers => {
            form.say(&field("of"), &label, "a median is of numbers: ask for the share of yes.");
            return None;
        }
        AskedShape::Statistics("sum") => {
            let line = QuestionLine::Statistics("sum", bounded(column)).to_string();
            return Some(with_within(form, &field("within"), line));
        }
        AskedShape::Statistics(words) | AskedShape::OfBits(words) => {
            QuestionLine::Statistics(words, bounded(column)).to_string()
        }
        AskedShape::Histogram => {
            let edges = bins(form, place, column, BINS[0]);
            let line = QuestionLine::Histogram(&column.name, &edges).to_string();
            return Some(with_within(form, &field("within"), line));
        }
        AskedShape::Quantiles(words) => {
            let edges = bins(form, place, column, BINS[1]);
            QuestionLine::Quantiles(words, &column.name, &edges).to_string()
        }
        AskedShape::Association(word) => {
            let with = others(form, place, columns, 1)?;
            QuestionLine::Association(word, [bounded(column), bounded(with[0])]).to_string()
        }
        AskedShape::Regression => {
            let on = others(form, place, columns, ON)?;
            QuestionLine::Regression(bounded(column), on.into_iter().map(bounded).collect()).to_string()
        }
    };
    Some(line)
}

/// Edges of a question: those that somebody says, or bins alike; none of a column without numbers.
fn bins(form: &mut FormReader<'_>, place: usize, column: &FormColumn<'_>, bins: u32) -> Vec<String> {
    let name = format!("edges-{place}");
    match &column.holds {
        CellsFilled::Bit | CellsFilled::Labels => Vec::new(),
        CellsFilled::Numbers { ends, parts, .. } if form.plain(&name).is_empty() => alike(ends, *parts, bins),
        CellsFilled::Numbers { .. } => edges(form, &name, &format!("Question {place}, edges")),
    }
}

/// The other columns of a question.
fn others<'c, 'a>(
    form: &mut FormReader<'_>,
    place: usize,
    columns: &'c [FormColumn<'a>],
    most: usize,
) -> Option<Vec<&'c FormColumn<'a>>> {
    let (name, label) = (format!("with-{place}"), format!("Question {place}, other columns"));
    let said = form.plain(&name);
    let names: Vec<&str> = said.split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
    if names.is_empty() || names.len() > most {
        let said = match most {
            1 => "name the other column.".to_owned(),
            most => format!("name one to {most} columns, with commas between."),
        };
        form.say(&name, &label, said);
        return None;
    }
    let found: Vec<_> = names.iter().filter_map(|one| named(form, (&name, &label), one, columns)).collect();
    if found.iter().any(|column| matches!(column.holds, CellsFilled::Labels)) {
        form.say(&name, &label, "a column of labels has no numbers.");
        return None;
    }
    (found.len() == names.len()).then_some(found)
}
