//! The scheduling priority of a thread that must keep times, and of one that must not disturb.

use crate::kernel;
use std::io;

/// Lets the calling thread run before every ordinary one whenever it has work: SCHED_FIFO with the
/// lowest priority (sched(7)). Threads that it starts afterwards are ordinary.
///
/// Of each second it has 950 ms (`sched_rt_runtime_us`): a kernel with groups of real-time threads
/// then stops it until the second ends. A thread that can work that long without sleeping has to be
/// [ordinary](run_in_front) now and then.
///
/// # Errors
/// The kernel's error: EPERM without CAP_SYS_NICE, or if its control group has no real-time budget.
pub fn run_in_real_time() -> io::Result<()> {
    schedule(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1)
}

/// Makes the calling thread an ordinary one with the largest share of its core, nice -20, if it may
/// have that. Threads that it starts afterwards have the usual share.
///
/// # Errors
/// The kernel's error; a thread in real time may always do this.
pub fn run_in_front() -> io::Result<()> {
    schedule(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0)?;
    // Without CAP_SYS_NICE it keeps the share that it had.
    // SAFETY: no memory is involved; 0 is the calling thread.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
    Ok(())
}

/// Lets the calling thread run only on a core that no ordinary one has work for: SCHED_IDLE
/// (sched(7)). Threads that it starts afterwards are the same.
///
/// # Errors
/// The kernel's error; an ordinary process may always do this.
pub fn run_when_idle() -> io::Result<()> {
    schedule(libc::SCHED_IDLE, 0)
}

fn schedule(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the parameters outlive the call; 0 is the calling thread.
    kernel::check(unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) }).map(drop)
}
