//! Grouped bars: throughput by MTU and cores, devices side by side, with the distance of the
//! farthest repeat.

use super::scale::Linear;
use super::{Anchor, Area, Svg, absence, text_width};
use crate::format::{self, Scale, counted};
use crate::layout::{Point, Run, Set};
use maud::Markup;
use stats::{CellResult, Estimate, Metric, Status};

const HEIGHT: f64 = 390.0;
const PLOT: Area = Area::plot(HEIGHT, [34.0, 0.0, 48.0, 46.0]);
/// Left and right of the groups of one MTU.
const MARGIN: f64 = 12.0;
/// Bars are no wider than this, and a ratio inside them needs this height.
const MAX_BAR: f64 = 58.0;
const RATIO_HEIGHT: f64 = 24.0;
/// Below these widths a value is turned, and then left to the table.
const UPRIGHT_BAR: f64 = 30.0;
const TURNED_BAR: f64 = 10.0;
/// Why there is no bar where no trial failed.
const NOT_RUN: &str = "not run";

struct Chart<'r, 'a> {
    svg: Svg,
    run: &'r Run<'a>,
    set: &'r Set<'r>,
    axis: Linear,
    /// All values in one unit, that of the axis.
    scale: Scale,
}

/// The chart of a set's points of one datagram size (`None`: TCP).
pub(crate) fn draw(run: &Run<'_>, set: &Set<'_>, payload: Option<u32>, id: &str) -> Markup {
    let points: Vec<&Point<'_>> = set
        .points
        .iter()
        .filter(|point| point.payload == payload)
        .collect();
    let cells = points.iter().flat_map(|point| &point.cells);
    let found = cells.filter_map(|cell| cell.throughput_bps());
    let highest = found
        .map(|found| found.mean + found.largest_distance)
        .fold(0.0, f64::max);
    let mut chart = Chart {
        svg: Svg::new(id, HEIGHT),
        run,
        set,
        axis: Linear::si(highest, 5.0, "bit/s"),
        scale: Scale::si(highest, "bit/s"),
    };
    chart.frame();
    let mtus = set.mtus();
    let band = PLOT.width / mtus.len() as f64;
    for (index, mtu) in mtus.into_iter().enumerate() {
        let x = PLOT.x + band * index as f64;
        let here = points.iter().copied().filter(|point| point.mtu == mtu);
        let here: Vec<&Point<'_>> = here.collect();
        let area = Area::new(x, PLOT.y, band, PLOT.height);
        chart.band(mtu, &here, area);
    }
    let title = format!(
        "{} payload throughput by MTU and cores per station",
        set.protocol.name()
    );
    chart.svg.finish(&title, &description(set, &points))
}

/// Description of the chart for screen readers.
fn description(set: &Set<'_>, points: &[&Point<'_>]) -> String {
    let cells = points
        .iter()
        .flat_map(|point| point.cells.iter().map(move |cell| (point, cell)));
    let values = cells.map(|(point, cell)| {
        let value = cell
            .throughput_bps()
            .map_or_else(|| absence(cell, NOT_RUN).to_owned(), format::bit_rate);
        let cores = counted(point.cores, "core");
        format!("MTU {} B, {cores}, {}: {value}", point.mtu, cell.dut)
    });
    let values: Vec<String> = values.collect();
    format!("Bars of the mean, {}. {}.", set.common, values.join("; "))
}

impl Chart<'_, '_> {
    fn frame(&mut self) {
        let (run, duts) = (self.run, self.set.duts.iter());
        self.svg
            .legend(duts.map(|dut| (format!("fill-{}", run.color(dut)), dut)));
        self.svg.y_axis(PLOT, &self.axis, self.axis.unit());
    }

    /// All points of one MTU.
    fn band(&mut self, mtu: u16, points: &[&Point<'_>], area: Area) {
        let width = (area.width - 2.0 * MARGIN) / points.len().max(1) as f64;
        for (index, point) in points.iter().enumerate() {
            let x = area.x + MARGIN + width * index as f64;
            self.group(point, Area { x, width, ..area });
        }
        let label = format!("MTU {mtu} B");
        let position = (area.middle(), PLOT.bottom() + 40.0);
        self.svg
            .text("label strong", position, Anchor::Middle, &label);
        if area.x > PLOT.x {
            self.svg
                .line("grid", (area.x, PLOT.y), (area.x, PLOT.bottom() + 44.0));
        }
    }

    /// The bars of one point.
    fn group(&mut self, point: &Point<'_>, area: Area) {
        let count = self.set.duts.len() as f64;
        let width = (0.84 * area.width / count).min(MAX_BAR);
        let start = area.x + (area.width - width * count) / 2.0;
        for (index, dut) in self.set.duts.iter().enumerate() {
            let Some(cell) = point.cell(dut) else {
                continue;
            };
            let x = start + width * index as f64;
            match cell.throughput_bps() {
                Some(found) => {
                    let height = area.height * self.axis.share(found.mean);
                    let y = area.bottom() - height;
                    self.bar(cell, found, Area::new(x + 1.0, y, width - 2.0, height));
                }
                None => self.absent(cell, (x + width / 2.0, area.bottom())),
            }
        }
        let cores = counted(point.cores, "core");
        let fits = text_width(&cores) <= area.width;
        let cores = if fits { cores } else { point.cores.to_string() };
        let position = (area.middle(), area.bottom() + 19.0);
        self.svg.text("label", position, Anchor::Middle, &cores);
    }

    fn bar(&mut self, cell: &CellResult, found: &Estimate, bar: Area) {
        let color = self.run.color(&cell.dut);
        let tooltip = format!("{}: {}", cell.id, format::bit_rate(found));
        self.svg.rect(&format!("fill-{color}"), bar, &tooltip);
        let middle = bar.middle();
        let reach = PLOT.height * self.axis.share(found.largest_distance);
        self.svg
            .whisker((middle, bar.y), reach, (0.22 * bar.width).min(7.0));
        let (above, value) = (bar.y - reach - 6.0, self.scale.number(found.mean));
        let widths = [UPRIGHT_BAR, TURNED_BAR];
        self.svg.bar_value("value", bar, above, widths, &value);
        let comparison = self.run.comparison(cell, Metric::PayloadThroughput);
        if let Some(comparison) = comparison
            && bar.width >= UPRIGHT_BAR
            && bar.height >= RATIO_HEIGHT + reach
        {
            let text = format!("{}×", format::ratio_number(comparison.ratio));
            let position = (middle, bar.y + reach + 16.0);
            self.svg
                .text(&format!("on-{color}"), position, Anchor::Middle, &text);
        }
    }

    /// In place of a bar: why there is none.
    fn absent(&mut self, cell: &CellResult, (x, y): (f64, f64)) {
        let class = if cell.status == Status::NotRun {
            "tick"
        } else {
            "reason"
        };
        let (position, word) = ((x + 4.0, y - 8.0), absence(cell, NOT_RUN));
        self.svg
            .turned_text(class, position, Anchor::Start, word, -90);
    }
}
