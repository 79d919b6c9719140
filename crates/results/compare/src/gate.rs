//! Gates: rules that a comparison must keep. `stats` has their language and decides on the figures
//! of one run; here are changes from the base.

mod words;

use crate::changes::in_words;
use crate::{CellChange, Run, RunPair};
use plan::{Bound, Cell};
use serde::Serialize;
use stats::{ExpectResult, Gate, GateFilter, GateLimit, LimitOutcome, Results, judge_gates};
use std::collections::BTreeMap;
use yaml::names;

/// The outcome of a gate, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every change is within the bound, with its whole interval.
    Passed,
    /// Not decided: an interval crosses the bound, a figure is missing, or no cell is selected.
    Undecided,
    /// At least one change is beyond the bound, with its whole interval.
    Violated,
}

/// A gate and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GateResult {
    /// The gate as given.
    pub gate: String,
    /// The worst outcome of its cells; undecided if it applies to none.
    pub outcome: Outcome,
    /// Every change that the gate applies to, and selected cells without a change.
    pub cells: Vec<GateCell>,
    /// If it applies to no figure: the filter that excludes all cells, and what the base has
    /// instead; or that its cells have other quantities.
    #[serde(skip)]
    pub advice: Option<String>,
    /// Whether it is about the figures of each run, not about changes from the base.
    #[serde(skip)]
    pub(crate) is_of_figures: bool,
}

/// The outcome of a gate for a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GateCell {
    /// Index of the other run in the comparison's runs.
    pub run: usize,
    /// Id of the base's cell.
    pub cell: String,
    /// The quantity, with its load.
    pub quantity: String,
    /// The outcome for this cell.
    pub outcome: Outcome,
    /// The numbers and what to do, as a sentence.
    pub reason: String,
}

impl Outcome {
    /// Returns the name for readers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Undecided => "undecided",
            Self::Violated => "violated",
        }
    }
}

impl From<LimitOutcome> for Outcome {
    fn from(outcome: LimitOutcome) -> Self {
        match outcome {
            LimitOutcome::Met => Self::Passed,
            LimitOutcome::Undecided => Self::Undecided,
            LimitOutcome::Violated => Self::Violated,
        }
    }
}

impl GateResult {
    /// The outcome as a sentence.
    #[must_use]
    pub fn in_words(&self) -> &str {
        match self.outcome {
            Outcome::Passed if self.is_of_figures => "every figure surely keeps it",
            Outcome::Violated if self.is_of_figures => "a figure surely breaks it",
            Outcome::Passed => "every change is surely within the bound",
            Outcome::Undecided if self.cells.is_empty() || self.advice.is_some() => {
                self.advice.as_deref().unwrap_or(words::NO_CELL)
            }
            Outcome::Undecided if self.is_of_figures => {
                "not every figure surely keeps it, and none surely breaks it"
            }
            Outcome::Undecided => {
                "not every change is surely within the bound, and none surely beyond it"
            }
            Outcome::Violated => "a change is surely beyond the bound",
        }
    }
}

impl GateResult {
    /// The cells that the gate does not pass for.
    pub(crate) fn bad(&self) -> impl Iterator<Item = &GateCell> {
        let cells = self.cells.iter();
        cells.filter(|cell| cell.outcome != Outcome::Passed)
    }
}

impl GateCell {
    fn undecided(run: usize, cell: &str, quantity: String, reason: String) -> Self {
        Self {
            run,
            cell: cell.to_owned(),
            quantity,
            outcome: Outcome::Undecided,
            reason,
        }
    }
}

/// Checks all gates: the first run is the base, and each further one must keep them; a single run
/// itself.
pub(crate) fn judge(
    gates: &[Gate],
    runs: &[Run<'_>],
    results: &[Results],
    pairs: &[RunPair],
) -> Vec<GateResult> {
    // Gates on the figures of one run are one question in each run.
    let figures: Vec<Gate> = gates
        .iter()
        .filter(|it| change(it).is_none())
        .cloned()
        .collect();
    let places = match runs.len() {
        1 => 0..1,
        count => 1..count,
    };
    let of_runs = places.map(|place| {
        let judged = judge_gates(runs[place].journal, &results[place], &figures);
        (place, judged)
    });
    let of_runs: Vec<(usize, Vec<ExpectResult>)> = of_runs.collect();
    let mut at = 0;
    let of_gate = |gate: &Gate| match change(gate) {
        Some(change) => Changes { gate, change }.judge(runs, pairs),
        None => {
            at += 1;
            of_figures(
                gate,
                runs,
                of_runs.iter().map(|(place, all)| (*place, &all[at - 1])),
            )
        }
    };
    gates.iter().map(of_gate).collect()
}

/// Whether all gates are about the figures of each run, for which one run suffices.
pub(crate) fn are_of_figures(gates: &[Gate]) -> bool {
    !gates.is_empty() && gates.iter().all(|gate| change(gate).is_none())
}

/// The ratio of a gate on changes from the base.
const fn change(gate: &Gate) -> Option<(Bound, f64)> {
    match gate.limit {
        GateLimit::Ratio {
            bound,
            ratio,
            reference: None,
        } => Some((bound, ratio)),
        _ => None,
    }
}

/// The result of a gate on figures, in all runs that must keep it.
fn of_figures<'r>(
    gate: &Gate,
    runs: &[Run<'_>],
    found: impl Iterator<Item = (usize, &'r ExpectResult)>,
) -> GateResult {
    let cells = found.flat_map(|(run, result)| {
        let cells = result.cells.iter();
        cells.map(move |cell| GateCell {
            run,
            cell: cell.cell.clone(),
            quantity: cell.quantity.clone(),
            outcome: cell.outcome.into(),
            reason: journal::with_run(&cell.reason, runs[run].name),
        })
    });
    let cells: Vec<GateCell> = cells.collect();
    let worst = cells.iter().map(|cell| cell.outcome).max();
    // The part of the gate that excludes all cells is the same in every run.
    let advice = runs.last().filter(|_| cells.is_empty()).and_then(|run| {
        let error = gate.check(&run.journal.header.plan.cells).err()?;
        Some(format!("{}: {}", error.problem(), error.help()))
    });
    GateResult {
        gate: gate.text.clone(),
        outcome: worst.unwrap_or(Outcome::Undecided),
        cells,
        advice,
        is_of_figures: true,
    }
}

/// A gate on changes from the base.
struct Changes<'g> {
    gate: &'g Gate,
    /// The side that keeps it, and the ratio at the bound.
    change: (Bound, f64),
}

impl Changes<'_> {
    fn judge(&self, runs: &[Run<'_>], pairs: &[RunPair]) -> GateResult {
        let base = runs[0].journal;
        let planned = base.header.plan.cells.iter();
        let applies = planned.filter(|cell| self.gate.applies(cell));
        // Filters are about the base's cells: the other run may name its device differently.
        let by_id: BTreeMap<&str, &Cell> = applies.map(|cell| (cell.id.as_str(), cell)).collect();
        let mut cells = Vec::new();
        for pair in pairs {
            let changes = pair.changes.iter();
            let own = changes.filter(|change| by_id.contains_key(change.cell.as_str()));
            // By word: a gate on `p99` is on the latency at every load and on round trips alike.
            let own = own.filter(|change| change.quantity.word() == self.gate.quantity);
            cells.extend(own.map(|change| self.judge_change(pair.run, change)));
            // A figure that has disappeared must not pass as unchanged.
            let missing = pair.without_change.iter();
            let missing = missing.filter(|without| {
                let cell = by_id.get(without.cell.as_str());
                cell.is_some_and(|cell| !cell.calibration)
            });
            cells.extend(missing.map(|without| {
                let quantity = self.gate.quantity.clone();
                let reason = format!("{}; {}", without.reason, without.help);
                GateCell::undecided(pair.run, &without.cell, quantity, reason)
            }));
            let lacking = pair.without_ratio.iter();
            let lacking = lacking.filter(|found| {
                by_id.contains_key(found.cell.as_str())
                    && found.quantity.word() == self.gate.quantity
            });
            cells.extend(lacking.map(|found| {
                let quantity = in_words(found.quantity, found.load_percent);
                let reason = words::of_lacking(found);
                GateCell::undecided(pair.run, &found.cell, quantity, reason)
            }));
        }
        // Cells that match but lack the quantity are listed by name: they show that the quantity is
        // wrong and not the filters.
        let mut advice = None;
        if cells.is_empty() {
            cells = self.with_other_quantities(&by_id, pairs);
            advice = Some(words::NO_QUANTITY.to_owned());
        }
        // A gate without any cell is undecided: a mistyped filter must not pass.
        let worst = cells.iter().map(|cell| cell.outcome).max();
        if cells.is_empty() {
            let planned = &base.header.plan.cells;
            advice = self
                .other_device(planned, &by_id, pairs)
                .or_else(|| self.advice(planned, pairs));
        }
        GateResult {
            gate: self.gate.text.clone(),
            outcome: worst.unwrap_or(Outcome::Undecided),
            cells,
            advice,
            is_of_figures: false,
        }
    }

    /// If it admits the other cells of the changes within one run: the gate on their base's.
    fn other_device(
        &self,
        planned: &[Cell],
        by_id: &BTreeMap<&str, &Cell>,
        pairs: &[RunPair],
    ) -> Option<String> {
        let within = pairs.iter().filter(|pair| pair.run == 0);
        let mut changes = within.flat_map(|pair| &pair.changes);
        let change = changes.find(|change| {
            let other = change.other_cell.as_deref();
            other.is_some_and(|other| by_id.contains_key(other))
        })?;
        let base = planned.iter().find(|cell| cell.id == change.cell)?;
        let refuses = |filter: &GateFilter| !filter.admits(base);
        let at = self.gate.filters.iter().position(refuses);
        let attempt = at.and_then(|at| {
            let own = self.gate.filters[at].of(base)?;
            Some(self.gate.with_filter(at, &own))
        });
        Some(words::of_other_device(attempt.as_deref()))
    }

    /// What the base has instead, if one filter alone excludes all of its cells; with a gate that
    /// applies, if a value in its place has the quantity.
    fn advice(&self, planned: &[Cell], pairs: &[RunPair]) -> Option<String> {
        let cells = || planned.iter().filter(|cell| !cell.calibration);
        let at = self
            .gate
            .filters
            .iter()
            .position(|filter| !cells().any(|cell| filter.admits(cell)))?;
        let filter = &self.gate.filters[at];
        let mut known: Vec<String> = Vec::new();
        let mut fitting: Vec<String> = Vec::new();
        for cell in cells() {
            let Some(own) = filter.of(cell) else { continue };
            let has_quantity = || {
                let changes = pairs.iter().flat_map(|pair| &pair.changes);
                changes
                    .filter(|change| change.cell == cell.id)
                    .any(|change| change.quantity.word() == self.gate.quantity)
            };
            // The other filters must still admit the cell.
            let others = self.gate.filters.iter().enumerate();
            let is_admitted = others
                .filter(|(other, _)| *other != at)
                .all(|(_, other)| other.admits(cell));
            if !fitting.contains(&own) && is_admitted && has_quantity() {
                fitting.push(own.clone());
            }
            if !known.contains(&own) {
                known.push(own);
            }
        }
        // A mistyped value was meant to be the one that it resembles.
        let meant = filter.to_string();
        let meant = names::nearest(&meant, fitting.iter().map(String::as_str));
        let attempt = meant.or(fitting.first().map(String::as_str));
        let attempt = attempt.map(|own| self.gate.with_filter(at, own));
        Some(words::no_such_cell(filter, &known, attempt.as_deref()))
    }

    /// Selected cells that have only other quantities, in the order of the changes.
    fn with_other_quantities(
        &self,
        by_id: &BTreeMap<&str, &Cell>,
        pairs: &[RunPair],
    ) -> Vec<GateCell> {
        let mut cells: Vec<GateCell> = Vec::new();
        for pair in pairs {
            let changes = pair.changes.iter();
            let own = changes.filter(|change| by_id.contains_key(change.cell.as_str()));
            for one in stats::Series::all(own.map(|change| (change.cell.as_str(), change))) {
                let known: Vec<String> = one
                    .members
                    .iter()
                    .map(|change| format!("`{}`", change.quantity_in_words()))
                    .collect();
                cells.push(GateCell::undecided(
                    pair.run,
                    one.key,
                    self.gate.quantity.clone(),
                    words::of_other_quantities(&known),
                ));
            }
        }
        cells
    }

    fn judge_change(&self, run: usize, change: &CellChange) -> GateCell {
        let (side, bound) = self.change;
        // A gate decides without a reader, so evidence against one repeat is enough.
        if let Some(invalid) = &change.statistics.invalid {
            let reason = format!(
                "{}, without the invalid repeats; {invalid}",
                change.in_words()
            );
            return GateCell::undecided(run, &change.cell, change.quantity_in_words(), reason);
        }
        // A change exactly at the bound is within it, as the gate reads `drops > 5 %`.
        let interval = change.interval();
        let outcome = interval.map(|interval| LimitOutcome::of(interval, side, bound));
        let outcome = outcome.map_or(Outcome::Undecided, Outcome::from);
        GateCell {
            run,
            cell: change.cell.clone(),
            quantity: change.quantity_in_words(),
            outcome,
            reason: words::of_change(change, outcome, bound, run == 0),
        }
    }
}
