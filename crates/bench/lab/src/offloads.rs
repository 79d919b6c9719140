//! Offloads of an interface, as `ethtool -k` prints them.

use std::collections::BTreeMap;
use testbed::ethtool::features;

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

/// The features that [`set`] sets, as `ethtool -K` accepts them.
const SETTABLE: [&str; 4] = ["tso", "gso", "tx-udp-segmentation", "gro"];

/// Returns the features in force that affect results: name to `on` or `off`.
pub(crate) fn parse(text: &str) -> BTreeMap<String, String> {
    features(text)
        .filter(|(name, _)| FEATURES.contains(name))
        .map(|(name, found)| (name.to_owned(), plan::on_off(found.on).to_owned()))
        .collect()
}

/// Returns the `ethtool -K` command for one interface.
///
/// GRO stays off, the default of veth, when the other offloads are on: a veth passes super-packets
/// on whole, so nothing is left to merge, and the NAPI hop of GRO costs most of the throughput of
/// several streams (a third remained, measured on two cores).
pub(crate) fn set(interface: &str, on: bool) -> impl Iterator<Item = &str> {
    let settings = SETTABLE.into_iter().flat_map(move |word| match word {
        "gro" => ["gro", "off"],
        segmentation => [segmentation, plan::on_off(on)],
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
