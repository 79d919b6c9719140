//! What encapsulation costs: the one place that knows.
//!
//! Lengths are IP packet lengths in bytes, from the first byte of an IP header to the end of the payload; those of
//! Ethernet frames are without FCS.

use crate::{Suite, aggfrag};

/// IPv4 header without options.
pub const IPV4_HEADER_BYTES: usize = 20;
/// IPv6 header without extension headers.
pub const IPV6_HEADER_BYTES: usize = 40;
/// UDP header.
pub const UDP_HEADER_BYTES: usize = 8;
/// SPI and sequence number (RFC 4303 §2).
pub const ESP_HEADER_BYTES: usize = 8;
/// Pad length and next header (RFC 4303 §2.4).
pub const ESP_TRAILER_BYTES: usize = 2;

/// L2TPv3's session id (RFC 3931 §4.1.1.1).
const L2TPV3_SESSION_BYTES: usize = 4;
/// What L2TPv3 has in front of that over UDP (RFC 3931 §4.1.2.1).
const L2TPV3_UDP_BYTES: usize = 4;

/// What stands in front of the ESP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outer {
    /// IPv6 outside instead of IPv4.
    pub ipv6: bool,
    /// ESP in UDP (RFC 3948) instead of bare ESP.
    pub udp: bool,
}

impl Outer {
    /// ESP in UDP over IPv4.
    pub const UDP_IPV4: Self = Self {
        ipv6: false,
        udp: true,
    };

    /// Length of the outer headers in front of ESP.
    #[must_use]
    pub const fn header_bytes(self) -> usize {
        let ip = if self.ipv6 {
            IPV6_HEADER_BYTES
        } else {
            IPV4_HEADER_BYTES
        };
        ip + if self.udp { UDP_HEADER_BYTES } else { 0 }
    }
}

/// What an ESP packet carries, and with which headers of its own between ESP and the packet or frame inside.
///
/// What costs nothing beside ESP is counted without it: [`esp_bytes`], [`outer_bytes`] and [`inner_mtu`] take
/// the length with these headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// An IP packet as it is: tunnel mode.
    Ip,
    /// An Ethernet frame as it is (next header 143, RFC 8986 §9).
    Ethernet,
    /// IP packets in one AGGFRAG payload (next header 144, RFC 9347); its header is theirs together.
    Aggfrag,
    /// An Ethernet frame in L2TPv3 (RFC 3931), in an IP packet of its own. So it is without ESP too, and what is
    /// said here is then all it costs.
    L2tpv3 {
        /// In IPv6 instead of IPv4.
        ipv6: bool,
        /// In UDP, with the header that it has there, instead of IP protocol 115.
        udp: bool,
        /// Length of the cookie: 0, 4 or 8 bytes.
        cookie_bytes: usize,
    },
}

impl Payload {
    /// Length of the headers in front of the inner packet or frame.
    #[must_use]
    pub const fn header_bytes(self) -> usize {
        match self {
            Self::Ip | Self::Ethernet => 0,
            Self::Aggfrag => aggfrag::HEADER_BYTES,
            Self::L2tpv3 {
                ipv6,
                udp,
                cookie_bytes,
            } => {
                let below = Outer { ipv6, udp }.header_bytes();
                let over_udp = if udp { L2TPV3_UDP_BYTES } else { 0 };
                below + over_udp + L2TPV3_SESSION_BYTES + cookie_bytes
            }
        }
    }
}

/// Padding that brings `inner_bytes` and the trailer to the suite's alignment.
#[must_use]
pub const fn padding_bytes(suite: Suite, inner_bytes: usize) -> usize {
    let align = suite.pad_to_bytes();
    (align - (inner_bytes + ESP_TRAILER_BYTES) % align) % align
}

/// Length of the ESP packet, header to ICV, that carries an inner packet of `inner_bytes`.
#[must_use]
pub const fn esp_bytes(suite: Suite, inner_bytes: usize) -> usize {
    let plaintext = inner_bytes + padding_bytes(suite, inner_bytes) + ESP_TRAILER_BYTES;
    ESP_HEADER_BYTES + suite.iv_bytes() + plaintext + suite.icv_bytes()
}

/// Length of the outer IP packet that carries an inner packet of `inner_bytes`.
#[must_use]
pub const fn outer_bytes(suite: Suite, outer: Outer, inner_bytes: usize) -> usize {
    outer.header_bytes() + esp_bytes(suite, inner_bytes)
}

/// The largest inner packet whose outer packet is not longer than `outer_mtu`; `None` when nothing fits.
#[must_use]
pub const fn inner_mtu(suite: Suite, outer: Outer, outer_mtu: usize) -> Option<usize> {
    let fixed = outer.header_bytes() + ESP_HEADER_BYTES + suite.iv_bytes() + suite.icv_bytes();
    let Some(room) = outer_mtu.checked_sub(fixed) else {
        return None;
    };
    let aligned = room - room % suite.pad_to_bytes();
    match aligned.checked_sub(ESP_TRAILER_BYTES) {
        Some(inner) if inner > 0 => Some(inner),
        _ => None,
    }
}

/// The largest inner packet or frame that fits into an outer packet of `outer_mtu` together with the headers of
/// its payload; `None` when nothing fits. A frame of that length carries an IP packet that is shorter by its
/// Ethernet header, 14 bytes and 4 for each VLAN tag.
#[must_use]
pub const fn payload_mtu(
    suite: Suite,
    outer: Outer,
    payload: Payload,
    outer_mtu: usize,
) -> Option<usize> {
    let Some(room) = inner_mtu(suite, outer, outer_mtu) else {
        return None;
    };
    match room.checked_sub(payload.header_bytes()) {
        Some(inner) if inner > 0 => Some(inner),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_mtu_is_the_largest_that_fits() {
        for suite in Suite::ALL {
            for outer in [
                Outer::UDP_IPV4,
                Outer {
                    ipv6: true,
                    udp: false,
                },
            ] {
                for mtu in 0..2000 {
                    let inner = inner_mtu(suite, outer, mtu).unwrap_or(0);
                    assert!(inner == 0 || outer_bytes(suite, outer, inner) <= mtu);
                    assert!(outer_bytes(suite, outer, inner + 1) > mtu);
                }
            }
        }
    }

    const BARE_IPV4: Outer = Outer {
        ipv6: false,
        udp: false,
    };
    const UDP_IPV6: Outer = Outer {
        ipv6: true,
        udp: true,
    };

    fn suite(name: &str) -> Suite {
        Suite::from_name(name).unwrap()
    }

    /// Worked out by hand for 0, 64 and 1400 bytes: header, IV, the inner packet and 2 up to a whole block, ICV.
    #[test]
    fn esp_packets_are_as_long_as_the_rfcs_make_them() {
        for (name, lengths) in [
            // 8 + 8 + {4, 68, 1404} + 16
            ("aes-256-gcm", [36, 100, 1436]),
            ("aes-128-gcm", [36, 100, 1436]),
            ("chacha20-poly1305", [36, 100, 1436]),
            // 8 + 16 + {16, 80, 1408} + {12, 16, 32}
            ("aes-128-cbc-hmac-md5", [52, 116, 1444]),
            ("aes-256-cbc-hmac-sha1", [52, 116, 1444]),
            ("aes-128-cbc-hmac-sha256", [56, 120, 1448]),
            ("aes-256-cbc-hmac-sha512", [72, 136, 1464]),
            // 8 + 8 + {8, 72, 1408} + {12, 16, 32}
            ("des-cbc-hmac-md5", [36, 100, 1436]),
            ("3des-cbc-hmac-sha1", [36, 100, 1436]),
            ("3des-cbc-hmac-sha256", [40, 104, 1440]),
            ("3des-cbc-hmac-sha512", [56, 120, 1456]),
            // 8 + 0 + {4, 68, 1404} + {12, 16, 32}
            ("null-hmac-sha1", [24, 88, 1424]),
            ("null-hmac-sha256", [28, 92, 1428]),
            ("null-hmac-sha512", [44, 108, 1444]),
        ] {
            let of = |inner| esp_bytes(suite(name), inner);
            assert_eq!([of(0), of(64), of(1400)], lengths, "{name}");
        }
    }

    /// By hand as well; 1438 of bare ESP with AES-CBC and SHA-1 is in many vendors' manuals.
    #[test]
    fn an_ethernet_mtu_carries_what_is_known_of_each_suite() {
        for (name, outer, mtu, inner) in [
            ("aes-256-gcm", Outer::UDP_IPV4, 1500, Some(1438)),
            ("aes-256-gcm", UDP_IPV6, 1500, Some(1418)),
            ("aes-256-gcm", BARE_IPV4, 1500, Some(1446)),
            ("aes-256-gcm", Outer::UDP_IPV4, 60, None),
            ("aes-128-cbc-hmac-sha1", BARE_IPV4, 1500, Some(1438)),
            ("aes-128-cbc-hmac-sha1", Outer::UDP_IPV4, 1500, Some(1422)),
            ("aes-128-cbc-hmac-sha256", Outer::UDP_IPV4, 1500, Some(1422)),
            ("aes-256-cbc-hmac-sha512", Outer::UDP_IPV4, 1500, Some(1406)),
            ("aes-256-cbc-hmac-sha256", BARE_IPV4, 9000, Some(8926)),
            ("3des-cbc-hmac-sha1", Outer::UDP_IPV4, 1500, Some(1438)),
            ("3des-cbc-hmac-sha512", Outer::UDP_IPV4, 1500, Some(1422)),
            ("null-hmac-sha1", Outer::UDP_IPV4, 1500, Some(1450)),
        ] {
            assert_eq!(inner_mtu(suite(name), outer, mtu), inner, "{name}");
        }
    }

    #[test]
    fn payloads_with_headers_of_their_own_leave_so_much_less() {
        let l2tpv3 = |ipv6, udp, cookie_bytes| Payload::L2tpv3 {
            ipv6,
            udp,
            cookie_bytes,
        };
        for (payload, header_bytes) in [
            (Payload::Ip, 0),
            (Payload::Ethernet, 0),
            (Payload::Aggfrag, 4),
            (l2tpv3(false, false, 0), 24),
            (l2tpv3(false, false, 8), 32),
            (l2tpv3(true, false, 4), 48),
            (l2tpv3(false, true, 8), 44),
            (l2tpv3(true, true, 0), 56),
        ] {
            assert_eq!(payload.header_bytes(), header_bytes, "{payload:?}");
            let mtu =
                |outer_mtu| payload_mtu(Suite::Aes256Gcm, Outer::UDP_IPV4, payload, outer_mtu);
            assert_eq!(mtu(1500), Some(1438 - header_bytes), "{payload:?}");
            assert_eq!(mtu(64 + header_bytes), Some(2), "{payload:?}");
            assert_eq!(mtu(63 + header_bytes), None, "{payload:?}");
        }
    }
}
