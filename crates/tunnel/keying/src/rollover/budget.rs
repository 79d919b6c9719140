//! How often a network may cause new keys.
//!
//! Anyone on the path can reset connections, delay messages and forge packets. Each of these once
//! led to a new epoch, and by policy to a QKD key. So attempts that a network can provoke
//! ([`Cause::is_provoked`](crate::message::Cause::is_provoked)) take a token from a bucket before
//! keys are made. Requests by an operator and by the configuration take none.

use std::time::Duration;

/// Size of a [`Budget`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Tokens in a full bucket.
    pub burst: u32,
    /// Time for one token.
    pub refill: Duration,
}

impl Allowance {
    /// For the epochs of one tunnel: a peer that restarts a few times is answered immediately, and
    /// an attacker gets two epochs a minute.
    pub const OF_TUNNEL: Self = Self {
        burst: 8,
        refill: Duration::from_secs(30),
    };
}

/// A bucket of tokens. Within any time T at most `burst` + T / `refill` are taken.
#[derive(Debug, Clone)]
pub struct Budget {
    allowance: Allowance,
    tokens: u32,
    /// When the last token was put in, or the first taken from a full bucket.
    counted: Duration,
}

impl Budget {
    /// A full bucket.
    #[must_use]
    pub const fn new(allowance: Allowance) -> Self {
        Self {
            allowance,
            tokens: allowance.burst,
            counted: Duration::ZERO,
        }
    }

    /// Takes a token, if there is one. `now` counts from an arbitrary start and never decreases.
    pub fn take(&mut self, now: Duration) -> bool {
        self.fill(now);
        if self.tokens == 0 {
            return false;
        }
        // A full bucket gains nothing: the time for the next token runs from here.
        if self.tokens == self.allowance.burst {
            self.counted = now;
        }
        self.tokens -= 1;
        true
    }

    /// Puts back a token that was taken for nothing.
    pub fn put_back(&mut self) {
        self.tokens = self.allowance.burst.min(self.tokens + 1);
    }

    /// When there is a token; zero if there is one already.
    #[must_use]
    pub fn ready_at(&self) -> Duration {
        match self.tokens {
            0 => self.counted.saturating_add(self.allowance.refill),
            _ => Duration::ZERO,
        }
    }

    /// Tokens and, if the bucket is not full, the time since one was put in.
    #[cfg(test)]
    pub(super) fn level(&self, now: Duration) -> (u32, Option<Duration>) {
        let mut filled = self.clone();
        filled.fill(now);
        let is_full = filled.tokens == filled.allowance.burst;
        let since = (!is_full).then(|| now.saturating_sub(filled.counted));
        (filled.tokens, since)
    }

    fn fill(&mut self, now: Duration) {
        let missing = self.allowance.burst - self.tokens;
        let refill = self.allowance.refill.as_nanos().max(1);
        let due = now.saturating_sub(self.counted).as_nanos() / refill;
        let due = u32::try_from(due).unwrap_or(u32::MAX).min(missing);
        self.tokens += due;
        // Not to `now`: the rest of the time counts towards the next token.
        self.counted += self.allowance.refill * due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_the_bucket_holds_and_time_adds() {
        let allowance = Allowance::OF_TUNNEL;
        let mut budget = Budget::new(allowance);
        let start = Duration::from_secs(1000);
        let mut taken = Vec::new();
        for tenths in 0..36_000 {
            let now = start + Duration::from_millis(100 * tenths);
            assert_eq!(budget.ready_at() <= now, budget.clone().take(now));
            if budget.take(now) {
                taken.push(now - start);
            }
        }
        assert_eq!(taken.len(), 8 + 119);
        assert_eq!(taken[7], Duration::from_millis(700));
        assert!(
            taken[8..]
                .iter()
                .zip(1..)
                .all(|(at, n)| *at == n * allowance.refill)
        );
        // After a quiet time the bucket is full, and no fuller.
        let later = start + Duration::from_secs(100_000);
        assert_eq!(budget.level(later), (8, None));
        assert_eq!((0..20).filter(|_| budget.take(later)).count(), 8);
    }
}
