//! Threads with readable CPU time.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

/// A thread with its folder under /proc.
pub(crate) struct Thread<T> {
    handle: JoinHandle<T>,
    task: PathBuf,
}

impl<T: Send + 'static> Thread<T> {
    pub(crate) fn start(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        // Only the thread itself can read its folder's name, by /proc/thread-self, so it sends the
        // name before it works.
        let handle = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                // The thread that started it waits for this.
                let _ = sender.send(own_task());
                work()
            })?;
        let task = receiver.recv().unwrap_or_default();
        Ok(Self { handle, task })
    }

    /// Returns its CPU time so far in nanoseconds; 0 if the kernel does not report it.
    pub(crate) fn cpu_ns(&self) -> u64 {
        cpu_ns(&self.task)
    }

    /// Waits for its end.
    pub(crate) fn join(self) -> thread::Result<T> {
        self.handle.join()
    }
}

/// Returns the CPU time of the calling thread in nanoseconds; 0 if the kernel does not report it.
pub(crate) fn own_cpu_ns() -> u64 {
    cpu_ns(&own_task())
}

/// Returns the folder of the calling thread under /proc.
fn own_task() -> PathBuf {
    let link = fs::read_link("/proc/thread-self").unwrap_or_default();
    PathBuf::from("/proc").join(link)
}

/// Reads the first field of `schedstat`: time on a CPU, in nanoseconds.
fn cpu_ns(task: &std::path::Path) -> u64 {
    // `stat` has the time in ticks of 10 ms, too coarse for short trials.
    let text = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    let first = text.split_ascii_whitespace().next();
    first.and_then(|time| time.parse().ok()).unwrap_or(0)
}
