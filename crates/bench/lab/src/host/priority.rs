//! The priority of threads that may wait for all others.

/// The lowest priority.
const NICE: i32 = 19;

/// Gives the calling thread, and the threads that it starts from now on, the lowest priority. A
/// refusal is ignored: the thread then works as before.
pub fn lower_priority() {
    // SAFETY: the call has no pointers. On Linux, process 0 is the calling thread.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
}
