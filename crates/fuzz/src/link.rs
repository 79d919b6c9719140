//! Ethernet frames and L2TPv3 messages.

use crate::packets;
use arbitrary::{Result, Unstructured};
use std::net::IpAddr;
use wire::ethernet::EthernetView;
use wire::l2tp::{Cookie, Encapsulation, HEADER_BYTES_MAX, IpSession, Refused, Session};

/// Arbitrary bytes, and frames that are nearly valid.
pub(crate) fn ethernet(data: &[u8]) {
    check_view(data);
    let mut u = Unstructured::new(data);
    let frame = |u: &mut Unstructured<'_>| -> Result<Vec<u8>> {
        let ipv6 = u.arbitrary()?;
        Ok([packets::link_header(u, ipv6)?, packets::ip_packet(u)?].concat())
    };
    if let Ok(frame) = frame(&mut u) {
        check_view(&frame);
    }
}

/// A view never covers bytes that do not exist.
fn check_view(data: &[u8]) {
    let Some(view) = EthernetView::parse(data) else {
        assert!(data.len() < wire::ethernet::HEADER_BYTES_MAX);
        return;
    };
    assert!(matches!(view.header_bytes, 14 | 18 | 22));
    assert_eq!(
        data[view.header_bytes - 2..view.header_bytes],
        view.ethertype.to_be_bytes()
    );
    let Some(ip) = view.ip else { return };
    assert!(view.header_bytes + ip.total_bytes <= data.len());
    assert_eq!(ip.version == 4, view.ethertype == wire::ethernet::IPV4);
    assert_eq!(ip.version == 6, view.ethertype == wire::ethernet::IPV6);
}

pub(crate) fn l2tp(data: &[u8]) {
    let _ = messages(&mut Unstructured::new(data));
}

/// A session accepts exactly its header and the bytes after it, also inside IP.
fn messages(u: &mut Unstructured<'_>) -> Result<()> {
    let cookie_bytes = *u.choose(&[0, 4, 8])?;
    let session = Session {
        encapsulation: if u.arbitrary()? {
            Encapsulation::Udp
        } else {
            Encapsulation::Ip
        },
        id: u.int_in_range(0..=2)?,
        cookie: Cookie::new(u.bytes(cookie_bytes)?).expect("of one of the three lengths"),
    };
    let mut header = [0; HEADER_BYTES_MAX];
    let header_bytes = session.write_header(&mut header);
    assert_eq!(header_bytes, session.header_bytes());
    let mut message = header[..header_bytes].to_vec();
    // Few changes, so that most of the header stays right.
    for _ in 0..u.int_in_range(0..=2)? {
        let at = u.choose_index(message.len())?;
        message[at] ^= u.arbitrary::<u8>()?;
    }
    let frame = if u.arbitrary()? {
        packets::ip_packet(u)?
    } else {
        u.bytes(u.len() / 2)?.to_vec()
    };
    message.extend(&frame);
    message.truncate(u.int_in_range(0..=message.len())?);
    match session.parse(&message) {
        Ok(inner) => {
            assert_ne!(session.id, 0, "a control message taken for data");
            assert_eq!(message.len() - inner.len(), header_bytes);
            assert_eq!(
                message[header_bytes - cookie_bytes..header_bytes],
                *session.cookie.as_bytes()
            );
        }
        Err(Refused::Runt) => assert!(message.len() < header_bytes),
        Err(_) => {
            let is_own = session.id != 0 && message.starts_with(&header[..header_bytes]);
            assert!(!is_own, "a message of the session was refused");
        }
    }
    in_ip(u, session, &frame)
}

fn in_ip(u: &mut Unstructured<'_>, session: Session, frame: &[u8]) -> Result<()> {
    let (source, target): (IpAddr, IpAddr) = if u.arbitrary()? {
        (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]))
    } else {
        (IpAddr::from([1; 16]), IpAddr::from([2; 16]))
    };
    let Some(pseudowire) = IpSession::new(source, target, session) else {
        assert_eq!(session.encapsulation, Encapsulation::Udp);
        return Ok(());
    };
    let mut packet = vec![0; pseudowire.header_bytes()];
    let written = pseudowire.write_headers(frame.len(), u.arbitrary()?, &mut packet);
    assert_eq!(written, Some(packet.len()));
    packet.extend(frame);
    let expected = if session.id == 0 {
        Err(Refused::Control)
    } else {
        Ok(Some(frame))
    };
    assert_eq!(pseudowire.parse(&packet), expected);
    for _ in 0..u.int_in_range(1..=4)? {
        let at = u.choose_index(packet.len())?;
        packet[at] ^= u.arbitrary::<u8>()?;
    }
    // A change in the IP header may turn it into another packet, so no result is expected.
    let _ = pseudowire.parse(&packet);
    Ok(())
}
