//! Offloads of an interface, as `ethtool -k` prints them.

use std::collections::BTreeMap;

/// Features that affect results, by their names in ethtool's output.
const FEATURES: &[&str] = &[
    "generic-receive-offload",
    "generic-segmentation-offload",
    "large-receive-offload",
    "rx-checksumming",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
    "scatter-gather",
    "tcp-segmentation-offload",
    "tx-checksumming",
    "tx-esp-segmentation",
    "tx-udp-segmentation",
];

/// The features that [`set`] sets: as `ethtool -K` accepts them, and as `ethtool -k` prints them.
pub(crate) const SETTABLE: [(&str, &str); 4] = [
    ("tso", "tcp-segmentation-offload"),
    ("gso", "generic-segmentation-offload"),
    ("tx-udp-segmentation", "tx-udp-segmentation"),
    ("gro", "generic-receive-offload"),
];

/// Returns the features in force that affect results: name to `on` or `off`.
pub(crate) fn parse(text: &str) -> BTreeMap<String, String> {
    // Features that belong to another one are indented, and have different names.
    let features = text.lines().filter_map(|line| line.split_once(':'));
    features
        .map(|(name, state)| {
            (
                name.trim(),
                state.split_ascii_whitespace().next().unwrap_or(""),
            )
        })
        .filter(|(name, state)| FEATURES.contains(name) && matches!(*state, "on" | "off"))
        .map(|(name, state)| (name.to_owned(), state.to_owned()))
        .collect()
}

/// Returns the `ethtool -K` command for one interface.
///
/// GRO stays off, the default of veth, when the other offloads are on: a veth passes super-packets
/// on whole, so nothing is left to merge, and the NAPI hop of GRO costs most of the throughput of
/// several streams (a third remained, measured on two cores).
pub(crate) fn set(interface: &str, on: bool) -> impl Iterator<Item = &str> {
    let settings = SETTABLE.iter().flat_map(move |(word, _)| match *word {
        "gro" => ["gro", "off"],
        segmentation => [segmentation, if on { "on" } else { "off" }],
    });
    ["ethtool", "-K", interface].into_iter().chain(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_features_that_bear_on_results() {
        let text = "Features for w0:\n\
                    rx-checksumming: on\n\
                    tx-checksumming: on\n\
                    \ttx-checksum-ipv4: off [fixed]\n\
                    tcp-segmentation-offload: off\n\
                    generic-receive-offload: off [requested on]\n\
                    tx-udp-segmentation: on\n";
        let features = parse(text);
        let expected = [
            ("generic-receive-offload", "off"),
            ("rx-checksumming", "on"),
            ("tcp-segmentation-offload", "off"),
            ("tx-checksumming", "on"),
            ("tx-udp-segmentation", "on"),
        ];
        assert!(
            features
                .iter()
                .map(|(name, state)| (name.as_str(), state.as_str()))
                .eq(expected)
        );
    }
}
