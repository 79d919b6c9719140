//! The frames that compare clocks: an experimental EtherType on a cable between gateways, UDP
//! between the stations' test addresses if boxes, which may route, are in between.

use std::net::Ipv4Addr;
use wire::checksum::{dword, finish, portable, word};
use wire::ethernet::{self, HEADER_BYTES};
use wire::headers::{UDP, be16, put16};
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};

/// Local experimental EtherType 1 (IEEE Std 802): no protocol that passes gateways.
pub(crate) const ETHERTYPE: u16 = 0x88b5;
/// UDP port of both ends: the same number, of no registered service.
pub(crate) const PORT: u16 = ETHERTYPE;
/// First bytes of every probe, in two words.
pub(crate) const MAGIC: [u32; 2] = [0x4342_636c, 0x6f63_6b73];
const BODY_BYTES: usize = 58;
/// Length of a probe, without FCS.
pub(crate) const PROBE_BYTES: usize = HEADER_BYTES + BODY_BYTES;
/// Length of one over UDP, without FCS.
pub(crate) const UDP_PROBE_BYTES: usize = UDP_BODY_AT + BODY_BYTES;
/// Offset of the body in a probe over UDP.
pub(crate) const UDP_BODY_AT: usize = HEADER_BYTES + IPV4_HEADER_BYTES + UDP_HEADER_BYTES;
const TTL: u8 = 64;

/// The addresses of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) target: [u8; 6],
    pub(crate) source: [u8; 6],
    /// Source and target of one over UDP; `None`: the EtherType.
    pub(crate) udp: Option<[Ipv4Addr; 2]>,
}

impl Addresses {
    /// Returns the addresses for an answer to a frame with these addresses.
    pub(crate) fn back_from(self, own: [u8; 6]) -> Self {
        Self {
            target: self.source,
            source: own,
            udp: self.udp.map(|[source, target]| [target, source]),
        }
    }
}

/// The body of a probe, or of its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) is_answer: bool,
    /// Of an answer: whether its times are by the card's stamps.
    pub(crate) by_card: bool,
    pub(crate) number: u32,
    /// Of an answer: when the probe arrived, and when the answer to the one before left, by
    /// CLOCK_REALTIME; 0 if that one was not answered.
    pub(crate) received_ns: i64,
    pub(crate) last_answered_ns: i64,
    /// Of an answer: how far that clock is ahead of the answering side's CLOCK_MONOTONIC, and by
    /// how much that may be wrong.
    pub(crate) ahead_ns: i64,
    pub(crate) within_ns: u64,
    /// Of an answer: by how much the kernel corrects the clock's rate, in parts of 10^9.
    pub(crate) corrected_ppb: i64,
}

/// More than the time between two readings of a clock.
const WITHIN_NS_MAX: u64 = 1_000_000_000;
/// More than a kernel corrects: a tenth and 500 ppm (adjtimex(2)).
const CORRECTED_PPB_MAX: u64 = 200_000_000;
/// Times of day until the year 2067 fit, and the difference of two leaves room for a third.
const TIME_NS_MAX: i64 = i64::MAX / 3;

impl Probe {
    pub(crate) fn write(self, addresses: &Addresses) -> Vec<u8> {
        let body = self.body();
        let mut frame = [addresses.target, addresses.source].concat();
        match addresses.udp {
            None => frame.extend(ETHERTYPE.to_be_bytes()),
            Some(ends) => {
                frame.extend(ethernet::IPV4.to_be_bytes());
                frame.extend(udp_headers(ends, &body));
            }
        }
        frame.extend(body);
        frame
    }

    fn body(self) -> [u8; BODY_BYTES] {
        let mut body = [0; BODY_BYTES];
        let fields: [&[u8]; 9] = [
            &MAGIC[0].to_be_bytes(),
            &MAGIC[1].to_be_bytes(),
            &[u8::from(self.is_answer) | u8::from(self.by_card) << 1],
            &self.number.to_be_bytes(),
            &self.received_ns.to_be_bytes(),
            &self.last_answered_ns.to_be_bytes(),
            &self.ahead_ns.to_be_bytes(),
            &self.within_ns.to_be_bytes(),
            &self.corrected_ppb.to_be_bytes(),
        ];
        let mut rest = &mut body[..];
        for field in fields {
            let (here, behind) = rest.split_at_mut(field.len());
            here.copy_from_slice(field);
            rest = behind;
        }
        body
    }

    /// Reads a frame, with its addresses; `None` if it is no probe.
    pub(crate) fn read(frame: &[u8]) -> Option<(Self, Addresses)> {
        let (ethernet, packet) = frame.split_first_chunk::<HEADER_BYTES>()?;
        let (udp, body) = match be16(ethernet, 12) {
            ETHERTYPE => (None, packet),
            ethernet::IPV4 => {
                let (ends, body) = udp_payload(packet)?;
                (Some(ends), body)
            }
            _ => return None,
        };
        let addresses = Addresses {
            target: *ethernet.first_chunk()?,
            source: *ethernet[6..].first_chunk()?,
            udp,
        };
        Some((Self::read_body(body)?, addresses))
    }

    fn read_body(body: &[u8]) -> Option<Self> {
        fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
            let (field, behind) = rest.split_first_chunk()?;
            *rest = behind;
            Some(*field)
        }
        // Exact, because a probe is too long for Ethernet to pad it.
        let mut rest = (body.len() == BODY_BYTES).then_some(body)?;
        let magic = [take(&mut rest)?, take(&mut rest)?].map(u32::from_be_bytes);
        let [flags] = take(&mut rest)?;
        let probe = Self {
            is_answer: flags & 1 != 0,
            by_card: flags & 2 != 0,
            number: u32::from_be_bytes(take(&mut rest)?),
            received_ns: i64::from_be_bytes(take(&mut rest)?),
            last_answered_ns: i64::from_be_bytes(take(&mut rest)?),
            ahead_ns: i64::from_be_bytes(take(&mut rest)?),
            within_ns: u64::from_be_bytes(take(&mut rest)?),
            corrected_ppb: i64::from_be_bytes(take(&mut rest)?),
        };
        (magic == MAGIC).then_some(probe)
    }

    /// Whether times and rates are possible.
    pub(crate) fn is_plausible(&self) -> bool {
        let times = [self.received_ns, self.last_answered_ns];
        times.iter().all(|time| (0..TIME_NS_MAX).contains(time))
            && self.ahead_ns.unsigned_abs() < TIME_NS_MAX.unsigned_abs()
            && self.within_ns <= WITHIN_NS_MAX
            && self.corrected_ppb.unsigned_abs() <= CORRECTED_PPB_MAX
    }
}

/// Whether a frame is a probe on a cable, or its answer.
pub(crate) fn is_probe(frame: &[u8]) -> bool {
    Probe::read(frame).is_some_and(|(_, addresses)| addresses.udp.is_none())
}

/// The IPv4 and UDP headers in front of a payload. "Don't fragment" is set, so it needs no
/// identification (RFC 6864 §4.1).
fn udp_headers([source, target]: [Ipv4Addr; 2], payload: &[u8]) -> Vec<u8> {
    let udp_bytes = (UDP_HEADER_BYTES + payload.len()) as u16;
    let mut headers = vec![0; IPV4_HEADER_BYTES + UDP_HEADER_BYTES];
    let (ip, udp) = headers.split_at_mut(IPV4_HEADER_BYTES);
    // Version 4, with a header of 5 words.
    ip[0] = 0x45;
    // The total length. Fields that are not set here stay 0.
    put16(ip, 2, IPV4_HEADER_BYTES as u16 + udp_bytes);
    ip[6] = 0x40;
    ip[8] = TTL;
    ip[9] = UDP;
    ip[12..16].copy_from_slice(&source.octets());
    ip[16..].copy_from_slice(&target.octets());
    // Over the header with a checksum of 0, as RFC 791 asks for.
    let sum = finish(portable(ip, 0));
    ip[10..12].copy_from_slice(&sum);
    put16(udp, 0, PORT);
    put16(udp, 2, PORT);
    put16(udp, 4, udp_bytes);
    // The pseudo header of RFC 768: both addresses, the protocol and the length.
    let pseudo = [source, target].map(|address| dword(address.into()));
    let pseudo = pseudo[0] + pseudo[1] + word(u16::from(UDP)) + word(udp_bytes);
    let sum = match finish(portable(payload, portable(udp, pseudo))) {
        // 0 is "none" (RFC 768).
        [0, 0] => [0xff, 0xff],
        sum => sum,
    };
    udp[6..].copy_from_slice(&sum);
    headers
}

/// Source, target and payload of a datagram between the ports of probes; `None` if it is none.
fn udp_payload(packet: &[u8]) -> Option<([Ipv4Addr; 2], &[u8])> {
    let (ip, rest) = packet.split_first_chunk::<IPV4_HEADER_BYTES>()?;
    let (udp, payload) = rest.split_first_chunk::<UDP_HEADER_BYTES>()?;
    let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
    // No options, and no fragment: neither an offset nor "more fragments".
    let is_whole = ip[0] == 0x45 && be16(ip, 6) & 0x3fff == 0;
    let is_ours = ip[9] == UDP && be16(udp, 2) == PORT;
    (is_whole && is_ours).then(|| ([address(12), address(16)], payload))
}

#[cfg(test)]
mod tests;
