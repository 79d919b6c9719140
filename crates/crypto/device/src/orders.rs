//! Orders to a worker after its [`Spec`](catalog::worker::Spec): `go`, `stop`, or the end of its
//! input.

use std::io::BufRead;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use guard::Lines;

use crate::threads::lock;

/// Every order is shorter.
pub(crate) const LINE_BYTES_MAX: usize = 64;

/// The orders received so far. Threads can wait for the next one; [`Orders::nudge`] wakes them.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    received: Mutex<Received>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Received {
    go: bool,
    stop: bool,
}

impl Orders {
    /// Starts a thread that reads orders until the input ends.
    pub(crate) fn listen(input: impl BufRead + Send + 'static) -> Arc<Self> {
        let orders = Arc::new(Self::default());
        let receiver = Arc::clone(&orders);
        thread::spawn(move || {
            for line in Lines::new(input, LINE_BYTES_MAX) {
                match line.as_ref().map(|line| line.text.trim()) {
                    Ok("go") => receiver.change(|received| received.go = true),
                    Ok("") => {}
                    // An unknown line ends the trial, so that no order is lost.
                    Ok(_) | Err(_) => break,
                }
            }
            // The end of the input is an order: the parent process may have died.
            receiver.stop();
        });
        orders
    }

    /// Waits for `go`. `false` means stop. If both were received, the trial begins and ends
    /// immediately.
    pub(crate) fn begin(&self) -> bool {
        let waits = |received: &mut Received| !received.go && !received.stop;
        let received = self.changed.wait_while(lock(&self.received), waits);
        received.unwrap_or_else(PoisonError::into_inner).go
    }

    /// Whether the trial must end early.
    pub(crate) fn stopped(&self) -> bool {
        lock(&self.received).stop
    }

    /// Ends the trial early.
    pub(crate) fn stop(&self) {
        self.change(|received| received.stop = true);
    }

    /// Waits until `time`, or until `done`, which is evaluated after each nudge. `false`: the order
    /// is to stop.
    pub(crate) fn wait_until(&self, time: Instant, done: impl Fn() -> bool) -> bool {
        let mut received = lock(&self.received);
        loop {
            let left = time.saturating_duration_since(Instant::now());
            // `done` first needs the lock, which `nudge` takes too: no nudge gets lost between the
            // check and the wait.
            if received.stop || left.is_zero() || done() {
                return !received.stop;
            }
            received = self
                .changed
                .wait_timeout(received, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Waits for this duration. `false`: the order is to stop.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        self.wait_until(Instant::now() + time, || false)
    }

    /// Wakes waiting threads, which evaluate their conditions again.
    pub(crate) fn nudge(&self) {
        self.change(|_| {});
    }

    fn change(&self, change: impl FnOnce(&mut Received)) {
        change(&mut lock(&self.received));
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn orders_are_taken_line_by_line() {
        let begins = |text: &'static str| Orders::listen(text.as_bytes()).begin();
        assert!(!begins(""));
        assert!(!begins("stop\n"));
        assert!(!begins("what\ngo\n"));
        assert!(begins("go\nstop\n"));
        // The end of the input follows immediately; either may take effect first.
        let both = Orders::listen(&b"\n go \n"[..]);
        assert!(!both.pause(LONG));
        assert!(both.stopped());
    }

    #[test]
    fn a_nudge_wakes_a_waiting_thread() {
        let orders = Arc::new(Orders::default());
        let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let worker = {
            let (orders, done) = (Arc::clone(&orders), Arc::clone(&done));
            thread::spawn(move || {
                done.store(true, std::sync::atomic::Ordering::Relaxed);
                orders.nudge();
            })
        };
        let is_done = || done.load(std::sync::atomic::Ordering::Relaxed);
        assert!(orders.wait_until(Instant::now() + LONG, is_done));
        worker.join().unwrap();
        assert!(orders.pause(Duration::ZERO));
    }
}
