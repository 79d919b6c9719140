//! Golden packets and official vectors.

use super::peer::{bytes, hex};
use super::*;
use engine::{Packet, vectors};

/// Sealed by another implementation (Python's `cryptography`) from the same key, salt, SPI and
/// packet.
#[test]
fn our_first_packets_equal_those_of_another_implementation() {
    let golden = [
        (
            Suite::Aes256Gcm,
            "00001001000000010000000000000001e374fb9833132b229575eec9d22bb33f6ae17283d89959b0bce64470\
             fa2b39948e5e799dcfcc43b31903a6da7ac3320e",
        ),
        (
            Suite::Aes128Gcm,
            "00001001000000010000000000000001d00a6ab48f3706a9b82a74ce5abe16f5d9b21d08ced72a65dc412151\
             5f45f95665335a1d26645704208a1741986ffa1a",
        ),
        (
            Suite::ChaCha20Poly1305,
            "00001001000000010000000000000001d6e2d983775126b10a674593e0ad9c68f892597fa529b3c5b0649af3\
             737dc6ebe46f4f5b9fffc8e2857199f1517c187a",
        ),
    ];
    for (suite, expected) in golden {
        for transform in transforms(suite) {
            let mut outbound = OutboundSa::new(SPI, transform);
            assert_eq!(hex(&seal(&mut outbound, INNER, 4)), expected, "{suite}");
        }
    }
}

/// `golden.txt` names its sources. CBC would draw an IV of its own, so the transform gets the
/// golden one, and the result must match byte for byte.
#[test]
fn every_engine_opens_and_reproduces_packets_of_another_implementation() {
    let golden = include_str!("golden.txt").lines();
    let golden: Vec<_> = golden.filter(|line| !line.starts_with('#')).collect();
    assert_eq!(golden.len(), Suite::COMMON.len() - Suite::AEADS.len());
    for line in golden {
        let [name, iv, packet] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let suite = Suite::from_name(name).unwrap();
        let (iv, packet) = (bytes(iv), bytes(packet));
        assert_eq!(packet[8..8 + suite.iv_bytes()], iv);
        for selection in selections(suite) {
            let what = format!("{suite} by {}", selection.engine());
            let mut transform = selection.transform(&keymat(suite));
            let text_at = 8 + iv.len();
            let mut text = [INNER.as_slice(), &[1, 1, 4]].concat();
            text.resize(packet.len() - text_at, 0);
            let mut made = [&packet[..text_at], &text].concat();
            let whole = Packet {
                at: 0,
                bytes: packet.len(),
                sequence_high: 7,
            };
            transform.seal(&mut made, &[whole]).unwrap();
            assert_eq!(hex(&made), hex(&packet), "{what}");

            let mut inbound = InboundSa::new(SPI, transform, WindowSize::DEFAULT);
            // The golden packets have the high half 7.
            inbound.skip_to(0x7_0000_0001);
            let opened = inbound.open(&mut made).unwrap();
            assert_eq!(made[opened.inner], *INNER, "{what}");
            assert_eq!(opened.next_header, 4);
        }
    }
}

/// The test cases of draft-mcgrew-gcm-test-01, with extended and with short sequence numbers. Their
/// IVs are not sequence numbers, so they can be opened, not sealed.
#[test]
fn packets_of_the_gcm_in_esp_test_cases_open() {
    let (_, text) = vectors::SHIPPED
        .iter()
        .find(|(name, _)| name.contains("mcgrew"))
        .unwrap();
    let (mut extended, mut short) = (0, 0);
    for vector in vectors::parse(text).unwrap() {
        let aad = vector.bytes("aad").unwrap();
        let numbers = match aad.len() {
            // Authenticated data is the SPI and either 64 or 32 bits of number.
            12 => SequenceNumbers::Extended,
            8 => SequenceNumbers::Short,
            _ => continue,
        };
        let (spi, sequence) = aad.split_at(4);
        let sequence = sequence
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        let nonce = vector.bytes("nonce").unwrap();
        let packet = [
            spi,
            &aad[aad.len() - 4..],
            &nonce[SALT_BYTES..],
            &vector.bytes("sealed").unwrap(),
        ]
        .concat();
        let plaintext = vector.bytes("plaintext").unwrap();
        let Some((inner, next_header)) = inner_packet(&plaintext) else {
            continue;
        };

        let suite = Suite::from_name(vector.text("suite").unwrap()).unwrap();
        let spi = u32::from_be_bytes(spi.try_into().unwrap());
        let key = vector.bytes("key").unwrap();
        for selection in selections(suite) {
            let keymat = [&key, &nonce[..SALT_BYTES]].concat();
            let transform = selection.transform_with(&keymat, numbers);
            let mut inbound = InboundSa::new(spi, transform, WindowSize::DEFAULT);
            inbound.skip_to(sequence);
            let mut buffer = packet.clone();
            let opened = inbound
                .open(&mut buffer)
                .unwrap_or_else(|why| panic!("{}: {why}", vector.name()));
            assert_eq!(buffer[opened.inner], *inner, "{}", vector.name());
            assert_eq!(opened.next_header, next_header, "{}", vector.name());
        }
        match numbers {
            SequenceNumbers::Extended => extended += 1,
            SequenceNumbers::Short => short += 1,
        }
    }
    // Counted, so that a changed file does not silently test less.
    assert_eq!((extended, short), (9, 4));
}

/// The packet in a plaintext of ESP, and its next header; `None` if the padding is not ESP's.
fn inner_packet(plaintext: &[u8]) -> Option<(&[u8], u8)> {
    let [inner @ .., pad_length, next_header] = plaintext else {
        return None;
    };
    let bytes = inner.len().checked_sub((*pad_length).into())?;
    let padding = &inner[bytes..];
    let counts_up = padding.iter().zip(1..).all(|(byte, count)| *byte == count);
    counts_up.then_some((&inner[..bytes], *next_header))
}
