//! The tables of nftables, as text for `nft -f -`.

use super::ranges::Ranges;
use super::{BarrierError, run};
use std::fmt::Write as _;

/// Up to this many networks are compared one after the other, which costs nothing compared with the
/// hook itself; more are in a set.
const COMPARED_MAX: usize = 4;
/// All families that a gateway may have a table of.
const FAMILIES: [&str; 3] = ["ip", "ip6", "inet"];
/// The hooks, and the fields that they compare. The first precedes connection tracking, the second
/// follows all changes of a packet's destination. Both see a super-packet once.
const CHAINS: [Chain; 2] = [
    Chain {
        name: "inbound",
        hook: "hook prerouting priority -300",
        interface: "iifname",
        address: "saddr",
    },
    Chain {
        name: "outbound",
        hook: "hook postrouting priority 300",
        interface: "oifname",
        address: "daddr",
    },
];

struct Chain {
    name: &'static str,
    hook: &'static str,
    interface: &'static str,
    address: &'static str,
}

/// A gateway's tables.
#[derive(Debug, Clone)]
pub(super) struct Rules(String);

impl Rules {
    /// Drops packets to and from these addresses on all interfaces but the tunnel's.
    pub(super) fn of_networks(table: &str, tunnel: &str, ranges: &Ranges) -> Self {
        Self(of_networks(table, tunnel, ranges))
    }

    /// Keeps the host's stack off an interface.
    pub(super) fn of_interface(table: &str, interface: &str) -> Self {
        Self(of_interface(table, interface))
    }

    /// From a result of [`Rules::text`].
    pub(super) const fn from_text(text: String) -> Self {
        Self(text)
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Loads them in one transaction, in place of older ones.
    pub(super) fn load(&self) -> Result<(), BarrierError> {
        load(&self.0)
    }

    /// The tables as the kernel has them now, without their counters.
    pub(super) fn listed(&self) -> Result<String, BarrierError> {
        // One call of `nft` for each: 1.0.6 looks for the tables of several in one family only.
        let list = |table: &str| {
            let words = ["-s", "-nn", "list", "table"].into_iter();
            let arguments: Vec<&str> = words.chain(table.split(' ')).collect();
            run("nft", "nftables", &arguments, "")
        };
        self.tables().map(list).collect()
    }

    /// The name of the tables.
    pub(super) fn name(&self) -> &str {
        let mut names = self.tables().filter_map(|table| table.split(' ').nth(1));
        names.next().unwrap_or_default()
    }

    /// Whether there is a table at all.
    pub(super) fn is_empty(&self) -> bool {
        self.tables().next().is_none()
    }

    /// Family and name of each table.
    fn tables(&self) -> impl Iterator<Item = &str> {
        let lines = self.0.lines();
        lines.filter_map(|line| line.strip_prefix("table ")?.strip_suffix(" {"))
    }
}

/// Whether a table of that name exists.
pub(super) fn exists(table: &str) -> Result<bool, BarrierError> {
    let listed = run("nft", "nftables", &["list", "tables"], "")?;
    Ok(listed
        .lines()
        .any(|line| line.split(' ').nth(2) == Some(table)))
}

/// Loads tables in one transaction.
pub(super) fn load(text: &str) -> Result<(), BarrierError> {
    run("nft", "nftables", &["-f", "-"], text).map(drop)
}

/// Removes the tables of all families, whether they exist or not.
pub(super) fn removal(table: &str) -> String {
    // Added before it is deleted: `delete table` fails for an absent table, which would end the
    // transaction.
    let of_family =
        |family: &str| format!("add table {family} {table}\ndelete table {family} {table}\n");
    FAMILIES.map(of_family).concat()
}

/// Drops packets to and from these addresses on all interfaces but the tunnel's. Packets between
/// addresses of this host pass loopback.
///
/// Each family has a table, and each rule compares the address first, which ends it for most
/// packets: that halves the cost of one table for both.
fn of_networks(table: &str, tunnel: &str, ranges: &Ranges) -> String {
    let mut text = removal(table);
    for (family, kind, networks, elements) in [
        ("ip", "ipv4_addr", ranges.v4_networks(), ranges.v4()),
        ("ip6", "ipv6_addr", ranges.v6_networks(), ranges.v6()),
    ] {
        if elements.is_empty() {
            continue;
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "table {family} {table} {{");
        let compared = if networks.len() > COMPARED_MAX {
            let _ = writeln!(
                text,
                "set behind {{ type {kind}; flags interval; elements = {{ {} }}; }}",
                elements.join(", ")
            );
            vec!["@behind".to_owned()]
        } else {
            networks
        };
        for chain in CHAINS {
            let Chain {
                interface, address, ..
            } = chain;
            begin(&mut text, &chain);
            for network in &compared {
                let _ = writeln!(
                    text,
                    "{family} {address} {network} {interface} != \"{tunnel}\" {interface} != \"lo\" counter drop"
                );
            }
            text.push_str("}\n");
        }
        text.push_str("}\n");
    }
    text
}

/// Keeps the host's stack off an interface. The encryptor's port is in front of both hooks.
fn of_interface(table: &str, interface: &str) -> String {
    let mut text = removal(table);
    // Writing to a string does not fail.
    let _ = writeln!(text, "table inet {table} {{");
    for chain in CHAINS {
        begin(&mut text, &chain);
        let _ = writeln!(text, "{} \"{interface}\" counter drop\n}}", chain.interface);
    }
    text.push_str("}\n");
    text
}

fn begin(text: &mut String, chain: &Chain) {
    let Chain { name, hook, .. } = chain;
    // Writing to a string does not fail.
    let _ = writeln!(text, "chain {name} {{ type filter {hook}; policy accept;");
}
