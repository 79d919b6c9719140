//! The cables of a lab to boxes that Cipherbench does not run.

use plan::{Addresses, Cables, HostName, Hosts, is_interface};
use std::net::Ipv4Addr;
use yaml::{Map, Node, Reported, Spanned};

/// The interface that every namespace has.
const LOOPBACK: &str = "lo";

/// Names of the lab's interfaces, which a cable's interface cannot have.
const OWN_NAMES: [&str; 12] = [
    "lo", "a0", "a1", "b0", "b1", "c0", "c1", "w0", "w1", "p0", "p1", "br0",
];

/// The gateways' addresses as far as they are given, which is checked against the networks.
pub(super) struct CableConfig {
    cables: Cables,
    gateways: [Option<Spanned<Ipv4Addr>>; 2],
}

/// `between_hosts`: the stations are on two hosts.
pub(super) fn read(map: &Map<'_>, between_hosts: bool) -> Result<CableConfig, Reported> {
    let station_a = map.required("station_a").and_then(interface);
    let station_b = map.required("station_b").and_then(interface);
    let tap = map.with_default("tap", None, |node| {
        let ends = node.list(interface)?;
        <[_; 2]>::try_from(ends).map(Some).map_err(|ends| {
            let what = format!("the tap has two ends, not {}", ends.len());
            let help =
                "name the interface that leads to the first box and the one to the second: `[eth3, eth4]`";
            node.mistake(what, help)
        })
    });
    let tap_host = read_tap_host(map, between_hosts);
    let gateway = |key| {
        map.with_default(key, None, |node| {
            node.ipv4().map(|address| Some(node.spanned(address)))
        })
    };
    let (gateway_a, gateway_b) = (gateway("gateway_a"), gateway("gateway_b"));
    let (station_a, station_b, tap, tap_host) = (station_a?, station_b?, tap?, tap_host?);
    // Each with its machine.
    let on = |host| between_hosts.then_some(host);
    let mut named = vec![(on(HostName::A), &station_a), (on(HostName::B), &station_b)];
    named.extend(tap.iter().flatten().map(|end| (tap_host, end)));
    let mut result = Ok(());
    for (index, (host, later)) in named.iter().enumerate() {
        let is_it = |(on, earlier): &(Option<HostName>, &Spanned<String>)| {
            on == host && earlier.value == later.value
        };
        if named[..index].iter().any(is_it) {
            let what = format!("the interface `{}` is given twice", later.value);
            let help = "each cable needs an interface of its own";
            result = Err(map.node().mistake_at(&later.place, what, help));
        }
    }
    let gateways = [gateway_a?, gateway_b?];
    result?;
    Ok(CableConfig {
        cables: Cables {
            station_a: station_a.value,
            station_b: station_b.value,
            tap: tap.map(|ends| ends.map(|end| end.value)),
            tap_host,
            gateway_a: Ipv4Addr::UNSPECIFIED,
            gateway_b: Ipv4Addr::UNSPECIFIED,
        },
        gateways,
    })
}

/// Reads the host of a tap, which is given if the stations are on two hosts and there is a tap.
fn read_tap_host(map: &Map<'_>, between_hosts: bool) -> Result<Option<HostName>, Reported> {
    let tap = map.optional("tap");
    let Some(given) = map.optional("tap_host") else {
        return match tap {
            // Both interfaces are of one host, and neither host is the usual one.
            Some(tap) if between_hosts => {
                let help = "write `tap_host: a` or `tap_host: b`: it has both interfaces";
                Err(tap.mistake("the tap is on neither host", help))
            }
            _ => Ok(None),
        };
    };
    let what = match (between_hosts, tap) {
        (false, _) => "a lab of namespaces is all on this machine",
        (true, None) => "there is no tap to be on that host",
        (true, Some(_)) => {
            let known = HostName::ALL.map(|host| (host.name(), host));
            return given.one_of("host", &known).map(Some);
        }
    };
    Err(given.mistake(what, "remove `tap_host`"))
}

/// Refuses an interface of a host that is at two cables.
pub(super) fn expect_apart(map: &Map<'_>, cables: &Cables, hosts: &Hosts) -> Result<(), Reported> {
    for (name, host) in hosts.each() {
        let twice = cables
            .interfaces_on(name)
            .find(|interface| host.interface.as_deref() == Some(*interface));
        if let Some(interface) = twice {
            let name = name.name();
            let what = format!(
                "`{interface}` of host `{name}` leads to the other host already: `hosts.{name}.interface`"
            );
            return Err(map
                .node()
                .mistake(what, "each cable needs an interface of its own"));
        }
    }
    Ok(())
}

pub(super) fn interface(node: Node<'_>) -> Result<Spanned<String>, Reported> {
    let name = node.text()?;
    if !is_interface(name) {
        let what = "an interface cannot have this name";
        let help = "write one of those that `ip link` shows, up to 15 characters";
        return Err(node.mistake(what, help));
    }
    // A cable's interface is moved into a namespace of the lab, which has these already.
    if OWN_NAMES.contains(&name) {
        if name == LOOPBACK {
            let what = "the loopback interface is no cable";
            let help = "write an interface with a cable: `ip link` shows them";
            return Err(node.mistake(what, help));
        }
        let what = format!("the lab itself has interfaces named `{name}`");
        let help = format!("rename yours: `ip link set {name} name cable1`");
        return Err(node.mistake(what, help));
    }
    Ok(node.spanned(name.to_owned()))
}

impl CableConfig {
    /// With the gateways that are given, in the stations' networks, or the first address of each.
    pub(super) fn in_networks(
        self,
        map: &Map<'_>,
        addresses: &Addresses,
    ) -> Result<Cables, Reported> {
        let networks = [
            ("station_a", addresses.station_a),
            ("station_b", addresses.station_b),
        ];
        let mut gateways = [Ipv4Addr::UNSPECIFIED; 2];
        let mut result = Ok(());
        for ((given, (key, network)), gateway) in
            self.gateways.iter().zip(networks).zip(&mut gateways)
        {
            let [a, b, c, _] = network.octets();
            // As in the lab's networks without boxes.
            *gateway = Ipv4Addr::new(a, b, c, 1);
            let Some(given) = given else {
                continue;
            };
            let [.., number] = given.value.octets();
            let is_inside = given.value.octets()[..3] == [a, b, c];
            if !is_inside || matches!(number, 0 | 2 | 255) {
                let what = format!(
                    "{} is no address that a box can have in `{key}`",
                    given.value
                );
                let help =
                    format!("write one of {network}/24 but .0, .2 (the station's own) and .255");
                result = Err(map.node().mistake_at(&given.place, what, help));
            }
            *gateway = given.value;
        }
        let [gateway_a, gateway_b] = gateways;
        result.map(|()| Cables {
            gateway_a,
            gateway_b,
            ..self.cables
        })
    }
}
