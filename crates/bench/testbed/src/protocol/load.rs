//! CPU load of a machine, by program.

use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// CPU use at which trials suffer, in per cent of one CPU.
const HIGH_PERCENT: u32 = 25;
/// Most programs named in a message.
const NAMED: usize = 3;
/// Programs that use less, in per cent of one CPU, are not named.
const NAMED_PERCENT: u32 = 5;

/// CPU use of a machine over a moment. Percentages are of one CPU: 200 are two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Online CPUs.
    pub cpus: u32,
    /// Use by all programs and the kernel.
    pub used_percent: u32,
    /// Time that the hypervisor gave to other guests while a CPU had work to do.
    pub stolen_percent: u32,
    /// The programs in descending order of use, without this program.
    pub programs: Vec<BusyProgram>,
}

/// A program that uses CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusyProgram {
    /// Its name in the kernel.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// Its CPU use in per cent of one CPU.
    pub percent: u32,
}

impl Load {
    /// Whether the load is high enough to affect trials.
    #[must_use]
    pub const fn is_high(&self) -> bool {
        // Time of other guests delays a trial as much as other programs here, and shows nowhere
        // else.
        self.used_percent + self.stolen_percent >= HIGH_PERCENT
    }

    /// Describes the load:
    /// `1.4 of 2 CPUs are in use: rustc 96 % (process 4711), cc 40 % (process 4712) and 3 others`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let of_one = |percent: u32| f64::from(percent) / 100.0;
        let mut text = format!(
            "{:.1} of {} CPUs are in use",
            of_one(self.used_percent),
            self.cpus
        );
        let busy = self.programs.iter();
        // Dozens of idle programs use a little each. The sum above includes them.
        let busy: Vec<_> = busy.filter(|it| it.percent >= NAMED_PERCENT).collect();
        // The busiest come first.
        let named = busy.iter().take(NAMED).map(|program| {
            let BusyProgram { name, pid, percent } = program;
            format!("{name} {percent} % (process {pid})")
        });
        let named = named.collect::<Vec<_>>().join(", ");
        if !named.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {named}");
        }
        match busy.len().saturating_sub(NAMED) {
            0 => {}
            1 => text.push_str(" and 1 other"),
            more => _ = write!(text, " and {more} others"),
        }
        if self.stolen_percent >= NAMED_PERCENT {
            let stolen = of_one(self.stolen_percent);
            let _ = write!(
                text,
                "; other guests of the hypervisor took {stolen:.1} more"
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, pid: u32, percent: u32) -> BusyProgram {
        let name = name.to_owned();
        BusyProgram { name, pid, percent }
    }

    #[test]
    fn the_busiest_programs_are_named() {
        let mut load = Load {
            cpus: 2,
            used_percent: 140,
            stolen_percent: 0,
            programs: vec![
                program("rustc", 7, 96),
                program("cc", 8, 20),
                program("ld", 9, 10),
                program("make", 10, 9),
                program("sh", 11, 1),
            ],
        };
        let expected = "1.4 of 2 CPUs are in use: rustc 96 % (process 7), cc 20 % (process 8), \
                        ld 10 % (process 9) and 1 other";
        assert_eq!(load.in_words(), expected);
        load.programs.truncate(1);
        load.stolen_percent = 30;
        let expected = "1.4 of 2 CPUs are in use: rustc 96 % (process 7); \
                        other guests of the hypervisor took 0.3 more";
        assert_eq!(load.in_words(), expected);
        let idle = Load {
            cpus: 2,
            used_percent: 3,
            ..Load::default()
        };
        assert_eq!(idle.in_words(), "0.0 of 2 CPUs are in use");
        assert!(load.is_high() && !idle.is_high());
    }
}
