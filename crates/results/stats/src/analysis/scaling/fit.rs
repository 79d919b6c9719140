//! Laws of scaling, fitted to a few points.
//!
//! The throughput of n is `X(n) = λ n / (1 + α (n − 1) + β n (n − 1))`: λ is the throughput of one,
//! α the serial share (contention), β the cost of coherence per pair (crosstalk). Amdahl's law has
//! β = 0; Gunther's Universal Scalability Law has both, and a peak if β > 0.
//!
//! `n / X` is linear in 1/λ, α/λ and β/λ, so that least squares need no start values. Errors are
//! *relative*, the parameters are never negative, and outliers count less (Huber's weights), since
//! one bad point among few would bend the whole curve.
//!
//! The fit deliberately does not extrapolate, and gives no intervals of parameters: with few points
//! the residuals say more.

use schemars::JsonSchema;
use serde::Serialize;

/// Minimum number of points: the law with three parameters fits any three points exactly.
pub const FIT_MIN_POINTS: usize = 4;
/// Largest residual, in per cent of the fitted value, of a curve that describes the points.
pub const POOR_FIT_PERCENT: f64 = 10.0;

/// Huber's constant: 95 % efficiency for normal errors.
const HUBER: f64 = 1.345;
/// Ratio of the standard deviation to the median absolute residual, for normal errors.
const MAD_TO_SIGMA: f64 = 1.4826;
/// Residuals below half a per cent do not reduce a point's weight.
const SIGMA_MIN: f64 = 0.005;
const ROUNDS: usize = 30;

/// A law of scaling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// Amdahl's: a serial share.
    Amdahl,
    /// Gunther's Universal Scalability Law: a serial share and crosstalk.
    Usl,
}

/// A law with the parameters that fit the points best.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Fit {
    /// The law.
    pub law: Law,
    /// Throughput of one, in the unit of the series.
    pub lambda: f64,
    /// Serial share, from 0.
    pub alpha: f64,
    /// Crosstalk, from 0; 0 by Amdahl's law.
    pub beta: f64,
    /// Number with the curve's maximum; `null` if it always rises.
    pub peak_n: Option<f64>,
    /// Maximum of the curve, in the unit of the series; `null` if it is unbounded.
    pub limit: Option<f64>,
    /// Measured less fitted, in per cent of the fitted, by point.
    pub residuals_percent: Vec<f64>,
    /// The largest absolute residual.
    pub largest_residual_percent: f64,
    /// Whether the curve describes the points: no residual above 10 %, and a serial share of at
    /// most 1.
    pub describes: bool,
}

impl Fit {
    /// Fits the law to points, each a number and its throughput, all positive; `None` with too few
    /// points.
    pub(super) fn of(law: Law, points: &[(f64, f64)]) -> Option<Self> {
        if points.len() < FIT_MIN_POINTS {
            return None;
        }
        let [a, b, c] = robust(law, points)?;
        let found = Self {
            law,
            lambda: 1.0 / a,
            alpha: b / a,
            beta: c / a,
            peak_n: None,
            limit: None,
            residuals_percent: Vec::new(),
            largest_residual_percent: 0.0,
            describes: false,
        };
        let residual = |(n, x): &(f64, f64)| 100.0 * (x / found.at(*n) - 1.0);
        let residuals: Vec<f64> = points.iter().map(residual).collect();
        let largest = residuals
            .iter()
            .map(|found| found.abs())
            .fold(0.0, f64::max);
        // With a peak below one the curve falls from the start.
        let peak =
            (found.beta > 0.0).then(|| ((1.0 - found.alpha).max(0.0) / found.beta).sqrt().max(1.0));
        Some(Self {
            peak_n: peak,
            limit: match peak {
                Some(peak) => Some(found.at(peak)),
                // Amdahl's curve approaches λ / α, and without a serial share it has no limit.
                None => (found.alpha > 0.0).then(|| found.lambda / found.alpha),
            },
            residuals_percent: residuals,
            largest_residual_percent: largest,
            describes: largest <= POOR_FIT_PERCENT && found.alpha <= 1.0,
            ..found
        })
    }

    /// The curve's value.
    #[must_use]
    pub fn at(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.alpha * (n - 1.0) + self.beta * n * (n - 1.0))
    }
}

/// A point's row in the linear problem: its product with the parameters is 1 if the curve meets the
/// point.
fn row((n, x): (f64, f64)) -> [f64; 3] {
    let weight = x / n;
    [weight, weight * (n - 1.0), weight * n * (n - 1.0)]
}

/// 1/λ, α/λ and β/λ by reweighted least squares.
fn robust(law: Law, points: &[(f64, f64)]) -> Option<[f64; 3]> {
    let rows: Vec<[f64; 3]> = points.iter().copied().map(row).collect();
    // Plain least squares first: their residuals give the first weights.
    let mut weights = vec![1.0; rows.len()];
    let mut found = constrained(law, &rows, &weights)?;
    for _ in 0..ROUNDS {
        let errors: Vec<f64> = rows.iter().map(|row| error(row, &found).abs()).collect();
        // Without a least value a curve that meets most points exactly would give the others no
        // weight at all.
        let sigma = (MAD_TO_SIGMA * median(&errors)).max(SIGMA_MIN);
        weights = errors
            .iter()
            .map(|error| (HUBER * sigma / error.max(f64::MIN_POSITIVE)).min(1.0))
            .collect();
        found = constrained(law, &rows, &weights)?;
    }
    Some(found)
}

fn error(row: &[f64; 3], parameters: &[f64; 3]) -> f64 {
    let sum: f64 = row
        .iter()
        .zip(parameters)
        .map(|(row, found)| row * found)
        .sum();
    1.0 - sum
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0
}

/// Non-negative least squares (Lawson and Hanson): the best solution with some parameters fixed at
/// 0 and the others positive.
fn constrained(law: Law, rows: &[[f64; 3]], weights: &[f64]) -> Option<[f64; 3]> {
    let free: &[&[usize]] = match law {
        // With three parameters every set of free ones can be tried, which needs no active-set
        // iteration. 1/λ is always free: without it there is no throughput.
        Law::Amdahl => &[&[0, 1], &[0]],
        Law::Usl => &[&[0, 1, 2], &[0, 1], &[0, 2], &[0]],
    };
    let solutions = free
        .iter()
        .filter_map(|free| least_squares(rows, weights, free));
    let cost = |found: &[f64; 3]| -> f64 {
        let errors = rows.iter().zip(weights);
        errors
            .map(|(row, weight)| weight * error(row, found).powi(2))
            .sum()
    };
    solutions
        .filter(|found| found[0] > 0.0 && found[1] >= 0.0 && found[2] >= 0.0)
        .min_by(|a, b| cost(a).total_cmp(&cost(b)))
}

/// Least squares in the free parameters, the others 0; `None` when the points do not determine
/// them.
fn least_squares(rows: &[[f64; 3]], weights: &[f64], free: &[usize]) -> Option<[f64; 3]> {
    let size = free.len();
    // Columns of unit length: n (n - 1) may be a million times the constant.
    let scales: Vec<f64> = free
        .iter()
        .map(|&column| {
            rows.iter()
                .map(|row| row[column].powi(2))
                .sum::<f64>()
                .sqrt()
        })
        .collect();
    // If all points are at 1, the columns of both costs are 0 and nothing determines them.
    if scales.iter().any(|scale| *scale <= 0.0) {
        return None;
    }
    let mut matrix = [[0.0; 4]; 3];
    for (row, weight) in rows.iter().zip(weights) {
        for i in 0..size {
            let left = row[free[i]] / scales[i];
            for j in 0..size {
                matrix[i][j] += weight * left * row[free[j]] / scales[j];
            }
            matrix[i][3] += weight * left;
        }
    }
    let solved = eliminate(&mut matrix, size)?;
    let mut found = [0.0; 3];
    for (i, &column) in free.iter().enumerate() {
        found[column] = solved[i] / scales[i];
    }
    Some(found)
}

/// Gaussian elimination with pivoting; the right side is the last column.
fn eliminate(matrix: &mut [[f64; 4]; 3], size: usize) -> Option<[f64; 3]> {
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        // The columns have unit length, so a fixed bound detects dependent ones.
        if matrix[pivot][column].abs() < 1e-12 {
            return None;
        }
        matrix.swap(column, pivot);
        let pivot = matrix[column];
        for row in matrix.iter_mut().take(size).skip(column + 1) {
            let factor = row[column] / pivot[column];
            for (cell, pivot) in row.iter_mut().zip(pivot) {
                *cell -= factor * pivot;
            }
        }
    }
    let mut found = [0.0; 3];
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size)
            .map(|column| matrix[row][column] * found[column])
            .sum();
        found[row] = (matrix[row][3] - known) / matrix[row][row];
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NUMBERS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

    fn points(numbers: &[f64], (lambda, alpha, beta): (f64, f64, f64)) -> Vec<(f64, f64)> {
        let at = |n: f64| lambda * n / (1.0 + alpha * (n - 1.0) + beta * n * (n - 1.0));
        numbers.iter().map(|&n| (n, at(n))).collect()
    }

    #[test]
    fn three_points_are_refused() {
        let few = points(&NUMBERS[..3], (1e9, 0.1, 0.0));
        assert_eq!(Fit::of(Law::Amdahl, &few), None);
        assert_eq!(Fit::of(Law::Usl, &few), None);
    }

    #[test]
    fn one_bad_point_does_not_bend_the_curve() {
        let mut bad = points(&NUMBERS, (1e9, 0.05, 0.0));
        // Least squares alone would spread this error over all points.
        bad[3].1 *= 0.7;
        let found = Fit::of(Law::Amdahl, &bad).unwrap();
        assert!((found.alpha - 0.05).abs() < 0.01, "{found:?}");
        assert!((found.residuals_percent[3] + 30.0).abs() < 3.0, "{found:?}");
        assert!(!found.describes);
    }

    #[test]
    fn what_scales_better_than_linearly_is_linear_at_least() {
        let found = Fit::of(Law::Usl, &[(1.0, 1.0), (2.0, 2.1), (4.0, 4.4), (8.0, 9.2)]).unwrap();
        assert_eq!((found.alpha, found.beta, found.limit), (0.0, 0.0, None));
    }

    #[test]
    fn what_falls_from_the_start_is_not_described() {
        let found = Fit::of(Law::Amdahl, &points(&NUMBERS, (1e9, 1.2, 0.0))).unwrap();
        assert!(
            found.largest_residual_percent < 1e-6 && !found.describes,
            "{found:?}"
        );
    }

    #[test]
    fn a_hard_stop_is_not_described_by_amdahls_law() {
        let capped: Vec<_> = (1..=16)
            .map(|n| (f64::from(n), f64::from(n.min(4))))
            .collect();
        let found = Fit::of(Law::Amdahl, &capped).unwrap();
        assert!(!found.describes, "{found:?}");
    }

    proptest! {
        #[test]
        fn amdahls_parameters_come_back(lambda in 1e3..1e11_f64, alpha in 0.0..0.9_f64) {
            let found = Fit::of(Law::Amdahl, &points(&NUMBERS[..4], (lambda, alpha, 0.0))).unwrap();
            prop_assert!((found.lambda / lambda - 1.0).abs() < 1e-6, "{found:?}");
            prop_assert!((found.alpha - alpha).abs() < 1e-6, "{found:?}");
            prop_assert!(found.describes && found.peak_n.is_none());
        }

        #[test]
        fn a_peak_comes_back(lambda in 1e3..1e11_f64, alpha in 0.0..0.5_f64, beta in 0.002..0.1_f64) {
            let found = Fit::of(Law::Usl, &points(&NUMBERS, (lambda, alpha, beta))).unwrap();
            prop_assert!((found.alpha - alpha).abs() < 1e-5, "{found:?}");
            prop_assert!((found.beta - beta).abs() < 1e-6, "{found:?}");
            let peak = ((1.0 - alpha) / beta).sqrt();
            prop_assert!((found.peak_n.unwrap() / peak - 1.0).abs() < 1e-3);
            prop_assert!((found.limit.unwrap() / found.at(peak) - 1.0).abs() < 1e-6);
        }

        #[test]
        fn noise_of_a_few_per_cent_stays_one(
            alpha in 0.02..0.5_f64,
            noise in proptest::collection::vec(-0.02..0.02_f64, 6),
        ) {
            let mut noisy = points(&NUMBERS, (1e9, alpha, 0.0));
            for (point, noise) in noisy.iter_mut().zip(noise) {
                point.1 *= 1.0 + noise;
            }
            let found = Fit::of(Law::Amdahl, &noisy).unwrap();
            prop_assert!(found.describes, "{found:?}");
            prop_assert!((found.alpha - alpha).abs() < 0.05, "{found:?}");
        }

        #[test]
        fn no_points_make_it_panic_or_lie(
            figures in proptest::collection::vec((1_u32..2000, 1e-3..1e12_f64), 4..12),
        ) {
            let mut points: Vec<_> = figures.into_iter().map(|(n, x)| (f64::from(n), x)).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points.dedup_by_key(|point| point.0);
            for law in [Law::Amdahl, Law::Usl] {
                if let Some(found) = Fit::of(law, &points) {
                    prop_assert!(found.lambda > 0.0 && found.alpha >= 0.0 && found.beta >= 0.0);
                    prop_assert_eq!(found.residuals_percent.len(), points.len());
                }
            }
        }
    }
}
