//! Loads with events at a device: charts first, then tables.
//!
//! Figures of an event (an outage, the frames lost by a rekey) cover the events of all repeats;
//! figures of a trial (rates, latency) cover the repeats.

pub(crate) mod columns;
pub(super) mod hostile;
pub(super) mod interruptions;
mod outages;
pub(super) mod rekey;
mod shares;
mod timeline;

use super::chart::Mix;
use super::search::details;
use super::{at_load, mean_rate, share};
use crate::kit::fact::Fact;
use crate::kit::format::{Scale, time_ns};
use crate::kit::percentiles::{TITLES, of_load};
use crate::kit::section::Blocks;
use crate::kit::table::{Cell, Table, joined};
use crate::layout::Run;
use crate::layout::disturbed::{attack_name, title};
use crate::layout::frames::{Device, FrameSet, settings};
use crate::topic::frames;
use hostile::percent_name;
use interruptions::{differing, not_recovered};
use plan::{Event, Failure, ProcedureKind};
use stats::{CellResult, DisturbanceResult, DisturbedLoad, Estimate, EventResult, EventTimes};

/// A kind of event: its section and the tables in it.
struct EventTopic {
    /// Anchor of its section.
    id: &'static str,
    kind: ProcedureKind,
    /// How to read the chart of single events.
    outages: &'static str,
    /// How to read the chart over time.
    timeline: &'static str,
    /// The tables of a set, the most important first; all sets have the same number of tables.
    tables: fn(&Run<'_>, &FrameSet<'_>) -> Vec<Table>,
}

const OF_FAILURES: &str = "A mark for each failure: from it to the last loss. Lines: the median. Outlined: from \
                           the start of the recovery to the first frame. The axis is logarithmic.";
const OVER_TIME: &str = "The first repeat of each device (or the first in which it did not recover), by the frames' intended time. Filled: frames received. Red: frames lost. \
                         Lines: each event, and how long frames were lost after it.";

fn blocks(run: &Run<'_>, out: &mut Blocks, topic: &EventTopic) {
    let (id, kind) = (topic.id, topic.kind);
    let sets = run.frame_sets_of(kind);
    for (at, set) in sets.iter().enumerate() {
        let what = set.event().unwrap_or_else(|| kind.title().to_owned());
        for (index, point) in set.points.iter().enumerate() {
            let name = point.name();
            let mix = Mix { run, set, point };
            // Sets and mixes are numbered, as their words may contain any character.
            let id = format!("{id}-{at}-{index}");
            out.folded_chart(
                true,
                format!("{what}, frames of {name}: how long, event by event"),
                topic.outages,
                || outages::draw(mix, &format!("{id}-events")),
            );
            out.chart(
                format!("{what}, frames of {name}: how much of it is forwarded"),
                "Marks: mean of the repeats. Outlined: no frame was lost in any repeat. \
                 Crosses: hostile packets came out of the device, which must not happen. The \
                 axis begins at the worst figure.",
                || shares::draw(mix, &format!("{id}-shares")),
            );
            out.folded_chart(
                true,
                format!("{what}, frames of {name}: over time"),
                topic.timeline,
                || timeline::draw(mix, &format!("{id}-time")),
            );
        }
    }
    let tables: Vec<_> = sets.iter().map(|set| (topic.tables)(run, set)).collect();
    let count = tables.iter().map(Vec::len).max().unwrap_or(0);
    // The first table of a set is its main one.
    let count = if out.is_short() { count.min(1) } else { count };
    let settings = settings(&sets);
    // All sets have the same kinds of tables in the same order, so equal places are joined.
    for place in 0..count {
        let of_each = settings.iter().zip(&tables);
        let of_each =
            of_each.filter_map(|(name, own)| Some((name.clone(), own.get(place)?.clone())));
        out.tables(joined(kind.title(), of_each.collect()));
    }
    for set in &sets {
        out.tables(exceptions(run, set));
    }
    details(run, out, &sets);
}

/// Single events that need attention.
fn exceptions(run: &Run<'_>, set: &FrameSet<'_>) -> impl Iterator<Item = Table> {
    let differing = differing(run, set).into_iter();
    differing.chain(not_recovered(run, set))
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
            // The shares rise, so the last one is the hardest.
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

fn caption(set: &FrameSet<'_>, what: &str) -> String {
    let title = set.event().unwrap_or_default();
    let what = match what {
        "" => title,
        what => format!("{title}: {what}"),
    };
    frames::caption(set, &what)
}

fn of(cell: &CellResult) -> Option<&DisturbanceResult> {
    cell.frames()?.disturbance()
}

/// Adds one row per device: its figures, or the reason for their absence.
fn fill<'a, const FIGURES: usize>(
    table: Table,
    run: &Run<'_>,
    set: &FrameSet<'a>,
    figures: impl Fn(&'a DisturbanceResult) -> Option<[Cell; FIGURES]>,
) -> Table {
    frames::fill(table, run, set, |cell| figures(of(cell)?))
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
    kept_percent(100.0 * ratio.mean)
}

fn kept_percent(percent: f64) -> String {
    match percent {
        // Rounded to 100.00 %, a small loss would look like none.
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
    let times = of_load(found.latency.as_ref());
    figures.into_iter().chain(times).collect()
}

/// The device's name in tables with one row per event.
fn device(run: &Run<'_>, cell: &CellResult) -> String {
    Device::of(cell).label(run)
}

/// Figure, unit, range and detail of a fact.
type Words = (String, String, String, String);

/// The figure of a device in a set.
pub(super) fn fact(device: &str, set: &FrameSet<'_>) -> Option<Fact> {
    let test = set.disturbance()?;
    let cell = set.own_cell(device)?;
    let found = cell.frames()?.disturbance()?;
    let (figure, unit, range, detail) = match &test.event {
        Event::Rekey { .. } => rekey::fact(found, found.rekey()?)?,
        // With a way past the device, the question is whether clear text takes it, not for how long
        // frames are lost.
        Event::Failover {
            failure: Failure::Bypass,
            ..
        } => interruptions::bypass(found.failover()?)?,
        Event::Failover { failure, .. } => {
            interruptions::failover_fact(*failure, found.failover()?)?
        }
        Event::Reset { .. } => interruptions::reset_fact(found.reset()?)?,
        Event::Setup { .. } => interruptions::setup_fact(found.setup()?)?,
        Event::Desync { .. } => interruptions::desync_fact(found.desync()?)?,
        Event::Hostile { attack, .. } => {
            let what = attack_name(*attack);
            hostile::fact(what, found, found.hostile()?)?
        }
    };
    Some(Fact {
        label: title(&test.event) + &at_load(set),
        figure,
        unit,
        range,
        detail,
        brief: String::new(),
    })
}
