//! What a worker is told after its [`Spec`](crate::spec::Spec): `go`, `stop`, or the end of its
//! input.

use std::io::BufRead;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::threads::lock;

/// The orders that came so far, and a place to wait for the next. Threads that work may
/// [`Orders::nudge`] whoever waits.
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

    /// Waits for the order to begin. `false`: the order is to stop. Where both came, it begins, and
    /// ends at once.
    pub(crate) fn begin(&self) -> bool {
        let waits = |told: &mut Told| !told.go && !told.stop;
        let told = self.changed.wait_while(lock(&self.told), waits);
        told.unwrap_or_else(PoisonError::into_inner).go
    }

    /// Whether the trial is to end early.
    pub(crate) fn stopped(&self) -> bool {
        lock(&self.told).stop
    }

    /// Ends the trial early.
    pub(crate) fn stop(&self) {
        self.change(|told| told.stop = true);
    }

    /// Waits until then, or until `done` says so; it is asked after each nudge. `false`: the order
    /// is to stop.
    pub(crate) fn wait_until(&self, time: Instant, done: impl Fn() -> bool) -> bool {
        let mut told = lock(&self.told);
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
        change(&mut lock(&self.told));
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
        // The end of the input follows at once: either may be seen first.
        let both = Orders::listen(&b"\n go \n"[..]);
        assert!(!both.pause(LONG));
        assert!(both.stopped());
    }

    #[test]
    fn who_waits_is_woken_by_a_nudge() {
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
