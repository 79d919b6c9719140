//! Captured sealed packets and the hostile packets derived from them.

use crate::packets;
use arbitrary::{Result, Unstructured};
use traffic::hostile::{Random, Sealed};
use traffic_spec::SealedForm;
use wire::ethernet::EthernetView;
use wire::headers::{IpView, UDP, be16};

const FORMS: [SealedForm; 3] = [SealedForm::Esp, SealedForm::WireGuard, SealedForm::OpenVpn];
/// The ports in packets of [`packets::ip_packet`].
const PORTS: [u16; 3] = [40_000, 40_001, 40_002];
const UDP_CHECKSUM_AT: usize = 6;

/// Arbitrary bytes, and frames that are nearly valid.
pub(crate) fn body(data: &[u8]) {
    for form in FORMS {
        check(data, form, &PORTS, 0);
        check(data, form, &[], 0);
    }
    // An exhausted input ends the run.
    let _ = describe(&mut Unstructured::new(data));
}

fn describe(u: &mut Unstructured<'_>) -> Result<()> {
    let form = *u.choose(&FORMS)?;
    let mut packet = packets::ip_packet(u)?;
    if let Some(ip) = IpView::parse(&packet)
        && u.arbitrary()?
    {
        // The first bytes of a sealed packet of this form; ESP may be bare.
        let head: &[u8] = match form {
            SealedForm::Esp => &[0xca, 0xfe, 0, 1, 0xff, 0xff, 0xff, 0xff],
            SealedForm::WireGuard => &[4, 0, 0, 0],
            SealedForm::OpenVpn => &[9 << 3],
        };
        let payload = packet.get_mut(ip.header_bytes + 8..ip.total_bytes);
        for (to, from) in payload.unwrap_or_default().iter_mut().zip(head) {
            *to = *from;
        }
    }
    if packet.len() >= 40 && u.ratio(1, 4)? {
        let at = if packet[0] >> 4 == 4 { 9 } else { 6 };
        // ESP without UDP.
        packet[at] = 50;
    }
    packets::make_checksums_right(&mut packet);
    let ipv6 = packet.first().is_some_and(|first| first >> 4 == 6);
    let mut frame = [packets::link_header(u, ipv6)?, packet].concat();
    if u.ratio(1, 8)? {
        frame.truncate(u.int_in_range(0..=frame.len())?);
    }
    let ports: &[u16] = if u.arbitrary()? { &PORTS } else { &[] };
    check(&frame, form, ports, u.arbitrary()?);
    Ok(())
}

/// The range found is within the packet; a hostile packet differs only in the payload and the UDP
/// checksum, which is valid if the original's was.
fn check(frame: &[u8], form: SealedForm, ports: &[u16], seed: u64) {
    let Some(sealed) = Sealed::find(frame, form, ports) else {
        return;
    };
    let payload = sealed.payload();
    let view = EthernetView::parse(frame).expect("what is sealed is in a frame");
    let ip = view.ip.expect("in IP");
    let at = view.header_bytes;
    assert_eq!(payload.end, at + ip.total_bytes);
    let is_udp = ip.protocol == UDP;
    assert_eq!(is_udp, !ports.is_empty());
    let transport = at + ip.header_bytes;
    let head = if is_udp { 8 } else { 0 };
    assert_eq!(payload.start, transport + head);
    if is_udp {
        let own = [be16(frame, transport), be16(frame, transport + 2)];
        assert!(own.iter().any(|port| ports.contains(port)));
    }
    let mut spoiled = frame.to_vec();
    sealed.spoil(&mut spoiled);
    assert_eq!(spoiled[payload.end - 1], frame[payload.end - 1] ^ 1);
    let mut garbage = frame.to_vec();
    sealed.scramble(&mut garbage, &mut Random::new(seed));
    for hostile in [&spoiled, &garbage] {
        assert_eq!(hostile[payload.end..], frame[payload.end..]);
        let same = if is_udp {
            transport + UDP_CHECKSUM_AT
        } else {
            payload.start
        };
        assert_eq!(hostile[..same], frame[..same]);
        if is_udp && be16(frame, transport + UDP_CHECKSUM_AT) != 0 {
            let sum = wire::checksum::portable;
            assert!(ip.transport_checksum_is_valid(&hostile[at..], sum));
        } else if is_udp {
            assert_eq!(be16(hostile, transport + UDP_CHECKSUM_AT), 0);
        }
        if form == SealedForm::Esp {
            // In UDP an SPI of 0 would mark a packet of IKE (RFC 3948 §2.2).
            assert_ne!(hostile[payload.start..][..4], [0; 4]);
        }
    }
    // A spoiled packet can be captured, with all its parts at the same place.
    assert_eq!(Sealed::find(&spoiled, form, ports), Some(sealed));
}
