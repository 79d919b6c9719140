//! AGGFRAG: many inner packets in one ESP payload (RFC 9347).
//!
//! ```text
//! |sub-type 0|reserved|block offset 2|data block|data block| … |pad block|
//! |          header, 4               |rest of one begun before, when the offset is not 0
//! ```
//!
//! A data block is an IPv4 or IPv6 packet, whose own header contains its length, or padding to the
//! payload's end; the first four bits distinguish them (§6.1.3). There is nothing between blocks.
//!
//! Sending: an [`Aggregator`] packs packets into the outgoing buffer, and fragments those that no
//! payload holds as a whole (§2.2.3). The others stay whole, so a lost payload costs only the
//! packets in it.
//!
//! Receiving: a [`Reassembler`] returns the whole packets of each payload in place, and joins those
//! that a peer has fragmented. [`Blocks`] alone is enough for a peer that does not fragment.
//!
//! Fixed-rate sending (IP-TFS proper) and congestion control are not here: the header of sub-type 1
//! (§6.1.2) is skipped without reading its measurements, since no sender here has a rate that they
//! could control.

mod reassembly;

pub use reassembly::{Reassembler, Received};

use crate::headers::be16;

/// ESP's next header of an AGGFRAG payload (RFC 9347 §6.1).
pub const AGGFRAG: u8 = 144;
/// Length of the header of sub-type 0 (§6.1.1), in bytes.
pub const HEADER_BYTES: usize = 4;
/// Length of the header of sub-type 1, with congestion control (§6.1.2), in bytes.
pub const CONGESTION_HEADER_BYTES: usize = 24;
/// Length of the longest data block other than padding: an IPv6 header and its longest payload.
pub const BLOCK_BYTES_MAX: usize = 40 + 65_535;

const BASIC: u8 = 0;
const CONGESTION: u8 = 1;

/// Why a payload, or the rest of it, is not AGGFRAG. The payload was authentic, so the peer is at
/// fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than its header.
    Header,
    /// A sub-type that RFC 9347 does not define.
    SubType,
    /// A data block that is neither IPv4 nor IPv6 nor padding.
    BlockType,
    /// A data block whose length field is less than its header.
    BlockLength,
}

/// A data block by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    /// Padding to the payload's end (§6.1.3.3).
    Pad,
    /// An IP packet of this length in bytes.
    Packet(usize),
    /// An IP packet of which so few bytes are present that its length field is missing.
    Stub,
}

impl Block {
    /// Reads the beginning of a block of at least one byte.
    #[inline]
    fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        // The version of an IP header; no IP version is 0, which marks padding (§6.1.3.3).
        let (length, least) = match bytes[0] >> 4 {
            0 => return Ok(Self::Pad),
            // A payload may end within a header: the length field is in the next one.
            4 if bytes.len() < 4 => return Ok(Self::Stub),
            6 if bytes.len() < 6 => return Ok(Self::Stub),
            4 => (usize::from(be16(bytes, 2)), 20),
            6 => (40 + usize::from(be16(bytes, 4)), 40),
            _ => return Err(Malformed::BlockType),
        };
        // Among others a length of 0, with which the loop over the blocks would never end.
        if length < least {
            return Err(Malformed::BlockLength);
        }
        Ok(Self::Packet(length))
    }
}

/// The data block that `inner` begins with: an IP packet without what follows it. `None` if it is
/// no IP packet, or a part of one.
#[inline]
#[must_use]
pub fn block_of(inner: &[u8]) -> Option<&[u8]> {
    if inner.is_empty() {
        return None;
    }
    match Block::read(inner) {
        Ok(Block::Packet(bytes)) => inner.get(..bytes),
        _ => None,
    }
}

/// Whether `inner` can be a data block: an IP packet with exactly the length in its header.
#[inline]
#[must_use]
pub fn is_block(inner: &[u8]) -> bool {
    block_of(inner).is_some_and(|block| block.len() == inner.len())
}

/// Packs packets into one payload.
///
/// It owns no buffer: each call gets the outgoing one, from the payload's first byte, so a payload
/// can grow over several reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aggregator {
    used: usize,
    room: usize,
    /// Length of the rest of a packet that the payload before has begun.
    offset: u16,
}

impl Aggregator {
    /// An empty payload of at most `room` bytes, header included.
    #[inline]
    #[must_use]
    pub const fn begin(room: usize) -> Self {
        Self {
            used: HEADER_BYTES,
            room,
            offset: 0,
        }
    }

    /// An empty payload of at most `room` bytes that continues a packet of the payload before, of
    /// which `rest` bytes are left. They must be [pushed](Self::push_part) first.
    #[inline]
    #[must_use]
    pub const fn resume(room: usize, rest: u16) -> Self {
        Self {
            offset: rest,
            ..Self::begin(room)
        }
    }

    /// Bytes that still fit.
    #[inline]
    #[must_use]
    pub const fn left(&self) -> usize {
        self.room.saturating_sub(self.used)
    }

    /// Appends a packet. Returns false and changes nothing when it does not fit, or is not an IP
    /// packet with exactly the length in its header (the receiver would then find other packets in
    /// the payload than these).
    ///
    /// # Panics
    /// If `buffer` is shorter than the room.
    #[inline]
    #[must_use]
    pub fn push(&mut self, buffer: &mut [u8], inner: &[u8]) -> bool {
        let end = self.used + inner.len();
        if end > self.room || !is_block(inner) {
            return false;
        }
        buffer[self.used..end].copy_from_slice(inner);
        self.used = end;
        true
    }

    /// Appends as much as fits of a [data block](block_of), or of its rest, and returns how much:
    /// unless that is all, the next payload of the SA must [resume](Self::resume) with the rest.
    ///
    /// # Panics
    /// If `buffer` is shorter than the room.
    #[inline]
    #[must_use]
    pub fn push_part(&mut self, buffer: &mut [u8], block: &[u8]) -> usize {
        let bytes = block.len().min(self.left());
        buffer[self.used..self.used + bytes].copy_from_slice(&block[..bytes]);
        self.used += bytes;
        bytes
    }

    /// Writes the header. Returns the payload's length.
    ///
    /// # Panics
    /// If `buffer` is shorter than the header.
    #[inline]
    pub fn finish(self, buffer: &mut [u8]) -> usize {
        let [high, low] = self.offset.to_be_bytes();
        // The reserved byte is sent as 0 (§6.1.1).
        buffer[..HEADER_BYTES].copy_from_slice(&[BASIC, 0, high, low]);
        self.used
    }
}

/// The whole packets in one payload, in order.
///
/// It ends before padding, before a packet that continues in the next payload, and where the
/// payload is malformed; [`Received`] distinguishes these.
#[derive(Debug, Clone)]
pub struct Blocks<'p> {
    rest: &'p [u8],
}

impl<'p> Blocks<'p> {
    /// The whole packets of a payload; the rest of a packet begun in an earlier one is skipped.
    ///
    /// # Errors
    /// [`Malformed`] in its header.
    #[inline]
    pub fn parse(payload: &'p [u8]) -> Result<Self, Malformed> {
        let (offset, blocks) = header(payload)?;
        Ok(Self {
            rest: &blocks[offset.min(blocks.len())..],
        })
    }
}

impl<'p> Iterator for Blocks<'p> {
    type Item = &'p [u8];

    #[inline]
    fn next(&mut self) -> Option<&'p [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        // `rest` stays at this place: the reassembler reads there why the packets end.
        let Ok(Block::Packet(bytes)) = Block::read(self.rest) else {
            return None;
        };
        let (packet, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(packet)
    }
}

/// Block offset and data blocks of a payload. The offset may point beyond the blocks.
#[inline]
fn header(payload: &[u8]) -> Result<(usize, &[u8]), Malformed> {
    // The reserved bits have no meaning here.
    let &[sub_type, ..] = payload else {
        return Err(Malformed::Header);
    };
    let bytes = match sub_type {
        BASIC => HEADER_BYTES,
        CONGESTION => CONGESTION_HEADER_BYTES,
        _ => return Err(Malformed::SubType),
    };
    let (header, blocks) = payload.split_at_checked(bytes).ok_or(Malformed::Header)?;
    // Both headers have the block offset at the same place (§6.1.1, §6.1.2).
    Ok((usize::from(be16(header, 2)), blocks))
}
