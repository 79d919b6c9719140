//! What corrects the kernel's clock, and how well.

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
    /// Whether the kernel takes it as synchronised (adjtimex(2)).
    pub is_synchronised: bool,
    /// By how much it may be wrong then, in nanoseconds.
    pub within_ns: u64,
}

impl Discipline {
    /// Reads it.
    #[must_use]
    pub fn read() -> Self {
        // SAFETY: all-zero is a valid value of this plain C structure: nothing is to be changed.
        let mut state: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a live `timex`, which the kernel fills.
        let result = unsafe { libc::adjtimex(&raw mut state) };
        let is_synchronised = result >= 0 && state.status & libc::STA_UNSYNC == 0;
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
            [] => "none".to_owned(),
            programs => programs.join(" and "),
        };
        match self.is_synchronised {
            true => format!(
                "{programs}; the kernel takes it as right within {} us",
                self.within_ns / 1000
            ),
            false => format!("{programs}; the kernel takes it as not synchronised"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_who_corrects_the_clock_and_how_well() {
        let free = Discipline::default();
        assert_eq!(
            free.describe(),
            "none; the kernel takes it as not synchronised"
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
    }
}
