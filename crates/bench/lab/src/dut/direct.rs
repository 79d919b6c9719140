//! No encryptor: the gateways, and routers between them, forward in clear over the cipher link.

use super::site::{all, on_each};
use super::{Adapter, Site};
use crate::on_node::ip;
use testbed::{Result, RunningDut};

/// Routes over the cipher link.
#[derive(Debug, Default)]
pub(super) struct Direct {}

impl Adapter for Direct {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut> {
        // Routes end at the station that replaces a gateway, if one does.
        let last = site.last_hops();
        let routed = on_each(&site.forwarding(), |node| {
            let routes = site.map.route_in_clear(node.id(), site.links, last);
            ip(node, routes)
        });
        if let Err(error) = all(routed) {
            // Removes the routes that were set, if any.
            let _ = self.stop(site, RunningDut::default());
            return Err(error);
        }
        Ok(RunningDut {
            frame_path: Some(site.frame_path()),
            ..RunningDut::default()
        })
    }

    fn stop(&mut self, site: &Site<'_>, _dut: RunningDut) -> Result<()> {
        let unrouted = on_each(&site.forwarding(), |node| {
            ip(node, site.map.unroute(node.id(), site.links))
        });
        all(unrouted)
    }
}
