//! Suites from the oldest to the strongest: horizontal bars, or marks on a logarithmic axis if
//! values span decades, with the ceiling for each suite's packet length.

use super::{entry_name, overhead_words};
use crate::kit::cells::reason_cell;
use crate::kit::chart::scale::{Axis, Values};
use crate::kit::chart::{
    Anchor, Area, Key, LEGEND_HEIGHT, Spot, Svg, WIDTH, shortened, shortened_name, with_interval,
};
use crate::kit::format::{Scale, percent};
use crate::layout::Run;
use crate::order::largest;
use maud::Markup;
use stats::{CellResult, Estimate, SuiteEntry, SuiteMatrix};

const BAR: f64 = 15.0;
const ROW: f64 = 23.0;
/// Width of the column of names at the left.
const NAMES: f64 = 240.0;
/// Widths of the columns to the right of the bars.
const VALUES: f64 = 70.0;
const OVERHEAD: f64 = 110.0;
const REACHED: f64 = 70.0;

/// The chart of a matrix; `None` without a figure.
pub(super) fn draw(run: &Run<'_>, matrix: &SuiteMatrix, id: &str) -> Option<Markup> {
    let rows: Vec<(&SuiteEntry, &CellResult)> = matrix
        .entries
        .iter()
        .filter_map(|entry| Some((entry, run.cell(&entry.cell)?)))
        .collect();
    let figures = rows.iter().filter_map(|(_, cell)| figure(cell));
    let most = largest(figures.map(|found| found.max));
    if most <= 0.0 {
        return None;
    }
    // A ceiling far above all figures would compress the bars.
    let ceilings = rows.iter().filter_map(|(_, cell)| ceiling(cell));
    let highest = ceilings
        .filter(|found| *found <= 4.0 * most)
        .fold(most, f64::max);
    let unit = if rows.iter().any(|(_, cell)| cell.bulk().is_some()) {
        "bit/s"
    } else {
        "pps"
    };
    let width = WIDTH - NAMES - VALUES - OVERHEAD - REACHED;
    let plot = Area::new(NAMES, LEGEND_HEIGHT + 22.0, width, ROW * rows.len() as f64);
    let scale = Scale::si(highest, unit);
    let figures = rows.iter().filter_map(|(_, cell)| figure(cell));
    // Means only: a whisker down to 0 must not decide the kind of axis.
    let lowest = figures.map(|found| found.mean).fold(highest, f64::min);
    let axis = Values::spanning((lowest, highest), 5.0, scale.clone());
    let mut svg = Svg::new(id);
    frame(&mut svg, &axis, plot, &rows);
    let mut described = Vec::new();
    for (row, (entry, cell)) in rows.iter().enumerate() {
        let place = plot.bar(plot.y + ROW * row as f64, plot.width, ROW);
        let value = self::row(&mut svg, (&axis, &scale), place, entry, cell);
        described.push(format!("{}: {value}", entry_name(entry)));
    }
    let title = format!(
        "Suites of {}, from the oldest to the strongest",
        matrix.device
    );
    Some(svg.finish(&title, &format!("{}.", described.join("; "))))
}

/// The figure of a row.
fn figure(cell: &CellResult) -> Option<&Estimate> {
    cell.rate()
}

fn ceiling(cell: &CellResult) -> Option<f64> {
    let found = cell.ceiling.as_ref()?;
    found.payload_bps.or(found.frames_per_s)
}

/// The ceiling, if it is on the axis.
fn shown_ceiling(axis: &Values, cell: &CellResult) -> Option<f64> {
    ceiling(cell).filter(|most| axis.share(*most) <= 1.0 + 1e-9)
}

fn frame(svg: &mut Svg, axis: &Values, plot: Area, rows: &[(&SuiteEntry, &CellResult)]) {
    let is = |insecure: bool| {
        let mut rows = rows.iter();
        rows.any(|(entry, _)| entry.insecure.is_some() == insecure)
    };
    let legend = [
        (false, Key::Swatch("fill-1"), "protects"),
        (true, Key::Swatch("ring stroke-2"), "insecure: outlined"),
    ];
    let shown = legend.into_iter().filter(|(insecure, ..)| is(*insecure));
    svg.legend(shown.map(|(_, key, name)| (key, name)));
    if rows
        .iter()
        .any(|(_, cell)| shown_ceiling(axis, cell).is_some())
    {
        svg.legend([(Key::Line("ceiling"), "ceiling of the link")]);
    }
    svg.x_axis(plot, axis);
    let head = plot.y - 9.0;
    let rate = axis.title("throughput");
    svg.text("tick", (plot.x, head), Anchor::Start, &rate);
    let columns = [
        (VALUES + OVERHEAD - 8.0, "overhead"),
        (VALUES + OVERHEAD + REACHED, "of ceiling"),
    ];
    for (x, title) in columns {
        svg.text("tick", (plot.right() + x, head), Anchor::End, title);
    }
}

/// Draws a row; returns its figure.
fn row(
    svg: &mut Svg,
    (axis, scale): (&Values, &Scale),
    place: Area,
    entry: &SuiteEntry,
    cell: &CellResult,
) -> String {
    let baseline = place.y + 16.0;
    let label = shortened_name("label", &entry_name(entry), NAMES - 12.0);
    svg.text("label", (place.x - 8.0, baseline), Anchor::End, &label);
    let right = |svg: &mut Svg, x: f64, text: &str| {
        svg.text("label", (place.right() + x, baseline), Anchor::End, text);
    };
    if let Some(overhead) = &cell.overhead {
        right(svg, VALUES + OVERHEAD - 8.0, &overhead_words(overhead));
    }
    let Some(found) = figure(cell) else {
        let reason = reason_cell(cell).text;
        let shown = shortened("reason", &reason, place.width - 6.0);
        let spot = Spot::start((place.x + 6.0, baseline));
        svg.label("reason", vec![spot], &shown);
        return reason;
    };
    let width = |value: f64| place.width * axis.share(value);
    let mean = found.mean;
    let value = scale.value(mean);
    let spread = cell.rate().map(|found| with_interval(scale, found));
    let spread = spread.unwrap_or_default();
    let tooltip = format!("{}, {}: {spread}", cell.dut, entry_name(entry));
    let bar = place.bar(place.y + (ROW - BAR) / 2.0, width(mean), BAR);
    let middle = bar.y + BAR / 2.0;
    // All suites are of one device, so the colour can show which ones are insecure.
    let (class, color) = match entry.insecure {
        Some(_) => ("ring stroke", 2),
        None => ("fill", 1),
    };
    let is_log = axis.is_log();
    if !is_log {
        svg.rect(&format!("{class}-{color}"), bar, &tooltip);
    }
    let (low, high) = (place.x + width(found.min), place.x + width(found.max));
    svg.side_whisker(low, high, middle);
    if is_log {
        // A bar's length is meaningless on a logarithmic axis.
        svg.line("grid", (place.x, middle), (bar.right(), middle));
        svg.mark(class, color, (bar.right(), middle), 5.0, &tooltip);
    }
    if let Some(most) = shown_ceiling(axis, cell) {
        let x = place.x + width(most);
        svg.line("ceiling", (x, bar.y - 2.0), (x, bar.bottom() + 2.0));
    }
    let number = scale.number(mean);
    let spots = Spot::rightward((high + if is_log { 11.0 } else { 8.0 }, baseline - 1.0));
    svg.label("value", spots, &number);
    let reached = cell.ceiling.as_ref().and_then(|found| found.reached);
    if let Some(share) = reached {
        right(svg, VALUES + OVERHEAD + REACHED, &percent(100.0 * share));
    }
    value
}
