//! From lines of files to settled rows, in memory or, where they do not fit, by parts.
//!
//! Lines come in one pass. Where they outgrow their share of memory they are dealt, by a hash of the
//! identifier, to partitions in the party's state; then each partition is settled by itself, exactly as all
//! lines are where they fit: lines of one identifier are always in one partition, in the order of their
//! places.

use crate::complaints::Complaints;
use crate::content::InputContent;
use crate::keys::KeyColumns;
use crate::row_store::{RowSpool, SealedBlock};
use crate::source::DataLocation;
use crate::table::{FilePart, Files, RowPlace, RowSink, TableCell, file_parts, read_part, some_rows};
use crate::{InputReport, Row, RowShape, RowStore, Rows, source};
use base::{Error, in_order, limits};
use std::cell::OnceCell;
use std::sync::Arc;
use store::{
    PARTITIONS, PartitionRecords, RUN_MEMORY, RecordSize, RunObject, RunReader, RunState, RunWriters,
};
use study::format::InputFormat;

/// How many bytes of memory reading may take, of rows that need not fit there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadingMemory {
    /// Lines as they are read; beyond it they are dealt. What is held for them may be twice as much.
    pub lines: u64,
    /// So many lines in memory, whatever they need.
    pub rows: u64,
    /// The writers of what is dealt, [`RUN_MEMORY`] at least.
    pub runs: u64,
    /// Files, or parts of files, that are read at a time at most: each has a decoder and a writer.
    pub readers: usize,
    /// A partition's lines, aimed at: little of it all, for settled rows are made of them.
    pub partition: u64,
    /// The lines of those that are settled at a time, at most.
    pub partition_most: u64,
}

impl ReadingMemory {
    /// As much as is needed.
    pub const UNBOUNDED: Self = Self {
        lines: u64::MAX,
        rows: u64::MAX,
        runs: u64::MAX,
        readers: 1,
        partition: u64::MAX,
        partition_most: u64::MAX,
    };
}

/// Where rows go that do not fit into memory, and how much memory reading them may take.
pub struct SpoolRoom<'a> {
    begin: Box<dyn Fn() -> Result<RunState, Error> + 'a>,
    state: OnceCell<Arc<RunState>>,
    memory: ReadingMemory,
    always: bool,
    /// Whether what the files held is to be known of rows that go there, and what that was.
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

    /// Whether what the files hold is to be known of rows that go there.
    #[must_use]
    pub fn keeping_content(self, keeps_content: bool) -> Self {
        Self { keeps_content, ..self }
    }

    /// What the files held of which rows went there, where that was to be known and they are of this machine.
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
pub(crate) trait LineReader: RowSink + Clone + Sync {
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

    /// Adds what was counted while lines were read and settled.
    fn count(&mut self, report: &mut InputReport);

    /// Ends the report of all rows.
    ///
    /// # Errors
    /// When the rows are none that can take part.
    fn finish(&self, data: DataLocation<'_>, rows: u64, report: &mut InputReport) -> Result<(), Error>;
}

/// Reads lines and makes rows of them.
pub(crate) fn gather<L: LineReader>(
    data: DataLocation<'_>,
    mut lines: L,
    room: Option<&SpoolRoom<'_>>,
) -> Result<(RowStore, InputReport), Error> {
    let (mut complaints, blank) = (Complaints::default(), lines.clone());
    let mut report = InputReport::default();
    let (files, dealt) = read_lines(data, &mut lines, room, &mut complaints, &mut report)?;
    report.forms = files.forms().to_vec();
    let rows = match (dealt, room) {
        (Some(dealt), Some(room)) => {
            if room.keeps_content
                && let Some(content) = InputContent::of(data, &files.hashes())?
            {
                room.content.get_or_init(|| content);
            }
            let parts = LineParts { state: room.state()?, most: room.memory.partition_most, dealt: &dealt };
            parts.settle(&blank, &files, &mut complaints, &mut report)?
        }
        _ => {
            let rows = lines.settle(&files, &mut complaints, &mut report);
            lines.count(&mut report);
            report.memory = rows.memory();
            RowStore::from(rows)
        }
    };
    complaints.finish()?;
    blank.finish(data, rows.len(), &mut report)?;
    report.rows_kept = rows.len();
    Ok((rows, report))
}

/// Lines in runs of the state.
struct DealtLines {
    /// Bits of a partition's number.
    bits: u32,
    folder: String,
    runs: Vec<RunObject>,
}

/// Parts of the files at least, and for each reader, where they are read side by side: some are longer than
/// others, and the first are read before it is known that lines do not fit.
const FILE_PARTS: usize = 32;
const PARTS_EACH: usize = 4;

/// Reads lines, and deals them where they do not fit. From then on parts of the files are read side by side.
fn read_lines<L: LineReader>(
    data: DataLocation<'_>,
    lines: &mut L,
    room: Option<&SpoolRoom<'_>>,
    complaints: &mut Complaints,
    report: &mut InputReport,
) -> Result<(Files, Option<DealtLines>), Error> {
    let blank = lines.clone();
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let readers = room.map_or(1, |room| room.memory.readers.min(cores()));
    let mut parts = file_parts(data, if readers > 1 { FILE_PARTS.max(PARTS_EACH * readers) } else { 1 })?;
    let hashed = room.is_some_and(|room| room.keeps_content);
    parts.iter_mut().for_each(|part| part.hashed = hashed);
    let readers = readers.min(parts.len()) as u64;
    let runs: OnceCell<LineRuns> = OnceCell::new();
    let begin = || match (runs.get(), room) {
        (None, Some(room)) => {
            let begun = LineRuns::begin(data, room, readers)?;
            Ok(runs.get_or_init(|| begun))
        }
        (begun, _) => begun.ok_or_else(|| Error::misuse("there is no place for lines")),
    };
    if room.is_some_and(|room| room.always) {
        begin()?;
    }
    let most = |room: &SpoolRoom<'_>| [room.memory.lines, room.memory.rows];
    let mut dealer = LineDealer { lines, runs: room.map(|room| (most(room), &begin as &BeginRuns<'_>)) };
    let (mut files, mut next) = (Files::default(), 0);
    while next < parts.len() && (readers == 1 || runs.get().is_none()) {
        let (file, rows) = read_part(&parts[next], data.format, &mut dealer, complaints)?;
        files.absorb(file);
        report.rows_read += rows;
        next += 1;
    }
    if let Some(runs) = runs.get() {
        runs.deal(lines)?;
        lines.count(report);
        let lines = room.map_or(0, |room| room.memory.lines) / readers.max(1);
        let apart = FilesApart { parts: &parts[next..], format: data.format, lines, readers };
        apart.read(runs, &blank, &mut files, complaints, report)?;
    }
    some_rows(report.rows_read, data, complaints)?;
    Ok((files, runs.into_inner().map(LineRuns::finish).transpose()?))
}

/// Files that are read side by side, whose lines are dealt in any case.
struct FilesApart<'a> {
    parts: &'a [FilePart],
    format: &'a InputFormat,
    /// Bytes of the lines of a part while it is read.
    lines: u64,
    readers: u64,
}

impl FilesApart<'_> {
    /// Reads them, and deals their lines beside those that are dealt already.
    fn read(
        &self,
        runs: &LineRuns,
        blank: &impl LineReader,
        files: &mut Files,
        complaints: &mut Complaints,
        report: &mut InputReport,
    ) -> Result<(), Error> {
        let read = |at: usize| -> Result<ReadPart, Error> {
            let (mut complaints, mut report) = (Complaints::default(), InputReport::default());
            let mut lines = blank.clone();
            let begun = || Ok(runs);
            let mut dealer = LineDealer { lines: &mut lines, runs: Some(([self.lines, u64::MAX], &begun)) };
            let (file, rows) = read_part(&self.parts[at], self.format, &mut dealer, &mut complaints)?;
            runs.deal(&mut lines)?;
            lines.count(&mut report);
            report.rows_read = rows;
            Ok(ReadPart { file, complaints, report })
        };
        in_order(self.parts.len(), (self.readers, &|_| 1), read, |part| {
            files.absorb(part.file);
            complaints.append(part.complaints);
            report.absorb(part.report);
            Ok(())
        })
    }
}

/// What became of a part of the files, but for its lines.
struct ReadPart {
    file: Files,
    complaints: Complaints,
    report: InputReport,
}

/// Partitions at least where rows are dealt that would fit: several, as there are of those that do not.
const PARTITIONS_LEAST: u64 = 16;

/// Leading bits that number a partition, for input of this size.
fn bits_for(data: DataLocation<'_>, room: &SpoolRoom<'_>) -> Result<u32, Error> {
    let parts = source::text_bytes(data)?.div_ceil(room.memory.partition.max(1));
    let least = if room.always { PARTITIONS_LEAST } else { 1 };
    Ok(parts.clamp(least, PARTITIONS.into()).next_power_of_two().ilog2())
}

/// Deals lines to partitions in the state.
struct LineRuns {
    /// Bits of a partition's number, and where runs lie.
    bits: u32,
    folder: String,
    writers: RunWriters,
}

/// Makes room in the state for lines, or says where that is.
type BeginRuns<'a> = dyn Fn() -> Result<&'a LineRuns, Error> + 'a;

/// Bytes of a line's record before its cells: where its identifier stands in the order, and its place.
const LINE_HEAD: usize = 16;

impl LineRuns {
    fn begin(data: DataLocation<'_>, room: &SpoolRoom<'_>, readers: u64) -> Result<Self, Error> {
        let (state, bits) = (room.state()?, bits_for(data, room)?);
        let (sealed, folder) = (state.sealed().clone(), state.folder("lines"));
        let memory = (room.memory.runs / readers.max(1)).max(RUN_MEMORY);
        let writers = RunWriters::new(sealed, &folder, (1 << bits, RecordSize::Prefixed), memory);
        Ok(Self { bits, folder, writers })
    }

    /// Deals all lines that are in memory.
    fn deal(&self, lines: &mut impl LineReader) -> Result<(), Error> {
        let (keys, mut record) = (lines.keys(), Vec::new());
        let mut writer = self.writers.take()?;
        for (line, place) in keys.places.iter().enumerate() {
            let hash = keys.identifiers.order_hash(line);
            let identifier = keys.identifiers.get(line, 0);
            record.clear();
            record.extend([hash.to_be_bytes(), place.number().to_be_bytes()].as_flattened());
            record.extend((identifier.len() as u32).to_le_bytes());
            record.extend_from_slice(identifier);
            lines.append_line(line, &mut record);
            writer.push(hash.checked_shr(64 - self.bits).unwrap_or(0) as u32, &record)?;
        }
        self.writers.give(writer);
        lines.clear();
        Ok(())
    }

    fn finish(self) -> Result<DealtLines, Error> {
        Ok(DealtLines { bits: self.bits, folder: self.folder, runs: self.writers.finish()? })
    }
}

/// Hands rows on to the reader of lines, and deals these where they are too many.
struct LineDealer<'a, L> {
    lines: &'a mut L,
    /// Bytes of lines, and lines, that may be in memory, and where they go beyond that; none where all may.
    runs: Option<([u64; 2], &'a BeginRuns<'a>)>,
}

impl<L: LineReader> RowSink for LineDealer<'_, L> {
    fn columns(&self) -> Vec<String> {
        self.lines.columns()
    }

    fn row(&mut self, row: &mut Row<'_>, cells: &[TableCell<'_>]) -> Result<(), Error> {
        self.lines.row(row, cells)?;
        let (bytes, rows) = (self.lines.bytes(), self.lines.keys().places.len() as u64);
        match self.runs {
            Some(([most, most_rows], begin)) if bytes > most || rows > most_rows => begin()?.deal(self.lines),
            _ => Ok(()),
        }
    }
}

/// Lines that were dealt.
struct LineParts<'a> {
    state: &'a Arc<RunState>,
    /// Bytes of lines in memory at a time.
    most: u64,
    dealt: &'a DealtLines,
}

impl LineParts<'_> {
    /// Makes rows of all lines, partition by partition, on all cores.
    fn settle(
        &self,
        blank: &impl LineReader,
        files: &Files,
        complaints: &mut Complaints,
        report: &mut InputReport,
    ) -> Result<RowStore, Error> {
        let (state, most) = (self.state, self.most);
        let reader = RunReader::open(state.sealed().clone(), &self.dealt.runs)?;
        let mut spool = RowSpool::new(state.clone(), blank.shape(), most);
        let sealer = spool.sealer();
        let filled: Vec<u32> =
            (0..1 << self.dealt.bits).filter(|part| reader.partition_bytes(*part) > 0).collect();
        let settle = |at: usize| -> Result<SettledPart, Error> {
            let records = self.records(&reader, filled[at])?;
            let mut lines = blank.clone();
            for record in records.sorted() {
                push(&mut lines, record)
                    .ok_or_else(|| Error::misuse("a line that was dealt cannot be read"))?;
            }
            drop(records);
            let (mut complaints, mut report) = (Complaints::default(), InputReport::default());
            let rows = lines.settle(files, &mut complaints, &mut report);
            lines.count(&mut report);
            Ok(SettledPart { block: sealer.seal(at, &rows)?, groups: rows.groups(), complaints, report })
        };
        let mut groups: Option<[u64; 2]> = None;
        let bytes = |at: usize| reader.partition_bytes(filled[at]);
        in_order(filled.len(), (most, &bytes), settle, |part| {
            if let Some(more) = part.groups {
                let sum = groups.get_or_insert_default();
                *sum = [sum[0] + more[0], sum[1] + more[1]];
            }
            complaints.absorb_placed(part.complaints);
            report.absorb(part.report);
            spool.push(part.block);
            match spool.len() < limits::ROWS {
                true => Ok(()),
                false => Err(Error::limit("rows of one side", spool.len(), limits::ROWS - 1)),
            }
        })?;
        drop(reader);
        state.remove(&self.dealt.folder)?;
        Ok(RowStore::spooled(spool, groups))
    }

    /// The lines of a partition, as many as may be in memory.
    fn records(&self, reader: &RunReader, partition: u32) -> Result<PartitionRecords, Error> {
        self.check_memory(reader.partition_bytes(partition))?;
        Ok(reader.partition(partition)?)
    }

    fn check_memory(&self, held: u64) -> Result<(), Error> {
        let most = self.most;
        match held <= most {
            true => Ok(()),
            false => Err(Error::input(format!(
                "the lines of one part in {} of the identifiers take {} MiB of memory, and {} MiB may be \
                 taken: has one identifier that many lines? Else raise `memory`",
                1u64 << self.dealt.bits,
                held >> 20,
                most >> 20,
            ))),
        }
    }
}

/// What became of the lines of a partition.
struct SettledPart {
    block: SealedBlock,
    groups: Option<[u64; 2]>,
    complaints: Complaints,
    report: InputReport,
}

/// Adds the line of a record.
fn push(lines: &mut impl LineReader, record: &[u8]) -> Option<()> {
    let (head, rest) = record.split_first_chunk::<LINE_HEAD>()?;
    let place = RowPlace::from_number(u64::from_be_bytes(*head[8..].first_chunk()?));
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (identifier, cells) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    lines.push_line(identifier, place, cells)
}
