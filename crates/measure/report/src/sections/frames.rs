//! Frame tests: throughput, loss and latency by frame size.

use super::Section;
use super::search::{each, goals};
use crate::chart::frames as chart;
use crate::layout::frames::FrameKind::{self, Latency, Throughput};
use crate::tables::frames::{self as tables, Quantity};

pub(super) const THROUGHPUT: Section = Section::result(
    "frames",
    "Throughput by frame size",
    |run, out| {
        each(run, out, "frames", &[Throughput], |out, set, id| {
            out.chart(
                format!("Throughput by frame size: {}", set.common),
                "Bars: relevant lower bound of the first goal, mean of the repeats; whiskers: the \
                 farthest repeat; the line on a bar: the upper bound. A word above a bar: what limits it, \
                 where that is not the device; unsure: the evidence does not decide. A line rate far above \
                 all figures is not drawn.",
                || chart::throughput::draw(run, set, &format!("{id}-bars")),
            );
            out.table(tables::vendor(run, set, Quantity::Frames));
            if !out.is_short() {
                out.table(tables::vendor(run, set, Quantity::L2));
                out.table(tables::layers(run, set));
            }
            goals(run, out, set);
        });
    },
);

pub(super) const MRR: Section = Section::result("mrr", "Maximum receive rate", |run, out| {
    each(run, out, "mrr", &[FrameKind::Mrr], |out, set, _| {
        out.table(tables::mrr(run, set));
    });
});

pub(super) const SERVICE: Section = Section::result("service", "Service test", |run, out| {
    each(run, out, "service", &[FrameKind::Service], |out, set, _| {
        out.table(tables::service(run, set));
    });
});

pub(super) const LOSS: Section = Section::result("frame-loss", "Frame loss", |run, out| {
    let kinds = [FrameKind::LossCurve, FrameKind::Load];
    each(run, out, "frame-loss", &kinds, |out, set, id| {
        let is_curve = set.kind == FrameKind::LossCurve;
        for (index, point) in set.points.iter().enumerate().filter(|_| is_curve) {
            let mix = chart::Mix { run, set, point };
            out.chart(
                format!(
                    "Frames of {}: loss by offered load, {}",
                    point.name(),
                    set.common
                ),
                "Marks: mean of the repeats at one load. Outlined: no frame was lost in any repeat.",
                || chart::loss::draw(mix, &format!("{id}-{index}")),
            );
        }
        out.table(tables::loads(run, set));
        if !out.is_short() {
            out.tables(tables::variation(run, set));
        }
    });
});

pub(super) const LATENCY: Section = Section::result(
    "frame-latency",
    "Latency under load",
    |run, out| {
        each(run, out, "frame-latency", &[Latency], |out, set, id| {
            for (index, point) in set.points.iter().enumerate() {
                let mix = chart::Mix { run, set, point };
                out.chart(
                    format!(
                        "Frames of {}: latency by load, {}",
                        point.name(),
                        set.common
                    ),
                    "Marks: median. Bars: up to the 99th percentile. Lines: up to \
                     the slowest frame, with a mark at the 99.9th percentile. All \
                     repeats pooled; one way, from the intended send time; the \
                     axis is logarithmic.",
                    || chart::latency::draw(mix, &format!("{id}-{index}")),
                );
                let share = chart::latency::highest_share(mix);
                let load = share.map_or_else(String::new, chart::latency::share_name);
                out.chart(
                    format!("Frames of {}: latency by percentile, load {load}", point.name()),
                    "All repeats pooled. Each nine is as wide as the one before; both axes are \
                     logarithmic. Dotted: where fewer than ten frames lie beyond, up to the slowest.",
                    || chart::latency::by_percentile(mix, &format!("{id}-{index}-percentiles")),
                );
            }
            out.table(tables::latency(run, set));
            if !out.is_short() {
                out.tables(tables::variation(run, set));
            }
            goals(run, out, set);
        });
    },
);
