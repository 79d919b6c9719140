//! Threads with small stacks that begin together; locks and CPU clocks.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use nix::time::ClockId;

use crate::DeviceError;

/// Limit of threads in one process. With every operation prepared in every thread, this many took
/// 0.67 GB with our engines (152 operations), 0.17 GB with SoftHSM2 (98), and 0.31 GB with OpenSSL
/// (107, before they began): each job holds a copy of its keys.
pub(crate) const THREADS_MAX: u32 = 1000;

/// Enough for the largest signatures, since their code keeps its matrices on the stack. Only
/// touched pages take memory.
const STACK_BYTES: usize = 512 << 10;

/// A barrier: threads wait until they may begin or must return.
#[derive(Default)]
pub(crate) struct Gate {
    open: Mutex<Option<bool>>,
    changed: Condvar,
}

impl Gate {
    /// Waits until the gate opens. Returns whether to begin.
    pub(crate) fn wait(&self) -> bool {
        let mut open = lock(&self.open);
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

    /// Opens the gate: threads begin or return. Only the first call has an effect.
    pub(crate) fn open(&self, begin: bool) {
        lock(&self.open).get_or_insert(begin);
        self.changed.notify_all();
    }
}

/// Locks a mutex, even a poisoned one: a panic cannot leave the content half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread for each item and waits until each has sent its preparation or an error. Returns
/// the started threads, and all preparations or the first error.
pub(crate) fn start<'scope, I, P, T>(
    scope: &'scope Scope<'scope, '_>,
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I, Sender<Result<P, DeviceError>>) -> T + Copy + Send + 'scope,
) -> (
    Vec<ScopedJoinHandle<'scope, T>>,
    Result<Vec<P>, DeviceError>,
)
where
    I: Send + 'scope,
    P: Send + 'scope,
    T: Send + 'scope,
{
    let (sender, sent) = mpsc::channel();
    let mut threads = Vec::new();
    let started = items.into_iter().try_for_each(|item| {
        let sender = sender.clone();
        threads.push(spawn(scope, move || work(item, sender))?);
        Ok(())
    });
    drop(sender);
    // A thread that panicked sends nothing; the caller notices when it joins the thread.
    let prepared = started.and_then(|()| sent.iter().collect());
    (threads, prepared)
}

/// Starts a thread.
///
/// # Errors
/// [`DeviceError::Unusable`] if the system has no more threads.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, DeviceError> {
    Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).map_err(|error: io::Error| {
        DeviceError::Unusable(format!(
            "cannot start another thread: {error}; use fewer threads, or raise the limits on processes and memory"
        ))
    })
}

/// Checks the number of threads.
///
/// # Errors
/// [`DeviceError::Unusable`].
pub(crate) fn check_threads(threads: u32) -> Result<(), DeviceError> {
    match threads {
        1..=THREADS_MAX => Ok(()),
        _ => Err(DeviceError::Unusable(format!(
            "a process works with 1 to {THREADS_MAX} threads, not with {threads}"
        ))),
    }
}

/// The error for a thread that panicked.
pub(crate) fn panicked() -> DeviceError {
    DeviceError::Failed("a thread panicked in the device's code".to_owned())
}

/// CPU time of the calling thread, user and system.
pub(crate) fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of this process, user and system.
pub(crate) fn process_cpu_ns() -> u64 {
    clock_ns(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

fn clock_ns(clock: ClockId) -> u64 {
    let time = clock.now();
    time.map_or(0, |time| Duration::from(time).as_nanos() as u64)
}
