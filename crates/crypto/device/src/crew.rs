//! Threads that begin together, in little memory.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::DeviceError;

/// Threads of one process. With every operation that our engines have, 152, so many took 0.67 GB, and SoftHSM2's 98 took 0.17 GB;
/// OpenSSL's 107 took 0.31 GB before they began: jobs hold their own keys, and need not share them.
pub(crate) const THREADS_MAX: u32 = 1000;

/// Enough for the largest signatures, whose code keeps its matrices there. Only what is touched takes memory.
const STACK_BYTES: usize = 512 << 10;

/// Where threads wait until all may begin, or are to leave.
#[derive(Default)]
pub(crate) struct Gate {
    open: Mutex<Option<bool>>,
    changed: Condvar,
}

impl Gate {
    /// Waits. Returns whether to begin.
    pub(crate) fn wait(&self) -> bool {
        let mut open = self.lock();
        loop {
            match *open {
                Some(begin) => return begin,
                None => {
                    open = self
                        .changed
                        .wait(open)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        }
    }

    /// Lets all begin, or sends them away. The first word counts.
    pub(crate) fn open(&self, begin: bool) {
        self.lock().get_or_insert(begin);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Option<bool>> {
        // Nothing in it can be half done.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts one thread of many.
///
/// # Errors
/// [`DeviceError::Unusable`] where the machine gives no more.
pub(crate) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, DeviceError> {
    Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).map_err(|error: io::Error| {
        DeviceError::Unusable(format!(
            "cannot start another thread: {error}; let fewer work, or raise the limits on processes and memory"
        ))
    })
}

/// Whether so many threads can be asked for.
///
/// # Errors
/// [`DeviceError::Unusable`].
pub(crate) fn check_threads(threads: u32) -> Result<(), DeviceError> {
    match threads {
        1..=THREADS_MAX => Ok(()),
        _ => Err(DeviceError::Unusable(format!(
            "a process works with 1 to {THREADS_MAX} threads, and cannot with {threads}"
        ))),
    }
}

/// What is told of a thread that did not come to its end.
pub(crate) fn panicked() -> DeviceError {
    DeviceError::Failed("a thread broke off in the device's code".to_owned())
}
