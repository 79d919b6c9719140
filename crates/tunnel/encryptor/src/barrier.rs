//! Fails closed: keeps packets of the networks behind the peers off every interface but the
//! tunnel's, also while no encryptor runs.
//!
//! The TUN interface and its routes end with the process. The tables and routes installed here stay
//! until [`remove`]:
//!
//! 1. A table of nftables per family with the networks behind the peers. It drops packets to them
//!    that leave through another interface than the tunnel's, regardless of the routes, and packets
//!    from them that arrive there: the inbound policy of RFC 4301 §5.2. One transaction replaces
//!    both.
//! 2. For each of these networks an `unreachable` route of a high metric, so that senders get an
//!    answer when the tunnel's routes are gone.
//!
//! With a layer-2 mode the table keeps the host itself off the interface on the clear side, and
//! there are no routes.
//!
//! Each gateway has a separate table and metric, named by its interface: several coexist. While a
//! gateway runs, its [holder](hold()) loads the tables again when another program has removed or
//! changed them. Frames that a bridge of the host forwards pass neither. Local root can remove
//! both.

pub(crate) mod hold;
mod ranges;
mod routes;
mod table;

pub use hold::hold;

use crate::config::{Config, Mode};
use hold::Holder;
use nix::errno::Errno;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, setsockopt, socket, sockopt,
};
use ranges::Ranges;
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use table::Rules;

/// Why traffic cannot be held back, or released.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BarrierError {
    /// A program is not installed.
    #[error(
        "cannot run `{program}`, which keeps clear packets off the cipher side: {error}\n\
         help: install the package {package}, or write `fail_open: true` to go without"
    )]
    NoProgram {
        /// Its name.
        program: &'static str,
        /// The package that contains it.
        package: &'static str,
        /// The kernel's error.
        error: io::Error,
    },
    /// A program refused.
    #[error(
        "`{program}` cannot install what keeps clear packets off the cipher side: {said}\n\
         help: it needs CAP_NET_ADMIN and a kernel with nf_tables; write `fail_open: true` to go without"
    )]
    Refused {
        /// Its name.
        program: &'static str,
        /// Its message.
        said: String,
    },
    /// The host would lose a network that it is part of.
    #[error(
        "the interface {interface} has the address {address}, which is in a network behind a peer: its packets would \
         be dropped\nhelp: name this side's networks under `local` of that peer, or write smaller `routes`"
    )]
    OwnAddress {
        /// Name of the interface.
        interface: String,
        /// Its address.
        address: IpAddr,
    },
    /// The interface's name is unsafe in a rule.
    #[error(
        "the interface `{name}` cannot be named in a rule of nftables\n\
         help: rename it to letters, digits, `.`, `_` and `-` (`ip link set … name …`), or write `fail_open: true`"
    )]
    Name {
        /// As configured.
        name: String,
    },
    /// An encryptor is running, or another program has the interface.
    #[error(
        "the interface {interface} exists: what holds back the packets of a running encryptor is not changed\n\
         help: stop it first; if it is no encryptor's, choose another `tunnel.name`"
    )]
    Running {
        /// Name of the interface.
        interface: String,
    },
    /// An encryptor is running, or another program has its port.
    #[error(
        "the UDP port {address} is in use: what holds back the packets of a running encryptor is not removed\n\
         help: stop it first"
    )]
    PortInUse {
        /// The port.
        address: SocketAddr,
    },
    /// The process that puts the tables back cannot be started.
    #[error("the process that keeps the tables of nftables in place does not run: {said}")]
    NotHeld {
        /// Its message, or the kernel's.
        said: String,
    },
}

/// Brings tables and routes back into the configured state: installs or renews them, without a
/// moment in which packets can pass; with `fail_open` removes them.
///
/// # Errors
/// [`BarrierError`], also while the tunnel's interface exists. Tables and routes installed before
/// remain.
pub fn apply(config: &Config) -> Result<(), BarrierError> {
    if config.fail_open {
        // Without `nft` no table was ever installed.
        return match remove_all(config) {
            Err(BarrierError::NoProgram { .. }) => Ok(()),
            other => other,
        };
    }
    refuse_running(config)?;
    // The table first: it alone keeps packets back. The routes only inform senders.
    rules(config)?.load()?;
    match &config.mode {
        Mode::L3(tunnel) => routes::install(&tunnel.name, &config.peers),
        Mode::L2 { .. } | Mode::L2tpv3 { .. } => Ok(()),
    }
}

/// As [`apply`], for a host that may have an encryptor running: its tables are left as they are,
/// and installed if another program has removed them.
///
/// # Errors
/// [`BarrierError`].
pub fn protect(config: &Config) -> Result<(), BarrierError> {
    if config.fail_open || refuse_running(config).is_ok() {
        return apply(config);
    }
    // A running gateway's table may have other networks than the file, if that was edited since its
    // start.
    if table::exists(&table_name(config)?)? {
        Ok(())
    } else {
        rules(config)?.load()
    }
}

/// Starts the process that keeps the tables in place, once the tunnel's interface exists: `program`
/// is to call [`hold()`]. `None` if no tables are needed.
pub(crate) fn start_holder(
    config: &Config,
    program: Command,
) -> Result<Option<Holder>, BarrierError> {
    if config.fail_open {
        return Ok(None);
    }
    let rules = rules(config)?;
    if rules.is_empty() {
        return Ok(None);
    }
    let tunnel = match &config.mode {
        Mode::L3(tunnel) => Some(&tunnel.name[..]),
        Mode::L2 { .. } | Mode::L2tpv3 { .. } => None,
    };
    Holder::start(program, tunnel, &rules).map(Some)
}

/// Removes all that this configuration has installed: packets to the networks behind the peers then
/// follow the host's other routes, in clear. Not an error if nothing is installed.
///
/// # Errors
/// [`BarrierError`]: also while an encryptor with this configuration runs.
pub fn remove(config: &Config) -> Result<(), BarrierError> {
    refuse_running(config)?;
    if !matches!(config.mode, Mode::L3(_)) {
        // The interface exists without an encryptor.
        let address = SocketAddr::new(config.local, config.port);
        if bind_as_free(address) == Err(Errno::EADDRINUSE) {
            return Err(BarrierError::PortInUse { address });
        }
    }
    remove_all(config)
}

/// Binds a UDP socket to an address that this machine may not have.
fn bind_as_free(address: SocketAddr) -> nix::Result<()> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let socket = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // An encryptor keeps its port when its address is removed from the interface. Without this
    // option the kernel would only report that the address is not there (EADDRNOTAVAIL). The
    // option of IPv4 holds for sockets of IPv6 too.
    setsockopt(&socket, sockopt::IpFreebind, &true)?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address))
}

/// The tables of this configuration.
fn rules(config: &Config) -> Result<Rules, BarrierError> {
    let table = table_name(config)?;
    Ok(match &config.mode {
        Mode::L3(tunnel) => {
            let ranges = Ranges::of(&config.peers);
            refuse_own_addresses(&tunnel.name, &ranges)?;
            Rules::of_networks(&table, &tunnel.name, &ranges)
        }
        Mode::L2 { interface } | Mode::L2tpv3 { interface, .. } => {
            Rules::of_interface(&table, interface)
        }
    })
}

/// A running encryptor may have other networks than the file.
fn refuse_running(config: &Config) -> Result<(), BarrierError> {
    match &config.mode {
        Mode::L3(tunnel) if if_nametoindex(tunnel.name.as_str()).is_ok() => {
            let interface = tunnel.name.clone();
            Err(BarrierError::Running { interface })
        }
        _ => Ok(()),
    }
}

fn remove_all(config: &Config) -> Result<(), BarrierError> {
    table::load(&table::removal(&table_name(config)?))?;
    match &config.mode {
        Mode::L3(tunnel) => routes::remove(&tunnel.name),
        Mode::L2 { .. } | Mode::L2tpv3 { .. } => Ok(()),
    }
}

/// The name of the gateway's table.
fn table_name(config: &Config) -> Result<String, BarrierError> {
    let name = match &config.mode {
        Mode::L3(tunnel) => &tunnel.name,
        Mode::L2 { interface } | Mode::L2tpv3 { interface, .. } => interface,
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !name.bytes().all(plain) {
        let name = name.clone();
        return Err(BarrierError::Name { name });
    }
    Ok(format!("cipherbench-{name}"))
}

/// Refuses to cut the host off a network that is attached to it.
fn refuse_own_addresses(tunnel: &str, ranges: &Ranges) -> Result<(), BarrierError> {
    // If addresses cannot be listed, no conflict is found.
    let addresses = nix::ifaddrs::getifaddrs().into_iter().flatten();
    // The rules make an exception for the tunnel's interface, so its address may be in a network
    // behind a peer.
    for entry in addresses.filter(|entry| entry.interface_name != tunnel) {
        let is_loopback = entry.flags.contains(InterfaceFlags::IFF_LOOPBACK);
        let Some(address) = entry.address.filter(|_| !is_loopback) else {
            continue;
        };
        let v4 = address.as_sockaddr_in().map(|own| IpAddr::from(own.ip()));
        let v6 = address.as_sockaddr_in6().map(|own| IpAddr::from(own.ip()));
        if let Some(address) = v4.or(v6).filter(|own| ranges.contain(*own)) {
            let interface = entry.interface_name;
            return Err(BarrierError::OwnAddress { interface, address });
        }
    }
    Ok(())
}

/// Runs a program with this input; returns its output.
fn run(
    program: &'static str,
    package: &'static str,
    arguments: &[&str],
    input: &str,
) -> Result<String, BarrierError> {
    let absent = |error| BarrierError::NoProgram {
        program,
        package,
        error,
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(absent)?;
    // Closed at the end of the block: `nft -f -` and `ip -batch -` read to the end of their input.
    if let Some(mut stdin) = child.stdin.take() {
        // If it exits early, its message says more than the broken pipe.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(absent)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or_default().trim().to_owned();
    Err(BarrierError::Refused { program, said })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{SockaddrIn, getsockname};

    #[test]
    fn a_port_is_in_use_although_its_address_is_gone() {
        // TEST-NET-1 (RFC 5737): no interface has it, as after `ip address del`.
        let none = SockaddrIn::new(192, 0, 2, 77, 0);
        let flags = SockFlag::SOCK_CLOEXEC;
        let holder = socket(AddressFamily::Inet, SockType::Datagram, flags, None).unwrap();
        setsockopt(&holder, sockopt::IpFreebind, &true).unwrap();
        bind(holder.as_raw_fd(), &none).unwrap();
        let held: SockaddrIn = getsockname(holder.as_raw_fd()).unwrap();
        let address = SocketAddr::new(held.ip().into(), held.port());
        assert_eq!(bind_as_free(address), Err(Errno::EADDRINUSE));
        drop(holder);
        assert_eq!(bind_as_free(address), Ok(()));
    }
}
