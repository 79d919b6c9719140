//! Throughput in the vendors' form: devices as rows, frame sizes as columns; and mean frame rates.

use super::{caption, limit_mark, reason_cell};
use crate::format;
use crate::layout::Run;
use crate::layout::frames::{Device, FramePoint, FrameSet};
use crate::table::{Cell, Table};
use stats::{CellResult, LayerRates, MeanFrameRate, Metric, Status};

/// Unit of a vendor's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
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

    fn of(self, rates: &LayerRates) -> (f64, f64) {
        let (estimate, divisor) = match self {
            Self::Frames => (&rates.frames_per_s, 1e3),
            Self::L2 => (&rates.l2_bps, 1e6),
        };
        (estimate.mean / divisor, estimate.largest_distance / divisor)
    }
}

/// The relevant lower bound of the first goal.
pub(crate) fn vendor(run: &Run<'_>, set: &FrameSet<'_>, quantity: Quantity) -> Table {
    let goal = set.goals().first();
    let goal = goal.map_or_else(String::new, |goal| match goal.criteria.loss_ratio_ppm {
        0 => format!("goal {}, no loss", goal.name),
        ppm => format!("goal {}, loss up to {} %", goal.name, f64::from(ppm) / 1e4),
    });
    let what = format!("Throughput by frame size in {}", quantity.unit());
    let means = means(run, set, quantity);
    let note = format!(
        "{}; {goal}; relevant lower bound, mean ± largest distance from it; a figure without a mark is limited by the \
         device; irregular: RFC 9971; none: no lower bound, irregular{}",
        set.common,
        left_out(&means)
    );
    let mut table = Table::new(caption(set, &what), note).label("Device");
    table.has_marks = true;
    for point in &set.points {
        table = table.figure(point.short_name());
    }
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
pub(crate) fn ratios(run: &Run<'_>, set: &FrameSet<'_>) -> Option<Table> {
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
    let mut table = Table::new(caption(set, &what), note).label("Device");
    for point in &set.points {
        table = table.figure(point.short_name());
    }
    for device in &set.devices {
        let cell = |point: &FramePoint<'_>| point.cell(*device).and_then(found);
        if set.points.iter().all(|point| cell(point).is_none()) {
            continue;
        }
        let mut cells = vec![Cell::label(device.label(run))];
        let figures = set.points.iter().map(cell);
        cells.extend(figures.map(|found| Cell::derived_or_missing(found.map(format::ratio))));
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
    let all = &run.results.mean_frame_rates;
    let of = |device: &Device<'r>| {
        let own = |cell: &&CellResult| Device::of(cell) == *device;
        let cells = || {
            set.points
                .iter()
                .flat_map(|point| point.cells.iter().copied())
                .filter(own)
        };
        let is_of = |mean: &MeanFrameRate, id: &String| {
            mean.cells.contains(id) || mean.link_limited_cells.contains(id)
        };
        let mean = all
            .iter()
            .find(|mean| cells().any(|cell| is_of(mean, &cell.id)))?;
        Some((*device, mean))
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
    let Some((goal, rates)) = goal.and_then(|goal| Some((goal, goal.lower.as_ref()?))) else {
        return Cell::word("none");
    };
    let irregular = if goal.is_regular() { "" } else { " *" };
    let (mean, distance) = quantity.of(rates);
    let decimals = decimals(mean);
    let spread = match rates.frames_per_s.n {
        1 => String::new(),
        _ => format!(" ± {distance:.decimals$}"),
    };
    let mark = limit_mark(cell);
    let partly = crate::tables::count_mark(cell);
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
