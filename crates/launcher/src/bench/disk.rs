//! What the disk of a folder does, at the sizes that chunks have: `osprey probe --disk`, and before every
//! paged run.

use base::Error;
use osprey::disk::{Bandwidth, bandwidth};
use page::numbers::binary;
use serde::Serialize;
use std::path::Path;
use terminal::output;

/// Sizes that `osprey probe --disk` measures: a page, labels, ciphertexts.
const CHUNKS: [usize; 4] = [4 << 10, 64 << 10, 1 << 20, 2 << 20];
/// Bytes moved at each: requests of a page are slow, so fewer of them.
const BYTES: [u64; 4] = [32 << 20, 256 << 20, 256 << 20, 256 << 20];

/// The bandwidth at the size of a chunk.
///
/// # Errors
/// When the folder cannot be written, is full, or io_uring is not permitted.
pub fn measure(dir: &Path, chunk: usize, bytes: u64) -> Result<Bandwidth, Error> {
    bandwidth(dir, chunk, bytes)
        .map_err(|e| Error::io(format!("cannot measure the disk of {}", dir.display()), &e))
}

#[derive(Serialize)]
struct Found<'a> {
    dir: &'a Path,
    disk: Vec<Bandwidth>,
}

/// `osprey probe --disk`: measures and prints, in words or as one JSON object.
///
/// # Errors
/// As [`measure`].
pub fn probe(dir: &Path, json: bool) -> Result<(), Error> {
    let found = CHUNKS.into_iter().zip(BYTES).map(|(chunk, bytes)| measure(dir, chunk, bytes));
    let found = Found { dir, disk: found.collect::<Result<_, _>>()? };
    if json {
        return output::print_json(&found);
    }
    let line = |at: &Bandwidth| {
        let cached = if at.direct {
            ""
        } else {
            "  (through the system's cache: this file system knows no other way)"
        };
        let (chunk, rate) = (binary(at.chunk as u64), binary(at.bytes_per_s as u64));
        format!("  {chunk:>7} at a time  {rate:>9}/s read and written{cached}")
    };
    let lines: Vec<String> = found.disk.iter().map(line).collect();
    output::print(&format!("disk of {}:\n{}", dir.display(), lines.join("\n")))
}
