//! The count between two readings of a counter of unknown width.

/// Counters of this many values begin again at 0 after the last one.
const RANGE: u64 = 1 << 32;
/// A counter of 32 bits that fell passed its end if it counted less than this.
const WRAPPED_MOST: u64 = RANGE / 4;

/// The count between two readings of a counter of unknown width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// It rose by that.
    More(u64),
    /// It has 32 bits, passed its end and counted that.
    Wrapped(u64),
    /// It was reset, and counted that since; how much before is unknown.
    Reset(u64),
}

impl Counted {
    /// The difference of two readings, the later one last.
    #[must_use]
    pub const fn between(before: u64, after: u64) -> Self {
        // A fall has two explanations. One of a 32-bit counter that counted little fits the end of
        // its range; any other one, and every larger counter, was reset.
        match after.checked_sub(before) {
            Some(more) => Self::More(more),
            None if before < RANGE && RANGE - before + after <= WRAPPED_MOST => {
                Self::Wrapped(RANGE - before + after)
            }
            None => Self::Reset(after),
        }
    }

    /// The lowest possible count.
    #[must_use]
    pub const fn count(self) -> u64 {
        match self {
            Self::More(count) | Self::Wrapped(count) | Self::Reset(count) => count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fall_is_the_end_of_32_bits_or_a_reset() {
        for (before, after, counted) in [
            (7, 9, Counted::More(2)),
            (4_294_967_290, 13, Counted::Wrapped(19)),
            (100_000, 5, Counted::Reset(5)),
            (1 << 40, 5, Counted::Reset(5)),
            (3_000_000_000, 5, Counted::Reset(5)),
            (u64::MAX, 0, Counted::Reset(0)),
        ] {
            assert_eq!(Counted::between(before, after), counted);
        }
    }
}
