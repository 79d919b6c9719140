//! The tools that make bulk transfers.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// A program that sends and receives a bulk transfer. If two disagree on one path, check both.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Tool {
    /// iperf3, of ESnet: up to version 3.15 one thread for all streams of a process.
    #[default]
    // Journals without the key have transfers by this one.
    Iperf3,
    /// iperf 2, a separate program from iperf3: a thread for each stream.
    Iperf2,
}

impl Tool {
    /// Name in campaigns, ids and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Which way the payload of a transfer by a tool goes. The client is always on station A.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum TransferDirection {
    /// From station A to station B.
    #[default]
    AToB,
    /// From B to A: the client asks the server to send.
    BToA,
    /// Both at the same time, over separate connections or flows.
    Duplex,
}

/// One direction of the traffic between the stations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum FlowDirection {
    /// From station A to station B.
    AToB,
    /// From station B to station A.
    BToA,
}

impl TransferDirection {
    /// All, with their names in campaigns.
    pub const ALL: [(&'static str, Self); 3] = [
        ("a-to-b", Self::AToB),
        ("b-to-a", Self::BToA),
        ("duplex", Self::Duplex),
    ];

    /// Name in campaigns, ids and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The ways that carry payload.
    #[must_use]
    pub const fn ways(self) -> &'static [FlowDirection] {
        match self {
            Self::AToB => &[FlowDirection::AToB],
            Self::BToA => &[FlowDirection::BToA],
            // In the order of records and reports: a transfer, then its reverse.
            Self::Duplex => &[FlowDirection::AToB, FlowDirection::BToA],
        }
    }
}

impl FlowDirection {
    /// Name in tables and machine-readable output.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}
