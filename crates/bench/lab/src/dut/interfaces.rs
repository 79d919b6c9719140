//! Interface counters of a DUT that is the kernel itself; they locate lost frames.

use super::Site;
use crate::on_node::{ask, parse_json};
use serde::Deserialize;
use std::collections::BTreeMap;
use testbed::{Counted, Node, Result};

/// A queueing discipline, as `tc -json` prints it.
#[derive(Deserialize)]
struct Discipline {
    /// Frames that found the queue full.
    #[serde(default)]
    drops: u64,
}

/// Counters of a gateway's interfaces since a snapshot.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    before: BTreeMap<String, u64>,
}

impl Interfaces {
    /// Takes the snapshot.
    pub(super) fn watch(site: &Site<'_>, node: &dyn Node) -> Result<Self> {
        let before = read(site, node)?;
        Ok(Self { before })
    }

    /// Returns the counts since the snapshot, by `gateway/interface_counter` (`gw1/a1_rx_dropped`).
    pub(super) fn since(&self, site: &Site<'_>, node: &dyn Node) -> Result<BTreeMap<String, u64>> {
        let mut counters = read(site, node)?;
        for (name, value) in &mut counters {
            let before = self.before.get(name).copied().unwrap_or(0);
            *value = Counted::between(before, *value).count();
        }
        Ok(counters)
    }
}

fn read(site: &Site<'_>, node: &dyn Node) -> Result<BTreeMap<String, u64>> {
    let found = node.interface_counters()?;
    let gateway = node.name();
    let mut counters = BTreeMap::new();
    for interface in site.map.interfaces(node.id()) {
        let Some(found) = found.get(interface) else {
            continue;
        };
        let mut put = |name: &str, value: u64| {
            counters.insert(format!("{gateway}/{interface}_{name}"), value);
        };
        put("rx_packets", found.rx_packets);
        put("rx_dropped", found.rx_dropped);
        put("rx_errors", found.rx_errors);
        put("tx_packets", found.tx_packets);
        put("tx_dropped", found.tx_dropped);
        put("tx_errors", found.tx_errors);
        // Without a rate there is no shaper, and so no queue that drops.
        if site.links.rate_bps.is_some() {
            put("queue_dropped", queue_drops(node, interface)?);
        }
    }
    Ok(counters)
}

/// Returns the frames that an interface's shaper dropped, which no interface counter includes.
fn queue_drops(node: &dyn Node, interface: &str) -> Result<u64> {
    let show = [
        "tc", "-s", "-json", "qdisc", "show", "dev", interface, "root",
    ];
    let what = format!("the queue of `{interface}`");
    let disciplines: Vec<Discipline> = parse_json(node, &what, &ask(node, show)?)?;
    Ok(disciplines.iter().map(|discipline| discipline.drops).sum())
}
