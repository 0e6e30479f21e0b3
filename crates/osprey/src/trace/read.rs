//! Reading a trace: from a file that was checked to its end first, or from the ring while it is made.

use super::codec::{Decoder, FRAME_MAX, Frame, HEADER_BYTES, header};
use super::ring::adopt;
use super::{Footer, Header, TraceBlock};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Bytes that are read at once.
const BUFFER: usize = 16 << 10;

/// What comes next from a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TraceFeed {
    /// The next block.
    Block(TraceBlock),
    /// Nothing yet: only from a ring, see [`TraceSource::bell`].
    Wait,
    /// There are no more blocks, and there never will be.
    End(Footer),
}

/// A trace that a pager reads.
#[derive(Debug)]
pub struct TraceSource {
    input: Input,
    /// How errors call it.
    name: String,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that are decoded.
    used: usize,
    expected: Option<Header>,
    decoder: Option<Decoder>,
    footer: Option<Footer>,
    ended: bool,
}

#[derive(Debug)]
enum Input {
    File(File),
    Ring(UnixStream),
}

/// What a read gave.
enum Got {
    Bytes,
    Nothing,
    End,
}

impl TraceSource {
    /// Opens a trace file of the program that `expected` tells of, after checking all of it.
    ///
    /// # Errors
    /// In words: no such file, no trace, another format, chunk, microset or region, another binary or
    /// arguments, torn, corrupt (and at which block).
    pub fn open(path: &Path, expected: &Header) -> Result<Self, String> {
        let (found, source) = Self::inspect(path)?;
        match differs(&found, expected) {
            Some(how) => Err(format!("{} {how}", source.name)),
            None => Ok(source),
        }
    }

    /// Opens a trace file of any program, after checking all of it.
    ///
    /// # Errors
    /// As [`TraceSource::open`], but for what is compared there.
    pub fn inspect(path: &Path) -> Result<(Header, Self), String> {
        let name = format!("the trace {}", path.display());
        let file = File::open(path).map_err(|e| format!("cannot read {name}: {e}"))?;
        let mut source = Self::new(Input::File(file), name, None);
        let found = source.header()?.ok_or_else(|| source.torn())?;
        let footer = loop {
            if let TraceFeed::End(footer) = source.next()? {
                break footer;
            }
        };
        source.nothing_follows()?;
        source.rewind(&found)?;
        source.footer = Some(footer);
        Ok((found, source))
    }

    /// Takes over the inherited end of a ring. What is wrong with the trace itself is found when it is read.
    ///
    /// # Errors
    /// In words: no such descriptor, or not one that can be waited for.
    pub fn ring(fd: i32, expected: &Header) -> Result<Self, String> {
        let socket = UnixStream::from(adopt(fd)?);
        socket.set_nonblocking(true).map_err(|e| format!("cannot use OSPREY_RING = {fd}: {e}"))?;
        Ok(Self::new(Input::Ring(socket), "the trace from the speculative process".into(), Some(*expected)))
    }

    fn new(input: Input, name: String, expected: Option<Header>) -> Self {
        let buffer = Vec::with_capacity(BUFFER + FRAME_MAX);
        Self { input, name, buffer, used: 0, expected, decoder: None, footer: None, ended: false }
    }

    /// What comes next.
    ///
    /// # Errors
    /// In words: a ring whose writer died, a stream that is corrupt or of another program, a file that
    /// changed after it was checked. The source is of no use afterwards.
    #[expect(clippy::should_implement_trait, reason = "an iterator that waits and goes on is none")]
    pub fn next(&mut self) -> Result<TraceFeed, String> {
        if let (true, Some(footer)) = (self.ended, self.footer) {
            return Ok(TraceFeed::End(footer));
        }
        loop {
            if self.decoder.is_none() && self.header()?.is_none() {
                return Ok(TraceFeed::Wait);
            }
            let decoder = self.decoder.as_mut().expect("after the header");
            let number = decoder.frames();
            match decoder.frame(&self.buffer[self.used..]) {
                Ok(Some((frame, bytes))) => {
                    self.used += bytes;
                    return Ok(match frame {
                        Frame::Block(block) => TraceFeed::Block(block),
                        Frame::Footer(footer) => {
                            (self.footer, self.ended) = (Some(footer), true);
                            TraceFeed::End(footer)
                        }
                    });
                }
                Ok(None) => {}
                Err(()) => {
                    return Err(format!("{} is corrupt at block {number}: speculate again", self.name));
                }
            }
            match self.fill()? {
                Got::Bytes => {}
                Got::Nothing => return Ok(TraceFeed::Wait),
                Got::End => return Err(self.torn()),
            }
        }
    }

    /// The footer, where it is known before the end is reached: of a file.
    #[must_use]
    pub fn footer(&self) -> Option<&Footer> {
        self.footer.as_ref()
    }

    /// What becomes readable when [`TraceSource::next`] may have more after [`TraceFeed::Wait`]: of a ring.
    /// Wait for it only then, because it stays readable until all is taken.
    #[must_use]
    pub fn bell(&self) -> Option<BorrowedFd<'_>> {
        match &self.input {
            Input::File(_) => None,
            Input::Ring(socket) => Some(socket.as_fd()),
        }
    }

    /// Reads the header, once; `None` while a ring has not brought it.
    fn header(&mut self) -> Result<Option<Header>, String> {
        loop {
            if let Some(bytes) = self.buffer[self.used..].first_chunk::<HEADER_BYTES>() {
                let found = header(bytes).map_err(|how| format!("{} {how}", self.name))?;
                if let Some(how) = self.expected.and_then(|expected| differs(&found, &expected)) {
                    return Err(format!("{} {how}", self.name));
                }
                self.used += HEADER_BYTES;
                self.decoder = Some(Decoder::new(&found));
                return Ok(Some(found));
            }
            match self.fill()? {
                Got::Bytes => {}
                Got::Nothing => return Ok(None),
                Got::End => return Err(self.torn()),
            }
        }
    }

    fn fill(&mut self) -> Result<Got, String> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let room = BUFFER.max(self.buffer.len() + 1) - self.buffer.len();
        let read = |input: &mut dyn Read, to: &mut Vec<u8>| -> io::Result<usize> {
            let start = to.len();
            to.resize(start + room, 0);
            let got = input.read(&mut to[start..]);
            to.truncate(start + *got.as_ref().unwrap_or(&0));
            got
        };
        loop {
            let got = match &mut self.input {
                Input::File(file) => read(file, &mut self.buffer),
                Input::Ring(socket) => read(socket, &mut self.buffer),
            };
            match got {
                Ok(0) => return Ok(Got::End),
                Ok(_) => return Ok(Got::Bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Got::Nothing),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("cannot read {}: {error}", self.name)),
            }
        }
    }

    fn nothing_follows(&mut self) -> Result<(), String> {
        let more = self.used < self.buffer.len() || matches!(self.fill()?, Got::Bytes);
        if more { Err(format!("{} is corrupt: it goes on after its end", self.name)) } else { Ok(()) }
    }

    /// Back to the first block of a file.
    fn rewind(&mut self, found: &Header) -> Result<(), String> {
        if let Input::File(file) = &mut self.input {
            file.seek(io::SeekFrom::Start(HEADER_BYTES as u64))
                .map_err(|e| format!("cannot read {}: {e}", self.name))?;
        }
        self.buffer.clear();
        (self.used, self.ended, self.decoder) = (0, false, Some(Decoder::new(found)));
        Ok(())
    }

    fn torn(&self) -> String {
        let blocks = self.decoder.as_ref().map_or(0, Decoder::frames);
        match self.input {
            Input::File(_) => format!(
                "{} is torn after {blocks} blocks: the pass that wrote it did not end; speculate again",
                self.name
            ),
            Input::Ring(_) => {
                format!(
                    "{} ends after {blocks} blocks: the speculative process died before its end",
                    self.name
                )
            }
        }
    }
}

/// How a trace is of another run than is expected.
fn differs(found: &Header, expected: &Header) -> Option<String> {
    let number = |what: &str, found: u64, expected: u64| {
        (found != expected).then(|| {
            format!(
                "has {what} of {found}, this run has {expected}: speculate again, or give the same settings"
            )
        })
    };
    number("chunks (bytes)", found.chunk, expected.chunk)
        .or_else(|| number("a region (bytes)", found.region, expected.region))
        .or_else(|| number("blocks (entries)", found.microset.into(), expected.microset.into()))
        .or_else(|| {
            (found.key != expected.key).then(|| {
                "is of another binary, or of other arguments (its key is not this run's): speculate again"
                    .into()
            })
        })
}
