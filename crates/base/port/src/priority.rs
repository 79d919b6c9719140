//! The scheduling priority of a thread that must keep times, and of one that must not disturb.

use crate::kernel;
use std::io;

/// Lets the calling thread run before every ordinary one whenever it has work: SCHED_FIFO with the
/// lowest priority (sched(7)). Threads that it starts afterwards are ordinary.
///
/// # Errors
/// The kernel's error: EPERM without CAP_SYS_NICE, or where its control group has no real-time
/// budget.
pub fn run_in_real_time() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameters outlive the call; 0 is the calling thread.
    kernel::check(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) }).map(drop)
}

/// Lets the calling thread run only on a core that no ordinary one has work for: SCHED_IDLE
/// (sched(7)). Threads that it starts afterwards are the same.
///
/// # Errors
/// The kernel's error; an ordinary process may always do this.
pub fn run_when_idle() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters outlive the call; 0 is the calling thread.
    kernel::check(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) })
        .map(drop)
}
