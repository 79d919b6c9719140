//! Suites from the oldest to the strongest: horizontal bars, with the ceiling for each suite's
//! packet length.

use super::scale::Linear;
use super::{Anchor, Area, LEGEND_HEIGHT, Svg, WIDTH, shortened, shortened_name};
use crate::format::{Scale, percent};
use crate::layout::Run;
use crate::tables::reason_cell;
use crate::tables::suites::{entry_name, overhead_words};
use maud::Markup;
use stats::{CellResult, SuiteEntry, SuiteMatrix};

const BAR: f64 = 15.0;
const ROW: f64 = 23.0;
/// Column of names at the left.
const NAMES: f64 = 240.0;
/// Columns behind the bars.
const VALUES: f64 = 70.0;
const OVERHEAD: f64 = 110.0;
const REACHED: f64 = 70.0;

/// The chart of a matrix; `None` when it has no figure.
pub(crate) fn draw(run: &Run<'_>, matrix: &SuiteMatrix, id: &str) -> Option<Markup> {
    let rows: Vec<(&SuiteEntry, &CellResult)> = matrix
        .entries
        .iter()
        .filter_map(|entry| Some((entry, run.cell(&entry.cell)?)))
        .collect();
    let figures = rows.iter().filter_map(|(_, cell)| figure(cell));
    let most = figures
        .map(|(mean, reach)| mean + reach)
        .fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    // A ceiling far above all figures would press the bars together.
    let ceilings = rows.iter().filter_map(|(_, cell)| ceiling(cell));
    let highest = ceilings
        .filter(|found| *found <= 4.0 * most)
        .fold(most, f64::max);
    let unit = match rows.iter().any(|(_, cell)| cell.bulk().is_some()) {
        true => "bit/s",
        false => "pps",
    };
    let width = WIDTH - NAMES - VALUES - OVERHEAD - REACHED;
    let plot = Area::new(NAMES, LEGEND_HEIGHT + 22.0, width, ROW * rows.len() as f64);
    let axis = Linear::si(highest, 5.0, unit);
    let scale = Scale::si(highest, unit);
    let mut svg = Svg::new(id, plot.bottom() + 26.0);
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

/// Mean and the farthest repeat's distance.
fn figure(cell: &CellResult) -> Option<(f64, f64)> {
    let found = cell.rate()?;
    Some((found.mean, found.largest_distance))
}

fn ceiling(cell: &CellResult) -> Option<f64> {
    let found = cell.ceiling.as_ref()?;
    found.payload_bps.or(found.frames_per_s)
}

fn frame(svg: &mut Svg, axis: &Linear, plot: Area, rows: &[(&SuiteEntry, &CellResult)]) {
    let is = |insecure: bool| {
        let mut rows = rows.iter();
        rows.any(|(entry, _)| entry.insecure.is_some() == insecure)
    };
    let legend = [
        (false, "fill-1", "protects"),
        (true, "ring stroke-2", "insecure"),
    ];
    let shown = legend.iter().filter(|(insecure, ..)| is(*insecure));
    svg.legend(shown.map(|(_, class, name)| (class, name)));
    svg.x_axis(plot, axis);
    let head = plot.y - 9.0;
    svg.text("tick", (plot.x, head), Anchor::Start, axis.unit());
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
    (axis, scale): (&Linear, &Scale),
    place: Area,
    entry: &SuiteEntry,
    cell: &CellResult,
) -> String {
    let baseline = place.y + 16.0;
    let label = shortened_name(&entry_name(entry), NAMES - 12.0);
    svg.text("label", (place.x - 8.0, baseline), Anchor::End, &label);
    let right = |svg: &mut Svg, x: f64, text: &str| {
        svg.text("label", (place.right() + x, baseline), Anchor::End, text);
    };
    if let Some(overhead) = &cell.overhead {
        right(svg, VALUES + OVERHEAD - 8.0, &overhead_words(overhead));
    }
    let Some((mean, reach)) = figure(cell) else {
        let reason = reason_cell(cell).text;
        let shown = shortened(&reason, place.width - 6.0);
        svg.text("reason", (place.x + 6.0, baseline), Anchor::Start, &shown);
        return reason;
    };
    let width = |value: f64| place.width * axis.share(value);
    let class = match entry.insecure {
        Some(_) => "ring stroke-2",
        None => "fill-1",
    };
    let value = scale.value(mean);
    let bar = place.bar(place.y + (ROW - BAR) / 2.0, width(mean), BAR);
    svg.rect(class, bar, &format!("{}: {value}", cell.id));
    let middle = bar.y + BAR / 2.0;
    let (low, high) = (bar.right() - width(reach), bar.right() + width(reach));
    svg.side_whisker(low, high, middle);
    let mut end = high;
    if let Some(most) = ceiling(cell).filter(|most| axis.share(*most) <= 1.0 + 1e-9) {
        let x = place.x + width(most);
        svg.line("ceiling", (x, bar.y - 2.0), (x, bar.bottom() + 2.0));
        // The number must not overlap the bar or its ceiling.
        if x > end - 2.0 && x < end + VALUES - 14.0 {
            end = x;
        }
    }
    let number = scale.number(mean);
    let position = (end + 7.0, baseline - 1.0);
    svg.text("value halo", position, Anchor::Start, &number);
    let reached = cell.ceiling.as_ref().and_then(|found| found.reached);
    if let Some(share) = reached {
        right(svg, VALUES + OVERHEAD + REACHED, &percent(100.0 * share));
    }
    value
}
