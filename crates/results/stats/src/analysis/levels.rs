//! Detects two levels in the timeline of one transfer.
//!
//! A path that changes in mid-trial shows one rate before and another behind: the mean over the
//! trial is the rate of no moment of it. [`crate::figures::bands`] looks for the same over repeats.

use journal::record::Interval;

/// Minimum number of intervals to look for levels.
const INTERVALS_MIN: usize = 6;
/// The minimum number of intervals on a level: a single one is a hiccup.
const LEVEL_INTERVALS_MIN: usize = 2;
/// Minimum ratio of the levels' medians. Normal noise of up to 12 % is taken for two levels in
/// fewer than 1 % of transfers.
pub(crate) const LEVELS_APART: f64 = 1.5;
/// Levels last: a rate that goes to and fro all the time is noise. One change in this many
/// intervals is allowed, and always two: down and up again.
const INTERVALS_PER_CHANGE: usize = 4;
/// An interval without traffic counts as this share of the fastest one.
const LEAST_SHARE: f64 = 0.001;
/// An interval shorter than this share of the longest one is a remainder, and left out.
const WHOLE_SHARE: f64 = 0.5;

/// Two levels of rate in one transfer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TwoLevels {
    /// Median rate of the slow intervals, in bit/s.
    pub(crate) low_bps: f64,
    /// Median rate of the fast intervals, in bit/s.
    pub(crate) high_bps: f64,
    /// When it was slow, from the start of the measured time: begin and end in nanoseconds.
    pub(crate) slow_ns: Vec<(u64, u64)>,
}

impl TwoLevels {
    /// Returns the levels of a timeline; `None` if there is one, or too few intervals to decide.
    pub(crate) fn of(intervals: &[Interval]) -> Option<Self> {
        let length = |one: &Interval| one.end_ns.saturating_sub(one.start_ns) as f64;
        let longest = intervals.iter().map(length).fold(0.0, f64::max);
        let whole: Vec<&Interval> = intervals
            .iter()
            // The last interval of a tool is a remainder, and the rate of a few milliseconds would
            // be a level of noise.
            .filter(|one| length(one) > WHOLE_SHARE * longest)
            .collect();
        let rate = |one: &&Interval| 8e9 * one.bytes as f64 / length(one);
        let rates: Vec<f64> = whole.iter().map(rate).collect();
        let fastest = rates.iter().copied().fold(0.0, f64::max);
        if rates.len() < INTERVALS_MIN || fastest <= 0.0 {
            return None;
        }
        let logs: Vec<f64> = rates
            .iter()
            // A silent interval has no logarithm. A small share keeps it on the slow side without
            // outweighing all others.
            .map(|rate| rate.max(LEAST_SHARE * fastest).ln())
            .collect();
        // On logarithms a rate that fell to a half and one that doubled are equally far apart.
        let threshold = threshold(&logs)?;
        let is_slow: Vec<bool> = logs.iter().map(|log| *log < threshold).collect();
        let changes = is_slow.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if changes > (rates.len() / INTERVALS_PER_CHANGE).max(2) {
            return None;
        }
        // Medians, so that an interval with a change inside it belongs to neither level.
        let level = |slow: bool| {
            let of_level = rates.iter().zip(&is_slow).filter(|(_, is)| **is == slow);
            median(of_level.map(|(rate, _)| *rate).collect())
        };
        let (low_bps, high_bps) = (level(true)?, level(false)?);
        let mut slow_ns: Vec<(u64, u64)> = Vec::new();
        for (one, _) in whole.iter().zip(&is_slow).filter(|(_, slow)| **slow) {
            match slow_ns.last_mut() {
                // Neighbouring slow intervals are one time.
                Some(last) if last.1 == one.start_ns => last.1 = one.end_ns,
                _ => slow_ns.push((one.start_ns, one.end_ns)),
            }
        }
        (high_bps >= LEVELS_APART * low_bps).then_some(Self {
            low_bps,
            high_bps,
            slow_ns,
        })
    }

    /// How many times faster it was.
    pub(crate) fn ratio(&self) -> f64 {
        self.high_bps / self.low_bps.max(f64::MIN_POSITIVE)
    }
}

/// The value that splits values into the two groups with the largest variance between them (N.
/// Otsu, 1979); `None` if a group would be too small.
fn threshold(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let between = |at: usize| {
        let (low, high) = sorted.split_at(at);
        let apart = mean(high) - mean(low);
        (low.len() * high.len()) as f64 * apart * apart
    };
    // Only splits with enough intervals on either side. The range is empty for short timelines, and
    // `max_by` finds none.
    let splits = LEVEL_INTERVALS_MIN..=n.checked_sub(LEVEL_INTERVALS_MIN)?;
    let at = splits.max_by(|a, b| between(*a).total_cmp(&between(*b)))?;
    Some((sorted[at - 1] + sorted[at]) / 2.0)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    Some((*values.get(n.checked_sub(1)? / 2)? + values[n / 2]) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::noise::Noise;

    const STEP_NS: u64 = 500_000_000;

    fn timeline(rates: &[f64]) -> Vec<Interval> {
        let ends = (1..).map(|step: u64| step * STEP_NS);
        let steps = rates.iter().zip(ends);
        steps
            .map(|(rate, end_ns)| Interval {
                start_ns: end_ns - STEP_NS,
                end_ns,
                bytes: (rate * 1e6) as u64,
            })
            .collect()
    }

    /// Normal noise about 1.
    fn normal(random: &mut Noise, deviation: f64) -> f64 {
        (1.0 + deviation * random.normal()).max(0.0)
    }

    #[test]
    fn a_rate_that_fell_and_stayed_low_is_two_levels_with_their_times() {
        let rates = [6.8, 6.9, 6.7, 6.8, 6.8, 6.9, 6.8, 1.2, 1.3, 1.2, 1.2, 1.1];
        let found = TwoLevels::of(&timeline(&rates)).unwrap();
        assert!((found.ratio() - 6.8 / 1.2).abs() < 0.1, "{found:?}");
        assert_eq!(found.slow_ns, [(7 * STEP_NS, 12 * STEP_NS)]);
        // Back again before the end.
        let rates = [6.8, 6.9, 1.2, 1.3, 6.8, 6.8, 6.8, 6.9, 6.8];
        let found = TwoLevels::of(&timeline(&rates)).unwrap();
        assert_eq!(found.slow_ns, [(2 * STEP_NS, 4 * STEP_NS)]);
        // Without any traffic for a time.
        let rates = [6.8, 6.9, 0.0, 0.0, 6.8, 6.8, 6.8];
        assert!(TwoLevels::of(&timeline(&rates)).unwrap().ratio() > 100.0);
    }

    #[test]
    fn a_hiccup_a_remainder_and_a_small_step_are_no_levels() {
        // In turn: one slow interval, a ratio below 1.5, a rate that goes to and fro, fewer than
        // six intervals, and no traffic.
        for rates in [
            &[6.8, 6.8, 0.1, 6.9, 6.8, 6.8, 6.7][..],
            &[6.8, 6.8, 6.8, 6.8, 5.0, 5.0, 5.0, 5.0],
            &[1.0, 6.0, 1.0, 6.0, 1.0, 6.0, 1.0, 6.0, 1.0, 6.0],
            &[6.8, 6.8, 1.0, 1.0, 1.0],
            &[0.0; 9],
        ] {
            assert_eq!(TwoLevels::of(&timeline(rates)), None, "{rates:?}");
        }
        // Two empty remainders of 1 µs would be a slow level if they counted.
        let mut rest = timeline(&[6.8; 8]);
        for _ in 0..2 {
            let start_ns = rest.last().unwrap().end_ns;
            let end_ns = start_ns + 1000;
            rest.push(Interval {
                start_ns,
                end_ns,
                bytes: 0,
            });
        }
        assert_eq!(TwoLevels::of(&rest), None);
    }

    #[test]
    fn noise_is_taken_for_levels_in_fewer_than_1_percent_and_a_halved_rate_is_found() {
        let mut random = Noise(2544);
        for n in [6, 10, 20, 60] {
            for deviation in [0.02, 0.1, 0.12] {
                let count = |fall: f64, random: &mut Noise| {
                    let trials = (0..2000).filter(|_| {
                        let rate = |at: usize| if 2 * at >= n { fall } else { 1.0 };
                        let rates: Vec<f64> = (0..n)
                            .map(|at| rate(at) * normal(random, deviation))
                            .collect();
                        TwoLevels::of(&timeline(&rates)).is_some()
                    });
                    trials.count()
                };
                let wrong = count(1.0, &mut random);
                assert!(wrong < 20, "n {n}, {deviation}: {wrong} of 2000");
                let found = count(0.45, &mut random);
                assert!(found > 1900, "n {n}, {deviation}: {found} of 2000");
            }
        }
    }
}
