//! The sections of frame tests.

use super::parts::{details, section, table};
use super::results::figure;
use crate::chart::frames as chart;
use crate::layout::Run;
use crate::layout::frames::{FrameKind, FrameSet};
use crate::tables::frames::{self as tables, Quantity};
use maud::{Markup, html};

/// Id, title and the kinds of tests of each section, in the order of the documents.
pub(super) const SECTIONS: [(&str, &str, &[FrameKind]); 11] = [
    (
        "frames",
        "Throughput by frame size",
        &[FrameKind::Throughput],
    ),
    (
        "frame-loss",
        "Frame loss",
        &[FrameKind::LossCurve, FrameKind::Load],
    ),
    ("frame-latency", "Latency under load", &[FrameKind::Latency]),
    ("bursts", "Back-to-back frames", &[FrameKind::BackToBack]),
    ("recovery", "Recovery from overload", &[FrameKind::Recovery]),
    ("rekeys", "Rekeys", &[FrameKind::Rekey]),
    ("failover", "Failover", &[FrameKind::Failover]),
    ("setup", "Tunnel set-up", &[FrameKind::Setup]),
    ("desync", "Keys out of step", &[FrameKind::Desync]),
    ("hostile", "Hostile packets", &[FrameKind::Hostile]),
    ("soak", "Soak", &[FrameKind::Soak]),
];

/// What is folded under the tables of a search.
const SEARCH: &str = "Search goals, both bounds and trials";

/// Whether a section has anything to show.
pub(super) fn is_shown(run: &Run<'_>, kinds: &[FrameKind]) -> bool {
    run.frame_sets().iter().any(|set| kinds.contains(&set.kind))
}

/// All sections of frame tests; nothing when there are none.
pub(super) fn sections(run: &Run<'_>) -> Markup {
    html! {
        @for (id, title, kinds) in SECTIONS {
            @if is_shown(run, kinds) {
                @let sets = kinds.iter().flat_map(|kind| run.frame_sets_of(*kind));
                (section(id, title, html! {
                    @for (index, set) in sets.enumerate() { (one(run, &set, &format!("{id}-{index}"))) }
                }))
            }
        }
        (tester(run))
    }
}

fn one(run: &Run<'_>, set: &FrameSet<'_>, id: &str) -> Markup {
    match set.kind {
        FrameKind::Throughput => throughput(run, set, id),
        FrameKind::LossCurve => html! {
            @for (index, point) in set.points.iter().enumerate() {
                @if let Some(chart) = chart::loss::draw(run, set, point, &format!("{id}-{index}")) {
                    @let title = format!("Frames of {}: loss by offered load, {}", point.name(), set.common);
                    (figure(&chart, &title, "Dots: mean of the repeats at one load. Rings: no frame \
                                             was lost in any repeat."))
                }
            }
            (table(&tables::loads(run, set)))
        },
        FrameKind::Load => table(&tables::loads(run, set)),
        FrameKind::Latency => html! {
            @for (index, point) in set.points.iter().enumerate() {
                @if let Some(chart) = chart::latency::draw(run, set, point, &format!("{id}-{index}")) {
                    @let title = format!("Frames of {}: latency by load, {}", point.name(), set.common);
                    (figure(&chart, &title, "Dots: median. Bars: up to the 99th percentile. Lines: up to \
                                             the slowest frame, with a mark at the 99.9th percentile. All \
                                             repeats pooled; one way, from the intended send time; the \
                                             axis is logarithmic."))
                }
            }
            (table(&tables::latency(run, set)))
            (details(SEARCH, tables::goals(set).iter().chain([&tables::bounds(run, set)])))
        },
        FrameKind::BackToBack => table(&tables::back_to_back(run, set)),
        FrameKind::Recovery => html! {
            (table(&tables::recovery(run, set)))
            (details(SEARCH, tables::goals(set).iter().chain([&tables::bounds(run, set)])))
        },
        FrameKind::Soak => html! {
            @for (index, point) in set.points.iter().enumerate() {
                @if let Some(chart) = chart::soak::draw(run, set, point, &format!("{id}-{index}")) {
                    @let title = format!("Soak, frames of {}: over time", point.name());
                    (figure(&chart, &title, "The worst repeat of each device, by the frames' intended time. Filled: frames \
                                             received. Red: frames lost. Ticks: new keys, by the device's own word; red lines: \
                                             keys out of step. Latency: median in grey, 99th percentile in the device's \
                                             colour, the slowest frame in red. Gaps: no load."))
                }
            }
            @for one in tables::soak(run, set, false) { (table(&one)) }
            @if let Some(goals) = tables::goals(set) {
                (details(SEARCH, [&goals, &tables::bounds(run, set)]))
            }
        },
        FrameKind::Rekey
        | FrameKind::Failover
        | FrameKind::Setup
        | FrameKind::Desync
        | FrameKind::Hostile => html! {
            (super::disturbed::one(run, set, id))
            @if let Some(goals) = tables::goals(set) {
                (details(SEARCH, [&goals, &tables::bounds(run, set)]))
            }
        },
    }
}

fn throughput(run: &Run<'_>, set: &FrameSet<'_>, id: &str) -> Markup {
    html! {
        @if let Some(chart) = chart::throughput::draw(run, set, &format!("{id}-bars")) {
            (figure(
                &chart,
                &format!("Throughput by frame size: {}", set.common),
                "Bars: relevant lower bound of the first goal, mean of the repeats; whiskers: the \
                 farthest repeat; the line on a bar: the upper bound. Limited by: T the tester, L the \
                 link, ? cannot be told, else the device. A line rate far above all figures is not drawn.",
            ))
        }
        (table(&tables::vendor(run, set, Quantity::Frames)))
        (table(&tables::vendor(run, set, Quantity::L2)))
        (table(&tables::layers(run, set)))
        (details(SEARCH, tables::goals(set).iter().chain([&tables::bounds(run, set)])))
    }
}

/// What is known of the tester itself, and what follows from it.
fn tester(run: &Run<'_>) -> Markup {
    if run.frame_sets().is_empty() {
        return html! {};
    }
    let verdicts = tables::verdicts(run);
    let found = [
        tables::calibration(run),
        tables::mixes(run),
        tables::ports(run),
    ];
    let content = html! {
        @for one in found.iter().flatten() { (table(one)) }
        @if let Some(verdicts) = &verdicts {
            (details("What limits each figure, and the numbers that say so", [verdicts]))
        }
        @if found.iter().flatten().next().is_none() && verdicts.is_none() {
            p.note { "No figure yet." }
        }
    };
    section("tester", "The tester, and what limits each figure", content)
}
