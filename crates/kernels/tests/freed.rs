//! Freed buffers go back to the system: in a process of its own, for the setting is one of the process.

/// Bytes of this process in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    1024 * line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).unwrap_or(0)
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn freed_buffers_leave_the_process() {
    kernels::return_freed_buffers();
    // A large buffer that goes would have the allocator keep smaller ones.
    drop(std::hint::black_box(vec![1u8; 20 << 20]));
    let buffer = || (vec![1u8; 300 << 10], Box::new([1u8; 64]));
    let (buffers, small): (Vec<Vec<u8>>, Vec<Box<[u8; 64]>>) = (0..200).map(|_| buffer()).unzip();
    let full = resident();
    drop(std::hint::black_box(buffers));
    let left = resident();
    assert!(full > left + (50 << 20), "of {full} bytes {left} are left");
    assert!(small.iter().all(|bytes| bytes[63] == 1));
}
