//! The analyser: checks and counts received frames.

use crate::error::TrafficError;
use crate::flows::expected_ports;
use crate::keys::{KeyUse, Keys, open_keys};
use crate::open::{Opener, Refusal};
use crate::parse::{datagram, ip_packet};
use crate::sequences::{Arrival, Sequences};
use crate::tally::Tally;
use port::{FrameReceiver, Stop, wait_readable};
use std::io;
use std::iter::once;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::yield_now;
use std::time::{Duration, Instant};
use traffic_spec::{Clock, Received, SenderClock};
use wire::mix::{Contents, ETHERNET_HEADER_BYTES, FCS_BYTES};
use wire::stamp::Stamp;

/// Maximum number of frames that share one reading of the clock.
const FRAMES_PER_CLOCK: usize = 32;
/// Empty polls before a receiver waits: frames that arrive within about a microsecond are cheaper
/// to poll for. Each poll yields the core, which a DUT may share.
const POLLS: u32 = 8;
/// Maximum interval between a receiver's looks at its port, in nanoseconds: a longer pause is the
/// receiver's fault.
const LOOK_NS: u64 = 5_000_000;
/// Sleep between polls of a port that does not support waiting.
const PAUSE: Duration = Duration::from_millis(1);
/// When no frame of the trial has arrived for this long since the last expected one, no copies
/// follow. Every trial of a search waits this long.
const COPY_GRACE: Duration = Duration::from_millis(10);
/// A port without frames for this long is quiet, and has delivered everything from before the stop:
/// the kernel holds frames back for a millisecond, or up to 20 with slow timers, until a block of
/// them is full. An overloaded DUT then has no frames of this trial left that could disturb the
/// next.
const STOP_GRACE: Duration = Duration::from_millis(20);
/// Longest wait for a port that never becomes quiet. RFC 2544 §23 gives residual frames two
/// seconds; programs with unbounded queues have taken six.
const RESIDUAL_LIMIT: Duration = Duration::from_secs(10);

/// Checks and counts frames; never waits.
pub struct Analyser<'k> {
    sequences: Sequences,
    opener: Option<Opener<'k>>,
    tally: Tally,
    tag: u16,
    contents: Contents,
    ports: RangeInclusive<u16>,
    flows: u64,
    /// Number of frames in the sender's first part.
    first_frames: u64,
    sender_clock: Option<SenderClock>,
}

impl<'k> Analyser<'k> {
    /// An analyser without counts. `keys` belong to `receive.peer`, if set.
    ///
    /// # Errors
    /// [`TrafficError::Flows`].
    ///
    /// # Panics
    /// When `receive` has a peer and there are no keys.
    pub fn new(
        receive: &traffic_spec::Receive,
        tag: u16,
        keys: Option<&'k Keys>,
    ) -> Result<Self, TrafficError> {
        // The counts have a place for each flow, and a stamp has 16 bits for its number.
        if receive.frames.flows == 0 || receive.frames.flows > u32::from(u16::MAX) {
            return Err(TrafficError::Flows {
                flows: receive.frames.flows,
                tunnels: receive.frames.tunnels,
            });
        }
        let opener = receive.peer.as_ref().map(|peer| {
            let keys = keys.expect("a receiver of sealed packets has keys");
            Opener::new(peer, keys)
        });
        Ok(Self {
            sequences: Sequences::new(receive.frames.flows),
            opener,
            tally: Tally::new(receive),
            tag,
            contents: receive.frames.contents,
            ports: expected_ports(receive),
            flows: u64::from(receive.frames.flows),
            first_frames: receive.first_frames.unwrap_or(u64::MAX),
            sender_clock: receive.sender_clock,
        })
    }

    /// How far a frame may be behind the latest of its flow, in frames, and still be distinguished
    /// from a duplicate.
    #[must_use]
    pub const fn window(&self) -> u64 {
        self.sequences.window()
    }

    /// Processes up to one batch of frames from the port; returns their number.
    ///
    /// # Errors
    /// When the port is gone.
    #[inline]
    pub fn poll(&mut self, port: &mut impl FrameReceiver, clock: &impl Clock) -> io::Result<usize> {
        self.poll_those(port, clock, |_| true)
    }

    /// As [`poll`](Self::poll), but skips frames that `counts` rejects by the port's timestamp.
    #[inline]
    fn poll_those(
        &mut self,
        port: &mut impl FrameReceiver,
        clock: &impl Clock,
        mut counts: impl FnMut(Option<u64>) -> bool,
    ) -> io::Result<usize> {
        if let Some(opener) = &mut self.opener {
            // Resets the number of forged packets that may cost a derivation of keys.
            opener.begin_batch();
        }
        let (mut frames, mut now_ns) = (0, 0);
        let result = port.recv_timed(|frame, noted_ns| {
            // Not parsed: only their number is reported.
            if !counts(noted_ns) {
                self.tally.counts.after_end += 1;
                return;
            }
            if noted_ns.is_none() && frames % FRAMES_PER_CLOCK == 0 {
                now_ns = clock.now_ns();
            }
            frames += 1;
            self.take(frame, noted_ns.unwrap_or(now_ns));
        });
        match result {
            // An empty port is no error of the trial.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            result => result,
        }
    }

    /// Counts one frame received at `now_ns`.
    #[inline]
    pub fn take(&mut self, frame: &mut [u8], now_ns: u64) {
        let Some(packet) = ip_packet(frame) else {
            self.tally.counts.foreign += 1;
            return;
        };
        let Some(opener) = &mut self.opener else {
            return self.check(packet, now_ns);
        };
        // A packet outside of the tunnels, as IPv6 neighbour discovery.
        let Some((lane, sealed)) = opener.find(packet) else {
            self.tally.counts.foreign += 1;
            return;
        };
        match opener.open(lane, &mut packet[sealed]) {
            Ok(inner) => self.check(inner, now_ns),
            // Handshakes and keepalives are not test traffic.
            Err(Refusal::KeyExchange | Refusal::Keepalive) if opener.is_beside_key_exchange() => {}
            Err(refusal) => self.tally.refused.add(refusal),
        }
    }

    /// Counts one IP packet of the clear side.
    #[inline]
    fn check(&mut self, packet: &[u8], now_ns: u64) {
        let tally = &mut self.tally;
        // The kernel of a host also sends, such as multicast reports; they have other ports.
        let Some(found) = datagram(packet).filter(|found| self.ports.contains(&found.port)) else {
            tally.counts.foreign += 1;
            return;
        };
        // A datagram with contradictory lengths has no payload, and counts as corrupted below.
        let payload = found.payload.and_then(|range| packet.get(range));
        let read = match self.contents {
            Contents::Fixed => Stamp::read,
            Contents::Random => Stamp::read_random,
        };
        let Some(stamp) = payload.and_then(read) else {
            tally.counts.corrupted += 1;
            return;
        };
        // A frame of an earlier trial that a queue has held back.
        if stamp.tag != self.tag {
            tally.counts.stale += 1;
            return;
        }
        // Only 32 bits are in the stamp; the rest follows from the frames before it.
        let Some(sequence) = self.sequences.infer(stamp.flow, stamp.sequence) else {
            tally.counts.stale += 1;
            return;
        };
        // On two hosts, arrival times are converted to the clock of the sender, which the stamp
        // has.
        let now_ns = match &self.sender_clock {
            None => now_ns,
            Some(clock) => clock.at(now_ns),
        };
        let age_ns = stamp.age_ns(now_ns);
        // From the age, as the stamp has only the low bits of the time.
        let intended_ns = now_ns.saturating_add_signed(-age_ns);
        match self.sequences.note(stamp.flow, sequence) {
            Arrival::Leading { gap } => {
                if gap {
                    tally.counts.last_loss_ns = tally.counts.last_loss_ns.max(intended_ns);
                }
            }
            Arrival::Reordered { extent } => {
                tally.counts.reordered += 1;
                tally.counts.reordering_extent_max = tally.counts.reordering_extent_max.max(extent);
            }
            Arrival::Duplicate => {
                tally.counts.duplicated += 1;
                return;
            }
            Arrival::TooLate => {
                tally.counts.too_late += 1;
                return;
            }
        }
        // Flows take turns, so this is the frame's number in the whole schedule.
        let number = sequence * self.flows + u64::from(stamp.flow);
        tally.counts.then_frames += u64::from(number >= self.first_frames);
        // Computed, as the frame of a tunnel has no Ethernet header of the clear side.
        let frame_bytes = ETHERNET_HEADER_BYTES as u16 + found.ip_bytes + FCS_BYTES;
        tally.intact((stamp.flow, sequence), frame_bytes, now_ns, intended_ns);
        tally.delayed(number, age_ns);
    }

    /// Number of distinct intact frames so far, which determines the end of a trial.
    #[inline]
    #[must_use]
    pub const fn arrived(&self) -> u64 {
        self.tally.counts.frames
    }

    /// The counts so far.
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

/// Receives on one thread until all expected frames have arrived intact and no copies have followed
/// for 10 ms, or until `stop` is raised. Frames that reached the port before that and still wait
/// there are counted. Later ones, until the port is quiet, are counted separately
/// ([`Received::after_end`]).
///
/// # Errors
/// [`TrafficError`].
pub fn receive(
    port: &mut impl FrameReceiver,
    receive: &traffic_spec::Receive,
    tag: u16,
    clock: &impl Clock,
    stop: &Stop,
) -> Result<Received, TrafficError> {
    let keys = open_keys(receive.peer.as_ref(), KeyUse::Open)?;
    let analyser = Analyser::new(receive, tag, keys.as_ref())?;
    let goal = Goal::new(receive.expected)?;
    let reached = goal.run_to_goal(analyser, port, clock, stop, Analyser::poll);
    let (tally, epoch) = reached.map_err(TrafficError::PortGone)?;
    if let Some(keys) = &keys {
        // After the last frame: it writes to the disk.
        keys.note_peer_epoch(epoch)?;
    }
    Ok(tally.received())
}

/// The shared end condition of several receivers.
pub(crate) struct Goal {
    expected: u64,
    arrived: AtomicU64,
    /// Raised by the thread that receives the last expected frame, or that gives up.
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

    /// Ends all receivers; their counts are no longer needed.
    pub(crate) fn give_up(&self) {
        self.end.raise();
    }

    /// Runs one analyser until the goal is reached and no copies arrive, `stop` is raised, or
    /// another analyser has failed. `poll` processes up to one batch of frames, and returns their
    /// number.
    pub(crate) fn run_to_goal<'k, P: FrameReceiver, C: Clock>(
        &self,
        mut analyser: Analyser<'k>,
        port: &mut P,
        clock: &C,
        stop: &Stop,
        poll: impl FnMut(&mut Analyser<'k>, &mut P, &C) -> io::Result<usize>,
    ) -> io::Result<(Tally, u32)> {
        self.await_end(&mut analyser, port, clock, stop, poll)?;
        if self.is_reached() {
            count_copies(&mut analyser, port, clock, stop)?;
        }
        if stop.is_raised() {
            // Frames that arrived before the stop are in the port's ring: they count as received.
            count_waiting(&mut analyser, port, clock)?;
        }
        Ok(analyser.finish())
    }

    fn await_end<'k, P: FrameReceiver, C: Clock>(
        &self,
        analyser: &mut Analyser<'k>,
        port: &mut P,
        clock: &C,
        stop: &Stop,
        mut poll: impl FnMut(&mut Analyser<'k>, &mut P, &C) -> io::Result<usize>,
    ) -> io::Result<()> {
        // A trial that expects no frames has reached its goal already.
        self.note(0);
        let mut idle = 0;
        let mut looked: Option<u64> = None;
        while !self.end.is_raised() && !stop.is_raised() {
            let now_ns = clock.now_ns();
            if let Some(looked_ns) = looked {
                // Only the part of a wait beyond the requested time counts.
                let waited_ns = if idle > POLLS { LOOK_NS } else { 0 };
                let stood_ns = now_ns.saturating_sub(looked_ns + waited_ns);
                let most_ns = &mut analyser.tally.counts.stood_still_ns_max;
                *most_ns = (*most_ns).max(stood_ns);
            }
            let before = analyser.arrived();
            let frames = poll(analyser, port, clock)?;
            self.note(analyser.arrived() - before);
            // Before the first frame there is nothing to miss.
            looked = (analyser.arrived() > 0).then_some(now_ns);
            // Waiting costs a system call and a wake-up, which a burst of frames would pay for each
            // frame.
            idle = if frames > 0 { 0 } else { idle + 1 };
            if idle > POLLS {
                let limit = Duration::from_nanos(LOOK_NS);
                wait_for(port, &[self.end.as_fd(), stop.as_fd()], Some(limit))?;
            } else if idle > 0 {
                yield_now();
            }
        }
        Ok(())
    }

    fn note(&self, arrived: u64) {
        // Relaxed: only the sum matters. Counts are read after the threads are joined.
        self.arrived.fetch_add(arrived, Relaxed);
        if self.is_reached() {
            self.end.raise();
        }
    }

    fn is_reached(&self) -> bool {
        self.arrived.load(Relaxed) >= self.expected
    }
}

/// Processes frames after the last expected one, mostly copies, until no frame of the trial has
/// arrived for a while. Foreign frames may continue for ever.
fn count_copies(
    analyser: &mut Analyser<'_>,
    port: &mut impl FrameReceiver,
    clock: &impl Clock,
    stop: &Stop,
) -> io::Result<()> {
    let mut quiet_since = Instant::now();
    while !stop.is_raised() {
        // Not the number of frames of the port, which foreign ones would keep above zero.
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

/// Counts the frames that had reached the port when the stop flag was seen, then counts later ones
/// separately until the port is quiet. Without timestamps, the first group is every frame that the
/// port returns before it is empty.
fn count_waiting(
    analyser: &mut Analyser<'_>,
    port: &mut impl FrameReceiver,
    clock: &impl Clock,
) -> io::Result<()> {
    let (stop_ns, stopped) = (clock.now_ns(), Instant::now());
    let (mut quiet_since, mut was_empty) = (stopped, false);
    loop {
        // A port that is never empty returns frames that arrived after the stop.
        let untimed_count = !was_empty && stopped.elapsed() < STOP_GRACE;
        let mut any = false;
        let frames = analyser.poll_those(port, clock, |noted_ns| {
            any = true;
            noted_ns.map_or(untimed_count, |noted_ns| noted_ns <= stop_ns)
        })?;
        if any {
            quiet_since = Instant::now();
        }
        // Each frame begins the time anew, but not beyond the limit.
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

/// Waits until the port is readable, one of `ends` is raised, or `limit` has passed; may also
/// return spuriously.
pub(crate) fn wait_for(
    port: &impl FrameReceiver,
    ends: &[BorrowedFd<'_>],
    limit: Option<Duration>,
) -> io::Result<()> {
    match port.readable() {
        Some(readable) => {
            // A few descriptors, and only while the port is idle: the allocation is off the path of
            // frames.
            let all: Vec<_> = once(readable).chain(ends.iter().copied()).collect();
            wait_readable(&all, limit)?
        }
        None => wait_readable(ends, Some(limit.map_or(PAUSE, |limit| limit.min(PAUSE))))?,
    };
    Ok(())
}
