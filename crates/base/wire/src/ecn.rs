//! DSCP and ECN of packets in a tunnel (RFC 6040, normal mode; RFC 2983).
//!
//! The inner packet's receiver must learn of congestion on the tunnel's path: the outer header
//! starts with the inner one's ECN, routers mark it, and decapsulation copies the mark (RFC 6040
//! §4.2, figure 4; result, by the inner header of the row and the outer header of the column):
//!
//! ```text
//!          Not-ECT   ECT(0)        ECT(1)        CE
//! Not-ECT  Not-ECT   Not-ECT !!!   Not-ECT !!!   drop !!!
//! ECT(0)   ECT(0)    ECT(0)        ECT(1)        CE
//! ECT(1)   ECT(1)    ECT(1) !      ECT(1)        CE
//! CE       CE        CE            CE !!!        CE
//! ```
//!
//! Combinations with an exclamation mark come from no conforming path, and are worth counting.
//!
//! No compatibility mode (RFC 6040 §4.3) and no negotiation: both ends are this program, or conform
//! to RFC 6040 or RFC 4301.

use crate::checksum;
use crate::headers::be16;

const NOT_ECT: u8 = 0;
const ECT_1: u8 = 1;
const ECT_0: u8 = 2;
const CE: u8 = 3;
const ECN: u8 = 3;

/// Treatment of the DSCP on encapsulation and decapsulation (RFC 2983 §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DscpModel {
    /// The outer DSCP is 0 and the inner one is unchanged: reveals nothing to an observer.
    #[default]
    Pipe,
    /// Copied to the outer header, and back from it.
    Uniform,
}

/// The result of [`decapsulate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The inner packet's ECN field was changed.
    pub marked: bool,
    /// The two headers were a combination that no conforming path produces.
    pub suspect: bool,
}

/// The path was congested and the inner packet's sender does not support ECN: the packet must be
/// dropped, which is the congestion signal for such a sender (RFC 6040 §4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CongestionDrop;

/// DSCP and ECN of an IP packet, as in the second byte of an IPv4 header; 0 if it is not IP.
#[inline]
#[must_use]
pub fn tos(packet: &[u8]) -> u8 {
    match *packet {
        [first, tos, ..] if first >> 4 == 4 => tos,
        [first, second, ..] if first >> 4 == 6 => first << 4 | second >> 4,
        _ => 0,
    }
}

/// DSCP and ECN of the outer header of `inner` (RFC 6040 §4.1, normal mode).
#[inline]
#[must_use]
pub fn outer_tos(inner: &[u8], dscp: DscpModel) -> u8 {
    match dscp {
        DscpModel::Pipe => tos(inner) & ECN,
        DscpModel::Uniform => tos(inner),
    }
}

/// Applies the outer header's fields to `inner`, a whole IP packet; anything else is unchanged.
///
/// # Errors
/// [`CongestionDrop`]; `inner` is unchanged.
#[inline]
pub fn decapsulate(
    inner: &mut [u8],
    outer_tos: u8,
    dscp: DscpModel,
) -> Result<Outcome, CongestionDrop> {
    let inner_tos = tos(inner);
    let (before, outer) = (inner_tos & ECN, outer_tos & ECN);
    let after = match (before, outer) {
        (NOT_ECT, CE) => return Err(CongestionDrop),
        (NOT_ECT, _) => NOT_ECT,
        (_, CE) => CE,
        // Outside, ECT(1) may be a weaker mark than CE: RFC 6040 makes room for two severities.
        (ECT_0, ECT_1) => ECT_1,
        (before, _) => before,
    };
    let class = match dscp {
        DscpModel::Pipe => inner_tos,
        DscpModel::Uniform => outer_tos,
    };
    set_tos(inner, class & !ECN | after);
    Ok(Outcome {
        marked: after != before,
        suspect: matches!(
            (before, outer),
            (NOT_ECT, ECT_0 | ECT_1) | (ECT_1, ECT_0) | (CE, ECT_1)
        ),
    })
}

/// Writes DSCP and ECN of an IP packet; an IPv4 header's checksum changes with them.
#[inline]
fn set_tos(packet: &mut [u8], tos: u8) {
    // No header of either version is shorter, and the checksum below is within 20 bytes.
    if packet.len() < 20 {
        return;
    }
    let old = be16(packet, 0);
    let new = match old >> 12 {
        4 => old & 0xff00 | u16::from(tos),
        // The traffic class is between the version and the flow label.
        6 => old & 0xf00f | u16::from(tos) << 4,
        _ => return,
    };
    // Nearly every packet: nothing is stored and no checksum changes.
    if new == old {
        return;
    }
    packet[..2].copy_from_slice(&new.to_be_bytes());
    if old >> 12 == 4 {
        let sum = checksum::update([packet[10], packet[11]], old, new);
        packet[10..12].copy_from_slice(&sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PIPE: DscpModel = DscpModel::Pipe;
    const UNIFORM: DscpModel = DscpModel::Uniform;

    fn packet(ipv6: bool, tos: u8) -> Vec<u8> {
        let mut packet = Vec::new();
        if ipv6 {
            etherparse::PacketBuilder::ip(etherparse::IpHeaders::Ipv6(
                etherparse::Ipv6Header {
                    traffic_class: tos,
                    flow_label: 0xabcde.try_into().unwrap(),
                    source: [1; 16],
                    destination: [2; 16],
                    hop_limit: 64,
                    ..Default::default()
                },
                etherparse::Ipv6Extensions::default(),
            ))
            .udp(1, 2)
            .write(&mut packet, b"payload")
            .unwrap();
        } else {
            etherparse::PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
                .udp(1, 2)
                .write(&mut packet, b"payload")
                .unwrap();
            packet[1] = tos;
            let header = etherparse::Ipv4Header::from_slice(&packet).unwrap().0;
            packet[10..12].copy_from_slice(&header.calc_header_checksum().to_be_bytes());
        }
        packet
    }

    /// RFC 6040 §4.2, figure 4: rows Not-ECT, ECT(0), ECT(1), CE inside, columns in the same order
    /// outside; the letter `!` for combinations with one or three exclamation marks there.
    const FIGURE_4: [[(&str, &str); 4]; 4] = [
        [
            ("Not-ECT", ""),
            ("Not-ECT", "!"),
            ("Not-ECT", "!"),
            ("drop", "!"),
        ],
        [("ECT(0)", ""), ("ECT(0)", ""), ("ECT(1)", ""), ("CE", "")],
        [("ECT(1)", ""), ("ECT(1)", "!"), ("ECT(1)", ""), ("CE", "")],
        [("CE", ""), ("CE", ""), ("CE", "!"), ("CE", "")],
    ];
    /// The codepoints in the order of the figure (RFC 3168 §5).
    const CODEPOINTS: [(&str, u8); 4] = [
        ("Not-ECT", 0b00),
        ("ECT(0)", 0b10),
        ("ECT(1)", 0b01),
        ("CE", 0b11),
    ];

    #[test]
    fn decapsulates_every_combination_of_figure_4_of_rfc_6040() {
        for (row, (_, inside)) in FIGURE_4.iter().zip(CODEPOINTS) {
            for ((result, mark), (_, outside)) in row.iter().zip(CODEPOINTS) {
                for ipv6 in [false, true] {
                    let before = packet(ipv6, 0xb8 | inside);
                    let mut after = before.clone();
                    let outcome = decapsulate(&mut after, outside, PIPE);
                    let Some((_, codepoint)) = CODEPOINTS.iter().find(|(name, _)| name == result)
                    else {
                        assert_eq!((outcome, after), (Err(CongestionDrop), before));
                        continue;
                    };
                    assert_eq!(after, packet(ipv6, 0xb8 | codepoint));
                    let expected = Outcome {
                        marked: *codepoint != inside,
                        suspect: *mark == "!",
                    };
                    assert_eq!(outcome, Ok(expected));
                }
            }
        }
    }

    #[test]
    fn the_outer_header_has_the_inner_ecn_and_the_dscp_if_configured() {
        for ipv6 in [false, true] {
            for value in 0..=255 {
                let inner = packet(ipv6, value);
                assert_eq!(tos(&inner), value);
                assert_eq!(outer_tos(&inner, PIPE), value & 3);
                assert_eq!(outer_tos(&inner, UNIFORM), value);
            }
        }
        assert_eq!(outer_tos(&[], UNIFORM), 0);
        assert_eq!(outer_tos(&[0x15, 0xff], UNIFORM), 0);
    }

    proptest! {
        #[test]
        fn a_uniform_tunnel_copies_the_outer_dscp(ipv6: bool, inside: u8, outside: u8) {
            let mut after = packet(ipv6, inside);
            if decapsulate(&mut after, outside, UNIFORM).is_ok() {
                let ecn = tos(&after) & 3;
                prop_assert_eq!(after, packet(ipv6, outside & !3 | ecn));
            }
        }

        #[test]
        fn an_unmarked_path_changes_nothing(ipv6: bool, inside: u8, uniform: bool) {
            let model = if uniform { UNIFORM } else { PIPE };
            let before = packet(ipv6, inside);
            let mut after = before.clone();
            let outside = outer_tos(&before, model);
            let quiet = Outcome { marked: false, suspect: false };
            prop_assert_eq!(decapsulate(&mut after, outside, model), Ok(quiet));
            prop_assert_eq!(after, before);
        }

        #[test]
        fn never_panics_on_garbage(
            mut bytes in prop::collection::vec(any::<u8>(), 0..60),
            outside: u8,
        ) {
            let _ = decapsulate(&mut bytes, outside, UNIFORM);
        }
    }
}
