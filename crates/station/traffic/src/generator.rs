//! The generator: sends frames to a port on schedule.

use crate::error::TrafficError;
use crate::flows::FlowCursor;
use crate::frames::{FrameSize, Headers};
use crate::keys::{KeyUse, Keys, open_keys};
use crate::seal::Sealer;
use port::{FrameSender, Stop};
use std::io;
use std::thread::yield_now;
use traffic_spec::{Clock, Load, Part, Schedule, Sent};
use wire::mix::MixOrder;
use wire::stamp::{Stamp, payload_offset};

/// Frames per call of the port.
const BATCH: usize = 64;
/// A frame that leaves later than this after its intended time is counted as late. A sender that
/// keeps its rate catches up with no more than this: wake-ups of a few hundred microseconds are
/// usual, and shift no load.
const LATE_NS: u64 = 1_000_000;

/// The schedule of frames.
#[derive(Debug, Clone, Copy)]
enum Pace {
    Scheduled(Schedule),
    /// As fast as possible until this time.
    Unpaced {
        end_ns: u64,
    },
}

/// The result of [`Generator::step`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Frames have left.
    Sent,
    /// Frames are due, and the port has no room.
    Full,
    /// Nothing is due before this time, in nanoseconds.
    Early(u64),
    /// All frames have been handed to the port, which may still hold them.
    Done,
}

/// Makes the frames of one part of a [`traffic_spec::Send`]; never waits.
pub struct Generator {
    frames: Frames,
    pace: Pace,
    /// The second part.
    then: Option<Schedule>,
    /// Frames sent before the second part, once it has begun.
    first_frames: Option<u64>,
    start_ns: u64,
    lateness: Lateness,
    sent: Sent,
}

/// The treatment of frames that could not leave in time.
#[derive(Debug, Clone, Copy)]
struct Lateness {
    /// [`traffic_spec::Send::keep_rate`].
    keep_rate: bool,
    /// How far the schedule has moved since a frame last left.
    moved_ns: u64,
}

impl Lateness {
    /// Moves a schedule so that no more than [`LATE_NS`] of it is due.
    #[inline]
    const fn limit(&mut self, schedule: &mut Schedule, late_ns: u64) {
        if self.keep_rate && late_ns > LATE_NS {
            // The rest of the schedule moves with it, so that the rate is kept after a stall.
            schedule.delay(late_ns - LATE_NS);
            self.moved_ns += late_ns - LATE_NS;
        }
    }
}

impl Generator {
    /// A generator that begins at time 0, unless [`begin_at`](Self::begin_at) sets another. `keys`
    /// belong to `send.peer`, if set.
    ///
    /// # Errors
    /// [`TrafficError`] when `send` requests impossible frames.
    ///
    /// # Panics
    /// When `send` has a peer and there are no keys, or parts do not divide its lanes
    /// ([`sender_threads`](crate::sender_threads)): nothing is sent in clear, and no sequence
    /// number twice.
    pub fn new(
        send: &traffic_spec::Send,
        tag: u16,
        part: Part,
        keys: Option<&Keys>,
    ) -> Result<Self, TrafficError> {
        let frames = Frames::new(send, tag, part, keys)?;
        let flows = send.frames.flows;
        let mut load = Load {
            frames_per_s: send.frames_per_s.unwrap_or(0),
            duration_ns: send.duration_ns,
            burst_ns: send.burst_ns,
            start_ns: 0,
            first_frame: 0,
        };
        let mut intended = 0;
        let end_ns = send.duration_ns;
        let pace = if send.frames_per_s.is_some() {
            let schedule = Schedule::new(&load, flows, part);
            intended += schedule.left();
            Pace::Scheduled(schedule)
        } else {
            Pace::Unpaced { end_ns }
        };
        let then = send.then.map(|then| {
            // The second part continues the numbers of the first, without a gap.
            load = Load {
                frames_per_s: then.frames_per_s,
                duration_ns: then.duration_ns,
                burst_ns: send.burst_ns,
                start_ns: end_ns,
                first_frame: load.frames(),
            };
            let schedule = Schedule::new(&load, flows, part);
            intended += schedule.left();
            schedule
        });
        Ok(Self {
            frames,
            pace,
            then,
            first_frames: None,
            start_ns: 0,
            lateness: Lateness {
                keep_rate: send.keep_rate,
                moved_ns: 0,
            },
            sent: Sent {
                intended,
                ..Sent::default()
            },
        })
    }

    /// Starts the whole schedule at `start_ns`; must be called before the first step.
    pub fn begin_at(&mut self, start_ns: u64) {
        self.start_ns = start_ns;
        match &mut self.pace {
            // Times of a schedule are relative until here.
            Pace::Scheduled(schedule) => schedule.delay(start_ns),
            Pace::Unpaced { end_ns } => *end_ns = end_ns.saturating_add(start_ns),
        }
        if let Some(schedule) = &mut self.then {
            schedule.delay(start_ns);
        }
    }

    /// Hands the port the frames due at `now_ns`, up to one batch.
    ///
    /// # Errors
    /// When the port is gone, or keys are used up.
    #[inline]
    pub fn step(&mut self, port: &mut impl FrameSender, now_ns: u64) -> io::Result<Step> {
        if let Some(sealer) = &mut self.frames.sealer
            && sealer.has_renewals()
        {
            sealer
                // Once for each batch: within it no SA may run out.
                .renew(BATCH as u64, now_ns)
                .map_err(io::Error::other)?;
        }
        match &mut self.pace {
            Pace::Scheduled(schedule) => match schedule.next_ns() {
                Some(next_ns) if next_ns > now_ns => Ok(Step::Early(next_ns)),
                Some(next_ns) => {
                    // What the schedule has moved by is lateness too: nothing hides a stall.
                    let late_ns = now_ns - next_ns + self.lateness.moved_ns;
                    self.lateness.limit(schedule, now_ns - next_ns);
                    let moved_ns = self.lateness.moved_ns;
                    let due = Due { schedule, moved_ns };
                    let step = send_due(due, &mut self.frames, &mut self.sent, port, now_ns)?;
                    if step == Step::Sent {
                        self.sent.late_ns_max = self.sent.late_ns_max.max(late_ns);
                        // Later frames keep to the moved schedule.
                        self.lateness.moved_ns = 0;
                    }
                    Ok(step)
                }
                None => self.begin_second_part(port, now_ns),
            },
            Pace::Unpaced { .. } if now_ns < self.start_ns => Ok(Step::Early(self.start_ns)),
            Pace::Unpaced { end_ns } if now_ns < *end_ns => self.send_batch(port, now_ns),
            Pace::Unpaced { .. } => self.begin_second_part(port, now_ns),
        }
    }

    /// Begins the second part.
    fn begin_second_part(&mut self, port: &mut impl FrameSender, now_ns: u64) -> io::Result<Step> {
        let Some(schedule) = self.then.take() else {
            return Ok(Step::Done);
        };
        self.pace = Pace::Scheduled(schedule);
        self.first_frames = Some(self.sent.frames);
        self.sent.then_ns = now_ns;
        self.step(port, now_ns)
    }

    /// Sends one batch immediately, or as much as fits.
    #[inline]
    fn send_batch(&mut self, port: &mut impl FrameSender, now_ns: u64) -> io::Result<Step> {
        let mut frame_bytes = 0;
        let filled = port.send(BATCH, |slot| {
            self.frames.write(slot, now_ns, &mut frame_bytes)
        })?;
        if filled == 0 {
            return Ok(Step::Full);
        }
        let sent = &mut self.sent;
        // Without a schedule, what has left is what was intended.
        sent.intended += filled as u64;
        sent.frames += filled as u64;
        sent.frame_bytes += frame_bytes;
        Ok(Step::Sent)
    }

    /// The sender's counts, with the last frame sent at `end_ns`.
    #[must_use]
    pub fn finish(&self, end_ns: u64) -> Sent {
        let then_frames = self
            .first_frames
            .map_or(0, |first| self.sent.frames - first);
        Sent {
            elapsed_ns: end_ns.saturating_sub(self.start_ns),
            then_frames,
            start_ns: self.start_ns,
            ..self.sent
        }
    }
}

/// A schedule with due frames, and how far it has moved since a frame last left.
struct Due<'s> {
    schedule: &'s mut Schedule,
    moved_ns: u64,
}

/// Sends due frames.
#[inline]
fn send_due(
    Due { schedule, moved_ns }: Due<'_>,
    frames: &mut Frames,
    sent: &mut Sent,
    port: &mut impl FrameSender,
    now_ns: u64,
) -> io::Result<Step> {
    let (mut late_frames, mut frame_bytes) = (0, 0);
    let filled = port.send(schedule.due(now_ns, BATCH), |slot| {
        let due_ns = schedule.take();
        // By the schedule as it was, before it moved.
        late_frames += u64::from(now_ns - due_ns + moved_ns > LATE_NS);
        frames.write(slot, due_ns, &mut frame_bytes)
    })?;
    if filled == 0 {
        return Ok(Step::Full);
    }
    sent.late_frames += late_frames;
    sent.frames += filled as u64;
    sent.frame_bytes += frame_bytes;
    Ok(Step::Sent)
}

/// Frames in order: flows in turn, sizes in the order of the mix.
struct Frames {
    headers: Headers,
    sizes: Vec<FrameSize>,
    order: MixOrder,
    flows: FlowCursor,
    sealer: Option<Sealer>,
    tag: u16,
}

impl Frames {
    fn new(
        send: &traffic_spec::Send,
        tag: u16,
        part: Part,
        keys: Option<&Keys>,
    ) -> Result<Self, TrafficError> {
        let headers = Headers::new(&send.addresses, &send.frames)?;
        let sizes = FrameSize::all(&send.frames, headers.is_ipv6())?;
        // Without a peer one lane: the cursor needs no case for it.
        let lanes = send.peer.as_ref().map_or(1, |peer| peer.lanes);
        let key_tunnels = send.peer.as_ref().map_or(1, |peer| peer.tunnels);
        if key_tunnels != 1 && u32::from(key_tunnels) != send.frames.tunnels {
            return Err(TrafficError::TunnelKeys {
                flow_tunnels: send.frames.tunnels,
                key_tunnels,
            });
        }
        // The sealer has the pattern in place already, and writes only the front of each packet.
        let head = payload_offset(headers.is_ipv6()) + wire::stamp::STAMP_BYTES;
        let sealer = send.peer.as_ref().map(|peer| {
            let keys = keys.expect("a sender of sealed packets has keys");
            Sealer::new(peer, &send.addresses, part, keys, head)
        });
        let sealer = sealer.transpose()?;
        Ok(Self {
            headers,
            sizes,
            order: MixOrder::new(&send.frames.mix),
            flows: FlowCursor::new(&send.frames, lanes, part),
            sealer,
            tag,
        })
    }

    /// Writes the next frame, adds its size on the clear side, and returns its length in the slot.
    #[inline]
    fn write(&mut self, slot: &mut [u8], intended_ns: u64, frame_bytes: &mut u64) -> usize {
        let size = &self.sizes[self.order.advance()];
        let (place, number) = self.flows.advance();
        let stamp = Stamp {
            tag: self.tag,
            // They fit by `flows::check`.
            flow: place.flow as u16,
            sequence: number as u32,
            intended_ns,
        };
        *frame_bytes += u64::from(size.frame_bytes);
        let slot_bytes = usize::from(size.slot_bytes);
        match &mut self.sealer {
            None => {
                self.headers.write(slot, size, place, stamp);
                slot_bytes
            }
            Some(sealer) => {
                self.headers.write_head(sealer.inner(), size, place, stamp);
                sealer.seal(slot, slot_bytes, place).expect(
                    "a slot has room for ESP, no trial lasts for 2^42 packets, and `renew` counts",
                )
            }
        }
    }
}

/// Sends all of `send` on one thread, waiting between bursts; less when `stop` is raised.
///
/// # Errors
/// [`TrafficError`]; nothing has been sent unless it is [`TrafficError::PortGone`].
pub fn send(
    port: &mut impl FrameSender,
    send: &traffic_spec::Send,
    tag: u16,
    clock: &impl Clock,
    stop: &Stop,
) -> Result<Sent, TrafficError> {
    let keys = open_keys(send.peer.as_ref(), KeyUse::Seal)?;
    let mut generator = Generator::new(send, tag, Part::WHOLE, keys.as_ref())?;
    // Before the start is read: the first frames must not wait for it.
    clock.settle();
    generator.begin_at(clock.now_ns());
    drive(generator, port, clock, stop).map_err(TrafficError::of_work)
}

/// Runs a generator to its end, or until `stop` is raised.
pub(crate) fn drive(
    mut generator: Generator,
    port: &mut impl FrameSender,
    clock: &impl Clock,
    stop: &Stop,
) -> io::Result<Sent> {
    let sent = send_all_of(&mut generator, port, clock, stop);
    // Even after an error the used sequence numbers are known.
    let given_back = match &generator.frames.sealer {
        Some(sealer) => sealer.give_back().map_err(io::Error::other),
        None => Ok(()),
    };
    let sent = sent?;
    given_back.map(|()| sent)
}

fn send_all_of(
    generator: &mut Generator,
    port: &mut impl FrameSender,
    clock: &impl Clock,
    stop: &Stop,
) -> io::Result<Sent> {
    while !stop.is_raised() {
        match generator.step(port, clock.now_ns())? {
            Step::Sent => {}
            // The schedule continues, or moves if the rate is to be kept.
            Step::Full => yield_now(),
            Step::Early(time_ns) => clock.wait_until(time_ns, stop),
            Step::Done => break,
        }
    }
    // The port may hold the last frames back, and the end of sending is their time.
    port.flush()?;
    Ok(generator.finish(clock.now_ns()))
}
