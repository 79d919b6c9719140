//! The fatigue trial: one worker per device for hours, a new worker after each that died, and
//! snapshots meanwhile. An interrupted trial ends in order and can be resumed.
//!
//! 1. The work of earlier starts of the run is subtracted from the work to do.
//! 2. All devices are opened and begin together. A device that cannot be opened now fails the
//!    trial.
//! 3. Workers report progress about every second. One that dies or makes no progress has failed: if
//!    devices are to be restarted, a new worker replaces it, a few times in a row at most, and not
//!    after it has lost too much time (module `patience`).
//! 4. The trial is over when every worker has ended.
//!
//! A worker restarts a device itself if its process survives, and reports it.

use super::lifetimes::{End, add_point, add_process};
use super::patience::Patience;
use super::pool::{WorkerMessage, WorkerPool, is_interrupted, raise_descriptor_limit};
use super::{Context, facts, measured, problem, spec};
use crate::checkpoint::Checkpoint;
use crate::error::TrialError;
use crate::event::{EventSink, TrialEvent};
use crate::measurer::{Trial, unix_ns};
use catalog::device::Facts;
use catalog::worker::{Fatigue, Line};
use journal::record::{
    DeviceFacts, DeviceFatigue, DeviceRecord, FatiguePoint, FatigueProgress, FatigueSegment,
    Outcome,
};
use plan::{Device, DeviceTest, Devices, Fatigue as Test};
use std::time::{Duration, Instant};
use testbed::LabError;

/// Time until all threads of a worker are ready.
const READY_LIMIT: Duration = Duration::from_secs(180);
/// Time until a worker that was ordered to stop has ended.
const STOP_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);
/// A device that fails this often in a row without one right operation is not started again.
const VAIN_STARTS_MAX: u32 = 6;
const PAUSE_MAX: Duration = Duration::from_secs(1);
const REASONS_MAX: usize = 20;

/// The state of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Its worker opens it.
    Starting,
    /// It waits for the other devices, until all begin.
    Ready,
    Working,
    /// Its next worker is started at this time.
    Pausing(Instant),
    Over,
}

/// One device in the trial.
struct Member<'a> {
    device: &'a Device,
    facts: Option<Facts>,
    phase: Phase,
    /// The number of its worker.
    worker: usize,
    /// The sum of the workers that have ended.
    ended: DeviceFatigue,
    points: Vec<FatiguePoint>,
    /// The worker's last report.
    last: Option<Fatigue>,
    /// When the worker began to work, from the segment's beginning.
    from: Duration,
    /// Last progress: it was started, began, completed an operation or was restarted.
    progressed: Instant,
    /// Starts in a row without one right operation.
    vain_starts: u32,
    /// Whether it is started again after a failure, and for how long it is waited for.
    restarts: bool,
    patience: Patience,
    earlier: Earlier,
}

/// The work of earlier starts of the run on a device.
#[derive(Debug, Clone, Copy, Default)]
struct Earlier {
    elapsed_ns: u64,
    rounds: u64,
    /// It failed and must not be restarted.
    is_dead: bool,
}

impl Context<'_> {
    pub(super) fn fatigue(
        &self,
        trial: &Trial<'_>,
        devices: &Devices,
        test: &Test,
        events: EventSink<'_>,
    ) -> Result<Outcome, TrialError> {
        // Each device has a process with a few descriptors.
        raise_descriptor_limit();
        // One segment per start of the run: the journal has the last snapshot of each.
        let snapshots = trial.checkpoints.iter().filter_map(Checkpoint::fatigue);
        let earlier: Vec<&FatigueSegment> = snapshots.map(|one| &one.segment).collect();
        let patience = Patience::of(test.duration_ns, self.devices.silence);
        let run = Run {
            context: self,
            trial,
            test,
            pool: WorkerPool::new(self, false)?,
            members: (0..)
                .zip(&devices.members)
                .map(|(index, device)| Member::new((index, device), test, patience, &earlier))
                .collect(),
            began: Instant::now(),
            segment: FatigueSegment {
                start: earlier.last().map_or(1, |last| last.start + 1),
                started_unix_ns: unix_ns(),
                devices: Vec::new(),
            },
        };
        run.finish(&earlier, events)
    }
}

struct Run<'a> {
    context: &'a Context<'a>,
    trial: &'a Trial<'a>,
    test: &'a Test,
    pool: WorkerPool<'a>,
    members: Vec<Member<'a>>,
    /// When all began to work.
    began: Instant,
    segment: FatigueSegment,
}

impl Run<'_> {
    fn finish(
        mut self,
        earlier: &[&FatigueSegment],
        events: EventSink<'_>,
    ) -> Result<Outcome, TrialError> {
        // All workers are started before one is awaited, so that devices open in parallel.
        for index in 0..self.members.len() {
            self.start(index)?;
        }
        if let Some(why) = self.open()? {
            return Ok(measured(self.facts(), DeviceRecord::NotOffered(why)));
        }
        // Again, without the time that opening took.
        self.segment.started_unix_ns = unix_ns();
        self.began = Instant::now();
        for index in 0..self.members.len() {
            self.begin(index);
        }
        let snapshot = Duration::from_nanos(self.test.snapshot_ns).max(POLL);
        let mut due = snapshot;
        while self
            .members
            .iter()
            .any(|member| member.phase != Phase::Over)
        {
            if is_interrupted(self.context.interrupt) {
                // In order, so that the snapshot includes the time since the workers' last report.
                self.stop();
                self.take_snapshot(events);
                return Err(LabError::Interrupted.into());
            }
            self.handle_message();
            self.supervise();
            if self.began.elapsed() >= due {
                // From now on and not from the last due time: after a pause of the machine,
                // snapshots do not follow each other without one.
                due = self.began.elapsed() + snapshot;
                self.take_snapshot(events);
            }
        }
        self.sum_up();
        let mut fatigue: Vec<_> = earlier.iter().copied().cloned().collect();
        fatigue.push(self.segment.clone());
        Ok(measured(self.facts(), DeviceRecord::Fatigue(fatigue)))
    }

    /// Starts the worker of a device with the remaining work; without any, the device is over.
    fn start(&mut self, index: usize) -> Result<(), TrialError> {
        let (test, member) = (self.test, &mut self.members[index]);
        let Some((loops, duration_ns)) = member.left(test) else {
            member.phase = Phase::Over;
            return Ok(());
        };
        let left = DeviceTest::Fatigue(Test {
            loops,
            duration_ns,
            ..test.clone()
        });
        member.worker = self.pool.start(&spec(member.device, left))?;
        member.phase = Phase::Starting;
        member.progressed = Instant::now();
        Ok(())
    }

    /// Waits until every device is open and ready. Returns the reason if a device offers none of
    /// the operations.
    fn open(&mut self) -> Result<Option<String>, TrialError> {
        while let Some(waiting) = self.members.iter().find(|it| it.phase == Phase::Starting) {
            let Some((worker, message)) = self.pool.receive(READY_LIMIT)? else {
                let (name, seconds) = (&waiting.device.name, READY_LIMIT.as_secs());
                return Err(problem(format!(
                    "`{name}` was not ready within {seconds} s"
                )));
            };
            let Some(member) = self.members.iter_mut().find(|it| it.worker == worker) else {
                continue;
            };
            match self.context.line(member.device, message)? {
                Line::Open(facts) => member.facts = Some(facts),
                Line::Ready => member.phase = Phase::Ready,
                Line::NotOffered(why) => return Ok(Some(why)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Orders a worker that is ready to begin.
    fn begin(&mut self, index: usize) {
        let member = &mut self.members[index];
        if member.phase == Phase::Ready {
            self.pool.send(member.worker, "go");
            member.phase = Phase::Working;
            member.from = self.began.elapsed();
            member.progressed = Instant::now();
        }
    }

    /// Waits briefly for a worker's message and handles it.
    fn handle_message(&mut self) {
        let Some((worker, message)) = self.pool.receive_uninterrupted(POLL) else {
            return;
        };
        let is_of = |member: &Member<'_>| {
            // Messages of an earlier worker of the device, or from after its end, change nothing.
            member.worker == worker && matches!(member.phase, Phase::Starting | Phase::Working)
        };
        let Some(index) = self.members.iter().position(is_of) else {
            return;
        };
        let elapsed = self.began.elapsed();
        let member = &mut self.members[index];
        match message {
            WorkerMessage::Line(Line::Ready) => {
                // Only here: the first start of a device is awaited in `open`.
                member.ended.counts.restarts += 1;
                member.phase = Phase::Ready;
                self.begin(index);
            }
            WorkerMessage::Line(Line::Fatigue(fatigue)) => {
                // A report alone is no sign of life: its thread does not wait for the device.
                if progress(&fatigue) != member.last.as_ref().map_or([0; 2], progress) {
                    member.progressed = Instant::now();
                }
                member.last = Some(fatigue);
                let total = member.total();
                add_point(&mut member.points, nanos(elapsed), &total);
            }
            WorkerMessage::Line(Line::End) => {
                member.end(End::Censored, elapsed);
                member.phase = Phase::Over;
            }
            WorkerMessage::Line(Line::PinRefused(text)) => {
                // Recorded for the following trials; the process ended in order.
                let _ = self.context.pin_refused(member.device, &text);
                if member.phase == Phase::Working {
                    member.end(End::Censored, elapsed);
                }
                member.note_reason(text);
                member.phase = Phase::Over;
            }
            WorkerMessage::Line(Line::Failed(text) | Line::NotOffered(text))
            | WorkerMessage::Died(text) => member.fail(text, elapsed, elapsed),
            WorkerMessage::Line(_) => {}
        }
    }

    /// Restarts workers after their pause, and kills workers that make no progress.
    fn supervise(&mut self) {
        for index in 0..self.members.len() {
            let (now, member) = (self.began.elapsed(), &self.members[index]);
            let silence = match member.phase {
                Phase::Pausing(until) => {
                    if Instant::now() >= until
                        && let Err(error) = self.start(index)
                    {
                        // The machine may have processes and descriptors again later: hours of
                        // work are not given up for it.
                        self.members[index].fail(error.to_string(), now, now);
                    }
                    continue;
                }
                Phase::Starting => READY_LIMIT,
                Phase::Working => member.patience.silence(),
                Phase::Ready | Phase::Over => continue,
            };
            let idle = member.progressed.elapsed();
            // Checked only while it starts: a device that works is under load, which adds to its
            // time.
            let given_up = member.phase == Phase::Starting && !member.is_waited_for(now);
            if idle > silence || given_up {
                self.pool.kill(member.worker);
                let text = format!("it made no progress for {} s", idle.as_secs());
                // The time of the hang does not count.
                let worked = now.saturating_sub(idle);
                self.members[index].fail(text, worked, now);
            }
        }
    }

    /// Orders all workers to stop, and handles their last messages.
    fn stop(&mut self) {
        for member in &mut self.members {
            match member.phase {
                Phase::Working => self.pool.send(member.worker, "stop"),
                // It has done nothing yet.
                _ => member.phase = Phase::Over,
            }
        }
        let until = Instant::now() + STOP_LIMIT;
        while self.members.iter().any(|it| it.phase == Phase::Working) && Instant::now() < until {
            self.handle_message();
        }
    }

    fn take_snapshot(&mut self, events: EventSink<'_>) {
        self.sum_up();
        let progress = FatigueProgress {
            cell: self.trial.cell.id.clone(),
            repeat: self.trial.repeat,
            devices: self.facts(),
            segment: self.segment.clone(),
        };
        events(TrialEvent::Checkpoint(&progress.into()));
    }

    fn sum_up(&mut self) {
        let members = self.members.iter();
        self.segment.devices = members
            .map(|member| DeviceFatigue {
                points: member.points.clone(),
                ..member.total()
            })
            .collect();
    }

    fn facts(&self) -> Vec<DeviceFacts> {
        let members = self.members.iter();
        members
            .map(|member| facts(member.device, member.facts.as_ref()))
            .collect()
    }
}

impl<'a> Member<'a> {
    fn new(
        (index, device): (usize, &'a Device),
        test: &Test,
        patience: Patience,
        segments: &[&FatigueSegment],
    ) -> Self {
        let own = segments.iter().flat_map(|segment| &segment.devices);
        let mut earlier = Earlier::default();
        // A run that is resumed has the same plan, so the index means the same device.
        for of in own.filter(|of| of.device == index) {
            earlier.elapsed_ns = earlier.elapsed_ns.saturating_add(of.elapsed_ns);
            earlier.rounds += rounds(of, test);
            earlier.is_dead |= !test.restart && !of.is_sound();
        }
        Self {
            device,
            facts: None,
            phase: Phase::Starting,
            // No worker has this number.
            worker: usize::MAX,
            ended: DeviceFatigue {
                device: index,
                threads: test.threads,
                ..DeviceFatigue::default()
            },
            points: Vec::new(),
            last: None,
            from: Duration::ZERO,
            progressed: Instant::now(),
            vain_starts: 0,
            restarts: test.restart,
            patience,
            earlier,
        }
    }

    /// Returns the remaining loops and time; `None`: there is no work left.
    fn left(&self, test: &Test) -> Option<(Option<u64>, Option<u64>)> {
        if self.earlier.is_dead {
            return None;
        }
        let rounds = self.earlier.rounds + rounds(&self.ended, test);
        let elapsed_ns = self
            .earlier
            .elapsed_ns
            .saturating_add(self.ended.elapsed_ns);
        // The trial ends with the first limit that is reached, as in one start.
        let loops = test.loops.map(|loops| loops.saturating_sub(rounds));
        let duration_ns = test
            .duration_ns
            .map(|duration| duration.saturating_sub(elapsed_ns));
        let is_over = loops == Some(0) || duration_ns == Some(0);
        (!is_over).then_some((loops, duration_ns))
    }

    /// Returns the sum of all its workers so far.
    fn total(&self) -> DeviceFatigue {
        // The worker that still runs counts as censored, as far as it has reported.
        let mut total = self.ended.clone();
        if let Some(last) = &self.last {
            let from_ns = nanos(self.from);
            add_process(&mut total, from_ns, last.elapsed_ns, last, End::Censored);
        }
        total
    }

    /// Adds its worker, which has ended.
    fn end(&mut self, end: End, since_began: Duration) {
        let worked = nanos(since_began.saturating_sub(self.from));
        let last = self.last.take();
        let elapsed_ns = match (&last, end) {
            // A worker that ended in order reported its last moment itself. Of one that died, only
            // the time until its death was noticed is known.
            (Some(last), End::Censored) => last.elapsed_ns,
            _ => worked,
        };
        let (from_ns, last) = (nanos(self.from), last.unwrap_or_default());
        add_process(&mut self.ended, from_ns, elapsed_ns, &last, end);
    }

    /// Whether its lost time is within the patience, `now` since the trial began. It is not under
    /// load.
    fn is_waited_for(&self, now: Duration) -> bool {
        let under_load = Duration::from_nanos(self.ended.elapsed_ns);
        self.patience.allows(now, under_load)
    }

    /// Records that its worker died or could not reopen the device; both times are since the trial
    /// began.
    fn fail(&mut self, text: String, worked_until: Duration, now: Duration) {
        let worked = self.last.as_ref().is_some_and(|last| last.counts.right > 0);
        // `end` adds to it; the difference is this worker's.
        let unreported_ns = self.ended.unreported_ns;
        if self.phase == Phase::Working {
            self.end(End::Died, worked_until);
        }
        self.note_reason(match self.ended.unreported_ns - unreported_ns {
            0 => text,
            ns => {
                let time = units::time::print(Duration::from_millis((ns / 1_000_000).max(1)));
                format!("{text}; what it did in the {time} since its last report is not counted")
            }
        });
        // This failure is the first in a row after a start that worked.
        self.vain_starts = if worked { 1 } else { self.vain_starts + 1 };
        // Unless it is started again below.
        self.phase = Phase::Over;
        if !self.restarts {
            return;
        }
        if !self.is_waited_for(now) {
            let under_load = Duration::from_nanos(self.ended.elapsed_ns);
            self.note_reason(format!(
                "given up: of {:.1} s, it was under load for {:.1} s",
                now.as_secs_f64(),
                under_load.as_secs_f64()
            ));
        } else if self.vain_starts < VAIN_STARTS_MAX {
            // Doubled with each start. There are at most VAIN_STARTS_MAX, so the shift cannot
            // overflow.
            let pause = POLL * (1 << self.vain_starts);
            self.phase = Phase::Pausing(Instant::now() + pause.min(PAUSE_MAX));
        } else {
            self.note_reason(format!("given up after {VAIN_STARTS_MAX} failed starts"));
        }
    }

    fn note_reason(&mut self, reason: String) {
        if self.ended.reasons.len() < REASONS_MAX {
            self.ended.reasons.push(reason);
        }
    }
}

/// Rounds through the operations: as workers reported, or estimated as if the device offered all of
/// the operations, which is too low if it does not.
fn rounds(of: &DeviceFatigue, test: &Test) -> u64 {
    let each = (test.operations.len() as u64).saturating_mul(test.threads.into());
    of.rounds.unwrap_or(of.counts.tried() / each.max(1))
}

/// Counts that change when a worker makes progress: operations with any outcome, and restarts.
const fn progress(of: &Fatigue) -> [u64; 2] {
    [of.counts.tried(), of.counts.restarts]
}

/// Trials last weeks at most, which fit.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
