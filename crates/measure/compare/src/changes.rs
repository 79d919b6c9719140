//! The changes of the quantities of cells, and how sure they are.

use crate::cells::{Pair, Pairs};
use serde::Serialize;
use stats::{CellResult, Change, Needed, Pairing, Quantity, Reading, Status};
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
    #[serde(skip)]
    pub(crate) statistics: Statistics,
}

/// What a change was computed from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Statistics {
    change: Change,
    alpha: f64,
    /// Standard deviation of the repeats by their mean, of the base and of the other run.
    scatter: [f64; 2],
}

/// A cell that both runs have, and that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WithoutChange {
    /// Id of the base's cell.
    pub cell: String,
    /// Why.
    pub reason: String,
    /// What the base and the other run lack.
    #[serde(skip)]
    pub(crate) lacks: [Option<Lack>; 2],
}

/// Why a run has no figure of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Evidence speaks against a repeat.
    Invalid,
    /// Every repeat failed.
    Failed,
    /// It was not measured yet.
    NotRun,
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

    /// What would decide on which side of a ratio the change is.
    pub(crate) fn needed(&self, bound: f64) -> Needed {
        let Statistics { change, alpha, .. } = self.statistics;
        change.needed(bound, self.base_repeats.min(self.other_repeats), alpha)
    }

    /// The larger scatter of both runs' repeats, in per cent of their mean.
    pub(crate) fn scatter_percent(&self) -> f64 {
        let [base, other] = self.statistics.scatter;
        100.0 * base.max(other)
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
        // A gate decides without a reader: evidence against one repeat is enough for it.
        if [pair.base.result, pair.other.result]
            .iter()
            .any(|cell| cell.repeats.invalid > 0)
        {
            without.push(WithoutChange::of(pair));
            continue;
        }
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
            without.push(WithoutChange::of(pair));
        }
    }
    Found {
        changes,
        pairing,
        without,
    }
}

impl Lack {
    fn of(cell: &CellResult) -> Option<Self> {
        match cell.status {
            Status::Partly if cell.repeats.invalid > 0 => Some(Self::Invalid),
            Status::Measured | Status::Partly => None,
            Status::Invalid => Some(Self::Invalid),
            Status::Failed => Some(Self::Failed),
            Status::NotRun => Some(Self::NotRun),
        }
    }
}

impl WithoutChange {
    fn of(pair: Pair<'_>) -> Self {
        let results = [pair.base.result, pair.other.result];
        let lacks = results.map(Lack::of);
        let runs = ["the base's", "the other run's"];
        let reason = |((run, cell), lack): ((&str, &CellResult), Option<Lack>)| {
            let found = match lack? {
                Lack::Invalid if cell.status == Status::Partly => "has an invalid repeat",
                Lack::Invalid => "is invalid",
                Lack::Failed => "failed",
                Lack::NotRun => "was not run",
            };
            let first = cell.reasons.first().map(stats::Reason::in_short);
            let reason = first.map(|reason| format!(": {reason}"));
            Some(format!("{run} {found}{}", reason.unwrap_or_default()))
        };
        let reasons = runs.into_iter().zip(results).zip(lacks);
        let reasons: Vec<String> = reasons.filter_map(reason).collect();
        Self {
            cell: pair.base.planned.id.clone(),
            reason: match reasons.is_empty() {
                true => "it has no quantity whose ratio is known in both".to_owned(),
                false => reasons.join("; "),
            },
            lacks,
        }
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
                statistics: Statistics {
                    change: *change,
                    alpha,
                    scatter: [scatter(base), scatter(other)],
                },
            }
        });
        let mut all: Vec<CellChange> = all.collect();
        all.sort_by(order);
        all
    }
}

fn scatter(reading: &Reading) -> f64 {
    let deviation = reading.value.standard_deviation.unwrap_or_default();
    match reading.value.mean > 0.0 {
        true => deviation / reading.value.mean,
        false => 0.0,
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
