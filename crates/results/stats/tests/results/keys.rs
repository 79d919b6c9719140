//! Cost of key sources compared with static keys.

use crate::fixture::{journal, measured, record, tcp, transfer};
use plan::{Adapter, Cell, Encryptor, KeySource};
use stats::{KeyCost, Metric, Results};
use wire::Suite;

/// TCP through our encryptor with keys from that source.
fn with_keys(keys: KeySource, workers: u16) -> Cell {
    let name = format!("{} w{workers}", keys.name());
    let mut cell = tcp(&name);
    cell.dut.adapter = Adapter::Cipherbench(Encryptor {
        workers,
        ..Encryptor::new(Suite::Aes256Gcm).with_keys(keys)
    });
    cell
}

/// The costs in throughput of a run with the megabytes of each repeat.
fn costs(cells: &[(Cell, &[u64])]) -> Vec<KeyCost> {
    let all = cells.iter().map(|(cell, _)| cell.clone()).collect();
    let repeats = cells[0].1.len() as u32;
    let mut run = journal(all, repeats, 8);
    for (cell, megabytes) in cells {
        for (repeat, megabytes) in (1..).zip(*megabytes) {
            record(&mut run, &cell.id, repeat, measured(transfer(*megabytes)));
        }
    }
    let mut found = Results::of(&run).key_costs;
    found.retain(|cost| cost.metric == Metric::PayloadThroughput);
    found
}

#[test]
fn a_drift_that_affects_both_is_no_difference() {
    let found = costs(&[
        (
            with_keys(KeySource::Static, 1),
            &[1000, 900, 800, 700, 600, 500],
        ),
        (
            with_keys(KeySource::Pqc, 1),
            &[1001, 899, 802, 699, 601, 499],
        ),
    ]);
    let [cost] = found.as_slice() else {
        panic!("{found:#?}")
    };
    assert_eq!((cost.keys.as_str(), cost.differs), ("pqc", Some(false)));
    assert_eq!(cost.rekey_every_ns, 3_600_000_000_000);
    assert!((cost.ratio.mean - 1.0).abs() < 0.002, "{cost:?}");
    assert_eq!(cost.static_cell, "tcp/static w1");
}

#[test]
fn a_small_difference_in_every_repeat_is_one() {
    let found = costs(&[
        (
            with_keys(KeySource::Static, 1),
            &[1000, 900, 800, 700, 600, 500],
        ),
        (
            with_keys(KeySource::Qkd, 1),
            &[970, 872, 777, 680, 583, 484],
        ),
    ]);
    assert_eq!(found[0].differs, Some(true), "{found:#?}");
    assert!(found[0].ratio.mean < 0.98, "{found:#?}");
}

#[test]
fn few_repeats_decide_nothing_and_pairs_are_of_the_same_repeat() {
    let found = costs(&[
        (with_keys(KeySource::Static, 1), &[1000, 500]),
        (with_keys(KeySource::Both, 1), &[1000]),
    ]);
    assert_eq!((found[0].differs, found[0].ratio.n), (None, 1));
}

#[test]
fn a_twin_differs_in_nothing_but_the_keys() {
    let found = costs(&[
        (with_keys(KeySource::Pqc, 2), &[1000; 5]),
        (with_keys(KeySource::Static, 1), &[900; 5]),
        (with_keys(KeySource::Ppk, 1), &[900; 5]),
        (tcp("direct"), &[2000; 5]),
    ]);
    let [cost] = found.as_slice() else {
        panic!("{found:#?}")
    };
    assert_eq!((cost.keys.as_str(), cost.differs), ("ppk", Some(false)));
}
