//! Student's t of plain numbers: intervals and p-values of means.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::beta::checked_beta_reg;

/// Chance of an interval that misses, and of a false answer to a question.
pub(crate) const ALPHA: f64 = 0.05;
/// Repeats that an interval needs.
pub const INTERVAL_MIN_REPEATS: u32 = 2;

/// A mean, or a difference of means, with an error that follows Student's t distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Student {
    pub(crate) value: f64,
    pub(crate) error: f64,
    degrees: f64,
}

impl Student {
    /// The mean of values; `None` with fewer than two.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let (value, error) = mean_and_error(values)?;
        Some(Self {
            value,
            error,
            degrees: values.len() as f64 - 1.0,
        })
    }

    /// The difference of the means of independent values of unequal variance; `None` with fewer
    /// than two of either.
    pub(crate) fn welch(own: &[f64], other: &[f64]) -> Option<Self> {
        let (mean, error) = mean_and_error(own)?;
        let (other_mean, other_error) = mean_and_error(other)?;
        let (a, b) = (error * error, other_error * other_error);
        // Welch and Satterthwaite; without any variance, every number of degrees gives the same
        // result.
        let spread = a * a / (own.len() as f64 - 1.0) + b * b / (other.len() as f64 - 1.0);
        Some(Self {
            value: mean - other_mean,
            error: (a + b).sqrt(),
            degrees: if spread > 0.0 {
                (a + b) * (a + b) / spread
            } else {
                1.0
            },
        })
    }

    /// The interval that misses with the chance `alpha`.
    pub(crate) fn interval(self, alpha: f64) -> (f64, f64) {
        // Without an error an infinite quantile would give no number.
        let reach = if self.error > 0.0 {
            self.error * quantile(1.0 - alpha / 2.0, self.degrees)
        } else {
            0.0
        };
        (self.value - reach, self.value + reach)
    }

    /// The same for `more` repeats instead of `now`, with equal scatter: both at least 2.
    pub(crate) fn with_repeats(self, now: u32, more: u32) -> Self {
        let (now, more) = (f64::from(now), f64::from(more));
        Self {
            error: self.error * (now / more).sqrt(),
            // Exact for one sample. For two samples, nearly so.
            degrees: self.degrees * (more - 1.0) / (now - 1.0),
            ..self
        }
    }

    /// The p-value of the finding that the true value is above `limit`: twice the one-sided one,
    /// since the opposite finding was as possible.
    pub(crate) fn p_above(self, limit: f64) -> f64 {
        let distance = self.value - limit;
        // On the other side of the limit twice the one-sided value would exceed 1.
        if distance <= 0.0 {
            1.0
        } else if self.error > 0.0 {
            p_two_sided(distance / self.error, self.degrees)
        } else {
            0.0
        }
    }

    /// Likewise, that it is below.
    pub(crate) fn p_below(self, limit: f64) -> f64 {
        Self {
            value: -self.value,
            ..self
        }
        .p_above(-limit)
    }

    /// Likewise, that it is on either side.
    pub(crate) fn p_differs(self, limit: f64) -> f64 {
        self.p_above(limit).min(self.p_below(limit))
    }
}

/// The interval for one further value of the same normal distribution, which misses with the chance
/// `alpha`; `None` with fewer than two values.
pub(crate) fn prediction(values: &[f64], alpha: f64) -> Option<(f64, f64)> {
    let mean = Student::of(values)?;
    let n = values.len() as f64;
    // The scatter of one value, and the error of the mean that it is expected around.
    let one = Student {
        error: mean.error * (n + 1.0).sqrt(),
        ..mean
    };
    Some(one.interval(alpha))
}

fn mean_and_error(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    if values.len() < INTERVAL_MIN_REPEATS as usize {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    // Equal values have no error, even if their sum is rounded.
    let are_equal = values
        .iter()
        .all(|value| value.total_cmp(&values[0]).is_eq());
    Some(if are_equal {
        (values[0], 0.0)
    } else {
        (mean, (squares / (n - 1.0) / n).sqrt())
    })
}

/// The quantile of Student's t.
pub(crate) fn quantile(share: f64, degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::INFINITY, |found| found.inverse_cdf(share))
}

/// The chance of a t at least this far from 0.
fn p_two_sided(t: f64, degrees: f64) -> f64 {
    checked_beta_reg(degrees / 2.0, 0.5, degrees / (degrees + t * t)).unwrap_or(1.0)
}

/// The 95 % interval of a quantity; `None` for a single repeat.
pub(crate) fn interval_95(values: &[f64]) -> Option<(f64, f64)> {
    interval(values, ALPHA)
}

/// The interval that misses with the chance `alpha`; `None` for a single value. On logarithms, if
/// all values are above 0.
pub(crate) fn interval(values: &[f64], alpha: f64) -> Option<(f64, f64)> {
    let logs = values.iter().all(|value| *value > 0.0);
    let scale = |value: &f64| if logs { value.ln() } else { *value };
    let scaled: Vec<f64> = values.iter().map(scale).collect();
    let found = Student::of(&scaled)?;
    let back = |end: f64| if logs { end.exp() } else { end };
    let (low, high) = found.interval(alpha);
    Some(if found.error > 0.0 {
        (back(low), back(high))
    } else {
        (values[0], values[0])
    })
}

#[cfg(test)]
mod tests;
