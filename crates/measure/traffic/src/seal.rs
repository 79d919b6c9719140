//! Sealing as the DUT's peer would: ESP in UDP (RFC 3948) around the inner packet of a test frame.

use crate::flows::Place;
use crate::frames::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, address_sum, as_ipv6, put_ethernet, put_ipv4, put_ipv6,
    udp_checksum,
};
use crate::keys::Keys;
use crate::schedule::Part;
use crate::spec::{Addresses, Esp};
use esp::{OutboundSa, TRAILER_ROOM};
use std::net::IpAddr;
use wire::checksum::{Sum, finish, portable, word};
use wire::headers::{IPV4_IN_IP, IPV6_IN_IP, UDP, put16};
use wire::mix::{ETHERNET_HEADER_BYTES, FRAME_BYTES_MAX};
use wire::overhead::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, UDP_HEADER_BYTES};
use wire::stamp::pattern;

const IP: usize = ETHERNET_HEADER_BYTES;
/// Longest outer headers.
const OUTER_MAX: usize = IP + IPV6_HEADER_BYTES + UDP_HEADER_BYTES;

/// The SAs of a sender's lanes, and the headers around them.
pub(crate) struct Sealer {
    /// By slot; without those of other threads' lanes.
    sas: Vec<Option<OutboundSa>>,
    lanes: u32,
    tunnels: u32,
    outer: Outer,
    next_header: u8,
    /// The inner packet behind its Ethernet header. The pattern is in its place and never changes.
    inner: Box<[u8]>,
}

impl Sealer {
    /// A sealer for the flows of `part`. `head` is the length of everything in front of the
    /// pattern.
    pub(crate) fn new(
        esp: &Esp,
        addresses: &Addresses,
        part: Part,
        keys: &Keys,
        head: usize,
    ) -> Self {
        // Flow i has lane i mod lanes and part i mod parts.
        assert_eq!(u32::from(esp.lanes) % part.of, 0, "parts divide lanes");
        let own = |slot: &u16| u32::from(*slot % esp.lanes) % part.of == part.index;
        let sas = (0..esp.lanes * esp.tunnels)
            .map(|slot| own(&slot).then(|| keys.outbound(slot)))
            .collect();
        let mut inner = vec![0; usize::from(FRAME_BYTES_MAX) + TRAILER_ROOM].into_boxed_slice();
        let room = usize::from(FRAME_BYTES_MAX) - head;
        inner[head..head + room].copy_from_slice(pattern(room));
        Self {
            sas,
            lanes: esp.lanes.into(),
            tunnels: esp.tunnels.into(),
            outer: Outer::new(esp, addresses),
            next_header: if addresses.source.is_ipv4() {
                IPV4_IN_IP
            } else {
                IPV6_IN_IP
            },
            inner,
        }
    }

    /// The buffer for the next inner frame's headers and stamp.
    #[inline]
    pub(crate) fn inner(&mut self) -> &mut [u8] {
        &mut self.inner
    }

    /// Seals the inner frame of `inner_bytes` into `slot`; returns the length written.
    ///
    /// # Errors
    /// When the SA has no sequence numbers left, or the packet does not fit.
    #[inline]
    pub(crate) fn seal(
        &mut self,
        slot: &mut [u8],
        inner_bytes: usize,
        place: Place,
    ) -> Result<usize, esp::SealError> {
        let tunnel = if self.tunnels > 1 { place.tunnel } else { 0 };
        let slot_number = tunnel * self.lanes + place.lane;
        let sa = self.sas[slot_number as usize]
            .as_mut()
            .expect("a part's flows go by its own lanes");
        let at = self.outer.head_bytes;
        let dst = slot.get_mut(at..).ok_or(esp::SealError::NoRoom)?;
        let sealed = sa.seal(
            &mut self.inner[IP..],
            inner_bytes - IP,
            self.next_header,
            dst,
        )?;
        self.outer.write(slot, sealed, place.lane as u16);
        Ok(at + sealed)
    }
}

/// Ethernet, IP and UDP headers in front of ESP.
struct Outer {
    head: [u8; OUTER_MAX],
    head_bytes: usize,
    ipv6: bool,
    /// Partial sum of the IPv4 header, or of the addresses of IPv6; without the length.
    sum: u64,
    port: u16,
    checksum: Sum,
}

impl Outer {
    fn new(esp: &Esp, addresses: &Addresses) -> Self {
        let mut head = [0; OUTER_MAX];
        let (head_bytes, sum) = match (esp.local, esp.remote) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                put_ethernet(&mut head, addresses, ETHERTYPE_IPV4);
                put_ipv4(&mut head[IP..]);
                head[IP + 12..IP + 16].copy_from_slice(&local.octets());
                head[IP + 16..IP + 20].copy_from_slice(&remote.octets());
                let udp = IP + IPV4_HEADER_BYTES;
                (udp + UDP_HEADER_BYTES, portable(&head[IP..udp], 0))
            }
            (local, remote) => {
                put_ethernet(&mut head, addresses, ETHERTYPE_IPV6);
                put_ipv6(&mut head[IP..]);
                let (local, remote) = (as_ipv6(local), as_ipv6(remote));
                head[IP + 8..IP + 24].copy_from_slice(&local.to_be_bytes());
                head[IP + 24..IP + 40].copy_from_slice(&remote.to_be_bytes());
                (OUTER_MAX, address_sum(local) + address_sum(remote))
            }
        };
        Self {
            head,
            head_bytes,
            ipv6: esp.local.is_ipv6(),
            sum,
            port: esp.port,
            checksum: engine::checksum::fastest(),
        }
    }

    /// Writes the headers around `sealed` bytes of ESP, which are already in `slot`.
    #[inline]
    fn write(&self, slot: &mut [u8], sealed: usize, lane: u16) {
        let (head, esp) = slot.split_at_mut(self.head_bytes);
        head.copy_from_slice(&self.head[..self.head_bytes]);
        // A slot is far shorter than 64 KB.
        let udp_bytes = (UDP_HEADER_BYTES + sealed) as u16;
        let (ip, udp) = head[IP..].split_at_mut(self.head_bytes - IP - UDP_HEADER_BYTES);
        let port = self.port + lane;
        put16(udp, 0, port);
        put16(udp, 2, port);
        put16(udp, 4, udp_bytes);
        if self.ipv6 {
            put16(ip, 4, udp_bytes);
            // Over IPv6 a receiver need not accept a checksum of zero (RFC 8200 §8.1).
            let sum = self.sum + word(u16::from(UDP)) + 2 * word(udp_bytes) + 2 * word(port);
            let sum = udp_checksum((self.checksum)(&esp[..sealed], sum));
            udp[6..8].copy_from_slice(&sum);
        } else {
            let total_bytes = IPV4_HEADER_BYTES as u16 + udp_bytes;
            put16(ip, 2, total_bytes);
            let sum = finish(self.sum + word(total_bytes));
            ip[10..12].copy_from_slice(&sum);
        }
    }
}
