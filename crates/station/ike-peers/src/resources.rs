//! The generator's use of memory and CPU.

use nix::sys::prctl::set_timerslack;
use nix::time::{ClockId, clock_gettime};
use std::fs;

/// Bytes of this process's memory that no file backs.
pub(crate) fn memory_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let line = lines.find_map(|it| it.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// CPU time of this thread, in nanoseconds.
pub(crate) fn cpu_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0, |time| {
        time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs()
    })
}

/// Wakes this thread without delay from now on. If the kernel refuses, set-ups begin later, which
/// the report states.
pub(crate) fn wake_exactly() {
    let _ = set_timerslack(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_can_be_read() {
        assert!(memory_bytes().is_some_and(|it| it > 100 << 10));
        let before = cpu_ns();
        while cpu_ns() == before {
            std::hint::black_box(before);
        }
    }
}
