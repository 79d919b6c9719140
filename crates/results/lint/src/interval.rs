//! Intervals of numbers, since a printed figure represents all values that round to it.

use std::ops::{Add, Div, Mul, Sub};

/// All numbers from `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lowest.
    pub low: f64,
    /// The highest, never below `low`.
    pub high: f64,
}

impl Interval {
    /// One number.
    #[must_use]
    pub const fn exact(value: f64) -> Self {
        Self {
            low: value,
            high: value,
        }
    }

    /// A number and all within `half` of it.
    #[must_use]
    pub fn around(value: f64, half: f64) -> Self {
        Self {
            low: value - half.abs(),
            high: value + half.abs(),
        }
    }

    /// The number in the middle; of numbers without upper limit, the lowest.
    #[must_use]
    pub const fn middle(self) -> f64 {
        if self.high == f64::INFINITY {
            return self.low;
        }
        f64::midpoint(self.low, self.high)
    }

    /// Each end moved outwards by a share of itself.
    #[must_use]
    pub fn widened(self, share: f64) -> Self {
        Self {
            low: self.low - self.low.abs() * share,
            high: self.high + self.high.abs() * share,
        }
    }

    /// Both ends times a number above zero.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            low: self.low * factor,
            high: self.high * factor,
        }
    }

    /// Whether some number is in both. Ends closer than the precision of `f64` sums count as equal.
    #[must_use]
    pub fn meets(self, other: Self) -> bool {
        !self.is_below(other) && !other.is_below(self)
    }

    /// Whether every number is below every number of the other.
    #[must_use]
    pub fn is_below(self, other: Self) -> bool {
        self.high.is_finite() && self.high < other.low - slack(self.high, other.low)
    }
}

/// The rounding error of sums of a few dozen `f64`.
fn slack(a: f64, b: f64) -> f64 {
    1e-12 * a.abs().max(b.abs())
}

impl Add for Interval {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }
}

impl Sub for Interval {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            low: self.low - other.high,
            high: self.high - other.low,
        }
    }
}

impl Mul for Interval {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        spanned(
            [self.low, self.high]
                .iter()
                .flat_map(|a| [a * other.low, a * other.high]),
        )
    }
}

impl Div for Interval {
    type Output = Self;

    /// All quotients; every number if the divisor may be zero.
    fn div(self, other: Self) -> Self {
        if other.low <= 0.0 && other.high >= 0.0 {
            return Self {
                low: f64::NEG_INFINITY,
                high: f64::INFINITY,
            };
        }
        spanned(
            [self.low, self.high]
                .iter()
                .flat_map(|a| [a / other.low, a / other.high]),
        )
    }
}

fn spanned(ends: impl Iterator<Item = f64>) -> Interval {
    ends.fold(
        Interval {
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
        },
        |all, end| Interval {
            low: all.low.min(end),
            high: all.high.max(end),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn results_contain_the_results_of_every_pair(
            a in -1e6f64..1e6, b in -1e6f64..1e6, half in 0.0f64..10.0, at in -1.0f64..1.0,
        ) {
            let (left, right) = (Interval::around(a, half), Interval::around(b, half));
            let (x, y) = (a + at * half, b - at * half);
            for (found, value) in [
                (left + right, x + y),
                (left - right, x - y),
                (left * right, x * y),
                (left / right, x / y),
            ] {
                prop_assert!(found.meets(Interval::around(value, 1e-6)), "{found:?} {value}");
            }
        }
    }
}
