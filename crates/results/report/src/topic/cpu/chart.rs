//! CPU time by role as stacked bars, next to payload bits per CPU-second.

use crate::kit::cells::reason_cell;
use crate::kit::chart::rows::Rows;
use crate::kit::chart::scale::{Axis, Linear};
use crate::kit::chart::{Anchor, Area, Key, LEGEND_HEIGHT, Spot, Svg, WIDTH, hover, shortened};
use crate::kit::format::{Scale, bits_per_cpu_s, si};
use crate::layout::{Run, Set};
use crate::order::largest;
use maud::Markup;
use stats::{CellResult, CpuResult, Estimate};

const BAR: f64 = 15.0;
const ROWS: Rows = Rows {
    height: 21.0,
    gap: 10.0,
    point_names: 150.0,
    dut_names: 140.0,
    baselines: [15.0, 15.0],
};

/// Widths of the bars and values of the right half.
const EFFICIENCY: f64 = 300.0;
const VALUES: f64 = 78.0;
/// Gap between the halves, for the sums of the left half.
const GUTTER: f64 = 64.0;

/// A role: its class, its name, and its share of the cores. The device has no class, as it is drawn
/// in its own colour.
type Role = (
    Option<&'static str>,
    &'static str,
    fn(&CpuResult) -> Option<&Estimate>,
);

const ROLES: [Role; 4] = [
    (Some("role-a"), "station A", |cpu| {
        Some(&cpu.station_a_cores)
    }),
    (Some("role-b"), "station B", |cpu| {
        Some(&cpu.station_b_cores)
    }),
    (None, "device", |cpu| cpu.dut_cores.as_ref()),
    (Some("role-kernel"), "kernel and the rest", |cpu| {
        Some(&cpu.kernel_cores)
    }),
];

struct Chart<'r, 'a> {
    run: &'r Run<'a>,
    rows: Rows,
    left: Area,
    right: Area,
    cores: Linear,
    /// Payload bits per CPU-second, if there is a payload.
    bits: Option<Linear>,
}

/// The chart of a set; `None` without a figure.
pub(super) fn draw(run: &Run<'_>, set: &Set<'_>, id: &str) -> Option<Markup> {
    let chart = Chart::new(run, set)?;
    let mut svg = Svg::new(id);
    chart.frame(&mut svg, set);
    let row = |svg: &mut Svg, cell: &CellResult, name: &str, y: f64| chart.row(svg, cell, name, y);
    let described = chart.rows.draw(&mut svg, set, chart.left.y, row);
    let title = format!(
        "CPU by role and payload per CPU-second, {}",
        set.protocol.name()
    );
    Some(svg.finish(&title, &described))
}

impl<'r, 'a> Chart<'r, 'a> {
    fn new(run: &'r Run<'a>, set: &Set<'_>) -> Option<Self> {
        let cells = || set.points.iter().flat_map(|point| &point.cells);
        let cpus: Vec<&CpuResult> = cells().filter_map(|cell| cell.cpu.as_ref()).collect();
        cpus.first()?;
        let busiest = largest(cpus.iter().map(|cpu| cpu.busy_cores.mean));
        let best = largest(cpus.iter().filter_map(|cpu| {
            let found = cpu.payload_bits_per_cpu_s.as_ref()?;
            Some(found.max)
        }));
        let rows = ROWS.fitted(set);
        let width = WIDTH - rows.names() - GUTTER - EFFICIENCY;
        let top = LEGEND_HEIGHT + 22.0;
        let left = Area::new(rows.names(), top, width, rows.total_height(set));
        Some(Self {
            run,
            rows,
            left,
            right: Area {
                x: left.right() + GUTTER,
                width: EFFICIENCY - VALUES,
                ..left
            },
            cores: Linear::new(busiest, 5.0, Scale::plain()),
            // Without a payload, as for ping, there is no right half.
            bits: (best > 0.0).then(|| Linear::si(best, 4.0, "bit")),
        })
    }

    /// Legend, axes, and a mark at the machine's number of cores.
    fn frame(&self, svg: &mut Svg, set: &Set<'_>) {
        let (left, right) = (self.left, self.right);
        // One entry for all devices, in the colour of the first.
        let first = set.devices().next().map(|dut| self.run.color(dut));
        let device = match set.devices().count() {
            1 => "device",
            _ => "device, in its own colour",
        };
        let entry = |(class, name, _): &Role| match class {
            Some(class) => Some((Key::Swatch(class), *name)),
            None => Some((Key::Style(first?), device)),
        };
        svg.legend(ROLES.iter().filter_map(entry));
        svg.x_axis(left, &self.cores);
        let position = (left.x, left.y - 9.0);
        svg.text("tick", position, Anchor::Start, "cores kept busy");
        if let Some(cpus) = self.run.measuring_cpus() {
            let share = self.cores.share(cpus.into());
            // The axis ends at the busiest cell, and most runs do not use all cores.
            if share <= 1.0 + 1e-9 {
                let x = left.x_at(share);
                svg.line("limit", (x, left.y - 4.0), (x, left.bottom()));
                let text = format!("the machine's {cpus}");
                let y = left.y - 9.0;
                let spots = [Spot::end((x, y)), Spot::start((x, y))];
                svg.label("tick", spots.to_vec(), &text);
            }
        }
        if let Some(bits) = &self.bits {
            svg.x_axis(right, bits);
            let text = format!("payload per CPU-second, {}", bits.unit());
            svg.text("tick", (right.x, right.y - 9.0), Anchor::Start, &text);
        }
    }

    /// Draws a row and returns its description.
    fn row(&self, svg: &mut Svg, cell: &CellResult, name: &str, y: f64) -> String {
        let (left, right) = (self.left, self.right);
        let Some(cpu) = &cell.cpu else {
            let reason = reason_cell(cell).text;
            let shown = shortened("reason", &reason, left.width - 6.0);
            let spot = Spot::start((left.x + 6.0, y + 15.0));
            svg.label("reason", vec![spot], &shown);
            return reason;
        };
        let top = y + (ROWS.height - BAR) / 2.0;
        self.roles(svg, cell, cpu, name, left.bar(top, left.width, BAR));
        if let Some(found) = &cpu.payload_bits_per_cpu_s {
            let bar = right.bar(top, right.width, BAR);
            self.efficiency(svg, cell, found, name, bar);
        }
        words(cpu)
    }

    fn roles(&self, svg: &mut Svg, cell: &CellResult, cpu: &CpuResult, point: &str, area: Area) {
        let own = self.run.color(&cell.dut);
        let cores = Scale::of("cores");
        // The parts are stacked, so each begins at the end of the one before.
        let mut x = area.x;
        for (class, name, of) in ROLES {
            // The time of a device on other machines is unknown, so it has no part here.
            let Some(found) = of(cpu) else {
                continue;
            };
            let width = area.width * self.cores.share(found.mean);
            // `number` would round narrower parts to a width of 0.
            if width >= 0.05 {
                let tooltip = hover(&cell.dut, &format!("{point}, {name}"), &cores, found);
                let part = Area { x, width, ..area };
                match class {
                    Some(class) => svg.rect(&format!("role {class}"), part, &tooltip),
                    None => svg.bar(own, part, &tooltip),
                }
            }
            x += width;
        }
        let sum = format!("{:.2}", cpu.busy_cores.mean);
        let position = (area.right() + 8.0, area.bottom() - 3.0);
        svg.text("value", position, Anchor::Start, &sum);
    }

    fn efficiency(
        &self,
        svg: &mut Svg,
        cell: &CellResult,
        found: &Estimate,
        point: &str,
        area: Area,
    ) {
        let Some(bits) = &self.bits else { return };
        let width = |value: f64| area.width * bits.share(value);
        let bar = area.bar(area.y, width(found.mean), area.height);
        let scale = Scale::si(found.mean, "bit/CPU-s");
        let tooltip = hover(&cell.dut, point, &scale, found);
        svg.bar(self.run.color(&cell.dut), bar, &tooltip);
        let [low, high] = [found.min, found.max].map(|repeat| area.x + width(repeat));
        svg.side_whisker(low, high, bar.y + bar.height / 2.0);
        let value = si(found.mean, "bit");
        let spots = Spot::rightward((high + 7.0, bar.bottom() - 3.0));
        svg.label("value", spots, &value);
    }
}

fn words(cpu: &CpuResult) -> String {
    let mut parts: Vec<String> = ROLES
        .iter()
        .map(|(_, name, of)| match of(cpu) {
            Some(cores) => format!("{name} {:.2}", cores.mean),
            None => format!("{name} unknown"),
        })
        .collect();
    // Without a payload, as for ping, there is no efficiency.
    parts.extend(cpu.payload_bits_per_cpu_s.as_ref().map(bits_per_cpu_s));
    parts.join(", ")
}
