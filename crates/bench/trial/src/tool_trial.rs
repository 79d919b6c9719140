//! Runs one trial with tools: starts the path, measures, stops the path, and checks the evidence.
//!
//! 1. Set the links and start the DUT ([`Bench::start_dut`] waits until A reaches B through it).
//! 2. Wait until connections of an earlier trial are closed; read offloads and counters, and watch
//!    every node's settings from here on; start servers on B and clients on A.
//! 3. While they run: read the DUT's monitored values; watch every frame of the cipher link for
//!    foreign ones, read CPU time at both ends of the measured time, and take samples of the cipher
//!    link in between.
//! 4. Wait for clients and servers, read counters and settings again, stop the DUT.
//! 5. Combine the tools' reports and make every check.
//!
//! On any failure the tools and the DUT are stopped and the trial is recorded with the reason; only
//! an interrupt or the loss of a station ends the run. There is no retry: a failed trial is a
//! result.

use crate::command::{self, BASE_PORT, Commands, IPERF2_BLOCK_BYTES, commands};
use crate::congestion;
use crate::counters::{self, Counters, offloads};
use crate::direction::ends;
use crate::error::TrialError;
use crate::evidence::{self, Ends, Interfaces, Load, ToolObserved};
use crate::impaired::ImpairedPath;
use crate::iperf2;
use crate::iperf3::{Session, Sessions};
use crate::loaded;
use crate::markers::markers;
use crate::measurer::{Trial, hello, machines, with_dut};
use crate::overlay::Connected;
use crate::path_readings::PathReadings;
use crate::prepared;
use crate::quiet;
use crate::route;
use crate::settings::SettingsWatch;
use crate::tools::{STOP_GRACE, Tools, latency, report_of, sessions};
use crate::transfer::{self, END_LIMIT_NS, Pair, Totals, TransferSettings, assemble};
use crate::watch::{CipherLinkWatch, Sample, WatchPoint, WatchResult, Watcher};
use impair::Impaired;
use journal::record::{Figures, HttpResult, Latency, Measured, Outcome, Transfer, VideoResult};
use plan::{Direction, FlowDirection, ImpairProfile, Measurement, Tool, TransferDirection};
use std::time::{Duration, Instant};
use testbed::protocol::{Ended, Response};
use testbed::{Bench, Interrupt, LabError, Node, NodeId, RunningDut, TrafficLog};

/// Time for the tools beyond their running time: connecting, exchanging results, a lost last reply.
const END_LIMIT: Duration = Duration::from_nanos(END_LIMIT_NS);
/// Multiple of its running time that `ping` may take: with intervals from 10 ms on, it sleeps a few
/// milliseconds too long each time.
const PING_LATE: u32 = 2;
/// As `PING_LATE`, for a client of HTTP: the ramp-down phase, or a last batch of files.
const HTTP_LATE: u32 = 2;
/// As `PING_LATE`, for video players: the clip's lead-out, and data that a player holds back.
const VIDEO_LATE: u32 = 3;
/// Time for the servers to end after the clients; both have exchanged results by then.
const SERVER_LIMIT: Duration = Duration::from_secs(2);
/// Time for the tools to report after one of them, or the DUT, has died.
const LAST_WORDS_LIMIT: Duration = Duration::from_millis(500);
/// Assumed socket buffer limit if a station cannot read it: the default of `net.core.rmem_max`,
/// which every Linux allows.
const WINDOW_BYTES_DEFAULT: u64 = 212_992;

/// Makes a trial with tools.
pub(crate) fn attempt(
    bench: &mut dyn Bench,
    trial: &Trial<'_>,
    interrupt: &Interrupt,
    words: &mut Vec<Vec<String>>,
) -> Result<Outcome, TrialError> {
    bench.configure(trial.links)?;
    // Read before the DUT adds interfaces.
    let link_ends: Vec<String> = offloads(bench)?.into_keys().collect();
    let commands = prepare(bench, trial)?;
    words.extend(commands.programs().map(command::words));
    with_dut(bench, trial, Direction::Both, |bench, dut| {
        let impaired = ImpairedPath::begin(bench, trial, dut)?;
        let ends = dut.frame_path.as_ref();
        let ends = ends.map(|path| [path.source.address, path.sink.address]);
        let adapter = &trial.cell.dut.adapter;
        let overlay = Connected::begin(bench, trial)?;
        let attempt = Attempt {
            bench,
            trial,
            commands: &commands,
            markers: &markers(adapter, commands.marker.clone(), ends, false),
            dut,
            link_ends: &link_ends,
            impaired: impaired.as_ref(),
            interrupt,
        };
        let measured = attempt.run(words);
        let explain = |error| match &impaired {
            Some(impaired) => impaired.explain(error),
            None => error,
        };
        let measured = measured.map_err(explain)?;
        overlay.end()?;
        Ok((measured, None))
    })
}

/// Returns the commands, with UDP socket buffers limited to the maximum of the stations' kernels.
fn prepare(bench: &dyn Bench, trial: &Trial<'_>) -> Result<Commands, TrialError> {
    let machines = machines(bench)?;
    let mut parameters = trial.parameters.clone();
    if let (Measurement::Udp { .. }, Some(window)) =
        (&trial.cell.measurement, parameters.window_bytes)
    {
        let mut window = window;
        for way in ways(&trial.cell.measurement) {
            let [from, to] = ends(*way);
            let (send, _) = buffer_limits(bench.node(from))?;
            let (_, receive) = buffer_limits(bench.node(to))?;
            // One size for all sockets of the trial.
            window = window.min(send).min(receive);
        }
        parameters.window_bytes = Some(window);
    }
    if let Some(name) = congestion_asked(&trial.cell.measurement) {
        for way in ways(&trial.cell.measurement) {
            congestion::expect_allowed(bench, ends(*way)[0], name)?;
        }
    }
    Ok(commands(trial.cell, &parameters, bench.target(), machines)?)
}

/// Returns the congestion control that a transfer is asked to use.
fn congestion_asked(measurement: &Measurement) -> Option<&str> {
    match measurement {
        Measurement::Tcp { congestion, .. } => congestion.as_deref(),
        _ => None,
    }
}

/// Returns the ways of the tools' payload; for a ping, the way of its requests.
fn ways(measurement: &Measurement) -> &'static [FlowDirection] {
    let direction = match measurement {
        // The client on A fetches.
        Measurement::Http(_) | Measurement::Video(_) => TransferDirection::BToA,
        other => other.transfer_direction().unwrap_or_default(),
    };
    direction.ways()
}

/// The largest socket buffers for sending and receiving that a station's kernel allows, in bytes.
fn buffer_limits(station: &dyn Node) -> Result<(u64, u64), LabError> {
    // A program on the station would not find them: kernels before 6.11 hide them in its namespace.
    match hello(station)? {
        Response::Hello {
            wmem_max_bytes,
            rmem_max_bytes,
            ..
        } => Ok((
            wmem_max_bytes.unwrap_or(WINDOW_BYTES_DEFAULT),
            rmem_max_bytes.unwrap_or(WINDOW_BYTES_DEFAULT),
        )),
        other => Err(station.unexpected(&other)),
    }
}

/// A trial on a running path.
struct Attempt<'a> {
    bench: &'a dyn Bench,
    trial: &'a Trial<'a>,
    commands: &'a Commands,
    markers: &'a [Vec<u8>],
    dut: &'a RunningDut,
    link_ends: &'a [String],
    impaired: Option<&'a ImpairedPath<'a>>,
    interrupt: &'a Interrupt,
}

/// The tools that ran, and the readings meanwhile.
struct ToolRun {
    servers: Vec<Ended>,
    clients: Vec<Ended>,
    client_ends_ns: Vec<u64>,
    /// Per way, if the kernel was queried.
    congestion: Vec<Option<String>>,
    seen: Result<WatchResult, TrialError>,
}

/// The combined report of the tools.
enum Report {
    /// Each way of the cell, in the order of [`ways`].
    Transfer(Vec<(Transfer, Totals)>),
    Echo(Latency, u16),
    Http(Box<HttpResult>),
    Video(VideoResult),
}

impl Attempt<'_> {
    fn run(&self, words: &mut Vec<Vec<String>>) -> Result<Measured, TrialError> {
        let monitor = self.bench.monitor(self.dut, &self.commands.cores())?;
        prepared::prepare(self.bench, self.commands)?;
        let offloads = offloads(self.bench)?;
        quiet::await_quiet(self.bench, self.interrupt)?;
        let baseline_rtt_ns = self.baseline_rtt_ns()?;
        let settings = SettingsWatch::start(self.bench, true)?;
        let before = Counters::read(self.bench, self.dut)?;
        let ways = ways(&self.trial.cell.measurement);
        let station_lost = || -> Result<Vec<u64>, LabError> {
            let sinks = ways.iter().map(|way| ends(*way)[1]);
            sinks
                .map(|sink| counters::station_lost(self.bench, sink))
                .collect()
        };
        let station_lost_before = station_lost()?;
        let look = self.look();
        let watching = look.map(|look| CipherLinkWatch::start(self.bench, self.dut, look));
        let watching = watching.transpose()?;
        let (ran, monitored) = monitor.during(|log| self.run_tools(log));
        let ran = ran?;
        let report = self.report(&ran);
        let killed = ran.clients.iter().any(|client| client.timed_out);
        let (mut seen, mut report) = match (ran.seen, report) {
            (Ok(seen), report) => (seen, report?),
            // The tool's error report is more specific than its early end.
            (Err(_), Err(words)) if !killed => return Err(words),
            (Err(error), _) => return Err(error),
        };
        let watch = watching.map(CipherLinkWatch::end).transpose()?;
        let lost = station_lost()?.into_iter().zip(station_lost_before);
        let station_lost: Vec<u64> = lost
            .map(|(after, before)| after.saturating_sub(before))
            .collect();
        let after = Counters::read(self.bench, self.dut)?;
        let offloads_after = counters::offloads(self.bench)?;
        let settings = settings.end(&offloads, &offloads_after)?;
        seen.open_samples(self.dut)?;
        // Before the impaired path ends, since these figures include it.
        self.add_to_ping(&mut report, words)?;
        let readings = PathReadings {
            look,
            offloads,
            before,
            after,
            seen,
            watch,
            settings: Some(settings),
            impaired: self.impaired.map(ImpairedPath::end).transpose()?,
        };
        report.complete(
            ways,
            (baseline_rtt_ns, &ran.congestion),
            readings.impaired.as_ref(),
            &station_lost,
        );
        let mut evidence = readings.evidence(self.dut);
        let loads = report.loads();
        let observed: Vec<ToolObserved<'_>> = (0..ways.len())
            .map(|at| ToolObserved {
                path: readings.observed(self.trial, self.link_ends, &evidence),
                commands: self.commands,
                way: ways[at],
                load: loads[at].clone(),
                beside: loads
                    .iter()
                    .enumerate()
                    .find_map(|(other, load)| match load {
                        Load::Transfer { totals, .. } if other != at => Some(*totals),
                        _ => None,
                    }),
                interfaces: self.interfaces(),
                station_lost: station_lost[at],
                client_ends_ns: &ran.client_ends_ns,
            })
            .collect();
        let checks = evidence::checks(&observed);
        let lost_at = observed.first().map_or_else(Vec::new, |observed| {
            observed.path.lost_at(&Ends::Tools(&observed.interfaces))
        });
        (evidence.checks, evidence.lost_at) = (checks, lost_at);
        Ok(Measured {
            figures: report.figures(),
            cpu: readings.seen.cpu,
            evidence,
            monitored,
            ..Measured::default()
        })
    }

    /// Adds the further measurements of a ping cell to the round trips of the idle path. The
    /// readings around the idle requests are over.
    fn add_to_ping(
        &self,
        report: &mut Report,
        words: &mut Vec<Vec<String>>,
    ) -> Result<(), TrialError> {
        if let (Report::Echo(latency, _), &Measurement::Ping { loaded, route, .. }) =
            (report, &self.trial.cell.measurement)
        {
            if route {
                let found = route::find(self.bench, self.trial.links.mtu, words)?;
                latency.route = Some(found);
            }
            if loaded {
                let path = loaded::Loaded {
                    bench: self.bench,
                    dut: self.dut,
                    interrupt: self.interrupt,
                    path_damages: self.path_damages(),
                    classes: loaded::classes(&self.trial.cell.measurement),
                    software: &self.trial.cell.dut.software,
                    look: self.look(),
                };
                latency.loaded = loaded::measure(path, self.commands, words)?;
            }
        }
        Ok(())
    }

    /// Whether the impaired path flips bits.
    fn path_damages(&self) -> bool {
        let profile = self.trial.cell.impair.as_ref();
        profile.is_some_and(ImpairProfile::corrupts)
    }

    /// Returns the shortest round trip on the idle path; `None` if it is not asked for or the path
    /// answers no echo request.
    fn baseline_rtt_ns(&self) -> Result<Option<u64>, TrialError> {
        let Some(ping) = &self.commands.baseline else {
            return Ok(None);
        };
        let ended = self.bench.node(NodeId::A).run(ping.clone(), END_LIMIT)?;
        let round_trips =
            latency(NodeId::A, &ended, self.path_damages()).map(|found| found.round_trips_ns);
        Ok(round_trips.ok().and_then(|times| times.into_iter().min()))
    }

    /// Returns each way's congestion control as reported by the senders' kernels, if one is asked
    /// for and the tool does not report it.
    fn congestion_used(&self) -> Result<Vec<Option<String>>, TrialError> {
        let measurement = &self.trial.cell.measurement;
        if congestion_asked(measurement).is_none() || measurement.tool() != Some(Tool::Iperf2) {
            return Ok(Vec::new());
        }
        let senders = ways(measurement).iter().map(|way| ends(*way)[0]);
        let used = senders.map(|sender| congestion::of_port(self.bench, sender, BASE_PORT));
        Ok(used.collect::<Result<_, _>>()?)
    }

    fn run_tools(&self, log: &TrafficLog) -> Result<ToolRun, TrialError> {
        let mut tools = Tools::new(self.bench);
        let mut servers = Vec::new();
        for server in &self.commands.servers {
            servers.push(tools.start(NodeId::B, server)?);
        }
        let started = Instant::now();
        let mut clients = Vec::new();
        let mut starts = Vec::new();
        for client in &self.commands.clients {
            starts.push(started.elapsed().as_nanos() as u64);
            clients.push(tools.start(NodeId::A, client)?);
        }
        let congestion = self.congestion_used()?;
        let timing = &self.commands.timing;
        let measured = Duration::from_nanos(timing.measured_ns());
        let from = started + Duration::from_nanos(timing.warmup_ns);
        log.flows(None, from, measured);
        let watch = Watcher {
            bench: self.bench,
            dut: self.dut,
            timing: self.commands.timing,
            look: self.look(),
            sample: Sample::of(self.trial.cell, &self.commands.timing),
            receiver: self.receiver(),
            interrupt: self.interrupt,
        };
        let run = Duration::from_nanos(self.commands.timing.run_ns);
        let late = match self.trial.cell.measurement {
            Measurement::Ping { .. } => PING_LATE,
            Measurement::Http(_) => HTTP_LATE,
            Measurement::Video(_) => VIDEO_LATE,
            _ => 1,
        };
        let deadline = started + run * late + END_LIMIT;
        let seen = watch
            .follow(started, tools.running())
            .and_then(|seen| watch.await_clients(&clients, deadline).map(|()| seen));
        if seen.as_ref().is_err_and(TrialError::is_interrupt) {
            return Err(LabError::Interrupted.into());
        }
        // After an early end the others only have time to report.
        let (client_deadline, server_limit) = match &seen {
            Ok(_) => (deadline, SERVER_LIMIT),
            Err(_) => (Instant::now() + LAST_WORDS_LIMIT, Duration::ZERO),
        };
        let clients = wait_all(&mut tools, NodeId::A, clients, client_deadline)?;
        let servers = match self.trial.cell.measurement {
            // They would serve forever.
            Measurement::Http(_) | Measurement::Video(_) => servers
                .into_iter()
                .map(|server| tools.stop(NodeId::B, server, STOP_GRACE))
                .collect(),
            _ => {
                let deadline = Instant::now() + server_limit;
                wait_all(&mut tools, NodeId::B, servers, deadline)
            }
        }?;
        let ends = starts.iter().zip(&clients);
        let client_ends_ns = ends
            .map(|(start_ns, client)| start_ns + client.wall_ns)
            .collect();
        Ok(ToolRun {
            servers,
            clients,
            client_ends_ns,
            congestion,
            seen,
        })
    }

    fn report(&self, ran: &ToolRun) -> Result<Report, TrialError> {
        let first = |what: &str| {
            ran.clients.first().ok_or_else(|| TrialError::Tool {
                node: NodeId::A.name(),
                problem: format!("no {what} was started"),
            })
        };
        match self.trial.cell.measurement {
            Measurement::Ping { payload_bytes, .. } => {
                let latency = latency(NodeId::A, first("ping")?, self.path_damages())?;
                return Ok(Report::Echo(latency, payload_bytes));
            }
            Measurement::Http(_) => {
                let found = report_of(command::http::SUB_COMMAND, NodeId::A, first("`http`")?)?;
                return Ok(Report::Http(Box::new(found)));
            }
            Measurement::Video(_) => {
                let found = report_of(command::video::SUB_COMMAND, NodeId::A, first("`video`")?)?;
                return Ok(Report::Video(found));
            }
            _ => {}
        }
        let tool = self.trial.cell.measurement.tool().unwrap_or_default();
        let datagram = self.commands.parameters.datagram_bytes.map(u64::from);
        let mut processes = Vec::new();
        for (port, (client, server)) in (BASE_PORT..).zip(ran.clients.iter().zip(&ran.servers)) {
            let process = |is_server| iperf2::Process {
                is_server,
                port,
                block_bytes: datagram.unwrap_or(IPERF2_BLOCK_BYTES),
            };
            let client = sessions(NodeId::A, client, tool, process(false))?;
            processes.push((client, sessions(NodeId::B, server, tool, process(true))?));
        }
        let mut transfers = Vec::new();
        for &way in ways(&self.trial.cell.measurement) {
            let pairs = processes
                .iter()
                .map(|(client, server)| pair(client, server, way));
            let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
            let asked = TransferSettings {
                tool: tool.name(),
                timing: &self.commands.timing,
                parameters: &self.commands.parameters,
                way,
                link_bps: self.trial.links.rate_bps,
                apart_ns: evidence::apart_ns(self.trial.cell.impair.as_ref()),
            };
            transfers.push(assemble(&pairs, &asked)?);
        }
        Ok(Report::Transfer(transfers))
    }

    /// Returns the watched end of the cipher link; `None` if the lab cannot watch it.
    fn look(&self) -> Option<WatchPoint<'_>> {
        WatchPoint::at(self.bench, NodeId::Gw1, false, self.markers)
    }

    /// The station that receives, with its interface, if the cell's packets have a class.
    fn receiver(&self) -> Option<(NodeId, &str)> {
        self.trial.cell.stations?.dscp?;
        let [_, to] = ends(ways(&self.trial.cell.measurement)[0]);
        let (a, b) = self.bench.station_interfaces();
        Some((to, if to == NodeId::A { a } else { b }))
    }

    fn interfaces(&self) -> Interfaces {
        let (a, b) = self.bench.station_interfaces();
        let key = |id: NodeId, name: &str| format!("{}/{name}", id.name());
        let cipher = self.bench.cipher_ends();
        let cipher = cipher.map(|ends| ends.map(|(id, name)| key(id, name)));
        Interfaces {
            a: key(NodeId::A, a),
            cipher,
            b: key(NodeId::B, b),
        }
    }
}

fn wait_all(
    tools: &mut Tools<'_>,
    id: NodeId,
    processes: Vec<u64>,
    deadline: Instant,
) -> Result<Vec<Ended>, LabError> {
    let left = || deadline.saturating_duration_since(Instant::now());
    processes
        .into_iter()
        .map(|process| tools.wait(id, process, left()))
        .collect()
}

/// Returns the counts of both ends of a pair of processes, one way.
fn pair(client: &Sessions, server: &Sessions, way: FlowDirection) -> Result<Pair, TrialError> {
    let (sent, received) = match way {
        FlowDirection::AToB => (&client.sent, &server.received),
        FlowDirection::BToA => (&server.sent, &client.received),
    };
    let [from, to] = ends(way);
    let one = |session: &Option<Session>, id: NodeId, verb: &str| {
        session.clone().ok_or_else(|| TrialError::Tool {
            node: id.name(),
            problem: format!(
                "the tool does not report what it {verb}, which direction {} needs",
                way.name()
            ),
        })
    };
    Ok(Pair {
        sender: one(sent, from, "sent")?,
        receiver: one(received, to, "received")?,
    })
}

impl Report {
    /// Adds to each way of a transfer what its tool does not report: the baseline round trip and
    /// the congestion control of TCP, and the datagrams lost in the receiving station's sockets.
    /// The impaired path's copies are no received datagrams.
    fn complete(
        &mut self,
        ways: &[FlowDirection],
        (baseline_rtt_ns, congestion): (Option<u64>, &[Option<String>]),
        impaired: Option<&Impaired>,
        station_lost: &[u64],
    ) {
        let Self::Transfer(transfers) = self else {
            return;
        };
        for (at, ((transfer, totals), way)) in transfers.iter_mut().zip(ways).enumerate() {
            if let Some(tcp) = &mut transfer.tcp {
                tcp.baseline_rtt_ns = baseline_rtt_ns;
                if let Some(used) = congestion.get(at) {
                    tcp.congestion.clone_from(used);
                }
            }
            if let Some(impaired) = impaired {
                let counts = impaired.of(*way == FlowDirection::AToB);
                transfer::leave_out_copies(transfer, totals, counts);
            }
            if let Some(datagrams) = &mut transfer.datagrams {
                // Counted over the whole run, and so capped at the datagrams lost in the measured
                // time.
                datagrams.station_lost = station_lost[at].min(datagrams.lost);
            }
        }
    }

    /// The load of each way.
    fn loads(&self) -> Vec<Load<'_>> {
        match self {
            Self::Transfer(transfers) => {
                let loads = transfers.iter();
                let loads = loads.map(|(transfer, totals)| Load::Transfer {
                    transfer,
                    totals: *totals,
                });
                loads.collect()
            }
            Self::Echo(latency, payload_bytes) => vec![Load::Echo {
                latency,
                payload_bytes: *payload_bytes,
            }],
            Self::Http(http) => vec![Load::Http(http)],
            Self::Video(video) => vec![Load::Video(video)],
        }
    }

    fn figures(self) -> Figures {
        match self {
            Self::Transfer(transfers) => {
                let mut transfers = transfers.into_iter().map(|(transfer, _)| transfer);
                let Some(first) = transfers.next() else {
                    return Figures::None;
                };
                Figures::Transfer(Transfer {
                    reverse: transfers.next().map(Box::new),
                    ..first
                })
            }
            Self::Echo(latency, _) => Figures::Latency(latency),
            Self::Http(http) => Figures::Http(http),
            Self::Video(video) => Figures::Video(video),
        }
    }
}
