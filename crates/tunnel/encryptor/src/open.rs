//! Opens datagrams, and extracts the inner packets.
//!
//! 1. The SPI's low bits select the tunnel, and the whole SPI the SA. An SPI without an SA may be a
//!    new epoch of the peer: its keys are derived, and the SA is kept once a packet has proven it.
//!    With negotiated keys, SAs of earlier epochs stay valid until both sides have switched
//!    (`sas`).
//! 2. Replays are refused; the rest is opened in place, in batches; only then are the sequence
//!    numbers marked (RFC 4303 §3.4.3).
//! 3. The inner packet must be of the tunnel's kind, and one that its peer may send (RFC 4301
//!    §5.2).
//!
//! Rows of packets that fail are reported: the peer may have other keys (`desync`).

use crate::aggregate;
use crate::counters::{DropReason, Tally};
use crate::datagrams::Datagrams;
use crate::desync::Watch;
use crate::inbound_keys::{InboundKeys, Notice};
use crate::payload::{ETHERNET, IpRules, Payload};
use crate::policy::Policy;
use crate::sas::{Place, Sas};
use arrayvec::ArrayVec;
use engine::Packet;
use esp::{OpenError, Opened};
use std::ops::Range;
use std::sync::Arc;
use wire::aggfrag::AGGFRAG;
use wire::coalesce::{Coalescer, Sink};
use wire::ecn::{self, DscpModel};
use wire::ethernet::EthernetView;
use wire::headers::{IPV4_IN_IP, IPV6_IN_IP, IpView, NO_NEXT_HEADER};
use wire::l2tp::{IpSession, Refused};

/// Maximum number of datagrams that are opened together.
const CHUNK_MAX: usize = 128;
/// Budget for packets of unknown SPIs in a batch: it bounds the key derivations that an attacker
/// can cause.
const BUDGET_PER_BATCH: u32 = 16;
/// Cost of keys derived for a packet that is not authentic.
const FORGED_COSTS: u32 = 8;
/// Cost of a packet of an epoch without keys.
const UNKNOWN_COSTS: u32 = 1;
/// Messages of IKE begin with this instead of an SPI (RFC 3948 §2.2).
const MARKER: u32 = 0;
/// The one-byte payload of a NAT keepalive (RFC 3948 §2.3).
const KEEPALIVE: &[u8] = &[0xff];

/// The contents of a datagram, and their range in the chunk.
pub(crate) struct Inner {
    pub range: Range<usize>,
    pub kind: InnerKind,
}

pub(crate) enum InnerKind {
    /// An IP packet.
    Ip(IpView),
    /// An aggregate of IP packets, from an ESP packet with this SA and sequence number.
    Aggregate(Place, u64),
    /// An Ethernet frame.
    Frame,
}

/// Metadata of a datagram in a chunk.
struct Note {
    /// Its SA; [`Place::NONE`] if it has been dropped.
    place: Place,
    sequence: u64,
    /// Outer DSCP and ECN.
    tos: u8,
}

/// Opens datagrams; the buffers are kept elsewhere.
pub(crate) struct Opener<K> {
    keys: K,
    sas: Sas,
    watch: Watch,
    payload: Payload,
    policy: Arc<Policy>,
    budget: u32,
    /// Whether the hard lifetime of each tunnel's keys is over, and no newer SA was proven since.
    expired: Vec<bool>,
    /// The datagrams of the current chunk, in their order.
    packets: ArrayVec<Packet, CHUNK_MAX>,
    notes: ArrayVec<Note, CHUNK_MAX>,
    authentic: [bool; CHUNK_MAX],
    /// Their contents.
    inner: ArrayVec<Inner, CHUNK_MAX>,
}

/// Why a datagram is not opened with an SA of its tunnel.
enum Unexpected {
    /// It is a message of IKE.
    Marked,
    /// No SA has the SPI; it may be a new epoch of this tunnel's peer.
    NewEpoch(u16),
    /// It cannot be opened, but should be if it is from this tunnel's peer.
    Failed(u16, DropReason),
    Drop(DropReason),
}

impl<K: InboundKeys> Opener<K> {
    pub(crate) fn new(keys: K, tunnels: usize, payload: Payload, policy: Arc<Policy>) -> Self {
        Self {
            keys,
            sas: Sas::new(tunnels),
            watch: Watch::new(tunnels),
            payload,
            policy,
            budget: 0,
            expired: vec![false; tunnels],
            packets: ArrayVec::new(),
            notes: ArrayVec::new(),
            authentic: [false; CHUNK_MAX],
            inner: ArrayVec::new(),
        }
    }

    pub(crate) const fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Delivers the contents of the last chunk.
    #[inline]
    pub(crate) fn deliver<'a>(
        &mut self,
        chunk: &'a [u8],
        coalescer: &mut Coalescer<'a>,
        sink: &mut impl Sink,
        tally: &mut Tally,
    ) {
        for Inner { range, kind } in self.inner.drain(..) {
            let bytes = &chunk[range];
            match kind {
                InnerKind::Ip(view) => coalescer.push(bytes, view, sink),
                InnerKind::Frame => push_frame(bytes, coalescer, sink, tally),
                InnerKind::Aggregate(place, sequence) => {
                    let reassembler = self.sas.reassembler(place);
                    let label = (place.tunnel, sequence);
                    let policy = &self.policy;
                    aggregate::deliver(reassembler, label, bytes, policy, coalescer, sink, tally);
                }
            }
        }
    }

    /// Must be called before the first chunk of each batch.
    #[inline]
    pub(crate) fn begin_batch(&mut self) {
        self.budget = BUDGET_PER_BATCH;
        for notice in self.keys.notices() {
            // The ring of negotiated keys decides which SAs end: a notice names only the tunnel,
            // and several changes may have happened before this batch.
            let keys = &mut self.keys;
            match notice {
                Notice::Retired(tunnel) => {
                    self.sas.retain(tunnel, |spi| keys.goes_on(tunnel, spi));
                }
                Notice::Expired(tunnel) => {
                    self.sas.retain(tunnel, |spi| keys.goes_on(tunnel, spi));
                    self.expired[usize::from(tunnel)] = true;
                }
                // A fault changes the keys under an unchanged SPI, so the ring would keep these
                // SAs.
                Notice::Spoiled(tunnel) => self.sas.retain(tunnel, |_| false),
            }
        }
    }

    /// Opens the next datagrams together, leaves their contents in `inner`, and returns their part
    /// of the buffer. `None` if there are no more.
    #[inline]
    pub(crate) fn open_chunk<'a>(
        &mut self,
        datagrams: &mut Datagrams<'a, '_>,
        tally: &mut Tally,
    ) -> Option<&'a [u8]> {
        let mut end = None;
        while let Some((range, tos)) = datagrams.peek()
            && !self.packets.is_full()
        {
            let datagram = datagrams.bytes(range.clone());
            match self.expect(datagram) {
                Ok((place, sequence)) => {
                    self.packets.push(Packet {
                        at: range.start,
                        bytes: range.len(),
                        sequence_high: (sequence >> 32) as u32,
                    });
                    self.notes.push(Note {
                        place,
                        sequence,
                        tos,
                    });
                }
                // The pending packets belong to SAs that this one may end.
                Err(Unexpected::NewEpoch(_)) if !self.packets.is_empty() => break,
                Err(Unexpected::NewEpoch(tunnel)) => {
                    match self.prove_epoch(tunnel, datagram) {
                        // Repeats the same datagram, with its SA in place.
                        Ok(()) => continue,
                        Err(reason) => {
                            tally.drop(reason, 1);
                            // Expired keys are no sign that the peer has others.
                            if reason != DropReason::SaExpired {
                                self.failed(tunnel);
                            }
                        }
                    }
                }
                Err(Unexpected::Failed(tunnel, reason)) => {
                    tally.drop(reason, 1);
                    self.failed(tunnel);
                }
                Err(Unexpected::Marked) => {
                    let is_taken = self.keys.marked(datagram);
                    let reason = if is_taken {
                        DropReason::IkeMessage
                    } else {
                        DropReason::NoSa
                    };
                    tally.drop(reason, 1);
                }
                Err(Unexpected::Drop(reason)) => tally.drop(reason, 1),
            }
            // Counted here for accepted and dropped datagrams alike: each has one outcome in the
            // tally.
            tally.cipher_rx.add(range.len());
            end = Some(range.end);
            datagrams.skip();
        }
        // Dropped datagrams at the end are part of the chunk, so that the next one begins behind
        // them.
        let chunk = datagrams.take(end?);
        self.open_packets(chunk, tally);
        self.accept_packets(chunk, tally);
        Some(chunk)
    }

    /// Returns the SA of a datagram and the sequence number that it must have.
    #[inline]
    fn expect(&self, datagram: &[u8]) -> Result<(Place, u64), Unexpected> {
        let Some(spi) = datagram.first_chunk::<4>() else {
            return Err(Unexpected::Drop(if datagram == KEEPALIVE {
                DropReason::Keepalive
            } else {
                DropReason::Runt
            }));
        };
        let spi = u32::from_be_bytes(*spi);
        let Some(tunnel) = self.keys.tunnel(spi) else {
            return Err(if spi == MARKER {
                Unexpected::Marked
            } else {
                Unexpected::Drop(DropReason::NoSa)
            });
        };
        let Some((place, sa)) = self.sas.find(tunnel, spi) else {
            return Err(self.unexpected(tunnel, spi));
        };
        // Before decryption, and without a change of the window: a forged sequence number must
        // neither cost a decryption nor move the window (RFC 4303 §3.4.3).
        match sa.expect(datagram) {
            Ok(sequence) => Ok((place, sequence)),
            Err(OpenError::IntegrityFailed) => {
                Err(Unexpected::Failed(tunnel, DropReason::IntegrityFailed))
            }
            Err(error) => Err(Unexpected::Drop(reason(error))),
        }
    }

    /// Decides about a packet with an SPI that has no SA.
    fn unexpected(&self, tunnel: u16, spi: u32) -> Unexpected {
        if spi == MARKER {
            return Unexpected::Marked;
        }
        // In one slot an earlier epoch has the lower SPI.
        let is_over = self.sas.newest(tunnel).is_some_and(|newest| spi < newest);
        if (is_over && !self.keys.keeps_older(tunnel)) || self.budget == 0 {
            return match self.without_sa(tunnel) {
                DropReason::SaExpired => Unexpected::Drop(DropReason::SaExpired),
                reason => Unexpected::Failed(tunnel, reason),
            };
        }
        Unexpected::NewEpoch(tunnel)
    }

    /// The drop reason for a packet with an SPI that has no keys.
    fn without_sa(&self, tunnel: u16) -> DropReason {
        if self.expired[usize::from(tunnel)] {
            DropReason::SaExpired
        } else {
            DropReason::NoSa
        }
    }

    /// Counts a packet of a tunnel that could not be opened, and reports a long row of them.
    #[cold]
    fn failed(&mut self, tunnel: u16) {
        if let Some(news) = self.watch.failed(tunnel) {
            self.keys.desync(tunnel, news);
        }
    }

    /// Tries a datagram of an unknown SPI, on a copy, with an SA derived for it. If it is
    /// authentic, that becomes the tunnel's SA, which has accepted nothing yet.
    #[cold]
    fn prove_epoch(&mut self, tunnel: u16, datagram: &[u8]) -> Result<(), DropReason> {
        let spi = datagram.first_chunk().ok_or(DropReason::Runt)?;
        let spi = u32::from_be_bytes(*spi);
        let Some(mut candidate) = self.keys.candidate(tunnel, spi) else {
            self.budget = self.budget.saturating_sub(UNKNOWN_COSTS);
            return Err(self.without_sa(tunnel));
        };
        // Only forgeries cost: a thousand tunnels may start an epoch in one batch.
        if let Err(error) = candidate.authenticate(&mut datagram.to_vec()) {
            self.budget = self.budget.saturating_sub(FORGED_COSTS);
            return Err(reason(error));
        }
        self.keys.confirmed(tunnel, spi);
        let keeps_older = self.keys.keeps_older(tunnel);
        self.sas.add(tunnel, candidate, keeps_older);
        self.expired[usize::from(tunnel)] = false;
        Ok(())
    }

    /// Opens the packets of the chunk; consecutive packets of one SA are opened together.
    #[inline]
    fn open_packets(&mut self, chunk: &mut [u8], tally: &mut Tally) {
        let mut at = 0;
        for run in self
            .notes
            .chunk_by_mut(|one, other| one.place == other.place)
        {
            let here = at..at + run.len();
            at = here.end;
            let sa = self.sas.at(run[0].place);
            let (packets, authentic) = (&self.packets[here.clone()], &mut self.authentic[here]);
            // A failed engine leaves no verdict on any packet of the run, so none of them counts as
            // forged.
            if sa.open_staged(chunk, packets, authentic).is_err() {
                tally.drop(DropReason::OpenFailed, run.len() as u64);
                run.iter_mut().for_each(|note| note.place = Place::NONE);
            }
        }
    }

    /// Marks sequence numbers, and extracts the inner packets.
    #[inline]
    fn accept_packets(&mut self, chunk: &mut [u8], tally: &mut Tally) {
        self.inner.clear();
        let opened = self.packets.iter().zip(&self.notes).zip(self.authentic);
        for ((packet, note), authentic) in opened {
            if note.place == Place::NONE {
                continue;
            }
            // The window is checked a second time: two datagrams with one sequence number may be in
            // the chunk, and only the first is marked.
            let sa = self.sas.at(note.place);
            let bytes = &mut chunk[packet.at..packet.at + packet.bytes];
            let opened = match sa.accept(bytes, note.sequence, authentic) {
                Ok(opened) => find_inner(&self.payload, &self.policy, note, bytes, opened),
                Err(error) => Err(reason(error)),
            };
            match opened {
                Ok(Inner { range, kind }) => self.inner.push(Inner {
                    range: packet.at + range.start..packet.at + range.end,
                    kind,
                }),
                Err(reason) => tally.drop(reason, 1),
            }
        }
        self.note_failures();
        self.packets.clear();
        self.notes.clear();
    }

    /// Updates the rows of failed packets of the chunk's tunnels: first with the failures, then
    /// with the authentic packets, regardless of their order. While nothing fails this costs one
    /// test of each of the engine's results.
    #[inline]
    fn note_failures(&mut self) {
        let authentic = &self.authentic[..self.notes.len()];
        if authentic.iter().all(|authentic| *authentic) && !self.watch.any() {
            return;
        }
        self.note_failures_of_each();
    }

    #[cold]
    fn note_failures_of_each(&mut self) {
        // The engine reports a chunk's results together, so an authentic packet may be the older or
        // the newer one. Failures first: one authentic packet in the chunk then ends the row.
        for outcome in [false, true] {
            for (note, authentic) in self.notes.iter().zip(self.authentic) {
                let tunnel = note.place.tunnel;
                let news = match outcome {
                    _ if note.place == Place::NONE || authentic != outcome => None,
                    false => self.watch.failed(tunnel),
                    true => self.watch.authentic(tunnel),
                };
                if let Some(news) = news {
                    self.keys.desync(tunnel, news);
                }
            }
        }
    }
}

/// Returns the contents of an opened packet, if they are of the tunnel's kind.
#[inline]
fn find_inner(
    payload: &Payload,
    policy: &Policy,
    note: &Note,
    bytes: &mut [u8],
    Opened { inner, next_header }: Opened,
) -> Result<Inner, DropReason> {
    if next_header == NO_NEXT_HEADER {
        return Err(DropReason::Dummy);
    }
    match payload {
        // Also without `aggregate` on this side, which only selects the format of sent packets.
        Payload::Ip(_) if next_header == AGGFRAG => Ok(Inner {
            range: inner,
            kind: InnerKind::Aggregate(note.place, note.sequence),
        }),
        Payload::Ip(rules) => {
            let packet = &mut bytes[inner.clone()];
            let view = ip_packet(rules, policy, note, packet, next_header)?;
            Ok(Inner {
                range: inner,
                kind: InnerKind::Ip(view),
            })
        }
        Payload::Ethernet if next_header == ETHERNET => Ok(Inner {
            range: inner,
            kind: InnerKind::Frame,
        }),
        Payload::Pseudowire { inbound, .. } if next_header == inbound.next_header() => {
            let frame = frame_of(inbound, &bytes[inner.clone()])?;
            Ok(Inner {
                range: inner.start + frame.start..inner.start + frame.end,
                kind: InnerKind::Frame,
            })
        }
        _ => Err(DropReason::BadPayload),
    }
}

/// Parses an IP packet that the peer may send, and copies ECN from the outer header.
#[inline]
fn ip_packet(
    rules: &IpRules,
    policy: &Policy,
    note: &Note,
    packet: &mut [u8],
    next_header: u8,
) -> Result<IpView, DropReason> {
    let version = match next_header {
        IPV4_IN_IP => 4,
        IPV6_IN_IP => 6,
        _ => return Err(DropReason::BadPayload),
    };
    // The next header of the ESP trailer and the version field must agree, otherwise the selectors
    // would compare the wrong bytes.
    let view = IpView::parse(packet).filter(|view| view.version == version);
    let view = view.ok_or(DropReason::BadPayload)?;
    if !policy.permits_inbound(note.place.tunnel, packet, &view) {
        return Err(DropReason::Policy);
    }
    // Not-ECT in the outer header never changes the inner one (RFC 6040 §4.2), so most packets skip
    // this.
    if rules.ecn && note.tos & 3 != 0 {
        ecn::decapsulate(packet, note.tos, DscpModel::Pipe).map_err(|_| DropReason::Congestion)?;
    }
    Ok(view)
}

/// Returns the range of the frame in a pseudowire's packet.
#[inline]
fn frame_of(session: &IpSession, packet: &[u8]) -> Result<Range<usize>, DropReason> {
    match session.parse(packet) {
        Ok(Some(frame)) => {
            // The frame ends with the IP packet; padding for traffic-flow confidentiality may
            // follow that.
            let end = IpView::parse(packet).map_or(packet.len(), |view| view.total_bytes);
            Ok(end - frame.len()..end)
        }
        Ok(None) => Err(DropReason::BadPayload),
        Err(refused) => Err(DropReason::of_refused(refused)),
    }
}

#[inline]
pub(crate) fn push_frame<'a>(
    frame: &'a [u8],
    coalescer: &mut Coalescer<'a>,
    sink: &mut impl Sink,
    tally: &mut Tally,
) {
    match EthernetView::parse(frame) {
        Some(view) => coalescer.push_frame(frame, &view, sink),
        None => tally.drop(DropReason::BadPayload, 1),
    }
}

impl DropReason {
    /// Why a pseudowire's message is dropped.
    pub(crate) const fn of_refused(refused: Refused) -> Self {
        match refused {
            Refused::Runt => Self::L2tpRunt,
            Refused::Control | Refused::OtherVersion => Self::BadPayload,
            Refused::OtherSession | Refused::WrongCookie => Self::BadCookie,
        }
    }
}

const fn reason(error: OpenError) -> DropReason {
    match error {
        OpenError::Runt => DropReason::Runt,
        OpenError::Replayed => DropReason::Replayed,
        OpenError::TooOld => DropReason::TooOld,
        OpenError::IntegrityFailed => DropReason::IntegrityFailed,
        OpenError::BadTrailer => DropReason::BadTrailer,
        OpenError::EngineFailed => DropReason::OpenFailed,
    }
}
