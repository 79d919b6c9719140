//! What one station does in one trial.

use port::FramePortKind;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use wire::Suite;
use wire::mix::FrameMix;

/// UDP destination port of every test frame; by it the analyser knows them.
pub const TEST_PORT: u16 = 0xCB0E;

/// One station's part in one trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Interface to use; ignored by memory ports.
    pub interface: String,
    /// The port to use; `None`: the fastest that works.
    pub port: Option<FramePortKind>,
    /// Threads, each with a port and a share of the flows; at least 1.
    pub threads: u16,
    /// Tells this trial's frames from stragglers of earlier ones.
    pub tag: u16,
    /// What to do.
    pub role: Role,
}

/// Sending or receiving.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "role")]
pub enum Role {
    /// Make frames on schedule until all are sent.
    Send(Send),
    /// Check frames until all expected ones have come and no copies follow, or until told to stop.
    Receive(Receive),
    /// Capture what a DUT sealed, and send hostile packets made of it.
    Attack(Attack),
}

/// The frames to make, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Send {
    /// Their headers.
    pub flows: Flows,
    /// Their sizes on the clear side. The i-th frame's size comes from the mix in a fixed, even order.
    pub mix: FrameMix,
    /// Frames per second over all flows; `None`: as fast as possible.
    pub frames_per_s: Option<u64>,
    /// How long, in nanoseconds. Paced, exactly `frames_per_s × duration` frames are intended.
    pub duration_ns: u64,
    /// Time whose frames leave in one burst, at its start: the last of them up to so much earlier than evenly spaced
    /// ones would. The schedule itself is made of such bursts, and latency counts from it: that of the last frame
    /// of a burst has in it the time to send those before. 0: each frame has its own time.
    pub burst_ns: u64,
    /// Seal each as the DUT's peer would.
    pub esp: Option<Esp>,
    /// A second part that follows without a pause, for recovery from an overload. Sequence numbers go on.
    #[serde(default)]
    pub then: Option<Then>,
}

/// The second part of what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Then {
    /// Frames per second over all flows.
    pub frames_per_s: u64,
    /// How long, in nanoseconds.
    pub duration_ns: u64,
}

/// Headers of the test frames. Flow i belongs to tunnel i mod `tunnels`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flows {
    /// Own MAC address.
    pub source_mac: [u8; 6],
    /// The next hop's MAC address.
    pub target_mac: [u8; 6],
    /// Source address of tunnel 0; tunnel t adds t when `tunnels` is above 1.
    pub source: IpAddr,
    /// Target address of tunnel 0, likewise.
    pub target: IpAddr,
    /// Flows, which differ by source port; at most 32768 a tunnel.
    pub flows: u32,
    /// Tunnels.
    pub tunnels: u32,
}

/// ESP in UDP by the station itself, with the keys of the DUT's peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Esp {
    /// Static key file of the peer that the station stands for, with its epoch file beside it.
    pub key_file: String,
    /// Suite.
    pub suite: Suite,
    /// Engine by name, or `auto`.
    pub engine: String,
    /// Outer source address.
    pub local: IpAddr,
    /// Outer target address: the DUT.
    pub remote: IpAddr,
    /// UDP port of lane 0, both ends; lane i has the i-th after it.
    pub port: u16,
    /// Lanes. Tunnel t's flows are spread over them: flow i goes by lane i mod `lanes`.
    pub lanes: u16,
    /// Tunnels that have SAs of their own: 1, or as many as the flows have. Lane l of tunnel t has the keys of slot
    /// t × `lanes` + l.
    pub tunnels: u16,
}

/// What is expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receive {
    /// Flows, as the sender has them: how much state there is.
    pub flows: u32,
    /// Distinct intact frames after which the receiver ends by itself, once no copy has followed for 10 ms; `None`:
    /// when it is told to stop. What comes to the station after it was told to is in no count.
    pub expected: Option<u64>,
    /// Open each as the DUT's peer would; what is not ESP is foreign then.
    pub esp: Option<Esp>,
    /// Frames of the sender's first part, when it has a second one ([`Send::then`]): later ones are counted
    /// in [`Received::then_frames`](crate::report::Received::then_frames) too. Flows take turns, so frame n is
    /// that of flow n mod `flows` with sequence number n / `flows`.
    #[serde(default)]
    pub first_frames: Option<u64>,
    /// Size of the longest frame on the clear side, FCS counted; `None`: any that a port carries. AF_XDP receives
    /// only what fits a page of memory, and is refused where longer frames may come.
    #[serde(default)]
    pub frame_bytes_max: Option<u16>,
    /// How [`Received::bins`](crate::report::Received::bins) are counted; `None`: no bins.
    #[serde(default)]
    pub bins: Option<Bins>,
    /// How [`Received::periods`](crate::report::Received::periods) are counted, which costs more for each; `None`: none
    /// are.
    #[serde(default)]
    pub periods: Option<Bins>,
}

/// Intervals by which frames are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bins {
    /// Width of each, in nanoseconds.
    pub width_ns: u64,
    /// How many the sender's time touches at most: memory for them is taken before the first frame comes.
    pub most: u32,
}

/// Hostile packets, made of sealed ones that left by the interface, and sent by it to whom those were sent: they
/// bypass its queueing discipline, and so take nothing of a shaped line's rate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attack {
    /// Of what kind.
    pub kind: AttackKind,
    /// How sealed packets look: where their sequence number is.
    pub form: SealedForm,
    /// UDP ports, either end, of which packets are sealed; none where ESP is bare.
    pub ports: Vec<u16>,
    /// How many.
    pub packets_per_s: u64,
    /// How long, in nanoseconds, from the first sealed packet that is captured; also how long one is waited for. What is
    /// 100 ms late at the end is not sent.
    pub duration_ns: u64,
}

/// Kinds of hostile packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttackKind {
    /// One of the latest packets with its sequence number [`AHEAD`](crate::hostile::AHEAD) and a flipped bit in its last
    /// byte: only an integrity check refuses it.
    BadIcv,
    /// As it was captured: by turns one of the latest, which any replay window has, and one that is a second or
    /// two old, which may be behind it.
    Replay,
    /// Of the length and the headers of one of the latest, with random bytes from the first sealed one on; of ESP, the
    /// SPI is never 0. The same bytes in each trial of one tag.
    Garbage,
}

/// Forms of sealed packets in UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SealedForm {
    /// ESP: SPI, sequence number (RFC 4303 §2).
    Esp,
    /// WireGuard's transport data: type, receiver, counter.
    #[serde(rename = "wireguard")]
    WireGuard,
    /// OpenVPN's `P_DATA_V2`: opcode and peer, packet id.
    #[serde(rename = "openvpn")]
    OpenVpn,
}
