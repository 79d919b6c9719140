//! Counts of a receiver, which can be merged over several threads.

use crate::bins::Bins;
use crate::delays::Delays;
use crate::histogram::{buckets, histogram};
use crate::open::Refused;
use crate::periods::Periods;
use crate::variation::Differences;
use hdrhistogram::Histogram;
use traffic_spec::Received;

/// The counts of one receiver.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    /// The counts in their reported form; the fields that [`received`](Self::received) sets are
    /// empty.
    pub(crate) counts: Received,
    pub(crate) refused: Refused,
    /// Arrival time of the first intact frame.
    first_ns: u64,
    latency: Histogram<u64>,
    bins: Option<Bins>,
    periods: Option<Periods>,
    /// Between consecutive frames, if delay variation is requested.
    differences: Option<Differences>,
    delays: Option<Delays>,
    /// Frames of a burst often have the same latency: each run of equal values is recorded once.
    run: Run,
}

#[derive(Debug, Clone, Copy, Default)]
struct Run {
    latency_ns: u64,
    frames: u64,
}

impl Tally {
    /// Empty counts, with bins and periods if requested.
    pub(crate) fn new(receive: &traffic_spec::Receive) -> Self {
        Self {
            counts: Received::default(),
            refused: Refused::default(),
            first_ns: u64::MAX,
            latency: histogram(),
            bins: receive.bins.and_then(Bins::new),
            periods: receive.periods.and_then(Periods::new),
            differences: receive
                .variation
                .then(|| Differences::new(receive.frames.flows)),
            // A load in two parts has no single rate at which a queue could grow.
            delays: match receive.first_frames {
                None => receive.expected.and_then(Delays::new),
                Some(_) => None,
            },
            run: Run::default(),
        }
    }

    /// Counts an intact frame seen for the first time, with its flow, its number in it and its
    /// intended send time. Frames arrive in order of time.
    #[inline]
    pub(crate) fn intact(
        &mut self,
        (flow, sequence): (u16, u64),
        frame_bytes: u16,
        now_ns: u64,
        intended_ns: u64,
    ) {
        let counts = &mut self.counts;
        if counts.frames == 0 {
            self.first_ns = now_ns;
        }
        // Not the maximum: frames are taken in the order of their arrival.
        counts.last_ns = now_ns;
        counts.frames += 1;
        counts.frame_bytes += u64::from(frame_bytes);
        // The highest, as reordered frames arrive behind later ones.
        counts.last_intended_ns = counts.last_intended_ns.max(intended_ns);
        // The clocks of two hosts may disagree.
        let latency_ns = now_ns.saturating_sub(intended_ns).max(1);
        if let Some(bins) = &mut self.bins {
            bins.count(intended_ns, latency_ns);
        }
        if let Some(periods) = &mut self.periods {
            periods.count(intended_ns, latency_ns);
        }
        if let Some(differences) = &mut self.differences {
            differences.count(flow, sequence, latency_ns);
        }
        // A comparison instead of an update of the histogram, which is a cache line elsewhere.
        if latency_ns == self.run.latency_ns {
            self.run.frames += 1;
        } else {
            // A run of one latency may be open in both; it is counted only at its end.
            self.end_run();
            self.run = Run {
                latency_ns,
                frames: 1,
            };
        }
    }

    /// Counts the delay of an intact frame by its number in the schedule; negative if the clocks of
    /// two hosts disagree.
    #[inline]
    pub(crate) fn delayed(&mut self, number: u64, delay_ns: i64) {
        if let Some(delays) = &mut self.delays {
            delays.count(number, delay_ns);
        }
    }

    #[inline]
    fn end_run(&mut self) {
        let Run { latency_ns, frames } = self.run;
        if frames > 0 {
            self.latency.saturating_record_n(latency_ns, frames);
        }
        self.run = Run::default();
    }

    /// Adds the counts of another receiver of the same trial.
    pub(crate) fn merge(&mut self, mut other: Self) {
        self.end_run();
        other.end_run();
        let (counts, more) = (&mut self.counts, other.counts);
        counts.frames += more.frames;
        counts.frame_bytes += more.frame_bytes;
        counts.then_frames += more.then_frames;
        counts.duplicated += more.duplicated;
        counts.reordered += more.reordered;
        counts.reordering_extent_max = counts.reordering_extent_max.max(more.reordering_extent_max);
        counts.too_late += more.too_late;
        counts.corrupted += more.corrupted;
        counts.stale += more.stale;
        counts.foreign += more.foreign;
        counts.after_end += more.after_end;
        counts.stood_still_ns_max = counts.stood_still_ns_max.max(more.stood_still_ns_max);
        counts.last_ns = counts.last_ns.max(more.last_ns);
        counts.last_loss_ns = counts.last_loss_ns.max(more.last_loss_ns);
        counts.last_intended_ns = counts.last_intended_ns.max(more.last_intended_ns);
        self.refused.merge(&other.refused);
        self.first_ns = self.first_ns.min(other.first_ns);
        self.latency
            .add(&other.latency)
            .expect("both histograms have the same bounds");
        if let (Some(bins), Some(more)) = (&mut self.bins, &other.bins) {
            bins.merge(more);
        }
        if let (Some(periods), Some(more)) = (&mut self.periods, &other.periods) {
            periods.merge(more);
        }
        if let (Some(differences), Some(more)) = (&mut self.differences, &other.differences) {
            differences.merge(more);
        }
        if let (Some(delays), Some(more)) = (&mut self.delays, &other.delays) {
            delays.merge(more);
        }
    }

    /// All received frames of this trial, including those that may belong to it.
    pub(crate) fn of_this_trial(&self) -> u64 {
        let counts = &self.counts;
        counts.frames + counts.duplicated + counts.too_late + counts.corrupted + self.refused.sum()
    }

    pub(crate) fn received(&self) -> Received {
        // A copy, as the analyser may go on after this reading.
        let mut whole = self.clone();
        whole.end_run();
        let latency = buckets(&whole.latency);
        let differences = self.differences.as_ref();
        let (first_bin, bins) = self.bins.as_ref().map(Bins::counted).unwrap_or_default();
        let periods = self.periods.as_ref().map(Periods::counted);
        let (first_period, periods) = periods.unwrap_or_default();
        Received {
            refused: self.refused.by_name(),
            // From the first frame to the last: the drain afterwards is no part of it.
            elapsed_ns: self.counts.last_ns.saturating_sub(self.first_ns),
            variation: differences.and_then(|differences| differences.of_stream(&latency)),
            latency,
            first_bin,
            bins: bins.to_vec(),
            first_period,
            periods,
            delays: self.delays.as_ref().map(Delays::means).unwrap_or_default(),
            ..self.counts.clone()
        }
    }
}
