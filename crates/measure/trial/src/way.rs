//! The ends of the path by the way of a transfer's payload.

use lab::NodeId;
use plan::Way;

/// Returns the sending station and the receiving one.
pub(crate) const fn ends(way: Way) -> [NodeId; 2] {
    match way {
        Way::AToB => [NodeId::A, NodeId::B],
        Way::BToA => [NodeId::B, NodeId::A],
    }
}

/// Returns the names of the gateway that seals and of the one that opens.
pub(crate) const fn gateways(way: Way) -> [&'static str; 2] {
    match way {
        Way::AToB => ["gw1", "gw2"],
        Way::BToA => ["gw2", "gw1"],
    }
}
