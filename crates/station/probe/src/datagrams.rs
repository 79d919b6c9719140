//! Datagrams in rounds, checked by their receiver: length, payload, DSCP, ECN and TTL.

use crate::payload::Payload;
use crate::spec::{DatagramCounts, Datagrams};
use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
    sockopt,
};
use port::is_timeout;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const MAGIC: [u8; 4] = *b"CBpr";
/// Magic, round, index, length, TOS, TTL.
const HEADER_BYTES: usize = 4 + 4 + 2 + 2 + 1 + 1;
/// An answer: magic and round.
const ANSWER_BYTES: usize = 8;
/// Datagrams of a round; its bits fit a word, and its bytes a socket's default buffer.
const ROUND: u16 = 48;
/// Datagrams of a train; a round has whole trains.
const TRAIN: u16 = 24;
/// Time for the rest of a round after its last datagram, and for an answer.
const REST: Duration = Duration::from_millis(25);
const ANSWER: Duration = Duration::from_millis(200);
/// Rounds without any answer after which a sender stops: nothing passes.
const UNANSWERED_MAX: u32 = 4;
/// TOS and TTL of marked datagrams. Neighbours differ in one of them; a codepoint of ECN other than
/// CE, which a path may set itself.
const MARKS: [(u8, u8); 6] = [(0, 64), (1, 64), (2, 64), (0, 61), (0xb8, 61), (0xba, 64)];
const PLAIN: (u8, u8) = (0, 64);

/// A datagram of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Datagram {
    round: u32,
    index: u16,
    bytes: u16,
    tos: u8,
    ttl: u8,
}

impl Datagram {
    /// The datagrams of a round follow from kind and round, at both ends.
    fn of(kind: Datagrams, round: u32, index: u16, long_bytes: u16) -> Self {
        let (tos, ttl) = match kind {
            Datagrams::Marked => MARKS[usize::from(index) % MARKS.len()],
            _ => PLAIN,
        };
        // Lengths of trains change from round to round, an odd one among them.
        let bytes = match kind {
            Datagrams::Single | Datagrams::Unchecked => long_bytes,
            Datagrams::Trains => {
                let train = [long_bytes, 513, long_bytes - 1, 1200.min(long_bytes)];
                let bytes = train[round as usize % train.len()];
                if index % TRAIN == TRAIN - 1 {
                    bytes / 2 + 1
                } else {
                    bytes
                }
            }
            // Two of a length in sequence, which a receiver could merge.
            Datagrams::Marked => long_bytes - (index / 2 % 3) * (long_bytes / 4),
        };
        Self {
            round,
            index,
            bytes,
            tos,
            ttl,
        }
    }

    fn write(self, payload: &Payload, out: &mut Vec<u8>) {
        out.extend(MAGIC);
        out.extend(self.round.to_be_bytes());
        out.extend(self.index.to_be_bytes());
        out.extend(self.bytes.to_be_bytes());
        out.extend([self.tos, self.ttl]);
        out.extend(self.body(payload));
    }

    fn body(self, payload: &Payload) -> &[u8] {
        let offset = u64::from(self.round) * 48_611 + u64::from(self.index) * 1009;
        payload.slice(offset, usize::from(self.bytes) - HEADER_BYTES)
    }

    /// Reads the header of a datagram of any other length.
    fn read(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<HEADER_BYTES>()?;
        let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let read = Self {
            round: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            index: field(8),
            bytes: field(10),
            tos: header[12],
            ttl: header[13],
        };
        let is_whole =
            header[..4] == MAGIC && read.index < ROUND && usize::from(read.bytes) >= HEADER_BYTES;
        is_whole.then_some(read)
    }
}

/// Sends rounds for `time`. Fills what the sender knows of the counts.
pub(crate) fn send(
    socket: &UdpSocket,
    kind: Datagrams,
    time: Duration,
    long_bytes: u16,
    payload: &Payload,
) -> io::Result<DatagramCounts> {
    if kind == Datagrams::Unchecked {
        port::send_without_checksum(socket)?;
    }
    let mut counts = DatagramCounts::default();
    let mut singly = kind != Datagrams::Trains;
    let begin = Instant::now();
    let mut unanswered = 0;
    let mut round = 0;
    while begin.elapsed() < time && unanswered < UNANSWERED_MAX {
        let datagrams = (0..ROUND).map(|index| Datagram::of(kind, round, index, long_bytes));
        let datagrams: Vec<_> = datagrams.collect();
        if !singly {
            match send_trains(socket, &datagrams, payload) {
                Ok(()) => {}
                // EIO and EINVAL: the interface has no checksums to offer (udp(7)).
                Err(error) => {
                    counts.refused = Some(error.to_string());
                    singly = true;
                    continue;
                }
            }
        } else {
            send_each(socket, &datagrams, kind, payload)?;
        }
        counts.sent += u64::from(ROUND);
        if is_answered(socket, round)? {
            unanswered = 0;
        } else {
            unanswered += 1;
        }
        counts.elapsed_ns = begin.elapsed().as_nanos() as u64;
        round += 1;
    }
    Ok(counts)
}

fn send_each(
    socket: &UdpSocket,
    datagrams: &[Datagram],
    kind: Datagrams,
    payload: &Payload,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut mark = None;
    for datagram in datagrams {
        let (tos, ttl) = (datagram.tos, datagram.ttl);
        if kind == Datagrams::Marked && mark != Some((tos, ttl)) {
            setsockopt(socket, sockopt::Ipv4Tos, &i32::from(tos))?;
            setsockopt(socket, sockopt::Ipv4Ttl, &i32::from(ttl))?;
            mark = Some((tos, ttl));
        }
        bytes.clear();
        datagram.write(payload, &mut bytes);
        accept_loss(socket.send(&bytes).map(drop))?;
    }
    Ok(())
}

fn send_trains(socket: &UdpSocket, datagrams: &[Datagram], payload: &Payload) -> io::Result<()> {
    for train in datagrams.chunks(usize::from(TRAIN)) {
        let mut bytes = Vec::new();
        for datagram in train {
            datagram.write(payload, &mut bytes);
        }
        let segment = [ControlMessage::UdpGsoSegments(&train[0].bytes)];
        let sent = sendmsg::<()>(
            socket.as_raw_fd(),
            &[IoSlice::new(&bytes)],
            &segment,
            MsgFlags::empty(),
            None,
        );
        accept_loss(sent.map(drop).map_err(io::Error::from))?;
    }
    Ok(())
}

/// A datagram that this host drops for want of room, or a report about an earlier one: the receiver
/// misses it, which counts.
fn accept_loss(sent: io::Result<()>) -> io::Result<()> {
    match sent {
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(
                    nix::libc::ENOBUFS
                        | nix::libc::EAGAIN
                        | nix::libc::ECONNREFUSED
                        | nix::libc::EHOSTUNREACH
                        | nix::libc::EMSGSIZE
                )
            ) =>
        {
            Ok(())
        }
        other => other,
    }
}

fn is_answered(socket: &UdpSocket, round: u32) -> io::Result<bool> {
    let end = Instant::now() + ANSWER;
    let mut buffer = [0; 64];
    let expected = answer(round);
    while let Some(left) = end
        .checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
    {
        socket.set_read_timeout(Some(left))?;
        match socket.recv(&mut buffer) {
            Ok(ANSWER_BYTES) if buffer[..ANSWER_BYTES] == expected => return Ok(true),
            // An answer to an earlier round, or a report.
            _ => {}
        }
    }
    Ok(false)
}

fn answer(round: u32) -> [u8; ANSWER_BYTES] {
    let mut bytes = [0; ANSWER_BYTES];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..].copy_from_slice(&round.to_be_bytes());
    bytes
}

/// The receiver's state.
struct Receiver<'a> {
    kind: Datagrams,
    long_bytes: u16,
    payload: &'a Payload,
    counts: DatagramCounts,
    round: u32,
    /// The datagrams of the round that arrived, by bit; damaged ones too.
    arrived: u64,
    hops: Option<u8>,
}

/// Receives and answers rounds until `is_over` says so. The counts lack what only the sender knows.
pub(crate) fn receive(
    socket: &UdpSocket,
    kind: Datagrams,
    long_bytes: u16,
    payload: &Payload,
    is_over: impl Fn() -> bool,
) -> io::Result<DatagramCounts> {
    // IPv6 has no marked datagrams, so that nothing is compared there.
    if socket.local_addr()?.is_ipv4() {
        setsockopt(socket, sockopt::IpRecvTos, &true)?;
        setsockopt(socket, sockopt::Ipv4RecvTtl, &true)?;
    }
    if kind == Datagrams::Trains {
        setsockopt(socket, sockopt::UdpGroSegment, &true)?;
    }
    socket.set_read_timeout(Some(REST))?;
    let mut receiver = Receiver {
        kind,
        long_bytes,
        payload,
        counts: DatagramCounts::default(),
        round: 0,
        arrived: 0,
        hops: None,
    };
    let mut buffer = vec![0; 1 << 16];
    let mut space = cmsg_space!([u8; 64]);
    loop {
        match receive_one(socket, &mut buffer, &mut space) {
            Ok(found) => {
                let segment = found.segment.unwrap_or(found.bytes).max(1);
                for datagram in buffer[..found.bytes].chunks(segment) {
                    if receiver.take(datagram, found.tos, found.ttl) {
                        // A lost answer only delays the sender.
                        let _ = socket.send(&answer(receiver.round));
                    }
                }
            }
            Err(error) if is_timeout(&error) => {
                // Only now, since the question costs system calls.
                if is_over() {
                    return Ok(receiver.counts);
                }
                // The rest of the round is lost: the sender goes on without it.
                if receiver.arrived != 0 {
                    let _ = socket.send(&answer(receiver.round));
                }
            }
            // A report about an answer.
            Err(_) => {}
        }
    }
}

impl Receiver<'_> {
    /// Checks a datagram; true if its round is complete.
    fn take(&mut self, bytes: &[u8], tos: u8, ttl: u8) -> bool {
        let counts = &mut self.counts;
        let Some(found) = Datagram::read(bytes) else {
            // Too short for a header, or a damaged one.
            counts.wrong_payload += 1;
            return false;
        };
        if found.round > self.round {
            self.round = found.round;
            self.arrived = 0;
        }
        let expected = Datagram::of(self.kind, found.round, found.index, self.long_bytes);
        // Whether a late one of an earlier round came before is not known any more.
        let is_late = found.round < self.round;
        let is_new = is_late || self.arrived >> found.index & 1 == 0;
        if !is_late {
            self.arrived |= 1 << found.index;
        }
        if found != expected {
            counts.wrong_payload += 1;
        } else if bytes.len() != usize::from(expected.bytes) {
            counts.wrong_length += 1;
        } else if bytes[HEADER_BYTES..] != *expected.body(self.payload) {
            counts.wrong_payload += 1;
        } else if !is_new {
            counts.repeated += 1;
        } else {
            counts.received += 1;
            counts.received_bytes += bytes.len() as u64;
            let hops = expected.ttl.wrapping_sub(ttl);
            counts.wrong_ttl += u64::from(*self.hops.get_or_insert(hops) != hops);
            // CE is a mark that queues set.
            let is_marked = tos & 3 == 3 && expected.tos & 3 != 0;
            let same = if is_marked { 0xfc } else { 0xff };
            counts.wrong_tos += u64::from((tos ^ expected.tos) & same != 0);
        }
        is_new && !is_late && self.arrived == (1 << ROUND) - 1
    }
}

struct ReceivedDatagram {
    bytes: usize,
    segment: Option<usize>,
    tos: u8,
    ttl: u8,
}

fn receive_one(
    socket: &UdpSocket,
    buffer: &mut [u8],
    space: &mut [u8],
) -> io::Result<ReceivedDatagram> {
    let mut slices = [IoSliceMut::new(buffer)];
    let message = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut slices,
        Some(space),
        MsgFlags::empty(),
    )?;
    let mut found = ReceivedDatagram {
        bytes: message.bytes,
        segment: None,
        tos: 0,
        ttl: 0,
    };
    for control in message.cmsgs()? {
        match control {
            ControlMessageOwned::UdpGroSegments(bytes) => {
                found.segment = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0);
            }
            ControlMessageOwned::Ipv4Tos(tos) => found.tos = tos,
            ControlMessageOwned::Ipv4Ttl(ttl) => found.ttl = ttl as u8,
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All datagrams of a round, in order, with the fields that they arrive with.
    fn round(kind: Datagrams) -> Vec<(Vec<u8>, u8, u8)> {
        let payload = Payload::new();
        let one = |index| {
            let datagram = Datagram::of(kind, 0, index, 1400);
            let mut bytes = Vec::new();
            datagram.write(&payload, &mut bytes);
            (bytes, datagram.tos, datagram.ttl - 2)
        };
        (0..ROUND).map(one).collect()
    }

    fn received(kind: Datagrams, datagrams: &[(Vec<u8>, u8, u8)]) -> (DatagramCounts, bool) {
        let payload = Payload::new();
        let mut receiver = Receiver {
            kind,
            long_bytes: 1400,
            payload: &payload,
            counts: DatagramCounts::default(),
            round: 0,
            arrived: 0,
            hops: None,
        };
        let mut complete = false;
        for (bytes, tos, ttl) in datagrams {
            complete |= receiver.take(bytes, *tos, *ttl);
        }
        (receiver.counts, complete)
    }

    #[test]
    fn whole_rounds_of_every_kind_are_intact() {
        for kind in Datagrams::ALL {
            let datagrams = round(kind);
            let bytes: usize = datagrams.iter().map(|(bytes, ..)| bytes.len()).sum();
            let (counts, complete) = received(kind, &datagrams);
            let expected = DatagramCounts {
                received: u64::from(ROUND),
                received_bytes: bytes as u64,
                ..DatagramCounts::default()
            };
            assert_eq!((counts, complete), (expected, true), "{kind:?}");
        }
    }

    #[test]
    fn every_damage_has_its_count() {
        let mut datagrams = round(Datagrams::Marked);
        datagrams[0].0.pop();
        datagrams[1].0[40] ^= 1;
        datagrams[3].0.truncate(5);
        datagrams[4].1 = 1;
        datagrams[5].2 -= 1;
        let repeated = datagrams[6].clone();
        datagrams.push(repeated);
        datagrams.remove(7);
        // A queue on the path may set CE, but only where the sender offered it.
        assert_ne!(datagrams[13].1 & 3, 0);
        datagrams[13].1 |= 3;
        let (counts, complete) = received(Datagrams::Marked, &datagrams);
        assert!(!complete, "one is missing");
        assert_eq!((counts.wrong_length, counts.wrong_payload), (1, 2));
        assert_eq!((counts.wrong_tos, counts.wrong_ttl), (1, 1));
        assert_eq!(
            (counts.repeated, counts.received),
            (1, u64::from(ROUND) - 4)
        );
    }
}
