//! Configures the TUN interface with the system's `ip`: MTU, queue, address, routes.
//!
//! Nothing needs to be undone: interface, address and routes disappear when the process ends,
//! however it ends. From then on [`barrier`](crate::barrier) holds packets back.

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
        "cannot set up the interface `{name}`: {said}\nhelp: an address or route of the tunnel may already be \
         in use: see `ip address` and `ip route`"
    )]
    Refused {
        /// Interface name.
        name: String,
        /// The message of `ip`.
        said: String,
    },
}

/// Brings the interface up as configured, with the given IP MTU in bytes. `mtus` are the MTUs of
/// the peers' tunnels: routes to narrower tunnels carry their MTU, so the kernel fragments packets
/// that may be fragmented, and informs the senders of the others.
///
/// # Errors
/// [`TunnelError`] with the message of `ip`.
pub fn set_up(tunnel: &Tunnel, peers: &[Peer], mtus: &[u16], mtu: u16) -> Result<(), TunnelError> {
    // One process for all commands: a gateway may have thousands of routes.
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(TunnelError::NoIp)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If `ip` exits early, its message says more than the broken pipe.
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
    // The kernel adds the route to an address's network by itself.
    let own = address.map(|address| address.network);
    // Tunnels may share a network, which then gets the MTU of the narrowest.
    let mut routes = BTreeMap::new();
    for (peer, peer_mtu) in peers.iter().zip(mtus) {
        for route in &peer.selectors.remote {
            // An MTU on the route makes the kernel inform the sender, or fragment, before the
            // packet reaches the encryptor.
            let narrowest = routes.entry(*route).or_insert(mtu);
            *narrowest = (*narrowest).min(*peer_mtu);
        }
    }
    for (route, narrowest) in routes {
        if narrowest < mtu {
            // This also replaces the kernel's route to the address's network.
            let _ = writeln!(lines, "route replace {route} dev {name} mtu {narrowest}");
        } else if Some(route) != own {
            let _ = writeln!(lines, "route add {route} dev {name}");
        }
    }
    lines
}
