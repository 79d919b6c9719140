//! Bad input, and the order of pairs.

use crate::drops;
use bisect::simulate::{Noise, Versions};
use bisect::{BisectError, Bisection, Change, Config, LogRatio, Order, Step};

fn refused(config: Config) -> String {
    let refused = Bisection::new(config).expect_err("out of range");
    refused.to_string()
}

#[test]
fn parameters_out_of_range_are_refused() {
    let config = |candidates, ppm| Config::new(candidates, Change::Drop, ppm);
    for candidates in [0, 1, usize::MAX] {
        let error = refused(config(candidates, 20_000));
        assert!(error.contains("give at least two"), "{error}");
    }
    for ppm in [0, 99, 900_001, u32::MAX] {
        let error = refused(config(65, ppm));
        assert!(
            error.starts_with(&format!("a change of {ppm} ppm")),
            "{error}"
        );
    }
    for (batch, pairs_max) in [(0, 100), (101, 100), (2, 49)] {
        let error = refused(Config {
            batch,
            pairs_max,
            ..config(65, 20_000)
        });
        assert!(error.contains("a batch is 1 to 100"), "{error}");
    }
}

#[test]
fn figures_without_a_ratio_are_refused() {
    for (candidate, reference) in [
        (0.0, 1.0),
        (1.0, 0.0),
        (-1.0, -1.0),
        (f64::NAN, 1.0),
        (1.0, f64::INFINITY),
        (1e300, 1e-300),
    ] {
        let error = LogRatio::of(candidate, reference).expect_err("no ratio");
        assert!(
            error
                .to_string()
                .contains("record only pairs of valid figures")
        );
    }
    LogRatio::of(5e-9, 1.0).expect("any unit will do");
}

#[test]
fn records_that_were_not_asked_for_are_refused() {
    let mut bisection = drops(65, 1);
    let ratio = LogRatio::of(1.0, 1.0).expect("figures");
    let error = bisection.record(&[]).expect_err("none");
    assert_eq!(error, BisectError::NotAsked { found: 0, asked: 2 });
    let error = bisection.record(&[ratio; 3]).expect_err("one too many");
    assert_eq!(error, BisectError::NotAsked { found: 3, asked: 2 });
    assert_eq!(bisection.pairs(), 0);
    let error = bisection.skip(7).expect_err("not asked for");
    assert_eq!(error, BisectError::SkippedOther { candidate: 7 });
}

#[test]
fn an_end_that_does_not_build_ends_it_with_an_error() {
    let mut bisection = drops(65, 1);
    let error = bisection.skip(64).expect_err("the bad end").to_string();
    assert!(
        error.starts_with("the bad end cannot be skipped"),
        "{error}"
    );
    let error = bisection.skip(0).expect_err("the good end").to_string();
    assert!(
        error.starts_with("the good end cannot be skipped"),
        "{error}"
    );
}

#[test]
fn nothing_is_recorded_after_the_end() {
    let mut bisection = drops(65, 1);
    let mut versions = Versions::new(65, &[], Noise::scatter(0.001), 1);
    versions.run(&mut bisection).expect("both ends build");
    let ratio = LogRatio::of(1.0, 1.0).expect("figures");
    assert_eq!(bisection.record(&[ratio]), Err(BisectError::Ended));
    assert_eq!(bisection.skip(64), Err(BisectError::Ended));
}

#[test]
fn either_of_a_pair_is_first_about_as_often() {
    let first = (0..1000).filter(|seed| {
        let bisection = drops(65, *seed);
        let Step::Measure(ask) = bisection.step() else {
            panic!("a new bisection asks")
        };
        ask.pairs[1] == Order::CandidateFirst
    });
    let first = first.count();
    assert!((440..560).contains(&first), "{first} of 1000");
}
