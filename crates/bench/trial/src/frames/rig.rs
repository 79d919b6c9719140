//! The interface between procedures and the generator and analyser.

use crate::disturbance::PlannedDisturbance;
use crate::error::TrialError;
use crate::measurer::unix_ns;
use journal::record::{
    DelayVariation, Disturbance, FramePort, FrameTrial, LatencyBucket, Reflection, SoakPoint,
};
use std::collections::BTreeMap;
use std::time::Duration;
use testbed::{DutAction, Interrupt};
use traffic_spec::{Bins, Then};

const NS_PER_S: u64 = 1_000_000_000;
/// Time allowed for a sender beyond its duration and a quarter of it.
const LATE_LIMIT: Duration = Duration::from_millis(250);

/// Makes frame trials on a path that is up.
pub trait Rig {
    /// Makes one frame trial: sends, waits for stragglers, counts.
    ///
    /// # Errors
    /// When it cannot be made; [`testbed::LabError::Interrupted`] within a second of the interrupt.
    fn run(&mut self, load: &RigLoad, interrupt: &Interrupt) -> Result<FrameRun, TrialError>;

    /// Makes one frame trial with a disturbance of the DUT.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when this DUT does not support the disturbance.
    fn run_disturbed(
        &mut self,
        _load: &RigLoad,
        _planned: &PlannedDisturbance,
        _interrupt: &Interrupt,
    ) -> Result<(FrameRun, Disturbance), TrialError> {
        Err(cannot_act())
    }

    /// Makes one frame trial with a timeline of points of this width.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    fn soak(
        &mut self,
        _load: &RigLoad,
        _point_ns: u64,
        _interrupt: &Interrupt,
    ) -> Result<(FrameRun, Soaked), TrialError> {
        Err(TrialError::frames("this lab does not measure timelines"))
    }

    /// Carries out actions on the DUT one after the other, without a load. Returns their total
    /// duration in nanoseconds.
    ///
    /// # Errors
    /// When this DUT does not support an action, or one failed.
    fn act(&mut self, _actions: &[DutAction]) -> Result<u64, TrialError> {
        Err(cannot_act())
    }

    /// The time in nanoseconds since the Unix epoch, on the clock of
    /// [`Soaked::started_unix_ns`].
    fn now_unix_ns(&self) -> u64 {
        unix_ns()
    }

    /// Whether the stations read two clocks.
    fn has_two_clocks(&self) -> bool {
        false
    }

    /// Whether it can make trials with [reflected](RigLoad::reflected) frames.
    fn reflects(&self) -> bool {
        false
    }

    /// Highest load that the sender's line carries, in frames/s; `None` without a line rate.
    fn line_rate(&self) -> Option<u64>;
}

fn cannot_act() -> TrialError {
    TrialError::frames("this lab cannot disturb a device: use a lab of kind `namespaces`")
}

/// The timeline of one segment of a soak.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Soaked {
    /// When its first frame was intended to leave, in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Its points.
    pub points: Vec<SoakPoint>,
}

/// The load of one frame trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RigLoad {
    /// Frames per second in each direction; `None`: as fast as the generator can.
    pub frames_per_s: Option<u64>,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Time after the last frame during which stragglers still count.
    pub drain_ns: u64,
    /// Whether a sender that stalled sends its backlog as fast as it can: for a load that shows the
    /// sender's capacity. Others keep their rate, and take longer.
    pub catches_up: bool,
    /// A second part that follows without a pause.
    pub then: Option<Then>,
    /// Bins that count received frames by intended time.
    pub bins: Option<Bins>,
    /// Intervals with a latency histogram each, by intended time.
    pub periods: Option<Bins>,
    /// Whether delay variation is measured, which costs the receiver time.
    pub variation: bool,
    /// Whether samples of the cipher link and CPU time by role are taken meanwhile.
    pub sampled: bool,
    /// Whether station B reflects the frames, which loads both directions, and station A times
    /// round trips.
    pub reflected: bool,
    /// Whether it has no figure, so that no reading of the device's monitor belongs to it.
    pub unread: bool,
}

impl RigLoad {
    /// A constant load.
    #[must_use]
    pub const fn new(frames_per_s: Option<u64>, duration_ns: u64, drain_ns: u64) -> Self {
        Self {
            frames_per_s,
            duration_ns,
            drain_ns,
            catches_up: false,
            then: None,
            bins: None,
            periods: None,
            variation: false,
            sampled: false,
            reflected: false,
            unread: false,
        }
    }

    /// The same load, during which samples are taken.
    pub(crate) const fn with_samples(mut self) -> Self {
        self.sampled = true;
        self
    }

    /// The same load, with delay variation measured.
    pub(crate) const fn with_variation(mut self) -> Self {
        self.variation = true;
        self
    }

    /// A burst of exactly `frames` frames; `frames_per_s` is at least 1.
    #[must_use]
    pub fn burst(frames: u64, frames_per_s: u64, drain_ns: u64) -> Self {
        // The shortest time with all of them in the schedule.
        let ns = (u128::from(frames) * u128::from(NS_PER_S)).div_ceil(frames_per_s.max(1).into());
        let duration_ns = u64::try_from(ns).unwrap_or(u64::MAX);
        Self::new(Some(frames_per_s), duration_ns, drain_ns)
    }

    /// Its duration, including the second part.
    pub(crate) fn time(&self) -> Duration {
        let then_ns = self.then.map_or(0, |then| then.duration_ns);
        Duration::from_nanos(self.duration_ns.saturating_add(then_ns))
    }

    /// Time from its start after which a sender is stopped. A sender that is still later does not
    /// offer its load, and may have minutes of frames left.
    #[must_use]
    pub fn sender_limit(&self) -> Duration {
        // A sender on a busy machine catches up within a fraction of its time, or not at all. The
        // constant is for loads of milliseconds.
        let time = self.time();
        time + time / 4 + LATE_LIMIT
    }

    /// Intended frames, including the second part; 0 for an unpaced load.
    #[must_use]
    pub fn intended(&self) -> u64 {
        let then = self
            .then
            .map_or(0, |then| frames(then.frames_per_s, then.duration_ns));
        self.first_intended() + then
    }

    /// Intended frames of the first part; 0 for an unpaced load.
    #[must_use]
    pub fn first_intended(&self) -> u64 {
        self.frames_per_s
            .map_or(0, |rate| frames(rate, self.duration_ns))
    }
}

/// Returns the whole frames of a rate in a time.
fn frames(frames_per_s: u64, ns: u64) -> u64 {
    // 20 million frames/s for 20 minutes exceed 64 bits before the division.
    let frames = u128::from(frames_per_s) * u128::from(ns) / u128::from(NS_PER_S);
    u64::try_from(frames).unwrap_or(u64::MAX)
}

/// The result of a frame trial: the sum of both directions if both are loaded, as with reflected
/// frames.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FrameRun {
    /// Counts.
    pub trial: FrameTrial,
    /// Frames by latency from the intended send time, one way or, if reflected, there and back;
    /// rising.
    pub latency: Vec<LatencyBucket>,
    /// The same of each direction, if both are loaded and neither is reflected.
    pub latency_each: Vec<Vec<LatencyBucket>>,
    /// The reflector's part in it, if the frames were reflected.
    pub reflection: Option<Reflection>,
    /// Delay variation of each direction, if the load asks for it.
    pub variation: Vec<DelayVariation>,
    /// Result of the second part, if the load has one.
    pub relief: Option<Relief>,
    /// Received frames that are not of this trial.
    pub strays: Strays,
    /// Wall time of the trial including set-up and drain, in nanoseconds.
    pub took_ns: u64,
    /// The sending port.
    pub sender: FramePort,
    /// The receiving port.
    pub receiver: FramePort,
}

/// The result of the second part of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Relief {
    /// Frames that left the sender.
    pub sent: u64,
    /// Of those, received.
    pub received: u64,
    /// From the end of the first part to the intended time of the frame that showed the last gap,
    /// in nanoseconds; 0: no gap after it.
    pub last_loss_ns: u64,
    /// From the end of the first part to the intended time of the last received frame.
    pub last_received_ns: u64,
}

/// Received frames that are not of the trial.
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
    /// Adds the strays of another receiver or trial.
    pub fn add(&mut self, other: &Self) {
        self.stale += other.stale;
        self.foreign += other.foreign;
        for (reason, count) in &other.refused {
            *self.refused.entry(reason.clone()).or_default() += count;
        }
    }
}
