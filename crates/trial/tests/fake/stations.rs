//! A bench without a lab whose stations serve frame trials: what a sender is told to send, a receiver has got
//! after the device in between has taken its part.

use crate::bench::MS;
use campaign::plan::{Direction, Dut};
use journal::record::{CipherLink, CipherWatch, InterfaceCounters};
use lab::protocol::{CpuTime, Ended, Program, Request, Response};
use lab::{Bench, FrameEnd, FramePath, LabError, Links, Node, NodeId, RunningDut};
use port::{FramePortKind, FramePortStats};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use traffic::report::{Received, Report, Sent};
use traffic::spec::{Role, Spec};

const DUT_PROCESS: u64 = 1_000_000;
const FRAME_BYTES: u64 = 64;

/// What the device, the stations and their programs do.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// Frames per second that the device carries.
    pub(crate) capacity: u64,
    /// The DUT has such a path.
    pub(crate) has_path: bool,
    /// Frames that are on the sink's interface and in no report.
    pub(crate) unseen: u64,
    /// A program prints this instead of its report, and exits with that code.
    pub(crate) says: Option<(&'static str, i32)>,
    /// Senders have sent half of their frames when they are told to stop, and do not end before.
    pub(crate) slow_sender: bool,
    /// The DUT's process is dead.
    pub(crate) dut_dead: bool,
    /// Receivers do not come up.
    pub(crate) no_receiver: bool,
    /// What is seen between the gateways.
    pub(crate) cipher_link: CipherLink,
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
            cipher_link: CipherLink {
                frames: 100,
                marker_frames: 100,
                other_frames: 100,
                ..CipherLink::default()
            },
        }
    }
}

/// A program on a station.
#[derive(Debug, Clone)]
struct Running {
    node: NodeId,
    spec: Option<Spec>,
    since: Instant,
    /// To stop.
    told: bool,
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
    }
}

pub(crate) fn end(node: NodeId, interface: &str, network: u8) -> FrameEnd {
    FrameEnd {
        node,
        interface: interface.to_owned(),
        mac: [2, 0, 0, 0, 0, network],
        next_hop_mac: [2, 0, 0, 0, 1, network],
        address: Ipv4Addr::new(10, network, 0, 2),
        test_address: Ipv4Addr::new(198, network, 0, 1),
        test_address_v6: format!("2001:2:0:{network:x}::1").parse().unwrap(),
        esp: None,
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

    fn start_dut(
        &mut self,
        _dut: &Dut,
        _links: Links,
        direction: Direction,
    ) -> Result<RunningDut, LabError> {
        let mut world = self.world.lock().unwrap();
        world.duts_up += 1;
        world.directions.push(direction);
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
        match world.script.dut_dead {
            false => Ok(()),
            true => Err(LabError::Dut {
                dut: format!("{} processes", dut.processes.len()),
                reason: "died (SIGKILL)".to_owned(),
            }),
        }
    }
}

struct StationNode {
    id: NodeId,
    world: Arc<Mutex<World>>,
}

fn frames(rate: u64, ns: u64) -> u64 {
    (u128::from(rate) * u128::from(ns) / 1_000_000_000) as u64
}

fn counter(world: &mut World, node: NodeId) -> &mut InterfaceCounters {
    world.counters.entry(node).or_default()
}

impl StationNode {
    fn error(&self, reason: &str) -> LabError {
        LabError::Node {
            node: self.id.name(),
            reason: reason.to_owned(),
        }
    }

    fn start(&self, world: &mut World, program: &Program) -> Result<Response, LabError> {
        let spec: Option<Spec> = serde_json::from_str(&program.stdin).ok();
        if let Some(spec) = &spec {
            if world.script.no_receiver && matches!(spec.role, Role::Receive(_)) {
                return Err(self.error("`cipherbench` was not ready within 5 s"));
            }
            assert_eq!(program.argv[1..], ["frames"]);
            let place = (self.id, program.cores.clone(), spec.clone());
            world.started.push(place);
            self.carry(world, spec);
        }
        world.handles += 1;
        let running = Running {
            node: self.id,
            spec,
            since: Instant::now(),
            told: false,
        };
        let process = world.handles;
        world.running.insert(process, running);
        Ok(Response::Started {
            process,
            pid: 1,
            stdout: String::new(),
        })
    }

    /// What a sender puts on the path at once, as far as counters go.
    fn carry(&self, world: &mut World, spec: &Spec) {
        let Role::Send(send) = &spec.role else {
            return;
        };
        let rate = send.frames_per_s.unwrap_or(1_000_000);
        let sent = frames(rate, send.duration_ns) / if world.script.slow_sender { 2 } else { 1 };
        let carried = sent.min(frames(world.script.capacity, send.duration_ns));
        world.sent.insert((spec.tag, self.id), (sent, carried));
        counter(world, self.id).tx_packets += sent;
        let receiver = world.running.values().find(|running| {
            let tag = running.spec.as_ref().map(|spec| spec.tag);
            running.node != self.id && tag == Some(spec.tag)
        });
        // A receiver is there before the sender is.
        let sink = receiver.unwrap().node;
        let unseen = world.script.unseen;
        counter(world, sink).rx_packets += carried + unseen;
    }

    /// Frames sent and carried towards a receiver.
    fn towards(&self, world: &World, tag: u16) -> (u64, u64) {
        let other = world
            .sent
            .iter()
            .find(|((of, node), _)| *of == tag && *node != self.id);
        other.map_or((0, 0), |(_, &counts)| counts)
    }

    fn status(&self, world: &World, process: u64) -> Option<Ended> {
        if process >= DUT_PROCESS {
            let dead = Ended {
                signal: Some(9),
                ..Ended::default()
            };
            return world.script.dut_dead.then_some(dead);
        }
        let running = &world.running[&process];
        let over = match &running.spec.as_ref()?.role {
            Role::Send(send) => running.since.elapsed() >= Duration::from_nanos(send.duration_ns),
            Role::Receive(_) => running.told,
        };
        over.then(Ended::default)
    }

    /// Forgets a program; whether it had reported is nobody's business any more.
    fn end(&self, world: &mut World, process: u64) -> Result<Ended, LabError> {
        let running = world.running.remove(&process);
        let running = running.ok_or_else(|| self.error("no such process"))?;
        let says = world.script.says.filter(|_| running.spec.is_some());
        Ok(Ended {
            code: Some(says.map_or(0, |(_, code)| code)),
            stderr: says.map_or("", |_| "what went wrong\n").to_owned(),
            ..Ended::default()
        })
    }

    /// The report of a program: a sender's as soon as its time is over, whoever asks; a receiver's when all has
    /// come, or it was told to stop.
    fn line(&self, world: &World, process: u64) -> Option<String> {
        let running = &world.running[&process];
        let spec = running.spec.clone()?;
        if let Some((words, _)) = world.script.says {
            return (!words.is_empty()).then(|| words.to_owned());
        }
        let ready = match &spec.role {
            Role::Send(_) => !world.script.slow_sender || running.told,
            Role::Receive(receive) => {
                let all = receive.expected == Some(self.towards(world, spec.tag).1);
                all || running.told
            }
        };
        if !ready {
            return None;
        }
        let report = Report {
            port: Some(FramePortKind::Packet),
            passed_over: vec![(FramePortKind::Xdp, "the fake has none".to_owned())],
            threads: spec.threads,
            port_stats: FramePortStats::default(),
            engine: None,
            ..self.report(world, &spec)
        };
        Some(serde_json::to_string(&report).unwrap())
    }

    fn report(&self, world: &World, spec: &Spec) -> Report {
        match &spec.role {
            Role::Send(send) => {
                let (frames, _) = world.sent[&(spec.tag, self.id)];
                let sent = Sent {
                    intended: frames * if world.script.slow_sender { 2 } else { 1 },
                    frames,
                    frame_bytes: frames * FRAME_BYTES,
                    elapsed_ns: send.duration_ns,
                    ..Sent::default()
                };
                Report {
                    sent: Some(sent),
                    ..Report::default()
                }
            }
            Role::Receive(_) => {
                let (_, frames) = self.towards(world, spec.tag);
                let received = Received {
                    frames,
                    frame_bytes: frames * FRAME_BYTES,
                    latency: vec![(1000, frames)],
                    ..Received::default()
                };
                Report {
                    received: Some(received),
                    ..Report::default()
                }
            }
        }
    }
}

impl Node for StationNode {
    fn id(&self) -> NodeId {
        self.id
    }

    fn call(&self, request: Request) -> Result<Response, LabError> {
        let mut world = self.world.lock().unwrap();
        let interface = match self.id {
            NodeId::A => "a0",
            NodeId::Gw1 => "w0",
            NodeId::Gw2 => "w1",
            NodeId::B => "b0",
            NodeId::Element(_) => "p0",
        };
        let interface = interface.to_owned();
        Ok(match request {
            Request::Hello { protocol } => Response::Hello {
                protocol,
                program: "fake".to_owned(),
                pid: 1,
                boot_id: "fake".to_owned(),
                cores: 2,
                rmem_max_bytes: None,
                wmem_max_bytes: None,
            },
            Request::Start { program, .. } => self.start(&mut world, &program)?,
            Request::Wait { process, .. } | Request::Stop { process, .. } => {
                Response::Ended(self.end(&mut world, process)?)
            }
            Request::Status { process } => Response::Status(self.status(&world, process)),
            Request::AwaitLine { process, .. } => Response::Line(self.line(&world, process)),
            Request::Terminate { process } => {
                world.running.get_mut(&process).unwrap().told = true;
                Response::Terminated
            }
            Request::CpuTime { .. } => Response::CpuTime(CpuTime {
                user_ns: MS,
                ..CpuTime::default()
            }),
            Request::InterfaceCounters => {
                let found = *counter(&mut world, self.id);
                Response::InterfaceCounters([(interface, found)].into())
            }
            Request::Offloads => {
                let features = [
                    "tcp-segmentation-offload",
                    "generic-segmentation-offload",
                    "tx-udp-segmentation",
                    "generic-receive-offload",
                ];
                let off = features.map(|name| (name.to_owned(), "off".to_owned()));
                Response::Offloads([(interface, off.into())].into())
            }
            Request::Watch { interface: at, .. } => {
                assert_eq!(at, interface);
                world.watching += 1;
                world.watches.push(self.id);
                Response::Watching { watch: 7 }
            }
            Request::WatchEnd { .. } => {
                world.watching -= 1;
                Response::Watched(CipherWatch {
                    foreign_frames: 1000,
                    ..CipherWatch::default()
                })
            }
            Request::Sample { .. } => Response::Sample(world.script.cipher_link.clone()),
            other => return Err(self.error(&format!("the fake cannot do {other:?}"))),
        })
    }
}
