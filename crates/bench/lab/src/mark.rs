//! The mark that every process of a lab has in its environment.

use crate::procfs::{self, ProcessStat};
use std::sync::OnceLock;

/// Environment variable that marks the processes of a lab.
pub(crate) const MARK: &str = "CIPHERBENCH_RUN";

/// Marked processes that were seen before this process entered a user namespace.
static SEEN_FROM_OUTSIDE: OnceLock<Vec<(ProcessStat, String)>> = OnceLock::new();

/// Remembers all marked processes. Call it before the process enters a user namespace: from inside,
/// the kernel hides the environment of processes in the namespace of an earlier run, a sibling.
pub(crate) fn look_from_outside() {
    // Entered once: the first look is the last that can see them.
    SEEN_FROM_OUTSIDE.get_or_init(|| procfs::marked(MARK));
}

/// Processes with this mark.
pub(crate) fn marked(mark: &str) -> Vec<ProcessStat> {
    let seen = SEEN_FROM_OUTSIDE.get().into_iter().flatten().cloned();
    // A number that was seen may belong to another process by now, which `is_alive` notices.
    let still_alive = seen.filter(|(process, _)| process.is_alive());
    procfs::marked(MARK)
        .into_iter()
        .chain(still_alive)
        .filter(|(_, value)| value == mark)
        .map(|(process, _)| process)
        .collect()
}
