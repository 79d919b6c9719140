//! An SA stops at its limits, and requests new keys before that.

use super::*;
use crate::{OpenError, SealError};
use wire::{Cipher, Gost, Hmac};

#[test]
fn an_sa_stops_permanently_at_its_last_sequence_number() {
    for suite in suites() {
        let limits = Limits {
            packets: 3,
            ..Limits::of(suite)
        };
        let mut outbound = OutboundSa::new(SPI, transform(suite)).with_limits(limits);
        // Byte 7 is the last of the sequence number.
        let sequences: Vec<_> = (0..3).map(|_| seal(&mut outbound, INNER, 4)[7]).collect();
        assert_eq!(sequences, [1, 2, 3]);
        assert_eq!(outbound.remaining().packets, 0);
        let mut buffer = [0; 200];
        for _ in 0..2 {
            let sealed = outbound.seal(&mut [0; 64], 20, 4, &mut buffer);
            assert_eq!(sealed, Err(SealError::SequenceExhausted));
            let staged = outbound.stage(&[1; 20], 4, &mut buffer, 0);
            assert_eq!(staged, Err(SealError::SequenceExhausted));
            let staged =
                outbound.stage_with(20, 4, &mut buffer, 0, |_| panic!("it must not write"));
            assert_eq!(staged, Err(SealError::SequenceExhausted));
        }
        assert_eq!(buffer, [0; 200]);
    }
}

#[test]
fn an_sa_never_exceeds_its_byte_limit() {
    for suite in suites() {
        let limits = Limits {
            bytes: 100,
            ..Limits::of(suite)
        };
        let mut outbound = OutboundSa::new(SPI, transform(suite)).with_limits(limits);
        // 29 bytes and the trailer are 32 bytes of plaintext in every suite.
        for sealed in 1..=3 {
            seal(&mut outbound, INNER, 4);
            assert_eq!(outbound.remaining().bytes, 100 - 32 * sealed);
        }
        for _ in 0..2 {
            let sealed = outbound.seal(&mut [0; 64], 20, 4, &mut [0; 200]);
            assert_eq!(sealed, Err(SealError::BytesExhausted));
            let staged = outbound.stage(INNER, 4, &mut [0; 200], 0);
            assert_eq!(staged, Err(SealError::BytesExhausted));
        }
        assert_eq!(sealed_packets(&outbound), 3);
        // 4 bytes are left; a packet within them may still be sealed where the padding permits.
        let fits = outbound.seal(&mut [0; 64], 2, 4, &mut [0; 200]);
        assert_eq!(fits.is_ok(), suite.pad_to_bytes() == 4, "{suite}");
    }
}

#[test]
fn new_keys_are_due_when_half_of_either_budget_is_used() {
    let due = |packets, bytes, sealed| {
        let sa = OutboundSa::new(SPI, transform(Suite::Aes256Gcm));
        let mut sa = sa.with_limits(Limits { packets, bytes });
        (0..sealed).for_each(|_| drop(seal(&mut sa, INNER, 4)));
        sa.new_keys_are_due()
    };
    assert!(!due(80, u64::MAX, 39));
    assert!(due(80, u64::MAX, 40));
    assert!(!due(u64::MAX, 80 * 32, 39));
    assert!(due(u64::MAX, 80 * 32, 40));
}

#[test]
fn a_lifetime_makes_new_keys_due_earlier_without_stopping_the_sa() {
    let due = |packets, bytes, sealed| {
        let sa = OutboundSa::new(SPI, transform(Suite::Aes256Gcm));
        let mut sa = sa.with_lifetime(Limits { packets, bytes });
        (0..sealed).for_each(|_| drop(seal(&mut sa, INNER, 4)));
        sa.new_keys_are_due()
    };
    assert!(!due(40, u64::MAX, 39));
    assert!(due(40, u64::MAX, 40));
    assert!(!due(u64::MAX, 40 * 32, 39));
    assert!(due(u64::MAX, 40 * 32, 50));
    // A lifetime never makes new keys due later.
    let limits = Limits {
        packets: 4,
        bytes: u64::MAX,
    };
    let sa = OutboundSa::new(SPI, transform(Suite::Aes256Gcm));
    let mut sa = sa.with_limits(limits).with_lifetime(Limits {
        packets: 100,
        bytes: u64::MAX,
    });
    (0..2).for_each(|_| drop(seal(&mut sa, INNER, 4)));
    assert!(sa.new_keys_are_due());
}

#[test]
fn a_sequence_number_never_wraps_even_without_a_limit() {
    let limits = Limits {
        packets: u64::MAX,
        bytes: u64::MAX,
    };
    let (outbound, _) = pair(Suite::Aes256Gcm);
    let mut outbound = outbound.with_limits(limits);
    outbound.skip_to(u64::MAX);
    assert_eq!(seal(&mut outbound, INNER, 4)[8..16], [0xff; 8]);
    let result = outbound.seal(&mut [0; 64], 20, 4, &mut [0; 100]);
    assert_eq!(result, Err(SealError::SequenceExhausted));
}

#[test]
fn no_limit_allows_an_iv_to_repeat() {
    for (gost, last) in [
        // The last number of each suite: 2^40 keys of 2^10 or 2^24 packets.
        (Gost::MagmaMgm, (1 << 50) - 1),
        (Gost::MagmaMgmMac, (1 << 50) - 1),
        (Gost::KuznyechikMgm, u64::MAX),
        (Gost::KuznyechikMgmMac, u64::MAX),
        (Gost::MagmaCtr, 1 << 32),
    ] {
        let (outbound, _) = pair(Suite::Gost(gost));
        let mut outbound = outbound.with_limits(Limits::NONE);
        outbound.skip_to(last);
        let sealed = seal(&mut outbound, INNER, 4);
        assert_eq!(sealed[4..8], (last as u32).to_be_bytes(), "{gost:?}");
        if gost.has_key_tree() {
            assert_eq!(sealed[8..13], [0xff; 5], "{gost:?}");
        }
        let result = outbound.seal(&mut [0; 64], 20, 4, &mut [0; 100]);
        assert_eq!(result, Err(SealError::SequenceExhausted), "{gost:?}");
    }
}

#[test]
fn ciphers_of_64_bit_blocks_stop_after_2_to_the_20_blocks() {
    for suite in Suite::ALL {
        let small = matches!(
            suite,
            Suite::EncryptThenMac(Cipher::DesCbc | Cipher::TripleDesCbc, _)
        );
        assert_eq!(Limits::of(suite).bytes == 8 << 20, small, "{suite}");
        assert_eq!(Limits::of(suite).packets, 1 << 42);
    }
    let suite = Suite::EncryptThenMac(Cipher::TripleDesCbc, Hmac::Sha1);
    if !suites().contains(&suite) {
        return;
    }
    let mut outbound = OutboundSa::new(SPI, transform(suite));
    let mut buffer = vec![0; 70_000];
    // 128 packets of 2^16 bytes of plaintext.
    for _ in 0..128 {
        outbound
            .stage_in_place((1 << 16) - 2, 4, &mut buffer, 0)
            .unwrap();
    }
    let staged = outbound.stage_in_place(0, 4, &mut buffer, 0);
    assert_eq!(staged, Err(SealError::BytesExhausted));
}

#[test]
fn short_sequence_numbers_end_at_the_last_of_32_bits() {
    for suite in suites().into_iter().filter(|it| Suite::COMMON.contains(it)) {
        for selection in selections(suite) {
            let made = || selection.transform_with(&keymat(suite), SequenceNumbers::Short);
            let mut outbound = OutboundSa::new(SPI, made())
                .with_limits(Limits::NONE)
                .after(u64::from(u32::MAX) - 1);
            let mut inbound = InboundSa::new(SPI, made(), WindowSize::DEFAULT);
            let mut last = seal(&mut outbound, INNER, 4);
            assert_eq!(last[4..8], [0xff; 4]);
            let sealed = outbound.seal(&mut [0; 64], 20, 4, &mut [0; 200]);
            assert_eq!(sealed, Err(SealError::SequenceExhausted));
            let again = last.clone();
            inbound.open(&mut last).unwrap();
            assert_eq!(inbound.open(&mut again.clone()), Err(OpenError::Replayed));
            // The next one in a longer space is an old one here.
            let mut first = OutboundSa::new(SPI, made());
            let opened = inbound.open(&mut seal(&mut first, INNER, 4));
            assert_eq!(opened, Err(OpenError::TooOld));
        }
    }
}
