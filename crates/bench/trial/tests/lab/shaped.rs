//! A shaper on the path: its rate is the figure, neither what it saved nor what its queue holds.

use crate::frames::{frames, search, short};
use crate::one_gateway::{is_missing, strongswan};
use crate::trials::{TestLab, cell, is_other_test, plan, udp};
use journal::record::{Measured, Outcome};
use plan::{Adapter, Cell, Direction, IkeAuth, Procedure};
use std::time::Duration;
use testbed::protocol::Program;
use testbed::{Bench, NodeId};
use testing::busy;

const MS: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(10);
/// Frames of 64 B count 60 B at a shaper: without the FCS.
const SHAPED_BITS: u64 = 60 * 8;
/// Searches, before a busy machine is to blame.
const ATTEMPTS: usize = 2;

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 5] = [
    (
        "a_bucket_of_tokens_lifts_no_bound_above_the_rate",
        a_bucket_of_tokens_lifts_no_bound_above_the_rate,
    ),
    (
        "datagrams_of_a_queue_that_drains_count_over_the_receivers_time",
        datagrams_of_a_queue_that_drains_count_over_the_receivers_time,
    ),
    (
        "a_queue_that_drains_is_found_at_the_highest_rate_too",
        a_queue_that_drains_is_found_at_the_highest_rate_too,
    ),
    (
        "a_queue_that_drains_for_too_long_is_named",
        a_queue_that_drains_for_too_long_is_named,
    ),
    (
        "the_queue_of_a_slow_tunnel_at_the_highest_rate_is_explained",
        the_queue_of_a_slow_tunnel_at_the_highest_rate_is_explained,
    ),
];

/// A lab with the links of a cell and a shaper behind gw1.
fn shaped(cell: &Cell, shaper: &str) -> TestLab {
    let mut lab = TestLab::build();
    let links = trial::links(&plan(cell), cell);
    lab.lab.configure(links).unwrap();
    let words = format!("tc qdisc add dev w0 root tbf {shaper}");
    let node = lab.lab.node(NodeId::Gw1);
    let ended = node.run(Program::new(words.split(' ')), PATIENCE).unwrap();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    lab
}

/// The readings of a trial and why it is invalid.
fn readings(lab: &mut TestLab, cell: &Cell) -> (Measured, Vec<String>) {
    match lab.record(cell).outcome {
        Outcome::Measured(measured) => (*measured, Vec::new()),
        Outcome::Invalid { measured, reasons } => (*measured, reasons),
        Outcome::Failed { reason } => panic!("{reason}"),
    }
}

/// A bucket of 100 ms carries a fifth more for a trial of half a second.
fn a_bucket_of_tokens_lifts_no_bound_above_the_rate() {
    // So low that a machine with other work sends most trials in time.
    let rate = 3000;
    let mut plan = search(Some(4 * rate));
    let criteria = &mut plan.goals[0].criteria;
    criteria.initial_trial_ns = 200 * MS;
    criteria.final_trial_ns = 500 * MS;
    criteria.duration_sum_ns = 1000 * MS;
    plan.timeout_ns = 30_000 * MS;
    let procedure = Procedure::Throughput(plan);
    let cell = frames(Adapter::Direct, short(Direction::Both), procedure);
    let bytes_per_s = rate * SHAPED_BITS / 8;
    let shaper = format!(
        "rate {}bit burst {} limit {}",
        bytes_per_s * 8,
        bytes_per_s / 10,
        bytes_per_s / 10
    );
    let mut lab = shaped(&cell, &shaper);
    let mut found = Vec::new();
    for _ in 0..ATTEMPTS {
        let (measured, reasons) = readings(&mut lab, &cell);
        let result = measured.frames().unwrap();
        let reserves = result.trials.iter().filter_map(|trial| trial.reserve);
        let reserves: Vec<_> = reserves.collect();
        let lower = result.throughput.as_ref().unwrap().goals[0].lower;
        let lower = lower.unwrap_or(0);
        found.push(lower);
        // What a stalled sender offers late, the bucket carries at once.
        let spoilt = !reasons.iter().all(|reason| is_other_test(reason));
        if spoilt && busy::is_the_cause(reasons.iter().map(String::as_str)) {
            continue;
        }
        assert!(lower <= rate * 102 / 100, "{lower}: {result:#?}");
        // The width of the goal below; what a busy machine holds up costs more.
        if lower >= rate * 90 / 100 && !reserves.is_empty() {
            return;
        }
    }
    busy::too_busy(format!("of {rate} frames/s the searches found {found:?}"));
}

/// Twice the rate of a shaper is offered whose queue holds the rest.
fn datagrams_of_a_queue_that_drains_count_over_the_receivers_time() {
    let bps = 10_000_000_u64;
    let cell = cell(Adapter::Direct, 1, false, udp(Some(1000), Some(2 * bps)));
    // Room for two seconds of the rate, twice the excess of the load, so that nothing is lost.
    let shaper = format!("rate {bps}bit burst 10000 limit {}", bps / 4);
    let mut lab = shaped(&cell, &shaper);
    let measured = lab.measured(&cell);
    let transfer = measured.transfer().unwrap();
    let drain = transfer.drain().expect("a queue that drained");
    // A second of twice the rate takes two, of which 0.2 s are no part of the figure.
    assert!((600 * MS..1500 * MS).contains(&drain.time_ns), "{drain:?}");
    let counted = transfer.datagrams.unwrap();
    assert_eq!(counted.lost, 0, "{counted:?}");
    // Datagrams of 1000 B count 1042 B at the shaper.
    let rate = transfer.received_bytes * 8 * 1000 / (transfer.duration_ns / MS);
    let expected = bps * 1000 / 1042;
    assert!(
        rate.abs_diff(expected) * 20 <= expected,
        "{rate} bit/s of {expected}: {transfer:#?}"
    );
    let offered = drain.offered * 1000 * 8 * 1000 / (drain.offered_ns / MS);
    assert!(offered.abs_diff(2 * bps) * 20 <= 2 * bps, "{offered} bit/s");
    let mut checks = measured.evidence.checks.iter();
    let kept = checks
        .find(|check| check.name == "tools-kept-time")
        .unwrap();
    assert!(
        kept.detail.contains("a queue on the path drained"),
        "{}",
        kept.detail
    );
}

/// As much is offered as a core sends: most of it is lost before the queue.
fn a_queue_that_drains_is_found_at_the_highest_rate_too() {
    let bps = 10_000_000_u64;
    let cell = cell(Adapter::Direct, 1, false, udp(Some(1000), None));
    let shaper = format!("rate {bps}bit burst 10000 limit {}", bps / 8);
    let mut lab = shaped(&cell, &shaper);
    let measured = lab.measured(&cell);
    let transfer = measured.transfer().unwrap();
    let drain = transfer.drain().expect("a queue that drained");
    // The queue holds a second of the rate.
    assert!((600 * MS..1500 * MS).contains(&drain.time_ns), "{drain:?}");
    assert!(transfer.datagrams.unwrap().lost > 0, "{transfer:#?}");
    let rate = transfer.received_bytes * 8 * 1000 / (transfer.duration_ns / MS);
    let expected = bps * 1000 / 1042;
    assert!(
        rate.abs_diff(expected) * 20 <= expected,
        "{rate} bit/s of {expected}: {transfer:#?}"
    );
}

/// The tool's last words wait behind the datagrams.
fn a_queue_that_drains_for_too_long_is_named() {
    let bps = 2_000_000_u64;
    let cell = cell(Adapter::Direct, 1, false, udp(Some(1000), None));
    let shaper = format!("rate {bps}bit burst 10000 limit {}", 20 * bps / 8);
    let mut lab = shaped(&cell, &shaper);
    let Outcome::Failed { reason } = lab.record(&cell).outcome else {
        panic!("a queue of 20 s drained");
    };
    assert!(
        reason.contains("a queue on it") && reason.contains("offer less (`rate:`)"),
        "{reason}"
    );
}

/// libipsec refuses no packet. Where it has cores of its own, its queue drains at the rate of
/// before; where the sender shared them, it drains faster, and the check says so.
fn the_queue_of_a_slow_tunnel_at_the_highest_rate_is_explained() {
    let adapter = strongswan("aes-256-gcm", IkeAuth::Psk, 1);
    if is_missing(adapter.clone()) {
        return;
    }
    let cell = cell(adapter, 1, false, udp(Some(1000), None));
    let mut lab = TestLab::build();
    let mut others = Vec::new();
    for _ in 0..=busy::REPEATS {
        let (measured, reasons) = readings(&mut lab, &cell);
        let mut checks = measured.evidence.checks.iter();
        let kept = checks
            .find(|check| check.name == "tools-kept-time")
            .unwrap();
        let has_drained = match &kept.explanation {
            Some(explanation) => explanation.cause.starts_with("a queue on the path drained"),
            None => kept.detail.contains("a queue on the path drained"),
        };
        if has_drained {
            return;
        }
        assert!(
            reasons.is_empty() || busy::is_the_cause(reasons.iter().map(String::as_str)),
            "{reasons:#?}"
        );
        others.push(kept.detail.clone());
    }
    busy::too_busy(format!("no queue drained: {}", others.join("; ")));
}
