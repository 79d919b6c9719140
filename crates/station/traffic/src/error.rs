//! Errors of generator and analyser.

use port::FramePortKind;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

/// Why a station could not do its part, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrafficError {
    /// The caller's mistake: a size that no test frame can have.
    #[error(
        "a test frame cannot have {frame_bytes} B: over {ip} it has from {smallest} B to {largest} B\n\
         help: sizes include the 4-byte FCS"
    )]
    FrameSize {
        /// As requested.
        frame_bytes: u16,
        /// IP version in words.
        ip: &'static str,
        /// Smallest size with room for a stamp.
        smallest: u16,
        /// Largest size of a port's slot.
        largest: u16,
    },
    /// The caller's mistake: a port that cannot send with a foreign source address.
    #[error(
        "{kind} cannot send hostile packets\n\
         help: leave the choice of the port open, or select AF_PACKET: it sends frames unchanged, and none of \
         them is captured again"
    )]
    AttackPort {
        /// As requested.
        kind: FramePortKind,
    },
    /// The caller's mistake: an empty mix.
    #[error(
        "the mix has no frames\nhelp: give it at least one size, each with a weight of 1 or more"
    )]
    EmptyMix,
    /// The caller's mistake.
    #[error(
        "{flows} flows in {tunnels} tunnels cannot be distinguished\n\
         help: from 1 to 65535 flows, at most 32768 per tunnel, and at least one tunnel"
    )]
    Flows {
        /// As requested.
        flows: u32,
        /// As requested.
        tunnels: u32,
    },
    /// The caller's mistake.
    #[error(
        "{source_address} and {target_address} are of different IP versions\nhelp: give both as IPv4 or both as IPv6"
    )]
    MixedVersions {
        /// Source address of the packets.
        source_address: IpAddr,
        /// Target address of the packets.
        target_address: IpAddr,
    },
    /// The caller's mistake.
    #[error(
        "{lanes} lanes of {tunnels} tunnels cannot start at UDP port {port}\n\
         help: from 1 to 4096 lanes over all tunnels, and no port above 65535"
    )]
    Lanes {
        /// As requested, per tunnel.
        lanes: u16,
        /// As requested.
        tunnels: u16,
        /// Of the first.
        port: u16,
    },
    /// The caller's mistake.
    #[error(
        "flows of {flow_tunnels} tunnels cannot be sealed with the keys of {key_tunnels}\n\
         help: give all flows one tunnel's keys, or each tunnel its own"
    )]
    TunnelKeys {
        /// Tunnels of the flows.
        flow_tunnels: u32,
        /// Tunnels with keys.
        key_tunnels: u16,
    },
    /// No engine can seal or open.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] keying::KeyError),
    /// The log of the station's IKE daemon, or the file of used sequence numbers, fails.
    #[error("cannot use {}: {error}\nhelp: does the station's IKE daemon run?", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// The system's error, or that its content is damaged.
        error: io::Error,
    },
    /// The station's IKE daemon has no SA for these packets.
    #[error(
        "the station and the device have agreed on no SA for packets from {source_address} to {target_address}\n\
         help: the networks of their SAs (traffic selectors) must contain both addresses: see which the device proposes"
    )]
    NoSa {
        /// Source address of the packets.
        source_address: IpAddr,
        /// Target address of the packets.
        target_address: IpAddr,
    },
    /// The keys of an SA have another length than its suite's.
    #[error(
        "the station and the device have agreed on keys of {bytes} B, and those of {suite} have {expected} B\n\
         help: does the device propose another suite?"
    )]
    KeyLength {
        /// The suite of the trial.
        suite: wire::Suite,
        /// Its keying material, in bytes.
        expected: usize,
        /// Length of the SA's keys in bytes.
        bytes: usize,
    },
    /// The caller's mistake.
    #[error("WireGuard has no form without UDP\nhelp: give the peer a port")]
    WireGuardPort,
    /// A device did not become the station's WireGuard peer.
    #[error(
        "no WireGuard handshake with {remote}: {reason}\n\
         help: does the device run, and does it have the station's key?"
    )]
    Handshake {
        /// The device.
        remote: IpAddr,
        /// The step that failed.
        reason: String,
    },
    /// The caller's mistake: a second generator for one WireGuard session.
    #[error("a WireGuard session has one generator, and this one has another already")]
    SessionTaken,
    /// No sequence number is left.
    #[error(
        "the SA with SPI {spi:#010x} has no sequence numbers left for a station\n\
         help: renew its keys: `swanctl --rekey` on the device, or a shorter lifetime there"
    )]
    Exhausted {
        /// Its SPI.
        spi: u32,
    },
    /// The caller's mistake.
    #[error(
        "a reflector sends whole frames back, which a {kind} has not\nhelp: use AF_PACKET or AF_XDP"
    )]
    ReflectPort {
        /// As requested, or the only one that works.
        kind: FramePortKind,
    },
    /// The port went away.
    #[error("the port is gone: {0}\nhelp: was its interface removed or set down?")]
    PortGone(#[source] io::Error),
    /// A thread could not be started, or an event descriptor not be created.
    #[error("the system provides no thread or descriptor: {0}")]
    Resources(#[source] io::Error),
}

impl TrafficError {
    /// The error of a thread that sends or receives: a `TrafficError`, or the port's.
    pub(crate) fn of_work(error: io::Error) -> Self {
        // Errors of keys pass through the I/O errors of a port's closure.
        error.downcast().unwrap_or_else(Self::PortGone)
    }
}
