//! Engines do not access memory outside their buffers: buffers here are adjacent to an inaccessible
//! page, so that an assembly routine that overruns them is killed.

use crate::{noise, selections, transforms};
use engine::{Packet, TAG_BYTES};
use std::ptr;
use wire::Suite;

const PAGE: usize = 4096;

/// A page of memory between two inaccessible pages.
struct Guarded {
    base: *mut u8,
}

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
        // SAFETY: the middle page of the mapping made above.
        let result = unsafe {
            libc::mprotect(
                base.add(PAGE).cast(),
                PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        };
        assert_eq!(result, 0);
        Self { base }
    }

    /// Returns `length` bytes that end with the page.
    fn last(&mut self, length: usize) -> &mut [u8] {
        assert!(length <= PAGE);
        // SAFETY: within the middle page, which is readable and writable; borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(2 * PAGE - length), length) }
    }

    /// Returns `length` bytes that begin with the page.
    fn first(&mut self, length: usize) -> &mut [u8] {
        assert!(length <= PAGE);
        // SAFETY: as in `last`.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(PAGE), length) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; no borrow of it outlives this value.
        unsafe { libc::munmap(self.base.cast(), 3 * PAGE) };
    }
}

#[test]
fn no_engine_touches_a_byte_outside_its_buffers() {
    type Place = for<'a> fn(&'a mut Guarded, usize) -> &'a mut [u8];
    let places: [Place; 2] = [Guarded::last, Guarded::first];
    let (mut nonce, mut aad) = (Guarded::new(), Guarded::new());
    let (mut src, mut dst) = (Guarded::new(), Guarded::new());
    for suite in Suite::AEADS {
        for selection in selections(suite) {
            let mut key = selection.aead(&noise(suite.key_bytes(), 8));
            for place in places {
                let nonce = &*nonce.last(12);
                let nonce: &[u8; 12] = nonce.try_into().unwrap();
                for length in 0..600 {
                    let aad = &*place(&mut aad, length % 40);
                    let src = &*place(&mut src, length);
                    let sealed = place(&mut dst, length + TAG_BYTES);
                    key.seal(nonce, aad, src, sealed);
                    key.open(nonce, aad, sealed).unwrap();
                    assert_eq!(sealed[..length], *src);
                }
            }
        }
    }
}

#[test]
fn no_transform_touches_a_byte_outside_its_buffers() {
    type Place = for<'a> fn(&'a mut Guarded, usize) -> &'a mut [u8];
    let places: [Place; 2] = [Guarded::last, Guarded::first];
    let (mut from, mut to) = (Guarded::new(), Guarded::new());
    for suite in Suite::ALL {
        let prefix = 8 + suite.iv_bytes();
        for (engine, mut transform) in transforms(suite) {
            for place in places {
                for units in 1..40 {
                    let case = format!("{engine} {suite} {units}");
                    let text = &*place(&mut from, units * suite.pad_to_bytes());
                    let packet = place(&mut to, prefix + text.len() + suite.icv_bytes());
                    transform.seal_from(7, text, packet).unwrap();
                    let packets = [Packet {
                        at: 0,
                        bytes: packet.len(),
                        sequence_high: 7,
                    }];
                    let mut authentic = [false];
                    transform.open(packet, &packets, &mut authentic).unwrap();
                    assert!(authentic[0], "{case}");
                    assert_eq!(packet[prefix..][..text.len()], *text, "{case}");
                    transform.seal(packet, &packets).unwrap();
                    packet[0] ^= 1;
                    transform.open(packet, &packets, &mut authentic).unwrap();
                    // Without an ICV every packet is authentic.
                    assert_eq!(authentic[0], suite.icv_bytes() == 0, "{case}");
                }
            }
        }
    }
}

#[test]
fn no_checksum_touches_a_byte_outside_its_buffer() {
    let mut page = Guarded::new();
    for length in 0..600 {
        assert_eq!(engine::checksum::sum(page.last(length), 5), 5);
        assert_eq!(engine::checksum::sum(page.first(length), 5), 5);
    }
}
