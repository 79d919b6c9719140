//! Driver-specific counters of a network card (ethtool(8), `-S`).

use std::collections::BTreeMap;
use testbed::{Node, Result};

/// Returns the driver's counters of a node's interface; empty if the driver has none.
///
/// # Errors
/// When the node fails.
pub(crate) fn driver_counters(node: &dyn Node, interface: &str) -> Result<BTreeMap<String, u64>> {
    // It fails for drivers without counters.
    Ok(parse(&node.output(["ethtool", "-S", interface])?))
}

/// The lines `name: number`. Some drivers have several lines of one name: they are added up.
fn parse(text: &str) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for line in text.lines() {
        // From the right: names may contain a colon, as `[0]: tx_packets`.
        let Some((name, value)) = line.rsplit_once(": ") else {
            continue;
        };
        if let Ok(value) = value.trim().parse::<u64>() {
            let sum: &mut u64 = counters.entry(name.trim().to_owned()).or_default();
            *sum = sum.saturating_add(value);
        }
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_with_a_number_are_counters() {
        let text = "NIC statistics:\n     rx_missed_errors: 12\n     [0]: tx_packets: 3\n     \
                    [0]: tx_packets: 4\n     firmware: 1.2\n     rx_pause: 18446744073709551615\n";
        let expected = [
            ("[0]: tx_packets", 7),
            ("rx_missed_errors", 12),
            ("rx_pause", u64::MAX),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(parse(text), expected.into());
        assert!(parse("no stats available\n").is_empty());
    }
}
