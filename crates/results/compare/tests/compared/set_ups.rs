//! Set-ups of IKEv2 in comparisons and gates.

use crate::made::{SECOND_NS, cell, journal, record};
use compare::{Comparison, Options, Outcome as Verdict, Run, compare};
use journal::Journal;
use journal::record::*;
use plan::{Cell, IkeTest, Measurement};

/// Three repeats at about `per_s` set-ups, half of which take `median_ns`; searched, or offered.
fn run(second: u64, per_s: u64, median_ns: u64, searched: bool) -> Journal {
    let cell = Cell {
        measurement: Measurement::Ike(IkeTest {
            setups_per_s: (!searched).then_some(per_s as u32),
            duration_ns: SECOND_NS,
            ..IkeTest::default()
        }),
        ..cell("ike", "x")
    };
    let mut run = journal(vec![cell.clone()], 3, second);
    for repeat in 1..=3 {
        let shift = u64::from(repeat);
        let completed = per_s + shift;
        let trial = IkeTrial {
            per_s: completed,
            intended: completed,
            started: completed,
            completed,
            in_time: completed,
            latency_ns: vec![(500, median_ns + shift), (990, 2 * median_ns + shift)],
            elapsed_ns: SECOND_NS,
            ..IkeTrial::default()
        };
        let result = IkeResult {
            trials: vec![trial],
            figure: 0,
            search: searched.then_some(IkeSearch {
                lower_per_s: Some(completed),
                upper_per_s: Some(completed + 10),
            }),
        };
        let outcome = Outcome::Measured(Box::new(Measured {
            figures: Figures::Ike(Box::new(result)),
            ..Measured::default()
        }));
        record(&mut run, &cell.id, repeat, outcome);
    }
    run
}

fn compared(base: &Journal, other: &Journal, gate: &str) -> Comparison {
    let options = Options {
        gates: vec![gate.parse().unwrap()],
        ..Options::default()
    };
    let runs = [("runs/a", base), ("runs/b", other)].map(|(name, journal)| Run { name, journal });
    compare(&runs, &options).unwrap()
}

fn words(found: &Comparison) -> Vec<&str> {
    let changes = found.pairs[0].changes.iter();
    changes.map(|change| change.quantity.word()).collect()
}

#[test]
fn the_highest_rate_of_set_ups_is_compared_without_its_times() {
    let base = run(1, 1_000, 4_000_000, true);
    let slower = run(2, 500, 4_000_000, true);
    let found = compared(&base, &slower, "ike set-ups drops > 10 %");
    assert_eq!(words(&found), ["set-ups"]);
    assert_eq!(found.outcome(), Verdict::Violated);
    let later = run(3, 1_000, 9_000_000, true);
    let found = compared(&base, &later, "set-ups drops > 10 %");
    assert_eq!(found.outcome(), Verdict::Passed);
}

#[test]
fn times_of_set_ups_are_compared_at_one_rate() {
    let base = run(1, 50, 4_000_000, false);
    let slower = run(2, 50, 8_000_000, false);
    for (gate, expected) in [
        ("ike p50 rises > 10 %", Verdict::Violated),
        ("ike set-ups >= 40/s", Verdict::Passed),
        ("ike p99 <= 1 s", Verdict::Passed),
    ] {
        let found = compared(&base, &slower, gate);
        // The surest change comes first.
        assert_eq!(words(&found), ["p99", "p50", "set-ups"]);
        assert_eq!(found.outcome(), expected, "{gate}");
    }
}
