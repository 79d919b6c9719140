//! Work that is divided among threads, one for each port.

use crate::error::TrafficError;
use std::io;
use std::mem::forget;
use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};

/// Runs each task on a separate thread; returns all results, or the first error. `cancel` ends the
/// others when one fails, panics, or cannot be started.
pub(crate) fn on_threads<T: Send, R: Send>(
    name: &str,
    tasks: impl Iterator<Item = T>,
    work: impl Fn(T) -> io::Result<R> + Sync,
    cancel: impl Fn() + Sync,
) -> Result<Vec<R>, TrafficError> {
    let work = |task| {
        // Dropped in a panic as well, so that the other threads do not wait for ever.
        let others = CancelOnDrop(&cancel);
        let result = work(task);
        if result.is_ok() {
            forget(others);
        }
        result
    };
    let work = &work;
    thread::scope(|scope| {
        let start = |(index, task): (usize, T)| {
            let builder = thread::Builder::new().name(format!("{name}-{index}"));
            let started = builder.spawn_scoped(scope, move || work(task));
            started.map_err(|error| {
                cancel();
                TrafficError::Resources(error)
            })
        };
        // All are started before the first is joined.
        let threads: Vec<_> = tasks.enumerate().map(start).collect::<Result<_, _>>()?;
        let join = |thread: ScopedJoinHandle<'_, io::Result<R>>| {
            let result = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            result.map_err(TrafficError::of_work)
        };
        threads.into_iter().map(join).collect()
    })
}

/// Cancels the other threads when dropped.
struct CancelOnDrop<C: Fn()>(C);

impl<C: Fn()> Drop for CancelOnDrop<C> {
    fn drop(&mut self) {
        (self.0)();
    }
}
