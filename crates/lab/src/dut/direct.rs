//! No encryptor: the gateways forward in clear over the cipher link.

use super::{Adapter, Site};
use crate::namespaces::ip;
use crate::{LabError, Links, Node, RunningDut};

/// Routes over the cipher link.
#[derive(Debug, Default)]
pub(super) struct Direct {}

impl Adapter for Direct {
    fn start(&mut self, site: &Site<'_>, _links: Links) -> Result<RunningDut, LabError> {
        let [first, second] = site.on_gateways(|node| ip(node, routes(site, node, "replace")));
        if let Err(error) = first.and(second) {
            // The one that was set, if any.
            let _ = site.on_gateways(|node| ip(node, routes(site, node, "del")));
            return Err(error);
        }
        Ok(RunningDut::default())
    }

    fn stop(&mut self, site: &Site<'_>, _dut: RunningDut) -> Result<(), LabError> {
        let [first, second] = site.on_gateways(|node| ip(node, routes(site, node, "del")));
        first.and(second)
    }
}

/// The way to the station beyond the other gateway.
fn routes(site: &Site<'_>, node: &dyn Node, action: &str) -> String {
    let other = site
        .gateways
        .iter()
        .map(|gateway| gateway.id())
        .find(|id| *id != node.id());
    match other.and_then(|id| site.map.cipher(id)) {
        Some(via) => format!("route {action} {} via {via}\n", site.map.beyond(node.id())),
        None => String::new(),
    }
}
