//! Published figures of other systems, printed next to measured ones.

use crate::Axis;
use serde::{Deserialize, Serialize};
use std::fmt;
use units::Layer;

/// A published figure, and the cells that measure the same or nearly the same. It affects neither
/// measurement nor verdicts, since it is from another machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// Publication: `acceptance report of a crypto card, 2018`.
    pub source: String,
    /// The measured system: `card in host one`.
    pub system: String,
    /// The measured quantity, in words: `sha-256, 64 B`.
    pub what: String,
    /// The figure.
    pub value: u64,
    /// Its unit.
    pub unit: PublishedUnit,
    /// Basis of a rate of traffic; `None` for crypto devices, and in journals of versions that did
    /// not record it. Without it, a rate of traffic is not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<RateBasis>,
    /// Position in its report; `None` in journals of versions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<PublishedAt>,
    /// Ids of the cells that it is printed next to, for each DUT; at least one.
    pub cells: Vec<String>,
}

/// A cell of a published table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PublishedAt {
    /// Id of the table in its report, [`PublishedTable::id`].
    pub table: String,
    /// Its row, [`PublishedRow::name`].
    pub row: String,
    /// Its column, one of [`PublishedTable::columns`].
    pub column: String,
}

/// The parts of a published report that are printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedReport {
    /// Publication, [`Published::source`].
    pub source: String,
    /// Why its figures differ from measured ones: hardware, medium; one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
    /// Whether the plan is the short form of a campaign, which omits figures that the campaign
    /// measures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub short: bool,
    /// Its tables, in its order; figures outside tables are the last one.
    pub tables: Vec<PublishedTable>,
    /// Its drawings without numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charts: Vec<PublishedChart>,
}

/// A published table as its report prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedTable {
    /// Its number or name in the report.
    pub id: String,
    /// The measured quantity.
    pub title: String,
    /// Why measured figures differ from these in particular; one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
    /// Why it is not measured; one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
    /// The axis that row names are values of; `None`: plain names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_by: Option<Axis>,
    /// Columns that no cell measures, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<(String, String)>,
    /// Headings of the columns, except the column of row names.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<PublishedRow>,
}

/// A row of a published table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedRow {
    /// Its name.
    pub name: String,
    /// One for each column; `None` if the report has no figure.
    pub cells: Vec<Option<PublishedCell>>,
    /// The mean of the row's frame rates, if the report prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_frame_rate: Option<PublishedCell>,
    /// Why the row is not measured; one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

/// A figure as its report prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedCell {
    /// The text: `14.0 ± 0.9`.
    pub text: String,
    /// Its unit; may be empty.
    pub unit: String,
    /// Factor from this unit to the unit of [`Published::value`]: 10⁹ for Gbit/s.
    pub scale: u64,
}

/// A drawing without numbers in a published report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedChart {
    /// Its number in the report.
    pub id: String,
    /// Its subject.
    pub title: String,
    /// Id of the section of Cipherbench's report that shows the same; `None`: none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// Why Cipherbench's report does not show it; one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

/// Unit of a published figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublishedUnit {
    /// Bytes of input per second.
    BytesPerS,
    /// Operations per second.
    OperationsPerS,
    /// Bits per second: bits of input for devices, the bits of [`RateBasis`] for traffic.
    BitsPerS,
    /// Per cent of a batch of devices that worked without failure for the time in
    /// [`Published::what`]: `3 h to 6 h`.
    PercentOfDevices,
}

/// Basis of a rate of traffic. Rates with different bases are not comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
// A key that this version does not know could make two rates incomparable.
#[serde(deny_unknown_fields)]
pub struct RateBasis {
    /// Kind of figure.
    pub kind: RateKind,
    /// The counted layer.
    pub layer: RateLayer,
    /// Which directions are loaded and counted.
    pub direction: RateDirection,
}

/// Kind of a rate of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateKind {
    /// Rate at a tool's receiver (RFC 2647 §3.17): iperf over TCP.
    Goodput,
    /// Highest load without frame loss (RFC 1242 §3.17, RFC 2544 §26.1; NDR).
    Throughput,
    /// The report does not state it.
    Unstated,
}

/// Layer of a rate of traffic, as in [`units::Layer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RateLayer {
    /// Frames with preamble and gap.
    L1,
    /// Frames, FCS included.
    L2,
    /// IP packets.
    // As rates are printed: `1 Gbit/s IP`.
    #[serde(rename = "IP")]
    Ip,
    /// Transport payload.
    #[serde(rename = "payload")]
    Payload,
    /// The report does not state it.
    #[serde(rename = "unstated")]
    Unstated,
}

/// Directions of a rate of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateDirection {
    /// One direction is loaded.
    OneWay,
    /// Both are loaded, and one is counted.
    EachOfBoth,
    /// Both are loaded, and their rates are added.
    SumOfBoth,
    /// The report does not state it.
    Unstated,
}

impl From<Layer> for RateLayer {
    fn from(layer: Layer) -> Self {
        match layer {
            Layer::L1 => Self::L1,
            Layer::L2 => Self::L2,
            Layer::Ip => Self::Ip,
            Layer::Payload => Self::Payload,
        }
    }
}

impl RateLayer {
    /// The layer; `None` if the report does not state it.
    #[must_use]
    pub const fn stated(self) -> Option<Layer> {
        match self {
            Self::L1 => Some(Layer::L1),
            Self::L2 => Some(Layer::L2),
            Self::Ip => Some(Layer::Ip),
            Self::Payload => Some(Layer::Payload),
            // Many reports print a rate without its layer.
            Self::Unstated => None,
        }
    }
}

/// For tables: `goodput of payload, sum of both directions`.
impl fmt::Display for RateBasis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            RateKind::Goodput => "goodput",
            RateKind::Throughput => "throughput",
            RateKind::Unstated => "a rate of a kind that is not stated",
        })?;
        match self.layer.stated() {
            Some(Layer::Payload) => f.write_str(" of payload")?,
            Some(layer) => write!(f, " at {layer}")?,
            None => f.write_str(" at a layer that is not stated")?,
        }
        f.write_str(match self.direction {
            RateDirection::OneWay => ", one direction",
            RateDirection::EachOfBoth => ", one of both directions",
            RateDirection::SumOfBoth => ", sum of both directions",
            RateDirection::Unstated => ", direction not stated",
        })
    }
}
