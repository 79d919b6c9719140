//! Comparison of the clocks of two hosts: probes over the link between them, or through the boxes
//! between them, with the kernel's time stamps.
//!
//! ```text
//!  asks     sent_ns ────────► received_ns   answers
//!           returned_ns ◄──── answered_ns
//! ```
//!
//! Sent and answered are stamped when the driver takes the frame, received and returned when the
//! kernel does, so no frame travels in negative time. The answering clock is therefore ahead by at
//! most `received_ns - sent_ns` and by at least `answered_ns - returned_ns`, even if the delays
//! differ by direction. The kernel stamps by CLOCK_REALTIME; each side converts to CLOCK_MONOTONIC.
//! If a card stamps all frames itself, its stamps are used, converted by readings of its clock;
//! they exclude the delays of the kernels' queues and interrupts.
//!
//! Frames from the link are untrusted: a forged answer may spoil a comparison, but nothing else.

use crate::clock_probe::{Addresses, Probe, UDP_PROBE_BYTES};
use crate::host::corrected_ppb;
use crate::packet_socket::PacketSocket;
use crate::sample::filter;
use nix::cmsg_space;
use nix::sys::socket::sockopt::Timestamping;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, TimestampingFlag, Timestamps, recvmsg, send, setsockopt,
};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use port::{CardClock, ClockOffset, Stop, wait_readable};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use testbed::clocks::{Ask, Exchange, Exchanges};

/// How long an answer may take: boxes may be far apart.
const ANSWER_LIMIT: Duration = Duration::from_millis(200);
/// How long a driver may take to stamp a sent frame.
const STAMP_LIMIT: Duration = Duration::from_millis(1);
/// The longest time from a card's stamp of a received frame until the kernel notes it.
const NOTED_NS_MAX: i64 = 10_000_000;
/// Room for the answers to all probes; the kernel doubles it.
const BUFFER_BYTES: usize = 64 << 10;
/// Unanswered probes in a row after which no more are sent.
const UNANSWERED_MAX: u32 = 5;

/// A socket for probes.
struct ProbeSocket {
    socket: PacketSocket,
    /// Of a card that stamps all frames.
    card: Option<CardClock>,
}

/// When a probe left or arrived, by CLOCK_REALTIME.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Time {
    at_ns: i64,
    /// By the card's stamp.
    by_card: bool,
}

impl Time {
    /// The card's time if there is one, else the kernel's.
    fn new(card_ns: Option<i64>, kernel_ns: i64) -> Self {
        Self {
            at_ns: card_ns.unwrap_or(kernel_ns),
            by_card: card_ns.is_some(),
        }
    }
}

/// The stamps of a frame: the kernel's by CLOCK_REALTIME, the card's by the card's clock.
#[derive(Debug, Clone, Copy, Default)]
struct Stamps {
    kernel_ns: Option<i64>,
    card_ns: Option<i64>,
}

impl ProbeSocket {
    fn open(interface: &str) -> io::Result<Self> {
        // For all protocols: on a bridge's port, a socket for one protocol receives nothing.
        let socket = PacketSocket::open_filtered(interface, true, &filter::probes(), BUFFER_BYTES)?;
        // A clock that cannot be read counts as absent: the kernel stamps too.
        let card = CardClock::of(interface).unwrap_or_default();
        let mut stamps = TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
        if card.is_some() {
            stamps |= TimestampingFlag::SOF_TIMESTAMPING_TX_HARDWARE
                | TimestampingFlag::SOF_TIMESTAMPING_RX_HARDWARE
                | TimestampingFlag::SOF_TIMESTAMPING_RAW_HARDWARE;
        }
        setsockopt(&socket, Timestamping, &stamps)?;
        Ok(Self { socket, card })
    }

    /// The range of times by CLOCK_REALTIME of a card's stamp, as read a moment later.
    fn real_ns(&self, stamps: Stamps) -> Option<[i64; 2]> {
        let reading = self.card.as_ref()?.read().ok()?;
        Some(reading.real_ns(stamps.card_ns?))
    }

    /// Sends a frame. Returns when it left, by CLOCK_REALTIME, or a little earlier.
    fn send(&self, frame: &[u8]) -> io::Result<Time> {
        let before_ns = real_ns();
        send(self.socket.as_fd().as_raw_fd(), frame, MsgFlags::empty())?;
        // Drivers that stamp do it before they return; a queue may hold the frame.
        let until = Instant::now() + STAMP_LIMIT;
        while Instant::now() < until {
            let mut copy = [0; UDP_PROBE_BYTES];
            match self.receive_from(&mut copy, MsgFlags::MSG_ERRQUEUE)? {
                // The late stamp of an earlier probe may come first.
                Some((bytes, stamps)) if copy[..bytes] == *frame => {
                    return Ok(departure(before_ns, stamps.kernel_ns, self.real_ns(stamps)));
                }
                Some(_) => {}
                None => std::thread::yield_now(),
            }
        }
        Ok(departure(before_ns, None, None))
    }

    /// Receives a probe that waits: with its addresses, and when it arrived, by CLOCK_REALTIME, or
    /// a little later.
    fn receive(&self) -> io::Result<Option<(Probe, Addresses, Time)>> {
        let mut frame = [0; UDP_PROBE_BYTES];
        // A late stamp left in the error queue would wake up every wait.
        while self
            .receive_from(&mut frame, MsgFlags::MSG_ERRQUEUE)?
            .is_some()
        {}
        while let Some((bytes, stamps)) = self.receive_from(&mut frame, MsgFlags::empty())? {
            if let Some((probe, addresses)) = Probe::read(&frame[..bytes]) {
                let noted_ns = stamps.kernel_ns.unwrap_or_else(real_ns);
                let arrived = arrival(noted_ns, self.real_ns(stamps));
                return Ok(Some((probe, addresses, arrived)));
            }
        }
        Ok(None)
    }

    /// Receives a frame, or a copy of one that was sent, with its stamps.
    fn receive_from(
        &self,
        frame: &mut [u8; UDP_PROBE_BYTES],
        from: MsgFlags,
    ) -> io::Result<Option<(usize, Stamps)>> {
        let mut vectors = [IoSliceMut::new(frame)];
        // The second is the kernel's extended error, which marks a stamp, with an address.
        let mut control = cmsg_space!(Timestamps, [u8; 64]);
        // Callers wait by poll, or not at all: an empty error queue must not block.
        let flags = from | MsgFlags::MSG_DONTWAIT;
        let fd = self.socket.as_fd().as_raw_fd();
        let message = match recvmsg::<()>(fd, &mut vectors, Some(&mut control), flags) {
            Ok(message) => message,
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let stamps = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampsns(stamps) => Some(stamps),
            _ => None,
        });
        // Zero: not stamped.
        let stamp = |time| Some(nanoseconds(time)).filter(|&stamp_ns| stamp_ns > 0);
        let stamps = stamps.map(|stamps| Stamps {
            kernel_ns: stamp(stamps.system),
            card_ns: stamp(stamps.hw_raw),
        });
        Ok(Some((message.bytes, stamps.unwrap_or_default())))
    }
}

/// When a frame left, or a little earlier: it was passed to the kernel at `before_ns`. A card's
/// stamp counts only if it is possible.
fn departure(before_ns: i64, kernel_ns: Option<i64>, card_ns: Option<[i64; 2]>) -> Time {
    let earliest_ns = card_ns.map(|[earliest_ns, _]| earliest_ns);
    let possible = earliest_ns.filter(|at_ns| (before_ns..=real_ns()).contains(at_ns));
    Time::new(possible, kernel_ns.unwrap_or(before_ns))
}

/// When a frame arrived, or a little later: the kernel noted it at `noted_ns`, a moment after the
/// card. A card's stamp counts only if it is possible.
fn arrival(noted_ns: i64, card_ns: Option<[i64; 2]>) -> Time {
    let latest_ns = card_ns.map(|[_, latest_ns]| latest_ns);
    let possible = latest_ns.filter(|at_ns| (noted_ns - NOTED_NS_MAX..=noted_ns).contains(at_ns));
    Time::new(possible, noted_ns)
}

/// Answers probes on an interface, from its start until it is dropped.
#[derive(Debug)]
pub(crate) struct Answerer {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Answerer {
    /// # Errors
    /// When the interface does not exist, or the kernel refuses a packet socket.
    pub(crate) fn start(interface: &str, own: [u8; 6]) -> io::Result<Self> {
        let socket = ProbeSocket::open(interface)?;
        let stop = Arc::new(Stop::new()?);
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("clocks".to_owned());
        let thread = thread.spawn(move || {
            // An error means that the interface is gone; the missing answers show it.
            let _ = answer(&socket, own, &stopped);
        })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Answerer {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            // It cannot panic: it counts and copies.
            let _ = thread.join();
        }
    }
}

fn answer(socket: &ProbeSocket, own: [u8; 6], stop: &Stop) -> io::Result<()> {
    let mut last: Option<(u32, Time)> = None;
    while !stop.is_raised() {
        wait_readable(&[socket.socket.as_fd(), stop.as_fd()], None)?;
        // A flood must not keep it from stopping.
        while !stop.is_raised()
            && let Some((probe, addresses, received)) = socket.receive()?
        {
            let before = probe.number.wrapping_sub(1);
            let last_answered = match last {
                // A copy: only the first one counts.
                Some((number, _)) if number == probe.number => continue,
                Some((number, answered)) if number == before => Some(answered),
                _ => None,
            };
            if probe.is_answer {
                continue;
            }
            let offset = ClockOffset::read();
            let answer = Probe {
                is_answer: true,
                by_card: received.by_card && last_answered.is_none_or(|answered| answered.by_card),
                number: probe.number,
                received_ns: received.at_ns,
                last_answered_ns: last_answered.map_or(0, |answered| answered.at_ns),
                ahead_ns: offset.ahead_ns,
                within_ns: offset.within_ns,
                corrected_ppb: corrected_ppb(),
            };
            // A probe without a sendable answer stays unanswered.
            let answered = socket.send(&answer.write(&addresses.back_from(own)));
            last = answered.ok().map(|answered| (probe.number, answered));
        }
    }
    Ok(())
}

/// Sends probes one after the other. Returns the answered ones; empty if nothing answers.
///
/// # Errors
/// When the interface does not exist, or a clock was set meanwhile.
pub(crate) fn ask(ask: &Ask) -> io::Result<Exchanges> {
    let socket = ProbeSocket::open(&ask.interface)?;
    let addresses = Addresses {
        target: ask.target,
        source: ask.own,
        udp: ask.udp,
    };
    let own = ClockOffset::read();
    let mut peer: Option<ClockOffset> = None;
    let mut found = Exchanges {
        by_cards: [true; 2],
        ..Exchanges::default()
    };
    let mut last: Option<Half> = None;
    let mut unanswered = 0;
    // Numbers of an earlier call are not answered in this one.
    let first = own.at_ns as u32;
    // The time of an answer comes with the next, so there is one probe more.
    for number in (0..=ask.probes).map(|index| first.wrapping_add(index)) {
        let probe = Probe {
            number,
            ..Probe::default()
        };
        let sent = socket.send(&probe.write(&addresses))?;
        let Some((answer, returned)) = await_answer(&socket, number)? else {
            // The next answer completes this probe, and not the one before.
            last = None;
            unanswered += 1;
            if unanswered == UNANSWERED_MAX {
                break;
            }
            continue;
        };
        unanswered = 0;
        let now = ClockOffset {
            ahead_ns: answer.ahead_ns,
            within_ns: answer.within_ns,
            at_ns: 0,
        };
        // Compared with the first answer's: small steps would add up otherwise.
        let there = *peer.get_or_insert(now);
        expect_not_set(there, now)?;
        // The errors of both conversions to CLOCK_MONOTONIC add up in the worst case.
        found.within_ns = found.within_ns.max(own.within_ns + now.within_ns);
        found.corrected_ppb = [corrected_ppb(), answer.corrected_ppb];
        // All stamps of a side must be by its card: a single one by the kernel includes delays of
        // queues and interrupts.
        found.by_cards[0] &= sent.by_card && returned.by_card;
        found.by_cards[1] &= answer.by_card;
        if let Some(half) = last.filter(|_| answer.last_answered_ns != 0) {
            found.exchanges.push(Exchange {
                sent_ns: half.sent_ns - own.ahead_ns,
                received_ns: half.received_ns - there.ahead_ns,
                answered_ns: answer.last_answered_ns - there.ahead_ns,
                returned_ns: half.returned_ns - own.ahead_ns,
            });
        }
        last = Some(Half {
            sent_ns: sent.at_ns,
            received_ns: answer.received_ns,
            returned_ns: returned.at_ns,
        });
    }
    expect_not_set(own, ClockOffset::read())?;
    Ok(found)
}

/// The times of a probe that are known with its answer, by CLOCK_REALTIME.
#[derive(Debug, Clone, Copy)]
struct Half {
    sent_ns: i64,
    received_ns: i64,
    returned_ns: i64,
}

/// Waits for the answer to that probe.
fn await_answer(socket: &ProbeSocket, number: u32) -> io::Result<Option<(Probe, Time)>> {
    let until = Instant::now() + ANSWER_LIMIT;
    loop {
        while let Some((probe, _, returned)) = socket.receive()? {
            let is_it = probe.is_answer && probe.number == number;
            // Numbers that no clock shows would overflow the arithmetic of the comparison.
            if is_it && probe.is_plausible() {
                return Ok(Some((probe, returned)));
            }
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        wait_readable(&[socket.socket.as_fd()], Some(left))?;
    }
}

/// Checks that CLOCK_REALTIME was not set between two readings.
fn expect_not_set(before: ClockOffset, after: ClockOffset) -> io::Result<()> {
    let most_ns = before.within_ns + after.within_ns;
    if before.ahead_ns.abs_diff(after.ahead_ns) <= most_ns {
        return Ok(());
    }
    let what = "the clock of one side was set meanwhile";
    Err(io::Error::new(io::ErrorKind::Interrupted, what))
}

fn real_ns() -> i64 {
    // It exists on every Linux.
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, nanoseconds)
}

fn nanoseconds(time: TimeSpec) -> i64 {
    time.tv_sec() * 1_000_000_000 + time.tv_nsec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn time(at_ns: i64, by_card: bool) -> Time {
        Time { at_ns, by_card }
    }

    /// An impossible stamp does not count: the card's clock was set between the stamp and its
    /// reading.
    #[test]
    fn stamps_of_cards_count_only_if_they_are_possible() {
        let now = real_ns();
        let kernel = Some(now - 10_000);
        let left = |card_ns| departure(now - 20_000, kernel, card_ns);
        assert_eq!(left(None), time(now - 10_000, false));
        assert_eq!(left(Some([now - 9000, now - 8500])), time(now - 9000, true));
        assert_eq!(left(Some([now - 20_001, now])), time(now - 10_000, false));
        let later = now + 3_600_000_000_000;
        assert_eq!(left(Some([later, later])), time(now - 10_000, false));
        assert_eq!(departure(now, None, None), time(now, false));

        assert_eq!(arrival(now, None), time(now, false));
        assert_eq!(
            arrival(now, Some([now - 800, now - 500])),
            time(now - 500, true)
        );
        assert_eq!(arrival(now, Some([now, now + 1])), time(now, false));
        let long_before = now - NOTED_NS_MAX - 1;
        assert_eq!(arrival(now, Some([0, long_before])), time(now, false));
    }
}
