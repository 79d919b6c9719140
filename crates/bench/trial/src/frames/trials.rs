//! The frame trials of one trial, which are made, reported and recorded one after the other.

use super::{FrameRun, Rig, RigLoad, Strays};
use crate::disturbance::PlannedDisturbance;
use crate::error::TrialError;
use crate::event::{EventSink, FrameStep, TrialEvent};
use crate::measurer::Trial;
use journal::record::{
    Disturbance, DisturbedTrials, FrameResult, FrameTrial, GoalBounds, LatencyTrial, SoakProbe,
    SoakProgress, SoakSegment,
};
use plan::estimate;
use testbed::Interrupt;

/// Duration of the trial that warms the device up and finds the generator's highest load.
const FLOOD_NS: u64 = estimate::FLOOD_RUN.as_nanos() as u64;
/// Duration of the trial with the evidence, and of the first one that confirms a search.
pub(super) const EVIDENCE_NS: u64 = estimate::EVIDENCE_RUN.as_nanos() as u64;
/// Time for stragglers in procedures without a setting for it.
pub(super) const DRAIN_NS: u64 = 100_000_000;

/// The state of a procedure.
pub(crate) struct Trials<'a> {
    pub(super) trial: &'a Trial<'a>,
    pub(super) rig: &'a mut dyn Rig,
    pub(super) events: EventSink<'a>,
    pub(super) interrupt: &'a Interrupt,
    /// The result so far.
    pub(super) result: FrameResult,
    pub(super) strays: Strays,
    /// Trials of `rekey`, `failover`, `reset`, `setup`, `desync` and `hostile` so far.
    pub(super) disturbed: DisturbedTrials,
    /// Segments of a soak so far.
    pub(super) segments: Vec<SoakSegment>,
    /// Bounds of the current or last search.
    pub(super) bounds: Vec<GoalBounds>,
    /// Whether station B reflects the frames of the trials.
    pub(super) reflected: bool,
}

impl Trials<'_> {
    /// Makes and records one frame trial.
    pub(super) fn make(&mut self, load: &RigLoad) -> Result<FrameRun, TrialError> {
        self.begin(load, None)?;
        let run = self.rig.run(&self.on_path(load), self.interrupt)?;
        self.record(&run);
        Ok(run)
    }

    /// The load over the path that is timed.
    const fn on_path(&self, load: &RigLoad) -> RigLoad {
        RigLoad {
            reflected: self.reflected,
            ..*load
        }
    }

    /// Makes and records one frame trial with a disturbance of the DUT.
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

    /// Makes one frame trial with a disturbance of the DUT, and records its counts only.
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

    /// Makes one frame trial that is not recorded among the others.
    pub(super) fn make_unrecorded(&mut self, load: &RigLoad) -> Result<FrameRun, TrialError> {
        self.begin(load, None)?;
        let run = self.rig.run(&self.on_path(load), self.interrupt)?;
        self.strays.add(&run.strays);
        Ok(run)
    }

    /// Makes, records and reports one segment of a soak, with the probes before it.
    pub(super) fn soak(
        &mut self,
        load: &RigLoad,
        point_ns: u64,
        start: u32,
        probes: impl IntoIterator<Item = SoakProbe>,
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
            probes: probes.into_iter().collect(),
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
        // Reported before anything else may fail, so that a segment of hours is in the journal.
        (self.events)(TrialEvent::Checkpoint(&progress.into()));
        self.segments.push(segment);
        Ok(())
    }

    /// Adds a segment from before the run was interrupted.
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

    /// Returns the highest load to try and its bound, as in
    /// [`journal::record::SearchRecord::max_load_by`]. Without a given load, it is the load that
    /// the generator reaches when it offers the line rate, or its maximum.
    ///
    /// The trial at the highest load is in no figure: each trial starts the device anew, and a
    /// fresh device's first work (it resolves addresses, fills caches, raises its clock) is not its
    /// throughput.
    pub(super) fn highest_load(
        &mut self,
        given: Option<u64>,
    ) -> Result<(u64, &'static str), TrialError> {
        let line_rate = self.rig.line_rate();
        // A second search in one trial finds a warm device.
        if self.result.flood_trial.is_some()
            && let Some(load) = given
        {
            return Ok((load, "given"));
        }
        self.result.flood_trial = Some(self.result.trials.len());
        let flood = self
            .make(&RigLoad {
                catches_up: true,
                ..RigLoad::new(given.or(line_rate), FLOOD_NS, DRAIN_NS)
            })?
            .trial;
        if let Some(load) = given {
            return Ok((load, "given"));
        }
        // The line rate is the limit only if the generator reaches it.
        if let Some(load) = line_rate.filter(|_| was_offered(&flood)) {
            return Ok((load, "line-rate"));
        }
        // Both directions are loaded at one rate, which the slower generator must reach.
        let rate = |own: &FrameTrial| {
            let per_second = u128::from(own.sent) * 1_000_000_000;
            let rate = per_second / u128::from(own.elapsed_ns.max(1));
            u64::try_from(rate).unwrap_or(u64::MAX)
        };
        let rates = flood.each_direction().iter().map(rate);
        match rates.min().unwrap_or(0) {
            0 => Err(TrialError::frames(
                "the generator sent nothing at full speed, so there is no highest load; set \
                 `max_load`",
            )),
            load => Ok((load, "generator")),
        }
    }
}

/// Share of the intended frames that may be missing, in per cent.
const MISSING_PERCENT: u64 = 2;

/// Whether a frame trial offered its intended load: this many frames in this time, in each loaded
/// direction, and some at full speed.
#[must_use]
pub fn was_offered(trial: &FrameTrial) -> bool {
    let was_sent = |own: &FrameTrial| {
        let enough = u128::from(own.intended) * u128::from(100 - MISSING_PERCENT);
        own.sent > 0 && u128::from(own.sent) * 100 >= enough
    };
    trial.each_direction().iter().all(was_sent) && !trial.took_too_long()
}

/// Returns the latency of a frame trial.
pub(super) fn latency_trial(percent: Option<u8>, run: &FrameRun) -> LatencyTrial {
    LatencyTrial {
        percent,
        load: run.trial.load,
        frames: run.latency.iter().map(|bucket| bucket.frames).sum(),
        histogram: run.latency.clone(),
        directions: run.latency_each.clone(),
        variation: run.variation.clone(),
        clocks: run
            .trial
            .readings
            .as_ref()
            .and_then(|readings| readings.clocks),
        round_trip: run.reflection.clone(),
    }
}
