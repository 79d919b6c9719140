//! Soaks with TCP: drift of the goodput over the intervals of a long transfer.

use crate::figures::drift::{DRIFT_MIN_POINTS, Drift, Point};
use journal::record::{Interval, Transfer};
use schemars::JsonSchema;
use serde::Serialize;

/// Shortest transfer that is examined for drift of its goodput: shorter ones show the ramps of
/// TCP's congestion control.
pub const GOODPUT_DRIFT_MIN_NS: u64 = 60_000_000_000;
/// Allowed drift of the goodput over the whole time, up or down, as a share of the median.
pub const GOODPUT_DRIFT_BOUND: f64 = 0.05;
const NS_PER_HOUR: f64 = 3.6e12;

/// Drift of the goodput in one repeat of a long transfer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct GoodputDrift {
    /// From 1.
    pub repeat: u32,
    /// Payload received, in bit/s, by interval of the tool.
    pub drift: Drift,
}

/// Drifts of the transfers that last at least [`GOODPUT_DRIFT_MIN_NS`] and have
/// [`DRIFT_MIN_POINTS`] intervals or more; each is a repeat.
pub(crate) fn drifts(transfers: &[(u32, &Transfer)]) -> Vec<GoodputDrift> {
    let long = |transfer: &Transfer| {
        // The sender of datagrams sets their rate, so its course says nothing about the path.
        transfer.datagrams.is_none()
            && transfer.duration_ns >= GOODPUT_DRIFT_MIN_NS
            && transfer.intervals.len() >= DRIFT_MIN_POINTS
    };
    let transfers = transfers.iter().filter(|(_, transfer)| long(transfer));
    let drift = |&(repeat, transfer): &(u32, &Transfer)| {
        let points = transfer.intervals.iter().filter_map(point).collect();
        let hours = transfer.duration_ns as f64 / NS_PER_HOUR;
        let drift = Drift::of(&[points], hours, GOODPUT_DRIFT_BOUND)?;
        Some(GoodputDrift { repeat, drift })
    };
    transfers.filter_map(drift).collect()
}

/// The middle of an interval, and its goodput in bit/s.
fn point(interval: &Interval) -> Option<Point> {
    let ns = interval.end_ns.checked_sub(interval.start_ns)?;
    // The middle stands for the whole interval: its end would shift a course by half an
    // interval.
    let middle = interval.start_ns as f64 + ns as f64 / 2.0;
    let bps = interval.bytes as f64 * 8e9 / ns as f64;
    (ns > 0).then_some((middle / NS_PER_HOUR, bps))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::drift::DriftJudgement;
    use journal::record::Datagrams;

    const SECOND: u64 = 1_000_000_000;

    /// 1 Gbit/s with a ripple of 2 %, that changes by this share over the whole time.
    fn transfer(intervals: u64, change: f64) -> Transfer {
        let interval = |index: u64| {
            let ripple = 1.0 + 0.02 * ((index * 7 % 11) as f64 / 10.0 - 0.5);
            let drifted = 1.0 + change * index as f64 / intervals as f64;
            Interval {
                start_ns: index * 10 * SECOND,
                end_ns: (index + 1) * 10 * SECOND,
                bytes: (1.25e9 * ripple * drifted) as u64,
            }
        };
        Transfer {
            duration_ns: intervals * 10 * SECOND,
            intervals: (0..intervals).map(interval).collect(),
            ..Transfer::default()
        }
    }

    fn judged(transfer: &Transfer) -> Option<DriftJudgement> {
        let found = drifts(&[(3, transfer)]);
        found.first().map(|one| {
            assert_eq!(one.repeat, 3);
            one.drift.judged
        })
    }

    #[test]
    fn a_goodput_that_falls_drifts_and_a_ripple_does_not() {
        assert_eq!(judged(&transfer(60, 0.0)), Some(DriftJudgement::Steady));
        assert_eq!(judged(&transfer(60, -0.12)), Some(DriftJudgement::Drifts));
        assert_eq!(judged(&transfer(60, 0.12)), Some(DriftJudgement::Drifts));
        let drift = drifts(&[(1, &transfer(60, -0.12))])[0].drift;
        // Half of the fall of 12 % is in the median, so the change is 0.12 by 0.94.
        assert!((drift.median - 0.94e9).abs() < 2e7, "{drift:?}");
        assert!((drift.change_ratio + 0.127).abs() < 0.02, "{drift:?}");
    }

    #[test]
    fn short_transfers_and_datagrams_are_no_soak() {
        assert_eq!(judged(&transfer(29, -0.5)), None);
        let short = Transfer {
            duration_ns: 59 * SECOND,
            ..transfer(60, -0.5)
        };
        assert_eq!(judged(&short), None);
        let udp = Transfer {
            datagrams: Some(Datagrams::default()),
            ..transfer(60, -0.5)
        };
        assert_eq!(judged(&udp), None);
    }
}
