//! The specification of one station's part in one trial.

use impair::Profile;
use port::{Beside, FramePortKind, Packets};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use wire::Suite;
use wire::mix::{Contents, TestFrames};

/// UDP destination port of test frames with fixed contents; the analyser recognises them by it.
pub const TEST_PORT: u16 = 0xCB0E;
/// UDP destination ports of test frames with random contents. A receiver's filter compares a range
/// of consecutive ports as fast as a single one; without a filter it binds each port.
pub const RANDOM_TEST_PORTS: RangeInclusive<u16> = 0xCB00..=0xCB3F;

/// UDP destination ports of test frames.
#[must_use]
pub const fn test_ports(contents: Contents) -> RangeInclusive<u16> {
    match contents {
        Contents::Fixed => TEST_PORT..=TEST_PORT,
        Contents::Random => RANDOM_TEST_PORTS,
    }
}

/// One station's part in one trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Interface to use; ignored by memory ports.
    pub interface: String,
    /// The port to use; `None`: the fastest that works.
    pub port: Option<FramePortKind>,
    /// Threads, each with a port and a share of the flows; at least 1.
    pub threads: u16,
    /// Distinguishes this trial's frames from stragglers of earlier ones.
    pub tag: u16,
    /// The station's task.
    pub role: Role,
}

/// The station's task in a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "role")]
pub enum Role {
    /// Make frames on schedule until all are sent.
    Send(Send),
    /// Check frames until all expected ones have arrived and no copies follow, or until stopped.
    Receive(Receive),
    /// Send intact frames back, until all expected ones have arrived, or until stopped.
    Reflect(Reflect),
    /// Capture a DUT's sealed packets, and send hostile ones derived from them.
    Attack(Attack),
}

/// The frames to send and their schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Send {
    /// The addresses in their headers.
    pub addresses: Addresses,
    /// Flows, sizes and contents of the frames.
    pub frames: TestFrames,
    /// Frames per second over all flows; `None`: as fast as possible.
    pub frames_per_s: Option<u64>,
    /// Duration in nanoseconds. Paced, exactly `frames_per_s × duration` frames are intended.
    pub duration_ns: u64,
    /// Interval over which frames are gathered into one burst, sent at its start: the last frame
    /// leaves up to this much earlier than with even spacing. Latency counts from the burst's time,
    /// so the last frame's latency includes the time to send the earlier ones. 0: each frame has
    /// its own time.
    pub burst_ns: u64,
    /// Seal each frame as the DUT's peer would.
    pub peer: Option<Peer>,
    /// Never offer more than the rate: after a stall the rest of the schedule moves, and the trial
    /// takes longer. Without it late frames leave as fast as the port accepts them, at their
    /// original intended time.
    #[serde(default)]
    pub keep_rate: bool,
    /// A second part that follows without a pause, for recovery from an overload. Sequence numbers
    /// continue.
    #[serde(default)]
    pub then: Option<Then>,
    /// When to begin, by the sender's clock, so that several senders begin together; `None`:
    /// immediately. If this time has passed, the first frames are late.
    #[serde(default)]
    pub start_ns: Option<u64>,
}

/// The second part of a sender's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Then {
    /// Frames per second over all flows.
    pub frames_per_s: u64,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
}

/// Addresses of the test frames. Flow i belongs to tunnel i mod [`TestFrames::tunnels`]; flows of
/// one tunnel differ by source port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// MAC address of the sender.
    pub source_mac: [u8; 6],
    /// The next hop's MAC address.
    pub target_mac: [u8; 6],
    /// Source address of tunnel 0; tunnel t adds t.
    pub source: IpAddr,
    /// Target address of tunnel 0; incremented in the same way.
    pub target: IpAddr,
}

/// The key source of a station that replaces the DUT's peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeySource {
    /// Static key file of the peer that the station replaces, with its epoch file next to it.
    File(String),
    /// An IKE daemon on the station.
    Ike(IkeKeys),
    /// WireGuard handshakes of the station with the keys of this file, which is as `wg setconf`
    /// reads it. Packets are WireGuard's then, and not ESP.
    WireGuard(String),
}

/// Keys that an IKE daemon on the station agrees on with the DUT. Its SAs have short sequence
/// numbers, and one lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IkeKeys {
    /// The log of a strongSwan daemon, at level 4 for `chd` and 1 for `ike`.
    pub log: String,
    /// File of the sequence numbers used so far; it need not exist.
    pub sequences: String,
}

/// The DUT's peer, replaced by a station: it seals ESP, in UDP or bare, or WireGuard's packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// The source of the keys.
    pub keys: KeySource,
    /// Suite.
    pub suite: Suite,
    /// Engine by name, or `auto`.
    pub engine: String,
    /// Outer source address.
    pub local: IpAddr,
    /// Outer target address: the DUT.
    pub remote: IpAddr,
    /// UDP port of lane 0 on both ends; lane i has the i-th after it. `None`: bare ESP (IP protocol
    /// 50), with one lane.
    pub port: Option<u16>,
    /// Number of lanes, of keys from a file in UDP; others have one. Each tunnel's flows are spread
    /// over them: flow i uses lane i mod `lanes`.
    pub lanes: u16,
    /// Number of tunnels with separate SAs: 1, or the number of tunnels of the flows. Lane l of
    /// tunnel t has the keys of slot t × `lanes` + l.
    pub tunnels: u16,
}

impl Peer {
    /// UDP ports of its packets; empty for bare ESP.
    #[must_use]
    pub fn udp_ports(&self) -> Vec<u16> {
        // To the last port that exists: lanes beyond it must not begin again at port 0.
        let all = self.port.into_iter().flat_map(|first| first..=u16::MAX);
        all.take(usize::from(self.lanes)).collect()
    }

    /// The form of its packets; `udp_ports` are their ports.
    #[must_use]
    pub const fn packets<'p>(&self, udp_ports: &'p [u16]) -> Packets<'p> {
        match (self.port, &self.keys) {
            (None, _) => Packets::BareEsp,
            // With keys from a file nothing else is sent to these ports. IKE shares its port with
            // ESP (RFC 3948 §2), and WireGuard's handshakes share that of its data.
            (Some(_), KeySource::File(_)) => Packets::Udp(udp_ports),
            (Some(_), KeySource::Ike(_)) => Packets::UdpBeside(udp_ports, Beside::Ike),
            (Some(_), KeySource::WireGuard(_)) => Packets::UdpBeside(udp_ports, Beside::WireGuard),
        }
    }

    /// Whether `threads` can seal without sharing an SA. Flow i belongs to thread i modulo
    /// `threads`, lane i modulo `lanes` and tunnel i modulo `tunnels`.
    #[must_use]
    pub fn divides_among(&self, threads: u32) -> bool {
        // If the threads divide the lanes, flows of one lane are equal modulo the threads too, so
        // that one thread has all of them. The same holds for tunnels.
        let mut counts = [self.lanes, self.tunnels].into_iter().map(u32::from);
        counts.any(|count| count.is_multiple_of(threads))
    }
}

/// The frames that a receiver expects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receive {
    /// The sender's frames: the number of flows determines the amount of state. AF_XDP receives
    /// only frames that fit a page of memory, and is rejected if longer ones may arrive.
    pub frames: TestFrames,
    /// Distinct intact frames after which the receiver ends by itself, once no copy has followed
    /// for 10 ms; `None`: it ends when stopped. Frames that reach the station after the stop are
    /// not counted.
    pub expected: Option<u64>,
    /// Open each packet as the DUT's peer would; unsealed packets are then foreign.
    pub peer: Option<Peer>,
    /// Number of frames in the sender's first part, if it has a second one ([`Send::then`]): later
    /// ones are also counted in [`Received::then_frames`](crate::Received::then_frames).
    /// Flows take turns: frame n has sequence number n / `flows` in flow n mod `flows`.
    #[serde(default)]
    pub first_frames: Option<u64>,
    /// The grid of [`Received::bins`](crate::Received::bins); `None`: no bins.
    #[serde(default)]
    pub bins: Option<Bins>,
    /// The grid of [`Received::periods`](crate::Received::periods); a period costs more
    /// than a bin. `None`: no periods.
    #[serde(default)]
    pub periods: Option<Bins>,
    /// Whether [`Received::variation`](crate::Received::variation) is determined, which
    /// costs a second histogram entry per frame and 16 bytes per flow.
    #[serde(default)]
    pub variation: bool,
    /// How the sender's clock differs, if it is another one; all times in the report are then the
    /// sender's.
    #[serde(default)]
    pub sender_clock: Option<SenderClock>,
    /// Whether the frames come back from a reflector ([`Reflect`]), with their addresses and ports
    /// exchanged: latencies are then round-trip times.
    #[serde(default)]
    pub reflected: bool,
}

impl Receive {
    /// A receiver of these frames that ends when stopped, without any optional counts.
    #[must_use]
    pub const fn new(frames: TestFrames) -> Self {
        Self {
            frames,
            expected: None,
            peer: None,
            first_frames: None,
            bins: None,
            periods: None,
            variation: false,
            sender_clock: None,
            reflected: false,
        }
    }
}

/// The frames to send back: intact new frames of this trial, with MAC addresses, IP addresses and
/// UDP ports exchanged and nothing else changed, so that every checksum holds. None is sent back
/// twice: the addressee on the way back expects other ports, and a copy is not new. This is the
/// reflector of STAMP (RFC 8762 §4.3) without its time stamps: the smallest frames have no room for
/// them, and [`Reflected`](crate::Reflected) takes their place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reflect {
    /// The sender's frames, as for [`Receive::frames`].
    pub frames: TestFrames,
    /// As [`Receive::expected`].
    pub expected: Option<u64>,
    /// The port to send by; [`Spec::port`] is that to receive by. `None`: the fastest that works.
    pub send_port: Option<FramePortKind>,
}

impl Reflect {
    /// The frames that the reflector's analyser expects.
    #[must_use]
    pub fn receive(&self) -> Receive {
        Receive {
            // Without times: it has no clock in common with the sender.
            expected: self.expected,
            ..Receive::new(self.frames.clone())
        }
    }
}

/// How the sender's CLOCK_MONOTONIC differs from the receiver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderClock {
    /// Time of the comparison, by the receiver's clock.
    pub at_ns: i64,
    /// By how much the sender's was ahead then.
    pub ahead_ns: i64,
    /// How much faster it is, in parts of 10^9.
    pub faster_ppb: i64,
}

impl SenderClock {
    /// Returns the time of the sender's clock at a time of the receiver's.
    #[inline]
    #[must_use]
    pub fn at(&self, receiver_ns: u64) -> u64 {
        let since_ns = receiver_ns.cast_signed() - self.at_ns;
        // Exact to a nanosecond for days, and faster than a division of 128 bits.
        let gained_ns = (since_ns as f64 * self.faster_ppb as f64 * 1e-9) as i64;
        receiver_ns.saturating_add_signed(self.ahead_ns + gained_ns)
    }
}

/// A grid of intervals for counting frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bins {
    /// Width of each, in nanoseconds.
    pub width_ns: u64,
    /// Maximum number that the sender's time covers: their memory is allocated before the first
    /// frame arrives.
    pub most: u32,
}

/// Hostile packets, derived from sealed ones that left by the interface, and sent through it to the
/// same destination: they bypass its queueing discipline, and so take no share of a shaped line's
/// rate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attack {
    /// The kind of hostile packet.
    pub kind: AttackKind,
    /// The form of sealed packets, which locates their sequence number.
    pub form: SealedForm,
    /// UDP ports, at either end, of sealed packets; empty when ESP is bare.
    pub ports: Vec<u16>,
    /// Hostile packets per second.
    pub packets_per_s: u64,
    /// Duration in nanoseconds, from the first captured sealed packet; also the limit of the wait
    /// for one. Packets 100 ms late at the end are not sent.
    pub duration_ns: u64,
}

/// Kinds of hostile packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttackKind {
    /// One of the latest packets with its sequence number `traffic::hostile::AHEAD` and a
    /// flipped bit in its last byte: only an integrity check rejects it.
    BadIcv,
    /// Unchanged: alternately one of the latest, which any replay window contains, and one that is
    /// a second or two old, which may be behind it.
    Replay,
    /// The length and headers of one of the latest, with random bytes from the first sealed one on;
    /// the SPI of ESP is never 0. The same bytes in each trial of one tag.
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

/// The configuration of `cipherbench impair`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeSpec {
    /// The interfaces towards station A and towards station B.
    pub interfaces: [String; 2],
    /// Longest frame in bytes, without FCS.
    pub frame_bytes: usize,
    /// What happens to the frames.
    pub profile: Profile,
}
