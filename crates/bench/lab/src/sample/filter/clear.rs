//! The part of the filter that looks for the stations' data inside sealed packets, at the offsets
//! it has if the device "encrypts" with NULL (RFC 2410) or not at all.
//!
//! A sealed packet has a header of 8 bytes (ESP: SPI and sequence number), an initialisation vector
//! of 0, 8 or 16 bytes, and then the cleartext inner packet; the same offsets cover WireGuard's
//! header of 16 bytes and OpenVPN's of 24. There are two kinds of markers:
//!
//! - Digits, the payload of every tool. Their phase differs between the packets of a stream, so the
//!   sign is 16 bytes that are all digits: one ciphertext in 2^64 has them. The last bytes of a
//!   packet are tested in the same way, at any packet length.
//! - The common part of test frames' headers. The inner header must be IPv4 or IPv6 with UDP at one
//!   of the offsets, alone or after an Ethernet header, and have the marker in its addresses or
//!   after them: at most one ciphertext in 2^44 does.
//!
//! If a train of packets crosses a virtual link as one frame, only the first packet is tested.

use super::{Assembler, FOREIGN, UDP};
use libc::{
    BPF_ALU, BPF_AND, BPF_B, BPF_IND, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_LEN, BPF_MISC,
    BPF_RET, BPF_SUB, BPF_TAX, BPF_W,
};

/// SPI and sequence number.
const SEALED_HEADER_BYTES: u32 = 8;
/// Bytes of an initialisation vector in front of the inner packet.
const VECTOR_BYTES: [u32; 3] = [0, 8, 16];
/// Header of an inner Ethernet frame.
const INNER_ETHERNET_BYTES: [u32; 2] = [0, 14];

/// Offsets at which all payloads from 56 bytes (`ping`) and 64 bytes (datagrams) on have digits,
/// with any initialisation vector, as do full TCP segments behind the longest headers.
const DIGITS_AT: [u32; 2] = [64, 128];
const DIGITS_BYTES: u32 = 16;
/// Number of bytes before a packet's end that are searched for digits, as a tag may follow them.
const TAIL_BYTES: u32 = 64;
/// A word of digits: 0x30 to 0x39, and six more characters.
pub(super) const DIGITS_MASK: u32 = 0xf0f0_f0f0;
pub(super) const DIGITS: u32 = 0x3030_3030;

/// Offsets in an inner packet.
const IPV4_PROTOCOL_AT: u32 = 9;
const IPV6_NEXT_AT: u32 = 6;
/// Source and target, or the target only.
const IPV4_ADDRESSES_AT: u32 = 12;
const IPV4_TARGET_AT: u32 = 16;
/// Target port and length of UDP.
const IPV4_PORT_AT: u32 = 22;
const IPV6_TARGET_AT: u32 = 24;

/// Version and header length of IPv4 without options; version of IPv6 without a traffic class.
const IPV4_BEGIN: u32 = 0x45;
const IPV6_BEGIN: u32 = 0x60;

/// Returns the part that ends as foreign if a sealed packet shows the marker, and falls through if
/// not. `sealed_at` is the offset of the packet's header, relative to X. The part may be empty.
pub(super) fn unless_sealed(marker: &[u8], sealed_at: u32) -> Assembler {
    let mut program = Assembler::default();
    let body_at = sealed_at + SEALED_HEADER_BYTES;
    if marker.is_empty() {
        return program;
    }
    // The payload of the tools is digits in any phase, so that no fixed word of it can be searched.
    if marker.iter().all(u8::is_ascii_digit) {
        for at in DIGITS_AT {
            let words = (0..DIGITS_BYTES).step_by(4);
            let words: Vec<Word> = words
                .map(|offset| Word {
                    at: body_at + at + offset,
                    mask: DIGITS_MASK,
                    value: DIGITS,
                })
                .collect();
            program.foreign_where(&words);
        }
        program.foreign_with_tail(body_at + TAIL_BYTES);
        return program;
    }
    // The inner packet may be in an Ethernet frame, if the device bridges.
    for ethernet in INNER_ETHERNET_BYTES {
        for vector in VECTOR_BYTES {
            program.foreign_with_header(body_at + ethernet + vector, marker);
        }
    }
    program
}

/// A word to search for.
struct Word {
    /// Offset relative to X.
    at: u32,
    mask: u32,
    value: u32,
}

/// Returns the words of a marker at an offset, without an incomplete last word.
fn words_of(marker: &[u8], at: u32) -> Vec<Word> {
    let chunks = marker.chunks_exact(4).zip(0..);
    chunks
        .map(|(chunk, index)| Word {
            at: at + 4 * index,
            mask: u32::MAX,
            value: chunk
                .iter()
                .fold(0, |word, byte| word << 8 | u32::from(*byte)),
        })
        .collect()
}

impl Assembler {
    /// Ends as foreign if all these words match; continues if one does not, or the frame is
    /// shorter. The words must be in ascending order.
    fn foreign_where(&mut self, words: &[Word]) {
        let Some(last) = words.last() else {
            return;
        };
        let mut tests = Self::default();
        for word in words {
            tests.push(BPF_LD | BPF_W | BPF_IND, word.at);
            if word.mask != u32::MAX {
                tests.push(BPF_ALU | BPF_AND | BPF_K, word.mask);
            }
            tests.jump(BPF_JMP | BPF_JEQ | BPF_K, word.value, 0, 0);
        }
        tests.push(BPF_RET | BPF_K, FOREIGN);
        // Every failed test jumps behind the verdict.
        let end = tests.0.len();
        for (index, one) in tests.0.iter_mut().enumerate() {
            if u32::from(one.code) == BPF_JMP | BPF_JEQ | BPF_K {
                one.jf = (end - index - 1) as u8;
            }
        }
        // The words ascend, so a frame that holds the last one holds all.
        self.load_length_beyond_header();
        self.skip_unless(BPF_JGE, last.at + 4, &tests);
    }

    /// Ends as foreign if 16 bytes among the last [`TAIL_BYTES`], counted from the end, are all
    /// digits. Continues if fewer than `bytes_least` bytes follow X. Overwrites X.
    fn foreign_with_tail(&mut self, bytes_least: u32) {
        let mut tail = Self::default();
        tail.push(BPF_LD | BPF_W | BPF_LEN, 0);
        tail.push(BPF_ALU | BPF_SUB | BPF_K, TAIL_BYTES);
        tail.push(BPF_MISC | BPF_TAX, 0);
        for at in (0..TAIL_BYTES).step_by(DIGITS_BYTES as usize) {
            let mut digits = Self::default();
            digits.push(BPF_RET | BPF_K, FOREIGN);
            // Built from the innermost test outwards.
            for offset in (0..DIGITS_BYTES).step_by(4).rev() {
                let mut word = Self::default();
                word.push(BPF_LD | BPF_W | BPF_IND, at + offset);
                word.push(BPF_ALU | BPF_AND | BPF_K, DIGITS_MASK);
                word.skip_unless(BPF_JEQ, DIGITS, &digits);
                digits = word;
            }
            tail.0.extend(digits.0);
        }
        self.load_length_beyond_header();
        self.skip_unless(BPF_JGE, bytes_least, &tail);
    }

    /// Like [`Self::foreign_where`], for a marker in or after an inner header at this offset.
    fn foreign_with_header(&mut self, at: u32, marker: &[u8]) {
        let mut ipv4 = Self::default();
        let of_udp = |next_at: u32, markers_at: &[u32]| {
            let mut program = Self::default();
            for marker_at in markers_at {
                program.foreign_where(&words_of(marker, at + marker_at));
            }
            let mut guard = Self::default();
            guard.push(BPF_LD | BPF_B | BPF_IND, at + next_at);
            guard.skip_unless(BPF_JEQ, UDP, &program);
            guard
        };
        // A short marker is a target address, or target port and length; a long one has both
        // addresses.
        let in_ipv4: &[u32] = match marker.len() {
            0..8 => &[IPV4_TARGET_AT, IPV4_PORT_AT],
            _ => &[IPV4_ADDRESSES_AT],
        };
        ipv4.0.extend(of_udp(IPV4_PROTOCOL_AT, in_ipv4).0);
        let mut versions = Self::default();
        versions.push(BPF_LD | BPF_B | BPF_IND, at);
        versions.skip_unless(BPF_JEQ, IPV4_BEGIN, &ipv4);
        if marker.len() >= 8 {
            // Reload the first byte: the part before may have overwritten A.
            versions.push(BPF_LD | BPF_B | BPF_IND, at);
            versions.skip_unless(
                BPF_JEQ,
                IPV6_BEGIN,
                &of_udp(IPV6_NEXT_AT, &[IPV6_TARGET_AT]),
            );
        }
        self.load_length_beyond_header();
        self.skip_unless(BPF_JGE, at + IPV4_TARGET_AT + 4, &versions);
    }
}

#[cfg(test)]
mod tests {
    use crate::sample::Expected;
    use crate::sample::tests::{fragment, ipv4, is_foreign_where, udp};
    use plan::{Form, LinkForm};
    use testbed::protocol::SealedPort;

    const DIGITS: &[u8] = b"0123456789";
    const ADDRESSES: &[u8] = &[198, 18, 0, 1, 198, 19, 0, 1];
    const PREFIX: &[u8] = &[0x20, 1, 0, 2, 0, 0, 0, 0x13];

    fn is_foreign(port: Option<SealedPort>, marker: &[u8], frame: &[u8]) -> bool {
        let expected = Expected {
            sealed: port.as_slice(),
            control: &[],
            markers: &[marker.to_vec()],
        };
        is_foreign_where(expected, frame)
    }

    /// Noise without a pattern, always the same.
    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_u32;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 24) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    fn digits(phase: usize, bytes: usize) -> Vec<u8> {
        (phase..phase + bytes)
            .map(|i| b'0' + (i % 10) as u8)
            .collect()
    }

    /// An inner packet with headers that are right only in the fields that the filter reads.
    fn inner(version: u8, protocol: u8, transport_bytes: usize, payload: &[u8]) -> Vec<u8> {
        let mut packet = match version {
            4 => vec![0; 20],
            _ => vec![0; 40],
        };
        if version == 4 {
            (packet[0], packet[9]) = (0x45, protocol);
            packet[12..20].copy_from_slice(ADDRESSES);
        } else {
            (packet[0], packet[6]) = (0x60, protocol);
            packet[24..32].copy_from_slice(PREFIX);
        }
        let mut transport = noise(transport_bytes);
        if transport_bytes == 8 {
            transport[2..4].copy_from_slice(&9_u16.to_be_bytes());
            transport[4..6].copy_from_slice(&(8 + payload.len() as u16).to_be_bytes());
        }
        packet.extend(transport);
        packet.extend(payload);
        packet
    }

    /// A packet in the form of ESP with NULL encryption.
    fn null(vector: usize, packet: &[u8]) -> Vec<u8> {
        let mut sealed = vec![0, 0, 1, 2, 0, 0, 0, 1];
        sealed.extend(noise(vector));
        sealed.extend(packet);
        sealed.extend([1, 2, 2, 4]);
        sealed
    }

    #[test]
    fn digits_of_every_tool_are_seen_inside_bare_and_wrapped_esp() {
        let port = SealedPort::esp(4500);
        for vector in [0, 8, 16] {
            for phase in 0..10 {
                // Datagrams of 64 B with iperf3's 12 B of header, echoes of 56 B with a timestamp
                // of 16 B, full segments with timestamps over both versions of IP.
                for packet in [
                    inner(4, 17, 8 + 12, &digits(phase, 52)),
                    inner(4, 1, 8 + 16, &digits(phase, 40)),
                    inner(4, 6, 32, &digits(phase, 1448)),
                    inner(6, 6, 32, &digits(phase, 1428)),
                    inner(4, 6, 60, &digits(phase, 1400)),
                ] {
                    let sealed = null(vector, &packet);
                    let frame = ipv4(50, &sealed);
                    assert!(is_foreign(None, DIGITS, &frame), "{vector} {phase}");
                    assert!(is_foreign(Some(port), DIGITS, &udp(9, 4500, &sealed)));
                    // Without a marker there is nothing to find.
                    assert!(!is_foreign(None, b"", &frame));
                }
            }
        }
    }

    #[test]
    fn what_is_sealed_is_expected_whatever_its_length_and_its_marker() {
        let port = SealedPort::esp(4500);
        for bytes in (0..200).chain([1000, 1472]) {
            let sealed = null(0, &noise(bytes));
            for marker in [DIGITS, ADDRESSES, PREFIX, &[9, 0, 0, 72]] {
                assert!(!is_foreign(None, marker, &ipv4(50, &sealed)), "{bytes}");
                assert!(
                    !is_foreign(Some(port), marker, &udp(9, 4500, &sealed)),
                    "{bytes}"
                );
            }
        }
        // Too few digits to exclude chance.
        let mut sealed = null(0, &noise(400));
        sealed[8 + 64..8 + 76].fill(b'5');
        assert!(!is_foreign(None, DIGITS, &ipv4(50, &sealed)));
        sealed[8 + 76..8 + 80].fill(b'5');
        assert!(is_foreign(None, DIGITS, &ipv4(50, &sealed)));
    }

    #[test]
    fn digits_at_the_end_of_a_packet_are_seen_wherever_it_ends() {
        let port = SealedPort::esp(4500);
        for bytes in [80, 100, 333, 1400] {
            for phase in 0..10 {
                // With and without a tag after the digits.
                for behind in [0, 12, 16, 32] {
                    let mut sealed = null(8, &noise(bytes));
                    sealed.extend(digits(phase, 31));
                    sealed.extend(&noise(bytes)[..behind]);
                    assert!(
                        is_foreign(None, DIGITS, &ipv4(50, &sealed)),
                        "{bytes} {behind}"
                    );
                    assert!(is_foreign(Some(port), DIGITS, &udp(9, 4500, &sealed)));
                    assert!(!is_foreign(None, b"", &ipv4(50, &sealed)));
                    assert!(!is_foreign(None, ADDRESSES, &ipv4(50, &sealed)));
                }
            }
        }
        let mut few = null(8, &noise(300));
        few.extend(digits(0, 15));
        assert!(!is_foreign(None, DIGITS, &ipv4(50, &few)));
    }

    #[test]
    fn headers_of_test_frames_are_seen_inside_with_and_without_an_ethernet_header() {
        let data = noise(64);
        let length = (8 + data.len() as u16).to_be_bytes();
        let ports = [[0, 9], length].concat();
        for vector in [0, 8, 16] {
            for ethernet in [0, 14] {
                for (version, markers) in [
                    (4, vec![ADDRESSES, &ADDRESSES[4..], &ports]),
                    (6, vec![PREFIX]),
                ] {
                    let packet = [noise(ethernet), inner(version, 17, 8, &data)].concat();
                    let frame = ipv4(50, &null(vector, &packet));
                    for marker in markers {
                        assert!(
                            is_foreign(None, marker, &frame),
                            "{vector} {ethernet} {marker:?}"
                        );
                    }
                    assert!(!is_foreign(None, &[9; 8], &frame));
                    assert!(!is_foreign(None, &[9; 4], &frame));
                }
            }
        }
    }

    #[test]
    fn data_of_other_forms_that_seal_nothing_is_seen_too() {
        let packet = inner(4, 6, 32, &digits(3, 1000));
        let wireguard = [
            &[4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0][..],
            &packet,
        ]
        .concat();
        let openvpn = [&[9 << 3, 0, 0, 0][..], &[0; 20], &packet].concat();
        for (form, payload) in [(Form::WireGuard, wireguard), (Form::OpenVpn, openvpn)] {
            let port = SealedPort {
                form: LinkForm::Sealed(form),
                ..SealedPort::esp(1194)
            };
            let frame = udp(9, 1194, &payload);
            assert!(is_foreign(Some(port), DIGITS, &frame), "{form:?}");
            assert!(!is_foreign(Some(port), b"", &frame), "{form:?}");
        }
    }

    #[test]
    fn a_first_fragment_is_looked_at_and_a_later_one_goes_with_it() {
        let frame = ipv4(50, &null(0, &inner(4, 6, 32, &digits(3, 1000))));
        assert!(is_foreign(
            None,
            DIGITS,
            &fragment(frame.clone(), 1, 0x2000)
        ));
        assert!(!is_foreign(None, DIGITS, &fragment(frame, 1, 100)));
    }
}
