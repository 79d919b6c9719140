//! Opening as the DUT's peer would: ESP packets by lane and SPI.

use crate::keys::Keys;
use crate::spec::Esp;
use esp::{InboundSa, OpenError, Opened};
use keying::{epoch_of, lane_of};
use std::collections::BTreeMap;
use wire::headers::{IPV4_IN_IP, IPV6_IN_IP, NO_NEXT_HEADER};

/// Maximum number of forged packets with unknown SPIs for which keys are derived per batch: a flood
/// of them must not delay the rest.
const FORGERIES_PER_BATCH: u32 = 2;
/// The one-byte payload of a NAT keepalive (RFC 3948 §2.3).
const KEEPALIVE: &[u8] = &[0xff];

/// Why there is no inner packet. The names are those of the encryptor's drop reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Shorter than the shortest ESP packet, or cut off.
    Runt,
    /// A NAT keepalive.
    Keepalive,
    /// The SPI is none of the tunnels', or not of those between these addresses and ports.
    NoSa,
    /// Received before.
    Replayed,
    /// Older than the replay window.
    TooOld,
    /// Not authentic under the SA that its SPI identifies.
    IntegrityFailed,
    /// Authentic, with malformed padding.
    BadTrailer,
    /// A dummy packet (RFC 4303 §2.6).
    Dummy,
    /// Authentic, with a payload that the tunnel does not carry.
    BadPayload,
    /// The engine failed.
    OpenFailed,
}

impl Refusal {
    /// Its name, for example `integrity_failed`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    const ALL: [(Self, &'static str); 10] = [
        (Self::Runt, "runt"),
        (Self::Keepalive, "keepalive"),
        (Self::NoSa, "no_sa"),
        (Self::Replayed, "replayed"),
        (Self::TooOld, "too_old"),
        (Self::IntegrityFailed, "integrity_failed"),
        (Self::BadTrailer, "bad_trailer"),
        (Self::Dummy, "dummy"),
        (Self::BadPayload, "bad_payload"),
        (Self::OpenFailed, "open_failed"),
    ];
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Runt => Self::Runt,
            OpenError::Replayed => Self::Replayed,
            OpenError::TooOld => Self::TooOld,
            OpenError::IntegrityFailed => Self::IntegrityFailed,
            OpenError::BadTrailer => Self::BadTrailer,
            OpenError::EngineFailed => Self::OpenFailed,
        }
    }
}

/// Number of refused packets by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Refused([u64; Refusal::ALL.len()]);

impl Refused {
    pub(crate) const fn add(&mut self, refusal: Refusal) {
        self.0[refusal as usize] += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }

    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons that occurred, in the form of
    /// [`Received::refused`](crate::report::Received::refused).
    pub(crate) fn by_name(&self) -> BTreeMap<String, u64> {
        let named = Refusal::ALL.map(|(refusal, name)| (name.to_owned(), self.0[refusal as usize]));
        named.into_iter().filter(|(_, count)| *count > 0).collect()
    }
}

/// The inbound SAs of all tunnels' lanes, created when packets need them.
pub(crate) struct Opener<'k> {
    keys: &'k Keys,
    port: u16,
    lanes: u16,
    /// By slot, the SA of the newest epoch that a packet has proven.
    sas: Vec<Option<InboundSa>>,
    forgeries_left: u32,
    /// The highest epoch that a packet has proven; 0: none.
    pub(crate) proven_epoch: u32,
}

impl<'k> Opener<'k> {
    pub(crate) fn new(esp: &Esp, keys: &'k Keys) -> Self {
        Self {
            keys,
            port: esp.port,
            lanes: esp.lanes,
            sas: (0..esp.lanes * esp.tunnels).map(|_| None).collect(),
            forgeries_left: FORGERIES_PER_BATCH,
            proven_epoch: 0,
        }
    }

    /// Must be called before each batch.
    pub(crate) const fn begin_batch(&mut self) {
        self.forgeries_left = FORGERIES_PER_BATCH;
    }

    /// The lane of a UDP destination port; `None` when it is not ESP's.
    #[inline]
    pub(crate) fn lane(&self, port: u16) -> Option<u16> {
        let lane = port.checked_sub(self.port)?;
        (lane < self.lanes).then_some(lane)
    }

    /// Opens an ESP packet in place and returns the inner IP packet.
    #[inline]
    pub(crate) fn open<'p>(
        &mut self,
        lane: u16,
        packet: &'p mut [u8],
    ) -> Result<&'p mut [u8], Refusal> {
        let spi = spi(packet)?;
        let slot = lane_of(spi);
        let opened = match self.sas.get_mut(usize::from(slot)) {
            // Each lane of a tunnel has its own UDP port.
            Some(_) if slot % self.lanes != lane => return Err(Refusal::NoSa),
            Some(Some(sa)) if sa.spi() == spi => sa.open(packet)?,
            Some(_) => self.open_with_candidate(slot, spi, packet)?,
            None => return Err(Refusal::NoSa),
        };
        let inner = &mut packet[opened.inner];
        expect_ip(opened.next_header, inner)?;
        Ok(inner)
    }

    /// Tries a packet of an unknown SPI with keys derived for it; the SA is kept if the packet is
    /// authentic. Epochs older than the newest one proven are rejected: a replayed packet of theirs
    /// would meet an empty window.
    #[cold]
    fn open_with_candidate(
        &mut self,
        slot: u16,
        spi: u32,
        packet: &mut [u8],
    ) -> Result<Opened, Refusal> {
        if self.forgeries_left == 0 || epoch_of(spi) < self.proven_epoch {
            return Err(Refusal::NoSa);
        }
        let mut sa = self.keys.candidate(spi, slot).ok_or(Refusal::NoSa)?;
        self.forgeries_left -= 1;
        let opened = sa.open(packet)?;
        self.forgeries_left += 1;
        self.proven_epoch = self.proven_epoch.max(epoch_of(spi));
        self.sas[usize::from(slot)] = Some(sa);
        Ok(opened)
    }
}

/// The SPI of an ESP packet.
#[inline]
pub(crate) fn spi(packet: &[u8]) -> Result<u32, Refusal> {
    match packet.first_chunk::<4>() {
        Some(spi) => Ok(u32::from_be_bytes(*spi)),
        None if packet == KEEPALIVE => Err(Refusal::Keepalive),
        None => Err(Refusal::Runt),
    }
}

/// Expects a payload to begin an IP packet of the version in ESP's next header.
#[inline]
pub(crate) fn expect_ip(next_header: u8, inner: &[u8]) -> Result<(), Refusal> {
    let version = match next_header {
        IPV4_IN_IP => 4,
        IPV6_IN_IP => 6,
        NO_NEXT_HEADER => return Err(Refusal::Dummy),
        _ => return Err(Refusal::BadPayload),
    };
    let is_ip = inner.first().is_some_and(|byte| byte >> 4 == version);
    is_ip.then_some(()).ok_or(Refusal::BadPayload)
}
