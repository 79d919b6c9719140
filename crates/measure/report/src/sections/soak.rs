//! Hours under one load.

use super::Section;
use super::search::{each, goals};
use crate::chart::frames::{Mix, soak};
use crate::layout::frames::FrameKind;
use crate::tables::frames as tables;

pub(super) const SECTION: Section = Section::result("soak", "Soak", |run, out| {
    each(run, out, "soak", &[FrameKind::Soak], |out, set, id| {
        for (index, point) in set.points.iter().enumerate() {
            out.chart(
                    format!("Soak, frames of {}: over time", point.name()),
                    "The worst repeat of each device, by the frames' intended time. Filled: frames \
                     received. Red: frames lost. Ticks: new keys, as the device reports them; red lines: \
                     keys out of step. Latency: median in grey, 99th percentile in the device's \
                     colour, the slowest frame in red. Gaps: no load.",
                    || soak::draw(Mix { run, set, point }, &format!("{id}-{index}")),
                );
        }
        out.tables(tables::soak(run, set, out.is_short()));
        goals(run, out, set);
    });
});
