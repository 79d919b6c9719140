//! Time without failure: the Kaplan-Meier estimator, and a bound for the time between failures.
//!
//! A trial ends before most devices fail: these are known only to work for longer (they are
//! *censored*). Kaplan and Meier (J. Am. Stat. Assoc. 53, 1958) count each of them for the time it
//! was observed. The interval is Greenwood's, on the scale of log(−log S), so that it stays between
//! 0 and 1 (Kalbfleisch and Prentice, *The Statistical Analysis of Failure Time Data*, 1980, 1.3).
//!
//! The estimator deliberately assumes no shape of the curve and does not extrapolate it. Only the
//! bound for the mean time between failures assumes a constant failure rate, and its documentation
//! says so.

use schemars::JsonSchema;
use serde::Serialize;

/// Two-sided 95 % quantile of the normal distribution.
const Z_95: f64 = 1.959_964;
/// One-sided 95 % quantile.
const Z_95_ONE_SIDED: f64 = 1.644_854;
/// For more failures the limit is approximated.
const EXACT_MAX: usize = 10_000;
/// Rounding error of a product of many shares.
const ROUNDING: f64 = 1e-9;
/// Maximum number of steps of the curve; intermediate ones beyond it are left out.
pub const SURVIVAL_STEPS_MAX: usize = 400;

/// A device's working time, and whether a failure ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Life {
    /// From its start to the failure, or to the end of the observation.
    pub(crate) ns: u64,
    /// Whether it failed then; otherwise it is censored.
    pub(crate) failed: bool,
}

/// Lives of devices of one kind, summed up.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Survival {
    /// Number of lives.
    pub lives: u32,
    /// Of those, ended by a failure.
    pub failures: u32,
    /// Total time.
    pub total_ns: u64,
    /// The longest life.
    pub longest_ns: u64,
    /// The curve: it starts at 1, falls at each of these times, and is constant between them and
    /// until `longest_ns`.
    pub steps: Vec<SurvivalStep>,
    /// Steps between these that were left out, of a curve with more than 400.
    pub steps_left_out: u32,
    /// First time with a survival of one half or less; `null` if the curve stays above: the median
    /// exceeds the observed time.
    pub median_ns: Option<u64>,
    /// Total time by failures, including lives that were not kept; `null` without a failure.
    pub mean_between_failures_ns: Option<f64>,
    /// Lower 95 % confidence bound of the mean time between failures, for a constant failure rate;
    /// without a failure, a third of the total time.
    pub mean_between_failures_low_ns: f64,
}

/// A step of the curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SurvivalStep {
    /// From the start of each life.
    pub at_ns: u64,
    /// Lives at risk at that time.
    pub at_risk: u32,
    /// Of those, ended by a failure at that time.
    pub failed: u32,
    /// Share of devices that work for longer than that.
    pub survives: f64,
    /// Lower end of its 95 % interval; `null` if none is left, since the spread is unknown.
    pub low: Option<f64>,
    /// Upper end likewise.
    pub high: Option<f64>,
}

impl Survival {
    /// Sums up lives; `None` without lives.
    pub(crate) fn of(mut lives: Vec<Life>) -> Option<Self> {
        // By time; of equal times the censored ones come first, and `steps` takes equal times
        // together.
        lives.sort_unstable();
        let longest_ns = lives.last()?.ns;
        let total_ns = lives
            .iter()
            .fold(0_u64, |sum, life| sum.saturating_add(life.ns));
        let failures = lives.iter().filter(|life| life.failed).count();
        let steps = steps(&lives);
        let all = steps.len();
        // From all steps, before some are left out below.
        let median_ns = steps.iter().find(|step| step.survives <= 0.5 + ROUNDING);
        let median_ns = median_ns.map(|step| step.at_ns);
        let steps = thinned(steps);
        Some(Self {
            lives: count(lives.len()),
            failures: count(failures),
            total_ns,
            longest_ns,
            median_ns,
            mean_between_failures_ns: (failures > 0).then(|| total_ns as f64 / failures as f64),
            mean_between_failures_low_ns: total_ns as f64 / failures_most(failures),
            steps_left_out: count(all - steps.len()),
            steps,
        })
    }

    /// The same curve, with the mean time between failures of all lives, including those not kept.
    pub(crate) fn of_more(self, total_ns: u64, failures: u64) -> Self {
        Self {
            mean_between_failures_ns: (failures > 0).then(|| total_ns as f64 / failures as f64),
            mean_between_failures_low_ns: total_ns as f64
                / failures_most(usize::try_from(failures).unwrap_or(usize::MAX)),
            ..self
        }
    }

    /// Share of devices that work for longer than a time; `None` past the longest life.
    #[must_use]
    pub fn at(&self, ns: u64) -> Option<f64> {
        let past = self.steps.iter().take_while(|step| step.at_ns <= ns);
        (ns <= self.longest_ns).then(|| past.last().map_or(1.0, |step| step.survives))
    }
}

fn count(lives: usize) -> u32 {
    u32::try_from(lives).unwrap_or(u32::MAX)
}

/// Returns a step for each failure time of sorted lives.
fn steps(lives: &[Life]) -> Vec<SurvivalStep> {
    let mut steps = Vec::new();
    let (mut survives, mut greenwood) = (1.0_f64, 0.0_f64);
    let mut at = 0;
    while at < lives.len() {
        let ns = lives[at].ns;
        let same = lives[at..].iter().take_while(|life| life.ns == ns);
        let (mut all, mut failed) = (0, 0);
        for life in same {
            all += 1;
            failed += usize::from(life.failed);
        }
        if failed > 0 {
            // A life censored at the time of a failure was still at risk.
            let at_risk = lives.len() - at;
            survives *= (at_risk - failed) as f64 / at_risk as f64;
            // Infinite when the last lives at risk fail. `survives` is then 0 and has no interval.
            greenwood += failed as f64 / (at_risk as f64 * (at_risk - failed) as f64);
            let interval = interval(survives, greenwood);
            steps.push(SurvivalStep {
                at_ns: ns,
                at_risk: count(at_risk),
                failed: count(failed),
                survives,
                low: interval.map(|(low, _)| low),
                high: interval.map(|(_, high)| high),
            });
        }
        at += all;
    }
    steps
}

/// The 95 % interval of a share between 0 and 1, from Greenwood's sum; `None` at either end.
fn interval(survives: f64, greenwood: f64) -> Option<(f64, f64)> {
    if survives <= 0.0 || survives >= 1.0 {
        return None;
    }
    let spread = Z_95 * greenwood.sqrt() / survives.ln().abs();
    Some((survives.powf(spread.exp()), survives.powf((-spread).exp())))
}

/// Upper 95 % limit of the mean of a Poisson variable after `seen` observed events: with this mean,
/// the probability of at most `seen` events is 5 % (Garwood, Biometrika 28, 1936). 3.0 for none.
fn failures_most(seen: usize) -> f64 {
    if seen > EXACT_MAX {
        // Close enough to the exact limit, which takes time proportional to the failures to
        // compute.
        let seen = seen as f64;
        return seen + Z_95_ONE_SIDED * seen.sqrt() + 2.0;
    }
    // In logarithms, since e^-mean underflows to 0 for a thousand failures.
    let chance = |mean: f64| {
        let mut term = -mean;
        // The probabilities of 0 to `seen` events, each from the one before it.
        let mut sum = 0.0_f64;
        for k in 1..=seen + 1 {
            sum += term.exp();
            term += (mean / k as f64).ln();
        }
        sum
    };
    // The limit is above the observed number, and below twice that and 10, for any number.
    let (mut low, mut high) = (seen as f64, 2.0 * seen as f64 + 10.0);
    // 64 halvings exhaust the precision of an `f64`.
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if chance(middle) > 0.05 {
            low = middle
        } else {
            high = middle
        }
    }
    high
}

/// Thins out steps beyond the maximum; the last one is always kept.
fn thinned(steps: Vec<SurvivalStep>) -> Vec<SurvivalStep> {
    let every = steps.len().div_ceil(SURVIVAL_STEPS_MAX).max(1);
    let last = steps.len().saturating_sub(1);
    let kept = steps
        .into_iter()
        .enumerate()
        // Counted from the end, so that the last step stays.
        .filter(|(place, _)| (last - place).is_multiple_of(every));
    kept.map(|(_, step)| step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn life(ns: u64, failed: bool) -> Life {
        Life { ns, failed }
    }

    /// Weeks until 21 patients had a relapse (Freireich et al., Blood 21, 1963, treated with 6-MP):
    /// the textbook example. Its curve and its intervals on this scale match SAS PROC LIFETEST.
    #[test]
    fn the_textbook_example_matches_the_textbooks() {
        let failed = [6, 6, 6, 7, 10, 13, 16, 22, 23];
        let censored = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35];
        let lives = failed
            .map(|weeks| life(weeks, true))
            .into_iter()
            .chain(censored.map(|weeks| life(weeks, false)));
        let found = Survival::of(lives.collect()).unwrap();
        let wanted = [
            (6, 21, 3, 0.8571, 0.6197, 0.9516),
            (7, 17, 1, 0.8067, 0.5631, 0.9228),
            (10, 15, 1, 0.7529, 0.5032, 0.8894),
            (13, 12, 1, 0.6902, 0.4316, 0.8491),
            (16, 11, 1, 0.6275, 0.3675, 0.8049),
            (22, 7, 1, 0.5378, 0.2678, 0.7468),
            (23, 6, 1, 0.4482, 0.1881, 0.6801),
        ];
        assert_eq!(found.steps.len(), wanted.len());
        for (step, (at, at_risk, failed, survives, low, high)) in found.steps.iter().zip(wanted) {
            assert_eq!(
                (step.at_ns, step.at_risk, step.failed),
                (at, at_risk, failed)
            );
            let close = |found: f64, wanted: f64| (found - wanted).abs() < 6e-5;
            assert!(close(step.survives, survives), "{step:?}");
            assert!(close(step.low.unwrap(), low), "{step:?}");
            assert!(close(step.high.unwrap(), high), "{step:?}");
        }
        assert_eq!((found.lives, found.failures), (21, 9));
        // The curve falls to 0.448 at 23, below one half for the first time.
        assert_eq!((found.median_ns, found.longest_ns), (Some(23), 35));
        assert_eq!(found.total_ns, 359);
        assert!((found.mean_between_failures_ns.unwrap() - 359.0 / 9.0).abs() < 1e-9);
        assert_eq!(found.at(5), Some(1.0));
        assert!((found.at(35).unwrap() - 0.4482).abs() < 1e-4);
        assert_eq!(found.at(36), None);
    }

    #[test]
    fn without_a_failure_the_curve_stays_at_one_and_the_bound_is_a_third_of_the_time() {
        let found = Survival::of(vec![life(100, false); 3]).unwrap();
        assert_eq!(
            (found.failures, found.steps.len(), found.median_ns),
            (0, 0, None)
        );
        assert_eq!(found.mean_between_failures_ns, None);
        // By the rule of three: 0.05 = e^-2.9957.
        let third = 300.0 / 2.995_732;
        assert!(
            (found.mean_between_failures_low_ns - third).abs() < 0.01,
            "{found:?}"
        );
        assert_eq!(found.at(100), Some(1.0));
        assert_eq!(Survival::of(Vec::new()), None);
    }

    /// Limits of tables (Garwood; half of chi-squared with 2 n + 2 degrees of freedom, 95 %).
    #[test]
    fn the_upper_limits_of_failures_match_tables() {
        for (seen, wanted) in [
            (0, 2.996),
            (1, 4.744),
            (2, 6.296),
            (5, 10.513),
            (10, 16.962),
        ] {
            assert!((failures_most(seen) - wanted).abs() < 1e-3, "{seen}");
        }
        // Far out, by Wilson and Hilferty's approximation, good to a thousandth.
        let many = failures_most(10_000);
        assert!((many - 10_166.0).abs() < 10.0, "{many}");
        // The approximation begins without a jump.
        let more = failures_most(10_001);
        assert!((more - many - 1.0).abs() < 1.0, "{more}");
    }

    #[test]
    fn when_all_have_failed_nothing_is_left_and_there_is_no_interval() {
        let found = Survival::of(vec![life(1, true), life(2, true)]).unwrap();
        let last = found.steps[1];
        assert!(last.survives.abs() < 1e-12);
        assert_eq!((last.low, last.high), (None, None));
        assert_eq!(found.median_ns, Some(1));
    }

    #[test]
    fn thinned_out_steps_are_of_the_same_curve() {
        // One failure at each time and none censored: the curve is a straight line.
        let lives: Vec<Life> = (1..=5000).map(|ns| life(ns, true)).collect();
        let found = Survival::of(lives).unwrap();
        assert!(found.steps.len() <= SURVIVAL_STEPS_MAX);
        assert_eq!((found.median_ns, found.failures), (Some(2500), 5000));
        for step in &found.steps {
            let wanted = 1.0 - step.at_ns as f64 / 5000.0;
            assert!((step.survives - wanted).abs() < 1e-9);
        }
        assert_eq!(found.steps.last().unwrap().at_ns, 5000);
    }

    /// Efron's construction of the same curve (1967): all lives have equal weight; in time order, a
    /// censored life passes its weight in equal parts to all lives observed for longer.
    fn redistributed(mut lives: Vec<Life>, at: u64) -> f64 {
        // At equal times, failures come first.
        lives.sort_by_key(|life| (life.ns, !life.failed));
        let mut weights = vec![1.0 / lives.len() as f64; lives.len()];
        let mut failed = 0.0;
        for place in 0..lives.len() {
            if lives[place].ns > at {
                break;
            }
            if lives[place].failed {
                failed += weights[place]
            } else {
                let right = lives.len() - place - 1;
                let share = weights[place] / right.max(1) as f64;
                weights[place + 1..]
                    .iter_mut()
                    .for_each(|weight| *weight += share);
            }
        }
        1.0 - failed
    }

    proptest! {
        #[test]
        fn the_curve_is_that_of_redistribution(
            lives in proptest::collection::vec((1_u64..30, any::<bool>()), 1..40),
            at in 0_u64..30,
        ) {
            let lives: Vec<Life> = lives.into_iter().map(|(ns, failed)| life(ns, failed)).collect();
            let found = Survival::of(lives.clone()).unwrap();
            if let Some(survives) = found.at(at) {
                prop_assert!((survives - redistributed(lives, at)).abs() < 1e-9);
            }
            let falls = found.steps.windows(2).all(|pair| pair[1].survives < pair[0].survives);
            prop_assert!(falls);
            for step in &found.steps {
                if let (Some(low), Some(high)) = (step.low, step.high) {
                    prop_assert!(0.0 < low && low < step.survives && step.survives < high && high < 1.0);
                }
            }
        }
    }
}
