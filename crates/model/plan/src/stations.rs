//! The stations that traffic comes from and goes to.

use serde::Serialize;

/// Settings of the stations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stations {
    /// IP MTU of their interfaces, in bytes.
    pub mtu: u16,
    /// Cores that the tools of each may use; the affinity is real.
    // As a key of the cell, `cores` would not say that each station has this number.
    #[serde(rename = "cores_per_station")]
    pub cores: u16,
    /// Whether TSO, GSO and GRO are on at the links' ends.
    pub offloads: bool,
}
