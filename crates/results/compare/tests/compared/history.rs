//! Histories of made-up runs of known truth.

use crate::made::{Noise, Truth, run};
use compare::{Course, History, Run, history, history_html, history_text};
use journal::Journal;

const TRUTH: Truth = Truth {
    cells: 5,
    repeats: 2,
    scatter: 0.01,
    last: 1.0,
};

/// Runs of these levels of the last cell.
fn runs(levels: &[f64], cells: usize, noise: &mut Noise) -> Vec<Journal> {
    let truths = levels.iter().map(|&last| Truth {
        cells,
        last,
        ..TRUTH
    });
    let seconds = 1..;
    truths
        .zip(seconds)
        .map(|(truth, second)| run(truth, second, noise))
        .collect()
}

fn of(journals: &[Journal]) -> History {
    let names: Vec<String> = (1..=journals.len()).map(|at| format!("run-{at}")).collect();
    let runs: Vec<Run<'_>> = journals
        .iter()
        .zip(&names)
        .map(|(journal, name)| Run { name, journal })
        .collect();
    history(&runs).unwrap()
}

#[test]
fn a_drop_is_found_with_its_run_its_cause_and_the_command_that_finds_the_commit() {
    let levels = [1.0, 1.0, 1.0, 1.0, 1.0, 0.8, 0.8, 0.8, 0.8, 0.8];
    let mut journals = runs(&levels, TRUTH.cells, &mut Noise(7));
    for (at, journal) in journals.iter_mut().enumerate() {
        let revision = if at < 5 { "0123abcd" } else { "89ab0123" };
        journal.header.program = format!("0.2.0 ({revision})");
    }
    // Their order is that of their starts.
    journals.reverse();
    let found = of(&journals);
    let [first, rest @ ..] = &found.series[..] else {
        panic!("no series")
    };
    assert_eq!(first.cell, "tcp/streams=5/x");
    assert_eq!(first.state, Course::Worse);
    let [turn] = &first.turns[..] else {
        panic!("{:?}", first.turns)
    };
    assert_eq!(turn.shift.at, 5);
    assert!((turn.shift.ratio - 0.8).abs() < 0.03, "{turn:?}");
    assert!(!turn.is_better);
    let what: Vec<&str> = turn.differences.iter().map(|one| &*one.what).collect();
    assert_eq!(what, ["program"]);
    let command = turn.bisect.as_deref().unwrap();
    assert!(
        command.starts_with(
            "cipherbench bisect --good 0123abcd --bad 89ab0123 --build 'make build' --gate 'tcp \
             streams=5 dut=x throughput drops > "
        ),
        "{command}"
    );
    assert!(rest.iter().all(|series| series.state == Course::Steady));

    let text = history_text(&found);
    assert!(
        text.starts_with("5 figures over 10 runs: 1 worse since a run, 4 without a change.\n"),
        "{text}"
    );
    assert!(text.contains("from run-5 on"), "{text}");
    assert!(
        text.contains("program: 0.2.0 (0123abcd) → 0.2.0 (89ab0123)"),
        "{text}"
    );
    assert!(text.contains(command), "{text}");
    let html = history_html(&found);
    assert!(
        html.contains("<polyline") && html.contains("<circle"),
        "{html}"
    );
    assert!(html.contains("from run-5 on"), "{html}");
    assert!(found.json().contains("\"state\": \"worse\""));
}

#[test]
fn an_unusual_last_run_is_no_change_yet() {
    let levels = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.7];
    let found = of(&runs(&levels, TRUTH.cells, &mut Noise(8)));
    let first = &found.series[0];
    assert_eq!(
        (first.state, first.turns.len()),
        (Course::Unusual, 0),
        "{first:?}"
    );
    assert!(!first.unusual.unwrap().is_better);
    let text = history_text(&found);
    assert!(
        text.contains("the last run is worse than expected"),
        "{text}"
    );
}

#[test]
fn a_history_without_a_change_seldom_shows_one() {
    let mut noise = Noise(2027);
    let histories = 200;
    let wrong = (0..histories)
        .map(|_| of(&runs(&[1.0; 9], 20, &mut noise)))
        .filter(|found| {
            let is_steady = |series: &compare::Series| series.state == Course::Steady;
            !found.series.iter().all(is_steady)
        })
        .count();
    // Of 1000 histories 27 did.
    assert!(wrong * 20 <= histories, "{wrong} of {histories}");
}

#[test]
fn too_few_runs_and_a_run_given_twice_are_refused_or_named() {
    let journals = runs(&[1.0; 3], 2, &mut Noise(9));
    let found = of(&journals);
    assert!(
        found
            .series
            .iter()
            .all(|series| series.state == Course::TooShort)
    );
    assert!(
        history_text(&found).contains("2 figures are in fewer than 4 runs of one campaign"),
        "{}",
        history_text(&found)
    );
    let one = Run {
        name: "a",
        journal: &journals[0],
    };
    let text = history(&[one]).unwrap_err().to_string();
    assert!(text.contains("at least two runs"), "{text}");
    let copy = Run { name: "b", ..one };
    let text = history(&[one, copy]).unwrap_err().to_string();
    assert!(text.contains("are the same run"), "{text}");
}
