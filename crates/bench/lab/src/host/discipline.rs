//! The discipline of the kernel's clock: the programs that correct it, and its maximum error.

use std::fs;

/// Programs that correct the clock, as the kernel names processes: at most 15 bytes.
const PROGRAMS: [(&str, &str); 6] = [
    ("chronyd", "chrony"),
    ("ptp4l", "ptp4l"),
    ("phc2sys", "phc2sys"),
    ("ntpd", "ntpd"),
    ("openntpd", "openntpd"),
    ("systemd-timesyn", "systemd-timesyncd"),
];

/// The discipline of the kernel's clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discipline {
    /// Running programs that correct it.
    pub programs: Vec<&'static str>,
    /// Whether the kernel considers it synchronised (adjtimex(2)).
    pub is_synchronised: bool,
    /// Its maximum error then, in nanoseconds.
    pub within_ns: u64,
}

impl Discipline {
    /// Reads it.
    #[must_use]
    pub fn read() -> Self {
        let state = state();
        let is_synchronised = state.status & libc::STA_UNSYNC == 0;
        // By their names: a daemon that runs says more than a configuration that may not be in use.
        let names: Vec<String> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok())
            .map(|name| name.trim().to_owned())
            .collect();
        let runs = |(name, _): &&(&str, &str)| names.iter().any(|running| running == name);
        Self {
            programs: PROGRAMS
                .iter()
                .filter(runs)
                .map(|(_, name)| *name)
                .collect(),
            is_synchronised,
            within_ns: u64::try_from(state.maxerror).unwrap_or(0) * 1000,
        }
    }

    /// In words.
    #[must_use]
    pub fn describe(&self) -> String {
        let programs = match &self.programs[..] {
            // A pod's PID namespace does not show the node's programs.
            [] => "no program seen here".to_owned(),
            programs => programs.join(" and "),
        };
        if self.is_synchronised {
            format!(
                "{programs}; the kernel takes it as right within {} us",
                self.within_ns / 1000
            )
        } else {
            format!("{programs}; the kernel takes it as not synchronised")
        }
    }
}

/// By how much the kernel corrects the rate of its clock, in parts of 10^9.
pub(crate) fn corrected_ppb() -> i64 {
    let libc::timex { tick, freq, .. } = state();
    // `tick` is in microseconds for each of 100 ticks a second, whichever rate the kernel uses
    // itself; `freq` is in parts of 10^6 with 16 binary places (adjtimex(2)).
    (tick - 10_000) * 100_000 + freq * 1000 / 65_536
}

/// The state of the kernel's clock.
fn state() -> libc::timex {
    // SAFETY: all-zero is a valid value of this plain C structure: nothing is to be changed.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live `timex`, which the kernel fills.
    unsafe { libc::adjtimex(&raw mut state) };
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_who_corrects_the_clock_and_how_well() {
        let free = Discipline::default();
        assert_eq!(
            free.describe(),
            "no program seen here; the kernel takes it as not synchronised"
        );
        let kept = Discipline {
            programs: vec!["ptp4l", "phc2sys"],
            is_synchronised: true,
            within_ns: 12_000,
        };
        assert_eq!(
            kept.describe(),
            "ptp4l and phc2sys; the kernel takes it as right within 12 us"
        );
        // The kernel counts in microseconds.
        assert_eq!(Discipline::read().within_ns % 1000, 0);
        assert!(corrected_ppb().abs() <= 100_000_000, "a tenth is the most");
    }
}
