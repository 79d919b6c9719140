//! Published figures of other systems, to be printed beside measured ones.

use serde::{Deserialize, Serialize};
use std::fmt;
use units::Layer;

/// A published figure, and the cells that measure the same or nearly the same. It affects neither
/// measurement nor verdicts, since it is from another machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// Where it is published: `acceptance report of a crypto card, 2018`.
    pub source: String,
    /// The measured system: `card in host one`.
    pub system: String,
    /// The measured quantity, in words: `sha-256, 64 B`.
    pub what: String,
    /// The figure.
    pub value: u64,
    /// Its unit.
    pub unit: PublishedUnit,
    /// What a rate of traffic counts; `None` of crypto devices, and in journals of versions that
    /// did not record it. Without it a rate of traffic is compared with nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<RateBasis>,
    /// Ids of the cells beside which it is printed, of each DUT; at least one.
    pub cells: Vec<String>,
}

/// Unit of a published figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublishedUnit {
    /// Bytes of input per second.
    BytesPerS,
    /// Operations per second.
    OperationsPerS,
    /// Bits per second: of devices bits of input, of traffic as [`RateBasis`] says.
    BitsPerS,
    /// Per cent of a batch of devices that worked without failure for as long as
    /// [`Published::what`] says: `3 h to 6 h`.
    PercentOfDevices,
}

/// What a rate of traffic counts. Rates that differ in it are not comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateBasis {
    /// Kind of figure.
    pub kind: RateKind,
    /// The layer whose bits are counted.
    pub layer: RateLayer,
    /// Which directions are loaded and counted.
    pub direction: RateDirection,
}

/// Kind of a rate of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateKind {
    /// What a tool's receiver got (RFC 2647 §3.17): iperf over TCP.
    Goodput,
    /// Highest load of which no frame is lost (RFC 1242 §3.17, RFC 2544 §26.1; NDR).
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

impl RateLayer {
    /// The layer; `None` where the report does not state it.
    #[must_use]
    pub const fn stated(self) -> Option<Layer> {
        match self {
            Self::L1 => Some(Layer::L1),
            Self::L2 => Some(Layer::L2),
            Self::Ip => Some(Layer::Ip),
            Self::Payload => Some(Layer::Payload),
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
