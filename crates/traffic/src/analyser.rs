//! The analyser: what has become of the frames.

use crate::clock::Clock;
use crate::error::TrafficError;
use crate::keys::Keys;
use crate::open::Opener;
use crate::parse::{datagram, ip_packet};
use crate::report::Received;
use crate::sequences::{Arrival, Sequences};
use crate::spec::{self, TEST_PORT};
use crate::tally::Tally;
use port::{FrameReceiver, Stop, wait_readable};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{panicking, yield_now};
use std::time::Duration;
use wire::mix::{ETHERNET_HEADER_BYTES, FCS_BYTES};
use wire::stamp::Stamp;

/// Frames that share one reading of the clock, at most.
const FRAMES_PER_CLOCK: usize = 32;
/// Empty polls before a receiver waits: what comes within a microsecond or so is cheaper to poll for. Each lets
/// others run, for a DUT may share the core.
const POLLS: u32 = 8;
/// How long a port that cannot be waited for is left alone.
const PAUSE: Duration = Duration::from_millis(1);
/// Longest time for what is left in the port when the stop flag goes up.
const DRAIN_NS: u64 = 200_000_000;
/// A port that has shown nothing for so long has nothing left: the kernel holds frames back for some
/// milliseconds until a block of them is full.
const GRACE: Duration = Duration::from_millis(20);

/// Checks and counts frames, and never waits.
pub struct Analyser<'k> {
    sequences: Sequences,
    opener: Option<Opener<'k>>,
    tally: Tally,
    tag: u16,
    flows: u64,
    /// Frames of the sender's first part.
    first_frames: u64,
}

impl<'k> Analyser<'k> {
    /// An analyser that has seen nothing. `keys` are those of `receive.esp`, if there is any.
    ///
    /// # Errors
    /// [`TrafficError::Flows`].
    ///
    /// # Panics
    /// When `receive` says ESP and there are no keys.
    pub fn new(
        receive: &spec::Receive,
        tag: u16,
        keys: Option<&'k Keys>,
    ) -> Result<Self, TrafficError> {
        if receive.flows == 0 || receive.flows > u32::from(u16::MAX) {
            return Err(TrafficError::Flows {
                flows: receive.flows,
                tunnels: 1,
            });
        }
        let opener = receive.esp.as_ref().map(|esp| {
            let keys = keys.expect("who wants frames opened gives the keys");
            Opener::new(esp, keys)
        });
        Ok(Self {
            sequences: Sequences::new(receive.flows),
            opener,
            tally: Tally::new(),
            tag,
            flows: u64::from(receive.flows),
            first_frames: receive.first_frames.unwrap_or(u64::MAX),
        })
    }

    /// How many frames of its flow a frame may be late to be told from a duplicate.
    #[must_use]
    pub const fn window(&self) -> u64 {
        self.sequences.window()
    }

    /// Takes what the port has, up to one of its batches; how many frames.
    ///
    /// # Errors
    /// When the port is gone.
    #[inline]
    pub fn poll(&mut self, port: &mut impl FrameReceiver, clock: &impl Clock) -> io::Result<usize> {
        if let Some(opener) = &mut self.opener {
            opener.begin_batch();
        }
        let (mut frames, mut now_ns) = (0, 0);
        let result = port.recv_timed(|frame, noted_ns| {
            if noted_ns.is_none() && frames % FRAMES_PER_CLOCK == 0 {
                now_ns = clock.now_ns();
            }
            frames += 1;
            self.take(frame, noted_ns.unwrap_or(now_ns));
        });
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            result => result,
        }
    }

    /// Counts one frame that came at `now_ns`.
    #[inline]
    pub fn take(&mut self, frame: &mut [u8], now_ns: u64) {
        let packet = ip_packet(frame).and_then(|packet| {
            let datagram = datagram(packet)?;
            Some((packet, datagram))
        });
        let Some((packet, found)) = packet else {
            self.tally.foreign += 1;
            return;
        };
        let Some(opener) = &mut self.opener else {
            return self.check(packet, now_ns);
        };
        let Some(lane) = opener.lane(found.port) else {
            self.tally.foreign += 1;
            return;
        };
        let esp = &mut packet[found.payload.unwrap_or(0..0)];
        match opener.open(lane, esp) {
            Ok(inner) => self.check(inner, now_ns),
            Err(refusal) => self.tally.refused.add(refusal),
        }
    }

    /// Counts one IP packet of the clear side.
    #[inline]
    fn check(&mut self, packet: &[u8], now_ns: u64) {
        let tally = &mut self.tally;
        let Some(found) = datagram(packet).filter(|found| found.port == TEST_PORT) else {
            tally.foreign += 1;
            return;
        };
        let payload = found.payload.and_then(|range| packet.get(range));
        let Some(stamp) = payload.and_then(Stamp::read) else {
            tally.corrupted += 1;
            return;
        };
        if stamp.tag != self.tag {
            tally.stale += 1;
            return;
        }
        let Some(sequence) = self.sequences.infer(stamp.flow, stamp.sequence) else {
            tally.stale += 1;
            return;
        };
        match self.sequences.note(stamp.flow, sequence) {
            Arrival::Leading { gap } => {
                if gap {
                    tally.last_loss_ns = now_ns;
                }
            }
            Arrival::Reordered { extent } => {
                tally.reordered += 1;
                tally.reordering_extent_max = tally.reordering_extent_max.max(extent);
            }
            Arrival::Duplicate => {
                tally.duplicated += 1;
                return;
            }
            Arrival::TooLate => {
                tally.too_late += 1;
                return;
            }
        }
        let number = sequence * self.flows + u64::from(stamp.flow);
        tally.then_frames += u64::from(number >= self.first_frames);
        let frame_bytes = ETHERNET_HEADER_BYTES as u16 + found.ip_bytes + FCS_BYTES;
        tally.intact(frame_bytes, now_ns, stamp.age_ns(now_ns));
    }

    /// Frames that the end of a trial is told by: distinct intact ones, and damaged ones.
    #[inline]
    #[must_use]
    pub const fn arrived(&self) -> u64 {
        self.tally.frames + self.tally.corrupted
    }

    /// What was seen so far.
    #[must_use]
    pub fn received(&self) -> Received {
        self.tally.received()
    }

    /// The counts, and the highest epoch of the peer that a packet has proven.
    pub(crate) fn finish(self) -> (Tally, u32) {
        let epoch = self.opener.map_or(0, |opener| opener.proven_epoch);
        (self.tally, epoch)
    }
}

/// Receives by one thread until all expected frames have come, or `stop` is raised; then takes what the port
/// still has.
///
/// # Errors
/// [`TrafficError`].
pub fn receive(
    port: &mut impl FrameReceiver,
    receive: &spec::Receive,
    tag: u16,
    clock: &impl Clock,
    stop: &Stop,
) -> Result<Received, TrafficError> {
    let keys = receive.esp.as_ref().map(Keys::open).transpose()?;
    let analyser = Analyser::new(receive, tag, keys.as_ref())?;
    let goal = Goal::new(receive.expected)?;
    let pursued = goal.pursue(analyser, port, clock, stop);
    let (tally, epoch) = pursued.map_err(TrafficError::PortGone)?;
    if let Some(keys) = &keys {
        keys.note_peer_epoch(epoch)?;
    }
    Ok(tally.received())
}

/// What several receivers wait for together.
pub(crate) struct Goal {
    expected: u64,
    arrived: AtomicU64,
    /// Raised by whoever takes the last one.
    reached: Stop,
}

impl Goal {
    pub(crate) fn new(expected: Option<u64>) -> Result<Self, TrafficError> {
        Ok(Self {
            expected: expected.unwrap_or(u64::MAX),
            arrived: AtomicU64::new(0),
            reached: Stop::new().map_err(TrafficError::Resources)?,
        })
    }

    /// Ends all receivers.
    pub(crate) fn give_up(&self) {
        self.reached.raise();
    }

    /// Runs one analyser until the goal is reached, `stop` is raised or another one has failed.
    pub(crate) fn pursue(
        &self,
        mut analyser: Analyser<'_>,
        port: &mut impl FrameReceiver,
        clock: &impl Clock,
        stop: &Stop,
    ) -> io::Result<(Tally, u32)> {
        let _all = EndAllOnPanic(self);
        let result = self.run(&mut analyser, port, clock, stop);
        if result.is_err() {
            self.give_up();
        }
        result.map(|()| analyser.finish())
    }

    fn run(
        &self,
        analyser: &mut Analyser<'_>,
        port: &mut impl FrameReceiver,
        clock: &impl Clock,
        stop: &Stop,
    ) -> io::Result<()> {
        self.note(0);
        let mut idle = 0;
        while !self.reached.is_raised() && !stop.is_raised() {
            if self.poll(analyser, port, clock)? > 0 {
                idle = 0;
            } else {
                idle += 1;
                self.wait(idle, port, stop)?;
            }
        }
        let end_ns = clock.now_ns() + DRAIN_NS;
        while !self.reached.is_raised() && clock.now_ns() < end_ns {
            let more = self.poll(analyser, port, clock)? > 0
                || wait_readable(port.readable().as_slice(), Some(GRACE))?;
            if !more {
                break;
            }
        }
        Ok(())
    }

    fn poll(
        &self,
        analyser: &mut Analyser<'_>,
        port: &mut impl FrameReceiver,
        clock: &impl Clock,
    ) -> io::Result<usize> {
        let before = analyser.arrived();
        let frames = analyser.poll(port, clock)?;
        self.note(analyser.arrived() - before);
        Ok(frames)
    }

    fn note(&self, arrived: u64) {
        let before = self.arrived.fetch_add(arrived, Relaxed);
        if before + arrived >= self.expected {
            self.reached.raise();
        }
    }

    /// Waits after so many empty polls; also ends for no reason.
    fn wait(&self, idle: u32, port: &impl FrameReceiver, stop: &Stop) -> io::Result<()> {
        if idle <= POLLS {
            yield_now();
            return Ok(());
        }
        let (reached, stop) = (self.reached.as_fd(), stop.as_fd());
        match port.readable() {
            Some(readable) => wait_readable(&[readable, reached, stop], None)?,
            None => wait_readable(&[reached, stop], Some(PAUSE))?,
        };
        Ok(())
    }
}

/// One receiver alone would wait for frames that nobody counts any more.
struct EndAllOnPanic<'g>(&'g Goal);

impl Drop for EndAllOnPanic<'_> {
    fn drop(&mut self) {
        if panicking() {
            self.0.give_up();
        }
    }
}
