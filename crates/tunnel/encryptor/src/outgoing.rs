//! The outgoing batch: packets are sealed into it, and leave in trains.
//!
//! 1. Long packets are sealed from where they lie straight into the batch, behind the one before: no payload byte is
//!    copied but by the cipher. Short ones, and those of suites whose engines work on many packets at once, are
//!    copied there and sealed together.
//! 2. Datagrams of equal length to one peer make a train; a full train of large ones is sent at once, the rest when
//!    the clear port is dry.

use crate::counters::{DropReason, Tally};
use crate::renewal::RenewalClient;
use arrayvec::ArrayVec;
use engine::{EngineFailed, Packet};
use esp::{OutboundSa, SealError};
use port::{Batch, CipherPort, Sent, TRAIN_BYTES_MAX, Train};
use std::ops::Range;
use wire::Suite;
use wire::l2tp::Session;

/// Packets that wait in the batch to be sealed together.
const STAGED_MAX: usize = 64;
/// From this length on a packet of an AEAD suite is sealed from where it lies: copying it would cost more than
/// sealing it with others gains.
const DIRECT_BYTES: usize = 512;
const OUT_BYTES: usize = 4 * TRAIN_BYTES_MAX;
/// From here on a batch is worth a system call.
const FULL_BYTES: usize = TRAIN_BYTES_MAX - 2048;

/// A tunnel as its sealing half knows it.
pub struct OutboundTunnel {
    /// Its SA in this lane; `None` while there are no keys: then packets are dropped; and for a pseudowire that is not
    /// protected.
    pub sa: Option<OutboundSa>,
    /// Number of its peer at the cipher port.
    pub peer: u16,
    /// The longest packet or frame that it carries, in bytes.
    pub inner_bytes_max: usize,
    /// The largest segment that a TCP connection through it may announce, over IPv4 and over IPv6.
    pub mss_max: [u16; 2],
}

/// What is known of a packet beside its bytes.
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
    /// The last train got its short datagram, or is full.
    closed: bool,
    /// What lies in the batch in clear, with its tunnel.
    staged: ArrayVec<(u16, Packet), STAGED_MAX>,
    /// Where new SAs come from.
    pub renewal: Option<RenewalClient>,
}

/// How a packet comes into the batch.
pub(crate) enum Source<'p> {
    /// From where it lies, with room behind it.
    Lying(&'p mut [u8], Range<usize>),
    /// Written by a function, so many bytes.
    Written(usize, &'p dyn Fn(&mut [u8])),
    /// It stands in its place already ([`Outgoing::place`]), so many bytes.
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
            tunnels,
            batch: Batch::new(OUT_BYTES),
            used: 0,
            closed: false,
            staged: ArrayVec::new(),
            renewal: None,
        }
    }

    /// Puts new SAs in the place of those that are nearly used up. To be called when nothing is staged.
    #[inline]
    pub(crate) fn renew(&mut self) {
        let Some(client) = &mut self.renewal else {
            return;
        };
        for (tunnel, sa) in client.collect() {
            self.tunnels[usize::from(tunnel)].sa = Some(sa);
        }
    }

    /// Puts one packet into the batch, as an ESP packet. Whatever becomes of it is counted.
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
            return tally.drop(DropReason::NoKeys, 1);
        };
        let peer = tunnel.peer;
        let direct = is_direct(sa.suite(), inner);
        let sealed = sa.sealed_len(inner);
        if sealed > TRAIN_BYTES_MAX {
            return tally.drop(DropReason::TooBig, 1);
        }
        // What stands in its place already was made room for.
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
        if sa.new_keys_are_due()
            && let Some(client) = &mut self.renewal
        {
            client.ask(labels.tunnel, sa);
        }
        match staged {
            Ok(Some(packet)) => self.staged.push((labels.tunnel, packet)),
            Ok(None) => {}
            Err(SealError::Engine(_)) => return tally.drop(DropReason::SealFailed, 1),
            // Both buffers have room, so what is left is that the SA is used up.
            Err(_) => return tally.drop(DropReason::SequenceExhausted, 1),
        }
        self.add(train);
        if self.staged.is_full() && self.seal_staged().is_err() {
            self.give_up(tally);
        }
    }

    /// Puts one frame into the batch behind a pseudowire's header, unprotected.
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

    /// Where an ESP packet of a tunnel with an inner packet of up to `inner` bytes would have it, after room was made;
    /// `None` where there can be no room.
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

    /// The bytes of the batch; for what [`place`](Self::place) has told.
    #[inline]
    pub(crate) fn buffer(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.batch.buffer[range]
    }

    /// A train of one datagram that may follow, after what is held was sent if there was no room.
    #[inline]
    fn make_room(
        &mut self,
        bytes: usize,
        peer: u16,
        tos: u8,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) -> Next {
        let next = self.next_train(bytes, peer, tos, cipher.train_max());
        if next.joins || (!self.batch.trains.is_full() && self.used + bytes <= OUT_BYTES) {
            return next;
        }
        self.flush(cipher, tally);
        self.next_train(bytes, peer, tos, cipher.train_max())
    }

    /// A datagram of `bytes` as the next one, and whether it may follow in the last train.
    #[inline]
    fn next_train(&self, bytes: usize, peer: u16, tos: u8, train_max: usize) -> Next {
        let joins = self.batch.trains.last().is_some_and(|last| {
            !self.closed
                && bytes <= last.datagram_bytes
                && (peer, tos) == (last.peer, last.tos)
                && last.bytes + bytes <= TRAIN_BYTES_MAX
                && self.used + bytes <= OUT_BYTES
                // A train is `train_max` full datagrams at most, and only the last one is shorter.
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

    /// Adds the datagram that now stands at the end of the batch.
    #[inline]
    fn add(&mut self, Next { train, joins }: Next) {
        match self.batch.trains.last_mut() {
            Some(last) if joins => {
                last.bytes += train.bytes;
                self.closed = train.bytes < last.datagram_bytes;
            }
            _ => {
                self.batch.trains.push(train);
                self.closed = false;
            }
        }
        self.used += train.bytes;
    }

    /// Sends what is held when that is a train's worth: the peer can open while this side seals on. To be called
    /// between the packets that are read, not between the segments of one: what a full train has no room for follows it
    /// at once, so that the peer finds both, and writes one super-packet again.
    #[inline]
    pub(crate) fn send_if_full(&mut self, cipher: &mut impl CipherPort, tally: &mut Tally) {
        if self.used >= FULL_BYTES {
            self.flush(cipher, tally);
        }
    }

    /// Seals what waits, each SA's packets together as far as they follow one another.
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

    /// Drops the batch: something in it could not be sealed.
    #[cold]
    fn give_up(&mut self, tally: &mut Tally) {
        let datagrams = self.batch.trains.iter().map(Train::datagrams).sum();
        tally.drop(DropReason::SealFailed, datagrams);
        self.batch.buffer[..self.used].fill(0);
        self.clear();
    }

    /// Seals what waits and sends what is held.
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
    /// In the last train, not in one of its own.
    joins: bool,
}

/// Whether a packet of that length is sealed from where it lies.
#[inline]
const fn is_direct(suite: Suite, inner_bytes: usize) -> bool {
    !matches!(suite, Suite::EncryptThenMac(..) | Suite::Gost(_)) && inner_bytes >= DIRECT_BYTES
}
