//! Packets that share ESP packets (AGGFRAG, RFC 9347), on the way out and in.
//!
//! A packet waits for others only while its batch is read: the aggregate is sealed when the clear
//! port is empty, when the next packet does not fit or belongs to another tunnel, or after the
//! reads of one turn. On a quiet link a packet does not wait at all.
//!
//! All packets of a tunnel go this way: an SA carries AGGFRAG payloads only (RFC 9347 §2.3). One
//! that is longer than a payload is divided over several, which are sealed one after the other
//! (§2.2.3).

use crate::counters::{DropReason, Tally};
use crate::outgoing::{Labels, Outgoing, Source};
use crate::policy::Policy;
use port::CipherPort;
use std::ops::Range;
use wire::aggfrag::{self, AGGFRAG, Aggregator, HEADER_BYTES, Reassembler};
use wire::coalesce::{Coalescer, Sink};
use wire::headers::IpView;

/// The ECN bits: no value is right for many packets in one (RFC 9347 §2.4.2 leaves it to the
/// sender).
const ECN: u8 = 3;

/// A packet that has to be divided begins in the rest of an ESP packet only if that has this much
/// room, which also takes every header with the packet's length.
const PART_BYTES_MIN: usize = 64;

/// The ESP packet that is being filled, if any.
#[derive(Default)]
pub(crate) struct Filling(Option<Filled>);

struct Filled {
    labels: Labels,
    /// Range of its payload in the outgoing batch.
    place: Range<usize>,
    aggregator: Aggregator,
}

impl Filling {
    /// Takes a packet, which may be sealed immediately or after others have joined it.
    #[inline]
    pub(crate) fn put(
        &mut self,
        labels: Labels,
        packet: &mut [u8],
        range: Range<usize>,
        outgoing: &mut Outgoing,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) {
        // The outer header belongs to all packets in the aggregate: DSCP must be equal, ECN is
        // cleared.
        let shared = Labels {
            next_header: AGGFRAG,
            tos: labels.tos & !ECN,
            ..labels
        };
        // The length is taken from the IP header, as the receiver will do: bytes behind the packet
        // are left out.
        let Some(block) = aggfrag::block_of(&packet[range.clone()]) else {
            return tally.drop(DropReason::Malformed, 1);
        };
        let room = outgoing.tunnels[usize::from(labels.tunnel)].payload_bytes_max;
        let fits = HEADER_BYTES + block.len() <= room;
        if let Some(filled) = &mut self.0 {
            let buffer = outgoing.buffer(filled.place.clone());
            let same = (filled.labels.tunnel, filled.labels.tos) == (shared.tunnel, shared.tos);
            // The usual case. A packet that fits into an empty ESP packet is never divided: the
            // receiver needs no reassembly, and one lost datagram costs one packet.
            if same && filled.aggregator.push(buffer, block) {
                tally.joined += 1;
                return;
            }
            // It has to be divided anyway, so its first part uses the rest of this ESP packet.
            if same && !fits && filled.aggregator.left() >= PART_BYTES_MIN {
                tally.joined += 1;
                return self.divide(shared, block, outgoing, cipher, tally);
            }
            self.close(outgoing, cipher, tally);
        }
        self.0 = begin(shared, Aggregator::begin(room), outgoing, cipher, tally);
        match &mut self.0 {
            Some(filled) if fits => {
                // It fits: `fits` compares the same lengths.
                let buffer = outgoing.buffer(filled.place.clone());
                let _whole = filled.aggregator.push(buffer, block);
            }
            Some(_) => self.divide(shared, block, outgoing, cipher, tally),
            // Without an SA the outgoing batch determines the drop reason.
            None => outgoing.seal(labels, Source::Lying(packet, range), cipher, tally),
        }
    }

    /// Adds a packet to the aggregate that is too long for it, and its rest to the next ones.
    fn divide(
        &mut self,
        labels: Labels,
        block: &[u8],
        outgoing: &mut Outgoing,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) {
        let mut rest = block;
        while let Some(filled) = &mut self.0 {
            let buffer = outgoing.buffer(filled.place.clone());
            rest = &rest[filled.aggregator.push_part(buffer, rest)..];
            // A packet that the clear side reads has at most 65,535 bytes.
            // Returns with the last part still open: further packets may join it.
            let Some(left) = u16::try_from(rest.len()).ok().filter(|left| *left > 0) else {
                return;
            };
            self.close(outgoing, cipher, tally);
            let room = outgoing.tunnels[usize::from(labels.tunnel)].payload_bytes_max;
            let aggregator = Aggregator::resume(room, left);
            self.0 = begin(labels, aggregator, outgoing, cipher, tally);
            tally.continued += u64::from(self.0.is_some());
        }
    }

    /// Seals the aggregate.
    #[inline]
    pub(crate) fn close(
        &mut self,
        outgoing: &mut Outgoing,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) {
        if let Some(filled) = self.0.take() {
            let bytes = filled.aggregator.finish(outgoing.buffer(filled.place));
            outgoing.seal(filled.labels, Source::InPlace(bytes), cipher, tally);
        }
    }
}

/// Begins an ESP packet; `None` if its tunnel has no SA.
#[inline]
fn begin(
    labels: Labels,
    aggregator: Aggregator,
    outgoing: &mut Outgoing,
    cipher: &mut impl CipherPort,
    tally: &mut Tally,
) -> Option<Filled> {
    let room = HEADER_BYTES + aggregator.left();
    let place = outgoing.place(labels, room, cipher, tally)?;
    Some(Filled {
        labels,
        place,
        aggregator,
    })
}

/// Delivers and counts the packets of one ESP packet of a tunnel.
#[inline]
pub(crate) fn deliver<'a>(
    reassembler: &mut Reassembler,
    (tunnel, sequence): (u16, u64),
    payload: &'a [u8],
    policy: &Policy,
    coalescer: &mut Coalescer<'a>,
    sink: &mut impl Sink,
    tally: &mut Tally,
) {
    // The sequence number shows whether a packet's parts are consecutive (RFC 9347 §2.2.3).
    let Ok(received) = reassembler.receive(sequence, payload) else {
        return tally.drop(DropReason::BadPayload, 1);
    };
    tally.incomplete += u64::from(received.lost);
    let mut packets = 0;
    if let Some(packet) = received.completed {
        packets += 1;
        match permitted(policy, tunnel, packet) {
            // It is in the reassembler, which is needed again before the batch is done.
            Ok(view) => coalescer.pass(&packet[..view.total_bytes], sink),
            Err(reason) => tally.drop(reason, 1),
        }
    }
    for packet in received.blocks {
        packets += 1;
        match permitted(policy, tunnel, packet) {
            Ok(view) => coalescer.push(packet, view, sink),
            Err(reason) => tally.drop(reason, 1),
        }
    }
    // The blocks in front of the malformed one are valid, and were delivered. Behind it nothing can
    // be parsed.
    if received.malformed.is_some() {
        packets += 1;
        tally.drop(DropReason::BadPayload, 1);
    }
    // Keeps the balance of the cipher side: one ESP packet came in, and `packets` go out or are
    // dropped.
    if packets == 0 {
        tally.absorbed += 1;
    } else {
        tally.split += packets - 1;
    }
}

#[inline]
fn permitted(policy: &Policy, tunnel: u16, packet: &[u8]) -> Result<IpView, DropReason> {
    let view = IpView::parse(packet).ok_or(DropReason::BadPayload)?;
    if policy.permits_inbound(tunnel, packet, &view) {
        Ok(view)
    } else {
        Err(DropReason::Policy)
    }
}
