//! Cables of a lab to third-party boxes.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// The cables to external boxes: interfaces of this machine that a run takes for its own while it
/// lasts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cables {
    /// The interface that leads to the first box: station A's.
    pub station_a: String,
    /// The interface that leads to the second box: station B's.
    pub station_b: String,
    /// The two ends of the link between the boxes, the first box's first: the tester joins them,
    /// and sees all that passes. `None`: they are joined elsewhere, unobserved.
    pub tap: Option<[String; 2]>,
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
        let tap = self.tap.iter().flatten().map(|name| ("tap", name));
        stations
            .into_iter()
            .chain(tap)
            .map(|(key, name)| (key, name.as_str()))
    }
}
