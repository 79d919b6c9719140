//! The reflector: sends test frames back, so that their sender times round trips by one clock.
//!
//! 1. A batch is received, and the analyser counts it ([`Analyser::take`]).
//! 2. Each frame that is intact, of this trial and new gets its ends exchanged in place
//!    ([`exchange_ends`]), and is copied into the batch that goes back.
//! 3. The batch leaves immediately, and the time that each frame spent here is counted.
//!
//! Nothing waits for a full batch, and nothing is allocated per frame.

use crate::analyser::{Analyser, Goal};
use crate::error::TrafficError;
use crate::histogram::{buckets, histogram};
use crate::parse::{datagram, ip_packet};
use crate::tally::Tally;
use crate::threads::on_threads;
use hdrhistogram::Histogram;
use port::{FRAME_SLOT_BYTES, FrameReceiver, FrameSender, Stop};
use std::io;
use std::ops::Range;
use std::thread::yield_now;
use traffic_spec::{Clock, Monotonic, Receive, Received, Reflected, Sent};
use wire::mix::FCS_BYTES;
use wire::overhead::UDP_HEADER_BYTES;

/// Frames sent back by one call of the port.
const BATCH: usize = 64;
/// Length of both MAC addresses, and of both UDP ports.
const MAC_ADDRESSES_BYTES: usize = 12;
const UDP_PORTS_BYTES: usize = 4;
/// The position of both addresses in an IP header.
const IPV4_ADDRESSES: Range<usize> = 12..20;
const IPV6_ADDRESSES: Range<usize> = 8..40;

/// Exchanges the MAC addresses, the IP addresses and the UDP ports of a frame in place. Its
/// checksums stay right: they are sums, and the order of words does not matter (RFC 1071).
///
/// Returns whether it did: a frame that is not one whole UDP datagram over IPv4 or IPv6, behind at
/// most one VLAN tag, is left as it is.
#[inline]
#[must_use]
pub fn exchange_ends(frame: &mut [u8]) -> bool {
    let Some(packet) = ip_packet(frame) else {
        return false;
    };
    let Some(payload) = datagram(packet).and_then(|found| found.payload) else {
        return false;
    };
    let udp = payload.start - UDP_HEADER_BYTES;
    packet[udp..udp + UDP_PORTS_BYTES].rotate_left(UDP_PORTS_BYTES / 2);
    let addresses = match packet[0] >> 4 {
        4 => IPV4_ADDRESSES,
        _ => IPV6_ADDRESSES,
    };
    // Source and target are one behind the other, so half a rotation exchanges them.
    let half = addresses.len() / 2;
    packet[addresses].rotate_left(half);
    frame[..MAC_ADDRESSES_BYTES].rotate_left(MAC_ADDRESSES_BYTES / 2);
    true
}

/// Frames that go back together, one behind the other.
struct Batch {
    bytes: Box<[u8]>,
    /// End of each frame in `bytes`, and when it arrived.
    frames: Vec<(usize, u64)>,
}

impl Batch {
    fn new() -> Self {
        Self {
            bytes: vec![0; BATCH * FRAME_SLOT_BYTES].into_boxed_slice(),
            frames: Vec::with_capacity(BATCH),
        }
    }

    fn is_full(&self) -> bool {
        self.frames.len() == BATCH
    }

    fn start(&self, index: usize) -> usize {
        match index.checked_sub(1) {
            Some(before) => self.frames[before].0,
            None => 0,
        }
    }

    /// Appends a frame; there is room.
    fn push(&mut self, frame: &[u8], came_ns: u64) {
        let start = self.start(self.frames.len());
        let end = start + frame.len();
        self.bytes[start..end].copy_from_slice(frame);
        self.frames.push((end, came_ns));
    }

    fn frame(&self, index: usize) -> &[u8] {
        &self.bytes[self.start(index)..self.frames[index].0]
    }
}

/// One thread's side that sends.
struct Return<'p, S> {
    port: &'p mut S,
    batch: Batch,
    sent: Sent,
    residence: Histogram<u64>,
    is_from_arrival: bool,
}

impl<'p, S: FrameSender> Return<'p, S> {
    fn new(port: &'p mut S) -> Self {
        Self {
            port,
            batch: Batch::new(),
            sent: Sent::default(),
            residence: histogram(),
            is_from_arrival: true,
        }
    }

    /// Counts up to one batch of received frames, and sends the new intact ones back; returns the
    /// number of received frames.
    fn poll(
        &mut self,
        analyser: &mut Analyser<'_>,
        port: &mut impl FrameReceiver,
        clock: &impl Clock,
        stop: &Stop,
    ) -> io::Result<usize> {
        let mut gone = Ok(());
        let result = port.recv_timed(|frame, noted_ns| {
            // For each frame, as the residence time of each is counted.
            let came_ns = noted_ns.unwrap_or_else(|| clock.now_ns());
            let before = analyser.arrived();
            analyser.take(frame, came_ns);
            let is_new = analyser.arrived() > before;
            // A copy that is sent back would be a duplicate of the path for the sender.
            if !is_new || !exchange_ends(frame) {
                return;
            }
            self.is_from_arrival &= noted_ns.is_some();
            if self.batch.is_full() && gone.is_ok() {
                gone = self.send(clock, stop);
            }
            if gone.is_ok() {
                self.batch.push(frame, came_ns);
            }
        });
        // Not within the closure, which cannot return an error.
        gone?;
        self.send(clock, stop)?;
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            result => result,
        }
    }

    /// Sends the batch, less only when `stop` is raised, and empties it.
    fn send(&mut self, clock: &impl Clock, stop: &Stop) -> io::Result<()> {
        let Self { port, batch, .. } = self;
        let all = batch.frames.len();
        self.sent.intended += all as u64;
        let mut next = 0;
        while next < all {
            let filled = port.send(all - next, |slot| {
                let frame = batch.frame(next);
                slot[..frame.len()].copy_from_slice(frame);
                next += 1;
                self.sent.frame_bytes += (frame.len() + usize::from(FCS_BYTES)) as u64;
                frame.len()
            })?;
            self.sent.frames += filled as u64;
            if filled == 0 {
                // The rest stays intended and not sent, as with a generator.
                if stop.is_raised() {
                    break;
                }
                yield_now();
            }
        }
        if next > 0 {
            let now_ns = clock.now_ns();
            for (_, came_ns) in &batch.frames[..next] {
                let residence_ns = now_ns.saturating_sub(*came_ns).max(1);
                self.residence.saturating_record(residence_ns);
            }
        }
        batch.frames.clear();
        Ok(())
    }
}

/// Runs each analyser on its pair of ports and thread, as [`receive_all`](crate::receive_all) does,
/// and sends back each intact new frame of the trial ([`traffic_spec::Reflect`]). Returns counts
/// without latencies, and the counts of frames sent back.
///
/// # Errors
/// [`TrafficError::PortGone`].
pub fn reflect_all<R: FrameReceiver, S: FrameSender>(
    receive: &Receive,
    analysers: Vec<Analyser<'_>>,
    (receivers, senders): (&mut [R], &mut [S]),
    stop: &Stop,
) -> Result<(Received, Sent, Reflected), TrafficError> {
    let goal = Goal::new(receive.expected)?;
    let clock = Monotonic::new();
    let work = |(analyser, (receiver, sender)): (Analyser<'_>, (&mut R, &mut S))| {
        let mut back = Return::new(sender);
        let poll = |analyser: &mut Analyser<'_>, port: &mut R, clock: &Monotonic| {
            back.poll(analyser, port, clock, stop)
        };
        let (tally, _) = goal.run_to_goal(analyser, receiver, &clock, stop, poll)?;
        back.port.flush()?;
        Ok((tally, back.sent, back.residence, back.is_from_arrival))
    };
    let tasks = analysers.into_iter().zip(receivers.iter_mut().zip(senders));
    let (mut whole, mut sent) = (Tally::new(receive), Sent::default());
    let (mut residence, mut is_from_arrival) = (histogram(), true);
    for (tally, own, times, noted) in on_threads("reflect", tasks, work, || goal.give_up())? {
        whole.merge(tally);
        sent = sent.and(own);
        residence
            .add(&times)
            .expect("both histograms have the same bounds");
        is_from_arrival &= noted;
    }
    let received = Received {
        latency: Vec::new(),
        delays: Vec::new(),
        ..whole.received()
    };
    // Each frame leaves right after it came, so both took the same time.
    sent.elapsed_ns = received.elapsed_ns;
    let reflected = Reflected {
        residence: buckets(&residence),
        is_from_arrival,
    };
    Ok((received, sent, reflected))
}
