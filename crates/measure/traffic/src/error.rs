//! Why there is no test traffic.

use port::FramePortKind;
use std::io;
use std::net::IpAddr;

/// Why a station did not do its part, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrafficError {
    /// The caller's mistake: a size that no test frame can have.
    #[error(
        "a test frame of {frame_bytes} B cannot be: over {ip} it has from {smallest} B to {largest} B\n\
         help: sizes include the 4-byte FCS"
    )]
    FrameSize {
        /// As asked for.
        frame_bytes: u16,
        /// IP version in words.
        ip: &'static str,
        /// Smallest size with room for a stamp.
        smallest: u16,
        /// Largest size of a port's slot.
        largest: u16,
    },
    /// The caller's mistake: a port that cannot send as somebody else.
    #[error(
        "hostile packets cannot be sent by {kind}\n\
         help: leave the choice of the port open, or say AF_PACKET: it sends frames as they are, and none of \
         them is captured again"
    )]
    AttackPort {
        /// As asked for.
        kind: FramePortKind,
    },
    /// The caller's mistake: a mix of nothing.
    #[error(
        "the mix has no frames\nhelp: give it one size at least, each with a weight of 1 or more"
    )]
    EmptyMix,
    /// The caller's mistake.
    #[error(
        "{flows} flows in {tunnels} tunnels cannot be told apart\n\
         help: from 1 to 65535 flows, at most 32768 for each tunnel, and one tunnel at least"
    )]
    Flows {
        /// As asked for.
        flows: u32,
        /// As asked for.
        tunnels: u32,
    },
    /// The caller's mistake.
    #[error(
        "{source_address} and {target_address} are of different IP versions\nhelp: give both as IPv4 or both as IPv6"
    )]
    MixedVersions {
        /// Where packets come from.
        source_address: IpAddr,
        /// Where they go.
        target_address: IpAddr,
    },
    /// The caller's mistake.
    #[error(
        "{lanes} lanes of {tunnels} tunnels from UDP port {port} cannot be\n\
         help: from 1 to 4096 lanes over all tunnels, and no port above 65535"
    )]
    Lanes {
        /// As asked for, of each tunnel.
        lanes: u16,
        /// As asked for.
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
        /// Tunnels that the flows have.
        flow_tunnels: u32,
        /// Tunnels that have keys.
        key_tunnels: u16,
    },
    /// No engine can seal or open.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] keying::KeyError),
    /// The port went away.
    #[error("the port is gone: {0}\nhelp: was its interface removed or set down?")]
    PortGone(#[source] io::Error),
    /// A thread could not be started, or a flag not be made.
    #[error("the system gives no thread or descriptor: {0}")]
    Resources(#[source] io::Error),
}
