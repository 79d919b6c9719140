//! Failures with recovery, and tunnels taken down and set up.

use super::{DisturbedLoad, Trial, over_events};
use crate::figures::estimate::Estimate;
use crate::figures::frames::rates::Lengths;
use crate::figures::repeats::per_second;
use journal::record::DutEvent;
use plan::Failure;
use schemars::JsonSchema;
use serde::Serialize;

/// Durations of events. Some events may have no end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct EventTimes {
    /// Events, over all repeats.
    pub events: u32,
    /// Over the events that ended; `null` if none did.
    pub ended_ns: Option<Estimate>,
    /// Median of all, with events without an end as the longest; `null` when the median is one of
    /// these.
    pub median_ns: Option<f64>,
    /// Longest; `null` if one has no end.
    pub max_ns: Option<f64>,
}

/// Identifies an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EventPlace {
    /// From 1.
    pub repeat: u32,
    /// From 1, among the events of its kind in the repeat.
    pub number: u32,
    /// `crash`, `link-down`, `set-up`.
    pub name: String,
    /// Its beginning, from the first frame's intended time.
    pub at_ns: u64,
}

/// A part of the path that fails and comes back.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FailoverResult {
    /// What fails: `crash`, `link`, or `bypass`, a crash with another route past the encryptor.
    pub failure: String,
    /// Failures, over all repeats.
    pub failures: u32,
    /// From the failure to the beginning of the recovery action, as configured in the campaign;
    /// over the failures.
    pub down_ns: Option<Estimate>,
    /// From the failure to the last loss, the time down included; over the failures.
    pub outage_ns: EventTimes,
    /// From the beginning of the recovery action to the last loss; over the failures.
    pub after_mending_ns: EventTimes,
    /// From the beginning of the recovery action to the first received frame; over the failures.
    pub first_frame_ns: EventTimes,
    /// From the beginning of the recovery action until the device reports its completion; over the
    /// failures.
    pub ready_ns: Option<Estimate>,
    /// Frames lost in a failure; over the failures.
    pub lost_frames: Option<Estimate>,
    /// Failures after which frames were still being lost at the next failure, or the end.
    pub not_recovered: Vec<EventPlace>,
    /// Frames of the stations between the gateways in clear, over all failures: 0 of an encryptor
    /// that fails closed. Only with `bypass`; `null` if no filter saw every frame, or too few of
    /// the foreign ones were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clear_frames: Option<u64>,
    /// The load of the whole trials.
    pub disturbed: DisturbedLoad,
}

/// All tunnels taken down and set up again.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SetupResult {
    /// Tunnels that carry the load.
    pub tunnels: u32,
    /// Set-ups, over all repeats.
    pub set_ups: u32,
    /// From the command to the first received frame; over the set-ups.
    pub first_frame_ns: EventTimes,
    /// From the command to the last loss, after which all tunnels carry frames; over the set-ups.
    pub all_carry_ns: EventTimes,
    /// Tunnels divided by that time, or by the reported time below if it is longer, since the
    /// device may hold frames back without losing them; over the set-ups that completed.
    pub tunnels_per_s: Option<Estimate>,
    /// From the command until the device reports that all are up; over the set-ups.
    pub ready_ns: Option<Estimate>,
    /// Duration of taking them down; over the set-ups.
    pub take_down_ns: Option<Estimate>,
    /// Frames lost from taking down to the next time; over the set-ups.
    pub lost_frames: Option<Estimate>,
    /// Set-ups after which frames were still being lost at the next one, or the end.
    pub not_recovered: Vec<EventPlace>,
    /// The load of the whole trials.
    pub disturbed: DisturbedLoad,
}

/// An event that broke the path, and the recovery that followed, if any.
struct Breach<'a> {
    repeat: u32,
    /// From 1 in its repeat.
    number: u32,
    broke: &'a DutEvent,
    mended: Option<&'a DutEvent>,
}

impl EventTimes {
    pub(super) fn of(times: impl Iterator<Item = (u32, Option<u64>)>) -> Self {
        let times: Vec<(u32, Option<u64>)> = times.collect();
        let ended = times
            .iter()
            .map(|&(repeat, time)| (repeat, time.map(|time| time as f64)));
        let ended_ns = Estimate::of_known(ended);
        let mut all: Vec<f64> = times
            .iter()
            // An event without an end lasted longer than any that ended, so it belongs at the top
            // of the order. Left out, it would make the median look better.
            .map(|(_, time)| time.map_or(f64::INFINITY, |time| time as f64))
            .collect();
        all.sort_by(f64::total_cmp);
        let finite = |value: f64| value.is_finite().then_some(value);
        let n = all.len();
        Self {
            events: u32::try_from(n).unwrap_or(u32::MAX),
            ended_ns,
            median_ns: match n {
                0 => None,
                _ => finite((all[(n - 1) / 2] + all[n / 2]) / 2.0),
            },
            max_ns: all.last().copied().and_then(finite),
        }
    }

    /// Events that did not end.
    #[must_use]
    pub fn endless(&self) -> u32 {
        self.events - self.ended_ns.as_ref().map_or(0, |ended| ended.n)
    }
}

/// Pairs each event of the first name with the event of the second name that follows it.
fn breaches<'a>(trials: &[Trial<'a>], broke: &str, mended: &str) -> Vec<Breach<'a>> {
    let mut found: Vec<Breach<'a>> = Vec::new();
    for trial in trials {
        // Numbers begin anew in each repeat, since a reader looks an event up in its trial.
        let mut number = 0;
        for event in &trial.disturbance.events {
            if event.name == broke {
                number += 1;
                found.push(Breach {
                    repeat: trial.repeat,
                    number,
                    broke: event,
                    mended: None,
                });
            } else if event.name == mended
                // The last breach may be of an earlier repeat, which no event of this one can
                // end.
                && let Some(last) = found.last_mut().filter(|last| last.repeat == trial.repeat)
            {
                // A later recovery replaces an earlier one: the breach ends with the last.
                last.mended = Some(event);
            }
        }
    }
    found
}

impl Breach<'_> {
    fn down_ns(&self) -> Option<u64> {
        self.mended?.at_ns.checked_sub(self.broke.at_ns)
    }

    /// From the event that broke the path to the last loss; `None` if loss continued.
    fn outage_ns(&self) -> Option<u64> {
        match self.mended?.outage_ns? {
            // Frames were lost before it, if at all.
            0 => self.broke.outage_ns.or_else(|| self.down_ns()),
            // The time after the recovery counts from the recovery, and the outage from the
            // failure.
            after => self.down_ns()?.checked_add(after),
        }
    }

    fn lost(&self) -> u64 {
        let after = self.mended.map_or(0, |mended| mended.lost);
        self.broke.lost.saturating_add(after)
    }

    fn place(&self, name: &str) -> EventPlace {
        EventPlace {
            repeat: self.repeat,
            number: self.number,
            name: name.to_owned(),
            // Each kind of event is placed at its beginning, which for a set-up is the second
            // event of the pair.
            at_ns: if name == self.broke.name {
                self.broke.at_ns
            } else {
                self.mended.map_or(self.broke.at_ns, |mended| mended.at_ns)
            },
        }
    }
}

/// The recovery of each, if any.
fn mendings<'a>(breaches: &[Breach<'a>]) -> impl Iterator<Item = (u32, &'a DutEvent)> {
    breaches
        .iter()
        .filter_map(|breach| Some((breach.repeat, breach.mended?)))
}

fn times(breaches: &[Breach<'_>], time: impl Fn(&Breach<'_>) -> Option<u64>) -> EventTimes {
    EventTimes::of(breaches.iter().map(|breach| (breach.repeat, time(breach))))
}

fn over_breaches(
    breaches: &[Breach<'_>],
    value: impl Fn(&Breach<'_>) -> Option<u64>,
) -> Option<Estimate> {
    let values = breaches
        .iter()
        .map(|breach| (breach.repeat, value(breach).map(|value| value as f64)));
    Estimate::of_known(values)
}

/// Returns the events with loss that continued.
fn not_recovered(breaches: &[Breach<'_>], name: &str) -> Vec<EventPlace> {
    let lost = breaches.iter().filter(|one| one.outage_ns().is_none());
    lost.map(|one| one.place(name)).collect()
}

impl FailoverResult {
    pub(super) fn of(failure: Failure, lengths: &Lengths, trials: &[Trial<'_>]) -> Option<Self> {
        let (broke, mended) = match failure {
            Failure::Crash | Failure::Bypass => ("crash", "restart"),
            Failure::Link => ("link-down", "link-up"),
        };
        let all = breaches(trials, broke, mended);
        Some(Self {
            failure: failure.name().into(),
            failures: u32::try_from(all.len()).unwrap_or(u32::MAX),
            down_ns: over_breaches(&all, |one| one.down_ns()),
            outage_ns: times(&all, |one| one.outage_ns()),
            after_mending_ns: times(&all, |one| one.mended?.outage_ns),
            first_frame_ns: times(&all, |one| one.mended?.first_ns),
            ready_ns: over_events(mendings(&all), |event| Some(event.took_ns as f64)),
            lost_frames: over_breaches(&all, |one| Some(one.lost())),
            not_recovered: not_recovered(&all, broke),
            clear_frames: (failure == Failure::Bypass)
                .then(|| clear_frames(trials))
                .flatten(),
            disturbed: DisturbedLoad::of(lengths, trials)?,
        })
    }

    /// Whether no frame was in clear when the encryptor was dead, with another way open; `None` if
    /// this was not tested.
    #[must_use]
    pub fn fails_closed(&self) -> Option<bool> {
        (self.failures > 0).then_some(())?;
        self.clear_frames.map(|frames| frames == 0)
    }
}

/// Foreign frames of a trial that were surely all looked at for the stations' marker: the filter
/// counts every foreign frame, but only the first ones fit into its socket's buffer, and of jumbo
/// frames these are fewest.
const LOOKED_AT_MIN: u64 = 15;

/// Frames of the stations in clear; `None` if no trial shows one, and one does not show that there
/// was none. Frames without the stations' marker, of another program, are not among them.
fn clear_frames(trials: &[Trial<'_>]) -> Option<u64> {
    let of_trial = |trial: &Trial<'_>| {
        let watch = trial.trial.readings.as_ref()?.watch.as_ref()?;
        let (foreign, marked) = (watch.foreign_frames, watch.marker_frames);
        match marked {
            // Frames of another program may have filled the buffer before the first of the
            // stations, so that the marker was not found proves nothing.
            0 => (foreign <= LOOKED_AT_MIN).then_some(0),
            // The leak is the load, which itself filled the buffer: it goes on with the others.
            _ if foreign > LOOKED_AT_MIN && marked >= LOOKED_AT_MIN => Some(foreign),
            // Among frames of another program only those with the marker are known to be theirs.
            _ => Some(marked),
        }
    };
    let found: Vec<Option<u64>> = trials.iter().map(of_trial).collect();
    let known = found.iter().copied().flatten();
    let leaked = known.fold(0, u64::saturating_add);
    // A leak in one trial is proven, however little the others show.
    (leaked > 0 || found.iter().all(Option::is_some)).then_some(leaked)
}

impl SetupResult {
    pub(super) fn of(tunnels: u32, lengths: &Lengths, trials: &[Trial<'_>]) -> Option<Self> {
        let all = breaches(trials, "take-down", "set-up");
        let rate =
            // A device may hold frames in its queues until a tunnel is up, so that none is lost.
            // Then its report is the later time.
            |event: &DutEvent| per_second(tunnels.into(), event.outage_ns?.max(event.took_ns));
        Some(Self {
            tunnels,
            set_ups: u32::try_from(all.len()).unwrap_or(u32::MAX),
            first_frame_ns: times(&all, |one| one.mended?.first_ns),
            all_carry_ns: times(&all, |one| one.mended?.outage_ns),
            tunnels_per_s: over_events(mendings(&all), rate),
            ready_ns: over_events(mendings(&all), |event| Some(event.took_ns as f64)),
            take_down_ns: over_breaches(&all, |one| Some(one.broke.took_ns)),
            lost_frames: over_breaches(&all, |one| Some(one.lost())),
            not_recovered: not_recovered(&all, "set-up"),
            disturbed: DisturbedLoad::of(lengths, trials)?,
        })
    }
}
