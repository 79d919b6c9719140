//! Prints the cost of searches on simulated devices: time, trials, bounds found and the true limit.
//!
//! ```sh
//! cargo run -p cipherbench-search --example compare [SEED]
//! ```

use std::env;
use std::error::Error;

use search::simulate::{Behaviour, Device, run};
use search::{Goal, Limits, Method, Outcome};

const SECOND: u64 = 1_000_000_000;

/// Loads that may be tried, in frames/s: 64-byte frames on 10 Gbit/s.
const MIN_LOAD: u64 = 10_000;
const MAX_LOAD: u64 = 14_880_952;

/// Drain and set-up of each trial.
const OVERHEAD_NS: u64 = SECOND / 10;

const CAPACITY: u64 = 3_141_592;

/// Zero loss in half of 2 s, by trials from 50 ms to 1 s.
const SECONDS: Goal = Goal {
    loss_ratio_ppm: 0,
    exceed_ratio_ppm: 500_000,
    initial_trial_ns: SECOND / 20,
    final_trial_ns: SECOND,
    duration_sum_ns: 2 * SECOND,
    width_ppm: 5_000,
};

/// Zero loss in one trial of 60 s, by trials from 1 s on.
const MINUTE: Goal = Goal {
    loss_ratio_ppm: 0,
    exceed_ratio_ppm: 0,
    initial_trial_ns: SECOND,
    final_trial_ns: 60 * SECOND,
    duration_sum_ns: 60 * SECOND,
    width_ppm: 5_000,
};

/// The same by trials of 60 s only.
const MINUTE_ONLY: Goal = Goal {
    initial_trial_ns: 60 * SECOND,
    ..MINUTE
};

/// Zero loss in one of two trials of 60 s.
const TST009: Goal = Goal {
    exceed_ratio_ppm: 500_000,
    duration_sum_ns: 120 * SECOND,
    ..MINUTE_ONLY
};

/// The same goal with a loss ratio of half a per cent.
const fn partial(goal: Goal) -> Goal {
    Goal {
        loss_ratio_ppm: 5_000,
        ..goal
    }
}

/// Each search with its name and its goals: NDR, and PDR where there are two. All have the same
/// width.
const SEARCHES: [(&str, Method, &[Goal]); 6] = [
    (
        "MLRsearch, 50 ms to 1 s",
        Method::Mlr,
        &[SECONDS, partial(SECONDS)],
    ),
    ("MLRsearch, 1 s to 60 s", Method::Mlr, &[MINUTE]),
    (
        "MLRsearch, 1 s to 60 s",
        Method::Mlr,
        &[MINUTE, partial(MINUTE)],
    ),
    ("MLRsearch, 60 s", Method::Mlr, &[MINUTE_ONLY]),
    ("bisection, 60 s", Method::Bisection, &[MINUTE_ONLY]),
    ("bisection, TST 009, 60 s", Method::Tst009, &[TST009]),
];

/// Each device with its name and its true limit.
const DEVICES: [(&str, &str, Behaviour); 8] = [
    (
        "hard limit",
        "carries 3141592 frames/s (PDR 3157379)",
        Behaviour::Hard { capacity: CAPACITY },
    ),
    (
        "collapsing",
        "carries 3141592 frames/s, and in an overload loses two frames for each one too many",
        Behaviour::Collapsing {
            capacity: CAPACITY,
            cost_ppm: 1_000_000,
        },
    ),
    (
        "noisy",
        "carries 3141592 frames/s; from 5 % below, the nearer the more trials lose a little",
        Behaviour::Noisy {
            capacity: CAPACITY,
            band_ppm: 50_000,
        },
    ),
    (
        "two bands",
        "carries 3000000 frames/s in three trials of ten, 3300000 in the others",
        Behaviour::TwoBands {
            low: 3_000_000,
            high: 3_300_000,
            low_ppm: 300_000,
        },
    ),
    (
        "queue",
        "carries 3141592 frames/s behind 200000 places, which a trial of 64 ms fills at twice that",
        Behaviour::Queue {
            capacity: CAPACITY,
            frames: 200_000,
        },
    ),
    (
        "drifting",
        "carries 3141592 frames/s at first, 300 less each second",
        Behaviour::Drifting {
            capacity: CAPACITY,
            per_second: -300,
        },
    ),
    (
        "lossy",
        "carries 3141592 frames/s and loses one frame in 100000 at any load",
        Behaviour::Lossy {
            capacity: CAPACITY,
            loss_ppm: 10,
        },
    ),
    (
        "tester-limited",
        "carries all; the tester sends 9000000 frames/s at most",
        Behaviour::TesterLimited { rate: 9_000_000 },
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let seed = match env::args().nth(1) {
        Some(seed) => seed.parse()?,
        None => 1,
    };
    let overhead = OVERHEAD_NS / 1_000_000;
    println!("Loads from {MIN_LOAD} to {MAX_LOAD} frames/s, width 0.5 %.");
    println!("Each trial takes {overhead} ms more than its duration. Seed {seed}.");
    for (name, truth, behaviour) in DEVICES {
        println!("\n{name}: {truth}");
        println!(
            "  {:<24} {:>8} {:>6}  {:<4} {:>9} {:>9}",
            "search", "time", "trials", "goal", "lower", "upper"
        );
        for (search, method, goals) in SEARCHES {
            print(search, method, goals, Device::new(behaviour, seed))?;
        }
    }
    Ok(())
}

/// Makes a search and prints a row for each of its goals.
fn print(
    name: &str,
    method: Method,
    goals: &[Goal],
    mut device: Device,
) -> Result<(), Box<dyn Error>> {
    let mut search = method.start(goals, MIN_LOAD, MAX_LOAD, Limits::time(7_200 * SECOND))?;
    run(search.as_mut(), &mut device, OVERHEAD_NS);
    let time = search.took_ns() as f64 / SECOND as f64;
    let mut head = format!("{name:<24} {time:>6.1} s {:>6}", search.trials());
    for (place, goal) in goals.iter().enumerate() {
        let bounds = search.bounds(place);
        let goal = if goal.loss_ratio_ppm == 0 {
            "NDR"
        } else {
            "PDR"
        };
        let outcome = match bounds.outcome {
            Outcome::Regular => "",
            Outcome::MaxLoadMeets => "the highest load passes",
            Outcome::MinLoadFails => "the lowest load fails",
            Outcome::Unfinished => "out of time",
        };
        let (lower, upper) = (load(bounds.lower), load(bounds.upper));
        let row = format!("  {head:<40}  {goal:<4} {lower:>9} {upper:>9}  {outcome}");
        println!("{}", row.trim_end());
        head.clear();
    }
    Ok(())
}

fn load(bound: Option<u64>) -> String {
    bound.map_or_else(|| "-".to_owned(), |load| load.to_string())
}
