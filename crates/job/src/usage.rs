//! What this process used, as the kernel counts it. Zero where the kernel does not say.

use std::fs;

/// Kernel clock ticks per second in `/proc/self/stat`: 100 on every Linux this runs on (`USER_HZ`).
const TICKS_PER_S: f64 = 100.0;

/// Largest resident set so far, in bytes.
#[must_use]
pub fn peak_memory_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// CPU seconds of all threads so far, user and system.
#[must_use]
pub fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields are counted after the command name, which may hold anything but ends at the last parenthesis.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS_PER_S
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_counts_something() {
        let mut x = 1u64;
        let start = std::time::Instant::now();
        while start.elapsed().as_millis() < 40 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(super::cpu_seconds() > 0.0);
        assert!(super::peak_memory_bytes() > 1 << 20);
    }
}
