//! The ports of this machine, and why some of them are not offered.

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};
use units::human::counted;

/// ARP hardware type of Ethernet, in `/sys/class/net/*/type`.
const ETHERNET: &str = "1";
/// `IFF_UP`, in `/sys/class/net/*/flags`.
const UP: u32 = 1;
/// The interface of `/proc/net/route` and `/proc/net/ipv6_route` has its flags here; a route in
/// use has the lowest bit.
const ROUTE_UP: u32 = 1;

/// An interface of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// The driver of its card.
    driver: Option<String>,
    /// Speed of its link.
    speed_mbps: Option<u64>,
    /// Why it is not offered.
    pub unfit: Option<String>,
}

/// All interfaces of this machine, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports(Vec<Port>);

impl Ports {
    /// Looks at this machine. Nothing is changed.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self::read(&Sources {
            interfaces: "/sys/class/net".into(),
            routes: "/proc/net".into(),
            addresses: addresses(),
        })
    }

    /// The interfaces that a lab can take.
    pub fn free(&self) -> impl Iterator<Item = &Port> {
        self.0.iter().filter(|port| port.unfit.is_none())
    }

    /// Warns about a named port that a run would refuse.
    #[must_use]
    pub fn warning(&self, name: &str) -> Option<String> {
        let why = match self.0.iter().find(|port| port.name == name) {
            None => "this machine has no such interface",
            Some(port) => port.unfit.as_deref()?,
        };
        Some(format!("`{name}` may be refused by `run`: {why}"))
    }

    /// A line for each interface: those that can be taken, then the others with the reason.
    #[must_use]
    pub fn text(&self) -> String {
        let free: Vec<&Port> = self.free().collect();
        let mut text = format!(
            "{} of this machine can be taken\n",
            counted(free.len() as u64, "port")
        );
        for port in free {
            text += &format!("  {}  {}\n", port.name, port.describe());
        }
        let others: Vec<_> = self.0.iter().filter(|it| it.unfit.is_some()).collect();
        if !others.is_empty() {
            text += "left out\n";
        }
        for Port { name, unfit, .. } in others {
            text += &format!("  {name}  {}\n", unfit.as_deref().unwrap_or_default());
        }
        text
    }

    fn read(sources: &Sources) -> Self {
        let entries = fs::read_dir(&sources.interfaces).into_iter().flatten();
        let names = entries.flatten().map(|entry| entry.file_name());
        // Files are there too, such as `bonding_masters`.
        let mut names: Vec<_> = names
            .filter_map(|name| name.into_string().ok())
            .filter(|name| sources.interfaces.join(name).is_dir())
            .collect();
        names.sort_unstable();
        let uplinks = sources.uplinks();
        let ports = names.into_iter().map(|name| {
            let folder = sources.interfaces.join(&name);
            let driver = fs::read_link(folder.join("device/driver")).ok();
            let driver = driver.as_deref().and_then(Path::file_name);
            Port {
                driver: driver.map(|it| it.to_string_lossy().into_owned()),
                // Without a link it is -1 or cannot be read.
                speed_mbps: text(&folder.join("speed"))
                    .parse()
                    .ok()
                    .filter(|&speed| speed > 0),
                unfit: unfit(&folder, &name, &uplinks, &sources.addresses),
                name,
            }
        });
        Self(ports.collect())
    }
}

impl Port {
    /// Speed and driver in words.
    #[must_use]
    pub fn describe(&self) -> String {
        let speed = match self.speed_mbps {
            Some(speed) if speed % 1000 == 0 => format!("{} Gbit/s", speed / 1000),
            Some(speed) => format!("{speed} Mbit/s"),
            // Virtual cards state none.
            None => "speed unknown".to_owned(),
        };
        match &self.driver {
            Some(driver) => format!("{speed}, driver {driver}"),
            None => speed,
        }
    }
}

/// The places that describe a machine.
struct Sources {
    /// A folder for each interface.
    interfaces: PathBuf,
    /// The folder of the files `route` and `ipv6_route`.
    routes: PathBuf,
    /// An address of each interface that has one in use.
    addresses: BTreeMap<String, IpAddr>,
}

impl Sources {
    /// The interfaces that default routes lead to.
    fn uplinks(&self) -> Vec<String> {
        let number = |word: &str| u32::from_str_radix(word, 16).ok();
        let is_up = |flags: &str| number(flags).is_some_and(|it| it & ROUTE_UP != 0);
        let mut uplinks = Vec::new();
        for line in text(&self.routes.join("route")).lines().skip(1) {
            let words: Vec<_> = line.split_whitespace().collect();
            if let [name, destination, _, flags, _, _, _, mask, ..] = words[..]
                && number(destination) == Some(0)
                && number(mask) == Some(0)
                && is_up(flags)
            {
                uplinks.push(name.to_owned());
            }
        }
        for line in text(&self.routes.join("ipv6_route")).lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            // Columns: destination and its length, source and its length, next hop, metric,
            // references, uses, flags, interface.
            if let [destination, length, .., flags, name] = words[..]
                && u128::from_str_radix(destination, 16) == Ok(0)
                && number(length) == Some(0)
                && is_up(flags)
            {
                uplinks.push(name.to_owned());
            }
        }
        uplinks
    }
}

/// Why an interface is not offered.
fn unfit(
    folder: &Path,
    name: &str,
    uplinks: &[String],
    addresses: &BTreeMap<String, IpAddr>,
) -> Option<String> {
    let has = |entry: &str| folder.join(entry).symlink_metadata().is_ok();
    if uplinks.iter().any(|uplink| uplink == name) {
        return Some("this machine's default route goes out of it".to_owned());
    }
    if !has("device") {
        return Some("virtual: no network card".to_owned());
    }
    if has("phy80211") || has("wireless") {
        return Some("wireless".to_owned());
    }
    if text(&folder.join("type")) != ETHERNET {
        return Some("no Ethernet interface".to_owned());
    }
    if let Ok(master) = fs::read_link(folder.join("master")) {
        let master = master.file_name().unwrap_or_default();
        return Some(format!("a port of `{}`", master.to_string_lossy()));
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let above = names.filter_map(|name| Some(name.strip_prefix("upper_")?.to_owned()));
    if let Some(above) = above.min() {
        return Some(format!("under `{above}`"));
    }
    if let Some(address) = addresses.get(name) {
        return Some(format!("in use: it has the address {address}"));
    }
    // The kernel reads no carrier of an interface that is down.
    let flags = text(&folder.join("flags"));
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap_or(0);
    if flags & UP == 0 {
        return Some(format!(
            "down: `ip link set {name} up` shows whether it has a link"
        ));
    }
    (text(&folder.join("carrier")) != "1").then(|| "no link".to_owned())
}

/// An address of each interface, without those that the kernel gives to all with IPv6.
fn addresses() -> BTreeMap<String, IpAddr> {
    let all = getifaddrs().into_iter().flatten();
    let found = all.filter_map(|it| Some((it.interface_name, ip(&it.address?)?)));
    found
        .filter(|(_, address)| !matches!(address, IpAddr::V6(it) if is_link_local(it)))
        .collect()
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|it| it.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|it| it.ip().into()))
}

const fn is_link_local(address: &Ipv6Addr) -> bool {
    address.is_unicast_link_local()
}

fn text(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A machine with interfaces of every kind.
    fn machine(folder: &Path) -> Sources {
        let interfaces = folder.join("net");
        let add = |name: &str, files: &[(&str, &str)], links: &[(&str, &str)]| {
            let folder = interfaces.join(name);
            fs::create_dir_all(&folder).expect("a folder");
            for (file, content) in files {
                fs::write(folder.join(file), content).expect("a file");
            }
            for (link, to) in links {
                symlink(to, folder.join(link)).expect("a link");
            }
        };
        let up = [
            ("type", "1\n"),
            ("flags", "0x1003\n"),
            ("carrier", "1\n"),
            ("speed", "10000\n"),
        ];
        let down = [("type", "1\n"), ("flags", "0x1002\n"), ("speed", "-1\n")];
        let unplugged = [("type", "1\n"), ("flags", "0x1003\n"), ("carrier", "0\n")];
        let card = ("device", "../../card");
        for name in ["eth0", "eth1", "eth2", "eth5", "eth8"] {
            add(name, &up, &[card]);
        }
        add("eth3", &down, &[card]);
        add("eth4", &unplugged, &[card]);
        add("eth6", &up, &[card, ("master", "../br0")]);
        add("eth7", &up, &[card, ("upper_vlan7", "../vlan7")]);
        add("ib0", &[("type", "32\n")], &[card]);
        add("veth0", &up, &[]);
        add("wlan0", &up, &[card, ("phy80211", "../phy0")]);
        fs::write(interfaces.join("bonding_masters"), "\n").expect("a file");
        fs::create_dir(folder.join("card")).expect("a folder");
        symlink("../../drivers/ixgbe", folder.join("card/driver")).expect("a link");
        let route = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
                     eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n\
                     eth1 00000000 00000000 0000 0 0 0 00000000 0 0 0\n\
                     eth1 0000000A 00000000 0001 0 0 0 000000FF 0 0 0\n";
        fs::write(folder.join("route"), route).expect("a file");
        let zero = "0".repeat(32);
        let route = format!(
            "{zero} 00 {zero} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth8\n"
        );
        fs::write(folder.join("ipv6_route"), route).expect("a file");
        Sources {
            interfaces,
            routes: folder.to_owned(),
            addresses: [("eth5".to_owned(), [192, 0, 2, 5].into())].into(),
        }
    }

    #[test]
    fn only_cards_with_a_link_that_nobody_uses_are_offered() {
        let folder = testing::folder().expect("a folder");
        let ports = Ports::read(&machine(folder.path()));
        let free: Vec<_> = ports.free().map(|port| &*port.name).collect();
        assert_eq!(free, ["eth1", "eth2"]);
        assert_eq!(
            ports.text(),
            "2 ports of this machine can be taken\n  \
               eth1  10 Gbit/s, driver ixgbe\n  \
               eth2  10 Gbit/s, driver ixgbe\n\
             left out\n  \
               eth0  this machine's default route goes out of it\n  \
               eth3  down: `ip link set eth3 up` shows whether it has a link\n  \
               eth4  no link\n  \
               eth5  in use: it has the address 192.0.2.5\n  \
               eth6  a port of `br0`\n  \
               eth7  under `vlan7`\n  \
               eth8  this machine's default route goes out of it\n  \
               ib0  no Ethernet interface\n  \
               veth0  virtual: no network card\n  \
               wlan0  wireless\n"
        );
        assert_eq!(ports.warning("eth1"), None);
        let warning = ports.warning("eth0").expect("a warning");
        assert!(warning.contains("default route"), "{warning}");
        let warning = ports.warning("eth9").expect("a warning");
        assert!(warning.contains("no such interface"), "{warning}");
    }
}
