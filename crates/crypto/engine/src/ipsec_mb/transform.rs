//! SAs that pass whole batches to the library.

use super::NAME;
use super::batch::Shape;
use super::ffi;
use super::manager::{Keys, with_manager};
use crate::{EngineFailed, Packet, SequenceNumbers, Transform};
use wire::{SALT_BYTES, Suite};

/// Length of the longest text in a lane: lanes count bytes in 16 bits, and the highest count marks
/// an empty lane. No ESP packet is that long, since an IP packet has at most 65 535 bytes.
const LANE_TEXT_BYTES_MAX: usize = 65_520;

const UNFINISHED: &str = "ipsec-mb finishes all jobs of a batch before it returns";

/// The keying material of one SA of any suite.
pub(super) struct Sa {
    suite: Suite,
    shape: Shape,
    packet_bytes_max: usize,
    numbers: SequenceNumbers,
    keys: Keys,
}

impl Sa {
    pub(super) fn new(suite: Suite, keymat: &[u8], numbers: SequenceNumbers) -> Self {
        let (key, rest) = keymat.split_at(suite.key_bytes());
        // A closure: an HMAC key is no salt.
        let salt = || -> [u8; SALT_BYTES] {
            rest.try_into()
                .expect("an AEAD's keying material ends in its salt")
        };
        let keys = match suite {
            Suite::Aes128Gcm | Suite::Aes256Gcm => Keys::gcm(key, salt(), numbers),
            Suite::ChaCha20Poly1305 => Keys::chacha(key, salt(), numbers),
            Suite::EncryptThenMac(cipher, hmac) => {
                Keys::encrypt_then_mac(cipher, hmac, key, rest, numbers)
            }
            Suite::Gost(_) => unreachable!("{suite} is not served"),
        };
        let shape = Shape::of(suite);
        // Only ciphers with an HMAC use lanes.
        let packet_bytes_max = match suite {
            Suite::EncryptThenMac(..) => shape.packet_bytes(LANE_TEXT_BYTES_MAX),
            _ => usize::MAX,
        };
        Self {
            suite,
            shape,
            packet_bytes_max,
            numbers,
            keys,
        }
    }

    /// Whether the library accepts packets up to this length.
    #[inline]
    fn check_takes(&self, packet_bytes: usize) -> Result<(), EngineFailed> {
        if packet_bytes > self.packet_bytes_max {
            return Err(too_long());
        }
        Ok(())
    }
}

impl Transform for Sa {
    fn suite(&self) -> Suite {
        self.suite
    }

    fn numbers(&self) -> SequenceNumbers {
        self.numbers
    }

    #[inline]
    fn seal_from(
        &mut self,
        sequence_high: u32,
        text: &[u8],
        packet: &mut [u8],
    ) -> Result<(), EngineFailed> {
        self.shape.assert_packet(text.len(), packet.len());
        // After the asserts: a packet with a wrong form is a mistake of the caller, one that is too
        // long is a limit of the library.
        self.check_takes(packet.len())?;
        let keys = self.keys.as_ptr();
        let done = with_manager(|manager| {
            // SAFETY: the manager belongs to this thread, the keys are exclusively borrowed by
            // `&mut self`. `packet` has room for prefix, `text` and ICV, as asserted above; it is
            // borrowed exclusively, so it overlaps nothing.
            unsafe {
                ffi::cb_imb_seal_from(
                    manager,
                    keys,
                    sequence_high,
                    text.as_ptr(),
                    packet.as_mut_ptr(),
                    packet.len(),
                )
            }
        });
        assert!(done, "{UNFINISHED}");
        Ok(())
    }

    #[inline]
    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed> {
        let longest = self.shape.assert_batch(buffer.len(), packets);
        self.check_takes(longest)?;
        let keys = self.keys.as_ptr();
        let done = with_manager(|manager| {
            // SAFETY: the manager belongs to this thread, the keys are exclusively borrowed by
            // `&mut self`. The packets are in `buffer`, disjoint and long enough, as asserted
            // above; `Packet` has C layout.
            unsafe {
                ffi::cb_imb_seal(
                    manager,
                    keys,
                    buffer.as_mut_ptr(),
                    packets.as_ptr(),
                    packets.len(),
                )
            }
        });
        assert!(done, "{UNFINISHED}");
        Ok(())
    }

    #[inline]
    fn open(
        &mut self,
        buffer: &mut [u8],
        packets: &[Packet],
        authentic: &mut [bool],
    ) -> Result<(), EngineFailed> {
        assert_eq!(packets.len(), authentic.len(), "one verdict per packet");
        let longest = self.shape.assert_batch(buffer.len(), packets);
        self.check_takes(longest)?;
        let keys = self.keys.as_ptr();
        let done = with_manager(|manager| {
            // SAFETY: as in `seal`; `authentic` has one entry for each packet, as asserted above.
            unsafe {
                ffi::cb_imb_open(
                    manager,
                    keys,
                    buffer.as_mut_ptr(),
                    packets.as_ptr(),
                    packets.len(),
                    authentic.as_mut_ptr(),
                )
            }
        });
        assert!(done, "{UNFINISHED}");
        Ok(())
    }
}

#[cold]
fn too_long() -> EngineFailed {
    EngineFailed {
        engine: NAME,
        reason: format!("its lanes accept texts up to {LANE_TEXT_BYTES_MAX} B"),
    }
}
