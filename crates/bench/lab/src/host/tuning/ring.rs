//! Receive rings of network cards, which `ethtool` reads and sets.

use super::super::OUTPUT_BYTES_MAX;
use super::super::cards::receive_ring;
use super::Wanted;
use std::io;
use std::path::Path;
use std::process::{Command, Output};

/// Prefix of the name of a parameter that is an interface's ring.
const PREFIX: &str = "receive ring of ";

/// The ring of an interface as a parameter, raised to the longest length that its driver offers; to
/// 0 if it offers none.
pub(super) fn wanted(ethtool: &Path, interface: &str) -> Wanted {
    // No length is below 0, so that a driver without rings has nothing to raise.
    let most = lengths(ethtool, interface).map_or(0, |[_, most]| most);
    Wanted {
        name: format!("{PREFIX}{interface}").into(),
        at_least: most,
        reason: "a short ring loses bursts while a core is busy",
    }
}

/// The interface of a ring parameter.
pub(super) fn interface(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX)
}

/// Its current length; `None` if the driver has none.
pub(super) fn read(ethtool: &Path, interface: &str) -> Option<String> {
    lengths(ethtool, interface).map(|[now, _]| now.to_string())
}

/// Sets its length.
pub(super) fn set(ethtool: &Path, interface: &str, length: &str) -> io::Result<()> {
    let ended = run(ethtool, &["-G", interface, "rx", length])?;
    if ended.status.success() {
        Ok(())
    } else {
        let said = String::from_utf8_lossy(&ended.stderr);
        Err(io::Error::other(said.trim().to_owned()))
    }
}

fn lengths(ethtool: &Path, interface: &str) -> Option<[u64; 2]> {
    let ended = run(ethtool, &["-g", interface]).ok()?;
    receive_ring(&String::from_utf8_lossy(&ended.stdout))
}

fn run(ethtool: &Path, words: &[&str]) -> io::Result<Output> {
    guard::output(Command::new(ethtool).args(words), OUTPUT_BYTES_MAX)
}
