//! Exports each quantity of each repeat of a run to monitoring systems.
//!
//! The values are the same as in `compare` ([`stats::Reading`]); all other data of a run is in
//! `results.json` and `results.csv`. Invalid and failed cells have no figure, so no value.

mod influx;
mod openmetrics;

use super::csv;
use crate::layout::Run;
use journal::Journal;
use plan::Cell;
use stats::{Reading, Results};
use std::collections::BTreeMap;

/// A format of [`export`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// OpenMetrics text, version 1.0.0.
    OpenMetrics,
    /// InfluxDB line protocol, version 2.
    Influx,
    /// `results.csv`.
    Csv,
}

/// Returns a run in one of the formats: a pure function of the journal.
#[must_use]
pub fn export(journal: &Journal, format: ExportFormat) -> String {
    match format {
        ExportFormat::OpenMetrics => openmetrics::write(&Points::of(journal)),
        ExportFormat::Influx => influx::write(&Points::of(journal)),
        ExportFormat::Csv => csv::write(&Run::of(journal)),
    }
}

/// A cell with its figures.
struct CellPoints<'a> {
    planned: &'a Cell,
    readings: Vec<Reading>,
}

/// The figures of a run.
struct Points<'a> {
    journal: &'a Journal,
    /// Cells with a figure, in the plan's order.
    cells: Vec<CellPoints<'a>>,
    /// Start of each trial, in nanoseconds since the Unix epoch.
    began: BTreeMap<(&'a str, u32), u64>,
}

impl<'a> Points<'a> {
    fn of(journal: &'a Journal) -> Self {
        let results = Results::of(journal);
        // `Results` has one result per planned cell, in the same order.
        let cells = journal.header.plan.cells.iter().zip(&results.cells);
        let cells = cells.map(|(planned, result)| CellPoints {
            planned,
            readings: result.exported(),
        });
        // A trial repeated after a resume is dated by its last record, which the figures come from.
        let trials = journal.latest_trials().into_iter();
        Self {
            journal,
            cells: cells.filter(|cell| !cell.readings.is_empty()).collect(),
            began: trials
                .map(|(key, trial)| (key, trial.started_unix_ns))
                .collect(),
        }
    }

    fn began_ns(&self, cell: &Cell, repeat: u32) -> u64 {
        let key = (cell.id.as_str(), repeat);
        self.began
            // A figure without a trial in the journal cannot be dated better than by the run.
            .get(&key)
            .copied()
            .unwrap_or(self.journal.header.started_unix_ns)
    }

    /// Labels that identify the run and a cell: names and values, in a fixed order.
    fn labels(&self, cell: &Cell) -> Vec<(&'static str, String)> {
        let header = &self.journal.header;
        vec![
            ("campaign", header.plan.name.clone()),
            ("run", journal::time::utc(header.started_unix_ns)),
            ("cell", cell.id.clone()),
            ("kind", cell.measurement.name().to_owned()),
            ("dut", cell.dut.name.clone()),
        ]
    }
}
