//! Latency and delay variation by trial: each trial is one value, and the median over the trials is
//! the result (RFC 8219 §7.2, §7.3).

use crate::figures::repeats::Total;
use journal::record::{DelayVariation, Ipdv, LatencyTrial};
use schemars::JsonSchema;
use serde::Serialize;

/// Latency and delay variation under one load, in nanoseconds, with each trial of each repeat as
/// one value. If both directions are loaded, a trial's delay variation is the larger one of the
/// two.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct LatencyByTrial {
    /// Trials, over all repeats.
    pub trials: u32,
    /// Typical latency (RFC 8219 §7.2): the median of a trial.
    pub typical_ns: TrialSpread,
    /// Worst-case latency (RFC 8219 §7.2): the 99.9th percentile of a trial; `null` if a trial has
    /// fewer than 1000 frames.
    pub worst_case_ns: Option<TrialSpread>,
    /// Median of the packet delay variation (RFC 5481 §4.2): a frame's delay less the smallest of
    /// its trial and direction.
    pub pdv_p50_ns: TrialSpread,
    /// Its 99th percentile; `null` if a trial has fewer than 100 frames.
    pub pdv_p99_ns: Option<TrialSpread>,
    /// Its 99.9th percentile, the PDV of RFC 8219 §7.3.1; `null` if a trial has fewer than 1000
    /// frames.
    pub pdv_p99_9_ns: Option<TrialSpread>,
    /// Its largest.
    pub pdv_max_ns: TrialSpread,
    /// Inter-packet delay variation (RFC 5481 §4.1, RFC 8219 §7.3.2); `null` if a trial has no two
    /// consecutive frames of a flow.
    pub ipdv: Option<IpdvByTrial>,
}

/// Inter-packet delay variation: a frame's delay less the delay of the frame before it in its flow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct IpdvByTrial {
    /// Pairs of frames, over all trials and directions.
    pub pairs: u64,
    /// Smallest of a trial; negative if a frame was faster than the one before it.
    pub min_ns: TrialSpread,
    /// Median of a trial.
    pub p50_ns: TrialSpread,
    /// Largest of a trial.
    pub max_ns: TrialSpread,
}

/// The values of several trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct TrialSpread {
    /// Median.
    pub median: f64,
    /// 1st percentile by nearest rank: the smallest of up to 100 trials.
    pub p1: f64,
    /// 99th percentile by nearest rank: the largest of fewer than 100 trials.
    pub p99: f64,
}

impl TrialSpread {
    /// `None` without trials.
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let n = values.len();
        // Nearest rank, counted from 1: at least the first value.
        let at = |percent: usize| values.get((n * percent).div_ceil(100).max(1) - 1).copied();
        Some(Self {
            p1: at(1)?,
            p99: at(99)?,
            median: (values[(n - 1) / 2] + values[n / 2]) / 2.0,
        })
    }
}

/// A trial with the median and the 99.9th percentile of its latency.
pub(super) type Timed<'a> = (&'a LatencyTrial, Option<u64>, Option<u64>);

impl LatencyByTrial {
    /// `None` if a trial has no delay variation: it was not measured.
    pub(super) fn of(trials: &[Timed<'_>]) -> Option<Self> {
        let spread = |value: &dyn Fn(&Timed<'_>) -> Option<u64>| {
            let values = trials.iter().map(|trial| Some(value(trial)? as f64));
            TrialSpread::of(values.collect::<Option<Vec<_>>>()?)
        };
        // Absent without a direction, or if a direction has no value.
        let pdv = |value: fn(&DelayVariation) -> Option<u64>| {
            spread(&|(trial, ..)| {
                let directions = trial.variation.iter().map(value);
                directions.collect::<Option<Vec<_>>>()?.into_iter().max()
            })
        };
        Some(Self {
            trials: u32::try_from(trials.len()).unwrap_or(u32::MAX),
            typical_ns: spread(&|(_, p50_ns, _)| *p50_ns)?,
            worst_case_ns: spread(&|(.., p99_9_ns)| *p99_9_ns),
            pdv_p50_ns: pdv(|found| Some(found.pdv.p50_ns))?,
            pdv_p99_ns: pdv(|found| found.pdv.p99_ns),
            pdv_p99_9_ns: pdv(|found| found.pdv.p99_9_ns),
            pdv_max_ns: pdv(|found| Some(found.pdv.max_ns))?,
            ipdv: IpdvByTrial::of(trials),
        })
    }
}

impl IpdvByTrial {
    fn of(trials: &[Timed<'_>]) -> Option<Self> {
        let directions = |trial: &LatencyTrial| {
            let found = trial.variation.iter().map(|found| found.ipdv);
            found.collect::<Option<Vec<Ipdv>>>()
        };
        let all = trials.iter().map(|(trial, ..)| directions(trial));
        // A trial without a pair in one direction has no IPDV, and the others alone would be
        // another sample.
        let all = all.collect::<Option<Vec<_>>>()?;
        let spread = |value: fn(&Ipdv) -> i64| {
            let wider = |found: &Vec<Ipdv>| {
                let values = found.iter().map(value);
                // Of two directions the one that varies more counts, in either sense: the smallest
                // IPDV is negative.
                values.max_by_key(|value| value.unsigned_abs())
            };
            let values = all.iter().map(|found| Some(wider(found)? as f64));
            TrialSpread::of(values.collect::<Option<Vec<_>>>()?)
        };
        Some(Self {
            pairs: all.iter().flatten().map(|found| found.pairs).total(),
            min_ns: spread(|found| found.min_ns)?,
            p50_ns: spread(|found| found.p50_ns)?,
            max_ns: spread(|found| found.max_ns)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::Pdv;

    fn direction(p99_9_ns: Option<u64>, max_ns: u64, min_ns: i64) -> DelayVariation {
        DelayVariation {
            pdv: Pdv {
                p50_ns: 1,
                p99_9_ns,
                max_ns,
                ..Pdv::default()
            },
            ipdv: Some(Ipdv {
                pairs: 10,
                min_ns,
                p50_ns: 0,
                max_ns: 5,
                ..Ipdv::default()
            }),
        }
    }

    fn trial(variation: &[DelayVariation]) -> LatencyTrial {
        LatencyTrial {
            variation: variation.to_vec(),
            ..LatencyTrial::default()
        }
    }

    fn spread(median: f64, p1: f64, p99: f64) -> TrialSpread {
        TrialSpread { median, p1, p99 }
    }

    #[test]
    fn the_median_of_the_trials_is_the_result() {
        let trials: Vec<_> = (0..20)
            .map(|n| trial(&[direction(Some(100 + n), 200 + n, -(n as i64))]))
            .collect();
        let timed = |(trial, n): (_, u64)| (trial, Some(10 * n), Some(20 * n));
        let timed: Vec<Timed<'_>> = trials.iter().zip(0..).map(timed).collect();
        let found = LatencyByTrial::of(&timed).unwrap();
        assert_eq!(found.trials, 20);
        // Of 20 trials the 1st and 99th percentile by nearest rank are the smallest and the
        // largest.
        assert_eq!(found.typical_ns, spread(95.0, 0.0, 190.0));
        assert_eq!(found.worst_case_ns, Some(spread(190.0, 0.0, 380.0)));
        assert_eq!(found.pdv_p99_9_ns, Some(spread(109.5, 100.0, 119.0)));
        assert_eq!(found.pdv_p99_ns, None);
        let ipdv = found.ipdv.unwrap();
        assert_eq!((ipdv.pairs, ipdv.min_ns), (200, spread(-9.5, -19.0, 0.0)));
    }

    #[test]
    fn of_two_directions_the_one_that_varies_more_counts() {
        let both = trial(&[direction(Some(7), 9, -3), direction(Some(5), 20, -8)]);
        let found = LatencyByTrial::of(&[(&both, Some(1), None)]).unwrap();
        assert_eq!(found.pdv_p99_9_ns, Some(spread(7.0, 7.0, 7.0)));
        assert_eq!(found.pdv_max_ns, spread(20.0, 20.0, 20.0));
        assert_eq!(found.ipdv.unwrap().min_ns, spread(-8.0, -8.0, -8.0));
        assert_eq!(found.worst_case_ns, None);
    }

    #[test]
    fn what_one_trial_lacks_is_not_made_of_the_others() {
        let full = trial(&[direction(Some(7), 9, -3)]);
        let short = trial(&[direction(None, 9, -3)]);
        let found = LatencyByTrial::of(&[(&full, Some(1), None), (&short, Some(1), None)]);
        assert_eq!(found.unwrap().pdv_p99_9_ns, None);
        let none = trial(&[]);
        assert_eq!(
            LatencyByTrial::of(&[(&full, Some(1), None), (&none, Some(1), None)]),
            None
        );
        assert_eq!(LatencyByTrial::of(&[]), None);
    }
}
