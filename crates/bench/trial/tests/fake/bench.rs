//! A bench without a lab: stations with real output of iperf3 and ping, which can misbehave.

use crate::counters::Counters;
use crate::sealed::Tunnel;
use journal::record::{CipherLink, CipherWatch, InterfaceCounters, PathSettings};
use plan::{
    Adapter, Cell, Coordinate, Direction, Dut, Encryptor, LabPlan, Measurement, Plan, Stations,
    Tool, TransferDirection,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testbed::protocol::{CpuTime, Ended, Program, Request, Response, SealedPort};
use testbed::{Bench, LabError, Links, Node, NodeId, RunningDut};
use wire::Suite;

pub(crate) const MS: u64 = 1_000_000;
/// Estimate of every cell; far more than a trial on this bench takes.
pub(crate) const ESTIMATE_NS: u64 = 60_000 * MS;

/// Handle of the DUT's first process; tools have lower ones.
const DUT_PROCESS: u64 = 1_000_000;

/// What the stations and the DUT do in the trials to come.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// Output of the iperf3 clients, then of the servers, by process.
    pub(crate) clients: Vec<Ended>,
    pub(crate) servers: Vec<Ended>,
    pub(crate) ping: Ended,
    /// Whether the servers listen.
    pub(crate) servers_listen: bool,
    /// Payload that the interfaces count.
    pub(crate) carried_bytes: u64,
    /// Headers around it, the same everywhere on the path.
    pub(crate) header_bytes: u64,
    pub(crate) cipher_link: CipherLink,
    /// Of a DUT that encrypts.
    pub(crate) tunnel: Tunnel,
    pub(crate) watch: CipherWatch,
    /// What every node says of its settings.
    pub(crate) settings: PathSettings,
    /// Datagrams that B's sockets drop in a trial.
    pub(crate) station_lost: u64,
    /// What `start_dut` says.
    pub(crate) dut_comes_up: Result<(), String>,
    /// What it says instead of a DUT that encrypts: its program is not here.
    pub(crate) missing: Option<String>,
    /// What `stop_dut` says.
    pub(crate) dut_lives: Result<(), String>,
    /// The DUT's process is seen to have ended so.
    pub(crate) dut_ended: Option<Ended>,
    /// That long after the first tool's start.
    pub(crate) dut_dies_after: Duration,
    /// The tools do not end in time.
    pub(crate) clients_hang: bool,
    /// This station is gone from that trial on.
    pub(crate) dies_in_trial: Option<(NodeId, usize)>,
    /// A request whose first call is answered with [`LabError::Interrupted`], by its name.
    pub(crate) interrupt_at: Option<&'static str>,
    /// The largest socket buffers that the stations report.
    pub(crate) buffers_max: Option<u64>,
    /// Looks at A's connections for which one of an earlier trial is still there.
    pub(crate) lingering: u32,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            clients: vec![said(include_str!(
                "../data/iperf3-3.12-tcp-2-streams.client.json"
            ))],
            servers: vec![said(include_str!(
                "../data/iperf3-3.12-tcp-2-streams.server.json"
            ))],
            ping: said(include_str!("../data/iputils-20221126-ping.txt")),
            servers_listen: true,
            carried_bytes: 20 * 56,
            header_bytes: 20 * 106,
            cipher_link: CipherLink {
                frames: 100,
                marker_frames: 60,
                other_frames: 100,
                ..CipherLink::default()
            },
            tunnel: Tunnel::default(),
            watch: CipherWatch {
                foreign_frames: 1000,
                ..CipherWatch::default()
            },
            settings: PathSettings::default(),
            station_lost: 0,
            dut_comes_up: Ok(()),
            missing: None,
            dut_lives: Ok(()),
            dut_ended: None,
            dut_dies_after: Duration::ZERO,
            clients_hang: false,
            dies_in_trial: None,
            interrupt_at: None,
            buffers_max: None,
            lingering: 0,
        }
    }
}

/// A program that ended well and printed that.
pub(crate) fn said(stdout: &str) -> Ended {
    let cpu = CpuTime {
        user_ns: 10 * MS,
        system_ns: 90 * MS,
        ..CpuTime::default()
    };
    Ended {
        code: Some(0),
        stdout: stdout.to_owned(),
        cpu,
        wall_ns: 1000 * MS,
        ..Ended::default()
    }
}

/// What happened on the bench, for tests to look at.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) script: Script,
    /// Programs started: where and what.
    pub(crate) started: Vec<(NodeId, Program)>,
    /// Programs that were not waited for.
    pub(crate) running: BTreeMap<u64, (NodeId, Program)>,
    /// When each was started.
    starts: BTreeMap<u64, Instant>,
    counting: Counters,
    /// Watches that were not ended.
    pub(crate) watches: usize,
    /// DUTs that are up.
    pub(crate) duts_up: usize,
    pub(crate) links: Vec<Links>,
    /// Client runs that ended.
    pub(crate) runs: u64,
    handles: u64,
}

impl World {
    /// A `/proc/net/tcp` that shows a connection for as often as the script says.
    fn take_connections(&mut self) -> &'static str {
        match self.script.lingering {
            0 => "sl local_address\n",
            _ => {
                self.script.lingering -= 1;
                "sl local_address\n0: 0200010A:A1B2 0200020A:1451 04 00000001:00000000\n"
            }
        }
    }
}

/// The fake.
pub(crate) struct FakeBench {
    pub(crate) world: Arc<Mutex<World>>,
    nodes: Vec<FakeNode>,
}

impl FakeBench {
    pub(crate) fn new(script: Script) -> Self {
        let world = Arc::new(Mutex::new(World {
            script,
            ..World::default()
        }));
        let node = |id| FakeNode {
            id,
            world: Arc::clone(&world),
            tools_ns: AtomicU64::new(0),
            machine_ns: AtomicU64::new(0),
        };
        let nodes = NodeId::ALL.map(node).into();
        Self { world, nodes }
    }

    /// Asserts that nothing was left behind.
    pub(crate) fn assert_clean(&self) {
        let world = self.world.lock().unwrap();
        // `cat` and `tee` end by themselves, whether or not they are waited for.
        let mut running = world
            .running
            .values()
            .map(|(_, program)| program.argv[0].as_str());
        assert_eq!(running.find(|name| ["iperf3", "ping"].contains(name)), None);
        assert_eq!(world.watches, 0, "a watch was not ended");
        assert_eq!(world.duts_up, 0, "the DUT is still up");
    }
}

impl Bench for FakeBench {
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

    fn configure(&mut self, links: Links) -> Result<(), LabError> {
        self.world.lock().unwrap().links.push(links);
        Ok(())
    }

    fn start_dut(
        &mut self,
        dut: &Dut,
        _links: Links,
        _direction: Direction,
    ) -> Result<RunningDut, LabError> {
        let mut world = self.world.lock().unwrap();
        let missing = world.script.missing.clone();
        let missing = missing.filter(|_| dut.adapter.encrypts());
        if let Err(reason) = missing.map_or(world.script.dut_comes_up.clone(), Err) {
            return Err(LabError::Dut {
                dut: dut.name.clone(),
                reason,
            });
        }
        world.duts_up += 1;
        let mut running = RunningDut::default();
        if dut.adapter.encrypts() {
            running.processes = vec![(NodeId::Gw1, DUT_PROCESS), (NodeId::Gw2, DUT_PROCESS + 1)];
            running.sealed_ports = vec![SealedPort::esp(4500)];
            running.tunnel_keys = Some(world.script.tunnel.keys.clone());
            let facts = [
                ("suite", "aes-256-gcm"),
                ("engine", "fake"),
                ("lanes", "1"),
                ("tunnels", "1"),
                ("mode", "l3"),
                ("aggregate", "off"),
                ("busy_poll", "off"),
                ("keys", "static"),
            ];
            for (key, value) in facts {
                for gateway in ["gw1", "gw2"] {
                    let key = format!("{gateway}/{key}");
                    running.facts.insert(key, value.to_owned());
                }
            }
        }
        Ok(running)
    }

    fn dut_counters(&self, dut: &RunningDut) -> Result<BTreeMap<String, u64>, LabError> {
        if dut.processes.is_empty() {
            return Ok(BTreeMap::new());
        }
        let world = self.world.lock().unwrap();
        let bytes = world.runs * (world.script.carried_bytes + world.script.header_bytes);
        let count = |name: &str, value| (name.to_owned(), value);
        Ok(BTreeMap::from([
            count("gw1/clear_rx_bytes", bytes),
            count("gw1/clear_rx_packets", bytes / 1000),
            count("gw1/cipher_tx_packets", bytes / 1000),
            count("gw2/cipher_rx_packets", bytes / 1000),
            count("gw2/clear_tx_packets", bytes / 1000),
            count("gw2/clear_tx_bytes", bytes),
        ]))
    }

    fn stop_dut(&mut self, _dut: RunningDut) -> Result<(), LabError> {
        let mut world = self.world.lock().unwrap();
        world.duts_up -= 1;
        let lives = world.script.dut_lives.clone();
        lives.map_err(|reason| LabError::Dut {
            dut: "fake".to_owned(),
            reason,
        })
    }
}

struct FakeNode {
    id: NodeId,
    world: Arc<Mutex<World>>,
    tools_ns: AtomicU64,
    machine_ns: AtomicU64,
}

impl FakeNode {
    fn error(&self, reason: &str) -> LabError {
        LabError::Node {
            node: self.id.name(),
            reason: reason.to_owned(),
        }
    }

    fn start(&self, world: &mut World, program: Program) -> Result<Response, LabError> {
        world.started.push((self.id, program.clone()));
        if self.id == NodeId::B && program.argv[0] == "iperf3" && !world.script.servers_listen {
            return Err(self.error("`iperf3` did not listen on TCP port 5201 within 5 s"));
        }
        world.handles += 1;
        let process = world.handles;
        world.running.insert(process, (self.id, program));
        world.starts.insert(process, Instant::now());
        Ok(Response::Started {
            process,
            pid: 1,
            stdout: String::new(),
        })
    }

    /// A client ends when its `-t` is over; ping at once, so nothing waits for it; a server never.
    fn status(world: &World, process: u64) -> Option<Ended> {
        if process >= DUT_PROCESS {
            let died = world.script.dut_dies_after;
            let up = world.starts.values().next();
            // Without any tool it is seen as ended from the beginning.
            let late = up.is_none_or(|start| start.elapsed() >= died);
            return world.script.dut_ended.clone().filter(|_| late);
        }
        let (_, program) = &world.running[&process];
        let seconds = program.argv.iter().skip_while(|word| *word != "-t").nth(1);
        let over = seconds.map(|seconds| Duration::from_secs(seconds.parse().unwrap()));
        let over = match program.argv[0].as_str() {
            // Under load none ends.
            "ping" => {
                let mut running = world.running.values();
                !running.any(|(_, other)| other.argv[0] == "iperf3")
            }
            _ => over.is_some_and(|over| world.starts[&process].elapsed() >= over),
        } && !world.script.clients_hang;
        over.then(Ended::default)
    }

    fn wait(&self, world: &mut World, process: u64) -> Result<Ended, LabError> {
        let (id, program) = world
            .running
            .remove(&process)
            .ok_or_else(|| self.error("no such process"))?;
        let word = |at: usize| program.argv[at].as_str();
        match (word(0), word(1)) {
            ("cat", "/proc/net/tcp") => return Ok(said(world.take_connections())),
            ("tee", _) => return Ok(said("1\n")),
            ("ss", _) => return Ok(said("0 0 10.1.0.2:40032 10.2.0.2:5201\n\t cubic rto:201\n")),
            _ => {}
        }
        if id == NodeId::A {
            world.runs += 1;
        }
        if word(0) == "ping" {
            return Ok(world.script.ping.clone());
        }
        let port = program
            .argv
            .iter()
            .skip_while(|word| *word != "-p")
            .nth(1)
            .unwrap();
        // Processes have consecutive ports, so a port selects the recorded output.
        let index = port.parse::<usize>().unwrap() - 5201;
        let outputs = if id == NodeId::A {
            &world.script.clients
        } else {
            &world.script.servers
        };
        Ok(outputs[index].clone())
    }

    fn cpu_time(&self, process: Option<u64>) -> CpuTime {
        // The machine is ten times as busy as one program.
        let (clock, step) = match process {
            Some(_) => (&self.tools_ns, 10 * MS),
            None => (&self.machine_ns, 100 * MS),
        };
        let total = clock.fetch_add(step, Ordering::Relaxed);
        CpuTime {
            user_ns: total,
            system_ns: step,
            steal_ns: if process.is_none() { total / 10 } else { 0 },
            idle_ns: if process.is_none() { 2 * total } else { 0 },
        }
    }

    fn counters(&self, world: &World) -> BTreeMap<String, InterfaceCounters> {
        let bytes = world.runs * (world.script.carried_bytes + world.script.header_bytes);
        let packets = bytes / 1000;
        let counters = InterfaceCounters {
            rx_bytes: bytes,
            rx_packets: packets,
            tx_bytes: bytes,
            tx_packets: packets,
            ..InterfaceCounters::default()
        };
        [(self.interface().to_owned(), counters)].into()
    }

    fn interface(&self) -> &'static str {
        match self.id {
            NodeId::A => "a0",
            NodeId::Gw1 => "w0",
            NodeId::Gw2 => "w1",
            NodeId::B => "b0",
            NodeId::Element(_) | NodeId::Tap => "p0",
            NodeId::Host => "lo",
        }
    }
}

impl Node for FakeNode {
    fn id(&self) -> NodeId {
        self.id
    }

    fn call(&self, request: Request) -> Result<Response, LabError> {
        let mut world = self.world.lock().unwrap();
        let name = format!("{request:?}");
        let interrupt_at = &mut world.script.interrupt_at;
        if interrupt_at.take_if(|at| name.starts_with(*at)).is_some() {
            return Err(LabError::Interrupted);
        }
        if let Some((id, trial)) = world.script.dies_in_trial
            && id == self.id
            // Each trial configures the links once, so this counts trials.
            && world.links.len() >= trial
        {
            return Err(self.error("the station ended (signal: 9)"));
        }
        Ok(match request {
            Request::Hello { protocol } => Response::Hello {
                protocol,
                program: "fake".to_owned(),
                pid: 1,
                boot_id: "fake".to_owned(),
                clock: String::new(),
                cores: 2,
                cpus: Vec::new(),
                rmem_max_bytes: world.script.buffers_max,
                wmem_max_bytes: world.script.buffers_max,
            },
            Request::Start { program, .. } => self.start(&mut world, program)?,
            Request::Wait { process, .. } => Response::Ended(self.wait(&mut world, process)?),
            Request::Stop { process, .. } => {
                let found = world.running.remove(&process);
                found.ok_or_else(|| self.error("no such process"))?;
                Response::Ended(Ended {
                    signal: Some(15),
                    ..Ended::default()
                })
            }
            Request::Status { process } => Response::Status(Self::status(&world, process)),
            Request::CpuTime { process } => Response::CpuTime(self.cpu_time(process)),
            request @ (Request::CountersStart { .. } | Request::CountersEnd) => {
                world.counting.answer(self.id, &request)
            }
            Request::InterfaceCounters => Response::InterfaceCounters(self.counters(&world)),
            Request::Offloads => {
                let asked = world.links.last().is_some_and(|links| links.offloads);
                let state = if asked { "on" } else { "off" };
                let features = [
                    "tcp-segmentation-offload",
                    "generic-segmentation-offload",
                    "tx-udp-segmentation",
                ];
                let mut found: BTreeMap<_, _> = features
                    .map(|name| (name.to_owned(), state.to_owned()))
                    .into();
                found.insert("generic-receive-offload".to_owned(), "off".to_owned());
                Response::Offloads([(self.interface().to_owned(), found)].into())
            }
            Request::Watch { .. } => {
                world.watches += 1;
                Response::Watching { watch: 7 }
            }
            Request::SettingsWatch { .. } => {
                world.watches += 1;
                Response::Watching { watch: 8 }
            }
            Request::SettingsWatchEnd { watch: 8 } => {
                world.watches -= 1;
                Response::SettingsWatched(world.script.settings.clone())
            }
            Request::WatchEnd { watch: 7 } => {
                world.watches -= 1;
                Response::Watched(world.script.watch.clone())
            }
            Request::UdpErrors => Response::UdpErrors {
                receive_buffer_errors: world.runs * world.script.station_lost,
                in_errors: world.runs * world.script.station_lost,
            },
            Request::Sample { packets, .. } => {
                let Script {
                    tunnel,
                    cipher_link,
                    ..
                } = &world.script;
                Response::Sample(tunnel.sample(cipher_link, packets))
            }
            other => return Err(self.error(&format!("the fake cannot do {other:?}"))),
        })
    }
}

/// A TCP cell that takes a second.
pub(crate) fn tcp(adapter: Adapter, cores: u16) -> Cell {
    let tcp = Measurement::Tcp {
        tool: Tool::default(),
        direction: TransferDirection::AToB,
        congestion: None,
        streams: 2,
        window_bytes: None,
        duration_ns: 1000 * MS,
        warmup_ns: 0,
    };
    cell(adapter, cores, tcp)
}

/// A UDP cell that takes a second.
pub(crate) fn udp(adapter: Adapter) -> Cell {
    let udp = Measurement::Udp {
        tool: Tool::default(),
        direction: TransferDirection::AToB,
        datagram_bytes: Some(1472),
        rate_bps: Some(100_000_000),
        streams: 2,
        duration_ns: 1000 * MS,
        warmup_ns: 0,
    };
    cell(adapter, 1, udp)
}

/// A ping cell that takes 20 ms.
pub(crate) fn ping(adapter: Adapter) -> Cell {
    let ping = Measurement::Ping {
        count: 20,
        interval_ns: MS,
        payload_bytes: 56,
        loaded: false,
        route: false,
        load_dscp: Vec::new(),
    };
    cell(adapter, 1, ping)
}

pub(crate) fn encrypting() -> Adapter {
    Adapter::Cipherbench(Encryptor::new(Suite::Aes256Gcm))
}

fn cell(adapter: Adapter, cores: u16, measurement: Measurement) -> Cell {
    let name = if adapter.encrypts() {
        "cipherbench"
    } else {
        "direct"
    };
    let group = format!("{}/cores={cores}", measurement.name());
    Cell {
        id: format!("{group}/{name}"),
        coordinates: Coordinate::all_in(&group),
        group,
        dut: Dut::new(name, adapter),
        stations: Some(Stations {
            mtu: 1500,
            cores,
            offloads: true,
            overlay: plan::Overlay::None,
            dscp: None,
        }),
        measurement,
        impair: None,
        tune: false,
        estimate_ns: ESTIMATE_NS,
        calibration: false,
    }
}

pub(crate) fn plan(cells: Vec<Cell>, repeats: u32) -> Plan {
    Plan {
        name: "test".to_owned(),
        title: String::new(),
        lab: LabPlan::named("test"),
        repeats,
        cells,
        order: plan::Order::File,
        claims: Vec::new(),
        published: Vec::new(),
        capture: None,
        expect: plan::Expectations::default(),
        reports: Vec::new(),
    }
}
