//! RTP packets (RFC 3550): their headers, and the counts of a stream.

use journal::record::RtpCounts;

/// RTP's header without contributing sources.
const HEADER_BYTES: usize = 12;
const TS_PACKET_BYTES: u16 = 188;
/// Packets of a transport stream that fit into an Ethernet frame (RFC 2250).
const TS_PACKETS_MOST: u16 = 7;
const IP_AND_UDP_BYTES: u16 = 28;
/// Rate of the clock of time stamps (RFC 3551 §6, type 33).
const CLOCK_HZ: i128 = 90_000;
/// A packet with a transit this much longer than the shortest one is late: ffmpeg waits no longer
/// for a missing packet.
pub(crate) const LATE_NS: i128 = 100_000_000;

/// UDP payload of a full RTP packet that crosses a path with this IP MTU in one piece, in bytes.
#[must_use]
pub const fn datagram_bytes(mtu: u16) -> u16 {
    let room = mtu.saturating_sub(IP_AND_UDP_BYTES + HEADER_BYTES as u16) / TS_PACKET_BYTES;
    let packets = match room {
        0 => 1,
        // Whole packets of the transport stream only (RFC 2250 §2).
        1..TS_PACKETS_MOST => room,
        _ => TS_PACKETS_MOST,
    };
    HEADER_BYTES as u16 + packets * TS_PACKET_BYTES
}

/// A packet that passed this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) sequence: u16,
    time_stamp: u32,
    at_ns: u64,
    pub(crate) bytes: u64,
}

impl Packet {
    /// Reads the header of a datagram that passed at this time; `None` if it is not RTP.
    pub(crate) fn of(datagram: &[u8], at_ns: u64) -> Option<Self> {
        let header = datagram.first_chunk::<HEADER_BYTES>()?;
        let [flags, _, s0, s1, t0, t1, t2, t3, ..] = *header;
        (flags >> 6 == 2).then_some(Self {
            sequence: u16::from_be_bytes([s0, s1]),
            time_stamp: u32::from_be_bytes([t0, t1, t2, t3]),
            at_ns,
            bytes: datagram.len() as u64,
        })
    }
}

/// Counts received, lost, duplicated, reordered and late packets. `sent` packets from the sequence
/// number `first` on were sent; `passed` is in the order of arrival.
pub(crate) fn counts(first: u16, sent: u64, passed: &[Packet]) -> RtpCounts {
    let mut counts = RtpCounts {
        sent,
        ..RtpCounts::default()
    };
    let count = usize::try_from(sent).unwrap_or(usize::MAX);
    let mut seen = vec![false; count];
    let mut near: i64 = 0;
    let mut highest: i64 = -1;
    for packet in passed {
        // Sequence numbers wrap after 65 536 packets.
        let expected = first.wrapping_add(near as u16);
        let number = near + i64::from(packet.sequence.wrapping_sub(expected) as i16);
        let Some(seen) = usize::try_from(number).ok().and_then(|at| seen.get_mut(at)) else {
            continue;
        };
        near = number;
        // Counted apart, so that copies do not make up for losses.
        if std::mem::replace(seen, true) {
            counts.duplicated += 1;
            continue;
        }
        counts.received += 1;
        counts.out_of_order += u64::from(number < highest);
        // A packet counts as out of order only behind a later one, not for a gap before it (RFC
        // 4737 §3.3).
        highest = highest.max(number);
    }
    counts.lost = sent.saturating_sub(counts.received);
    counts.late = late(passed);
    counts
}

/// Returns the number of late packets, by their time stamps.
pub(crate) fn late(passed: &[Packet]) -> u64 {
    let Some(first) = passed.first() else {
        return 0;
    };
    let transit = |packet: &Packet| {
        // Signed, as time stamps wrap after 13 hours and packets may be out of order.
        let ticks = packet.time_stamp.wrapping_sub(first.time_stamp) as i32;
        i128::from(packet.at_ns) - i128::from(ticks) * 1_000_000_000 / CLOCK_HZ
    };
    let shortest = passed.iter().map(transit).min().unwrap_or_default();
    let is_late = |packet: &&Packet| transit(packet) - shortest > LATE_NS;
    passed.iter().filter(is_late).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKS: u32 = 3600;
    const FRAME_NS: u64 = 40_000_000;

    /// Every packet of the stream on time, one frame apart.
    fn packets(first: u16, count: u16) -> Vec<Packet> {
        let packet = |number: u16| Packet {
            sequence: first.wrapping_add(number),
            time_stamp: 4_000_000_000_u32.wrapping_add(u32::from(number) * TICKS * 100),
            at_ns: u64::from(number) * FRAME_NS * 100,
            bytes: 1328,
        };
        (0..count).map(packet).collect()
    }

    #[test]
    fn a_whole_stream_across_the_wrap_has_no_losses() {
        let found = counts(65_000, 2000, &packets(65_000, 2000));
        let whole = RtpCounts {
            sent: 2000,
            received: 2000,
            ..RtpCounts::default()
        };
        assert_eq!(found, whole);
    }

    #[test]
    fn what_is_lost_doubled_swapped_and_late_is_counted_apart() {
        let mut passed = packets(65_530, 20);
        passed.remove(19);
        passed.remove(7);
        passed.remove(0);
        passed.swap(3, 4);
        passed.insert(6, passed[5]);
        passed[10].at_ns += LATE_NS as u64 + 1;
        passed[11].at_ns += LATE_NS as u64;
        let found = counts(65_530, 20, &passed);
        assert_eq!((found.sent, found.received, found.lost), (20, 17, 3));
        assert_eq!((found.duplicated, found.out_of_order), (1, 1));
        // The swapped packets keep their times: only one is late.
        assert_eq!(found.late, 1);
    }

    #[test]
    fn nothing_received_is_all_lost_and_foreign_numbers_are_not_counted() {
        assert_eq!(counts(9, 5, &[]).lost, 5);
        assert_eq!(counts(100, 5, &packets(50, 3)).received, 0);
        assert_eq!(Packet::of(&[0x80; 11], 0), None);
        assert_eq!(Packet::of(&[0x00; 12], 0), None);
    }

    #[test]
    fn packets_fit_the_path() {
        assert_eq!(datagram_bytes(1500), 1328);
        assert_eq!(datagram_bytes(9000), 1328);
        assert_eq!(datagram_bytes(1300), 1140);
        assert_eq!(datagram_bytes(576), 388);
        for mtu in 576..2000 {
            assert!(datagram_bytes(mtu) + IP_AND_UDP_BYTES <= mtu, "{mtu}");
        }
    }
}
