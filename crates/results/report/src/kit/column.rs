//! Columns of `results.csv`.
//!
//! A column has a key, a meaning, and a function that reads it from a trial. Topics declare their
//! columns; those of axes are declared with the axes.

pub(crate) mod figure;

use figure::Figure;
use journal::record::TrialRecord;
use plan::{Axis, Cell};
use stats::{CellResult, ClaimResult, Standing};

/// A trial and the data of its row.
pub(crate) struct Context<'a> {
    pub(crate) cell: &'a CellResult,
    pub(crate) trial: &'a TrialRecord,
    /// Whether this is the last record of the trial.
    pub(crate) counts: bool,
    /// The figure of this row, as a trial may have several.
    pub(crate) figure: Figure<'a>,
    /// Ranks of the cell.
    pub(crate) standings: Standings<'a>,
    /// The cell of the plan.
    pub(crate) planned: Option<&'a Cell>,
    /// Claims about the cell.
    pub(crate) claims: &'a [&'a ClaimResult],
    /// Kinds of the warnings about the cell or about the whole run.
    pub(crate) warnings: String,
}

/// A column's key, its meaning, and the function that reads it from a trial.
pub(crate) type Declared = (
    &'static str,
    &'static str,
    fn(&Context<'_>) -> Option<String>,
);

/// A column, declared in a list of this module or by an axis.
pub(crate) enum Column {
    Declared(Declared),
    Axis(Axis, plan::Column),
}

impl Column {
    pub(crate) const fn key(&self) -> &'static str {
        match self {
            Self::Declared((key, ..)) => key,
            Self::Axis(_, column) => column.key,
        }
    }

    pub(crate) const fn meaning(&self) -> &'static str {
        match self {
            Self::Declared((_, meaning, _)) => meaning,
            Self::Axis(_, column) => column.meaning,
        }
    }

    pub(crate) fn read(&self, row: &Context<'_>) -> Option<String> {
        match self {
            Self::Declared((.., read)) => read(row),
            Self::Axis(axis, _) => Some(row.planned?.value(*axis)?.plain()),
        }
    }
}

pub(crate) fn text(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

/// Ranks of a cell.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Standings<'a> {
    /// By throughput or latency.
    pub(crate) main: Option<&'a Standing>,
    /// By CPU time.
    pub(crate) efficiency: Option<&'a Standing>,
}
