//! Delay variation of a stream (RFC 5481): PDV against the stream's minimum delay, and IPDV between
//! consecutive frames of a flow.

use crate::histogram::{buckets, histogram};
use hdrhistogram::Histogram;
use wire::variation::{DelayVariation, Ipdv, Pdv};

/// Differences of consecutive frames of each flow.
///
/// All memory is allocated before the first frame arrives.
#[derive(Debug, Clone)]
pub(crate) struct Differences {
    /// The latest frame of each flow by sequence number.
    latest: Vec<Latest>,
    /// Differences of 0 and more.
    rising: Histogram<u64>,
    /// Amounts of those below 0.
    falling: Histogram<u64>,
    /// Exact extremes.
    min_ns: i64,
    max_ns: i64,
}

#[derive(Debug, Clone, Copy)]
struct Latest {
    /// One more than its sequence number; 0 for no frame yet.
    next: u64,
    delay_ns: u64,
}

impl Differences {
    pub(crate) fn new(flows: u32) -> Self {
        let none = Latest {
            next: 0,
            delay_ns: 0,
        };
        Self {
            latest: vec![none; flows as usize],
            rising: histogram(),
            falling: histogram(),
            min_ns: i64::MAX,
            max_ns: i64::MIN,
        }
    }

    /// Counts a frame that is seen for the first time. `flow` is one of the trial's.
    #[inline]
    pub(crate) fn count(&mut self, flow: u16, sequence: u64, delay_ns: u64) {
        let latest = &mut self.latest[usize::from(flow)];
        let before = *latest;
        if sequence >= before.next {
            *latest = Latest {
                next: sequence + 1,
                delay_ns,
            };
        }
        if before.next == 0 {
            return;
        }
        // Only pairs that are consecutive in the flow (RFC 3393): across a loss there is no pair.
        if sequence == before.next {
            self.record(before.delay_ns, delay_ns);
        } else if sequence + 2 == before.next {
            // The latest frame overtook this one.
            self.record(delay_ns, before.delay_ns);
        }
    }

    #[inline]
    fn record(&mut self, earlier_ns: u64, later_ns: u64) {
        let difference = later_ns.wrapping_sub(earlier_ns).cast_signed();
        self.min_ns = self.min_ns.min(difference);
        self.max_ns = self.max_ns.max(difference);
        if difference < 0 {
            self.falling.saturating_record(difference.unsigned_abs())
        } else {
            self.rising.saturating_record(difference.unsigned_abs())
        }
    }

    /// Adds the counts of another receiver of the same trial, which received other flows.
    pub(crate) fn merge(&mut self, other: &Self) {
        let same = "both histograms have the same bounds";
        self.rising.add(&other.rising).expect(same);
        self.falling.add(&other.falling).expect(same);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    fn ipdv(&self) -> Option<Ipdv> {
        // The largest amount below zero is the smallest difference.
        let falling = buckets(&self.falling).into_iter().rev();
        let falling = falling.map(|(amount, pairs)| (-amount.cast_signed(), pairs));
        let rising = buckets(&self.rising).into_iter();
        let rising = rising.map(|(amount, pairs)| (amount.cast_signed(), pairs));
        let buckets: Vec<(i64, u64)> = falling.chain(rising).collect();
        // A bucket's value may exceed the largest one in it.
        let within = |found: i64| found.clamp(self.min_ns, self.max_ns);
        let at = |per_mille| percentile(&buckets, per_mille).map(within);
        Some(Ipdv {
            pairs: buckets.iter().map(|(_, pairs)| pairs).sum(),
            min_ns: self.min_ns,
            p1_ns: at(10),
            p50_ns: at(500)?,
            p99_ns: at(990),
            max_ns: self.max_ns,
        })
    }

    /// The stream's delay variation, with its frames by delay: (highest value of the bucket in ns,
    /// frames), rising. `None` without frames.
    pub(crate) fn of_stream(&self, delays: &[(u64, u64)]) -> Option<DelayVariation> {
        // Sorted, so that the first is the least (RFC 5481 §4.2 subtracts it).
        let least = delays.first()?.0;
        let at = |per_mille| percentile(delays, per_mille).map(|delay| delay - least);
        Some(DelayVariation {
            pdv: Pdv {
                p50_ns: at(500)?,
                p90_ns: at(900),
                p99_ns: at(990),
                p99_9_ns: at(999),
                max_ns: delays.last()?.0 - least,
            },
            ipdv: self.ipdv(),
        })
    }
}

/// Percentile by nearest rank of (value, count), rising; `None` if less than one value would be
/// beyond it. A single value has a median too.
fn percentile<T: Copy>(buckets: &[(T, u64)], per_mille: u128) -> Option<T> {
    // In 128 bits, as the number of frames is multiplied below.
    let n = buckets
        .iter()
        .map(|(_, count)| u128::from(*count))
        .sum::<u128>();
    let beyond = per_mille.min(1000 - per_mille);
    if n == 0 || (per_mille != 500 && n * beyond < 1000) {
        return None;
    }
    let rank = (n * per_mille).div_ceil(1000).max(1);
    let mut seen = 0;
    let found = buckets.iter().find(|(_, count)| {
        seen += u128::from(*count);
        seen >= rank
    });
    found.map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Each frame's delay by flow and sequence number: the differences of all pairs.
    fn oracle(frames: &[(u16, u64, u64)]) -> Vec<i64> {
        let delays: BTreeMap<(u16, u64), u64> = frames
            .iter()
            .map(|(flow, sequence, delay)| ((*flow, *sequence), *delay))
            .collect();
        let pairs = delays.iter().filter_map(|((flow, sequence), delay)| {
            let before = delays.get(&(*flow, sequence.checked_sub(1)?))?;
            Some(delay.cast_signed() - before.cast_signed())
        });
        let mut differences: Vec<i64> = pairs.collect();
        differences.sort_unstable();
        differences
    }

    fn nearest_rank(sorted: &[i64], per_mille: usize) -> i64 {
        sorted[(sorted.len() * per_mille).div_ceil(1000).max(1) - 1]
    }

    /// Within the resolution of three significant digits.
    fn is_near(found: i64, exact: i64) -> bool {
        (found - exact).abs() <= exact.abs() / 1000 + 1
    }

    #[test]
    fn a_frame_that_was_overtaken_once_has_both_its_pairs() {
        let mut found = Differences::new(1);
        for (sequence, delay) in [(0, 10), (2, 30), (1, 50), (3, 5)] {
            found.count(0, sequence, delay);
        }
        // 0 and 1: the delay of 0 is no longer known; 1 and 2: −20; 2 and 3: −25.
        let ipdv = found.ipdv().unwrap();
        assert_eq!((ipdv.pairs, ipdv.min_ns, ipdv.max_ns), (2, -25, -20));
    }

    #[test]
    fn lost_frames_and_other_flows_make_no_pair() {
        let mut found = Differences::new(2);
        for (flow, sequence, delay) in [(0, 0, 10), (1, 1, 20), (0, 2, 30), (1, 3, 90)] {
            found.count(flow, sequence, delay);
        }
        assert_eq!(found.ipdv(), None);
    }

    #[test]
    fn pdv_is_the_delay_less_the_smallest() {
        let delays = [(100, 500), (160, 490), (900, 9), (2000, 1)];
        let pdv = Differences::new(1).of_stream(&delays).unwrap().pdv;
        assert_eq!((pdv.p50_ns, pdv.p90_ns), (0, Some(60)));
        assert_eq!((pdv.p99_ns, pdv.p99_9_ns), (Some(60), Some(800)));
        assert_eq!(pdv.max_ns, 1900);
        assert_eq!(Differences::new(1).of_stream(&[]), None);
        let few = Differences::new(1).of_stream(&delays[..1]).unwrap().pdv;
        assert_eq!((few.p99_ns, few.p99_9_ns), (Some(0), None));
    }

    proptest! {
        #[test]
        fn in_order_every_pair_counts_whichever_receiver_has_the_flow(
            frames in prop::collection::vec((0u16..3, 0u64..3, 1u64..1 << 36), 1..400),
        ) {
            let (mut one, mut other) = (Differences::new(3), Differences::new(3));
            let mut next = [0; 3];
            let mut sent = Vec::new();
            for (flow, skipped, delay) in frames {
                let sequence = next[usize::from(flow)] + skipped / 2;
                next[usize::from(flow)] = sequence + 1;
                sent.push((flow, sequence, delay));
                let receiver = if flow == 1 { &mut other } else { &mut one };
                receiver.count(flow, sequence, delay);
            }
            one.merge(&other);
            let exact = oracle(&sent);
            let found = one.ipdv();
            prop_assert_eq!(found.is_some(), !exact.is_empty());
            if let Some(found) = found {
                prop_assert_eq!(found.pairs, exact.len() as u64);
                prop_assert_eq!(found.min_ns, exact[0]);
                prop_assert_eq!(found.max_ns, exact[exact.len() - 1]);
                prop_assert!(is_near(found.p50_ns, nearest_rank(&exact, 500)));
                prop_assert_eq!(found.p99_ns.is_some(), exact.len() >= 100);
                prop_assert_eq!(found.p1_ns.is_some(), exact.len() >= 100);
                if let (Some(p1), Some(p99)) = (found.p1_ns, found.p99_ns) {
                    prop_assert!(is_near(p1, nearest_rank(&exact, 10)));
                    prop_assert!(is_near(p99, nearest_rank(&exact, 990)));
                }
            }
        }
    }
}
