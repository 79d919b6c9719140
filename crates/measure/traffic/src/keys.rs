//! The keys of the DUT's peer, which a station replaces when it seals or opens.

use crate::error::TrafficError;
use crate::spec::Esp;
use engine::{CpuChoice, EngineError, Selection};
use esp::{InboundSa, Limits, OutboundSa, WindowSize};
use keying::{KeyFile, LANES_MAX, StaticKeys};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::Suite;

/// An engine and an epoch of a key file, shared by all threads of a station.
pub struct Keys {
    selection: Selection,
    suite: Suite,
    keys: Mutex<StaticKeys>,
}

impl Keys {
    /// Selects the engine, locks the key file and draws an epoch, in this order.
    ///
    /// # Errors
    /// [`TrafficError`] when any of that fails, or `esp` is invalid.
    pub fn open(esp: &Esp) -> Result<Self, TrafficError> {
        let last_port = u32::from(esp.port) + u32::from(esp.lanes.max(1)) - 1;
        let slots = u32::from(esp.lanes) * u32::from(esp.tunnels);
        if slots == 0 || slots > u32::from(LANES_MAX) || last_port > u32::from(u16::MAX) {
            return Err(TrafficError::Lanes {
                lanes: esp.lanes,
                tunnels: esp.tunnels,
                port: esp.port,
            });
        }
        if esp.local.is_ipv4() != esp.remote.is_ipv4() {
            return Err(TrafficError::MixedVersions {
                source_address: esp.local,
                target_address: esp.remote,
            });
        }
        let choice: CpuChoice = esp.engine.parse().map_err(EngineError::from)?;
        let selection = engine::select(&choice, esp.suite)?;
        let keys = KeyFile::open(Path::new(&esp.key_file))?.draw_epoch()?;
        Ok(Self {
            selection,
            suite: esp.suite,
            keys: Mutex::new(keys),
        })
    }

    /// Name of the engine.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.selection.engine()
    }

    /// The SA to seal with in a lane of a tunnel. Panics on a second call for a slot, which would
    /// repeat nonces.
    pub(crate) fn outbound(&self, slot: u16) -> OutboundSa {
        let sa = self.lock().outbound(self.suite, slot);
        // Test frames hold no secrets: a trial may exceed a weak cipher's limit.
        let limits = Limits {
            packets: Limits::PACKETS,
            bytes: u64::MAX,
        };
        OutboundSa::new(sa.spi, self.selection.transform(&sa.keymat)).with_limits(limits)
    }

    /// An SA to open with, if the SPI can be the peer's in this slot; nothing is proven yet.
    pub(crate) fn candidate(&self, spi: u32, slot: u16) -> Option<InboundSa> {
        let sa = self.lock().inbound(self.suite, spi, slot)?;
        let transform = self.selection.transform(&sa.keymat);
        Some(InboundSa::new(sa.spi, transform, WindowSize::DEFAULT))
    }

    /// Records an epoch that packets have proven. Writes to disk, so it is not called while packets
    /// arrive.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn note_peer_epoch(&self, epoch: u32) -> Result<(), TrafficError> {
        Ok(self.lock().note_peer_epoch(epoch)?)
    }

    fn lock(&self) -> MutexGuard<'_, StaticKeys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
