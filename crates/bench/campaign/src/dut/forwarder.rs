//! Reads boxes that forward in clear.

use super::entry::{Entry, Variants, name};
use crate::axis::axis;
use yaml::{Map, Node, Reported};

/// Reads a router: whether it translates addresses. Of two, the one that does has it in its name.
pub(super) fn read_router(map: &Map<'_>) -> Result<Entry<bool>, Reported> {
    let name = name(map, "router");
    let nats = axis(map, "nat", false, Node::bool);
    let set = |it: &mut bool, nat: bool| {
        *it = nat;
        if nat { "nat" } else { "" }
    };
    Variants::of(false).by(nats, set).named(name)
}
