//! The numbers of a report as one table, for spreadsheets and programs: CSV and Excel.
//!
//! Labels come from a study and its peers: none becomes a formula where a file is opened. Released numbers
//! are whole and unrounded, but in Excel, whose own numbers have 15 digits: longer ones are text there.

mod groups;
#[cfg(test)]
mod tests;

use self::groups::{LabelParts, ViewLabels};
use crate::wording::{self, shortened};
use crate::{CellView, DerivedView, LiftView, ProgramOutput, PublicReport, ResultView, RunReport, StudyInfo};
use base::Error;
use rust_xlsxwriter::{DocProperties, ExcelDateTime, Format, Workbook, Worksheet, XlsxError};
use serde_json::{Map, Value};

/// Titles of the columns of a lift study.
const LIFT_COLUMNS: &[&str] = &[
    "viewer",
    "family",
    "column",
    "group",
    "quantity",
    "arm",
    "value",
    "unit",
    "kind",
    "noise",
    "sigma",
    "low",
    "high",
    "level",
    "noise_half_width",
    "p_value",
    "holm",
    "refused",
];
/// Those of a program, which has no families and arms and refuses no cell.
const PROGRAM_COLUMNS: &[&str] = &[
    "viewer",
    "group",
    "quantity",
    "value",
    "unit",
    "kind",
    "noise",
    "sigma",
    "low",
    "high",
    "level",
    "noise_half_width",
    "p_value",
    "holm",
];
/// Behind them what a program's text asked, of which column, and a column for each that groups rows.
const ASKED_COLUMNS: &[&str] = &["asked", "of"];
/// Digits of what is computed, in CSV: more than noise leaves, without the last bits of a float.
const DIGITS: usize = 10;
/// Longest text of a cell: Excel takes 32,767 characters.
const TEXT_CHARS: usize = 1_000;
/// Digits that a number of Excel has.
const EXCEL_DIGITS: usize = 15;

/// A cell of the table.
#[derive(Clone, Debug, Default, PartialEq)]
enum Field {
    #[default]
    Empty,
    /// Words of ours, or of others.
    Text(String),
    /// In decimal, whole as it was released.
    Number(String),
    /// What was computed.
    Float(f64),
}

impl Field {
    fn text(text: &str) -> Self {
        if text.is_empty() { Self::Empty } else { Self::Text(shortened(text, TEXT_CHARS)) }
    }

    fn float(value: impl Into<Option<f64>>) -> Self {
        let value = value.into().filter(|value| value.is_finite());
        value.map_or(Self::Empty, Self::Float)
    }

    /// What a report has in decimal; anything else is text.
    fn decimal(text: &str) -> Self {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (whole, part) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if digits(whole) && digits(part) { Self::Number(text.to_owned()) } else { Self::text(text) }
    }

    /// In CSV, where a program takes what begins like a formula for one.
    fn csv(&self) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Number(number) => number.clone(),
            Self::Float(value) => rounded(*value).to_string(),
            Self::Text(text) => {
                // Behind a sign that separates fields elsewhere, too.
                let part = |part: &str| {
                    let formula = part
                        .trim_start()
                        .starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}']);
                    if formula { format!("'{part}") } else { part.to_owned() }
                };
                let text: String =
                    text.split_inclusive([',', ';', '\t', '|', '\n', '\r']).map(part).collect();
                match text.contains([',', '"', ';', '\n']) {
                    true => format!("\"{}\"", text.replace('"', "\"\"")),
                    false => text,
                }
            }
        }
    }

    /// A number that JSON does not hold as it is stays text.
    fn json(&self) -> Option<Value> {
        match self {
            Self::Empty => None,
            Self::Text(text) => Some(Value::from(text.as_str())),
            Self::Float(value) => Some(Value::from(*value)),
            Self::Number(number) => Some(match number.parse::<i64>() {
                Ok(whole) => Value::from(whole),
                Err(_) if is_whole(number) => Value::from(number.as_str()),
                Err(_) => number.parse::<f64>().map_or_else(|_| Value::from(number.as_str()), Value::from),
            }),
        }
    }

    fn write(&self, sheet: &mut Worksheet, row: u32, column: u16) -> Result<(), XlsxError> {
        match self {
            Self::Empty => {}
            Self::Text(text) => {
                sheet.write_string(row, column, text)?;
            }
            Self::Float(value) => {
                sheet.write_number(row, column, *value)?;
            }
            Self::Number(number) => {
                let digits = number.bytes().filter(u8::is_ascii_digit).count();
                match number.parse::<f64>() {
                    Ok(value) if digits <= EXCEL_DIGITS || !is_whole(number) => {
                        sheet.write_number(row, column, value)?
                    }
                    _ => sheet.write_string(row, column, number)?,
                };
            }
        }
        Ok(())
    }
}

/// To [`DIGITS`] digits: its shortest text says no more than these.
fn rounded(value: f64) -> f64 {
    format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value)
}

fn is_whole(number: &str) -> bool {
    !number.contains(['.', 'e'])
}

/// One number with what belongs to it; fields by the titles of the columns.
#[derive(Clone, Debug, Default)]
struct NumberRow {
    viewer: Field,
    family: Field,
    column: Field,
    group: Field,
    quantity: Field,
    arm: Field,
    value: Field,
    unit: Field,
    kind: Field,
    noise: Field,
    sigma: Field,
    ends: [Field; 2],
    level: Field,
    noise_half_width: Field,
    p_value: Field,
    holm: Field,
    refused: Field,
    asked: Field,
    of: Field,
    /// By the title of its column.
    groups: Vec<(String, Field)>,
}

impl NumberRow {
    fn field(&self, title: &str) -> &Field {
        match title {
            "viewer" => &self.viewer,
            "family" => &self.family,
            "column" => &self.column,
            "group" => &self.group,
            "quantity" => &self.quantity,
            "arm" => &self.arm,
            "value" => &self.value,
            "unit" => &self.unit,
            "kind" => &self.kind,
            "noise" => &self.noise,
            "sigma" => &self.sigma,
            "low" => &self.ends[0],
            "high" => &self.ends[1],
            "level" => &self.level,
            "noise_half_width" => &self.noise_half_width,
            "p_value" => &self.p_value,
            "holm" => &self.holm,
            "refused" => &self.refused,
            "asked" => &self.asked,
            "of" => &self.of,
            _ => self.groups.iter().find(|(name, _)| name == title).map_or(&Field::Empty, |(_, group)| group),
        }
    }
}

/// Every number that a report or a public result holds, a row each.
pub struct NumberTable {
    study: StudyInfo,
    columns: Vec<String>,
    rows: Vec<NumberRow>,
}

impl NumberTable {
    /// What everybody sees, and behind it what this party alone sees.
    #[must_use]
    pub fn of(report: &RunReport) -> Self {
        let public = report.public.iter().flat_map(|view| rows("everybody", view));
        let own = (!report.is_public()).then(|| rows(&report.party, &report.view));
        let rows: Vec<NumberRow> = public.chain(own.into_iter().flatten()).collect();
        Self { study: report.study.clone(), columns: columns(&report.view, &rows), rows }
    }

    /// What may be passed on.
    #[must_use]
    pub fn of_public(public: &PublicReport) -> Self {
        let rows = rows("everybody", &public.public);
        Self { study: public.study.clone(), columns: columns(&public.public, &rows), rows }
    }

    /// Lines of comma-separated cells; the first one has the titles.
    #[must_use]
    pub fn csv(&self) -> String {
        let row = |row: &NumberRow| {
            let cells: Vec<String> = self.columns.iter().map(|title| row.field(title).csv()).collect();
            cells.join(",") + "\n"
        };
        let rows: String = self.rows.iter().map(row).collect();
        format!("{}\n{rows}", self.columns.join(","))
    }

    /// Titles of the columns, and an object of each row with what is not empty in it.
    #[must_use]
    pub fn objects(&self) -> (&[String], Vec<Map<String, Value>>) {
        let row = |row: &NumberRow| {
            let cell = |title: &String| Some((title.clone(), row.field(title).json()?));
            self.columns.iter().filter_map(cell).collect()
        };
        (&self.columns, self.rows.iter().map(row).collect())
    }

    /// A workbook: a sheet of numbers, and one that says of which study these are. The same numbers give the
    /// same bytes.
    ///
    /// # Errors
    /// When a sheet of Excel cannot hold that many.
    pub fn excel(&self) -> Result<Vec<u8>, Error> {
        self.workbook().map_err(|e| Error::input(format!("the numbers do not fit an Excel file: {e}")))
    }

    fn workbook(&self) -> Result<Vec<u8>, XlsxError> {
        let mut book = Workbook::new();
        let title = shortened(&self.study.title, TEXT_CHARS);
        // A file that says when it was written would differ between parties.
        let properties = DocProperties::new().set_creation_datetime(&ExcelDateTime::from_ymd(2000, 1, 1)?);
        book.set_properties(&properties);
        let bold = Format::new().set_bold();
        let numbers = book.add_worksheet();
        numbers.set_name("numbers")?.set_freeze_panes(1, 0)?;
        for (column, title) in (0..).zip(&self.columns) {
            numbers.write_string_with_format(0, column, title, &bold)?;
        }
        for (place, row) in (1..).zip(&self.rows) {
            for (column, title) in (0..).zip(&self.columns) {
                row.field(title).write(numbers, place, column)?;
            }
        }
        numbers.autofit();
        let about = book.add_worksheet();
        about.set_name("study")?;
        let facts = [
            ("title", &title),
            ("study", &shortened(&self.study.name, TEXT_CHARS)),
            ("hash", &shortened(&self.study.full_hash, TEXT_CHARS)),
            ("program", &shortened(&self.study.program, TEXT_CHARS)),
        ];
        for (row, (name, value)) in (0..).zip(facts) {
            about.write_string_with_format(row, 0, name, &bold)?;
            about.write_string(row, 1, value)?;
        }
        about.autofit();
        book.save_to_buffer()
    }
}

fn columns(view: &ResultView, rows: &[NumberRow]) -> Vec<String> {
    let titles = |titles: &[&str]| titles.iter().map(|title| (*title).to_owned()).collect::<Vec<_>>();
    let mut all = match view {
        ResultView::Lift(_) => return titles(LIFT_COLUMNS),
        ResultView::Program { derived, .. } if derived.is_empty() => return titles(PROGRAM_COLUMNS),
        ResultView::Program { .. } => titles(&[PROGRAM_COLUMNS, ASKED_COLUMNS].concat()),
    };
    for (title, _) in rows.iter().flat_map(|row| &row.groups) {
        if !all.contains(title) {
            all.push(title.clone());
        }
    }
    all
}

/// The title of a column that groups rows: its name, where that is no other title.
fn group_title(name: String) -> String {
    match [PROGRAM_COLUMNS, ASKED_COLUMNS].concat().contains(&&*name) {
        true => format!("by {name}"),
        false => name,
    }
}

fn rows(viewer: &str, view: &ResultView) -> Vec<NumberRow> {
    let mut rows: Vec<NumberRow> = match view {
        ResultView::Lift(view) => view.cells.iter().flat_map(|cell| of_cell(view, cell)).collect(),
        ResultView::Program { outputs, derived, .. } => {
            let labels = ViewLabels::new(derived.iter().map(|derived| &*derived.label));
            let told = derived.iter().flat_map(|derived| of_derived(derived, labels.parts(&derived.label)));
            told.chain(outputs.iter().map(of_output)).collect()
        }
    };
    rows.iter_mut().for_each(|row| row.viewer = Field::text(viewer));
    rows
}

fn arm(view: &LiftView, arm: Option<&str>) -> Field {
    match arm {
        Some("test") => Field::text(&view.test),
        Some("control") => Field::text(&view.control),
        other => Field::text(other.unwrap_or("both")),
    }
}

/// What is computed for a cell, or why it is refused; and every number released for it.
fn of_cell(view: &LiftView, cell: &CellView) -> Vec<NumberRow> {
    let noun = wording::noun(view);
    let of = |quantity: &str, unit: &str| NumberRow {
        family: Field::text(&cell.family),
        column: cell.column.as_deref().map_or(Field::Empty, Field::text),
        group: Field::text(&cell.label),
        quantity: Field::text(quantity),
        unit: Field::text(unit),
        ..NumberRow::default()
    };
    let per_person = format!("{noun} per person");
    let estimated = |quantity: &str, unit: &str| NumberRow {
        kind: Field::text("estimate"),
        level: Field::float(view.confidence),
        ..of(quantity, unit)
    };
    let Some(estimate) = &cell.estimate else {
        let why = cell.refused.as_deref().unwrap_or("no reason given");
        let refused = Field::text(why);
        let kind = Field::text("refused");
        return vec![NumberRow {
            kind,
            refused,
            arm: arm(view, None),
            ..of("difference of means", &per_person)
        }];
    };
    let mut rows = vec![NumberRow {
        arm: arm(view, None),
        value: Field::float(estimate.lift),
        ends: estimate.interval.map(Field::float),
        noise_half_width: Field::float(0.5 * (estimate.noise_interval[1] - estimate.noise_interval[0])),
        p_value: Field::float(estimate.p_value),
        holm: Field::float(cell.holm),
        ..estimated("difference of means", &per_person)
    }];
    let rates = estimate.rates.into_iter().flatten().zip(["test", "control"]);
    rows.extend(rates.map(|(rate, name)| NumberRow {
        arm: arm(view, Some(name)),
        value: Field::float(rate.mean),
        ends: [rate.mean - rate.half_width, rate.mean + rate.half_width].map(Field::float),
        noise_half_width: Field::float(rate.noise_half_width),
        ..estimated("mean", &per_person)
    }));
    rows.extend(estimate.relative.map(|relative| NumberRow {
        arm: arm(view, None),
        value: Field::float(relative),
        level: Field::Empty,
        ..estimated("relative difference", "")
    }));
    rows.extend(cell.counts.iter().map(|count| NumberRow {
        arm: arm(view, count.arm.as_deref()),
        value: Field::decimal(&count.value),
        kind: Field::text(if count.derived { "computed" } else { "released" }),
        noise: Field::text(if count.sigma.is_some() { "noised" } else { "exact" }),
        sigma: Field::float(count.sigma),
        ..of(&wording::quantity(&count.quantity), &wording::unit_of(view, &count.quantity))
    }));
    rows
}

/// A row for each interval: a number needed to treat may have two.
fn of_derived(derived: &DerivedView, parts: LabelParts) -> Vec<NumberRow> {
    let LabelParts { asked, of, groups } = parts;
    let groups = groups.into_iter().map(|(name, group)| (group_title(name), Field::text(&group)));
    let groups: Vec<(String, Field)> = groups.collect();
    let row = |ends: [Option<f64>; 2]| NumberRow {
        group: Field::text(&derived.label),
        quantity: Field::text(&derived.statistic),
        value: Field::float(derived.value),
        unit: Field::text(&derived.unit),
        kind: Field::text("estimate"),
        noise: Field::text("noised"),
        ends: ends.map(Field::float),
        level: Field::float(derived.level),
        noise_half_width: Field::float(derived.noise),
        p_value: Field::float(derived.p_value),
        holm: Field::float(derived.holm),
        asked: Field::text(&asked),
        of: Field::text(&of),
        groups: groups.clone(),
        ..NumberRow::default()
    };
    match derived.intervals.as_slice() {
        [] => vec![row([None; 2])],
        some => some.iter().map(|ends| row(*ends)).collect(),
    }
}

fn of_output(output: &ProgramOutput) -> NumberRow {
    let value = match &output.key {
        Some(key) => Field::text(key),
        None => Field::decimal(&output.value),
    };
    NumberRow {
        group: Field::text(&output.label),
        quantity: Field::text(if output.key.is_some() { "key" } else { "output" }),
        value,
        unit: Field::text(&wording::parts_of(output.scale, &output.unit)),
        kind: Field::text("released"),
        noise: Field::text(if output.is_exact() { "exact" } else { "noised" }),
        sigma: output.sigma.as_deref().map_or(Field::Empty, sigma),
        ..NumberRow::default()
    }
}

/// A sigma has fewer digits than the text that reports have of it.
fn sigma(text: &str) -> Field {
    text.parse::<f64>().map_or_else(|_| Field::text(text), Field::float)
}
