//! The attacker: captures sealed packets of a DUT, and sends hostile packets derived from them on
//! schedule.

use crate::analyser::wait_for;
use crate::error::TrafficError;
use crate::hostile::{Random, Sealed};
use port::{FRAME_SLOT_BYTES, FrameReceiver, FrameSender, Stop};
use std::io;
use std::os::fd::AsFd;
use std::thread::yield_now;
use std::time::Duration;
use traffic_spec::{
    Attack, AttackKind, Attacked, Clock, Load, Part, SECOND_NS, Schedule, SealedForm,
};

/// Hostile packets per call of the port.
const BATCH: usize = 64;
/// Interval over which packets are gathered and sent together.
const BURST_NS: u64 = 50_000;
/// Interval between looks at the capture: the packets that hostile ones are derived from are no
/// older.
const LOOK_NS: u64 = 1_000_000;
/// Grace at the end for late packets; packets later than this are not sent.
const LATE_NS: u64 = 100_000_000;
/// Number of captured packets kept; hostile ones are derived from them in turn, so that several
/// flows have their share.
const KEPT: usize = 16;
/// Minimum age of an old packet; the maximum is twice this.
const OLD_NS: u64 = SECOND_NS;

/// A set of sealed packets: the latest, or the latest of an earlier time.
struct PacketRing {
    frames: Box<[u8]>,
    /// For each slot, the parts of its sealed frame and the frame's length.
    found: [Option<(Sealed, usize)>; KEPT],
    next: usize,
}

impl PacketRing {
    fn new() -> Self {
        Self {
            frames: vec![0; KEPT * FRAME_SLOT_BYTES].into_boxed_slice(),
            found: [const { None }; KEPT],
            next: 0,
        }
    }

    const fn is_empty(&self) -> bool {
        self.found[0].is_none()
    }

    /// Replaces the oldest frame.
    fn keep(&mut self, sealed: Sealed, frame: &[u8]) {
        let place = self.next % KEPT;
        self.frames[place * FRAME_SLOT_BYTES..][..frame.len()].copy_from_slice(frame);
        self.found[place] = Some((sealed, frame.len()));
        self.next = place + 1;
    }

    /// Writes one of the frames to `slot`, chosen in turn. `None` if there are no frames.
    fn write(&self, turn: usize, slot: &mut [u8]) -> Option<(&Sealed, usize)> {
        let count = self.found.iter().flatten().count();
        let place = turn.checked_rem(count)?;
        let (sealed, bytes) = self.found[place].as_ref()?;
        slot[..*bytes].copy_from_slice(&self.frames[place * FRAME_SLOT_BYTES..][..*bytes]);
        Some((sealed, *bytes))
    }

    fn copy_from(&mut self, other: &Self) {
        self.frames.copy_from_slice(&other.frames);
        self.found.clone_from(&other.found);
        self.next = other.next;
    }
}

/// Makes the hostile packets of an [`Attack`]; never waits.
struct Attacker<'a> {
    kind: AttackKind,
    form: SealedForm,
    ports: &'a [u16],
    latest: PacketRing,
    /// The latest of some time ago, which become the old ones at the next ageing.
    aging: PacketRing,
    old: PacketRing,
    /// Time of the next ageing.
    age_ns: u64,
    turn: usize,
    random: Random,
    captured: u64,
}

impl<'a> Attacker<'a> {
    fn new(attack: &'a Attack, seed: u64, now_ns: u64) -> Self {
        Self {
            kind: attack.kind,
            form: attack.form,
            ports: &attack.ports,
            latest: PacketRing::new(),
            aging: PacketRing::new(),
            old: PacketRing::new(),
            // The first packets are old only after this time, as later ones are.
            age_ns: now_ns + OLD_NS,
            turn: 0,
            random: Random::new(seed),
            captured: 0,
        }
    }

    /// Processes the frames captured so far.
    fn look(&mut self, captures: &mut impl FrameReceiver, now_ns: u64) -> io::Result<()> {
        if now_ns >= self.age_ns {
            // Old packets are one to two intervals old, whenever they are taken.
            std::mem::swap(&mut self.old, &mut self.aging);
            self.aging.copy_from(&self.latest);
            self.age_ns = now_ns + OLD_NS;
        }
        let taken = captures.recv(|frame| {
            // As a super-packet of the kernel: a copy would not fit a slot.
            if frame.len() > FRAME_SLOT_BYTES {
                return;
            }
            let Some(sealed) = Sealed::find(frame, self.form, self.ports) else {
                return;
            };
            self.captured += 1;
            // Once at capture, not at each sending.
            if self.kind == AttackKind::BadIcv {
                sealed.spoil(frame);
            }
            self.latest.keep(sealed, frame);
        });
        match taken {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes the next hostile packet and returns its length. At least one packet has been
    /// captured.
    fn write(&mut self, slot: &mut [u8]) -> usize {
        let turn = self.turn;
        self.turn = turn.wrapping_add(1);
        // Every second replay is an old one, probably left of the replay window.
        let is_old = self.kind == AttackKind::Replay && turn % 2 == 1 && !self.old.is_empty();
        let (kept, turn) = match self.kind {
            AttackKind::Replay if is_old => (&self.old, turn / 2),
            AttackKind::Replay => (&self.latest, turn / 2),
            _ => (&self.latest, turn),
        };
        let Some((sealed, bytes)) = kept.write(turn, slot) else {
            return 0;
        };
        if self.kind == AttackKind::Garbage {
            sealed.scramble(&mut slot[..bytes], &mut self.random);
        }
        bytes
    }
}

/// Sends the hostile packets of `attack` through `port`, derived from the frames of `captures`:
/// starts when the first sealed packet is captured, and ends when its time is over or `stop` is
/// raised. Without any capture in that time it sends nothing.
///
/// # Errors
/// [`TrafficError::PortGone`].
pub fn attack(
    captures: &mut impl FrameReceiver,
    port: &mut impl FrameSender,
    attack: &Attack,
    tag: u16,
    clock: &impl Clock,
    stop: &Stop,
) -> Result<Attacked, TrafficError> {
    clock.settle();
    let mut attacker = Attacker::new(attack, tag.into(), clock.now_ns());
    // Without a captured packet there is nothing to replay or to change.
    await_packet(&mut attacker, captures, attack.duration_ns, clock, stop)
        .and_then(|()| carry_out(&mut attacker, captures, port, attack, clock, stop))
        .map_err(TrafficError::PortGone)
}

/// Waits for the first captured packet.
fn await_packet(
    attacker: &mut Attacker<'_>,
    captures: &mut impl FrameReceiver,
    limit_ns: u64,
    clock: &impl Clock,
    stop: &Stop,
) -> io::Result<()> {
    let end_ns = clock.now_ns().saturating_add(limit_ns);
    while !stop.is_raised() {
        let now_ns = clock.now_ns();
        attacker.look(captures, now_ns)?;
        let left_ns = end_ns.saturating_sub(now_ns);
        if left_ns == 0 || !attacker.latest.is_empty() {
            break;
        }
        // Waits for the device to seal something: without it there is nothing to derive from.
        let limit = Duration::from_nanos(left_ns);
        wait_for(captures, &[stop.as_fd()], Some(limit))?;
    }
    Ok(())
}

fn carry_out(
    attacker: &mut Attacker<'_>,
    captures: &mut impl FrameReceiver,
    port: &mut impl FrameSender,
    attack: &Attack,
    clock: &impl Clock,
    stop: &Stop,
) -> io::Result<Attacked> {
    let start_ns = clock.now_ns();
    let load = Load {
        frames_per_s: attack.packets_per_s,
        duration_ns: attack.duration_ns,
        burst_ns: BURST_NS,
        start_ns,
        first_frame: 0,
    };
    // A paced schedule, so that an attack has a rate as a load has.
    let mut schedule = Schedule::new(&load, 1, Part::WHOLE);
    let end_ns = start_ns
        .saturating_add(attack.duration_ns)
        .saturating_add(LATE_NS);
    let (mut sent, mut last_ns, mut look_ns) = (0, start_ns, start_ns);
    while !stop.is_raised() && !attacker.latest.is_empty() {
        let now_ns = clock.now_ns();
        if now_ns >= look_ns {
            attacker.look(captures, now_ns)?;
            look_ns = now_ns + LOOK_NS;
        }
        let Some(due_ns) = schedule.next_ns().filter(|_| now_ns < end_ns) else {
            break;
        };
        if due_ns > now_ns {
            // Also wakes to look, or replays would become older than intended at low rates.
            clock.wait_until(due_ns.min(look_ns), stop);
            continue;
        }
        let filled = port.send(schedule.due(now_ns, BATCH), |slot| {
            schedule.take();
            attacker.write(slot)
        })?;
        if filled == 0 {
            yield_now();
            continue;
        }
        sent += filled as u64;
        last_ns = now_ns;
    }
    // The port may hold the last packets back.
    port.flush()?;
    Ok(Attacked {
        captured: attacker.captured,
        // Packets that the kernel refused appear only in the port's counts.
        sent: sent.saturating_sub(port.stats().send_failed),
        elapsed_ns: last_ns - start_ns,
    })
}
