//! The scheduling priority of a thread that must keep times.

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
