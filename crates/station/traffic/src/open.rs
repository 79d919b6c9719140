//! Opening as the DUT's peer would: ESP packets by lane and SPI, WireGuard's by the receiver's
//! index.

use crate::keys::Keys;
use crate::keys::wireguard::{self, TRANSPORT};
use crate::parse::{bare_esp, datagram};
use engine::{Aead, TAG_BYTES};
use esp::{InboundSa, OpenError, Opened};
use keying::{epoch_of, lane_of};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use strum::{IntoStaticStr, VariantArray};
use traffic_spec::Peer;
use wire::headers::{IPV4_IN_IP, IPV6_IN_IP, NO_NEXT_HEADER};

/// Maximum number of forged packets with unknown SPIs per batch for which keys are derived or
/// searched: a flood of them must not delay the rest.
const FORGERIES_PER_BATCH: u32 = 2;
/// The one-byte payload of a NAT keepalive (RFC 3948 §2.3).
const KEEPALIVE: &[u8] = &[0xff];

/// The reason that a packet has no inner packet. The names match the encryptor's drop reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Refusal {
    /// Shorter than the shortest ESP packet, or cut off.
    Runt,
    /// A keepalive, of NAT or of WireGuard.
    Keepalive,
    /// A message of the key exchange that shares the port.
    KeyExchange,
    /// No tunnel has this SPI, or the one that has it uses other addresses or ports.
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
    pub fn name(self) -> &'static str {
        self.into()
    }
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
pub(crate) struct Refused([u64; Refusal::VARIANTS.len()]);

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
    /// [`Received::refused`](traffic_spec::Received::refused).
    pub(crate) fn by_name(&self) -> BTreeMap<String, u64> {
        let named = Refusal::VARIANTS.iter().zip(self.0);
        let occurred = named.filter(|(_, count)| *count > 0);
        occurred
            .map(|(refusal, count)| (refusal.name().to_owned(), count))
            .collect()
    }
}

/// The inbound SAs of all tunnels, created when packets need them.
pub(crate) struct Opener<'k> {
    keys: &'k Keys,
    /// The port of lane 0; `None`: ESP is bare.
    port: Option<u16>,
    lanes: u16,
    sas: Sas,
    forgeries_left: u32,
    /// The highest epoch that a packet has proven; 0: none.
    pub(crate) proven_epoch: u32,
}

/// SAs that a packet has proven.
enum Sas {
    /// Of static keys: by slot, the SA of the newest epoch.
    Slots(Vec<Option<InboundSa>>),
    /// Of agreed keys, old ones too: packets sealed before a rekey may be late.
    Spis(HashMap<u32, InboundSa>),
    /// WireGuard's sessions, the newest last.
    Sessions(Vec<(u32, Box<dyn Aead>)>),
}

impl<'k> Opener<'k> {
    pub(crate) fn new(peer: &Peer, keys: &'k Keys) -> Self {
        Self {
            keys,
            port: peer.port,
            lanes: peer.lanes,
            sas: match (keys.agreed(), keys.wireguard()) {
                (Some(_), _) => Sas::Spis(HashMap::new()),
                (_, Some(_)) => Sas::Sessions(Vec::new()),
                // Static keys: the SPI names slot and epoch, so that a list takes the place of a
                // map.
                _ => Sas::Slots((0..peer.lanes * peer.tunnels).map(|_| None).collect()),
            },
            forgeries_left: FORGERIES_PER_BATCH,
            proven_epoch: 0,
        }
    }

    /// Whether the peers' key exchange uses the same port.
    #[inline]
    pub(crate) const fn is_beside_key_exchange(&self) -> bool {
        self.port.is_some() && !matches!(self.sas, Sas::Slots(_))
    }

    /// Must be called before each batch.
    pub(crate) const fn begin_batch(&mut self) {
        self.forgeries_left = FORGERIES_PER_BATCH;
    }

    /// The lane of an IP packet and the range of its sealed part, which is empty if lengths
    /// contradict each other; `None` for a packet outside the tunnels.
    #[inline]
    pub(crate) fn find(&self, packet: &[u8]) -> Option<(u16, Range<usize>)> {
        let (lane, sealed) = match self.port {
            Some(first) => {
                let found = datagram(packet)?;
                (found.port.checked_sub(first)?, found.payload)
            }
            None => (0, bare_esp(packet)?),
        };
        // Ports behind the last lane belong to nobody here.
        (lane < self.lanes).then(|| (lane, sealed.unwrap_or(0..0)))
    }

    /// Opens a packet in place and returns the inner IP packet, which padding may follow.
    #[inline]
    pub(crate) fn open<'p>(
        &mut self,
        lane: u16,
        packet: &'p mut [u8],
    ) -> Result<&'p mut [u8], Refusal> {
        let Sas::Slots(sas) = &mut self.sas else {
            return self.open_agreed(packet);
        };
        let spi = spi(packet)?;
        let slot = lane_of(spi);
        let opened = match sas.get_mut(usize::from(slot)) {
            // Each lane of a tunnel has a separate UDP port.
            Some(_) if slot % self.lanes != lane => return Err(Refusal::NoSa),
            Some(Some(sa)) if sa.spi() == spi => sa.open(packet)?,
            // An old epoch has ended. A new SA for it would accept replayed packets.
            Some(_) if epoch_of(spi) < self.proven_epoch => return Err(Refusal::NoSa),
            Some(_) => self.open_with_candidate(slot, spi, packet)?,
            None => return Err(Refusal::NoSa),
        };
        let inner = &mut packet[opened.inner];
        expect_ip(opened.next_header, inner)?;
        Ok(inner)
    }

    /// As [`open`](Self::open), with keys that peers have agreed on; apart, so that the code for
    /// static keys stays short.
    #[inline(never)]
    fn open_agreed<'p>(&mut self, packet: &'p mut [u8]) -> Result<&'p mut [u8], Refusal> {
        let sas = match &mut self.sas {
            Sas::Sessions(sessions) => {
                return open_in_session(sessions, self.keys, &mut self.forgeries_left, packet);
            }
            Sas::Spis(sas) => sas,
            Sas::Slots(_) => return Err(Refusal::NoSa),
        };
        let spi = spi(packet)?;
        // In UDP, IKE's messages begin so (RFC 3948 §2.2).
        if spi == 0 && self.port.is_some() {
            return Err(Refusal::KeyExchange);
        }
        let opened = match sas.get_mut(&spi) {
            Some(sa) => sa.open(packet)?,
            None => self.open_with_candidate(0, spi, packet)?,
        };
        let inner = &mut packet[opened.inner];
        expect_ip(opened.next_header, inner)?;
        Ok(inner)
    }

    /// Tries a packet of an unknown SPI with keys found for it; the SA is kept if the packet is
    /// authentic. Epochs older than the newest one proven are not tried: a replayed packet of
    /// theirs would meet an empty window.
    #[cold]
    fn open_with_candidate(
        &mut self,
        slot: u16,
        spi: u32,
        packet: &mut [u8],
    ) -> Result<Opened, Refusal> {
        if self.forgeries_left == 0 {
            return Err(Refusal::NoSa);
        }
        // Taken before the attempt, and given back if the packet is authentic.
        self.forgeries_left -= 1;
        let mut sa = self.keys.candidate(spi, slot).ok_or(Refusal::NoSa)?;
        let opened = sa.open(packet)?;
        self.forgeries_left += 1;
        match &mut self.sas {
            Sas::Slots(sas) => {
                self.proven_epoch = self.proven_epoch.max(epoch_of(spi));
                sas[usize::from(slot)] = Some(sa);
            }
            Sas::Spis(sas) => {
                sas.insert(spi, sa);
            }
            Sas::Sessions(_) => {}
        }
        Ok(opened)
    }
}

/// Opens WireGuard's transport data (whitepaper §5.4.6): type, index, counter, sealed packet. A
/// repeated counter is not refused: the stamp inside identifies duplicates.
#[inline]
fn open_in_session<'p>(
    sessions: &mut Vec<(u32, Box<dyn Aead>)>,
    keys: &Keys,
    forgeries_left: &mut u32,
    packet: &'p mut [u8],
) -> Result<&'p mut [u8], Refusal> {
    let Some((header, sealed)) = packet.split_first_chunk_mut::<{ wireguard::HEADER_BYTES }>()
    else {
        return Err(Refusal::Runt);
    };
    let [TRANSPORT, 0, 0, 0, i0, i1, i2, i3, counter @ ..] = *header else {
        return Err(Refusal::KeyExchange);
    };
    let index = u32::from_le_bytes([i0, i1, i2, i3]);
    let nonce = wireguard::nonce(u64::from_le_bytes(counter));
    if let Some((_, aead)) = sessions.iter_mut().rev().find(|(it, _)| *it == index) {
        aead.open(&nonce, &[], sealed)
            .map_err(|_| Refusal::IntegrityFailed)?;
    } else {
        let known = keys.wireguard().and_then(|keys| keys.opening(index));
        let mut aead = known.filter(|_| *forgeries_left > 0).ok_or(Refusal::NoSa)?;
        *forgeries_left -= 1;
        aead.open(&nonce, &[], sealed)
            .map_err(|_| Refusal::IntegrityFailed)?;
        *forgeries_left += 1;
        // Only after a packet was authentic: an index alone proves nothing.
        sessions.push((index, aead));
    }
    let inner_bytes = sealed.len() - TAG_BYTES;
    match sealed[..inner_bytes].first() {
        // An empty packet (whitepaper §6.5).
        None => Err(Refusal::Keepalive),
        Some(byte) if matches!(byte >> 4, 4 | 6) => Ok(&mut sealed[..inner_bytes]),
        Some(_) => Err(Refusal::BadPayload),
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
