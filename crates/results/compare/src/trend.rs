//! Finds changes of a figure over a series of runs.
//!
//! Binary segmentation: of all splits of the series with at least two runs on each side, the best
//! has the least sum of squares within its parts, computed on logarithms so that ratios count. It
//! is a change if the interval of the ratio of the parts (Welch) excludes 1; then each part is
//! split in turn. What remains must also exceed the scatter within all parts together, since two
//! runs that agree by chance make Welch's interval far too narrow. Each run is one value, so the
//! scatter from run to run counts, not the smaller scatter of the repeats within a run.
//!
//! The best of many splits looks better than it is. Therefore the intervals are simultaneous over
//! all splits of the series (Šidák, as in `stats::Change`): a series without a change shows one
//! with a probability of at most about 5 %.

use serde::Serialize;
use stats::{
    Change, Estimate, Pairing, Quantity, Reading, Sample, simultaneous_alpha, standard_errors,
};

/// Runs on each side of a split.
const SIDE_MIN: usize = 2;

/// A change of a figure between two neighbouring runs of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shift {
    /// Index of the first run after it; at least 1.
    pub at: usize,
    /// Geometric mean of the runs before it, back to the shift before.
    pub before: f64,
    /// Geometric mean of the runs from it on, up to the next shift.
    pub after: f64,
    /// Ratio of `after` to `before`.
    pub ratio: f64,
    /// Lower end of its simultaneous interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Finds the changes in a series with one value per run, in order. Empty if a value is not above 0.
#[must_use]
pub fn shifts(values: &[f64]) -> Vec<Shift> {
    shifts_at(values, simultaneous_alpha(splits(values.len())))
}

/// The possible splits of a whole series: the number of its intervals.
pub(crate) const fn splits(values: usize) -> usize {
    (values + 1).saturating_sub(2 * SIDE_MIN)
}

/// As [`shifts`], with the probability `alpha` that the interval of one split misses.
pub(crate) fn shifts_at(values: &[f64], alpha: f64) -> Vec<Shift> {
    if values.len() < 2 * SIDE_MIN
        || values
            .iter()
            .any(|value| !value.is_finite() || *value <= 0.0)
    {
        return Vec::new();
    }
    let mut places = Vec::new();
    split(values, 0, alpha, &mut places);
    // The recursion finds the strongest split first and not the earliest.
    places.sort_unstable();
    // If a split of the whole series has another change within it, its place may be slightly off.
    // Now that the neighbours are known, search for each split once more between them.
    let between = |places: &[usize], nth: usize| {
        let start = nth.checked_sub(1).map_or(0, |before| places[before]);
        let end = places.get(nth + 1).copied().unwrap_or(values.len());
        (start, &values[start..end])
    };
    for nth in 0..places.len() {
        let (start, part) = between(&places, nth);
        if let Some(at) = best_split(part) {
            places[nth] = start + at;
        }
    }
    keep_proven(values, alpha, &mut places);
    let all = (0..places.len()).filter_map(|nth| {
        let (start, part) = between(&places, nth);
        let at = places[nth];
        let (before, after) = part.split_at(at - start);
        let (ratio, low, high) = change(before, after, alpha)?;
        Some(Shift {
            at,
            before: geometric_mean(before),
            after: geometric_mean(after),
            ratio,
            low,
            high,
        })
    });
    all.collect()
}

/// Removes the changes that the scatter within all parts together does not bear out, the weakest
/// first.
fn keep_proven(values: &[f64], alpha: f64, places: &mut Vec<usize>) {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    while !places.is_empty() {
        let ends: Vec<usize> = [0]
            .iter()
            .chain(&*places)
            .chain(&[logs.len()])
            .copied()
            .collect();
        let parts: Vec<&[f64]> = ends
            .windows(2)
            .map(|ends| &logs[ends[0]..ends[1]])
            .collect();
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let squares: f64 = parts
            .iter()
            .map(|part| {
                let mean = mean(part);
                part.iter().map(|log| (log - mean).powi(2)).sum::<f64>()
            })
            .sum();
        // Each part has lost one degree of freedom to its mean.
        let degrees = logs.len() - parts.len();
        let variance = squares / degrees.max(1) as f64;
        let strength = |pair: &[&[f64]]| {
            let error = variance * pair.iter().map(|part| 1.0 / part.len() as f64).sum::<f64>();
            (mean(pair[1]) - mean(pair[0])).abs() / error.sqrt()
        };
        let all = parts.windows(2).map(strength).enumerate();
        let weakest = all.min_by(|(_, one), (_, other)| one.total_cmp(other));
        match weakest {
            Some((nth, strength)) if strength <= standard_errors(alpha, degrees) => {
                // One at a time: the parts that merge get another mean, which changes the strength
                // of the others.
                places.remove(nth);
            }
            _ => return,
        }
    }
}

fn geometric_mean(values: &[f64]) -> f64 {
    let logs: f64 = values.iter().map(|value| value.ln()).sum();
    (logs / values.len() as f64).exp()
}

fn split(values: &[f64], offset: usize, alpha: f64, places: &mut Vec<usize>) {
    let Some(at) = best_split(values) else { return };
    let (before, after) = values.split_at(at);
    if change(before, after, alpha).is_none() {
        return;
    }
    places.push(offset + at);
    split(before, offset, alpha, places);
    split(after, offset + at, alpha, places);
}

/// The ratio of two parts with its interval, if the interval excludes 1.
fn change(before: &[f64], after: &[f64], alpha: f64) -> Option<(f64, f64, f64)> {
    let change = Change::of(&reading(before)?, &reading(after)?, Pairing::None)?;
    let (low, high) = change.interval(alpha)?;
    (low > 1.0 || high < 1.0).then_some((change.ratio(), low, high))
}

/// The split with the largest sum of squares between its parts.
fn best_split(values: &[f64]) -> Option<usize> {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let total: f64 = logs.iter().sum();
    let mut sum = 0.0;
    let mut best = None;
    for (at, log) in (1..).zip(&logs) {
        sum += log;
        let rest = logs.len() - at;
        if at < SIDE_MIN || rest < SIDE_MIN {
            continue;
        }
        let (one, other) = (at as f64, rest as f64);
        let distance = sum / one - (total - sum) / other;
        // The total sum of squares is constant, so the largest sum between the parts leaves the
        // least within them. Running sums make the search linear.
        let between = one * other / (one + other) * distance * distance;
        if best.is_none_or(|(most, _)| between > most) {
            best = Some((between, at));
        }
    }
    best.map(|(_, at)| at)
}

fn reading(values: &[f64]) -> Option<Reading> {
    let samples = (1..).zip(values);
    let samples = samples.map(|(repeat, &value)| Sample { repeat, value });
    // Each run counts as one repeat.
    let value = Estimate::of(samples.collect())?;
    // Any quantity will do: a ratio has no unit.
    Some(Reading::new(Quantity::FrameRate, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values around 1 with a scatter of about 1 %: xorshift64*, summed to a bell curve.
    fn noise(seed: u64, count: usize) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut uniform = || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        (0..count).map(|_| 1.0 + 0.01 * normal()).collect()
    }

    #[test]
    fn a_drop_and_its_repair_are_found_where_they_were() {
        for seed in 0..50 {
            let mut values = noise(seed, 40);
            values[15..25].iter_mut().for_each(|value| *value *= 0.9);
            let found = shifts(&values);
            let at: Vec<usize> = found.iter().map(|shift| shift.at).collect();
            assert!(at.contains(&15) && at.contains(&25), "{seed}: {found:?}");
            let drop = found.iter().find(|shift| shift.at == 15).unwrap();
            assert!((drop.after / drop.before - 0.9).abs() < 0.02, "{drop:?}");
            assert!(
                (drop.after / drop.before - drop.ratio).abs() < 1e-9,
                "{drop:?}"
            );
            assert!(drop.low < drop.ratio && drop.ratio < drop.high);
        }
    }

    #[test]
    fn a_series_without_a_change_seldom_shows_one() {
        let false_ones = (0..1000).filter(|seed| !shifts(&noise(*seed, 30)).is_empty());
        let share = false_ones.count() as f64 / 1000.0;
        assert!(share <= 0.06, "{share}");
    }

    #[test]
    fn too_short_and_unusable_series_show_none() {
        assert!(shifts(&[1.0, 1.0, 2.0]).is_empty());
        assert!(shifts(&[1.0, 1.1, 0.0, 2.0, 2.1]).is_empty());
        assert!(shifts(&[1.0, 1.1, f64::NAN, 2.0, 2.1]).is_empty());
        // Without scatter, no interval can be computed.
        assert!(shifts(&[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]).is_empty());
    }
}
