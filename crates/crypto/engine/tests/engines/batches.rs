//! ESP transforms of all engines, compared with each other and checked against their contract.

use crate::{noise, transforms};
use engine::{Packet, Transform};
use proptest::prelude::*;
use wire::Suite;

const CANARY: u8 = 0xc3;
const HEADER_BYTES: usize = 8;

fn overhead(suite: Suite) -> usize {
    HEADER_BYTES + suite.iv_bytes() + suite.icv_bytes()
}

/// Returns an unsealed packet: header, IV and text of noise, and garbage in place of the ICV. If
/// IVs select keys of a tree, all packets use one of two leaves, since a receiver derives few keys
/// for one batch.
fn unsealed(suite: Suite, text: usize, seed: u64) -> Vec<u8> {
    let mut packet = noise(overhead(suite) + text, seed);
    if matches!(suite, Suite::Gost(gost) if gost.has_key_tree()) {
        let key = 0x12_3456_7801 + u64::from(seed % 16 == 7);
        packet[HEADER_BYTES..][..5].copy_from_slice(&key.to_be_bytes()[3..]);
    }
    let icv = packet.len() - suite.icv_bytes();
    packet[icv..].fill(0xdd);
    packet
}

fn text_of(suite: Suite, packet: &[u8]) -> &[u8] {
    &packet[HEADER_BYTES + suite.iv_bytes()..packet.len() - suite.icv_bytes()]
}

/// Every padded length up to 300, those around powers of two up to 9216, and usual packet lengths.
fn lengths(suite: Suite) -> impl Iterator<Item = usize> {
    let unit = suite.pad_to_bytes();
    let around = move |power: usize| [power - unit, power, power + unit];
    let powers = [512, 1024, 2048, 4096, 8192].into_iter().flat_map(around);
    (1..=300 / unit)
        .map(move |units| units * unit)
        .chain(powers)
        .chain([1_408, 9_216])
}

/// Returns packets in one buffer with a gap of `gap` before each and at the end.
fn lay_out(packets: &[Vec<u8>], gap: usize) -> (Vec<u8>, Vec<Packet>) {
    let mut buffer = vec![CANARY; gap];
    let mut places = Vec::new();
    for (index, packet) in (0..).zip(packets) {
        places.push(Packet {
            at: buffer.len(),
            bytes: packet.len(),
            sequence_high: index,
        });
        buffer.extend_from_slice(packet);
        buffer.extend(std::iter::repeat_n(CANARY, gap));
    }
    (buffer, places)
}

fn seal_alone(transform: &mut dyn Transform, packet: &[u8], sequence_high: u32) -> Vec<u8> {
    let mut sealed = packet.to_vec();
    let place = Packet {
        at: 0,
        bytes: packet.len(),
        sequence_high,
    };
    transform.seal(&mut sealed, &[place]).unwrap();
    sealed
}

#[test]
fn engines_seal_equally_in_place_and_from_a_separate_text() {
    for suite in Suite::ALL {
        let mut transforms = transforms(suite);
        for length in lengths(suite) {
            let packet = unsealed(suite, length, length as u64);
            let sealed = seal_alone(&mut *transforms[0].1, &packet, 0x8000_0001);
            for (engine, transform) in &mut transforms {
                let case = format!("{engine} {suite} at {length}");
                assert!(
                    seal_alone(&mut **transform, &packet, 0x8000_0001) == sealed,
                    "{case}"
                );

                let mut from = packet.clone();
                let text = HEADER_BYTES + suite.iv_bytes();
                from[text..].fill(0xee);
                transform
                    .seal_from(0x8000_0001, text_of(suite, &packet), &mut from)
                    .unwrap();
                assert!(from == sealed, "{case}");

                let place = Packet {
                    at: 0,
                    bytes: packet.len(),
                    sequence_high: 0x8000_0001,
                };
                let mut authentic = [false];
                transform.open(&mut from, &[place], &mut authentic).unwrap();
                assert!(authentic[0], "{case}");
                assert!(text_of(suite, &from) == text_of(suite, &packet), "{case}");
                assert!(from[..text] == packet[..text], "{case}");
            }
        }
    }
}

#[test]
fn a_batch_equals_its_single_packets_at_any_number_and_gaps() {
    for suite in Suite::ALL {
        for (engine, mut transform) in transforms(suite) {
            for (count, gap) in [(0, 3), (1, 0), (2, 1), (7, 0), (16, 3), (33, 64), (150, 1)] {
                let case = format!("{engine} {suite} {count} with gaps of {gap}");
                let unit = suite.pad_to_bytes();
                // Short and long packets alternate, as in traffic, so that lanes end at different
                // times.
                let length = |index: usize| unit * (1 + index * 37 % (1_408 / unit));
                let packets: Vec<_> = (0..count)
                    .map(|index| unsealed(suite, length(index), index as u64))
                    .collect();
                let alone: Vec<_> = (0..)
                    .zip(&packets)
                    .map(|(index, packet)| seal_alone(&mut *transform, packet, index))
                    .collect();

                let (mut buffer, places) = lay_out(&packets, gap);
                let (unsealed, _) = lay_out(&packets, gap);
                transform.seal(&mut buffer, &places).unwrap();
                assert!(buffer == lay_out(&alone, gap).0, "{case}");

                let mut authentic = vec![false; count];
                transform
                    .open(&mut buffer, &places, &mut authentic)
                    .unwrap();
                assert!(!authentic.contains(&false), "{case}");
                for place in &places {
                    let text =
                        |buffer: &[u8]| text_of(suite, &buffer[place.at..][..place.bytes]).to_vec();
                    assert!(text(&buffer) == text(&unsealed), "{case}");
                }
            }
        }
    }
}

#[test]
fn alignment_makes_no_difference_and_neighbours_are_not_touched() {
    for suite in Suite::ALL {
        for (engine, mut transform) in transforms(suite) {
            for units in [1, 2, 5, 9] {
                let packet = unsealed(suite, units * suite.pad_to_bytes(), 3);
                let sealed = seal_alone(&mut *transform, &packet, 0);
                for offset in 0..64 {
                    let case = format!("{engine} {suite} {units} at {offset}");
                    let mut buffer = vec![CANARY; offset + packet.len() + 64];
                    buffer[offset..][..packet.len()].copy_from_slice(&packet);
                    let place = Packet {
                        at: offset,
                        bytes: packet.len(),
                        sequence_high: 0,
                    };
                    let end = offset + packet.len();
                    transform.seal(&mut buffer, &[place]).unwrap();
                    assert_eq!(buffer[offset..end], sealed, "{case}");

                    let mut authentic = [false];
                    transform
                        .open(&mut buffer, &[place], &mut authentic)
                        .unwrap();
                    assert!(authentic[0], "{case}");
                    let opened = text_of(suite, &buffer[offset..end]);
                    assert_eq!(opened, text_of(suite, &packet), "{case}");
                    let (before, after) = (&buffer[..offset], &buffer[end..]);
                    assert!(
                        before.iter().chain(after).all(|&byte| byte == CANARY),
                        "{case}"
                    );
                }
            }
        }
    }
}

/// The suites that detect forgeries.
fn authenticated() -> impl Iterator<Item = Suite> {
    Suite::ALL.into_iter().filter(|suite| suite.icv_bytes() > 0)
}

/// Flips every bit of a packet in turn, in one batch, with a genuine packet after each forged one.
#[test]
fn any_wrong_bit_is_refused_and_the_text_wiped_while_its_neighbours_open() {
    for suite in authenticated() {
        for (engine, mut transform) in transforms(suite) {
            let packet = unsealed(suite, 2 * suite.pad_to_bytes(), 5);
            let sealed = seal_alone(&mut *transform, &packet, 0);
            let bits = 8 * sealed.len();
            let forged = |bit: usize| {
                let mut forged = sealed.clone();
                forged[bit / 8] ^= 1 << (bit % 8);
                [forged, sealed.clone()]
            };
            let packets: Vec<_> = (0..bits).flat_map(forged).collect();
            let (mut buffer, mut places) = lay_out(&packets, 2);
            places.iter_mut().for_each(|place| place.sequence_high = 0);
            let mut authentic = vec![true; places.len()];
            transform
                .open(&mut buffer, &places, &mut authentic)
                .unwrap();
            for (index, (place, authentic)) in places.iter().zip(authentic).enumerate() {
                let case = format!("{engine} {suite} bit {}", index / 2);
                assert_eq!(authentic, index % 2 == 1, "{case}");
                let text = text_of(suite, &buffer[place.at..][..place.bytes]);
                if authentic {
                    assert_eq!(text, text_of(suite, &packet), "{case}");
                } else {
                    assert!(text.iter().all(|&byte| byte == 0), "{case}: not wiped");
                }
            }
        }
    }
}

#[test]
fn any_wrong_bit_of_the_sequence_numbers_high_half_is_refused() {
    for suite in authenticated() {
        for (engine, mut transform) in transforms(suite) {
            let packet = unsealed(suite, 4 * suite.pad_to_bytes(), 6);
            let sealed = seal_alone(&mut *transform, &packet, 0x1234_5678);
            for bit in 0..32 {
                let mut buffer = sealed.clone();
                let place = Packet {
                    at: 0,
                    bytes: buffer.len(),
                    sequence_high: 0x1234_5678 ^ 1 << bit,
                };
                let mut authentic = [true];
                transform
                    .open(&mut buffer, &[place], &mut authentic)
                    .unwrap();
                assert!(!authentic[0], "{engine} {suite} bit {bit}");
                let text = text_of(suite, &buffer);
                assert!(
                    text.iter().all(|&byte| byte == 0),
                    "{engine} {suite}: not wiped"
                );
            }
        }
    }
}

#[test]
fn transforms_of_many_threads_do_not_disturb_one_another() {
    for suite in Suite::ALL {
        let packets: Vec<_> = (0..20)
            .map(|index| unsealed(suite, 16 * (index + 1), index as u64))
            .collect();
        let (unsealed, places) = lay_out(&packets, 1);
        let mut expected = unsealed.clone();
        transforms(suite)[0].1.seal(&mut expected, &places).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                // Made here and moved to the thread: keying material may change its thread.
                for (engine, mut transform) in transforms(suite) {
                    let (unsealed, expected, places) = (&unsealed, &expected, &places);
                    scope.spawn(move || {
                        for _ in 0..20 {
                            let mut buffer = unsealed.clone();
                            transform.seal(&mut buffer, places).unwrap();
                            assert!(buffer == *expected, "{engine} {suite}");
                            let mut authentic = vec![false; places.len()];
                            transform.open(&mut buffer, places, &mut authentic).unwrap();
                            assert!(!authentic.contains(&false), "{engine} {suite}");
                        }
                    });
                }
            }
        });
    }
}

fn panics(act: impl FnOnce()) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).is_err()
}

/// A violation of the contract panics, and must not access memory outside the packet.
#[test]
fn packets_that_violate_the_contract_panic() {
    for suite in Suite::ALL {
        let shortest = overhead(suite) + suite.pad_to_bytes();
        let mut broken = vec![
            ("behind the end", shortest, vec![(1, shortest)]),
            ("longer than the buffer", shortest - 1, vec![(0, shortest)]),
            (
                "at the end of memory",
                shortest,
                vec![(usize::MAX, shortest)],
            ),
            ("without text", shortest, vec![(0, overhead(suite))]),
            ("without a header", shortest, vec![(0, HEADER_BYTES - 1)]),
            ("twice", 2 * shortest, vec![(0, shortest), (0, shortest)]),
            (
                "over one another",
                2 * shortest,
                vec![(0, shortest), (shortest - 1, shortest)],
            ),
            (
                "out of order",
                2 * shortest,
                vec![(shortest, shortest), (0, shortest)],
            ),
        ];
        if suite.pad_to_bytes() > 4 {
            broken.push(("of half a block", 99, vec![(0, shortest + 4)]));
        }
        for (what, bytes, places) in broken {
            let places: Vec<_> = places
                .into_iter()
                .map(|(at, bytes)| Packet {
                    at,
                    bytes,
                    sequence_high: 0,
                })
                .collect();
            for (engine, mut transform) in transforms(suite) {
                let mut buffer = vec![0; bytes];
                let mut authentic = vec![false; places.len()];
                assert!(
                    panics(|| transform.seal(&mut buffer, &places).unwrap()),
                    "{engine} {suite} seals packets {what}"
                );
                assert!(
                    panics(|| transform
                        .open(&mut buffer, &places, &mut authentic)
                        .unwrap()),
                    "{engine} {suite} opens packets {what}"
                );
            }
        }
        for (engine, mut transform) in transforms(suite) {
            let text = vec![0; 2 * suite.pad_to_bytes()];
            assert!(
                panics(|| transform
                    .seal_from(0, &text, &mut vec![0; shortest])
                    .unwrap()),
                "{engine} {suite} seals a separate text that does not fit"
            );
            let place = Packet {
                at: 0,
                bytes: shortest,
                sequence_high: 0,
            };
            assert!(
                panics(|| transform
                    .open(&mut vec![0; shortest], &[place], &mut [])
                    .unwrap()),
                "{engine} {suite} opens packets without room for the answers"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn engines_agree_on_any_batch(
        suite in proptest::sample::select(Suite::ALL.to_vec()),
        units in proptest::collection::vec(1_usize..40, 0..70),
        gap in 0_usize..9,
        seed: u64,
    ) {
        let packets: Vec<_> = (seed >> 8..)
            .zip(units)
            .map(|(seed, units)| unsealed(suite, units * suite.pad_to_bytes(), seed))
            .collect();
        let (buffer, places) = lay_out(&packets, gap);
        let mut first = None;
        for (engine, mut transform) in transforms(suite) {
            let mut sealed = buffer.clone();
            transform.seal(&mut sealed, &places).unwrap();
            let first = first.get_or_insert_with(|| sealed.clone());
            prop_assert!(sealed == *first, "{} {}", engine, suite);
        }
    }
}
