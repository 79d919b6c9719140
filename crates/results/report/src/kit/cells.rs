//! Cells that tables of several topics have: figures with their marks, reasons for the absence of
//! a figure, ratios, and the labels of a set's cells.

use super::format::{Scale, bit_rate, percent, ratio, si};
use super::table::{Cell, LATE_MARK, Table, joined};
use crate::layout::{Point, Protocol, Run, Set, payload_name};
use journal::record::in_brief;
use stats::{CellResult, Comparison, Drift, DriftJudgement, Estimate, Metric, Status};

/// How to read the figures of a table.
pub(crate) const FORMAT: &str = "mean ± largest distance from it (per cent of the mean)";

pub(crate) fn throughput_cell(cell: &CellResult) -> Cell {
    match cell.throughput_bps() {
        Some(found) => Cell::plain(with_repeats(bit_rate(found), cell)),
        None => reason_cell(cell),
    }
}

/// The figure, with its number of repeats if some are missing, and a mark if some are late.
pub(crate) fn with_repeats(figure: String, cell: &CellResult) -> String {
    let figure = match cell.status {
        // The mark, `[1 of 3]`, already contains the number of repeats.
        Status::Partly => figure.trim_end_matches(" (n = 1)").to_owned(),
        _ => figure,
    };
    figure + &partly_mark(cell) + late_mark(cell)
}

/// ` [2 of 3]`, for a figure from only some repeats.
pub(crate) fn count_mark(cell: &CellResult) -> String {
    match cell.status {
        Status::Partly => format!(" [{} of {}]", cell.repeats.measured, cell.repeats.planned),
        _ => String::new(),
    }
}

/// ` [1 of 3]`, for a figure that so many repeats found.
pub(crate) fn found_in(repeats: u32, cell: &CellResult) -> String {
    format!(" [{repeats} of {}]", cell.repeats.planned)
}

/// [`count_mark`] with the failed check of the first invalid repeat: ` [2 of 3: no-clear-text]`.
pub(crate) fn partly_mark(cell: &CellResult) -> String {
    let mark = count_mark(cell);
    let mut reasons = cell.reasons.iter();
    // Only reasons of failed checks have an explanation; an error has no name short enough for a
    // mark.
    let check = reasons.find(|reason| reason.explanation.is_some());
    match check.filter(|_| cell.repeats.invalid > 0 && !mark.is_empty()) {
        Some(reason) => format!(
            "{}: {}]",
            mark.trim_end_matches(']'),
            in_brief(&reason.text)
        ),
        None => mark,
    }
}

/// The mark of a cell with repeats measured after a resume.
pub(crate) fn late_mark(cell: &CellResult) -> &'static str {
    if cell.late_repeats.is_empty() {
        ""
    } else {
        LATE_MARK
    }
}

/// The reason, in place of a missing figure.
pub(crate) fn reason_cell(cell: &CellResult) -> Cell {
    let first = cell
        .reasons
        .first()
        .map_or("no reason was recorded", |reason| &reason.text);
    // One line: the table of reasons has the whole text, once for all affected cells.
    match cell.status {
        Status::Invalid => Cell::reason(format!("invalid: {}", in_brief(first))),
        Status::Failed => Cell::reason("failed"),
        // The machine has too few cores, which is no fault of the device.
        Status::NotRun if cell.is_skipped() => Cell::absent("too few cores"),
        Status::NotRun => Cell::absent("not run"),
        Status::Measured | Status::Partly => Cell::missing(),
    }
}

pub(crate) fn ratio_cell(run: &Run<'_>, cell: &CellResult, metric: Metric) -> Cell {
    let words = |found: &Comparison| {
        // A change of the machine between two sittings of the run does not cancel in the ratio.
        let mark = if found.apart_ns.is_some() {
            LATE_MARK
        } else {
            ""
        };
        ratio(found) + mark
    };
    Cell::derived_or_missing(run.comparison(cell, metric).map(words))
}

/// The mean alone.
pub(crate) fn mean(estimate: &Estimate, unit: &str) -> String {
    si(estimate.mean, unit)
}

/// Explanation of the column of ratios.
pub(crate) fn of_baseline(set: &Set<'_>, what: &str) -> String {
    set.compared_with().map_or_else(String::new, |baseline| {
        format!("; ratio: {what} by that of {baseline}, over the pairs of repeats, with its 95 % interval (Student's t on logarithms)")
    })
}

/// A table of each set of one protocol; tables that can be joined become one.
pub(crate) fn joined_sets(
    what: &str,
    sets: &[Set<'_>],
    table: impl Fn(&Set<'_>) -> Table,
) -> Vec<Table> {
    let tables = sets.iter().map(table);
    joined(what, Set::settings(sets).into_iter().zip(tables).collect())
}

/// Builds a table with one row per cell of a set: labels, the `figures` below `titles` or the
/// reason for their absence, and, for a given metric, the ratio to the baseline.
pub(crate) fn cell_table(
    run: &Run<'_>,
    set: &Set<'_>,
    table: Table,
    titles: &[&str],
    metric: Option<Metric>,
    figures: impl Fn(&CellResult) -> Vec<Cell>,
) -> Table {
    // The same settings vary in all rows, so the table has one set of label columns.
    let labels = Labels::of(set);
    // Without a baseline the whole column would be empty.
    let metric = metric.filter(|_| set.compared_with().is_some());
    let mut table = labels
        .head(table)
        .figures(titles.iter().copied())
        .figures(metric.map(|_| "Ratio"));
    for point in &set.points {
        for cell in &point.cells {
            let mut cells = labels.cells(point, cell);
            cells.extend(figures(cell));
            cells.extend(metric.map(|metric| ratio_cell(run, cell, metric)));
            table.push(cells);
        }
    }
    table
}

/// The reason, in place of a row's missing figures.
pub(crate) fn without_figure(cell: &CellResult, columns: usize) -> Vec<Cell> {
    // The first column contains the reason.
    let missing = (1..columns).map(|_| Cell::missing());
    [reason_cell(cell)].into_iter().chain(missing).collect()
}

/// The label columns of tables with one row per cell: the axes that vary, then the device.
pub(crate) struct Labels {
    pub(crate) payload: bool,
    pub(crate) mtu: bool,
    pub(crate) cores: bool,
}

impl Labels {
    pub(crate) fn of(set: &Set<'_>) -> Self {
        Self {
            // The rate of UDP depends on the datagram size, so it is shown even if all cells share
            // it.
            payload: set.varies.payload || set.protocol == Protocol::Udp,
            mtu: set.varies.mtu,
            cores: set.varies.cores,
        }
    }

    pub(crate) fn head(&self, table: Table) -> Table {
        let titles = [
            (self.payload, "Payload"),
            (self.mtu, "MTU"),
            (self.cores, "Cores"),
            // The device varies fastest, and `Table::push` merges all labels of a row but the last.
            (true, "Device"),
        ];
        let shown = titles.into_iter().filter(|(varies, _)| *varies);
        table.labels(shown.map(|(_, title)| title))
    }

    pub(crate) fn cells(&self, point: &Point<'_>, cell: &CellResult) -> Vec<Cell> {
        let all = [
            (self.payload, payload_name(point.payload)),
            (self.mtu, format!("{} B", point.mtu)),
            (self.cores, point.cores.to_string()),
            (true, cell.dut.clone()),
        ];
        all.into_iter()
            .filter(|(varies, _)| *varies)
            .map(|(_, text)| Cell::label(text))
            .collect()
    }
}

pub(crate) fn drift_cells(drift: Option<&Drift>, median: fn(f64) -> String) -> [Cell; 7] {
    let Some(drift) = drift else {
        return std::array::from_fn(|_| Cell::missing());
    };
    let points = Cell::plain(drift.points.to_string());
    if !drift.is_estimated() {
        let [change, interval, p, allowed] = std::array::from_fn(|_| Cell::missing());
        // A median needs no trend, so a few points suffice for it.
        let median = Cell::plain(median(drift.median));
        let few = Cell::word("too few points");
        return [median, change, interval, p, allowed, points, few];
    }
    [
        Cell::plain(median(drift.median)),
        Cell::plain(change(drift.change_ratio)),
        Cell::plain(format!(
            "{} to {}",
            change(drift.change_low),
            change(drift.change_high)
        )),
        // Three decimals would print 0.000, as if chance were impossible.
        Cell::plain(if drift.p < 0.001 {
            "< 0.001".to_owned()
        } else {
            format!("{:.3}", drift.p)
        }),
        Cell::plain(format!("± {}", percent(100.0 * drift.bound_ratio))),
        points,
        match drift.judged {
            DriftJudgement::Steady => Cell::term("steady"),
            DriftJudgement::Drifts => Cell::word("drifts"),
            DriftJudgement::Unclear => Cell::word("inconclusive"),
        },
    ]
}

/// `+1.20 %`.
pub(crate) fn change(ratio: f64) -> String {
    let percent = 100.0 * ratio;
    // Rounding would print `+0.00 %` or `-0.00 %`: a direction without a change.
    if percent.abs() < 0.005 {
        "0.00 %".into()
    } else {
        format!("{percent:+.2} %")
    }
}

/// `401–403 kpps`, or a note that a single repeat has no interval.
pub(crate) fn interval(estimate: &Estimate, scale: &Scale) -> Cell {
    match estimate.interval_95.ends() {
        Some((low, high)) => Cell::plain(format!("{}–{}", scale.number(low), scale.value(high))),
        None => Cell::absent(format!("n = {}: no interval", estimate.n)),
    }
}
