//! This machine: its boot, and the programs that use its CPUs.

use crate::protocol::BusyProgram;
use nix::unistd::{SysconfVar, sysconf};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Instant;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Identifies this boot of this machine.
#[must_use]
pub fn boot_id() -> String {
    // Not /etc/machine-id, which copies of one disk image share. This one is of the kernel: it is
    // the same in all namespaces, and another one after each boot.
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// The length of a tick, the kernel's unit of CPU time.
#[must_use]
pub fn tick_ns() -> u64 {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    NANOS_PER_SECOND
        / per_second
            .and_then(|ticks| u64::try_from(ticks).ok())
            // USER_HZ, which is 100 except on a few old architectures.
            .unwrap_or(100)
            .max(1)
}

/// Processes by number and start.
type Processes = BTreeMap<(u32, u64), Process>;

/// A process according to `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    name: String,
    parent: u32,
    /// CPU time of its threads, in ticks.
    user_ticks: u64,
    system_ticks: u64,
}

/// The processes of this machine at one time, to compare with another.
#[derive(Debug, Clone)]
pub struct Programs {
    at: Instant,
    processes: Processes,
}

impl Programs {
    /// Reads them.
    #[must_use]
    pub fn read() -> Self {
        Self {
            at: Instant::now(),
            processes: processes(),
        }
    }

    /// The programs that used the machine since `before`, in user mode and in the kernel, the
    /// busiest first: without this process, and without programs that have ended.
    #[must_use]
    pub fn all_since(&self, before: &Self) -> Vec<BusyProgram> {
        let own = BTreeSet::from([std::process::id()]);
        self.busy(before, &own, Process::ticks)
    }

    /// The programs that used the machine in user mode since `before`, the busiest first: without
    /// this process and its descendants, and without programs that have ended.
    #[must_use]
    pub fn since(&self, before: &Self) -> Vec<BusyProgram> {
        // By the later reading: a program that this one has started since belongs to the family
        // too.
        let own = family(&self.processes, std::process::id());
        self.busy(before, &own, |process| process.user_ticks)
    }

    /// Returns the CPU use of processes since an earlier reading, the busiest first, without the
    /// processes in `own`; `ticks` selects the CPU time that counts.
    fn busy(
        &self,
        before: &Self,
        own: &BTreeSet<u32>,
        ticks: impl Fn(&Process) -> u64,
    ) -> Vec<BusyProgram> {
        // A process that began after `before` has used all of its time since. A process that has
        // ended is not in this reading, and its time is nobody's.
        let span_ns = self.at.duration_since(before.at).as_nanos().max(1);
        let mut used = Vec::new();
        for (id, process) in &self.processes {
            let earlier = before.processes.get(id).map_or(0, &ticks);
            let percent = percent(ticks(process).saturating_sub(earlier), span_ns);
            if percent > 0 && !own.contains(&id.0) {
                used.push(BusyProgram {
                    name: process.name.clone(),
                    pid: id.0,
                    percent,
                });
            }
        }
        // Stable: programs that used as much stay in the order of their numbers.
        used.sort_by_key(|program| Reverse(program.percent));
        used
    }
}

/// A process and its living descendants.
fn family(processes: &Processes, pid: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::from([pid]);
    loop {
        // /proc lists processes by number, and a child's number can be below its parent's after the
        // numbers began again: so the search is repeated until it finds no more.
        let known = found.len();
        for ((child, _), process) in processes {
            if found.contains(&process.parent) {
                found.insert(*child);
            }
        }
        if found.len() == known {
            return found;
        }
    }
}

/// Ticks in per cent of a time.
fn percent(ticks: u64, span_ns: u128) -> u32 {
    // Rounded down: dozens of programs run for a tick now and then, which is nothing to name.
    let used = u128::from(ticks) * u128::from(tick_ns());
    u32::try_from(used * 100 / span_ns).unwrap_or(u32::MAX)
}

fn processes() -> Processes {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    // Folders that are no process have no `stat` with these fields, and a process may end between
    // the two calls: both are left out.
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter_map(|stat| parse(&stat)).collect()
}

/// Parses `/proc/PID/stat`, without the time of ended children, which their parent gets in one
/// step.
fn parse(text: &str) -> Option<((u32, u64), Process)> {
    // The name is in parentheses and may contain parentheses and spaces.
    let (head, tail) = text.rsplit_once(')')?;
    let (pid, name) = head.split_once(" (")?;
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    // `fields[0]` is field 3 of proc(5).
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    // An earlier process may have had the same number, but not the same start.
    let id = (pid.parse().ok()?, number(19)?);
    let process = Process {
        name: name.to_owned(),
        parent: number(1)?.try_into().ok()?,
        // Fields 14 and 15. The next two are the ended children's.
        user_ticks: number(11)?,
        system_ticks: number(12)?,
    };
    Some((id, process))
}

impl Process {
    const fn ticks(&self) -> u64 {
        self.user_ticks + self.system_ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn the_time_of_children_is_not_counted_to_their_parent() {
        let text = "70 (a (b) c) S 1 70 70 0 -1 4194560 9 8 0 0 11 22 333 444 20 0 1 0 5050 9 9\n";
        let (id, process) = parse(text).unwrap();
        assert_eq!((id, process.ticks()), ((70, 5050), 33));
        assert_eq!((process.name.as_str(), process.parent), ("a (b) c", 1));
        assert_eq!(parse("cpu  1 2 3\n"), None);
    }

    #[test]
    fn our_own_children_are_no_other_programs() {
        let before = Programs::read();
        let mut busy = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let began = Instant::now();
        let found = loop {
            let now = Programs::read();
            let mine = now.processes.iter().find(|((pid, _), _)| *pid == busy.id());
            if mine.is_some_and(|(_, process)| process.user_ticks > 0)
                || began.elapsed() > Duration::from_secs(30)
            {
                break now.since(&before);
            }
            thread::sleep(Duration::from_millis(10));
        };
        busy.kill().unwrap();
        busy.wait().unwrap();
        assert!(found.iter().all(|it| it.pid != busy.id()), "{found:?}");
        // A process outside of this program's family counts.
        let mut processes = before.processes.clone();
        processes.insert(
            (busy.id(), u64::MAX),
            Process {
                name: "other".to_owned(),
                parent: 0,
                user_ticks: 1_000,
                system_ticks: 0,
            },
        );
        let after = Programs {
            at: before.at + Duration::from_secs(20),
            processes,
        };
        let found = after.since(&before);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].name, "other");
    }
}
