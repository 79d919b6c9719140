//! Frames by intended send time, which shows an outage.

use traffic_spec::TimeBin;

/// Counts of a receiver by intended time, on a grid common to all receivers and senders of a host:
/// bin n begins at n widths on CLOCK_MONOTONIC.
///
/// All memory is allocated before the first frame arrives.
#[derive(Debug, Clone)]
pub(crate) struct Bins {
    width_ns: u64,
    /// Bin number of `slots[0]`; set by the first frame.
    first: u64,
    /// Twice the trial's number of bins: the first frame to arrive may be any of the trial, so
    /// there is room for the whole trial on either side. Untouched memory costs nothing.
    slots: Vec<TimeBin>,
    is_begun: bool,
}

impl Bins {
    /// `None` for zero width.
    pub(crate) fn new(wanted: traffic_spec::Bins) -> Option<Self> {
        let most = usize::try_from(wanted.most).ok()?;
        (wanted.width_ns > 0).then(|| Self {
            width_ns: wanted.width_ns,
            first: 0,
            slots: vec![TimeBin::default(); 2 * most + 1],
            is_begun: false,
        })
    }

    /// Counts a frame. A time outside the trial's range counts in the nearest bin, so that no frame
    /// is lost here.
    #[inline]
    pub(crate) fn count(&mut self, intended_ns: u64, latency_ns: u64) {
        let bin = intended_ns / self.width_ns;
        if !self.is_begun {
            self.is_begun = true;
            // In the middle, as later frames may be of earlier bins.
            self.first = bin.saturating_sub((self.slots.len() / 2) as u64);
        }
        let last = self.slots.len() - 1;
        let index = usize::try_from(bin.saturating_sub(self.first)).map_or(last, |i| i.min(last));
        let slot = &mut self.slots[index];
        slot.frames += 1;
        slot.latency_ns_max = slot.latency_ns_max.max(latency_ns);
    }

    /// The number of the first bin with a frame, and the bins from there to the last one with a
    /// frame.
    pub(crate) fn counted(&self) -> (u64, &[TimeBin]) {
        let holds = |bin: &TimeBin| bin.frames > 0;
        match (
            self.slots.iter().position(holds),
            self.slots.iter().rposition(holds),
        ) {
            (Some(from), Some(to)) => (self.first + from as u64, &self.slots[from..=to]),
            _ => (0, &[]),
        }
    }

    /// Adds the counts of another receiver of the same trial, which has the same grid.
    pub(crate) fn merge(&mut self, other: &Self) {
        let (theirs, counted) = other.counted();
        // A receiver without frames has no grid.
        if counted.is_empty() {
            return;
        }
        if !self.is_begun {
            *self = other.clone();
            return;
        }
        let last = self.slots.len() - 1;
        for (bin, more) in (theirs..).zip(counted) {
            let index =
                usize::try_from(bin.saturating_sub(self.first)).map_or(last, |i| i.min(last));
            let slot = &mut self.slots[index];
            slot.frames += more.frames;
            slot.latency_ns_max = slot.latency_ns_max.max(more.latency_ns_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const MOST: u32 = 20;

    fn bins(width_ns: u64) -> Bins {
        Bins::new(traffic_spec::Bins {
            width_ns,
            most: MOST,
        })
        .unwrap()
    }

    /// The non-empty bins by number.
    fn filled(bins: &Bins) -> BTreeMap<u64, TimeBin> {
        let (first, counted) = bins.counted();
        let numbered = (first..).zip(counted.iter().copied());
        numbered.filter(|(_, bin)| bin.frames > 0).collect()
    }

    #[test]
    fn nothing_counted_is_no_bin() {
        assert_eq!(bins(10).counted(), (0, &[][..]));
        assert!(
            Bins::new(traffic_spec::Bins {
                width_ns: 0,
                most: 5
            })
            .is_none()
        );
    }

    #[test]
    fn a_time_that_no_frame_of_the_trial_has_counts_at_the_end() {
        let mut bins = bins(10);
        bins.count(10_000, 1);
        bins.count(0, 2);
        bins.count(u64::MAX, 3);
        let (first, counted) = bins.counted();
        assert_eq!((first, counted.len()), (980, 41));
        assert_eq!(counted.iter().map(|bin| bin.frames).sum::<u64>(), 3);
        assert_eq!(counted[40].latency_ns_max, 3);
    }

    proptest! {
        /// Independent of the order of arrival and of the distribution over two receivers.
        #[test]
        fn every_frame_is_in_the_bin_of_its_time(
            width_ns in 1u64..50,
            start_ns in 0u64..1 << 40,
            frames in prop::collection::vec((0u64..1000, 1u64..100, any::<bool>()), 0..60),
        ) {
            let (mut one, mut other) = (bins(width_ns), bins(width_ns));
            let mut expected = BTreeMap::<u64, TimeBin>::new();
            for (offset, latency_ns, is_one) in frames {
                let time_ns = start_ns + offset % (width_ns * u64::from(MOST - 1));
                let receiver = if is_one { &mut one } else { &mut other };
                receiver.count(time_ns, latency_ns);
                let bin = expected.entry(time_ns / width_ns).or_default();
                bin.frames += 1;
                bin.latency_ns_max = bin.latency_ns_max.max(latency_ns);
            }
            one.merge(&other);
            prop_assert_eq!(filled(&one), expected);
        }
    }
}
