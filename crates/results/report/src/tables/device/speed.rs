//! The speed trial: by size like `openssl speed`, by concurrency, findings, and CPU time.

use super::without_figure;
use crate::format::{Scale, percent, ratio_number, time_ns};
use crate::layout::Run;
use crate::layout::device::DeviceKind;
use crate::order::{grouped, sorted};
use crate::table::{Cell, Table};
use crate::tables::{published_scale, with_repeats};
use journal::record::Proof;
use stats::{
    CellResult, DeviceAxis, DeviceCurve, DevicePointResult, DeviceSeries, DeviceSpeedResult,
    DeviceStanding, DeviceTestInfo, DeviceUnit, Estimate, FOUND_MIN,
};

/// The main figure of a speed cell.
pub(super) fn figure(found: &DeviceSpeedResult) -> String {
    let unit = match found.bytes_per_s {
        Some(_) => DeviceUnit::BytesPerS,
        None => DeviceUnit::OperationsPerS,
    };
    scale(unit, found.figure().mean).estimate(found.figure())
}

/// The scale of figures in this unit.
pub(crate) fn scale(unit: DeviceUnit, value: f64) -> Scale {
    match unit {
        DeviceUnit::BytesPerS => Scale::si(value, "B/s"),
        DeviceUnit::OperationsPerS => Scale::si(value, "op/s"),
    }
}

/// Name of a series: `rsa-2048 sign, by operations in parallel`.
pub(crate) fn series_name(series: &DeviceSeries) -> String {
    let by = match series.axis {
        DeviceAxis::Bytes => "by size of input",
        DeviceAxis::AtOnce => "by operations in parallel",
        DeviceAxis::Depth => "by depth of the queue",
    };
    if series.common.is_empty() {
        format!("{}, {by}", series.operation)
    } else {
        format!("{}, {}, {by}", series.operation, series.common)
    }
}

fn in_series(run: &Run<'_>, cell: &CellResult) -> bool {
    let all = run.results.device_series.iter();
    let mut points = all.flat_map(|series| series.curves.iter().flat_map(|curve| &curve.points));
    points.any(|point| point.cell == cell.id)
}

/// The end of each curve, the crossings with the CPU, and the gain of several devices; `None`
/// without a series.
pub(crate) fn findings(run: &Run<'_>) -> Option<Table> {
    let note = "faster, slower: surely, and by more than 2 % (Student's t on logarithms of paired repeats, 5 % over \
                all comparisons of this kind over one axis, Holm); about: interpolated between the numbers \
                measured on both sides; stops scaling at n: the smallest n that no larger one \
                surely exceeds, if the repeats exclude a gain of more than 10 % past it";
    let mut table = Table::new("Speed: where curves cross and end", note)
        .labels(["Operation", "Device"])
        .text("What it shows");
    for series in &run.results.device_series {
        let name = series_name(series);
        let mut row = |device: &str, what: Cell| {
            table.push(vec![Cell::label(&name), Cell::label(device), what]);
        };
        for curve in &series.curves {
            row(&curve.dut, Cell::plain(&curve.verdict));
            let own = series.comparisons.iter();
            for found in own.filter(|found| found.dut == curve.dut) {
                row(
                    &curve.dut,
                    if found.equals_cpu {
                        Cell::reason(&found.verdict)
                    } else {
                        Cell::plain(&found.verdict)
                    },
                );
            }
            for gain in series.gains.iter().filter(|gain| gain.dut == curve.dut) {
                row(&curve.dut, Cell::plain(&gain.verdict));
            }
        }
    }
    table.with_rows()
}

/// One table per set of conditions for all operations: one row per device, one column per size.
pub(crate) fn sizes(run: &Run<'_>) -> Vec<Table> {
    let all = run.results.device_series.iter();
    let by_bytes = all.filter(|series| series.axis == DeviceAxis::Bytes);
    let groups = grouped(by_bytes.map(|series| (series.common.as_str(), series)));
    let tables = groups.iter();
    tables
        .map(|(common, all)| by_size(run, common, all))
        .collect()
}

fn by_size(run: &Run<'_>, common: &str, all: &[&DeviceSeries]) -> Table {
    let curves = all.iter().flat_map(|series| &series.curves);
    let numbers = numbers(curves);
    let note = "bytes of input per second, mean of the repeats ± the farthest repeat's distance in per cent";
    let mut table = Table::new(format!("Speed by size of input: {common}"), note)
        .labels(["Operation", "Device"]);
    table = table.figures(numbers.iter().map(|n| format!("{n} B")));
    for series in all {
        for (system, figures) in published(run, series) {
            let mut cells = vec![
                Cell::label(&series.operation),
                Cell::label(format!("published: {system}")),
            ];
            cells.extend(numbers.iter().map(|n| {
                let found = figures.iter().find(|(there, _)| there == n);
                found.map_or_else(Cell::missing, |(_, text)| Cell::derived(text))
            }));
            table.push(cells);
        }
        for curve in &series.curves {
            let mut cells = vec![Cell::label(&series.operation), Cell::label(&curve.dut)];
            cells.extend(numbers.iter().map(|n| {
                let point = curve.points.iter().find(|point| point.n == *n);
                point.map_or_else(Cell::missing, |point| point_cell(run, series.unit, point))
            }));
            table.push(cells);
        }
    }
    table
}

/// The numbers measured on any of the curves.
fn numbers<'c>(curves: impl Iterator<Item = &'c DeviceCurve>) -> Vec<u32> {
    sorted(curves.flat_map(|curve| curve.points.iter().map(|point| point.n)))
}

/// Published figures of the same operation by size: each system with its figures.
fn published<'r>(run: &'r Run<'_>, series: &DeviceSeries) -> Vec<(&'r str, Vec<(u32, String)>)> {
    let points = || series.curves.iter().flat_map(|curve| &curve.points);
    let mut systems: Vec<(&str, Vec<(u32, String)>)> = Vec::new();
    for one in &run.results.published {
        let Some(point) = points().find(|point| point.cell == one.cell) else {
            continue;
        };
        let text = published_scale(one).value(one.published);
        match systems.iter_mut().find(|(system, _)| *system == one.system) {
            // All devices here share the published figure.
            Some((_, figures)) if figures.iter().any(|(n, _)| *n == point.n) => {}
            Some((_, figures)) => figures.push((point.n, text)),
            None => systems.push((&one.system, vec![(point.n, text)])),
        }
    }
    systems
}

/// `454 MB/s ± 1 %`.
fn short_figure(unit: DeviceUnit, found: &Estimate) -> String {
    let value = scale(unit, found.mean).value(found.mean);
    match found.largest_distance_percent {
        Some(distance) if found.n > 1 => format!("{value} ± {}", percent_short(distance)),
        _ => value,
    }
}

fn percent_short(percent: f64) -> String {
    if percent < 0.5 {
        "< 1 %".into()
    } else {
        format!("{percent:.0} %")
    }
}

fn point_cell(run: &Run<'_>, unit: DeviceUnit, point: &DevicePointResult) -> Cell {
    let text = |figure| {
        if point.is_compared {
            short_figure(unit, figure)
        } else {
            format!("{}, not together", short_figure(unit, figure))
        }
    };
    match (&point.figure, run.cell(&point.cell)) {
        (Some(figure), Some(cell)) => Cell::plain(with_repeats(text(figure), cell)),
        (Some(figure), None) => Cell::plain(text(figure)),
        (None, Some(cell)) => without_figure(cell),
        (None, None) => Cell::missing(),
    }
}

/// A ratio of a series: its heading, and its values by number.
type Ratio<'s> = (String, &'s [stats::CrossoverPoint]);

/// The ratios of a series, starting with devices relative to the CPU.
fn standings(series: &DeviceSeries) -> Vec<Ratio<'_>> {
    let comparisons = series.comparisons.iter();
    let by_cpu = comparisons.map(|found| {
        let title = format!("{} / {}", found.dut, found.cpu);
        (title, found.crossover.points.as_slice())
    });
    let gains = series.gains.iter().map(|gain| {
        let title = format!("{} / {}", gain.dut, gain.of);
        (title, gain.points.as_slice())
    });
    by_cpu.chain(gains).collect()
}

/// A series by concurrency or queue depth: one row per number, one column per device and per ratio.
pub(crate) fn curves(run: &Run<'_>, series: &DeviceSeries) -> Table {
    let title = match series.axis {
        DeviceAxis::AtOnce => "At once",
        DeviceAxis::Depth => "Depth",
        DeviceAxis::Bytes => "Bytes",
    };
    let note = "mean of the repeats ± the farthest repeat's distance; ratios paired by repeat: above 1 the first is faster, = \
                if neither is surely faster by 2 %; not together: processes \
                overlapped for too little of the time to be compared";
    let mut table = Table::new(format!("Speed: {}", series_name(series)), note).label(title);
    let ratios = standings(series);
    table = table
        .figures(series.curves.iter().map(|curve| &curve.dut))
        .figures(ratios.iter().map(|(title, _)| title));
    for n in numbers(series.curves.iter()) {
        let mut cells = vec![Cell::label(n.to_string())];
        cells.extend(series.curves.iter().map(|curve: &DeviceCurve| {
            let point = curve.points.iter().find(|point| point.n == n);
            point.map_or_else(Cell::missing, |point| point_cell(run, series.unit, point))
        }));
        cells.extend(ratios.iter().map(|(_, points)| {
            let point = points.iter().find(|point| point.n == n);
            point.map_or_else(Cell::missing, |point| {
                let equal = match point.standing {
                    DeviceStanding::Same => " =",
                    DeviceStanding::Faster | DeviceStanding::Slower => "",
                };
                Cell::derived(format!("{}{equal}", ratio_number(point.ratio)))
            })
        }));
        table.push(cells);
    }
    table
}

/// Every speed cell, with CPU time and the proof of which unit worked; `None` without any.
pub(crate) fn cells(run: &Run<'_>) -> Option<Table> {
    some_cells(run, |_| true)
}

/// The measurements outside all series, which no other table of the short form contains.
pub(crate) fn cells_outside_series(run: &Run<'_>) -> Option<Table> {
    some_cells(run, |cell| !in_series(run, cell))
}

fn some_cells(run: &Run<'_>, wanted: impl Fn(&CellResult) -> bool) -> Option<Table> {
    let note = "CPU: time of the worker processes for one operation, and in brackets its ratio to that of our own engines, if \
                the device is declared to spare the CPU; latency of an operation; checked: results checked against the CPU, selected at random, and wrong ones; of verdicts, + invalid inputs that were refused, \
                and accepted ones; in brackets \
                the probability to find 1 wrong in 1000, if it is below 99 %";
    let mut table = Table::new("Speed: every measurement", note)
        .labels(["Operation", "Input", "At once", "Device"])
        .figures(["Speed", "CPU", "p50", "p99", "Failed", "Checked"])
        .text("Who did the work");
    for (cell, info) in run.device_cells(DeviceKind::Speed) {
        if !wanted(cell) {
            continue;
        }
        let mut row = labels(run, cell, info);
        match cell.device().and_then(|found| found.speed()) {
            Some(found) => row.extend(cost(cell, found)),
            None => {
                row.push(without_figure(cell));
                row.extend((0..6).map(|_| Cell::missing()));
            }
        }
        table.push(row);
    }
    table.with_rows()
}

fn labels(run: &Run<'_>, cell: &CellResult, info: &DeviceTestInfo) -> Vec<Cell> {
    let input = info
        .input_bytes
        .map_or_else(|| "–".to_owned(), |bytes| format!("{bytes} B"));
    let workers = info.workers.as_deref().unwrap_or_default();
    let mut at_once = match info.concurrency {
        Some(1) => "1".to_owned(),
        Some(n) => format!("{n} {workers}"),
        None => "–".to_owned(),
    };
    if let Some(depth @ 2..) = info.depth {
        at_once.push_str(&format!(", depth {depth}"));
    }
    vec![
        Cell::label(info.operation.as_deref().unwrap_or_default()),
        Cell::label(input),
        Cell::label(at_once),
        Cell::label(run.label(&cell.dut)),
    ]
}

fn cost(cell: &CellResult, found: &DeviceSpeedResult) -> [Cell; 7] {
    let cpu = time_ns(found.cpu_ns_per_operation.mean);
    let share = found.cpu_ratio.map_or_else(String::new, |ratio| {
        format!(" ({})", percent(100.0 * ratio))
    });
    [
        Cell::plain(with_repeats(figure(found), cell)),
        Cell::plain(format!("{cpu}{share}")),
        Cell::plain(time_ns(found.latency_p50_ns.mean)),
        Cell::plain(time_ns(found.latency_p99_ns.mean)),
        Cell::faults(found.failed),
        checked(found),
        match found.proof {
            None => Cell::missing(),
            Some(proof @ (Proof::Counted | Proof::CpuFell)) => Cell::term(proof.name()),
            Some(proof) => Cell::word(proof.name()),
        },
    ]
}

/// `4603`, `4603 + 4700 invalid`, with wrong and accepted ones, or the probability of finding any.
fn checked(found: &DeviceSpeedResult) -> Cell {
    let accepted = found.invalid_accepted.unwrap_or(0);
    let wrong = found.wrong - accepted;
    let mut text = found.checked.to_string();
    if let Some(offered) = found.invalid_offered {
        text.push_str(&format!(" + {offered} invalid"));
    }
    if wrong > 0 {
        text.push_str(&format!(", {wrong} wrong"));
    }
    if accepted > 0 {
        text.push_str(&format!(", {accepted} accepted"));
    }
    if found.wrong > 0 {
        return Cell::word(text);
    }
    match found.found_one_in_1000 {
        Some(power) if power < FOUND_MIN => {
            text.push_str(&format!(" ({})", percent(100.0 * power)))
        }
        _ => {}
    }
    Cell::plain(text)
}
