//! Throughput by cores, workers, tunnels or flows.

mod chart;

use crate::kit::cells::{FORMAT, reason_cell};
use crate::kit::format::{Scale, capitalized, ratio_number};
use crate::kit::section::{Blocks, Section};
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::order::grouped;
use stats::{Fit, Law, POOR_FIT_PERCENT, Ratio, Scaling, ScalingAxis, ScalingUnit};

/// Minimum points for a series that shows more than a ratio.
const CURVE_POINTS: usize = 3;
pub(super) const SECTION: Section = Section::result("scaling", "Scaling", |run, out| {
    if run.results.scalings.iter().any(is_curve) {
        blocks(run, out);
    }
})
.not_brief();

/// Series too short to answer anything; their figures are in other tables, too.
pub(super) const OF_TWO: Section =
    Section::result("scaling-of-two", "Scaling (two points)", |run, out| {
        if !run.results.scalings.iter().any(is_curve) {
            blocks(run, out);
        }
    })
    .beside();

/// Whether a series is long enough to show the end of scaling.
fn is_curve(series: &Scaling) -> bool {
    series.points.len() >= CURVE_POINTS
}

fn blocks(run: &Run<'_>, out: &mut Blocks) {
    let found = &run.results.scalings;
    if found.is_empty() {
        return;
    }
    out.table(verdicts(found, out.is_short()));
    if out.is_short() {
        return;
    }
    for (index, all) in measurements(run).into_iter().enumerate() {
        let (axis, series) = (all[0].axis, &all[0].series);
        out.chart(
            format!("By {}: {series}", axis.name()),
            how_to_read(run, axis),
            || chart::draw(run, &all, &format!("scaling-{index}")),
        );
        out.table(figures(run, &all));
    }
}

fn how_to_read(run: &Run<'_>, axis: ScalingAxis) -> String {
    let lines = if axis.adds() {
        "Dotted: linear scaling. Line: the fitted law, if one describes the points. Dashed: \
         scaling stops."
    } else {
        "Dotted: no loss. Dashed: the figure falls."
    };
    format!("Dots: mean of the repeats. {} {lines}", run.whiskers())
}

/// The series of several devices for each measurement, in order; no group is empty.
fn measurements<'r>(run: &'r Run<'_>) -> Vec<Vec<&'r Scaling>> {
    let all = run.results.scalings.iter();
    // Devices of one measurement share a chart, so that their curves can be compared.
    let groups = grouped(all.map(|series| ((series.axis, &series.series), series)));
    groups.into_iter().map(|(_, own)| own).collect()
}

/// The scale of a series' figures.
fn scale(series: &Scaling) -> Scale {
    let means = series
        .points
        .iter()
        .filter_map(|point| Some(point.figure.as_ref()?.mean));
    let most = means.fold(0.0, f64::max);
    match series.unit {
        ScalingUnit::PayloadBps => Scale::si(most, "bit/s"),
        ScalingUnit::FramesPerS => Scale::si(most, "pps"),
    }
}

/// One row for the verdict on each series, and one for each law.
fn verdicts(found: &[Scaling], short: bool) -> Table {
    let note = "does more still help, and until where; stops scaling at n: the smallest n that no larger one surely exceeds, by more than \
                2 %, if the repeats exclude a gain of more than 10 % past it (Student's t on logarithms of paired repeats, \
                5 % over all pairs of this axis, Holm); X(n) = λ n / (1 + α (n − 1) + β n (n − 1)): α is the serial share, β the cost of each pair, \
                and by Amdahl's law β = 0; fitted to relative errors; residual: of the farthest point";
    let mut note = if short {
        String::new()
    } else {
        note.to_owned()
    };
    // A reason shared by all series is stated once.
    let shared = shared_reason(found);
    if let Some(why) = shared.filter(|_| !short) {
        note.push_str(&format!("; no law is fitted: {why}"));
    }
    let has_laws = !short && shared.is_none();
    let mut table = Table::new("Scaling: its end", note)
        .labels(["Measurement", "Device"])
        .labels(has_laws.then_some("By"))
        .texts(["Verdict"]);
    for series in found {
        let mut row = |by: &str, what: Cell| {
            let mut cells = vec![
                Cell::label(&series.series),
                Cell::label(series.dut.as_str()),
            ];
            if has_laws {
                cells.push(Cell::label(by));
            }
            cells.push(what);
            table.push(cells);
        };
        let axis = series.axis.name();
        let verdict = if series.axis.adds() {
            series.verdict.clone()
        } else {
            format!("{axis}: {}", series.verdict)
        };
        row("figures", Cell::plain(verdict));
        if !has_laws {
            continue;
        }
        for fit in &series.fits {
            let text = format!("{axis}: {}", law(series, fit));
            row(law_name(fit.law), Cell::plain(text));
        }
        if let Some(why) = &series.no_fit {
            let why = Cell::absent(format!("{axis}: not fitted: {why}"));
            row("laws", why);
        }
    }
    table
}

/// Why no series has a law, if all have the same reason.
fn shared_reason(found: &[Scaling]) -> Option<&str> {
    let (first, others) = found.split_first()?;
    let is_same = |series: &Scaling| series.no_fit == first.no_fit;
    let why = first.no_fit.as_deref()?;
    (!others.is_empty() && others.iter().all(is_same)).then_some(why)
}

/// The name for readers.
const fn law_name(law: Law) -> &'static str {
    match law {
        Law::Amdahl => "Amdahl's law",
        Law::Usl => "Universal Scalability Law",
    }
}

/// A law with its parameters, its limit, and its residual.
fn law(series: &Scaling, fit: &Fit) -> String {
    let scale = scale(series);
    let mut text = format!("λ {}, α {:.4}", scale.value(fit.lambda), fit.alpha);
    if fit.law == Law::Usl {
        text.push_str(&format!(", β {:.6}", fit.beta));
    }
    // A curve that does not fit the points has no meaningful limit.
    if fit.describes {
        text.push_str(&end(series, fit));
    }
    text.push_str(&format!("; residual {:.1} %", fit.largest_residual_percent));
    if !fit.describes {
        let why = if fit.alpha > 1.0 {
            "; the serial share would exceed 1".to_owned()
        } else {
            format!(", more than {POOR_FIT_PERCENT} %")
        };
        text.push_str(&format!("{why}: it does not describe the points"));
    }
    text
}

/// The limit of the curve, marked as an extrapolation if it is beyond the measured points.
fn end(series: &Scaling, fit: &Fit) -> String {
    let scale = scale(series);
    let measured = series.points.iter().filter(|point| point.figure.is_some());
    let most = measured.map(|point| point.n).max().unwrap_or(0);
    match (fit.peak_n, fit.limit) {
        // A peak within the measured numbers is no extrapolation.
        (Some(peak), Some(limit)) if peak <= f64::from(most) => {
            format!("; by the curve at most {} at {peak:.1}", scale.value(limit))
        }
        (peak, Some(limit)) => {
            let at = peak.map_or_else(String::new, |peak| format!(" at {peak:.0}"));
            format!(
                "; extrapolated past {most}, where nothing was measured, the curve ends at {}{at}",
                scale.value(limit)
            )
        }
        (_, None) => "; without a limit".into(),
    }
}

/// Each number of one measurement's series.
fn figures(run: &Run<'_>, all: &[&Scaling]) -> Table {
    let (axis, measurement) = all.first().map_or((ScalingAxis::Workers, ""), |first| {
        (first.axis, first.series.as_str())
    });
    let last = if axis.adds() {
        "efficiency: speed-up divided by the increase in number"
    } else {
        "kept: share of the figure with fewest"
    };
    let note = format!(
        "{FORMAT}; speed-up against the fewest, paired by repeat, with its 95 % interval (Student's t on logarithms); {last}; busy: cores that the \
         device's processes keep busy; idle: cores of the machine that are idle"
    );
    let mut table = Table::new(format!("By {}: {measurement}", axis.name()), note)
        .labels(["Device"])
        .labels([capitalized(axis.name())])
        .figures(["Throughput"]);
    // More tunnels only add cost, so they have no speed-up.
    table = if axis.adds() {
        table.figures(["Speed-up", "Efficiency"])
    } else {
        table.figures(["Kept"])
    };
    table = table.figures(["Busy", "Idle"]);
    for series in all {
        let scale = scale(series);
        for point in &series.points {
            let mut row = vec![
                Cell::label(series.dut.as_str()),
                Cell::label(point.n.to_string()),
            ];
            row.push(match (&point.figure, run.cell(&point.cell)) {
                (Some(figure), _) => Cell::plain(scale.estimate(figure)),
                (None, Some(cell)) => reason_cell(cell),
                (None, None) => Cell::missing(),
            });
            row.push(range(point.speedup));
            if axis.adds() {
                row.push(range(point.efficiency));
            }
            let cores =
                |found: Option<f64>| Cell::or_missing(found.map(|found| format!("{found:.2}")));
            row.extend([cores(point.dut_cores), cores(point.idle_cores)]);
            table.push(row);
        }
    }
    table
}

/// `1.92 (1.88–1.95)`.
fn range(found: Option<Ratio>) -> Cell {
    let Some(found) = found else {
        return Cell::missing();
    };
    let ratio = ratio_number(found.ratio);
    Cell::derived(match (found.low, found.high) {
        // The ratio of the fewest to themselves has no width.
        (Some(low), Some(high)) if low < high => {
            format!("{ratio} ({}–{})", ratio_number(low), ratio_number(high))
        }
        _ => ratio,
    })
}

/// One sentence for all series of one measurement with the same verdict.
pub(crate) fn findings(run: &Run<'_>) -> impl Iterator<Item = String> {
    let curves = run.results.scalings.iter().filter(|one| is_curve(one));
    let all = curves.map(|series| {
        let key = (series.axis, &series.series, &series.verdict);
        (key, series.dut.as_str())
    });
    grouped(all)
        .into_iter()
        .map(|((axis, series, verdict), duts)| {
            let by = if axis.adds() {
                String::new()
            } else {
                format!("{}: ", axis.name())
            };
            format!("{}, {series}: {by}{verdict}.", duts.join(", "))
        })
}
