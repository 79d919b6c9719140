//! Who uses the CPUs of this machine now.

use super::online_cpus;
use crate::procfs::{machine_cpu_time, tick_ns};
use crate::protocol::{BusyProgram, CpuTime, Load};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// How long is looked: 25 of the ticks in which the kernel counts.
const SPAN: Duration = Duration::from_millis(250);

/// A process by its number and start, with its name and the CPU time of its threads in ticks.
type Processes = BTreeMap<(u32, u64), (String, u64)>;

/// Looks at the use of the CPUs for a moment.
pub(crate) fn look() -> Load {
    let began = Instant::now();
    let before = (machine_cpu_time().unwrap_or_default(), processes());
    thread::sleep(SPAN);
    let after = (machine_cpu_time().unwrap_or_default(), processes());
    let span_ns = began.elapsed().as_nanos().max(1);
    let percent = |ns: u64| u32::try_from(u128::from(ns) * 100 / span_ns).unwrap_or(u32::MAX);
    let grown = |of: fn(&CpuTime) -> u64| percent(of(&after.0).saturating_sub(of(&before.0)));
    let tick_ns = tick_ns();
    let others = after
        .1
        .iter()
        .filter(|((pid, _), _)| *pid != std::process::id());
    let programs = others.map(|(id, (name, ticks))| {
        let earlier = before.1.get(id).map_or(0, |(_, ticks)| *ticks);
        BusyProgram {
            name: name.clone(),
            pid: id.0,
            percent: percent(ticks.saturating_sub(earlier).saturating_mul(tick_ns)),
        }
    });
    let mut programs: Vec<_> = programs.filter(|program| program.percent > 0).collect();
    programs.sort_by_key(|program| Reverse(program.percent));
    Load {
        cpus: u32::try_from(online_cpus().len()).unwrap_or(u32::MAX),
        used_percent: grown(|time| time.user_ns + time.system_ns),
        stolen_percent: grown(|time| time.steal_ns),
        programs,
    }
}

fn processes() -> Processes {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter_map(|stat| parse(&stat)).collect()
}

/// From `/proc/PID/stat`: without the time of children, which their parent gets at once at their
/// end.
fn parse(text: &str) -> Option<((u32, u64), (String, u64))> {
    // The name is in parentheses and may contain parentheses and spaces.
    let (head, tail) = text.rsplit_once(')')?;
    let (pid, name) = head.split_once(" (")?;
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    // `fields[0]` is field 3 of proc(5).
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let id = (pid.parse().ok()?, number(19)?);
    Some((id, (name.to_owned(), number(11)? + number(12)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_time_of_children_is_not_counted_to_their_parent() {
        let text = "70 (a (b) c) S 1 70 70 0 -1 4194560 9 8 0 0 11 22 333 444 20 0 1 0 5050 9 9\n";
        assert_eq!(parse(text), Some(((70, 5050), ("a (b) c".to_owned(), 33))));
        assert_eq!(parse("cpu  1 2 3\n"), None);
    }

    #[test]
    fn a_program_that_uses_a_cpu_is_found() {
        let mut busy = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let began = Instant::now();
        // A busy machine gives it less.
        let found = loop {
            let load = look();
            let found = load.programs.iter().find(|it| it.pid == busy.id()).cloned();
            if found.is_some() || began.elapsed() > Duration::from_secs(30) {
                break (found, load);
            }
        };
        busy.kill().unwrap();
        busy.wait().unwrap();
        let (Some(program), load) = found else {
            panic!("{:?}", found.1);
        };
        assert_eq!(program.name, "sh");
        assert!(load.used_percent > 0 && load.cpus > 0, "{load:?}");
    }
}
