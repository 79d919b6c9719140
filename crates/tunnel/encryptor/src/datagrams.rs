//! The datagrams of a received batch, one after the other.

use port::Train;
use std::ops::Range;

/// Iterates over the datagrams of a batch, and hands out parts of its buffer.
pub(crate) struct Datagrams<'a, 't> {
    trains: std::slice::Iter<'t, Train>,
    /// The rest of the current train: its end, the length of its datagrams, its outer DSCP and ECN.
    train: Train,
    /// The buffer behind the parts that were handed out, and its offset.
    rest: &'a mut [u8],
    rest_at: usize,
}

impl<'a, 't> Datagrams<'a, 't> {
    pub(crate) fn new(buffer: &'a mut [u8], trains: &'t [Train]) -> Self {
        let mut trains = trains.iter();
        Self {
            train: next(&mut trains),
            trains,
            rest: buffer,
            rest_at: 0,
        }
    }

    /// Returns the range of the next datagram in the rest of the buffer, and its outer DSCP and
    /// ECN.
    #[inline]
    pub(crate) fn peek(&self) -> Option<(Range<usize>, u8)> {
        if self.train.start == usize::MAX {
            return None;
        }
        // The last datagram of a train may be shorter.
        let bytes = self.train.bytes.min(self.train.datagram_bytes);
        let at = self.train.start - self.rest_at;
        Some((at..at + bytes, self.train.tos))
    }

    /// The bytes of a range that [`peek`](Self::peek) returned.
    #[inline]
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.rest[range]
    }

    /// Advances to the next datagram.
    #[inline]
    pub(crate) fn skip(&mut self) {
        let bytes = self.train.bytes.min(self.train.datagram_bytes);
        self.train.start += bytes;
        self.train.bytes -= bytes;
        if self.train.bytes == 0 {
            self.train = next(&mut self.trains);
        }
    }

    /// Takes the first `bytes` of the rest of the buffer.
    pub(crate) fn take(&mut self, bytes: usize) -> &'a mut [u8] {
        // Leaves an empty slice for a moment: only so the chunk has the buffer's lifetime, and
        // later parts can be taken while it is in use.
        let (chunk, rest) = std::mem::take(&mut self.rest).split_at_mut(bytes);
        self.rest = rest;
        self.rest_at += bytes;
        chunk
    }
}

/// The next train, or one that marks the end: see `peek`.
#[inline]
fn next(trains: &mut std::slice::Iter<'_, Train>) -> Train {
    trains.next().copied().unwrap_or(Train {
        start: usize::MAX,
        ..Train::default()
    })
}
