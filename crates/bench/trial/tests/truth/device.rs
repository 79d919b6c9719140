//! Simulated devices and testers: frame trials of known truth, as a fluid.
//!
//! A trial is cut into steps. In each, frames come at the offered rate, the device forwards at its
//! capacity of that moment, and what it does not forward waits in its queue or is lost when that is
//! full. Everything that a real trial reports follows: counts, delays by slices, latencies, times.

use crate::events::{Events, Happened};
use journal::record::{DelayTrend, Disturbance, FrameTrial, LatencyBucket};
use plan::estimate::FRAMES_AROUND;
use search::{DELAY_SLICES, DelaySlice, Reserve};
use std::collections::BTreeMap;
use testbed::{DutAction, Interrupt};
use trial::frames::{FrameRun, Relief, Rig, RigLoad, Soaked};
use trial::{PlannedDisturbance, TrialError};

/// Frames per second that a device carries, unless its model says otherwise.
pub(crate) const CAPACITY: f64 = 300_000.0;
/// Frames per second that the tester reaches.
pub(crate) const TESTER: f64 = 1_400_000.0;
/// One-way delay of an empty path.
pub(crate) const PATH_S: f64 = 50e-6;

const NS: f64 = 1e9;
/// Steps of a trial.
const STEPS: f64 = 300.0;
/// A receiver that has all frames waits so long for copies.
pub(crate) const COPIES_S: f64 = 0.010;
/// Length of a frame, unless the rig is asked for longer ones.
const FRAME_BYTES: u64 = 64;
/// The clock of a rig when it begins, in nanoseconds since the Unix epoch.
const EPOCH_NS: u64 = 1_700_000_000 * 1_000_000_000;

/// A device. The default carries [`CAPACITY`] behind a queue of 0.5 ms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Model {
    /// Frames per second.
    pub(crate) capacity: f64,
    /// Depth of the queue, as time at the capacity.
    pub(crate) queue_s: f64,
    /// Depth of a token bucket, as time at the capacity: what it does not carry it saves, up to so
    /// much.
    pub(crate) burst_s: f64,
    /// Standard deviation of the capacity from trial to trial, as a share of it.
    pub(crate) noise: f64,
    /// Share of the trials whose capacity is 10 % lower.
    pub(crate) low_band: f64,
    /// Change of the capacity for each second of load, as a share of it.
    pub(crate) drift_per_s: f64,
    /// Frames lost in each trial, whatever the load.
    pub(crate) lost_each_trial: u64,
    /// The device stands still every so often: the period and the length of a stop, in seconds.
    pub(crate) stalls_s: Option<(f64, f64)>,
    /// Share of the frames that arrive after a later one.
    pub(crate) reordered: f64,
    /// Of a fresh device: the capacity rises from half of it in this time of load.
    pub(crate) slow_start_s: f64,
    /// After this many seconds of load it carries a fifth less.
    pub(crate) throttles_after_s: f64,
    /// Standard deviation of the delay of a slice.
    pub(crate) jitter_s: f64,
    /// After an overload that lost frames it loses all for so long.
    pub(crate) recovers_in_s: f64,
    /// Growth of its memory for each second, as a share of it.
    pub(crate) leaks_per_s: f64,
    /// After this many seconds of load it finds its keys out of step, once.
    pub(crate) desyncs_at_s: f64,
    /// What actions and hostile packets do to it.
    pub(crate) events: Events,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            capacity: CAPACITY,
            queue_s: 0.0005,
            burst_s: 0.0,
            noise: 0.0,
            low_band: 0.0,
            drift_per_s: 0.0,
            lost_each_trial: 0,
            stalls_s: None,
            reordered: 0.0,
            slow_start_s: 0.0,
            throttles_after_s: f64::INFINITY,
            jitter_s: 20e-6,
            recovers_in_s: 0.0,
            leaks_per_s: 0.0,
            desyncs_at_s: f64::INFINITY,
            events: Events::default(),
        }
    }
}

/// Flaws of the tester.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tester {
    /// Share of the trials in which the sender stands still once, and for how many seconds. It
    /// keeps the rate, so that the trial takes longer.
    pub(crate) stalls: (f64, f64),
    /// Frames per second above which the receiving station loses what it cannot take; 0: none.
    pub(crate) receiver: f64,
}

/// A device on a tester, freshly started.
#[derive(Debug, Clone)]
pub(crate) struct Simulated {
    pub(crate) model: Model,
    tester: Tester,
    pub(crate) random: Random,
    /// Seconds under load so far.
    pub(crate) loaded_s: f64,
    /// Seconds of its clock.
    pub(crate) clock_s: f64,
    /// Frames that its bucket lacks.
    spent: f64,
    /// Length of a frame.
    pub(crate) frame_bytes: u64,
    /// What its actions did so far: the truth.
    pub(crate) happened: Vec<Happened>,
}

/// Frames that came in one step.
pub(crate) struct Arrived {
    slice: usize,
    pub(crate) frames: f64,
    pub(crate) delay_s: f64,
}

/// The state of a trial between its parts.
#[derive(Default)]
pub(crate) struct Course {
    pub(crate) arrived: Vec<Arrived>,
    pub(crate) queue: f64,
    pub(crate) lost: f64,
    pub(crate) elapsed_s: f64,
    /// Time in which every frame was lost: until now, and the longest.
    pub(crate) silent_s: f64,
    pub(crate) longest_silent_s: f64,
}

impl Simulated {
    /// A fresh device, with a seed for all that is random in it.
    #[must_use]
    pub(crate) const fn new(model: Model, tester: Tester, seed: u64) -> Self {
        Self {
            model,
            tester,
            random: Random(seed),
            loaded_s: 0.0,
            clock_s: 0.0,
            spent: 0.0,
            frame_bytes: FRAME_BYTES,
            happened: Vec::new(),
        }
    }

    /// Capacity at a moment, in a trial whose own factor this is.
    fn capacity(&self, factor: f64) -> f64 {
        let mut capacity = self.model.capacity * factor;
        capacity *= 1.0 + self.model.drift_per_s * self.loaded_s;
        if self.loaded_s < self.model.slow_start_s {
            capacity *= 0.5 + 0.5 * self.loaded_s / self.model.slow_start_s;
        }
        if self.loaded_s >= self.model.throttles_after_s {
            capacity *= 0.8;
        }
        capacity.max(0.0)
    }

    /// Share of the time from `from_s` on in which the device works.
    fn works(&self, from_s: f64, step_s: f64) -> f64 {
        let Some((every_s, stands_s)) = self.model.stalls_s else {
            return 1.0;
        };
        // It stands at the end of each interval.
        let phase = (from_s + step_s / 2.0).rem_euclid(every_s);
        if phase < every_s - stands_s { 1.0 } else { 0.0 }
    }

    /// Carries a load for a time.
    pub(crate) fn load(&mut self, course: &mut Course, rate: f64, time_s: f64, factor: f64) {
        // A tester that is too slow sends all frames, and takes longer.
        let offered = rate.min(TESTER);
        let sends_s = time_s * rate / offered;
        let (share, stall_s) = self.tester.stalls;
        let stalls = (self.random.uniform() < share).then(|| sends_s * self.random.uniform());
        let stall_s = stalls.map_or(0.0, |_| stall_s);
        let longest = self
            .model
            .stalls_s
            .map_or(f64::MAX, |(_, stands_s)| stands_s / 4.0);
        // Steps are short compared with a stop of the device, which would otherwise fall between
        // two of them.
        let step_s = (sends_s / STEPS).min(longest);
        let jitter: Vec<f64> = (0..DELAY_SLICES)
            .map(|_| self.model.jitter_s * self.random.normal().abs())
            .collect();
        let (mut sent_s, mut is_stalled) = (0.0, false);
        while sent_s < sends_s {
            let stalled = !is_stalled && stalls.is_some_and(|at_s| sent_s >= at_s);
            is_stalled |= stalled;
            // A stall is one step in which nothing comes.
            let (step_s, frames) = if stalled {
                (stall_s, 0.0)
            } else {
                (
                    step_s.min(sends_s - sent_s),
                    offered * step_s.min(sends_s - sent_s),
                )
            };
            let capacity = self.capacity(factor);
            let works = capacity * self.works(self.loaded_s, step_s);
            let before = course.queue;
            let waiting = course.queue + frames;
            let saved = (self.model.burst_s * self.model.capacity - self.spent).max(0.0);
            course.queue = (waiting - works * step_s - saved).max(0.0);
            self.spent = (self.spent + waiting - course.queue - works * step_s).max(0.0);
            let deepest = self.model.queue_s * self.model.capacity;
            // Frames in the queue are never lost: a full queue refuses new ones.
            let lost = (course.queue - deepest).clamp(0.0, frames);
            course.queue -= lost;
            course.lost += lost;
            if frames > 0.0 {
                let is_silent = lost > frames - 0.5;
                course.silent_s = if is_silent {
                    course.silent_s + step_s
                } else {
                    0.0
                };
                course.longest_silent_s = course.longest_silent_s.max(course.silent_s);
            }
            // By the middle of the step, which is in one slice.
            let middle_s = sent_s + step_s / 2.0;
            let slice = (middle_s / sends_s * DELAY_SLICES as f64) as usize;
            let slice = slice.min(DELAY_SLICES - 1);
            if frames > lost {
                // The wait of a frame is the time that the device needs for the mean depth of the
                // queue in this step.
                let queued_s = (before + course.queue) / 2.0 / capacity.max(1.0);
                course.arrived.push(Arrived {
                    slice,
                    frames: frames - lost,
                    delay_s: PATH_S + queued_s + jitter[slice],
                });
            }
            if !stalled {
                sent_s += step_s;
            }
            self.loaded_s += step_s;
        }
        course.elapsed_s += sends_s + stall_s;
    }

    /// Takes the frames that the queue still holds when the drain is over from those that arrived.
    fn drain(&self, course: &mut Course, drain_s: f64, factor: f64) {
        let mut left = (course.queue - self.capacity(factor) * drain_s).max(0.0);
        course.lost += left;
        // The last frames are still in the queue, so they are taken away first.
        for arrived in course.arrived.iter_mut().rev() {
            let taken = arrived.frames.min(left);
            arrived.frames -= taken;
            left -= taken;
        }
        course.arrived.retain(|arrived| arrived.frames >= 0.5);
    }
}

impl Simulated {
    /// A trial's result; the rig's clock goes on by its time.
    pub(crate) fn run_of(
        &mut self,
        trial: FrameTrial,
        latency: Vec<LatencyBucket>,
        relief: Option<Relief>,
        drain_s: f64,
    ) -> FrameRun {
        let drain_ns = (drain_s * NS) as u64;
        let took_ns = trial.elapsed_ns + drain_ns + FRAMES_AROUND.as_nanos() as u64;
        self.clock_s += took_ns as f64 / NS;
        // Its bucket fills in the time without load.
        let rest_s = took_ns.saturating_sub(trial.elapsed_ns) as f64 / NS;
        self.spent = (self.spent - self.model.capacity * rest_s).max(0.0);
        FrameRun {
            trial,
            latency,
            relief,
            took_ns,
            ..FrameRun::default()
        }
    }
}

impl Rig for Simulated {
    fn run(&mut self, load: &RigLoad, _: &Interrupt) -> Result<FrameRun, TrialError> {
        let seconds = |ns: u64| ns as f64 / NS;
        let mut factor = 1.0 + self.model.noise * self.random.normal();
        if self.random.uniform() < self.model.low_band {
            factor *= 0.9;
        }
        let mut course = Course::default();
        let rate = load.frames_per_s.map_or(TESTER, |rate| rate as f64);
        self.load(&mut course, rate, seconds(load.duration_ns), factor);
        let first_lost = course.lost;
        let mut relief = load.then.map(|then| {
            let (time_s, rate) = (seconds(then.duration_ns), then.frames_per_s as f64);
            let sick_s = match first_lost {
                lost if lost > 0.5 => self.model.recovers_in_s.min(time_s),
                _ => 0.0,
            };
            self.load(&mut course, rate, time_s, factor);
            // It also loses what comes while it recovers.
            let sick = (rate * sick_s) as u64;
            course.lost += sick as f64;
            Relief {
                sent: (rate * time_s) as u64,
                received: (rate * time_s) as u64 - sick,
                last_loss_ns: (sick_s * NS) as u64,
                last_received_ns: then.duration_ns,
            }
        });
        self.drain(&mut course, seconds(load.drain_ns), factor);
        let intended = match load.frames_per_s {
            Some(_) => load.intended(),
            None => (TESTER * seconds(load.duration_ns)) as u64,
        };
        let mut lost = (course.lost + 0.5).floor() as u64 + self.model.lost_each_trial;
        lost = lost.min(intended);
        let arrived = intended - lost;
        let received = match self.tester.receiver {
            most if most > 0.0 => arrived.min((most * course.elapsed_s) as u64),
            _ => arrived,
        };
        if let Some(relief) = &mut relief {
            relief.received = relief.received.min(received);
        }
        // As a real receiver does: it ends early only if it has all expected frames.
        let drain_s = if lost == 0 {
            COPIES_S
        } else {
            seconds(load.drain_ns)
        };
        let elapsed_ns = (course.elapsed_s * NS) as u64;
        let duration_ns = load.duration_ns + load.then.map_or(0, |then| then.duration_ns);
        let late_s = (course.elapsed_s - seconds(duration_ns)).max(0.0);
        let trial = FrameTrial {
            load: load.frames_per_s.unwrap_or(0),
            duration_ns,
            elapsed_ns,
            intended,
            sent: intended,
            sent_bytes: intended * self.frame_bytes,
            received,
            received_bytes: received * self.frame_bytes,
            reordered: (received as f64 * self.model.reordered) as u64,
            receiver_dropped: arrived - received,
            late_ns_max: (late_s * NS) as u64,
            // A stall delays the frames after it: half of them, on average.
            late_frames: if late_s > 1e-3 { intended / 2 } else { 0 },
            ..FrameTrial::default()
        };
        let slices = slices(&course);
        let (delay, reserve) = match (load.then, load.frames_per_s) {
            // As for a real receiver, which has no slices of these.
            (Some(_), _) | (_, None) => (None, None),
            (None, Some(_)) => (
                DelayTrend::of(&slices),
                Reserve::of(&slices, intended, duration_ns, (NS * PATH_S) as i64),
            ),
        };
        let trial = FrameTrial {
            delay,
            reserve,
            ..trial
        };
        Ok(self.run_of(trial, latency(&course), relief, drain_s))
    }

    fn run_disturbed(
        &mut self,
        load: &RigLoad,
        planned: &PlannedDisturbance,
        _: &Interrupt,
    ) -> Result<(FrameRun, Disturbance), TrialError> {
        Ok(self.disturbed(load, planned))
    }

    fn soak(
        &mut self,
        load: &RigLoad,
        point_ns: u64,
        _: &Interrupt,
    ) -> Result<(FrameRun, Soaked), TrialError> {
        Ok(self.soaked(load, point_ns))
    }

    fn act(&mut self, actions: &[DutAction]) -> Result<u64, TrialError> {
        Ok(self.acted(actions))
    }

    fn now_unix_ns(&self) -> u64 {
        EPOCH_NS + (self.clock_s * NS) as u64
    }

    fn line_rate(&self) -> Option<u64> {
        None
    }
}

fn slices(course: &Course) -> [DelaySlice; DELAY_SLICES] {
    let mut sums = [(0.0, 0.0); DELAY_SLICES];
    for arrived in &course.arrived {
        let (frames, delay) = &mut sums[arrived.slice];
        *frames += arrived.frames;
        *delay += arrived.frames * arrived.delay_s;
    }
    sums.map(|(frames, delay)| DelaySlice {
        frames: frames.round() as u64,
        mean_ns: (NS * delay / frames.max(1.0)) as i64,
    })
}

/// To the microsecond.
pub(crate) fn latency(course: &Course) -> Vec<LatencyBucket> {
    let mut buckets = BTreeMap::<u64, u64>::new();
    for arrived in &course.arrived {
        let upto_ns = (arrived.delay_s * 1e6).ceil() as u64 * 1000;
        *buckets.entry(upto_ns).or_default() += arrived.frames as u64;
    }
    let buckets = buckets.into_iter();
    buckets
        .map(|(upto_ns, frames)| LatencyBucket { upto_ns, frames })
        .collect()
}

/// SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// From 0 to under 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
