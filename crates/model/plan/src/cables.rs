//! Cables of a lab to third-party boxes.

use super::HostName;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// The cables to external boxes: interfaces of this machine, or of the hosts that the stations are
/// on, which a run occupies while it lasts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cables {
    /// The interface that leads to the first box: station A's.
    pub station_a: String,
    /// The interface that leads to the second box: station B's.
    pub station_b: String,
    /// The two ends of the link between the boxes, the first box's first: the tester joins them,
    /// and sees all that passes. `None`: they are joined elsewhere, unobserved.
    pub tap: Option<[String; 2]>,
    /// The host that both ends of the tap are on; `None` without a tap, and on one machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tap_host: Option<HostName>,
    /// The first box's address at A's cable.
    pub gateway_a: Ipv4Addr,
    /// The second box's address at B's cable.
    pub gateway_b: Ipv4Addr,
}

impl Cables {
    /// All interfaces, each with the key that names it.
    pub fn interfaces(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let stations = [
            ("station_a", &self.station_a),
            ("station_b", &self.station_b),
        ];
        // Both ends are the value of one key.
        let tap = self.tap.iter().flatten().map(|name| ("tap", name));
        stations
            .into_iter()
            .chain(tap)
            .map(|(key, name)| (key, name.as_str()))
    }

    /// The interfaces of a host, for stations on two hosts.
    pub fn interfaces_on(&self, host: HostName) -> impl Iterator<Item = &str> {
        let is_there = move |key: &str| match key {
            "station_a" => host == HostName::A,
            "station_b" => host == HostName::B,
            // Both ends of a tap are on one host, since it forwards between them.
            _ => self.tap_host == Some(host),
        };
        self.interfaces()
            .filter(move |(key, _)| is_there(key))
            .map(|(_, name)| name)
    }
}
