//! An encryptor's metrics.

use crate::dut::{Daemon, prometheus};
use std::collections::BTreeMap;
use testbed::Result;
use testbed::protocol::{Request, Response};

/// The port of its metrics.
pub(super) const METRICS_PORT: u16 = 9464;

/// Returns an encryptor's counters under the names that it exports.
pub(super) fn read_counters(daemon: &Daemon<'_>) -> Result<BTreeMap<String, u64>> {
    Ok(prometheus::counters(&metrics(daemon)?))
}

/// Returns an encryptor's metrics in the Prometheus text format.
pub(super) fn metrics(daemon: &Daemon<'_>) -> Result<String> {
    let request = Request::HttpGet {
        port: METRICS_PORT,
        path: "/metrics".to_owned(),
    };
    match daemon.node.call(request) {
        Ok(Response::Body(text)) => Ok(text),
        Ok(other) => Err(daemon.node.unexpected(&other)),
        Err(error) => Err(daemon.died_or(error)),
    }
}
