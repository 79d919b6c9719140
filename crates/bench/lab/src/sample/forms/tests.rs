use crate::sample::classify::Kind::{self, Control, Other};
use crate::sample::tests::{ipv4, is_foreign_on, kind_on, udp};
use plan::{Form, LinkForm};
use proptest::prelude::*;
use testbed::protocol::SealedPort;

const fn port(port: u16, form: Form, control: bool) -> SealedPort {
    SealedPort {
        port,
        form: LinkForm::Sealed(form),
        control,
    }
}

const fn sealed(id: u32) -> Kind {
    Kind::Sealed { id: Some(id) }
}

/// `length` bytes with this beginning.
fn bytes(begin: &[u8], length: usize) -> Vec<u8> {
    let mut bytes = begin.to_vec();
    bytes.resize(length, 0x5a);
    bytes
}

/// An IKE message of `length` bytes with its header, and the value `said` in its length field.
fn ike(version: u8, length: usize, said: u32) -> Vec<u8> {
    let mut message = bytes(&[], length);
    message[17] = version;
    message[24..28].copy_from_slice(&said.to_be_bytes());
    message
}

fn behind_marker(message: &[u8]) -> Vec<u8> {
    [&[0; 4], message].concat()
}

/// Classifier and filter agree that the port's payload is `kind`.
fn expect(port: SealedPort, payload: &[u8], kind: Kind) {
    for frame in [udp(port.port, 9, payload), udp(9, port.port, payload)] {
        assert_eq!(kind_on(&[port], &frame), kind, "{port:?} {payload:02x?}");
        let is_foreign = is_foreign_on(&[port], &frame);
        assert_eq!(is_foreign, kind == Other, "{port:?} {payload:02x?}");
    }
}

/// The payload is `kind` at this length and longer; without one byte in the datagram, or in the
/// frame, it is foreign.
fn expect_from(port: SealedPort, begin: &[u8], bytes_least: usize, kind: Kind) {
    expect(port, &bytes(begin, bytes_least), kind);
    expect(port, &bytes(begin, bytes_least + 1400), kind);
    expect(port, &bytes(begin, bytes_least - 1), Other);
    let frame = udp(9, port.port, &bytes(begin, bytes_least));
    for cut in 1..=bytes_least {
        let frame = &frame[..frame.len() - cut];
        assert_eq!(kind_on(&[port], frame), Other, "{port:?}, {cut} B cut off");
        assert!(is_foreign_on(&[port], frame), "{port:?}, {cut} B cut off");
    }
}

/// Like [`expect_from`] if a key exchange is allowed on the port; foreign otherwise.
fn expect_control_from(port: SealedPort, begin: &[u8], bytes_least: usize) {
    expect_from(port, begin, bytes_least, Control);
    let without = SealedPort {
        control: false,
        ..port
    };
    expect(without, &bytes(begin, bytes_least), Other);
}

#[test]
fn esp_is_named_by_its_spi_with_and_without_a_key_exchange_beside_it() {
    for control in [false, true] {
        let port = port(4500, Form::Esp, control);
        expect_from(port, &[0xc0, 0xff, 0xee, 1], 4, sealed(0xc0ff_ee01));
        expect(port, &[0xff], Control);
        expect(port, &[0xfe], Other);
        expect(port, &[], Other);
    }
}

#[test]
fn ike_stands_behind_four_zero_bytes_where_a_key_exchange_shares_the_port() {
    let with = port(4500, Form::Esp, true);
    let whole = behind_marker(&ike(0x20, 200, 200));
    expect(with, &whole, Control);
    expect(port(4500, Form::Esp, false), &whole, Other);
    expect(with, &behind_marker(&ike(0x20, 28, 28)), Control);
    expect(with, &behind_marker(&ike(0x20, 28, 28))[..31], Other);
    // IKEv1, and length values that are below the header's or above the datagram's.
    expect(with, &behind_marker(&ike(0x10, 200, 200)), Other);
    for said in [0, 27, 201, u32::MAX] {
        expect(with, &behind_marker(&ike(0x20, 200, said)), Other);
    }
    expect(with, &[0; 300], Other);
    expect(with, &[0; 4], Other);
}

#[test]
fn on_port_500_every_ike_message_is_control_and_nothing_is_esp() {
    let with = port(500, Form::Esp, true);
    // An initiator's cookie may begin like a non-ESP marker.
    let mut zeros_first = ike(0x20, 200, 200);
    zeros_first[..4].fill(0);
    for message in [&ike(0x20, 200, 200), &ike(0x22, 28, 28), &zeros_first] {
        expect(with, message, Control);
        expect(port(500, Form::Esp, false), message, Other);
    }
    expect(with, &ike(0x10, 200, 200), Other);
    expect(with, &ike(0x20, 200, 201), Other);
    expect(with, &ike(0x20, 28, 28)[..27], Other);
    expect(with, &behind_marker(&ike(0x20, 200, 200)), Other);
    expect(with, &[0xc0, 0xff, 0xee, 1, 0, 0, 0, 1], Other);
    expect(with, &[0xff], Other);
}

#[test]
fn wireguard_is_named_by_its_receivers_index() {
    for control in [false, true] {
        let port = port(51_820, Form::WireGuard, control);
        let begin = [4, 0, 0, 0, 0x44, 0x33, 0x22, 0x11];
        expect_from(port, &begin, 32, sealed(0x1122_3344));
    }
}

#[test]
fn wireguards_handshake_is_control_where_it_is_expected() {
    let port = port(51_820, Form::WireGuard, true);
    for (kind, bytes_least) in [(1, 148), (2, 92), (3, 64)] {
        expect_control_from(port, &[kind, 0, 0, 0], bytes_least);
    }
}

#[test]
fn no_other_type_is_wireguards() {
    for control in [false, true] {
        let port = port(51_820, Form::WireGuard, control);
        for kind in (0..=u8::MAX).filter(|kind| !(1..=4).contains(kind)) {
            expect(port, &bytes(&[kind, 0, 0, 0], 200), Other);
        }
        for begin in [[4, 1, 0, 0], [4, 0, 0, 1], [1, 0, 1, 0], [0, 0, 0, 4]] {
            expect(port, &bytes(&begin, 200), Other);
        }
        expect(port, &[0xff], Other);
    }
}

#[test]
fn openvpn_is_named_by_key_and_peer() {
    for control in [false, true] {
        let port = port(1194, Form::OpenVpn, control);
        let v2 = |key: u8| [9 << 3 | key, 0x11, 0x22, 0x33];
        expect_from(port, &v2(0), 24, sealed(0x11_2233));
        expect_from(port, &v2(5), 24, sealed(0x0511_2233));
        // The packet's number, which identifies no key, follows the first byte.
        expect_from(
            port,
            &[6 << 3 | 3, 0x11, 0x22, 0x33],
            21,
            sealed(0x0300_0000),
        );
    }
}

#[test]
fn openvpns_control_channel_is_control_where_it_is_expected_and_no_other_opcode_is_anything() {
    let with = port(1194, Form::OpenVpn, true);
    for opcode in 0..32 {
        let begin = [opcode << 3 | 1];
        match opcode {
            1..=5 | 7 | 8 | 10 | 11 => expect_control_from(with, &begin, 10),
            6 | 9 => {}
            _ => expect(with, &bytes(&begin, 200), Other),
        }
    }
}

#[test]
fn each_port_has_its_own_form() {
    let ports = [
        port(500, Form::Esp, true),
        port(4500, Form::Esp, true),
        port(51_820, Form::WireGuard, false),
        port(1194, Form::OpenVpn, true),
    ];
    let data = bytes(&[4, 0, 0, 0, 1, 0, 0, 0], 200);
    for (port, kind) in [
        (500, Other),
        (4500, sealed(0x0400_0000)),
        (51_820, sealed(1)),
        (1194, Other),
        (1195, Other),
    ] {
        let frame = udp(port, 9, &data);
        assert_eq!(kind_on(&ports, &frame), kind, "{port}");
        assert_eq!(is_foreign_on(&ports, &frame), kind == Other, "{port}");
    }
    // The sender's port applies if both are known.
    let frame = udp(51_820, 500, &data);
    assert_eq!(kind_on(&ports, &frame), sealed(1));
    assert!(!is_foreign_on(&ports, &frame));
}

const GRE: SealedPort = SealedPort {
    port: 0,
    form: LinkForm::Gre,
    control: true,
};
const L2TPV3: SealedPort = SealedPort {
    port: 1701,
    form: LinkForm::L2tpv3,
    control: true,
};

/// Classifier and filter agree that the packet directly in IP is `kind`.
fn expect_bare(port: SealedPort, protocol: u8, packet: &[u8], kind: Kind) {
    let frame = ipv4(protocol, packet);
    assert_eq!(kind_on(&[port], &frame), kind, "{port:?} {packet:02x?}");
    let is_foreign = is_foreign_on(&[port], &frame);
    assert_eq!(is_foreign, kind == Other, "{port:?} {packet:02x?}");
}

#[test]
fn gre_is_known_by_its_version_and_by_what_it_carries() {
    let gre = |flags: u16, ethertype: u16, length| {
        let begin = [flags, ethertype].map(u16::to_be_bytes).concat();
        bytes(&begin, length)
    };
    let carried = Kind::Sealed { id: None };
    for (ethertype, bytes_least) in [(0x0800, 24), (0x86dd, 44), (0x6558, 18)] {
        // Without options, with a key (NVGRE), with checksum, key and sequence number.
        for flags in [0, 0x2000, 0xb000] {
            expect_bare(GRE, 47, &gre(flags, ethertype, bytes_least), carried);
            expect_bare(GRE, 47, &gre(flags, ethertype, 1400), carried);
            expect_bare(GRE, 47, &gre(flags, ethertype, bytes_least - 1), Other);
        }
        // PPTP's version, and bits of routing.
        for flags in [1, 0x2001, 0x4000, 0x0800, 0x0400] {
            expect_bare(GRE, 47, &gre(flags, ethertype, 1400), Other);
        }
    }
    expect_bare(GRE, 47, &gre(0, 0x8847, 1400), Other);
    // The answer to a router's keepalive.
    expect_bare(GRE, 47, &[0; 4], Control);
    expect_bare(GRE, 47, &[0; 3], Other);
    expect_bare(GRE, 50, &gre(0, 0x0800, 1400), Other);
    expect_bare(SealedPort::esp(4500), 47, &gre(0, 0x0800, 1400), Other);
}

#[test]
fn l2tpv3_is_named_by_its_session_in_udp_and_in_ip() {
    let in_udp = [0, 3, 0, 0, 0xc0, 0xff, 0xee, 1];
    expect_from(L2TPV3, &in_udp, 22, sealed(0xc0ff_ee01));
    // A control message of version 3; one of version 2, and its data.
    expect_control_from(L2TPV3, &[0xc8, 3], 12);
    expect(L2TPV3, &bytes(&[0xc8, 2], 100), Other);
    expect(L2TPV3, &bytes(&[0, 2], 100), Other);
    for (packet, kind) in [
        (bytes(&in_udp[4..], 18), sealed(0xc0ff_ee01)),
        (bytes(&in_udp[4..], 1400), sealed(0xc0ff_ee01)),
        (bytes(&in_udp[4..], 17), Other),
        (bytes(&[0; 4], 16), Control),
        (bytes(&[0; 4], 15), Other),
        (bytes(&[0; 3], 3), Other),
    ] {
        expect_bare(L2TPV3, 115, &packet, kind);
        expect_bare(GRE, 115, &packet, Other);
    }
    let silent = SealedPort {
        control: false,
        ..L2TPV3
    };
    expect_bare(silent, 115, &[0; 16], Other);
}

/// Classifier and filter read one table; here they agree on packets made without it.
#[test]
fn both_judges_agree_on_packets_of_any_bytes() {
    let ports = [
        SealedPort::esp(4500),
        port(51_820, Form::WireGuard, true),
        GRE,
        L2TPV3,
    ];
    proptest!(|(
        protocol in prop::sample::select(vec![6_u8, 17, 47, 50, 115]),
        // Bytes that often begin a packet of some form.
        begin in prop::collection::vec(prop::sample::select(vec![0_u8, 2, 3, 4, 8, 0x20, 0xc8, 0x65, 0x58]), 0..8),
        rest in prop::collection::vec(any::<u8>(), 0..60),
        port in prop::sample::select(ports.to_vec()),
        in_udp in any::<bool>(),
    )| {
        let payload = [begin, rest].concat();
        let frame = if in_udp { udp(port.port, 9, &payload) } else { ipv4(protocol, &payload) };
        let is_other = kind_on(&[port], &frame) == Other;
        prop_assert_eq!(is_foreign_on(&[port], &frame), is_other, "{:?} {:02x?}", port, frame);
    });
}

/// Frames of every kind, at lengths around the limits of each: both agree on them under every form.
#[test]
fn both_judges_agree_on_frames_of_every_kind() {
    let ports = [
        None,
        Some(SealedPort::esp(4500)),
        Some(port(500, Form::Esp, true)),
        Some(port(51_820, Form::WireGuard, true)),
        Some(port(1194, Form::OpenVpn, false)),
        Some(port(0, Form::MacSec, true)),
        Some(GRE),
        Some(L2TPV3),
    ];
    let of_type = |ethertype: u16, begin: &[u8], length: usize| {
        let mut frame = vec![0; 12];
        frame.extend(ethertype.to_be_bytes());
        frame.extend(begin);
        frame.resize(length.max(frame.len()), 0x5a);
        frame
    };
    let ipv6 = |next: u8, payload: &[u8], length: usize| {
        let mut header = [0; 40];
        (header[0], header[6]) = (0x60, next);
        of_type(0x86dd, &[&header[..], payload].concat(), length)
    };
    let mut frames = Vec::new();
    for length in [55, 60, 62, 63, 64, 65, 72, 86, 102, 103, 310, 311, 1514] {
        frames.push(of_type(0x0806, &[0, 1, 8, 0, 6, 4, 0, 1], length));
        frames.push(of_type(0x0806, &[], length));
        frames.push(of_type(0x88b5, b"CBclocks", length));
        frames.push(of_type(0x888e, &[3, 5], length));
        for tci in [0x00, 0x0c, 0x2e, 0x8c] {
            frames.push(of_type(0x88e5, &[tci, 0, 0, 0, 0, 1], length));
        }
        frames.push(of_type(0x88cc, &[], length));
        for kind in 127..=145 {
            frames.push(ipv6(58, &[kind], length));
            frames.push(ipv6(0, &[58, 0, 5, 2, 0, 0, 1, 0, kind], length));
            // A longer hop-by-hop header, and ICMPv6 over IPv4.
            frames.push(ipv6(0, &[58, 1, 5, 2, 0, 0, 1, 0, kind], length));
            frames.push(ipv4(58, &[kind; 40]));
        }
        for next in [0, 4, 6, 17, 47, 50, 115] {
            frames.push(ipv6(
                next,
                &[0x11, 0x94, 0x11, 0x94, 0, 200, 0, 0, 4],
                length,
            ));
            frames.push(ipv4(next, &vec![4; length]));
        }
        for number in [500, 1194, 1701, 4500, 51_820, 9] {
            frames.push(udp(number, 9, &vec![4; length]));
        }
    }
    for port in ports {
        for frame in &frames {
            let is_other = kind_on(port.as_slice(), frame) == Other;
            let is_foreign = is_foreign_on(port.as_slice(), frame);
            assert_eq!(is_foreign, is_other, "{port:?} {frame:02x?}");
        }
    }
}
