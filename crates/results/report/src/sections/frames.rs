//! Frame tests: throughput, loss and latency by frame size.

use super::search::{goals, joined, sets_of};
use super::{Blocks, Section};
use crate::chart::frames as chart;
use crate::layout::Run;
use crate::layout::frames::FrameKind::{self, Latency, Throughput};
use crate::layout::frames::FrameSet;
use crate::tables::frames::{self as tables, Quantity};
use plan::LatencyPath;

pub(super) const THROUGHPUT: Section = Section::result(
    "frames",
    "Throughput by frame size",
    |run, out| {
        let sets = run.frame_sets_of(Throughput);
        for (index, set) in sets.iter().enumerate() {
            out.chart(
                format!("Throughput by frame size: {}", set.common),
                "Bars: relevant lower bound of the first goal, mean of the repeats; whiskers: the \
                 farthest repeat; the line on a bar: the upper bound. A word above a bar: its limit, \
                 if that is not the device; unsure: the evidence does not decide. A line rate far above \
                 all figures is not drawn.",
                || chart::throughput::draw(run, set, &format!("frames-{index}-bars")),
            );
        }
        let what = "Throughput by frame size";
        let vendor = |quantity| joined(what, &sets, |set| Some(tables::vendor(run, set, quantity)));
        out.tables(vendor(Quantity::Frames));
        out.tables(joined("Frame rate by the baseline's", &sets, |set| {
            tables::ratios(run, set)
        }));
        if !out.is_short() {
            out.tables(vendor(Quantity::L2));
            out.tables(joined(what, &sets, |set| Some(tables::layers(run, set))));
        }
        goals(run, out, &sets);
    },
);

/// How to read bars of received and offered load.
const OF_OFFERED: &str = "Solid: received. Striped: offered, but lost on the way. Whiskers: the farthest repeat's \
                          distance. Frames/s of one direction.";

/// The chart of single loads.
fn received_of_offered(run: &Run<'_>, out: &mut Blocks, set: &FrameSet<'_>, id: &str) {
    let load = set
        .load()
        .map_or_else(String::new, |load| format!(", {load}"));
    let title = format!("{}{load}: {}", set.kind.name(), set.common);
    out.chart(title, OF_OFFERED, || chart::single::loads(run, set, id));
}

pub(super) const MRR: Section = Section::result("mrr", "Maximum receive rate", |run, out| {
    let sets = run.frame_sets_of(FrameKind::Mrr);
    for (index, set) in sets.iter().enumerate() {
        received_of_offered(run, out, set, &format!("mrr-{index}"));
    }
    out.tables(joined(FrameKind::Mrr.name(), &sets, |set| {
        Some(tables::mrr(run, set))
    }));
});

pub(super) const SERVICE: Section = Section::result("service", "Service test", |run, out| {
    let sets = run.frame_sets_of(FrameKind::Service);
    for (index, set) in sets.iter().enumerate() {
        out.chart(format!("Each step: {}", set.common), OF_OFFERED, || {
            chart::single::service(run, set, &format!("service-{index}"))
        });
    }
    out.tables(joined(FrameKind::Service.name(), &sets, |set| {
        Some(tables::service(run, set))
    }));
});

pub(super) const LOSS: Section = Section::result("frame-loss", "Frame loss", |run, out| {
    let sets = sets_of(run, &[FrameKind::LossCurve, FrameKind::Load]);
    for (at, set) in sets.iter().enumerate() {
        let is_curve = set.kind == FrameKind::LossCurve;
        if !is_curve {
            received_of_offered(run, out, set, &format!("load-{at}"));
        }
        for (index, point) in set.points.iter().enumerate().filter(|_| is_curve) {
            let mix = chart::Mix { run, set, point };
            out.chart(
                format!(
                    "Frames of {}: loss by offered load, {}",
                    point.name(),
                    set.common
                ),
                "Marks: mean of the repeats at one load. Outlined: no frame was lost in any repeat.",
                || chart::loss::draw(mix, &format!("frame-loss-{at}-{index}")),
            );
        }
    }
    out.tables(joined("Frames lost by load", &sets, |set| {
        tables::by_load(run, set)
    }));
    out.tables(joined("Frame loss", &sets, |set| {
        Some(tables::loads(run, set))
    }));
    if !out.is_short() {
        out.tables(joined("Delay variation", &sets, |set| {
            tables::variation(run, set)
        }));
    }
});

/// The charts of times over a path, for one mix.
fn latency_charts(out: &mut Blocks, mix: chart::Mix<'_>, path: LatencyPath, id: &str) {
    let (what, over, id) = match path {
        LatencyPath::OneWay => ("latency", "one way", format!("frame-latency-{id}")),
        LatencyPath::RoundTrip => (
            "round-trip time",
            "round trips by reflection at station B",
            format!("frame-round-trip-{id}"),
        ),
    };
    out.chart(
        format!(
            "Frames of {}: {what} by load, {}",
            mix.point.name(),
            mix.set.common
        ),
        format!(
            "Marks: median. Bars: up to the 99th percentile. Lines: up to the slowest frame, with a mark \
             at the 99.9th percentile. All repeats pooled; {over}, from the intended send time; the axis \
             is logarithmic."
        ),
        || chart::latency::draw(mix, path, &id),
    );
    let share = chart::latency::highest_share(mix, path);
    let load = share.map_or_else(String::new, chart::latency::share_name);
    out.chart(
        format!(
            "Frames of {}: {what} by percentile, load {load}",
            mix.point.name()
        ),
        "All repeats pooled. Each nine is as wide as the one before; both axes are \
         logarithmic. Dotted: fewer than ten frames are slower.",
        || chart::latency::by_percentile(mix, path, &format!("{id}-percentiles")),
    );
}

pub(super) const LATENCY: Section =
    Section::result("frame-latency", "Latency under load", |run, out| {
        let sets = run.frame_sets_of(Latency);
        for (at, set) in sets.iter().enumerate() {
            for (index, point) in set.points.iter().enumerate() {
                let mix = chart::Mix { run, set, point };
                for path in set.paths() {
                    latency_charts(out, mix, path, &format!("{at}-{index}"));
                }
            }
        }
        for path in LatencyPath::ALL {
            let of = |set: &FrameSet<'_>| set.paths().contains(&path);
            let (by_load, under_load) = match path {
                LatencyPath::OneWay => ("Latency by load", "Latency under load"),
                LatencyPath::RoundTrip => ("Round-trip time by load", "Round-trip time under load"),
            };
            out.tables(joined(by_load, &sets, |set| {
                of(set).then(|| tables::latency_by_load(run, set, path))?
            }));
            out.tables(joined(under_load, &sets, |set| {
                of(set).then(|| tables::latency(run, set, path))
            }));
        }
        if !out.is_short() {
            out.tables(tables::latency_directions(run));
            out.tables(joined("Delay variation", &sets, |set| {
                tables::variation(run, set)
            }));
        }
        goals(run, out, &sets);
    });
