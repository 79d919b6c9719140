use super::*;
use crate::sample::tests::{
    GATEWAYS, channel, fragment, ipv4, is_foreign_on, is_foreign_where, kind_on, sealed, segment,
    udp,
};
use plan::{Form, LinkForm};

#[test]
fn tcp_of_the_devices_own_is_known_by_both_addresses_and_the_listeners_port() {
    let control = [channel()];
    let expected = Expected {
        sealed: &[],
        control: &control,
        markers: &[],
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
    // Neither side's other ports, nor that port at the connecting side, nor other hosts' traffic.
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
    // Truncated segments.
    let whole = segment([gw1, gw2], (40_000, 4500), &[]);
    for length in 0..whole.len() {
        expect(&whole[..length], Kind::Other);
    }
    for flags in [0x2000, 100] {
        expect(&fragment(whole.clone(), 1, flags), Kind::Other);
    }
    assert_eq!(kind_on(&[], &whole), Kind::Other);
    assert!(is_foreign_on(&[], &whole));
    // UDP with the same port numbers is not TCP.
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
        form: LinkForm::Sealed(Form::WireGuard),
        ..SealedPort::esp(51_820)
    };
    for (ports, is_expected) in [
        (&[][..], true),
        (&[wireguard, SealedPort::esp(4500)], true),
        (&[wireguard], false),
    ] {
        let expected = |id| {
            if is_expected {
                Kind::Sealed { id }
            } else {
                Kind::Other
            }
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
    // A short frame is padded to the 60 bytes of an Ethernet frame.
    let mut filled = udp(4500, 4500, &[0xff]);
    filled.resize(60, 0);
    assert_eq!(kind(&filled), Kind::Control);
}

#[test]
fn frames_are_described_in_words() {
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
    frame[12..14].copy_from_slice(&ethernet::ARP.to_be_bytes());
    assert_eq!(kind(&frame), Kind::Other);
    frame[14..22].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
    assert_eq!(kind(&frame), Kind::Control);
    // It has room for text in frames of the stations' lengths.
    for (length, expected) in [(41, Kind::Other), (42, Kind::Control), (128, Kind::Other)] {
        let mut frame = frame.clone();
        frame.resize(length, 0);
        assert_eq!(kind(&frame), expected, "{length}");
    }
    assert_eq!(kind(&ipv4(1, &[8, 0])), Kind::Other);

    let icmpv6 = |next_header, payload: &[u8]| {
        let mut frame = vec![0; HEADER_BYTES + IPV6_HEADER_BYTES];
        frame[12..14].copy_from_slice(&ethernet::IPV6.to_be_bytes());
        frame[HEADER_BYTES + 6] = next_header;
        frame.extend_from_slice(payload);
        frame
    };
    assert_eq!(kind(&icmpv6(ICMPV6, &[135, 0])), Kind::Control);
    assert_eq!(kind(&icmpv6(ICMPV6, &[128, 0])), Kind::Other);
    for (kind_of, bytes, expected) in [
        (135, 32, Kind::Control),
        (136, 60, Kind::Other),
        (134, 200, Kind::Control),
        (134, 300, Kind::Other),
    ] {
        let mut body = vec![0; bytes];
        body[0] = kind_of;
        assert_eq!(kind(&icmpv6(ICMPV6, &body)), expected, "{kind_of} {bytes}");
    }
    // A group report follows a hop-by-hop header.
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
        form: LinkForm::Sealed(Form::OpenVpn),
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
    // The header claims 60 bytes, more than the frame has.
    long_header[HEADER_BYTES] = 0x4f;
    assert_eq!(kind(&long_header), Kind::Other);
}
