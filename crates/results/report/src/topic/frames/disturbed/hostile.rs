//! Hostile packets added to a load.

use super::{
    EventTopic, OF_FAILURES, OVER_TIME, Words, blocks, caption, kept, load_cells, load_titles,
};
use crate::kit::fact::repeats;
use crate::kit::format::{Scale, counted, percent};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::order::sorted;
use crate::topic::frames::{self, disturbed, head, mean_rate};
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
    let table = head(set, Table::new(caption(set, "forwarded"), note))
        .figures(["None"])
        .figures(percents.iter().map(|percent| percent_name(*percent)))
        .figures(["Suffers from", "Came through"]);
    frames::fill(table, run, set, |cell| {
        let found = disturbed::of(cell)?;
        let hostile = found.hostile()?;
        let quiet = found.quiet.as_ref();
        let mut cells = vec![Cell::or_missing(quiet.and_then(forwarded_text))];
        cells.extend(percents.iter().map(|percent| {
            let mut shares = hostile.shares.iter();
            let share = shares.find(|share| share.percent == *percent);
            Cell::or_missing(share.map(|share| kept(&share.forwarded_ratio)))
        }));
        cells.extend([suffers(quiet, hostile), Cell::faults(hostile.delivered)]);
        Some(cells)
    })
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
    let found = set
        .rows()
        .filter_map(|(_, cell)| disturbed::of(cell)?.hostile());
    sorted(found.flat_map(|hostile| hostile.shares.iter().map(|share| share.percent)))
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
    let table = head(set, Table::new(caption(set, "loss and latency"), note))
        .labels(["Share"])
        .figures(["Hostile"])
        .figures(load_titles())
        .figures(["Came through"]);
    frames::fill(table, run, set, |cell| {
        let found = disturbed::of(cell);
        let hostile = found.and_then(DisturbanceResult::hostile);
        let quiet = found.and_then(|found| found.quiet.as_ref());
        let quiet = quiet.filter(|_| hostile.is_some()).map(|quiet| {
            let account = &quiet.load.account;
            // Counted without an attack as well: a device that always repeats frames would
            // otherwise seem to let the attack through.
            let odd = account.duplicated + account.corrupted;
            share_cells("none".into(), Cell::plain("0"), quiet, odd)
        });
        let shares = hostile.map_or(&[][..], |hostile| &hostile.shares);
        let shares = shares.iter().map(|share| {
            let sent = Cell::or_missing(share.packets_per_s.as_ref().map(mean_rate));
            let name = percent_name(share.percent);
            share_cells(name, sent, &share.disturbed, share.delivered)
        });
        quiet.into_iter().chain(shares)
    })
}

fn share_cells(name: String, sent: Cell, load: &DisturbedLoad, came_through: u64) -> Vec<Cell> {
    let mut cells = vec![Cell::label(name), sent];
    cells.extend(load_cells(load));
    cells.push(Cell::faults(came_through));
    cells
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
