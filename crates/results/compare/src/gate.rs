//! Gates: rules that a comparison must keep.
//!
//! ```text
//! gate     = { filter } quantity ( "drops" | "rises" ) ">" number "%"
//! filter   = kind of trial | key "=" value
//! value    = word | '"' text '"'
//! ```
//!
//! A gate holds if the whole interval of a change is within the bound, and is violated if all of it
//! is beyond the bound. Otherwise it is undecided, which counts as not passed.

mod parse;
mod words;

pub use parse::GateError;

use crate::changes::in_words;
use crate::{CellChange, Run, RunPair};
use plan::{Axis, Cell};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use yaml::names;

/// A rule of `--gate`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// As given.
    pub text: String,
    filters: Vec<Filter>,
    /// Word of the quantity.
    quantity: String,
    drops: bool,
    percent: f64,
}

/// A condition that a cell must meet for a gate to apply.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Filter {
    /// This kind of trial.
    Kind(String),
    /// A device of this name, in the base.
    Device(String),
    /// This value on an axis.
    Value(Axis, String),
}

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
    /// If it applies to none: the filter that excludes all cells, and what the base has instead.
    #[serde(skip)]
    pub advice: Option<String>,
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

impl GateResult {
    /// The outcome as a sentence.
    #[must_use]
    pub fn in_words(&self) -> &str {
        match self.outcome {
            Outcome::Passed => "every change is surely within the bound",
            Outcome::Undecided if self.cells.is_empty() => {
                self.advice.as_deref().unwrap_or(words::NO_CELL)
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

impl Gate {
    /// Checks the changes of all runs against the gate; the first run is the base.
    pub(crate) fn judge(&self, runs: &[Run<'_>], pairs: &[RunPair]) -> GateResult {
        let base = runs[0].journal;
        let planned = base.header.plan.cells.iter();
        let applies = planned.filter(|cell| self.applies(cell));
        // Filters are about the base's cells: the other run may name its device differently.
        let by_id: BTreeMap<&str, &Cell> = applies.map(|cell| (cell.id.as_str(), cell)).collect();
        let mut cells = Vec::new();
        for pair in pairs {
            let changes = pair.changes.iter();
            let own = changes.filter(|change| by_id.contains_key(change.cell.as_str()));
            // By word: a gate on `p99` is on the latency at every load and on round trips alike.
            let own = own.filter(|change| change.quantity.word() == self.quantity);
            cells.extend(own.map(|change| self.judge_change(pair.run, change)));
            // A figure that has disappeared must not pass as unchanged.
            let missing = pair.without_change.iter();
            let missing = missing.filter(|without| {
                let cell = by_id.get(without.cell.as_str());
                cell.is_some_and(|cell| !cell.calibration)
            });
            cells.extend(missing.map(|without| {
                let quantity = self.quantity.clone();
                let reason = format!("{}; {}", without.reason, without.help);
                GateCell::undecided(pair.run, &without.cell, quantity, reason)
            }));
            let lacking = pair.without_ratio.iter();
            let lacking = lacking.filter(|found| {
                by_id.contains_key(found.cell.as_str()) && found.quantity.word() == self.quantity
            });
            cells.extend(lacking.map(|found| {
                let quantity = in_words(found.quantity, found.load_percent);
                let reason = words::of_lacking(&found.reason);
                GateCell::undecided(pair.run, &found.cell, quantity, reason)
            }));
        }
        // Cells that match but lack the quantity are listed by name: they show that the quantity is
        // wrong and not the filters.
        if cells.is_empty() {
            cells = self.with_other_quantities(&by_id, pairs);
        }
        // A gate without any cell is undecided: a mistyped filter must not pass.
        let worst = cells.iter().map(|cell| cell.outcome).max();
        let advice = if cells.is_empty() {
            self.advice(&base.header.plan.cells, pairs)
        } else {
            None
        };
        GateResult {
            gate: self.text.clone(),
            outcome: worst.unwrap_or(Outcome::Undecided),
            cells,
            advice,
        }
    }

    /// What the base has instead, if one filter alone excludes all of its cells; with a gate that
    /// applies, if a value in its place has the quantity.
    fn advice(&self, planned: &[Cell], pairs: &[RunPair]) -> Option<String> {
        let cells = || planned.iter().filter(|cell| !cell.calibration);
        let at = self
            .filters
            .iter()
            .position(|filter| !cells().any(|cell| filter.admits(cell)))?;
        let filter = &self.filters[at];
        let mut known: Vec<String> = Vec::new();
        let mut fitting: Vec<String> = Vec::new();
        for cell in cells() {
            let Some(own) = filter.of(cell) else { continue };
            let has_quantity = || {
                let changes = pairs.iter().flat_map(|pair| &pair.changes);
                changes
                    .filter(|change| change.cell == cell.id)
                    .any(|change| change.quantity.word() == self.quantity)
            };
            // The other filters must still admit the cell.
            let others = self.filters.iter().enumerate();
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
        let attempt = attempt.map(|own| self.with_filter(at, own));
        Some(words::no_such_cell(filter, &known, attempt.as_deref()))
    }

    /// The gate with another filter at a place.
    fn with_filter(&self, at: usize, filter: &str) -> String {
        let filters = self.filters.iter().enumerate();
        let mut parts: Vec<String> = filters
            .map(|(place, own)| {
                if place == at {
                    filter.to_owned()
                } else {
                    own.to_string()
                }
            })
            .collect();
        parts.push(self.quantity.clone());
        let verb = if self.drops { "drops" } else { "rises" };
        format!("{} {verb} > {} %", parts.join(" "), self.percent)
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
            for change in changes.filter(|change| by_id.contains_key(change.cell.as_str())) {
                let is_known =
                    |known: &GateCell| (known.run, &known.cell) == (pair.run, &change.cell);
                if !cells.iter().any(is_known) {
                    let reason = words::of_lacking("neither has a figure of it");
                    let quantity = self.quantity.clone();
                    cells.push(GateCell::undecided(
                        pair.run,
                        &change.cell,
                        quantity,
                        reason,
                    ));
                }
            }
        }
        cells
    }

    fn applies(&self, cell: &Cell) -> bool {
        // The calibration measures the tester, and no gate is about it.
        !cell.calibration && self.filters.iter().all(|filter| filter.admits(cell))
    }

    /// The ratio at the bound.
    fn bound(&self) -> f64 {
        if self.drops {
            1.0 - self.percent / 100.0
        } else {
            1.0 + self.percent / 100.0
        }
    }

    fn judge_change(&self, run: usize, change: &CellChange) -> GateCell {
        let bound = self.bound();
        // A gate decides without a reader, so evidence against one repeat is enough.
        if let Some(invalid) = &change.statistics.invalid {
            let reason = format!(
                "{}, without the invalid repeats; {invalid}",
                change.in_words()
            );
            return GateCell::undecided(run, &change.cell, change.quantity_in_words(), reason);
        }
        // A change exactly at the bound is within it, as the gate reads `drops > 5 %`.
        let outcome = match (change.interval(), self.drops) {
            (None, _) => Outcome::Undecided,
            (Some((_, high)), true) if high < bound => Outcome::Violated,
            (Some((low, _)), true) if low >= bound => Outcome::Passed,
            (Some((low, _)), false) if low > bound => Outcome::Violated,
            (Some((_, high)), false) if high <= bound => Outcome::Passed,
            _ => Outcome::Undecided,
        };
        GateCell {
            run,
            cell: change.cell.clone(),
            quantity: change.quantity_in_words(),
            outcome,
            reason: words::of_change(change, outcome, bound),
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(name) => f.write_str(name),
            Self::Device(name) => write!(f, "dut={}", parse::quoted(name)),
            Self::Value(axis, value) => write!(f, "{}={}", axis.key(), parse::quoted(value)),
        }
    }
}

impl Filter {
    /// The filter of this kind that admits a cell; `None` if the cell is not on its axis.
    fn of(&self, cell: &Cell) -> Option<String> {
        let own = match self {
            Self::Kind(_) => Self::Kind(cell.measurement.name().to_owned()),
            Self::Device(_) => Self::Device(cell.dut.name.clone()),
            Self::Value(axis, _) => {
                let named = cell.coordinates.iter().find(|at| at.axis == *axis);
                let in_id = named.map(ToString::to_string);
                let in_id = in_id.as_deref().and_then(|text| text.split_once('='));
                let plain = || cell.value(*axis).map(|value| value.plain());
                let value = in_id.map(|(_, value)| value.to_owned()).or_else(plain)?;
                Self::Value(*axis, value)
            }
        };
        Some(own.to_string())
    }

    fn admits(&self, cell: &Cell) -> bool {
        match self {
            Self::Kind(name) => cell.measurement.name() == name,
            Self::Device(name) => cell.dut.name == *name,
            Self::Value(axis, wanted) => {
                // A value may be written as in the id (`500ms`) or plain (`500000000`).
                let named = cell.coordinates.iter().find(|at| at.axis == *axis);
                let in_id = named.map(ToString::to_string);
                let in_id = in_id.as_deref().and_then(|text| text.split_once('='));
                let is_named = in_id.is_some_and(|(_, value)| value == wanted);
                is_named
                    || cell
                        .value(*axis)
                        .is_some_and(|value| value.plain() == *wanted)
            }
        }
    }
}
