//! Which cells are compared, and what else differs.

use crate::made::{SECOND_NS, cell, journal, measured, record};
use compare::{CompareError, Comparison, Difference, Direction, Options, Run, compare};
use journal::Journal;
use plan::{Cell, Measurement};
use std::collections::BTreeMap;

/// Three repeats of each cell, the megabytes of the first.
fn run(second: u64, cells: Vec<(Cell, u64)>) -> Journal {
    let planned = cells.iter().map(|(cell, _)| cell.clone()).collect();
    let mut run = journal(planned, 3, second);
    for (cell, value) in &cells {
        for repeat in 1..=3 {
            let bytes = value * 1_000_000 * (1000 + u64::from(repeat)) / 1000;
            record(&mut run, &cell.id, repeat, measured(bytes));
        }
    }
    run
}

fn compared(runs: &[&Journal], matches: &[&str]) -> Result<Comparison, CompareError> {
    let options = Options {
        matches: matches.iter().map(|text| text.parse().unwrap()).collect(),
        ..Options::default()
    };
    let names = ["runs/a", "runs/b", "runs/c"];
    let runs = names.iter().zip(runs);
    let runs: Vec<Run<'_>> = runs.map(|(name, journal)| Run { name, journal }).collect();
    compare(&runs, &options)
}

#[test]
fn what_is_common_is_compared_and_the_rest_is_listed() {
    let base = run(
        1,
        vec![
            (cell("tcp/mtu=1500", "x"), 100),
            (cell("tcp/mtu=9000", "x"), 100),
        ],
    );
    let other = run(
        2,
        vec![
            (cell("tcp/mtu=1500", "x"), 50),
            (cell("tcp/mtu=1500", "y"), 90),
        ],
    );
    let found = compared(&[&base, &other], &[]).unwrap();
    let pair = &found.pairs[0];
    assert_eq!(pair.changes.len(), 1);
    let change = &pair.changes[0];
    assert_eq!(
        (&*change.cell, change.direction),
        ("tcp/mtu=1500/x", Direction::Regression)
    );
    assert!((change.ratio - 0.5).abs() < 1e-6 && !change.paired);
    assert_eq!(pair.only_in_base, ["tcp/mtu=9000/x"]);
    assert_eq!(pair.only_in_other, ["tcp/mtu=1500/y"]);
    // A third run is compared with the first too.
    let third = run(3, vec![(cell("tcp/mtu=9000", "x"), 100)]);
    let found = compared(&[&base, &other, &third], &[]).unwrap();
    assert_eq!(found.pairs.len(), 2);
    assert_eq!(
        (found.pairs[1].run, &*found.pairs[1].changes[0].cell),
        (2, "tcp/mtu=9000/x")
    );
    assert_eq!(found.intervals, 2, "both are one question");
}

#[test]
fn a_cell_is_found_by_its_values_where_the_other_campaign_names_other_axes() {
    // The base varies the streams, the other does not, and runs as many.
    let base = run(1, vec![(cell("tcp/mtu=1500/streams=4", "x"), 100)]);
    let other = run(2, vec![(cell("tcp/mtu=1500", "x"), 100)]);
    let found = compared(&[&base, &other], &[]).unwrap();
    let change = &found.pairs[0].changes[0];
    assert_eq!(change.other_cell.as_deref(), Some("tcp/mtu=1500/x"));
    let mut eight = cell("tcp/mtu=1500", "x");
    if let Measurement::Tcp { streams, .. } = &mut eight.measurement {
        *streams = 8;
    }
    let found = compared(&[&base, &run(2, vec![(eight, 100)])], &[]).unwrap();
    assert!(found.is_empty(), "eight streams are another cell");
}

#[test]
fn devices_of_other_names_are_matched_between_runs_and_within_one() {
    let base = run(1, vec![(cell("tcp", "old fw"), 100)]);
    let other = run(2, vec![(cell("tcp", "new=fw"), 150)]);
    assert!(compared(&[&base, &other], &[]).unwrap().is_empty());
    let found = compared(&[&base, &other], &["old fw=new=fw"]).unwrap();
    assert_eq!(found.pairs[0].changes[0].direction, Direction::Improvement);

    let one = run(
        1,
        vec![
            (cell("tcp", "x"), 100),
            (cell("tcp", "y"), 102),
            (cell("tcp/mtu=1300", "x"), 1),
        ],
    );
    let found = compared(&[&one], &["x=y"]).unwrap();
    let change = &found.pairs[0].changes[0];
    assert!(change.paired && change.other_cell.as_deref() == Some("tcp/y"));
    // The same scatter in each block cancels.
    assert!((change.ratio - 1.02).abs() < 1e-6, "{change:?}");
    assert_eq!(found.pairs[0].only_in_base, ["tcp/mtu=1300/x"]);
}

#[test]
fn bad_input_is_an_error_that_names_the_run() {
    let base = run(1, vec![(cell("tcp", "x"), 100)]);
    let same = compared(&[&base, &base.clone()], &[])
        .unwrap_err()
        .to_string();
    assert!(
        same.starts_with("runs/a and runs/b are the same run: both began at 1970"),
        "{same}"
    );
    // Also where one of them goes on: its journal was copied in between.
    let mut cut = base.clone();
    cut.trials.truncate(1);
    cut.end = None;
    assert!(matches!(
        compared(&[&cut, &base], &[]),
        Err(CompareError::SameRun { .. })
    ));
    let one = compared(&[&base], &[]).unwrap_err().to_string();
    assert!(
        one.contains("runs/a is the only run") && one.contains("`x`"),
        "{one}"
    );
    let other = run(2, vec![(cell("tcp", "y"), 100)]);
    let unknown = compared(&[&base, &other], &["x=z"])
        .unwrap_err()
        .to_string();
    assert!(
        unknown.contains("runs/b has no device `z`") && unknown.contains("has `y`"),
        "{unknown}"
    );
    assert!(compared(&[&base], &["x=x"]).is_err());
    assert_eq!(compared(&[], &[]), Err(CompareError::NoRun));
}

#[test]
fn an_unfinished_run_is_compared_with_a_warning() {
    let base = run(1, vec![(cell("tcp", "x"), 100)]);
    let mut other = run(2, vec![(cell("tcp", "x"), 100)]);
    other.trials.truncate(2);
    other.end = None;
    let found = compared(&[&base, &other], &[]).unwrap();
    assert_eq!(found.pairs[0].changes[0].other_repeats, 2);
    let warning = &found.runs[1].warnings[0];
    assert!(warning.contains("1 of 3 trials were not run"), "{warning}");
}

#[test]
fn what_differs_besides_the_figures_is_listed() {
    let base = run(1, vec![(cell("tcp", "x"), 100), (cell("udp", "x"), 100)]);
    let mut cells = vec![(cell("tcp", "x"), 100), (cell("udp", "x"), 100)];
    for (cell, _) in &mut cells {
        if let Measurement::Tcp { duration_ns, .. } = &mut cell.measurement {
            *duration_ns = 10 * SECOND_NS;
        }
    }
    let mut other = run(2, cells);
    other.header.environment.kernel = "Linux 6.12".into();
    let tools = &mut other.header.environment.tools;
    tools.insert("iperf3".into(), "3.18".into());
    for (place, trial) in other.trials.iter_mut().enumerate() {
        if let journal::record::Outcome::Measured(measured) = &mut trial.outcome {
            let facts = &mut measured.evidence.dut_facts;
            facts.insert("gw1/version".into(), format!("2.{}", place / 3));
        }
    }
    let found = compared(&[&base, &other], &[]).unwrap();
    let difference = |what: &str, other: &str, cells| Difference {
        what: what.into(),
        base: String::new(),
        other: other.into(),
        cells,
    };
    assert_eq!(
        found.pairs[0].environment,
        [
            difference("environment.kernel", "Linux 6.12", None),
            difference("environment.tools.iperf3", "3.18", None)
        ]
    );
    let mut expected = difference("measurement.duration_ns", "10000000000", Some(2));
    expected.base = "2000000000".into();
    // A base without facts shows them as added.
    let settings: BTreeMap<_, _> = found.pairs[0]
        .settings
        .iter()
        .map(|one| (&*one.what, one))
        .collect();
    assert_eq!(settings["measurement.duration_ns"], &expected);
    assert_eq!(settings["x: gw1/version"].cells, Some(1));
}
