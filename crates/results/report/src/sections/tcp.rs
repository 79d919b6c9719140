//! TCP throughput.

use super::{Blocks, RESULTS, Section};
use crate::layout::{Protocol, Run, Set};
use crate::{chart, tables};

pub(super) const SECTION: Section = Section {
    id: "tcp",
    name: "TCP",
    title: "TCP throughput",
    chapter: RESULTS,
    answers: true,
    brief: true,
    blocks: |run, out| {
        let sets = run.sets_of(Protocol::Tcp);
        matrix(run, out, &sets, "tcp");
        for (index, set) in sets.iter().enumerate() {
            bars(run, out, set, None, &format!("tcp-{index}"));
        }
        out.tables(tables::throughput(run, &sets));
        out.tables(tables::each_way(run, "tcp"));
        out.tables(tables::rfc6349(run));
        for (index, set) in sets.iter().enumerate() {
            out.tables(tables::goodput_drift(run, set));
            timeline(run, out, set, &format!("tcp-{index}"));
        }
    },
};

/// Appends the throughput of all sets at a glance, if they form a matrix.
pub(super) fn matrix(run: &Run<'_>, out: &mut Blocks, sets: &[Set<'_>], id: &str) {
    let how = "Means of the repeats; the darker or, on dark paper, the brighter, the more. Shades \
               follow the logarithm if figures span more than a decade.";
    out.chart(
        "Payload throughput of every device and setting",
        how,
        || chart::grid::of_sets(run, sets, &format!("{id}-grid")),
    );
}

/// Appends throughput by MTU and cores, for one payload size.
pub(super) fn bars(run: &Run<'_>, out: &mut Blocks, set: &Set<'_>, payload: Option<u32>, id: &str) {
    let note = match set.compared_with() {
        Some(baseline) => format!(
            "Bars: mean of the repeats. Whiskers: the farthest repeat's distance. In the bars: \
             ratio to {baseline}."
        ),
        None => "Bars: mean of the repeats. Whiskers: the farthest repeat's distance.".to_owned(),
    };
    let title = format!(
        "Payload throughput by MTU and cores per station: {}",
        set.common
    );
    out.chart(title, note, || {
        chart::throughput::draw(run, set, payload, &format!("{id}-bars"))
    });
}

/// Appends the received payload over time.
pub(super) fn timeline(run: &Run<'_>, out: &mut Blocks, set: &Set<'_>, id: &str) {
    let scales = match set.payloads().len() {
        0 | 1 => "One scale for all panels.",
        _ => "Each datagram size has its own scale.",
    };
    let note = format!("Payload received, a line per repeat. {scales}");
    out.chart("Over time", note, || {
        chart::timeline::draw(run, set, &format!("{id}-time"))
    });
}
