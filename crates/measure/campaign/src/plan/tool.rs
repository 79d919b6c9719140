//! The tools that make bulk transfers.

use serde::{Deserialize, Serialize};

/// A program that sends and receives a bulk transfer. Two that disagree on one path are a reason to
/// look at both.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// iperf3, of ESnet: up to version 3.15 one thread for all streams of a process.
    #[default]
    Iperf3,
    /// iperf 2, a separate program from iperf3: a thread for each stream.
    Iperf2,
}

impl Tool {
    /// All, with their names in campaigns.
    pub const ALL: [(&'static str, Self); 2] = [("iperf3", Self::Iperf3), ("iperf2", Self::Iperf2)];

    /// Name in campaigns, ids and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iperf3 => "iperf3",
            Self::Iperf2 => "iperf2",
        }
    }

    /// Whether it is the default.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
