//! Threads that begin together, in little memory.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use nix::time::ClockId;

use crate::DeviceError;

/// Threads of one process. With every operation that our engines have, 152, so many took 0.67 GB,
/// and SoftHSM2's 98 took 0.17 GB; OpenSSL's 107 took 0.31 GB before they began: jobs hold their
/// own keys, and need not share them.
pub(crate) const THREADS_MAX: u32 = 1000;

/// Enough for the largest signatures, whose code keeps its matrices there. Only what is touched
/// takes memory.
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

    /// Lets all begin, or sends them away. The first word counts.
    pub(crate) fn open(&self, begin: bool) {
        lock(&self.open).get_or_insert(begin);
        self.changed.notify_all();
    }
}

/// Locks a mutex whose content a panic cannot leave half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread for each item and waits until each has sent what it prepared, or why it cannot
/// work. Returns the threads that were started, and the first error in place of what they sent.
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

/// Starts one thread of many.
///
/// # Errors
/// [`DeviceError::Unusable`] where the machine gives no more.
fn spawn<'scope, T: Send + 'scope>(
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
