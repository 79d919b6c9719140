//! Frame tests: the traffic and the procedure.
//!
//! Loads are frames per second in one direction, whole numbers. Sizes include the FCS.

use crate::adapter::{Adapter, Carrier, Direction};
use crate::{Disturbed, Mrr, ServiceTest, Soak, ThroughputSearch};
use serde::{Deserialize, Serialize};
use std::fmt;
use strum::{IntoStaticStr, VariantArray};
use wire::mix::{ETHERNET_HEADER_BYTES, FCS_BYTES, LINE_GAP_BYTES, TestFrames};

/// Traffic of Cipherbench's generator, and its procedure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameTest {
    /// The frames and their directions.
    pub traffic: Traffic,
    /// The procedure.
    pub procedure: Procedure,
}

/// Frames and their directions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Form of the frames, without addresses.
    #[serde(flatten)]
    pub frames: TestFrames,
    /// IP version of the test packets.
    pub ip: IpVersion,
    /// Which part of the DUT is loaded.
    pub direction: Direction,
    /// The same load from B to A at the same time.
    pub duplex: bool,
    /// How the stations send and receive.
    pub ports: Ports,
}

/// IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum IpVersion {
    /// IPv4.
    #[serde(rename = "4")]
    V4,
    /// IPv6.
    #[serde(rename = "6")]
    V6,
}

impl Traffic {
    /// Highest load, in frames/s and rounded down, that a line of this rate in bit/s (L1, preamble
    /// and gap counted) carries at the point of entry of a station's frames: as ESP if the station
    /// [seals](Self::sealed_by_station).
    #[must_use]
    pub fn line_rate(&self, line_bps: u64, adapter: &Adapter) -> u64 {
        self.line_rate_as(line_bps, self.sealed_by_station(adapter))
    }

    /// The same for a known suite of the frames when they enter the line.
    #[must_use]
    pub fn line_rate_as(&self, line_bps: u64, sealed: Option<Carrier>) -> u64 {
        let on_the_line = |frame_bytes: u16| {
            let frame = usize::from(frame_bytes);
            let around = ETHERNET_HEADER_BYTES + usize::from(FCS_BYTES);
            let frame = match sealed {
                Some(carrier) => around + carrier.cipher_packet_bytes(frame.saturating_sub(around)),
                None => frame,
            };
            (frame + usize::from(LINE_GAP_BYTES)) as u128
        };
        let shares = self.frames.mix.shares.iter();
        let round = shares.map(|share| u128::from(share.weight) * on_the_line(share.frame_bytes));
        let bits = (8 * round.sum::<u128>()).max(1);
        let frames = u128::from(line_bps) * u128::from(self.frames.mix.weight()) / bits;
        u64::try_from(frames).unwrap_or(u64::MAX)
    }

    /// Encapsulation of the frames that a station sends; `None` if in clear.
    #[must_use]
    pub fn sealed_by_station(&self, adapter: &Adapter) -> Option<Carrier> {
        let carrier = adapter.profile().carrier;
        carrier.filter(|_| self.direction == Direction::Decrypt)
    }
}

impl IpVersion {
    /// `4` or `6`.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V4 => 4,
            Self::V6 => 6,
        }
    }
}

/// How a station sends and receives; `None`: the fastest that works there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ports {
    /// Sending.
    pub tx: Option<PortKind>,
    /// Receiving.
    pub rx: Option<PortKind>,
}

/// `auto`; of one kind, its name; else both names, the sender's first.
impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |kind: Option<PortKind>| kind.map_or("auto", PortKind::name);
        if self.tx == self.rx {
            f.write_str(name(self.tx))
        } else {
            write!(f, "{}-{}", name(self.tx), name(self.rx))
        }
    }
}

/// A kind of port for frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum PortKind {
    /// AF_XDP.
    Xdp,
    /// AF_PACKET.
    Packet,
    /// UDP sockets; the kernel makes the headers.
    Socket,
    /// Rings in memory.
    Memory,
}

impl PortKind {
    /// Name in campaigns.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The procedure of a frame test. An open enum: more follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "procedure")]
pub enum Procedure {
    /// One load for one time.
    Load(Load),
    /// Search for the highest load that meets each goal (RFC 9971; RFC 2544 §26.1).
    Throughput(ThroughputSearch),
    /// Forwarding rate at the highest load (CSIT).
    Mrr(Mrr),
    /// Steps up to a service's rates, against its limits (ITU-T Y.1564).
    Service(ServiceTest),
    /// Loss at falling loads (RFC 2544 §26.3).
    LossCurve(LossCurve),
    /// Longest burst at line rate without loss (RFC 9004).
    BackToBack(BackToBack),
    /// Latency at shares of the throughput, which is searched first (RFC 2544 §26.2).
    Latency(LatencyTest),
    /// Time from the end of an overload to the end of loss (RFC 2544 §26.5).
    Recovery(Recovery),
    /// A constant load with a disturbance of the DUT.
    Disturbed(Disturbed),
    /// A constant load for minutes to hours, recorded as a timeline.
    Soak(Soak),
}

impl Procedure {
    /// The search in it, if there is one.
    #[must_use]
    pub const fn search(&self) -> Option<&ThroughputSearch> {
        match self {
            Self::Throughput(search) => Some(search),
            Self::Latency(test) => Some(&test.search),
            Self::Recovery(test) => Some(&test.search),
            Self::Disturbed(Disturbed { load, .. }) | Self::Soak(Soak { load, .. }) => {
                load.search()
            }
            Self::Load(_)
            | Self::Mrr(_)
            | Self::Service(_)
            | Self::LossCurve(_)
            | Self::BackToBack(_) => None,
        }
    }

    /// The plan of `latency`; `None` for other procedures.
    #[must_use]
    pub const fn latency(&self) -> Option<&LatencyTest> {
        match self {
            Self::Latency(test) => Some(test),
            _ => None,
        }
    }

    /// Short name, in cell ids and tables.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Load(_) => "load",
            Self::Throughput(_) => "throughput",
            Self::Mrr(_) => "mrr",
            Self::Service(_) => "service",
            Self::LossCurve(_) => "loss-curve",
            Self::BackToBack(_) => "back-to-back",
            Self::Latency(_) => "latency",
            Self::Recovery(_) => "recovery",
            Self::Disturbed(test) => test.event.name(),
            Self::Soak(_) => "soak",
        }
    }
}

/// One load for one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Frames per second; `None`: as fast as the generator can.
    pub frames_per_s: Option<u64>,
    /// How long.
    pub duration_ns: u64,
}

/// Loss at falling loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossCurve {
    /// The load of 100 %, in frames/s; `None`: the line rate, or the generator's maximum.
    pub max_load: Option<u64>,
    /// Step in per cent of it, 1 to 50; the curve ends after two loads without loss.
    pub step_percent: u8,
    /// Each load's time.
    pub trial_ns: u64,
    /// Time to wait for late frames after the last frame is sent.
    pub drain_ns: u64,
}

/// Longest burst without loss.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackToBack {
    /// Longest burst tried, as time at the highest load (RFC 9004 §5: 2 s).
    pub burst_ns_max: u64,
    /// Bursts of the found length that are tried; 50 by RFC 2544.
    pub bursts: u32,
    /// Time after each burst.
    pub drain_ns: u64,
}

/// Latency at shares of the throughput.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyTest {
    /// How the throughput is found: the first goal counts.
    pub search: ThroughputSearch,
    /// Loads in per cent of it; 0 is the search's lowest load.
    pub percents: Vec<u8>,
    /// Each trial's time.
    pub trial_ns: u64,
    /// Trials at each load, 1 or more; 20 by RFC 8219 §7.2.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub trials: u32,
    /// The timed path.
    #[serde(default, skip_serializing_if = "LatencyPath::is_one_way")]
    pub path: LatencyPath,
}

/// The path over which latency is timed.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, IntoStaticStr, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum LatencyPath {
    /// From A to B (RFC 1242 §3.8); round trip between two hosts if their clocks do not agree well
    /// enough.
    #[default]
    OneWay,
    /// Round trip: station B reflects each frame, and station A times it by its clock (RFC 2681,
    /// RFC 8762). The loads are shares of the round-trip throughput.
    RoundTrip,
}

impl LatencyPath {
    /// Both.
    pub const ALL: [Self; 2] = [Self::OneWay, Self::RoundTrip];

    /// Name in campaigns.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    const fn is_one_way(&self) -> bool {
        matches!(self, Self::OneWay)
    }
}

const fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_one(trials: &u32) -> bool {
    *trials == 1
}

/// Recovery from an overload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// How the throughput is found: the first goal counts.
    pub search: ThroughputSearch,
    /// Overload in per cent of it; 110 by RFC 2544.
    pub overload_percent: u16,
    /// Load afterwards in per cent of it; 50 by RFC 2544.
    pub relief_percent: u16,
    /// Time of the overload; 60 s by RFC 2544.
    pub overload_ns: u64,
    /// Time watched afterwards.
    pub relief_ns: u64,
}
