//! Columns of round trips: on the idle path, and under loads.

use crate::kit::column::{Context, Declared, text};
use crate::layout::evidence::measured;
use journal::record::Latency;
use plan::TransferDirection;
use stats::percentile;

/// Echo requests and their round trips on the idle path.
pub(crate) const COLUMNS: &[Declared] = &[
    ("requests_sent", "echo requests", |row| {
        text(latency(row)?.sent)
    }),
    ("replies_received", "echo replies", |row| {
        text(latency(row)?.received)
    }),
    ("round_trip_min_ns", "shortest round trip", |row| {
        text(latency(row)?.round_trips_ns.iter().min()?)
    }),
    (
        "round_trip_p50_ns",
        "median round trip, nearest rank",
        |row| ranked(&latency(row)?.round_trips_ns, 500),
    ),
    (
        "round_trip_p90_ns",
        "90th percentile; empty below 10 replies",
        |row| ranked(&latency(row)?.round_trips_ns, 900),
    ),
    (
        "round_trip_p99_ns",
        "99th percentile; empty below 100 replies",
        |row| ranked(&latency(row)?.round_trips_ns, 990),
    ),
    (
        "round_trip_p99_9_ns",
        "99.9th percentile; empty below 1000 replies",
        |row| ranked(&latency(row)?.round_trips_ns, 999),
    ),
    ("round_trip_max_ns", "longest round trip", |row| {
        text(latency(row)?.round_trips_ns.iter().max()?)
    }),
];

fn latency<'a>(row: &Context<'a>) -> Option<&'a Latency> {
    measured(row.trial)?.latency()
}

/// Ordered as [`TransferDirection::ALL`].
pub(crate) const LOADED: &[Declared] = &[
    (
        "loaded_a_to_b_p50_ns",
        "median round trip under a TCP load from A to B",
        |row| under(row, TransferDirection::AToB, 500),
    ),
    (
        "loaded_a_to_b_p99_ns",
        "99th percentile of the same",
        |row| under(row, TransferDirection::AToB, 990),
    ),
    (
        "loaded_b_to_a_p50_ns",
        "median round trip under a TCP load from B to A",
        |row| under(row, TransferDirection::BToA, 500),
    ),
    (
        "loaded_b_to_a_p99_ns",
        "99th percentile of the same",
        |row| under(row, TransferDirection::BToA, 990),
    ),
    (
        "loaded_duplex_p50_ns",
        "median round trip under TCP loads both ways",
        |row| under(row, TransferDirection::Duplex, 500),
    ),
    (
        "loaded_duplex_p99_ns",
        "99th percentile of the same",
        |row| under(row, TransferDirection::Duplex, 990),
    ),
    ("hops", "hops from A to B by traceroute", |row| {
        text(latency(row)?.route.as_ref()?.hops.len())
    }),
    (
        "path_mtu_bytes",
        "longest IP packet with DF set that was answered",
        |row| text(latency(row)?.route.as_ref()?.path_mtu_bytes?),
    ),
    (
        "reported_mtu_bytes",
        "MTU that a router reported for a packet as long as the links' MTU",
        |row| text(latency(row)?.route.as_ref()?.reported_mtu_bytes?),
    ),
];

/// A percentile of the round trips under one load.
fn under(row: &Context<'_>, load: TransferDirection, per_mille: u64) -> Option<String> {
    let mut loaded = latency(row)?.loaded.iter();
    let found = loaded.find(|one| one.direction == load)?;
    ranked(&found.round_trips_ns, per_mille)
}

fn ranked(times_ns: &[u64], per_mille: u64) -> Option<String> {
    // The journal has the times in the order of measurement.
    let mut sorted = times_ns.to_vec();
    sorted.sort_unstable();
    text(percentile(&sorted, per_mille)?)
}
