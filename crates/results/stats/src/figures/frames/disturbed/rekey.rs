//! Keys renewed under a load.

use super::{DisturbedLoad, EventPlace, EventTimes, Trial, over_events};
use crate::figures::estimate::Estimate;
use crate::figures::frames::Repeats;
use crate::figures::frames::latency::histogram_percentile;
use crate::figures::frames::rates::Lengths;
use crate::figures::repeats::{per_second, ratio};
use journal::record::{Disturbance, DutEvent, SearchRecord, TimeBin};
use schemars::JsonSchema;
use serde::Serialize;

/// The cost of renewing keys to the load.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RekeyResult {
    /// Rekeys done, over all repeats.
    pub rekeys: u64,
    /// The configured rate.
    pub asked_per_s: f64,
    /// Achieved rate, from the beginning of a trial's first rekey to the beginning of its last;
    /// over the repeats; `null` when a repeat has fewer than two.
    pub reached_per_s: Option<Estimate>,
    /// From the command until the device reports completion; over the rekeys.
    pub took_ns: Option<Estimate>,
    /// Frames lost from one rekey to the next, or to the trial's end; over the rekeys.
    pub lost_frames: Option<Estimate>,
    /// Rekeys that lost a frame.
    pub with_loss: u64,
    /// From the beginning of a rekey to its last loss, 0 when it lost none; over the rekeys.
    /// Without an end: rekeys that still lost frames when the next began.
    pub outage_ns: EventTimes,
    /// Last rekeys of a trial after which frames were still being lost at its end.
    pub not_recovered: Vec<EventPlace>,
    /// Ratio of the forwarding rates with and without rekeys, over the repeats that have both.
    pub kept_ratio: Option<Estimate>,
    /// Ratio of the throughput with continuous rekeys to the throughput without, of the first goal;
    /// over the repeats that have both; `null` if the campaign does not search it.
    pub throughput_ratio: Option<Estimate>,
    /// Median latency with rekeys less that without; over the repeats that have both.
    pub added_p50_ns: Option<Estimate>,
    /// The same of the 99th percentile.
    pub added_p99_ns: Option<Estimate>,
    /// The same of the slowest frame.
    pub added_max_ns: Option<Estimate>,
    /// The slowest frame from a rekey until 100 ms after it was done; over the rekeys.
    pub slowest_ns: Option<Estimate>,
    /// The same less the slowest frame of the same times of the same load without rekeys; over the
    /// rekeys of repeats that have both.
    pub added_slowest_ns: Option<Estimate>,
    /// Rekeys of the repeats with a lossless control, which is the same load without rekeys.
    pub clean: CleanRekeys,
    /// The load with rekeys.
    pub disturbed: DisturbedLoad,
}

/// Rekeys of the repeats with a lossless control, which is the same load without rekeys. In the
/// other repeats the load exceeded the device's capacity at that time, so losses may have another
/// cause than the rekeys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CleanRekeys {
    /// Repeats without loss in the control.
    pub repeats: u64,
    /// Repeats that have both trials.
    pub of_repeats: u64,
    /// Rekeys in these repeats.
    pub rekeys: u64,
    /// Frames lost in these repeats' trials with rekeys.
    pub lost: u64,
}

impl CleanRekeys {
    fn of(quiet: &[Trial<'_>], trials: &[Trial<'_>]) -> Self {
        let mut clean = Self::default();
        for found in trials {
            let Some(control) = control(quiet, found) else {
                continue;
            };
            clean.of_repeats += 1;
            // Only then the losses are due to the rekeys: the load itself was carried.
            if control.trial.lost() == 0 {
                clean.repeats += 1;
                clean.rekeys += found.disturbance.events.len() as u64;
                clean.lost = clean.lost.saturating_add(found.trial.lost());
            }
        }
        clean
    }
}

impl RekeyResult {
    pub(super) fn of(
        every_ns: u64,
        lengths: &Lengths,
        quiet: &[Trial<'_>],
        trials: &[Trial<'_>],
        repeats: &Repeats<'_>,
    ) -> Option<Self> {
        let percentile = |per_mille: u64| {
            added(quiet, trials, move |found| {
                histogram_percentile(&found.histogram, per_mille)
            })
        };
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
            throughput_ratio: throughput(repeats),
            added_p50_ns: percentile(500),
            added_p99_ns: percentile(990),
            added_max_ns: added(quiet, trials, |found| Some(found.histogram.last()?.upto_ns)),
            slowest_ns: over_events(events(), |event| Some(event.slowest_ns? as f64)),
            added_slowest_ns: added_slowest(quiet, trials),
            clean: CleanRekeys::of(quiet, trials),
            disturbed: DisturbedLoad::of(lengths, trials)?,
        })
    }
}

fn not_recovered(found: &Trial<'_>) -> Option<EventPlace> {
    let events = &found.disturbance.events;
    // Rekeys may follow each other before the loss of one has ended, so only the last of a trial
    // can fail to recover.
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
            // From the first beginning to the last there is one interval fewer than rekeys. `first`
            // above makes sure that one exists.
            events.len() as u64 - 1,
            last.at_ns.saturating_sub(first.at_ns),
        )
    };
    let rates = trials
        .iter()
        .map(|found| (found.repeat, rate(&found.disturbance.events)));
    Estimate::of_all(rates)
}

/// Compares the share of frames received in the two trials of a repeat, which have the same load
/// and duration.
fn kept(quiet: &[Trial<'_>], trials: &[Trial<'_>]) -> Option<Estimate> {
    let share = |found: &Trial<'_>| ratio(found.trial.received, found.trial.sent);
    let quotient = |found: &Trial<'_>| {
        // A quotient within the repeat, so that a drift of the machine affects both of its sides.
        let control = share(control(quiet, found)?).filter(|share| *share > 0.0)?;
        Some(share(found)? / control)
    };
    over_known(trials, quotient)
}

/// The increase that rekeys cause in a figure of a trial.
fn added(
    quiet: &[Trial<'_>],
    trials: &[Trial<'_>],
    of: impl Fn(&Disturbance) -> Option<u64>,
) -> Option<Estimate> {
    over_known(trials, |found| {
        let control = control(quiet, found)?;
        Some(of(found.disturbance)? as f64 - of(control.disturbance)? as f64)
    })
}

fn over_known(trials: &[Trial<'_>], value: impl Fn(&Trial<'_>) -> Option<f64>) -> Option<Estimate> {
    Estimate::of_known(trials.iter().map(|found| (found.repeat, value(found))))
}

/// The same load of the same repeat without rekeys.
fn control<'q, 'a>(quiet: &'q [Trial<'a>], found: &Trial<'_>) -> Option<&'q Trial<'a>> {
    quiet.iter().find(|other| other.repeat == found.repeat)
}

fn added_slowest(quiet: &[Trial<'_>], trials: &[Trial<'_>]) -> Option<Estimate> {
    let samples = trials.iter().flat_map(|found| {
        let control = control(quiet, found);
        let events = found.disturbance.events.iter();
        let added = move |event: &DutEvent| {
            let without = slowest_around(control?.disturbance, event)?;
            Some(event.slowest_ns? as f64 - without as f64)
        };
        events.map(move |event| (found.repeat, added(event)))
    });
    Estimate::of_known(samples)
}

/// The slowest frame of a trial during the time of another trial's event and [`DutEvent::AFTER_NS`]
/// after it.
fn slowest_around(quiet: &Disturbance, event: &DutEvent) -> Option<u64> {
    let bin_ns = quiet.timeline.bin_ns;
    let end_ns = event
        .at_ns
        .saturating_add(event.took_ns)
        .saturating_add(DutEvent::AFTER_NS);
    let is_about = |(index, bin): &(u64, &TimeBin)| {
        let begin_ns = index.saturating_mul(bin_ns);
        // Every bin that overlaps the time, as the control is known by bins only. Empty bins have
        // no latency.
        bin.received > 0 && begin_ns.saturating_add(bin_ns) > event.at_ns && begin_ns < end_ns
    };
    let bins = (0..).zip(&quiet.timeline.bins).filter(is_about);
    bins.map(|(_, bin)| bin.latency_ns_max).max()
}

fn throughput(repeats: &Repeats<'_>) -> Option<Estimate> {
    let lower = |found: Option<&SearchRecord>| found?.goals.first()?.lower;
    let quotient = |found: &journal::record::FrameResult| {
        let without = lower(found.throughput.as_ref()).filter(|load| *load > 0)?;
        Some(lower(found.rekeyed_throughput())? as f64 / without as f64)
    };
    let repeats = repeats.iter();
    Estimate::of_known(repeats.map(|(repeat, found)| (*repeat, quotient(found))))
}
