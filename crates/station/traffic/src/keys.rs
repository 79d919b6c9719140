//! The keys of the DUT's peer, which a station replaces when it seals or opens.

pub(crate) mod agreed;
pub(crate) mod charon;
pub(crate) mod wireguard;

use crate::error::TrafficError;
use agreed::AgreedKeys;
use engine::{CpuChoice, EngineError, Selection};
use esp::{InboundSa, Limits, OutboundSa, WindowSize};
use keying::{KeyFile, LANES_MAX, StaticKeys};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use traffic_spec::{KeySource, Peer};
use wire::Suite;
use wireguard::WireGuardKeys;

/// An engine and keys, shared by all threads of a station.
pub struct Keys {
    selection: Selection,
    source: Source,
}

enum Source {
    /// An epoch of a key file.
    Static(Mutex<StaticKeys>),
    Agreed(Arc<AgreedKeys>),
    WireGuard(Arc<WireGuardKeys>),
}

/// A station's use of its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// Seal the packets it sends.
    Seal,
    /// Open the packets it receives.
    Open,
}

impl Keys {
    /// Selects the engine, then locks the key file and draws an epoch, or reads the SAs from an IKE
    /// daemon's log, or makes a WireGuard handshake.
    ///
    /// # Errors
    /// [`TrafficError`] when any of that fails, or `peer` is invalid.
    pub fn open(peer: &Peer, key_use: KeyUse) -> Result<Self, TrafficError> {
        let first_port = peer.port.unwrap_or_default();
        // In 32 bits, as the sum may exceed the range of ports.
        let last_port = u32::from(first_port) + u32::from(peer.lanes.max(1)) - 1;
        let slots = u32::from(peer.lanes) * u32::from(peer.tunnels);
        let lanes_max = match (peer.port, &peer.keys) {
            (Some(_), KeySource::File(_)) => LANES_MAX,
            _ => 1,
        };
        // A lane is an SA with a UDP port, so only ESP in UDP with static keys has several.
        let is_too_wide = slots > u32::from(LANES_MAX) || peer.lanes > lanes_max;
        if slots == 0 || is_too_wide || last_port > u32::from(u16::MAX) {
            return Err(TrafficError::Lanes {
                lanes: peer.lanes,
                tunnels: peer.tunnels,
                port: first_port,
            });
        }
        if peer.local.is_ipv4() != peer.remote.is_ipv4() {
            return Err(TrafficError::MixedVersions {
                source_address: peer.local,
                target_address: peer.remote,
            });
        }
        let choice: CpuChoice = peer.engine.parse().map_err(EngineError::from)?;
        // Before the keys: an epoch that no engine can use would be drawn for nothing.
        let selection = engine::select(&choice, peer.suite)?;
        let source = match &peer.keys {
            KeySource::File(path) => {
                let keys = KeyFile::open(Path::new(path))?.draw_epoch()?;
                Source::Static(Mutex::new(keys))
            }
            KeySource::Ike(ike) => {
                let keys = AgreedKeys::open(selection.clone(), &ike.log, &ike.sequences)?;
                Source::Agreed(Arc::new(keys))
            }
            KeySource::WireGuard(path) => {
                let ends = (peer.local, peer.remote);
                let (file, seals) = (Path::new(path), key_use == KeyUse::Seal);
                let port = peer.port.ok_or(TrafficError::WireGuardPort)?;
                let keys = WireGuardKeys::open(selection.clone(), file, ends, port, seals)?;
                Source::WireGuard(Arc::new(keys))
            }
        };
        Ok(Self { selection, source })
    }

    /// Name of the engine.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.selection.engine()
    }

    /// The SA to seal with in a lane of a tunnel, for packets between these addresses. Panics on a
    /// second call for a slot of static keys, which would repeat nonces.
    ///
    /// # Errors
    /// [`TrafficError`] when no SA has been agreed on.
    pub(crate) fn outbound(
        &self,
        slot: u16,
        (source, target): (IpAddr, IpAddr),
    ) -> Result<OutboundSa, TrafficError> {
        let keys = match &self.source {
            Source::Static(keys) => keys,
            Source::Agreed(keys) => return keys.first_outbound(source, target),
            Source::WireGuard(_) => return Err(TrafficError::SessionTaken),
        };
        let sa = lock(keys).outbound(self.suite(), slot);
        // Test frames hold no secrets: a trial may exceed a weak cipher's limit.
        let limits = Limits {
            packets: Limits::PACKETS,
            bytes: u64::MAX,
        };
        let transform = self.selection.transform(&sa.keymat);
        Ok(OutboundSa::new(sa.spi, transform).with_limits(limits))
    }

    /// An SA to open with, if the SPI can be the peer's in this slot; nothing is proven yet.
    pub(crate) fn candidate(&self, spi: u32, slot: u16) -> Option<InboundSa> {
        let keys = match &self.source {
            Source::Static(keys) => keys,
            Source::Agreed(keys) => return keys.inbound(spi),
            Source::WireGuard(_) => return None,
        };
        let sa = lock(keys).inbound(self.suite(), spi, slot)?;
        let transform = self.selection.transform(&sa.keymat);
        Some(InboundSa::new(sa.spi, transform, WindowSize::DEFAULT))
    }

    /// Keys of an IKE daemon, if they are.
    pub(crate) fn agreed(&self) -> Option<&Arc<AgreedKeys>> {
        match &self.source {
            Source::Agreed(keys) => Some(keys),
            _ => None,
        }
    }

    /// WireGuard's sessions, if they are.
    pub(crate) fn wireguard(&self) -> Option<&Arc<WireGuardKeys>> {
        match &self.source {
            Source::WireGuard(keys) => Some(keys),
            _ => None,
        }
    }

    /// Records an epoch that packets have proven. Writes to disk, so it is not called while packets
    /// arrive.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn note_peer_epoch(&self, epoch: u32) -> Result<(), TrafficError> {
        match &self.source {
            Source::Static(keys) => Ok(lock(keys).note_peer_epoch(epoch)?),
            Source::Agreed(_) | Source::WireGuard(_) => Ok(()),
        }
    }

    fn suite(&self) -> Suite {
        self.selection.suite()
    }
}

/// The keys of the peer that a station replaces, if any.
pub(crate) fn open_keys(
    peer: Option<&Peer>,
    key_use: KeyUse,
) -> Result<Option<Keys>, TrafficError> {
    peer.map(|peer| Keys::open(peer, key_use)).transpose()
}

fn lock(keys: &Mutex<StaticKeys>) -> MutexGuard<'_, StaticKeys> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}
