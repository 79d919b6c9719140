//! What is read while the tools run: CPU time at both ends of the measured time, samples of the
//! cipher link spread over it, and all of its frames that do not belong there.

use crate::error::TrialError;
use crate::reading::CpuReading;
use crate::timing::Timing;
use crate::tools::{INTERRUPT_STEP, expect_running, sleep_until, status};
use campaign::plan::Measurement;
use journal::record::{CipherLink, CipherWatch, Cpu};
use lab::protocol::{Request, Response};
use lab::{Bench, Interrupt, LabError, Node, NodeId, RunningDut};
use std::time::{Duration, Instant};

/// Frames in one sample of a bulk transfer: the copy to the watch costs a millisecond or so.
const FRAMES_BULK: u32 = 100;
/// Frames in one sample of echoes, few so that few round trips are touched.
const FRAMES_ECHO: u32 = 20;
/// A sample's time.
const SAMPLE: Duration = Duration::from_millis(100);
/// A slow ping is sampled for longer, up to this.
const SAMPLE_MAX: Duration = Duration::from_secs(2);
/// Where in the measured time samples are taken, in percent.
const SAMPLES_AT_PERCENT: [u32; 3] = [20, 50, 80];
/// A shorter trial gets one sample, from its start.
const MANY_SAMPLES_FROM: Duration = Duration::from_millis(500);
/// CPU time is read last this long before the tools end, while all of them live.
const END_MARGIN: Duration = Duration::from_millis(50);

/// What was seen while the tools ran.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) cpu: Cpu,
    pub(crate) cipher_link: CipherLink,
    /// Longest time that all samples together may have looked.
    pub(crate) sampling_ns: u64,
}

/// A watch on the cipher link, from its start to [`Self::end`]; ended and forgotten when it is
/// dropped.
pub(crate) struct CipherWatching<'a> {
    gateway: &'a dyn Node,
    watch: Option<u64>,
}

/// Where the cipher link is looked at, and for what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look<'a> {
    /// Whose end.
    pub(crate) gateway: NodeId,
    pub(crate) interface: &'a str,
    /// Bytes that the stations' traffic shows in clear; may be empty.
    pub(crate) marker: &'a [u8],
}

impl<'a> Look<'a> {
    /// At gw1's end, or at gw2's where a station stands in gw1's place; between boxes outside at
    /// the tap, if there is one.
    pub(crate) fn at(bench: &'a dyn Bench, gateway: NodeId, marker: &'a [u8]) -> Option<Self> {
        let [first, second] = bench.cipher_ends()?;
        let (gateway, interface) = if gateway == NodeId::Gw2 {
            second
        } else {
            first
        };
        Some(Self {
            gateway,
            interface,
            marker,
        })
    }
}

impl<'a> CipherWatching<'a> {
    /// Starts to watch every frame there.
    pub(crate) fn start(
        bench: &'a dyn Bench,
        dut: &RunningDut,
        look: Look<'_>,
    ) -> Result<Self, LabError> {
        let gateway = bench.node(look.gateway);
        let request = Request::Watch {
            interface: look.interface.to_owned(),
            sealed_ports: dut.sealed_ports.clone(),
            control_ports: dut.control_ports.clone(),
            marker: look.marker.to_vec(),
        };
        match gateway.call(request)? {
            Response::Watching { watch } => Ok(Self {
                gateway,
                watch: Some(watch),
            }),
            other => Err(gateway.unexpected(&other)),
        }
    }

    /// Ends the watch and tells what did not belong there.
    pub(crate) fn end(mut self) -> Result<CipherWatch, LabError> {
        let Some(watch) = self.watch.take() else {
            return Ok(CipherWatch::default());
        };
        match self.gateway.call(Request::WatchEnd { watch })? {
            Response::Watched(found) => Ok(found),
            other => Err(self.gateway.unexpected(&other)),
        }
    }
}

impl Drop for CipherWatching<'_> {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.take() {
            // The trial has failed already; when the station is gone, so is the watch.
            let _ = self.gateway.call(Request::WatchEnd { watch });
        }
    }
}

/// Watches one trial.
pub(crate) struct Watch<'a> {
    pub(crate) bench: &'a dyn Bench,
    pub(crate) dut: &'a RunningDut,
    pub(crate) timing: Timing,
    /// `None` where nothing crosses the cipher link.
    pub(crate) look: Option<Look<'a>>,
    pub(crate) sample: Sample,
    pub(crate) interrupt: &'a Interrupt,
}

/// How much is looked at at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    frames: u32,
    limit: Duration,
}

impl Sample {
    /// Of traffic as fast as it goes.
    pub(crate) const BULK: Self = Self {
        frames: FRAMES_BULK,
        limit: SAMPLE,
    };

    /// Of what the tools of a measurement send.
    pub(crate) fn of(measurement: &Measurement) -> Self {
        match measurement {
            Measurement::Ping { interval_ns, .. } => {
                let two_requests = Duration::from_nanos(interval_ns.saturating_mul(2));
                Self {
                    frames: FRAMES_ECHO,
                    limit: two_requests.clamp(SAMPLE, SAMPLE_MAX),
                }
            }
            _ => Self::BULK,
        }
    }
}

/// One thing to do at its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    CpuTime,
    Sample,
}

impl Watch<'_> {
    /// Follows the tools from `started`, when the first client was, until shortly before they end.
    pub(crate) fn follow(
        &self,
        started: Instant,
        tools: &[(NodeId, u64)],
    ) -> Result<Seen, TrialError> {
        let mut seen = Seen::default();
        let mut first_reading: Option<CpuReading> = None;
        for (after, step) in schedule(&self.timing) {
            let programs = tools.iter().chain(&self.dut.processes);
            sleep_until(self.bench, programs, started + after, self.interrupt)?;
            match step {
                Step::CpuTime => {
                    let reading = CpuReading::read(self.bench, tools, self.dut)?;
                    match &first_reading {
                        None => first_reading = Some(reading),
                        Some(first) => seen.cpu = reading.since(first),
                    }
                }
                Step::Sample => self.sample(&mut seen)?,
            }
        }
        Ok(seen)
    }

    /// Waits until all of A's tools have ended, or until the deadline, the run is interrupted or
    /// the DUT dies.
    pub(crate) fn await_clients(
        &self,
        clients: &[u64],
        deadline: Instant,
    ) -> Result<(), TrialError> {
        let dut = self.dut.processes.iter();
        for &client in clients {
            while Instant::now() < deadline && status(self.bench, NodeId::A, client)?.is_none() {
                let next = Instant::now() + INTERRUPT_STEP;
                sleep_until(self.bench, dut.clone(), next, self.interrupt)?;
                expect_running(self.bench, dut.clone())?;
            }
        }
        Ok(())
    }

    fn sample(&self, seen: &mut Seen) -> Result<(), TrialError> {
        let Some(look) = self.look else {
            return Ok(());
        };
        let Sample { frames, limit } = self.sample;
        let gateway = self.bench.node(look.gateway);
        let request = Request::Sample {
            interface: look.interface.to_owned(),
            frames,
            limit_ms: limit.as_millis() as u64,
            marker: look.marker.to_vec(),
            sealed_ports: self.dut.sealed_ports.clone(),
            control_ports: self.dut.control_ports.clone(),
        };
        match gateway.call(request)? {
            Response::Sample(found) => add(&mut seen.cipher_link, found),
            other => return Err(gateway.unexpected(&other).into()),
        }
        seen.sampling_ns += limit.as_nanos() as u64;
        Ok(())
    }
}

fn add(sum: &mut CipherLink, found: CipherLink) {
    sum.frames += found.frames;
    sum.esp_frames += found.esp_frames;
    sum.marker_frames += found.marker_frames;
    sum.channel_frames += found.channel_frames;
    sum.other_frames += found.other_frames;
    for spi in found.spis {
        if !sum.spis.contains(&spi) {
            sum.spis.push(spi);
        }
    }
    sum.spis.sort();
}

/// Times from the start of the tools, in order.
fn schedule(timing: &Timing) -> Vec<(Duration, Step)> {
    let begin = Duration::from_nanos(timing.warmup_ns);
    let end = begin + Duration::from_nanos(timing.measured_ns());
    let measured = end - begin;
    let mut steps = vec![(begin, Step::CpuTime)];
    if measured < MANY_SAMPLES_FROM {
        steps.push((begin, Step::Sample));
    } else {
        steps.extend(
            SAMPLES_AT_PERCENT.map(|percent| (begin + measured * percent / 100, Step::Sample)),
        );
    }
    steps.push((end.saturating_sub(END_MARGIN).max(begin), Step::CpuTime));
    steps
}
