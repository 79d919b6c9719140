//! Settings of a network namespace as the kernel lists and reports them (rtnetlink(7)), each with a
//! name and its values as text.

use super::UNUSED_TABLE;
use super::netlink::{Message, attributes, number, text};
use base16ct::lower::encode_string as hex;
use journal::record::SettingChange;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Names of interfaces by their index.
pub(super) type Names = BTreeMap<u32, String>;

/// The values of a setting, by name.
pub(super) type Values = BTreeMap<&'static str, String>;

/// Bytes of `ifinfomsg`, `ifaddrmsg`, `rtmsg`, `fib_rule_hdr`, `tcmsg` and `netconfmsg`.
pub(super) const LINK_BYTES: usize = 16;
pub(super) const ADDRESS_BYTES: usize = 8;
pub(super) const ROUTE_BYTES: usize = 12;
pub(super) const RULE_BYTES: usize = 12;
pub(super) const QUEUE_BYTES: usize = 20;
pub(super) const CONF_BYTES: usize = 4;

/// `IFLA_EVENT`, and its value for changed offloads (`IFLA_EVENT_FEATURES`).
const LINK_EVENT: u16 = 44;
const FEATURES_EVENT: u32 = 2;

/// `TC_H_ROOT` of `linux/pkt_sched.h`.
const ROOT: u32 = u32::MAX;

/// `RT_TABLE_LOCAL`: the kernel's routes to local addresses.
const LOCAL_TABLE: u32 = 255;

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SettingUpdate {
    /// A setting exists, with these values.
    Is(String, Values),
    /// A setting was removed.
    Gone(String),
    /// Something changed whose values are not kept.
    Changed(String),
}

/// Returns the settings in a message, if any. Adds the names of links to `names`.
pub(super) fn said(message: &Message, names: &mut Names) -> Vec<SettingUpdate> {
    let body = &message.body;
    let setting = match message.kind {
        libc::RTM_NEWLINK | libc::RTM_DELLINK => link(body, names),
        libc::RTM_NEWADDR | libc::RTM_DELADDR => address(body, names),
        libc::RTM_NEWROUTE | libc::RTM_DELROUTE => route(body, names),
        libc::RTM_NEWRULE | libc::RTM_DELRULE => rule(body),
        libc::RTM_NEWQDISC | libc::RTM_DELQDISC => queue(body, names),
        libc::RTM_NEWNETCONF => conf(body, names),
        kind => return other(kind, body, names),
    };
    let Some((name, values)) = setting else {
        return Vec::new();
    };
    if !is_new(message.kind) {
        return vec![SettingUpdate::Gone(name)];
    }
    let mut all = Vec::new();
    if message.kind == libc::RTM_NEWLINK && has_new_features(body) {
        all.push(SettingUpdate::Changed(SettingChange::offloads(&name)));
    }
    all.push(SettingUpdate::Is(name, values));
    all
}

/// Whether a message reports an object, and not its removal.
const fn is_new(kind: u16) -> bool {
    // The kernel numbers its messages in groups of four: new, removed, asked for, set.
    kind & 3 == 0
}

/// Classes and filters of queues: any message is a change.
fn other(kind: u16, body: &[u8], names: &Names) -> Vec<SettingUpdate> {
    let what = match kind {
        libc::RTM_NEWTCLASS | libc::RTM_DELTCLASS => "class",
        libc::RTM_NEWTFILTER | libc::RTM_DELTFILTER => "filter",
        _ => return Vec::new(),
    };
    let how = if is_new(kind) {
        "added or changed"
    } else {
        "removed"
    };
    let interface = interface(names, word(body, 4));
    vec![SettingUpdate::Changed(format!(
        "{what} of {interface} {how}"
    ))]
}

fn word(body: &[u8], at: usize) -> u32 {
    body.get(at..).and_then(number).unwrap_or(0)
}

/// The first attribute of a kind.
fn value<'b>(attributes: &[(u16, &'b [u8])], kind: u16) -> Option<&'b [u8]> {
    let found = attributes.iter().find(|(known, _)| *known == kind);
    found.map(|(_, value)| *value)
}

fn interface(names: &Names, index: u32) -> String {
    let name = names.get(&index).cloned();
    name.unwrap_or_else(|| format!("interface {index}"))
}

/// Returns `None` for `lo`.
fn link(body: &[u8], names: &mut Names) -> Option<(String, Values)> {
    // `ifinfomsg` has the index at 4 and the flags at 8.
    let (index, flags) = (word(body, 4), word(body, 8));
    let mut values = Values::new();
    let mut flag = |name, bit: libc::c_int| {
        let on = flags & bit.cast_unsigned() != 0;
        values.insert(name, if on { "yes" } else { "no" }.to_owned());
    };
    flag("up", libc::IFF_UP);
    flag("running", libc::IFF_RUNNING);
    for (kind, value) in attributes(body, LINK_BYTES) {
        let known = match kind {
            libc::IFLA_IFNAME => {
                names.insert(index, text(value));
                continue;
            }
            libc::IFLA_ADDRESS => ("MAC", hex(value)),
            libc::IFLA_QDISC => ("queue discipline", text(value)),
            libc::IFLA_MTU => ("mtu", number(value)?.to_string()),
            libc::IFLA_TXQLEN => ("queue length", number(value)?.to_string()),
            libc::IFLA_MASTER => ("master", number(value)?.to_string()),
            libc::IFLA_NUM_TX_QUEUES => ("transmit queues", number(value)?.to_string()),
            libc::IFLA_NUM_RX_QUEUES => ("receive queues", number(value)?.to_string()),
            libc::IFLA_GSO_MAX_SIZE => ("largest super-packet", number(value)?.to_string()),
            _ => continue,
        };
        values.insert(known.0, known.1);
    }
    let is_own = flags & libc::IFF_LOOPBACK.cast_unsigned() != 0;
    (!is_own).then(|| (format!("link {}", interface(names, index)), values))
}

/// Whether a link's message reports changed offloads.
fn has_new_features(body: &[u8]) -> bool {
    let event = value(&attributes(body, LINK_BYTES), LINK_EVENT);
    event.and_then(number) == Some(FEATURES_EVENT)
}

/// Returns `None` for a link-local IPv6 address, which the kernel assigns and tests by itself.
fn address(body: &[u8], names: &Names) -> Option<(String, Values)> {
    let prefix = *body.get(1)?;
    let found = attributes(body, ADDRESS_BYTES);
    // On a point-to-point interface `IFA_ADDRESS` is the address of the peer. IPv6 mostly has no
    // `IFA_LOCAL`.
    let bytes = value(&found, libc::IFA_LOCAL).or_else(|| value(&found, libc::IFA_ADDRESS))?;
    let address = ip(bytes)?;
    let interface = interface(names, word(body, 4));
    let name = format!("address {address}/{prefix} of {interface}");
    (!is_link_local(address)).then(|| (name, Values::new()))
}

/// Returns `None` for IPv6 routes that the kernel adds by itself, to local addresses and to
/// neighbours and groups on a link. Also `None` for routes in the table of a station's IKE daemon,
/// which replaces them with each SA; no packet uses them. A rule that leads to this table is
/// reported as a change.
fn route(body: &[u8], names: &Names) -> Option<(String, Values)> {
    let &[family, length, _, tos, table, _, _, kind, ..] = body else {
        return None;
    };
    let mut values = Values::new();
    values.insert("type", route_type(kind));
    let (mut table, mut target, mut metric) = (u32::from(table), None, 0);
    for (kind, value) in attributes(body, ROUTE_BYTES) {
        match kind {
            // The table in the header has one byte: larger numbers are only in the attribute.
            libc::RTA_TABLE => table = number(value)?,
            libc::RTA_DST => target = ip(value),
            libc::RTA_PRIORITY => metric = number(value)?,
            libc::RTA_GATEWAY => drop(values.insert("via", ip(value)?.to_string())),
            libc::RTA_OIF => drop(values.insert("by", interface(names, number(value)?))),
            libc::RTA_PREFSRC => drop(values.insert("from", ip(value)?.to_string())),
            // Nested attributes: only whether they change matters, and not their meaning.
            libc::RTA_METRICS => drop(values.insert("metrics", hex(value))),
            libc::RTA_MULTIPATH => drop(values.insert("next hops", hex(value))),
            _ => {}
        }
    }
    let is_v6 = i32::from(family) == libc::AF_INET6;
    // The kernel adds and removes these with addresses and links, which are settings themselves.
    let own = is_v6 && (table == LOCAL_TABLE || target.is_some_and(is_link_local));
    let target = match target {
        Some(target) => format!("{target}/{length}"),
        None if is_v6 => "default (IPv6)".to_owned(),
        None => "default".to_owned(),
    };
    let mut name = format!("route {target}");
    if table != u32::from(libc::RT_TABLE_MAIN) {
        name += &format!(" in table {table}");
    }
    if tos != 0 {
        name += &format!(" of TOS {tos}");
    }
    if metric != 0 {
        name += &format!(" of metric {metric}");
    }
    (!own && table != UNUSED_TABLE).then_some((name, values))
}

fn route_type(kind: u8) -> String {
    match kind {
        libc::RTN_UNICAST => "unicast".to_owned(),
        libc::RTN_LOCAL => "local".to_owned(),
        libc::RTN_BROADCAST => "broadcast".to_owned(),
        libc::RTN_BLACKHOLE => "blackhole".to_owned(),
        libc::RTN_UNREACHABLE => "unreachable".to_owned(),
        libc::RTN_PROHIBIT => "prohibit".to_owned(),
        other => other.to_string(),
    }
}

/// `FRA_PRIORITY` of `linux/fib_rules.h`.
const RULE_PRIORITY: u16 = 6;

fn rule(body: &[u8]) -> Option<(String, Values)> {
    let header = body.first_chunk::<RULE_BYTES>()?;
    let found = attributes(body, RULE_BYTES);
    let priority = value(&found, RULE_PRIORITY).and_then(number).unwrap_or(0);
    // Several rules may share a priority, so their selectors and targets are part of the name.
    let rest = found.iter().filter(|(kind, _)| *kind != RULE_PRIORITY);
    let rest: Vec<String> = rest
        .map(|(kind, value)| format!("{kind}={}", hex(value)))
        .collect();
    let version = version(header[0]);
    let name = format!(
        "{version} routing rule {priority} ({}; {})",
        hex(&header[1..8]),
        rest.join(" ")
    );
    Some((name, Values::new()))
}

/// `TCA_KIND` and `TCA_OPTIONS` of `linux/rtnetlink.h`.
const QUEUE_KIND: u16 = 1;
const QUEUE_OPTIONS: u16 = 2;

/// Returns `None` for a queue discipline without a handle, which the kernel attaches by itself.
fn queue(body: &[u8], names: &Names) -> Option<(String, Values)> {
    let interface = interface(names, word(body, 4));
    let (handle, parent) = (word(body, 8), word(body, 12));
    let mut values = Values::new();
    for (kind, value) in attributes(body, QUEUE_BYTES) {
        match kind {
            QUEUE_KIND => drop(values.insert("kind", text(value))),
            QUEUE_OPTIONS => drop(values.insert("options", hex(value))),
            _ => {}
        }
    }
    let name = format!("queue {handle:x} at {parent:x} of {interface}");
    (handle != 0).then_some((name, values))
}

/// `TCA_STATS2` and `TCA_STATS_QUEUE` of `linux/gen_stats.h`; the queue's drops follow its length
/// and backlog.
const QUEUE_STATISTICS: u16 = 7;
const QUEUE_COUNTS: u16 = 3;
const DROPS_AT: usize = 8;

/// Returns the interface of a queue discipline and the packets it dropped. Only for a root, which
/// sums the drops below it.
pub(super) fn queue_drops(message: &Message, names: &Names) -> Option<(String, u64)> {
    let body = &message.body;
    let is_root = word(body, 12) == ROOT;
    let found = attributes(body, QUEUE_BYTES);
    let statistics = attributes(value(&found, QUEUE_STATISTICS)?, 0);
    let counts = value(&statistics, QUEUE_COUNTS)?;
    let drops = counts.get(DROPS_AT..).and_then(number)?;
    is_root.then(|| (interface(names, word(body, 4)), drops.into()))
}

/// `NETCONFA_*` of `linux/netconf.h`.
const CONF_INTERFACE: u16 = 1;
const CONF_FORWARDING: u16 = 2;
const CONF_REVERSE_PATH: u16 = 3;

fn conf(body: &[u8], names: &Names) -> Option<(String, Values)> {
    let mut values = Values::new();
    let mut index = 0;
    for (kind, value) in attributes(body, CONF_BYTES) {
        match kind {
            CONF_INTERFACE => index = number(value)?,
            CONF_FORWARDING => drop(values.insert("forwarding", number(value)?.to_string())),
            CONF_REVERSE_PATH => {
                drop(values.insert("reverse path filter", number(value)?.to_string()));
            }
            _ => {}
        }
    }
    // `NETCONFA_IFINDEX_ALL` and `NETCONFA_IFINDEX_DEFAULT`.
    let of = match index.cast_signed() {
        -1 => "all interfaces".to_owned(),
        -2 => "new interfaces".to_owned(),
        _ => interface(names, index),
    };
    let version = version(*body.first()?);
    Some((format!("{version} of {of}"), values))
}

fn version(family: u8) -> &'static str {
    match i32::from(family) {
        libc::AF_INET6 => "IPv6",
        _ => "IPv4",
    }
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(Ipv4Addr::from(*bytes.first_chunk::<4>()?).into()),
        16 => Some(Ipv6Addr::from(*bytes.first_chunk::<16>()?).into()),
        _ => None,
    }
}

/// `fe80::/10` and `ff00::/8`.
fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => address.is_unicast_link_local() || address.is_multicast(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message about a route to 198.18.0.0/16 over interface 7.
    fn route_message(kind: u16, table: u32) -> Message {
        let mut body = vec![0; ROUTE_BYTES];
        (body[0], body[1]) = (libc::AF_INET as u8, 16);
        body[7] = libc::RTN_UNICAST;
        for (kind, value) in [
            (libc::RTA_DST, [198, 18, 0, 0]),
            (libc::RTA_TABLE, table.to_ne_bytes()),
            (libc::RTA_OIF, 7_u32.to_ne_bytes()),
        ] {
            body.extend(8_u16.to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(value);
        }
        Message { kind, body }
    }

    /// A station's IKE daemon changes its routes when the device renews keys; the same route in
    /// another table is a change of the path.
    #[test]
    fn routes_that_no_packet_looks_up_are_no_settings() {
        let mut names = Names::from([(7, "ipsec0".to_owned())]);
        let main = u32::from(libc::RT_TABLE_MAIN);
        for kind in [libc::RTM_NEWROUTE, libc::RTM_DELROUTE] {
            assert_eq!(said(&route_message(kind, UNUSED_TABLE), &mut names), []);
            let found = said(&route_message(kind, main), &mut names);
            assert_eq!(found.len(), 1, "{found:?}");
            let found = said(&route_message(kind, UNUSED_TABLE + 1), &mut names);
            assert_eq!(found.len(), 1, "{found:?}");
        }
        let [SettingUpdate::Is(name, values)] =
            &said(&route_message(libc::RTM_NEWROUTE, main), &mut names)[..]
        else {
            panic!("it is a route");
        };
        assert_eq!(
            (name.as_str(), values["by"].as_str()),
            ("route 198.18.0.0/16", "ipsec0")
        );
    }
}
