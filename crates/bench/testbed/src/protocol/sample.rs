//! The result of sampling a link's frames.

use journal::record::CipherLink;
use serde::{Deserialize, Serialize};

/// Frames sampled on an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Counts of the sampled frames.
    pub link: CipherLink,
    /// Whole sealed packets among them, spread over the sample, as frames with their Ethernet
    /// header. A packet from a super-packet gets complete headers. At most 64 KiB together.
    pub packets: Vec<Vec<u8>>,
    /// Sealed frames that yielded no whole packet, if packets or contents were requested.
    pub not_whole: u64,
    /// Statistics of the sealed packets' contents, if requested.
    pub contents: Option<Contents>,
}

/// Statistics of sampled sealed packets beyond the first 24 bytes of each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Packets that were inspected, each distinct packet once.
    pub packets: u64,
    /// Occurrences of each of the 256 byte values.
    pub byte_counts: Vec<u64>,
    /// Blocks of 16 bytes that repeat an earlier block.
    pub repeated_blocks: u64,
}
