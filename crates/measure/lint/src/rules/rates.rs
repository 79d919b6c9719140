//! Rates against frame rate and link: what the layers make possible.

use crate::document::{Axis, Cell, Table};
use crate::finding::{Finding, Rule};
use crate::unit::Quantity;
use units::human::{bit_rate, frame_rate, number};

/// Rates of one row that follow from one frame rate: each bit rate is compared with the frame rate,
/// or without one with the first bit rate.
pub(super) fn layers(table: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    if table.axis != Axis::Rates {
        return findings;
    }
    for row in &table.rows {
        let cells: Vec<Cell<'_>> = table.cells_of(row).collect();
        let is_frame_rate = |cell: &&Cell<'_>| {
            let unit = cell.unit();
            unit.is_some_and(|unit| unit.quantity == Quantity::FrameRate)
        };
        let Some(first) = cells.iter().find(is_frame_rate).or(cells.first()) else {
            continue;
        };
        let Some(frames) = frames(first) else {
            continue;
        };
        for cell in cells.iter().filter(|cell| !std::ptr::eq(*cell, first)) {
            let (Some(lengths), Some(rate)) = (cell.lengths(), cell.rate()) else {
                continue;
            };
            let expected = frames.scaled(8.0 * lengths.counted);
            if rate.meets(expected) {
                continue;
            }
            let middle = expected.middle();
            findings.push(Finding {
                rule: Rule::LayersDisagree,
                place: cell.figure.place.clone(),
                subject: cell.name(),
                arithmetic: format!(
                    "{} × {} B × 8 = {}, printed {} ({})",
                    frame_rate(frames.middle()),
                    number(lengths.counted),
                    bit_rate(middle),
                    cell.shown(),
                    percent(cell.figure.value * scale(cell) / middle - 1.0),
                ),
                meaning: format!(
                    "one of the two is wrong, or the rate is not of the layer that its column names; the other is {}",
                    first.shown()
                ),
            });
        }
    }
    findings
}

/// The frame rate of a cell, if it is one or follows from it.
fn frames(cell: &Cell<'_>) -> Option<crate::Interval> {
    let rate = cell.rate()?;
    match cell.unit()?.quantity {
        Quantity::FrameRate => Some(rate),
        _ => Some(rate.scaled(1.0 / (8.0 * cell.lengths()?.counted))),
    }
}

/// Rates above what the link carries.
pub(super) fn exceeding(table: &Table) -> Vec<Finding> {
    let found = table.cells().filter_map(|cell| {
        let (ceiling, rate, lengths) = (cell.ceiling_bps()?, cell.bit_rate()?, cell.lengths()?);
        if rate.low <= ceiling * (1.0 + 1e-9) {
            return None;
        }
        Some(Finding {
            rule: Rule::ExceedsLink,
            place: cell.figure.place.clone(),
            subject: cell.name(),
            arithmetic: format!(
                "{} × {} B / {} B on the wire = {} at most, printed {} (at least {} {})",
                bit_rate(table.link_bps? as f64),
                number(lengths.counted),
                number(lengths.wire),
                bit_rate(ceiling),
                cell.shown(),
                (rate.low / scale(&cell) * 1e4).round() / 1e4,
                cell.unit()?.text,
            ),
            meaning: "the link cannot carry it: the rate is of another layer, of both directions, or of what was sent \
                      and not received"
                .to_owned(),
        })
    });
    found.collect()
}

/// `+2.1 %`.
pub(super) fn percent(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{} %", number(share.abs() * 100.0))
}

/// Bits per second in one of a cell's unit.
pub(super) fn scale(cell: &Cell<'_>) -> f64 {
    cell.unit().map_or(1.0, |unit| unit.scale)
}
