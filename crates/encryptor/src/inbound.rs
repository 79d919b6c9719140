//! Cipher to clear: receive, open, join, write.
//!
//! 1. Receive trains of datagrams.
//! 2. Find the SA by SPI. An unknown SPI may be a new epoch of the peer: its keys are derived, and the
//!    SA is kept once a packet has proven it.
//! 3. Check for replay, open in place, and only then note the sequence number (RFC 4303 §3.4.3).
//! 4. Check that the inner packet is IP and comes from a network behind the peer (RFC 4301 §5.2).
//! 5. Join packets of one flow to super-packets, and write each with one system call.

use crate::counters::{DropReason, Flow, Tally};
use crate::policy::Networks;
use esp::{InboundSa, OpenError};
use port::{Batch, CipherPort, ClearPort, Train};
use std::io;
use wire::checksum::Sum;
use wire::coalesce::{Coalescer, Sink};
use wire::headers::{IPV4_IN_IP, IPV6_IN_IP, IpView, NO_NEXT_HEADER};
use wire::vnet::VnetHeader;

/// Trains received in one call.
const TRAINS: usize = 32;
/// Unknown SPIs whose keys are derived per batch: an attacker must not make us derive all day.
const CANDIDATES_PER_BATCH: u32 = 2;
/// The one-byte payload of a NAT keepalive (RFC 3948 §2.3).
const KEEPALIVE: &[u8] = &[0xff];

/// Where inbound SAs come from. Called rarely, off the fast path.
pub trait InboundKeys: Send {
    /// A fresh SA for this SPI, when its keys can be known; nothing is proven yet.
    fn candidate(&mut self, spi: u32) -> Option<InboundSa>;

    /// A packet under this SPI was authentic: no candidate of an older epoch must be given any more.
    fn confirmed(&mut self, spi: u32);
}

/// The opening half of a lane.
pub struct Inbound<K> {
    keys: K,
    /// The SA of the newest epoch that a packet has proven. The one before ends with it.
    sa: Option<InboundSa>,
    networks: Networks,
    sum: Sum,
    batch: Batch,
}

impl<K: InboundKeys> Inbound<K> {
    /// An opening half that takes inner packets from `networks` only.
    #[must_use]
    pub fn new(keys: K, networks: Networks, sum: Sum) -> Self {
        Self {
            keys,
            sa: None,
            networks,
            sum,
            batch: Batch::for_trains(TRAINS),
        }
    }

    /// Moves one batch; whether there was any.
    ///
    /// # Errors
    /// When the cipher port is gone.
    pub fn run(
        &mut self,
        clear: &mut impl ClearPort,
        cipher: &mut impl CipherPort,
        tally: &mut Tally,
    ) -> io::Result<bool> {
        match cipher.recv(&mut self.batch) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
        let mut opener = Opener {
            keys: &mut self.keys,
            sa: &mut self.sa,
            networks: &self.networks,
            candidates_left: CANDIDATES_PER_BATCH,
        };
        let mut coalescer = Coalescer::new(clear.joinable(), self.sum);
        let mut writer = Writer {
            clear,
            written: Flow::default(),
            failed: 0,
        };
        let Batch { buffer, trains } = &mut self.batch;
        for datagram in split(buffer, trains) {
            tally.cipher_rx.add(datagram.len());
            match opener.open(datagram) {
                Ok((packet, view)) => coalescer.push(packet, view, &mut writer),
                Err(reason) => tally.drop(reason, 1),
            }
        }
        coalescer.flush(&mut writer);
        tally.clear_tx.packets += writer.written.packets;
        tally.clear_tx.bytes += writer.written.bytes;
        tally.drop(DropReason::WriteFailed, writer.failed);
        Ok(true)
    }
}

/// The datagrams of the trains, each to be opened where it lies.
fn split<'a>(buffer: &'a mut [u8], trains: &'a [Train]) -> impl Iterator<Item = &'a mut [u8]> {
    let ranges = trains.iter().flat_map(Train::ranges);
    let mut rest = buffer;
    let mut at = 0;
    ranges.map(move |range| {
        let (_, behind) = std::mem::take(&mut rest).split_at_mut(range.start - at);
        let (datagram, behind) = behind.split_at_mut(range.len());
        rest = behind;
        at = range.end;
        datagram
    })
}

/// What opening needs of the lane, apart from the buffers.
struct Opener<'s, K> {
    keys: &'s mut K,
    sa: &'s mut Option<InboundSa>,
    networks: &'s Networks,
    candidates_left: u32,
}

impl<K: InboundKeys> Opener<'_, K> {
    /// The inner packet of one datagram, or why there is none.
    #[inline]
    fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Result<(&'a [u8], IpView), DropReason> {
        let Some(spi) = datagram.first_chunk::<4>() else {
            return Err(if datagram == KEEPALIVE {
                DropReason::Keepalive
            } else {
                DropReason::Runt
            });
        };
        let spi = u32::from_be_bytes(*spi);
        let opened = match self.sa {
            Some(sa) if sa.spi() == spi => sa.open(datagram),
            _ => self.open_with_candidate(spi, datagram)?,
        };
        let opened = opened.map_err(reason)?;
        let packet = &datagram[opened.inner];
        let version = match opened.next_header {
            IPV4_IN_IP => 4,
            IPV6_IN_IP => 6,
            NO_NEXT_HEADER => return Err(DropReason::Dummy),
            _ => return Err(DropReason::NotIp),
        };
        let view = IpView::parse(packet).filter(|view| view.version == version);
        let view = view.ok_or(DropReason::NotIp)?;
        if !self.networks.contain_source_of(packet) {
            return Err(DropReason::Policy);
        }
        Ok((packet, view))
    }

    /// Tries a packet of an unknown SPI with keys made for it; the SA is kept when it is authentic.
    #[cold]
    fn open_with_candidate(
        &mut self,
        spi: u32,
        datagram: &mut [u8],
    ) -> Result<Result<esp::Opened, OpenError>, DropReason> {
        if self.candidates_left == 0 {
            return Err(DropReason::NoSa);
        }
        let mut sa = self.keys.candidate(spi).ok_or(DropReason::NoSa)?;
        self.candidates_left -= 1;
        let opened = sa.open(datagram);
        if opened.is_ok() {
            self.keys.confirmed(spi);
            *self.sa = Some(sa);
        }
        Ok(opened)
    }
}

const fn reason(error: OpenError) -> DropReason {
    match error {
        OpenError::Runt => DropReason::Runt,
        OpenError::Replayed => DropReason::Replayed,
        OpenError::TooOld => DropReason::TooOld,
        OpenError::IntegrityFailed => DropReason::IntegrityFailed,
        OpenError::BadTrailer => DropReason::BadTrailer,
        OpenError::EngineFailed => DropReason::EngineFailed,
    }
}

/// Writes joined packets to the clear port, and counts.
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
