//! Objects with content that both ends can compute.
//!
//! An object repeats a block of [`BLOCK_BYTES`]. A block consists of lines of 64 bytes: the digits
//! that identify clear text on the cipher link ([`MARKER`]), then pseudo-random bytes that depend
//! on the object's number and on the line. The client compares arriving bytes with the block, which
//! stays in its cache.

use std::io::{self, Write};

/// Size of the block that an object repeats.
pub const BLOCK_BYTES: usize = 64 << 10;
/// The first bytes of each line; any 73 consecutive bytes of an object contain them.
pub const MARKER: &[u8; 10] = b"0123456789";

const LINE_BYTES: usize = 64;

/// The content of an object.
#[derive(Debug, Clone)]
pub struct Object {
    block: Box<[u8]>,
    bytes: u64,
}

impl Object {
    /// Returns the object with this number and size.
    #[must_use]
    pub fn new(number: u32, bytes: u64) -> Self {
        let mut block = vec![0; BLOCK_BYTES];
        // Not zero for any number: xorshift has no way out of zero.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ (u64::from(number) + 1);
        for line in block.chunks_exact_mut(LINE_BYTES) {
            let (marker, random) = line.split_at_mut(MARKER.len());
            marker.copy_from_slice(MARKER);
            for bytes in random.chunks_mut(8) {
                // xorshift64 (Marsaglia 2003).
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                bytes.copy_from_slice(&state.to_le_bytes()[..bytes.len()]);
            }
        }
        Self {
            block: block.into_boxed_slice(),
            bytes,
        }
    }

    /// Returns the objects of these sizes, numbered from 0.
    #[must_use]
    pub fn all(sizes: &[u64]) -> Vec<Self> {
        let numbered = (0..).zip(sizes);
        numbered
            .map(|(number, &bytes)| Self::new(number, bytes))
            .collect()
    }

    /// Returns its size in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the path of its URL, without the leading slash, which is also its file name.
    #[must_use]
    pub fn name(number: usize) -> String {
        format!("object-{number}")
    }

    /// Whether `part` is the content from `offset` on; false beyond the end.
    #[must_use]
    pub fn matches(&self, offset: u64, mut part: &[u8]) -> bool {
        // A longer object would match as far as the block repeats.
        if offset.saturating_add(part.len() as u64) > self.bytes {
            return false;
        }
        let mut at = (offset % BLOCK_BYTES as u64) as usize;
        while !part.is_empty() {
            let length = part.len().min(BLOCK_BYTES - at);
            if part[..length] != self.block[at..at + length] {
                return false;
            }
            part = &part[length..];
            at = 0;
        }
        true
    }

    /// Writes the whole object.
    ///
    /// # Errors
    /// Returns the writer's errors.
    pub fn write_to(&self, writer: &mut impl Write) -> io::Result<()> {
        let mut left = self.bytes;
        while left > 0 {
            let length = left.min(BLOCK_BYTES as u64);
            // At most a block.
            writer.write_all(&self.block[..length as usize])?;
            left -= length;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_matches_wherever_it_is_cut() {
        let object = Object::new(1, 200_000);
        let mut written = Vec::new();
        object.write_to(&mut written).unwrap();
        assert_eq!(written.len(), 200_000);
        for part in [1, 63, 1000, BLOCK_BYTES, 150_000] {
            let mut offset = 0;
            for chunk in written.chunks(part) {
                assert!(object.matches(offset, chunk), "{part} {offset}");
                offset += chunk.len() as u64;
            }
        }
        assert!(written[1..74].windows(10).any(|bytes| bytes == MARKER));
    }

    #[test]
    fn another_byte_another_place_another_object_and_a_byte_too_many_do_not_match() {
        let object = Object::new(1, 200_000);
        let mut written = Vec::new();
        object.write_to(&mut written).unwrap();
        assert!(!object.matches(64, &written[..64]));
        assert!(!Object::new(2, 200_000).matches(0, &written[..64]));
        assert!(!object.matches(199_990, &written[199_990 - BLOCK_BYTES..][..11]));
        for at in [0, 70_000, 199_999] {
            let mut damaged = written.clone();
            damaged[at] ^= 1;
            assert!(!object.matches(0, &damaged), "{at}");
        }
    }
}
