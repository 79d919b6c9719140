//! Stations, links and devices under test: built, driven and always torn down.
//!
//! ```text
//!  station A        gateway gw1                     gateway gw2       station B
//!  .----.           .---------.    cipher link      .---------.           .----.
//!  | a0 |-----------| a1   w0 |---------------------| w1   b1 |-----------| b0 |
//!  '----'           '---------'  DUT in between     '---------'           '----'
//!  tools            DUT process                     DUT process           tools
//!  .----.                                                                 .----.
//!  | c0 |-----------------------------------------------------------------| c1 |
//!  '----'           past the gateways, to know the tester itself          '----'
//!
//!  with a path of elements, instead of the cipher link:
//!     .---------.    .---------.    .---------.    .---------.
//!  …--| gw1  w0 |----| p0   p1 |----| p0   p1 |----| w1  gw2 |--…
//!     '---------'    '---------'    '---------'    '---------'
//!                      bridge1        router2
//! ```
//!
//! Each box is a network namespace without a name, held by one child process: a [`station`]. The
//! run sends it requests over its standard input and output ([`protocol`]), which suffices for a
//! station on another host too. However the run ends, the station's input ends, it kills all that
//! it started, and the kernel removes namespace and links with the last process. The next run of
//! the same lab name removes processes that were stopped or hung ([`state`]). The namespaces of the
//! machine are never touched.
//!
//! The only crate that needs privileges ([`privilege`]). `trial` sees it through two traits,
//! [`Bench`] and [`Node`], so that trials are tested without a lab.
//!
//! This crate deliberately does no measuring and no evaluation.

mod bypass;
mod cables;
mod caller;
pub mod clocks;
mod counted;
mod cut;
mod driver;
mod dut;
mod exposition;
mod frame_path;
pub mod host;
mod hosts;
mod http;
mod interrupt;
mod kill;
mod lent;
mod mark;
mod monitor;
mod namespaces;
mod nat;
mod node_id;
mod offloads;
mod on_node;
mod own_children;
mod own_file;
mod packet_socket;
mod perf;
pub mod privilege;
mod procfs;
pub mod programs;
pub mod protocol;
mod reading;
mod receive_queues;
mod remains;
mod sample;
mod scan;
mod secret_file;
mod settings;
pub mod state;
pub mod station;
mod switch;
mod sync;
mod time_stamps;
mod topology;
mod tunnel_keys;

pub use caller::Station;
pub use counted::Counted;
pub use driver::driver_counters;
pub use frame_path::{FrameEnd, FramePath, StationKeys, StationPeer};
pub use hosts::Visit;
pub use interrupt::Interrupt;
pub use monitor::{Monitor, TrafficLog};
pub use namespaces::{NamespaceLab, Setup};
pub use node_id::{ElementId, NodeId};
pub use own_file::expect_whole;
pub use privilege::Privilege;
pub use receive_queues::ReceiveQueues;
pub use time_stamps::card_clock;
pub use tunnel_keys::{Network, TunnelKeys};

use journal::record::InterfaceCounters;
use plan::{Desync, Direction, Dut, IpVersion, Reset};
use protocol::{ControlPort, CpuTime, Ended, Program, Request, Response, SealedPort};
use std::{collections::BTreeMap, time::Duration};

/// The result of a lab's operation.
pub type Result<T, E = LabError> = std::result::Result<T, E>;

/// An error of a lab. Its text says what failed, on which node, and how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The host cannot build this lab (privilege, kernel feature, tool): exit code 3.
    #[error("{what}\nhelp: {help}")]
    CannotBuild {
        /// The missing requirement.
        what: String,
        /// The command or setting that fixes it.
        help: String,
    },
    /// Another run holds the lab's name: exit code 3.
    #[error(
        "lab `{name}` is in use by process {pid}\nhelp: wait for it, or give this lab another name"
    )]
    Taken {
        /// The lab's name.
        name: String,
        /// Process id of the holder.
        pid: u32,
    },
    /// A station answered with an error, or stopped answering.
    #[error("{node}: {reason}")]
    Node {
        /// Which.
        node: &'static str,
        /// Its error, or what happened to it.
        reason: String,
    },
    /// The DUT did not come up or died.
    #[error("the device under test `{dut}` {reason}")]
    Dut {
        /// [`Dut::name`].
        dut: String,
        /// What happened, with the end of its output.
        reason: String,
    },
    /// The run was interrupted (Ctrl-C).
    #[error("interrupted")]
    Interrupted,
}

impl LabError {
    pub(crate) fn cannot_build(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::CannotBuild {
            what: what.into(),
            help: help.into(),
        }
    }

    /// The error for a peer's secret that the station cannot read.
    pub(crate) fn unread_secret(dut: &str, reason: &str) -> Self {
        Self::dut(
            dut,
            format!("cannot have the station as its peer: {reason}"),
        )
    }

    pub(crate) fn dut(dut: &str, reason: impl Into<String>) -> Self {
        Self::Dut {
            dut: dut.to_owned(),
            reason: reason.into(),
        }
    }

    /// Appends a help line to a station's or a DUT's error if its reason contains `words`.
    pub(crate) fn help_for(mut self, words: &str, help: &str) -> Self {
        if let Self::Node { reason, .. } | Self::Dut { reason, .. } = &mut self
            && reason.contains(words)
        {
            *reason += &format!("\nhelp: {help}");
        }
        self
    }

    /// Turns a station's error during the build of a lab into a cannot-build error. `whose` maps
    /// the station's name to the prefix of the reason; `help` is for a reason without help.
    pub(crate) fn into_cannot_build(self, whose: impl FnOnce(&str) -> String, help: &str) -> Self {
        match self {
            Self::Node { node, reason } => {
                let (what, help) = reason.rsplit_once("\nhelp: ").unwrap_or((&reason, help));
                Self::cannot_build(format!("{}: {what}", whose(node)), help)
            }
            error => error,
        }
    }

    /// Turns a station's error into the DUT's; `reason` gets the station's name and its reason.
    pub(crate) fn into_dut(self, dut: &str, reason: impl FnOnce(&str, &str) -> String) -> Self {
        match self {
            Self::Node { node, reason: said } => Self::dut(dut, reason(node, &said)),
            error => error,
        }
    }
}

/// A node: runs programs and reads counters. Implemented by `Station`, and by fakes in tests.
pub trait Node: Send + Sync {
    /// The node's id.
    fn id(&self) -> NodeId;

    /// Sends a request and waits for the answer. Safe to call from several threads concurrently.
    ///
    /// # Errors
    /// [`LabError::Node`] with the station's error, or that it is gone.
    fn call(&self, request: Request) -> Result<Response>;
}

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

/// A DUT that is up.
#[derive(Debug, Clone, Default)]
pub struct RunningDut {
    /// Its processes: node, and handle in the station's protocol.
    pub processes: Vec<(NodeId, u64)>,
    /// Processes of the tester on its path, which must run while the DUT does.
    pub beside: Vec<(NodeId, u64)>,
    /// Facts that it reports about itself, by `gateway/key` (`gw1/engine`).
    pub facts: BTreeMap<String, String>,
    /// UDP ports of its sealed packets; empty when it does not encrypt, or its ESP is bare.
    pub sealed_ports: Vec<SealedPort>,
    /// TCP ports over which its gateways agree on keys; empty if they use UDP or do not agree on
    /// keys.
    pub control_ports: Vec<ControlPort>,
    /// The ends of the test frames' path, from A's side to B's; `None` if the DUT cannot be loaded
    /// with frames.
    pub frame_path: Option<FramePath>,
    /// Whether it runs on external machines, so that its CPU time cannot be measured.
    pub elsewhere: bool,
    /// Whether its payload is readable by design: then clear text inside its packets is no finding.
    pub readable: bool,
    /// Keys to open its sealed packets; `None` if only the DUT has them.
    pub tunnel_keys: Option<TunnelKeys>,
}

impl RunningDut {
    /// Every process on the path.
    pub fn path_processes(&self) -> impl Iterator<Item = &(NodeId, u64)> + Clone {
        self.processes.iter().chain(&self.beside)
    }
}

/// An action on a running DUT. [`plan::DutProfile::abilities`] lists which DUT supports
/// which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DutAction {
    /// Rekeys all tunnels together; done when the new keys are in use in both directions.
    Rekey,
    /// Kills the encryptor on that gateway: SIGKILL to its processes.
    Kill(NodeId),
    /// Restarts it there as at first; done when it reports ready, possibly before traffic passes.
    Restart(NodeId),
    /// Restarts it there immediately, by that kind of reset; done when it reports ready or, for a
    /// box, has accepted the command.
    Reset(NodeId, Reset),
    /// Takes all tunnels down in order. `docs/encryptors.md` says which processes keep running.
    TakeDown,
    /// Sets all tunnels up again; done when all are up.
    SetUp,
    /// Desynchronises its keys, which it must detect and repair itself; done when it has received
    /// the command.
    Desync(Desync),
    /// Takes the link between the gateways down at gw1's end. The lab does this for every DUT.
    CutLink,
    /// Takes the link up again.
    JoinLink,
    /// Gives gw1 a default route over the link between the gateways, past the encryptor, to a
    /// router that does not exist. The lab does this for every DUT.
    OpenBypass,
    /// Removes that route.
    CloseBypass,
}

/// Returns the interfaces of the built-in lab's path by `node/interface`, in the order of traffic
/// from A: both ends of A's link, of the cipher link and of B's link. With elements, the cipher
/// link's two ends belong to two links.
#[must_use]
pub fn path_interfaces() -> [String; 6] {
    topology::PATH.map(topology::End::name)
}

/// Both ends of the link past the gateways, A's first, by `node/interface`.
#[must_use]
pub fn direct_interfaces() -> [String; 2] {
    topology::PAST_THE_GATEWAYS.map(topology::End::name)
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
        Ok(Vec::new())
    }

    /// Prepares periodic readings of the DUT, and of machines that count their energy; reads every
    /// value of the DUT once. `busy` are the CPUs of the stations, as [`protocol::Program::cores`]
    /// counts them: the readings use other CPUs, if the machine has any.
    ///
    /// # Errors
    /// When a value cannot be read, with the reason and what to do.
    fn monitor<'a>(&'a self, dut: &RunningDut, busy: &[u16]) -> Result<Monitor<'a>> {
        let _ = (dut, busy);
        Ok(Monitor::default())
    }

    /// Performs an action on the DUT and updates [`RunningDut::processes`].
    ///
    /// # Errors
    /// When the DUT does not support the action, or it failed.
    fn act(&self, dut: &mut RunningDut, action: DutAction) -> Result<()> {
        let _ = dut;
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

    /// Stops the DUT.
    ///
    /// # Errors
    /// [`LabError::Dut`] with the end of its output when it had already died; it is cleaned up
    /// anyway.
    fn stop_dut(&mut self, dut: RunningDut) -> Result<()>;
}

impl dyn Node + '_ {
    /// Returns the path of the program that the station would start; `None` if it is missing.
    ///
    /// # Errors
    /// When the station is gone.
    pub fn locate(&self, program: &str) -> Result<Option<String>> {
        let program = program.to_owned();
        match self.call(Request::Locate { program })? {
            Response::Located(path) => Ok(path),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Starts a program.
    ///
    /// # Errors
    /// When it cannot be started or is not ready in time.
    pub fn start(&self, program: Program, limit: Duration) -> Result<u64> {
        match self.call(Request::Start {
            program,
            limit_ms: millis(limit),
        })? {
            Response::Started { process, .. } => Ok(process),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Waits for a program to end; kills it when `limit` is up.
    ///
    /// # Errors
    /// When the handle is unknown.
    pub fn wait(&self, process: u64, limit: Duration) -> Result<Ended> {
        match self.call(Request::Wait {
            process,
            limit_ms: millis(limit),
        })? {
            Response::Ended(ended) => Ok(ended),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Stops a program.
    ///
    /// # Errors
    /// When the handle is unknown.
    pub fn stop(&self, process: u64, grace: Duration) -> Result<Ended> {
        match self.call(Request::Stop {
            process,
            grace_ms: millis(grace),
        })? {
            Response::Ended(ended) => Ok(ended),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Starts a program and waits for its end.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn run(&self, program: Program, limit: Duration) -> Result<Ended> {
        let process = self.start(program, limit)?;
        self.wait(process, limit)
    }

    /// CPU time of a program, or of the machine.
    ///
    /// # Errors
    /// When the handle is unknown.
    pub fn cpu_time(&self, process: Option<u64>) -> Result<CpuTime> {
        match self.call(Request::CpuTime { process })? {
            Response::CpuTime(time) => Ok(time),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Resident memory of a program in bytes.
    ///
    /// # Errors
    /// When the handle is unknown, or the program has ended.
    pub fn resident_bytes(&self, process: u64) -> Result<u64> {
        match self.call(Request::Resident { process })? {
            Response::Resident(bytes) => Ok(bytes),
            other => Err(self.unexpected(&other)),
        }
    }

    /// What identifies a running program: no other on this machine has it until the next boot.
    ///
    /// # Errors
    /// When the handle is unknown, or the program has ended.
    pub(crate) fn identity(&self, process: u64) -> Result<String> {
        match self.call(Request::Identity { process })? {
            Response::Identity { pid, start_ticks } => {
                Ok(format!("pid {pid}, started {start_ticks} ticks after boot"))
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// How a program ended; `None` while it runs.
    pub(crate) fn status(&self, process: u64) -> Result<Option<Ended>> {
        match self.call(Request::Status { process })? {
            Response::Status(ended) => Ok(ended),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Counters by interface, without `lo`.
    pub(crate) fn interface_counters(&self) -> Result<BTreeMap<String, InterfaceCounters>> {
        match self.call(Request::InterfaceCounters)? {
            Response::InterfaceCounters(counters) => Ok(counters),
            other => Err(self.unexpected(&other)),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.id().name()
    }

    pub(crate) fn error(&self, reason: impl Into<String>) -> LabError {
        LabError::Node {
            node: self.name(),
            reason: reason.into(),
        }
    }

    /// The error for an answer that does not fit its request.
    #[must_use]
    pub fn unexpected(&self, response: &Response) -> LabError {
        self.error(format!("unexpected answer {response:?}"))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
