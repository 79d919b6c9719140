//! Throughput by frame size, in the vendors' form.

mod chart;

use super::search::{details, throughput};
use super::{caption, cells, fill, head, joined, label, limit_mark, mean_rate, verdict};
use crate::kit::cells::{count_mark, found_in, reason_cell};
use crate::kit::fact::{Fact, repeats};
use crate::kit::format::{Scale, range_of, ratio, si, uncapitalized};
use crate::kit::section::Section;
use crate::kit::table::{BELOW, Cell, Table};
use crate::layout::Run;
use crate::layout::frames::{Device, FramePoint, FrameSet};
use plan::ProcedureKind;
use stats::{CellResult, Estimate, GoalResult, LayerRates, MeanFrameRate, Metric, Status};

pub(super) const SECTION: Section = Section::result(
    "frames",
    "Throughput by frame size",
    |run, out| {
        let sets = run.frame_sets_of(ProcedureKind::Throughput);
        for (index, set) in sets.iter().enumerate() {
            out.chart(
                format!("Throughput by frame size: {}", set.common),
                format!(
                    "Bars: relevant lower bound of the first goal, mean of the repeats; the line on a bar: \
                     the upper bound. {} A word above a bar: its limit, if that is not the device (T, L, \
                     M and ? in the table); unsure: the evidence does not decide. A line rate far above \
                     all figures is not drawn.",
                    run.whiskers()
                ),
                || chart::draw(run, set, &format!("frames-{index}-bars")),
            );
        }
        let what = "Throughput by frame size";
        let by_size = |quantity| joined(what, &sets, |set| Some(vendor(run, set, quantity)));
        out.tables(by_size(Quantity::Frames));
        out.tables(joined("Frame rate by the baseline's", &sets, |set| {
            ratios(run, set)
        }));
        if !out.is_short() {
            out.tables(by_size(Quantity::L2));
            out.tables(joined(what, &sets, |set| Some(layers(run, set))));
        }
        details(run, out, &sets);
    },
);

/// The first goal's lower bound as a rate at each layer, side by side.
fn layers(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; relevant lower bound of the first goal; L1: with preamble and gap; L2: frames with \
         FCS; IP: packets; of tester: in per cent of the tester's rate without a device; of link: in per cent of the rate \
         of the fuller link",
        set.common
    );
    let table = head(set, Table::new(caption(set, "Rates by layer"), note))
        .figures(["Frames/s", "L1", "L2", "IP", "Of link", "Of tester"])
        .texts(["Verdict"]);
    fill(table, run, set, |cell| {
        cell.frames()?;
        let goal = throughput(cell).and_then(|found| found.goals.first());
        let Some(rates) = goal.and_then(GoalResult::known_lower) else {
            // Measured, but without a lower bound: the search's reason is in place of the rates.
            let why = goal.and_then(|goal| goal.irregular.first());
            let mut cells = std::array::from_fn(|_| Cell::missing());
            cells[0] = Cell::reason(why.map_or("no lower bound", String::as_str));
            cells[6] = verdict(cell);
            return Some(cells);
        };
        let bits = |found: &Estimate| Cell::plain(si(found.mean, "bit/s"));
        let percent = |share: Option<f64>| {
            Cell::or_missing(share.map(|share| format!("{:.1} %", 100.0 * share)))
        };
        let judged = cell.verdict();
        let partly = if goal.is_some_and(|goal| goal.lower.is_none()) {
            found_in(rates.frames_per_s.n, cell)
        } else {
            String::new()
        };
        Some([
            Cell::plain(mean_rate(&rates.frames_per_s) + &partly),
            bits(&rates.l1_bps),
            bits(&rates.l2_bps),
            bits(&rates.ip_bps),
            percent(judged.and_then(|found| found.of_link)),
            percent(judged.and_then(|found| found.of_rig)),
            verdict(cell),
        ])
    })
}

/// Unit of a vendor's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    /// Frames per second, in thousands.
    Frames,
    /// Mbit/s at L2.
    L2,
}

impl Quantity {
    const fn unit(self) -> &'static str {
        match self {
            Self::Frames => "kpps",
            Self::L2 => "Mbit/s at L2",
        }
    }

    /// The estimate, and the size of the unit.
    const fn of(self, rates: &LayerRates) -> (&Estimate, f64) {
        match self {
            Self::Frames => (&rates.frames_per_s, 1e3),
            Self::L2 => (&rates.l2_bps, 1e6),
        }
    }

    fn mean(self, rates: &LayerRates) -> f64 {
        let (estimate, unit) = self.of(rates);
        estimate.mean / unit
    }
}

/// The relevant lower bound of the first goal.
fn vendor(run: &Run<'_>, set: &FrameSet<'_>, quantity: Quantity) -> Table {
    let goal = set.goals().first();
    let goal = goal.map_or_else(String::new, |goal| match goal.criteria.loss_ratio_ppm {
        0 => format!("goal {}, no loss", goal.name),
        ppm => format!("goal {}, loss up to {} %", goal.name, f64::from(ppm) / 1e4),
    });
    let what = format!("Throughput by frame size in {}", quantity.unit());
    let means = means(run, set, quantity);
    let note = format!(
        "{}; {goal}; relevant lower bound, mean ± largest distance from it; a figure without a mark is limited by the \
         device; irregular: RFC 9971{}",
        set.common,
        left_out(&means)
    );
    let mut table = Table::new(caption(set, &what), note)
        .labels(["Device"])
        .figures(set.points.iter().map(FramePoint::short_name));
    // The unit is in the caption, so letters after figures can only be marks.
    table.has_marks = true;
    let shows_mean = !means.is_empty();
    if shows_mean {
        table = table.figures(["Mean frame rate", "Mean frame rate, all sizes"]);
    }
    for device in &set.devices {
        let mut cells = vec![Cell::label(device.label(run))];
        for point in &set.points {
            let figure = |cell| figure(cell, quantity);
            cells.push(point.cell(*device).map_or_else(Cell::missing, figure));
        }
        if shows_mean {
            let mean = means.iter().find(|(found, _)| found == device);
            let mean = mean.map(|(_, mean)| mean);
            let rate = |rate: f64| format!("{} kpps", number(rate / 1e3));
            let own = mean.and_then(|mean| Some((rate(mean.frames_per_s?), mean.lacking())));
            cells.push(match own {
                Some((rate, None)) => Cell::derived(rate),
                Some((rate, Some(lacking))) => Cell::derived(format!("{rate} ({lacking})")),
                None => Cell::missing(),
            });
            let of_all = mean.and_then(|mean| mean.all_sizes_frames_per_s);
            cells.push(Cell::derived_or_missing(of_all.map(rate)));
        }
        table.push(cells);
    }
    table
}

/// Each device's frame rate relative to the baseline; `None` if no cell has a ratio.
fn ratios(run: &Run<'_>, set: &FrameSet<'_>) -> Option<Table> {
    let found = |cell: &CellResult| run.comparison(cell, Metric::FrameRate);
    let all = || {
        let cells = set.points.iter().flat_map(|point| point.cells.iter());
        cells.filter_map(|cell| found(cell))
    };
    let baseline = &all().next()?.baseline;
    let bounds = if all().any(|found| found.bound.is_some()) {
        "; ≤, ≥, ~: the search of the baseline, of the device, of both ended without an upper bound"
    } else {
        ""
    };
    let note = format!(
        "{}; over the pairs of repeats, with its 95 % interval (Student's t on logarithms){bounds}",
        set.common
    );
    let what = format!("Frame rate by that of {baseline}");
    let mut table = Table::new(caption(set, &what), note)
        .labels(["Device"])
        .figures(set.points.iter().map(FramePoint::short_name));
    for device in &set.devices {
        let cell = |point: &FramePoint<'_>| point.cell(*device).and_then(found);
        // The baseline has no ratio to itself.
        if set.points.iter().all(|point| cell(point).is_none()) {
            continue;
        }
        let mut cells = vec![Cell::label(device.label(run))];
        let figures = set.points.iter().map(cell);
        cells.extend(figures.map(|found| Cell::derived_or_missing(found.map(ratio))));
        table.push(cells);
    }
    Some(table)
}

/// Means of the set's devices, which are frame rates, so only the table of frame rates shows them.
fn means<'r>(
    run: &'r Run<'_>,
    set: &FrameSet<'r>,
    quantity: Quantity,
) -> Vec<(Device<'r>, &'r MeanFrameRate)> {
    if quantity != Quantity::Frames {
        return Vec::new();
    }
    let of = |device: &Device<'r>| {
        let is_of = |mean: &&MeanFrameRate| {
            let mut own = set.points.iter().filter_map(|point| point.cell(*device));
            // If the link limits all sizes, the mean has no other cells.
            own.any(|CellResult { id, .. }| {
                mean.cells.contains(id) || mean.link_limited_cells.contains(id)
            })
        };
        Some((*device, run.results.mean_frame_rates.iter().find(is_of)?))
    };
    set.devices.iter().filter_map(of).collect()
}

/// The frame sizes that the means leave out.
fn left_out(means: &[(Device<'_>, &MeanFrameRate)]) -> String {
    if means.is_empty() {
        return String::new();
    }
    let sizes = |sizes: &[u16]| {
        let sizes: Vec<String> = sizes.iter().map(u16::to_string).collect();
        format!("{} B", sizes.join(", "))
    };
    let without = means.iter().filter_map(|(device, mean)| {
        let mut parts = Vec::new();
        if !mean.link_limited_frame_bytes.is_empty() {
            let limited = sizes(&mean.link_limited_frame_bytes);
            parts.push(format!("{limited} (the link is the limit)"));
        }
        if !mean.missing_frame_bytes.is_empty() {
            parts.push(format!("{} (no figure)", sizes(&mean.missing_frame_bytes)));
        }
        (!parts.is_empty()).then(|| format!("{} without {}", device.dut, parts.join(" and ")))
    });
    let without: Vec<String> = without.collect();
    let mut text =
        "; mean frame rate: arithmetic mean over the fixed sizes that no link limits".to_owned();
    if !without.is_empty() {
        text.push_str(&format!(", {}", without.join(", ")));
    }
    // At a size at which the line is full, the mean of all sizes counts the line, not the device.
    text.push_str("; of all sizes: includes sizes that a link limits, as vendors print it");
    text
}

fn figure(cell: &CellResult, quantity: Quantity) -> Cell {
    let Some(throughput) = cell.frames().and_then(|found| found.throughput.as_ref()) else {
        // The tables with one row per cell contain the sentence.
        return match cell.status {
            Status::Invalid => Cell::word("invalid"),
            Status::Failed => Cell::word("failed"),
            _ => reason_cell(cell),
        };
    };
    let goal = throughput.goals.first();
    let Some(goal) = goal else {
        return Cell::word("none");
    };
    let Some(rates) = goal.known_lower() else {
        // Below the upper bound, if the device has one: less is known, but not nothing.
        return Cell::word(match goal.known_upper() {
            Some(rates) => format!("{BELOW}{} *", number(quantity.mean(rates))),
            None => "none".to_owned(),
        });
    };
    // RFC 9971 requires a report to mark irregular results.
    let irregular = if goal.is_regular() { "" } else { " *" };
    let (found, unit) = quantity.of(rates);
    let mean = found.mean / unit;
    let decimals = decimals(mean);
    let spread = match (found.n, range_of(found)) {
        // A single repeat has no distance, and ± 0 would seem exact.
        (1, _) => String::new(),
        (_, Some([low, high])) => {
            format!(" (repeats {}–{})", number(low / unit), number(high / unit))
        }
        (_, None) => format!(" ± {:.decimals$}", found.largest_distance / unit),
    };
    let mark = limit_mark(cell);
    // A bound of some repeats counts these, whether or not the others were measured.
    let partly = match goal.lower {
        Some(_) => count_mark(cell),
        None => found_in(rates.frames_per_s.n, cell),
    };
    Cell::plain(format!(
        "{mean:.decimals$}{spread}{partly}{mark}{irregular}"
    ))
}

fn number(value: f64) -> String {
    format!("{value:.*}", decimals(value))
}

/// One unit for the whole table, to make columns comparable: about three digits.
fn decimals(value: f64) -> usize {
    match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    }
}

pub(super) fn fact(run: &Run<'_>, device: &str, set: &FrameSet<'_>) -> Option<Fact> {
    let cells = cells(device, set);
    let with_figure = || cells.iter().filter(|(_, cell)| cell.frame_rate().is_some());
    // Devices are compared by their summaries, so these are about a size that all of them have.
    let shared = with_figure().find(|(size, _)| is_shared(set, size));
    let (size, cell) = shared.or_else(|| with_figure().next())?;
    let goal = cell.frames()?.throughput.as_ref()?.goals.first()?;
    let rates = goal.lower.as_ref()?;
    let scale = Scale::si(rates.frames_per_s.mean, "pps");
    let l2 = Scale::si(rates.l2_bps.mean, "bit/s");
    let mut detail = format!("{} at L2 (goal {})", l2.value(rates.l2_bps.mean), goal.goal);
    // Without an upper bound, the search only shows that the device carries at least this load.
    let mut at_least = "";
    if cell.frames()?.is_only_lower_bound() {
        at_least = "at least ";
        let why = goal.irregular.first();
        let why = why.map_or("no upper bound", |why| why.trim_end_matches('.'));
        detail = format!("{}; {detail}", uncapitalized(why));
    }
    let means = run.results.mean_frame_rates.iter();
    let own = |cell: &str| cells.iter().any(|(_, known)| known.id == cell);
    let mut means = means.filter(|mean| mean.cells.iter().any(|cell| own(cell)));
    let mean = means.find_map(|mean| Some((mean, mean.frames_per_s?)));
    if let Some((mean, rate)) = mean {
        detail.push_str(&format!(
            "; mean over {} {}",
            mean.lacking().unwrap_or_else(|| "sizes".to_owned()),
            si(rate, "pps")
        ));
    }
    if let Some(verdict) = cell.verdict() {
        detail.push_str(&format!("; {}", verdict.limit.name()));
    }
    Some(Fact {
        label: label(set, "Throughput", size),
        figure: format!("{at_least}{}", scale.number(rates.frames_per_s.mean)),
        range: repeats(&rates.frames_per_s, &scale),
        unit: scale.unit,
        detail,
        brief: String::new(),
    })
}

/// Whether every device under test that has a figure at some size has one at this size.
fn is_shared(set: &FrameSet<'_>, size: &str) -> bool {
    let is_point = |point: &&FramePoint<'_>| point.name() == size;
    let Some(point) = set.points.iter().find(is_point) else {
        return false;
    };
    let has_figure = |point: &FramePoint<'_>, device: Device<'_>| {
        let cell = point.cell(device);
        cell.is_some_and(|cell| !cell.baseline && cell.frame_rate().is_some())
    };
    let tested = set.devices.iter().filter(|device| !device.calibration);
    let mut measured = tested.filter(|device| {
        let mut points = set.points.iter();
        points.any(|point| has_figure(point, **device))
    });
    measured.all(|device| has_figure(point, *device))
}

/// Why a goal has no figure, with the known bound: `No lower bound in any repeat: even the lowest
/// load, 1 kpps, does not meet the goal.`
pub(crate) fn without(cell: &CellResult) -> Option<String> {
    let goal = cell.frames()?.throughput.as_ref()?.goals.first()?;
    goal.lower
        .is_none()
        .then(|| unbounded(goal))
        .filter(|why| !why.is_empty())
        .map(|why| format!("{why}."))
}

/// Whether some repeats of a cell found a lower bound and others did not.
pub(crate) fn is_partly_without(cell: &CellResult) -> bool {
    let frames = cell.frames().and_then(|found| found.throughput.as_ref());
    let goal = frames.and_then(|found| found.goals.first());
    goal.is_some_and(|goal| goal.lower.is_none() && goal.lower_of_some.is_some())
}

/// The known bounds of a search, and why the others are missing.
fn unbounded(goal: &GoalResult) -> String {
    let repeats = goal.repeats();
    let known = |what: &str, rates: &LayerRates| {
        let rate = &rates.frames_per_s;
        let of = if rate.n == repeats {
            String::new()
        } else {
            format!(" in {} of {repeats} repeats", rate.n)
        };
        let scale = Scale::si(rate.mean, "pps");
        format!("{what} {}{of}", scale.value(rate.mean))
    };
    let mut parts: Vec<String> = Vec::new();
    if let Some(lower) = &goal.lower_of_some {
        parts.push(known("at least", lower));
    }
    // An upper bound due to losses of the tester says nothing about the device.
    parts.extend(goal.known_upper().map(|upper| known("less than", upper)));
    let known = parts.join(", ");
    // The reason is a sentence of its own, so a full stop precedes it.
    let why = goal.irregular.first();
    let why = why.map(|why| why.trim_end_matches('.').to_owned());
    let parts = (!known.is_empty()).then_some(known).into_iter().chain(why);
    parts.collect::<Vec<_>>().join(". ")
}
