//! Errors and power over many bisections. `make bisect-power` prints more of them.

use crate::{NOISY, run};
use bisect::Outcome;
use bisect::simulate::{Noise, Versions};

const BISECTIONS: u64 = 400;
/// Two trials of 3 s, each with 1 s for setting up and taking down.
const PAIR_SECONDS: usize = 8;

/// One of twenty figures is slowed by 30 %, while the machine loses a tenth of its speed every
/// hundred figures.
const BUSY: Noise = Noise {
    outliers: 0.05,
    slowed: 0.3,
    drift: -0.001,
    ..NOISY
};

/// Bisections that name a version, and those of them that name the changed one.
struct Named {
    any: usize,
    right: usize,
    /// Of all bisections, pairs of the one that is slower than 95 % of the others.
    pairs: usize,
    /// Bisections with 7 versions at most.
    few: usize,
    /// Results whose interval contains the true change.
    covered: usize,
}

fn bisect(noise: Noise, change: Option<(usize, f64)>) -> Named {
    let mut pairs = Vec::new();
    let mut named = Named {
        any: 0,
        right: 0,
        pairs: 0,
        few: 0,
        covered: 0,
    };
    for seed in 0..BISECTIONS {
        let mut versions = Versions::new(65, change.as_slice(), noise, 1 << 32 | seed);
        let mut bisection = crate::drops(65, seed);
        let mut until = None;
        while let bisect::Step::Measure(_) = bisection.step() {
            versions.step(&mut bisection).expect("both ends build");
            if until.is_none() && bisection.found().is_some() {
                until = Some(bisection.pairs());
            }
        }
        pairs.push(until.unwrap_or(bisection.pairs()));
        named.few += usize::from(bisection.measured().len() <= 7);
        if let (Some(found), Some((guilty, factor))) = (bisection.found(), change) {
            named.right += usize::from((found.first, found.last) == (guilty, guilty));
            let change = found.change;
            named.covered += usize::from(change.low <= factor && factor <= change.high);
        }
        named.any += usize::from(bisection.found().is_some());
    }
    pairs.sort_unstable();
    named.pairs = pairs[pairs.len() * 95 / 100];
    named
}

/// At least 95 %.
fn is_most(count: usize) -> bool {
    count * 100 >= BISECTIONS as usize * 95
}

#[test]
fn nothing_is_accused_when_nothing_changed() {
    for noise in [NOISY, BUSY, Noise::scatter(0.001)] {
        let named = bisect(noise, None);
        let any = named.any;
        assert!(
            any * 100 <= BISECTIONS as usize * 5,
            "{any} accused at {noise:?}"
        );
    }
}

#[test]
fn equal_ends_are_mostly_reported_as_equal() {
    let equal = (0..BISECTIONS).filter(|seed| {
        let (_, outcome) = run(&mut Versions::new(65, &[], NOISY, *seed), *seed);
        matches!(outcome, Outcome::NoChange(_))
    });
    assert!(is_most(equal.count()));
}

#[test]
fn a_drop_of_two_per_cent_is_found_at_three_per_cent_of_noise_within_90_minutes() {
    for noise in [NOISY, BUSY] {
        let named = bisect(noise, Some((40, 0.98)));
        assert!(is_most(named.right), "{} right at {noise:?}", named.right);
        let wrong = named.any - named.right;
        assert!(
            wrong * 100 <= BISECTIONS as usize * 5,
            "{wrong} wrong at {noise:?}"
        );
        if noise == NOISY {
            let minutes = named.pairs * PAIR_SECONDS / 60;
            assert!(minutes < 90, "{minutes} minutes");
        }
        assert!(
            is_most(named.covered),
            "{} covered at {noise:?}",
            named.covered
        );
    }
}

#[test]
fn seven_versions_are_enough_if_the_change_exceeds_the_noise() {
    for (noise, factor) in [(Noise::scatter(0.01), 0.98), (NOISY, 0.9)] {
        let named = bisect(noise, Some((23, factor)));
        assert!(
            is_most(named.few),
            "{} of {BISECTIONS} at {noise:?}",
            named.few
        );
        assert!(is_most(named.right), "{} right at {noise:?}", named.right);
    }
}
