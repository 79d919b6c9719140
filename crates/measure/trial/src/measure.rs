//! One trial: the path brought up, measured, taken down, and the evidence judged.
//!
//! 1. Links set, DUT brought up ([`Bench::start_dut`] waits until A reaches B through it).
//! 2. Connections of an earlier trial waited out, offloads and counters read, servers started on B,
//!    clients on A.
//! 3. While they run: every frame of the cipher link watched for what does not belong there; CPU
//!    time at both ends of the measured time, samples of the cipher link in it.
//! 4. Clients and servers waited for, counters read again, DUT taken down.
//! 5. The tools' reports put together, every check made.
//!
//! Whatever fails, the tools are stopped, the DUT is taken down, and the trial is recorded with its
//! reason; only an interrupt or the end of a station ends the run. It does not retry: a trial that
//! fails is a result.

use crate::command::{Commands, IPERF2_BLOCK_BYTES, commands};
use crate::error::TrialError;
use crate::evidence::{self, Interfaces, Load, ToolObserved};
use crate::measurer::{Trial, machine_cores, with_dut};
use crate::quiet;
use crate::reading::{Counters, offloads, station_lost};
use crate::readings::PathReadings;
use crate::tools::{Tools, latency, session};
use crate::transfer::{Pair, Totals, assemble};
use crate::watch::{CipherWatching, Look, Sample, Seen, Watch};
use campaign::plan::{Direction, Measurement};
use journal::record::{Figures, Latency, Measured, Outcome, Transfer};
use lab::protocol::{Ended, Program};
use lab::{Bench, Interrupt, LabError, NodeId, RunningDut};
use std::time::{Duration, Instant};

/// Given to the tools beyond their running time: connecting, exchanging results, a last lost reply.
const END_LIMIT: Duration = Duration::from_secs(8);
/// `ping` may take this many times its running time: from 10 ms of interval on, it sleeps for a few
/// milliseconds too long each time.
const PING_LATE: u32 = 2;
/// Given to the servers after the clients, with which they have exchanged results.
const SERVER_LIMIT: Duration = Duration::from_secs(2);
/// Given to the tools when somebody has died.
const LAST_WORDS_LIMIT: Duration = Duration::from_millis(500);
/// Socket buffers that every Linux allows where a station cannot tell: the default of
/// `net.core.rmem_max`.
const WINDOW_BYTES_DEFAULT: u64 = 212_992;

/// Measures with the tools.
pub(crate) fn attempt(
    bench: &mut dyn Bench,
    trial: &Trial<'_>,
    interrupt: &Interrupt,
    words: &mut Vec<Vec<String>>,
) -> Result<Outcome, TrialError> {
    bench.configure(trial.links)?;
    // Before there is a DUT with interfaces of its own.
    let link_ends: Vec<String> = offloads(bench)?.into_keys().collect();
    let commands = prepare(bench, trial)?;
    let programs = commands.servers.iter().chain(&commands.clients);
    words.extend(programs.map(|program| program.argv.clone()));
    with_dut(bench, trial, Direction::Both, |bench, dut| {
        let carrier = Carrier {
            bench,
            trial,
            commands: &commands,
            dut,
            link_ends: &link_ends,
            interrupt,
        };
        Ok((carrier.carry()?, None))
    })
}

/// The commands, with UDP socket buffers no larger than the stations' kernels allow.
fn prepare(bench: &dyn Bench, trial: &Trial<'_>) -> Result<Commands, TrialError> {
    let cores = machine_cores(bench)?;
    let mut parameters = trial.parameters.clone();
    if let (Measurement::Udp { .. }, Some(window)) =
        (&trial.cell.measurement, parameters.window_bytes)
    {
        let a = buffer_limit(bench, NodeId::A, "/proc/sys/net/core/wmem_max")?;
        let b = buffer_limit(bench, NodeId::B, "/proc/sys/net/core/rmem_max")?;
        parameters.window_bytes = Some(window.min(a).min(b));
    }
    Ok(commands(trial.cell, &parameters, bench.target(), cores)?)
}

/// A kernel limit on a station. Some kernels show it in the initial network namespace only.
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

/// Everything that the middle of a trial needs: the path is up.
struct Carrier<'a> {
    bench: &'a dyn Bench,
    trial: &'a Trial<'a>,
    commands: &'a Commands,
    dut: &'a RunningDut,
    link_ends: &'a [String],
    interrupt: &'a Interrupt,
}

/// What the tools did and what was seen meanwhile.
struct Ran {
    servers: Vec<Ended>,
    clients: Vec<Ended>,
    client_ends_ns: Vec<u64>,
    seen: Result<Seen, TrialError>,
}

/// What the tools reported.
enum Report {
    Transfer(Transfer, Totals),
    Echo(Latency, u16),
}

impl Carrier<'_> {
    fn carry(&self) -> Result<Measured, TrialError> {
        let offloads = offloads(self.bench)?;
        quiet::await_quiet(self.bench, self.interrupt)?;
        let before = Counters::read(self.bench, self.dut)?;
        let station_lost_before = station_lost(self.bench)?;
        let look = self.look();
        let watching = look.map(|look| CipherWatching::start(self.bench, self.dut, look));
        let watching = watching.transpose()?;
        let ran = self.run_tools()?;
        let report = self.report(&ran);
        let killed = ran.clients.iter().any(|client| client.timed_out);
        let (seen, mut report) = match (ran.seen, report) {
            (Ok(seen), report) => (seen, report?),
            // What a tool says of its own end is better than that it ended.
            (Err(_), Err(words)) if !killed => return Err(words),
            (Err(error), _) => return Err(error),
        };
        let watch = watching.map(CipherWatching::end).transpose()?;
        let station_lost = station_lost(self.bench)?.saturating_sub(station_lost_before);
        report.blame_station(station_lost);
        let readings = PathReadings {
            look,
            offloads,
            before,
            after: Counters::read(self.bench, self.dut)?,
            seen,
            watch,
        };
        let mut evidence = readings.evidence(self.dut);
        evidence.checks = evidence::checks(&ToolObserved {
            path: readings.observed(self.trial, self.link_ends, &evidence),
            commands: self.commands,
            load: report.load(),
            interfaces: self.interfaces(),
            station_lost,
            client_ends_ns: &ran.client_ends_ns,
        });
        Ok(Measured {
            figures: match report {
                Report::Transfer(transfer, _) => Figures::Transfer(transfer),
                Report::Echo(latency, _) => Figures::Latency(latency),
            },
            cpu: readings.seen.cpu,
            evidence,
        })
    }

    fn run_tools(&self) -> Result<Ran, TrialError> {
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
        let watch = Watch {
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
        // Somebody has died: the others are only asked for their last words.
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
        Ok(Ran {
            servers,
            clients,
            client_ends_ns,
            seen,
        })
    }

    fn report(&self, ran: &Ran) -> Result<Report, TrialError> {
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
        Ok(Report::Transfer(transfer, totals))
    }

    /// `None` where nobody can look between the boxes.
    fn look(&self) -> Option<Look<'_>> {
        Look::at(self.bench, NodeId::Gw1, &self.commands.marker)
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
    /// Records how many of the datagrams lost were lost by station B itself, in the whole run at
    /// most.
    fn blame_station(&mut self, station_lost: u64) {
        if let Self::Transfer(
            Transfer {
                datagrams: Some(datagrams),
                ..
            },
            _,
        ) = self
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
