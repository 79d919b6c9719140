//! Restarts of an encryptor: the reset time by both methods of RFC 6201.

use super::{DisturbedLoad, EventPlace, EventTimes, Trial, not_recovered, over_events};
use crate::figures::estimate::Estimate;
use crate::figures::frames::rates::Lengths;
use crate::figures::repeats::per_second;
use journal::record::DutEvent;
use plan::Reset;
use schemars::JsonSchema;
use serde::Serialize;

/// The two methods agree within this share of the longer time.
const AGREE_RATIO: f64 = 0.05;
/// Tolerance for rounding between the times of both methods, in bins and in frames of the load: one
/// at either end.
const ROUNDED: f64 = 2.0;

/// The cost of a restart.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ResetResult {
    /// Kind of restart: `process`, `orderly` or `command`.
    pub kind: String,
    /// Resets, over all repeats.
    pub resets: u32,
    /// Reset time by the frame-loss method of RFC 6201: frames lost from a reset to the next, or to
    /// the end, divided by the offered rate; without an end if frames were still being lost then.
    /// Over the resets.
    pub frame_loss_ns: EventTimes,
    /// Reset time by its timestamp method: from the arrival of the last frame before the outage to
    /// the arrival of the first after it. Over the resets.
    pub timestamp_ns: EventTimes,
    /// From the reset to the last loss; over the resets.
    pub outage_ns: EventTimes,
    /// From the reset until the device reports that it is up, or has taken the command; over the
    /// resets.
    pub ready_ns: Option<Estimate>,
    /// Frames lost from a reset to the next, or to the end; over the resets.
    pub lost_frames: Option<Estimate>,
    /// Resets with two times that differ by more than 5 % of the longer, and by more than two bins
    /// and two frames.
    pub differing: Vec<DifferingReset>,
    /// Resets after which frames were still being lost at the next reset, or the end.
    pub not_recovered: Vec<EventPlace>,
    /// The load of the whole trials.
    pub disturbed: DisturbedLoad,
}

/// A reset with two different reset times.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DifferingReset {
    /// The reset.
    pub place: EventPlace,
    /// By the frame-loss method.
    pub frame_loss_ns: f64,
    /// By the timestamp method.
    pub timestamp_ns: f64,
}

/// A reset of a repeat with its two times; `None`: without an end.
struct Timed<'a> {
    repeat: u32,
    /// From 1 in its repeat.
    number: u32,
    event: &'a DutEvent,
    frame_loss_ns: Option<u64>,
    timestamp_ns: Option<u64>,
    /// Tolerance for rounding between the two.
    rounding_ns: f64,
}

impl<'a> Timed<'a> {
    fn all(trials: &[Trial<'a>]) -> Vec<Self> {
        let of_trial = |found: &Trial<'a>| {
            let (repeat, trial) = (found.repeat, found.trial);
            // Of all loaded directions together, as the lost frames are.
            let rate = per_second(trial.intended, trial.duration_ns);
            let events = (1..).zip(&found.disturbance.events);
            events.map(move |(number, event)| {
                let frame_ns = rate.filter(|rate| *rate > 0.0).map(|rate| 1e9 / rate);
                let lost_ns = frame_ns.map(|frame_ns| (event.lost as f64 * frame_ns) as u64);
                let reset = event.reset.as_ref();
                let bin_ns = reset.map_or(0, |reset| reset.bin_ns);
                Self {
                    repeat,
                    number,
                    event,
                    // A reset without an end still lost frames when it was cut off, so its count is
                    // no time either.
                    frame_loss_ns: event.outage_ns.and(lost_ns),
                    timestamp_ns: reset.and_then(|reset| reset.silent_ns),
                    rounding_ns: ROUNDED * (bin_ns as f64 + frame_ns.unwrap_or(0.0)),
                }
            })
        };
        trials.iter().flat_map(of_trial).collect()
    }

    fn differing(&self) -> Option<DifferingReset> {
        let (frame_loss_ns, timestamp_ns) = (self.frame_loss_ns?, self.timestamp_ns?);
        let (frame_loss_ns, timestamp_ns) = (frame_loss_ns as f64, timestamp_ns as f64);
        // Short resets differ by rounding to bins and frames alone, which would exceed any share of
        // their time.
        let agreed = AGREE_RATIO * frame_loss_ns.max(timestamp_ns);
        let differs = (frame_loss_ns - timestamp_ns).abs() > agreed.max(self.rounding_ns);
        differs.then(|| DifferingReset {
            place: EventPlace {
                repeat: self.repeat,
                number: self.number,
                name: self.event.name.clone(),
                at_ns: self.event.at_ns,
            },
            frame_loss_ns,
            timestamp_ns,
        })
    }
}

impl ResetResult {
    pub(super) fn of(kind: Reset, lengths: &Lengths, trials: &[Trial<'_>]) -> Option<Self> {
        let all = Timed::all(trials);
        let times = |time: fn(&Timed<'_>) -> Option<u64>| {
            EventTimes::of(all.iter().map(|reset| (reset.repeat, time(reset))))
        };
        let events = || all.iter().map(|reset| (reset.repeat, reset.event));
        Some(Self {
            kind: kind.name().into(),
            resets: u32::try_from(all.len()).unwrap_or(u32::MAX),
            frame_loss_ns: times(|reset| reset.frame_loss_ns),
            timestamp_ns: times(|reset| reset.timestamp_ns),
            outage_ns: times(|reset| reset.event.outage_ns),
            ready_ns: over_events(events(), |event| Some(event.took_ns as f64)),
            lost_frames: over_events(events(), |event| Some(event.lost as f64)),
            differing: all.iter().filter_map(Timed::differing).collect(),
            not_recovered: trials.iter().flat_map(not_recovered).collect(),
            disturbed: DisturbedLoad::of(lengths, trials)?,
        })
    }
}
