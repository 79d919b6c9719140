//! Hours under one load.

use super::Section;
use super::search::goals;
use crate::chart::frames::{Mix, soak};
use crate::layout::frames::FrameKind;
use crate::tables::frames as tables;

pub(super) const SECTION: Section = Section::result("soak", "Soak", |run, out| {
    let sets = run.frame_sets_of(FrameKind::Soak);
    for (at, set) in sets.iter().enumerate() {
        for (index, point) in set.points.iter().enumerate() {
            out.chart(
                format!("Soak, frames of {}: over time", point.name()),
                "The worst repeat of each device, by the frames' intended time. Filled: frames \
                 received. Red: frames lost. Ticks: new keys, as the device reports them; red lines: \
                 keys out of step. Latency: median in grey, 99th percentile in the device's \
                 colour, the slowest frame in red. Gaps: no load.",
                || soak::draw(Mix { run, set, point }, &format!("soak-{at}-{index}")),
            );
        }
    }
    for set in &sets {
        out.tables(tables::soak(run, set, out.is_short()));
    }
    goals(run, out, &sets);
});
