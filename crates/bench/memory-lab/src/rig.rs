//! Frame trials by two threads of this process.

use crate::ends::Exit;
use crate::gateways::Gateways;
use crate::threads::own_cpu_ns;
use journal::record::{Cpu, FrameTrial};
use lab::host;
use port::{FramePortKind, FramePortStats, FrameReceiver, FrameSender as _, Stop};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::mpsc;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};
use testbed::protocol::CpuTime;
use testbed::{Interrupt, LabError};
use traffic::{receive, send};
use traffic_spec::{Monotonic, Report, Role};
use trial::TrialError;
use trial::evidence::counted_since;
use trial::frames::{FrameRun, FrameStream, Rig, RigLoad, Soaked, peer_engine, soaked, with_bins};

/// Interval of checking whether a thread has ended, or Ctrl-C was pressed.
const STEP: Duration = Duration::from_millis(2);

/// Frame trials over rings, on running gateways.
pub(crate) struct MemoryRig<'a> {
    pub(crate) gateways: Gateways,
    pub(crate) way: FrameStream<'a>,
    tag: u16,
    /// CPU time of the sender and of the receiver in the last trial.
    stations_cpu_ns: (u64, u64),
    /// The readings of the last trial with samples.
    pub(crate) sampled: Option<Sampled>,
}

/// The readings of a trial: this lab has no link to sample.
pub(crate) struct Sampled {
    pub(crate) cpu: Cpu,
    pub(crate) dut_counters: BTreeMap<String, u64>,
    pub(crate) trial: FrameTrial,
}

impl<'a> MemoryRig<'a> {
    pub(crate) const fn new(gateways: Gateways, way: FrameStream<'a>) -> Self {
        Self {
            gateways,
            way,
            tag: 0,
            stations_cpu_ns: (0, 0),
            sampled: None,
        }
    }
}

impl MemoryRig<'_> {
    /// Makes a frame trial. Returns the sender's and the receiver's reports.
    fn reports(
        &mut self,
        load: &RigLoad,
        interrupt: &Interrupt,
    ) -> Result<(Report, Report), TrialError> {
        self.tag = self.tag.wrapping_add(1);
        // Generator, path and analyser are threads that take turns, which is no stall.
        let load = &RigLoad {
            catches_up: true,
            ..*load
        };
        let (Role::Send(sending), Role::Receive(receiving)) = (
            self.way.sender(load, self.tag, None).role,
            self.way.receiver(load, self.tag, None).role,
        ) else {
            unreachable!("a sender sends, and a receiver receives")
        };
        // Discards late frames of the trial before.
        while self.gateways.exit.recv(|_| ()).is_ok() {}
        // The ends count from the start of the gateways.
        let before_sent = self.gateways.entrance.stats();
        let before_lost = self.gateways.lost_at_sink();
        let stop = || Stop::new().map_err(problem);
        let (end_sender, end_receiver) = (stop()?, stop()?);
        let tag = self.tag;
        let Gateways { entrance, exit, .. } = &mut self.gateways;
        // Both threads report their CPU time themselves, since their folders under /proc are gone
        // when they have ended.
        let (sent, received) = thread::scope(|scope| {
            let (ready, is_ready) = mpsc::channel();
            let receiver = scope.spawn(|| {
                let clock = Monotonic::new();
                let mut exit = ReadySignal {
                    port: exit,
                    ready: Some(ready),
                };
                let received = receive(&mut exit, &receiving, tag, &clock, &end_receiver);
                (received, own_cpu_ns())
            });
            // The receiver opens keys and allocates memory before frames arrive. Without a receiver
            // nothing is sent.
            if is_ready.recv().is_err() {
                end_sender.raise();
            }
            let sender = scope.spawn(|| {
                let clock = Monotonic::new();
                (
                    send(entrance, &sending, tag, &clock, &end_sender),
                    own_cpu_ns(),
                )
            });
            // A sender ends by itself after its frames. The limit is for one that cannot keep up
            // with its schedule.
            let late = Instant::now() + load.sender_limit();
            let interrupted = await_end(&sender, late, interrupt).is_err();
            end_sender.raise();
            // The receiver cannot know which frames are lost, so it waits for late ones and then
            // has to be stopped.
            let drain = if interrupted { 0 } else { load.drain_ns };
            let until = Instant::now() + Duration::from_nanos(drain);
            // The interrupt is checked again when both have ended.
            let _ = await_end(&receiver, until, interrupt);
            end_receiver.raise();
            (join(sender), join(receiver))
        });
        interrupt.check()?;
        self.stations_cpu_ns = (sent.1, received.1);
        let report = |has_peer: bool, port_stats| Report {
            port: Some(FramePortKind::Memory),
            threads: 1,
            engine: has_peer.then(|| peer_engine(&self.way.cell.dut.adapter).to_owned()),
            port_stats,
            ..Report::default()
        };
        let sender_stats = FramePortStats {
            sent: self.gateways.entrance.stats().sent - before_sent.sent,
            ..FramePortStats::default()
        };
        let receiver_stats = FramePortStats {
            receive_dropped: self.gateways.lost_at_sink() - before_lost,
            ..FramePortStats::default()
        };
        let sender = Report {
            sent: Some(sent.0.map_err(problem)?),
            ..report(sending.peer.is_some(), sender_stats)
        };
        let receiver = Report {
            received: Some(received.0.map_err(problem)?),
            ..report(receiving.peer.is_some(), receiver_stats)
        };
        Ok((sender, receiver))
    }

    fn counted(
        &mut self,
        load: &RigLoad,
        interrupt: &Interrupt,
    ) -> Result<(FrameRun, (Report, Report)), TrialError> {
        let began = Instant::now();
        let reports = self.reports(load, interrupt)?;
        let run = FrameRun {
            took_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            ..FrameRun::of(load, &reports.0, &reports.1)
        };
        Ok((run, reports))
    }

    /// Makes a trial with readings of CPU time and of the gateways' counters, and keeps them.
    fn run_sampled(
        &mut self,
        load: &RigLoad,
        interrupt: &Interrupt,
    ) -> Result<FrameRun, TrialError> {
        // The readings enclose the trial as closely as possible: any time besides it would count as
        // the trial's.
        let clock = Instant::now();
        let machine_before = host::cpu_times();
        let (cpu_before, before) = (self.gateways.cpu_ns(), self.gateways.counters());
        let (run, _) = self.counted(load, interrupt)?;
        let (station_a_ns, station_b_ns) = self.stations_cpu_ns;
        let (stations_ns, dut_ns) = (
            station_a_ns + station_b_ns,
            self.gateways.cpu_ns() - cpu_before,
        );
        self.sampled = Some(Sampled {
            cpu: Cpu {
                wall_ns: u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX),
                stations_ns,
                station_a_ns,
                station_b_ns,
                dut_ns: Some(dut_ns),
                busy_ns: stations_ns + dut_ns,
                ..taken(machine_before, host::cpu_times())
            },
            dut_counters: counted_since(&self.gateways.counters(), &before),
            trial: run.trial.clone(),
        });
        Ok(run)
    }
}

/// CPU times of the machine and of this process.
type Times = Option<(CpuTime, CpuTime)>;

/// CPU time that the hypervisor and other programs took between two readings, as far as the kernel
/// reports it.
fn taken(before: Times, after: Times) -> Cpu {
    let (Some((machine_before, own_before)), Some((machine, own))) = (before, after) else {
        return Cpu::default();
    };
    let user = machine.user_ns.saturating_sub(machine_before.user_ns);
    // User time alone: the kernel's time has interrupts in it, which are of no program.
    let own_user = own.user_ns.saturating_sub(own_before.user_ns);
    Cpu {
        steal_ns: machine.steal_ns.saturating_sub(machine_before.steal_ns),
        foreign_ns: user.saturating_sub(own_user),
        idle_ns: Some(machine.idle_ns.saturating_sub(machine_before.idle_ns)),
        ..Cpu::default()
    }
}

impl Rig for MemoryRig<'_> {
    fn run(&mut self, load: &RigLoad, interrupt: &Interrupt) -> Result<FrameRun, TrialError> {
        if load.sampled {
            return self.run_sampled(load, interrupt);
        }
        self.counted(load, interrupt).map(|(run, _)| run)
    }

    /// Without readings of the gateways: they are threads of this process, which share its memory
    /// with the stations.
    fn soak(
        &mut self,
        load: &RigLoad,
        point_ns: u64,
        interrupt: &Interrupt,
    ) -> Result<(FrameRun, Soaked), TrialError> {
        let load = with_bins(load, point_ns);
        let (run, (sender, receiver)) = self.counted(&load, interrupt)?;
        let ways = [(&self.way, (&sender, &receiver))];
        Ok((run, soaked(ways, &load, point_ns, &[])))
    }

    fn line_rate(&self) -> Option<u64> {
        None
    }
}

/// A receiver's port that signals its first poll.
struct ReadySignal<'a> {
    port: &'a mut Exit,
    ready: Option<mpsc::Sender<()>>,
}

impl FrameReceiver for ReadySignal<'_> {
    fn recv(&mut self, read: impl FnMut(&mut [u8])) -> io::Result<usize> {
        if let Some(ready) = self.ready.take() {
            // The thread that started the receiver waits for this.
            let _ = ready.send(());
        }
        self.port.recv(read)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.port.readable()
    }

    fn stats(&self) -> FramePortStats {
        self.port.stats()
    }
}

/// Waits until a thread has ended, or `until`.
fn await_end<T>(
    thread: &ScopedJoinHandle<'_, T>,
    until: Instant,
    interrupt: &Interrupt,
) -> Result<(), LabError> {
    while !thread.is_finished() && Instant::now() < until {
        interrupt.check()?;
        thread::sleep(STEP);
    }
    Ok(())
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    let result = thread.join();
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn problem(error: impl Display) -> TrialError {
    TrialError::frames(error.to_string())
}

#[cfg(test)]
mod tests;
