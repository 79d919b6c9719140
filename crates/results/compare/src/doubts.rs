//! What makes a comparison doubtful: warnings of its runs, and repeats without a figure.

use crate::{Comparison, Run};
use stats::{Results, Series, WarningKind, was};
use std::collections::BTreeSet;

/// Warnings that are printed; the report of a run has all.
const WARNINGS_MAX: usize = 10;

/// Returns the defects of the journal, whether the run is unfinished, and the warnings of its
/// report about the whole run or compared cells.
pub(crate) fn of_run(run: &Run<'_>, results: &Results, compared: &BTreeSet<&str>) -> Vec<String> {
    let progress = &results.progress;
    let mut found: Vec<String> = run
        .journal
        .warnings
        .iter()
        .map(ToString::to_string)
        .collect();
    if !progress.ended {
        found.push(format!(
            "it has not ended: {} of {} trials {} not run; to go on: cipherbench resume {}",
            progress.trials_not_run,
            progress.trials_planned,
            was(progress.trials_not_run),
            run.name
        ));
    }
    let own = results.warnings.iter().filter(|warning| {
        // These are listed above.
        let is_said = matches!(
            warning.kind,
            WarningKind::NotEnded
                | WarningKind::UnfinishedLine
                | WarningKind::NoChecksums
                | WarningKind::Contradiction
        );
        let concerns = warning
            .cells
            .iter()
            .any(|id| compared.contains(id.as_str()));
        !is_said && (warning.cells.is_empty() || concerns)
    });
    found.extend(own.map(|warning| warning.text.clone()));
    found
}

impl Comparison {
    /// Returns the warnings of all runs and the missing repeats as sentences, each with the names
    /// of the runs that it concerns.
    pub(crate) fn doubts(&self) -> Vec<String> {
        let warnings = self.runs.iter().flat_map(|run| {
            let own = run.warnings.iter();
            own.map(|warning| (warning.as_str(), run.name.as_str()))
        });
        // Runs on one machine share most of their warnings: each is printed once, with the runs
        // that have it.
        let warnings = Series::all(warnings);
        // Missing repeats come first and in full, since they affect the compared figures directly.
        let mut found = self.partly();
        let left = warnings.len().saturating_sub(WARNINGS_MAX);
        let shown = warnings.iter().take(WARNINGS_MAX);
        found.extend(shown.map(|one| format!("{}: {}", self.named(&one.members), one.key)));
        if left > 0 {
            let names: BTreeSet<&str> = warnings[WARNINGS_MAX..]
                .iter()
                .flat_map(|one| one.members.iter().copied())
                .collect();
            let commands: Vec<String> = names
                .iter()
                .map(|name| format!("`cipherbench report {name}`"))
                .collect();
            let more = units::human::counted(left as u64, "more warning");
            found.push(format!("{more}: {}", commands.join(", ")));
        }
        found
    }

    /// Cells with only some repeats compared; cells of one run with the same reason and advice
    /// share a sentence.
    fn partly(&self) -> Vec<String> {
        /// A run, the reason and the advice.
        type Key<'a> = (usize, &'a str, &'a str);
        let all = self.pairs.iter().flat_map(|pair| &pair.partly);
        let found = Series::all(all.map(|partly| {
            let key: Key<'_> = (partly.run, &partly.reason, &partly.help);
            let cell = format!(
                "{} [{} of {}]",
                partly.cell, partly.measured, partly.planned
            );
            (key, cell)
        }));
        let all = found.into_iter().map(|one| {
            let (run, reason, help) = one.key;
            let mut cells: Vec<String> = Vec::new();
            for cell in one.members {
                // The base's cell is in the pair of every other run.
                if !cells.contains(&cell) {
                    cells.push(cell);
                }
            }
            let name = &self.runs[run].name;
            format!("{name}: {}: {reason}; {help}", cells.join(", "))
        });
        all.collect()
    }

    /// Joins names of runs: `runs/a`, `runs/a and runs/b`, `all runs`.
    fn named(&self, names: &[&str]) -> String {
        match names {
            [one] => (*one).to_owned(),
            [one, other] => format!("{one} and {other}"),
            all if all.len() == self.runs.len() => "all runs".to_owned(),
            all => all.join(", "),
        }
    }
}
