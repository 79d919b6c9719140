//! What others have published of systems of their own, to be printed beside what is measured here.

use serde::{Deserialize, Serialize};

/// A published figure, and the cells that measure the same. It changes nothing of what is measured,
/// and nothing is judged by it: other machines made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// Where it is published: `acceptance report of a crypto card, 2018`.
    pub source: String,
    /// What it was measured on: `card in host one`.
    pub system: String,
    /// What was measured, in words: `sha-256, 64 B`.
    pub what: String,
    /// The figure.
    pub value: u64,
    /// What it is counted in.
    pub unit: PublishedUnit,
    /// Ids of the cells that measure the same, of each DUT; at least one.
    pub cells: Vec<String>,
}

/// What a published figure is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublishedUnit {
    /// Bytes of input per second.
    BytesPerS,
    /// Operations per second.
    OperationsPerS,
    /// Bits of input per second, of devices; bits of payload per second, of tools.
    BitsPerS,
    /// Per cent of a batch of devices that worked without failure for as long as
    /// [`Published::what`] says: `3 h to 6 h`.
    PercentOfDevices,
}
