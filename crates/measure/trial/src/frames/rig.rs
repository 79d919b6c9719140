//! The seam between procedures and whatever carries frames.

use crate::disturbance::PlannedDisturbance;
use crate::error::TrialError;
use journal::record::{Disturbance, FramePort, FrameTrial, LatencyBucket, SoakPoint};
use lab::{DutAction, Interrupt};
use std::collections::BTreeMap;
use std::time::Duration;
use traffic::spec::{Bins, Then};

const NS_PER_S: u64 = 1_000_000_000;
/// Given to a sender beyond its time, and a quarter of that.
const LATE_LIMIT: Duration = Duration::from_millis(250);

/// Makes frame trials on a path that is up.
pub trait Rig {
    /// Makes one frame trial: sends, waits for stragglers, counts.
    ///
    /// # Errors
    /// When it cannot be made; [`lab::LabError::Interrupted`] within a second of the interrupt.
    fn run(&mut self, load: &RigLoad, interrupt: &Interrupt) -> Result<FrameRun, TrialError>;

    /// Makes one frame trial while something happens to the DUT.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when it cannot be done to this DUT.
    fn run_disturbed(
        &mut self,
        _load: &RigLoad,
        _planned: &PlannedDisturbance,
        _interrupt: &Interrupt,
    ) -> Result<(FrameRun, Disturbance), TrialError> {
        Err(cannot_act())
    }

    /// Makes one frame trial that is told point by point, of that width.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    fn soak(
        &mut self,
        _load: &RigLoad,
        _point_ns: u64,
        _interrupt: &Interrupt,
    ) -> Result<(FrameRun, Soaked), TrialError> {
        Err(TrialError::frames(
            "nothing can be told point by point here",
        ))
    }

    /// Does these to the DUT, one after the other, without a load; how long all took, in
    /// nanoseconds.
    ///
    /// # Errors
    /// When that cannot be done to this DUT, or failed.
    fn act(&mut self, _actions: &[DutAction]) -> Result<u64, TrialError> {
        Err(cannot_act())
    }

    /// Highest load, in frames/s, that the sender's line has room for; `None`: it has no line rate.
    fn line_rate(&self) -> Option<u64>;
}

fn cannot_act() -> TrialError {
    TrialError::frames(
        "nothing can be done to a device in this lab: use a lab of kind `namespaces`",
    )
}

/// The points of one segment of a soak, beside its counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Soaked {
    /// When its first frame was intended to leave, in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Its points.
    pub points: Vec<SoakPoint>,
}

/// What one frame trial sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RigLoad {
    /// Frames per second in each direction; `None`: as fast as the generator can.
    pub frames_per_s: Option<u64>,
    /// How long, in nanoseconds.
    pub duration_ns: u64,
    /// Time after the last frame was sent in which stragglers still count.
    pub drain_ns: u64,
    /// What follows without a pause.
    pub then: Option<Then>,
    /// Count what comes by intended time.
    pub bins: Option<Bins>,
    /// Count latency by intended time, as a histogram for each interval.
    pub periods: Option<Bins>,
}

impl RigLoad {
    /// One load for one time.
    #[must_use]
    pub const fn new(frames_per_s: Option<u64>, duration_ns: u64, drain_ns: u64) -> Self {
        Self {
            frames_per_s,
            duration_ns,
            drain_ns,
            then: None,
            bins: None,
            periods: None,
        }
    }

    /// A burst of exactly so many frames; `frames_per_s` is at least 1.
    #[must_use]
    pub fn burst(frames: u64, frames_per_s: u64, drain_ns: u64) -> Self {
        // The least time in which the schedule has room for all of them.
        let ns = (u128::from(frames) * u128::from(NS_PER_S)).div_ceil(frames_per_s.max(1).into());
        let duration_ns = u64::try_from(ns).unwrap_or(u64::MAX);
        Self::new(Some(frames_per_s), duration_ns, drain_ns)
    }

    /// How long it lasts, the second part included.
    pub(crate) fn time(&self) -> Duration {
        let then_ns = self.then.map_or(0, |then| then.duration_ns);
        Duration::from_nanos(self.duration_ns.saturating_add(then_ns))
    }

    /// When a sender that has not ended is told to stop, from its start. One that is later does not
    /// offer its load, and there may be minutes of frames left.
    pub(crate) fn sender_limit(&self) -> Duration {
        let time = self.time();
        time + time / 4 + LATE_LIMIT
    }

    /// Frames that the schedule asks for, the second part included; 0 of an unpaced load.
    #[must_use]
    pub fn intended(&self) -> u64 {
        let then = self
            .then
            .map_or(0, |then| frames(then.frames_per_s, then.duration_ns));
        self.first_intended() + then
    }

    /// Frames that the schedule of the first part asks for; 0 of an unpaced load.
    #[must_use]
    pub fn first_intended(&self) -> u64 {
        self.frames_per_s
            .map_or(0, |rate| frames(rate, self.duration_ns))
    }
}

/// Frames of a rate in a time, the last begun one not counted.
fn frames(frames_per_s: u64, ns: u64) -> u64 {
    let frames = u128::from(frames_per_s) * u128::from(ns) / u128::from(NS_PER_S);
    u64::try_from(frames).unwrap_or(u64::MAX)
}

/// What a frame trial came to: the sum of both directions when both are loaded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FrameRun {
    /// Counts.
    pub trial: FrameTrial,
    /// Frames by latency from the intended send time; rising.
    pub latency: Vec<LatencyBucket>,
    /// Of a load with a second part.
    pub relief: Option<Relief>,
    /// What came beside the frames of this trial.
    pub strays: Strays,
    /// Wall time of all of it, set-up and drain included, in nanoseconds.
    pub took_ns: u64,
    /// The sending port.
    pub sender: FramePort,
    /// The receiving port.
    pub receiver: FramePort,
}

/// What became of the second part of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Relief {
    /// Frames that left the sender in it.
    pub sent: u64,
    /// Of those, received.
    pub received: u64,
    /// From the end of the first part to the intended time of the frame that showed the last gap,
    /// in nanoseconds; 0: there was no gap after it.
    pub last_loss_ns: u64,
    /// Likewise, of the last frame that was received.
    pub last_received_ns: u64,
}

/// What a receiver saw beside the frames of its trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strays {
    /// Intact frames of other trials.
    pub stale: u64,
    /// Frames that are not test traffic.
    pub foreign: u64,
    /// ESP packets that the station could not open, by reason.
    pub refused: BTreeMap<String, u64>,
}

impl Strays {
    /// Adds what another receiver, or another trial, saw.
    pub fn add(&mut self, other: &Self) {
        self.stale += other.stale;
        self.foreign += other.foreign;
        for (reason, count) in &other.refused {
            *self.refused.entry(reason.clone()).or_default() += count;
        }
    }
}
