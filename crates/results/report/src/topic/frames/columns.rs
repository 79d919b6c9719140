//! The columns of frame tests.

use crate::kit::column::{Context, Declared, text};
use journal::record::{GoalOutcome, Ipdv};
use plan::LatencyPath;
use stats::{TrafficInfo, histogram_percentile};

/// Rates are per direction; sizes include the FCS.
pub(crate) const TRAFFIC: &[Declared] = &[
    (
        "frame_mix",
        "frame size in bytes with FCS, or name of the mix",
        |row| Some(traffic(row)?.mix.clone()),
    ),
    (
        "frame_genome",
        "sizes of the mix, with their relative numbers",
        |row| Some(traffic(row)?.genome.clone()),
    ),
    ("frame_bytes_mean", "mean frame size with FCS", |row| {
        text(traffic(row)?.mean_frame_bytes)
    }),
];

/// The kind of row, and its figures.
pub(crate) const COLUMNS: &[Declared] = &[
    (
        "figure",
        "kind of figure in this row: goal, load, latency, burst or recovery; quiet, disturbed, hostile or event; segment or point; known-answer, speed or fatigue",
        |row| text(row.figure.name?),
    ),
    ("goal", "name of the search goal", |row| {
        Some(row.figure.goal?.goal.clone())
    }),
    (
        "lower_frames_per_s",
        "relevant lower bound; empty without one",
        |row| text(row.figure.goal?.lower?),
    ),
    (
        "upper_frames_per_s",
        "relevant upper bound; empty without one",
        |row| text(row.figure.goal?.upper?),
    ),
    (
        "goal_outcome",
        "outcome of the goal's search (RFC 9971): regular, max-load-meets, min-load-fails or unfinished; empty in older journals",
        |row| {
            let outcome = match row.figure.goal?.outcome? {
                GoalOutcome::Regular => "regular",
                GoalOutcome::MaxLoadMeets => "max-load-meets",
                GoalOutcome::MinLoadFails => "min-load-fails",
                GoalOutcome::Unfinished => "unfinished",
            };
            text(outcome)
        },
    ),
    (
        "conditional_throughput_frames_per_s",
        "forwarding rate at the lower bound",
        |row| {
            let found = row.figure.goal?;
            // Without a lower bound there is no load at which it was measured.
            found.lower?;
            text(found.conditional_throughput)
        },
    ),
    (
        "load_percent",
        "in per cent of the throughput, for latency",
        |row| text(row.figure.latency?.percent?),
    ),
    (
        "load_frames_per_s",
        "intended load; 0: as fast as the generator can",
        |row| {
            let figure = &row.figure;
            let load = figure.load.map(|found| found.load);
            let load = load.or_else(|| Some(figure.latency?.load));
            // A recovery has two loads: this one overloads the device.
            text(load.or_else(|| Some(figure.recovery?.overload))?)
        },
    ),
    (
        "frames_intended",
        "frames in the schedule",
        |row| match row.figure.point {
            Some(point) => text(point.intended),
            None => text(row.figure.load?.intended),
        },
    ),
    ("frames_sent", "frames that left the sender", |row| {
        text(row.figure.load?.sent)
    }),
    (
        "frames_received",
        "intact frames, each counted once",
        |row| match row.figure.point {
            Some(point) => text(point.received),
            None => text(row.figure.load?.received),
        },
    ),
    (
        "frames_lost",
        "sent and not received; for a point, intended and not received",
        |row| match row.figure.point {
            // A point has no count of the frames that were sent.
            Some(point) => text(point.intended.saturating_sub(point.received)),
            None => text(row.figure.load?.lost()),
        },
    ),
    (
        "frames_lost_a_to_b",
        "lost frames that were sent from A to B, if both directions are loaded",
        // Directions are counted separately only if both are loaded.
        |row| text(row.figure.load?.directions.first()?.lost()),
    ),
    (
        "frames_lost_b_to_a",
        "lost frames that were sent from B to A",
        |row| text(row.figure.load?.directions.get(1)?.lost()),
    ),
    (
        "frames_reordered",
        "received after a later frame of their flow",
        |row| text(row.figure.load?.reordered),
    ),
    ("frames_duplicated", "received again", |row| {
        text(row.figure.load?.duplicated)
    }),
    ("frames_corrupted", "received damaged", |row| {
        text(row.figure.load?.corrupted)
    }),
    (
        "frames_receiver_dropped",
        "lost frames that the receiving station lost",
        |row| text(row.figure.load?.receiver_dropped),
    ),
    (
        "frames_queued",
        "received frames that a queue held which grew until the load was over",
        |row| text(row.figure.load?.queued()),
    ),
    (
        "latency_path",
        "one-way, or round-trip: by reflection at station B; empty without latency",
        |row| {
            // Without times, no path was timed.
            row.figure.histogram?;
            text(path(row).name())
        },
    ),
    ("latency_frames", "frames that were timed", |row| {
        let frames = row.figure.histogram?.iter().map(|bucket| bucket.frames);
        text(frames.sum::<u64>())
    }),
    (
        "latency_min_ns",
        "fastest frame; empty for points of a soak",
        |row| {
            let mut buckets = row.figure.histogram?.iter();
            let fastest = buckets.find(|bucket| bucket.frames > 0)?;
            // The upper end of the bucket, which has three significant digits.
            text(fastest.upto_ns)
        },
    ),
    ("latency_p50_ns", "median", |row| match row.figure.point {
        Some(point) => text(point.p50_ns?),
        None => percentile(row, 500),
    }),
    (
        "latency_p90_ns",
        "90th percentile; empty below 10 frames, and for points of a soak",
        |row| percentile(row, 900),
    ),
    (
        "latency_p99_ns",
        "99th percentile; empty below 100 frames",
        |row| match row.figure.point {
            Some(point) => text(point.p99_ns?),
            None => percentile(row, 990),
        },
    ),
    (
        "latency_p99_9_ns",
        "99.9th percentile; empty below 1000 frames",
        |row| percentile(row, 999),
    ),
    ("latency_max_ns", "slowest frame", |row| {
        if let Some(point) = row.figure.point {
            // Without a frame, the maximum is 0, which is no latency.
            return (point.received > 0).then(|| point.max_ns.to_string());
        }
        let buckets = row.figure.histogram?.iter();
        let slowest = buckets
            .filter(|bucket| bucket.frames > 0)
            .map(|bucket| bucket.upto_ns);
        text(slowest.max()?)
    }),
    (
        "latency_a_to_b_p50_ns",
        "median of the frames from A to B, if both directions were loaded",
        |row| text(direction(row, 0)?.0?),
    ),
    ("latency_a_to_b_p99_ns", "99th percentile of these", |row| {
        text(direction(row, 0)?.1?)
    }),
    ("latency_a_to_b_max_ns", "slowest of these", |row| {
        text(direction(row, 0)?.2)
    }),
    (
        "latency_b_to_a_p50_ns",
        "median of the frames from B to A likewise",
        |row| text(direction(row, 1)?.0?),
    ),
    ("latency_b_to_a_p99_ns", "99th percentile of these", |row| {
        text(direction(row, 1)?.1?)
    }),
    ("latency_b_to_a_max_ns", "slowest of these", |row| {
        text(direction(row, 1)?.2)
    }),
    (
        "pdv_p99_9_ns",
        "99.9th percentile of the delay less the smallest one (RFC 5481 PDV), of the direction that varies more; empty \
         below 1000 frames",
        |row| {
            let found = row
                .figure
                .latency?
                .variation
                .iter()
                .map(|found| found.pdv.p99_9_ns);
            // If one direction has too few frames, the worse one is not known.
            text(found.collect::<Option<Vec<_>>>()?.into_iter().max()?)
        },
    ),
    (
        "ipdv_min_ns",
        "smallest difference between a frame's delay and the delay of the previous frame of its flow (RFC 5481 IPDV)",
        |row| text(ipdv(row)?.map(|found| found.min_ns).min()?),
    ),
    ("ipdv_max_ns", "largest difference", |row| {
        text(ipdv(row)?.map(|found| found.max_ns).max()?)
    }),
    ("burst_frames", "longest burst without loss", |row| {
        text(row.figure.burst?)
    }),
    (
        "recovery_ns",
        "from the end of the overload to the last loss; empty when it went on",
        |row| {
            let found = row.figure.recovery.filter(|found| found.recovered);
            text(found?.recovery_ns)
        },
    ),
    (
        "verdict",
        "limit of the cell's figure, over all repeats",
        |row| {
            // A trial without a figure has no part in its cell's verdict.
            row.figure.name?;
            text(row.cell.verdict()?.limit.name())
        },
    ),
];

fn traffic<'a>(row: &Context<'a>) -> Option<&'a TrafficInfo> {
    row.cell.traffic()
}

/// Median, 99th percentile and longest latency of one of two loaded directions.
fn direction(row: &Context<'_>, at: usize) -> Option<(Option<u64>, Option<u64>, u64)> {
    let own = row.figure.latency?.directions.get(at)?;
    let percentile = |per_mille| histogram_percentile(own, per_mille);
    // Buckets are in rising order.
    Some((percentile(500), percentile(990), own.last()?.upto_ns))
}

/// The timed path.
fn path(row: &Context<'_>) -> LatencyPath {
    let times = row.figure.latency.map(|found| &found.round_trip);
    match times {
        Some(Some(_)) => LatencyPath::RoundTrip,
        Some(None) | None => LatencyPath::OneWay,
    }
}

fn ipdv<'a>(row: &Context<'a>) -> Option<impl Iterator<Item = &'a Ipdv>> {
    let variation = row.figure.latency?.variation.iter();
    Some(variation.filter_map(|found| found.ipdv.as_ref()))
}

fn percentile(row: &Context<'_>, per_mille: u64) -> Option<String> {
    text(histogram_percentile(row.figure.histogram?, per_mille)?)
}
