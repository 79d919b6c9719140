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

    fn time(&self, trial: &dyn Fn(u64) -> Duration, searches: u32) -> Duration {
        // One before each segment, and one after the last.
        let probe = self.probe_ns.map_or(Duration::ZERO, trial);
        let segments = self.segments(0).map(|time_ns| trial(time_ns) + probe);
        self.load.time(searches) + segments.sum::<Duration>() + probe
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
}
