//! `speed.html`: the tables with charts.

use super::chart::{Chart, Series};
use super::curves::SuiteCurves;
use super::insecure::{engine_name, suite_name};
use super::rates::Figure;
use super::{Measured, tables};
use dispatch::Direction;
use maud::{DOCTYPE, PreEscaped, html};

/// Supports light and dark mode; the colours are distinguishable for colour-blind people (Okabe and
/// Ito).
const STYLE: &str = "\
:root { color-scheme: light dark; --ink: #222; --muted: #667; --grid: #ddd; --paper: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ddd; --muted: #99a; --grid: #333; --paper: #181818; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
pre { overflow-x: auto; font-size: 13px; }
figure { margin: 1.5rem 0; }
figcaption { font-weight: 600; }
svg { width: 100%; height: auto; font-size: 12px; }
.tick { fill: var(--muted); }
.grid { stroke: var(--grid); }
.mark { stroke: var(--ink); stroke-dasharray: 4 3; }
.line { fill: none; stroke-width: 2; }
.s0 { --c: #0072b2; } .s1 { --c: #d55e00; } .s2 { --c: #009e73; } .s3 { --c: #cc79a7; }
.s4 { --c: #e69f00; } .s5 { --c: #56b4e9; }
.line { stroke: var(--c); } .dot { fill: var(--c); } .name { fill: var(--c); font-weight: 600; }
";

pub(super) fn write(measured: &Measured) -> String {
    let rates = measured.figures.chunk_by(|a, b| a.suite == b.suite);
    let charts = rates
        .flat_map(|figures| Direction::ALL.map(|direction| of_rates(figures, direction)))
        .chain(measured.curves.iter().flat_map(SuiteCurves::charts));
    let charts: Vec<_> = charts.filter(|chart| !chart.series.is_empty()).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { "Speed of crypto engines" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Speed of crypto engines" }
                p { (measured.cpu) ", cipherbench " (measured.version) ": " code { (measured.command) } }
                @for chart in &charts { (chart.draw()) }
                pre { (tables(measured)) }
            }
        }
    };
    page.into_string()
}

/// Rates of one suite on one core.
fn of_rates(figures: &[Figure], direction: Direction) -> Chart {
    let alone = figures
        .iter()
        .filter(|it| it.direction == direction && it.is_alone());
    let alone: Vec<_> = alone.collect();
    let series = alone.chunk_by(|a, b| a.engine == b.engine).map(|figures| {
        let point = |it: &&Figure| (f64::from(it.inner_bytes), it.rate_bps_best / 1e9);
        let mut points: Vec<_> = figures.iter().map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Series {
            name: engine_name(&figures[0].engine),
            dots: points.clone(),
            points,
        }
    });
    Chart {
        title: format!("{}, {}", suite_name(figures[0].suite), direction.name()),
        unit: "Gbit/s of inner packets, one core",
        series: series.collect(),
        marks: Vec::new(),
    }
}
