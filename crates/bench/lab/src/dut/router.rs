//! One box that forwards IP: gw1, with the station in gw2's place.

use super::direct::Direct;
use super::interfaces::Interfaces;
use super::site::by_node;
use super::{Adapter, Site};
use crate::nat;
use crate::on_node::ask;
use crate::topology::W0;
use std::collections::BTreeMap;
use testbed::{Node, Result, RunningDut};

/// Linux forwarding on gw1.
#[derive(Debug, Default)]
pub(super) struct Router {
    nat: bool,
    routes: Direct,
    interfaces: Interfaces,
}

impl Router {
    pub(super) fn new(nat: bool) -> Self {
        Self {
            nat,
            ..Self::default()
        }
    }

    fn translate(&self, node: &dyn Node) -> Result<()> {
        if self.nat {
            nat::masquerade(node, W0.interface)
        } else {
            Ok(())
        }
    }
}

impl Adapter for Router {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut> {
        // The box is gw1 alone, in every direction.
        let site = &site.one_box();
        let router = site.gateways[0];
        let mut dut = self.routes.start(site)?;
        // The rules come first: they load connection tracking, and its limit is one of the facts.
        let started = self.translate(router).and_then(|()| {
            dut.facts = self.facts(router)?;
            Interfaces::watch(site, router)
        });
        let up = started.map(|interfaces| self.interfaces = interfaces);
        self.up_or_stopped(site, dut, up)
    }

    /// Routes take effect when they are set, and neighbours are static.
    fn await_ready(&self, _site: &Site<'_>) -> Result<()> {
        Ok(())
    }

    fn counters(&self, site: &Site<'_>, _dut: &RunningDut) -> Result<BTreeMap<String, u64>> {
        self.interfaces.since(site, site.gateways[0])
    }

    fn stop(&mut self, site: &Site<'_>, dut: RunningDut) -> Result<()> {
        let site = &site.one_box();
        let translated = if self.nat {
            nat::end_masquerade(site.gateways[0])
        } else {
            Ok(())
        };
        self.routes.stop(site, dut).and(translated)
    }
}

impl Router {
    /// Returns the kernel's forwarding settings.
    fn facts(&self, node: &dyn Node) -> Result<BTreeMap<String, String>> {
        let parameter = |name: &str| -> Result<String> {
            let path = format!("/proc/sys/net/{name}");
            Ok(ask(node, ["cat", &path])?.stdout.trim().to_owned())
        };
        let versions = [
            ("IPv4", "ipv4/ip_forward"),
            ("IPv6", "ipv6/conf/all/forwarding"),
        ];
        let mut forwarding = Vec::new();
        for (version, name) in versions {
            if parameter(name)? == "1" {
                forwarding.push(version);
            }
        }
        let (nat, conntrack) = if self.nat {
            let most = parameter("netfilter/nf_conntrack_max")?;
            ("IPv4 masquerade", format!("on, up to {most} flows"))
        } else {
            ("none", "off".to_owned())
        };
        let facts = [
            ("forwarding", forwarding.join(" ")),
            ("nat", nat.to_owned()),
            ("conntrack", conntrack),
        ];
        Ok(by_node(node.id(), facts).collect())
    }
}
