//! Packets that must not be opened, and packets that must not be sealed.

use super::*;
use crate::{OpenError, SealError};
use engine::{EngineFailed, Packet};

#[test]
fn a_damaged_packet_is_refused_and_leaves_the_genuine_one_acceptable() {
    for suite in authenticated() {
        for transform in transforms(suite) {
            let (mut outbound, _) = pair(suite);
            let mut inbound = InboundSa::new(SPI, transform, WindowSize::DEFAULT);
            let sealed = seal(&mut outbound, INNER, 4);
            let text = outbound.inner_offset()..sealed.len() - suite.icv_bytes();
            // Every bit: no part of a packet is outside of the check.
            for bit in 0..8 * sealed.len() {
                let mut packet = sealed.clone();
                packet[bit / 8] ^= 1 << (bit % 8);
                let reason = inbound.open(&mut packet).unwrap_err();
                // Sequence number 0 counts as received: no sender uses it.
                let replayed = packet[4..8] == [0; 4];
                let expected = if replayed {
                    OpenError::Replayed
                } else {
                    OpenError::IntegrityFailed
                };
                assert_eq!(reason, expected, "{suite} bit {bit}");
                // A changed header may be refused before decryption, which leaves the ciphertext.
                if bit / 8 >= 8 {
                    let text = &packet[text.clone()];
                    assert!(text.iter().all(|&byte| byte == 0), "{suite}: not wiped");
                }
            }
            inbound.open(&mut sealed.clone()).unwrap();
            assert_eq!(inbound.open(&mut sealed.clone()), Err(OpenError::Replayed));
        }
    }
}

#[test]
fn a_packet_with_another_high_half_is_refused() {
    for suite in authenticated() {
        let (mut outbound, mut inbound) = pair(suite);
        outbound.skip_to(0x1_0000_0005);
        let mut packet = seal(&mut outbound, INNER, 4);
        // The header alone looks right: only the ICV covers the high half.
        assert_eq!(inbound.expect(&packet), Ok(5));
        assert_eq!(inbound.open(&mut packet), Err(OpenError::IntegrityFailed));
    }
}

#[test]
fn a_packet_of_another_sa_is_refused() {
    for suite in authenticated() {
        let (mut outbound, _) = pair(suite);
        let sealed = seal(&mut outbound, INNER, 4);
        let mut other_key = keymat(suite);
        *other_key.last_mut().unwrap() ^= 1;
        // Another SPI with the right key, and another key under the right SPI.
        for (spi, keymat) in [(SPI + 1, keymat(suite)), (SPI, other_key)] {
            let transform = select(&CpuChoice::Auto, suite).unwrap().transform(&keymat);
            let mut other = InboundSa::new(spi, transform, WindowSize::DEFAULT);
            assert_eq!(
                other.open(&mut sealed.clone()),
                Err(OpenError::IntegrityFailed)
            );
        }
    }
}

/// An engine that must not be called.
struct Untouchable(Suite);

impl Transform for Untouchable {
    fn suite(&self) -> Suite {
        self.0
    }

    fn seal_from(&mut self, _: u32, _: &[u8], _: &mut [u8]) -> Result<(), EngineFailed> {
        panic!("the engine was called to seal")
    }

    fn seal(&mut self, _: &mut [u8], _: &[Packet]) -> Result<(), EngineFailed> {
        panic!("the engine was called to seal")
    }

    fn open(&mut self, _: &mut [u8], _: &[Packet], _: &mut [bool]) -> Result<(), EngineFailed> {
        panic!("the engine was called to open")
    }
}

#[test]
fn impossible_lengths_do_not_reach_the_engine() {
    for suite in Suite::ALL {
        let mut inbound = InboundSa::new(SPI, Box::new(Untouchable(suite)), WindowSize::DEFAULT);
        let shortest = wire::overhead::esp_bytes(suite, 0);
        let mut packet = vec![0x55; shortest + 4 * suite.pad_to_bytes()];
        packet[..4].copy_from_slice(&SPI.to_be_bytes());
        let mut aligned = 0;
        for length in 0..=packet.len() {
            if length < shortest {
                let result = inbound.open(&mut packet[..length]);
                assert_eq!(result, Err(OpenError::Runt), "{suite} {length}");
            } else if (length - shortest).is_multiple_of(suite.pad_to_bytes()) {
                assert!(
                    inbound.expect(&packet[..length]).is_ok(),
                    "{suite} {length}"
                );
                aligned += 1;
            } else {
                let result = inbound.open(&mut packet[..length]);
                assert_eq!(result, Err(OpenError::IntegrityFailed), "{suite} {length}");
            }
        }
        assert_eq!(aligned, 5);
    }
}

#[test]
fn packets_before_the_first_are_too_old_and_those_left_of_the_window_fail_authentication() {
    let (mut outbound, mut inbound) = pair(Suite::Aes256Gcm);
    let sealed: Vec<_> = (0..8193).map(|_| seal(&mut outbound, INNER, 4)).collect();
    let forge = |low: u32| {
        let mut packet = sealed[0].clone();
        packet[4..8].copy_from_slice(&low.to_be_bytes());
        packet
    };
    // Nothing opened yet: the window reaches 8191 numbers to the left of 0, where none exist.
    assert_eq!(inbound.open(&mut forge(u32::MAX)), Err(OpenError::TooOld));
    assert_eq!(
        inbound.open(&mut forge(u32::MAX - 8190)),
        Err(OpenError::TooOld)
    );
    assert_eq!(
        inbound.open(&mut forge(u32::MAX - 8191)),
        Err(OpenError::IntegrityFailed)
    );

    inbound.open(&mut sealed[8192].clone()).unwrap();
    // 8193 was opened: 2 is the left end of the window, 1 is interpreted as 2^32 + 1.
    inbound.open(&mut sealed[1].clone()).unwrap();
    assert_eq!(
        inbound.open(&mut sealed[0].clone()),
        Err(OpenError::IntegrityFailed)
    );
}

#[test]
fn an_authentic_packet_with_a_malformed_trailer_is_refused_as_such() {
    // Padding, its length, and next header 4.
    let cases: [(&[u8], bool); 7] = [
        (&[1, 2, 2, 4], true),
        (&[1, 3, 2, 4], false),
        (&[0, 0, 2, 4], false),
        (&[9, 9, 0, 4], true),
        (&[1, 2, 3, 4], false),
        (&[0, 1, 200, 4], false),
        (&[8, 0, 0, 4], true),
    ];
    for suite in suites() {
        for (end, good) in cases {
            // Up to the suite's block, with bytes that are not padding.
            let fill = suite.pad_to_bytes() - end.len();
            let text = [&vec![0xdd; fill], end].concat();
            let (_, mut inbound) = pair(suite);
            let result = inbound.open(&mut authentic(suite, &text));
            assert_eq!(result.is_ok(), good, "{suite} {text:?}");
            if !good {
                assert_eq!(result, Err(OpenError::BadTrailer), "{suite} {text:?}");
                // It was authentic, so it counts as received.
                let again = inbound.open(&mut authentic(suite, &text));
                assert_eq!(again, Err(OpenError::Replayed));
            }
        }
    }
}

#[test]
fn the_longest_padding_opens() {
    for suite in suites() {
        let (_, mut inbound) = pair(suite);
        // 257 bytes of padding and trailer, and 15 more than a multiple of 16.
        let inner = [INNER.as_slice(), &[7; 2]].concat();
        let text: Vec<u8> = inner
            .iter()
            .copied()
            .chain(1..=255)
            .chain([255, 4])
            .collect();
        let mut packet = authentic(suite, &text);
        let opened = inbound.open(&mut packet).unwrap();
        assert_eq!(packet[opened.inner], inner);
    }
}

/// The SA's first packet with arbitrary plaintext, trailer included.
fn authentic(suite: Suite, text: &[u8]) -> Vec<u8> {
    assert!(text.len().is_multiple_of(suite.pad_to_bytes()));
    let prefix = 8 + suite.iv_bytes();
    let mut packet = vec![0; prefix + text.len() + suite.icv_bytes()];
    packet[..4].copy_from_slice(&SPI.to_be_bytes());
    packet[7] = 1;
    packet[prefix..prefix + text.len()].copy_from_slice(text);
    let whole = Packet {
        at: 0,
        bytes: packet.len(),
        sequence_high: 0,
    };
    transform(suite).seal(&mut packet, &[whole]).unwrap();
    packet
}

#[test]
fn buffers_that_are_too_short_are_refused_and_use_no_sequence_number() {
    for suite in suites() {
        let (mut outbound, _) = pair(suite);
        let sealed_len = outbound.sealed_len(29);
        let mut dst = vec![0; sealed_len];
        // One byte short on either side, and far too short.
        for (src_len, dst_len) in [
            (29 + TRAILER_ROOM - 1, sealed_len),
            (29, sealed_len),
            (28, 0),
            (29 + TRAILER_ROOM, sealed_len - 1),
        ] {
            let result = outbound.seal(&mut vec![0; src_len], 29, 4, &mut dst[..dst_len]);
            assert_eq!(result, Err(SealError::NoRoom));
        }
        for (at, inner_len) in [(1, 29), (0, 29 + 16), (usize::MAX, 29), (0, usize::MAX - 1)] {
            let result = outbound.stage_in_place(inner_len, 4, &mut dst, at);
            assert_eq!(result, Err(SealError::NoRoom));
        }
        assert_eq!(sealed_packets(&outbound), 0);
        assert!(dst.iter().all(|&byte| byte == 0));
    }
}

#[test]
fn debug_output_shows_no_salt_and_no_key() {
    let (outbound, inbound) = pair(Suite::Aes256Gcm);
    assert_eq!(
        format!("{outbound:?} {inbound:?}"),
        "OutboundSa { spi: 0x00001001, suite: Aes256Gcm, sequence: 0, .. } \
         InboundSa { spi: 0x00001001, suite: Aes256Gcm, .. }"
    );
}
