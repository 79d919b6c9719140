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
use std::iter::once;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::yield_now;
use std::time::{Duration, Instant};
use wire::mix::{ETHERNET_HEADER_BYTES, FCS_BYTES};
use wire::stamp::Stamp;

/// Frames that share one reading of the clock, at most.
const FRAMES_PER_CLOCK: usize = 32;
/// Empty polls before a receiver waits: what comes within a microsecond or so is cheaper to poll for. Each lets
/// others run, for a DUT may share the core.
const POLLS: u32 = 8;
/// How long a port that cannot be waited for is left alone.
const PAUSE: Duration = Duration::from_millis(1);
/// When nothing more of the trial has come for so long since the last frame that was expected, no copy of one
/// follows. Every trial of a search waits for it.
const COPY_GRACE: Duration = Duration::from_millis(10);
/// A port that has shown nothing for so long is quiet: it has nothing left of what came before the stop, for the kernel
/// holds frames back for a millisecond, and up to 20 by slow timers, until a block of them is full; and a DUT that was
/// overloaded has nothing left of this trial, which would come in the way of the next.
const STOP_GRACE: Duration = Duration::from_millis(20);
/// A port that is never quiet is left after this time. RFC 2544 §23 gives residual frames two seconds; programs that queue
/// without bound have been seen to take six.
const RESIDUAL_LIMIT: Duration = Duration::from_secs(10);

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
            tally: Tally::new(receive),
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
        self.poll_those(port, clock, |_| true)
    }

    /// As [`poll`](Self::poll), but leaves out frames that `counts` refuses, by the time that the port noted.
    #[inline]
    fn poll_those(
        &mut self,
        port: &mut impl FrameReceiver,
        clock: &impl Clock,
        mut counts: impl FnMut(Option<u64>) -> bool,
    ) -> io::Result<usize> {
        if let Some(opener) = &mut self.opener {
            opener.begin_batch();
        }
        let (mut frames, mut now_ns) = (0, 0);
        let result = port.recv_timed(|frame, noted_ns| {
            if !counts(noted_ns) {
                self.tally.after_end += 1;
                return;
            }
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
        let age_ns = stamp.age_ns(now_ns);
        let intended_ns = now_ns.saturating_add_signed(-age_ns);
        match self.sequences.note(stamp.flow, sequence) {
            Arrival::Leading { gap } => {
                if gap {
                    tally.last_loss_ns = tally.last_loss_ns.max(intended_ns);
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
        tally.intact(frame_bytes, now_ns, intended_ns);
    }

    /// Distinct intact frames so far: the end of a trial is told by them.
    #[inline]
    #[must_use]
    pub const fn arrived(&self) -> u64 {
        self.tally.frames
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

/// Receives by one thread until all expected frames have come intact, and then until no copy of one has come for
/// 10 ms; or until `stop` is raised. What came to the port before that and still waits there counts. What comes
/// later, until the port is quiet, is counted apart ([`Received::after_end`]).
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
    /// Raised by whoever takes the last one, or gives up.
    end: Stop,
}

impl Goal {
    pub(crate) fn new(expected: Option<u64>) -> Result<Self, TrafficError> {
        Ok(Self {
            expected: expected.unwrap_or(u64::MAX),
            arrived: AtomicU64::new(0),
            end: Stop::new().map_err(TrafficError::Resources)?,
        })
    }

    /// Ends all receivers, whose counts nobody wants any more.
    pub(crate) fn give_up(&self) {
        self.end.raise();
    }

    /// Runs one analyser until the goal is reached and no copies come, `stop` is raised, or another one has failed.
    pub(crate) fn pursue(
        &self,
        mut analyser: Analyser<'_>,
        port: &mut impl FrameReceiver,
        clock: &impl Clock,
        stop: &Stop,
    ) -> io::Result<(Tally, u32)> {
        self.await_end(&mut analyser, port, clock, stop)?;
        if self.is_reached() {
            take_copies(&mut analyser, port, clock, stop)?;
        }
        if stop.is_raised() {
            take_waiting(&mut analyser, port, clock)?;
        }
        Ok(analyser.finish())
    }

    fn await_end(
        &self,
        analyser: &mut Analyser<'_>,
        port: &mut impl FrameReceiver,
        clock: &impl Clock,
        stop: &Stop,
    ) -> io::Result<()> {
        self.note(0);
        let mut idle = 0;
        while !self.end.is_raised() && !stop.is_raised() {
            let before = analyser.arrived();
            let frames = analyser.poll(port, clock)?;
            self.note(analyser.arrived() - before);
            idle = if frames > 0 { 0 } else { idle + 1 };
            if idle > POLLS {
                wait_for(port, &[self.end.as_fd(), stop.as_fd()], None)?;
            } else if idle > 0 {
                yield_now();
            }
        }
        Ok(())
    }

    fn note(&self, arrived: u64) {
        self.arrived.fetch_add(arrived, Relaxed);
        if self.is_reached() {
            self.end.raise();
        }
    }

    fn is_reached(&self) -> bool {
        self.arrived.load(Relaxed) >= self.expected
    }
}

/// Takes what follows the last expected frame, until nothing of the trial has come for a while: copies, for
/// the most part. Foreign frames may go on for ever.
fn take_copies(
    analyser: &mut Analyser<'_>,
    port: &mut impl FrameReceiver,
    clock: &impl Clock,
    stop: &Stop,
) -> io::Result<()> {
    let mut quiet_since = Instant::now();
    while !stop.is_raised() {
        let before = analyser.tally.of_this_trial();
        let frames = analyser.poll(port, clock)?;
        if analyser.tally.of_this_trial() > before {
            quiet_since = Instant::now();
        }
        let left = COPY_GRACE.saturating_sub(quiet_since.elapsed());
        if left.is_zero() {
            break;
        }
        if frames == 0 {
            wait_for(port, &[stop.as_fd()], Some(left))?;
        }
    }
    Ok(())
}

/// Takes what had come to the port when the stop flag was seen, and counts apart what comes then until the port is quiet.
/// Where the port notes no times, the first is what it hands out until it is empty.
fn take_waiting(
    analyser: &mut Analyser<'_>,
    port: &mut impl FrameReceiver,
    clock: &impl Clock,
) -> io::Result<()> {
    let (stop_ns, stopped) = (clock.now_ns(), Instant::now());
    let (mut quiet_since, mut was_empty) = (stopped, false);
    loop {
        // A port that is never empty gives what has come since.
        let untimed_count = !was_empty && stopped.elapsed() < STOP_GRACE;
        let mut any = false;
        let frames = analyser.poll_those(port, clock, |noted_ns| {
            any = true;
            noted_ns.map_or(untimed_count, |noted_ns| noted_ns <= stop_ns)
        })?;
        if any {
            quiet_since = Instant::now();
        }
        let quiet_for = STOP_GRACE.saturating_sub(quiet_since.elapsed());
        let left = quiet_for.min(RESIDUAL_LIMIT.saturating_sub(stopped.elapsed()));
        if left.is_zero() {
            return Ok(());
        }
        if frames == 0 {
            was_empty = true;
            wait_for(port, &[], Some(left))?;
        }
    }
}

/// Waits until the port has something, one of `ends` is up, or `limit` has passed; also ends for no reason.
pub(crate) fn wait_for(
    port: &impl FrameReceiver,
    ends: &[BorrowedFd<'_>],
    limit: Option<Duration>,
) -> io::Result<()> {
    match port.readable() {
        Some(readable) => {
            let all: Vec<_> = once(readable).chain(ends.iter().copied()).collect();
            wait_readable(&all, limit)?
        }
        None => wait_readable(ends, Some(limit.map_or(PAUSE, |limit| limit.min(PAUSE))))?,
    };
    Ok(())
}
