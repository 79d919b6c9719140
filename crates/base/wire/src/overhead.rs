//! The cost of encapsulation in bytes. No other module computes it.
//!
//! Lengths are IP packet lengths in bytes, from the first byte of an IP header to the end of the
//! payload; those of Ethernet frames are without FCS.

use crate::Suite;

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
/// Of WireGuard's data messages: type, receiver and counter in front, tag behind (WireGuard
/// whitepaper §5.4.6).
pub const WIREGUARD_BYTES: usize = 16 + 16;
/// What WireGuard pads packets to, though never beyond the tunnel's MTU.
pub const WIREGUARD_PAD_TO_BYTES: usize = 16;
/// Opcode with peer id and packet id in front, and a tag (OpenVPN's `P_DATA_V2` with an AEAD).
pub const OPENVPN_BYTES: usize = 4 + 4 + 16;
/// Peer id of `P_DATA_V2`: `P_DATA_V1` is shorter by it.
pub const OPENVPN_PEER_BYTES: usize = 3;
/// SecTAG behind its EtherType, with the SCI, the frame's own EtherType, and the tag behind (IEEE
/// Std 802.1AE §9.3); between two stations the SCI may be left out.
pub const MACSEC_BYTES: usize = 6 + MACSEC_SCI_BYTES + 2 + 16;
/// The SCI in a SecTAG.
pub const MACSEC_SCI_BYTES: usize = 8;
/// GRE header without options (RFC 2784 §2.1).
pub const GRE_HEADER_BYTES: usize = 4;

/// The headers in front of the ESP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outer {
    /// Outer header: IPv6 instead of IPv4.
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

/// The largest inner packet whose outer packet is not longer than `outer_mtu`; `None` when nothing
/// fits.
#[must_use]
pub const fn inner_mtu(suite: Suite, outer: Outer, outer_mtu: usize) -> Option<usize> {
    let fixed = outer.header_bytes() + ESP_HEADER_BYTES + suite.iv_bytes() + suite.icv_bytes();
    let Some(room) = outer_mtu.checked_sub(fixed) else {
        return None;
    };
    // The plaintext and its trailer fill whole blocks, so a shorter rest of the MTU stays unused.
    let aligned = room - room % suite.pad_to_bytes();
    match aligned.checked_sub(ESP_TRAILER_BYTES) {
        Some(inner) if inner > 0 => Some(inner),
        _ => None,
    }
}

/// Number of IPv4 packets without options that carry `payload_bytes` on a link of this MTU: one, or
/// fragments. Every fragment but the last carries a multiple of 8 bytes (RFC 791 §3.2).
///
/// A link too short for a fragment counts as one of 8 bytes of payload.
#[must_use]
pub const fn ipv4_packets(payload_bytes: usize, mtu: usize) -> usize {
    let whole = mtu.saturating_sub(IPV4_HEADER_BYTES);
    let fragment = if whole < 8 { 8 } else { whole / 8 * 8 };
    1 + payload_bytes.saturating_sub(whole).div_ceil(fragment)
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

    /// Computed by hand for 0, 64 and 1400 bytes: header, IV, the inner packet and 2 up to a whole
    /// block, ICV.
    #[test]
    fn lengths_of_esp_packets_match_the_rfcs() {
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
            // 8 + 8 + {4, 68, 1404} + {12, 8}; 8 + 8 + {8, 72, 1408} + 8
            ("kuznyechik-mgm", [32, 96, 1432]),
            ("magma-mgm", [28, 92, 1428]),
            ("kuznyechik-mgm-mac", [32, 96, 1432]),
            ("magma-mgm-mac", [28, 92, 1428]),
            ("magma-cbc-omac", [32, 96, 1432]),
            // 8 + 0 + {4, 68, 1404} + 0; 8 + 0 + {8, 72, 1408} + 0
            ("magma-ctr", [12, 76, 1412]),
            ("magma-ecb", [16, 80, 1416]),
            // 8 + 0 + {4, 68, 1404} + {12, 16, 32}
            ("null-hmac-sha1", [24, 88, 1424]),
            ("null-hmac-sha256", [28, 92, 1428]),
            ("null-hmac-sha512", [44, 108, 1444]),
        ] {
            let of = |inner| esp_bytes(suite(name), inner);
            assert_eq!([of(0), of(64), of(1400)], lengths, "{name}");
        }
    }

    /// Also by hand; 1438 for bare ESP with AES-CBC and SHA-1 is in many vendors' manuals.
    #[test]
    fn an_ethernet_mtu_carries_the_known_length_of_each_suite() {
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
}
