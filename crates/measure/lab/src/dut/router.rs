//! One box that forwards IP: gw1, with the station in gw2's place.

use super::direct::Direct;
use super::interfaces::Interfaces;
use super::site::by_node;
use super::{Adapter, Site};
use crate::on_node::run_tool;
use crate::protocol::Program;
use crate::topology::W0;
use crate::{LabError, Node, Result, RunningDut};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long reading a kernel parameter may take.
const TOOL_LIMIT: Duration = Duration::from_secs(5);

/// Its table; deleting it deletes its chains.
const TABLE: &str = "inet cipherbench";

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
        if !self.nat {
            return Ok(());
        }
        run_nft(node, rules()).map_err(|error| match &error {
            LabError::Node { reason, .. } if !reason.contains("\nhelp: ") => node.error(format!(
                "{reason}\nhelp: the kernel must have nftables with NAT and connection \
                 tracking: sudo modprobe -a nf_tables nft_ct nft_masq; or set `nat: false`"
            )),
            _ => error,
        })
    }
}

impl Adapter for Router {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut> {
        let site = &site.one_box();
        let router = site.gateways[0];
        let mut dut = self.routes.start(site)?;
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
            // Adding it first ensures that it exists, even if its rules were refused.
            let forget = format!("add table {TABLE}\ndelete table {TABLE}\n");
            run_nft(site.gateways[0], forget)
        } else {
            Ok(())
        };
        self.routes.stop(site, dut).and(translated)
    }
}

impl Router {
    /// The kernel's own forwarding settings.
    fn facts(&self, node: &dyn Node) -> Result<BTreeMap<String, String>> {
        let parameter = |name: &str| -> Result<String> {
            let path = format!("/proc/sys/net/{name}");
            let ended = node.run(Program::new(["cat", &path]), TOOL_LIMIT)?;
            Ok(ended.stdout.trim().to_owned())
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

/// Translates sources as a home router does, to the address of the outgoing interface. The state
/// match makes the kernel track all flows, translated or not.
fn rules() -> String {
    let out = W0.interface;
    format!(
        "table {TABLE} {{\n\
         \x20 chain forward {{\n\
         \x20   type filter hook forward priority filter; policy accept;\n\
         \x20   ct state established,related accept\n\
         \x20 }}\n\
         \x20 chain postrouting {{\n\
         \x20   type nat hook postrouting priority srcnat;\n\
         \x20   meta nfproto ipv4 oifname \"{out}\" masquerade\n\
         \x20 }}\n\
         }}\n"
    )
}

fn run_nft(node: &dyn Node, rules: String) -> Result<()> {
    run_tool(node, Program::new(["nft", "-f", "-"]).with_input(rules))
}
