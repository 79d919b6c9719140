//! Status, figures and ratios.

use crate::fixture::*;
use journal::record::Outcome;
use stats::{Metric, Results, Status};

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-9 * right.abs()
}

fn failed() -> Outcome {
    Outcome::Failed {
        reason: "the device died".into(),
    }
}

fn invalid() -> Outcome {
    let reasons = vec![
        "clear text on the cipher link".into(),
        "no ESP was seen".into(),
    ];
    Outcome::Invalid {
        reasons,
        measured: Box::new(transfer(900)),
    }
}

#[test]
fn throughput_is_payload_bits_received_over_the_measured_time() {
    let mut journal = journal(vec![tcp("direct")], 3, 8);
    for (repeat, megabytes) in [(1, 250), (2, 300), (3, 200)] {
        record(
            &mut journal,
            "tcp/direct",
            repeat,
            measured(transfer(megabytes)),
        );
    }
    let results = Results::of(&journal);
    let cell = &results.cells[0];
    let found = cell.throughput_bps().unwrap();
    assert_eq!(cell.status, Status::Measured);
    assert!(close(found.mean, 1e9) && close(found.largest_distance, 2e8));
    assert!(close(found.largest_distance_percent.unwrap(), 20.0));
}

#[test]
fn cpu_is_cores_kept_busy_and_bits_are_divided_by_it_as_rates() {
    let mut journal = journal(vec![tcp("direct")], 1, 8);
    record(&mut journal, "tcp/direct", 1, measured(transfer(250)));
    let results = Results::of(&journal);
    let cpu = results.cells[0].cpu.as_ref().unwrap();
    assert!(
        close(cpu.stations_cores.mean, 0.25) && close(cpu.dut_cores.as_ref().unwrap().mean, 0.5)
    );
    // 1 Gbit/s with one core busy, half of it the DUT's; CPU was read over twice the measured time.
    assert!(close(
        cpu.payload_bits_per_cpu_s.as_ref().unwrap().mean,
        1e9
    ));
    assert!(close(
        cpu.payload_bits_per_dut_cpu_s.as_ref().unwrap().mean,
        2e9
    ));
}

/// A machine's counters have coarser ticks than a process's, and may miss what it did.
#[test]
fn busy_cores_are_never_less_than_their_parts() {
    let mut journal = journal(vec![tcp("direct")], 2, 8);
    for (repeat, busy_ns) in [(1, SECOND_NS / 50), (2, 4 * SECOND_NS)] {
        let mut found = transfer(250);
        found.cpu.busy_ns = busy_ns;
        found.cpu.kernel_ns = busy_ns.saturating_sub(3 * SECOND_NS);
        record(&mut journal, "tcp/direct", repeat, measured(found));
    }
    let results = Results::of(&journal);
    let cpu = results.cells[0].cpu.as_ref().unwrap();
    let dut = cpu.dut_cores.as_ref().unwrap().mean;
    let parts = cpu.stations_cores.mean + dut + cpu.kernel_cores.mean;
    assert!(close(cpu.busy_cores.mean, parts), "{cpu:?}");
}

#[test]
fn an_invalid_repeat_leaves_the_figure_of_the_valid_ones_and_its_reason() {
    let mut journal = journal(vec![tcp("direct")], 3, 8);
    record(&mut journal, "tcp/direct", 1, measured(transfer(250)));
    record(&mut journal, "tcp/direct", 2, invalid());
    record(&mut journal, "tcp/direct", 3, measured(transfer(250)));
    let results = Results::of(&journal);
    let cell = &results.cells[0];
    assert_eq!(cell.status, Status::Partly);
    assert_eq!((cell.repeats.measured, cell.repeats.invalid), (2, 1));
    let figure = cell.throughput_bps().unwrap();
    let repeats: Vec<u32> = figure.values.iter().map(|one| one.repeat).collect();
    assert_eq!(repeats, [1, 3]);
    let reasons: Vec<_> = cell
        .reasons
        .iter()
        .map(|found| (found.repeat, found.text.as_str()))
        .collect();
    assert_eq!(
        reasons,
        [(2, "clear text on the cipher link"), (2, "no ESP was seen")]
    );
}

#[test]
fn a_cell_of_invalid_repeats_alone_has_no_figure() {
    let mut journal = journal(vec![tcp("direct")], 2, 8);
    record(&mut journal, "tcp/direct", 1, invalid());
    record(&mut journal, "tcp/direct", 2, failed());
    let results = Results::of(&journal);
    let cell = &results.cells[0];
    assert_eq!(cell.status, Status::Invalid);
    assert_eq!(
        (cell.bulk(), cell.latency(), &cell.cpu),
        (None, None, &None)
    );
}

#[test]
fn failed_and_missing_repeats_leave_a_partial_figure() {
    let mut journal = journal(vec![tcp("direct")], 3, 8);
    assert_eq!(Results::of(&journal).cells[0].status, Status::NotRun);
    record(&mut journal, "tcp/direct", 1, failed());
    assert_eq!(Results::of(&journal).cells[0].status, Status::Failed);
    record(&mut journal, "tcp/direct", 2, measured(transfer(250)));
    let results = Results::of(&journal);
    let cell = &results.cells[0];
    assert_eq!(cell.status, Status::Partly);
    assert_eq!(
        (
            cell.repeats.measured,
            cell.repeats.failed,
            cell.repeats.not_run
        ),
        (1, 1, 1)
    );
    assert_eq!(cell.throughput_bps().unwrap().n, 1);
}

#[test]
fn a_repeated_trial_replaces_the_failed_one() {
    let mut journal = journal(vec![tcp("direct")], 1, 8);
    record(&mut journal, "tcp/direct", 1, failed());
    record(&mut journal, "tcp/direct", 1, measured(transfer(250)));
    let cell = &Results::of(&journal).cells[0];
    assert_eq!((cell.status, cell.reasons.len()), (Status::Measured, 0));
}

#[test]
fn a_measured_trial_without_a_figure_counts_as_failed() {
    let mut journal = journal(vec![tcp("direct"), ping("direct")], 1, 8);
    record(
        &mut journal,
        "tcp/direct",
        1,
        measured(round_trips(0, &[1])),
    );
    record(
        &mut journal,
        "ping/direct",
        1,
        measured(round_trips(4, &[])),
    );
    let results = Results::of(&journal);
    assert!(
        results
            .cells
            .iter()
            .all(|cell| cell.status == Status::Failed)
    );
    assert_eq!(
        results.cells[0].reasons[0].text,
        "the record holds no transfer"
    );
    assert_eq!(
        results.cells[1].reasons[0].text,
        "no echo request was answered"
    );
}

#[test]
fn loss_is_counted_and_divided_once() {
    let mut journal = journal(vec![udp(1000, None)], 2, 8);
    record(
        &mut journal,
        "udp/1000/direct",
        1,
        measured(datagrams(1000, 1_000, 0)),
    );
    record(
        &mut journal,
        "udp/1000/direct",
        2,
        measured(datagrams(1000, 1_000, 500)),
    );
    let results = Results::of(&journal);
    let bulk = results.cells[0].bulk().unwrap();
    let found = bulk.datagrams.as_ref().unwrap();
    assert_eq!((found.sent, found.lost), (2_000, 500));
    assert!(close(found.loss_ratio.mean, 0.25));
    assert!(close(found.offered_datagrams_per_s.mean, 500.0));
    assert!(close(found.received_datagrams_per_s.mean, 375.0));
    assert!(close(bulk.offered_payload_bps.mean, 4e6));
    assert!(close(bulk.payload_throughput_bps.mean, 3e6));
}

#[test]
fn a_ratio_and_its_interval_are_of_the_pairs() {
    let mut journal = journal(vec![tcp("direct"), tcp("box")], 3, 8);
    for (repeat, baseline, dut) in [(1, 100, 50), (2, 200, 120), (3, 300, 130)] {
        record(
            &mut journal,
            "tcp/direct",
            repeat,
            measured(transfer(baseline)),
        );
        record(&mut journal, "tcp/box", repeat, measured(transfer(dut)));
    }
    let results = Results::of(&journal);
    let found = results
        .comparison("tcp/box", Metric::PayloadThroughput)
        .unwrap();
    // By hand: geometric mean, and 4.3027 standard errors of the logarithms of three pairs.
    let logs = [0.5_f64, 0.6, 130.0 / 300.0].map(f64::ln);
    let mean = logs.iter().sum::<f64>() / 3.0;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let reach = 4.302_652_73 * (squares / 2.0 / 3.0).sqrt();
    assert!(close(found.ratio, mean.exp()));
    assert!((found.low.unwrap() / (mean - reach).exp() - 1.0).abs() < 1e-6);
    assert!((found.high.unwrap() / (mean + reach).exp() - 1.0).abs() < 1e-6);
    assert_eq!(found.differs, Some(true));
    assert_eq!((found.pairs, found.baseline.as_str()), (3, "direct"));
    assert!(
        results
            .comparison("tcp/direct", Metric::PayloadThroughput)
            .is_none()
    );
}

#[test]
fn a_ratio_pairs_only_repeats_that_both_have() {
    let mut journal = journal(vec![tcp("direct"), tcp("box")], 2, 8);
    record(&mut journal, "tcp/direct", 1, measured(transfer(100)));
    record(&mut journal, "tcp/box", 2, measured(transfer(50)));
    let results = Results::of(&journal);
    let found = results
        .comparison("tcp/box", Metric::PayloadThroughput)
        .unwrap();
    assert!(close(found.ratio, 0.5));
    assert_eq!((found.low, found.high, found.pairs), (None, None, 0));
}

#[test]
fn an_invalid_baseline_gives_no_ratio() {
    let mut journal = journal(vec![tcp("direct"), tcp("box")], 1, 8);
    record(&mut journal, "tcp/direct", 1, invalid());
    record(&mut journal, "tcp/box", 1, measured(transfer(50)));
    assert_eq!(Results::of(&journal).comparisons, []);
}

#[test]
fn medians_of_round_trips_are_compared() {
    let mut journal = journal(vec![ping("direct"), ping("box")], 1, 8);
    record(
        &mut journal,
        "ping/direct",
        1,
        measured(round_trips(0, &[4, 5, 6])),
    );
    record(
        &mut journal,
        "ping/box",
        1,
        measured(round_trips(0, &[70, 75, 400])),
    );
    let results = Results::of(&journal);
    let found = results.comparison("ping/box", Metric::LatencyP50).unwrap();
    assert!(close(found.ratio, 15.0));
}
