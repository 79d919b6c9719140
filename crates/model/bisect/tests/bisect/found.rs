//! Results on machines that hardly scatter, where one outcome is right.

use crate::{QUIET, drops, run};
use bisect::simulate::{Noise, Versions};
use bisect::{
    Bisection, Change, Config, Estimate, LocatedChange, Outcome, Rest, Step, Test, Undecided,
};
use std::collections::BTreeSet;

fn found(outcome: &Outcome) -> &LocatedChange {
    match outcome {
        Outcome::Found(found) => found,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_of_64_changes_is_found_by_7_versions() {
    let (mut covered, mut several) = (0, 0);
    for guilty in 1..=64 {
        let mut versions = Versions::new(65, &[(guilty, 0.98)], QUIET, 1);
        let (bisection, outcome) = run(&mut versions, guilty as u64);
        let found = found(&outcome);
        assert_eq!((found.first, found.last), (guilty, guilty));
        assert!(bisection.measured().len() <= 7, "{guilty}: {bisection:?}");
        assert!(found.probability > 0.99);
        let Estimate { low, high, .. } = found.change;
        assert!(0.97 < low && high < 0.99, "{found:?}");
        covered += usize::from(low <= 0.98 && 0.98 <= high);
        several += usize::from(found.several());
    }
    // Errors of 5 and of 4 % at most.
    assert!(covered >= 58, "{covered} of 64 intervals");
    assert!(several <= 6, "{several} of 64 with another change");
}

#[test]
fn the_change_is_found_among_any_number_of_versions() {
    for candidates in (2..20).chain([33, 100, 1000]) {
        for guilty in [1, candidates / 2, candidates - 1] {
            let guilty = guilty.max(1);
            let mut versions = Versions::new(candidates, &[(guilty, 0.9)], QUIET, 2);
            let (_, outcome) = run(&mut versions, 1);
            let found = found(&outcome);
            assert_eq!(
                (found.first, found.last),
                (guilty, guilty),
                "of {candidates}"
            );
            let is_adjacent = |rest| rest == Rest::Adjacent;
            assert_eq!(is_adjacent(found.before), guilty == 1);
            assert_eq!(is_adjacent(found.after), guilty == candidates - 1);
        }
    }
}

#[test]
fn figures_that_do_not_scatter_at_all_are_enough() {
    let mut versions = Versions::new(65, &[(40, 0.98)], Noise::scatter(0.0), 1);
    let (_, outcome) = run(&mut versions, 1);
    let found = found(&outcome);
    assert_eq!((found.first, found.last), (40, 40));
    assert!((found.change.ratio - 0.98).abs() < 1e-6);
}

#[test]
fn ends_without_a_difference_are_reported_before_anything_between_is_built() {
    let mut versions = Versions::new(65, &[], QUIET, 1);
    let (bisection, outcome) = run(&mut versions, 1);
    let Outcome::NoChange(total) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(total.low <= 1.0 && 1.0 <= total.high);
    assert_eq!(bisection.measured(), &BTreeSet::from([64]));
}

#[test]
fn a_change_between_versions_that_is_taken_back_is_none() {
    let mut versions = Versions::new(65, &[(10, 0.9), (20, 1.0 / 0.9)], QUIET, 1);
    let (_, outcome) = run(&mut versions, 1);
    assert!(matches!(outcome, Outcome::NoChange(_)), "{outcome:?}");
}

#[test]
fn swapped_ends_are_reported_before_anything_between_is_built() {
    let mut versions = Versions::new(65, &[(40, 1.05)], QUIET, 1);
    let (bisection, outcome) = run(&mut versions, 1);
    let Outcome::Swapped(total) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(total.low > 1.0);
    assert_eq!(bisection.measured(), &BTreeSet::from([64]));
}

#[test]
fn a_rise_is_found_and_a_drop_is_then_swapped() {
    let config = Config::new(65, Change::Rise, 20_000);
    let mut bisection = Bisection::new(config.clone()).expect("a configuration");
    let mut versions = Versions::new(65, &[(7, 1.03)], QUIET, 1);
    let outcome = versions.run(&mut bisection).expect("both ends build");
    let found = found(&outcome);
    assert_eq!((found.first, found.last), (7, 7));
    assert!(
        found.change.low > 1.0 && found.change.high < 1.06,
        "{found:?}"
    );
    let mut bisection = Bisection::new(config).expect("a configuration");
    let mut versions = Versions::new(65, &[(7, 0.97)], QUIET, 1);
    let outcome = versions.run(&mut bisection).expect("both ends build");
    assert!(matches!(outcome, Outcome::Swapped(_)), "{outcome:?}");
}

#[test]
fn versions_that_do_not_build_are_passed_over() {
    let mut versions = Versions::new(65, &[(40, 0.95)], QUIET, 1);
    versions.broken = (30..36).collect();
    let (bisection, outcome) = run(&mut versions, 1);
    let found = found(&outcome);
    assert_eq!((found.first, found.last), (40, 40));
    // Those in the middle of the broken range are not all tried: the search moves away from it.
    assert!(bisection.skipped().len() <= 3, "{:?}", bisection.skipped());
}

#[test]
fn a_change_among_versions_that_do_not_build_ends_with_their_range() {
    let mut versions = Versions::new(65, &[(40, 0.95)], QUIET, 1);
    versions.broken = (35..45).collect();
    let (bisection, outcome) = run(&mut versions, 1);
    let found = found(&outcome);
    // 45 builds and has the change; 35 to 44 do not build.
    assert_eq!((found.first, found.last), (35, 45));
    assert_eq!(bisection.skipped(), &(35..45).collect());
    assert!(found.probability > 0.975);
}

#[test]
fn the_range_is_everything_if_only_the_ends_build() {
    let mut versions = Versions::new(9, &[(4, 0.95)], QUIET, 1);
    versions.broken = (1..8).collect();
    let (_, outcome) = run(&mut versions, 1);
    let found = found(&outcome);
    assert_eq!((found.first, found.last), (1, 8));
    assert_eq!(
        (found.before, found.after),
        (Rest::Adjacent, Rest::Adjacent)
    );
}

#[test]
fn the_first_of_two_changes_is_found_and_the_other_noticed() {
    // The first change is found: versions after it are worse than the good one.
    let mut versions = Versions::new(65, &[(20, 0.97), (40, 0.9)], QUIET, 1);
    let (_, outcome) = run(&mut versions, 1);
    let first = found(&outcome);
    assert_eq!((first.first, first.last), (20, 20));
    assert!(first.several());
    assert!(matches!(first.before, Rest::Excluded(_)), "{first:?}");
    let Rest::Change(after) = first.after else {
        panic!("{first:?}")
    };
    assert!(0.89 < after.low && after.high < 0.91, "{first:?}");
}

#[test]
fn a_change_that_is_partly_taken_back_is_noticed() {
    let mut versions = Versions::new(65, &[(20, 0.9), (40, 1.05)], QUIET, 1);
    let (_, outcome) = run(&mut versions, 1);
    let found = found(&outcome);
    assert_eq!((found.first, found.last), (20, 20));
    let Rest::Change(after) = found.after else {
        panic!("{found:?}")
    };
    assert!(after.low > 1.0, "{found:?}");
}

#[test]
fn a_change_in_many_small_steps_accuses_none_of_them() {
    let steps: Vec<(usize, f64)> = (1..65).map(|at| (at, 0.9995)).collect();
    let mut versions = Versions::new(65, &steps, QUIET, 1);
    let (_, outcome) = run(&mut versions, 1);
    let Outcome::Undecided {
        why,
        suspects,
        total,
    } = outcome
    else {
        panic!("{outcome:?}")
    };
    assert_eq!(why, Undecided::Spread);
    let suspects = suspects.expect("the ends differ");
    assert!(!suspects.is_empty());
    assert!(total.high < 0.98, "{total:?}");
}

#[test]
fn the_limit_on_pairs_ends_it_undecided() {
    let config = Config {
        pairs_max: 50,
        ..Config::new(65, Change::Drop, 20_000)
    };
    let mut bisection = Bisection::new(config).expect("a configuration");
    let mut versions = Versions::new(65, &[(40, 0.98)], Noise::scatter(0.1), 1);
    let outcome = versions.run(&mut bisection).expect("both ends build");
    let Outcome::Undecided { why, suspects, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((why, suspects), (Undecided::Limit, None));
    assert_eq!(bisection.pairs(), 50);
}

#[test]
fn a_result_outlives_the_limit_that_ends_tests_for_other_changes() {
    let mut versions = Versions::new(65, &[(40, 0.8)], Noise::scatter(0.03), 1);
    let (bisection, _) = run(&mut versions, 1);
    let mut until = drops(65, 1);
    let mut versions = Versions::new(65, &[(40, 0.8)], Noise::scatter(0.03), 1);
    while until.found().is_none() {
        versions.step(&mut until).expect("both ends build");
    }
    assert!(until.pairs() + 2 < bisection.pairs());
    let config = Config {
        pairs_max: until.pairs() as u32 + 1,
        seed: 1,
        ..Config::new(65, Change::Drop, 20_000)
    };
    let mut limited = Bisection::new(config).expect("a configuration");
    let mut versions = Versions::new(65, &[(40, 0.8)], Noise::scatter(0.03), 1);
    let outcome = versions.run(&mut limited).expect("both ends build");
    let found = found(&outcome);
    assert_eq!((found.first, found.last), (40, 40));
    assert_eq!(
        (found.before, found.after),
        (Rest::Undecided, Rest::Undecided)
    );
}

#[test]
fn a_result_stays_if_its_version_can_be_measured_no_more() {
    let mut versions = Versions::new(65, &[(40, 0.9)], QUIET, 1);
    let mut bisection = drops(65, 1);
    while bisection.found().is_none() {
        versions.step(&mut bisection).expect("both ends build");
    }
    versions.broken = vec![39, 40];
    let outcome = versions.run(&mut bisection).expect("both ends build");
    let found = found(&outcome);
    assert_eq!((found.first, found.last), (40, 40));
    assert_eq!(found.after, Rest::Undecided);
}

#[test]
fn a_version_that_can_be_measured_no_more_widens_the_range() {
    let mut versions = Versions::new(65, &[(40, 0.9)], QUIET, 1);
    let mut bisection = drops(65, 1);
    while !matches!(bisection.step(), Step::Measure(ask) if ask.test == Test::Confirm) {
        versions.step(&mut bisection).expect("both ends build");
    }
    versions.broken = vec![40];
    let outcome = versions.run(&mut bisection).expect("both ends build");
    let found = found(&outcome);
    assert_eq!((found.first, found.last), (40, 41));
}

#[test]
fn the_first_thing_measured_is_the_bad_end() {
    let Step::Measure(ask) = drops(65, 1).step().clone() else {
        panic!("a new bisection asks")
    };
    assert_eq!(
        (ask.test, ask.candidate, ask.reference),
        (Test::Ends, 64, 0)
    );
}
