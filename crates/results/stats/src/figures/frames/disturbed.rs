//! Events of a device under a constant load, and their effect on the load.
//!
//! Figures have two kinds of samples. Figures of a whole trial (rates, shares, latency) are
//! estimated over the repeats, as everywhere else. Figures of one event (an outage, the frames that
//! a rekey cost) are estimated over the events of all repeats together: events differ from one to
//! the next, and a mean per trial would hide the worst of them.
//!
//! To add an event: a module here, its variant of [`EventResult`], and its table in the report.

mod desync;
mod events;
mod hostile;
mod rekey;
mod reset;

pub use desync::{DesyncReport, DesyncResult};
pub use events::{EventPlace, EventTimes, FailoverResult, SetupResult};
pub use hostile::{HOSTILE_LOSS_PPM, HostileResult, HostileShare};
pub use rekey::{CleanRekeys, RekeyResult};
pub use reset::{DifferingReset, ResetResult};

pub(crate) use hostile::hostile_delivered_in;

use super::Repeats;
use super::latency::{self, LoadLatency};
use super::loads::{self, LoadResult};
use super::rates::Lengths;
use crate::figures::estimate::Estimate;
use crate::figures::repeats::{Total, ratio};
use journal::record::{Disturbance, DutEvent, FrameTrial, LatencyTrial};
use plan::{Event, Traffic};
use schemars::JsonSchema;
use serde::Serialize;

/// Figures of `rekey`, `failover`, `reset`, `setup`, `desync` and `hostile`.
#[derive(Debug, Clone, PartialEq)]
pub struct DisturbanceResult {
    /// The same load without a disturbance, measured first; `None` if the procedure has no control.
    pub quiet: Option<DisturbedLoad>,
    /// Figures of the event; `None` without enough trials.
    pub event: Option<EventResult>,
}

/// Figures of an event, by its kind.
#[derive(Debug, Clone, PartialEq)]
pub enum EventResult {
    /// Keys were renewed.
    Rekey(Box<RekeyResult>),
    /// A gateway or the link failed.
    Failover(Box<FailoverResult>),
    /// The encryptor was restarted.
    Reset(Box<ResetResult>),
    /// All tunnels were taken down and set up.
    Setup(Box<SetupResult>),
    /// The gateways' keys got out of step.
    Desync(Box<DesyncResult>),
    /// Hostile packets were sent.
    Hostile(HostileResult),
}

/// Figures of `rekey`, `failover`, `reset`, `setup`, `desync` and `hostile`; exactly one is set.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DisturbanceResult")]
pub(super) struct DisturbanceInfo<'a> {
    /// The same load without a disturbance, measured first; `null` if the procedure has no control.
    quiet: Option<&'a DisturbedLoad>,
    /// For `rekey`.
    rekey: Option<&'a RekeyResult>,
    /// For `failover`.
    failover: Option<&'a FailoverResult>,
    /// For `reset`.
    reset: Option<&'a ResetResult>,
    /// For `setup`.
    setup: Option<&'a SetupResult>,
    /// For `desync`.
    desync: Option<&'a DesyncResult>,
    /// For `hostile`.
    hostile: Option<&'a HostileResult>,
}

/// The load in the trials of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DisturbedLoad {
    /// Counts and rates.
    pub load: LoadResult,
    /// Latency of the received frames; `null` when a trial timed none.
    pub latency: Option<LoadLatency>,
}

/// A trial of a repeat, with its disturbance.
#[derive(Clone, Copy)]
struct Trial<'a> {
    repeat: u32,
    trial: &'a FrameTrial,
    disturbance: &'a Disturbance,
}

impl<'a> DisturbanceInfo<'a> {
    pub(super) fn of(found: &'a DisturbanceResult) -> Self {
        Self {
            quiet: found.quiet.as_ref(),
            rekey: found.rekey(),
            failover: found.failover(),
            reset: found.reset(),
            setup: found.setup(),
            desync: found.desync(),
            hostile: found.hostile(),
        }
    }
}

impl DisturbanceResult {
    /// `None` when nothing was recorded.
    pub(super) fn of(
        event: &Event,
        traffic: &Traffic,
        lengths: &Lengths,
        repeats: &Repeats<'_>,
    ) -> Option<Self> {
        let (quiet, others) = sorted(event, repeats);
        (!quiet.is_empty() || !others.is_empty()).then_some(())?;
        let result = match event {
            Event::Rekey { every_ns, .. } => {
                RekeyResult::of(*every_ns, lengths, &quiet, &others, repeats)
                    .map(|found| EventResult::Rekey(Box::new(found)))
            }
            Event::Failover { failure, .. } => FailoverResult::of(*failure, lengths, &others)
                .map(|found| EventResult::Failover(Box::new(found))),
            Event::Reset { kind, .. } => ResetResult::of(*kind, lengths, &others)
                .map(|found| EventResult::Reset(Box::new(found))),
            Event::Setup { .. } => SetupResult::of(traffic.frames.tunnels, lengths, &others)
                .map(|found| EventResult::Setup(Box::new(found))),
            Event::Desync { cause, .. } => DesyncResult::of(*cause, lengths, &others)
                .map(|found| EventResult::Desync(Box::new(found))),
            Event::Hostile { attack, .. } => {
                HostileResult::of(*attack, lengths, &quiet, &others).map(EventResult::Hostile)
            }
        };
        Some(Self {
            quiet: DisturbedLoad::of(lengths, &quiet),
            event: result,
        })
    }

    /// The figures of `rekey`.
    #[must_use]
    pub fn rekey(&self) -> Option<&RekeyResult> {
        match &self.event {
            Some(EventResult::Rekey(found)) => Some(found),
            _ => None,
        }
    }

    /// The figures of `failover`.
    #[must_use]
    pub fn failover(&self) -> Option<&FailoverResult> {
        match &self.event {
            Some(EventResult::Failover(found)) => Some(found),
            _ => None,
        }
    }

    /// The figures of `reset`.
    #[must_use]
    pub fn reset(&self) -> Option<&ResetResult> {
        match &self.event {
            Some(EventResult::Reset(found)) => Some(found),
            _ => None,
        }
    }

    /// The figures of `setup`.
    #[must_use]
    pub fn setup(&self) -> Option<&SetupResult> {
        match &self.event {
            Some(EventResult::Setup(found)) => Some(found),
            _ => None,
        }
    }

    /// The figures of `desync`.
    #[must_use]
    pub fn desync(&self) -> Option<&DesyncResult> {
        match &self.event {
            Some(EventResult::Desync(found)) => Some(found),
            _ => None,
        }
    }

    /// The figures of `hostile`.
    #[must_use]
    pub const fn hostile(&self) -> Option<&HostileResult> {
        match &self.event {
            Some(EventResult::Hostile(found)) => Some(found),
            _ => None,
        }
    }

    /// Events of all kinds after which frames were still being lost when the time was up.
    #[must_use]
    pub fn not_recovered(&self) -> &[EventPlace] {
        match &self.event {
            Some(EventResult::Rekey(found)) => &found.not_recovered,
            Some(EventResult::Failover(found)) => &found.not_recovered,
            Some(EventResult::Reset(found)) => &found.not_recovered,
            Some(EventResult::Setup(found)) => &found.not_recovered,
            Some(EventResult::Desync(found)) => &found.not_recovered,
            Some(EventResult::Hostile(_)) | None => &[],
        }
    }
}

impl DisturbedLoad {
    fn of(lengths: &Lengths, trials: &[Trial<'_>]) -> Option<Self> {
        let counted: Vec<(u32, &FrameTrial)> = trials
            .iter()
            .map(|found| (found.repeat, found.trial))
            .collect();
        let timed: Vec<(u32, LatencyTrial)> = trials
            .iter()
            .map(|found| (found.repeat, timed(found)))
            .collect();
        let timed: Vec<(u32, &LatencyTrial)> = timed
            .iter()
            .map(|(repeat, timed)| (*repeat, timed))
            .collect();
        Some(Self {
            load: loads::result(lengths, None, &counted)?,
            latency: latency::result(None, &timed),
        })
    }

    /// Frames that left the sender, over all repeats.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.load.account.sent()
    }
}

/// Splits the trials into the control of each repeat, if the procedure has one, and the others.
fn sorted<'a>(event: &Event, repeats: &Repeats<'a>) -> (Vec<Trial<'a>>, Vec<Trial<'a>>) {
    let has_control = matches!(event, Event::Rekey { .. } | Event::Hostile { .. });
    let (mut quiet, mut others) = (Vec::new(), Vec::new());
    for (repeat, found) in repeats {
        for (place, disturbance) in found.disturbances().iter().enumerate() {
            let Some(trial) = found.trials.get(disturbance.trial) else {
                continue;
            };
            let calm = disturbance.events.is_empty() && disturbance.attack.is_none();
            // The control is the first trial of a repeat. A later trial without events is one that
            // ended before its first event.
            let kind = if has_control && place == 0 && calm {
                &mut quiet
            } else {
                &mut others
            };
            kind.push(Trial {
                repeat: *repeat,
                trial,
                disturbance,
            });
        }
    }
    (quiet, others)
}

fn timed(found: &Trial<'_>) -> LatencyTrial {
    // Pooling takes records of latency, and an event's trial keeps its histogram apart.
    let histogram = found.disturbance.histogram.clone();
    LatencyTrial {
        load: found.trial.load,
        frames: histogram.iter().map(|bucket| bucket.frames).total(),
        histogram,
        ..LatencyTrial::default()
    }
}

/// Frames received by frames sent, of each trial.
fn forwarded(trials: &[Trial<'_>]) -> Option<Estimate> {
    let share = |found: &Trial<'_>| ratio(found.trial.received, found.trial.sent);
    Estimate::of_all(trials.iter().map(|found| (found.repeat, share(found))))
}

/// One value for each event that has one.
fn over_events<'a>(
    events: impl IntoIterator<Item = (u32, &'a DutEvent)>,
    value: impl Fn(&DutEvent) -> Option<f64>,
) -> Option<Estimate> {
    let events = events.into_iter();
    // Events without a value are left out: an event that did not end has no time, and its number is
    // given apart.
    Estimate::of_known(events.map(|(repeat, event)| (repeat, value(event))))
}

/// Events with loss that continued until the next event, or the end.
fn not_recovered(found: &Trial<'_>) -> impl Iterator<Item = EventPlace> {
    let (repeat, events) = (found.repeat, (1..).zip(&found.disturbance.events));
    let lost = events.filter(|(_, event): &(u32, &DutEvent)| event.outage_ns.is_none());
    lost.map(move |(number, event)| EventPlace {
        repeat,
        number,
        name: event.name.clone(),
        at_ns: event.at_ns,
    })
}
