//! Sealing as the DUT's peer would: ESP, bare (RFC 4303) or in UDP (RFC 3948), or WireGuard's
//! transport data around the inner packet of a test frame.

use crate::error::TrafficError;
use crate::flows::Place;
use crate::frames::{address_sum, as_ipv6, put_ethernet, put_ipv4, put_ipv6, udp_checksum};
use crate::keys::Keys;
use crate::keys::agreed::AgreedKeys;
use crate::keys::wireguard::{Sealing, WireGuardKeys};
use esp::{OutboundSa, TRAILER_ROOM};
use std::iter::once;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use traffic_spec::{Addresses, Part, Peer};
use wire::checksum::{Sum, finish, portable, word};
use wire::ethernet;
use wire::headers::{ESP, IPV4_IN_IP, IPV6_IN_IP, UDP, put16};
use wire::mix::{ETHERNET_HEADER_BYTES, FRAME_BYTES_MAX};
use wire::overhead::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, UDP_HEADER_BYTES};
use wire::stamp::pattern;

const IP: usize = ETHERNET_HEADER_BYTES;
/// Longest outer headers.
const OUTER_MAX: usize = IP + IPV6_HEADER_BYTES + UDP_HEADER_BYTES;

/// Interval at which a sender looks for new keys, in nanoseconds. A device keeps old ones for late
/// packets, strongSwan for 5 s.
const LOOK_NS: u64 = 5_000_000;
/// The interval as a multiple of the last look's duration: many SAs take a while to search.
const LOOK_SHARE: u64 = 20;

/// Seals the packets of a sender, and writes the headers around them.
pub(crate) struct Sealer {
    seals: Seals,
    outer: Outer,
    /// The inner packet behind its Ethernet header. The pattern is in its place and never changes.
    inner: Box<[u8]>,
}

enum Seals {
    Esp(Esp),
    WireGuard(WireGuard),
}

/// The SAs of a sender's lanes.
struct Esp {
    /// By slot; without the SAs of other threads.
    sas: Vec<Option<OutboundSa>>,
    lanes: u32,
    tunnels: u32,
    next_header: u8,
    /// Set if keys change while frames are sent.
    renewal: Option<Renewal>,
}

/// The newest session with the device.
struct WireGuard {
    keys: Arc<WireGuardKeys>,
    /// Handshakes when it was taken.
    made: u64,
    sealing: Sealing,
}

/// Looks for keys that the station's IKE daemon has renewed.
struct Renewal {
    keys: Arc<AgreedKeys>,
    /// [`AgreedKeys::version`] of the SAs in use.
    seen: u64,
    /// Source and target of each slot's packets.
    addresses: Vec<(IpAddr, IpAddr)>,
    next_look_ns: u64,
    /// Packets that every SA can seal before the next look.
    spare: u64,
}

impl Sealer {
    /// A sealer for the flows of `part`. `head` is the length of everything in front of the
    /// pattern.
    ///
    /// # Errors
    /// [`TrafficError`] when no keys have been agreed on.
    pub(crate) fn new(
        peer: &Peer,
        wrapped: &Addresses,
        part: Part,
        keys: &Keys,
        head: usize,
    ) -> Result<Self, TrafficError> {
        let mut inner = vec![0; usize::from(FRAME_BYTES_MAX) + TRAILER_ROOM].into_boxed_slice();
        let room = usize::from(FRAME_BYTES_MAX) - head;
        // Sealing reads it and writes elsewhere, so it is written once.
        inner[head..head + room].copy_from_slice(pattern(room));
        Ok(Self {
            seals: match keys.wireguard() {
                None => Seals::Esp(Esp::new(peer, wrapped, part, keys)?),
                Some(keys) => Seals::WireGuard(WireGuard::new(keys, part)?),
            },
            outer: Outer::new(peer, wrapped),
            inner,
        })
    }

    /// Whether keys may change while frames are sent.
    #[inline]
    pub(crate) const fn has_renewals(&self) -> bool {
        !matches!(self.seals, Seals::Esp(Esp { renewal: None, .. }))
    }

    /// Changes to keys that have been renewed; to be called before up to `packets` are sealed.
    ///
    /// # Errors
    /// [`TrafficError`] when an SA has fewer sequence numbers left.
    #[inline(never)]
    pub(crate) fn renew(&mut self, packets: u64, now_ns: u64) -> Result<(), TrafficError> {
        match &mut self.seals {
            Seals::Esp(esp) => esp.renew(packets, now_ns),
            Seals::WireGuard(session) => {
                session.renew();
                Ok(())
            }
        }
    }

    /// Ends the use of keys that the next sender continues with.
    ///
    /// # Errors
    /// [`TrafficError::Log`].
    pub(crate) fn give_back(&self) -> Result<(), TrafficError> {
        match &self.seals {
            Seals::Esp(Esp {
                renewal: Some(renewal),
                sas,
                ..
            }) => renewal.keys.give_back(sas.iter().flatten()),
            _ => Ok(()),
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
        let at = self.outer.head_bytes;
        let dst = slot.get_mut(at..).ok_or(esp::SealError::NoRoom)?;
        let inner = &mut self.inner[IP..];
        let sealed = match &mut self.seals {
            Seals::Esp(esp) => esp.seal(inner, inner_bytes - IP, dst, place)?,
            Seals::WireGuard(session) => session.sealing.seal(inner, inner_bytes - IP, dst),
        };
        // Last: the length in the outer header is known only now.
        self.outer.write(slot, sealed, place.lane as u16);
        Ok(at + sealed)
    }
}

impl Esp {
    fn new(
        peer: &Peer,
        wrapped: &Addresses,
        part: Part,
        keys: &Keys,
    ) -> Result<Self, TrafficError> {
        // Otherwise two threads would seal with one SA, and repeat sequence numbers.
        assert!(peer.divides_among(part.of), "parts divide lanes or tunnels");
        let lanes_are_divided = u32::from(peer.lanes).is_multiple_of(part.of);
        let own = |slot: &u16| {
            // The same division as for the flows, so that a thread has the SAs of its flows.
            let number = if lanes_are_divided {
                slot % peer.lanes
            } else {
                slot / peer.lanes
            };
            u32::from(number) % part.of == part.index
        };
        // Before the SAs are read, so that a renewal in between is noticed.
        let agreed = keys.agreed().map(|keys| (keys, keys.version()));
        let addresses = |slot: u16| {
            let tunnel = slot / peer.lanes;
            <(IpAddr, IpAddr)>::from([wrapped.source, wrapped.target].map(|it| nth(it, tunnel)))
        };
        let slots = 0..peer.lanes * peer.tunnels;
        let sas = slots
            .clone()
            .map(|slot| {
                let sa = own(&slot).then(|| keys.outbound(slot, addresses(slot)));
                sa.transpose()
            })
            .collect::<Result<_, _>>()?;
        let renewal = agreed.map(|(keys, seen)| Renewal {
            keys: Arc::clone(keys),
            seen,
            addresses: slots.map(addresses).collect(),
            next_look_ns: 0,
            spare: 0,
        });
        Ok(Self {
            sas,
            lanes: peer.lanes.into(),
            tunnels: peer.tunnels.into(),
            next_header: match wrapped.source {
                IpAddr::V4(_) => IPV4_IN_IP,
                IpAddr::V6(_) => IPV6_IN_IP,
            },
            renewal,
        })
    }

    #[inline]
    fn renew(&mut self, packets: u64, now_ns: u64) -> Result<(), TrafficError> {
        match &mut self.renewal {
            None => Ok(()),
            Some(renewal) if now_ns < renewal.next_look_ns && renewal.spare >= packets => {
                renewal.spare -= packets;
                Ok(())
            }
            Some(renewal) => renewal.look(&mut self.sas, packets, now_ns),
        }
    }

    #[inline]
    fn seal(
        &mut self,
        inner: &mut [u8],
        bytes: usize,
        dst: &mut [u8],
        place: Place,
    ) -> Result<usize, esp::SealError> {
        // One tunnel has every network, whatever the flows are numbered.
        let tunnel = if self.tunnels > 1 { place.tunnel } else { 0 };
        let slot = tunnel * self.lanes + place.lane;
        let sa = self.sas[slot as usize]
            .as_mut()
            .expect("a part's flows go by its own SAs");
        sa.seal(inner, bytes, self.next_header, dst)
    }
}

impl WireGuard {
    fn new(keys: &Arc<WireGuardKeys>, part: Part) -> Result<Self, TrafficError> {
        assert_eq!(
            part.of, 1,
            "one thread seals, so that no counter is used twice"
        );
        let made = keys.made();
        let sealing = keys.sealing().ok_or(TrafficError::SessionTaken)?;
        Ok(Self {
            sealing,
            keys: Arc::clone(keys),
            made,
        })
    }

    /// Switches to the newest session, if there is a new one.
    #[inline]
    fn renew(&mut self) {
        let made = self.keys.made();
        if made != self.made {
            self.made = made;
            if let Some(sealing) = self.keys.sealing() {
                self.sealing = sealing;
            }
        }
    }
}

impl Renewal {
    #[cold]
    fn look(
        &mut self,
        sas: &mut [Option<OutboundSa>],
        packets: u64,
        now_ns: u64,
    ) -> Result<(), TrafficError> {
        let begun = Instant::now();
        let version = self.keys.look()?;
        if version != self.seen {
            self.seen = version;
            for (sa, &(source, target)) in sas.iter_mut().zip(&self.addresses) {
                let Some(sa) = sa else { continue };
                let spi = self.keys.outbound_spi(source, target);
                // Without a newer SA, packets of the old one show how the device treats them.
                if spi.is_none_or(|spi| spi == sa.spi()) {
                    continue;
                }
                match self.keys.outbound(source, target) {
                    Ok(new) => {
                        let old = std::mem::replace(sa, new);
                        self.keys.give_back(once(&old))?;
                    }
                    // It was deleted meanwhile, and the next one shows as a change.
                    Err(TrafficError::NoSa { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        for sa in sas.iter().flatten() {
            if sa.remaining().packets < packets {
                return Err(TrafficError::Exhausted { spi: sa.spi() });
            }
        }
        // The scarcest SA decides when to look again.
        let left = sas.iter().flatten().map(|sa| sa.remaining().packets);
        self.spare = left.min().unwrap_or(u64::MAX) - packets;
        let took_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.next_look_ns = now_ns + LOOK_NS.max(took_ns.saturating_mul(LOOK_SHARE));
        Ok(())
    }
}

/// The n-th address after one.
fn nth(first: IpAddr, n: u16) -> IpAddr {
    match first {
        IpAddr::V4(first) => IpAddr::V4((u32::from(first) + u32::from(n)).into()),
        IpAddr::V6(first) => IpAddr::V6((u128::from(first) + u128::from(n)).into()),
    }
}

/// Ethernet and IP headers in front of the sealed packet, and UDP's unless ESP is bare.
struct Outer {
    head: [u8; OUTER_MAX],
    /// Length up to the end of the IP header.
    ip_end: usize,
    /// Length of all.
    head_bytes: usize,
    ipv6: bool,
    /// Partial sum of the IPv4 header, or of the addresses of IPv6; without the length.
    sum: u64,
    /// UDP port of lane 0.
    port: Option<u16>,
    checksum: Sum,
}

impl Outer {
    fn new(peer: &Peer, addresses: &Addresses) -> Self {
        let mut head = [0; OUTER_MAX];
        let (protocol, udp_bytes) = match peer.port {
            Some(_) => (UDP, UDP_HEADER_BYTES),
            None => (ESP, 0),
        };
        let (ip_end, sum) = match (peer.local, peer.remote) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                put_ethernet(&mut head, addresses, ethernet::IPV4);
                put_ipv4(&mut head[IP..], protocol);
                head[IP + 12..IP + 16].copy_from_slice(&local.octets());
                head[IP + 16..IP + 20].copy_from_slice(&remote.octets());
                let ip_end = IP + IPV4_HEADER_BYTES;
                // With the addresses, which are the same in all packets of the peer.
                (ip_end, portable(&head[IP..ip_end], 0))
            }
            (local, remote) => {
                put_ethernet(&mut head, addresses, ethernet::IPV6);
                put_ipv6(&mut head[IP..], protocol);
                let (local, remote) = (as_ipv6(local), as_ipv6(remote));
                head[IP + 8..IP + 24].copy_from_slice(&local.to_be_bytes());
                head[IP + 24..IP + 40].copy_from_slice(&remote.to_be_bytes());
                let sum = address_sum(local) + address_sum(remote);
                (IP + IPV6_HEADER_BYTES, sum)
            }
        };
        Self {
            head,
            ip_end,
            head_bytes: ip_end + udp_bytes,
            ipv6: peer.local.is_ipv6(),
            sum,
            port: peer.port,
            checksum: engine::checksum::fastest(),
        }
    }

    /// Writes the headers around `sealed` bytes, which are already in `slot`.
    #[inline]
    fn write(&self, slot: &mut [u8], sealed: usize, lane: u16) {
        let (head, payload) = slot.split_at_mut(self.head_bytes);
        head.copy_from_slice(&self.head[..self.head_bytes]);
        let (head, udp) = head.split_at_mut(self.ip_end);
        let ip = &mut head[IP..];
        // Behind the IP header. A slot is far shorter than 64 KB.
        let payload_bytes = (udp.len() + sealed) as u16;
        if self.ipv6 {
            put16(ip, 4, payload_bytes);
        } else {
            let total_bytes = IPV4_HEADER_BYTES as u16 + payload_bytes;
            put16(ip, 2, total_bytes);
            let sum = finish(self.sum + word(total_bytes));
            ip[10..12].copy_from_slice(&sum);
        }
        let Some(first) = self.port else { return };
        // The same on both ends, as Cipherbench's encryptor has it.
        let port = first + lane;
        put16(udp, 0, port);
        put16(udp, 2, port);
        put16(udp, 4, payload_bytes);
        if self.ipv6 {
            // Over IPv6 a receiver need not accept a checksum of zero (RFC 8200 §8.1).
            let sum = self.sum + word(u16::from(UDP)) + 2 * word(payload_bytes) + 2 * word(port);
            let sum = udp_checksum((self.checksum)(&payload[..sealed], sum));
            udp[6..8].copy_from_slice(&sum);
        }
    }
}
