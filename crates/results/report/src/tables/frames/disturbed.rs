//! Loads with events at a device.
//!
//! Figures of an event (an outage, the frames lost by a rekey) cover the events of all repeats;
//! figures of a trial (rates, latency) cover the repeats.

mod desync;
mod events;
mod hostile;
mod rekey;
mod reset;

pub(crate) use hostile::percent_name;

use super::{head, labels, mean_rate, share, without_figure};
use crate::format::{Scale, time_ns};
use crate::layout::Run;
use crate::layout::disturbed::title;
use crate::layout::frames::{Device, FrameKind, FrameSet};
use crate::table::{Cell, Table};
use crate::tables::percentiles::{self, TITLES};
use plan::{Event, Procedure};
use stats::{CellResult, DisturbanceResult, DisturbedLoad, Estimate, EventResult, EventTimes};

/// The tables of a set, the most important first; all sets of one kind have the same number of
/// tables. Empty for other procedures.
pub(crate) fn disturbed(run: &Run<'_>, set: &FrameSet<'_>) -> Vec<Table> {
    match set.kind {
        FrameKind::Rekey => vec![
            rekey::rekeys(run, set),
            rekey::added(run, set),
            rekey::loads(run, set),
        ],
        FrameKind::Desync => vec![desync::desyncs(run, set)],
        FrameKind::Failover => match &set.test.procedure {
            Procedure::Disturbed(test) if test.event.opens_bypass() => {
                vec![events::bypass(run, set)]
            }
            _ => vec![events::failover(run, set)],
        },
        FrameKind::Reset => vec![reset::resets(run, set)],
        FrameKind::Setup => vec![events::setup(run, set)],
        FrameKind::Hostile => vec![hostile::forwarded(run, set), hostile::shares(run, set)],
        _ => Vec::new(),
    }
}

/// Single events that need attention.
pub(crate) fn exceptions(run: &Run<'_>, set: &FrameSet<'_>) -> impl Iterator<Item = Table> {
    let differing = reset::differing(run, set).into_iter();
    differing.chain(events::not_recovered(run, set))
}

/// The main figure of a cell, in a few words.
pub(super) fn figure(found: &DisturbanceResult) -> Option<String> {
    Some(match found.event.as_ref()? {
        EventResult::Rekey(rekey) => {
            let lost = Scale::plain().number(rekey.lost_frames.as_ref()?.mean);
            format!("{lost} frames lost per rekey")
        }
        EventResult::Failover(failover) => format!("outage {}", median_text(&failover.outage_ns)?),
        EventResult::Reset(reset) => {
            format!("reset time {}", median_text(&reset.frame_loss_ns)?)
        }
        EventResult::Setup(setup) => {
            format!("all tunnels after {}", median_text(&setup.all_carry_ns)?)
        }
        EventResult::Desync(desync) => format!("outage {}", median_text(&desync.outage_ns)?),
        EventResult::Hostile(hostile) => {
            let last = hostile.shares.last()?;
            match hostile.suffers_from_percent {
                Some(percent) => format!("suffers from {} on", percent_name(percent)),
                None => format!(
                    "{} forwarded at {}",
                    kept(&last.forwarded_ratio),
                    percent_name(last.percent)
                ),
            }
        }
    })
}

/// The set's event.
fn event<'a>(set: &FrameSet<'a>) -> Option<&'a Event> {
    match &set.test.procedure {
        Procedure::Disturbed(test) => Some(&test.event),
        _ => None,
    }
}

fn caption(set: &FrameSet<'_>, what: &str) -> String {
    let title = event(set).map_or_else(String::new, title);
    let what = match what {
        "" => title,
        what => format!("{title}: {what}"),
    };
    super::caption(set, &what)
}

fn of(cell: &CellResult) -> Option<&DisturbanceResult> {
    cell.frames()?.disturbance()
}

/// Adds one row per device: its figures, or the reason for their absence.
fn fill<const FIGURES: usize>(
    table: Table,
    run: &Run<'_>,
    set: &FrameSet<'_>,
    figures: impl Fn(&DisturbanceResult) -> Option<[Cell; FIGURES]>,
) -> Table {
    super::fill(table, run, set, |cell| figures(of(cell)?))
}

/// `1.20 s`; `no end` if at least half of the events have none.
fn median_text(times: &EventTimes) -> Option<String> {
    if times.events == 0 {
        return None;
    }
    Some(times.median_ns.map_or_else(|| "no end".into(), time_ns))
}

fn median(times: &EventTimes) -> Cell {
    or_endless(times, times.median_ns)
}

fn longest(times: &EventTimes) -> Cell {
    or_endless(times, times.max_ns)
}

fn or_endless(times: &EventTimes, value: Option<f64>) -> Cell {
    match (times.events, value) {
        (0, _) => Cell::missing(),
        (_, Some(value)) => Cell::plain(time_ns(value)),
        (_, None) => Cell::word("no end"),
    }
}

/// The interval over events that ended, or only their number if too few: these tables are wide.
fn interval(times: &EventTimes) -> Cell {
    let Some(found) = &times.ended_ns else {
        return Cell::missing();
    };
    match found.interval_95.ends() {
        Some(_) => crate::tables::spread::interval(found, &Scale::time(found.mean)),
        None => Cell::absent(format!("n = {}", found.n)),
    }
}

fn mean_time(estimate: Option<&Estimate>) -> Cell {
    Cell::or_missing(estimate.map(|found| time_ns(found.mean)))
}

fn mean_count(estimate: Option<&Estimate>) -> Cell {
    Cell::or_missing(estimate.map(|found| Scale::plain().number(found.mean)))
}

fn most(estimate: Option<&Estimate>) -> Cell {
    Cell::or_missing(estimate.map(|found| format!("{:.0}", found.max)))
}

/// `99.87 %` of a load, with two decimals; 100 % only if nothing is missing.
fn kept(ratio: &Estimate) -> String {
    let percent = 100.0 * ratio.mean;
    match percent {
        percent if percent < 100.0 && percent > 99.995 => "> 99.99 %".into(),
        percent => format!("{percent:.2} %"),
    }
}

/// Titles of [`load_cells`].
fn load_titles() -> Vec<&'static str> {
    [&["Forwarded", "Lost"][..], &TITLES].concat()
}

/// Figures of a load: forwarded, lost, and the distribution of latency.
fn load_cells(found: &DisturbedLoad) -> Vec<Cell> {
    let figures = [
        Cell::plain(mean_rate(&found.load.forwarded.frames_per_s)),
        Cell::plain(share(found.load.account.lost, found.load.lost_ppm.mean)),
    ];
    let times = percentiles::of_load(found.latency.as_ref());
    figures.into_iter().chain(times).collect()
}

/// The device's name in tables with one row per event.
fn device(run: &Run<'_>, cell: &CellResult) -> String {
    Device::of(cell).label(run)
}
