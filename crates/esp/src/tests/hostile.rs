//! What must not open, and what must not be sealed.

use super::*;
use crate::{OpenError, SealError};
use std::collections::HashSet;

#[test]
fn a_damaged_packet_is_refused_and_leaves_the_genuine_one_acceptable() {
    for suite in Suite::AEADS {
        let (mut outbound, mut inbound) = pair(suite);
        let sealed = seal(&mut outbound, INNER, 4);
        for bit in 0..8 * sealed.len() {
            let mut packet = sealed.clone();
            packet[bit / 8] ^= 1 << (bit % 8);
            let reason = inbound.open(&mut packet).unwrap_err();
            // Sequence number 0 counts as seen: no sender uses it.
            let replayed = packet[4..8] == [0; 4];
            let expected = if replayed {
                OpenError::Replayed
            } else {
                OpenError::IntegrityFailed
            };
            assert_eq!(reason, expected, "bit {bit}");
            if bit / 8 >= 16 {
                assert!(packet[16..].iter().all(|&byte| byte == 0), "not wiped");
            }
        }
        inbound.open(&mut sealed.clone()).unwrap();
        assert_eq!(inbound.open(&mut sealed.clone()), Err(OpenError::Replayed));
    }
}

#[test]
fn a_packet_of_another_sa_is_refused() {
    let (mut outbound, _) = pair(Suite::Aes256Gcm);
    let sealed = seal(&mut outbound, INNER, 4);
    for (spi, salt) in [(SPI + 1, SALT), (SPI, *b"pepp")] {
        let mut other = InboundSa::new(spi, salt, aead(Suite::Aes256Gcm), WindowSize::DEFAULT);
        assert_eq!(
            other.open(&mut sealed.clone()),
            Err(OpenError::IntegrityFailed)
        );
    }
}

#[test]
fn what_is_too_short_for_esp_is_a_runt() {
    let (mut outbound, mut inbound) = pair(Suite::Aes256Gcm);
    let sealed = seal(&mut outbound, INNER, 4);
    for length in 0..34 {
        assert_eq!(
            inbound.open(&mut sealed.clone()[..length]),
            Err(OpenError::Runt)
        );
    }
    assert_eq!(
        inbound.open(&mut sealed.clone()[..34]),
        Err(OpenError::IntegrityFailed)
    );
}

#[test]
fn packets_before_the_first_are_too_old_and_those_left_of_the_window_fail() {
    let (mut outbound, mut inbound) = pair(Suite::Aes256Gcm);
    let sealed: Vec<_> = (0..8193).map(|_| seal(&mut outbound, INNER, 4)).collect();
    let forge = |low: u32| {
        let mut packet = sealed[0].clone();
        packet[4..8].copy_from_slice(&low.to_be_bytes());
        packet
    };
    // Nothing opened yet: the window reaches 8191 numbers to the left of 0, where there are none.
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
    // 8193 was opened: 2 is the left end of the window, 1 is taken for 2^32 + 1.
    inbound.open(&mut sealed[1].clone()).unwrap();
    assert_eq!(
        inbound.open(&mut sealed[0].clone()),
        Err(OpenError::IntegrityFailed)
    );
}

#[test]
fn an_authentic_packet_with_a_malformed_trailer_is_refused_as_such() {
    let cases: [(&[u8], bool); 7] = [
        (&[1, 2, 2, 4], true),
        (&[1, 3, 2, 4], false),
        (&[0, 0, 2, 4], false),
        (&[9, 9, 0, 4], true),
        (&[1, 2, 3, 4], false),
        (&[2, 4], false),
        (&[0, 4], true),
    ];
    for (plaintext, good) in cases {
        let (_, mut inbound) = pair(Suite::Aes256Gcm);
        let mut packet = authentic(plaintext);
        let result = inbound.open(&mut packet);
        assert_eq!(result.is_ok(), good, "{plaintext:?}");
        if !good {
            assert_eq!(result, Err(OpenError::BadTrailer), "{plaintext:?}");
            // It was authentic, so it counts as seen.
            assert_eq!(
                inbound.open(&mut authentic(plaintext)),
                Err(OpenError::Replayed)
            );
        }
    }
}

#[test]
fn the_longest_padding_there_is_opens() {
    let (_, mut inbound) = pair(Suite::Aes256Gcm);
    let plaintext: Vec<u8> = INNER
        .iter()
        .copied()
        .chain(1..=255)
        .chain([255, 4])
        .collect();
    let mut packet = authentic(&plaintext);
    let opened = inbound.open(&mut packet).unwrap();
    assert_eq!(packet[opened.inner], *INNER);
}

/// The SA's first packet with any plaintext, trailer and all.
fn authentic(plaintext: &[u8]) -> Vec<u8> {
    let mut packet = [
        &SPI.to_be_bytes()[..],
        &1u32.to_be_bytes(),
        &1u64.to_be_bytes(),
    ]
    .concat();
    packet.resize(16 + plaintext.len() + 16, 0);
    let iv = 1u64.to_be_bytes();
    let (nonce, aad) = (crate::nonce(SALT, iv), crate::aad(SPI, 1));
    aead(Suite::Aes256Gcm).seal(&nonce, &aad, plaintext, &mut packet[16..]);
    packet
}

#[test]
fn an_sa_stops_for_good_at_its_last_sequence_number() {
    let outbound = OutboundSa::new(SPI, transform(Suite::Aes256Gcm));
    let mut outbound = outbound.with_sequence_limit(3);
    let ivs: HashSet<_> = (0..3)
        .map(|_| seal(&mut outbound, INNER, 4)[8..16].to_vec())
        .collect();
    assert_eq!(ivs.len(), 3);
    let mut dst = [0; 100];
    for _ in 0..2 {
        let mut src = [0; 64];
        let result = outbound.seal(&mut src, 20, 4, &mut dst);
        assert_eq!(result, Err(SealError::SequenceExhausted));
    }
    assert_eq!(dst, [0; 100]);
}

#[test]
fn a_sequence_number_never_wraps_even_without_a_limit() {
    let (outbound, _) = pair(Suite::Aes256Gcm);
    let mut outbound = outbound.with_sequence_limit(u64::MAX);
    outbound.skip_to(u64::MAX);
    assert_eq!(seal(&mut outbound, INNER, 4)[8..16], [0xff; 8]);
    let result = outbound.seal(&mut [0; 64], 20, 4, &mut [0; 100]);
    assert_eq!(result, Err(SealError::SequenceExhausted));
}

#[test]
fn buffers_that_are_too_short_are_refused_and_use_no_sequence_number() {
    let (mut outbound, _) = pair(Suite::Aes256Gcm);
    let sealed_len = outbound.sealed_len(29);
    let mut dst = vec![0; sealed_len];
    for (src_len, dst_len) in [
        (29 + 7, sealed_len),
        (29, sealed_len),
        (28, 0),
        (37, sealed_len - 1),
    ] {
        let result = outbound.seal(&mut vec![0; src_len], 29, 4, &mut dst[..dst_len]);
        assert_eq!(result, Err(SealError::NoRoom));
    }
    assert_eq!(outbound.sealed_packets(), 0);
    assert!(dst.iter().all(|&byte| byte == 0));
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
