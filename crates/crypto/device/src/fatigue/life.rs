//! One life of a device: from opening it to its first failure or the end of the trial.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use super::tally::{Tallies, Worker};
use super::{Against, Inputs, Test};
use crate::threads::{Gate, panicked, start};
use crate::{Case, Device, DeviceError, Job};
use catalog::worker::Fatigue;

/// A device that fails immediately is called at most this often per thread.
const AFTER_FAILURE: Duration = Duration::from_millis(1);

/// A running trial: its state over all lives of the device.
pub(super) struct Trial<'a> {
    pub(super) test: &'a Test,
    pub(super) inputs: &'a [Inputs],
    pub(super) against: Against<'a>,
    pub(super) tallies: &'a Tallies,
}

/// The end of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The order to stop preceded the beginning.
    NeverBegan,
    /// The trial is complete or was stopped, or the device failed and must not be restarted.
    Over,
    /// The device failed, and the trial continues after reopening it.
    Failed,
}

struct Life<'a> {
    trial: &'a Trial<'a>,
    device: &'a dyn Device,
    gate: Gate,
    /// Threads must return.
    leave: AtomicBool,
    /// The device failed.
    failed: AtomicBool,
    running: AtomicUsize,
}

impl Trial<'_> {
    /// Whether the duration or all loops are over.
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

    /// Runs all threads until the life ends.
    ///
    /// # Errors
    /// [`DeviceError`] if threads cannot use the device at all.
    pub(super) fn live(
        &self,
        device: &dyn Device,
        ready: impl FnOnce() -> bool,
        report: &mut dyn FnMut(Fatigue),
    ) -> Result<End, DeviceError> {
        let life = Life {
            trial: self,
            device,
            gate: Gate::default(),
            leave: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            running: AtomicUsize::new(self.tallies.workers.len()),
        };
        let began = life.run(ready, report)?;
        if !began {
            return Ok(End::NeverBegan);
        }
        // A short life may end between two checks.
        if !life.failed.load(Ordering::Relaxed) {
            life.check_presence();
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
    /// Runs all threads from beginning to end. Returns `false` if the life did not begin.
    fn run(
        &self,
        ready: impl FnOnce() -> bool,
        report: &mut dyn FnMut(Fatigue),
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
                self.watch(report);
            }
            self.leave.store(true, Ordering::Relaxed);
            for (worker, thread) in workers.iter().zip(threads) {
                // A panic in one thread is a failure of the device, not of the trial.
                if thread.join().is_err() {
                    self.bad(&worker.failed, || panicked().to_string());
                }
            }
            prepared.map(|_| begin)
        })
    }

    /// Waits for the end and reports progress meanwhile.
    fn watch(&self, report: &mut dyn FnMut(Fatigue)) {
        let trial = self.trial;
        let ended =
            || self.running.load(Ordering::Relaxed) == 0 || self.leave.load(Ordering::Relaxed);
        loop {
            let elapsed = trial.tallies.elapsed();
            let left = trial.duration().map(|end| end.saturating_sub(elapsed));
            let due = trial.tallies.due_in();
            let wake = Instant::now() + left.map_or(due, |left| due.min(left));
            let continues = trial.against.orders.wait_until(wake, ended);
            if !continues || ended() || trial.is_over() {
                return;
            }
            if trial.tallies.due_in().is_zero() {
                if !self.check_presence() {
                    return;
                }
                report(trial.tallies.tick());
            }
        }
    }

    /// Checks that the device is present. An absent device has failed, even if it still computes.
    fn check_presence(&self) -> bool {
        let present = self.device.present();
        if let Err(error) = &present {
            self.bad(&self.trial.tallies.absent, || error.to_string());
        }
        present.is_ok()
    }

    fn thread(&self, number: u64, worker: &Worker, sender: Sender<Result<(), DeviceError>>) {
        let _running = Running(self);
        let mut sender = Some(sender);
        if let Err(error) = self.prepare_and_work(number, worker, &mut sender)
            && let Some(sender) = sender
        {
            // The receiver is gone if another thread has reported an error.
            let _ = sender.send(Err(error));
        }
    }

    fn prepare_and_work(
        &self,
        number: u64,
        worker: &Worker,
        sender: &mut Option<Sender<Result<(), DeviceError>>>,
    ) -> Result<(), DeviceError> {
        let trial = self.trial;
        let (session, cpu) = (self.device.session()?, trial.against.cpu.session()?);
        let mut all_jobs = Vec::with_capacity(trial.inputs.len());
        for inputs in trial.inputs {
            let inverse = inputs.valid.iter().any(Case::needs_inverse);
            let inverse = inputs.operation.inverse().filter(|_| inverse);
            all_jobs.push(OperationJobs {
                inputs,
                job: session.job(inputs.operation, trial.against.keys)?,
                inverse: inverse
                    .map(|inverse| cpu.job(inverse, trial.against.keys))
                    .transpose()?,
            });
        }
        if let Some(sender) = sender.take() {
            let _ = sender.send(Ok(()));
        }
        if self.gate.wait() {
            self.work(number, worker, &mut all_jobs);
        }
        Ok(())
    }

    fn work(&self, number: u64, worker: &Worker, all_jobs: &mut [OperationJobs<'_>]) {
        let every = u64::from(self.trial.test.invalid_every);
        let count = all_jobs.len() as u64;
        let mut output = Vec::new();
        // Valid inputs since the last invalid one. Threads begin at different steps, so that not
        // all inputs are invalid at the same time.
        let mut valid = number % every.max(1);
        while !self.leave.load(Ordering::Relaxed) && !self.trial.is_done(worker) {
            // Kept over lives: after a restart the thread goes on with the operation after the one
            // that failed.
            let step = worker.steps.load(Ordering::Relaxed);
            let jobs = &mut all_jobs[(step % count) as usize];
            let inputs = jobs.inputs;
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
            // Threads begin with different inputs, so that all sizes are in use at the same time.
            let case = &cases[((step / count + number) % cases.len() as u64) as usize];
            self.once(case, jobs, &mut output, worker);
            worker.steps.store(step + 1, Ordering::Relaxed);
        }
    }

    /// Runs one operation and checks its result.
    fn once(
        &self,
        case: &Case,
        jobs: &mut OperationJobs<'_>,
        output: &mut Vec<u8>,
        worker: &Worker,
    ) {
        let bad = |count: &AtomicU64, error: &dyn std::fmt::Display| {
            let bytes = case.input().len();
            self.bad(count, || {
                format!("{}, {bytes} B: {error}", case.operation())
            });
        };
        let good = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
        let result = jobs.job.run(case.input(), output);
        match (case.is_invalid(), result) {
            (_, Err(error @ DeviceError::Wrong(_))) => bad(&worker.wrong, &error),
            // A device may refuse an input in either way. But a failing device returns errors too.
            (true, Err(error)) => match refuses(case, jobs, output) {
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
                match case.check(authentic, output, jobs.inverse.as_deref_mut()) {
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

    /// Counts a failure, and ends this life if the trial restarts devices.
    fn bad(&self, count: &AtomicU64, reason: impl FnOnce() -> String) {
        count.fetch_add(1, Ordering::Relaxed);
        // Only the first failure of a life has a time: the following ones may be its consequences.
        if !self.failed.swap(true, Ordering::Relaxed) {
            self.trial.tallies.fail();
        }
        self.trial.tallies.note_reason(reason());
        if self.trial.test.restart {
            self.leave.store(true, Ordering::Relaxed);
            self.trial.against.orders.nudge();
        }
    }
}

/// Checks that a failure at an invalid input was a refusal: the device must then do a valid input
/// right, and fail at the invalid one again. The error describes the contradiction.
fn refuses(case: &Case, jobs: &mut OperationJobs<'_>, output: &mut Vec<u8>) -> Result<(), String> {
    let valid = &jobs.inputs.valid[0];
    match jobs.job.run(valid.input(), output) {
        Ok(authentic) => valid
            .check(authentic, output, jobs.inverse.as_deref_mut())
            .map_err(|wrong| format!("then a valid input had a wrong result: {wrong}"))?,
        Err(error) => return Err(format!("then it failed at a valid input: {error}")),
    }
    match jobs.job.run(case.input(), output) {
        Err(_) => Ok(()),
        Ok(_) => Err("it was an invalid input, at which it does not fail every time".to_owned()),
    }
}

/// A thread's jobs for one operation.
struct OperationJobs<'a> {
    inputs: &'a Inputs,
    job: Box<dyn Job + 'a>,
    /// The CPU's job that verifies results that are not deterministic.
    inverse: Option<Box<dyn Job + 'a>>,
}

/// Counts its thread as running until dropped.
struct Running<'a>(&'a Life<'a>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.trial.against.orders.nudge();
        }
    }
}
