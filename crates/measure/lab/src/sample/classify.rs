//! Frame by frame: what a DUT sealed, known control traffic, or neither.

use super::Expected;
use super::forms::{
    self, IKE_HEADER_BYTES, IKE_LENGTH_AT, IKE_VERSION, IKE_VERSION_AT, IKE_VERSION_MASK,
    KEEPALIVE, Meaning, Shape,
};
use crate::protocol::{ControlPort, SealedPort};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use wire::overhead::{IPV6_HEADER_BYTES, UDP_HEADER_BYTES};

const ETHERNET_HEADER_BYTES: usize = 14;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_ARP: u16 = 0x0806;
const ETHERTYPE_IPV6: u16 = 0x86dd;

const HOP_BY_HOP: u8 = 0;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ESP: u8 = 50;
const ICMPV6: u8 = 58;

/// Without options.
const TCP_HEADER_BYTES: usize = 20;

/// First fragments that are remembered, so that the rest of their packets is known.
const FRAGMENTS_MAX: usize = 4096;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A sealed packet of any form, with what names its keys: an SPI, a receiver's index. A later
    /// fragment shows none.
    Sealed { id: Option<u32> },
    /// ARP, IPv6 neighbour and group discovery, a NAT keepalive, and the key exchange that shares a
    /// sealed port.
    Control,
    /// TCP of the DUT's own.
    Channel,
    /// Anything else.
    Other,
}

/// Tells kinds of frames; remembers what packets' first fragments were.
pub(super) struct Classifier<'a> {
    sealed_ports: &'a [SealedPort],
    control_ports: &'a [ControlPort],
    first_fragments: HashMap<[u8; 11], Kind>,
}

impl<'a> Classifier<'a> {
    pub(super) fn new(expected: Expected<'a>) -> Self {
        Self {
            sealed_ports: expected.sealed,
            control_ports: expected.control,
            first_fragments: HashMap::new(),
        }
    }

    pub(super) fn kind(&mut self, frame: &[u8]) -> Kind {
        let Some((ethernet, packet)) = frame.split_at_checked(ETHERNET_HEADER_BYTES) else {
            return Kind::Other;
        };
        let kind = match u16::from_be_bytes([ethernet[12], ethernet[13]]) {
            ETHERTYPE_ARP => Some(Kind::Control),
            ETHERTYPE_IPV4 => self.ipv4(packet),
            ETHERTYPE_IPV6 => self.ipv6(packet),
            _ => None,
        };
        kind.unwrap_or(Kind::Other)
    }

    /// `None`: not whole.
    fn ipv4(&mut self, packet: &[u8]) -> Option<Kind> {
        let header = packet.first_chunk::<20>()?;
        let protocol = header[9];
        let payload = packet.get(usize::from(header[0] & 15) * 4..)?;
        let more_or_offset = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
        if protocol == TCP {
            let [source, target] = [12, 16].map(|at| <[u8; 4]>::try_from(&header[at..at + 4]));
            let ends = [source.ok()?.into(), target.ok()?.into()];
            // What is in fragments is none of them.
            return (more_or_offset == 0).then(|| self.channel(ends, payload))?;
        }
        if more_or_offset == 0 {
            return self.transport(protocol, payload);
        }
        // Source, target, protocol and identification name a fragmented packet (RFC 791 §2.3).
        let mut packet_id = [0; 11];
        packet_id[..8].copy_from_slice(&header[12..20]);
        packet_id[8] = protocol;
        packet_id[9..].copy_from_slice(&header[4..6]);
        let is_first = more_or_offset & 0x1fff == 0;
        if !is_first {
            return match self.first_fragments.get(&packet_id) {
                Some(Kind::Sealed { .. }) => Some(Kind::Sealed { id: None }),
                Some(kind) => Some(*kind),
                None if protocol == ESP => self.bare_esp(None),
                None => None,
            };
        }
        let kind = self.transport(protocol, payload)?;
        if self.first_fragments.len() < FRAGMENTS_MAX {
            self.first_fragments.insert(packet_id, kind);
        }
        Some(kind)
    }

    fn ipv6(&self, packet: &[u8]) -> Option<Kind> {
        let next_header = *packet.get(6)?;
        let payload = packet.get(IPV6_HEADER_BYTES..)?;
        if next_header == HOP_BY_HOP {
            let length = (usize::from(*payload.get(1)?) + 1) * 8;
            return self.transport(*payload.first()?, payload.get(length..)?);
        }
        self.transport(next_header, payload)
    }

    fn transport(&self, protocol: u8, payload: &[u8]) -> Option<Kind> {
        match protocol {
            ESP => self.bare_esp(Some(u32::from_be_bytes(*payload.first_chunk()?))),
            UDP => self.udp(payload),
            // Group and neighbour discovery: RFC 2710, RFC 3810, RFC 4861.
            ICMPV6 if matches!(*payload.first()?, 130..=137 | 143) => Some(Kind::Control),
            _ => None,
        }
    }

    /// `None`: it is none of the DUT's own.
    fn channel(&self, [source, target]: [Ipv4Addr; 2], segment: &[u8]) -> Option<Kind> {
        let header = segment.first_chunk::<TCP_HEADER_BYTES>()?;
        let number = |at| u16::from_be_bytes([header[at], header[at + 1]]);
        let is_own = |port: &ControlPort| {
            let ends = (port.connector, port.listener);
            let towards = (source, target) == ends && number(2) == port.port;
            let back = (target, source) == ends && number(0) == port.port;
            towards || back
        };
        let is_known = self.control_ports.iter().any(is_own);
        is_known.then_some(Kind::Channel)
    }

    /// `None`: the DUT's packets look otherwise.
    fn bare_esp(&self, id: Option<u32>) -> Option<Kind> {
        forms::has_bare_esp(self.sealed_ports).then_some(Kind::Sealed { id })
    }

    fn udp(&self, datagram: &[u8]) -> Option<Kind> {
        let (header, payload) = datagram.split_at_checked(UDP_HEADER_BYTES)?;
        let number = |at| u16::from_be_bytes([header[at], header[at + 1]]);
        let known = |number| self.sealed_ports.iter().find(|port| port.port == number);
        let port = known(number(0)).or_else(|| known(number(2)))?;
        // The frame may hold more, which fills it up, or less: a first fragment.
        let bytes = usize::from(number(4)).checked_sub(UDP_HEADER_BYTES)?;
        if bytes == 1 && forms::has_keepalives(port) {
            return (*payload.first()? == KEEPALIVE).then_some(Kind::Control);
        }
        let word = u32::from_be_bytes(*payload.first_chunk()?);
        let shape = Shape::of(forms::shapes(port), word)?;
        let bytes_least = usize::from(shape.bytes_least);
        if bytes.min(payload.len()) < bytes_least || !shape.is_allowed(port) {
            return None;
        }
        match shape.meaning {
            Meaning::Sealed(id) => Some(Kind::Sealed {
                id: Some(id.read(payload)?),
            }),
            Meaning::Control => Some(Kind::Control),
            Meaning::Ike { at } => {
                let at = usize::from(at);
                is_ike(payload.get(at..)?, bytes - at)?.then_some(Kind::Control)
            }
        }
    }
}

/// Whether an IKEv2 message stands in so many bytes, of which these are at hand; `None`: too few.
fn is_ike(message: &[u8], bytes: usize) -> Option<bool> {
    let version = message.get(usize::from(IKE_VERSION_AT))? & IKE_VERSION_MASK;
    let length = message.get(usize::from(IKE_LENGTH_AT)..)?.first_chunk()?;
    let length = u64::from(u32::from_be_bytes(*length));
    let lengths = u64::from(IKE_HEADER_BYTES)..=bytes as u64;
    Some(version == IKE_VERSION << 4 && lengths.contains(&length))
}

/// A frame in words, with its length: `IPv4 UDP 10.1.0.2:4000 > 10.2.0.2:5201, 1428 B`.
pub(super) fn words(frame: &[u8]) -> String {
    let what = packet_in_words(frame).unwrap_or_else(|| "a frame that is cut off".to_owned());
    format!("{what}, {} B", frame.len())
}

/// `None`: not whole.
fn packet_in_words(frame: &[u8]) -> Option<String> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET_HEADER_BYTES)?;
    let (version, protocol, source, target, payload): (_, _, IpAddr, IpAddr, _) =
        match u16::from_be_bytes([ethernet[12], ethernet[13]]) {
            ETHERTYPE_IPV4 => {
                let header = packet.first_chunk::<20>()?;
                let address = |at| <[u8; 4]>::try_from(&header[at..at + 4]).ok();
                let is_first = u16::from_be_bytes([header[6], header[7]]) & 0x1fff == 0;
                let payload = packet.get(usize::from(header[0] & 15) * 4..)?;
                let payload = if is_first { payload } else { &[] };
                let (source, target) = (address(12)?.into(), address(16)?.into());
                ("IPv4", header[9], source, target, payload)
            }
            ETHERTYPE_IPV6 => {
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
pub(super) mod tests {
    use super::*;
    use crate::sample::filter::tests::{is_foreign_on, is_foreign_where};
    use campaign::plan::Form;

    /// An IPv4 packet in an Ethernet frame.
    pub(in crate::sample) fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
        let mut header = [0; 20];
        header[0] = 0x45;
        header[9] = protocol;
        frame.extend_from_slice(&header);
        frame.extend_from_slice(payload);
        frame
    }

    pub(in crate::sample) fn udp(source: u16, target: u16, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(8 + payload.len()).unwrap();
        let header = [source, target, length, 0];
        let mut datagram = header.map(u16::to_be_bytes).concat();
        datagram.extend_from_slice(payload);
        ipv4(UDP, &datagram)
    }

    pub(in crate::sample) fn fragment(
        mut frame: Vec<u8>,
        id: u8,
        flags_and_offset: u16,
    ) -> Vec<u8> {
        frame[ETHERNET_HEADER_BYTES + 5] = id;
        frame[ETHERNET_HEADER_BYTES + 6..][..2].copy_from_slice(&flags_and_offset.to_be_bytes());
        frame
    }

    pub(in crate::sample) fn kind_on(ports: &[SealedPort], frame: &[u8]) -> Kind {
        Classifier::new(sealed(ports)).kind(frame)
    }

    fn sealed(sealed: &[SealedPort]) -> Expected<'_> {
        Expected {
            sealed,
            control: &[],
        }
    }

    /// gw1 and gw2.
    pub(in crate::sample) const GATEWAYS: [[u8; 4]; 2] = [[192, 0, 2, 1], [192, 0, 2, 2]];

    /// gw2 listens on port 4500, gw1 connects.
    pub(in crate::sample) fn channel() -> ControlPort {
        ControlPort {
            listener: GATEWAYS[1].into(),
            port: 4500,
            connector: GATEWAYS[0].into(),
        }
    }

    /// A TCP segment from one address and port to another.
    pub(in crate::sample) fn segment(
        [source, target]: [[u8; 4]; 2],
        (from, to): (u16, u16),
        payload: &[u8],
    ) -> Vec<u8> {
        let mut segment = [from, to].map(u16::to_be_bytes).concat();
        segment.resize(TCP_HEADER_BYTES, 0);
        segment.extend_from_slice(payload);
        let mut frame = ipv4(TCP, &segment);
        frame[26..30].copy_from_slice(&source);
        frame[30..34].copy_from_slice(&target);
        frame
    }

    #[test]
    fn tcp_of_the_devices_own_is_known_by_both_addresses_and_the_listeners_port() {
        let control = [channel()];
        let expected = Expected {
            sealed: &[],
            control: &control,
        };
        let expect = |frame: &[u8], kind: Kind| {
            assert_eq!(Classifier::new(expected).kind(frame), kind);
            assert_eq!(is_foreign_where(expected, frame), kind == Kind::Other);
        };
        let [gw1, gw2] = GATEWAYS;
        let data = &[7; 1400][..];
        for payload in [&[][..], data] {
            expect(&segment([gw1, gw2], (40_000, 4500), payload), Kind::Channel);
            expect(&segment([gw2, gw1], (4500, 40_000), payload), Kind::Channel);
        }
        // Neither side's other ports, nor the port of whom it does not listen at, nor others'
        // traffic.
        expect(&segment([gw1, gw2], (4500, 5201), data), Kind::Other);
        expect(&segment([gw2, gw1], (40_000, 4500), data), Kind::Other);
        let [a, b] = [[10, 1, 0, 2], [10, 2, 0, 2]];
        for (source, target) in [(a, b), (a, gw2), (gw1, b)] {
            expect(
                &segment([source, target], (40_000, 4500), data),
                Kind::Other,
            );
            expect(
                &segment([target, source], (4500, 40_000), data),
                Kind::Other,
            );
        }
        // Not whole.
        let whole = segment([gw1, gw2], (40_000, 4500), &[]);
        for length in 0..whole.len() {
            expect(&whole[..length], Kind::Other);
        }
        for flags in [0x2000, 100] {
            expect(&fragment(whole.clone(), 1, flags), Kind::Other);
        }
        assert_eq!(kind_on(&[], &whole), Kind::Other);
        assert!(is_foreign_on(&[], &whole));
        // UDP of the same numbers is no TCP.
        let mut datagram = udp(40_000, 4500, &[1; 40]);
        datagram[26..34].copy_from_slice(&[gw1, gw2].concat());
        expect(&datagram, Kind::Other);
    }

    fn kind(frame: &[u8]) -> Kind {
        kind_on(&[4500, 4501].map(SealedPort::esp), frame)
    }

    const ESP_PACKET: &[u8] = &[0, 0, 1, 2, 0, 0, 0, 1, 9, 9, 9, 9];
    const SPI: Option<u32> = Some(0x102);

    #[test]
    fn knows_esp_bare_and_in_udp_on_either_end_of_its_ports() {
        assert_eq!(kind(&ipv4(ESP, ESP_PACKET)), Kind::Sealed { id: SPI });
        assert_eq!(kind(&udp(4501, 9, ESP_PACKET)), Kind::Sealed { id: SPI });
        assert_eq!(kind(&udp(9, 4500, ESP_PACKET)), Kind::Sealed { id: SPI });
        assert_eq!(kind(&udp(9, 4502, ESP_PACKET)), Kind::Other);
    }

    #[test]
    fn bare_esp_is_that_of_a_dut_whose_form_it_is() {
        let esp = ipv4(ESP, ESP_PACKET);
        let later = fragment(esp.clone(), 1, 100);
        let wireguard = SealedPort {
            form: Form::WireGuard,
            ..SealedPort::esp(51_820)
        };
        for (ports, is_expected) in [
            (&[][..], true),
            (&[wireguard, SealedPort::esp(4500)], true),
            (&[wireguard], false),
        ] {
            let expected = |id| match is_expected {
                true => Kind::Sealed { id },
                false => Kind::Other,
            };
            assert_eq!(kind_on(ports, &esp), expected(SPI));
            assert_eq!(kind_on(ports, &later), expected(None));
        }
    }

    #[test]
    fn on_the_port_of_esp_alone_only_keepalives_are_control() {
        let marker = [0, 0, 0, 0, 1, 2, 3];
        assert_eq!(kind(&udp(4500, 4500, &marker)), Kind::Other);
        assert_eq!(kind(&udp(4500, 4500, &[0xff])), Kind::Control);
        assert_eq!(kind(&udp(4500, 4500, &[1])), Kind::Other);
        // A short frame is filled up to the 60 bytes of an Ethernet frame.
        let mut filled = udp(4500, 4500, &[0xff]);
        filled.resize(60, 0);
        assert_eq!(kind(&filled), Kind::Control);
    }

    #[test]
    fn frames_are_told_in_words() {
        let mut frame = udp(4000, 5201, &[0; 100]);
        frame[26..34].copy_from_slice(&[10, 1, 0, 2, 10, 2, 0, 2]);
        assert_eq!(
            words(&frame),
            "IPv4 UDP 10.1.0.2:4000 > 10.2.0.2:5201, 142 B"
        );
        let later = fragment(frame.clone(), 1, 100);
        assert_eq!(words(&later), "IPv4 UDP 10.1.0.2 > 10.2.0.2, 142 B");
        frame[23] = 89;
        assert_eq!(words(&frame), "IPv4 protocol 89 10.1.0.2 > 10.2.0.2, 142 B");
        assert_eq!(words(&frame[..30]), "a frame that is cut off, 30 B");
        frame[12..14].copy_from_slice(&[0x88, 0xcc]);
        assert_eq!(words(&frame), "EtherType 0x88cc, 142 B");
    }

    #[test]
    fn arp_and_neighbour_discovery_are_control_and_pings_are_not() {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&ETHERTYPE_ARP.to_be_bytes());
        assert_eq!(kind(&frame), Kind::Control);
        assert_eq!(kind(&ipv4(1, &[8, 0])), Kind::Other);

        let icmpv6 = |next_header, payload: &[u8]| {
            let mut frame = vec![0; ETHERNET_HEADER_BYTES + IPV6_HEADER_BYTES];
            frame[12..14].copy_from_slice(&ETHERTYPE_IPV6.to_be_bytes());
            frame[ETHERNET_HEADER_BYTES + 6] = next_header;
            frame.extend_from_slice(payload);
            frame
        };
        assert_eq!(kind(&icmpv6(ICMPV6, &[135, 0])), Kind::Control);
        assert_eq!(kind(&icmpv6(ICMPV6, &[128, 0])), Kind::Other);
        // A group report stands behind a hop-by-hop header.
        assert_eq!(
            kind(&icmpv6(HOP_BY_HOP, &[ICMPV6, 0, 5, 2, 0, 0, 1, 0, 143, 0])),
            Kind::Control
        );
    }

    #[test]
    fn later_fragments_are_what_their_first_fragment_was() {
        let ports = [SealedPort::esp(4500)];
        let mut classifier = Classifier::new(sealed(&ports));
        let first = fragment(udp(4500, 4500, ESP_PACKET), 7, 0x2000);
        assert_eq!(classifier.kind(&first), Kind::Sealed { id: SPI });
        let later = |id| fragment(ipv4(UDP, &[1; 100]), id, 0x0010);
        assert_eq!(classifier.kind(&later(7)), Kind::Sealed { id: None });
        assert_eq!(classifier.kind(&later(8)), Kind::Other);
        let clear = fragment(udp(9, 9, ESP_PACKET), 9, 0x2000);
        assert_eq!(classifier.kind(&clear), Kind::Other);
        assert_eq!(classifier.kind(&later(9)), Kind::Other);
    }

    #[test]
    fn later_fragments_of_a_key_exchange_are_control() {
        let ports = [SealedPort {
            control: true,
            form: Form::OpenVpn,
            port: 1194,
        }];
        let mut classifier = Classifier::new(sealed(&ports));
        let first = fragment(udp(1194, 1194, &[4 << 3; 1400]), 7, 0x2000);
        assert_eq!(classifier.kind(&first), Kind::Control);
        let later = |id| fragment(ipv4(UDP, &[1; 100]), id, 0x00b0);
        assert_eq!(classifier.kind(&later(7)), Kind::Control);
        assert_eq!(classifier.kind(&later(8)), Kind::Other);
    }

    #[test]
    fn a_frame_cut_anywhere_is_never_a_panic() {
        for whole in [udp(4500, 4500, ESP_PACKET), ipv4(ESP, ESP_PACKET)] {
            for length in 0..whole.len() {
                kind(&whole[..length]);
            }
        }
        let mut long_header = ipv4(ESP, ESP_PACKET);
        long_header[ETHERNET_HEADER_BYTES] = 0x4f;
        assert_eq!(kind(&long_header), Kind::Other);
    }
}
