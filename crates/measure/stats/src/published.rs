//! Published figures of other systems, beside the measured ones.
//!
//! The ratio compares two machines: it shows the difference and has no verdict.

use crate::cell::CellResult;
use crate::estimate::Estimate;
use campaign::plan::PublishedUnit;
use journal::Journal;
use schemars::JsonSchema;
use serde::Serialize;

const BITS_PER_BYTE: f64 = 8.0;

/// A published figure and one cell that measures the same.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PublishedResult {
    /// Where it is published.
    pub source: String,
    /// The measured system.
    pub system: String,
    /// The measured quantity, in words.
    pub what: String,
    /// The figure.
    pub published: f64,
    /// Unit of both: `bytes_per_s`, `operations_per_s`, `bits_per_s` or `percent_of_devices`.
    pub unit: String,
    /// Id of the cell.
    pub cell: String,
    /// The DUT's name.
    pub dut: String,
    /// Measured figure; `null` if the cell has no such figure, and for shares of devices, which are
    /// in the batch of the fatigue trial.
    pub measured: Option<Estimate>,
    /// Measured by published.
    pub ratio: Option<f64>,
}

/// Each published figure beside each cell that measures the same, in the plan's order.
pub(crate) fn published(journal: &Journal, cells: &[CellResult]) -> Vec<PublishedResult> {
    let all = journal.header.plan.published.iter();
    all.flat_map(|figure| {
        let own = figure
            .cells
            .iter()
            .filter_map(|id| cells.iter().find(|cell| cell.id == *id));
        own.map(move |cell| {
            let value = figure.value as f64;
            let measured = measured(figure.unit, cell);
            PublishedResult {
                source: figure.source.clone(),
                system: figure.system.clone(),
                what: figure.what.clone(),
                published: value,
                unit: match figure.unit {
                    PublishedUnit::BytesPerS => "bytes_per_s".into(),
                    PublishedUnit::OperationsPerS => "operations_per_s".into(),
                    PublishedUnit::BitsPerS => "bits_per_s".into(),
                    PublishedUnit::PercentOfDevices => "percent_of_devices".into(),
                },
                cell: cell.id.clone(),
                dut: cell.dut.clone(),
                ratio: measured
                    .as_ref()
                    .filter(|_| value > 0.0)
                    .map(|found| found.mean / value),
                measured,
            }
        })
    })
    .collect()
}

/// Returns a cell's figure in this unit. Bits are those of a device's input, a tool's payload, or
/// frames with FCS in one direction.
fn measured(unit: PublishedUnit, cell: &CellResult) -> Option<Estimate> {
    let device = cell.device().and_then(|found| found.speed());
    match unit {
        PublishedUnit::BytesPerS => device?.bytes_per_s.clone(),
        PublishedUnit::OperationsPerS => Some(device?.operations_per_s.clone()),
        // The batch has the number of its devices in a class.
        PublishedUnit::PercentOfDevices => None,
        PublishedUnit::BitsPerS => match (device, cell.bulk(), cell.frames()) {
            (Some(device), ..) => Some(device.bytes_per_s.as_ref()?.scaled(BITS_PER_BYTE)),
            (_, Some(bulk), _) => Some(bulk.payload_throughput_bps.clone()),
            (.., Some(frames)) => match &frames.throughput {
                Some(found) => Some(found.goals.first()?.lower.as_ref()?.l2_bps.clone()),
                None => Some(frames.fastest()?.forwarded.l2_bps.clone()),
            },
            _ => None,
        },
    }
}
