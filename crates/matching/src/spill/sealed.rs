//! Files without a name, under a key that lives in this process alone: what is left of one on a disk says
//! nothing.

use super::DiskTally;
use base::Seed;
use kernels::{Block, prg_fill, xor_bytes};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Blocks of a pad that are made at a time.
const PAD: usize = 256;

/// A file of pieces of bytes, each under a pad of its own.
pub(crate) struct SealedFile {
    file: File,
    key: Block,
    /// Where it ends.
    len: AtomicU64,
    tally: Arc<DiskTally>,
}

impl SealedFile {
    /// An empty one in this folder, under a key of the system's randomness. `tally` counts what it takes.
    pub fn create(folder: &Path, tally: Arc<DiskTally>) -> io::Result<Self> {
        let key = Block::from_bytes(Seed::from_system().into_rng().bytes());
        Ok(Self { file: tempfile::tempfile_in(folder)?, key, len: AtomicU64::new(0), tally })
    }

    /// Writes `bytes` at `offset`, and leaves them sealed. The pad's numbers are those from `number` on, one
    /// for every 16 bytes begun; no number may be used for two writes.
    pub fn write(&self, bytes: &mut [u8], offset: u64, number: u64) -> io::Result<()> {
        self.pad(bytes, number);
        self.file.write_all_at(bytes, offset)?;
        let end = offset + bytes.len() as u64;
        let before = self.len.fetch_max(end, Ordering::Relaxed);
        self.tally.wrote(bytes.len() as u64, end.saturating_sub(before));
        Ok(())
    }

    /// Reads what was written at `offset` under these numbers.
    pub fn read(&self, bytes: &mut [u8], offset: u64, number: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)?;
        self.tally.read(bytes.len() as u64);
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

impl Drop for SealedFile {
    fn drop(&mut self) {
        self.tally.gone(self.len.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::SpilledBytes;

    #[test]
    fn pieces_come_back_and_do_not_show() {
        let tally = Arc::new(DiskTally::default());
        let file = SealedFile::create(&std::env::temp_dir(), tally.clone()).unwrap();
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
        drop(file);
        let other = SealedFile::create(&std::env::temp_dir(), tally.clone()).unwrap();
        other.write(&mut [7; 16], 0, 0).unwrap();
        // Twice as many bytes, and between them a hole; one file after the other.
        let counted = SpilledBytes { written: 20_018, read: 20_002, on_disk: 16, at_most: 30_001 };
        assert_eq!(tally.counted(), counted);
    }
}
