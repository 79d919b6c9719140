//! Frame tests: the traffic, and the procedure of [`crate::procedure`].
//!
//! Loads are frames per second in one direction, whole numbers. Sizes include the FCS.

use crate::adapter::{Adapter, Carrier, Direction};
use crate::procedure::Procedure;
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
    V4 = 4,
    /// IPv6.
    #[serde(rename = "6")]
    V6 = 6,
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
            // The outer packet has an Ethernet header and an FCS of the same length.
            let around = ETHERNET_HEADER_BYTES + usize::from(FCS_BYTES);
            let frame = match sealed {
                Some(carrier) => around + carrier.cipher_packet_bytes(frame.saturating_sub(around)),
                None => frame,
            };
            (frame + usize::from(LINE_GAP_BYTES)) as u128
        };
        // Counted over a whole round of the mix, so that nothing is rounded before the end.
        let shares = self.frames.mix.shares.iter();
        let round = shares.map(|share| u128::from(share.weight) * on_the_line(share.frame_bytes));
        // Not zero either for a mix without sizes, which a changed journal may have.
        let bits = (8 * round.sum::<u128>()).max(1);
        let frames = u128::from(line_bps) * u128::from(self.frames.mix.weight()) / bits;
        u64::try_from(frames).unwrap_or(u64::MAX)
    }

    /// Encapsulation of the frames that a station sends; `None` if in clear.
    #[must_use]
    pub fn sealed_by_station(&self, adapter: &Adapter) -> Option<Carrier> {
        // In the other directions a gateway seals, and the station sends in clear.
        let carrier = adapter.profile().carrier;
        carrier.filter(|_| self.direction == Direction::Decrypt)
    }
}

impl IpVersion {
    /// `4` or `6`.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
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
