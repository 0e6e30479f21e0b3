//! One party's columns along the spine, range by range.

mod parts;

use crate::kept::KeptColumns;
use crate::memory::LayingMemory;
use crate::prepare::Built;
use base::{Error, PartyId};
use data::{AdvertiserRows, ProgramRows, PublisherRows, RecentBlocks, RowShape, RowStore, Rows, shown};
use matching::MatchSpine;
use parts::{LoadedPart, SpineParts};
use program::{Holder, Program, ValueType};
use std::ops::Range;
use std::sync::Arc;
use studies::lift::{Content, LiftLayout, LiftParameters};

/// "This party has no row here."
pub(crate) const ABSENT: u32 = u32::MAX;

/// Parts that a worker lane holds at most.
const PARTS_HELD: usize = 2;

/// One party's rows with, for every row of the spine, which of them lies there.
pub struct Aligned {
    rows: Arc<RowStore>,
    places: SpinePlaces,
    /// Blocks whose identifiers were asked for last.
    recent: RecentBlocks,
}

enum SpinePlaces {
    /// The row at each place.
    AtHand(Vec<u32>),
    /// Columns in the order of the spine, outside memory.
    ByParts(Box<SpineParts>),
}

impl Aligned {
    /// `mine[i]` is the position of own row i in a spine of `union` rows.
    ///
    /// # Errors
    /// When a position is outside the spine.
    pub fn new(rows: Arc<RowStore>, mine: &[u32], union: u64) -> Result<Self, Error> {
        let mut spine = vec![ABSENT; usize::try_from(union).map_err(|_| Error::misuse("spine too long"))?];
        for (row, at) in mine.iter().enumerate() {
            let place =
                spine.get_mut(*at as usize).ok_or_else(|| Error::misuse("a position is off the spine"))?;
            *place = row as u32;
        }
        Ok(Self { rows, places: SpinePlaces::AtHand(spine), recent: RecentBlocks::default() })
    }

    /// These rows of those in memory, in this order; [`ABSENT`] is none.
    pub(crate) fn ordered(rows: Arc<RowStore>, order: Vec<u32>) -> Self {
        Self { rows, places: SpinePlaces::AtHand(order), recent: RecentBlocks::default() }
    }

    /// The same for rows that are not in memory: their columns are laid out along the spine, for so many
    /// worker lanes that read them at once, within these bytes of memory. Tells `dealt` how many rows have
    /// been dealt: each is twice.
    ///
    /// # Errors
    /// When a position is outside the spine, the party's state cannot be read or written, or the memory does
    /// not do; or what `dealt` says.
    pub fn by_parts(
        rows: Arc<RowStore>,
        spine: MatchSpine,
        (lanes, memory): (u32, LayingMemory),
        dealt: &mut dyn FnMut(u64) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let parts = SpineParts::lay_out(&rows, spine, (lanes, memory), dealt)?;
        Ok(Self { rows, places: SpinePlaces::ByParts(Box::new(parts)), recent: RecentBlocks::default() })
    }

    /// Rows whose columns an earlier process laid out.
    ///
    /// # Errors
    /// When rows are in memory, or this party's state cannot be read.
    pub(crate) fn reopened(rows: Arc<RowStore>, columns: &KeptColumns) -> Result<Self, Error> {
        let parts = SpineParts::reopened(&rows, columns)?;
        Ok(Self { rows, places: SpinePlaces::ByParts(Box::new(parts)), recent: RecentBlocks::default() })
    }

    /// Where columns lie, which stay from now on; none of rows in memory.
    pub(crate) fn kept(&self) -> Option<KeptColumns> {
        match &self.places {
            SpinePlaces::AtHand(_) => None,
            SpinePlaces::ByParts(parts) => Some(parts.keep()),
        }
    }

    /// For how many workers at once `memory` does, of columns that lie so.
    pub(crate) fn lanes(columns: &KeptColumns, shape: &RowShape, memory: LayingMemory) -> u32 {
        SpineParts::lanes(columns, shape, memory)
    }

    /// The identifier of a row of the spine, if this party has it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn key(&self, row: u64) -> Result<Option<String>, Error> {
        self.keys(&[row]).map(|mut keys| keys.pop().flatten())
    }

    /// The identifiers of rows of the spine, in their order; none where this party has no row.
    ///
    /// # Errors
    /// As [`Self::key`].
    pub fn keys(&self, rows: &[u64]) -> Result<Vec<Option<String>>, Error> {
        let mut own = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            own.extend(self.own(*row)?.map(|own| (own, at)));
        }
        // Block after block: in the order of the spine each would come from another one.
        own.sort_unstable();
        let mut keys = vec![None; rows.len()];
        for (own, at) in own {
            let (block, row) = self.rows.locate(own.into(), &self.recent)?;
            keys[at] = Some(shown(block.identifiers(), row));
        }
        Ok(keys)
    }

    /// The own row at a place of the spine.
    fn own(&self, row: u64) -> Result<Option<u32>, Error> {
        match &self.places {
            SpinePlaces::AtHand(spine) => {
                let own = spine.get(usize::try_from(row).unwrap_or(usize::MAX));
                Ok(own.copied().filter(|own| *own != ABSENT))
            }
            SpinePlaces::ByParts(parts) => parts.own(row),
        }
    }

    /// Whether this party has a row at a place of the spine.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn has(&self, row: u64) -> Result<bool, Error> {
        self.own(row).map(|own| own.is_some())
    }

    /// The position of each own row, in the order of the file.
    ///
    /// # Errors
    /// Where rows are not in memory.
    pub fn positions(&self) -> Result<Vec<u32>, Error> {
        let SpinePlaces::AtHand(spine) = &self.places else {
            return Err(Error::misuse("a match by itself has all rows in memory"));
        };
        let mut positions = vec![0; self.rows.len() as usize];
        let own = (0..).zip(spine).filter(|(_, row)| **row != ABSENT);
        own.for_each(|(at, row)| positions[*row as usize] = at);
        Ok(positions)
    }

    /// Rows of the spine.
    #[must_use]
    pub fn union(&self) -> u64 {
        match &self.places {
            SpinePlaces::AtHand(spine) => spine.len() as u64,
            SpinePlaces::ByParts(parts) => parts.union(),
        }
    }
}

/// The rows of a range of the spine: what one unit of the computation reads.
pub struct RangeRows {
    aligned: Arc<Aligned>,
    /// All rows, where they are in memory.
    at_hand: Option<Arc<Rows>>,
    /// By column, with what it holds where this party has no row.
    columns: Vec<(Source, u128)>,
    range: Range<u64>,
    /// The parts that were read last, the very last one first. Two: an engine that asks for rows ahead reads
    /// in two places by turns.
    parts: Vec<LoadedPart>,
}

/// Where a program's column comes from.
#[derive(Clone, Copy)]
enum Source {
    /// Not held by this party.
    Foreign,
    /// A column of a lift study, of K events.
    Lift(Content, usize),
    /// Own column of a program study: which one, and its type.
    Own(usize, ValueType),
    /// Whether this party has the row.
    Present,
}

impl RangeRows {
    /// The columns of a program over a range.
    ///
    /// # Errors
    /// When the range is not on the spine.
    pub fn new(aligned: Arc<Aligned>, built: &Built, me: PartyId, range: Range<u64>) -> Result<Self, Error> {
        if range.start > range.end || range.end > aligned.union() {
            return Err(Error::misuse(format!("rows {range:?} of a spine of {}", aligned.union())));
        }
        let (at_hand, names) = match &aligned.places {
            SpinePlaces::AtHand(_) => {
                let rows = aligned.rows.in_memory("the computation")?.clone();
                let names = if let Rows::Program(rows) = &*rows { rows.names.clone() } else { Vec::new() };
                (Some(rows), names)
            }
            SpinePlaces::ByParts(parts) => (None, parts.names().to_vec()),
        };
        let columns = sources(&built.program, built.lift.as_ref(), &names, me);
        Ok(Self { aligned, at_hand, columns, range, parts: Vec::new() })
    }

    /// Reads a column from position `from` of the spine to the end of its part; gives how many rows.
    fn read_part(
        &mut self,
        parts: &SpineParts,
        (source, absent): (Source, u128),
        from: u64,
        into: &mut [u128],
    ) -> Result<usize, Error> {
        match self.parts.iter().position(|part| part.holds(from)) {
            Some(at) => self.parts.swap(0, at),
            None => {
                self.parts.truncate(PARTS_HELD - 1);
                self.parts.insert(0, parts.load(from)?);
            }
        }
        let part = &self.parts[0];
        let places = part.places_from(from);
        let count = places.len().min(into.len());
        fill(source, absent, &part.rows, places[..count].iter().copied(), &mut into[..count])?;
        Ok(count)
    }
}

fn sources(
    program: &Program,
    lift: Option<&(LiftParameters, LiftLayout)>,
    names: &[String],
    me: PartyId,
) -> Vec<(Source, u128)> {
    let source = |(i, column): (usize, &program::RowColumn)| {
        if column.holder != Holder::Party(me) {
            return Source::Foreign;
        }
        match lift {
            _ if column.is_presence() => Source::Present,
            Some((lift, layout)) => Source::Lift(layout.columns[i], lift.max_events.into()),
            None => {
                let own = names.iter().position(|name| *name == column.name);
                own.map_or(Source::Foreign, |own| Source::Own(own, column.ty))
            }
        }
    };
    let absent = |column: &program::RowColumn| column.without(me).unwrap_or_default();
    program.columns.iter().enumerate().map(|(i, c)| (source((i, c)), absent(c))).collect()
}

impl program::ShardRows for RangeRows {
    fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), Error> {
        let (source, absent) = self.columns[column as usize];
        if matches!(source, Source::Foreign) {
            return Err(Error::misuse(format!("column {column} is not this party's")));
        }
        let first = self.range.start + from;
        if first + into.len() as u64 > self.range.end {
            return Err(Error::misuse(format!("rows from {first} on of the range {:?}", self.range)));
        }
        let aligned = self.aligned.clone();
        match (&aligned.places, &self.at_hand) {
            (SpinePlaces::AtHand(spine), Some(rows)) => {
                let places = spine[first as usize..][..into.len()].iter();
                fill(source, absent, rows, places.copied(), into)
            }
            (SpinePlaces::ByParts(parts), _) => {
                let mut done = 0;
                while done < into.len() {
                    done +=
                        self.read_part(parts, (source, absent), first + done as u64, &mut into[done..])?;
                }
                Ok(())
            }
            (SpinePlaces::AtHand(_), None) => Err(Error::misuse("rows at hand are in memory")),
        }
    }
}

/// Fills in a column for these places of own rows.
fn fill(
    source: Source,
    absent: u128,
    rows: &Rows,
    places: impl Iterator<Item = u32>,
    into: &mut [u128],
) -> Result<(), Error> {
    let places = places.map(|row| (row != ABSENT).then_some(row as usize));
    let into = into.iter_mut().zip(places);
    match (source, rows) {
        (Source::Lift(content, _), Rows::Publisher(rows)) => {
            into.for_each(|(v, row)| *v = row.map_or(absent, |row| publisher(rows, row, content)));
        }
        (Source::Lift(content, k), Rows::Advertiser(rows)) => {
            into.for_each(|(v, row)| *v = row.map_or(absent, |row| advertiser(rows, row, content, k)));
        }
        (Source::Own(own, ty), Rows::Program(rows)) => {
            for (v, row) in into {
                *v = row.map_or(Ok(absent), |row| cell(rows, own, row, ty))?;
            }
        }
        (Source::Present, _) => into.for_each(|(v, row)| *v = row.is_some().into()),
        _ => return Err(Error::misuse("rows of another party")),
    }
    Ok(())
}

fn publisher(rows: &PublisherRows, row: usize, content: Content) -> u128 {
    match content {
        Content::Time => rows.opportunity[row].into(),
        Content::Arm => rows.arm[row].code(),
        Content::Reached => (rows.impressions[row] > 0).into(),
        Content::Breakdown => rows.breakdown[row].into(),
        _ => unreachable!("a publisher holds a publisher's columns"),
    }
}

fn advertiser(rows: &AdvertiserRows, row: usize, content: Content, max_events: usize) -> u128 {
    let (times, amounts) = rows.events(row);
    let event = |j: u8, from: &[u32]| {
        // Left-padded: the last event stands in the last column.
        let at = usize::from(j).checked_sub(max_events - times.len());
        at.map_or(0, |at| u128::from(from[at]))
    };
    match content {
        Content::EventTime(j) => event(j, times),
        Content::EventValue(j) => event(j, amounts),
        Content::Present => 1,
        Content::Cohort => rows.cohort[row].into(),
        _ => unreachable!("an advertiser holds an advertiser's columns"),
    }
}

/// A program's cell must fit its column's type: what does not is an error, never cut in silence.
fn cell(rows: &ProgramRows, own: usize, row: usize, ty: ValueType) -> Result<u128, Error> {
    let value = i128::from(rows.columns[own][row]);
    let pattern = value as u128 & ty.mask();
    let fits =
        if ty.signed { ty.to_signed(pattern) == value } else { value >= 0 && pattern == value as u128 };
    if fits {
        return Ok(pattern);
    }
    Err(Error::input(format!("column {:?}, row {}: {value} does not fit {ty}", rows.names[own], row + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use data::RowKeys;
    use program::ShardRows as _;
    use studies::lift::{JoinedRow, PersonEvent, PersonOutcome, User};

    fn advertiser_rows() -> AdvertiserRows {
        let mut identifiers = RowKeys::default();
        identifiers.push(b"a");
        identifiers.push(b"b");
        AdvertiserRows {
            identifiers,
            starts: vec![0, 0, 2],
            times: vec![5, 9],
            values: vec![70, 80],
            cohort: vec![1, 0],
        }
    }

    #[test]
    fn columns_are_encoded_as_the_study_says() {
        let lift =
            LiftParameters { cohorts: vec!["x".into(), "y".into()], clamp: 100, ..LiftParameters::bench(3) };
        let (program, layout) = studies::lift::build(&lift).unwrap();
        let outcome = |events: &[(u64, u64)], cohort| {
            let event = |(time, value): &(u64, u64)| PersonEvent { time: *time, value: *value };
            PersonOutcome { events: events.iter().map(event).collect(), cohort: Some(cohort) }
        };
        let joined = [
            JoinedRow { user: None, outcome: None },
            JoinedRow { user: None, outcome: Some(outcome(&[(5, 70), (9, 80)], 0)) },
            JoinedRow { user: None, outcome: Some(outcome(&[], 1)) },
        ];
        let built = Built {
            audit: program::verify(&program, &program::VerifierPolicy::default(), 10).unwrap(),
            program,
            lift: Some((lift.clone(), layout.clone())),
            scales: None,
        };
        let rows = Rows::Advertiser(advertiser_rows());
        let aligned = Arc::new(Aligned::new(Arc::new(rows.into()), &[2, 1], 3).unwrap());
        let mut rows = RangeRows::new(aligned.clone(), &built, PartyId(1), 0..3).unwrap();
        for (i, content) in layout.columns.iter().enumerate().filter(|(_, c)| c.owner() == Some(PartyId(1))) {
            let mut values = [0; 3];
            rows.read(i as u32, 0, &mut values).unwrap();
            let expected: Vec<u128> = joined.iter().map(|row| content.encode(&lift, row)).collect();
            assert_eq!(values.to_vec(), expected, "{content:?}");
        }
        let foreign = layout.columns.iter().position(|c| c.owner() == Some(PartyId(0))).unwrap();
        assert!(rows.read(foreign as u32, 0, &mut [0; 3]).is_err());
        // Nothing is read off a range, and no range is off the spine.
        let own = layout.columns.iter().position(|c| c.owner() == Some(PartyId(1))).unwrap() as u32;
        let mut rows = RangeRows::new(aligned.clone(), &built, PartyId(1), 1..2).unwrap();
        assert!(rows.read(own, 0, &mut [0]).is_ok() && rows.len() == 1);
        assert!(rows.read(own, 0, &mut [0; 2]).is_err() && rows.read(own, 1, &mut [0]).is_err());
        assert!(RangeRows::new(aligned, &built, PartyId(1), 1..4).is_err());
    }

    #[test]
    fn publisher_columns_are_encoded_as_the_study_says() {
        let lift = LiftParameters {
            breakdown: vec!["n".into(), "s".into()],
            impressions: true,
            ..LiftParameters::bench(1)
        };
        let lift = LiftParameters { also: vec![studies::lift::Also::ReachedValue], clamp: 100, ..lift };
        let mut identifiers = RowKeys::default();
        identifiers.push(b"a");
        let rows = PublisherRows {
            identifiers,
            arm: vec![studies::lift::TrialArm::Control],
            opportunity: vec![77],
            impressions: vec![2],
            breakdown: vec![1],
        };
        let user =
            User { arm: studies::lift::TrialArm::Control, time: 77, reached: true, breakdown: Some(1) };
        let present = JoinedRow { user: Some(user), outcome: None };
        let absent = JoinedRow { user: None, outcome: None };
        let (program, layout) = studies::lift::build(&lift).unwrap();
        let audit = program::verify(&program, &program::VerifierPolicy::default(), 10).unwrap();
        let built = Built { program, audit, lift: Some((lift.clone(), layout.clone())), scales: None };
        let aligned = Arc::new(Aligned::new(Arc::new(Rows::Publisher(rows).into()), &[1], 2).unwrap());
        let mut rows = RangeRows::new(aligned, &built, PartyId(0), 0..2).unwrap();
        for content in [Content::Time, Content::Arm, Content::Reached, Content::Breakdown] {
            let mut values = [0; 2];
            rows.read(layout.column(content).unwrap(), 0, &mut values).unwrap();
            assert_eq!(values, [&absent, &present].map(|row| content.encode(&lift, row)), "{content:?}");
        }
    }
}
