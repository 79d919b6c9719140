//! Packets that a peer has cut over several payloads (RFC 9347 §2.2.3, §6.1.1).
//!
//! The pieces of one packet come in consecutive payloads, so one packet at a time can be in the making, and the
//! ESP sequence number tells whether a piece is missing. Payloads that come late give their whole packets, but
//! no pieces.

use super::{BLOCK_BYTES_MAX, Block, Blocks, Malformed, header};

/// The receiving end of one SA's payloads. Holds at most one packet in the making and the one completed last, of
/// [`BLOCK_BYTES_MAX`] each; a peer that does not cut packets makes it hold nothing.
#[derive(Debug, Default)]
pub struct Reassembler {
    /// What came so far of the packet in the making; empty when there is none.
    begun: Vec<u8>,
    /// Length of that packet, once enough of its header has come.
    whole: Option<usize>,
    /// More pieces may come of a packet that was given up, and is counted.
    given_up: bool,
    /// One more than the highest sequence number so far, where that packet must go on.
    next: u64,
    /// A packet completed by the last payload.
    completed: Vec<u8>,
}

/// What one payload brought.
#[derive(Debug)]
pub struct Received<'r, 'p> {
    /// A packet that was begun in an earlier payload and ended in this one; it comes before `blocks`.
    pub completed: Option<&'r [u8]>,
    /// The packets that lie whole in this one.
    pub blocks: Blocks<'p>,
    /// Packets that were given up because a piece is missing or does not fit: that many at least, for of some
    /// no piece ever comes.
    pub lost: u32,
    /// Why the payload ends before its end; the packets before that are good.
    pub malformed: Option<Malformed>,
}

/// How a payload ends.
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
    /// One that has received nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a packet is in the making.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Takes the payload of the ESP packet with that whole sequence number, after it was opened.
    ///
    /// Allocates only when a peer cuts packets, and then until the longest came.
    ///
    /// # Errors
    /// [`Malformed`] in its header: it brought nothing.
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
        if late {
            return Ok(received);
        }
        self.next = sequence.saturating_add(1);
        if offset > 0 || self.is_waiting() {
            received.lost = self.go_on(gap, offset, piece, rest);
        }
        if let End::Begun(bytes, whole) = end {
            self.begun.extend_from_slice(bytes);
            self.whole = whole;
        }
        // Where another packet begins, the one before has ended.
        self.given_up &= only_padding(rest);
        received.completed = Some(&self.completed[..]).filter(|packet| !packet.is_empty());
        Ok(received)
    }

    /// Adds a piece to the packet in the making. Returns how many packets are lost.
    fn go_on(&mut self, gap: bool, offset: usize, piece: &[u8], rest: &[u8]) -> u32 {
        let ends_here = offset > 0 && offset <= piece.len();
        if !self.is_waiting() {
            // The last piece of a packet whose first is missing stands for it.
            let counted = self.given_up;
            self.given_up = counted && !ends_here;
            return u32::from(ends_here && !counted);
        }
        if gap {
            return self.give_up(ends_here);
        }
        if offset == 0 {
            // Nothing but padding may stand between two pieces (§2.2.3).
            return if only_padding(rest) {
                0
            } else {
                self.give_up(ends_here)
            };
        }
        let whole = self.begun.len() + offset;
        if self.whole.is_some_and(|known| known != whole) || whole > BLOCK_BYTES_MAX {
            return self.give_up(ends_here);
        }
        self.begun.extend_from_slice(piece);
        // The first piece may have been too short to tell, so the header is asked again.
        match Block::read(&self.begun) {
            Ok(Block::Packet(bytes)) if bytes == whole => self.whole = Some(whole),
            Ok(Block::Stub) => {}
            _ => return self.give_up(ends_here),
        }
        if ends_here {
            if self.whole.is_none() {
                return self.give_up(ends_here);
            }
            std::mem::swap(&mut self.begun, &mut self.completed);
            self.begun.clear();
            self.whole = None;
        }
        0
    }

    fn give_up(&mut self, ends_here: bool) -> u32 {
        self.begun.clear();
        self.whole = None;
        self.given_up = !ends_here;
        1
    }
}

/// Whether no packet begins where `rest` does.
#[inline]
fn only_padding(rest: &[u8]) -> bool {
    rest.first().is_none_or(|&first| first >> 4 == 0)
}

/// How the data blocks end, the first of which begins where `rest` does.
#[inline]
fn end_of(rest: &[u8]) -> End<'_> {
    let mut blocks = Blocks { rest };
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
