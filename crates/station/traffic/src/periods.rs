//! Latency by intended send time: a small histogram for each interval, for percentiles over hours.

/// Buckets per octave (log2): latencies are resolved to 3 %.
const SUB_BITS: u32 = 5;
const SUB: u64 = 1 << SUB_BITS;
/// Longest latency resolved, in octaves: 137 s.
const OCTAVES: u32 = 37;
const BUCKETS: usize = ((OCTAVES - SUB_BITS + 1) << SUB_BITS) as usize;

/// Histograms of a receiver by intended time, on a grid common to all receivers of a host: period n
/// begins at n widths on CLOCK_MONOTONIC.
///
/// All memory is allocated before the first frame arrives.
#[derive(Debug, Clone)]
pub(crate) struct Periods {
    width_ns: u64,
    /// Number of the first period; set by the first frame.
    first: u64,
    /// [`BUCKETS`] for each of twice the trial's number of periods: the first frame to arrive may
    /// be any of the trial. Untouched memory costs nothing.
    counts: Vec<u64>,
    is_begun: bool,
}

impl Periods {
    /// `None` for zero width.
    pub(crate) fn new(wanted: traffic_spec::Bins) -> Option<Self> {
        let most = usize::try_from(wanted.most).ok()?;
        (wanted.width_ns > 0).then(|| Self {
            width_ns: wanted.width_ns,
            first: 0,
            counts: vec![0; (2 * most + 1) * BUCKETS],
            is_begun: false,
        })
    }

    /// Counts a frame. A time outside the trial's range counts in the nearest period.
    #[inline]
    pub(crate) fn count(&mut self, intended_ns: u64, latency_ns: u64) {
        let number = intended_ns / self.width_ns;
        if !self.is_begun {
            self.is_begun = true;
            self.first = number.saturating_sub((self.slots() / 2) as u64);
        }
        // One block for each period: frames that follow one another stay on a few cache lines.
        let at = self.place(number) * BUCKETS + bucket(latency_ns);
        self.counts[at] += 1;
    }

    fn slots(&self) -> usize {
        self.counts.len() / BUCKETS
    }

    fn place(&self, number: u64) -> usize {
        let last = self.slots() - 1;
        usize::try_from(number.saturating_sub(self.first)).map_or(last, |place| place.min(last))
    }

    fn period(&self, place: usize) -> &[u64] {
        &self.counts[place * BUCKETS..][..BUCKETS]
    }

    /// Adds the counts of another receiver of the same trial, which has the same grid.
    pub(crate) fn merge(&mut self, other: &Self) {
        if !other.is_begun {
            return;
        }
        if !self.is_begun {
            self.clone_from(other);
            return;
        }
        for from in 0..other.slots() {
            let more = other.period(from);
            // Most periods of a receiver are empty; to add them would touch memory that was never
            // used.
            if more.iter().all(|count| *count == 0) {
                continue;
            }
            let place = self.place(other.first + from as u64);
            let own = &mut self.counts[place * BUCKETS..][..BUCKETS];
            for (sum, more) in own.iter_mut().zip(more) {
                *sum += more;
            }
        }
    }

    /// The number of the first period with a frame, and the periods from there to the last one with
    /// a frame: each as the highest values of its buckets and the frames in them, rising.
    pub(crate) fn counted(&self) -> (u64, Vec<Vec<(u64, u64)>>) {
        let holds = |place: &usize| self.period(*place).iter().any(|count| *count > 0);
        let first = (0..self.slots()).find(holds);
        let last = (0..self.slots()).rfind(holds);
        let Some((first, last)) = first.zip(last) else {
            return (0, Vec::new());
        };
        let of = |place: usize| {
            let counts = self.period(place).iter().enumerate();
            let filled = counts.filter(|(_, count)| **count > 0);
            filled
                .map(|(bucket, count)| (highest(bucket), *count))
                .collect()
        };
        // Empty periods between filled ones stay, so that a position gives the time.
        (self.first + first as u64, (first..=last).map(of).collect())
    }
}

/// The bucket of a value.
#[inline]
fn bucket(ns: u64) -> usize {
    let ns = ns.min((1 << OCTAVES) - 1);
    if ns < SUB {
        return ns as usize;
    }
    // As an HDR histogram: an octave is divided evenly, so the error is a share of the value.
    let shift = ns.ilog2() - SUB_BITS;
    (u64::from(shift + 1) * SUB + (ns >> shift) % SUB) as usize
}

/// The highest value of a bucket.
fn highest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    match bucket / SUB {
        0 => bucket,
        octave => ((SUB + bucket % SUB + 1) << (octave - 1)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const MOST: u32 = 8;

    fn periods(width_ns: u64) -> Periods {
        let most = MOST;
        Periods::new(traffic_spec::Bins { width_ns, most }).unwrap()
    }

    #[test]
    fn buckets_lie_side_by_side_and_are_narrow() {
        let mut upto = 0;
        for index in 1..BUCKETS {
            let (low, high) = (highest(index - 1) + 1, highest(index));
            assert!(low <= high && bucket(low) == index && bucket(high) == index);
            assert!((high - low) * SUB <= low, "{low} to {high}");
            upto = high;
        }
        assert_eq!(upto, (1 << OCTAVES) - 1);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert!(
            Periods::new(traffic_spec::Bins {
                width_ns: 0,
                most: 1
            })
            .is_none()
        );
    }

    proptest! {
        /// Independent of the distribution over two receivers.
        #[test]
        fn every_frame_is_in_the_period_of_its_time(
            width_ns in 1u64..50,
            start_ns in 0u64..1 << 40,
            frames in prop::collection::vec((0u64..1000, 1u64..1 << 36, any::<bool>()), 0..60),
        ) {
            let (mut one, mut other) = (periods(width_ns), periods(width_ns));
            let mut expected = BTreeMap::<(u64, u64), u64>::new();
            for (offset, latency_ns, is_one) in frames {
                let time_ns = start_ns + offset % (width_ns * u64::from(MOST - 1));
                let receiver = if is_one { &mut one } else { &mut other };
                receiver.count(time_ns, latency_ns);
                let place = (time_ns / width_ns, highest(bucket(latency_ns)));
                *expected.entry(place).or_default() += 1;
            }
            one.merge(&other);
            let (first, counted) = one.counted();
            let found = (first..).zip(&counted).flat_map(|(number, buckets)| {
                buckets.iter().map(move |(upto_ns, frames)| ((number, *upto_ns), *frames))
            });
            prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
        }
    }
}
