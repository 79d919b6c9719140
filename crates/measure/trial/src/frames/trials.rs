//! The frame trials of one trial: made one after the other, reported and recorded.

use super::{FrameRun, Rig, RigLoad, Strays};
use crate::disturbance::PlannedDisturbance;
use crate::error::TrialError;
use crate::event::{EventSink, FrameStep, TrialEvent};
use crate::measurer::Trial;
use campaign::estimate;
use journal::record::{
    Disturbance, DisturbedTrials, FrameResult, FrameTrial, GoalBounds, SoakProgress, SoakSegment,
};
use lab::Interrupt;
use search::Counts;

/// Time of the flood by which the generator's ceiling is found.
const FLOOD_NS: u64 = estimate::FLOOD_RUN.as_nanos() as u64;
/// Time for stragglers where a procedure names none.
pub(super) const DRAIN_NS: u64 = 100_000_000;

/// What a procedure works with.
pub(super) struct Trials<'a> {
    pub(super) trial: &'a Trial<'a>,
    /// Directions that are loaded: counts are sums over them, loads are those of one.
    pub(super) directions: u64,
    pub(super) rig: &'a mut dyn Rig,
    pub(super) events: EventSink<'a>,
    pub(super) interrupt: &'a Interrupt,
    /// Filled as the trials are made.
    pub(super) result: FrameResult,
    pub(super) strays: Strays,
    /// Of `rekey`, `failover`, `setup`, `desync` and `hostile`, as they are made.
    pub(super) disturbed: DisturbedTrials,
    /// Of a soak, as they are made.
    pub(super) segments: Vec<SoakSegment>,
    /// Of the search that is going on, or has ended.
    pub(super) bounds: Vec<GoalBounds>,
}

impl Trials<'_> {
    /// Makes and records one frame trial.
    pub(super) fn make(&mut self, load: &RigLoad) -> Result<FrameRun, TrialError> {
        self.begin(load, None)?;
        let run = self.rig.run(load, self.interrupt)?;
        self.record(&run);
        Ok(run)
    }

    /// Makes and records one frame trial in which something happens to the DUT.
    pub(super) fn disturb(
        &mut self,
        load: &RigLoad,
        planned: &PlannedDisturbance,
    ) -> Result<(), TrialError> {
        let trial = self.result.trials.len();
        let (_, disturbance) = self.make_disturbed(load, planned)?;
        self.disturbed.disturbances.push(Disturbance {
            trial,
            ..disturbance
        });
        Ok(())
    }

    /// Makes one frame trial in which something happens to the DUT, and records its counts.
    pub(super) fn make_disturbed(
        &mut self,
        load: &RigLoad,
        planned: &PlannedDisturbance,
    ) -> Result<(FrameRun, Disturbance), TrialError> {
        self.begin(load, Some(planned))?;
        let made = self.rig.run_disturbed(load, planned, self.interrupt)?;
        self.record(&made.0);
        Ok(made)
    }

    /// Makes, records and reports one segment of a soak.
    pub(super) fn soak(
        &mut self,
        load: &RigLoad,
        point_ns: u64,
        start: u32,
    ) -> Result<(), TrialError> {
        self.begin(load, None)?;
        let (run, soaked) = self.rig.soak(load, point_ns, self.interrupt)?;
        let segment = SoakSegment {
            trial: self.result.trials.len(),
            start,
            started_unix_ns: soaked.started_unix_ns,
            point_ns,
            points: soaked.points,
            histogram: run.latency.clone(),
        };
        self.record(&run);
        let progress = SoakProgress {
            cell: self.trial.cell.id.clone(),
            repeat: self.trial.repeat,
            load: run.trial.load,
            throughput: self.result.throughput.clone(),
            trial: run.trial,
            segment: segment.clone(),
        };
        (self.events)(TrialEvent::Checkpoint(&progress.into()));
        self.segments.push(segment);
        Ok(())
    }

    /// Takes up a segment that was made before the run broke off.
    pub(super) fn take_up(&mut self, known: &SoakProgress) {
        let trial = self.result.trials.len();
        self.result.trials.push(known.trial.clone());
        self.segments.push(SoakSegment {
            trial,
            ..known.segment.clone()
        });
    }

    fn begin(
        &mut self,
        load: &RigLoad,
        planned: Option<&PlannedDisturbance>,
    ) -> Result<(), TrialError> {
        self.interrupt.check()?;
        (self.events)(TrialEvent::FrameTrial(&FrameStep {
            cell: self.trial.cell,
            number: self.result.trials.len() + 1,
            load: load.frames_per_s,
            duration_ns: load.duration_ns,
            planned,
            last: self.result.trials.last(),
            bounds: &self.bounds,
        }));
        Ok(())
    }

    fn record(&mut self, run: &FrameRun) {
        self.result.trials.push(run.trial.clone());
        self.result.sender = run.sender.clone();
        self.result.receiver = run.receiver.clone();
        self.strays.add(&run.strays);
    }

    /// The highest load to try, and what bounds it: as
    /// [`journal::record::ThroughputFound::max_load_by`]. Where none is given, it is what the
    /// generator reaches when it tries the line rate, or all it can.
    pub(super) fn highest_load(
        &mut self,
        given: Option<u64>,
    ) -> Result<(u64, &'static str), TrialError> {
        if let Some(load) = given {
            return Ok((load, "given"));
        }
        let line_rate = self.rig.line_rate();
        self.result.flood_trial = Some(self.result.trials.len());
        let flood = self
            .make(&RigLoad::new(line_rate, FLOOD_NS, DRAIN_NS))?
            .trial;
        if let Some(load) = line_rate.filter(|_| was_offered(&flood)) {
            return Ok((load, "line-rate"));
        }
        let per_second = u128::from(flood.sent / self.directions) * 1_000_000_000;
        let load = u64::try_from(per_second / u128::from(flood.elapsed_ns.max(1)));
        match load.unwrap_or(u64::MAX) {
            0 => Err(TrialError::frames(
                "the generator sent nothing at full speed, so there is no highest load; set \
                 `max_load`",
            )),
            load => Ok((load, "generator")),
        }
    }
}

/// Share of the intended frames that may be missing, in percent.
const MISSING_PERCENT: u64 = 2;

/// Whether the load of a frame trial was what was intended: as many frames, in as much time.
pub(crate) fn was_offered(trial: &FrameTrial) -> bool {
    let enough = u128::from(trial.intended) * u128::from(100 - MISSING_PERCENT);
    u128::from(trial.sent) * 100 >= enough && !trial.took_too_long()
}

/// What a procedure is told of a trial: forwarded is what was received, and nothing else. What the
/// receiving station lost itself is lost too: nobody has seen that these frames were test frames,
/// intact, and came once. A load that the tester cannot check fails, and the verdict says whose
/// loss it was. A generator that was too slow has not offered the load, even when it sent all
/// frames in the end: what was received counts in the share of time that it had.
pub(super) fn counts(run: &FrameRun) -> Counts {
    let trial = &run.trial;
    let came = trial.received.min(trial.sent);
    let forwarded = if trial.took_too_long() {
        let share = u128::from(came) * u128::from(trial.duration_ns);
        u64::try_from(share / u128::from(trial.elapsed_ns)).unwrap_or(came)
    } else {
        came
    };
    Counts {
        intended: trial.intended,
        forwarded,
    }
}
