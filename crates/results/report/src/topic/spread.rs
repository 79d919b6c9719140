//! The spread of the repeats.

use crate::kit::cells::interval;
use crate::kit::format::Scale;
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use stats::{CellResult, Estimate, TwoBands};

pub(super) const SECTION: Section =
    Section::annex("spread", "Spread of the repeats", |run, out| {
        out.tables(spread(run));
    })
    .named("Spread")
    .in_chapter("Spread");

/// Mean, median, deviation and interval of every cell's figure; `None` without figures.
fn spread(run: &Run<'_>) -> Option<Table> {
    let note = "how much each cell's main figure varies; main figure: payload throughput of TCP and UDP, \
                median round trip, lower bound of the first goal or highest forwarding rate of \
                frames, longest burst; mean ± largest distance from it; repeat deviation: sample standard deviation of the repeats; interval: 95 %, Student's t on logarithms";
    let figures: Vec<(&CellResult, &Estimate, Unit)> = run
        .results
        .cells
        .iter()
        .filter_map(|cell| figure(cell).map(|(found, unit)| (cell, found, unit)))
        .collect();
    figures.first()?;
    // Most runs have none, and an empty column would make the table wider.
    let has_bands = figures.iter().any(|(_, figure, _)| figure.bands.is_some());
    let mut table = Table::new("Spread of the repeats", note)
        .labels(["Cell"])
        .figures(["Mean", "Median", "Repeat deviation", "95 % interval"])
        .texts(has_bands.then_some("Two bands"));
    for (cell, figure, unit) in figures {
        let scale = unit(figure.mean);
        let deviation = figure.standard_deviation;
        let mut cells = vec![
            Cell::label(&cell.id),
            Cell::plain(scale.estimate(figure)),
            Cell::plain(scale.value(figure.median)),
            // A deviation may be far smaller than the mean, so its unit follows from its size.
            Cell::or_missing(deviation.map(|found| unit(found).value(found))),
            interval(figure, &scale),
        ];
        if has_bands {
            cells.push(Cell::or_missing(
                figure.bands.map(|found| bands(&found, &scale)),
            ));
        }
        table.push(cells);
    }
    Some(table)
}

/// Returns the scale of a figure's values.
type Unit = fn(f64) -> Scale;

fn figure(cell: &CellResult) -> Option<(&Estimate, Unit)> {
    let with = |found, unit: Unit| Some((found, unit));
    if let Some(found) = cell.throughput_bps() {
        return with(found, |bps| Scale::si(bps, "bit/s"));
    }
    // Bursts precede the frame rate, which a test of bursts may have as well.
    if let Some(found) = cell.frames().and_then(|found| found.back_to_back()) {
        return with(&found.burst_frames, |_| Scale::of("frames"));
    }
    if let Some(found) = cell.frame_rate() {
        return with(found, |rate| Scale::si(rate, "pps"));
    }
    with(&cell.latency()?.p50_ns, Scale::time)
}

/// `2 of 416–418 kpps, 3 of 483–485 kpps`.
fn bands(found: &TwoBands, scale: &Scale) -> String {
    let bands = [found.low, found.high].map(|band| {
        format!(
            "{} of {}–{}",
            band.n,
            scale.number(band.min),
            scale.value(band.max)
        )
    });
    bands.join(", ")
}
