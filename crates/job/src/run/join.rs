//! Rows joined to shares: what a party attaches to its rows, and the shares that come out as an engine reads
//! them.

mod stored;

use crate::align::{Aligned, RangeRows};
use crate::prepare::Built;
use crate::ranges::RowRanges;
use base::{Error, PartyId};
use data::{ProgramRows, RowStore};
use engine::Entries;
use matching::payload::{
    JoinedPart, JoinedShares, PayloadLayout, PayloadSource, PayloadTable, PayloadTaker, TableField,
    ValidEntries,
};
use matching::spill::SpillRoom;
use matching::{ShareBlock, ShareTable};
use program::JoinedRows;
use program::lower::{EntryKind, JoinedPlan, RowPayload};
use program::{Holder, Op, Program, RowColumn, RowFold, ShardRows as _};
use std::ops::Range;
use std::sync::Arc;

/// Rows evaluated at once.
const BATCH: usize = 4096;

/// What both parties attach to their rows.
pub(crate) struct Payloads {
    plan: Arc<JoinedPlan>,
    payloads: [RowPayload; 2],
    slots: u32,
    /// By column: the slot that it is of.
    column_slots: Vec<u8>,
}

impl Payloads {
    /// Those of a study whose rows enter as `plan` says.
    ///
    /// # Errors
    /// What cannot be run over rows joined to shares.
    pub fn new(built: &Built, plan: Arc<JoinedPlan>) -> Result<Self, Error> {
        let Some((lift, layout)) = &built.lift else {
            let payloads = [0, 1].map(|party| plan.payload(PartyId(party), 1, &|column| (0, column)));
            let [a, b] = payloads;
            let column_slots = vec![0; built.program.columns.len()];
            return Ok(Self { plan, payloads: [a?, b?], slots: 1, column_slots });
        };
        let slots = u32::from(lift.matching.slots);
        let of = |party: u8, slots| plan.payload(PartyId(party), slots, &|column| layout.place(column));
        let payloads = [of(0, 1)?, of(1, slots)?];
        Ok(Self { plan, payloads, slots, column_slots: layout.slots.clone() })
    }

    /// The fields of a party's rows.
    ///
    /// # Errors
    /// When a row is too wide to be matched.
    fn layout(&self, party: PartyId) -> Result<PayloadLayout, Error> {
        let field = |kind: EntryKind| match kind {
            EntryKind::Bits(bits) => TableField::bits(bits),
            EntryKind::Number { bytes } => TableField::number(bytes),
        };
        PayloadLayout::new(self.payloads[party.index()].fields.iter().map(|f| field(f.kind)))
    }

    /// The fields of the rows of both.
    ///
    /// # Errors
    /// As [`Payloads::layout`].
    pub fn layouts(&self) -> Result<[PayloadLayout; 2], Error> {
        Ok([self.layout(PartyId(0))?, self.layout(PartyId(1))?])
    }

    /// Hands out what is attached to all rows of a shard, some at a time.
    fn each(&self, me: PartyId, shard: &mut RangeRows, take: &mut PayloadTaker<'_>) -> Result<(), Error> {
        let (layout, count) = (self.layout(me)?, shard.len());
        let payload = &self.payloads[me.index()];
        let mut entries = Entries::of(&self.plan, &payload.entries[0]);
        for from in (0..count).step_by(BATCH) {
            let rows = BATCH.min((count - from) as usize);
            let mut table = PayloadTable::zeros(layout.clone(), rows as u64)?;
            entries.load(shard, from, rows)?;
            for (f, field) in payload.fields.iter().enumerate() {
                let mut words = vec![0u128; rows];
                for (at, bit) in &field.parts {
                    let values = entries.get(payload.entries[0][*at]);
                    words.iter_mut().zip(values).for_each(|(word, value)| *word |= value << bit);
                }
                (0..).zip(words).for_each(|(row, word)| table.set(row, f, word));
            }
            take(from, &table)?;
        }
        Ok(())
    }

    /// What a row that is not there has attached.
    fn blank(&self, built: &Built, rows: &Arc<RowStore>, me: PartyId) -> Result<Vec<u8>, Error> {
        // Any rows: none of them is at the one place.
        let some = match rows.spool() {
            None => rows.clone(),
            Some(_) => Arc::new(RowStore::from(rows.block(0)?)),
        };
        let aligned = Arc::new(Aligned::new(some, &[], 1)?);
        let mut blank = Vec::new();
        self.each(me, &mut RangeRows::new(aligned, built, me, 0..1)?, &mut |_, table| {
            blank.extend_from_slice(table.bytes());
            Ok(())
        })?;
        Ok(blank)
    }

    /// The totals that this party computes alone, from all rows of its file.
    fn alone(&self, built: &Built, rows: &Arc<RowStore>, me: PartyId) -> Result<Vec<(u32, u128)>, Error> {
        let mut totals: Vec<(u32, u128)> = Vec::new();
        each_part(rows, &[], |_, part| {
            let count = part.union();
            let some = engine::alone(&self.plan, me, &mut RangeRows::new(part, built, me, 0..count)?)?;
            if totals.is_empty() {
                totals = some;
                return Ok(());
            }
            for ((_, total), (fold, more)) in totals.iter_mut().zip(some) {
                let RowFold::Sum { ty, .. } = &self.plan.program.folds[fold as usize] else {
                    return Err(Error::misuse("only sums are computed alone, part by part"));
                };
                *total = total.wrapping_add(more) & ty.mask();
            }
            Ok(())
        })?;
        Ok(totals)
    }
}

/// Hands out all rows, or those of a block at a time where they are not in memory, each with the number of
/// its first row; in the order of `order`, or of the file where it is empty. An order that goes through the
/// blocks a few times loads each as often.
fn each_part(
    rows: &Arc<RowStore>,
    order: &[u32],
    mut take: impl FnMut(u64, Arc<Aligned>) -> Result<(), Error>,
) -> Result<(), Error> {
    let aligned = |part: &Arc<RowStore>, order: Vec<u32>| Arc::new(Aligned::ordered(part.clone(), order));
    if rows.spool().is_none() {
        let all = if order.is_empty() { (0..rows.len() as u32).collect() } else { order.to_vec() };
        return take(0, aligned(rows, all));
    }
    let blocks: Vec<(u64, u64)> = rows.blocks().collect();
    let load = |number| rows.block(number).map(|rows| Arc::new(RowStore::from(rows)));
    if order.is_empty() {
        let mut blocks = blocks.into_iter().enumerate();
        return blocks.try_for_each(|(n, (first, count))| {
            take(first, aligned(&load(n)?, (0..count as u32).collect()))
        });
    }
    let number = |row: u32| blocks.partition_point(|(first, _)| *first <= row.into()) - 1;
    let mut place = 0;
    for part in order.chunk_by(|a, b| number(*a) == number(*b)) {
        let n = number(part[0]);
        let first = blocks[n].0 as u32;
        take(place, aligned(&load(n)?, part.iter().map(|row| row - first).collect()))?;
        place += part.len() as u64;
    }
    Ok(())
}

/// What this party attaches to its rows, computed whenever it is asked for.
pub(crate) struct OwnValues<'a> {
    payloads: &'a Payloads,
    layout: &'a PayloadLayout,
    built: &'a Built,
    rows: &'a Arc<RowStore>,
    me: PartyId,
    /// The order of the rows; empty for that of the file.
    order: &'a [u32],
}

impl PayloadSource for OwnValues<'_> {
    fn layout(&self) -> &PayloadLayout {
        self.layout
    }

    fn rows(&self) -> u64 {
        self.rows.len()
    }

    fn each(&self, take: &mut PayloadTaker<'_>) -> Result<(), Error> {
        let Self { payloads, built, rows, me, order, .. } = *self;
        each_part(rows, order, |first, part| {
            let count = part.union();
            let mut shard = RangeRows::new(part, built, me, 0..count)?;
            payloads.each(me, &mut shard, &mut |from, table| take(first + from, table))
        })
    }
}

/// What the parties attach to their rows: the fields of both, and this party's values.
pub(crate) struct Attached {
    /// One row per own row, and behind them one of a row that is not there.
    table: PayloadTable,
}

impl Attached {
    /// The columns of a study that only matches, as they are; a row that is not there has zeros. With
    /// `dummies` a further field is 1 for real rows ([`REAL`]).
    ///
    /// # Errors
    /// When a row is too wide to be matched.
    pub fn columns(program: &Program, rows: &ProgramRows, me: PartyId, dummies: bool) -> Result<Self, Error> {
        let layouts = column_layouts(program, dummies)?;
        let mut table = PayloadTable::zeros(layouts[me.index()].clone(), rows.identifiers.len() as u64 + 1)?;
        for (field, column) in owned(program, me).enumerate() {
            let own = rows.names.iter().position(|name| *name == column.name);
            let own = own.ok_or_else(|| Error::misuse(format!("column {:?} was not read", column.name)))?;
            for (row, cell) in (0..).zip(&rows.columns[own]) {
                table.set(row, field, i128::from(*cell).cast_unsigned());
            }
        }
        if dummies {
            let real = layouts[me.index()].fields().len() - 1;
            (0..rows.identifiers.len() as u64).for_each(|row| table.set(row, real, 1));
        }
        Ok(Self { table })
    }

    /// What a made-up row has attached.
    pub fn blank(&self) -> &[u8] {
        self.table.row(self.table.rows() - 1)
    }

    /// The rows of the table that are of own rows: all but the last.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn own(&self) -> Result<PayloadTable, Error> {
        let rows = self.table.rows() - 1;
        let mut own = PayloadTable::zeros(self.table.layout().clone(), rows)?;
        let bytes = own.bytes().len();
        own.bytes_mut().copy_from_slice(&self.table.bytes()[..bytes]);
        Ok(own)
    }
}

/// The columns of one party, in the order in which they are attached.
pub(super) fn owned(program: &Program, party: PartyId) -> impl Iterator<Item = &RowColumn> {
    program.columns.iter().filter(move |column| column.holder == Holder::Party(party))
}

/// The name of the field that tells real rows from dummies.
pub(super) const REAL: &str = "real";

/// The fields of both parties' columns as they are, and with `dummies` the one of [`REAL`] behind them.
///
/// # Errors
/// When a row is too wide to be matched.
pub(crate) fn column_layouts(program: &Program, dummies: bool) -> Result<[PayloadLayout; 2], Error> {
    let real = dummies.then(|| TableField::number(1));
    let layout = |party| {
        PayloadLayout::new(
            owned(program, party).map(|c| TableField::number(c.ty.width.div_ceil(8))).chain(real),
        )
    };
    Ok([layout(PartyId(0))?, layout(PartyId(1))?])
}

/// This party's half before the match.
pub(crate) struct Half {
    payloads: Payloads,
    layouts: [PayloadLayout; 2],
    /// What a row that is not there has attached.
    pub blank: Vec<u8>,
    alone: Vec<(u32, u128)>,
    me: PartyId,
}

impl Half {
    /// What this party brings.
    pub fn new(
        built: &Built,
        rows: &Arc<RowStore>,
        me: PartyId,
        plan: Arc<JoinedPlan>,
    ) -> Result<Self, Error> {
        let payloads = Payloads::new(built, plan)?;
        let (blank, alone) = (payloads.blank(built, rows, me)?, payloads.alone(built, rows, me)?);
        let layouts = payloads.layouts()?;
        Ok(Self { payloads, layouts, blank, alone, me })
    }

    /// What is attached to these rows, of which this half was made.
    pub fn values<'a>(
        &'a self,
        built: &'a Built,
        rows: &'a Arc<RowStore>,
        order: &'a [u32],
    ) -> OwnValues<'a> {
        let Self { payloads, layouts, me, .. } = self;
        OwnValues { payloads, layout: &layouts[me.index()], built, rows, me: *me, order }
    }
}

/// Joined rows as this party holds them.
pub(crate) struct Shared {
    payloads: Payloads,
    /// What this party totals from its own file.
    alone: Vec<(u32, u128)>,
    me: PartyId,
    rows: u64,
    slots: u64,
    parts: [HeldPart; 2],
    valid: ValidEntries,
}

/// One party's values along the joined rows.
enum HeldPart {
    /// This party's shares of them; or its own, in the clear.
    Table(ShareTable),
    /// They are the peer's, in the clear.
    Theirs,
}

impl Shared {
    /// What a match of these rows gave. Where own values stay in the clear they are laid along the joined
    /// rows, within `room`.
    ///
    /// # Errors
    /// When the parts are not those of the plan: a bug; when rows cannot be read, or laid out.
    pub fn new(
        half: Half,
        joined: JoinedShares,
        (built, own, order): (&Built, &Arc<RowStore>, &[u32]),
        room: &SpillRoom,
    ) -> Result<Self, Error> {
        let JoinedShares { rows, slots, parts, valid } = joined;
        let (same, slots) = (slots == half.payloads.slots, u64::from(slots));
        let (layouts, me) = (&half.layouts, half.me.index());
        let entries = [rows, rows * slots];
        let fits = |part: usize| match &parts[part] {
            JoinedPart::Shared(table) => *table.layout() == layouts[part] && table.rows() >= entries[part],
            JoinedPart::Mine(own) => own.len() as u64 == rows && part == me,
            JoinedPart::Theirs => part != me,
        };
        if !same || !(0..2).all(fits) {
            return Err(Error::misuse("a match gives shares of what its parties attached"));
        }
        let held = |part| {
            Ok::<_, Error>(match part {
                JoinedPart::Shared(table) => HeldPart::Table(table),
                JoinedPart::Mine(places) => {
                    let values = half.values(built, own, order);
                    HeldPart::Table(ShareTable::along(places, &values, &half.blank, room)?)
                }
                JoinedPart::Theirs => HeldPart::Theirs,
            })
        };
        let [first, second] = parts;
        let parts = [held(first)?, held(second)?];
        let Half { payloads, alone, me, .. } = half;
        Ok(Self { payloads, alone, me, rows, slots, parts, valid })
    }

    /// Joined rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What this party holds of an entry in one joined row, for a reader that has met these blocks of both
    /// parts.
    fn share(&self, source: &Source, row: u64, blocks: &mut [ShareBlock; 2]) -> Result<u128, Error> {
        Ok(match *source {
            Source::Field { party, slot, field, bit } => {
                let entry = if party == PartyId(0) { row } else { row * self.slots + u64::from(slot) };
                let word = match &self.parts[party.index()] {
                    HeldPart::Table(table) => table.get(entry, field, &mut blocks[party.index()])?,
                    HeldPart::Theirs => 0,
                };
                word >> bit
            }
            Source::Valid { slot } => {
                let at = row * self.slots + u64::from(slot);
                match &self.valid {
                    ValidEntries::Shared(words) | ValidEntries::Mine(words) => {
                        u128::from(words[at as usize / 64] >> (at % 64) & 1)
                    }
                    ValidEntries::Theirs => 0,
                    // Of a joined row that is a match one party says so.
                    ValidEntries::All => u128::from(self.me == PartyId(0)),
                }
            }
        })
    }
}

/// Where an entry comes from.
enum Source {
    Field { party: PartyId, slot: u32, field: usize, bit: u8 },
    Valid { slot: u32 },
}

/// A range of the joined rows: what one unit of the computation reads.
pub(crate) struct JoinedRange {
    shared: Arc<Shared>,
    sources: Vec<(Source, u128)>,
    range: Range<u64>,
    /// Whether it is the unit that has what this party totals from its own file.
    totals: bool,
    /// The block of either part that was read last.
    blocks: [ShareBlock; 2],
}

impl JoinedRange {
    /// The rows of a unit.
    ///
    /// # Errors
    /// When an entry is in no payload: a bug.
    pub fn new(shared: Arc<Shared>, ranges: &RowRanges, unit: u64) -> Result<Self, Error> {
        let Payloads { plan, payloads, column_slots, .. } = &shared.payloads;
        let source = |(at, entry): (usize, &program::lower::JoinedEntry)| {
            let lost = || Error::misuse(format!("entry {at} is in no payload"));
            let source = match entry.holder {
                Holder::Party(party) => {
                    let (slot, field, bit) = payloads[party.index()].place(at).ok_or_else(lost)?;
                    Source::Field { party, slot, field, bit }
                }
                _ => match plan.program.row.node(entry.node).op {
                    Op::Column(column) => Source::Valid { slot: column_slots[column as usize].into() },
                    _ => return Err(lost()),
                },
            };
            Ok((source, entry.kind.mask()))
        };
        let sources = plan.entries.iter().enumerate().map(source).collect::<Result<_, Error>>()?;
        let (range, totals) = (ranges.range(unit), unit == 0);
        Ok(Self { sources, shared, range, totals, blocks: Default::default() })
    }
}

impl JoinedRows for JoinedRange {
    fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn read(&mut self, entry: usize, from: u64, into: &mut [u128]) -> Result<(), Error> {
        let Self { shared, sources, blocks, range, .. } = self;
        let (source, mask) = &sources[entry];
        let rows = into.len() as u64;
        for (block, slots) in blocks.iter_mut().zip([1, shared.slots]) {
            block.go_over(rows * slots);
        }
        for (i, value) in (from..).zip(into) {
            *value = shared.share(source, range.start + i, blocks)? & mask;
        }
        Ok(())
    }

    fn alone(&mut self, fold: u32) -> Result<u128, Error> {
        let totals = &self.shared.alone;
        let total = totals.iter().find(|(known, _)| *known == fold).map(|(_, total)| *total);
        let total = total.ok_or_else(|| Error::misuse("a fold of another party's alone"))?;
        Ok(if self.totals { total } else { 0 })
    }
}
