//! A change with its interval.

/// Error of an interval as a logarithm: 3 %, so that with the error of a change, at most 2 %, an
/// interval that the change bounds has 5 %.
const LEVEL: f64 = 3.506_557_897_319_982;
/// Pairs before the first bet: fewer show no scale.
const FIRST: usize = 3;
/// Smallest scale, in logarithms: figures that do not scatter at all.
const SCALE_MIN: f64 = 1e-6;

/// A ratio of two figures with its interval.
///
/// The interval covers the true ratio with a probability of at least 95 %, whenever the measurement
/// stopped: it is a confidence sequence, wider than an interval for a fixed number of pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The candidate's figure, divided by the reference's.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Pairs measured.
    pub pairs: usize,
}

/// Location and scale of some values, insensitive to outliers: a step from the median towards the
/// mean in which far values weigh little.
fn location(sorted: &[f64]) -> (f64, f64) {
    let middle = |values: &[f64]| {
        let half = values.len() / 2;
        if values.len().is_multiple_of(2) {
            f64::midpoint(values[half - 1], values[half])
        } else {
            values[half]
        }
    };
    let median = middle(sorted);
    let mut apart: Vec<f64> = sorted.iter().map(|value| (value - median).abs()).collect();
    apart.sort_by(f64::total_cmp);
    // 1.4826: the standard deviation of normal values whose median deviation is 1.
    let scale = (1.4826 * middle(&apart)).max(SCALE_MIN);
    let mut at = median;
    for _ in 0..3 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for value in sorted {
            let z = (value - at) / scale;
            // The weights of Student's distribution with three degrees of freedom, as in the bets
            // below.
            let weight = 1.0 / (1.0 + z * z / 3.0);
            sum += weight * value;
            weights += weight;
        }
        at = sum / weights;
    }
    (at, scale)
}

impl Estimate {
    /// The estimate of some losses. `sign`: 1 if a loss is a falling figure, else −1. `None`
    /// without losses.
    pub(crate) fn of(losses: &[f64], sign: f64) -> Option<Self> {
        if losses.is_empty() {
            return None;
        }
        let mut sorted = Vec::with_capacity(losses.len());
        // Each bet is on the earlier pairs' location and scale, so that the stake is a martingale.
        let mut bets = Vec::with_capacity(losses.len());
        for (at, loss) in losses.iter().enumerate() {
            if at >= FIRST {
                bets.push((*loss, location(&sorted)));
            }
            let place = sorted.partition_point(|value| value < loss);
            sorted.insert(place, *loss);
        }
        let (centre, scale) = location(&sorted);
        let excluded = |centre: f64| {
            let mut stake = 0.0;
            bets.iter().any(|(loss, (at, scale))| {
                let density = |value: f64| {
                    let z = (value - at) / scale;
                    1.0 / ((1.0 + z * z / 3.0) * (1.0 + z * z / 3.0))
                };
                let (here, mirrored) = (density(*loss), density(2.0 * centre - loss));
                stake += (2.0 * here / (here + mirrored)).ln();
                // At any pair, not only the last: the bound holds for the highest stake (Ville),
                // and the test stopped at a pair of its choice.
                stake >= LEVEL
            })
        };
        let end = |direction: f64| end(centre, direction * scale, excluded);
        let ratio = |loss: f64| (-sign * loss).exp();
        let (first, second) = (ratio(end(-1.0)), ratio(end(1.0)));
        Some(Self {
            ratio: ratio(centre),
            // The larger loss is the lower ratio for a rate, and the higher one for a delay.
            low: first.min(second),
            high: first.max(second),
            pairs: losses.len(),
        })
    }

    /// The same for a change that a test has shown: it is not 1.
    pub(crate) const fn of_change(mut self) -> Self {
        if self.ratio < 1.0 {
            self.high = self.high.min(1.0);
        } else {
            self.low = self.low.max(1.0);
        }
        self
    }
}

/// The last centre that is not excluded, in one direction; infinite if none is excluded.
fn end(centre: f64, step: f64, excluded: impl Fn(f64) -> bool) -> f64 {
    // Outwards until excluded, then halving.
    let mut inside = centre;
    let mut width = step / 4.0;
    let mut outside = centre + width;
    for _ in 0..24 {
        if excluded(outside) {
            for _ in 0..20 {
                let middle = f64::midpoint(inside, outside);
                if excluded(middle) {
                    outside = middle;
                } else {
                    inside = middle;
                }
            }
            return inside;
        }
        inside = outside;
        width *= 2.0;
        outside = centre + width;
    }
    f64::INFINITY.copysign(step)
}
