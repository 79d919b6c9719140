//! Compares runs: changes of their environment and figures, and whether gates hold; and finds
//! changes over many runs.
//!
//! ```text
//! journals -> pairs of cells -> differences of machine and settings
//!                            -> changes with simultaneous intervals -> gates
//!                            -> text, Markdown, HTML, JUnit, JSON
//! ```
//!
//! Each further run is compared with the first, the base; with a single run, its devices are
//! compared with one another. `docs/compare.md` describes rules, gates and outputs; the method is
//! in `stats::Change`.
//!
//! The crate is pure: it turns journals into values and texts, without clock or files. It neither
//! assesses a single run (`report` does) nor pools runs.

#![forbid(unsafe_code)]

mod cells;
mod changes;
mod differences;
mod doubts;
mod error;
mod gate;
mod history;
mod html;
mod junit;
mod markdown;
mod table;
mod text;
mod trend;
mod versions;
mod words;

pub use cells::Match;
pub use changes::{CellChange, Direction, Partly, WithoutChange, WithoutRatio};
pub use differences::{Difference, of_surroundings, surroundings};
pub use error::CompareError;
pub use gate::{GateCell, GateResult, Outcome};
pub use history::{
    Course, History, Point, Series, Turn, Unusual, history, history_html, history_text,
};
pub use html::html;
pub use junit::{junit, junit_of_limits};
pub use markdown::markdown;
pub use stats::{Gate, GateError};
pub use text::{Detail, text, text_within};
pub use trend::{Shift, shifts};

use cells::Pairs;
use changes::Sides;
use journal::Journal;
use journal::time::utc;
use serde::Serialize;
use stats::{Results, simultaneous_alpha};
use std::collections::BTreeSet;

/// A smaller change, in per cent, counts as none, unless the caller sets another margin.
pub const MARGIN_PERCENT: f64 = 5.0;

/// A run to be compared.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Its name for the reader: its folder.
    pub name: &'a str,
    /// Its journal.
    pub journal: &'a Journal,
}

/// The options of a comparison.
#[derive(Debug, Clone)]
pub struct Options {
    /// Devices, or versions of their programs, that are compared although their names differ.
    pub matches: Vec<Match>,
    /// Changes that are smaller than this with their whole interval, in per cent, count as none.
    pub margin_percent: f64,
    /// Gates, in the order given.
    pub gates: Vec<Gate>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            matches: Vec::new(),
            margin_percent: MARGIN_PERCENT,
            gates: Vec::new(),
        }
    }
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Name and version of this format: `cipherbench-compare/1`.
    pub schema: &'static str,
    /// The runs, the base first.
    pub runs: Vec<RunInfo>,
    /// Changes that are smaller than this with their whole interval, in per cent, count as none.
    pub margin_percent: f64,
    /// Number of intervals that together miss with a probability of at most 5 %; intervals at the
    /// level of a ranking are not counted.
    pub intervals: usize,
    /// The probability that one of them misses.
    pub alpha: f64,
    /// Each further run compared with the base; for a single run, the run itself.
    pub pairs: Vec<RunPair>,
    /// The gates, in the order given.
    pub gates: Vec<GateResult>,
}

/// A run of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunInfo {
    /// Its folder, as given.
    pub name: String,
    /// Name of its campaign.
    pub campaign: String,
    /// Version and revision of the program that made it.
    pub program: String,
    /// Start of the run, ISO 8601.
    pub started_utc: String,
    /// Planned repeats of each cell.
    pub repeats: u32,
    /// Planned trials.
    pub trials_planned: u64,
    /// Trials that were measured and passed all checks.
    pub trials_measured: u64,
    /// Reasons to doubt the run: defects of its journal, that it has not ended, and the warnings of
    /// its report about the whole run or compared cells.
    pub warnings: Vec<String>,
}

/// A run compared with the base.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunPair {
    /// Index of the run in [`Comparison::runs`]; 0 if the base is compared with itself.
    pub run: usize,
    /// Machine, programs and lab that differ.
    pub environment: Vec<Difference>,
    /// Settings, devices and offloads that differ in cells that are compared.
    pub settings: Vec<Difference>,
    /// Each quantity of each shared cell: regressions first, the worst at the top; then
    /// improvements, undecided and unchanged quantities.
    pub changes: Vec<CellChange>,
    /// Compared cells with a figure in only some of their repeats.
    pub partly: Vec<Partly>,
    /// Cells that both runs have but that cannot be compared.
    pub without_change: Vec<WithoutChange>,
    /// Quantities of compared cells that have no ratio.
    pub without_ratio: Vec<WithoutRatio>,
    /// Ids of cells that only the base has.
    pub only_in_base: Vec<String>,
    /// Ids of cells that only the other run has.
    pub only_in_other: Vec<String>,
}

impl Comparison {
    /// Returns the worst outcome of the gates; passed if no gates are given.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let outcomes = self.gates.iter().map(|gate| gate.outcome);
        outcomes.max().unwrap_or(Outcome::Passed)
    }

    /// Whether no quantity could be compared. A single run with gates on its figures alone is not
    /// compared with anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.pairs.is_empty() && self.pairs.iter().all(|pair| pair.changes.is_empty())
    }

    /// As JSON, indented, with the keys of these types.
    #[must_use]
    pub fn json(&self) -> String {
        // Plain data with string keys always has a JSON form.
        let text = serde_json::to_string_pretty(self);
        text.expect("a comparison can be written as JSON") + "\n"
    }
}

/// Compares each further run with the first; for a single run, its devices with one another. A
/// match may name two versions of programs, and a single run with versions needs none.
///
/// # Errors
/// If a run is given twice, if a single run is given without devices to match, or if a match names
/// a device that a run does not have.
pub fn compare(runs: &[Run<'_>], options: &Options) -> Result<Comparison, CompareError> {
    let options = &Options {
        matches: versions::expanded(runs, &options.matches),
        ..options.clone()
    };
    // Before the results are computed. It also ensures that `runs[0]` exists.
    error::check(runs, options)?;
    let results: Vec<Results> = runs.iter().map(|run| Results::of(run.journal)).collect();
    // A single run is compared with itself: its devices are the two sides.
    let others = match runs.len() {
        // Only gates on its figures are asked for.
        1 if options.matches.is_empty() => 0..0,
        1 => 0..1,
        count => 1..count,
    };
    let base = (runs[0].journal, &results[0]);
    let compared: Vec<_> = others
        .map(|place| {
            let other = (runs[place].journal, &results[place]);
            let pairs = Pairs::of(base, other, &options.matches, place == 0);
            let sides = Sides {
                places: [0, place],
                runs: [runs[0].name, runs[place].name],
            };
            let found = changes::found(&pairs, sides);
            (place, pairs, found)
        })
        .collect();
    // All pairs of runs are one question, so the level depends on the intervals of all of them.
    // Changes get their intervals only after this.
    let intervals = compared.iter().map(|(.., found)| found.intervals()).sum();
    let alpha = simultaneous_alpha(intervals);
    let pairs: Vec<RunPair> = compared
        .iter()
        .map(|(place, pairs, found)| RunPair {
            run: *place,
            environment: match place {
                0 => Vec::new(),
                place => {
                    // Within one run there is nothing else to differ, so only pairs of runs come
                    // here.
                    let [base, other] = [0, *place].map(|at| surroundings(runs[at].journal));
                    of_surroundings(&base, &other)
                }
            },
            settings: differences::of_cells(pairs),
            changes: found.changes(alpha, options.margin_percent),
            partly: found.partly.clone(),
            without_change: found.without.clone(),
            without_ratio: found.without_ratio.clone(),
            only_in_base: pairs.only_in_base.clone(),
            only_in_other: pairs.only_in_other.clone(),
        })
        .collect();
    let gates = gate::judge(&options.gates, runs, &results, &pairs);
    // Warnings about cells that are not compared would distract, so each run's compared cells are
    // collected for them.
    let mut cells: Vec<BTreeSet<&str>> = vec![BTreeSet::new(); runs.len()];
    for (place, pairs, _) in &compared {
        for pair in &pairs.both {
            cells[0].insert(&pair.base.planned.id);
            cells[*place].insert(&pair.other.planned.id);
        }
    }
    let described = runs.iter().zip(&results).zip(&cells);
    let described = described.map(|((run, results), cells)| RunInfo::of(run, results, cells));
    Ok(Comparison {
        schema: "cipherbench-compare/1",
        gates,
        runs: described.collect(),
        margin_percent: options.margin_percent,
        intervals,
        alpha,
        pairs,
    })
}

impl RunInfo {
    /// Describes a run; `compared` are the ids of its compared cells.
    fn of(run: &Run<'_>, results: &Results, compared: &BTreeSet<&str>) -> Self {
        let (header, progress) = (&run.journal.header, &results.progress);
        Self {
            name: run.name.to_owned(),
            campaign: header.plan.name.clone(),
            program: header.program.clone(),
            started_utc: utc(header.started_unix_ns),
            repeats: header.plan.repeats,
            trials_planned: progress.trials_planned,
            trials_measured: progress.trials_measured,
            warnings: doubts::of_run(run, results, compared),
        }
    }
}
