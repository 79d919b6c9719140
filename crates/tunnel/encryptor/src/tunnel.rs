//! Setting up the TUN interface: MTU, queue, address, routes, by the system's `ip`.
//!
//! Nothing is to be undone: interface, address and routes go when the process ends, however it ends.

use crate::config::{Peer, Tunnel};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Why the interface could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// `ip` could not be run.
    #[error("cannot run `ip`: {0}\nhelp: install the package iproute2")]
    NoIp(std::io::Error),
    /// `ip` refused.
    #[error(
        "cannot set up the interface `{name}`: {said}\nhelp: an address or route of the tunnel may be taken \
         already: look at `ip address` and `ip route`"
    )]
    Refused {
        /// Interface name.
        name: String,
        /// What `ip` said.
        said: String,
    },
}

/// Brings the interface up as configured, with the given IP MTU in bytes. `mtus` are those of the peers' tunnels: the
/// routes to those that take less say so, and then the kernel fragments what may be fragmented, and tells the
/// senders of the rest.
///
/// # Errors
/// [`TunnelError`] with what `ip` said.
pub fn set_up(tunnel: &Tunnel, peers: &[Peer], mtus: &[u16], mtu: u16) -> Result<(), TunnelError> {
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(TunnelError::NoIp)?;
    if let Some(mut stdin) = child.stdin.take() {
        // When `ip` ends early, what it said tells more than the broken pipe.
        let _ = stdin.write_all(commands(tunnel, peers, mtus, mtu).as_bytes());
    }
    let output = child.wait_with_output().map_err(TunnelError::NoIp)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(TunnelError::Refused {
        name: tunnel.name.clone(),
        said,
    })
}

fn commands(tunnel: &Tunnel, peers: &[Peer], mtus: &[u16], mtu: u16) -> String {
    let Tunnel {
        name,
        queue_length,
        address,
        ..
    } = tunnel;
    let mut lines = String::new();
    // Writing to a string does not fail.
    if let Some(address) = address {
        let _ = writeln!(lines, "address add {address} dev {name}");
    }
    let _ = writeln!(
        lines,
        "link set dev {name} mtu {mtu} txqueuelen {queue_length} up"
    );
    // The kernel routes an address's own network by itself.
    let own = address.map(|address| address.network);
    // Tunnels may share a network, which then takes what the narrowest of them does.
    let mut routes = BTreeMap::new();
    for (peer, peer_mtu) in peers.iter().zip(mtus) {
        for route in &peer.selectors.remote {
            let narrowest = routes.entry(*route).or_insert(mtu);
            *narrowest = (*narrowest).min(*peer_mtu);
        }
    }
    for (route, narrowest) in routes {
        if narrowest < mtu {
            // In place of the address's own, too.
            let _ = writeln!(lines, "route replace {route} dev {name} mtu {narrowest}");
        } else if Some(route) != own {
            let _ = writeln!(lines, "route add {route} dev {name}");
        }
    }
    lines
}
