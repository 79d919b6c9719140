//! Tests specific to this engine: lanes that fill and drain at any count, and assembly that must
//! stay within packets. `tests/engines` has the tests of all engines.

use super::IpsecMb;
use crate::engine::Engine;
use crate::{Packet, SequenceNumbers, Transform};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use wire::overhead::ESP_HEADER_BYTES;
use wire::{Cipher, Hmac, Suite};

/// Returns the transform of a suite, if the library is on this host.
fn transform(suite: Suite) -> Option<Box<dyn Transform>> {
    match IpsecMb.probe() {
        Ok(_) => Some(IpsecMb.transform(
            suite,
            &noise(suite.keymat_bytes(), 1),
            SequenceNumbers::Extended,
        )),
        Err(reason) => {
            eprintln!("SKIPPED: engine ipsec-mb: {reason}");
            None
        }
    }
}

/// Returns pseudo-random bytes that are the same in every run.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Returns this number of packets, or a few if the library takes milliseconds for one.
fn up_to(count: usize, suite: Suite) -> usize {
    if IpsecMb.is_outrun(suite) {
        count.min(18)
    } else {
        count
    }
}

/// Returns the length of a packet whose text has this many units of padding.
fn packet_bytes(suite: Suite, units: usize) -> usize {
    ESP_HEADER_BYTES + suite.iv_bytes() + units * suite.pad_to_bytes() + suite.icv_bytes()
}

/// Returns packets of these lengths, 3 bytes apart, in a buffer of noise.
fn batch(suite: Suite, units: impl IntoIterator<Item = usize>) -> (Vec<u8>, Vec<Packet>) {
    let mut end = 0;
    let packets: Vec<_> = (0..)
        .zip(units)
        .map(|(index, units)| {
            let packet = Packet {
                at: end + 3,
                bytes: packet_bytes(suite, units),
                sequence_high: index,
            };
            end = packet.at + packet.bytes;
            packet
        })
        .collect();
    (noise(end + 3, 2), packets)
}

/// Unordered lengths: short and long packets end their lanes at different times.
fn mixed(count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |index| 1 + (index * 29 + count) % 61)
}

fn text(suite: Suite, packet: Packet) -> std::ops::Range<usize> {
    let start = packet.at + ESP_HEADER_BYTES + suite.iv_bytes();
    start..packet.at + packet.bytes - suite.icv_bytes()
}

#[test]
fn batches_of_every_count_equal_their_single_packets() {
    for suite in Suite::COMMON {
        let Some(mut transform) = transform(suite) else {
            return;
        };
        // More than four times the 16 lanes, and every remainder.
        for count in 0..=up_to(70, suite) {
            // Long and short packets in one batch: lanes end at different times, and are refilled.
            let (plain, packets) = batch(suite, mixed(count));
            let mut one_by_one = plain.clone();
            let mut from_elsewhere = plain.clone();
            for &packet in &packets {
                transform.seal(&mut one_by_one, &[packet]).unwrap();
                let whole = &mut from_elsewhere[packet.at..packet.at + packet.bytes];
                let source = &plain[text(suite, packet)];
                transform
                    .seal_from(packet.sequence_high, source, whole)
                    .unwrap();
            }
            let mut sealed = plain.clone();
            transform.seal(&mut sealed, &packets).unwrap();
            assert!(sealed == one_by_one, "{suite}: {count} at once");
            assert!(sealed == from_elsewhere, "{suite}: {count} from elsewhere");

            let mut opened = sealed.clone();
            let mut authentic = vec![false; count];
            transform
                .open(&mut opened, &packets, &mut authentic)
                .unwrap();
            assert!(!authentic.contains(&false), "{suite}: {count} opened");
            for &packet in &packets {
                sealed[text(suite, packet)].copy_from_slice(&plain[text(suite, packet)]);
            }
            assert!(opened == sealed, "{suite}: {count} opened");
        }
    }
}

#[test]
fn a_forgery_at_any_position_is_found_and_wiped_and_its_neighbours_open() {
    for suite in Suite::COMMON {
        let Some(mut transform) = transform(suite) else {
            return;
        };
        let count = up_to(67, suite);
        let (plain, packets) = batch(suite, mixed(count));
        let mut sealed = plain.clone();
        transform.seal(&mut sealed, &packets).unwrap();
        // Each packet alone, then each with every later one.
        for (first, last) in (0..count).flat_map(|at| [(at, at), (at, count - 1)]) {
            let mut buffer = sealed.clone();
            for packet in &packets[first..=last] {
                buffer[packet.at + packet.bytes - 1] ^= 0x80;
            }
            let mut expected = buffer.clone();
            let mut authentic = vec![true; count];
            transform
                .open(&mut buffer, &packets, &mut authentic)
                .unwrap();
            for (index, &packet) in packets.iter().enumerate() {
                let forged = (first..=last).contains(&index);
                assert_eq!(authentic[index], !forged, "{suite}: {index}");
                let place = text(suite, packet);
                if forged {
                    expected[place].fill(0);
                } else {
                    expected[place.clone()].copy_from_slice(&plain[place]);
                }
            }
            assert!(buffer == expected, "{suite}: {first} to {last} forged");
        }
    }
}

#[test]
fn nothing_outside_the_buffer_of_a_batch_is_touched() {
    let page = Guarded::new();
    for suite in Suite::COMMON {
        let Some(mut transform) = transform(suite) else {
            return;
        };
        for units in 1..=(200 / suite.pad_to_bytes()) {
            // One packet, then as many as fit into a page: the first begins with it, the last ends
            // with it.
            let bytes = packet_bytes(suite, units);
            for count in [1, (PAGE / bytes).min(20)] {
                let packets: Vec<_> = (0..count)
                    .map(|index| Packet {
                        at: index * bytes,
                        bytes,
                        sequence_high: 1,
                    })
                    .collect();
                for buffer in [page.first(count * bytes), page.last(count * bytes)] {
                    // SAFETY: the page is owned by the test, and this is the only reference to it
                    // until the end of the loop.
                    let buffer = unsafe { &mut *buffer };
                    let plain = noise(buffer.len(), units as u64);
                    buffer.copy_from_slice(&plain);
                    let mut authentic = vec![false; count];
                    transform.seal(buffer, &packets).unwrap();
                    transform.open(buffer, &packets, &mut authentic).unwrap();
                    assert!(!authentic.contains(&false), "{suite} {units}");
                    let place = text(suite, packets[count - 1]);
                    assert_eq!(buffer[place.clone()], plain[place], "{suite} {units}");
                }
            }
        }
    }
}

#[test]
fn invalid_packets_never_reach_the_library() {
    for suite in Suite::COMMON {
        let Some(mut transform) = transform(suite) else {
            return;
        };
        let bytes = packet_bytes(suite, 2);
        let place = |at: usize, bytes: usize| Packet {
            at,
            bytes,
            sequence_high: 0,
        };
        let plain = noise(2 * bytes, 3);
        let mut refuses = |packets: &[Packet], case: &str| {
            let mut buffer = plain.clone();
            let seals = AssertUnwindSafe(|| transform.seal(&mut buffer, packets));
            assert!(catch_unwind(seals).is_err(), "{suite}: {case}");
            let mut authentic = vec![true; packets.len()];
            let opens = AssertUnwindSafe(|| transform.open(&mut buffer, packets, &mut authentic));
            assert!(catch_unwind(opens).is_err(), "{suite}: {case}");
            assert!(buffer == plain, "{suite}: {case}");
        };
        refuses(&[place(bytes, bytes), place(0, bytes)], "out of order");
        refuses(&[place(0, bytes), place(bytes - 1, bytes)], "overlapping");
        refuses(&[place(0, bytes), place(0, bytes)], "the same twice");
        refuses(&[place(0, bytes), place(bytes + 1, bytes)], "outside");
        // The end of this packet overflows.
        refuses(&[place(usize::MAX - 1, bytes)], "beyond all memory");
        refuses(&[place(0, packet_bytes(suite, 1) - 1)], "too short");
        refuses(&[place(0, 0)], "nothing");
        let block = match suite {
            Suite::EncryptThenMac(cipher, _) => cipher.block_bytes(),
            _ => 1,
        };
        if block > 1 {
            refuses(&[place(0, bytes - 1)], "part of a block");
        }
        let few =
            AssertUnwindSafe(|| transform.open(&mut plain.clone(), &[place(0, bytes)], &mut []));
        assert!(catch_unwind(few).is_err(), "{suite}: too few verdicts");
        let longer = AssertUnwindSafe(|| transform.seal_from(0, &plain, &mut plain.clone()));
        assert!(catch_unwind(longer).is_err(), "{suite}: no room");
    }
}

#[test]
fn a_packet_too_long_for_lanes_fails_with_an_unchanged_batch() {
    let suite = Suite::EncryptThenMac(Cipher::Aes128Cbc, Hmac::Sha256);
    let Some(mut transform) = transform(suite) else {
        return;
    };
    // Exactly the longest text; one unit more must fail.
    let longest = 65_520 / suite.pad_to_bytes();
    let (plain, packets) = batch(suite, [1, longest]);
    let mut buffer = plain.clone();
    transform.seal(&mut buffer, &packets).unwrap();
    let mut authentic = [false; 2];
    transform
        .open(&mut buffer, &packets, &mut authentic)
        .unwrap();
    assert_eq!(authentic, [true; 2]);
    assert!(buffer[text(suite, packets[1])] == plain[text(suite, packets[1])]);

    let (plain, packets) = batch(suite, [1, longest + 1]);
    let mut buffer = plain.clone();
    let failed = transform.seal(&mut buffer, &packets).unwrap_err();
    assert_eq!(
        failed.to_string(),
        "engine ipsec-mb failed: its lanes accept texts up to 65520 B"
    );
    assert_eq!(
        transform.open(&mut buffer, &packets, &mut authentic),
        Err(failed.clone())
    );
    assert!(buffer == plain);
    let source = &plain[text(suite, packets[1])];
    assert_eq!(
        transform.seal_from(0, source, &mut buffer[packets[1].at..][..packets[1].bytes]),
        Err(failed)
    );
    assert!(buffer == plain);
}

const PAGE: usize = 4096;

/// A page of memory between two inaccessible pages.
struct Guarded(*mut u8);

impl Guarded {
    fn new() -> Self {
        // SAFETY: a new anonymous mapping, which replaces nothing.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                3 * PAGE,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        let base = base.cast::<u8>();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the middle page of the mapping made above.
        let result = unsafe { libc::mprotect(base.add(PAGE).cast(), PAGE, access) };
        assert_eq!(result, 0);
        Self(base)
    }

    /// Returns the page's first `length` bytes.
    fn first(&self, length: usize) -> *mut [u8] {
        assert!(length <= PAGE);
        ptr::slice_from_raw_parts_mut(self.0.wrapping_add(PAGE), length)
    }

    /// Returns the page's last `length` bytes.
    fn last(&self, length: usize) -> *mut [u8] {
        assert!(length <= PAGE);
        ptr::slice_from_raw_parts_mut(self.0.wrapping_add(2 * PAGE - length), length)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; no reference into it outlives this value.
        unsafe { libc::munmap(self.0.cast(), 3 * PAGE) };
    }
}
