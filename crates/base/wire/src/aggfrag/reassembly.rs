//! Reassembly of packets that a peer has fragmented over several payloads (RFC 9347 §2.2.3,
//! §6.1.1).
//!
//! The pieces of one packet arrive in consecutive payloads, so at most one packet is incomplete at
//! a time, and the ESP sequence number shows whether a piece is missing. Late payloads yield their
//! whole packets, but no pieces.

use super::{BLOCK_BYTES_MAX, Block, Blocks, Malformed, header};

/// The receiving end of one SA's payloads. Holds at most one incomplete packet and the one
/// completed last, of [`BLOCK_BYTES_MAX`] each; for a peer that does not fragment packets it holds
/// nothing.
#[derive(Debug, Default)]
pub struct Reassembler {
    /// The received part of the incomplete packet; empty when there is none.
    begun: Vec<u8>,
    /// Length of that packet, once enough of its header has arrived.
    whole: Option<usize>,
    /// Further pieces may arrive of a packet that was abandoned, and counted.
    given_up: bool,
    /// One more than the highest sequence number so far, where the incomplete packet must continue.
    next: u64,
    /// A packet completed by the last payload.
    completed: Vec<u8>,
}

/// The content of one payload.
#[derive(Debug)]
pub struct Received<'r, 'p> {
    /// A packet begun in an earlier payload and ended in this one; it precedes `blocks`.
    pub completed: Option<&'r [u8]>,
    /// The packets that are whole in this one.
    pub blocks: Blocks<'p>,
    /// Packets abandoned because a piece is missing or does not fit: a lower bound, since of some
    /// packets no piece ever arrives.
    pub lost: u32,
    /// The error that ends the payload early; the packets before it are good.
    pub malformed: Option<Malformed>,
}

/// The end of a payload.
enum End<'p> {
    /// With a whole packet, or padding.
    Whole,
    /// With the first bytes of a packet, and its length if that is among them.
    Begun(&'p [u8], Option<usize>),
    Malformed(Malformed),
}

impl End<'_> {
    const fn malformed(&self) -> Option<Malformed> {
        match self {
            Self::Malformed(malformed) => Some(*malformed),
            Self::Whole | Self::Begun(..) => None,
        }
    }
}

impl Reassembler {
    /// A reassembler that has received nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a packet is incomplete.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Takes the opened payload of the ESP packet with this full sequence number.
    ///
    /// Allocates only when a peer fragments packets, and then until the longest has arrived.
    ///
    /// # Errors
    /// [`Malformed`] in its header: it contains nothing usable.
    pub fn receive<'p>(
        &mut self,
        sequence: u64,
        payload: &'p [u8],
    ) -> Result<Received<'_, 'p>, Malformed> {
        let (offset, blocks) = header(payload)?;
        let (piece, rest) = blocks.split_at(offset.min(blocks.len()));
        let end = end_of(rest);
        let late = sequence < self.next;
        let gap = sequence > self.next;
        self.completed.clear();
        let mut received = Received {
            completed: None,
            blocks: Blocks { rest },
            lost: 0,
            malformed: end.malformed(),
        };
        // Its pieces belong to packets that were completed or abandoned at a later payload.
        if late {
            return Ok(received);
        }
        // An SA ends before its sequence numbers wrap (RFC 4303 §3.3.3).
        self.next = sequence.saturating_add(1);
        if offset > 0 || self.is_waiting() {
            received.lost = self.add_piece(gap, offset, piece, rest);
        }
        // Only now: the packet that ends in this payload precedes the one that begins in it.
        if let End::Begun(bytes, whole) = end {
            self.begun.extend_from_slice(bytes);
            self.whole = whole;
        }
        // Where another packet begins, the one before has ended.
        self.given_up &= only_padding(rest);
        received.completed = Some(&self.completed[..]).filter(|packet| !packet.is_empty());
        Ok(received)
    }

    /// Adds a piece to the incomplete packet. Returns how many packets are lost.
    fn add_piece(&mut self, gap: bool, offset: usize, piece: &[u8], rest: &[u8]) -> u32 {
        // An offset beyond the payload: the packet also fills the next one.
        let ends_here = offset > 0 && offset <= piece.len();
        if !self.is_waiting() {
            // A packet whose first piece is missing is counted at its last piece.
            let counted = self.given_up;
            self.given_up = counted && !ends_here;
            return u32::from(ends_here && !counted);
        }
        // Pieces behind a missing one are useless.
        if gap {
            return self.give_up(ends_here);
        }
        if offset == 0 {
            // Only padding may separate two pieces (§2.2.3).
            return if only_padding(rest) {
                0
            } else {
                self.give_up(ends_here)
            };
        }
        // The offset counts all missing bytes, also the ones in later payloads (§6.1.1). So each
        // piece states the length of the packet again, and must agree.
        let whole = self.begun.len() + offset;
        if self.whole.is_some_and(|known| known != whole) || whole > BLOCK_BYTES_MAX {
            return self.give_up(ends_here);
        }
        self.begun.extend_from_slice(piece);
        // The first piece may have been too short for the length field, so the header is read
        // again.
        match Block::read(&self.begun) {
            Ok(Block::Packet(bytes)) if bytes == whole => self.whole = Some(whole),
            Ok(Block::Stub) => {}
            _ => return self.give_up(ends_here),
        }
        if ends_here {
            // It ends before its length field.
            if self.whole.is_none() {
                return self.give_up(ends_here);
            }
            // A swap keeps the capacity of both buffers, so nothing is allocated per packet.
            std::mem::swap(&mut self.begun, &mut self.completed);
            self.begun.clear();
            self.whole = None;
        }
        0
    }

    fn give_up(&mut self, ends_here: bool) -> u32 {
        self.begun.clear();
        self.whole = None;
        // Its further pieces are not counted as another loss.
        self.given_up = !ends_here;
        1
    }
}

/// Whether no packet begins at `rest`.
#[inline]
fn only_padding(rest: &[u8]) -> bool {
    rest.first().is_none_or(|&first| first >> 4 == 0)
}

/// The end of the data blocks, the first of which begins at `rest`.
#[inline]
fn end_of(rest: &[u8]) -> End<'_> {
    let mut blocks = Blocks { rest };
    // This reads the headers of the packets, not their payloads.
    blocks.by_ref().for_each(drop);
    if blocks.rest.is_empty() {
        return End::Whole;
    }
    match Block::read(blocks.rest) {
        Ok(Block::Pad) => End::Whole,
        Ok(Block::Packet(bytes)) => End::Begun(blocks.rest, Some(bytes)),
        Ok(Block::Stub) => End::Begun(blocks.rest, None),
        Err(reason) => End::Malformed(reason),
    }
}
