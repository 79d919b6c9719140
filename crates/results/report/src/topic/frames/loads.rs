//! Single loads: the received part of the offered load.

use super::{at_load, label, mean_rate, share};
use crate::kit::chart::bars::{Bar, Bars, Lying};
use crate::kit::fact::{Fact, repeats};
use crate::kit::format::{Scale, percent};
use crate::kit::section::Blocks;
use crate::layout::Run;
use crate::layout::frames::{Device, FramePoint, FrameSet};
use maud::Markup;
use plan::ProcedureKind;
use stats::{CellResult, LoadResult};

/// How to read bars of received and offered load.
pub(super) const OF_OFFERED: &str = "Solid: received. Striped: offered, but lost on the way. Whiskers: the farthest repeat's \
                          distance. Frames/s of one direction.";

/// The chart of single loads.
pub(super) fn received_of_offered(run: &Run<'_>, out: &mut Blocks, set: &FrameSet<'_>, id: &str) {
    let title = format!("{}{}: {}", set.kind.title(), at_load(set), set.common);
    out.chart(title, OF_OFFERED, || chart(run, set, id));
}

/// The received part of a load with its loss, as a rate means little without it.
pub(super) fn fact(set: &FrameSet<'_>, cell: &CellResult, size: &str) -> Option<Fact> {
    let load = cell.frames()?.loads().first()?;
    let received = &load.forwarded.frames_per_s;
    let scale = Scale::si(received.mean, "pps");
    let lost = match load.account.lost {
        0 => "none lost".to_owned(),
        lost => format!("{} lost", share(lost, load.lost_ppm.mean)),
    };
    let mut detail = format!("of {} offered", mean_rate(&load.offered.frames_per_s));
    if let Some(verdict) = cell.verdict() {
        detail.push_str(&format!("; {}", verdict.limit.name()));
    }
    // A device that carries the whole load may carry more.
    let at_least = if set.kind == ProcedureKind::Mrr && load.account.lost == 0 {
        "at least "
    } else {
        ""
    };
    Some(Fact {
        label: label(set, set.kind.title(), size),
        figure: format!("{at_least}{}", scale.number(received.mean)),
        unit: format!("{}, {lost}", scale.unit),
        range: repeats(received, &scale),
        detail,
    })
}

/// The received part of the offered load, for `mrr` and `load`; `None` without a figure.
fn chart(run: &Run<'_>, set: &FrameSet<'_>, id: &str) -> Option<Markup> {
    let bars = bars(run, set, |cell| match cell.frames()?.loads() {
        [only] => Some(lying(only)),
        _ => None,
    });
    let title = format!("{}: share of the offered frames received", set.kind.title());
    drawn(run, title, "frames", bars, id, "pps")
}

pub(super) fn drawn(
    run: &Run<'_>,
    title: String,
    quantity: &'static str,
    bars: Vec<Bar<'_>>,
    id: &str,
    unit: &str,
) -> Option<Markup> {
    let bars = Bars {
        title,
        quantity,
        lost: "offered, but lost",
        bars,
    };
    bars.draw(run, id, |most| Scale::si(most, unit))
}

pub(super) fn bars<'r>(
    run: &Run<'_>,
    set: &FrameSet<'r>,
    figure: impl Fn(&CellResult) -> Option<Lying>,
) -> Vec<Bar<'r>> {
    let setting = |point: &FramePoint<'_>| match set.points.len() {
        1 => String::new(),
        _ => format!("{} frames", point.name()),
    };
    let bar = |(point, cell): (&FramePoint<'r>, &'r CellResult)| Bar {
        setting: setting(point),
        name: Device::of(cell).label(run),
        cell,
        figure: figure(cell),
    };
    set.rows().map(bar).collect()
}

/// `402 of 1520 kpps, 73.6 % lost`.
pub(super) fn lying(load: &LoadResult) -> Lying {
    let (received, offered) = (&load.forwarded.frames_per_s, &load.offered.frames_per_s);
    let scale = Scale::si(offered.mean, "pps");
    let lost = match load.account.lost {
        0 => "none lost".to_owned(),
        _ => format!("{} lost", percent(load.lost_ppm.mean / 1e4)),
    };
    let received_text = scale.number(received.mean);
    Lying {
        value: received.mean,
        reach: received.largest_distance,
        offered: Some(offered.mean),
        text: format!("{received_text} of {}, {lost}", mean_rate(offered)),
    }
}
