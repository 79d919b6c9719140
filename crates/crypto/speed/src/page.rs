//! The tables with charts, as a page.

use crate::chart::Chart;
use maud::{DOCTYPE, Markup, PreEscaped, html};

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

/// The page: charts below its `origin`, then the tables.
pub(crate) fn write(origin: &Markup, charts: &[Chart], tables: &str) -> String {
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
                p { (origin) }
                @for chart in charts { (chart.draw()) }
                pre { (tables) }
            }
        }
    };
    page.into_string()
}
