//! Test frames: headers prepared once, and only the variable fields written per frame.
//!
//! The cost per frame does not depend on the number of flows and tunnels: addresses are computed,
//! not looked up, and checksums are summed from precomputed parts.

use crate::error::TrafficError;
use crate::flows::{self, Place};
use std::net::IpAddr;
use traffic_spec::Addresses;
use wire::checksum::{dword, finish, portable, word};
use wire::ethernet;
use wire::headers::{UDP, put16};
use wire::mix::{Contents, ETHERNET_HEADER_BYTES, FCS_BYTES, FRAME_BYTES_MAX, TestFrames};
use wire::overhead::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, UDP_HEADER_BYTES};
use wire::stamp::{STAMP_BYTES, Stamp, pattern, payload_offset, smallest_frame_bytes};

/// TTL (IPv4) and hop limit (IPv6).
const TTL: u8 = 64;

/// Offset of the IP header.
const IP: usize = ETHERNET_HEADER_BYTES;
/// Offset of the UDP header behind IPv4 and behind IPv6.
const UDP4: usize = IP + IPV4_HEADER_BYTES;
const UDP6: usize = IP + IPV6_HEADER_BYTES;
/// Length of all headers and the stamp.
const HEAD4: usize = UDP4 + UDP_HEADER_BYTES + STAMP_BYTES;
const HEAD6: usize = UDP6 + UDP_HEADER_BYTES + STAMP_BYTES;

/// The lengths of one frame size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameSize {
    /// With FCS.
    pub(crate) frame_bytes: u16,
    /// Without FCS: the length in the port's slot.
    pub(crate) slot_bytes: u16,
    /// Stamp and pattern.
    payload_bytes: u16,
    /// Partial sum of the pattern.
    pattern_sum: u64,
    contents: Contents,
}

impl FrameSize {
    fn new(frame_bytes: u16, contents: Contents, ipv6: bool) -> Result<Self, TrafficError> {
        let smallest = smallest_frame_bytes(ipv6);
        if !(smallest..=FRAME_BYTES_MAX).contains(&frame_bytes) {
            return Err(TrafficError::FrameSize {
                frame_bytes,
                ip: if ipv6 { "IPv6" } else { "IPv4" },
                smallest,
                largest: FRAME_BYTES_MAX,
            });
        }
        let slot_bytes = frame_bytes - FCS_BYTES;
        let payload_bytes = slot_bytes - payload_offset(ipv6) as u16;
        // Once for each size: the pattern never changes.
        let pattern_sum = portable(pattern(usize::from(payload_bytes) - STAMP_BYTES), 0);
        Ok(Self {
            frame_bytes,
            slot_bytes,
            payload_bytes,
            pattern_sum,
            contents,
        })
    }

    /// The sizes of the frames' mix, in its order.
    pub(crate) fn all(frames: &TestFrames, ipv6: bool) -> Result<Vec<Self>, TrafficError> {
        let mix = &frames.mix;
        if mix.shares.is_empty() || mix.shares.iter().any(|share| share.weight == 0) {
            return Err(TrafficError::EmptyMix);
        }
        let shares = mix.shares.iter();
        shares
            .map(|share| Self::new(share.frame_bytes, frames.contents, ipv6))
            .collect()
    }

    /// The partial sum of the bytes behind the stamp. Random ones are written, behind `head` bytes.
    #[inline]
    fn payload_sum(&self, slot: &mut [u8], head: usize, stamp: Stamp) -> u64 {
        match self.contents {
            Contents::Fixed => self.pattern_sum,
            Contents::Random => stamp.fill_random(&mut slot[head..usize::from(self.slot_bytes)]),
        }
    }

    const fn udp_bytes(&self) -> u16 {
        UDP_HEADER_BYTES as u16 + self.payload_bytes
    }
}

/// The headers of all test frames without their variable fields.
#[derive(Debug, Clone)]
pub(crate) enum Headers {
    V4 {
        head: [u8; HEAD4],
        source: u32,
        target: u32,
        /// Partial sum of the IP header without addresses and length.
        ip_sum: u64,
    },
    V6 {
        head: [u8; HEAD6],
        source: u128,
        target: u128,
    },
}

impl Headers {
    pub(crate) fn new(addresses: &Addresses, frames: &TestFrames) -> Result<Self, TrafficError> {
        flows::check(addresses, frames)?;
        Ok(match (addresses.source, addresses.target) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                let mut head = [0; HEAD4];
                put_ethernet(&mut head, addresses, ethernet::IPV4);
                put_ipv4(&mut head[IP..], UDP);
                Self::V4 {
                    head,
                    source: source.into(),
                    target: target.into(),
                    // The part of the checksum that no frame changes, summed once.
                    ip_sum: portable(&head[IP..UDP4], 0),
                }
            }
            (source, target) => {
                let mut head = [0; HEAD6];
                put_ethernet(&mut head, addresses, ethernet::IPV6);
                put_ipv6(&mut head[IP..], UDP);
                Self::V6 {
                    head,
                    source: as_ipv6(source),
                    target: as_ipv6(target),
                }
            }
        })
    }

    pub(crate) const fn is_ipv6(&self) -> bool {
        matches!(self, Self::V6 { .. })
    }

    /// Writes headers, stamp and payload to the start of `slot`.
    #[inline]
    pub(crate) fn write(&self, slot: &mut [u8], size: &FrameSize, place: Place, stamp: Stamp) {
        let head = self.write_head(slot, size, place, stamp);
        let rest = usize::from(size.slot_bytes) - head;
        if rest > 0 && size.contents == Contents::Fixed {
            slot[head..head + rest].copy_from_slice(pattern(rest));
        }
    }

    /// Writes headers and stamp to the start of `slot` and returns their length: the pattern
    /// follows, or a random payload, which is written. Inlined, so that place and stamp stay in
    /// registers: through memory they cost a fifth of a frame.
    #[inline(always)]
    pub(crate) fn write_head(
        &self,
        slot: &mut [u8],
        size: &FrameSize,
        place: Place,
        stamp: Stamp,
    ) -> usize {
        match self {
            Self::V4 {
                head,
                source,
                target,
                ip_sum,
            } => {
                // First, as random bytes are written behind the headers and summed on the way.
                let payload_sum = size.payload_sum(slot, HEAD4, stamp);
                let out = front::<HEAD4>(slot);
                *out = *head;
                // The n-th tunnel is between the n-th addresses after the first.
                let source = source.wrapping_add(place.tunnel);
                let target = target.wrapping_add(place.tunnel);
                let total_bytes = IPV4_HEADER_BYTES as u16 + size.udp_bytes();
                let addresses = dword(source) + dword(target);
                put16(out, IP + 2, total_bytes);
                // Incremental: the constant part of the header is summed already (RFC 1071 §2).
                let sum = finish(ip_sum + addresses + word(total_bytes));
                out[IP + 10..IP + 12].copy_from_slice(&sum);
                out[IP + 12..IP + 16].copy_from_slice(&source.to_be_bytes());
                out[IP + 16..UDP4].copy_from_slice(&target.to_be_bytes());
                let sum = addresses + payload_sum;
                write_udp(&mut out[UDP4..], size, place, stamp, sum);
                HEAD4
            }
            Self::V6 {
                head,
                source,
                target,
            } => {
                let payload_sum = size.payload_sum(slot, HEAD6, stamp);
                let out = front::<HEAD6>(slot);
                *out = *head;
                // As over IPv4; IPv6 has no checksum of its header.
                let source = source.wrapping_add(u128::from(place.tunnel));
                let target = target.wrapping_add(u128::from(place.tunnel));
                put16(out, IP + 4, size.udp_bytes());
                out[IP + 8..IP + 24].copy_from_slice(&source.to_be_bytes());
                out[IP + 24..UDP6].copy_from_slice(&target.to_be_bytes());
                let sum = address_sum(source) + address_sum(target) + payload_sum;
                write_udp(&mut out[UDP6..], size, place, stamp, sum);
                HEAD6
            }
        }
    }
}

/// The first bytes of a slot.
#[inline]
fn front<const BYTES: usize>(slot: &mut [u8]) -> &mut [u8; BYTES] {
    slot.first_chunk_mut()
        .expect("a slot has room for the largest frame")
}

/// Ports, length and checksum, then the stamp. `sum` covers the addresses and the bytes behind the
/// stamp.
#[inline(always)]
fn write_udp(out: &mut [u8], size: &FrameSize, place: Place, stamp: Stamp, sum: u64) {
    let out = front::<{ UDP_HEADER_BYTES + STAMP_BYTES }>(out);
    let (udp, stamped) = out.split_at_mut(UDP_HEADER_BYTES);
    let stamp_sum = stamp.write(front(stamped), size.payload_bytes);
    let (source_port, target_port) = flows::ports(place, size.contents);
    let length = size.udp_bytes();
    // The length counts twice: it is also in the pseudo-header.
    let sum = sum
        + word(u16::from(UDP))
        + word(source_port)
        + word(target_port)
        + 2 * word(length)
        + stamp_sum;
    put16(udp, 0, source_port);
    put16(udp, 2, target_port);
    put16(udp, 4, length);
    udp[6..].copy_from_slice(&udp_checksum(sum));
}

/// The UDP checksum field: 0 means "none" (RFC 768), so a sum of 0 is sent as 0xffff.
#[inline]
pub(crate) fn udp_checksum(sum: u64) -> [u8; 2] {
    match finish(sum) {
        [0, 0] => [0xff, 0xff],
        checksum => checksum,
    }
}

/// An IPv6 address as part of a partial sum.
#[inline]
pub(crate) fn address_sum(address: u128) -> u64 {
    let words = [96, 64, 32, 0].map(|shift| dword((address >> shift) as u32));
    words.iter().sum()
}

/// The address as a number; IPv4 is mapped.
pub(crate) fn as_ipv6(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().into(),
        IpAddr::V6(address) => address.into(),
    }
}

pub(crate) fn put_ethernet(head: &mut [u8], addresses: &Addresses, ethertype: u16) {
    head[..6].copy_from_slice(&addresses.target_mac);
    head[6..12].copy_from_slice(&addresses.source_mac);
    put16(head, 12, ethertype);
}

/// An IPv4 header without length, checksum and addresses. "Don't fragment" is set, so it needs no
/// identification (RFC 6864 §4.1).
pub(crate) fn put_ipv4(header: &mut [u8], protocol: u8) {
    header[0] = 0x45;
    header[6] = 0x40;
    header[8] = TTL;
    header[9] = protocol;
}

/// An IPv6 header without length and addresses.
pub(crate) fn put_ipv6(header: &mut [u8], protocol: u8) {
    header[0] = 0x60;
    header[6] = protocol;
    header[7] = TTL;
}
