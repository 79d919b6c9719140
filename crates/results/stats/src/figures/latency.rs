//! Round-trip times: percentiles of all trials pooled, and the spread of the repeats.

use crate::figures::estimate::Estimate;
use crate::figures::repeats::{Total, estimate, ratio};
use journal::record::{Latency, LoadedLatency, Measured, Route};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Payload of all classes below which a way was not loaded: the tools exchange some lines.
const CLASS_BYTES_LEAST: f64 = 100_000.0;

/// Round-trip times of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LatencyResult {
    /// Echo requests sent, over all repeats.
    pub requests_sent: u64,
    /// Replies received, over all repeats.
    pub replies_received: u64,
    /// Requests without a reply.
    pub requests_lost: u64,
    /// Lost by sent.
    pub loss_ratio: f64,
    /// All round trips of all repeats pooled.
    pub pooled: Pooled,
    /// The median of each repeat.
    pub p50_ns: Estimate,
    /// The 99th percentile of each repeat; `null` when one has fewer than 100 replies.
    pub p99_ns: Option<Estimate>,
    /// The mean of each repeat.
    pub mean_ns: Estimate,
    /// The same requests under TCP loads; empty if not configured.
    pub loaded: Vec<LoadedResult>,
    /// Hops and MTU of the path, of the first repeat; `null` if not configured.
    pub route: Option<RouteResult>,
    /// All round trips, sorted; for charts.
    #[serde(skip)]
    pub round_trips_ns: Vec<u64>,
}

/// Round trips under one TCP load.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LoadedResult {
    /// Which way the load went: `a-to-b`, `b-to-a` or `duplex`.
    pub load: &'static str,
    /// Requests without a reply, over all repeats.
    pub requests_lost: u64,
    /// All round trips of all repeats pooled.
    pub pooled: Pooled,
    /// Median under load by idle median.
    pub p50_by_idle: f64,
    /// 99th percentile under load divided by the idle one; `null` if one of them is unknown.
    pub p99_by_idle: Option<f64>,
    /// Frames from A's side to B's, and back, in bytes per second, over all repeats.
    pub link_bytes_per_s: [f64; 2],
    /// The loads by class of service, if several were sent in parallel; otherwise empty.
    pub classes: Vec<LoadedClassResult>,
    /// Packets sampled between the gateways under loads of several classes, by the class of the
    /// outermost IP header, over all repeats.
    pub outer_dscp: BTreeMap<String, u64>,
}

/// The load of one class among several in parallel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LoadedClassResult {
    /// The class.
    pub class: &'static str,
    /// Payload from A to B, and back, in bit/s, over all repeats.
    pub payload_bps: [f64; 2],
    /// Its part of the payload of all classes, from A to B and back; `null` if none was sent so.
    pub share: [Option<f64>; 2],
}

/// Hops and MTU of the path from A to B.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RouteResult {
    /// The hops in order.
    pub hops: Vec<HopResult>,
    /// IP MTU of the stations' links.
    pub link_mtu_bytes: u16,
    /// Largest packet with DF set that was answered; `null` if none was.
    pub path_mtu_bytes: Option<u16>,
    /// MTU that a router reported for a packet of the links' MTU; `null` if none did.
    pub reported_mtu_bytes: Option<u16>,
    /// Whether the reported MTU equals the path MTU found. Without a report, the path MTU must
    /// equal the links' MTU.
    pub mtu_agrees: bool,
}

/// One hop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HopResult {
    /// Its address; `null` if it did not answer.
    pub address: Option<String>,
    /// Shortest round trip of its probes; `null` without an answer.
    pub min_ns: Option<u64>,
    /// Increase over the previous hop's shortest round trip, at least 0; `null` if one of them did
    /// not answer.
    pub added_ns: Option<u64>,
}

/// Percentiles by nearest rank: the smallest round trip not exceeded by at least that share of all.
/// A percentile is `null` if fewer than one reply would exceed it (99.9 takes 1000 replies).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Pooled {
    /// Replies.
    pub n: u64,
    /// Smallest.
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
    /// Arithmetic mean.
    pub mean_ns: f64,
}

/// Times and the count of each: the input of percentile charts.
///
/// One function computes its percentiles and the tables' percentiles, by nearest rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// Times, rising, each with the number of times up to and including it.
    upto: Vec<(u64, u64)>,
}

impl Distribution {
    /// Of rising times with their counts; `None` without any.
    #[must_use]
    pub fn of(rising: impl IntoIterator<Item = (u64, u64)>) -> Option<Self> {
        let mut n = 0_u64;
        let upto = rising.into_iter().map(|(time, count)| {
            n = n.saturating_add(count);
            (time, n)
        });
        let upto: Vec<(u64, u64)> = upto.collect();
        (n > 0).then_some(Self { upto })
    }

    /// Number of times.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.upto.last().map_or(0, |(_, n)| *n)
    }

    /// The time that a share of at most `beyond_ppb` (per 10⁹) of all exceeds: 500 million for the
    /// median, 0 for the longest.
    #[must_use]
    pub fn at(&self, beyond_ppb: u64) -> u64 {
        let rank = rank(self.n(), beyond_ppb);
        let place = self.upto.partition_point(|(_, upto)| *upto < rank);
        self.upto[place.min(self.upto.len() - 1)].0
    }
}

/// Nearest rank of a percentile among `n` values, counted from 1: the smallest rank that at most a
/// share `beyond_ppb` (per 10⁹) of the values exceeds.
pub(crate) fn rank(n: u64, beyond_ppb: u64) -> u64 {
    // In integers: the product of a share in floats and a count may fall just below a whole rank.
    let beyond = u128::from(n) * u128::from(beyond_ppb) / 1_000_000_000;
    // No more than `n`: the share is at most 1.
    (n - u64::try_from(beyond).unwrap_or(n).min(n)).max(1)
}

/// The share beyond a percentile, per 10⁹.
pub(crate) const fn beyond_ppb(per_mille: u64) -> u64 {
    1_000_000 * 1000_u64.saturating_sub(per_mille)
}

/// Nearest-rank percentile of sorted values, `per_mille` from 0 to 1000; `None` if fewer than one
/// value would exceed it.
#[must_use]
pub fn percentile(sorted: &[u64], per_mille: u64) -> Option<u64> {
    let n = sorted.len() as u64;
    let beyond = 1000_u64.checked_sub(per_mille)?;
    if n == 0 || n * beyond < 1000 {
        return None;
    }
    let rank = rank(n, beyond_ppb(per_mille));
    sorted.get(usize::try_from(rank - 1).ok()?).copied()
}

impl LatencyResult {
    /// Sums up the repeats, each with its number; `None` if one had no reply at all, or without
    /// repeats.
    pub(crate) fn of(measured: &[(u32, &Measured)]) -> Option<Self> {
        let trials: Vec<(u32, &Latency)> = measured
            .iter()
            .filter_map(|&(repeat, measured)| Some((repeat, measured.latency()?)))
            .collect();
        let requests_sent = trials.iter().map(|(_, latency)| latency.sent).total();
        let replies_received = trials.iter().map(|(_, latency)| latency.received).total();
        let sorted: Vec<(u32, Vec<u64>)> = trials
            .iter()
            .map(|(repeat, latency)| (*repeat, sorted(latency.round_trips_ns.clone())))
            .collect();
        let each = |of: fn(&[u64]) -> Option<f64>| estimate(&sorted, |times| of(times));
        let round_trips_ns = self::sorted(
            sorted
                .iter()
                .flat_map(|(_, times)| times.iter().copied())
                .collect(),
        );
        let requests_lost = requests_sent.saturating_sub(replies_received);
        let pooled = Pooled::of(&round_trips_ns)?;
        let latencies: Vec<&Latency> = trials.iter().map(|(_, latency)| *latency).collect();
        Some(Self {
            requests_sent,
            replies_received,
            requests_lost,
            loss_ratio: if requests_sent == 0 {
                0.0
            } else {
                requests_lost as f64 / requests_sent as f64
            },
            p50_ns: each(|times| median(times).map(|value| value as f64))?,
            p99_ns: each(|times| percentile(times, 990).map(|value| value as f64)),
            mean_ns: each(mean)?,
            loaded: LoadedResult::of(&latencies, &pooled),
            route: latencies
                .first()
                .and_then(|latency| latency.route.as_ref())
                .map(RouteResult::of),
            pooled,
            round_trips_ns,
        })
    }
}

impl LoadedResult {
    /// One for each load that all repeats have.
    fn of(latencies: &[&Latency], idle: &Pooled) -> Vec<Self> {
        let first = latencies.first().map_or(&[][..], |latency| &latency.loaded);
        let of = |(at, one): (usize, &LoadedLatency)| {
            // Loads pair by place. If one repeat lacks a load, its pooled percentiles would be of
            // other repeats than the idle ones.
            let all: Option<Vec<&LoadedLatency>> = latencies
                .iter()
                .map(|latency| latency.loaded.get(at))
                .collect();
            let all = all?;
            let times = all
                .iter()
                .flat_map(|one| one.round_trips_ns.iter().copied());
            let pooled = Pooled::of(&sorted(times.collect()))?;
            // Repeats may last different times, so their bytes are divided by all of it.
            let seconds: f64 = all.iter().map(|one| one.duration_ns as f64 / 1e9).sum();
            let per_s = |way: usize| {
                let bytes = all.iter().map(|one| one.link_bytes[way]).total();
                bytes as f64 / seconds.max(f64::MIN_POSITIVE)
            };
            Some(Self {
                load: one.direction.name(),
                requests_lost: all
                    .iter()
                    .map(|one| one.sent.saturating_sub(one.received))
                    .total(),
                p50_by_idle: ratio(pooled.p50_ns, idle.p50_ns)?,
                p99_by_idle: pooled
                    .p99_ns
                    .zip(idle.p99_ns)
                    .and_then(|(loaded, idle)| ratio(loaded, idle)),
                link_bytes_per_s: [per_s(0), per_s(1)],
                classes: LoadedClassResult::of(&all, seconds),
                outer_dscp: outer_dscp(&all),
                pooled,
            })
        };
        first.iter().enumerate().filter_map(of).collect()
    }
}

fn outer_dscp(all: &[&LoadedLatency]) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::<String, u64>::new();
    for (class, packets) in all.iter().flat_map(|one| &one.outer_dscp) {
        let sum = sum.entry(class.clone()).or_default();
        *sum = sum.saturating_add(*packets);
    }
    sum
}

impl LoadedClassResult {
    /// One for each class that all repeats have.
    fn of(all: &[&LoadedLatency], seconds: f64) -> Vec<Self> {
        let first = all.first().map_or(&[][..], |one| &one.classes);
        let bytes = |at: usize, way: usize| {
            let each = all
                .iter()
                .filter_map(|one| Some(one.classes.get(at)?.bytes[way]));
            each.total() as f64
        };
        let sums = [0, 1].map(|way| (0..first.len()).map(|at| bytes(at, way)).sum::<f64>());
        let shares_loaded = sums.map(|sum| sum >= CLASS_BYTES_LEAST);
        let classes = first.iter().enumerate().map(|(at, one)| Self {
            class: one.class.name(),
            payload_bps: [0, 1].map(|way| bytes(at, way) * 8.0 / seconds.max(f64::MIN_POSITIVE)),
            share: [0, 1].map(|way| shares_loaded[way].then(|| bytes(at, way) / sums[way])),
        });
        classes.collect()
    }
}

impl RouteResult {
    fn of(route: &Route) -> Self {
        let mut before = Some(0);
        let hops = route.hops.iter().map(|hop| {
            let min_ns = hop.round_trips_ns.iter().min().copied();
            let added_ns = min_ns
                .zip(before)
                .map(|(min, before)| min.saturating_sub(before));
            // A hop that did not answer leaves the next one without an increase, and not with the
            // sum of two hops.
            before = min_ns;
            let words: Vec<&str> = hop
                .address
                .iter()
                .chain(&hop.others)
                .map(String::as_str)
                .collect();
            HopResult {
                address: (!words.is_empty()).then(|| words.join(", ")),
                min_ns,
                added_ns,
            }
        });
        // Without a report, senders go by the links' MTU: then it must be carried, or large packets
        // vanish (RFC 2923 §2.1).
        let expected = route.reported_mtu_bytes.unwrap_or(route.link_mtu_bytes);
        Self {
            hops: hops.collect(),
            link_mtu_bytes: route.link_mtu_bytes,
            path_mtu_bytes: route.path_mtu_bytes,
            reported_mtu_bytes: route.reported_mtu_bytes,
            mtu_agrees: route.path_mtu_bytes == Some(expected),
        }
    }
}

impl Pooled {
    fn of(sorted: &[u64]) -> Option<Self> {
        Some(Self {
            n: sorted.len() as u64,
            min_ns: *sorted.first()?,
            p50_ns: median(sorted)?,
            p90_ns: percentile(sorted, 900),
            p99_ns: percentile(sorted, 990),
            p99_9_ns: percentile(sorted, 999),
            max_ns: *sorted.last()?,
            mean_ns: mean(sorted)?,
        })
    }
}

fn sorted(mut times: Vec<u64>) -> Vec<u64> {
    times.sort_unstable();
    times
}

/// By nearest rank, also of a single value.
fn median(sorted: &[u64]) -> Option<u64> {
    let rank = rank(sorted.len() as u64, beyond_ppb(500));
    sorted.get(usize::try_from(rank - 1).ok()?).copied()
}

fn mean(times: &[u64]) -> Option<f64> {
    let sum: u128 = times.iter().map(|&time| u128::from(time)).sum();
    (!times.is_empty()).then(|| sum as f64 / times.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(lost: u64, times: impl IntoIterator<Item = u64>) -> Measured {
        let round_trips_ns: Vec<u64> = times.into_iter().collect();
        let received = round_trips_ns.len() as u64;
        let latency = Latency {
            sent: received + lost,
            received,
            round_trips_ns,
            ..Latency::default()
        };
        Measured {
            figures: journal::record::Figures::Latency(latency),
            ..Measured::default()
        }
    }

    #[test]
    fn percentiles_are_nearest_rank_and_need_values_beyond_them() {
        let thousand: Vec<u64> = (1..=1000).collect();
        assert_eq!(percentile(&thousand, 500), Some(500));
        assert_eq!(percentile(&thousand, 900), Some(900));
        assert_eq!(percentile(&thousand, 999), Some(999));
        assert_eq!(percentile(&thousand[..999], 999), None);
        assert_eq!(percentile(&thousand[..100], 990), Some(99));
        assert_eq!(percentile(&thousand[..99], 990), None);
        assert_eq!(percentile(&thousand, 0), Some(1));
        assert_eq!(percentile(&[], 500), None);
        assert_eq!(percentile(&[5], 500), None);
        assert_eq!(percentile(&[5], 1001), None);
    }

    #[test]
    fn a_charts_percentiles_are_those_of_the_tables() {
        for n in [1, 2, 7, 10, 99, 100, 300, 999, 1000, 1500] {
            // Squares modulo a prime are in no order and have ties.
            let mut times: Vec<u64> = (0..n).map(|time| time * time % 1009).collect();
            times.sort_unstable();
            let found = Distribution::of(times.iter().map(|time| (*time, 1))).unwrap();
            let pooled = Pooled::of(&times).unwrap();
            assert_eq!((found.n(), found.at(500_000_000)), (n, pooled.p50_ns));
            assert_eq!(
                (found.at(0), found.at(1_000_000_000)),
                (pooled.max_ns, pooled.min_ns)
            );
            for (table, beyond_ppb) in [
                (pooled.p90_ns, 100_000_000),
                (pooled.p99_ns, 10_000_000),
                (pooled.p99_9_ns, 1_000_000),
            ] {
                assert!(
                    table.is_none_or(|table| table == found.at(beyond_ppb)),
                    "{n}"
                );
            }
        }
        assert_eq!(Distribution::of([]), None);
        let buckets = Distribution::of([(10, 150), (50, 40), (80, 10)]).unwrap();
        assert_eq!((buckets.at(500_000_000), buckets.at(100_000_000)), (10, 50));
    }

    #[test]
    fn repeats_are_pooled_and_also_kept_separate() {
        let (first, second) = (latency(1, [30, 10, 20]), latency(0, [90, 70, 80]));
        let found = LatencyResult::of(&[(1, &first), (2, &second)]).unwrap();
        assert_eq!(found.round_trips_ns, [10, 20, 30, 70, 80, 90]);
        assert_eq!(
            (
                found.pooled.p50_ns,
                found.pooled.min_ns,
                found.pooled.max_ns
            ),
            (30, 10, 90)
        );
        assert_eq!((found.requests_sent, found.requests_lost), (7, 1));
        assert_eq!(
            (found.p50_ns.at(1), found.p50_ns.at(2)),
            (Some(20.0), Some(80.0))
        );
        assert_eq!((found.pooled.p90_ns, found.p99_ns), (None, None));
    }

    #[test]
    fn a_repeat_without_a_reply_has_no_latency() {
        assert_eq!(LatencyResult::of(&[(1, &latency(3, []))]), None);
        assert_eq!(LatencyResult::of(&[]), None);
    }
}
