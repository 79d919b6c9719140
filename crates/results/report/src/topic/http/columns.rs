//! The columns of trials over HTTP.

use crate::kit::column::{Context, Declared, text};
use crate::layout::evidence::measured;
use journal::record::HttpResult;

pub(crate) const COLUMNS: &[Declared] = &[
    (
        "http_object_bps",
        "bits of objects that the client of HTTP received per second of the sustain phase",
        |row| per_s(row, |http| Some(http.object_bytes.saturating_mul(8))),
    ),
    (
        "http_transactions_per_s",
        "transactions that ended in the sustain phase with the whole object, per second",
        |row| per_s(row, |http| Some(http.transactions)),
    ),
    (
        "http_connections_per_s",
        "connections established in the sustain phase, TLS included, per second; empty if the client does not report them",
        |row| per_s(row, |http| http.connections),
    ),
    (
        "http_connections_most",
        "maximum number of connections open at one time",
        |row| text(http(row)?.connections_most?),
    ),
    (
        "http_transactions_attempted",
        "transactions begun in all phases",
        |row| text(http(row)?.attempted),
    ),
    (
        "http_transactions_failed",
        "transactions of these that failed for any reason",
        |row| text(http(row)?.failures()),
    ),
    (
        "http_direct_write_bps",
        "rate of direct writes of files of the same sizes to the client's store; empty if it stores none",
        |row| text(http(row)?.stored?.direct_bytes_per_s.saturating_mul(8)),
    ),
];

fn http<'a>(row: &Context<'a>) -> Option<&'a HttpResult> {
    measured(row.trial)?.http()
}

fn per_s(row: &Context<'_>, count: fn(&HttpResult) -> Option<u64>) -> Option<String> {
    let http = http(row)?;
    let count = count(http)? as f64;
    (http.duration_ns > 0).then(|| format!("{:.0}", count * 1e9 / http.duration_ns as f64))
}
