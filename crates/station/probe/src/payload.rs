//! Bytes that both ends know.

/// A prime, so that a stream that lost or repeated a part shows other bytes than expected, whatever
/// the part's length.
const PERIOD: usize = 1_000_003;
/// Longest slice.
pub(crate) const SLICE_BYTES_MAX: usize = 1 << 17;

/// A pseudo-random sequence, repeated for ever.
pub(crate) struct Payload(Box<[u8]>);

impl Payload {
    pub(crate) fn new() -> Self {
        // SplitMix64 by its definition; both ends must make the same bytes.
        let mut state = 0x0ff1_0ad5_u64;
        let mut bytes = Vec::with_capacity(PERIOD + SLICE_BYTES_MAX + 8);
        while bytes.len() < PERIOD {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bytes.extend((mixed ^ (mixed >> 31)).to_le_bytes());
        }
        bytes.truncate(PERIOD);
        // The beginning once more, so that a slice never wraps.
        bytes.extend_from_within(..SLICE_BYTES_MAX);
        Self(bytes.into_boxed_slice())
    }

    /// The bytes from an offset of the endless sequence on.
    ///
    /// # Panics
    /// For more than [`SLICE_BYTES_MAX`] bytes.
    pub(crate) fn slice(&self, offset: u64, bytes: usize) -> &[u8] {
        let at = (offset % PERIOD as u64) as usize;
        &self.0[at..at + bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_continue_over_the_end_of_the_period() {
        let payload = Payload::new();
        let before = PERIOD as u64 - 10;
        let slice = payload.slice(before, 30);
        assert_eq!(slice[10..], payload.slice(0, 20)[..]);
        assert_eq!(slice, payload.slice(before + PERIOD as u64, 30));
        assert_ne!(payload.slice(1, 100), payload.slice(2, 100));
    }
}
