//! Keys put out of step: how long frames were lost until the device recovered by itself.

use super::{DisturbedLoad, EventPlace, EventTimes, Trial, not_recovered, over_events};
use crate::figures::estimate::Estimate;
use crate::figures::frames::rates::Lengths;
use crate::figures::repeats::Total;
use plan::Desync;
use schemars::JsonSchema;
use serde::Serialize;

/// The cost of keys that fall out of step.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DesyncResult {
    /// The cause: `wrong-keys` or `missed-rollover`.
    pub cause: String,
    /// Events, over all repeats.
    pub times: u32,
    /// From the event to the last loss; over the events.
    pub outage_ns: EventTimes,
    /// Frames lost until the next event; over the events.
    pub lost_frames: Option<Estimate>,
    /// Events after which frames were still being lost at the next event, or the end.
    pub not_recovered: Vec<EventPlace>,
    /// The device's counters; `null` if it has none.
    #[serde(rename = "told")]
    pub reported: Option<DesyncReport>,
    /// The load of the whole trials.
    pub disturbed: DisturbedLoad,
}

/// A device's counters, over both gateways and all repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "DesyncTold")]
pub struct DesyncReport {
    /// Times that it found its keys out of step.
    pub desyncs: u64,
    /// Packets that could not be opened until the keys were in step again; `null` if not reported.
    pub lost_packets: Option<u64>,
    /// Total time from the first of these packets to the next that could be opened; `null` if not
    /// reported.
    pub outage_ns: Option<u64>,
}

impl DesyncResult {
    pub(super) fn of(cause: Desync, lengths: &Lengths, trials: &[Trial<'_>]) -> Option<Self> {
        let events = || {
            trials.iter().flat_map(|found| {
                let events = found.disturbance.events.iter();
                events.map(|event| (found.repeat, event))
            })
        };
        Some(Self {
            cause: cause.name().into(),
            times: u32::try_from(events().count()).unwrap_or(u32::MAX),
            outage_ns: EventTimes::of(events().map(|(repeat, event)| (repeat, event.outage_ns))),
            lost_frames: over_events(events(), |event| Some(event.lost as f64)),
            not_recovered: trials.iter().flat_map(not_recovered).collect(),
            reported: reported(trials),
            disturbed: DisturbedLoad::of(lengths, trials)?,
        })
    }
}

fn reported(trials: &[Trial<'_>]) -> Option<DesyncReport> {
    // On both gateways, with any labels.
    let sum = |name: &str| {
        let counters = trials
            .iter()
            .flat_map(|found| &found.disturbance.dut_counters);
        let own = counters.filter(|(counter, _)| {
            // A counter is named `gw1/name.label`.
            let bare = counter.split_once('/').map_or("", |(_, bare)| bare);
            bare.split('.').next() == Some(name)
        });
        let values: Vec<u64> = own.map(|(_, value)| *value).collect();
        (!values.is_empty()).then(|| values.into_iter().total())
    };
    Some(DesyncReport {
        // Only our encryptor counts these. Without this counter the others mean nothing.
        desyncs: sum("desyncs")?,
        lost_packets: sum("desync_lost_packets"),
        outage_ns: sum("desync_outage_ns"),
    })
}
