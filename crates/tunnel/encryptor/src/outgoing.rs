//! The outgoing batch: packets are sealed into it, and leave in trains.
//!
//! 1. Long packets are sealed from their buffer straight into the batch, behind the previous one:
//!    only the cipher copies payload bytes. Short ones, and packets of suites with engines that
//!    process many packets together, are copied into the batch and sealed together.
//! 2. Datagrams of equal length to one peer form a train; a full train of large ones is sent
//!    immediately, the rest when the clear port is empty.

use crate::counters::{DropReason, Tally};
use crate::renewal::RenewalClient;
use arrayvec::ArrayVec;
use engine::{EngineFailed, Packet};
use esp::{OutboundSa, SealError};
use port::{Batch, CipherPort, Sent, TRAIN_BYTES_MAX, Train};
use std::ops::Range;
use wire::Suite;
use wire::l2tp::Session;

/// Maximum number of packets that wait in the batch to be sealed together.
const STAGED_MAX: usize = 64;
/// From this length on a packet of an AEAD suite is sealed directly from its buffer: copying it
/// costs more than sealing it with others gains.
const DIRECT_BYTES: usize = 512;
const OUT_BYTES: usize = 4 * TRAIN_BYTES_MAX;
/// From this length on a batch is worth a system call.
const FULL_BYTES: usize = TRAIN_BYTES_MAX - 2048;

/// A tunnel's state in the sealing half.
pub struct OutboundTunnel {
    /// Its SA in this lane; `None` while there are no keys, when packets are dropped, and for an
    /// unprotected pseudowire.
    pub sa: Option<OutboundSa>,
    /// Number of its peer at the cipher port.
    pub peer: u16,
    /// Length of the longest packet or frame that it carries, in bytes.
    pub inner_bytes_max: usize,
    /// Length of the longest ESP payload in bytes, which aggregated packets fill.
    pub payload_bytes_max: usize,
    /// The largest MSS that a TCP connection through it may announce, over IPv4 and over IPv6.
    pub mss_max: [u16; 2],
}

/// Metadata of a packet.
#[derive(Clone, Copy)]
pub(crate) struct Labels {
    pub tunnel: u16,
    pub next_header: u8,
    /// DSCP and ECN of the outer header.
    pub tos: u8,
}

/// The batch that is being filled.
pub(crate) struct Outgoing {
    pub tunnels: Vec<OutboundTunnel>,
    batch: Batch,
    used: usize,
    /// The last train ends with a shorter datagram, and takes no more.
    closed: bool,
    /// Whether the hard lifetime of each tunnel's keys is over.
    expired: Vec<bool>,
    /// Plaintext packets in the batch, with their tunnels.
    staged: ArrayVec<(u16, Packet), STAGED_MAX>,
    /// The source of new SAs.
    pub renewal: Option<RenewalClient>,
}

/// Source of a packet for the batch.
pub(crate) enum Source<'p> {
    /// A range of a buffer, with room behind it.
    Lying(&'p mut [u8], Range<usize>),
    /// Written by a function; its length in bytes.
    Written(usize, &'p dyn Fn(&mut [u8])),
    /// Already in its place in the batch ([`Outgoing::place`]); its length in bytes.
    InPlace(usize),
}

impl Source<'_> {
    const fn bytes(&self) -> usize {
        match self {
            Self::Lying(_, range) => range.end - range.start,
            Self::Written(bytes, _) | Self::InPlace(bytes) => *bytes,
        }
    }
}

impl Outgoing {
    pub(crate) fn new(tunnels: Vec<OutboundTunnel>) -> Self {
        Self {
            expired: vec![false; tunnels.len()],
            tunnels,
            batch: Batch::new(OUT_BYTES),
            used: 0,
            closed: false,
            staged: ArrayVec::new(),
            renewal: None,
        }
    }

    /// Replaces SAs by new ones that have arrived, and removes expired ones. Must be called when
    /// nothing is staged.
    #[inline]
    pub(crate) fn renew(&mut self) {
        let Some(client) = &mut self.renewal else {
            return;
        };
        for (tunnel, sa) in client.collect() {
            self.expired[usize::from(tunnel)] = sa.is_none();
            self.tunnels[usize::from(tunnel)].sa = sa;
        }
    }

    /// Adds one packet to the batch, as an ESP packet, and counts the outcome.
    #[inline]
    pub(crate) fn seal(
        &mut self,
        labels: Labels,
        source: Source<'_>,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) {
        let inner = source.bytes();
        let tunnel = &self.tunnels[usize::from(labels.tunnel)];
        let Some(sa) = &tunnel.sa else {
            let reason = if self.expired[usize::from(labels.tunnel)] {
                DropReason::KeysExpired
            } else {
                DropReason::NoKeys
            };
            return tally.drop(reason, 1);
        };
        // All that depends on the SA is read before room is made, which may send the batch and so
        // needs the whole of `self`.
        let peer = tunnel.peer;
        let direct = is_direct(sa.suite(), inner);
        let sealed = sa.sealed_len(inner);
        if sealed > TRAIN_BYTES_MAX {
            return tally.drop(DropReason::TooBig, 1);
        }
        // A packet that is in its place already has its room.
        let train = match source {
            Source::InPlace(_) => self.next_train(sealed, peer, labels.tos, cipher.train_max()),
            _ => self.make_room(sealed, peer, labels.tos, cipher, tally),
        };
        let at = self.used;
        let Some(sa) = &mut self.tunnels[usize::from(labels.tunnel)].sa else {
            unreachable!("only a tunnel with an SA seals");
        };
        let buffer = &mut self.batch.buffer;
        let next_header = labels.next_header;
        let staged = match source {
            Source::Lying(packet, range) if direct => {
                let room = &mut buffer[at..at + sealed];
                sa.seal(&mut packet[range.start..], inner, next_header, room)
                    .map(|_| None)
            }
            Source::Lying(packet, range) => {
                sa.stage(&packet[range], next_header, buffer, at).map(Some)
            }
            Source::Written(_, write) => sa
                .stage_with(inner, next_header, buffer, at, write)
                .map(Some),
            Source::InPlace(_) => sa.stage_in_place(inner, next_header, buffer, at).map(Some),
        };
        // New keys are due at half of the cipher's limit at the latest, so the SA continues to seal
        // until the new one arrives.
        if sa.new_keys_are_due()
            && let Some(client) = &mut self.renewal
        {
            client.ask(labels.tunnel, sa);
        }
        match staged {
            Ok(Some(packet)) => self.staged.push((labels.tunnel, packet)),
            Ok(None) => {}
            Err(SealError::Engine(_)) => return tally.drop(DropReason::SealFailed, 1),
            // Both buffers have room, so the SA must be exhausted.
            Err(_) => return tally.drop(DropReason::SequenceExhausted, 1),
        }
        self.add(train);
        if self.staged.is_full() && self.seal_staged().is_err() {
            self.give_up(tally);
        }
    }

    /// Adds one frame to the batch behind a pseudowire's header, unprotected.
    #[inline]
    pub(crate) fn copy(
        &mut self,
        session: &Session,
        frame: &[u8],
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) {
        let bytes = session.header_bytes() + frame.len();
        if bytes > TRAIN_BYTES_MAX {
            return tally.drop(DropReason::TooBig, 1);
        }
        let train = self.make_room(bytes, self.tunnels[0].peer, 0, cipher, tally);
        let out = &mut self.batch.buffer[self.used..self.used + bytes];
        let header = session.write_header(out);
        out[header..].copy_from_slice(frame);
        self.add(train);
    }

    /// Makes room for an ESP packet with an inner packet of up to `inner` bytes, and returns the
    /// inner packet's range; `None` if it can never fit.
    #[inline]
    pub(crate) fn place(
        &mut self,
        labels: Labels,
        inner: usize,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) -> Option<Range<usize>> {
        let tunnel = &self.tunnels[usize::from(labels.tunnel)];
        let sa = tunnel.sa.as_ref()?;
        let (peer, offset, sealed) = (tunnel.peer, sa.inner_offset(), sa.sealed_len(inner));
        if sealed > TRAIN_BYTES_MAX {
            return None;
        }
        self.make_room(sealed, peer, labels.tos, cipher, tally);
        let start = self.used + offset;
        Some(start..start + inner)
    }

    /// The bytes of a range that [`place`](Self::place) returned.
    #[inline]
    pub(crate) fn buffer(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.batch.buffer[range]
    }

    /// Returns the train for the next datagram, after sending the batch if there was no room.
    #[inline]
    fn make_room(
        &mut self,
        bytes: usize,
        peer: u16,
        tos: u8,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) -> Next {
        // A datagram that joins the last train has been checked against the buffer's end there.
        let next = self.next_train(bytes, peer, tos, cipher.train_max());
        if next.joins || (!self.batch.trains.is_full() && self.used + bytes <= OUT_BYTES) {
            return next;
        }
        // The batch is empty afterwards, so the second attempt starts a train at the buffer's
        // beginning.
        self.flush(cipher, tally);
        self.next_train(bytes, peer, tos, cipher.train_max())
    }

    /// Returns the train for a next datagram of `bytes`, and whether it may join the last train.
    #[inline]
    fn next_train(&self, bytes: usize, peer: u16, tos: u8, train_max: usize) -> Next {
        let joins = self.batch.trains.last().is_some_and(|last| {
            !self.closed
                && bytes <= last.datagram_bytes
                && (peer, tos) == (last.peer, last.tos)
                && last.bytes + bytes <= TRAIN_BYTES_MAX
                && self.used + bytes <= OUT_BYTES
                // A train has at most `train_max` datagrams, and only the last one may be shorter.
                && last.bytes < train_max * last.datagram_bytes
        });
        let train = Train {
            start: self.used,
            bytes,
            datagram_bytes: bytes,
            peer,
            tos,
        };
        Next { train, joins }
    }

    /// Adds the datagram that is now at the end of the batch.
    #[inline]
    fn add(&mut self, Next { train, joins }: Next) {
        match self.batch.trains.last_mut() {
            Some(last) if joins => {
                last.bytes += train.bytes;
                // The kernel cuts a train into datagrams of one length, and only the last may be
                // shorter (UDP_SEGMENT).
                self.closed = train.bytes < last.datagram_bytes;
            }
            _ => {
                self.batch.trains.push(train);
                self.closed = false;
            }
        }
        self.used += train.bytes;
    }

    /// Whether the batch holds a full train: then it should be sent, so that the peer opens while
    /// this side seals. To be asked between the packets that are read, not between the segments of
    /// one: segments beyond a full train follow it immediately, so that the peer receives both and
    /// writes one super-packet again.
    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.used >= FULL_BYTES
    }

    /// Seals the staged packets; consecutive packets of one SA are sealed together.
    fn seal_staged(&mut self) -> Result<(), EngineFailed> {
        for run in self.staged.chunk_by(|one, other| one.0 == other.0) {
            let packets: ArrayVec<Packet, STAGED_MAX> =
                run.iter().map(|(_, packet)| *packet).collect();
            let Some(sa) = &mut self.tunnels[usize::from(run[0].0)].sa else {
                unreachable!("only a tunnel with an SA stages");
            };
            sa.seal_staged(&mut self.batch.buffer, &packets)?;
        }
        self.staged.clear();
        Ok(())
    }

    /// Drops the batch after a failure to seal one of its packets.
    #[cold]
    fn give_up(&mut self, tally: &mut Tally) {
        // The whole batch ends: the trains describe one range of bytes, and a gap in it would be
        // sent.
        let datagrams = self.batch.trains.iter().map(Train::datagrams).sum();
        tally.drop(DropReason::SealFailed, datagrams);
        // Plaintext that is staged must not stay behind, because a later packet may not overwrite
        // all of it.
        self.batch.buffer[..self.used].fill(0);
        self.clear();
    }

    /// Seals the staged packets and sends the batch. A [place](Self::place) in it ends.
    pub(crate) fn flush(&mut self, cipher: &mut impl CipherPort, tally: &mut Tally) {
        if self.batch.trains.is_empty() {
            return;
        }
        if self.seal_staged().is_err() {
            return self.give_up(tally);
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
        self.clear();
    }

    fn clear(&mut self) {
        self.batch.trains.clear();
        self.staged.clear();
        self.used = 0;
        self.closed = false;
    }
}

/// A datagram about to be added.
#[derive(Clone, Copy)]
struct Next {
    train: Train,
    /// Whether it joins the last train instead of starting one.
    joins: bool,
}

/// Whether a packet of that length is sealed directly from its buffer.
#[inline]
const fn is_direct(suite: Suite, inner_bytes: usize) -> bool {
    !matches!(suite, Suite::EncryptThenMac(..) | Suite::Gost(_)) && inner_bytes >= DIRECT_BYTES
}
