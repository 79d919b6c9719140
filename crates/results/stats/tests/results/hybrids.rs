//! Gain of hybrids of engines over each engine alone.

use crate::fixture::{journal, measured, record, tcp, transfer};
use plan::{Adapter, Cell, Encryptor};
use stats::{Metric, Results};
use wire::Suite;

const COPROCESSOR: &str = "{ model: { latency: 20 us, rate: 2 Gbit/s } }";
const HYBRID: &str = "{ model: { latency: 20 us, rate: 2 Gbit/s }, else: rustcrypto }";
const THRESHOLD: &str = "{ below: 128 B, use: rustcrypto, else: aws-lc }";

/// TCP through our encryptor, with an engine as in a campaign.
fn with_engine(name: &str, engine: &str, suite: Suite) -> Cell {
    let mut cell = tcp(name);
    cell.dut.adapter = Adapter::Cipherbench(Encryptor {
        engine: engine.parse().unwrap(),
        ..Encryptor::new(suite)
    });
    cell
}

/// Each hybrid's throughput by that of its twins, with the given megabytes in every repeat.
fn gains(cells: &[(Cell, u64)]) -> Vec<(String, String, f64, Option<bool>)> {
    let all = cells.iter().map(|(cell, _)| cell.clone()).collect();
    let mut run = journal(all, 5, 8);
    for (cell, megabytes) in cells {
        for repeat in 1..=5 {
            record(&mut run, &cell.id, repeat, measured(transfer(*megabytes)));
        }
    }
    let found = Results::of(&run).hybrid_gains.into_iter();
    found
        .filter(|gain| gain.metric == Metric::PayloadThroughput)
        .map(|gain| (gain.dut, gain.alone, gain.ratio.mean, gain.differs))
        .collect()
}

#[test]
fn a_hybrid_stands_beside_each_of_its_engines() {
    let suite = Suite::Aes256Gcm;
    let found = gains(&[
        (with_engine("cpu", "rustcrypto", suite), 500),
        (with_engine("simd", "aws-lc", suite), 1000),
        (with_engine("coprocessor", COPROCESSOR, suite), 800),
        (with_engine("by size", THRESHOLD, suite), 1000),
        (with_engine("hybrid", HYBRID, suite), 1200),
    ]);
    let expected = [
        ("by size", "cpu", 2.0, true),
        ("by size", "simd", 1.0, false),
        ("hybrid", "coprocessor", 1.5, true),
        ("hybrid", "cpu", 2.4, true),
    ];
    let expected = expected.map(|(dut, alone, ratio, differs)| {
        (dut.to_owned(), alone.to_owned(), ratio, Some(differs))
    });
    assert_eq!(found, expected);
}

#[test]
fn devices_that_differ_in_more_than_the_engine_are_not_compared() {
    let found = gains(&[
        (with_engine("cpu", "rustcrypto", Suite::Aes128Gcm), 500),
        (with_engine("simd", "auto", Suite::Aes256Gcm), 1000),
        (with_engine("hybrid", HYBRID, Suite::Aes256Gcm), 1200),
    ]);
    assert_eq!(found, []);
}
