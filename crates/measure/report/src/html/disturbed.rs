//! Loads under which something happens to a device: the chart first, then its tables.

use super::parts::table;
use super::results::figure;
use crate::chart::frames as chart;
use crate::layout::Run;
use crate::layout::disturbed::title;
use crate::layout::frames::{FrameKind, FrameSet};
use crate::tables::frames as tables;
use campaign::plan::Procedure;
use maud::{Markup, html};

/// The section's part of one set.
pub(super) fn one(run: &Run<'_>, set: &FrameSet<'_>, id: &str) -> Markup {
    let what = match &set.test.procedure {
        Procedure::Disturbed(test) => title(&test.event),
        _ => set.kind.name().to_owned(),
    };
    html! {
        @for (index, point) in set.points.iter().enumerate() {
            @let name = point.name();
            @if let Some(chart) = chart::outages::draw(run, set, point, &format!("{id}-{index}-events")) {
                @let title = format!("{what}, frames of {name}: how long, event by event");
                (figure(&chart, &title, outages(set.kind)))
            }
            @if let Some(chart) = chart::hostile::draw(run, set, point, &format!("{id}-{index}-shares")) {
                @let title = format!("{what}, frames of {name}: how much of it is forwarded");
                (figure(&chart, &title, "Dots: mean of the repeats. Rings: no frame was lost in any repeat. \
                                         Crosses: hostile packets came out of the device, which none may. The axis begins \
                                         where the worst figure needs it to."))
            }
            @if let Some(chart) = chart::disturbed::draw(run, set, point, &format!("{id}-{index}-time")) {
                @let title = format!("{what}, frames of {name}: over time");
                (figure(&chart, &title, timeline(set.kind)))
            }
        }
        @for one in tables::disturbed(run, set, false) { (table(&one)) }
    }
}

const fn outages(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Desync => {
            "A dot for each time: from the moment at which keys were put out of step to the last loss. Lines: the \
             median. The axis is logarithmic."
        }
        FrameKind::Setup => {
            "A dot for each set-up: from the order until all tunnels carried. Rings: until the first frame came \
             through. Lines: the median. The axis is logarithmic."
        }
        _ => {
            "A dot for each failure: from it to the last loss. Lines: the median. Rings: from the beginning of the \
             mending to the first frame. The axis is logarithmic."
        }
    }
}

const fn timeline(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Rekey => {
            "The first repeat of each device (or the first in which it did not recover), by the frames' intended time. Above: frames received, and in red those \
             lost. Below: the slowest frame of each interval, in grey without rekeys. Ticks: rekeys."
        }
        _ => {
            "The first repeat of each device (or the first in which it did not recover), by the frames' intended time. Filled: frames received. Red: frames lost. \
             Lines: what was done, and how long frames were lost from then on."
        }
    }
}
