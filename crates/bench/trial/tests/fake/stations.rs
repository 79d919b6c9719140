//! A bench without a lab whose stations serve frame trials: a receiver has the frames of a sender's
//! spec, less those that the device in between loses.

mod node;

use crate::bench::MS;
use journal::record::{CipherLink, InterfaceCounters};
use node::StationNode;
use plan::{
    Adapter, Cell, Direction, Dut, FrameTest, IpVersion, Load, Measurement, Ports, Procedure,
    Stations, Traffic,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use testbed::{Bench, FrameEnd, FramePath, LabError, Links, Node, NodeId, RunningDut};
use traffic_spec::Spec;
use wire::mix::{Contents, FrameMix, TestFrames};

const DUT_PROCESS: u64 = 1_000_000;
const FRAME_BYTES: u64 = 64;

/// What the device, the stations and their programs do.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// Frames per second that the device carries.
    pub(crate) capacity: u64,
    /// The DUT has a frame path.
    pub(crate) has_path: bool,
    /// Frames on the sink's interface that are in no report.
    pub(crate) unseen: u64,
    /// A program prints this instead of its report, and exits with that code.
    pub(crate) says: Option<(&'static str, i32)>,
    /// Senders have sent half of their frames when they are stopped, and do not end before.
    pub(crate) slow_sender: bool,
    /// The DUT's process is dead.
    pub(crate) dut_dead: bool,
    /// Receivers do not come up.
    pub(crate) no_receiver: bool,
    /// Whether the links carry IPv6.
    pub(crate) carries_ipv6: bool,
    /// Whether the device sends frames back where they came from.
    pub(crate) reflects: bool,
    /// What is seen between the gateways.
    pub(crate) cipher_link: CipherLink,
    /// The frames of this trial, counted from 1, do not take the link between the gateways.
    pub(crate) past_the_link_in: Option<u64>,
    /// Frames that find a queue of the machine full in each trial, of no interface of the path.
    pub(crate) backlog_drops: u64,
    /// B's side is another machine, and the backlogs are its.
    pub(crate) two_machines: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            capacity: 100_000,
            has_path: true,
            unseen: 0,
            says: None,
            slow_sender: false,
            dut_dead: false,
            no_receiver: false,
            carries_ipv6: true,
            reflects: false,
            cipher_link: CipherLink {
                frames: 100,
                marker_frames: 100,
                other_frames: 100,
                ..CipherLink::default()
            },
            past_the_link_in: None,
            backlog_drops: 0,
            two_machines: false,
        }
    }
}

/// A program on a station.
#[derive(Debug, Clone)]
struct Running {
    node: NodeId,
    spec: Option<Spec>,
    since: Instant,
    /// Whether it was signalled to stop.
    stopping: bool,
}

/// What happened.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) script: Script,
    /// Specs in the order started: where, on which cores, and what.
    pub(crate) started: Vec<(NodeId, Vec<u16>, Spec)>,
    running: BTreeMap<u64, Running>,
    handles: u64,
    /// Frames that each sender's trial put on the path, by tag and source.
    sent: BTreeMap<(u16, NodeId), (u64, u64)>,
    counters: BTreeMap<NodeId, InterfaceCounters>,
    pub(crate) watches: Vec<NodeId>,
    pub(crate) watching: usize,
    /// Frames of the link between the gateways since the watch was read.
    unread: u64,
    /// Senders started.
    trials: u64,
    pub(crate) settings_watched: usize,
    pub(crate) duts_up: usize,
    pub(crate) directions: Vec<Direction>,
}

/// The fake.
pub(crate) struct StationBench {
    pub(crate) world: Arc<Mutex<World>>,
    nodes: Vec<StationNode>,
}

impl StationBench {
    pub(crate) fn new(script: Script) -> Self {
        let world = Arc::new(Mutex::new(World {
            script,
            ..World::default()
        }));
        let node = |id| StationNode {
            id,
            world: Arc::clone(&world),
        };
        let nodes = NodeId::ALL.map(node).into();
        Self { world, nodes }
    }

    pub(crate) fn assert_clean(&self) {
        let world = self.world.lock().unwrap();
        let left = world
            .running
            .values()
            .filter(|running| running.spec.is_some());
        assert_eq!(left.count(), 0, "a program still runs");
        assert_eq!((world.watching, world.duts_up), (0, 0));
        assert_eq!(world.settings_watched, 0);
    }
}

pub(crate) fn end(node: NodeId, interface: &str, network: u8) -> FrameEnd {
    FrameEnd {
        node,
        interface: interface.to_owned(),
        mac: [2, 0, 0, 0, 0, network],
        next_hop_mac: [2, 0, 0, 0, 1, network],
        address: Ipv4Addr::new(10, network, 0, 2),
        // From the networks for benchmarks: 198.18.0.0/15 (RFC 2544) and 2001:2::/48 (RFC 5180).
        test_address: Ipv4Addr::new(198, network, 0, 1),
        test_address_v6: format!("2001:2:0:{network:x}::1").parse().unwrap(),
        peer: None,
    }
}

impl Bench for StationBench {
    fn node(&self, id: NodeId) -> &dyn Node {
        self.nodes.iter().find(|node| node.id == id).unwrap()
    }

    fn target(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 2, 0, 2)
    }

    fn cipher_interfaces(&self) -> (&str, &str) {
        ("w0", "w1")
    }

    fn station_interfaces(&self) -> (&str, &str) {
        ("a0", "b0")
    }

    fn configure(&mut self, _links: Links) -> Result<(), LabError> {
        Ok(())
    }

    fn check_ip(&self, version: IpVersion, _links: Links) -> Result<(), LabError> {
        if version == IpVersion::V6 && !self.world.lock().unwrap().script.carries_ipv6 {
            return Err(LabError::CannotBuild {
                what: "an MTU of 1000 B is too small for IPv6".to_owned(),
                help: "raise the MTU".to_owned(),
            });
        }
        Ok(())
    }

    fn start_dut(
        &mut self,
        _dut: &Dut,
        _links: Links,
        direction: Direction,
    ) -> Result<RunningDut, LabError> {
        let mut world = self.world.lock().unwrap();
        world.duts_up += 1;
        world.directions.push(direction);
        // One direction alone has a station in the place of a gateway, on the cipher link.
        let (source, sink) = match direction {
            Direction::Encrypt => (end(NodeId::A, "a0", 18), end(NodeId::Gw2, "w1", 19)),
            Direction::Decrypt => (end(NodeId::Gw1, "w0", 18), end(NodeId::B, "b0", 19)),
            Direction::Both => (end(NodeId::A, "a0", 18), end(NodeId::B, "b0", 19)),
        };
        Ok(RunningDut {
            processes: vec![(NodeId::Gw1, DUT_PROCESS)],
            frame_path: world.script.has_path.then_some(FramePath { source, sink }),
            ..RunningDut::default()
        })
    }

    fn dut_counters(&self, _dut: &RunningDut) -> Result<BTreeMap<String, u64>, LabError> {
        Ok(BTreeMap::new())
    }

    fn stop_dut(&mut self, dut: RunningDut) -> Result<(), LabError> {
        let mut world = self.world.lock().unwrap();
        world.duts_up -= 1;
        if world.script.dut_dead {
            Err(LabError::Dut {
                dut: format!("{} processes", dut.processes.len()),
                reason: "died (SIGKILL)".to_owned(),
            })
        } else {
            Ok(())
        }
    }
}

/// A load of 50 000 frames/s for 20 ms.
pub(crate) fn test() -> FrameTest {
    FrameTest {
        traffic: Traffic {
            frames: TestFrames {
                mix: FrameMix::fixed(64),
                flows: 8,
                tunnels: 2,
                contents: Contents::Fixed,
            },
            ip: IpVersion::V4,
            direction: Direction::Both,
            duplex: false,
            ports: Ports::default(),
        },
        procedure: Procedure::Load(Load {
            frames_per_s: Some(50_000),
            duration_ns: 20 * MS,
        }),
    }
}

pub(crate) fn cell(test: FrameTest) -> Cell {
    Cell {
        id: "load/direct".to_owned(),
        group: "load".to_owned(),
        coordinates: Vec::new(),
        dut: Dut::new("direct", Adapter::Direct),
        stations: Some(Stations {
            mtu: 1500,
            cores: 1,
            offloads: false,
            overlay: plan::Overlay::None,
            dscp: None,
        }),
        measurement: Measurement::Frames(test),
        impair: None,
        tune: false,
        estimate_ns: 0,
        calibration: false,
    }
}
