//! A unit's rows at a worker process: it asks its coordinator for them, a block of a column at a time, over a
//! socket of their own. What a coordinator reads of its state stays there, and a worker holds no key to it.
//!
//! | | bytes |
//! |---|---|
//! | request | kind 1 (0 column, 1 entry, 2 own total, 3 no more), number 4, first row 8, rows 4 |
//! | answer | 0, and values of as many bytes as the type takes; or 1, length 4, why it cannot be read |

use crate::engines::StudyEngine;
use crate::stages::compute::UnitRows;
use base::Error;
use engine::RowInput;
use program::lower::JoinedPlan;
use program::{JoinedRows, Program, ShardRows};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Rows of a block.
const BLOCK_ROWS: u64 = 8192;
/// Blocks of a column that a worker keeps: an engine that asks for rows ahead reads in two places by turns.
const BLOCKS: usize = 2;
/// Bytes of an error's text.
const TEXT_BYTES: usize = 4096;
const REQUEST_BYTES: usize = 17;

const COLUMN: u8 = 0;
const ENTRY: u8 = 1;
const ALONE: u8 = 2;
const OVER: u8 = 3;

/// How many bytes each column and entry takes.
#[derive(Clone, Default)]
pub(crate) struct ValueWidths {
    columns: Vec<usize>,
    entries: Vec<usize>,
}

impl ValueWidths {
    pub fn of(program: &Program, joined: Option<&Arc<JoinedPlan>>) -> Self {
        let bytes = |bits: u8| usize::from(bits).div_ceil(8);
        let columns = program.columns.iter().map(|column| bytes(column.ty.width)).collect();
        let entries = joined.into_iter().flat_map(|plan| &plan.entries);
        Self { columns, entries: entries.map(|entry| bytes(entry.kind.width())).collect() }
    }

    fn of_request(&self, request: &RowRequest) -> Option<usize> {
        let of = |widths: &[usize]| widths.get(request.number as usize).copied();
        match request.kind {
            COLUMN => of(&self.columns),
            ENTRY => of(&self.entries),
            ALONE => Some(size_of::<u128>()),
            _ => None,
        }
    }
}

struct RowRequest {
    kind: u8,
    number: u32,
    from: u64,
    count: u32,
}

impl RowRequest {
    fn bytes(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [self.kind; REQUEST_BYTES];
        bytes[1..5].copy_from_slice(&self.number.to_le_bytes());
        bytes[5..13].copy_from_slice(&self.from.to_le_bytes());
        bytes[13..].copy_from_slice(&self.count.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8; REQUEST_BYTES]) -> Self {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let from = u64::from_le_bytes(bytes[5..13].try_into().expect("eight bytes"));
        Self { kind: bytes[0], number: word(1), from, count: word(13) }
    }
}

/// Answers a worker's requests for the rows of one unit, until it needs no more.
///
/// # Errors
/// When the worker is gone, or asks for what there is not.
pub(crate) fn serve_rows(
    stream: &mut UnixStream,
    rows: &mut UnitRows,
    widths: &ValueWidths,
) -> Result<(), Error> {
    let gone = |e: std::io::Error| Error::io("a worker is gone", &e);
    let (mut values, mut answer) = (Vec::new(), Vec::new());
    loop {
        let mut request = [0; REQUEST_BYTES];
        stream.read_exact(&mut request).map_err(gone)?;
        let request = RowRequest::read(&request);
        if request.kind == OVER {
            return Ok(());
        }
        let width = widths.of_request(&request).filter(|_| u64::from(request.count) <= BLOCK_ROWS);
        let width = width.ok_or_else(|| Error::misuse("a worker asks for rows that there are not"))?;
        values.clear();
        values.resize(request.count as usize, 0u128);
        answer.clear();
        match read(rows, &request, &mut values) {
            Ok(()) => {
                answer.push(0);
                values.iter().for_each(|value| answer.extend_from_slice(&value.to_le_bytes()[..width]));
            }
            Err(error) => {
                let text = error.to_string();
                let text = &text.as_bytes()[..text.len().min(TEXT_BYTES)];
                answer.push(1);
                answer.extend_from_slice(&(text.len() as u32).to_le_bytes());
                answer.extend_from_slice(text);
            }
        }
        stream.write_all(&answer).map_err(gone)?;
    }
}

fn read(rows: &mut UnitRows, request: &RowRequest, into: &mut [u128]) -> Result<(), Error> {
    match (rows.input(), request.kind) {
        (RowInput::Owned(rows), COLUMN) => rows.read(request.number, request.from, into),
        (RowInput::Joined(rows), ENTRY) => rows.read(request.number as usize, request.from, into),
        (RowInput::Joined(rows), ALONE) => {
            into.fill(rows.alone(request.number)?);
            Ok(())
        }
        _ => Err(Error::misuse("a worker asks for rows of another kind")),
    }
}

/// Rows of a unit that a coordinator has.
pub(crate) struct RemoteRows {
    stream: UnixStream,
    widths: ValueWidths,
    len: u64,
    joined: bool,
    /// By column or entry the blocks that were read last, the very last one first.
    blocks: Vec<Vec<RemoteBlock>>,
}

/// Values from a row on, as they came.
struct RemoteBlock {
    from: u64,
    bytes: Vec<u8>,
}

impl RemoteRows {
    /// Of a unit of so many rows, of the kind that these engines run.
    ///
    /// # Errors
    /// When the system gives no further descriptor.
    pub fn new(
        stream: &UnixStream,
        program: &Program,
        engines: &StudyEngine,
        len: u64,
    ) -> Result<Self, Error> {
        let stream = stream.try_clone().map_err(|e| Error::io("cannot share a worker's socket", &e))?;
        let widths = ValueWidths::of(program, engines.joined());
        let joined = engines.joined().is_some();
        let kinds = if joined { widths.entries.len() } else { widths.columns.len() };
        let blocks = (0..kinds).map(|_| Vec::new()).collect();
        Ok(Self { stream, widths, len, joined, blocks })
    }

    /// What an engine gets of them.
    pub fn input(&mut self) -> RowInput<'_> {
        match self.joined {
            true => RowInput::Joined(self),
            false => RowInput::Owned(self),
        }
    }

    fn ask(&mut self, request: &RowRequest) -> Result<Vec<u8>, Error> {
        let gone = |e: std::io::Error| Error::io("the coordinator is gone", &e);
        let width = self.widths.of_request(request);
        let width = width.ok_or_else(|| Error::misuse("rows have no such column"))?;
        self.stream.write_all(&request.bytes()).map_err(gone)?;
        let mut kind = [0; 1];
        self.stream.read_exact(&mut kind).map_err(gone)?;
        if kind == [0] {
            let mut bytes = vec![0; width * request.count as usize];
            self.stream.read_exact(&mut bytes).map_err(gone)?;
            return Ok(bytes);
        }
        let mut len = [0; 4];
        self.stream.read_exact(&mut len).map_err(gone)?;
        let mut text = vec![0; (u32::from_le_bytes(len) as usize).min(TEXT_BYTES)];
        self.stream.read_exact(&mut text).map_err(gone)?;
        Err(Error::new(base::At::default(), base::Fault::Io(String::from_utf8_lossy(&text).into_owned())))
    }

    fn read_values(&mut self, kind: u8, number: u32, from: u64, into: &mut [u128]) -> Result<(), Error> {
        if from + into.len() as u64 > self.len {
            return Err(Error::misuse("rows beyond the end of a unit"));
        }
        let (mut at, mut left) = (from, into);
        while !left.is_empty() {
            let (values, bytes) = self.block(kind, number, at)?;
            let count = left.len().min(bytes.len() / values);
            let (head, rest) = left.split_at_mut(count);
            for (value, bytes) in head.iter_mut().zip(bytes.chunks_exact(values)) {
                let mut word = [0; size_of::<u128>()];
                word[..values].copy_from_slice(bytes);
                *value = u128::from_le_bytes(word);
            }
            (at, left) = (at + count as u64, rest);
        }
        Ok(())
    }

    /// Bytes of a value, and values from a row to the end of its block.
    fn block(&mut self, kind: u8, number: u32, row: u64) -> Result<(usize, &[u8]), Error> {
        let first = row / BLOCK_ROWS * BLOCK_ROWS;
        let count = BLOCK_ROWS.min(self.len - first) as u32;
        let request = RowRequest { kind, number, from: first, count };
        let width = self.widths.of_request(&request);
        let width = width.ok_or_else(|| Error::misuse("rows have no such column"))?;
        match self.blocks[number as usize].iter().position(|block| block.from == first) {
            Some(at) => self.blocks[number as usize].swap(0, at),
            None => {
                let bytes = self.ask(&request)?;
                let kept = &mut self.blocks[number as usize];
                kept.truncate(BLOCKS - 1);
                kept.insert(0, RemoteBlock { from: first, bytes });
            }
        }
        let block = &self.blocks[number as usize][0];
        Ok((width, &block.bytes[(row - first) as usize * width..]))
    }
}

impl ShardRows for RemoteRows {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), Error> {
        self.read_values(COLUMN, column, from, into)
    }
}

impl JoinedRows for RemoteRows {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&mut self, entry: usize, from: u64, into: &mut [u128]) -> Result<(), Error> {
        self.read_values(ENTRY, entry as u32, from, into)
    }

    fn alone(&mut self, fold: u32) -> Result<u128, Error> {
        let bytes = self.ask(&RowRequest { kind: ALONE, number: fold, from: 0, count: 1 })?;
        Ok(u128::from_le_bytes(bytes.try_into().map_err(|_| Error::misuse("a total has 16 bytes"))?))
    }
}

impl Drop for RemoteRows {
    fn drop(&mut self) {
        // Whoever serves them hears of a worker that is gone from its other socket.
        let _ = self.stream.write_all(&RowRequest { kind: OVER, number: 0, from: 0, count: 0 }.bytes());
    }
}
