//! Evidence from the pairs of one test: is the candidate worse than its reference, better, or
//! neither?
//!
//! A pair gives its *loss*: the logarithm of the quotient of both figures, positive if the
//! candidate is worse. The order of a pair is drawn, so for equal programs the loss is as likely
//! to be *x* as −*x*, whatever outliers and drift of the machine do to its size. Three processes
//! bet on the sign, given the size:
//!
//! - against *equal*: for a loss from the predictive density `p` of the alternative, the stake
//!   grows by 2 p(x) / (p(x) + p(−x));
//! - against *worse by the size searched for, D*: the same, mirrored at D;
//! - against *better by D*: mirrored at −D.
//!
//! Under its hypothesis each stake is a martingale that begins at 1. So it exceeds 1/α with a
//! probability of at most α (Ville), however often it is looked at. `p` affects only the speed: a
//! mixture over shifts and scales, weighted by all earlier pairs. Its tails are heavy, so an
//! outlier moves nothing.

/// Shifts of the alternative: the size searched for, times a power of the square root of 2.
const SHIFTS: usize = 12;
/// Scales of the noise: [`SCALE_MIN`], times a power of the square root of 2. Coarser ones make
/// likelihoods too sure between two of them.
const SCALES: usize = 20;
const SCALE_MIN: f64 = 0.0005;
const SCALE_OF: Scales = {
    let mut of = [SCALE_MIN; SCALES];
    let mut at = 1;
    while at < SCALES {
        of[at] = of[at - 1] * std::f64::consts::SQRT_2;
        at += 1;
    }
    of
};
/// Weights below this are left out: nearly all of them, after a few pairs.
const NEGLIGIBLE: f64 = 1e-9;
/// Share of the weights of scales that stays equal when a test begins with the weights of an
/// earlier one: the noise of another candidate may differ.
const FRESH_SCALES: f64 = 0.2;
/// The same for shifts: a candidate has the whole change, rarely a part of it.
const FRESH_SHIFTS: f64 = 0.003;

type Scales = [f64; SCALES];
type Shifts = [f64; SHIFTS];

/// What is expected before the first pair of a test.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    scales: Scales,
    shifts: Shifts,
}

/// The pairs of one test, and their evidence.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    /// The size searched for, as a logarithm.
    size: f64,
    losses: Vec<f64>,
    /// Weights of the scales, if candidate and reference are equal.
    equal: Scales,
    worse: Side,
    better: Side,
    likelihood: f64,
}

/// One direction of change.
#[derive(Debug, Clone)]
struct Side {
    /// Weights of shifts and scales.
    weights: [Scales; SHIFTS],
    /// Logarithm of the stake against *equal*.
    against_equal: f64,
    /// Logarithm of the stake against a change of the size searched for in this direction.
    against_change: f64,
}

/// What the pairs of a test show at a stated error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The candidate is worse than its reference.
    Worse,
    /// It is better.
    Better,
    /// Neither worse nor better by the size searched for.
    Equal,
}

impl Expected {
    /// Any scale alike; larger shifts less than smaller ones, so that a first test that
    /// overestimates a small change does not mislead those after it.
    pub(crate) fn anything() -> Self {
        let mut shifts = std::array::from_fn(|shift| f64::exp2(-(shift as f64) / 2.0));
        let sum: f64 = shifts.iter().sum();
        for shift in &mut shifts {
            *shift /= sum;
        }
        Self {
            scales: [1.0 / SCALES as f64; SCALES],
            shifts,
        }
    }

    /// The same, with less weight on larger shifts. A test ends when its change looks large, so its
    /// shifts are too large on average. Tests that expect too much find good what is bad; those
    /// that expect too little only take longer.
    pub(crate) fn cautious(mut self) -> Self {
        for (shift, weight) in self.shifts.iter_mut().enumerate() {
            *weight *= f64::exp2(-(shift as f64));
        }
        let sum: f64 = self.shifts.iter().sum();
        for weight in &mut self.shifts {
            *weight /= sum;
        }
        self
    }

    /// The same scales, and any shift.
    pub(crate) fn with_any_shift(&self) -> Self {
        Self {
            scales: self.scales,
            ..Self::anything()
        }
    }
}

impl Evidence {
    pub(crate) fn new(size: f64, expected: &Expected) -> Self {
        let side = Side {
            weights: expected
                .shifts
                .map(|shift| expected.scales.map(|scale| shift * scale)),
            against_equal: 0.0,
            against_change: 0.0,
        };
        Self {
            size,
            losses: Vec::new(),
            equal: expected.scales,
            worse: side.clone(),
            better: side,
            likelihood: 0.0,
        }
    }

    pub(crate) fn losses(&self) -> &[f64] {
        &self.losses
    }

    /// Logarithm of the likelihood of *worse*, divided by that of *equal*.
    pub(crate) const fn likelihood(&self) -> f64 {
        self.likelihood
    }

    /// Logarithm of the stake against *equal* that bets on *worse*.
    pub(crate) const fn against_equal(&self) -> f64 {
        self.worse.against_equal
    }

    pub(crate) fn add(&mut self, loss: f64) {
        // All stakes and likelihoods come before the weights learn from this loss: a bet that has
        // seen its outcome is no martingale, and its bound on the error does not hold.
        let equal = |at: f64| density(&self.equal, at);
        let here = equal(loss);
        for (side, sign) in [(&mut self.worse, 1.0), (&mut self.better, -1.0)] {
            side.against_change += stake(here, equal(2.0 * self.size * sign - loss));
            // Mirrored for *better*, so that shifts are positive on both sides.
            let there = side.add(self.size, loss * sign);
            // The search asks only whether a candidate has the change, which makes it worse.
            if sign > 0.0 {
                self.likelihood += there.ln() - here.ln();
            }
        }
        learn(&mut self.equal, loss, here);
        self.losses.push(loss);
    }

    /// The result at an error of `exp(-change)` for a change, and `exp(-none)` for none.
    pub(crate) fn shown(&self, change: f64, none: f64) -> Option<Shown> {
        if self.worse.against_equal >= change {
            Some(Shown::Worse)
        } else if self.better.against_equal >= change {
            Some(Shown::Better)
        } else if self.worse.against_change >= none && self.better.against_change >= none {
            Some(Shown::Equal)
        } else {
            None
        }
    }

    /// Expectations of a test that follows one that began with `earlier`.
    pub(crate) fn expected(&self, earlier: &Expected) -> Expected {
        // By the hypothesis that explains the pairs better.
        let of_worse = 1.0 / (1.0 + (-self.likelihood).exp());
        let fresh = Expected::anything();
        let mut next = earlier.clone();
        let weights = &self.worse.weights;
        for (at, scale) in next.scales.iter_mut().enumerate() {
            let worse: f64 = weights.iter().map(|scales| scales[at]).sum();
            let found = of_worse * worse + (1.0 - of_worse) * self.equal[at];
            *scale = FRESH_SCALES * fresh.scales[at] + (1.0 - FRESH_SCALES) * found;
        }
        // A candidate without the change does not show its size.
        for (at, shift) in next.shifts.iter_mut().enumerate() {
            let worse: f64 = weights[at].iter().sum();
            let found = FRESH_SHIFTS * fresh.shifts[at] + (1.0 - FRESH_SHIFTS) * worse;
            *shift = of_worse * found + (1.0 - of_worse) * *shift;
        }
        next
    }
}

impl Side {
    /// Adds a loss in this direction, and returns its predictive density.
    fn add(&mut self, size: f64, loss: f64) -> f64 {
        let density = |at: f64| -> f64 {
            let shifts = self.weights.iter().enumerate();
            let of = |(shift, scales)| density(scales, at - shifted(size, shift));
            shifts.map(of).sum()
        };
        // Both signs of a loss are equally likely for equal programs: the bet is on the sign only.
        let (here, mirrored) = (density(loss), density(-loss));
        self.against_equal += stake(here, mirrored);
        for (shift, scales) in self.weights.iter_mut().enumerate() {
            learn(scales, loss - shifted(size, shift), here);
        }
        here
    }
}

/// Growth of a stake, as a logarithm.
fn stake(here: f64, mirrored: f64) -> f64 {
    (2.0 * here / (here + mirrored)).ln()
}

fn shifted(size: f64, shift: usize) -> f64 {
    size * f64::exp2(shift as f64 / 2.0)
}

fn density(weights: &Scales, at: f64) -> f64 {
    let weights = weights.iter().zip(SCALE_OF);
    let likely = weights.filter(|(weight, _)| **weight > 0.0);
    likely
        .map(|(weight, scale)| weight * noise(at, scale))
        .sum()
}

/// Weights after a loss, by Bayes' rule.
fn learn(weights: &mut Scales, loss: f64, total: f64) {
    for (weight, scale) in weights.iter_mut().zip(SCALE_OF) {
        if *weight > 0.0 {
            *weight *= noise(loss, scale) / total;
        }
        if *weight < NEGLIGIBLE {
            *weight = 0.0;
        }
    }
}

/// Density of the noise, without its constant factor, which cancels everywhere: normal, and in one
/// of eight pairs Cauchy's with ten times the scale, for outliers.
fn noise(at: f64, scale: f64) -> f64 {
    // The tail of Cauchy's part keeps the density above 0 for every `LogRatio`: no quotient here is
    // 0 / 0, and no logarithm infinite.
    let square = (at / scale).powi(2);
    (0.9 * (-0.5 * square).exp() + 0.01 / (1.0 + square / 100.0)) / scale
}

#[cfg(test)]
mod tests {
    use super::{Evidence, Expected};
    use crate::random::SplitMix64;

    const TESTS: usize = 500;

    /// Shares of tests of equal programs in which a stake reaches 20 within 200 pairs.
    fn shares_that_exceed(mut size_of_loss: impl FnMut(&mut SplitMix64, f64) -> f64) -> (f64, f64) {
        let mut random = SplitMix64(5);
        let (mut worse, mut better) = (0, 0);
        for _ in 0..TESTS {
            let mut evidence = Evidence::new(0.02, &Expected::anything());
            let (mut highest, mut highest_better) = (0.0_f64, 0.0_f64);
            for pair in 0..200 {
                let size = size_of_loss(&mut random, f64::from(pair));
                let sign = if random.next() & 1 == 0 { 1.0 } else { -1.0 };
                evidence.add(sign * size);
                highest = highest.max(evidence.worse.against_equal);
                highest_better = highest_better.max(evidence.better.against_equal);
            }
            let limit = 20_f64.ln();
            worse += usize::from(highest >= limit);
            better += usize::from(highest_better >= limit);
        }
        (worse as f64 / TESTS as f64, better as f64 / TESTS as f64)
    }

    #[test]
    fn a_stake_against_equal_reaches_20_in_5_per_cent_at_most_for_any_sizes() {
        let normal = |random: &mut SplitMix64, _| 0.03 * random.normal().abs();
        let outliers = |random: &mut SplitMix64, _| {
            let is_outlier = random.next().is_multiple_of(10);
            let size = if is_outlier { 0.35 } else { 0.02 };
            size * random.uniform()
        };
        let growing = |_: &mut SplitMix64, pair: f64| 0.001 * f64::exp2(pair / 20.0);
        let always_the_size = |_: &mut SplitMix64, _| 0.02;
        for (worse, better) in [
            shares_that_exceed(normal),
            shares_that_exceed(outliers),
            shares_that_exceed(growing),
            shares_that_exceed(always_the_size),
        ] {
            // Two standard deviations of 5 % in 500 tests are 2 %.
            assert!(worse < 0.07 && better < 0.07, "{worse} {better}");
        }
    }
}
