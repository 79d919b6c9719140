//! Published figures of other systems, to be printed beside measured ones.

use serde::{Deserialize, Serialize};

/// A published figure, and the cells that measure the same. It affects neither measurement nor
/// verdicts, since it is from another machine.
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
    /// Ids of the cells that measure the same, of each DUT; at least one.
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
    /// Bits of input per second, of devices; bits of payload per second, of tools.
    BitsPerS,
    /// Per cent of a batch of devices that worked without failure for as long as
    /// [`Published::what`] says: `3 h to 6 h`.
    PercentOfDevices,
}
