//! Killing what is not our child: found under `/proc`, killed, and seen to be gone.

use crate::procfs::{ProcessStat, descendants};
use crate::sync::Deadline;
use std::time::Duration;

/// Kills all that `find` finds, again and again until it finds none and all are gone; how many that
/// were.
///
/// A dying process is out of its namespaces, and its environment is empty, before it is gone: it is
/// no longer found, and is waited for all the same.
pub(crate) fn kill_all(find: impl Fn() -> Vec<ProcessStat>, limit: Duration) -> usize {
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
            if !killed.iter().any(|known| known.is_same(&process)) {
                killed.push(process);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills a process and everything below it; how many processes that were.
///
/// The descendants go first: while their ancestor (a station, which adopts its orphans) lives, even
/// stopped, none of them can slip away to another parent.
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
