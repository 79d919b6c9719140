//! The tables of a report. Each is a function from a [`Run`] to [`Table`]s, so that all documents
//! show the same tables.

mod beside;
mod captures;
mod claims;
mod cpu;
mod cycles;
pub(crate) mod device;
mod environment;
mod evidence;
pub(crate) mod frames;
mod http;
mod keys;
mod latency;
mod monitored;
mod percentiles;
mod published;
pub(crate) mod ranking;
mod route;
pub(crate) mod scaling;
mod spread;
pub(crate) mod suites;
mod throughput;
mod tools;
mod transfer;
mod video;
mod weather;

pub(crate) use beside::{
    beside, drawings, overview as published_overview, summary as published_summary,
};
pub(crate) use captures::{capture_files, capture_lengths, capture_protocols};
pub(crate) use claims::claims;
pub(crate) use cpu::cpu;
pub(crate) use cycles::cycles;
pub(crate) use environment::environment;
pub(crate) use evidence::{coverage, evidence, reasons};
pub(crate) use http::{flows, http, http_cells, http_times};
pub(crate) use keys::{hybrids, keys};
pub(crate) use latency::latency;
pub(crate) use monitored::{energy, monitored, monitored_loads};
pub(crate) use published::{is_share, published, scale as published_scale};
pub(crate) use route::{hops, loaded, path_mtu};
pub(crate) use spread::spread;
pub(crate) use throughput::{datagrams, goodput_drift, throughput};
pub(crate) use tools::tools;
pub(crate) use transfer::{each_way, rfc6349};
pub(crate) use video::video;
pub(crate) use weather::weather;

use crate::format::{self, Scale};
use crate::layout::{Point, Protocol, Run, Set, payload_name};
use crate::table::{Cell, LATE_MARK, Table};
use journal::record::in_brief;
use stats::{CellResult, Comparison, Estimate, Metric, Status};

/// How to read the figures of a table.
const FORMAT: &str = "mean ± largest distance from it (per cent of the mean)";

fn throughput_cell(cell: &CellResult) -> Cell {
    match cell.throughput_bps() {
        Some(found) => Cell::plain(with_repeats(format::bit_rate(found), cell)),
        None => reason_cell(cell),
    }
}

/// The figure, with its number of repeats if some are missing, and a mark if some are late.
fn with_repeats(figure: String, cell: &CellResult) -> String {
    let figure = match cell.status {
        Status::Partly => figure.trim_end_matches(" (n = 1)").to_owned(),
        _ => figure,
    };
    figure + &partly_mark(cell) + late_mark(cell)
}

/// ` [2 of 3]`, for a figure from only some repeats.
fn count_mark(cell: &CellResult) -> String {
    match cell.status {
        Status::Partly => format!(" [{} of {}]", cell.repeats.measured, cell.repeats.planned),
        _ => String::new(),
    }
}

/// The same with the failed check of the first invalid repeat: ` [2 of 3: no-clear-text]`.
fn partly_mark(cell: &CellResult) -> String {
    let mark = count_mark(cell);
    let mut reasons = cell.reasons.iter();
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
fn late_mark(cell: &CellResult) -> &'static str {
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
        Status::NotRun if cell.is_skipped() => Cell::absent("too few cores"),
        Status::NotRun => Cell::absent("not run"),
        Status::Measured | Status::Partly => Cell::missing(),
    }
}

fn ratio_cell(run: &Run<'_>, cell: &CellResult, metric: Metric) -> Cell {
    let words = |found: &Comparison| {
        let mark = if found.apart_ns.is_some() {
            LATE_MARK
        } else {
            ""
        };
        format::ratio(found) + mark
    };
    Cell::derived_or_missing(run.comparison(cell, metric).map(words))
}

/// The mean alone.
fn mean(estimate: &Estimate, unit: &str) -> String {
    Scale::si(estimate.mean, unit).value(estimate.mean)
}

/// Explanation of the column of ratios.
fn of_baseline(set: &Set<'_>, what: &str) -> String {
    set.compared_with().map_or_else(String::new, |baseline| {
        format!("; ratio: {what} by that of {baseline}, over the pairs of repeats, with its 95 % interval (Student's t on logarithms)")
    })
}

/// Builds a table with one row per cell of a set: labels, the `figures` below `titles` or the
/// reason for their absence, and, for a given metric, the ratio to the baseline.
fn cell_table(
    run: &Run<'_>,
    set: &Set<'_>,
    table: Table,
    titles: &[&str],
    metric: Option<Metric>,
    figures: impl Fn(&CellResult) -> Vec<Cell>,
) -> Table {
    let labels = Labels::of(set);
    let metric = metric.filter(|_| set.compared_with().is_some());
    let mut table = labels.head(table);
    table = table
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
    let missing = (1..columns).map(|_| Cell::missing());
    [reason_cell(cell)].into_iter().chain(missing).collect()
}

/// The label columns of tables with one row per cell: the axes that vary, then the device.
struct Labels {
    payload: bool,
    mtu: bool,
    cores: bool,
}

impl Labels {
    fn of(set: &Set<'_>) -> Self {
        Self {
            payload: set.varies.payload || set.protocol == Protocol::Udp,
            mtu: set.varies.mtu,
            cores: set.varies.cores,
        }
    }

    fn head(&self, mut table: Table) -> Table {
        for (varies, title) in [
            (self.payload, "Payload"),
            (self.mtu, "MTU"),
            (self.cores, "Cores"),
        ] {
            if varies {
                table = table.label(title);
            }
        }
        table.label("Device")
    }

    fn cells(&self, point: &Point<'_>, cell: &CellResult) -> Vec<Cell> {
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
