//! A Linux bridge on a node: as a DUT, and as an element of the path.

use crate::on_node::{ask, ip, parse_json, run_tool};
use crate::sync::await_true;
use crate::topology::{Port, mac};
use serde::Deserialize;
use std::time::Duration;
use testbed::protocol::Program;
use testbed::{ElementId, Node, NodeId, Result};

/// The bridge's interface.
pub(crate) const NAME: &str = "br0";

/// Time limit until its ports forward. Without a spanning tree they forward immediately.
pub(crate) const READY_LIMIT: Duration = Duration::from_secs(5);
const READY_INTERVAL: Duration = Duration::from_millis(5);

/// Creates a bridge of two interfaces, with static entries for the addresses behind them, so that
/// no frame is flooded.
pub(crate) fn make(node: &dyn Node, ports: &[Port; 2]) -> Result<()> {
    join(node, ports.each_ref().map(|port| port.interface))?;
    let mut known = String::new();
    for Port {
        interface,
        known: stations,
    } in ports
    {
        // By address and not learnt: a learnt entry ages, and frames to it would go to all ports.
        for &station in stations {
            let station = mac(station);
            known += &format!("fdb replace {station} dev {interface} master static\n");
        }
    }
    run_tool(
        node,
        Program::new(["bridge", "-batch", "-"]).with_input(known),
    )
}

/// Creates a bridge of two interfaces that learns the addresses behind them.
pub(crate) fn join(node: &dyn Node, [near, far]: [&str; 2]) -> Result<()> {
    // Ports forward immediately, and multicast frames pass without a querier.
    let batch = format!(
        "link add {NAME} type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n\
         link set {near} master {NAME} up\n\
         link set {far} master {NAME} up\n\
         link set {NAME} up\n"
    );
    let help = "this kernel lacks bridges: sudo modprobe bridge";
    ip(node, batch).map_err(|error| error.help_for("Unknown device type", help))
}

/// Removes the bridge, which frees its ports; these keep their addresses.
pub(crate) fn remove(node: &dyn Node) -> Result<()> {
    ip(node, format!("link del {NAME}\n"))
}

/// Waits until both ports forward; returns whether they do within [`READY_LIMIT`].
pub(crate) fn forwards(node: &dyn Node) -> Result<bool> {
    await_true(READY_LIMIT, READY_INTERVAL, || ports_forward(node))
}

/// A port's state in the output of `bridge -json`.
#[derive(Deserialize)]
struct PortState {
    #[serde(default)]
    state: String,
}

fn ports_forward(node: &dyn Node) -> Result<bool> {
    let ended = ask(node, ["bridge", "-json", "link", "show"])?;
    let ports: Vec<PortState> = parse_json(node, "the state of the bridge's ports", &ended)?;
    Ok(ports.len() == 2 && ports.iter().all(|port| port.state == "forwarding"))
}

/// The node's path element if it is a bridge, as impaired paths are.
pub(crate) fn bridge(node: NodeId) -> Option<ElementId> {
    match node {
        NodeId::Element(element) if !element.kind().routes() => Some(element),
        _ => None,
    }
}
