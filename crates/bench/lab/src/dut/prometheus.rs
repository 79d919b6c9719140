//! Counters from the Prometheus text format, summed over lanes.

use crate::exposition::{Sample, samples};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Prefix of the encryptor's metrics.
const PREFIX: &str = "cipherbench_";

/// Suffix of counters; other metrics (gauges, build information) are not counters.
const SUFFIX: &str = "_total";

/// Suffixes of a time, in the metrics and in the counters returned.
const SECONDS: &str = "_seconds";
const NANOSECONDS: &str = "_ns";

/// The label that counters are summed over.
const LANE: &str = "lane";

/// Counters by their name without prefix and suffix; other labels than the lane are appended with a
/// dot: `cipherbench_dropped_packets_total{lane="0",reason="replayed"}` is
/// `dropped_packets.replayed`. Fractional seconds become `…_ns`.
pub(super) fn counters(text: &str) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for (name, value) in own(text).filter_map(|sample| counter(&sample)) {
        // Lanes have the same name here, because their label was left out of it.
        *counters.entry(name).or_insert(0) += value;
    }
    counters
}

/// Returns the sum of a gauge, named without prefix, over all its labels; 0 if absent.
pub(super) fn gauge(text: &str, name: &str) -> u64 {
    let of_name = own(text).filter(|sample| sample.name == name);
    of_name
        .filter_map(|sample| sample.value.parse::<u64>().ok())
        .sum()
}

/// Returns the distinct values of a label of a metric, named without prefix.
pub(super) fn values(text: &str, name: &str, label: &str) -> BTreeSet<String> {
    let of_name = own(text).filter(|sample| sample.name == name);
    of_name
        .filter_map(|sample| sample.label(label).map(str::to_owned))
        .collect()
}

/// The encryptor's samples, their names without prefix.
fn own(text: &str) -> impl Iterator<Item = Sample<'_>> {
    samples(text).filter_map(|sample| {
        let name = sample.name.strip_prefix(PREFIX)?;
        Some(Sample { name, ..sample })
    })
}

fn counter(sample: &Sample<'_>) -> Option<(String, u64)> {
    let name = sample.name.strip_suffix(SUFFIX)?;
    let (mut name, value) = match name.strip_suffix(SECONDS) {
        Some(name) => (format!("{name}{NANOSECONDS}"), nanoseconds(sample.value)?),
        None => (name.to_owned(), sample.value.parse().ok()?),
    };
    for (_, value) in sample.labels.iter().filter(|(key, _)| *key != LANE) {
        name.push('.');
        name.push_str(value);
    }
    Some((name, value))
}

/// Parses a non-negative time, to the nanosecond.
fn nanoseconds(seconds: &str) -> Option<u64> {
    let time = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
    u64::try_from(time.as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_is_found_by_its_whole_name() {
        let text = "# TYPE cipherbench_tunnels_established gauge\n\
                    cipherbench_tunnels_established 7\n\
                    cipherbench_tunnels_established_ever 9\n\
                    cipherbench_lanes{lane=\"0\"} 1\n\
                    cipherbench_lanes{lane=\"1\"} 2\n\
                    cipherbench_info{version=\"1\"} one\n";
        assert_eq!(gauge(text, "tunnels_established"), 7);
        assert_eq!(gauge(text, "lanes"), 3);
        assert_eq!(gauge(text, "info"), 0);
        assert_eq!(gauge(text, "tunnels"), 0);
    }

    #[test]
    fn a_labels_values_are_returned_once_each() {
        let text = "cipherbench_tunnel_info{tunnel=\"0\",peer=\"gw2\",sources=\"handshake+qkd\"} 1\n\
                    cipherbench_tunnel_info{tunnel=\"1\",peer=\"gw2\",sources=\"handshake+qkd\"} 1\n\
                    cipherbench_tunnel_info{tunnel=\"2\",peer=\"gw2\",sources=\"handshake\"} 1\n";
        let sources = values(text, "tunnel_info", "sources");
        assert_eq!(
            sources.into_iter().collect::<Vec<_>>(),
            ["handshake", "handshake+qkd"]
        );
        assert!(values(text, "tunnel_info", "suite").is_empty());
    }

    #[test]
    fn seconds_become_whole_nanoseconds() {
        let text = "cipherbench_desync_outage_seconds_total 0.012345\n\
                    cipherbench_busy_seconds_total{lane=\"0\"} 2\n\
                    cipherbench_busy_seconds_total{lane=\"1\"} 1.5\n\
                    cipherbench_odd_seconds_total -1\n\
                    cipherbench_none_seconds_total NaN\n";
        let counters = counters(text);
        let expected = [("busy_ns", 3_500_000_000), ("desync_outage_ns", 12_345_000)];
        let found = counters.iter().map(|(name, value)| (name.as_str(), *value));
        assert!(found.eq(expected), "{counters:?}");
    }

    #[test]
    fn counters_are_summed_over_lanes_and_kept_apart_by_reason() {
        let text = "# HELP cipherbench_clear_rx_packets_total Packets.\n\
                    # TYPE cipherbench_clear_rx_packets_total counter\n\
                    cipherbench_clear_rx_packets_total{lane=\"0\"} 5\n\
                    cipherbench_clear_rx_packets_total{lane=\"1\"} 7\n\
                    cipherbench_dropped_packets_total{lane=\"0\",reason=\"replayed\"} 2\n\
                    cipherbench_dropped_packets_total{reason=\"runt\",lane=\"1\"} 1\n\
                    cipherbench_lanes 2\n\
                    process_cpu_seconds_total 1\n\
                    cipherbench_starts_total 1\n\
                    cipherbench_desync_outage_seconds_total 0.012345\n";
        let counters = counters(text);
        let expected = [
            ("clear_rx_packets", 12),
            ("desync_outage_ns", 12_345_000),
            ("dropped_packets.replayed", 2),
            ("dropped_packets.runt", 1),
            ("starts", 1),
        ];
        assert!(
            counters
                .iter()
                .map(|(name, value)| (name.as_str(), *value))
                .eq(expected)
        );
    }
}
