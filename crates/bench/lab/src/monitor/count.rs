//! A counter of any width that only rises.

/// A counter, followed from its first reading on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    last: Option<u64>,
    /// The first reading and all that was counted since.
    total: u64,
}

impl Count {
    /// Takes the next reading. Returns the count since the last one; `None` at the first. A counter
    /// with a range may have wrapped once: more often cannot be seen.
    ///
    /// # Errors
    /// When it fell without a range: it was reset. It goes on from there.
    pub(crate) fn advance(
        &mut self,
        count: u64,
        range: Option<u64>,
    ) -> Result<Option<u64>, String> {
        let Some(last) = self.last.replace(count) else {
            self.total = count;
            return Ok(None);
        };
        // A counter that has wrapped looks like one that was reset: only the range distinguishes
        // them.
        let more = match (count.checked_sub(last), range) {
            (Some(more), _) => more,
            (None, Some(range)) => range.saturating_sub(last).saturating_add(count),
            (None, None) => {
                self.total = count;
                return Err(format!("it fell from {last} to {count}: it was reset"));
            }
        };
        self.total = self.total.saturating_add(more);
        Ok(Some(more))
    }

    /// The first reading and all that was counted since.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RANGE: u64 = 1 << 32;

    #[test]
    fn a_counter_that_fell_without_a_range_was_reset() {
        let mut count = Count::default();
        assert_eq!(count.advance(7, None), Ok(None));
        assert_eq!(count.advance(9, None), Ok(Some(2)));
        assert!(count.advance(3, None).unwrap_err().contains("from 9 to 3"));
        assert_eq!((count.advance(4, None), count.total()), (Ok(Some(1)), 4));
    }

    proptest! {
        #[test]
        fn a_counter_of_32_bits_counts_as_one_of_64(
            start in 0..RANGE,
            steps in proptest::collection::vec(0..RANGE, 1..20),
        ) {
            let mut count = Count::default();
            prop_assert_eq!(count.advance(start, Some(RANGE)), Ok(None));
            let mut truth = start;
            for step in steps {
                truth += step;
                prop_assert_eq!(count.advance(truth % RANGE, Some(RANGE)), Ok(Some(step)));
                prop_assert_eq!(count.total(), truth);
            }
        }
    }
}
