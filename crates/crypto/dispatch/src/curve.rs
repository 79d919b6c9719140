//! Cost curves of batches on an engine, fitted to measurements.

use serde::{Deserialize, Serialize};

/// A kind of call to an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Seal a batch in place.
    Seal,
    /// Seal one packet from a separate text.
    SealFrom,
    /// Open a batch in place.
    Open,
}

impl Direction {
    /// All directions.
    pub const ALL: [Self; 3] = [Self::Seal, Self::SealFrom, Self::Open];

    /// Returns its name: `seal`, `seal-from`, `open`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seal => "seal",
            Self::SealFrom => "seal-from",
            Self::Open => "open",
        }
    }
}

/// The properties of a batch that determine its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Number of packets.
    pub packets: u64,
    /// Total length of the ESP packets, SPI to ICV, in bytes.
    pub bytes: u64,
    /// Length of the longest packet, in bytes.
    pub longest_bytes: u64,
}

impl Load {
    /// Returns the load of `packets` packets of `bytes` bytes each.
    #[must_use]
    pub const fn uniform(packets: u64, bytes: u64) -> Self {
        Self {
            packets,
            bytes: packets * bytes,
            longest_bytes: bytes,
        }
    }

    /// Returns the load of a batch.
    #[inline]
    #[must_use]
    pub fn of(packets: &[engine::Packet]) -> Self {
        let (mut bytes, mut longest) = (0, 0);
        for packet in packets {
            bytes += packet.bytes;
            longest = longest.max(packet.bytes);
        }
        Self {
            packets: packets.len() as u64,
            bytes: bytes as u64,
            longest_bytes: longest as u64,
        }
    }

    /// Factors of a curve's coefficients, in their order.
    fn factors(&self) -> [f64; TERMS] {
        [
            1.0,
            self.packets as f64,
            self.bytes as f64,
            self.longest_bytes as f64,
        ]
    }
}

/// Time of a batch on an engine: a sum of four parts, each in picoseconds and at most
/// `PART_PS_MAX`, so that no sum overflows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Curve {
    /// Per batch, whatever its size.
    pub per_batch_ps: u64,
    /// Per packet.
    pub per_packet_ps: u64,
    /// Per byte of an ESP packet.
    pub per_byte_ps: u64,
    /// Per byte of the longest packet only: multi-buffer engines process packets in parallel and
    /// finish with the longest.
    pub per_longest_byte_ps: u64,
}

/// 10 ms: a hundred thousand times the slowest engine's time per byte.
pub(crate) const PART_PS_MAX: u64 = 10_000_000_000;

impl Curve {
    /// Whether all parts are plausible.
    pub(crate) fn is_sane(&self) -> bool {
        let Self {
            per_batch_ps,
            per_packet_ps,
            per_byte_ps,
            per_longest_byte_ps,
        } = *self;
        let parts = [
            per_batch_ps,
            per_packet_ps,
            per_byte_ps,
            per_longest_byte_ps,
        ];
        parts.iter().all(|&part| part <= PART_PS_MAX)
    }

    /// Predicts the time of a batch, in picoseconds.
    #[inline]
    #[must_use]
    pub const fn predict_ps(&self, load: Load) -> u64 {
        self.per_batch_ps
            + load.packets * self.per_packet_ps
            + load.bytes * self.per_byte_ps
            + load.longest_bytes * self.per_longest_byte_ps
    }
}

/// A measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The batch.
    pub load: Load,
    /// Shortest time of several, in picoseconds.
    pub measured_ps: u64,
}

/// A curve with its measurements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fit {
    /// The curve.
    pub curve: Curve,
    /// The measurements.
    pub points: Vec<Point>,
}

/// Number of coefficients of a curve.
const TERMS: usize = 4;

impl Fit {
    /// Fits the curve without negative parts whose *relative* deviations from the points have the
    /// least squares: a short packet's nanoseconds count as much as a long one's microseconds.
    /// Ignores points of zero time. Parts that the points cannot distinguish (with one packet per
    /// batch: batch and packet) go to the earlier of packet, byte, batch, longest byte.
    #[must_use]
    pub fn of(points: Vec<Point>) -> Self {
        // With four unknowns every subset of nonzero ones can be tried: 15 small systems.
        let mut best: Option<(f64, [f64; TERMS])> = None;
        for &terms in &SUBSETS {
            let Some(solution) = least_squares(&points, terms) else {
                continue;
            };
            // A negative part would predict negative times for batches between the measured ones.
            // The same fit without that part is among the subsets.
            if solution.iter().any(|&coefficient| coefficient < 0.0) {
                continue;
            }
            let error = squares(&points, &solution);
            // An additional term must reduce the error.
            if best.is_none_or(|(least, _)| error < least * 0.999 - 1e-12) {
                best = Some((error, solution));
            }
        }
        let [batch, packet, byte, longest] = best.map_or([0.0; TERMS], |(_, solution)| solution);
        let whole = |part: f64| (part.round() as u64).min(PART_PS_MAX);
        let curve = Curve {
            per_batch_ps: whole(batch),
            per_packet_ps: whole(packet),
            per_byte_ps: whole(byte),
            per_longest_byte_ps: whole(longest),
        };
        Self { curve, points }
    }

    /// Returns the largest deviation of a point from the curve, relative to the point.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        let deviation = |point: &Point| {
            let measured = point.measured_ps as f64;
            (self.curve.predict_ps(point.load) as f64 - measured).abs() / measured
        };
        let measured = self.points.iter().filter(|point| point.measured_ps > 0);
        measured.map(deviation).fold(0.0, f64::max)
    }
}

/// Indexes of [`Load::factors`] with nonzero coefficients, the simpler combinations first.
const SUBSETS: [&[usize]; 15] = [
    &[1],
    &[2],
    &[0],
    &[3],
    &[1, 2],
    &[0, 2],
    &[0, 1],
    &[1, 3],
    &[2, 3],
    &[0, 3],
    &[0, 1, 2],
    &[1, 2, 3],
    &[0, 2, 3],
    &[0, 1, 3],
    &[0, 1, 2, 3],
];

/// Returns the sum of the squares of relative deviations.
fn squares(points: &[Point], solution: &[f64; TERMS]) -> f64 {
    let square = |point: &Point| {
        let predicted: f64 = point
            .load
            .factors()
            .iter()
            .zip(solution)
            .map(|(factor, coefficient)| factor * coefficient)
            .sum();
        let deviation = predicted / point.measured_ps as f64 - 1.0;
        deviation * deviation
    };
    let measured = points.iter().filter(|point| point.measured_ps > 0);
    measured.map(square).sum()
}

/// Solves the normal equations for the coefficients of these terms only; `None` if the points do
/// not distinguish the terms.
fn least_squares(points: &[Point], terms: &[usize]) -> Option<[f64; TERMS]> {
    let unknowns = terms.len();
    let mut system = [[0.0; TERMS + 1]; TERMS];
    for point in points.iter().filter(|point| point.measured_ps > 0) {
        let factors = point.load.factors();
        // Divided by the measured time: the squares are of relative deviations.
        let row = |term: usize| factors[terms[term]] / point.measured_ps as f64;
        for (i, equation) in system.iter_mut().enumerate().take(unknowns) {
            for (j, value) in equation.iter_mut().enumerate().take(unknowns) {
                *value += row(i) * row(j);
            }
            // The right side is the measured time divided by itself, which is 1.
            equation[TERMS] += row(i);
        }
    }
    // Columns such as bytes and batches differ by orders of magnitude; scaling by the diagonal
    // makes them comparable.
    let mut scale = [1.0; TERMS];
    for (term, scale) in scale.iter_mut().enumerate().take(unknowns) {
        *scale = system[term][term].sqrt();
        if *scale <= 0.0 {
            return None;
        }
    }
    for (i, equation) in system.iter_mut().enumerate().take(unknowns) {
        for (value, of_column) in equation.iter_mut().zip(scale).take(unknowns) {
            *value /= scale[i] * of_column;
        }
        equation[TERMS] /= scale[i];
    }
    let solved = eliminate(&mut system, unknowns)?;
    let mut solution = [0.0; TERMS];
    for (index, term) in terms.iter().enumerate() {
        solution[*term] = solved[index] / scale[index];
    }
    Some(solution)
}

/// Solves a symmetric system by Gauss-Jordan elimination; `None` if it has no unique solution.
fn eliminate(system: &mut [[f64; TERMS + 1]; TERMS], unknowns: usize) -> Option<[f64; TERMS]> {
    const SINGULAR: f64 = 1e-9;
    for column in 0..unknowns {
        // The largest value as pivot keeps rounding errors small.
        let pivot = (column..unknowns)
            .max_by(|&a, &b| f64::total_cmp(&system[a][column].abs(), &system[b][column].abs()))?;
        // After scaling the diagonal is 1, so this is independent of units.
        if system[pivot][column].abs() < SINGULAR {
            return None;
        }
        system.swap(column, pivot);
        // A copy, since the loop changes rows of the same array.
        let pivot_row = system[column];
        for (row, values) in system.iter_mut().enumerate().take(unknowns) {
            if row == column {
                continue;
            }
            let factor = values[column] / pivot_row[column];
            for (value, pivot) in values.iter_mut().zip(pivot_row) {
                *value -= factor * pivot;
            }
        }
    }
    let mut solution = [0.0; TERMS];
    for (index, value) in solution.iter_mut().enumerate().take(unknowns) {
        *value = system[index][TERMS] / system[index][index];
    }
    Some(solution)
}

/// Curves of one engine for one suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineCurves {
    /// The engine.
    pub engine: String,
    /// Sealing batches in place.
    pub seal: Fit,
    /// Sealing single packets from elsewhere.
    pub seal_from: Fit,
    /// Opening batches in place.
    pub open: Fit,
}

impl EngineCurves {
    /// Returns the fit of a direction.
    #[must_use]
    pub const fn of(&self, direction: Direction) -> &Fit {
        match direction {
            Direction::Seal => &self.seal,
            Direction::SealFrom => &self.seal_from,
            Direction::Open => &self.open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(curve: Curve, packets: &[u64]) -> Vec<Point> {
        let sizes = [98, 162, 290, 546, 1442, 8226];
        packets
            .iter()
            .flat_map(|&packets| sizes.map(|bytes| Load::uniform(packets, bytes)))
            .map(|load| Point {
                load,
                measured_ps: curve.predict_ps(load),
            })
            .collect()
    }

    fn close(a: u64, b: u64, of: u64) -> bool {
        a.abs_diff(b) <= 2 + of / 100
    }

    proptest! {
        #[test]
        fn a_curve_is_recovered_from_its_predictions(
            per_batch_ps in 0u64..2_000_000,
            per_packet_ps in 1_000u64..1_000_000,
            per_byte_ps in 30u64..20_000,
            per_longest_byte_ps in 0u64..20_000,
        ) {
            let curve = Curve { per_batch_ps, per_packet_ps, per_byte_ps, per_longest_byte_ps };
            let fit = Fit::of(points(curve, &[1, 4, 32]));
            // Insignificant parts may be attributed to others, but times must match.
            prop_assert!(fit.deviation() < 0.01, "{} {:?}", fit.deviation(), fit.curve);
        }

        #[test]
        fn noise_changes_a_curve_in_proportion(
            per_packet_ps in 10_000u64..200_000,
            per_byte_ps in 50u64..5_000,
            noise in proptest::collection::vec(-0.1f64..0.1, 12),
        ) {
            let curve = Curve { per_packet_ps, per_byte_ps, ..Curve::default() };
            let mut noisy = points(curve, &[1, 32]);
            for (point, noise) in noisy.iter_mut().zip(noise) {
                point.measured_ps = (point.measured_ps as f64 * (1.0 + noise)) as u64;
            }
            let fit = Fit::of(noisy);
            for point in points(curve, &[1, 8, 32]) {
                let found = fit.curve.predict_ps(point.load) as f64 / point.measured_ps as f64;
                prop_assert!((found - 1.0).abs() < 0.25, "{found} at {:?}", point.load);
            }
        }
    }

    #[test]
    fn single_packets_do_not_distinguish_batch_and_packet() {
        let curve = Curve {
            per_batch_ps: 10_000,
            per_packet_ps: 20_000,
            per_byte_ps: 70,
            per_longest_byte_ps: 10,
        };
        let fit = Fit::of(points(curve, &[1]));
        assert!(close(fit.curve.per_packet_ps, 30_000, 30_000), "{fit:?}");
        assert!(close(fit.curve.per_byte_ps, 80, 80), "{fit:?}");
        assert_eq!(fit.curve.per_batch_ps, 0);
        assert_eq!(fit.curve.per_longest_byte_ps, 0);
    }

    #[test]
    fn parallel_packets_are_recognised() {
        // 16 lanes: a batch takes as long as its longest packet, whatever else it contains.
        let curve = Curve {
            per_batch_ps: 50_000,
            per_packet_ps: 10_000,
            per_byte_ps: 60,
            per_longest_byte_ps: 1_000,
        };
        let fit = Fit::of(points(curve, &[1, 32]));
        assert!(
            close(fit.curve.per_longest_byte_ps, 1_000, 1_000),
            "{fit:?}"
        );
        assert!(close(fit.curve.per_byte_ps, 60, 60), "{fit:?}");
    }

    #[test]
    fn without_measurements_the_cost_is_zero() {
        assert_eq!(Fit::of(Vec::new()).curve, Curve::default());
        let zero = Point {
            load: Load::uniform(1, 64),
            measured_ps: 0,
        };
        assert!(Fit::of(vec![zero]).deviation() < 1e-9);
    }
}
