//! A run's figures by cell, for the archive of a fleet.

use fleet::{Figure, LoadHistogram, RunFigures};
use journal::Journal;
use stats::{LoadLatency, Reading, Results};

/// Returns the figures, names and histograms of a run's cells, and its surroundings.
#[must_use]
pub fn figures(journal: &Journal) -> RunFigures {
    let results = Results::of(journal);
    let planned = journal.header.plan.cells.iter();
    let measured = planned.zip(&results.cells).filter_map(|(cell, result)| {
        let figures: Vec<Figure> = result.exported().iter().filter_map(figure).collect();
        // A cell without a figure has no point in its course.
        (!figures.is_empty()).then(|| (cell.id.clone(), figures))
    });
    let planned = journal.header.plan.cells.iter();
    // All planned cells have names: the page of a running job also names cells that gave no figure.
    let names = planned.map(|cell| {
        let measured = plan::text::in_words(cell);
        // A device that protects nothing says so on every page.
        let mark = match cell.dut.adapter.insecure() {
            Some(_) => " (insecure)",
            None => "",
        };
        let dut = &cell.dut.name;
        (cell.id.clone(), format!("{dut}{mark}: {measured}"))
    });
    let planned = journal.header.plan.cells.iter();
    let histograms = planned.zip(&results.cells).filter_map(|(cell, result)| {
        let loads = result.frames().map_or(&[][..], |frames| &frames.latency);
        let histogram = |load: &LoadLatency| {
            Some(LoadHistogram {
                // Only loads that are shares of the throughput are the same load in several runs.
                load_percent: load.percent?,
                buckets: load.histogram.clone(),
            })
        };
        let found: Vec<LoadHistogram> = loads.iter().filter_map(histogram).collect();
        (!found.is_empty()).then(|| (cell.id.clone(), found))
    });
    RunFigures {
        surroundings: compare::surroundings(journal),
        cells: measured.collect(),
        names: names.collect(),
        histograms: histograms.collect(),
    }
}

/// Returns the geometric mean, as in changes between runs; `None` if a repeat is not above 0.
fn figure(reading: &Reading) -> Option<Figure> {
    Some(Figure {
        key: reading.quantity.key().to_owned(),
        load_percent: reading.load_percent,
        value: reading.geometric_mean()?,
        repeats: reading.value.n,
        spread: Some((reading.value.min, reading.value.max)),
    })
}
