//! Checks across peers: no packet may belong to two tunnels, and no outer packet to any.

use super::context::Entry;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use yaml::{Node, Prefix, Reported};

/// Maximum number of tunnels that share a network and differ in other selectors, which are compared
/// one by one.
const SHARERS_MAX: usize = 16;
/// Maximum number of networks behind all peers together; each may take some kilobytes in the
/// lookup.
const NETWORKS_MAX: usize = 16_384;

/// Checks all networks of all peers.
pub(super) fn check(entries: &[Entry<'_>]) -> Result<(), Reported> {
    let mut result = Ok(());
    let remotes: BTreeSet<IpAddr> = entries.iter().map(|entry| entry.peer.remote.ip()).collect();
    let mut sharers: HashMap<Prefix, Vec<(&Entry<'_>, Node<'_>)>> = HashMap::new();
    let mut networks = 0;
    for entry in entries {
        for (route, node) in entry.peer.selectors.remote.iter().zip(&entry.routes) {
            networks += 1;
            if networks > NETWORKS_MAX {
                return Err(node.mistake(
                    format!("there are more than {NETWORKS_MAX} networks behind the peers"),
                    "join neighbouring networks to larger ones",
                ));
            }
            // The kernel would route the ESP packets back into the tunnel, and each would be sealed
            // again without end.
            if let Some(remote) = remotes.iter().find(|remote| route.contains(**remote)) {
                result = Err(leads_into_itself(*node, *route, *remote));
            }
            let sharers = sharers.entry(*route).or_default();
            if let Err(reported) = check_sharers(entry, *node, *route, sharers) {
                result = Err(reported);
            }
            sharers.push((entry, *node));
        }
    }
    result
}

/// Checks that no packet of the network belongs to both `entry` and one of the `others`.
fn check_sharers(
    entry: &Entry<'_>,
    node: Node<'_>,
    route: Prefix,
    others: &[(&Entry<'_>, Node<'_>)],
) -> Result<(), Reported> {
    // The first one is enough for a message; equal networks only, because of nested ones the
    // longest prefix decides.
    let overlapping = others
        .iter()
        .find(|(other, _)| other.peer.selectors.overlaps(&entry.peer.selectors));
    if let Some((other, place)) = overlapping {
        let place = place.place();
        return Err(if other.peer.id == entry.peer.id {
            node.mistake(
                format!("the network {route} is in the list twice"),
                format!("it is also at {place}: remove one"),
            )
        } else {
            node.mistake(
                format!(
                    "packets to {route} belong to two tunnels, {} and {}",
                    other.peer.id, entry.peer.id
                ),
                format!(
                    "the other is at {place}: use another network, or distinguish them by `local`, `protocol` \
                     or ports"
                ),
            )
        });
    }
    if others.len() >= SHARERS_MAX {
        return Err(node.mistake(
            format!("more than {SHARERS_MAX} tunnels share the network {route}"),
            "divide it into smaller networks",
        ));
    }
    Ok(())
}

fn leads_into_itself(node: Node<'_>, route: Prefix, remote: IpAddr) -> Reported {
    node.mistake(
        format!("the route {route} leads the tunnel's own packets to {remote} into the tunnel"),
        "exclude `remote` from it: `cipherbench` does not route around its own packets",
    )
}
