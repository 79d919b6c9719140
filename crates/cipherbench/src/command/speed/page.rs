//! `speed.html`: the tables, and charts of them.

use super::chart::{Chart, Series};
use super::curves::SuiteCurves;
use super::rates::Figure;
use super::{Measured, text};
use dispatch::{Direction, Load};
use maud::{DOCTYPE, PreEscaped, html};
use wire::overhead::esp_bytes;

/// Follows light and dark; colours that the colour-blind tell apart (Okabe and Ito).
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
        .chain(
            measured
                .curves
                .iter()
                .flat_map(|curves| Direction::ALL.map(|direction| of_curves(curves, direction))),
        );
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
                pre { (text(measured)) }
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
            name: figures[0].engine.clone(),
            dots: points.clone(),
            points,
        }
    });
    Chart {
        title: format!("{}, {}", figures[0].suite, direction.name()),
        unit: "Gbit/s of inner packets, one core",
        series: series.collect(),
        marks: Vec::new(),
    }
}

/// Curves of one suite: lines are what is predicted, dots what was measured.
fn of_curves(curves: &SuiteCurves, direction: Direction) -> Chart {
    const BATCH: u64 = 32;
    let packets = match direction {
        Direction::SealFrom => 1,
        Direction::Seal | Direction::Open => BATCH,
    };
    let series = curves.engines.iter().map(|engine| {
        let fit = engine.of(direction);
        let ns = |ps: u64| ps as f64 / 1e3 / packets as f64;
        // Fine steps: a straight line is a bend where both axes are logarithms.
        let lengths = (0..=56).map(|step| (64.0 * (f64::from(step) / 8.0).exp2()) as usize);
        let point = |inner_bytes: usize| {
            let load = Load::uniform(packets, esp_bytes(curves.suite, inner_bytes) as u64);
            (inner_bytes as f64, ns(fit.curve.predict_ps(load)))
        };
        let overhead = (esp_bytes(curves.suite, 64) - 64) as f64;
        let measured = fit
            .points
            .iter()
            .filter(|point| point.load.packets == packets);
        Series {
            name: engine.engine.clone(),
            points: lengths.map(point).collect(),
            dots: measured
                .map(|it| (it.load.longest_bytes as f64 - overhead, ns(it.measured_ps)))
                .collect(),
        }
    });
    Chart {
        title: match direction {
            Direction::SealFrom => format!("{}, seal-from", curves.suite),
            _ => format!(
                "{}, {} in batches of {BATCH}",
                curves.suite,
                direction.name()
            ),
        },
        unit: "ns per packet",
        series: series.collect(),
        marks: curves.crossovers(direction),
    }
}
