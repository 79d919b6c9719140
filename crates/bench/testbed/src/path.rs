//! The interfaces of the built-in lab, by which trials and records name them.

use crate::NodeId;

/// An end of a link: a node and its interface.
pub type End = (NodeId, &'static str);

/// The path's interfaces in the order that traffic from A crosses them: both ends of A's link, of
/// the cipher link and of B's link. With elements, the cipher link's two ends belong to two links.
pub const PATH: [End; 6] = [
    (NodeId::A, "a0"),
    (NodeId::Gw1, "a1"),
    (NodeId::Gw1, "w0"),
    (NodeId::Gw2, "w1"),
    (NodeId::Gw2, "b1"),
    (NodeId::B, "b0"),
];

/// Both ends of the link past the gateways, A's first.
pub const DIRECT: [End; 2] = [(NodeId::A, "c0"), (NodeId::B, "c1")];

/// Name of the interface of an overlay network on either station.
pub const OVERLAY_INTERFACE: &str = "ov0";

/// Returns the names of [`PATH`]: `node/interface`.
#[must_use]
pub fn path_interfaces() -> [String; 6] {
    PATH.map(name)
}

/// Returns the names of [`DIRECT`]: `node/interface`.
#[must_use]
pub fn direct_interfaces() -> [String; 2] {
    DIRECT.map(name)
}

fn name((node, interface): End) -> String {
    format!("{}/{interface}", node.name())
}
