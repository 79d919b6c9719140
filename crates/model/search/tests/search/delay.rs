//! Loads that a queue carries are too much, whatever else happens to the delay of frames.

use proptest::prelude::*;
use search::simulate::Behaviour;
use search::{Counts, DELAY_SLICES, DelaySlice, DelayTrend, Method};

use crate::{MILLI, NDR, RFC2544, SECOND, TST009, found, mlr, regular, truth};

const CAPACITY: u64 = 3_141_592;
const TRIAL_NS: u64 = SECOND / 2;
const SLICE_NS: i64 = (TRIAL_NS / DELAY_SLICES as u64) as i64;

/// The trend of a trial whose slices have these delays.
fn trend(delay_ns: impl Fn(i64) -> i64) -> DelayTrend {
    let slice = |number: i64| DelaySlice {
        frames: 1000,
        mean_ns: delay_ns(number),
    };
    let slices: Vec<_> = (0..DELAY_SLICES as i64).map(slice).collect();
    DelayTrend::of(&slices).unwrap()
}

/// The excess of a load over what is carried, in parts per million of what is carried, as a queue
/// shows it.
fn excess_ppm(trend: DelayTrend) -> u64 {
    let queued = u64::from(trend.queued_ppm(TRIAL_NS));
    queued * 1_000_000 / (1_000_000 - queued)
}

#[test]
fn a_growing_queue_shows_the_excess_of_the_load() {
    for excess in [15_000, 50_000, 200_000, 3_000_000_i64] {
        let trend = trend(|slice| 40_000 + slice * SLICE_NS * excess / 1_000_000);
        let found = excess_ppm(trend);
        assert!(
            found.abs_diff(excess.unsigned_abs()) <= 20,
            "{excess}: {found}"
        );
    }
}

#[test]
fn a_load_at_the_capacity_is_carried() {
    for excess in [-500_000, 0, 9_000] {
        let trend = trend(|slice| 20 * SLICE_NS + slice * SLICE_NS * excess / 1_000_000);
        assert_eq!(trend.queued_ppm(TRIAL_NS), 0, "{excess}");
    }
}

#[test]
fn a_queue_that_fills_at_the_start_and_stands_is_no_growth() {
    let trend = trend(|slice| {
        if slice < 3 {
            slice * SLICE_NS / 4
        } else {
            SLICE_NS
        }
    });
    assert_eq!(trend.queued_ppm(TRIAL_NS), 0, "{trend:?}");
}

#[test]
fn a_stall_of_the_tenth_of_a_trial_is_no_growth_wherever_it_is() {
    // Frames of the stall and of the time that it takes to catch up are late, the last of them at
    // the end of the trial excepted: what is in the path when the load ends was not carried.
    for start in 0..DELAY_SLICES as i64 - 3 {
        let trend = trend(|slice| match slice - start {
            0 => SLICE_NS * 3 / 2,
            1 => SLICE_NS / 2,
            _ => 50_000,
        });
        assert_eq!(trend.queued_ppm(TRIAL_NS), 0, "{start}: {trend:?}");
    }
}

#[test]
fn the_step_of_a_clock_is_no_growth_and_its_offset_is_nothing() {
    // A step forward in the last third cannot be distinguished from a device that has slowed down.
    for start in 0..DELAY_SLICES as i64 {
        let back = trend(|slice| {
            if slice < start {
                900 * SLICE_NS
            } else {
                -SLICE_NS
            }
        });
        assert_eq!(back.queued_ppm(TRIAL_NS), 0, "{start}: {back:?}");
        let forward = trend(|slice| {
            if slice < start.min(10) {
                0
            } else {
                900 * SLICE_NS
            }
        });
        assert_eq!(forward.queued_ppm(TRIAL_NS), 0, "{start}: {forward:?}");
    }
}

#[test]
fn a_device_that_throttles_in_mid_trial_has_not_carried_the_load() {
    // From the middle on, it carries a fifth less.
    let half = DELAY_SLICES as i64 / 2;
    let trend = trend(|slice| (slice - half).max(0) * SLICE_NS / 4);
    assert!(trend.queued_ppm(TRIAL_NS) > 50_000, "{trend:?}");
}

#[test]
fn short_trials_do_not_take_a_scheduler_for_a_queue() {
    let slice_ns = (50 * MILLI / DELAY_SLICES as u64) as i64;
    let trend = trend(|slice| slice * slice_ns * 35 / 1000);
    assert_eq!(trend.queued_ppm(50 * MILLI), 0, "{trend:?}");
    assert!(trend.queued_ppm(TRIAL_NS / 100) > 0 || trend.growth_ns < 2_000_000);
}

#[test]
fn a_trial_of_which_hardly_a_frame_arrived_has_no_trend() {
    let mut slices = [DelaySlice::default(); DELAY_SLICES];
    assert_eq!(DelayTrend::of(&slices), None);
    assert_eq!(DelayTrend::of(&[]), None);
    for slice in &mut slices[..5] {
        slice.frames = 1;
    }
    assert_eq!(DelayTrend::of(&slices), None);
    // One more is enough, unless there is nothing in between.
    slices[14].frames = 1;
    assert_eq!(DelayTrend::of(&slices), None);
    slices[5].frames = 1;
    slices[14].frames = 0;
    assert!(DelayTrend::of(&slices).is_some());
}

#[test]
fn the_part_of_a_trial_that_was_delivered_shows_the_growth() {
    // The queue was still full when the drain was over: the frames of the last half never came.
    let slices: Vec<_> = (0..DELAY_SLICES as i64)
        .map(|slice| DelaySlice {
            frames: u64::from(slice < 8) * 500,
            mean_ns: slice * SLICE_NS,
        })
        .collect();
    let found = excess_ppm(DelayTrend::of(&slices).unwrap());
    assert!(found.abs_diff(1_000_000) < 20, "{found}");
}

#[test]
fn queued_frames_are_not_forwarded_and_lost_ones_not_lost_twice() {
    let queued = DelayTrend {
        growth_ns: TRIAL_NS as i64,
        ..DelayTrend::default()
    };
    let counts = |forwarded| Counts {
        intended: 1000,
        forwarded,
    };
    assert_eq!(
        counts(1000).sustained(Some(queued), None, TRIAL_NS),
        counts(500)
    );
    assert_eq!(
        counts(300).sustained(Some(queued), None, TRIAL_NS),
        counts(300)
    );
    assert_eq!(counts(999).sustained(None, None, TRIAL_NS), counts(999));
}

/// Goals of the profiles `fast`, `rfc2544` and `tst009`, and what they are searched by.
pub(crate) fn profiles() -> [(Method, Vec<search::Goal>); 3] {
    let fast = search::Goal {
        initial_trial_ns: 100 * MILLI,
        final_trial_ns: 500 * MILLI,
        duration_sum_ns: SECOND,
        width_ppm: 30_000,
        ..NDR
    };
    let pdr = search::Goal {
        loss_ratio_ppm: 5_000,
        ..fast
    };
    [
        (Method::Mlr, vec![fast, pdr]),
        (Method::Mlr, vec![RFC2544]),
        (Method::Tst009, vec![TST009]),
    ]
}

#[test]
fn a_queue_of_10_ms_to_a_second_moves_no_bound_by_3_per_cent_in_any_profile() {
    for (method, goals) in profiles() {
        for queue_ms in [10, 20, 50, 100, 200, 500, 1000] {
            for capacity in [137_531, CAPACITY, 13_000_000, 14_700_000] {
                let device = Behaviour::Queue {
                    capacity,
                    frames: capacity * queue_ms / 1000,
                };
                let search = found(method, &goals, device, 0);
                for (place, goal) in goals.iter().enumerate() {
                    let lower = search.bounds(place).lower.unwrap();
                    let most = truth(capacity, goal).min(crate::MAX_LOAD);
                    let error = lower as f64 / most as f64 - 1.0;
                    assert!(
                        error.abs() <= 0.03,
                        "{method:?}, queue of {queue_ms} ms at {capacity} frames/s: {error:.4}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_queue_makes_a_search_twice_as_long_as_a_hard_limit_at_most() {
    let (_, goals) = &profiles()[0];
    let time = |device| mlr(goals, device, 0).took_ns();
    let hard = time(Behaviour::Hard { capacity: CAPACITY });
    for queue_ms in [10, 50, 200, 1000] {
        let queue = time(Behaviour::Queue {
            capacity: CAPACITY,
            frames: CAPACITY * queue_ms / 1000,
        });
        assert!(
            queue <= 2 * hard,
            "{queue_ms} ms: {queue} ns, without {hard} ns"
        );
    }
    let bounds = mlr(goals, Behaviour::Hard { capacity: CAPACITY }, 0).bounds(0);
    regular(bounds, &goals[0]);
}

proptest! {
    /// Noise of every slice that does not grow is no growth.
    #[test]
    fn noise_below_the_threshold_is_no_growth(
        offset_ns in -1_000_000_000_i64..1_000_000_000,
        noise in prop::collection::vec(0_i64..1_600_000, DELAY_SLICES),
    ) {
        let trend = trend(|slice| offset_ns + noise[slice as usize]);
        prop_assert_eq!(trend.queued_ppm(TRIAL_NS), 0, "{:?}", trend);
    }
}
