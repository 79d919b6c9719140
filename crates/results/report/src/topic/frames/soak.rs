//! Hours under one load: the verdict with its figures, drifts, and reasons for instability.

mod chart;
pub(crate) mod columns;

use super::chart::Mix;
use super::search::details;
use super::{Table, caption, fill, head, labels, mean_rate, share};
use crate::kit::cells::{change, drift_cells};
use crate::kit::fact::{Fact, repeats};
use crate::kit::format::{Scale, bytes, counted, si, time_ns};
use crate::kit::percentiles::{TITLES, of_load};
use crate::kit::section::Section;
use crate::kit::table::Cell;
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use plan::ProcedureKind;
use stats::{CellResult, SoakResult, SoakRun, SoakVerdict};
use units::human::duration_ns;

pub(super) const SECTION: Section = Section::result("soak", "Soak", |run, out| {
    let sets = run.frame_sets_of(ProcedureKind::Soak);
    for (at, set) in sets.iter().enumerate() {
        for (index, point) in set.points.iter().enumerate() {
            out.chart(
                format!("Soak, frames of {}: over time", point.name()),
                "The worst repeat of each device, by the frames' intended time. Filled: frames \
                 received. Red: frames lost. Ticks: new keys, as the device reports them; red lines: \
                 keys out of step. Latency: median in grey, 99th percentile in the device's \
                 colour, the slowest frame in red. Gaps: no load.",
                || chart::draw(Mix { run, set, point }, &format!("soak-{at}-{index}")),
            );
        }
    }
    for set in &sets {
        out.tables(soak(run, set, out.is_short()));
    }
    details(run, out, &sets);
});

/// The tables of a set, the most important first; empty for other procedures.
pub(super) fn soak(run: &Run<'_>, set: &FrameSet<'_>, short: bool) -> Vec<Table> {
    let mut found = vec![verdicts(run, set)];
    if !short {
        found.push(drifts(run, set));
        found.push(device(run, set));
    }
    found.extend(reasons(run, set));
    found
}

/// The main figure of a soak cell, in a few words.
pub(super) fn figure(found: &SoakResult) -> String {
    format!(
        "{}, {}",
        mean_rate(&found.load.forwarded.frames_per_s),
        found.verdict.name()
    )
}

fn of(cell: &CellResult) -> Option<&SoakResult> {
    cell.frames()?.soak()
}

/// Each repeat of each device, with the labels of its row.
fn runs<'s>(
    run: &Run<'_>,
    set: &'s FrameSet<'_>,
) -> impl Iterator<Item = (Vec<Cell>, &'s SoakResult, &'s SoakRun)> {
    let found = set.rows().filter_map(|(point, cell)| {
        let found = of(cell)?;
        Some((labels(run, set, point, cell), found))
    });
    found.flat_map(|(labels, found)| {
        found.runs.iter().map(move |one| {
            let repeat = Cell::label(one.repeat.to_string());
            (labels.iter().cloned().chain([repeat]).collect(), found, one)
        })
    })
}

fn verdicts(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; time: under load, all segments together; rate: mean over that time; stalls: nothing \
        arrived for 100 ms, or frames were held back for that long; silence: longest time without a received frame; pauses: between \
         segments, without load",
        set.common
    );
    let table = head(set, Table::new(caption(set, "Soak"), note))
        .labels(["Repeat"])
        .texts(["Verdict"])
        .figures(["Time", "Rate", "Lost", "Stalls", "Silence", "Rekeys"])
        .figures(["Pauses"]);
    fill(table, run, set, |cell| {
        let runs = of(cell).map_or(&[][..], |found| &found.runs);
        runs.iter().map(|one| {
            let repeat = Cell::label(one.repeat.to_string());
            [repeat].into_iter().chain(verdict_cells(one))
        })
    })
}

fn verdict_cells(found: &SoakRun) -> [Cell; 8] {
    let ppm = 1e6 * found.lost as f64 / (found.sent.max(1)) as f64;
    [
        match found.verdict {
            SoakVerdict::Stable => Cell::term(found.verdict.name()),
            _ => Cell::word(found.verdict.name()),
        },
        Cell::plain(duration_ns(found.measured_ns as f64)),
        Cell::plain(rate(found.frames_per_s)),
        Cell::plain(share(found.lost, ppm)),
        Cell::plain(found.stalls.to_string()),
        Cell::plain(time_or_none(found.longest_silence_ns)),
        Cell::or_missing(found.rekeys.map(|rekeys| rekeys.to_string())),
        Cell::plain(format!(
            "{} in {}",
            time_or_none(found.pauses_ns),
            found.segments.saturating_sub(1)
        )),
    ]
}

fn drifts(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = "change over the whole time, in per cent of the median; by the Theil-Sen slope, with its 95 % interval; p: \
                Mann-Kendall test; both corrected for the correlation of adjacent points; steady: the whole interval is within the bound";
    let mut table = head(set, Table::new(caption(set, "Soak: drift"), note))
        .labels(["Repeat", "Of"])
        .figures(["Median", "Change", "95 % interval", "p", "Allowed"])
        .figures(["Points"])
        .texts(["Judged"]);
    for (labels, _, one) in runs(run, set) {
        for (name, drift, median) in [
            ("rate", &one.rate_drift, rate as fn(f64) -> String),
            (
                "median latency",
                &one.latency_drift,
                time_ns as fn(f64) -> String,
            ),
            (
                "device's memory",
                &one.memory_drift,
                bytes as fn(f64) -> String,
            ),
            ("device's CPU", &one.cpu_drift, cores as fn(f64) -> String),
            ("capacity", &one.capacity_drift, rate as fn(f64) -> String),
        ] {
            let mut cells = labels.clone();
            cells.push(Cell::label(name));
            cells.extend(drift_cells(drift.as_ref(), median));
            table.push(cells);
        }
    }
    table
}

/// Latency over the whole time, and the device's CPU and memory.
fn device(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = "latency one way, from the intended send time, all repeats pooled; capacity: forwarding rate at the maximum \
                offered load (RFC 2285), in probes before the first segment and after the last one, in no other figure; \
                cores: kept busy by the device's processes; \
                memory: most RAM of its processes; out of step: keys out of step, as the device reports them; starts: \
                of the device, several if the run was interrupted";
    let mut table = head(
        set,
        Table::new(caption(set, "Soak: latency and device"), note),
    )
    .labels(["Repeat"])
    .figures(TITLES)
    .figures(["Capacity", "Cores", "Memory", "Out of step", "Starts"]);
    // The table of verdicts has the reasons of cells without a figure.
    for (mut cells, found, one) in runs(run, set) {
        // Latency is of all repeats pooled, so it is the same in each row of a device.
        cells.extend(of_load(found.latency.as_ref()));
        cells.extend([
            Cell::or_missing(capacity(one)),
            Cell::or_missing(one.cpu_cores.map(cores)),
            Cell::or_missing(one.resident_bytes_max.map(|most| bytes(most as f64))),
            Cell::or_missing(one.desyncs.map(|times| times.to_string())),
            Cell::plain(one.starts.to_string()),
        ]);
        table.push(cells);
    }
    table
}

/// Reasons for instability; `None` if all soaks are stable.
fn reasons(run: &Run<'_>, set: &FrameSet<'_>) -> Option<Table> {
    let note = "conditions that were violated or not shown";
    let mut table = head(set, Table::new(caption(set, "Soak: why not stable"), note))
        .labels(["Repeat"])
        .texts(["Why"]);
    for (labels, _, one) in runs(run, set) {
        for reason in &one.reasons {
            let reason = Cell::plain(reason.as_str());
            table.push(labels.iter().cloned().chain([reason]).collect());
        }
    }
    table.with_rows()
}

/// `410 kpps, 402 kpps`; `≥ 2.1 Mpps` if the tester could not send more.
fn capacity(found: &SoakRun) -> Option<String> {
    // The probes before the first segment and after the last one.
    let (first, last) = (found.capacity.first()?, found.capacity.last()?);
    let (first, last) = (rate(first.frames_per_s), rate(last.frames_per_s));
    // A device that carries all of a probe shows the tester's capacity, and may have more.
    Some(if found.capacity_at_least {
        format!("≥ {first}, ≥ {last}")
    } else {
        format!("{first}, {last}")
    })
}

fn cores(cores: f64) -> String {
    format!("{cores:.2}")
}

fn rate(frames_per_s: f64) -> String {
    si(frames_per_s, "pps")
}

fn time_or_none(ns: u64) -> String {
    match ns {
        0 => "0".into(),
        ns => duration_ns(ns as f64),
    }
}

/// The worst run of a device.
pub(super) fn fact(device: &str, set: &FrameSet<'_>) -> Option<Fact> {
    let cell = set.own_cell(device)?;
    let found = cell.frames()?.soak()?;
    // Verdicts are ordered from stable to unstable.
    let worst = found.runs.iter().max_by_key(|run| run.verdict)?;
    let rate = found.load.forwarded.frames_per_s.mean;
    let mut detail = format!(
        "{} lost, {}",
        counted(found.runs.iter().map(|run| run.lost).sum::<u64>(), "frame"),
        counted(
            found
                .runs
                .iter()
                .map(|run| u64::from(run.stalls))
                .sum::<u64>(),
            "stall"
        )
    );
    detail.push_str(&drift_words(worst));
    if let Some(first) = worst.reasons.first() {
        detail.push_str(&format!("; {first}"));
    }
    Some(Fact {
        label: format!("Soak, {}", duration_ns(found.asked_ns as f64)),
        figure: found.verdict.name().to_owned(),
        unit: format!("at {}", si(rate, "pps")),
        range: repeats(&found.load.forwarded.frames_per_s, &Scale::si(rate, "pps")),
        detail,
        brief: String::new(),
    })
}

/// `; latency +1.20 %, memory 0.00 %`.
fn drift_words(run: &SoakRun) -> String {
    let known = [
        ("latency", &run.latency_drift),
        ("memory", &run.memory_drift),
    ];
    let known = known.iter().filter_map(|(name, drift)| {
        // A drift of too few points is not estimated.
        let drift = drift.as_ref().filter(|drift| drift.is_estimated())?;
        Some(format!("{name} {}", change(drift.change_ratio)))
    });
    let known: Vec<String> = known.collect();
    if known.is_empty() {
        String::new()
    } else {
        format!("; {}", known.join(", "))
    }
}
