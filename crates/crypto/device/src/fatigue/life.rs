//! One life of a device: from when it is open to its first failure, or to the end of the trial.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use super::tally::{Tallies, Worker};
use super::{Against, Inputs, Test};
use crate::report::Fatigue;
use crate::threads::{Gate, panicked, start};
use crate::{Case, Device, DeviceError, Job};

/// A device that fails at once is asked no more often than this.
const AFTER_FAILURE: Duration = Duration::from_millis(1);

/// A trial that is going on: what is the same in all lives of the device.
pub(super) struct Trial<'a> {
    pub(super) test: &'a Test,
    pub(super) inputs: &'a [Inputs],
    pub(super) against: Against<'a>,
    pub(super) tallies: &'a Tallies,
}

/// How a life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The order to stop came first.
    NeverBegan,
    /// The trial is done or was told to stop, or the device failed and is to stay so.
    Over,
    /// Something went wrong, and the trial is to go on with the device opened anew.
    Failed,
}

struct Life<'a> {
    trial: &'a Trial<'a>,
    device: &'a dyn Device,
    gate: Gate,
    /// Threads are to leave.
    leave: AtomicBool,
    /// Something went wrong.
    failed: AtomicBool,
    running: AtomicUsize,
}

impl Trial<'_> {
    /// Whether time or loops are over.
    pub(super) fn is_over(&self) -> bool {
        let late = self
            .duration()
            .is_some_and(|end| self.tallies.elapsed() >= end);
        late || self
            .tallies
            .workers
            .iter()
            .all(|worker| self.is_done(worker))
    }

    fn duration(&self) -> Option<Duration> {
        self.test.duration_ns.map(Duration::from_nanos)
    }

    fn is_done(&self, worker: &Worker) -> bool {
        let round = worker.steps.load(Ordering::Relaxed) / self.inputs.len() as u64;
        self.test.loops.is_some_and(|loops| round >= loops)
    }

    /// Lets all threads work until something ends it.
    ///
    /// # Errors
    /// [`DeviceError`] where threads cannot work with the device at all.
    pub(super) fn live(
        &self,
        device: &dyn Device,
        ready: impl FnOnce() -> bool,
        say: &mut dyn FnMut(Fatigue),
    ) -> Result<End, DeviceError> {
        let life = Life {
            trial: self,
            device,
            gate: Gate::default(),
            leave: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            running: AtomicUsize::new(self.tallies.workers.len()),
        };
        let began = life.run(ready, say)?;
        if !began {
            return Ok(End::NeverBegan);
        }
        if !life.failed.load(Ordering::Relaxed) {
            life.look();
        }
        let again = life.failed.load(Ordering::Relaxed) && self.test.restart;
        Ok(
            if again && !self.against.orders.stopped() && !self.is_over() {
                End::Failed
            } else {
                End::Over
            },
        )
    }
}

impl Life<'_> {
    /// Runs all threads from beginning to end; `false`: there was no beginning.
    fn run(
        &self,
        ready: impl FnOnce() -> bool,
        say: &mut dyn FnMut(Fatigue),
    ) -> Result<bool, DeviceError> {
        thread::scope(|scope| {
            let workers = &self.trial.tallies.workers;
            let work = |(number, worker), sender| self.thread(number, worker, sender);
            let (threads, prepared) = start(scope, (0..).zip(workers), work);
            let begin = prepared.is_ok() && ready();
            if begin {
                self.trial.tallies.begin();
            }
            self.gate.open(begin);
            if begin {
                self.watch(say);
            }
            self.leave.store(true, Ordering::Relaxed);
            for (worker, thread) in workers.iter().zip(threads) {
                if thread.join().is_err() {
                    self.bad(&worker.failed, || panicked().to_string());
                }
            }
            prepared.map(|_| begin)
        })
    }

    /// Waits for the end, and tells meanwhile how far it is.
    fn watch(&self, say: &mut dyn FnMut(Fatigue)) {
        let trial = self.trial;
        let ended =
            || self.running.load(Ordering::Relaxed) == 0 || self.leave.load(Ordering::Relaxed);
        loop {
            let elapsed = trial.tallies.elapsed();
            let left = trial.duration().map(|end| end.saturating_sub(elapsed));
            let due = trial.tallies.due_in();
            let wake = Instant::now() + left.map_or(due, |left| due.min(left));
            let go_on = trial.against.orders.wait_until(wake, ended);
            if !go_on || ended() || trial.is_over() {
                return;
            }
            if trial.tallies.due_in().is_zero() {
                if !self.look() {
                    return;
                }
                say(trial.tallies.tick());
            }
        }
    }

    /// Asks the device whether it is there. One that is not has failed, whatever it still computes.
    fn look(&self) -> bool {
        let there = self.device.present();
        if let Err(error) = &there {
            self.bad(&self.trial.tallies.absent, || error.to_string());
        }
        there.is_ok()
    }

    fn thread(&self, number: u64, worker: &Worker, tell: Sender<Result<(), DeviceError>>) {
        let _running = Running(self);
        let mut tell = Some(tell);
        if let Err(error) = self.prepare_and_work(number, worker, &mut tell)
            && let Some(tell) = tell
        {
            // Nobody listens any more where another thread told the same.
            let _ = tell.send(Err(error));
        }
    }

    fn prepare_and_work(
        &self,
        number: u64,
        worker: &Worker,
        tell: &mut Option<Sender<Result<(), DeviceError>>>,
    ) -> Result<(), DeviceError> {
        let trial = self.trial;
        let (session, cpu) = (self.device.session()?, trial.against.cpu.session()?);
        let mut hands = Vec::with_capacity(trial.inputs.len());
        for inputs in trial.inputs {
            let inverse = inputs.valid.iter().any(Case::needs_inverse);
            let inverse = inputs.operation.inverse().filter(|_| inverse);
            hands.push(Hand {
                inputs,
                job: session.job(inputs.operation, trial.against.keys)?,
                inverse: inverse
                    .map(|inverse| cpu.job(inverse, trial.against.keys))
                    .transpose()?,
            });
        }
        if let Some(tell) = tell.take() {
            let _ = tell.send(Ok(()));
        }
        if self.gate.wait() {
            self.work(number, worker, &mut hands);
        }
        Ok(())
    }

    fn work(&self, number: u64, worker: &Worker, hands: &mut [Hand<'_>]) {
        let every = u64::from(self.trial.test.invalid_every);
        let count = hands.len() as u64;
        let mut output = Vec::new();
        // Since the last invalid input. Threads begin at different places, so that not all are
        // invalid at once.
        let mut valid = number % every.max(1);
        while !self.leave.load(Ordering::Relaxed) && !self.trial.is_done(worker) {
            let step = worker.steps.load(Ordering::Relaxed);
            let hand = &mut hands[(step % count) as usize];
            let inputs = hand.inputs;
            valid += 1;
            let invalid = every > 0 && valid >= every && !inputs.invalid.is_empty();
            let cases = if invalid {
                &inputs.invalid
            } else {
                &inputs.valid
            };
            if invalid {
                valid = 0;
            }
            let case = &cases[((step / count + number) % cases.len() as u64) as usize];
            self.once(case, hand, &mut output, worker);
            worker.steps.store(step + 1, Ordering::Relaxed);
        }
    }

    /// Does one operation and judges what came of it.
    fn once(&self, case: &Case, hand: &mut Hand<'_>, output: &mut Vec<u8>, worker: &Worker) {
        let bad = |count: &AtomicU64, error: &dyn std::fmt::Display| {
            let bytes = case.input().len();
            self.bad(count, || {
                format!("{}, {bytes} B: {error}", case.operation())
            });
        };
        let good = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
        let result = hand.job.run(case.input(), output);
        match (case.is_invalid(), result) {
            // A device may say in either way that it does not take an input. But so does one that
            // fails.
            (true, Err(error)) => match refuses(case, hand, output) {
                Ok(()) => _ = good(&worker.refused),
                Err(wrong) => {
                    bad(&worker.failed, &format!("{error}; {wrong}"));
                    thread::sleep(AFTER_FAILURE);
                }
            },
            (true, Ok(authentic)) => match case.check(authentic, output, None) {
                Ok(()) => _ = good(&worker.refused),
                Err(wrong) => bad(&worker.passed_invalid, &wrong),
            },
            (false, Ok(authentic)) => {
                match case.check(authentic, output, hand.inverse.as_deref_mut()) {
                    Ok(()) => _ = good(&worker.right),
                    Err(wrong) => bad(&worker.wrong, &wrong),
                }
            }
            (false, Err(error)) => {
                bad(&worker.failed, &error);
                thread::sleep(AFTER_FAILURE);
            }
        }
    }

    /// Counts something that went wrong, and ends this life where there is to be another.
    fn bad(&self, count: &AtomicU64, reason: impl FnOnce() -> String) {
        count.fetch_add(1, Ordering::Relaxed);
        if !self.failed.swap(true, Ordering::Relaxed) {
            self.trial.tallies.fail();
        }
        self.trial.tallies.tell(reason());
        if self.trial.test.restart {
            self.leave.store(true, Ordering::Relaxed);
            self.trial.against.orders.nudge();
        }
    }
}

/// Whether a device that failed at an invalid input failed because of that input: then it does a
/// valid one, and fails at the invalid one again. Otherwise what speaks against it.
fn refuses(case: &Case, hand: &mut Hand<'_>, output: &mut Vec<u8>) -> Result<(), String> {
    let valid = &hand.inputs.valid[0];
    match hand.job.run(valid.input(), output) {
        Ok(authentic) => valid
            .check(authentic, output, hand.inverse.as_deref_mut())
            .map_err(|wrong| format!("then a valid input went wrong: {wrong}"))?,
        Err(error) => return Err(format!("then it failed at a valid input: {error}")),
    }
    match hand.job.run(case.input(), output) {
        Err(_) => Ok(()),
        Ok(_) => Err("it was an invalid input, at which it does not fail every time".to_owned()),
    }
}

/// What a thread has for one operation.
struct Hand<'a> {
    inputs: &'a Inputs,
    job: Box<dyn Job + 'a>,
    /// The CPU's, to judge results by that are not the same each time.
    inverse: Option<Box<dyn Job + 'a>>,
}

/// Counts its thread as running until it is dropped.
struct Running<'a>(&'a Life<'a>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.trial.against.orders.nudge();
        }
    }
}
