//! Loss at one load or by load.

mod chart;
mod common;

use super::chart::Mix;
use super::latency::variation;
use super::loads::received_of_offered;
use super::{caption, fill, head, joined, label, mean_rate, sets_of, share, verdict};
use crate::kit::fact::{Fact, repeats};
use crate::kit::format::{Scale, percent, si};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::order::sorted;
use plan::ProcedureKind;
use stats::{CellResult, LoadResult};

pub(super) const SECTION: Section = Section::result("frame-loss", "Frame loss", |run, out| {
    let sets = sets_of(run, &[ProcedureKind::LossCurve, ProcedureKind::Load]);
    for (at, set) in sets.iter().enumerate() {
        let is_curve = set.kind == ProcedureKind::LossCurve;
        if !is_curve {
            received_of_offered(run, out, set, &format!("load-{at}"));
        }
        for (index, point) in set.points.iter().enumerate().filter(|_| is_curve) {
            let mix = Mix { run, set, point };
            out.chart(
                format!(
                    "Frames of {}: loss by offered load, {}",
                    point.name(),
                    set.common
                ),
                "Marks: mean of the repeats at one load. Outlined: no frame was lost in any repeat. Lines: from the least to \
                 the most of repeats whose loads differ by more than a tenth.",
                || chart::draw(mix, &format!("frame-loss-{at}-{index}")),
            );
        }
    }
    let is_short = out.is_short();
    out.tables(joined("Frames lost by load", &sets, |set| {
        by_load(run, set, is_short)
    }));
    out.tables(joined("Frame loss", &sets, |set| Some(loads(run, set))));
    if !out.is_short() {
        out.tables(joined("Delay variation", &sets, |set| variation(run, set)));
    }
});

/// The loss at each load of a curve, devices as rows, loads as columns; `None` for one load.
fn by_load(run: &Run<'_>, set: &FrameSet<'_>, is_short: bool) -> Option<Table> {
    let loads = set
        .rows()
        .filter_map(|(_, cell)| Some(cell.frames()?.loads()));
    let percents = sorted(loads.flatten().filter_map(|load| load.percent));
    if percents.len() < 2 {
        return None;
    }
    let apart = common::differ(set);
    let of_own = if apart {
        ". Devices are compared at one load: the lowest of the highest loads, \
         between the two measured loads around it"
    } else {
        ""
    };
    let mut cells = set.rows().filter_map(|(_, cell)| cell.frames());
    let of_repeats = if cells.any(|found| {
        common::whole(found.loads())
            .and_then(common::apart)
            .is_some()
    }) {
        ". In brackets: 100 % in the repeats, if it differs by more than a tenth; a loss is the mean at loads that differ \
         as much, and `max_load` makes them one"
    } else {
        ""
    };
    let note = format!(
        "{}; lost, of the frames that left the sender, by load in per cent of the load in the column 100 %, the highest \
         one intended for that device (RFC 2544 §26.3: the maximum rate of the medium, where the generator reaches it; what \
         it reached is in the column Offered of the next table); mean of the repeats; 0 means none at all{of_own}{of_repeats}",
        set.common
    );
    let table = head(set, Table::new(caption(set, "Frames lost by load"), note));
    let table = table.figures(["100 % is"]);
    let table = if apart {
        table.figures(["Lost at the load of all"])
    } else {
        table
    };
    let shares = percents.iter();
    let table = if is_short {
        // The few lines have no room for one with the common part.
        table.figures(shares.map(|percent| format!("at {percent} %")))
    } else {
        table.figures_of("Lost at load", shares.map(|percent| format!("{percent} %")))
    };
    let table = fill(table, run, set, |cell| {
        let loads = cell.frames()?.loads();
        let highest = Cell::or_missing(common::highest(loads).map(|rate| {
            let between = common::whole(loads).and_then(common::apart);
            let between = between.map_or_else(String::new, |ends| format!(" ({})", range(ends)));
            si(rate, "pps") + &between
        }));
        let at_common = apart.then(|| Cell::or_missing(common::lost(set, cell)));
        let lost = percents.iter().map(|percent| {
            // Loads are matched by their shares, as the highest one may differ by device.
            let load = loads.iter().find(|load| load.percent == Some(*percent));
            Cell::or_missing(load.map(|load| share(load.account.lost, load.lost_ppm.mean)))
        });
        Some(
            [highest]
                .into_iter()
                .chain(at_common)
                .chain(lost)
                .collect::<Vec<_>>(),
        )
    });
    Some(table)
}

/// Every load of a loss curve, or the single load of a `load` test.
fn loads(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let is_curve = set.kind == ProcedureKind::LossCurve;
    let note = format!(
        "{}; frames/s of one direction; {}reordered, duplicated, corrupted: of the frames that \
         left the sender, mean of the repeats; 0 means none at all; frames not sent, too late: those that the \
         generator kept back, or that left when the load's time was over, over all repeats",
        set.common,
        if is_curve {
            "lost, "
        } else {
            "lost: the part of the offered load that was not forwarded; "
        }
    );
    // The share that each loss is of, as a curve's differs from that of a single load.
    let lost = if is_curve {
        "Lost (of sent)"
    } else {
        "Lost (of offered)"
    };
    let table = head(set, Table::new(caption(set, set.kind.title()), note))
        .labels(is_curve.then_some("Load (of the device's highest)"))
        .figures(["Offered", "Forwarded", lost, "Frames not sent"])
        .figures(["Frames too late", "Reordered", "Duplicated", "Corrupted"])
        .texts(["Verdict"]);
    fill(table, run, set, |cell| {
        let loads = cell.frames().map_or(&[][..], |found| found.loads());
        loads.iter().enumerate().map(|(index, load)| {
            // Only the loads of a curve are shares.
            let percent = load.percent.map(|percent| format!("{percent} %"));
            let mut cells: Vec<Cell> = percent.map(Cell::label).into_iter().collect();
            cells.extend(load_cells(load, is_curve));
            cells.push(verdict(cell).once(index));
            cells
        })
    })
}

fn load_cells(load: &LoadResult, is_curve: bool) -> [Cell; 8] {
    let account = &load.account;
    // The loss of a curve is also in its chart, with its spread; that of a single load is beside
    // its rates only, everywhere.
    let lost_ppm = if is_curve {
        load.lost_ppm.mean
    } else {
        load.not_forwarded_ppm()
    };
    [
        Cell::plain(mean_rate(&load.offered.frames_per_s)),
        Cell::plain(mean_rate(&load.forwarded.frames_per_s)),
        Cell::plain(share(account.lost, lost_ppm)),
        Cell::plain(account.not_sent.to_string()),
        Cell::plain(account.too_late.to_string()),
        Cell::plain(share(account.reordered, load.reordered_ppm.mean)),
        Cell::plain(share(account.duplicated, load.duplicated_ppm.mean)),
        Cell::plain(share(account.corrupted, load.corrupted_ppm.mean)),
    ]
}

/// `141 to 318 kpps`, each with its prefix.
fn range([low, high]: [f64; 2]) -> String {
    format!("{} to {}", si(low, "pps"), si(high, "pps"))
}

/// The highest load up to which nothing was lost, and the next load above it. A load without loss
/// above a lossy one does not count: below it the device is not lossless.
fn lossless(loads: &[LoadResult]) -> (Option<&LoadResult>, Option<&LoadResult>) {
    // The highest load comes first, so the last lossy one is the lowest.
    let lossy = loads.iter().rposition(|load| load.account.lost > 0);
    let below = loads.get(lossy.map_or(0, |at| at + 1));
    (below, lossy.and_then(|at| loads.get(at)))
}

/// The highest load without loss, and the loss at the next load and at the highest.
pub(super) fn fact(set: &FrameSet<'_>, cell: &CellResult, size: &str) -> Option<Fact> {
    let loads = cell.frames()?.loads();
    // The highest load comes first.
    let highest = loads.first()?;
    let percent_lost = |load: &LoadResult| percent(load.lost_ppm.mean / 1e4);
    let at_highest = format!(
        "{} lost at the highest load, {}",
        percent_lost(highest),
        mean_rate(&highest.offered.frames_per_s)
    );
    let (lossless, next) = lossless(loads);
    let label = label(set, set.kind.title(), size);
    Some(match lossless {
        Some(load) => {
            let offered = &load.offered.frames_per_s;
            let scale = Scale::si(offered.mean, "pps");
            let detail = next.map_or_else(
                || "the highest load offered".to_owned(),
                |next| {
                    format!(
                        "{} lost at the next load, {}; {at_highest}",
                        percent_lost(next),
                        mean_rate(&next.offered.frames_per_s)
                    )
                },
            );
            Fact {
                label,
                figure: scale.number(offered.mean),
                unit: format!("{} without loss", scale.unit),
                range: repeats(offered, &scale),
                detail,
                brief: String::new(),
            }
        }
        None => {
            let lowest = loads.last()?;
            let offered = mean_rate(&lowest.offered.frames_per_s);
            // One loss of several loads says little without those of the repeats.
            let (between, lost) = match common::apart(lowest) {
                None => (String::new(), String::new()),
                Some(ends) => {
                    let lost = [lowest.lost_ppm.min, lowest.lost_ppm.max];
                    let [least, most] = lost.map(|ppm| percent(ppm / 1e4));
                    let lost = format!("{least} to {most} in the repeats");
                    (format!(", in the repeats {}", range(ends)), lost)
                }
            };
            Fact {
                label,
                figure: percent_lost(lowest),
                unit: "lost at the lowest load".to_owned(),
                range: lost,
                detail: format!("{offered} offered{between}; {at_highest}"),
                brief: String::new(),
            }
        }
    })
}
