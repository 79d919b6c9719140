//! Keys renewed under a load.

use super::{DisturbedLoad, EventPlace, EventTimes, Trial, over_events};
use crate::bulk::{per_second, ratio};
use crate::estimate::{Estimate, Sample};
use crate::frames::rates::Lengths;
use journal::record::DutEvent;
use schemars::JsonSchema;
use serde::Serialize;

/// What renewing keys costs the load.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RekeyResult {
    /// Rekeys done, over all repeats.
    pub rekeys: u64,
    /// What the campaign asks for.
    pub asked_per_s: f64,
    /// What was reached, from the beginning of the first rekey of a trial to that of its last; over the
    /// repeats; `null` when a repeat has fewer than two.
    pub reached_per_s: Option<Estimate>,
    /// From the order to the device's word that it is done; over the rekeys.
    pub took_ns: Option<Estimate>,
    /// Frames lost from one rekey to the next, or to the trial's end; over the rekeys.
    pub lost_frames: Option<Estimate>,
    /// Rekeys that lost a frame.
    pub with_loss: u64,
    /// From the beginning of a rekey to its last loss, 0 when it lost none; over the rekeys. Without an end:
    /// those that still lost frames when the next began.
    pub outage_ns: EventTimes,
    /// Last rekeys of a trial after which frames were still being lost at its end.
    pub not_recovered: Vec<EventPlace>,
    /// Forwarding rate with rekeys by that without, over the repeats that have both.
    pub kept_ratio: Option<Estimate>,
    /// The load with rekeys.
    pub disturbed: DisturbedLoad,
}

impl RekeyResult {
    pub(super) fn of(
        every_ns: u64,
        lengths: &Lengths,
        quiet: &[Trial<'_>],
        trials: &[Trial<'_>],
    ) -> Option<Self> {
        let events = || {
            trials.iter().flat_map(|found| {
                let events = found.disturbance.events.iter();
                events.map(|event| (found.repeat, event))
            })
        };
        Some(Self {
            rekeys: events().count() as u64,
            asked_per_s: per_second(1, every_ns).unwrap_or(0.0),
            reached_per_s: reached(trials),
            took_ns: over_events(events(), |event| Some(event.took_ns as f64)),
            lost_frames: over_events(events(), |event| Some(event.lost as f64)),
            with_loss: events().filter(|(_, event)| event.lost > 0).count() as u64,
            outage_ns: EventTimes::of(events().map(|(repeat, event)| (repeat, event.outage_ns))),
            not_recovered: trials.iter().filter_map(not_recovered).collect(),
            kept_ratio: kept(quiet, trials),
            disturbed: DisturbedLoad::of(lengths, trials)?,
        })
    }
}

fn not_recovered(found: &Trial<'_>) -> Option<EventPlace> {
    let events = &found.disturbance.events;
    let last = events.last().filter(|last| last.outage_ns.is_none())?;
    Some(EventPlace {
        repeat: found.repeat,
        number: u32::try_from(events.len()).unwrap_or(u32::MAX),
        name: last.name.clone(),
        at_ns: last.at_ns,
    })
}

fn reached(trials: &[Trial<'_>]) -> Option<Estimate> {
    let rate = |events: &[DutEvent]| {
        let (first, last) = (events.first()?, events.last()?);
        per_second(
            events.len() as u64 - 1,
            last.at_ns.saturating_sub(first.at_ns),
        )
    };
    let sample = |found: &Trial<'_>| {
        Some(Sample {
            repeat: found.repeat,
            value: rate(&found.disturbance.events)?,
        })
    };
    Estimate::of(trials.iter().map(sample).collect::<Option<Vec<_>>>()?)
}

/// The two trials of a repeat are one load for one time: what each received of what it was sent.
fn kept(quiet: &[Trial<'_>], trials: &[Trial<'_>]) -> Option<Estimate> {
    let share = |found: &Trial<'_>| ratio(found.trial.received, found.trial.sent);
    let sample = |found: &Trial<'_>| {
        let control = quiet.iter().find(|other| other.repeat == found.repeat)?;
        let control = share(control).filter(|share| *share > 0.0)?;
        Some(Sample {
            repeat: found.repeat,
            value: share(found)? / control,
        })
    };
    Estimate::of(trials.iter().filter_map(sample).collect())
}
