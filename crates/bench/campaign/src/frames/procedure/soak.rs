//! A load for minutes to hours: the keys of `soak`.

use super::ProcedureConfig;
use super::disturbed::{LOAD, Load};
use crate::axis::{Axes, RUN_MAX};
use crate::frames::keys::{LOSS, SEARCHED, TRAFFIC};
use crate::frames::rate::Rate;
use crate::keys::{OF_ALL, millis, seconds};
use plan::{Axis, Coordinate, DriftBounds, Procedure, Soak, nanos};
use std::ops::RangeInclusive;
use std::time::Duration;
use units::Ratio;
use units::time::print;
use wire::mix::FrameMix;
use yaml::Absent::Default;
use yaml::{Key, Map, Node, Reported, Spanned, Value};

#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    OF_ALL,
    TRAFFIC,
    SEARCHED,
    LOAD,
    Key::new("duration", Value::Axis(&Value::Time(seconds(1), RUN_MAX)), Default("2 min"),
        "Time under load"),
    // Each point also reads the device's processes, which should not become a load.
    Key::new("point", Value::Or("auto", &Value::Time(millis(100), RUN_MAX)), Default("auto"),
        "Width of a point of the timeline; `auto`: whole seconds, 240 points or fewer")
        .range("100 ms to half of `duration`, at least a 2000th of it"),
    // An hour bounds the time that an interrupted run loses.
    Key::new("segment", Value::Or("auto", &Value::Time(seconds(1), seconds(3600))),
        Default("auto"),
        "Part that is measured and recorded as one unit: an interrupted run loses at most one. \
         Between two segments there is no load for some tenths of a second; `auto`: a quarter of \
         `duration`, from 30 s to 10 min")
        .range("a point to 1 h, at least a 1000th of `duration`"),
    // Shorter probes measure the tester's start; longer ones become a load.
    Key::new("probe", Value::Or("off", &Value::Time(millis(100), seconds(10))), Default("1 s"),
        "Overload that measures the capacity before each segment and after the last one, at the \
         line rate or as fast as the tester can. It costs its time and some tenths of a second \
         for each, in the pauses between segments, and counts in no other figure"),
    Key::new("loss", LOSS, Default("0 %"),
        "Highest share of lost frames, without the frames of probes"),
    Key::new("rate_drift", DRIFT, Default("1 %"),
        "Highest drift of the forwarding rate over `duration`"),
    Key::new("latency_drift", DRIFT, Default("50 %"), "The same for the median latency"),
    Key::new("memory_drift", DRIFT, Default("10 %"),
        "The same for the memory of the device's processes"),
    Key::new("cpu_drift", DRIFT, Default("20 %"), "The same for their CPU time by time"),
    Key::new("capacity_drift", DRIFT, Default("20 %"), "The same for the capacity by the probes"),
];
/// A drift of less than a thousandth, or of 100 %, needs no bound.
const DRIFT: Value = Value::Ratio(Ratio::from_ppm(1000), Ratio::from_percent(100));

#[derive(Debug)]
pub(super) struct Config {
    load: Load,
    duration: Duration,
    point: Duration,
    segment: Duration,
    probe: Option<Duration>,
    loss_ppm: u32,
    drift: DriftBounds,
}

/// Maximum number of points if their width is left open; none is then shorter than a second.
const POINTS_DEFAULT: u32 = 240;
/// Each is recorded.
const POINTS_MAX: u128 = 2000;
/// Number of segments if their length is left open, within these times.
const SEGMENTS_DEFAULT: u32 = 4;
const SEGMENT_DEFAULT: RangeInclusive<Duration> =
    Duration::from_secs(30)..=Duration::from_secs(600);
/// Each is recorded by itself.
const SEGMENTS_MAX: u128 = 1000;

pub(super) fn read(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let (load, axes) = (Load::read(map), Axes::of(map));
    let durations = axes.get::<Duration>("duration");
    let (point, segment) = (
        map.get::<Option<_>>("point"),
        map.get::<Option<_>>("segment"),
    );
    let (loss, probe) = (map.get("loss"), map.get("probe"));
    let (rate, latency) = (map.get("rate_drift"), map.get("latency_drift"));
    let (memory, cpu) = (map.get("memory_drift"), map.get("cpu_drift"));
    let capacity = map.get("capacity_drift");
    axes.done()?;
    let (load, point, segment) = (load?, point?, segment?);
    let drift = DriftBounds {
        rate_ppm: rate?,
        latency_ppm: latency?,
        memory_ppm: memory?,
        cpu_ppm: Some(cpu?),
        capacity_ppm: Some(capacity?),
    };
    let (loss_ppm, probe) = (loss?, probe?);
    let of = |duration: Spanned<Duration>| {
        // `auto` depends on the duration, so each value of this axis has its points and segments.
        let times = times(map, &duration, point.as_ref(), segment.as_ref())?;
        Ok(Config {
            load: load.clone(),
            duration: duration.value,
            point: times.0,
            segment: times.1,
            probe,
            loss_ppm,
            drift,
        })
    };
    durations.into_iter().map(of).collect()
}

/// Returns the widths of points and of segments for a duration; given widths are kept.
fn times(
    map: &Map<'_>,
    duration: &Spanned<Duration>,
    point: Option<&Spanned<Duration>>,
    segment: Option<&Spanned<Duration>>,
) -> Result<(Duration, Duration), Reported> {
    let whole = duration.value;
    let mistake = |at: &Spanned<Duration>, what: String, help: &str| {
        Err(map.node().mistake_at(&at.place, what, help))
    };
    if let Some(point) = point {
        // One point is no timeline: drift shows between two.
        let points = whole.as_nanos() / point.value.as_nanos().max(1);
        if points < 2 {
            let what = format!(
                "points of {} are no timeline of {}",
                print(point.value),
                print(whole)
            );
            return mistake(point, what, "lower `point`, or leave it out");
        }
        if points > POINTS_MAX {
            let what = format!(
                "{} has {points} points of {}",
                print(whole),
                print(point.value)
            );
            let help = format!("raise `point`, or leave it out: at most {POINTS_MAX} are recorded");
            return mistake(point, what, &help);
        }
    }
    let point_width = point.map_or_else(|| points_of(whole), |point| point.value);
    let Some(segment) = segment else {
        let wanted = whole / SEGMENTS_DEFAULT;
        // A soak shorter than one default segment is a single one: the last segment takes the
        // rest.
        let wanted = wanted.clamp(*SEGMENT_DEFAULT.start(), *SEGMENT_DEFAULT.end());
        return Ok((point_width, whole_points(wanted, point_width)));
    };
    // A point does not continue in the next segment, which is a separate trial.
    if segment.value < point_width {
        let what = format!(
            "segments of {} are shorter than a point of {}",
            print(segment.value),
            print(point_width)
        );
        return mistake(segment, what, "raise `segment`, or lower `point`");
    }
    let segments = whole.as_nanos() / segment.value.as_nanos().max(1);
    if segments > SEGMENTS_MAX {
        let what = format!(
            "{} has {segments} segments of {}",
            print(whole),
            print(segment.value)
        );
        let help = format!("raise `segment`, or leave it out: at most {SEGMENTS_MAX} are recorded");
        return mistake(segment, what, &help);
    }
    Ok((point_width, segment.value))
}

/// Whole seconds.
fn points_of(duration: Duration) -> Duration {
    let width = duration / POINTS_DEFAULT;
    let seconds = width.as_secs() + u64::from(width.subsec_nanos() > 0);
    Duration::from_secs(seconds.max(1))
}

/// At least this long.
fn whole_points(time: Duration, point: Duration) -> Duration {
    let points = time.as_nanos().div_ceil(point.as_nanos().max(1));
    // A segment is no longer than a run, and its points are no shorter than 100 ms.
    point * u32::try_from(points).unwrap_or(u32::MAX)
}

impl ProcedureConfig for Config {
    fn resolve(&self, mix: &FrameMix) -> Procedure {
        Procedure::Soak(Soak {
            load: self.load.resolve(mix),
            duration_ns: nanos(self.duration),
            point_ns: nanos(self.point),
            segment_ns: nanos(self.segment),
            probe_ns: self.probe.map(nanos),
            loss_ppm: self.loss_ppm,
            drift: self.drift,
        })
    }

    fn loads(&self) -> Vec<&Spanned<Rate>> {
        self.load.loads()
    }

    fn check(&self, node: Node<'_>, mixes: &[&FrameMix]) {
        self.load.check(node, mixes, (self.point, 100));
    }

    fn coordinates(&self) -> Vec<Coordinate> {
        let mut at = vec![Axis::Duration.at(self.duration)];
        at.extend(self.load.coordinates());
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_and_segments_that_are_left_open_grow_with_the_time() {
        let second = Duration::from_secs(1);
        let times = |seconds: u32| {
            let point = points_of(second * seconds);
            (point.as_secs(), point)
        };
        assert_eq!(times(10).0, 1);
        assert_eq!(times(240).0, 1);
        assert_eq!(times(241).0, 2);
        assert_eq!(times(2 * 3600).0, 30);
        assert_eq!(times(20 * 3600).0, 300);
        assert_eq!(whole_points(second * 30, second * 7), second * 35);
    }
}
