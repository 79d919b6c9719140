//! The ends of the path by the way of a transfer's payload.

use plan::FlowDirection;
use testbed::NodeId;

/// Returns the sending station and the receiving one.
pub(crate) const fn ends(way: FlowDirection) -> [NodeId; 2] {
    match way {
        FlowDirection::AToB => [NodeId::A, NodeId::B],
        FlowDirection::BToA => [NodeId::B, NodeId::A],
    }
}

/// Returns the names of the gateway that seals and of the one that opens.
pub(crate) const fn gateways(way: FlowDirection) -> [&'static str; 2] {
    match way {
        FlowDirection::AToB => ["gw1", "gw2"],
        FlowDirection::BToA => ["gw2", "gw1"],
    }
}
