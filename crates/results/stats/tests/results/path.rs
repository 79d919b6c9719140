//! Warnings about what happened on the path within single trials, and about its cores.

use crate::fixture::*;
use journal::Journal;
use journal::record::{Interval, LogicalCpu, Measured, PathSettings};
use stats::{Results, Warning, WarningKind};

const STEP_NS: u64 = 200_000_000;

/// The only warning of that kind.
fn only(journal: &Journal, kind: WarningKind) -> Warning {
    let found = Results::of(journal).warnings;
    let mut found = found.into_iter().filter(|one| one.kind == kind);
    let first = found.next().unwrap_or_else(|| panic!("no {kind:?}"));
    assert!(found.next().is_none());
    assert!(first.text.ends_with('.') && first.advice.ends_with('.'));
    first
}

fn has(journal: &Journal, kind: WarningKind) -> bool {
    let found = Results::of(journal).warnings;
    found.iter().any(|one| one.kind == kind)
}

/// A run of one cell with three repeats, of which the second one is this.
fn run(second: Measured) -> Journal {
    let mut journal = journal(vec![tcp("direct")], 3, 8);
    for (repeat, one) in [(1, transfer(1000)), (2, second), (3, transfer(1000))] {
        record(&mut journal, "tcp/direct", repeat, measured(one));
    }
    journal
}

/// A transfer whose intervals received that many megabytes each.
fn with_intervals(megabytes: [u64; 10]) -> Measured {
    let mut measured = transfer(megabytes.iter().sum());
    let starts = (0..).map(|step: u64| step * STEP_NS);
    let intervals = megabytes
        .iter()
        .zip(starts)
        .map(|(bytes, start_ns)| Interval {
            start_ns,
            end_ns: start_ns + STEP_NS,
            bytes: bytes * 1_000_000,
        });
    let intervals = intervals.collect();
    if let journal::record::Figures::Transfer(transfer) = &mut measured.figures {
        transfer.intervals = intervals;
    }
    measured
}

#[test]
fn intervals_on_two_levels_are_reported_with_both_rates_and_when() {
    let kind = WarningKind::IntervalsApart;
    let steady = with_intervals([100, 101, 99, 100, 102, 100, 98, 100, 101, 100]);
    assert!(!has(&run(steady), kind));
    let fell = with_intervals([170, 171, 169, 170, 172, 30, 31, 30, 29, 30]);
    let found = only(&run(fell), kind);
    assert_eq!(found.cells, ["tcp/direct"]);
    assert!(
        found.text.contains("In 1 trial of 1 cell"),
        "{}",
        found.text
    );
    let levels = "in repeat 2 of `tcp/direct`: 6.8 Gbit/s, but 1.2 Gbit/s from 1.0 to 2.0 s";
    assert!(found.text.contains(levels), "{}", found.text);
}

#[test]
fn retransmissions_that_no_counter_explains_are_reported_with_the_numbers() {
    let kind = WarningKind::UnexplainedRetransmissions;
    let with = |again: u64, drops: u64| {
        let mut one = transfer(1000);
        one.evidence.settings = Some(PathSettings {
            queue_drops: [("gw1/w0".to_owned(), drops)].into(),
            stack: [("a/OutSegs", 700_000), ("a/RetransSegs", again)]
                .map(|(name, count)| (name.to_owned(), count))
                .into(),
            ..PathSettings::default()
        });
        run(one)
    };
    assert!(!has(&with(0, 0), kind));
    let found = only(&with(5000, 3), kind);
    assert_eq!(found.cells, ["tcp/direct"]);
    let numbers = "5000 of 700000 segments";
    assert!(found.text.contains(numbers), "{}", found.text);
    assert!(found.text.contains("count 3 drops"), "{}", found.text);
    assert!(!has(&with(5000, 5000), kind));
}

#[test]
fn cells_that_have_cpus_but_not_cores_enough_are_reported() {
    let kind = WarningKind::SiblingCores;
    let on = |cpus: u16, threads: u16| {
        let mut journal = run(transfer(1000));
        let environment = &mut journal.header.environment;
        environment.cpus = cpus.into();
        let topology = (0..cpus).map(|cpu| LogicalCpu {
            cpu,
            core: cpu / threads * threads,
            node: 0,
        });
        environment.topology = topology.collect();
        journal
    };
    // Two stations of one core each; `direct` needs none.
    let shared = WarningKind::SharedCores;
    assert!(!has(&on(2, 1), kind) && !has(&on(2, 1), shared));
    let found = only(&on(2, 2), kind);
    assert!(
        found.text.contains("2 CPUs are threads of 1 core:"),
        "{}",
        found.text
    );
    assert!(!has(&on(2, 2), shared));
    assert!(!has(&on(4, 2), kind));
    assert!(!has(&on(1, 1), kind) && has(&on(1, 1), shared));
    // Journals that do not know.
    let mut old = on(2, 2);
    old.header.environment.topology.clear();
    assert!(!has(&old, kind));
}
