//! Views on Ethernet frames without FCS, as packet sockets deliver them (IEEE 802.3 §3, IEEE 802.1Q
//! §9).
//!
//! VLAN tags are parsed, and nothing else: no LLC, no other tags.

use crate::headers::{IpView, be16};

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// EtherType of a customer VLAN tag.
pub const VLAN: u16 = 0x8100;
/// EtherType of a service VLAN tag ("QinQ").
pub const SERVICE_VLAN: u16 = 0x88a8;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;

/// Length of a header without tags: two addresses and an EtherType.
pub const HEADER_BYTES: usize = 14;
/// Length of one VLAN tag.
pub const TAG_BYTES: usize = 4;
/// Maximum number of tags parsed; a third counts as the EtherType.
pub const TAGS_MAX: usize = 2;
/// The longest header parsed.
pub const HEADER_BYTES_MAX: usize = HEADER_BYTES + TAGS_MAX * TAG_BYTES;

/// The layout of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EthernetView {
    /// The type behind the tags; below 0x600 it is a length, and LLC follows.
    pub ethertype: u16,
    /// Length of addresses, tags and EtherType in bytes: 14, 18 or 22.
    pub header_bytes: usize,
    /// The IP packet behind the header, when it is whole and of the EtherType's version.
    pub ip: Option<IpView>,
}

impl EthernetView {
    /// Reads the frame's headers; `None` when `frame` ends within them.
    #[inline]
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let mut header_bytes = HEADER_BYTES;
        let mut ethertype = ethertype_before(frame, header_bytes)?;
        // Bounded, so that a hostile frame of tags alone costs no more than others.
        while matches!(ethertype, VLAN | SERVICE_VLAN) && header_bytes < HEADER_BYTES_MAX {
            header_bytes += TAG_BYTES;
            ethertype = ethertype_before(frame, header_bytes)?;
        }
        let version = match ethertype {
            IPV4 => 4,
            IPV6 => 6,
            _ => 0,
        };
        let ip = if version == 0 {
            None
        } else {
            IpView::parse(&frame[header_bytes..]).filter(|ip| ip.version == version)
        };
        Some(Self {
            ethertype,
            header_bytes,
            ip,
        })
    }
}

/// The EtherType at the end of a header of this length.
#[inline]
fn ethertype_before(frame: &[u8], header_bytes: usize) -> Option<u16> {
    (frame.len() >= header_bytes).then(|| be16(frame, header_bytes - 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame with tags of these EtherTypes, then `ethertype` and `payload`.
    fn frame(tags: &[u16], ethertype: u16, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for tag in tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0, 7]);
        }
        frame.extend(ethertype.to_be_bytes());
        frame.extend(payload);
        frame
    }

    fn ipv4() -> Vec<u8> {
        let mut packet = vec![0; 28];
        packet[..4].copy_from_slice(&[0x45, 0, 0, 28]);
        packet[9] = 17;
        packet
    }

    #[test]
    fn finds_ip_behind_up_to_two_tags() {
        for tags in [&[][..], &[VLAN], &[SERVICE_VLAN, VLAN], &[VLAN, VLAN]] {
            let frame = frame(tags, IPV4, &ipv4());
            let view = EthernetView::parse(&frame).unwrap();
            assert_eq!(view.ethertype, IPV4);
            assert_eq!(view.header_bytes, 14 + 4 * tags.len());
            assert_eq!(view.ip, IpView::parse(&ipv4()));
            assert!(view.ip.is_some());
        }
    }

    #[test]
    fn a_third_tag_is_not_parsed() {
        let view = EthernetView::parse(&frame(&[VLAN; 3], IPV4, &ipv4())).unwrap();
        assert_eq!(
            (view.ethertype, view.header_bytes, view.ip),
            (VLAN, 22, None)
        );
    }

    #[test]
    fn ip_of_another_version_than_the_ethertype_is_not_ip() {
        let view = EthernetView::parse(&frame(&[], IPV6, &ipv4())).unwrap();
        assert_eq!(view.ip, None);
        let view = EthernetView::parse(&frame(&[], ARP, &ipv4())).unwrap();
        assert_eq!((view.ethertype, view.ip), (ARP, None));
    }

    #[test]
    fn a_frame_truncated_in_its_header_is_rejected() {
        let whole = frame(&[VLAN, VLAN], ARP, &[]);
        for length in 0..whole.len() {
            assert_eq!(
                EthernetView::parse(&whole[..length]),
                None,
                "{length} bytes"
            );
        }
        assert!(EthernetView::parse(&whole).is_some());
    }

    proptest! {
        #[test]
        fn never_refers_to_missing_bytes(
            bytes in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            if let Some(view) = EthernetView::parse(&bytes) {
                let ip_bytes = view.ip.map_or(0, |ip| ip.total_bytes);
                prop_assert!(view.header_bytes + ip_bytes <= bytes.len());
            }
        }
    }
}
