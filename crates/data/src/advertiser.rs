//! The advertiser's rows: per identifier up to K time-stamped values, and optionally a cohort.

use super::complaints::Complaints;
use super::gather::{LineReader, SpoolRoom, gather};
use super::keys::KeyColumns;
use super::refunds::{self, GatheredEvent};
use super::repeats::{self, Settled};
use super::source::DataLocation;
use super::table::{Files, RowPlace, RowSink, TableCell};
use super::tag::{DataSet, RowBytes};
use super::time_cells::TimeReport;
use super::{InputReport, Row, RowKeys, RowShape, RowStore, Rows, repeated};
use base::{Error, PartyId};
use std::collections::HashMap;
use study::{
    Advertiser, Duplicates, EventLayout, EventValue, LiftStudy, NegativeRule, Overflow, Question, Study,
};

/// One row per identifier, in an order that depends on the identifiers only. It does not print.
///
/// Identifiers whose lines are all excluded by `where` stay, without events: dropping them would make the
/// size of the match, which both parties learn exactly, a count of outcomes.
#[derive(Default)]
pub struct AdvertiserRows {
    /// Normalised identifiers, all different.
    pub identifiers: RowKeys,
    /// Row `i` has the events `starts[i]..starts[i + 1]`; one longer than the rows.
    pub starts: Vec<u64>,
    /// Times of the events, ascending within a row, at most K per row, `0..=span` of the study's clock.
    pub times: Vec<u32>,
    /// Values of the events.
    pub values: Vec<u32>,
    /// Index of each row's value in the study's list; empty when the study has no cohort.
    pub cohort: Vec<u8>,
}

impl AdvertiserRows {
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

    /// Times (ascending) and values of row `i`.
    ///
    /// # Panics
    /// When there is no row `i`.
    #[must_use]
    pub fn events(&self, i: usize) -> (&[u32], &[u32]) {
        let range = self.starts[i] as usize..self.starts[i + 1] as usize;
        (&self.times[range.clone()], &self.values[range])
    }

    /// Appends a row's cells: as many bytes for each row of so many events at most.
    pub(crate) fn append_cells(&self, max_events: u8, cohort: bool, row: usize, into: &mut Vec<u8>) {
        let (times, values) = self.events(row);
        into.push(times.len() as u8);
        for place in 0..usize::from(max_events) {
            let of = |cells: &[u32]| cells.get(place).copied().unwrap_or(0).to_le_bytes();
            into.extend([of(times), of(values)].as_flattened());
        }
        into.extend(cohort.then(|| self.cohort[row]));
    }

    /// Adds a further row's cells; none where these are of no row.
    pub(crate) fn push_cells(&mut self, max_events: u8, cohort: bool, cells: &[u8]) -> Option<()> {
        let (count, rest) = cells.split_first()?;
        let (events, rest) = rest.split_at_checked(8 * usize::from(max_events))?;
        let events = events.as_chunks::<4>().0.as_chunks::<2>().0.get(..usize::from(*count))?;
        self.times.extend(events.iter().map(|[time, _]| u32::from_le_bytes(*time)));
        self.values.extend(events.iter().map(|[_, value]| u32::from_le_bytes(*value)));
        self.starts.push(self.times.len() as u64);
        self.cohort.extend(rest.iter().take(usize::from(cohort)));
        (rest.len() == usize::from(cohort)).then_some(())
    }

    pub(crate) fn memory(&self) -> u64 {
        let cells = 8 * self.starts.capacity()
            + 4 * self.times.capacity()
            + 4 * self.values.capacity()
            + self.cohort.capacity();
        self.identifiers.memory() + cells as u64
    }
}

impl DataSet for AdvertiserRows {
    fn head(&self, into: &mut RowBytes) {
        into.bytes(b"advertiser");
    }

    fn identifiers(&self) -> &RowKeys {
        &self.identifiers
    }

    fn cells(&self, row: usize, into: &mut RowBytes) {
        let (times, values) = self.events(row);
        into.number(times.len() as u64);
        times.iter().zip(values).for_each(|(&time, &value)| {
            into.number(u64::from(time));
            into.number(u64::from(value));
        });
        into.number(self.cohort.get(row).map_or(0, |&n| u64::from(n)));
    }

    /// They lie in an order of their identifiers already.
    fn order(&self) -> Vec<u32> {
        (0..self.len() as u32).collect()
    }
}

/// Reads the files or objects of the advertiser at this place of the roster.
///
/// # Errors
/// Everything that is wrong with the input, a line each, with file, line and column; or that the study is no
/// lift study.
pub(crate) fn read(
    data: DataLocation<'_>,
    study: &Study,
    me: PartyId,
    room: Option<&SpoolRoom<'_>>,
) -> Result<(RowStore, InputReport), Error> {
    let Question::Lift(lift) = &study.kind else {
        return Err(Error::misuse("only a lift study has an advertiser"));
    };
    let advertiser =
        lift.advertiser(me).ok_or_else(|| Error::misuse("an advertiser's place is in the study"))?;
    gather(data, Reading::new(study, lift, advertiser), room)
}

/// Lines as they come in, before lines of one identifier are put together.
#[derive(Clone)]
struct Reading<'a> {
    keys: KeyColumns<'a>,
    lift: &'a LiftStudy,
    advertiser: &'a Advertiser,
    events: Vec<usize>,
    values: Vec<usize>,
    filter: Option<usize>,
    cohort: Option<usize>,
    rule: Duplicates,
    /// Ends of each line's events.
    ends: Vec<u64>,
    times: Vec<u32>,
    amounts: Vec<u32>,
    /// Whether each amount is taken off earlier ones; empty where none may be.
    refunds: Vec<bool>,
    cohorts: Vec<u8>,
    filtered: u64,
    left_out: u64,
    /// What the cells of each column of events look like.
    seen: Vec<TimeReport>,
}

impl<'a> Reading<'a> {
    fn new(study: &'a Study, lift: &'a LiftStudy, advertiser: &'a Advertiser) -> Self {
        let mut keys = KeyColumns::new(&study.matching.identifiers);
        let mut want_all = |names: &[String]| names.iter().map(|name| keys.want(name)).collect();
        Self {
            events: want_all(&advertiser.events),
            values: match &advertiser.value {
                EventValue::Constant(_) => Vec::new(),
                EventValue::Columns { columns, .. } => want_all(columns),
            },
            filter: advertiser.filter.as_ref().map(|filter| keys.want(&filter.column)),
            cohort: advertiser.cohort.as_ref().map(|cohort| keys.want(&cohort.column)),
            keys,
            lift,
            advertiser,
            rule: study.matching.duplicates,
            ends: Vec::new(),
            times: Vec::new(),
            amounts: Vec::new(),
            refunds: Vec::new(),
            cohorts: Vec::new(),
            filtered: 0,
            left_out: 0,
            seen: advertiser.events.iter().map(|name| TimeReport::new(name)).collect(),
        }
    }

    fn passes(&self, advertiser: &Advertiser, cells: &[TableCell<'_>]) -> bool {
        let (Some(filter), Some(i)) = (&advertiser.filter, self.filter) else { return true };
        let text = cells[i].trimmed().number_text();
        text.is_some_and(|text| filter.equals.iter().any(|value| *value == text))
    }

    /// The events of a line that was kept.
    fn events_of(&self, line: usize) -> impl Iterator<Item = GatheredEvent> {
        let start = if line == 0 { 0 } else { self.ends[line - 1] as usize };
        (start..self.ends[line] as usize).map(|at| GatheredEvent {
            time: self.times[at],
            refund: self.refunds.get(at).copied().unwrap_or_default(),
            amount: self.amounts[at],
        })
    }

    /// Whether negative values are kept, to be taken off others.
    fn nets(&self) -> bool {
        self.advertiser.value.negative() == NegativeRule::Net
    }

    fn keep_event(&mut self, event: GatheredEvent) {
        self.times.push(event.time);
        self.amounts.push(event.amount);
        if self.nets() {
            self.refunds.push(event.refund);
        }
    }

    /// The events of a line; complains about cells and returns what is left.
    fn events(&mut self, row: &mut Row<'_>, cells: &[TableCell<'_>]) -> Vec<GatheredEvent> {
        let advertiser = self.advertiser;
        let mut events = Vec::new();
        for (i, (&column, name)) in self.events.iter().zip(&advertiser.events).enumerate() {
            let cell = cells[column].trimmed();
            if cell == TableCell::Empty && advertiser.layout == EventLayout::Wide {
                self.no_value_without_time(row, i, name, cells);
                continue;
            }
            // A line of somebody without an event: nothing is in any of its cells.
            let no_value = |at: &usize| cells[*at].trimmed() == TableCell::Empty;
            if cell == TableCell::Empty && self.values.iter().all(no_value) {
                continue;
            }
            let time = row.time(&mut self.seen[i], &self.lift.clock, cell);
            let value = match &advertiser.value {
                EventValue::Constant(value) => Some(i64::from(*value)),
                EventValue::Columns { columns, scale, negative, .. } => {
                    let cell = cells[self.values[i]].trimmed();
                    refunds::amount(row, &columns[i], cell, (*scale, *negative))
                }
            };
            let Some((time, value)) = time.zip(value) else { continue };
            let refund = value < 0;
            if refund && !self.nets() {
                self.left_out += 1;
                continue;
            }
            let amount = u32::try_from(value.unsigned_abs()).expect("checked");
            events.push(GatheredEvent { time, refund, amount });
        }
        events
    }

    fn no_value_without_time(&self, row: &mut Row<'_>, i: usize, time: &str, cells: &[TableCell<'_>]) {
        if let EventValue::Columns { columns, .. } = &self.advertiser.value {
            let value = cells[self.values[i]].trimmed();
            if value != TableCell::Empty {
                row.complain(&columns[i], || {
                    format!("{} is a value without a time in column \"{time}\"", value.shown())
                });
            }
        }
    }
}

impl RowSink for Reading<'_> {
    fn columns(&self) -> Vec<String> {
        self.keys.wanted.clone()
    }

    fn row(&mut self, row: &mut Row<'_>, cells: &[TableCell<'_>]) -> Result<(), Error> {
        let advertiser = self.advertiser;
        let identified = self.keys.read(row, cells);
        let cohort = match (&advertiser.cohort, self.cohort) {
            (Some(categories), Some(i)) => row.category(categories, cells[i].trimmed()),
            _ => Some(0),
        };
        let passes = self.passes(advertiser, cells);
        self.filtered += u64::from(!passes);
        let events = if passes { self.events(row, cells) } else { Vec::new() };
        let (true, Some(cohort)) = (identified, cohort) else { return Ok(()) };
        self.keys.keep(row.place)?;
        events.into_iter().for_each(|event| self.keep_event(event));
        self.ends.push(self.times.len() as u64);
        if self.cohort.is_some() {
            self.cohorts.push(cohort);
        }
        Ok(())
    }
}

impl LineReader for Reading<'_> {
    fn keys(&self) -> &KeyColumns<'_> {
        &self.keys
    }

    fn shape(&self) -> RowShape {
        RowShape::Advertiser { max_events: self.advertiser.max_events, cohort: self.cohort.is_some() }
    }

    fn bytes(&self) -> u64 {
        self.keys.bytes()
            + (8 * self.ends.len() + 8 * self.times.len() + self.refunds.len() + self.cohorts.len()) as u64
    }

    fn append_line(&self, line: usize, into: &mut Vec<u8>) {
        into.extend(self.cohorts.get(line).copied().unwrap_or(0).to_le_bytes());
        for event in self.events_of(line) {
            into.extend([event.time.to_le_bytes(), event.amount.to_le_bytes()].as_flattened());
            into.extend(self.nets().then_some(u8::from(event.refund)));
        }
    }

    fn push_line(&mut self, identifier: &[u8], place: RowPlace, cells: &[u8]) -> Option<()> {
        let (cohort, events) = cells.split_first()?;
        let events = events.chunks_exact(if self.nets() { 9 } else { 8 });
        let whole = events.remainder().is_empty();
        self.keys.push(identifier, place);
        for event in events {
            let (time, rest) = event.split_first_chunk()?;
            let (amount, refund) = rest.split_first_chunk()?;
            let (time, amount) = (u32::from_le_bytes(*time), u32::from_le_bytes(*amount));
            self.keep_event(GatheredEvent { time, refund: refund == [1], amount });
        }
        self.ends.push(self.times.len() as u64);
        if self.cohort.is_some() {
            self.cohorts.push(*cohort);
        }
        whole.then_some(())
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.ends.clear();
        self.times.clear();
        self.amounts.clear();
        self.refunds.clear();
        self.cohorts.clear();
    }

    fn settle(&mut self, files: &Files, complaints: &mut Complaints, report: &mut InputReport) -> Rows {
        report.events_seen +=
            self.refunds.iter().fold(self.times.len() as u64, |n, refund| n - u64::from(*refund));
        report.identifiers = std::mem::take(&mut self.keys.reports);
        let rows = Grouping { lines: self, rule: self.rule, files, report }.rows(complaints);
        self.keys.reports = std::mem::take(&mut report.identifiers);
        Rows::Advertiser(rows)
    }

    fn count(&mut self, report: &mut InputReport) {
        report.absorb(InputReport {
            filtered: std::mem::take(&mut self.filtered),
            refunds_left_out: std::mem::take(&mut self.left_out),
            times: self.seen.iter_mut().map(TimeReport::taken).collect(),
            identifiers: std::mem::take(&mut self.keys.reports),
            ..InputReport::default()
        });
    }

    fn finish(&self, _: DataLocation<'_>, _: u64, report: &mut InputReport) -> Result<(), Error> {
        report.times.retain(|seen| seen.is_doubtful(&self.lift.clock));
        report.clamped_part = report.outcomes.beyond(self.lift.rule.clamp);
        Ok(())
    }
}

/// What a complaint about a repeated identifier offers: lines with several identifiers are not merged.
fn other_rules(keys: usize) -> &'static str {
    match keys {
        1 => "duplicates = \"first\" or \"merge\"",
        _ => "duplicates = \"first\" (in a collecting study \"keep\")",
    }
}

/// Puts the lines of each identifier together.
struct Grouping<'a> {
    lines: &'a Reading<'a>,
    rule: Duplicates,
    files: &'a Files,
    report: &'a mut InputReport,
}

impl Grouping<'_> {
    fn rows(&mut self, complaints: &mut Complaints) -> AdvertiserRows {
        let lines = self.lines;
        let order = lines.keys.identifiers.canonical_order();
        let keys = lines.keys.identifiers.keys();
        let mut rows =
            AdvertiserRows { identifiers: RowKeys::new(keys), starts: vec![0], ..AdvertiserRows::default() };
        let wide = lines.advertiser.layout == EventLayout::Wide;
        let apart = wide && self.rule == Duplicates::Keep;
        let same = |a: &u32, b: &u32| !apart && lines.keys.identifiers.same(*a, *b);
        let mut one: Vec<u32> = Vec::new();
        if keys == 1 {
            for group in order.chunk_by(same) {
                one.clear();
                one.extend_from_slice(self.settle_duplicates(group, complaints));
                rows.identifiers.push(lines.keys.identifiers.get(group[0] as usize, 0));
                self.push(&mut rows, &one, complaints);
            }
            return rows;
        }
        let groups: Vec<&[u32]> = order.chunk_by(same).collect();
        let people = People::new(self, &groups, complaints);
        for (row, group) in groups.iter().enumerate() {
            if !people.settled.stays(&people.identifiers, row as u32) {
                self.leave_out(&people.settled, row as u32, group);
                continue;
            }
            one.clear();
            let others = people.others.get(&(row as u32)).map_or(&[][..], Vec::as_slice);
            for member in std::iter::once(&(row as u32)).chain(others) {
                one.extend_from_slice(self.settle_duplicates(groups[*member as usize], complaints));
            }
            people.identify(row as u32, others, &mut rows.identifiers, self.report);
            self.push(&mut rows, &one, complaints);
        }
        rows
    }

    /// Events of a line that were counted as such.
    fn seen_in(&self, line: u32) -> u64 {
        self.lines.events_of(line as usize).filter(|event| !event.refund).count() as u64
    }

    /// Counts lines whose identifiers all belong to earlier lines.
    fn leave_out(&mut self, settled: &Settled, row: u32, group: &[u32]) {
        if settled.into[row as usize] == row {
            self.report.duplicates_dropped += group.len() as u64;
            self.report.events_seen -= group.iter().map(|&line| self.seen_in(line)).sum::<u64>();
        }
    }

    /// One row from its lines; its identifiers are there already.
    fn push(&mut self, rows: &mut AdvertiserRows, group: &[u32], complaints: &mut Complaints) {
        let lines = self.lines;
        self.same_cohort(group, complaints);
        let mut events: Vec<GatheredEvent> =
            group.iter().flat_map(|&line| self.lines.events_of(line as usize)).collect();
        events.sort_unstable();
        if lines.nets() {
            refunds::take_off(&mut events, self.report);
        }
        self.cut(&mut events, group, complaints);
        rows.times.extend(events.iter().map(|event| event.time));
        rows.values.extend(events.iter().map(|event| event.amount));
        rows.starts.push(rows.times.len() as u64);
        rows.cohort.extend(lines.cohorts.get(group[0] as usize));
        let total: u64 = events.iter().map(|event| u64::from(event.amount)).sum();
        self.report.without_events += u64::from(events.is_empty());
        self.report.add_outcome(total, lines.lift.rule.clamp);
    }

    /// Lines of one identifier that count: all of them in the events layout, where several lines are the
    /// rule.
    fn settle_duplicates<'g>(&mut self, group: &'g [u32], complaints: &mut Complaints) -> &'g [u32] {
        let places = &self.lines.keys.places;
        let there = places[group[0] as usize];
        let files = self.files;
        let wide = self.lines.advertiser.layout == EventLayout::Wide;
        if wide && group.len() > 1 {
            match self.rule {
                Duplicates::Keep => {}
                Duplicates::First => {
                    self.report.duplicates_dropped += group.len() as u64 - 1;
                    let dropped: u64 = group[1..].iter().map(|&line| self.seen_in(line)).sum();
                    self.report.events_seen -= dropped;
                    return &group[..1];
                }
                Duplicates::Merge => self.report.duplicates_merged += group.len() as u64 - 1,
                Duplicates::Error => {
                    let rules = other_rules(self.lines.keys.identifiers.keys());
                    for &line in &group[1..] {
                        let here = places[line as usize];
                        complaints.add_placed(
                            here,
                            || files.stands(here),
                            || repeated(files, here, there, rules),
                        );
                    }
                }
            }
        }
        group
    }

    /// Lines of one identifier have one cohort, or the first counts.
    fn same_cohort(&self, group: &[u32], complaints: &mut Complaints) {
        let (places, files) = (&self.lines.keys.places, self.files);
        let (first, there) = (group[0] as usize, places[group[0] as usize]);
        if let Some(cohort) = self.lines.cohorts.get(first)
            && self.rule != Duplicates::First
        {
            for &line in group[1..].iter().filter(|&&line| self.lines.cohorts[line as usize] != *cohort) {
                let here = places[line as usize];
                complaints.add_placed(
                    here,
                    || files.stands(here),
                    || {
                        format!(
                            "{}: another cohort than the same identifier has in {}; correct one, or agree on \
                         duplicates = \"first\"",
                            files.show(here),
                            files.show_beside(there, here)
                        )
                    },
                );
            }
        }
    }

    /// Keeps at most K of the events of an identifier, which are sorted by time.
    fn cut(&mut self, events: &mut Vec<GatheredEvent>, group: &[u32], complaints: &mut Complaints) {
        let advertiser = self.lines.advertiser;
        let (seen, most) = (events.len(), usize::from(advertiser.max_events));
        if seen <= most {
            return;
        }
        events.truncate(most);
        self.report.events_cut += (seen - most) as u64;
        self.report.identifiers_cut += 1;
        if advertiser.overflow == Overflow::Error {
            let place = self.lines.keys.places[group[group.len() - 1] as usize];
            let files = self.files;
            complaints.add_placed(
                place,
                || files.stands(place),
                || {
                    format!(
                        "{}: this identifier has {seen} events; max_events is {most}: agree on more, or on \
                     overflow = \"keep-earliest\"",
                        files.show(place)
                    )
                },
            );
        }
    }
}

/// Lines with several identifiers, grouped by all of them: each group is one row to begin with.
struct People {
    identifiers: RowKeys,
    settled: Settled,
    /// Groups that are put together with an earlier one, by that one.
    others: HashMap<u32, Vec<u32>>,
}

impl People {
    fn new(grouping: &mut Grouping<'_>, groups: &[&[u32]], complaints: &mut Complaints) -> Self {
        let (lines, rule, files) = (grouping.lines, grouping.rule, grouping.files);
        let mut identifiers = RowKeys::new(lines.keys.identifiers.keys());
        for group in groups {
            lines.keys.identifiers.row(group[0] as usize).for_each(|identifier| identifiers.push(identifier));
        }
        let place = |row: u32| lines.keys.places[groups[row as usize][0] as usize];
        // What is put together does not depend on the order of lines; which line is the first one does.
        let rank = |row: u32| (rule != Duplicates::Merge).then(|| place(row)).ok_or(row);
        let absorb = lines.advertiser.layout == EventLayout::Events && rule != Duplicates::Keep;
        let reports = &mut grouping.report.identifiers;
        let settled = repeats::settle(&identifiers, rank, rule, absorb, |repeat| {
            let (here, there) = (place(repeat.row), place(repeat.earlier));
            if rule != Duplicates::Keep {
                reports[repeat.key].repeated(here, files);
            }
            if rule == Duplicates::Error && !repeat.again {
                complaints.add_placed(here, || files.stands(here), || {
                    format!(
                        "{}: an identifier of {}, but not all the same ones; correct one of them, or agree \
                         on {}",
                        files.show(here),
                        files.show_beside(there, here),
                        other_rules(lines.keys.identifiers.keys())
                    )
                });
            }
        });
        let mut others: HashMap<u32, Vec<u32>> = HashMap::new();
        for (row, into) in settled.into.iter().enumerate().filter(|(row, into)| *row != **into as usize) {
            others.entry(*into).or_default().push(row as u32);
        }
        Self { identifiers, settled, others }
    }

    /// Of every column the first identifier that a row's groups have.
    fn identify(&self, row: u32, others: &[u32], into: &mut RowKeys, report: &mut InputReport) {
        let mut own: Vec<&[u8]> = self.settled.own(&self.identifiers, row).collect();
        for other in others {
            for (key, identifier) in self.settled.own(&self.identifiers, *other).enumerate() {
                if own[key].is_empty() {
                    own[key] = identifier;
                } else if !identifier.is_empty() && own[key] != identifier {
                    report.identifiers[key].merged_away += 1;
                }
            }
        }
        own.into_iter().for_each(|identifier| into.push(identifier));
    }
}
