//! The ring that a speculative process streams its trace through, to the pager of the real one.
//!
//! **Functionality.** One producer, one consumer, two processes; bounded; the producer waits when it is full,
//! the consumer has a descriptor to wait on among others; each side notices when the other dies, at any
//! moment.
//!
//! **How.** The ring is a connected pair of stream sockets, whose buffer is the kernel's. That has what a
//! ring in shared memory would need a futex, an event descriptor and a pipe for: a full buffer blocks the
//! writer, data makes the reader's end readable (`poll`, io_uring), a dead writer reads as end of stream, a
//! dead reader fails the next write with `BrokenPipe`. Neither side can damage the other's memory. The bytes
//! are those of a trace file, checksums included.
//!
//! **Inheritance.** The launcher makes a [`pair`], leaves an end open in each of two children, tells them the
//! number by `OSPREY_RING`, and drops both ends once the children run: otherwise it would keep a dead child's
//! end open. A child that adopts its end closes it on exec, so that programs it starts do not hold it either.
//!
//! **Cost.** A system call on each side per block of `microset` entries: 4 to 7 microseconds together, a
//! hundredth of what speculation takes for a block of 2 MiB (`docs/osprey/trace.md`).

use super::codec::{FRAME_MAX, FrameEncoder, HEADER_BYTES};
use super::write::counted;
use super::{Footer, Header, TraceBlock};
use crate::sys::inherit;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// A ring: the writer's end and the reader's, closed in programs that this process starts.
///
/// # Errors
/// The system's.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (writer, reader) = UnixStream::pair()?;
    Ok((writer.into(), reader.into()))
}

/// The side of the speculative process. Nothing is allocated after it was opened.
#[derive(Debug)]
pub struct RingWriter {
    socket: UnixStream,
    encoder: FrameEncoder,
    buffer: Vec<u8>,
    bytes: u64,
}

impl RingWriter {
    /// Takes over the inherited descriptor and sends the header.
    ///
    /// # Errors
    /// In words: no such descriptor, or the reader is gone.
    pub fn open(fd: i32, header: &Header) -> Result<Self, String> {
        let socket = UnixStream::from(adopt(fd)?);
        let mut buffer = Vec::with_capacity(HEADER_BYTES.max(FRAME_MAX));
        FrameEncoder::header(header, &mut buffer);
        let mut writer = Self { socket, encoder: FrameEncoder::new(), buffer, bytes: 0 };
        writer.send().map_err(|e| format!("cannot write to the ring of the real run: {e}"))?;
        Ok(writer)
    }

    /// Sends a block; waits while the ring is full.
    ///
    /// # Errors
    /// `BrokenPipe` when the reader is gone, and the system's.
    pub fn block(&mut self, block: &TraceBlock) -> io::Result<()> {
        self.encoder.block(block, &mut self.buffer);
        self.send()
    }

    /// Sends the end.
    ///
    /// # Errors
    /// As [`RingWriter::block`]; `InvalidInput` when the footer counts other entries than were sent.
    pub fn finish(&mut self, footer: &Footer) -> io::Result<()> {
        counted(&self.encoder, footer)?;
        self.encoder.footer(footer, &mut self.buffer);
        self.send()
    }

    /// Bytes sent so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn send(&mut self) -> io::Result<()> {
        // A reader that dies with bytes unread resets the connection; without, it breaks the pipe.
        self.socket.write_all(&self.buffer).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionReset => io::ErrorKind::BrokenPipe.into(),
            _ => error,
        })?;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// An inherited end by its number.
pub(super) fn adopt(fd: i32) -> Result<OwnedFd, String> {
    inherit::adopt(fd).map_err(|e| {
        format!(
            "OSPREY_RING = {fd} is no descriptor that this process inherited: {e}; start it by `osprey run`"
        )
    })
}
