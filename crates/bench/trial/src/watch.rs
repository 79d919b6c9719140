//! Readings while the tools run: CPU time and hardware counters at both ends of the measured time,
//! samples of the cipher link spread over it, and all foreign frames of the cipher link.

use crate::counters::{CpuReading, by_machine};
use crate::counting::Counting;
use crate::error::TrialError;
use crate::evidence::{add_contents, must_look_random, recorded};
use crate::timing::Timing;
use crate::tools::{await_end, sleep_until};
use journal::record::{CipherLink, CipherWatch, Cpu, OpenedPackets};
use plan::{Adapter, Cell, ImpairProfile, Measurement, VideoTransport};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use testbed::protocol::{Contents, Request, Response};
use testbed::{Bench, Interrupt, LabError, Node, NodeId, RunningDut};

/// Frames in one sample of a bulk transfer: copying them takes about a millisecond.
const FRAMES_BULK: u32 = 100;
/// Frames in one sample of echoes: few, so that few round trips are affected.
const FRAMES_ECHO: u32 = 20;
/// Whole sealed packets per sample to open later, if the keys are known.
const PACKETS: u32 = 8;
/// Duration of a sample.
const SAMPLE: Duration = Duration::from_millis(100);
/// Maximum duration of a sample, for a slow ping.
const SAMPLE_MAX: Duration = Duration::from_secs(2);
/// Positions of samples in the measured time, in per cent.
const SAMPLES_AT_PERCENT: [u32; 3] = [20, 50, 80];
/// Maximum duration of one of the three samples of a transfer over a path that loses packets.
const SAMPLE_LOSSY_MAX: Duration = Duration::from_millis(500);
/// Maximum duration of the sample of a transfer that may end before the measured time begins: until
/// then.
const SAMPLE_EARLY: Duration = Duration::from_millis(1900);
/// A shorter trial has one sample, from its start.
const MANY_SAMPLES_FROM: Duration = Duration::from_millis(500);
/// CPU time is last read this long before the tools end, while all of them run.
const END_MARGIN: Duration = Duration::from_millis(50);

/// Readings while the tools ran.
#[derive(Debug, Clone, Default)]
pub(crate) struct WatchResult {
    pub(crate) cpu: Cpu,
    pub(crate) cipher_link: CipherLink,
    /// Maximum duration of all samples together.
    pub(crate) sampling_ns: u64,
    /// Sampled packets that [`Self::open_samples`] will open.
    packets: Vec<Vec<u8>>,
    /// Sampled sealed frames without a whole packet.
    not_whole: u64,
    /// Packets that the receiving station received, by class of service.
    pub(crate) received_dscp: BTreeMap<String, u64>,
    /// The contents of the sampled packets.
    contents: Contents,
}

impl WatchResult {
    /// Opens the sampled packets if the DUT's keys are known, and counts the result. Called after
    /// the tools have ended, since it would use their CPU time.
    pub(crate) fn open_samples(&mut self, dut: &RunningDut) -> Result<(), TrialError> {
        let packets = std::mem::take(&mut self.packets);
        if let Some(keys) = &dut.tunnel_keys {
            let opened = keys.open(&packets);
            let opened = opened.map_err(|problem| TrialError::Samples { problem })?;
            self.cipher_link.opened = Some(OpenedPackets {
                not_whole: self.not_whole,
                ..opened
            });
        }
        Ok(())
    }
}

/// A watch on the cipher link, from its start to [`Self::end`]; ended without a result on drop.
///
/// If possible, the link is watched at both ends, each for received frames only: that costs less
/// than both directions at one end, and the kernel shows frames that were sent past its queue to
/// the receiving end only.
pub(crate) struct CipherLinkWatch<'a> {
    /// Handles of the running watches, with their nodes.
    watches: Vec<(&'a dyn Node, u64)>,
}

/// The watched end of the cipher link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WatchPoint<'a> {
    /// The gateway at this end.
    pub(crate) gateway: NodeId,
    pub(crate) interface: &'a str,
    /// The link's other end, which watches frames that leave this one, if it can be watched.
    far: Option<(NodeId, &'a str)>,
    /// Whether this end sends the traffic from A's side, or receives it.
    pub(crate) sends: bool,
    /// Byte strings that the stations' traffic has in clear; may be none.
    pub(crate) markers: &'a [Vec<u8>],
}

impl<'a> WatchPoint<'a> {
    /// Returns gw1's end, or gw2's if a station takes gw1's place; between external boxes the tap,
    /// if there is one. A station in a gateway's place takes frames in before its kernel shows
    /// them: then both directions are watched at the other end.
    pub(crate) fn at(
        bench: &'a dyn Bench,
        gateway: NodeId,
        is_beside_station: bool,
        markers: &'a [Vec<u8>],
    ) -> Option<Self> {
        let [first, second] = bench.cipher_ends()?;
        let sends = gateway != NodeId::Gw2;
        let far = if is_beside_station {
            None
        } else {
            bench.far_end(gateway)
        };
        let (gateway, interface) = if sends { first } else { second };
        Some(Self {
            gateway,
            interface,
            far,
            sends,
            markers,
        })
    }
}

impl<'a> CipherLinkWatch<'a> {
    /// Starts to watch every frame.
    pub(crate) fn start(
        bench: &'a dyn Bench,
        dut: &RunningDut,
        look: WatchPoint<'_>,
    ) -> Result<Self, LabError> {
        let near = (look.gateway, look.interface);
        // If the second end fails, the first one's watch ends on drop.
        let mut started = Self {
            watches: Vec::new(),
        };
        for (node, interface) in [near].into_iter().chain(look.far) {
            let node = bench.node(node);
            let request = Request::Watch {
                interface: interface.to_owned(),
                received_only: look.far.is_some(),
                sealed_ports: dut.sealed_ports.clone(),
                control_ports: dut.control_ports.clone(),
                markers: look.markers.to_vec(),
                inside: !dut.readable,
            };
            match node.call(request)? {
                Response::Watching { watch } => started.watches.push((node, watch)),
                other => return Err(node.unexpected(&other)),
            }
        }
        Ok(started)
    }

    /// Returns the foreign frames since the start or the last reading.
    pub(crate) fn read(&self) -> Result<CipherWatch, LabError> {
        let mut sum = CipherWatch::default();
        for &(node, watch) in &self.watches {
            add_foreign(&mut sum, &watched(node, Request::WatchRead { watch })?);
        }
        Ok(sum)
    }

    /// Ends the watch. Returns the foreign frames.
    pub(crate) fn end(mut self) -> Result<CipherWatch, LabError> {
        let mut sum = CipherWatch::default();
        // Each is taken from the list before its call, so that drop ends the remaining ones after
        // an error, and none twice.
        while let Some((node, watch)) = self.watches.pop() {
            add_foreign(&mut sum, &watched(node, Request::WatchEnd { watch })?);
        }
        Ok(sum)
    }
}

/// Adds the foreign frames of another end, or of another trial.
pub(crate) fn add_foreign(sum: &mut CipherWatch, more: &CipherWatch) {
    sum.foreign_frames += more.foreign_frames;
    sum.marker_frames += more.marker_frames;
    sum.clear_sealed_frames += more.clear_sealed_frames;
    sum.foreign_bytes += more.foreign_bytes;
    sum.interrupted |= more.interrupted;
    for example in &more.examples {
        // A device that leaks does so in every trial; the same frame is one example.
        if sum.examples.len() < CipherWatch::EXAMPLES_MAX && !sum.examples.contains(example) {
            sum.examples.push(example.clone());
        }
    }
}

fn watched(node: &dyn Node, request: Request) -> Result<CipherWatch, LabError> {
    match node.call(request)? {
        Response::Watched(found) => Ok(found),
        other => Err(node.unexpected(&other)),
    }
}

impl Drop for CipherLinkWatch<'_> {
    fn drop(&mut self) {
        for &(node, watch) in &self.watches {
            // The trial has failed already; a lost station has no watch either.
            let _ = node.call(Request::WatchEnd { watch });
        }
    }
}

/// Watches one trial.
pub(crate) struct Watcher<'a> {
    pub(crate) bench: &'a dyn Bench,
    pub(crate) dut: &'a RunningDut,
    pub(crate) timing: Timing,
    /// `None` without a cipher link.
    pub(crate) look: Option<WatchPoint<'a>>,
    pub(crate) sample: Sample,
    /// The station that receives, with its interface, if the class of its packets is looked at.
    pub(crate) receiver: Option<(NodeId, &'a str)>,
    pub(crate) interrupt: &'a Interrupt,
}

/// Limits of one sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    frames: u32,
    limit: Duration,
    /// One sample, from the start of the tools on.
    is_early: bool,
    /// Whether it reads the contents of sealed packets.
    reads_contents: bool,
}

impl Sample {
    /// A sample of fast traffic.
    pub(crate) const BULK: Self = Self {
        frames: FRAMES_BULK,
        limit: SAMPLE,
        is_early: false,
        reads_contents: false,
    };

    /// Also reads the contents of sealed packets if this DUT's must look random.
    pub(crate) fn of_packets_by(self, adapter: &Adapter) -> Self {
        Self {
            reads_contents: must_look_random(adapter),
            ..self
        }
    }

    /// Returns the limits for a cell's traffic.
    pub(crate) fn of(cell: &Cell, timing: &Timing) -> Self {
        let limits = match &cell.measurement {
            Measurement::Ping { interval_ns, .. } => {
                // At least one whole exchange is within any two intervals.
                let two_requests = Duration::from_nanos(interval_ns.saturating_mul(2));
                Self {
                    frames: FRAMES_ECHO,
                    limit: two_requests.clamp(SAMPLE, SAMPLE_MAX),
                    ..Self::BULK
                }
            }
            // Players fetch a whole short clip before they show it.
            Measurement::Video(test) if test.transport == VideoTransport::Http => Self {
                limit: SAMPLE_EARLY,
                is_early: true,
                ..Self::BULK
            },
            // After a burst of losses TCP waits for a second and longer.
            _ if cell.impair.as_ref().is_some_and(ImpairProfile::loses) => {
                let tenth = Duration::from_nanos(timing.measured_ns() / 10);
                Self {
                    limit: tenth.clamp(SAMPLE, SAMPLE_LOSSY_MAX),
                    ..Self::BULK
                }
            }
            _ => Self::BULK,
        };
        limits.of_packets_by(&cell.dut.adapter)
    }
}

/// One step of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    CpuTime,
    Sample,
}

impl Watcher<'_> {
    /// Follows the tools from `started`, the start of the first client, until shortly before they
    /// end.
    pub(crate) fn follow(
        &self,
        started: Instant,
        tools: &[(NodeId, u64)],
    ) -> Result<WatchResult, TrialError> {
        let mut seen = WatchResult::default();
        let mut first_reading: Option<CpuReading> = None;
        let mut counting = None;
        let machines = by_machine(self.bench)?;
        for (after, step) in schedule(&self.timing, self.sample.is_early) {
            // A tool that has ended early has no CPU time to read, so its end stops the schedule.
            let programs = tools.iter().chain(self.dut.path_processes());
            sleep_until(self.bench, programs, started + after, self.interrupt)?;
            match step {
                Step::CpuTime => {
                    let reading = CpuReading::read(self.bench, &machines, tools, self.dut)?;
                    match &first_reading {
                        None => {
                            first_reading = Some(reading);
                            counting = Counting::start(self.bench, &machines, tools, self.dut)?;
                        }
                        Some(first) => {
                            seen.cpu = reading.since(first);
                            let counted = counting.take().map(Counting::end).transpose()?;
                            seen.cpu.counted = counted.flatten();
                        }
                    }
                }
                Step::Sample => {
                    self.sample(&mut seen)?;
                    self.sample_receiver(&mut seen)?;
                }
            }
        }
        Ok(seen)
    }

    /// Waits until all of A's tools have ended, or until the deadline.
    ///
    /// # Errors
    /// On an interrupt, or when the DUT dies.
    pub(crate) fn await_clients(
        &self,
        clients: &[u64],
        deadline: Instant,
    ) -> Result<(), TrialError> {
        let dut = self.dut.path_processes();
        clients.iter().try_for_each(|&client| {
            // Nothing is measured any more, so each step may have its requests.
            let dut = (dut.clone(), Duration::ZERO);
            await_end(
                self.bench,
                (NodeId::A, client),
                deadline,
                dut,
                self.interrupt,
            )
        })
    }

    /// Samples what the receiving station receives, if the cell's packets have a class.
    fn sample_receiver(&self, seen: &mut WatchResult) -> Result<(), TrialError> {
        let Some((receiver, interface)) = self.receiver else {
            return Ok(());
        };
        let receiver = self.bench.node(receiver);
        let request = Request::Sample {
            interface: interface.to_owned(),
            frames: self.sample.frames,
            packets: 0,
            contents: false,
            received_only: true,
            limit_ms: self.sample.limit.as_millis() as u64,
            markers: Vec::new(),
            sealed_ports: Vec::new(),
            control_ports: Vec::new(),
        };
        match receiver.call(request)? {
            Response::Sample(found) => add_classes(&mut seen.received_dscp, found.link.dscp),
            other => return Err(receiver.unexpected(&other).into()),
        }
        Ok(())
    }

    fn sample(&self, seen: &mut WatchResult) -> Result<(), TrialError> {
        let Some(look) = self.look else {
            return Ok(());
        };
        let Sample { frames, limit, .. } = self.sample;
        let gateway = self.bench.node(look.gateway);
        let request = Request::Sample {
            interface: look.interface.to_owned(),
            frames,
            // Without keys nobody can open them, so they are not copied to this program.
            packets: match self.dut.tunnel_keys {
                Some(_) => PACKETS,
                None => 0,
            },
            contents: self.sample.reads_contents,
            received_only: false,
            limit_ms: limit.as_millis() as u64,
            markers: look.markers.to_vec(),
            sealed_ports: self.dut.sealed_ports.clone(),
            control_ports: self.dut.control_ports.clone(),
        };
        match gateway.call(request)? {
            Response::Sample(found) => {
                add(&mut seen.cipher_link, found.link);
                seen.packets.extend(found.packets);
                seen.not_whole += found.not_whole;
                if let Some(contents) = &found.contents {
                    add_contents(&mut seen.contents, contents);
                    let recorded = recorded(&seen.contents, seen.not_whole);
                    seen.cipher_link.contents = Some(recorded);
                }
            }
            other => return Err(gateway.unexpected(&other).into()),
        }
        seen.sampling_ns += limit.as_nanos() as u64;
        Ok(())
    }
}

/// Samples taken of the outer headers under a load, and the pause before each: connections send in
/// bursts, and few samples would catch few of the connections.
const OUTER_SAMPLES: u32 = 8;
const OUTER_PAUSE: Duration = Duration::from_millis(50);

/// Samples the classes of the outermost IP headers on the cipher link.
pub(crate) fn outer_classes(
    bench: &dyn Bench,
    dut: &RunningDut,
    look: WatchPoint<'_>,
) -> Result<BTreeMap<String, u64>, LabError> {
    let mut seen = BTreeMap::new();
    let gateway = bench.node(look.gateway);
    for _ in 0..OUTER_SAMPLES {
        std::thread::sleep(OUTER_PAUSE);
        let request = Request::Sample {
            interface: look.interface.to_owned(),
            frames: FRAMES_BULK,
            packets: 0,
            contents: false,
            received_only: false,
            limit_ms: SAMPLE.as_millis() as u64,
            markers: Vec::new(),
            sealed_ports: dut.sealed_ports.clone(),
            control_ports: dut.control_ports.clone(),
        };
        match gateway.call(request)? {
            Response::Sample(found) => add_classes(&mut seen, found.link.dscp),
            other => return Err(gateway.unexpected(&other)),
        }
    }
    Ok(seen)
}

fn add_classes(sum: &mut BTreeMap<String, u64>, found: BTreeMap<String, u64>) {
    for (class, packets) in found {
        *sum.entry(class).or_default() += packets;
    }
}

fn add(sum: &mut CipherLink, found: CipherLink) {
    sum.frames += found.frames;
    sum.esp_frames += found.esp_frames;
    sum.marker_frames += found.marker_frames;
    sum.channel_frames += found.channel_frames;
    sum.other_frames += found.other_frames;
    add_classes(&mut sum.dscp, found.dscp);
    for spi in found.spis {
        if !sum.spis.contains(&spi) {
            sum.spis.push(spi);
        }
    }
    sum.spis.sort();
}

/// Returns the steps with their times from the start of the tools, in order.
fn schedule(timing: &Timing, samples_early: bool) -> Vec<(Duration, Step)> {
    let begin = Duration::from_nanos(timing.warmup_ns);
    let end = begin + Duration::from_nanos(timing.measured_ns());
    let measured = end - begin;
    let mut steps = vec![(begin, Step::CpuTime)];
    if samples_early {
        steps.insert(0, (Duration::ZERO, Step::Sample));
    } else if measured < MANY_SAMPLES_FROM {
        steps.push((begin, Step::Sample));
    } else {
        steps.extend(
            SAMPLES_AT_PERCENT.map(|percent| (begin + measured * percent / 100, Step::Sample)),
        );
    }
    // In a trial that is shorter than the margin, the second reading comes right after the first.
    steps.push((end.saturating_sub(END_MARGIN).max(begin), Step::CpuTime));
    steps
}
