//! Files without a name, under a key that lives in this process alone: what is left of one on a disk says
//! nothing.

use base::Seed;
use kernels::{Block, prg_fill, xor_bytes};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Blocks of a pad that are made at a time.
const PAD: usize = 256;

/// A file of pieces of bytes, each under a pad of its own.
pub(crate) struct SealedFile {
    file: File,
    key: Block,
}

impl SealedFile {
    /// An empty one in this folder, under a key of the system's randomness.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let key = Block::from_bytes(Seed::from_system().into_rng().bytes());
        Ok(Self { file: tempfile::tempfile_in(folder)?, key })
    }

    /// Writes `bytes` at `offset`, and leaves them sealed. The pad's numbers are those from `number` on, one
    /// for every 16 bytes begun; no number may be used for two writes.
    pub fn write(&self, bytes: &mut [u8], offset: u64, number: u64) -> io::Result<()> {
        self.pad(bytes, number);
        self.file.write_all_at(bytes, offset)
    }

    /// Reads what was written at `offset` under these numbers.
    pub fn read(&self, bytes: &mut [u8], offset: u64, number: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)?;
        self.pad(bytes, number);
        Ok(())
    }

    fn pad(&self, bytes: &mut [u8], number: u64) {
        let mut pad = [Block::ZERO; PAD];
        for (at, piece) in (number..).step_by(PAD).zip(bytes.chunks_mut(PAD * Block::BYTES)) {
            let pad = &mut pad[..piece.len().div_ceil(Block::BYTES)];
            prg_fill(self.key, at, pad);
            xor_bytes(piece, &Block::bytes_of(pad)[..piece.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back_and_do_not_show() {
        let file = SealedFile::create(&std::env::temp_dir()).unwrap();
        let all: Vec<u8> = (0..10_001u32).map(|i| i as u8).collect();
        for (offset, number) in [(0, 0), (20_000, 700)] {
            file.write(&mut all.clone(), offset, number).unwrap();
        }
        let mut raw = vec![0; all.len()];
        file.file.read_exact_at(&mut raw, 0).unwrap();
        let same = raw.iter().zip(&all).filter(|(a, b)| a == b).count();
        assert!(same < 100, "{same} of 10,001 bytes are as they were");
        for (offset, number) in [(20_000, 700), (0, 0)] {
            let mut back = vec![0; all.len()];
            file.read(&mut back, offset, number).unwrap();
            assert!(back == all);
        }
    }
}
