//! Latencies of all frames of several runs: their histograms merged, which loses nothing. Means and
//! intervals are of runs; percentiles of frames are of these.

use fleet::{Fleet, FleetError};
use serde::Serialize;
use stats::{merged_histogram, merged_percentile};
use units::human::{counted, duration_ns};

/// Most merged runs of a part: the last ones.
const RUNS_MAX: usize = 200;

/// The frames of runs between two changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Pooled {
    /// Place of the part's first run in the series.
    pub(crate) from: usize,
    /// Number of runs with a merged histogram.
    pub(crate) runs: usize,
    /// Their frames.
    pub(crate) frames: u64,
    /// Median, 90th, 99th and 99.9th percentile; `null` if less than one frame would be above it.
    pub(crate) percentiles_ns: [Option<u64>; 4],
}

impl Pooled {
    /// Of histograms, one of each run; `None` without a frame.
    fn of(from: usize, histograms: &[&[(u64, u64)]]) -> Option<Self> {
        let all = merged_histogram(histograms.iter().copied().flatten().copied());
        (!all.is_empty()).then(|| Self {
            from,
            runs: histograms.len(),
            frames: all.iter().map(|(_, frames)| frames).sum(),
            // Percentiles of single runs cannot be merged, so they are of the merged histogram.
            percentiles_ns: [500, 900, 990, 999].map(|rank| merged_percentile(&all, rank)),
        })
    }

    pub(crate) fn in_words(&self) -> String {
        let names = ["p50", "p90", "p99", "p99.9"].into_iter();
        let known = names.zip(self.percentiles_ns).filter_map(|(name, found)| {
            let value = duration_ns(found? as f64);
            Some(format!("{name} {value}"))
        });
        format!(
            "all frames of {}: {} ({})",
            counted(self.runs as u64, "run"),
            known.collect::<Vec<_>>().join(", "),
            counted(self.frames, "frame")
        )
    }
}

/// The parts of a series of runs of a cell, one between each two changes: the latencies there under
/// a load.
pub(super) async fn parts(
    fleet: &Fleet,
    (cell, load_percent): (&str, u8),
    jobs: &[&str],
    changes: impl Iterator<Item = usize>,
) -> Result<Vec<Pooled>, FleetError> {
    let starts: Vec<usize> = std::iter::once(0).chain(changes).collect();
    let mut parts = Vec::new();
    for (nth, &from) in starts.iter().enumerate() {
        let end = starts.get(nth + 1).copied().unwrap_or(jobs.len());
        // The last runs of a part are nearest to what is measured today.
        let runs = &jobs[from.max(end.saturating_sub(RUNS_MAX))..end];
        let found = fleet.histograms(cell, runs).await?;
        let of_load = found.values().filter_map(|loads| {
            let of_load = loads.iter().find(|one| one.load_percent == load_percent);
            of_load.map(|one| &*one.buckets)
        });
        parts.extend(Pooled::of(from, &of_load.collect::<Vec<_>>()));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_all_frames_and_not_means_of_those_of_runs() {
        let fast: Vec<(u64, u64)> = vec![(1000, 9_900)];
        let slow: Vec<(u64, u64)> = vec![(1000, 80), (5000, 20)];
        let pooled = Pooled::of(3, &[&fast, &slow]).unwrap();
        assert_eq!((pooled.from, pooled.runs, pooled.frames), (3, 2, 10_000));
        assert_eq!(
            pooled.percentiles_ns,
            [Some(1000), Some(1000), Some(1000), Some(5000)]
        );
        assert_eq!(
            pooled.in_words(),
            "all frames of 2 runs: p50 1 µs, p90 1 µs, p99 1 µs, p99.9 5 µs (10000 frames)"
        );
        assert_eq!(Pooled::of(0, &[]), None);
    }
}
