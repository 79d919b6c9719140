//! Hostile packets added to a load.

use super::{
    EventTopic, OF_FAILURES, OVER_TIME, Words, blocks, caption, kept, load_cells, load_titles,
};
use crate::kit::cells::without_figure;
use crate::kit::fact::repeats;
use crate::kit::format::{Scale, counted, percent};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::topic::frames::mean_rate;
use crate::topic::frames::{disturbed, head, labels};
use plan::ProcedureKind;
use stats::{DisturbanceResult, DisturbedLoad, HostileResult, HostileShare};

pub(crate) const SECTION: Section = Section::result(EVENT.id, EVENT.kind.title(), |run, out| {
    blocks(run, out, &EVENT)
});

const EVENT: EventTopic = EventTopic {
    id: "hostile",
    kind: ProcedureKind::Hostile,
    outages: OF_FAILURES,
    timeline: OVER_TIME,
    tables: |run, set| vec![forwarded(run, set), shares(run, set)],
};

/// `10 %`.
pub(super) fn percent_name(percent: u16) -> String {
    format!("{percent} %")
}

/// The forwarded share of the load: devices as rows, shares of hostile packets as columns.
pub(super) fn forwarded(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; columns: hostile packets in per cent of the load; figures: frames of the load received by those sent, \
         mean of the repeats; suffers: lowest share at which more than 0.1 % of the load was lost; came through: \
         forged or replayed frames that the device forwarded, which must be none",
        set.common
    );
    let percents = percents(set);
    let mut table = head(set, Table::new(caption(set, "forwarded"), note)).figure("None");
    for percent in &percents {
        table = table.figure(percent_name(*percent));
    }
    table = table.figure("Suffers from").figure("Came through");
    for (point, cell) in set.rows() {
        let mut cells = labels(run, set, point, cell);
        let hostile = disturbed::of(cell).and_then(|found| Some((found, found.hostile()?)));
        let Some((found, hostile)) = hostile else {
            // The column without hostile packets, one per share, and the last two.
            cells.extend(without_figure(cell, percents.len() + 3));
            table.push(cells);
            continue;
        };
        let quiet = found.quiet.as_ref();
        cells.push(Cell::or_missing(quiet.and_then(forwarded_text)));
        for percent in &percents {
            let share = hostile
                .shares
                .iter()
                .find(|share| share.percent == *percent);
            cells.push(Cell::or_missing(
                share.map(|share| kept(&share.forwarded_ratio)),
            ));
        }
        cells.extend([suffers(quiet, hostile), Cell::faults(hostile.delivered)]);
        table.push(cells);
    }
    table
}

fn forwarded_text(found: &DisturbedLoad) -> Option<String> {
    let account = &found.load.account;
    let sent = found.sent();
    let ratio = (sent > 0).then(|| 100.0 * account.received as f64 / sent as f64)?;
    // 100 % means that nothing was lost, so no small loss may be rounded to it.
    Some(match account.lost {
        0 => "100.00 %".into(),
        _ if ratio > 99.995 => "> 99.99 %".into(),
        _ => format!("{ratio:.2} %"),
    })
}

/// The shares of all cells of the set, ascending.
fn percents(set: &FrameSet<'_>) -> Vec<u16> {
    let shares = set.rows().filter_map(|(_, cell)| {
        let hostile = disturbed::of(cell)?.hostile()?;
        Some(hostile.shares.iter().map(|share| share.percent))
    });
    let mut percents: Vec<u16> = shares.flatten().collect();
    percents.sort_unstable();
    percents.dedup();
    percents
}

fn suffers(quiet: Option<&DisturbedLoad>, found: &HostileResult) -> Cell {
    match found.suffers_from_percent {
        Some(percent) => Cell::term(percent_name(percent)),
        None if quiet.is_some_and(DisturbedLoad::suffers) => Cell::word("without any"),
        None => Cell::plain("none"),
    }
}

/// Every share: the hostile packets sent, and the result for the load.
pub(super) fn shares(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; hostile: packets/s actually sent; came through: repeated, damaged, or so late \
         that they may be repeats; latency one way, from the intended send time, all repeats pooled",
        set.common
    );
    let mut table = head(set, Table::new(caption(set, "loss and latency"), note))
        .label("Share")
        .figure("Hostile")
        .figures(load_titles())
        .figure("Came through");
    for (point, cell) in set.rows() {
        let found = disturbed::of(cell);
        let mut push = |name: String, figures: Vec<Cell>| {
            let mut cells = labels(run, set, point, cell);
            cells.push(Cell::label(name));
            cells.extend(figures);
            table.push(cells);
        };
        let Some(hostile) = found.and_then(DisturbanceResult::hostile) else {
            push(String::new(), without_figure(cell, load_titles().len() + 2));
            continue;
        };
        if let Some(quiet) = found.and_then(|found| found.quiet.as_ref()) {
            let account = &quiet.load.account;
            // Counted without an attack as well: a device that always repeats frames would
            // otherwise seem to let the attack through.
            let odd = account.duplicated + account.corrupted;
            let cells = [Cell::plain("0")].into_iter().chain(load_cells(quiet));
            push("none".into(), cells.chain([Cell::faults(odd)]).collect());
        }
        for share in &hostile.shares {
            push(percent_name(share.percent), share_cells(share));
        }
    }
    table
}

fn share_cells(share: &HostileShare) -> Vec<Cell> {
    let sent = share.packets_per_s.as_ref().map(mean_rate);
    [Cell::or_missing(sent)]
        .into_iter()
        .chain(load_cells(&share.disturbed))
        .chain([Cell::faults(share.delivered)])
        .collect()
}

pub(super) fn fact(
    what: &str,
    found: &DisturbanceResult,
    hostile: &HostileResult,
) -> Option<Words> {
    // The shares rise, so the last one is the hardest.
    let last = hostile.shares.last()?;
    let lost = |share: &HostileShare| percent(100.0 * (1.0 - share.forwarded_ratio.mean));
    let sent = last.packets_per_s.as_ref();
    let sent = sent.map_or_else(String::new, |rate| format!(" ({})", mean_rate(rate)));
    let most = format!("{}{sent}", percent_name(last.percent));
    let quiet = found.quiet.as_ref();
    // It suffers from a share on; or without any, so nothing can be said; or it withstood all.
    let (figure, unit, detail) = match hostile.suffers_from_percent {
        Some(from) => (
            format!("from {from}"),
            "% on".to_owned(),
            format!(
                "of the load in {what} it loses more than 0.1 %; with {most} it loses {}",
                lost(last)
            ),
        ),
        None if quiet.is_some_and(DisturbedLoad::suffers) => (
            "no figure".into(),
            String::new(),
            "the load lost more than 0.1 % without hostile packets".into(),
        ),
        None => (
            format!("≥ {}", last.percent),
            "% withstood".to_owned(),
            format!("of the load in {what}: with {most} it loses {}", lost(last)),
        ),
    };
    let came = match hostile.delivered {
        0 => "none came through".to_owned(),
        frames => format!("{} CAME THROUGH", counted(frames, "hostile packet")),
    };
    let range = repeats(
        &last.forwarded_ratio,
        &Scale {
            divisor: 0.01,
            unit: "% forwarded".into(),
        },
    );
    // Delivered hostile packets are a defect, so they are named next to the figure.
    Some(match hostile.delivered {
        0 => (figure, unit, range, format!("{detail}; {came}")),
        _ => (figure, unit, format!("{came}; {range}"), detail),
    })
}
