use super::*;
use crate::sample::tests::{fragment, ipv4, is_foreign_on, passes, udp};
use plan::{Form, LinkForm};

const PORTS: [u16; 2] = [4500, 4501];
const ESP_PACKET: &[u8] = &[0, 0, 1, 2, 0, 0, 0, 1, 9, 9, 9, 9];

fn is_foreign_to(ports: &[u16], frame: &[u8]) -> bool {
    let ports: Vec<_> = ports.iter().copied().map(SealedPort::esp).collect();
    is_foreign_on(&ports, frame)
}

fn is_foreign(frame: &[u8]) -> bool {
    is_foreign_to(&PORTS, frame)
}

#[test]
fn esp_is_expected_bare_whole_or_in_fragments_and_in_udp_on_either_end_of_its_ports() {
    assert!(!is_foreign(&ipv4(50, ESP_PACKET)));
    assert!(!is_foreign(&fragment(ipv4(50, ESP_PACKET), 1, 0x2000)));
    assert!(!is_foreign(&fragment(ipv4(50, ESP_PACKET), 1, 100)));
    assert!(!is_foreign(&udp(4501, 9, ESP_PACKET)));
    assert!(!is_foreign(&udp(9, 4500, ESP_PACKET)));
    assert!(is_foreign(&udp(9, 4502, ESP_PACKET)));
    assert!(is_foreign_to(&[], &udp(4500, 4500, ESP_PACKET)));
}

#[test]
fn bare_esp_is_foreign_to_a_dut_of_another_form() {
    let wireguard = SealedPort {
        form: LinkForm::Sealed(Form::WireGuard),
        ..SealedPort::esp(51_820)
    };
    let both = [wireguard, SealedPort::esp(4500)];
    for frame in [ipv4(50, ESP_PACKET), fragment(ipv4(50, ESP_PACKET), 1, 100)] {
        assert!(is_foreign_on(&[wireguard], &frame));
        assert!(!is_foreign_on(&both, &frame));
    }
}

#[test]
fn on_the_ports_of_esp_only_an_spi_and_a_keepalive_are_expected() {
    assert!(is_foreign(&udp(4500, 4500, &[0, 0, 0, 0, 1, 2, 3, 4])));
    assert!(is_foreign(&udp(4500, 4500, &[1, 2, 3])));
    assert!(!is_foreign(&udp(4500, 4500, &[0xff])));
    assert!(is_foreign(&udp(4500, 4500, &[0xfe])));
    assert!(is_foreign(&udp(4500, 4500, &[])));
}

#[test]
fn a_header_with_options_moves_the_ports_and_the_spi() {
    let with_options = |frame: Vec<u8>| {
        let mut longer = frame[..34].to_vec();
        longer[14] = 0x46;
        // Bytes that would be ESP's ports and an SPI after a header without options.
        longer.extend_from_slice(&[0x11, 0x94, 0x11, 0x94]);
        longer.extend_from_slice(&frame[34..]);
        longer
    };
    assert!(!is_foreign(&with_options(udp(9, 4500, ESP_PACKET))));
    assert!(is_foreign(&with_options(udp(9, 9, ESP_PACKET))));
}

#[test]
fn what_is_clear_or_cut_off_is_foreign() {
    assert!(is_foreign(&ipv4(6, &[0; 20])));
    assert!(is_foreign(&ipv4(1, &[8, 0, 0, 0])));
    assert!(is_foreign(&fragment(udp(1, 2, &[0; 8]), 1, 0x2000)));
    let whole = udp(4500, 4500, ESP_PACKET);
    // Around the end of each header; a frame of 46 bytes has an SPI.
    for length in [1, 13, 14, 33, 34, 41, 42, 45] {
        assert!(is_foreign(&whole[..length]), "{length} bytes");
    }
    assert!(!is_foreign(&whole[..46]));
}

#[test]
fn a_later_fragment_of_udp_goes_with_its_first_one() {
    assert!(!is_foreign(&fragment(ipv4(17, &[7; 8]), 1, 100)));
    assert!(!is_foreign(&fragment(udp(9, 4500, ESP_PACKET), 1, 0x2000)));
}

#[test]
fn arp_and_neighbour_discovery_are_expected_and_other_protocols_are_not() {
    let frame = |ethertype: u16, length: usize| {
        let mut frame = vec![0; length];
        frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
        frame
    };
    // Nothing may be hidden behind ARP, or sent in its place.
    let arp = |length: usize| {
        let mut frame = frame(0x0806, length);
        frame[14..22].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 2]);
        frame
    };
    for (length, foreign) in [
        (42, false),
        (60, false),
        (64, false),
        (65, true),
        (1514, true),
    ] {
        assert_eq!(is_foreign(&arp(length)), foreign, "{length}");
    }
    assert!(is_foreign(&arp(60)[..41]));
    for (at, byte) in [(15, 6), (17, 1), (18, 16), (19, 16)] {
        let mut other = arp(42);
        other[at] = byte;
        assert!(is_foreign(&other), "{at}");
    }
    assert!(is_foreign(&frame(0x88cc, 60)));
    let probe = |magic: &[u8], length| {
        let mut frame = frame(0x88b5, length);
        frame[14..14 + magic.len()].copy_from_slice(magic);
        frame
    };
    assert!(!is_foreign(&probe(b"CBclocks", 72)));
    assert!(is_foreign(&probe(b"CBclocks", 73)) && is_foreign(&probe(b"CBclockz", 72)));
    let icmpv6 = |kind: u8| {
        let mut frame = frame(0x86dd, 60);
        (frame[20], frame[54]) = (58, kind);
        frame
    };
    assert!(!is_foreign(&icmpv6(133)) && !is_foreign(&icmpv6(137)));
    assert!(is_foreign(&icmpv6(128)) && is_foreign(&icmpv6(138)));
    assert!(is_foreign(&icmpv6(133)[..54]));
    let long = |kind: u8, length: usize| {
        let mut frame = icmpv6(kind);
        frame.resize(length, 0);
        is_foreign(&frame)
    };
    assert!(!long(135, 86) && !long(137, 102) && long(136, 103));
    assert!(!long(134, 310) && long(134, 311));
}

#[test]
fn many_ports_are_all_known() {
    // Four instructions for each port, of the 4096 that a filter may have.
    let ports: Vec<u16> = (5000..5900).collect();
    for (port, foreign) in [(5000, false), (5899, false), (5900, true)] {
        assert_eq!(is_foreign_to(&ports, &udp(port, 9, ESP_PACKET)), foreign);
        assert_eq!(is_foreign_to(&ports, &udp(9, port, ESP_PACKET)), foreign);
    }
}

#[test]
fn a_hundred_ports_of_each_form_fit_a_program() {
    let forms = [Form::Esp, Form::WireGuard, Form::OpenVpn];
    let ports: Vec<_> = (5000..5600)
        .map(|port| SealedPort {
            port,
            form: LinkForm::Sealed(forms[usize::from(port % 3)]),
            control: port % 2 == 0,
        })
        .collect();
    let data = [4, 0, 0, 0].repeat(10);
    // 5001 is a port of ESP, 5002 one of WireGuard, 5003 one of OpenVPN.
    for (port, foreign) in [(5001, false), (5002, false), (5003, true), (5599, false)] {
        assert_eq!(
            is_foreign_on(&ports, &udp(9, port, &data)),
            foreign,
            "{port}"
        );
    }
}

/// The probe socket gets both forms, and no other frames of their lengths.
#[test]
fn probes_pass_in_both_forms_and_other_frames_do_not() {
    let filter = probes();
    let passes = |frame: &[u8]| passes(&filter, frame);
    let mut probe = b"CBclocks".to_vec();
    probe.resize(58, 0);
    let over_udp = udp(34_997, 34_997, &probe);
    assert!(passes(&over_udp));
    assert!(!passes(&over_udp[..99]));
    let mut on_cable = vec![0; 14];
    on_cable[12..].copy_from_slice(&0x88b5_u16.to_be_bytes());
    on_cable.extend_from_slice(&probe);
    assert!(passes(&on_cable));
    assert!(!passes(&[&on_cable[..], &[0]].concat()));
    probe[7] = b'z';
    assert!(!passes(&udp(34_997, 34_997, &probe)));
    let mut tcp = over_udp;
    tcp[23] = 6;
    assert!(!passes(&tcp));
}

#[test]
fn the_filter_of_discovery_passes_it_at_any_length_and_nothing_else() {
    let filter = discovery();
    let icmpv6 = |kind: u8, length: usize| {
        let mut frame = vec![0; length];
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        (frame[20], frame[54]) = (58, kind);
        frame
    };
    for kind in 133..=137 {
        assert!(passes(&filter, &icmpv6(kind, 86)) && passes(&filter, &icmpv6(kind, 1514)));
    }
    assert!(!passes(&filter, &icmpv6(128, 86)) && !passes(&filter, &icmpv6(138, 86)));
    assert!(!passes(&filter, &icmpv6(135, 86)[..54]));
    let mut tcp = icmpv6(135, 86);
    tcp[20] = 6;
    assert!(!passes(&filter, &tcp));
    let groups = |kind: u8, length: usize| {
        let mut frame = icmpv6(0, length);
        (frame[20], frame[54], frame[62]) = (0, 58, kind);
        frame
    };
    for kind in [130, 131, 132, 143] {
        assert!(passes(&filter, &groups(kind, 90)) && passes(&filter, &groups(kind, 1514)));
    }
    for kind in [128, 129, 133, 135, 142, 144] {
        assert!(!passes(&filter, &groups(kind, 90)), "{kind}");
    }
}
