//! The programs that a campaign may need: where they are searched, what each is for, and how to
//! install it.
//!
//! `doctor`, `check`, `plan` and `run` share this list and this search; `scripts/peers.sh` installs
//! into a folder that is searched here. To add a program: its line in `KNOWN`, and what needs it
//! in `needs`.

mod needs;
mod places;

pub(crate) use needs::of_wireguard;
pub use needs::{Missing, missing};
pub(crate) use places::{command, find, search_path};

/// Packages of strongSwan: the daemon, its control program, and their plugins.
const STRONGSWAN: &str = "strongswan-charon strongswan-swanctl libcharon-extra-plugins \
                          libstrongswan-standard-plugins libstrongswan-extra-plugins";

/// The programs that campaigns may need, in the order in which the doctor lists them.
pub(crate) const KNOWN: &[Known] = &[
    always(
        "ip",
        "-V",
        "joins the stations and sets their routes",
        "iproute2",
    ),
    always(
        "ethtool",
        "--version",
        "sets and reads the links' offloads",
        "ethtool",
    ),
    always(
        "ping",
        "-V",
        "latency, and whether a DUT forwards",
        "iputils-ping",
    ),
    always("iperf3", "--version", "TCP and UDP throughput", "iperf3"),
    packaged("tc", "-V", "line rates of links", "iproute2"),
    packaged("nft", "--version", "a router with NAT as a DUT", "nftables"),
    packaged("bridge", "-V", "a switch as a DUT", "iproute2"),
    peer("iperf", "-v", "cross-check of iperf3", "iperf"),
    peer(
        "openssl",
        "version",
        "certificates of OpenVPN and strongSwan",
        "openssl",
    ),
    peer("wg", "--version", "WireGuard as a DUT", "wireguard-tools"),
    Known {
        variable: Some("WIREGUARD_GO"),
        // As `go install` names it.
        alias: Some("wireguard"),
        ..peer(
            "wireguard-go",
            "--version",
            "WireGuard in Go as a DUT",
            "wireguard-go",
        )
    },
    Known {
        variable: Some("BORINGTUN"),
        source: Source::Crate("boringtun-cli"),
        ..peer(
            "boringtun-cli",
            "--version",
            "WireGuard in Rust as a DUT",
            "",
        )
    },
    Known {
        variable: Some("GOTATUN"),
        source: Source::Crate("gotatun-cli"),
        ..peer("gotatun", "--version", "WireGuard in Rust as a DUT", "")
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
        ..peer("charon", "--version", "strongSwan as a DUT", STRONGSWAN)
    },
    // Its `--version` asks the daemon.
    peer("swanctl", "--help", "strongSwan as a DUT", STRONGSWAN),
    peer("openvpn", "--version", "OpenVPN as a DUT", "openvpn"),
    packaged(
        "softhsm2-util",
        "--version",
        "SoftHSM2 as a crypto device",
        "softhsm2",
    ),
];

/// A program that campaigns may need.
#[derive(Debug)]
pub(crate) struct Known {
    /// Its name in the search path.
    pub(crate) name: &'static str,
    /// The environment variable that may name another program, or its path.
    variable: Option<&'static str>,
    /// What it is for.
    pub(crate) purpose: &'static str,
    /// Whether the built-in lab and campaign need it.
    pub(crate) needed: bool,
    /// The argument by which it prints its version.
    pub(crate) version: &'static str,
    /// Its other name in the folder of `make peers`.
    alias: Option<&'static str>,
    /// Folders outside of the search path where distributions install it.
    folders: &'static [&'static str],
    source: Source,
}

/// Where a program comes from.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// Packages of Debian and Ubuntu.
    Packages(&'static str),
    /// Such packages, which `make peers` installs too.
    Peer(&'static str),
    /// A crate, which `make peers` builds too.
    Crate(&'static str),
}

const fn packaged(
    name: &'static str,
    version: &'static str,
    purpose: &'static str,
    packages: &'static str,
) -> Known {
    Known {
        name,
        variable: None,
        purpose,
        needed: false,
        version,
        alias: None,
        folders: &[],
        source: Source::Packages(packages),
    }
}

const fn always(
    name: &'static str,
    version: &'static str,
    purpose: &'static str,
    packages: &'static str,
) -> Known {
    Known {
        needed: true,
        ..packaged(name, version, purpose, packages)
    }
}

const fn peer(
    name: &'static str,
    version: &'static str,
    purpose: &'static str,
    packages: &'static str,
) -> Known {
    Known {
        source: Source::Peer(packages),
        ..packaged(name, version, purpose, packages)
    }
}

/// The program of that name; `None` for one that no lab starts by itself.
fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// Returns the commands that install a program; `None` where that is unknown.
fn install(program: &str) -> Option<String> {
    Some(match known(program)?.source {
        Source::Packages(packages) => format!("sudo apt install {packages}"),
        Source::Peer(packages) => format!("make peers, or sudo apt install {packages}"),
        Source::Crate(name) => format!("make peers, or cargo install {name}"),
    })
}

/// How to get a program that is missing.
pub(crate) fn how_to_get(program: &str) -> String {
    let variable = known(program).and_then(|known| known.variable);
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
