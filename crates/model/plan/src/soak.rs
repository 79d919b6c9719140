//! A long load with a timeline of rate, loss, latency, CPU time and memory, and bounds for their
//! drift.

use super::BaseLoad;
use serde::{Deserialize, Serialize};

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
