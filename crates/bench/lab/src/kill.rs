//! Killing processes that are not children: found under `/proc`, killed, and awaited.

use crate::procfs::{ProcessStat, descendants};
use crate::sync::Deadline;
use std::time::Duration;

/// Kills all processes that `find` returns, repeatedly, until it returns none and all are gone;
/// returns their number.
///
/// A dying process leaves its namespaces and loses its environment before it is gone: `find` no
/// longer returns it, but it is still awaited.
pub(crate) fn kill_all(find: impl Fn() -> Vec<ProcessStat>, limit: Duration) -> usize {
    // A process that hangs in the kernel does not react to SIGKILL, so the wait has an end.
    let deadline = Deadline::after(limit);
    let mut killed: Vec<ProcessStat> = Vec::new();
    loop {
        let found = find();
        let all_gone = found.is_empty() && !killed.iter().any(ProcessStat::is_alive);
        if all_gone || deadline.is_over() {
            return killed.len();
        }
        for process in found {
            process.kill();
            // It may be found again before the signal takes effect, and counts once.
            if !killed.iter().any(|known| known.is_same(&process)) {
                killed.push(process);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills a process and all its descendants; returns the number of processes.
///
/// The descendants go first: while their ancestor (a station, which adopts its orphans) lives, even
/// stopped, none of them gets another parent.
pub(crate) fn kill_tree(root: &ProcessStat, limit: Duration) -> usize {
    let alive = |processes: Vec<ProcessStat>| -> Vec<ProcessStat> {
        processes
            .into_iter()
            .filter(ProcessStat::is_alive)
            .collect()
    };
    let below = || {
        if root.is_alive() {
            alive(descendants(root.pid))
        } else {
            Vec::new()
        }
    };
    kill_all(below, limit) + kill_all(|| alive(vec![root.clone()]), limit)
}
