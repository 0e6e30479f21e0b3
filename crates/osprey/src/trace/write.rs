//! Writing a trace: to a file, or into the ring that a pager reads while the trace is made.

use super::codec::{FRAME_MAX, FrameEncoder, HEADER_BYTES};
use super::ring::RingWriter;
use super::{Footer, Header, TraceBlock};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes that are collected before they go to the file.
const FLUSH: usize = 64 << 10;

/// Writes a trace file. Nothing is allocated after [`Writer::create`], so a signal handler may write blocks.
///
/// A file without its footer is torn: whoever opens it is told so.
#[derive(Debug)]
pub struct Writer {
    file: File,
    encoder: FrameEncoder,
    buffer: Vec<u8>,
    bytes: u64,
}

impl Writer {
    /// Replaces what is at `path`. A file that was not there is readable by its owner alone.
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: &Path, header: &Header) -> io::Result<Self> {
        let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let mut buffer = Vec::with_capacity(HEADER_BYTES + FLUSH + FRAME_MAX);
        FrameEncoder::header(header, &mut buffer);
        let mut writer = Self { file, encoder: FrameEncoder::new(), buffer, bytes: 0 };
        writer.flush()?;
        Ok(writer)
    }

    /// Adds a block of at most the header's microset of entries.
    ///
    /// # Errors
    /// The system's, such as a full disk.
    pub fn block(&mut self, block: &TraceBlock) -> io::Result<()> {
        self.encoder.block(block, &mut self.buffer);
        if self.buffer.len() >= FLUSH { self.flush() } else { Ok(()) }
    }

    /// Ends the trace. `footer.entries` must be the entries that were written.
    ///
    /// # Errors
    /// The system's; `InvalidInput` when the number of entries is another.
    pub fn finish(&mut self, footer: &Footer) -> io::Result<()> {
        counted(&self.encoder, footer)?;
        self.encoder.footer(footer, &mut self.buffer);
        self.flush()
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes + self.buffer.len() as u64
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// Whether a footer counts the entries that were written.
pub(super) fn counted(encoder: &FrameEncoder, footer: &Footer) -> io::Result<()> {
    if footer.entries == encoder.entries() {
        return Ok(());
    }
    let text = format!("a footer of {} entries after {}", footer.entries, encoder.entries());
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// Where a tracer writes.
#[derive(Debug)]
pub enum TraceSink {
    /// To a file, for later.
    File(Writer),
    /// To a pager that runs now.
    Ring(RingWriter),
}

impl TraceSink {
    /// Adds a block. On a ring this waits until the reader has room for it.
    ///
    /// # Errors
    /// The system's; `BrokenPipe` when the reader of a ring is gone: there is nobody left to speculate for.
    pub fn block(&mut self, block: &TraceBlock) -> io::Result<()> {
        match self {
            Self::File(writer) => writer.block(block),
            Self::Ring(writer) => writer.block(block),
        }
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// As [`Writer::finish`] and [`TraceSink::block`].
    pub fn finish(&mut self, footer: &Footer) -> io::Result<()> {
        match self {
            Self::File(writer) => writer.finish(footer),
            Self::Ring(writer) => writer.finish(footer),
        }
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::File(writer) => writer.bytes(),
            Self::Ring(writer) => writer.bytes(),
        }
    }
}
