//! A bisection continues from its entries.

use crate::{NOISY, drops};
use bisect::simulate::{Noise, Versions};
use bisect::{BisectError, Bisection, Change, Config, Entry, LogRatio, Step};
use proptest::prelude::*;

fn config(seed: u64) -> Config {
    Config {
        seed,
        ..Config::new(33, Change::Drop, 20_000)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_bisection_is_the_same_from_its_entries_at_any_point(
        guilty in 1_usize..33,
        seed: u64,
        broken in prop::collection::vec(1_usize..32, 0..4),
        scatter in 0.001_f64..0.02,
    ) {
        let mut versions = Versions::new(33, &[(guilty, 0.95)], Noise::scatter(scatter), seed);
        versions.broken = broken;
        let mut bisection = Bisection::new(config(seed)).expect("a configuration");
        let mut steps = vec![bisection.step().clone()];
        while let Step::Measure(_) = bisection.step() {
            versions.step(&mut bisection).expect("both ends build");
            steps.push(bisection.step().clone());
        }
        let entries = serde_json::to_string(bisection.entries()).expect("plain values");
        let entries: Vec<Entry> = serde_json::from_str(&entries).expect("what was written");
        prop_assert_eq!(&entries[..], bisection.entries());
        for (at, step) in steps.iter().enumerate() {
            let resumed = Bisection::resume(config(seed), &entries[..at]).expect("its entries");
            prop_assert_eq!(resumed.step(), step);
            prop_assert_eq!(resumed.entries(), &entries[..at]);
        }
    }
}

#[test]
fn an_interrupted_batch_counts_as_far_as_it_was_measured() {
    let mut versions = Versions::new(65, &[(40, 0.95)], NOISY, 1);
    let mut bisection = drops(65, 1);
    let Step::Measure(ask) = bisection.step().clone() else {
        panic!("a new bisection asks")
    };
    let ratios = versions.measure(&ask).expect("figures");
    bisection.record(&ratios[..1]).expect("the first one");
    assert_eq!(bisection.pairs(), 1);
    let Step::Measure(next) = bisection.step() else {
        panic!("one pair decides nothing")
    };
    // The order of the second pair is the one that was drawn for it.
    assert_eq!(next.pairs[0], ask.pairs[1]);
}

#[test]
fn entries_of_another_bisection_are_refused() {
    let ratio = LogRatio::of(98.0, 100.0).expect("figures");
    let pairs = |candidate, reference| Entry::Pairs {
        candidate,
        reference,
        log_ratios_e9: vec![ratio],
    };
    let resume = |entries: &[Entry]| {
        let resumed = Bisection::resume(config(1), entries);
        resumed.expect_err("not its entries").to_string()
    };
    let error = resume(&[pairs(32, 0), pairs(16, 0)]);
    assert_eq!(
        error,
        "entry 2 of the record is about candidates (16, 0), but (32, 0) were asked for there; it \
         belongs to another bisection or another version of the program: begin again"
    );
    let error = resume(&[Entry::Skipped { candidate: 5 }]);
    assert!(
        error.starts_with("entry 1 of the record is about candidates (5, 5)"),
        "{error}"
    );
    // An end that did not build ended the bisection, and was never recorded.
    let error = Bisection::resume(config(1), &[Entry::Skipped { candidate: 32 }]);
    assert_eq!(error.expect_err("an end"), BisectError::EndSkipped("bad"));
}

#[test]
fn entries_after_the_end_are_refused() {
    let mut versions = Versions::new(33, &[], Noise::scatter(0.001), 1);
    let mut bisection = Bisection::new(config(1)).expect("a configuration");
    versions.run(&mut bisection).expect("both ends build");
    let mut entries = bisection.entries().to_vec();
    entries.extend(entries.last().cloned());
    let error = Bisection::resume(config(1), &entries).expect_err("an entry too many");
    assert!(
        error
            .to_string()
            .contains("but the bisection has ended there"),
        "{error}"
    );
}
