//! `unreachable` routes to the networks behind the peers, which count while the tunnel's are gone.

use super::{BarrierError, run};
use crate::config::Peer;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::IpAddr;
use yaml::Prefix;

/// Marks our routes (`proto` in `ip route`): no routing daemon of iproute2's list has this number.
const PROTOCOL: &str = "203";
/// The metrics of all gateways have these upper bits: other routes come first.
const METRICS: u32 = 0xcb00_0000;

/// The metric that marks a gateway's routes, including routes of networks that are no longer
/// configured.
fn metric(tunnel: &str) -> u32 {
    // FNV-1a, folded to 24 bits.
    let hash = tunnel.bytes().fold(0x811c_9dc5u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    METRICS | (hash >> 24 ^ hash & 0x00ff_ffff)
}

/// Installs the routes, or renews them, and removes the routes of networks that are no longer
/// behind a peer.
pub(super) fn install(tunnel: &str, peers: &[Peer]) -> Result<(), BarrierError> {
    let networks = peers.iter().flat_map(|peer| &peer.selectors.remote);
    let networks: BTreeSet<Prefix> = networks.copied().collect();
    for family in Family::ALL {
        let own = networks
            .iter()
            .filter(|network| family.has(network.address()));
        let wanted: BTreeSet<String> = own.map(ToString::to_string).collect();
        family.change(tunnel, &wanted)?;
    }
    Ok(())
}

/// Removes all routes of the gateway.
pub(super) fn remove(tunnel: &str) -> Result<(), BarrierError> {
    Family::ALL
        .into_iter()
        .try_for_each(|family| family.change(tunnel, &BTreeSet::new()))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl Family {
    const ALL: [Self; 2] = [Self::V4, Self::V6];

    const fn option(self) -> &'static str {
        match self {
            Self::V4 => "-4",
            Self::V6 => "-6",
        }
    }

    const fn has(self, address: IpAddr) -> bool {
        address.is_ipv4() == matches!(self, Self::V4)
    }

    /// Adds missing routes, then removes obsolete ones.
    fn change(self, tunnel: &str, wanted: &BTreeSet<String>) -> Result<(), BarrierError> {
        let metric = metric(tunnel);
        // Fails on a host without this family, which has no routes of it.
        let listed = self.ip(&["route", "show", "type", "unreachable"], "");
        let old = found(&listed.unwrap_or_default(), metric);
        let mut lines = String::new();
        let mut change = |verb: &str, network: &str| {
            // Writing to a string does not fail.
            let _ = writeln!(
                lines,
                "route {verb} unreachable {network} proto {PROTOCOL} metric {metric}"
            );
        };
        wanted.iter().for_each(|network| change("replace", network));
        let stale = old.iter().filter(|network| !wanted.contains(*network));
        stale.for_each(|network| change("del", network));
        if lines.is_empty() {
            return Ok(());
        }
        self.ip(&["-batch", "-"], &lines).map(drop)
    }

    fn ip(self, arguments: &[&str], input: &str) -> Result<String, BarrierError> {
        let arguments = [&[self.option()], arguments].concat();
        run("ip", "iproute2", &arguments, input)
    }
}

/// The networks of our routes in the output of `ip route show`.
fn found(listed: &str, metric: u32) -> Vec<String> {
    let metric = metric.to_string();
    let network = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let has = |name, value| words.windows(2).any(|pair| pair == [name, value]);
        let ours = has("proto", PROTOCOL) && has("metric", &metric);
        let [first, second, ..] = words[..] else {
            return None;
        };
        let network = if first == "unreachable" {
            second
        } else {
            first
        };
        ours.then(|| {
            // A host's route has no length.
            let length = match network.parse::<IpAddr>() {
                Ok(IpAddr::V4(_)) => "/32",
                Ok(IpAddr::V6(_)) => "/128",
                Err(_) => "",
            };
            format!("{network}{length}")
        })
    };
    listed.lines().filter_map(network).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_finds_its_own_routes_only() {
        let own = metric("cb0");
        assert_ne!(own, metric("cb1"));
        let listed = format!(
            "unreachable 10.2.0.0/24 proto 203 metric {own} \n\
             unreachable 10.2.9.1 proto 203 metric {own} \n\
             unreachable default proto 203 metric {own} \n\
             unreachable 10.3.0.0/24 proto 203 metric {} \n\
             unreachable 10.4.0.0/24 proto static metric {own} \n\
             unreachable fd00:2::/64 dev lo proto 203 metric {own} pref medium\n\
             unreachable fd00:2::d dev lo proto 203 metric {own} pref medium\n",
            metric("cb1")
        );
        let expected = [
            "10.2.0.0/24",
            "10.2.9.1/32",
            "default",
            "fd00:2::/64",
            "fd00:2::d/128",
        ];
        assert_eq!(found(&listed, own), expected);
    }
}
