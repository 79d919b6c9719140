//! The gain of hybrids of crypto engines: each of our devices with several engines, compared with
//! the same device with each of them alone.

use crate::analysis::compare::{Metric, Paired};
use crate::analysis::significance::Questions;
use crate::cell::CellResult;
use crate::figures::estimate::Estimate;
use journal::Journal;
use plan::{Cell, Encryptor};
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
    let planned = &journal.header.plan.cells;
    let result = |cell: &Cell| results.iter().find(|result| result.id == cell.id);
    let mut found: Vec<(HybridGain, Option<f64>)> = Vec::new();
    for cell in planned {
        let Some(ours) = cell.dut.adapter.encryptor() else {
            continue;
        };
        for engine in ours.engine.parts() {
            let twin = Encryptor {
                engine,
                ..ours.clone()
            };
            let alone = planned.iter().find(|other| {
                other.group == cell.group && other.dut.adapter.encryptor() == Some(&twin)
            });
            let both = alone.and_then(|alone| Some((result(cell)?, result(alone)?)));
            if let Some((hybrid, alone)) = both {
                let suite = ours.suite.name();
                let all = Metric::ALL.into_iter();
                found.extend(all.filter_map(|metric| gain(suite, hybrid, alone, metric)));
            }
        }
    }
    let questions = Questions::of(found.iter().map(|(gain, p)| (gain.metric, *p)));
    found
        .into_iter()
        .map(|(gain, p)| HybridGain {
            differs: questions.answer(&gain.metric, p),
            ..gain
        })
        .collect()
}

/// A gain, and the p-value of a difference.
fn gain(
    suite: &str,
    hybrid: &CellResult,
    alone: &CellResult,
    metric: Metric,
) -> Option<(HybridGain, Option<f64>)> {
    let Paired { ratio, p } = metric.paired(hybrid, alone)?;
    let gain = HybridGain {
        group: hybrid.group.clone(),
        cell: hybrid.id.clone(),
        alone_cell: alone.id.clone(),
        dut: hybrid.dut.clone(),
        alone: alone.dut.clone(),
        suite: suite.to_owned(),
        metric,
        ratio,
        differs: None,
    };
    Some((gain, p))
}
