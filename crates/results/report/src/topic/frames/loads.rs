//! Single loads: the received part of the offered load, and the maximum receive rate.

use super::{at_load, caption, fill, head, joined, label, mean_rate, rate, share, verdict};
use crate::kit::chart::bars::{self, Bar, Lying};
use crate::kit::fact::{Fact, repeats};
use crate::kit::format::{Scale, percent, si};
use crate::kit::section::{Blocks, Section};
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::{Device, FramePoint, FrameSet};
use maud::Markup;
use plan::ProcedureKind;
use stats::{CellResult, LoadResult, MrrResult};

/// How to read bars of received and offered load.
pub(super) fn of_offered(run: &Run<'_>) -> String {
    format!(
        "Solid: received. Striped: offered, but lost on the way. {} Frames/s of one direction.",
        run.whiskers()
    )
}

/// The striped part of these bars.
pub(super) const LOST: &str = "offered, but lost";

/// The chart of single loads.
pub(super) fn received_of_offered(run: &Run<'_>, out: &mut Blocks, set: &FrameSet<'_>, id: &str) {
    let title = format!("{}{}: {}", set.kind.title(), at_load(set), set.common);
    out.chart(title, of_offered(run), || chart(run, set, id));
}

/// The received part of a load with its loss, as a rate means little without it.
pub(super) fn fact(set: &FrameSet<'_>, cell: &CellResult, size: &str) -> Option<Fact> {
    let load = cell.frames()?.loads().first()?;
    let received = &load.forwarded.frames_per_s;
    let scale = Scale::si(received.mean, "pps");
    let lost = match load.account.lost {
        0 => "none lost".to_owned(),
        lost => format!("{} lost", share(lost, load.not_forwarded_ppm())),
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
        brief: String::new(),
    })
}

/// The received part of the offered load, for `mrr` and `load`; `None` without a figure.
fn chart(run: &Run<'_>, set: &FrameSet<'_>, id: &str) -> Option<Markup> {
    let bars = of_cells(run, set, |cell| match cell.frames()?.loads() {
        [only] => Some(lying(only)),
        _ => None,
    });
    let title = format!("{}: share of the offered frames received", set.kind.title());
    let scale = |most| Scale::si(most, "pps");
    bars::draw(run, id, (&title, "frames", LOST), &bars, scale)
}

pub(super) fn of_cells<'r>(
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
        _ => format!("{} lost", percent(load.not_forwarded_ppm() / 1e4)),
    };
    let received_text = scale.number(received.mean);
    Lying {
        value: received.mean,
        repeats: [received.min, received.max],
        offered: Some(offered.mean),
        text: format!("{received_text} of {}, {lost}", mean_rate(offered)),
    }
}

pub(super) const MRR: Section = Section::result("mrr", "Maximum receive rate", |run, out| {
    let sets = run.frame_sets_of(ProcedureKind::Mrr);
    for (index, set) in sets.iter().enumerate() {
        received_of_offered(run, out, set, &format!("mrr-{index}"));
    }
    out.tables(joined(ProcedureKind::Mrr.title(), &sets, |set| {
        Some(mrr(run, set))
    }));
});

/// Forwarding rate at the highest load.
fn mrr(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; frames/s of one direction; received: forwarding rate at the offered load, mean ± largest \
         distance of the repeats; lost: the part of the offered load that was not received; \
         trial deviation, lowest, highest: of single trials; a load above the \
         throughput loses frames, so this is no throughput",
        set.common
    );
    let table = head(set, Table::new(caption(set, set.kind.title()), note))
        .figures(["Received", "Lost", "Offered", "Trial deviation"])
        .figures(["Lowest", "Highest", "L2", "Trials"])
        .texts(["Verdict"]);
    fill(table, run, set, |cell| {
        Some(mrr_cells(cell, cell.frames()?.mrr()?))
    })
}

fn mrr_cells(cell: &CellResult, found: &MrrResult) -> [Cell; 9] {
    let load = &found.load;
    let forwarded = &load.forwarded;
    let pps = |value: f64| si(value, "pps");
    let l2 = forwarded.l2_bps.mean;
    [
        Cell::plain(rate(&forwarded.frames_per_s)),
        Cell::plain(share(load.account.lost, load.not_forwarded_ppm())),
        Cell::plain(mean_rate(&load.offered.frames_per_s)),
        // A single trial has no deviation.
        Cell::or_missing(found.standard_deviation_frames_per_s.map(pps)),
        Cell::plain(pps(found.min_frames_per_s)),
        Cell::plain(pps(found.max_frames_per_s)),
        Cell::plain(si(l2, "bit/s")),
        Cell::plain(found.trials.to_string()),
        verdict(cell),
    ]
}
