//! Counts of a receiver, which can be merged over several threads.

use crate::bins::Bins;
use crate::clock::SECOND_NS;
use crate::open::Refused;
use crate::periods::Periods;
use crate::report::Received;
use crate::spec;
use hdrhistogram::Histogram;

/// Range of latencies resolved: from 1 ns to 100 s, to three significant digits.
const LATENCY_NS_MAX: u64 = 100 * SECOND_NS;
const LATENCY_DIGITS: u8 = 3;

/// The counts of one receiver. The fields are those of [`Received`].
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    pub(crate) frames: u64,
    pub(crate) frame_bytes: u64,
    pub(crate) then_frames: u64,
    pub(crate) duplicated: u64,
    pub(crate) reordered: u64,
    pub(crate) reordering_extent_max: u64,
    pub(crate) too_late: u64,
    pub(crate) corrupted: u64,
    pub(crate) stale: u64,
    pub(crate) foreign: u64,
    pub(crate) after_end: u64,
    pub(crate) refused: Refused,
    /// Arrival times of the first and the last intact frame.
    first_ns: u64,
    last_ns: u64,
    pub(crate) last_loss_ns: u64,
    last_intended_ns: u64,
    latency: Histogram<u64>,
    bins: Option<Bins>,
    periods: Option<Periods>,
    /// Frames of a burst often have the same latency: each run of equal values is recorded once.
    run: Run,
}

#[derive(Debug, Clone, Copy, Default)]
struct Run {
    latency_ns: u64,
    frames: u64,
}

impl Tally {
    /// Counts with bins and periods where requested.
    pub(crate) fn new(receive: &spec::Receive) -> Self {
        Self {
            frames: 0,
            frame_bytes: 0,
            then_frames: 0,
            duplicated: 0,
            reordered: 0,
            reordering_extent_max: 0,
            too_late: 0,
            corrupted: 0,
            stale: 0,
            foreign: 0,
            after_end: 0,
            refused: Refused::default(),
            first_ns: u64::MAX,
            last_ns: 0,
            last_loss_ns: 0,
            last_intended_ns: 0,
            latency: Histogram::new_with_bounds(1, LATENCY_NS_MAX, LATENCY_DIGITS)
                .expect("the bounds and the digits are within what the histogram takes"),
            bins: receive.bins.and_then(Bins::new),
            periods: receive.periods.and_then(Periods::new),
            run: Run::default(),
        }
    }

    /// Counts an intact frame seen for the first time, with its intended send time. Frames arrive
    /// in order of time.
    #[inline]
    pub(crate) fn intact(&mut self, frame_bytes: u16, now_ns: u64, intended_ns: u64) {
        if self.frames == 0 {
            self.first_ns = now_ns;
        }
        self.last_ns = now_ns;
        self.frames += 1;
        self.frame_bytes += u64::from(frame_bytes);
        self.last_intended_ns = self.last_intended_ns.max(intended_ns);
        // The clocks of two hosts may disagree.
        let latency_ns = now_ns.saturating_sub(intended_ns).max(1);
        if let Some(bins) = &mut self.bins {
            bins.count(intended_ns, latency_ns);
        }
        if let Some(periods) = &mut self.periods {
            periods.count(intended_ns, latency_ns);
        }
        if latency_ns == self.run.latency_ns {
            self.run.frames += 1;
        } else {
            self.end_run();
            self.run = Run {
                latency_ns,
                frames: 1,
            };
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
        self.frames += other.frames;
        self.frame_bytes += other.frame_bytes;
        self.then_frames += other.then_frames;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.reordering_extent_max = self.reordering_extent_max.max(other.reordering_extent_max);
        self.too_late += other.too_late;
        self.corrupted += other.corrupted;
        self.stale += other.stale;
        self.foreign += other.foreign;
        self.after_end += other.after_end;
        self.refused.merge(&other.refused);
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
        self.last_loss_ns = self.last_loss_ns.max(other.last_loss_ns);
        self.last_intended_ns = self.last_intended_ns.max(other.last_intended_ns);
        self.latency
            .add(&other.latency)
            .expect("both histograms have the same bounds");
        if let (Some(bins), Some(more)) = (&mut self.bins, &other.bins) {
            bins.merge(more);
        }
        if let (Some(periods), Some(more)) = (&mut self.periods, &other.periods) {
            periods.merge(more);
        }
    }

    /// All frames received of this trial, including those that may belong to it.
    pub(crate) fn of_this_trial(&self) -> u64 {
        self.frames + self.duplicated + self.too_late + self.corrupted + self.refused.sum()
    }

    pub(crate) fn received(&self) -> Received {
        let mut whole = self.clone();
        whole.end_run();
        let buckets = whole.latency.iter_recorded();
        let latency = buckets.map(|bucket| {
            let highest = whole.latency.highest_equivalent(bucket.value_iterated_to());
            (highest, bucket.count_at_value())
        });
        let (first_bin, bins) = self.bins.as_ref().map(Bins::counted).unwrap_or_default();
        let periods = self.periods.as_ref().map(Periods::counted);
        let (first_period, periods) = periods.unwrap_or_default();
        Received {
            frames: self.frames,
            frame_bytes: self.frame_bytes,
            then_frames: self.then_frames,
            duplicated: self.duplicated,
            reordered: self.reordered,
            reordering_extent_max: self.reordering_extent_max,
            too_late: self.too_late,
            corrupted: self.corrupted,
            stale: self.stale,
            foreign: self.foreign,
            after_end: self.after_end,
            refused: self.refused.by_name(),
            elapsed_ns: self.last_ns.saturating_sub(self.first_ns),
            last_ns: self.last_ns,
            last_loss_ns: self.last_loss_ns,
            last_intended_ns: self.last_intended_ns,
            latency: latency.collect(),
            first_bin,
            bins: bins.to_vec(),
            first_period,
            periods,
        }
    }
}
