//! Threads that are pinned to cores.

use crate::error::SpeedError;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Returns cores for the threads: those with the highest numbers, since the first usually handle
/// interrupts.
///
/// # Errors
/// When this process may use fewer cores.
pub fn cores(threads: u16) -> Result<Vec<usize>, SpeedError> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).map_err(SpeedError::Cores)?;
    let all = (0..CpuSet::count()).filter(|&core| allowed.is_set(core) == Ok(true));
    let mut cores: Vec<_> = all.collect();
    let threads = usize::from(threads);
    if threads > cores.len() {
        return Err(SpeedError::TooFewCores {
            threads,
            cores: cores.len(),
        });
    }
    Ok(cores.split_off(cores.len() - threads))
}

/// A thread of [`on_each`] that is still at work. It counts itself out when it is dropped, so a
/// thread that fails or panics does too, and the others do not wait for it for ever.
pub(crate) struct Working<'a>(&'a AtomicUsize);

impl<'a> Working<'a> {
    /// Ends the work of this thread. The returned function is true as long as others work.
    pub(crate) fn end(self) -> impl Fn() -> bool + 'a {
        let working = self.0;
        drop(self);
        // The count orders no other memory.
        move || working.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs a function in a thread pinned to a core.
pub(crate) fn pinned<T: Send>(core: usize, work: impl Fn() -> T + Sync) -> Result<T, SpeedError> {
    on_each(&[core], |_| Ok(work())).swap_remove(0)
}

/// Runs a function on each core, in pinned threads.
pub(crate) fn on_each<T: Send>(
    cores: &[usize],
    work: impl Fn(Working<'_>) -> Result<T, SpeedError> + Sync,
) -> Vec<Result<T, SpeedError>> {
    let working = AtomicUsize::new(cores.len());
    let stay_and_work = |core| {
        // Before the thread is pinned, as that may fail.
        let working = Working(&working);
        let mut only = CpuSet::new();
        // The thread pins itself, so that it allocates its memory on that core's node.
        let stays = only
            .set(core)
            // 0 is the calling thread, not the process.
            .and_then(|()| sched_setaffinity(Pid::from_raw(0), &only));
        stays.map_err(|error| SpeedError::Pin { core, error })?;
        work(working)
    };
    let stay_and_work = &stay_and_work;
    thread::scope(|scope| {
        let threads = cores
            .iter()
            .map(|&core| scope.spawn(move || stay_and_work(core)));
        let threads: Vec<_> = threads.collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(result) => result,
            // With its message; the scope alone would report only that some thread panicked.
            Err(panic) => std::panic::resume_unwind(panic),
        };
        // All are started by now: `collect` above has run the iterator.
        threads.into_iter().map(join).collect()
    })
}
