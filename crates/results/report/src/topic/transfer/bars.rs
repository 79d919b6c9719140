//! Grouped bars: throughput by MTU and cores, one bar per device, whiskers over the repeats.

use crate::kit::chart::marks::is_hatched;
use crate::kit::chart::scale::{Axis, Linear};
use crate::kit::chart::{
    Anchor, Area, BAR_MIN, Font, Key, Spot, Svg, absence, band_width, hover, plot,
};
use crate::kit::format::{Scale, bit_rate, counted, ratio_number};
use crate::layout::{Point, Run, Set};
use crate::order::largest;
use maud::Markup;
use stats::{CellResult, Estimate, Metric, Status};

const HEIGHT: f64 = 398.0;
const PLOT: Area = plot(HEIGHT, [34.0, 0.0, 56.0, 46.0]);
/// Space left and right of the groups of one MTU.
const MARGIN: f64 = 12.0;
/// Maximum width of a bar, and minimum height of a bar with a ratio inside.
const MAX_BAR: f64 = 58.0;
/// Share of a group's width taken by its bars.
const BARS: f64 = 0.84;
const RATIO_HEIGHT: f64 = 24.0;
/// Size of the marks below the bars, omitted if the bars are too narrow.
const MARK: f64 = 4.0;
/// Label for a missing bar if no trial failed.
const NOT_RUN: &str = "not run";

struct Chart<'r, 'a> {
    svg: Svg,
    run: &'r Run<'a>,
    set: &'r Set<'r>,
    axis: Linear,
    /// Unit of all values and of the axis.
    scale: Scale,
}

/// The chart of a set's points of one datagram size (`None` for TCP). Returns `None` if bars would
/// be too narrow for their values; a grid shows them then.
pub(super) fn draw(run: &Run<'_>, set: &Set<'_>, payload: Option<u32>, id: &str) -> Option<Markup> {
    let points: Vec<&Point<'_>> = set
        .points
        .iter()
        .filter(|point| point.payload == payload)
        .collect();
    let cells = points.iter().flat_map(|point| &point.cells);
    let found = cells.filter_map(|cell| cell.throughput_bps());
    let highest = largest(found.map(|found| found.max));
    // Without any figure the axis would have no scale, and the tables say why.
    if highest <= 0.0 {
        return None;
    }
    let mtus = set.mtus();
    let groups = |mtu: &u16| points.iter().filter(|point| point.mtu == *mtu).count();
    // At least one, as an MTU may have no point of this datagram size.
    let most = mtus.iter().map(groups).max()?.max(1);
    let names: Vec<String> = mtus.iter().map(|mtu| format!("MTU {mtu} B")).collect();
    let contents = most as f64 * set.duts.len() as f64 * MAX_BAR / BARS;
    let band = band_width(PLOT, &names, contents + 2.0 * MARGIN);
    let group = (band - 2.0 * MARGIN) / most as f64;
    if BARS * group / (set.duts.len() as f64) < BAR_MIN {
        return None;
    }
    let mut chart = Chart {
        svg: Svg::new(id),
        run,
        set,
        axis: Linear::si(highest, 5.0, "bit/s"),
        scale: Scale::si(highest, "bit/s"),
    };
    chart.frame();
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
    Some(chart.svg.finish(&title, &description(set, &points)))
}

/// Describes the chart for screen readers.
fn description(set: &Set<'_>, points: &[&Point<'_>]) -> String {
    let cells = points
        .iter()
        .flat_map(|point| point.cells.iter().map(move |cell| (point, cell)));
    let values = cells.map(|(point, cell)| {
        let value = cell
            .throughput_bps()
            .map_or_else(|| absence(cell, NOT_RUN).to_owned(), bit_rate);
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
            .legend(duts.map(|dut| (Key::Style(run.color(dut)), *dut)));
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
        let position = (area.middle(), PLOT.bottom() + 48.0);
        self.svg
            .text("label strong", position, Anchor::Middle, &label);
        if area.x > PLOT.x {
            self.svg
                .line("grid", (area.x, PLOT.y), (area.x, PLOT.bottom() + 52.0));
        }
    }

    /// The bars of one point.
    fn group(&mut self, point: &Point<'_>, area: Area) {
        let count = self.set.duts.len() as f64;
        let width = (BARS * area.width / count).min(MAX_BAR);
        let start = area.x + (area.width - width * count) / 2.0;
        for (index, dut) in self.set.duts.iter().enumerate() {
            // Its place stays empty, so that a device has the same one in all groups.
            let Some(cell) = point.cell(dut) else {
                continue;
            };
            let x = start + width * index as f64;
            // Marks of narrower bars would overlap.
            if width >= 2.0 * MARK {
                let place = (x + width / 2.0, area.bottom() + 3.0 + MARK);
                let (color, tooltip) = (self.run.color(dut), self.hover(point, cell));
                self.svg.mark("fill", color, place, MARK, &tooltip);
            }
            match cell.throughput_bps() {
                Some(found) => {
                    let height = area.height * self.axis.share(found.mean);
                    let y = area.bottom() - height;
                    let bar = Area::new(x + 1.0, y, width - 2.0, height);
                    self.bar(point, cell, found, bar);
                }
                None => self.absent(cell, (x + width / 2.0, area.bottom())),
            }
        }
        let cores = counted(point.cores, "core");
        // The number alone is understood below a group that is too narrow for the words.
        let fits = Font::of("label").width(&cores) <= area.width - 4.0;
        let cores = if fits { cores } else { point.cores.to_string() };
        let position = (area.middle(), area.bottom() + 27.0);
        self.svg.text("label", position, Anchor::Middle, &cores);
    }

    fn hover(&self, point: &Point<'_>, cell: &CellResult) -> String {
        let cores = counted(point.cores, "core");
        let setting = format!("MTU {} B, {cores}, {}", point.mtu, self.set.common);
        match cell.throughput_bps() {
            Some(found) => hover(&cell.dut, &setting, &Scale::si(found.mean, "bit/s"), found),
            None => format!("{}, {setting}: {}", cell.dut, absence(cell, NOT_RUN)),
        }
    }

    fn bar(&mut self, point: &Point<'_>, cell: &CellResult, found: &Estimate, bar: Area) {
        let color = self.run.color(&cell.dut);
        let tooltip = self.hover(point, cell);
        self.svg.bar(color, bar, &tooltip);
        let middle = bar.middle();
        let end = |repeat: f64| PLOT.y_at(self.axis.share(repeat));
        let [low, high] = [found.min, found.max].map(end);
        let cap = (0.22 * bar.width).min(7.0);
        self.svg.whisker(middle, [high, low], cap);
        let (above, value) = (high - 6.0, self.scale.number(found.mean));
        let pitch = bar.width + 2.0;
        self.svg.bar_value((middle, above), pitch, &value, "");
        let comparison = self.run.comparison(cell, Metric::PayloadThroughput);
        let ratio = comparison.map(|found| format!("{}×", ratio_number(found.ratio)));
        let class = format!("on-{color}");
        // Only inside the bar, and not on hatching, on which no text is readable.
        if let Some(text) = ratio
            && bar.width >= Font::of(&class).width(&text)
            && bar.height >= RATIO_HEIGHT + (low - bar.y)
            && !is_hatched(color)
        {
            let position = (middle, low + 16.0);
            self.svg.text(&class, position, Anchor::Middle, &text);
        }
    }

    /// Draws the reason in place of a missing bar.
    fn absent(&mut self, cell: &CellResult, (x, y): (f64, f64)) {
        let class = if cell.status == Status::NotRun {
            "tick"
        } else {
            "reason"
        };
        let (spot, word) = (Spot::turned((x + 4.0, y - 8.0)), absence(cell, NOT_RUN));
        self.svg.label(class, vec![spot], word);
    }
}
