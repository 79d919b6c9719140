//! Keys renewed under a load.

use super::{
    EventTopic, OF_FAILURES, Words, blocks, caption, fill, kept, load_cells, load_titles, longest,
    mean_count, mean_time, most,
};
use crate::kit::cells::without_figure;
use crate::kit::fact::repeats;
use crate::kit::format::{Scale, counted, time_ns};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::topic::frames::{self, disturbed, head};
use plan::ProcedureKind;
use stats::{DisturbanceResult, Estimate, RekeyResult};

pub(crate) const SECTION: Section = Section::result(EVENT.id, EVENT.kind.title(), |run, out| {
    blocks(run, out, &EVENT)
});

const EVENT: EventTopic = EventTopic {
    id: "rekeys",
    kind: ProcedureKind::Rekey,
    outages: OF_FAILURES,
    timeline: "The first repeat of each device (or the first in which it did not recover), by the frames' intended time. Above: frames received, and in red those \
               lost. Below: the slowest frame of each interval, in grey without rekeys. Ticks: rekeys.",
    tables: |run, set| vec![rekeys(run, set), added(run, set), loads(run, set)],
};

/// Cost of a rekey.
pub(super) fn rekeys(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; duration: until the device reported completion; lost: frames from one rekey to the next; gap: from a \
         rekey to its last loss; all three over the rekeys of all repeats; kept: forwarding rate by that of the \
         same load without rekeys; clean: of the repeats whose load lost nothing without rekeys, so \
         that loss with rekeys is due to them",
        set.common
    );
    let table = head(set, Table::new(caption(set, ""), note))
        .figures(["Rekeys", "Configured, 1/s", "Reached, 1/s", "Duration"])
        .figures(["Lost, mean", "Lost, max", "Longest gap"])
        .figures(["Throughput kept", "Clean repeats", "Rekeys in them"])
        .figures(["Lost in them"]);
    fill(table, run, set, |found| Some(cells(found.rekey()?)))
}

fn cells(found: &RekeyResult) -> [Cell; 11] {
    let number = |value: f64| Scale::plain().number(value);
    let reached = found.reached_per_s.as_ref();
    let clean = found.clean;
    // Without clean repeats, 0 would look like a result.
    let of_clean = |count: u64| Cell::or_missing((clean.repeats > 0).then(|| count.to_string()));
    [
        Cell::plain(found.rekeys.to_string()),
        Cell::plain(number(found.asked_per_s)),
        Cell::or_missing(reached.map(|found| number(found.mean))),
        mean_time(found.took_ns.as_ref()),
        mean_count(found.lost_frames.as_ref()),
        most(found.lost_frames.as_ref()),
        longest(&found.outage_ns),
        Cell::or_missing(found.kept_ratio.as_ref().map(kept)),
        Cell::plain(format!("{} of {}", clean.repeats, clean.of_repeats)),
        of_clean(clean.rekeys),
        of_clean(clean.lost),
    ]
}

/// The latency added by rekeys, and the throughput lost.
pub(super) fn added(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = "latency with rekeys less that without: of the whole trials, over the repeats; around a rekey: its slowest frame, \
                until 100 ms after it was done, less the slowest of the same time without rekeys, over the rekeys; \
                throughput: with continuous rekeys by that without, of the first goal";
    let table = head(set, Table::new(caption(set, "added latency"), note))
        .figures(["p50", "p99", "Max", "Around a rekey, mean", "Most"])
        .figures(["Throughput ratio", "95 % interval"]);
    fill(table, run, set, |found| Some(added_cells(found.rekey()?)))
}

fn added_cells(found: &RekeyResult) -> [Cell; 7] {
    let time = |found: Option<&Estimate>| Cell::or_missing(found.map(|one| signed(one.mean)));
    let around = found.added_slowest_ns.as_ref();
    let ratio = found.throughput_ratio.as_ref();
    [
        time(found.added_p50_ns.as_ref()),
        time(found.added_p99_ns.as_ref()),
        time(found.added_max_ns.as_ref()),
        time(around),
        Cell::or_missing(around.map(|one| signed(one.max))),
        // Rekeys cost little, so the ratio needs four decimals.
        Cell::or_missing(ratio.map(|one| format!("{:.4}", one.mean))),
        ratio.map_or_else(Cell::missing, |one| match one.interval_95.ends() {
            Some((low, high)) => Cell::plain(format!("{low:.4}–{high:.4}")),
            None => Cell::absent(format!("n = {}", one.n)),
        }),
    ]
}

/// `+12.3 µs`, `-4 µs`.
fn signed(ns: f64) -> String {
    // By chance, latency may be lower with rekeys than without.
    let sign = if ns < 0.0 { "-" } else { "+" };
    format!("{sign}{}", time_ns(ns.abs()))
}

/// The load with and without rekeys.
pub(super) fn loads(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; the same load for the same time, first without rekeys; latency one way, from the intended \
         send time, all repeats pooled",
        set.common
    );
    let table = head(set, Table::new(caption(set, "loss and latency"), note))
        .labels(["Rekeys"])
        .figures(load_titles());
    frames::fill(table, run, set, |cell| {
        let found = disturbed::of(cell);
        let quiet = found.and_then(|found| found.quiet.as_ref());
        let renewed = found.and_then(|found| Some(&found.rekey()?.disturbed));
        [("without", quiet), ("with", renewed)].map(|(name, load)| {
            let without = || without_figure(cell, load_titles().len());
            let figures = load.map_or_else(without, load_cells);
            [Cell::label(name)].into_iter().chain(figures)
        })
    })
}

pub(super) fn fact(found: &DisturbanceResult, rekey: &RekeyResult) -> Option<Words> {
    let lost = rekey.lost_frames.as_ref()?;
    // A mean of hardly any lost frames hides a single rekey that lost many.
    let worst = match lost.max {
        most if most > 0.0 => format!("at most {most:.0} lost by one"),
        _ => "none lost a frame".to_owned(),
    };
    let mut parts = vec![format!("{}, {worst}", counted(rekey.rekeys, "rekey"))];
    let clean = rekey.clean;
    // If the load lost frames without rekeys too, only clean repeats show the cost of rekeys.
    if lost.max > 0.0 && clean.repeats < clean.of_repeats {
        parts.push(match clean.repeats {
            0 => "without rekeys the load lost frames too, in every repeat".to_owned(),
            repeats => format!(
                "in the {repeats} of {} repeats whose load lost nothing without rekeys: {} lost by {}",
                clean.of_repeats,
                counted(clean.lost, "frame"),
                counted(clean.rekeys, "rekey")
            ),
        });
    }
    if let Some(reached) = &rekey.reached_per_s {
        let number = Scale::plain();
        parts.push(format!(
            "{}/s of {}/s configured",
            number.number(reached.mean),
            number.number(rekey.asked_per_s)
        ));
    }
    if let Some(ratio) = &rekey.throughput_ratio {
        parts.push(format!("throughput {:.4} of that without", ratio.mean));
    }
    let p99 = |load: &stats::DisturbedLoad| load.latency.as_ref()?.p99_ns;
    let quiet = found.quiet.as_ref().and_then(p99);
    if let Some((with, without)) = p99(&rekey.disturbed).zip(quiet) {
        parts.push(format!(
            "p99 {}, without rekeys {}",
            time_ns(with as f64),
            time_ns(without as f64)
        ));
    }
    let figure = Scale::plain().number(lost.mean);
    // The samples are rekeys here, not repeats.
    let range = repeats(lost, &Scale::plain()).replace("repeats", "single rekeys");
    Some((
        figure,
        "frames lost per rekey".into(),
        range,
        parts.join("; "),
    ))
}
