//! The ends of the test frames' path, and the configuration of a station that replaces the DUT's
//! peer.

use crate::NodeId;
use plan::{Carrier, Form};

/// The ends of the test frames' path.
///
/// The other direction (`duplex`) is [`FramePath::reversed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FramePath {
    /// Sends.
    pub source: FrameEnd,
    /// Receives.
    pub sink: FrameEnd,
}

impl FramePath {
    /// The end on that node: the source, or else the sink.
    pub fn end_at(&mut self, node: NodeId) -> &mut FrameEnd {
        if self.source.node == node {
            &mut self.source
        } else {
            &mut self.sink
        }
    }

    /// Whether it leads from station B's side to station A's.
    #[must_use]
    pub const fn begins_at_b(&self) -> bool {
        // A station that replaces gw2 sends from gw2's namespace: that is B's side too.
        matches!(self.source.node, NodeId::Gw2 | NodeId::B)
    }

    /// From the sink to the source.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self {
            source: self.sink.clone(),
            sink: self.source.clone(),
        }
    }
}

/// A station's end of the path of test frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameEnd {
    /// The network namespace: of A or B, or of the gateway that the station replaces.
    pub node: NodeId,
    /// Its interface.
    pub interface: String,
    /// MAC address of that interface.
    pub mac: [u8; 6],
    /// Destination MAC address of frames from here: the DUT's. Without a router it is an address
    /// that leads to the other end and belongs to no interface, so that the kernel there drops the
    /// frames immediately.
    pub next_hop_mac: [u8; 6],
    /// The interface's address, for which the kernel answers.
    pub address: std::net::Ipv4Addr,
    /// First address of the test network on this side: a /16 of 198.18.0.0/15 (RFC 2544 §C.2.2),
    /// routed here but assigned to no interface, so that no kernel answers or looks for a socket.
    /// Tunnel t has the t-th address after it.
    pub test_address: std::net::Ipv4Addr,
    /// The same for IPv6: a /64 of 2001:2::/48 (RFC 5180 §8).
    pub test_address_v6: std::net::Ipv6Addr,
    /// Set if the station replaces the DUT's peer here: it seals the packets it sends and opens
    /// those it receives.
    pub peer: Option<StationPeer>,
}

impl FrameEnd {
    /// Name of the gateway with its clear side here; `None` if a station seals or opens by itself,
    /// or no gateway is adjacent.
    #[must_use]
    pub const fn gateway_beside(&self) -> Option<&'static str> {
        match (self.node, &self.peer) {
            (NodeId::A, None) => Some(NodeId::Gw1.name()),
            (NodeId::B, None) => Some(NodeId::Gw2.name()),
            // A station in a gateway's place is next to the other gateway's sealed side only.
            _ => None,
        }
    }
}

/// Configuration of a station that replaces the DUT's peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StationPeer {
    /// The keys on the station.
    pub keys: StationKeys,
    /// Suite.
    pub suite: wire::Suite,
    /// Outer address of the station.
    pub local: std::net::Ipv4Addr,
    /// Outer address of the DUT.
    pub remote: std::net::Ipv4Addr,
    /// UDP port of lane 0; `None`: ESP is bare, with one lane.
    pub port: Option<u16>,
    /// Lanes.
    pub lanes: u16,
    /// Tunnels, with separate SAs: lane l of tunnel t has slot t × `lanes` + l.
    pub tunnels: u16,
}

/// The keys of a station that replaces the DUT's peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StationKeys {
    /// Static key file of the peer, next to its epoch file.
    File(String),
    /// Keys that an IKE daemon on the station has agreed on with the DUT.
    Ike {
        /// The daemon's log, with the keys of its SAs.
        log: String,
        /// File of the sequence numbers used so far.
        sequences: String,
    },
    /// File of the keys for the station's WireGuard handshakes, in the format of `wg setconf`.
    WireGuard(String),
}

impl StationPeer {
    /// Returns the format of the packets that it seals.
    #[must_use]
    pub const fn carrier(&self) -> Carrier {
        Carrier {
            // The kind of keys decides: a WireGuard device derives them in its handshakes, all
            // others seal ESP.
            form: match self.keys {
                StationKeys::WireGuard(_) => Form::WireGuard,
                StationKeys::File(_) | StationKeys::Ike { .. } => Form::Esp,
            },
            suite: self.suite,
            udp: self.port.is_some(),
        }
    }
}
