//! Repeats that were measured after a resume, beside those that they are compared with.

use crate::fixture::*;
use journal::Journal;
use journal::record::{Environment, Outcome, Resumed};
use stats::{LateRepeat, Metric, Results, Warning, WarningKind};

const HOUR_NS: u64 = 3600 * SECOND_NS;

fn invalid() -> Outcome {
    Outcome::Invalid {
        reasons: vec!["offered-as-intended: no".into()],
        measured: Box::default(),
    }
}

/// Records a trial that began at a time.
fn record_at(journal: &mut Journal, cell: &str, repeat: u32, at_ns: u64, outcome: Outcome) {
    record(journal, cell, repeat, outcome);
    journal.trials.last_mut().unwrap().started_unix_ns = at_ns;
}

fn resume(journal: &mut Journal, at_unix_ns: u64) {
    journal.resumed.push(Resumed {
        at_unix_ns,
        program: "0.1.0".into(),
        environment: Environment {
            cpus: 8,
            ..Environment::default()
        },
    });
}

/// Two devices and the path without them, three repeats within a minute; the second of `box` is
/// invalid.
fn first_sitting() -> Journal {
    let mut journal = journal(vec![tcp("direct"), tcp("box"), tcp("rival")], 3, 8);
    for repeat in 1..=3 {
        let at_ns = u64::from(repeat) * 10 * SECOND_NS;
        for (cell, megabytes) in [("direct", 1000), ("box", 500), ("rival", 490)] {
            let outcome = match (cell, repeat) {
                ("box", 2) => invalid(),
                _ => measured(transfer(megabytes)),
            };
            record_at(&mut journal, &format!("tcp/{cell}"), repeat, at_ns, outcome);
        }
    }
    journal
}

fn apart(results: &Results) -> Option<&Warning> {
    let mut warnings = results.warnings.iter();
    warnings.find(|found| found.kind == WarningKind::SittingsApart)
}

#[test]
fn a_repeat_made_again_hours_later_is_marked_and_named_with_its_distance() {
    let mut journal = first_sitting();
    assert!(apart(&Results::of(&journal)).is_none());
    resume(&mut journal, 3 * HOUR_NS);
    let outcome = measured(transfer(500));
    record_at(
        &mut journal,
        "tcp/box",
        2,
        3 * HOUR_NS + 20 * SECOND_NS,
        outcome,
    );
    let results = Results::of(&journal);
    let late: Vec<_> = results
        .cells
        .iter()
        .map(|cell| &cell.late_repeats[..])
        .collect();
    let expected = LateRepeat {
        repeat: 2,
        later_ns: 3 * HOUR_NS,
    };
    assert_eq!(late, [&[][..], &[expected], &[]]);
    let found = apart(&results).unwrap();
    assert_eq!(found.cells, ["tcp/box"]);
    assert!(
        found
            .text
            .starts_with("In 1 cell 1 repeat was measured after a resume, 3 h later")
            && found.text.contains("tcp/box (repeat 2)"),
        "{}",
        found.text
    );
    // What pairs it with another sitting says so; the rival's own comparison does not.
    let comparison = |cell| results.comparison(cell, Metric::PayloadThroughput).unwrap();
    assert_eq!(comparison("tcp/box").apart_ns, Some(3 * HOUR_NS));
    assert_eq!(comparison("tcp/rival").apart_ns, None);
    assert!(!results.rankings.is_empty());
    assert!(
        results
            .rankings
            .iter()
            .all(|found| found.apart_ns == Some(3 * HOUR_NS))
    );
}

#[test]
fn a_baseline_made_again_is_what_is_late() {
    let mut journal = first_sitting();
    resume(&mut journal, HOUR_NS);
    // All of the second repeat, but the rival.
    for (cell, megabytes) in [("tcp/direct", 1000), ("tcp/box", 500)] {
        let outcome = measured(transfer(megabytes));
        record_at(&mut journal, cell, 2, HOUR_NS + 20 * SECOND_NS, outcome);
    }
    let results = Results::of(&journal);
    assert_eq!(apart(&results).unwrap().cells, ["tcp/direct", "tcp/box"]);
    let comparison = |cell| results.comparison(cell, Metric::PayloadThroughput).unwrap();
    assert_eq!(comparison("tcp/box").apart_ns, None);
    assert_eq!(comparison("tcp/rival").apart_ns, Some(HOUR_NS));
}

#[test]
fn whole_repeats_after_an_interruption_are_pairs_of_one_time() {
    let mut journal = first_sitting();
    journal.trials.retain(|trial| trial.repeat < 2);
    resume(&mut journal, 5 * HOUR_NS);
    for repeat in 2..=3 {
        let at_ns = 5 * HOUR_NS + u64::from(repeat) * 10 * SECOND_NS;
        for (cell, megabytes) in [("tcp/direct", 1000), ("tcp/box", 500), ("tcp/rival", 490)] {
            record_at(
                &mut journal,
                cell,
                repeat,
                at_ns,
                measured(transfer(megabytes)),
            );
        }
    }
    let results = Results::of(&journal);
    assert!(apart(&results).is_none());
    assert!(
        results
            .comparisons
            .iter()
            .all(|found| found.apart_ns.is_none())
    );
    assert!(
        results
            .rankings
            .iter()
            .all(|found| found.apart_ns.is_none())
    );
}

#[test]
fn a_cell_that_is_still_invalid_is_not_compared_and_not_named() {
    let mut journal = first_sitting();
    resume(&mut journal, HOUR_NS);
    record_at(&mut journal, "tcp/box", 2, HOUR_NS, invalid());
    assert!(apart(&Results::of(&journal)).is_none());
}
