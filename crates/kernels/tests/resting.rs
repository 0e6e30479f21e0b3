//! A process that rests gives back its program's pages and goes on: in a process of its own, as others would
//! map pages meanwhile.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod linux {
    use std::hint::black_box;

    /// Addresses that the loader wrote: they lie in the file's mapping and are not the file's.
    static WORDS: [&str; 3] = ["of", "the", "loader"];

    /// Bytes in memory of this process by a line of its status.
    fn bytes(line: &str) -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("a status");
        let found = status.lines().find_map(|all| all.strip_prefix(line)).expect("the line");
        1024 * found.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number")
    }

    #[test]
    fn a_resting_process_is_smaller_and_goes_on() {
        kernels::return_freed_buffers();
        let pieces: Vec<Box<[u8; 4096]>> = (0..8_000).map(|i| Box::new([i as u8; 4096])).collect();
        // One of a hundred stays, so no heap gets shorter by itself.
        let kept: Vec<_> = pieces.into_iter().enumerate().filter(|(i, _)| i % 100 == 0).collect();
        let before = [bytes("RssAnon:"), bytes("RssFile:")];
        kernels::return_while_resting();
        let after = [bytes("RssAnon:"), bytes("RssFile:")];
        assert!(after[0] + (20 << 20) < before[0], "heaps: {before:?}, then {after:?}");
        assert!(after[1] < before[1], "program: {before:?}, then {after:?}");
        assert!(kept.iter().all(|(i, piece)| piece[4095] == *i as u8));
        assert_eq!(black_box(&WORDS).join(" "), "of the loader");
    }
}
