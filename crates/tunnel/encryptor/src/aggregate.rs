//! Packets that share ESP packets (AGGFRAG, RFC 9347), on the way out and in.
//!
//! A packet waits for others only while its own batch is read: the aggregate is sealed when the
//! clear port is empty, when the next packet does not fit or belongs to another tunnel, or after
//! the reads of one turn. On a quiet link a packet does not wait at all.

use crate::counters::{DropReason, Tally};
use crate::outgoing::{Labels, Outgoing, Source};
use crate::policy::Policy;
use port::CipherPort;
use std::ops::Range;
use wire::aggfrag::{AGGFRAG, Aggregator, HEADER_BYTES, Reassembler};
use wire::coalesce::{Coalescer, Sink};
use wire::headers::IpView;

/// The ECN bits: no value is right for many packets in one (RFC 9347 §2.4.2 leaves it to the
/// sender).
const ECN: u8 = 3;

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
        let shared = Labels {
            next_header: AGGFRAG,
            tos: labels.tos & !ECN,
            ..labels
        };
        let inner = &packet[range.clone()];
        if let Some(filled) = &mut self.0 {
            let buffer = outgoing.buffer(filled.place.clone());
            let same = (filled.labels.tunnel, filled.labels.tos) == (shared.tunnel, shared.tos);
            if same && filled.aggregator.push(buffer, inner) {
                tally.joined += 1;
                return;
            }
            self.close(outgoing, cipher, tally);
        }
        if let Some(filled) = begin(shared, inner, outgoing, cipher, tally) {
            self.0 = Some(filled);
        } else {
            outgoing.seal(labels, Source::Lying(packet, range), cipher, tally);
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

/// Begins an ESP packet with `inner`; `None` if there is no room for it and the header.
#[inline]
fn begin(
    labels: Labels,
    inner: &[u8],
    outgoing: &mut Outgoing,
    cipher: &mut impl CipherPort,
    tally: &mut Tally,
) -> Option<Filled> {
    let room = outgoing.tunnels[usize::from(labels.tunnel)].inner_bytes_max;
    if HEADER_BYTES + inner.len() > room {
        return None;
    }
    let place = outgoing.place(labels, room, cipher, tally)?;
    let mut aggregator = Aggregator::begin(room);
    let taken = aggregator.push(outgoing.buffer(place.clone()), inner);
    taken.then_some(Filled {
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
    if received.malformed.is_some() {
        packets += 1;
        tally.drop(DropReason::BadPayload, 1);
    }
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
