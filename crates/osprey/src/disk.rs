//! What a disk can do for paging, and swap files of our own.
//!
//! **Functionality.** [`bandwidth`] measures how many bytes per second a folder's disk reads and writes at
//! the size of a chunk, in the way the pager uses it: unbuffered, through io_uring, reads and writes in turn.
//! Bytes that a plan must move over this figure are the least time that any paging can take. [`SwapFile`]
//! gives the system a swap file for as long as the value lives; only measurements need one.
//!
//! **What must hold.** The file that is read was written before, with content that does not compress: a fresh
//! extent reads as zeros without the disk. It has no name, so nothing is left when the process dies.
//!
//! **Cost.** One and a half times `bytes` of traffic, [`WINDOW`] of memory.

mod swap;

pub use swap::{SWAP_MAX, SWAP_MIN, SwapFile, swapped_bytes};

use crate::settings::{CHUNK_MAX, CHUNK_MIN};
use crate::sys::map::Mapping;
use crate::sys::own::allocate;
use io_uring::{IoUring, opcode, types};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

/// Bytes in flight: what keeps a disk busy at any chunk size.
pub const WINDOW: usize = 4 << 20;
/// Requests in flight at most, and at least.
const DEPTH: (usize, usize) = (64, 4);
/// Most bytes that a measurement moves.
pub const BYTES_MAX: u64 = 64 << 30;

/// What [`bandwidth`] found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bandwidth {
    /// Bytes read and written, per second.
    pub bytes_per_s: f64,
    /// Bytes read and written while the clock ran.
    pub bytes: u64,
    /// How long that took.
    pub seconds: f64,
    /// Bytes per request.
    pub chunk: usize,
    /// Requests in flight.
    pub depth: usize,
    /// Whether the cache of the system was bypassed; some file systems cannot.
    pub direct: bool,
}

/// Reads and writes `bytes` in turn, `chunk` bytes at a time, on a fresh file without a name in `dir`.
///
/// `chunk`: a power of two, [`CHUNK_MIN`] to [`CHUNK_MAX`]; `bytes`: at least eight
/// chunks, up to [`BYTES_MAX`].
///
/// # Errors
/// `InvalidInput` outside these ranges; the system's, when the folder cannot be written, the disk is full or
/// io_uring is not permitted.
pub fn bandwidth(dir: &Path, chunk: usize, bytes: u64) -> io::Result<Bandwidth> {
    let fits = chunk.is_power_of_two() && (CHUNK_MIN..=CHUNK_MAX).contains(&chunk);
    if !fits || !(8 * chunk as u64..=BYTES_MAX).contains(&bytes) {
        let text = format!(
            "a disk is measured with chunks of {CHUNK_MIN} to {CHUNK_MAX} bytes (a power of two) and with 8 \
             chunks to {BYTES_MAX} bytes; {chunk} and {bytes} were asked for"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let half = bytes / chunk as u64 / 2;
    let (file, direct) = unnamed(dir)?;
    // As paging does: room is set aside first, so that writes do not make the file longer.
    allocate(&file, 0, 2 * half * chunk as u64)?;
    let mut disk = Requests::new(&file, chunk)?;
    disk.all(half, |at| Request { place: at, write: true })?;
    file.sync_data()?;
    let clock = Instant::now();
    // Reads come from the first half, writes go to the second: neither helps the other.
    let turn = |at: u64| {
        let write = at % 2 == 1;
        Request { place: at / 2 + if write { half } else { 0 }, write }
    };
    disk.all(2 * half, turn)?;
    if !direct {
        file.sync_data()?;
    }
    let seconds = clock.elapsed().as_secs_f64();
    let bytes = 2 * half * chunk as u64;
    Ok(Bandwidth { bytes_per_s: bytes as f64 / seconds, bytes, seconds, chunk, depth: disk.depth, direct })
}

/// A file without a name, unbuffered where the file system can.
fn unnamed(dir: &Path) -> io::Result<(File, bool)> {
    let open = |flags| OpenOptions::new().read(true).write(true).mode(0o600).custom_flags(flags).open(dir);
    match open(libc::O_TMPFILE | libc::O_DIRECT) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok((open(libc::O_TMPFILE)?, false)),
        other => other.map(|file| (file, true)),
    }
}

/// Which chunk of the file, and in which direction.
struct Request {
    place: u64,
    write: bool,
}

/// Requests of one size on one file, with a buffer for each in flight.
struct Requests<'a> {
    file: &'a File,
    ring: IoUring,
    buffers: Mapping,
    chunk: usize,
    depth: usize,
    in_flight: usize,
}

impl<'a> Requests<'a> {
    fn new(file: &'a File, chunk: usize) -> io::Result<Self> {
        let depth = (WINDOW / chunk).clamp(DEPTH.1, DEPTH.0);
        let ring = IoUring::new(depth as u32).map_err(|e| {
            let text =
                format!("io_uring is not available ({e}); kernel.io_uring_disabled or a sandbox forbids it");
            io::Error::new(e.kind(), text)
        })?;
        let buffers = Mapping::anonymous(None, depth * chunk, false)?;
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        for word in 0..buffers.len() / 8 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = state ^ state >> 29;
            #[expect(unsafe_code, reason = "buffers of our own mapping")]
            // SAFETY: the mapping is page-aligned, writable, ours alone, and `word` lies within it.
            unsafe {
                buffers.base().cast::<u64>().add(word).write(noise);
            }
        }
        Ok(Self { file, ring, buffers, chunk, depth, in_flight: 0 })
    }

    /// Carries out requests 0 .. `count`, `depth` at a time.
    fn all(&mut self, count: u64, request: impl Fn(u64) -> Request) -> io::Result<()> {
        let mut sent = 0;
        while sent < count.min(self.depth as u64) {
            self.send(sent as usize, &request(sent))?;
            sent += 1;
        }
        let mut done = 0;
        while done < count {
            self.ring.submit_and_wait(1)?;
            let came: Vec<(u64, i32)> = self.ring.completion().map(|c| (c.user_data(), c.result())).collect();
            self.in_flight -= came.len();
            done += came.len() as u64;
            for (slot, moved) in came {
                self.moved_all(moved)?;
                if sent < count {
                    self.send(slot as usize, &request(sent))?;
                    sent += 1;
                }
            }
        }
        Ok(())
    }

    fn moved_all(&self, moved: i32) -> io::Result<()> {
        if moved < 0 {
            return Err(io::Error::from_raw_os_error(-moved));
        }
        if moved as usize != self.chunk {
            let text = format!("the disk moved {moved} of {} bytes: it is full or failing", self.chunk);
            return Err(io::Error::new(io::ErrorKind::WriteZero, text));
        }
        Ok(())
    }

    #[expect(unsafe_code, reason = "io_uring takes addresses of buffers")]
    fn send(&mut self, slot: usize, request: &Request) -> io::Result<()> {
        let (fd, len) = (types::Fd(self.file.as_raw_fd()), self.chunk as u32);
        let offset = request.place * self.chunk as u64;
        // SAFETY: `slot` is below `depth`, so the buffer lies within the mapping.
        let buffer = unsafe { self.buffers.base().add(slot * self.chunk) };
        let entry = if request.write {
            opcode::Write::new(fd, buffer, len).offset(offset).build()
        } else {
            opcode::Read::new(fd, buffer, len).offset(offset).build()
        };
        // SAFETY: the file and the buffer live until the ring is dropped (see `Drop`), and a slot has one
        // request at a time.
        unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) }.map_err(io::Error::other)?;
        self.in_flight += 1;
        Ok(())
    }
}

impl Drop for Requests<'_> {
    /// After an error requests may still be in flight: their buffers stay until they are done, or for good.
    fn drop(&mut self) {
        while self.in_flight > 0 {
            if self.ring.submit_and_wait(1).is_err() {
                std::process::abort();
            }
            self.in_flight -= self.ring.completion().count();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_a_bandwidth() {
        let dir = tempfile::tempdir().expect("a folder");
        let found = match bandwidth(dir.path(), 64 << 10, 4 << 20) {
            Ok(found) => found,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        assert_eq!((found.bytes, found.chunk, found.depth), (4 << 20, 64 << 10, 64));
        assert!(found.seconds > 0.0 && found.bytes_per_s > 0.0);
        assert_eq!(std::fs::read_dir(dir.path()).expect("a folder").count(), 0, "nothing is left");
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let dir = std::env::temp_dir();
        for (chunk, bytes) in
            [(5000, 1 << 20), (64 << 10, 1 << 16), (8 << 20, 1 << 30), (4096, BYTES_MAX + 1)]
        {
            let error = bandwidth(&dir, chunk, bytes).expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
        }
        let error = bandwidth(Path::new("/nowhere"), 4096, 1 << 20).expect_err("no folder");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
