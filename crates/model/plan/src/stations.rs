//! The stations that traffic comes from and goes to.

use crate::Dscp;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use strum::{IntoStaticStr, VariantArray};
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};

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
    /// The overlay network between them.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub overlay: Overlay,
    /// The class of service of the tools' packets; `None`: the tools' default, and not observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Dscp>,
}

impl Stations {
    /// IP MTU of the interface that the tools use, in bytes: of the overlay's if there is one.
    #[must_use]
    pub fn tool_mtu(self) -> u16 {
        self.mtu.saturating_sub(self.overlay.added_bytes())
    }
}

/// An overlay network between the stations, as clusters have it: an interface whose Ethernet frames
/// travel in UDP over IPv4 from station to station, through the DUT.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Overlay {
    /// None: tools use the stations' interfaces.
    #[default]
    None,
    /// VXLAN (RFC 7348).
    Vxlan,
    /// Geneve (RFC 8926), without options.
    Geneve,
}

/// Header of the Ethernet frame inside, without a tag.
const INNER_ETHERNET_BYTES: u16 = 14;
/// Header of VXLAN, and of Geneve without options.
const OVERLAY_HEADER_BYTES: u16 = 8;

impl Overlay {
    /// The stations' addresses inside, A's first: link-local (RFC 3927), so they collide with no
    /// lab's prefix.
    pub const ADDRESSES: [Ipv4Addr; 2] =
        [Ipv4Addr::new(169, 254, 1, 1), Ipv4Addr::new(169, 254, 1, 2)];

    /// Name in campaigns, ids and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Name for readers.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::None => "no overlay",
            Self::Vxlan => "VXLAN",
            Self::Geneve => "Geneve",
        }
    }

    /// Whether there is one.
    #[must_use]
    pub const fn is_some(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Bytes that it adds to an IP packet: headers of Ethernet, overlay, UDP and IPv4.
    #[must_use]
    pub const fn added_bytes(self) -> u16 {
        match self {
            Self::None => 0,
            Self::Vxlan | Self::Geneve => {
                let outer = (IPV4_HEADER_BYTES + UDP_HEADER_BYTES) as u16;
                INNER_ETHERNET_BYTES + OVERLAY_HEADER_BYTES + outer
            }
        }
    }

    /// UDP port of its packets, assigned by IANA; `None` without an overlay.
    #[must_use]
    pub const fn port(self) -> Option<u16> {
        match self {
            Self::None => None,
            Self::Vxlan => Some(4789),
            Self::Geneve => Some(6081),
        }
    }

    /// B's address for tools, if its interface has the address `outside`.
    #[must_use]
    pub const fn target(self, outside: Ipv4Addr) -> Ipv4Addr {
        match self {
            Self::None => outside,
            Self::Vxlan | Self::Geneve => Self::ADDRESSES[1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_takes_fifty_bytes_of_the_mtu() {
        let mtu = |overlay| {
            let stations = Stations {
                mtu: 1500,
                cores: 1,
                offloads: true,
                overlay,
                dscp: None,
            };
            stations.tool_mtu()
        };
        assert_eq!(mtu(Overlay::None), 1500);
        assert_eq!(mtu(Overlay::Vxlan), 1450);
        assert_eq!(mtu(Overlay::Geneve), 1450);
    }
}
