//! The changes of the quantities of cells, and how sure they are.

use crate::cells::{Pair, Pairs};
use serde::Serialize;
use stats::{CellResult, Change, Pairing, Quantity, Reading, Status};
use std::cmp::Ordering;

/// What is known of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The whole interval is worse than no change.
    Regression,
    /// The whole interval is better.
    Improvement,
    /// The interval contains no change, and changes beyond the margin; or there is none.
    Undecided,
    /// The interval contains no change, and none beyond the margin.
    Unchanged,
}

/// A quantity of a cell in the base and in the other run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellChange {
    /// Id of the base's cell.
    pub cell: String,
    /// Id of the other run's cell, where it has another one.
    pub other_cell: Option<String>,
    /// The quantity.
    pub quantity: Quantity,
    /// Of latency under several loads: the load in per cent of the throughput; 0 is the lowest one.
    pub load_percent: Option<u8>,
    /// Mean in the base, in the unit of the quantity.
    pub base: f64,
    /// Mean in the other run.
    pub other: f64,
    /// Repeats measured in the base.
    pub base_repeats: u32,
    /// Repeats measured in the other run.
    pub other_repeats: u32,
    /// Whether repeats form pairs.
    pub paired: bool,
    /// The other run's by the base's: ratio of the geometric means.
    pub ratio: f64,
    /// Lower end of its simultaneous interval; `null` where the scatter is unknown.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// What is known of it.
    pub direction: Direction,
    /// Whether the cell measures the tester: no gate applies to it.
    pub calibration: bool,
}

/// A cell that both runs have, and that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WithoutChange {
    /// Id of the base's cell.
    pub cell: String,
    /// Why.
    pub reason: String,
}

impl CellChange {
    /// Of a quantity with its load: `p99 at 50 %`.
    #[must_use]
    pub fn quantity_in_words(&self) -> String {
        match self.load_percent {
            None => self.quantity.word().to_owned(),
            Some(0) => format!("{} at the lowest load", self.quantity.word()),
            Some(percent) => format!("{} at {percent} %", self.quantity.word()),
        }
    }

    /// The interval, if there is one.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// Distance from no change, on logarithms.
    fn size(&self) -> f64 {
        self.ratio.ln().abs()
    }
}

/// The changes of two runs before their level is known.
pub(crate) struct Found<'a> {
    changes: Vec<(Pair<'a>, Reading, Reading, Change)>,
    pairing: Pairing,
    pub(crate) without: Vec<WithoutChange>,
}

pub(crate) fn found<'a>(pairs: &Pairs<'a>) -> Found<'a> {
    let pairing = pairs.pairing;
    let (mut changes, mut without) = (Vec::new(), Vec::new());
    for &pair in &pairs.both {
        let others = pair.other.result.readings();
        let before = changes.len();
        for base in pair.base.result.readings() {
            let same = |other: &&Reading| {
                (other.quantity, other.load_percent) == (base.quantity, base.load_percent)
            };
            if let Some(other) = others.iter().find(same)
                && let Some(change) = Change::of(&base, other, pairing)
            {
                changes.push((pair, base, other.clone(), change));
            }
        }
        if changes.len() == before {
            without.push(WithoutChange {
                cell: pair.base.planned.id.clone(),
                reason: why_not(pair),
            });
        }
    }
    Found {
        changes,
        pairing,
        without,
    }
}

fn why_not(pair: Pair<'_>) -> String {
    let of = |run: &str, cell: &CellResult| {
        let status = match cell.status {
            Status::Measured | Status::Partly => return None,
            Status::Invalid => "is invalid",
            Status::Failed => "failed",
            Status::NotRun => "was not run",
        };
        let first = cell.reasons.first().map(stats::Reason::in_short);
        let reason = first.map(|reason| format!(": {reason}"));
        Some(format!("{run} {status}{}", reason.unwrap_or_default()))
    };
    let base = of("the base's", pair.base.result);
    let other = of("the other run's", pair.other.result);
    let reasons: Vec<String> = base.into_iter().chain(other).collect();
    match reasons.is_empty() {
        true => "it has no quantity whose ratio is known in both".to_owned(),
        false => reasons.join("; "),
    }
}

impl Found<'_> {
    /// Number of intervals.
    pub(crate) fn intervals(&self) -> usize {
        let changes = self.changes.iter();
        changes.filter(|(.., change)| change.has_interval()).count()
    }

    /// With intervals that miss with this chance, in the order of [`crate::RunPair::changes`].
    pub(crate) fn changes(&self, alpha: f64, margin_percent: f64) -> Vec<CellChange> {
        let all = self.changes.iter().map(|(pair, base, other, change)| {
            let interval = change.interval(alpha);
            let id = &pair.other.planned.id;
            let same = pair.base.planned.id == *id;
            CellChange {
                cell: pair.base.planned.id.clone(),
                other_cell: (!same).then(|| id.clone()),
                quantity: base.quantity,
                load_percent: base.load_percent,
                base: base.value.mean,
                other: other.value.mean,
                base_repeats: base.value.n,
                other_repeats: other.value.n,
                paired: self.pairing == Pairing::Blocks,
                ratio: change.ratio(),
                low: interval.map(|(low, _)| low),
                high: interval.map(|(_, high)| high),
                direction: direction(interval, base.quantity, margin_percent),
                calibration: pair.base.planned.calibration,
            }
        });
        let mut all: Vec<CellChange> = all.collect();
        all.sort_by(order);
        all
    }
}

fn direction(interval: Option<(f64, f64)>, quantity: Quantity, margin_percent: f64) -> Direction {
    let Some((low, high)) = interval else {
        return Direction::Undecided;
    };
    let margin = margin_percent / 100.0;
    let worse = match quantity.higher_is_better() {
        true => high < 1.0,
        false => low > 1.0,
    };
    if worse {
        Direction::Regression
    } else if high < 1.0 || low > 1.0 {
        Direction::Improvement
    } else if low > 1.0 - margin && high < 1.0 + margin {
        Direction::Unchanged
    } else {
        Direction::Undecided
    }
}

/// By direction, then the largest change first. A stable sort keeps the plan's order of equals.
fn order(a: &CellChange, b: &CellChange) -> Ordering {
    let by_size = b.size().total_cmp(&a.size());
    a.direction.cmp(&b.direction).then(by_size)
}
