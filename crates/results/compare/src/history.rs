//! Figures over many runs: changes that last, unusual last runs, and what else changed there.
//!
//! A series is a quantity of a cell over the runs of one campaign, in the order of their starts.
//! Intervals are simultaneous over all series: a history without any change seldom shows one,
//! however many cells it has (27 of 1000 with 9 runs of 20 cells did in simulations).

mod html;
mod text;

pub use html::history_html;
pub use text::history_text;

use crate::cells::Pairs;
use crate::differences::{of_cells, of_surroundings, surroundings};
use crate::error::CompareError;
use crate::trend::{shifts_at, splits};
use crate::{Difference, Run, RunInfo, Shift};
use plan::Cell;
use serde::Serialize;
use stats::{Gate, Quantity, Results, expected, simultaneous_alpha};
use std::collections::BTreeMap;

/// Runs after the last change that an expectation of the next one needs.
const EXPECTED_MIN_RUNS: usize = 3;

/// Figures over many runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// Name and version of this format: `cipherbench-history/1`.
    pub schema: &'static str,
    /// The runs, the oldest first.
    pub runs: Vec<RunInfo>,
    /// The probability that one interval misses.
    pub alpha: f64,
    /// The series: those that got worse first, the worst at the top; then unusual last runs,
    /// improvements, and series without a change.
    pub series: Vec<Series>,
}

/// A quantity of a cell over the runs of its campaign.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// The campaign.
    pub campaign: String,
    /// Id of the cell.
    pub cell: String,
    /// The quantity.
    pub quantity: Quantity,
    /// Of latency under several loads: the load in per cent of the throughput; 0 is the lowest one.
    pub load_percent: Option<u8>,
    /// Its figures, one for each run that has one.
    pub points: Vec<Point>,
    /// Changes that last for at least two runs, in order.
    pub turns: Vec<Turn>,
    /// The last run, if the ones before it do not explain it.
    pub unusual: Option<Unusual>,
    /// What a reader should think of it.
    pub state: Course,
}

/// A figure of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Index of the run in [`History::runs`].
    pub run: usize,
    /// Geometric mean of its repeats, in the unit of the quantity.
    pub value: f64,
}

/// A change that lasts, and what else changed at the same run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Turn {
    /// The change; its index counts [`Series::points`].
    pub shift: Shift,
    /// Whether the figure is better after it.
    pub is_better: bool,
    /// Machine, programs, lab and settings that changed with it.
    pub differences: Vec<Difference>,
    /// The command that finds the commit, if the program was built from two revisions.
    pub bisect: Option<String>,
}

/// A last run that the runs before it do not explain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Unusual {
    /// Its figure.
    pub value: f64,
    /// Lower end of the interval that was expected to have it.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether it is better than expected.
    pub is_better: bool,
}

/// What a reader should think of a series, in the order of importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Course {
    /// Its last change was for the worse.
    Worse,
    /// Its last run is unusual.
    Unusual,
    /// Its last change was for the better.
    Better,
    /// No change was found.
    Steady,
    /// It has too few runs to find a change.
    TooShort,
}

impl History {
    /// As JSON, indented, with the keys of these types.
    #[must_use]
    pub fn json(&self) -> String {
        // Plain data with string keys always has a JSON form.
        let text = serde_json::to_string_pretty(self);
        text.expect("a history can be written as JSON") + "\n"
    }
}

/// Computes the history of runs, in any order.
///
/// # Errors
/// When there are fewer than two runs, or one is given twice.
pub fn history(runs: &[Run<'_>]) -> Result<History, CompareError> {
    crate::error::check_series(runs)?;
    let mut runs = runs.to_vec();
    runs.sort_by_key(|run| run.journal.header.started_unix_ns);
    let results: Vec<Results> = runs.iter().map(|run| Results::of(run.journal)).collect();
    let mut all = collected(&runs, &results);
    let intervals = all
        .iter()
        .map(|series| splits(series.points.len()) + 1)
        .sum();
    let alpha = simultaneous_alpha(intervals);
    let mut beside = Beside::new(&runs, &results);
    for series in &mut all {
        find_changes(series, alpha, &mut beside);
    }
    // Of two regressions the one further from 1 comes first, whichever direction is worse.
    all.sort_by(|one, other| {
        let ratio = |series: &Series| series.turns.last().map_or(1.0, |turn| turn.shift.ratio);
        let far = |series: &Series| -ratio(series).ln().abs();
        (one.state.cmp(&other.state)).then(far(one).total_cmp(&far(other)))
    });
    let described = runs.iter().zip(&results);
    let described = described.map(|(run, results)| RunInfo::of(run, results, &[].into()));
    Ok(History {
        schema: "cipherbench-history/1",
        runs: described.collect(),
        alpha,
        series: all,
    })
}

/// The figures of all runs by campaign, cell and quantity.
fn collected(runs: &[Run<'_>], results: &[Results]) -> Vec<Series> {
    type Key = (String, String, Quantity, Option<u8>);
    let mut by_key: BTreeMap<Key, Vec<Point>> = BTreeMap::new();
    for (at, (run, results)) in runs.iter().zip(results).enumerate() {
        let plan = &run.journal.header.plan;
        for (cell, result) in plan.cells.iter().zip(&results.cells) {
            for reading in result.exported() {
                let key = (
                    plan.name.clone(),
                    cell.id.clone(),
                    reading.quantity,
                    reading.load_percent,
                );
                if let Some(value) = reading.geometric_mean() {
                    by_key
                        .entry(key)
                        .or_default()
                        .push(Point { run: at, value });
                }
            }
        }
    }
    let all = by_key.into_iter();
    let all = all.map(
        |((campaign, cell, quantity, load_percent), points)| Series {
            campaign,
            cell,
            quantity,
            load_percent,
            points,
            turns: Vec::new(),
            unusual: None,
            state: Course::TooShort,
        },
    );
    all.collect()
}

fn find_changes(series: &mut Series, alpha: f64, beside: &mut Beside<'_>) {
    let values: Vec<f64> = series.points.iter().map(|point| point.value).collect();
    let higher_is_better = series.quantity.higher_is_better();
    series.turns = shifts_at(&values, alpha)
        .into_iter()
        .map(|shift| {
            let [before, after] = [shift.at - 1, shift.at].map(|at| series.points[at].run);
            Turn {
                shift,
                is_better: (shift.ratio > 1.0) == higher_is_better,
                differences: beside.differences(before, after),
                bisect: beside.bisect(series, &shift, before, after),
            }
        })
        .collect();
    let since = series.turns.last().map_or(0, |turn| turn.shift.at);
    if let Some((&last, before)) = values[since..].split_last()
        && before.len() >= EXPECTED_MIN_RUNS
    {
        series.unusual = expected(before, alpha)
            .filter(|(low, high)| !(*low..=*high).contains(&last))
            .map(|(low, high)| Unusual {
                value: last,
                low,
                high,
                is_better: (last > high) == higher_is_better,
            });
    }
    series.state = match (&series.unusual, series.turns.last()) {
        (Some(_), _) => Course::Unusual,
        (None, Some(turn)) if turn.is_better => Course::Better,
        (None, Some(_)) => Course::Worse,
        (None, None) if splits(values.len()) > 0 => Course::Steady,
        (None, None) => Course::TooShort,
    };
}

/// What else changed between two runs. Many series change at the same run.
struct Beside<'a> {
    runs: &'a [Run<'a>],
    results: &'a [Results],
    known: BTreeMap<(usize, usize), Vec<Difference>>,
}

impl<'a> Beside<'a> {
    const fn new(runs: &'a [Run<'a>], results: &'a [Results]) -> Self {
        Self {
            runs,
            results,
            known: BTreeMap::new(),
        }
    }

    fn differences(&mut self, before: usize, after: usize) -> Vec<Difference> {
        let (runs, results) = (self.runs, self.results);
        let find = || {
            let [base, other] = [before, after].map(|at| surroundings(runs[at].journal));
            let mut found = of_surroundings(&base, &other);
            let [base, other] = [before, after].map(|at| (runs[at].journal, &results[at]));
            found.extend(of_cells(&Pairs::of(base, other, &[], false)));
            found
        };
        self.known
            .entry((before, after))
            .or_insert_with(find)
            .clone()
    }

    /// The command that finds the commit between two runs.
    fn bisect(
        &self,
        series: &Series,
        shift: &Shift,
        before: usize,
        after: usize,
    ) -> Option<String> {
        let [good, bad] = [before, after].map(|at| revision(&self.runs[at].journal.header.program));
        let (good, bad) = good.zip(bad).filter(|(good, bad)| good != bad)?;
        let cells = &self.runs[after].journal.header.plan.cells;
        let cell = cells.iter().find(|cell| cell.id == series.cell)?;
        let gate = gate(cell, series, shift)?;
        Some(format!(
            "cipherbench bisect --good {good} --bad {bad} --build 'make build' --gate '{gate}' {}",
            series.campaign
        ))
    }
}

/// The revision of a program in a header: `0.1.0 (a1b2c3d4)`.
fn revision(program: &str) -> Option<&str> {
    let (_, rest) = program.split_once('(')?;
    let revision = rest.strip_suffix(')')?;
    let is_hash = revision.len() >= 7 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then_some(revision)
}

/// The rule that separates the runs before a change from those after it: half of the change.
fn gate(cell: &Cell, series: &Series, shift: &Shift) -> Option<String> {
    // Gates name no load of several.
    if series.load_percent.is_some() {
        return None;
    }
    let kind = cell.id.split('/').next()?;
    let axes: String = cell
        .coordinates
        .iter()
        .map(|coordinate| format!(" {coordinate}"))
        .collect();
    let direction = if shift.ratio < 1.0 { "drops" } else { "rises" };
    let percent = (shift.ratio - 1.0).abs() * 50.0;
    // Halves of a per cent, so that the rule stays below the change.
    let percent = ((percent * 2.0).floor() / 2.0).max(0.5);
    let quantity = series.quantity.word();
    let rule = format!(
        "{kind}{axes} dut={} {quantity} {direction} > {percent} %",
        cell.dut.name
    );
    let parsed: Gate = rule.parse().ok()?;
    parsed.applies(cell).then_some(rule)
}
