//! The gain of hybrids of crypto engines: each of our devices with several engines, compared with
//! the same device with each of them alone.

use super::contrast::{contrasts, quotients, twins};
use super::metric::Metric;
use crate::cell::CellResult;
use crate::figures::estimate::Estimate;
use journal::Journal;
use plan::{Adapter, Setting, Value};
use schemars::JsonSchema;
use serde::Serialize;

/// A quantity of a device with several engines, relative to its twin with one of them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HybridGain {
    /// The group that both cells belong to.
    pub group: String,
    /// Id of the hybrid's cell.
    pub cell: String,
    /// Id of the cell with one engine alone.
    pub alone_cell: String,
    /// The hybrid's name.
    pub dut: String,
    /// The other's name.
    pub alone: String,
    /// Suite of both.
    pub suite: String,
    /// The compared quantity.
    pub metric: Metric,
    /// Ratio to the single engine's figure in the same repeat.
    pub ratio: Estimate,
    /// Whether there surely is a difference, corrected (Holm) over all cells of the run by this
    /// quantity; `null` with fewer than two repeats.
    pub differs: Option<bool>,
}

/// Compares every hybrid with each of its engines that the campaign measures alone.
pub(crate) fn gains(journal: &Journal, results: &[CellResult]) -> Vec<HybridGain> {
    let engines_alone = |adapter: &Adapter| {
        let parts = adapter.encryptor().map(|ours| ours.engine.parts());
        // An engine alone has no parts, so only hybrids get pairs.
        let alone = parts.into_iter().flatten();
        alone
            .map(|engine| Value::Word(engine.to_string()))
            .collect()
    };
    let pairs = twins(journal, results, Setting::Engine, engines_alone);
    let gains = contrasts(pairs, quotients).into_iter().filter_map(|found| {
        let ours = found.pair.planned.dut.adapter.encryptor()?;
        Some(HybridGain {
            group: found.pair.cell.group.clone(),
            cell: found.pair.cell.id.clone(),
            alone_cell: found.pair.other.id.clone(),
            dut: found.pair.cell.dut.clone(),
            alone: found.pair.other.dut.clone(),
            suite: ours.suite.name().to_owned(),
            metric: found.metric,
            ratio: found.ratio,
            differs: found.differs,
        })
    });
    gains.collect()
}
