//! Claims about a device, printed next to measured figures.

use crate::words::time;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use units::{BitRate, FrameRate, Layer};

/// A figure from a data sheet or an offer, with its source. It does not affect the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The DUT of the claim, by its name in the campaign: one, or every DUT of an entry with lists
    /// as settings.
    pub dut: String,
    /// The trial that measures it ([`Measurement::name`](super::Measurement::name)).
    pub trial: String,
    /// Whether the figure is a minimum or a maximum.
    pub bound: Bound,
    /// The figure.
    pub value: u64,
    /// Its unit.
    pub unit: ClaimUnit,
    /// Goal of the search that the claim concerns; `None`: the first.
    pub goal: Option<String>,
    /// Load of a claimed latency, in per cent of the throughput; `None`: every measured load.
    pub load_percent: Option<u8>,
    /// For a time, the statistic; `None`: the claim is not a time, or the trial has only one.
    pub percentile: Option<Percentile>,
    /// Publication: `data sheet X, 2025`.
    pub source: String,
    /// Conditions of the claim; empty: the source states none.
    pub conditions: String,
    /// Ids of the cells that measure it; at least one.
    pub cells: Vec<String>,
}

/// Which side of a claim's figure meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// That or more.
    AtLeast,
    /// That or less.
    AtMost,
}

/// Unit of a claim's figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimUnit {
    /// Bits of payload per second, of tools.
    PayloadBps,
    /// Bits per second, preamble and gap counted.
    L1Bps,
    /// Bits of frames with FCS per second.
    L2Bps,
    /// Bits of IP packets per second.
    IpBps,
    /// Frames per second.
    FramesPerS,
    /// Nanoseconds.
    Ns,
}

/// The statistic of a trial's times that a claim is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Percentile {
    /// The median.
    P50,
    /// The 99th percentile.
    P99,
}

impl Bound {
    /// Wording: `at least` or `at most`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtLeast => "at least",
            Self::AtMost => "at most",
        }
    }
}

impl Percentile {
    /// Name in campaigns.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl ClaimUnit {
    /// The layer of a bit rate; `None` for other units.
    #[must_use]
    pub const fn layer(self) -> Option<Layer> {
        match self {
            Self::PayloadBps => Some(Layer::Payload),
            Self::L1Bps => Some(Layer::L1),
            Self::L2Bps => Some(Layer::L2),
            Self::IpBps => Some(Layer::Ip),
            // A frame rate is the same number on every layer.
            Self::FramesPerS | Self::Ns => None,
        }
    }
}

impl Claim {
    /// The figure with its bound, exact: `at least 10 Gbit/s payload`, `at most 50 µs`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let figure = match (self.unit.layer(), self.unit) {
            (Some(layer), _) => format!("{:#}", BitRate::new(self.value, layer)),
            (None, ClaimUnit::Ns) => time(self.value),
            (None, _) => FrameRate::new(self.value).to_string(),
        };
        format!("{} {figure}", self.bound.name())
    }

    /// The measured quantity: `tcp`, `throughput, goal pdr`, `latency, p99 at 50 % of the
    /// throughput`.
    #[must_use]
    pub fn measure_in_words(&self) -> String {
        let mut words = self.trial.clone();
        if let Some(goal) = &self.goal {
            words.push_str(&format!(", goal {goal}"));
        }
        if let Some(percentile) = self.percentile {
            words.push_str(&format!(", {}", percentile.name()));
        }
        if let Some(percent) = self.load_percent {
            words.push_str(&format!(" at {percent} % of the throughput"));
        }
        words
    }
}
