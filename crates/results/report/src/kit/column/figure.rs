//! The figures in a trial's rows of `results.csv`.

use crate::layout::evidence::measured;
use journal::record::{
    DeviceFatigue, DeviceResult, DeviceSpeed, Disturbance, DutEvent, FatigueSegment, FrameResult,
    FrameTrial, GoalBounds, KatRow, LatencyTrial, RecoveryTrial, SoakPoint, SoakSegment,
    SpeedTrial, TrialRecord,
};

/// The figure of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Figure<'a> {
    /// A goal of a search.
    Goal(&'a GoalBounds),
    /// A load of a `load` test or a loss curve.
    Load(&'a FrameTrial),
    /// Latency under a load.
    Latency(&'a LatencyTrial),
    /// The longest burst without loss.
    Burst(u64),
    /// Recovery from an overload.
    Recovery(&'a RecoveryTrial),
    /// A load with or without events at the device.
    Disturbance(&'a Disturbance, &'a FrameTrial),
    /// An event under such a load.
    Event(&'a DutEvent),
    /// A segment of a soak.
    Segment(&'a SoakSegment, &'a FrameTrial),
    /// A point of a segment.
    Point(&'a SoakSegment, &'a SoakPoint),
    /// A case of a functional trial.
    KnownAnswer(&'a KatRow),
    /// A crypto device's part of a speed trial.
    Speed(&'a SpeedTrial, &'a DeviceSpeed),
    /// A crypto device's part of a fatigue trial.
    Fatigue(&'a FatigueSegment, &'a DeviceFatigue),
}

impl Figure<'_> {
    /// Value of the `figure` column.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Goal(_) => "goal",
            Self::Load(_) => "load",
            Self::Latency(_) => "latency",
            Self::Burst(_) => "burst",
            Self::Recovery(_) => "recovery",
            Self::Disturbance(found, _) => disturbance_name(found),
            Self::Event(_) => "event",
            Self::Segment(..) => "segment",
            Self::Point(..) => "point",
            Self::KnownAnswer(_) => "known-answer",
            Self::Speed(..) => "speed",
            Self::Fatigue(..) => "fatigue",
        }
    }
}

/// The rows of a trial. A trial without figures has one row, without a figure.
pub(crate) fn figures(trial: &TrialRecord) -> Vec<Option<Figure<'_>>> {
    // Invalid and failed trials have a row as well, but no figures.
    let frames = measured(trial).and_then(|found| found.frames());
    let mut figures = frames.map_or_else(Vec::new, of_result);
    let devices = measured(trial).and_then(|found| found.device());
    figures.extend(devices.into_iter().flat_map(of_devices));
    if figures.is_empty() {
        vec![None]
    } else {
        figures.into_iter().map(Some).collect()
    }
}

fn of_result(found: &FrameResult) -> Vec<Figure<'_>> {
    // Searches may precede other procedures, which need their result as the load.
    let goals = found.throughput.iter().flat_map(|found| &found.goals);
    let mut figures: Vec<Figure<'_>> = goals.map(Figure::Goal).collect();
    // Other procedures also time frames, but not at shares of the throughput.
    let shares = found.latency.iter().filter(|trial| trial.percent.is_some());
    figures.extend(shares.map(Figure::Latency));
    figures.extend(found.recovery().map(Figure::Recovery));
    figures.extend(stats::longest_burst(found).map(Figure::Burst));
    figures.extend(disturbances(found));
    figures.extend(segments(found));
    // The trials of a search or of bursts are in the journal.
    if figures.is_empty() {
        figures.extend(found.trials.iter().map(Figure::Load));
    }
    figures
}

/// Each frame trial, followed by its events.
fn disturbances(found: &FrameResult) -> impl Iterator<Item = Figure<'_>> {
    found.disturbances().iter().flat_map(|one| {
        // The index comes from the journal, which may be damaged.
        let trial = found.trials.get(one.trial);
        let trial = trial.map(|trial| Figure::Disturbance(one, trial));
        trial
            .into_iter()
            .chain(one.events.iter().map(Figure::Event))
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
        let trial = found.trials.get(segment.trial);
        let whole = trial.map(|trial| Figure::Segment(segment, trial));
        let points = segment.points.iter();
        whole
            .into_iter()
            .chain(points.map(move |point| Figure::Point(segment, point)))
    })
}

/// The figures of crypto devices.
fn of_devices(found: &DeviceResult) -> impl Iterator<Item = Figure<'_>> {
    let known = found.kat().iter().map(Figure::KnownAnswer);
    let speeds = found.speed().into_iter().flat_map(|trial| {
        let devices = trial.devices.iter();
        devices.map(move |device| Figure::Speed(trial, device))
    });
    let fatigue = found.fatigue().iter().flat_map(|segment| {
        let devices = segment.devices.iter();
        devices.map(move |device| Figure::Fatigue(segment, device))
    });
    known.chain(speeds).chain(fatigue)
}
