//! The size of the verified sample of a speed trial's results, and its detection power.
//!
//! Each result is examined with the same probability, independently of the others. A device with a
//! share *s* of wrong results passes the examination of *n* results with probability (1 − *s*)^*n*.
//! So *n* ≥ ln(1 − *p*) / ln(1 − *s*) results detect it with probability *p*. For a sample without
//! repetition from a finite number of results, *p* is a lower bound.

/// The share of wrong results that a speed trial must find: 1 in this many.
pub const WRONG_ONE_IN: u64 = 1000;
/// Minimum probability of finding that share, in parts per million: 99 %.
pub const POWER_MIN_PPM: u32 = 990_000;

const PPM: f64 = 1e6;

/// Returns the number of results to verify in order to find a share of wrong results of 1 in
/// [`WRONG_ONE_IN`] with probability [`POWER_MIN_PPM`]: 4603.
#[must_use]
pub fn results_needed() -> u64 {
    // A whole number of results, and no fewer than the power needs.
    let missed = 1.0 - f64::from(POWER_MIN_PPM) / PPM;
    (missed.ln() / right_share().ln()).ceil() as u64
}

/// Returns the probability, in parts per million and rounded down, that `verified` of `results`
/// results include a wrong one, if 1 in [`WRONG_ONE_IN`] is wrong. It is 100 % if all are verified.
#[must_use]
pub fn power_ppm(verified: u64, results: u64) -> u32 {
    if verified == 0 {
        return 0;
    }
    // Certain, while the formula, which is of draws with repetition, stays below 1.
    if verified >= results {
        return PPM as u32;
    }
    // By the logarithm, since there is no integer power of this many results.
    let missed = (verified as f64 * right_share().ln()).exp();
    // The conversion rounds down, so that no sample seems to reach the minimum before it does.
    ((1.0 - missed) * PPM) as u32
}

fn right_share() -> f64 {
    1.0 - 1.0 / WRONG_ONE_IN as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_as_small_as_its_power_allows() {
        assert_eq!(results_needed(), 4603);
        assert!(power_ppm(4603, u64::MAX) >= POWER_MIN_PPM);
        assert!(power_ppm(4602, u64::MAX) < POWER_MIN_PPM);
    }

    #[test]
    fn the_power_is_that_of_independent_draws_or_certainty() {
        // 1 − 0.999^65: the number of results that a trial examined before this rule.
        assert_eq!(power_ppm(65, 1_000_000), 62_963);
        assert_eq!(power_ppm(0, 0), 0);
        assert_eq!(power_ppm(0, 10), 0);
        assert_eq!(power_ppm(10, 10), 1_000_000);
        assert_eq!(power_ppm(12, 10), 1_000_000);
        assert_eq!(power_ppm(1, 10), 1_000);
    }
}
