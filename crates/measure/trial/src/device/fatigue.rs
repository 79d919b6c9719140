//! The fatigue trial: a worker a device, for hours; another one after each that died; snapshots
//! meanwhile; stopped well when people ask for it, and taken up again.
//!
//! 1. What earlier starts of the run have done is taken off what there is to do.
//! 2. All devices are opened and begin together. One that cannot be opened now fails the trial.
//! 3. Workers tell about every second how far they are. One that dies, or that comes no further,
//!    has failed: if devices are to be restarted another one takes its place, a few times in a row
//!    at most.
//! 4. The trial is over when every worker has come to its end.
//!
//! Restarts of a device whose process lives on are the worker's own affair: it tells of them.

use super::crew::{Crew, Heard, allow_descriptors, is_interrupted};
use super::lives::{End, add, note};
use super::{Context, facts, measured, problem, spec};
use crate::checkpoint::Checkpoint;
use crate::error::TrialError;
use crate::event::{EventSink, TrialEvent};
use crate::measurer::{Trial, unix_ns};
use campaign::plan::{Device, DeviceTest, Devices, Fatigue as Test};
use device::Facts;
use device::report::{Fatigue, Line};
use journal::record::{
    DeviceFacts, DeviceFatigue, DeviceFound, FatiguePoint, FatigueProgress, FatigueSegment, Outcome,
};
use lab::LabError;
use std::time::{Duration, Instant};

/// Until all threads of a worker are ready.
const READY_LIMIT: Duration = Duration::from_secs(180);
/// Workers come further within that time: of many threads that wait for one slow device one has its
/// result. That they tell how far they are is no sign: what tells it does not wait for the device.
const SILENCE: Duration = Duration::from_secs(60);
/// Until a worker that was stopped has ended.
const STOP_LIMIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);
/// A device that dies so often in a row without one right operation is not started again.
const MISFORTUNES_MAX: u32 = 6;
const PAUSE_MAX: Duration = Duration::from_secs(1);
const REASONS_MAX: usize = 20;

/// Where a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Its worker opens it.
    Starting,
    /// It waits for the others, before all begin.
    Ready,
    Working,
    /// Until its next worker is started.
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
    /// Workers that have ended, added up.
    base: DeviceFatigue,
    points: Vec<FatiguePoint>,
    /// What the worker told last.
    last: Option<Fatigue>,
    /// When the worker began to work, from the segment's beginning.
    from: Duration,
    /// When it last came further: was started, began, did an operation or was restarted.
    moved: Instant,
    misfortunes: u32,
    earlier: Earlier,
}

/// What earlier starts of the run have done to a device.
#[derive(Debug, Clone, Copy, Default)]
struct Earlier {
    elapsed_ns: u64,
    rounds: u64,
    /// It was not to be restarted, and failed.
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
        // Each device has a process, with a few of them.
        allow_descriptors();
        let snapshots = trial.checkpoints.iter().filter_map(Checkpoint::fatigue);
        let earlier: Vec<&FatigueSegment> = snapshots.map(|one| &one.segment).collect();
        let run = Run {
            context: self,
            trial,
            test,
            crew: Crew::new(self, false)?,
            members: (0..)
                .zip(&devices.members)
                .map(|(index, device)| Member::new(index, device, test, &earlier))
                .collect(),
            began: Instant::now(),
            segment: FatigueSegment {
                start: earlier.last().map_or(1, |last| last.start + 1),
                started_unix_ns: unix_ns(),
                devices: Vec::new(),
            },
        };
        run.carry_out(&earlier, events)
    }
}

struct Run<'a> {
    context: &'a Context<'a>,
    trial: &'a Trial<'a>,
    test: &'a Test,
    crew: Crew<'a>,
    members: Vec<Member<'a>>,
    /// When all began to work.
    began: Instant,
    segment: FatigueSegment,
}

impl Run<'_> {
    fn carry_out(
        mut self,
        earlier: &[&FatigueSegment],
        events: EventSink<'_>,
    ) -> Result<Outcome, TrialError> {
        for index in 0..self.members.len() {
            self.start(index)?;
        }
        if let Some(why) = self.open()? {
            return Ok(measured(self.facts(), DeviceFound::NotOffered(why)));
        }
        self.segment.started_unix_ns = unix_ns();
        self.began = Instant::now();
        for index in 0..self.members.len() {
            self.go(index);
        }
        let snapshot = Duration::from_nanos(self.test.snapshot_ns).max(LOOK);
        let mut due = snapshot;
        while self
            .members
            .iter()
            .any(|member| member.phase != Phase::Over)
        {
            if is_interrupted(self.context.interrupt) {
                self.stop();
                self.take_snapshot(events);
                return Err(LabError::Interrupted.into());
            }
            if let Some((worker, heard)) = self.crew.hear_briefly(LOOK) {
                self.take(worker, heard);
            }
            self.look_after();
            if self.began.elapsed() >= due {
                due = self.began.elapsed() + snapshot;
                self.take_snapshot(events);
            }
        }
        self.sum_up();
        let mut fatigue: Vec<_> = earlier.iter().copied().cloned().collect();
        fatigue.push(self.segment.clone());
        Ok(measured(self.facts(), DeviceFound::Fatigue(fatigue)))
    }

    /// Starts the worker of a device, with what is left to do; where nothing is, the device is
    /// through.
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
        member.worker = self.crew.start(&spec(member.device, left))?;
        member.phase = Phase::Starting;
        member.moved = Instant::now();
        Ok(())
    }

    /// Waits until every device is open and ready; why not, where one does not have any of the
    /// operations.
    fn open(&mut self) -> Result<Option<String>, TrialError> {
        while let Some(waiting) = self.members.iter().find(|it| it.phase == Phase::Starting) {
            let name = &waiting.device.name;
            match self.crew.hear(READY_LIMIT)? {
                None => {
                    let seconds = READY_LIMIT.as_secs();
                    return Err(problem(format!(
                        "`{name}` was not ready within {seconds} s"
                    )));
                }
                Some((worker, heard)) => {
                    let Some(member) = self.members.iter_mut().find(|it| it.worker == worker)
                    else {
                        continue;
                    };
                    let name = &member.device.name;
                    match heard {
                        Heard::Line(Line::Open(facts)) => member.facts = Some(facts),
                        Heard::Line(Line::Ready) => member.phase = Phase::Ready,
                        Heard::Line(Line::NotOffered(why)) => return Ok(Some(why)),
                        Heard::Line(Line::PinRefused(text)) => {
                            return Err(self.context.pin_refused(member.device, &text));
                        }
                        Heard::Line(Line::Failed(text)) | Heard::Died(text) => {
                            return Err(problem(format!("`{name}`: {text}")));
                        }
                        Heard::Line(_) => {}
                    }
                }
            }
        }
        Ok(None)
    }

    /// Has a worker that is ready begin.
    fn go(&mut self, index: usize) {
        let member = &mut self.members[index];
        if member.phase == Phase::Ready {
            self.crew.order(member.worker, "go");
            member.phase = Phase::Working;
            member.from = self.began.elapsed();
            member.moved = Instant::now();
        }
    }

    /// Takes in what a worker said.
    fn take(&mut self, worker: usize, heard: Heard) {
        let is_of = |member: &Member<'_>| {
            member.worker == worker && matches!(member.phase, Phase::Starting | Phase::Working)
        };
        let Some(index) = self.members.iter().position(is_of) else {
            return;
        };
        let (began, restart) = (self.began, self.test.restart);
        let member = &mut self.members[index];
        match heard {
            Heard::Line(Line::Ready) => {
                member.base.restarts += 1;
                member.phase = Phase::Ready;
                self.go(index);
            }
            Heard::Line(Line::Fatigue(fatigue)) => {
                if progress(&fatigue) != member.last.as_ref().map_or([0; 2], progress) {
                    member.moved = Instant::now();
                }
                member.last = Some(fatigue);
                let at_ns = nanos(began.elapsed());
                let now = member.now();
                note(&mut member.points, at_ns, &now);
            }
            Heard::Line(Line::End) => {
                member.ended(End::Censored, began.elapsed());
                member.phase = Phase::Over;
            }
            Heard::Line(Line::PinRefused(text)) => {
                // The trials after this one hear of it; its process did what it should.
                let _ = self.context.pin_refused(member.device, &text);
                if member.phase == Phase::Working {
                    member.ended(End::Censored, began.elapsed());
                }
                member.note_reason(text);
                member.phase = Phase::Over;
            }
            Heard::Line(Line::Failed(text) | Line::NotOffered(text)) | Heard::Died(text) => {
                member.failed(text, began.elapsed(), restart);
            }
            Heard::Line(_) => {}
        }
    }

    /// Starts workers again whose pause is over, and ends those that come no further.
    fn look_after(&mut self) {
        let restart = self.test.restart;
        for index in 0..self.members.len() {
            let member = &self.members[index];
            let silence = match member.phase {
                Phase::Pausing(until) => {
                    if Instant::now() >= until
                        && let Err(error) = self.start(index)
                    {
                        // The machine may have processes and descriptors left again after a while;
                        // hours are not lost by it.
                        let elapsed = self.began.elapsed();
                        self.members[index].failed(error.to_string(), elapsed, restart);
                    }
                    continue;
                }
                Phase::Starting => READY_LIMIT,
                Phase::Working => self.context.silence.unwrap_or(SILENCE),
                Phase::Ready | Phase::Over => continue,
            };
            let still = member.moved.elapsed();
            if still > silence {
                self.crew.kill(member.worker);
                let text = format!("it came no further for {} s", silence.as_secs());
                // What it did until then counts; that it hung does not.
                let moved = self.began.elapsed().saturating_sub(still);
                self.members[index].failed(text, moved, restart);
            }
        }
    }

    /// Has all workers end early, and takes in what they say last.
    fn stop(&mut self) {
        for member in &mut self.members {
            match member.phase {
                Phase::Working => self.crew.order(member.worker, "stop"),
                // It has done nothing yet.
                _ => member.phase = Phase::Over,
            }
        }
        let until = Instant::now() + STOP_LIMIT;
        while self.members.iter().any(|it| it.phase == Phase::Working) && Instant::now() < until {
            if let Some((worker, heard)) = self.crew.hear_briefly(LOOK) {
                self.take(worker, heard);
            }
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
                ..member.now()
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
    fn new(index: usize, device: &'a Device, test: &Test, segments: &[&FatigueSegment]) -> Self {
        let own = segments.iter().flat_map(|segment| &segment.devices);
        let mut earlier = Earlier::default();
        for of in own.filter(|of| of.device == index) {
            earlier.elapsed_ns = earlier.elapsed_ns.saturating_add(of.elapsed_ns);
            earlier.rounds += rounds(of, test);
            earlier.is_dead |= !test.restart && !of.is_sound();
        }
        Self {
            device,
            facts: None,
            phase: Phase::Starting,
            worker: usize::MAX,
            base: DeviceFatigue {
                device: index,
                threads: test.threads,
                ..DeviceFatigue::default()
            },
            points: Vec::new(),
            last: None,
            from: Duration::ZERO,
            moved: Instant::now(),
            misfortunes: 0,
            earlier,
        }
    }

    /// Loops and time that are left; `None`: nothing is.
    fn left(&self, test: &Test) -> Option<(Option<u64>, Option<u64>)> {
        if self.earlier.is_dead {
            return None;
        }
        let rounds = self.earlier.rounds + rounds(&self.base, test);
        let elapsed_ns = self.earlier.elapsed_ns.saturating_add(self.base.elapsed_ns);
        let loops = test.loops.map(|loops| loops.saturating_sub(rounds));
        let duration_ns = test
            .duration_ns
            .map(|duration| duration.saturating_sub(elapsed_ns));
        let is_over = loops == Some(0) || duration_ns == Some(0);
        (!is_over).then_some((loops, duration_ns))
    }

    /// All that it did so far.
    fn now(&self) -> DeviceFatigue {
        let mut now = self.base.clone();
        if let Some(last) = &self.last {
            add(
                &mut now,
                nanos(self.from),
                last.elapsed_ns,
                last,
                End::Censored,
            );
        }
        now
    }

    /// Its worker came to its end.
    fn ended(&mut self, end: End, since_began: Duration) {
        let worked = nanos(since_began.saturating_sub(self.from));
        let last = self.last.take();
        let elapsed_ns = match (&last, end) {
            (Some(last), End::Censored) => last.elapsed_ns,
            _ => worked,
        };
        let last = last.unwrap_or_else(nothing);
        add(&mut self.base, nanos(self.from), elapsed_ns, &last, end);
    }

    /// Its worker died, or could not open it again.
    fn failed(&mut self, text: String, since_began: Duration, restart: bool) {
        let did_something = self.last.as_ref().is_some_and(|last| last.right > 0);
        if self.phase == Phase::Working {
            self.ended(End::Died, since_began);
        }
        self.note_reason(text);
        self.misfortunes = match did_something {
            true => 1,
            false => self.misfortunes + 1,
        };
        self.phase = match (restart, self.misfortunes < MISFORTUNES_MAX) {
            (true, true) => {
                let pause = LOOK * (1 << self.misfortunes);
                Phase::Pausing(Instant::now() + pause.min(PAUSE_MAX))
            }
            (true, false) => {
                self.note_reason(format!("given up after {MISFORTUNES_MAX} starts in vain"));
                Phase::Over
            }
            (false, _) => Phase::Over,
        };
    }

    fn note_reason(&mut self, reason: String) {
        if self.base.reasons.len() < REASONS_MAX {
            self.base.reasons.push(reason);
        }
    }
}

/// Rounds through the operations that were done: as workers told, or as they would be if the device
/// had all of the operations, which is too few where it has not.
fn rounds(of: &DeviceFatigue, test: &Test) -> u64 {
    let operations = of.right + of.wrong + of.failed + of.refused + of.passed_invalid;
    let each = (test.operations.len() as u64).saturating_mul(test.threads.into());
    of.rounds.unwrap_or(operations / each.max(1))
}

/// What changes when a worker comes further: what it tried, whatever came of it, and how often it
/// began anew.
const fn progress(of: &Fatigue) -> [u64; 2] {
    let tried = of.right + of.wrong + of.failed + of.refused + of.passed_invalid;
    [tried, of.restarts]
}

/// What a worker did of which nothing was heard.
const fn nothing() -> Fatigue {
    Fatigue {
        elapsed_ns: 0,
        right: 0,
        wrong: 0,
        failed: 0,
        refused: 0,
        passed_invalid: 0,
        restarts: 0,
        rounds: None,
        failures_ns: Vec::new(),
        restarts_ns: Vec::new(),
        reasons: Vec::new(),
        resident_bytes_max: 0,
    }
}

/// Weeks at most: it fits.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
