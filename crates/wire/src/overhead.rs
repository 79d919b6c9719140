//! What encapsulation costs: the one place that knows.
//!
//! Lengths are IP packet lengths in bytes, from the first byte of an IP header to the end of the payload.

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
                for mtu in 100..2000 {
                    let inner = inner_mtu(suite, outer, mtu).unwrap();
                    assert!(outer_bytes(suite, outer, inner) <= mtu);
                    assert!(outer_bytes(suite, outer, inner + 1) > mtu);
                }
            }
        }
    }

    #[test]
    fn an_ethernet_mtu_carries_1438_bytes_in_aes_gcm_udp_over_ipv4() {
        assert_eq!(
            inner_mtu(Suite::Aes256Gcm, Outer::UDP_IPV4, 1500),
            Some(1438)
        );
        assert_eq!(inner_mtu(Suite::Aes256Gcm, Outer::UDP_IPV4, 60), None);
    }
}
