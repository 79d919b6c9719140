//! The attacker: captures what a DUT has sealed, and sends hostile packets made of it, on schedule.

use crate::analyser::wait_for;
use crate::clock::{Clock, SECOND_NS};
use crate::error::TrafficError;
use crate::hostile::{Random, Sealed};
use crate::report::Attacked;
use crate::schedule::{Load, Part, Schedule};
use crate::spec::{Attack, AttackKind, SealedForm};
use port::{FRAME_SLOT_BYTES, FrameReceiver, FrameSender, Stop};
use std::io;
use std::os::fd::AsFd;
use std::thread::yield_now;
use std::time::Duration;

/// Hostile packets handed to a port at once.
const BATCH: usize = 64;
/// Time whose packets leave together.
const BURST_NS: u64 = 50_000;
/// What was captured is looked at this often: what hostile packets are made of is no older.
const LOOK_NS: u64 = 1_000_000;
/// Given to packets that are late at the end; what is later yet is not sent.
const LATE_NS: u64 = 100_000_000;
/// Captured packets that are kept; hostile ones are made of them in turn, so that several flows have their share.
const KEPT: usize = 16;
/// Age that an old packet has at least; it has twice that at most.
const OLD_NS: u64 = SECOND_NS;

/// The latest sealed packets, or those that were once.
struct Kept {
    frames: Box<[u8]>,
    /// Of the frame in each place: where it is sealed, and its length.
    found: [Option<(Sealed, usize)>; KEPT],
    next: usize,
}

impl Kept {
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

    /// Puts a frame in the place of the oldest.
    fn keep(&mut self, sealed: Sealed, frame: &[u8]) {
        let place = self.next % KEPT;
        self.frames[place * FRAME_SLOT_BYTES..][..frame.len()].copy_from_slice(frame);
        self.found[place] = Some((sealed, frame.len()));
        self.next = place + 1;
    }

    /// Writes one of the frames to `slot`: which, by turns. `None` when there are none.
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

/// Makes hostile packets as an [`Attack`] asks for, and never waits.
struct Attacker<'a> {
    kind: AttackKind,
    form: SealedForm,
    ports: &'a [u16],
    latest: Kept,
    /// The latest of some time ago, which are old next time.
    aging: Kept,
    old: Kept,
    /// When they age.
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
            latest: Kept::new(),
            aging: Kept::new(),
            old: Kept::new(),
            age_ns: now_ns + OLD_NS,
            turn: 0,
            random: Random::new(seed),
            captured: 0,
        }
    }

    /// Takes what the capture has by now.
    fn look(&mut self, captures: &mut impl FrameReceiver, now_ns: u64) -> io::Result<()> {
        if now_ns >= self.age_ns {
            std::mem::swap(&mut self.old, &mut self.aging);
            self.aging.copy_from(&self.latest);
            self.age_ns = now_ns + OLD_NS;
        }
        let taken = captures.recv(|frame| {
            if frame.len() > FRAME_SLOT_BYTES {
                return;
            }
            let Some(sealed) = Sealed::find(frame, self.form, self.ports) else {
                return;
            };
            self.captured += 1;
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

    /// Writes the next hostile packet; its length. Something has been captured.
    fn write(&mut self, slot: &mut [u8]) -> usize {
        let turn = self.turn;
        self.turn = turn.wrapping_add(1);
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

/// Sends the hostile packets that `attack` asks for through `port`, made of what `captures` hands out: it begins when
/// the first sealed packet was captured, and ends when its time is over, or `stop` is raised. When nothing was captured in
/// all that time, it has sent nothing.
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
    await_packet(&mut attacker, captures, attack.duration_ns, clock, stop)
        .and_then(|()| carry_out(&mut attacker, captures, port, attack, clock, stop))
        .map_err(TrafficError::PortGone)
}

/// Waits for something to make hostile packets of.
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
    port.flush()?;
    Ok(Attacked {
        captured: attacker.captured,
        // The port knows better what the kernel refused.
        sent: sent.saturating_sub(port.stats().send_failed),
        elapsed_ns: last_ns - start_ns,
    })
}
