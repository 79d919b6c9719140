//! Compares rates with the frame rate and the limit of the link, by layer.

use crate::document::{Axis, Cell, Lengths, Remark, Table};
use crate::finding::{Finding, Likeness, Rule};
use crate::interval::Interval;
use crate::unit::Quantity;
use std::collections::HashMap;
use units::frame_constants::{MIN_BYTES, PREAMBLE_AND_GAP_BYTES};
use units::human::{bit_rate, counted, frame_rate, number};

/// Bytes that the shortest frame occupies on the link.
const SHORTEST_BYTES: f64 = (MIN_BYTES + PREAMBLE_AND_GAP_BYTES) as f64;

/// Rates of one device at one size that follow from one frame rate: each bit rate is compared with
/// the frame rate, or without one with the first bit rate.
pub(super) fn layers(table: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut imprecise: Vec<Finding> = Vec::new();
    for cells in of_devices(table) {
        if is_ambiguous(table, &cells) {
            continue;
        }
        // Rows of one device may be of two layers on purpose, as of two modes.
        if !table.has_size_rows() && !cells.iter().any(is_frame_rate) {
            continue;
        }
        let Some(first) = cells
            .iter()
            .find(|cell| is_frame_rate(cell))
            .or(cells.first())
        else {
            continue;
        };
        let (Some(frames), Some(cut_off)) = (first.frame_rate(), first.cut_off()) else {
            continue;
        };
        for cell in cells.iter().filter(|cell| !std::ptr::eq(*cell, first)) {
            let (Some(lengths), Some(rate)) = (cell.lengths(), cell.bit_rate()) else {
                continue;
            };
            // A mean of a mix is printed, and so rounded.
            let half_step = cell.mix().map_or(0.0, |mix| mix.half_step);
            let counted = Interval::around(lengths.counted, half_step);
            let expected = (frames * counted).scaled(8.0);
            if rate.meets(expected) {
                continue;
            }
            let middle = expected.middle();
            let printed = cell.figure.value * scale(cell);
            // The other rate may have been cut off as well.
            let widest = first
                .as_frame_rate(cut_off)
                .map(|it| (it * counted).scaled(8.0));
            let is_cut_off = |widest: Interval| cell.cut_off().is_some_and(|it| it.meets(widest));
            if widest.is_some_and(is_cut_off) {
                imprecise.push(cut_off_finding(cell, first, frames, lengths.counted));
                continue;
            }
            findings.push(Finding {
                rule: Rule::LayersDisagree,
                likeness: Some(Likeness {
                    ratio: printed / middle,
                    bytes: Some((printed / middle - 1.0) * lengths.counted),
                    against: line(cell),
                }),
                place: cell.figure.place.clone(),
                subject: cell.name(),
                arithmetic: format!(
                    "{} × {} B × 8 = {}, printed {} ({})",
                    frame_rate(frames.middle()),
                    number(lengths.counted),
                    bit_rate(middle),
                    cell.shown(),
                    percent(printed / middle - 1.0),
                ),
                meaning: format!(
                    "one of the two is wrong, or the rate is not of the layer that {} names; the other is {}",
                    if table.has_size_rows() { "its column" } else { "the table" },
                    first.shown()
                ),
            });
        }
    }
    let more = imprecise.len().saturating_sub(1);
    // A program that cuts off does so everywhere: one note for all.
    if let Some(mut finding) = imprecise.into_iter().next() {
        if more > 0 {
            finding.arithmetic = format!(
                "{}, and {} of the table alike",
                finding.arithmetic,
                counted(more as u64, "figure")
            );
        }
        findings.push(finding);
    }
    findings
}

/// The rates of each device at each size.
fn of_devices(table: &Table) -> Vec<Vec<Cell<'_>>> {
    let mut groups: Vec<Vec<Cell<'_>>> = Vec::new();
    if !matches!(
        table.axis,
        Axis::Rates | Axis::Devices | Axis::Frame | Axis::Mix
    ) {
        return groups;
    }
    // By the size first, so that the search for a group is short.
    let mut open: HashMap<(usize, &str), usize> = HashMap::new();
    for (at, row) in table.rows.iter().enumerate() {
        // A table has times and shares of loss next to its rates.
        for cell in table.cells_of(row).filter(|it| it.rate().is_some()) {
            let key = if table.has_size_rows() {
                (at, cell.column.device.as_str())
            } else {
                (std::ptr::from_ref(cell.column).addr(), row.device.as_str())
            };
            let number = *open.entry(key).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[number].push(cell);
        }
    }
    groups
}

fn is_frame_rate(cell: &Cell<'_>) -> bool {
    let unit = cell.unit();
    unit.is_some_and(|unit| unit.quantity == Quantity::FrameRate)
}

/// The row or column of a cell among those of its device.
fn line(cell: &Cell<'_>) -> String {
    if cell.table.has_size_rows() {
        format!("column {} of table {}", cell.column.name, cell.table.id)
    } else {
        format!("row {} of table {}", cell.row.name, cell.table.id)
    }
}

/// Remarks bit rates next to frame rates of their device that no layer relates to each other.
pub(super) fn layer_unstated(table: &Table) -> Option<Remark> {
    let mut groups = of_devices(table).into_iter();
    let (bits, frames) = groups.find_map(|cells| {
        let bits = cells.iter().find(|it| {
            it.bit_rate().is_some() && it.frame_bytes().is_some() && it.lengths().is_none()
        })?;
        Some((*bits, *cells.iter().find(|cell| is_frame_rate(cell))?))
    })?;
    Some(Remark {
        place: bits.figure.place.clone(),
        what: format!(
            "{} and {} are compared at L1 alone, which counts the most bytes of a frame: state `layer`",
            bits.shown(),
            frames.shown(),
        ),
    })
}

/// A bit rate that is off by less than its last digit.
fn cut_off_finding(cell: &Cell<'_>, first: &Cell<'_>, frames: Interval, bytes: f64) -> Finding {
    let is_frame_rate = first
        .unit()
        .is_some_and(|it| it.quantity == Quantity::FrameRate);
    let of = if is_frame_rate {
        first.shown()
    } else {
        frame_rate(frames.middle())
    };
    // Two digits more than the printed figure has, so that the difference is visible.
    let step = 2.0 * cell.figure.half_step;
    let digits = (2.0 - step.log10().round()).clamp(0.0, 9.0) as usize;
    let expected = frames.middle() * bytes * 8.0 / scale(cell);
    let unit = cell.unit().map_or("", |unit| unit.text.as_str());
    Finding {
        rule: Rule::LayersImprecise,
        likeness: None,
        place: cell.figure.place.clone(),
        subject: cell.name(),
        arithmetic: format!(
            "{of} × {} B × 8 = {expected:.digits$} {unit}, printed {}",
            number(bytes),
            cell.shown(),
        ),
        meaning: "the figure was probably cut off instead of rounded".to_owned(),
    }
}

/// Bit rates without a layer that are above the frame rate of their device at L1, which counts the
/// most bytes of a frame.
pub(super) fn beyond_layers(table: &Table) -> Vec<Finding> {
    let groups = of_devices(table);
    let found = groups
        .iter()
        .flat_map(|cells| cells.iter().filter_map(|cell| beyond(cell, cells)));
    found.collect()
}

/// A bit rate above the frame rate among the cells of its device.
fn beyond(cell: &Cell<'_>, cells: &[Cell<'_>]) -> Option<Finding> {
    let is_unstated = cell.table.axis != Axis::Rates && cell.lengths().is_none();
    let rate = cell.bit_rate().filter(|_| is_unstated)?;
    let mut of_frames = cells.iter().filter(|cell| is_frame_rate(cell));
    // With two frame rates it is unknown which one the bit rate is of.
    let (Some(frames), None) = (of_frames.next(), of_frames.next()) else {
        return None;
    };
    let bytes = cell.frame_bytes()? + PREAMBLE_AND_GAP_BYTES as f64;
    let half_step = cell.mix().map_or(0.0, |mix| mix.half_step);
    let counted = Interval::around(bytes, half_step);
    let most = (frames.rate()? * counted).scaled(8.0);
    let widest = (frames.cut_off()? * counted).scaled(8.0);
    let low = rate.low.min(cell.cut_off()?.low);
    if low <= widest.high * (1.0 + 1e-9) {
        return None;
    }
    let printed = cell.figure.value * scale(cell);
    Some(Finding {
        rule: Rule::LayersDisagree,
        likeness: Some(Likeness {
            ratio: printed / most.middle(),
            bytes: None,
            against: line(frames),
        }),
        place: cell.figure.place.clone(),
        subject: cell.name(),
        arithmetic: format!(
            "{} × {} B × 8 = {} at L1, printed {} ({})",
            frame_rate(frames.rate()?.middle()),
            number(bytes),
            bit_rate(most.middle()),
            cell.shown(),
            percent(printed / most.middle() - 1.0),
        ),
        meaning: format!(
            "no layer counts more bytes of a frame than L1: one of the two is wrong, or they are not of one \
                 measurement; the other is {}",
            frames.shown()
        ),
    })
}

/// Whether two columns of a device hold the same quantity of one layer. Their headings then differ
/// in words that say more than this program knows: of the offered and the received load, perhaps.
fn is_ambiguous(table: &Table, cells: &[Cell<'_>]) -> bool {
    let of = |cell: &Cell<'_>| (cell.bit_rate().is_some(), cell.own_layer());
    let mut later = cells.iter().enumerate();
    table.axis != Axis::Rates
        && later.any(|(at, cell)| cells[..at].iter().any(|other| of(other) == of(cell)))
}

/// Rates above the capacity of the link.
pub(super) fn exceeding(table: &Table) -> Vec<Finding> {
    let found = table.cells().filter_map(|cell| {
        // A range claims its upper end as well.
        let low = match cell.figure.top {
            Some(top) => cell.rate().map(|_| top.low * scale(&cell))?,
            None => cell.rate()?.low,
        };
        let is_frames = cell.unit()?.quantity == Quantity::FrameRate;
        let link = table.link_bps? as f64;
        // Without a size or layer: the shortest frames, and all bytes that occupy the link. No rate
        // is above these.
        let ceiling = if is_frames {
            cell.ceiling_fps().unwrap_or(link / (8.0 * SHORTEST_BYTES))
        } else {
            cell.ceiling_bps().unwrap_or(link)
        };
        // The margin absorbs the error of computing a ceiling that a rate at line speed equals
        // exactly.
        if low <= ceiling * (1.0 + 1e-9) {
            return None;
        }
        let arithmetic = match (is_frames, cell.frame_bytes(), cell.lengths()) {
            (true, Some(frame), _) => of_frames(&cell, ceiling, frame)?,
            (true, None, _) => format!(
                "{} carries {:.0} frames/s of {MIN_BYTES} B, the shortest, at most, printed {}",
                bit_rate(link),
                ceiling.floor(),
                cell.shown(),
            ),
            (false, _, Some(lengths)) => of_bits(&cell, lengths, ceiling, low)?,
            (false, _, None) => format!(
                "{} at most at any layer, printed {}{}",
                bit_rate(link),
                cell.shown(),
                at_least(&cell, low)?,
            ),
        };
        Some(Finding {
            rule: Rule::ExceedsLink,
            likeness: Some(Likeness {
                ratio: printed(&cell) / ceiling,
                bytes: None,
                against: format!("table {}", table.id),
            }),
            place: cell.figure.place.clone(),
            subject: cell.name(),
            arithmetic,
            meaning: "the link cannot carry it: the rate is of another layer, of both directions, or of what was sent \
                      and not received"
                .to_owned(),
        })
    });
    found.collect()
}

fn of_bits(cell: &Cell<'_>, lengths: Lengths, ceiling: f64, low: f64) -> Option<String> {
    let around = cell.encapsulation();
    let around = around.map(|it| format!(" with {}", it.text));
    Some(format!(
        "{} × {} B / {} B on the wire{} = {} at most, printed {}{}",
        bit_rate(cell.table.link_bps? as f64),
        number(lengths.counted),
        number(lengths.wire),
        around.unwrap_or_default(),
        bit_rate(ceiling),
        cell.shown(),
        at_least(cell, low)?,
    ))
}

/// The least value that rounds to the figure.
fn at_least(cell: &Cell<'_>, low: f64) -> Option<String> {
    // The difference of two `f64` would print a dozen digits.
    let low = (low / scale(cell) * 1e4).round() / 1e4;
    let of_range = match cell.figure.top {
        Some(_) => "its upper end is ",
        None => "",
    };
    Some(format!(" ({of_range}at least {low} {})", cell.unit()?.text))
}

/// The printed rate, of a range its upper end, in bits or frames per second.
fn printed(cell: &Cell<'_>) -> f64 {
    let top = cell.figure.top.map(Interval::middle);
    top.unwrap_or(cell.figure.value) * scale(cell)
}

fn of_frames(cell: &Cell<'_>, ceiling: f64, frame: f64) -> Option<String> {
    let added = cell.added_bytes(frame);
    let wire = frame + added + PREAMBLE_AND_GAP_BYTES as f64;
    let tunnel = match cell.encapsulation() {
        Some(tunnel) => format!(" + {} by {}", number(added), tunnel.text),
        None => String::new(),
    };
    Some(format!(
        "{} × ({} + {PREAMBLE_AND_GAP_BYTES}{tunnel}) B × 8 = {} at L1, and {} carries {:.0} frames/s of that size",
        cell.shown(),
        number(frame),
        bit_rate(printed(cell) * 8.0 * wire),
        bit_rate(cell.table.link_bps? as f64),
        ceiling.floor(),
    ))
}

/// `+2.1 %`.
pub(super) fn percent(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{} %", number(share.abs() * 100.0))
}

/// Returns the bits or frames per second in one of a cell's unit.
pub(super) fn scale(cell: &Cell<'_>) -> f64 {
    cell.unit().map_or(1.0, |unit| unit.scale)
}
