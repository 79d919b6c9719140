//! When transactions begin: on an open-loop schedule, or each after the one before.
//!
//! The rate rises linearly in the ramp-up phase, is constant in the sustain phase, and falls
//! linearly in the ramp-down phase (RFC 9411 §4.3.4). In a closed loop the number of active
//! connections follows this course instead.

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use plan::HttpTest;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use tokio::net::unix::pipe::Receiver;

/// The phases of a run, in nanoseconds from its start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Phases {
    ramp_ns: u64,
    duration_ns: u64,
}

impl Phases {
    pub(crate) const fn of(test: &HttpTest) -> Self {
        Self {
            ramp_ns: test.ramp_ns,
            duration_ns: test.duration_ns,
        }
    }

    pub(crate) const fn sustain(self) -> Range<u64> {
        self.ramp_ns..self.ramp_ns + self.duration_ns
    }

    pub(crate) const fn end_ns(self) -> u64 {
        2 * self.ramp_ns + self.duration_ns
    }
}

/// The start times of an open-loop schedule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrivals {
    phases: Phases,
    per_ns: f64,
}

impl Arrivals {
    pub(crate) fn new(phases: Phases, per_s: u32) -> Self {
        Self {
            phases,
            per_ns: f64::from(per_s) / 1e9,
        }
    }

    /// Transactions of one ramp: half as many as at the full rate.
    fn of_ramp(&self) -> f64 {
        self.per_ns * self.phases.ramp_ns as f64 / 2.0
    }

    fn of_sustain(&self) -> f64 {
        self.per_ns * self.phases.duration_ns as f64
    }

    /// Number of transactions in all phases.
    pub(crate) fn count(&self) -> u64 {
        (2.0 * self.of_ramp() + self.of_sustain()) as u64
    }

    /// Returns the start time of the transaction with this number, counted from 0: the inverse of
    /// the number of transactions begun by a given time.
    pub(crate) fn at_ns(&self, number: u64) -> u64 {
        let (number, ramp) = (number as f64, self.phases.ramp_ns as f64);
        let behind = number - self.of_ramp();
        if behind < 0.0 {
            // The rate rises linearly, so the number rises with the square of the time.
            return (2.0 * ramp * number / self.per_ns).sqrt() as u64;
        }
        let down = behind - self.of_sustain();
        if down < 0.0 {
            return (ramp + behind / self.per_ns) as u64;
        }
        // The same square, seen from the end. Without a ramp nothing is left of it.
        let left = (1.0 - down / self.of_ramp().max(f64::MIN_POSITIVE)).max(0.0);
        (ramp + self.phases.duration_ns as f64 + ramp * (1.0 - left.sqrt())) as u64
    }
}

/// The schedule of one thread.
pub(crate) struct Schedule {
    started: Instant,
    phases: Phases,
    open: Option<Open>,
}

/// An open-loop schedule. Idle connections wait in a queue.
struct Open {
    arrivals: Arrivals,
    /// This thread has every `threads`-th transaction of the run, from `thread` on.
    thread: u64,
    threads: u64,
    next: Cell<u64>,
    waiting: RefCell<VecDeque<Waker>>,
    /// Wakes [`Schedule::pace`] once a connection waits.
    pacer: Cell<Option<Waker>>,
}

impl Open {
    /// The start time of the transaction after the next `ahead` ones; `None` after the last.
    fn at_ns(&self, ahead: u64) -> Option<u64> {
        // Every `threads`-th, so that no thread waits for another.
        let number = (self.next.get() + ahead) * self.threads + self.thread;
        (number < self.arrivals.count()).then(|| self.arrivals.at_ns(number))
    }
}

impl Schedule {
    /// Creates one thread's schedule. `arrivals` are for all threads; `None` means a closed loop.
    pub(crate) fn new(
        started: Instant,
        phases: Phases,
        arrivals: Option<Arrivals>,
        (thread, threads): (u16, u16),
    ) -> Self {
        let open = arrivals.map(|arrivals| Open {
            arrivals,
            thread: thread.into(),
            threads: threads.into(),
            next: Cell::new(0),
            waiting: RefCell::default(),
            pacer: Cell::default(),
        });
        Self {
            started,
            phases,
            open,
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    pub(crate) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Waits until the next transaction of a connection should begin and returns its start time;
    /// `None` when the run is over. `share` is the connection's position among all, from 0 to 1: in
    /// a closed loop the first connection begins first and ends last.
    pub(crate) async fn next(&self, share: f64) -> Option<u64> {
        match &self.open {
            Some(open) => self.next_open(open).await,
            None => self.next_closed(share).await,
        }
    }

    async fn next_closed(&self, share: f64) -> Option<u64> {
        let later_ns = (self.phases.ramp_ns as f64 * share) as u64;
        let now_ns = self.now_ns();
        if now_ns < later_ns {
            tokio::time::sleep(Duration::from_nanos(later_ns - now_ns)).await;
        }
        let now_ns = self.now_ns();
        // The connection that began last ends first, which forms the ramp down.
        (now_ns < self.phases.end_ns() - later_ns).then_some(now_ns)
    }

    async fn next_open(&self, open: &Open) -> Option<u64> {
        poll_fn(|context| {
            let now_ns = self.now_ns();
            let Some(at_ns) = open.at_ns(0).filter(|_| now_ns < self.phases.end_ns()) else {
                // Connections that were busy to the end never waited, and the pacer has no timer
                // while none waits.
                if let Some(pacer) = open.pacer.take() {
                    pacer.wake();
                }
                return Poll::Ready(None);
            };
            if at_ns <= now_ns {
                open.next.set(open.next.get() + 1);
                return Poll::Ready(Some(at_ns));
            }
            // A waker, not a timer for each connection: one timer serves the whole thread.
            open.waiting.borrow_mut().push_back(context.waker().clone());
            if let Some(pacer) = open.pacer.take() {
                pacer.wake();
            }
            Poll::Pending
        })
        .await
    }

    /// Wakes waiting connections at their transactions' start times, until the last one. Uses a
    /// kernel timer, as the runtime's timer has a resolution of milliseconds.
    pub(crate) async fn pace(&self) -> io::Result<()> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let timer = Timer::new()?;
        while let Some(at_ns) = open.at_ns(0) {
            if self.now_ns() >= self.phases.end_ns() {
                break;
            }
            poll_fn(|context| {
                let is_over = open.at_ns(0).is_none() || self.now_ns() >= self.phases.end_ns();
                if is_over || !open.waiting.borrow().is_empty() {
                    return Poll::Ready(());
                }
                open.pacer.set(Some(context.waker().clone()));
                Poll::Pending
            })
            .await;
            if let Some(left_ns) = at_ns.checked_sub(self.now_ns()).filter(|left| *left > 0) {
                timer.sleep(left_ns).await?;
            }
            let now_ns = self.now_ns();
            let mut due = 0;
            while open.at_ns(due).is_some_and(|at_ns| at_ns <= now_ns) {
                let Some(waker) = open.waiting.borrow_mut().pop_front() else {
                    break;
                };
                waker.wake();
                due += 1;
            }
            // The woken connections begin before the next wait.
            tokio::task::yield_now().await;
        }
        // They find the run over, and end.
        for waker in open.waiting.borrow_mut().drain(..) {
            waker.wake();
        }
        Ok(())
    }
}

/// A kernel timer.
struct Timer {
    timer: TimerFd,
    /// A second descriptor of it, which the runtime polls. Registering an arbitrary descriptor is
    /// unsafe in tokio; a timer is read like a pipe, and tokio accepts it as one unchecked.
    fired: Receiver,
}

impl Timer {
    fn new() -> io::Result<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK)?;
        let fired = Receiver::from_owned_fd_unchecked(timer.as_fd().try_clone_to_owned()?)?;
        Ok(Self { timer, fired })
    }

    async fn sleep(&self, ns: u64) -> io::Result<()> {
        let after = Expiration::OneShot(TimeSpec::from_duration(Duration::from_nanos(ns)));
        self.timer.set(after, TimerSetTimeFlags::empty())?;
        loop {
            self.fired.readable().await?;
            let mut expirations = [0; 8];
            match self.fired.try_read(&mut expirations) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read.map(drop),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    const PHASES: Phases = Phases {
        ramp_ns: 1_000_000_000,
        duration_ns: 2_000_000_000,
    };

    #[test]
    fn the_rate_rises_stays_and_falls() {
        let arrivals = Arrivals::new(PHASES, 1000);
        assert_eq!(arrivals.count(), 3000);
        let moments: Vec<u64> = (0..3000).map(|number| arrivals.at_ns(number)).collect();
        assert!(moments.is_sorted());
        let within = |from: u64, to: u64| {
            moments
                .iter()
                .filter(|at| (from * 1_000_000..to * 1_000_000).contains(*at))
                .count()
        };
        assert!(within(0, 500).abs_diff(125) <= 1);
        assert!(within(500, 1000).abs_diff(375) <= 1);
        assert!(within(1000, 3000).abs_diff(2000) <= 1);
        assert!(within(3000, 3500).abs_diff(375) <= 1);
        assert!(within(3500, 4000).abs_diff(125) <= 1);
    }

    #[test]
    fn an_open_loop_that_is_behind_its_schedule_ends_with_the_run() {
        let phases = Phases {
            ramp_ns: 10_000_000,
            duration_ns: 20_000_000,
        };
        let arrivals = Arrivals::new(phases, 10_000);
        let schedule = Schedule::new(Instant::now(), phases, Some(arrivals), (0, 1));
        let schedule = Rc::new(schedule);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let busy = Rc::clone(&schedule);
            let busy = tokio::task::spawn_local(async move {
                while busy.next(0.0).await.is_some() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            });
            let paced = tokio::time::timeout(Duration::from_secs(30), schedule.pace()).await;
            paced.expect("the pacer ends with the run").unwrap();
            busy.await.unwrap();
        });
    }
}
