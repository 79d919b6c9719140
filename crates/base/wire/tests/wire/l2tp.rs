//! L2TPv3 pseudowires: written messages are read back, by us and by tshark; messages of other
//! sessions are rejected.

use proptest::prelude::*;
use std::fs;
use std::net::IpAddr;
use wire::l2tp::{Cookie, Encapsulation, HEADER_BYTES_MAX, IpSession, Refused, Session};

fn session(encapsulation: Encapsulation, id: u32, cookie: &[u8]) -> Session {
    Session {
        encapsulation,
        id,
        cookie: Cookie::new(cookie).unwrap(),
    }
}

fn any_session() -> impl Strategy<Value = Session> {
    let cookie = (any::<[u8; 8]>(), prop::sample::select(vec![0, 4, 8]));
    (any::<bool>(), 1u32.., cookie).prop_map(|(udp, id, (cookie, length))| {
        let encapsulation = if udp {
            Encapsulation::Udp
        } else {
            Encapsulation::Ip
        };
        session(encapsulation, id, &cookie[..length])
    })
}

fn message(session: &Session, frame: &[u8]) -> Vec<u8> {
    let mut header = [0xee; HEADER_BYTES_MAX];
    let length = session.write_header(&mut header);
    assert_eq!(length, session.header_bytes());
    [&header[..length], frame].concat()
}

fn addresses(ipv6: bool) -> (IpAddr, IpAddr) {
    if ipv6 {
        (
            "2001:db8::1".parse().unwrap(),
            "2001:db8::2".parse().unwrap(),
        )
    } else {
        ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap())
    }
}

fn packet(pseudowire: &IpSession, frame: &[u8], tos: u8) -> Vec<u8> {
    let mut headers = [0xee; 100];
    let length = pseudowire
        .write_headers(frame.len(), tos, &mut headers)
        .unwrap();
    assert_eq!(length, pseudowire.header_bytes());
    [&headers[..length], frame].concat()
}

proptest! {
    #[test]
    fn a_frame_survives_a_round_trip(
        session in any_session(),
        frame in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let message = message(&session, &frame);
        prop_assert_eq!(session.parse(&message), Ok(&frame[..]));
    }

    #[test]
    fn any_other_cookie_is_refused(session in any_session(), at: prop::sample::Index, bit in 0..8) {
        let length = session.cookie.as_bytes().len();
        prop_assume!(length > 0);
        let mut message = message(&session, b"frame");
        let first = session.header_bytes() - length;
        message[first + at.index(length)] ^= 1u8 << bit;
        prop_assert_eq!(session.parse(&message), Err(Refused::WrongCookie));
    }

    #[test]
    fn any_other_session_is_refused(session in any_session(), id: u32) {
        let other = Session { id, ..session };
        let expected = match id {
            0 => Err(Refused::Control),
            id if id == session.id => Ok(&b"frame"[..]),
            _ => Err(Refused::OtherSession),
        };
        let message = message(&other, b"frame");
        prop_assert_eq!(session.parse(&message), expected);
    }

    #[test]
    fn a_truncated_message_is_a_runt(session in any_session(), cut: prop::sample::Index) {
        let message = message(&session, b"");
        let cut = cut.index(message.len());
        prop_assert_eq!(session.parse(&message[..cut]), Err(Refused::Runt));
    }

    #[test]
    fn a_frame_crosses_as_an_ip_packet(
        ipv6: bool,
        tos: u8,
        id in 1u32..,
        frame in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let (source, target) = addresses(ipv6);
        let session = session(Encapsulation::Ip, id, &[1, 2, 3, 4]);
        let pseudowire = IpSession::new(source, target, session).unwrap();
        let packet = packet(&pseudowire, &frame, tos);
        prop_assert_eq!(pseudowire.parse(&packet), Ok(Some(&frame[..])));
        let back = IpSession::new(target, source, session).unwrap();
        prop_assert_eq!(back.parse(&packet), Ok(None));

        // The header as decoded by an independent parser.
        let ip = etherparse::IpSlice::from_slice(&packet).unwrap();
        match ip {
            etherparse::IpSlice::Ipv4(ip) => {
                let header = ip.header().to_header();
                prop_assert_eq!(header.calc_header_checksum(), header.header_checksum);
                prop_assert_eq!(header.dscp.value() << 2 | header.ecn.value(), tos);
                prop_assert!(header.dont_fragment);
                prop_assert_eq!(ip.payload().ip_number.0, 115);
            }
            etherparse::IpSlice::Ipv6(ip) => {
                prop_assert_eq!(ip.header().traffic_class(), tos);
                prop_assert_eq!(ip.payload().ip_number.0, 115);
            }
        }
    }

    #[test]
    fn never_panics_on_garbage(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        session in any_session(),
    ) {
        let _ = session.parse(&bytes);
        let (source, target) = addresses(false);
        if let Some(pseudowire) = IpSession::new(source, target, session) {
            let _ = pseudowire.parse(&bytes);
        }
    }
}

#[test]
fn the_headers_are_those_of_rfc_3931() {
    let over_ip = session(Encapsulation::Ip, 0x0102_0304, &[9; 4]);
    assert_eq!(message(&over_ip, b"f"), [1, 2, 3, 4, 9, 9, 9, 9, b'f']);
    let over_udp = session(Encapsulation::Udp, 0x0102_0304, &[9; 8]);
    assert_eq!(
        message(&over_udp, b"f"),
        [0, 3, 0, 0, 1, 2, 3, 4, 9, 9, 9, 9, 9, 9, 9, 9, b'f']
    );
}

#[test]
fn control_messages_and_other_versions_are_distinguished() {
    let over_udp = session(Encapsulation::Udp, 7, &[]);
    // A Hello of version 3, and a data message of version 2.
    let hello = [0xc8, 3, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0];
    assert_eq!(over_udp.parse(&hello), Err(Refused::Control));
    assert_eq!(
        over_udp.parse(&[0, 2, 0, 1, 0, 1, 0, 0]),
        Err(Refused::OtherVersion)
    );
    let over_ip = session(Encapsulation::Ip, 7, &[]);
    assert_eq!(over_ip.parse(&[0; 12]), Err(Refused::Control));
}

#[test]
fn other_cookie_lengths_and_mixed_address_families_are_rejected() {
    for length in [1, 2, 3, 5, 6, 7, 9] {
        assert!(Cookie::new(&vec![0; length]).is_none(), "{length} bytes");
    }
    let (v4, v6) = (addresses(false).0, addresses(true).0);
    assert!(IpSession::new(v4, v6, session(Encapsulation::Ip, 7, &[])).is_none());
    assert!(IpSession::new(v4, v4, session(Encapsulation::Udp, 7, &[])).is_none());
}

#[test]
fn frames_too_long_for_an_ip_packet_are_not_written() {
    for (ipv6, frame_bytes) in [(false, 65_535 - 20 - 8), (true, 65_535 - 8)] {
        let (source, target) = addresses(ipv6);
        let session = session(Encapsulation::Ip, 7, &[0; 4]);
        let pseudowire = IpSession::new(source, target, session).unwrap();
        let mut out = [0; 100];
        assert!(pseudowire.write_headers(frame_bytes, 0, &mut out).is_some());
        assert!(
            pseudowire
                .write_headers(frame_bytes + 1, 0, &mut out)
                .is_none()
        );
        assert!(pseudowire.write_headers(10, 0, &mut out[..20]).is_none());
    }
}

#[test]
fn a_fragment_of_a_pseudowire_packet_is_not_read() {
    let (source, target) = addresses(false);
    let pseudowire = IpSession::new(source, target, session(Encapsulation::Ip, 7, &[])).unwrap();
    let mut packet = packet(&pseudowire, &[0; 60], 0);
    packet[6] = 0x20;
    assert_eq!(pseudowire.parse(&packet), Ok(None));
}

/// An Ethernet frame with an ARP request.
fn arp() -> Vec<u8> {
    let mut frame = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6];
    frame.extend([0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1]);
    frame.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    frame
}

/// An IPv4 packet with UDP around an L2TP message; no checksum, which IPv4 permits.
fn in_udp(message: &[u8]) -> Vec<u8> {
    let builder = etherparse::PacketBuilder::ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64);
    let mut packet = Vec::new();
    builder.udp(1701, 1701).write(&mut packet, message).unwrap();
    packet
}

/// The fields that tshark reads in each packet: protocols, session, cookie, source in the frame,
/// and ARP's target; `None` where tshark is missing.
fn dissected(packets: &[Vec<u8>], cookie_size: &str) -> Option<String> {
    // A capture file of raw IP packets (draft-ietf-opsawg-pcap; LINKTYPE_RAW is 101).
    let mut capture = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0002_0004, 0, 0, 65_535, 101] {
        capture.extend(word.to_be_bytes());
    }
    for packet in packets {
        for word in [0, 0, packet.len() as u32, packet.len() as u32] {
            capture.extend(word.to_be_bytes());
        }
        capture.extend(packet);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l2tp.pcap");
    fs::write(&path, capture).unwrap();
    testing::tshark("L2TPv3 as decoded by tshark", |command| {
        command
            .arg("-r")
            .arg(&path)
            .args(["-o", &format!("l2tp.cookie_size:{cookie_size}")])
            .args(["-o", "l2tp.l2_specific:None", "-d", "l2tp.pw_type==0,eth"])
            .args(["-T", "fields", "-E", "separator=/s"])
            .args(["-e", "frame.protocols"])
            .args(["-e", "l2tp.sid", "-e", "l2tp.cookie"])
            .args(["-e", "eth.src", "-e", "arp.dst.proto_ipv4"]);
    })
}

#[test]
fn tshark_decodes_our_pseudowires() {
    for (cookie, size, shown) in [
        (&[][..], "None", ""),
        (&[0xaa, 0xbb, 0xcc, 0xdd], "4 Byte Cookie", "aabbccdd"),
        (
            &[1, 2, 3, 4, 5, 6, 7, 8],
            "8 Byte Cookie",
            "0102030405060708",
        ),
    ] {
        let over_ip = session(Encapsulation::Ip, 0x1234_5678, cookie);
        let over_udp = session(Encapsulation::Udp, 0x1234_5678, cookie);
        let mut packets = Vec::new();
        for ipv6 in [false, true] {
            let (source, target) = addresses(ipv6);
            let pseudowire = IpSession::new(source, target, over_ip).unwrap();
            packets.push(packet(&pseudowire, &arp(), 0));
        }
        packets.push(in_udp(&message(&over_udp, &arp())));
        let Some(text) = dissected(&packets, size) else {
            return;
        };
        let expected: String = ["raw:ip", "raw:ipv6", "raw:ip:udp"]
            .map(|outer| {
                format!(
                    "{outer}:l2tp:ethertype:arp 0x12345678 {shown} 02:00:00:00:00:01 10.0.0.2\n"
                )
            })
            .concat();
        assert_eq!(text, expected);
    }
}
