//! UDP: the offered load, and how much of it arrived.

use crate::kit::cells::reason_cell;
use crate::kit::chart::rows::Rows;
use crate::kit::chart::scale::{Axis, Linear};
use crate::kit::chart::{Area, Key, LEGEND_HEIGHT, Spot, Svg, WIDTH, shortened, with_interval};
use crate::kit::format::{Scale, percent};
use crate::layout::{Run, Set};
use crate::order::largest;
use maud::Markup;
use stats::{Bulk, CellResult};

const BAR: f64 = 20.0;
const ROWS: Rows = Rows {
    height: 27.0,
    gap: 14.0,
    point_names: 130.0,
    dut_names: 140.0,
    baselines: [17.0, 18.0],
};

/// Width of the column of values at the right.
const VALUES: f64 = 230.0;

struct Chart<'r, 'a> {
    run: &'r Run<'a>,
    rows: Rows,
    plot: Area,
    axis: Linear,
}

/// The chart of a set; `None` without a figure.
pub(super) fn draw(run: &Run<'_>, set: &Set<'_>, id: &str) -> Option<Markup> {
    let chart = Chart::new(run, set)?;
    let mut svg = Svg::new(id);
    chart.frame(&mut svg, set);
    let row = |svg: &mut Svg, cell: &CellResult, name: &str, y: f64| chart.row(svg, cell, name, y);
    let described = chart.rows.draw(&mut svg, set, chart.plot.y, row);
    Some(svg.finish("UDP payload offered, received and lost", &described))
}

impl<'r, 'a> Chart<'r, 'a> {
    fn new(run: &'r Run<'a>, set: &Set<'_>) -> Option<Self> {
        let cells = || set.points.iter().flat_map(|point| &point.cells);
        let bulks: Vec<&Bulk> = cells().filter_map(|cell| cell.bulk()).collect();
        bulks.first()?;
        // The offered load is longer than the received one, unless a repeat received more than the
        // mean offered.
        let most = |bulk: &&Bulk| {
            bulk.offered_payload_bps
                .mean
                .max(bulk.payload_throughput_bps.max)
        };
        let highest = largest(bulks.iter().map(most));
        let rows = ROWS.fitted(set);
        let width = WIDTH - rows.names() - VALUES;
        let height = rows.total_height(set);
        Some(Self {
            run,
            rows,
            plot: Area::new(rows.names(), LEGEND_HEIGHT, width, height),
            axis: Linear::si(highest, 6.0, "bit/s"),
        })
    }

    fn frame(&self, svg: &mut Svg, set: &Set<'_>) {
        let entry = |dut: &&str| {
            let key = Key::Style(self.run.color(dut));
            (key, format!("{dut}: received"))
        };
        svg.legend(set.duts.iter().map(entry));
        svg.legend([(Key::Stripes, "offered, but lost")]);
        svg.x_axis(self.plot, &self.axis);
        svg.x_title(self.plot, 34.0, self.axis.unit());
    }

    /// Draws a row and returns its description.
    fn row(&self, svg: &mut Svg, cell: &CellResult, name: &str, y: f64) -> String {
        let plot = self.plot;
        let text = words(cell);
        let Some(bulk) = cell.bulk() else {
            // Without a figure, the reason may take the column of values as well.
            let shown = shortened("reason", &text, plot.width + VALUES - 8.0);
            let spot = Spot::start((plot.x + 6.0, y + 18.0));
            svg.label("reason", vec![spot], &shown);
            return text;
        };
        let width = |bps: f64| plot.width * self.axis.share(bps);
        let (received, offered) = (&bulk.payload_throughput_bps, &bulk.offered_payload_bps);
        let top = y + (ROWS.height - BAR) / 2.0;
        let bar = plot.bar(top, width(received.mean), BAR);
        let scale = Scale::si(received.mean, "bit/s");
        let tooltip = format!(
            "{}, {name}: {text}; received: {}",
            cell.dut,
            with_interval(&scale, received)
        );
        svg.bar(self.run.color(&cell.dut), bar, &tooltip);
        let lost = Area::new(bar.right(), top, width(offered.mean - received.mean), BAR);
        // `number` would round narrower stripes to a width of 0.
        if lost.width > 0.05 {
            svg.stripes(lost, &tooltip);
        }
        let middle = top + BAR / 2.0;
        let [low, high] = [received.min, received.max].map(|repeat| plot.x + width(repeat));
        svg.side_whisker(low, high, middle);
        let after = lost.right().max(high) + 8.0;
        svg.label("value", Spot::rightward((after, middle + 4.5)), &text);
        text
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
