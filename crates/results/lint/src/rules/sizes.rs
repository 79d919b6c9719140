//! How a rate changes with the size of frames, packets or inputs.

use super::rates::percent;
use crate::document::{Axis, Cell, Table, Transport};
use crate::finding::{Finding, Rule};
use crate::interval::Interval;
use crate::unit::Quantity;
use std::cmp::Ordering;
use units::human::{bit_rate, frame_rate, number};

/// Frame rates count as constant within this ratio of the highest to the lowest, for all values
/// that round to the figures.
const CONSTANT_RATIO: f64 = 1.10;
/// The fewest sizes that a constant rate spans, and their lowest ratio.
const SIZES_MIN: usize = 3;
const SIZE_RATIO_MIN: f64 = 2.0;
/// Rates of mixes count as constant within this ratio, if their mean sizes have a higher one.
const CONSTANT_MIX_RATIO: f64 = 1.05;
const MIX_SIZE_RATIO_MIN: f64 = 1.2;
/// A frame rate that rises by less with the size may be noise of the search.
const RISE_MIN: f64 = 0.05;
/// A bit rate that falls by less with the size may be the spread of two measurements.
const FALL_MIN: f64 = 0.01;

/// A cell with its frame rate in frames per second.
pub(super) struct Frames<'a> {
    pub(super) cell: Cell<'a>,
    pub(super) rate: Interval,
}

pub(super) fn frames(cell: Cell<'_>) -> Option<Frames<'_>> {
    let rate = cell.frame_rate()?;
    Some(Frames { cell, rate })
}

/// Rows of a software sender with the same frame rate at all sizes below the link's limit.
pub(super) fn constant_frame_rates(table: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_datagrams = table.transport == Some(Transport::Udp);
    if !table.software_sender || !is_datagrams || table.axis == Axis::Mix {
        return findings;
    }
    for course in table.courses() {
        // At the link's limit the frame rate falls with the size and would end a run of equal
        // rates.
        let mut below = course.cells;
        below.retain(|cell| !cell.is_at_link());
        below.sort_by(by_size);
        let rates: Vec<Frames<'_>> = below.into_iter().filter_map(frames).collect();
        let Some(run) = longest_constant(&rates) else {
            continue;
        };
        let (first, last) = (&run[0], &run[run.len() - 1]);
        let shown: Vec<_> = run
            .iter()
            .map(|it| {
                format!(
                    "{} at {} B: {}",
                    it.cell.shown(),
                    it.cell.size_name(),
                    frame_rate(it.rate.middle())
                )
            })
            .collect();
        findings.push(Finding {
            rule: Rule::ConstantFrameRate,
            likeness: None,
            place: first.cell.figure.place.clone(),
            subject: format!("{}, {}", table.id, course.of),
            arithmetic: format!(
                "{}; payloads grow {}-fold, frame rates stay within {} %",
                shown.join(", "),
                number(counted(&last.cell) / counted(&first.cell)),
                number((spread(run) - 1.0) * 100.0),
            ),
            meaning: "the sending program reached its own limit of datagrams per second: the rate says nothing about \
                      the device"
                .to_owned(),
        });
    }
    findings
}

fn counted(cell: &Cell<'_>) -> f64 {
    cell.lengths().map_or(0.0, |it| it.counted)
}

/// The ratio of the highest to the lowest rate that the rounding allows.
fn spread(run: &[Frames<'_>]) -> f64 {
    let (_, high) = ends(run.iter().map(|it| it.rate.high));
    let (low, _) = ends(run.iter().map(|it| it.rate.low));
    high / low
}

/// The longest run of neighbouring sizes with a constant frame rate; the sizes are in ascending
/// order.
fn longest_constant<'a, 'b>(rates: &'a [Frames<'b>]) -> Option<&'a [Frames<'b>]> {
    let mut runs = (0..rates.len())
        .flat_map(|from| (from + SIZES_MIN..=rates.len()).map(move |to| from..to))
        .map(|range| &rates[range])
        .filter(|run| {
            let sizes = counted(&run[run.len() - 1].cell) / counted(&run[0].cell);
            spread(run) <= CONSTANT_RATIO && sizes >= SIZE_RATIO_MIN
        })
        .collect::<Vec<_>>();
    runs.sort_by_key(|run| run.len());
    runs.pop()
}

/// Rows of mixes with one rate for all, while another row's rates follow the mean sizes.
pub(super) fn constant_bit_rates(table: &Table) -> Vec<Finding> {
    if table.axis != Axis::Mix {
        return Vec::new();
    }
    let is_constant = |cells: &[Cell<'_>]| {
        let sizes: Vec<f64> = cells.iter().filter_map(|cell| cell.column.size).collect();
        let rates: Vec<Interval> = cells.iter().filter_map(Cell::bit_rate).collect();
        let (smallest, largest) = ends(sizes.into_iter());
        let (_, high) = ends(rates.iter().map(|it| it.high));
        let (low, _) = ends(rates.iter().map(|it| it.low));
        rates.len() >= SIZES_MIN
            && largest / smallest >= MIX_SIZE_RATIO_MIN
            && high / low <= CONSTANT_MIX_RATIO
    };
    let rows: Vec<(&str, Vec<Cell<'_>>)> = table
        .rows
        .iter()
        .map(|row| (row.name.as_str(), table.cells_of(row).collect()))
        .collect();
    // If no row follows the sizes, something common to all limits them.
    if rows.iter().all(|(_, cells)| is_constant(cells)) {
        return Vec::new();
    }
    // A row at the link's limit is constant for a known reason.
    let constant = rows
        .iter()
        .filter(|(_, cells)| is_constant(cells) && !cells.iter().any(Cell::is_at_link));
    constant
        .map(|(name, cells)| {
            let shown: Vec<_> = cells
                .iter()
                .map(|cell| format!("{} at {} B", cell.shown(), number(cell.column.size.unwrap_or(0.0))))
                .collect();
            Finding {
                rule: Rule::ConstantBitRate,
                likeness: None,
                place: cells[0].figure.place.clone(),
                subject: format!("{}, row {name}", table.id),
                arithmetic: format!(
                    "{} (mean frame sizes of the mixes): a device with a cost per packet would follow them, as other \
                     rows do",
                    shown.join(", ")
                ),
                meaning: "something else limited this row, or its figures are not of three measurements".to_owned(),
            }
        })
        .collect()
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(low, high), it| {
        (it.min(low), it.max(high))
    })
}

/// Frame rates that rise with the size: more bytes take no less time.
pub(super) fn rising_frame_rates(table: &Table) -> Vec<Finding> {
    if table.software_sender || !matches!(table.axis, Axis::Frame | Axis::Devices) {
        return Vec::new();
    }
    let rising = neighbours(table).filter_map(|(before, after)| {
        let (slow, fast) = (frames(before)?, frames(after)?);
        // The nearest ends of both roundings: every pair of true values then rises by more.
        if fast.rate.low <= slow.rate.high * (1.0 + RISE_MIN) {
            return None;
        }
        Some(Finding {
            rule: Rule::FrameRateRises,
            likeness: None,
            place: after.figure.place.clone(),
            subject: after.name(),
            arithmetic: format!(
                "{} at {} B: {}; {} at {} B: {} ({})",
                before.shown(),
                before.size_name(),
                frame_rate(slow.rate.middle()),
                after.shown(),
                after.size_name(),
                frame_rate(fast.rate.middle()),
                percent(fast.rate.middle() / slow.rate.middle() - 1.0),
            ),
            meaning: "a longer frame costs no less than a shorter one: one of the two figures is a slip, or a search \
                      ended too low"
                .to_owned(),
        })
    });
    rising.collect()
}

/// Returns the bit rate of a cell; from a frame rate, at L2. Other quantities fall with the size by
/// nature.
fn bits(cell: &Cell<'_>) -> Option<Interval> {
    match cell.unit()?.quantity {
        Quantity::FrameRate => Some(cell.rate()?.scaled(8.0 * cell.frame_bytes()?)),
        _ => cell.bit_rate(),
    }
}

/// Bit rates that fall as the size grows.
pub(super) fn falling_rates(table: &Table) -> Vec<Finding> {
    if table.axis == Axis::Mix {
        return Vec::new();
    }
    let falling = neighbours(table).filter_map(|(before, after)| {
        let with_deviation = |cell: &Cell<'_>| {
            // A share, because `bits` converts a frame rate to another unit than the deviation's.
            let share = cell.figure.deviation_max() / cell.figure.value;
            let rate = bits(cell)?;
            Some(Interval {
                low: rate.low - share * rate.middle(),
                high: rate.high + share * rate.middle(),
            })
        };
        let (high, low) = (with_deviation(&before)?, with_deviation(&after)?);
        let ratio = bits(&after)?.middle() / bits(&before)?.middle();
        if !low.is_below(high) || ratio > 1.0 - FALL_MIN {
            return None;
        }
        Some(Finding {
            rule: Rule::NotMonotonic,
            likeness: None,
            place: after.figure.place.clone(),
            subject: after.name(),
            arithmetic: format!(
                "{}, {} ({}), beyond rounding and deviations",
                at_size(&before)?,
                at_size(&after)?,
                percent(ratio - 1.0),
            ),
            meaning: "rates rise with the size everywhere else: fragments, another path in the device, or a slip, and \
                      the report does not say which"
                .to_owned(),
        })
    });
    falling.collect()
}

/// Returns a figure with its size: `1070 Mbit/s at 1280 B`; a frame rate with the bit rate that is
/// compared.
fn at_size(cell: &Cell<'_>) -> Option<String> {
    let shown = format!("{} at {} B", cell.shown(), cell.size_name());
    if cell.unit()?.quantity != Quantity::FrameRate {
        return Some(shown);
    }
    let rate = bit_rate(bits(cell)?.middle());
    Some(format!("{shown}: {rate} at L2"))
}

/// Reports print the longest frame first as often as last.
fn by_size(a: &Cell<'_>, b: &Cell<'_>) -> Ordering {
    let size = |cell: &Cell<'_>| cell.size().unwrap_or(0.0);
    size(a).total_cmp(&size(b))
}

/// Neighbouring cells of each row, or of each column of devices, in ascending order of size.
fn neighbours(table: &Table) -> impl Iterator<Item = (Cell<'_>, Cell<'_>)> {
    table.courses().into_iter().flat_map(|course| {
        let mut cells = course.cells;
        // Neither a mix of the file nor one that it does not describe is a size.
        cells.retain(|cell| cell.mix().is_none() && cell.size().is_some());
        cells.sort_by(by_size);
        let pairs: Vec<_> = cells.windows(2).map(|pair| (pair[0], pair[1])).collect();
        pairs
            .into_iter()
            // Two columns of one size are two settings, and not in order of size.
            .filter(|(a, b)| a.size() < b.size())
    })
}
