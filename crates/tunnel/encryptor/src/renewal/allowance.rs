//! How often packets that cannot be opened may cost a tunnel a new epoch.
//!
//! Anyone who can send to the gateway can forge packets for a tunnel that carries nothing at the
//! time, and every new epoch costs a handshake and, by policy, a QKD key. So requests are taken
//! from a token bucket: a burst of [`BURST`], [`SPACING`] apart, and then one each [`REFILL_MIN`].
//! Whenever the bucket is emptied the time for a token doubles, up to [`REFILL_MAX`]; it is the
//! shortest again when the bucket is full. Authentic packets have no influence.
//!
//! Under a constant attack a tunnel therefore requests 8 epochs in the first 14 s, 4 more in the
//! first quarter of an hour, and then 7.5 an hour.

use std::time::{Duration, Instant};

/// Requests that may follow each other at the shortest distance.
pub(super) const BURST: u32 = 8;
/// The shortest distance of two requests.
pub(super) const SPACING: Duration = Duration::from_secs(2);
/// Time for one token, at first.
const REFILL_MIN: Duration = Duration::from_secs(30);
/// Time for one token at most.
const REFILL_MAX: Duration = Duration::from_secs(480);

/// The bucket of one tunnel.
pub(super) struct Allowance {
    tokens: u32,
    refill: Duration,
    /// When the last token was put in, or the first taken from a full bucket.
    counted: Option<Instant>,
    last: Option<Instant>,
}

impl Allowance {
    pub(super) const fn new() -> Self {
        Self {
            tokens: BURST,
            refill: REFILL_MIN,
            counted: None,
            last: None,
        }
    }

    /// Takes a token for a request, if there is one and the last request is long enough ago.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        self.fill(now);
        let spaced = |last| now.saturating_duration_since(last) >= SPACING;
        if self.tokens == 0 || !self.last.is_none_or(spaced) {
            return false;
        }
        self.tokens -= 1;
        self.last = Some(now);
        // The time for a token runs from the first request, not from the last refill of a full
        // bucket.
        self.counted.get_or_insert(now);
        if self.tokens == 0 {
            self.refill = (self.refill * 2).min(REFILL_MAX);
        }
        true
    }

    fn fill(&mut self, now: Instant) {
        while let Some(counted) = self.counted
            && now.saturating_duration_since(counted) >= self.refill
        {
            self.tokens += 1;
            self.counted = Some(counted + self.refill);
            if self.tokens == BURST {
                // Full again: the next burst begins with the shortest time.
                *self = Self {
                    last: self.last,
                    ..Self::new()
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of the requests that pass if one is wanted in each of `seconds`.
    fn passed(
        allowance: &mut Allowance,
        start: Instant,
        seconds: std::ops::Range<u64>,
    ) -> Vec<u64> {
        seconds
            .filter(|second| allowance.take(start + Duration::from_secs(*second)))
            .collect()
    }

    #[test]
    fn a_constant_attack_costs_less_and_less() {
        let (mut allowance, start) = (Allowance::new(), Instant::now());
        let passed = passed(&mut allowance, start, 0..24 * 3600);
        assert_eq!(passed[..8], [0, 2, 4, 6, 8, 10, 12, 14]);
        let within = |from, to| passed.iter().filter(|at| (from..to).contains(*at)).count();
        assert_eq!(within(15, 901), 4);
        for hour in 1..24 {
            assert!((7..=8).contains(&within(hour * 3600, (hour + 1) * 3600)));
        }
    }

    #[test]
    fn after_an_attack_everything_is_as_before_it() {
        let (mut allowance, start) = (Allowance::new(), Instant::now());
        passed(&mut allowance, start, 0..3600);
        let calm = 3600 + u64::from(BURST) * REFILL_MAX.as_secs();
        let again = passed(&mut allowance, start, calm..calm + 16);
        let expected: Vec<u64> = (0..8).map(|number| calm + 2 * number).collect();
        assert_eq!(again, expected);
    }
}
