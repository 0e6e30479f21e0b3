//! One test alone in its process: how much memory writing takes.

mod support;

use store::{ChunkSize, RUN_MEMORY, RecordSize, RunWriter, StateKey};
use support::{bytes, place, sealed};

/// The most that this process had in memory so far, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn writers_take_the_memory_that_they_say() {
    let here = place();
    let key = StateKey::fresh();
    let own = sealed(&here.store, &key);
    let piece = bytes(1 << 20);
    own.create("warm", &piece).unwrap();
    // 100 MB as one object: two parts and a chunk.
    let before = peak();
    let mut writer = own.writer("large", ChunkSize::Large).unwrap();
    (0..100).for_each(|_| writer.write(&piece).unwrap());
    writer.finish().unwrap();
    let grown = peak() - before;
    assert!(grown < 24 << 20, "{grown} bytes for an object of 100 MB");
    // 72 MB as runs.
    let before = peak();
    let memory = 40 << 20;
    let mut writer = RunWriter::new(own.clone(), "runs", (64, RecordSize::Fixed(72)), memory).unwrap();
    (0..1_000_000u32).for_each(|i| {
        let mut record = [0; 72];
        record[..4].copy_from_slice(&i.wrapping_mul(2_654_435_761).to_be_bytes());
        writer.push(u32::from(record[0] >> 2), &record).unwrap();
    });
    let runs = writer.finish().unwrap();
    let grown = peak() - before;
    assert!(runs.len() > 2 && memory > RUN_MEMORY && grown < memory, "{grown} bytes, {} runs", runs.len());
    // What was written is there, read a part at a time.
    let (mut len, mut right) = (0, true);
    let reader = own.reader("large").unwrap();
    let check = |read: &[u8]| {
        right &= read.chunks(1 << 20).all(|one| one == piece);
        len += read.len();
        Ok(())
    };
    reader.stream(check).unwrap();
    assert!(right && len == 100 << 20);
}
