//! Frames for the tests of this module and of its parts.

use super::*;
use crate::packet_socket::BytesFilter;
use testbed::protocol::{ControlPort, SealedPort};

/// An IPv4 packet in an Ethernet frame.
pub(super) fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend_from_slice(&0x0800_u16.to_be_bytes());
    let mut header = [0; 20];
    header[0] = 0x45;
    header[9] = protocol;
    frame.extend_from_slice(&header);
    frame.extend_from_slice(payload);
    frame
}

pub(super) fn udp(source: u16, target: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).unwrap();
    let header = [source, target, length, 0];
    let mut datagram = header.map(u16::to_be_bytes).concat();
    datagram.extend_from_slice(payload);
    ipv4(17, &datagram)
}

pub(super) fn fragment(mut frame: Vec<u8>, id: u8, flags_and_offset: u16) -> Vec<u8> {
    frame[14 + 5] = id;
    frame[14 + 6..][..2].copy_from_slice(&flags_and_offset.to_be_bytes());
    frame
}

pub(super) fn kind_on(ports: &[SealedPort], frame: &[u8]) -> Kind {
    Classifier::new(sealed(ports)).kind(frame)
}

pub(super) fn sealed(sealed: &[SealedPort]) -> Expected<'_> {
    Expected {
        sealed,
        control: &[],
        markers: &[],
    }
}

/// gw1 and gw2.
pub(super) const GATEWAYS: [[u8; 4]; 2] = [[192, 0, 2, 1], [192, 0, 2, 2]];

/// gw2 listens on port 4500, gw1 connects.
pub(super) fn channel() -> ControlPort {
    ControlPort {
        listener: GATEWAYS[1].into(),
        port: 4500,
        connector: GATEWAYS[0].into(),
    }
}

/// A TCP segment from one address and port to another.
pub(super) fn segment(
    [source, target]: [[u8; 4]; 2],
    (from, to): (u16, u16),
    payload: &[u8],
) -> Vec<u8> {
    let mut segment = [from, to].map(u16::to_be_bytes).concat();
    segment.resize(20, 0);
    segment.extend_from_slice(payload);
    let mut frame = ipv4(6, &segment);
    frame[26..30].copy_from_slice(&source);
    frame[30..34].copy_from_slice(&target);
    frame
}

/// Whether the kernel classifies the frame as foreign.
pub(super) fn is_foreign_on(ports: &[SealedPort], frame: &[u8]) -> bool {
    is_foreign_where(sealed(ports), frame)
}

/// The filter looks for the first marker inside sealed packets.
pub(super) fn is_foreign_where(expected: Expected<'_>, frame: &[u8]) -> bool {
    passes(&filter::foreign_only(expected, true), frame)
}

/// Whether the kernel passes the frame to a socket with this filter.
pub(super) fn passes(filter: &[libc::sock_filter], frame: &[u8]) -> bool {
    let filter = BytesFilter::new(filter).unwrap();
    filter.passes(frame).unwrap()
}

fn tally_of<'a>(expected: Expected<'a>, frames: &[Vec<u8>]) -> CipherLink {
    let mut tally = Tally::new(expected);
    for frame in frames {
        tally.count(frame);
    }
    tally.finish()
}

#[test]
fn a_channel_is_counted_apart_and_its_marker_all_the_same() {
    let expected = Expected {
        control: &[channel()],
        markers: &[b"MARK".to_vec()],
        ..sealed(&[])
    };
    let frames = [
        segment(GATEWAYS, (40_000, 4500), b"hello"),
        segment(GATEWAYS, (40_000, 4500), b"xxMARKxx"),
        segment(GATEWAYS, (40_000, 5201), b"hello"),
    ];
    let link = tally_of(expected, &frames);
    assert_eq!((link.frames, link.channel_frames), (3, 2));
    assert_eq!((link.other_frames, link.marker_frames), (1, 1));
}

#[test]
fn a_marker_is_counted_whatever_the_kind_of_frame_that_shows_it() {
    let esp = ipv4(50, &[0, 0, 1, 2, 0, 0, 0, 1]);
    let shows_it = [&esp[..], b"xxMARKxx"].concat();
    let expected = Expected {
        markers: &[b"other".to_vec(), b"MARK".to_vec()],
        ..sealed(&[])
    };
    let link = tally_of(expected, &[esp, shows_it, b"xxMARK".to_vec()]);
    assert_eq!(
        (
            link.frames,
            link.esp_frames,
            link.marker_frames,
            link.other_frames
        ),
        (3, 2, 2, 1)
    );
    assert_eq!(link.spis, ["00000102"]);
}

#[test]
fn the_class_of_the_outermost_header_is_counted_except_of_control_traffic() {
    let with_tos = |tos: u8| {
        let mut frame = ipv4(50, &[0, 0, 1, 2, 0, 0, 0, 1]);
        frame[15] = tos;
        frame
    };
    let mut arp = vec![0; 60];
    arp[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    // EF, EF with ECN, none, and a number without a name.
    let frames = [with_tos(184), with_tos(187), with_tos(0), with_tos(20), arp];
    let link = tally_of(sealed(&[]), &frames);
    let wanted = [("be", 1), ("dscp-5", 1), ("ef", 2)];
    let wanted = wanted.map(|(class, packets)| (class.to_owned(), packets));
    assert_eq!(link.dscp, wanted.into());
    let cut_off = tally_of(sealed(&[]), &[with_tos(184)[..20].to_vec()]);
    assert!(cut_off.dscp.is_empty());
}

#[test]
fn an_empty_marker_is_never_seen() {
    let expected = Expected {
        markers: &[Vec::new()],
        ..sealed(&[])
    };
    let link = tally_of(expected, &[b"anything".to_vec()]);
    assert_eq!(link.marker_frames, 0);
}
