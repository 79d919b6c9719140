//! How often comparisons of simulated runs find what is there, and what is not:
//!
//! ```text
//! cargo run --release -p cipherbench-compare --example power -- [COMPARISONS]
//! ```
//!
//! Two runs of TCP cells whose repeats scatter log-normally; in the second, the last cell is
//! slower.
//! *Found*: the drop is a regression. *Gate*: `throughput drops > 5 %` is violated by it. *False*:
//! any other cell changed.

#![allow(dead_code, reason = "the tests use all of `made`")]

#[path = "../tests/compared/made.rs"]
mod made;

use compare::{Direction, Options, Outcome, Run, compare};
use made::{Noise, Truth, run};

fn main() {
    let comparisons = std::env::args().nth(1);
    let comparisons =
        comparisons.map_or(1000, |text| text.parse().expect("a number of comparisons"));
    println!("| Cells | Repeats | Scatter | Drop | Found | Gate | False |");
    println!("| --: | --: | --: | --: | --: | --: | --: |");
    for cells in [1, 10, 40, 200] {
        for repeats in [3, 5, 10, 20] {
            for (scatter, drop) in [(0.01, 0.05), (0.02, 0.05), (0.02, 0.1)] {
                let base = Truth {
                    cells,
                    repeats,
                    scatter,
                    last: 1.0,
                };
                row(base, drop, comparisons);
            }
        }
    }
}

fn row(base: Truth, drop: f64, comparisons: usize) {
    let other = Truth {
        last: 1.0 - drop,
        ..base
    };
    let options = Options {
        gates: vec!["throughput drops > 5 %".parse().expect("a gate")],
        ..Options::default()
    };
    let last = format!("tcp/streams={}/x", base.cells);
    let mut noise = Noise(24);
    let (mut found, mut gate, mut wrong) = (0, 0, 0);
    for _ in 0..comparisons {
        let (base, other) = (run(base, 1, &mut noise), run(other, 2, &mut noise));
        let runs = [("a", &base), ("b", &other)].map(|(name, journal)| Run { name, journal });
        let comparison = compare(&runs, &options).expect("two runs");
        let changes = comparison.pairs[0].changes.iter();
        let sure = changes.filter(|change| {
            matches!(
                change.direction,
                Direction::Regression | Direction::Improvement
            )
        });
        let sure: Vec<_> = sure.collect();
        found += usize::from(sure.iter().any(|change| change.cell == last));
        wrong += usize::from(sure.iter().any(|change| change.cell != last));
        let violated = comparison.gates[0].cells.iter();
        let mut violated = violated.filter(|cell| cell.outcome == Outcome::Violated);
        gate += usize::from(violated.any(|cell| cell.cell == last));
    }
    let percent = |count: usize| 100.0 * count as f64 / comparisons as f64;
    println!(
        "| {} | {} | {} % | {} % | {:.1} % | {:.1} % | {:.1} % |",
        base.cells,
        base.repeats,
        100.0 * base.scatter,
        100.0 * drop,
        percent(found),
        percent(gate),
        percent(wrong),
    );
}
