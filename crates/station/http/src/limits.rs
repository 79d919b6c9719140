//! Limits of the client's machine that are known before the first connection.

use crate::error::HttpError;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs;

/// Descriptors needed in addition to the connections.
const OTHER_DESCRIPTORS: u64 = 64;
/// A client's ports if the kernel's range is not readable (Linux's default range).
const PORTS_DEFAULT: u32 = 28_232;

/// Raises the limit of file descriptors to the hard limit, and checks that there are enough
/// descriptors and ports.
pub(crate) fn prepare(connections: u32) -> Result<(), HttpError> {
    let failed = |errno: nix::Error| errno.into();
    let what = "raise the limit of file descriptors";
    // Before the first connection: in the middle of a run the failure would look like the server's.
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(failed)
        .map_err(HttpError::system(what))?;
    let needed = u64::from(connections) + OTHER_DESCRIPTORS;
    if hard < needed {
        return Err(HttpError::Descriptors {
            connections,
            needed,
            limit: hard,
        });
    }
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
        .map_err(failed)
        .map_err(HttpError::system(what))?;
    let ports = ports().unwrap_or(PORTS_DEFAULT);
    // Each connection has one port, as they all go to one address and port.
    if ports < connections {
        return Err(HttpError::Ports { connections, ports });
    }
    Ok(())
}

fn ports() -> Option<u32> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = range.split_whitespace().map(|end| end.parse::<u32>());
    let (Some(Ok(first)), Some(Ok(last))) = (ends.next(), ends.next()) else {
        return None;
    };
    Some(last.saturating_sub(first) + 1)
}
