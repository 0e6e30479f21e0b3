//! From lines of files to settled rows, in memory or, where they do not fit, by parts.
//!
//! Lines come in one pass. Where they outgrow their share of memory they are dealt, by a hash of the
//! identifier, to partitions in the party's state; then each partition is settled by itself, exactly as all
//! lines are where they fit: lines of one identifier are always in one partition, in the order of their
//! places.

use crate::complaints::Complaints;
use crate::cores::in_order;
use crate::keys::KeyColumns;
use crate::row_store::{RowSpool, SealedBlock};
use crate::source::DataLocation;
use crate::table::{FilePart, Files, RowPlace, RowSink, TableCell, file_parts, read_part, some_rows};
use crate::{InputReport, Row, RowShape, RowStore, Rows, source};
use base::{Error, limits};
use std::cell::OnceCell;
use std::sync::{Arc, Mutex, PoisonError};
use store::{
    PARTITIONS, PartitionRecords, RUN_MEMORY, RecordSize, RunObject, RunReader, RunState, RunWriter,
};
use study::format::InputFormat;

/// How many bytes of memory reading may take, of rows that need not fit there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadingMemory {
    /// Lines as they are read; beyond it they are dealt. What is held for them may be twice as much.
    pub lines: u64,
    /// The writers of what is dealt, [`RUN_MEMORY`] at least.
    pub runs: u64,
    /// Files, or parts of files, that are read at a time at most: each has a decoder and a writer.
    pub readers: usize,
    /// A partition's lines, aimed at: little of it all, for settled rows are made of them.
    pub partition: u64,
    /// The lines of those that are settled at a time, at most.
    pub partition_most: u64,
}

/// Where rows go that do not fit into memory, and how much memory reading them may take.
pub struct SpoolRoom<'a> {
    begin: Box<dyn Fn() -> Result<RunState, Error> + 'a>,
    state: OnceCell<Arc<RunState>>,
    memory: ReadingMemory,
    always: bool,
}

impl<'a> SpoolRoom<'a> {
    /// So many bytes, and state that begins when rows do not fit, and not before.
    pub fn new(memory: ReadingMemory, begin: impl Fn() -> Result<RunState, Error> + 'a) -> Self {
        Self { begin: Box::new(begin), state: OnceCell::new(), memory, always: false }
    }

    /// Whether rows go there even where they fit.
    #[must_use]
    pub fn always(self, always: bool) -> Self {
        Self { always, ..self }
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
    folders: Vec<String>,
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
    let parts = file_parts(data, if readers > 1 { FILE_PARTS.max(PARTS_EACH * readers) } else { 1 })?;
    let readers = readers.min(parts.len()) as u64;
    let begin;
    let mut dealer = LineDealer { lines, room: None, writer: None };
    if let Some(room) = room {
        let memory = room.memory.runs / readers.max(1);
        begin = move || LineWriter::begin(room.state()?, bits_for(data, room)?, memory);
        dealer.room = Some((room.memory.lines, &begin));
    }
    let always = room.is_some_and(|room| room.always);
    let (mut files, mut next) = (Files::default(), 0);
    while next < parts.len() && !(readers > 1 && (always || dealer.writer.is_some())) {
        let (file, rows) = read_part(&parts[next], data.format, &mut dealer, complaints)?;
        files.absorb(file);
        report.rows_read += rows;
        next += 1;
    }
    let Some((room, writer)) = room.zip(dealer.finish(always)?) else {
        some_rows(report.rows_read, data, complaints)?;
        return Ok((files, None));
    };
    lines.count(report);
    let apart = FilesApart {
        parts: &parts[next..],
        format: data.format,
        state: room.state()?,
        lines: room.memory.lines / readers.max(1),
        runs: room.memory.runs / readers.max(1),
        readers,
    };
    let dealt = apart.read(writer, &blank, &mut files, complaints, report)?;
    some_rows(report.rows_read, data, complaints)?;
    Ok((files, Some(dealt)))
}

/// Files that are read side by side, whose lines are dealt in any case.
struct FilesApart<'a> {
    parts: &'a [FilePart],
    format: &'a InputFormat,
    state: &'a RunState,
    /// Bytes of the lines of a part while it is read, and of its writer.
    lines: u64,
    runs: u64,
    readers: u64,
}

impl FilesApart<'_> {
    /// Reads them, and deals their lines beside those that `writer` has dealt already.
    fn read(
        &self,
        writer: LineWriter,
        blank: &impl LineReader,
        files: &mut Files,
        complaints: &mut Complaints,
        report: &mut InputReport,
    ) -> Result<DealtLines, Error> {
        let bits = writer.bits;
        // Of those who do not write now.
        let writers = Mutex::new(vec![writer]);
        let idle = || writers.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = || LineWriter::begin(self.state, bits, self.runs);
        let read = |at: usize| -> Result<ReadPart, Error> {
            let (mut complaints, mut report) = (Complaints::default(), InputReport::default());
            let writer = idle().pop();
            let writer = Some(writer.map_or_else(begin, Ok)?);
            let mut lines = blank.clone();
            let mut dealer = LineDealer { lines: &mut lines, room: Some((self.lines, &begin)), writer };
            let (file, rows) = read_part(&self.parts[at], self.format, &mut dealer, &mut complaints)?;
            idle().extend(dealer.finish(true)?);
            lines.count(&mut report);
            report.rows_read = rows;
            Ok(ReadPart { file, complaints, report })
        };
        in_order(self.parts.len(), (self.readers, &|_| 1), read, |part| {
            files.absorb(part.file);
            complaints.append(part.complaints);
            report.absorb(part.report);
            Ok(())
        })?;
        let mut dealt = DealtLines { bits, folders: Vec::new(), runs: Vec::new() };
        for writer in writers.into_inner().unwrap_or_else(PoisonError::into_inner) {
            dealt.folders.push(writer.folder);
            dealt.runs.append(&mut writer.runs.finish()?);
        }
        Ok(dealt)
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
struct LineWriter {
    /// Bits of a partition's number, and where runs lie.
    bits: u32,
    folder: String,
    runs: RunWriter,
}

/// Bytes of a line's record before its cells: where its identifier stands in the order, and its place.
const LINE_HEAD: usize = 16;

impl LineWriter {
    fn begin(state: &RunState, bits: u32, memory: u64) -> Result<Self, Error> {
        let (sealed, folder) = (state.sealed().clone(), state.folder("lines"));
        let shape = (1 << bits, RecordSize::Prefixed);
        let runs = RunWriter::new(sealed, &folder, shape, memory.max(RUN_MEMORY))?;
        Ok(Self { bits, folder, runs })
    }

    /// Deals all lines that are in memory.
    fn deal(&mut self, lines: &mut impl LineReader) -> Result<(), Error> {
        let (keys, mut record) = (lines.keys(), Vec::new());
        for (line, place) in keys.places.iter().enumerate() {
            let hash = keys.identifiers.order_hash(line);
            let identifier = keys.identifiers.get(line, 0);
            record.clear();
            record.extend([hash.to_be_bytes(), place.number().to_be_bytes()].as_flattened());
            record.extend((identifier.len() as u32).to_le_bytes());
            record.extend_from_slice(identifier);
            lines.append_line(line, &mut record);
            self.runs.push(hash.checked_shr(64 - self.bits).unwrap_or(0) as u32, &record)?;
        }
        lines.clear();
        Ok(())
    }
}

/// Hands rows on to the reader of lines, and deals these where they are too many.
struct LineDealer<'a, L> {
    lines: &'a mut L,
    /// Bytes of lines that may be in memory, and what begins to deal them; none where all may.
    room: Option<(u64, &'a dyn Fn() -> Result<LineWriter, Error>)>,
    writer: Option<LineWriter>,
}

impl<L: LineReader> LineDealer<'_, L> {
    fn deal(&mut self, begin: &dyn Fn() -> Result<LineWriter, Error>) -> Result<(), Error> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(begin()?),
        };
        writer.deal(self.lines)
    }

    /// The writer of all lines; none where all are in memory, and may be there.
    fn finish(mut self, always: bool) -> Result<Option<LineWriter>, Error> {
        if let Some((_, begin)) = self.room.filter(|_| always || self.writer.is_some()) {
            self.deal(begin)?;
        }
        Ok(self.writer)
    }
}

impl<L: LineReader> RowSink for LineDealer<'_, L> {
    fn columns(&self) -> Vec<String> {
        self.lines.columns()
    }

    fn decimals(&self, column: usize) -> bool {
        self.lines.decimals(column)
    }

    fn row(&mut self, row: &mut Row<'_>, cells: &[TableCell<'_>]) -> Result<(), Error> {
        self.lines.row(row, cells)?;
        match self.room {
            Some((most, begin)) if self.lines.bytes() > most => self.deal(begin),
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
        self.dealt.folders.iter().try_for_each(|folder| state.remove(folder))?;
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
