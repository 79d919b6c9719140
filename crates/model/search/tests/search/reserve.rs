//! What a device saved before is not what it carries: token buckets, and trials of other forms that
//! are none.

use search::simulate::{Behaviour, Device, run};
use search::{
    Class, Counts, DELAY_SLICES, DelaySlice, Goal, Limits, Method, Reserve, Trial, classify,
};

use crate::delay::profiles;
use crate::{MAX_LOAD, MILLI, MIN_LOAD, NDR, SECOND, truth};

const CAPACITY: u64 = 3_141_592;
/// Frames of a slice, at the load.
const SLICE: u64 = 1_000;
const TRIAL_NS: u64 = SECOND / 2;

/// What a trial shows in which each slice received this many of a thousand frames, with a mean
/// delay in milliseconds.
fn shown(slice: impl Fn(usize) -> (u64, i64)) -> Option<Reserve> {
    let slices: Vec<_> = (0..DELAY_SLICES)
        .map(|place| {
            let (frames, ms) = slice(place);
            let mean_ns = ms * MILLI as i64;
            DelaySlice { frames, mean_ns }
        })
        .collect();
    Reserve::of(&slices, SLICE * DELAY_SLICES as u64, TRIAL_NS, 0)
}

/// Frames in a second at a rate of this many in a slice.
fn rate(in_slice: u64) -> u64 {
    in_slice * DELAY_SLICES as u64 * SECOND / TRIAL_NS
}

#[test]
fn frames_that_pass_until_a_bucket_is_empty_are_its_depth() {
    for whole in [0, 1, 6, 11] {
        let found = shown(|place| match place {
            place if place < whole => (SLICE, 0),
            place if place == whole => (900, 0),
            _ => (500, 0),
        });
        let frames = 500 * whole as u64 + 400;
        let expected = Reserve {
            rate: rate(500),
            frames,
            saved: frames,
        };
        assert_eq!(found, Some(expected), "{whole}");
    }
}

#[test]
fn a_queue_that_fills_is_no_bucket_and_a_bucket_before_a_queue_is_one() {
    // At half of the load, 10 slices of frames take 667 ms; a queue of 3 slices delays by 200 ms.
    let behind = |delay_ms| {
        shown(|place| match place {
            0..6 => (SLICE, delay_ms * place as i64 / 6),
            6 => (500, delay_ms),
            _ => (500, delay_ms),
        })
    };
    assert_eq!(behind(200), None);
    let found = behind(50).unwrap();
    assert_eq!((found.rate, found.frames), (rate(500), 3_000));
    assert!((2_200..2_300).contains(&found.saved), "{found:?}");
}

#[test]
fn trials_of_other_forms_show_no_reserve() {
    let none = [
        ("nothing lost", [SLICE; DELAY_SLICES]),
        ("an even loss", [900; DELAY_SLICES]),
        ("everything lost", [0; DELAY_SLICES]),
        (
            "dead in the middle",
            std::array::from_fn(|place| if place < 7 { SLICE } else { 0 }),
        ),
        (
            "slow at first",
            std::array::from_fn(|place| if place < 3 { 600 } else { 900 }),
        ),
        (
            "a stall in the middle",
            std::array::from_fn(|place| if place == 7 { 0 } else { SLICE }),
        ),
        (
            "a stall at the end",
            std::array::from_fn(|place| if place > 12 { 300 } else { SLICE }),
        ),
        (
            "slower in the last third",
            std::array::from_fn(|place| if place < 10 { 900 } else { 850 }),
        ),
        (
            "ever slower",
            std::array::from_fn(|place| SLICE - 30 * place as u64),
        ),
        (
            "a frame in a hundred, once",
            std::array::from_fn(|place| if place == 4 { 990 } else { SLICE }),
        ),
    ];
    for (what, slices) in none {
        assert_eq!(shown(|place| (slices[place], 0)), None, "{what}");
    }
    assert_eq!(Reserve::of(&[], 0, TRIAL_NS, 0), None);
    assert_eq!(Reserve::of(&[DelaySlice::default(); 15], 15, 0, 0), None);
}

/// In every profile, with rests in which a bucket fills in part or whole, or none.
#[test]
fn a_bucket_of_1_ms_to_a_second_moves_no_bound_beyond_1_per_cent_of_the_rate() {
    for (method, goals) in profiles() {
        for burst_ms in [1, 2, 5, 10, 20, 50, 80, 100, 200, 500, 1000] {
            for capacity in [137_531, CAPACITY, 7_000_000] {
                // Not even the highest load would empty it within a trial of half a second.
                if burst_ms * capacity > 400 * (MAX_LOAD - capacity) {
                    continue;
                }
                for rest_ms in [0, 300, 5000] {
                    let device = Behaviour::Bucket {
                        capacity,
                        frames: capacity * burst_ms / 1000,
                    };
                    let limits = Limits::time(24 * 3_600 * SECOND);
                    let search = method.start(&goals, MIN_LOAD, MAX_LOAD, limits);
                    let mut search = search.unwrap();
                    let mut device = Device::new(device, 0);
                    // Each search begins with a trial at the highest load that counts for nothing.
                    let flood = Trial {
                        load: MAX_LOAD,
                        duration_ns: SECOND / 4,
                    };
                    device.measure(flood);
                    if let Some(reserve) = device.reserve() {
                        search.learn(flood, reserve);
                    }
                    device.rest(rest_ms * MILLI);
                    run(search.as_mut(), &mut device, rest_ms * MILLI);
                    for (place, goal) in goals.iter().enumerate() {
                        let found = search.bounds(place);
                        let lower = found.lower.unwrap_or(0);
                        let error = lower as f64 / truth(capacity, goal) as f64 - 1.0;
                        assert!(
                            (-0.03..=0.0105).contains(&error),
                            "{method:?}, burst of {burst_ms} ms at {capacity} frames/s, rests of \
                             {rest_ms} ms: {error:+.4}, {found:?}"
                        );
                    }
                    assert!(search.trials() <= 60, "{} trials", search.trials());
                }
            }
        }
    }
}

fn trial(duration_ms: u64, is_lossy: bool) -> (Trial, Counts) {
    let trial = Trial {
        load: 1_000_000,
        duration_ns: duration_ms * MILLI,
    };
    let intended = 1_000 * duration_ms;
    let counts = Counts {
        intended,
        forwarded: intended - u64::from(is_lossy),
    };
    (trial, counts)
}

#[test]
fn no_shorter_trial_outvotes_a_longer_one() {
    let goal = Goal {
        final_trial_ns: 500 * MILLI,
        duration_sum_ns: SECOND,
        ..NDR
    };
    let made = [trial(1000, true), trial(500, false), trial(500, false)];
    assert_eq!(classify(&made, &goal), Class::UpperBound);
    let many = [vec![trial(1000, true)], vec![trial(999, false); 100]].concat();
    assert_eq!(classify(&many, &goal), Class::UpperBound);
    // One of no less time is a vote as before.
    let made = [trial(1000, true), trial(1000, false)];
    assert_eq!(classify(&made, &goal), Class::LowerBound);
    let made = [trial(500, true), trial(1000, false)];
    assert_eq!(classify(&made, &goal), Class::LowerBound);
}

/// A lossy trial between the final duration and the duration sum leaves a load open; the trial that
/// decides has to be as long.
#[test]
fn a_trial_that_is_asked_for_is_no_shorter_than_those_it_is_to_outvote() {
    let goal = Goal {
        initial_trial_ns: 500 * MILLI,
        final_trial_ns: 500 * MILLI,
        duration_sum_ns: 2 * SECOND,
        ..NDR
    };
    let limits = Limits::time(24 * 3_600 * SECOND);
    let mut search = Method::Mlr
        .start(&[goal], MIN_LOAD, MAX_LOAD, limits)
        .unwrap();
    let mut device = Device::new(Behaviour::Hard { capacity: CAPACITY }, 0);
    run(search.as_mut(), &mut device, 0);
    let lower = search.bounds(0).lower.unwrap();
    let against = Trial {
        load: lower,
        duration_ns: 900 * MILLI,
    };
    let counts = Counts {
        intended: 1_000,
        forwarded: 999,
    };
    // Two of them leave nothing decided: 1.8 s are lossy, 2 s not.
    search.record(against, counts, 0);
    search.record(against, counts, 0);
    let mut asked = 0;
    while let search::Step::Measure(trial) = search.next() {
        assert!(
            trial.load != lower || trial.duration_ns == 900 * MILLI,
            "{trial:?}"
        );
        asked += 1;
        assert!(asked < 100);
        search.record(trial, device.measure(trial), trial.duration_ns);
    }
}
