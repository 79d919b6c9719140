//! Published figures of other systems, compared with the measured ones.
//!
//! The ratio compares two machines: it shows the difference and has no verdict. It is given only if
//! both have the same basis: kind of figure, layer and directions.

use crate::cell::{CellFigures, CellResult};
use crate::figures::estimate::Estimate;
use crate::figures::frames::{FrameFigures, GoalResult, LayerRates};
use journal::Journal;
use plan::{
    Published, PublishedUnit, RateBasis, RateDirection, RateKind, RateLayer, TransferDirection,
};
use schemars::JsonSchema;
use serde::Serialize;
use units::Layer;

const BITS_PER_BYTE: f64 = 8.0;

/// A published figure and one cell that measures the same, or nearly.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PublishedResult {
    /// The publication.
    pub source: String,
    /// The measured system.
    pub system: String,
    /// The measured quantity, in words.
    pub what: String,
    /// The figure.
    pub published: f64,
    /// Unit of both: `bytes_per_s`, `operations_per_s`, `bits_per_s` or `percent_of_devices`.
    pub unit: String,
    /// Basis of a published traffic rate, as far as its report states it: kind, layer and
    /// directions; `null` for crypto devices, and in journals that do not record it.
    pub counts: Option<String>,
    /// The table of the report, its row and its column; `null` in journals that do not record it.
    pub at: Option<PublishedPlace>,
    /// Id of the cell.
    pub cell: String,
    /// The DUT's name.
    pub dut: String,
    /// Measured figure on the same basis; `null` if the cell has none, and for shares of devices,
    /// which are in the batch of the fatigue trial.
    pub measured: Option<Estimate>,
    /// Measured figure that cannot be compared; `refused` names its basis. `null` otherwise.
    pub measured_otherwise: Option<Estimate>,
    /// How the measured figure was converted to the published basis; `null` without conversion.
    pub converted: Option<String>,
    /// Measured by published; `null` if they cannot be compared.
    pub ratio: Option<f64>,
    /// Why they cannot be compared, as words after "not comparable:"; `null` if they can.
    pub refused: Option<String>,
}

/// A cell of a published table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PublishedPlace {
    /// Id of the table in its report; `figures` for figures outside tables.
    pub table: String,
    /// Name of the row.
    pub row: String,
    /// Heading of the column.
    pub column: String,
}

/// The measured side of a comparison.
#[derive(Debug, Default)]
struct Measured {
    figure: Option<Estimate>,
    otherwise: Option<Estimate>,
    converted: Option<String>,
    refused: Option<String>,
}

/// Compares each published figure with each of its cells, in the plan's order.
pub(crate) fn published(journal: &Journal, cells: &[CellResult]) -> Vec<PublishedResult> {
    let all = journal.header.plan.published.iter();
    all.flat_map(|figure| {
        let pairs = || journal.header.plan.cells.iter().zip(cells);
        let own = figure
            .cells
            .iter()
            .filter_map(move |id| pairs().find(|(planned, _)| planned.id == *id));
        own.map(move |(planned, cell)| {
            let value = figure.value as f64;
            let direction = planned.measurement.transfer_direction();
            let measured = measured(figure, cell, direction.unwrap_or_default());
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
                counts: figure.counts.map(|counts| counts.to_string()),
                at: figure.at.as_ref().map(|at| PublishedPlace {
                    table: at.table.clone(),
                    row: at.row.clone(),
                    column: at.column.clone(),
                }),
                cell: cell.id.clone(),
                dut: cell.dut.clone(),
                ratio: measured
                    .figure
                    .as_ref()
                    .filter(|_| value > 0.0)
                    .map(|found| found.mean / value),
                measured: measured.figure,
                measured_otherwise: measured.otherwise,
                converted: measured.converted,
                refused: measured.refused,
            }
        })
    })
    .collect()
}

/// Returns a cell's figure as the published one counts, or why it has none.
fn measured(figure: &Published, cell: &CellResult, direction: TransferDirection) -> Measured {
    let device = || cell.device().and_then(|found| found.speed());
    let plain = |figure: Option<Estimate>| Measured {
        figure,
        ..Measured::default()
    };
    match (figure.unit, &cell.figures) {
        (PublishedUnit::BytesPerS, _) => {
            plain(device().and_then(|found| found.bytes_per_s.clone()))
        }
        (PublishedUnit::OperationsPerS, _) => {
            plain(device().map(|found| found.operations_per_s.clone()))
        }
        // The batch has the number of its devices in a class.
        (PublishedUnit::PercentOfDevices, _) => Measured::default(),
        (PublishedUnit::BitsPerS, CellFigures::Device(_)) => {
            let bytes_per_s = device().and_then(|found| found.bytes_per_s.as_ref());
            plain(bytes_per_s.map(|found| found.scaled(BITS_PER_BYTE)))
        }
        (PublishedUnit::BitsPerS, figures) => match figure.counts {
            // Journals made before the basis was recorded: a ratio of different layers or
            // directions would mislead.
            None => refuse(
                "the journal does not record which layer and directions the published figure counts",
            ),
            Some(counts) => traffic(counts, figures, direction),
        },
    }
}

fn refuse(reason: impl Into<String>) -> Measured {
    Measured {
        refused: Some(reason.into()),
        ..Measured::default()
    }
}

/// A rate of traffic as the published one counts.
fn traffic(counts: RateBasis, figures: &CellFigures, direction: TransferDirection) -> Measured {
    let goodput = |figure: Option<&Estimate>| {
        let own = RateBasis {
            kind: RateKind::Goodput,
            layer: RateLayer::Payload,
            // The figure of a transfer both ways is the sum.
            direction: match direction {
                TransferDirection::Duplex => RateDirection::SumOfBoth,
                _ => RateDirection::OneWay,
            },
        };
        let found = Measured {
            figure: figure.cloned(),
            ..Measured::default()
        };
        (own, found)
    };
    let (own, found) = match figures {
        CellFigures::Tcp(bulk) | CellFigures::Udp(bulk) => {
            goodput(bulk.as_ref().map(|it| &it.payload_throughput_bps))
        }
        CellFigures::Frames(cell) => {
            let both = cell.traffic.duplex;
            let own = frames_basis(counts, both);
            (own, throughput(own, cell.figures.as_ref()))
        }
        _ => return refuse("no figure of the cell is a rate of traffic of that kind"),
    };
    if own == counts {
        found
    } else {
        Measured {
            otherwise: found.figure,
            ..refuse(format!("published is {counts}; measured is {own}"))
        }
    }
}

/// Returns the basis nearest to `counts` that a throughput of frames has: its bit rate is known at
/// each layer except payload, and as the sum of both directions if both are loaded.
fn frames_basis(counts: RateBasis, both: bool) -> RateBasis {
    RateBasis {
        kind: RateKind::Throughput,
        layer: match counts.layer {
            layer @ (RateLayer::L1 | RateLayer::L2 | RateLayer::Ip) => layer,
            RateLayer::Payload | RateLayer::Unstated => RateLayer::L2,
        },
        direction: match (both, counts.direction) {
            (true, RateDirection::SumOfBoth) => RateDirection::SumOfBoth,
            (true, _) => RateDirection::EachOfBoth,
            (false, _) => RateDirection::OneWay,
        },
    }
}

/// The highest load without loss, at a layer and over the directions of `counts`.
fn throughput(counts: RateBasis, frames: Option<&FrameFigures>) -> Measured {
    let Some(found) = frames.and_then(|frames| frames.throughput.as_ref()) else {
        return Measured::default();
    };
    // Vendors print the highest load without any loss (RFC 2544 §26.1), so a goal that allows some
    // is no counterpart.
    let lossless = |goal: &&GoalResult| goal.parameters.loss_ratio_ppm == 0;
    let Some(goal) = found.goals.iter().find(lossless) else {
        return refuse(
            "published is a load without any loss; the goals of the measured loads allow some",
        );
    };
    let Some(rates) = &goal.lower else {
        return Measured::default();
    };
    let (rate, layer) = at(rates, counts.layer);
    let per_direction = format!("frame rate of one direction, at {layer} by the frames' mean size");
    let (figure, converted) = match counts.direction {
        // The search loads both directions with the same rate.
        RateDirection::SumOfBoth => (rate.scaled(2.0), format!("{per_direction}, times two")),
        _ => (rate.clone(), per_direction),
    };
    Measured {
        figure: Some(figure),
        converted: Some(converted),
        ..Measured::default()
    }
}

/// A frame rate in bits per second of a layer.
const fn at(rates: &LayerRates, layer: RateLayer) -> (&Estimate, Layer) {
    match layer {
        RateLayer::L1 => (&rates.l1_bps, Layer::L1),
        RateLayer::Ip => (&rates.ip_bps, Layer::Ip),
        _ => (&rates.l2_bps, Layer::L2),
    }
}
