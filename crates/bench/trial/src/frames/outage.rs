//! Effects of actions on a DUT, from frames by their intended time.
//!
//! Bins are on one grid of CLOCK_MONOTONIC, which senders, receivers and this program share. An
//! action's time is known to the nanosecond, the fate of frames to the bin.

use journal::record::{DutEvent, TimeBin, Timeline};
use std::ops::Range;
use traffic_spec::{Received, Sent};

/// Width of the finest bins.
const BIN_NS: u64 = 1_000_000;
/// Maximum number of bins in a trial; a longer trial has wider bins.
const BINS_MAX: u64 = 60_000;
/// Maximum number of bins in a timeline.
const TIMELINE_BINS_MAX: usize = 500;
/// Frames that left this long before an event may be lost by it: they were in flight.
const IN_FLIGHT_NS: u64 = 20_000_000;

/// Returns the bins for a load of this duration.
pub(super) fn bins_for(duration_ns: u64) -> traffic_spec::Bins {
    let width_ns = BIN_NS * duration_ns.div_ceil(BIN_NS * BINS_MAX).max(1);
    // Two more: a schedule may end a burst late, and it begins within a bin.
    let most = (duration_ns / width_ns) as u32 + 2;
    traffic_spec::Bins { width_ns, most }
}

/// Frames sent and received in a trial, by intended time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bins {
    /// Width of each, in nanoseconds.
    pub width_ns: u64,
    /// Number of the first bin: it begins at this multiple of the width on the clock.
    pub first: u64,
    /// The bins, in order.
    pub bins: Vec<TimeBin>,
    /// The first frame's intended time on the clock.
    pub start_ns: u64,
    /// Largest difference between a frame's departure and its intended time.
    pub late_ns: u64,
}

/// An action on a DUT that was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutedAction {
    /// As in [`DutEvent::name`].
    pub name: &'static str,
    /// When it began, on the clock of [`Bins`].
    pub at_ns: u64,
    /// Its duration.
    pub took_ns: u64,
}

impl Bins {
    /// The intended frames of one way's sender, by bin from `first` on.
    pub(super) fn intended(width_ns: u64, sent: &Sent, (first, counts): (u64, Vec<u64>)) -> Self {
        let bins = counts.into_iter().map(|intended| TimeBin {
            intended,
            ..TimeBin::default()
        });
        Self {
            width_ns,
            first,
            bins: bins.collect(),
            start_ns: sent.start_ns,
            late_ns: sent.late_ns_max,
        }
    }

    /// Adds the received frames.
    pub(super) fn receive(&mut self, received: &Received) {
        for (number, counted) in (received.first_bin..).zip(&received.bins) {
            let bin = number
                .checked_sub(self.first)
                .and_then(|index| self.bins.get_mut(usize::try_from(index).ok()?));
            // Frames intended at another time are not of this trial.
            if let Some(bin) = bin {
                bin.received += counted.frames;
                bin.latency_ns_max = bin.latency_ns_max.max(counted.latency_ns_max);
            }
        }
    }

    /// Adds the other way's bins, which have the same width.
    pub(super) fn add(&mut self, other: &Self) {
        let first = self.first.min(other.first);
        let end = |bins: &Self| bins.first + bins.bins.len() as u64;
        let last = end(self).max(end(other));
        // The ways begin a few bins apart, so the sum covers both.
        let mut sum = vec![TimeBin::default(); (last - first) as usize];
        for bins in [&*self, other] {
            let from = (bins.first - first) as usize;
            for (sum, bin) in sum[from..].iter_mut().zip(&bins.bins) {
                sum.intended += bin.intended;
                sum.received += bin.received;
                sum.latency_ns_max = sum.latency_ns_max.max(bin.latency_ns_max);
            }
        }
        self.first = first;
        self.bins = sum;
        self.start_ns = self.start_ns.min(other.start_ns);
        self.late_ns = self.late_ns.max(other.late_ns);
    }

    /// Returns the timeline, in at most 500 bins.
    #[must_use]
    pub fn timeline(&self) -> Timeline {
        let of = self.bins.len().div_ceil(TIMELINE_BINS_MAX).max(1);
        let bins = self.bins.chunks(of).map(|bins| TimeBin {
            intended: bins.iter().map(|bin| bin.intended).sum(),
            received: bins.iter().map(|bin| bin.received).sum(),
            latency_ns_max: bins.iter().map(|bin| bin.latency_ns_max).max().unwrap_or(0),
        });
        Timeline {
            bin_ns: self.width_ns * of as u64,
            bins: bins.collect(),
        }
    }

    /// Returns the effect of each action, in the order carried out.
    #[must_use]
    pub fn events(&self, done: &[ExecutedAction]) -> Vec<DutEvent> {
        let mut begins = Vec::with_capacity(done.len());
        let mut free = 0;
        for done in done {
            let own = self.index(done.at_ns);
            begins.push(self.begin(free, own));
            // No event takes a loss from before the bin that the previous event began in.
            free = own + 1;
        }
        let ends = begins.iter().skip(1).copied().chain([self.bins.len()]);
        let events = done.iter().zip(begins.iter().zip(ends));
        events
            .map(|(done, (&begin, end))| self.event(done, begin..end))
            .collect()
    }

    /// Returns the first bin of an event in bin `own`, not before `free`. A loss just before an
    /// event belongs to it if the bins show that it began then: all earlier frames were received.
    fn begin(&self, free: usize, own: usize) -> usize {
        let earliest = own.saturating_sub(self.in_flight()).max(free);
        let is_whole = |bin: &TimeBin| bin.intended > 0 && !has_lost(bin);
        // Without a whole bin in that time, frames were lost before too, and the event begins in
        // the bin of its time.
        let whole = (earliest..own).rfind(|index| is_whole(&self.bins[*index]));
        whole.map_or(own, |index| index + 1)
    }

    /// Returns the number of bins before an event with frames that it may lose.
    pub(super) fn in_flight(&self) -> usize {
        let shortly_ns = IN_FLIGHT_NS.saturating_add(self.late_ns);
        let shortly = usize::try_from(shortly_ns.div_ceil(self.width_ns.max(1)));
        shortly.unwrap_or(usize::MAX)
    }

    /// Returns the index of a time's bin, or of the nearest end.
    pub(super) fn index(&self, at_ns: u64) -> usize {
        let number = at_ns / self.width_ns.max(1);
        let index = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
        index.min(self.bins.len())
    }

    /// Evaluates an event over its bins. They include the bin of its beginning, unless the next
    /// event began there too.
    fn event(&self, done: &ExecutedAction, own: Range<usize>) -> DutEvent {
        let begin = own.start;
        let bins = &self.bins[own];
        // From the event to the beginning of a bin; 0 if that is earlier.
        let since = |index: usize| {
            let ns = (self.first + (begin + index) as u64) * self.width_ns;
            ns.saturating_sub(done.at_ns)
        };
        let last_loss = bins.iter().rposition(has_lost);
        let last_sent = bins.iter().rposition(|bin| bin.intended > 0);
        let came = |(index, bin): &(usize, &TimeBin)| {
            let is_after = (self.first + (begin + index) as u64) * self.width_ns >= done.at_ns;
            is_after && bin.received > 0
        };
        // From the bin of its beginning: earlier bins count for lost frames only.
        let over_ns = done.at_ns + done.took_ns.saturating_add(DutEvent::AFTER_NS);
        let is_about = |(index, bin): &(usize, &TimeBin)| {
            let number = self.first + (begin + index) as u64;
            let within =
                number * self.width_ns < over_ns && number >= done.at_ns / self.width_ns.max(1);
            within && bin.received > 0
        };
        DutEvent {
            name: done.name.to_owned(),
            at_ns: done.at_ns.saturating_sub(self.start_ns),
            took_ns: done.took_ns,
            lost: bins
                .iter()
                .map(|bin| bin.intended.saturating_sub(bin.received))
                .sum(),
            // By the time of arrival, not the intended time: queues hold frames back during an
            // outage.
            first_ns: bins
                .iter()
                .enumerate()
                .filter(came)
                .map(|(index, bin)| since(index).saturating_add(bin.latency_ns_max))
                .min(),
            outage_ns: match last_loss {
                None => Some(0),
                // The last frames sent were lost: when the outage ends cannot be known.
                last if last == last_sent => None,
                // To the end of the bin with the last loss: the bins cannot show it more finely.
                Some(last) => Some(since(last + 1)),
            },
            slowest_ns: bins
                .iter()
                .enumerate()
                .filter(is_about)
                .map(|(_, bin)| bin.latency_ns_max)
                .max(),
            reset: None,
        }
    }
}

const fn has_lost(bin: &TimeBin) -> bool {
    bin.received < bin.intended
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ops::RangeInclusive;

    const MS: u64 = 1_000_000;
    const WIDTH: u64 = 10 * MS;
    /// Bins before an event's bin with frames that may have been in flight, if none was late.
    const SHORTLY: u64 = 2;

    /// Bins of single frames: each one's intended time, and whether it was received.
    fn bins(first: u64, frames: &[(u64, bool)]) -> Bins {
        let count = frames.iter().map(|(at, _)| at / WIDTH + 1).max();
        let count = count.unwrap_or(first).saturating_sub(first) as usize;
        let mut bins = vec![TimeBin::default(); count];
        for (at, came) in frames {
            let bin = &mut bins[(at / WIDTH - first) as usize];
            bin.intended += 1;
            bin.received += u64::from(*came);
        }
        Bins {
            width_ns: WIDTH,
            first,
            bins,
            start_ns: frames.iter().map(|(at, _)| *at).min().unwrap_or(0),
            late_ns: 0,
        }
    }

    #[test]
    fn a_frame_that_was_held_back_came_when_it_came() {
        let done = ExecutedAction {
            name: "set-up",
            at_ns: 2 * WIDTH,
            took_ns: 0,
        };
        let mut held = bins(
            0,
            &[
                (0, true),
                (WIDTH, false),
                (2 * WIDTH, true),
                (3 * WIDTH, true),
            ],
        );
        held.bins[2].latency_ns_max = 36 * MS;
        held.bins[3].latency_ns_max = 26 * MS;
        assert_eq!(
            held.events(std::slice::from_ref(&done))[0].first_ns,
            Some(36 * MS)
        );
        // A frame that overtakes it came first.
        held.bins[3].latency_ns_max = MS;
        assert_eq!(held.events(&[done])[0].first_ns, Some(WIDTH + MS));
    }

    /// The same as [`Bins::begin`], frame by frame: the bin's number.
    fn slow_begin(frames: &[(u64, bool)], late: u64, at_ns: u64, before_ns: Option<u64>) -> u64 {
        let last = frames.iter().map(|(at, _)| at / WIDTH).max().unwrap();
        let own = (at_ns / WIDTH).min(last + 1);
        let is_whole = |bin: &u64| {
            let mut here = frames
                .iter()
                .filter(|(at, _)| at / WIDTH == *bin)
                .peekable();
            here.peek().is_some() && here.all(|(_, came)| *came)
        };
        let is_free = |bin: &u64| before_ns.is_none_or(|before| *bin > before / WIDTH);
        let shortly = own.saturating_sub(SHORTLY + late)..own;
        let whole = shortly.filter(is_free).filter(is_whole).max();
        whole.map_or(own, |bin| bin + 1)
    }

    /// The same as [`Bins::event`], frame by frame.
    fn slow(
        frames: &[(u64, bool)],
        done: &ExecutedAction,
        begin: u64,
        next: Option<u64>,
    ) -> DutEvent {
        let bin = |at: u64| at / WIDTH;
        let within = |at: u64| bin(at) >= begin && next.is_none_or(|next| bin(at) < next);
        let own: Vec<_> = frames.iter().filter(|(at, _)| within(*at)).collect();
        let lost: Vec<u64> = own
            .iter()
            .filter(|(_, came)| !came)
            .map(|(at, _)| *at)
            .collect();
        let came = own.iter().filter(|(_, came)| *came).map(|(at, _)| *at);
        let first = came.filter(|at| bin(*at) * WIDTH >= done.at_ns).min();
        let last_sent = own.iter().map(|(at, _)| bin(*at)).max();
        let last_lost = lost.iter().map(|at| bin(*at)).max();
        DutEvent {
            name: done.name.to_owned(),
            at_ns: done.at_ns
                - frames
                    .iter()
                    .map(|(at, _)| *at)
                    .min()
                    .unwrap_or(0)
                    .min(done.at_ns),
            took_ns: done.took_ns,
            lost: lost.len() as u64,
            first_ns: first.map(|at| bin(at) * WIDTH - done.at_ns),
            outage_ns: match last_lost {
                None => Some(0),
                Some(lost) if last_sent == Some(lost) => None,
                Some(lost) => Some(((lost + 1) * WIDTH).saturating_sub(done.at_ns)),
            },
            slowest_ns: {
                let over = done.at_ns + done.took_ns + DutEvent::AFTER_NS;
                let own = bin(done.at_ns)..over.div_ceil(WIDTH);
                let mut came = frames.iter().filter(|(_, came)| *came);
                // These frames have no latency.
                came.any(|(at, _)| within(*at) && own.contains(&bin(*at)))
                    .then_some(0)
            },
            reset: None,
        }
    }

    proptest! {
        #[test]
        fn events_equal_an_evaluation_frame_by_frame(
            first in 0u64..1000,
            frames in prop::collection::vec((0u64..400, any::<bool>()), 1..120),
            mut at in prop::collection::vec(0u64..420, 0..6),
            late in 0u64..4,
        ) {
            let frames: Vec<_> =
                frames.iter().map(|(at, came)| (first * WIDTH + at * MS, *came)).collect();
            at.sort_unstable();
            let done: Vec<ExecutedAction> = at
                .iter()
                .map(|at| ExecutedAction { name: "rekey", at_ns: first * WIDTH + at * MS, took_ns: 3 })
                .collect();
            let all = Bins { late_ns: late * WIDTH, ..bins(first, &frames) };
            let events = all.events(&done);
            prop_assert_eq!(events.len(), done.len());
            let begin = |index: usize| {
                let before = index.checked_sub(1).map(|before| done[before].at_ns);
                Some(slow_begin(&frames, late, done.get(index)?.at_ns, before))
            };
            for (index, event) in events.iter().enumerate() {
                let expected = slow(&frames, &done[index], begin(index).unwrap(), begin(index + 1));
                prop_assert_eq!(event, &expected);
            }
        }

        #[test]
        fn a_timeline_has_all_frames_in_few_bins(
            counts in prop::collection::vec((0u64..100, 0u64..100, 0u64..1000), 0..3000),
        ) {
            let bins = counts.iter().map(|&(received, lost, latency_ns_max)| TimeBin {
                intended: received + lost,
                received,
                latency_ns_max,
            });
            let bins = Bins { width_ns: WIDTH, first: 7, bins: bins.collect(), start_ns: 71, late_ns: 0 };
            let timeline = bins.timeline();
            prop_assert!(timeline.bins.len() <= TIMELINE_BINS_MAX);
            prop_assert!(timeline.bin_ns * timeline.bins.len() as u64 >= WIDTH * counts.len() as u64);
            let sum = |of: fn(&TimeBin) -> u64, bins: &[TimeBin]| bins.iter().map(of).sum::<u64>();
            for of in [|bin: &TimeBin| bin.intended, |bin: &TimeBin| bin.received] {
                prop_assert_eq!(sum(of, &timeline.bins), sum(of, &bins.bins));
            }
        }

        #[test]
        fn two_ways_add_up_wherever_each_begins(
            (one, other) in (0u64..50, 0u64..50),
            (ones, others) in (
                prop::collection::vec((0u64..400, any::<bool>()), 1..50),
                prop::collection::vec((0u64..400, any::<bool>()), 1..50),
            ),
        ) {
            let shift = |by: u64, frames: &[(u64, bool)]| -> Vec<(u64, bool)> {
                frames.iter().map(|(at, came)| (by * WIDTH + at, *came)).collect()
            };
            let (ones, others) = (shift(one, &ones), shift(other, &others));
            let mut sum = bins(one, &ones);
            sum.add(&bins(other, &others));
            let both = [ones, others].concat();
            prop_assert_eq!(sum, bins(one.min(other), &both));
        }
    }

    /// Evaluates events at these times under one frame per 5 ms; the frames in `lost` are lost.
    /// Returns each event's lost frames, first frame and outage, all times in milliseconds.
    fn evaluate(lost: &[RangeInclusive<u64>], at: &[u64]) -> Vec<(u64, Option<u64>, Option<u64>)> {
        let came = |at: u64| !lost.iter().any(|lost| lost.contains(&at));
        let frames: Vec<_> = (0..40).map(|n| (5 * n * MS, came(5 * n))).collect();
        let done = at.iter().map(|at| ExecutedAction {
            name: "link-down",
            at_ns: at * MS,
            took_ns: 1,
        });
        let events = bins(0, &frames).events(&done.collect::<Vec<_>>());
        let ms = |ns: Option<u64>| ns.map(|ns| ns / MS);
        let figures = |event: &DutEvent| (event.lost, ms(event.first_ns), ms(event.outage_ns));
        events.iter().map(figures).collect()
    }

    #[test]
    fn an_outage_is_from_the_event_to_the_end_of_the_last_bin_with_a_loss() {
        let events = evaluate(&[23..=61], &[23, 58]);
        assert_eq!(events, [(5, None, None), (3, Some(2), Some(12))]);
    }

    #[test]
    fn frames_in_flight_when_an_event_begins_are_lost_by_that_event() {
        // Down at 23, up at 58; down again at 123, when frames from 106 on have not come yet.
        let events = evaluate(&[23..=61, 106..=155], &[23, 58, 123, 148]);
        let [_, up, down, up_again] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!(up, &(3, Some(2), Some(12)));
        assert_eq!(down, &(6, None, None));
        assert_eq!(up_again, &(4, Some(12), Some(12)));
        // The same for the first event.
        assert_eq!(evaluate(&[111..=119], &[121]), [(1, Some(9), Some(0))]);
    }

    #[test]
    fn a_loss_that_began_long_before_an_event_is_not_its_own() {
        // Longer than any frame is in flight, and since the event before.
        let long = evaluate(&[23..=61, 91..=122], &[23, 58, 123]);
        assert_eq!(long[1..], [(8, Some(2), None), (1, Some(7), Some(7))]);
        let close = evaluate(&[23..=50], &[23, 38]);
        assert_eq!(close, [(1, None, None), (5, Some(12), Some(22))]);
    }

    #[test]
    fn bins_are_a_millisecond_up_to_a_minute_and_never_too_many() {
        let second = 1_000_000_000;
        for (duration_ns, width_ns) in [
            (1, BIN_NS),
            (60 * second, BIN_NS),
            (60 * second + 1, 2 * BIN_NS),
            (86_400 * second, 1440 * BIN_NS),
        ] {
            let bins = bins_for(duration_ns);
            assert_eq!(bins.width_ns, width_ns);
            assert!(u64::from(bins.most) * width_ns > duration_ns + width_ns);
            assert!(u64::from(bins.most) <= BINS_MAX + 2);
        }
    }
}
