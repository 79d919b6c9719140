//! Gates on the figures of one run, and limits of a campaign as JUnit.

use crate::gates::{BASE, LESS, run};
use compare::{Options, Outcome, Run, compare, junit_of_limits};
use plan::Expectation;
use stats::Results;
use std::fs;
use std::path::Path;

#[test]
fn a_gate_on_a_figure_is_about_each_further_run() {
    let (base, less) = (run(1, &[("tcp", BASE)]), run(2, &[("tcp", LESS)]));
    let runs = [("a", &base), ("b", &less)].map(|(name, journal)| Run { name, journal });
    let judged = |gates: &[&str]| {
        let gates = gates.iter().map(|gate| gate.parse().unwrap());
        let options = Options {
            gates: gates.collect(),
            ..Options::default()
        };
        compare(&runs, &options).unwrap().gates
    };
    // The base has 4 Gbit/s, and the other run 5 % less.
    let gates = judged(&[
        "tcp throughput >= 1 kbit/s",
        "tcp throughput drops > 2 %",
        "tcp throughput >= 1 Tbit/s",
        "udp throughput >= 1 kbit/s",
        "tcp throughput >= 90 %",
        "tcp throughput >= 90 % of run=old",
    ]);
    let outcomes: Vec<Outcome> = gates.iter().map(|gate| gate.outcome).collect();
    assert_eq!(
        outcomes,
        [
            Outcome::Passed,
            Outcome::Violated,
            Outcome::Violated,
            Outcome::Undecided,
            Outcome::Passed,
            Outcome::Undecided
        ]
    );
    assert_eq!(gates[0].cells[0].run, 1);
    assert_eq!(gates[0].in_words(), "every figure surely keeps it");
    assert_eq!(gates[3].in_words(), "no cell here is `udp`: there is tcp");
    assert!(gates[5].cells[0].reason.contains("argument of `compare`"));
}

#[test]
fn a_remedy_names_the_run_whose_trials_it_repeats() {
    let mut run = run(1, &[("tcp", BASE)]);
    for trial in &mut run.trials {
        trial.outcome = journal::record::Outcome::Failed {
            reason: "x".to_owned(),
        };
    }
    let options = Options {
        gates: vec!["tcp throughput >= 1 kbit/s".parse().unwrap()],
        ..Options::default()
    };
    let runs = [Run {
        name: "runs/a",
        journal: &run,
    }];
    let found = compare(&runs, &options).unwrap();
    let reason = &found.gates[0].cells[0].reason;
    assert!(
        reason.contains("`cipherbench resume runs/a --invalid`"),
        "{reason}"
    );
}

#[test]
fn limits_are_junit_suites_with_a_failure_or_an_error_for_what_is_not_met() {
    let mut run = run(1, &[("tcp", BASE)]);
    let limit = |limit: &str| Expectation {
        limit: limit.to_owned(),
        stored: None,
    };
    run.header.plan.expect.limits = [
        "tcp throughput >= 1 kbit/s",
        "tcp throughput >= 1 Tbit/s",
        "ping p99 <= 1 ms",
    ]
    .map(limit)
    .to_vec();
    let expected = Results::of(&run).expect.unwrap();
    let xml = junit_of_limits(&expected);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/limits.xml");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(golden.parent().unwrap()).unwrap();
        fs::write(&golden, &xml).unwrap();
    }
    assert_eq!(xml, fs::read_to_string(&golden).unwrap_or_default());
    let document = roxmltree::Document::parse(&xml).unwrap();
    let count = |name: &str| {
        let all = document.descendants();
        all.filter(|node| node.has_tag_name(name)).count()
    };
    assert_eq!(
        (count("testsuite"), count("failure"), count("error")),
        (3, 1, 1)
    );
}
