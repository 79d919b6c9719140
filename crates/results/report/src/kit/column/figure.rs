//! The figures in a trial's rows of `results.csv`.

use crate::layout::evidence::measured;
use journal::record::{
    AttackTrial, DeviceFatigue, DeviceResult, DeviceSpeed, Disturbance, DutEvent, FatigueSegment,
    FrameResult, FrameTrial, GoalBounds, KatRow, LatencyBucket, LatencyTrial, RecoveryTrial,
    SoakPoint, SoakSegment, SpeedTrial, TrialRecord,
};

/// The figure of a row: the parts of the trial that columns read. A row has few of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figure<'a> {
    /// Value of the `figure` column; `None` if the trial has no figure.
    pub(crate) name: Option<&'static str>,
    /// A goal of a search.
    pub(crate) goal: Option<&'a GoalBounds>,
    /// A load of a `load` test or a loss curve, with or without events, or of a segment of a soak.
    pub(crate) load: Option<&'a FrameTrial>,
    /// Latency under a load.
    pub(crate) latency: Option<&'a LatencyTrial>,
    /// The frames' times, of latency or of a load.
    pub(crate) histogram: Option<&'a [LatencyBucket]>,
    /// The longest burst without loss.
    pub(crate) burst: Option<u64>,
    /// Recovery from an overload.
    pub(crate) recovery: Option<&'a RecoveryTrial>,
    /// Hostile packets added to a load.
    pub(crate) attack: Option<AttackTrial>,
    /// An event under a load.
    pub(crate) event: Option<&'a DutEvent>,
    /// A segment of a soak, or the segment of a point.
    pub(crate) segment: Option<&'a SoakSegment>,
    /// A point of a segment.
    pub(crate) point: Option<&'a SoakPoint>,
    /// A case of a functional trial.
    pub(crate) known_answer: Option<&'a KatRow>,
    /// A crypto device's part of a speed trial.
    pub(crate) speed: Option<(&'a SpeedTrial, &'a DeviceSpeed)>,
    /// A crypto device's part of a fatigue trial.
    pub(crate) fatigue: Option<(&'a FatigueSegment, &'a DeviceFatigue)>,
}

impl Figure<'_> {
    fn named(name: &'static str) -> Self {
        Self {
            name: Some(name),
            ..Self::default()
        }
    }
}

/// The rows of a trial. A trial without figures has one row, without a figure.
pub(crate) fn figures(trial: &TrialRecord) -> Vec<Figure<'_>> {
    // Invalid and failed trials have a row as well, but no figures.
    let frames = measured(trial).and_then(|found| found.frames());
    let mut figures = frames.map_or_else(Vec::new, of_result);
    // A trial has frames or devices, never both.
    let devices = measured(trial).and_then(|found| found.device());
    figures.extend(devices.into_iter().flat_map(of_devices));
    if figures.is_empty() {
        figures.push(Figure::default());
    }
    figures
}

fn of_result(found: &FrameResult) -> Vec<Figure<'_>> {
    // Searches may precede other procedures, which need their result as the load.
    let goals = found.throughput.iter().flat_map(|found| &found.goals);
    let goals = goals.map(|goal| Figure {
        goal: Some(goal),
        ..Figure::named("goal")
    });
    let mut figures: Vec<Figure<'_>> = goals.collect();
    // Other procedures also time frames, but not at shares of the throughput.
    let shares = found.latency.iter().filter(|trial| trial.percent.is_some());
    figures.extend(shares.map(|trial| Figure {
        latency: Some(trial),
        histogram: Some(&trial.histogram),
        ..Figure::named("latency")
    }));
    figures.extend(found.recovery().map(|trial| Figure {
        recovery: Some(trial),
        ..Figure::named("recovery")
    }));
    figures.extend(stats::longest_burst(found).map(|frames| Figure {
        burst: Some(frames),
        ..Figure::named("burst")
    }));
    figures.extend(disturbances(found));
    figures.extend(segments(found));
    // The trials of a search or of bursts are in the journal.
    if figures.is_empty() {
        figures.extend(found.trials.iter().map(|trial| Figure {
            load: Some(trial),
            ..Figure::named("load")
        }));
    }
    figures
}

/// Each frame trial, followed by its events.
fn disturbances(found: &FrameResult) -> impl Iterator<Item = Figure<'_>> {
    found.disturbances().iter().flat_map(|one| {
        // The index comes from the journal, which may be damaged.
        let trial = found.trials.get(one.trial).map(|trial| Figure {
            load: Some(trial),
            histogram: Some(&one.histogram),
            attack: one.attack,
            ..Figure::named(disturbance_name(one))
        });
        let events = one.events.iter().map(|event| Figure {
            event: Some(event),
            ..Figure::named("event")
        });
        trial.into_iter().chain(events)
    })
}

/// Name of the row of a frame trial.
const fn disturbance_name(found: &Disturbance) -> &'static str {
    match (found.events.is_empty(), found.attack.is_some()) {
        (_, true) => "hostile",
        (false, _) => "disturbed",
        (true, _) => "quiet",
    }
}

/// Each segment, followed by its points.
fn segments(found: &FrameResult) -> impl Iterator<Item = Figure<'_>> {
    found.soak().iter().flat_map(|segment| {
        // The index comes from the journal, which may be damaged.
        let whole = found.trials.get(segment.trial).map(|trial| Figure {
            load: Some(trial),
            histogram: Some(&segment.histogram),
            segment: Some(segment),
            ..Figure::named("segment")
        });
        let points = segment.points.iter().map(move |point| Figure {
            segment: Some(segment),
            point: Some(point),
            ..Figure::named("point")
        });
        whole.into_iter().chain(points)
    })
}

/// The figures of crypto devices.
fn of_devices(found: &DeviceResult) -> impl Iterator<Item = Figure<'_>> {
    let known = found.kat().iter().map(|case| Figure {
        known_answer: Some(case),
        ..Figure::named("known-answer")
    });
    let speeds = found.speed().into_iter().flat_map(|trial| {
        trial.devices.iter().map(move |device| Figure {
            speed: Some((trial, device)),
            ..Figure::named("speed")
        })
    });
    let fatigue = found.fatigue().iter().flat_map(|segment| {
        segment.devices.iter().map(move |device| Figure {
            fatigue: Some((segment, device)),
            ..Figure::named("fatigue")
        })
    });
    known.chain(speeds).chain(fatigue)
}
