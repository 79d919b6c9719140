//! Hostile packets, derived from captured sealed ones. Pure: bytes in, bytes out.
//!
//! Headers below the seal always remain valid: the kernel would drop invalid ones before a DUT sees
//! them.

use crate::frames::udp_checksum;
use std::ops::Range;
use traffic_spec::SealedForm;
use wire::checksum::{portable, word};
use wire::ethernet::EthernetView;
use wire::headers::{ESP, IpView, UDP, be16, be32, put32};
use wire::overhead::{UDP_HEADER_BYTES, WIREGUARD_BYTES};

/// The distance of a forged sequence number from the captured one: more than a fast sender advances
/// while the packet is on its way, so that no replay check stops it, and less than what any check
/// takes for a wrap.
pub const AHEAD: u32 = 1 << 16;

/// On this port IKE messages have no prefix (RFC 7296 §2) that distinguishes them from ESP.
const IKE_PORT: u16 = 500;
const UDP_CHECKSUM_AT: usize = 6;

/// Header and shortest integrity check value of ESP (RFC 4303 §2).
const ESP_BYTES_MIN: usize = 8 + 8;
const WIREGUARD_DATA: [u8; 4] = [4, 0, 0, 0];
/// Header and tag of OpenVPN's `P_DATA_V2`.
const OPENVPN_BYTES_MIN: usize = 8 + 16;
/// Its opcode, in the upper five bits of the first byte.
const P_DATA_V2: u8 = 9;

/// The parts of a sealed packet in a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    form: SealedForm,
    /// Offset of the IP packet.
    ip_at: usize,
    ip: IpView,
    /// From the first sealed byte, behind UDP if present, to the end.
    payload: Range<usize>,
}

impl Sealed {
    /// Finds the sealed packet in a frame: of this form, in UDP from or to one of `ports`, or bare
    /// ESP if `ports` is empty. `None` for anything else: key exchanges, fragments, truncated
    /// packets.
    #[must_use]
    pub fn find(frame: &[u8], form: SealedForm, ports: &[u16]) -> Option<Self> {
        let ethernet = EthernetView::parse(frame)?;
        let ip = ethernet.ip?;
        let ip_at = ethernet.header_bytes;
        let packet = &frame[ip_at..];
        // Only the first fragment has a header, and no fragment has a whole packet.
        if ip.is_ipv4_fragment(packet) {
            return None;
        }
        let end = ip_at + ip.total_bytes;
        let start = ip_at + ip.header_bytes;
        let payload = if ports.is_empty() {
            (ip.protocol == ESP && form == SealedForm::Esp).then_some(start..end)?
        } else {
            in_udp(&frame[start..end], &ip, form, ports)?;
            start + UDP_HEADER_BYTES..end
        };
        let looks_sealed = match form {
            SealedForm::Esp => is_esp(&frame[payload.clone()]),
            SealedForm::WireGuard => is_wireguard(&frame[payload.clone()]),
            SealedForm::OpenVpn => is_openvpn(&frame[payload.clone()]),
        };
        looks_sealed.then_some(Self {
            form,
            ip_at,
            ip,
            payload,
        })
    }

    /// Range of the sealed bytes in the frame.
    #[must_use]
    pub fn payload(&self) -> Range<usize> {
        self.payload.clone()
    }

    /// Advances the sequence number by [`AHEAD`] and flips a bit of the last byte. `frame` is the
    /// frame that was parsed.
    pub fn spoil(&self, frame: &mut [u8]) {
        let payload = &mut frame[self.payload.clone()];
        match self.form {
            SealedForm::Esp | SealedForm::OpenVpn => {
                let sequence = be32(payload, 4).wrapping_add(AHEAD);
                put32(payload, 4, sequence);
            }
            SealedForm::WireGuard => {
                if let Some(field) = payload[8..].first_chunk_mut() {
                    *field = u64::from_le_bytes(*field)
                        .wrapping_add(AHEAD.into())
                        .to_le_bytes();
                }
            }
        }
        // Every form authenticates it; of ESP and WireGuard it is part of the check value.
        if let Some(last) = payload.last_mut() {
            *last ^= 1;
        }
        self.renew_checksum(frame);
    }

    /// Replaces the sealed bytes by random ones. The SPI of ESP is never 0, which would mark IKE.
    pub fn scramble(&self, frame: &mut [u8], random: &mut Random) {
        let payload = &mut frame[self.payload.clone()];
        random.fill(payload);
        if self.form == SealedForm::Esp && be32(payload, 0) == 0 {
            payload[0] = 1;
        }
        self.renew_checksum(frame);
    }

    /// Recomputes the UDP checksum, if there is one.
    fn renew_checksum(&self, frame: &mut [u8]) {
        let packet = &mut frame[self.ip_at..][..self.ip.total_bytes];
        let pseudo = self.ip.pseudo_sum(packet);
        let transport = &mut packet[self.ip.header_bytes..];
        if self.ip.protocol != UDP || be16(transport, UDP_CHECKSUM_AT) == 0 {
            return;
        }
        let field = UDP_CHECKSUM_AT..UDP_CHECKSUM_AT + 2;
        transport[field.clone()].fill(0);
        // The pseudo-header has the length a second time (RFC 768).
        let length = word(be16(transport, 4));
        let sum = udp_checksum(portable(transport, pseudo + length));
        transport[field].copy_from_slice(&sum);
    }
}

/// Checks that a transport header belongs to a whole datagram from or to one of the ports.
fn in_udp(transport: &[u8], ip: &IpView, form: SealedForm, ports: &[u16]) -> Option<()> {
    if ip.protocol != UDP || transport.len() < UDP_HEADER_BYTES {
        return None;
    }
    let own = [be16(transport, 0), be16(transport, 2)];
    // A device without NAT sends IKE and bare ESP; a port of UDP that carries ESP is never 500.
    let is_ike = form == SealedForm::Esp && own.contains(&IKE_PORT);
    let is_whole = usize::from(be16(transport, 4)) == transport.len();
    (is_whole && !is_ike && own.iter().any(|port| ports.contains(port))).then_some(())
}

/// Excludes IKE behind its four zero bytes, and keepalives (RFC 3948 §2.2, §2.3).
fn is_esp(payload: &[u8]) -> bool {
    payload.len() >= ESP_BYTES_MIN && be32(payload, 0) != 0
}

fn is_wireguard(payload: &[u8]) -> bool {
    payload.len() >= WIREGUARD_BYTES && payload.starts_with(&WIREGUARD_DATA)
}

fn is_openvpn(payload: &[u8]) -> bool {
    payload.len() >= OPENVPN_BYTES_MIN && payload[0] >> 3 == P_DATA_V2
}

/// SplitMix64 (Steele, Lea, Flood 2014): deterministic for a seed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[inline]
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        let (words, rest) = bytes.as_chunks_mut::<8>();
        for word in words {
            *word = self.next().to_le_bytes();
        }
        let last = self.next().to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}
