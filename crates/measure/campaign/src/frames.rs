//! Frame trials as a campaign asks for them: axes of the traffic, and what is done with it.
//!
//! To add a procedure: its variant in [`crate::plan::Procedure`] and in [`procedure`], its time in
//! [`crate::estimate`], its words in `text`, and its table in `docs/campaign.md`.

mod check;
mod disturbed;
mod given;
mod keys;
pub(crate) mod mix;
mod points;
mod procedure;
mod profile;
pub(crate) mod rate;
mod search;
mod soak;

pub(crate) use check::for_duts;
pub(crate) use given::Given;
pub(crate) use points::{LINK_MTU_MIN, packet_bytes_max};
pub(crate) use procedure::{NAMES, Name};

use crate::axis::{AxisValues, CORES_MAX, axis, required_axis};
use crate::plan::{Direction, IpVersion, PortKind, Ports};
use procedure::Asked;
use wire::mix::FrameMix;
use yaml::{Map, Node, Reported, Spanned};

/// One frame trial.
#[derive(Debug)]
pub(crate) struct FrameTrial {
    frame: Vec<Spanned<FrameMix>>,
    ip: Vec<Spanned<IpVersion>>,
    direction: Vec<Spanned<Direction>>,
    cores: Vec<Spanned<u16>>,
    /// `None`: [`flows_for`].
    flows: Vec<Spanned<Option<u32>>>,
    /// `None`: those of the DUT.
    tunnels: Vec<Spanned<Option<u32>>>,
    duplex: Vec<Spanned<bool>>,
    ports: Vec<Spanned<Ports>>,
    offloads: Vec<Spanned<bool>>,
    procedures: Vec<Asked>,
}

/// Flows where the campaign leaves them open: enough for hashes to spread them evenly over queues
/// and workers.
const FLOWS_DEFAULT: u32 = 64;
const FLOWS_MAX: u32 = 65_535;
/// Flows of a tunnel differ by source port.
const FLOWS_PER_TUNNEL_MAX: u32 = 32_768;
/// Tunnels differ by address within a /16.
const TUNNELS_MAX: u32 = 65_535;

pub(crate) const IP_VERSIONS: [(&str, IpVersion); 2] = [("4", IpVersion::V4), ("6", IpVersion::V6)];
pub(crate) const DIRECTIONS: [(&str, Direction); 3] = [
    (Direction::Encrypt.name(), Direction::Encrypt),
    (Direction::Decrypt.name(), Direction::Decrypt),
    (Direction::Both.name(), Direction::Both),
];
const PORT_KINDS: [(&str, PortKind); 4] = [
    (PortKind::Xdp.name(), PortKind::Xdp),
    (PortKind::Packet.name(), PortKind::Packet),
    (PortKind::Socket.name(), PortKind::Socket),
    (PortKind::Memory.name(), PortKind::Memory),
];

/// As many flows for each tunnel, one for each core at least.
pub(crate) fn flows_for(tunnels: u32, cores: u16) -> u32 {
    let wanted = FLOWS_DEFAULT.max(cores.into());
    (tunnels * wanted.div_ceil(tunnels)).min(FLOWS_MAX)
}

/// [`FrameTrial`] as it is read.
struct RawTraffic {
    frame: AxisValues<FrameMix>,
    ip: AxisValues<IpVersion>,
    direction: AxisValues<Direction>,
    cores: AxisValues<u16>,
    flows: AxisValues<Option<u32>>,
    tunnels: AxisValues<Option<u32>>,
    duplex: AxisValues<bool>,
    ports: AxisValues<Ports>,
    offloads: AxisValues<bool>,
}

/// Reads a frame trial of that kind.
pub(crate) fn read(map: &Map<'_>, name: Name) -> Result<FrameTrial, Reported> {
    let node = map.node();
    let traffic = RawTraffic {
        frame: required_axis(map, "frame", mix::read),
        ip: axis(map, "ip", IpVersion::V4, |node| {
            node.one_of("IP version", &IP_VERSIONS)
        }),
        direction: axis(map, "direction", Direction::Both, |node| {
            node.one_of("direction", &DIRECTIONS)
        }),
        cores: axis(map, "cores", 1, |node| node.integer(1..=CORES_MAX)),
        flows: axis(map, "flows", None, |node| {
            node.word_or("auto", |node| node.integer(1..=FLOWS_MAX))
        }),
        tunnels: axis(map, "tunnels", None, |node| {
            node.word_or("auto", |node| node.integer(1..=TUNNELS_MAX))
        }),
        duplex: axis(map, "duplex", false, Node::bool),
        ports: axis(map, "ports", Ports::default(), ports),
        offloads: axis(map, "offloads", false, Node::bool),
    };
    let procedures = procedure::read(map, name);
    traffic.check(node);
    for asked in procedures.iter().flatten() {
        asked.check(node, &traffic.frame);
    }
    if name.is_disturbed() {
        traffic.check_whole(node);
    }
    Ok(FrameTrial {
        frame: traffic.frame.all()?,
        ip: traffic.ip.all()?,
        direction: traffic.direction.all()?,
        cores: traffic.cores.all()?,
        flows: traffic.flows.all()?,
        tunnels: traffic.tunnels.all()?,
        duplex: traffic.duplex.all()?,
        ports: traffic.ports.all()?,
        offloads: traffic.offloads.all()?,
        procedures: procedures?,
    })
}

/// `auto`, one kind for both ends, or each end's own.
fn ports(node: Node<'_>) -> Result<Ports, Reported> {
    let kind = |node: Node<'_>| node.word_or("auto", |node| node.one_of("port kind", &PORT_KINDS));
    if !node.is_map() {
        return kind(node).map(|kind| Ports { tx: kind, rx: kind });
    }
    node.map(|map| {
        let tx = map.with_default("send", None, kind);
        let rx = map.with_default("receive", None, kind);
        Ok(Ports { tx: tx?, rx: rx? })
    })
}
