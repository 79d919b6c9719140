//! Restarts of a DUT under a load: the time without frames, by their arrival, and the proof that
//! each restart took place.

use super::outage::{Bins, ExecutedAction};
use journal::record::{DutEvent, ResetRecord};

impl Bins {
    /// Completes the records of resets. `identities` has the identity before each reset and after
    /// the last; empty if no resets were carried out.
    pub(super) fn complete_resets(
        &self,
        events: &mut [DutEvent],
        done: &[ExecutedAction],
        identities: &[Vec<String>],
    ) {
        // The identity before the next reset is the one after this, so n resets have n + 1
        // readings.
        for (index, (event, pair)) in events.iter_mut().zip(identities.windows(2)).enumerate() {
            let next = done.get(index + 1).map(|next| next.at_ns);
            event.reset = Some(ResetRecord {
                silent_ns: self.silent_ns(done[index].at_ns, next),
                bin_ns: self.width_ns,
                before: pair[0].clone(),
                after: pair[1].clone(),
            });
        }
    }

    /// Returns the longest time without an arrival that ended after `at_ns`, among the frames
    /// intended before `until_ns`, or to the end; `None` if frames stopped and none arrived again.
    fn silent_ns(&self, at_ns: u64, until_ns: Option<u64>) -> Option<u64> {
        let end = until_ns.map_or(self.bins.len(), |until_ns| self.index(until_ns));
        let start = self.index(at_ns).saturating_sub(self.in_flight()).min(end);
        // The last frame before it, which may be long before at a low rate.
        let before = self.bins[..start].iter().rposition(|bin| bin.received > 0);
        let from = before.unwrap_or(start);
        let begins_ns = |index: usize| (self.first + index as u64) * self.width_ns;
        let bins = || (from..end).map(|index| (begins_ns(index), self.bins[index]));
        // By arrival: the slowest of a bin, since frames of a bin arrive in order.
        let arrived = bins().filter(|(_, bin)| bin.received > 0);
        let mut arrived: Vec<u64> = arrived
            .map(|(begins_ns, bin)| begins_ns.saturating_add(bin.latency_ns_max))
            .collect();
        // Frames that a queue held back arrive after frames of later bins.
        arrived.sort_unstable();
        let last = *arrived.last().filter(|last| **last > at_ns)?;
        // A silence that ended before the reset was ordered has another cause.
        let over = arrived.windows(2).filter(|pair| pair[1] > at_ns);
        let longest = over.map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        let intended = bins().filter(|(_, bin)| bin.intended > 0);
        let last_intended = intended.map(|(begins_ns, _)| begins_ns).max().unwrap_or(0);
        // Frames in flight when the next reset began are lost by that one.
        let silent_since = last_intended.saturating_sub(last);
        let is_silent = silent_since > longest.max(self.in_flight() as u64 * self.width_ns);
        (!is_silent).then_some(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::TimeBin;

    const MS: u64 = 1_000_000;
    const FIRST: u64 = 5_000;

    /// Bins of a millisecond with two frames each, all received after a tenth of it but for those
    /// in `lost`.
    fn bins(count: usize, lost: &[std::ops::RangeInclusive<usize>]) -> Bins {
        let bin = |index: usize| TimeBin {
            intended: 2,
            received: if lost.iter().any(|lost| lost.contains(&index)) {
                0
            } else {
                2
            },
            latency_ns_max: MS / 10,
        };
        Bins {
            width_ns: MS,
            first: FIRST,
            bins: (0..count).map(bin).collect(),
            start_ns: FIRST * MS,
            late_ns: 0,
        }
    }

    fn at(ms: u64) -> u64 {
        (FIRST + ms) * MS
    }

    /// Two resets, at 100 ms and at 300 ms.
    fn silences(bins: &Bins) -> [Option<u64>; 2] {
        [
            bins.silent_ns(at(100), Some(at(300))),
            bins.silent_ns(at(300), None),
        ]
    }

    #[test]
    fn the_silence_is_from_the_last_frame_to_the_first_one_after_it() {
        // Frames pass for 2 ms after the order; the second is the longer.
        let both = bins(500, &[102..=139, 301..=380]);
        assert_eq!(silences(&both), [Some(39 * MS), Some(81 * MS)]);
        // Nothing was lost: frames follow each other from bin to bin.
        assert_eq!(silences(&bins(500, &[])), [Some(MS), Some(MS)]);
    }

    #[test]
    fn frames_that_were_held_back_count_by_their_arrival() {
        let mut held = bins(500, &[102..=139]);
        for bin in &mut held.bins[140..150] {
            bin.latency_ns_max = 30 * MS;
        }
        // The last before it at 101.1 ms, the first after it at 150.1 ms.
        assert_eq!(silences(&held)[0], Some(49 * MS));
    }

    #[test]
    fn frames_that_never_come_again_leave_no_silence_with_an_end() {
        assert_eq!(silences(&bins(500, &[101..=499])), [None, None]);
        // The first one ends, the second does not.
        assert_eq!(
            silences(&bins(500, &[101..=149, 301..=499])),
            [Some(50 * MS), None]
        );
        // Frames in flight when the second began are no silence after the first.
        assert_eq!(silences(&bins(500, &[298..=339]))[0], Some(MS));
    }

    #[test]
    fn a_reset_has_the_identities_on_either_side_and_other_events_none() {
        let all = bins(500, &[100..=139, 300..=349]);
        let done = |name, ms| ExecutedAction {
            name,
            at_ns: at(ms),
            took_ns: MS,
        };
        let resets = [done("reset", 100), done("reset", 300)];
        let id = |name: &str| vec![name.to_owned()];
        let mut events = all.events(&resets);
        all.complete_resets(&mut events, &resets, &[id("a"), id("b"), id("b")]);
        let found: Vec<&ResetRecord> = events.iter().filter_map(|it| it.reset.as_ref()).collect();
        assert_eq!(found[0].silent_ns, Some(41 * MS));
        assert!(found[0].is_proven() && !found[1].is_proven());
        assert_eq!((&found[1].before, &found[1].after), (&id("b"), &id("b")));
        let rekeys = [done("rekey", 100)];
        let mut events = all.events(&rekeys);
        all.complete_resets(&mut events, &rekeys, &[]);
        assert_eq!(events[0].reset, None);
    }
}
