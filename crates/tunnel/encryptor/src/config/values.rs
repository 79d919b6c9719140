//! Single values of the configuration that need more than a range.

use super::declared::{CPU_MAX, OFFLOADS};
use super::types::{InterfaceAddress, MssClamp, Offloads, Privileges};
use dispatch::Choice;
use esp::WindowSize;
use port::{TunOffloads, UdpOffloads};
use std::net::IpAddr;
use wire::Suite;
use yaml::{Map, Node, Prefix, Reported};

/// The user's consent to missing or broken protection: `insecure` and `legacy`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Consent {
    /// Consent to no protection.
    pub(super) insecure: Result<bool, Reported>,
    /// Consent to broken algorithms, for old peers.
    pub(super) legacy: Result<bool, Reported>,
}

impl Consent {
    pub(super) fn read(map: &Map<'_>) -> Self {
        Self {
            insecure: map.get("insecure"),
            legacy: map.get("legacy"),
        }
    }
}

pub(super) fn suite(node: Node<'_>, consent: Consent) -> Result<Suite, Reported> {
    let known = Suite::ALL.map(|suite| (suite.name(), suite));
    let suite = node.one_of("suite", &known)?;
    let why = suite.insecure().unwrap_or_default();
    // A switch that could not be read has been reported itself.
    if suite.is_legacy() && consent.legacy == Ok(false) {
        return Err(node.mistake(
            format!("the suite {suite} no longer protects anything: {why}"),
            "write `legacy: true` if an old peer has no other",
        ));
    }
    if suite.is_bare() && consent.insecure == Ok(false) {
        let (what, meant) = if suite.icv_bytes() == 0 {
            ("no protection", "modify packets")
        } else {
            ("no encryption", "read packets")
        };
        return Err(node.mistake(
            format!("the suite {suite} provides {what}: {why}"),
            format!("write `insecure: true` to accept that anyone on the path can {meant}"),
        ));
    }
    Ok(suite)
}

pub(super) fn engine(node: Node<'_>, consent: Consent) -> Result<Choice, Reported> {
    // A switch that could not be read has been reported itself.
    choice::read(node, consent.insecure.unwrap_or(true))
}

/// Checks that a UDP port leaves room for the ports of all lanes.
pub(super) fn port(
    node: Node<'_>,
    port: u16,
    workers: Result<u16, Reported>,
) -> Result<u16, Reported> {
    // A count that could not be read has been reported itself.
    let lanes = workers.unwrap_or(1);
    if port.checked_add(lanes - 1).is_some() {
        return Ok(port);
    }
    Err(node.mistake(
        format!("port {port} leaves no ports for {lanes} lanes"),
        format!(
            "lane i uses port + i: use at most {}",
            u16::MAX - (lanes - 1)
        ),
    ))
}

pub(super) fn window(node: Node<'_>, packets: u32) -> Result<WindowSize, Reported> {
    WindowSize::new(packets).ok_or_else(|| {
        let larger = packets.next_power_of_two();
        node.mistake(
            format!("a window of {packets} packets is not a power of two"),
            format!("write {larger}"),
        )
    })
}

pub(super) fn interface_address(node: Node<'_>) -> Result<InterfaceAddress, Reported> {
    let text = node.text()?;
    let parsed = text.split_once('/').and_then(|(address, length)| {
        let address: IpAddr = address.parse().ok()?;
        let network = Prefix::around(address, length.parse().ok()?)?;
        Some(InterfaceAddress { address, network })
    });
    parsed.ok_or_else(|| {
        node.mistake(
            format!("`{text}` is not an interface's address"),
            "write the address and the length of its network, for example `10.9.0.1/24`",
        )
    })
}

/// CPUs, each once.
pub(super) fn pin(node: Node<'_>) -> Result<Vec<usize>, Reported> {
    let mut taken = Vec::new();
    node.one_or_many(|node| {
        let cpu = node.integer(0..=CPU_MAX)?;
        if taken.contains(&cpu) {
            return Err(node.mistake(
                format!("cpu {cpu} is in the list twice"),
                "workers take the CPUs of the list in turn: name each once",
            ));
        }
        taken.push(cpu);
        Ok(cpu)
    })
}

/// The clamp by the value of its key: without the words `auto` and `off`.
pub(super) const fn mss_clamp(at: Option<Option<u16>>) -> MssClamp {
    match at {
        None => MssClamp::Auto,
        Some(None) => MssClamp::Off,
        Some(Some(bytes)) => MssClamp::At(bytes),
    }
}

pub(super) fn privileges(node: Node<'_>) -> Result<Privileges, Reported> {
    node.one_of("choice", &Privileges::NAMES)
}

/// Reads the name of the service's user.
pub(super) fn user(
    node: Node<'_>,
    privileges: Result<Privileges, Reported>,
) -> Result<String, Reported> {
    let name = node.text()?;
    if privileges == Ok(Privileges::Keep) {
        return Err(node.mistake(
            "`user` does nothing: the service keeps its privileges",
            "remove `user`, or write `privileges: drop`",
        ));
    }
    // A colon ends a name in /etc/passwd.
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b':' && byte != b'/';
    if name.is_empty() || !name.bytes().all(fits) {
        return Err(node.mistake(
            format!("`{name}` is not the name of a user"),
            "write it as in /etc/passwd, for example `cipherbench`",
        ));
    }
    Ok(name.to_owned())
}

/// Reads a switch for each offload.
pub(super) fn offloads(node: Node<'_>) -> Result<Offloads, Reported> {
    node.keys(OFFLOADS, |map| {
        let (tso, uso, tunnel) = (map.get("tso"), map.get("uso"), map.get("tunnel"));
        let (gso, gro) = (map.get("gso"), map.get("gro"));
        Ok(Offloads {
            tun: TunOffloads {
                tso: tso?,
                uso: uso?,
                tunnel: tunnel?,
            },
            udp: UdpOffloads {
                gso: gso?,
                gro: gro?,
            },
        })
    })
}
