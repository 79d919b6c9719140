//! What a sample of a link's frames returns.

use journal::record::CipherLink;
use serde::{Deserialize, Serialize};

/// Frames sampled on an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Their counts.
    pub link: CipherLink,
    /// Whole sealed packets among them, spread over the sample, in frames from the Ethernet header;
    /// one of a super-packet has headers of its own. At most 64 KiB together.
    pub packets: Vec<Vec<u8>>,
    /// Sealed frames from which no whole packet could be taken, if packets or contents were
    /// requested.
    pub not_whole: u64,
    /// What the sealed packets contain, if that was requested.
    pub contents: Option<Contents>,
}

/// What sampled sealed packets contain, of each behind its first 24 bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Packets that were read, each once.
    pub packets: u64,
    /// How often each of the 256 values of a byte was there.
    pub byte_counts: Vec<u64>,
    /// Blocks of 16 bytes that were there before.
    pub repeated_blocks: u64,
}
