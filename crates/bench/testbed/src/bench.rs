//! The interface to a lab.

use crate::{DutAction, IkeSas, LabError, Monitor, Node, NodeId, PeersGateway, Result, RunningDut};
use plan::{Direction, Dut, IpVersion, Overlay};
use std::collections::BTreeMap;

/// Settings of a lab's links for the next cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Links {
    /// IP MTU of A – gw1 and gw2 – B.
    pub mtu: u16,
    /// IP MTU of gw1 – gw2, and of all links there with elements between them.
    pub cipher_mtu: u16,
    /// TSO, GSO and UDP segmentation at all ends. GRO stays as veth has it by default: off.
    /// Super-packets arrive whole, so it has nothing to merge, and it costs most of the throughput
    /// of several streams.
    pub offloads: bool,
    /// Line rate (L1, preamble and gap counted) that every end of every link is shaped to, in
    /// bit/s. A station's generator sends below its queue and paces itself to this rate. A
    /// super-packet counts as one frame: with `offloads`, TCP may get 6 % more.
    pub rate_bps: Option<u64>,
}

/// An end of a link on which clocks are compared.
#[derive(Debug, Clone, Copy)]
pub struct ClockEnd<'a> {
    /// Its node.
    pub node: NodeId,
    /// Interface.
    pub interface: &'a str,
    /// Its MAC address.
    pub mac: [u8; 6],
}

/// A lab as `trial` needs it. Implemented by `NamespaceLab`, and by fakes in tests.
pub trait Bench {
    /// One of its places.
    ///
    /// # Panics
    /// For an element that is none of [`elements`](Self::elements).
    fn node(&self, id: NodeId) -> &dyn Node;

    /// The elements between the gateways, from gw1 to gw2, and the tap between external boxes.
    fn elements(&self) -> Vec<NodeId> {
        Vec::new()
    }

    /// The element that impairs the path, with its interfaces towards A and towards B; `None` if no
    /// element does.
    fn impaired_element(&self) -> Option<(NodeId, [&str; 2])> {
        None
    }

    /// B's address, the target of A's traffic.
    fn target(&self) -> std::net::Ipv4Addr;

    /// Names of the interfaces of the cipher link: gw1's and gw2's end.
    fn cipher_interfaces(&self) -> (&str, &str);

    /// The interfaces for inspection of traffic between the gateways, or the external boxes: the
    /// one that sends A's traffic, then the one that sends B's. `None` if it cannot be inspected.
    fn cipher_ends(&self) -> Option<[(NodeId, &str); 2]> {
        // The kernels of the gateways show packets here as the link carries them, after sealing and
        // before opening.
        let (gw1, gw2) = self.cipher_interfaces();
        Some([(NodeId::Gw1, gw1), (NodeId::Gw2, gw2)])
    }

    /// The other end of the link that a gateway's end of the cipher link, or a tap's, belongs to.
    /// Between them both ends receive every frame of the link, and their kernels show all of them.
    /// `None` if that is not certain, as on a cable.
    fn far_end(&self, gateway: NodeId) -> Option<(NodeId, &str)> {
        let _ = gateway;
        None
    }

    /// Both ends of a link between the hosts of A and B, on which clocks can be compared: A's
    /// first, on nodes of those hosts. `None` on one host, or if only external boxes join the
    /// hosts.
    fn clock_ends(&self) -> Option<[ClockEnd<'_>; 2]> {
        // Probes then cross the boxes, over the path of test frames.
        None
    }

    /// Network card interfaces, with their nodes, that traffic of the running DUT crosses: the ends
    /// of cables. The lab's links are virtual.
    fn cards(&self) -> Vec<(NodeId, &str)> {
        Vec::new()
    }

    /// Names of A's and B's interfaces towards the running DUT.
    fn station_interfaces(&self) -> (&str, &str);

    /// Configures all links. Cheap when nothing changes.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn configure(&mut self, links: Links) -> Result<()>;

    /// Whether test frames of an IP version can pass the links.
    ///
    /// # Errors
    /// When they cannot, with the reason and what to do.
    fn check_ip(&self, _version: IpVersion, _links: Links) -> Result<()> {
        Ok(())
    }

    /// Brings a DUT up between the stations and waits until A reaches B through it. With a
    /// direction other than `Both`, only the loaded gateway is brought up, and the station replaces
    /// the other: only the gateway is awaited.
    ///
    /// # Errors
    /// When it does not come up, or cannot be loaded in that direction; nothing of it is left then.
    fn start_dut(&mut self, dut: &Dut, links: Links, direction: Direction) -> Result<RunningDut>;

    /// The DUT's counters since it came up, by `gateway/counter`; empty when it has none.
    ///
    /// # Errors
    /// When the DUT has died or does not answer.
    fn dut_counters(&self, dut: &RunningDut) -> Result<BTreeMap<String, u64>>;

    /// After a failure, checks an external device for signs of life: nothing else shows that it is
    /// gone.
    ///
    /// # Errors
    /// [`LabError::Dut`] with the sign that is missing.
    fn expect_dut(&self) -> Result<()> {
        Ok(())
    }

    /// Networks of tunnels that the DUT has ended by itself, and not set up again.
    ///
    /// # Errors
    /// [`LabError`].
    fn lost_tunnels(&self) -> Result<Vec<String>> {
        // A device in a namespace is watched by its settings instead.
        Ok(Vec::new())
    }

    /// Prepares periodic readings of the DUT, and of machines that count their energy; reads every
    /// value of the DUT once. `busy` are the CPUs of the stations, as
    /// [`Program::cores`](crate::protocol::Program::cores) counts them: the readings use other
    /// CPUs, if the machine has any.
    ///
    /// # Errors
    /// When a value cannot be read, with the reason and what to do.
    fn monitor<'a>(&'a self, dut: &RunningDut, busy: &[u16]) -> Result<Monitor<'a>> {
        let _ = (dut, busy);
        // Without pollers the times of traffic are recorded all the same.
        Ok(Monitor::default())
    }

    /// Performs an action on the DUT and updates [`RunningDut::processes`].
    ///
    /// # Errors
    /// When the DUT does not support the action, or it failed.
    fn act(&self, dut: &mut RunningDut, action: DutAction) -> Result<()> {
        let _ = dut;
        // Plans are checked by the abilities of their DUTs: only a lab of another kind is asked in
        // vain.
        Err(LabError::cannot_build(
            format!("this lab cannot do {action:?} to a device under test"),
            "use the lab of namespaces",
        ))
    }

    /// Returns the identity of the DUT's current start on a gateway: its processes there, or the
    /// text that a box prints. All of it differs after a restart.
    ///
    /// # Errors
    /// When the DUT does not run there, or nothing identifies it.
    fn dut_identity(&self, dut: &RunningDut, on: NodeId) -> Result<Vec<String>> {
        let _ = dut;
        Err(LabError::cannot_build(
            format!(
                "this lab cannot identify a device's processes on {}",
                on.name()
            ),
            "use the lab of namespaces",
        ))
    }

    /// Sets up an overlay network between the stations, through the running DUT, with
    /// [`Overlay::ADDRESSES`] on interfaces named
    /// [`OVERLAY_INTERFACE`](crate::OVERLAY_INTERFACE), and waits until A reaches B through it. The
    /// interfaces end with the stations at the latest.
    ///
    /// # Errors
    /// When a kernel has no such interfaces, or the DUT does not carry its packets. Nothing of it
    /// is left then.
    fn start_overlay(&self, overlay: Overlay, links: Links) -> Result<()> {
        let _ = links;
        Err(LabError::cannot_build(
            format!("this lab has no {} interfaces", overlay.title()),
            "use the lab of namespaces",
        ))
    }

    /// Removes the interfaces of the overlay network.
    ///
    /// # Errors
    /// When one is left.
    fn stop_overlay(&self) -> Result<()> {
        Ok(())
    }

    /// Lets the running DUT serve simulated IKEv2 peers, in addition to its tunnels.
    ///
    /// # Errors
    /// When it has no IKE for them, or they cannot reach it.
    fn serve_peers(&self) -> Result<PeersGateway> {
        Err(serves_no_peers())
    }

    /// IKE SAs of the gateway that serves simulated peers, by its own count.
    ///
    /// # Errors
    /// When it does not answer.
    fn ike_sas(&self) -> Result<IkeSas> {
        Err(serves_no_peers())
    }

    /// Stops the DUT.
    ///
    /// # Errors
    /// [`LabError::Dut`] with the end of its output when it had already died; it is cleaned up
    /// anyway.
    fn stop_dut(&mut self, dut: RunningDut) -> Result<()>;
}

fn serves_no_peers() -> LabError {
    LabError::cannot_build(
        "this lab has no device with IKEv2 for simulated peers",
        "use the lab of namespaces and `strongswan`",
    )
}
