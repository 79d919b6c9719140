//! Errors of the server of pages.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

/// Error of the server of pages.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The address of the pages cannot be used.
    #[error("cannot listen on {address}: {error}\nhelp: {}", help(address, option, error.kind()))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The option that names another one.
        option: &'static str,
        /// The reason.
        error: io::Error,
    },
    /// No thread can be started.
    #[error(
        "cannot start the server of pages: {0}\nhelp: see whether the machine has processes and descriptors left"
    )]
    NoThread(io::Error),
}

fn help(address: &SocketAddr, option: &str, kind: ErrorKind) -> String {
    let (ip, port) = (address.ip(), address.port());
    let free = SocketAddr::new(ip, 0);
    match kind {
        ErrorKind::AddrInUse => format!(
            "another program uses port {port}, perhaps another `cipherbench serve` or `run --live`: end it, or take \
             another port; `{option}={free}` takes a free one"
        ),
        ErrorKind::AddrNotAvailable => {
            format!("this machine has no address {ip}; `ip address` lists the ones it has")
        }
        ErrorKind::PermissionDenied => {
            format!("ports below 1024 need privilege; `{option}={free}` takes a free one")
        }
        _ => format!("take another address: `{option}`"),
    }
}
