//! The programs that a lab runs: the search path, and the package of each.

use std::ffi::OsString;

/// Programs by package, of Debian and Ubuntu.
const PACKAGES: &[(&str, &str)] = &[
    ("bridge", "iproute2"),
    ("ethtool", "ethtool"),
    ("ffmpeg", "ffmpeg"),
    ("ip", "iproute2"),
    ("iperf", "iperf"),
    ("iperf3", "iperf3"),
    ("nft", "nftables"),
    ("nginx", "nginx"),
    ("openssl", "openssl"),
    ("openvpn", "openvpn"),
    ("ping", "iputils-ping"),
    ("swanctl", "strongswan-swanctl"),
    ("tc", "iproute2"),
    ("tcpdump", "tcpdump"),
    ("tshark", "tshark"),
    ("wg", "wireguard-tools"),
    ("wget2", "wget2"),
    ("wireguard-go", "wireguard-go"),
];

/// Returns the package of a program; `None` for a program that no lab runs.
pub(crate) fn package(program: &str) -> Option<&'static str> {
    PACKAGES
        .iter()
        .find(|(name, _)| *name == program)
        .map(|(_, package)| *package)
}

/// `PATH` followed by the administrator's folders: an ordinary user's lacks them, and `ethtool` is
/// there.
pub(crate) fn search_path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    for folder in ["/usr/local/sbin", "/usr/sbin", "/sbin"] {
        if !path.is_empty() {
            path.push(":");
        }
        path.push(folder);
    }
    path
}

/// How to get a program that is missing.
pub(crate) fn how_to_get(program: &str) -> String {
    match package(program) {
        Some(package) => format!("install it, on Debian and Ubuntu: sudo apt install {package}"),
        None => {
            format!("install it, or give its whole path: `{program}` is not in the search path")
        }
    }
}

/// Part of every error for a missing program.
pub(crate) const MISSING: &str = "is not installed here";

/// The error for a missing program.
pub(crate) fn missing(program: &str) -> String {
    format!(
        "the program `{program}` {MISSING}\nhelp: {}",
        how_to_get(program)
    )
}
