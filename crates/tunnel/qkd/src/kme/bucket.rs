//! Key material of one link: it grows at the link's rate, up to the capacity.

use std::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// A token bucket of bits. Exact: the frequency of reads neither gains nor loses bits.
#[derive(Debug)]
pub(super) struct Bucket {
    /// In units of 10^-9 bit, so that a nanosecond at any rate adds a whole number.
    stored: u128,
    room: u128,
    bits_per_second: u64,
    /// The time up to which the rate has been credited.
    credited: Duration,
}

impl Bucket {
    /// A bucket with `stored` bits at time 0. All times count from one arbitrary start and never
    /// decrease.
    pub(super) fn new(stored: u64, room: u64, bits_per_second: u64) -> Self {
        Self {
            stored: u128::from(stored.min(room)) * NANOS_PER_SECOND,
            room: u128::from(room) * NANOS_PER_SECOND,
            bits_per_second,
            credited: Duration::ZERO,
        }
    }

    /// The number of whole bits at time `now`.
    pub(super) fn bits(&mut self, now: Duration) -> u64 {
        let passed = now.saturating_sub(self.credited).as_nanos();
        self.credited = self.credited.max(now);
        let made = passed.saturating_mul(u128::from(self.bits_per_second));
        self.stored = self.stored.saturating_add(made).min(self.room);
        // Fits: it is at most `room`, which came from 64 bits.
        (self.stored / NANOS_PER_SECOND) as u64
    }

    /// Takes bits. The caller has checked with [`bits`](Self::bits) that they are available.
    pub(super) fn take(&mut self, bits: u64) {
        self.stored = self
            .stored
            .saturating_sub(u128::from(bits) * NANOS_PER_SECOND);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_at_its_rate_however_often_it_is_read() {
        let mut seldom = Bucket::new(0, 1_000_000, 333);
        let mut often = Bucket::new(0, 1_000_000, 333);
        for micros in 1..=3_000_000_u64 / 7 {
            often.bits(Duration::from_micros(micros * 7));
        }
        let end = Duration::from_secs(3);
        assert_eq!(seldom.bits(end), 999);
        assert_eq!(often.bits(end), 999);
    }

    #[test]
    fn holds_at_most_its_capacity_and_gives_each_bit_once() {
        let mut bucket = Bucket::new(5_000, 1_000, 256);
        assert_eq!(bucket.bits(Duration::ZERO), 1_000);
        bucket.take(744);
        assert_eq!(bucket.bits(Duration::from_millis(500)), 256 + 128);
        assert_eq!(bucket.bits(Duration::from_secs(1_000_000)), 1_000);
        bucket.take(1_000);
        assert_eq!(bucket.bits(Duration::from_secs(1_000_000)), 0);
        // A clock that goes back adds no bits.
        assert_eq!(bucket.bits(Duration::from_secs(1)), 0);
        assert_eq!(bucket.bits(Duration::from_secs(1_000_001)), 256);
    }
}
