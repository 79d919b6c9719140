//! Who used the cores, and what came of it: stacked bars by role, and payload bits per CPU-second
//! beside them.

use super::scale::Linear;
use super::{Anchor, Area, LEGEND_HEIGHT, Svg, WIDTH, shortened, shortened_name};
use crate::format::{Scale, bits_per_cpu_s};
use crate::layout::{Run, Set};
use crate::tables::reason_cell;
use maud::Markup;
use stats::{CellResult, CpuResult, Estimate};

const BAR: f64 = 15.0;
const ROW: f64 = 21.0;
const GROUP_GAP: f64 = 10.0;
/// Columns of names at the left.
const POINT_NAMES: f64 = 150.0;
const DUT_NAMES: f64 = 140.0;
/// Bars and values of the right half.
const EFFICIENCY: f64 = 300.0;
const VALUES: f64 = 78.0;
/// Between the halves: the sums of the left one stand here.
const GUTTER: f64 = 64.0;

/// A role: its class, its name, and its share of the cores. The device has its own colour, so no
/// class.
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
    svg: Svg,
    run: &'r Run<'a>,
    left: Area,
    right: Area,
    cores: Linear,
    /// Payload bits per CPU-second, where there is a payload.
    bits: Option<Linear>,
}

/// The chart of a set; `None` when it has no figure.
pub(crate) fn draw(run: &Run<'_>, set: &Set<'_>, id: &str) -> Option<Markup> {
    let mut chart = Chart::new(run, set, id)?;
    chart.frame(set);
    let mut described = Vec::new();
    let mut y = chart.left.y;
    for point in &set.points {
        let name = set.name_of(point);
        let label = shortened(&name, POINT_NAMES - 8.0);
        chart
            .svg
            .text("label strong", (0.0, y + 15.0), Anchor::Start, &label);
        for cell in &point.cells {
            chart.row(cell, y);
            described.push(format!("{name}, {}: {}", cell.dut, words(cell)));
            y += ROW;
        }
        y += GROUP_GAP;
    }
    let title = format!(
        "CPU by role and payload per CPU-second, {}",
        set.protocol.name()
    );
    Some(
        chart
            .svg
            .finish(&title, &format!("{}.", described.join("; "))),
    )
}

impl<'r, 'a> Chart<'r, 'a> {
    fn new(run: &'r Run<'a>, set: &Set<'_>, id: &str) -> Option<Self> {
        let cells = || set.points.iter().flat_map(|point| &point.cells);
        let cpus: Vec<&CpuResult> = cells().filter_map(|cell| cell.cpu.as_ref()).collect();
        cpus.first()?;
        let busiest = cpus
            .iter()
            .map(|cpu| cpu.busy_cores.mean)
            .fold(0.0, f64::max);
        let efficiencies = cpus
            .iter()
            .filter_map(|cpu| cpu.payload_bits_per_cpu_s.as_ref());
        let best = efficiencies
            .map(|found| found.mean + found.largest_distance)
            .fold(0.0, f64::max);
        let gaps = GROUP_GAP * (set.points.len() - 1) as f64;
        let left = Area {
            x: POINT_NAMES + DUT_NAMES,
            y: LEGEND_HEIGHT + 22.0,
            width: WIDTH - POINT_NAMES - DUT_NAMES - GUTTER - EFFICIENCY,
            height: ROW * cells().count() as f64 + gaps,
        };
        Some(Self {
            svg: Svg::new(id, left.bottom() + 26.0),
            run,
            left,
            right: Area {
                x: left.right() + GUTTER,
                width: EFFICIENCY - VALUES,
                ..left
            },
            cores: Linear::new(busiest, 5.0, Scale::plain()),
            bits: (best > 0.0).then(|| Linear::si(best, 4.0, "bit")),
        })
    }

    /// Legend, axes, and a mark where the machine has no more cores.
    fn frame(&mut self, set: &Set<'_>) {
        let (left, right) = (self.left, self.right);
        let device = set
            .devices()
            .next()
            .map(|dut| format!("fill-{}", self.run.color(dut)));
        let legend: Vec<(String, &str)> = ROLES
            .iter()
            .filter_map(|(class, name, _)| {
                Some((class.map(str::to_owned).or_else(|| device.clone())?, *name))
            })
            .collect();
        self.svg.legend(&legend);
        self.svg.x_axis(left, &self.cores);
        self.svg.text(
            "tick",
            (left.x, left.y - 9.0),
            Anchor::Start,
            "cores kept busy",
        );
        if let Some(cpus) = self.run.cpus() {
            let share = self.cores.share(cpus.into());
            if share <= 1.0 + 1e-9 {
                let x = left.x + left.width * share;
                self.svg
                    .line("limit", (x, left.y - 4.0), (x, left.bottom()));
                let text = format!("the machine's {cpus}");
                self.svg.text("tick", (x, left.y - 9.0), Anchor::End, &text);
            }
        }
        if let Some(bits) = &self.bits {
            self.svg.x_axis(right, bits);
            let text = format!("payload per CPU-second, {}", bits.unit());
            self.svg
                .text("tick", (right.x, right.y - 9.0), Anchor::Start, &text);
        }
    }

    fn row(&mut self, cell: &CellResult, y: f64) {
        let name = shortened_name(&cell.dut, DUT_NAMES - 14.0);
        self.svg
            .text("label", (self.left.x - 8.0, y + 15.0), Anchor::End, &name);
        let top = y + (ROW - BAR) / 2.0;
        let Some(cpu) = &cell.cpu else {
            let reason = shortened(&reason_cell(cell).text, self.left.width - 6.0);
            self.svg.text(
                "reason",
                (self.left.x + 6.0, y + 15.0),
                Anchor::Start,
                &reason,
            );
            return;
        };
        self.roles(
            cell,
            cpu,
            Area {
                y: top,
                height: BAR,
                ..self.left
            },
        );
        if let Some(found) = &cpu.payload_bits_per_cpu_s {
            self.efficiency(
                cell,
                found,
                Area {
                    y: top,
                    height: BAR,
                    ..self.right
                },
            );
        }
    }

    fn roles(&mut self, cell: &CellResult, cpu: &CpuResult, area: Area) {
        let own = format!("fill-{}", self.run.color(&cell.dut));
        let mut x = area.x;
        for (class, name, of) in ROLES {
            let Some(Estimate { mean, .. }) = of(cpu) else {
                continue;
            };
            let mean = *mean;
            let width = area.width * self.cores.share(mean);
            if width >= 0.05 {
                let class = format!("role {}", class.unwrap_or(&own));
                let tooltip = format!("{}: {name} {mean:.2} cores", cell.id);
                self.svg.rect(&class, Area { x, width, ..area }, &tooltip);
            }
            x += width;
        }
        let sum = format!("{:.2}", cpu.busy_cores.mean);
        self.svg.text(
            "value",
            (area.right() + 8.0, area.bottom() - 3.0),
            Anchor::Start,
            &sum,
        );
    }

    fn efficiency(&mut self, cell: &CellResult, found: &Estimate, area: Area) {
        let Some(bits) = &self.bits else { return };
        let width = |value: f64| area.width * bits.share(value);
        let (end, reach) = (area.x + width(found.mean), width(found.largest_distance));
        let class = format!("fill-{}", self.run.color(&cell.dut));
        let tooltip = format!("{}: {}", cell.id, bits_per_cpu_s(found));
        self.svg.rect(
            &class,
            Area {
                width: width(found.mean),
                ..area
            },
            &tooltip,
        );
        self.svg
            .side_whisker((end, area.y + area.height / 2.0), reach);
        let value = Scale::si(found.mean, "bit").value(found.mean);
        self.svg.text(
            "value",
            (end + reach + 7.0, area.bottom() - 3.0),
            Anchor::Start,
            &value,
        );
    }
}

fn words(cell: &CellResult) -> String {
    let Some(cpu) = &cell.cpu else {
        return reason_cell(cell).text;
    };
    let mut parts: Vec<String> = ROLES
        .iter()
        .map(|(_, name, of)| match of(cpu) {
            Some(cores) => format!("{name} {:.2}", cores.mean),
            None => format!("{name} unknown"),
        })
        .collect();
    parts.extend(cpu.payload_bits_per_cpu_s.as_ref().map(bits_per_cpu_s));
    parts.join(", ")
}
