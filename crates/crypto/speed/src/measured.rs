//! The measurements with their origin.

use crate::cores::pinned;
use crate::curves::SuiteCurves;
use crate::error::SpeedError;
use crate::figure::{self, Figure};
use crate::request::Request;
use crate::{insecure, page, plot, rates};
use dispatch::{CpuChoice, Direction, Dispatch};
use engine::{EngineError, Selection};
use maud::html;
use serde::Serialize;
use std::{fs, iter};
use wire::Suite;

/// Progress of a measurement.
#[derive(Debug)]
pub enum Event<'a> {
    /// An engine cannot be used, and the others are measured.
    Unusable(&'a EngineError),
    /// A figure was measured: a line with its number.
    Figure(String),
}

/// The measurements, in the form of `speed.json` and `--json`.
#[derive(Serialize)]
pub struct Measured {
    /// Version of this program.
    version: String,
    /// The command that measured it.
    command: String,
    /// Name of the CPU.
    cpu: String,
    /// Repeats of each figure.
    repeats: usize,
    /// Packets in a batch.
    batch: u16,
    /// Rates; empty with `--curves`.
    figures: Vec<Figure>,
    /// Curves and the fastest engines; empty without `--curves`.
    curves: Vec<SuiteCurves>,
}

impl Measured {
    /// Measures, and calls `see` with its progress.
    ///
    /// # Errors
    /// When an engine cannot be used or fails, and when no engine has any of the suites.
    pub fn of(request: &Request<'_>, mut see: impl FnMut(Event<'_>)) -> Result<Self, SpeedError> {
        let mut measured = Self {
            version: request.version.to_owned(),
            command: request.command.clone(),
            cpu: cpu_name(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            repeats: figure::REPEATS,
            batch: request.batch,
            figures: Vec::new(),
            curves: Vec::new(),
        };
        for &suite in request.suites {
            let engines = match engines(request.engines, suite, &mut see) {
                Ok(engines) => engines,
                // With several suites the user asks for all that work; a single one that does not
                // is an error.
                Err(EngineError::NotServed { .. } | EngineError::None { .. })
                    if request.suites.len() > 1 =>
                {
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if request.curves {
                let measure = || Dispatch::measure(request.engines, suite);
                // On one core: a change of the core in between would look like a slow engine.
                let dispatch = pinned(request.cores[0], measure)??;
                measured.curves.push(SuiteCurves::of(&dispatch));
            } else {
                let figures = rates::measure(request, &engines, |line| see(Event::Figure(line)))?;
                measured.figures.extend(figures);
            }
        }
        if measured.figures.is_empty() && measured.curves.is_empty() {
            return Err(SpeedError::Nothing(request.engines.to_string()));
        }
        Ok(measured)
    }

    /// A warning about figures that are disturbed.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        figure::warning(&self.figures)
    }

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> String {
        // Plain data with string keys always has a JSON form.
        let json = serde_json::to_string_pretty(self).expect("figures can be written as JSON");
        json + "\n"
    }

    /// As a page with charts.
    #[must_use]
    pub fn page(&self) -> String {
        let rates = self.figures.chunk_by(|a, b| a.suite == b.suite);
        let charts = rates
            .flat_map(|figures| Direction::ALL.map(|direction| figure::chart(figures, direction)))
            .chain(self.curves.iter().flat_map(SuiteCurves::charts));
        // A direction may not have been requested.
        let charts: Vec<_> = charts.filter(|chart| !chart.series.is_empty()).collect();
        let origin =
            html! { (self.cpu) ", cipherbench " (self.version) ": " code { (self.command) } };
        page::write(&origin, &charts, &self.tables(usize::MAX))
    }

    /// The output on a terminal of so many columns: the tables, and curves as charts of characters.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        let plots = self.curves.iter().flat_map(SuiteCurves::charts);
        iter::once(self.tables(width))
            .chain(plots.map(|chart| plot::draw(&chart)))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// All figures, followed by notes on insecure ones.
    fn tables(&self, width: usize) -> String {
        let rates = figure::tables(&self.figures, self.batch, width);
        let curves = self.curves.iter().map(|curves| curves.text(width));
        let rated = self.figures.iter();
        let rated = rated.map(|figure| (figure.suite, figure.engine.as_str()));
        let curved = self.curves.iter().flat_map(SuiteCurves::measured);
        let notes = insecure::notes(rated.chain(curved));
        rates
            .into_iter()
            .chain(curves)
            // An empty part would add an empty line.
            .chain((!notes.is_empty()).then_some(notes))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Returns the named engine, or all that have the suite. Calls `see` with the reason of each engine
/// that cannot be used.
fn engines(
    choice: &CpuChoice,
    suite: Suite,
    mut see: impl FnMut(Event<'_>),
) -> Result<Vec<Selection>, EngineError> {
    // A named engine that cannot be used is an error, not one less in the table.
    let CpuChoice::Auto = choice else {
        return Ok(vec![engine::select(choice, suite)?]);
    };
    let (engines, passed_over) = engine::select_all(suite)?;
    for over in &passed_over {
        see(Event::Unusable(&over.reason));
    }
    Ok(engines)
}

/// Out of `/proc/cpuinfo`.
fn cpu_name(cpuinfo: &str) -> String {
    // The first core: others of one machine have the same name.
    let name = cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    name.unwrap_or_else(|| "a CPU without a name".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_name_is_read() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\n";
        assert_eq!(cpu_name(cpuinfo), "A CPU @ 2 GHz");
        assert_eq!(cpu_name(""), "a CPU without a name");
    }
}
