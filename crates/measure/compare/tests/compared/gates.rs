//! Gates on comparisons.

use crate::made::{cell, journal, measured, record};
use campaign::plan::Cell;
use compare::{Comparison, KINDS, Options, Outcome, Run, compare};
use journal::Journal;
use journal::record::Outcome as Recorded;
use std::fs;
use std::path::Path;

/// A run of those cells with these repeats, in megabytes.
fn run(second: u64, cells: &[(&str, &[u64])]) -> Journal {
    let planned: Vec<Cell> = cells.iter().map(|(group, _)| cell(group, "x")).collect();
    let repeats = cells
        .iter()
        .map(|(_, values)| values.len())
        .max()
        .unwrap_or(1);
    let mut run = journal(planned, repeats as u32, second);
    for (group, values) in cells {
        for (repeat, value) in (1..).zip(*values) {
            record(
                &mut run,
                &format!("{group}/x"),
                repeat,
                measured(value * 1_000_000),
            );
        }
    }
    run
}

fn judged(base: &Journal, other: &Journal, gate: &str) -> Comparison {
    let options = Options {
        gates: vec![gate.parse().unwrap()],
        ..Options::default()
    };
    let runs = [("a", base), ("b", other)].map(|(name, journal)| Run { name, journal });
    compare(&runs, &options).unwrap()
}

fn outcome(base: &Journal, other: &Journal, gate: &str) -> Outcome {
    judged(base, other, gate).outcome()
}

/// Scatter of about 1 %; five per cent less than `BASE`.
const BASE: &[u64] = &[990, 1000, 1010, 1000, 1005, 995, 1000, 1008];
const LESS: &[u64] = &[940, 950, 960, 950, 955, 945, 950, 958];

#[test]
fn an_interval_beyond_the_bound_violates_and_one_that_crosses_it_is_undecided() {
    let (base, less) = (run(1, &[("tcp", BASE)]), run(2, &[("tcp", LESS)]));
    for (gate, expected) in [
        ("throughput drops > 2 %", Outcome::Violated),
        ("tcp throughput drops > 5 %", Outcome::Undecided),
        ("throughput drops > 10 %", Outcome::Passed),
        ("throughput rises > 0 %", Outcome::Passed),
        ("udp throughput drops > 10 %", Outcome::Undecided),
        ("dut=y throughput drops > 10 %", Outcome::Undecided),
        ("dut=x mtu=1500 throughput drops > 10 %", Outcome::Passed),
        ("mtu=1300 throughput drops > 10 %", Outcome::Undecided),
        // TCP has none.
        ("p99 rises > 10 %", Outcome::Undecided),
    ] {
        assert_eq!(outcome(&base, &less, gate), expected, "{gate}");
    }
    assert_eq!(
        outcome(&less, &base, "throughput rises > 2 %"),
        Outcome::Violated
    );
    assert_eq!(
        outcome(&less, &base, "throughput drops > 2 %"),
        Outcome::Passed
    );
}

#[test]
fn a_figure_that_has_gone_is_not_passed() {
    let base = run(1, &[("tcp", BASE), ("tcp/streams=2", BASE)]);
    let mut other = run(2, &[("tcp", BASE), ("tcp/streams=2", &[])]);
    let failed = Recorded::Failed {
        reason: "the device died".into(),
    };
    record(&mut other, "tcp/streams=2/x", 1, failed);
    let comparison = judged(&base, &other, "tcp throughput drops > 50 %");
    assert_eq!(comparison.outcome(), Outcome::Undecided);
    let without = &comparison.pairs[0].without_change;
    assert_eq!(without.len(), 1);
    assert_eq!(without[0].reason, "the other run's failed: the device died");
    // A gate on other cells does not know of it.
    assert_eq!(
        outcome(&base, &other, "streams=4 throughput drops > 50 %"),
        Outcome::Passed
    );
}

#[test]
fn one_repeat_and_equal_repeats_are_undecided() {
    let base = run(1, &[("tcp", BASE)]);
    for few in [&[500][..], &[1000, 1000, 1000]] {
        let few = run(2, &[("tcp", few)]);
        let against = run(3, &[("tcp", &[900, 900, 900])]);
        assert_eq!(
            outcome(&few, &against, "throughput drops > 1 %"),
            Outcome::Undecided
        );
    }
    let single = run(2, &[("tcp", &[500])]);
    assert_eq!(
        outcome(&base, &single, "throughput drops > 1 %"),
        Outcome::Undecided
    );
}

#[test]
fn every_kind_of_trial_is_known() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../campaigns");
    let host = campaign::HostFacts { cores: 64 };
    let mut found = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "yaml") {
            continue;
        }
        let campaign = campaign::load(&path, &host).unwrap();
        // Some need a lab of their own.
        let Ok(plan) = campaign.plan(&campaign.usual_lab(), &host) else {
            continue;
        };
        for cell in plan.cells {
            let name = cell.measurement.name();
            assert!(KINDS.contains(&name), "{name}");
            found += 1;
        }
    }
    assert!(found > 100, "{found}");
}
