//! Round trips under TCP load, as Flent's RRUL test measures them: the echo requests of the idle
//! path again, while iperf3 loads it from A to B, from B to A, and both ways; by one connection, or
//! by one of each class of service in parallel.

use crate::command::{BASE_PORT, Commands, iperf3_option};
use crate::congestion;
use crate::counters::Counters;
use crate::error::TrialError;
use crate::iperf3::Sessions;
use crate::tools::{ALIVE_STEP, STOP_GRACE, Tools, await_end, latency, tool_error};
use crate::watch::{WatchPoint, outer_classes};
use journal::record::{LoadedClass, LoadedLatency};
use plan::{Dscp, FlowDirection, Measurement, Software, TransferDirection};
use std::time::{Duration, Instant};
use testbed::protocol::{Program, Ready};
use testbed::{Bench, Interrupt, NodeId, RunningDut};

/// Multiple of their planned time that the requests may take: under load `ping` waits for its core.
const REQUESTS_LATE: u32 = 4;
/// Time for the requests beyond that.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Time of the load beyond the longest of the requests; it is stopped when they end.
const LOAD_AROUND: Duration = Duration::from_secs(10);
/// Minimum bytes of a load that did load the path, far more than the requests' bytes.
const LOAD_BYTES_LEAST: u64 = 1_000_000;

/// The path that is loaded.
#[derive(Clone, Copy)]
pub(crate) struct Loaded<'a> {
    pub(crate) bench: &'a dyn Bench,
    pub(crate) dut: &'a RunningDut,
    pub(crate) interrupt: &'a Interrupt,
    /// Whether it may damage packets itself.
    pub(crate) path_damages: bool,
    /// Classes of the load; empty: one connection without a class.
    pub(crate) classes: &'a [Dscp],
    /// May name the program of the load.
    pub(crate) software: &'a Software,
    /// `None` without a cipher link.
    pub(crate) look: Option<WatchPoint<'a>>,
}

/// The classes of the loads that a ping is made under.
pub(crate) fn classes(measurement: &Measurement) -> &[Dscp] {
    match measurement {
        Measurement::Ping { load_dscp, .. } => load_dscp,
        _ => &[],
    }
}

/// Sends the echo requests of `commands` once more under each load. The commands are added to
/// `words`.
///
/// # Errors
/// When a tool fails, the load ends before the requests do, or none of it arrives.
pub(crate) fn measure(
    path: Loaded<'_>,
    commands: &Commands,
    words: &mut Vec<Vec<String>>,
) -> Result<Vec<LoadedLatency>, TrialError> {
    let ping = commands
        .clients
        .first()
        .ok_or_else(|| failed("no ping is planned".to_owned()))?;
    let requests = Duration::from_nanos(commands.timing.run_ns);
    let target = path.bench.target();
    // The load must outlast the requests however late they are: a load that ends first fails the
    // trial.
    let seconds = (requests * REQUESTS_LATE + END_LIMIT + LOAD_AROUND).as_secs();
    let name = path.software.station_program("iperf3").unwrap_or("iperf3");
    let stream = |direction, class: Option<Dscp>, port| {
        let tos = class.map_or_else(String::new, |class| format!(" -S {}", class.tos()));
        Stream {
            class,
            port,
            server: iperf3(
                name,
                &format!("-s -1 -J -p {port}"),
                &commands.cores.b,
                Ready::Listening(port),
            ),
            client: iperf3(
                name,
                &format!(
                    "-c {target} -p {port} -J -t {seconds}{}{tos} --connect-timeout 3000",
                    iperf3_option(direction)
                ),
                &commands.cores.a,
                Ready::Started,
            ),
        }
    };
    let loads = TransferDirection::ALL.map(|(_, direction)| {
        let classes = path.classes.iter().copied().map(Some);
        let mut streams: Vec<Stream> = classes
            .zip(BASE_PORT..)
            .map(|(class, port)| stream(direction, class, port))
            .collect();
        if streams.is_empty() {
            streams.push(stream(direction, None, BASE_PORT));
        }
        Load {
            path,
            direction,
            ping,
            streams,
        }
    });
    let mut found = Vec::new();
    for load in loads {
        let streams = load.streams.iter();
        let programs = streams.flat_map(|stream| [&stream.server, &stream.client]);
        words.extend(programs.chain([load.ping]).map(|it| it.argv.clone()));
        found.push(load.run(requests)?);
    }
    Ok(found)
}

fn iperf3(name: &str, options: &str, cores: &[u16], ready: Ready) -> Program {
    Program {
        cores: cores.to_vec(),
        ready,
        ..Program::new([name].into_iter().chain(options.split_whitespace()))
    }
}

/// One load, with the requests under it.
struct Load<'a> {
    path: Loaded<'a>,
    direction: TransferDirection,
    ping: &'a Program,
    streams: Vec<Stream>,
}

/// One connection of a load.
struct Stream {
    class: Option<Dscp>,
    port: u16,
    server: Program,
    client: Program,
}

impl Load<'_> {
    fn run(&self, requests: Duration) -> Result<LoadedLatency, TrialError> {
        let mut tools = Tools::new(self.path.bench);
        let mut running = Vec::new();
        for stream in &self.streams {
            let server = tools.start(NodeId::B, &stream.server)?;
            running.push((server, tools.start(NodeId::A, &stream.client)?));
        }
        for stream in &self.streams {
            // Without a connection there is no load.
            congestion::of_port(self.path.bench, NodeId::A, stream.port)?;
        }
        // Before the requests, which the samples would delay.
        let look = self.path.look.filter(|_| !self.path.classes.is_empty());
        let outer_dscp = look.map(|look| outer_classes(self.path.bench, self.path.dut, look));
        let outer_dscp = outer_dscp.transpose()?.unwrap_or_default();
        // Once the load runs: bytes from its beginning prove nothing about the time of the
        // requests.
        let before = self.link_bytes()?;
        let classes_before = self.classes()?;
        let started = Instant::now();
        let ping = tools.start(NodeId::A, self.ping)?;
        let deadline = started + requests * REQUESTS_LATE + END_LIMIT;
        // Once a second: requests to the stations take CPU time from the load and from the pings.
        let dut = (self.path.dut.path_processes(), ALIVE_STEP);
        await_end(
            self.path.bench,
            (NodeId::A, ping),
            deadline,
            dut,
            self.path.interrupt,
        )?;
        let left = deadline.saturating_duration_since(Instant::now());
        let ended = tools.wait(NodeId::A, ping, left)?;
        let duration_ns = started.elapsed().as_nanos() as u64;
        let classes_after = self.classes()?;
        let after = self.link_bytes()?;
        let found = latency(NodeId::A, &ended, self.path.path_damages)?;
        let direction = self.direction.name();
        // Looked at before it is stopped here: the requests after its end would be on an idle path.
        for (_, client) in &running {
            if let Some(ended) = self.path.bench.node(NodeId::A).status(*client)? {
                let problem = format!("the load {direction} ended before the echo requests");
                let why = Sessions::parse(&ended.stdout).err();
                let problem = why.map_or(problem.clone(), |why| format!("{problem}: {why}"));
                return Err(tool_error(NodeId::A, problem, &ended));
            }
        }
        for (server, client) in running {
            tools.stop(NodeId::A, client, STOP_GRACE)?;
            tools.stop(NodeId::B, server, STOP_GRACE)?;
        }
        let link_bytes = [0, 1].map(|way| after[way].saturating_sub(before[way]));
        // A connection that stalls would pass all of the above.
        for way in self.direction.ways() {
            let carried = link_bytes[usize::from(*way == FlowDirection::BToA)];
            if carried < LOAD_BYTES_LEAST {
                return Err(failed(format!(
                    "the load {direction} did not load the path: {carried} B crossed it {} during the requests",
                    way.name()
                )));
            }
        }
        Ok(LoadedLatency {
            direction: self.direction,
            sent: found.sent,
            received: found.received,
            round_trips_ns: found.round_trips_ns,
            duration_ns,
            link_bytes,
            outer_dscp,
            classes: classes_after
                .into_iter()
                .zip(classes_before)
                .map(|(after, before)| LoadedClass {
                    class: after.class,
                    bytes: [0, 1].map(|way| after.bytes[way].saturating_sub(before.bytes[way])),
                })
                .collect(),
        })
    }

    /// The payload of each class so far, as station A's connections count it.
    fn classes(&self) -> Result<Vec<LoadedClass>, TrialError> {
        let streams = self.streams.iter();
        let classes: Vec<(Dscp, u16)> = streams
            .filter_map(|it| Some((it.class?, it.port)))
            .collect();
        if classes.is_empty() {
            return Ok(Vec::new());
        }
        // One look for all: a program for each class would take its CPU time from the load, and the
        // counts of the last class would be of a later time.
        let ports: Vec<u16> = classes.iter().map(|(_, port)| *port).collect();
        let carried = congestion::carried(self.path.bench, NodeId::A, &ports)?;
        let found = classes.iter().zip(carried);
        Ok(found
            .map(|((class, _), bytes)| LoadedClass {
                class: *class,
                bytes,
            })
            .collect())
    }

    /// Bytes that went from A's side to B's and back so far.
    fn link_bytes(&self) -> Result<[u64; 2], TrialError> {
        let interfaces = Counters::read(self.path.bench, self.path.dut)?.interfaces;
        let (a, b) = self.path.bench.station_interfaces();
        let ends = self.path.bench.cipher_ends();
        let [there, back] = ends.unwrap_or([(NodeId::A, a), (NodeId::B, b)]);
        Ok([there, back].map(|(node, name)| {
            let found = interfaces.get(&format!("{}/{name}", node.name()));
            found.map_or(0, |counters| counters.tx_bytes)
        }))
    }
}

fn failed(problem: String) -> TrialError {
    TrialError::Tool {
        node: NodeId::A.name(),
        problem,
    }
}
