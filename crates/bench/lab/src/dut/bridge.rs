//! One box that switches Ethernet: a Linux bridge on gw1, with the station in gw2's place.

use super::interfaces::Interfaces;
use super::site::{all, by_node, on_each};
use super::{Adapter, Site};
use crate::on_node::ip;
use crate::switch::{self, READY_LIMIT};
use crate::topology::{A0, A1, Port, W0, W1};
use std::collections::BTreeMap;
use testbed::{FramePath, Result, RunningDut};

/// A Linux bridge between gw1's two interfaces.
#[derive(Debug, Default)]
pub(super) struct Bridge {
    interfaces: Interfaces,
}

impl Adapter for Bridge {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut> {
        let site = &site.one_box();
        let switch = site.gateways[0];
        // Known before the bridge is made, because its static entries are the addresses of this
        // path.
        let path = frame_path(site);
        // gw1 is no hop of IP, so the routers behind it need routes to the stations.
        let started = switch::make(switch, &ports(&path))
            .and_then(|()| route_behind(site))
            .and_then(|()| Interfaces::watch(site, switch));
        match started {
            Ok(interfaces) => self.interfaces = interfaces,
            Err(error) => {
                let _ = self.stop(site, RunningDut::default());
                return Err(error);
            }
        }
        let facts = [("forwarding", "Ethernet"), ("stp", "off")];
        let facts = facts.map(|(name, value)| (name, value.to_owned()));
        Ok(RunningDut {
            facts: by_node(switch.id(), facts).collect(),
            frame_path: Some(path),
            ..RunningDut::default()
        })
    }

    fn await_ready(&self, site: &Site<'_>) -> Result<()> {
        if switch::forwards(site.gateways[0])? {
            return Ok(());
        }
        let limit = READY_LIMIT.as_secs();
        Err(site.error(format!(
            "is up, but its ports do not forward within {limit} s"
        )))
    }

    fn counters(&self, site: &Site<'_>, _dut: &RunningDut) -> Result<BTreeMap<String, u64>> {
        self.interfaces.since(site, site.gateways[0])
    }

    fn stop(&mut self, site: &Site<'_>, _dut: RunningDut) -> Result<()> {
        let site = &site.one_box();
        let removed = switch::remove(site.gateways[0]);
        let unrouted = on_each(&site.routers(), |router| {
            ip(router, site.map.unroute(router.id(), site.links))
        });
        removed.and(all(unrouted))
    }
}

/// From station to station, or from each to the router that is nearest on the path.
fn frame_path(site: &Site<'_>) -> FramePath {
    let mut path = site.frame_path();
    if site.routers().is_empty() {
        path.source.next_hop_mac = site.map.test_mac_of(W1);
        path.sink.next_hop_mac = A0.test_mac;
    } else {
        path.source.next_hop_mac = site.map.frame_end(W0).next_hop_mac;
    }
    path
}

/// The addresses behind the two ports that the test frames cross.
fn ports(path: &FramePath) -> [Port; 2] {
    let port = |interface, known| Port {
        interface,
        known: vec![known],
    };
    [
        port(A1.interface, A0.test_mac),
        port(W0.interface, path.source.next_hop_mac),
    ]
}

/// Routes from the path's routers to the stations.
fn route_behind(site: &Site<'_>) -> Result<()> {
    let stations = [A0, W1].map(|end| site.map.station_hop(end));
    all(on_each(&site.routers(), |router| {
        let routes = site.map.route_in_clear(router.id(), site.links, stations);
        ip(router, routes)
    }))
}
