//! The publisher's rows: identifier, arm, opportunity, and optionally impressions and a breakdown.

use super::complaints::Complaints;
use super::gather::{LineReader, SpoolRoom, gather};
use super::keys::KeyColumns;
use super::repeats::RepeatedKey;
use super::source::DataLocation;
use super::table::{Files, RowPlace, RowSink, TableCell};
use super::tag::{DataSet, RowBytes};
use super::time_cells::TimeReport;
use super::{ArmLeftOut, InputReport, Row, RowKeys, RowShape, RowStore, Rows, repeated, retain};
use base::Error;
use std::collections::HashMap;
use study::{Duplicates, LiftStudy, Question, Study, TrialArm};

/// One row per identifier that had an opportunity, in the order of the files. It does not print.
#[derive(Clone, Default)]
pub struct PublisherRows {
    /// Normalised identifiers, all different.
    pub identifiers: RowKeys,
    /// The arm of each row.
    pub arm: Vec<TrialArm>,
    /// The time of each row's opportunity, `0..=span` of the study's clock.
    pub opportunity: Vec<u32>,
    /// Impressions of each row; empty when the study names no such column.
    pub impressions: Vec<u16>,
    /// Index of each row's value in the study's list; empty when the study has no breakdown.
    pub breakdown: Vec<u8>,
}

impl PublisherRows {
    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.identifiers.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.identifiers.is_empty()
    }

    /// Appends a row's cells: as many bytes for each.
    pub(crate) fn append_cells(&self, impressions: bool, breakdown: bool, row: usize, into: &mut Vec<u8>) {
        into.push(u8::from(self.arm[row] == TrialArm::Test));
        into.extend(self.opportunity[row].to_le_bytes());
        into.extend(impressions.then(|| self.impressions[row].to_le_bytes()).iter().flatten());
        into.extend(breakdown.then(|| self.breakdown[row]));
    }

    /// Adds a further row's cells; none where these are of no row.
    pub(crate) fn push_cells(&mut self, impressions: bool, breakdown: bool, cells: &[u8]) -> Option<()> {
        let ([arm], rest) = cells.split_first_chunk()?;
        let (opportunity, mut rest) = rest.split_first_chunk()?;
        self.arm.push(if *arm == 1 { TrialArm::Test } else { TrialArm::Control });
        self.opportunity.push(u32::from_le_bytes(*opportunity));
        if impressions {
            let (count, after) = rest.split_first_chunk()?;
            self.impressions.push(u16::from_le_bytes(*count));
            rest = after;
        }
        if breakdown {
            let (value, after) = rest.split_first()?;
            self.breakdown.push(*value);
            rest = after;
        }
        rest.is_empty().then_some(())
    }

    fn clear(&mut self) {
        self.identifiers.clear();
        self.arm.clear();
        self.opportunity.clear();
        self.impressions.clear();
        self.breakdown.clear();
    }

    /// Keeps the cells of these rows; identifiers are not its affair.
    fn retain(&mut self, keep: &[bool]) {
        retain(&mut self.arm, keep);
        retain(&mut self.opportunity, keep);
        if !self.impressions.is_empty() {
            retain(&mut self.impressions, keep);
        }
        if !self.breakdown.is_empty() {
            retain(&mut self.breakdown, keep);
        }
    }

    pub(crate) fn memory(&self) -> u64 {
        let cells = self.arm.capacity()
            + 4 * self.opportunity.capacity()
            + 2 * self.impressions.capacity()
            + self.breakdown.capacity();
        self.identifiers.memory() + cells as u64
    }
}

impl DataSet for PublisherRows {
    fn head(&self, into: &mut RowBytes) {
        into.bytes(b"publisher");
    }

    fn identifiers(&self) -> &RowKeys {
        &self.identifiers
    }

    fn cells(&self, row: usize, into: &mut RowBytes) {
        into.number(u64::from(self.arm[row] == TrialArm::Test));
        into.number(u64::from(self.opportunity[row]));
        into.number(self.impressions.get(row).map_or(0, |&n| u64::from(n)));
        into.number(self.breakdown.get(row).map_or(0, |&n| u64::from(n)));
    }
}

/// Reads the publisher's files or objects.
///
/// # Errors
/// Everything that is wrong with the input, a line each, with file, line and column; or that the study is no
/// lift study.
pub(crate) fn read(
    data: DataLocation<'_>,
    study: &Study,
    room: Option<&SpoolRoom<'_>>,
) -> Result<(RowStore, InputReport), Error> {
    let Question::Lift(lift) = &study.kind else {
        return Err(Error::misuse("only a lift study has a publisher"));
    };
    gather(data, Reading::new(study, lift), room)
}

/// Complains about an identifier that two rows have, where the rule or the arms do not allow it.
fn complain(
    rows: &PublisherRows,
    repeat: RepeatedKey,
    [here, there]: [RowPlace; 2],
    rule: Duplicates,
    files: &Files,
    complaints: &mut Complaints,
) {
    let (row, earlier) = (repeat.row as usize, repeat.earlier as usize);
    if rows.arm[row] != rows.arm[earlier] {
        complaints.add_placed(
            here,
            || files.stands(here),
            || {
                format!(
                    "{}: the same identifier as {} but in the other arm; correct one of them",
                    files.show(here),
                    files.show_beside(there, here)
                )
            },
        );
    } else if !matches!(rule, Duplicates::First | Duplicates::Keep) {
        complaints.add_placed(
            here,
            || files.stands(here),
            || repeated(files, here, there, "duplicates = \"first\""),
        );
    }
}

/// Bytes of a line's cells, at most.
const PUBLISHER_LINE: usize = 9;

/// The cells of a line.
struct PublisherLine {
    arm: TrialArm,
    opportunity: u32,
    impressions: u16,
    breakdown: u8,
    outside: bool,
}

impl PublisherLine {
    /// Of a line whose arm is left out: its other cells are not looked at.
    const OUTSIDE: Self =
        Self { arm: TrialArm::Control, opportunity: 0, impressions: 0, breakdown: 0, outside: true };
}

/// Rows as they come in.
#[derive(Clone)]
struct Reading<'a> {
    keys: KeyColumns<'a>,
    lift: &'a LiftStudy,
    arm: usize,
    opportunity: usize,
    impressions: Option<usize>,
    breakdown: Option<usize>,
    rule: Duplicates,
    rows: PublisherRows,
    /// Of each line whether its arm is left out; empty where the study leaves out none. Such a line has
    /// cells that mean nothing, and is there to be found where its identifier is in another arm, too.
    outside: Vec<bool>,
    /// Rows of each arm that is left out.
    arms_left_out: Vec<u64>,
    without_opportunity: u64,
    /// What the cells of the opportunity look like.
    seen: TimeReport,
}

impl<'a> Reading<'a> {
    fn new(study: &'a Study, lift: &'a LiftStudy) -> Self {
        let mut keys = KeyColumns::new(&study.matching.identifiers);
        Self {
            arm: keys.want(&lift.publisher.arm),
            opportunity: keys.want(&lift.publisher.opportunity),
            impressions: lift.publisher.impressions.as_ref().map(|name| keys.want(name)),
            breakdown: lift.publisher.breakdown.as_ref().map(|b| keys.want(&b.column)),
            keys,
            lift,
            rule: study.matching.duplicates,
            rows: PublisherRows::default(),
            outside: Vec::new(),
            arms_left_out: vec![0; lift.publisher.leave_out.len()],
            without_opportunity: 0,
            seen: TimeReport::new(&lift.publisher.opportunity),
        }
    }

    /// Keeps the line that was read last.
    fn keep(&mut self, place: RowPlace, line: PublisherLine) -> Result<(), Error> {
        self.keys.keep(place)?;
        self.rows.arm.push(line.arm);
        self.rows.opportunity.push(line.opportunity);
        if self.impressions.is_some() {
            self.rows.impressions.push(line.impressions);
        }
        if self.breakdown.is_some() {
            self.rows.breakdown.push(line.breakdown);
        }
        if !self.arms_left_out.is_empty() {
            self.outside.push(line.outside);
        }
        Ok(())
    }

    /// Lets go of lines whose arm is left out, and complains where their identifier is in an arm that is
    /// compared: whoever was in two arms had both treatments.
    fn part(&mut self, files: &Files, complaints: &mut Complaints) {
        let outside = std::mem::take(&mut self.outside);
        if !outside.contains(&true) {
            return;
        }
        let keys = &self.keys;
        let own = |line: usize| keys.identifiers.row(line).filter(|identifier| !identifier.is_empty());
        let mut gone: HashMap<&[u8], RowPlace> = HashMap::new();
        for (line, place) in keys.places.iter().enumerate().filter(|(line, _)| outside[*line]) {
            own(line).for_each(|identifier| {
                gone.entry(identifier).or_insert(*place);
            });
        }
        for (line, here) in keys.places.iter().enumerate().filter(|(line, _)| !outside[*line]) {
            if let Some(there) = own(line).find_map(|identifier| gone.get(identifier)) {
                complaints.add_placed(*here, || files.stands(*here), || {
                    format!(
                        "{}: the same identifier as {}, whose arm is left out; nobody can be in two arms: \
                         correct one of them",
                        files.show(*here),
                        files.show_beside(*there, *here)
                    )
                });
            }
        }
        let keep: Vec<bool> = outside.iter().map(|outside| !outside).collect();
        self.keys.retain(&keep);
        self.rows.retain(&keep);
    }
}

impl RowSink for Reading<'_> {
    fn columns(&self) -> Vec<String> {
        self.keys.wanted.clone()
    }

    fn row(&mut self, row: &mut Row<'_>, cells: &[TableCell<'_>]) -> Result<(), Error> {
        let publisher = &self.lift.publisher;
        let identified = self.keys.read(row, cells);
        let arm = cells[self.arm].trimmed();
        if let Some(label) = other_arm(publisher, arm) {
            self.arms_left_out[label] += 1;
            return if identified { self.keep(row.place, PublisherLine::OUTSIDE) } else { Ok(()) };
        }
        let opportunity = cells[self.opportunity].trimmed();
        if opportunity == TableCell::Empty {
            self.without_opportunity += 1;
            return Ok(());
        }
        let opportunity = row.time(&mut self.seen, &self.lift.clock, opportunity);
        let arm = compared(row, publisher, arm);
        let impressions = match (&publisher.impressions, self.impressions) {
            (Some(name), Some(i)) => row.integer(name, cells[i].trimmed(), 0, i64::from(u16::MAX)),
            _ => Some(0),
        };
        let breakdown = match (&publisher.breakdown, self.breakdown) {
            (Some(categories), Some(i)) => row.category(categories, cells[i].trimmed()),
            _ => Some(0),
        };
        let (true, Some(arm), Some(opportunity), Some(impressions), Some(breakdown)) =
            (identified, arm, opportunity, impressions, breakdown)
        else {
            return Ok(());
        };
        let impressions = u16::try_from(impressions).expect("checked");
        self.keep(row.place, PublisherLine { arm, opportunity, impressions, breakdown, outside: false })
    }
}

impl LineReader for Reading<'_> {
    fn keys(&self) -> &KeyColumns<'_> {
        &self.keys
    }

    fn shape(&self) -> RowShape {
        RowShape::Publisher { impressions: self.impressions.is_some(), breakdown: self.breakdown.is_some() }
    }

    fn bytes(&self) -> u64 {
        self.keys.bytes() + (self.rows.arm.len() * PUBLISHER_LINE) as u64
    }

    fn append_line(&self, line: usize, into: &mut Vec<u8>) {
        into.extend(self.outside.get(line).map(|outside| u8::from(*outside)));
        self.rows.append_cells(self.impressions.is_some(), self.breakdown.is_some(), line, into);
    }

    fn push_line(&mut self, identifier: &[u8], place: RowPlace, cells: &[u8]) -> Option<()> {
        let cells = match self.arms_left_out.is_empty() {
            true => cells,
            false => {
                let (outside, cells) = cells.split_first()?;
                self.outside.push(*outside == 1);
                cells
            }
        };
        self.keys.push(identifier, place);
        self.rows.push_cells(self.impressions.is_some(), self.breakdown.is_some(), cells)
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.rows.clear();
        self.outside.clear();
    }

    fn settle(&mut self, files: &Files, complaints: &mut Complaints, report: &mut InputReport) -> Rows {
        self.part(files, complaints);
        let (mut rows, rule) = (std::mem::take(&mut self.rows), self.rule);
        let keep = self.keys.settle(rule, files, |repeat, places| {
            complain(&rows, repeat, places, rule, files, complaints);
        });
        if let Some(keep) = keep {
            report.duplicates_dropped += keep.iter().filter(|&&keep| !keep).count() as u64;
            rows.retain(&keep);
        }
        rows.identifiers = self.keys.take();
        Rows::Publisher(rows)
    }

    fn count(&mut self, report: &mut InputReport) {
        let labels = self.lift.publisher.leave_out.iter().zip(&mut self.arms_left_out);
        let left_out =
            labels.map(|(label, rows)| ArmLeftOut { label: label.clone(), rows: std::mem::take(rows) });
        report.absorb(InputReport {
            without_opportunity: std::mem::take(&mut self.without_opportunity),
            arms_left_out: left_out.collect(),
            times: vec![self.seen.taken()],
            identifiers: std::mem::take(&mut self.keys.reports),
            ..InputReport::default()
        });
    }

    fn finish(&self, data: DataLocation<'_>, rows: u64, report: &mut InputReport) -> Result<(), Error> {
        report.times.retain(|seen| seen.is_doubtful(&self.lift.clock));
        if rows > 0 {
            return Ok(());
        }
        let of =
            if report.arms_left_out.iter().any(|arm| arm.rows > 0) { " whose arm is compared" } else { "" };
        Err(Error::input(format!(
            "{}: no row{of} has an opportunity (column \"{}\"); nobody is left to measure",
            data.path.display(),
            self.lift.publisher.opportunity
        )))
    }
}

/// Which arm it is of those that are left out.
fn other_arm(publisher: &study::Publisher, cell: TableCell<'_>) -> Option<usize> {
    let others = &publisher.leave_out;
    // Most studies have none, and then no cell becomes text for it.
    let text = if others.is_empty() { None } else { cell.text() }?;
    others.iter().position(|label| *label == text)
}

fn compared(row: &mut Row<'_>, publisher: &study::Publisher, cell: TableCell<'_>) -> Option<TrialArm> {
    match cell.text().as_deref() {
        Some(label) if label == publisher.test => Some(TrialArm::Test),
        Some(label) if label == publisher.control => Some(TrialArm::Control),
        _ => {
            row.complain(&publisher.arm, || {
                let cell = cell.shown();
                format!(
                    "{cell} is neither the test label \"{}\" nor the control label \"{}\" of the study; \
                     correct it, or, if it is another arm, agree on leave_out = [..] in the study's `arm`",
                    publisher.test, publisher.control
                )
            });
            None
        }
    }
}
