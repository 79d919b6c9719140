//! The ssh sessions of this host, and the interfaces that carry them.

use crate::interfaces::{Interface, towards};
use guard::output_within;
use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;

const OUTPUT_BYTES_MAX: usize = 16 << 20;
const LIMIT: Duration = Duration::from_secs(10);
const SSH_PORT: u16 = 22;

/// An ssh session, in either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Session {
    own: IpAddr,
    peer: IpAddr,
}

/// An interface that carries a session, and the session's peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Carrier {
    pub(crate) interface: String,
    pub(crate) peer: IpAddr,
}

/// The interfaces that carry an ssh session: those with its address here, and those of the route to
/// its peer. An error is a clause for people.
pub(crate) fn carriers(all: &[Interface]) -> Result<Vec<Carrier>, String> {
    // The names of programs are for root only, who alone changes offloads.
    let words = ["-Htnp", "state", "established"];
    let ended = output_within(Command::new("ss").args(words), OUTPUT_BYTES_MAX, LIMIT);
    let ended = ended.map_err(|error| format!("`ss` of iproute2 cannot be used: {error}"))?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr);
        return Err(format!("`ss` failed: {}", said.trim()));
    }
    let mut carriers = Vec::new();
    for Session { own, peer } in sessions(&String::from_utf8_lossy(&ended.stdout)) {
        let with_address = all
            .iter()
            .filter(|interface| interface.has_address(own))
            .map(|interface| interface.name.clone());
        // Without a route only the address counts.
        for interface in with_address.chain(towards(peer)) {
            let carrier = Carrier { interface, peer };
            if !carriers.contains(&carrier) {
                carriers.push(carrier);
            }
        }
    }
    Ok(carriers)
}

/// From the lines of `ss -Htnp state established`: two queue lengths, both ends, the programs.
fn sessions(text: &str) -> Vec<Session> {
    let session = |line: &str| {
        let mut words = line.split_whitespace().skip(2);
        let (own, own_port) = end(words.next()?)?;
        let (peer, peer_port) = end(words.next()?)?;
        let is_named = words.any(|programs| programs.contains("((\"ssh"));
        let is_ssh = is_named || own_port == SSH_PORT || peer_port == SSH_PORT;
        // A host that is connected to itself needs no interface.
        (is_ssh && own != peer).then_some(Session { own, peer })
    };
    text.lines().filter_map(session).collect()
}

/// The address and port of `192.0.2.1:22`, `[::ffff:192.0.2.1]:22` or `[fe80::1]%eth0:22`.
fn end(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.rsplit_once(':')?;
    let address = address.split('%').next()?;
    let address: IpAddr = address
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse()
        .ok()?;
    Some((address.to_canonical(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_known_by_program_or_port() {
        let text = "\
0 0 192.0.2.1:22 192.0.2.9:50000
0 0 192.0.2.1:2222 192.0.2.8:50001 users:((\"sshd-session\",pid=7,fd=4))
0 36 [::ffff:192.0.2.1]:40000 [::ffff:192.0.2.7]:22 users:((\"ssh\",pid=8,fd=3))
0 0 [fe80::1]%eth0:22 [fe80::2]%eth0:50002
0 0 192.0.2.1:443 192.0.2.6:50003 users:((\"nginx\",pid=9,fd=3))
0 0 127.0.0.1:22 127.0.0.1:50004
";
        let peers: Vec<String> = sessions(text)
            .iter()
            .map(|session| session.peer.to_string())
            .collect();
        assert_eq!(peers, ["192.0.2.9", "192.0.2.8", "192.0.2.7", "fe80::2"]);
    }
}
