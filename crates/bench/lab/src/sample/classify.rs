//! Classification of frames: sealed by the DUT, known control traffic, or neither.

use super::expected::{Expected, Markers};
use super::forms::{
    self, Bare, IKE_HEADER_BYTES, IKE_LENGTH_AT, IKE_VERSION, IKE_VERSION_AT, IKE_VERSION_MASK,
    KEEPALIVE, Meaning, Shape,
};
use crate::clock_probe as probe;
use plan::LinkForm;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use testbed::protocol::{ControlPort, SealedPort};
use wire::ethernet::{self, HEADER_BYTES};
use wire::headers::{ESP, TCP, UDP, be16, be32};
use wire::overhead::{IPV6_HEADER_BYTES, UDP_HEADER_BYTES};

const HOP_BY_HOP: u8 = 0;
const ICMP: u8 = 1;
const GRE: u8 = 47;
const ICMPV6: u8 = 58;

/// Without options.
const TCP_HEADER_BYTES: usize = 20;

/// Most first fragments remembered, to classify the rest of their packets.
const FRAGMENTS_MAX: usize = 4096;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A packet or frame in the DUT's form. `id` identifies its keys or session, such as an SPI or
    /// a receiver's index; later fragments and some forms have none.
    Sealed { id: Option<u32> },
    /// ARP, IPv6 neighbour and group discovery, a NAT keepalive, the lab's clock probes, or a key
    /// exchange that shares a sealed port.
    Control,
    /// TCP between the DUT's gateways.
    Channel,
    /// Anything else.
    Other,
}

/// Returns the kind of a whole, encrypted MACsec frame, with its association number.
fn macsec(frame: &[u8]) -> Option<Kind> {
    let is_whole = frame.len() >= usize::from(forms::MACSEC_FRAME_BYTES_LEAST);
    let tci = frame.get(HEADER_BYTES).filter(|_| is_whole)?;
    let is_encrypted = tci & forms::MACSEC_TCI_MASK == forms::MACSEC_TCI;
    is_encrypted.then(|| Kind::Sealed {
        id: Some(u32::from(tci & forms::MACSEC_AN_MASK)),
    })
}

/// Whether a frame with the EtherType of ARP holds an ARP packet and nothing else.
fn is_arp(frame: &[u8]) -> bool {
    let is_short = forms::ARP_FRAME_BYTES.contains(&u16::try_from(frame.len()).unwrap_or(u16::MAX));
    let expected = forms::ARP_BEGIN.into_iter().zip(forms::ARP_BEGIN_MASK);
    // `kind` has found the Ethernet header, so the slice is inside the frame.
    let words = frame[HEADER_BYTES..].chunks_exact(4).zip(expected);
    let mut words = words.map(|(word, (value, mask))| be32(word, 0) & mask == value);
    is_short && words.all(|is_it| is_it)
}

/// Whether an IPv6 packet is neighbour discovery (RFC 4861), or group discovery behind a hop-by-hop
/// header (RFC 2710, RFC 3810), and no longer than these can be.
fn is_discovery(packet: &[u8]) -> bool {
    let Some((header, payload)) = packet.split_at_checked(IPV6_HEADER_BYTES) else {
        return false;
    };
    let most = match (header[6], payload) {
        (ICMPV6, [forms::ND_ADVERTISEMENT, ..]) => forms::ND_LIST_BYTES_MOST,
        (ICMPV6, [133..=137, ..]) => forms::ND_FRAME_BYTES_MOST,
        (HOP_BY_HOP, [ICMPV6, 0, _, _, _, _, _, _, 130..=132 | 143, ..]) => {
            forms::ND_LIST_BYTES_MOST
        }
        _ => return false,
    };
    packet.len() + HEADER_BYTES <= usize::from(most)
}

/// Classifies frames and remembers the kind of first fragments.
pub(super) struct Classifier<'a> {
    sealed_ports: &'a [SealedPort],
    control_ports: &'a [ControlPort],
    markers: Markers<'a>,
    first_fragments: HashMap<[u8; 11], Kind>,
}

impl<'a> Classifier<'a> {
    pub(super) fn new(expected: Expected<'a>) -> Self {
        Self {
            sealed_ports: expected.sealed,
            control_ports: expected.control,
            markers: Markers::new(expected.markers),
            first_fragments: HashMap::new(),
        }
    }

    /// Whether a frame shows the stations' data in clear.
    pub(super) fn shows_marker(&self, frame: &[u8]) -> bool {
        self.markers.are_in(frame)
    }

    pub(super) fn kind(&mut self, frame: &[u8]) -> Kind {
        let Some((ethernet, packet)) = frame.split_at_checked(HEADER_BYTES) else {
            return Kind::Other;
        };
        let kind = match be16(ethernet, 12) {
            ethernet::ARP => is_arp(frame).then_some(Kind::Control),
            probe::ETHERTYPE if probe::is_probe(frame) => Some(Kind::Control),
            forms::EAPOL_ETHERTYPE if self.expects(forms::MACSEC) => Some(Kind::Control),
            forms::MACSEC_ETHERTYPE if self.expects(forms::MACSEC) => macsec(frame),
            ethernet::IPV4 => self.ipv4(packet),
            ethernet::IPV6 => is_discovery(packet).then_some(Kind::Control),
            _ => None,
        };
        match kind {
            Some(kind) => kind,
            // Nothing is known of an opaque form: every frame that shows no marker counts as
            // sealed.
            None if self.expects(LinkForm::Opaque) && !self.shows_marker(frame) => {
                Kind::Sealed { id: None }
            }
            None => Kind::Other,
        }
    }

    fn expects(&self, form: LinkForm) -> bool {
        forms::has(form, self.sealed_ports)
    }

    /// Returns `None` for a truncated or unknown packet.
    fn ipv4(&mut self, packet: &[u8]) -> Option<Kind> {
        let header = packet.first_chunk::<20>()?;
        let protocol = header[9];
        // As BPF_MSH computes it in the filter, without a minimum.
        let payload = packet.get(usize::from(header[0] & 15) * 4..)?;
        let more_or_offset = be16(header, 6) & 0x3fff;
        if protocol == TCP {
            let [source, target] = [12, 16].map(|at| <[u8; 4]>::try_from(&header[at..at + 4]));
            let ends = [source.ok()?.into(), target.ok()?.into()];
            // A control connection sends no fragments.
            return (more_or_offset == 0).then(|| self.channel(ends, payload))?;
        }
        if more_or_offset == 0 {
            return self.transport(protocol, payload);
        }
        // Source, target, protocol and identification identify a fragmented packet (RFC 791 §2.3).
        let mut packet_id = [0; 11];
        packet_id[..8].copy_from_slice(&header[12..20]);
        packet_id[8] = protocol;
        packet_id[9..].copy_from_slice(&header[4..6]);
        let is_first = more_or_offset & 0x1fff == 0;
        if !is_first {
            // Only the first fragment has the ports of UDP. If it was not seen, the protocol
            // decides.
            return match self.first_fragments.get(&packet_id) {
                Some(Kind::Sealed { .. }) => Some(Kind::Sealed { id: None }),
                Some(kind) => Some(*kind),
                None => self.bare(protocol).map(|_| Kind::Sealed { id: None }),
            };
        }
        let kind = self.transport(protocol, payload)?;
        // Bounded, because anybody on the link can send first fragments without the others.
        if self.first_fragments.len() < FRAGMENTS_MAX {
            self.first_fragments.insert(packet_id, kind);
        }
        Some(kind)
    }

    fn transport(&self, protocol: u8, payload: &[u8]) -> Option<Kind> {
        match protocol {
            UDP => self.udp(payload),
            _ => {
                let bare = self.bare(protocol)?;
                of_shapes(bare.shapes, bare.control, payload, payload.len())
            }
        }
    }

    /// Returns `None` for any connection except the DUT's.
    fn channel(&self, [source, target]: [Ipv4Addr; 2], segment: &[u8]) -> Option<Kind> {
        let header = segment.first_chunk::<TCP_HEADER_BYTES>()?;
        let number = |at| be16(header, at);
        let is_own = |port: &ControlPort| {
            let ends = (port.connector, port.listener);
            let towards = (source, target) == ends && number(2) == port.port;
            let back = (target, source) == ends && number(0) == port.port;
            towards || back
        };
        let is_known = self.control_ports.iter().any(is_own);
        is_known.then_some(Kind::Channel)
    }

    /// Returns the DUT's form directly in IP if it has this protocol.
    fn bare(&self, protocol: u8) -> Option<Bare> {
        Bare::beside(self.sealed_ports).filter(|bare| bare.protocol == protocol)
    }

    fn udp(&self, datagram: &[u8]) -> Option<Kind> {
        let (header, payload) = datagram.split_at_checked(UDP_HEADER_BYTES)?;
        let number = |at| be16(header, at);
        let known = |number| self.sealed_ports.iter().find(|port| port.port == number);
        // As in the filter: the source port decides before the target port.
        let port = known(number(0)).or_else(|| known(number(2)))?;
        // The frame may hold more (padding) or less (a first fragment).
        let bytes = usize::from(number(4)).checked_sub(UDP_HEADER_BYTES)?;
        if bytes == 1 && forms::has_keepalives(port) {
            return (*payload.first()? == KEEPALIVE).then_some(Kind::Control);
        }
        of_shapes(forms::shapes(port), port.control, payload, bytes)
    }
}

/// Classifies a packet with a header that states `bytes`; `None` if it matches no shape of its
/// form.
fn of_shapes(shapes: &[Shape], control: bool, payload: &[u8], bytes: usize) -> Option<Kind> {
    // Every form is recognised by its first four bytes, which the filter loads as one word.
    let word = u32::from_be_bytes(*payload.first_chunk()?);
    let shape = Shape::of(shapes, word)?;
    let bytes_least = usize::from(shape.bytes_least);
    if bytes.min(payload.len()) < bytes_least || !shape.is_allowed(control) {
        return None;
    }
    match shape.meaning {
        Meaning::Sealed(id) => Some(Kind::Sealed {
            id: id.read(payload),
        }),
        Meaning::Control => Some(Kind::Control),
        Meaning::Ike { at } => {
            let at = usize::from(at);
            is_ike(payload.get(at..)?, bytes - at)?.then_some(Kind::Control)
        }
    }
}

/// Whether an IKEv2 message of at most `bytes` begins here; `None` if `message` is too short.
fn is_ike(message: &[u8], bytes: usize) -> Option<bool> {
    let version = message.get(usize::from(IKE_VERSION_AT))? & IKE_VERSION_MASK;
    let length = message.get(usize::from(IKE_LENGTH_AT)..)?.first_chunk()?;
    let length = u64::from(u32::from_be_bytes(*length));
    let lengths = u64::from(IKE_HEADER_BYTES)..=bytes as u64;
    Some(version == IKE_VERSION << 4 && lengths.contains(&length))
}

/// Describes a frame, with its length: `IPv4 UDP 10.1.0.2:4000 > 10.2.0.2:5201, 1428 B`.
pub(super) fn words(frame: &[u8]) -> String {
    let what = packet_in_words(frame).unwrap_or_else(|| "a frame that is cut off".to_owned());
    format!("{what}, {} B", frame.len())
}

/// Returns `None` for a truncated frame.
fn packet_in_words(frame: &[u8]) -> Option<String> {
    let (ethernet, packet) = frame.split_at_checked(HEADER_BYTES)?;
    let (version, protocol, source, target, payload): (_, _, IpAddr, IpAddr, _) =
        match be16(ethernet, 12) {
            ethernet::IPV4 => {
                let header = packet.first_chunk::<20>()?;
                let address = |at| <[u8; 4]>::try_from(&header[at..at + 4]).ok();
                let is_first = be16(header, 6) & 0x1fff == 0;
                let payload = packet.get(usize::from(header[0] & 15) * 4..)?;
                // Later fragments have no ports.
                let payload = if is_first { payload } else { &[] };
                let (source, target) = (address(12)?.into(), address(16)?.into());
                ("IPv4", header[9], source, target, payload)
            }
            ethernet::IPV6 => {
                let (header, payload) = packet.split_at_checked(IPV6_HEADER_BYTES)?;
                let address = |at| <[u8; 16]>::try_from(&header[at..at + 16]).ok();
                let (source, target) = (address(8)?.into(), address(24)?.into());
                ("IPv6", header[6], source, target, payload)
            }
            other => return Some(format!("EtherType {other:#06x}")),
        };
    let (name, has_ports) = match protocol {
        ICMP => ("ICMP".to_owned(), false),
        TCP => ("TCP".to_owned(), true),
        UDP => ("UDP".to_owned(), true),
        GRE => ("GRE".to_owned(), false),
        ESP => ("ESP".to_owned(), false),
        ICMPV6 => ("ICMPv6".to_owned(), false),
        other => (format!("protocol {other}"), false),
    };
    Some(match payload.first_chunk::<4>().filter(|_| has_ports) {
        Some(&[a, b, c, d]) => {
            let source = SocketAddr::new(source, u16::from_be_bytes([a, b]));
            let target = SocketAddr::new(target, u16::from_be_bytes([c, d]));
            format!("{version} {name} {source} > {target}")
        }
        None => format!("{version} {name} {source} > {target}"),
    })
}

#[cfg(test)]
mod tests;
