//! A load for minutes to hours: the keys of `soak`.

use super::ProcedureConfig;
use super::disturbed::Load;
use crate::axis::{AxisValues, RUN_MAX, axis};
use crate::frames::rate::Rate;
use plan::{Axis, Coordinate, DriftBounds, Procedure, Soak, nanos};
use std::ops::RangeInclusive;
use std::time::Duration;
use units::Ratio;
use units::time::print;
use wire::mix::FrameMix;
use yaml::{Map, Node, Reported, Spanned};

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

const DURATION_DEFAULT: Duration = Duration::from_secs(120);
const DURATION_MIN: Duration = Duration::from_secs(1);
/// Each point also reads the device's processes, which should not become a load.
const POINT_MIN: Duration = Duration::from_millis(100);
/// Maximum number of points if their width is left open; none is then shorter than a second.
const POINTS_DEFAULT: u32 = 240;
/// Each is recorded.
const POINTS_MAX: u128 = 2000;
/// Number of segments if their length is left open, within these times.
const SEGMENTS_DEFAULT: u32 = 4;
const SEGMENT_DEFAULT: RangeInclusive<Duration> =
    Duration::from_secs(30)..=Duration::from_secs(600);
/// Bounds the time that an interrupted run loses.
const SEGMENT_MAX: Duration = Duration::from_secs(3600);
/// Each is recorded by itself.
const SEGMENTS_MAX: u128 = 1000;
const RATE_DRIFT_DEFAULT: Ratio = Ratio::from_percent(1);
const LATENCY_DRIFT_DEFAULT: Ratio = Ratio::from_percent(50);
const MEMORY_DRIFT_DEFAULT: Ratio = Ratio::from_percent(10);
const CPU_DRIFT_DEFAULT: Ratio = Ratio::from_percent(20);
const CAPACITY_DRIFT_DEFAULT: Ratio = Ratio::from_percent(20);
const PROBE_DEFAULT: Duration = Duration::from_secs(1);
/// Shorter probes measure the tester's start; longer ones become a load.
const PROBE: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(10);
const LOSS_MAX: Ratio = Ratio::from_percent(10);
/// A drift of less than a thousandth, or of 100 %, needs no bound.
const DRIFT: RangeInclusive<Ratio> = Ratio::from_ppm(1000)..=Ratio::from_percent(100);

pub(super) fn read(map: &Map<'_>) -> Result<Vec<Config>, Reported> {
    let load = Load::read(map);
    let durations: AxisValues<Duration> = axis(map, "duration", DURATION_DEFAULT, |node| {
        node.duration(DURATION_MIN..=RUN_MAX)
    });
    let point = time(map, "point", POINT_MIN..=RUN_MAX);
    let segment = time(map, "segment", DURATION_MIN..=SEGMENT_MAX);
    let loss = map.with_default("loss", Ratio::from_ppm(0), |node| {
        node.ratio(Ratio::from_ppm(0)..=LOSS_MAX)
    });
    let probe = map.with_default("probe", Some(PROBE_DEFAULT), |node| {
        node.word_or("off", |node: Node<'_>| node.duration(PROBE))
    });
    let drift = [
        ("rate_drift", RATE_DRIFT_DEFAULT),
        ("latency_drift", LATENCY_DRIFT_DEFAULT),
        ("memory_drift", MEMORY_DRIFT_DEFAULT),
        ("cpu_drift", CPU_DRIFT_DEFAULT),
        ("capacity_drift", CAPACITY_DRIFT_DEFAULT),
    ];
    let [rate, latency, memory, cpu, capacity] =
        drift.map(|(key, default)| map.with_default(key, default, |node| node.ratio(DRIFT)));
    let (load, durations, point, segment) = (load?, durations.all()?, point?, segment?);
    let drift = DriftBounds {
        rate_ppm: ppm(rate?),
        latency_ppm: ppm(latency?),
        memory_ppm: ppm(memory?),
        cpu_ppm: Some(ppm(cpu?)),
        capacity_ppm: Some(ppm(capacity?)),
    };
    let (loss_ppm, probe) = (ppm(loss?), probe?);
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

/// A time, or `auto`.
fn time(
    map: &Map<'_>,
    key: &'static str,
    range: RangeInclusive<Duration>,
) -> Result<Option<Spanned<Duration>>, Reported> {
    map.with_default(key, None, |node| {
        let time = node.word_or("auto", |node: Node<'_>| node.duration(range))?;
        Ok(time.map(|time| node.spanned(time)))
    })
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

/// A ratio of 100 % or less: it fits.
fn ppm(ratio: Ratio) -> u32 {
    u32::try_from(ratio.ppm()).unwrap_or(u32::MAX)
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
