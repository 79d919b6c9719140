//! The speed of crypto devices.

mod chart;

use super::{not_offered, without_figure};
use crate::kit::cells::with_repeats;
use crate::kit::fact::{Fact, repeats};
use crate::kit::format::{Scale, percent, range_of, ratio_number, time_ns};
use crate::kit::section::{Blocks, Section};
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::device::DeviceKind;
use crate::order::{grouped, sorted};
use crate::topic::published;
use journal::record::Proof;
use stats::{
    CellResult, Course, DeviceAxis, DeviceCurve, DevicePointResult, DeviceSeries,
    DeviceSpeedResult, DeviceStanding, DeviceTestInfo, DeviceUnit, Estimate, FOUND_MIN,
};

pub(crate) const SECTION: Section =
    Section::result("device-speed", "Speed of devices", |run, out| {
        out.tables(findings(run));
        for (index, series) in series(run, true) {
            chart(run, out, index, series, &dots(run));
        }
        out.tables(sizes(run));
        out.tables(not_offered(run, DeviceKind::Speed));
        if out.is_short() {
            // No other table of the short form contains these.
            out.tables(cells(run, |cell| !in_series(run, cell)));
            return;
        }
        let how = format!(
            "{} Dashed: a device overtakes the CPU, or its scaling stops.",
            dots(run)
        );
        for (index, series) in series(run, false) {
            chart(run, out, index, series, &how);
            out.table(curves(run, series));
        }
        out.tables(cells(run, |_| true));
    })
    .named("Speed");

fn dots(run: &Run<'_>) -> String {
    format!("Dots: mean of the repeats. {}", run.whiskers())
}

/// The series by size of input, or the others, with their indices among all.
fn series<'r>(run: &'r Run<'_>, by_size: bool) -> impl Iterator<Item = (usize, &'r DeviceSeries)> {
    let all = run.results.device_series.iter().enumerate();
    all.filter(move |(_, series)| (series.axis == DeviceAxis::Bytes) == by_size)
}

fn chart(run: &Run<'_>, out: &mut Blocks, index: usize, series: &DeviceSeries, how: &str) {
    out.chart(series_name(series), how, || {
        chart::draw(run, series, &format!("device-speed-{index}"))
    });
}

/// The main figure of a speed cell.
pub(super) fn figure(found: &DeviceSpeedResult) -> String {
    scale(unit(found), found.figure().mean).estimate(found.figure())
}

/// The unit of the main figure of a speed cell.
fn unit(found: &DeviceSpeedResult) -> DeviceUnit {
    // If the size of the input has no meaning, as for signatures, operations are the figure.
    match found.bytes_per_s {
        Some(_) => DeviceUnit::BytesPerS,
        None => DeviceUnit::OperationsPerS,
    }
}

/// The scale of figures in this unit.
fn scale(unit: DeviceUnit, value: f64) -> Scale {
    match unit {
        DeviceUnit::BytesPerS => Scale::si(value, "B/s"),
        DeviceUnit::OperationsPerS => Scale::si(value, "op/s"),
    }
}

/// Name of a series: `rsa-2048 sign, by operations in parallel`.
fn series_name(series: &DeviceSeries) -> String {
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
fn findings(run: &Run<'_>) -> Option<Table> {
    let note = "what the repeats show, not their means; faster, slower: surely, and by more than 2 % (Student's t on logarithms of paired repeats, 5 % over \
                all comparisons of this kind over one axis, Holm); about: interpolated between the numbers \
                measured on both sides; stops scaling at n: the smallest n that no larger one \
                surely exceeds, if the repeats exclude a gain of more than 10 % past it";
    let mut table = Table::new("Speed: where curves cross and end", note)
        .labels(["Operation", "Device"])
        .texts(["What it shows"]);
    for series in &run.results.device_series {
        let name = series_name(series);
        let mut row = |device: &str, what: Cell| {
            table.push(vec![Cell::label(&name), Cell::label(device), what]);
        };
        for curve in &series.curves {
            row(&curve.dut, Cell::plain(&curve.verdict));
            // Comparisons and gains follow the verdict of their curve, so that a device has one
            // block.
            let own = series.comparisons.iter();
            for found in own.filter(|found| found.dut == curve.dut) {
                row(
                    &curve.dut,
                    // Without a proof that the device did the work, its comparison is highlighted.
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
fn sizes(run: &Run<'_>) -> Vec<Table> {
    let all = run.results.device_series.iter();
    let by_bytes = all.filter(|series| series.axis == DeviceAxis::Bytes);
    // Series under different conditions have separate tables.
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
        .labels(["Operation", "Device"])
        .figures(numbers.iter().map(|n| format!("{n} B")));
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
    let figures = run.results.published.iter().filter_map(|one| {
        // A published figure belongs to a cell, and the cell to a series.
        let point = points().find(|point| point.cell == one.cell)?;
        let text = published::scale(one).value(one.published);
        Some((one.system.as_str(), (point.n, text)))
    });
    grouped(figures)
}

/// `454 MB/s ± 1 %`, or `454 MB/s (repeats 12.0–980)`.
fn short_figure(unit: DeviceUnit, found: &Estimate) -> String {
    let scale = scale(unit, found.mean);
    let value = scale.value(found.mean);
    if let Some([low, high]) = range_of(found) {
        return format!(
            "{value} (repeats {}–{})",
            scale.number(low),
            scale.number(high)
        );
    }
    match found.largest_distance_percent {
        // A single repeat has no distance.
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
        // Workers that hardly overlapped in time do not show the speed of parallel work.
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
fn curves(run: &Run<'_>, series: &DeviceSeries) -> Table {
    let title = match series.axis {
        DeviceAxis::AtOnce => "At once",
        DeviceAxis::Depth => "Depth",
        DeviceAxis::Bytes => "Bytes",
    };
    let note = "mean of the repeats ± the farthest repeat's distance; ratios paired by repeat: above 1 the first is faster, = \
                if neither is surely faster by 2 %; not together: processes \
                overlapped for too little of the time to be compared";
    let mut table = Table::new(format!("Speed: {}", series_name(series)), note).labels([title]);
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

/// The wanted cells, with CPU time and the proof of which unit worked; `None` without any.
fn cells(run: &Run<'_>, wanted: impl Fn(&CellResult) -> bool) -> Option<Table> {
    let note = "mean of the repeats; CPU: time of the worker processes for one operation, and in brackets its ratio to that of our own engines, if \
                the device is declared to spare the CPU; latency of an operation; checked: results checked against the CPU, selected at random, and wrong ones; of verdicts, + invalid inputs that were refused, \
                and accepted ones; in brackets \
                the probability to find 1 wrong in 1000, if it is below 99 %";
    let mut table = Table::new("Speed: every measurement", note)
        .labels(["Operation", "Input", "At once", "Device"])
        .figures(["Speed", "CPU", "p50", "p99", "Failed", "Checked"])
        .texts(["Who did the work"]);
    for (cell, info) in run.device_cells(DeviceKind::Speed) {
        if !wanted(cell) {
            continue;
        }
        let mut row = labels(run, cell, info);
        match cell.device().and_then(|found| found.speed()) {
            Some(found) => row.extend(cost(cell, found)),
            None => {
                row.push(without_figure(cell));
                // One cell for the reason, and the six others that `cost` returns.
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
    // With a depth of 1 nothing waits, so it is not named.
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
            // Only these two prove that the device did the work.
            Some(proof @ (Proof::Counted | Proof::CpuFell)) => Cell::term(proof.name()),
            Some(proof) => Cell::word(proof.name()),
        },
    ]
}

/// `4603`, `4603 + 4700 invalid`, with wrong and accepted ones, or the probability of finding any.
fn checked(found: &DeviceSpeedResult) -> Cell {
    // `wrong` includes the invalid inputs that were accepted.
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

/// A headline shows a ratio to the CPU only within these limits: others are hard to read, and
/// mostly compare a device with a case that it is not made for.
const RATIO_MIN: f64 = 0.1;
const RATIO_MAX: f64 = 100.0;
/// Operations in the summary; the tables have all.
const OPERATIONS_SHOWN: usize = 6;

/// The widest series of each operation: over concurrency if measured, over sizes otherwise.
pub(super) fn facts(run: &Run<'_>, device: &str) -> Vec<Fact> {
    let mut shown: Vec<&DeviceSeries> = Vec::new();
    let all = || run.results.device_series.iter();
    let by_many = all().filter(|series| series.axis == DeviceAxis::AtOnce);
    let by_other = all().filter(|series| series.axis != DeviceAxis::AtOnce);
    for series in by_many.chain(by_other) {
        let known = shown.iter().any(|one| one.operation == series.operation);
        if !known && series.curve(device).is_some() {
            shown.push(series);
        }
    }
    // One fact for each operation: a second axis of it says the same in other words.
    let curves = shown.into_iter().filter_map(|series| fact(series, device));
    // Of one size and one number there is no curve, but a figure.
    let cells = run.device_cells(DeviceKind::Speed);
    let single = cells
        .filter(|(cell, _)| cell.dut == device && !in_series(run, cell))
        .filter_map(|(cell, info)| single(run, cell, info));
    curves.chain(single).take(OPERATIONS_SHOWN).collect()
}

/// The figure of a cell that is in no curve, and those of the other devices at the same settings.
fn single(run: &Run<'_>, cell: &CellResult, info: &DeviceTestInfo) -> Option<Fact> {
    let found = cell.device()?.speed()?;
    let scale = scale(unit(found), found.figure().mean);
    let others = run.device_cells(DeviceKind::Speed).filter(|(other, test)| {
        other.dut != cell.dut
            && (&test.operation, test.input_bytes) == (&info.operation, info.input_bytes)
            && (test.concurrency, test.depth) == (info.concurrency, info.depth)
            && test.workers == info.workers
    });
    let others = others.filter_map(|(other, _)| {
        let found = other.device()?.speed()?;
        let mean = self::scale(unit(found), found.figure().mean);
        Some(format!(
            "{}: {}",
            run.label(&other.dut),
            mean.value(found.figure().mean)
        ))
    });
    let input = info.input_bytes.map(|bytes| format!("{bytes} B"));
    let at_once = info.concurrency.map(|n| format!("{n} in parallel"));
    let settings: Vec<String> = input.into_iter().chain(at_once).collect();
    Some(Fact {
        label: info.operation.clone().unwrap_or_default(),
        figure: scale.number(found.figure().mean),
        unit: scale.unit.to_owned(),
        range: repeats(found.figure(), &scale),
        detail: [settings.join(", ")]
            .into_iter()
            .chain(others)
            .collect::<Vec<_>>()
            .join("; "),
        brief: String::new(),
    })
}

fn fact(series: &DeviceSeries, device: &str) -> Option<Fact> {
    let curve = series.curve(device)?;
    let peak = curve.peak?;
    let scale = scale(series.unit, peak);
    let label = series_name(series);
    let compared = series.comparisons.iter().find(|found| found.dut == device);
    let gain = series.gains.iter().find(|gain| gain.dut == device);
    let gain = gain.map_or_else(String::new, |gain| format!("; {}", gain.verdict));
    let figures = curve
        .points
        .iter()
        .filter_map(|point| point.figure.as_ref());
    let best = figures.max_by(|a, b| a.mean.total_cmp(&b.mean));
    let range = best.map_or_else(String::new, |best| repeats(best, &scale));
    let has_ratio = |ratio| is_meaningful(ratio, curve.is_model);
    // A ratio to the CPU if it is meaningful, and otherwise the highest figure.
    Some(match compared {
        Some(found) if has_ratio(found.crossover.best_ratio) => {
            let cpu = &found.cpu;
            let (unit, range) = match found.crossover.course {
                Course::Same if found.crossover.in_one_repeat() => {
                    // In this case the range is `one repeat`.
                    (format!("× {cpu}"), format!("{range} decides nothing"))
                }
                Course::Same => (format!("× {cpu}, no difference shown"), range),
                _ => (format!("× {cpu} at best"), range),
            };
            Fact {
                label,
                range,
                figure: ratio_number(found.crossover.best_ratio),
                unit,
                detail: format!("{}; {}{gain}", found.verdict, curve.verdict),
                brief: String::new(),
            }
        }
        compared => {
            let compared =
                compared.map_or_else(String::new, |found| format!("{}; ", found.verdict));
            let modelled = if curve.is_model { ", modelled" } else { "" };
            Fact {
                label,
                range,
                figure: scale.number(peak),
                unit: format!("{}{modelled}", scale.unit),
                detail: format!("{compared}{}{gain}", curve.verdict),
                brief: String::new(),
            }
        }
    })
}

/// Whether a headline shows this ratio of a device to the CPU. A model has one configured time for
/// all operations, which says nothing about hardware.
fn is_meaningful(ratio: f64, is_model: bool) -> bool {
    !is_model && (RATIO_MIN..=RATIO_MAX).contains(&ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Earlier output: `2104 × cpu at best` for RSA-4096 on a model, and `0.00017 × cpu` for SHA.
    #[test]
    fn a_headline_has_a_ratio_only_where_it_means_something() {
        for ratio in [0.1, 0.9, 3.7, 100.0] {
            assert!(is_meaningful(ratio, false), "{ratio}");
            assert!(!is_meaningful(ratio, true), "{ratio}");
        }
        for ratio in [0.000_17, 0.0, 2104.0, f64::INFINITY, f64::NAN] {
            assert!(!is_meaningful(ratio, false), "{ratio}");
        }
    }
}
