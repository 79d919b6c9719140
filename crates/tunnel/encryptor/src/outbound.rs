//! Clear to cipher: reads packets, segments them, selects the tunnel, and adds them to the outgoing
//! batch.

use crate::aggregate::Filling;
use crate::counters::{DropReason, Tally};
use crate::outgoing::{Labels, Outgoing, Source};
use crate::payload::{ETHERNET, Payload};
use crate::policy::Policy;
use crate::renewal::RenewalClient;
use port::{CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, CipherPort, ClearPort};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use wire::checksum::Sum;
use wire::ethernet::EthernetView;
use wire::headers::IpView;
use wire::l2tp::IpSession;
use wire::segment::{Segmenter, complete_checksum};
use wire::vnet::{Gso, VNET_HEADER_BYTES, VnetHeader};
use wire::{icmp, mss};

pub use crate::outgoing::OutboundTunnel;

/// Maximum number of packets or super-packets read before the other direction takes its turn.
const READS_MAX: usize = 64;
/// Maximum number of ICMP answers in one turn: a flood of packets that do not fit must not cause a
/// flood of answers.
const ANSWERS_MAX: u32 = 2;
/// Length of the longest answer in bytes (RFC 1812 §4.3.2.3, RFC 4443 §2.4).
const ANSWER_BYTES: usize = 1280;

/// The sealing half of a lane.
pub struct Outbound {
    buffer: Box<[u8]>,
    taker: Taker,
}

impl Outbound {
    /// A sealing half; `tunnels` are in the order of the policy.
    #[must_use]
    pub fn new(
        tunnels: Vec<OutboundTunnel>,
        payload: Payload,
        policy: Arc<Policy>,
        sum: Sum,
    ) -> Self {
        Self {
            buffer: vec![0; CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES].into_boxed_slice(),
            taker: Taker {
                payload,
                policy,
                sum,
                outgoing: Outgoing::new(tunnels),
                filling: Filling::default(),
                answer: Box::new([0; ANSWER_BYTES]),
                answer_bytes: 0,
            },
        }
    }

    /// The sealing half, with a source of new keys.
    pub(crate) fn with_renewal(mut self, client: RenewalClient) -> Self {
        self.taker.outgoing.renewal = Some(client);
        self
    }

    /// Must be called before (`true`) and after (`false`) the lane waits for packets: nothing is
    /// sealed in between.
    pub(crate) fn waits(&self, waits: bool) {
        match &self.taker.outgoing.renewal {
            Some(client) if waits => client.rest(),
            Some(client) => client.wake(),
            None => {}
        }
    }

    /// Moves pending packets; returns whether there were any.
    ///
    /// # Errors
    /// When the clear port fails.
    pub fn run(
        &mut self,
        clear: &mut impl ClearPort,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) -> io::Result<bool> {
        let mut any = false;
        // The turn ends after `READS_MAX` reads even if more packets wait: with a flood in one
        // direction the other still moves.
        let mut answers_left = ANSWERS_MAX;
        let taker = &mut self.taker;
        taker.outgoing.renew();
        for _ in 0..READS_MAX {
            match clear.recv(&mut self.buffer) {
                Ok((packet, bytes)) => {
                    any = true;
                    // `take` counts each segment itself; a malformed packet counts as one, with its
                    // whole length.
                    if taker.take(packet, bytes, cipher, tally).is_none() {
                        tally.clear_rx.add(bytes.saturating_sub(VNET_HEADER_BYTES));
                        tally.drop(DropReason::Malformed, 1);
                    }
                    if taker.outgoing.is_full() {
                        taker.send(cipher, tally);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if taker.answer_bytes > 0 {
                let answer = &taker.answer[..taker.answer_bytes];
                taker.answer_bytes = 0;
                if answers_left > 0 && clear.send(&VnetHeader::PLAIN, answer, &[]).is_ok() {
                    answers_left -= 1;
                    tally.icmp_sent += 1;
                }
            }
        }
        taker.send(cipher, tally);
        Ok(any)
    }
}

/// Processes packets of the clear port.
struct Taker {
    payload: Payload,
    policy: Arc<Policy>,
    sum: Sum,
    outgoing: Outgoing,
    filling: Filling,
    /// An answer to the sender of the current packet, if that did not fit.
    answer: Box<[u8; ANSWER_BYTES]>,
    answer_bytes: usize,
}

impl Taker {
    /// Takes the packet or super-packet at the start of `packet`, `bytes` long with its virtio
    /// header; returns `None` if it is malformed, and has not been counted.
    #[inline]
    fn take(
        &mut self,
        packet: &mut [u8],
        bytes: usize,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) -> Option<()> {
        let whole = VNET_HEADER_BYTES..bytes;
        let (header, rest) = packet
            .get_mut(..bytes)?
            .split_first_chunk_mut::<VNET_HEADER_BYTES>()?;
        let vnet = VnetHeader::parse(header)?;
        let (view, link_bytes) = match &self.payload {
            Payload::Ip(_) => (Some(IpView::parse(rest)?), 0),
            _ => {
                let view = EthernetView::parse(rest)?;
                (view.ip, view.header_bytes)
            }
        };
        // Once for all segments: they share addresses and ports, so they belong to the same tunnel.
        let labels = self.labels(rest, view.as_ref());
        if vnet.gso == Gso::None {
            // The local stack leaves the transport checksum to the device, which here is the
            // tunnel: behind it nobody would complete it.
            complete_checksum(&vnet, rest, self.sum).ok()?;
            self.put(labels, view.as_ref(), packet, whole, cipher, tally);
            return Some(());
        }
        let mut segmenter = Segmenter::with_link(&vnet, rest, link_bytes).ok()?;
        while let Some(range) = segmenter.next(&mut packet[whole.clone()], self.sum) {
            let range = range.start + whole.start..range.end + whole.start;
            self.put(labels, view.as_ref(), packet, range, cipher, tally);
        }
        Some(())
    }

    /// Sends the batch, with the ESP packet that is being filled behind the others.
    fn send(&mut self, cipher: &mut impl CipherPort, tally: &mut Tally) {
        self.filling.close(&mut self.outgoing, cipher, tally);
        self.outgoing.flush(cipher, tally);
    }

    /// Returns the labels that all segments of a packet share; `None` if no tunnel matches.
    #[inline]
    fn labels(&self, packet: &[u8], view: Option<&IpView>) -> Option<Labels> {
        match (&self.payload, view) {
            (Payload::Ip(rules), Some(view)) => Some(Labels {
                tunnel: self.policy.outbound(packet, view)?,
                next_header: view.next_header(),
                tos: rules.outer_tos(packet),
            }),
            (Payload::Pseudowire { outbound, .. }, _) => Some(Labels {
                tunnel: 0,
                next_header: outbound.next_header(),
                tos: 0,
            }),
            _ => Some(Labels {
                tunnel: 0,
                next_header: ETHERNET,
                tos: 0,
            }),
        }
    }

    /// Counts one wire packet, and adds it to the batch.
    #[inline]
    fn put(
        &mut self,
        labels: Option<Labels>,
        view: Option<&IpView>,
        packet: &mut [u8],
        range: Range<usize>,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) {
        tally.clear_rx.add(range.len());
        let Some(labels) = labels else {
            return tally.drop(DropReason::NoTunnel, 1);
        };
        let tunnel = &self.outgoing.tunnels[usize::from(labels.tunnel)];
        // Per segment, not per super-packet: only the segments travel through the tunnel.
        if range.len() > tunnel.inner_bytes_max {
            let mtu = tunnel.inner_bytes_max;
            self.answer_too_big(&packet[range], view, mtu);
            return tally.drop(DropReason::TooBig, 1);
        }
        match &self.payload {
            Payload::Ip(rules) => {
                if let Some(view) = view {
                    let mss_max = tunnel.mss_max[usize::from(view.version == 6)];
                    // Before the packet is sealed, and after the policy has seen it unchanged.
                    mss::clamp(&mut packet[range.clone()], view, mss_max);
                }
                if rules.aggregate {
                    let outgoing = &mut self.outgoing;
                    return self
                        .filling
                        .put(labels, packet, range, outgoing, cipher, tally);
                }
                let source = Source::Lying(packet, range);
                self.outgoing.seal(labels, source, cipher, tally);
            }
            Payload::Ethernet => {
                let source = Source::Lying(packet, range);
                self.outgoing.seal(labels, source, cipher, tally);
            }
            Payload::Pseudowire { outbound, .. } => {
                let frame = &packet[range];
                let write = |out: &mut [u8]| wrap(outbound, frame, out);
                let source = Source::Written(outbound.header_bytes() + frame.len(), &write);
                self.outgoing.seal(labels, source, cipher, tally);
            }
            Payload::PlainPseudowire { outbound, .. } => {
                self.outgoing.copy(outbound, &packet[range], cipher, tally);
            }
        }
    }

    /// Prepares an answer to the sender of a packet that is longer than `mtu`.
    #[cold]
    fn answer_too_big(&mut self, packet: &[u8], view: Option<&IpView>, mtu: usize) {
        let source = match (&self.payload, view) {
            (Payload::Ip(rules), Some(view)) => rules.answer_source(view.version, packet),
            _ => None,
        };
        if let (Some(source), Ok(mtu)) = (source, u16::try_from(mtu)) {
            let bytes = icmp::too_big(packet, mtu, source, &mut self.answer[..]);
            self.answer_bytes = bytes.unwrap_or(0);
        }
    }
}

/// Writes a frame with the headers of its pseudowire to `out`, which has exactly that length.
#[inline]
fn wrap(session: &IpSession, frame: &[u8], out: &mut [u8]) {
    let (headers, rest) = out.split_at_mut(session.header_bytes());
    // A frame too long for an IP packet exceeds its tunnel's limit, and was dropped before.
    session.write_headers(frame.len(), 0, headers);
    rest.copy_from_slice(frame);
}
