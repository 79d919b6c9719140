//! One trial with tools: starts the path, measures, stops the path, and judges the evidence.
//!
//! 1. Set the links and start the DUT ([`Bench::start_dut`] waits until A reaches B through it).
//! 2. Wait until connections of an earlier trial are closed; read offloads and counters, and watch
//!    every node's settings from here on; start servers on B and clients on A.
//! 3. While they run: read what the DUT is monitored for; watch every frame of the cipher link for
//!    foreign ones, read CPU time at both ends of the measured time, and take samples of the cipher
//!    link in between.
//! 4. Wait for clients and servers, read counters and settings again, stop the DUT.
//! 5. Combine the tools' reports and make every check.
//!
//! On any failure the tools and the DUT are stopped and the trial is recorded with the reason; only
//! an interrupt or the loss of a station ends the run. There is no retry: a failed trial is a
//! result.

use crate::command::{Commands, IPERF2_BLOCK_BYTES, commands};
use crate::error::TrialError;
use crate::evidence::{self, Ends, Interfaces, Load, ToolObserved};
use crate::impaired::ImpairedPath;
use crate::markers::markers;
use crate::measurer::{Trial, machines, with_dut};
use crate::quiet;
use crate::reading::{self, Counters, offloads, station_lost};
use crate::readings::PathReadings;
use crate::settings::SettingsWatch;
use crate::tools::{Tools, latency, session};
use crate::transfer::{Pair, Totals, assemble};
use crate::watch::{CipherLinkWatch, Sample, WatchPoint, WatchResult, Watcher};
use campaign::plan::{Direction, Measurement};
use journal::record::{Figures, Latency, Measured, Outcome, Transfer};
use lab::protocol::{Ended, Program};
use lab::{Bench, Interrupt, LabError, NodeId, RunningDut, TrafficLog};
use std::time::{Duration, Instant};

/// Time for the tools beyond their running time: connecting, exchanging results, a lost last reply.
const END_LIMIT: Duration = Duration::from_secs(8);
/// Multiple of its running time that `ping` may take: with intervals from 10 ms on, it sleeps a few
/// milliseconds too long each time.
const PING_LATE: u32 = 2;
/// Time for the servers to end after the clients, with which they have exchanged results.
const SERVER_LIMIT: Duration = Duration::from_secs(2);
/// Time for the tools to report after one of them, or the DUT, has died.
const LAST_WORDS_LIMIT: Duration = Duration::from_millis(500);
/// Socket buffer that every Linux allows, where a station cannot read its limit: the default of
/// `net.core.rmem_max`.
const WINDOW_BYTES_DEFAULT: u64 = 212_992;

/// Makes a trial with tools.
pub(crate) fn attempt(
    bench: &mut dyn Bench,
    trial: &Trial<'_>,
    interrupt: &Interrupt,
    words: &mut Vec<Vec<String>>,
) -> Result<Outcome, TrialError> {
    bench.configure(trial.links)?;
    // Read before the DUT adds its own interfaces.
    let link_ends: Vec<String> = offloads(bench)?.into_keys().collect();
    let commands = prepare(bench, trial)?;
    let programs = commands.servers.iter().chain(&commands.clients);
    words.extend(programs.map(|program| program.argv.clone()));
    with_dut(bench, trial, Direction::Both, |bench, dut| {
        let impaired = ImpairedPath::begin(bench, trial, dut)?;
        let ends = dut.frame_path.as_ref();
        let ends = ends.map(|path| [path.source.address, path.sink.address]);
        let adapter = &trial.cell.dut.adapter;
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
        let measured = attempt.run();
        let explain = |error| match &impaired {
            Some(impaired) => impaired.explain(error),
            None => error,
        };
        Ok((measured.map_err(explain)?, None))
    })
}

/// Returns the commands, with UDP socket buffers limited to what the stations' kernels allow.
fn prepare(bench: &dyn Bench, trial: &Trial<'_>) -> Result<Commands, TrialError> {
    let machines = machines(bench)?;
    let mut parameters = trial.parameters.clone();
    if let (Measurement::Udp { .. }, Some(window)) =
        (&trial.cell.measurement, parameters.window_bytes)
    {
        let a = buffer_limit(bench, NodeId::A, "/proc/sys/net/core/wmem_max")?;
        let b = buffer_limit(bench, NodeId::B, "/proc/sys/net/core/rmem_max")?;
        parameters.window_bytes = Some(window.min(a).min(b));
    }
    Ok(commands(trial.cell, &parameters, bench.target(), machines)?)
}

/// Reads a kernel limit on a station. Some kernels show it in the initial network namespace only.
fn buffer_limit(bench: &dyn Bench, id: NodeId, path: &str) -> Result<u64, LabError> {
    let argv = vec!["cat".to_owned(), path.to_owned()];
    let ended = bench.node(id).run(
        Program {
            argv,
            ..Program::default()
        },
        END_LIMIT,
    )?;
    Ok(ended.stdout.trim().parse().unwrap_or(WINDOW_BYTES_DEFAULT))
}

/// A trial whose path is up.
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
    seen: Result<WatchResult, TrialError>,
}

/// The combined report of the tools.
enum Report {
    Transfer(Box<Transfer>, Totals),
    Echo(Latency, u16),
}

impl Attempt<'_> {
    fn run(&self) -> Result<Measured, TrialError> {
        let monitor = self.bench.monitor(self.dut, &self.commands.cores())?;
        let offloads = offloads(self.bench)?;
        quiet::await_quiet(self.bench, self.interrupt)?;
        let settings = SettingsWatch::start(self.bench)?;
        let before = Counters::read(self.bench, self.dut)?;
        let station_lost_before = station_lost(self.bench)?;
        let look = self.look();
        let watching = look.map(|look| CipherLinkWatch::start(self.bench, self.dut, look));
        let watching = watching.transpose()?;
        let (ran, monitored) = monitor.during(|log| self.run_tools(log));
        let ran = ran?;
        let report = self.report(&ran);
        let killed = ran.clients.iter().any(|client| client.timed_out);
        let (mut seen, mut report) = match (ran.seen, report) {
            (Ok(seen), report) => (seen, report?),
            // A tool's own error is more specific than its early end.
            (Err(_), Err(words)) if !killed => return Err(words),
            (Err(error), _) => return Err(error),
        };
        let watch = watching.map(CipherLinkWatch::end).transpose()?;
        let station_lost = station_lost(self.bench)?.saturating_sub(station_lost_before);
        report.set_station_lost(station_lost);
        let after = Counters::read(self.bench, self.dut)?;
        let offloads_after = reading::offloads(self.bench)?;
        let settings = settings.end(&offloads, &offloads_after)?;
        seen.open_samples(self.dut)?;
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
        let mut evidence = readings.evidence(self.dut);
        let observed = ToolObserved {
            path: readings.observed(self.trial, self.link_ends, &evidence),
            commands: self.commands,
            load: report.load(),
            interfaces: self.interfaces(),
            station_lost,
            client_ends_ns: &ran.client_ends_ns,
        };
        let ends = Ends::Tools(&observed.interfaces);
        let (checks, lost_at) = (evidence::checks(&observed), observed.path.lost_at(&ends));
        (evidence.checks, evidence.lost_at) = (checks, lost_at);
        Ok(Measured {
            figures: match report {
                Report::Transfer(transfer, _) => Figures::Transfer(*transfer),
                Report::Echo(latency, _) => Figures::Latency(latency),
            },
            cpu: readings.seen.cpu,
            evidence,
            monitored,
        })
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
        let timing = &self.commands.timing;
        let measured = Duration::from_nanos(timing.measured_ns());
        let from = started + Duration::from_nanos(timing.warmup_ns);
        log.flows(None, from, measured);
        let watch = Watcher {
            bench: self.bench,
            dut: self.dut,
            timing: self.commands.timing,
            look: self.look(),
            sample: Sample::of(&self.trial.cell.measurement),
            interrupt: self.interrupt,
        };
        let run = Duration::from_nanos(self.commands.timing.run_ns);
        let late = match self.trial.cell.measurement {
            Measurement::Ping { .. } => PING_LATE,
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
        let servers = wait_all(
            &mut tools,
            NodeId::B,
            servers,
            Instant::now() + server_limit,
        )?;
        let ends = starts.iter().zip(&clients);
        let client_ends_ns = ends
            .map(|(start_ns, client)| start_ns + client.wall_ns)
            .collect();
        Ok(ToolRun {
            servers,
            clients,
            client_ends_ns,
            seen,
        })
    }

    fn report(&self, ran: &ToolRun) -> Result<Report, TrialError> {
        if let Measurement::Ping { payload_bytes, .. } = self.trial.cell.measurement {
            let ended = ran.clients.first().ok_or(TrialError::Tool {
                node: NodeId::A.name(),
                problem: "no ping was started".to_owned(),
            })?;
            return Ok(Report::Echo(latency(NodeId::A, ended)?, payload_bytes));
        }
        let tool = self.trial.cell.measurement.tool().unwrap_or_default();
        let datagram = self.commands.parameters.datagram_bytes.map(u64::from);
        let block_bytes = datagram.unwrap_or(IPERF2_BLOCK_BYTES);
        let mut pairs = Vec::new();
        for (client, server) in ran.clients.iter().zip(&ran.servers) {
            let client = session(NodeId::A, client, tool, block_bytes);
            let server = session(NodeId::B, server, tool, block_bytes);
            pairs.push(Pair {
                client: client?,
                server: server?,
            });
        }
        let (transfer, totals) =
            assemble(&pairs, &self.commands.timing, &self.commands.parameters)?;
        Ok(Report::Transfer(Box::new(transfer), totals))
    }

    /// Returns the watched end of the cipher link; `None` where the lab cannot watch it.
    fn look(&self) -> Option<WatchPoint<'_>> {
        WatchPoint::at(self.bench, NodeId::Gw1, false, self.markers)
    }

    fn interfaces(&self) -> Interfaces {
        let (a, b) = self.bench.station_interfaces();
        let key = |id: NodeId, name: &str| format!("{}/{name}", id.name());
        let cipher = self.bench.cipher_ends();
        Interfaces {
            a: key(NodeId::A, a),
            cipher: cipher.map(|ends| ends.map(|(id, name)| key(id, name))),
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

impl Report {
    /// Records how many of the lost datagrams station B itself lost: at most those of the whole
    /// run.
    fn set_station_lost(&mut self, station_lost: u64) {
        if let Self::Transfer(transfer, _) = self
            && let Some(datagrams) = &mut transfer.datagrams
        {
            datagrams.station_lost = station_lost.min(datagrams.lost);
        }
    }

    fn load(&self) -> Load<'_> {
        match self {
            Self::Transfer(transfer, totals) => Load::Transfer {
                transfer,
                totals: *totals,
            },
            Self::Echo(latency, payload_bytes) => Load::Echo {
                latency,
                payload_bytes: *payload_bytes,
            },
        }
    }
}
