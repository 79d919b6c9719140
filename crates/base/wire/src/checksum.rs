//! The Internet checksum (RFC 1071), in steps: sum parts, fold, complement.
//!
//! Partial sums have 64 bits and native byte order, which the one's complement sum permits (RFC
//! 1071 §2 B): a sum folded to 16 bits and stored in native order has its bytes right. Every part
//! except the last must have an even length.

/// Adds the 16-bit words of `bytes` to the partial sum `start`; the type of [`portable`] and of its
/// vectorised equivalents in crate `engine`.
pub type Sum = fn(bytes: &[u8], start: u64) -> u64;

/// The plain implementation of [`Sum`], and the oracle for the fast ones.
#[must_use]
pub fn portable(bytes: &[u8], start: u64) -> u64 {
    let mut sum = start;
    // Words of any width add up to the same checksum, as carries return at the other end (RFC 1071
    // §2). The 64-bit sum has room for 2^32 words of 32 bits, so no carry is added in the loop.
    let (words, tail) = bytes.as_chunks::<4>();
    for word in words {
        sum += u64::from(u32::from_ne_bytes(*word));
    }
    let (halves, last) = tail.as_chunks::<2>();
    for half in halves {
        sum += u64::from(u16::from_ne_bytes(*half));
    }
    // As if a zero byte followed, which is the second byte of its word in memory in either byte
    // order.
    if let [byte] = last {
        sum += u64::from(u16::from_ne_bytes([*byte, 0]));
    }
    sum
}

/// A 16-bit header field as part of a partial sum.
#[inline]
#[must_use]
pub const fn word(value: u16) -> u64 {
    u16::from_ne_bytes(value.to_be_bytes()) as u64
}

/// A 32-bit header field as part of a partial sum.
#[inline]
#[must_use]
pub const fn dword(value: u32) -> u64 {
    u32::from_ne_bytes(value.to_be_bytes()) as u64
}

/// Folds a partial sum to 16 bits, in native order; not complemented.
#[inline]
#[must_use]
pub const fn fold(sum: u64) -> u16 {
    // Twice at each width: the first addition may carry once more, the second cannot.
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}

/// The checksum field for the data in `sum`, as its two bytes on the wire.
#[inline]
#[must_use]
pub const fn finish(sum: u64) -> [u8; 2] {
    (!fold(sum)).to_ne_bytes()
}

/// Whether a sum over an entire packet, including its checksum field, is valid.
#[inline]
#[must_use]
pub const fn is_valid(sum: u64) -> bool {
    fold(sum) == 0xffff
}

/// The checksum field after a change of one of the words that it covers (RFC 1624 §3, equation 3).
/// A wrong checksum remains wrong.
///
/// A word at an odd distance from the start of the sum counts with its bytes swapped: `swap_bytes`
/// both.
#[inline]
#[must_use]
pub const fn update(field: [u8; 2], old: u16, new: u16) -> [u8; 2] {
    // Not the shorter equation of RFC 1141: it may give 0xffff for a sum of 0 (RFC 1624 §3).
    finish(word(!u16::from_be_bytes(field)) + word(!old) + word(new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 §4.1, word by word in network order.
    fn naive(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn the_example_of_rfc_1071_sums_to_ddf2() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(portable(&bytes, 0)).to_ne_bytes(), [0xdd, 0xf2]);
    }

    proptest! {
        #[test]
        fn agrees_with_the_naive_sum(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
            prop_assert_eq!(finish(portable(&bytes, 0)), naive(&bytes).to_be_bytes());
        }

        #[test]
        fn parts_of_even_length_add_up(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            cut in 0usize..150,
        ) {
            let cut = (cut * 2).min(bytes.len() & !1);
            let (a, b) = bytes.split_at(cut);
            prop_assert_eq!(fold(portable(b, portable(a, 0))), fold(portable(&bytes, 0)));
        }

        #[test]
        fn an_updated_checksum_equals_that_of_the_changed_bytes(
            mut bytes: [u8; 40],
            at in 1usize..39,
            new: u16,
        ) {
            // Not all zero, as in no header: there the two zeros of one's complement would differ.
            bytes[0] |= 1;
            let before = finish(portable(&bytes, 0));
            let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
            let updated = if at.is_multiple_of(2) {
                update(before, old, new)
            } else {
                update(before, old.swap_bytes(), new.swap_bytes())
            };
            prop_assert_eq!(updated, finish(portable(&bytes, 0)));
        }

        #[test]
        fn fields_count_as_their_bytes(value: u32) {
            prop_assert_eq!(fold(dword(value)), fold(portable(&value.to_be_bytes(), 0)));
            prop_assert_eq!(fold(word(value as u16)), fold(portable(&(value as u16).to_be_bytes(), 0)));
        }
    }
}
