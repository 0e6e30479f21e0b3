//! The bytes of a trace: one format for files and streams.
//!
//! ```text
//! header   "OSPTRACE" version:u32 microset:u32 chunk:u64 region:u64 key:u128 crc:u32
//! frame    length:varint body crc:u32
//! body     0 events:varint hash:u64? entries       a block; `events` = 2 the increase + 1 for a new hash
//!          1 entries:varint blocks:varint peak:varint other:varint      the footer
//! entry    varint of: written, fresh (a bit each), of which of the last four chunks (2 bits), and the
//!          distance to it, zigzag
//! ```
//! Integers are little-endian. The checksum of a frame is CRC-32C over the number of the frame (8 bytes), its
//! length and its body: it finds every flipped bit, and frames that are missing, doubled or swapped.
//!
//! **Cost.** An entry within four chunks of one of the last four takes a byte, within 512 two; a frame adds 7
//! to 18.

use super::{Footer, Header, TraceBlock, TraceEntry};
use crate::settings::{CHUNK_MAX, CHUNK_MIN, CHUNKS_MAX, MICROSET_MAX};

/// The format that this build writes and reads.
pub(super) const VERSION: u32 = 1;
pub(super) const HEADER_BYTES: usize = 52;
const MAGIC: &[u8; 8] = b"OSPTRACE";
const BLOCK: u8 = 0;
const FOOTER: u8 = 1;
/// Bytes of a varint at most: 64 bits by 7.
const VARINT_MAX: usize = 10;
/// Bytes of an entry at most: 33 bits of zigzag and four others, by 7.
const ENTRY_MAX: usize = 6;
/// Bytes of a body at most.
const BODY_MAX: usize = 1 + VARINT_MAX + 8 + MICROSET_MAX * ENTRY_MAX;
/// Bytes of a frame at most.
pub(super) const FRAME_MAX: usize = 2 + BODY_MAX + 4;
/// Chunks that an entry may be told from.
const NEAR: usize = 4;

/// What both sides remember from frame to frame.
#[derive(Clone, Copy, Debug)]
struct Memory {
    frames: u64,
    entries: u64,
    events: u64,
    hash: u64,
    near: [u32; NEAR],
}

const START: Memory = Memory { frames: 0, entries: 0, events: 0, hash: 0, near: [0; NEAR] };

impl Memory {
    fn remember(&mut self, chunk: u32) {
        self.near.copy_within(..NEAR - 1, 1);
        self.near[0] = chunk;
        self.entries += 1;
    }
}

/// Writes frames into a buffer.
#[derive(Debug)]
pub(super) struct FrameEncoder {
    memory: Memory,
    body: Vec<u8>,
}

impl FrameEncoder {
    pub fn new() -> Self {
        // Room for the longest body: the tracer runs in a signal handler and must not allocate.
        Self { memory: START, body: Vec::with_capacity(BODY_MAX) }
    }

    /// Entries so far.
    pub fn entries(&self) -> u64 {
        self.memory.entries
    }

    pub fn header(header: &Header, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&header.microset.to_le_bytes());
        out.extend_from_slice(&header.chunk.to_le_bytes());
        out.extend_from_slice(&header.region.to_le_bytes());
        out.extend_from_slice(&header.key.to_le_bytes());
        let crc = crc32c(0, &out[start..]);
        out.extend_from_slice(&crc.to_le_bytes());
    }

    pub fn block(&mut self, block: &TraceBlock, out: &mut Vec<u8>) {
        let memory = &mut self.memory;
        let changed = block.hash != memory.hash;
        self.body.clear();
        self.body.push(BLOCK);
        put(&mut self.body, block.events.saturating_sub(memory.events) << 1 | u64::from(changed));
        if changed {
            self.body.extend_from_slice(&block.hash.to_le_bytes());
        }
        (memory.events, memory.hash) = (block.events, block.hash);
        for entry in &block.entries {
            let distance = |i: &usize| (i64::from(entry.chunk) - i64::from(memory.near[*i])).unsigned_abs();
            let nearest = (0..NEAR).min_by_key(distance).expect("there are four");
            let delta = i64::from(entry.chunk) - i64::from(memory.near[nearest]);
            let zigzag = (delta << 1 ^ delta >> 63) as u64;
            let flags = u64::from(entry.written) | u64::from(entry.fresh) << 1;
            put(&mut self.body, zigzag << 4 | (nearest as u64) << 2 | flags);
            memory.remember(entry.chunk);
        }
        self.frame(out);
    }

    pub fn footer(&mut self, footer: &Footer, out: &mut Vec<u8>) {
        self.body.clear();
        self.body.push(FOOTER);
        for value in [footer.entries, self.memory.frames, footer.peak_chunks, footer.other_bytes] {
            put(&mut self.body, value);
        }
        self.frame(out);
    }

    fn frame(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        put(out, self.body.len() as u64);
        out.extend_from_slice(&self.body);
        let crc = frame_crc(self.memory.frames, &out[start..]);
        out.extend_from_slice(&crc.to_le_bytes());
        self.memory.frames += 1;
    }
}

/// What a frame holds.
#[derive(Debug, PartialEq)]
pub(super) enum Frame {
    Block(TraceBlock),
    Footer(Footer),
}

/// Reads what [`FrameEncoder`] wrote.
#[derive(Debug)]
pub(super) struct Decoder {
    memory: Memory,
    chunks: u64,
    microset: u32,
}

/// The header in the first [`HEADER_BYTES`] of a trace.
///
/// # Errors
/// What is wrong with it.
pub(super) fn header(bytes: &[u8; HEADER_BYTES]) -> Result<Header, String> {
    if &bytes[..8] != MAGIC {
        return Err("is no trace: osprey run --speculative-only --trace-file FILE makes one".into());
    }
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    if u32_at(8) != VERSION {
        return Err(format!(
            "is of format version {}, this build reads {VERSION}: speculate again",
            u32_at(8)
        ));
    }
    if u32_at(48) != crc32c(0, &bytes[..48]) {
        return Err("is corrupt in its header: speculate again".into());
    }
    let key = u128::from_le_bytes(bytes[32..48].try_into().expect("16 bytes"));
    let header = Header { microset: u32_at(12), chunk: u64_at(16), region: u64_at(24), key };
    let chunk_fits = (CHUNK_MIN as u64..=CHUNK_MAX as u64).contains(&header.chunk);
    let microset_fits = (2..=MICROSET_MAX as u32).contains(&header.microset);
    if !chunk_fits || !microset_fits || header.region / header.chunk > CHUNKS_MAX {
        return Err("has a header with impossible sizes: speculate again".into());
    }
    Ok(header)
}

impl Decoder {
    pub fn new(header: &Header) -> Self {
        Self { memory: START, chunks: header.region / header.chunk, microset: header.microset }
    }

    /// Frames so far.
    pub fn frames(&self) -> u64 {
        self.memory.frames
    }

    /// The first frame in `bytes` and its length; `None` when it is not there to its end.
    ///
    /// # Errors
    /// `Err(())` when it is corrupt.
    pub fn frame(&mut self, bytes: &[u8]) -> Result<Option<(Frame, usize)>, ()> {
        let mut rest = bytes;
        let Some(length) = take(&mut rest, 2)? else { return Ok(None) };
        if length > BODY_MAX as u64 {
            return Err(());
        }
        let prefix = bytes.len() - rest.len();
        let (length, end) = (length as usize, prefix + length as usize);
        let Some(crc) = bytes.get(end..end + 4) else { return Ok(None) };
        if frame_crc(self.memory.frames, &bytes[..end]).to_le_bytes() != crc {
            return Err(());
        }
        let frame = match rest[..length].split_first().ok_or(())? {
            (&BLOCK, body) => Frame::Block(self.block(body)?),
            (&FOOTER, body) => Frame::Footer(self.footer(body)?),
            _ => return Err(()),
        };
        self.memory.frames += 1;
        Ok(Some((frame, end + 4)))
    }

    fn block(&mut self, mut body: &[u8]) -> Result<TraceBlock, ()> {
        let memory = &mut self.memory;
        let events = whole(&mut body)?;
        memory.events = memory.events.checked_add(events >> 1).ok_or(())?;
        if events & 1 == 1 {
            let (hash, rest) = body.split_first_chunk().ok_or(())?;
            (memory.hash, body) = (u64::from_le_bytes(*hash), rest);
        }
        let mut entries = Vec::with_capacity(self.microset as usize);
        while !body.is_empty() {
            let word = whole(&mut body)?;
            let zigzag = word >> 4;
            let delta = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
            let near = memory.near[(word >> 2 & 3) as usize];
            let chunk = u32::try_from(i64::from(near) + delta).map_err(|_| ())?;
            if u64::from(chunk) >= self.chunks || entries.len() == self.microset as usize {
                return Err(());
            }
            memory.remember(chunk);
            entries.push(TraceEntry { chunk, written: word & 1 == 1, fresh: word & 2 == 2 });
        }
        Ok(TraceBlock { events: memory.events, hash: memory.hash, entries })
    }

    fn footer(&self, mut body: &[u8]) -> Result<Footer, ()> {
        let [entries, blocks, peak_chunks, other_bytes] =
            [whole(&mut body)?, whole(&mut body)?, whole(&mut body)?, whole(&mut body)?];
        let fits = body.is_empty() && blocks == self.memory.frames && entries == self.memory.entries;
        if fits { Ok(Footer { entries, peak_chunks, other_bytes }) } else { Err(()) }
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A varint of at most `max` bytes; `None` when the bytes end before it does.
fn take(bytes: &mut &[u8], max: usize) -> Result<Option<u64>, ()> {
    let mut value = 0u64;
    for i in 0..max {
        let Some(&byte) = bytes.get(i) else { return Ok(None) };
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Ok(Some(value));
        }
    }
    Err(())
}

/// A varint that must be there.
fn whole(bytes: &mut &[u8]) -> Result<u64, ()> {
    take(bytes, VARINT_MAX)?.ok_or(())
}

fn frame_crc(number: u64, bytes: &[u8]) -> u32 {
    crc32c(crc32c(0, &number.to_le_bytes()), bytes)
}

/// CRC-32C (Castagnoli, reflected 0x82F63B78), continued from `crc`.
fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut i = 0;
        while i < 256 {
            let (mut value, mut bit) = (i as u32, 0);
            while bit < 8 {
                value = value >> 1 ^ if value & 1 == 1 { 0x82F6_3B78 } else { 0 };
                bit += 1;
            }
            table[i] = value;
            i += 1;
        }
        table
    };
    !bytes.iter().fold(!crc, |crc, &byte| crc >> 8 ^ TABLE[(crc as u8 ^ byte) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_castagnolis() {
        // The check value of the CRC catalogues, and continuation in two parts.
        assert_eq!(crc32c(0, b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(crc32c(0, b"1234"), b"56789"), 0xE306_9283);
    }

    #[test]
    fn varints_survive_at_their_edges() {
        for value in [0, 127, 128, 16383, 16384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            assert_eq!(whole(&mut bytes.as_slice()), Ok(value));
            let short = &mut &bytes[..bytes.len() - 1];
            assert_eq!(take(short, VARINT_MAX), Ok(None));
        }
        assert_eq!(take(&mut [0xff; 11].as_slice(), VARINT_MAX), Err(()));
    }
}
