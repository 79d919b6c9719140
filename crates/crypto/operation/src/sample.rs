//! The sample of a speed trial's results that is verified: its size, and what it can find.
//!
//! Each result is examined with the same probability, independently of the others. A device of
//! whose results the share *s* is wrong passes the examination of *n* of them with the probability
//! (1 − *s*)^*n*. So *n* ≥ ln(1 − *p*) / ln(1 − *s*) results find it with the probability *p*. For
//! a sample of a finite number of results, without repetition, this is a lower bound.

/// The share of wrong results that a speed trial must find: 1 in this many.
pub const WRONG_ONE_IN: u64 = 1000;
/// The probability with which it must find it, in parts per million: 99 %.
pub const POWER_MIN_PPM: u32 = 990_000;

const PPM: f64 = 1e6;

/// Returns how many results must be verified to find a share of wrong ones of 1 in
/// [`WRONG_ONE_IN`] with the probability [`POWER_MIN_PPM`]: 4603.
#[must_use]
pub fn results_needed() -> u64 {
    let missed = 1.0 - f64::from(POWER_MIN_PPM) / PPM;
    (missed.ln() / right_share().ln()).ceil() as u64
}

/// Returns the probability, in parts per million and rounded down, that `verified` of `results`
/// results contain a wrong one, if 1 in [`WRONG_ONE_IN`] is wrong. All of them always do.
#[must_use]
pub fn power_ppm(verified: u64, results: u64) -> u32 {
    if verified == 0 {
        return 0;
    }
    if verified >= results {
        return PPM as u32;
    }
    let missed = (verified as f64 * right_share().ln()).exp();
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
        // 1 − 0.999^65, which a trial examined before there was a rule.
        assert_eq!(power_ppm(65, 1_000_000), 62_963);
        assert_eq!(power_ppm(0, 0), 0);
        assert_eq!(power_ppm(0, 10), 0);
        assert_eq!(power_ppm(10, 10), 1_000_000);
        assert_eq!(power_ppm(12, 10), 1_000_000);
        assert_eq!(power_ppm(1, 10), 1_000);
    }
}
