//! Frame trials by programs on the stations of a lab.
//!
//! 1. The receiver is started and waits for frames.
//! 2. The sender is started and sends immediately.
//! 3. The sender reports when it has sent all frames, or is stopped when it is far too late. The
//!    receiver reports when it has received all expected frames, or is stopped after the drain.
//! 4. Both end. The kernel takes a while to remove their ports, which overlaps with starting the
//!    receiver of the next trial and ends before anything is sent. A port of AF_XDP owns its queue:
//!    there the next trial waits.
//!
//! With both directions loaded, each step is made for both in parallel. After each trial the path
//! is read ([`readings`]); if its load asks for samples, they are taken meanwhile ([`sampled`]).

mod disturb;
mod readings;
mod sampled;
mod soak;

use super::clocks::HostClocks;
use super::rig::Soaked;
use super::spec::FrameStream;
use super::{FrameRun, Rig, RigLoad};
use crate::command::{Cores, sub_command, words};
use crate::disturbance::{HostileLoad, PlannedDisturbance};
use crate::error::TrialError;
use crate::measurer::unix_ns;
use crate::tools::{STOP_GRACE, Tools, parse_report, sleep_until, tool_error};
use crate::watch::{WatchPoint, add_foreign};
use journal::record::{CipherWatch, Disturbance};
use plan::{Cell, Traffic};
use port::FramePortKind;
use readings::PathReader;
pub(super) use sampled::Sampled;
use std::time::{Duration, Instant};
use testbed::protocol::{Program, Ready, Request, Response};
use testbed::{Bench, DutAction, FramePath, Interrupt, LabError, NodeId, RunningDut, TrafficLog};
use traffic_spec::{READY, Report, Spec};

/// Name of the subcommand that runs a [`Spec`].
const SUB_COMMAND: &str = "frames";
/// Waiting for a sender begins this long before its end; until then its process is checked.
const END_MARGIN: Duration = Duration::from_millis(20);
/// Time for a program to print its report after it was stopped. A receiver waits up to 10 s until
/// its port is quiet.
const REPORT_LIMIT: Duration = Duration::from_secs(13);
/// Time for a program to end after its report.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);
/// Maximum number of ways: both directions.
const WAYS_MAX: u16 = 2;
/// Prefix of a report's line, which is JSON.
const REPORT: &str = "{";

/// Frame trials between two ends of a path that is up.
pub(crate) struct StationRig<'a> {
    bench: &'a dyn Bench,
    /// Its processes must run.
    dut: &'a mut RunningDut,
    ways: Vec<FrameStream<'a>>,
    cores: Cores,
    line_bps: Option<u64>,
    /// Tag of the first way; even, so that the second way has the next tag.
    tag: u16,
    /// Of the last trial: receivers, then senders.
    programs: Vec<(NodeId, Program)>,
    /// The same of the last trial with samples.
    sampled_programs: Vec<(NodeId, Program)>,
    /// Programs of the last trial, which have reported and are ending.
    leaving: Tools<'a>,
    /// Whether receivers of the next trial can start before those have ended.
    shares_ports: bool,
    reader: PathReader<'a>,
    /// Present if the ends of the path have two clocks.
    clocks: Option<HostClocks<'a>>,
    look: Option<WatchPoint<'a>>,
    log: &'a TrafficLog,
    /// The readings of the last trial with samples.
    pub(super) sampled: Option<Sampled>,
    /// Foreign frames of the cipher link over all trials except the ones with a way past the DUT;
    /// `None` if nothing looks there.
    pub(super) watched: Option<CipherWatch>,
}

/// A frame trial in progress.
pub(super) struct Running<'a> {
    tools: Tools<'a>,
    load: RigLoad,
    began: Instant,
    /// When the senders were ready, or began together.
    pub(super) started: Instant,
    senders: Vec<(NodeId, u64)>,
    receivers: Vec<(NodeId, u64)>,
    attacker: Option<(NodeId, u64)>,
    /// Whether the device is stopped or started meanwhile.
    restarts: bool,
    /// Whether packets in clear are the result of the trial.
    exposed: bool,
}

impl<'a> StationRig<'a> {
    pub(crate) fn new(
        bench: &'a dyn Bench,
        dut: &'a mut RunningDut,
        (cell, traffic): (&'a Cell, &'a Traffic),
        path: &FramePath,
        (cores, line_bps): (Cores, Option<u64>),
        (look, log): (Option<WatchPoint<'a>>, &'a TrafficLog),
        clocks: Option<HostClocks<'a>>,
    ) -> Result<Self, LabError> {
        let way = |path| FrameStream {
            cell,
            traffic,
            path,
        };
        let reader = PathReader::start(bench, dut, cell, path, look)?;
        let mut ways = vec![way(path.clone())];
        if traffic.duplex {
            ways.push(way(path.reversed()));
        }
        Ok(Self {
            bench,
            dut,
            ways,
            cores,
            line_bps,
            tag: first_tag(),
            programs: Vec::new(),
            sampled_programs: Vec::new(),
            leaving: Tools::new(bench),
            shares_ports: false,
            reader,
            clocks,
            look,
            log,
            sampled: None,
            watched: None,
        })
    }

    /// The DUT as it is now.
    pub(super) const fn dut(&self) -> &RunningDut {
        self.dut
    }

    /// The ways, each with its tag: frames that a device sends back are not counted for the other
    /// way.
    fn tagged(&self) -> impl Iterator<Item = (&FrameStream<'a>, u16)> {
        self.ways.iter().zip([self.tag, self.tag + 1])
    }

    /// The receivers of the ways, in their order; for a reflected load the reflector, and the
    /// receiver of the reflected frames.
    fn receivers(&self, load: &RigLoad) -> Vec<(NodeId, Program)> {
        if load.reflected {
            let way = &self.ways[0];
            let (there, back) = (way.path.sink.node, way.path.source.node);
            return vec![
                (there, self.program(there, &way.reflector(load, self.tag))),
                (
                    back,
                    self.program(back, &way.receiver(load, self.tag, None)),
                ),
            ];
        }
        let program = |(way, tag): (&FrameStream<'a>, u16)| {
            let node = way.path.sink.node;
            let clocks = self.clocks.as_ref();
            let clock = clocks.map(|clocks| clocks.sender_clock(tag == self.tag));
            (node, self.program(node, &way.receiver(load, tag, clock)))
        };
        self.tagged().map(program).collect()
    }

    /// `starts_ns` has each way's start; `None`: immediately.
    fn senders(&self, load: &RigLoad, starts_ns: [Option<u64>; 2]) -> Vec<(NodeId, Program)> {
        let program = |((way, tag), start_ns): ((&FrameStream<'a>, u16), Option<u64>)| {
            let node = way.path.source.node;
            (node, self.program(node, &way.sender(load, tag, start_ns)))
        };
        self.tagged().zip(starts_ns).map(program).collect()
    }

    /// The programs of the last trial with samples as shell commands; the last word is their
    /// standard input.
    pub(super) fn commands(&self) -> Vec<Vec<String>> {
        let programs = self.sampled_programs.iter();
        programs.map(|(_, program)| words(program)).collect()
    }

    /// Compares the clocks of two hosts after a trial; round trips are timed by one.
    fn compare_clocks(&mut self, run: &mut FrameRun) -> Result<(), TrialError> {
        if run.reflection.is_some() {
            return Ok(());
        }
        if let (Some(clocks), Some(readings)) = (&mut self.clocks, &mut run.trial.readings) {
            readings.clocks = Some(clocks.compare()?);
        }
        Ok(())
    }

    fn program(&self, node: NodeId, spec: &Spec) -> Program {
        // The station on A's side of the path has A's cores, even in a gateway's place.
        let path = &self.ways[0].path;
        let is_a = (node == path.source.node) != path.begins_at_b();
        Program {
            cores: if is_a { &self.cores.a } else { &self.cores.b }.clone(),
            ready: Ready::Line(READY.to_owned()),
            ..sub_command(SUB_COMMAND, spec)
        }
    }

    /// Starts a trial: frames are being sent when this returns, or at [`Running::started`]. The
    /// program that sends hostile packets waits for them.
    pub(super) fn start(
        &mut self,
        load: &RigLoad,
        hostile: Option<&HostileLoad>,
    ) -> Result<Running<'a>, TrialError> {
        let began = Instant::now();
        // Before any program runs, so that a device that was restarted is not read under load.
        self.reader.before(self.dut)?;
        // A new tag for each trial: late frames of the one before are recognized and count as
        // strays.
        self.tag = self.tag.wrapping_add(WAYS_MAX);
        self.programs = self.receivers(load);
        let mut tools = Tools::new(self.bench);
        // A port of AF_XDP must be free before the next one is opened; packet sockets can exist
        // side by side.
        if !self.shares_ports {
            self.await_leaving()?;
        }
        // Receivers come first: `start_together` returns when all are ready, so no frame arrives
        // before somebody counts it.
        let receivers = tools.start_together(&self.programs)?;
        self.await_leaving()?;
        let attacker = hostile.map(|hostile| self.attacker(load, hostile));
        let attacker = attacker.transpose()?.map(|(node, program)| {
            let process = tools.start(node, &program)?;
            Ok::<_, LabError>((node, process))
        });
        let attacker = attacker.transpose()?;
        // Senders on one host start together by themselves.
        let clocks = self.clocks.as_ref().filter(|_| self.ways.len() > 1);
        let (start, starts_ns) = clocks.map(HostClocks::start).unzip();
        let starts_ns = starts_ns.map_or([None; 2], |starts_ns| starts_ns.map(Some));
        let senders = self.senders(load, starts_ns);
        self.programs.extend(senders.iter().cloned());
        let senders = tools.start_together(&senders)?;
        let now = Instant::now();
        // A common start that has passed already, on a busy machine, was not kept.
        let started = start.map_or(now, |start| now.max(start));
        let time = Duration::from_nanos(load.duration_ns);
        // The monitor learns of the traffic's time in advance, so that its readings fall into it.
        if !load.unread {
            self.log
                .flows(Some(load.frames_per_s.unwrap_or(0)), started, time);
        }
        Ok(Running {
            tools,
            load: *load,
            began,
            started,
            senders,
            receivers,
            attacker,
            restarts: false,
            exposed: false,
        })
    }

    /// Waits until the programs of the last trial have ended.
    fn await_leaving(&mut self) -> Result<(), LabError> {
        // A copy, since `wait` removes from the list.
        for (node, process) in self.leaving.running().to_vec() {
            self.leaving.wait(node, process, LEAVE_LIMIT)?;
        }
        Ok(())
    }

    /// Waits for the end of a trial and reads the reports.
    pub(super) fn finish(
        &mut self,
        mut running: Running<'a>,
        interrupt: &Interrupt,
    ) -> Result<FrameRun, TrialError> {
        let reports = self.collect(&mut running, interrupt)?;
        self.leave(running, &reports)
    }

    /// Waits for the reports of each way's sender and receiver. A reflector is the receiver of the
    /// way there, and the sender of the way back.
    fn collect(
        &self,
        running: &mut Running<'_>,
        interrupt: &Interrupt,
    ) -> Result<Vec<(Report, Report)>, TrialError> {
        // Sleeps until shortly before the senders end.
        let end = running.started + running.load.time().saturating_sub(END_MARGIN);
        self.sleep_until(running, end, interrupt)?;
        let late = running.started + running.load.sender_limit();
        let mut sent = Vec::new();
        for &sender in &running.senders {
            // A sender that is late is stopped, and reports the frames so far: the load counts as
            // not offered.
            let line = self.await_report_or_stop(sender, late)?;
            sent.push(report(&mut running.tools, sender, line)?);
        }
        // From the senders' reports on, not from their planned end: a late sender's frames get the
        // same time to arrive.
        let drained = Instant::now() + Duration::from_nanos(running.load.drain_ns);
        let mut received = Vec::new();
        for &receiver in &running.receivers {
            let line = self.await_report_or_stop(receiver, drained)?;
            received.push(report(&mut running.tools, receiver, line)?);
        }
        // The reflector is both: receiver of the way there, and sender of the way back.
        if running.load.reflected {
            sent.extend(received.first().cloned());
        }
        Ok(sent.into_iter().zip(received).collect())
    }

    /// Lets a trial's programs end by themselves, and reads the path. Returns the trial's result.
    fn leave(
        &mut self,
        running: Running<'a>,
        reports: &[(Report, Report)],
    ) -> Result<FrameRun, TrialError> {
        let ways = reports.iter();
        let runs = ways.map(|(sent, received)| FrameRun::of(&running.load, sent, received));
        let mut sum = runs
            .reduce(|sum, run| sum.and(&run))
            .ok_or_else(|| TrialError::frames("there is no path to send frames on"))?;
        // The next trial reads the device's counters anew: processes that were restarted count from
        // 0.
        if running.restarts {
            self.reader.forget_dut();
        }
        let tools = running.tools.running();
        let readings = self.reader.after(self.dut, tools, &sum.trial)?;
        // With a way past the device, packets in clear are expected. They are in the trial's
        // readings and not in the sum that the checks use.
        if let Some(watch) = readings.watch.as_ref().filter(|_| !running.exposed) {
            add_foreign(self.watched.get_or_insert_default(), watch);
        }
        sum.trial.readings = Some(Box::new(readings));
        // They end while the result is worked on; the next trial waits for them if it must.
        self.leaving.take_over(running.tools);
        let is_packet =
            |(_, receiver): &(Report, Report)| receiver.port == Some(FramePortKind::Packet);
        self.shares_ports = reports.iter().all(is_packet);
        sum.took_ns = u64::try_from(running.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(sum)
    }

    /// Sleeps while the DUT and the senders run. A receiver may end once it has all frames.
    fn sleep_until(
        &self,
        running: &Running<'_>,
        end: Instant,
        interrupt: &Interrupt,
    ) -> Result<(), TrialError> {
        let programs = running.senders.iter().chain(self.dut.path_processes());
        sleep_until(self.bench, programs, end, interrupt)
    }

    /// Returns the report of a program, which is stopped at `time` so that it prints one; `None` if
    /// it does not.
    fn await_report_or_stop(
        &self,
        program: (NodeId, u64),
        time: Instant,
    ) -> Result<Option<String>, LabError> {
        let left = time.saturating_duration_since(Instant::now());
        let line = await_report(self.bench, program, left)?;
        if line.is_some() {
            return Ok(line);
        }
        let (id, process) = program;
        let node = self.bench.node(id);
        match node.call(Request::Terminate { process })? {
            Response::Terminated => await_report(self.bench, program, REPORT_LIMIT),
            other => Err(node.unexpected(&other)),
        }
    }
}

impl Running<'_> {
    /// Every program of the trial, receivers first.
    pub(super) fn programs(&self) -> &[(NodeId, u64)] {
        self.tools.running()
    }
}

impl Rig for StationRig<'_> {
    fn run(&mut self, load: &RigLoad, interrupt: &Interrupt) -> Result<FrameRun, TrialError> {
        if load.sampled {
            return self.run_sampled(load, interrupt);
        }
        let running = self.start(load, None)?;
        let mut run = self.finish(running, interrupt)?;
        self.compare_clocks(&mut run)?;
        Ok(run)
    }

    fn run_disturbed(
        &mut self,
        load: &RigLoad,
        planned: &PlannedDisturbance,
        interrupt: &Interrupt,
    ) -> Result<(FrameRun, Disturbance), TrialError> {
        self.disturb(load, planned, interrupt)
    }

    fn soak(
        &mut self,
        load: &RigLoad,
        point_ns: u64,
        interrupt: &Interrupt,
    ) -> Result<(FrameRun, Soaked), TrialError> {
        self.soak_segment(load, point_ns, interrupt)
    }

    fn act(&mut self, actions: &[DutAction]) -> Result<u64, TrialError> {
        self.act_now(actions)
    }

    fn has_two_clocks(&self) -> bool {
        self.clocks.is_some()
    }

    fn reflects(&self) -> bool {
        matches!(&self.ways[..], [way] if way.reflects())
    }

    fn line_rate(&self) -> Option<u64> {
        let line_bps = self.line_bps?;
        let rate = |way: &FrameStream<'_>| {
            let sealed = way
                .path
                .source
                .peer
                .as_ref()
                .map(testbed::StationPeer::carrier);
            way.traffic.line_rate_as(line_bps, sealed)
        };
        let rates = self.ways.iter().map(rate);
        // Both ways get one load, which the slower line must carry.
        rates.min()
    }
}

/// Returns the report of a program; `None` if it ends or the limit passes before it prints one.
fn await_report(
    bench: &dyn Bench,
    (id, process): (NodeId, u64),
    limit: Duration,
) -> Result<Option<String>, LabError> {
    let node = bench.node(id);
    let request = Request::AwaitLine {
        process,
        prefix: REPORT.to_owned(),
        limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
    };
    match node.call(request)? {
        Response::Line(line) => Ok(line),
        other => Err(node.unexpected(&other)),
    }
}

/// Parses a report. The error for a program without one includes how it ended.
fn report(
    tools: &mut Tools<'_>,
    (id, process): (NodeId, u64),
    line: Option<String>,
) -> Result<Report, TrialError> {
    match parse_report(SUB_COMMAND, line.as_deref()) {
        Ok(report) => Ok(report),
        Err(problem) => {
            let ended = tools.stop(id, process, STOP_GRACE)?;
            Err(tool_error(id, problem, &ended))
        }
    }
}

/// Returns a tag that the trial before most likely did not have: its frames may still be in flight.
fn first_tag() -> u16 {
    (unix_ns() >> 20) as u16 / WAYS_MAX * WAYS_MAX
}
