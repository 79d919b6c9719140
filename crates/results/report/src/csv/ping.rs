//! Columns of a ping cell in addition to the idle path.

use super::{Context, Declared, latency, text};
use plan::TransferDirection;
use stats::percentile;

/// Ordered as [`TransferDirection::ALL`].
pub(super) const COLUMNS: &[Declared] = &[
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
    let found = latency(row)?
        .loaded
        .iter()
        .find(|one| one.direction == load)?;
    let mut sorted = found.round_trips_ns.clone();
    sorted.sort_unstable();
    text(percentile(&sorted, per_mille)?)
}
