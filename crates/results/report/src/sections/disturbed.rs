//! Loads with events at a device: charts first, then tables.

use super::search::goals;
use super::{Blocks, Section};
use crate::chart::frames as chart;
use crate::layout::Run;
use crate::layout::disturbed::title;
use crate::layout::frames::{FrameKind, settings};
use crate::table::joined;
use crate::tables::frames as tables;
use plan::Procedure;

pub(super) const REKEYS: Section = Section::result("rekeys", "Rekeys", |run, out| {
    of(run, out, "rekeys", FrameKind::Rekey)
});

pub(super) const FAILOVER: Section = Section::result("failover", "Failover", |run, out| {
    of(run, out, "failover", FrameKind::Failover)
});

pub(super) const RESET: Section = Section::result("reset", "Reset", |run, out| {
    of(run, out, "reset", FrameKind::Reset)
});

pub(super) const SETUP: Section = Section::result("setup", "Tunnel set-up", |run, out| {
    of(run, out, "setup", FrameKind::Setup)
});

pub(super) const DESYNC: Section = Section::result("desync", "Keys out of step", |run, out| {
    of(run, out, "desync", FrameKind::Desync)
});

pub(super) const HOSTILE: Section = Section::result("hostile", "Hostile packets", |run, out| {
    of(run, out, "hostile", FrameKind::Hostile)
});

fn of(run: &Run<'_>, out: &mut Blocks, id: &str, kind: FrameKind) {
    let sets = run.frame_sets_of(kind);
    for (at, set) in sets.iter().enumerate() {
        let what = match &set.test.procedure {
            Procedure::Disturbed(test) => title(&test.event),
            _ => kind.name().to_owned(),
        };
        for (index, point) in set.points.iter().enumerate() {
            let name = point.name();
            let mix = chart::Mix { run, set, point };
            let id = format!("{id}-{at}-{index}");
            out.folded_chart(
                format!("{what}, frames of {name}: how long, event by event"),
                outages(kind),
                || chart::outages::draw(mix, &format!("{id}-events")),
            );
            out.chart(
                format!("{what}, frames of {name}: how much of it is forwarded"),
                "Marks: mean of the repeats. Outlined: no frame was lost in any repeat. \
                 Crosses: hostile packets came out of the device, which must not happen. The \
                 axis begins at the worst figure.",
                || chart::hostile::draw(mix, &format!("{id}-shares")),
            );
            out.folded_chart(
                format!("{what}, frames of {name}: over time"),
                timeline(kind),
                || chart::disturbed::draw(mix, &format!("{id}-time")),
            );
        }
    }
    let tables: Vec<_> = sets.iter().map(|set| tables::disturbed(run, set)).collect();
    let count = tables.iter().map(Vec::len).max().unwrap_or(0);
    let count = if out.is_short() { count.min(1) } else { count };
    let settings = settings(&sets);
    for place in 0..count {
        let of_each = settings.iter().zip(&tables);
        let of_each =
            of_each.filter_map(|(name, own)| Some((name.clone(), own.get(place)?.clone())));
        out.tables(joined(kind.name(), of_each.collect()));
    }
    for set in &sets {
        out.tables(tables::exceptions(run, set));
    }
    goals(run, out, &sets);
}

const fn outages(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Desync => {
            "A mark for each time: from the moment at which keys were put out of step to the last loss. Lines: the \
             median. The axis is logarithmic."
        }
        FrameKind::Reset => {
            "A mark for each reset: its time by lost frames. Lines: the median. Outlined: its time by timestamps. The axis is \
             logarithmic."
        }
        FrameKind::Setup => {
            "A mark for each set-up: from the order until all tunnels carried. Outlined: until the first frame came \
             through. Lines: the median. The axis is logarithmic."
        }
        _ => {
            "A mark for each failure: from it to the last loss. Lines: the median. Outlined: from \
            the start of the recovery to the first frame. The axis is logarithmic."
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
             Lines: each event, and how long frames were lost after it."
        }
    }
}
