//! From lines of files to settled rows, in memory or, where they do not fit, by parts.
//!
//! Lines come in one pass. Where they outgrow their share of memory they are dealt, by a hash of the
//! identifier, to partitions in the party's state; then each partition is settled by itself, exactly as all
//! lines are where they fit: lines of one identifier are always in one partition, in the order of their
//! places.

use crate::complaints::Complaints;
use crate::content::InputContent;
use crate::keys::KeyColumns;
use crate::row_store::RowSpool;
use crate::source::DataLocation;
use crate::table::{Files, RowPlace, RowSink, TableCell, read};
use crate::{InputReport, Row, RowShape, RowStore, Rows, source};
use base::{Error, limits};
use std::cell::OnceCell;
use std::sync::Arc;
use store::{PARTITIONS, RUN_MEMORY, RecordSize, RunObject, RunReader, RunState, RunWriter};

/// How many bytes of memory reading may take, of rows that need not fit there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadingMemory {
    /// Lines as they are read; beyond it they are dealt. What is held for them may be twice as much.
    pub lines: u64,
    /// The writer of what is dealt, [`RUN_MEMORY`] at least.
    pub runs: u64,
    /// A partition's lines, aimed at: little of it all, for settled rows are made of them.
    pub partition: u64,
    /// The same, at most.
    pub partition_most: u64,
}

/// Where rows go that do not fit into memory, and how much memory reading them may take.
pub struct SpoolRoom<'a> {
    begin: Box<dyn Fn() -> Result<RunState, Error> + 'a>,
    state: OnceCell<Arc<RunState>>,
    memory: ReadingMemory,
    always: bool,
    /// Whether what the files held is to be known, and what that was.
    keeps_content: bool,
    content: OnceCell<InputContent>,
}

impl<'a> SpoolRoom<'a> {
    /// So many bytes, and state that begins when rows do not fit, and not before.
    pub fn new(memory: ReadingMemory, begin: impl Fn() -> Result<RunState, Error> + 'a) -> Self {
        let [always, keeps_content] = [false; 2];
        let (state, content) = Default::default();
        Self { begin: Box::new(begin), state, memory, always, keeps_content, content }
    }

    /// Whether rows go there even where they fit.
    #[must_use]
    pub fn always(self, always: bool) -> Self {
        Self { always, ..self }
    }

    /// Whether what the files hold is to be known once they are read.
    #[must_use]
    pub fn keeping_content(self, keeps_content: bool) -> Self {
        Self { keeps_content, ..self }
    }

    /// What the files held that were read, where that was to be known and they are of this machine.
    #[must_use]
    pub fn content(&self) -> Option<InputContent> {
        self.content.get().copied()
    }

    fn state(&self) -> Result<&Arc<RunState>, Error> {
        if let Some(state) = self.state.get() {
            return Ok(state);
        }
        let begun = Arc::new((self.begin)()?);
        Ok(self.state.get_or_init(|| begun))
    }
}

/// Lines as they are read, before those of one identifier are settled.
pub(crate) trait LineReader: RowSink {
    /// Their identifiers and places.
    fn keys(&self) -> &KeyColumns<'_>;

    /// What a settled row's cells are.
    fn shape(&self) -> RowShape;

    /// Bytes that lines need; what is held for them may be twice as much.
    fn bytes(&self) -> u64;

    /// Appends the cells of a line.
    fn append_line(&self, line: usize, into: &mut Vec<u8>);

    /// Adds a line that was appended; none where the bytes are of no line.
    fn push_line(&mut self, identifier: &[u8], place: RowPlace, cells: &[u8]) -> Option<()>;

    /// Forgets all lines, but what was counted of them.
    fn clear(&mut self);

    /// Makes rows of all lines, complains about those that do not go together, and counts. What lines are
    /// left has no meaning.
    fn settle(&mut self, files: &Files, complaints: &mut Complaints, report: &mut InputReport) -> Rows;

    /// Adds what was counted while lines were read.
    ///
    /// # Errors
    /// When the rows are none that can take part.
    fn finish(&mut self, data: DataLocation<'_>, rows: u64, report: &mut InputReport) -> Result<(), Error>;
}

/// Reads lines and makes rows of them.
pub(crate) fn gather(
    data: DataLocation<'_>,
    mut lines: impl LineReader,
    room: Option<&SpoolRoom<'_>>,
) -> Result<(RowStore, InputReport), Error> {
    let mut complaints = Complaints::default();
    let mut dealer = LineDealer { lines: &mut lines, room, data, bits: 0, folder: String::new(), runs: None };
    let (files, rows_read) = read(data, &mut dealer, &mut complaints)?;
    if let Some((room, content)) = room.zip(files.content()) {
        room.content.get_or_init(|| content);
    }
    let (folder, bits, runs) = dealer.finish()?;
    let mut report = InputReport { rows_read, forms: files.forms().to_vec(), ..InputReport::default() };
    let rows = match (runs, room) {
        (Some(runs), Some(room)) => {
            let parts = LineParts { room, bits, folder: &folder, runs: &runs };
            parts.settle(&mut lines, &files, &mut complaints, &mut report)?
        }
        _ => {
            let rows = lines.settle(&files, &mut complaints, &mut report);
            report.memory = rows.memory();
            RowStore::from(rows)
        }
    };
    complaints.finish()?;
    lines.finish(data, rows.len(), &mut report)?;
    report.rows_kept = rows.len();
    Ok((rows, report))
}

/// Partitions at least where rows are dealt that would fit: several, as there are of those that do not.
const PARTITIONS_LEAST: u64 = 16;

/// Leading bits that number a partition, for input of this size.
fn bits_for(data: DataLocation<'_>, room: &SpoolRoom<'_>) -> Result<u32, Error> {
    let parts = source::text_bytes(data)?.div_ceil(room.memory.partition.max(1));
    let least = if room.always { PARTITIONS_LEAST } else { 1 };
    Ok(parts.clamp(least, PARTITIONS.into()).next_power_of_two().ilog2())
}

/// Hands rows on to the reader of lines, and deals these where they are too many.
struct LineDealer<'a, L> {
    lines: &'a mut L,
    room: Option<&'a SpoolRoom<'a>>,
    data: DataLocation<'a>,
    /// Bits of a partition's number, and where runs lie, once there are some.
    bits: u32,
    folder: String,
    runs: Option<RunWriter>,
}

/// Bytes of a line's record before its cells: where its identifier stands in the order, and its place.
const LINE_HEAD: usize = 16;

impl<L: LineReader> LineDealer<'_, L> {
    /// Deals all lines that are in memory.
    fn deal(&mut self, room: &SpoolRoom<'_>) -> Result<(), Error> {
        let writer = match &mut self.runs {
            Some(writer) => writer,
            none => {
                self.bits = bits_for(self.data, room)?;
                let state = room.state()?;
                let (sealed, folder) = (state.sealed().clone(), state.folder("lines"));
                let shape = (1 << self.bits, RecordSize::Prefixed);
                let writer = RunWriter::new(sealed, &folder, shape, room.memory.runs.max(RUN_MEMORY))?;
                self.folder = folder;
                none.insert(writer)
            }
        };
        let (keys, mut record) = (self.lines.keys(), Vec::new());
        for (line, place) in keys.places.iter().enumerate() {
            let hash = keys.identifiers.order_hash(line);
            let identifier = keys.identifiers.get(line, 0);
            record.clear();
            record.extend([hash.to_be_bytes(), place.number().to_be_bytes()].as_flattened());
            record.extend((identifier.len() as u32).to_le_bytes());
            record.extend_from_slice(identifier);
            self.lines.append_line(line, &mut record);
            writer.push(hash.checked_shr(64 - self.bits).unwrap_or(0) as u32, &record)?;
        }
        self.lines.clear();
        Ok(())
    }

    /// The folder of runs, bits of a partition's number, and the runs of all lines; none where all are in
    /// memory.
    fn finish(mut self) -> Result<(String, u32, Option<Vec<RunObject>>), Error> {
        if let Some(room) = self.room.filter(|room| room.always || self.runs.is_some()) {
            self.deal(room)?;
        }
        Ok((self.folder, self.bits, self.runs.map(RunWriter::finish).transpose()?))
    }
}

impl<L: LineReader> RowSink for LineDealer<'_, L> {
    fn columns(&self) -> Vec<String> {
        self.lines.columns()
    }

    fn keeps_content(&self) -> bool {
        self.room.is_some_and(|room| room.keeps_content)
    }

    fn decimals(&self, column: usize) -> bool {
        self.lines.decimals(column)
    }

    fn row(&mut self, row: &mut Row<'_>, cells: &[TableCell<'_>]) -> Result<(), Error> {
        self.lines.row(row, cells)?;
        match self.room {
            Some(room) if self.lines.bytes() > room.memory.lines => self.deal(room),
            _ => Ok(()),
        }
    }
}

/// Lines that were dealt.
struct LineParts<'a> {
    room: &'a SpoolRoom<'a>,
    bits: u32,
    folder: &'a str,
    runs: &'a [RunObject],
}

impl LineParts<'_> {
    /// Makes rows of all lines, a partition after the other.
    fn settle(
        &self,
        lines: &mut impl LineReader,
        files: &Files,
        complaints: &mut Complaints,
        report: &mut InputReport,
    ) -> Result<RowStore, Error> {
        let state = self.room.state()?;
        let reader = RunReader::open(state.sealed().clone(), self.runs)?;
        let mut spool = RowSpool::new(state.clone(), lines.shape());
        let mut groups: Option<[u64; 2]> = None;
        for partition in 0..1 << self.bits {
            lines.clear();
            self.check_memory(reader.partition_bytes(partition))?;
            let records = reader.partition(partition)?;
            for record in records.sorted() {
                push(lines, record).ok_or_else(|| Error::misuse("a line that was dealt cannot be read"))?;
            }
            drop(records);
            let rows = lines.settle(files, complaints, report);
            if let Some(more) = rows.groups() {
                let sum = groups.get_or_insert_default();
                *sum = [sum[0] + more[0], sum[1] + more[1]];
            }
            spool.push(&rows)?;
            if spool.len() >= limits::ROWS {
                return Err(Error::limit("rows of one side", spool.len(), limits::ROWS - 1));
            }
        }
        drop(reader);
        state.remove(self.folder)?;
        Ok(RowStore::spooled(spool, groups))
    }

    fn check_memory(&self, held: u64) -> Result<(), Error> {
        let most = self.room.memory.partition_most;
        match held <= most {
            true => Ok(()),
            false => Err(Error::input(format!(
                "the lines of one part in {} of the identifiers take {} MiB of memory, and {} MiB may be \
                 taken: has one identifier that many lines? Else raise `memory`",
                1u64 << self.bits,
                held >> 20,
                most >> 20,
            ))),
        }
    }
}

/// Adds the line of a record.
fn push(lines: &mut impl LineReader, record: &[u8]) -> Option<()> {
    let (head, rest) = record.split_first_chunk::<LINE_HEAD>()?;
    let place = RowPlace::from_number(u64::from_be_bytes(*head[8..].first_chunk()?));
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (identifier, cells) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    lines.push_line(identifier, place, cells)
}
