//! What a worker is told after its [`Spec`](crate::spec::Spec): `go`, `stop`, or the end of its input.

use std::io::BufRead;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The orders that came so far, and a place to wait for the next. Threads that work may [`Orders::nudge`] whoever waits.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    told: Mutex<Told>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Told {
    go: bool,
    stop: bool,
}

impl Orders {
    /// Listens from now on, in a thread that ends with the input.
    pub(crate) fn listen(input: impl BufRead + Send + 'static) -> Arc<Self> {
        let orders = Arc::new(Self::default());
        let heard = Arc::clone(&orders);
        thread::spawn(move || {
            for line in input.lines() {
                match line.as_deref().map(str::trim) {
                    Ok("go") => heard.change(|told| told.go = true),
                    Ok("") => {}
                    // What is no order ends the trial rather than being lost.
                    Ok(_) | Err(_) => break,
                }
            }
            heard.stop();
        });
        orders
    }

    /// Waits for the order to begin. `false`: the order is to stop.
    pub(crate) fn begin(&self) -> bool {
        let mut told = self.lock();
        while !told.go && !told.stop {
            told = self.wait(told);
        }
        !told.stop
    }

    /// Whether the trial is to end early.
    pub(crate) fn stopped(&self) -> bool {
        self.lock().stop
    }

    /// Ends the trial early.
    pub(crate) fn stop(&self) {
        self.change(|told| told.stop = true);
    }

    /// Waits until then, or until `done` says so; it is asked after each nudge. `false`: the order is to stop.
    pub(crate) fn wait_until(&self, time: Instant, done: impl Fn() -> bool) -> bool {
        let mut told = self.lock();
        loop {
            let left = time.saturating_duration_since(Instant::now());
            if told.stop || left.is_zero() || done() {
                return !told.stop;
            }
            told = self
                .changed
                .wait_timeout(told, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Waits that long. `false`: the order is to stop.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        self.wait_until(Instant::now() + time, || false)
    }

    /// Has whoever waits look again.
    pub(crate) fn nudge(&self) {
        self.change(|_| {});
    }

    fn change(&self, change: impl FnOnce(&mut Told)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn wait<'a>(&self, told: MutexGuard<'a, Told>) -> MutexGuard<'a, Told> {
        self.changed
            .wait(told)
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        // Nothing in it can be half done.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
