//! UDP: what was offered, and how much of it arrived.

use super::scale::Linear;
use super::{Anchor, Area, LEGEND_HEIGHT, Svg, WIDTH, number, shortened, shortened_name};
use crate::format::{Scale, percent};
use crate::layout::{Run, Set};
use crate::tables::reason_cell;
use maud::Markup;
use stats::{Bulk, CellResult};

const BAR: f64 = 20.0;
const ROW: f64 = 27.0;
const GROUP_GAP: f64 = 14.0;
/// Columns of names at the left, and of values at the right.
const POINT_NAMES: f64 = 130.0;
const DUT_NAMES: f64 = 140.0;
const VALUES: f64 = 230.0;

struct Chart<'r, 'a> {
    svg: Svg,
    run: &'r Run<'a>,
    id: &'r str,
    plot: Area,
    axis: Linear,
}

/// The chart of a set; `None` when it has no figure.
pub(crate) fn draw(run: &Run<'_>, set: &Set<'_>, id: &str) -> Option<Markup> {
    let mut chart = Chart::new(run, set, id)?;
    chart.frame(set);
    let mut y = chart.plot.y;
    let mut described = Vec::new();
    for point in &set.points {
        let name = set.name_of(point);
        let label = shortened(&name, POINT_NAMES - 8.0);
        chart
            .svg
            .text("label strong", (0.0, y + 17.0), Anchor::Start, &label);
        for cell in &point.cells {
            described.push(format!("{name}, {}: {}", cell.dut, words(cell)));
            chart.row(cell, y);
            y += ROW;
        }
        y += GROUP_GAP;
    }
    let description = format!("{}.", described.join("; "));
    Some(
        chart
            .svg
            .finish("UDP payload offered, received and lost", &description),
    )
}

impl<'r, 'a> Chart<'r, 'a> {
    fn new(run: &'r Run<'a>, set: &Set<'_>, id: &'r str) -> Option<Self> {
        let cells = || set.points.iter().flat_map(|point| &point.cells);
        let bulks: Vec<&Bulk> = cells().filter_map(|cell| cell.bulk()).collect();
        bulks.first()?;
        let most = |bulk: &&Bulk| {
            bulk.offered_payload_bps
                .mean
                .max(bulk.payload_throughput_bps.max)
        };
        let highest = bulks.iter().map(most).fold(0.0, f64::max);
        let gaps = GROUP_GAP * (set.points.len() - 1) as f64;
        let plot = Area {
            x: POINT_NAMES + DUT_NAMES,
            y: LEGEND_HEIGHT,
            width: WIDTH - POINT_NAMES - DUT_NAMES - VALUES,
            height: ROW * cells().count() as f64 + gaps,
        };
        let axis = Linear::si(highest, 6.0, "bit/s");
        Some(Self {
            svg: Svg::new(id, plot.bottom() + 42.0),
            run,
            id,
            plot,
            axis,
        })
    }

    fn frame(&mut self, set: &Set<'_>) {
        let plot = self.plot;
        self.stripes();
        let legend: Vec<(String, String)> = set
            .duts
            .iter()
            .map(|dut| {
                (
                    format!("fill-{}", self.run.color(dut)),
                    format!("{dut}: received"),
                )
            })
            .collect();
        let entries: Vec<(String, &str)> = legend
            .iter()
            .map(|(class, name)| (class.clone(), name.as_str()))
            .collect();
        let end = self.svg.legend(&entries);
        self.striped(
            Area {
                x: end,
                y: 4.0,
                width: 14.0,
                height: 11.0,
            },
            "",
        );
        self.svg.text(
            "label",
            (end + 20.0, 14.0),
            Anchor::Start,
            "offered, but lost",
        );
        self.svg.x_axis(plot, &self.axis);
        let middle = plot.x + plot.width / 2.0;
        self.svg.text(
            "tick",
            (middle, plot.bottom() + 34.0),
            Anchor::Middle,
            self.axis.unit(),
        );
    }

    /// Stripes mean lost: they are told from solid colour in any palette and in print.
    fn stripes(&mut self) {
        self.svg.body.push_str(&format!(
            "<defs><pattern id=\"{}-lost\" width=\"6\" height=\"6\" \
             patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect \
             class=\"lost-ground\" width=\"6\" height=\"6\"/><line class=\"lost-stripe\" x1=\"0\" \
             y1=\"0\" x2=\"0\" y2=\"6\"/></pattern></defs>",
            self.id
        ));
    }

    fn striped(&mut self, area: Area, tooltip: &str) {
        let values = [area.x, area.y, area.width.max(0.0), area.height].map(number);
        let fill = format!("url(#{}-lost)", self.id);
        let keys = ["x", "y", "width", "height", "fill"].into_iter();
        let attributes: Vec<(&str, &str)> = keys
            .zip(values.iter().map(String::as_str).chain([fill.as_str()]))
            .collect();
        self.svg.element("rect", "lost", &attributes, tooltip);
    }

    fn row(&mut self, cell: &CellResult, y: f64) {
        let plot = self.plot;
        let name = shortened_name(&cell.dut, DUT_NAMES - 14.0);
        self.svg
            .text("label", (plot.x - 8.0, y + 18.0), Anchor::End, &name);
        match cell.bulk() {
            Some(bulk) => {
                let area = Area {
                    y: y + (ROW - BAR) / 2.0,
                    height: BAR,
                    ..plot
                };
                self.bar(cell, bulk, area);
            }
            None => {
                let text = shortened(&words(cell), plot.width + VALUES - 8.0);
                self.svg
                    .text("reason", (plot.x + 6.0, y + 18.0), Anchor::Start, &text);
            }
        }
    }

    fn bar(&mut self, cell: &CellResult, bulk: &Bulk, area: Area) {
        let width = |bps: f64| area.width * self.axis.share(bps);
        let (received, offered) = (&bulk.payload_throughput_bps, &bulk.offered_payload_bps);
        let (end, reach) = (
            area.x + width(received.mean),
            width(received.largest_distance),
        );
        let lost = Area {
            x: end,
            width: width(offered.mean - received.mean),
            ..area
        };
        let text = words(cell);
        let tooltip = format!("{}: {text}", cell.id);
        let class = format!("fill-{}", self.run.color(&cell.dut));
        self.svg.rect(
            &class,
            Area {
                width: width(received.mean),
                ..area
            },
            &tooltip,
        );
        if lost.width > 0.05 {
            self.striped(lost, &tooltip);
        }
        let middle = area.y + area.height / 2.0;
        self.svg.side_whisker((end, middle), reach);
        let after = lost.right().max(end + reach) + 8.0;
        self.svg
            .text("value", (after, middle + 4.5), Anchor::Start, &text);
    }
}

/// `2.68 of 4.69 Gbit/s, 42.9 % lost`.
fn words(cell: &CellResult) -> String {
    let Some(bulk) = cell.bulk() else {
        return reason_cell(cell).text;
    };
    let scale = Scale::si(bulk.offered_payload_bps.mean, "bit/s");
    let received = scale.number(bulk.payload_throughput_bps.mean);
    let rates = format!(
        "{received} of {}",
        scale.value(bulk.offered_payload_bps.mean)
    );
    match &bulk.datagrams {
        Some(datagrams) if datagrams.lost == 0 => format!("{rates}, none lost"),
        Some(datagrams) => format!(
            "{rates}, {} lost",
            percent(100.0 * datagrams.loss_ratio.mean)
        ),
        None => rates,
    }
}
