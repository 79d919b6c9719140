//! Counters from the Prometheus text format, summed over lanes.

use std::collections::BTreeMap;

/// What every metric of ours begins with.
const PREFIX: &str = "cipherbench_";

/// What a counter ends with; anything else (gauges, build information) is no counter.
const SUFFIX: &str = "_total";

/// The label that is summed over.
const LANE: &str = "lane";

/// Counters by their name without prefix and suffix; other labels than the lane are appended with a
/// dot: `cipherbench_dropped_packets_total{lane="0",reason="replayed"}` is
/// `dropped_packets.replayed`.
pub(super) fn counters(text: &str) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for (name, value) in text.lines().filter_map(sample) {
        *counters.entry(name).or_insert(0) += value;
    }
    counters
}

fn sample(line: &str) -> Option<(String, u64)> {
    let (series, value) = line.trim().strip_prefix(PREFIX)?.rsplit_once(' ')?;
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}')?),
        None => (series, ""),
    };
    let mut name = name.strip_suffix(SUFFIX)?.to_owned();
    for label in labels.split(',').filter(|label| !label.is_empty()) {
        let (key, quoted) = label.split_once('=')?;
        if key != LANE {
            name.push('.');
            name.push_str(quoted.trim_matches('"'));
        }
    }
    Some((name, value.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

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
                    cipherbench_starts_total 1\n";
        let counters = counters(text);
        let expected = [
            ("clear_rx_packets", 12),
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
