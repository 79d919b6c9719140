//! Contradictions of frame tests.

use super::{Contradictions, sum};
use crate::record::{
    Disturbance, FrameResult, FrameTrial, LatencyBucket, LatencyTrial, SearchRecord, SoakSegment,
};
use plan::Cell;
use std::ops::RangeInclusive;

/// A percentile may exceed the maximum by one part in this many: percentiles of a soak's points are
/// the upper bounds of buckets, which are 3 % wide.
const BUCKET: u64 = 25;

pub(super) fn of_result(result: &FrameResult, cell: Option<&Cell>, found: &mut Contradictions) {
    // Without a cell there are no sizes to compare bytes with: counts are still checked.
    let sizes = cell.and_then(sizes);
    for trial in &result.trials {
        of_trial(trial, sizes.clone(), found);
    }
    let trials = result.trials.len();
    // Later stages index the list of trials by these.
    let mut exists = |index: usize, what: &str| {
        found.unless(index < trials, || {
            format!("{what} is number {index} of {trials} frame trials")
        });
    };
    for (index, what) in [
        (result.evidence_trial, "the trial of the evidence"),
        (result.flood_trial, "the trial of the highest load"),
    ] {
        if let Some(index) = index {
            exists(index, what);
        }
    }
    for disturbance in result.disturbances() {
        exists(disturbance.trial, "a trial with events");
    }
    for segment in result.soak() {
        exists(segment.trial, "a segment's trial");
    }
    let searches = [result.throughput.as_ref(), result.rekeyed_throughput()];
    for throughput in searches.into_iter().flatten() {
        of_throughput(throughput, found);
    }
    for latency in &result.latency {
        of_latency(latency, found);
    }
    for burst in result.bursts() {
        found.part((burst.lost, "lost"), (burst.frames, "frames of a burst"));
    }
    found.measurable("bursts", result.bursts().iter().map(|burst| burst.frames));
    if let Some(recovery) = result.recovery() {
        // Both lost counts are of different loads, so that neither bounds the other.
        let loads = [recovery.overload, recovery.relief, recovery.recovery_ns];
        found.measurable("a recovery", loads);
        let lost = [recovery.overload_lost, recovery.relief_lost];
        found.measurable("frames lost", lost);
    }
    for disturbance in result.disturbances() {
        of_disturbance(disturbance, found);
    }
    for segment in result.soak() {
        of_segment(segment, found);
    }
}

/// Smallest and largest frame of a cell's mix, in bytes.
fn sizes(cell: &Cell) -> Option<RangeInclusive<u64>> {
    let test = cell.measurement.frames()?;
    let shares = test.traffic.frames.mix.shares.iter();
    let sizes = shares.map(|share| u64::from(share.frame_bytes));
    // `None` of an empty mix: a changed plan may have one.
    Some(sizes.clone().min()?..=sizes.max()?)
}

type Count = fn(&FrameTrial) -> u64;

/// `sizes`: of the frames, in bytes; `None` if they are not known.
pub(super) fn of_trial(
    trial: &FrameTrial,
    sizes: Option<RangeInclusive<u64>>,
    found: &mut Contradictions,
) {
    of_counts(trial, sizes.clone(), found);
    let directions = trial.directions.as_slice();
    if directions.is_empty() {
        return;
    }
    // Not nested: sums over directions would count deeper ones twice.
    // One loaded direction has no list.
    let is_pair = directions.len() == 2 && directions.iter().all(|own| own.directions.is_empty());
    found.unless(is_pair, || {
        format!("{} loaded directions", directions.len())
    });
    for own in directions {
        of_counts(own, sizes.clone(), found);
        // The sum of two directions has the load of each, not their sum.
        let is_same = own.load == trial.load && own.duration_ns == trial.duration_ns;
        found.unless(is_same, || {
            format!("{} frames/s, and {} in one direction", trial.load, own.load)
        });
    }
    let counts: [(&str, Count); 13] = [
        // Maxima, as the longest delay of a sender, are no sums and are not here.
        ("intended", |own| own.intended),
        ("sent", |own| own.sent),
        ("bytes sent", |own| own.sent_bytes),
        ("received", |own| own.received),
        ("bytes received", |own| own.received_bytes),
        ("duplicated", |own| own.duplicated),
        ("too late", |own| own.too_late),
        ("out of order", |own| own.reordered),
        ("damaged", |own| own.corrupted),
        ("after the end", |own| own.after_end),
        ("lost by the receiver", |own| own.receiver_dropped),
        ("lost by the sender", |own| own.sender_dropped),
        ("late", |own| own.late_frames),
    ];
    for (what, count) in counts {
        let of_each = sum(directions.iter().map(count));
        found.unless(of_each == count(trial), || {
            format!("{} {what}, but {of_each} in its directions", count(trial))
        });
    }
}

fn of_counts(trial: &FrameTrial, sizes: Option<RangeInclusive<u64>>, found: &mut Contradictions) {
    let intended = (trial.intended, "frames intended");
    let sent = (trial.sent, "frames sent");
    let received = (trial.received, "frames received");
    let counts = [trial.load, trial.intended, trial.duplicated, trial.too_late];
    found.measurable("frames", counts);
    let damaged = [trial.corrupted, trial.after_end];
    let dropped = [trial.receiver_dropped, trial.sender_dropped];
    found.measurable("frames", [damaged, dropped].concat());
    found.measurable("bytes", [trial.sent_bytes]);
    let times = [trial.duration_ns, trial.elapsed_ns, trial.late_ns_max];
    found.measurable("times in ns", times);
    found.measurable("times in ns", [trial.receiver_stood_ns_max]);
    found.part((trial.sent, "sent"), intended);
    found.part((trial.late_frames, "late"), intended);
    // Each is counted once: duplicates are in another count.
    found.part((trial.received, "received"), sent);
    found.part((trial.reordered, "out of order"), received);
    let bytes = (trial.sent_bytes, "bytes sent");
    found.part((trial.received_bytes, "bytes received"), bytes);
    if let Some(sizes) = sizes {
        let sent = (trial.sent, trial.sent_bytes, "sent");
        let received = (trial.received, trial.received_bytes, "received");
        for (frames, bytes, what) in [sent, received] {
            // Bytes of a mix depend on which frames arrived; only the bounds are known.
            let least = frames.saturating_mul(*sizes.start());
            // Saturates: a changed count may be as large as a number can be.
            let most = frames.saturating_mul(*sizes.end());
            found.unless((least..=most).contains(&bytes), || {
                let (low, high) = (sizes.start(), sizes.end());
                format!("{bytes} B {what} in {frames} frames of {low} to {high} B")
            });
        }
    }
    found.unless(trial.duration_ns > 0 || trial.intended == 0, || {
        format!("{} frames intended in no time", trial.intended)
    });
    // From the first frame to the last: of one frame it is zero.
    found.unless(trial.elapsed_ns > 0 || trial.sent <= 1, || {
        format!("{} frames sent in no time", trial.sent)
    });
    found.unless(
        trial.late_frames == 0 || trial.late_ns_max > FrameTrial::LATE_NS,
        || {
            format!(
                "{} frames more than 1 ms late, the latest of them {} ns",
                trial.late_frames, trial.late_ns_max
            )
        },
    );
}

pub(super) fn of_throughput(throughput: &SearchRecord, found: &mut Contradictions) {
    found.measurable("a search", [throughput.max_load, throughput.took_ns]);
    let most = (throughput.max_load, "frames/s, the highest load");
    for goal in &throughput.goals {
        let name = &goal.goal;
        for bound in [goal.lower, goal.upper].into_iter().flatten() {
            found.part((bound, "frames/s, a bound,"), most);
        }
        if let (Some(lower), Some(upper)) = (goal.lower, goal.upper) {
            // A load cannot both meet a goal and miss it.
            found.unless(lower < upper, || {
                format!("`{name}` has the lower bound {lower} and the upper bound {upper} frames/s")
            });
        }
        let rate = goal.conditional_throughput;
        // The received frames of the load at the lower bound cannot exceed that load.
        let highest = goal.lower.unwrap_or(0) as f64;
        found.unless(
            (0.0..=highest.mul_add(1.000_001, 1.0)).contains(&rate),
            || format!("`{name}` has a throughput of {rate} frames/s at a load of {highest}"),
        );
        for (bound, trials, what) in [
            (goal.lower, goal.lower_trials, "lower"),
            (goal.upper, goal.upper_trials, "upper"),
        ] {
            // Bounds are loads that were tried.
            found.unless(bound.is_none() || trials > 0, || {
                format!("no trial at the {what} bound of `{name}`")
            });
        }
    }
}

fn of_latency(latency: &LatencyTrial, found: &mut Contradictions) {
    // Percentiles are read from the histogram, and their number from the count.
    let counted = of_histogram(&latency.histogram, found);
    found.unless(counted == latency.frames, || {
        format!(
            "{} frames timed, but {counted} in the histogram",
            latency.frames
        )
    });
    let directions = latency.directions.iter();
    let each = sum(directions.map(|one| of_histogram(one, found)));
    found.unless(latency.directions.is_empty() || each == counted, || {
        format!("{counted} frames timed, but {each} in both directions")
    });
    if let Some(reflection) = &latency.round_trip {
        of_histogram(&reflection.residence, found);
    }
}

/// Returns the number of frames of a histogram, and checks that its buckets rise.
fn of_histogram(histogram: &[LatencyBucket], found: &mut Contradictions) -> u64 {
    found.rising(
        "latencies in ns",
        histogram.iter().map(|bucket| bucket.upto_ns),
    );
    let frames = histogram.iter().map(|bucket| bucket.frames);
    found.measurable("frames of a histogram", frames.clone());
    found.measurable(
        "a latency in ns",
        histogram.last().map(|bucket| bucket.upto_ns),
    );
    sum(frames)
}

fn of_disturbance(disturbance: &Disturbance, found: &mut Contradictions) {
    let bins = &disturbance.timeline.bins;
    of_times(
        bins.iter().map(|bin| (bin.intended, bin.received)),
        "the timeline",
        found,
    );
    found.unless(disturbance.timeline.bin_ns > 0 || bins.is_empty(), || {
        "bins of no width".into()
    });
    found.rising(
        "events in ns",
        disturbance.events.iter().map(|event| event.at_ns),
    );
    of_histogram(&disturbance.histogram, found);
}

/// Checks counts by intended time, as (intended, received). Only their sums are exact: a frame near
/// the end of a bin may be counted in the next.
fn of_times(
    counts: impl Iterator<Item = (u64, u64)> + Clone,
    place: &str,
    found: &mut Contradictions,
) {
    let intended = sum(counts.clone().map(|(intended, _)| intended));
    let received = sum(counts.map(|(_, received)| received));
    found.measurable("frames", [intended]);
    found.unless(received <= intended, || {
        format!("{received} received of {intended} frames intended in {place}")
    });
}

pub(super) fn of_segment(segment: &SoakSegment, found: &mut Contradictions) {
    let points = &segment.points;
    of_times(
        points.iter().map(|point| (point.intended, point.received)),
        "the points of a soak",
        found,
    );
    found.measurable("a point", [segment.point_ns]);
    found.measurable(
        "a silence in ns",
        points.iter().map(|point| point.silent_ns),
    );
    found.rising("points in ns", points.iter().map(|point| point.at_ns));
    for point in points {
        // The maximum is exact, and percentiles are upper bounds of buckets, which may be above
        // it.
        let max_ns = point.max_ns.saturating_add(point.max_ns / BUCKET + 1);
        // A point without a received frame has none of them.
        let percentiles = [point.p50_ns, point.p99_ns, Some(max_ns)];
        found.rising("percentiles in ns", percentiles.into_iter().flatten());
        found.measurable("a latency in ns", [point.max_ns, point.at_ns]);
        if let Some(device) = &point.device {
            let read = [
                device.cpu_ns,
                device.resident_bytes,
                device.rekeys,
                device.desyncs,
            ];
            found.measurable(
                "a reading",
                read.into_iter().flatten().chain([device.wall_ns]),
            );
            let spent = device.cpu_ns.unwrap_or(0);
            found.unless(device.wall_ns > 0 || spent == 0, || {
                format!("{spent} ns of CPU time in no time")
            });
        }
    }
    of_histogram(&segment.histogram, found);
}
