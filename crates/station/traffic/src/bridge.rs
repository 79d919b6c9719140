//! An impaired path: a bridge between two ports that treats frames as a model decides.
//!
//! ```text
//! port A ─► fate ─┬─► in order ──┬─► port B      and the same from B to A
//!                 └─► held back ─┘
//! ```
//!
//! One thread, no allocation per frame. A frame that leaves immediately is sent from the memory
//! that it arrived in; others wait in slots of one buffer. The model keeps the order of all frames
//! except those held back, so only these need a heap.
//!
//! A frame's time is when the kernel noted its arrival, so that waiting for this program counts as
//! added delay.

mod priority;
mod rest;
mod serve;
mod waiting;

pub use serve::serve_bridge;

use crate::histogram::histogram;
use hdrhistogram::Histogram;
use impair::{Counts, Delivery, Direction, Fate, Impaired, Model, Profile};
use port::{ClearPort, Stop, wait_readable};
use priority::Priority;
use rest::{Rest, Rests};
use std::io::{self, ErrorKind};
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::time::Duration;
use traffic_spec::Clock;
use waiting::Waiting;
use wire::checksum::portable;
use wire::segment::complete_checksum;
use wire::vnet::{VNET_HEADER_BYTES, VnetHeader};

/// Frames of one direction between two readings of the clock.
const BATCH_FRAMES: usize = 64;

/// A port of the bridge.
pub trait BridgePort: ClearPort {
    /// Lends one frame behind its virtio header, with the length of both, and its arrival time by
    /// the bridge's clock in nanoseconds. `None` without a timestamp: the frame counts as arriving
    /// now.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if no frame waits; anything else when the interface is gone.
    fn recv_timed(&mut self) -> io::Result<(&mut [u8], usize, Option<u64>)>;
}

impl BridgePort for port::LinkPort {
    #[inline]
    fn recv_timed(&mut self) -> io::Result<(&mut [u8], usize, Option<u64>)> {
        Self::recv_timed(self)
    }
}

/// A bridge with an impaired path in it.
#[derive(Debug)]
pub struct Bridge<P, C> {
    /// Towards station A, and towards B.
    ports: [P; 2],
    /// From A to B, and from B to A.
    ways: [HalfLink; 2],
    clock: C,
    rests: Rests,
}

/// One direction.
#[derive(Debug)]
struct HalfLink {
    model: Model,
    waiting: Waiting,
    counts: Counts,
    added: Histogram<u64>,
    /// When each frame that was handed to the port since its last flush was to leave.
    handed: Vec<u64>,
    /// When the frames came that a call of `carry` takes.
    came_ns: Option<RangeInclusive<u64>>,
}

impl<P: BridgePort, C: Clock> Bridge<P, C> {
    /// A bridge between two ports, that towards station A first, for frames of up to `frame_bytes`
    /// without FCS.
    pub fn new(profile: &Profile, frame_bytes: usize, ports: [P; 2], clock: C) -> Self {
        let way = |direction| HalfLink {
            model: Model::new(profile, direction),
            waiting: Waiting::new(VNET_HEADER_BYTES + frame_bytes),
            counts: Counts::default(),
            added: histogram(),
            // Frames that arrived, their copies, and frames that waited: nothing grows on the way.
            handed: Vec::with_capacity(3 * BATCH_FRAMES),
            came_ns: None,
        };
        Self {
            ports,
            ways: [Direction::AToB, Direction::BToA].map(way),
            clock,
            rests: Rests::default(),
        }
    }

    /// Carries frames until `stop` is raised, and returns the counts. The calling thread runs in
    /// real time, if permitted.
    ///
    /// # Errors
    /// When an interface is gone or down.
    pub fn run(mut self, stop: &Stop) -> io::Result<Impaired> {
        let mut priority = Priority::new();
        while !stop.is_raised() {
            // At each step: the kernel stops a thread that stays in real time for too long.
            priority.keep(self.clock.now_ns());
            if !self.step()? {
                self.wait(&mut priority, stop)?;
            }
        }
        Ok(self.end())
    }

    /// Takes a batch from each port and sends the due frames; returns whether there were any.
    ///
    /// # Errors
    /// When an interface is gone or down.
    pub fn step(&mut self) -> io::Result<bool> {
        let [a, b] = &mut self.ports;
        let [there, back] = &mut self.ways;
        // Not `||`: both directions take their turn.
        let worked = there.carry(a, b, &self.clock)? | back.carry(b, a, &self.clock)?;
        let came_ns = [there.came_ns.take(), back.came_ns.take()]
            .into_iter()
            .flatten();
        let both = |a: RangeInclusive<u64>, b: RangeInclusive<u64>| {
            *a.start().min(b.start())..=*a.end().max(b.end())
        };
        if let Some(came_ns) = came_ns.reduce(both) {
            self.rests.came(came_ns);
        }
        Ok(worked)
    }

    /// The counts. Frames that are still delayed are discarded.
    pub fn end(self) -> Impaired {
        let [there, back] = self.ways;
        let [from_a, from_b] = self.ports;
        Impaired {
            a_to_b: there.end(from_a.missed()),
            b_to_a: back.end(from_b.missed()),
        }
    }

    fn wait(&mut self, priority: &mut Priority, stop: &Stop) -> io::Result<()> {
        let due_ns = self.ways.iter().filter_map(|way| way.waiting.next_ns());
        let limit_ns = match self.rests.next(self.clock.now_ns(), due_ns.min()) {
            Rest::Awake => return Ok(()),
            Rest::Asleep(limit_ns) => limit_ns,
        };
        priority.before_sleep();
        let [a, b] = self.ports.each_ref().map(ClearPort::readable);
        let fds: arrayvec::ArrayVec<_, 3> =
            [a, b, Some(stop.as_fd())].into_iter().flatten().collect();
        wait_readable(&fds, limit_ns.map(Duration::from_nanos)).map(drop)
    }
}

impl HalfLink {
    /// Takes a batch from one port, and sends the due frames to the other. Returns whether there
    /// were any.
    fn carry<P: BridgePort>(
        &mut self,
        from: &mut P,
        to: &mut P,
        clock: &impl Clock,
    ) -> io::Result<bool> {
        let mut now_ns = clock.now_ns();
        let mut received = 0;
        while received < BATCH_FRAMES {
            match from.recv_timed() {
                Ok((frame, bytes, arrived_ns)) => {
                    let arrived_ns = arrived_ns.unwrap_or(now_ns);
                    // It came after the clock was read. To take it for older would let it leave too
                    // early; but no clock says that it is still to come.
                    if arrived_ns > now_ns {
                        now_ns = clock.now_ns();
                    }
                    let arrived_ns = arrived_ns.min(now_ns);
                    let first_ns = self
                        .came_ns
                        .as_ref()
                        .map_or(arrived_ns, |came_ns| *came_ns.start());
                    self.came_ns = Some(first_ns..=arrived_ns);
                    self.take(&mut frame[..bytes], (arrived_ns, now_ns), to);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            received += 1;
        }
        // Limited like the arrivals, so that neither direction starves the other.
        for _ in 0..BATCH_FRAMES {
            let Some(due_ns) = self
                .waiting
                .take_due(now_ns, |frame| Self::send(&mut self.counts, frame, to))
            else {
                break;
            };
            self.handed.push(due_ns);
        }
        if self.handed.is_empty() {
            return Ok(received > 0);
        }
        // Before the clock is read: the time until here is added delay.
        let lost = to.flush()?;
        self.counts.sent = self.counts.sent.saturating_sub(lost);
        self.counts.lost_by_tester += lost;
        let sent_ns = clock.now_ns();
        for due_ns in self.handed.drain(..) {
            // Longer ones count as the longest.
            self.added.saturating_record(sent_ns.saturating_sub(due_ns));
        }
        Ok(true)
    }

    /// Decides a frame's fate; `frame` begins with its virtio header.
    fn take<P: ClearPort>(
        &mut self,
        frame: &mut [u8],
        (arrived_ns, now_ns): (u64, u64),
        to: &mut P,
    ) {
        self.counts.received += 1;
        let delivery = match self.model.next(frame.len() - VNET_HEADER_BYTES, arrived_ns) {
            Fate::LostByModel => {
                self.counts.lost_by_model += 1;
                return;
            }
            Fate::LostByQueue => {
                self.counts.lost_by_queue += 1;
                return;
            }
            Fate::Delivered(delivery) => delivery,
        };
        let Delivery {
            at_ns,
            is_doubled,
            is_held_back,
            flip,
        } = delivery;
        self.counts.reordered += u64::from(is_held_back);
        self.counts.duplicated += u64::from(is_doubled);
        if let Some(bit) = flip {
            self.counts.corrupted += 1;
            // Before it is doubled: copies of a frame are equal.
            flip_bit(frame, bit);
        }
        for _ in 0..=u8::from(is_doubled) {
            if at_ns <= now_ns && !is_held_back && self.waiting.is_in_order_empty() {
                Self::send(&mut self.counts, frame, to);
                self.handed.push(at_ns);
            // A frame without room would have waited: its loss is not the model's.
            } else if !self.waiting.put(frame, at_ns, is_held_back) {
                self.counts.lost_by_tester += 1;
            }
        }
    }

    /// Hands a frame to the port.
    fn send<P: ClearPort>(counts: &mut Counts, frame: &[u8], to: &mut P) {
        let sent = frame.split_first_chunk().and_then(|(header, frame)| {
            let vnet = VnetHeader::parse(header)?;
            to.send(&vnet, frame, &[]).ok()
        });
        match sent {
            Some(()) => counts.sent += 1,
            None => counts.lost_by_tester += 1,
        }
    }

    /// The counts, with the frames that the receiving port lost.
    fn end(self, missed: u64) -> Counts {
        let quantile = |share| self.added.value_at_quantile(share);
        Counts {
            // They arrived at the interface, and were lost before this program saw them.
            received: self.counts.received + missed,
            lost_by_tester: self.counts.lost_by_tester + missed,
            waiting: self.waiting.len() as u64,
            added_ns_p50: quantile(0.5),
            added_ns_p99: quantile(0.99),
            added_ns_max: self.added.max(),
            ..self.counts
        }
    }
}

/// Flips a bit of the frame behind the virtio header. An incomplete checksum is completed first:
/// otherwise the next device would compute it over the flipped bit, which nobody would notice.
fn flip_bit(frame: &mut [u8], bit: usize) {
    let Some((header, frame)) = frame.split_first_chunk_mut::<VNET_HEADER_BYTES>() else {
        return;
    };
    if let Some(vnet) = VnetHeader::parse(header)
        && complete_checksum(&vnet, frame, portable).is_ok()
    {
        *header = VnetHeader::PLAIN.to_bytes();
    }
    if let Some(byte) = frame.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
}
