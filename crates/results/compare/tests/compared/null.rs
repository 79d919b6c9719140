//! Runs between which nothing changed, and one cell of which did.

use crate::made::{Noise, Truth, cell, journal, measured, record, run};
use compare::{Direction, Options, Outcome, Run, compare};
use plan::{Cell, Expectation};
use stats::{LimitOutcome, Results};

/// How many of these comparisons have a finding that is none, and how many find the change of the
/// last cell.
fn counts(truth: [Truth; 2], comparisons: usize) -> (usize, usize) {
    let mut noise = Noise(2026);
    let gates = ["throughput drops > 0 %", "throughput rises > 0 %"];
    let options = Options {
        gates: gates.map(|gate| gate.parse().unwrap()).to_vec(),
        ..Options::default()
    };
    let last = format!("tcp/streams={}/x", truth[0].cells);
    let changes = truth[0].last.total_cmp(&truth[1].last).is_ne();
    let (mut wrong, mut found) = (0, 0);
    for _ in 0..comparisons {
        let journals = [run(truth[0], 1, &mut noise), run(truth[1], 2, &mut noise)];
        let [base, other] = &journals;
        let runs = [
            Run {
                name: "a",
                journal: base,
            },
            Run {
                name: "b",
                journal: other,
            },
        ];
        let comparison = compare(&runs, &options).unwrap();
        assert_eq!(comparison.intervals, truth[0].cells);
        let sure = comparison.pairs[0].changes.iter().filter(|change| {
            matches!(
                change.direction,
                Direction::Regression | Direction::Improvement
            )
        });
        let sure: Vec<&str> = sure.map(|change| change.cell.as_str()).collect();
        let is_changed = |cell: &str| changes && cell == last;
        wrong += usize::from(sure.iter().any(|cell| !is_changed(cell)));
        found += usize::from(sure.iter().any(|cell| is_changed(cell)));
        // Gates without a margin say the same as the directions.
        assert_eq!(comparison.outcome() == Outcome::Violated, !sure.is_empty());
    }
    (wrong, found)
}

#[test]
fn a_null_run_violates_no_gate_in_more_than_five_per_cent() {
    // 5 %, and two standard deviations of that many comparisons.
    for (repeats, comparisons, most) in [(2, 100, 9), (5, 400, 28)] {
        let truth = Truth {
            cells: 40,
            repeats,
            scatter: 0.02,
            last: 1.0,
        };
        let (wrong, _) = counts([truth; 2], comparisons);
        assert!(wrong <= most, "{repeats} repeats: {wrong} of {comparisons}");
        // As often as it may: with more repeats an interval that is too wide would be a defect too.
        assert!(
            repeats < 5 || wrong * 200 >= comparisons,
            "{repeats} repeats: {wrong}"
        );
    }
}

#[test]
fn scatter_that_grows_tenfold_makes_at_most_twice_as_many_false_findings() {
    let base = Truth {
        cells: 40,
        repeats: 5,
        scatter: 0.005,
        last: 1.0,
    };
    let other = Truth {
        scatter: 0.05,
        ..base
    };
    let (wrong, _) = counts([base, other], 100);
    // 10 %, and two standard deviations: Welch's degrees of freedom are an estimate.
    assert!(wrong <= 16, "{wrong} of 100");
}

#[test]
fn a_drop_is_found_as_often_as_the_docs_say() {
    // Drops of 5 % at 10 repeats and a scatter of 2 %; `make compare-power` prints the shares.
    let base = Truth {
        cells: 40,
        repeats: 10,
        scatter: 0.02,
        last: 1.0,
    };
    let other = Truth { last: 0.95, ..base };
    let (_, found) = counts([base, other], 50);
    assert!(found >= 42, "{found} of 50");
}

/// Two names for one program in one run of 200 cells of each: neither a comparison of both, nor a
/// limit on one by the other, accuses it in more than 5 % of runs.
#[test]
fn two_names_of_one_program_are_told_apart_in_at_most_five_per_cent_of_runs() {
    let (cells, repeats, scatter) = (200, 3, 0.03);
    let planned: Vec<Cell> = (1..=cells)
        .flat_map(|place| ["old", "new"].map(|name| cell(&format!("tcp/streams={place}"), name)))
        .collect();
    let options = Options {
        matches: vec!["old=new".parse().unwrap()],
        gates: ["throughput drops > 0 %", "throughput rises > 0 %"]
            .map(|gate| gate.parse().unwrap())
            .to_vec(),
        ..Options::default()
    };
    // Both are as fast, so that chance alone could violate them.
    let limits = [
        "dut=new throughput >= 100 % of dut=old",
        "dut=new throughput <= 100 % of dut=old",
    ];
    let mut noise = Noise(2028);
    let (runs, mut accused, mut violated) = (100, 0, 0);
    for second in 1..=runs {
        let mut one = journal(planned.clone(), repeats, second);
        one.header.plan.expect.limits = limits
            .map(|limit| Expectation {
                limit: limit.to_owned(),
                stored: None,
            })
            .to_vec();
        for repeat in 1..=repeats {
            for cell in &planned {
                let bytes = 1e9 * (scatter * noise.normal()).exp();
                record(&mut one, &cell.id, repeat, measured(bytes as u64));
            }
        }
        let compared = [Run {
            name: "a",
            journal: &one,
        }];
        let comparison = compare(&compared, &options).unwrap();
        assert_eq!(comparison.pairs[0].changes.len(), cells);
        accused += u64::from(comparison.outcome() == Outcome::Violated);
        let expected = Results::of(&one).expect.unwrap();
        let mut limited = expected.limits.iter();
        assert!(limited.all(|limit| limit.cells.len() == cells));
        let mut limited = expected.limits.iter();
        violated += u64::from(limited.any(|limit| limit.outcome == LimitOutcome::Violated));
    }
    // 5 %, and two standard deviations of that many runs.
    assert!(accused <= 9, "a comparison accuses in {accused} of {runs}");
    assert!(violated <= 9, "a limit is violated in {violated} of {runs}");
}
