//! The cost of key sources: each of our devices with gateways that agree on keys, compared with the
//! same device with static keys.
//!
//! The width of the interval of the quotients shows how small a difference could have been
//! detected.

use super::contrast::{contrasts, quotients, twins};
use super::metric::Metric;
use crate::cell::CellResult;
use crate::figures::estimate::Estimate;
use journal::Journal;
use plan::{Adapter, KeySource, Setting, Value};
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
    let static_twin = |adapter: &Adapter| {
        let agrees = adapter
            .encryptor()
            .is_some_and(|ours| ours.keys.is_agreed());
        let name = KeySource::Static.name().to_owned();
        // A device with static keys has no twin here, as it would be compared with itself.
        agrees.then_some(Value::Word(name)).into_iter().collect()
    };
    let pairs = twins(journal, results, Setting::Keys, static_twin);
    let costs = contrasts(pairs, quotients).into_iter().filter_map(|found| {
        let ours = found.pair.planned.dut.adapter.encryptor()?;
        Some(KeyCost {
            group: found.pair.cell.group.clone(),
            cell: found.pair.cell.id.clone(),
            static_cell: found.pair.other.id.clone(),
            dut: found.pair.cell.dut.clone(),
            keys: ours.keys.name().to_owned(),
            rekey_every_ns: ours.rekey_every_ns.unwrap_or_default(),
            metric: found.metric,
            ratio: found.ratio,
            differs: found.differs,
        })
    });
    costs.collect()
}
