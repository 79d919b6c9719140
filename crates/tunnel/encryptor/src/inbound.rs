//! Cipher to clear: receive, open, join, write.
//!
//! 1. Receive trains of datagrams.
//! 2. Open them in batches (`open`).
//! 3. Join packets of one flow into super-packets, and write each with one system call.

use crate::counters::{DropReason, Flow, Tally};
use crate::datagrams::Datagrams;
use crate::open::{Opener, push_frame};
use crate::payload::Payload;
use crate::policy::Policy;
use port::{Batch, CipherPort, ClearPort};
use std::io;
use std::sync::Arc;
use wire::checksum::Sum;
use wire::coalesce::{Coalescer, Sink};
use wire::l2tp::Session;
use wire::vnet::VnetHeader;

pub use crate::desync::Desync;
pub use crate::inbound_keys::{InboundKeys, Notice};

/// The opening half of a lane.
pub struct Inbound<K> {
    opener: Opener<K>,
    sum: Sum,
    batch: Batch,
}

impl<K: InboundKeys> Inbound<K> {
    /// An opening half for that many tunnels, in the order of the policy.
    #[must_use]
    pub fn new(keys: K, tunnels: usize, payload: Payload, policy: Arc<Policy>, sum: Sum) -> Self {
        Self {
            opener: Opener::new(keys, tunnels, payload, policy),
            sum,
            batch: Batch::new(0),
        }
    }

    /// Moves one batch; returns whether there was one.
    ///
    /// # Errors
    /// When the cipher port fails.
    pub fn run(
        &mut self,
        clear: &mut impl ClearPort,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) -> io::Result<bool> {
        // Allocated at the first call, because only the open port knows its batch size.
        if self.batch.buffer.is_empty() {
            self.batch = Batch::new(cipher.batch_bytes());
        }
        match cipher.recv(&mut self.batch) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
        // Joined packets never wait for the next batch: the coalescer is flushed below.
        let mut coalescer = Coalescer::new(clear.joinable(), self.sum);
        let mut writer = Writer {
            clear,
            written: Flow::default(),
            failed: 0,
        };
        let Batch { buffer, trains } = &mut self.batch;
        let datagrams = Datagrams::new(buffer, trains);
        if let Payload::PlainPseudowire { inbound, .. } = self.opener.payload() {
            unwrap(inbound, datagrams, &mut coalescer, &mut writer, tally);
        } else {
            open(
                &mut self.opener,
                datagrams,
                &mut coalescer,
                &mut writer,
                tally,
            );
        }
        coalescer.flush(&mut writer);
        let Writer {
            written, failed, ..
        } = writer;
        // Packets that the port gathered and failed to write.
        let lost = clear.flush()?.min(written.packets);
        tally.clear_tx.packets += written.packets - lost;
        // The program in the kernel counts lost frames without their lengths, so they are taken
        // to have the batch's mean length.
        let lost_bytes = written.bytes * lost / written.packets.max(1);
        tally.clear_tx.bytes += written.bytes - lost_bytes;
        tally.drop(DropReason::WriteFailed, failed + lost);
        Ok(true)
    }
}

/// Opens datagrams, and delivers the inner packets.
#[inline]
fn open<'a, K: InboundKeys>(
    opener: &mut Opener<K>,
    mut datagrams: Datagrams<'a, '_>,
    coalescer: &mut Coalescer<'a>,
    sink: &mut impl Sink,
    tally: &mut Tally,
) {
    opener.begin_batch();
    while let Some(chunk) = opener.open_chunk(&mut datagrams, tally) {
        opener.deliver(chunk, coalescer, sink, tally);
    }
}

/// Takes frames out of an unprotected pseudowire.
#[inline]
fn unwrap<'a>(
    session: &Session,
    mut datagrams: Datagrams<'a, '_>,
    coalescer: &mut Coalescer<'a>,
    sink: &mut impl Sink,
    tally: &mut Tally,
) {
    while let Some((range, _)) = datagrams.peek() {
        tally.cipher_rx.add(range.len());
        // Before `take`, because the range is relative to the rest of the buffer, which `take`
        // shortens.
        datagrams.skip();
        let datagram = &datagrams.take(range.end)[range.start..];
        match session.parse(datagram) {
            Ok(frame) => push_frame(frame, coalescer, sink, tally),
            Err(refused) => tally.drop(DropReason::of_refused(refused), 1),
        }
    }
}

/// Writes joined packets to the clear port, and counts them.
struct Writer<'c, C> {
    clear: &'c mut C,
    written: Flow,
    failed: u64,
}

impl<C: ClearPort> Sink for Writer<'_, C> {
    #[inline]
    fn emit(&mut self, vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]], segments: usize) {
        let payload_bytes: usize = payload.iter().map(|part| part.len()).sum();
        if self.clear.send(vnet, headers, payload).is_ok() {
            self.written.packets += segments as u64;
            self.written.bytes += (payload_bytes + headers.len() * segments) as u64;
        } else {
            self.failed += segments as u64;
        }
    }
}
