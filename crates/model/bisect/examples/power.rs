//! How often a bisection finds the change, accuses another version, and how long it takes:
//!
//! ```text
//! cargo run --release -p cipherbench-bisect --example power -- [BISECTIONS]
//! ```
//!
//! Each row is a number of bisections of simulated versions, for drops of 2 %. `docs/bisect.md`
//! explains the columns.

use bisect::simulate::{Noise, Versions};
use bisect::{Bisection, Change, Config, Outcome, Step};

/// Two trials of 3 s, each with 1 s for setting up and taking down.
const PAIR_SECONDS: f64 = 8.0;
/// Most versions that a perfect bisection of 64 changes measures, with the bad end.
const STEPS: usize = 7;

struct Case {
    name: &'static str,
    versions: usize,
    changes: Vec<(usize, f64)>,
    noise: Noise,
    broken: std::ops::Range<usize>,
}

fn main() {
    let bisections = std::env::args().nth(1);
    let bisections = bisections.map_or(1000, |text| text.parse().expect("a number of bisections"));
    let scatter = Noise::scatter;
    let loud = Noise {
        outliers: 0.05,
        slowed: 0.3,
        ..scatter(0.03)
    };
    let drifts = Noise {
        drift: -0.001,
        ..scatter(0.03)
    };
    let both = Noise {
        drift: -0.001,
        ..loud
    };
    let case = |name, changes: &[(usize, f64)], noise| Case {
        name,
        versions: 65,
        changes: changes.to_vec(),
        noise,
        broken: 0..0,
    };
    let creeping: Vec<(usize, f64)> = (0..20).map(|step| (3 * step + 2, 0.998)).collect();
    let cases = [
        case("none", &[], scatter(0.03)),
        case("none", &[], loud),
        case("none", &[], drifts),
        case("none", &[], both),
        case("2 % at 40", &[(40, 0.98)], scatter(0.01)),
        case("2 % at 40", &[(40, 0.98)], scatter(0.02)),
        case("2 % at 40", &[(40, 0.98)], scatter(0.03)),
        case("2 % at 1", &[(1, 0.98)], scatter(0.03)),
        case("2 % at 64", &[(64, 0.98)], scatter(0.03)),
        case("2 % at 40", &[(40, 0.98)], loud),
        case("2 % at 40", &[(40, 0.98)], drifts),
        case("2 % at 40", &[(40, 0.98)], both),
        case("5 % at 40", &[(40, 0.95)], scatter(0.03)),
        case("20 % at 40", &[(40, 0.8)], scatter(0.03)),
        case("1 % at 40", &[(40, 0.99)], scatter(0.03)),
        Case {
            versions: 1025,
            ..case("2 % at 700", &[(700, 0.98)], scatter(0.03))
        },
        Case {
            broken: 20..30,
            ..case("2 % at 40, 20 to 29 broken", &[(40, 0.98)], scatter(0.03))
        },
        Case {
            broken: 35..45,
            ..case("2 % at 40, 35 to 44 broken", &[(40, 0.98)], scatter(0.03))
        },
        case(
            "3 % at 20, 3 % at 40",
            &[(20, 0.97), (40, 0.97)],
            scatter(0.03),
        ),
        case(
            "2 % at 20, 10 % at 40",
            &[(20, 0.98), (40, 0.9)],
            scatter(0.03),
        ),
        case(
            "5 % at 20, 3 % back at 40",
            &[(20, 0.95), (40, 1.03)],
            scatter(0.03),
        ),
        case("0.2 % at each of 20", &creeping, scatter(0.03)),
    ];
    println!(
        "| Drop | Versions | Scatter | Outliers | Drift | Right | Wrong | Undecided | Several \
         | {STEPS} steps | Pairs | 95 % | Minutes | All |"
    );
    println!("| --- |{}", " --: |".repeat(13));
    for case in &cases {
        row(case, bisections);
    }
}

fn row(case: &Case, bisections: u64) {
    let total: f64 = case.changes.iter().map(|(_, factor)| factor).product();
    let is_large = total < 0.981;
    let (mut right, mut wrong, mut undecided, mut several, mut few) = (0, 0, 0, 0, 0);
    let (mut found, mut all) = (Vec::new(), Vec::new());
    for seed in 0..bisections {
        let mut versions = Versions::new(case.versions, &case.changes, case.noise, seed);
        versions.broken = case.broken.clone().collect();
        let config = Config {
            seed,
            ..Config::new(case.versions, Change::Drop, 20_000)
        };
        let mut bisection = Bisection::new(config).expect("a configuration");
        let mut until = None;
        while let Step::Measure(_) = bisection.step() {
            versions.step(&mut bisection).expect("both ends build");
            if until.is_none() && bisection.found().is_some() {
                until = Some(bisection.pairs());
            }
        }
        let Step::Done(outcome) = bisection.step() else {
            unreachable!("the loop ends with it")
        };
        match &**outcome {
            Outcome::NoChange(_) if !is_large => right += 1,
            Outcome::NoChange(_) | Outcome::Swapped(_) => wrong += 1,
            Outcome::Undecided { .. } => undecided += 1,
            Outcome::Found(found) => {
                let mut changes = case.changes.iter();
                if changes.any(|(at, _)| (found.first..=found.last).contains(at)) {
                    right += 1;
                } else {
                    wrong += 1;
                }
                several += usize::from(found.several());
            }
        }
        few += usize::from(bisection.measured().len() <= STEPS);
        found.push(until.unwrap_or(bisection.pairs()));
        all.push(bisection.pairs());
    }
    found.sort_unstable();
    all.sort_unstable();
    let percent = |count: usize| format!("{:.1} %", 100.0 * count as f64 / bisections as f64);
    let share = |of: &[usize], percent: usize| of[(of.len() - 1) * percent / 100];
    let slow = share(&found, 95);
    println!(
        "| {} | {} | {} % | {} % | {} % | {} | {} | {} | {} | {} | {} | {slow} | {:.0} | {} |",
        case.name,
        case.versions,
        100.0 * case.noise.scatter,
        100.0 * case.noise.outliers,
        100.0 * case.noise.drift.abs(),
        percent(right),
        percent(wrong),
        percent(undecided),
        percent(several),
        percent(few),
        share(&found, 50),
        slow as f64 * PAIR_SECONDS / 60.0,
        share(&all, 95),
    );
}
