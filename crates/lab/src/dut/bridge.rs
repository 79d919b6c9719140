//! One box that switches Ethernet: a Linux bridge on gw1, with the station in gw2's place.

use super::interfaces::Interfaces;
use super::{Adapter, Site, dut_error};
use crate::on_node::{ip, run_tool};
use crate::protocol::Program;
use crate::sync::Deadline;
use crate::topology::{A0, A1, W0, W1, mac};
use crate::{LabError, Node, RunningDut};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

/// The bridge's interface.
const NAME: &str = "br0";

/// How long its ports may take until they forward. Without a spanning tree they do at once.
const READY_LIMIT: Duration = Duration::from_secs(5);
const READY_INTERVAL: Duration = Duration::from_millis(5);

/// How long `bridge` may take.
const TOOL_LIMIT: Duration = Duration::from_secs(5);

/// A Linux bridge between gw1's two interfaces.
#[derive(Debug, Default)]
pub(super) struct Bridge {
    interfaces: Interfaces,
}

impl Adapter for Bridge {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut, LabError> {
        let site = &site.one_box();
        let switch = site.gateways[0];
        let started = make(switch).and_then(|()| Interfaces::watch(site, switch));
        match started {
            Ok(interfaces) => self.interfaces = interfaces,
            Err(error) => {
                let _ = self.stop(site, RunningDut::default());
                return Err(error);
            }
        }
        let mut path = site.frame_path();
        path.source.next_hop_mac = W1.test_mac;
        path.sink.next_hop_mac = A0.test_mac;
        let facts = [("forwarding", "Ethernet"), ("stp", "off")];
        let named = |(name, value): (&str, &str)| {
            (format!("{}/{name}", switch.id().name()), value.to_owned())
        };
        Ok(RunningDut {
            facts: facts.map(named).into(),
            frame_path: Some(path),
            ..RunningDut::default()
        })
    }

    fn await_ready(&self, site: &Site<'_>) -> Result<(), LabError> {
        let deadline = Deadline::after(READY_LIMIT);
        while !ports_forward(site.gateways[0])? {
            if deadline.is_over() {
                let limit = READY_LIMIT.as_secs();
                let reason = format!("is up, but its ports do not forward within {limit} s");
                return Err(dut_error(site.dut, reason));
            }
            thread::sleep(READY_INTERVAL);
        }
        Ok(())
    }

    fn counters(
        &self,
        site: &Site<'_>,
        _dut: &RunningDut,
    ) -> Result<BTreeMap<String, u64>, LabError> {
        self.interfaces.since(site, site.gateways[0])
    }

    fn stop(&mut self, site: &Site<'_>, _dut: RunningDut) -> Result<(), LabError> {
        let site = &site.one_box();
        // Its ports are free again with it; their addresses have stayed.
        ip(site.gateways[0], format!("link del {NAME}\n"))
    }
}

/// Makes the bridge. Where the stations are is written down, so that no frame is flooded.
fn make(node: &dyn Node) -> Result<(), LabError> {
    let batch = format!(
        "link add {NAME} type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n\
         link set {a1} master {NAME}\n\
         link set {w0} master {NAME}\n\
         link set {NAME} up\n",
        a1 = A1.interface,
        w0 = W0.interface
    );
    ip(node, batch).map_err(|error| match error {
        LabError::Node { node, reason } if reason.contains("Unknown device type") => {
            LabError::Node {
                node,
                reason: format!("{reason}\nhelp: this kernel lacks bridges: sudo modprobe bridge"),
            }
        }
        error => error,
    })?;
    let known = [(A0.test_mac, A1), (W1.test_mac, W0)].map(|(station, port)| {
        let (station, port) = (mac(station), port.interface);
        format!("fdb replace {station} dev {port} master static\n")
    });
    run_tool(
        node,
        Program {
            stdin: known.concat(),
            ..Program::new(["bridge", "-batch", "-"])
        },
    )
}

/// A port, as `bridge -json` has it.
#[derive(Deserialize)]
struct Port {
    #[serde(default)]
    state: String,
}

fn ports_forward(node: &dyn Node) -> Result<bool, LabError> {
    let program = Program::new(["bridge", "-json", "link", "show"]);
    let ended = node.run(program, TOOL_LIMIT)?;
    let ports: Vec<Port> = serde_json::from_str(&ended.stdout).map_err(|error| LabError::Node {
        node: node.id().name(),
        reason: format!(
            "cannot read the state of the bridge's ports: {error} ({}){}",
            ended.how(),
            ended.last_words()
        ),
    })?;
    Ok(ports.len() == 2 && ports.iter().all(|port| port.state == "forwarding"))
}
