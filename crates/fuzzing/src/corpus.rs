//! Corpora as they are kept in the repository: one file per target, because thousands of small ones are in
//! everybody's way.
//!
//! A pack is inputs one after the other, each after its length: 4 bytes, little endian. `fuzzing unpack`
//! makes a folder of it, as libFuzzer wants one, `fuzzing pack` a pack of a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the pack of a target lies.
#[must_use]
pub fn path(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(format!("{target}.pack"))
}

/// The inputs of a pack; none where there is no file.
///
/// # Errors
/// When it cannot be read, or ends within an input.
pub fn read(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    let bytes = match fs::read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        bytes => bytes?,
    };
    let torn = || io::Error::new(io::ErrorKind::InvalidData, format!("{} is torn", path.display()));
    let (mut rest, mut inputs) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let (len, after) = rest.split_first_chunk().ok_or_else(torn)?;
        let (input, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or_else(torn)?;
        inputs.push(input.to_vec());
        rest = after;
    }
    Ok(inputs)
}

/// Most bytes of a pack: all together stay small beside the sources.
pub const PACK_BYTES: usize = 48 << 10;

/// Writes a pack: inputs in the order of their length and then their bytes, each once, as many as
/// [`PACK_BYTES`] hold.
///
/// # Errors
/// When it cannot be written.
pub fn write(path: &Path, mut inputs: Vec<Vec<u8>>) -> io::Result<()> {
    inputs.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    inputs.dedup();
    let mut bytes = Vec::new();
    for input in &inputs {
        if bytes.len() + 4 + input.len() > PACK_BYTES {
            break;
        }
        bytes.extend_from_slice(&(input.len() as u32).to_le_bytes());
        bytes.extend_from_slice(input);
    }
    fs::write(path, bytes)
}

/// The files of a folder as inputs.
///
/// # Errors
/// When one cannot be read.
pub fn folder(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    fs::read_dir(path)?.map(|entry| fs::read(entry?.path())).collect()
}
