//! Opens datagrams, and finds the inner packets.
//!
//! 1. Each one's tunnel is told by the low bits of its SPI, and its SA by the SPI. An SPI that no SA has may be a new
//!    epoch of the peer: its keys are derived, and the SA is kept once a packet has proven it.
//! 2. Replays are refused; the rest is opened in place, many at once; only then the sequence numbers are noted
//!    (RFC 4303 §3.4.3).
//! 3. What came out must be of the tunnel's kind, and one that its peer may send (RFC 4301 §5.2).

use crate::aggregate;
use crate::counters::{DropReason, Tally};
use crate::datagrams::Datagrams;
use crate::payload::{ETHERNET, IpRules, Payload};
use crate::policy::Policy;
use arrayvec::ArrayVec;
use engine::Packet;
use esp::{InboundSa, OpenError, Opened};
use std::ops::Range;
use std::sync::Arc;
use wire::aggfrag::{AGGFRAG, Reassembler};
use wire::coalesce::{Coalescer, Sink};
use wire::ecn::{self, DscpModel};
use wire::ethernet::EthernetView;
use wire::headers::{IPV4_IN_IP, IPV6_IN_IP, IpView, NO_NEXT_HEADER};
use wire::l2tp::{IpSession, Refused};

/// Datagrams opened together.
const CHUNK_MAX: usize = 128;
/// Forged packets of unknown SPIs for which keys are derived per batch: an attacker must not make us derive all day.
const CANDIDATES_PER_BATCH: u32 = 2;
/// The one-byte payload of a NAT keepalive (RFC 3948 §2.3).
const KEEPALIVE: &[u8] = &[0xff];
/// In place of a tunnel's number: the packet was dropped already.
const GIVEN_UP: u16 = u16::MAX;

/// Where inbound SAs come from.
pub trait InboundKeys: Send {
    /// The tunnel that an SPI may belong to in this lane. Called for each packet: a look into a table.
    fn tunnel(&self, spi: u32) -> Option<u16>;

    /// A fresh SA of the tunnel for this SPI, when its keys can be known; nothing is proven yet. Called rarely.
    fn candidate(&mut self, tunnel: u16, spi: u32) -> Option<InboundSa>;

    /// A packet under this SPI was authentic: no candidate of an older epoch must be given any more.
    fn confirmed(&mut self, tunnel: u16, spi: u32);
}

/// What came out of a datagram, and where it lies in its chunk.
pub(crate) struct Inner {
    pub range: Range<usize>,
    pub kind: InnerKind,
}

pub(crate) enum InnerKind {
    /// An IP packet.
    Ip(IpView),
    /// Many of them, in a packet of this tunnel and sequence number.
    Aggregate(u16, u64),
    /// An Ethernet frame.
    Frame,
}

/// What is known of a datagram of a chunk beside its place.
struct Note {
    tunnel: u16,
    sequence: u64,
    /// Outer DSCP and ECN.
    tos: u8,
}

/// Opens datagrams, apart from the buffers.
pub(crate) struct Opener<K> {
    keys: K,
    /// For each tunnel the SA of the newest epoch that a packet has proven. The one before ends with it.
    sas: Vec<Option<InboundSa>>,
    /// For each tunnel, what its peer's SA has begun to send.
    reassemblers: Vec<Reassembler>,
    payload: Payload,
    policy: Arc<Policy>,
    candidates_left: u32,
    /// The datagrams of the chunk in hand, in their order.
    packets: ArrayVec<Packet, CHUNK_MAX>,
    notes: ArrayVec<Note, CHUNK_MAX>,
    authentic: [bool; CHUNK_MAX],
    /// What came out of them.
    inner: ArrayVec<Inner, CHUNK_MAX>,
}

/// Why a datagram is not opened with the SA of its tunnel.
enum Unexpected {
    /// It is none of the SA's that are known; it may be of a new epoch of this tunnel's peer.
    NewEpoch(u16),
    Drop(DropReason),
}

impl<K: InboundKeys> Opener<K> {
    pub(crate) fn new(keys: K, tunnels: usize, payload: Payload, policy: Arc<Policy>) -> Self {
        Self {
            keys,
            sas: (0..tunnels).map(|_| None).collect(),
            reassemblers: (0..tunnels).map(|_| Reassembler::new()).collect(),
            payload,
            policy,
            candidates_left: 0,
            packets: ArrayVec::new(),
            notes: ArrayVec::new(),
            authentic: [false; CHUNK_MAX],
            inner: ArrayVec::new(),
        }
    }

    pub(crate) const fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Hands on what came out of the last chunk.
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
                InnerKind::Aggregate(tunnel, sequence) => {
                    let reassembler = &mut self.reassemblers[usize::from(tunnel)];
                    let label = (tunnel, sequence);
                    let policy = &self.policy;
                    aggregate::deliver(reassembler, label, bytes, policy, coalescer, sink, tally);
                }
            }
        }
    }

    /// To be called before the first chunk of each batch.
    pub(crate) const fn begin_batch(&mut self) {
        self.candidates_left = CANDIDATES_PER_BATCH;
    }

    /// Opens the next datagrams together, and leaves in `inner` what came out; the stretch of the buffer that they
    /// lie in. `None` when there are no more.
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
                Ok((tunnel, sequence)) => {
                    self.packets.push(Packet {
                        at: range.start,
                        bytes: range.len(),
                        sequence_high: (sequence >> 32) as u32,
                    });
                    self.notes.push(Note {
                        tunnel,
                        sequence,
                        tos,
                    });
                }
                // What is pending belongs to SAs that this one may end.
                Err(Unexpected::NewEpoch(_)) if !self.packets.is_empty() => break,
                Err(Unexpected::NewEpoch(tunnel)) => {
                    match self.prove_epoch(tunnel, datagram) {
                        // The same datagram again, with its SA in place.
                        Ok(()) => continue,
                        Err(reason) => tally.drop(reason, 1),
                    }
                }
                Err(Unexpected::Drop(reason)) => tally.drop(reason, 1),
            }
            tally.cipher_rx.add(range.len());
            end = Some(range.end);
            datagrams.skip();
        }
        let chunk = datagrams.take(end?);
        self.open_packets(chunk, tally);
        self.accept_packets(chunk, tally);
        Some(chunk)
    }

    /// The tunnel of a datagram and the sequence number that it must have.
    #[inline]
    fn expect(&self, datagram: &[u8]) -> Result<(u16, u64), Unexpected> {
        let Some(spi) = datagram.first_chunk::<4>() else {
            return Err(Unexpected::Drop(if datagram == KEEPALIVE {
                DropReason::Keepalive
            } else {
                DropReason::Runt
            }));
        };
        let spi = u32::from_be_bytes(*spi);
        let tunnel = self.keys.tunnel(spi);
        let tunnel = tunnel.ok_or(Unexpected::Drop(DropReason::NoSa))?;
        match &self.sas[usize::from(tunnel)] {
            Some(sa) if sa.spi() == spi => match sa.expect(datagram) {
                Ok(sequence) => Ok((tunnel, sequence)),
                Err(error) => Err(Unexpected::Drop(reason(error))),
            },
            // In one slot an earlier epoch has the lower SPI.
            Some(sa) if spi < sa.spi() => Err(Unexpected::Drop(DropReason::NoSa)),
            _ if self.candidates_left == 0 => Err(Unexpected::Drop(DropReason::NoSa)),
            _ => Err(Unexpected::NewEpoch(tunnel)),
        }
    }

    /// Tries a datagram of an unknown SPI, on a copy, with an SA made for it. When it is authentic, that is the
    /// tunnel's SA from now on, which has accepted nothing yet.
    #[cold]
    fn prove_epoch(&mut self, tunnel: u16, datagram: &[u8]) -> Result<(), DropReason> {
        let spi = datagram.first_chunk().ok_or(DropReason::Runt)?;
        let spi = u32::from_be_bytes(*spi);
        self.candidates_left -= 1;
        let candidate = self.keys.candidate(tunnel, spi);
        let mut candidate = candidate.ok_or(DropReason::NoSa)?;
        candidate
            .authenticate(&mut datagram.to_vec())
            .map_err(reason)?;
        // Only what was not authentic counts: a thousand tunnels may begin in one batch.
        self.candidates_left += 1;
        self.keys.confirmed(tunnel, spi);
        self.sas[usize::from(tunnel)] = Some(candidate);
        self.reassemblers[usize::from(tunnel)] = Reassembler::new();
        Ok(())
    }

    /// Opens the packets of the chunk, each SA's together as far as they follow one another.
    #[inline]
    fn open_packets(&mut self, chunk: &mut [u8], tally: &mut Tally) {
        let mut at = 0;
        for run in self
            .notes
            .chunk_by_mut(|one, other| one.tunnel == other.tunnel)
        {
            let here = at..at + run.len();
            at = here.end;
            let Some(sa) = &mut self.sas[usize::from(run[0].tunnel)] else {
                unreachable!("only packets that an SA expects are opened");
            };
            let (packets, authentic) = (&self.packets[here.clone()], &mut self.authentic[here]);
            if sa.open_staged(chunk, packets, authentic).is_err() {
                tally.drop(DropReason::OpenFailed, run.len() as u64);
                run.iter_mut().for_each(|note| note.tunnel = GIVEN_UP);
            }
        }
    }

    /// Notes sequence numbers, and finds the inner packets.
    #[inline]
    fn accept_packets(&mut self, chunk: &mut [u8], tally: &mut Tally) {
        self.inner.clear();
        let opened = self.packets.iter().zip(&self.notes).zip(self.authentic);
        for ((packet, note), authentic) in opened {
            if note.tunnel == GIVEN_UP {
                continue;
            }
            let Some(sa) = &mut self.sas[usize::from(note.tunnel)] else {
                unreachable!("only packets that an SA expects are opened");
            };
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
        self.packets.clear();
        self.notes.clear();
    }
}

/// What came out of an opened packet, if it is of the tunnel's kind.
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
        Payload::Ip(_) if next_header == AGGFRAG => Ok(Inner {
            range: inner,
            kind: InnerKind::Aggregate(note.tunnel, note.sequence),
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

/// An IP packet that its peer may send, after its header has taken over what the outer one says.
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
    let view = IpView::parse(packet).filter(|view| view.version == version);
    let view = view.ok_or(DropReason::BadPayload)?;
    if !policy.permits_inbound(note.tunnel, packet, &view) {
        return Err(DropReason::Policy);
    }
    if rules.ecn && note.tos & 3 != 0 {
        ecn::decapsulate(packet, note.tos, DscpModel::Pipe).map_err(|_| DropReason::Congestion)?;
    }
    Ok(view)
}

/// Where the frame lies in a pseudowire's packet.
#[inline]
fn frame_of(session: &IpSession, packet: &[u8]) -> Result<Range<usize>, DropReason> {
    match session.parse(packet) {
        Ok(Some(frame)) => {
            // The frame ends with the IP packet; padding for traffic-flow confidentiality may follow that.
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
            Refused::Runt => Self::Runt,
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
