//! Clear to cipher: read, cut, seal, send.
//!
//! 1. Read one packet or super-packet from the clear port.
//! 2. Cut it into wire packets, in place ([`wire::segment`]).
//! 3. Seal each straight into the outgoing buffer, behind the one before.
//! 4. Packets of equal length make a train; a full train is sent at once, the rest when the clear port is dry.
//!
//! No payload byte is copied between the two system calls but by the cipher itself.

use crate::counters::{DropReason, Tally};
use esp::OutboundSa;
use port::{
    Batch, CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, CipherPort, ClearPort, Sent, TRAIN_BYTES_MAX,
    Train,
};
use std::io;
use std::ops::Range;
use wire::checksum::Sum;
use wire::headers::IpView;
use wire::segment::{Segmenter, complete_checksum};
use wire::vnet::{Gso, VNET_HEADER_BYTES, VnetHeader};

/// Packets or super-packets read before the other direction has its turn.
const READS_MAX: usize = 32;
const OUT_BYTES: usize = 4 * TRAIN_BYTES_MAX;

/// The sealing half of a lane.
pub struct Outbound {
    packet: Box<[u8]>,
    sealer: Sealer,
}

/// Seals packets into the outgoing batch.
struct Sealer {
    sa: OutboundSa,
    sum: Sum,
    batch: Batch,
    used: usize,
    /// The last train got its short datagram, or is full.
    closed: bool,
}

impl Outbound {
    /// A sealing half that uses `sa`.
    #[must_use]
    pub fn new(sa: OutboundSa, sum: Sum) -> Self {
        Self {
            packet: vec![0; CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES].into_boxed_slice(),
            sealer: Sealer {
                sa,
                sum,
                batch: Batch::new(OUT_BYTES),
                used: 0,
                closed: false,
            },
        }
    }

    /// Moves what is there; whether there was anything.
    ///
    /// # Errors
    /// When the clear port is gone.
    pub fn run(
        &mut self,
        clear: &mut impl ClearPort,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) -> io::Result<bool> {
        let mut any = false;
        for _ in 0..READS_MAX {
            match clear.recv(&mut self.packet) {
                Ok((packet, bytes)) => {
                    any = true;
                    self.sealer.take(packet, bytes, cipher, tally);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.sealer.flush(cipher, tally);
        Ok(any)
    }
}

impl Sealer {
    /// Takes the packet of `bytes` that stands in the buffer.
    fn take(
        &mut self,
        packet: &mut [u8],
        bytes: usize,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) {
        if self.take_valid(packet, bytes, cipher, tally).is_none() {
            tally.clear_rx.add(bytes.saturating_sub(VNET_HEADER_BYTES));
            tally.drop(DropReason::Malformed, 1);
        }
    }

    #[inline]
    fn take_valid(
        &mut self,
        packet: &mut [u8],
        bytes: usize,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) -> Option<()> {
        let whole = VNET_HEADER_BYTES..bytes;
        let (header, rest) = packet[..bytes].split_first_chunk_mut::<VNET_HEADER_BYTES>()?;
        let vnet = VnetHeader::parse(header)?;
        let view = IpView::parse(rest)?;
        let next_header = view.next_header();
        if vnet.gso == Gso::None {
            complete_checksum(&vnet, rest, self.sum).ok()?;
            self.seal(packet, whole, next_header, cipher, tally);
            return Some(());
        }
        let mut segmenter = Segmenter::new(&vnet, rest).ok()?;
        while let Some(range) = segmenter.next(&mut packet[whole.clone()], self.sum) {
            let range = range.start + whole.start..range.end + whole.start;
            self.seal(packet, range, next_header, cipher, tally);
        }
        Some(())
    }

    /// Seals one wire packet into the outgoing buffer.
    #[inline]
    fn seal(
        &mut self,
        packet: &mut [u8],
        range: Range<usize>,
        next_header: u8,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) {
        let inner = range.len();
        tally.clear_rx.add(inner);
        let sealed = self.sa.sealed_len(inner);
        if sealed > TRAIN_BYTES_MAX {
            return tally.drop(DropReason::TooBig, 1);
        }
        let joins = self.joins_train(sealed, cipher.train_max());
        if !joins && (self.batch.trains.is_full() || self.used + sealed > OUT_BYTES) {
            self.flush(cipher, tally);
        }
        let out = &mut self.batch.buffer[self.used..self.used + sealed];
        // Both buffers have room, so there is one reason left to refuse.
        if self
            .sa
            .seal(&mut packet[range.start..], inner, next_header, out)
            .is_err()
        {
            return tally.drop(DropReason::SequenceExhausted, 1);
        }
        match self.batch.trains.last_mut() {
            Some(train) if joins => {
                train.bytes += sealed;
                self.closed = sealed < train.datagram_bytes;
            }
            _ => {
                self.batch.trains.push(Train {
                    start: self.used,
                    bytes: sealed,
                    datagram_bytes: sealed,
                    ..Train::default()
                });
                self.closed = false;
            }
        }
        self.used += sealed;
        self.send_if_full(sealed, cipher, tally);
    }

    /// Whether a datagram of `bytes` may follow in the last train.
    #[inline]
    fn joins_train(&self, bytes: usize, train_max: usize) -> bool {
        let Some(train) = self.batch.trains.last() else {
            return false;
        };
        !self.closed
            && bytes <= train.datagram_bytes
            && train.bytes + bytes <= TRAIN_BYTES_MAX
            && self.used + bytes <= OUT_BYTES
            && (train.datagrams() as usize) < train_max
    }

    /// A full train of large datagrams goes at once: the peer can open while this side seals on.
    #[inline]
    fn send_if_full(&mut self, bytes: usize, cipher: &mut impl CipherPort, tally: &mut Tally) {
        let full = self
            .batch
            .trains
            .last()
            .is_some_and(|train| train.bytes + bytes > TRAIN_BYTES_MAX);
        if full {
            self.flush(cipher, tally);
        }
    }

    /// Sends what is held.
    fn flush(&mut self, cipher: &mut impl CipherPort, tally: &mut Tally) {
        if self.batch.trains.is_empty() {
            return;
        }
        let Sent {
            datagrams,
            bytes,
            too_big,
            failed,
        } = cipher.send(&mut self.batch);
        tally.cipher_tx.packets += datagrams;
        tally.cipher_tx.bytes += bytes;
        tally.drop(DropReason::TooBig, too_big);
        tally.drop(DropReason::SendFailed, failed);
        self.used = 0;
        self.closed = false;
    }
}
