//! Beginning and end of a trial's measured time, and the steps of its timeline.
//!
//! iperf3 can omit a warm-up itself (`-O`), but version 3.12 then loses an interval's bytes at the
//! reset, resets sender and receiver at different times, and supports whole seconds only. So trials
//! run the tool for warm-up and measured time together, and cut the warm-up off the reported
//! intervals. The tool's counts over the whole run are then exactly comparable with interface
//! counters over the whole run.

use plan::{HttpTest, VideoTest};
use testbed::protocol::OUTPUT_LIMIT_BYTES;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
/// From this duration on a transfer is a soak: its drift needs more steps.
const SOAK_NS: u64 = 60 * SECOND;
const SOAK_STEPS_MIN: u64 = 60;
/// Possible steps of a timeline, in rising order: iperf3 supports 0.1 s to 60 s.
const INTERVALS_NS: [u64; 9] = [
    100 * MS,
    200 * MS,
    500 * MS,
    1000 * MS,
    2000 * MS,
    5000 * MS,
    10_000 * MS,
    30_000 * MS,
    60_000 * MS,
];
/// Intervals of a tool's report, the best first, if its output has room for them: a pause of 300 ms
/// lengthens one of them by 100 ms or more.
const TOOL_STEPS_NS: [u64; 2] = [200 * MS, 100 * MS];
/// Minimum number of steps of a timeline, if the shortest step allows it.
const STEPS_MIN: u64 = 10;
/// A timeline has at most this many steps.
const STEPS_MAX: u64 = 1200;
/// Maximum output of iperf3 per stream and step, or for their sum; up to 350 B were observed.
const STREAM_STEP_BYTES: u64 = 512;
/// Share of the kept output that steps may take; the rest is for beginning and end.
const OUTPUT_BYTES: u64 = OUTPUT_LIMIT_BYTES as u64 / 2;

/// Beginning and end of a trial's measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Step of the timeline, in nanoseconds.
    pub interval_ns: u64,
    /// Interval of the tool's report in nanoseconds (`-i`), at most [`Self::interval_ns`]: a
    /// stalled tool is noticed by an interval that lasts longer than planned, and a short pause
    /// lengthens short intervals only.
    pub step_ns: u64,
    /// Time cut off at the start: the configured warm-up, rounded up to whole steps.
    pub warmup_ns: u64,
    /// Running time of the tool including the warm-up, in nanoseconds; whole seconds for iperf3
    /// (`-t`). The measured time is the rest after the warm-up, at least the configured duration.
    pub run_ns: u64,
}

impl Timing {
    /// Timing of a program without intervals shorter than `interval_ns`, of which `warmup_ns` do
    /// not count.
    const fn of(interval_ns: u64, warmup_ns: u64, run_ns: u64) -> Self {
        Self {
            interval_ns,
            step_ns: interval_ns,
            warmup_ns,
            run_ns,
        }
    }

    /// Timing of a program that sends for `duration_ns` from its start.
    pub(crate) const fn of_frames(duration_ns: u64) -> Self {
        Self::of(duration_ns, 0, duration_ns)
    }

    pub(crate) fn of_ping(count: u32, interval_ns: u64) -> Self {
        let run_ns = u64::from(count).saturating_mul(interval_ns);
        Self::of(interval_ns, 0, run_ns)
    }

    /// Timing of a trial over HTTP: its ramp-up phase is not counted, and the ramp-down phase
    /// follows.
    pub(crate) const fn of_http(test: &HttpTest) -> Self {
        // The client reports one sum, so that the whole measured time is one step.
        let run_ns = test.ramp_ns.saturating_add(test.duration_ns);
        Self::of(test.duration_ns, test.ramp_ns, run_ns)
    }

    /// Timing of a trial of video: the clip's lead-in is not counted, and its end follows.
    pub(crate) const fn of_video(test: &VideoTest) -> Self {
        let run_ns = VideoTest::LEAD_IN_NS.saturating_add(test.duration_ns);
        Self::of(test.duration_ns, VideoTest::LEAD_IN_NS, run_ns)
    }

    /// Timing of a transfer with `streams` per process. `None` if a process would print more than a
    /// station keeps.
    pub(crate) fn of_transfer(duration_ns: u64, warmup_ns: u64, streams: u16) -> Option<Self> {
        let steps = |interval: u64| duration_ns / interval;
        let steps_min = if duration_ns >= SOAK_NS {
            SOAK_STEPS_MIN
        } else {
            STEPS_MIN
        };
        // A step divides the warm-up, so that no step is half in it, and is short enough for the
        // drift test to have its steps.
        let fits =
            |interval: u64| warmup_ns.is_multiple_of(interval) && steps(interval) >= steps_min;
        // In each step iperf3 prints every stream and their sum.
        let steps_max = OUTPUT_BYTES / (STREAM_STEP_BYTES * (u64::from(streams) + 1));
        let whole_ns = duration_ns.saturating_add(warmup_ns);
        let finest = INTERVALS_NS
            .into_iter()
            .find(|&interval| whole_ns / interval <= steps_max.min(STEPS_MAX));
        // Too long even by the longest step. A trial that only exceeds STEPS_MAX has the longest
        // step nevertheless.
        if finest.is_none() && whole_ns / INTERVALS_NS[INTERVALS_NS.len() - 1] > steps_max {
            return None;
        }
        // The longest step that fits: fewer steps are less output. If none does, the shortest, by
        // which the warm-up is rounded up. But in no case one that prints too much.
        let interval_ns = INTERVALS_NS
            .into_iter()
            .rfind(|&interval| fits(interval))
            .unwrap_or(INTERVALS_NS[0])
            .max(finest.unwrap_or(INTERVALS_NS[INTERVALS_NS.len() - 1]));
        let warmup_ns = warmup_ns.next_multiple_of(interval_ns);
        // Rounded up for `-t`, which takes whole seconds. The measured time becomes longer, never
        // shorter.
        let run_seconds = warmup_ns
            .saturating_add(duration_ns)
            .div_ceil(SECOND)
            .max(1);
        let run_ns = run_seconds.saturating_mul(SECOND);
        // The tool reports more often than the timeline shows if there is room for it.
        let step_ns = TOOL_STEPS_NS.into_iter().find(|step| {
            interval_ns.is_multiple_of(*step) && run_ns / step <= steps_max.min(STEPS_MAX)
        });
        Some(Self {
            interval_ns,
            step_ns: step_ns.unwrap_or(interval_ns),
            warmup_ns,
            run_ns,
        })
    }

    /// Whole seconds of [`Self::run_ns`], rounded up.
    #[must_use]
    pub const fn run_seconds(&self) -> u64 {
        self.run_ns.div_ceil(SECOND)
    }

    /// Planned measured time, in nanoseconds.
    #[must_use]
    pub const fn measured_ns(&self) -> u64 {
        self.run_ns.saturating_sub(self.warmup_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(duration_ms: u64, warmup_ms: u64) -> (u64, u64, u64) {
        let timing = Timing::of_transfer(duration_ms * MS, warmup_ms * MS, 8).unwrap();
        (
            timing.interval_ns / MS,
            timing.warmup_ns / MS,
            timing.run_seconds(),
        )
    }

    #[test]
    fn the_step_follows_the_duration_and_divides_the_warm_up() {
        assert_eq!(timing(1000, 0), (100, 0, 1));
        assert_eq!(timing(1500, 500), (100, 500, 2));
        assert_eq!(timing(2000, 1000), (200, 1000, 3));
        assert_eq!(timing(10_000, 1000), (1000, 1000, 11));
        assert_eq!(timing(30_000, 1000), (1000, 1000, 31));
        assert_eq!(timing(30_000, 2000), (2000, 2000, 32));
        // Enough steps to test the goodput for drift.
        assert_eq!(timing(60_000, 1000), (1000, 1000, 61));
        assert_eq!(timing(300_000, 0), (5000, 0, 300));
    }

    #[test]
    fn a_short_trial_has_the_shortest_step_and_an_odd_warm_up_is_cut_at_the_next_one() {
        assert_eq!(timing(500, 0), (100, 0, 1));
        assert_eq!(timing(800, 250), (100, 300, 2));
    }

    #[test]
    fn a_tool_reports_often_enough_that_a_pause_of_300_ms_shows() {
        let step = |duration_ms| {
            let timing = Timing::of_transfer(duration_ms * MS, SECOND, 8).unwrap();
            assert!(timing.interval_ns.is_multiple_of(timing.step_ns));
            assert!(timing.warmup_ns.is_multiple_of(timing.step_ns));
            timing.step_ns / MS
        };
        assert_eq!([1000, 2000, 5000, 10_000].map(step), [100, 200, 100, 200]);
        assert_eq!([30_000, 60_000, 200_000].map(step), [200; 3]);
        // Its output would have no room.
        assert_eq!(step(20 * 3600 * 1000), 60_000);
    }

    #[test]
    fn a_soak_has_a_bounded_number_of_steps() {
        let (interval, warmup, seconds) = timing(20 * 3600 * 1000, 1000);
        assert_eq!(interval, 60_000);
        assert_eq!(warmup, 60_000);
        assert_eq!(seconds, 20 * 3600 + 60);
    }

    #[test]
    fn many_streams_have_fewer_steps_so_that_their_output_is_kept_whole() {
        let hour = 3600 * SECOND;
        let interval = |streams| Timing::of_transfer(hour, SECOND, streams).map(|t| t.interval_ns);
        assert_eq!(interval(8), Some(5 * SECOND));
        assert_eq!(interval(32), Some(10 * SECOND));
        assert_eq!(interval(128), Some(30 * SECOND));
        for streams in 1..=128 {
            let timing = Timing::of_transfer(hour, SECOND, streams).unwrap();
            let steps = hour / timing.interval_ns;
            assert!(steps * 350 * (u64::from(streams) + 1) < OUTPUT_LIMIT_BYTES as u64);
        }
        assert_eq!(Timing::of_transfer(3 * hour, 0, 128), None);
    }

    #[test]
    fn measured_time_is_never_less_than_asked_for() {
        for duration in (100..4000).step_by(130) {
            for warmup in (0..1500).step_by(90) {
                let timing = Timing::of_transfer(duration * MS, warmup * MS, 1).unwrap();
                assert!(timing.measured_ns() >= duration * MS);
                assert!(timing.warmup_ns >= warmup * MS);
            }
        }
    }

    #[test]
    fn a_ping_lasts_its_count_times_its_interval() {
        assert_eq!(Timing::of_ping(1000, 2 * MS).run_ns, 2 * SECOND);
        assert_eq!(Timing::of_ping(1, MS).measured_ns(), MS);
    }
}
