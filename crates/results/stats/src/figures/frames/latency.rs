//! Latency from histograms: percentiles of all repeats pooled, and the spread of the repeats.

use super::Repeats;
use super::by_trial::LatencyByTrial;
use crate::figures::direction::DirectionName;
use crate::figures::estimate::Estimate;
use crate::figures::latency::{Distribution, beyond_ppb};
use crate::figures::repeats::Total;
use crate::figures::series::Series;
use journal::record::{LatencyBucket, LatencyTrial};
use plan::LatencyPath;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Latency under one load, from the intended send time: one way, or there and back by reflection.
///
/// Percentiles are by nearest rank over the histograms' buckets. A bucket counts with its highest
/// value: at most 0.1 % too long with three significant digits. A percentile is `null` if fewer
/// than one frame would exceed it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LoadLatency {
    /// In per cent of the throughput; `null` outside a `latency` procedure.
    pub percent: Option<u8>,
    /// Load.
    pub load_frames_per_s: Estimate,
    /// Frames that were timed, over all repeats.
    pub frames: u64,
    /// Smallest bucket with a frame.
    pub min_ns: u64,
    /// Median of all repeats pooled.
    pub p50_ns: u64,
    /// 90th percentile of all repeats pooled.
    pub p90_ns: Option<u64>,
    /// 99th percentile of all repeats pooled.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile of all repeats pooled.
    pub p99_9_ns: Option<u64>,
    /// Largest.
    pub max_ns: u64,
    /// Latency per direction if both are loaded, from A to B first; empty if only one is loaded,
    /// for round trips, and in older journals.
    pub directions: Vec<DirectionLatency>,
    /// Latency and delay variation with each trial as one value; `null` if delay variation was not
    /// measured.
    pub by_trial: Option<LatencyByTrial>,
    /// The reflector's share if these are round-trip times (RFC 2681); `null` for one-way latency
    /// (RFC 1242 §3.8). The two are never compared.
    pub round_trip: Option<RoundTrip>,
    /// Maximum clock error of these times, in either direction, if the stations are on two hosts
    /// with compared clocks; `null` on one host.
    pub clocks_within_ns: Option<u64>,
    /// 99th percentile less median: the spread of latency towards long ones. It is no jitter of a
    /// standard, which compares successive frames or the shortest latency.
    pub p99_less_p50_ns: Option<u64>,
    /// The median of each repeat.
    pub p50_each_ns: Estimate,
    /// The 99th percentile of each repeat; `null` when one has too few frames.
    pub p99_each_ns: Option<Estimate>,
    /// All repeats pooled: highest value of a bucket and frames in it, rising; for charts.
    #[serde(skip)]
    pub histogram: Vec<(u64, u64)>,
}

/// Latency of one of two loaded directions, over all repeats pooled, as in [`LoadLatency`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DirectionLatency {
    /// The direction.
    pub direction: DirectionName,
    /// Frames that were timed.
    pub frames: u64,
    /// Smallest bucket with a frame.
    pub min_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p99_9_ns: Option<u64>,
    /// Largest.
    pub max_ns: u64,
}

impl DirectionLatency {
    /// Both directions; empty unless every trial has both, and each has a frame.
    fn of(trials: &[Trial<'_>]) -> Vec<Self> {
        // If one trial lacks the directions, their percentiles would be of fewer frames than the
        // pooled ones next to them.
        if trials.iter().any(|(_, trial)| trial.directions.len() != 2) {
            return Vec::new();
        }
        let both = DirectionName::BOTH.iter().enumerate();
        let both = both.map(|(at, direction)| {
            let histograms = trials.iter().map(|(_, trial)| &trial.directions[at]);
            let all = pooled(histograms.flatten());
            Some(Self {
                direction: *direction,
                frames: all.iter().map(|(_, frames)| *frames).total(),
                min_ns: all.first()?.0,
                p50_ns: percentile(&all, 500)?,
                p90_ns: percentile(&all, 900),
                p99_ns: percentile(&all, 990),
                p99_9_ns: percentile(&all, 999),
                max_ns: all.last()?.0,
            })
        });
        both.collect::<Option<_>>().unwrap_or_default()
    }
}

/// Residence times of frames in the reflector, from arrival until they were handed over for
/// sending, by its clock. Round-trip times include them (RFC 8762 §4.3: T3 less T2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RoundTrip {
    /// Median of all repeats pooled.
    pub reflector_p50_ns: u64,
    /// 99th percentile of all repeats pooled; `null` if fewer than one frame would exceed it.
    pub reflector_p99_ns: Option<u64>,
    /// Longest.
    pub reflector_max_ns: u64,
    /// Whether the kernel noted the arrivals; otherwise a wait in the reflector's port comes on
    /// top.
    pub from_arrival: bool,
}

impl RoundTrip {
    /// Pools the reflector's residence times over trials; `None` if no trial was reflected.
    fn of(trials: &[Trial<'_>]) -> Option<Self> {
        let all = trials
            .iter()
            .filter_map(|(_, trial)| trial.round_trip.as_ref());
        let residence = pooled(all.clone().flat_map(|one| &one.residence));
        Some(Self {
            reflector_p50_ns: percentile(&residence, 500)?,
            reflector_p99_ns: percentile(&residence, 990),
            reflector_max_ns: residence.last()?.0,
            from_arrival: all.clone().all(|one| one.from_arrival),
        })
    }
}

impl LoadLatency {
    /// The timed path.
    #[must_use]
    pub const fn path(&self) -> LatencyPath {
        match self.round_trip {
            None => LatencyPath::OneWay,
            Some(_) => LatencyPath::RoundTrip,
        }
    }
}

/// A repeat's number and its histograms.
type Trial<'a> = (u32, &'a LatencyTrial);

/// Returns the latency at each load, in the order of the first repeat. Trials at one share of the
/// throughput are pooled, one-way and round-trip trials separately; outside a `latency` procedure,
/// all trials are.
pub(super) fn of(repeats: &Repeats<'_>) -> Vec<LoadLatency> {
    let trials = repeats.iter().flat_map(|(repeat, found)| {
        let trials = found.latency.iter();
        trials.map(move |trial| {
            // A round trip contains both ways and the reflector, so the two kinds must not be
            // pooled.
            let key = (trial.percent, trial.round_trip.is_some());
            (key, (*repeat, trial))
        })
    });
    let shares = Series::all(trials).into_iter();
    shares
        .filter_map(|share| result(share.key.0, &share.members))
        .collect()
}

/// `None` when a repeat timed no frame.
pub(super) fn result(percent: Option<u8>, trials: &[Trial<'_>]) -> Option<LoadLatency> {
    // The trials of a repeat follow each other.
    let repeats: Vec<&[Trial<'_>]> = trials.chunk_by(|one, next| one.0 == next.0).collect();
    let each = |value: &dyn Fn(&[Trial<'_>]) -> Option<u64>| {
        let own = |trials: &&[Trial<'_>]| {
            let value = value(trials).map(|value| value as f64);
            (trials[0].0, value)
        };
        Estimate::of_all(repeats.iter().map(own))
    };
    let of_all = |trials: &[Trial<'_>]| {
        let histograms = trials.iter().map(|(_, trial)| &trial.histogram);
        pooled(histograms.flatten())
    };
    let all = of_all(trials);
    let (p50_ns, p99_ns) = (percentile(&all, 500)?, percentile(&all, 990));
    let clocks = trials.iter().filter_map(|(_, trial)| trial.clocks);
    // Each trial is one value of RFC 8219, so its percentiles are taken before any pooling.
    let timed = trials.iter().map(|(_, trial)| {
        let own = pooled(&trial.histogram);
        (*trial, percentile(&own, 500), percentile(&own, 999))
    });
    Some(LoadLatency {
        percent,
        load_frames_per_s: each(&|trials| Some(trials[0].1.load))?,
        frames: all.iter().map(|(_, frames)| *frames).total(),
        min_ns: all.first()?.0,
        p50_ns,
        p90_ns: percentile(&all, 900),
        p99_ns,
        p99_9_ns: percentile(&all, 999),
        max_ns: all.last()?.0,
        directions: DirectionLatency::of(trials),
        round_trip: RoundTrip::of(trials),
        clocks_within_ns: clocks.map(|clocks| clocks.within_ns).max(),
        // Both are of one histogram, in which percentiles rise, so the difference is not
        // negative.
        p99_less_p50_ns: p99_ns.map(|p99_ns| p99_ns - p50_ns),
        by_trial: LatencyByTrial::of(&timed.collect::<Vec<_>>()),
        // One value for each repeat: intervals and ranks need independent samples, which the pooled
        // histogram is not.
        p50_each_ns: each(&|trials| percentile(&of_all(trials), 500))?,
        p99_each_ns: each(&|trials| percentile(&of_all(trials), 990)),
        histogram: all,
    })
}

/// Merges histograms into one: rising, without empty buckets.
pub(super) fn pooled<'a>(buckets: impl IntoIterator<Item = &'a LatencyBucket>) -> Vec<(u64, u64)> {
    let buckets = buckets.into_iter();
    merged_histogram(buckets.map(|bucket| (bucket.upto_ns, bucket.frames)))
}

/// Merges histograms of the same resolution, as buckets of a highest value and a frame count, into
/// one: rising, without empty buckets. Merging the parts of a sample gives its histogram.
#[must_use]
pub fn merged_histogram(buckets: impl IntoIterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut sum: BTreeMap<u64, u64> = BTreeMap::new();
    // An empty bucket at either end would be taken for the smallest or the largest value.
    for (upto_ns, frames) in buckets.into_iter().filter(|(_, frames)| *frames > 0) {
        let sum = sum.entry(upto_ns).or_default();
        *sum = sum.saturating_add(frames);
    }
    sum.into_iter().collect()
}

/// Percentile of a merged histogram by nearest rank, `per_mille` below 1000; `None` if fewer than
/// one frame would exceed it.
#[must_use]
pub fn merged_percentile(histogram: &[(u64, u64)], per_mille: u64) -> Option<u64> {
    percentile(histogram, per_mille)
}

/// Percentile of a recorded histogram by nearest rank, `per_mille` below 1000; `None` if fewer than
/// one frame would exceed it.
#[must_use]
pub fn histogram_percentile(histogram: &[LatencyBucket], per_mille: u64) -> Option<u64> {
    percentile(&pooled(histogram), per_mille)
}

/// Nearest rank, `per_mille` below 1000; `None` if fewer than one frame would exceed it. A single
/// frame has a median too.
fn percentile(histogram: &[(u64, u64)], per_mille: u64) -> Option<u64> {
    let found = Distribution::of(histogram.iter().copied())?;
    let n = u128::from(found.n());
    // Without a frame beyond it a percentile would be the maximum under another name.
    if per_mille > 500 && n * u128::from(1000_u64.saturating_sub(per_mille)) < 1000 {
        return None;
    }
    Some(found.at(beyond_ppb(per_mille)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::{FrameResult, Reflection};

    #[test]
    fn two_loaded_directions_have_their_own_percentiles() {
        let both = |there: &[(u64, u64)], back: &[(u64, u64)]| {
            let histogram = |own: &[(u64, u64)]| trial(None, own).histogram;
            LatencyTrial {
                directions: vec![histogram(there), histogram(back)],
                ..trial(None, &[there, back].concat())
            }
        };
        let trials = [
            both(&[(10, 3)], &[(50, 1), (900, 200)]),
            both(&[(20, 4)], &[(50, 3)]),
        ];
        let found = result(None, &[(1, &trials[0]), (2, &trials[1])]).unwrap();
        let [there, back] = &found.directions[..] else {
            panic!("{:?}", found.directions);
        };
        // Three of 10 and four of 20: the fourth of seven is the median. Seven frames have no 99th
        // percentile.
        assert_eq!((there.frames, there.p50_ns, there.max_ns), (7, 20, 20));
        assert_eq!((there.p99_ns, there.direction), (None, DirectionName::AToB));
        assert_eq!(
            (back.min_ns, back.p50_ns, back.p99_ns),
            (50, 900, Some(900))
        );
        assert_eq!(found.frames, there.frames + back.frames);
        // One trial of an older journal, or a direction without received frames.
        let older = trial(None, &[(10, 1)]);
        assert!(
            result(None, &[(1, &trials[0]), (2, &older)])
                .unwrap()
                .directions
                .is_empty()
        );
        let silent = both(&[(10, 3)], &[]);
        assert!(result(None, &[(1, &silent)]).unwrap().directions.is_empty());
    }

    fn trial(percent: Option<u8>, buckets: &[(u64, u64)]) -> LatencyTrial {
        let bucket = |&(upto_ns, frames): &(u64, u64)| LatencyBucket { upto_ns, frames };
        LatencyTrial {
            percent,
            load: 1000,
            frames: buckets.iter().map(|(_, frames)| frames).sum(),
            histogram: buckets.iter().map(bucket).collect(),
            ..LatencyTrial::default()
        }
    }

    #[test]
    fn round_trips_are_pooled_apart_from_latencies_one_way() {
        let one_way = trial(Some(50), &[(10, 100)]);
        let there_and_back = |residence: &[(u64, u64)], from_arrival| LatencyTrial {
            round_trip: Some(Reflection {
                residence: trial(None, residence).histogram,
                from_arrival,
            }),
            ..trial(Some(50), &[(30, 100)])
        };
        let first = there_and_back(&[(3, 100)], true);
        let second = there_and_back(&[(4, 60), (9, 40)], false);
        let results = [one_way, first, second].map(|latency| FrameResult {
            latency: vec![latency],
            ..FrameResult::default()
        });
        let repeats: Vec<(u32, &FrameResult)> = (1..).zip(&results).collect();
        let found = of(&repeats);
        let [one_way, round_trips] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((one_way.p50_ns, one_way.path()), (10, LatencyPath::OneWay));
        assert_eq!(one_way.p50_each_ns.n, 1);
        assert_eq!((round_trips.p50_ns, round_trips.frames), (30, 200));
        assert_eq!(round_trips.path(), LatencyPath::RoundTrip);
        // Of 200 frames the hundredth is one of 3 ns, and the largest 40 took 9 ns.
        let reflector = RoundTrip {
            reflector_p50_ns: 3,
            reflector_p99_ns: Some(9),
            reflector_max_ns: 9,
            from_arrival: false,
        };
        assert_eq!(round_trips.round_trip, Some(reflector));
    }

    #[test]
    fn the_trials_of_a_repeat_are_one_value_of_it() {
        let trials = [[(10, 3), (20, 1)], [(10, 1), (20, 3)], [(30, 4), (40, 1)]];
        let [a, b, c] = trials.map(|buckets| trial(Some(50), &buckets));
        let found = result(Some(50), &[(1, &a), (1, &b), (2, &c)]).unwrap();
        let p50 = found.p50_each_ns;
        // The two trials of repeat 1 are pooled: four of 10 and four of 20.
        assert_eq!((p50.n, p50.at(1), p50.at(2)), (2, Some(10.0), Some(30.0)));
        assert_eq!(found.load_frames_per_s.n, 2);
        assert_eq!((found.frames, found.by_trial), (13, None));
    }

    #[test]
    fn percentiles_agree_with_those_of_the_values_themselves() {
        let values: Vec<u64> = (0..2000).map(|value| value * value % 1009).collect();
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let histogram =
            pooled(&trial(None, &values.iter().map(|v| (*v, 1)).collect::<Vec<_>>()).histogram);
        for per_mille in [500, 900, 990, 999] {
            assert_eq!(
                percentile(&histogram, per_mille),
                crate::percentile(&sorted, per_mille),
                "{per_mille}"
            );
        }
    }

    #[test]
    fn a_percentile_needs_a_frame_beyond_it() {
        assert_eq!(percentile(&[(7, 99)], 990), None);
        assert_eq!(percentile(&[(7, 99), (9, 1)], 990), Some(7));
        assert_eq!(percentile(&[(7, 1)], 500), Some(7));
        assert_eq!(percentile(&[], 500), None);
    }

    #[test]
    fn repeats_are_pooled_by_share_and_also_kept_separate() {
        let first = [(10, 60), (50, 40)];
        let second = [(10, 90), (80, 10), (90, 0)];
        let (a, b) = (trial(Some(50), &first), trial(Some(50), &second));
        let found = result(Some(50), &[(1, &a), (2, &b)]).unwrap();
        assert_eq!(found.histogram, [(10, 150), (50, 40), (80, 10)]);
        assert_eq!((found.frames, found.min_ns, found.max_ns), (200, 10, 80));
        // By rank: 150 frames are within 10, and 190 of 200 within 50.
        assert_eq!((found.p50_ns, found.p90_ns), (10, Some(50)));
        assert_eq!((found.p99_ns, found.p99_less_p50_ns), (Some(80), Some(70)));
        assert_eq!(found.p99_9_ns, None);
        let p99 = found.p99_each_ns.unwrap();
        assert_eq!((p99.at(1), p99.at(2)), (Some(50.0), Some(80.0)));
    }

    #[test]
    fn a_repeat_that_timed_no_frame_has_no_latency() {
        let (a, b) = (trial(None, &[(10, 1)]), trial(None, &[]));
        assert_eq!(result(None, &[(1, &a), (2, &b)]), None);
    }

    /// The buckets of values, as a receiver records them.
    fn recorded(values: &[u64]) -> Vec<LatencyBucket> {
        let mut histogram = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 100_000_000_000, 3);
        let histogram = histogram.as_mut().unwrap();
        values
            .iter()
            .for_each(|value| histogram.saturating_record(*value));
        let steps = histogram.iter_recorded();
        steps
            .map(|step| LatencyBucket {
                upto_ns: histogram.highest_equivalent(step.value_iterated_to()),
                frames: step.count_at_value(),
            })
            .collect()
    }

    proptest::proptest! {
        #[test]
        fn the_merged_histograms_of_parts_are_that_of_the_whole(
            parts in proptest::collection::vec(
                proptest::collection::vec((0_u32..37, 0_u64..1 << 20), 0..60), 0..8,
            )
        ) {
            // Of every size: a bucket is as wide as its place in the range.
            let value = |&(shift, low): &(u32, u64)| (low << shift >> 20).max(1);
            let parts: Vec<Vec<u64>> = parts
                .iter()
                .map(|part| part.iter().map(value).collect())
                .collect();
            let whole = pooled(&recorded(&parts.concat()));
            let each: Vec<Vec<LatencyBucket>> = parts.iter().map(|part| recorded(part)).collect();
            proptest::prop_assert_eq!(&pooled(each.iter().flatten()), &whole);
            proptest::prop_assert_eq!(&pooled(each.iter().rev().flatten()), &whole);
            // So percentiles are within a bucket of the exact percentiles.
            let mut sorted = parts.concat();
            sorted.sort_unstable();
            for per_mille in [500, 900, 990, 999] {
                let Some(found) = percentile(&whole, per_mille) else { continue };
                // Nearest rank, by its definition.
                let rank = (sorted.len() * per_mille as usize).div_ceil(1000);
                let exact = sorted[rank - 1];
                proptest::prop_assert!(exact <= found && found as f64 <= exact as f64 * 1.001);
            }
        }
    }
}
