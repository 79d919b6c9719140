//! Addresses as people write them: `10.9.0.2`, `gw2`, `gw2:9000`, `fd00::2`, `[fd00::2]:9000`.

use crate::PORT;
use crate::error::CheckError;
use crate::interfaces::{Interface, interfaces};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// Splits off a port. A bare IPv6 address has none.
fn split(text: &str) -> Option<(&str, u16)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        host.parse::<Ipv6Addr>().ok()?;
        return match port.strip_prefix(':') {
            Some(port) => Some((host, port.parse().ok()?)),
            None => port.is_empty().then_some((host, PORT)),
        };
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        return Some((text, PORT));
    }
    match text.split_once(':') {
        None => Some((text, PORT)),
        Some((host, port)) => Some((host, port.parse().ok()?)),
    }
}

/// Returns the address of the other end.
///
/// # Errors
/// [`CheckError::Mistake`] for a name without an address.
pub fn peer_address(text: &str) -> Result<SocketAddr, CheckError> {
    const HELP: &str = "write the other end's address in the tunnel, such as `10.9.0.2`, with a port if \
                        `--listen` has another";
    let parts = split(text).filter(|(host, port)| !host.is_empty() && *port > 0);
    let Some((host, port)) = parts else {
        return Err(CheckError::mistake(format!("`{text}` is no address"), HELP));
    };
    let found = (host, port).to_socket_addrs();
    let first = found.map(|mut addresses| addresses.next());
    match first {
        Ok(Some(address)) => Ok(address),
        Ok(None) => Err(CheckError::mistake(
            format!("`{host}` has no address"),
            HELP,
        )),
        Err(error) => Err(CheckError::mistake(
            format!("`{host}` has no address: {error}"),
            HELP,
        )),
    }
}

/// Returns the address to listen on. Without one, it is the address of the only tunnel.
///
/// # Errors
/// [`CheckError::Mistake`] for a text that is no address, or if there are several tunnels or none.
pub fn listening_address(text: Option<&str>) -> Result<SocketAddr, CheckError> {
    let Some(text) = text else {
        let all = interfaces().map_err(|problem| CheckError::mistake(problem, INSTALL))?;
        return only_tunnel(&all).map(|address| SocketAddr::new(address, PORT));
    };
    let parts = split(text).and_then(|(host, port)| Some((host.parse().ok()?, port)));
    parts
        .map(|(address, port)| SocketAddr::new(address, port))
        .ok_or_else(|| {
            CheckError::mistake(
                format!("`{text}` is no address to listen on"),
                "write an IP address of this host in the tunnel: `--listen 10.9.0.2`",
            )
        })
}

const INSTALL: &str = "write the address: `--listen 10.9.0.2`";

fn only_tunnel(all: &[Interface]) -> Result<IpAddr, CheckError> {
    let tunnels = all.iter().filter(|interface| interface.is_tunnel());
    let found: Vec<(&str, IpAddr)> = tunnels
        .flat_map(|tunnel| tunnel.reachable().map(|address| (&*tunnel.name, address)))
        .collect();
    match &*found {
        [(_, address)] => Ok(*address),
        [] => Err(CheckError::mistake(
            "this host has no tunnel interface with an address",
            "write the address of this host that the other end reaches: `--listen 10.9.0.2`",
        )),
        several => {
            let names = several
                .iter()
                .map(|(name, address)| format!("{address} ({name})"));
            let names: Vec<_> = names.take(8).collect();
            Err(CheckError::mistake(
                format!("this host has several tunnels: {}", names.join(", ")),
                format!("choose one: `--listen {}`", several[0].1),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_split_off() {
        assert_eq!(split("gw2"), Some(("gw2", PORT)));
        assert_eq!(split("gw2:9"), Some(("gw2", 9)));
        assert_eq!(split("fd00::2"), Some(("fd00::2", PORT)));
        assert_eq!(split("[fd00::2]:9"), Some(("fd00::2", 9)));
        assert_eq!(split("[fd00::2]"), Some(("fd00::2", PORT)));
        for wrong in [
            "[fd00::2",
            "[fd00::2]9",
            "[gw2]:9",
            "[10.9.0.2]:9",
            "fd00::2::9",
        ] {
            assert_eq!(split(wrong), None, "{wrong}");
        }
        let listening = listening_address(Some("[fd00::2]:9")).unwrap();
        assert_eq!(listening.to_string(), "[fd00::2]:9");
        assert_eq!(split("gw2:x"), None);
        let own = peer_address("127.0.0.1:9").unwrap();
        assert_eq!(own.to_string(), "127.0.0.1:9");
        for wrong in ["", ":9", "gw2:0", "gw2:99999", "no such name"] {
            let said = peer_address(wrong).unwrap_err().to_string();
            assert!(said.contains("help: write"), "{wrong}: {said}");
        }
    }

    #[test]
    fn without_an_address_the_only_tunnel_is_taken() {
        let listening = listening_address(Some("10.9.0.2")).unwrap();
        assert_eq!(listening.to_string(), "10.9.0.2:8423");
        assert!(listening_address(Some("gw2")).is_err());
        let tunnel = |name: &str, address: &str| -> Interface {
            let text = format!(
                r#"{{"ifname":"{name}","linkinfo":{{"info_kind":"wireguard"}},
                    "addr_info":[{{"local":"{address}","scope":"global"}}]}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let one = [tunnel("wg0", "10.9.0.1")];
        assert_eq!(only_tunnel(&one).unwrap().to_string(), "10.9.0.1");
        let two = [tunnel("wg0", "10.9.0.1"), tunnel("wg1", "fd00::1")];
        let said = only_tunnel(&two).unwrap_err().to_string();
        assert!(said.contains("10.9.0.1 (wg0), fd00::1 (wg1)"), "{said}");
        assert!(only_tunnel(&[]).is_err());
    }
}
