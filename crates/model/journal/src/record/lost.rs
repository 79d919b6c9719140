//! Places of packet loss: two counters of the path that differ.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Packets that one counter of the path counted and the next one after it did not, in one
/// direction, over the trial with the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostAt {
    /// The parts of the path between the two counters, in the direction of the packets: one, or
    /// several without a counter between them.
    pub places: Vec<PathPlace>,
    /// The counter before the loss.
    pub before: PathCount,
    /// The counter after the loss.
    pub behind: PathCount,
    /// Packets that interfaces between the two counted as dropped.
    pub dropped: u64,
}

/// Packets that a place of the path counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCount {
    /// The counter: `gw1/w0 sent`, `gw1/cipher_tx_packets`, `the generator`.
    pub at: String,
    /// Its difference over the trial.
    pub packets: u64,
}

/// A part of the path. A link includes the queue of the interface that sends to it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum PathPlace {
    /// Station A, behind its interface.
    StationA,
    /// The link between station A and gw1.
    LinkA,
    /// Gateway 1: its kernel and the device there.
    Gw1,
    /// The link between the gateways, with the elements in it.
    CipherLink,
    /// Gateway 2.
    Gw2,
    /// The link between gw2 and station B.
    LinkB,
    /// Station B, behind its interface.
    StationB,
    /// The link past the gateways, from station to station.
    DirectLink,
}

impl PathPlace {
    /// In a sentence: `inside gw1`.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::StationA => "inside station A",
            Self::LinkA => "between station A and gw1",
            Self::Gw1 => "inside gw1",
            Self::CipherLink => "between gw1 and gw2",
            Self::Gw2 => "inside gw2",
            Self::LinkB => "between gw2 and station B",
            Self::StationB => "inside station B",
            Self::DirectLink => "between the stations",
        }
    }

    /// Whether it is a link and no part of a station or a device.
    #[must_use]
    pub const fn is_link(self) -> bool {
        matches!(
            self,
            Self::LinkA | Self::CipherLink | Self::LinkB | Self::DirectLink
        )
    }
}

impl LostAt {
    /// Packets that two neighbouring counters may differ by in addition to one in
    /// [`Self::COUNTED_ONE_IN`]: they are not read at the same time, and a link carries neighbour
    /// discovery.
    pub const APART_PACKETS: u64 = 16;
    /// Two counters may differ by one packet in this many.
    pub const COUNTED_ONE_IN: u64 = 1000;

    /// Whether a difference is larger than two counts of the same packets may show. `apart`:
    /// [`Self::APART_PACKETS`], or more if other packets are known between the two.
    #[must_use]
    pub const fn is_clear(lost: u64, of: u64, apart: u64) -> bool {
        // Counters are read one after the other, so packets in flight are in one of them only.
        lost > apart.saturating_add(of / Self::COUNTED_ONE_IN)
    }

    /// Packets lost.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.before.packets.saturating_sub(self.behind.packets)
    }

    /// In a sentence: `between gw1 and gw2: 199 of 20000 (20000 by gw1/cipher_tx_packets, 19801 by
    /// gw2/cipher_rx_packets)`.
    #[must_use]
    pub fn words(&self) -> String {
        let places: Vec<&str> = self.places.iter().map(|place| place.words()).collect();
        let (before, behind) = (&self.before, &self.behind);
        let mut text = format!(
            "{}: {} of {} ({} by {}, {} by {}",
            places.join(" or "),
            self.packets(),
            before.packets,
            before.packets,
            before.at,
            behind.packets,
            behind.at
        );
        // Not `dropped 0`: some interfaces do not count what they drop.
        if self.dropped > 0 {
            text += &format!("; interfaces there dropped {}", self.dropped);
        }
        text + ")"
    }
}
