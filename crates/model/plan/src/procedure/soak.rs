//! A long load with a timeline of rate, loss, latency, CPU time and memory, and bounds for their
//! drift.

use super::{BaseLoad, Procedure, ProcedureKind, ProcedurePlan};
use crate::words::{long_time, time};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::Ratio;

/// One load for minutes to hours, recorded point by point.
///
/// It consists of segments, each a separate frame trial that is recorded when it ends: an
/// interrupted run keeps them, and continues with the remaining time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Soak {
    /// The load.
    pub load: BaseLoad,
    /// Time under load, all segments together.
    pub duration_ns: u64,
    /// Width of a point of the timeline.
    pub point_ns: u64,
    /// Time of a segment; the last one takes the rest.
    pub segment_ns: u64,
    /// Time of a probe of the capacity before each segment and after the last one, at the tester's
    /// highest rate. `None`: no probes, as in older plans. Its frames are in no count of the soak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_ns: Option<u64>,
    /// Highest share of the frames that may be lost, in parts per million; 0: none.
    pub loss_ppm: u32,
    /// Allowed drift over the whole time.
    pub drift: DriftBounds,
}

/// Allowed drift over the whole time of a soak, in parts per million of the median.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriftBounds {
    /// Forwarding rate, up or down.
    pub rate_ppm: u32,
    /// Median latency, up or down.
    pub latency_ppm: u32,
    /// Memory of the device's processes, up or down.
    pub memory_ppm: u32,
    /// CPU time of the device's processes by time, up or down; `None` in older plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ppm: Option<u32>,
    /// Capacity by the probes, up or down; `None` in older plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_ppm: Option<u32>,
}

impl Soak {
    /// Durations of the remaining segments after the time already measured. None is shorter than a
    /// point, unless the whole soak is: a shorter rest belongs to the segment before it.
    pub fn segments(&self, measured_ns: u64) -> impl Iterator<Item = u64> + use<> {
        // At least 1: a segment without length would end the iterator before the time is over.
        let (segment_ns, point_ns) = (self.segment_ns.max(1), self.point_ns);
        let mut left_ns = self.duration_ns.saturating_sub(measured_ns);
        std::iter::from_fn(move || {
            let time_ns = if left_ns < segment_ns.saturating_add(point_ns) {
                left_ns
            } else {
                segment_ns
            };
            left_ns -= time_ns;
            (time_ns > 0).then_some(time_ns)
        })
    }

    /// The number of segments of the whole duration.
    fn segment_count(&self) -> u64 {
        let segment_ns = self.segment_ns.max(1);
        // As long as a whole segment and a point are left, a whole segment follows.
        let whole = self.duration_ns.saturating_sub(self.point_ns) / segment_ns;
        let rest_ns = self.duration_ns - whole * segment_ns;
        whole + u64::from(rest_ns > 0)
    }
}

impl ProcedurePlan for Soak {
    fn kind(&self) -> ProcedureKind {
        ProcedureKind::Soak
    }

    fn base_load(&self) -> Option<&BaseLoad> {
        Some(&self.load)
    }

    fn without_loads(&self) -> Procedure {
        Procedure::Soak(Self {
            load: self.load.at_any_load(),
            ..self.clone()
        })
    }

    /// Search, for a share, + duration, as segments, + probes around each.
    fn time(&self, trial: &dyn Fn(u64) -> Duration, searches: u32) -> Duration {
        // One before each segment, and one after the last.
        let probe = self.probe_ns.map_or(Duration::ZERO, trial);
        // Counted, not summed one by one: of a changed journal there may be as many as nanoseconds.
        let segments = u32::try_from(self.segment_count()).unwrap_or(u32::MAX);
        // Each segment adds the same to its time under load.
        let around = (trial(0) + probe) * segments;
        let loaded = Duration::from_nanos(self.duration_ns);
        self.load.time(searches) + loaded + around + probe
    }

    fn in_words(&self) -> Option<String> {
        let ratio = |ppm: u32| Ratio::from_ppm(ppm.into());
        let drift = self.drift;
        Some(format!(
            "{} for {}, in points of {} and segments of {}{}; stable if at most {} is lost, nothing stalls, and over the \
             whole time the rate drifts by at most {}, the median latency by {}, the device's memory by {}{}",
            self.load.in_words(),
            time(self.duration_ns),
            time(self.point_ns),
            time(self.segment_ns),
            self.probe_ns.map_or_else(String::new, |probe_ns| format!(
                ", before and after which the capacity is probed for {}",
                time(probe_ns)
            )),
            ratio(self.loss_ppm),
            ratio(drift.rate_ppm),
            ratio(drift.latency_ppm),
            ratio(drift.memory_ppm),
            [
                // Older plans have no bound for these.
                ("CPU time", drift.cpu_ppm),
                ("capacity", drift.capacity_ppm)
            ]
            .into_iter()
            .filter_map(|(name, ppm)| Some(format!(", its {name} by {}", ratio(ppm?))))
            .collect::<String>()
        ))
    }

    fn settings(&self) -> Vec<String> {
        let goal = Ratio::from_ppm(self.loss_ppm.into());
        let own = [
            long_time(self.duration_ns),
            format!("points of {}", long_time(self.point_ns)),
            format!("loss goal {goal}"),
        ];
        // A given load is another number of frames for each size, so it is no common setting.
        self.load.setting().into_iter().chain(own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soak(duration_ns: u64) -> Soak {
        Soak {
            load: BaseLoad::Given { frames_per_s: 1 },
            duration_ns,
            point_ns: 10,
            segment_ns: 30,
            probe_ns: None,
            loss_ppm: 0,
            drift: DriftBounds {
                rate_ppm: 0,
                latency_ppm: 0,
                memory_ppm: 0,
                cpu_ppm: None,
                capacity_ppm: None,
            },
        }
    }

    #[test]
    fn segments_take_the_time_that_is_left_and_none_is_a_splinter() {
        let segments = |duration, measured| soak(duration).segments(measured).collect::<Vec<_>>();
        assert_eq!(segments(100, 0), [30, 30, 30, 10]);
        assert_eq!(segments(99, 0), [30, 30, 39]);
        assert_eq!(segments(105, 0), [30, 30, 30, 15]);
        assert_eq!(segments(5, 0), [5]);
        assert_eq!(segments(100, 60), [30, 10]);
        assert!(segments(100, 100).is_empty());
        assert!(segments(100, 200).is_empty());
    }

    #[test]
    fn segments_are_counted_without_a_walk_over_them() {
        for duration in [0, 5, 10, 29, 30, 39, 40, 41, 69, 70, 99, 100, 105] {
            for point_ns in [0, 1, 10, 30] {
                let soak = Soak {
                    point_ns,
                    ..soak(duration)
                };
                let walked = soak.segments(0).count() as u64;
                assert_eq!(soak.segment_count(), walked, "{duration} {point_ns}");
            }
        }
        // Of a changed journal: a walk would take years.
        let endless = Soak {
            segment_ns: 0,
            point_ns: 0,
            ..soak(100_000_000_000_000_000)
        };
        let around = Duration::from_millis(50);
        let trial = |time_ns| Duration::from_nanos(time_ns) + around;
        let least = around * u32::MAX;
        assert!(endless.time(&trial, 1) > least);
    }
}
