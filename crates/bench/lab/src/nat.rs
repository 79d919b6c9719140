//! Address translation with nftables: as a DUT, and as an element of the path.

use crate::on_node::{ask, parse_json, run_tool};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use testbed::protocol::Program;
use testbed::{LabError, Node, Result};

/// The lab's table. Deleting it deletes its chains and counters.
const TABLE: &str = "cipherbench";

/// Counters of IPv4 packets that leave towards gw2, after translation: packets with the outer
/// address as their source, and packets with another source.
const COUNTERS: [&str; 2] = ["translated_packets", "untranslated_packets"];

/// A NAT in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Translation {
    /// Its interface towards gw2.
    pub(crate) outer_interface: &'static str,
    /// Its address on that interface, the source of all packets from gw1's side.
    pub(crate) outer: Ipv4Addr,
    /// The next node on gw1's side with an address: a gateway, or another NAT. It gets the packets
    /// that belong to no flow.
    pub(crate) inner: Ipv4Addr,
}

impl Translation {
    /// Translates sources to the outer address like a home router, and forwards unsolicited packets
    /// for that address to the inner node, like a home router with an exposed host: either gateway
    /// may send first.
    fn rules(self) -> String {
        let Self {
            outer_interface,
            outer,
            inner,
        } = self;
        // Destinations are translated before the kernel looks up the route (priority -100), sources
        // after it.
        let [translated, untranslated] = COUNTERS;
        // The counters come after the translation (priority 100), so that they see its result.
        format!(
            "table ip {TABLE} {{\n\
             \x20 counter {translated} {{ }}\n\
             \x20 counter {untranslated} {{ }}\n\
             \x20 chain prerouting {{\n\
             \x20   type nat hook prerouting priority -100;\n\
             \x20   iifname \"{outer_interface}\" ip daddr {outer} dnat to {inner}\n\
             \x20 }}\n\
             \x20 chain postrouting {{\n\
             \x20   type nat hook postrouting priority 100;\n\
             \x20   oifname \"{outer_interface}\" masquerade\n\
             \x20 }}\n\
             \x20 chain translated {{\n\
             \x20   type filter hook postrouting priority 110; policy accept;\n\
             \x20   oifname \"{outer_interface}\" ip saddr {outer} counter name {translated}\n\
             \x20   oifname \"{outer_interface}\" ip saddr != {outer} counter name {untranslated}\n\
             \x20 }}\n\
             }}\n"
        )
    }

    /// Sets the rules on a node.
    pub(crate) fn set(self, node: &dyn Node) -> Result<()> {
        run_nft(node, self.rules(), "leave `nat` out of the lab's `path`")
    }
}

/// Returns the packet counters of a node's NAT, by name.
pub(crate) fn counters(node: &dyn Node) -> Result<BTreeMap<String, u64>> {
    let list = ["nft", "-j", "list", "counters", "table", "ip", TABLE];
    // By their names: the output has other objects too.
    let listed: Listed = parse_json(node, "the counters of nftables", &ask(node, list)?)?;
    let counters = listed.nftables.into_iter().filter_map(|item| item.counter);
    let counters: BTreeMap<_, _> = counters.map(|it| (it.name, it.packets)).collect();
    match COUNTERS.iter().find(|name| !counters.contains_key(**name)) {
        Some(name) => Err(node.error(format!("its rules have lost the counter {name}"))),
        None => Ok(counters),
    }
}

/// Output of `nft -j`. The item with the version of nftables has no counter.
#[derive(Deserialize)]
struct Listed {
    nftables: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    counter: Option<Counter>,
}

#[derive(Deserialize)]
struct Counter {
    name: String,
    packets: u64,
}

/// Translates sources to the address of that interface, like a home router. The state match makes
/// the kernel track all flows, translated or not.
pub(crate) fn masquerade(node: &dyn Node, interface: &str) -> Result<()> {
    // Of the family `inet`, so that the kernel tracks the flows of IPv6 too, which are not
    // translated.
    let rules = format!(
        "table inet {TABLE} {{\n\
         \x20 chain forward {{\n\
         \x20   type filter hook forward priority filter; policy accept;\n\
         \x20   ct state established,related accept\n\
         \x20 }}\n\
         \x20 chain postrouting {{\n\
         \x20   type nat hook postrouting priority srcnat;\n\
         \x20   meta nfproto ipv4 oifname \"{interface}\" masquerade\n\
         \x20 }}\n\
         }}\n"
    );
    run_nft(node, rules, "set `nat: false`")
}

/// Removes the rules of [`masquerade`].
pub(crate) fn end_masquerade(node: &dyn Node) -> Result<()> {
    // Adding the table first ensures that it exists, even if its rules were refused.
    let forget = format!("add table inet {TABLE}\ndelete table inet {TABLE}\n");
    run_tool(node, nft(forget))
}

/// Sets rules; `instead` is the alternative that the error suggests if the kernel refuses them.
fn run_nft(node: &dyn Node, rules: String, instead: &str) -> Result<()> {
    run_tool(node, nft(rules)).map_err(|error| match &error {
        LabError::Node { reason, .. } if !reason.contains("\nhelp: ") => node.error(format!(
            "{reason}\nhelp: the kernel must have nftables with NAT and connection \
             tracking: sudo modprobe -a nf_tables nft_ct nft_masq; or {instead}"
        )),
        _ => error,
    })
}

fn nft(rules: String) -> Program {
    Program::new(["nft", "-f", "-"]).with_input(rules)
}
