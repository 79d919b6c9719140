//! Statistics of sampled sealed packets: how often each byte value occurs, and whether a block of
//! 16 bytes repeats. In a good cipher's output neither exceeds chance; in text under a constant
//! XOR, or sealed block by block (ECB), both do.

use super::forms;
use std::collections::BTreeSet;
use testbed::protocol::Contents;
use wire::ethernet::{self, HEADER_BYTES};
use wire::headers::{UDP, be16};
use wire::overhead::{IPV6_HEADER_BYTES, UDP_HEADER_BYTES};

/// Most bytes of one sample that are inspected: a millisecond of work.
const BYTES_MAX: usize = 64 << 10;
/// Longest cleartext header of a form in front of its ciphertext: OpenVPN's, or ESP's with an
/// initialisation vector of 16 bytes.
const FORM_HEADER_BYTES: usize = 24;
/// Block size of every cipher here, and of the usual ciphers of other implementations.
const BLOCK_BYTES: usize = 16;
/// Ciphertext begins after vectors of 0, 8 or 16 bytes: these two offsets cover them.
const ALIGNMENTS: [usize; 2] = [0, 8];

/// Analyses frames with one whole sealed packet each, or an evenly spread part if there are too
/// many. Duplicates count once.
pub(super) fn contents_of(frames: &[Vec<u8>]) -> Contents {
    let bodies = frames
        .iter()
        .filter_map(|frame| frame.get(body_at(frame)?..));
    let different: BTreeSet<&[u8]> = bodies.collect();
    // Sorted by their first bytes, which are headers with sequence numbers in most forms: one in n
    // is then spread over the sample.
    let bodies: Vec<&[u8]> = different.into_iter().collect();
    let bytes: usize = bodies.iter().map(|body| body.len()).sum();
    let one_in = bytes.div_ceil(BYTES_MAX).max(1);
    let mut found = Contents {
        byte_counts: vec![0; 256],
        ..Contents::default()
    };
    let mut blocks = ALIGNMENTS.map(|_| Vec::new());
    for body in bodies.into_iter().step_by(one_in) {
        let Some(body) = body.get(FORM_HEADER_BYTES..) else {
            continue;
        };
        found.packets += 1;
        for &byte in body {
            found.byte_counts[usize::from(byte)] += 1;
        }
        for (blocks, from) in blocks.iter_mut().zip(ALIGNMENTS) {
            let aligned = body.get(from..).unwrap_or_default();
            blocks.extend(aligned.chunks_exact(BLOCK_BYTES));
        }
    }
    let repeated = blocks.map(repeated);
    // Not the sum: both alignments find the same repetitions.
    found.repeated_blocks = repeated.into_iter().max().unwrap_or(0);
    found
}

/// Counts the blocks that repeat an earlier block.
fn repeated(mut blocks: Vec<&[u8]>) -> u64 {
    let all = blocks.len();
    // Equal blocks become neighbours.
    blocks.sort_unstable();
    blocks.dedup();
    (all - blocks.len()) as u64
}

/// Returns the offset of the form's header in a frame; `None` if the frame has no known form.
fn body_at(frame: &[u8]) -> Option<usize> {
    let (ethernet, packet) = frame.split_at_checked(HEADER_BYTES)?;
    let (protocol, header_bytes) = match be16(ethernet, 12) {
        forms::MACSEC_ETHERTYPE => return Some(HEADER_BYTES),
        ethernet::IPV4 => (*packet.get(9)?, usize::from(packet.first()? & 15) * 4),
        ethernet::IPV6 => (*packet.get(6)?, IPV6_HEADER_BYTES),
        _ => return None,
    };
    let udp_bytes = if protocol == UDP { UDP_HEADER_BYTES } else { 0 };
    Some(HEADER_BYTES + header_bytes + udp_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::{ipv4, udp};

    /// Noise without a pattern, always the same (xorshift64).
    fn noise(bytes: usize, seed: u64) -> Vec<u8> {
        // Consecutive seeds differ in all bits.
        let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    /// An ESP packet with this sequence number, in one frame.
    fn esp(sequence: u32, cipher_text: &[u8]) -> Vec<u8> {
        let mut packet = vec![0, 0, 1, 2];
        packet.extend(sequence.to_be_bytes());
        packet.extend(u64::from(sequence).to_be_bytes());
        packet.extend(cipher_text);
        ipv4(50, &packet)
    }

    fn digits(phase: usize, bytes: usize) -> Vec<u8> {
        (phase..phase + bytes)
            .map(|at| b'0' + (at % 10) as u8)
            .collect()
    }

    /// Like ECB: equal blocks give equal ciphertext.
    fn block_by_block(text: &[u8]) -> Vec<u8> {
        let of_block = |block: &[u8]| {
            let seed = block.iter().fold(7_u64, |seed, byte| {
                seed.wrapping_mul(0x100_0000_01b3)
                    .wrapping_add(u64::from(*byte))
            });
            noise(block.len(), seed)
        };
        text.chunks(BLOCK_BYTES).flat_map(of_block).collect()
    }

    #[test]
    fn noise_has_no_block_twice_and_headers_are_left_out() {
        let frames: Vec<_> = (0..60)
            .map(|it| esp(it, &noise(1000, 99 + u64::from(it))))
            .collect();
        let found = contents_of(&frames);
        assert_eq!((found.packets, found.repeated_blocks), (60, 0));
        // The header of each packet has 16 bytes; 8 more are left out, as for the longest header of
        // a form.
        assert_eq!(found.byte_counts.iter().sum::<u64>(), 60 * (1000 - 8));
        // The same packets in UDP give the same result.
        let in_udp = |frame: &Vec<u8>| udp(4500, 4500, &frame[34..]);
        let wrapped: Vec<_> = frames.iter().map(in_udp).collect();
        assert_eq!(contents_of(&wrapped), found);
        // A copy made by an impaired path is not counted again.
        assert_eq!(contents_of(&[&frames[..], &frames[..5]].concat()), found);
    }

    #[test]
    fn text_that_is_sealed_block_by_block_has_blocks_twice() {
        for phase in 0..10 {
            // The digits begin inside a block.
            let text = [noise(20, 5), digits(phase, 500)].concat();
            let found = contents_of(&[esp(1, &block_by_block(&text))]);
            assert!(found.repeated_blocks > 10, "{phase}: {found:?}");
        }
        // Test frames: the same contents in each, and no repetition within one.
        let text = wire::stamp::pattern(400);
        let frames: Vec<_> = (0..4).map(|it| esp(it, &block_by_block(text))).collect();
        assert_eq!(contents_of(&frames[..1]).repeated_blocks, 0);
        assert!(contents_of(&frames).repeated_blocks >= 3 * 24);
    }

    #[test]
    fn text_under_a_constant_has_blocks_twice_and_few_values() {
        let hidden: Vec<u8> = digits(3, 1000).iter().map(|byte| byte ^ 0xa5).collect();
        let found = contents_of(&[esp(1, &hidden)]);
        assert!(found.repeated_blocks > 40, "{found:?}");
        assert_eq!(
            found.byte_counts.iter().filter(|count| **count > 0).count(),
            10
        );
    }

    #[test]
    fn of_many_packets_some_are_read_and_frames_of_no_form_are_not() {
        let frames: Vec<_> = (0..400)
            .map(|it| esp(it, &noise(1400, u64::from(it))))
            .collect();
        let found = contents_of(&frames);
        let bytes: u64 = found.byte_counts.iter().sum();
        assert!(
            bytes <= BYTES_MAX as u64 && bytes > BYTES_MAX as u64 / 2,
            "{bytes}"
        );
        let found = contents_of(&[vec![0; 60], vec![0; 5], esp(1, &[])]);
        assert_eq!(found.byte_counts.iter().sum::<u64>(), 0);
    }
}
