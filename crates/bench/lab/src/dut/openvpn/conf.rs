//! OpenVPN's configuration file.

use super::identity::Identity;
use std::fmt;
use std::net::Ipv4Addr;
use wire::Suite;

/// Its registered port (IANA).
pub(super) const PORT: u16 = 1194;

/// Its interface, on either gateway.
pub(super) const INTERFACE: &str = "ovpn0";

/// Queue of the interface in packets, as for the built-in encryptor: with a TUN's default of 500,
/// the queue would lose small frames, not the encryptor.
const QUEUE_PACKETS: u32 = 5000;

/// Size of each socket buffer in bytes, or the machine's limit if that is less.
const SOCKET_BUFFER_BYTES: u32 = 1 << 20;

/// Seconds without a sent packet after which it sends a keepalive.
const PING_S: u32 = 1;

/// Seconds without a received packet after which it restarts the tunnel: five times longer, so that
/// a load that loses some packets does not end the tunnel.
const PING_RESTART_S: u32 = 5;

/// Repetitions of a message after which it is muted: it would log each replayed packet.
const REPEATED_LINES_MAX: u32 = 20;

/// Data channel ciphers by suite: its AEADs. OpenVPN 2.6 warns of the others.
const CIPHERS: [(Suite, &str); 3] = [
    (Suite::Aes128Gcm, "AES-128-GCM"),
    (Suite::Aes256Gcm, "AES-256-GCM"),
    (Suite::ChaCha20Poly1305, "CHACHA20-POLY1305"),
];

/// Returns OpenVPN's name of a suite; `None` if its data channel does not support it.
pub(super) fn cipher(suite: Suite) -> Option<&'static str> {
    let mut ciphers = CIPHERS.into_iter();
    ciphers.find(|(own, _)| *own == suite).map(|(_, name)| name)
}

/// Returns the suites of the data channel.
pub(super) fn suites() -> [Suite; CIPHERS.len()] {
    CIPHERS.map(|(suite, _)| suite)
}

/// The end of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Server,
    Client,
}

/// A gateway's configuration; its `Display` is the file.
pub(super) struct Conf<'a> {
    pub(super) role: Role,
    pub(super) local: Ipv4Addr,
    pub(super) remote: Ipv4Addr,
    pub(super) cipher: &'a str,
    pub(super) mtu: u16,
    pub(super) own: &'a Identity,
    /// Its certificate is the only accepted one.
    pub(super) peer: &'a Identity,
}

impl fmt::Display for Conf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "dev {INTERFACE}")?;
        // The name of the device does not show its type.
        writeln!(f, "dev-type tun")?;
        writeln!(f, "proto udp4")?;
        writeln!(f, "local {}", self.local)?;
        writeln!(f, "remote {}", self.remote)?;
        writeln!(f, "port {PORT}")?;
        match self.role {
            // No finite-field Diffie-Hellman: TLS uses elliptic curves.
            Role::Server => writeln!(f, "tls-server\ndh none")?,
            Role::Client => writeln!(f, "tls-client")?,
        }
        writeln!(f, "cert \"{}\"", self.own.certificate)?;
        writeln!(f, "key \"{}\"", self.own.key)?;
        writeln!(f, "peer-fingerprint {}", self.peer.fingerprint)?;
        // The only cipher on offer.
        writeln!(f, "data-ciphers {}", self.cipher)?;
        writeln!(f, "disable-dco")?;
        writeln!(f, "tun-mtu {}", self.mtu)?;
        // Packets pass unchanged; the lab's links have room for them.
        writeln!(f, "mssfix 0")?;
        writeln!(f, "txqueuelen {QUEUE_PACKETS}")?;
        writeln!(f, "sndbuf {SOCKET_BUFFER_BYTES}")?;
        writeln!(f, "rcvbuf {SOCKET_BUFFER_BYTES}")?;
        // A timeout detects a dead peer; interface and routes stay meanwhile.
        writeln!(f, "ping {PING_S}")?;
        writeln!(f, "ping-restart {PING_RESTART_S}")?;
        writeln!(f, "persist-tun")?;
        // Saves one system call per packet.
        writeln!(f, "fast-io")?;
        // The reader of the log expects lines to begin with their text.
        writeln!(f, "suppress-timestamps")?;
        // The lowest verbosity that logs the data channel's cipher; logs nothing per packet.
        writeln!(f, "verb 3")?;
        writeln!(f, "mute {REPEATED_LINES_MAX}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_aead_has_a_cipher_and_nothing_else_has() {
        for suite in Suite::ALL {
            let is_aead = !matches!(suite, Suite::EncryptThenMac(..) | Suite::Gost(_));
            assert_eq!(cipher(suite).is_some(), is_aead, "{suite}");
            assert_eq!(suites().contains(&suite), is_aead, "{suite}");
        }
    }
}
