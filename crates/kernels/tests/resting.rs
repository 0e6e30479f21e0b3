//! A process that rests gives back the freed pieces of its heaps: in a process of its own, as others would
//! take them meanwhile.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod linux {
    /// Bytes in memory of this process that are no file's.
    fn own_bytes() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("a status");
        let found = status.lines().find_map(|all| all.strip_prefix("RssAnon:")).expect("the line");
        1024 * found.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number")
    }

    #[test]
    fn a_resting_process_is_smaller() {
        kernels::return_freed_buffers();
        let pieces: Vec<Box<[u8; 4096]>> = (0..8_000).map(|i| Box::new([i as u8; 4096])).collect();
        // One of a hundred stays, so no heap gets shorter by itself.
        let kept: Vec<_> = pieces.into_iter().enumerate().filter(|(i, _)| i % 100 == 0).collect();
        let before = own_bytes();
        kernels::return_while_resting();
        let after = own_bytes();
        assert!(after + (20 << 20) < before, "{before}, then {after}");
        assert!(kept.iter().all(|(i, piece)| piece[4095] == *i as u8));
    }
}
