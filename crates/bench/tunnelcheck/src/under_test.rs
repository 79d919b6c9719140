//! The interfaces of this host whose offloads are tried, and those that are left alone.

use crate::interfaces::{Interface, beneath, interfaces, towards};
use crate::sessions::{Carrier, carriers};
use std::net::IpAddr;

/// Interfaces under test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnderTest {
    /// The one of the route to the other end, then the one that its packets leave by.
    pub(crate) names: Vec<String>,
    /// Why others are left alone.
    pub(crate) spared: Vec<String>,
}

/// The interfaces of the path to a peer. `left` is the one that its packets were seen to leave by.
/// An error is a clause for people: offloads must not be tried here.
pub(crate) fn under_test(peer: IpAddr, left: Option<&str>) -> Result<UnderTest, String> {
    if !nix::unistd::geteuid().is_root() {
        return Err("offloads are changed by root only".to_owned());
    }
    let all = interfaces()?;
    let top = towards(peer)?;
    let is_own = |known: &Interface| known.name == top && known.is_loopback();
    if all.iter().any(is_own) {
        return Err("the other end is this host".to_owned());
    }
    let lower = left.map_or_else(
        || beneath(&all, &top).into_iter().next(),
        |it| Some(it.into()),
    );
    chosen(&all, &carriers(&all)?, top, lower)
}

fn chosen(
    all: &[Interface],
    carriers: &[Carrier],
    top: String,
    lower: Option<String>,
) -> Result<UnderTest, String> {
    let user = |name: &str| {
        let mut carriers = carriers.iter();
        carriers.find(|carrier| is_carried_by(all, &carrier.interface, name))
    };
    if let Some(Carrier { peer, .. }) = user(&top) {
        return Err(format!("an ssh session with {peer} goes over {top}"));
    }
    let mut names = vec![top];
    let mut spared = Vec::new();
    match lower.map(|name| (user(&name), name)) {
        Some((_, name)) if name == names[0] => {}
        Some((Some(Carrier { peer, .. }), name)) => {
            spared.push(format!("{name}: an ssh session with {peer} goes over it"));
        }
        Some((None, name)) => names.push(name),
        None => {}
    }
    Ok(UnderTest { names, spared })
}

/// Whether the packets of `upper` pass the interface `name`: it is the same, a port of it, or
/// beneath it, over any number of steps.
fn is_carried_by(all: &[Interface], upper: &str, name: &str) -> bool {
    let mut passed = vec![upper];
    let mut at = 0;
    while let Some(&current) = passed.get(at) {
        let below = all.iter().filter(|interface| {
            let is_port = interface.master.as_deref() == Some(current);
            let is_link = all
                .iter()
                .any(|it| it.name == current && it.link.as_ref() == Some(&interface.name));
            (is_port || is_link) && !passed.contains(&&*interface.name)
        });
        let below: Vec<&str> = below.map(|interface| &*interface.name).collect();
        passed.extend(below);
        at += 1;
    }
    passed.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interfaces::parse;

    const LINKS: &str = r#"[
        {"ifname":"eth0","master":"bond0"},
        {"ifname":"bond0","linkinfo":{"info_kind":"bond"}},
        {"ifname":"bond0.7","link":"bond0","linkinfo":{"info_kind":"vlan"}},
        {"ifname":"eth1"},
        {"ifname":"wg0","linkinfo":{"info_kind":"wireguard"}}
    ]"#;

    fn of(carrier: &str, top: &str, lower: &str) -> Result<UnderTest, String> {
        let all = parse(LINKS).unwrap();
        let peer = IpAddr::from([192, 0, 2, 9]);
        let interface = carrier.to_owned();
        let carriers = [Carrier { interface, peer }];
        chosen(&all, &carriers, top.to_owned(), Some(lower.to_owned()))
    }

    #[test]
    fn an_interface_with_an_ssh_session_is_left_alone() {
        assert_eq!(of("eth1", "wg0", "eth0").unwrap().names, ["wg0", "eth0"]);
        let spared = of("bond0.7", "wg0", "eth0").unwrap();
        assert_eq!(spared.names, ["wg0"]);
        let words = "eth0: an ssh session with 192.0.2.9 goes over it";
        assert_eq!(spared.spared, [words]);
        assert_eq!(of("wg0", "eth1", "eth1").unwrap().names, ["eth1"]);
    }

    #[test]
    fn a_tunnel_with_an_ssh_session_is_refused() {
        let reason = of("wg0", "wg0", "eth0").unwrap_err();
        assert_eq!(reason, "an ssh session with 192.0.2.9 goes over wg0");
        assert!(of("bond0.7", "eth0", "eth0").is_err());
    }
}
