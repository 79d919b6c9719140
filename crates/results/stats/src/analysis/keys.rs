//! The cost of key sources: each of our devices with gateways that agree on keys, compared with the
//! same device with static keys.
//!
//! Both are measured in every repeat, one after the other, so the repeats form pairs: a drift
//! affects both and cancels in their quotient. The width of the interval of these quotients shows
//! how small a difference could have been detected.

use crate::analysis::compare::{Metric, Paired};
use crate::analysis::significance::Questions;
use crate::cell::CellResult;
use crate::figures::estimate::Estimate;
use journal::Journal;
use plan::{Cell, Encryptor, KeySource};
use schemars::JsonSchema;
use serde::Serialize;

/// One quantity of a device with agreed keys, relative to its twin with static keys.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct KeyCost {
    /// The group that both cells belong to.
    pub group: String,
    /// Id of the cell with agreed keys.
    pub cell: String,
    /// Id of the twin's cell.
    pub static_cell: String,
    /// The device's name.
    pub dut: String,
    /// Source of its keys: `pqc`, `ppk`, `qkd`, `both`.
    pub keys: String,
    /// Lifetime of a key, in nanoseconds.
    pub rekey_every_ns: u64,
    /// The compared quantity.
    pub metric: Metric,
    /// Ratio to the static twin's figure in the same repeat.
    pub ratio: Estimate,
    /// Whether there surely is a difference, corrected (Holm) over all cells of the run by this
    /// quantity; `null` with fewer than two repeats.
    pub differs: Option<bool>,
}

pub(crate) fn costs(journal: &Journal, results: &[CellResult]) -> Vec<KeyCost> {
    let planned = &journal.header.plan.cells;
    let twins = planned.iter().filter_map(|cell| {
        let ours = cell.dut.adapter.encryptor()?;
        if !ours.keys.is_agreed() {
            return None;
        }
        let twin = Encryptor {
            keys: KeySource::Static,
            rekey_every_ns: None,
            ..ours.clone()
        };
        let is_twin = |other: &&Cell| {
            other.group == cell.group && other.dut.adapter.encryptor() == Some(&twin)
        };
        Some((ours, cell, planned.iter().find(is_twin)?))
    });
    let result = |cell: &Cell| results.iter().find(|result| result.id == cell.id);
    let both = twins.filter_map(|(ours, cell, twin)| Some((ours, result(cell)?, result(twin)?)));
    let found = both.flat_map(|(ours, cell, twin)| {
        let all = Metric::ALL.into_iter();
        all.filter_map(move |metric| cost(ours, cell, twin, metric))
    });
    let found: Vec<(KeyCost, Option<f64>)> = found.collect();
    let questions = Questions::of(found.iter().map(|(cost, p)| (cost.metric, *p)));
    found
        .into_iter()
        .map(|(cost, p)| KeyCost {
            differs: questions.answer(&cost.metric, p),
            ..cost
        })
        .collect()
}

/// A cost, and the p-value of a difference.
fn cost(
    ours: &Encryptor,
    cell: &CellResult,
    twin: &CellResult,
    metric: Metric,
) -> Option<(KeyCost, Option<f64>)> {
    let Paired { ratio, p } = metric.paired(cell, twin)?;
    let cost = KeyCost {
        group: cell.group.clone(),
        cell: cell.id.clone(),
        static_cell: twin.id.clone(),
        dut: cell.dut.clone(),
        keys: ours.keys.name().to_owned(),
        rekey_every_ns: ours.rekey_every_ns.unwrap_or_default(),
        metric,
        ratio,
        differs: None,
    };
    Some((cost, p))
}
