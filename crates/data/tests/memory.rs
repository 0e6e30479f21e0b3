//! One test alone in its process: writing four times the people takes no more memory.

use data::generate::{FileFormat, LiftOptions, lift};

/// The most that this process had in memory so far, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn the_memory_of_writing_does_not_grow_with_the_people() {
    let peak_of = |rows, files| {
        let folder = tempfile::tempdir().unwrap();
        let format = FileFormat::Parquet;
        let options = LiftOptions { rows, overlap: 0.5, max_events: 4, clamp: 100, seed: 5, format, files };
        lift(folder.path(), &options, &|_, _| ()).unwrap();
        peak()
    };
    let (small, large) = (peak_of(300_000, 4), peak_of(1_200_000, 16));
    assert!(
        large * 5 < small * 6 && large < 200 << 20,
        "{small} bytes of 300,000 people, {large} of 1,200,000"
    );
}
